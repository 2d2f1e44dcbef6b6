/* test_onnx.c: ONNX models. Expected values: tests/goldens/onnx.bin (make_onnx.py: the reference evaluator of
 * the onnx package), and by hand. Damaged models are written here (tests/files/protobuf.h), cut at
 * every byte and changed at every byte; nothing is read past their end (the sanitizers look).
 * A device on the command line computes the goldens, instead of INTERP. */
#define _GNU_SOURCE
#include "tg_io.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/files/protobuf.h"
#include "fixture.h"

static TgContext *open_on(const char *device) {
  return tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
}

static void ok(TgContext *c) {
  if (tg_error(c)) fail_msg("%s", tg_errmsg(c));
}

static void refused(TgContext *c, bool got, const char *text) {
  if (got) fail_msg("not refused: %s", text);
  if (!tg_error(c) || !strstr(tg_errmsg(c), text))
    fail_msg("%s: %s, not: %s", tg_status_name(tg_error(c)), tg_errmsg(c), text);
  tg_clear_error(c);
}

static TgOnnx *load(TgContext *c, const void *p, size_t n) {
  return tg_onnx_load(tg_from_bytes(c, p, n, TG_U8));
}

/* ---- goldens */
typedef struct Pack {
  const uint8_t *p, *end;
} Pack;

static uint32_t number(Pack *k) {
  uint32_t v;
  assert_true(k->end - k->p >= 4);
  memcpy(&v, k->p, 4), k->p += 4;
  return v;
}

static const uint8_t *block(Pack *k, uint32_t *n) {
  const uint8_t *at = k->p + 4;
  *n = number(k);
  assert_true((size_t)(k->end - k->p) >= *n);
  k->p += *n;
  return at;
}

static TgTensor *tensor(TgContext *c, Pack *k) {
  uint32_t n;
  const uint8_t *p = block(k, &n);
  return tg_onnx_tensor(tg_from_bytes(c, p, n, TG_U8));
}

static void same(TgContext *c, const char *name, TgTensor *got, TgTensor *want) {
  ok(c);
  if (tg_dtype(got) != tg_dtype(want))
    fail_msg("%s: %s, not %s", name, tg_describe(got), tg_dtype_name(tg_dtype(want)));
  if (tg_ndim(got) != tg_ndim(want)) fail_msg("%s: %d axes, not %d", name, tg_ndim(got), tg_ndim(want));
  for (int a = 0; a < tg_ndim(want); a++)
    if (tg_dim(got, a) != tg_dim(want, a))
      fail_msg("%s: axis %d is %lld, not %lld", name, a, (long long)tg_dim(got, a),
               (long long)tg_dim(want, a));
  size_t n = (size_t)tg_numel(want);
  double *x = calloc(n + 1, sizeof *x);
  double *y = calloc(n + 1, sizeof *y);
  double rel = tg_dtype(want) == TG_F16 ? 1e-3 : 2e-5;
  assert_int_equal(tg_read_f64(got, x, n), TG_OK), assert_int_equal(tg_read_f64(want, y, n), TG_OK);
  for (size_t i = 0; i < n; i++)
    if (!(x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) || fabs(x[i] - y[i]) <= 2e-6 + rel * fabs(y[i])))
      fail_msg("%s: [%zu] is %.9g, not %.9g", name, i, x[i], y[i]);
  free(x), free(y);
}

static uint64_t splitmix(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* A model with a byte or two changed: opened and built, whatever comes of it; a wrong result without an error
 * is what this looks for. */
static void damaged(TgContext *c, const uint8_t *p, size_t n, const char *const *names, TgTensor *const *in,
                    int nin, uint64_t *state) {
  for (int k = 0; k < 12; k++) {
    uint8_t *d = malloc(n);
    memcpy(d, p, n);
    for (uint64_t i = 0; i <= splitmix(state) % 2; i++)
      d[splitmix(state) % n] = (uint8_t)splitmix(state);
    assert_int_equal(tg_scope_begin(c), TG_OK);
    TgTensor *out[1];
    TgOnnx *m = tg_onnx_load(tg_borrow(c, d, TG_U8, TG_SHAPE((int64_t)n), NULL, NULL));
    TgStatus status = m ? tg_onnx_run(m, names, in, nin, out, 1) : tg_error(c);
    assert_true(status == tg_error(c) && (status || out[0]));
    tg_onnx_free(m), tg_scope_end(c), tg_clear_error(c), tg_collect(c);
    free(d);
  }
}

static void goldens_on(const char *device, const char *file, int least) {
  FILE *f = fopen(file, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  size_t size = (size_t)ftell(f);
  rewind(f);
  uint8_t *all = malloc(size);
  assert_int_equal(fread(all, 1, size, f), size);
  fclose(f);
  TgContext *c = open_on(device);
  Pack k = {all, all + size};
  int cases = 0;
  uint64_t state = 1;
  for (; k.p < k.end; cases++) {
    uint32_t n;
    const uint8_t *p = block(&k, &n);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, (const char *)p);
    assert_int_equal(tg_scope_begin(c), TG_OK);
    p = block(&k, &n);
    uint32_t size_of_model = n;
    TgOnnx *m = load(c, p, n);
    TgTensor *in[8], *out[8], *want[8];
    const char *names[8];
    TgOnnxValue v;
    if (!m) fail_msg("%s: %s", name, tg_errmsg(c));
    uint32_t nin = number(&k);
    for (uint32_t i = 0; i < nin; i++) {
      assert_true(tg_onnx_input(m, i, &v));
      names[i] = v.name, in[i] = tensor(c, &k);
    }
    uint32_t nout = number(&k);
    for (uint32_t i = 0; i < nout; i++)
      want[i] = tensor(c, &k);
    if (tg_onnx_run(m, names, in, (int)nin, out, (int)nout)) fail_msg("%s: %s", name, tg_errmsg(c));
    damaged(c, p, size_of_model, names, in, (int)nin, &state);
    tg_onnx_free(m); /* what is lazy outlives the model */
    for (uint32_t i = 0; i < nout; i++)
      same(c, name, out[i], want[i]);
    tg_scope_end(c), tg_collect(c);
  }
  assert_true(cases >= least);
  /* bytes: a kernel with more takes the C compiler too long */
  assert_in_range(tg_counters(c).largest_source, 0, 200 << 10);
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_close(c), free(all);
}

static const char *golden_device = "INTERP";

static void test_goldens(void **s) {
  (void)s;
  goldens_on(golden_device, TG_TESTS "/goldens/onnx.bin", 150);
}

static void test_microsoft(void **s) {
  (void)s;
  goldens_on(golden_device, TG_TESTS "/goldens/microsoft.bin", 50);
}

/* ---- damaged models */
/* "3" a size, else its name */
static void input(Msg *g, int field, const char *name, int type, int n, const char *const *dims) {
  Msg shape = {0}, tensor = {0}, t = {0}, v = {0};
  for (int i = 0; i < n; i++) {
    Msg d = {0};
    if (dims[i][0] >= '0' && dims[i][0] <= '9')
      put_int(&d, 1, atoi(dims[i]));
    else
      put_text(&d, 2, dims[i]);
    put(&shape, 1, &d);
  }
  put_int(&tensor, 1, type), put(&tensor, 2, &shape), put(&t, 1, &tensor), put_text(&v, 1, name),
      put(&v, 2, &t), put(g, field, &v);
}

static Msg node(const char *op, const char *a, const char *b, const char *y) {
  Msg n = {0};
  if (a) put_text(&n, 1, a);
  if (b) put_text(&n, 1, b);
  put_text(&n, 2, y), put_text(&n, 3, "the node"), put_text(&n, 4, op);
  return n;
}

static Msg weight(const char *name, int type, int64_t dim, const void *raw, size_t nbytes) {
  Msg t = {0};
  put_int(&t, 1, dim), put_int(&t, 2, type), put_text(&t, 8, name), put_bytes(&t, 9, raw, nbytes);
  return t;
}

static Msg model(const Msg *g, int opset) {
  Msg m = {0}, o = {0};
  put_int(&o, 2, opset);
  put_int(&m, 1, 8), put(&m, 7, g), put(&m, 8, &o);
  return m;
}

static const float two[2] = {10, 20};

/* y = x + w, z = y * x */
static Msg small(void) {
  Msg g = {0}, w = weight("w", 1, 2, two, sizeof two), a = node("Add", "x", "w", "y"),
      b = node("Mul", "y", "x", "z");
  const char *dims[] = {"n", "2"}, *out[] = {"n", "2"};
  put(&g, 1, &a), put(&g, 1, &b), put(&g, 5, &w), input(&g, 11, "x", 1, 2, dims),
      input(&g, 12, "z", 1, 2, out);
  return model(&g, 17);
}

static void test_small(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  Msg m = small();
  TgOnnx *o = load(c, m.b, m.n);
  TgOnnxValue v;
  ok(c);
  assert_true(tg_onnx_input(o, 0, &v) && !strcmp(v.name, "x") && v.dtype == TG_F32 && v.ndim == 2 &&
              v.dims[0] == -1 && !strcmp(v.dim_names[0], "n") && v.dims[1] == 2 && !v.has_default);
  assert_true(tg_onnx_output(o, 0, &v) && !strcmp(v.name, "z") && !tg_onnx_output(o, 1, &v) &&
              !tg_onnx_input(o, 1, &v));
  assert_int_equal(tg_onnx_opset(o), 17);
  const char *domain;
  int64_t version;
  assert_true(tg_onnx_import(o, 0, &domain, &version) && !strcmp(domain, "ai.onnx") && version == 17);
  assert_true(!tg_onnx_import(o, 1, &domain, &version) && !tg_onnx_import(NULL, 0, &domain, &version));
  TgTensor *x = tg_from_text(c, "[[1.0, 2.0], [3.0, 4.0]]"), *y;
  for (int run = 0; run < 2; run++) {
    assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_OK);
    assert_string_equal(tg_to_text(y), "[[11.0, 44.0], [39.0, 96.0]]");
  }
  refused(c, !tg_onnx_run(o, NULL, NULL, 0, &y, 1), "input x is missing");
  refused(c, !tg_onnx_run(o, (const char *[]){"q"}, &x, 1, &y, 1), "no input q; its inputs: x");
  refused(c, !tg_onnx_run(o, (const char *[]){"x", "x"}, (TgTensor *[]){x, x}, 2, &y, 1),
          "input x is given twice");
  TgTensor *wrong = tg_int(x), *wide = tg_zeros(c, TG_SHAPE(2, 3)), *flat = tg_zeros(c, TG_SHAPE(2));
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &wrong, 1, &y, 1), "input x is i32, the model takes f32");
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &wide, 1, &y, 1),
          "axis 1 of input x is 3, the model takes 2");
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &flat, 1, &y, 1), "has 1 axes, the model takes 2");
  TgVariable *n = tg_variable(c, "n", 1, 2);
  TgTensor *part = tg_slice(x, 1, 0, tg_size(n));
  tg_variable_bind(n, 2);
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &part, 1, &y, 1),
          "axis 1 of input x has a symbolic size, the model takes 2");
  refused(c, !tg_onnx_fix(o, "x", part), "axis 1 of input x has a symbolic size, the model takes 2");
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &x, 1, (TgTensor *[2]){0}, 2),
          "2 outputs asked for, the model has 1");
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_onnx_free(o), tg_close(c);
}

