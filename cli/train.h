/* train.h: what `tg train` is made of: tasks (train_tasks.c) and the run (train.c). */
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

/* Data of a run. An item is x and y: f32 pictures (c, h, w) and their classes i32 (), or i32 characters and
 * the ones after them. */
typedef struct TrainData {
  TgDataset train, test;
  int classes;
  uint8_t of_byte[256], letters[256]; /* of text: numbers of bytes, and back */
  int64_t context;
} TrainData;

struct Task {
  const char *name, *about;
  TrainOptions defaults; /* where an option is 0 */
  bool (*load)(const Task *t, TgContext *ctx, const char *folder, const TrainOptions *o, TrainData *d);
  void *(*model_new)(TgContext *ctx, const TrainData *d, const TrainOptions *o);
  TgModuleFn module;
  TgTensor *(*run)(const void *model, TgTensor *x); /* logits */
  bool is_text;
  const char *metric; /* "accuracy", or "loss" */
};

const Task *task_at(int i); /* NULL past the last */
const Task *task_find(const char *name);
void train_data_free(TrainData *d);
/* A number in what the header of a checkpoint says. */
bool train_number(const TgValue *meta, const char *key, double *out);
/* Whether --steps (0: not given) is what the checkpoint says; else it is refused. */
bool train_steps_kept(const char *command, int64_t asked, int64_t steps);
/* Opens the file of --log, whose lines are there as soon as they are written; path NULL: there is none. */
bool train_log_begin(const char *command, const char *path, bool goes_on, FILE **log);
/* {"step":1,"loss":2.5 of a line of --log, to be gone on with; null: the loss is no number that JSON has. */
void train_log_step(FILE *log, int64_t step, double loss);
/* Closes the file of --log (NULL: none). rc, or a failure where it was not written whole. */
int train_log_end(const char *command, const char *path, FILE *log, int rc);
#endif
