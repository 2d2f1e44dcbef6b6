/* train_tasks.c: the table of what `tg train` can learn: data from a folder, a network with its table of
 * fields, and how an item is written into a batch. */
#include "train.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void train_data_free(TrainData *d) { tg_dataset_end(&d->train), tg_dataset_end(&d->test); }

/* ---- pictures */
static bool labels_fine(TgTensor *y, int classes) {
  if (!tg_numel(y) || tg_item_f64(tg_max(y)) < classes) return !tg_error(tg_context(y));
  tg_set_error(tg_context(y), TG_ERR_VALUE, "a label is not one of ten classes");
  return false;
}

/* part: training x and y, test x and y. o tells how the training pictures are augmented; the test pictures
 * are only normalised. */
static bool pictures_set(TrainData *d, TgTensor *const part[4], const TgImageOptions *o) {
  TgImageOptions plain = {.size = sizeof plain, .mean = o->mean, .std = o->std};
  d->classes = 10;
  if (!labels_fine(part[1], 10) || !labels_fine(part[3], 10)) return false;
  d->train = tg_dataset_images_opt(part[0], part[1], o);
  d->test = tg_dataset_images_opt(part[2], part[3], &plain);
  return d->train.item && d->test.item;
}

static bool mnist_load(const Task *t, TgContext *ctx, const char *folder, const TrainOptions *o,
                       TrainData *d) {
  (void)t, (void)o;
  TgTensor *part[4];
  bool ok = false;
  TG_SCOPE(ctx) {
    ok = !tg_mnist(ctx, folder, part) &&
         pictures_set(d, part,
                      &TG_WITH(TgImageOptions, .mean = (double[]){0.1307}, .std = (double[]){0.3081}));
  }
  return ok;
}

/* Reads a folder that has only a part of the set: its first file whose name begins with data_batch. The last
 * tenth is the test. With --eval nothing is trained, so all of it is the test. */
static bool cifar_part(TgContext *ctx, const char *folder, bool eval, TgTensor *part[4]) {
  enum { PICTURE = 3 * 32 * 32, RECORD = PICTURE + 1 };

  char path[4096] = "";
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir && !*path && (e = readdir(dir));)
    if (!strncmp(e->d_name, "data_batch", 10)) snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
  if (dir) closedir(dir);
  size_t len = strlen(path);
  if (!len) return false;
  tg_clear_error(ctx);
  if (len > 3 && !strcmp(path + len - 3, ".gz")) path[len - 3] = 0;
  TgTensor *file = tg_open_data(ctx, path);
  int64_t n = file ? tg_numel(file) / RECORD : 0, ntest = eval ? n : n / 10, ntrain = eval ? n : n - ntest;
  TgTensor *records = tg_reshape(tg_slice(file, 0, 0, n * RECORD), TG_SHAPE(n, RECORD)),
           *x = tg_reshape(tg_slice(records, 1, 1, RECORD), TG_SHAPE(n, 3, 32, 32)),
           *y = tg_reshape(tg_slice(records, 1, 0, 1), TG_SHAPE(n));
  part[0] = tg_slice(x, 0, 0, ntrain);
  part[1] = tg_slice(y, 0, 0, ntrain);
  part[2] = tg_slice(x, 0, n - ntest, n);
  part[3] = tg_slice(y, 0, n - ntest, n);
  return part[3] != NULL;
}

static bool cifar_load(const Task *t, TgContext *ctx, const char *folder, const TrainOptions *o,
                       TrainData *d) {
  (void)t;
  TgImageOptions augment = TG_WITH(TgImageOptions, .mean = (double[]){0.485, 0.456, 0.406},
                                   .std = (double[]){0.229, 0.224, 0.225}, .flip_x = 0.5, .shift = 4);
  TgTensor *part[4];
  bool ok = false;
  TG_SCOPE(ctx) {
    ok = (!tg_cifar(ctx, folder, part) || cifar_part(ctx, folder, o->eval, part)) &&
         pictures_set(d, part, &augment);
  }
  return ok;
}

/* ---- a small convolutional network */
typedef struct Digits {
  TgConv2d conv1, conv2;
  TgLinear fc;
} Digits;

