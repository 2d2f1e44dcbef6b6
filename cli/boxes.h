/* boxes.h: reads a detector's outputs for `tg run`, as boxes with a class and a score. */
#ifndef TG_BOXES_H
#define TG_BOXES_H
#include "picture.h"
#include <stdbool.h>

/* Corners as fractions of the picture's width and height, 0 to 1. */
typedef struct Box {
  double x0, y0, x1, y1, score;
  int class;
} Box;

typedef struct Boxes {
  Box *at;
  int n, room;
} Boxes;

/* One output of the model: its values in row-major order. Leading axes of size 1 are left out. */
typedef struct BoxValues {
  const char *name;
  int ndim;
  const int64_t *dims;
  const double *at;
} BoxValues;

/* Decodes the n outputs v into *out. kind: a format's name; NULL: chosen by the outputs' shapes. wide and
 * high: of the model's input, in pixels. Keeps boxes with at least this score, the best first, unless a
 * better box of the same class overlaps them by `overlap` (area of the intersection over that of the union).
 * Returns NULL if all is fine, otherwise what is wrong. */
const char *boxes_of(const char *kind, const BoxValues *v, int n, double wide, double high, double score,
                     double overlap, Boxes *out);
/* Sets the name and a description of format i. Returns false past the last. */
bool boxes_kind(int i, const char **name, const char **about);
/* Draws a frame in the class's colour, and the text (NULL: none) above it. */
void boxes_draw(Picture *p, const Box *b, const char *text);
#endif
