/* test_dtypes.c: dtypes on every device: promotion, conversions between all pairs, arithmetic of narrow
 * floats and integers, accumulators. Expected values come from the definitions of the formats in long double
 * and from the lattice as a graph, not from the library. */
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const devices[] = {"CPU", "INTERP", "INTERP:C", "INTERP:CUDA", "INTERP:METAL"};

enum { DEVICES = sizeof devices / sizeof *devices };

static TgContext *C;
static const char *device;
#define EACH_DEVICE                                                                                          \
  for (int dev_ = 0; dev_ < DEVICES; dev_++)                                                                 \
    for (device = devices[dev_],                                                                             \
        C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});                      \
         C; done())

static void done(void) {
  if (tg_error(C)) fail_msg("%s: %s", device, tg_errmsg(C));
  assert_int_equal(tg_counters(C).fallbacks + tg_counters(C).cuts, 0); /* every kernel took its opts */
  tg_close(C);
  C = NULL;
}

static bool has_f64(void) { return !strstr(device, "METAL"); }

#define N(a) (sizeof(a) / sizeof *(a))

/* ---- the formats */
typedef enum Kind { BOOLEAN, SIGNED, UNSIGNED, FLOATING } Kind;

typedef struct Type {
  TgDType id;
  const char *name;
  Kind kind;
  int bits, mant, emin;
  long double max;
  bool inf;
} Type;

static const Type types[] = {
    {TG_BOOL, "bool", BOOLEAN, 8, 0, 0, 1, false},
    {TG_I8, "i8", SIGNED, 8, 0, 0, 127, false},
    {TG_U8, "u8", UNSIGNED, 8, 0, 0, 255, false},
    {TG_I16, "i16", SIGNED, 16, 0, 0, 32767, false},
    {TG_U16, "u16", UNSIGNED, 16, 0, 0, 65535, false},
    {TG_I32, "i32", SIGNED, 32, 0, 0, 2147483647, false},
    {TG_U32, "u32", UNSIGNED, 32, 0, 0, 4294967295u, false},
    {TG_I64, "i64", SIGNED, 64, 0, 0, 9223372036854775807.0L, false},
    {TG_U64, "u64", UNSIGNED, 64, 0, 0, 18446744073709551615.0L, false},
    {TG_FP8E4M3, "fp8e4m3", FLOATING, 8, 3, -6, 448, false},
    {TG_FP8E5M2, "fp8e5m2", FLOATING, 8, 2, -14, 57344, true},
    {TG_F16, "f16", FLOATING, 16, 10, -14, 65504, true},
    {TG_BF16, "bf16", FLOATING, 16, 7, -126, (long double)0x1.fep127, true},
    {TG_F32, "f32", FLOATING, 32, 23, -126, (long double)0x1.fffffep127, true},
    {TG_F64, "f64", FLOATING, 64, 52, -1022, (long double)0x1.fffffffffffffp1023, true}};

enum { TYPES = sizeof types / sizeof *types };

static const Type *type_of(TgDType d) {
  for (int i = 0; i < TYPES; i++)
    if (types[i].id == d) return &types[i];
  return NULL;
}

/* to the nearest of the format, ties to even; past the largest: infinity, or NaN without one */
static long double rounded(const Type *t, long double x) {
  int e;
  if (isnan(x) || x == 0) return x;
  long double past = t->inf ? copysignl(INFINITY, x) : NAN, r = x;
  if (isinf(x)) return past;
  frexpl(x, &e);
  long double q = ldexpl(1, (e - 1 < t->emin ? t->emin : e - 1) - t->mant);
  r = rintl(x / q) * q;
  return fabsl(r) > t->max ? past : r == 0 ? copysignl(0, x) : r;
}

static long double read_bits(const Type *t, const void *p, int i) {
  uint64_t u = 0;
  memcpy(&u, (const char *)p + (size_t)i * (size_t)t->bits / 8, (size_t)t->bits / 8);
  if (t->kind == BOOLEAN || t->kind == UNSIGNED) return u;
  if (t->kind == SIGNED) return (int64_t)(u << (64 - t->bits)) >> (64 - t->bits);
  uint64_t m = u & ((UINT64_C(1) << t->mant) - 1);
  uint64_t mask = (UINT64_C(1) << (t->bits - 1 - t->mant)) - 1;
  uint64_t e = u >> t->mant & mask;
  uint64_t ones = (UINT64_C(1) << t->mant) - 1;
  bool top = e == mask, minus = u >> (t->bits - 1) & 1;
  long double v = ldexpl((long double)(e ? m + ones + 1 : m), (int)(e ? e : 1) - 1 + t->emin - t->mant);
  if (top && t->inf) v = m ? NAN : INFINITY;
  if (top && !t->inf && m == ones) v = NAN;
  return minus ? -v : v;
}

static void write_bits(const Type *t, void *p, int i, uint64_t bits) {
  memcpy((char *)p + (size_t)i * (size_t)t->bits / 8, &bits, (size_t)t->bits / 8);
}

static bool same(long double a, long double b) {
  return isnan(a) ? isnan(b) : a == b && (a != 0 || signbit(a) == signbit(b));
}

static long double converted(const Type *to, const Type *from, long double x) {
  if (to->kind == BOOLEAN) return x != 0;
  if (to->kind == FLOATING) return rounded(to, x);
  long double lo = to->kind == SIGNED ? -to->max - 1 : 0;
  if (from->kind == FLOATING) return isnan(x) ? 0 : x <= lo ? lo : x >= to->max ? to->max : truncl(x) + 0.0L;
  uint64_t u = x < 0 ? 0 - (uint64_t)-x : (uint64_t)x;
  uint8_t bytes[8];
  write_bits(to, bytes, 0, u);
  return read_bits(to, bytes, 0);
}

static void read_all(TgTensor *t, void *out) {
  if (!t || tg_read(t, out, tg_nbytes(t))) fail_msg("%s: %s", device, tg_errmsg(C));
}

