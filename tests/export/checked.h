/* checked.h: programs of C that check themselves, for machines other than this one. In: captured functions,
 * what they were given and what came out. Out: files of C whose main returns 0 where each run has the same
 * bits (NaN for NaN), else the number of what differs: its model, its turn and its output. */
#ifndef EXPORT_CHECKED_H
#define EXPORT_CHECKED_H
#include "tg_io.h"
#include <stdio.h>

typedef struct Checked {
  const char *folder;
  FILE *main, *model; /* model: the file of the one that is being written */
  TgJit *jit;
  int models, turns;
  bool both;   /* the model is there twice: with weights in each byte order */
  bool failed; /* said on stdout */
} Checked;

bool checked_begin(Checked *k, const char *folder);
/* A model; the state is the one of this moment. .weights_apart: the weights are there in both byte orders,
 * and the wrong one must be refused. */
void checked_model(Checked *k, TgJit *jit, TgCOptions o);
/* One run more of the model: tensors that have been computed. */
void checked_turn(Checked *k, TgTensor *const *in, int nin, TgTensor *const *out, int nout);
void checked_model_end(Checked *k);
/* main.c calls all models. False: something could not be written, or was refused. */
bool checked_end(Checked *k);
/* folder is the current folder of `commands`, a line of a shell; false: its status is not 0. */
bool checked_run(const char *folder, const char *what, const char *commands);
#endif
