/* demo.c: `tg demo`: trains a small convolutional network on handwritten digits and shows some of its
 * answers. The data is MNIST if it is on this machine, otherwise digits that digits.c draws. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "tg_io.h"
#include "tg_nn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Images {
  int n;
  uint8_t *pixels, *labels;
} Images;

typedef struct Data {
  const char *name;
  Images train, test;
} Data;

typedef struct Net {
  TgConv2d c1, c2;
  TgLinear out;
} Net;

typedef struct Options {
  int64_t steps, batch, seed;
  bool json;
} Options;

/* ---- data */
static bool images_alloc(Images *im, int n) {
  *im = (Images){n, malloc((size_t)n * 784), malloc((size_t)n)};
  return im->pixels && im->labels;
}

static void images_free(Images *im) { free(im->pixels), free(im->labels); }

static bool images_read(Images *im, TgTensor *x, TgTensor *y) {
  if (!images_alloc(im, (int)tg_len(y)) || tg_read(x, im->pixels, tg_nbytes(x)) ||
      tg_read(y, im->labels, tg_nbytes(y)))
    return false;
  for (int i = 0; i < im->n; i++)
    if (im->labels[i] > 9) return false;
  return im->n > 0;
}

static bool mnist_load(TgContext *ctx, Data *d) {
  char dir[512];
  const char *own = getenv("TG_DATA"), *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  int n = own && *own   ? snprintf(dir, sizeof dir, "%s/mnist", own)
          : xdg && *xdg ? snprintf(dir, sizeof dir, "%s/tinygrad-c/mnist", xdg)
                        : snprintf(dir, sizeof dir, "%s/.local/share/tinygrad-c/mnist", home ? home : "");
  if (n >= (int)sizeof dir) return false;
  bool ok = false;
  TG_SCOPE(ctx) {
    TgTensor *t[4];
    ok = tg_mnist(ctx, dir, t) == TG_OK && images_read(&d->train, t[0], t[1]) &&
         images_read(&d->test, t[2], t[3]);
  }
  d->name = "mnist";
  if (ok) return true;
  tg_clear_error(ctx); /* it is not an error if there is no MNIST */
  images_free(&d->train), images_free(&d->test);
  memset(d, 0, sizeof *d);
  return false;
}

static bool data_load(TgContext *ctx, Data *d, int64_t seed) {
  if (mnist_load(ctx, d)) return true;
  d->name = "drawn";
  if (!images_alloc(&d->train, 16000) || !images_alloc(&d->test, 2000)) return false;
  digits_draw((uint64_t)seed * 2 + 1, d->train.n, d->train.pixels, d->train.labels);
  digits_draw((uint64_t)seed * 2 + 2, d->test.n, d->test.pixels, d->test.labels);
  return true;
}

/* ---- network */
static Net net_new(TgContext *ctx) {
  return (Net){tg_conv2d_new(ctx, 1, 16, 5, true, NULL), tg_conv2d_new(ctx, 16, 32, 3, true, NULL),
               tg_linear_new(ctx, 800, 10, true)};
}

static TgTensor *net_run(const Net *n, TgTensor *x) {   /* (b, 1, 28, 28) -> (b, 10) */
  x = tg_max_pool2d(tg_relu(tg_conv2d_run(&n->c1, x))); /* (b, 16, 12, 12) */
  x = tg_max_pool2d(tg_relu(tg_conv2d_run(&n->c2, x))); /* (b, 32, 5, 5) */
  return tg_linear_run(&n->out, tg_flatten(x, 1, -1));
}

static uint64_t next(uint64_t *s) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return *s >> 33;
}

static TgTensor *pictures(TgContext *ctx, float *room, const Images *im, const int *index, int b) {
  for (int i = 0; i < b; i++)
    for (int k = 0; k < 784; k++)
      room[784 * i + k] = (float)im->pixels[784 * (size_t)index[i] + (size_t)k] / 255.0f;
  return tg_from(ctx, room, TG_F32, TG_SHAPE(b, 1, 28, 28));
}

enum { EVAL = 250 };

/* Sets the predicted class of each test picture. Returns false on an error, which is in the context. */
static bool evaluate(TgContext *ctx, const Net *net, const Images *test, float *room, int32_t *predicted) {
  int index[EVAL];
  for (int at = 0; at < test->n; at += EVAL) {
    int32_t p[EVAL];
    bool ok = true;
    for (int i = 0; i < EVAL; i++)
      index[i] = at + i < test->n ? at + i : 0;
    TG_SCOPE(ctx) {
      TgTensor *y = tg_argmax(net_run(net, pictures(ctx, room, test, index, EVAL)), .axis = TG_AXES(-1));
      ok = tg_read(y, p, sizeof p) == TG_OK;
    }
    if (!ok) return false;
    for (int i = 0; i < EVAL && at + i < test->n; i++)
      predicted[at + i] = p[i];
  }
  return true;
}

