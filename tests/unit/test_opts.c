/* test_opts.c: any list of opts gives the same numbers. Random lists, on the reference interpreter as each
 * target lowers them, against plain loops. What an opt may not do is refused with a reason; it never changes
 * a result. */
#define _GNU_SOURCE
#include "tg.h"
#include "base/os.h"
#include "base/processor.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

static unsigned seed = 12345;

static int draw(int n) { return seed = seed * 1664525u + 1013904223u, (int)((seed >> 8) % (unsigned)n); }

/* Of a captured program: its inputs, in the order in which it asks for them, are the same at each call. */
static struct Kept {
  bool on;
  int n, next;
  TgTensor *at[8];
} kept;

/* Axes of inputs that have so many elements have a variable of them. size 0: all are numbers. */
static struct Open {
  int64_t size, seen[32];
  int nseen;
  TgVariable *n;
} open_axes;

static void axes_seen(int nd, const int64_t *d) {
  for (int i = 0; i < nd; i++) {
    bool had = d[i] < 2 || open_axes.nseen == 32;
    for (int j = 0; j < open_axes.nseen; j++)
      had |= open_axes.seen[j] == d[i];
    if (!had) open_axes.seen[open_axes.nseen++] = d[i];
  }
}

/* The first of more elements along each such axis. */
static TgTensor *opened(TgContext *ctx, const double *p, TgDType dtype, int nd, const int64_t *d) {
  enum { MORE = 5 };

  int64_t whole[8], at[8] = {0}, n = 1;
  for (int i = 0; i < nd; i++)
    n *= whole[i] = d[i] + (d[i] == open_axes.size ? MORE : 0);
  double *q = malloc(sizeof *q * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    int64_t from = 0;
    bool in = true;
    for (int a = 0; a < nd; a++)
      from = from * d[a] + at[a], in &= at[a] < d[a];
    q[i] = in ? p[from] : 77;
    for (int a = nd - 1; a >= 0 && ++at[a] == whole[a]; a--)
      at[a] = 0;
  }
  TgTensor *t = tg_from_f64(ctx, q, dtype, nd, whole);
  free(q);
  for (int a = 0; a < nd; a++)
    if (d[a] == open_axes.size) t = tg_slice(t, a, 0, tg_size(open_axes.n));
  return t;
}

static TgTensor *input_of(TgContext *ctx, TgDType dtype, unsigned s, int nd, const int64_t *d) {
  if (kept.on && kept.next < kept.n) return kept.at[kept.next++];
  axes_seen(nd, d);
  int64_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= d[i];
  double *p = malloc(sizeof *p * (size_t)n);
  bool whole = dtype != TG_F32 && dtype != TG_F16 && dtype != TG_BF16;
  for (int64_t i = 0; i < n; i++)
    s = s * 1664525u + 1013904223u, p[i] = whole ? (int)(s >> 24) - 128 : (s >> 8) / 8388608. - 1;
  TgTensor *t = open_axes.size ? opened(ctx, p, dtype, nd, d) : tg_from_f64(ctx, p, dtype, nd, d);
  free(p);
  if (!kept.on) return t;
  assert_in_range(kept.n, 0, 7);
  assert_int_equal(tg_realize(t), TG_OK);
  return kept.next++, kept.at[kept.n++] = t;
}

static TgTensor *input(TgContext *ctx, unsigned s, int nd, const int64_t *d) {
  return input_of(ctx, TG_F32, s, nd, d);
}

/* What is computed: out[0], and a second output where there is one. Most are one kernel. */
enum { NPROGRAM = 38, NUNITS = 8, NPANELS = 9, MOST = 4096 };

/* Products of the types that matrix units take: what is read is turned, padded, shared by a batch. */
static void program_of_units(TgContext *ctx, int which, TgTensor *out[2]) {
  switch (which) {
  case 0:
    out[0] = tg_matmul(input_of(ctx, TG_F16, 1, TG_SHAPE(37, 70)), input_of(ctx, TG_F16, 2, TG_SHAPE(70, 21)),
                       .dtype = TG_F32);
    return;
  case 1: { /* x @ W.T, bias and relu */
    TgTensor *w = input_of(ctx, TG_BF16, 2, TG_SHAPE(24, 48)), *bias = input(ctx, 3, TG_SHAPE(24));
    TgTensor *x = input_of(ctx, TG_BF16, 1, TG_SHAPE(32, 48));
    out[0] = tg_relu(tg_add(tg_matmul(x, tg_permute(w, TG_SHAPE(1, 0)), .dtype = TG_F32), bias));
    return;
  }
  case 2:
    out[0] = tg_matmul(input_of(ctx, TG_I8, 1, TG_SHAPE(2, 17, 90)),
                       input_of(ctx, TG_I8, 2, TG_SHAPE(90, 30)), .dtype = TG_I32);
    return;
  case 3:
    out[0] = tg_matmul(input_of(ctx, TG_U8, 1, TG_SHAPE(33, 64)), input_of(ctx, TG_U8, 2, TG_SHAPE(64, 16)),
                       .dtype = TG_U32);
    return;
  case 4: /* padded, a batch */
    out[0] = tg_conv2d(input_of(ctx, TG_F16, 5, TG_SHAPE(2, 20, 6, 9)),
                       input_of(ctx, TG_F16, 6, TG_SHAPE(18, 20, 3, 3)), .padding = TG_SIZES(1, 1),
                       .dtype = TG_F32);
    return;
  case 5: /* x.T @ y */
    out[0] = tg_matmul(tg_permute(input_of(ctx, TG_F16, 1, TG_SHAPE(40, 16)), TG_SHAPE(1, 0)),
                       input_of(ctx, TG_F16, 2, TG_SHAPE(40, 48)), .dtype = TG_F32);
    return;
  case 6:
    out[0] = tg_matmul(input_of(ctx, TG_FP8E5M2, 1, TG_SHAPE(16, 96)),
                       input_of(ctx, TG_FP8E5M2, 2, TG_SHAPE(96, 8)), .dtype = TG_F32);
    return;
  default: { /* two sums over one loop */
    TgTensor *x = input_of(ctx, TG_F16, 1, TG_SHAPE(20, 33)), *y = input_of(ctx, TG_F16, 2, TG_SHAPE(33, 40));
    TgTensor *z = input_of(ctx, TG_F16, 3, TG_SHAPE(33, 40));
    out[0] = tg_mul(tg_matmul(x, y, .dtype = TG_F32), tg_sigmoid(tg_matmul(x, z, .dtype = TG_F32)));
    return;
  }
  }
}

