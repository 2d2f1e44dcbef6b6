/* test_export.c: captured functions as C. What the compiled text computes has the bits of the interpreter,
 * which runs the same plan (INTERP:C99) and checks each access; the compilers warn of nothing; a step of
 * training goes on as the library's does; two instances do not meet; what cannot be written is refused, and
 * leaves no file. */
#define _GNU_SOURCE
#include "export/cases.h"
#include "export/exported.h"
#include "export/nodes.h"
#include "fixture.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/tg-export-XXXXXX";
static const char *const trapping = "gcc -O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error";
#define COMPILERS                                                                                            \
  "gcc -std=c99 -pedantic -Wall -Wextra -Wconversion -Werror -O2 -c -o /dev/null model.c",                   \
      "gcc -std=c99 -pedantic -Wall -Wextra -Wconversion -Werror -ffreestanding -O1 -c -o /dev/null "        \
      "model.c",                                                                                             \
      "! command -v g++ >/dev/null || g++ -std=c++11 -pedantic -Wall -Wextra -Wconversion -Werror -O1 "      \
      "-x c++ -c -o /dev/null model.c",                                                                      \
      "! command -v clang-19 >/dev/null || clang-19 -std=c99 -pedantic -Wall -Wextra -Wconversion -Werror "  \
      "-fsyntax-only model.c",                                                                               \
      "! command -v clang++-19 >/dev/null || clang++-19 -std=c++11 -pedantic -Wall -Wextra -Wconversion "    \
      "-Werror -Wno-deprecated -fsyntax-only -x c++ model.c"
static const char *const compilers[] = {COMPILERS};

enum { COMPILER_COUNT = (int)(sizeof compilers / sizeof *compilers), MOST = 1 << 16 };

static int setup(void **state) {
  (void)state;
  setenv("TG_CACHE", "0", 0);
  return mkdtemp(folder) == NULL;
}

static int teardown(void **state) {
  (void)state;
  char line[100];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

static TgContext *opened(const char *device) { return opened_with_seed(device, 7); }

static void refused(TgContext *c, TgStatus got, TgStatus want, const char *says) {
  if (got != want || !strstr(tg_errmsg(c), says)) fail_msg("%d: %s", (int)got, tg_errmsg(c));
  tg_clear_error(c);
}

static TgContext *interpreter(void) { return opened("INTERP:C99"); }

static void fine(TgContext *c) {
  if (tg_error(c)) fail_msg("%s", tg_errmsg(c));
}

/* Of a NaN only that it is one means something. */
static bool is_nan(TgDType d, const char *at, size_t i) {
  float f;
  double g;
  uint16_t h;
  switch (d) {
  case TG_F32: return memcpy(&f, at + 4 * i, 4), isnan(f);
  case TG_F64: return memcpy(&g, at + 8 * i, 8), isnan(g);
  case TG_F16: return memcpy(&h, at + 2 * i, 2), (h & 0x7fff) > 0x7c00;
  case TG_BF16: return memcpy(&h, at + 2 * i, 2), (h & 0x7fff) > 0x7f80;
  default: return false;
  }
}

static void same(const char *what, TgDType d, const void *a, const void *b, size_t nbytes) {
  size_t size = tg_dtype_size(d);
  for (size_t i = 0; i < nbytes / size; i++) {
    bool equal = !memcmp((const char *)a + i * size, (const char *)b + i * size, size);
    if (equal || (is_nan(d, a, i) && is_nan(d, b, i))) continue;
    uint64_t x = 0, y = 0;
    memcpy(&x, (const char *)a + i * size, size), memcpy(&y, (const char *)b + i * size, size);
    fail_msg("%s: element %zu is %llx, the library has %llx", what, i, (unsigned long long)x,
             (unsigned long long)y);
  }
}

static void case_runs(const Case *k, const char *cc, bool own_math, bool apart) {
  TgContext *c = interpreter();
  TgJit *jit = tg_jit(c, run_case, (void *)k);
  Exported e = {0};
  for (int turn = 0; turn < 4; turn++)
    TG_SCOPE(c) {
      static char x[MOST], y[MOST], want[MOST], got[MOST];
      TgTensor *in[] = {tg_contiguous(numbers(c, k->dtype, turn)),
                        tg_contiguous(numbers(c, k->dtype, turn + 4))};
      TgTensor *out = NULL;
      if (tg_realize_many(in, 2) || tg_jit_run(jit, in, 2, &out, 1))
        fail_msg("%s: %s", k->name, tg_errmsg(c));
      if (turn < 1) continue;
      if (turn == 1 &&
          !exported_new(&e, jit, folder, cc, (TgCOptions){.own_math = own_math, .weights_apart = apart}))
        fail_msg("%s is no program", k->name);
      size_t n = tg_nbytes(in[0]), m = tg_nbytes(out);
      assert_true(n <= MOST && m <= MOST);
      memset(got, 0xaa, m);
      if (tg_read(in[0], x, n) || tg_read(in[1], y, n) || tg_read(out, want, m)) fine(c);
      assert_int_equal(exported_run(&e, e.m, (void *[]){x, y, got}), 0);
      same(k->name, tg_dtype(out), got, want, m);
    }
  exported_free(&e);
  tg_jit_free(jit);
  tg_close(c);
}

static void test_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < (size_t)export_case_count; i++)
    case_runs(&export_cases[i], trapping, i % 2, i % 3 == 0);
}

/* Step i of the library; its loss. */
static float learned(TgContext *c, TgJit *jit, int i) {
  float x[BATCH * IN], loss = 0;
  int32_t y[BATCH];
  batch_of(i, x, y);
  TG_SCOPE(c) {
    TgTensor *in[] = {tg_from(c, x, TG_F32, TG_SHAPE(BATCH, IN)), tg_from(c, y, TG_I32, TG_SHAPE(BATCH))};
    TgTensor *out = NULL;
    if (!tg_jit_run(jit, in, 2, &out, 1)) tg_read(out, &loss, sizeof loss);
  }
  fine(c);
  return loss;
}

static float learned_apart(Exported *e, void *m, int i) {
  float x[BATCH * IN], loss = -1;
  int32_t y[BATCH];
  batch_of(i, x, y);
  assert_int_equal(exported_run(e, m, (void *[]){x, y, &loss}), 0);
  return loss;
}

/* The program goes on where the capture was, for as many steps, and begins there again after a reset. */
static void learns_alike(const char *device, double dropped, bool bits, bool apart) {
  TgContext *c = opened(device);
  Learner *l = learner(c, dropped);
  TgJit *jit = tg_jit(c, learn, l);
  Exported e;
  float want[STEPS];
  learned(c, jit, 0), learned(c, jit, 1);
  assert_true(
      exported_new(&e, jit, folder, trapping, (TgCOptions){.own_math = true, .weights_apart = apart}));
  assert_true(e.about.state_bytes >= 3 * 4 * (IN * WIDE + WIDE + WIDE * CLASSES + CLASSES));
  assert_true(e.about.arena_bytes >= e.about.arena_least);
  for (int i = 0; i < STEPS; i++)
    want[i] = learned(c, jit, i + 2);
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < STEPS; i++) {
      float got = learned_apart(&e, e.m, i + 2);
      if (bits ? got != want[i] : !(fabsf(got - want[i]) < 1e-4f))
        fail_msg("%s, turn %d, step %d: loss %.9g, the library has %.9g", device, turn, i, (double)got,
                 (double)want[i]);
    }
    e.reset(e.m, e.weights);
  }
  exported_free(&e);
  tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

static void test_training(void **state) {
  (void)state;
  learns_alike("INTERP:C99", 0, true, false);
  learns_alike("CPU", 0, false, true);
}

static void test_draws(void **state) {
  (void)state;
  learns_alike("INTERP:C99", 0.4, true, false);
  learns_alike("CPU", 0.4, false, false);
}

static TgJit *step_captured(TgContext *c, Learner **l) {
  *l = learner(c, 0.25);
  TgJit *jit = tg_jit(c, learn, *l);
  learned(c, jit, 0), learned(c, jit, 1);
  return jit;
}

static void put_text(const char *name, const char *text) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_true(f && fputs(text, f) >= 0 && !fclose(f));
}

/* ---- two instances at once */
typedef struct Side {
  Exported *e;
  int from;
  float loss[STEPS];
} Side;

static void *side(void *user) {
  Side *s = user;
  void *m = malloc(s->e->nbytes);
  s->e->reset(m, NULL);
  for (int i = 0; i < STEPS; i++)
    s->loss[i] = learned_apart(s->e, m, s->from + i);
  free(m);
  return NULL;
}

static void test_instances(void **state) {
  (void)state;
  TgContext *c = interpreter();
  Learner *l = learner(c, 0.1);
  TgJit *jit = tg_jit(c, learn, l);
  Exported e;
  learned(c, jit, 0), learned(c, jit, 1);
  assert_true(exported_new(&e, jit, folder, "gcc -O1", (TgCOptions){0}));
  Side one[2] = {{.e = &e, .from = 5}, {.e = &e, .from = 50}},
       two[2] = {{.e = &e, .from = 5}, {.e = &e, .from = 50}};
  for (int i = 0; i < 2; i++)
    side(&one[i]);
  pthread_t t[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&t[i], NULL, side, &two[i]), 0);
  for (int i = 0; i < 2; i++) {
    pthread_join(t[i], NULL);
    assert_memory_equal(one[i].loss, two[i].loss, sizeof one[i].loss);
  }
  assert_true(one[0].loss[0] != one[1].loss[0]);
  exported_free(&e);
  tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

