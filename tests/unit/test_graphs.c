/* test_graphs.c: random programs give the same numbers however they are cut into kernels and for whatever
 * target they are lowered. The oracle is INTERP with a kernel per stage and plain loops. FIRST and N choose
 * others: FIRST=1000000 N=5000 build/test_graphs; devices on the command line, others than these;
 * EMU:CUDA is CUDA on the emulated GPU, beside one that is there. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

typedef struct Rng {
  uint64_t s;
  int steps;    /* kinds of them: programs keep their numbers when there are more */
  bool doubles; /* the program's floats are f64 */
} Rng;

static uint32_t next(Rng *r) {
  r->s = r->s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(r->s >> 33);
}

static int below(Rng *r, int n) { return (int)(next(r) % (uint32_t)n); }

#define PICKS_FROM 20000000 /* programs from this number on have sums of which one turn counts */

enum { MAX_NODES = 24, MAX_ROOTS = 5, MAX_ELEMS = 6000 };

typedef struct Outcome {
  int n;
  int64_t numel[MAX_ROOTS];
  double v[MAX_ROOTS][MAX_ELEMS];
  bool f[MAX_ROOTS];
} Outcome;

static uint64_t kernels; /* launched, on all devices */

static bool is_float(const TgTensor *t) { return tg_dtype(t) == TG_F32 || tg_dtype(t) == TG_F64; }

static TgTensor *leaf(TgContext *ctx, Rng *r) {
  static const int64_t dims[] = {1, 2, 3, 4, 5, 7, 8, 16, 17};
  int nd = below(r, 4);
  int64_t d[4], n = 1;
  for (int i = 0; i < nd; i++)
    d[i] = dims[below(r, 9)], n *= d[i];
  double *v = malloc((size_t)(n + 1) * sizeof *v);
  for (int64_t i = 0; i < n; i++)
    v[i] = (double)(below(r, 33) - 16) / 8;
  static const TgDType kinds[] = {TG_F32, TG_F32, TG_F32, TG_I32, TG_I16};
  TgDType kind = kinds[below(r, 5)];
  TgTensor *t = tg_from_f64(ctx, v, kind == TG_F32 && r->doubles ? TG_F64 : kind, nd, d);
  free(v);
  return t;
}

static TgTensor *step(TgContext *ctx, Rng *r, TgTensor **have, int n) {
  TgTensor *a = have[below(r, n)], *b = have[below(r, n)];
  int nd = tg_ndim(a), ax = nd ? below(r, nd) : 0;
  int64_t d[16], lo[16], hi[16];
  for (int i = 0; i < nd; i++)
    d[i] = tg_dim(a, i), lo[i] = 0, hi[i] = d[i];
  switch (below(r, r->steps)) {
  case 0: return tg_add(a, b);
  case 1: return tg_mul(a, b);
  case 2: return tg_sub(a, b);
  case 3: return tg_maximum(a, b);
  case 4: return tg_where(tg_lt(a, b), a, tg_neg(b));
  case 5: return tg_relu(a);
  case 6: return is_float(a) ? tg_sigmoid(a) : tg_neg(a);
  case 7:
    return is_float(a) ? tg_exp(tg_mul(a, tg_full(ctx, 0, NULL, 0.25)))
                       : tg_cast(a, r->doubles ? TG_F64 : TG_F32);
  case 8: return nd ? tg_sum(a, .axis = TG_AXES(ax), .keepdim = below(r, 2)) : tg_neg(a);
  case 9: return nd ? tg_max(a, .axis = TG_AXES(ax), .keepdim = true) : tg_relu(a);
  case 10: return nd ? tg_softmax(a) : NULL;
  case 11: {
    int64_t order[16];
    for (int i = 0; i < nd; i++)
      order[i] = i;
    for (int i = nd - 1; i > 0; i--) {
      int k = below(r, i + 1);
      int64_t x = order[i];
      order[i] = order[k], order[k] = x;
    }
    return nd ? tg_permute(a, nd, order) : NULL;
  }
  case 12:
    if (nd) lo[ax] = below(r, 3), hi[ax] = below(r, 3);
    for (int i = 0; i < nd; i++)
      if (i != ax) hi[i] = 0;
    return nd ? tg_pad(a, lo, hi) : NULL;
  case 13:
    if (!nd || d[ax] < 2) return NULL;
    lo[ax] = below(r, (int)d[ax] - 1), hi[ax] = lo[ax] + 1 + below(r, (int)(d[ax] - lo[ax]));
    return tg_shrink(a, lo, hi);
  case 14: return nd ? tg_flip(a, TG_SHAPE(ax)) : NULL;
  case 15: { /* merge two axes, or split one */
    int64_t s[17];
    int k = 0;
    if (nd > 1 && ax + 1 < nd && below(r, 2))
      for (int i = 0; i < nd; i++) {
        if (i == ax)
          s[k++] = d[i] * d[i + 1], i++;
        else
          s[k++] = d[i];
      }
    else if (nd && d[ax] % 2 == 0)
      for (int i = 0; i < nd; i++) {
        if (i == ax)
          s[k++] = d[i] / 2, s[k++] = 2;
        else
          s[k++] = d[i];
      }
    else
      return NULL;
    return tg_reshape(a, k, s);
  }
  case 16: return nd == 2 && tg_ndim(b) == 2 && tg_dim(b, 0) == d[1] ? tg_matmul(a, b) : NULL;
  case 17: return nd && is_float(a) ? tg_layer_norm(a) : NULL;
  case 18: return nd == 2 ? tg_matmul(a, tg_permute(a, TG_SHAPE(1, 0))) : tg_contiguous(a);
  default: { /* a number, and a sum of what stands there */
    int64_t s[16];
    for (int i = 0; i < nd; i++)
      s[i] = i == ax ? d[i] : 1;
    if (!nd) return NULL;
    TgTensor *most = tg_cast(tg_max(a, .axis = TG_AXES(ax), .keepdim = true), r->doubles ? TG_F64 : TG_F32);
    TgTensor *scaled = tg_mul(most, tg_full(ctx, 0, NULL, 1.7)); /* mostly past where rounding decides */
    TgTensor *number = tg_cast(tg_add(scaled, tg_full(ctx, 0, NULL, 0.37)), TG_I32);
    TgTensor *turn = tg_reshape(tg_arange(ctx, 0, (double)d[ax], .dtype = TG_I32), nd, s);
    TgTensor *there = tg_eq(below(r, 2) ? number : tg_contiguous(number), turn);
    return tg_sum(tg_where(there, a, tg_zeros_like(a)), .axis = TG_AXES(ax), .keepdim = below(r, 2));
  }
  }
}