static void test_named_sizes(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  Msg g = {0}, a = node("MatMul", "p", "q", "y");
  input(&g, 11, "p", 1, 2, (const char *[]){"n", "k"}), input(&g, 11, "q", 1, 2, (const char *[]){"k", "n"}),
      input(&g, 12, "y", 1, 0, NULL), put(&g, 1, &a);
  Msg m = model(&g, 13);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *p = tg_ones(c, TG_SHAPE(2, 3));
  TgTensor *q = tg_ones(c, TG_SHAPE(3, 2));
  TgTensor *bad = tg_ones(c, TG_SHAPE(3, 5));
  TgTensor *y;
  assert_int_equal(tg_onnx_run(o, (const char *[]){"p", "q"}, (TgTensor *[]){p, q}, 2, &y, 1), TG_OK);
  assert_string_equal(tg_to_text(y), "[[3.0, 3.0], [3.0, 3.0]]");
  refused(c, !tg_onnx_run(o, (const char *[]){"q", "p"}, (TgTensor *[]){bad, p}, 2, &y, 1),
          "dimension n is 2 in input p and 5 in input q");
  TgVariable *n = tg_variable(c, "n", 1, 3), *other = tg_variable(c, "other", 1, 3);
  TgTensor *nine = tg_contiguous(tg_ones(c, TG_SHAPE(3, 3)));
  TgTensor *rows = tg_slice(nine, 0, 0, tg_size(n)), *columns = tg_slice(nine, 1, 0, tg_size(n));
  TgTensor *others = tg_slice(nine, 1, 0, tg_size(other));
  assert_int_equal(tg_onnx_run(o, (const char *[]){"p", "q"}, (TgTensor *[]){rows, columns}, 2, &y, 1),
                   TG_OK);
  for (int64_t i = 1; i < 4; i++) {
    assert_int_equal(tg_variable_bind(n, i), TG_OK);
    assert_int_equal(tg_numel(y), i * i);
    assert_true(tg_item_f64(tg_sum(y)) == (double)(3 * i * i));
  }
  refused(c, !tg_onnx_run(o, (const char *[]){"p", "q"}, (TgTensor *[]){rows, q}, 2, &y, 1),
          "dimension n has different sizes in inputs p and q");
  refused(c, !tg_onnx_run(o, (const char *[]){"p", "q"}, (TgTensor *[]){rows, others}, 2, &y, 1),
          "dimension n has different sizes in inputs p and q");
  refused(c, !tg_onnx_fix(o, "p", rows), "axis 0 of the value of input p has a symbolic size");
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_onnx_free(o), tg_close(c);
}

/* Two sizes that nobody knows are no one size, whatever stands for them. */
static void test_unknown_sizes(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  Msg g = {0}, a = node("MatMul", "p", "q", "y");
  input(&g, 11, "p", 1, 2, (const char *[]){"?", "?"}), input(&g, 11, "q", 1, 2, (const char *[]){"?", "?"}),
      input(&g, 12, "y", 1, 0, NULL), put(&g, 1, &a);
  Msg m = model(&g, 13);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *p = tg_ones(c, TG_SHAPE(2, 3)), *q = tg_ones(c, TG_SHAPE(3, 5)), *y;
  assert_int_equal(tg_onnx_run(o, (const char *[]){"p", "q"}, (TgTensor *[]){p, q}, 2, &y, 1), TG_OK);
  assert_int_equal(tg_dim(y, 1), 5);
  tg_onnx_free(o), tg_close(c);
}

/* Sizes in 32 bits, as models of TensorFlow compute with them: x (n, 4) -> y (n, 2, 2), and as data n + 1, 4 + 2 and
 * whether they are 3, 4. What an input's value decides is refused. */
static void test_narrow_sizes(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  static const int32_t less[] = {0, 2}, two = 2, other[] = {3, 4};
  Msg g = {0}, to32 = {0}, to64 = {0}, axis = {0}, n;
  put_text(&to32, 1, "to"), put_int(&to32, 20, 2), put_int(&to32, 3, 6);
  put_text(&to64, 1, "to"), put_int(&to64, 20, 2), put_int(&to64, 3, 7);
  put_text(&axis, 1, "axis"), put_int(&axis, 20, 2), put_int(&axis, 3, 0);
  n = node("Shape", "x", NULL, "shape"), put(&g, 1, &n);
  n = node("Cast", "shape", NULL, "narrow"), put(&n, 5, &to32), put(&g, 1, &n);
  n = node("Sub", "narrow", "less", "part"), put(&g, 1, &n);
  n = node("Concat", "part", "two", "all"), put(&n, 5, &axis), put(&g, 1, &n);
  n = node("Cast", "all", NULL, "wide"), put(&n, 5, &to64), put(&g, 1, &n);
  n = node("Reshape", "x", "wide", "y"), put(&g, 1, &n);
  n = node("Add", "narrow", "w", "z"), put(&g, 1, &n);
  n = node("Equal", "narrow", "other", "equal"), put(&g, 1, &n);
  n = node("Cast", "equal", NULL, "e"), put(&n, 5, &to32), put(&g, 1, &n);
  n = weight("other", 6, 2, other, sizeof other), put(&g, 5, &n);
  n = weight("less", 6, 2, less, sizeof less), put(&g, 5, &n);
  n = weight("two", 6, 1, &two, sizeof two), put(&g, 5, &n);
  input(&g, 11, "x", 1, 2, (const char *[]){"n", "4"}), input(&g, 11, "w", 6, 1, (const char *[]){"2"});
  input(&g, 12, "y", 1, 0, NULL), input(&g, 12, "z", 6, 0, NULL), input(&g, 12, "e", 6, 0, NULL);
  Msg m = model(&g, 13);
  TgOnnx *o = load(c, m.b, m.n);
  TgVariable *rows = tg_variable(c, "rows", 1, 5);
  TgTensor *x = tg_slice(tg_contiguous(tg_ones(c, TG_SHAPE(5, 4))), 0, 0, tg_size(rows)), *out[3];
  TgTensor *w = tg_from(c, (const int32_t[]){1, 2}, TG_I32, TG_SHAPE(2));
  if (tg_onnx_run(o, (const char *[]){"x", "w"}, (TgTensor *[]){x, w}, 2, out, 3))
    fail_msg("%s", tg_errmsg(c));
  for (int64_t i = 1; i < 6; i++) {
    int32_t z[2], e[2];
    assert_int_equal(tg_variable_bind(rows, i), TG_OK);
    assert_true(tg_ndim(out[0]) == 3 && tg_dim(out[0], 0) == i && tg_dim(out[0], 1) == 2 &&
                tg_dim(out[0], 2) == 2);
    assert_int_equal(tg_read(out[1], z, sizeof z), TG_OK);
    if (z[0] != i + 1 || z[1] != 6) fail_msg("%d %d", z[0], z[1]);
    assert_int_equal(tg_read(out[2], e, sizeof e), TG_OK);
    assert_true(e[0] == (i == 3) && e[1] == 1);
  }
  Msg h = {0};
  n = node("Reshape", "x", "k", "y"), put(&h, 1, &n);
  input(&h, 11, "x", 1, 2, (const char *[]){"n", "4"}), input(&h, 11, "k", 7, 1, (const char *[]){"2"});
  input(&h, 12, "y", 1, 0, NULL);
  m = model(&h, 13);
  TgOnnx *decided = load(c, m.b, m.n);
  TgTensor *k = tg_from(c, (const int64_t[]){0, 4}, TG_I64, TG_SHAPE(2));
  refused(c, !tg_onnx_run(decided, (const char *[]){"x", "k"}, (TgTensor *[]){x, k}, 2, out, 1),
          "a number is needed now that depends on a symbolic size, or on an input's values");
  tg_onnx_free(decided), tg_onnx_free(o), tg_close(c);
}

/* ---- loops */
/* x, doubled `count` times */
static Msg doubling(int64_t count) {
  Msg body = {0}, n, g = {0}, graph = {0}, w = {0};
  n = node("Identity", "go", NULL, "going"), put(&body, 1, &n);
  n = node("Add", "s", "s", "twice"), put(&body, 1, &n);
  input(&body, 11, "i", 7, 0, NULL), input(&body, 11, "go", 9, 0, NULL);
  input(&body, 11, "s", 1, 1, (const char *[]){"2"});
  input(&body, 12, "going", 9, 0, NULL), input(&body, 12, "twice", 1, 1, (const char *[]){"2"});
  put_int(&w, 2, 7), put_text(&w, 8, "count"), put_bytes(&w, 9, &count, sizeof count);
  n = (Msg){0};
  put_text(&n, 1, "count"), put_text(&n, 1, ""), put_text(&n, 1, "x"), put_text(&n, 2, "y");
  put_text(&n, 3, "the loop"), put_text(&n, 4, "Loop");
  put_text(&graph, 1, "body"), put(&graph, 6, &body), put_int(&graph, 20, 5), put(&n, 5, &graph);
  put(&g, 1, &n), put(&g, 5, &w);
  input(&g, 11, "x", 1, 1, (const char *[]){"2"}), input(&g, 12, "y", 1, 1, (const char *[]){"2"});
  return model(&g, 17);
}

typedef struct Stop {
  TgContext *c;
  int nodes, at;
} Stop;

static void stop_at(const TgOnnxNode *node, void *user) {
  Stop *stop = user;
  (void)node;
  if (++stop->nodes == stop->at) tg_cancel(stop->c);
}

static void test_loops_end(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_ones(c, TG_SHAPE(2)), *y;
  Msg m = doubling(5);
  TgOnnx *o = load(c, m.b, m.n);
  ok(c);
  assert_int_equal(tg_onnx_loop_limit(o, 5), TG_OK);
  for (int run = 0; run < 2; run++) { /* each run counts anew */
    assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_OK);
    assert_string_equal(tg_to_text(y), "[32.0, 32.0]");
  }
  tg_onnx_loop_limit(o, 4);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_ERR_LIMIT);
  refused(c, false, "node the loop (Loop): the loops of a run have more than 4 iterations");
  assert_int_equal(tg_onnx_loop_limit(o, -1), TG_ERR_VALUE);
  tg_clear_error(c), tg_onnx_free(o);
  m = doubling(INT64_MAX / 2), o = load(c, m.b, m.n);
  Stop stop = {.c = c, .at = 1000};
  tg_onnx_watch(o, stop_at, &stop);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_ERR_CANCELLED);
  assert_int_equal(stop.nodes, 1000);
  tg_clear_error(c), tg_onnx_free(o);
  m = doubling(5), o = load(c, m.b, m.n); /* once told, the context goes on */
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_OK);
  tg_onnx_free(o), tg_close(c);
}

