/* golden.c: the golden programs. In: a context. Out: lazy tensors, and beside them what they must be, from
 * plain loops in double precision over the same inputs. Inputs are small multiples of powers of two, so that
 * where `tol` is 0 every step is exact but those under test. */
#define _POSIX_C_SOURCE 200809L
#include "golden.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs: element i of input `seed`, a multiple of 1/16 in -4 .. 4 */
static double in(unsigned seed, int i) {
  uint32_t h = seed * 0x9e3779b9u + (uint32_t)i * 0x85ebca6bu;
  h = (h ^ h >> 15) * 0x2c1b3c6du, h = (h ^ h >> 12) * 0x297a2d39u, h ^= h >> 15;
  return (double)((int)(h % 129) - 64) / 16;
}

static TgTensor *input(TgContext *ctx, TgDType d, unsigned seed, double scale, int nd, const int64_t *dims) {
  double v[GOLDEN_ELEMENTS];
  int64_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= dims[i];
  for (int i = 0; i < n; i++)
    v[i] = in(seed, i) * scale;
  return tg_from_f64(ctx, v, d, nd, dims);
}

#define IN(seed, ...) input(ctx, TG_F32, (seed), 1, TG_SHAPE(__VA_ARGS__))
#define OUT(t)        return (out[0] = (t)) != NULL
typedef double Values[GOLDEN_ELEMENTS];

/* ---- elementwise */
static int broadcast(TgContext *ctx, TgTensor **out) {
  OUT(tg_mul(tg_add(IN(1, 4, 1, 16), IN(2, 3, 1)), IN(3, 16)));
}

static void broadcast_want(Values *w) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 16; k++)
        w[0][(i * 3 + j) * 16 + k] = (in(1, i * 16 + k) + in(2, j)) * in(3, k);
}

static double rounded(double x, int bits) { /* to a significand of so many bits, ties to even */
  int e;
  if (x == 0) return x;
  frexp(x, &e);
  return ldexp(nearbyint(ldexp(x, bits - e)), e - bits);
}

static TgTensor *sixteen(TgContext *ctx, TgDType d) {
  TgTensor *x = input(ctx, d, 1, 1, TG_SHAPE(40)), *y = input(ctx, d, 2, 1, TG_SHAPE(40));
  return tg_mul(tg_add(tg_mul(x, y), x), y);
}

static void sixteen_want(Values *w, int bits) {
  for (int i = 0; i < 40; i++) {
    double x = rounded(in(1, i), bits), y = rounded(in(2, i), bits);
    w[0][i] = rounded(rounded(rounded(x * y, bits) + x, bits) * y, bits);
  }
}

static int f16(TgContext *ctx, TgTensor **out) { OUT(sixteen(ctx, TG_F16)); }

static void f16_want(Values *w) { sixteen_want(w, 11); }

static int bf16(TgContext *ctx, TgTensor **out) { OUT(sixteen(ctx, TG_BF16)); }

static void bf16_want(Values *w) { sixteen_want(w, 8); }

static int fp8(TgContext *ctx, TgTensor **out) {
  out[0] = sixteen(ctx, TG_FP8E4M3), out[1] = sixteen(ctx, TG_FP8E5M2);
  return out[0] && out[1] ? 2 : 0;
}

static double rounded8(double x, int bits, int least) { /* the same, and to a multiple of 2^least */
  double r = rounded(x, bits), q = ldexp(nearbyint(ldexp(x, -least)), least);
  return fabs(x) < ldexp(1, least + bits - 1) ? q : r;
}

static void fp8_want(Values *w) {
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 40; i++) {
      int bits = k ? 3 : 4, least = k ? -16 : -9;
      double x = rounded8(in(1, i), bits, least), y = rounded8(in(2, i), bits, least);
      w[k][i] = rounded8(rounded8(rounded8(x * y, bits, least) + x, bits, least) * y, bits, least);
    }
}