/* .. that tiles of a CPU take: what panels are made of is cast, gated, turned, long, or of mixed signs. */
static void program_of_panels(TgContext *ctx, int which, TgTensor *out[2]) {
  switch (which) {
  case 0:
    out[0] = tg_matmul(input_of(ctx, TG_BF16, 1, TG_SHAPE(37, 70)),
                       input_of(ctx, TG_BF16, 2, TG_SHAPE(70, 41)), .dtype = TG_F32);
    return;
  case 1: { /* x @ W.T, bias and relu, and twice that */
    TgTensor *w = input_of(ctx, TG_BF16, 2, TG_SHAPE(45, 52)), *bias = input(ctx, 3, TG_SHAPE(45));
    TgTensor *x = input_of(ctx, TG_BF16, 1, TG_SHAPE(33, 52));
    out[0] = tg_relu(tg_add(tg_matmul(x, tg_permute(w, TG_SHAPE(1, 0)), .dtype = TG_F32), bias));
    out[1] = tg_mul_scalar(out[0], 2);
    return;
  }
  case 2: /* a batch that shares b */
    out[0] = tg_matmul(input_of(ctx, TG_I8, 1, TG_SHAPE(2, 17, 90)),
                       input_of(ctx, TG_I8, 2, TG_SHAPE(90, 30)), .dtype = TG_I32);
    return;
  case 3: /* a batch, each its own; signs differ */
    out[0] = tg_matmul(input_of(ctx, TG_U8, 1, TG_SHAPE(3, 18, 66)),
                       input_of(ctx, TG_I8, 2, TG_SHAPE(3, 66, 21)), .dtype = TG_I32);
    return;
  case 4: /* padded, a batch */
    out[0] = tg_conv2d(input_of(ctx, TG_BF16, 5, TG_SHAPE(2, 20, 6, 9)),
                       input_of(ctx, TG_BF16, 6, TG_SHAPE(18, 20, 3, 3)), .padding = TG_SIZES(1, 1),
                       .dtype = TG_F32);
    return;
  case 5: /* x.T @ y */
    out[0] = tg_matmul(tg_permute(input_of(ctx, TG_U8, 1, TG_SHAPE(130, 36)), TG_SHAPE(1, 0)),
                       input_of(ctx, TG_U8, 2, TG_SHAPE(130, 48)), .dtype = TG_U32);
    return;
  case 6: { /* a factor that is cast; a long sum */
    TgTensor *x = tg_cast(input(ctx, 1, TG_SHAPE(18, 2100)), TG_BF16);
    out[0] = tg_matmul(x, input_of(ctx, TG_BF16, 2, TG_SHAPE(2100, 20)), .dtype = TG_F32);
    return;
  }
  case 7: /* a convolution of bytes in steps of two */
    out[0] = tg_conv2d(input_of(ctx, TG_I8, 5, TG_SHAPE(2, 5, 9, 21)),
                       input_of(ctx, TG_U8, 6, TG_SHAPE(17, 5, 3, 3)), .padding = TG_SIZES(1, 1),
                       .stride = TG_SIZES(2, 2), .dtype = TG_I32);
    return;
  default: { /* two sums over one loop */
    TgTensor *x = input_of(ctx, TG_BF16, 1, TG_SHAPE(20, 33)),
             *y = input_of(ctx, TG_BF16, 2, TG_SHAPE(33, 40));
    TgTensor *z = input_of(ctx, TG_BF16, 3, TG_SHAPE(33, 40));
    out[0] = tg_mul(tg_matmul(x, y, .dtype = TG_F32), tg_sigmoid(tg_matmul(x, z, .dtype = TG_F32)));
    return;
  }
  }
}

