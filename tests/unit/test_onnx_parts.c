/* test_onnx_parts.c: what ONNX models are made of besides nodes and tensors: functions of their own, lists
 * and optional values, data in files beside the model, and that nodes are told as they run. The models are
 * written here (tests/files/protobuf.h); those with functions and files are cut at every byte and
 * changed at every byte too, and nothing is read outside of them (the sanitizers look). Expected values by
 * hand. */
#define _GNU_SOURCE
#include "tg_io.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "tensor/context.h"
#include "tests/files/protobuf.h"

static TgContext *opened(void) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  assert_int_equal(tg_error(c), TG_OK);
  return c;
}

static void refused(TgContext *c, bool got, const char *text) {
  if (got) fail_msg("not refused: %s", text);
  if (!tg_error(c) || !strstr(tg_errmsg(c), text)) fail_msg("%s, not: %s", tg_errmsg(c), text);
  tg_clear_error(c);
}

/* ---- messages */
static void value(Msg *g, int field, const char *name, int type, int n, const int64_t *dims) {
  Msg shape = {0}, tensor = {0}, t = {0}, v = {0};
  for (int i = 0; i < n; i++) {
    Msg d = {0};
    put_int(&d, 1, dims[i]), put(&shape, 1, &d);
  }
  put_int(&tensor, 1, type), put(&tensor, 2, &shape), put(&t, 1, &tensor), put_text(&v, 1, name);
  put(&v, 2, &t), put(g, field, &v);
}

/* names: separated by blanks, "-" one that is left out */
static void names_put(Msg *m, int field, const char *names) {
  char text[200];
  snprintf(text, sizeof text, "%s", names);
  for (char *next, *s = strtok_r(text, " ", &next); s; s = strtok_r(NULL, " ", &next))
    put_text(m, field, strcmp(s, "-") ? s : "");
}

static Msg node(const char *op, const char *in, const char *out) {
  Msg n = {0};
  names_put(&n, 1, in), names_put(&n, 2, out), put_text(&n, 3, op), put_text(&n, 4, op);
  return n;
}

static void put_node(Msg *g, int field, const char *op, const char *in, const char *out) {
  Msg n = node(op, in, out);
  put(g, field, &n);
}

static void attr_int(Msg *n, const char *name, int64_t v) {
  Msg a = {0};
  put_text(&a, 1, name), put_int(&a, 20, 2), put_int(&a, 3, v), put(n, 5, &a);
}

static void attr_of_caller(Msg *n, const char *name, const char *of) {
  Msg a = {0};
  put_text(&a, 1, name), put_int(&a, 20, 2), put_text(&a, 21, of), put(n, 5, &a);
}

static void int64s(Msg *g, const char *name, int n, const int64_t *v) { /* n < 0: one number */
  Msg t = {0};
  if (n >= 0) put_int(&t, 1, n);
  put_int(&t, 2, 7), put_text(&t, 8, name), put_bytes(&t, 9, v, (size_t)(n < 0 ? 1 : n) * 8), put(g, 5, &t);
}

static Msg model(const Msg *g) {
  Msg m = {0}, o = {0};
  put_int(&o, 2, 18), put_int(&m, 1, 8), put(&m, 7, g), put(&m, 8, &o);
  return m;
}

static TgOnnx *load(TgContext *c, const Msg *m) { return tg_onnx_load(tg_from_bytes(c, m->b, m->n, TG_U8)); }

/* The first output of a graph whose one input is x, as text. */
static void says(TgContext *c, const Msg *m, const char *x, const char *want) {
  TG_SCOPE(c) {
    TgOnnx *o = load(c, m);
    TgTensor *in = x ? tg_from_text(c, x) : NULL, *out = NULL;
    if (!o || tg_onnx_run(o, (const char *[]){"x"}, &in, x ? 1 : 0, &out, 1)) fail_msg("%s", tg_errmsg(c));
    assert_string_equal(tg_to_text(out), want);
    tg_onnx_free(o);
  }
}

/* ---- functions of the model's own */
/* my.Twice(a; times = 2) = a * times; my.Both(a, b) = Twice(a; times = n) + b, b may be left out where it is
 * not read; the graph calls them. */
