/* test_counts.c: the compiler's own work, as counts: kernels of known programs; nodes made, visits and
 * firings for a program and for twice of it. The programs are those of `tg bench lower` (cli/programs.c),
 * lowered for the device that runs nothing. No time is measured. */
#include "kernels/choices.h"
#include "programs.h"
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

static TgCounters lower_on(int cores, const char *name, int n) {
  TgContext *ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .seed = 1, .cores = cores});
  assert_non_null(ctx);
  ProgramState *p = program_begin(ctx, program_find(name), n);
  if (!p) fail_msg("%s: %s", name, tg_errmsg(ctx));
  if (program_step(p)) fail_msg("%s: %s", name, tg_errmsg(ctx));
  /* the second step: the state of the optimiser is there, results are not */
  assert_int_equal(tg_collect(ctx), TG_OK);
  tg_cache_clear(ctx);
  tg_counters_reset(ctx);
  if (program_step(p)) fail_msg("%s: %s", name, tg_errmsg(ctx));
  TgCounters c = tg_counters(ctx);
  /* rows of one memory are one plan */
  assert_int_equal(c.schedule_hits, strcmp(name, "slice-assign") ? 0 : n - 1);
  program_end(p);
  tg_close(ctx);
  return c;
}

static TgCounters lower(const char *name, int n) { return lower_on(8, name, n); }

static void test_kernels(void **state) {
  (void)state;

  static const struct {
    const char *name;
    uint64_t most;
  } known[] = {{"softmax", 1},   {"layer_norm", 1}, {"variance", 1},  {"log_softmax-nll", 2},
               {"attention", 1}, {"mlp-step", 10},  {"cnn-step", 25}, {"chain-1000", 1},
               {"wide-sum", 1},  {"cat", 1},        {"slices", 1},    {"views", 1}};

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    uint64_t k = lower(known[i].name, 0).kernels;
    if (k < 1 || k > known[i].most)
      fail_msg("%s: %d kernels, at most %d", known[i].name, (int)k, (int)known[i].most);
  }
}

/* More cores leave less to gain by a join: plans differ, by little. */
static void test_cores(void **state) {
  (void)state;
  for (int cores = 1; cores <= 16; cores *= 2) {
    assert_in_range(lower_on(cores, "mlp-step", 0).kernels, 8, 10);
    assert_in_range(lower_on(cores, "cnn-step", 0).kernels, 22, 29);
  }
}

/* Layers of a network are equal kernels, wherever each stands: they are lowered once. How many small updates
 * share a kernel may differ. */
static void test_layers_once(void **state) {
  (void)state;
  TgCounters four = lower("gpt-step", 4), six = lower("gpt-step", 6);
  assert_in_range(four.compiled, 1, 40);
  assert_in_range(six.compiled, 1, four.compiled + 1);
  assert_true(six.kernels > four.kernels + 30);
}

/* A contraction keeps its grid, its tile and its lanes: what sums its result up is a kernel of its own. */
static void test_contractions_stand_alone(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
  TgTensor *a = tg_empty(ctx, TG_F32, TG_SHAPE(1024, 1024)), *b = tg_empty(ctx, TG_F32, TG_SHAPE(1024, 1024)),
           *x = tg_empty(ctx, TG_F32, TG_SHAPE(8, 512, 7, 7)),
           *w = tg_empty(ctx, TG_F32, TG_SHAPE(512, 512, 3, 3));
  TgTensor *conv = tg_conv2d(x, w, .padding = TG_SIZES(1));
  TgTensor *apart[] = {tg_sum(tg_matmul(a, b)), tg_sum(tg_matmul(a, b), .axis = TG_AXES(0)),
                       tg_mean(conv, .axis = TG_AXES(2, 3))};
  for (int i = 0; i < 3; i++)
    assert_int_equal(tg_schedule(&apart[i], 1, NULL, NULL), i ? 2 : 3); /* the sum of all in two steps */
  TgTensor *one[] = {tg_relu(tg_matmul(a, b)), tg_relu(conv)};
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_schedule(&one[i], 1, NULL, NULL), 1);
  tg_close(ctx);
}

static TgTensor *every_second(TgTensor *x, int row, int column) {
  return tg_getitem(x, TG_IDX(TG_ALL, TG_ALL, TG_SLICE(row, TG_OPEN, 2), TG_SLICE(column, TG_OPEN, 2)));
}

