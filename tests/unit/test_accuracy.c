/* test_accuracy.c: the decompositions of EXP2, LOG2, EXP, LOG, SIN, COS, TAN, TANH and POW against libm: f32
 * against its double functions, f64 against its long double ones. The error is in ulp of the dtype at the
 * exact result. A graph is evaluated here, 256 values at a time, each op in plain C: neither scalar_eval nor
 * a renderer is trusted; then CPU and the interpreter run the same through the API. Functions that are put
 * together of these (erf, tanh, ..) are measured as the API computes them on the CPU. The suite takes every
 * 4099th float, on the CPU every 61st of cos and tan. make check-accuracy (STRIDE=1, ONLY=name) takes all
 * 2^32. As the suite takes them: exp2 0.74, exp 0.78, log2 0.83, log 0.74, sin 0.76, cos 0.77, tan 0.89,
 * tanh 2.29, erf 2.24, sigmoid 2.00, softplus 1.69, gelu 157 ulp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "renderer/renderer.h"
#include "tg.h"

enum { N = 256, MAX_STEPS = 1024 };

typedef union Value {
  float f32[N];
  double f64[N];
  int32_t i32[N];
  uint32_t u32[N];
  int64_t i64[N];
  uint64_t u64[N];
  uint8_t b[N];
} Value;

typedef struct Fn {
  TgMem mem;
  UOpStore *st;
  UOpVec topo;
  UOp *root;
  int src[MAX_STEPS][3];
  Value *v;
  DType d;
} Fn;

static void fn_open(Fn *f, Ops op, DType d) { /* op on PARAMs 0 and 1, as a target without that op gets it */
  memset(f, 0, sizeof *f);
  f->d = d, f->st = store_new(&f->mem);
  Renderer ren = renderer_c;
  ren.has_f64 = d == DT_F64, ren.native &= ~(OP_IN_SET(OPS_EXP2) | OP_IN_SET(OPS_LOG2) | OP_IN_SET(OPS_EXP) |
                                             OP_IN_SET(OPS_LOG) | OP_IN_SET(OPS_SIN) | OP_IN_SET(OPS_COS) |
                                             OP_IN_SET(OPS_TAN) | OP_IN_SET(OPS_TANH) | OP_IN_SET(OPS_POW));
  UOp *x[2];
  for (int i = 0; i < 2; i++)
    x[i] = uop_new(f->st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, i}});
  Kernel k = {.st = f->st, .mem = &f->mem, .ren = &ren};
  Rewrite rw = {.st = f->st, .mem = &f->mem, .ctx = &k, .required = true};
  f->root = graph_rewrite(&rw, pm_functions, uop_new(f->st, op, d, 1, op_nsrc(op), x, ARG0));
  f->root = uop_simplify(f->st, &f->mem, f->root);
  assert_non_null(f->root);
  assert_true(uop_toposort(f->st, &f->mem, &f->root, 1, &f->topo) && f->topo.len < MAX_STEPS);
  f->v = calloc(f->topo.len, sizeof *f->v);
  for (size_t i = 0; i < f->topo.len; i++) {
    const UOp *u = f->topo.at[i];
    assert_false(d == DT_F32 && u->dtype == DT_F64); /* f32 never needs f64 */
    for (int s = 0; s < u->nsrc; s++)
      for (size_t j = 0; j < i; j++)
        if (f->topo.at[j] == u->src[s]) f->src[i][s] = (int)j;
    for (int l = 0; l < N; l++)
      switch (is_const(u) ? (int)u->dtype : -1) {
      case DT_BOOL: f->v[i].b[l] = u->arg.v.i != 0; break;
      case DT_F32: f->v[i].f32[l] = (float)u->arg.v.f; break;
      case DT_F64: f->v[i].f64[l] = u->arg.v.f; break;
      case DT_I32:
      case DT_U32: f->v[i].i32[l] = (int32_t)u->arg.v.i; break;
      case DT_I64:
      case DT_U64: f->v[i].i64[l] = u->arg.v.i; break;
      }
  }
}

static void fn_close(Fn *f) {
  free(f->v);
  vec_free(&f->mem, &f->topo);
  store_free(f->st);
  assert_int_equal(f->mem.live, 0);
}

