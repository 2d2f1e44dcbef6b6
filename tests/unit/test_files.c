/* test_files.c: state dictionaries, model files, archives, data sets. Expected values: files of other
 * programs in ../shared/data (skipped where absent) and bytes written here by hand. Damaged files are
 * refused, whatever is wrong with them, and nothing is read past their end (the sanitizers look). */
#define _GNU_SOURCE
#include "tg_io.h"
#include "tg_nn.h"
#include "tests/files/samples.h"
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>
#endif

static char dir[] = "/tmp/tg_test_files_XXXXXX", path[64];

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(dir)) return 1;
  return snprintf(path, sizeof path, "%s/file", dir), 0;
}

static int teardown(void **state) { return (void)state, unlink(path), rmdir(dir); }

static TgContext *open_on(const char *device) {
  return tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
}

/* a path that lives until the next call but three; NULL: not on this machine */
static char *shared(const char *name) {
  static char p[4][600];
  static int k;
  const char *root = getenv("TG_DATA");
  k = (k + 1) % 4;
  snprintf(p[k], sizeof *p, "%s/%s", root && *root ? root : "../shared/data", name);
  return access(p[k], R_OK) ? NULL : p[k];
}

#define NEED(p, name)                                                                                        \
  do {                                                                                                       \
    if (!((p) = shared(name))) {                                                                             \
      print_message("skipped: no %s in the shared data\n", name);                                            \
      skip();                                                                                                \
    }                                                                                                        \
  } while (0)

