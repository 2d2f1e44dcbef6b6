/* picture.c: prepares a picture for a vision tower. In: RGB bytes of any size. Out: a square of the model's
 * size, normalised, and the ids that stand for the picture. A picture is resized as the models' own
 * processors do it (Pillow, torchvision with antialiasing): one axis after the other. Each pixel is a
 * weighted sum of the pixels that the filter reaches, rounded to a byte after each axis. The reach grows with
 * the factor by which the picture shrinks. Weights are integers of 22 bits, as in Pillow, so that ties are
 * rounded to the same bytes. */
#include "vision_private.h"
#include <math.h>

enum { MOST_TAPS = 1 << 20, WEIGHT_BITS = 22 };

/* ---- filters */
static double cubic(double x) {
  const double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static double sinc(double x) {
  const double pi = 3.14159265358979323846;
  return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

static double weight_of(PictureFilter f, double x) {
  x = fabs(x);
  if (f == FILTER_BICUBIC) return cubic(x);
  if (f == FILTER_LANCZOS) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  return x < 1 ? 1 - x : 0;
}

static double reach_of(PictureFilter f) { return f == FILTER_BICUBIC ? 2 : f == FILTER_LANCZOS ? 3 : 1; }

/* The pixels first .. first + n - 1 that contribute to pixel `at` of the new axis, and their weights. */
typedef struct Taps {
  int64_t first, n;
  double *exact;
  int64_t *weight;
} Taps;

static void taps_find(Taps *t, PictureFilter f, int64_t at, int64_t from, int64_t to) {
  double scale = (double)from / (double)to, stretch = scale > 1 ? scale : 1;
  double centre = ((double)at + 0.5) * scale, reach = reach_of(f) * stretch, sum = 0;
  int64_t first = (int64_t)(centre - reach + 0.5), end = (int64_t)(centre + reach + 0.5);
  t->first = first < 0 ? 0 : first;
  t->n = (end > from ? from : end) - t->first;
  for (int64_t i = 0; i < t->n; i++)
    sum += t->exact[i] = weight_of(f, ((double)(t->first + i) - centre + 0.5) / stretch);
  for (int64_t i = 0; i < t->n; i++)
    t->weight[i] = llround(t->exact[i] / sum * (1 << WEIGHT_BITS));
}

static uint8_t byte_of(int64_t v) {
  v = (v + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS;
  return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

/* Resizes an axis of `from` pixels, each `inner` bytes, to one of `to` pixels; there are `outer` such
 * axes. */
static bool axis_resize(TgContext *ctx, PictureFilter f, const uint8_t *in, int64_t outer, int64_t from,
                        int64_t inner, int64_t to, uint8_t *out) {
  double reach = reach_of(f) * (from > to ? (double)from / (double)to : 1);
  if (reach > MOST_TAPS) return llm_fail(ctx, TG_ERR_LIMIT, "picture: a side of %lld", (long long)from);
  size_t most = 2 * (size_t)reach + 4;
  Taps t = {.exact = tg_alloc(ctx, most * sizeof *t.exact), .weight = tg_alloc(ctx, most * sizeof *t.weight)};
  bool ok = t.exact && t.weight;
  for (int64_t at = 0; ok && at < to; at++) {
    taps_find(&t, f, at, from, to);
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < inner; i++) {
        const uint8_t *p = in + (o * from + t.first) * inner + i;
        int64_t sum = 0;
        for (int64_t k = 0; k < t.n; k++)
          sum += t.weight[k] * p[k * inner];
        out[(o * to + at) * inner + i] = byte_of(sum);
      }
  }
  tg_free(ctx, t.exact), tg_free(ctx, t.weight);
  return ok;
}

/* First the width is resized, then the height. */
bool picture_resized(TgContext *ctx, PictureFilter f, const uint8_t *rgb, int64_t height, int64_t width,
                     int64_t to_height, int64_t to_width, uint8_t *out) {
  if (width == to_width && height == to_height) {
    memcpy(out, rgb, (size_t)(height * width * 3));
    return true;
  }
  uint8_t *between = tg_alloc(ctx, (size_t)(height * to_width * 3));
  bool ok = between && axis_resize(ctx, f, rgb, height, width, 3, to_width, between) &&
            axis_resize(ctx, f, between, 1, height, to_width * 3, to_height, out);
  tg_free(ctx, between);
  return ok;
}

/* The picture in the middle of a square of this colour, to be freed; NULL: out of memory. */
static uint8_t *squared(TgContext *ctx, const uint8_t *rgb, int64_t height, int64_t width,
                        const float colour[3]) {
  int64_t side = height > width ? height : width, top = (side - height) / 2, left = (side - width) / 2;
  uint8_t *all = tg_alloc(ctx, (size_t)(side * side * 3));
  for (int64_t i = 0; all && i < side * side * 3; i++)
    all[i] = (uint8_t)(colour[i % 3] * 255);
  for (int64_t y = 0; all && y < height; y++)
    memcpy(all + ((top + y) * side + left) * 3, rgb + y * width * 3, (size_t)(width * 3));
  return all;
}

bool picture_fit(const TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, uint8_t *out) {
  int64_t side = v->k.image;
  if (!v->kind->padded || height == width)
    return picture_resized(v->ctx, v->kind->filter, rgb, height, width, side, side, out);
  int64_t longest = height > width ? height : width;
  uint8_t *all = squared(v->ctx, rgb, height, width, v->k.mean);
  bool ok = all && picture_resized(v->ctx, v->kind->filter, all, longest, longest, side, side, out);
  tg_free(v->ctx, all);
  return ok;
}

void picture_normalise(const TgVision *v, const uint8_t *fit, float *out) {
  int64_t n = v->k.image * v->k.image;
  for (int c = 0; c < 3; c++)
    for (int64_t i = 0; i < n; i++)
      out[c * n + i] = ((float)fit[3 * i + c] / 255 - v->k.mean[c]) / v->k.std[c];
}

/* ---- ids. Two pictures must not get the same ids, even if somebody tries to find such pictures. So they
 * come from BLAKE2s (RFC 7693) with 256 bits. */
typedef struct Blake {
  uint32_t h[8];
  uint8_t block[64];
  size_t n;
  uint64_t total;
} Blake;

static const uint32_t blake_begin[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static const uint8_t blake_order[10][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                            {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                            {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                            {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                            {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                            {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                            {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                            {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                            {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                            {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint32_t turned(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void blake_mix(uint32_t v[16], int a, int b, int c, int d, uint32_t x, uint32_t y) {
  v[a] += v[b] + x;
  v[d] = turned(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = turned(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = turned(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = turned(v[b] ^ v[c], 7);
}

static void blake_block(Blake *s, bool last) {
  uint32_t w[16], v[16];
  s->total += s->n;
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)s->block[4 * i] | (uint32_t)s->block[4 * i + 1] << 8 |
           (uint32_t)s->block[4 * i + 2] << 16 | (uint32_t)s->block[4 * i + 3] << 24;
  for (int i = 0; i < 8; i++) {
    v[i] = s->h[i];
    v[i + 8] = blake_begin[i];
  }
  v[12] ^= (uint32_t)s->total;
  v[13] ^= (uint32_t)(s->total >> 32);
  if (last) v[14] = ~v[14];
  for (int r = 0; r < 10; r++) {
    const uint8_t *o = blake_order[r];
    for (int i = 0; i < 4; i++) /* columns */
      blake_mix(v, i, i + 4, i + 8, i + 12, w[o[2 * i]], w[o[2 * i + 1]]);
    for (int i = 0; i < 4; i++) /* diagonals */
      blake_mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, w[o[8 + 2 * i]], w[o[9 + 2 * i]]);
  }
  for (int i = 0; i < 8; i++)
    s->h[i] ^= v[i] ^ v[i + 8];
  s->n = 0;
}

static void blake_put(Blake *s, const void *p, size_t n) {
  const uint8_t *at = p;
  while (n) {
    if (s->n == sizeof s->block) blake_block(s, false);
    size_t part = sizeof s->block - s->n < n ? sizeof s->block - s->n : n;
    memcpy(s->block + s->n, at, part);
    s->n += part;
    at += part;
    n -= part;
  }
}

static void blake_end(Blake *s) {
  memset(s->block + s->n, 0, sizeof s->block - s->n);
  blake_block(s, true);
}

PictureHash picture_hash(const uint8_t *rgb, int64_t height, int64_t width, int64_t rows, int64_t cols) {
  Blake s = {.n = 0};
  PictureHash hash;
  memcpy(s.h, blake_begin, sizeof s.h);
  s.h[0] ^= 0x01010000 ^ 32; /* a hash of 32 bytes, without a key */
  const int64_t size[] = {height, width, rows, cols};
  blake_put(&s, size, sizeof size);
  blake_put(&s, rgb, (size_t)(height * width * 3));
  blake_end(&s);
  memcpy(hash.h, s.h, sizeof hash.h);
  return hash;
}

void picture_ids(const PictureHash *hash, int64_t first, int32_t *ids, int64_t n) {
  for (int64_t i = first; i < first + n; i++) { /* 8 ids have all bits of the hash; later ones differ by i */
    uint32_t mixed = hash->h[i % 8] ^ (uint32_t)(i / 8) * 0x9e3779b1u;
    ids[i - first] = -1 - (int32_t)(mixed >> 1);
  }
}
