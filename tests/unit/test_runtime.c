/* test_runtime.c: renderer, compiler, loader, pool, cache and interpreter. Programs are written by hand, run
 * with clang, gcc and INTERP, and compared with plain C: integers through __int128, floats through long
 * double, neither with scalar_eval. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef TG_HAVE_SQLITE
#include <sqlite3.h>
#endif
#include "base/os.h"
#include "runtime/cpu.h"
#include "runtime/elf_private.h"

enum { MAXN = 600, MAXBUF = 6 };

static TgMem mem;
static TgEnv env; /* no cache unless a test asks for one */
static UOpStore *st;

/* ---- devices */
/* those that are here are tested */
static const char *const compilers[] = {"clang-19", "clang-14", "clang", "gcc"};

typedef struct Dev {
  Device d;
  TgEnv env;
  TgError err;
} Dev;

static bool dev_open(Dev *v, const TgBackend *b, const char *cc) {
  *v = (Dev){.env = env};
  snprintf(v->env.cc, sizeof v->env.cc, "%s", cc ? cc : "");
  v->d = (Device){.backend = b, .mem = &mem, .os = &tg_os_default, .env = &v->env, .err = &v->err};
  return b->open(&v->d) == TG_OK;
}

static Dev devs[TG_COUNT(compilers) + 2];
static int ndev;

static int setup(void **state) {
  (void)state;
  st = store_new(&mem);
  for (size_t i = 0; i < TG_COUNT(compilers); i++)
    ndev += dev_open(&devs[ndev], &backend_cpu, compilers[i]);
  env.link_objects = 1;
  ndev += dev_open(&devs[ndev], &backend_cpu, NULL);
  env.link_objects = 0;
  ndev += dev_open(&devs[ndev], &backend_interp, NULL);
  return ndev < 2;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < ndev; i++)
    devs[i].d.backend->close(&devs[i].d);
  store_free(st);
  return mem.live != 0;
}

/* ---- programs */
typedef struct K {
  Linear lin;
  UOp *at[MAXN];
} K;

static UOp *push(K *k, UOp *u) {
  assert_non_null(u);
  assert_true(k->lin.n < MAXN);
  return k->at[k->lin.n++] = u;
}

#define E(k, op, dt, lanes, arg, ...) push(k, UNEW(st, OPS_##op, dt, lanes, arg, __VA_ARGS__))

static K *k_new(const char *name) {
  K *k = calloc(1, sizeof *k);
  snprintf(k->lin.name, sizeof k->lin.name, "%s", name);
  k->lin.at = k->at, k->lin.nthread = 1;
  for (int i = 0; i < 3; i++)
    k->lin.global[i] = k->lin.local[i] = 1;
  return k;
}

static UOp *param(K *k, DType d, int64_t nelem) {
  return push(k, uop_new(st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {nelem, k->lin.nparam++}}));
}

static UOp *ci(int64_t v) { return uop_const(st, DT_I32, (Scalar){.i = v}); }

static UOp *range(K *k, int64_t n, int id, AxisType t) {
  return E(k, RANGE, DT_I32, 1, ((Arg){.range = {id, t}}), ci(n));
}

static void end(K *k, UOp *r) { E(k, END, DT_VOID, 1, ARG0, r); }

static UOp *idx(K *k, UOp *p, UOp *at) { return E(k, INDEX, (DType)p->dtype, 1, ARG0, p, at); }

static UOp *load(K *k, UOp *p, UOp *at, int lanes) {
  UOp *x = idx(k, p, at);
  return E(k, LOAD, (DType)p->dtype, lanes, ARG0, x);
}

static void store(K *k, UOp *p, UOp *at, UOp *v) {
  UOp *x = idx(k, p, at);
  E(k, STORE, DT_VOID, 1, ARG0, x, v);
}

static UOp *reg(K *k, DType d, int lanes, int slot) {
  return push(k, uop_new(st, OPS_DEFINE_REG, d, lanes, 0, NULL, (Arg){.param = {1, slot}}));
}

static UOp *splat(K *k, UOp *c, int lanes) {
  return lanes == 1 ? c : E(k, VECTORIZE, (DType)c->dtype, lanes, ARG0, c);
}

static UOp *gep(K *k, UOp *x, int first, int lanes) {
  return E(k, GEP, (DType)x->dtype, lanes, (Arg){.i = first}, x);
}

/* Compiles a batch on every device and hands each kernel's buffers, freshly copied, to `check`. */
typedef struct Buf {
  const void *data;
  size_t nbytes;
} Buf;

typedef struct Case {
  K *k;
  Buf buf[MAXBUF];
  int nbuf;
  const int64_t *vars;
  void (*check)(const struct Case *, const char *dev, void **got);
  int id, id2;
} Case;

static void run(Case *c, int n) {
  for (int v = 0; v < ndev; v++) {
    Device *d = &devs[v].d;
    KernelSpec *ks = calloc((size_t)n, sizeof *ks);
    Str *src = calloc((size_t)n, sizeof *src);
    Program **g = calloc((size_t)n, sizeof *g);
    for (int i = 0; i < n; i++) {
      str_init(&src[i], &mem);
      if (d->backend->renderer && !d->backend->renderer->render(&src[i], &c[i].k->lin, d->err))
        fail_msg("%s", d->err->msg);
      ks[i] = kernel_spec(&c[i].k->lin, d->backend->renderer ? str_text(&src[i]) : NULL);
    }
    if (d->backend->compile(d, ks, n, g)) {
      if (n == 1) fprintf(stderr, "%s\n", str_text(&src[0]));
      fail_msg("%s %s", d->describe, d->err->msg);
    }
    for (int i = 0; i < n; i++) {
      void *b[MAXBUF] = {0};
      for (int j = 0; j < c[i].nbuf; j++) {
        assert_int_equal(d->backend->alloc(d, c[i].buf[j].nbytes, &b[j]), TG_OK);
        d->backend->copy_in(d, b[j], c[i].buf[j].data, c[i].buf[j].nbytes);
      }
      if (d->backend->launch(d, &(Launch){.program = g[i], .bufs = b, .vars = c[i].vars}))
        fail_msg("%s", d->err->msg);
      char who[200];
      snprintf(who, sizeof who, "%.100s %s", d->describe, c[i].k->lin.name);
      c[i].check(&c[i], who, b);
      for (int j = 0; j < c[i].nbuf; j++)
        d->backend->free(d, b[j], c[i].buf[j].nbytes);
      d->backend->unload(d, g[i]);
      str_free(&src[i]);
    }
    free(ks), free(src), free(g);
  }
  for (int i = 0; i < n; i++)
    free(c[i].k);
}

/* ---- values of every dtype, as the test sees them */
static float half_value(uint16_t h, int mant, int bias) {
  int e = (h & 0x7fff) >> mant, m = h & ((1 << mant) - 1), emax = (1 << (15 - mant)) - 1;
  float v = e == emax ? (m ? NAN : INFINITY)
            : e       ? ldexpf((float)(m + (1 << mant)), e - bias - mant)
                      : ldexpf((float)m, 1 - bias - mant);
  return h & 0x8000 ? -v : v;
}

/* Small floats by their definition: OCP 8-bit formats, IEEE halves, bfloat. */
static float small_value(DType d, uint16_t h) {
  if (d == DT_F16) return half_value(h, 10, 15);
  if (d == DT_BF16) return half_value(h, 7, 127);
  if (d == DT_FP8E5M2) return half_value((uint16_t)(h << 8), 10, 15);
  int e = h >> 3 & 15, m = h & 7;
  float v = (h & 127) == 127 ? NAN : e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
  return h & 128 ? -v : v;
}

static bool is_small(DType d) { return d == DT_F16 || d == DT_BF16 || d == DT_FP8E4M3 || d == DT_FP8E5M2; }

static uint16_t small_bits(DType d, const void *p, int i) {
  return dtype_size(d) == 1 ? ((const uint8_t *)p)[i] : ((const uint16_t *)p)[i];
}

static long double value(DType d, const void *p, int i) {
  switch (d) {
  case DT_BOOL:
  case DT_U8: return ((const uint8_t *)p)[i];
  case DT_I8: return ((const int8_t *)p)[i];
  case DT_I16: return ((const int16_t *)p)[i];
  case DT_U16: return ((const uint16_t *)p)[i];
  case DT_I32: return ((const int32_t *)p)[i];
  case DT_U32: return ((const uint32_t *)p)[i];
  case DT_I64: return ((const int64_t *)p)[i];
  case DT_U64: return ((const uint64_t *)p)[i];
  case DT_FP8E4M3:
  case DT_FP8E5M2:
  case DT_F16:
  case DT_BF16: return small_value(d, small_bits(d, p, i));
  case DT_F32: return ((const float *)p)[i];
  default: return ((const double *)p)[i];
  }
}

static int64_t ivalue(DType d, const void *p, int i) {
  return d == DT_U64 ? (int64_t)((const uint64_t *)p)[i] : (int64_t)value(d, p, i);
}

static void set_bits(DType d, void *p, int i, int64_t v) {
  memcpy((char *)p + (size_t)i * dtype_size(d), &v, dtype_size(d));
}

static bool same(long double a, long double b) {
  return isnan(a) ? isnan(b) : a == b && (a != 0 || signbit(a) == signbit(b));
}

static const DType int_types[] = {DT_I8, DT_U8, DT_I16, DT_U16, DT_I32, DT_U32, DT_I64, DT_U64};

/* ---- integer ops, every dtype, scalar and vector */
static const Ops int_ops[] = {OPS_ADD,      OPS_SUB,  OPS_MUL,   OPS_CDIV,   OPS_CMOD,  OPS_FLOORDIV,
                              OPS_FLOORMOD, OPS_MAX,  OPS_CMPLT, OPS_CMPNE,  OPS_CMPEQ, OPS_AND,
                              OPS_OR,       OPS_XOR,  OPS_SHL,   OPS_SHR,    OPS_NEG,   OPS_TRUNC,
                              OPS_MULACC,   OPS_DOT4, OPS_DOT2,  OPS_DOT2X2, OPS_ADD2};

static int64_t wrap(DType d, __int128 v) {
  switch (d) {
  case DT_I8: return (int8_t)v;
  case DT_U8: return (uint8_t)v;
  case DT_I16: return (int16_t)v;
  case DT_U16: return (uint16_t)v;
  case DT_I32: return (int32_t)v;
  case DT_U32: return (uint32_t)v;
  default: return (int64_t)v;
  }
}