/* What is computed of a factor is made once, where it would be made for each of many products. */
static void test_factors(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
  TgTensor *a = tg_empty(ctx, TG_F32, TG_SHAPE(1024, 1024)), *b = tg_empty(ctx, TG_F32, TG_SHAPE(1024, 1024)),
           *half = tg_empty(ctx, TG_BF16, TG_SHAPE(1024, 1024)),
           *v = tg_empty(ctx, TG_F32, TG_SHAPE(1, 12, 56, 56)),
           *x = tg_empty(ctx, TG_F32, TG_SHAPE(1, 3, 416, 416)),
           *w = tg_empty(ctx, TG_F32, TG_SHAPE(16, 12, 3, 3));
  TgTensor *quarter[] = {every_second(x, 0, 0), every_second(x, 1, 0), every_second(x, 0, 1),
                         every_second(x, 1, 1)};

  const struct {
    TgTensor *of;
    int kernels;
  } c[] = {{tg_matmul(tg_relu(a), b), 2},
           {tg_matmul(a, tg_relu(b)), 2},
           {tg_matmul(tg_add(a, b), b), 2},
           {tg_conv2d(tg_cat(quarter, 4, 1), w, .padding = TG_SIZES(1)), 2},
           {tg_conv2d(tg_interpolate(v, 2, ((int64_t[]){112, 112}), .mode = TG_NEAREST), w,
                      .padding = TG_SIZES(1)),
            2},
           {tg_conv2d(tg_reshape(tg_expand(tg_reshape(v, 6, ((int64_t[]){1, 12, 56, 1, 56, 1})), 6,
                                           ((int64_t[]){1, 12, 56, 2, 56, 2})),
                                 4, ((int64_t[]){1, 12, 112, 112})),
                      w, .padding = TG_SIZES(1)),
            2},
           {tg_matmul(tg_cast(half, TG_F32), b), 1}, /* a load */
           {tg_conv2d(x, tg_empty(ctx, TG_F32, TG_SHAPE(16, 3, 3, 3)), .padding = TG_SIZES(1)), 1}};

  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    if (tg_schedule((TgTensor *[]){c[i].of}, 1, NULL, NULL) != c[i].kernels)
      fail_msg("case %zu: %d kernels, not %d", i, tg_schedule((TgTensor *[]){c[i].of}, 1, NULL, NULL),
               c[i].kernels);
  tg_close(ctx);
}

/* Programs wider than a kernel may be become several kernels. */
enum { WIDE = 500, OUTPUTS = 100, LOOPS = 70 };

static bool realized(TgContext *ctx, TgTensor **t, size_t n, uint64_t most) {
  tg_counters_reset(ctx);
  TgStatus s = tg_realize_many(t, n);
  return s == TG_OK && tg_counters(ctx).kernels <= most;
}

static TgTensor *plus(TgTensor *sum, TgTensor *t) { return sum ? tg_add(sum, t) : t; }

static void test_wide(void **state) {
  (void)state;
  static const char *const devices[] = {"NULL:C", "NULL:CUDA", "NULL:METAL"};
  for (int d = 0; d < 3; d++) {
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = devices[d]});
    TgTensor *param[WIDE], *out[WIDE], *norm = NULL, *sums = NULL;
    for (int i = 0; i < WIDE; i++) {
      param[i] = tg_empty(ctx, TG_F32, TG_SHAPE(64 + i % 7, 32 + i % 5));
      norm = plus(norm, tg_sum(tg_mul(param[i], param[i])));
    }
    for (int i = 0; i < WIDE; i++)
      out[i] = tg_mul(param[i], tg_rsqrt(norm));
    assert_true(realized(ctx, out, WIDE, 2 * WIDE)); /* clipping by the global norm */
    TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(512, 1001)), *p = tg_softmax(x);
    for (int i = 0; i < OUTPUTS; i++)
      out[i] = tg_add_scalar(p, i + 1);
    assert_true(realized(ctx, out, 30, 30));
    assert_true(realized(ctx, out, OUTPUTS, OUTPUTS));
    for (int i = 0; i < LOOPS; i++)
      sums = plus(sums, tg_sum(tg_empty(ctx, TG_F32, TG_SHAPE(16, 5 + i, 9)), .axis = TG_AXES(1, 2)));
    assert_true(realized(ctx, &sums, 1, LOOPS)); /* 210 loops */
    for (int i = 0; i < LOOPS; i++)
      sums = tg_mul(sums, tg_sum(tg_empty(ctx, TG_F32, TG_SHAPE(16, 5 + i, 9)), .axis = TG_AXES(1, 2)));
    sums = tg_sum(sums);
    assert_true(realized(ctx, &sums, 1, 2 * LOOPS)); /* which all could nest in the last */
    tg_close(ctx);
  }
}