static int wrap8(TgContext *ctx, TgTensor **out) { /* i8 and u8: products and sums past the ends */
  TgTensor *a = input(ctx, TG_I8, 1, 16, TG_SHAPE(48)), *b = input(ctx, TG_I8, 2, 16, TG_SHAPE(48));
  TgTensor *c = tg_cast(tg_add_scalar(input(ctx, TG_I32, 3, 16, TG_SHAPE(48)), 64), TG_U8);
  out[0] = tg_sub(tg_mul(a, b), tg_add_scalar(a, 100)), out[1] = tg_sub(tg_mul(c, c), tg_add_scalar(c, 1));
  return out[0] && out[1] ? 2 : 0;
}

static void wrap8_want(Values *w) {
  for (int i = 0; i < 48; i++) {
    int a = (int)(in(1, i) * 16), b = (int)(in(2, i) * 16), c = (int)(in(3, i) * 16) + 64;
    int s = (a * b - (a + 100)) & 255;
    w[0][i] = s < 128 ? s : s - 256, w[1][i] = (c * c - (c + 1)) & 255;
  }
}

static int where(TgContext *ctx, TgTensor **out) { /* sqrt of a negative number is not taken */
  TgTensor *a = IN(1, 40), *b = IN(2, 40);
  out[0] = tg_where(tg_lt(a, b), tg_sub(b, a), tg_sqrt(tg_sub(a, b))),
  out[1] = tg_bitor(tg_ge(a, b), tg_isnan(tg_sqrt(b)));
  return out[0] && out[1] ? 2 : 0;
}

static void where_want(Values *w) {
  for (int i = 0; i < 40; i++) {
    double a = in(1, i), b = in(2, i);
    w[0][i] = a < b ? b - a : sqrt(a - b), w[1][i] = a >= b || b < 0;
  }
}

static const double odd[] = {0,  0.99,         -0.99, 127.5, 128,   -128.9,   -129,      255.5, 256,
                             -1, 2147483648.0, -3e9,  1e20,  -1e20, INFINITY, -INFINITY, NAN,   1.5};

static int casts(TgContext *ctx, TgTensor **out) { /* float to integer truncates and saturates; NaN gives 0 */
  TgTensor *x = tg_from_f64(ctx, odd, TG_F32, TG_SHAPE(18));
  out[0] = tg_cast(tg_cast(x, TG_I8), TG_I32),
  out[1] = tg_add(tg_cast(tg_cast(x, TG_U8), TG_F32), tg_cast(tg_cast(x, TG_I32), TG_F32));
  return out[0] && out[1] ? 2 : 0;
}

static double saturated(double x, double lo, double hi) {
  return isnan(x) ? 0 : x <= lo ? lo : x >= hi ? hi : trunc(x);
}

static void casts_want(Values *w) {
  for (int i = 0; i < 18; i++)
    w[0][i] = saturated(odd[i], -128, 127),
    w[1][i] = (float)((float)saturated((float)odd[i], 0, 255) +
                      (float)saturated((float)odd[i], -2147483648.0, 2147483647.0));
}

/* ---- reductions */
static int sum_last(TgContext *ctx, TgTensor **out) { OUT(tg_sum(IN(1, 10, 48), .axis = TG_AXES(1))); }

static void sum_last_want(Values *w) {
  for (int i = 0; i < 10; i++) {
    w[0][i] = 0;
    for (int k = 0; k < 48; k++)
      w[0][i] += in(1, i * 48 + k);
  }
}

/* A row that several warps share. */
static int sum_warps(TgContext *ctx, TgTensor **out) { OUT(tg_sum(IN(1, 3, 200), .axis = TG_AXES(1))); }

static void sum_warps_want(Values *w) {
  for (int i = 0; i < 3; i++) {
    w[0][i] = 0;
    for (int k = 0; k < 200; k++)
      w[0][i] += in(1, i * 200 + k);
  }
}

