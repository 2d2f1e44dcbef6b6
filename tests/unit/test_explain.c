/* test_explain.c: what tg_explain and TG_EXPLAIN tell. Programs that are slow for a reason that is put into them:
 * the reason stands in the first five lines. The same program without it is not blamed for it. */
#define _GNU_SOURCE
#undef TG_NO_ORIGIN
#include "engine/engine.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { N = 512 };

static char file[] = "/tmp/tg-explain-test-XXXXXX";
static char path[300];

static TgTensor *matrix(TgContext *ctx, TgDType dtype, int64_t rows, int64_t columns) {
  TgTensor *t = tg_empty(ctx, dtype, TG_SHAPE(rows, columns));
  assert_int_equal(tg_realize(tg_assign(t, tg_full(ctx, TG_SHAPE(rows, columns), 0.5, .dtype = dtype))),
                   TG_OK);
  return t;
}

/* ---- slow programs: of the context, with the fault or without it */
typedef void (*Slow)(TgContext *ctx, bool slow);

static void copies(TgContext *ctx, bool slow) {
  TgTensor *a = matrix(ctx, TG_F32, N, N);
  TgTensor *b = slow ? tg_clone(a) : a;
  tg_realize(b);
  tg_realize(tg_exp(b));
}

static void transposes(TgContext *ctx, bool slow) {
  TgTensor *e = tg_add_scalar(matrix(ctx, TG_F32, N, N), 1);
  tg_realize(slow ? tg_contiguous(tg_transpose(e, 0, 1)) : e);
}

static void small_kernels(TgContext *ctx, bool slow) {
  TgTensor *a = matrix(ctx, TG_F32, 4, 4);
  for (int i = 0; i < 40; i++) {
    a = tg_sin(a);
    if (slow || i == 39) tg_realize(a);
  }
}

static void doubles(TgContext *ctx, bool slow) {
  TgTensor *a = matrix(ctx, TG_F32, N, N);
  TgTensor *b = slow ? tg_double(a) : a;
  tg_realize(tg_exp(tg_mul_scalar(b, 0.1)));
}

static void sizes(TgContext *ctx, bool slow) {
  for (int i = 0; i < 8; i++) {
    int64_t n = slow ? 100 + i : 100;
    TgTensor *a = matrix(ctx, TG_F32, n, 64);
    tg_realize(tg_sum(tg_exp(a), .axis = TG_AXES(1)));
  }
}

static void numbers(TgContext *ctx, bool slow) {
  TgTensor *a = matrix(ctx, TG_F32, 64, 64);
  for (int i = 0; i < 8; i++)
    tg_realize(tg_sum(tg_mul_scalar(a, slow ? 0.1 + i : 0.1), .axis = TG_AXES(1)));
}

static void reads(TgContext *ctx, bool slow) {
  TgTensor *a = matrix(ctx, TG_F32, N, N), *s = tg_sum(a);
  float v;
  for (int i = 0; i < 20; i++) {
    s = tg_add(s, tg_sum(tg_mul(a, s)));
    if (slow || i == 19) assert_int_equal(tg_read(s, &v, sizeof v), TG_OK);
  }
}

static void losses(TgContext *ctx, bool slow) { /* one is read after each step of several launches */
  TgTensor *w = matrix(ctx, TG_F32, 64, 64), *loss = NULL;
  float v;
  for (int i = 0; i < 20; i++) {
    TgTensor *h = w;
    for (int layer = 0; layer < 5; layer++)
      h = tg_relu(tg_matmul(h, w));
    loss = tg_mean(h);
    assert_int_equal(tg_realize(loss), TG_OK);
    if (slow || i == 19) assert_int_equal(tg_read(loss, &v, sizeof v), TG_OK);
  }
}

static void spreads(TgContext *ctx, bool slow) {
  TgTensor *row = matrix(ctx, TG_F32, 1, N), *all = tg_expand(tg_add_scalar(row, 1), TG_SHAPE(N, N));
  TgTensor *stored = slow ? tg_contiguous(all) : all;
  if (slow) tg_realize(stored);
  tg_realize(tg_mul(stored, matrix(ctx, TG_F32, N, N)));
}

static void devices(TgContext *ctx, bool slow) {
  TgTensor *a = matrix(ctx, TG_F32, N, N);
  for (int i = 0; i < 6; i++) {
    a = tg_add_scalar(a, 1);
    if (slow) a = tg_to(a, i % 2 ? "CPU" : "CPU:1");
    tg_realize(a);
  }
}

