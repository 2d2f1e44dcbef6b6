/* resnet_cifar.c: ResNet-20 with weights that others trained (torch's legacy format), on records of CIFAR-10.
 *   resnet_cifar WEIGHTS RECORDS     RECORDS: 3073 bytes each: the class, 32x32 red, green, blue */
#include <stdio.h>
#include <tg_io.h>
#include <tg_nn.h>

enum { BLOCKS = 3, RECORD = 3073, BATCH = 100 };

typedef struct Block {
  TgConv2d conv1, conv2;
  TgBatchNorm bn1, bn2;
} Block;

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

static ResNet resnet_new(TgContext *ctx) {
  ResNet n = {.conv1 = conv3(ctx, 3, 16, 1), .bn1 = tg_batch_norm_new(ctx, 16)};
  Block *layers[] = {n.layer1, n.layer2, n.layer3};
  int64_t in = 16;
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < BLOCKS; i++) {
      int64_t out = 16 << k;
      layers[k][i] = (Block){.conv1 = conv3(ctx, in, out, in == out ? 1 : 2),
                             .conv2 = conv3(ctx, out, out, 1),
                             .bn1 = tg_batch_norm_new(ctx, out),
                             .bn2 = tg_batch_norm_new(ctx, out)};
      in = out;
    }
  n.linear = tg_linear_new(ctx, 64, 10, true);
  return n;
}

/* The shortcut takes every second pixel where the block does, and fills channels up with zeros on both sides.
 */
static TgTensor *block_run(const Block *b, TgTensor *x) {
  TgTensor *y = tg_relu(tg_batch_norm_run(&b->bn1, tg_conv2d_run(&b->conv1, x)));
  y = tg_batch_norm_run(&b->bn2, tg_conv2d_run(&b->conv2, y));
  int64_t more = (tg_dim(y, 1) - tg_dim(x, 1)) / 2, pad[4] = {0, more, 0, 0};
  if (more) {
    x = tg_getitem(x, TG_IDX(TG_ALL, TG_ALL, TG_SLICE(TG_OPEN, TG_OPEN, 2), TG_SLICE(TG_OPEN, TG_OPEN, 2)));
    x = tg_pad(x, pad, pad);
  }
  return tg_relu(tg_add(y, x));
}

static TgTensor *resnet_run(const ResNet *n, TgTensor *x) { /* (b, 3, 32, 32) -> (b, 10) */
  const Block *layers[] = {n->layer1, n->layer2, n->layer3};
  x = tg_relu(tg_batch_norm_run(&n->bn1, tg_conv2d_run(&n->conv1, x)));
  for (int k = 0; k < 3 * BLOCKS; k++)
    x = block_run(&layers[k / BLOCKS][k % BLOCKS], x);
  return tg_linear_run(&n->linear, tg_mean(x, .axis = TG_AXES(2, 3)));
}

static TgStatus predict(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
  (void)nin, (void)nout;
  TgTensor *x =
      tg_div_scalar(tg_float(tg_reshape(tg_slice(in[0], 1, 1, RECORD), TG_SHAPE(-1, 3, 32, 32))), 255);
  TgTensor *part[3];
  for (int c = 0; c < 3; c++)
    part[c] = tg_div_scalar(tg_sub_scalar(tg_slice(x, 1, c, c + 1), mean[c]), std[c]);
  TgTensor *class = tg_argmax(resnet_run(user, tg_cat(part, 3, 1)), .axis = TG_AXES(-1));
  out[0] = tg_sum(tg_int(tg_eq(class, tg_int(tg_select(in[0], 1, 0)))));
  return tg_error(ctx);
}

int main(int argc, char **argv) {
  TgContext *ctx = tg_open(NULL);
  ResNet net = resnet_new(ctx);
  TgState *model = tg_state_new(ctx), *file = argc > 2 ? tg_state_from_file(ctx, argv[1]) : NULL;
  TgTensor *records = argc > 2 ? tg_open_data(ctx, argv[2]) : NULL;
  tg_module_state(resnet_module, &net, model, "state_dict.module");
  if (!records || tg_load_state(model, file, .more = true)) {
    fprintf(stderr, "usage: resnet_cifar WEIGHTS RECORDS  %s\n", tg_errmsg(ctx));
    return 1;
  }
  if (tg_numel(records) % RECORD) {
    fprintf(stderr, "%s: %lld bytes are no whole records of %d; what is packed in NAME.gz is called NAME\n",
            argv[2], (long long)tg_numel(records), RECORD);
    return 1;
  }
  char text[4000];
  tg_module_print(resnet_module, &net, text, sizeof text);
  printf("%.*s..\n%lld parameters\n", 160, text, (long long)tg_module_count(resnet_module, &net));
  TgJit *jit = tg_jit(ctx, predict, &net);
  int64_t n = tg_numel(records) / RECORD, right = 0;
  records = tg_reshape(tg_slice(records, 0, 0, n * RECORD), TG_SHAPE(n, RECORD));
  for (int64_t at = 0; at + BATCH <= n && !tg_error(ctx); at += BATCH)
    TG_SCOPE(ctx) {
      TgTensor *in = tg_contiguous(tg_slice(records, 0, at, at + BATCH)), *out = NULL;
      if (!tg_realize(in) && !tg_jit_run(jit, &in, 1, &out, 1)) right += tg_item_i64(out);
    }
  printf("%lld of %lld right\n", (long long)right, (long long)(n / BATCH * BATCH));
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_jit_free(jit), tg_state_free(model), tg_state_free(file), tg_module_free(resnet_module, &net);
  tg_close(ctx);
  return bad != 0;
}
