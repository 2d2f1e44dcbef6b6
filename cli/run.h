/* run.h: what the files of `tg run` share: the model and its run (run.c), its inputs (run_inputs.c), and what
 * is shown of its outputs (run_outputs.c). */
#ifndef TG_RUN_H
#define TG_RUN_H
#include "layers.h"
#include "llm.h"
#include "picture.h"

typedef struct RunOptions {
  LlmChoices llm; /* device, threads and seed hold for any model */
  CliTexts sizes;
  const char *mean, *std, *labels, *out, *capture, *bundle, *save_bundle, *boxes, *draw, *prompt;
  int64_t image, top, runs, rows, loop_limit;
  double score, overlap;
  bool bgr, bench, json, integers;
} RunOptions;

enum { MOST_IO = 64, MOST_VARIED = 16 };

/* A size that varies: of a program, or a free one of a model to which --size gives bounds. known: it is
 * bound, by --size or by the first input that has it. */
typedef struct RunVaried {
  const char *name;
  TgVariable *v;
  int64_t least, most;
  bool known;
} RunVaried;

typedef struct RunModel {
  const RunOptions *o;
  TgContext *ctx;
  TgOnnx *onnx;   /* NULL: program is used */
  TgJit *program; /* NULL: onnx is used */
  int nin, nout;
  TgOnnxValue in_about[MOST_IO], out_about[MOST_IO];
  const char *in_names[MOST_IO];
  RunVaried varied[MOST_VARIED];
  int nvaried;
  int64_t free_dims[MOST_IO]
                   [TG_MAX_RANK]; /* of a program's inputs: -1 where a size varies, named in free_names */
  const char *free_names[MOST_IO][TG_MAX_RANK];
  CliWait *wait;
  char not_captured[400];                /* the reason */
  TgTensor *in[MOST_IO], *copy[MOST_IO]; /* made with tg_keep */
  Picture picture;                       /* the first input that is one; rgb NULL: none is */
} RunModel;

/* A captured model, with its names of inputs, outputs and weights. */
typedef struct RunCapture {
  TgJit *jit;
  TgState *weights;
  const char *in_names[MOST_IO], *out_names[MOST_IO];
} RunCapture;

bool run_model_open(RunModel *m, const char *path);
void run_model_close(RunModel *m);
/* Runs the model twice more. The caller must call run_capture_end even if this fails. */
bool run_model_captured(RunModel *m, RunCapture *c);
void run_capture_end(RunModel *m, RunCapture *c);
bool run_failed(const char *what, const char *why); /* prints both; returns false */
bool run_sizes_known(RunModel *m);                  /* false: a --size is wrong, and this was printed */
/* Returns N of --size NAME=N, fallback if there is none, -1 if it is no size, which was printed. */
int64_t run_size_given(const RunModel *m, const char *name, int64_t fallback);
RunVaried *run_varied(RunModel *m, const char *name); /* NULL: this size does not vary */
bool run_size_bound(RunVaried *v, int64_t n);         /* false: n is out of bounds, and this was printed */

/* Sets each input from its argument, or to random values. */
bool run_inputs_set(RunModel *m, char **argument, int n);
/* Writes a shape as "(1, 3, 224, 224)". */
const char *run_shape_text(int ndim, const int64_t *dims, char room[300]);
/* Prints a line for each output, the likeliest classes, boxes; writes files. */
bool run_outputs_say(RunModel *m, TgTensor **out);
#endif