static void unfused(TgContext *ctx, bool slow) {
  TgTensor *a = tg_exp(matrix(ctx, TG_F32, N, N));
  if (slow) a = tg_contiguous(a);
  tg_realize(tg_sin(tg_mul(a, a)));
}

static void one_core(TgContext *ctx, bool slow) {
  if (slow) { /* the last of those that are stored to one place wins: in order */
    TgTensor *to = matrix(ctx, TG_F32, 1, 1 << 22), *from = matrix(ctx, TG_F32, 1, 1 << 22);
    TgTensor *at = tg_unsqueeze(tg_arange(ctx, 0, 1 << 22, .dtype = TG_I32), 0);
    tg_realize(tg_scatter(to, 1, tg_bitand_scalar(at, 0xffff), from));
  } else
    tg_realize(tg_exp(matrix(ctx, TG_F32, N, N)));
}

/* ---- */
static char *loaded(const char *from) {
  FILE *f = fopen(from, "r");
  if (!f) return NULL;
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
  fclose(f);
  return text;
}

/* What the context's explanation says when the program has run. */
static char *explained(Slow program, bool slow) {
  unlink(path);
  assert_int_equal(setenv("TG_EXPLAIN", path, 1), 0);
  TgContext *ctx = tg_open_with(.device = "CPU", .seed = 1, .threads = 2, .cores = 4);
  unsetenv("TG_EXPLAIN");
  assert_int_equal(tg_error(ctx), TG_OK);
  program(ctx, slow);
  if (tg_error(ctx)) fail_msg("%s", tg_errmsg(ctx));
  tg_close(ctx);
  return loaded(path);
}

static bool in_first_five(char *text, const char *what) {
  char *end = text;
  for (int i = 0; i < 5 && end; i++)
    end = strchr(end + (i > 0), '\n');
  char was = end ? *end : 0;
  if (end) *end = 0;
  bool found = strstr(text, what) != NULL;
  if (end) *end = was;
  return found;
}

static void test_slow(void **state) {
  static const struct {
    const char *kind;
    Slow program;
  } programs[] = {
      {"slow? copy", copies},     {"slow? transposed", transposes}, {"slow? small", small_kernels},
      {"slow? f64", doubles},     {"slow? sizes", sizes},           {"slow? numbers", numbers},
      {"slow? reads", reads},     {"slow? spread", spreads},        {"slow? devices", devices},
      {"slow? unfused", unfused}, {"slow? one core", one_core},     {"slow? reads", losses}};

  (void)state;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    char *slow = explained(programs[i].program, true), *fine = explained(programs[i].program, false);
    assert_non_null(slow);
    assert_non_null(fine);
    if (!in_first_five(slow, programs[i].kind)) fail_msg("no \"%s\" in:\n%.1500s", programs[i].kind, slow);
    if (in_first_five(fine, programs[i].kind)) fail_msg("\"%s\" in:\n%.1500s", programs[i].kind, fine);
    free(slow), free(fine);
  }
}

static void test_text(void **state) {
  (void)state;
  TgContext *ctx = tg_open_with(.device = "INTERP", .seed = 1);
  assert_int_equal(tg_error(ctx), TG_OK);
  TgTensor *a = matrix(ctx, TG_F32, 16, 16);
  TgTensor *y = tg_softmax(tg_matmul(a, a));
  uint64_t launches = tg_counters(ctx).launches;
  const char *text = tg_explain(&y, 1);
  assert_non_null(text);
  assert_non_null(strstr(text, "1 graph, "));
  assert_non_null(strstr(text, "matmul (test_explain.c:"));
  assert_null(strstr(text, "measured"));
  assert_int_equal(tg_counters(ctx).launches, launches); /* nothing ran */
  text = tg_explain(&y, 1, .measure = true);
  assert_non_null(strstr(text, "measured"));
  assert_true(tg_counters(ctx).launches > launches);
  assert_null(tg_explain(&y, 1, .kernel = "no such <kernel>"));
  assert_int_equal(tg_error(ctx), TG_ERR_VALUE);
  tg_clear_error(ctx);
  assert_null(tg_explain(NULL, 0));
  tg_close(ctx);
}

static const char *exchanges_of(const char *text) {
  const char *at = text ? strstr(text, "exchanges between devices") : NULL;
  return at ? at : "";
}

static void holds(const char *text, const char *what) {
  if (!strstr(text, what)) fail_msg("no \"%s\" in:\n%.1500s", what, text);
}