static void program(TgContext *ctx, int which, TgTensor *out[2]) {
  out[1] = NULL;
  if (which >= NPROGRAM + NUNITS) {
    program_of_panels(ctx, which - NPROGRAM - NUNITS, out);
    return;
  }
  if (which >= NPROGRAM) {
    program_of_units(ctx, which - NPROGRAM, out);
    return;
  }
  switch (which) {
  case 0: out[0] = tg_matmul(input(ctx, 1, TG_SHAPE(7, 13)), input(ctx, 2, TG_SHAPE(13, 21))); return;
  case 1: out[0] = tg_matmul(input(ctx, 1, TG_SHAPE(2, 8, 16)), input(ctx, 2, TG_SHAPE(16, 32))); return;
  case 2: out[0] = tg_softmax(input(ctx, 3, TG_SHAPE(5, 37))); return;
  case 3: out[0] = tg_layer_norm(input(ctx, 4, TG_SHAPE(3, 4, 40))); return;
  case 4:
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(2, 3, 8, 9)), input(ctx, 6, TG_SHAPE(4, 3, 3, 3)),
                       .padding = TG_SIZES(1, 1));
    return;
  case 5: out[0] = tg_sum(input(ctx, 7, TG_SHAPE(6, 35)), .axis = TG_AXES(0)); return;
  case 6: out[0] = tg_max(input(ctx, 8, TG_SHAPE(6, 35)), .axis = TG_AXES(1)); return;
  case 7: out[0] = tg_contiguous(tg_permute(input(ctx, 9, TG_SHAPE(9, 20)), TG_SHAPE(1, 0))); return;
  case 8:
    out[0] = tg_pad(tg_exp(input(ctx, 10, TG_SHAPE(5, 19))), (int64_t[]){1, 3}, (int64_t[]){2, 0});
    return;
  case 9: /* strided */
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(1, 4, 9, 11)), input(ctx, 6, TG_SHAPE(5, 4, 3, 3)),
                       .stride = TG_SIZES(2, 2), .padding = TG_SIZES(1, 1));
    return;
  case 10: /* dilated */
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(2, 2, 10, 12)), input(ctx, 6, TG_SHAPE(6, 2, 3, 3)),
                       .dilation = TG_SIZES(2, 2), .padding = TG_SIZES(2, 2));
    return;
  case 11: /* groups */
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(2, 6, 7, 8)), input(ctx, 6, TG_SHAPE(6, 2, 3, 3)), .groups = 3,
                       .padding = TG_SIZES(1, 1));
    return;
  case 12: /* each channel apart */
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(1, 5, 7, 17)), input(ctx, 6, TG_SHAPE(5, 1, 3, 3)), .groups = 5,
                       .padding = TG_SIZES(1, 1));
    return;
  case 13: /* one element of the image */
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(3, 8, 4, 7)), input(ctx, 6, TG_SHAPE(18, 8, 1, 1)));
    return;
  case 14: { /* x @ W.T */
    TgTensor *w = input(ctx, 2, TG_SHAPE(34, 19));
    out[0] = tg_matmul(input(ctx, 1, TG_SHAPE(14, 19)), tg_permute(w, TG_SHAPE(1, 0)));
    return;
  }
  case 15: /* x.T @ y */
    out[0] = tg_matmul(tg_permute(input(ctx, 1, TG_SHAPE(19, 15)), TG_SHAPE(1, 0)),
                       input(ctx, 2, TG_SHAPE(19, 33)));
    return;
  case 16: out[0] = tg_matmul(input(ctx, 1, TG_SHAPE(3, 6, 17)), input(ctx, 2, TG_SHAPE(3, 17, 20))); return;
  case 17: out[0] = tg_contiguous(tg_permute(input(ctx, 9, TG_SHAPE(5, 37, 18)), TG_SHAPE(0, 2, 1))); return;
  case 18: out[0] = tg_contiguous(tg_permute(input(ctx, 9, TG_SHAPE(7, 11, 13)), TG_SHAPE(2, 1, 0))); return;
  case 19: out[0] = tg_sum(input(ctx, 7, TG_SHAPE(5, 23, 19)), .axis = TG_AXES(1)); return;
  case 20: { /* bias, residual and relu */
    TgTensor *x = input(ctx, 5, TG_SHAPE(1, 4, 7, 9)), *bias = input(ctx, 11, TG_SHAPE(4));
    TgTensor *y = tg_conv2d(x, input(ctx, 6, TG_SHAPE(4, 4, 3, 3)), .bias = bias, .padding = TG_SIZES(1, 1));
    out[0] = tg_relu(tg_add(y, x));
    return;
  }
  case 21: { /* two outputs of one reduction */
    TgTensor *x = input(ctx, 3, TG_SHAPE(6, 29));
    out[0] = tg_sum(x, .axis = TG_AXES(1)), out[1] = tg_max(x, .axis = TG_AXES(1));
    return;
  }
  case 22: { /* of one place */
    TgTensor *x = input(ctx, 3, TG_SHAPE(6, 29)), *y = input(ctx, 4, TG_SHAPE(6, 29));
    out[0] = tg_mul(x, y), out[1] = tg_add(x, y);
    return;
  }
  case 23: /* halves */
    out[0] = tg_matmul(input_of(ctx, TG_F16, 1, TG_SHAPE(9, 14)), input_of(ctx, TG_F16, 2, TG_SHAPE(14, 36)));
    return;
  case 24:
    out[0] =
        tg_matmul(input_of(ctx, TG_BF16, 1, TG_SHAPE(9, 14)), input_of(ctx, TG_BF16, 2, TG_SHAPE(14, 36)));
    return;
  case 25: /* bytes */
    out[0] = tg_matmul(input_of(ctx, TG_I8, 1, TG_SHAPE(9, 30)), input_of(ctx, TG_I8, 2, TG_SHAPE(30, 21)),
                       .dtype = TG_I32);
    return;
  case 26:
    out[0] = tg_contiguous(tg_permute(input_of(ctx, TG_I8, 9, TG_SHAPE(34, 50)), TG_SHAPE(1, 0)));
    return;
  case 27: { /* in place */
    TgTensor *x = input(ctx, 1, TG_SHAPE(9, 20)), *y = input(ctx, 2, TG_SHAPE(9, 20));
    tg_realize(x);
    out[0] = tg_assign(x, tg_add(tg_mul(x, x), y));
    return;
  }
  case 28: { /* a residual, in place */
    TgTensor *x = input(ctx, 1, TG_SHAPE(9, 20)), *h = input(ctx, 2, TG_SHAPE(9, 12));
    tg_realize(x);
    out[0] = tg_assign(x, tg_add(x, tg_matmul(h, input(ctx, 3, TG_SHAPE(12, 20)))));
    return;
  }
  case 29: out[0] = tg_cumsum(input(ctx, 7, TG_SHAPE(5, 18)), 1); return;
  case 30: { /* windows that overlap */
    out[0] = tg_max_pool2d(input(ctx, 7, TG_SHAPE(2, 3, 9, 10)), .kernel = TG_SIZES(3), .stride = TG_SIZES(2),
                           .padding = TG_SIZES(1));
    return;
  }
  case 32:
  case 33: { /* attention, causal; or with a mask that leaves a row without a key */
    TgTensor *q = input(ctx, 1, TG_SHAPE(2, 40, 12)), *k = input(ctx, 2, TG_SHAPE(2, 40, 12));
    TgTensor *v = input(ctx, 3, TG_SHAPE(2, 40, 9));
    bool holds[40 * 40];
    for (int i = 0; i < 40 * 40; i++)
      holds[i] = i * 7 % 11 < 5 && i / 40 != 7;
    TgTensor *mask = tg_from(ctx, holds, TG_BOOL, TG_SHAPE(40, 40));
    out[0] =
        tg_scaled_dot_product_attention(q, k, v, .causal = which == 32, .mask = which == 33 ? mask : NULL);
    return;
  }
  case 34: /* conditions change places */
    out[0] = tg_contiguous(tg_permute(input_of(ctx, TG_BOOL, 9, TG_SHAPE(34, 50)), TG_SHAPE(1, 0)));
    return;
  case 35: /* a sum that is cut, and a residual of what it reads */
    out[0] = tg_add(tg_matmul(input(ctx, 1, TG_SHAPE(6, 1300)), input(ctx, 2, TG_SHAPE(1300, 8))),
                    input(ctx, 12, TG_SHAPE(6, 1)));
    return;
  case 36: { /* a sum that ends with its row */
    TgTensor *i = tg_reshape(tg_arange(ctx, 0, 24), TG_SHAPE(24, 1, 1));
    TgTensor *k = tg_reshape(tg_arange(ctx, 0, 20), TG_SHAPE(1, 1, 20));
    TgTensor *xy = tg_mul(input(ctx, 1, TG_SHAPE(24, 1, 20)), input(ctx, 2, TG_SHAPE(1, 18, 20)));
    out[0] = tg_sum(tg_where(tg_le(k, i), xy, tg_zeros_like(xy)), .axis = TG_AXES(2));
    return;
  }
  case 37: /* small images: a tile is of the batch */
    out[0] = tg_conv2d(input(ctx, 5, TG_SHAPE(9, 5, 4, 5)), input(ctx, 6, TG_SHAPE(20, 5, 3, 3)),
                       .padding = TG_SIZES(1, 1));
    return;
  default: { /* a gradient: the sum goes over the batch and the places */
    TgTensor *x = input(ctx, 5, TG_SHAPE(2, 3, 6, 7)), *w = input(ctx, 6, TG_SHAPE(4, 3, 3, 3));
    TgTensor *y = tg_conv2d(x, w, .padding = TG_SIZES(1, 1));
    if (tg_gradient(tg_sum(tg_mul(y, input(ctx, 8, TG_SHAPE(2, 4, 6, 7)))), &w, 1, &out[0])) out[0] = NULL;
    return;
  }
  }
}