static int64_t int_expected(Ops op, DType d, int64_t x, int64_t y, int64_t z) {
  __int128 a = d == DT_U64 ? (__int128)(uint64_t)x : x, b = d == DT_U64 ? (__int128)(uint64_t)y : y;
  int bits = (int)dtype_size(d) * 8;
  bool far = b < 0 || b >= bits;
  switch (op) {
  case OPS_ADD: return wrap(d, a + b);
  case OPS_SUB: return wrap(d, a - b);
  case OPS_MUL: return wrap(d, (__int128)((unsigned __int128)a * (unsigned __int128)b));
  case OPS_CDIV: return b ? wrap(d, a / b) : 0;
  case OPS_CMOD: return b ? wrap(d, a % b) : x;
  case OPS_FLOORDIV: return b ? wrap(d, a / b - (a % b != 0 && (a < 0) != (b < 0))) : 0;
  case OPS_FLOORMOD: return b ? wrap(d, (a % b + b) % b) : x;
  case OPS_MAX: return a > b ? x : y;
  case OPS_CMPLT: return a < b;
  case OPS_CMPNE: return a != b;
  case OPS_CMPEQ: return a == b;
  case OPS_AND: return x & y;
  case OPS_OR: return x | y;
  case OPS_XOR: return x ^ y;
  case OPS_SHL: return far ? 0 : wrap(d, (__int128)((unsigned __int128)a << (int)b));
  case OPS_SHR: return wrap(d, far ? (a < 0 ? -1 : 0) : a >> (int)b);
  case OPS_NEG: return wrap(d, -a);
  case OPS_DOT4: {
    int64_t sum = 0;
    for (int i = 0; i < 4; i++)
      sum += (uint8_t)((uint64_t)x >> 8 * i) * (int8_t)((uint64_t)y >> 8 * i);
    return sum;
  }
  case OPS_DOT2:
    return wrap(d, (__int128)(int16_t)x * (int16_t)y + (__int128)(int16_t)(x >> 16) * (int16_t)(y >> 16));
  case OPS_DOT2X2: {
    uint32_t both = 0;
    for (int i = 0; i < 2; i++) {
      int sum = 0;
      for (int k = 2 * i; k < 2 * i + 2; k++)
        sum += (uint8_t)((uint64_t)x >> 8 * k) * (int8_t)((uint64_t)y >> 8 * k);
      both |= (uint32_t)(uint16_t)(sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum) << 16 * i;
    }
    return (int32_t)both;
  }
  case OPS_ADD2: return (int32_t)((uint16_t)(x + y) | (uint32_t)(uint16_t)((x >> 16) + (y >> 16)) << 16);
  case OPS_MULACC:
    return wrap(d, (__int128)((unsigned __int128)a * (unsigned __int128)b + (unsigned __int128)(__int128)z));
  default: return x;
  }
}

static void check_int(const Case *c, const char *dev, void **got) {
  Ops op = (Ops)c->id;
  DType d = (DType)c->id2, to = op_flags(op) & OPF_CMP ? DT_BOOL : d;
  for (int i = 0; i < 256; i++) {
    int64_t a = ivalue(d, got[1], i);
    int64_t b = ivalue(d, got[2], i);
    int64_t want = int_expected(op, d, a, b, a);
    int64_t have = ivalue(to, got[0], i);
    if (want != have)
      fail_msg("%s: %s %s(%lld, %lld) = %lld, not %lld", dev, dtype_name(d), op_name(op), (long long)a,
               (long long)b, (long long)want, (long long)have);
  }
}

/* out[i] = op(a[i], b[i], a[i]) over n elements, in vectors of `lanes`; src1 NULL: from buffer b. */
static K *elementwise(Ops op, DType d, DType to, int lanes, int n, UOp *src1) {
  char name[80];
  snprintf(name, sizeof name, "%s_%s_%s_%d", op_name(op), dtype_name(d), dtype_name(to), lanes);
  K *k = k_new(name);
  UOp *o = param(k, to, n), *a = param(k, d, n), *b = param(k, d, n), *r = range(k, n / lanes, 0, AXIS_LOOP);
  UOp *at = E(k, MUL, DT_I32, 1, ARG0, r, ci(lanes));
  UOp *s[3] = {load(k, a, at, lanes), src1 ? splat(k, src1, lanes) : load(k, b, at, lanes), NULL};
  s[2] = s[0];
  int nsrc = op == OPS_CAST || op == OPS_BITCAST ? 1 : op_nsrc(op);
  store(k, o, at, push(k, uop_new(st, op, to, lanes, nsrc, s, ARG0)));
  end(k, r);
  return k;
}

static void test_int_ops(void **state) {
  (void)state;
  static uint64_t zero[256], in[TG_COUNT(int_types)][2][256];
  for (size_t t = 0; t < TG_COUNT(int_types); t++) {
    DType d = int_types[t];
    int64_t lo = dtype_min(d), hi = d == DT_U64 ? -1 : dtype_max(d), w = (int64_t)dtype_size(d) * 8;
    int64_t vals[16] = {0,
                        1,
                        wrap(d, -1),
                        2,
                        wrap(d, -2),
                        3,
                        7,
                        wrap(d, -7),
                        lo,
                        hi,
                        wrap(d, (__int128)lo + 1),
                        wrap(d, (__int128)hi - 1),
                        w - 1,
                        w,
                        w + 1,
                        100};
    for (int i = 0; i < 256; i++)
      set_bits(d, in[t][0], i, vals[i / 16]), set_bits(d, in[t][1], i, vals[i % 16]);
    Case c[TG_COUNT(int_ops) * 4];
    int n = 0;
    static const int lanes[] = {1, 4, 16, 64};
    for (size_t o = 0; o < TG_COUNT(int_ops); o++)
      for (size_t l = 0; l < TG_COUNT(lanes) && op_takes(int_ops[o], 0, d); l++) {
        DType to = op_flags(int_ops[o]) & OPF_CMP ? DT_BOOL : d;
        size_t size = 256 * dtype_size(d);
        c[n++] = (Case){elementwise(int_ops[o], d, to, lanes[l], 256, NULL),
                        {{zero, 256 * dtype_size(to)}, {in[t][0], size}, {in[t][1], size}},
                        3,
                        NULL,
                        check_int,
                        (int)int_ops[o],
                        (int)d};
      }
    run(c, n);
  }
}

/* A constant divisor or shift takes other paths of the renderer. */
static void check_int_const(const Case *c, const char *dev, void **got) {
  Ops op = (Ops)(c->id & 255);
  DType d = (DType)c->id2;
  for (int i = 0; i < 256; i++) {
    int64_t a = ivalue(d, got[1], i);
    int64_t want = int_expected(op, d, a, c->id >> 8, 0);
    int64_t have = ivalue(d, got[0], i);
    if (want != have)
      fail_msg("%s: %s %s(%lld, %d) = %lld, not %lld", dev, dtype_name(d), op_name(op), (long long)a,
               c->id >> 8, (long long)want, (long long)have);
  }
}

static void test_int_const_operand(void **state) {
  (void)state;
  static const Ops ops[] = {OPS_CDIV, OPS_CMOD, OPS_FLOORDIV, OPS_FLOORMOD, OPS_SHL, OPS_SHR};
  static uint64_t zero[256], in[TG_COUNT(int_types)][256];
  Case c[TG_COUNT(int_types) * TG_COUNT(ops) * 4];
  int n = 0;
  for (size_t t = 0; t < TG_COUNT(int_types); t++) {
    DType d = int_types[t];
    for (int i = 0; i < 256; i++)
      set_bits(d, in[t], i, i < 128 ? i * 37 - 2000 : i < 192 ? dtype_max(d) - i : dtype_min(d) + i - 192);
    for (size_t o = 0; o < TG_COUNT(ops); o++)
      for (int l = 1; l <= 16; l *= 16)
        for (int y = 3; y <= 7; y += 4) {
          K *k = elementwise(ops[o], d, d, l, 256, uop_const(st, d, (Scalar){.i = y}));
          c[n++] = (Case){
              k,
              {{zero, 256 * dtype_size(d)}, {in[t], 256 * dtype_size(d)}, {in[t], 256 * dtype_size(d)}},
              3,
              NULL,
              check_int_const,
              (int)ops[o] | y << 8,
              (int)d};
        }
  }
  run(c, n);
}

/* ---- floats */
static const Ops float_ops[] = {OPS_ADD,   OPS_SUB, OPS_MUL,  OPS_FDIV,       OPS_MAX,   OPS_CMPLT, OPS_CMPNE,
                                OPS_CMPEQ, OPS_NEG, OPS_SQRT, OPS_RECIPROCAL, OPS_TRUNC, OPS_MULACC};
static const double float_values[16] = {
    0.0, -0.0,     1,         -1.5,      0.1,      3e38, -3e38, 1e-40,
    NAN, INFINITY, -INFINITY, 8388607.5, -8388609, 0.7,  -0.3,  4503599627370497.5};

static double float_expected(Ops op, bool f32, double a, double b) {
  float x = (float)a, y = (float)b;
  switch (op) {
  case OPS_ADD: return f32 ? (double)(x + y) : a + b;
  case OPS_SUB: return f32 ? (double)(x - y) : a - b;
  case OPS_MUL: return f32 ? (double)(x * y) : a * b;
  case OPS_FDIV: return f32 ? (double)(x / y) : a / b;
  case OPS_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
  case OPS_CMPLT: return a < b;
  case OPS_CMPNE: return !(a == b);
  case OPS_CMPEQ: return a == b;
  case OPS_NEG: return -a;
  case OPS_SQRT: return f32 ? (double)sqrtf(x) : sqrt(a);
  case OPS_RECIPROCAL: return f32 ? (double)(1 / x) : 1 / a;
  case OPS_TRUNC: return trunc(a);
  default: return f32 ? (double)fmaf(x, y, x) : fma(a, b, a);
  }
}

static void check_float(const Case *c, const char *dev, void **got) {
  Ops op = (Ops)c->id;
  DType d = (DType)c->id2, to = op_flags(op) & OPF_CMP ? DT_BOOL : d;
  for (int i = 0; i < 256; i++) {
    double a = (double)value(d, got[1], i);
    double b = (double)value(d, got[2], i);
    double want = float_expected(op, d == DT_F32, a, b);
    double have = (double)value(to, got[0], i);
    if (op == OPS_MAX && want == 0 && have == 0) continue; /* max(0, -0) may be either zero */
    if (!same(want, have))
      fail_msg("%s: %s %s(%a, %a) = %a, not %a", dev, dtype_name(d), op_name(op), a, b, want, have);
  }
}