#define EACH for (int l = 0; l < N; l++)
#define ON(m, T, expr)                                                                                       \
  EACH {                                                                                                     \
    T a = x->m[l], b = y->m[l], e = z->m[l];                                                                 \
    (void)a, (void)b, (void)e;                                                                               \
    o->m[l] = (T)(expr);                                                                                     \
  }                                                                                                          \
  return
#define TO_BOOL(m, T, expr)                                                                                  \
  EACH {                                                                                                     \
    T a = x->m[l], b = y->m[l];                                                                              \
    o->b[l] = (expr);                                                                                        \
  }                                                                                                          \
  return
#define FLOATS(m, T, FMA, SQRT, TRUNC)                                                                       \
  switch (u->op) {                                                                                           \
  case OPS_ADD: ON(m, T, a + b);                                                                             \
  case OPS_SUB: ON(m, T, a - b);                                                                             \
  case OPS_MUL: ON(m, T, a *b);                                                                              \
  case OPS_FDIV: ON(m, T, a / b);                                                                            \
  case OPS_NEG: ON(m, T, -a);                                                                                \
  case OPS_MULACC: ON(m, T, FMA(a, b, e));                                                                   \
  case OPS_TRUNC: ON(m, T, TRUNC(a));                                                                        \
  case OPS_CMPLT: TO_BOOL(m, T, a < b);                                                                      \
  case OPS_CMPNE: TO_BOOL(m, T, a != b);                                                                     \
  case OPS_CMPEQ: TO_BOOL(m, T, a == b);                                                                     \
  default: break;                                                                                            \
  }                                                                                                          \
  break
#define INTS(m, T, um, U, W)                                                                                 \
  switch (u->op) {                                                                                           \
  case OPS_ADD: ON(um, U, a + b);                                                                            \
  case OPS_SUB: ON(um, U, a - b);                                                                            \
  case OPS_MUL: ON(um, U, a *b);                                                                             \
  case OPS_AND: ON(um, U, a &b);                                                                             \
  case OPS_OR: ON(um, U, a | b);                                                                             \
  case OPS_XOR: ON(um, U, a ^ b);                                                                            \
  case OPS_SHL: ON(um, U, b < W ? a << (b & (W - 1)) : 0);                                                   \
  case OPS_SHR: ON(m, T, (U)b<W ? a >> (b & (W - 1)) : (T)-1> 0 ? 0 : a >> (W - 1));                         \
  case OPS_MAX: ON(m, T, a > b ? a : b);                                                                     \
  case OPS_NEG: ON(um, U, 0 - a);                                                                            \
  case OPS_CMPLT: TO_BOOL(m, T, a < b);                                                                      \
  case OPS_CMPNE: TO_BOOL(m, T, a != b);                                                                     \
  case OPS_CMPEQ: TO_BOOL(m, T, a == b);                                                                     \
  default: break;                                                                                            \
  }                                                                                                          \
  break
#define CASTS(from)                                                                                          \
  EACH switch (u->dtype) {                                                                                   \
  case DT_F32: o->f32[l] = (float)x->from[l]; break;                                                         \
  case DT_F64: o->f64[l] = (double)x->from[l]; break;                                                        \
  case DT_I32: o->i32[l] = (int32_t)x->from[l]; break;                                                       \
  case DT_I64: o->i64[l] = (int64_t)x->from[l]; break;                                                       \
  case DT_U32: o->u32[l] = (uint32_t)x->from[l]; break;                                                      \
  case DT_U64: o->u64[l] = (uint64_t)x->from[l]; break;                                                      \
  default: fail_msg("cast to %s", dtype_name((DType)u->dtype));                                              \
  }                                                                                                          \
  return

