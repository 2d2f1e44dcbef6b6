/* test_offsets.c: where arguments begin (src/schedule/offsets.c). Unrolled loops, which read and write one
 * row after another, of widths that no vector divides. Their steps are one program; what they give is what
 * plain C gives; and an argument lies within its memory, where a vector of a GPU may begin. */
#include "fixture.h"
#include "kernels/choices.h"
#include "tensor/context.h"
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 48, MOST_WIDTH = 33, ROWS = 3, BATCH = 2 };

/* ---- the loops. x holds numbers for all of it; y: what the last step leaves, as plain C computes it. */
typedef struct Loop {
  const char *name;
  TgDType dtype;
  TgTensor *(*build)(TgContext *c, const void *x, int steps, int n);
  int (*plain)(const void *x, int steps, int n, double *y); /* how many */
} Loop;

/* h (BATCH, n) = h / 2 + x[:, t], of which a sum makes a kernel: the step is an axis between two others */
static TgTensor *inner_build(TgContext *c, const void *x, int steps, int n) {
  TgTensor *all = tg_from(c, x, TG_F32, TG_SHAPE(BATCH, steps, n)), *h = NULL;
  for (int t = 0; t < steps; t++) {
    TgTensor *in = tg_select(all, 1, t);
    h = h ? tg_add(tg_mul_scalar(h, 0.5), tg_add(in, tg_mean(h, .axis = TG_AXES(1), .keepdim = true))) : in;
    h = tg_contiguous(h);
  }
  return h;
}

static int inner_plain(const void *x, int steps, int n, double *y) {
  const float *at = x;
  for (int b = 0; b < BATCH; b++)
    for (int t = 0; t < steps; t++) {
      double mean = 0;
      for (int i = 0; i < n && t; i++)
        mean += y[b * n + i] / n;
      for (int i = 0; i < n; i++)
        y[b * n + i] = (t ? y[b * n + i] * 0.5 : 0) + (double)at[(b * steps + t) * n + i] + mean;
    }
  return BATCH * n;
}

/* h (ROWS, n) = clamp(h @ w[l] + b[l], -1, 1): layers whose weights stand in one memory */
static TgTensor *layers_build(TgContext *c, const void *x, int steps, int n) {
  const float *at = x;
  TgTensor *w = tg_from(c, at, TG_F32, TG_SHAPE(steps, n, n)),
           *b = tg_from(c, at, TG_F32, TG_SHAPE(steps, n)), *h = tg_from(c, at, TG_F32, TG_SHAPE(ROWS, n));
  for (int l = 0; l < steps; l++)
    h = tg_contiguous(tg_clamp(tg_add(tg_matmul(h, tg_select(w, 0, l)), tg_select(b, 0, l)), -1, 1));
  return h;
}

static int layers_plain(const void *x, int steps, int n, double *y) {
  const float *at = x;
  double now[ROWS * MOST_WIDTH];
  for (int i = 0; i < ROWS * n; i++)
    y[i] = (double)at[i];
  for (int l = 0; l < steps; l++) {
    memcpy(now, y, sizeof now);
    for (int i = 0; i < ROWS * n; i++) {
      double sum = (double)at[l * n + i % n];
      for (int k = 0; k < n; k++)
        sum += now[i / n * n + k] * (double)at[(l * n + k) * n + i % n];
      y[i] = fmin(fmax(sum, -1), 1);
    }
  }
  return ROWS * n;
}

/* y[t] = x[t] + x[t + 1], backwards, of bytes: two rows of one memory, and one that each step stores to */
static TgTensor *bytes_build(TgContext *c, const void *x, int steps, int n) {
  TgTensor *all = tg_from(c, x, TG_U8, TG_SHAPE(steps + 1, n)), *y = tg_empty(c, TG_U8, TG_SHAPE(steps, n));
  for (int t = steps - 1; t >= 0; t--)
    tg_assign(tg_select(y, 0, t), tg_add(tg_select(all, 0, t), tg_select(all, 0, t + 1)));
  return y;
}

static int bytes_plain(const void *x, int steps, int n, double *y) {
  const uint8_t *at = x;
  for (int i = 0; i < steps * n; i++)
    y[i] = (uint8_t)(at[i] + at[i + n]);
  return steps * n;
}

