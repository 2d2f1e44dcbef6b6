/* boxes.c: decodes the boxes that a detector found. In: its outputs, in one of a table of formats. Out:
 * corners, class and score of each box, without those that a better box of the class overlaps; frames drawn
 * into a picture. */
#include "boxes.h"
#include "draw.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Decoding {
  const BoxValues *v;
  int n;
  double wide, high, score;
  Boxes *out;
} Decoding;

/* Appends a box whose score is high enough. Returns false if out of memory. */
static bool put(const Decoding *d, Box b) {
  Boxes *o = d->out;
  if (!(b.score >= d->score) || !isfinite(b.x0 + b.y0 + b.x1 + b.y1)) return true;
  if (o->n == o->room) {
    int room = o->room ? 2 * o->room : 64;
    Box *at = realloc(o->at, (size_t)room * sizeof *at);
    if (!at) return false;
    o->at = at;
    o->room = room;
  }
  o->at[o->n++] = b;
  return true;
}

static Box of_centre(double x, double y, double w, double h) {
  return (Box){x - w / 2, y - h / 2, x + w / 2, y + h / 2, 0, 0};
}

static int class_of(double v) { return v >= 0 && v < 1e9 ? (int)v : -1; }

/* Returns the index of the largest of n scores that lie `step` elements apart. */
static int best_of(const double *at, int64_t n, int64_t step) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (at[i * step] > at[best * step]) best = i;
  return (int)best;
}

/* ---- the formats */
/* Returns the output (boxes, 4), preferably one whose name contains "box". */
static const BoxValues *boxes_output(const Decoding *d) {
  for (int i = 0; i < d->n; i++)
    if (strstr(d->v[i].name, "box") && d->v[i].ndim == 2 && d->v[i].dims[1] == 4) return &d->v[i];
  for (int i = 0; i < d->n; i++)
    if (d->v[i].ndim == 2 && d->v[i].dims[1] == 4) return &d->v[i];
  return NULL;
}

/* Returns the output of scores, (boxes, classes), for the output of boxes. */
static const BoxValues *scores_beside(const Decoding *d, const BoxValues *boxes) {
  for (int i = 0; i < d->n; i++)
    if (&d->v[i] != boxes && d->v[i].ndim == 2 && d->v[i].dims[0] == boxes->dims[0]) return &d->v[i];
  return NULL;
}

static const BoxValues *named(const Decoding *d, const char *part) {
  for (int i = 0; i < d->n; i++)
    if (strstr(d->v[i].name, part)) return &d->v[i];
  return NULL;
}

static bool is_ssd(const Decoding *d) {
  const BoxValues *boxes = d->n == 2 ? boxes_output(d) : NULL, *s = boxes ? scores_beside(d, boxes) : NULL;
  return s && s->dims[1] >= 2;
}

static bool ssd(const Decoding *d) {
  const BoxValues *boxes = boxes_output(d), *scores = scores_beside(d, boxes);
  for (int64_t i = 0, classes = scores->dims[1]; i < boxes->dims[0]; i++) {
    const double *b = boxes->at + 4 * i, *s = scores->at + classes * i;
    int class = best_of(s + 1, classes - 1, 1);
    if (!put(d, (Box){b[0], b[1], b[2], b[3], s[1 + class], class})) return false;
  }
  return true;
}

static bool is_detr(const Decoding *d) { return is_ssd(d) && named(d, "logits"); }

static bool detr(const Decoding *d) {
  const BoxValues *boxes = boxes_output(d), *logits = scores_beside(d, boxes);
  for (int64_t i = 0, classes = logits->dims[1]; i < boxes->dims[0]; i++) {
    const double *b = boxes->at + 4 * i, *s = logits->at + classes * i;
    int class = best_of(s, classes - 1, 1);
    double sum = 0;
    for (int64_t c = 0; c < classes; c++)
      sum += exp(s[c] - s[class]);
    Box box = of_centre(b[0], b[1], b[2], b[3]);
    box.score = 1 / sum;
    box.class = class;
    if (!put(d, box)) return false;
  }
  return true;
}