static void is_at(int line, TgTensor *t, TgDType d, const double *want, size_t n) {
  double got[512];
  if (!t || (size_t)tg_numel(t) != n || tg_read_f64(t, got, n))
    fail_msg("line %d on %s: %s", line, device, tg_errmsg(C));
  if (tg_dtype(t) != d)
    fail_msg("line %d on %s: %s, not %s", line, device, tg_dtype_name(tg_dtype(t)), tg_dtype_name(d));
  for (size_t i = 0; i < n; i++)
    if (!same((long double)got[i], (long double)want[i]) && !(got[i] == 0 && want[i] == 0))
      fail_msg("line %d on %s: element %zu is %.17g, not %.17g", line, device, i, got[i], want[i]);
}

#define IS(t, d, ...)                                                                                        \
  is_at(__LINE__, (t), (d), (const double[]){__VA_ARGS__}, N(((const double[]){__VA_ARGS__})))
#define OK(s) assert_int_equal((s), TG_OK)
#define OF(d, ...)                                                                                           \
  tg_from_f64(C, (const double[]){__VA_ARGS__}, (d), TG_SHAPE((int64_t)N(((const double[]){__VA_ARGS__}))))

/* ---- promotion: the lattice as a graph of steps up; the join is the least of the common ancestors */
static const TgDType steps[][2] = {
    {TG_BOOL, TG_I8},      {TG_BOOL, TG_U8},     {TG_I8, TG_I16},       {TG_I16, TG_I32},
    {TG_I32, TG_I64},      {TG_U8, TG_I16},      {TG_U8, TG_U16},       {TG_U16, TG_I32},
    {TG_U16, TG_U32},      {TG_U32, TG_I64},     {TG_U32, TG_U64},      {TG_I64, TG_FP8E4M3},
    {TG_I64, TG_FP8E5M2},  {TG_U64, TG_FP8E4M3}, {TG_U64, TG_FP8E5M2},  {TG_FP8E4M3, TG_F16},
    {TG_FP8E4M3, TG_BF16}, {TG_FP8E5M2, TG_F16}, {TG_FP8E5M2, TG_BF16}, {TG_F16, TG_F32},
    {TG_BF16, TG_F32},     {TG_F32, TG_F64}};

/* d and its ancestors, by place in `types`, which is in the order of priority, size and name */
static uint32_t above(TgDType d) {
  uint32_t set = 1u << (type_of(d) - types), was = 0;
  while (set != was) {
    was = set;
    for (size_t i = 0; i < N(steps); i++)
      if (set >> (type_of(steps[i][0]) - types) & 1) set |= 1u << (type_of(steps[i][1]) - types);
  }
  return set;
}

static void test_promotion(void **state) {
  (void)state;
  for (int a = 0; a < TYPES; a++)
    for (int b = 0; b < TYPES; b++) {
      const Type *ta = &types[a], *tb = &types[b];
      uint32_t common = above(ta->id) & above(tb->id);
      /* f16 is less than bf16 by name; i64 with u64 meet at a float without a width, for which f32 stands */
      bool apart = (ta->kind == UNSIGNED && ta->bits == 64 && tb->kind == SIGNED) ||
                   (tb->kind == UNSIGNED && tb->bits == 64 && ta->kind == SIGNED);
      TgDType want = apart ? TG_F32 : types[__builtin_ctz(common)].id, got = tg_dtype_join(ta->id, tb->id);
      if (got != want)
        fail_msg("%s and %s: %s, not %s", ta->name, tb->name, tg_dtype_name(got), tg_dtype_name(want));
    }
  for (int a = 0; a < TYPES; a++) {
    assert_string_equal(tg_dtype_name(types[a].id), types[a].name);
    assert_int_equal(tg_dtype_size(types[a].id) * 8, types[a].bits);
    assert_int_equal(tg_dtype_is_float(types[a].id), types[a].kind == FLOATING);
  }
  EACH_DEVICE { /* scalars take the tensor's kind */
    IS(tg_add_scalar(OF(TG_I8, 100), 100), TG_I8, -56);
    IS(tg_add_scalar(OF(TG_FP8E4M3, 1), 0.25), TG_FP8E4M3, 1.25);
    IS(tg_mul_scalar(OF(TG_I32, 3), 0.5), TG_F32, 1.5);
    IS(tg_add(OF(TG_I8, -1), OF(TG_U8, 255)), TG_I16, 254);
    IS(tg_add(OF(TG_FP8E4M3, 448), OF(TG_FP8E5M2, 57344)), TG_F16, 57792);
    IS(tg_add(OF(TG_I64, 3), OF(TG_FP8E5M2, 0.5)), TG_FP8E5M2, 3.5);
    IS(tg_add(OF(TG_I64, -3), OF(TG_U64, 5)), TG_F32, 2);
  }
}

/* ---- conversions: all pairs, edge values */
enum { EDGES = 80 };