/* Bytes and copies are those of the table in many.md; times are TG_LINKS' by hand. */
static void test_exchanges(void **state) {
  (void)state;
  static const char *const rows[] = {
      "", "naive of 4.0 KiB over INTERP, INTERP:1, INTERP:2: 6 copies, 24.0 KiB, estimated 2148.0 us each",
      "ring of 4.0 KiB over INTERP, INTERP:1, INTERP:2: 12 copies, 16.0 KiB, estimated 1",
      "direct of 4.0 KiB over INTERP, INTERP:1, INTERP:2: 12 copies, 16.0 KiB, estimated 1"};
  const char *d[] = {"INTERP", "INTERP:1", "INTERP:2"};
  setenv("TG_LINKS", "0.004:100,1:1", 1);
  for (int way = 1; way <= 3; way++) {
    setenv("TG_ALLREDUCE", (const char[]){(char)('0' + way), 0}, 1);
    TgContext *ctx = tg_open_with(.device = "INTERP", .seed = 1);
    TgTensor *m = matrix(ctx, TG_F32, 6, 1024), *alone = tg_exp(m);
    TgTensor *y = tg_sum(tg_shard(m, 3, d, 0), .axis = TG_AXES(0));
    assert_string_equal(exchanges_of(tg_explain(&alone, 1)), "");
    const char *text = exchanges_of(tg_explain(&y, 1, .measure = true));
    holds(text, "x COPY of 8.0 KiB over INTERP, INTERP:2: 1 copy, 8.0 KiB");
    holds(text, "1 x ALLREDUCE ADD, ");
    holds(text, rows[way]);
    holds(text, "made 1 times, ");
    assert_null(strstr(text, "of the gradients of"));
    text = tg_explain(&y, 1, .json = true);
    holds(text, "\"exchanges\":[");
    holds(text, "\"gradients\":[]");
    tg_close(ctx);
  }
  unsetenv("TG_LINKS"), unsetenv("TG_ALLREDUCE");
}

static TgStatus five_gradients(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                               void *user) {
  TgTensor **w = user, *y = in[0];
  (void)nin, (void)nout;
  for (int i = 0; i < 5; i++)
    y = tg_mul(y, w[i]);
  return tg_gradient(tg_sum(y), w, 5, out) ? tg_error(ctx) : TG_OK;
}

/* A row says whose gradients its exchanges carry, a few of many; a name is a scope's, or the call that made it. */
static void test_gradients_of_exchanges(void **state) {
  (void)state;
  const char *d[] = {"INTERP", "INTERP:1"};
  char path[80], text[40000];
  snprintf(path, sizeof path, "/tmp/tg_explain_gradients_%ld", (long)getpid());
  setenv("TG_EXPLAIN", path, 1);
  TgContext *ctx = tg_open_with(.device = "INTERP", .seed = 1);
  TgTensor *w[5], *out[5], *x = tg_shard(matrix(ctx, TG_F32, 4, 16), 2, d, 0);
  for (int i = 0; i < 5; i++) {
    char name[16];
    snprintf(name, sizeof name, "layer%d.scale", i);
    if (i) assert_int_equal(tg_name_begin(ctx, name), TG_OK);
    w[i] = tg_replicate(matrix(ctx, TG_F32, 1, 16), 2, d);
    if (i) tg_name_end(ctx);
    assert_int_equal(tg_realize(w[i]), TG_OK);
  }
  assert_int_equal(tg_realize(x), TG_OK);
  TgJit *j = tg_jit(ctx, five_gradients, w);
  for (int i = 0; i < 3; i++)
    assert_int_equal(tg_jit_run(j, &x, 1, out, 5), TG_OK);
  tg_jit_free(j);
  tg_close(ctx);
  unsetenv("TG_EXPLAIN");
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  unlink(path);
  holds(exchanges_of(text), " x ALLREDUCE ADD, naive of 64 B over INTERP, INTERP:1");
  holds(exchanges_of(text), ", of the gradients of replicate (test_explain.c:");
  holds(exchanges_of(text), "layer1.scale/replicate (test_explain.c:");
  holds(exchanges_of(text), " and 1 more");
}

static void test_kernel(void **state) {
  (void)state;
  TgContext *ctx = tg_open_with(.device = "CPU", .seed = 1);
  assert_int_equal(tg_error(ctx), TG_OK);
  TgTensor *a = matrix(ctx, TG_F32, 64, 64), *y = tg_relu(tg_matmul(a, a));
  const char *text = tg_explain(&y, 1, .kernel = "0.0");
  assert_non_null(text);
  assert_non_null(strstr(text, "void r_64_64("));
  assert_non_null(strstr(text, "relu (test_explain.c:"));
  text = tg_explain(&y, 1, .json = true);
  assert_non_null(strstr(text, "\"graphs\":["));
  assert_non_null(strstr(text, "\"name\":\"r_64_64\""));
  tg_close(ctx);
}