/* Row k of 600 that a loop gathers is x + 0 + 1 .. + k. */
static void test_rows_gathered(void **s) {
  (void)s;

  enum { ROWS = 600 };

  TgContext *c = open_on("INTERP");
  const int64_t count = ROWS;
  Msg body = {0}, n, g = {0}, graph = {0}, w = {0};
  n = node("Identity", "go", NULL, "going"), put(&body, 1, &n);
  n = node("CastLike", "i", "s", "f"), put(&body, 1, &n);
  n = node("Add", "s", "f", "sum"), put(&body, 1, &n);
  n = node("Identity", "sum", NULL, "row"), put(&body, 1, &n);
  input(&body, 11, "i", 7, 0, NULL), input(&body, 11, "go", 9, 0, NULL);
  input(&body, 11, "s", 1, 1, (const char *[]){"2"});
  input(&body, 12, "going", 9, 0, NULL), input(&body, 12, "sum", 1, 1, (const char *[]){"2"});
  input(&body, 12, "row", 1, 1, (const char *[]){"2"});
  put_int(&w, 2, 7), put_text(&w, 8, "count"), put_bytes(&w, 9, &count, sizeof count), put(&g, 5, &w);
  n = (Msg){0};
  put_text(&n, 1, "count"), put_text(&n, 1, ""), put_text(&n, 1, "x"), put_text(&n, 2, "y");
  put_text(&n, 2, "z"), put_text(&n, 4, "Loop");
  put_text(&graph, 1, "body"), put(&graph, 6, &body), put_int(&graph, 20, 5), put(&n, 5, &graph);
  put(&g, 1, &n), input(&g, 11, "x", 1, 1, (const char *[]){"2"}), input(&g, 12, "z", 1, 0, NULL);
  Msg m = model(&g, 17);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *x = tg_from_text(c, "[1.0, 0.5]"), *z;
  float got[2 * ROWS];
  ok(c);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &z, 1), TG_OK);
  assert_true(tg_ndim(z) == 2 && tg_dim(z, 0) == ROWS && tg_dim(z, 1) == 2);
  assert_int_equal(tg_read(z, got, sizeof got), TG_OK);
  for (int k = 0; k < ROWS; k++) {
    assert_true(got[2 * k] == 1.0f + (float)(k * (k + 1) / 2));
    assert_true(got[2 * k + 1] == 0.5f + (float)(k * (k + 1) / 2));
  }
  tg_onnx_free(o), tg_close(c);
}

/* Shapes that a model computes from its input's cost the device no kernel. */
static void test_shapes_on_the_host(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  const int64_t one = 1, minus = -1;
  Msg g = {0}, n[4] = {node("Shape", "x", NULL, "s"), node("Gather", "s", "one", "d"),
                       node("Concat", "d", "minus", "t"), node("Reshape", "x", "t", "y")};
  Msg w = weight("one", 7, 1, &one, 8), v = weight("minus", 7, 1, &minus, 8);
  for (int i = 0; i < 4; i++)
    put(&g, 1, &n[i]);
  put(&g, 5, &w), put(&g, 5, &v), input(&g, 11, "x", 1, 2, (const char *[]){"a", "b"}),
      input(&g, 12, "y", 1, 0, NULL);
  Msg m = model(&g, 13);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *x = tg_from_text(c, "[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]"), *y;
  ok(c);
  tg_counters_reset(c);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_OK);
  assert_int_equal(tg_counters(c).launches, 0);
  assert_int_equal(tg_dim(y, 0), 4);
  assert_string_equal(tg_to_text(y), "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]");
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_onnx_free(o), tg_close(c);
}

static void refuse_graph(TgContext *c, const Msg *g, int opset, const char *text) {
  Msg m = model(g, opset);
  TgOnnx *o = load(c, m.b, m.n);
  refused(c, o != NULL, text);
}

static void test_refused(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  Msg g = {0}, a = node("Frobnicate", "x", NULL, "y"), w;
  input(&g, 11, "x", 1, 0, NULL), put(&g, 1, &a);
  refuse_graph(c, &g, 17, "op Frobnicate of the domain ai.onnx, opset 17, is not implemented");
  g.n = 0, a = node("Relu", "x", NULL, "y"), put_text(&a, 7, "my.domain"), input(&g, 11, "x", 1, 0, NULL),
  put(&g, 1, &a);
  refuse_graph(c, &g, 17, "op Relu of the domain my.domain");
  g.n = 0, a = node("RMSNormalization", "x", "x", "y"), input(&g, 11, "x", 1, 0, NULL), put(&g, 1, &a);
  refuse_graph(c, &g, 17, "op RMSNormalization of the domain ai.onnx, opset 17");
  refuse_graph(c, &g, 99, "opset 99");
  g.n = 0, a = node("Relu", "y", NULL, "z"), put(&g, 1, &a), a = node("Relu", "z", NULL, "y"), put(&g, 1, &a);
  refuse_graph(c, &g, 17, "reads y, which nothing before it makes");
  g.n = 0, input(&g, 11, "x", 1, 0, NULL), a = node("Relu", "x", NULL, "x"), put(&g, 1, &a);
  refuse_graph(c, &g, 17, "x: the name is taken");
  g.n = 0, input(&g, 11, "x", 1, 0, NULL), input(&g, 11, "x", 1, 0, NULL);
  refuse_graph(c, &g, 17, "input x: the name is taken");
  g.n = 0, w = weight("w", 1, 2, two, 8), put(&g, 5, &w), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "initializer w: the name is taken");
  g.n = 0, w = weight("w", 1, INT64_MAX / 4, two, 8), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "sizes out of bounds");
  g.n = 0, w = weight("w", 1, -2, two, 8), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "sizes out of bounds");
  g.n = 0, w = weight("w", 1, 3, two, 8), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "8 bytes for a shape and data type of 12");
  g.n = 0, w = weight("w", 23, 2, two, 1), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "data type 23");
  g.n = 0, w = weight("w", 22, 3, two, 1), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "1 bytes for a shape and data type of 2");
  g.n = 0, w = weight("w", 1, 2, two, 8), put_int(&w, 14, 1), put(&g, 5, &w);
  refuse_graph(c, &g, 17, "a file beside the model, which was given without its path");
  g.n = 0, put_int(&g, 1, 5);
  refuse_graph(c, &g, 17, "wire type 0");
  g.n = 0, input(&g, 12, "nowhere", 1, 0, NULL);
  refuse_graph(c, &g, 17, "output nowhere: nothing makes it");
  refused(c, load(c, "", 0) != NULL, "");
  refused(c, load(c, "\x08\x08", 2) != NULL, "no graph");
  refused(c, tg_onnx_open(c, "/nonexistent.onnx") != NULL, "/nonexistent.onnx");
  g = (Msg){0}; /* graphs within graphs, deeper than any model */
  for (int i = 0; i < 12; i++) {
    Msg attr = {0}, n = node("If", NULL, NULL, "y"), outer = {0};
    put_text(&attr, 1, "then_branch"), put(&attr, 6, &g), put(&n, 5, &attr), put(&outer, 1, &n);
    g = outer;
  }
  refuse_graph(c, &g, 17, "more than 8 deep");
  g.n = 0, a = node("Relu", "x", NULL, "y"), put(&g, 1, &a),
  input(&g, 11, "x", 6, 0, NULL); /* an error in a node is told with the node */
  a = node("MatMul", "x", "x", "z"), put(&g, 1, &a), input(&g, 12, "z", 1, 0, NULL);
  Msg m = model(&g, 17);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *x = tg_full_i64(c, TG_SCALAR, 3, TG_I32), *y;
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), "node the node (MatMul): ");
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_onnx_free(o), tg_close(c);
}

static Msg unnamed(const char *op, const char *a, const char *b, const char *y) {
  Msg n = {0};
  put_text(&n, 1, a);
  if (b) put_text(&n, 1, b);
  if (y) put_text(&n, 2, y);
  put_text(&n, 4, op);
  return n;
}

/* A node without a name is told by its first output, or by its place in the graph. */
static void test_unnamed(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  Msg g = {0}, a = unnamed("Relu", "x", NULL, "y"), b = unnamed("Frobnicate", "x", NULL, "z");
  input(&g, 11, "x", 1, 0, NULL), put(&g, 1, &a), put(&g, 1, &b);
  refuse_graph(c, &g, 17, "node with output z: op Frobnicate of the domain ai.onnx");
  g.n = 0, b = unnamed("Frobnicate", "x", NULL, NULL);
  input(&g, 11, "x", 1, 0, NULL), put(&g, 1, &a), put(&g, 1, &b);
  refuse_graph(c, &g, 17, "node number 1: op Frobnicate of the domain ai.onnx");
  g.n = 0, put(&g, 1, &a);
  refuse_graph(c, &g, 17, "node with output y (Relu) reads x, which nothing before it makes");
  g.n = 0, b = unnamed("MatMul", "x", "y", "z");
  input(&g, 11, "x", 1, 2, (const char *[]){"2", "3"}), put(&g, 1, &a), put(&g, 1, &b),
      input(&g, 12, "z", 1, 0, NULL);
  Msg m = model(&g, 17);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *x = tg_ones(c, TG_SHAPE(2, 3)), *z;
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &z, 1), "onnx: node with output z (MatMul): ");
  tg_onnx_free(o), tg_close(c);
}

/* ---- one node, its inputs given as tensors: what it says, or what comes out */
static Msg attribute(const char *name, int kind) {
  Msg a = {0};
  put_text(&a, 1, name), put_int(&a, 20, kind);
  return a;
}

static Msg attr_int(const char *name, int64_t v) {
  Msg a = attribute(name, 2);
  return put_int(&a, 3, v), a;
}

static Msg attr_float(const char *name, float v) {
  Msg a = attribute(name, 1);
  a.b[a.n++] = 2 << 3 | 5; /* f, of four bytes */
  memcpy(a.b + a.n, &v, sizeof v);
  a.n += sizeof v;
  return a;
}

static Msg attr_text(const char *name, const char *v) {
  Msg a = attribute(name, 3);
  return put_text(&a, 4, v), a;
}

typedef struct Node {
  const char *op;
  int nin;
  TgTensor *in[8]; /* NULL: left out */
  int nattrs;
  Msg attr[4];
  bool known, microsoft;
  int opset;
} Node;

static TgTensor *run_node(TgContext *c, const Node *n) { /* known: input 1 is an initializer of i64 */
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  Msg g = {0}, node = {0};
  const char *given[8];
  TgTensor *in[8], *y = NULL;
  int k = 0;
  if (n->microsoft) put_text(&node, 7, "com.microsoft");
  for (int i = 0; i < n->nin; i++) {
    Msg v = {0};
    put_text(&node, 1, n->in[i] ? names[i] : "");
    if (!n->in[i]) continue;
    if (n->known && i == 1) {
      int64_t data[16];
      assert_int_equal(tg_read(n->in[1], data, tg_nbytes(n->in[1])), TG_OK);
      Msg w = {0};
      for (int a = 0; a < tg_ndim(n->in[1]); a++)
        put_int(&w, 1, tg_dim(n->in[1], a));
      put_int(&w, 2, 7), put_text(&w, 8, names[i]), put_bytes(&w, 9, data, tg_nbytes(n->in[1])),
          put(&g, 5, &w);
      continue;
    }
    put_text(&v, 1, names[i]), put(&g, 11, &v);
    given[k] = names[i], in[k++] = n->in[i];
  }
  put_text(&node, 2, "y"), put_text(&node, 3, "the node"), put_text(&node, 4, n->op);
  for (int i = 0; i < n->nattrs; i++)
    put(&node, 5, &n->attr[i]);
  put(&g, 1, &node), input(&g, 12, "y", 0, 0, NULL);
  Msg m = model(&g, n->opset ? n->opset : 17);
  TgOnnx *o = load(c, m.b, m.n);
  ok(c);
  if (tg_onnx_run(o, given, in, k, &y, 1)) y = NULL;
  if (y && tg_realize(y)) y = NULL;
  tg_onnx_free(o);
  return y;
}