static void step(const UOp *u, const Value *x, const Value *y, const Value *z, Value *o) {
  DType d = (DType)u->src[u->op == OPS_WHERE]->dtype;
  if (u->op == OPS_BITCAST) {
    memcpy(o, x, sizeof *o);
    return;
  }
  if (u->op == OPS_CAST) switch (d) {
    case DT_F32: CASTS(f32);
    case DT_F64: CASTS(f64);
    case DT_I32: CASTS(i32);
    case DT_I64: CASTS(i64);
    case DT_U32: CASTS(u32);
    case DT_U64: CASTS(u64);
    default: fail_msg("cast from %s", dtype_name(d));
    }
  if (u->op == OPS_WHERE) {
    if (d == DT_BOOL)
      EACH o->b[l] = x->b[l] ? y->b[l] : z->b[l];
    else if (dtype_size(d) == 8)
      EACH o->i64[l] = x->b[l] ? y->i64[l] : z->i64[l];
    else
      EACH o->i32[l] = x->b[l] ? y->i32[l] : z->i32[l];
    return;
  }
  switch (d) {
  case DT_F32: FLOATS(f32, float, fmaf, sqrtf, truncf);
  case DT_F64: FLOATS(f64, double, fma, sqrt, trunc);
  case DT_I32: INTS(i32, int32_t, u32, uint32_t, 32);
  case DT_U32: INTS(u32, uint32_t, u32, uint32_t, 32);
  case DT_I64: INTS(i64, int64_t, u64, uint64_t, 64);
  case DT_U64: INTS(u64, uint64_t, u64, uint64_t, 64);
  case DT_BOOL:
    switch (u->op) {
    case OPS_AND:
    case OPS_MUL: EACH o->b[l] = x->b[l] & y->b[l]; return;
    case OPS_OR:
    case OPS_ADD: EACH o->b[l] = x->b[l] | y->b[l]; return;
    case OPS_XOR:
    case OPS_CMPNE: EACH o->b[l] = x->b[l] ^ y->b[l]; return;
    case OPS_CMPEQ: EACH o->b[l] = x->b[l] == y->b[l]; return;
    case OPS_CMPLT: EACH o->b[l] = x->b[l] < y->b[l]; return;
    default: break;
    }
    break;
  default: break;
  }
  fail_msg("%s on %s is not known here", op_name((Ops)u->op), dtype_name(d));
}

static const Value *fn_run(Fn *f, const Value *x, const Value *y) {
  for (size_t i = 0; i < f->topo.len; i++) {
    const UOp *u = f->topo.at[i];
    if (u->op == OPS_PARAM)
      f->v[i] = u->arg.param.slot ? *y : *x;
    else if (!is_const(u))
      step(u, &f->v[f->src[i][0]], &f->v[f->src[i][1]], &f->v[f->src[i][2]], &f->v[i]);
  }
  return &f->v[f->topo.len - 1];
}

/* ---- the oracle */
static long double exact(Ops op, DType d, double x, double y) {
  bool w = d == DT_F64;
  switch (op) {
  case OPS_EXP2: return w ? exp2l(x) : exp2(x);
  case OPS_EXP: return w ? expl(x) : exp(x);
  case OPS_LOG2: return w ? log2l(x) : log2(x);
  case OPS_LOG: return w ? logl(x) : log(x);
  case OPS_SIN: return w ? sinl(x) : sin(x);
  case OPS_COS: return w ? cosl(x) : cos(x);
  case OPS_TAN: return w ? tanl(x) : tan(x);
  case OPS_TANH: return w ? tanhl(x) : tanh(x);
  default: return w ? powl(x, y) : pow(x, y);
  }
}

/* INFINITY: wrong in kind: NaN, infinity, or the sign of a zero */
static double ulps(DType d, double got, long double want) {
  double to = d == DT_F32 ? (double)(float)want : (double)want;
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : INFINITY;
  if (isinf(to) || isinf(got)) {
    /* an infinity beside the largest number is as far as its rounding went */
    long double top = d == DT_F32 ? 0x1p128L : 0x1p1024L;
    if (isinf(to) && isinf(got)) return (to > 0) == (got > 0) ? 0 : INFINITY;
    if (isinf(want)) return INFINITY;
    long double g = isinf(got) ? copysignl(top, got) : got;
    return (double)(fabsl(g - want) / (d == DT_F32 ? 0x1p104L : 0x1p971L));
  }
  if (want == 0 && got == 0) return !signbit(want) == !signbit(got) ? 0 : INFINITY;
  int e;
  frexpl(want, &e);
  int lowest = d == DT_F32 ? -149 : -1074, bits = d == DT_F32 ? 24 : 53;
  return (double)(fabsl(got - want) / ldexpl(1, TG_MAX(e - bits, lowest)));
}

typedef struct Worst {
  double ulp, x, y, got;
  uint64_t n;
} Worst;