static char *whole(const char *from, size_t *n) {
  FILE *f = fopen(from, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *p = malloc(*n + 1);
  assert_int_equal(fread(p, 1, *n, f), *n);
  fclose(f);
  return p;
}

static void file_write(const void *p, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(p, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static void ok(TgContext *c) {
  if (tg_error(c)) fail_msg("%s", tg_errmsg(c));
}

static void refused(TgContext *c, const void *got, const char *text) {
  if (got) fail_msg("not refused: %s", text);
  if (!tg_error(c) || !strstr(tg_errmsg(c), text))
    fail_msg("%s: %s, not: %s", tg_status_name(tg_error(c)), tg_errmsg(c), text);
  tg_clear_error(c);
}

static double at(TgTensor *t, int64_t i) {
  double *v = malloc(((size_t)tg_numel(t) + 1) * sizeof *v), x;
  TgStatus s = tg_read_f64(t, v, (size_t)tg_numel(t));
  x = s ? NAN : v[i];
  free(v);
  if (s) fail_msg("%s", tg_errmsg(tg_context(t)));
  return x;
}

/* ---- state dictionaries */
static void test_state(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  TgState *s = tg_state_new(c);
  char name[32];
  const char *got;
  TgTensor *t[100];
  for (int i = 0; i < 100; i++)
    snprintf(name, sizeof name, "layer.%d.weight", i), t[i] = tg_full(c, TG_SHAPE(2), i),
                                                       assert_int_equal(tg_state_put(s, name, t[i]), TG_OK);
  assert_int_equal(tg_state_count(s), 100);
  assert_ptr_equal(tg_state_get(s, "layer.37.weight"), t[37]);
  assert_null(tg_state_get(s, "layer.37"));
  assert_ptr_equal(tg_state_remove(s, "layer.37.weight"), t[37]);
  assert_null(tg_state_get(s, "layer.37.weight"));
  assert_null(tg_state_remove(s, "layer.37.weight"));
  assert_ptr_equal(tg_state_at(s, 37, &got), t[38]);
  assert_string_equal(got, "layer.38.weight");
  assert_ptr_equal(tg_state_get(s, "layer.99.weight"), t[99]);
  assert_int_equal(tg_state_put(s, "layer.5.weight", t[6]), TG_OK);
  assert_ptr_equal(tg_state_get(s, "layer.5.weight"), t[6]);
  assert_int_equal(tg_state_count(s), 99);
  assert_ptr_equal(tg_get_parameters(s)[98], t[99]);
  assert_null(tg_state_at(s, 99, NULL));
  ok(c);
  assert_int_equal(tg_state_put(s, "x", NULL), TG_ERR_VALUE);
  tg_clear_error(c);
  tg_state_free(s);
  tg_state_free(NULL);
  tg_release(t[37]);
  tg_close(c);
}

static void test_layers(void **state) { /* saved by name, loaded into another model: the same answers */
  (void)state;
  for (int dev = 0; dev < 2; dev++) {
    TgContext *c = open_on(dev ? "INTERP:CUDA" : "CPU");
    TgState *s[2];
    TgTensor *x = tg_randn(c, TG_SHAPE(2, 3, 6, 6)), *y[2];
    TgConv2d conv[2];
    TgBatchNorm bn[2];
    TgLinear l[2];
    TgLayerNorm ln[2];
    TgEmbedding e[2];
    assert_int_equal(tg_realize(x), TG_OK);
    for (int i = 0; i < 2; i++) {
      conv[i] = tg_conv2d_new(c, 3, 4, 3, true, NULL), bn[i] = tg_batch_norm_new(c, 4),
      l[i] = tg_linear_new(c, 64, 5, true), ln[i] = tg_layer_norm_new(c, TG_SHAPE(5));
      e[i] = tg_embedding_new(c, 3, 5), s[i] = tg_state_new(c);
      assert_int_equal(tg_conv2d_state(&conv[i], s[i], "conv") | tg_batch_norm_state(&bn[i], s[i], "bn") |
                           tg_linear_state(&l[i], s[i], "out") | tg_layer_norm_state(&ln[i], s[i], "ln") |
                           tg_embedding_state(&e[i], s[i], "e.0"),
                       0);
    }
    assert_int_equal(tg_state_count(s[0]), 11);
    assert_ptr_equal(tg_state_get(s[0], "bn.running_var"), bn[0].running_var);
    assert_ptr_equal(tg_state_get(s[0], "e.0.weight"), e[0].weight);
    assert_int_equal(
        tg_realize(tg_assign(bn[0].running_mean, tg_from_text(c, "[0.5, -1, 2, 3]", .dtype = TG_F32))),
        TG_OK);
    assert_int_equal(
        tg_safe_save(s[0], path,
                     .metadata = (const char *const[]){"format", "pt", "a \"quoted\"\n", "\xc3\xa9", NULL}),
        TG_OK);
    TgState *f = tg_safe_load_file(c, path);
    ok(c);
    assert_int_equal(tg_load_state(s[1], f), TG_OK);
    for (int i = 0; i < 2; i++)
      y[i] = tg_add(
          tg_layer_norm_run(
              &ln[i],
              tg_linear_run(&l[i], tg_flatten(tg_batch_norm_run(&bn[i], tg_conv2d_run(&conv[i], x)), 1, -1))),
          tg_embedding_run(&e[i], tg_full_i64(c, TG_SHAPE(2), 1, TG_I32)));
    assert_int_equal(tg_realize(y[0]) | tg_realize(y[1]),
                     TG_OK); /* in one graph they may be fused otherwise */
    assert_true(tg_item_i64(tg_allclose(y[0], y[1], .exact = true)) == 1);
    tg_state_free(f); /* the model has its own memory: it can be trained */
    TgOptim *opt = tg_sgd(c, tg_get_parameters(s[1]), 2, .lr = 0.1);
    assert_int_equal(tg_backward(tg_sum(y[1])), TG_OK);
    assert_int_equal(tg_optim_step(opt), TG_OK);
    tg_optim_free(opt);
    ok(c);
    TgValue *head = tg_safe_load_metadata(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)), &(int64_t){0});
    assert_string_equal(
        tg_value_string(tg_value_get(tg_value_get(head, "__metadata__"), "a \"quoted\"\n"), NULL),
        "\xc3\xa9");
    assert_int_equal(tg_value_int(tg_value_at(tg_value_get(tg_value_get(head, "conv.weight"), "shape"), 1)),
                     3);
    tg_value_free(head);
    for (int i = 0; i < 2; i++)
      tg_state_free(s[i]), tg_conv2d_free(&conv[i]), tg_batch_norm_free(&bn[i]), tg_linear_free(&l[i]),
          tg_layer_norm_free(&ln[i]), tg_embedding_free(&e[i]);
    tg_close(c);
  }
}

static void test_load_state(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP"), *other = open_on("INTERP");
  TgTensor *a = tg_keep(tg_full(c, TG_SHAPE(2, 2), 1)), *b = tg_keep(tg_full(c, TG_SCALAR, 2));
  TgState *m = tg_state_new(c), *f = tg_state_new(other);
  tg_state_put(m, "a", a), tg_state_put(m, "b", b);
  tg_state_put(f, "a", tg_full(other, TG_SHAPE(2, 2), 5, .dtype = TG_F16)),
      tg_state_put(f, "c", tg_full(other, TG_SHAPE(1), 6));
  assert_int_equal(tg_load_state(m, f), TG_ERR_VALUE);
  refused(c, NULL, "the file lacks b; the model has no c");
  assert_int_equal(tg_load_state(m, f, .partial = true), TG_ERR_VALUE);
  refused(c, NULL, "the model has no c");
  assert_true(at(a, 3) == 1); /* nothing has changed */
  assert_int_equal(tg_load_state(m, f, .partial = true, .more = true), TG_OK);
  assert_true(at(a, 3) == 5 && at(b, 0) == 2 && tg_dtype(a) == TG_F16);
  tg_state_put(f, "b", tg_full(other, TG_SHAPE(1), 7)),
      tg_state_put(f, "bn.num_batches_tracked", tg_full(other, TG_SCALAR, 7));
  tg_release(tg_state_remove(f, "c"));
  assert_int_equal(tg_load_state(m, f), TG_OK); /* () takes (1,), and a counter is no surprise */
  assert_true(at(b, 0) == 7 && tg_ndim(b) == 0);
  tg_state_put(f, "a", tg_full(other, TG_SHAPE(2, 3), 5));
  assert_int_equal(tg_load_state(m, f), TG_ERR_SHAPE);
  refused(c, NULL, "a is (2, 2), in the file (2, 3)");
  tg_state_free(m), tg_state_free(f);
  tg_close(c), tg_close(other);
}

static void test_views(void **state) { /* .view: nothing is copied, so nothing can be assigned */
  (void)state;
  TgContext *c = open_on("CPU");
  TgTensor *w = tg_keep(tg_full(c, TG_SHAPE(2, 3), 4)), *to = tg_keep(tg_zeros(c, TG_SHAPE(2, 3)));
  TgState *s = tg_state_new(c), *f;
  tg_state_put(s, "w", w);
  assert_int_equal(tg_safe_save(s, path), TG_OK);
  tg_state_put(s, "w", to);
  f = tg_safe_load_file(c, path);
  assert_int_equal(tg_load_state(s, f, .view = true), TG_OK);
  uint64_t before = tg_counters(c).kernels;
  assert_true(at(to, 5) == 4);
  assert_int_equal(tg_counters(c).kernels, before); /* read where it is */
  refused(c, tg_assign(to, tg_zeros(c, TG_SHAPE(2, 3))), "opened for reading");
  tg_state_free(f);
  assert_true(at(to, 5) == 4); /* the model's handles hold the file */
  tg_state_free(s);
  assert_int_equal(tg_set_error(c, TG_ERR_LIMIT, "first"), TG_ERR_LIMIT);
  assert_int_equal(tg_set_error(c, TG_ERR_IO, "second"), TG_ERR_IO);
  assert_int_equal(tg_error(c), TG_ERR_LIMIT);
  refused(c, NULL, "first");
  assert_int_equal(tg_set_error(c, TG_OK, "none"), TG_OK);
  ok(c);
  tg_close(c);
}

/* ---- safetensors */
static void test_safe_dtypes(void **state) {
  (void)state;
  static const TgDType all[] = {TG_BOOL, TG_I8,  TG_U8,   TG_I16, TG_U16, TG_I32,     TG_U32,    TG_I64,
                                TG_U64,  TG_F16, TG_BF16, TG_F32, TG_F64, TG_FP8E4M3, TG_FP8E5M2};
  static const char *const devices[] = {"CPU", "INTERP", "INTERP:CUDA"};
  for (int dev = 0; dev < 3; dev++) {
    TgContext *c = open_on(devices[dev]);
    TgState *s = tg_state_new(c);
    char name[8];
    for (int i = 0; i < 15; i++)
      snprintf(name, sizeof name, "t%d", i),
          tg_state_put(s, name, tg_cast(tg_reshape(tg_arange(c, 0, 6), TG_SHAPE(2, 1, 3)), all[i]));
    tg_state_put(s, "scalar", tg_full(c, TG_SCALAR, -2.5)),
        tg_state_put(s, "none", tg_zeros(c, TG_SHAPE(0, 3)));
    assert_int_equal(tg_safe_save(s, path), TG_OK);
    assert_int_equal(tg_safe_save(s, path), TG_OK); /* over itself */
    tg_state_free(s);
    s = tg_state_from_file(c, path);
    ok(c);
    assert_int_equal(tg_state_count(s), 17);
    for (int i = 0; i < 15; i++) {
      snprintf(name, sizeof name, "t%d", i);
      TgTensor *t = tg_state_get(s, name);
      assert_int_equal(tg_dtype(t), all[i]);
      assert_int_equal(tg_ndim(t), 3);
      for (int k = 0; k < 6; k++)
        assert_true(at(t, k) == (i ? k : k > 0));
    }
    assert_true(at(tg_state_get(s, "scalar"), 0) == -2.5);
    assert_int_equal(tg_ndim(tg_state_get(s, "scalar")), 0);
    assert_int_equal(tg_dim(tg_state_get(s, "none"), 1), 3);
    assert_int_equal(tg_safe_save(s, path), TG_OK); /* over the file that its tensors are views of */
    tg_state_free(s);
    s = tg_safe_load(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
    assert_true(at(tg_state_get(s, "t12"), 5) == 5);
    tg_state_free(s);
    assert_int_equal(tg_safe_save(NULL, path), TG_ERR_VALUE);
    s = tg_state_new(c);
    assert_int_equal(tg_safe_save(s, path), TG_OK); /* nothing at all */
    assert_int_equal(tg_safe_save(s, "/nowhere/at/all"), TG_ERR_IO);
    refused(c, NULL, "/nowhere/at/all: No such file");
    tg_state_free(s);
    size_t n;
    char *p = whole(path, &n);
    assert_true(n == 64 && p[0] == 56 && !memcmp(p + 8, "{}      ", 8)); /* data would begin here */
    free(p);
    tg_close(c);
  }
}

/* Links stay, and the file that they lead to is replaced; a pipe is written to; a folder is refused. */
static void test_safe_places(void **state) {
  (void)state;
  static const char link[] = "test_files.link", pipe[] = "test_files.pipe";
  char got[4096];
  size_t n, k = 0;
  struct stat was;
  TgContext *c = open_on("CPU");
  TgState *s = tg_state_new(c);
  tg_state_put(s, "t", tg_arange(c, 0, 6));
  for (int there = 0; there < 2; there++) {
    remove(link), remove(path);
    if (there) assert_int_equal(tg_safe_save(s, path), TG_OK);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(tg_safe_save(s, link), TG_OK);
    assert_true(!lstat(link, &was) && S_ISLNK(was.st_mode));
    TgState *again = tg_safe_load_file(c, path);
    assert_true(at(tg_state_get(again, "t"), 5) == 5);
    tg_state_free(again);
  }
  char *file = whole(path, &n);
  remove(pipe);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  int fd = open(pipe, O_RDWR | O_NONBLOCK);
  assert_true(fd >= 0);
  assert_int_equal(tg_safe_save(s, pipe), TG_OK);
  for (ssize_t some = 1; k < n && some > 0; k += some > 0 ? (size_t)some : 0)
    some = read(fd, got + k, sizeof got - k);
  assert_true(k == n && !memcmp(got, file, n) && !lstat(pipe, &was) && S_ISFIFO(was.st_mode));
  assert_int_equal(tg_safe_save(s, "/tmp"), TG_ERR_IO);
  refused(c, NULL, "Is a directory");
  free(file), close(fd), remove(pipe), remove(link);
  tg_state_free(s), tg_close(c);
}

static void test_safe_damaged(void **state) {
  (void)state;

  static const struct {
    const char *header, *why;
    int data;
  } cases[] = {
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", NULL, 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}   ", NULL, 8},
      {"{\"__metadata__\":{\"x\":\"y\"},\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},\"b\":{"
       "\"dtype\":\"U8\",\"shape\":[0,7],\"data_offsets\":[4,4]}}",
       NULL, 4},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "8 bytes behind the last tensor",
       16},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", "ends at 8, the data at 7", 7},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "not [begin, end]", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,7]}}",
       "7 bytes for a shape and dtype of 8", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", "not [begin, end]", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", "not [begin, end]", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0.0,8]}}", "not [begin, end]", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,1e400]}}", "no JSON", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,99999999999999999999]}}", "no JSON", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "no whole number", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", "no whole number", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4,0],\"data_offsets\":[0,0]}}",
       "too many elements", 0},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
       "too many elements", 0},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}",
       "17 axes", 4},
      {"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}}", "dtype F4 is not known", 1},
      {"{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}", "dtype C64 is not known", 8},
      {"{\"a\":{\"dtype\":3,\"shape\":[2],\"data_offsets\":[0,8]}}", "an entry has dtype", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "an entry has dtype", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":1}}", "an entry has dtype",
       8},
      {"{\"a\":7}", "an entry has dtype", 8},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":["
       "1],\"data_offsets\":[2,6]}}",
       "b begins at 2, where 4 is next", 6},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":["
       "1],\"data_offsets\":[8,12]}}",
       "b begins at 8, where 4 is next", 12},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":["
       "1],\"data_offsets\":[0,4]}}",
       "b begins at 0, where 4 is next", 4},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":["
       "1],\"data_offsets\":[4,8]}}",
       "no JSON", 8},
      {"{\"__metadata__\":{\"x\":1}}", "x is no string", 0},
      {"{\"__metadata__\":[]}", "is no map", 0},
      {"[]", "does not begin with {", 0},
      {" {}", "does not begin with {", 0},
      {"{\"\xff\":1}", "no JSON", 0},
      {"{}x", "no JSON", 0},
      {"{", "a header of 1 bytes", 0}};

  TgContext *c = open_on("INTERP");
  char bytes[1024];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t n = strlen(cases[i].header);
    memset(bytes, 0, sizeof bytes), bytes[0] = (char)n, memcpy(bytes + 8, cases[i].header, n);
    TgState *s = tg_safe_load(tg_from_bytes(c, bytes, 8 + n + (size_t)cases[i].data, TG_U8));
    if (cases[i].why)
      refused(c, s, cases[i].why);
    else
      ok(c), assert_true(at(tg_state_get(s, "a"), 0) == 0), tg_state_free(s);
  }
  static const uint64_t lengths[] = {0, 1, 57, 100000001, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    memset(bytes, ' ', 64), memcpy(bytes, &lengths[i], 8);
    refused(c, tg_safe_load(tg_from_bytes(c, bytes, 64, TG_U8)), "a header of");
  }
  memset(bytes, '[', sizeof bytes), memcpy(bytes, "\xf8\x03\0\0\0\0\0\0{\"a\":", 13); /* nested without end */
  refused(c, tg_safe_load(tg_from_bytes(c, bytes, 1024, TG_U8)), "no JSON");
  size_t n = strlen(cases[0].header) + 16;
  memset(bytes, 0, sizeof bytes), bytes[0] = (char)(n - 16), memcpy(bytes + 8, cases[0].header, n - 16);
  for (size_t k = 0; k < n; k++)
    refused(c, tg_safe_load(tg_from_bytes(c, bytes, k, TG_U8)), "safetensors: ");
  refused(c, tg_safe_load(tg_zeros(c, TG_SHAPE(4, 4), .dtype = TG_U8)), "a file is a 1-D tensor of u8");
  refused(c, tg_safe_load_file(c, "/nowhere/at/all"), "/nowhere/at/all");
  file_write(bytes, 9);
  refused(c, tg_safe_load_file(c, path), path); /* the file is named */
  assert_null(tg_safe_load(NULL));
  tg_close(c);
}

