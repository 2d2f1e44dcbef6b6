/* test_abi.c: the library through build/tg_abi.json alone, as a binding sees it: functions by dlsym, options
 * by the offsets in the file, types and enums by name, layers, optimisers and files too. No header of the
 * library is included. A call is made only if the signature in the file is the one it is made with. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/json.h"

static char *json;

static long number(const char *v) { return v ? strtol(v, NULL, 10) : -1; }

static long value_of(const char *type, const char *name) {
  const char *e = named(member(json, "enums"), type), *v = e ? member(member(e, "values"), name) : NULL;
  if (!v) fail_msg("no %s in %s", name, type);
  return number(v);
}

/* ---- calls */
static void *library;
static int ncalls;

static void *function(const char *name, const char *signature) {
  const char *f = named(member(json, "functions"), name);
  if (!f) fail_msg("%s is not in the file", name);
  char got[600], type[200];
  text_of(member(f, "returns"), got, sizeof got);
  for (const char *p = blank(member(f, "params") + 1); *p == '{'; p = blank(skip_value(p))) {
    text_of(member(p, "type"), type, sizeof type);
    strncat(got, ", ", sizeof got - strlen(got) - 1), strncat(got, type, sizeof got - strlen(got) - 1);
  }
  if (strcmp(got, signature)) fail_msg("%s has the signature %s, not %s", name, got, signature);
  void *p = dlsym(library, name);
  if (!p) fail_msg("%s is not exported", name);
  ncalls++;
  return p;
}

#define T "TgTensor *"
typedef void *P;

typedef struct Shape {
  int n;
  const int64_t *d;
} Shape;

#define SHAPE(...)                                                                                           \
  (Shape) {                                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]) { __VA_ARGS__ }                           \
  }
static P ctx;

static P t1(const char *f, P a) { return ((P(*)(P))function(f, T ", " T))(a); }

static P t2(const char *f, P a, P b) { return ((P(*)(P, P))function(f, T ", " T ", " T))(a, b); }

static P t3(const char *f, P a, P b, P c) {
  return ((P(*)(P, P, P))function(f, T ", " T ", " T ", " T))(a, b, c);
}

static P td(const char *f, P a, double v) {
  return ((P(*)(P, double))function(f, T ", " T ", double"))(a, v);
}

static P ti(const char *f, P a, int v) { return ((P(*)(P, int))function(f, T ", " T ", int"))(a, v); }

static P tii(const char *f, P a, int v, int w) {
  return ((P(*)(P, int, int))function(f, T ", " T ", int, int"))(a, v, w);
}

static P tl(const char *f, P a, int64_t v) {
  return ((P(*)(P, int64_t))function(f, T ", " T ", int64_t"))(a, v);
}

static P ts(const char *f, P a, Shape s) {
  return ((P(*)(P, int, const int64_t *))function(f, T ", " T ", int, const int64_t *"))(a, s.n, s.d);
}

static P to(const char *f, const char *options, P a, P o) {
  char s[200];
  snprintf(s, sizeof s, T ", " T ", const %s *", options);
  return ((P(*)(P, P))function(f, s))(a, o);
}

static P too(const char *f, const char *options, P a, P b, P o) {
  char s[200];
  snprintf(s, sizeof s, T ", " T ", " T ", const %s *", options);
  return ((P(*)(P, P, P))function(f, s))(a, b, o);
}

/* An options struct, all zero but its size; put sets a field by its place in the file. */
static unsigned char options_memory[8][512];

static P options(int slot, const char *type) {
  const char *s = named(member(json, "structs"), type);
  if (!s) fail_msg("no struct %s", type);
  size_t size = (size_t)number(member(s, "size"));
  assert_true(size <= sizeof *options_memory);
  memset(options_memory[slot], 0, sizeof *options_memory);
  memcpy(options_memory[slot] + number(member(named(member(s, "fields"), "size"), "offset")), &size,
         sizeof size);
  return options_memory[slot];
}