static Msg with_functions(void) {
  Msg g = {0}, twice = {0}, both = {0}, n, opset = {0}, a = {0};
  put_int(&opset, 2, 18);
  put_text(&twice, 1, "Twice"), put_text(&twice, 10, "my"), names_put(&twice, 4, "a"),
      names_put(&twice, 5, "y");
  put_text(&a, 1, "times"), put_int(&a, 20, 2), put_int(&a, 3, 2), put(&twice, 11, &a);
  n = node("Constant", "", "k"), attr_of_caller(&n, "value_int", "times"), put(&twice, 7, &n);
  n = node("CastLike", "k a", "f"), put(&twice, 7, &n), put(&twice, 9, &opset);
  put_node(&twice, 7, "Mul", "a f", "y");
  put_text(&both, 1, "Both"), put_text(&both, 10, "my"), names_put(&both, 4, "a b"),
      names_put(&both, 5, "y z");
  names_put(&both, 6, "n"), put(&both, 9, &opset);
  n = node("Twice", "a", "t"), put_text(&n, 7, "my"), attr_of_caller(&n, "times", "n"), put(&both, 7, &n);
  put_node(&both, 7, "Add", "t b", "y"), put_node(&both, 7, "Neg", "a", "z");
  n = node("Both", "x x", "p q"), put_text(&n, 7, "my"), attr_int(&n, "n", 10), put(&g, 1, &n);
  n = node("Both", "p x", "r"), put_text(&n, 7, "my"), put(&g, 1, &n); /* n is left out: Twice's own 2 */
  put_node(&g, 1, "Add", "r q", "out");
  value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "out", 1, 1, (const int64_t[]){2});
  Msg m = model(&g);
  put(&m, 25, &twice), put(&m, 25, &both);
  return m;
}

static void test_functions(void **s) {
  (void)s;
  TgContext *c = opened();
  Msg m = with_functions(), g = {0}, f = {0}, n;
  /* p = 10 x + x, q = -x, r = 2 p + x, out = r + q = 22 x */
  says(c, &m, "[1.0, 2.0]", "[22.0, 44.0]");
  put_text(&f, 1, "F"), put_text(&f, 10, "my"), names_put(&f, 4, "a"), names_put(&f, 5, "y");
  n = node("F", "a", "y"), put_text(&n, 7, "my"), put(&f, 7, &n);
  n = node("F", "x", "out"), put_text(&n, 7, "my"), put(&g, 1, &n);
  value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "out", 1, 1, (const int64_t[]){2});
  m = model(&g), put(&m, 25, &f);
  refused(c, load(c, &m) != NULL, "function F: calls within calls");
  f.n = 0, put_text(&f, 1, "F"), put_text(&f, 10, "my"), names_put(&f, 4, "a"), names_put(&f, 5, "y");
  m = model(&g), put(&m, 25, &f);
  refused(c, load(c, &m) != NULL, "output y of a function: nothing makes it");
  put_node(&f, 7, "Frobnicate", "a", "y"), m = model(&g), put(&m, 25, &f);
  refused(c, load(c, &m) != NULL, "op Frobnicate of the domain ai.onnx, opset 18");
  f.n = 0, put_text(&f, 1, "F"), put_text(&f, 10, "my"), names_put(&f, 5, "y");
  put_node(&f, 7, "Neg", "x", "y"), m = model(&g), put(&m, 25, &f); /* the caller's x is not there */
  refused(c, load(c, &m) != NULL, "reads x, which nothing before it makes");
  f.n = 0, put_text(&f, 1, "F"), put_text(&f, 10, "my"), names_put(&f, 4, "a"), names_put(&f, 5, "y");
  put_node(&f, 7, "Neg", "a", "y"), g.n = 0;
  n = node("F", "x x", "out"), put_text(&n, 7, "my"), put(&g, 1, &n);
  value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "out", 1, 1, (const int64_t[]){2});
  m = model(&g), put(&m, 25, &f);
  refused(c, load(c, &m) != NULL, "2 inputs and 1 outputs, the function F has 1 and 1");
  /* a function may be of another opset than the model: axes are an attribute before 13 */
  Msg axes = {0}, opset = {0};
  put_text(&axes, 1, "axes"), put_int(&axes, 20, 7), put_int(&axes, 8, 0), put_int(&opset, 2, 11);
  f.n = 0, put_text(&f, 1, "F"), put_text(&f, 10, "my"), names_put(&f, 4, "a"), names_put(&f, 5, "y");
  n = node("ReduceSum", "a", "y"), put(&n, 5, &axes), put(&f, 7, &n), put(&f, 9, &opset), g.n = 0;
  n = node("F", "x", "out"), put_text(&n, 7, "my"), put(&g, 1, &n);
  value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "out", 1, 1, (const int64_t[]){1});
  m = model(&g), put(&m, 25, &f);
  says(c, &m, "[1.0, 2.0]", "[3.0]");
  tg_close(c);
}

