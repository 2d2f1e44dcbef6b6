/* dataset.c: datasets that are in memory. In: tensors, or pictures of bytes with labels. Out: a TgDataset
 * whose function writes one item: rows unchanged, or a picture as numbers, randomly augmented. That
 * function runs on the loader's threads, so everything it reads was copied to memory of the dataset's own. */
#include "io_private.h"
#include <math.h>
#include <stdlib.h>

void tg_dataset_end(TgDataset *d) {
  if (d && d->end) d->end(d->user);
  if (d) *d = (TgDataset){.size = sizeof *d};
}

/* ---- rows of tensors */
typedef struct Rows {
  TgContext *ctx;
  int n;
  unsigned char *at[TG_ITEM_TENSORS];
  size_t nbytes[TG_ITEM_TENSORS]; /* of a row */
} Rows;

static void rows_end(void *user) {
  Rows *r = user;
  for (int i = 0; i < r->n; i++)
    tg_free(r->ctx, r->at[i]);
  tg_free(r->ctx, r);
}

static TgStatus rows_item(void *user, int64_t item, uint64_t random, void *const *out) {
  const Rows *r = user;
  (void)random;
  for (int i = 0; i < r->n; i++)
    memcpy(out[i], r->at[i] + (size_t)item * r->nbytes[i], r->nbytes[i]);
  return TG_OK;
}

/* Copies the values of t to host memory. Returns NULL after an error, which is in the context. */
static void *values_of(TgContext *ctx, TgTensor *t) {
  size_t n = tg_nbytes(t);
  void *p = tg_alloc(ctx, n + 1);
  if (p && !tg_read(t, p, n)) return p;
  tg_free(ctx, p);
  return NULL;
}

static bool row_taken(TgContext *ctx, TgTensor *t, int i, Rows *r, TgDataset *d) {
  if (!t) return tg_error(ctx) ? false : ctx_fail(ctx, TG_ERR_VALUE, "dataset_tensors: tensor %d is NULL", i);
  if (tg_ndim(t) < 1 || (i && tg_dim(t, 0) != d->count))
    return ctx_fail(ctx, TG_ERR_SHAPE, "dataset_tensors: tensor %d, %s, has not the %lld rows of the first",
                    i, tg_describe(t), (long long)d->count);
  d->count = tg_dim(t, 0);
  d->tensor[i] = (TgItemTensor){.dtype = tg_dtype(t), .ndim = tg_ndim(t) - 1};
  memcpy(d->tensor[i].dims, tg_shape(t) + 1, (size_t)d->tensor[i].ndim * sizeof(int64_t));
  r->nbytes[i] = d->count ? tg_nbytes(t) / (size_t)d->count : 0;
  return (r->at[i] = values_of(ctx, t)) != NULL;
}

TgDataset tg_dataset_tensors(TgContext *ctx, TgTensor *const *t, int n) {
  TgDataset d = {.size = sizeof d, .ntensor = n, .item = rows_item, .end = rows_end},
            none = {.size = sizeof d};
  if (!ctx || tg_error(ctx)) return none;
  if (!t || n < 1 || n > TG_ITEM_TENSORS) {
    ctx_fail(ctx, TG_ERR_VALUE, "dataset_tensors: %d tensors, not 1 to %d", t ? n : 0, TG_ITEM_TENSORS);
    return none;
  }
  Rows *r = d.user = tg_alloc(ctx, sizeof *r);
  if (!r) return none;
  *r = (Rows){.ctx = ctx, .n = n};
  for (int i = 0; i < n; i++)
    if (!row_taken(ctx, t[i], i, r, &d)) {
      rows_end(r);
      return none;
    }
  return d;
}

/* ---- pictures */
typedef struct Pictures {
  TgContext *ctx;
  unsigned char *pixels;
  int32_t *labels; /* NULL: none */
  int64_t channels, height, width;
  float *scale, *less; /* of each channel: the result is v * scale - less, for v from 0 to 1 */
  TgImageOptions o;
} Pictures;

static void pictures_end(void *user) {
  Pictures *p = user;
  tg_free(p->ctx, p->pixels), tg_free(p->ctx, p->labels), tg_free(p->ctx, p->scale), tg_free(p->ctx, p->less);
  tg_free(p->ctx, p);
}