static void put(P o, const char *type, const char *field, const void *value, size_t n) {
  const char *f = named(member(named(member(json, "structs"), type), "fields"), field);
  if (!f) fail_msg("no field %s in %s", field, type);
  assert_true(n <= (size_t)number(member(f, "size")));
  memcpy((char *)o + number(member(f, "offset")), value, n);
}

static void put_int(P o, const char *type, const char *field, int v) { put(o, type, field, &v, sizeof v); }

static void put_bool(P o, const char *type, const char *field) {
  put(o, type, field, &(bool){true}, sizeof(bool));
}

static void put_double(P o, const char *type, const char *field, double v) {
  put(o, type, field, &v, sizeof v);
}

static void put_axes(P o, const char *type, int n, const int *v) { /* TgAxes, itself by its fields */
  const char *s = named(member(json, "structs"), "TgAxes"), *fields = member(s, "fields");
  long count = number(member(named(fields, "n"), "offset")),
       values = number(member(named(fields, "v"), "offset"));
  unsigned char a[200] = {0};
  if (count < 0 || count >= 100 || values < 0 || values >= 100 || n < 0 || n > 16) {
    fail_msg("TgAxes is not as it should be");
    return;
  }
  memcpy(a + count, &n, sizeof n);
  memcpy(a + values, v, (size_t)n * sizeof *v);
  put(o, type, "axis", a, (size_t)number(member(s, "size")));
}

static P from(Shape s, const double *v) {
  P f = function("tg_from_f64", T ", TgContext *, const double *, TgDType, int, const int64_t *");
  return ((P(*)(P, const double *, int, int, const int64_t *))f)(ctx, v, (int)value_of("TgDType", "TG_F32"),
                                                                 s.n, s.d);
}

static void is(P t, int n, const double *want) {
  double got[64];
  int s = ((int (*)(P, double *, size_t))function("tg_read_f64", "TgStatus, " T ", double *, size_t"))(
      t, got, (size_t)n);
  if (s != value_of("TgStatus", "TG_OK"))
    fail_msg("%s", ((const char *(*)(P))function("tg_errmsg", "const char *, const TgContext *"))(ctx));
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= 1e-5 * fmax(1, fabs(want[i]))))
      fail_msg("element %d is %g, not %g", i, got[i], want[i]);
}

#define IS(t, ...)                                                                                           \
  is((t), (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})

static void test_calls(void **state) {
  (void)state;
  P open = options(0, "TgOpenOptions");
  put(open, "TgOpenOptions", "device", &(const char *){"INTERP"}, sizeof(char *));
  ctx = ((P(*)(P))function("tg_open", "TgContext *, const TgOpenOptions *"))(open);
  assert_non_null(ctx);
  assert_int_equal(((int (*)(P))function("tg_error", "TgStatus, const TgContext *"))(ctx),
                   value_of("TgStatus", "TG_OK"));
  P a = from(SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}), b = from(SHAPE(3), (double[]){1, 0, 2});
  IS(t2("tg_add", a, b), 2, 2, 5, 5, 5, 8);
  IS(t2("tg_sub", a, b), 0, 2, 1, 3, 5, 4);
  IS(t2("tg_mul", a, b), 1, 0, 6, 4, 0, 12);
}

