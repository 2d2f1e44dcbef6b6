/* train.h: what the files of `tg train` share: tasks (train_tasks.c) and the run (train.c). */
#ifndef TG_TRAIN_H
#define TG_TRAIN_H
#include "cli.h"
#include "tg_io.h"
#include "tg_nn.h"

/* ---- tasks */
typedef struct Task Task;

typedef struct TrainOptions {
  int64_t steps, epochs, batch, seed, threads, every, layers, width, context, sample, devices;
  double lr, decay, temperature;
  const char *out, *checkpoint, *weights, *log, *plot, *device;
  bool resume, json, eval, text, bf16, split;
} TrainOptions;

/* The data of a run. An item is a pair x, y: f32 pictures (c, h, w) and i32 classes (), or i32 characters and
 * the characters that follow each of them. */
typedef struct TrainData {
  TgDataset train, test;
  int classes;
  uint8_t of_byte[256], letters[256]; /* of text: the number of each byte, and the byte of each number */
  int64_t context;
} TrainData;

struct Task {
  const char *name, *about;
  TrainOptions defaults; /* for options that are 0 */
  bool (*load)(const Task *t, TgContext *ctx, const char *folder, const TrainOptions *o, TrainData *d);
  void *(*model_new)(TgContext *ctx, const TrainData *d, const TrainOptions *o);
  TgModuleFn module;
  TgTensor *(*run)(const void *model, TgTensor *x); /* returns logits */
  bool is_text;
  const char *metric; /* "accuracy", or "loss" */
};

const Task *task_at(int i); /* NULL past the last task */
const Task *task_find(const char *name);
void train_data_free(TrainData *d);
/* Reads a number from a checkpoint's header. Returns false if there is none. */
bool train_number(const TgValue *meta, const char *key, double *out);
/* Returns whether --steps (0: not given) agrees with the checkpoint; if not, it is refused. */
bool train_steps_kept(const char *command, int64_t asked, int64_t steps);
/* Opens the file of --log, whose lines are flushed as they are written. goes_on: appends. path NULL: no
 * log. */
bool train_log_begin(const char *command, const char *path, bool goes_on, FILE **log);
/* Begins a line of --log, {"step":1,"loss":2.5, which the caller completes. A loss that is not finite is
 * written as null, because JSON has no such number. */
void train_log_step(FILE *log, int64_t step, double loss);
/* Closes the file of --log (NULL: none). Returns rc, or a failure if the file was not written completely. */
int train_log_end(const char *command, const char *path, FILE *log, int rc);
#endif