/* Pixel (x, y) of the new picture is read at (ax x + bx y + cx, ay x + by y + cy) of the old one. */
typedef struct Place {
  double ax, bx, cx, ay, by, cy;
  bool whole; /* that place is always the centre of a pixel */
} Place;

typedef struct Colours {
  double brightness, contrast, saturation;
} Colours;

typedef struct Box {
  int64_t x0, y0, x1, y1;
} Box;

static double chance(uint64_t *random) { return (double)(io_random(random) >> 11) * 0x1p-53; } /* [0, 1) */

static double between(uint64_t *random, double lo, double hi) { return lo + (hi - lo) * chance(random); }

/* Every choice draws the same number of words whatever the options are, so an option does not change what
 * another one does. */
static Place place_draw(const Pictures *p, uint64_t *random) {
  const TgImageOptions *o = &p->o;
  double mid_x = (double)(p->width - 1) / 2, mid_y = (double)(p->height - 1) / 2, pi = 3.14159265358979323846;
  bool flip_x = chance(random) < o->flip_x, flip_y = chance(random) < o->flip_y;
  double angle = between(random, -o->degrees, o->degrees) * pi / 180,
         zoom = pow(1 + o->zoom, between(random, -1, 1));
  uint64_t steps = 2 * (uint64_t)o->shift + 1;
  double dx = (double)((int64_t)(io_random(random) % steps) - o->shift),
         dy = (double)((int64_t)(io_random(random) % steps) - o->shift);
  double c = cos(angle) / zoom, s = sin(angle) / zoom, x = flip_x ? -1 : 1, y = flip_y ? -1 : 1;
  /* from the new pixel back to the old: moved, then turned and enlarged about the centre, then mirrored */
  Place at = {.ax = x * c, .bx = x * s, .ay = -y * s, .by = y * c, .whole = o->degrees == 0 && o->zoom == 0};
  at.cx = mid_x - at.ax * (mid_x + dx) - at.bx * (mid_y + dy);
  at.cy = mid_y - at.ay * (mid_x + dx) - at.by * (mid_y + dy);
  return at;
}

static double factor_draw(double amount, uint64_t *random) {
  return between(random, amount < 1 ? 1 - amount : 0, 1 + amount);
}

static Box box_draw(const Pictures *p, uint64_t *random) {
  bool erased = chance(random) < p->o.erase;
  double area = between(random, 0.02, 0.33) * (double)p->height * (double)p->width,
         side = exp(between(random, -1, 1) * log(3.3)), at_x = chance(random), at_y = chance(random);
  int64_t w = (int64_t)(sqrt(area / side) + .5), h = (int64_t)(sqrt(area * side) + .5);
  w = w < 1 ? 1 : w > p->width ? p->width : w;
  h = h < 1 ? 1 : h > p->height ? p->height : h;
  Box b = {(int64_t)(at_x * (double)(p->width - w + 1)), (int64_t)(at_y * (double)(p->height - h + 1)), 0, 0};
  b.x1 = b.x0 + w;
  b.y1 = b.y0 + h;
  return erased ? b : (Box){0};
}

static float pixel(const Pictures *p, const unsigned char *plane, int64_t x, int64_t y) {
  return (float)plane[y * p->width + x] / 255;
}

/* Interpolates between four pixels, of which only those inside the picture count. weight: the share of the
 * four that is inside. */
static float pixel_between(const Pictures *p, const unsigned char *plane, double x, double y, float *weight) {
  double x0 = floor(x), y0 = floor(y), sum = 0, all = 0;
  for (int i = 0; i < 4; i++) {
    double px = x0 + (i & 1), py = y0 + (i >> 1), w = (1 - fabs(x - px)) * (1 - fabs(y - py));
    bool inside = px >= 0 && py >= 0 && px < (double)p->width && py < (double)p->height;
    if (inside) {
      sum += w * pixel(p, plane, (int64_t)px, (int64_t)py);
      all += w;
    }
  }
  *weight = (float)all;
  return all > 0 ? (float)(sum / all) : 0;
}