static bool is_attention(int which) { return which == 32 || which == 33; }

static double tolerance(int which) { return which == 23 ? 2e-3 : which == 24 ? 2e-2 : 2e-5; }

/* In the order that a list has to have, mostly. */
static void random_list(char *s, size_t size, bool gpu) {
  static const char *const outer[] = {"TILE", "TILE", "STAGE", "SWAP"};
  const char *const inner[] = {
      "UPCAST", "VEC", "UNROLL", "GROUP", gpu ? "LOCAL" : "THREAD", gpu ? "LOCAL" : "VEC", "UPCASTTOP"};
  static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 14, 16, 20, 32, 48, 50, 64};

  enum { NSIZE = sizeof sizes / sizeof *sizes };

  int nouter = draw(4), ninner = draw(4) + !nouter, many = nouter + ninner, least = 0;
  *s = 0;
  for (int n = 0; n < many; n++) {
    bool out = draw(20) ? n < nouter : draw(2);
    int kind = out ? least + draw(4 - least) : 0, at = (int)strlen(s);
    if (out && kind == 3 && draw(8)) least = 3;
    const char *op = out ? outer[kind] : inner[draw(7)], *comma = at ? ", " : "";
    if (out && kind == 2)
      snprintf(s + at, size - (size_t)at, "%sSTAGE p%d", comma, draw(8) ? 1 + draw(2) : draw(5));
    else if (out && kind == 3)
      snprintf(s + at, size - (size_t)at, "%sSWAP r%d r%d", comma, draw(5), draw(5));
    else
      snprintf(s + at, size - (size_t)at, "%s%s r%d %d", comma, op, draw(draw(4) ? 4 : 7),
               sizes[draw(NSIZE)]);
  }
}

/* A tile that is transposed in registers, where the output lies along another axis than the lanes. */
static void relane_list(char *s, size_t size) {
  static const int sizes[] = {4, 5, 7, 8, 14, 16, 20, 32, 48};
  int a = draw(3), b = (a + 1 + draw(2)) % 3;
  snprintf(s, size, "UPCAST r%d %d, VEC r%d %d", a, sizes[draw(9)], b, sizes[draw(9)]);
}

static void append(char *s, size_t size, const char *op, char letter, int of, int n) {
  size_t at = strlen(s);
  snprintf(s + at, size - at, n ? "%s%s %c%d %d" : "%s%s %c%d", at ? ", " : "", op, letter, of, n);
}

/* Blocks of the outputs and of the reduction, what they read in shared memory, tiles and threads in a block.
 */
static void block_list(char *s, size_t size) {
  static const int blocks[] = {1, 2, 4, 5, 6, 8, 10, 12, 16, 32}, tiles[] = {2, 3, 4, 8},
                   threads[] = {1, 2, 3, 4, 5, 8, 16};
  int loops = draw(2) ? 3 : 2 + draw(4), reduces = loops > 3 ? 3 : loops - 1;
  for (int r = 0; r < loops; r++)
    if (draw(5) > 1) append(s, size, "TILE", 'r', r, blocks[draw(10)]);
  int staged = 1 + draw(2);
  append(s, size, "STAGE", 'p', staged, 0);
  if (draw(4)) append(s, size, "STAGE", 'p', 3 - staged, 0);
  if (!draw(4)) append(s, size, "TILE", 'r', draw(loops), blocks[draw(10)]);
  if (!draw(4)) append(s, size, "DOUBLE_BUFFER", 'r', draw(loops), 2);
  for (int r = 0, shapes = 1 + draw(3); r < shapes; r++)
    append(s, size, draw(2) ? "UPCAST" : "VEC", 'r', draw(reduces), tiles[draw(4)]);
  for (int r = 0; r < 2; r++)
    if (draw(4)) append(s, size, "LOCAL", 'r', draw(reduces), threads[draw(7)]);
  if (!draw(3)) append(s, size, draw(2) ? "UNROLL" : "GROUP", 'r', draw(loops), threads[draw(7)]);
}