static int sum_first(TgContext *ctx, TgTensor **out) { OUT(tg_sum(IN(1, 24, 20), .axis = TG_AXES(0))); }

static void sum_first_want(Values *w) {
  for (int i = 0; i < 20; i++) {
    w[0][i] = 0;
    for (int k = 0; k < 24; k++)
      w[0][i] += in(1, k * 20 + i);
  }
}

static double holed(int i) { return i == 75 ? NAN : i == 12 ? INFINITY : in(1, i); }

static int max_nan(TgContext *ctx, TgTensor **out) { /* row 2 has a NaN, row 0 an infinity */
  double v[132];
  for (int i = 0; i < 132; i++)
    v[i] = holed(i);
  OUT(tg_max(tg_from_f64(ctx, v, TG_F32, TG_SHAPE(4, 33)), .axis = TG_AXES(1)));
}

static void max_nan_want(Values *w) {
  for (int i = 0; i < 4; i++) {
    double m = -INFINITY;
    for (int k = 0; k < 33; k++) {
      double x = holed(i * 33 + k);
      m = isnan(x) || isnan(m) ? NAN : x > m ? x : m;
    }
    w[0][i] = m;
  }
}

/* ---- products */
static void product(double *w, int batch, int m, int n, int k) {
  for (int b = 0; b < batch; b++)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) {
        double s = 0;
        for (int l = 0; l < k; l++)
          s += in(1, (b * m + i) * k + l) * in(2, (b * k + l) * n + j);
        w[(b * m + i) * n + j] = s;
      }
}

static int matmul(TgContext *ctx, TgTensor **out) { OUT(tg_matmul(IN(1, 8, 16), IN(2, 16, 32))); }

static void matmul_want(Values *w) { product(w[0], 1, 8, 32, 16); }

static int matmul_odd(TgContext *ctx, TgTensor **out) { OUT(tg_matmul(IN(1, 3, 13), IN(2, 13, 7))); }

static void matmul_odd_want(Values *w) { product(w[0], 1, 3, 7, 13); }

static int matmul_batch(TgContext *ctx, TgTensor **out) { OUT(tg_matmul(IN(1, 3, 4, 8), IN(2, 3, 8, 16))); }

static void matmul_batch_want(Values *w) { product(w[0], 3, 4, 16, 8); }

/* tiles of the result, blocks of the sum that it is no multiple of */
static int matmul_tiles(TgContext *ctx, TgTensor **out) { OUT(tg_matmul(IN(1, 128, 40), IN(2, 40, 32))); }

static void matmul_tiles_want(Values *w) { product(w[0], 1, 128, 32, 40); }

/* halves, of which matrix units take the products */
static int matmul_units(TgContext *ctx, TgTensor **out) {
  TgTensor *x = input(ctx, TG_F16, 1, 1, TG_SHAPE(80, 16)), *y = input(ctx, TG_F16, 2, 1, TG_SHAPE(16, 8));
  OUT(tg_relu(tg_matmul(x, y, .dtype = TG_F32)));
}

static void matmul_units_want(Values *w) {
  product(w[0], 1, 80, 8, 16);
  for (int i = 0; i < 80 * 8; i++)
    w[0][i] = fmax(w[0][i], 0);
}

static int conv2d(TgContext *ctx, TgTensor **out) {
  OUT(tg_conv2d(IN(1, 1, 2, 4, 4), IN(2, 3, 2, 3, 3), .bias = IN(3, 3), .padding = TG_SIZES(1, 1)));
}

static void conv2d_want(Values *w) {
  for (int o = 0; o < 3; o++)
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 4; x++) {
        double s = in(3, o);
        for (int c = 0; c < 2; c++)
          for (int k = 0; k < 9; k++) {
            int iy = y + k / 3 - 1, ix = x + k % 3 - 1;
            if (iy >= 0 && iy < 4 && ix >= 0 && ix < 4)
              s += in(1, (c * 4 + iy) * 4 + ix) * in(2, (o * 2 + c) * 9 + k);
          }
        w[0][(o * 4 + y) * 4 + x] = s;
      }
}

