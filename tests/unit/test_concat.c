/* test_concat.c: values that are parts of another one are made where that has them (src/schedule/concat.c). In:
 * concatenations of values that are memory. Out: their numbers, against a copy of each part by plain loops, and
 * how many kernels that takes: none copies. On the CPU, and on the interpreter as each device would have it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tg.h>

enum { MOST = 8192, MOST_PARTS = 40 };

static TgContext *C;
static bool at_once; /* what a program begins with is memory */
static int copies;   /* kernels: where memory is aligned, what does not begin so is copied */

static int opened(void **state, const char *device) {
  (void)state;
  copies = strchr(device, ':') != NULL;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 3});
  return C && !tg_error(C) ? 0 : -1;
}

static int open_cpu(void **state) { return opened(state, "CPU"); }

static int open_interp(void **state) { return opened(state, "INTERP"); }

static int open_cuda(void **state) { return opened(state, "INTERP:CUDA"); }

static int open_metal(void **state) { return opened(state, "INTERP:METAL"); }

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static TgTensor *counted(int n, const int64_t *dims, double from) {
  int64_t numel = 1;
  for (int i = 0; i < n; i++)
    numel *= dims[i];
  TgTensor *t = tg_clone(tg_reshape(tg_add_scalar(tg_arange(C, 0, (double)numel), from), n, dims));
  if (at_once && tg_realize(t)) fail_msg("%s", tg_errmsg(C));
  return t;
}

/* Memory of its own: turned within itself, so that no kernel of another one makes it as well. */
static TgTensor *made(TgTensor *x) {
  return tg_contiguous(tg_sub(tg_mul_scalar(x, 3), tg_flip(x, 1, (const int64_t[]){0})));
}

static void numbers_of(TgTensor *t, double *out) {
  if (!t || tg_read_f64(t, out, (size_t)tg_numel(t))) fail_msg("%s", tg_errmsg(C));
}

/* ---- along each axis of parts of each size */
typedef struct Case {
  int n, axis, nparts;
  int64_t dims[4]; /* of the first part; the others are longer along the axis by one each */
  int most;        /* kernels: one for each part, and one that copies */
} Case;

/* What a concatenation of copies on the host gives. */
static void joined_on_host(const Case *k, double **part, double *out) {
  int64_t outer = 1, inner = 1, at = 0;
  for (int d = 0; d < k->n; d++)
    *(d < k->axis ? &outer : &inner) *= d == k->axis ? 1 : k->dims[d];
  for (int64_t o = 0; o < outer; o++)
    for (int i = 0; i < k->nparts; i++)
      for (int64_t e = 0; e < (k->dims[k->axis] + i) * inner; e++)
        out[at++] = part[i][o * (k->dims[k->axis] + i) * inner + e];
}

static void test_axes(void **state) {
  (void)state;

  static const Case cases[] = {
      {1, 0, 2, {7}, 2},           {1, 0, 5, {1}, 5},          {2, 0, 3, {4, 9}, 3},
      {2, 1, 3, {4, 9}, 4},        {2, 1, 2, {1, 64}, 2},      {3, 1, 4, {1, 3, 5}, 4},
      {3, 2, 2, {2, 3, 4}, 3},     {4, 0, 2, {2, 1, 3, 1}, 2}, {4, 1, 3, {1, 8, 4, 4}, 3},
      {4, 1, 2, {1, 16, 5, 7}, 2}, {2, 0, 30, {1, 16}, 30},    {2, 0, 2, {0, 6}, 2}};

  at_once = true;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const Case *k = &cases[i];
    TgTensor *part[MOST_PARTS];
    double *in[MOST_PARTS], want[MOST], got[MOST];
    for (int p = 0; p < k->nparts; p++) {
      int64_t dims[4];
      memcpy(dims, k->dims, sizeof dims);
      dims[k->axis] += p;
      part[p] = made(counted(k->n, dims, 100.0 * p));
      in[p] = calloc(MOST, sizeof *in[p]);
    }
    tg_counters_reset(C);
    TgTensor *all = tg_cat(part, k->nparts, k->axis);
    numbers_of(all, got);
    uint64_t kernels = tg_counters(C).kernels;
    for (int p = 0; p < k->nparts; p++)
      numbers_of(part[p], in[p]);
    joined_on_host(k, in, want);
    for (int64_t e = 0; e < tg_numel(all); e++)
      if (got[e] != want[e])
        fail_msg("case %zu: element %lld is %g, not %g", i, (long long)e, got[e], want[e]);
    if (kernels > (uint64_t)(k->most + copies))
      fail_msg("case %zu: %d kernels, at most %d", i, (int)kernels, k->most + copies);
    for (int p = 0; p < k->nparts; p++)
      free(in[p]);
  }
}