static void note(Worst *w, Ops op, DType d, double x, double y, double got) {
  long double want = exact(op, d, x, y);
  w->n++;
  /* rounded rightly: at most 1/2 */
  if (d == DT_F32 && w->ulp > 0.51 && want != 0 && (float)want == (float)got) return;
  double u = ulps(d, got, want);
  if (u > w->ulp) *w = (Worst){u, x, y, got, w->n};
}

static void check(const char *how, Ops op, DType d, const Worst *w, double most) {
  printf("  %-13s %-4s %s %8.4f ulp over %llu values, worst at %a", how, op_name(op), dtype_name(d), w->ulp,
         (unsigned long long)w->n, w->x);
  if (op == OPS_POW) printf(", %a", w->y);
  printf("\n");
  fflush(stdout);
  if (!(w->ulp <= most))
    fail_msg("%s: %s on %s: %g ulp at %a, %a: gives %a, not %La; %g are allowed", how, op_name(op),
             dtype_name(d), w->ulp, w->x, w->y, w->got, exact(op, d, w->x, w->y), most);
}

static void run_batch(Fn *f, Ops op, const Value *x, const Value *y, Worst *w) {
  const Value *r = fn_run(f, x, y);
  for (int l = 0; l < N; l++)
    if (f->d == DT_F32)
      note(w, op, f->d, x->f32[l], y->f32[l], r->f32[l]);
    else
      note(w, op, f->d, x->f64[l], y->f64[l], r->f64[l]);
}