/* The gradients of a convolution are convolutions: one kernel each, and nothing in memory but operands and
 * results. */
static void test_convolution_gradients(void **state) {
  (void)state;

  static const struct {
    int64_t size, kernel, stride, dilation, padding, groups;
    bool transposed;
  } known[] = {{28, 3, 1, 1, 1, 1, 0}, {28, 3, 1, 1, 0, 1, 0}, {28, 5, 1, 1, 2, 1, 0}, {28, 3, 2, 1, 1, 1, 0},
               {28, 3, 2, 2, 2, 1, 0}, {28, 3, 1, 2, 2, 1, 0}, {28, 3, 1, 1, 1, 4, 0}, {28, 3, 2, 1, 1, 4, 0},
               {28, 7, 2, 1, 3, 1, 0}, {28, 1, 1, 1, 0, 1, 0}, {14, 3, 1, 1, 1, 1, 1}, {14, 3, 2, 1, 1, 1, 1},
               {14, 4, 2, 1, 1, 1, 1}, {14, 3, 2, 3, 1, 1, 1}};

  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    for (int of = 0; of < 2; of++) {
      TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
      int64_t n = known[i].size, k = known[i].kernel, g = known[i].groups, in = 64, out = 64;
      TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(16, in, n, n)),
               *w = tg_empty(ctx, TG_F32, TG_SHAPE(out, in / g, k, k));
      TgConvOptions o = {.size = sizeof o,
                         .stride = TG_SIZES(known[i].stride),
                         .dilation = TG_SIZES(known[i].dilation),
                         .padding = TG_SIZES(known[i].padding),
                         .groups = g};
      TgTensor *y = known[i].transposed ? tg_conv_transpose2d_opt(x, w, &o) : tg_conv2d_opt(x, w, &o),
               *gradient;
      TgTensor *dy = tg_empty(ctx, TG_F32, tg_ndim(y), tg_shape(y)), *target = of ? w : x;
      assert_int_equal(tg_realize_many((TgTensor *[]){x, w, dy}, 3), TG_OK);
      assert_int_equal(tg_vjp(y, dy, &target, 1, &gradient), TG_OK);
      tg_counters_reset(ctx);
      assert_int_equal(tg_realize(gradient), TG_OK);
      TgCounters c = tg_counters(ctx);
      double held = 4.0 * (double)(tg_numel(x) + tg_numel(w) + tg_numel(dy) + tg_numel(gradient));
      uint64_t most = 1 + (known[i].stride > 1 && known[i].dilation > 1);
      if (c.kernels > most || (double)c.peak_bytes > held * 1.1)
        fail_msg("case %d, %s: %d kernels, %.1f MB; operands and result %.1f MB", (int)i,
                 of ? "weight" : "input", (int)c.kernels, (double)c.peak_bytes / 1e6, held / 1e6);
      tg_close(ctx);
    }
}

/* A transposed convolution adds up the taps of each remainder of its stride: in one kernel, whose indices are
 * sums of loops; where its pad is no multiple of the stride another one may put the remainders in their
 * places. */
/* Names a kernel that divides in its innermost loop around a sum. Loops outside may have bounds that are
 * divided: which taps of a window a pixel has. */
static void keep_contraction(const TgKernelText *k, void *user) {
  const char *body = strstr(k->source, "void "), *loop = NULL;
  for (const char *p = body; p && *p; p++) {
    if (!strncmp(p, "for (", 5)) loop = p;
    bool divides = !strncmp(p, " / ", 3) || !strncmp(p, " % ", 3) || !strncmp(p, " >> ", 4);
    const char *sum = divides && loop ? strstr(p, "fma") : NULL, *inner = sum ? strstr(p, "for (") : NULL;
    if (sum && (!inner || inner > sum)) strcpy(user, k->name);
  }
}