/* The same calls on any device: what is refused (shapes that do not broadcast) is refused on all, and left
 * out. */
static void run(uint64_t seed, const char *dev, const char *fuse, const char *noopt, bool doubles,
                Outcome *o) {
  bool emulated = !strncmp(dev, "EMU:", 4);
  const char *emu = getenv("TG_EMU");
  char before[16];
  snprintf(before, sizeof before, "%s", emu ? emu : "0");
  if (emulated) setenv("TG_EMU", "1", 1), dev += 4;
  setenv("TG_DEV", dev, 1), setenv("TG_FUSE", fuse, 1), setenv("TG_NOOPT", noopt, 1),
      setenv("TG_SPEC", "1", 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_FUSE"), unsetenv("TG_NOOPT"), unsetenv("TG_SPEC");
  setenv("TG_EMU", before, 1);
  assert_int_equal(tg_error(ctx), TG_OK);
  Rng r = {seed * 2654435761u + 99, seed < PICKS_FROM ? 19 : 20, doubles};
  TgTensor *have[MAX_NODES], *roots[MAX_ROOTS];
  int n = 0, leaves = 2 + below(&r, 3), nodes = leaves + 3 + below(&r, MAX_NODES - 8);
  while (n < leaves)
    have[n++] = leaf(ctx, &r);
  for (int tries = 0; n < nodes && tries < 200; tries++) {
    TgTensor *t = step(ctx, &r, have, n);
    if (t && tg_numel(t) <= MAX_ELEMS && tg_ndim(t) < 6)
      have[n++] = t;
    else
      tg_clear_error(ctx);
  }
  o->n = 1 + below(&r, 3);
  for (int i = 0; i < o->n; i++)
    roots[i] = i ? have[below(&r, n)] : have[n - 1];
  if (below(&r, 3) == 0 && is_float(roots[0]) && tg_numel(roots[0])) { /* a gradient beside the value */
    TgTensor *of = NULL;
    for (int i = 0; i < leaves; i++)
      if (is_float(have[i])) of = have[i];
    TgTensor *grad = NULL;
    if (of && !tg_gradient(tg_sum(tg_mul(roots[0], roots[0])), &of, 1, &grad) && grad) roots[o->n++] = grad;
    tg_clear_error(ctx);
  }
  if (below(&r, 4) == 0) { /* and an assignment to a leaf that others have read */
    TgTensor *to = have[below(&r, leaves)];
    TgTensor *v = tg_add(tg_mul(to, to), tg_full_like(to, 1));
    if (v && tg_assign(to, v)) roots[o->n++] = to;
    tg_clear_error(ctx);
  }
  if (tg_realize_many(roots, (size_t)o->n))
    fail_msg("program %llu on %s, fuse %s: %s", (unsigned long long)seed, dev, fuse, tg_errmsg(ctx));
  for (int i = 0; i < o->n; i++) {
    o->numel[i] = tg_numel(roots[i]), o->f[i] = is_float(roots[i]);
    if (tg_read_f64(roots[i], o->v[i], (size_t)o->numel[i]))
      fail_msg("program %llu on %s: %s", (unsigned long long)seed, dev, tg_errmsg(ctx));
  }
  kernels += tg_counters(ctx).launches;
  tg_close(ctx);
}

static double farthest; /* relative, of floats, from what the plain kernels on INTERP give */

/* The first value that is not what it should be: within 2e-4, or, if an exact outcome is given, as near to
 * that as `want` is, whose rounding is then known. -1: none, else root * MAX_ELEMS + element. */
static int64_t differs(const Outcome *want, const Outcome *got, const Outcome *exact) {
  enum { AS_NEAR = 16 };

  for (int i = 0; i < want->n; i++) {
    assert_int_equal(want->numel[i], got->numel[i]);
    for (int64_t k = 0; k < want->numel[i]; k++) {
      double a = want->v[i][k], b = got->v[i][k], most = 2e-4 * fmax(1, fabs(a));
      if (exact) most += AS_NEAR * fabs(a - exact->v[i][k]);
      bool same = isnan(a) ? isnan(b) : a == b || (want->f[i] && fabs(a - b) <= most);
      if (want->f[i] && isfinite(a) && !exact) farthest = fmax(farthest, fabs(a - b) / fmax(1, fabs(a)));
      if (!same) return i * MAX_ELEMS + k;
    }
  }
  return -1;
}

/* Where results differ, the program in f64 tells whether it asks for more than f32 has, as the layer norm of
 * equal values does. */
static void compare(uint64_t seed, const char *dev, const Outcome *want, const Outcome *got) {
  static Outcome exact;
  int64_t at = differs(want, got, NULL);
  if (at < 0) return;
  run(seed, "INTERP", "0", "1", true, &exact);
  at = exact.n == want->n ? differs(want, got, &exact) : at;
  if (at >= 0)
    fail_msg("program %llu on %s: root %d, element %d is %.9g, not %.9g", (unsigned long long)seed, dev,
             (int)(at / MAX_ELEMS), (int)(at % MAX_ELEMS), got->v[at / MAX_ELEMS][at % MAX_ELEMS],
             want->v[at / MAX_ELEMS][at % MAX_ELEMS]);
}

static const char *const usual[] = {"INTERP", "INTERP:C", "INTERP:CUDA"}, *const *devs = usual;
static int ndev = 3;

static void test_programs(void **state) {
  (void)state;
  uint64_t first = getenv("FIRST") ? strtoull(getenv("FIRST"), NULL, 10) : PICKS_FROM;
  uint64_t count = getenv("N") ? strtoull(getenv("N"), NULL, 10) : 300;
  static const uint64_t found[] = {
      3018773, 3019589, 3003029, 3007174, 3021482, 3027210, 3010271, 3022043,
      8005869, 9005359, 1002878, 1016373, 1017785, 2001636, 3012377}; /* these were wrong once */
  static Outcome want, got;
  for (uint64_t i = 0; i < count + sizeof found / sizeof *found; i++) {
    uint64_t s = i < count ? first + i : found[i - count];
    run(s, "INTERP", "0", "1", false, &want);
    for (int d = 0; d < ndev; d++)
      run(s, devs[d], "1", "0", false, &got), compare(s, devs[d], &want, &got);
    if (s % 16 == 0 || i >= count) run(s, "CPU", "1", "0", false, &got), compare(s, "CPU", &want, &got);
    if (i >= count) run(s, "INTERP:METAL", "1", "0", false, &got), compare(s, "INTERP:METAL", &want, &got);
  }
  print_message("%llu kernels; floats at most %.2g away\n", (unsigned long long)kernels, farthest);
}

int main(int argc, char **argv) {
  if (argc > 1) devs = (const char *const *)argv + 1, ndev = argc - 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
