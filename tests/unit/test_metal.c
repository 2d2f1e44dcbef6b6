/* test_metal.c: the METAL device on an emulated GPU: Apple's objects as they are used, with command buffers
 * that run as late as they may (TG_EMU=1) or in a seeded order, messages that fail, objects that must not be
 * left; and texts of MSL with faults, which the lint, the emulator or the compiler must see. */
#define _GNU_SOURCE
#include "emu/emulate.h"
#include "emu/metal_emu.h"
#include "base/os.h"
#include "runtime/device.h"
#include "tensor/context.h"
#include "tg.h"
#include "tg_nn.h"
#include "uop/matrix.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define DEVICE "METAL"
#include "unit/gpu_suite.inc"

static void fail_nothing(void) { metal_mock_fail(NULL, 0); }

static uint64_t captured_launches(void) { return metal_mock_counts().executions; }

static int captured_living(void) { return metal_mock_counts().indirects; }

static int blocks_living(void) { return metal_mock_counts().buffers; }

static void nothing_left(void) {
  MetalMockCounts n = metal_mock_counts();
  if (n.objects || n.buffers || n.indirects || n.pools)
    fail_msg("left: %d objects, %d of them buffers, %d captured functions, %d pools", n.objects, n.buffers,
             n.indirects, n.pools);
  if (n.misuses) fail_msg("misused: %s", metal_mock_misuse());
  assert_int_equal(n.fast_compiles, 0);
}

/* ---- the device */
static void opens(void **state) {
  (void)state;
  assert_string_equal(tg_default_device(C), "METAL");
  assert_non_null(strstr(tg_device_describe(C), "emulated GPU 0, Metal 3"));
  TEXT(tg_add(X("[1, 2, 3]"), X("[10, 20, 30]")), "METAL", "[11, 22, 33]");
  assert_null(tg_map(tg_add(X("[1, 2]"), X("[3, 4]"))));
  tg_clear_error(C);
}

static void says_what_is_missing(void **state) {
  (void)state;
  unsetenv("TG_EMU");
  TgContext *ctx = opened("METAL:1");
  if (!tg_error(ctx)) {
    tg_close(ctx);
    print_message("skipped: two GPUs are here, so nothing is missing\n");
    skip();
  }
  assert_int_equal(tg_error(ctx), TG_ERR_DEVICE);
  const char *text = tg_errmsg(ctx);
  assert_true(strstr(text, "Objective-C") || strstr(text, "framework") || strstr(text, "GPU"));
  tg_close(ctx);
  emulate(1);
  ctx = opened("METAL:4");
  assert_non_null(strstr(tg_errmsg(ctx), "fewer GPUs"));
  tg_close(ctx);
  nothing_left();
}

/* What is computed in f64 is refused, by the operation and its shape; what is only kept so is not. */
static void no_f64(void **state) {
  (void)state;
  double x[] = {1, 2, 3};
  TgTensor *t = tg_from(C, x, TG_F64, TG_SHAPE(3)), *y = tg_sum(tg_mul(t, t));
  assert_int_equal(tg_realize(y), TG_ERR_DTYPE);
  if (!strstr(tg_errmsg(C), "MUL of shape (3)")) fail_msg("%s", tg_errmsg(C));
  assert_non_null(strstr(tg_errmsg(C), "is f64, which METAL does not compute"));
  tg_clear_error(C);
  double back[3];
  OK(tg_read(t, back, sizeof back));
  assert_true(back[2] == 3);
  TEXT(tg_sum(tg_mul(tg_to(t, "CPU"), tg_to(t, "CPU"))), "CPU", "14.0");
}

/* The system that is stood in for is of Metal 3.0: it has units for f32 and f16, and no type bfloat. */
static void no_bfloat(void **state) {
  (void)state;
  uint32_t bf16 = UINT32_C(1) << MATRIX_m8n8k8_bf16_f32, has = C->devices.at[0]->target.matrices;
  assert_int_equal(has & bf16, 0);
  assert_int_not_equal(has, 0);
  TgTensor *x = tg_cast(tg_arange(C, 0, 64 * 64, .dtype = TG_F32), TG_BF16);
  x = tg_contiguous(tg_reshape(x, TG_SHAPE(64, 64)));
  assert_true(tg_item_f64(tg_sum(tg_matmul(x, tg_zeros_like(x), .dtype = TG_F32))) == 0);
  OK(tg_error(C));
}

/* A blit moves whole words: bytes before and behind them go by a kernel. */
static void copies_of_any_size(void **state) {
  (void)state;

  enum { MOST = 41 };

  uint8_t data[MOST], back[MOST];
  for (int i = 0; i < MOST; i++)
    data[i] = (uint8_t)(7 * i + 1);
  for (int n = 1; n <= MOST; n += n < 10 ? 1 : 7) {
    TgTensor *x = tg_from(C, data, TG_U8, TG_SHAPE(n));
    memset(back, 0, sizeof back);
    OK(tg_read(x, back, (size_t)n));
    assert_memory_equal(back, data, (size_t)n);
    OK(tg_read(tg_contiguous(tg_add(x, x)), back, (size_t)n));
    for (int i = 0; i < n; i++)
      assert_int_equal(back[i], (uint8_t)(2 * data[i]));
  }
  Device *d = C->devices.at[0];
  const TgBackend *b = d->backend; /* from any byte to any byte */
  void *from, *to;
  OK(b->alloc(d, MOST, &from));
  OK(b->alloc(d, MOST, &to));
  OK(b->copy_in(d, from, data, MOST));
  for (int at = 0; at < 5; at++)
    for (int shift = 0; shift < 5; shift++) {
      OK(b->clear(d, to, MOST));
      OK(b->copy(d, (char *)to + at, (char *)from + shift, 23));
      OK(b->clear(d, (char *)to + at + 3, 9));
      OK(b->copy_out(d, back, to, MOST));
      for (int i = 0; i < MOST; i++) {
        bool inside = i >= at && i < at + 23, cleared = i >= at + 3 && i < at + 12;
        assert_int_equal(back[i], inside && !cleared ? data[i - at + shift] : 0);
      }
      OK(b->copy_in(d, (char *)to + at, data, 6));
      OK(b->copy_out(d, back, (char *)to + at, 6));
      assert_memory_equal(back, data, 6);
    }
  b->free(d, from, MOST), b->free(d, to, MOST);
}