static const TgModule *digits_module(void) {
  static const TgField fields[] = {TG_LAYER(Digits, conv1, tg_conv2d_module),
                                   TG_LAYER(Digits, conv2, tg_conv2d_module),
                                   TG_LAYER(Digits, fc, tg_linear_module)};
  static const TgModule m = {"Digits", sizeof(Digits), fields, 3, NULL};
  return &m;
}

static void *digits_new(TgContext *ctx, const TrainData *d, const TrainOptions *o) {
  (void)d, (void)o;
  Digits *n = calloc(1, sizeof *n);
  if (n)
    *n = (Digits){tg_conv2d_new(ctx, 1, 16, 5, true, NULL), tg_conv2d_new(ctx, 16, 32, 3, true, NULL),
                  tg_linear_new(ctx, 800, 10, true)};
  return n;
}

static TgTensor *digits_run(const void *model, TgTensor *x) { /* (b, 1, 28, 28) -> (b, 10) */
  const Digits *n = model;
  x = tg_max_pool2d(tg_relu(tg_conv2d_run(&n->conv1, x))); /* (b, 16, 12, 12) */
  x = tg_max_pool2d(tg_relu(tg_conv2d_run(&n->conv2, x))); /* (b, 32, 5, 5) */
  return tg_linear_run(&n->fc, tg_flatten(x, 1, -1));
}

/* ---- ResNet-20 (He et al., arXiv 1512.03385), with shortcuts of kind A, which have no weights */
typedef struct Block {
  TgConv2d conv1, conv2;
  TgBatchNorm bn1, bn2;
} Block;

enum { BLOCKS = 3 };

typedef struct ResNet {
  TgConv2d conv1;
  TgBatchNorm bn1;
  Block layer1[BLOCKS], layer2[BLOCKS], layer3[BLOCKS];
  TgLinear linear;
} ResNet;

static const TgModule *block_module(void) {
  static const TgField fields[] = {
      TG_LAYER(Block, conv1, tg_conv2d_module), TG_LAYER(Block, bn1, tg_batch_norm_module),
      TG_LAYER(Block, conv2, tg_conv2d_module), TG_LAYER(Block, bn2, tg_batch_norm_module)};
  static const TgModule m = {"Block", sizeof(Block), fields, 4, NULL};
  return &m;
}

static const TgModule *resnet_module(void) {
  static const TgField fields[] = {
      TG_LAYER(ResNet, conv1, tg_conv2d_module), TG_LAYER(ResNet, bn1, tg_batch_norm_module),
      TG_LAYERS(ResNet, layer1, block_module),   TG_LAYERS(ResNet, layer2, block_module),
      TG_LAYERS(ResNet, layer3, block_module),   TG_LAYER(ResNet, linear, tg_linear_module)};
  static const TgModule m = {"ResNet20", sizeof(ResNet), fields, 6, NULL};
  return &m;
}

static TgConv2d conv3(TgContext *ctx, int64_t in, int64_t out, int64_t stride) {
  TgConvOptions o = {.size = sizeof o, .stride = TG_SIZES(stride), .padding = TG_SIZES(1)};
  return tg_conv2d_new(ctx, in, out, 3, false, &o);
}

static void *resnet_new(TgContext *ctx, const TrainData *d, const TrainOptions *o) {
  (void)o;
  ResNet *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  n->conv1 = conv3(ctx, 3, 16, 1);
  n->bn1 = tg_batch_norm_new(ctx, 16);
  Block *layers[3] = {n->layer1, n->layer2, n->layer3};
  int64_t in = 16;
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < BLOCKS; i++) {
      int64_t out = 16 << k;
      layers[k][i] =
          (Block){.conv1 = conv3(ctx, in, out, in == out ? 1 : 2), .conv2 = conv3(ctx, out, out, 1)};
      layers[k][i].bn1 = tg_batch_norm_new(ctx, out);
      layers[k][i].bn2 = tg_batch_norm_new(ctx, out);
      in = out;
    }
  n->linear = tg_linear_new(ctx, 64, d->classes, true);
  return n;
}