/* ---- kernels split for threads of the host: the same bits, whoever runs the shares */
typedef struct Part {
  void (*share)(void *work, int i);
  void *work;
  int i;
} Part;

static _Atomic int parts_run;

static void *part(void *user) {
  Part *p = user;
  p->share(p->work, p->i);
  parts_run++;
  return NULL;
}

static void on_threads(void (*share)(void *work, int i), int n, void *work) {
  pthread_t t[8];
  Part p[8];
  assert_in_range(n, 2, 8);
  for (int i = 0; i < n; i++) {
    p[i] = (Part){share, work, i};
    assert_int_equal(pthread_create(&t[i], NULL, part, &p[i]), 0);
  }
  for (int i = 0; i < n; i++)
    pthread_join(t[i], NULL);
}

static TgStatus wide(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  TgTensor *h = tg_relu(tg_matmul(in[0], user));
  out[0] = tg_softmax(tg_matmul(tg_tanh(h), tg_transpose(user, 0, 1)));
  return out[0] ? TG_OK : tg_error(c);
}

static void test_threads(void **state) {
  (void)state;
  static float x[96 * 128], one[96 * 128], two[96 * 128], want[96 * 128];
  static const TgCOptions options[] = {{.threads = 2},
                                       {.threads = 3, .own_math = true, .weights_apart = true},
                                       {.threads = 2, .target = "x86-64-v3"}};
  TgContext *c = opened("CPU");
  TgTensor *w = tg_clone(tg_mul_scalar(tg_randn(c, TG_SHAPE(128, 256)), 0.1)),
           *in = tg_clone(tg_randn(c, TG_SHAPE(96, 128))), *out;
  TgJit *jit = tg_jit(c, wide, w);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, &in, 1, &out, 1), TG_OK);
  tg_read(in, x, sizeof x), tg_read(out, want, sizeof want);
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
    Exported e;
    const char *cc = options[i].target ? "clang-19 -O1 -march=native" : trapping;
    if (options[i].target && system("command -v clang-19 >/dev/null && grep -q avx2 /proc/cpuinfo")) continue;
    assert_true(exported_new(&e, jit, folder, cc, options[i]));
    assert_non_null(e.spread_by);
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, one}), 0);
    parts_run = 0;
    e.spread_by(e.m, on_threads);
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, two}), 0);
    assert_true(parts_run >= 2 * options[i].threads);
    assert_memory_equal(one, two, sizeof one);
    for (int k = 0; k < 96 * 128; k++)
      if (!(fabsf(one[k] - want[k]) <= 1e-4f * fabsf(want[k]) + 1e-6f))
        fail_msg("[%d]: %g, not %g", k, (double)one[k], (double)want[k]);
    exported_free(&e);
  }
  TgCText t;
  refused(c, tg_jit_to_c(jit, &t, .threads = -1), TG_ERR_VALUE, "threads");
  refused(c, tg_jit_to_c(jit, &t, .threads = 1025), TG_ERR_VALUE, "threads");
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- weights that are brought, part by part: a step of training has the same bits, and less memory than
 * with all of them */
static const char *stream_bytes;
static int64_t stream_left, stream_calls;

static int bring_part(void *to, int64_t offset, size_t n) {
  stream_calls++;
  if (!stream_left--) return 1;
  memcpy(to, stream_bytes + offset, n);
  return 0;
}

static TgStatus three_products(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                               void *user) {
  TgTensor **w = user;
  (void)nin, (void)nout;
  TgTensor *x = tg_tanh(tg_matmul(tg_tanh(tg_matmul(in[0], w[0])), w[1]));
  out[0] = tg_matmul(x, w[2]);
  return out[0] && tg_assign(w[3], tg_add(w[3], tg_sum(out[0], .axis = TG_AXES(0)))) ? TG_OK : tg_error(c);
}

static void test_stream(void **state) {
  (void)state;
  TgContext *c = interpreter();
  TgTensor *w[4], *in = tg_clone(tg_randn(c, TG_SHAPE(4, 48))), *out;
  for (int i = 0; i < 3; i++)
    w[i] = tg_clone(tg_mul_scalar(tg_randn(c, TG_SHAPE(48, 48)), 0.2));
  w[3] = tg_clone(tg_randn(c, TG_SHAPE(48)));
  TgJit *jit = tg_jit(c, three_products, w);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, &in, 1, &out, 1), TG_OK);
  static float x[4 * 48], want[4 * 48], got[4 * 48];
  tg_read(in, x, sizeof x), tg_read(out, want, sizeof want);
  static const TgCOptions options[] = {{.streamed = true},
                                       {.streamed = true, .own_math = true, .threads = 2}};
  for (int i = 0; i < 2; i++) {
    Exported e;
    assert_true(exported_new(&e, jit, folder, trapping, options[i]));
    assert_true(e.about.arena_bytes < e.about.weight_bytes && e.about.arena_bytes > e.about.weight_bytes / 3);
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 3); /* nobody brings anything */
    stream_bytes = e.weights, stream_left = 1000, stream_calls = 0;
    e.stream(e.m, bring_part);
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
    assert_true(stream_calls >= 4);
    assert_memory_equal(got, want, sizeof want);
    stream_left = 1;
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 4);
    exported_free(&e);
  }
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- a bound on memory: kernels that keep less, with the same results; what cannot be has a number */
static TgStatus padded_twice(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  TgTensor **w = user;
  (void)nin, (void)nout;
  TgTensor *x = tg_relu(tg_conv2d(in[0], w[0], NULL, .padding = TG_SIZES(2, 2)));
  x = tg_relu(tg_conv2d(tg_max_pool2d(x, .kernel = TG_SIZES(2, 2)), w[1], NULL, .padding = TG_SIZES(2, 2)));
  out[0] = tg_mean(x, .axis = TG_AXES(2, 3));
  return out[0] ? TG_OK : tg_error(c);
}

static TgJit *padded_captured(TgContext *c, TgTensor *w[2], TgTensor **in, TgTensor **out) {
  w[0] = tg_clone(tg_randn(c, TG_SHAPE(8, 1, 5, 5)));
  w[1] = tg_clone(tg_randn(c, TG_SHAPE(16, 8, 5, 5)));
  *in = tg_clone(tg_randn(c, TG_SHAPE(1, 1, 28, 28)));
  TgJit *jit = tg_jit(c, padded_twice, w);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, in, 1, out, 1), TG_OK);
  return jit;
}

static void test_max_ram(void **state) {
  (void)state;
  TgContext *c = opened("CPU");
  TgTensor *w[2], *in, *out;
  TgJit *jit = padded_captured(c, w, &in, &out);
  TgCText t;
  float x[28 * 28], want[16], got[16];
  tg_read(in, x, sizeof x), tg_read(out, want, sizeof want);
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  int64_t whole = t.arena_bytes;
  Exported e;
  assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){.max_ram = whole - 1}));
  assert_true(e.about.arena_bytes < whole);
  assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
  for (int i = 0; i < 16; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-4f * fabsf(want[i]) + 1e-4f))
      fail_msg("[%d]: %g, not %g", i, (double)got[i], (double)want[i]);
  exported_free(&e);
  refused(c, tg_jit_to_c(jit, &t, .max_ram = 64), TG_ERR_LIMIT, "more than the 64 that there may be");
  refused(c, tg_jit_to_c(jit, &t, .max_ram = -1), TG_ERR_VALUE, "max_ram");
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  assert_int_equal(t.arena_bytes, whole);
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- a value of which each reader has a slice: the products with all inputs of a sequence */
enum { LENGTH = 32, WIDTH = 16 };

typedef struct Sequence {
  TgLSTM lstm[2];
  TgGRU gru;
  TgTensor *w;
  int which;
} Sequence;

static const struct {
  const char *name;
  int rows; /* bytes of what is made of all inputs: so many rows of WIDTH for each step */
} sequences[] = {{"LSTM", 4}, {"LSTM, both ways", 8}, {"GRU", 3}, {"slices", 8}};

/* Slices that have rows in common, such as lie apart, and one with zeros around. */
static TgTensor *sliced(TgTensor *x, TgTensor *w) {
  TgTensor *all = tg_matmul(x, w), *sum = NULL;
  for (int i = 0; i + 6 <= LENGTH; i += 4) {
    TgTensor *part = tg_slice(all, 0, i, i + (i % 8 ? 3 : 5));
    if (i == 8) part = tg_pad(part, (const int64_t[]){1, 0}, (const int64_t[]){2, 0});
    TgTensor *h = tg_tanh(tg_sum(tg_mul(part, part), .axis = TG_AXES(0), .keepdim = true));
    sum = sum ? tg_tanh(tg_matmul(tg_add(sum, h), tg_transpose(w, 0, 1))) : h;
    if (i) sum = tg_matmul(sum, w);
  }
  return sum;
}

static TgStatus run_sequence(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  Sequence *q = user;
  TgTensor *cell;
  (void)nin, (void)nout;
  if (q->which == 3)
    out[0] = sliced(in[0], q->w);
  else if (q->which == 2)
    tg_gru_run(&q->gru, in[0], NULL, &out[0]);
  else
    tg_lstm_run(&q->lstm[q->which], in[0], NULL, NULL, &out[0], &cell);
  return out[0] ? TG_OK : tg_error(c);
}