static void node_says(TgContext *c, const Node *n, const char *text) {
  refused(c, run_node(c, n) != NULL, text);
}

#define SAYS(text, ...) node_says(c, &(Node){.op = __VA_ARGS__}, "node the node (" text)
#define GIVES(text, ...)                                                                                     \
  do {                                                                                                       \
    TgTensor *y_ = run_node(c, &(Node){.op = __VA_ARGS__});                                                  \
    ok(c);                                                                                                   \
    assert_string_equal(tg_to_text(y_), text);                                                               \
  } while (0)

static Msg attr_two(const char *name, int64_t a, int64_t b) {
  Msg m = attribute(name, 7);
  return put_int(&m, 8, a), put_int(&m, 8, b), m;
}

static void equal_tensors(TgContext *c, TgTensor *a, TgTensor *b, double near) {
  double x[512], y[512];
  ok(c);
  assert_true(tg_numel(a) == tg_numel(b) && tg_numel(a) <= 512);
  tg_read_f64(a, x, (size_t)tg_numel(a)), tg_read_f64(b, y, (size_t)tg_numel(b));
  for (int64_t i = 0; i < tg_numel(a); i++)
    if (!(fabs(x[i] - y[i]) <= near * (1 + fabs(y[i]))))
      fail_msg("number %d: %g, not %g", (int)i, x[i], y[i]);
}

/* Values at edges, as ONNX's text and onnxruntime have them. */
static void test_edges(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  static const int64_t big = (INT64_C(1) << 62) + 1, past = (INT64_C(1) << 62) + 300, step = 100;
  TgTensor *from = tg_from(c, &big, TG_I64, TG_SCALAR), *to = tg_from(c, &past, TG_I64, TG_SCALAR);
  TgTensor *by = tg_from(c, &step, TG_I64, TG_SCALAR);
  GIVES("[4611686018427387905, 4611686018427388005, 4611686018427388105]", "Range", 3, {from, to, by});
  TgTensor *down = tg_neg(by);
  assert_int_equal(tg_realize(down), TG_OK);
  GIVES("[]", "Range", 3, {to, from, by});
  GIVES("[4611686018427388204, 4611686018427388104, 4611686018427388004]", "Range", 3, {to, from, down});
  TgTensor *pads = tg_from(c, (int64_t[]){1, 1}, TG_I64, TG_SHAPE(2));
  GIVES("[4611686018427387905, 5, 4611686018427387905]", "Pad", 3,
        {tg_from(c, (int64_t[]){5}, TG_I64, TG_SHAPE(1)), pads, from}, .known = true);
  TgTensor *unsorted = tg_from(c, (uint64_t[]){UINT64_C(1) << 63 | 1, 1, 5}, TG_U64, TG_SHAPE(3));
  GIVES("[1, 5, 9223372036854775809]", "Unique", 1, {unsorted});
  /* a start before the axis is its first element, of a step back too */
  TgTensor *x = tg_arange(c, 0, 4, 1), *ends = tg_from(c, (int64_t[]){INT32_MIN}, TG_I64, TG_SHAPE(1));
  TgTensor *back = tg_from(c, (int64_t[]){-1}, TG_I64, TG_SHAPE(1)), *zero = tg_sub(back, back);
  TgTensor *all[] = {x, zero};
  tg_realize_many(all, 2);
  GIVES("[0]", "Slice", 5, {x, tg_from(c, (int64_t[]){-9}, TG_I64, TG_SHAPE(1)), ends, zero, back},
        .known = true);
  /* a C that counts for nothing is not read */
  TgTensor *one = tg_ones(c, TG_SHAPE(1, 1)), *nan = tg_full(c, TG_SHAPE(1, 1), NAN);
  Msg beta = attr_float("beta", 0);
  GIVES("[[1.0]]", "Gemm", 3, {one, one, nan}, 1, {beta});
  /* equal neighbours are what stands between them; before opset 11 the nearest of fewer is the next */
  TgTensor *seven = tg_full(c, TG_SHAPE(1, 1, 1, 1), 7, .dtype = TG_U8);
  TgTensor *scales = tg_from_f64(c, (double[]){1, 1, 1, 2.3}, TG_F32, TG_SHAPE(4));
  GIVES("[[[[7, 7]]]]", "Resize", 3, {seven, NULL, scales}, 1, {attr_text("mode", "linear")});
  TgTensor *grid = tg_reshape(tg_arange(c, 1, 9, 1, .dtype = TG_F32), TG_SHAPE(1, 1, 2, 4));
  TgTensor *less = tg_from_f64(c, (double[]){1, 1, .6, .6}, TG_F32, TG_SHAPE(4));
  GIVES("[[[[1.0, 3.0]]]]", "Resize", 2, {grid, less}, .opset = 10);
  /* numbers of activations go to those that take one */
  TgTensor *in = tg_full(c, TG_SHAPE(1, 1, 1), -1), *w = tg_ones(c, TG_SHAPE(2, 1, 1)),
           *r = tg_zeros(c, TG_SHAPE(2, 1, 1));
  Msg names = attribute("activations", 8), alpha = attribute("activation_alpha", 6);
  static const float half = .5f;
  put_text(&names, 9, "Relu"), put_text(&names, 9, "LeakyRelu"), put_bytes(&alpha, 7, &half, sizeof half);
  GIVES("[[[[0.0]], [[-0.5]]]]", "RNN", 3, {in, w, r}, 3,
        {names, alpha, attr_text("direction", "bidirectional")});
  tg_close(c);
}

/* DeformConv without offsets is Conv; moved by whole pixels it is Conv of the picture moved so; half a pixel
 * is the mean of two; a mask scales. */
static void test_deform(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_rand(c, TG_SHAPE(2, 4, 7, 9));
  TgTensor *w = tg_rand(c, TG_SHAPE(6, 2, 3, 2)), *bias = tg_rand(c, TG_SHAPE(6));
  TgTensor *all[] = {x, w, bias};
  tg_realize_many(all, 3);
  Msg group = attr_int("group", 2), strides = attr_two("strides", 2, 1);
  TgTensor *none = tg_zeros(c, TG_SHAPE(2, 12, 3, 8)); /* 6 taps, out 3 x 8 */
  Node deform = {"DeformConv", 4, {x, w, none, bias}, 2, {group, strides}, .opset = 22};
  Node conv = {"Conv", 3, {x, w, bias}, 2, {group, strides}, .opset = 17};
  equal_tensors(c, run_node(c, &deform), run_node(c, &conv), 1e-5);
  /* by (1, -2): what stands outside is 0 */
  TgTensor *move[2] = {tg_full(c, TG_SHAPE(2, 6, 1, 3, 8), 1), tg_full(c, TG_SHAPE(2, 6, 1, 3, 8), -2)};
  deform.in[2] = tg_reshape(tg_cat(move, 2, 2), TG_SHAPE(2, 12, 3, 8));
  conv.in[0] = tg_shrink(tg_pad(x, (int64_t[]){0, 0, 0, 2}, (int64_t[]){0, 0, 1, 0}), (int64_t[]){0, 0, 1, 0},
                         (int64_t[]){2, 4, 8, 9});
  equal_tensors(c, run_node(c, &deform), run_node(c, &conv), 1e-5);
  /* by half a pixel along y: the mean of two rows, the last of which is 0 */
  move[0] = tg_full(c, TG_SHAPE(2, 6, 1, 3, 8), 0.5), move[1] = tg_zeros_like(move[1]);
  deform.in[2] = tg_reshape(tg_cat(move, 2, 2), TG_SHAPE(2, 12, 3, 8));
  TgTensor *below = tg_shrink(tg_pad(x, (int64_t[]){0, 0, 0, 0}, (int64_t[]){0, 0, 1, 0}),
                              (int64_t[]){0, 0, 1, 0}, (int64_t[]){2, 4, 8, 9});
  conv.in[0] = tg_mul_scalar(tg_add(x, below), 0.5);
  equal_tensors(c, run_node(c, &deform), run_node(c, &conv), 1e-5);
  /* a mask for each tap: as if the weight were scaled */
  TgTensor *scale = tg_from_text(c, "[1.0, 2.0, 0.0, 0.5, -1.0, 3.0]");
  Node masked = {"DeformConv",
                 5,
                 {x, w, none, bias,
                  tg_contiguous(tg_expand(tg_reshape(scale, TG_SHAPE(1, 6, 1, 1)), TG_SHAPE(2, 6, 3, 8)))},
                 2,
                 {group, strides},
                 .opset = 22};
  conv.in[0] = x, conv.in[1] = tg_mul(w, tg_reshape(scale, TG_SHAPE(1, 1, 3, 2)));
  equal_tensors(c, run_node(c, &masked), run_node(c, &conv), 1e-5);
  deform.in[2] = tg_zeros(c, TG_SHAPE(2, 11, 3, 8));
  SAYS("DeformConv): offset or mask does not fit", "DeformConv", 3, {x, w, deform.in[2]}, 2, {group, strides},
       .opset = 22);
  tg_close(c);
}

/* Over a picture that is linear in its places, the mean of a bin's places is the value at its middle, however
 * many there are; a region outside has zeros. */
static void test_regions(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");

  enum { HIGH = 20, WIDE = 24, Y = 3, X = 5 };

  double v[2 * HIGH * WIDE], want[3 * Y * X];
  static const double rois[3][4] = {{2, 3, 12, 9}, {1, 1, 20, 17}, {-90, -90, -50, -50}};
  for (int i = 0; i < 2 * HIGH * WIDE; i++)
    v[i] = (i < HIGH * WIDE ? 1 : -1) * (3.0 * (i / WIDE % HIGH) + 2.0 * (i % WIDE));
  for (int r = 0; r < 3; r++)
    for (int k = 0; k < Y * X; k++) {
      const double *b = rois[r];
      double y = b[1] - 0.5 + (k / X + 0.5) * (b[3] - b[1]) / Y,
             x = b[0] - 0.5 + (k % X + 0.5) * (b[2] - b[0]) / X;
      want[r * Y * X + k] = r == 2 ? 0 : (r ? -1 : 1) * (3 * y + 2 * x);
    }
  TgTensor *in[3] = {tg_from_f64(c, v, TG_F32, TG_SHAPE(2, 1, HIGH, WIDE)),
                     tg_from_f64(c, rois[0], TG_F32, TG_SHAPE(3, 4)),
                     tg_from_text(c, "[0, 1, 1]", .dtype = TG_I64)};
  Node n = {
      "RoiAlign", 3, {in[0], in[1], in[2]}, 2, {attr_int("output_height", Y), attr_int("output_width", X)},
      .opset = 17};
  equal_tensors(c, run_node(c, &n), tg_from_f64(c, want, TG_F32, TG_SHAPE(3, 1, Y, X)), 1e-5);
  Node avg = n; /* the mode that is meant where none is given */
  avg.nattrs = 3, avg.attr[2] = attr_text("mode", "avg");
  equal_tensors(c, run_node(c, &avg), run_node(c, &n), 0);
  SAYS("RoiAlign): mode mean", "RoiAlign", 3, {in[0], in[1], in[2]}, 1, {attr_text("mode", "mean")});
  SAYS("RoiAlign): regions that do not fit", "RoiAlign", 3, {in[0], tg_slice(in[1], 1, 0, 3), in[2]}, 1,
       {attr_int("output_width", 2)});
  tg_close(c);
}

