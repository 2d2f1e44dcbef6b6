/* test_attention.c: scaled dot product attention against plain loops in f64: odd sizes, masks of truth values
 * and of numbers, causal, rows without a key, NaN behind the mask; and rows too long to be kept, which go in
 * blocks of keys. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

typedef enum Mask { MASK_NONE, MASK_CAUSAL, MASK_BOOL, MASK_BOTH, MASK_FLOAT } Mask;

typedef struct Case {
  int heads, queries, keys, wide, out; /* wide: of a query and a key; out: of a value */
  Mask mask;
  float *q, *k, *v, *added; /* added: of MASK_FLOAT */
  bool *holds;              /* of MASK_BOOL */
} Case;

static unsigned seed = 1;

static unsigned draw(unsigned n) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

static float *numbers(int n) {
  float *x = malloc((size_t)n * sizeof *x);
  assert_non_null(x);
  for (int i = 0; i < n; i++)
    x[i] = (float)draw(4001) / 1000 - 2;
  return x;
}

static void case_open(Case *c) {
  c->q = numbers(c->heads * c->queries * c->wide), c->k = numbers(c->heads * c->keys * c->wide);
  c->v = numbers(c->heads * c->keys * c->out), c->added = numbers(c->queries * c->keys);
  c->holds = malloc((size_t)(c->queries * c->keys) * sizeof *c->holds);
  assert_non_null(c->holds);
  for (int i = 0; i < c->queries * c->keys; i++)
    c->holds[i] = draw(3) && i / c->keys != c->queries / 2; /* one query has no key */
  for (int i = 0; i < c->queries * c->keys; i++)
    if (!draw(7)) c->added[i] = -INFINITY;
  for (int i = 0; i < c->queries; i++)
    c->added[i * c->keys] = 0;
  if (c->mask == MASK_CAUSAL && c->keys > c->queries)
    c->v[(c->keys - 1) * c->out] = NAN; /* seen by no query */
}

static void case_close(Case *c) { free(c->q), free(c->k), free(c->v), free(c->added), free(c->holds); }

static bool sees(const Case *c, int query, int key) {
  if ((c->mask == MASK_CAUSAL || c->mask == MASK_BOTH) && key > query) return false;
  return (c->mask != MASK_BOOL && c->mask != MASK_BOTH) || c->holds[query * c->keys + key];
}

/* Row `query` of a head, as its definition says; a row without a key is 0. */
static void reference(const Case *c, int head, int query, double *y) {
  double *score = malloc((size_t)c->keys * sizeof *score), most = -INFINITY, sum = 0;
  assert_non_null(score);
  for (int j = 0; j < c->keys; j++) {
    double dot = 0;
    for (int d = 0; d < c->wide; d++)
      dot +=
          (double)c->q[(head * c->queries + query) * c->wide + d] * c->k[(head * c->keys + j) * c->wide + d];
    score[j] = dot / sqrt(c->wide) + (c->mask == MASK_FLOAT ? c->added[query * c->keys + j] : 0);
    if (sees(c, query, j)) most = fmax(most, score[j]);
  }
  for (int e = 0; e < c->out; e++)
    y[e] = 0;
  for (int j = 0; j < c->keys; j++) {
    if (!sees(c, query, j)) continue;
    double weight = exp(score[j] - most);
    sum += weight;
    for (int e = 0; e < c->out; e++)
      y[e] += weight * c->v[(head * c->keys + j) * c->out + e];
  }
  for (int e = 0; e < c->out; e++)
    y[e] = sum > 0 ? y[e] / sum : 0;
  free(score);
}

/* Every `step`th query is compared. */
static void compare(TgContext *ctx, Case *c, int step) {
  case_open(c);
  TgTensor *q = tg_from(ctx, c->q, TG_F32, TG_SHAPE(c->heads, c->queries, c->wide));
  TgTensor *k = tg_from(ctx, c->k, TG_F32, TG_SHAPE(c->heads, c->keys, c->wide));
  TgTensor *v = tg_from(ctx, c->v, TG_F32, TG_SHAPE(c->heads, c->keys, c->out)), *mask = NULL;
  if (c->mask == MASK_BOOL || c->mask == MASK_BOTH)
    mask = tg_from(ctx, c->holds, TG_BOOL, TG_SHAPE(c->queries, c->keys));
  if (c->mask == MASK_FLOAT) mask = tg_from(ctx, c->added, TG_F32, TG_SHAPE(c->queries, c->keys));
  bool causal = c->mask == MASK_CAUSAL || c->mask == MASK_BOTH;
  TgTensor *y = tg_scaled_dot_product_attention(q, k, v, .causal = causal, .mask = mask);
  size_t n = (size_t)(c->heads * c->queries * c->out);
  float *got = malloc(n * sizeof *got);
  double *want = malloc((size_t)c->out * sizeof *want);
  assert_true(got && want);
  if (tg_read(y, got, n * sizeof *got)) fail_msg("%s", tg_errmsg(ctx));
  for (int row = 0; row < c->heads * c->queries; row += step) {
    reference(c, row / c->queries, row % c->queries, want);
    for (int e = 0; e < c->out; e++)
      if (!(fabs(got[row * c->out + e] - want[e]) <= 3e-5))
        fail_msg("%d heads, %d queries of %d, %d keys, values of %d, mask %d: row %d, %d is %.8g, not %.8g",
                 c->heads, c->queries, c->wide, c->keys, c->out, (int)c->mask, row, e,
                 (double)got[row * c->out + e], want[e]);
  }
  free(got), free(want);
  case_close(c);
}

static void test_shapes(void **state) {
  (void)state;
  TgContext *ctx = tg_open(NULL);
  assert_int_equal(tg_error(ctx), TG_OK);
  for (int i = 0; i < 20; i++) {
    int most = i % 4 ? 40 : 150;
    Case c = {.heads = 1 + (int)draw(3), .queries = 1 + (int)draw((unsigned)most), .mask = (Mask)(i % 5)};
    c.keys = 1 + (int)draw((unsigned)most), c.wide = 1 + (int)draw(20), c.out = 1 + (int)draw(20);
    TG_SCOPE(ctx) compare(ctx, &c, 1);
  }
  assert_int_equal(tg_counters(ctx).fallbacks, 0);
  tg_close(ctx);
}

static void test_long_rows(void **state) {
  (void)state;
  TgContext *ctx = tg_open(NULL);
  assert_int_equal(tg_error(ctx), TG_OK);
  for (int causal = 0; causal < 2; causal++) {
    Case c = {.heads = 1,
              .queries = 2100 + 47 * causal,
              .wide = 8,
              .out = 6,
              .mask = causal ? MASK_CAUSAL : MASK_NONE};
    c.keys = c.queries;
    TG_SCOPE(ctx) compare(ctx, &c, 31);
  }
  assert_int_equal(tg_counters(ctx).fallbacks, 0);
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_long_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