static void sequence_runs(TgContext *c, Sequence *q) {
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(LENGTH, WIDTH))), *out;
  TgJit *jit = tg_jit(c, run_sequence, q);
  Exported e;
  static float x[LENGTH * WIDTH], want[8 * WIDTH], got[8 * WIDTH];
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s: %s", sequences[q->which].name, tg_errmsg(c));
  int n = (int)tg_numel(out);
  assert_true(n <= 8 * WIDTH);
  tg_read(in, x, sizeof x), tg_read(out, want, (size_t)n * sizeof *want);
  assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){0}));
  int64_t whole = (int64_t)LENGTH * sequences[q->which].rows * WIDTH * 4;
  if (e.about.arena_bytes >= whole)
    fail_msg("%s: %lld bytes", sequences[q->which].name, (long long)e.about.arena_bytes);
  assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
  for (int i = 0; i < n; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-5f))
      fail_msg("%s [%d]: %g, not %g", sequences[q->which].name, i, (double)got[i], (double)want[i]);
  exported_free(&e);
  tg_jit_free(jit);
}

static void test_slices(void **state) {
  (void)state;
  TgContext *c = opened("CPU");
  Sequence q = {.lstm = {tg_lstm_new(c, WIDTH, WIDTH), tg_lstm_new(c, WIDTH, WIDTH, .bidirectional = true)},
                .gru = tg_gru_new(c, WIDTH, WIDTH),
                .w = tg_clone(tg_mul_scalar(tg_randn(c, TG_SHAPE(WIDTH, 8 * WIDTH)), 0.05))};
  for (q.which = 0; q.which < (int)(sizeof sequences / sizeof *sequences); q.which++)
    sequence_runs(c, &q);
  tg_lstm_free(&q.lstm[0]), tg_lstm_free(&q.lstm[1]), tg_gru_free(&q.gru);
  fine(c);
  tg_close(c);
}

/* Pairs of convolutions of 64 channels, each alone and then together: within the two memories that they need there is a
 * plan that keeps its copies small instead of computing everything again. */
static TgStatus paired(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor **w = user, *x = in[0];
  (void)nin, (void)nout;
  for (int i = 0; i < 2; i++) {
    x = tg_relu(tg_conv2d(x, w[0], NULL, .groups = 64, .padding = TG_SIZES(1, 1)));
    x = tg_relu(tg_conv2d(x, w[1], NULL));
  }
  out[0] = tg_mean(x, .axis = TG_AXES(2, 3));
  return out[0] ? TG_OK : tg_error(c);
}

static void test_small_copies(void **state) {
  (void)state;
  TgContext *c = opened("CPU");
  TgTensor *w[] = {tg_clone(tg_randn(c, TG_SHAPE(64, 1, 3, 3))),
                   tg_clone(tg_randn(c, TG_SHAPE(64, 64, 1, 1)))};
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(1, 64, 25, 5))), *out;
  TgJit *jit = tg_jit(c, paired, w);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, &in, 1, &out, 1), TG_OK);
  TgCText t;
  double times;
  int64_t maps = 2 * tg_numel(in) * 4;
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  assert_true(t.arena_bytes <= maps + 4096);
  assert_int_equal(tg_jit_to_c(jit, &t, .max_ram = maps), TG_OK);
  const char *at = strstr(t.plans, "bytes and ");
  assert_true(at && sscanf(at, "bytes and %lf of the least time", &times) == 1);
  if (times > 1.5) fail_msg("%s", t.plans);
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- weights that are packed: `again` reads one of them as it lies, too */
typedef struct PackedNet {
  TgTensor *w[2];
  bool again;
} PackedNet;

enum { PACKED_ROWS = 24, PACKED_DEPTH = 96, PACKED_WIDE = 80 };

static TgStatus packed_net(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const PackedNet *p = user;
  (void)nin, (void)nout;
  TgTensor *h = tg_relu(tg_matmul(in[0], tg_transpose(p->w[0], 0, 1)));
  out[0] = tg_tanh(tg_matmul(h, tg_transpose(p->w[1], 0, 1)));
  if (p->again) out[0] = tg_add(out[0], tg_mean(tg_slice(p->w[0], 0, 3, 4)));
  return out[0] ? TG_OK : tg_error(c);
}

/* The same numbers from the interpreter, and from the text with each way to have weights. */
static int64_t packed_runs(TgContext *c, bool again, int packed, TgCOptions o) {
  o.size = sizeof o;
  PackedNet net = {.again = again};
  net.w[0] = tg_clone(tg_randn(c, TG_SHAPE(PACKED_WIDE, PACKED_DEPTH)));
  net.w[1] = tg_clone(tg_randn(c, TG_SHAPE(PACKED_WIDE, PACKED_WIDE)));
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(PACKED_ROWS, PACKED_DEPTH))), *out = NULL;
  TgJit *jit = tg_jit(c, packed_net, &net);
  TgCText t;
  Exported e;
  static float x[PACKED_ROWS * PACKED_DEPTH], want[PACKED_ROWS * PACKED_WIDE], got[PACKED_ROWS * PACKED_WIDE];
  for (int i = 0; i < 3; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  assert_int_equal(tg_read(in, x, sizeof x), TG_OK);
  assert_int_equal(tg_read(out, want, sizeof want), TG_OK);
  assert_int_equal(tg_jit_to_c_opt(jit, &t, &o), TG_OK);
  int found = 0;
  const char *text = o.weights_apart ? t.header : t.source,
             *mark = o.weights_apart ? "_packed: " : "_packed = ";
  for (const char *at = text; (at = strstr(at, mark)); at++)
    found++;
  assert_int_equal(found, packed);
  assert_true(exported_new(&e, jit, folder, trapping, o));
  assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
  same("packed", TG_F32, want, got, sizeof got);
  int64_t nbytes = e.about.weight_bytes;
  exported_free(&e);
  tg_jit_free(jit);
  return nbytes;
}

static void test_packed_weights(void **state) {
  (void)state;
  TgContext *c = interpreter();
  const int64_t whole = (int64_t)(PACKED_DEPTH + PACKED_WIDE) * PACKED_WIDE * 4;
  assert_int_equal(packed_runs(c, false, 2, (TgCOptions){0}), whole);
  assert_int_equal(packed_runs(c, false, 2, (TgCOptions){.weights_apart = true}), whole);
  assert_int_equal(packed_runs(c, false, 2, (TgCOptions){.threads = 3}), whole);
  assert_int_equal(packed_runs(c, true, 1, (TgCOptions){0}), whole); /* nothing is there twice */
  assert_int_equal(tg_setting(c, "PREPACK", 0), 1);
  assert_int_equal(packed_runs(c, false, 0, (TgCOptions){.weights_apart = true}), whole);
  tg_close(c);
}

/* ---- steps of a recurrent net: one kernel each, which writes its row of the output, with each weight packed once
 * for all of them */
enum { CELL = 64, CELL_STEPS = 6, GATES = 4 };

static TgStatus recurrent(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  TgTensor *const *w = user, *h = NULL, *cell = NULL, *y[CELL_STEPS];
  TgTensor *all = tg_matmul(in[0], tg_transpose(w[0], 0, 1));
  for (int i = 0; i < CELL_STEPS; i++) {
    TgTensor *x = tg_select(all, 0, i), *gate[GATES];
    if (h) x = tg_add(x, tg_matmul(h, tg_transpose(w[1], 0, 1)));
    for (int g = 0; g < GATES; g++)
      gate[g] = tg_slice(x, 0, g * CELL, (g + 1) * CELL);
    TgTensor *add = tg_mul(tg_sigmoid(gate[0]), tg_tanh(gate[1]));
    cell = tg_contiguous(cell ? tg_add(tg_mul(tg_sigmoid(gate[2]), cell), add) : add);
    y[i] = h = tg_contiguous(tg_mul(tg_sigmoid(gate[3]), tg_tanh(cell)));
  }
  out[0] = tg_stack(y, CELL_STEPS, 0);
  return out[0] ? TG_OK : tg_error(c);
}

static void test_recurrent(void **state) {
  (void)state;
  TgContext *c = interpreter();
  TgTensor *w[2], *in = tg_clone(tg_randn(c, TG_SHAPE(CELL_STEPS, CELL))), *out = NULL;
  for (int i = 0; i < 2; i++)
    w[i] = tg_clone(tg_mul_scalar(tg_randn(c, TG_SHAPE(GATES * CELL, CELL)), 0.1));
  TgJit *jit = tg_jit(c, recurrent, w);
  static float x[CELL_STEPS * CELL], want[CELL_STEPS * CELL], got[CELL_STEPS * CELL];
  for (int i = 0; i < 3; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  assert_int_equal(tg_read(in, x, sizeof x), TG_OK);
  assert_int_equal(tg_read(out, want, sizeof want), TG_OK);
  for (int bits = 0; bits < 2; bits++) {
    Exported e;
    assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){.same_bits = bits}));
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
    if (bits) same("recurrent", TG_F32, want, got, sizeof got);
    for (int i = 0; i < CELL_STEPS * CELL; i++)
      assert_float_equal(got[i], want[i], 1e-6);
    if (!bits) { /* the cell alone; the first step has no other state, the last one's cell nobody needs */
      assert_in_range(e.about.arena_bytes, CELL * 4, CELL * 4);
      assert_in_range(e.about.kernels, 1, 4);
      assert_in_range(e.about.weight_bytes, 0, 2 * GATES * CELL * CELL * 4 + 64);
    }
    exported_free(&e);
  }
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- what is made of each input by itself need not live at once with what is made of the others */
enum { BRANCHES = 6, BRANCH = 2048 };