static void test_more(void **state) {
  (void)state;
  P a = from(SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6}), b = from(SHAPE(3), (double[]){1, 0, 2}),
    w = from(SHAPE(3, 2), (double[]){1, 0, 0, 1, 1, 1});
  IS(t2("tg_maximum", a, b), 1, 2, 3, 4, 5, 6);
  IS(t2("tg_minimum", a, b), 1, 0, 2, 1, 0, 2);
  IS(t2("tg_lt", b, a), 0, 1, 1, 1, 1, 1);
  IS(t2("tg_eq", b, a), 1, 0, 0, 0, 0, 0);
  IS(t2("tg_pow", a, b), 1, 1, 9, 4, 1, 36);
  IS(t2("tg_floordiv", a, from(SHAPE(3), (double[]){2, 2, 2})), 0, 1, 1, 2, 2, 3);
  IS(t2("tg_mod", a, from(SHAPE(3), (double[]){2, 2, 2})), 1, 0, 1, 0, 1, 0);
  IS(too("tg_matmul_opt", "TgMatmulOptions", a, w, NULL), 4, 5, 10, 11);
  IS(t3("tg_where", t2("tg_lt", b, a), a, b), 1, 2, 3, 4, 5, 6);
  IS(t3("tg_linear", a, from(SHAPE(1, 3), (double[]){1, 1, 1}), from(SHAPE(1), (double[]){10})), 16, 25);
  IS(t1("tg_neg", b), -1, 0, -2);
  IS(t1("tg_exp", b), exp(1), 1, exp(2));
  IS(t1("tg_sqrt", a), 1, sqrt(2), sqrt(3), 2, sqrt(5), sqrt(6));
  IS(t1("tg_relu", t1("tg_neg", b)), 0, 0, 0);
  IS(t1("tg_square", b), 1, 0, 4);
  IS(t1("tg_sigmoid", from(SHAPE(1), (double[]){0})), 0.5);
  IS(t1("tg_tanh", b), tanh(1), 0, tanh(2));
  IS(t1("tg_erf", b), erf(1), 0, erf(2));
  IS(t1("tg_floor", from(SHAPE(2), (double[]){1.5, -1.5})), 1, -2);
  IS(td("tg_add_scalar", b, 1.5), 2.5, 1.5, 3.5);
  IS(td("tg_mul_scalar", b, -2), -2, 0, -4);
  IS(td("tg_rdiv_scalar", td("tg_add_scalar", b, 1), 6), 3, 6, 2);
  IS(td("tg_leaky_relu", t1("tg_neg", b), 0.5), -0.5, 0, -1);
  IS(tii("tg_transpose", a, 0, 1), 1, 4, 2, 5, 3, 6);
  IS(ti("tg_unsqueeze", b, 0), 1, 0, 2);
  IS(tii("tg_flatten", a, 0, -1), 1, 2, 3, 4, 5, 6);
  IS(tl("tg_tril", a, 0), 1, 0, 0, 4, 5, 0);
  IS(ts("tg_reshape", a, SHAPE(3, 2)), 1, 2, 3, 4, 5, 6);
  IS(ts("tg_permute", a, SHAPE(1, 0)), 1, 4, 2, 5, 3, 6);
  IS(ts("tg_expand", b, SHAPE(2, 3)), 1, 0, 2, 1, 0, 2);
  IS(ts("tg_flip", b, SHAPE(0)), 2, 0, 1);
  IS(ts("tg_repeat", b, SHAPE(2)), 1, 0, 2, 1, 0, 2);
  P o = options(1, "TgReduceOptions");
  IS(to("tg_sum_opt", "TgReduceOptions", a, NULL), 21);
  put_axes(o, "TgReduceOptions", 1, (int[]){-1});
  IS(to("tg_sum_opt", "TgReduceOptions", a, o), 6, 15);
  IS(to("tg_mean_opt", "TgReduceOptions", a, o), 2, 5);
  IS(to("tg_prod_opt", "TgReduceOptions", a, o), 6, 120);
  IS(to("tg_argmax_opt", "TgReduceOptions", a, o), 2, 2);
  put_bool(o, "TgReduceOptions", "keepdim");
  IS(to("tg_max_opt", "TgReduceOptions", a, o), 3, 6);
  P v = options(2, "TgVarOptions");
  put_int(v, "TgVarOptions", "correction", 2);
  IS(to("tg_var_opt", "TgVarOptions", a, v), 17.5 / 4);
  P x = options(3, "TgAxisOptions");
  put_axes(x, "TgAxisOptions", 1, (int[]){0});
  IS(to("tg_softmax_opt", "TgAxisOptions", from(SHAPE(2, 1), (double[]){0, log(3)}), x), 0.25, 0.75);
  P c = options(4, "TgCloseOptions");
  put_double(c, "TgCloseOptions", "atol", 0.5);
  IS(too("tg_isclose_opt", "TgCloseOptions", b, td("tg_add_scalar", b, 0.4), c), 1, 1, 1);
  P l = options(5, "TgLossOptions");
  put_int(l, "TgLossOptions", "reduction", (int)value_of("TgReduction", "TG_SUM"));
  IS(too("tg_mse_opt", "TgLossOptions", b, td("tg_add_scalar", b, 2), l), 12);
  P n = options(6, "TgNormOptions");
  put(n, "TgNormOptions", "bias", &b, sizeof b);
  IS(to("tg_layer_norm_opt", "TgNormOptions", from(SHAPE(1, 3), (double[]){4, 4, 4}), n), 1, 0, 2);
  P cat[] = {b, b};
  IS(((P(*)(P *, int, int))function("tg_cat", T ", TgTensor *const *, int, int"))(cat, 2, 0), 1, 0, 2, 1, 0,
     2);
  assert_int_equal(((int64_t(*)(P))function("tg_numel", "int64_t, const TgTensor *"))(a), 6);
  assert_int_equal(((int (*)(P))function("tg_ndim", "int, const TgTensor *"))(a), 2);
  assert_int_equal(((int (*)(P))function("tg_dtype", "TgDType, const TgTensor *"))(a),
                   value_of("TgDType", "TG_F32"));
  /* a gradient, and an error that is told */
  P y = to("tg_sum_opt", "TgReduceOptions", t1("tg_square", b), NULL), g = NULL;
  ((int (*)(P, P *, int, P *))function("tg_gradient",
                                       "TgStatus, " T ", TgTensor *const *, int, TgTensor **"))(y, &b, 1, &g);
  IS(g, 2, 0, 4);
  assert_null(too("tg_matmul_opt", "TgMatmulOptions", a, a, NULL));
  assert_int_equal(((int (*)(P))function("tg_error", "TgStatus, const TgContext *"))(ctx),
                   value_of("TgStatus", "TG_ERR_SHAPE"));
  ((void (*)(P))function("tg_clear_error", "void, TgContext *"))(ctx);
  assert_true(ncalls >= 50);
}