static void edges_of(const Type *t, void *out) {
  static const double f[] = {0,
                             0.5,
                             0.99,
                             1,
                             1.5,
                             2,
                             2.5,
                             126.9,
                             127,
                             127.5,
                             128,
                             129,
                             254.9,
                             255,
                             255.5,
                             256,
                             32767,
                             32768,
                             65504,
                             65519.9,
                             65520,
                             65535,
                             65536,
                             2147483520,
                             2147483647,
                             2147483648.0,
                             4294967040.0,
                             4294967295.0,
                             4294967296.0,
                             9.2e18,
                             9223372036854775808.0,
                             1.8e19,
                             18446744073709551616.0,
                             1e30,
                             1e300};
  int n = 0;
  memset(out, 0, (size_t)EDGES * (size_t)t->bits / 8);
  if (t->kind == BOOLEAN) {
    for (int i = 0; i < EDGES; i++)
      write_bits(t, out, i, i % 3 == 1);
    return;
  }
  if (t->kind != FLOATING) { /* the ends, small ones, and all powers of two with their neighbours */
    for (int i = 0; i < t->bits && n + 5 < EDGES; i += t->bits > 16 ? 3 : 1)
      for (int k = -1; k < 2; k++)
        write_bits(t, out, n++, (UINT64_C(1) << i) + (uint64_t)(int64_t)k);
    write_bits(t, out, n++, UINT64_C(1) << (t->bits - 1)),
        write_bits(t, out, n++, (UINT64_C(1) << (t->bits - 1)) - 1), write_bits(t, out, n++, UINT64_MAX);
    if (t->bits == 64)
      write_bits(t, out, n++, 0x4040000000000001), write_bits(t, out, n++, 0x7fffff4000000001);
    return;
  }
  if (t->bits == 8) {
    for (int i = 0; i < EDGES; i++)
      write_bits(t, out, i, (uint64_t)(i < 16 ? (i & 1) * 128 + 120 + i / 2 : i * 37));
    return;
  }
  for (size_t i = 0; i < N(f); i++)
    for (int s = 0; s < 2; s++) {
      double v = s ? -f[i] : f[i];
      float v32 = (float)v;
      uint64_t bits = 0;
      if (t->bits == 64)
        memcpy(&bits, &v, 8);
      else
        memcpy(&bits, &v32, 4);
      if (t->id == TG_BF16) bits >>= 16;
      if (t->id == TG_F16) bits = (uint64_t)(i * 1789 + (size_t)s * 32768 + i % 3);
      write_bits(t, out, n++, bits);
    }
  uint64_t one = UINT64_C(1);
  uint64_t top = ((one << (t->bits - 1 - t->mant)) - 1) << t->mant;
  uint64_t sign = one << (t->bits - 1);
  for (int s = 0; s < 2; s++)
    write_bits(t, out, n++, top | (s ? sign : 0)), write_bits(t, out, n++, 1 | (s ? sign : 0)),
        write_bits(t, out, n++, (one << t->mant) - 1);
  write_bits(t, out, n++, top | one << (t->mant - 1)), write_bits(t, out, n++, top - 1);
}

static void test_casts(void **state) {
  (void)state;
  static uint64_t in[EDGES], out[TYPES][EDGES];
  EACH_DEVICE for (int f = 0; f < TYPES; f++) TG_SCOPE(C) {
    if (types[f].id == TG_F64 && !has_f64()) continue;
    edges_of(&types[f], in);
    TgTensor *x = tg_from(C, in, types[f].id, TG_SHAPE(EDGES)), *y[TYPES];
    int n = 0;
    for (int t = 0; t < TYPES; t++)
      if (types[t].id != TG_F64 || has_f64()) y[n++] = tg_cast(x, types[t].id);
    if (tg_realize_many(y, (size_t)n)) fail_msg("%s: %s", device, tg_errmsg(C));
    for (int t = 0; t < n; t++) {
      read_all(y[t], out[t]);
      for (int i = 0; i < EDGES; i++) {
        long double v = read_bits(&types[f], in, i), want = converted(&types[t], &types[f], v),
                    have = read_bits(&types[t], out[t], i);
        if (!same(want, have) && !(types[t].kind != FLOATING && want == have))
          fail_msg("%s: %La from %s to %s is %La, not %La", device, v, types[f].name, types[t].name, have,
                   want);
      }
    }
  }
}

static void test_shorthands(void **state) {
  (void)state;
  static TgTensor *(*const make[])(TgTensor *) = {tg_float, tg_double, tg_half,  tg_bfloat16,
                                                  tg_int,   tg_long,   tg_short, tg_bool};
  static const TgDType to[] = {TG_F32, TG_F64, TG_F16, TG_BF16, TG_I32, TG_I64, TG_I16, TG_BOOL};
  EACH_DEVICE for (size_t i = 0; i < N(make); i++) {
    if (to[i] == TG_F64 && !has_f64()) continue;
    TgTensor *x = OF(TG_F32, 0, -1.75, 3);
    if (to[i] == TG_BOOL)
      IS(make[i](x), to[i], 0, 1, 1);
    else if (tg_dtype_is_float(to[i]))
      IS(make[i](x), to[i], 0, -1.75, 3);
    else
      IS(make[i](x), to[i], 0, -1, 3);
    assert_null(make[i](NULL));
  }
}