/* No kernel is known whose opts are refused. So one is counted when those of the matrix product are told. */
static void product_refused(const char *text, void *user) {
  TgContext *ctx = *(TgContext **)user;
  if (strstr(text, ": opts ") && strstr(text, "r_64")) ctx->passes.fallbacks++;
}

static void test_refused(void **state) {
  (void)state;
  TgContext *ctx = NULL;
  ctx = tg_open_with(.device = "CPU", .seed = 1, .log = product_refused, .log_user = &ctx);
  assert_int_equal(tg_error(ctx), TG_OK);
  TgTensor *a = matrix(ctx, TG_F32, 64, 64), *y = tg_exp(tg_contiguous(tg_relu(tg_matmul(a, a))));
  TgTensor *both[] = {tg_exp(matrix(ctx, TG_F32, 33, 7)), y, tg_sin(matrix(ctx, TG_F32, 5, 11))};
  assert_null(strstr(tg_explain(both, 3), "refused"));
  ctx->env.debug = 3;
  const char *refused = tg_explain(both, 3);
  assert_non_null(refused);
  const char *at = strstr(refused, "; more opts were refused (TG_DEBUG=1 says why)\n      = matmul ");
  if (!at || strstr(strchr(at, '\n'), "refused")) fail_msg("not the matrix product alone: %s", refused);
  refused = tg_explain(both, 3, .json = true);
  assert_non_null(at = strstr(refused, "\"plainer\":true"));
  assert_null(strstr(at + 1, "\"plainer\":true"));
  assert_non_null(strstr(at, "\"plainer\":false"));
  tg_close(ctx);
}

static void quiet(const char *text, void *user) { (void)text, (void)user; }

/* 16 tanh 1 by everything that can be asked, while the n-th allocation fails: no crash, nothing left, an error or the value. */
static bool survives(uint64_t n, bool after) {
  TgMem last = {0};
  float v = 0;
  TgContext *ctx = context_open(
      &(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .threads = 1, .log = quiet},
      &tg_os_default, (TgMem){.fail_at = n, .fail_always_after = after, .last = &last});
  if (ctx && !tg_error(ctx)) {
    tg_name_begin(ctx, "part");
    TgTensor *a = tg_requires_grad(tg_full(ctx, TG_SHAPE(4, 4), 0.5), true);
    TgTensor *s = tg_sum(tg_tanh(tg_matmul(a, a)));
    tg_backward(s);
    tg_explain(&s, 1, .measure = true);
    const char *d[] = {"INTERP", "INTERP:1"};
    TgTensor *apart = tg_sum(tg_shard(a, 2, d, 0));
    tg_explain(&apart, 1, .measure = true);
    tg_origin_of(s);
    tg_realize(tg_grad(a));
    if (!tg_read(s, &v, sizeof v) && (v < 12.185 || v > 12.186)) fail_msg("allocation %d: %g", (int)n, v);
    tg_name_end(ctx);
    if (tg_error(ctx) && tg_error(ctx) != TG_ERR_NOMEM) fail_msg("allocation %d: %s", (int)n, tg_errmsg(ctx));
  }
  bool reached = !ctx || ctx->mem.failed > 0;
  tg_close(ctx);
  if (last.live) fail_msg("allocation %d: %d blocks are left", (int)n, (int)last.live);
  return reached;
}

static void test_no_memory(void **state) {
  (void)state;
  char folder[320], text[320], command[700];
  snprintf(folder, sizeof folder, "%s/viz", file);
  snprintf(text, sizeof text, "%s/many", file);
  setenv("TG_VIZ", folder, 1), setenv("TG_EXPLAIN", text, 1);
  assert_false(survives(UINT64_MAX, false));
  for (uint64_t n = 1; survives(n, n % 10 == 1); n += n < 200 ? 1 : 13) {
    snprintf(command, sizeof command, "rm -rf '%s' '%s'*", folder, text);
    if (n % 40 == 1) assert_int_equal(system(command), 0);
  }
  snprintf(command, sizeof command, "rm -rf '%s' '%s'*", folder, text);
  assert_int_equal(system(command), 0);
  unsetenv("TG_VIZ"), unsetenv("TG_EXPLAIN");
}

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(file)) return -1;
  snprintf(path, sizeof path, "%s/text", file);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  unlink(path);
  return rmdir(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
                                     cmocka_unit_test(test_kernel),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_exchanges),
                                     cmocka_unit_test(test_gradients_of_exchanges),
                                     cmocka_unit_test(test_no_memory),
                                     cmocka_unit_test(test_slow)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