/* A layer of tg_nn.h is trained a step, and its tensors go through a file of tg_io.h. */
typedef struct Linear {
  P weight, bias;
} Linear; /* as the file says: checked below */

static long offset_of(const char *type, const char *field) {
  const char *f = named(member(named(member(json, "structs"), type), "fields"), field);
  return f ? number(member(f, "offset")) : -1;
}

static int status(const char *f, const char *signature, P a) {
  return ((int (*)(P))function(f, signature))(a);
}

static void test_layers_and_files(void **state) {
  (void)state;
  assert_int_equal(offset_of("TgLinear", "weight"), offsetof(Linear, weight));
  assert_int_equal(offset_of("TgLinear", "bias"), offsetof(Linear, bias));
  assert_int_equal(number(member(named(member(json, "structs"), "TgLinear"), "size")), sizeof(Linear));
  Linear l = ((Linear(*)(P, int64_t, int64_t, bool))function(
      "tg_linear_new", "TgLinear, TgContext *, int64_t, int64_t, bool"))(ctx, 3, 2, true);
  assert_non_null(l.weight);
  P sgd = options(0, "TgOptimOptions"), params[] = {l.weight, l.bias};
  put_double(sgd, "TgOptimOptions", "lr", 0.5);
  put_double(sgd, "TgOptimOptions", "momentum", 0.9);
  P opt = ((P(*)(P, P *, int, P))function(
      "tg_sgd_opt", "TgOptim *, TgContext *, TgTensor *const *, int, const TgOptimOptions *"))(ctx, params, 2,
                                                                                               sgd);
  assert_non_null(opt);
  double before[2], after[2];
  int (*read)(P, double *, size_t) =
      ((int (*)(P, double *, size_t))function("tg_read_f64", "TgStatus, " T ", double *, size_t"));
  assert_int_equal(read(l.bias, before, 2), 0);
  P y = ((P(*)(Linear *, P))function("tg_linear_run", T ", const TgLinear *, " T))(
      &l, from(SHAPE(1, 3), (double[]){1, 2, 3}));
  P loss = to("tg_sum_opt", "TgReduceOptions", y, NULL);
  assert_int_equal(
      ((int (*)(P, P))function("tg_backward_opt", "TgStatus, " T ", const TgGradientOptions *"))(loss, NULL),
      0);
  assert_int_equal(status("tg_optim_step", "TgStatus, TgOptim *", opt), 0);
  assert_int_equal(read(l.bias, after, 2), 0);
  for (int i = 0; i < 2; i++)
    assert_true(fabs(after[i] - (before[i] - 0.5)) < 1e-6);
  char path[] = "/tmp/tg-abi-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0 && !close(fd));
  P s = ((P(*)(P))function("tg_state_new", "TgState *, TgContext *"))(ctx);
  assert_int_equal(
      ((int (*)(Linear *, P, const char *))function(
          "tg_linear_state", "TgStatus, const TgLinear *, TgState *, const char *"))(&l, s, "fc"),
      0);
  assert_int_equal(((int (*)(P, P, const char *))function(
                       "tg_optim_state", "TgStatus, TgOptim *, TgState *, const char *"))(opt, s, "optim"),
                   0);
  assert_int_equal(((int (*)(P, const char *, P))function(
                       "tg_safe_save_opt", "TgStatus, const TgState *, const char *, const TgSafeOptions *"))(
                       s, path, NULL),
                   0);
  P file = ((P(*)(P, const char *))function("tg_safe_load_file", "TgState *, TgContext *, const char *"))(
      ctx, path);
  assert_non_null(file);
  assert_int_equal(((size_t(*)(P))function("tg_state_count", "size_t, const TgState *"))(file), 4);
  P(*get)
  (P, const char *) = ((P(*)(P, const char *))function("tg_state_get", T ", const TgState *, const char *"));
  is(get(file, "fc.bias"), 2, after);
  IS(get(file, "optim.state.1.momentum_buffer"), 1, 1);
  ((void (*)(P))function("tg_state_free", "void, TgState *"))(file);
  ((void (*)(P))function("tg_state_free", "void, TgState *"))(s);
  ((void (*)(P))function("tg_optim_free", "void, TgOptim *"))(opt);
  ((void (*)(Linear *))function("tg_linear_free", "void, TgLinear *"))(&l);
  unlink(path);
  ((void (*)(P))function("tg_close", "void, TgContext *"))(ctx);
}