/* Through the whole ring and again, in moves of three parts each, the first of them in two command buffers.
 */
static void copies_between_words(void **state) {
  (void)state;

  enum { TIMES = 8, LENGTH = STAGE_BYTES - 61 };

  Device *d = C->devices.at[0];
  const TgBackend *b = d->backend;
  char *data = malloc(LENGTH), *at[TIMES], back[4];
  assert_non_null(data);
  void *word;
  OK(b->alloc(d, 4, &word));
  OK(b->sync(d));
  for (int i = 0; i < 63; i++) /* 64 things are a command buffer: the copy that follows is parted */
    OK(b->clear(d, word, 4));
  for (int i = 0; i < TIMES; i++) {
    void *block;
    OK(b->alloc(d, LENGTH + 3, &block));
    at[i] = block;
    memset(data, i + 1, LENGTH);
    OK(b->copy_in(d, at[i] + 3, data, LENGTH));
  }
  for (int i = 0; i < TIMES; i++)
    for (int tail = 0; tail < 2; tail++) {
      OK(b->copy_out(d, back, at[i] + 3 + (tail ? LENGTH - 4 : 0), 4));
      for (int k = 0; k < 4; k++)
        assert_int_equal(back[k], i + 1);
    }
  for (int i = 0; i < TIMES; i++)
    b->free(d, at[i], LENGTH + 3);
  b->free(d, word, 4);
  free(data);
}

/* More buffers than a kernel has numbers for: their addresses stand in one. Launched, and captured. */
enum { MANY = 40 };

static TgStatus sum_of_many(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  TgTensor *sum = in[0];
  (void)nout, (void)user;
  for (int i = 1; i < nin; i++)
    sum = tg_add(sum, tg_mul_scalar(in[i], i));
  out[0] = sum;
  return tg_error(ctx);
}

static void many_buffers(void **state) {
  (void)state;
  TgJit *j = tg_jit(C, sum_of_many, NULL);
  for (int run = 0; run < 4; run++) {
    TgTensor *in[MANY], *out = NULL;
    double want = 0, got[3];
    tg_scope_begin(C);
    for (int i = 0; i < MANY; i++) {
      float x[3] = {(float)(i + run), 1, 2};
      in[i] = tg_from(C, x, TG_F32, TG_SHAPE(3));
      want += (i ? i : 1) * (double)(i + run);
    }
    OK(tg_jit_run(j, in, MANY, &out, 1));
    OK(tg_read_f64(out, got, 3));
    assert_float_equal(got[0], want, 0);
    assert_float_equal(got[2], 2 * (1 + MANY * (MANY - 1) / 2), 0);
    tg_scope_end(C);
  }
  assert_true(captured_launches() > 0);
  tg_jit_free(j);
}

/* The same with a variable, which stands behind the addresses. */
static void many_buffers_and_a_variable(void **state) {
  (void)state;
  TgVariable *n = tg_variable(C, "n", 1, 9);
  TgTensor *all[MANY];
  for (int i = 0; i < MANY; i++) {
    float x[9];
    for (int k = 0; k < 9; k++)
      x[k] = (float)(i * k);
    all[i] = tg_keep(tg_from(C, x, TG_F32, TG_SHAPE(9)));
  }
  for (int size = 2; size <= 9; size += 7) {
    double got[9];
    OK(tg_variable_bind(n, size));
    TgTensor *sum = tg_slice(all[0], 0, 0, tg_size(n));
    for (int i = 1; i < MANY; i++)
      sum = tg_add(sum, tg_slice(all[i], 0, 0, tg_size(n)));
    OK(tg_read_f64(sum, got, (size_t)size));
    for (int k = 0; k < size; k++)
      assert_float_equal(got[k], k * (MANY * (MANY - 1) / 2), 0);
  }
  for (int i = 0; i < MANY; i++)
    tg_release(all[i]);
}

/* A variable is an element of an array that the kernel is given behind its buffers. */
static void variables(void **state) {
  (void)state;
  float x[20];
  for (int i = 0; i < 20; i++)
    x[i] = (float)i;
  TgVariable *n = tg_variable(C, "n", 1, 20);
  TgTensor *all = tg_from(C, x, TG_F32, TG_SHAPE(20));
  for (int k = 1; k <= 20; k += 6) {
    OK(tg_variable_bind(n, k));
    double got;
    OK(tg_read_f64(tg_sum(tg_slice(all, 0, 0, tg_size(n))), &got, 1));
    assert_float_equal(got, k * (k - 1) / 2, 0);
  }
}

/* Two devices have no memory in common: what goes between them goes through the host. */
static void two_devices(void **state) {
  (void)state;
  for (int order = 1; order <= 3; order++) {
    emulate(order);
    C = opened("METAL");
    TgTensor *x = X("[0, 1, 2, 3, 4, 5]"), *y = tg_to(tg_mul(x, x), "METAL:1");
    TgTensor *z = tg_to(tg_add(y, tg_to(x, "METAL:1")), "CPU");
    TEXT(z, "CPU", "[0, 2, 6, 12, 20, 30]");
    tg_close(C);
    nothing_left();
  }
}

/* What one GPU has goes to another one that is its peer, beside launches: behind what was given before to both, and
 * before what is given next. nth: of its messages fails; 0: none. */