static void test_float_ops(void **state) {
  (void)state;
  static float f[2][256];
  static double g[2][256];
  static uint64_t zero[256];
  for (int i = 0; i < 256; i++)
    g[0][i] = float_values[i / 16], g[1][i] = float_values[i % 16], f[0][i] = (float)g[0][i],
    f[1][i] = (float)g[1][i];
  Case c[TG_COUNT(float_ops) * 12];
  int n = 0;
  for (size_t o = 0; o < TG_COUNT(float_ops); o++)
    for (int lanes = 1; lanes <= 32; lanes *= 2)
      for (int w = 0; w < 2; w++) {
        DType d = w ? DT_F64 : DT_F32, to = op_flags(float_ops[o]) & OPF_CMP ? DT_BOOL : d;
        size_t size = 256 * dtype_size(d);
        const void *a = w ? (void *)g[0] : (void *)f[0], *b = w ? (void *)g[1] : (void *)f[1];
        c[n++] = (Case){elementwise(float_ops[o], d, to, lanes, 256, NULL),
                        {{zero, 256 * dtype_size(to)}, {a, size}, {b, size}},
                        3,
                        NULL,
                        check_float,
                        (int)float_ops[o],
                        (int)d};
      }
  run(c, n);
}

/* ---- casts between all pairs */
static long double round_half(long double x, int mant, int emin, long double max) {
  if (isnan(x) || x == 0) return x;
  if (isinf(x)) return max == 448 ? NAN : x;
  int e;
  frexpl(x, &e);
  long double q = ldexpl(1, (e - 1 < emin ? emin : e - 1) - mant), r = rintl(x / q) * q;
  return fabsl(r) > max ? max == 448 ? NAN : (x < 0 ? -INFINITY : INFINITY) : r == 0 ? copysignl(0, x) : r;
}

static long double cast_expected(DType to, DType from, const void *p, int i) {
  long double x = value(from, p, i);
  if (to == DT_BOOL) return x != 0;
  if (to == DT_F64) return (double)x;
  if (to == DT_F32) return (float)x;
  if (to == DT_FP8E4M3) return round_half(x, 3, -6, 448);
  if (to == DT_FP8E5M2) return round_half(x, 2, -14, 57344);
  if (to == DT_F16) return round_half(x, 10, -14, 65504);
  if (to == DT_BF16) return round_half(x, 7, -126, (long double)0x1.fep127);
  if (!dtype_is_float(from)) {
    uint64_t bits = (uint64_t)wrap(to, ivalue(from, p, i));
    return to == DT_U64 ? (long double)bits : (long double)(int64_t)bits;
  }
  long double lo = dtype_min(to), hi = to == DT_U64 ? 18446744073709551615.0L : (long double)dtype_max(to);
  return isnan(x) ? 0 : x <= lo ? lo : x >= hi ? hi : truncl(x) + 0.0L;
}

static void check_cast(const Case *c, const char *dev, void **got) {
  DType to = (DType)c->id, from = (DType)(c->id2 & 255);
  for (int i = 0; i < (c->id2 >> 8 == 64 ? 64 : 96); i++) {
    long double want = cast_expected(to, from, got[1], i), have = value(to, got[0], i);
    if (!same(want, have) && !(want == 0 && have == 0 && !dtype_is_float(to)))
      fail_msg("%s: %La from %s to %s = %La, not %La", dev, value(from, got[1], i), dtype_name(from),
               dtype_name(to), want, have);
  }
}

static void test_casts(void **state) {
  (void)state;
  static const DType types[] = {DT_BOOL, DT_I8,      DT_U8,      DT_I16, DT_U16,  DT_I32, DT_U32, DT_I64,
                                DT_U64,  DT_FP8E4M3, DT_FP8E5M2, DT_F16, DT_BF16, DT_F32, DT_F64};
  static const double fv[96] = {
      0.0, -0.0, NAN, INFINITY, -INFINITY, 0.5, -0.5, -0.99, 0.99, 1.5, -1.5, 127, 127.9, 128, -128, -128.9,
      -129, 255, 255.9, 256, 32767, 32768, -32768, -32769, 65535, 65535.9, 65536, 65504, 65519.9, 65520,
      2147483647, 2147483648.0, -2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 9.3e18, -9.3e18,
      1.9e19, 1e30, -1e30, 6e-8, 3e-8, 2.98e-8, 1e-5, 6.1e-5, 1e-40, 9.2e-41, 4.5e-41, 1.00390625, 1.01171875,
      2049, 2051, -2049, 3.3895e38, 3.4e38, 1e300, 1e-300, 1.0004883, 1.0014648, -7, 100, 200, 16777217,
      /* next to the ties of the small formats, closer than f32 can say */
      448, 463.9999999999, 464, 464.00000000001, 480, 57344, 61439.9999999999, 61440, 0x1p-10,
      0x1.00000000001p-10, 0x1p-17, 0x1.000000001p-17, 0x1.8p-9, 1.0625, 1.06250000000001, 1.125,
      1.12500000000001, -1.1875, -1.18749999999999, 1.00048828125, 1.00048828125000022, 1.00390625000000022,
      0x1p-25, 0x1.0000000000001p-25, 9223372036854775807.0, -9223372036854775808.0, 18446744073709549568.0,
      9007199254740993.0, 2147483647.5, 0x1.fffffep127, 0x1p-149, -0x1.8p-150};
  static uint64_t zero[96], in[TG_COUNT(types)][96];
  /* integers on and beside the ties of f64, f32, bf16 and f16 */
  static const int64_t iv[32] = {0x7fffffffffffffff,
                                 0x4040000000000000,
                                 0x4040000000000001,
                                 0x40c0000000000000,
                                 0x40bfffffffffffff,
                                 0x20000000000001,
                                 0x20000000000003,
                                 0x1000001,
                                 0x1000003,
                                 0x1000000000000001,
                                 0x7fffff4000000001,
                                 0x7fffffc000000000,
                                 0x7fffffbfffffffff,
                                 0x101,
                                 0x103,
                                 0x801,
                                 0x803,
                                 65519,
                                 65520,
                                 464,
                                 465,
                                 61439,
                                 61440,
                                 0x8080000001,
                                 0x80800001,
                                 17,
                                 19,
                                 25,
                                 9,
                                 11,
                                 -17,
                                 -0x4040000000000001};
  Case c[TG_COUNT(types) * TG_COUNT(types) * 2];
  for (size_t f = 0; f < TG_COUNT(types); f++) {
    DType d = types[f];
    for (int i = 0; i < 96; i++) {
      double x = fv[i];
      float x32 = (float)x;
      if (d == DT_F64)
        memcpy((double *)in[f] + i, &x, 8);
      else if (d == DT_F32)
        memcpy((float *)in[f] + i, &x32, 4);
      else if (dtype_size(d) == 1 && is_small(d))
        ((uint8_t *)in[f])[i] =
            (uint8_t)(i < 12 ? (int[]){0, 128, 1, 129, 126, 127, 255, 124, 125, 252, 123, 8}[i]
                             : i * 37 + 17);
      else if (is_small(d))
        ((uint16_t *)in[f])[i] =
            (uint16_t)(i < 8 ? (int[]){0, 0x8000, 1, 0x8001, 0x7f80, 0x7c00, 0xfc00, 0x7e00}[i]
                             : i * 1021 + 17);
      else if (d == DT_BOOL)
        ((uint8_t *)in[f])[i] = i % 3 == 1;
      else
        set_bits(d, in[f], i,
                 i < 8    ? dtype_min(d) + i
                 : i < 16 ? dtype_max(d) - (i - 8)
                 : i < 40 ? (i - 28)
                 : i < 64 ? (int64_t)1 << (i - 20)
                          : iv[i - 64]);
    }
  }
  for (int lanes = 1; lanes <= 64; lanes *= lanes == 1 ? 2 : lanes == 2 ? 8 : lanes == 16 ? 2 : 2) {
    int n = 0;
    for (size_t f = 0; f < TG_COUNT(types); f++)
      for (size_t t = 0; t < TG_COUNT(types); t++) {
        DType from = types[f], to = types[t];
        c[n++] = (Case){
            elementwise(OPS_CAST, from, to, lanes, lanes == 64 ? 64 : 96, NULL),
            {{zero, 96 * dtype_size(to)}, {in[f], 96 * dtype_size(from)}, {in[f], 96 * dtype_size(from)}},
            3,
            NULL,
            check_cast,
            (int)to,
            (int)from | lanes << 8};
      }
    run(c, n);
  }
}

static void check_copy(const Case *c, const char *dev, void **got) {
  if (memcmp(got[0], got[1], c->buf[1].nbytes)) fail_msg("%s: bits changed", dev);
}

static void test_bitcasts(void **state) {
  (void)state;
  static const DType pairs[][2] = {{DT_F32, DT_I32}, {DT_U32, DT_F32},  {DT_F64, DT_U64}, {DT_I64, DT_F64},
                                   {DT_F16, DT_U16}, {DT_I16, DT_BF16}, {DT_I8, DT_U8},   {DT_I32, DT_U32}};
  static uint64_t zero[64], in[64];
  for (int i = 0; i < 64; i++)
    in[i] = 0x0102030405060708u * (uint64_t)(i + 1);
  Case c[TG_COUNT(pairs) * 2];
  int n = 0;
  for (size_t i = 0; i < TG_COUNT(pairs); i++)
    for (int l = 1; l <= 16; l *= 16)
      c[n++] = (Case){elementwise(OPS_BITCAST, pairs[i][0], pairs[i][1], l, 64, NULL),
                      {{zero, 64 * dtype_size(pairs[i][0])}, {in, 64 * dtype_size(pairs[i][0])}, {in, 512}},
                      3,
                      NULL,
                      check_copy,
                      0,
                      0};
  run(c, n);
}

/* a small float -> f32 -> back gives every bit pattern again, but NaN payloads */
static void check_round_trip(const Case *c, const char *dev, void **got) {
  DType d = (DType)c->id;
  for (int i = 0; i < 65536; i++) {
    uint16_t a = small_bits(d, got[1], i), b = small_bits(d, got[0], i);
    if (isnan(small_value(d, a)) ? !isnan(small_value(d, b)) : a != b)
      fail_msg("%s: %s %04x became %04x", dev, dtype_name(d), a, b);
    if (!same(small_value(d, a), ((float *)got[2])[i]))
      fail_msg("%s: %s %04x read as %a", dev, dtype_name(d), a, (double)((float *)got[2])[i]);
  }
}