/* Takes every second pixel, and fills up the channels with zeros on both sides. */
static TgTensor *shortcut(TgTensor *x, int64_t out) {
  int64_t in = tg_dim(x, 1), side = (out - in) / 2;
  if (in == out) return x;
  const TgIndex second[] = {TG_ALL, TG_ALL, TG_SLICE(TG_OPEN, TG_OPEN, 2), TG_SLICE(TG_OPEN, TG_OPEN, 2)};
  int64_t pad[4] = {0, side, 0, 0};
  return tg_pad(tg_getitem(x, second, 4), pad, pad);
}

static TgTensor *block_run(const Block *b, TgTensor *x) {
  TgTensor *y = tg_relu(tg_batch_norm_run(&b->bn1, tg_conv2d_run(&b->conv1, x)));
  y = tg_batch_norm_run(&b->bn2, tg_conv2d_run(&b->conv2, y));
  return tg_relu(tg_add(y, shortcut(x, tg_dim(b->conv2.weight, 0))));
}

static TgTensor *resnet_run(const void *model, TgTensor *x) { /* (b, 3, 32, 32) -> (b, classes) */
  const ResNet *n = model;
  x = tg_relu(tg_batch_norm_run(&n->bn1, tg_conv2d_run(&n->conv1, x)));
  for (int i = 0; i < BLOCKS; i++)
    x = block_run(&n->layer1[i], x);
  for (int i = 0; i < BLOCKS; i++)
    x = block_run(&n->layer2[i], x);
  for (int i = 0; i < BLOCKS; i++)
    x = block_run(&n->layer3[i], x);
  return tg_linear_run(&n->linear, tg_mean(x, .axis = TG_AXES(2, 3)));
}

/* ---- text. A character's number is its rank among the characters that occur in the text. The last tenth is
 * the test. Items are windows of the text, `context` characters long. */
typedef struct Text {
  uint8_t *all; /* owned by the dataset that frees it; otherwise NULL */
  const uint8_t *at;
  int64_t context;
} Text;

static void text_end(void *user) {
  Text *text = user;
  free(text->all), free(text);
}

static TgStatus window_put(const Text *text, int64_t from, void *const *out) {
  const uint8_t *p = text->at + from;
  for (int64_t i = 0; i < text->context; i++) {
    ((int32_t *)out[0])[i] = p[i];
    ((int32_t *)out[1])[i] = p[i + 1];
  }
  return TG_OK;
}

/* Each item has its own part of the text; its window begins at a random place in that part. */
static TgStatus text_item(void *user, int64_t item, uint64_t random, void *const *out) {
  const Text *text = user;
  return window_put(text, item * text->context + (int64_t)(random % (uint64_t)text->context), out);
}

static TgStatus text_item_test(void *user, int64_t item, uint64_t random, void *const *out) {
  const Text *text = user;
  (void)random;
  return window_put(text, item * text->context, out);
}

static TgDataset text_dataset(uint8_t *all, const uint8_t *at, int64_t count, int64_t context,
                              TgItemFn item) {
  TgItemTensor window = {TG_I32, 1, {context}};
  Text *text = malloc(sizeof *text);
  if (!text) return (TgDataset){.size = sizeof(TgDataset)};
  *text = (Text){all, at, context};
  return (TgDataset){sizeof(TgDataset), count, 2, {window, window}, item, text_end, text};
}

static char *text_read(TgContext *ctx, const char *path, long *n) {
  char inside[4096], why[4200];
  DIR *dir = opendir(path);
  if (dir) {
    closedir(dir);
    snprintf(inside, sizeof inside, "%s/input.txt", path);
    path = inside;
  }
  size_t nbytes = 0;
  FILE *f = fopen(path, "rb");
  char *text = f ? cli_read(f, &nbytes) : NULL;
  *n = (long)nbytes;
  if (f) fclose(f);
  snprintf(why, sizeof why, "%s cannot be read", path);
  if (!text) tg_set_error(ctx, TG_ERR_IO, why);
  return text;
}