static void test_transposed(void **state) {
  (void)state;

  static const struct {
    int axes;
    int64_t size, kernel, stride, dilation, padding, extra, groups;
    uint64_t kernels;
  } known[] = {{2, 28, 4, 2, 1, 1, 0, 1, 2}, {2, 28, 3, 2, 1, 1, 1, 1, 1},  {2, 28, 2, 2, 1, 0, 0, 1, 1},
               {2, 28, 4, 2, 1, 0, 0, 1, 1}, {2, 14, 5, 2, 1, 2, 1, 1, 1},  {2, 14, 4, 4, 1, 0, 0, 1, 1},
               {2, 14, 3, 1, 2, 1, 0, 1, 1}, {2, 14, 3, 2, 1, 1, 1, 4, 1},  {2, 14, 4, 2, 1, 1, 0, 4, 2},
               {2, 14, 3, 1, 1, 1, 0, 1, 1}, {1, 96, 16, 8, 1, 4, 0, 1, 2}, {3, 8, 4, 2, 1, 1, 0, 1, 2},
               {3, 8, 3, 2, 1, 1, 1, 1, 1},  {2, 14, 3, 2, 2, 2, 1, 1, 2}};

  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    char divided[128] = "";
    setenv("TG_NOOPT", "1", 1); /* indices as the schedule left them */
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
    unsetenv("TG_NOOPT");
    tg_watch_kernels(ctx, keep_contraction, divided);
    int64_t n = known[i].size, k = known[i].kernel, g = known[i].groups, xd[5] = {4, 64, n, n, n},
            wd[5] = {64, 64 / g, k, k, k};
    TgTensor *x = tg_empty(ctx, TG_F32, 2 + known[i].axes, xd),
             *w = tg_empty(ctx, TG_F32, 2 + known[i].axes, wd);
    assert_int_equal(tg_realize_many((TgTensor *[]){x, w}, 2), TG_OK);
    TgTensor *y = tg_conv_transpose2d(
        x, w, .stride = TG_SIZES(known[i].stride), .dilation = TG_SIZES(known[i].dilation),
        .padding = TG_SIZES(known[i].padding), .output_padding = TG_SIZES(known[i].extra), .groups = g);
    tg_counters_reset(ctx);
    assert_int_equal(tg_realize(y), TG_OK);
    TgCounters c = tg_counters(ctx);
    double held = 4.0 * (double)(tg_numel(x) + tg_numel(w) + tg_numel(y)), own = 4.0 * (double)tg_numel(y);
    bool placed = known[i].kernels > 1;
    if (c.kernels > known[i].kernels || (double)c.peak_bytes > 1.1 * held + (placed ? 1.5 * own : 0))
      fail_msg("case %d: %d kernels, %.1f MB; operands and result %.1f MB", (int)i, (int)c.kernels,
               (double)c.peak_bytes / 1e6, held / 1e6);
    if (*divided) fail_msg("case %d: %s divides to find an element", (int)i, divided);
    tg_close(ctx);
  }
}

static void test_linear(void **state) {
  (void)state;

  static const struct {
    const char *name;
    int n;
  } grown[] = {{"chain-1000", 500},   {"chain-1000", 4000}, {"mlp-step", 4}, {"gpt-step", 2},
               {"outputs", 100},      {"wide-sum", 150},    {"cat", 50},     {"cat", 400},
               {"slice-assign", 100}, {"slices", 100},      {"views", 20},   {"views", 80}};

  for (size_t i = 0; i < sizeof grown / sizeof *grown; i++) {
    TgCounters a = lower(grown[i].name, grown[i].n), b = lower(grown[i].name, 2 * grown[i].n);

    const struct {
      const char *what;
      uint64_t once, twice;
    } counts[] = {{"graph nodes", a.graph_nodes, b.graph_nodes},
                  {"nodes made", a.nodes, b.nodes},
                  {"visits", a.visits, b.visits},
                  {"firings", a.firings, b.firings},
                  {"nodes walked in rules", a.nested, b.nested}};

    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
      if ((k < 4 && !counts[k].once) || counts[k].twice * 10 > counts[k].once * 22)
        fail_msg("%s of %d: %s %d, twice the size %d", grown[i].name, grown[i].n, counts[k].what,
                 (int)counts[k].once, (int)counts[k].twice);
    }
  }
}