static void test_small_round_trip(void **state) {
  (void)state;
  static const DType types[] = {DT_F16, DT_BF16, DT_FP8E4M3, DT_FP8E5M2};
  static uint16_t in[65536];
  static uint8_t in8[65536];
  static float zero[65536];
  for (int i = 0; i < 65536; i++)
    in[i] = (uint16_t)i, in8[i] = (uint8_t)i;
  Case c[16];
  int n = 0;
  for (int w = 0; w < 4; w++)
    for (int l = 1; l <= 32; l *= l == 1 ? 8 : 2) {
      DType d = types[w];
      K *k = k_new("round_trip");
      UOp *o = param(k, d, 65536);
      UOp *a = param(k, d, 65536);
      UOp *f = param(k, DT_F32, 65536);
      UOp *r = range(k, 65536 / l, 0, AXIS_LOOP);
      UOp *at = E(k, MUL, DT_I32, 1, ARG0, r, ci(l));
      UOp *x = load(k, a, at, l);
      UOp *y = E(k, CAST, DT_F32, l, ARG0, x);
      store(k, f, at, y);
      store(k, o, at, E(k, CAST, d, l, ARG0, y));
      end(k, r);
      size_t bytes = 65536 * dtype_size(d);
      c[n++] = (Case){k,
                      {{zero, bytes}, {dtype_size(d) == 1 ? (void *)in8 : in, bytes}, {zero, 262144}},
                      3,
                      NULL,
                      check_round_trip,
                      (int)d,
                      0};
    }
  run(c, n);
}

/* f32 -> small: on, just above and just below every number of the format and every tie between two, and a
 * stride over all floats. The expected value is found among the format's numbers: the nearest, of two as near
 * the one with an even last bit. */
enum { SMALL_INPUTS = 1 << 18 };

/* not negative, in order */
typedef struct Numbers {
  float v[65536];
  uint16_t bits[65536];
  int n;
  bool inf;
} Numbers;

static void numbers_of(DType d, Numbers *t) {
  t->n = 0;
  /* the patterns are in the order of their values */
  for (uint32_t h = 0; h < 1u << (8 * dtype_size(d) - 1); h++) {
    float v = small_value(d, (uint16_t)h);
    if (isnan(v) || isinf(v)) break;
    t->v[t->n] = v, t->bits[t->n++] = (uint16_t)h;
  }
  t->inf = isinf(small_value(d, (uint16_t)(t->bits[t->n - 1] + 1)));
}

static uint16_t nearest(const Numbers *t, double a) { /* a >= 0; one past the last number: overflow */
  int lo = 0, hi = t->n;
  while (hi - lo > 1) {
    int mid = (lo + hi) / 2;
    if ((double)t->v[mid] <= a)
      lo = mid;
    else
      hi = mid;
  }
  /* as if the format went on */
  double below = (double)t->v[lo], above = hi < t->n ? (double)t->v[hi] : 2 * below - (double)t->v[lo - 1];
  double down = a - below, up = above - a;
  return (uint16_t)(t->bits[lo] + (up < down || (up == down && (t->bits[lo] & 1))));
}

static void check_nearest(const Case *c, const char *dev, void **got) {
  static Numbers t;
  DType d = (DType)c->id;
  numbers_of(d, &t);
  for (int i = 0; i < SMALL_INPUTS; i++) {
    float x = ((const float *)got[1])[i], have = small_value(d, small_bits(d, got[0], i));
    int sign = signbit(x) ? 1 << (8 * dtype_size(d) - 1) : 0;
    uint16_t b = isnan(x) || isinf(x) ? 0 : nearest(&t, fabs((double)x));
    bool over = isinf(x) || b > t.bits[t.n - 1];
    float want = isnan(x) || (over && !t.inf) ? NAN
                 : over                       ? copysignf(INFINITY, x)
                                              : small_value(d, (uint16_t)(b | sign));
    if (!same(want, have))
      fail_msg("%s: %a to %s is %a, not %a", dev, (double)x, dtype_name(d), (double)have, (double)want);
  }
}

static void test_small_rounding(void **state) {
  (void)state;
  static const DType types[] = {DT_F16, DT_BF16, DT_FP8E4M3, DT_FP8E5M2};
  static float in[4][SMALL_INPUTS];
  static uint16_t zero[SMALL_INPUTS];
  static Numbers t;
  Case c[8];
  int n = 0;
  for (int w = 0; w < 4; w++) {
    DType d = types[w];
    numbers_of(d, &t);
    int m = 0;
    for (int i = 0; i < t.n; i++) {
      double next = i + 1 < t.n ? (double)t.v[i + 1] : 2 * (double)t.v[i] - (double)t.v[i - 1];
      float at[2] = {t.v[i], (float)(((double)t.v[i] + next) / 2)};
      for (int k = 0; k < 2; k++)
        for (int s = -1; s < 2 && m < SMALL_INPUTS - 65536; s++) {
          float x = s ? nextafterf(at[k], s > 0 ? INFINITY : -INFINITY) : at[k];
          in[w][m] = m & 1 ? -x : x, m++;
        }
    }
    for (uint32_t k = 0; m < SMALL_INPUTS; k++) { /* all exponents, both signs, NaNs */
      uint32_t bits = k * 2654435761u;
      memcpy(&in[w][m++], &bits, 4);
    }
    for (int l = 1; l <= 16; l *= 16)
      c[n++] = (Case){elementwise(OPS_CAST, DT_F32, d, l, SMALL_INPUTS, NULL),
                      {{zero, SMALL_INPUTS * dtype_size(d)}, {in[w], sizeof in[w]}, {in[w], sizeof in[w]}},
                      3,
                      NULL,
                      check_nearest,
                      (int)d,
                      0};
  }
  run(c, n);
}

/* ---- bool vectors: masks of several widths meet */
static void check_bools(const Case *c, const char *dev, void **got) {
  (void)c;
  const float *x = got[1];
  const int8_t *y = got[2];
  const uint8_t *z = got[3];
  for (int i = 0; i < 64; i++) {
    int lt = x[i] < 0.5f, ne = y[i] != 3, b = z[i];
    int want = ((lt & ne) | b) ^ (lt == b), have = ((uint8_t *)got[0])[i];
    int sum = lt + (want ? 10 : 20) + (int)(ne < b) * 100;
    if (want != have) fail_msg("%s: bool lane %d is %d", dev, i, have);
    if (sum != ((int32_t *)got[4])[i])
      fail_msg("%s: int lane %d is %d, not %d", dev, i, ((int32_t *)got[4])[i], sum);
  }
}

static void test_bool_vectors(void **state) {
  (void)state;
  static float x[64];
  static int8_t y[64];
  static uint8_t z[64];
  static int32_t zero[64];
  for (int i = 0; i < 64; i++)
    x[i] = i % 7 == 2 ? NAN : (float)(i % 5) * 0.3f, y[i] = (int8_t)(i % 4), z[i] = i % 3 == 0;
  Case c[5];
  int n = 0;
  for (int l = 1; l <= 16; l *= 2) {
    K *k = k_new("bools");
    UOp *o = param(k, DT_BOOL, 64);
    UOp *px = param(k, DT_F32, 64);
    UOp *py = param(k, DT_I8, 64);
    UOp *pz = param(k, DT_BOOL, 64);
    UOp *po = param(k, DT_I32, 64);
    UOp *acc = reg(k, DT_BOOL, l, 0);
    UOp *r = range(k, 64 / l, 0, AXIS_LOOP);
    UOp *at = E(k, MUL, DT_I32, 1, ARG0, r, ci(l));
    UOp *lt = E(k, CMPLT, DT_BOOL, l, ARG0, load(k, px, at, l),
                splat(k, uop_const(st, DT_F32, (Scalar){.f = 0.5}), l));
    UOp *ne = E(k, CMPNE, DT_BOOL, l, ARG0, load(k, py, at, l),
                splat(k, uop_const(st, DT_I8, (Scalar){.i = 3}), l));
    UOp *b = load(k, pz, at, l);
    UOp *v = E(k, OR, DT_BOOL, l, ARG0, E(k, AND, DT_BOOL, l, ARG0, ne, lt), b);
    v = E(k, XOR, DT_BOOL, l, ARG0, E(k, CMPEQ, DT_BOOL, l, ARG0, lt, b), v);
    E(k, STORE, DT_VOID, 1, ARG0, acc, v);
    v = E(k, LOAD, DT_BOOL, l, ARG0, acc);
    if (l > 1) { /* apart and together again */
      UOp *half[2] = {gep(k, v, 0, l / 2), gep(k, v, l / 2, l / 2)}, *s[16];
      for (int i = 0; i < l; i++)
        s[i] = l == 2 ? half[i] : gep(k, half[i / (l / 2)], i % (l / 2), 1);
      v = push(k, uop_new(st, OPS_VECTORIZE, DT_BOOL, l, l, s, ARG0));
    }
    store(k, o, at, v);
    UOp *w = E(k, WHERE, DT_I32, l, ARG0, v, splat(k, ci(10), l), splat(k, ci(20), l));
    UOp *less = E(k, CMPLT, DT_BOOL, l, ARG0, ne, b);
    UOp *sum = E(k, ADD, DT_I32, l, ARG0, E(k, CAST, DT_I32, l, ARG0, lt), w);
    sum = E(k, ADD, DT_I32, l, ARG0, sum,
            E(k, WHERE, DT_I32, l, ARG0, less, splat(k, ci(100), l), splat(k, ci(0), l)));
    store(k, po, at, sum);
    end(k, r);
    c[n++] = (Case){k,
                    {{zero, 64}, {x, sizeof x}, {y, sizeof y}, {z, sizeof z}, {zero, sizeof zero}},
                    5,
                    NULL,
                    check_bools,
                    0,
                    0};
  }
  run(c, n);
}

static void check_where(const Case *c, const char *dev, void **got) {
  DType d = (DType)c->id;
  for (int i = 0; i < 64; i++)
    if (!same(value(d, got[0], i), value(d, got[((uint8_t *)got[3])[i] ? 1 : 2], i)))
      fail_msg("%s: lane %d takes the wrong side", dev, i);
}