/* ---- arithmetic of narrow floats: the exact result rounded to f32 and to the format */
static void test_narrow_arithmetic(void **state) {
  (void)state;

  enum { ALL = 256 * 256 };

  static uint16_t a16[ALL], b16[ALL];
  static uint8_t a8[ALL], b8[ALL], out[10][ALL * 2];
  static const TgDType kinds[] = {TG_FP8E4M3, TG_FP8E5M2, TG_F16, TG_BF16};
  for (int i = 0; i < ALL; i++)
    a8[i] = (uint8_t)(i >> 8), b8[i] = (uint8_t)i, a16[i] = (uint16_t)((uint32_t)i * 40503u),
    b16[i] = (uint16_t)((uint32_t)i * 30011u + 77u + (uint32_t)(i >> 5));
  EACH_DEVICE for (size_t k = 0; k < N(kinds); k++) TG_SCOPE(C) {
    const Type *t = type_of(kinds[k]), *f32 = type_of(TG_F32);
    bool small = t->bits == 8;
    /* the interpreters are slow: the middle, with NaN and both signs */
    int64_t n = dev_ == 0 ? ALL : 16384, skip = dev_ == 0 ? 0 : (ALL - n) / 2;
    const void *pa = small ? (const void *)(a8 + skip) : a16 + skip;
    const void *pb = small ? (const void *)(b8 + skip) : b16 + skip;
    TgTensor *a = tg_from(C, pa, t->id, TG_SHAPE(n)), *b = tg_from(C, pb, t->id, TG_SHAPE(n));
    TgTensor *y[] = {tg_add(a, b),
                     tg_sub(a, b),
                     tg_mul(a, b),
                     tg_div(a, b),
                     tg_maximum(a, b),
                     tg_sqrt(a),
                     tg_neg(a),
                     tg_where(tg_lt(a, b), b, a),
                     tg_add(tg_mul(a, b), b),
                     tg_eq(a, b)};
    if (tg_realize_many(y, N(y))) fail_msg("%s: %s", device, tg_errmsg(C));
    for (size_t o = 0; o < N(y); o++)
      read_all(y[o], out[o]);
    for (int i = 0; i < n; i++) {
      long double x = read_bits(t, pa, i), z = read_bits(t, pb, i), product = rounded(t, rounded(f32, x * z));
      long double want[] = {
          x + z,    x - z, x * z,         x / z,      isnan(x) || isnan(z) ? NAN : x > z ? x : z,
          sqrtl(x), -x,    x < z ? z : x, product + z};
      for (size_t o = 0; o + 1 < N(y); o++) {
        long double w = rounded(t, rounded(f32, want[o])), have = read_bits(t, out[o], i);
        if (o == 4 && x == 0 && z == 0) w = have; /* of two zeros either */
        if (o == 7 && isnan(x) && isnan(have)) w = have;
        if (!same(w, have))
          fail_msg("%s, %s: op %zu of %La and %La is %La, not %La", device, t->name, o, x, z, have, w);
      }
      if (out[9][i] != (x == z)) fail_msg("%s, %s: %La == %La", device, t->name, x, z);
    }
  }
}

static void test_narrow_functions(void **state) { /* nothing is unsupported in any float */
  (void)state;
  static const TgDType kinds[] = {TG_FP8E4M3, TG_FP8E5M2, TG_F16, TG_BF16};
  EACH_DEVICE for (size_t k = 0; k < N(kinds); k++) TG_SCOPE(C) {
    TgDType d = kinds[k];
    TgTensor *x = tg_reshape(OF(d, 1, 2, 3, 0.5, 1.5, -2, 1, 1), TG_SHAPE(2, 4));
    IS(x, d, 1, 2, 3, 0.5, 1.5, -2, 1, 1);
    IS(tg_full(C, TG_SHAPE(3), 1.25, .dtype = d), d, 1.25, 1.25, 1.25);
    IS(tg_full_i64(C, TG_SHAPE(2), -3, d), d, -3, -3);
    IS(tg_arange(C, 0, 5, .dtype = d), d, 0, 1, 2, 3, 4);
    IS(tg_eye(C, 2, .dtype = d), d, 1, 0, 0, 1);
    IS(tg_max(x, .axis = TG_AXES(1)), d, 3, 1.5);
    IS(tg_min(x), d, -2);
    IS(tg_sum(x), d, 8);
    IS(tg_prod(x, .axis = TG_AXES(1)), d, 3, -3);
    IS(tg_mean(x), d, 1);
    IS(tg_var(OF(d, 1, 3), .biased = true), d, 1);
    IS(tg_argmax(x), TG_I32, 2);
    IS(tg_any(x), TG_BOOL, 1);
    IS(tg_cumsum(OF(d, 1, 2, 4), 0), d, 1, 3, 7);
    IS(tg_matmul(x, tg_transpose(x, 0, 1)), d, d == TG_F16 || d == TG_BF16 ? 14.25 : 14, 1, 1,
       d == TG_F16 || d == TG_BF16 ? 8.25 : 8);
    IS(tg_conv2d(tg_reshape(x, TG_SHAPE(1, 1, 2, 4)), tg_reshape(OF(d, 1, 1), TG_SHAPE(1, 1, 1, 2))), d, 3, 5,
       3.5, -0.5, -1, 2);
    IS(tg_pad(OF(d, 1, 2), (int64_t[]){1}, (int64_t[]){1}), d, 0, 1, 2, 0);
    IS(tg_cat(((TgTensor *[]){OF(d, 1), OF(d, 2)}), 2, 0), d, 1, 2);
    IS(tg_where(OF(TG_BOOL, 1, 0), OF(d, 1, 2), OF(d, 3, 4)), d, 1, 4);
    IS(tg_exp2(OF(d, 0, 1, -1, 3)), d, 1, 2, 0.5, 8);
    IS(tg_floor(OF(d, 1.5, -1.5)), d, 1, -2);
    IS(tg_pow(OF(d, 2, 3), OF(d, 3, 2)), d, 8, d == TG_FP8E5M2 ? 8 : 9);
    IS(tg_floordiv(OF(d, 7, -7), OF(d, 2, 2)), d, 3, -4);
    IS(tg_abs(OF(d, -448, 2)), d, 448, 2);
    IS(tg_softmax(OF(d, 1, 1)), d, 0.5, 0.5);
    IS(tg_gather(x, 1, tg_reshape(OF(TG_I32, 3, 0), TG_SHAPE(2, 1))), d, 0.5, 1.5);
    TgTensor *loss = tg_sum(tg_square(x)), *g; /* gradients are of the same dtype */
    assert_int_equal(tg_gradient(loss, &x, 1, &g), TG_OK);
    IS(g, d, 2, 4, 6, 1, 3, -4, 2, 2);
  }
}

/* Dtypes of one size have one type in C, and other bits for the same number: a kernel that pads all of them with
 * it adds up what each has for itself. */