/* h (n + 2) = h backwards / 2 + x[t] with a zero on each side: places that are there only behind a gate */
static TgTensor *gated_build(TgContext *c, const void *x, int steps, int n) {
  TgTensor *all = tg_from(c, x, TG_F32, TG_SHAPE(steps, n)), *h = NULL;
  for (int t = 0; t < steps; t++) {
    TgTensor *row = tg_pad(tg_select(all, 0, t), (int64_t[]){1}, (int64_t[]){1});
    h = tg_contiguous(h ? tg_add(row, tg_mul_scalar(tg_flip(h, 1, (int64_t[]){0}), 0.5)) : row);
  }
  return h;
}

static int gated_plain(const void *x, int steps, int n, double *y) {
  const float *at = x;
  double was[MOST_WIDTH + 2] = {0};
  for (int t = 0; t < steps; t++) {
    for (int i = 0; i < n + 2; i++)
      y[i] = was[n + 1 - i] * 0.5 + (i && i <= n ? (double)at[t * n + i - 1] : 0);
    memcpy(was, y, (size_t)(n + 2) * sizeof *y);
  }
  return n + 2;
}

/* h (2 n) = h / 2 + x[t] + x[t] as 2 x n transposed: one memory in two shapes */
static TgTensor *shapes_build(TgContext *c, const void *x, int steps, int n) {
  TgTensor *all = tg_from(c, x, TG_F32, TG_SHAPE(steps, 2 * n)), *h = NULL;
  for (int t = 0; t < steps; t++) {
    TgTensor *row = tg_select(all, 0, t);
    TgTensor *across = tg_reshape(tg_transpose(tg_reshape(row, TG_SHAPE(2, n)), 0, 1), TG_SHAPE(2 * n));
    row = tg_add(row, across);
    h = tg_contiguous(h ? tg_add(tg_mul_scalar(h, 0.5), row) : row);
  }
  return h;
}

static int shapes_plain(const void *x, int steps, int n, double *y) {
  const float *at = x;
  for (int t = 0; t < steps; t++, at += 2 * n)
    for (int i = 0; i < 2 * n; i++)
      y[i] = (t ? y[i] * 0.5 : 0) + (double)at[i] + (double)at[i % 2 * n + i / 2];
  return 2 * n;
}

static const Loop loops[] = {{"inner", TG_F32, inner_build, inner_plain},
                             {"layers", TG_F32, layers_build, layers_plain},
                             {"bytes", TG_U8, bytes_build, bytes_plain},
                             {"gated", TG_F32, gated_build, gated_plain},
                             {"shapes", TG_F32, shapes_build, shapes_plain}};

enum { NLOOP = sizeof loops / sizeof *loops };

static const void *numbers(const Loop *l) {
  static float f[MOST_STEPS * MOST_WIDTH * MOST_WIDTH];
  static uint8_t b[sizeof f / sizeof *f];
  uint32_t seed = 1;
  for (size_t i = 0; i < sizeof b; i++) {
    seed = seed * 1664525u + 1013904223u;
    b[i] = (uint8_t)(seed >> 24);
    f[i] = (float)b[i] / 256.0f - 0.5f;
  }
  return l->dtype == TG_U8 ? (void *)b : f;
}

/* ---- their values */
static void loops_right(const char *device, int steps, const int *width, int nwidth) {
  TgContext *c = opened_with_seed(device, 1);
  for (int k = 0; k < NLOOP * nwidth; k++) {
    const Loop *l = &loops[k / nwidth];
    int n = width[k % nwidth];
    static double want[MOST_STEPS * MOST_WIDTH], got[MOST_STEPS * MOST_WIDTH];
    int count = l->plain(numbers(l), steps, n, want);
    TgTensor *y = tg_cast(l->build(c, numbers(l), steps, n), TG_F32);
    float out[MOST_STEPS * MOST_WIDTH];
    if (!y || tg_read(y, out, sizeof *out * (size_t)count))
      fail_msg("%s of %d on %s: %s", l->name, n, device, tg_errmsg(c));
    for (int i = 0; i < count; i++)
      if (fabs((got[i] = (double)out[i]) - want[i]) > 1e-4 * fmax(1, fabs(want[i])))
        fail_msg("%s of %d on %s: %d is %g, not %g", l->name, n, device, i, got[i], want[i]);
  }
  tg_close(c);
}