static void test_strict(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[[1.0, 2.0], [3.0, 4.0]]");
  TgTensor *i = tg_long(x);
  TgTensor *u = tg_from_text(c, "[[1, 2], [3, 4]]", .dtype = TG_U8);
  TgTensor *one = tg_from_text(c, "[1.0, 2.0]");
  /* attributes: each is read, and is of the kind that it should be */
  SAYS("Relu): attribute wings", "Relu", 1, {x}, 1, {attr_int("wings", 2)});
  SAYS("SpaceToDepth): attribute mode", "SpaceToDepth", 1, {tg_ones(c, TG_SHAPE(1, 1, 2, 2))}, 2,
       {attr_int("blocksize", 2), attr_text("mode", "CRD")});
  SAYS("Flatten): attribute axis is a string, not an int", "Flatten", 1, {x}, 1, {attr_text("axis", "2")});
  SAYS("LeakyRelu): attribute alpha is an int, not a float", "LeakyRelu", 1, {x}, 1, {attr_int("alpha", 1)});
  SAYS("ReduceSum): attribute axes", "ReduceSum", 1, {x}, 1, {attribute("axes", 7)});
  SAYS("BatchNormalization): spatial 0", "BatchNormalization", 5, {x, one, one, one, one}, 1,
       {attr_int("spatial", 0)}, .opset = 8);
  /* types */
  SAYS("Sub): input 1 is i64, not f32", "Sub", 2, {x, i});
  SAYS("Exp): input 0 is i64", "Exp", 1, {i});
  SAYS("Not): input 0 is f32", "Not", 1, {x});
  SAYS("And): input 0 is i64", "And", 2, {i, i});
  SAYS("BitwiseAnd): input 0 is f32", "BitwiseAnd", 2, {x, x});
  SAYS("Where): input 0 is i64", "Where", 3, {i, x, x});
  SAYS("Concat): input 1 is i64, not f32", "Concat", 2, {x, i}, 1, {attr_int("axis", 0)});
  SAYS("Gather): input 1 is f32", "Gather", 2, {x, one});
  SAYS("MatMul): input 1 is u8, not f32", "MatMul", 2, {x, u});
  /* ranges and indices */
  TgTensor *zero = tg_full(c, TG_SCALAR, 0), *step = tg_full(c, TG_SCALAR, 1);
  SAYS("Range): from 0 to 4.61169e+18", "Range", 3, {zero, tg_full(c, TG_SCALAR, 0x1p62), step}, .opset = 11);
  SAYS("Range): from 0 to inf", "Range", 3, {zero, tg_full(c, TG_SCALAR, INFINITY), step}, .opset = 11);
  TgTensor *far = tg_from_text(c, "[[0, 5]]", .dtype = TG_I64);
  TgTensor *near = tg_from_text(c, "[[1, -2]]", .dtype = TG_I64);
  TgTensor *v = tg_from_text(c, "[9.0]");
  SAYS("ScatterND): index 5 is outside an axis of 2", "ScatterND", 3, {x, far, v}, .known = true);
  SAYS("GatherND): index 5 is outside an axis of 2", "GatherND", 2, {x, far}, .known = true);
  SAYS("Gather): index 5 is outside an axis of 2", "Gather", 2, {x, far}, .known = true);
  GIVES("[[1.0, 2.0], [3.0, 4.0]]", "ScatterND", 3, {x, far, v}); /* not known: nothing is written */
  GIVES("[[1.0, 2.0], [9.0, 4.0]]", "ScatterND", 3, {x, near, v});
  /* zero points of filters; alpha */
  TgTensor *image = tg_from_text(c, "[[[[1, 2], [3, 4]]]]", .dtype = TG_U8);
  TgTensor *filters = tg_from_text(c, "[[[[5]]], [[[7]]]]", .dtype = TG_U8);
  TgTensor *z = tg_from_text(c, "1", .dtype = TG_U8);
  GIVES("[[[[0, 4], [8, 12]], [[0, 2], [4, 6]]]]", "ConvInteger", 4,
        {image, filters, z, tg_from_text(c, "[1, 5]", .dtype = TG_U8)});
  Msg alpha = attribute("alpha", 1);
  float two_f = 1;
  uint8_t *b = alpha.b + alpha.n; /* field 2, four bytes */
  b[0] = 2 << 3 | 5, memcpy(b + 1, &two_f, 4), alpha.n += 5;
  Node quick = {.op = "QuickGelu", .nin = 1, .in = {one}, .nattrs = 1, .attr = {alpha}, .microsoft = true};
  TgTensor *y = run_node(c, &quick);
  double got[2];
  ok(c);
  assert_int_equal(tg_read_f64(y, got, 2), TG_OK);
  for (int k = 0; k < 2; k++)
    assert_true(fabs(got[k] - (k + 1) / (1 + exp(-(k + 1)))) < 1e-6);
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_close(c);
}

/* Of any number of inputs none is left out. */
static void test_left_out(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[1.0, 2.0]");
  SAYS("Concat): input 1 is left out", "Concat", 3, {x, NULL, x}, 1, {attr_int("axis", 0)});
  SAYS("Sum): input 1 is left out", "Sum", 3, {x, NULL, x});
  SAYS("Mean): input 2 is left out", "Mean", 4, {x, x, NULL, x});
  SAYS("Max): input 0 is left out", "Max", 2, {NULL, x});
  tg_close(c);
}

/* One scale for each block of an axis, of tensors of one axis too. */
static void test_blocks(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[1.0, 2.0, 3.0]"), *q = tg_from_text(c, "[1, 2, 3]", .dtype = TG_I8);
  TgTensor *scale = tg_from_text(c, "[0.5, 1.0]"), *zero = tg_from_text(c, "[1, 2]", .dtype = TG_I8);
  TgTensor *x2 = tg_from_text(c, "[[1.0, 2.0, 3.0]]"), *three = tg_from_text(c, "[0.5, 1.0, 2.0]");
  const Msg axis = attr_int("axis", 0), last = attr_int("axis", -1), two = attr_int("block_size", 2);
  GIVES("[0.5, 1.0, 3.0]", "DequantizeLinear", 2, {q, scale}, 2, {axis, two}, .opset = 21);
  GIVES("[3, 5, 5]", "QuantizeLinear", 3, {x, scale, zero}, 2, {axis, two}, .opset = 21);
  GIVES("[[2, 4, 3]]", "QuantizeLinear", 2, {x2, tg_unsqueeze(scale, 0)}, 2, {last, two}, .opset = 21);
  GIVES("[[2, 2, 2]]", "QuantizeLinear", 2, {x2, three}, 1, {last}, .opset = 21);
  SAYS("QuantizeLinear): a scale of 1 axes for 2, block_size 2", "QuantizeLinear", 2, {x2, scale}, 2,
       {last, two}, .opset = 21);
  SAYS("DequantizeLinear): a scale of size 3 in axis 0, not 2", "DequantizeLinear", 2, {q, three}, 2,
       {axis, two}, .opset = 21);
  SAYS("QuantizeLinear): block_size -1", "QuantizeLinear", 2, {x, scale}, 1, {attr_int("block_size", -1)},
       .opset = 21);
  tg_close(c);
}

static void test_hardmax_of_nothing(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  for (int opset = 11; opset <= 13; opset += 2) {
    GIVES("[[], []]", "Hardmax", 1, {tg_zeros(c, TG_SHAPE(2, 0))}, .opset = opset);
    GIVES("[]", "Hardmax", 1, {tg_zeros(c, TG_SHAPE(0, 2))}, .opset = opset);
  }
  tg_close(c);
}

static Msg attr_list(const char *name, int n, const int64_t *v) {
  Msg a = attribute(name, 7);
  for (int i = 0; i < n; i++)
    put_int(&a, 8, v[i]);
  return a;
}

/* With ceil_mode a window that begins inside counts, and what it lacks as zeros. */
static void test_lp_pools(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[[[3.0, 4.0, 6.0, 8.0, -7.0]]]");
  const Msg two = attr_list("kernel_shape", 1, (int64_t[]){2}),
            step = attr_list("strides", 1, (int64_t[]){2});
  const Msg up = attr_int("ceil_mode", 1);
  GIVES("[[[5.0, 10.0]]]", "LpPool", 1, {x}, 2, {two, step}, .opset = 18);
  GIVES("[[[5.0, 10.0, 7.0]]]", "LpPool", 1, {x}, 3, {two, step, up}, .opset = 18);
  GIVES("[[[5.0, 10.0]]]", "LpPool", 1, {x}, 2, {two, step}, .opset = 10);
  GIVES("[[[7.0, 14.0]]]", "LpPool", 1, {x}, 3, {two, step, attr_int("p", 1)}, .opset = 7);
  tg_close(c);
}

/* onnxruntime divides by the whole window, also where it lies past the end. */
static void test_quantised_pool(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[[[0, 10, 20, 30, 40]]]", .dtype = TG_U8);
  TgTensor *zero = tg_from_text(c, "0", .dtype = TG_U8), *one = tg_ones(c, TG_SCALAR);
  Node n = {.op = "QLinearAveragePool", .nin = 5, .in = {x, one, zero, one, zero}, .microsoft = true};
  n.attr[n.nattrs++] = attr_list("kernel_shape", 1, (int64_t[]){2});
  n.attr[n.nattrs++] = attr_list("strides", 1, (int64_t[]){2});
  n.attr[n.nattrs++] = attr_int("ceil_mode", 1);
  assert_string_equal(tg_to_text(run_node(c, &n)), "[[[5, 25, 40]]]");
  n.attr[n.nattrs++] = attr_int("count_include_pad", 1);
  assert_string_equal(tg_to_text(run_node(c, &n)), "[[[5, 25, 20]]]");
  tg_close(c);
}

/* More than once round an axis. */
static void test_wrapped(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[0.0, 1.0, 2.0]"), *two = tg_from_text(c, "[[0.0, 1.0], [2.0, 3.0]]");
  const Msg wrap = attr_text("mode", "wrap");
  GIVES("[1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0]", "Pad", 2,
        {x, tg_from_text(c, "[5, 4]", .dtype = TG_I64)}, 1, {wrap}, .opset = 19);
  GIVES("[1.0, 2.0, 1.0, 2.0, 1.0]", "Pad", 2, {x, tg_from_text(c, "[-1, 3]", .dtype = TG_I64)}, 1, {wrap},
        .opset = 19);
  GIVES("[[3.0, 2.0, 3.0, 2.0], [1.0, 0.0, 1.0, 0.0], [3.0, 2.0, 3.0, 2.0]]", "Pad", 2,
        {two, tg_from_text(c, "[1, 1, 0, 1]", .dtype = TG_I64)}, 1, {wrap}, .opset = 19);
  SAYS("Pad): axis 0 has no elements to wrap", "Pad", 2,
       {tg_zeros(c, TG_SHAPE(0)), tg_from_text(c, "[1, 0]", .dtype = TG_I64)}, 1, {wrap}, .opset = 19);
  tg_close(c);
}

