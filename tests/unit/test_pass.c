/* test_pass.c: what TG_DUMP, TG_TRACE, TG_RULE_LIMIT and the counters show of a real program. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "schedule/stage.h"
#include "tensor/context.h"

static TgContext *open_on(const char *device, const char *name, const char *value) {
  setenv("TG_CACHE", "0", 1);
  if (name) setenv(name, value, 1);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  if (name) unsetenv(name);
  unsetenv("TG_CACHE");
  assert_non_null(ctx);
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static TgContext *open_with(const char *name, const char *value) { return open_on("INTERP", name, value); }

static const float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void program(TgContext *ctx, float out[4]) { /* relu(a@b) + 1, a (2, 3), b (3, 2) */
  TgTensor *a = tg_from(ctx, numbers, TG_F32, TG_SHAPE(2, 3));
  TgTensor *b = tg_from(ctx, numbers + 6, TG_F32, TG_SHAPE(3, 2));
  TgTensor *z = tg_add(tg_relu(tg_matmul(a, b)), tg_full(ctx, TG_SHAPE(2, 2), 1));
  assert_int_equal(tg_read(z, out, 4 * sizeof *out), TG_OK);
}

static void check(const float out[4]) {
  float want[4];
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      want[2 * i + j] = 1;
      for (int k = 0; k < 3; k++)
        want[2 * i + j] += numbers[3 * i + k] * numbers[6 + 2 * k + j];
    }
  assert_memory_equal(out, want, sizeof want);
}

/* A limit leaves rules undone: the program is slower to read, never wrong. */
static void test_rule_limit(void **state) {
  (void)state;
  uint64_t all = 0, required = 0; /* what lowering needs fires whatever the limit */
  for (int64_t n = -1; n < (int64_t)(all - required) || n < 0; n++) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)n);
    TgContext *ctx = open_with(n < 0 ? NULL : "TG_RULE_LIMIT", text);
    float out[4];
    program(ctx, out);
    check(out);
    uint64_t fired = tg_counters(ctx).firings;
    if (n < 0)
      assert_true((all = fired) > 8);
    else if (n == 0)
      assert_in_range((required = fired), 1, all - 1);
    else
      assert_int_equal(fired, n + required);
    tg_close(ctx);
  }
}

/* A sum of a softmax of a product, in kernels that fuse and take opts; of whole numbers, it is exact. */
static double fused(TgContext *ctx) {
  TgTensor *a = tg_reshape(tg_arange(ctx, 0, 64 * 64), TG_SHAPE(64, 64)),
           *m = tg_matmul(tg_contiguous(tg_fmod(a, tg_full(ctx, TG_SCALAR, 7))), tg_eye(ctx, 64));
  return tg_item_f64(tg_sum(tg_sub(m, tg_max(m, .axis = TG_AXES(1), .keepdim = true))));
}

/* Of opts and of fusions as many are taken as the limit says, and the result is the same. */
static void test_choice_limits(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    int64_t all = 1;
    double want = 0;
    for (int64_t n = -1; n <= all; n++) {
      char text[24];
      snprintf(text, sizeof text, "%lld", (long long)n);
      TgContext *ctx = open_on("INTERP:C", n < 0 ? NULL : kind ? "TG_FUSE_LIMIT" : "TG_OPT_LIMIT", text);
      double v = fused(ctx);
      int64_t taken = kind ? ctx->passes.fusions.taken : ctx->passes.opts.taken;
      if (n < 0)
        want = v, assert_true((all = taken) >= 2);
      else
        assert_int_equal(taken, n < all ? n : all);
      assert_true(v == want);
      tg_close(ctx);
    }
  }
}

static Str said;

static void keep(void *to, const char *text) { str_put(to, text); }

static void test_trace(void **state) {
  (void)state;
  TgContext *ctx = open_with("TG_TRACE", "rules");
  str_init(&said, NULL);
  ctx->passes.say = keep, ctx->passes.say_to = &said;
  float out[4];
  program(ctx, out);
  check(out);
  uint64_t lines = 0;
  for (const char *s = str_text(&said); (s = strstr(s, ".rules:")); s++)
    lines++;
  assert_int_equal(lines, tg_counters(ctx).firings);
  assert_non_null(strstr(str_text(&said), "schedule: pass rangeify\n"));
  assert_non_null(strstr(str_text(&said), "codegen r_2_2: pass "));
  assert_non_null(strstr(str_text(&said), "mul-one: (r"));
  str_free(&said);
  tg_close(ctx);
}

static char *slurp(const char *path) {
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  static char text[65536];
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}