static uint64_t rnd(uint64_t *s) { /* splitmix64 */
  uint64_t z = *s += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/* ---- what is allowed, in ulp */
static const struct {
  Ops op;
  double f32, f64;
} limits[] = {{OPS_EXP2, 0.85, 0.85}, {OPS_EXP, 0.85, 0.85}, {OPS_LOG2, 1, 1},
              {OPS_LOG, 0.9, 0.9},    {OPS_SIN, 0.85, 0.85}, {OPS_COS, 0.85, 0.85},
              {OPS_TAN, 1, 1},        {OPS_TANH, 3, 3},      {OPS_POW, 0.85, 0.9}};

static uint64_t stride_or(uint64_t usual) {
  return getenv("STRIDE") ? strtoull(getenv("STRIDE"), NULL, 10) : usual;
}

static bool wanted(const char *name) { return !getenv("ONLY") || !strcmp(getenv("ONLY"), name); }

/* every STRIDE-th bit pattern: every exponent, subnormals, infinities, NaN */
static void test_f32(void **state) {
  (void)state;
  for (int i = 0; limits[i].op != OPS_POW; i++) {
    if (!wanted(op_name(limits[i].op))) continue;
    uint64_t stride = stride_or(4099);
    Fn f;
    Value x, y = {{0}};
    Worst w = {0};
    fn_open(&f, limits[i].op, DT_F32);
    for (uint64_t at = 0; at < 1ull << 32; at += stride * N) {
      for (int l = 0; l < N; l++)
        x.u32[l] = (uint32_t)TG_MIN(at + stride * (uint64_t)l, UINT32_MAX);
      run_batch(&f, limits[i].op, &x, &y, &w);
    }
    check("graph", limits[i].op, DT_F32, &w, limits[i].f32);
    fn_close(&f);
  }
}

static void sample(uint64_t *s, int kind, DType d, double *x) {
  uint64_t r = rnd(s);
  switch (kind % 4) {
  case 0:
    if (d == DT_F32) {
      uint32_t b = (uint32_t)r;
      float v;
      memcpy(&v, &b, 4);
      *x = v;
    } else
      memcpy(x, &r, 8);
    break; /* any bits */
  case 1: *x = ((double)(r >> 11) * 0x1p-53 - 0.5) * 256; break;
  case 2: *x = 1 + ((double)(r >> 11) * 0x1p-53 - 0.5) * ldexp(1, -(int)(r % 40)); break; /* around 1 */
  default: *x = (double)(r >> 11) * 0x1p-53 * ldexp(1, (int)(r % 40)); break;
  }
  if (d == DT_F32) *x = (float)*x;
}

static void test_samples(void **state) { /* f64, and powers of both */
  (void)state;
  uint64_t s = 1, n = getenv("SAMPLES") ? strtoull(getenv("SAMPLES"), NULL, 10) : 1500;
  for (size_t i = 0; i < TG_COUNT(limits); i++)
    for (DType d = limits[i].op == OPS_POW ? DT_F32 : DT_F64; d <= DT_F64; d++) {
      Fn f;
      Value x, y = {{0}};
      Worst w = {0};
      fn_open(&f, limits[i].op, d);
      for (uint64_t k = 0; k < n; k++) {
        for (int l = 0; l < N; l++) {
          double a, b;
          sample(&s, (int)k, d, &a);
          sample(&s, (int)(k / 4), d, &b);
          if (limits[i].op == OPS_POW && k % 8 >= 4) b = trunc(b);
          if (limits[i].op == OPS_POW && k % 3 == 0 && a > 0) { /* results near both ends of the range */
            b = (d == DT_F32 ? 128 : 1024) / log2(a) * ((double)(k % 64) / 32 - 1 + 0x1p-20 * l);
            if (d == DT_F32) b = (float)b;
          }
          if (d == DT_F32)
            x.f32[l] = (float)a, y.f32[l] = (float)b;
          else
            x.f64[l] = a, y.f64[l] = b;
        }
        run_batch(&f, limits[i].op, &x, &y, &w);
      }
      check("graph", limits[i].op, d, &w, d == DT_F32 ? limits[i].f32 : limits[i].f64);
      fn_close(&f);
    }
}

/* Every pair of these: C99's table of special values, wholly. And the numbers that a range reduction must
 * survive. */
static const double special[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 2,
                                 -2,
                                 3,
                                 -3,
                                 0.5,
                                 -0.5,
                                 1.5,
                                 -1.5,
                                 0x1p-149,
                                 -0x1p-149,
                                 0x1p-126,
                                 0x1.fffffcp-127,
                                 0x1.fffffep127,
                                 -0x1.fffffep127,
                                 0x1p-1074,
                                 0x1p-1022,
                                 0x1.fffffffffffffp1023,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1p24,
                                 0x1p24 + 2,
                                 -(0x1p24 - 1),
                                 0x1p53,
                                 0x1p53 - 1,
                                 1 + 0x1p-23,
                                 1 - 0x1p-24,
                                 1 + 0x1p-52,
                                 128,
                                 -126,
                                 -149,
                                 -150,
                                 -151,
                                 1023,
                                 1024,
                                 -1022,
                                 -1074,
                                 -1075,
                                 88.72284,
                                 -103.97209,
                                 709.782712893384,
                                 -745.1332191019411,
                                 0x1.921fb6p0,
                                 0x1.921fb54442d18p0,
                                 0x1.921fb6p1,
                                 0x1.921fb54442d18p1,
                                 0x1.f9cbe2p7,
                                 0x1.6ac5b2p120,
                                 16367173.0 * 0x1p72,
                                 6381956970095103.0 * 0x1p797,
                                 1e9,
                                 1e22,
                                 0x1p100,
                                 0x1p1000};

static void test_special(void **state) {
  (void)state;
  for (size_t i = 0; i < TG_COUNT(limits); i++)
    for (DType d = DT_F32; d <= DT_F64; d++) {
      Fn f;
      Value x, y;
      Worst w = {0};
      fn_open(&f, limits[i].op, d);
      for (size_t a = 0; a < TG_COUNT(special); a++) {
        for (int l = 0; l < N; l++) {
          double b = special[(size_t)l % TG_COUNT(special)];
          if (d == DT_F32)
            x.f32[l] = (float)special[a], y.f32[l] = (float)b;
          else
            x.f64[l] = special[a], y.f64[l] = b;
        }
        run_batch(&f, limits[i].op, &x, &y, &w);
      }
      check("special", limits[i].op, d, &w, 1);
      fn_close(&f);
    }
}

/* ---- the same through the API: compiled on CPU, and as codegen lowers it for two targets, run by the
 * interpreter */
static void on_device(const char *dev, TgDType td, int n) {
  DType d = td == TG_F64 ? DT_F64 : DT_F32;
  setenv("TG_DEV", dev, 1);
  TgContext *ctx = tg_open(NULL);
  assert_non_null(ctx);
  double *x = malloc(3 * (size_t)n * sizeof *x), *y = x + n, *r = y + n;
  uint64_t s = 7;
  for (int i = 0; i < n; i++)
    sample(&s, i, d, &x[i]), sample(&s, i / 4, d, &y[i]);
  for (int i = 0; i < (int)TG_COUNT(special) && i < n; i++)
    x[i] = d == DT_F32 ? (float)special[i] : special[i];
  for (size_t i = 0; i < TG_COUNT(limits); i++) {
    TgTensor *a = tg_from_f64(ctx, x, td, TG_SHAPE(n)), *b = tg_from_f64(ctx, y, td, TG_SHAPE(n)), *o = NULL;
    switch (limits[i].op) {
    case OPS_EXP2: o = tg_exp2(a); break;
    case OPS_EXP: o = tg_exp(a); break;
    case OPS_LOG2: o = tg_log2(a); break;
    case OPS_LOG: o = tg_log(a); break;
    case OPS_SIN: o = tg_sin(a); break;
    case OPS_COS: o = tg_cos(a); break;
    case OPS_TAN: o = tg_tan(a); break;
    case OPS_TANH: o = tg_tanh(a); break;
    default: o = tg_pow(a, b);
    }
    if (tg_read_f64(o, r, (size_t)n)) fail_msg("%s: %s: %s", dev, op_name(limits[i].op), tg_errmsg(ctx));
    Worst w = {0};
    for (int k = 0; k < n; k++)
      note(&w, limits[i].op, d, x[k], y[k], r[k]);
    check(dev, limits[i].op, d, &w, d == DT_F32 ? limits[i].f32 : limits[i].f64);
  }
  free(x);
  tg_close(ctx);
}

static void test_devices(void **state) {
  (void)state;
  on_device("CPU", TG_F32, 20011), on_device("CPU", TG_F64, 20011);
  on_device("INTERP:C", TG_F32, 1009), on_device("INTERP:C", TG_F64, 1009),
      on_device("INTERP:METAL", TG_F32, 1009), on_device("INTERP:C99", TG_F32, 20011),
      on_device("INTERP:C99", TG_F64, 20011);
}

/* ---- cos and tan, and functions put together of these, as the CPU computes them: f32 against functions of
 * double, f64 against those of long double. The tanh form of GELU is x e^v for large negative v = 2u, whose
 * own rounding is |v| of its last places: that is the bound, |v| reaching 88 (f64: 708). */
#define ORACLES(T, SUFFIX, EXP, LOG1P, SQRT, ACOS)                                                           \
  static T sigmoid_##SUFFIX(T x) { return x < 0 ? EXP(x) / (1 + EXP(x)) : 1 / (1 + EXP(-x)); }               \
  static T softplus_##SUFFIX(T x) { return x < 0 ? LOG1P(EXP(x)) : x + LOG1P(EXP(-x)); }                     \
  static T gelu_##SUFFIX(T x) { /* at -inf it is -inf * 0 */                                                 \
    return x == -INFINITY ? (T)NAN                                                                           \
                          : x * sigmoid_##SUFFIX(2 * SQRT(2 / ACOS(-1)) * (x + (T)0.044715L * x * x * x));   \
  }