static void test_where(void **state) {
  (void)state;
  static const DType types[] = {DT_I8, DT_U16, DT_I32, DT_U64, DT_F16, DT_F32, DT_F64};
  static uint64_t a[64], b[64], zero[64];
  static uint8_t m[64];
  for (int i = 0; i < 64; i++)
    a[i] = 0x7ff8000000000001u + (uint64_t)i * 77777, b[i] = 0x0123456789abcdefu * (uint64_t)i,
    m[i] = (i * 5) % 3 == 0;
  Case c[TG_COUNT(types) * 2];
  int n = 0;
  for (size_t t = 0; t < TG_COUNT(types); t++)
    for (int l = 1; l <= 8; l *= 8) {
      DType d = types[t];
      K *k = k_new("where");
      UOp *o = param(k, d, 64);
      UOp *x = param(k, d, 64);
      UOp *y = param(k, d, 64);
      UOp *q = param(k, DT_BOOL, 64);
      UOp *r = range(k, 64 / l, 0, AXIS_LOOP);
      UOp *at = E(k, MUL, DT_I32, 1, ARG0, r, ci(l));
      UOp *mm = load(k, q, at, l);
      UOp *xx = load(k, x, at, l);
      UOp *yy = load(k, y, at, l);
      store(k, o, at, E(k, WHERE, d, l, ARG0, mm, xx, yy));
      end(k, r);
      size_t s = 64 * dtype_size(d);
      c[n++] = (Case){k, {{zero, s}, {a, s}, {b, s}, {m, 64}}, 4, NULL, check_where, (int)d, 0};
    }
  run(c, n);
}

/* ---- memory, loops, threads */
static void check_gated(const Case *c, const char *dev, void **got) {
  (void)c;
  for (int i = 0; i < 64; i++) {
    bool in = i >= 16 && i < 48;
    float want = in ? ((float *)got[1])[i - 16] : i < 16 ? 0.0f : -7.0f;
    if (i >= 56) want = 99; /* the gated store leaves these */
    if (((float *)got[0])[i] != want)
      fail_msg("%s: element %d is %g, not %g", dev, i, (double)((float *)got[0])[i], (double)want);
  }
}

static void test_gated(void **state) {
  (void)state;
  static float in[32], out[64];
  for (int i = 0; i < 32; i++)
    in[i] = (float)i + 0.25f;
  for (int i = 0; i < 64; i++)
    out[i] = 99;
  Case c[2];
  for (int v = 0; v < 2; v++) {
    int l = v ? 8 : 1;
    K *k = k_new("gated");
    UOp *o = param(k, DT_F32, 64);
    UOp *a = param(k, DT_F32, 32);
    UOp *r = range(k, 64 / l, 0, AXIS_LOOP);
    UOp *at = E(k, MUL, DT_I32, 1, ARG0, r, ci(l));
    UOp *low = E(k, CMPLT, DT_BOOL, 1, ARG0, at, ci(16));
    UOp *high = E(k, CMPLT, DT_BOOL, 1, ARG0, at, ci(48));
    UOp *in_it = E(k, CMPLT, DT_BOOL, 1, ARG0, low, high);
    UOp *off = E(k, SUB, DT_I32, 1, ARG0, at, ci(16));
    UOp *ix = E(k, INDEX, DT_F32, 1, (Arg){.i = 1}, a, off, in_it);
    UOp *zero = E(k, LOAD, DT_F32, l, ARG0, ix);
    UOp *alt = E(k, LOAD, DT_F32, l, ARG0, ix, splat(k, uop_const(st, DT_F32, (Scalar){.f = -7}), l));
    UOp *lows = splat(k, low, l), *val = E(k, WHERE, DT_F32, l, ARG0, lows, zero, alt);
    UOp *sx = E(k, INDEX, DT_F32, 1, (Arg){.i = 1}, o, at, E(k, CMPLT, DT_BOOL, 1, ARG0, at, ci(56)));
    E(k, STORE, DT_VOID, 1, ARG0, sx, val);
    end(k, r);
    c[v] = (Case){k, {{out, sizeof out}, {in, sizeof in}}, 2, NULL, check_gated, 0, 0};
  }
  run(c, 2);
}

static void check_sum(const Case *c, const char *dev, void **got) {
  int64_t n = c->vars[0];
  float want = 0;
  for (int64_t i = 0; i < n; i++)
    want += ((float *)got[1])[i];
  if (((float *)got[0])[0] != want)
    fail_msg("%s: sum is %a, not %a", dev, (double)((float *)got[0])[0], (double)want);
}

static void test_reduce_and_var(void **state) {
  (void)state;
  static float in[1000], zero[1];
  static const int64_t n[] = {777};
  for (int i = 0; i < 1000; i++)
    in[i] = (float)(i % 17) * 0.37f;
  K *k = k_new("sum");
  UOp *o = param(k, DT_F32, 1);
  UOp *a = param(k, DT_F32, 1000);
  UOp *var = push(k, uop_new(st, OPS_VAR, DT_I32, 1, 0, NULL, (Arg){.var = {1, 1000}}));
  UOp *acc = reg(k, DT_F32, 1, 0);
  E(k, STORE, DT_VOID, 1, ARG0, acc, uop_const(st, DT_F32, (Scalar){.f = 0}));
  UOp *r = E(k, RANGE, DT_I32, 1, ((Arg){.range = {0, AXIS_REDUCE}}), var);
  UOp *was = E(k, LOAD, DT_F32, 1, ARG0, acc, r);
  UOp *sum = E(k, ADD, DT_F32, 1, ARG0, was, load(k, a, r, 1)), *s = E(k, STORE, DT_VOID, 1, ARG0, acc, sum);
  end(k, r);
  store(k, o, ci(0), E(k, LOAD, DT_F32, 1, ARG0, acc, s));
  Case c = {k, {{zero, 4}, {in, sizeof in}}, 2, n, check_sum, 0, 0};
  run(&c, 1);
}

/* 8 x 48 tile of c = a @ b: one accumulator variable per vector */
enum { TM = 8, TN = 48, TK = 40 };

static K *matmul_tile(void) {
  K *k = k_new("tile");
  UOp *o = param(k, DT_F32, TM * TN);
  UOp *a = param(k, DT_F32, TM * TK);
  UOp *b = param(k, DT_F32, TK * TN);
  UOp *acc[TM][3], *s[TM][3];
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < 3; j++) {
      acc[i][j] = reg(k, DT_F32, 16, i * 3 + j);
      E(k, STORE, DT_VOID, 1, ARG0, acc[i][j], splat(k, uop_const(st, DT_F32, (Scalar){.f = 0}), 16));
    }
  for (int i = 0, n = 0; i < k->lin.n; i++) { /* the splat of 0 is one node: keep its first place */
    bool again = false;
    for (int j = 0; j < n; j++)
      again |= k->at[j] == k->at[i];
    if (!again) k->at[n++] = k->at[i];
    if (i + 1 == k->lin.n) k->lin.n = n;
  }
  UOp *r = range(k, TK, 0, AXIS_REDUCE), *row = E(k, MUL, DT_I32, 1, ARG0, r, ci(TN)), *v[3];
  for (int j = 0; j < 3; j++)
    v[j] = load(k, b, E(k, ADD, DT_I32, 1, ARG0, row, ci(16 * j)), 16);
  for (int i = 0; i < TM; i++) {
    UOp *x = splat(k, load(k, a, E(k, ADD, DT_I32, 1, ARG0, r, ci(i * TK)), 1), 16);
    for (int j = 0; j < 3; j++) {
      UOp *was = E(k, LOAD, DT_F32, 16, ARG0, acc[i][j], r);
      s[i][j] = E(k, STORE, DT_VOID, 1, ARG0, acc[i][j], E(k, MULACC, DT_F32, 16, ARG0, x, v[j], was));
    }
  }
  end(k, r);
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < 3; j++)
      store(k, o, ci(i * TN + j * 16), E(k, LOAD, DT_F32, 16, ARG0, acc[i][j], s[i][j]));
  return k;
}

static void check_tile(const Case *c, const char *dev, void **got) {
  (void)c;
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < TN; j++) {
      float want = 0;
      for (int k = 0; k < TK; k++)
        want = fmaf(((float *)got[1])[i * TK + k], ((float *)got[2])[k * TN + j], want);
      if (((float *)got[0])[i * TN + j] != want)
        fail_msg("%s: [%d, %d] is %a, not %a", dev, i, j, (double)((float *)got[0])[i * TN + j],
                 (double)want);
    }
}

static void test_mulacc_tile(void **state) {
  (void)state;
  static float zero[TM * TN], a[TM * TK], b[TK * TN];
  for (int i = 0; i < TM * TK; i++)
    a[i] = (float)(i % 23) * 0.31f - 3;
  for (int i = 0; i < TK * TN; i++)
    b[i] = (float)(i % 29) * 0.17f - 2;
  Case c = {matmul_tile(), {{zero, sizeof zero}, {a, sizeof a}, {b, sizeof b}}, 3, NULL, check_tile, 0, 0};
  run(&c, 1);
}

/* Each thread fills its own scratch (40,000 bytes: more than a frame may hold), then adds it up. */
static K *threaded(int nthread) {
  K *k = k_new("threaded");
  k->lin.nthread = nthread;
  UOp *o = param(k, DT_I64, nthread);
  UOp *loc = push(k, uop_new(st, OPS_DEFINE_LOCAL, DT_I32, 1, 0, NULL, (Arg){.param = {10000, 0}}));
  UOp *small = push(k, uop_new(st, OPS_DEFINE_LOCAL, DT_I64, 1, 0, NULL, (Arg){.param = {4, 1}}));
  UOp *t = range(k, nthread, 0, AXIS_THREAD), *r = range(k, 10000, 1, AXIS_LOOP);
  store(k, loc, r, E(k, ADD, DT_I32, 1, ARG0, r, t));
  end(k, r);
  store(k, small, ci(1), uop_const(st, DT_I64, (Scalar){.i = 0}));
  UOp *q = range(k, 10000, 2, AXIS_REDUCE), *was = load(k, small, ci(1), 1);
  store(k, small, ci(1), E(k, ADD, DT_I64, 1, ARG0, was, E(k, CAST, DT_I64, 1, ARG0, load(k, loc, q, 1))));
  end(k, q);
  UOp *x = idx(k, small, uop_const(st, DT_I64, (Scalar){.i = 1}));
  store(k, o, t, E(k, LOAD, DT_I64, 1, ARG0, x));
  end(k, t);
  return k;
}

static void check_threaded(const Case *c, const char *dev, void **got) {
  for (int t = 0; t < c->id; t++) {
    int64_t want = 10000ll * 9999 / 2 + 10000ll * t, have = ((int64_t *)got[0])[t];
    if (want != have) fail_msg("%s: thread %d has %lld, not %lld", dev, t, (long long)have, (long long)want);
  }
}