/* The picture at its new places, with values 0 to 1. cover: for each pixel, the share of it that is inside
 * the picture. */
static void picture_moved(const Pictures *p, const unsigned char *from, const Place *at, float *x,
                          float *cover) {
  int64_t area = p->height * p->width;
  for (int64_t c = 0; c < p->channels; c++)
    for (int64_t k = 0; k < area; k++) {
      double i = (double)(k % p->width), j = (double)(k / p->width), px = at->ax * i + at->bx * j + at->cx,
             py = at->ay * i + at->by * j + at->cy;
      if (!at->whole) {
        x[c * area + k] = pixel_between(p, from + c * area, px, py, &cover[k]);
        continue;
      }
      int64_t u = (int64_t)floor(px + .5), v = (int64_t)floor(py + .5);
      cover[k] = u >= 0 && v >= 0 && u < p->width && v < p->height;
      x[c * area + k] = cover[k] != 0 ? pixel(p, from + c * area, u, v) : 0;
    }
}

static float cut(double v) { return v < 0 ? 0 : v > 1 ? 1 : (float)v; }

/* 3 channels: weighted as in ITU-R BT.601; otherwise their mean. */
static double grey_of(const Pictures *p, const float *x, int64_t k) {
  int64_t area = p->height * p->width;
  double sum = 0;
  if (p->channels == 3) return 0.299 * x[k] + 0.587 * x[area + k] + 0.114 * x[2 * area + k];
  for (int64_t c = 0; c < p->channels; c++)
    sum += x[c * area + k];
  return sum / (double)p->channels;
}

static void picture_coloured(const Pictures *p, const Colours *f, float *x, const float *cover) {
  int64_t area = p->height * p->width, all = area * p->channels;
  double mean = 0, covered = 0;
  for (int64_t i = 0; f->brightness != 1 && i < all; i++)
    x[i] = cut(x[i] * f->brightness);
  for (int64_t k = 0; f->contrast != 1 && k < area; k++) {
    mean += grey_of(p, x, k) * cover[k];
    covered += cover[k];
  }
  mean = covered > 0 ? mean / covered : 0;
  for (int64_t i = 0; f->contrast != 1 && i < all; i++)
    x[i] = cut(mean + (x[i] - mean) * f->contrast);
  for (int64_t k = 0; f->saturation != 1 && p->channels == 3 && k < area; k++) {
    double grey = grey_of(p, x, k);
    for (int64_t c = 0; c < 3; c++)
      x[c * area + k] = cut(grey + (x[c * area + k] - grey) * f->saturation);
  }
}

static TgStatus pictures_item(void *user, int64_t item, uint64_t random, void *const *out) {
  enum { MOST = 4096 };

  const Pictures *p = user;
  int64_t area = p->height * p->width;
  float *x = out[0], few[MOST], *cover = area <= MOST ? few : malloc((size_t)area * sizeof *cover);
  if (!cover) return TG_ERR_NOMEM;
  Place at = place_draw(p, &random);
  Colours f = {factor_draw(p->o.brightness, &random), factor_draw(p->o.contrast, &random), 1};
  f.saturation = factor_draw(p->o.saturation, &random);
  Box gone = box_draw(p, &random);
  picture_moved(p, p->pixels + item * p->channels * area, &at, x, cover);
  picture_coloured(p, &f, x, cover);
  for (int64_t c = 0; c < p->channels; c++)
    for (int64_t k = 0; k < area; k++) {
      int64_t i = k % p->width, j = k / p->width;
      bool erased = i >= gone.x0 && i < gone.x1 && j >= gone.y0 && j < gone.y1;
      float *v = &x[c * area + k];
      *v = erased ? 0 : (*v * p->scale[c] - p->less[c]) * cover[k];
    }
  if (cover != few) free(cover);
  if (p->labels) *(int32_t *)out[1] = p->labels[item];
  return TG_OK;
}