/* ---- parts that others read as well, twice there, of other types, wanted by themselves, within parts */
static void test_parts_of(bool memory) {
  at_once = memory;
  double a[8], b[8], got[64];
  TgTensor *x = made(counted(1, (const int64_t[]){8}, 0)), *y = made(counted(1, (const int64_t[]){8}, 50));
  numbers_of(tg_clone(x), a), numbers_of(tg_clone(y), b);
  x = made(counted(1, (const int64_t[]){8}, 0)), y = made(counted(1, (const int64_t[]){8}, 50));
  TgTensor *sum = tg_contiguous(tg_add(tg_flip(x, 1, (const int64_t[]){0}), y));
  TgTensor *list[] = {x, y, x, sum}, *all = tg_cat(list, 4, 0);
  numbers_of(all, got);
  for (int i = 0; i < 8; i++) {
    assert_true(got[i] == a[i] && got[8 + i] == b[i] && got[16 + i] == a[i]);
    assert_true(got[24 + i] == a[7 - i] + b[i]);
  }

  x = made(counted(1, (const int64_t[]){8}, 0)), y = made(counted(1, (const int64_t[]){8}, 50));
  TgTensor *both[] = {x, y}, *inner = tg_contiguous(tg_cat(both, 2, 0)); /* a concatenation within one */
  TgTensor *z = tg_contiguous(tg_mul(tg_flip(inner, 1, (const int64_t[]){0}), inner));
  TgTensor *outer = tg_cat((TgTensor *[]){inner, z, inner}, 3, 0);
  numbers_of(outer, got);
  for (int i = 0; i < 16; i++) {
    double e = i < 8 ? a[i] : b[i - 8], f = i < 8 ? b[7 - i] : a[15 - i];
    assert_true(got[i] == e && got[16 + i] == e * f && got[32 + i] == e);
  }

  x = made(counted(1, (const int64_t[]){8}, 0)), y = made(counted(1, (const int64_t[]){8}, 50));
  TgTensor *roots[] = {tg_cat((TgTensor *[]){x, y}, 2, 0), x, tg_sum(y)}; /* a part is wanted, too */
  assert_int_equal(tg_realize_many(roots, 3), TG_OK);
  numbers_of(roots[0], got), numbers_of(roots[1], got + 16);
  for (int i = 0; i < 8; i++)
    assert_true(got[i] == a[i] && got[8 + i] == b[i] && got[16 + i] == a[i]);

  x = made(counted(1, (const int64_t[]){8}, 0));
  y = tg_contiguous(
      tg_cast(made(counted(1, (const int64_t[]){8}, 50)), TG_I32)); /* converted, beside a number */
  all = tg_cat((TgTensor *[]){x, y, tg_full(C, TG_SHAPE(3), 9)}, 3, 0);
  numbers_of(all, got);
  for (int i = 0; i < 8; i++)
    assert_true(got[i] == a[i] && got[8 + i] == b[i] && got[16 + i % 3] == 9);
}

static void test_parts(void **state) {
  (void)state;
  test_parts_of(true), test_parts_of(false);
}

/* ---- steps of a loop, each in its row: captured, so that the rows are written again with other numbers; the
 * second row from the end is computed within the whole */
enum { STEPS = 9, WIDTH = 20 };

static TgStatus steps(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  TgTensor *row[STEPS], *h = in[0];
  for (int i = 0; i < STEPS; i++) {
    h = tg_add(tg_mul_scalar(h, 0.5), tg_flip(h, 1, (const int64_t[]){0}));
    row[i] = i == STEPS - 2 ? h : tg_contiguous(h);
    h = row[i];
  }
  out[0] = tg_stack(row, STEPS, 0);
  out[1] = tg_stack((TgTensor *[]){tg_stack(row, STEPS, 0), tg_stack(row, STEPS, 0)}, 2, 1);
  return out[0] && out[1] ? TG_OK : tg_error(c);
}

static void test_steps(void **state) {
  (void)state;
  TgJit *jit = tg_jit(C, steps, NULL);
  for (int run = 0; run < 4; run++) {
    TgTensor *x = counted(1, (const int64_t[]){WIDTH}, run), *out[2] = {NULL};
    double h[WIDTH], next[WIDTH], rows[STEPS * WIDTH], twice[2 * STEPS * WIDTH];
    if (tg_jit_run(jit, &x, 1, out, 2)) fail_msg("%s", tg_errmsg(C));
    numbers_of(x, h), numbers_of(out[0], rows), numbers_of(out[1], twice);
    for (int i = 0; i < STEPS; i++) {
      for (int k = 0; k < WIDTH; k++)
        next[k] = h[k] * 0.5 + h[WIDTH - 1 - k];
      memcpy(h, next, sizeof h);
      for (int k = 0; k < WIDTH; k++) {
        assert_float_equal(rows[i * WIDTH + k], h[k], 1e-3 * fabs(h[k]));
        assert_true(twice[2 * i * WIDTH + k] == rows[i * WIDTH + k]);
        assert_true(twice[(2 * i + 1) * WIDTH + k] == rows[i * WIDTH + k]);
      }
    }
  }
  tg_jit_free(jit);
}

#define ALL(name)                                                                                            \
  cmocka_unit_test_setup_teardown(name, open_cpu, close_it),                                                 \
      cmocka_unit_test_setup_teardown(name, open_interp, close_it),                                          \
      cmocka_unit_test_setup_teardown(name, open_cuda, close_it),                                            \
      cmocka_unit_test_setup_teardown(name, open_metal, close_it)

int main(void) {
  const struct CMUnitTest tests[] = {ALL(test_axes), ALL(test_parts), ALL(test_steps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
