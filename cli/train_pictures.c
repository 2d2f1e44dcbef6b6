/* train_pictures.c: draws the curves, the confusion matrix and the filters of a training, on a terminal and
 * as a picture. */
#include "train_pictures.h"
#include "draw.h"
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SHOWN = 12, ROWS = 13 }; /* classes of a matrix that is printed; rows of a curve on a terminal */

/* ---- on a terminal */
static bool accuracy(const TrainPictures *t) { return !strcmp(t->metric, "accuracy"); }

static void matrix_say(FILE *to, const TrainPictures *t) {
  fprintf(to, "classes (rows) and what they were taken for\n%6s", "");
  for (int c = 0; c < t->classes; c++)
    fprintf(to, "%6d", c);
  for (int r = 0; r < t->classes; r++) {
    fprintf(to, "\n%6d", r);
    for (int c = 0; c < t->classes; c++) {
      int64_t n = t->confusion[r * t->classes + c];
      if (n)
        fprintf(to, "%6lld", (long long)n);
      else
        fprintf(to, "%6s", ".");
    }
  }
  fputc('\n', to);
}

void train_pictures_say(FILE *to, const TrainPictures *t, int columns) {
  CliCurve both[2] = {t->loss, t->tests};
  bool apart = accuracy(t); /* accuracy has an axis of its own */
  if (t->loss.n > 1) {
    fprintf(to, "%s\n", t->loss.name);
    cli_plot(to, both, apart || t->tests.n < 2 ? 1 : 2, columns, ROWS);
  }
  if (apart && t->tests.n > 1) {
    fprintf(to, "%s\n", t->tests.name);
    cli_plot(to, &t->tests, 1, columns, ROWS);
  }
  if (t->classes && t->classes <= MOST_SHOWN) matrix_say(to, t);
}

/* ---- as a picture */
enum { PANEL_W = 440, PANEL_H = 300, EDGE = 12, HEAD = 26, AXIS = 60 };

static const Colour ink = {{30, 34, 40}}, line = {{205, 210, 218}}, paper = {{255, 255, 255}};
static const Colour curve_colours[] = {{{31, 119, 180}}, {{214, 39, 40}}};

static void number_draw(Picture *p, int x, int y, double v) {
  char text[32];
  snprintf(text, sizeof text, "%.3g", v);
  draw_text(p, x, y, 1, text, ink);
}

static void curve_range(const CliCurve *c, double *lo, double *hi) {
  for (int i = 0; i < c->n; i++)
    if (isfinite(c->y[i])) {
      *lo = fmin(*lo, c->y[i]);
      *hi = fmax(*hi, c->y[i]);
    }
}

/* Draws curves in a panel whose upper left corner is (x, y). share: the values are shares, so the axis is 0
 * .. 1. */
static void curves_draw(Picture *p, int x, int y, const char *title, const CliCurve *const *c, int n,
                        bool share) {
  int left = x + AXIS, right = x + PANEL_W - EDGE, top = y + HEAD, bottom = y + PANEL_H - 2 * EDGE - LETTER_H;
  double lo = INFINITY, hi = -INFINITY;
  for (int k = 0; k < n; k++)
    curve_range(c[k], &lo, &hi);
  if (!(lo <= hi)) return;
  if (share) lo = 0, hi = 1;
  if (hi == lo) hi = lo + 1;
  draw_text(p, left, y + 6, 2, title, ink);
  double x0 = c[0]->n > 1 ? c[0]->x[0] : 0, x1 = c[0]->x[c[0]->n - 1] > x0 ? c[0]->x[c[0]->n - 1] : x0 + 1;
  for (int i = 0; i <= 4; i++) {
    int at = top + (bottom - top) * i / 4;
    draw_fill(p, left, at, right, at + 1, line);
    number_draw(p, x + 4, at - 3, hi + (lo - hi) * i / 4);
    number_draw(p, left + (right - left) * i / 4 - 9, bottom + 8, x0 + (x1 - x0) * i / 4);
  }
  for (int k = 0; k < n; k++) {
    int was_x = -1, was_y = 0;
    for (int i = 0; i < c[k]->n; i++) {
      if (!isfinite(c[k]->y[i])) continue;
      int at_x = left + (int)((right - left) * (c[k]->x[i] - x0) / (x1 - x0));
      int at_y = top + (int)((bottom - top) * (hi - c[k]->y[i]) / (hi - lo));
      draw_line(p, was_x < 0 ? at_x : was_x, was_x < 0 ? at_y : was_y, at_x, at_y, 2, curve_colours[k]);
      if (c[k]->n < 10) draw_fill(p, at_x - 3, at_y - 3, at_x + 4, at_y + 4, curve_colours[k]);
      was_x = at_x;
      was_y = at_y;
    }
  }
}

/* A cell is darker the larger its share of its row. The root of the share is drawn, so that rare errors can
 * be seen. */