static void test_dump(void **state) {
  (void)state;
  char dir[] = "/tmp/tg-dump-XXXXXX", path[600], name[64];
  assert_non_null(mkdtemp(dir));
  TgContext *ctx = open_with("TG_DUMP", dir);
  float out[4];
  program(ctx, out);
  check(out);
  tg_close(ctx);
  /* a text and a drawing after every pass of both tables, and of the input */
  for (size_t t = 0; t < 2; t++) {
    const Pass *p = t ? codegen_passes : schedule_passes;
    size_t n = t ? codegen_npass : schedule_npass;
    for (size_t i = 0; i <= n; i++) {
      snprintf(name, sizeof name, "%s", i ? p[i - 1].name : "input");
      for (char *c = name; *c; c++)
        if (*c == ' ') *c = '_';
      bool linear = t && i == n;
      snprintf(path, sizeof path, "%s/%s.%zu-%s.uop", dir, t ? "k000-r_2_2" : "s000", i, name);
      assert_non_null(strstr(slurp(path), linear ? "END" : t ? "SINK" : "f32"));
      if (linear) continue;
      snprintf(path, sizeof path, "%s/%s.%zu-%s.dot", dir, t ? "k000-r_2_2" : "s000", i, name);
      assert_non_null(strstr(slurp(path), "->"));
    }
  }
  snprintf(path, sizeof path, "%s/s000.2-rangeify.uop", dir);
  assert_non_null(strstr(slurp(path), "mul-one (symbolic.rules:"));
  DIR *d = opendir(dir);
  int files = 0;
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    unlink(path), files++;
  }
  closedir(d);
  rmdir(dir);
  assert_int_equal(files, 2 * (schedule_npass + 1) + 2 * (codegen_npass + 1) - 1);
}

static void test_dump_nowhere(void **state) { /* a folder that cannot be is an error, not silence */
  (void)state;
  TgContext *ctx = open_with("TG_DUMP", "/dev/null/x");
  float out[4];
  TgTensor *a = tg_from(ctx, numbers, TG_F32, TG_SHAPE(4));
  assert_int_equal(tg_read(tg_add(a, a), out, sizeof out), TG_ERR_IO);
  assert_non_null(strstr(tg_errmsg(ctx), "/dev/null/x"));
  tg_close(ctx);
}

/* Work is linear in the graph: visits, firings, and what rules walk besides. */
static TgCounters of_chain(int n) {
  TgContext *ctx = open_with(NULL, NULL);
  TgTensor *x = tg_from(ctx, numbers, TG_F32, TG_SHAPE(12)), *z = x;
  for (int i = 0; i < n; i++)
    z = tg_add(tg_mul(z, x), x);
  assert_int_equal(tg_realize(z), TG_OK);
  TgCounters c = tg_counters(ctx);
  tg_counters_reset(ctx);
  assert_int_equal(tg_counters(ctx).visits + tg_counters(ctx).firings + tg_counters(ctx).nested, 0);
  tg_close(ctx);
  return c;
}

static void test_linear(void **state) {
  (void)state;
  TgCounters a = of_chain(400), b = of_chain(800);
  assert_true(a.visits > 400);
  assert_true(b.visits <= a.visits * 22 / 10);
  assert_true(b.firings <= a.firings * 22 / 10 + 10);
  assert_true(b.nested <= a.nested * 22 / 10);
}

/* The text of a kernel is the key of its program: constants that differ in the last bit are two kernels. */
static void test_close_constants(void **state) {
  (void)state;
  TgContext *ctx = open_with(NULL, NULL);
  const double x[2] = {0, 0}, c[2] = {0.1, 0x1.999999999999bp-4};
  assert_true(c[0] != c[1]);
  for (int i = 0; i < 2; i++) {
    double out[2];
    TgTensor *k = tg_full(ctx, TG_SHAPE(2), c[i], .dtype = TG_F64);
    assert_int_equal(tg_read(tg_add(tg_from(ctx, x, TG_F64, TG_SHAPE(2)), k), out, sizeof out), TG_OK);
    assert_true(out[0] == c[i] && out[1] == c[i]);
  }
  tg_close(ctx);
}

/* Bottom-up a rule meets what the sources have become, top-down what they were: -(-(-x)) with the rule -(y)
 * => y + 1 if y is a negation. */
static UOp *pm_negations(Rewrite *rw, UOp *u) {
  (*(int *)rw->ctx)++;
  return u->op == OPS_NEG && u->src[0]->op == OPS_NEG
             ? uop_alu2(rw->st, OPS_ADD, u->src[0], uop_const_int(rw->st, DT_I32, 1))
             : NULL;
}

static void test_top_down(void **state) {
  (void)state;
  TgMem mem = {0};
  for (int top = 0; top < 2; top++) {
    UOpStore *st = store_new(&mem);
    UOp *x = uop_new(st, OPS_PARAM, DT_I32, 1, 0, NULL, (Arg){.param = {1, 0}}), *u = x;
    for (int i = 0; i < 3; i++)
      u = uop_alu1(st, OPS_NEG, u);
    int seen = 0;
    Rewrite rw = {.st = st, .mem = &mem, .ctx = &seen, .top_down = top};
    UOp *r = graph_rewrite(&rw, pm_negations, u);
    UOp *one = uop_const_int(st, DT_I32, 1);
    UOp *n1 = uop_alu1(st, OPS_NEG, x);
    /* bottom-up the inner pair goes first: -(-x + 1); top-down the outer one, and then what is left of it:
     * (-x + 1) + 1 */
    UOp *want = top ? uop_alu2(st, OPS_ADD, uop_alu2(st, OPS_ADD, n1, one), one)
                    : uop_alu1(st, OPS_NEG, uop_alu2(st, OPS_ADD, n1, one));
    assert_ptr_equal(r, want);
    assert_true(seen >= 4);
    store_free(st);
  }
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rule_limit), cmocka_unit_test(test_choice_limits),
      cmocka_unit_test(test_top_down),   cmocka_unit_test(test_trace),
      cmocka_unit_test(test_dump),       cmocka_unit_test(test_dump_nowhere),
      cmocka_unit_test(test_linear),     cmocka_unit_test(test_close_constants)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