static TgStatus branches(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor *sum = NULL, *const *w = user;
  (void)nin, (void)nout;
  for (int i = 0; i < BRANCHES; i++) {
    TgTensor *large = tg_contiguous(tg_sin(tg_add(w[i], tg_slice(in[0], 0, i, i + 1))));
    TgTensor *turned = tg_contiguous(tg_tanh(tg_add(large, tg_flip(large, 1, (const int64_t[]){0}))));
    TgTensor *small = tg_sum(turned);
    sum = sum ? tg_add(sum, small) : small;
  }
  out[0] = sum;
  return sum ? TG_OK : tg_error(c);
}

static void test_order(void **state) {
  (void)state;
  TgContext *c = interpreter();
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(BRANCHES))), *w[BRANCHES], *out = NULL;
  for (int i = 0; i < BRANCHES; i++)
    w[i] = tg_clone(tg_randn(c, TG_SHAPE(BRANCH)));
  TgJit *jit = tg_jit(c, branches, w);
  float x[BRANCHES];
  float want, got;
  Exported e;
  for (int i = 0; i < 3; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  assert_int_equal(tg_read(in, x, sizeof x), TG_OK);
  assert_int_equal(tg_read(out, &want, sizeof want), TG_OK);
  assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){0}));
  if (e.about.arena_bytes >= BRANCHES * BRANCH * 4) fail_msg("%lld bytes", (long long)e.about.arena_bytes);
  assert_int_equal(exported_run(&e, e.m, (void *[]){x, &got}), 0);
  same("branches", TG_F32, &want, &got, sizeof got);
  exported_free(&e);
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- a small value in the place of a large one would keep all of it */
enum { PART = 512, PARTS = 4 };

static TgTensor *parts_added(TgTensor *x) {
  TgTensor *sum = NULL;
  for (int i = 0; i < PARTS; i++) {
    TgTensor *part = tg_slice(x, 0, i * PART, (i + 1) * PART);
    sum = sum ? tg_add(sum, part) : part;
  }
  return tg_contiguous(sum);
}

static TgStatus small_kept(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  TgTensor *small = parts_added(tg_contiguous(tg_tanh(in[0])));
  TgTensor *large = tg_contiguous(tg_sin(tg_add(in[0], tg_repeat(small, TG_SHAPE(PARTS)))));
  out[0] = tg_tanh(tg_add(parts_added(large), small));
  return out[0] ? TG_OK : tg_error(c);
}

static void test_small_kept(void **state) {
  (void)state;
  TgContext *c = interpreter();
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(PART * PARTS))), *out = NULL;
  TgJit *jit = tg_jit(c, small_kept, NULL);
  static float x[PART * PARTS], want[PART], got[PART];
  Exported e;
  for (int i = 0; i < 3; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  assert_int_equal(tg_read(in, x, sizeof x), TG_OK);
  assert_int_equal(tg_read(out, want, sizeof want), TG_OK);
  assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){0}));
  if (e.about.arena_bytes > (PARTS + 1) * PART * 4) fail_msg("%lld bytes", (long long)e.about.arena_bytes);
  assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
  same("small kept", TG_F32, want, got, sizeof got);
  exported_free(&e);
  tg_jit_free(jit);
  tg_close(c);
}

/* Of the plans that fit none is faster by the estimate, and what is said of the plan is so. */
static void test_plans(void **state) {
  (void)state;
  TgContext *c = opened("CPU");
  TgTensor *w[2], *in, *out;
  TgJit *jit = padded_captured(c, w, &in, &out);
  TgCText t;
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  int64_t whole = t.arena_bytes, most = 64;
  int fit = 0, slow = 0;
  for (; most <= 2 * whole; most += most / 8) {
    int plans;
    long long nbytes;
    double slower;
    if (tg_jit_to_c(jit, &t, .max_ram = most)) {
      assert_false(fit);
      tg_clear_error(c);
      continue;
    }
    fit++;
    if (sscanf(t.plans, "of %d plans the one of %lld bytes and %lf", &plans, &nbytes, &slower) != 3)
      fail_msg("%s", t.plans);
    assert_true(plans > 3 && nbytes == t.arena_bytes + t.state_bytes && nbytes <= most);
    assert_true(slower >= 1);
    slow += slower > 1;
    const char *more = strstr(t.plans, "others: ");
    long long other;
    double time;
    for (more = more ? more + 7 : NULL; more && sscanf(more + 1, "%lld (%lf)", &other, &time) == 2;) {
      assert_true(other > most || time >= slower);
      more = strchr(more + 1, ',');
    }
  }
  assert_true(fit > 3 && slow > 0 && slow < fit);
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- memory that is used again: what a layer adds to has the sum's place, and a layer that sees one channel at a
 * time its result's */
static TgStatus residual(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor **w = user;
  (void)nin, (void)nout;
  TgTensor *x = tg_contiguous(tg_relu(tg_conv2d(in[0], w[0], NULL, .padding = TG_SIZES(1, 1))));
  for (int i = 1; i < 3; i++) {
    TgTensor *y = tg_contiguous(tg_relu(tg_conv2d(x, w[i], NULL, .padding = TG_SIZES(1, 1))));
    x = tg_contiguous(tg_add(tg_conv2d(y, w[i + 2], NULL, .padding = TG_SIZES(1, 1)), x));
  }
  x = tg_contiguous(tg_relu(tg_conv2d(x, w[5], NULL, .padding = TG_SIZES(1, 1), .groups = 8)));
  out[0] = tg_mean(x, .axis = TG_AXES(2, 3));
  return out[0] ? TG_OK : tg_error(c);
}

static void test_one_place(void **state) {
  (void)state;

  enum { LAYER = 8 * 24 * 24 * (int)sizeof(float), CLASSES_OUT = 8 };

  static const char *const targets[] = {"generic", "x86-64-v2"};
  TgContext *c = opened("CPU");
  TgTensor *w[6];
  for (int i = 0; i < 6; i++)
    w[i] = tg_clone(tg_randn(c, TG_SHAPE(8, i == 0 ? 3 : i == 5 ? 1 : 8, 3, 3)));
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(1, 3, 24, 24))), *out;
  TgJit *jit = tg_jit(c, residual, w);
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &in, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  static float x[3 * 24 * 24];
  float want[CLASSES_OUT], got[CLASSES_OUT];
  tg_read(in, x, sizeof x), tg_read(out, want, sizeof want);
  for (int i = 0; i < 2; i++) {
    Exported e;
    TgCOptions o = {.target = targets[i]};
    if (!exported_new(&e, jit, folder, i ? "gcc -O2" : trapping, o)) fail_msg("%s", targets[i]);
    if (e.about.arena_bytes >= 3 * LAYER) fail_msg("%s: %lld", targets[i], (long long)e.about.arena_bytes);
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
    for (int k = 0; k < CLASSES_OUT; k++)
      if (!(fabsf(got[k] - want[k]) <= 1e-4f * fabsf(want[k]) + 1e-2f))
        fail_msg("%s [%d]: %g, not %g", targets[i], k, (double)got[k], (double)want[k]);
    exported_free(&e);
  }
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- the stack: no compiler takes more than the header says, even where it keeps each variable in memory */
static int64_t stack_used(const char *cc) {
  char line[600];
  long long most = 0, n;
  snprintf(line, sizeof line,
           "cd %s && rm -f *.su && %s -std=c99 -fstack-usage -c model.c -o model.o && "
           "awk '{split($1, p, \":\"); f = p[4]; n = $2; if (f ~ /^k[0-9]/) {if (n > k) k = n} else if (f ~ "
           "/_run$/) run = n; "
           "else if (f !~ /_reset$/ && n > h) h = n} END {print k + run + 3 * h}' *.su",
           folder, cc);
  FILE *f = popen(line, "r");
  while (f && fscanf(f, "%lld", &n) == 1)
    most = n;
  if (f) pclose(f);
  return most;
}

