/* train.h: what `tg train` is made of: tasks (train_tasks.c), the loader (loader.c), the run (train.c). */
#ifndef TG_TRAIN_H
#define TG_TRAIN_H
#include "cli.h"
#include "tg_io.h"
#include "tg_nn.h"

/* ---- the loader: batches made ahead by a thread of its own, from host memory alone. An epoch is an order of
 * n items; item k of a batch is written by fill. What does not fill a batch at the end is left out. */
typedef void (*LoaderFill)(const void *user, int64_t item, uint32_t random, void *x, void *y);

typedef struct Loader Loader;
/* x_size, y_size: bytes of an item. NULL: out of memory, or no thread. */
Loader *loader_new(int batch, size_t x_size, size_t y_size, LoaderFill fill, const void *user);
/* order and random (a word for each item) must stay until the epoch is over; begins at batch `first`. */
void loader_begin(Loader *l, const uint32_t *order, const uint32_t *random, int64_t n, int64_t first);
/* The next batch, valid until the next call; false: the epoch is over. */
bool loader_next(Loader *l, const void **x, const void **y);
void loader_free(Loader *l); /* NULL is fine */

/* ---- tasks */
typedef struct Task Task;

typedef struct TrainOptions {
  int64_t steps, epochs, batch, seed, threads, every, layers, width, context, sample;
  double lr, decay, temperature;
  const char *out, *checkpoint, *weights, *log, *svg, *device;
  bool resume, plot, json, eval, text, bf16;
} TrainOptions;

/* Data and model of a run. x, y: dims and bytes of one item. */
typedef struct TrainData {
  int64_t ntrain, ntest, nbytes;
  uint8_t *train, *test, *train_labels, *test_labels;
  int64_t x_dims[3], y_dims[1], x_numel, y_numel;
  int x_ndim, y_ndim, classes;
  TgDType x_dtype; /* y is i32 */
  uint8_t of_byte[256], letters[256];
  int64_t train_bytes, test_bytes, context; /* of text */
  double mean[3], std[3];
  bool shifts; /* pictures are moved and mirrored */
} TrainData;

struct Task {
  const char *name, *about;
  TrainOptions defaults; /* where an option is 0 */
  bool (*load)(const Task *t, TgContext *ctx, const char *folder, const TrainOptions *o, TrainData *d);
  LoaderFill fill, fill_test;
  void *(*model_new)(TgContext *ctx, const TrainData *d, const TrainOptions *o);
  TgModuleFn module;
  TgTensor *(*run)(const void *model, TgTensor *x); /* logits */
  bool is_text;
  const char *metric; /* "accuracy", or "loss" */
};

const Task *task_at(int i); /* NULL past the last */
const Task *task_find(const char *name);
void train_data_free(TrainData *d);
#endif