static void test_padding_of_one_size(void **state) {
  (void)state;
  static const TgDType pairs[][2] = {{TG_BF16, TG_F16}, {TG_F16, TG_BF16}, {TG_FP8E4M3, TG_FP8E5M2}};

  enum { ROWS = 20, WIDTH = 21, EDGE = 2, ALL = (ROWS + 2 * EDGE) * (WIDTH + 2 * EDGE) };

  EACH_DEVICE for (size_t k = 0; k < N(pairs); k++) TG_SCOPE(C) {
    const int64_t edge[] = {EDGE, EDGE};
    double got[ALL];
    TgTensor *sum = NULL;
    for (int i = 0; i < 2; i++) {
      TgTensor *x = tg_full(C, TG_SHAPE(ROWS, WIDTH), 1 + i, .dtype = pairs[k][i]);
      x = tg_pad_value(tg_contiguous(x), edge, edge, -1.5);
      sum = sum ? tg_add(sum, tg_cast(x, TG_F32)) : tg_cast(x, TG_F32);
    }
    if (tg_read_f64(sum, got, ALL)) fail_msg("%s: %s", device, tg_errmsg(C));
    for (int i = 0; i < ALL; i++) {
      int row = i / (WIDTH + 2 * EDGE) - EDGE, column = i % (WIDTH + 2 * EDGE) - EDGE;
      bool inside = row >= 0 && row < ROWS && column >= 0 && column < WIDTH;
      if (got[i] != (inside ? 3 : -3)) fail_msg("%s: %g at %d of pair %zu", device, got[i], i, k);
    }
  }
}

/* ---- integers keep their width: C's promotion to int never shows */
static void test_integers(void **state) {
  (void)state;
  EACH_DEVICE {
    TgTensor *u = OF(TG_U8, 200, 255, 7);
    TgTensor *i = OF(TG_I8, -128, 127, -1);
    TgTensor *two = OF(TG_U8, 2, 2, 2);
    TgTensor *minus = OF(TG_I8, -1, -1, -1);
    IS(tg_floordiv(tg_mul_scalar(u, 2), two), TG_U8, 72, 127, 7);
    IS(tg_shr(tg_shl(u, two), two), TG_U8, 8, 63, 7);
    IS(tg_shr(i, OF(TG_I8, 1, 1, 7)), TG_I8, -64, 63, -1);
    IS(tg_shl(i, OF(TG_I8, 1, 1, 7)), TG_I8, 0, -2, -128);
    IS(tg_shr(i, OF(TG_I8, 8, 100, 8)), TG_I8, -1, 0, -1);
    IS(tg_abs(i), TG_I8, -128, 127, 1);
    IS(tg_neg(i), TG_I8, -128, -127, 1);
    IS(tg_floordiv(i, minus), TG_I8, -128, -127, 1);
    IS(tg_mod(i, minus), TG_I8, 0, 0, 0);
    IS(tg_floordiv(i, OF(TG_I8, 0, 0, 0)), TG_I8, 0, 0, 0);
    IS(tg_mod(i, OF(TG_I8, 0, 0, 0)), TG_I8, -128, 127, -1);
    IS(tg_neg(u), TG_U8, 56, 1, 249);
    IS(tg_sub(two, u), TG_U8, 58, 3, 251);
    IS(tg_lt(tg_add_scalar(u, 100), u), TG_BOOL, 1, 1, 0);
    IS(tg_lt(i, u), TG_BOOL, 1, 1, 1); /* i16 */
    IS(tg_gt(OF(TG_I32, -1), OF(TG_U32, 0xffffffff)), TG_BOOL, 0);
    IS(tg_eq(OF(TG_I32, -1), OF(TG_U32, 0xffffffff)), TG_BOOL, 0);
    IS(tg_lt(OF(TG_U64, 1), OF(TG_U64, 18446744073709549568.0)), TG_BOOL, 1);
    IS(tg_lt(tg_add_scalar(OF(TG_U32, 4294967295.0), 1), OF(TG_U32, 5)), TG_BOOL, 1);
    IS(tg_mul(OF(TG_U16, 65535), OF(TG_U16, 65535)), TG_U16, 1);
    IS(tg_mul(OF(TG_I16, -32768), OF(TG_I16, -32768)), TG_I16, 0);
    IS(tg_bitxor(u, OF(TG_U8, 255, 255, 255)), TG_U8, 55, 0, 248);
    IS(tg_maximum(i, OF(TG_I8, 0, 0, 0)), TG_I8, 0, 127, 0);
    IS(tg_max(tg_mul_scalar(u, 2)), TG_U8, 254);
    IS(tg_where(tg_lt_scalar(i, 0), i, minus), TG_I8, -128, -1, -1);
    IS(tg_cast(tg_mul_scalar(i, 2), TG_F32), TG_F32, 0, -2, -2);
    IS(tg_cast(tg_add_scalar(u, 100), TG_I32), TG_I32, 44, 99, 107);
    IS(tg_cast(tg_neg(u), TG_I64), TG_I64, 56, 1, 249);
    IS(tg_cast(tg_sub(two, u), TG_U64), TG_U64, 58, 3, 251);
  }
}