/* ---- what the terminal shows */
static void show(const Images *test, const int32_t *predicted) {
  enum { SHOWN = 6 };

  int pick[SHOWN], n = 0;
  for (int i = 0; i < test->n && n < 2; i++) /* up to two mistakes, then right answers */
    if (predicted[i] != test->labels[i]) pick[n++] = i;
  for (int i = 0; i < test->n && n < SHOWN; i++)
    if (predicted[i] == test->labels[i]) pick[n++] = i;
  bool colour = cli_colour(STDOUT_FILENO);
  for (int r = 0; r < 28; r += 2) {
    for (int k = 0; k < n; k++) {
      const uint8_t *p = test->pixels + 784 * (size_t)pick[k];
      for (int c = 0; c < 28; c += colour ? 1 : 2) {
        int top = p[28 * r + c], low = p[28 * (r + 1) + c];
        if (colour)
          printf("\x1b[38;5;%d;48;5;%dm\xe2\x96\x80", 232 + top * 23 / 255, 232 + low * 23 / 255);
        else
          putchar(" .:-=+*#%@"[(top + low + p[28 * r + c + 1] + p[28 * (r + 1) + c + 1]) * 9 / 1020]);
      }
      fputs(colour ? "\x1b[0m " : " ", stdout);
    }
    putchar('\n');
  }
  int wide = colour ? 28 : 14;
  for (int k = 0; k < n; k++) {
    char text[32];
    bool right = predicted[pick[k]] == test->labels[pick[k]];
    if (right)
      snprintf(text, sizeof text, "%d", (int)predicted[pick[k]]);
    else
      snprintf(text, sizeof text, "%d (is %d)", (int)predicted[pick[k]], test->labels[pick[k]]);
    if (colour) fputs(right ? "\x1b[32m" : "\x1b[31m", stdout);
    printf("%-*s", wide + 1, text);
    if (colour) fputs("\x1b[0m", stdout);
  }
  putchar('\n');
}

/* ---- training */
typedef struct Training {
  TgContext *ctx;
  const Data *data;
  int batch;
  float *room; /* memory for the pictures of a batch, or of EVAL pictures */
  int *order, *index;
  int32_t *labels, *predicted;
  int at; /* index in `order` of the next batch's first picture */
  uint64_t rng;
  Net net;
  TgOptim *optim;
  double loss; /* a running mean */
} Training;

static bool training_begin(Training *t, TgContext *ctx, const Options *o, const Data *d) {
  size_t batch = (size_t)o->batch;
  *t = (Training){.ctx = ctx, .data = d, .batch = (int)batch, .at = d->train.n};
  t->rng = (uint64_t)o->seed + 12345;
  t->room = malloc((batch > EVAL ? batch : EVAL) * 784 * sizeof *t->room);
  t->index = malloc(batch * sizeof *t->index);
  t->labels = malloc(batch * sizeof *t->labels);
  t->predicted = malloc((size_t)d->test.n * sizeof *t->predicted);
  t->order = malloc((size_t)d->train.n * sizeof *t->order);
  t->net = net_new(ctx);
  TgTensor *params[] = {t->net.c1.weight, t->net.c1.bias,    t->net.c2.weight,
                        t->net.c2.bias,   t->net.out.weight, t->net.out.bias};
  t->optim = tg_error(ctx) ? NULL : tg_adam(ctx, params, 6, .lr = 2e-3);
  for (int i = 0; t->order && i < d->train.n; i++)
    t->order[i] = i;
  return t->room && t->index && t->labels && t->predicted && t->order && t->optim;
}

static void training_end(Training *t) {
  tg_optim_free(t->optim);
  tg_conv2d_free(&t->net.c1), tg_conv2d_free(&t->net.c2), tg_linear_free(&t->net.out);
  free(t->room), free(t->index), free(t->labels), free(t->predicted), free(t->order);
}

/* Takes the next batch. Each epoch has a new order; pictures at its end that do not fill a batch are left
 * out. */
static void batch_next(Training *t) {
  int n = t->data->train.n;
  if (t->at + t->batch > n) {
    for (int i = n - 1; i > 0; i--) {
      int j = (int)(next(&t->rng) % (uint64_t)(i + 1)), had = t->order[i];
      t->order[i] = t->order[j];
      t->order[j] = had;
    }
    t->at = 0;
  }
  for (int i = 0; i < t->batch; i++) {
    t->index[i] = t->order[(t->at + i) % n];
    t->labels[i] = t->data->train.labels[t->index[i]];
  }
  t->at += t->batch;
}

static bool train_step(Training *t, bool first) {
  bool ok = false;
  TG_SCOPE(t->ctx) {
    TgTensor *x = pictures(t->ctx, t->room, &t->data->train, t->index, t->batch);
    TgTensor *y = tg_from(t->ctx, t->labels, TG_I32, TG_SHAPE(t->batch));
    TgTensor *loss = tg_sparse_cross_entropy(net_run(&t->net, x), y);
    ok = tg_backward(loss) == TG_OK && tg_optim_step(t->optim) == TG_OK;
    if (ok) {
      double v = tg_item_f64(loss);
      t->loss = first ? v : 0.9 * t->loss + 0.1 * v;
      ok = !tg_error(t->ctx);
    }
  }
  return ok;
}