static bool is_tf(const Decoding *d) {
  const BoxValues *boxes = named(d, "detection_boxes"), *s = named(d, "detection_scores"),
                  *c = named(d, "detection_classes");
  return boxes && s && c && boxes->ndim == 2 && boxes->dims[1] == 4 && s->ndim == 1 && c->ndim == 1 &&
         s->dims[0] == boxes->dims[0] && c->dims[0] == boxes->dims[0];
}

static bool tf(const Decoding *d) {
  const BoxValues *boxes = named(d, "detection_boxes"), *s = named(d, "detection_scores"),
                  *c = named(d, "detection_classes");
  for (int64_t i = 0; i < boxes->dims[0]; i++) {
    const double *b = boxes->at + 4 * i;
    if (!put(d, (Box){b[1], b[0], b[3], b[2], s->at[i], class_of(c->at[i])})) return false;
  }
  return true;
}

static bool is_fastestdet(const Decoding *d) { return d->n == 1 && d->v->ndim == 3 && d->v->dims[0] > 5; }

static bool fastestdet(const Decoding *d) {
  int64_t classes = d->v->dims[0] - 5, rows = d->v->dims[1], columns = d->v->dims[2], cells = rows * columns;
  for (int64_t i = 0; i < cells; i++) {
    const double *c = d->v->at + i;
    int class = best_of(c + 5 * cells, classes, cells);
    Box b = of_centre(((double)(i % columns) + tanh(c[cells])) / (double)columns,
                      ((double)(i / columns) + tanh(c[2 * cells])) / (double)rows,
                      1 / (1 + exp(-c[3 * cells])), 1 / (1 + exp(-c[4 * cells])));
    b.score = pow(c[0], 0.6) * pow(c[(5 + class) * cells], 0.4);
    b.class = class;
    if (!put(d, b)) return false;
  }
  return true;
}

static bool is_nms(const Decoding *d) { return d->n == 1 && d->v->ndim == 2 && d->v->dims[1] == 6; }

static bool nms(const Decoding *d) {
  for (int64_t i = 0; i < d->v->dims[0]; i++) {
    const double *b = d->v->at + 6 * i;
    if (!put(d, (Box){b[0] / d->wide, b[1] / d->high, b[2] / d->wide, b[3] / d->high, b[4], class_of(b[5])}))
      return false;
  }
  return true;
}

/* Each box: centre and size in pixels, an objectness if `first` is 5, then scores. next_box and next are the
 * strides from one box, and from one number of a box, to the next. */
static bool yolo(const Decoding *d, int64_t boxes, int64_t next_box, int64_t next, int first,
                 int64_t classes) {
  for (int64_t i = 0; i < boxes; i++) {
    const double *b = d->v->at + i * next_box;
    int class = best_of(b + first * next, classes, next);
    Box box = of_centre(b[0] / d->wide, b[next] / d->high, b[2 * next] / d->wide, b[3 * next] / d->high);
    box.score = b[(first + class) * next] * (first == 5 ? b[4 * next] : 1);
    box.class = class;
    if (!put(d, box)) return false;
  }
  return true;
}

static bool is_yolov5(const Decoding *d) {
  return d->n >= 1 && d->v->ndim == 2 && d->v->dims[1] > 5 && d->v->dims[0] >= d->v->dims[1];
}

static bool yolov5(const Decoding *d) {
  return yolo(d, d->v->dims[0], d->v->dims[1], 1, 5, d->v->dims[1] - 5);
}

static bool is_yolov8(const Decoding *d) { return d->n >= 1 && d->v->ndim == 2 && d->v->dims[0] > 4; }

static bool yolov8(const Decoding *d) {
  return yolo(d, d->v->dims[1], 1, d->v->dims[1], 4, d->v->dims[0] - 4);
}