/* exp of what is known to lie between two numbers: decompose.c leaves out what is not needed there. */
#define EXP_WITHIN(name, lo, hi)                                                                             \
  static double name##_double(double x) { return exp(x < (lo) ? (lo) : x > (hi) ? (hi) : x); }               \
  static long double name##_long(long double x) { return expl(x < (lo) ? (lo) : x > (hi) ? (hi) : x); }      \
  static TgTensor *name(TgTensor *x) {                                                                       \
    TgTensor *low = tg_scalar_like(x, lo), *high = tg_scalar_like(x, hi);                                    \
    return tg_exp(tg_where(tg_lt(x, low), low, tg_where(tg_lt(high, x), high, x)));                          \
  }
EXP_WITHIN(exp_below, -INFINITY, 0)
EXP_WITHIN(exp_above, 0, INFINITY)
EXP_WITHIN(exp_within, -80, 80)

ORACLES(double, double, exp, log1p, sqrt, acos)
ORACLES(long double, long, expl, log1pl, sqrtl, acosl)

static const struct Composite {
  const char *name;
  TgTensor *(*fn)(TgTensor *x);
  double (*exact32)(double x);
  long double (*exact64)(long double x);
  double f32, f64; /* what is allowed, in ulp */
  uint64_t stride;
} composites[] = {
    {"cos", tg_cos, cos, cosl, 0.85, 0.85, 61},
    {"tan", tg_tan, tan, tanl, 1, 1, 61},
    {"erf", tg_erf, erf, erfl, 3, 3, 4099},
    {"tanh", tg_tanh, tanh, tanhl, 3, 3, 4099},
    {"exp, x <= 0", exp_below, exp_below_double, exp_below_long, 0.85, 0.85, 4099},
    {"exp, x >= 0", exp_above, exp_above_double, exp_above_long, 0.85, 0.85, 4099},
    {"exp, |x| <= 80", exp_within, exp_within_double, exp_within_long, 0.85, 0.85, 4099},
    {"sigmoid", tg_sigmoid, sigmoid_double, sigmoid_long, 3, 3, 4099},
    {"softplus", tg_softplus, softplus_double, softplus_long, 3, 3, 4099},
    {"gelu", tg_gelu, gelu_double, gelu_long, 256, 2048, 4099},
};