static int max_pool(TgContext *ctx, TgTensor **out) { OUT(tg_max_pool2d(IN(1, 1, 3, 8, 8))); }

static void max_pool_want(Values *w) {
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 4; x++) {
        double m = -INFINITY;
        for (int k = 0; k < 4; k++)
          m = fmax(m, in(1, (c * 8 + 2 * y + k / 2) * 8 + 2 * x + k % 2));
        w[0][(c * 4 + y) * 4 + x] = m;
      }
}

/* ---- rows */
static void softmax_of(double *p, int n) {
  double m = -INFINITY, s = 0;
  for (int i = 0; i < n; i++)
    m = fmax(m, p[i]);
  for (int i = 0; i < n; i++)
    s += exp(p[i] - m);
  for (int i = 0; i < n; i++)
    p[i] = exp(p[i] - m) / s;
}

static int softmax(TgContext *ctx, TgTensor **out) { OUT(tg_softmax(IN(1, 6, 8))); }

static void softmax_want(Values *w) {
  for (int i = 0; i < 48; i++)
    w[0][i] = in(1, i);
  for (int i = 0; i < 6; i++)
    softmax_of(w[0] + i * 8, 8);
}

/* two sums that read the same x: one loop loads it once */
static int shared_loop(TgContext *ctx, TgTensor **out) {
  TgTensor *x = IN(1, 2, 48, 16), *a = tg_sum(tg_mul(x, IN(2, 2, 48, 1)), .axis = TG_AXES(1));
  OUT(tg_sum(tg_maximum(a, tg_sum(tg_mul(x, IN(3, 2, 48, 1)), .axis = TG_AXES(1))), .axis = TG_AXES(0)));
}

static void shared_loop_want(Values *w) {
  for (int i = 0; i < 32; i++) {
    double a = 0, b = 0;
    for (int k = 0; k < 48; k++) {
      a += in(1, (i / 16 * 48 + k) * 16 + i % 16) * in(2, i / 16 * 48 + k);
      b += in(1, (i / 16 * 48 + k) * 16 + i % 16) * in(3, i / 16 * 48 + k);
    }
    w[0][i % 16] = (a > b ? a : b) + (i < 16 ? 0 : w[0][i % 16]);
  }
}

/* one way to compute it is long: it stands behind a branch */
enum { LONG_WAY = 24 };

static int two_ways(TgContext *ctx, TgTensor **out) {
  TgTensor *x = IN(1, 32), *way = x;
  for (int i = 0; i < LONG_WAY; i++)
    way = tg_add_scalar(tg_mul_scalar(way, 0.5), i % 5);
  OUT(tg_where(tg_lt_scalar(x, 3.5), tg_add_scalar(tg_mul(tg_mul(x, x), tg_add_scalar(x, 1)), 2), way));
}

static void two_ways_want(Values *w) {
  for (int i = 0; i < 32; i++) {
    double x = in(1, i), way = x;
    for (int k = 0; k < LONG_WAY; k++)
      way = (float)((float)(way * 0.5) + k % 5);
    w[0][i] = x < 3.5 ? x * x * (x + 1) + 2 : way;
  }
}

static int layer_norm(TgContext *ctx, TgTensor **out) {
  OUT(tg_layer_norm(IN(1, 4, 32), .weight = IN(2, 32), .bias = IN(3, 32)));
}

static void layer_norm_want(Values *w) {
  for (int i = 0; i < 4; i++) {
    double mean = 0, var = 0;
    for (int k = 0; k < 32; k++)
      mean += in(1, i * 32 + k) / 32;
    for (int k = 0; k < 32; k++)
      var += pow(in(1, i * 32 + k) - mean, 2) / 32;
    for (int k = 0; k < 32; k++)
      w[0][i * 32 + k] = (in(1, i * 32 + k) - mean) / sqrt(var + 1e-5) * in(2, k) + in(3, k);
  }
}