/* Two functions that call the next one twice each: 2^24 nodes, of which no file speaks. */
static void test_functions_without_end(void **s) {
  (void)s;
  TgContext *c = opened();
  Msg g = {0}, m, n;
  n = node("F0", "x", "out"), put_text(&n, 7, "my"), put(&g, 1, &n);
  value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "out", 1, 1, (const int64_t[]){2});
  m = model(&g);
  for (int i = 0; i < 23; i++) {
    Msg f = {0};
    char name[16], next[16];
    snprintf(name, sizeof name, "F%d", i), snprintf(next, sizeof next, "F%d", i + 1);
    put_text(&f, 1, name), put_text(&f, 10, "my"), names_put(&f, 4, "a"), names_put(&f, 5, "y");
    n = node(i < 22 ? next : "Neg", "a", "t"), put_text(&n, 7, i < 22 ? "my" : ""), put(&f, 7, &n);
    n = node(i < 22 ? next : "Neg", "t", "y"), put_text(&n, 7, i < 22 ? "my" : ""), put(&f, 7, &n);
    put(&m, 25, &f);
  }
  double began = (double)clock() / CLOCKS_PER_SEC;
  refused(c, load(c, &m) != NULL, "nodes, with those of functions");
  assert_true((double)clock() / CLOCKS_PER_SEC - began < 1); /* counted, not made */
  tg_close(c);
}

/* ---- lists and optional values */
static Msg of_x(const Msg *nodes, const char *out) {
  Msg g = *nodes;
  value(&g, 11, "x", 1, 1, (const int64_t[]){5}), value(&g, 12, out, 1, 1, (const int64_t[]){5});
  return model(&g);
}

static void test_lists(void **s) {
  (void)s;
  TgContext *c = opened();
  static const char x[] = "[0.0, 1.0, 2.0, 3.0, 4.0]";
  Msg g = {0}, n, m;
  int64s(&g, "two", -1, (const int64_t[]){2}), int64s(&g, "last", -1, (const int64_t[]){-1});
  int64s(&g, "sizes", 2, (const int64_t[]){4, 1}), int64s(&g, "six", -1, (const int64_t[]){6});
  Msg base = g;
  put_node(&g, 1, "SplitToSequence", "x two", "l"), put_node(&g, 1, "SequenceAt", "l last", "t");
  m = of_x(&g, "t"), says(c, &m, x, "[4.0]");
  int64s(&g, "first", -1, (const int64_t[]){0}), put_node(&g, 1, "SequenceAt", "l first", "u");
  m = of_x(&g, "u"), says(c, &m, x, "[0.0, 1.0]");
  put_node(&g, 1, "SequenceErase", "l last", "shorter"),
      put_node(&g, 1, "SequenceInsert", "shorter x", "longer");
  n = node("ConcatFromSequence", "longer", "all"), attr_int(&n, "axis", 0), put(&g, 1, &n);
  m = of_x(&g, "all"), says(c, &m, x, "[0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 4.0]");
  put_node(&g, 1, "SequenceLength", "longer", "length"), m = of_x(&g, "length"), says(c, &m, x, "3");
  g = base, n = node("SplitToSequence", "x", "l"), attr_int(&n, "keepdims", 0), put(&g, 1, &n);
  n = node("ConcatFromSequence", "l", "t"), attr_int(&n, "axis", 0), attr_int(&n, "new_axis", 1),
  put(&g, 1, &n);
  m = of_x(&g, "t"), says(c, &m, x, x);
  g = base, put_node(&g, 1, "SplitToSequence", "x sizes", "l"), put_node(&g, 1, "Identity", "l", "same");
  put_node(&g, 1, "SequenceAt", "same last", "t"), m = of_x(&g, "t"), says(c, &m, x, "[4.0]");
  g = base, n = node("SplitToSequence", "x sizes", "l"), attr_int(&n, "keepdims", 0), put(&g, 1, &n);
  put_node(&g, 1, "SequenceAt", "l last", "t"), m = of_x(&g, "t"); /* sizes are given: the axis stays */
  says(c, &m, x, "[4.0]");
  /* of values that are known, as they are */
  g = base, put_node(&g, 1, "SequenceConstruct", "sizes sizes", "l");
  n = node("ConcatFromSequence", "l", "t"), attr_int(&n, "axis", -1), put(&g, 1, &n);
  m = of_x(&g, "t"), says(c, &m, x, "[4, 1, 4, 1]");
  /* optional: there, and not */
  g = base, put_node(&g, 1, "Optional", "x", "o"), put_node(&g, 1, "OptionalGetElement", "o", "t");
  m = of_x(&g, "t"), says(c, &m, x, x);
  g = base, put_node(&g, 1, "Optional", "", "o"), put_node(&g, 1, "OptionalHasElement", "o", "t");
  m = of_x(&g, "t"), says(c, &m, x, "false");

  static const struct {
    const char *op, *in, *second, *second_in, *text;
  } bad[] = {{"SplitToSequence", "x two", "SequenceAt", "l six", "place 6 of a list of 3"},
             {"SplitToSequence", "x six", "Neg", "l", "input 0 is a list, not a tensor"},
             {"SplitToSequence", "x sizes", "SequenceAt", "x last", "input 0 is no list"},
             {"SplitToSequence", "x two", "SequenceConstruct", "l", "input 0 is no tensor"},
             {"SequenceEmpty", "", "SequenceErase", "l", "place -1 of a list of 0"},
             {"SequenceEmpty", "", "ConcatFromSequence", "l", "a list of 0 to join"},
             {"Optional", "", "OptionalGetElement", "l", "there is no value"},
             {"Optional", "", "Neg", "l", "an optional value that is not there, not a tensor"},
             {"SequenceConstruct", "x x", "Identity", "l", "output t is no tensor: a list"}};

  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    TG_SCOPE(c) {
      g = base, put_node(&g, 1, bad[i].op, bad[i].in, "l"),
      put_node(&g, 1, bad[i].second, bad[i].second_in, "t");
      m = of_x(&g, "t");
      TgOnnx *o = load(c, &m);
      if (!o) fail_msg("%s", tg_errmsg(c));
      TgTensor *in = tg_from_text(c, x), *out;
      refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &out, 1), bad[i].text);
      tg_onnx_free(o);
    }
  g = base, int64s(&g, "uneven", 2, (const int64_t[]){4, 2}),
  put_node(&g, 1, "SplitToSequence", "x uneven", "l");
  put_node(&g, 1, "SequenceAt", "l two", "t"), m = of_x(&g, "t");
  TgOnnx *o = load(c, &m);
  TgTensor *in = tg_from_text(c, x), *out;
  refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &out, 1), "part 1 does not fit");
  tg_onnx_free(o);
  tg_close(c);
}