static TgStatus copied_beside(uint64_t nth, uint64_t *messages) {
  float first[4] = {1, 2, 3, 4}, then[4] = {5, 6, 7, 8}, back[4] = {0};
  C = opened("METAL");
  OK(tg_realize(tg_to(tg_ones(C, TG_SHAPE(4)), "METAL:1")));
  Device *one = C->devices.at[0], *two = C->devices.at[1];
  const TgBackend *b = one->backend;
  Event *e = NULL, *f = NULL, *done = NULL;
  void *from, *to;
  assert_string_equal(two->name, "METAL:1");
  assert_true(b->reads_peer(two, one));
  OK(b->alloc(one, 64, &from)), OK(b->alloc(two, 64, &to));
  uint64_t before = metal_mock_counts().messages;
  metal_mock_fail(NULL, nth);
  TgStatus s = b->copy_in(two, to, then, sizeof then); /* is overwritten */
  if (!s) s = b->event_record(two, &f);
  if (!s) s = b->copy_in(one, from, first, sizeof first);
  if (!s) s = b->event_record(one, &e);
  if (!s) s = b->copy_beside(one, from, two, to, sizeof first, (Event *[]){e, f}, &done);
  if (!s) s = b->event_wait(one, done);
  if (!s) s = b->copy_in(one, from, then, sizeof then); /* not before the copy */
  if (!s) s = b->event_wait(two, done);
  if (!s) s = b->copy_out(two, back, to, sizeof back);
  if (!s) s = b->sync(one);
  if (!s) s = b->sync(two);
  fail_nothing();
  *messages = metal_mock_counts().messages - before;
  if (!s) assert_memory_equal(back, first, sizeof back);
  b->event_free(one, e), b->event_free(two, f), b->event_free(one, done);
  b->free(one, from, 64), b->free(two, to, 64);
  tg_close(C);
  nothing_left();
  return s;
}

static void copies_beside(void **state) {
  (void)state;
  uint64_t messages, told = 0, ignored;
  for (int order = 1; order <= 60; order++) {
    emulate(order);
    assert_int_equal(copied_beside(0, &messages), TG_OK);
  }
  emulate(1);
  assert_int_equal(copied_beside(0, &messages), TG_OK);
  for (uint64_t n = 1; n <= messages; n++)
    told += copied_beside(n, &ignored) != TG_OK;
  assert_true(told > messages / 4);
}

/* One device waits for an event of another: what it was given before goes on without. */
static void events_between_devices(void **state) {
  (void)state;
  TgTensor *x = tg_to(tg_ones(C, TG_SHAPE(4)), "METAL:1");
  OK(tg_realize(x));
  Device *one = C->devices.at[0], *two = C->devices.at[1];
  const TgBackend *b = one->backend;
  Event *e = NULL, *f = NULL;
  void *memory;
  float data[4] = {1, 2, 3, 4}, back[4];
  assert_string_equal(two->name, "METAL:1");
  OK(b->event_record(one, &e));
  OK(b->alloc(one, sizeof data, &memory));
  OK(b->copy_in(one, memory, data, sizeof data));
  OK(b->event_record(one, &e));
  OK(b->event_wait(two, e));
  OK(b->event_wait(one, e));
  OK(b->event_record(two, &f));
  OK(b->event_reach(two, f)); /* which needs what the other does first */
  metal_look(one);
  assert_int_equal(((const Metal *)one->priv)->done, ((const Metal *)one->priv)->serial);
  OK(b->copy_out(one, back, memory, sizeof back));
  assert_memory_equal(back, data, sizeof data);
  OK(b->event_record(one, &f));
  OK(b->event_reach(one, f));
  assert_true(b->event_us(one, e, f) >= 0);
  b->event_free(one, e), b->event_free(one, f);
  b->free(one, memory, sizeof data);
}

/* Of a captured function only the commands whose arguments changed are written again. */
static TgStatus two_kernels(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  TgTensor *w = user;
  (void)nin, (void)nout;
  out[0] = tg_sum(tg_contiguous(tg_mul(w, w)));
  out[1] = tg_sum(tg_contiguous(tg_mul(in[0], in[0])));
  return tg_error(ctx);
}

static void commands_are_updated(void **state) {
  (void)state;
  TgTensor *w = tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(300), 2)));
  OK(tg_realize(w));
  TgJit *j = tg_jit(C, two_kernels, w);
  uint64_t written[8] = {0};
  TgTensor *x[2] = {tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(300), 3))),
                    tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(300), 4)))};
  OK(tg_realize(x[0]));
  OK(tg_realize(x[1]));
  for (int i = 0; i < 8; i++) {
    tg_scope_begin(C);
    TgTensor *out[2];
    double got[2];
    int which = i < 5 ? 0 : 1; /* one change */
    OK(tg_jit_run(j, &x[which], 1, out, 2));
    OK(tg_read_f64(out[0], &got[0], 1));
    OK(tg_read_f64(out[1], &got[1], 1));
    assert_float_equal(got[0], 1200, 0);
    assert_float_equal(got[1], which ? 4800 : 2700, 0);
    written[i] = metal_mock_counts().commands_written;
    tg_scope_end(C);
  }
  assert_int_equal(written[1], 0);
  assert_int_equal(written[2], 2);
  assert_in_range(written[7] - written[2], 1, 5 * 2 - 1);
  tg_jit_free(j);
  tg_release(w), tg_release(x[0]), tg_release(x[1]);
}

/* Replays whose arguments change, now of one command, now of another, given while those before are still to
 * run: what was given keeps its own. */
typedef struct Counting {
  TgTensor *sum;
  TgVariable *n;
} Counting;

static TgStatus counted(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Counting *c = user;
  (void)nin, (void)nout;
  TgTensor *twice = tg_contiguous(tg_mul_scalar(in[0], 2));
  TgTensor *part = tg_sum(tg_slice(tg_mul(twice, in[1]), 0, 0, tg_size(c->n)));
  tg_assign(c->sum, tg_add(tg_mul_scalar(c->sum, 2), part));
  out[0] = c->sum;
  return tg_error(ctx);
}