/* constants and data alike. x * 0 and x / x are IEEE's, not tinygrad's 0 and 1 */
static void test_folding(void **state) {
  (void)state;
  EACH_DEVICE for (int data = 0; data < 2; data++) {
#define K(d, v) (data ? OF(d, v) : tg_full(C, TG_SHAPE(1), v, .dtype = d))
    IS(tg_reciprocal(K(TG_F32, 0)), TG_F32, INFINITY);
    IS(tg_reciprocal(K(TG_F32, -0.0)), TG_F32, -INFINITY);
    IS(tg_log2(K(TG_F32, 0)), TG_F32, -INFINITY);
    IS(tg_log2(K(TG_F32, -1)), TG_F32, NAN);
    IS(tg_sqrt(K(TG_F32, -1)), TG_F32, NAN);
    IS(tg_sin(K(TG_F32, INFINITY)), TG_F32, NAN);
    IS(tg_exp2(K(TG_F32, 1000)), TG_F32, INFINITY);
    IS(tg_pow(K(TG_F32, -2), K(TG_F32, 0.5)), TG_F32, NAN);
    IS(tg_pow(K(TG_F32, 0), K(TG_F32, -1)), TG_F32, INFINITY);
    IS(tg_pow(K(TG_F32, 1e30), K(TG_F32, 1e30)), TG_F32, INFINITY);
    IS(tg_trunc(K(TG_F32, -INFINITY)), TG_F32, -INFINITY);
    IS(tg_trunc(K(TG_F32, NAN)), TG_F32, NAN);
    IS(tg_maximum(K(TG_F32, 1), K(TG_F32, NAN)), TG_F32, NAN);
    IS(tg_maximum(K(TG_F32, NAN), K(TG_F32, 1)), TG_F32, NAN);
    IS(tg_mul(K(TG_F32, INFINITY), K(TG_F32, 0)), TG_F32, NAN);
    IS(tg_div(K(TG_F32, 0), K(TG_F32, 0)), TG_F32, NAN);
    IS(tg_floordiv(K(TG_I32, 7), K(TG_I32, 0)), TG_I32, 0);
    IS(tg_mod(K(TG_I32, 7), K(TG_I32, 0)), TG_I32, 7);
    IS(tg_add(K(TG_I32, 2147483647), K(TG_I32, 1)), TG_I32, -2147483648.0);
    IS(tg_mul(K(TG_U8, 200), K(TG_U8, 2)), TG_U8, 144);
    IS(tg_add(K(TG_F16, 2048), K(TG_F16, 1)), TG_F16, 2048);
    IS(tg_add(K(TG_FP8E4M3, 448), K(TG_FP8E4M3, 16)), TG_FP8E4M3, 448);
    IS(tg_add(K(TG_FP8E4M3, 448), K(TG_FP8E4M3, 18)), TG_FP8E4M3, NAN);
    IS(tg_add(K(TG_FP8E5M2, 57344), K(TG_FP8E5M2, 8192)), TG_FP8E5M2, INFINITY);
  }
}

/* ---- accumulators */
static void test_accumulators(void **state) {
  (void)state;

  static const struct {
    TgDType d, sum, conv;
  } rule[] = {{TG_BOOL, TG_I32, TG_I32},
              {TG_I8, TG_I32, TG_I32},
              {TG_U8, TG_U32, TG_U32},
              {TG_I16, TG_I32, TG_I32},
              {TG_U16, TG_U32, TG_U32},
              {TG_I32, TG_I32, TG_I32},
              {TG_U32, TG_U32, TG_U32},
              {TG_I64, TG_I64, TG_I64},
              {TG_U64, TG_U64, TG_U64},
              {TG_FP8E4M3, TG_FP8E4M3, TG_FP8E4M3},
              {TG_FP8E5M2, TG_FP8E5M2, TG_FP8E5M2},
              {TG_F16, TG_F16, TG_F16},
              {TG_BF16, TG_BF16, TG_BF16},
              {TG_F32, TG_F32, TG_F32},
              {TG_F64, TG_F64, TG_F64}};

  EACH_DEVICE {
    for (size_t i = 0; i < N(rule); i++)
      TG_SCOPE(C) {
        TgDType d = rule[i].d;
        if (d == TG_F64 && !has_f64()) continue;
        bool f = tg_dtype_is_float(d);
        TgTensor *x = tg_reshape(OF(d, 1, 1, 0, 1), TG_SHAPE(1, 1, 2, 2));
        TgTensor *w = tg_ones(C, TG_SHAPE(1, 1, 2, 2), .dtype = d);
        TgTensor *v = tg_reshape(x, TG_SHAPE(4));
        IS(tg_sum(x), rule[i].sum, 3);
        IS(tg_cumsum(v, 0), rule[i].sum, 1, 2, 2, 3);
        IS(tg_prod(x), d, 0);
        IS(tg_conv2d(x, w), rule[i].conv, 3);
        IS(tg_matmul(v, v), d, d == TG_BOOL ? 1 : 3);
        IS(tg_mean(x), f ? d : TG_F32, 0.75);
        IS(tg_var(v, .biased = true), f ? d : TG_F32, 0.1875);
        if (d != TG_F64) IS(tg_sum(x, .dtype = TG_I64), TG_I64, 3);
      }
    /* what a maximum begins with is less than all numbers of its dtype, also where that has no infinity */
    for (size_t i = 0; i < N(rule); i++) {
      TgDType d = rule[i].d;
      if (d < TG_F16 || (d == TG_F64 && !has_f64())) continue;
      TgTensor *x = OF(d, -1, -2, -3, -4), *at = OF(TG_I32, 1, 1, 3), *v = OF(d, -5, -6, -7);
      IS(tg_max_pool2d(tg_reshape(x, TG_SHAPE(1, 1, 4)), .axes = 1, .kernel = TG_SIZES(3),
                       .padding = TG_SIZES(1)),
         d, -1, -3);
      IS(tg_scatter_reduce(x, 0, at, v, TG_SCATTER_AMAX, .exclude_self = true), d, -1, -5, -3, -7);
      IS(tg_scatter_reduce(x, 0, at, v, TG_SCATTER_AMIN, .exclude_self = true), d, -1, -6, -3, -7);
      IS(tg_cummax(x, 0, NULL), d, -1, -1, -1, -1);
      IS(tg_max(x), d, -1);
    }
    /* 1 + 1 + .. in f16 stops at 2048, in fp8 at 16 */
    TgTensor *big = tg_full(C, TG_SHAPE(4096), 1, .dtype = TG_F16);
    IS(tg_sum(big), TG_F16, 4096);
    IS(tg_matmul(big, big), TG_F16, 4096);
    IS(tg_sum(tg_full(C, TG_SHAPE(300), 1, .dtype = TG_FP8E4M3)), TG_FP8E4M3, 288); /* 300 rounds to 288 */
    IS(tg_mean(tg_full(C, TG_SHAPE(3000), 1, .dtype = TG_FP8E4M3)), TG_FP8E4M3, 1);
    IS(tg_sum(tg_full(C, TG_SHAPE(3000), 1, .dtype = TG_BF16), .dtype = TG_F32), TG_F32, 3000);
    IS(tg_sum(OF(TG_I8, 100, 100, 100)), TG_I32, 300);
    IS(tg_sum(OF(TG_I8, 100, 100, 100), .dtype = TG_I8), TG_I8, 44);
    TgTensor *i8 = OF(TG_I8, 100, 100);
    IS(tg_matmul(i8, i8), TG_I8, 32); /* 20000 wraps */
    IS(tg_matmul(i8, i8, .dtype = TG_I32), TG_I32, 20000);
    IS(tg_dot(i8, i8, .dtype = TG_F32), TG_F32, 20000);
    IS(tg_dot(i8, OF(TG_U8, 200, 200)), TG_I16, -25536); /* 40000 in i16 */
    IS(tg_matmul(OF(TG_F16, 300, 300), OF(TG_F16, 300, 300)), TG_F16, INFINITY);
    IS(tg_matmul(OF(TG_F16, 300, 300), OF(TG_F16, 300, -300)), TG_F16, 0); /* neither product fits in f16 */
    IS(tg_matmul(OF(TG_F16, 300, 300), OF(TG_F16, 300, 300), .dtype = TG_F32), TG_F32, 180000);
    TgTensor *im = tg_reshape(i8, TG_SHAPE(1, 1, 1, 2));
    IS(tg_conv2d(im, im), TG_I32, 20000);
    IS(tg_conv2d(im, im, .dtype = TG_I8), TG_I8, 32);
    IS(tg_conv2d(im, im, .dtype = TG_F32), TG_F32, 20000);
    IS(tg_prod(OF(TG_F16, 300, 300, 0.0009765625)), TG_F16, 87.875);   /* 90000 does not fit in f16 */
    IS(tg_cast(OF(TG_I32, 1077936129), TG_BF16), TG_BF16, 1082130432); /* in f32 it is as near to 2^30 */
    IS(tg_prod(OF(TG_BOOL, 1, 1)), TG_BOOL, 1);
    IS(tg_prod(OF(TG_I8, 100, 2)), TG_I8, -56);
    /* 90000 stays finite on the way: 87.890625 in f16 steps of 1/16 */
    IS(tg_prod(OF(TG_F16, 300, 300, 0.0009765625)), TG_F16, 87.875);
    assert_null(tg_matmul(i8, i8, .dtype = (TgDType)99));
    assert_int_equal(tg_error(C), TG_ERR_DTYPE);
    tg_clear_error(C);
  }
}