/* ---- data beside the model */
static char folder[] = "/tmp/tg-onnx-beside-XXXXXX";

static void write_file(const char *name, const void *p, size_t n) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_true(f && fwrite(p, 1, n, f) == n);
  assert_int_equal(fclose(f), 0);
}

/* y = x + w, w (2) f32 of what the pairs say, "key=value" each, ended by NULL */
static Msg with_external(const char *const *pairs) {
  Msg g = {0}, t = {0};
  put_int(&t, 1, 2), put_int(&t, 2, 1), put_text(&t, 8, "w");
  for (; *pairs; pairs++) {
    Msg e = {0};
    const char *equals = strchr(*pairs, '=');
    put_bytes(&e, 1, *pairs, (size_t)(equals - *pairs)), put_text(&e, 2, equals + 1), put(&t, 13, &e);
  }
  put_int(&t, 14, 1), put(&g, 5, &t), put_node(&g, 1, "Add", "x w", "y");
  value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "y", 1, 1, (const int64_t[]){2});
  return model(&g);
}

static TgOnnx *open_beside(TgContext *c, const Msg *m) {
  char path[300];
  write_file("m.onnx", m->b, m->n);
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  return tg_onnx_open(c, path);
}

static void test_beside(void **s) {
  (void)s;
  static const float weights[] = {5, 6, 7, 8};

  static const struct {
    const char *pairs[5], *want; /* the sum with [1, 2], or what is wrong */
  } cases[] = {
      {{"location=w.bin", "offset=8", "length=8"}, "[8.0, 10.0]"},
      {{"location=w.bin"}, "[6.0, 8.0]"},
      {{"location=./sub/../w.bin"}, "not in the model's folder"},
      {{"location=sub/w.bin", "offset=4", "checksum=of no meaning"}, "[7.0, 9.0]"},
      {{"location=w.bin", "offset=12"}, "bytes 12 to 20 of 'w.bin', which has 16"},
      {{"location=w.bin", "offset=18446744073709551615"}, "which has 16"},
      {{"location=w.bin", "offset=18446744073709551616"}, "offset '18446744073709551616' is no number"},
      {{"location=w.bin", "offset=-8"}, "offset '-8' is no number"},
      {{"location=w.bin", "offset="}, "offset '' is no number"},
      {{"location=w.bin", "length=8x"}, "length '8x' is no number"},
      {{"location=w.bin", "length=12"}, "12 bytes for a shape and data type of 8"},
      {{"location=nothing.bin"}, "nothing.bin"},
      {{"location=../w.bin"}, "not in the model's folder"},
      {{"location=/etc/hostname"}, "not in the model's folder"},
      {{"location=link"}, "not in the model's folder"},
      {{"location=beside"}, "not in the model's folder"}, /* of a folder whose name begins with this one's */
      {{"location=within"}, "[6.0, 8.0]"},
      {{"location=.."}, "not in the model's folder"},
      {{"location="}, "not in the model's folder"},
      {{"offset=0"}, "without a location"},
      {{"location=sub"}, ""},
  };

  char path[300];
  assert_non_null(mkdtemp(folder));
  write_file("w.bin", weights, sizeof weights);
  snprintf(path, sizeof path, "%s/sub", folder);
  assert_int_equal(mkdir(path, 0700), 0);
  write_file("sub/w.bin", weights, sizeof weights);
  snprintf(path, sizeof path, "%s/link", folder);
  assert_int_equal(symlink("/etc/passwd", path), 0);
  snprintf(path, sizeof path, "%s/within", folder);
  assert_int_equal(symlink("sub/w.bin", path), 0);
  char other[sizeof folder + 40], file[sizeof other + 40];
  snprintf(other, sizeof other, "%s-other", folder), snprintf(file, sizeof file, "%s/w.bin", other);
  assert_int_equal(mkdir(other, 0700), 0);
  snprintf(path, sizeof path, "%s/beside", folder);
  assert_int_equal(symlink(file, path), 0);
  FILE *f = fopen(file, "wb");
  assert_true(f && fwrite(weights, 1, sizeof weights, f) == sizeof weights && !fclose(f));
  TgContext *c = opened();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    TG_SCOPE(c) {
      Msg m = with_external(cases[i].pairs);
      TgOnnx *o = open_beside(c, &m);
      if (*cases[i].want != '[')
        refused(c, o != NULL, cases[i].want);
      else {
        TgTensor *in = tg_from_text(c, "[1.0, 2.0]"), *y;
        if (!o || tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &y, 1)) fail_msg("%zu: %s", i, tg_errmsg(c));
        assert_string_equal(tg_to_text(y), cases[i].want);
      }
      tg_onnx_free(o);
    }
  unlink(file), rmdir(other);
  tg_close(c);
}