static void replays_in_flight(void **state) {
  (void)state;

  enum { RUNS = 16, MOST = 20 };

  for (int order = 1; order <= 3; order++) {
    emulate(order);
    C = opened("METAL");
    Counting c = {tg_keep(tg_zeros(C, TG_SHAPE(1))), tg_variable(C, "n", 1, MOST)};
    TgTensor *x[6];
    double want = 0, got;
    for (int k = 0; k < 6; k++) {
      x[k] = tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(MOST), k % 3 + 1)));
      OK(tg_realize(x[k]));
    }
    OK(tg_realize(c.sum));
    TgJit *j = tg_jit(C, counted, &c);
    for (int i = 0; i < RUNS; i++) {
      int a = i / 3 % 3, b = (i + 1) / 2 % 3, n = 1 + i / 5 * 6;
      TgTensor *in[2] = {x[a], x[3 + b]}, *out = NULL;
      OK(tg_variable_bind(c.n, n));
      OK(tg_jit_run(j, in, 2, &out, 1));
      want = 2 * want + n * 2 * (a + 1) * (b + 1);
    }
    if (order == 1) assert_int_equal(captured_living(), 2);
    OK(tg_read_f64(c.sum, &got, 1));
    assert_float_equal(got, want, 0);
    tg_jit_free(j);
    for (int k = 0; k < 6; k++)
      tg_release(x[k]);
    tg_release(c.sum);
    tg_close(C);
    nothing_left();
  }
}

/* A context belongs to a thread; two of them share the GPU. */
static void *own_context(void *arg) {
  double *got = arg;
  for (int i = 0; i < 3; i++) {
    TgContext *ctx = opened("METAL");
    TgTensor *x = tg_reshape(tg_arange(ctx, 0, 60), TG_SHAPE(6, 10));
    if (tg_read_f64(tg_sum(tg_matmul(x, tg_transpose(x, 0, 1))), got, 1)) *got = -1;
    tg_close(ctx);
  }
  return NULL;
}

static void two_threads(void **state) {
  (void)state;
  double got[2] = {0}, want = 0;
  pthread_t t[2];
  emulate(1);
  for (int k = 0; k < 10; k++) { /* the squares of the sums of columns */
    double column = 0;
    for (int r = 0; r < 6; r++)
      column += r * 10 + k;
    want += column * column;
  }
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&t[i], NULL, own_context, &got[i]), 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_join(t[i], NULL), 0);
  for (int i = 0; i < 2; i++)
    assert_float_equal(got[i], want, 0);
  nothing_left();
}

/* ---- messages */
/* What each message is declared with here, beside what the stand-in says that it takes. */
#define TYPE(T)                                                                                              \
  _Generic((T *)0, void *: "v", MetalId *: "@", MetalSelector *: ":", const char **: "*", unsigned long *: "Q", \
           unsigned long long *: "Q", long *: "q", signed char *: "c", uint8_t *: "C", double *: "d",           \
           void **: "^v", const void **: "^v", MetalId **: "^@", const MetalId **: "^@", MetalSize *: "{QQQ}",  \
           MetalRange *: "{QQ}")
#define TYPES_0
#define TYPES_1(A)              , TYPE(A)
#define TYPES_2(A, B)           , TYPE(A), TYPE(B)
#define TYPES_3(A, B, C_)       , TYPE(A), TYPE(B), TYPE(C_)
#define TYPES_4(A, B, C_, D)    , TYPE(A), TYPE(B), TYPE(C_), TYPE(D)
#define TYPES_5(A, B, C_, D, E) , TYPE(A), TYPE(B), TYPE(C_), TYPE(D), TYPE(E)

static void types_agree(void **state) {
  static const struct {
    const char *selector, *types[9];
  } declared[] = {

#define METAL(n, result, name, selector, ...)     METAL_ROW_##n(result, selector, ##__VA_ARGS__)
#define METAL_ROW_0(result, selector)             {selector, {TYPE(result), "@", ":"}},
#define METAL_ROW_1(result, selector, A)          {selector, {TYPE(result), "@", ":" TYPES_1(A)}},
#define METAL_ROW_2(result, selector, A, B)       {selector, {TYPE(result), "@", ":" TYPES_2(A, B)}},
#define METAL_ROW_3(result, selector, A, B, D)    {selector, {TYPE(result), "@", ":" TYPES_3(A, B, D)}},
#define METAL_ROW_4(result, selector, A, B, D, E) {selector, {TYPE(result), "@", ":" TYPES_4(A, B, D, E)}},
#define METAL_ROW_5(result, selector, A, B, D, E, F)                                                         \
  {selector, {TYPE(result), "@", ":" TYPES_5(A, B, D, E, F)}},
#include "runtime/metal_api.def"
#undef METAL
  };

  (void)state;
  for (size_t i = 0; i < METAL_MESSAGES; i++) {
    char text[64] = "";
    size_t colons = 0, arguments = 0;
    for (int k = 0; declared[i].types[k]; k++)
      strcat(text, declared[i].types[k]), arguments += k > 2;
    for (const char *p = declared[i].selector; *p; p++)
      colons += *p == ':';
    assert_int_equal(colons, arguments); /* a selector has one for each argument */
    const char *types = metal_mock_types((MetalMessage)i);
    if (i == METAL_set_math_mode || i == METAL_set_math_functions)
      continue; /* of newer systems than the one that is stood in for */
    if (!types || strcmp(types, text))
      fail_msg("%s: %s, not %s", declared[i].selector, text, types ? types : "none");
  }
}

