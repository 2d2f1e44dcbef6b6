/* boxes.h: what a detector's outputs say, for `tg run`: boxes with a class and a score. */
#ifndef TG_BOXES_H
#define TG_BOXES_H
#include "picture.h"
#include <stdbool.h>

/* Corners as shares of the picture, 0 to 1. */
typedef struct Box {
  double x0, y0, x1, y1, score;
  int class;
} Box;

typedef struct Boxes {
  Box *at;
  int n, room;
} Boxes;

/* An output: its values, row-major, without the axes of size 1 in front. */
typedef struct BoxValues {
  const char *name;
  int ndim;
  const int64_t *dims;
  const double *at;
} BoxValues;

/* kind: a format by its name, or NULL: by the outputs' shapes. wide, high: of the model's input, in pixels.
 * Boxes with at least that score, the best first, of each class those that overlap a better one by less than
 * `overlap` (area of both over area of either). NULL: fine; else what is wrong. */
const char *boxes_of(const char *kind, const BoxValues *v, int n, double wide, double high, double score,
                     double overlap, Boxes *out);
/* Format i and what its outputs are. false: past the last. */
bool boxes_kind(int i, const char **name, const char **about);
/* A frame in the class's colour, and its text (NULL: none) above it. */
void boxes_draw(Picture *p, const Box *b, const char *text);
#endif