/* What is wrong is said, and not what else was looked at. */
static void test_said(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_ones(c, TG_SHAPE(1, 4, 2)), *flat = tg_ones(c, TG_SHAPE(8));
  TgTensor *table = tg_zeros(c, TG_SHAPE(2, 4), .dtype = TG_I64);
  TgTensor *large = tg_from_text(c, "[1073741824]", .dtype = TG_I64);
  TgTensor *two = tg_from_text(c, "[2]", .dtype = TG_I64);
  const Msg block = attr_int("blocksize", 2), axis = attr_int("axis", 0), again = attr_int("axis", 1);
  SAYS("DepthToSpace): an input of 3 axes, not 4", "DepthToSpace", 1, {x}, 1, {block});
  SAYS("SpaceToDepth): an input of 3 axes, not 4", "SpaceToDepth", 1, {x}, 1, {block});
  SAYS("Col2Im): axis 0 of the picture: size 1073741824, block 2", "Col2Im", 3, {x, large, two}, .opset = 18);
  SAYS("HannWindow): a window of 1073741824 numbers", "HannWindow", 1, {large});
  SAYS("HannWindow): data type 7 of the window", "HannWindow", 1, {two}, 1, {attr_int("output_datatype", 7)});
  SAYS("Flatten): attribute axis is given twice", "Flatten", 1, {x}, 2, {axis, again});
  SAYS("Reshape): input 1 has 2 axes, where a list is needed", "Reshape", 2, {flat, table});
  Msg g = {0};
  refuse_graph(c, &g, -1, "opset -1 of the domain ai.onnx");
  tg_close(c);
}

/* Attention over no sequences at all: an empty result, whatever form the mask has. */
static void test_no_sequences(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_zeros(c, TG_SHAPE(0, 3, 4)), *w = tg_zeros(c, TG_SHAPE(4, 12)),
           *b = tg_zeros(c, TG_SHAPE(12));
  TgTensor *masks[] = {
      NULL, tg_zeros(c, TG_SHAPE(0), .dtype = TG_I32), tg_zeros(c, TG_SHAPE(0, 3), .dtype = TG_I32),
      tg_zeros(c, TG_SHAPE(0, 3, 3), .dtype = TG_I32), tg_zeros(c, TG_SHAPE(0, 1, 3, 3), .dtype = TG_I32)};
  for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
    Node n = {.op = "Attention",
              .nin = masks[i] ? 4 : 3,
              .in = {x, w, b, masks[i]},
              .nattrs = 1,
              .attr = {attr_int("num_heads", 2)},
              .microsoft = true};
    TgTensor *y = run_node(c, &n);
    ok(c);
    assert_true(tg_ndim(y) == 3 && tg_dim(y, 0) == 0 && tg_dim(y, 1) == 3 && tg_dim(y, 2) == 4);
  }
  tg_close(c);
}

static bool run_any(TgContext *c, const uint8_t *p, size_t n) {
  uint8_t *exact = malloc(n ? n : 1); /* so that a byte too far is seen */
  memcpy(exact, p, n);
  tg_scope_begin(c);
  TgTensor *file = tg_borrow(c, exact, TG_U8, TG_SHAPE((int64_t)n), NULL, NULL);
  TgTensor *x = tg_ones(c, TG_SHAPE(1, 2));
  TgTensor *y;
  TgOnnx *m = tg_onnx_load(file);
  TgOnnxValue v;
  bool good = m && tg_onnx_input(m, 0, &v) && !tg_onnx_run(m, &v.name, &x, 1, &y, 1) && !tg_realize(y);
  tg_onnx_free(m);
  tg_scope_end(c), tg_clear_error(c), tg_collect(c);
  free(exact);
  return good;
}

static void test_damaged(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  Msg m = small();
  int good = 0;
  for (size_t n = 1; n < m.n; n++)
    good += run_any(c, m.b, n);
  assert_int_equal(good, 0);
  static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
  for (size_t i = 0; i < m.n; i++)
    for (size_t k = 0; k < sizeof values; k++) {
      Msg d = m;
      d.b[i] = values[k];
      good += run_any(c, d.b, d.n);
    }
  assert_true(good > 20 && good < 5 * (int)m.n); /* a changed weight is another model, and a good one */
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_close(c);
}

/* ---- operators of com.microsoft, beside plain C */
static Msg node_of(const char *op, const char *const *in, int nin, const char *const *out, int nout) {
  Msg n = {0};
  for (int i = 0; i < nin; i++)
    put_text(&n, 1, in[i]);
  for (int i = 0; i < nout; i++)
    put_text(&n, 2, out[i]);
  put_text(&n, 3, "the node"), put_text(&n, 4, op), put_text(&n, 7, "com.microsoft");
  return n;
}

/* of any size along each axis */
static void free_input(Msg *g, int field, const char *name, int type, int rank) {
  char text[4][16];
  const char *dims[4];
  for (int i = 0; i < rank; i++) {
    snprintf(text[i], sizeof text[i], "%s_%d", name, i);
    dims[i] = text[i];
  }
  input(g, field, name, type, rank, dims);
}

static double wave(int i) { return sin(1.7 * i) + 0.1 * (i % 5); }

static TgTensor *waves(TgContext *c, int from, int nd, const int64_t *dims) {
  double v[512];
  int64_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= dims[i];
  for (int64_t i = 0; i < n; i++)
    v[i] = wave(from + (int)i);
  return tg_from_f64(c, v, TG_F32, nd, dims);
}

static void test_bits(void **s) {
  (void)s;

  enum { K = 40, N = 3, BLOCK = 16, BLOCKS = 3, ROWS = 2 };

  for (int zeros = 0; zeros < 2; zeros++) {
    TgContext *c = open_on("INTERP");
    static const char *const in[] = {"a", "b", "s", "z"}, *const out[] = {"y"};
    Msg g = {0}, n = node_of("MatMulNBits", in, zeros ? 4 : 3, out, 1), a;
    a = attr_int("K", K), put(&n, 5, &a), a = attr_int("N", N), put(&n, 5, &a);
    a = attr_int("bits", 4), put(&n, 5, &a), a = attr_int("block_size", BLOCK), put(&n, 5, &a);
    put(&g, 1, &n);
    static const int types[] = {1, 2, 1, 2}, ranks[] = {2, 3, 1, 1};
    for (int i = 0; i < 3 + zeros; i++)
      free_input(&g, 11, in[i], types[i], ranks[i]);
    free_input(&g, 12, "y", 1, 2);
    Msg m = model(&g, 17);
    TgOnnx *o = load(c, m.b, m.n);
    ok(c);
    uint8_t b[N][BLOCKS][BLOCK / 2], z[N][(BLOCKS + 1) / 2];
    for (size_t i = 0; i < sizeof b; i++)
      ((uint8_t *)b)[i] = (uint8_t)(i * 37 + 5);
    for (size_t i = 0; i < sizeof z; i++)
      ((uint8_t *)z)[i] = (uint8_t)(i * 51 + 9);
    TgTensor *x[] = {waves(c, 0, TG_SHAPE(ROWS, K)), tg_from(c, b, TG_U8, TG_SHAPE(N, BLOCKS, BLOCK / 2)),
                     waves(c, 7, TG_SHAPE(N * BLOCKS)),
                     tg_from(c, z, TG_U8, TG_SHAPE(N * ((BLOCKS + 1) / 2)))},
             *y = NULL;
    if (tg_onnx_run(o, in, x, 3 + zeros, &y, 1)) fail_msg("%s", tg_errmsg(c));
    double got[ROWS * N];
    assert_int_equal(tg_read_f64(y, got, ROWS * N), TG_OK);
    for (int r = 0; r < ROWS; r++)
      for (int j = 0; j < N; j++) {
        double sum = 0;
        for (int k = 0; k < K; k++) {
          int block = k / BLOCK, at = k % BLOCK, w = b[j][block][at / 2] >> at % 2 * 4 & 15;
          int less = zeros ? z[j][block / 2] >> block % 2 * 4 & 15 : 8;
          sum += (float)wave(r * K + k) * (w - less) * (float)wave(7 + j * BLOCKS + block);
        }
        assert_true(fabs(got[r * N + j] - sum) <= 1e-4 * (1 + fabs(sum)));
      }
    tg_onnx_free(o), tg_close(c);
  }
}

/* 4 heads of 2, of which two share keys; 3 keys of the past, 2 new ones; positions turned, a window of 4. */
static void test_group_query(void **s) {
  (void)s;

  enum { H = 4, KV = 2, D = 4, PAST = 3, NEW = 2, ALL = PAST + NEW, HALF = D / 2 };

  static const char *const in[] = {"q", "k", "v", "pk", "pv", "lens", "total", "cos", "sin"};
  static const char *const out[] = {"y", "nk", "nv"};
  static const int types[] = {1, 1, 1, 1, 1, 6, 6, 1, 1}, ranks[] = {3, 3, 3, 4, 4, 1, 1, 2, 2};
  TgContext *c = open_on("INTERP");
  Msg g = {0}, n = node_of("GroupQueryAttention", in, 9, out, 3), a;
  a = attr_int("num_heads", H), put(&n, 5, &a), a = attr_int("kv_num_heads", KV), put(&n, 5, &a);
  a = attr_int("do_rotary", 1), put(&n, 5, &a), a = attr_int("local_window_size", 4), put(&n, 5, &a);
  put(&g, 1, &n);
  for (int i = 0; i < 9; i++)
    free_input(&g, 11, in[i], types[i], ranks[i]);
  for (int i = 0; i < 3; i++)
    free_input(&g, 12, out[i], 1, i ? 4 : 3);
  Msg m = model(&g, 17);
  TgOnnx *o = load(c, m.b, m.n);
  ok(c);
  int32_t last = ALL - 1, total = ALL;
  TgTensor *x[] = {waves(c, 0, TG_SHAPE(1, NEW, H * D)),    waves(c, 50, TG_SHAPE(1, NEW, KV * D)),
                   waves(c, 90, TG_SHAPE(1, NEW, KV * D)),  waves(c, 130, TG_SHAPE(1, KV, PAST, D)),
                   waves(c, 170, TG_SHAPE(1, KV, PAST, D)), tg_from(c, &last, TG_I32, TG_SHAPE(1)),
                   tg_from(c, &total, TG_I32, TG_SHAPE(1)), waves(c, 210, TG_SHAPE(ALL, HALF)),
                   waves(c, 250, TG_SHAPE(ALL, HALF))};
  TgTensor *y[3];
  if (tg_onnx_run(o, in, x, 9, y, 3)) fail_msg("%s", tg_errmsg(c));
  double got[NEW * H * D], keys[KV][ALL][D], values[KV][ALL][D];
  assert_int_equal(tg_read_f64(y[0], got, NEW * H * D), TG_OK);
  for (int h = 0; h < KV; h++)
    for (int t = 0; t < ALL; t++)
      for (int d = 0; d < D; d++) {
        int fresh = (t - PAST) * KV * D + h * D, other = d < HALF ? d + HALF : d - HALF;
        double angle_c = wave(210 + t * HALF + d % HALF), angle_s = wave(250 + t * HALF + d % HALF);
        keys[h][t][d] = t < PAST ? wave(130 + (h * PAST + t) * D + d)
                                 : wave(50 + fresh + d) * angle_c +
                                       (d < HALF ? -1 : 1) * wave(50 + fresh + other) * angle_s;
        values[h][t][d] = t < PAST ? wave(170 + (h * PAST + t) * D + d) : wave(90 + fresh + d);
      }
  for (int i = 0; i < NEW; i++)
    for (int h = 0; h < H; h++) {
      double e[ALL], sum = 0, q[D];
      for (int d = 0; d < D; d++) {
        int at = i * H * D + h * D, t = PAST + i, other = d < HALF ? d + HALF : d - HALF;
        q[d] = wave(at + d) * wave(210 + t * HALF + d % HALF) +
               (d < HALF ? -1 : 1) * wave(at + other) * wave(250 + t * HALF + d % HALF);
      }
      for (int t = 0; t < ALL; t++) {
        double score = 0;
        for (int d = 0; d < D; d++)
          score += q[d] * keys[h * KV / H][t][d] / sqrt(D);
        e[t] = t <= PAST + i && t > PAST + i - 4 ? exp(score) : 0, sum += e[t];
      }
      for (int d = 0; d < D; d++) {
        double want = 0;
        for (int t = 0; t < ALL; t++)
          want += e[t] / sum * values[h * KV / H][t][d];
        if (!(fabs(got[(i * H + h) * D + d] - want) < 1e-4))
          fail_msg("query %d, head %d, [%d]: %g, not %g", i, h, d, got[(i * H + h) * D + d], want);
      }
    }
  double k[KV * ALL * D];
  assert_int_equal(tg_read_f64(y[1], k, KV * ALL * D), TG_OK);
  for (int i = 0; i < KV * ALL * D; i++)
    assert_true(fabs(k[i] - ((double *)keys)[i]) < 1e-5);
  tg_onnx_free(o), tg_close(c);
}