static bool image_options_fine(TgContext *ctx, const TgImageOptions *o, int64_t channels) {
  const struct {
    const char *name;
    double value, most;
  } amounts[] = {
      {"flip_x", o->flip_x, 1},           {"flip_y", o->flip_y, 1},       {"erase", o->erase, 1},
      {"degrees", o->degrees, 1e6},       {"zoom", o->zoom, 1e6},         {"shift", (double)o->shift, 1e6},
      {"brightness", o->brightness, 1e6}, {"contrast", o->contrast, 1e6}, {"saturation", o->saturation, 1e6}};

  for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
    if (!(amounts[i].value >= 0 && amounts[i].value <= amounts[i].most))
      return ctx_fail(ctx, TG_ERR_VALUE, "dataset_images: .%s is %g, not 0 to %g", amounts[i].name,
                      amounts[i].value, amounts[i].most);
  for (int64_t c = 0; o->std && c < channels; c++)
    if (o->std[c] == 0 || !isfinite(o->std[c]))
      return ctx_fail(ctx, TG_ERR_VALUE, "dataset_images: .std of channel %lld is %g", (long long)c,
                      o->std[c]);
  return true;
}

static bool pictures_fine(TgContext *ctx, const TgTensor *x, TgTensor *y) {
  if (tg_dtype(x) != TG_U8 || (y && (tg_dtype_is_float(tg_dtype(y)) || tg_dtype(y) == TG_BOOL)))
    return ctx_fail(ctx, TG_ERR_DTYPE, "dataset_images: %s %s",
                    tg_dtype(x) != TG_U8 ? "pictures, not of u8:" : "labels, not integers:",
                    tg_describe(tg_dtype(x) != TG_U8 ? x : y));
  if (tg_ndim(x) != 4)
    return ctx_fail(ctx, TG_ERR_SHAPE, "dataset_images: pictures, not (count, channels, height, width): %s",
                    tg_describe(x));
  if (y && (tg_ndim(y) != 1 || tg_dim(y, 0) != tg_dim(x, 0)))
    return ctx_fail(ctx, TG_ERR_SHAPE, "dataset_images: labels, not (%lld): %s", (long long)tg_dim(x, 0),
                    tg_describe(y));
  return true;
}

static bool pictures_taken(Pictures *p, TgTensor *x, TgTensor *y) {
  TgContext *ctx = p->ctx;
  size_t nbytes = ((size_t)p->channels + 1) * sizeof *p->scale;
  p->scale = tg_alloc(ctx, nbytes);
  p->less = tg_alloc(ctx, nbytes);
  if (!p->scale || !p->less) return false;
  for (int64_t c = 0; c < p->channels; c++) {
    double std = p->o.std ? p->o.std[c] : 1;
    p->scale[c] = (float)(1 / std);
    p->less[c] = (float)((p->o.mean ? p->o.mean[c] : 0) / std);
  }
  p->pixels = values_of(ctx, x);
  TG_SCOPE(ctx) {
    if (p->pixels && y) p->labels = values_of(ctx, tg_cast(y, TG_I32));
  }
  return p->pixels && (p->labels || !y);
}

TgDataset tg_dataset_images_opt(TgTensor *x, TgTensor *y, const TgImageOptions *given) {
  TgDataset d = {.size = sizeof d, .ntensor = y ? 2 : 1, .item = pictures_item, .end = pictures_end},
            none = {.size = sizeof d};
  TgContext *ctx = x ? tg_context(x) : NULL;
  TgImageOptions o;
  if (!ctx || tg_options_read(ctx, "dataset_images", "TgImageOptions", &o, sizeof o, given) ||
      tg_error(ctx) || !pictures_fine(ctx, x, y) || !image_options_fine(ctx, &o, tg_dim(x, 1)))
    return none;
  Pictures *p = d.user = tg_alloc(ctx, sizeof *p);
  if (!p) return none;
  *p =
      (Pictures){.ctx = ctx, .channels = tg_dim(x, 1), .height = tg_dim(x, 2), .width = tg_dim(x, 3), .o = o};
  d.count = tg_dim(x, 0);
  d.tensor[0] = (TgItemTensor){TG_F32, 3, {p->channels, p->height, p->width}};
  d.tensor[1] = (TgItemTensor){.dtype = TG_I32};
  if (pictures_taken(p, x, y)) {
    p->o.mean = p->o.std = NULL; /* they point to the caller's memory */
    return d;
  }
  pictures_end(p);
  return none;
}