static const int32_t labels[] = {3, 0, 9, 9, 1, 4};

/* a label that is no class adds nothing */
static int cross_entropy(TgContext *ctx, TgTensor **out) {
  OUT(tg_sparse_cross_entropy(IN(1, 6, 8), tg_from(ctx, labels, TG_I32, TG_SHAPE(6)), .reduction = TG_SUM));
}

static void cross_entropy_want(Values *w) {
  w[0][0] = 0;
  for (int i = 0; i < 6; i++) {
    double s = 0;
    for (int k = 0; k < 8; k++)
      s += exp(in(1, i * 8 + k));
    w[0][0] += labels[i] < 8 ? log(s) - in(1, i * 8 + labels[i]) : 0;
  }
}

static int attention(TgContext *ctx, TgTensor **out) {
  OUT(tg_scaled_dot_product_attention(IN(1, 2, 4, 8), IN(2, 2, 4, 8), IN(3, 2, 4, 8), .causal = true));
}

static void attention_want(Values *w) {
  for (int b = 0; b < 2; b++)
    for (int i = 0; i < 4; i++) {
      double p[4];
      for (int j = 0; j <= i; j++) {
        p[j] = 0;
        for (int d = 0; d < 8; d++)
          p[j] += in(1, (b * 4 + i) * 8 + d) * in(2, (b * 4 + j) * 8 + d) / sqrt(8);
      }
      softmax_of(p, i + 1);
      for (int d = 0; d < 8; d++) {
        double s = 0;
        for (int j = 0; j <= i; j++)
          s += p[j] * in(3, (b * 4 + j) * 8 + d);
        w[0][(b * 4 + i) * 8 + d] = s;
      }
    }
}

/* ---- indices */
/* Running sums of rows that several warps share. */
static int scan_warps(TgContext *ctx, TgTensor **out) { OUT(tg_cumsum(IN(1, 3, 150), 1)); }

static void scan_warps_want(Values *w) {
  for (int i = 0; i < 450; i++)
    w[0][i] = in(1, i) + (i % 150 ? w[0][i - 1] : 0);
}

static int counting(TgContext *ctx, TgTensor **out) {
  out[0] = tg_add(tg_cumsum(IN(1, 12), 0), tg_cast(tg_arange(ctx, 5, 17), TG_F32)),
  out[1] = tg_one_hot(tg_from(ctx, labels, TG_I32, TG_SHAPE(6)), 5);
  return out[0] && out[1] ? 2 : 0;
}

static void counting_want(Values *w) {
  double s = 0;
  for (int i = 0; i < 12; i++)
    s += in(1, i), w[0][i] = s + 5 + i;
  for (int i = 0; i < 30; i++)
    w[1][i] = labels[i / 5] == i % 5;
}

static int embedding(TgContext *ctx, TgTensor **out) { /* label 9 has no row */
  OUT(tg_embedding(IN(1, 8, 16), tg_from(ctx, labels, TG_I32, TG_SHAPE(2, 3))));
}

static void embedding_want(Values *w) {
  for (int i = 0; i < 6; i++)
    for (int k = 0; k < 16; k++)
      w[0][i * 16 + k] = labels[i] < 8 ? in(1, labels[i] * 16 + k) : 0;
}

static int gather(TgContext *ctx, TgTensor **out) {
  OUT(tg_gather(IN(1, 2, 9), 1, tg_from(ctx, labels, TG_I32, TG_SHAPE(2, 3))));
}

static void gather_want(Values *w) {
  for (int i = 0; i < 6; i++)
    w[0][i] = labels[i] < 9 ? in(1, i / 3 * 9 + labels[i]) : 0;
}