static long double composite_exact(const struct Composite *c, TgDType d, double x) {
  return d == TG_F32 ? c->exact32(x) : c->exact64(x);
}

enum { BATCH = 1 << 18 };

typedef struct Batch {
  TgContext *ctx;
  TgDType dtype;
  double *x, *y;
  int n;
} Batch;

static void composite_batch(const struct Composite *c, Batch *b, Worst *w) {
  TG_SCOPE(b->ctx) {
    TgTensor *y = c->fn(tg_from_f64(b->ctx, b->x, b->dtype, TG_SHAPE(BATCH)));
    if (tg_read_f64(y, b->y, BATCH)) fail_msg("%s: %s", c->name, tg_errmsg(b->ctx));
  }
  for (int i = 0; i < b->n; i++) {
    long double want = composite_exact(c, b->dtype, b->x[i]);
    w->n++;
    /* rounded rightly */
    if (b->dtype == TG_F32 && w->ulp > 0.51 && want != 0 && (float)want == (float)b->y[i]) continue;
    double u = ulps(b->dtype == TG_F32 ? DT_F32 : DT_F64, b->y[i], want);
    if (u > w->ulp) *w = (Worst){u, b->x[i], 0, b->y[i], w->n};
  }
  b->n = 0;
}

static void check_composite(const struct Composite *c, const Worst *w, TgDType d) {
  double most = d == TG_F32 ? c->f32 : c->f64;
  printf("  %-13s %-4s %s %8.4f ulp over %llu values, worst at %a\n", "composite", c->name, tg_dtype_name(d),
         w->ulp, (unsigned long long)w->n, w->x);
  fflush(stdout);
  if (!(w->ulp <= most))
    fail_msg("%s on %s: %g ulp at %a: gives %a, not %La; %g are allowed", c->name, tg_dtype_name(d), w->ulp,
             w->x, w->got, composite_exact(c, d, w->x), most);
}

static void test_composites(void **state) {
  (void)state;
  setenv("TG_DEV", "CPU", 1);
  Batch b = {.ctx = tg_open(NULL), .x = calloc(2 * BATCH, sizeof(double))};
  b.y = b.x + BATCH;
  assert_int_equal(tg_error(b.ctx), TG_OK);
  for (size_t i = 0; i < TG_COUNT(composites); i++) {
    const struct Composite *c = &composites[i];
    if (!wanted(c->name)) continue;
    Worst w = {0};
    b.dtype = TG_F32;
    uint64_t stride = stride_or(c->stride);
    for (uint64_t bits = 0; bits < 1ull << 32; bits += stride) {
      uint32_t u = (uint32_t)bits;
      float v;
      memcpy(&v, &u, sizeof v);
      b.x[b.n++] = v;
      if (b.n == BATCH) composite_batch(c, &b, &w);
    }
    composite_batch(c, &b, &w);
    check_composite(c, &w, TG_F32);
    uint64_t s = 3;
    b.dtype = TG_F64, w = (Worst){0};
    for (int n = 0; n < BATCH; n++)
      sample(&s, n, DT_F64, &b.x[b.n++]);
    composite_batch(c, &b, &w);
    check_composite(c, &w, TG_F64);
  }
  free(b.x);
  tg_close(b.ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_composites), cmocka_unit_test(test_f32),
                                     cmocka_unit_test(test_special), cmocka_unit_test(test_samples),
                                     cmocka_unit_test(test_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
