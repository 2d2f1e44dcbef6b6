/* run.h: what `tg run` is made of: the model and its run (run.c), its inputs (run_inputs.c), and what is
 * shown of its outputs (run_outputs.c). */
#ifndef TG_RUN_H
#define TG_RUN_H
#include "layers.h"
#include "llm.h"
#include "picture.h"

typedef struct RunOptions {
  LlmChoices llm; /* device, threads and seed are those of any model */
  CliTexts sizes;
  const char *mean, *std, *labels, *out, *capture, *bundle, *save_bundle, *boxes, *draw, *prompt;
  int64_t image, top, runs, rows, loop_limit;
  double score, overlap;
  bool bgr, bench, json, integers;
} RunOptions;

enum { MOST_IO = 64, MOST_VARIED = 16 };

/* A size that varies: of a program, or a free one of a model that --size gives bounds. known: it is bound, to what
 * --size says or the first input that has it. */
typedef struct RunVaried {
  const char *name;
  TgVariable *v;
  int64_t least, most;
  bool known;
} RunVaried;

typedef struct RunModel {
  const RunOptions *o;
  TgContext *ctx;
  TgOnnx *onnx;   /* or .. */
  TgJit *program; /* .. a captured one */
  int nin, nout;
  TgOnnxValue in_about[MOST_IO], out_about[MOST_IO];
  const char *in_names[MOST_IO];
  RunVaried varied[MOST_VARIED];
  int nvaried;
  int64_t free_dims[MOST_IO]
                   [TG_MAX_RANK]; /* of a program's inputs: -1 where one varies, with its name in .. */
  const char *free_names[MOST_IO][TG_MAX_RANK];
  CliWait *wait;
  char not_captured[400];                /* why */
  TgTensor *in[MOST_IO], *copy[MOST_IO]; /* kept */
  Picture picture;                       /* the first that is an input; rgb NULL: none is */
} RunModel;

/* A model, captured, with the names that it has for what it takes, gives and knows. */
typedef struct RunCapture {
  TgJit *jit;
  TgState *weights;
  const char *in_names[MOST_IO], *out_names[MOST_IO];
} RunCapture;

bool run_model_open(RunModel *m, const char *path);
void run_model_close(RunModel *m);
/* A model is run twice more; run_capture_end follows, whatever happened. */
bool run_model_captured(RunModel *m, RunCapture *c);
void run_capture_end(RunModel *m, RunCapture *c);
bool run_failed(const char *what, const char *why); /* says so; false */
/* --size NAME=N of the name; fallback: there is none. -1: it says no size, which was said. */
bool run_sizes_known(RunModel *m); /* else says which --size is none of the model's */
int64_t run_size_given(const RunModel *m, const char *name, int64_t fallback);
RunVaried *run_varied(RunModel *m, const char *name); /* NULL: that size is a number */
bool run_size_bound(RunVaried *v, int64_t n);         /* false: said */

/* Each input from its argument, or random. */
bool run_inputs_set(RunModel *m, char **argument, int n);
/* "(1, 3, 224, 224)" */
const char *run_shape_text(int ndim, const int64_t *dims, char room[300]);
/* A line for each output, the likeliest classes, boxes; files. */
bool run_outputs_say(RunModel *m, TgTensor **out);
#endif