/* Every default is a value: a number, true, false, null, or an enumerator of its field's type. */
static void test_defaults(void **state) {
  (void)state;
  int values = 0;
  for
    each_of(member(json, "functions"), f) {
      char name[128], type[128] = "", field[128], of[128];
      text_of(member(f, "name"), name, sizeof name);
      const char *defaults = member(f, "defaults");
      if (!defaults) continue;
    for
      each_of(member(f, "params"), p) text_of(member(p, "type"), type, sizeof type);
    snprintf(of, sizeof of, "%.*s", (int)strcspn(type + 6, " "), type + 6);
    const char *fields = member(named(member(json, "structs"), of), "fields");
    assert_non_null(fields);
    for (const char *p = blank(defaults + 1); *p == '"'; values++) {
      const char *value = blank(skip_string(p));
      text_of(p, field, sizeof field);
      const char *at = named(fields, field);
      if (!at) fail_msg("%s: %s has no field %s", name, of, field);
      text_of(member(at, "type"), type, sizeof type);
      if (*value == '"') {
        char word[128];
        text_of(value, word, sizeof word);
        (void)value_of(type, word);
      } else if (strncmp(value, "true", 4) && strncmp(value, "false", 5) && strncmp(value, "null", 4)) {
        char *end;
        strtod(value, &end);
        if (end == value || !strchr(",}", *end)) fail_msg("%s: %s is %.20s", name, field, value);
      }
      p = blank(skip_value(value));
    }
    }
  assert_true(values > 100);
  assert_non_null(member(member(json, "options"), "set")); /* what tells a zero from what was left out */
  assert_non_null(member(named(member(json, "functions"), "tg_open"), "defaults"));
  const char *pool = member(named(member(json, "functions"), "tg_max_pool2d_opt"), "defaults");
  const char *attention =
      member(named(member(json, "functions"), "tg_scaled_dot_product_attention_opt"), "defaults");
  assert_int_equal(number(member(pool, "kernel")), 2);
  assert_null(member(pool, "axes"));       /* as many as the kernel has: no value */
  assert_null(member(attention, "scale")); /* 1 / sqrt(d): no value */
}