/* A product on matrix units: blocks and copies before, tiles of them and warps after. */
static void units_list(char *s, size_t size, bool window) {
  static const int blocks[] = {1, 8, 16, 24, 32, 48, 64}, tiles[] = {2, 3, 4}, warps[] = {1, 2, 3, 4};
  int loops = window ? 7 : 3, row = window, column = window ? 3 : 1, depth = window ? 4 : 2;
  for (int r = 0; r < loops; r++)
    if (draw(3)) append(s, size, "TILE", 'r', r, window && r != row && r != depth ? 1 : blocks[draw(7)]);
  for (int p = 1; p < 3 + !draw(4); p++)
    if (draw(3)) append(s, size, "STAGE", 'p', p, 0);
  size_t at = strlen(s);
  bool swap = !draw(6);
  if (swap) snprintf(s + at, size - at, "%sSWAP r%d r%d", at ? ", " : "", row, column), at = strlen(s);
  if (swap != !draw(8)) row = row + column, column = row - column, row -= column;
  snprintf(s + at, size - at, "%sTC r%d r%d", at ? ", " : "", row, column);
  if (!draw(3)) append(s, size, "DOUBLE_BUFFER", 'r', depth, 2);
  for (int r = 0; r < 2; r++)
    if (draw(2)) append(s, size, draw(8) ? "UPCAST" : "VEC", 'r', draw(2) ? row : column, tiles[draw(3)]);
  for (int r = 0; r < 2; r++)
    if (draw(2)) append(s, size, "LOCAL", 'r', draw(2) ? row : column, warps[draw(4)]);
  if (!draw(3)) append(s, size, draw(6) ? "UNROLL" : "GROUP", 'r', depth, 2);
}

/* The same for tiles of a CPU. */
static void panels_list(char *s, size_t size, int which) {
  static const int blocks[] = {1, 5, 8, 16, 24, 32, 48}, lanes[] = {4, 8, 16, 32, 48};

  static const struct {
    int row, column, outer, depth;
  } loops[NPANELS] = {{0, 1, 1, 2}, {0, 1, 0, 2}, {4, 2, 4, 3}, {1, 2, 0, 3}, {1, 3, 2, 4},
                      {0, 1, 1, 2}, {0, 1, 0, 2}, {1, 3, 2, 4}, {0, 1, 1, 2}};

  int row = loops[which].row, column = loops[which].column, outer = loops[which].outer;
  int any[] = {row, column, outer, 0, loops[which].depth};
  for (int i = 0; i < 5; i++)
    if (!draw(4)) append(s, size, "TILE", 'r', any[draw(5)], blocks[draw(7)]);
  for (int p = 1; p < 3; p++)
    if (!draw(3)) append(s, size, "STAGE", 'p', p, 0);
  if (!draw(4)) append(s, size, "TILE", 'r', any[draw(5)], blocks[draw(7)]);
  size_t at = strlen(s);
  bool between = outer > row && outer != column;
  if (!draw(between ? 2 : 8)) {
    snprintf(s + at, size - at, "%sSWAP r%d r%d", at ? ", " : "", row, between ? outer : column);
    at = strlen(s);
  }
  bool turned = !draw(8);
  snprintf(s + at, size - at, "%sTC r%d r%d", at ? ", " : "", turned ? column : row, turned ? row : column);
  if (!draw(3)) append(s, size, "UPCAST", 'r', draw(2) ? row : column, 2 + draw(4));
  if (draw(4)) append(s, size, "VEC", 'r', draw(4) ? column : row, lanes[draw(5)]);
  if (!draw(6)) append(s, size, draw(2) ? "UNROLL" : "GROUP", 'r', loops[which].depth, 2 + draw(8));
  if (!draw(3)) append(s, size, "THREAD", 'r', any[draw(4)], 2 + draw(3));
}

typedef struct Numbers {
  int64_t n;
  int packed; /* kernels whose copies were kept */
  double v[2 * MOST];
} Numbers;

static TgStatus captured(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor *made[2];
  (void)in, (void)nin;
  kept.next = 0;
  program(ctx, *(int *)user, made);
  for (int i = 0; i < nout; i++)
    out[i] = made[i];
  return TG_OK;
}

/* Replays keep the copies that kernels make of the inputs. */
static TgStatus replayed(TgContext *ctx, int which, TgTensor *out[2]) {
  int n = out[1] ? 2 : 1;
  TgJit *jit = tg_jit(ctx, captured, &which);
  TgStatus s = TG_OK;
  for (int i = 0; i < 4 && !s; i++) {
    out[0] = out[1] = NULL;
    s = tg_jit_run(jit, NULL, 0, out, n);
  }
  return s;
}