static bool run_any(TgContext *c, const uint8_t *p, size_t n, bool from_file) {
  bool good = false;
  TG_SCOPE(c) {
    uint8_t *exact = malloc(n ? n : 1); /* so that a byte too far is seen */
    memcpy(exact, p, n);
    Msg m = {.n = n};
    memcpy(m.b, p, n);
    TgTensor *x = tg_ones(c, TG_SHAPE(2)), *y;
    TgOnnx *o = from_file ? open_beside(c, &m)
                          : tg_onnx_load(tg_borrow(c, exact, TG_U8, TG_SHAPE((int64_t)n), NULL, NULL));
    TgOnnxValue v;
    good = o && tg_onnx_input(o, 0, &v) && !tg_onnx_run(o, &v.name, &x, 1, &y, 1) && !tg_realize(y);
    tg_onnx_free(o);
    tg_clear_error(c);
    tg_collect(c);
    free(exact);
  }
  return good;
}

static void test_damaged(void **s) {
  (void)s;
  TgContext *c = opened();
  for (int kind = 0; kind < 2; kind++) {
    Msg m = kind ? with_external((const char *const[]){"location=w.bin", "offset=8", "length=8", NULL})
                 : with_functions();
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    int good = 0;
    for (size_t n = 1; n < m.n; n += kind ? 1 : 3)
      good += run_any(c, m.b, n, kind);
    for (size_t i = 0; i < m.n; i++)
      for (size_t k = i % 2; k < sizeof values; k += kind ? 2 : 3) {
        Msg d = m;
        d.b[i] = values[k];
        good += run_any(c, d.b, d.n, kind);
      }
    assert_true(good > 10);
  }
  tg_close(c);
  char line[400];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  assert_int_equal(system(line), 0);
}

/* ---- nodes as they run */
typedef struct Told {
  char ops[200];
  TgTensor *y;
} Told;

static void told(const TgOnnxNode *n, void *user) {
  Told *t = user;
  assert_int_equal(n->size, sizeof *n);
  assert_int_equal(n->nout, 1);
  snprintf(t->ops + strlen(t->ops), sizeof t->ops - strlen(t->ops), "%s%zu%s ", n->op, n->number,
           n->out[0] ? "" : "-");
  if (!strcmp(n->op, "Neg")) t->y = tg_keep(tg_reshape(n->out[0], TG_SHAPE(-1)));
}

static void test_told(void **s) {
  (void)s;
  TgContext *c = opened();
  Msg g = {0}, m;
  put_node(&g, 1, "Shape", "x", "n"), put_node(&g, 1, "Neg", "x", "y"), put_node(&g, 1, "Abs", "y", "z");
  m = of_x(&g, "z");
  TgOnnx *o = load(c, &m);
  Told t = {0};
  TgTensor *in = tg_from_text(c, "[0.0, 1.0, 2.0, 3.0, 4.0]"), *out;
  tg_onnx_watch(o, told, &t);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &out, 1), TG_OK);
  assert_string_equal(t.ops, "Shape0- Neg1 Abs2 ");
  assert_string_equal(tg_to_text(t.y), "[-0.0, -1.0, -2.0, -3.0, -4.0]");
  tg_onnx_watch(o, NULL, NULL), tg_onnx_watch(NULL, told, NULL);
  assert_int_equal(tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &out, 1), TG_OK);
  assert_string_equal(t.ops, "Shape0- Neg1 Abs2 ");
  tg_release(t.y);
  tg_onnx_free(o);
  tg_close(c);
}