/* Which parameter tells how long a list is; "": it is no list. Every count is a parameter of its function, or
 * the rank of its tensor. */
static void test_counts(void **state) {
  (void)state;
  static const char *const known[][3] = {{"tg_reshape", "dims", "ndim"},
                                         {"tg_cat", "x", "n"},
                                         {"tg_pad", "hi", "tg_ndim(x)"},
                                         {"tg_split", "out", "cap"},
                                         {"tg_split", "size", ""},
                                         {"tg_meshgrid", "out", "n"},
                                         {"tg_roll", "axes", "n"},
                                         {"tg_qr", "q", ""},
                                         {"tg_onnx_run", "in_names", "nin"},
                                         {"tg_onnx_run", "out", "nout"},
                                         {"tg_read", "out", "nbytes"},
                                         {"tg_kernel", "text", ""},
                                         {"tg_module_shard", "devices", "n"},
                                         {"tg_module_shard", "rules", "nrules"},
                                         {"tg_tokenize_opt", "text", "nbytes"},
                                         {"tg_tokenize_opt", "out", "cap"},
                                         {"tg_llm_embed", "ids", "n"},
                                         {"tg_llm_embed", "out", ""}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const char *params = member(named(member(json, "functions"), known[i][0]), "params");
    const char *p = params ? named(params, known[i][1]) : NULL, *count = p ? member(p, "count") : NULL;
    char got[128] = "";
    if (!p) fail_msg("%s has no %s", known[i][0], known[i][1]);
    if (count) text_of(count, got, sizeof got);
    if (strcmp(got, known[i][2])) fail_msg("%s of %s: %s", known[i][1], known[i][0], got);
  }
  int counts = 0;
  for
    each_of(member(json, "functions"), f) {
      const char *params = member(f, "params");
      for
        each_of(params, p) {
          char count[128];
          if (!member(p, "count")) continue;
          text_of(member(p, "count"), count, sizeof count);
          if (strncmp(count, "tg_ndim(", 8) && !named(params, count)) fail_msg("no parameter %s", count);
          counts++;
        }
    }
  assert_true(counts > 100);
  assert_non_null(member(json, "version"));
}

static int load(void **state) {
  (void)state;
  FILE *f = fopen(TG_ABI, "rb");
  if (!f) fail_msg("no %s", TG_ABI);
  json = calloc(1, 1 << 20);
  size_t n = fread(json, 1, (1 << 20) - 1, f);
  fclose(f);
  library = dlopen(TG_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!n || !library) fail_msg("%s: %s", TG_LIBRARY, dlerror());
  assert_int_equal(number(member(json, "pointer")), sizeof(void *));
  return 0;
}

static int unload(void **state) {
  (void)state;
  free(json);
  return dlclose(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls), cmocka_unit_test(test_more),
                                     cmocka_unit_test(test_layers_and_files), cmocka_unit_test(test_defaults),
                                     cmocka_unit_test(test_counts)};
  return cmocka_run_group_tests(tests, load, unload);
}