/* Every message fails once: the program is told so, or is right all the same, and nothing is left. */
static void any_message_may_fail(void **state) {
  (void)state;
  emulate(1);
  fail_nothing();
  Outcome right = program();
  assert_int_equal(right.status, TG_OK);
  nothing_left();
  uint64_t messages = metal_mock_counts().messages, told = 0;
  assert_in_range(messages, 100, 5000);
  for (uint64_t n = 1; n <= messages; n++) {
    metal_mock_fail(NULL, n);
    Outcome o = program();
    told += o.status != TG_OK;
    nothing_left();
    if (!o.status && (o.value < right.value - 1e-4 || o.value > right.value + 1e-4))
      fail_msg("message %d fails: %g, not %g, and no error", (int)n, o.value, right.value);
  }
  fail_nothing();
  assert_true(told > messages / 4);
  right = program();
  assert_int_equal(right.status, TG_OK);
}

static void says_what_failed(void **state) {
  (void)state;
  TgTensor *x = tg_contiguous(tg_add(X("[1.0, 2.0]"), X("[3.0, 4.0]")));
  OK(tg_realize(x));
  float got[2];
  assert_true(metal_mock_fail("send_off", 1));
  assert_int_equal(tg_read(x, got, sizeof got), TG_ERR_DEVICE);
  assert_non_null(strstr(tg_errmsg(C), "METAL: what it was given failed: the GPU was lost"));
  assert_non_null(strstr(tg_errmsg(C), "kernel "));
  tg_clear_error(C);
  OK(tg_read(x, got, sizeof got));
  assert_float_equal(got[1], 6, 0);
  assert_true(metal_mock_fail("new_library", 1));
  assert_int_equal(tg_realize(tg_sqrt(tg_add_scalar(x, 17))), TG_ERR_COMPILE);
  assert_non_null(strstr(tg_errmsg(C), "METAL: the compiler refuses a text"));
  tg_clear_error(C);
  assert_true(metal_mock_fail("new_buffer", 1));
  TgTensor *y = tg_contiguous(tg_add(x, x));
  TgStatus s = tg_realize(y);
  assert_true(s == TG_OK || s == TG_ERR_NOMEM);
  tg_clear_error(C);
  TEXT(y, "METAL", "[8.0, 12.0]");
}

/* ---- misuse of Metal: what a wrong device of ours would do */
typedef struct Driver {
  MetalApi m;
  MetalId device, queue, buffer, encoder, x, y, shared, library, pipeline, event;
  void *pool;
} Driver;

enum { N = 64, BYTES = N * sizeof(float) };