/* ---- bits */
static void test_bitcast(void **state) {
  (void)state;
  static const double bytes[] = {0, 0, 128, 63, 0, 0, 0, 192, 1, 2, 3, 4, 255, 255, 127, 127};
  static const float words[] = {1, -2, 1.5399896e-36f, 3.40282347e38f};
  EACH_DEVICE {
    TgTensor *b = tg_from_f64(C, bytes, TG_U8, TG_SHAPE(2, 8));
    TgTensor *f = tg_from(C, words, TG_F32, TG_SHAPE(2, 2));
    assert_true(tg_dim(tg_bitcast(b, TG_F32), 0) == 2 && tg_dim(tg_bitcast(b, TG_F32), 1) == 2);
    is_at(__LINE__, tg_bitcast(b, TG_F32), TG_F32,
          (double[]){(double)words[0], (double)words[1], (double)words[2], (double)words[3]}, 4);
    is_at(__LINE__, tg_bitcast(f, TG_U8), TG_U8, bytes, 16);
    IS(tg_bitcast(f, TG_U32), TG_U32, 0x3f800000, 0xc0000000, 0x04030201, 0x7f7fffff);
    IS(tg_bitcast(b, TG_U16), TG_U16, 0, 0x3f80, 0, 0xc000, 0x0201, 0x0403, 0xffff, 0x7f7f);
    IS(tg_bitcast(b, TG_BF16), TG_BF16, 0, 1, 0, -2, 0x1.02p-123, 0x1.06p-119, NAN, 0x1.fep127);
    IS(tg_bitcast(tg_bitcast(b, TG_BF16), TG_I8), TG_I8, 0, 0, -128, 63, 0, 0, 0, -64, 1, 2, 3, 4, -1, -1,
       127, 127);
    IS(tg_bitcast(b, TG_FP8E4M3), TG_FP8E4M3, 0, 0, -0.0, 1.875, 0, 0, 0, -2, 0x1p-9, 0x1p-8, 0x1.8p-8,
       0x1p-7, NAN, NAN, NAN, NAN);
    IS(tg_bitcast(b, TG_I64), TG_I64, (double)(int64_t)0xc00000003f800000, (double)0x7f7fffff04030201);
    /* any view, as it reads */
    IS(tg_bitcast(tg_flip(b, 2, (int64_t[]){0, 1}), TG_U32), TG_U32, 0xffff7f7f, 0x01020304, 0x000000c0,
       0x0000803f);
    IS(tg_bitcast(tg_slice(b, 1, 2, 4), TG_I16), TG_I16, 0x3f80, 0x0403);
    IS(tg_bitcast(tg_transpose(f, 0, 1), TG_U16), TG_U16, 0, 0x3f80, 0x0201, 0x0403, 0, 0xc000, 0xffff,
       0x7f7f);
    /* of what is computed */
    IS(tg_bitcast(tg_add_scalar(f, 0), TG_U32), TG_U32, 0x3f800000, 0xc0000000, 0x04030201, 0x7f7fffff);
    IS(tg_bitcast(OF(TG_BOOL, 1, 0), TG_U8), TG_U8, 1, 0);
    IS(tg_bitcast(OF(TG_U8, 7, 0), TG_BOOL), TG_BOOL, 1, 0);
    IS(tg_bitcast(OF(TG_BOOL, 1, 0), TG_U16), TG_U16, 1);
    if (has_f64()) IS(tg_bitcast(tg_bitcast(OF(TG_F64, 1.1, -3), TG_U8), TG_F64), TG_F64, 1.1, -3);
    assert_int_equal(tg_numel(tg_bitcast(tg_zeros(C, TG_SHAPE(3, 0)), TG_U8)), 0);
    /* NaNs that signal, and payloads */
    static const uint32_t nans[] = {0x7f800001, 0xff812345, 0x7fc00000, 0xffffffff};
    static const uint16_t halves[] = {0x7c01, 0xfe55, 0x7d00, 0xffff};
    IS(tg_bitcast(tg_from(C, nans, TG_F32, TG_SHAPE(4)), TG_U32), TG_U32, 0x7f800001, 0xff812345, 0x7fc00000,
       0xffffffff);
    IS(tg_bitcast(tg_from(C, halves, TG_F16, TG_SHAPE(4)), TG_U16), TG_U16, 0x7c01, 0xfe55, 0x7d00, 0xffff);
    IS(tg_bitcast(tg_from(C, halves, TG_BF16, TG_SHAPE(4)), TG_U16), TG_U16, 0x7c01, 0xfe55, 0x7d00, 0xffff);
    /* no gradient goes through */
    TgTensor *loss = tg_sum(tg_mul(tg_bitcast(tg_bitcast(f, TG_U8), TG_F32), tg_bitcast(f, TG_F32))), *g;
    assert_int_equal(tg_gradient(loss, &f, 1, &g), TG_OK);
    is_at(__LINE__, g, TG_F32,
          (double[]){(double)words[0], (double)words[1], (double)words[2], (double)words[3]}, 4);

    static const struct {
      TgDType to;
      const char *word;
    } wrong[] = {{TG_F32, "bitcast: u8 (5) to f32"}, {TG_U16, "u8 (5) to u16"}};

    for (size_t i = 0; i < N(wrong); i++) {
      assert_null(tg_bitcast(tg_zeros(C, TG_SHAPE(5), .dtype = TG_U8), wrong[i].to));
      assert_int_equal(tg_error(C), TG_ERR_SHAPE);
      if (!strstr(tg_errmsg(C), wrong[i].word)) fail_msg("%s", tg_errmsg(C));
      tg_clear_error(C);
    }
    assert_null(tg_bitcast(tg_zeros(C, TG_SCALAR), TG_U8));
    assert_int_equal(tg_error(C), TG_ERR_SHAPE);
    tg_clear_error(C);
  }
}