/* ---- FusedConv, of no node case: beside Conv, Add and the activation */
static void test_fused(void **s) {
  (void)s;
  TgContext *c = opened();

  static const struct {
    const char *how, *second;
  } cases[] = {{"Relu", "Relu"}, {"Tanh", "Tanh"}, {"Sigmoid", "Sigmoid"}};

  static const float w[] = {1, -2, 0.5f};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[2][400];
    for (int fused = 0; fused < 2; fused++)
      TG_SCOPE(c) {
        Msg g = {0}, t = {0}, n;
        put_int(&t, 1, 1), put_int(&t, 1, 1), put_int(&t, 1, 3), put_int(&t, 2, 1), put_text(&t, 8, "w");
        put_bytes(&t, 9, w, sizeof w), put(&g, 5, &t);
        if (fused) {
          Msg a = {0};
          n = node("FusedConv", "x w - x2", "y"), put_text(&n, 7, "com.microsoft");
          put_text(&a, 1, "activation"), put_int(&a, 20, 3), put_text(&a, 4, cases[i].how), put(&n, 5, &a);
          put_node(&g, 1, "Abs", "z", "x2"), put(&g, 1, &n);
        } else {
          put_node(&g, 1, "Abs", "z", "x2"), put_node(&g, 1, "Conv", "x w", "a");
          put_node(&g, 1, "Add", "a x2", "b"), put_node(&g, 1, cases[i].second, "b", "y");
        }
        value(&g, 11, "x", 1, 3, (const int64_t[]){1, 1, 5}),
            value(&g, 11, "z", 1, 3, (const int64_t[]){1, 1, 3});
        value(&g, 12, "y", 1, 3, (const int64_t[]){1, 1, 3});
        Msg m = model(&g);
        TgOnnx *o = load(c, &m);
        TgTensor *in[] = {tg_from_text(c, "[[[0.0, 1.0, 2.0, -3.0, 4.0]]]"),
                          tg_from_text(c, "[[[1.0, -0.5, 0.25]]]")},
                 *y;
        if (!o || tg_onnx_run(o, (const char *[]){"x", "z"}, in, 2, &y, 1)) fail_msg("%s", tg_errmsg(c));
        snprintf(text[fused], sizeof text[fused], "%s", tg_to_text(y));
        tg_onnx_free(o);
      }
    assert_string_equal(text[0], text[1]);
  }
  tg_close(c);
}

/* ---- Resize: where a new element looks, of no node case; and words that are not known are no default */
static void test_resize(void **s) {
  (void)s;
  TgContext *c = opened();

  static const struct {
    const char *transform, *nearest, *want; /* of [1, 2] as 4 elements */
  } cases[] = {{"tf_half_pixel_for_nn", "floor", "[1.0, 1.0, 2.0, 2.0]"},
               {"half_pixel", "floor", "[1.0, 1.0, 1.0, 2.0]"},
               {"half_pixels", "floor", NULL},
               {"half_pixel", "round", NULL}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    TG_SCOPE(c) {
      Msg g = {0}, n = node("Resize", "x - - sizes", "y"), a = {0}, b = {0}, m;
      put_text(&a, 1, "coordinate_transformation_mode"), put_int(&a, 20, 3),
          put_text(&a, 4, cases[i].transform);
      put_text(&b, 1, "nearest_mode"), put_int(&b, 20, 3), put_text(&b, 4, cases[i].nearest);
      int64s(&g, "sizes", 1, (const int64_t[]){4}), put(&n, 5, &a), put(&n, 5, &b), put(&g, 1, &n);
      value(&g, 11, "x", 1, 1, (const int64_t[]){2}), value(&g, 12, "y", 1, 1, (const int64_t[]){4});
      m = model(&g);
      if (cases[i].want) {
        says(c, &m, "[1.0, 2.0]", cases[i].want);
        continue;
      }
      TgOnnx *o = load(c, &m);
      TgTensor *in = tg_from_text(c, "[1.0, 2.0]"), *y;
      refused(c, !tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &y, 1),
              i == 2 ? "half_pixels" : "nearest_mode round");
      tg_onnx_free(o);
    }
  tg_close(c);
}