/* two trained models: the digits that the README of the data says they get right */
static void test_mnist_cnn(void **state) {
  (void)state;
  const char *st, *pt, *data;
  NEED(st, "mnist-cnn/mnist.safetensors");
  NEED(pt, "mnist-cnn/mnist.pt");
  NEED(data, "mnist");
  for (int k = 0; k < 2; k++) {
    TgContext *c = open_on("CPU");
    TgTensor *d[4];
    assert_int_equal(tg_mnist(c, data, d), TG_OK);
    assert_int_equal(tg_dim(d[0], 0), 60000);
    assert_int_equal(tg_dim(d[2], 0), 10000);
    assert_int_equal(tg_ndim(d[0]), 4);
    assert_int_equal(tg_item_i64(tg_slice(d[3], 0, 0, 1)), 7);
    TgState *s = tg_state_from_file(c, k ? pt : st);
    ok(c);
#define T(name) tg_state_get(s, name)
    int wrong = 0;
    for (int i = 0; i < 10000; i += 1000)
      TG_SCOPE(c) {
        TgTensor *x = tg_div_scalar(
            tg_sub_scalar(tg_div_scalar(tg_cast(tg_slice(d[2], 0, i, i + 1000), TG_F32), 255), 0.1307),
            0.3081);
        x = tg_relu(tg_conv2d(x, T("conv1.weight"), .bias = T("conv1.bias")));
        x = tg_relu(tg_conv2d(x, T("conv2.weight"), .bias = T("conv2.bias")));
        x = tg_relu(tg_conv2d(x, T("conv3.weight"), .bias = T("conv3.bias")));
        x = tg_batch_norm(x, T("norm1.running_mean"), T("norm1.running_var"), .weight = T("norm1.weight"),
                          .bias = T("norm1.bias"));
        x = tg_linear(tg_relu(tg_linear(tg_flatten(x, 1, -1), T("fc1.weight"), T("fc1.bias"))),
                      T("fc2.weight"), T("fc2.bias"));
        x = tg_batch_norm(x, T("norm2.running_mean"), T("norm2.running_var"), .weight = T("norm2.weight"),
                          .bias = T("norm2.bias"));
        wrong += (int)tg_item_i64(
            tg_sum(tg_ne(tg_argmax(x, .axis = TG_AXES(1)), tg_cast(tg_slice(d[3], 0, i, i + 1000), TG_I32))));
      }
    ok(c);
    assert_int_equal(wrong, k ? 85 : 83);
    tg_state_free(s);
    tg_close(c);
  }
}

static void is_text(TgTensor *t, const char *want) {
  char got[64];
  assert_non_null(t);
  assert_int_equal(tg_numel(t), strlen(want));
  assert_int_equal(tg_read(t, got, strlen(want)), TG_OK);
  assert_memory_equal(got, want, strlen(want));
}