static const char twice_text[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                                 "kernel void twice(device float *y [[buffer(0)]], device const float *x "
                                 "[[buffer(1)]], uint3 lid [[thread_position_in_threadgroup]]) {\n"
                                 "  y[lid.x] = 2 * x[lid.x];\n}\n";

static MetalId made(const Driver *v, const char *class_name) {
  return metal_init(&v->m, metal_alloc_object(&v->m, v->m.class_named(class_name)));
}

static void pipeline_of(Driver *v, const char *text, const char *name, bool indirect) {
  const MetalApi *m = &v->m;
  MetalId error = NULL, options = made(v, "MTLCompileOptions");
  metal_set_fast_math(m, options, 0);
  v->library =
      metal_new_library(m, v->device, metal_string(m, m->class_named("NSString"), text), options, &error);
  if (!v->library) fail_msg("%s", metal_text(m, metal_description(m, error)));
  metal_release(m, options);
  MetalId f = metal_new_function(m, v->library, metal_string(m, m->class_named("NSString"), name));
  assert_non_null(f);
  MetalId d = made(v, "MTLComputePipelineDescriptor");
  metal_set_function(m, d, f);
  metal_set_most_threads(m, d, N);
  metal_set_indirect(m, d, indirect);
  v->pipeline = metal_new_pipeline(m, v->device, d, 0, NULL, &error);
  assert_non_null(v->pipeline);
  metal_release(m, d), metal_release(m, f);
}

static void driver_open(Driver *v) {
  TgError err = {0};
  TgEnv env;
  MetalLibraries lib;
  emulate(1);
  *v = (Driver){0};
  fail_nothing();
  assert_int_equal(env_read(&env, &err), TG_OK);
  if (metal_load(&tg_os_default, &env, &err, &lib, &v->m)) fail_msg("%s", err.msg);
  const MetalApi *m = &v->m;
  v->pool = m->pool_push();
  MetalId all = m->devices();
  v->device = metal_retain(m, metal_at(m, all, 0));
  metal_release(m, all);
  v->queue = metal_new_queue(m, v->device), v->event = metal_new_event(m, v->device);
  v->x = metal_new_buffer(m, v->device, BYTES, METAL_PRIVATE);
  v->y = metal_new_buffer(m, v->device, BYTES, METAL_PRIVATE);
  v->shared = metal_new_buffer(m, v->device, 2 * BYTES, METAL_SHARED);
  float *host = metal_contents(m, v->shared);
  for (int i = 0; i < 2 * N; i++)
    host[i] = (float)i;
  pipeline_of(v, twice_text, "twice", true);
  v->buffer = metal_command_buffer(m, v->queue);
}

static void driver_close(Driver *v) {
  const MetalApi *m = &v->m;
  MetalId held[] = {v->pipeline, v->library, v->shared, v->y, v->x, v->event, v->queue, v->device};
  for (size_t i = 0; i < sizeof held / sizeof *held; i++)
    if (held[i]) metal_release(m, held[i]);
  if (v->pool) m->pool_pop(v->pool);
  metal_mock_close();
}

static void begin(Driver *v, bool blit) {
  v->encoder = blit ? metal_blit_encoder(&v->m, v->buffer) : metal_compute_encoder(&v->m, v->buffer);
}

static void end(Driver *v) { metal_end_encoding(&v->m, v->encoder); }

static void copy(Driver *v, MetalId from, MetalId to, MetalUint nbytes) {
  metal_copy(&v->m, v->encoder, from, 0, to, 0, nbytes);
}

static void twice(Driver *v, MetalId y, MetalUint offset, MetalUint block) {
  metal_set_pipeline(&v->m, v->encoder, v->pipeline);
  metal_set_buffer(&v->m, v->encoder, y, offset, 0);
  metal_set_buffer(&v->m, v->encoder, v->x, 0, 1);
  metal_dispatch(&v->m, v->encoder, (MetalSize){1, 1, 1}, (MetalSize){block, 1, 1});
}

static void run(Driver *v) {
  metal_send_off(&v->m, v->buffer);
  metal_wait(&v->m, v->buffer);
}

static void copied_in(Driver *v) {
  begin(v, true);
  copy(v, v->shared, v->x, BYTES);
  end(v);
}

static void right(Driver *v) { /* there, twice, and back */
  copied_in(v);
  begin(v, false);
  twice(v, v->y, 0, N);
  end(v);
  begin(v, true);
  copy(v, v->y, v->shared, BYTES);
  end(v);
  run(v);
}

static void not_copied(Driver *v) {
  begin(v, false);
  twice(v, v->y, 0, N);
  end(v);
  run(v);
}

static void encoder_left_open(Driver *v) {
  begin(v, true);
  copy(v, v->shared, v->x, BYTES);
  run(v);
}

static void two_encoders(Driver *v) {
  begin(v, true);
  begin(v, false);
}

static void encoder_used_late(Driver *v) {
  copied_in(v);
  copy(v, v->shared, v->y, BYTES);
}

static void ended_twice(Driver *v) {
  copied_in(v);
  end(v);
}

static void committed_twice(Driver *v) {
  copied_in(v);
  run(v);
  metal_send_off(&v->m, v->buffer);
}

static void waited_early(Driver *v) {
  copied_in(v);
  metal_wait(&v->m, v->buffer);
}

static void timed_early(Driver *v) {
  copied_in(v);
  metal_send_off(&v->m, v->buffer);
  metal_ended_s(&v->m, v->buffer);
}

static void released_twice(Driver *v) {
  metal_release(&v->m, v->event);
  metal_release(&v->m, v->event);
  v->event = NULL;
}

static void used_after_release(Driver *v) {
  metal_release(&v->m, v->y);
  begin(v, false);
  twice(v, v->y, 0, N);
  end(v);
  v->y = NULL;
}

static void no_pool(Driver *v) {
  v->m.pool_pop(v->pool);
  v->pool = NULL;
  metal_name(&v->m, v->device);
}

static void outer_pool_first(Driver *v) {
  void *inner = v->m.pool_push();
  v->m.pool_pop(v->pool);
  v->m.pool_pop(inner);
}

static void private_contents(Driver *v) { metal_contents(&v->m, v->x); }

static void wrong_kind(Driver *v) {
  begin(v, false);
  metal_set_pipeline(&v->m, v->encoder, v->x);
  end(v);
}

static void wrong_receiver(Driver *v) { metal_send_off(&v->m, v->queue); }

static void no_pipeline(Driver *v) {
  begin(v, false);
  metal_dispatch(&v->m, v->encoder, (MetalSize){1, 1, 1}, (MetalSize){1, 1, 1});
  end(v);
  run(v);
}

static void buffer_missing(Driver *v) {
  copied_in(v);
  begin(v, false);
  twice(v, NULL, 0, N);
  end(v);
  run(v);
}

static void buffer_too_short(Driver *v) {
  copied_in(v);
  begin(v, false);
  twice(v, v->y, 4, N);
  end(v);
  run(v);
}

static void too_many_threads(Driver *v) {
  copied_in(v);
  begin(v, false);
  twice(v, v->shared, 0, N + 1);
  end(v);
  run(v);
}

static void odd_copy(Driver *v) {
  begin(v, true);
  copy(v, v->shared, v->x, 6);
  end(v);
}

static void copy_too_long(Driver *v) {
  begin(v, true);
  copy(v, v->shared, v->x, BYTES + 4);
  end(v);
}

static void number_too_large(Driver *v) {
  begin(v, false);
  metal_set_buffer(&v->m, v->encoder, v->x, 0, 31);
  end(v);
}

static void too_many_bytes(Driver *v) {
  static const char bytes[INLINE_BYTES + 4];
  begin(v, false);
  metal_set_bytes(&v->m, v->encoder, bytes, sizeof bytes, 0);
  end(v);
}

static void waits_for_ever(Driver *v) {
  metal_wait_for(&v->m, v->buffer, v->event, 7);
  run(v);
}

/* ---- indirect command buffers */
static MetalId commands_of(Driver *v) {
  const MetalApi *m = &v->m;
  MetalId d = made(v, "MTLIndirectCommandBufferDescriptor");
  metal_set_command_types(m, d, METAL_CONCURRENT_DISPATCH);
  metal_set_inherit_buffers(m, d, 0), metal_set_inherit_pipeline(m, d, 0);
  metal_set_most_buffers(m, d, 2);
  MetalId in = metal_new_indirect(m, v->device, d, 2, METAL_SHARED);
  metal_release(m, d);
  return in;
}

static void command(Driver *v, MetalId in, MetalUint i, MetalId y, MetalId x, bool barrier) {
  MetalId c = metal_command(&v->m, in, i);
  metal_reset(&v->m, c);
  metal_set_pipeline(&v->m, c, v->pipeline);
  metal_set_kernel_buffer(&v->m, c, y, 0, 0);
  metal_set_kernel_buffer(&v->m, c, x, 0, 1);
  metal_command_dispatch(&v->m, c, (MetalSize){1, 1, 1}, (MetalSize){N, 1, 1});
  if (barrier) metal_set_barrier(&v->m, c);
}

static void pipeline_brought(Driver *v) {
  metal_set_pipeline(&v->m, v->encoder, v->pipeline);
  metal_dispatch(&v->m, v->encoder, (MetalSize){0, 0, 0}, (MetalSize){0, 0, 0});
}

/* y = 2 x, then shared = 2 y. */
static void chain(Driver *v, bool barrier, int named, bool late) {
  MetalId in = commands_of(v), all[] = {v->x, v->y, v->shared};
  command(v, in, 0, v->y, v->x, true);
  command(v, in, 1, v->shared, v->y, barrier);
  copied_in(v);
  begin(v, false);
  metal_use(&v->m, v->encoder, all, (MetalUint)named, METAL_READ_WRITE);
  pipeline_brought(v);
  metal_execute(&v->m, v->encoder, in, (MetalRange){0, 2});
  end(v);
  metal_send_off(&v->m, v->buffer);
  if (late) command(v, in, 0, v->y, v->x, true);
  metal_wait(&v->m, v->buffer);
  metal_release(&v->m, in);
}

static void no_barrier(Driver *v) { chain(v, false, 3, false); }

static void not_named(Driver *v) { chain(v, true, 2, false); }

static void written_in_flight(Driver *v) { chain(v, true, 3, true); }

static void direct_pipeline(Driver *v) {
  MetalId had[] = {v->pipeline, v->library};
  pipeline_of(v, twice_text, "twice", false);
  metal_release(&v->m, had[0]), metal_release(&v->m, had[1]);
  chain(v, true, 3, false);
}

static void pipeline_not_brought(Driver *v) { /* set, but not dispatched */
  MetalId in = commands_of(v), all[] = {v->x, v->y, v->shared};
  command(v, in, 0, v->y, v->x, true), command(v, in, 1, v->shared, v->y, true);
  copied_in(v);
  begin(v, false);
  metal_use(&v->m, v->encoder, all, 3, METAL_READ_WRITE);
  metal_set_pipeline(&v->m, v->encoder, v->pipeline);
  metal_execute(&v->m, v->encoder, in, (MetalRange){0, 2});
  end(v);
  run(v);
  metal_release(&v->m, in);
}

static void command_not_written(Driver *v) {
  MetalId in = commands_of(v), all[] = {v->x, v->y};
  command(v, in, 0, v->y, v->x, true);
  copied_in(v);
  begin(v, false);
  metal_use(&v->m, v->encoder, all, 2, METAL_READ_WRITE);
  pipeline_brought(v);
  metal_execute(&v->m, v->encoder, in, (MetalRange){0, 2});
  end(v);
  run(v);
  metal_release(&v->m, in);
}

/* Addresses in a struct: the buffer that one leads to is not named. */
static void address_not_named(Driver *v) {
  static const char text[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                             "struct args { device float *y; device const float *x; };\n"
                             "kernel void twice(constant args &a [[buffer(0)]], uint3 lid "
                             "[[thread_position_in_threadgroup]]) {\n  a.y[lid.x] = 2 * a.x[lid.x];\n}\n";
  MetalId had[] = {v->pipeline, v->library};
  pipeline_of(v, text, "twice", false);
  metal_release(&v->m, had[0]), metal_release(&v->m, had[1]);
  uint64_t at[] = {metal_address(&v->m, v->y), metal_address(&v->m, v->x)};
  copied_in(v);
  begin(v, false);
  metal_set_pipeline(&v->m, v->encoder, v->pipeline);
  metal_set_bytes(&v->m, v->encoder, at, sizeof at, 0);
  metal_use(&v->m, v->encoder, &v->y, 1, METAL_READ_WRITE);
  metal_dispatch(&v->m, v->encoder, (MetalSize){1, 1, 1}, (MetalSize){N, 1, 1});
  end(v);
  run(v);
}

/* What the stand-in says: its own complaint, or that of a command buffer that ended with an error. */
static const char *complaint(Driver *v) {
  if (*metal_mock_misuse()) return metal_mock_misuse();
  if (metal_status(&v->m, v->buffer) != METAL_ERROR) return "";
  return metal_text(&v->m, metal_description(&v->m, metal_error(&v->m, v->buffer)));
}

static void misuse_is_seen(void **state) {
  static const struct {
    const char *name;
    void (*does)(Driver *v);
    const char *says;
  } faults[] = {{"memory that nobody wrote", not_copied, "nobody wrote"},
                {"encoder left open", encoder_left_open, "while an encoder is open"},
                {"two encoders", two_encoders, "while an encoder is open"},
                {"encoder used late", encoder_used_late, "has ended"},
                {"encoder ended twice", ended_twice, "has ended"},
                {"committed twice", committed_twice, "was committed"},
                {"waited for early", waited_early, "was not committed"},
                {"time of what is not done", timed_early, "not done"},
                {"released twice", released_twice, "not there any more"},
                {"used after its release", used_after_release, "not there any more"},
                {"no pool", no_pool, "pool where there is none"},
                {"outer pool first", outer_pool_first, "not the innermost"},
                {"contents of private memory", private_contents, "private"},
                {"argument of another kind", wrong_kind, "an MTLBuffer where"},
                {"receiver of another kind", wrong_receiver, "does not understand commit"},
                {"no pipeline", no_pipeline, "without a pipeline"},
                {"buffer missing", buffer_missing, "argument 1 of 2 is missing"},
                {"buffer too short", buffer_too_short, "past the end"},
                {"more threads than the pipeline has", too_many_threads, "more threads"},
                {"copy of half a word", odd_copy, "copyFromBuffer: 6 bytes"},
                {"copy past the end", copy_too_long, "toBuffer: 260 bytes"},
                {"number of a buffer too large", number_too_large, "buffer 31"},
                {"too many bytes by value", too_many_bytes, "setBytes: 4100"},
                {"wait without a signal", waits_for_ever, "for ever"},
                {"commands without a barrier", no_barrier, "nobody wrote"},
                {"buffer of a command not named", not_named, "not named"},
                {"command written while it is to run", written_in_flight, "that is to run"},
                {"pipeline for direct launches", direct_pipeline, "does not support indirect"},
                {"pipeline of a command not brought", pipeline_not_brought, "was not given"},
                {"command that nobody wrote", command_not_written, "nobody wrote"},
                {"address not named", address_not_named, "does not name"}};

  (void)state;
  Driver *v = &(Driver){0};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    driver_open(v);
    faults[i].does(v);
    const char *why = complaint(v);
    if (!strstr(why, faults[i].says)) fail_msg("%s: says \"%s\"", faults[i].name, why);
    driver_close(v);
  }
  driver_open(v);
  right(v);
  assert_string_equal(complaint(v), "");
  const float *host = metal_contents(&v->m, v->shared);
  for (int i = 0; i < N; i++)
    assert_float_equal(host[i], 2 * i, 0);
  driver_close(v);
  driver_open(v);
  chain(v, true, 3, false);
  assert_string_equal(complaint(v), "");
  host = metal_contents(&v->m, v->shared);
  for (int i = 0; i < N; i++)
    assert_float_equal(host[i], 4 * i, 0);
  driver_close(v);
  nothing_left();
}

/* ---- the lint */
#define KERNEL_HEAD                                                                                          \
  "kernel void k(device float *p [[buffer(0)]], uint3 lid [[thread_position_in_threadgroup]]) {\n"

static void lint(void **state) {
  static const struct {
    const char *text, *says;
  } faults[] = {
      {"kernel void k(float *p [[buffer(0)]]) { p[0] = 1; }", "pointer without an address space"},
      {"kernel void k(device float *p [[buffer(0)]]) { const float *q = p; }",
       "pointer without an address space"},
      {"kernel void k(device float *p [[buffer(0)]]) { *(float4 *)(p + 4) = 0; }", "pointer without"},
      {"typedef float f32; kernel void k(device f32 *p [[buffer(0)]]) { *(f32 *)p = 0; }", "pointer without"},
      {"struct S { float x; };\nkernel void k(S &s [[buffer(0)]]) {}", "METAL kernel:2: a pointer without"},
      {"kernel void k(device float *p [[buffer(31)]]) {}", "below 31"},
      {"kernel void k(device float *p [[buffer(n)]]) {}", "below 31"},
      {"kernel void k(device float *p [[buffer(2)]], device float *q [[buffer(2)]]) {}", "given twice"},
      {"kernel void k(device float *p) {}", "without [[ ]]"},
      {"kernel void k(device float *p [[buffer(0)]], uint3 i [[thread_position]]) {}", "not known"},
      {KERNEL_HEAD "  float device = 1; p[0] = device;\n}", "keeps for itself: 'device'"},
      {KERNEL_HEAD "  int fragment = 1; p[0] = fragment;\n}",
       "METAL kernel:2: a name that the language keeps"},
      {KERNEL_HEAD "  double x = 1; p[0] = x;\n}", "does not have: 'double'"},
      {KERNEL_HEAD "again: goto again;\n}", "does not have: 'goto'"},
      {"static float f(float x) { return x > 0 ? f(x - 1) : 0; }\n" KERNEL_HEAD "}", "calls itself: 'f'"},
      {"static float g(float x);\nstatic float f(float x) { return g(x); }\n"
       "static float g(float x) { return f(x); }",
       "METAL kernel:3: a function that calls itself: 'f'"},
      {"static void f(void) { threadgroup float l[4]; }", "outermost block of a kernel"},
      {KERNEL_HEAD "  if (lid.x) { threadgroup float l[4]; }\n}", "outermost block of a kernel"}};

  static const char *const fine[] = {
      "// double *p\n/* goto */\n#define F(x) double *x\n" KERNEL_HEAD "  p[0] = \"double\"[0];\n}",
      KERNEL_HEAD
      "  alignas(16) threadgroup float l[4]; threadgroup float *q = l; int x = 3 * 4 & 5; x = x && x;\n}",
      "static float f(float x) { return x; }\nstatic float g(float x) { return f(f(x)); }\n" KERNEL_HEAD
      "  const device float4 *q = (device const float4 *)p; thread float *t; constant int *c;\n}"};

  (void)state;
  TgMem mem = {0};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    TgError err = {0};
    TgStatus st = metal_lint(&mem, faults[i].text, &err);
    if (st != TG_ERR_COMPILE || !strstr(err.msg, faults[i].says))
      fail_msg("%s\nsays \"%s\"", faults[i].text, err.msg);
  }
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
    TgError err = {0};
    if (metal_lint(&mem, fine[i], &err)) fail_msg("%s\nsays \"%s\"", fine[i], err.msg);
  }
  assert_int_equal(mem.live, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_device, close_it)

int main(void) {
  const struct CMUnitTest tests[] = {T(opens),
                                     cmocka_unit_test(says_what_is_missing),
                                     T(no_f64),
                                     T(no_bfloat),
                                     T(same_as_cpu),
                                     T(long_products),
                                     T(copies_in_pieces),
                                     T(copies_of_any_size),
                                     T(copies_between_words),
                                     T(many_buffers),
                                     T(many_buffers_and_a_variable),
                                     T(variables),
                                     cmocka_unit_test(variables_are_given),
                                     cmocka_unit_test(streams_are_ordered),
                                     cmocka_unit_test(two_devices),
                                     cmocka_unit_test(copies_beside),
                                     T(events_between_devices),
                                     T(bytes_of_a_file),
                                     T(training_from_disk),
                                     T(replays),
                                     T(commands_are_updated),
                                     cmocka_unit_test(replays_in_flight),
                                     T(trains_a_gpt),
                                     T(memory_is_given_back),
                                     T(says_what_failed),
                                     cmocka_unit_test(two_threads),
                                     cmocka_unit_test(types_agree),
                                     cmocka_unit_test(any_message_may_fail),
                                     cmocka_unit_test(misuse_is_seen),
                                     cmocka_unit_test(lint)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