/* ---- integers of less than a byte, packed: the first in the lowest bits */
static void test_narrow(void **s) {
  (void)s;
  TgContext *c = opened();

  static const struct {
    int type, n;
    uint8_t raw[3];
    int nraw;
    const char *want;
  } cases[] = {{22, 3, {0x8f, 0x07}, 2, "[-1.0, -8.0, 7.0]"},
               {21, 3, {0x8f, 0x07}, 2, "[15.0, 8.0, 7.0]"},
               {25, 5, {0xe4, 0x02}, 2, "[0.0, 1.0, 2.0, 3.0, 2.0]"},
               {26, 4, {0xe4}, 1, "[0.0, 1.0, -2.0, -1.0]"}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int told = 0; told < 3; told++) { /* as raw bytes, as numbers, in a file beside */
      Msg g = {0}, t = {0}, n = node("Cast", "w", "y"), m;
      put_int(&t, 1, cases[i].n), put_int(&t, 2, cases[i].type), put_text(&t, 8, "w");
      if (told == 0) put_bytes(&t, 9, cases[i].raw, (size_t)cases[i].nraw);
      for (int k = 0; told == 1 && k < cases[i].nraw; k++)
        put_int(&t, 5, cases[i].raw[k]);
      if (told == 2) {
        Msg e = {0};
        put_text(&e, 1, "location"), put_text(&e, 2, "packed.bin"), put(&t, 13, &e), put_int(&t, 14, 1);
        write_file("packed.bin", cases[i].raw, (size_t)cases[i].nraw);
      }
      put(&g, 5, &t), attr_int(&n, "to", 1), put(&g, 1, &n);
      value(&g, 12, "y", 1, 1, (const int64_t[]){cases[i].n});
      m = model(&g);
      TG_SCOPE(c) {
        TgTensor *y;
        TgOnnx *o = told == 2 ? open_beside(c, &m) : load(c, &m);
        if (!o || tg_onnx_run(o, NULL, NULL, 0, &y, 1)) fail_msg("%zu: %s", i, tg_errmsg(c));
        assert_string_equal(tg_to_text(y), cases[i].want);
        tg_onnx_free(o);
      }
    }
  tg_close(c);
}

/* ---- If on an input's value, captured: both branches are computed, where their shapes are equal */
static void put_branch(Msg *n, const char *name, const char *op, const char *in) {
  Msg g = {0}, a = {0};
  put_node(&g, 1, op, in, name), value(&g, 12, name, 1, 0, NULL);
  put_text(&a, 1, name), put_int(&a, 20, 5), put(&a, 6, &g), put(n, 5, &a);
}

static Msg with_if(const char *other) { /* y = c ? x + x : other(x) */
  Msg g = {0}, n = node("If", "c", "y");
  put_branch(&n, "then_branch", "Add", "x x"), put_branch(&n, "else_branch", other, "x");
  put(&g, 1, &n), value(&g, 11, "x", 1, 1, (const int64_t[]){3}), value(&g, 11, "c", 9, 0, NULL);
  value(&g, 12, "y", 1, 0, NULL);
  return model(&g);
}

static TgStatus run_if(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin;
  return tg_onnx_run(user, (const char *[]){"x", "c"}, in, 2, out, nout);
}

static void test_if(void **s) {
  (void)s;
  TgContext *c = opened();
  Msg m = with_if("Sqrt"), unlike = with_if("ReduceSum");
  TgOnnx *o = load(c, &m), *u = load(c, &unlike);
  TgJit *j = tg_jit(c, run_if, o), *k = tg_jit(c, run_if, u);
  TgTensor *y, *in[2] = {tg_from_text(c, "[1.0, 4.0, -9.0]")};
  for (int turn = 0; turn < 5; turn++) {
    in[1] = tg_clone(tg_full(c, TG_SCALAR, turn % 2, .dtype = TG_BOOL));
    if (tg_jit_run(j, in, 2, &y, 1)) fail_msg("%s", tg_errmsg(c));
    assert_string_equal(tg_to_text(y), turn % 2 ? "[2.0, 8.0, -18.0]" : "[1.0, 2.0, nan]");
  }
  if (tg_jit_run(k, in, 2, &y, 1)) fail_msg("%s", tg_errmsg(c)); /* called, it reads the condition */
  refused(c, !tg_jit_run(k, in, 2, &y, 1), "output 0 is not of one shape and dtype in both branches");
  tg_jit_free(j), tg_jit_free(k), tg_onnx_free(o), tg_onnx_free(u);
  tg_close(c);
}

static TgStatus run_x(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)c, (void)nin;
  return tg_onnx_run(user, (const char *[]){"x"}, in, 1, out, nout);
}