/* Shows the progress: on a terminal a line that is redrawn ten times a second, elsewhere a line for each
 * hundred steps. */
static void progress(int64_t step, int64_t steps, double loss, double seconds, double *shown) {
  bool live = isatty(STDERR_FILENO), last = step == steps - 1;
  if (live && (last || seconds - *shown > 0.1)) {
    fprintf(stderr, "\rstep %lld/%lld  loss %.4f  %.1f s%s", (long long)step + 1, (long long)steps, loss,
            seconds, last ? "\n" : "  ");
    *shown = seconds;
  } else if (!live && (last || step % 100 == 0))
    fprintf(stderr, "step %lld/%lld  loss %.4f  %.1f s\n", (long long)step + 1, (long long)steps, loss,
            seconds);
}

/* Trains and reports. The learning rate is lower in the last quarter of the steps; the loss that is shown is
 * a running mean. */
static int train(TgContext *ctx, const Options *o, const Data *d) {
  int64_t steps = o->steps ? o->steps : 2 * (d->train.n / o->batch);
  double first = 0, shown = -1;
  uint64_t kernels = 0;
  int rc = CLI_FAILED;
  Training t;
  double begin = cli_now();
  CliWait *wait = cli_wait_begin("compiling the first step");
  tg_watch_progress(ctx, cli_wait_progress, wait);
  bool ok = training_begin(&t, ctx, o, d);
  tg_set_training(ctx, true);
  for (int64_t step = 0; ok && step < steps; step++) {
    batch_next(&t);
    if (step == steps * 3 / 4) tg_optim_set_lr(t.optim, 5e-4);
    uint64_t before = tg_counters(ctx).launches;
    ok = train_step(&t, step == 0);
    kernels = tg_counters(ctx).launches - before;
    if (step == 0) {
      first = cli_now() - begin;
      tg_watch_progress(ctx, NULL, NULL), cli_wait_end(wait);
      wait = NULL;
    }
    progress(step, steps, t.loss, cli_now() - begin, &shown);
  }
  double took = cli_now() - begin;
  tg_watch_progress(ctx, NULL, NULL), cli_wait_end(wait); /* in case the first step failed */
  tg_set_training(ctx, false);

  if (ok && (ok = evaluate(ctx, &t.net, &d->test, t.room, t.predicted))) {
    int right = 0;
    for (int i = 0; i < d->test.n; i++)
      right += t.predicted[i] == d->test.labels[i];
    double accuracy = (double)right / d->test.n;
    show(&d->test, t.predicted);
    printf("%s digits on %s: %.2f %% of %d test pictures right after %lld steps (loss %.4f), first step %.2f "
           "s, all %.1f s\n",
           d->name, tg_default_device(ctx), 100 * accuracy, d->test.n, (long long)steps, t.loss, first, took);
    if (o->json)
      printf("{\"test_accuracy\":%.4f,\"data\":\"%s\",\"device\":\"%s\",\"steps\":%lld,\"kernels_per_step\":%"
             "llu,\"first_step_s\":%.4f,"
             "\"train_s\":%.3f}\n",
             accuracy, d->name, tg_default_device(ctx), (long long)steps, (unsigned long long)kernels, first,
             took);
    rc = CLI_OK;
  }
  if (!ok && !tg_error(ctx))
    fprintf(stderr, "tg demo: out of memory\n");
  else if (!ok)
    cli_fail(ctx, "demo");
  training_end(&t);
  return rc;
}

static int run_demo(const void *options, char **argument, int n) {
  const Options o = *(const Options *)options;
  (void)argument, (void)n;
  Data d = {0};
  TgContext *ctx = tg_open_with(.seed = (uint64_t)o.seed, .log = cli_log);
  int rc = CLI_FAILED;
  if (tg_error(ctx))
    cli_fail(ctx, "demo");
  else if (!data_load(ctx, &d, o.seed))
    fprintf(stderr, "tg demo: out of memory\n");
  else {
    fprintf(stderr, "device %s; data: %s\n", tg_device_describe(ctx),
            !strcmp(d.name, "mnist") ? "MNIST" : "drawn digits (no MNIST here)");
    rc = train(ctx, &o, &d);
  }
  images_free(&d.train), images_free(&d.test);
  tg_close(ctx);
  return rc;
}

static const Options defaults = {.batch = 128, .seed = 1};

static const CliOption options[] = {
    CLI_WHOLE_OF(Options, steps, "steps", 1, 1000000, "how many steps, instead of two epochs"),
    CLI_WHOLE_OF(Options, batch, "batch", 1, 10000, "pictures of a step (128)"),
    CLI_WHOLE_OF(Options, seed, "seed", 1, INT32_MAX, "of the weights, the order and the drawn digits (1)"),
    CLI_FLAG_OF(Options, json, "json", "the result as an object too")};

const CliCommand command_demo = {.name = "demo",
                                 .summary = "train a small network on digits and show what it learned",
                                 .arguments = "",
                                 CLI_TAKES(Options, options),
                                 .defaults = &defaults,
                                 .run = run_demo};