static bool text_load(const Task *t, TgContext *ctx, const char *path, const TrainOptions *o, TrainData *d) {
  long n;
  uint8_t *text = (uint8_t *)text_read(ctx, path, &n);
  bool has[256] = {false};
  (void)t;
  if (!text) return false;
  for (long i = 0; i < n; i++)
    has[text[i]] = true;
  for (int c = 0; c < 256; c++)
    if (has[c]) {
      d->letters[d->classes] = (uint8_t)c;
      d->of_byte[c] = (uint8_t)d->classes++;
    }
  for (long i = 0; i < n; i++)
    text[i] = d->of_byte[text[i]];
  int64_t train = n * 9 / 10, ntrain = (train - 1) / o->context - 1, ntest = (n - train - 1) / o->context;
  d->context = o->context;
  d->train = text_dataset(text, text, ntrain, o->context, text_item);
  d->test = text_dataset(NULL, text + train, ntest, o->context, text_item_test);
  if (!d->train.item) free(text);
  if (!d->train.item || !d->test.item) return tg_set_error(ctx, TG_ERR_NOMEM, "out of memory"), false;
  if (ntrain > 0 && ntest > 0) return true;
  char why[160];
  snprintf(why, sizeof why, "a text of %ld characters is too short for a context of %lld, which wants %lld",
           n, (long long)o->context, 10 * ((long long)o->context + 1));
  tg_set_error(ctx, TG_ERR_VALUE, why);
  return false;
}

/* ---- a small GPT: each sublayer begins with its layer norm; the embedding and the last layer share a
 * matrix */
enum { MAX_LAYERS = 24, HEAD = 32 };

typedef struct GPTBlock {
  TgLayerNorm ln_1, ln_2;
  TgLinear c_attn, attn_proj, c_fc, mlp_proj;
} GPTBlock;

typedef struct GPT {
  TgEmbedding wte, wpe;
  GPTBlock h[MAX_LAYERS];
  TgLayerNorm ln_f;
  int layers;
} GPT;

static const TgModule *gpt_block_module(void) {
#define FIELD(name, field, fn)                                                                               \
  { name, TG_FIELD_MODULE, offsetof(GPTBlock, field), fn, 0 }
  static const TgField fields[] = {
      FIELD("ln_1", ln_1, tg_layer_norm_module),         FIELD("attn.c_attn", c_attn, tg_linear_module),
      FIELD("attn.c_proj", attn_proj, tg_linear_module), FIELD("ln_2", ln_2, tg_layer_norm_module),
      FIELD("mlp.c_fc", c_fc, tg_linear_module),         FIELD("mlp.c_proj", mlp_proj, tg_linear_module)};
#undef FIELD
  static const TgModule m = {"GPTBlock", sizeof(GPTBlock), fields, 6, NULL};
  return &m;
}

static const TgModule *gpt_module(void) {
  static const TgField fields[] = {
      TG_LAYER(GPT, wte, tg_embedding_module), TG_LAYER(GPT, wpe, tg_embedding_module),
      TG_LAYERS(GPT, h, gpt_block_module), TG_LAYER(GPT, ln_f, tg_layer_norm_module)};
  static const TgModule m = {"GPT", sizeof(GPT), fields, 4, NULL};
  return &m;
}

/* Makes a linear layer with normal initial values. Layers that add to the residual stream get a deviation
 * that is smaller the deeper the network is. */
static TgLinear gpt_linear(TgContext *ctx, int64_t in, int64_t out, double deviation) {
  TgLinear l = tg_linear_new(ctx, in, out, true);
  tg_assign(l.weight, tg_normal(ctx, TG_SHAPE(out, in), 0, deviation));
  tg_assign(l.bias, tg_zeros(ctx, TG_SHAPE(out)));
  return l;
}