static void test_stack(void **state) {
  (void)state;
  TgContext *c = interpreter();
  Learner *l;
  TgJit *jit = step_captured(c, &l);
  TgCText t;
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  put_text("model.h", t.header), put_text("model.c", t.source);
  assert_non_null(strstr(t.header, "MODEL_STACK_BYTES"));
  const char *const compilers_of[] = {"gcc -O0", "gcc -O2"};
  for (int i = 0; i < 2; i++) {
    int64_t used = stack_used(compilers_of[i]);
    if (used < 1 || used > t.stack_bytes)
      fail_msg("%s: %lld bytes, said %lld", compilers_of[i], (long long)used, (long long)t.stack_bytes);
  }
  tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

/* ---- sizes that vary, a memory that is counted up, an input that is written */
typedef struct Sized {
  TgVariable *n;
  TgTensor *count;
} Sized;

static TgStatus first_rows(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const Sized *z = user;
  (void)c, (void)nin, (void)nout;
  out[0] = tg_sum(tg_slice(in[0], 0, 0, tg_size(z->n)), .axis = TG_AXES(0));
  out[1] = tg_add_scalar(z->count, 0.5);
  if (!out[0] || !tg_assign(z->count, tg_add(z->count, out[0])) || !tg_assign(in[1], tg_mul(in[1], out[0])))
    return tg_error(c);
  return TG_OK;
}

enum { MOST_ROWS = 12, ROW = 6 };

static void sized_run(TgContext *c, TgJit *jit, const Sized *z, int rows, const float *x, float *factor,
                      float *sum, float *count) {
  tg_variable_bind(z->n, rows);
  TG_SCOPE(c) {
    TgTensor *in[] = {tg_from(c, x, TG_F32, TG_SHAPE(MOST_ROWS, ROW)),
                      tg_from(c, factor, TG_F32, TG_SHAPE(ROW))};
    TgTensor *out[2];
    if (!tg_jit_run(jit, in, 2, out, 2) && !tg_read(out[0], sum, ROW * 4) && !tg_read(out[1], count, ROW * 4))
      tg_read(in[1], factor, ROW * 4);
  }
  fine(c);
}

static void test_sizes(void **state) {
  (void)state;
  TgContext *c = interpreter();
  Sized z = {tg_variable(c, "rows", 2, MOST_ROWS, .multiple_of = 2), tg_clone(tg_zeros(c, TG_SHAPE(ROW)))};
  TgJit *jit = tg_jit(c, first_rows, &z);
  float x[MOST_ROWS * ROW], factor[2][ROW] = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}};
  Exported e = {0};
  for (int i = 0; i < MOST_ROWS * ROW; i++)
    x[i] = (float)(i % 11) / 8 - 0.25f;
  for (int turn = 0; turn < 8; turn++) {
    int64_t rows = 2 + 2 * (turn % 6);
    float sum[2][ROW] = {{0}}, count[2][ROW] = {{0}};
    void *values[] = {x, factor[1], sum[1], count[1], &rows};
    if (turn == 2) assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){0}));
    sized_run(c, jit, &z, (int)rows, x, factor[0], sum[0], count[0]);
    if (turn < 2) {
      memcpy(factor[1], factor[0], sizeof factor[0]);
      continue;
    }
    assert_int_equal(exported_run(&e, e.m, values), 0);
    assert_memory_equal(sum[0], sum[1], sizeof sum[0]);
    assert_memory_equal(count[0], count[1], sizeof count[0]);
    assert_memory_equal(factor[0], factor[1], sizeof factor[0]);
    int64_t wrong[] = {0, 3, 14, -2, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
      values[4] = &wrong[i];
      assert_int_equal(exported_run(&e, e.m, values), 2);
    }
    values[4] = &rows, values[2] = NULL;
    assert_int_equal(exported_run(&e, e.m, values), 1);
  }
  exported_free(&e);
  tg_jit_free(jit);
  tg_close(c);
}

/* An input and outputs whose sizes vary: they lie in arrays of the largest. */
enum { RESULTS = 3 };

/* x (n, ROW) -> x w (n, RESULTS), 2 x turned (ROW, n) */
static TgStatus rows_varied(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  (void)nin, (void)nout;
  out[0] = tg_matmul(in[0], user);
  out[1] = tg_transpose(tg_mul_scalar(in[0], 2), 0, 1);
  return tg_error(c);
}

static void test_varied(void **state) {
  (void)state;
  TgContext *c = interpreter();
  TgVariable *n = tg_variable(c, "rows", 0, MOST_ROWS);
  float x[MOST_ROWS * ROW], factor[ROW * RESULTS];
  for (int i = 0; i < MOST_ROWS * ROW; i++)
    x[i] = (float)(i % 11) / 8 - 0.25f;
  for (int i = 0; i < ROW * RESULTS; i++)
    factor[i] = (float)(i % 7) / 4 - 0.5f;
  TgTensor *all = tg_keep(tg_from(c, x, TG_F32, TG_SHAPE(MOST_ROWS, ROW)));
  TgJit *jit = tg_jit(c, rows_varied, tg_keep(tg_from(c, factor, TG_F32, TG_SHAPE(ROW, RESULTS))));
  Exported e = {0};
  for (int turn = 0; turn < 2 + MOST_ROWS; turn++)
    TG_SCOPE(c) {
      int64_t rows = turn < 2 ? 5 : turn - 1;
      float want[2][MOST_ROWS * ROW] = {{0}}, got[2][MOST_ROWS * ROW] = {{0}};
      if (turn == 2) assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){0}));
      tg_variable_bind(n, rows);
      TgTensor *in = tg_slice(all, 0, 0, tg_size(n)), *out[2];
      assert_int_equal(tg_jit_run(jit, &in, 1, out, 2), TG_OK);
      tg_read(out[0], want[0], (size_t)rows * RESULTS * 4), tg_read(out[1], want[1], (size_t)rows * ROW * 4);
      fine(c);
      if (turn < 2) continue;
      void *values[] = {x, got[0], got[1], &rows};
      assert_int_equal(exported_run(&e, e.m, values), 0);
      assert_memory_equal(got[0], want[0], (size_t)rows * RESULTS * 4);
      for (int k = 0; k < ROW; k++)
        assert_memory_equal(got[1] + k * MOST_ROWS, want[1] + k * rows, (size_t)rows * 4);
      assert_int_equal(exported_run(&e, e.m, (void *[]){x, got[0], got[1], &(int64_t){MOST_ROWS + 1}}), 2);
    }
  TgCText t;
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  assert_non_null(strstr(t.header, "f32 (rows, 6)\n")), assert_non_null(strstr(t.header, "f32 (6, rows)\n"));
  exported_free(&e);
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- what the compilers say, and that the text is the same each time */
static void test_text(void **state) {
  (void)state;
  char *before = NULL;
  for (int turn = 0; turn < 3; turn++) {
    TgContext *c = opened(turn == 2 ? "CPU" : "INTERP:C99");
    Learner *l;
    TgJit *jit = step_captured(c, &l);
    TgCText t;
    assert_int_equal(tg_jit_to_c(jit, &t, .own_math = true), TG_OK);
    /* of another device the numbers are others, not the kernels */
    const char *from = strstr(t.source, "static void k0_");
    assert_non_null(from);
    assert_null(strstr(t.source, "__builtin_s")), assert_null(strstr(t.source, "math.h"));
    assert_null(strstr(t.source, "vector_size")), assert_null(strstr(t.source, "malloc"));
    char *now = strdup(turn == 2 ? from : t.source);
    if (turn == 1) assert_string_equal(before, now);
    if (turn == 2)
      assert_memory_equal(strstr(before, "static void k0_"), now, strstr(now, "model_reset") - now);
    free(before);
    before = now;
    if (!turn) assert_true(exported_accepted(jit, folder, compilers, COMPILER_COUNT, (TgCOptions){0}));
    if (!turn)
      assert_true(exported_accepted(jit, folder, compilers, COMPILER_COUNT,
                                    (TgCOptions){.own_math = true, .weights_apart = true}));
    tg_jit_free(jit), tg_optim_free(l->optim);
    free(l);
    tg_close(c);
  }
  free(before);
}

/* ---- lanes: gcc and clang make vectors of what is summed, for whatever processor. Pictures of 16 channels, whose
 * results lie apart in memory; a vector by a matrix, whose lanes are of one sum; and a sigmoid, which selects. */
static TgStatus run_layers(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor *const *w = user;
  (void)c, (void)nin, (void)nout;
  out[0] = tg_relu(tg_conv2d(in[0], w[0], .bias = w[1]));
  out[1] = tg_sigmoid(tg_contiguous(tg_matmul(w[2], in[1])));
  return tg_error(c);
}

static void test_lanes(void **state) {
  (void)state;
#ifndef __x86_64__
  print_message("skipped: it looks at the instructions of x86-64\n");
  skip();
#endif
  TgContext *c = interpreter();
  TgTensor *w[] = {tg_rand(c, TG_SHAPE(16, 16, 1, 1)), tg_rand(c, TG_SHAPE(16)),
                   tg_rand(c, TG_SHAPE(64, 64))};
  TgTensor *in[] = {tg_contiguous(tg_rand(c, TG_SHAPE(1, 16, 25, 5))),
                    tg_contiguous(tg_rand(c, TG_SHAPE(64)))};
  assert_int_equal(tg_realize_many(w, 3), TG_OK);
  TgJit *jit = tg_jit(c, run_layers, w);
  for (int turn = 0; turn < 2; turn++)
    TG_SCOPE(c) {
      TgTensor *out[2];
      assert_int_equal(tg_realize_many(in, 2), TG_OK);
      if (tg_jit_run(jit, in, 2, out, 2)) fail_msg("%s", tg_errmsg(c));
    }
  /* of the products in loops, more by vectors than one by one; vectors are of four, few are of two */
  static const char counts[] = "'/mulps/ {many++} /mulss/ {one++} /movsd.*xmm/ {two++} "
                               "END {exit !(many > 8 && many > one && two < many)}'";
  static const char *const by[] = {"gcc", "clang", "clang-19"};
  for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
    char command[300];
    snprintf(command, sizeof command, "command -v %s > /dev/null", by[i]);
    if (system(command)) continue;
    snprintf(command, sizeof command, "%s -std=c99 -O2 -ffp-contract=off -w -S -o - model.c | awk %s", by[i],
             counts);
    const char *one[] = {command};
    if (!exported_accepted(jit, folder, one, 1, (TgCOptions){0})) fail_msg("%s finds no vectors", by[i]);
  }
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- weights of integers: the least of each kind has no number of its own in C */
typedef struct Whole {
  TgTensor *w[3];
} Whole;

static TgStatus with_integers(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                              void *user) {
  const Whole *m = user;
  (void)c, (void)nin;
  for (int i = 0; i < nout; i++)
    out[i] = tg_add(tg_cast(in[0], tg_dtype(m->w[i])), m->w[i]);
  return tg_error(c);
}