static int scatter(TgContext *ctx, TgTensor **out) { /* labels meet; 9 is no column */
  TgTensor *i = tg_from(ctx, labels, TG_I32, TG_SHAPE(2, 3));
  out[0] = tg_scatter(tg_contiguous(tg_neg(IN(1, 2, 9))), 1, i, IN(2, 2, 3), .reduce = TG_SCATTER_ADD);
  out[1] = tg_scatter(IN(3, 9), 0, tg_reshape(i, TG_SHAPE(6)), IN(4, 6));
  return out[0] && out[1] ? 2 : 0;
}

static void scatter_want(Values *w) {
  for (int i = 0; i < 18; i++)
    w[0][i] = -in(1, i);
  for (int i = 0; i < 9; i++)
    w[1][i] = in(3, i);
  for (int i = 0; i < 6; i++) {
    if (labels[i] >= 9) continue;
    w[0][i / 3 * 9 + labels[i]] += in(2, i), w[1][labels[i]] = in(4, i);
  }
}

static int scan(TgContext *ctx, TgTensor **out) { /* along rows, and down columns */
  out[0] = tg_cumsum(tg_mul(IN(1, 5, 12), IN(2, 12)), 1), out[1] = tg_cumsum(IN(1, 12, 20), 0);
  return out[0] && out[1] ? 2 : 0;
}

static void scan_want(Values *w) {
  for (int i = 0; i < 60; i++)
    w[0][i] = (i % 12 ? w[0][i - 1] : 0) + in(1, i) * in(2, i % 12);
  for (int i = 0; i < 240; i++)
    w[1][i] = (i >= 20 ? w[1][i - 20] : 0) + in(1, i);
}

static int transpose(TgContext *ctx, TgTensor **out) {
  OUT(tg_contiguous(tg_transpose(IN(1, 12, 20), 0, 1)));
}

static void transpose_want(Values *w) {
  for (int i = 0; i < 240; i++)
    w[0][i] = in(1, i % 12 * 20 + i / 12);
}

static int cat_pad(TgContext *ctx, TgTensor **out) {
  TgTensor *part[] = {IN(1, 2, 5), tg_pad(IN(2, 3, 3), (const int64_t[]){0, 1}, (const int64_t[]){1, 1})};
  OUT(tg_cat(part, 2, 0));
}

static void cat_pad_want(Values *w) {
  for (int i = 0; i < 30; i++) {
    int r = i / 5 - 2, c = i % 5 - 1;
    w[0][i] = r < 0 ? in(1, i) : r < 3 && c >= 0 && c < 3 ? in(2, r * 3 + c) : 0;
  }
}

/* ---- random numbers, state */
static uint32_t turned(uint32_t x, int n) { return x << n | x >> (32 - n); }

/* Salmon et al. 2011: 2x32, 20 rounds */
static void threefry(uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1, uint32_t *lo, uint32_t *hi) {
  static const int turn[] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t k[] = {k0, k1, 0x1bd11bda ^ k0 ^ k1}, x0 = c0 + k0, x1 = c1 + k1;
  for (int r = 0; r < 20; r++) {
    x0 += x1, x1 = turned(x1, turn[r % 8]) ^ x0;
    if (r % 4 == 3) x0 += k[(r / 4 + 1) % 3], x1 += k[(r / 4 + 2) % 3] + (uint32_t)(r / 4 + 1);
  }
  *lo = x0, *hi = x1;
}

static int random_numbers(TgContext *ctx, TgTensor **out) { OUT(tg_rand(ctx, TG_SHAPE(4))); }

static void random_want(Values *w) {
  uint32_t lo, hi, k0, k1;
  threefry(0, 0, 0, 0, &lo, &hi); /* the published answer for zeros */
  bool known = lo == 0x6b200159 && hi == 0x99ba4efe;
  /* tinygrad's key of a draw, and its halves: tests/goldens/make_random.py */
  threefry(0, 0, 0x14b81119, GOLDEN_SEED, &k0, &k1);
  for (uint32_t i = 0; i < 2; i++) {
    threefry(i, i + 2, k0, k1, &lo, &hi);
    w[0][i] = known ? (lo >> 9) / 8388608.0 : NAN, w[0][i + 2] = known ? (hi >> 9) / 8388608.0 : NAN;
  }
}