static void matrix_draw(Picture *p, int x, int y, const TrainPictures *t) {
  int n = t->classes, cell = (PANEL_H - HEAD - 3 * EDGE) / n, left = x + AXIS, top = y + HEAD + EDGE;
  char text[16];
  if (cell < 1) return;
  draw_text(p, left, y + 6, 2, "confusion", ink);
  for (int r = 0; r < n; r++) {
    int64_t all = 0;
    for (int c = 0; c < n; c++)
      all += t->confusion[r * n + c];
    for (int c = 0; c < n; c++) {
      double share = all ? sqrt((double)t->confusion[r * n + c] / (double)all) : 0;
      Colour fill = {
          {(uint8_t)(255 - 224 * share), (uint8_t)(255 - 136 * share), (uint8_t)(255 - 75 * share)}};
      draw_fill(p, left + c * cell, top + r * cell, left + (c + 1) * cell - 1, top + (r + 1) * cell - 1,
                fill);
    }
    snprintf(text, sizeof text, "%d", r);
    if (cell >= LETTER_H) draw_text(p, left - 16, top + r * cell + cell / 2 - 3, 1, text, ink);
    if (cell >= 2 * LETTER_W) draw_text(p, left + r * cell + cell / 2 - 3, top - 10, 1, text, ink);
  }
}

/* Draws each filter over its own range: three channels in colour, any other number as their mean. */
static void filters_draw(Picture *p, int x, int y, const TrainPictures *t) {
  int per_row = (int)ceil(sqrt(t->nfilters * 1.4)), rows = (t->nfilters + per_row - 1) / per_row;
  int wide = (PANEL_W - AXIS - EDGE) / per_row, high = (PANEL_H - HEAD - 2 * EDGE) / rows;
  int pixel = (wide < high ? wide : high) / ((t->wide > t->high ? t->wide : t->high) + 1);
  if (pixel < 1) return;
  draw_text(p, x + AXIS, y + 6, 2, "filters", ink);
  size_t plane = (size_t)t->high * (size_t)t->wide, one = plane * (size_t)t->channels;
  for (int f = 0; f < t->nfilters; f++) {
    const double *w = t->filters + one * (size_t)f;
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < one; i++) {
      lo = fmin(lo, w[i]);
      hi = fmax(hi, w[i]);
    }
    int at_x = x + AXIS + f % per_row * pixel * (t->wide + 1),
        at_y = y + HEAD + EDGE + f / per_row * pixel * (t->high + 1);
    for (size_t i = 0; i < plane; i++) {
      Colour c;
      double mean = 0;
      for (int k = 0; k < t->channels; k++)
        mean += w[plane * (size_t)k + i] / t->channels;
      for (int k = 0; k < 3; k++) {
        double v = t->channels == 3 ? w[plane * (size_t)k + i] : mean;
        c.at[k] = (uint8_t)(hi > lo ? 255 * (v - lo) / (hi - lo) : 128);
      }
      int px = at_x + (int)(i % (size_t)t->wide) * pixel, py = at_y + (int)(i / (size_t)t->wide) * pixel;
      draw_fill(p, px, py, px + pixel, py + pixel, c);
    }
  }
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && !strcmp(text + n - m, end);
}

const char *train_pictures_refused(const char *path) {
  return ends_with(path, ".svg") ? NULL
         : picture_refused(path) ? "curves are written as .svg, .png or .ppm"
                                 : NULL;
}

const char *train_pictures_write(const char *path, const TrainPictures *t) {
  const CliCurve *both[] = {&t->loss, &t->tests}, *tests[] = {&t->tests};
  CliCurve copies[2] = {t->loss, t->tests};
  bool apart = accuracy(t), lower = t->classes || t->nfilters;
  int ncurves = apart || t->tests.n < 2 ? 1 : 2;
  if (ends_with(path, ".svg"))
    return cli_plot_svg(path, t->title, copies, ncurves) ? NULL
           : errno                                       ? strerror(errno)
                                                         : "cannot be written";
  int high = (lower ? 2 : 1) * PANEL_H, wide = (apart || lower ? 2 : 1) * PANEL_W;
  Picture p = {wide, high, malloc((size_t)wide * (size_t)high * 3)};
  if (!p.rgb) return "out of memory";
  draw_fill(&p, 0, 0, wide, high, paper);
  if (t->loss.n > 1) curves_draw(&p, 0, 0, apart ? "train loss" : "loss", both, ncurves, false);
  if (apart && t->tests.n > 0) curves_draw(&p, PANEL_W, 0, "accuracy", tests, 1, true);
  if (t->classes) matrix_draw(&p, 0, PANEL_H, t);
  if (t->nfilters) filters_draw(&p, PANEL_W, PANEL_H, t);
  const char *why = picture_write(path, &p);
  free(p.rgb);
  return why;
}