/* A loop whose body takes or gives another number of values than the loop does, and counts that are none. */
static void bare(Msg *g, int field, const char *name) { /* of any type */
  Msg v = {0};
  put_text(&v, 1, name), put(g, field, &v);
}

static Msg loop(const char *op, const char *const *in, int nin, int body_in, int body_out) {
  Msg body = {0}, n, g = {0}, graph = {0};
  char name[16];
  for (int i = 0; i < body_out; i++) {
    snprintf(name, sizeof name, "o%d", i);
    n = node("Identity", i || !strcmp(op, "Scan") ? "s" : "go", NULL, name), put(&body, 1, &n);
  }
  static const char *const loop_names[] = {"i", "go", "s", "more"}, *const scan_names[] = {"s", "t", "u",
                                                                                           "v"};
  for (int i = 0; i < body_in; i++)
    bare(&body, 11, (!strcmp(op, "Scan") ? scan_names : loop_names)[i]);
  for (int i = 0; i < body_out; i++)
    snprintf(name, sizeof name, "o%d", i), bare(&body, 12, name);
  n = (Msg){0};
  for (int i = 0; i < nin; i++)
    put_text(&n, 1, in[i]);
  put_text(&n, 2, "y"), put_text(&n, 3, "the node"), put_text(&n, 4, op);
  put_text(&graph, 1, "body"), put(&graph, 6, &body), put_int(&graph, 20, 5), put(&n, 5, &graph);
  if (!strcmp(op, "Scan")) {
    Msg a = attr_int("num_scan_inputs", 1);
    put(&n, 5, &a);
  }
  put(&g, 1, &n), bare(&g, 11, "x"), bare(&g, 12, "y");
  return model(&g, 17);
}

static void test_misfits(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_ones(c, TG_SHAPE(2)), *y;

  static const struct {
    const char *op, *in[3];
    int nin, body_in, body_out;
    const char *text;
  } bad[] = {
      {"Loop", {"", "", "x"}, 3, 4, 2, "the body has 2 outputs, which do not fit"},
      {"Loop", {"", "", "x"}, 3, 3, 3, "the body has 3 outputs, which do not fit"},
      {"Loop", {"x", "", "x"}, 3, 3, 2, "the node (Loop): "},
      {"Loop", {"", "x", "x"}, 3, 3, 2, "the node (Loop): "},
      {"Scan", {"x"}, 1, 2, 1, "the body has 2 inputs, which do not fit"},
      {"Scan", {"x"}, 1, 1, 2, "the body has 1 inputs, which do not fit"},
  };

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    Msg m = loop(bad[i].op, bad[i].in, bad[i].nin, bad[i].body_in, bad[i].body_out);
    TgOnnx *o = load(c, m.b, m.n);
    ok(c);
    refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), bad[i].text);
    tg_onnx_free(o);
  }
  Msg m = loop("Scan", (const char *[]){"x"}, 1, 1, 1);
  TgOnnx *o = load(c, m.b, m.n);
  ok(c);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_OK);
  assert_string_equal(tg_to_text(y), "[1.0, 1.0]");
  tg_onnx_free(o), tg_close(c);
}

/* What a Scan gathers backwards: of even lengths and odd ones. */
static void test_scan_backwards(void **s) {
  (void)s;
  static const char *const texts[] = {"[9.0]", "[8.0, 9.0]", "[7.0, 8.0, 9.0]", "[6.0, 7.0, 8.0, 9.0]"},
                           *const turned[] = {"[9.0]", "[9.0, 8.0]", "[9.0, 8.0, 7.0]",
                                              "[9.0, 8.0, 7.0, 6.0]"};
  TgContext *c = open_on("INTERP");
  Msg body = {0}, n = node("Identity", "s", NULL, "o0"), g = {0}, graph = {0}, backwards;
  put(&body, 1, &n), bare(&body, 11, "s"), bare(&body, 12, "o0");
  n = (Msg){0};
  put_text(&n, 1, "x"), put_text(&n, 2, "y"), put_text(&n, 3, "the node"), put_text(&n, 4, "Scan");
  put_text(&graph, 1, "body"), put(&graph, 6, &body), put_int(&graph, 20, 5), put(&n, 5, &graph);
  Msg one = attr_int("num_scan_inputs", 1);
  backwards = attribute("scan_output_directions", 7), put_int(&backwards, 8, 1);
  put(&n, 5, &one), put(&n, 5, &backwards);
  put(&g, 1, &n), bare(&g, 11, "x"), bare(&g, 12, "y");
  Msg m = model(&g, 17);
  TgOnnx *o = load(c, m.b, m.n);
  ok(c);
  for (int i = 0; i < 4; i++) {
    TgTensor *x = tg_from_text(c, texts[i]), *y;
    assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &y, 1), TG_OK);
    assert_string_equal(tg_to_text(y), turned[i]);
  }
  tg_onnx_free(o), tg_close(c);
}

/* An operator of each kind of inputs, given one that it does not take. */
/* Inputs of which the wrong-th has a dtype that the operator does not take there, or not beside the others.
 */
typedef struct Kinds {
  const char *op;
  int nin, wrong;
  TgTensor *in[5];
  int opset;
} Kinds;

static void kinds_refused(TgContext *c, const Kinds *bad, size_t n, bool microsoft) {
  for (size_t k = 0; k < n; k++) {
    Node node = {bad[k].op,
                 bad[k].nin,
                 {bad[k].in[0], bad[k].in[1], bad[k].in[2], bad[k].in[3], bad[k].in[4]},
                 .opset = bad[k].opset,
                 .microsoft = microsoft};
    char text[100];
    snprintf(text, sizeof text, "node the node (%s): input %d is ", bad[k].op, bad[k].wrong);
    node_says(c, &node, text);
  }
}

static void test_kinds(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *f = tg_ones(c, TG_SHAPE(2, 2)), *i = tg_cast(f, TG_I64), *b = tg_cast(f, TG_BOOL),
           *h = tg_cast(f, TG_F16);
  const Kinds bad[] = {{"Gelu", 1, 0, {i}, 20},
                       {"Softmax", 1, 0, {b}, 0},
                       {"Abs", 1, 0, {b}, 0},
                       {"Not", 1, 0, {f}, 0},
                       {"Xor", 2, 1, {b, i}, 0},
                       {"BitwiseNot", 1, 0, {f}, 18},
                       {"BitwiseAnd", 2, 0, {b, b}, 18},
                       {"BitwiseAnd", 2, 1, {i, f}, 18},
                       {"Add", 2, 0, {b, b}, 0},
                       {"Add", 2, 1, {f, h}, 0},
                       {"Sum", 2, 1, {f, i}, 0},
                       {"Sum", 2, 1, {f, h}, 0},
                       {"Concat", 2, 1, {f, i}, 0},
                       {"Where", 3, 0, {f, f, f}, 0},
                       {"Where", 3, 2, {b, f, i}, 0},
                       {"Gather", 2, 1, {f, f}, 0},
                       {"ScatterND", 3, 1, {f, f, f}, 0},
                       {"ScatterND", 3, 2, {f, i, h}, 0},
                       {"Compress", 2, 1, {f, i}, 0},
                       {"BatchNormalization", 5, 0, {i, f, f, f, f}, 0},
                       {"BatchNormalization", 5, 4, {f, f, f, f, i}, 0},
                       {"RoiAlign", 3, 1, {f, i, i}, 0},
                       {"RoiAlign", 3, 2, {f, f, f}, 0},
                       {"NegativeLogLikelihoodLoss", 2, 1, {f, f}, 0},
                       {"Dropout", 3, 1, {f, i, b}, 0},
                       {"Dropout", 3, 2, {f, f, f}, 0},
                       {"MatMulInteger", 2, 1, {i, f}, 0}};
  const Kinds bad_microsoft[] = {{"FastGelu", 1, 0, {i}, 0},
                                 {"Attention", 3, 1, {f, i, f}, 0},
                                 {"MultiHeadAttention", 4, 3, {f, f, f, i}, 0},
                                 {"RotaryEmbedding", 4, 2, {f, i, i, f}, 0},
                                 {"EmbedLayerNormalization", 5, 0, {f, i, f, f, f}, 0},
                                 {"EmbedLayerNormalization", 5, 3, {i, i, f, i, f}, 0},
                                 {"QLinearSigmoid", 5, 1, {i, i, i, f, i}, 0},
                                 {"DynamicQuantizeMatMul", 4, 2, {f, i, i, i}, 0}};
  kinds_refused(c, bad, sizeof bad / sizeof *bad, false);
  kinds_refused(c, bad_microsoft, sizeof bad_microsoft / sizeof *bad_microsoft, true);
  tg_close(c);
}

/* Peepholes: what a gate sees of the cell. With weights of 0 it sees nothing else. */
static void test_peepholes(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *none = tg_zeros(c, TG_SHAPE(1, 4, 1)), *cell = tg_ones(c, TG_SHAPE(1, 1, 1)),
           *holes = tg_from_text(c, "[[0.5, -1.0, 2.0]]"); /* input, output, forget */
  Node lstm = {"LSTM",
               8,
               {tg_ones(c, TG_SHAPE(1, 1, 1)), none, none, NULL, NULL, NULL, cell, holes},
               1,
               {attr_int("hidden_size", 1)},
               .opset = 14};
  double forget = 1 / (1 + exp(-2)), want = 1 / (1 + exp(forget)) * tanh(forget), got;
  TgTensor *y = run_node(c, &lstm);
  ok(c);
  assert_int_equal(tg_read_f64(y, &got, 1), TG_OK);
  if (!(fabs(got - want) < 1e-6)) fail_msg("%g, not %g", got, want);
  lstm.nin = 7; /* without them */
  y = run_node(c, &lstm);
  ok(c);
  assert_int_equal(tg_read_f64(y, &got, 1), TG_OK);
  assert_true(fabs(got - 0.5 * tanh(0.5)) < 1e-6);
  tg_close(c);
}