static K *dedup(K *k) { /* interned nodes that the builders pushed twice */
  int n = 0;
  for (int i = 0; i < k->lin.n; i++) {
    bool again = false;
    for (int j = 0; j < n; j++)
      again |= k->at[j] == k->at[i] && k->at[i]->op != OPS_STORE;
    if (!again) k->at[n++] = k->at[i];
  }
  k->lin.n = n;
  return k;
}

static void test_threads(void **state) {
  (void)state;
  static int64_t zero[2500];
  static const int counts[] = {1, 13, 25, 37, 2500}; /* the last: more than the pool has slots */
  for (size_t i = 0; i < TG_COUNT(counts); i++) {
    int n = counts[i];
    Case c = {dedup(threaded(n)), {{zero, (size_t)n * 8}}, 1, NULL, check_threaded, n, 0};
    run(&c, 1);
  }
}

#ifdef __linux__
/* ---- the worker of a pool of two stays where the caller is not, wherever the system takes that */
static int pinned_at;

static int pin_noted(pthread_t t, int core) {
  (void)t;
  pinned_at = core;
  return 0;
}

static void nothing(void *const *bufs, const int64_t *vars, int tid, void *scratch) {
  (void)bufs, (void)vars, (void)tid, (void)scratch;
}

static void move_to(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  assert_int_equal(core_here(), core);
}

static void test_worker_stands_aside(void **state) {
  (void)state;
  cpu_set_t all;
  TgOs os = tg_os_default;
  os.thread_pin = pin_noted;
  int core[] = {core_at(0), core_at(1)};
  if (core[1] < 0) {
    print_message("skipped: one core, and nowhere to stand aside\n");
    skip();
  }
  assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
  move_to(core[0]);
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  Pool *p = pool_new(&mem, &os, 2, true);
  assert_non_null(p);
  for (int i = 0; i < 6; i++) {
    move_to(core[i % 3 == 1]);
    assert_int_equal(pool_run(p, nothing, NULL, NULL, 2, 0), TG_OK);
    assert_int_not_equal(pinned_at, core_here());
  }
  assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
  pool_free(p);
}
#endif

static void test_thread_counts(void **state) {
  /* TG_THREADS changes nothing; many launches; workers that slept */
  (void)state;
  for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
    Dev v;
    env.threads = threads;
    assert_true(dev_open(&v, &backend_cpu, NULL));
    env.threads = 0;
    K *k = dedup(threaded(16));
    Str s;
    str_init(&s, &mem);
    assert_true(renderer_c.render(&s, &k->lin, &v.err));
    Program *g;
    assert_int_equal(backend_cpu.compile(&v.d, (KernelSpec[]){kernel_spec(&k->lin, str_text(&s))}, 1, &g),
                     TG_OK);
    for (int i = 0; i < 400; i++) {
      int64_t out[16] = {0};
      void *b[] = {out};
      assert_int_equal(backend_cpu.launch(&v.d, &(Launch){.program = g, .bufs = b}), TG_OK);
      for (int t = 0; t < 16; t++)
        assert_int_equal(out[t], 10000ll * 9999 / 2 + 10000ll * t);
      if (i % 100 == 0) usleep(2000);
    }
    backend_cpu.unload(&v.d, g);
    backend_cpu.close(&v.d);
    str_free(&s);
    free(k);
  }
}

static void check_lanes(const Case *c, const char *dev, void **got) {
  (void)c;
  for (int i = 0; i < 16; i++) {
    int want = i < 8 ? i + 8 : 15 - i;
    if (((int32_t *)got[0])[i] != want)
      fail_msg("%s: lane %d is %d, not %d", dev, i, ((int32_t *)got[0])[i], want);
  }
}

static void test_lanes(void **state) {
  (void)state;
  static int32_t in[16], zero[16];
  for (int i = 0; i < 16; i++)
    in[i] = i;
  K *k = k_new("lanes");
  UOp *o = param(k, DT_I32, 16), *a = param(k, DT_I32, 16), *x = load(k, a, ci(0), 16), *s[8];
  store(k, o, ci(0), gep(k, x, 8, 8));
  for (int i = 0; i < 8; i++)
    s[i] = gep(k, x, 7 - i, 1);
  store(k, o, ci(8), push(k, uop_new(st, OPS_VECTORIZE, DT_I32, 8, 8, s, ARG0)));
  Case c = {k, {{zero, 64}, {in, 64}}, 2, NULL, check_lanes, 0, 0};
  run(&c, 1);
}

/* ---- errors */
static K *add_kernel(const char *name, double by) {
  K *k = k_new(name);
  UOp *o = param(k, DT_F32, 8), *a = param(k, DT_F32, 8), *r = range(k, 8, 0, AXIS_LOOP);
  store(k, o, r, E(k, ADD, DT_F32, 1, ARG0, load(k, a, r, 1), uop_const(st, DT_F32, (Scalar){.f = by})));
  end(k, r);
  return k;
}

static void check_add(const Case *c, const char *dev, void **got) {
  for (int i = 0; i < 8; i++)
    if (((float *)got[0])[i] != ((float *)got[1])[i] + (float)c->id) fail_msg("%s: wrong at %d", dev, i);
}

static void test_same_name(void **state) {
  (void)state;
  static float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, zero[8];
  Case c[6];
  for (int i = 0; i < 6; i++)
    c[i] = (Case){add_kernel("E_8", i / 2), {{zero, 32}, {in, 32}}, 2, NULL, check_add, i / 2, 0};
  /* pairs are equal */
  uint64_t before = devs[0].d.kernels_compiled;
  run(c, 6);
  assert_int_equal(devs[0].d.kernels_compiled - before, 3);
}

static void test_interp_bounds(void **state) {
  (void)state;
  Dev v;
  assert_true(dev_open(&v, &backend_interp, NULL));
  K *k = add_kernel("over", 1);
  k->at[1] = NULL;
  free(k);
  k = k_new("over");
  UOp *o = param(k, DT_F32, 8), *a = param(k, DT_F32, 7), *r = range(k, 8, 0, AXIS_LOOP);
  store(k, o, r, load(k, a, r, 1));
  end(k, r);
  Program *g;
  assert_int_equal(backend_interp.compile(&v.d, (KernelSpec[]){kernel_spec(&k->lin, NULL)}, 1, &g), TG_OK);
  float in[8] = {0}, out[8] = {0};
  void *b[] = {out, in};
  assert_int_equal(backend_interp.launch(&v.d, &(Launch){.program = g, .bufs = b}), TG_ERR_INTERNAL);
  assert_non_null(strstr(v.err.msg, "over"));
  assert_non_null(strstr(v.err.msg, "at 7 of buffer 1 with 7 elements"));
  backend_interp.unload(&v.d, g);
  free(k);
}

/* A program whose operands have other lanes than its operations take is refused. */
static void test_interp_lanes(void **state) {
  (void)state;
  Dev v;
  assert_true(dev_open(&v, &backend_interp, NULL));
  for (int wrong = 0; wrong < 2; wrong++) {
    K *k = k_new("uneven");
    UOp *o = param(k, DT_F32, 8), *a = param(k, DT_F32, 8);
    UOp *wide = load(k, a, ci(0), 4), *other = load(k, a, ci(4), wrong ? 2 : 4);
    store(k, o, ci(0), E(k, ADD, DT_F32, 4, ARG0, wide, other));
    Program *g = NULL;
    TgStatus s = backend_interp.compile(&v.d, (KernelSpec[]){kernel_spec(&k->lin, NULL)}, 1, &g);
    assert_int_equal(s, wrong ? TG_ERR_INTERNAL : TG_OK);
    if (wrong) assert_non_null(strstr(v.err.msg, "uneven"));
    v.err.status = TG_OK;
    if (g) backend_interp.unload(&v.d, g);
    free(k);
  }
}

static void test_compile_errors(void **state) {
  (void)state;
  Dev v;
  assert_false(dev_open(&v, &backend_cpu, "no-such-compiler"));
  assert_int_equal(v.err.status, TG_ERR_DEVICE);
  for (size_t i = 0; i < TG_COUNT(compilers); i++) {
    if (!dev_open(&v, &backend_cpu, compilers[i])) continue; /* not here */
    K *k = add_kernel("bad", 1);
    Program *g = NULL;
    assert_int_equal(backend_cpu.compile(
                         &v.d, (KernelSpec[]){kernel_spec(&k->lin, "void bad(void) { nonsense; }")}, 1, &g),
                     TG_ERR_COMPILE);
    assert_non_null(strstr(v.err.msg, "nonsense"));
    v.err.status = TG_OK;
    assert_int_equal(
        backend_cpu.compile(&v.d,
                            (KernelSpec[]){kernel_spec(
                                &k->lin, "extern void elsewhere(void); void bad(void) { elsewhere(); }")},
                            1, &g),
        TG_ERR_COMPILE);
    assert_null(g);
    backend_cpu.close(&v.d);
    free(k);
  }
}

static void test_allocation_failures(void **state) { /* the n-th allocation fails: an error, no leak */
  (void)state;
  K *k = dedup(threaded(3));
  static const TgBackend *const both[] = {&backend_interp, &backend_cpu};
  for (int w = 0; w < 2; w++)
    for (uint64_t n = 1;; n++) {
      TgMem m = {.fail_at = n};
      TgError err = {0};
      Device d = {.backend = both[w], .mem = &m, .os = &tg_os_default, .env = &env, .err = &err};
      int64_t out[3] = {0};
      void *b[] = {out};
      Program *g = NULL;
      Str s;
      str_init(&s, &m);
      bool ok = d.backend->open(&d) == TG_OK;
      if (ok) {
        if (w) ok = renderer_c.render(&s, &k->lin, &err);
        ok = ok &&
             !d.backend->compile(&d, (KernelSpec[]){kernel_spec(&k->lin, w ? str_text(&s) : NULL)}, 1, &g);
        ok = ok && !d.backend->launch(&d, &(Launch){.program = g, .bufs = b});
        d.backend->unload(&d, g);
        d.backend->close(&d);
      }
      str_free(&s);
      assert_int_equal(m.live, 0);
      assert_true(ok || err.status);
      if (m.calls < n) {
        assert_true(ok);
        break;
      }
      if (n > 400) fail_msg("no end");
    }
  free(k);
}