/* False: the list was refused, with a reason. */
static bool numbers(const char *dev, const char *opts, int which, Numbers *to) {
  setenv("TG_DEV", dev, 1), setenv("TG_SPEC", "1", 1);
  if (opts)
    setenv("TG_OPTS", opts, 1);
  else
    unsetenv("TG_OPTS"), setenv("TG_NOOPT", "1", 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_NOOPT"), unsetenv("TG_OPTS"), unsetenv("TG_SPEC");
  assert_non_null(ctx);
  TgTensor *out[2];
  kept.n = kept.next = 0;
  if (open_axes.size) {
    open_axes.n = tg_variable(ctx, "n", draw(2), open_axes.size + 5);
    assert_int_equal(tg_variable_bind(open_axes.n, open_axes.size), TG_OK);
  }
  program(ctx, which, out);
  to->n = 0;
  if (open_axes.size && !out[0]) { /* this size has to be a number */
    tg_close(ctx);
    return false;
  }
  TgStatus s = !out[0]    ? TG_ERR_STATE
               : !kept.on ? tg_realize_many(out, out[1] ? 2 : 1)
                          : replayed(ctx, which, out);
  for (int i = 0; i < 2 && out[i] && !s; i++) {
    int64_t n = tg_numel(out[i]);
    assert_in_range(n, 1, MOST);
    s = tg_read_f64(out[i], to->v + to->n, (size_t)n);
    to->n += n;
  }
  const char *why = tg_errmsg(ctx);
  bool refused =
      s == TG_ERR_VALUE && opts && !strncmp(why, "opts: ", 6) && strlen(why) > 20 && strchr(why + 6, ':');
  if (s && !refused) fail_msg("program %d on %s, opts \"%s\": %s", which, dev, opts ? opts : "", why);
  if (refused && getenv("SHOW")) fprintf(stderr, "  refused: %s\n", why);
  to->packed = (int)tg_counters(ctx).packed;
  tg_close(ctx);
  return !refused;
}

static void compare(const Numbers *want, const Numbers *got, int which, const char *dev, const char *list) {
  assert_int_equal(want->n, got->n);
  for (int64_t k = 0; k < want->n; k++)
    if (!(fabs(got->v[k] - want->v[k]) <= tolerance(which) * fmax(1, fabs(want->v[k]))))
      fail_msg("program %d on %s, opts \"%s\": element %d is %.9g, not %.9g", which, dev, list, (int)k,
               got->v[k], want->v[k]);
}

/* By the table of fragments, and, emulated, as PTX draws them. UNITS_ON: on this device alone. */
static void test_lists_for_units(void **state) {
  (void)state;
  setenv("TG_EMU", "1", 1);
  static Numbers want, got;
  int taken = 0, rounds = getenv("LISTS") ? atoi(getenv("LISTS")) : 30;
  for (int which = NPROGRAM; which < NPROGRAM + NUNITS; which++) {
    numbers("INTERP", NULL, which, &want);
    for (int i = 0; i < rounds; i++) {
      char list[256] = "";
      units_list(list, sizeof list, which == NPROGRAM + 4);
      if (getenv("SHOW")) fprintf(stderr, "%d \"%s\"\n", which, list);
      const char *dev = i % 6 == 5 ? "CUDA" : i % 3 ? "INTERP:CUDA" : "INTERP:METAL";
      if (getenv("UNITS_ON")) dev = getenv("UNITS_ON");
      if (!numbers(dev, list, which, &got)) continue;
      taken++;
      compare(&want, &got, which, dev, list);
    }
  }
  if (getenv("LISTS")) print_message("matrix units: %d of %d lists were taken\n", taken, rounds * NUNITS);
  if (taken * 15 < rounds * NUNITS) fail_msg("only %d of %d lists were taken", taken, rounds * NUNITS);
}

/* Where this CPU has tiles or dot products they compute too. f32 sums of the unit are in another order than
 * plain ones. */
static const char *panels_device(int i) {
  bool here = (processor_tiles() && !tg_os_default.tiles_ask()) || processor_dots() == DOTS_BF16;
  return i % 5 == 4 && here ? "CPU" : i % 2 ? "INTERP:AMX" : "INTERP:DOT";
}

static void test_lists_for_panels(void **state) {
  (void)state;
  static Numbers want, got;
  static int of[NPANELS];
  int rounds = getenv("LISTS") ? atoi(getenv("LISTS")) : 40;
  for (int which = 0; which < NPANELS; which++) {
    numbers("INTERP", NULL, NPROGRAM + NUNITS + which, &want);
    for (int i = 0; i < rounds; i++) {
      char list[256] = "";
      panels_list(list, sizeof list, which);
      if (getenv("SHOW")) fprintf(stderr, "%d \"%s\"\n", which, list);
      const char *dev = panels_device(i);
      if (getenv("UNITS_ON")) dev = getenv("UNITS_ON");
      if (!numbers(dev, list, NPROGRAM + NUNITS + which, &got)) continue;
      of[which]++;
      compare(&want, &got, NPROGRAM + NUNITS + which, dev, list);
    }
    if (getenv("LISTS"))
      print_message("panels, program %d: %d of %d lists were taken\n", which, of[which], rounds);
    if (rounds >= 40 && !of[which]) fail_msg("no list of program %d was taken", which);
  }
}

/* Captured: what copies of the inputs there are is made once, before the second replay. */
static void test_lists_prepacked(void **state) {
  (void)state;
  static Numbers want, got;
  int taken = 0, packed = 0, rounds = getenv("LISTS") ? atoi(getenv("LISTS")) : 20;
  for (int which = 0; which < NPROGRAM + NUNITS + NPANELS; which++) {
    bool units = which >= NPROGRAM && which < NPROGRAM + NUNITS, makes = is_attention(which);
    if (units || makes || which == 27 || which == 28) continue; /* what assigns to its inputs, or makes one */
    numbers("INTERP", NULL, which, &want);
    for (int i = 0; i < rounds; i++) {
      char list[256] = "";
      bool panels = which >= NPROGRAM;
      const char *dev = panels ? panels_device(i) : i % 10 == 9 ? "CPU" : "INTERP:C";
      if (panels)
        panels_list(list, sizeof list, which - NPROGRAM - NUNITS);
      else
        random_list(list, sizeof list, false);
      if (getenv("SHOW")) fprintf(stderr, "%s %d \"%s\"\n", dev, which, list);
      kept.on = true;
      bool is = numbers(dev, list, which, &got);
      kept.on = false;
      if (!is) continue;
      taken++;
      packed += got.packed > 0;
      compare(&want, &got, which, dev, list);
    }
  }
  if (getenv("LISTS")) print_message("prepacked: %d lists were taken, %d kept copies\n", taken, packed);
  if (rounds >= 20 && packed < 20) fail_msg("only %d of %d lists kept copies", packed, taken);
}

/* LISTS: how many for each program instead of `rounds`; ONLY: for one program */
static void lists_on(const char *dev, int rounds) {
  static Numbers want, got;
  int taken = 0, all = 0;
  bool gpu = strstr(dev, "CUDA") || strstr(dev, "METAL");
  if (getenv("LISTS")) rounds = atoi(getenv("LISTS"));
  for (int which = 0; which < NPROGRAM; which++) {
    if (getenv("ONLY") && atoi(getenv("ONLY")) != which) continue;
    numbers("INTERP", NULL, which, &want);
    for (int i = 0; i < rounds; i++, all++) {
      char list[256] = "";
      size_t at = 0;
      if (is_attention(which) && draw(2)) /* in blocks of keys */
        at = (size_t)snprintf(list, sizeof list, "ONLINE r%d %d, ", 4 + draw(5), 1 + draw(45));
      if (gpu && i % 2)
        block_list(list + at, sizeof list - at);
      else if (i % 8 == 6 + !gpu)
        relane_list(list + at, sizeof list - at);
      else
        random_list(list + at, sizeof list - at, gpu);
      if (getenv("SHOW")) fprintf(stderr, "%s %d \"%s\"\n", dev, which, list);
      if (!numbers(dev, list, which, &got)) continue;
      taken++;
      if (getenv("SHOW")) fprintf(stderr, "  taken: %s\n", list);
      compare(&want, &got, which, dev, list);
    }
  }
  if (getenv("LISTS")) print_message("%s: %d of %d lists were taken\n", dev, taken, all);
  if (all > 500 && !getenv("ONLY") && taken * 10 < all)
    fail_msg("%s: only %d of %d lists were taken", dev, taken, all);
}

/* Loops of unknown length. */
static void test_lists_with_variable(void **state) {
  (void)state;
  static const char *const devices[] = {"INTERP:C", "INTERP:C",     "INTERP:CUDA",
                                        "INTERP:C", "INTERP:METAL", "CPU"};
  static Numbers want, got;
  int taken = 0, all = 0, rounds = getenv("LISTS") ? atoi(getenv("LISTS")) : 6;
  for (int which = 0; which < NPROGRAM; which++) {
    if (getenv("ONLY") && atoi(getenv("ONLY")) != which) continue;
    open_axes.nseen = 0;
    numbers("INTERP", NULL, which, &want);
    for (int s = 0; s < open_axes.nseen; s++)
      for (int i = 0; i < rounds; i++, all++) {
        const char *dev = devices[i % (int)(sizeof devices / sizeof *devices)];
        bool gpu = strstr(dev, "CUDA") || strstr(dev, "METAL");
        char list[256] = "";
        if (gpu && draw(2))
          block_list(list, sizeof list);
        else
          random_list(list, sizeof list, gpu);
        open_axes.size = open_axes.seen[s];
        if (getenv("SHOW")) fprintf(stderr, "%s %d, %d open \"%s\"\n", dev, which, (int)open_axes.size, list);
        bool is = numbers(dev, list, which, &got);
        open_axes.size = 0;
        if (!is) continue;
        taken++;
        if (getenv("SHOW")) fprintf(stderr, "  taken: %s\n", list);
        compare(&want, &got, which, dev, list);
      }
  }
  if (getenv("LISTS")) print_message("with a variable: %d of %d lists were taken\n", taken, all);
  if (all > 500 && taken * 20 < all) fail_msg("only %d of %d lists were taken", taken, all);
}

static void test_lists_for_c(void **state) {
  (void)state;
  lists_on("INTERP:C", 60);
}

static void test_lists_on_cpu(void **state) {
  (void)state;
  lists_on("CPU", 2);
}

static void test_lists_for_cuda(void **state) {
  (void)state;
  lists_on("INTERP:CUDA", 60);
}

/* Lists that were once wrong. */
static void test_lists_found(void **state) {
  (void)state;

  static const struct {
    const char *dev;
    int which;
    const char *list;
  } found[] = {
      {"INTERP:METAL", 9, "UPCAST r2 7, GROUP r4 3, UNROLL r3 2"},
      {"INTERP:CUDA", 25, "TILE r2 4, GROUP r2 6"},
      {"INTERP:CUDA", 28, "LOCAL r1 16, GROUP r2 50"},
      {"INTERP:CUDA", NPROGRAM + 1, "TC r0 r1, UNROLL r2 2"},
      {"INTERP:CUDA", 32, "LOCAL r3 4, UPCAST r1 64"},
      {"INTERP:C", 10, "TILE r3 5, STAGE p1"},
      {"INTERP:C", 2, "TILE r1 16, THREAD r1 48, VEC r0 50"},
      {"INTERP:C", 37, "TILE r4 2, STAGE p1, TILE r1 16, STAGE p2, UPCAST r0 4, VEC r1 16"},
      {"INTERP:C", 37, "STAGE p1, UPCAST r0 5, VEC r1 16"},
      {"INTERP:C", 37, "TILE r0 6, STAGE p1, UPCAST r0 4, VEC r1 32"},
      {"INTERP:C", 37, "TILE r2 2, STAGE p1, UPCASTTOP r0 4, UPCAST r3 4, VEC r1 16"},
      {"INTERP:C", 37, "STAGE p1, UPCAST r0 9, GROUP r4 4"},
      {"CPU", 37, "TILE r2 1, STAGE p1, TILE r1 16, SWAP r0 r1, UPCAST r0 4, VEC r1 16"},
      {"INTERP:AMX", NPROGRAM + NUNITS + 8, "TILE r1 32, TILE r2 5, TILE r0 16, TC r0 r1, VEC r1 32"}};

  static Numbers want, got;
  for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
    numbers("INTERP", NULL, found[i].which, &want);
    if (!numbers(found[i].dev, found[i].list, found[i].which, &got))
      fail_msg("program %d on %s, opts \"%s\": refused", found[i].which, found[i].dev, found[i].list);
    compare(&want, &got, found[i].which, found[i].dev, found[i].list);
  }
}