/* What cannot be captured says which node needs values, and what for. */
static void test_values_needed(void **s) {
  (void)s;
  TgContext *c = opened();
  Msg g = {0};
  put_node(&g, 1, "NonZero", "x", "y");
  Msg m = of_x(&g, "y");
  TgOnnx *o = load(c, &m);
  TgJit *j = tg_jit(c, run_x, o);
  TgTensor *x = tg_from_text(c, "[1.0, 0.0, 2.0, 0.0, 3.0]"), *y;
  if (tg_jit_run(j, &x, 1, &y, 1)) fail_msg("%s", tg_errmsg(c));
  assert_string_equal(tg_to_text(y), "[[0, 2, 4]]");
  assert_int_not_equal(tg_jit_run(j, &x, 1, &y, 1), TG_OK);
  assert_non_null(strstr(tg_errmsg(c), "onnx: node NonZero (NonZero): read: not inside a function"));
  refused(c, false, "; here a shape, or how often a loop runs, depends on an input's values");
  tg_jit_free(j), tg_onnx_free(o), tg_close(c);
}

/* ---- no memory */
/* A model is read, and run, without the n-th block of memory: it says TG_ERR_NOMEM, and gives all back.
 * False: there are fewer than n blocks. */
static bool read_without(TgContext *c, const Msg *m, bool run, uint64_t n) {
  uint64_t failed = c->mem.failed, live = 0;
  TgTensor *bytes = tg_from_bytes(c, m->b, m->n, TG_U8), *x = tg_from_text(c, "[0.0, 1.0, 2.0, 3.0, 4.0]");
  live = c->mem.live;
  c->mem.fail_at = c->mem.calls + n;
  TG_SCOPE(c) {
    TgTensor *out = NULL;
    TgOnnx *o = tg_onnx_load(bytes);
    TgStatus s = o ? TG_OK : tg_error(c);
    if (o && run) s = tg_onnx_run(o, (const char *[]){"x"}, &x, 1, &out, 1);
    if (o && run && !s) s = tg_realize(out);
    if (s && (s != TG_ERR_NOMEM || c->mem.failed == failed)) /* a cache may do without */
      fail_msg("block %d: %s: %s", (int)n, tg_status_name(s), tg_errmsg(c));
    c->mem.fail_at = 0;
    tg_onnx_free(o);
  }
  if (!run && c->mem.live > live) fail_msg("block %d: %d are left", (int)n, (int)(c->mem.live - live));
  tg_clear_error(c);
  return c->mem.failed > failed;
}

/* An input that is fixed without the n-th block of memory is fixed, or the model is as it was. */
static bool fixed_without(TgContext *c, const Msg *m, uint64_t n) {
  uint64_t failed = c->mem.failed;
  TG_SCOPE(c) {
    TgTensor *x = tg_from_text(c, "[0.0, 1.0, 2.0, 3.0, 4.0]"), *out = NULL;
    TgOnnx *o = load(c, m);
    assert_non_null(o);
    c->mem.fail_at = c->mem.calls + n;
    TgStatus s = tg_onnx_fix(o, "x", x);
    c->mem.fail_at = 0;
    if (s && (s != TG_ERR_NOMEM || c->mem.failed == failed))
      fail_msg("block %d: %s", (int)n, tg_status_name(s));
    tg_clear_error(c);
    if (tg_onnx_run(o, (const char *[]){"x"}, &x, s ? 1 : 0, &out, 1)) fail_msg("%s", tg_errmsg(c));
    assert_string_equal(tg_to_text(out), "[4.0]");
    tg_onnx_free(o);
  }
  return c->mem.failed > failed;
}

static void test_no_memory(void **s) {
  (void)s;
  TgContext *c = opened();
  Msg functions = with_functions(), g = {0};
  for (uint64_t n = 1; read_without(c, &functions, false, n);)
    n++;
  int64s(&g, "sizes", 2, (const int64_t[]){4, 1}), int64s(&g, "last", -1, (const int64_t[]){-1});
  put_node(&g, 1, "SplitToSequence", "x sizes", "l"), put_node(&g, 1, "SequenceAt", "l last", "t");
  Msg lists = of_x(&g, "t");
  for (uint64_t n = 1; read_without(c, &lists, true, n);)
    n++;
  for (uint64_t n = 1; fixed_without(c, &lists, n);)
    n++;
  assert_int_equal(tg_onnx_fix(NULL, "x", NULL), TG_ERR_NOMEM);
  assert_int_equal(tg_onnx_run(NULL, NULL, NULL, 0, NULL, 0), TG_ERR_NOMEM);
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_if),
                                     cmocka_unit_test(test_functions),
                                     cmocka_unit_test(test_functions_without_end),
                                     cmocka_unit_test(test_lists),
                                     cmocka_unit_test(test_beside),
                                     cmocka_unit_test(test_narrow),
                                     cmocka_unit_test(test_damaged),
                                     cmocka_unit_test(test_told),
                                     cmocka_unit_test(test_fused),
                                     cmocka_unit_test(test_resize),
                                     cmocka_unit_test(test_values_needed),
                                     cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