/* A file's bytes as floats are looked at where they are: no kernel runs, nothing is copied, and the file
 * stays mapped as long as a view lives. */
static void test_file_view(void **state) {
  (void)state;
  char path[] = "/tmp/tg-dtypes-XXXXXX";
  int fd = mkstemp(path);
  FILE *out = fd < 0 ? NULL : fdopen(fd, "wb");
  assert_non_null(out);
  float w[24];
  for (int i = 0; i < 24; i++)
    w[i] = (float)i * 0.5f;
  fwrite("headheadheadhead", 1, 16, out), fwrite(w, 1, sizeof w, out), fclose(out);
  EACH_DEVICE {
    TgTensor *view = NULL, *odd = NULL;
    TG_SCOPE(C) {
      TgTensor *file = tg_from_file(C, path, TG_U8, TG_SHAPE(112)); /* vectors may begin at 16 */
      view = tg_keep(tg_reshape(tg_bitcast(tg_slice(file, 0, 16, 112), TG_F32), TG_SHAPE(4, 6)));
      odd = tg_keep(tg_bitcast(tg_slice(file, 0, 13, 17), TG_U32)); /* not aligned: put together */
    }
    assert_int_equal(tg_collect(C), TG_OK);
    tg_counters_reset(C);
    float got[24];
    read_all(view, got);
    assert_memory_equal(got, w, sizeof w);
    assert_int_equal(tg_counters(C).launches, 0);
    IS(odd, TG_U32, 0x00646165);
    IS(tg_bitcast(tg_slice(tg_bitcast(view, TG_U16), 1, 2, 6), TG_F32), TG_F32, 0.5, 1, 3.5, 4, 6.5, 7, 9.5,
       10);
    IS(tg_sum(view), TG_F32, 138);
    TgTensor *half = tg_bitcast(tg_select(view, 0, 1), TG_U16); /* of a view: the same memory */
    IS(half, TG_U16, 0, 0x4040, 0, 0x4060, 0, 0x4080, 0, 0x4090, 0, 0x40a0, 0, 0x40b0);
    assert_null(tg_assign(view, tg_zeros_like(view)));
    assert_int_equal(tg_error(C), TG_ERR_STATE);
    tg_clear_error(C);
    /* of memory that may be written: a value, no view */
    TgTensor *own = tg_from(C, w, TG_F32, TG_SHAPE(2)), *bytes = tg_bitcast(own, TG_U16);
    uint16_t was[4];
    memcpy(was, w, sizeof was);
    OK(tg_realize(tg_assign(own, tg_ones_like(own))));
    IS(bytes, TG_U16, was[0], was[1], was[2], was[3]);
    IS(tg_bitcast(own, TG_U16), TG_U16, 0, 0x3f80, 0, 0x3f80);
  }
  remove(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_promotion),
                                     cmocka_unit_test(test_casts),
                                     cmocka_unit_test(test_shorthands),
                                     cmocka_unit_test(test_narrow_arithmetic),
                                     cmocka_unit_test(test_narrow_functions),
                                     cmocka_unit_test(test_integers),
                                     cmocka_unit_test(test_folding),
                                     cmocka_unit_test(test_accumulators),
                                     cmocka_unit_test(test_bitcast),
                                     cmocka_unit_test(test_file_view),
                                     cmocka_unit_test(test_padding_of_one_size)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