/* ---- archives */
static void test_zip(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP:CUDA"};
  for (int k = 0; k < 4; k++) {
    TgContext *c = open_on(devices[k / 2]);
    Bytes b = {.n = 0};
    zip_write(&b, zip_files, 4, k % 2);
    file_write(b.at, b.n);
    TgState *s = tg_zip_extract(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
    ok(c);
    const char *name;
    assert_int_equal(tg_state_count(s), 3);
    tg_state_at(s, 0, &name);
    assert_string_equal(name, "a/one");
    is_text(tg_state_get(s, "a/one"), "first"), is_text(tg_state_get(s, "two"), hello);
    assert_int_equal(tg_numel(tg_state_get(s, "none")), 0);
    tg_state_free(s);
    for (size_t n = 0; n < b.n; n++)
      refused(c, tg_zip_extract(tg_from_bytes(c, b.at, n, TG_U8)), "zip_extract: ");
    tg_close(c);
  }
}

static void test_zip_damaged(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");

  static const struct {
    int at;
    unsigned char put;
    const char *why;
  } cases[] = {/* in the directory's first entry, or from the end (negative) */
               {0, 'Q', "damaged"},       {8, 1, "encrypted"},      {10, 12, "method 12"},
               {10, 8, "says otherwise"}, {20, 4, "size is wrong"}, {21, 9, "size is wrong"},
               {24, 9, "size is wrong"},  {28, 200, "cut off"},     {28, 0, "no proper name"},
               {42, 1, "not where"},      {45, 0x7f, "not where"},  {46, 'x', "not where"},
               {46, 0, "no proper name"}, {47, 'x', "not where"},   {-24, 'Q', "end record"},
               {-14, 3, "in parts"},      {-8, 0x60, "outside"},    {-12, 5, "outside"},
               {-5, 0x7f, "outside"},     {-3, 9, "end record"}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Bytes b = {.n = 0};
    zip_write(&b, zip_files + 1, 2, false);
    size_t head = 0;
    while (memcmp(b.at + head, "PK\1\2", 4))
      head++;
    b.at[cases[i].at < 0 ? b.n - (size_t)-cases[i].at : head + (size_t)cases[i].at] = cases[i].put;
    refused(c, tg_zip_extract(tg_from_bytes(c, b.at, b.n, TG_U8)), cases[i].why);
  }
  for (int k = 0; k < 4; k++) {
    ZipFile f[2] = {zip_files[2], zip_files[2]};
    static const char *const why[] = {"there twice", "checksum", "checksum", "cannot come"};
    Bytes b = {.n = 0};
    if (k == 1) f[0].crc ^= 1;
    if (k == 2) f[0].size--;
    if (k == 3) f[0].size = 1 << 24;
    zip_write(&b, f, 2, false);
    refused(c, tg_zip_extract(tg_from_bytes(c, b.at, b.n, TG_U8)), k == 2 ? "zip_extract: " : why[k]);
  }
  Bytes b = {.n = 0}; /* two entries of the directory for one file: overlapping */
  zip_write(&b, zip_files + 1, 1, false);
  size_t head = 0;
  while (memcmp(b.at + head, "PK\1\2", 4))
    head++;
  Bytes twice = b;
  twice.n = head, add(&twice, b.at + head, 51), add(&twice, b.at + head, b.n - head);
  twice.at[twice.n - 16] = twice.at[twice.n - 14] = 2, twice.at[twice.n - 12] = 102;
  refused(c, tg_zip_extract(tg_from_bytes(c, twice.at, twice.n, TG_U8)), "overlaps");
  tg_close(c);
}

/* Sizes of 64 bits stand in an extra field, which ends where its entry says: what follows is not its own. */
static void test_zip_wide(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  for (int have = 0; have <= 12; have++) { /* bytes of the field's 12 that are counted as its entry's */
    Bytes b = {.n = 0}, wide;
    zip_write(&b, zip_files + 1, 1, false);
    size_t head = 0, end = b.n - 24;
    while (memcmp(b.at + head, "PK\1\2", 4))
      head++;
    unsigned char field[12] = {1, 0, 8, 0};
    memcpy(field + 4, b.at + head + 24, 4);
    memset(b.at + head + 24, 0xff, 4);
    wide = b, wide.n = end, add(&wide, field, sizeof field), add(&wide, b.at + end, 24);
    wide.at[head + 30] = (unsigned char)have, wide.at[head + 32] = (unsigned char)(12 - have); /* a comment */
    wide.at[wide.n - 12] = (unsigned char)(wide.at[wide.n - 12] + 12);
    TgState *s = tg_zip_extract(tg_from_bytes(c, wide.at, wide.n, TG_U8));
    if (have < 12)
      refused(c, s, "its zip64 sizes are missing");
    else
      ok(c), is_text(tg_state_get(s, zip_files[1].name), "first"), tg_state_free(s);
  }
  tg_close(c);
}

static void test_gunzip(void **state) {
  (void)state;
  TgContext *c = open_on("CPU");
  unsigned char two[2 * sizeof gzipped + 3] = {0};
  memcpy(two, gzipped, sizeof gzipped), memcpy(two + sizeof gzipped, gzipped, sizeof gzipped);
  is_text(tg_gunzip(tg_from_bytes(c, gzipped, sizeof gzipped, TG_U8)), hello);
  is_text(tg_gunzip(tg_from_bytes(c, two, sizeof two, TG_U8)),
          "hello hello hello hello\nhello hello hello hello\n");
  for (size_t n = 0; n < sizeof gzipped; n++)
    refused(c, tg_gunzip(tg_from_bytes(c, gzipped, n, TG_U8)), "gunzip: ");
  memcpy(two, gzipped, sizeof gzipped), two[sizeof gzipped - 5] ^= 1;
  refused(c, tg_gunzip(tg_from_bytes(c, two, sizeof gzipped, TG_U8)), "unpacking");
  tg_close(c);
}

static void test_tar(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP:CUDA"};
  char name[151];
  memset(name, 'n', 150), name[150] = 0;
  Bytes b = {.n = 0};
  tar_add(&b, "d/", '5', "", 0, NULL), tar_add(&b, "d/one", '0', "first", 5, NULL),
      tar_add(&b, "link", '2', "", 0, NULL), tar_add(&b, "two", 0, hello, 24, "far/away");
  tar_add(&b, "././@LongLink", 'L', name, 151, NULL), tar_add(&b, "nnn", '0', "third", 5, NULL);
  tar_add(&b, "pax", 'x', "16 path=\xc3\xa9t\xc3\xa9/x\n10 size=6\n", 26, NULL),
      tar_add(&b, "nnn", '0', "fourth", 6, NULL), tar_add(&b, "none", '0', "", 0, NULL);
  size_t end = b.n;
  memset(b.at + b.n, 0, 1024), b.n += 1024;
  for (int dev = 0; dev < 2; dev++) {
    TgContext *c = open_on(devices[dev]);
    file_write(b.at, b.n);
    TgState *s = tg_tar_extract(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
    ok(c);
    assert_int_equal(tg_state_count(s), 5);
    is_text(tg_state_get(s, "d/one"), "first"), is_text(tg_state_get(s, "far/away/two"), hello),
        is_text(tg_state_get(s, name), "third");
    is_text(tg_state_get(s, "\xc3\xa9t\xc3\xa9/x"), "fourth");
    tg_state_free(s);
    for (size_t n = 0; n<end + 512; n += n % 512> 1 && n % 512 < 510 ? 7 : 1)
      refused(c, tg_tar_extract(tg_from_bytes(c, b.at, n, TG_U8)), "tar_extract: ");
    tg_close(c);
  }
  TgContext *c = open_on("INTERP");

  static const struct {
    char type;
    const char *data, *why;
    size_t n;
  } cases[] = {{'S', "", "sparse", 0},
               {'x', "5 a=b\n", "damaged", 6},
               {'x', "99 path=x\n", "damaged", 10},
               {'x', "999999999999999999999 a=b\n", "damaged", 26},
               {'x', "7 pathx\n", "damaged", 8},
               {'x', "9 size=x\n", "no number", 9},
               {'x', "35 size=99999999999999999999999999\n", "number", 35},
               {'x', "30 GNU.sparse.name=abcdefghij\n", "sparse", 30}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Bytes d = {.n = 0};
    tar_add(&d, "x", cases[i].type, cases[i].data, cases[i].n, NULL), tar_add(&d, "f", '0', "data", 4, NULL);
    memset(d.at + d.n, 0, 1024), d.n += 1024;
    refused(c, tg_tar_extract(tg_from_bytes(c, d.at, d.n, TG_U8)), cases[i].why);
  }
  Bytes d = {.n = 0};
  tar_add(&d, "f", '0', "data", 4, NULL), tar_add(&d, "f", '0', "data", 4, NULL), memset(d.at + d.n, 0, 1024),
      d.n += 1024;
  refused(c, tg_tar_extract(tg_from_bytes(c, d.at, d.n, TG_U8)), "twice");
  d.at[0] ^= 1;
  refused(c, tg_tar_extract(tg_from_bytes(c, d.at, d.n, TG_U8)), "damaged");
  tg_close(c);
}

static void test_tensor_io(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP:CUDA"};
  for (int dev = 0; dev < 2; dev++) {
    TgContext *c = open_on(devices[dev]);
    TgTensor *t = tg_from_bytes(c, hello, 24, TG_U8);
    TgTensorIO *io = tg_tensor_io(t);
    char got[64];
    assert_int_equal(tg_tensor_io_read(io, got, 5), 5);
    assert_memory_equal(got, "hello", 5);
    assert_int_equal(tg_tensor_io_tell(io), 5);
    assert_int_equal(tg_tensor_io_seek(io, -6, SEEK_END), 18);
    assert_int_equal(tg_tensor_io_read(io, got, 64), 6);
    assert_memory_equal(got, "hello\n", 6);
    assert_int_equal(tg_tensor_io_read(io, got, 1), 0);
    assert_int_equal(tg_tensor_io_seek(io, 100, SEEK_CUR), 124);
    assert_int_equal(tg_tensor_io_read(io, got, 1), 0);
    assert_int_equal(tg_tensor_io_seek(io, -1, SEEK_SET), -1);
    assert_int_equal(tg_tensor_io_seek(io, INT64_MAX, SEEK_CUR), -1);
    assert_int_equal(tg_tensor_io_seek(io, 0, 99), -1);
    assert_int_equal(tg_tensor_io_tell(io), 124);
    tg_tensor_io_free(io), tg_tensor_io_free(NULL);
    refused(c, tg_tensor_io(tg_zeros(c, TG_SHAPE(2, 2), .dtype = TG_U8)), "1-D tensor of u8");
    refused(c, tg_tensor_io(tg_zeros(c, TG_SHAPE(2))), "1-D tensor of u8");
    tg_close(c);
  }
}

/* ---- torch checkpoints */
#ifdef TG_HAVE_JANSSON
/* each file of the set against what another unpickler found in it */
static void test_torch_files(void **state) {
  (void)state;
  const char *expected, *file;
  NEED(expected, "torch-pt/expected.json");
  json_t *all = json_load_file(expected, 0, NULL), *one, *want, *v;
  const char *name, *key;
  size_t i, tensors = 0;
  char sub[200];
  assert_non_null(all);
  TgContext *c = open_on("CPU");
  json_object_foreach(all, name, one) {
    snprintf(sub, sizeof sub, "torch-pt/%s", name);
    file = shared(sub);
    assert_non_null(file);
    TgValue *tree = tg_torch_load_file(c, file);
    if (json_object_get(one, "error")) {
      refused(c, tree, "no torch checkpoint");
      continue;
    }
    if (!tree) fail_msg("%s: %s", name, tg_errmsg(c));
    TgState *s = tg_get_state(c, tree, NULL);
    json_t *list = json_object_get(one, "tensors");
    if (list) {
      size_t have = tg_state_count(s);
      if (have != json_object_size(list))
        fail_msg("%s: %zu tensors, not %zu", name, have, json_object_size(list));
    }
    json_object_foreach(list, key, want) {
      static const char *const names[][2] = {
          {"float32", "f32"}, {"float64", "f64"}, {"float16", "f16"}, {"bfloat16", "bf16"}, {"int64", "i64"},
          {"int32", "i32"},   {"int16", "i16"},   {"int8", "i8"},     {"uint8", "u8"},      {"bool", "bool"}};
      TgTensor *t = tg_state_get(s, key);
      if (!t) fail_msg("%s: %s is missing", name, key);
      for (i = 0; strcmp(names[i][0], json_string_value(json_object_get(want, "dtype"))); i++)
        assert_true(i < 9);
      assert_string_equal(tg_dtype_name(tg_dtype(t)), names[i][1]);
      json_t *shape = json_object_get(want, "shape");
      assert_int_equal(tg_ndim(t), json_array_size(shape));
      for (int a = 0; a < tg_ndim(t); a++)
        assert_int_equal(tg_dim(t, a), json_integer_value(json_array_get(shape, (size_t)a)));
      double *got = calloc((size_t)tg_numel(t) + 1, sizeof *got);
      assert_int_equal(tg_read_f64(t, got, (size_t)tg_numel(t)), TG_OK);
      json_array_foreach(json_object_get(want, "first"), i, v) {
        const char *text = json_string_value(v);
        double x = json_is_null(v) ? NAN
                   : text          ? (*text == '-' ? -INFINITY : INFINITY)
                                   : json_number_value(v);
        if (!(got[i] == x || (x != x && got[i] != got[i])))
          fail_msg("%s: %s[%zu] is %.17g, not %.17g", name, key, i, got[i], x);
      }
      free(got);
      tensors++;
    }
    tg_state_free(s), tg_value_free(tree);
  }
  ok(c);
  assert_true(tensors > 100);
  /* 0.1 .. 0.6 and 0.01, 0.02: its bytes */
  TgValue *tree = tg_torch_load_file(c, shared("torch-pt/tar_weight_bias.tar"));
  TgState *s = tg_get_state(c, tree, "model.");
  assert_true((float)at(tg_state_get(s, "model.weight"), 5) == 0.6f &&
              tg_dim(tg_state_get(s, "model.weight"), 0) == 2 &&
              (float)at(tg_state_get(s, "model.bias"), 1) == 0.02f);
  tg_state_free(s), tg_value_free(tree);
  tree = tg_torch_load_file(c, shared("torch-pt/weights_with_config.pt"));
  assert_int_equal(tg_value_kind(tree), TG_KIND_MAP);
  tg_value_free(tree);
  tg_close(c);
  json_decref(all);
}
#endif
/* A pickle in the zip of a checkpoint, with a storage "0" of 16 floats 0 .. 15. */
static TgValue *unpickled(TgContext *c, const void *pickle, size_t n) {
  Bytes b = {.n = 0};
  checkpoint_write(&b, pickle, n);
  return tg_torch_load(tg_from_bytes(c, b.at, b.n, TG_U8));
}

static void test_torch_pickle(void **state) {
  (void)state;
  TgContext *c = open_on("CPU");
#define P(text) text, sizeof(text) - 1

  static const struct {
    const char *p;
    size_t n;
    const char *why;
  } cases[] = {{P("\x80\2cos\nsystem\nX\2\0\0\0lstR."), "os.system"},
               {P("\x80\2ctorch.storage\n_load_from_bytes\n(tR."), "torch.storage._load_from_bytes"},
               {P("\x80\4X\2\0\0\0osX\6\0\0\0system\x93."), "os.system"},
               {P("\x80\2K\1K\1\x85R."), "no global"},
               {P("\x80\2ctorch\nFloatStorage\n)R."), "call of a type"},
               {P("\x80\2K\1}b."), "what has none"},
               {P("\x80\2h\5."), "memo index"},
               {P("\x80\2K\1r\xff\xff\xff\xff."), "memo index"},
               {P("\x80\2."), "stack is empty"},
               {P("\x80\2K\1t."), "mark is missing"},
               {P("\x80\2\x8b\xff\xff\xff\xff."), "negative"},
               {P("\x80\2X\xff\xff\xff\x7f"
                  "."),
                "longer than"},
               {P("\x80\2\x8a\x09"
                  "123456789."),
                "64 bits"},
               {P("\x80\2]q\0h\0a."), "holds itself"},
               {P("\x80\2K\1K\2."), "more than one"},
               {P("\x80\2I1\n."), "opcode 0x49"},
               {P("\x80\2K\1"), "too early"},
               {P("\x80\x09N."), "protocol"},
               {P("\x80\2(K\1a."), "stack is empty"},
               {P("\x80\2K\1K\2a."), "no list or map"},
               {P("\x80\2}K\1e."), "mark is missing"},
               {P("\x80\2}(K\1u."), "no list or map"},
               {P("\x80\2}(]K\1u."), "neither text nor a whole number"},
               {P("\x80\2ccollections\nOrderedDict\n(](K\1eatR."), ""},
               {P("\x80\2" REBUILD "K\1)(tR."), "no global"},
               {P("\x80\2" REBUILD "K\1K\x10\x85K\1\x85\x89NtR."), "outside of storage 0"},
               {P("\x80\2" REBUILD "K\0K\3K\4\x86K\5K\1\x86\x89NtR."), "no permutation"},
               {P("\x80\2" REBUILD "K\0K\3K\4\x86K\0K\1\x86\x89NtR."), "no permutation"},
               {P("\x80\2" REBUILD "K\0K\3K\4\x86K\1K\1\x86\x89NtR."), "no permutation"},
               {P("\x80\2" REBUILD "J\xff\xff\xff\xffK\1\x85K\1\x85\x89NtR."), "fit together"},
               {P("\x80\2" REBUILD "K\0J\xff\xff\xff\xff\x85K\1\x85\x89NtR."), "number from 0 up"},
               {P("\x80\2" REBUILD "K\0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85K\1\x85\x89NtR."),
                "outside of storage 0"},
               {P("\x80\2" REBUILD "K\0\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x8a\x08\xff\xff\xff\xff\xff"
                  "\xff\xff\x7f\x86K\1K\1\x86\x89NtR."),
                "outside of storage 0"},
               {P("\x80\2" REBUILD "K\0K\2\x85\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85\x89NtR."),
                "outside of storage 0"},
               {P("\x80\2ctorch._utils\n_rebuild_tensor_v2\n(K\0K\0K\1\x85K\1\x85tR."), "without a storage"},
               {P("\x80\2ctorch._utils\n_rebuild_tensor_v2\n(K\0tR."), "without its parts"},
               {P("\x80\2ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
                  "1X\3\0\0\0cpuK\x10tQK\0K\1\x85K\1\x85\x89NtR."),
                "storage 1 is missing"}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    refused(c, unpickled(c, cases[i].p, cases[i].n), cases[i].why);
  static const char deep[] = "\x80\2"; /* lists in lists: at most so many */
  char *p = calloc(1, 5000);
  memcpy(p, deep, 2), memset(p + 2, ']', 2000), memset(p + 2002, 'a', 1999), p[4001] = '.';
  refused(c, unpickled(c, p, 4002), "nested more than");
  free(p);
  /* a permuted tensor, a view with an offset, one of size 0, one of a parameter; None, numbers, shared values
   */
  TgValue *v = unpickled(c, P(good_pickle));
  ok(c);
  TgState *s = tg_get_state(c, v, NULL);
  const TgValue *e = tg_value_get(v, "f");
  assert_int_equal(tg_value_count(v), 8);
  assert_int_equal(tg_value_kind(tg_value_get(v, "e")), TG_KIND_BOOL); /* set again: the last one */
  assert_true(tg_value_float(tg_value_at(e, 0)) == 1.5 && tg_value_int(tg_value_at(e, 1)) == -2 &&
              tg_value_kind(tg_value_at(e, 3)) == TG_KIND_NONE);
  assert_int_equal(tg_value_int(tg_value_key(v, 7)), 127);
  assert_int_equal(tg_value_int(tg_value_at(tg_value_at(v, 7), 1)), 2);
  assert_int_equal(tg_state_count(s), 6); /* a b c d f.2 g.2 */
  assert_ptr_equal(tg_state_get(s, "g.2"), tg_state_get(s, "a"));
  TgTensor *a = tg_state_get(s, "a"), *b = tg_state_get(s, "b");
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 4; k++)
      assert_true(at(a, 4 * i + k) == 2 + i + 3 * k);
  assert_int_equal(tg_ndim(b), 3);
  for (int k = 0; k < 6; k++)
    assert_true(at(b, k) == 4 + k);
  assert_int_equal(tg_dim(tg_state_get(s, "c"), 1), 3);
  tg_state_free(s), tg_value_free(v);
  for (size_t n = 0; n + 1 < sizeof good_pickle - 1; n++)
    refused(c, unpickled(c, good_pickle, n), "the pickle is damaged");
  tg_close(c);
}

/* The containers before the zip: what their pickles say about the numbers that follow. */
static void test_torch_old(void **state) {
  (void)state;
  TgContext *c = open_on("CPU");
  Bytes b = {.n = 0};

#define STREAM_HEAD "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}(X\r\0\0\0little_endian"
#define STREAM_TAIL "u.\x80\2}.\x80\2]."
  static const char little[] = STREAM_HEAD "\x88" STREAM_TAIL, big[] = STREAM_HEAD "\x89" STREAM_TAIL;
  TgValue *v = tg_torch_load(tg_from_bytes(c, little, sizeof little - 1, TG_U8));
  assert_int_equal(tg_value_kind(v), TG_KIND_MAP);
  tg_value_free(v);
  refused(c, tg_torch_load(tg_from_bytes(c, big, sizeof big - 1, TG_U8)),
          "the numbers are not little-endian");

  static const struct {
    const char *p;
    size_t n;
  } storages[] = {{P("\x80\2K\1.\x80\2X\1\0\0\0k.")},
                  {P("\x80\2K\1.\x80\2(X\1\0\0\0kX\3\0\0\0cput.")},
                  {P("\x80\2K\1.\x80\2(X\1\0\0\0kX\3\0\0\0cpuX\1\0\0\0xt.")}};

  for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
    b.n = 0, tar_add(&b, "pickle", '0', "\x80\2}.", 4, NULL);
    tar_add(&b, "storages", '0', storages[i].p, storages[i].n, NULL), add_le(&b, 0, 1024);
    refused(c, tg_torch_load(tg_from_bytes(c, b.at, b.n, TG_U8)), "a storage without key, place and type");
  }
  tg_close(c);
}

/* each container, cut off at every byte, and with every byte changed */
static void test_torch_cut(void **state) {
  (void)state;
  static const char *const names[] = {"torch-pt/simple_legacy.pt", "torch-pt/boolean.pt",
                                      "torch-pt/tar_weight_bias.tar"};
  const char *file;
  for (int k = 0; k < 3; k++) {
    NEED(file, names[k]);
    TgContext *c = open_on("INTERP");
    size_t n;
    char *p = whole(file, &n);
    for (size_t i = 0; i < (k == 2 ? 3072 : n); i += k == 2 ? 5 : 1) {
      char *cut = malloc(i + 1); /* memory of its own, so that a sanitizer sees a read past it */
      memcpy(cut, p, i);
      TG_SCOPE(c)
      refused(c, tg_torch_load(tg_borrow(c, cut, TG_U8, TG_SHAPE((int64_t)i), NULL, NULL)), "torch_load: ");
      free(cut);
      p[i] ^= (char)(1 << i % 8);
      TG_SCOPE(c) { /* any answer will do */
        TgValue *v = tg_torch_load(tg_from_bytes(c, p, n, TG_U8));
        tg_state_free(v ? tg_get_state(c, v, NULL) : NULL), tg_value_free(v);
      }
      tg_clear_error(c);
      p[i] ^= (char)(1 << i % 8);
    }
    free(p);
    tg_close(c);
  }
}

/* ---- gguf */
static void test_gguf_golden(void **state) { /* every type that ggml still has, against ggml's own values */
  (void)state;
  const char *file;
  NEED(file, "ggml-golden/ggml-dequant-golden.gguf");
  static const char *const devices[] = {"CPU", "INTERP"};
  for (int dev = 0; dev < 2; dev++) {
    TgContext *c = open_on(devices[dev]);
    TgValue *v = tg_gguf_load_file(c, file);
    ok(c);
    const TgValue *t = tg_value_get(v, "tensors"), *kv = tg_value_get(v, "kv");
    int compared = 0, left = 0;
    assert_int_equal(tg_value_int(tg_value_get(kv, "general.alignment")), 64);
    for (size_t i = 0; i < tg_value_count(t); i++) {
      char name[80];
      snprintf(name, sizeof name, "%s", tg_value_string(tg_value_key(t, i), NULL));
      char *end = strrchr(name, '.');
      if (!end || strcmp(end, ".q")) continue;
      if (tg_value_kind(tg_value_at(t, i)) == TG_KIND_OTHER) {
        left++;
        assert_true(!strncmp(name, "iq", 2));
        continue;
      }
      strcpy(end, ".f32");
      TgTensor *q = tg_value_tensor(tg_value_at(t, i)), *want = tg_value_tensor(tg_value_get(t, name));
      static double a[1024], b[1024];
      assert_int_equal(tg_numel(q), 1024);
      assert_int_equal(tg_read_f64(q, a, 1024), TG_OK);
      assert_int_equal(tg_read_f64(want, b, 1024), TG_OK);
      for (int k = 0; k < 1024; k++) /* an ulp of the larger of product and sum */
        if (!(fabs(a[k] - b[k]) <=
              fabs(b[k]) * 1.2e-7 +
                  (strstr("q4_1.f32 q5_1.f32 q2_K.f32 q4_K.f32 q5_K.f32", name) ? 2e-7 : 0)))
          fail_msg("%s on %s: [%d] is %.9g, not %.9g", name, devices[dev], k, a[k], b[k]);
      compared++;
    }
    assert_int_equal(compared, 20);
    assert_int_equal(left, 7);
    tg_value_free(v);
    refused(c, tg_state_from_file(c, file), "has a type that is not read here");
    tg_close(c);
  }
}

static double off(const float *a, const double *b) { /* of 1024 values, as a share of their size */
  double e = 0, all = 0;
  for (int k = 0; k < 1024; k++)
    e += ((double)a[k] - b[k]) * ((double)a[k] - b[k]), all += b[k] * b[k];
  return sqrt(e / all);
}

/* What is encoded here is at most as far off as what ggml's reference makes of the same values; and the place
 * of a tensor is where its bytes are. */
static void test_ggml_encode(void **state) {
  (void)state;
  const char *file;
  NEED(file, "ggml-golden/ggml-dequant-golden.gguf");
  TgContext *c = open_on("CPU");
  TgValue *v = tg_gguf_load_file(c, file);
  ok(c);
  const TgValue *t = tg_value_get(v, "tensors"), *places = tg_value_get(v, "places");
  static double src[1024], theirs[1024];
  static float x[1024], got[1024], mean[1024];
  static uint8_t bytes[4096], again[4096];
  assert_int_equal(tg_read_f64(tg_value_tensor(tg_value_get(t, "src")), src, 1024), TG_OK);
  for (int k = 0; k < 1024; k++)
    x[k] = (float)src[k];
  int encoded = 0;
  for (size_t i = 0; i < tg_value_count(places); i++) {
    const TgValue *at = tg_value_at(places, i);
    int type = (int)tg_value_int(tg_value_at(at, 0));
    size_t n = (size_t)tg_value_int(tg_value_at(at, 2));
    const char *name = tg_value_string(tg_value_key(places, i), NULL);
    if (!strstr(name, ".q") || n > sizeof bytes || tg_value_kind(tg_value_at(t, i)) != TG_KIND_TENSOR)
      continue;
    FILE *f = fopen(file, "rb");
    fseek(f, (long)tg_value_int(tg_value_at(at, 1)), SEEK_SET);
    assert_int_equal(fread(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(tg_read_f64(tg_value_tensor(tg_value_at(t, i)), theirs, 1024), TG_OK);
    tg_read(tg_cast(tg_ggml_data_to_tensor(tg_from_bytes(c, bytes, n, TG_U8), 1024, type), TG_F32), got,
            sizeof got);
    for (int k = 0; k < 1024; k++)
      assert_true((double)got[k] == theirs[k]);
    double of_theirs = off(got, src);
    if (tg_ggml_encode(c, type, x, 1024, again, n)) {
      assert_non_null(strstr(tg_errmsg(c), "nothing is made of type"));
      tg_clear_error(c);
      continue;
    }
    memcpy(mean, got, sizeof mean);
    tg_read(tg_cast(tg_ggml_data_to_tensor(tg_from_bytes(c, again, n, TG_U8), 1024, type), TG_F32), got,
            sizeof got);
    ok(c);
    if (!(off(got, src) <= of_theirs * 1.001))
      fail_msg("%s: off by %g, ggml's by %g", name, off(got, src), of_theirs);
    encoded++;
    /* blocks of one scale come back as they were */
    if (type != 8 && type != 1 && type != 30) continue;
    assert_int_equal(tg_ggml_encode(c, type, mean, 1024, again, n), TG_OK);
    tg_read(tg_cast(tg_ggml_data_to_tensor(tg_from_bytes(c, again, n, TG_U8), 1024, type), TG_F32), got,
            sizeof got);
    assert_true(off(got, theirs) < (type == 8 ? 1e-3 : 1e-12));
  }
  assert_int_equal(encoded, 12);
  float wrong[32] = {NAN};
  assert_int_equal(tg_ggml_encode(c, 2, x, 33, again, 18), TG_ERR_VALUE), tg_clear_error(c);
  assert_int_equal(tg_ggml_encode(c, 2, x, 32, again, 17), TG_ERR_VALUE), tg_clear_error(c);
  assert_int_equal(tg_ggml_encode(c, 2, NULL, 32, again, 18), TG_ERR_VALUE), tg_clear_error(c);
  assert_int_equal(tg_ggml_encode(c, 99, x, 32, again, 18), TG_ERR_VALUE), tg_clear_error(c);
  assert_int_equal(tg_ggml_encode(c, 2, wrong, 32, again, 18), TG_ERR_VALUE), tg_clear_error(c);
  assert_int_equal(tg_ggml_encode(c, 0, wrong, 1, again, 4), TG_OK); /* f32 has it */
  memset(wrong, 0, sizeof wrong);
  static const int types[] = {2, 3, 6, 7, 8};
  for (int k = 0; k < 5; k++) { /* zeros are zeros */
    size_t n = (size_t[]){18, 20, 22, 24, 34}[k];
    assert_int_equal(tg_ggml_encode(c, types[k], wrong, 32, again, n), TG_OK);
    tg_read(tg_cast(tg_ggml_data_to_tensor(tg_from_bytes(c, again, n, TG_U8), 32, types[k]), TG_F32), got,
            128);
    for (int i = 0; i < 32; i++)
      assert_true(got[i] == 0);
  }
  tg_value_free(v), tg_close(c);
}

static void test_ggml_blocks(void **state) { /* blocks whose values can be told by hand */
  (void)state;
  TgContext *c = open_on("INTERP");
  unsigned char b[256] = {0};
  double v[256];
#define READ(n, bytes_, type)                                                                                \
  do {                                                                                                       \
    TgTensor *t_ = tg_ggml_data_to_tensor(tg_from_bytes(c, b, bytes_, TG_U8), n, type);                      \
    ok(c);                                                                                                   \
    assert_int_equal(tg_read_f64(t_, v, n), TG_OK);                                                          \
  } while (0)
  b[1] = 0x40, b[2] = 0x9f, b[17] = 0x01; /* Q4_0: d = 2 */
  READ(32, 18, 2);
  assert_true(v[0] == 14 && v[16] == 2 && v[15] == -14 && v[31] == -16 && v[1] == -16);
  b[3] = 0x3c, b[2] = 0, b[4] = 0x9f, b[17] = 0, b[19] = 0x01; /* Q4_1: d = 2, m = 1 */
  READ(32, 20, 3);
  assert_true(v[0] == 31 && v[16] == 19 && v[15] == 3 && v[31] == 1);
  memset(b, 0, sizeof b), b[1] = 0x3c, b[2] = 1, b[4] = 2, b[6] = 0xf3; /* Q5_0: d = 1, fifth bits 0 and 17 */
  READ(32, 22, 6);
  assert_true(v[0] == 3 && v[16] == -1 && v[17] == 0 && v[1] == -16);
  memset(b, 0, sizeof b), b[1] = 0x3c, b[2] = 0x80, b[33] = 5; /* Q8_0 */
  READ(32, 34, 8);
  assert_true(v[0] == -128 && v[31] == 5 && v[7] == 0);
  memset(b, 0, sizeof b), b[0] = 129, b[1] = 0xf7; /* MXFP4: 2^1; 12, -12 */
  READ(32, 17, 39);
  assert_true(v[0] == 24 && v[16] == -24 && v[1] == 0);
  b[0] = 0; /* 2^-128: a denormal */
  READ(32, 17, 39);
  assert_true(v[0] == 12 * ldexp(1, -128) && v[16] == -12 * ldexp(1, -128));
  memset(b, 0, sizeof b), b[0] = 0x38, b[1] = 0x7f, b[4] = 0x27, b[12] = 0x77; /* NVFP4: scale 1, then none */
  READ(64, 36, 40);
  assert_true(v[0] == 6 && v[8] == 1 && v[16] == 0);
  memset(b, 0, sizeof b), b[1] = 0x3c, b[2] = 5; /* Q1_0 */
  READ(128, 18, 41);
  assert_true(v[0] == 1 && v[1] == -1 && v[2] == 1 && v[127] == -1);
  READ(64, 18, 42); /* Q2_0: 1, 1, 0, .. less 1 */
  assert_true(v[0] == 0 && v[1] == 0 && v[2] == -1);
  float f[2] = {1.5f, -2};
  assert_true(at(tg_ggml_data_to_tensor(tg_from_bytes(c, f, 8, TG_U8), 2, 0), 1) == -2);
  assert_int_equal(tg_numel(tg_ggml_data_to_tensor(tg_from_bytes(c, f, 8, TG_U8), 0, 2)), 0);
  refused(c, tg_ggml_data_to_tensor(tg_from_bytes(c, b, 18, TG_U8), 32, 4), "type 4 is not known");
  refused(c, tg_ggml_data_to_tensor(tg_from_bytes(c, b, 18, TG_U8), 32, -1), "type -1 is not known");
  refused(c, tg_ggml_data_to_tensor(tg_from_bytes(c, b, 66, TG_U8), 256, 16), "IQ2_XXS is not read");
  refused(c, tg_ggml_data_to_tensor(tg_from_bytes(c, b, 18, TG_U8), 33, 2), "no whole blocks");
  refused(c, tg_ggml_data_to_tensor(tg_from_bytes(c, b, 18, TG_U8), 64, 2),
          "64 elements of Q4_0 in 18 bytes");
  refused(c, tg_ggml_data_to_tensor(tg_zeros(c, TG_SHAPE(18)), 32, 2), "1-D tensor of u8");
  assert_string_equal(tg_ggml_type_name(12), "Q4_K");
  assert_null(tg_ggml_type_name(99));
  tg_close(c);
}

static void put_le(Gguf *g, size_t where, uint64_t v, int n) {
  for (int i = 0; i < n; i++)
    g->b.at[where + (size_t)i] = (unsigned char)(v >> 8 * i);
}

static void test_gguf(void **state) {
  (void)state;
  Gguf g;
  static const char *const devices[] = {"CPU", "INTERP:CUDA"};
  for (int dev = 0; dev < 2; dev++) {
    TgContext *c = open_on(devices[dev]);
    gguf_write(&g);
    for (int version = 2; version < 4; version++) {
      put_le(&g, 4, (uint64_t)version, 4);
      file_write(g.b.at, g.b.n);
      TgValue *v = tg_gguf_load_file(c, path);
      ok(c);
      const TgValue *kv = tg_value_get(v, "kv"), *t = tg_value_get(v, "tensors");
      assert_string_equal(tg_value_string(tg_value_get(kv, "a.text"), NULL), "value");
      assert_int_equal(tg_value_count(tg_value_get(kv, "b.list")), 2);
      assert_string_equal(tg_value_string(tg_value_at(tg_value_get(kv, "b.list"), 0), NULL), "x");
      assert_true(at(tg_value_tensor(tg_value_get(kv, "c.nums")), 1) == -1);
      assert_true(tg_value_int(tg_value_get(kv, "d.flag")) == 1 &&
                  tg_value_float(tg_value_get(kv, "e.f64")) == 1.5);
      TgTensor *w = tg_value_tensor(tg_value_get(t, "w"));
      assert_true(tg_dim(w, 0) == 2 && tg_dim(w, 1) == 3 && at(w, 5) == 5 &&
                  at(tg_value_tensor(tg_value_get(t, "q")), 16) == 2);
      tg_value_free(v);
      TgState *s = tg_state_from_file(c, path);
      ok(c);
      assert_int_equal(tg_state_count(s), 2);
      assert_true(at(tg_state_get(s, "w"), 4) == 4);
      tg_state_free(s);
    }
    for (size_t n = 0; n < g.b.n; n++) {
      char *cut = malloc(n + 1);
      memcpy(cut, g.b.at, n);
      TG_SCOPE(c) refused(c, tg_gguf_load(tg_from_bytes(c, cut, n, TG_U8)), "gguf: ");
      free(cut);
    }
    tg_close(c);
  }
  TgContext *c = open_on("INTERP");
#define BAD(where, value, size_, why)                                                                        \
  do {                                                                                                       \
    gguf_write(&g);                                                                                          \
    put_le(&g, g.where, value, size_);                                                                       \
    refused(c, tg_gguf_load(tg_from_bytes(c, g.b.at, g.b.n, TG_U8)), why);                                   \
  } while (0)
  static const uint64_t versions[] = {0, 1, 4, 0x02000000, 0x03000000};
  for (int i = 0; i < 5; i++)
    gguf_write(&g), put_le(&g, 4, versions[i], 4),
        refused(c, tg_gguf_load(tg_from_bytes(c, g.b.at, g.b.n, TG_U8)), i > 2 ? "big-endian" : "version");
  gguf_write(&g), g.b.at[0] = 'g',
                  refused(c, tg_gguf_load(tg_from_bytes(c, g.b.at, g.b.n, TG_U8)), "no gguf file");
  static const uint64_t huge[] = {UINT64_MAX, (uint64_t)1 << 63, (uint64_t)1 << 61, (uint64_t)1 << 60, 1000};
  for (int i = 0; i < 5; i++) {
    BAD(tensors, huge[i], 8, "more entries");
    BAD(kvs, huge[i], 8, "more entries");
    BAD(key, huge[i], 8, "");
    BAD(text, huge[i], 8, "");
    BAD(array_count, huge[i], 8, "longer than the file");
    BAD(dim, huge[i], 8, "");
    BAD(offset, huge[i], 8, "where 0 is next");
    BAD(name, huge[i], 8, "too long");
  }
  BAD(key, 0, 8, "");
  BAD(key + 8, 0, 1, "0 byte");
  BAD(second + 8, 'b' | '.' << 8 | (uint64_t)0x7473696c << 16, 6, "b.list is there twice");
  BAD(type, 13, 4, "unknown type");
  BAD(array_type, 13, 4, "unknown type");
  BAD(array_type, 9, 4, "array of arrays");
  BAD(flag, 2, 1, "neither 0 nor 1");
  BAD(align, 0, 4, "power of two");
  BAD(align, 3, 4, "power of two");
  BAD(align - 4, 5, 4, "power of two");
  BAD(align, 0x80000000, 4, "");
  BAD(rank, 5, 4, "more than 4 axes");
  BAD(rank, UINT32_MAX, 4, "more than 4 axes");
  BAD(dim, 0, 8, "cannot be");
  BAD(dim + 8, (uint64_t)1 << 62, 8, "too many elements");
  BAD(ttype, 4, 4, "type 4 is not known");
  BAD(ttype, UINT32_MAX, 4, "is not known");
  BAD(ttype, 2, 4, "a row is no whole number");
  BAD(offset, 1, 8, "where 0 is next");
  BAD(name, 0, 8, "");
  BAD(name + 8, 'q', 1, "tensor q is there twice");
  gguf_write(&g);
  for (size_t i = 0; i < g.b.n; i++) { /* every byte changed: any answer will do */
    g.b.at[i] ^= (unsigned char)(1 << i % 8);
    TG_SCOPE(c) tg_value_free(tg_gguf_load(tg_from_bytes(c, g.b.at, g.b.n, TG_U8)));
    tg_clear_error(c);
    g.b.at[i] ^= (unsigned char)(1 << i % 8);
  }
  tg_close(c);
}

static void part_write(const char *name, int no, int count, const char *tensor) {
  Bytes b = {.n = 0};
  float f[4] = {(float)no, 1, 2, 3};
  add(&b, "GGUF", 4), add_le(&b, 3, 4), add_le(&b, 1, 8), add_le(&b, 2, 8), add_text(&b, "split.no"),
      add_le(&b, 2, 4), add_le(&b, (uint64_t)no, 2);
  add_text(&b, "split.count"), add_le(&b, 2, 4), add_le(&b, (uint64_t)count, 2);
  add_text(&b, tensor), add_le(&b, 1, 4), add_le(&b, 4, 8), add_le(&b, 0, 4), add_le(&b, 0, 8);
  while (b.n % 32)
    b.at[b.n++] = 0;
  add(&b, f, 16);
  char full[128];
  snprintf(full, sizeof full, "%s/%s", dir, name);
  FILE *f2 = fopen(full, "wb");
  assert_int_equal(fwrite(b.at, 1, b.n, f2), b.n);
  fclose(f2);
}

static void test_gguf_split(void **state) {
  (void)state;
  TgContext *c = open_on("CPU");
  char first[128], third[128], other[128];
  snprintf(first, sizeof first, "%s/m-00001-of-00003.gguf", dir),
      snprintf(third, sizeof third, "%s/m-00003-of-00003.gguf", dir),
      snprintf(other, sizeof other, "%s/m.gguf", dir);
  part_write("m-00001-of-00003.gguf", 0, 3, "a"), part_write("m-00002-of-00003.gguf", 1, 3, "b");
  refused(c, tg_gguf_load_file(c, first), "m-00003-of-00003.gguf: No such file");
  part_write("m-00003-of-00003.gguf", 2, 3, "c");
  TgState *s = tg_state_from_file(c, first);
  ok(c);
  const char *name;
  assert_int_equal(tg_state_count(s), 3);
  for (int i = 0; i < 3; i++)
    assert_true(at(tg_state_at(s, (size_t)i, &name), 0) == i && name[0] == "abc"[i]);
  tg_state_free(s);
  refused(c, tg_gguf_load_file(c, third), "not named as the first");
  part_write("m.gguf", 0, 3, "a");
  refused(c, tg_gguf_load_file(c, other), "not named as the first");
  part_write("m-00003-of-00003.gguf", 1, 3, "c");
  refused(c, tg_gguf_load_file(c, first), "part 2 of 3, where 3 of 3 is expected");
  part_write("m-00003-of-00003.gguf", 2, 4, "c");
  refused(c, tg_gguf_load_file(c, first), "part 3 of 4, where 3 of 3 is expected");
  part_write("m-00003-of-00003.gguf", 2, 3, "b");
  refused(c, tg_gguf_load_file(c, first), "tensor b is in two parts");
  for (int i = 1; i < 4; i++)
    snprintf(third, sizeof third, "%s/m-%05d-of-00003.gguf", dir, i), unlink(third);
  unlink(other);
  tg_close(c);
}

static void test_gguf_models(void **state) { /* real files: a model's two forms agree, and vocabularies */
  (void)state;
  const char *f32, *q8, *vocab;
  NEED(f32, "stories260K/stories260K-f32.gguf");
  NEED(q8, "stories260K/stories260K-q8_0.gguf");
  NEED(vocab, "gguf-vocab/ggml-vocab-gpt-2.gguf");
  TgContext *c = open_on("CPU");
  TgState *a = tg_state_from_file(c, f32), *b = tg_state_from_file(c, q8);
  ok(c);
  assert_int_equal(tg_state_count(a), tg_state_count(b));
  TgTensor *x = tg_state_get(a, "blk.0.ffn_up.weight"), *y = tg_state_get(b, "blk.0.ffn_up.weight");
  assert_true(tg_item_f64(tg_max(tg_abs(tg_sub(x, y)))) < 0.02 * tg_item_f64(tg_max(tg_abs(x))));
  tg_state_free(a), tg_state_free(b);
  TgValue *v = tg_gguf_load_file(c, vocab);
  ok(c);
  assert_int_equal(tg_value_count(tg_value_get(tg_value_get(v, "kv"), "tokenizer.ggml.tokens")), 50257);
  assert_int_equal(
      tg_numel(tg_value_tensor(tg_value_get(tg_value_get(v, "kv"), "tokenizer.ggml.token_type"))), 50257);
  tg_value_free(v);
  tg_close(c);
}

/* ---- data sets */
static void test_datasets(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  TgTensor *t = tg_idx(tg_from_bytes(c, idx, sizeof idx, TG_U8)), *d[4];
  ok(c);
  assert_true(tg_dim(t, 0) == 2 && tg_dim(t, 1) == 3 && at(t, 5) == 6);
  for (size_t n = 0; n < sizeof idx; n++)
    refused(c, tg_idx(tg_from_bytes(c, idx, n, TG_U8)), "idx: ");
  unsigned char bad[sizeof idx];

  static const struct {
    int at, v;
  } spoil[] = {{0, 1}, {2, 9}, {3, 0}, {3, 17}, {3, 3}, {4, 255}, {7, 0}, {11, 4}};

  for (size_t i = 0; i < sizeof spoil / sizeof *spoil; i++) {
    memcpy(bad, idx, sizeof bad), bad[spoil[i].at] = (unsigned char)spoil[i].v;
    refused(c, tg_idx(tg_from_bytes(c, bad, sizeof bad, TG_U8)), "idx: ");
  }
  assert_int_equal(tg_mnist(c, "/nowhere", d), TG_ERR_IO);
  refused(c, NULL, "/nowhere/train-images-idx3-ubyte");
  assert_int_equal(tg_cifar(c, "/nowhere", d), TG_ERR_IO);
  refused(c, NULL, "/nowhere/data_batch_1.bin");
  char name[128]; /* six batches of three records: label i, then bytes that tell their place */
  unsigned char r[3 * 3073];
  for (int i = 0; i < 6; i++) {
    snprintf(name, sizeof name, i < 5 ? "%s/data_batch_%d.bin" : "%s/test_batch.bin", dir, i + 1);
    for (int k = 0; k < 3 * 3073; k++)
      r[k] = (unsigned char)(k % 3073 ? (k % 3073 - 1) / 32 + i : 3 * i + k / 3073);
    FILE *f = fopen(name, "wb");
    assert_int_equal(fwrite(r, 1, sizeof r, f), sizeof r);
    fclose(f);
  }
  assert_int_equal(tg_cifar(c, dir, d), TG_OK);
  assert_true(tg_dim(d[0], 0) == 15 && tg_dim(d[0], 1) == 3 && tg_dim(d[0], 3) == 32 && tg_dim(d[2], 0) == 3);
  for (int i = 0; i < 15; i++)
    assert_true(at(d[1], i) == i);
  assert_true(at(d[3], 2) == 17 && at(d[0], 3072 * 4 + 33) == 2 && at(d[2], 1024) == 37);
  for (int i = 0; i < 6; i++)
    snprintf(name, sizeof name, i < 5 ? "%s/data_batch_%d.bin" : "%s/test_batch.bin", dir, i + 1),
        unlink(name);
  const char *batch = shared("cifar10/data_batch_1_first2000.bin.gz");
  if (batch) {
    snprintf(name, sizeof name, "%.*s", (int)strlen(batch) - 3, batch);
    t = tg_open_data(c, name);
    assert_int_equal(tg_numel(t), 2000 * 3073);
    assert_int_equal(tg_item_i64(tg_max(tg_select(tg_reshape(t, TG_SHAPE(-1, 3073)), 1, 0))), 9);
  }
  tg_close(c);
}

/* NumPy's arrays: the corner cases of the shared data, and what is written read back. */
static void is_npy(TgContext *c, const char *name, TgDType d, int nd, const int64_t *dims,
                   const double *want) {
  char *p;
  NEED(p, name);
  TgTensor *t = tg_npy_load_file(c, p);
  ok(c);
  assert_int_equal(tg_dtype(t), d);
  assert_int_equal(tg_ndim(t), nd);
  for (int i = 0; i < nd; i++)
    assert_int_equal(tg_dim(t, i), dims[i]);
  double got[64];
  assert_true(tg_numel(t) <= 64);
  if (tg_numel(t)) assert_int_equal(tg_read_f64(t, got, (size_t)tg_numel(t)), TG_OK);
  for (int i = 0; want && i < tg_numel(t); i++)
    assert_true(got[i] == want[i]);
}

static void test_npy(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  double grid[24] = {0};
  for (int i = 0; i < 24; i++)
    grid[i] = i;
  is_npy(c, "npz/fortran_f4.npy", TG_F32, 3, (int64_t[]){2, 3, 4}, grid);
  is_npy(c, "npz/big_endian_f8.npy", TG_F64, 3, (int64_t[]){2, 3, 4}, grid);
  is_npy(c, "npz/scalar_i8.npy", TG_I64, 0, NULL, (double[]){-7});
  is_npy(c, "npz/empty_0x3.npy", TG_F16, 2, (int64_t[]){0, 3}, NULL);
  char *p;
  NEED(p, "npz/version2_u1.npy");
  assert_non_null(tg_npy_load_file(c, p));
  static const TgDType dtypes[] = {TG_BOOL, TG_I8,  TG_U8,  TG_I16, TG_U16, TG_I32,
                                   TG_U32,  TG_I64, TG_U64, TG_F16, TG_F32, TG_F64};
  for (int i = 0; i < 12; i++)
    for (int nd = 0; nd < 3; nd++) {
      TgTensor *t = tg_cast(tg_arange(c, 0, nd == 2 ? 6 : nd ? 3 : 1, .dtype = TG_F32), dtypes[i]);
      t = tg_reshape(t, nd, (const int64_t[]){nd == 2 ? 2 : 3, 3});
      assert_int_equal(tg_npy_save(t, path), TG_OK);
      TgTensor *back = tg_npy_load_file(c, path);
      ok(c);
      assert_int_equal(tg_dtype(back), dtypes[i]);
      assert_true(tg_item_i64(tg_all(tg_eq(back, t))) == 1 && tg_ndim(back) == nd);
    }
  assert_int_equal(tg_npy_save(tg_bfloat16(tg_ones(c, TG_SHAPE(2))), path), TG_ERR_DTYPE);
  tg_clear_error(c);
  assert_int_equal(tg_npy_save(tg_ones(c, TG_SHAPE(2)), "/nonexistent/x.npy"), TG_ERR_IO);
  tg_clear_error(c);
  /* every way to cut it off, and wrong headers */
  assert_int_equal(tg_npy_save(tg_ones(c, TG_SHAPE(2, 3)), path), TG_OK);
  size_t n;
  char *whole_file = whole(path, &n);
  for (size_t k = 0; k < n; k += k < 130 ? 1 : 5) {
    assert_null(tg_npy_load(tg_from_bytes(c, whole_file, k, TG_U8)));
    assert_int_equal(tg_error(c), TG_ERR_VALUE);
    tg_clear_error(c);
  }
  static const char *const headers[] = {
      "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
      "{'descr': '<f4', 'shape': (4611686018427387904, 8), }",
      "{'descr': [('a', '<f4')], 'shape': (2,), }",
      "{'shape': (2,), }",
      "{'descr': '<f4', 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,), }"};
  for (size_t k = 0; k < sizeof headers / sizeof *headers; k++) {
    char text[300] = "\x93NUMPY\1";
    size_t len = strlen(headers[k]);
    text[8] = (char)len, memcpy(text + 10, headers[k], len);
    assert_null(tg_npy_load(tg_from_bytes(c, text, 10 + len + 8, TG_U8)));
    assert_true(tg_error(c) == TG_ERR_VALUE || tg_error(c) == TG_ERR_LIMIT);
    tg_clear_error(c);
  }
  free(whole_file);
  tg_close(c);
}

/* A disk that is full: each writer says so, soon, and leaves no part of a file. */
static void test_full(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_ones(c, TG_SHAPE(100, 100));
  TgState *s = tg_state_new(c);
  assert_int_equal(tg_state_put(s, "x", x), TG_OK);
  unlink(path);

  struct rlimit before, most;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  most = before, most.rlim_cur = 5000;
  void (*signalled)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
  TgStatus safe = tg_safe_save(s, path);
  tg_clear_error(c);
  TgStatus npy = tg_npy_save(x, path);
  tg_clear_error(c);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, signalled);
  assert_int_equal(safe, TG_ERR_IO);
  assert_int_equal(npy, TG_ERR_IO);
  assert_int_equal(access(path, F_OK), -1);
  DIR *d = opendir(dir);
  int left = 0;
  while (readdir(d))
    left++;
  closedir(d);
  assert_int_equal(left, 2); /* . and .. */
  assert_int_equal(tg_safe_save(s, path), TG_OK);
  tg_state_free(s), tg_close(c);
}

/* In a process without standard input the first file that is opened is number 0, a file as any other. */
static void test_file_zero(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  TgTensor *x = tg_arange(c, 0, 10, .dtype = TG_F32);
  TgState *s = tg_state_new(c);
  assert_int_equal(tg_state_put(s, "x", x), TG_OK);
  int input = dup(0);
  close(0);
  TgStatus safe = tg_safe_save(s, path);
  TgState *loaded = safe ? NULL : tg_safe_load_file(c, path);
  TgStatus npy = tg_npy_save(x, path);
  TgTensor *y = npy ? NULL : tg_npy_load_file(c, path);
  double got[10] = {0};
  TgStatus read = y ? tg_read_f64(y, got, 10) : TG_ERR_IO;
  if (input >= 0) dup2(input, 0), close(input);
  assert_int_equal(safe, TG_OK);
  assert_non_null(loaded);
  assert_int_equal(npy, TG_OK);
  assert_int_equal(read, TG_OK);
  assert_true(got[9] == 9);
  tg_state_free(loaded), tg_state_free(s), tg_close(c);
}

/* Every reader of a path takes no context for what it is. */
static void test_no_context(void **state) {
  (void)state;
  assert_null(tg_state_from_file(NULL, path));
  assert_null(tg_safe_load_file(NULL, path));
  assert_null(tg_npy_load_file(NULL, path));
  assert_null(tg_torch_load_file(NULL, path));
  assert_null(tg_gguf_load_file(NULL, path));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_state),        cmocka_unit_test(test_layers),
                                     cmocka_unit_test(test_load_state),   cmocka_unit_test(test_file_zero),
                                     cmocka_unit_test(test_no_context),   cmocka_unit_test(test_full),
                                     cmocka_unit_test(test_views),        cmocka_unit_test(test_safe_dtypes),
                                     cmocka_unit_test(test_safe_damaged), cmocka_unit_test(test_safe_places),
                                     cmocka_unit_test(test_mnist_cnn),    cmocka_unit_test(test_zip),
                                     cmocka_unit_test(test_zip_damaged),  cmocka_unit_test(test_zip_wide),
                                     cmocka_unit_test(test_gunzip),       cmocka_unit_test(test_tar),
                                     cmocka_unit_test(test_tensor_io),
#ifdef TG_HAVE_JANSSON
                                     cmocka_unit_test(test_torch_files),
#endif
                                     cmocka_unit_test(test_torch_pickle), cmocka_unit_test(test_torch_old),
                                     cmocka_unit_test(test_torch_cut),    cmocka_unit_test(test_gguf_golden),
                                     cmocka_unit_test(test_ggml_encode),  cmocka_unit_test(test_ggml_blocks),
                                     cmocka_unit_test(test_gguf),         cmocka_unit_test(test_gguf_split),
                                     cmocka_unit_test(test_gguf_models),  cmocka_unit_test(test_datasets),
                                     cmocka_unit_test(test_npy)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