enum { KEYS = 40, WIDE = 6 };

/* Attention over queries, keys and values among which are NaN and infinities. */
static void special_attention(const char *opts, bool causal, float *out) {
  float q[KEYS * WIDE], k[KEYS * WIDE], v[KEYS * WIDE];
  for (int i = 0; i < KEYS * WIDE; i++)
    q[i] = (float)(i * 5 % 17) / 8 - 1, k[i] = (float)(i * 3 % 19) / 9 - 1, v[i] = (float)(i * 7 % 23) / 11;
  q[3 * WIDE] = NAN, q[5 * WIDE + 1] = INFINITY, q[9 * WIDE] = -INFINITY;
  k[20 * WIDE + 1] = INFINITY, k[30 * WIDE] = NAN;
  v[33 * WIDE + 2] = NAN, v[12 * WIDE + 3] = INFINITY;
  setenv("TG_DEV", "INTERP:C", 1);
  setenv(opts ? "TG_OPTS" : "TG_NOOPT", opts ? opts : "1", 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_OPTS"), unsetenv("TG_NOOPT");
  TgTensor *x[3] = {tg_from(ctx, q, TG_F32, TG_SHAPE(1, KEYS, WIDE)),
                    tg_from(ctx, k, TG_F32, TG_SHAPE(1, KEYS, WIDE)),
                    tg_from(ctx, v, TG_F32, TG_SHAPE(1, KEYS, WIDE))};
  TgTensor *y = tg_scaled_dot_product_attention(x[0], x[1], x[2], .causal = causal);
  if (tg_read(y, out, KEYS * WIDE * sizeof *out)) fail_msg("%s: %s", opts ? opts : "", tg_errmsg(ctx));
  tg_close(ctx);
}

/* In blocks of keys, NaN and infinities stand where they do without. */
static void test_online_of_specials(void **state) {
  (void)state;

  static const char *const lists[] = {"ONLINE r%d 8", "ONLINE r%d 7, VEC r1 16", "ONLINE r%d 1",
                                      "ONLINE r%d 13, TILE r1 8, VEC r1 8"};

  float want[KEYS * WIDE], got[KEYS * WIDE];
  for (int causal = 0; causal < 2; causal++)
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
      char list[128];
      snprintf(list, sizeof list, lists[i], causal ? 4 : 3); /* the sum over keys */
      special_attention(NULL, causal, want), special_attention(list, causal, got);
      for (int e = 0; e < KEYS * WIDE; e++) {
        bool same = isnan(want[e])   ? isnan(got[e])
                    : isinf(want[e]) ? got[e] == want[e]
                                     : fabsf(got[e] - want[e]) <= 2e-6f * fmaxf(1, fabsf(want[e]));
        if (!same)
          fail_msg("%s%s: element %d, %d is %g, not %g", list, causal ? ", causal" : "", e / WIDE, e % WIDE,
                   (double)got[e], (double)want[e]);
      }
    }
}

