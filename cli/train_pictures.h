/* train_pictures.h: what a training looks like: curves, which classes are taken for which, what the first layer looks for. */
#ifndef TG_TRAIN_PICTURES_H
#define TG_TRAIN_PICTURES_H
#include "cli.h"

typedef struct TrainPictures {
  const char *title, *metric; /* "accuracy", "loss" of the tests */
  CliCurve loss, tests;       /* of each step; of each epoch */
  int classes;                /* 0: no matrix */
  const int64_t
      *confusion; /* classes x classes: of the pictures of a class (row), how many were taken for which */
  int nfilters, channels, high, wide; /* of the first layer; 0: none */
  const double *filters;              /* nfilters x channels x high x wide */
} TrainPictures;

/* Curves of Braille dots, the matrix in numbers; for a terminal. */
void train_pictures_say(FILE *to, const TrainPictures *t, int columns);
/* All of it as a picture, by the end of path's name: .png, .ppm; .svg has the curves alone. NULL: fine; else why not. */
const char *train_pictures_refused(const char *path); /* of its name alone; NULL: it is fine */
const char *train_pictures_write(const char *path, const TrainPictures *t);
#endif