static void test_integers(void **state) {
  (void)state;
  static const int64_t wide[] = {INT64_MIN, -7, INT64_MAX};
  static const int32_t some[] = {INT32_MIN, -5, INT32_MAX};
  static const int16_t few[] = {INT16_MIN, -3, INT16_MAX};
  static const float zero[3];
  TgContext *c = opened("INTERP:C99");
  Whole m = {{tg_from(c, wide, TG_I64, TG_SHAPE(3)), tg_from(c, some, TG_I32, TG_SHAPE(3)),
              tg_from(c, few, TG_I16, TG_SHAPE(3))}};
  TgTensor *x = tg_from(c, zero, TG_F32, TG_SHAPE(3)), *out[3];
  TgJit *jit = tg_jit(c, with_integers, &m);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, &x, 1, out, 3), TG_OK);
  TgCText t;
  assert_int_equal(tg_jit_to_c(jit, &t, .own_math = true), TG_OK);
  assert_non_null(strstr(t.source, "-9223372036854775807ll - 1,-7ll,9223372036854775807ll"));
  assert_non_null(strstr(t.source, "-2147483647 - 1,-5,2147483647"));
  assert_non_null(strstr(t.source, "-32768,-3,32767"));
  Exported e;
  int64_t got_wide[3];
  int32_t got_some[3];
  int16_t got_few[3];
  void *values[] = {(void *)zero, got_wide, got_some, got_few};
  assert_true(exported_new(&e, jit, folder, trapping, (TgCOptions){0}));
  assert_int_equal(exported_run(&e, e.m, values), 0);
  assert_memory_equal(got_wide, wide, sizeof wide);
  assert_memory_equal(got_some, some, sizeof some);
  assert_memory_equal(got_few, few, sizeof few);
  exported_free(&e);
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- what cannot be written */
static int files_in(const char *path) {
  char line[200];
  snprintf(line, sizeof line, "ls -A %s | wc -l", path);
  FILE *f = popen(line, "r");
  int n = -1;
  if (!f || fscanf(f, "%d", &n) != 1) n = -1;
  if (f) pclose(f);
  return n;
}

static TgStatus two_devices(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  (void)c, (void)nin, (void)nout, (void)user;
  out[0] = tg_add_scalar(tg_to(tg_mul_scalar(in[0], 2), "CPU:1"), 1);
  return out[0] ? TG_OK : TG_ERR_VALUE;
}

static void test_refused(void **state) {
  (void)state;
  char to[100], path[200];
  snprintf(to, sizeof to, "%s/out", folder);
  snprintf(path, sizeof path, "mkdir %s", to);
  assert_int_equal(system(path), 0);
  snprintf(path, sizeof path, "%s/net", to);
  TgContext *c = opened("CPU");
  Learner *l = learner(c, 0);
  TgJit *jit = tg_jit(c, learn, l);
  refused(c, tg_export(jit, path), TG_ERR_STATE, "nothing is captured yet");
  learned(c, jit, 0), learned(c, jit, 1);
  refused(c, tg_export(jit, NULL), TG_ERR_VALUE, "no path");
  refused(c, tg_export(jit, "folder/"), TG_ERR_VALUE, "no name of a file");
  refused(c, tg_export(jit, path, .name = "two words"), TG_ERR_VALUE, "identifier");
  refused(c, tg_export(jit, path, .name = "while"), TG_ERR_VALUE, "identifier");
  refused(c, tg_export(jit, "/nowhere/at/all"), TG_ERR_IO, "/nowhere/at/all.h");
  refused(c, tg_export(jit, path, .weights = "/nowhere/at/all.bin"), TG_ERR_IO, "/nowhere/at/all.bin");
  assert_int_equal(files_in(to), 0);
  signal(SIGXFSZ, SIG_IGN); /* a disk that is full */
  struct rlimit had, little;
  getrlimit(RLIMIT_FSIZE, &had);
  little = (struct rlimit){9000, had.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  TgStatus s = tg_export(jit, path);
  setrlimit(RLIMIT_FSIZE, &had);
  refused(c, s, TG_ERR_IO, "net.c");
  assert_int_equal(files_in(to), 0);
  assert_int_equal(tg_export(jit, path), TG_OK);
  assert_int_equal(files_in(to), 2);
  TgTensor *x = tg_from_f64(c, (double[]){1, 2}, TG_F32, TG_SHAPE(2)), *out;
  TgJit *two = tg_jit(c, two_devices, NULL);
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(two, &x, 1, &out, 1), TG_OK);
  refused(c, tg_export(two, path), TG_ERR_DEVICE, "CPU:1");
  TgCText t;
  assert_int_equal(tg_jit_to_c_opt(NULL, &t, NULL), TG_ERR_VALUE);
  refused(c, tg_jit_to_c(jit, NULL), TG_ERR_VALUE, "no place");
  tg_jit_free(two), tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

/* ---- names of files that C, its library or the text has another meaning for */
static TgStatus named_run(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor **w = user;
  (void)c, (void)nin, (void)nout;
  out[0] = tg_sqrt(tg_add(tg_mul(in[0], w[0]), tg_add(w[1], tg_add(w[2], w[3]))));
  return out[0] ? TG_OK : tg_error(c);
}

static void test_names(void **state) {
  (void)state;
  static const char *const names[] = {"exp", "main", "sqrtf", "*/ \\\" #error .1"};
  TgContext *c = interpreter();
  TgTensor *w[4];
  for (int i = 0; i < 4; i++)
    w[i] = tg_clone(numbers(c, TG_F32, i));
  TgJit *jit = tg_jit(c, named_run, w);
  TgTensor *x = tg_clone(numbers(c, TG_F32, 5)), *out;
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, &x, 1, &out, 1), TG_OK);
  const char *in[] = {"while"}, *outs[] = {"model"};
  assert_int_equal(tg_jit_name(jit, in, outs), TG_OK);
  for (int apart = 0; apart < 2; apart++) {
    TgCOptions o = {.names = names, .tensors = w, .count = 4, .weights_apart = apart};
    assert_true(exported_accepted(jit, folder, compilers, COMPILER_COUNT, o));
  }
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- memory runs out: an error, and nothing is left behind */
typedef struct Heap {
  int64_t calls, fail_at, live;
} Heap;

static void *heap_take(size_t n, void *user) {
  Heap *h = user;
  if (++h->calls == h->fail_at) return NULL;
  void *p = malloc(n);
  h->live += p != NULL;
  return p;
}

static void *heap_more(void *p, size_t n, void *user) {
  Heap *h = user;
  if (++h->calls == h->fail_at) return NULL;
  void *more = realloc(p, n);
  h->live += more && !p;
  return more;
}

static void heap_give(void *p, void *user) {
  Heap *h = user;
  h->live -= p != NULL;
  free(p);
}

/* Calls that an export takes when the n-th of them fails. */
static int64_t export_failing(int64_t n, TgStatus *s) {
  Heap h = {.fail_at = 0};
  TgAllocator a = {.allocate = heap_take, .reallocate = heap_more, .release = heap_give, .user = &h};
  TgContext *c = tg_open(
      &(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP:C99", .seed = 7, .allocator = &a});
  TgJit *jit = tg_jit(c, run_case, (void *)case_named("softmax"));
  TgTensor *in[] = {tg_contiguous(numbers(c, TG_F32, 0)), tg_contiguous(numbers(c, TG_F32, 1))}, *out;
  for (int i = 0; i < 2; i++)
    assert_int_equal(tg_jit_run(jit, in, 2, &out, 1), TG_OK);
  TgCText t;
  h.calls = 0, h.fail_at = n;
  *s = tg_jit_to_c(jit, &t, .weights_apart = true);
  int64_t calls = h.calls;
  h.fail_at = 0;
  assert_true(*s == tg_error(c));
  assert_true(*s ? !*t.source : strstr(t.source, "model_run") != NULL);
  tg_jit_free(jit);
  tg_close(c);
  if (h.live) fail_msg("call %lld fails: %lld blocks are left", (long long)n, (long long)h.live);
  return calls;
}

static void test_no_memory(void **state) {
  (void)state;
  TgStatus s;
  int64_t calls = export_failing(0, &s);
  int failed = 0;
  assert_int_equal(s, TG_OK);
  for (int64_t n = 1; n <= calls; n += 1 + n / 40) {
    export_failing(n, &s);
    failed += s == TG_ERR_NOMEM;
    if (s && s != TG_ERR_NOMEM) fail_msg("call %lld fails: error %d", (long long)n, (int)s);
  }
  assert_true(failed > 20);
}

/* ---- models of files */
typedef struct Model {
  TgOnnx *m;
  const char *names[4];
} Model;

static TgStatus run_model(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Model *k = user;
  (void)c;
  return tg_onnx_run(k->m, k->names, in, nin, out, nout);
}

/* A model with one input, on random numbers: the library's plan for its own machine sums in another order. */
static void model_runs(const char *name, int ndim, const int64_t *dims) {
  char room[600];
  if (!data_file(name, room)) return;
  TgContext *c = opened("CPU");
  Model k = {tg_onnx_open(c, room), {NULL}};
  fine(c);
  TgOnnxValue v;
  int nout = 0;
  assert_true(tg_onnx_input(k.m, 0, &v));
  k.names[0] = v.name;
  while (nout < 8 && tg_onnx_output(k.m, (size_t)nout, &v))
    nout++;
  TgTensor *x = tg_contiguous(tg_rand(c, ndim, dims)), *out[8];
  TgJit *jit = tg_jit(c, run_model, &k);
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &x, 1, out, nout)) fail_msg("%s: %s", name, tg_errmsg(c));
  Exported e;
  assert_true(exported_new(&e, jit, folder, "gcc -O2", (TgCOptions){.weights_apart = true}));
  void *values[9] = {malloc(tg_nbytes(x))};
  assert_int_equal(tg_read(x, values[0], tg_nbytes(x)), TG_OK);
  for (int i = 0; i < nout; i++)
    values[1 + i] = malloc(tg_nbytes(out[i]) + 1);
  assert_int_equal(exported_run(&e, e.m, values), 0);
  for (int i = 0; i < nout; i++) {
    size_t n = (size_t)tg_numel(out[i]);
    float *want = malloc(n * sizeof *want), *got = values[1 + i], most = 0;
    assert_int_equal(tg_read(out[i], want, n * sizeof *want), TG_OK);
    for (size_t j = 0; j < n; j++)
      most = fmaxf(most, fabsf(want[j]));
    for (size_t j = 0; j < n; j++)
      if (!(fabsf(got[j] - want[j]) <= 1e-4f * most))
        fail_msg("%s: output %d [%zu]: %g, not %g", name, i, j, (double)got[j], (double)want[j]);
    free(want);
  }
  for (int i = 0; i < 1 + nout; i++)
    free(values[i]);
  exported_free(&e);
  tg_jit_free(jit), tg_onnx_free(k.m);
  tg_close(c);
}