static void test_lists_for_metal(void **state) {
  (void)state;
  lists_on("INTERP:METAL", 30);
}

/* The same kernel and list with other numbers of its ranges: a kernel may have any number of loops. */
static bool numbered(const char *dev, int64_t first, const char *const list[3], const int64_t *of,
                     const int *size, float *out) {
  char text[1024], opts[128] = "";
  long long a = (long long)first, b = a + 1, c = a + 2;
  for (int i = 0; i < 3; i++)
    snprintf(opts + strlen(opts), sizeof opts - strlen(opts), "%s%s r%lld %d", i ? ", " : "", list[i],
             a + (long long)of[i], size[i]);
  snprintf(
      text, sizeof text,
      "p0 = PARAM[f32, 0, 60](6, 10)\np1 = PARAM[f32, 1, 12000](6, 2000)\np2 = PARAM[f32, 2, 20000](2000, "
      "10)\n"
      "i = RANGE[%lld, GLOBAL](6)\nj = RANGE[%lld, GLOBAL](10)\nk = RANGE[%lld, REDUCE](2000)\n"
      "s = SINK(STORE(INDEX(p0, i, j), REDUCE[ADD](INDEX(p1, i, k) * INDEX(p2, k, j), k), i, j))\nroots s\n",
      a, b, c);
  setenv("TG_DEV", dev, 1), setenv("TG_OPTS", opts, 1), setenv("TG_SPEC", "1", 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_OPTS"), unsetenv("TG_SPEC");
  TgTensor *args[3] = {input(ctx, 3, TG_SHAPE(6, 10)), input(ctx, 1, TG_SHAPE(6, 2000)),
                       input(ctx, 2, TG_SHAPE(2000, 10))};
  TgStatus s = tg_kernel(ctx, text, args, 3);
  if (getenv("SHOW")) fprintf(stderr, "%s: %s\n", opts, s ? tg_errmsg(ctx) : "");
  if (s && strncmp(tg_errmsg(ctx), "opts: ", 6))
    fail_msg("ranges from %lld, \"%s\": %s", a, opts, tg_errmsg(ctx));
  if (!s) s = tg_read(args[0], out, 60 * sizeof *out);
  tg_close(ctx);
  return !s;
}

static void test_many_ranges(void **state) {
  (void)state;
  static const char *const shapes[] = {"UPCAST", "VEC", "UNROLL", "GROUP", "LOCAL"};
  int taken = 0;
  for (int round = 0; round < 60; round++) {
    const char *dev = round % 2 ? "INTERP:C" : "INTERP:CUDA", *list[3];
    float low[60], high[60];
    int64_t of[3];
    int size[3];
    for (int i = 0; i < 3; i++) {
      of[i] = (i + round) % 3, size[i] = 2 + draw(14);
      list[i] = of[i] == 2 ? shapes[2 + draw(2)] : shapes[(int[]){0, 1, 4}[draw(round % 2 ? 2 : 3)]];
    }
    bool ok = numbered(dev, 0, list, of, size, low);
    assert_int_equal(numbered(dev, 100, list, of, size, high), ok);
    if (ok) assert_memory_equal(low, high, sizeof low), taken++;
  }
  assert_in_range(taken, 10, 60);
}

static void test_lists_refused(void **state) {
  (void)state;

  static const struct {
    const char *list, *says;
  } wrong[] = {{"WIDEN r0 4", "none of"},
               {"VEC 0 4", "needs a range"},
               {"VEC r0", "needs a range"},
               {"VEC r0 0", "needs a range"},
               {"SWAP r0 1", "needs two ranges"},
               {"VEC r40 4", "no such loop"},
               {"UNROLL r0 4", "not a loop of a reduction"},
               {"GROUP r2 2000", "1024 lanes at most"},
               {"LOCAL r0 4", "no blocks of threads"},
               {"TC r0 1", "needs two ranges"},
               {"TC r0 r1", "no matrix units"}};

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("TG_DEV", "INTERP:C", 1), setenv("TG_OPTS", wrong[i].list, 1);
    TgContext *ctx = tg_open(NULL);
    unsetenv("TG_OPTS");
    TgTensor *out[2];
    program(ctx, 0, out);
    assert_int_equal(tg_realize(out[0]), TG_ERR_VALUE);
    if (!strstr(tg_errmsg(ctx), wrong[i].says)) fail_msg("\"%s\": %s", wrong[i].list, tg_errmsg(ctx));
    tg_close(ctx);
  }
}

int main(void) {
  if (getenv("SEED")) seed = (unsigned)atoi(getenv("SEED"));
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST"));
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists_for_c),         cmocka_unit_test(test_lists_on_cpu),
      cmocka_unit_test(test_lists_with_variable), cmocka_unit_test(test_lists_for_metal),
      cmocka_unit_test(test_lists_for_cuda),      cmocka_unit_test(test_lists_for_units),
      cmocka_unit_test(test_lists_for_panels),    cmocka_unit_test(test_lists_prepacked),
      cmocka_unit_test(test_lists_found),         cmocka_unit_test(test_online_of_specials),
      cmocka_unit_test(test_many_ranges),         cmocka_unit_test(test_lists_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