static void test_values(void **state) {
  static const int widths[] = {1, 5, 7, 12, 16, MOST_WIDTH}, few[] = {5, 12};
  (void)state;
  loops_right("CPU", 12, widths, 6);
  loops_right("INTERP", 12, widths, 6);
  setenv("TG_EMU", "1", 1);
  loops_right("CUDA", 6, few, 2);
  loops_right("METAL", 6, few, 2);
  unsetenv("TG_EMU");
}

/* ---- one program */
static TgCounters counted(const Loop *l, const char *device, int steps, int n) {
  TgContext *c = opened_with_seed(device, 1);
  TgTensor *y = l->build(c, numbers(l), steps, n);
  if (!y || tg_realize(y)) fail_msg("%s: %s", l->name, tg_errmsg(c));
  TgCounters k = tg_counters(c);
  tg_close(c);
  return k;
}

/* The first step may be another kernel than the others. */
static void test_one_program(void **state) {
  static const char *const devices[] = {"NULL:C", "NULL:CUDA", "NULL:METAL", "INTERP"};
  (void)state;
  for (int i = 0; i < 4 * NLOOP; i++) {
    const Loop *l = &loops[i / 4];
    TgCounters few = counted(l, devices[i % 4], MOST_STEPS / 2, 16),
               many = counted(l, devices[i % 4], MOST_STEPS, 16);
    if (many.kernels < few.kernels + MOST_STEPS / 4 || few.compiled > 3 || many.compiled != few.compiled)
      fail_msg("%s on %s: %d programs for %d kernels, %d for %d", l->name, devices[i % 4], (int)few.compiled,
               (int)few.kernels, (int)many.compiled, (int)many.kernels);
  }
}

/* ---- within its memory */
static void argument_within(const Schedule *s, const SchedKernel *k, const UOp *param, int64_t align) {
  int64_t slot = param->arg.param.slot, temp = k->arg[slot] - TEMP_BASE;
  int64_t size = (int64_t)dtype_size((DType)param->dtype), from = k->offset[slot];
  assert_true(from >= 0 && from % size == 0 && from % align == 0);
  if (temp < 0) return;
  int64_t room = s->temp[temp].nelem * (int64_t)dtype_size(s->temp[temp].dtype);
  assert_true(from + param->arg.param.nelem * size <= room);
}

/* How many arguments begin later than their memory. */
static int schedule_within(TgContext *c, const char *name, TgTensor *const *t, int n) {
  int64_t align = c->devices.at[0]->backend->renderer->vec_align;
  int later = 0;
  Schedule s;
  if (choice_schedule(c, t, n, NULL, &s)) fail_msg("%s: %s", name, tg_errmsg(c));
  for (int k = 0; k < s.nkernel; k++) {
    UOpVec nodes = {0};
    assert_true(uop_toposort(s.store, &c->mem, &s.kernel[k].ast, 1, &nodes));
    for (size_t u = 0; u < nodes.len; u++)
      if (nodes.at[u]->op == OPS_PARAM) argument_within(&s, &s.kernel[k], nodes.at[u], align);
    for (int a = 0; a < s.kernel[k].narg; a++)
      later += s.kernel[k].offset[a] > 0;
    vec_free(&c->mem, &nodes);
  }
  schedule_free(&s, &c->mem);
  return later;
}

static void test_within(void **state) {
  (void)state;
  for (int m = 0; m < machine_count; m++) {
    int later = 0;
    TgTensor *t[CHOICE_OUTPUTS];
    for (int i = 0; i < choice_count; i++) {
      TgContext *c = machine_open(&machines[m], (TgMem){0});
      int n = choices[i].name ? choices[i].build(c, t) : 0;
      later += n ? schedule_within(c, choices[i].name, t, n) : 0;
      tg_close(c);
    }
    for (int i = 0; i < NLOOP; i++)
      for (int n = 1; n <= 16; n++) {
        TgContext *c = machine_open(&machines[m], (TgMem){0});
        t[0] = loops[i].build(c, numbers(&loops[i]), 8, n);
        later += schedule_within(c, loops[i].name, t, 1);
        tg_close(c);
      }
    assert_true(later > 200);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_one_program),
                                     cmocka_unit_test(test_within)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