static void *gpt_new(TgContext *ctx, const TrainData *d, const TrainOptions *o) {
  GPT *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  int64_t wide = o->width;
  double small = 0.02 * sqrt(0.5 / (double)o->layers);
  n->layers = (int)o->layers;
  n->wte = tg_embedding_new(ctx, d->classes, wide);
  n->wpe = tg_embedding_new(ctx, o->context, wide);
  tg_assign(n->wte.weight, tg_normal(ctx, TG_SHAPE(d->classes, wide), 0, 0.02));
  tg_assign(n->wpe.weight, tg_normal(ctx, TG_SHAPE(o->context, wide), 0, 0.02));
  for (int i = 0; i < n->layers; i++) {
    n->h[i] = (GPTBlock){.ln_1 = tg_layer_norm_new(ctx, TG_SHAPE(wide)),
                         .ln_2 = tg_layer_norm_new(ctx, TG_SHAPE(wide))};
    n->h[i].c_attn = gpt_linear(ctx, wide, 3 * wide, 0.02);
    n->h[i].attn_proj = gpt_linear(ctx, wide, wide, small);
    n->h[i].c_fc = gpt_linear(ctx, wide, 4 * wide, 0.02);
    n->h[i].mlp_proj = gpt_linear(ctx, 4 * wide, wide, small);
  }
  n->ln_f = tg_layer_norm_new(ctx, TG_SHAPE(wide));
  return n;
}

static TgTensor *attention_run(const GPTBlock *b, TgTensor *x) { /* (b, t, c) */
  int64_t batch = tg_dim(x, 0), time = tg_dim(x, 1), wide = tg_dim(x, 2), heads = wide / HEAD;
  TgTensor *part[3], *all = tg_linear_run(&b->c_attn, x);
  if (!all || tg_chunk(all, -1, 3, part, 3) != 3) return NULL;
  for (int i = 0; i < 3; i++) /* (b, heads, t, HEAD) */
    part[i] = tg_transpose(tg_reshape(part[i], TG_SHAPE(batch, time, heads, HEAD)), 1, 2);
  TgTensor *y = tg_scaled_dot_product_attention(part[0], part[1], part[2], .causal = true);
  return tg_linear_run(&b->attn_proj, tg_reshape(tg_transpose(y, 1, 2), TG_SHAPE(batch, time, wide)));
}

static TgTensor *gpt_run(const void *model, TgTensor *x) { /* i32 (b, t) -> (b, t, letters) */
  const GPT *n = model;
  TgTensor *h = tg_add(tg_embedding_run(&n->wte, x), tg_slice(n->wpe.weight, 0, 0, tg_dim(x, 1)));
  for (int i = 0; i < n->layers; i++) {
    const GPTBlock *b = &n->h[i];
    h = tg_add(h, attention_run(b, tg_layer_norm_run(&b->ln_1, h)));
    TgTensor *m = tg_gelu(tg_linear_run(&b->c_fc, tg_layer_norm_run(&b->ln_2, h)));
    h = tg_add(h, tg_linear_run(&b->mlp_proj, m));
  }
  return tg_linear(tg_layer_norm_run(&n->ln_f, h), n->wte.weight, NULL);
}

/* ---- the table */
static const Task tasks[] = {
    {.name = "mnist",
     .about = "a convolutional network on the digits of MNIST: FOLDER has the four idx files, gz or not",
     .defaults = {.epochs = 5, .batch = 128, .lr = 4e-3, .decay = 1e-2},
     .load = mnist_load,
     .model_new = digits_new,
     .module = digits_module,
     .run = digits_run,
     .metric = "accuracy"},
    {.name = "cifar",
     .about = "ResNet-20 on CIFAR-10: FOLDER has the binary batches, gz or not, or one of them",
     .defaults = {.epochs = 30, .batch = 128, .lr = 5e-3, .decay = 5e-2},
     .load = cifar_load,
     .model_new = resnet_new,
     .module = resnet_module,
     .run = resnet_run,
     .metric = "accuracy"},
    {.name = "chargpt",
     .about = "a GPT of characters on a text: FOLDER is a file, or has input.txt",
     .defaults =
         {.epochs = 6, .batch = 32, .lr = 3e-3, .decay = 0.1, .layers = 4, .width = 128, .context = 64},
     .load = text_load,
     .model_new = gpt_new,
     .module = gpt_module,
     .run = gpt_run,
     .is_text = true,
     .metric = "loss"},
};

const Task *task_at(int i) { return i >= 0 && i < (int)(sizeof tasks / sizeof *tasks) ? &tasks[i] : NULL; }

const Task *task_find(const char *name) {
  for (int i = 0; task_at(i); i++)
    if (!strcmp(task_at(i)->name, name)) return task_at(i);
  return NULL;
}
