/* train_pictures.h: pictures of a training: curves, a confusion matrix, and the filters of the first
 * layer. */
#ifndef TG_TRAIN_PICTURES_H
#define TG_TRAIN_PICTURES_H
#include "cli.h"

typedef struct TrainPictures {
  const char *title, *metric; /* the metric of the tests: "accuracy" or "loss" */
  CliCurve loss, tests;       /* loss: of each step; tests: of each epoch */
  int classes;                /* 0: no matrix */
  /* classes x classes: how many pictures of a class (row) were taken for each class (column). */
  const int64_t *confusion;
  int nfilters, channels, high, wide; /* of the first layer; nfilters 0: there are none */
  const double *filters;              /* nfilters x channels x high x wide */
} TrainPictures;

/* Prints the curves as Braille dots, and the matrix in numbers, for a terminal. */
void train_pictures_say(FILE *to, const TrainPictures *t, int columns);
/* Writes all of it as a picture. The ending of path decides the format: .png or .ppm, or .svg, which has only
 * the curves. Returns NULL if all is fine, otherwise the reason. train_pictures_refused checks the name
 * only. */
const char *train_pictures_refused(const char *path);
const char *train_pictures_write(const char *path, const TrainPictures *t);
#endif