/* ---- loader */
/* What compilers call on their own, of the C library: a vector of odd lanes may become calls of one for each. */
static void test_library_calls(void **state) {
  static const char text[] =
      "float fmaf(float, float, float), sqrtf(float), truncf(float), fmaxf(float, float), fminf(float, "
      "float);\n"
      "double fma(double, double, double), sqrt(double), trunc(double), fmax(double, double), fmin(double, "
      "double);\n"
      "void calls(float *f, double *d) {\n"
      "  f[0] = fmaf(f[1], f[2], f[3]), f[4] = sqrtf(f[1]), f[5] = truncf(f[2]);\n"
      "  f[6] = fmaxf(f[1], f[2]), f[7] = fminf(f[1], f[2]);\n"
      "  d[0] = fma(d[1], d[2], d[3]), d[4] = sqrt(d[1]), d[5] = trunc(d[2]);\n"
      "  d[6] = fmax(d[1], d[2]), d[7] = fmin(d[1], d[2]);\n"
      "}\n";
  Compiler cc;
  TgError err = {0};
  TgEnv e = {0};
  Image im;
  float f[8] = {0, 2.25f, -3.5f, 1};
  double d[8] = {0, 2.25, -3.5, 1};

  (void)state;
  if (compiler_find(&tg_os_default, &e, &err, &cc)) skip();
  Unit unit = {.src = {(uint8_t *)(uintptr_t)text, sizeof text - 1}};
  assert_int_equal(compile_unit(&mem, &tg_os_default, &err, &cc, &unit, 60), TG_OK);
  if (elf_load(&mem, &tg_os_default, &err, unit.out.at, unit.out.nbytes, &im)) fail_msg("%s", err.msg);
  void (*calls)(float *, double *);
  uint8_t *at = (uint8_t *)im.at + elf_symbol(unit.out.at, unit.out.nbytes, "calls");
  memcpy(&calls, &at, sizeof calls);
  calls(f, d);
  assert_true(f[0] == -6.875f && f[4] == 1.5f && f[5] == -3 && f[6] == 2.25f && f[7] == -3.5f);
  assert_true(d[0] == -6.875 && d[4] == 1.5 && d[5] == -3 && d[6] == 2.25 && d[7] == -3.5);
  image_unmap(&tg_os_default, &im);
  mem_free(&mem, unit.out.at);
}

static void test_loader(void **state) {
  (void)state;
  K *k = matmul_tile();
  for (size_t i = 0; i < TG_COUNT(compilers); i++) {
    Compiler cc;
    TgError err = {0};
    TgEnv e = {0};
    snprintf(e.cc, sizeof e.cc, "%s", compilers[i]);
    if (compiler_find(&tg_os_default, &e, &err, &cc)) continue;
    Str s;
    str_init(&s, &mem);
    renderer_c.prelude(&s);
    assert_true(renderer_c.render(&s, &k->lin, &err));
    Unit unit = {.src = {(uint8_t *)s.at, s.len}};
    Image im;
    assert_int_equal(compile_unit(&mem, &tg_os_default, &err, &cc, &unit, 60), TG_OK);
    Blob obj = unit.out;
    assert_int_equal(elf_load(&mem, &tg_os_default, &err, obj.at, obj.nbytes, &im), TG_OK);
    assert_true(elf_symbol(obj.at, obj.nbytes, "tile") >= 0);
    assert_int_equal(elf_symbol(obj.at, obj.nbytes, "til"), -1);
    image_unmap(&tg_os_default, &im);
    for (size_t n = 0; n < obj.nbytes; n += 64) { /* a copy of its own, so that ASan sees a byte too far */
      uint8_t *cut = malloc(n + 1);
      memcpy(cut, obj.at, n);
      cut = realloc(cut, n ? n : 1);
      TgError ignored = {0};
      assert_int_not_equal(elf_load(&mem, &tg_os_default, &ignored, cut, n, &im), TG_OK);
      assert_int_equal(elf_symbol(cut, n, "tile"), -1);
      free(cut);
    }
    uint32_t seed = 1;
    for (int n = 0; n < 3000; n++) { /* damaged anywhere: refused or loaded, never a wild access */
      uint8_t *bad = malloc(obj.nbytes);
      memcpy(bad, obj.at, obj.nbytes);
      for (int j = 0; j < 3; j++)
        seed = seed * 1664525 + 1013904223, bad[(seed >> 8) % obj.nbytes] = (uint8_t)(seed >> 4);
      TgError ignored = {0};
      if (!elf_load(&mem, &tg_os_default, &ignored, bad, obj.nbytes, &im)) {
        int64_t at = elf_symbol(bad, obj.nbytes, "tile");
        assert_true(at < (int64_t)im.size);
        image_unmap(&tg_os_default, &im);
      }
      free(bad);
    }
    mem_free(&mem, obj.at);
    str_free(&s);
  }
  free(k);
}

/* Linked by the compiler and loaded by the system: nothing is left behind, and what fails is told. */
static int folder_entries(const char *path) {
  int n = 0;
  DIR *d = opendir(path);
  assert_non_null(d);
  while (readdir(d))
    n++;
  closedir(d);
  return n - 2; /* itself and its parent */
}

static void test_library_loader(void **state) {
  (void)state;
  static const char text[] =
      "int answer(void) { return 42; }\nvoid *memcpy(void *, const void *, unsigned long);\n"
      "void copy(void *to, const void *from, unsigned long n) { memcpy(to, from, n); }\n";
  char folder[] = "/tmp/tg-loader-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("TMPDIR", folder, 1);
  for (size_t i = 0; i < TG_COUNT(compilers); i++) {
    Dev v;
    Compiler cc;
    env.link_objects = 1;
    bool here = dev_open(&v, &backend_cpu, compilers[i]);
    env.link_objects = 0;
    if (!here) continue;
    assert_int_equal(compiler_find(&tg_os_default, &v.env, &v.err, &cc), TG_OK);
    Unit unit = {.src = {(uint8_t *)(uintptr_t)text, sizeof text - 1}};
    assert_int_equal(compile_unit(&mem, &tg_os_default, &v.err, &cc, &unit, 60), TG_OK);
    Image im, second;
    assert_int_equal(image_load(&v.d, &cc, &unit.out, &im), TG_OK);
    assert_int_equal(image_load(&v.d, &cc, &unit.out, &second), TG_OK);
    assert_non_null(im.library);
    assert_null(im.at);
    assert_int_equal(folder_entries(folder), 0);
    int (*answer)(void);
    void (*copy)(void *, const void *, unsigned long);
    void *found = image_find(&v.d, &im, &unit.out, "answer"),
         *other = image_find(&v.d, &im, &unit.out, "copy");
    assert_ptr_not_equal(found, image_find(&v.d, &second, &unit.out, "answer")); /* a library of its own */
    image_unload(&v.d, &second);
    assert_non_null(found);
    assert_non_null(other);
    assert_null(image_find(&v.d, &im, &unit.out, "answe"));
    memcpy(&answer, &found, sizeof answer), memcpy(&copy, &other, sizeof copy);
    char from[300] = "bytes", to[300] = "";
    copy(to, from, sizeof from);
    assert_int_equal(answer(), 42);
    assert_string_equal(to, "bytes");
    image_unload(&v.d, &im);

    Blob damaged = {unit.out.at, unit.out.nbytes / 2};
    assert_int_equal(image_load(&v.d, &cc, &damaged, &im), TG_ERR_COMPILE);
    assert_int_equal(folder_entries(folder), 0);
    v.err = (TgError){0};
    setenv("TMPDIR", "/no/such/folder", 1);
    assert_int_equal(image_load(&v.d, &cc, &unit.out, &im), TG_ERR_IO);
    assert_non_null(strstr(v.err.msg, "no folder for its files"));
    setenv("TMPDIR", folder, 1);
    mem_free(&mem, unit.out.at);
    v.d.backend->close(&v.d);
  }
  unsetenv("TMPDIR");
  assert_int_equal(rmdir(folder), 0);
}

/* What the linker would write for 64-bit Arm: encodings worked out by hand. away: from the place. */
static void test_arm64_relocations(void **state) {
  (void)state;
  static _Alignas(4096) uint8_t page[4096];

  static const struct {
    uint32_t type, before;
    int64_t away;
    uint32_t after;                                   /* 0: refused */
  } known[] = {{283, 0x94000000, 0x100, 0x94000040},  /* bl */
               {282, 0x14000000, -0x100, 0x17ffffc0}, /* b */
               {283, 0x94000000, 0x7fffffc, 0x95ffffff},
               {283, 0x94000000, 0x8000000, 0},
               {283, 0x94000000, 2, 0},
               {275, 0x90000000, 0x3123, 0xf0000000},  /* adrp x0: three pages on */
               {275, 0x9000001f, -0x1000, 0xf0ffffff}, /* and one back; its register is kept */
               {275, 0x90000000, (int64_t)1 << 32, 0},
               {311, 0x90000000, 0x4000, 0x90000020},
               {277, 0x91000000, 0x3123, 0x91048c00}, /* add x0, x0, #0x123 */
               {277, 0x913ffc00, 0x3123, 0x91048c00},
               {286, 0xf9400000, 0x128, 0xf9409400}, /* ldr x0, [x0, #0x128] */
               {312, 0xf9400000, 0x128, 0xf9409400},
               {286, 0xf9400000, 0x124, 0},
               {299, 0x3dc00000, 0x120, 0x3dc04800}, /* ldr q0 */
               {299, 0x3dc00000, 0x128, 0},
               {285, 0xbd400000, 0x124, 0xbd412400},
               {284, 0x79400000, 0x122, 0x79424400},
               {278, 0x39400000, 0x121, 0x39448400},
               {274, 0x10000000, 5, 0x30000020}, /* adr x0 */
               {274, 0x10000000, 1 << 20, 0},
               {273, 0x58000000, 8, 0x58000040},
               {261, 0, -4, 0xfffffffc},
               {261, 0, (int64_t)1 << 33, 0}};

  ElfPlace p;
  for (size_t i = 0; i < TG_COUNT(known); i++) {
    uint32_t word = known[i].before;
    memcpy(page, &word, sizeof word);
    assert_true(elf_arm64.describe(known[i].type, &p));
    assert_int_equal(p.width, 4);
    assert_int_equal(p.through_table, known[i].type == 311 || known[i].type == 312);
    const char *why = elf_arm64.write(page, known[i].type, (uint64_t)((intptr_t)page + known[i].away));
    assert_int_equal(why != NULL, !known[i].after);
    memcpy(&word, page, sizeof word);
    assert_int_equal(word, why ? known[i].before : known[i].after);
  }
  uint64_t wide = 0x123456789abcdef0u, got;
  assert_true(elf_arm64.describe(257, &p) && p.width == 8);
  assert_null(elf_arm64.write(page, 257, wide));
  memcpy(&got, page, sizeof got);
  assert_int_equal(got, wide);
  assert_false(elf_arm64.describe(1, &p)); /* of x86-64 */
  assert_false(elf_x86_64.describe(283, &p));
}