/* The formats, in the order in which an output's shape is tried: the likelier first. */
static const struct {
  const char *name, *about;
  bool (*fits)(const Decoding *d), (*decode)(const Decoding *d);
} kinds[] = {
    {"tf", "detection_boxes (n, 4), detection_scores (n), detection_classes (n)", is_tf, tf},
    {"detr", "logits (n, classes + 1) and boxes (n, 4), centre and size from 0 to 1", is_detr, detr},
    {"ssd", "scores (n, 1 + classes), the background first, and boxes (n, 4), corners from 0 to 1", is_ssd,
     ssd},
    {"fastestdet", "(5 + classes, rows, columns)", is_fastestdet, fastestdet},
    {"nms", "(n, 6): corners in pixels, score, class", is_nms, nms},
    {"yolov5", "(n, 5 + classes): centre and size in pixels, objectness, scores", is_yolov5, yolov5},
    {"yolov8", "(4 + classes, n): centre and size in pixels, scores", is_yolov8, yolov8},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

bool boxes_kind(int i, const char **name, const char **about) {
  if (i < 0 || i >= KINDS) return false;
  *name = kinds[i].name;
  *about = kinds[i].about;
  return true;
}

/* ---- for each class, the boxes that no better box covers */
static int by_score(const void *a, const void *b) {
  double x = ((const Box *)a)->score, y = ((const Box *)b)->score;
  return (x < y) - (x > y);
}

static double area_of(const Box *b) { return fmax(0, b->x1 - b->x0) * fmax(0, b->y1 - b->y0); }

static double overlap_of(const Box *a, const Box *b) {
  Box both = {fmax(a->x0, b->x0), fmax(a->y0, b->y0), fmin(a->x1, b->x1), fmin(a->y1, b->y1), 0, 0};
  double common = area_of(&both), all = area_of(a) + area_of(b) - common;
  return all > 0 ? common / all : 0;
}

static void best_kept(Boxes *o, double overlap) {
  int kept = 0;
  if (o->n) qsort(o->at, (size_t)o->n, sizeof *o->at, by_score);
  for (int i = 0; i < o->n; i++) {
    bool covered = false;
    for (int k = 0; k < kept && !covered; k++)
      covered = o->at[k].class == o->at[i].class && overlap_of(&o->at[k], &o->at[i]) >= overlap;
    if (!covered) o->at[kept++] = o->at[i];
  }
  o->n = kept;
}

const char *boxes_of(const char *kind, const BoxValues *v, int n, double wide, double high, double score,
                     double overlap, Boxes *out) {
  Decoding d = {v, n, wide, high, score, out};
  for (int i = 0; i < KINDS; i++) {
    if (kind && strcmp(kind, kinds[i].name)) continue;
    if (!kinds[i].fits(&d)) {
      if (kind) return "the outputs' shapes are not those of this format";
      continue;
    }
    if (!kinds[i].decode(&d)) return "out of memory";
    best_kept(out, overlap);
    return NULL;
  }
  return kind ? "no such format" : "the outputs' shapes are those of no format of boxes that is known here";
}

/* ---- drawing */
/* Neighbouring class numbers get hues that are far apart. */
static Colour colour_of(int class) {
  double hue = fmod((class < 0 ? -class : class) * 0.618033988749895 + 0.1, 1) * 6;
  Colour c;
  for (int k = 0; k < 3; k++) {
    double v = fabs(fmod(hue + (k ? 6 - 2 * k : 0), 6) - 3) - 1;
    c.at[k] = (uint8_t)(255 * (v < 0 ? 0 : v > 1 ? 1 : v) + 0.5);
  }
  return c;
}

void boxes_draw(Picture *p, const Box *b, const char *text) {
  int side = p->width < p->height ? p->width : p->height, line = 1 + side / 200, size = 1 + side / 400;
  int x0 = (int)(fmax(fmin(b->x0, 1), 0) * p->width), x1 = (int)(fmax(fmin(b->x1, 1), 0) * p->width),
      y0 = (int)(fmax(fmin(b->y0, 1), 0) * p->height), y1 = (int)(fmax(fmin(b->y1, 1), 0) * p->height);
  Colour c = colour_of(b->class), ink = {{0, 0, 0}};
  if (299 * c.at[0] + 587 * c.at[1] + 114 * c.at[2] < 110000) ink = (Colour){{255, 255, 255}};
  draw_fill(p, x0, y0, x1, y0 + line, c), draw_fill(p, x0, y1 - line, x1, y1, c);
  draw_fill(p, x0, y0, x0 + line, y1, c), draw_fill(p, x1 - line, y0, x1, y1, c);
  int n = text ? (int)strlen(text) : 0, high = LETTER_H * size, top = y0 >= high ? y0 - high : y0;
  if (n) draw_fill(p, x0, top, x0 + (n * LETTER_W + 1) * size, top + high, c);
  if (n) draw_text(p, x0 + size, top + size, size, text, ink);
}