/* ---- sums and stacks of very many values: placed without going through all of them again for each */
static uint64_t walked_by(int kind, int n) {
  static TgTensor *out[3 * 4000];
  TgContext *c = machine_open(&machines[0], (TgMem){0});
  Schedule s;
  int count = 0;
  TgTensor *sum = NULL, *parts[4000];
  bool norm = kind == 1;
  for (int i = 0; i < n; i++) {
    TgTensor *x = tg_empty(c, TG_F32, TG_SHAPE(4, 16)),
             *m = norm ? tg_empty(c, TG_F32, TG_SHAPE(4, 16)) : NULL;
    out[count++] = norm ? x : NULL;
    out[count++] = m;
    parts[i] = norm ? tg_sum(tg_mul(x, x)) : tg_sum(x, .axis = TG_AXES(1));
    if (kind < 2) sum = sum ? tg_add(sum, parts[i]) : parts[i];
  }
  for (int i = 0; norm && i < n; i++) /* a step whose gradients are scaled by the norm of all */
    out[i] = tg_add(tg_mul_scalar(out[2 * i + 1], .9), tg_div(out[2 * i], tg_sqrt(sum)));
  if (!norm) out[0] = kind ? tg_stack(parts, n, 0) : sum;
  TgStatus st = choice_schedule(c, out, norm ? n : 1, NULL, &s);
  if (st) fail_msg("%s", tg_errmsg(c));
  uint64_t walked = s.walked;
  schedule_free(&s, &c->mem);
  tg_close(c);
  return walked;
}

static void test_walks(void **state) {
  (void)state;
  static const char *const kinds[] = {"a sum", "a norm", "a stack"};
  for (int kind = 0; kind < 3; kind++) {
    uint64_t some = walked_by(kind, 1000), many = walked_by(kind, 4000);
    if (many * 10 > some * 45) fail_msg("%s: %d, of 4 times as many %d", kinds[kind], (int)some, (int)many);
  }
}

/* What is forgotten is made anew, and only that: the same graph again is a hit, after tg_cache_clear it is
 * not. */
static void test_cache_clear(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU"});
  assert_int_equal(tg_error(ctx), TG_OK);
  float v[3] = {1, 2, 3}, got[3];
  TgTensor *x = tg_from(ctx, v, TG_F32, TG_SHAPE(3));
  for (int i = 0; i < 4; i++) {
    uint64_t s = tg_counters(ctx).schedules;
    if (i == 2) tg_cache_clear(ctx);
    TG_SCOPE(ctx) { /* another buffer each time, the same graph */
      assert_int_equal(tg_read(tg_mul(tg_from(ctx, v, TG_F32, TG_SHAPE(3)), x), got, sizeof got), TG_OK);
    }
    for (int k = 0; k < 3; k++)
      assert_true(got[k] == v[k] * v[k]);
    assert_int_equal(tg_counters(ctx).schedules - s, i == 0 || i == 2);
  }
  assert_int_equal(tg_counters(ctx).schedule_hits, 2);
  tg_close(ctx);
  tg_cache_clear(NULL);
}

/* The device that runs nothing touches no memory of a program's size either. */
static void test_plans_large(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(1 << 16, 1 << 16));
  assert_int_equal(tg_realize(tg_contiguous(tg_softmax(tg_matmul(x, x)))), TG_OK); /* 16 GiB each */
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  assert_true(u.ru_maxrss < 2 << 20); /* KiB */
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels),
                                     cmocka_unit_test(test_cores),
                                     cmocka_unit_test(test_layers_once),
                                     cmocka_unit_test(test_contractions_stand_alone),
                                     cmocka_unit_test(test_factors),
                                     cmocka_unit_test(test_wide),
                                     cmocka_unit_test(test_convolution_gradients),
                                     cmocka_unit_test(test_transposed),
                                     cmocka_unit_test(test_linear),
                                     cmocka_unit_test(test_walks),
                                     cmocka_unit_test(test_cache_clear),
                                     cmocka_unit_test(test_plans_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