static int adam_step(TgContext *ctx, TgTensor **out) { /* the gradient of sum(w * g) is g */
  TgTensor *w = tg_keep(IN(1, 16));
  TgOptim *o = tg_adam(ctx, &w, 1, .lr = 0.125);
  bool ok = o && !tg_backward(tg_sum(tg_mul(w, IN(2, 16)))) && !tg_optim_step(o);
  tg_optim_free(o);
  out[0] = w;
  return ok;
}

static void adam_want(Values *w) {
  for (int i = 0; i < 16; i++) {
    double g = in(2, i), m = 0.1 * g, v = 0.001 * g * g;
    w[0][i] = in(1, i) - 0.125 * (m / 0.1) / (sqrt(v / 0.001) + 1e-8);
  }
}

/* rows 2 and 3 become twice rows 0 and 1, in place */
static int assign_slice(TgContext *ctx, TgTensor **out) {
  TgTensor *x = IN(1, 6, 8);
  if (!x || tg_realize(x)) return 0;
  OUT(tg_assign_slice(x, (const int64_t[]){2, 0}, (const int64_t[]){4, 8},
                      tg_mul_scalar(tg_slice(x, 0, 0, 2), 2)));
}

static void assign_slice_want(Values *w) {
  for (int i = 0; i < 48; i++)
    w[0][i] = i / 8 == 2 || i / 8 == 3 ? 2 * in(1, i - 16) : in(1, i);
}

#define ROW(name, tol)                                                                                       \
  { #name, name, name##_want, tol, NULL }
#define ON_GRID(name, tol, opts)                                                                             \
  { #name, name, name##_want, tol, opts }
const Golden golden_programs[] = {
    ROW(broadcast, 0),
    ROW(f16, 0),
    ROW(bf16, 0),
    ROW(fp8, 0),
    ROW(wrap8, 0),
    ROW(where, 1e-7),
    ROW(casts, 0),
    ROW(sum_last, 0),
    ON_GRID(sum_warps, 0, "GROUP r1 128"),
    ROW(sum_first, 0),
    ROW(max_nan, 0),
    ROW(matmul, 0),
    ROW(matmul_odd, 0),
    ROW(matmul_batch, 0),
    ON_GRID(matmul_tiles, 0,
            "TILE r0 64, TILE r1 32, TILE r2 32, STAGE p1, STAGE p2, UPCAST r0 2, VEC r1 4, "
            "LOCAL r0 32, LOCAL r1 8"),
    ROW(matmul_units, 0),
    ROW(conv2d, 0),
    ROW(max_pool, 0),
    ROW(shared_loop, 0),
    ROW(two_ways, 0),
    ROW(softmax, 1e-6),
    ROW(layer_norm, 5e-6),
    ROW(cross_entropy, 1e-6),
    ON_GRID(attention, 2e-6, "LOCAL r1 4"),
    ROW(counting, 0),
    ROW(embedding, 0),
    ROW(gather, 0),
    ROW(scatter, 0),
    ROW(scan, 0),
    ON_GRID(scan_warps, 0, "GROUP r1 128"),
    ROW(transpose, 0),
    ROW(cat_pad, 0),
    {"random", random_numbers, random_want, 0, NULL},
    {"adam_step", adam_step, adam_want, 1e-6, NULL},
    ROW(assign_slice, 0)};

void golden_env(const Golden *g, const char *device) {
  bool grid = device && (strstr(device, "CUDA") || strstr(device, "METAL"));
  if (g && g->grid_opts && grid)
    setenv("TG_OPTS", g->grid_opts, 1);
  else
    unsetenv("TG_OPTS");
}

const int golden_count = sizeof golden_programs / sizeof *golden_programs;