/* ---- another machine: wasm32, in Node, has the bits of this one. A dropout step draws, sums and takes
 * roots. */
static const char wasm_driver[] =
    "#include \"model.h\"\nstatic model m; static float x[MODEL_INPUT0_SIZE], loss; static int32_t "
    "y[MODEL_INPUT1_SIZE];\n"
    "float *input(void); float *input(void) { return x; }\nint32_t *labels(void); int32_t *labels(void) { "
    "return "
    "y; }\n"
    "void reset(void); void reset(void) { model_reset(&m); }\n"
    "float run(void); float run(void) { return model_run(&m, x, y, &loss) ? -1.0f : loss; }\n";

static const char wasm_script[] =
    "const fs = require('fs'), d = JSON.parse(fs.readFileSync('in.json'));\n"
    "const e = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync('m.wasm')), {}).exports;\n"
    "const x = new Float32Array(e.memory.buffer, e.input(), d.x[0].length);\n"
    "const y = new Int32Array(e.memory.buffer, e.labels(), d.y[0].length);\n"
    "e.reset();\n"
    "d.x.forEach((v, i) => { x.set(v); y.set(d.y[i]); if (e.run() !== Math.fround(d.loss[i])) "
    "process.exit(3); "
    "});\n";

/* Batches and the losses that the library has, for the script. */
static void put_losses(TgContext *c, TgJit *jit) {
  char path[200];
  snprintf(path, sizeof path, "%s/in.json", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  float x[BATCH * IN];
  int32_t y[BATCH];
  for (int what = 0; what < 3; what++) {
    fputs(what == 0 ? "{\"x\":[" : what == 1 ? "],\"y\":[" : "],\"loss\":[", f);
    for (int i = 0; i < STEPS; i++) {
      batch_of(i + 2, x, y);
      fputs(i ? "," : "", f);
      for (int k = 0; what == 0 && k < BATCH * IN; k++)
        fprintf(f, k ? ",%.9g" : "[%.9g", (double)x[k]);
      for (int k = 0; what == 1 && k < BATCH; k++)
        fprintf(f, k ? ",%d" : "[%d", y[k]);
      if (what == 2) fprintf(f, "%.9g", (double)learned(c, jit, i + 2));
      fputs(what == 2 ? "" : "]", f);
    }
  }
  fputs("]}", f);
  assert_int_equal(fclose(f), 0);
}

/* The first of these that is here; false: none. */
#define WASM_LD "{ command -v wasm-ld-19 || command -v wasm-ld-14 || command -v wasm-ld; }"

static void test_wasm(void **state) {
  (void)state;
  char line[900];
  if (system("command -v node >/dev/null && command -v clang-19 >/dev/null && " WASM_LD " >/dev/null")) {
    print_message("skipped: no node, clang-19 and wasm-ld\n");
    skip();
  }
  TgContext *c = interpreter();
  Learner *l;
  TgJit *jit = step_captured(c, &l);
  TgCText t;
  assert_int_equal(tg_jit_to_c(jit, &t, .own_math = true), TG_OK);
  put_text("model.h", t.header), put_text("model.c", t.source), put_text("w.c", wasm_driver);
  put_text("run.js", wasm_script);
  put_losses(c, jit);
  snprintf(
      line, sizeof line,
      "cd %s && for f in model w; do clang-19 --target=wasm32 -std=c99 -pedantic -Wall -Wextra -Wconversion "
      "-Werror -O2 -fno-builtin -c $f.c -o $f.o || exit 1; done; $(" WASM_LD ") --no-entry --export=reset "
      "--export=run --export=input --export=labels w.o model.o -o m.wasm && node run.js",
      folder);
  assert_int_equal(system(line), 0);
  tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

/* ---- with vectors, for this processor: the bits of the library on one core of it */
static void test_vectors(void **state) {
  (void)state;
  if (system("command -v clang-19 >/dev/null 2>&1")) {
    print_message("skipped: no clang-19\n");
    skip();
  }
  TgContext *c =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU", .seed = 7, .cores = 1});
  Learner *l;
  TgJit *jit = step_captured(c, &l);
  Exported e;
  assert_true(exported_new(&e, jit, folder, "clang-19 -O1 -march=native", (TgCOptions){.target = "native"}));
  for (int i = 0; i < STEPS; i++) {
    float got = learned_apart(&e, e.m, i + 2), want = learned(c, jit, i + 2);
    if (got != want) fail_msg("step %d: loss %.9g, the library has %.9g", i, (double)got, (double)want);
  }
  exported_free(&e);
  tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

/* ---- bands of rows: layers of other strides, a sum around them, what stays whole, rows that are channels */
static TgTensor *around(TgTensor *x, TgTensor *w) {
  return tg_add(x, tg_relu(tg_conv2d(x, w, NULL, .padding = TG_SIZES(1, 1))));
}

static TgStatus deep_net(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor **w = user;
  (void)nin, (void)nout;
  TgTensor *x = tg_relu(tg_conv2d(in[0], w[0], NULL, .padding = TG_SIZES(3, 3), .stride = TG_SIZES(2, 1)));
  x = around(tg_contiguous(x), w[1]);
  x = tg_relu(tg_conv2d(tg_contiguous(x), w[2], NULL, .dilation = TG_SIZES(2, 2)));
  out[1] = tg_max_pool2d(x, .kernel = TG_SIZES(3, 2), .stride = TG_SIZES(2, 2));
  x = tg_conv2d(tg_contiguous(x), w[3], NULL, .groups = 6, .padding = TG_SIZES(1, 1));
  out[0] = tg_mean(x, .axis = TG_AXES(2, 3));
  return out[0] && out[1] ? TG_OK : tg_error(c);
}

static void test_bands(void **state) {
  (void)state;
  static const double parts[] = {0.9, 0.7, 0.5, 0.4};
  TgContext *c = opened("CPU");
  TgTensor *w[] = {tg_clone(tg_randn(c, TG_SHAPE(6, 2, 7, 5))), tg_clone(tg_randn(c, TG_SHAPE(6, 6, 3, 3))),
                   tg_clone(tg_randn(c, TG_SHAPE(12, 6, 2, 3))), tg_clone(tg_randn(c, TG_SHAPE(6, 2, 3, 3)))};
  TgTensor *in = tg_clone(tg_randn(c, TG_SHAPE(1, 2, 61, 29))), *out[2];
  TgJit *jit = tg_jit(c, deep_net, w);
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &in, 1, out, 2)) fail_msg("%s", tg_errmsg(c));
  static float x[2 * 61 * 29], want[2][6000], got[2][6000];
  TgCText t;
  int sizes[2] = {(int)tg_numel(out[0]), (int)tg_numel(out[1])}, banded = 0;
  assert_true(sizes[1] <= 6000);
  tg_read(in, x, sizeof x);
  for (int i = 0; i < 2; i++)
    tg_read(out[i], want[i], (size_t)sizes[i] * sizeof(float));
  assert_int_equal(tg_jit_to_c(jit, &t), TG_OK);
  int64_t whole = t.arena_bytes;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    for (int kind = 0; kind < 4; kind++) {
      TgCOptions o = {
          .size = sizeof o, .max_ram = (int64_t)(parts[i] * (double)whole), .own_math = kind == 0};
      if (kind == 1) o.threads = 3;
      if (kind == 2) o.streamed = true, o.max_ram += t.weight_bytes;
      if (kind == 3) o.target = "x86-64-v2";
      if (kind && i % 2) continue;
      if (tg_jit_to_c_opt(jit, &t, &o)) fail_msg("%g: %s", parts[i], tg_errmsg(c));
      banded += strstr(t.source, "for (turn = 0;") != NULL;
      Exported e;
      if (kind == 2) continue; /* its functions are in test_stream; here is seen that it has a plan */
      if (!exported_new(&e, jit, folder, kind == 3 ? "gcc -O1" : trapping, o))
        fail_msg("%g %d", parts[i], kind);
      assert_true(e.about.arena_bytes <= o.max_ram);
      assert_int_equal(exported_run(&e, e.m, (void *[]){x, got[0], got[1]}), 0);
      for (int k = 0; k < 2; k++)
        for (int j = 0; j < sizes[k]; j++)
          if (!(fabsf(got[k][j] - want[k][j]) <= 1e-4f * fabsf(want[k][j]) + 1e-3f))
            fail_msg("%g %d: output %d [%d]: %g, not %g", parts[i], kind, k, j, (double)got[k][j],
                     (double)want[k][j]);
      exported_free(&e);
    }
  assert_true(banded >= 4);
  refused(c, tg_jit_to_c(jit, &t, .max_ram = whole / 8), TG_ERR_LIMIT, "more than the");
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- a processor by its name: the same numbers, for each in the language that is usual for it */
static void test_targets(void **state) {
  (void)state;

  static const struct {
    const char *name, *vectors, *says;
    bool gnu;
  } of[] = {{"generic", NULL, "for any compiler", false},
            {"generic", "gnu", "for any processor", true},
            {"x86-64-v2", NULL, "-march=x86-64-v2", true},
            {"x86-64-v4", NULL, "-march=x86-64-v4", true},
            {"x86-64-v3", "none", "best with -march=x86-64-v3", false},
            {"armv8", NULL, "-march=armv8-a", true},
            {"cortex-m4", NULL, "best with -mcpu=cortex-m4", false},
            {"cortex-m7", "none", "best with -mcpu=cortex-m7", false},
            {"wasm32", NULL, "--target=wasm32", false},
            {"wasm-simd", NULL, "-msimd128", true},
            {"wasm-simd", "none", "-msimd128", false}};

  TgContext *c = opened("CPU");
  TgTensor *w[2], *in, *out;
  TgJit *jit = padded_captured(c, w, &in, &out);
  TgCText t;
  float x[28 * 28], want[16], got[16];
  tg_read(in, x, sizeof x), tg_read(out, want, sizeof want);
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    TgCOptions o = {.target = of[i].name, .vectors = of[i].vectors};
    assert_int_equal(tg_jit_to_c(jit, &t, .target = o.target, .vectors = o.vectors), TG_OK);
    if (!strstr(t.header, of[i].says)) fail_msg("%s: %s is not said", of[i].name, of[i].says);
    Exported e; /* the text is for any machine; what it was planned for makes it fast */
    if (!exported_new(&e, jit, folder, of[i].gnu ? "gcc -O1" : trapping, o)) fail_msg("%s", of[i].name);
    assert_true(e.gnu == of[i].gnu);
    assert_int_equal(exported_run(&e, e.m, (void *[]){x, got}), 0);
    for (int k = 0; k < 16; k++)
      if (!(fabsf(got[k] - want[k]) <= 1e-4f * fabsf(want[k]) + 1e-4f))
        fail_msg("%s [%d]: %g, not %g", of[i].name, k, (double)got[k], (double)want[k]);
    exported_free(&e);
  }
  refused(c, tg_jit_to_c(jit, &t, .target = "z80"), TG_ERR_VALUE, "cortex-m4");
  refused(c, tg_jit_to_c(jit, &t, .target = "cortex-m4", .vectors = "gnu"), TG_ERR_VALUE, "have none");
  refused(c, tg_jit_to_c(jit, &t, .vectors = "some"), TG_ERR_VALUE, "gnu or none");
  tg_jit_free(jit);
  tg_close(c);
}

/* ---- weights that are linked: the assembler takes in their file */
static void test_incbin(void **state) {
  (void)state;
  TgContext *c = opened("CPU");
  TgTensor *w[2], *in, *out;
  TgJit *jit = padded_captured(c, w, &in, &out);
  char path[600], file[600], line[2000];
  float x[28 * 28], want[16];
  tg_read(in, x, sizeof x), tg_read(out, want, sizeof want);
  snprintf(path, sizeof path, "%s/net", folder), snprintf(file, sizeof file, "%s/net.bin", folder);
  refused(c, tg_export(jit, path, .incbin = true), TG_ERR_VALUE, "incbin");
  refused(c, tg_export(jit, path, .incbin = true, .weights = "a\"b"), TG_ERR_VALUE, "incbin");
  refused(c, tg_export(jit, path, .incbin = true, .weights = file, .streamed = true), TG_ERR_VALUE,
          "not both");
  assert_int_equal(tg_export(jit, path, .incbin = true, .weights = file), TG_OK);
  snprintf(path, sizeof path, "%s/main.c", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fprintf(
      f,
      "#include \"net.h\"\n#include <math.h>\nstatic net m;\nint main(void) {\n  static const float x[] = {");
  for (int i = 0; i < 28 * 28; i++)
    fprintf(f, "%af,", (double)x[i]);
  fprintf(f, "}, want[] = {");
  for (int i = 0; i < 16; i++)
    fprintf(f, "%af,", (double)want[i]);
  fprintf(
      f,
      "};\n  float y[16];\n  int i;\n  net_reset(&m);\n  if (net_run(&m, x, y)) return 1;\n"
      "  for (i = 0; i < 16; i++) if (!(fabsf(y[i] - want[i]) <= 1e-4f * fabsf(want[i]) + 1e-4f)) return 2;\n"
      "  return 0;\n}\n");
  assert_int_equal(fclose(f), 0);
  static const char *const compilers[] = {"gcc", "clang-19", "x86_64-w64-mingw32-gcc -c",
                                          "arm-none-eabi-gcc -mcpu=cortex-m4 -c"};
  for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
    bool alone = strstr(compilers[i], " -c") != NULL; /* assembled, and not run */
    snprintf(line, sizeof line,
             "cd %s && c='%s' && { ! command -v ${c%%%% *} >/dev/null || { $c -std=c99 -w %s && %s; }; }",
             folder, compilers[i], alone ? "net.S" : "net.c net.S main.c -lm -o main",
             alone ? ":" : "./main");
    if (system(line)) fail_msg("%s", line);
  }
  tg_jit_free(jit);
  tg_close(c);
  snprintf(line, sizeof line, "cd %s && rm -f net.* main main.c", folder);
  assert_int_equal(system(line), 0);
}

/* An input that is fixed is as the file's own constants. */
static void test_fixed(void **state) {
  (void)state;
  char room[600];
  if (!data_file("onnx-mnist/mnist.onnx", room)) skip();
  TgContext *c = opened("CPU");
  TgOnnx *m = tg_onnx_open(c, room);
  TgTensor *x = tg_contiguous(tg_rand(c, TG_SHAPE(1, 1, 28, 28))), *want, *got;
  float a[10], b[10];
  assert_int_equal(tg_onnx_run(m, (const char *[]){"Input3"}, &x, 1, &want, 1), TG_OK);
  assert_int_equal(tg_read(want, a, sizeof a), TG_OK);
  refused(c, tg_onnx_fix(m, "Input4", x), TG_ERR_VALUE, "Input4");
  refused(c, tg_onnx_fix(m, NULL, x), TG_ERR_VALUE, "without a name");
  refused(c, tg_onnx_fix(m, "Input3", NULL), TG_ERR_VALUE, "Input3");
  refused(c, tg_onnx_fix(m, "Input3", tg_reshape(x, TG_SHAPE(28, 28))), TG_ERR_SHAPE, "Input3");
  refused(c, tg_onnx_fix(m, "Input3", tg_cast(x, TG_F64)), TG_ERR_DTYPE, "Input3");
  assert_int_equal(tg_onnx_fix(m, "Input3", x), TG_OK);
  refused(c, tg_onnx_fix(m, "Input3", x), TG_ERR_VALUE, "has a value");
  assert_int_equal(tg_onnx_run(m, NULL, NULL, 0, &got, 1), TG_OK);
  assert_int_equal(tg_read(got, b, sizeof b), TG_OK);
  assert_memory_equal(a, b, sizeof a);
  assert_int_equal(tg_onnx_fix(NULL, "Input3", x), TG_ERR_NOMEM);
  tg_onnx_free(m);
  tg_close(c);
}

/* A few of the node cases; test_export_nodes has all. */
static void test_some_nodes(void **state) {
  (void)state;
  char room[600];
  NodeCounts n;
  if (!data_file("onnx-node-tests/node.tar.xz", room) || !nodes_exported(room, folder, 60, &n)) skip();
  assert_int_equal(n.wrong, 0);
  assert_true(n.same[0] > n.refused);
}

static void test_models(void **state) {
  (void)state;
  model_runs("onnx-mnist/mnist.onnx", TG_SHAPE(1, 1, 28, 28));
  model_runs("mobilenet/mobilenet_v1_0.25_128.onnx", TG_SHAPE(1, 3, 128, 128));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),          cmocka_unit_test(test_training),
      cmocka_unit_test(test_draws),          cmocka_unit_test(test_instances),
      cmocka_unit_test(test_threads),        cmocka_unit_test(test_max_ram),
      cmocka_unit_test(test_slices),         cmocka_unit_test(test_small_copies),
      cmocka_unit_test(test_packed_weights), cmocka_unit_test(test_recurrent),
      cmocka_unit_test(test_order),          cmocka_unit_test(test_small_kept),
      cmocka_unit_test(test_plans),          cmocka_unit_test(test_one_place),
      cmocka_unit_test(test_stream),         cmocka_unit_test(test_stack),
      cmocka_unit_test(test_sizes),          cmocka_unit_test(test_varied),
      cmocka_unit_test(test_text),           cmocka_unit_test(test_integers),
      cmocka_unit_test(test_refused),        cmocka_unit_test(test_models),
      cmocka_unit_test(test_some_nodes),     cmocka_unit_test(test_wasm),
      cmocka_unit_test(test_bands),          cmocka_unit_test(test_targets),
      cmocka_unit_test(test_incbin),         cmocka_unit_test(test_vectors),
      cmocka_unit_test(test_fixed),          cmocka_unit_test(test_names),
      cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_lanes)};
  cmocka_set_test_filter(getenv("TG_TEST"));
  return cmocka_run_group_tests(tests, setup, teardown);
}