/* The same for x86-64. A place of 32 bits holds a number of its kind or is refused and stays: without a sign,
 * with one, or how far it is from the place. */
static void test_x86_64_relocations(void **state) {
  (void)state;
  static _Alignas(4096) uint8_t page[4096];
  const uint64_t here = (uint64_t)(uintptr_t)page;

  static const struct {
    uint32_t type;
    bool from_place;
    uint64_t value;
    bool fits;
  } known[] = {
      {10, false, 0, true}, /* R_X86_64_32 */
      {10, false, 0x7fffffff, true},
      {10, false, 0xffffffff, true},
      {10, false, 0x100000000, false},
      {10, false, (uint64_t)-1, false},
      {11, false, 0x7fffffff, true}, /* R_X86_64_32S */
      {11, false, 0x80000000, false},
      {11, false, (uint64_t)-1, true},
      {11, false, (uint64_t)INT32_MIN, true},
      {11, false, (uint64_t)INT32_MIN - 1, false},
      {2, true, 0x7fffffff, true}, /* R_X86_64_PC32, PLT32, GOTPCREL and the two that may be relaxed */
      {2, true, 0x80000000, false},
      {4, true, (uint64_t)-4, true},
      {4, true, (uint64_t)INT32_MIN - 1, false},
      {9, true, 0x1234, true},
      {41, true, 0x1234, true},
      {42, true, 0x80000000, false}};

  ElfPlace p;
  for (size_t i = 0; i < TG_COUNT(known); i++) {
    uint32_t word = 0x5a5a5a5a;
    memcpy(page, &word, sizeof word);
    assert_true(elf_x86_64.describe(known[i].type, &p));
    assert_int_equal(p.width, 4);
    assert_int_equal(p.through_table, known[i].type == 9 || known[i].type >= 41);
    uint64_t value = known[i].value + (known[i].from_place ? here : 0);
    const char *why = elf_x86_64.write(page, known[i].type, value);
    assert_int_equal(why == NULL, known[i].fits);
    memcpy(&word, page, sizeof word);
    assert_int_equal(word, why ? 0x5a5a5a5a : (uint32_t)known[i].value);
  }
  uint64_t wide = 0x123456789abcdef0u, got;
  assert_true(elf_x86_64.describe(1, &p) && p.width == 8 && !p.through_table);
  assert_null(elf_x86_64.write(page, 1, wide));
  memcpy(&got, page, sizeof got);
  assert_int_equal(got, wide);
  assert_false(elf_x86_64.describe(0, &p)); /* nothing, and the 16 bits that no compiler writes */
  assert_false(elf_x86_64.describe(12, &p));
}

/* ---- cache */
#ifdef TG_HAVE_SQLITE
static void with_cache(const char *dir, int expect_hits, int expect_compiled) {
  Dev v;
  env.cache = 1;
  snprintf(env.cache_dir, sizeof env.cache_dir, "%s", dir);
  assert_true(dev_open(&v, &backend_cpu, NULL));
  env.cache = 0;
  K *k = add_kernel("cached", 5);
  Str s;
  str_init(&s, &mem);
  assert_true(renderer_c.render(&s, &k->lin, &v.err));
  Program *g;
  assert_int_equal(backend_cpu.compile(&v.d, (KernelSpec[]){kernel_spec(&k->lin, str_text(&s))}, 1, &g),
                   TG_OK);
  float in[8] = {1, 2, 3}, out[8] = {0};
  void *b[] = {out, in};
  assert_int_equal(backend_cpu.launch(&v.d, &(Launch){.program = g, .bufs = b}), TG_OK);
  assert_true(out[2] == 8);
  assert_int_equal(v.d.cache_hits, expect_hits);
  assert_int_equal(v.d.kernels_compiled, expect_compiled);
  backend_cpu.unload(&v.d, g);
  backend_cpu.close(&v.d);
  str_free(&s);
  free(k);
}

static void sql(const char *dir, const char *text) {
  char path[300];
  sqlite3 *db;
  snprintf(path, sizeof path, "%s/kernels-1.db", dir);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_changes(db) > 0, 1);
  sqlite3_close(db);
}

static void test_cache(void **state) {
  (void)state;
  char top[] = "/tmp/tg_test_cache_XXXXXX", dir[64], path[128];
  assert_non_null(mkdtemp(top));
  snprintf(dir, sizeof dir, "%s/a/b", top);
  with_cache(dir, 0, 1);
  with_cache(dir, 1, 0);
  sql(dir, "UPDATE object SET bytes = x'7f454c46' || substr(bytes, 5, length(bytes) - 9)");
  with_cache(dir, 0, 1); /* digest differs: compiled again, and the row mended */
  with_cache(dir, 1, 0);
  sql(dir, "UPDATE kernel SET digest = zeroblob(32)");
  with_cache(dir, 0, 1);
  sql(dir, "UPDATE object SET bytes = NULL WHERE 0; DELETE FROM object");
  with_cache(dir, 0, 1);
  snprintf(path, sizeof path, "%s/kernels-1.db", dir);
  int fd = open(path, O_WRONLY | O_TRUNC);
  assert_true(fd >= 0 && write(fd, "not a database, just some text in its place", 43) == 43);
  close(fd);
  with_cache(dir, 0, 1); /* a broken file: no cache, no error */
  with_cache(dir, 0, 1);
  unlink(path);
  chmod(dir, 0755);
  with_cache(dir, 0, 1);
  /* others could write here one day: not trusted, nothing made */
  assert_int_not_equal(access(path, F_OK), 0);
  char cmd[200];
  static const char *const left[] = {"kernels-1.db", "kernels-1.db-wal", "kernels-1.db-shm"};
  for (size_t i = 0; i < TG_COUNT(left); i++)
    snprintf(path, sizeof path, "%s/%s", dir, left[i]), unlink(path);
  rmdir(dir);
  snprintf(cmd, sizeof cmd, "%s/a", top);
  rmdir(cmd);
  assert_int_equal(rmdir(top), 0);
}
#endif

/* ---- the other languages: text alone */
static void test_gpu_text(void **state) {
  (void)state;
  static const TgBackend *const nulls[] = {&backend_null_c, &backend_null_cuda, &backend_null_metal};
  for (size_t i = 0; i < TG_COUNT(nulls); i++) {
    Dev v;
    assert_true(dev_open(&v, nulls[i], NULL));
    K *k = k_new("scale");
    UOp *o = param(k, DT_F32, 256), *a = param(k, DT_F32, 256), *at = NULL;
    if (i) {
      UOp *g = E(k, SPECIAL, DT_I32, 1, ((Arg){.special = {0, 0}}), ci(4));
      UOp *l = E(k, SPECIAL, DT_I32, 1, ((Arg){.special = {0, 1}}), ci(16));
      k->lin.global[0] = 4, k->lin.local[0] = 16;
      at = E(k, MUL, DT_I32, 1, ARG0, E(k, ADD, DT_I32, 1, ARG0, E(k, MUL, DT_I32, 1, ARG0, g, ci(16)), l),
             ci(4));
      E(k, BARRIER, DT_VOID, 1, ARG0, g);
    } else
      at = ci(0);
    UOp *x = load(k, a, at, 4);
    store(k, o, at,
          E(k, MULACC, DT_F32, 4, ARG0, x, splat(k, uop_const(st, DT_F32, (Scalar){.f = 1.5}), 4), x));
    Str s;
    str_init(&s, &mem);
    if (!nulls[i]->renderer->render(&s, &k->lin, &v.err)) fail_msg("%s", v.err.msg);
    static const char *const want[] = {
        "void scale(void *const *bufs",
        "extern \"C\" __global__ void __launch_bounds__(16) scale(f32 *__restrict__ p0, const f32 "
        "*__restrict__ p1)",
        "kernel void scale(device f32 *p0 [[buffer(0)]], device const f32 *p1 [[buffer(1)]], uint3 gid"};
    if (!strstr(str_text(&s), want[i])) fail_msg("%s", str_text(&s));
    Program *g;
    assert_int_equal(nulls[i]->compile(&v.d, (KernelSpec[]){kernel_spec(&k->lin, str_text(&s))}, 1, &g),
                     TG_OK);
    assert_int_equal(nulls[i]->launch(&v.d, &(Launch){.program = g, .bufs = NULL}), TG_OK);
    nulls[i]->unload(&v.d, g);
    nulls[i]->close(&v.d);
    if (getenv("TG_SHOW")) printf("%s\n", str_text(&s));
    str_free(&s);
    free(k);
  }
}

int main(void) {
  env.rule_limit = -1, env.cc_limit = 60;
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lanes),
                                     cmocka_unit_test(test_gated),
                                     cmocka_unit_test(test_reduce_and_var),
                                     cmocka_unit_test(test_mulacc_tile),
                                     cmocka_unit_test(test_threads),
                                     cmocka_unit_test(test_thread_counts),
#ifdef __linux__
                                     cmocka_unit_test(test_worker_stands_aside),
#endif
                                     cmocka_unit_test(test_same_name),
                                     cmocka_unit_test(test_bool_vectors),
                                     cmocka_unit_test(test_where),
                                     cmocka_unit_test(test_float_ops),
                                     cmocka_unit_test(test_int_ops),
                                     cmocka_unit_test(test_int_const_operand),
                                     cmocka_unit_test(test_casts),
                                     cmocka_unit_test(test_bitcasts),
                                     cmocka_unit_test(test_small_round_trip),
                                     cmocka_unit_test(test_small_rounding),
                                     cmocka_unit_test(test_interp_bounds),
                                     cmocka_unit_test(test_interp_lanes),
                                     cmocka_unit_test(test_compile_errors),
                                     cmocka_unit_test(test_allocation_failures),
                                     cmocka_unit_test(test_loader),
                                     cmocka_unit_test(test_library_loader),
                                     cmocka_unit_test(test_library_calls),
                                     cmocka_unit_test(test_arm64_relocations),
                                     cmocka_unit_test(test_x86_64_relocations),
#ifdef TG_HAVE_SQLITE
                                     cmocka_unit_test(test_cache),
#endif
                                     cmocka_unit_test(test_gpu_text)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
