/* ggml_encode.c: values as ggml's blocks. In: floats. Out: the bytes that ggml.c decodes. Scales are
 * searched for: several are tried that put the largest value near the end of the range, each is refitted
 * by least squares, and the one with the smallest squared error is taken. Values that were decoded from
 * blocks with one scale are therefore encoded to the same blocks again. */
#include "io_private.h"
#include "ggml_types.h"
#include <math.h>

/* ---- numbers of 16 bits, rounded to nearest, ties to even */
static uint16_t f16_of(float x) {
  uint32_t b;
  memcpy(&b, &x, 4);
  uint32_t sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
  if (a >= 0x7f800000) return (uint16_t)(sign | (a > 0x7f800000 ? 0x7e00 : 0x7c00));
  if (a >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (a < 0x38800000) { /* below 2^-14: multiples of 2^-24 */
    float f;
    memcpy(&f, &a, 4);
    return (uint16_t)(sign | (uint32_t)nearbyintf(f * 0x1p24f));
  }
  return (uint16_t)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
}

static float f16_to(uint16_t h) {
  int exponent = h >> 10 & 31, mantissa = h & 1023;
  float f = exponent ? ldexpf((float)(1024 + mantissa), exponent - 25) : ldexpf((float)mantissa, -24);
  return h & 0x8000 ? -f : f;
}

static uint16_t bf16_of(float x) {
  uint32_t b;
  memcpy(&b, &x, 4);
  if ((b & 0x7fffffff) > 0x7f800000) return (uint16_t)(b >> 16 | 64);
  return (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

static void put16(uint8_t *to, uint16_t v) {
  to[0] = (uint8_t)v;
  to[1] = (uint8_t)(v >> 8);
}

/* Stores v as f16 and returns the stored value as a float. */
static float put_f16(uint8_t *to, float v) {
  uint16_t h = f16_of(v);
  put16(to, h);
  return f16_to(h);
}

/* ---- fits */
static int rounded(float v, int lo, int hi) {
  float r = nearbyintf(v);
  return r < (float)lo ? lo : r > (float)hi ? hi : (int)r;
}

/* Approximates n values x by d q, lo <= q <= hi (lo < 0), and returns d. 0: all values are 0. */
static float fit_scale(const float *x, int n, int lo, int hi) {
  float most = 0;
  for (int i = 0; i < n; i++)
    if (fabsf(x[i]) > fabsf(most)) most = x[i];
  if (most == 0) return 0;
  double best = -1;
  float scale = 0;
  for (int k = -10; k <= 10; k++) {
    /* the largest value is mapped to the longer end of the range */
    float inverse = ((float)lo + 0.1f * (float)k) / most;
    double xq = 0, qq = 0;
    for (int i = 0; i < n; i++) {
      double q = rounded(x[i] * inverse, lo, hi);
      xq += q * (double)x[i];
      qq += q * q;
    }
    if (qq == 0 || !(xq * xq / qq > best * (1 + 1e-9))) continue;
    best = xq * xq / qq;
    scale = (float)(xq / qq);
  }
  return scale;
}

typedef struct Line {
  float d, m; /* x is about d q + m */
} Line;

static double line_error(const float *x, int n, int most, Line l, double sums[4]) {
  double error = 0;
  memset(sums, 0, 4 * sizeof *sums);
  for (int i = 0; i < n; i++) {
    double q = l.d != 0 ? rounded((x[i] - l.m) / l.d, 0, most) : 0,
           e = (double)l.d * q + (double)l.m - (double)x[i];
    error += e * e;
    sums[0] += q;
    sums[1] += q * q;
    sums[2] += (double)x[i];
    sums[3] += q * (double)x[i];
  }
  return error;
}

/* Approximates n values x by d q + m, 0 <= q <= most. below: m may not be above 0. */
static Line fit_line(const float *x, int n, int most, bool below) {
  float lo = x[0], hi = x[0];
  for (int i = 1; i < n; i++)
    lo = fminf(lo, x[i]), hi = fmaxf(hi, x[i]);
  if (below) lo = fminf(lo, 0);
  Line best = {(hi - lo) / (float)most, lo};
  if (hi <= lo) return (Line){0, lo};
  double sums[4], least = line_error(x, n, most, best, sums);
  for (int k = -10; k <= 10; k++) {
    Line l = {(hi - lo) / ((float)most + 0.15f * (float)k), lo};
    for (int turn = 0; turn < 4; turn++) {
      double error = line_error(x, n, most, l, sums), under = n * sums[1] - sums[0] * sums[0];
      if (error < least) least = error, best = l;
      if (under <= 0) break;
      l.d = (float)((n * sums[3] - sums[0] * sums[2]) / under);
      l.m = (float)((sums[2] - (double)l.d * sums[0]) / n);
      if (below && l.m > 0) l.m = 0, l.d = (float)(sums[3] / sums[1]);
    }
    double error = line_error(x, n, most, l, sums);
    if (l.d > 0 && error < least) least = error, best = l;
  }
  return best;
}

/* ---- blocks of 32 */
static void q8_0(const float *x, uint8_t *to) {
  float most = 0;
  for (int i = 0; i < 32; i++)
    most = fmaxf(most, fabsf(x[i]));
  put_f16(to, most / 127);
  for (int i = 0; i < 32; i++)
    to[2 + i] = (uint8_t)(int8_t)(most > 0 ? rounded(x[i] * (127 / most), -127, 127) : 0);
}

/* 4-bit numbers q: the first half of a block is in the low halves of 16 bytes, the second in the high
 * halves */
static void put_nibbles(const uint8_t *q, uint8_t *to) {
  for (int i = 0; i < 16; i++)
    to[i] = (uint8_t)((q[i] & 15) | (q[i + 16] & 15) << 4);
}

static void put_fifth(const uint8_t *q, uint8_t *to) {
  for (int i = 0; i < 32; i++)
    to[i / 8] = (uint8_t)((i % 8 ? to[i / 8] : 0) | (q[i] >> 4) << i % 8);
}

static void symmetric32(const float *x, uint8_t *to, int half, uint8_t q[32]) {
  float d = put_f16(to, fit_scale(x, 32, -half, half - 1));
  for (int i = 0; i < 32; i++)
    q[i] = (uint8_t)((d != 0 ? rounded(x[i] / d, -half, half - 1) : 0) + half);
}

static void affine32(const float *x, uint8_t *to, int most, uint8_t q[32]) {
  Line l = fit_line(x, 32, most, false);
  l.d = put_f16(to, l.d);
  l.m = put_f16(to + 2, l.m);
  for (int i = 0; i < 32; i++)
    q[i] = (uint8_t)(l.d != 0 ? rounded((x[i] - l.m) / l.d, 0, most) : 0);
}

static void q4_0(const float *x, uint8_t *to) {
  uint8_t q[32];
  symmetric32(x, to, 8, q);
  put_nibbles(q, to + 2);
}

static void q4_1(const float *x, uint8_t *to) {
  uint8_t q[32];
  affine32(x, to, 15, q);
  put_nibbles(q, to + 4);
}

static void q5_0(const float *x, uint8_t *to) {
  uint8_t q[32];
  symmetric32(x, to, 16, q);
  put_fifth(q, to + 2);
  put_nibbles(q, to + 6);
}

static void q5_1(const float *x, uint8_t *to) {
  uint8_t q[32];
  affine32(x, to, 31, q);
  put_fifth(q, to + 4);
  put_nibbles(q, to + 8);
}

/* ---- blocks of 256: each piece of them has a scale of few bits, in units of the block's scale */
/* Near the scale and minimum that were found, searches for the pair of whole numbers with the least error. */
static void near_line(const float *x, int piece, int most, int unit, const float by[2], Line l,
                      uint8_t *scale, uint8_t *least) {
  int s = by[0] > 0 ? rounded(l.d / by[0], 0, unit) : 0, m = by[1] > 0 ? rounded(-l.m / by[1], 0, unit) : 0;
  double best = INFINITY, sums[4];
  for (int i = s - 1; i <= s + 1; i++)
    for (int k = m - 2; k <= m + 2; k++) {
      if (i < 0 || i > unit || k < 0 || k > unit) continue;
      double e = line_error(x, piece, most, (Line){by[0] * (float)i, -by[1] * (float)k}, sums);
      if (e >= best) continue;
      best = e;
      *scale = (uint8_t)i;
      *least = (uint8_t)k;
    }
}

/* Encodes the pieces as lines: their scales and minima, and q with them. most: the largest q; unit: the
 * largest scale. */
static void lines256(const float *x, int piece, int most, int unit, uint8_t *d, uint8_t *dmin, uint8_t *scale,
                     uint8_t *least, uint8_t q[256]) {
  Line l[16];
  int n = 256 / piece;
  float scales = 0, minima = 0;
  for (int i = 0; i < n; i++) {
    l[i] = fit_line(x + i * piece, piece, most, true);
    scales = fmaxf(scales, l[i].d);
    minima = fmaxf(minima, -l[i].m);
  }
  float by[2] = {put_f16(d, scales / (float)unit), put_f16(dmin, minima / (float)unit)};
  for (int i = 0; i < n; i++) {
    near_line(x + i * piece, piece, most, unit, by, l[i], &scale[i], &least[i]);
    float s = by[0] * (float)scale[i], m = by[1] * (float)least[i];
    for (int k = 0; k < piece; k++)
      q[i * piece + k] = (uint8_t)(s > 0 ? rounded((x[i * piece + k] + m) / s, 0, most) : 0);
  }
}

/* Encodes pieces of 16 as multiples of a scale; both the scales and q are signed. */
static void scales256(const float *x, int half, int unit, uint8_t *d, int scale[16], uint8_t q[256]) {
  float s[16], most = 0;
  for (int i = 0; i < 16; i++) {
    s[i] = fit_scale(x + 16 * i, 16, -half, half - 1);
    if (fabsf(s[i]) > fabsf(most)) most = s[i];
  }
  float ds = put_f16(d, most / (float)-unit);
  for (int i = 0; i < 16; i++) {
    scale[i] = ds != 0 ? rounded(s[i] / ds, -unit, unit - 1) : 0;
    float each = ds * (float)scale[i];
    for (int k = 16 * i; k < 16 * i + 16; k++)
      q[k] = (uint8_t)((each != 0 ? rounded(x[k] / each, -half, half - 1) : 0) + half);
  }
}

/* 2 bits of each number; in each half of 128, elements 32 apart share a byte */
static void put_pairs(const uint8_t *q, uint8_t *to) {
  for (int i = 0; i < 64; i++) {
    const uint8_t *of = q + i / 32 * 128 + i % 32;
    to[i] = (uint8_t)((of[0] & 3) | (of[32] & 3) << 2 | (of[64] & 3) << 4 | (of[96] & 3) << 6);
  }
}

static void q2_k(const float *x, uint8_t *to) {
  uint8_t scale[16], least[16], q[256];
  lines256(x, 16, 3, 15, to + 80, to + 82, scale, least, q);
  for (int i = 0; i < 16; i++)
    to[i] = (uint8_t)(scale[i] | least[i] << 4);
  put_pairs(q, to + 16);
}

static void q3_k(const float *x, uint8_t *to) {
  int scale[16];
  uint8_t q[256];
  scales256(x, 4, 32, to + 108, scale, q);
  memset(to, 0, 32);
  for (int i = 0; i < 256; i++)
    to[i % 32] |= (uint8_t)((q[i] >> 2) << i / 32);
  put_pairs(q, to + 32);
  memset(to + 96, 0, 12);
  for (int i = 0; i < 16; i++) {
    int s = scale[i] + 32;
    to[96 + i % 8] |= (uint8_t)((s & 15) << i / 8 * 4);
    to[104 + i % 4] |= (uint8_t)((s >> 4) << i / 4 * 2);
  }
}

/* Packs eight scales and eight minima of 6 bits into 12 bytes. */
static void put_sixes(const uint8_t *scale, const uint8_t *least, uint8_t *to) {
  for (int i = 0; i < 4; i++) {
    to[i] = (uint8_t)((scale[i] & 63) | (scale[i + 4] >> 4) << 6);
    to[i + 4] = (uint8_t)((least[i] & 63) | (least[i + 4] >> 4) << 6);
    to[i + 8] = (uint8_t)((scale[i + 4] & 15) | (least[i + 4] & 15) << 4);
  }
}

/* 4 bits of each number; in each 64, elements 32 apart share a byte */
static void put_fours(const uint8_t *q, uint8_t *to) {
  for (int i = 0; i < 128; i++) {
    const uint8_t *of = q + i / 32 * 64 + i % 32;
    to[i] = (uint8_t)((of[0] & 15) | (of[32] & 15) << 4);
  }
}

static void q4_k(const float *x, uint8_t *to) {
  uint8_t scale[8], least[8], q[256];
  lines256(x, 32, 15, 63, to, to + 2, scale, least, q);
  put_sixes(scale, least, to + 4);
  put_fours(q, to + 16);
}

static void q5_k(const float *x, uint8_t *to) {
  uint8_t scale[8], least[8], q[256];
  lines256(x, 32, 31, 63, to, to + 2, scale, least, q);
  put_sixes(scale, least, to + 4);
  memset(to + 16, 0, 32);
  for (int i = 0; i < 256; i++)
    to[16 + i % 32] |= (uint8_t)((q[i] >> 4) << i / 32);
  put_fours(q, to + 48);
}

static void q6_k(const float *x, uint8_t *to) {
  int scale[16];
  uint8_t q[256];
  scales256(x, 32, 128, to + 208, scale, q);
  for (int i = 0; i < 128; i++) { /* in each half of 128, elements 64 apart share a byte */
    const uint8_t *of = q + i / 64 * 128 + i % 64;
    to[i] = (uint8_t)((of[0] & 15) | (of[64] & 15) << 4);
  }
  for (int i = 0; i < 64; i++) {
    const uint8_t *of = q + i / 32 * 128 + i % 32;
    to[128 + i] = (uint8_t)(of[0] >> 4 | of[32] >> 4 << 2 | of[64] >> 4 << 4 | of[96] >> 4 << 6);
  }
  for (int i = 0; i < 16; i++)
    to[192 + i] = (uint8_t)(int8_t)scale[i];
}

/* ---- numbers */
static void f32(const float *x, uint8_t *to) { memcpy(to, x, 4); }

static void f16(const float *x, uint8_t *to) { put16(to, f16_of(*x)); }

static void bf16(const float *x, uint8_t *to) { put16(to, bf16_of(*x)); }

/* the numbers are those of the types in ggml.c */
static const struct {
  int type;
  void (*put)(const float *x, uint8_t *to); /* one block */
} encoders[] = {{0, f32},   {1, f16},   {2, q4_0},  {3, q4_1},  {6, q5_0},  {7, q5_1}, {8, q8_0},
                {10, q2_k}, {11, q3_k}, {12, q4_k}, {13, q5_k}, {14, q6_k}, {30, bf16}};

TgStatus tg_ggml_encode(TgContext *ctx, int type, const float *x, int64_t n, void *out, size_t nbytes) {
  const GgmlType *t = ggml_type(type);
  void (*put)(const float *, uint8_t *) = NULL;
  if (!ctx) return TG_ERR_NOMEM;
  for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++)
    if (encoders[i].type == type) put = encoders[i].put;
  if (!t || !put) {
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: nothing is made of type %s (%d) here", t ? t->name : "unknown", type);
    return TG_ERR_VALUE;
  }
  if (n < 0 || n % t->block || (n && (!x || !out)) || (uint64_t)n / (uint64_t)t->block > SIZE_MAX / 256 ||
      (size_t)(n / t->block) * (size_t)t->nbytes != nbytes) {
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: %lld values of %s, %d a block of %d bytes, are not %zu bytes",
             (long long)n, t->name, t->block, t->nbytes, nbytes);
    return TG_ERR_VALUE;
  }
  for (int64_t i = 0; i < n; i++)
    if (t->block > 1 && !isfinite(x[i])) {
      ctx_fail(ctx, TG_ERR_VALUE, "ggml: value %lld is %g, which %s has not", (long long)i, (double)x[i],
               t->name);
      return TG_ERR_VALUE;
    }
  for (int64_t i = 0; i < n / t->block; i++)
    put(x + i * t->block, (uint8_t *)out + i * t->nbytes);
  return TG_OK;
}