/* Numbers at the end of what is allowed, and one past it. */
static void test_bounds(void **s) {
  (void)s;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_from_text(c, "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]");
  GIVES("[2, 3]", "Shape", 1, {x});
  GIVES("[]", "Shape", 1, {x}, 1, {attr_int("end", 0)});
  GIVES("[2]", "Shape", 1, {x}, 1, {attr_int("end", -1)});
  GIVES("[3]", "Shape", 1, {x}, 1, {attr_int("start", 1)});
  /* what is added around became an input with opset 11 */
  TgTensor *around = tg_from_text(c, "[0, 1, 0, 0]");
  GIVES("[[0.0, 1.0, 2.0, 3.0], [0.0, 4.0, 5.0, 6.0]]", "Pad", 2, {x, tg_cast(around, TG_I64)}, .known = true,
        .opset = 11);
  /* on either side of either axis */
  int64_t far[4] = {0, 0, 0, 0};
  for (int k = 0; k < 8; k++) {
    far[k % 4] = (k < 4 ? 1 : -1) * ((INT64_C(1) << 30) + 1);
    TgTensor *pads = tg_from(c, far, TG_I64, TG_SHAPE(4));
    SAYS("Pad): pads of axis ", "Pad", 2, {x, pads}, .known = true);
    far[k % 4] = 0;
  }
  /* a grid of one place, from edge to edge: its only one is the first edge */
  TgTensor *theta = tg_from_text(c, "[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]");
  GIVES("[[[[-1.0, -1.0], [1.0, -1.0]]]]", "AffineGrid", 2,
        {theta, tg_cast(tg_from_text(c, "[1, 1, 1, 2]"), TG_I64)}, 1, {attr_int("align_corners", 1)},
        .known = true, .opset = 20);
  /* a crop as long as the axis is a crop all the same: half a place after its first element, and past its end
   */
  GIVES("[2.5, 3.5, 0.0, 0.0]", "Resize", 4,
        {tg_from_text(c, "[1.0, 2.0, 3.0, 4.0]"), tg_from_text(c, "[0.5, 1.5]"), NULL,
         tg_cast(tg_from_text(c, "[4]"), TG_I64)},
        2, {attr_text("coordinate_transformation_mode", "tf_crop_and_resize"), attr_text("mode", "linear")});
  /* tables of angles: as wide as half of what is turned, both of them */
  TgTensor *heads = tg_ones(c, TG_SHAPE(1, 1, 2, 4)), *at = tg_cast(tg_from_text(c, "[[0, 1]]"), TG_I64),
           *fits = tg_ones(c, TG_SHAPE(2, 2)), *thin = tg_ones(c, TG_SHAPE(2, 1));
  SAYS("RotaryEmbedding): 4 turned numbers by tables of 2", "RotaryEmbedding", 4, {heads, at, fits, thin},
       .microsoft = true);
  SAYS("RotaryEmbedding): 4 turned numbers by tables of 1", "RotaryEmbedding", 4, {heads, at, thin, thin},
       .microsoft = true);
  /* of as many axes as there may be */
  int64_t sixteen[TG_MAX_RANK] = {2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  Node turned = {"ReverseSequence",
                 2,
                 {tg_reshape(tg_from_text(c, "[1.0, 2.0, 3.0, 4.0]"), TG_MAX_RANK, sixteen),
                  tg_cast(tg_from_text(c, "[2, 1]"), TG_I64)},
                 .opset = 17};
  TgTensor *y = run_node(c, &turned);
  ok(c);
  assert_string_equal(tg_to_text(tg_reshape(y, TG_SHAPE(4))), "[3.0, 2.0, 1.0, 4.0]");
  /* frames */
  TgTensor *signal = tg_from_text(c, "[[1.0, 2.0, 3.0, 4.0]]"), *window = tg_ones(c, TG_SHAPE(4)),
           *long_one = tg_ones(c, TG_SHAPE(5)), *none = tg_cast(tg_from_text(c, "[0]"), TG_I64),
           *one = tg_cast(tg_from_text(c, "[1]"), TG_I64);
  SAYS("STFT): frames of 4, 0 apart", "STFT", 3, {signal, none, window}, .known = true);
  SAYS("STFT): frames of 5, 1 apart", "STFT", 3, {signal, one, long_one}, .known = true);
  /* scales for each place of an axis, or for blocks: not of two axes without a size of blocks */
  TgTensor *q = tg_from_text(c, "[[1, 2], [3, 4]]"), *two = tg_ones(c, TG_SHAPE(2, 2));
  SAYS("DequantizeLinear): a scale of 2 axes", "DequantizeLinear", 2, {tg_cast(q, TG_I8), two}, .opset = 21);
  SAYS("DequantizeLinear): a scale of 3 axes", "DequantizeLinear", 2,
       {tg_cast(q, TG_I8), tg_ones(c, TG_SHAPE(2, 2, 2))}, 1, {attr_int("block_size", 1)}, .opset = 21);
  tg_close(c);
}

/* A name means what its domain says. */
static void test_domains(void **s) {
  (void)s;
  static const char *const in[] = {"x", "w", "b"}, *const out[] = {"y"};

  static const struct {
    const char *op;
    int nin, opset;
  } others[] = {{"RMSNormalization", 2, 23}, {"Relu", 1, 17}};

  TgContext *c = open_on("INTERP");
  char text[100];
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    Msg g = {0}, n = node_of(others[i].op, in, others[i].nin, out, 1);
    for (int k = 0; k < others[i].nin; k++)
      free_input(&g, 11, in[k], 1, 3);
    put(&g, 1, &n), free_input(&g, 12, "y", 1, 3);
    snprintf(text, sizeof text, "op %s of the domain com.microsoft", others[i].op);
    refuse_graph(c, &g, others[i].opset, text);
  }
  static const char *const only[] = {"QuickGelu", "FastGelu", "FusedConv", "MatMulNBits"};
  for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
    Msg g = {0}, n = node(only[i], "x", "x", "y");
    free_input(&g, 11, "x", 1, 3), put(&g, 1, &n), free_input(&g, 12, "y", 1, 3);
    snprintf(text, sizeof text, "op %s of the domain ai.onnx", only[i]);
    refuse_graph(c, &g, 23, text);
  }
  Msg g = {0}, n = node_of("FastGelu", in, 2, out, 1);
  free_input(&g, 11, "x", 1, 2), free_input(&g, 11, "w", 1, 1), put(&g, 1, &n), free_input(&g, 12, "y", 1, 2);
  Msg m = model(&g, 17);
  TgOnnx *o = load(c, m.b, m.n);
  TgTensor *x[] = {tg_from_text(c, "[[0.5, -1.0]]"), tg_from_text(c, "[0.5, 2.0]")}, *y;
  assert_int_equal(tg_onnx_run(o, in, x, 2, &y, 1), TG_OK);
  double got[2];
  assert_int_equal(tg_read_f64(y, got, 2), TG_OK);
  for (int i = 0; i < 2; i++) /* both sums are 1 */
    assert_true(fabs(got[i] - 0.5 * (1 + tanh(sqrt(2 / acos(-1)) * 1.044715))) < 1e-6);
  tg_onnx_free(o), tg_close(c);
}

static void test_ops_by_name(void **s) {
  (void)s;
  const char *a, *of_a, *of_b;
  size_t n = 0;
  for (; (a = tg_onnx_op_name(n, &of_a)); n++)
    for (size_t k = 0; k < n; k++)
      if (!strcmp(a, tg_onnx_op_name(k, &of_b)) && !strcmp(of_a, of_b)) fail_msg("%s is there twice", a);
  assert_true(n > 140);
}

/* The trained models of the shared data: skipped where they are absent. */
static void test_mnist(void **s) {
  (void)s;
  char path[600];
  TgContext *c = open_on(NULL);
  snprintf(path, sizeof path, "%s/onnx-mnist/mnist.onnx", data_folder());
  if (access(path, R_OK)) {
    assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
    tg_close(c);
    print_message("skipped: no onnx-mnist in the shared data\n");
    skip();
  }
  TgOnnx *m = tg_onnx_open(c, path);
  ok(c);
  for (int k = 0; k < 3; k++) {
    static const int digit[] = {2, 0, 9};
    TgTensor *x, *y, *want;
    snprintf(path, sizeof path, "%s/onnx-mnist/test_data_set_%d/input_0.pb", data_folder(), k);
    x = tg_onnx_tensor(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
    memcpy(strstr(path, "input_0"), "output_", 7), strcpy(strstr(path, "output_") + 7, "0.pb");
    want = tg_onnx_tensor(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
    assert_int_equal(tg_onnx_run(m, (const char *[]){"Input3"}, &x, 1, &y, 1), TG_OK);
    assert_int_equal(tg_item_i64(tg_argmax(y)), digit[k]);
    assert_true(tg_item_f64(tg_allclose(y, want, .rtol = 1e-3, .atol = 1e-3)) == 1);
    ok(c);
  }
  assert_int_equal(tg_counters(c).fallbacks, 0); /* every kernel took its opts */
  tg_onnx_free(m), tg_close(c);
}

int main(int argc, char **argv) {
  if (argc > 1) golden_device = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small),
                                     cmocka_unit_test(test_named_sizes),
                                     cmocka_unit_test(test_narrow_sizes),
                                     cmocka_unit_test(test_unknown_sizes),
                                     cmocka_unit_test(test_loops_end),
                                     cmocka_unit_test(test_rows_gathered),
                                     cmocka_unit_test(test_shapes_on_the_host),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_unnamed),
                                     cmocka_unit_test(test_left_out),
                                     cmocka_unit_test(test_said),
                                     cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_hardmax_of_nothing),
                                     cmocka_unit_test(test_lp_pools),
                                     cmocka_unit_test(test_quantised_pool),
                                     cmocka_unit_test(test_wrapped),
                                     cmocka_unit_test(test_bounds),
                                     cmocka_unit_test(test_misfits),
                                     cmocka_unit_test(test_scan_backwards),
                                     cmocka_unit_test(test_kinds),
                                     cmocka_unit_test(test_peepholes),
                                     cmocka_unit_test(test_strict),
                                     cmocka_unit_test(test_edges),
                                     cmocka_unit_test(test_deform),
                                     cmocka_unit_test(test_regions),
                                     cmocka_unit_test(test_damaged),
                                     cmocka_unit_test(test_ops_by_name),
                                     cmocka_unit_test(test_domains),
                                     cmocka_unit_test(test_bits),
                                     cmocka_unit_test(test_group_query),
                                     cmocka_unit_test(test_goldens),
                                     cmocka_unit_test(test_microsoft),
                                     cmocka_unit_test(test_no_sequences),
                                     cmocka_unit_test(test_mnist)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
