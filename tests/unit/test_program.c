/* test_program.c: captured functions as text and as files. What a loaded program gives is compared, bit for
 * bit, with the same function called plainly in another context; what is no program is refused with its
 * line. On CPU and INTERP; on emulated GPUs values are close. */
#define _GNU_SOURCE
#include "tg_io.h"
#include "tg_nn.h"
#include "fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static TgContext *C;
static const char *device;
static char path[128];

static TgContext *opened(const char *on) { return opened_with_seed(on, 5); }

static int open_on(const char *on) {
  const char *tmp = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/tg_program_%ld.safetensors", tmp && strlen(tmp) < 60 ? tmp : "/tmp",
           (long)getpid());
  C = opened(device = on);
  return 0;
}

static int open_cpu(void **state) { return (void)state, open_on("CPU"); }

static int open_interp(void **state) { return (void)state, open_on("INTERP"); }

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  unlink(path);
  return 0;
}

#define OK(s)                                                                                                \
  do {                                                                                                       \
    if ((s) != TG_OK) fail_msg("line %d: %s", __LINE__, tg_errmsg(C));                                       \
  } while (0)

static void refused_at(int line, bool got, TgStatus want, const char *part) {
  if (got || tg_error(C) != want || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: %s, status %d, \"%s\", not %d about \"%s\"", line, got ? "taken" : "refused",
             (int)tg_error(C), tg_errmsg(C), (int)want, part);
  tg_clear_error(C);
}

#define REFUSED(got, want, part) refused_at(__LINE__, (got) != NULL, (want), (part))
#define FAILS(s, want, part)     refused_at(__LINE__, (s) == TG_OK, (want), (part))

/* From now on another context of device `on`, with the program of the file. */
static TgJit *reopened(const char *on) {
  tg_close(C);
  C = opened(on);
  TgJit *j = tg_jit_load_file(C, path);
  if (!j) fail_msg("%s", tg_errmsg(C));
  return j;
}

/* ---- functions: m[] is what they know */
typedef struct Model {
  TgTensor *m[8];
  TgOptim *opt;
  TgVariable *n;
} Model;

static TgTensor *random_of(int n, const int64_t *dims) { return tg_keep(tg_clone(tg_randn(C, n, dims))); }

static TgStatus mlp(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  TgTensor *h = tg_gelu(tg_add(tg_matmul(in[0], m->m[0]), m->m[1]));
  out[0] = tg_softmax(tg_matmul(h, m->m[2]));
  out[1] = tg_sum(h);
  return tg_error(c);
}

static TgStatus cnn(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  TgTensor *h = tg_relu(tg_conv2d(in[0], m->m[0], .padding = TG_SIZES(1, 1)));
  h = tg_max_pool2d(h, .kernel = TG_SIZES(2, 2));
  out[0] = tg_matmul(tg_flatten(h, 1, -1), m->m[1]);
  return tg_error(c);
}

/* Five runs of fn in a context of its own: what outputs are in each. */
enum { RUNS = 6, MOST = 400 };

typedef struct Results {
  double v[RUNS][MOST];
} Results;

static void results_taken(double *v, TgTensor *const *out, int nout) {
  size_t at = 0;
  for (int i = 0; i < nout; i++) {
    size_t n = (size_t)tg_numel(out[i]);
    assert_true(at + n <= MOST);
    OK(tg_read_f64(out[i], v + at, n));
    at += n;
  }
}

static void results_equal(int line, const Results *a, const Results *b, int from, int to, double near) {
  for (int i = from; i < to; i++)
    for (int k = 0; k < MOST; k++) {
      double x = a->v[i][k], y = b->v[i][k];
      if (near ? !(fabs(x - y) <= near * (1 + fabs(x))) : memcmp(&x, &y, sizeof x) != 0)
        fail_msg("line %d: run %d, number %d: %.17g, not %.17g", line, i, k, y, x);
    }
}

static void input_of(TgTensor *in[1], int run, int n, const int64_t *dims) {
  int64_t nelem = 1;
  double v[MOST];
  for (int i = 0; i < n; i++)
    nelem *= dims[i];
  for (int64_t i = 0; i < nelem; i++)
    v[i] = (double)((i * 37 + run * 11) % 19) / 8 - 1;
  in[0] = tg_from_f64(C, v, TG_F32, n, dims);
}

static void runs_of(TgJit *j, int from, int to, Results *r, int n, const int64_t *dims, int nout) {
  for (int i = from; i < to; i++)
    TG_SCOPE(C) {
      TgTensor *in[1], *out[4];
      input_of(in, i, n, dims);
      OK(tg_jit_run(j, in, 1, out, nout));
      results_taken(r->v[i], out, nout);
    }
}

/* The program of the file gives the first `to` results again. It is returned. */
static TgJit *reopened_same(int line, const Results *plain, int to, int n, const int64_t *dims, int nout) {
  static Results loaded;
  memset(&loaded, 0, sizeof loaded);
  TgJit *j = reopened(device);
  runs_of(j, 0, to, &loaded, n, dims, nout);
  results_equal(line, plain, &loaded, 0, to, 0);
  return j;
}

/* ---- inference */
static void saved_mlp(Results *plain) {
  Model m = {{random_of(TG_SHAPE(7, 13)), random_of(TG_SHAPE(13)), random_of(TG_SHAPE(13, 3))}, NULL, NULL};
  TgState *s = tg_state_new(C);
  const char *names[] = {"fc1.weight", "fc1.bias", "fc2 \"quoted\\\n"};
  for (int i = 0; i < 3; i++)
    OK(tg_state_put(s, names[i], m.m[i]));
  TgJit *j = tg_jit(C, mlp, &m);
  TgJitValue v;
  assert_false(tg_jit_input(j, 0, &v));
  FAILS(tg_jit_save(j, path), TG_ERR_STATE, "nothing is captured yet");
  runs_of(j, 0, RUNS, plain, TG_SHAPE(5, 7), 2);
  OK(tg_jit_save(j, path, .inputs = ((const char *[]){"x"}),
                 .outputs = ((const char *[]){"probabilities", "sum"}), .state = s,
                 .metadata = ((const char *[]){"author", "a test", NULL})));
  FAILS(tg_jit_save(j, path, .metadata = ((const char *[]){"program", "x", NULL})), TG_ERR_VALUE,
        "the program's own");
  tg_state_free(s);
  tg_jit_free(j);
}

static void value_is(bool got, const TgJitValue *v, const char *name, int ndim, int64_t first) {
  assert_true(got);
  assert_string_equal(v->name, name);
  assert_true(v->dtype == TG_F32 && v->ndim == ndim && (!ndim || v->dims[0] == first));
}

static void test_inference(void **state) {
  (void)state;
  static Results plain, loaded;
  saved_mlp(&plain);
  TgJit *j = reopened(device);
  TgJitValue v;
  value_is(tg_jit_input(j, 0, &v), &v, "x", 2, 5);
  value_is(tg_jit_output(j, 0, &v), &v, "probabilities", 2, 5);
  value_is(tg_jit_output(j, 1, &v), &v, "sum", 0, 0);
  assert_false(tg_jit_input(j, 1, &v) || tg_jit_output(j, 2, &v));
  runs_of(j, 0, RUNS, &loaded, TG_SHAPE(5, 7), 2);
  results_equal(__LINE__, &plain, &loaded, 0, RUNS, 0);
  tg_jit_reset(j); /* there is no function to capture again */
  runs_of(j, 0, RUNS, &loaded, TG_SHAPE(5, 7), 2);
  results_equal(__LINE__, &plain, &loaded, 0, RUNS, 0);
  TgTensor *in[2] = {tg_zeros(C, TG_SHAPE(5, 8))}, *out[2];
  FAILS(tg_jit_run(j, in, 1, out, 2), TG_ERR_SHAPE, "input 0 has shape (5, 8)");
  in[0] = tg_zeros(C, TG_SHAPE(5, 7), .dtype = TG_F16);
  FAILS(tg_jit_run(j, in, 1, out, 2), TG_ERR_DTYPE, "input 0 is f16");
  FAILS(tg_jit_run(j, in, 2, out, 2), TG_ERR_VALUE, "2 inputs");
  /* any reader of safetensors sees the weights */
  TgState *s = tg_safe_load_file(C, path);
  const char *name;
  TgTensor *w = tg_state_get(s, "fc1.weight"), *mine = tg_jit_memory(j, 1, &name);
  assert_true(w && tg_ndim(w) == 2 && tg_shape(w)[1] == 13 && tg_state_get(s, "fc2 \"quoted\\\n"));
  assert_true(tg_state_count(s) == 3 && mine && !tg_jit_memory(j, 3, NULL));
  assert_true(tg_ndim(mine) == tg_ndim(tg_state_get(s, name)));
  /* what is assigned counts; other memory is not the program's */
  in[0] = tg_zeros(C, TG_SHAPE(5, 7));
  OK(tg_jit_run(j, in, 1, out, 2));
  assert_ptr_equal(tg_replace(mine, tg_clone(tg_mul_scalar(mine, 2))), mine);
  FAILS(tg_jit_run(j, in, 1, out, 2), TG_ERR_STATE, "was replaced");
  tg_state_free(s);
  tg_jit_free(j);
}

static void test_conv(void **state) {
  (void)state;
  static Results plain;
  Model m = {{random_of(TG_SHAPE(4, 3, 3, 3)), random_of(TG_SHAPE(4 * 3 * 2, 5))}, NULL, NULL};
  TgJit *j = tg_jit(C, cnn, &m);
  runs_of(j, 0, 3, &plain, TG_SHAPE(1, 3, 7, 5), 1);
  OK(tg_jit_save(j, path));
  reopened_same(__LINE__, &plain, 3, TG_SHAPE(1, 3, 7, 5), 1);
}

static void test_devices(void **state) {
  (void)state;
  static Results plain, loaded;
  saved_mlp(&plain);
  const char *other[] = {"CPU", "INTERP", "CUDA", "METAL"};
  setenv("TG_EMU", "1", 1);
  for (int i = 0; i < 4; i++) {
    TgJit *j = reopened(other[i]);
    runs_of(j, 0, 2, &loaded, TG_SHAPE(5, 7), 2);
    results_equal(__LINE__, &plain, &loaded, 0, 2, 1e-5);
  }
  unsetenv("TG_EMU");
}

/* ---- a training step: momentum, dropout, state */
static TgStatus train(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  TgTensor *h = tg_dropout(tg_tanh(tg_matmul(in[0], m->m[0])), 0.25);
  TgTensor *loss = tg_mean(tg_square(tg_add_scalar(tg_matmul(h, m->m[1]), -0.5)));
  tg_zero_grad(m->m[0]), tg_zero_grad(m->m[1]);
  tg_backward(loss);
  out[0] = loss, out[1] = h;
  tg_optim_step(m->opt);
  return tg_error(c);
}

static TgJit *trainer(Model *m) {
  tg_set_training(C, true);
  for (int i = 0; i < 2; i++)
    m->m[i] = tg_keep(tg_requires_grad(tg_clone(tg_randn(C, TG_SHAPE(i ? 6 : 3, i ? 2 : 6))), true));
  m->opt = tg_sgd(C, m->m, 2, .lr = 0.05, .momentum = 0.9);
  return tg_jit(C, train, m);
}

static void test_training(void **state) {
  (void)state;
  static Results plain, loaded;
  Model m;
  TgJit *j = trainer(&m);
  runs_of(j, 0, RUNS, &plain, TG_SHAPE(5, 3), 2);
  assert_true(plain.v[RUNS - 1][0] != plain.v[RUNS - 2][0]);
  tg_optim_free(m.opt), tg_close(C);
  C = opened(device);
  j = trainer(&m);
  runs_of(j, 0, 3, &loaded, TG_SHAPE(5, 3), 2);
  OK(tg_jit_save(j, path));
  runs_of(j, 3, 4, &loaded, TG_SHAPE(5, 3), 2); /* to save takes nothing from it */
  results_equal(__LINE__, &plain, &loaded, 0, 4, 0);
  tg_optim_free(m.opt);
  j = reopened(device); /* goes on with the fourth */
  runs_of(j, 3, 5, &loaded, TG_SHAPE(5, 3), 2);
  results_equal(__LINE__, &plain, &loaded, 3, 5, 0);
  OK(tg_jit_save(j, path)); /* the state of now */
  runs_of(j, 5, 6, &loaded, TG_SHAPE(5, 3), 2);
  results_equal(__LINE__, &plain, &loaded, 5, 6, 0);
  j = reopened(device);
  OK(tg_jit_save(j, path)); /* before it has run */
  j = reopened(device);
  memset(&loaded.v[5], 0, sizeof loaded.v[5]);
  runs_of(j, 5, 6, &loaded, TG_SHAPE(5, 3), 2);
  results_equal(__LINE__, &plain, &loaded, 5, 6, 0);
  j = reopened(device);
  tg_manual_seed(C, 77); /* other numbers are drawn */
  OK(tg_jit_save(j, path));
  runs_of(j, 5, 6, &loaded, TG_SHAPE(5, 3), 2);
  assert_true(loaded.v[5][0] != plain.v[5][0]);
  plain = loaded; /* and these go on, too */
  j = reopened(device);
  memset(&loaded.v[5], 0, sizeof loaded.v[5]);
  runs_of(j, 5, 6, &loaded, TG_SHAPE(5, 3), 2);
  results_equal(__LINE__, &plain, &loaded, 5, 6, 0);
}

/* ---- steps, stores, values in between */
static TgStatus many(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  TgTensor *x = in[0], *old = tg_mul_scalar(m->m[0], 3);
  TgTensor *t = tg_mul_scalar(x, 2); /* a value in between, that is assigned to */
  if (tg_realize(t)) return TG_ERR_STATE;
  tg_add_(t, tg_scalar_like(t, 1));
  tg_add_(m->m[0], tg_sum(t)); /* state; what it held is needed once more, by `old` */
  if (tg_realize(m->m[0])) return TG_ERR_STATE;
  tg_assign_slice(m->m[1], (int64_t[]){1, 0}, (int64_t[]){2, 16},
                  tg_expand(tg_sum(x), 2, (int64_t[]){1, 16}));
  tg_assign_slice(m->m[1], (int64_t[]){2, 0}, (int64_t[]){3, 3}, tg_expand(m->m[0], 2, (int64_t[]){1, 3}));
  /* every third number of a row */
  tg_setitem(m->m[1], TG_IDX(TG_AT(3), TG_SLICE(TG_OPEN, TG_OPEN, 3)),
             tg_reshape(tg_slice(x, 1, 0, 6), TG_SHAPE(6)));
  out[0] = tg_add(old, m->m[0]);
  out[1] = tg_mul_scalar(x, 7);
  out[2] = tg_mul_scalar(x, 7); /* one value, two memories */
  out[3] = tg_zeros(c, TG_SHAPE(0, 3));
  return tg_error(c);
}

static TgJit *many_new(Model *m) {
  m->m[0] = tg_keep(tg_clone(tg_full(C, TG_SHAPE(1, 1), 1)));
  m->m[1] = tg_keep(tg_clone(tg_ones(C, TG_SHAPE(4, 16))));
  return tg_jit(C, many, m);
}

static void test_stores(void **state) {
  (void)state;
  static Results plain, loaded;
  Model m;
  double was[64], is[64];
  TgJit *j = many_new(&m);
  runs_of(j, 0, RUNS, &plain, TG_SHAPE(1, 11), 4);
  OK(tg_read_f64(m.m[1], was, 64));
  tg_close(C);
  C = opened(device);
  j = many_new(&m);
  runs_of(j, 0, 3, &loaded, TG_SHAPE(1, 11), 4);
  TgState *s = tg_state_new(C);
  OK(tg_state_put(s, "count", m.m[0]));
  OK(tg_state_put(s, "table", m.m[1]));
  OK(tg_jit_save(j, path, .state = s));
  tg_state_free(s);
  j = reopened(device);
  runs_of(j, 3, RUNS, &loaded, TG_SHAPE(1, 11), 4);
  results_equal(__LINE__, &plain, &loaded, 0, RUNS, 0);
  const char *name = "";
  TgTensor *t = NULL;
  for (size_t i = 0; strcmp(name, "table"); i++)
    assert_non_null(t = tg_jit_memory(j, i, &name));
  OK(tg_read_f64(t, is, 64));
  assert_memory_equal(was, is, sizeof was);
}

static TgStatus stores_input(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_sum(tg_mul(in[0], in[1]));
  tg_add_(in[1], in[0]);
  return tg_error(c);
}

static void test_stored_input(void **state) {
  (void)state;
  TgTensor *in[2] = {tg_from_text(C, "[1.0, 2.0, 3.0]"), tg_clone(tg_zeros(C, TG_SHAPE(3)))}, *out;
  TgJit *j = tg_jit(C, stores_input, NULL);
  for (int i = 0; i < 2; i++)
    OK(tg_jit_run(j, in, 2, &out, 1));
  OK(tg_jit_save(j, path));
  j = reopened(device);
  in[0] = tg_from_text(C, "[1.0, 2.0, 3.0]"), in[1] = tg_clone(tg_zeros(C, TG_SHAPE(3)));
  OK(tg_realize(in[1]));
  TgTensor *before = tg_add_scalar(in[1], 1);
  for (int i = 0; i < 3; i++) {
    OK(tg_jit_run(j, in, 2, &out, 1));
    assert_true(tg_item_f64(out) == 14 * i);
  }
  assert_string_equal(tg_to_text(in[1]), "[3.0, 6.0, 9.0]");
  assert_string_equal(tg_to_text(before), "[1.0, 1.0, 1.0]");
}

/* Pieces of a memory, some where vectors may begin and some not; every dtype; sorting, which promises that
 * each place is met once. */
static TgStatus pieces(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  out[0] = in[0];
  for (int i = 0; i < 3; i++) {
    TgTensor *row = tg_slice(tg_reshape(m->m[0], TG_SHAPE(96)), 0, 16 * i + i, 16 * i + i + 11);
    if (tg_realize(out[0] = tg_add(out[0], tg_mul_scalar(row, i + 1)))) return TG_ERR_STATE;
  }
  out[1] = tg_sort(out[0], NULL, .descending = true);
  static const TgDType kinds[] = {TG_BOOL, TG_I8,   TG_U16, TG_I64,    TG_U64,
                                  TG_F16,  TG_BF16, TG_F64, TG_FP8E4M3};
  out[2] = in[0];
  for (int i = 0; i < 9; i++)
    out[2] = tg_add(out[2], tg_cast(tg_cast(tg_add(in[0], m->m[1]), kinds[i]), TG_F32));
  return tg_error(c);
}

static void test_pieces(void **state) {
  (void)state;
  static Results plain;
  Model m = {{random_of(TG_SHAPE(6, 16)), random_of(TG_SHAPE(11))}, NULL, NULL};
  TgJit *j = tg_jit(C, pieces, &m);
  runs_of(j, 0, 3, &plain, TG_SHAPE(11), 3);
  OK(tg_jit_save(j, path));
  j = reopened_same(__LINE__, &plain, 3, TG_SHAPE(11), 3);
  OK(tg_jit_save(j, path));
  reopened_same(__LINE__, &plain, 3, TG_SHAPE(11), 3);
}

/* ---- weights that lie in a file: only what is used of it is written, and a capture keeps the file */
static void test_file_weights(void **state) {
  (void)state;
  static Results plain;
  Model m = {{random_of(TG_SHAPE(7, 13)), random_of(TG_SHAPE(13)), random_of(TG_SHAPE(13, 3)),
              random_of(TG_SHAPE(5000))},
             NULL,
             NULL};
  TgState *s = tg_state_new(C), *file;
  const char *names[] = {"a", "b", "c", "unused"};
  for (int i = 0; i < 4; i++)
    OK(tg_state_put(s, names[i], m.m[i]));
  OK(tg_safe_save(s, path));
  tg_state_free(s);
  tg_close(C);
  C = opened(device);
  file = tg_safe_load_file(C, path);
  for (int i = 0; i < 3; i++)
    m.m[i] = tg_state_get(file, names[i]);
  TgJit *j = tg_jit(C, mlp, &m);
  runs_of(j, 0, 2, &plain, TG_SHAPE(5, 7), 2);
  tg_state_free(file);
  OK(tg_collect(C)); /* the tensors are gone, the file is not */
  runs_of(j, 2, RUNS, &plain, TG_SHAPE(5, 7), 2);
  OK(tg_jit_save(j, path)); /* the very file that it reads */
  struct stat st;
  assert_true(!stat(path, &st) && st.st_size < 16000);
  reopened_same(__LINE__, &plain, RUNS, TG_SHAPE(5, 7), 2);
}

/* What lies on DISK is read at each run; in the file it is memory as any other. */
static TgStatus from_disk(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  out[0] = tg_matmul(in[0], tg_to(tg_slice(m->m[0], 0, 2, 9), NULL));
  return tg_error(c);
}

static void test_disk(void **state) {
  (void)state;
  static Results plain;
  float v[60];
  char raw[160];
  snprintf(raw, sizeof raw, "%s.raw", path);
  for (int i = 0; i < 60; i++)
    v[i] = (float)(i % 13) / 4;
  FILE *f = fopen(raw, "wb");
  assert_true(f && fwrite(v, sizeof v, 1, f) == 1 && !fclose(f));
  Model m = {{tg_from_file(C, raw, TG_F32, TG_SHAPE(10, 6), .device = "DISK")}, NULL, NULL};
  TgJit *j = tg_jit(C, from_disk, &m);
  runs_of(j, 0, RUNS, &plain, TG_SHAPE(5, 7), 1);
  OK(tg_jit_save(j, path));
  unlink(raw);
  reopened_same(__LINE__, &plain, RUNS, TG_SHAPE(5, 7), 1);
}

/* ---- sizes that vary: a cache of which `n` rows are used, one more each run, and a value in between */
static TgStatus varies(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  int64_t n = tg_size(m->n), last = tg_size_sub(c, n, 4), pairs = tg_size_mul(c, n, 2);
  tg_assign_slice(m->m[0], (int64_t[]){last, 0}, (int64_t[]){n, 5}, tg_expand(in[0], 2, (int64_t[]){4, 5}));
  TgTensor *rows = tg_slice(m->m[0], 0, 0, n);
  TgTensor *score = tg_matmul(rows, tg_transpose(in[0], 0, 1)); /* (n, 1) */
  if (tg_realize(score)) return TG_ERR_STATE;
  out[0] = tg_matmul(tg_transpose(tg_softmax(score, .axis = TG_AXES(0)), 0, 1), rows);
  TgTensor *twice = tg_reshape(tg_cat((TgTensor *[]){rows, rows}, 2, 0), TG_SHAPE(tg_size_mul(c, pairs, 5)));
  out[1] = tg_add(tg_sum(twice), tg_cast(tg_size_tensor(c, last, TG_I32), TG_F32));
  return tg_error(c);
}

static void varying_runs(TgJit *j, TgVariable *n, int from, int to, Results *r) {
  for (int i = from; i < to; i++) {
    OK(tg_variable_bind(n, 4 * (i % 4) + 4));
    runs_of(j, i, i + 1, r, TG_SHAPE(1, 5), 2);
  }
}

static TgJit *varying(Model *m) {
  tg_variable(C, "another", 1, 7); /* numbers of variables are the context's own */
  m->m[0] = random_of(TG_SHAPE(16, 5));
  m->n = tg_variable(C, "rows", 4, 16, .multiple_of = 4);
  return tg_jit(C, varies, m);
}

static void test_variables(void **state) {
  (void)state;
  static Results plain, loaded;
  Model m;
  TgJit *j = varying(&m);
  varying_runs(j, m.n, 0, RUNS, &plain);
  tg_close(C);
  C = opened(device);
  j = varying(&m);
  varying_runs(j, m.n, 0, 2, &loaded);
  OK(tg_jit_save(j, path));
  j = reopened(device);
  TgVariable *n = tg_jit_variable(j, 0);
  assert_string_equal(tg_variable_name(n), "rows");
  assert_null(tg_jit_variable(j, 1));
  TgTensor *x = tg_zeros(C, TG_SHAPE(1, 5)), *out[2];
  FAILS(tg_jit_run(j, &x, 1, out, 2), TG_ERR_STATE, "'rows' is not bound");
  assert_int_equal(tg_variable_bind(n, 6), TG_ERR_VALUE); /* multiples of 4 */
  tg_clear_error(C);
  varying_runs(j, n, 2, RUNS, &loaded);
  results_equal(__LINE__, &plain, &loaded, 0, RUNS, 0);
  /* twice in one context: each has variables of its own */
  OK(tg_jit_save(j, path));
  TgJit *k = tg_jit_load_file(C, path);
  OK(tg_variable_bind(tg_jit_variable(k, 0), 4));
  OK(tg_variable_bind(n, 8));
  TgTensor *small, *large, *a[2], *b[2];
  x = tg_ones(C, TG_SHAPE(1, 5));
  OK(tg_jit_run(k, &x, 1, a, 2));
  OK(tg_jit_run(j, &x, 1, b, 2));
  small = a[1], large = b[1];
  assert_true(tg_item_f64(small) != tg_item_f64(large));
}

/* ---- several devices */
static TgStatus on_two(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_to(tg_mul_scalar(tg_to(tg_mul_scalar(in[0], 2), "INTERP:1"), 3), NULL);
  return tg_error(c);
}

/* Noise of both devices, and what crosses them. */
static TgStatus draws_on_two(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                             void *user) {
  (void)nin, (void)nout;
  Model *m = user;
  TgTensor *here = tg_add(in[0], tg_rand(c, TG_SHAPE(4))), *there = tg_to(here, "INTERP:1");
  there = tg_add(tg_mul(there, m->m[0]), tg_rand_like(m->m[0]));
  tg_assign(m->m[0], there);
  out[0] = tg_add(tg_to(there, device), m->m[1]);
  return tg_error(c);
}

static void test_two_devices(void **state) {
  (void)state;
  static Results plain, loaded;
  for (int k = 0; k < 2; k++) {
    Model m = {{tg_keep(tg_to(random_of(TG_SHAPE(4)), "INTERP:1")), random_of(TG_SHAPE(4))}, NULL, NULL};
    OK(tg_realize(m.m[0]));
    TgJit *j = tg_jit(C, draws_on_two, &m);
    runs_of(j, 0, k ? 3 : RUNS, k ? &loaded : &plain, TG_SHAPE(4), 1);
    if (k) OK(tg_jit_save(j, path));
    tg_close(C);
    C = opened(device);
  }
  TgJit *j = reopened(device);
  runs_of(j, 3, RUNS, &loaded, TG_SHAPE(4), 1);
  results_equal(__LINE__, &plain, &loaded, 0, RUNS, 0);
  /* on one more, by a list of their names; a context that is of neither has the same bits */
  tg_close(C);
  C = opened("NULL:C99");
  j = tg_jit_load_file_on(C, path, (const char *[]){"INTERP:3", "INTERP:2"}, 2);
  if (!j) fail_msg("%s", tg_errmsg(C));
  for (int i = 3; i < RUNS; i++)
    TG_SCOPE(C) {
      TgTensor *in[1], *out[1];
      input_of(in, i, TG_SHAPE(4));
      in[0] = tg_to(in[0], "INTERP:3");
      OK(tg_jit_run(j, in, 1, out, 1));
      assert_string_equal(tg_device(out[0]), "INTERP:3");
      results_taken(loaded.v[i], out, 1);
    }
  results_equal(__LINE__, &plain, &loaded, 3, RUNS, strcmp(device, "CPU") ? 0 : 1e-6);
  FAILS(tg_jit_load_file_on(C, path, (const char *[]){"INTERP"}, 1) ? TG_OK : TG_ERR_VALUE, TG_ERR_VALUE,
        "it is of 2 devices: ");
}

static void test_refused(void **state) {
  (void)state;
  TgTensor *x = tg_from_text(C, "[1.0, 2.0, 3.0, 4.0]"), *out;
  TgJit *k = tg_jit(C, on_two, NULL);
  for (int i = 0; i < 2; i++)
    OK(tg_jit_run(k, &x, 1, &out, 1));
  TgCText c;
  FAILS(tg_jit_to_c(k, &c), TG_ERR_DEVICE, "of several devices");
  char *longer = calloc(5000, 1);
  memset(longer, 'x', 4999);
  FAILS(tg_jit_save(k, path, .inputs = ((const char *[]){longer})), TG_ERR_LIMIT, "more than 4096");
  free(longer);
  assert_int_equal(tg_jit_save(NULL, path), TG_ERR_VALUE);
  REFUSED(tg_jit_load_file(C, "/nowhere/at/all"), TG_ERR_IO, "/nowhere/at/all");
  TgState *s = tg_state_new(C);
  OK(tg_state_put(s, "x", x));
  OK(tg_safe_save(s, path));
  tg_state_free(s);
  REFUSED(tg_jit_load_file(C, path), TG_ERR_VALUE, "no captured function");
  REFUSED(tg_jit_from_text(C, NULL, NULL, NULL, 0), TG_ERR_VALUE, "no text");
  REFUSED(tg_jit_from_text(C, "", NULL, NULL, 3), TG_ERR_VALUE, "no list");
  REFUSED(tg_jit_from_text_on(C, "", NULL, 2, NULL, NULL, 0), TG_ERR_VALUE, "no list of devices");
}

/* ---- texts that are none: each one change of a good one */
static const char good[] = "tinygrad program 1\n"
                           "random 5 1 208\n"
                           "m0 = input f32 (2, 3) \"x\"\n"
                           "m1 = output f32 (2, 3) \"y\"\n"
                           "m2 = draw 16\n"
                           "m3 = memory f32 (3) \"w\"\n"
                           "m4 = scratch f32 6\n"
                           "step m0 m3 -> m4\n"
                           "u0 = BUFFER[f32, 0, 6]\n"
                           "u1 = RESHAPE[(2, 3)](u0)\n"
                           "u2 = BUFFER[f32, 1, 3]\n"
                           "u3 = RESHAPE[(1, 3)](u2)\n"
                           "u4 = EXPAND[(2, 3)](u3)\n"
                           "u5 = ADD(u1, u4)\n"
                           "end\n"
                           "\n"
                           "step m3 m0 -> -\n"
                           "u0 = BUFFER[f32, 0, 3]\n"
                           "u1 = BUFFER[f32, 1, 6]\n"
                           "u2 = SHRINK[(0, 3)](u1)\n"
                           "u3 = STORE(u0, u2)\n"
                           "u4 = AFTER(u0, u3)\n"
                           "end\n"
                           "copy m4 m1\n";

/* from NULL: the whole text; to NULL: the text ends before `from` */
static const struct {
  const char *from, *to;
  TgStatus status;
  const char *why;
} wrong[] = {
    {NULL, "", TG_ERR_VALUE, "line 1: this is no program"},
    {NULL,
     "tinygrad program 1\nvariable \"n\" 1 4 1\nm0 = input f32 (v0, 3) \"x\"\nm1 = memory f32 (3) \"w\"\n"
     "step m0 m1 -> -\nu0 = BUFFER[f32, 0, 12]\nu1 = SHRINK[(0, 3)](u0)\nu2 = BUFFER[f32, 1, 3]\n"
     "u3 = STORE(u1, u2)\nu4 = AFTER(u0, u3)\nend\n",
     TG_ERR_VALUE, "input 0 is stored to, and its axis 0 varies"},
    {"program 1", "program", TG_ERR_VALUE, "line 1: expected a number"},
    {"program 1", "program 3", TG_ERR_VALUE, "version 3; versions 1 and 2"},
    {"program 1", "program 2", TG_ERR_VALUE, "line 2: expected a device"},
    {"random 5 1 208", "device \"CPU\"\nrandom 5 1 208", TG_ERR_VALUE, "line 2"},
    {"m0 = input", "parts 2\nm0 = input", TG_ERR_VALUE, "line 3"},
    {"m0 = input f32", "m0 = input d0 f32", TG_ERR_VALUE, "expected a dtype"},
    {"program 1", "program 99999999999999999999", TG_ERR_VALUE, "is more than"},
    {"random 5 1 208", "random 5 0 208", TG_ERR_VALUE, "place 0"},
    {"random 5 1 208", "random 5 99 208", TG_ERR_VALUE, "99 is more than 16"},
    {"random 5 1 208\n", "", TG_ERR_VALUE, "no line `random`"},
    {"random 5 1 208", "random 5 1 208\nrandom 5 1 208", TG_ERR_VALUE, "line 3: `random` stands once"},
    {"m0 = input f32 (2, 3)", "m0 = input f32 2, 3)", TG_ERR_VALUE, "expected the sizes, such as (2, 3)"},
    {"m0 = input", "variable \"n\" 5 2 1\nm0 = input", TG_ERR_VALUE, "line 3: variable 'n': no values"},
    {"m0 = input", "variable \"n\" 1 2 0\nm0 = input", TG_ERR_VALUE, "no values"},
    {"m0 = input", "variable \"n\" 1 2 2\nm0 = input", TG_ERR_VALUE, "by 2"},
    {"end\ncopy", "end\nvariable \"n\" 1 2 1\ncopy", TG_ERR_VALUE, "a variable behind"},
    {"m0 = input", "m1 = input", TG_ERR_VALUE, "line 3: m1, where m0 is next"},
    {"m0 = input", "m0 = intput", TG_ERR_VALUE, "found 'intput'"},
    {"input f32", "input f33", TG_ERR_VALUE, "expected a dtype"},
    {"input f32", "input index", TG_ERR_VALUE, "expected a dtype"},
    {"(2, 3) \"x\"", "(2, 3 \"x\"", TG_ERR_VALUE, "expected ',' or ')'"},
    {"(2, 3) \"x\"", "(2, -3) \"x\"", TG_ERR_SHAPE, "a size that is negative"},
    {"(2, 3) \"x\"", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2,3) \"x\"", TG_ERR_SHAPE, "axes"},
    {"(2, 3) \"x\"", "(99999999999, 99999999999) \"x\"", TG_ERR_SHAPE, "2^48"},
    {"(2, 3) \"x\"", "(999999999999999, 3) \"x\"", TG_ERR_VALUE, "is more than"},
    {"(2, 3) \"x\"", "(2, 3) \"x", TG_ERR_VALUE, "does not end"},
    {"(2, 3) \"x\"", "(2, 3) \"\\x\"", TG_ERR_VALUE, "no name has"},
    {"(2, 3) \"x\"", "(2, 3) \"\\u00zz\"", TG_ERR_VALUE, "no character"},
    {"(2, 3) \"x\"", "(2, 3) \"\\u0000\"", TG_ERR_VALUE, "no character"},
    {"(2, 3) \"x\"", "(2, 3) x", TG_ERR_VALUE, "a name in quotes"},
    {"draw 16", "draw 0", TG_ERR_VALUE, "no words"},
    {"draw 16", "draw 5000000000", TG_ERR_VALUE, "is more than"},
    {"memory f32 (3) \"w\"", "memory f32 (3) \"v\"", TG_ERR_VALUE, "there is no tensor \"v\""},
    {"memory f32 (3) \"w\"", "memory f16 (3) \"w\"", TG_ERR_DTYPE, "BUFFER 1 is f32, m3 is f16"},
    {"memory f32 (3) \"w\"", "memory f32 (1, 3) \"w\"", TG_ERR_SHAPE, "has shape (1, 3), its tensor (3)"},
    {"memory f32 (3) \"w\"", "memory f32 (2) \"w\"", TG_ERR_SHAPE, "BUFFER 1 has 3 elements, m3 has 2"},
    {"scratch f32 6", "scratch f32 6\nm5 = memory f32 (3) \"w\"", TG_ERR_VALUE, "line 8: two memories are"},
    {"scratch f32 6", "scratch f32 7", TG_ERR_SHAPE, "root 0 has 6 f32, m4 is 7"},
    {"scratch f32 6", "scratch i32 6", TG_ERR_SHAPE, "6 f32 from element 0 of 6 i32"},
    {"step m0 m3 -> m4", "step m0 m9 -> m4", TG_ERR_VALUE, "line 8: m9, but there are 5"},
    {"step m0 m3 -> m4", "step m0 m3+1 -> m4", TG_ERR_SHAPE, "m3 has 3 from 1"},
    {"step m0 m3 -> m4", "step m0 m3+9 -> m4", TG_ERR_VALUE, "m3 has 3 elements"},
    {"step m0 m3 -> m4", "step m0 m3 -> m3", TG_ERR_VALUE, "m3 stands twice"},
    {"step m0 m3 -> m4", "step m0 m0 -> m4", TG_ERR_VALUE, "m0 stands twice"},
    {"step m0 m3 -> m4", "step m3 -> m0", TG_ERR_VALUE, "not m0"},
    {"step m0 m3 -> m4", "step m0 -> m4", TG_ERR_VALUE, "BUFFER 1, but the step has 1"},
    {"step m0 m3 -> m4", "step m0 m3 ->", TG_ERR_VALUE, "1 roots in the graph, 0"},
    {"step m0 m3 -> m4", "step m0 m3 -> -", TG_ERR_VALUE, "root 0 has no memory"},
    {"step m0 m3 -> m4", "step m0 m3 -> m4 m1", TG_ERR_VALUE, "1 roots in the graph, 2"},
    {"step m0 m3 -> m4", "step m0 m3 m4", TG_ERR_VALUE, "expected a memory"},
    {"step m0 m3 -> m4", "step m0 - -> m4", TG_ERR_VALUE, "expected a memory"},
    {"step m0 m3 -> m4", "stop m0 m3 -> m4", TG_ERR_VALUE, "found 'stop'"},
    {"step m3 m0 -> -", "step m3 m0 -> m1", TG_ERR_VALUE, "is given one"},
    {"BUFFER[f32, 0, 6]", "BUFFER[f32, 0, 7]", TG_ERR_VALUE, "7 elements into 6"},
    {"BUFFER[f32, 0, 6]", "BUFFER[f32, 0, 5]", TG_ERR_VALUE, "5 elements into 6"},
    {"BUFFER[f32, 0, 6]", "BUFFER[f32, 7, 6]", TG_ERR_VALUE, "BUFFER 7"},
    {"BUFFER[f32, 0, 6]", "BUFFER[f32, -1, 6]", TG_ERR_VALUE, "slot -1"},
    {"BUFFER[f32, 0, 6]", "BUFFER[i32, 0, 6]", TG_ERR_VALUE, "ADD"},
    {"BUFFER[f32, 0, 6]", "PARAM[f32, 0, 6]", TG_ERR_VALUE, "line 2"},
    {"BUFFER[f32, 0, 6]", "BUFFER[f32, 0, 99999999999999999]", TG_ERR_VALUE, "elements"},
    {"u5 = ADD(u1, u4)", "u5 = ADD(u1, u9)", TG_ERR_VALUE, "line 6, column 14"},
    {"u5 = ADD(u1, u4)", "u5 = ADD(u1, u5)", TG_ERR_VALUE, "u5"},
    {"u5 = ADD(u1, u4)", "u5 = FROB(u1, u4)", TG_ERR_VALUE, "FROB"},
    {"u5 = ADD(u1, u4)", "u5 = ADD(u1, u3)", TG_ERR_VALUE, "another shape"},
    {"u5 = ADD(u1, u4)", "u5 = COPY[3](u1)", TG_ERR_VALUE, "COPY stands in no program"},
    {"u5 = ADD(u1, u4)", "u5 = CAST[index](u1)", TG_ERR_DTYPE, "CAST is no data"},
    {"u5 = ADD(u1, u4)", "u5 = SHRINK[(1, 3, 0, 3)](u1)", TG_ERR_VALUE, "SHRINK"},
    {"u5 = ADD(u1, u4)", "u5 = EXPAND[(-9222246136947933183, 3)](u3)", TG_ERR_VALUE, "no list has"},
    {"u5 = ADD(u1, u4)", "u5 = EXPAND[(v0, 3)](u3)", TG_ERR_VALUE, "there is no variable 0"},
    {"u5 = ADD(u1, u4)", "u5 = EXPAND[(99999999999999, 3)](u3)", TG_ERR_VALUE, "2^48"},
    {"u5 = ADD(u1, u4)", "u5 = VAR[1, 6](0)", TG_ERR_VALUE, "VAR"},
    {"u5 = ADD(u1, u4)", "u5 = REDUCE_AXIS[ADD, (0)](u3)", TG_ERR_SHAPE, "over an axis of size 1"},
    {"u5 = ADD(u1, u4)", "u5 = ADD(u1, u4)\nu6 = GATHER(u2, u5)", TG_ERR_VALUE, "index 0 is f32"},
    {"u5 = ADD(u1, u4)", "u5 = ADD(u1, u4)\nroots u5, u5", TG_ERR_VALUE, "2 roots"},
    {"u5 = ADD(u1, u4)", "u5 = ADD(u1, u4)\nroots 3", TG_ERR_VALUE, "root"},
    {"u5 = ADD(u1, u4)\nend\n", "u5 = ADD(u1, u4)\n", TG_ERR_VALUE, "step"},
    {"u3 = STORE(u0, u2)", "u3 = STORE(u1, u1)", TG_ERR_VALUE, "AFTER of another"},
    {"u3 = STORE(u0, u2)", "u3 = STORE(u0, u1)", TG_ERR_VALUE, "another shape"},
    {"u3 = STORE(u0, u2)", "u3 = STORE(u2, u0)", TG_ERR_VALUE, "AFTER of another"},
    {"u4 = AFTER(u0, u3)", "u4 = AFTER(u0, u2)", TG_ERR_VALUE, "AFTER something else"},
    {"u4 = AFTER(u0, u3)", "u4 = NEG(u3)", TG_ERR_VALUE, "NEG of a STORE"},
    {"u4 = AFTER(u0, u3)", "", TG_ERR_VALUE, "root 0 is no tensor"},
    {"u4 = AFTER(u0, u3)", "u5 = STORE(u0, u0)\nu4 = AFTER(u0, u3)\nu6 = AFTER(u0, u5)\nu7 = ADD(u4, u6)",
     TG_ERR_VALUE, "two STOREs"},
    {"step m3 m0 -> -", "step m2 m0 -> -", TG_ERR_DTYPE, "m2 is u64"},
    {"copy m4 m1\n", "", TG_ERR_VALUE, "nothing writes output 0"},
    {"copy m4 m1", "copy m4 m0", TG_ERR_VALUE, "not m0"},
    {"copy m4 m1", "copy m4+1 m1", TG_ERR_SHAPE, "6 f32 from element 1"},
    {"copy m4 m1", "copy m4 m1+0 m1", TG_ERR_VALUE, "end of the line"},
    {"copy m4 m1", "copy m1 m1", TG_ERR_VALUE, "not m1"},
    {"copy m4 m1", "copy m3 m1", TG_ERR_SHAPE, "6 f32 from element 0 of 3"},
    {"copy m4 m1", "copy - m1", TG_ERR_VALUE, "takes a memory"},
    {"copy m4 m1", "copy m4 -", TG_ERR_VALUE, "takes a memory"},
    {"copy m4 m1", "copy m4 m1+1", TG_ERR_VALUE, "a whole one to write"},
    {"end\n\nstep", "end\nm5 = scratch f32 3\nstep", TG_ERR_VALUE, "behind the first step"},
    {"end\ncopy", NULL, TG_ERR_VALUE, "no line `end`"},
};

/* One of two devices, each with half of the input; w is whole on each. */
static const char pair[] = "tinygrad program 2\n"
                           "device \"INTERP\"\n"
                           "device \"INTERP:1\"\n"
                           "random d1 5 1 208\n"
                           "parts 2 axis 0\n"
                           "m0 = input d0 f32 (1, 3) \"x\"\n"
                           "m1 = input d1 f32 (2, 3) \"x\"\n"
                           "m2 = output d0 f32 (3) \"y\"\n"
                           "m3 = draw d1 16\n"
                           "m4 = memory d0 f32 (3) \"w\"\n"
                           "m5 = memory d1 f32 (3) \"w\"\n"
                           "m6 = scratch d1 f32 6\n"
                           "m7 = scratch d0 f32 6\n"
                           "step d1 m1 m5 -> m6\n"
                           "u0 = BUFFER[f32, 0, 6]\n"
                           "u1 = RESHAPE[(2, 3)](u0)\n"
                           "u2 = BUFFER[f32, 1, 3]\n"
                           "u3 = RESHAPE[(1, 3)](u2)\n"
                           "u4 = EXPAND[(2, 3)](u3)\n"
                           "u5 = ADD(u1, u4)\n"
                           "end\n"
                           "copy m6 m7\n"
                           "step d0 m7+3 m0 m4 -> m2\n"
                           "u0 = BUFFER[f32, 0, 3]\n"
                           "u1 = BUFFER[f32, 1, 3]\n"
                           "u2 = BUFFER[f32, 2, 3]\n"
                           "u3 = ADD(u0, u1)\n"
                           "u4 = ADD(u3, u2)\n"
                           "end\n";

static const struct {
  const char *from, *to;
  TgStatus status;
  const char *why;
} wrong_pair[] = {
    {"device \"INTERP:1\"\n", "", TG_ERR_VALUE, "line 3: d1, but there are 1 devices"},
    {"device \"INTERP:1\"", "device INTERP", TG_ERR_VALUE, "a name in quotes"},
    {"device \"INTERP:1\"", "device \"INTERP\"", TG_ERR_VALUE, "d0 and d1 are both INTERP"},
    {"device \"INTERP:1\"", "device \"TPU\"", TG_ERR_VALUE, "'TPU'"},
    {"device \"INTERP:1\"", "device \"INTERP:1\" x", TG_ERR_VALUE, "the end of the line"},
    {"device \"INTERP:1\"", "device \"CPU@1\"", TG_ERR_VALUE, "there are no ranks"},
    {"device \"INTERP:1\"", "device \"DISK\"", TG_ERR_DEVICE, "nothing is computed on DISK"},
    {"random d1 5 1 208", "random 5 1 208", TG_ERR_VALUE, "a device, such as d0"},
    {"random d1 5 1 208", "random d2 5 1 208", TG_ERR_VALUE, "d2"},
    {"random d1 5 1 208", "random d0 5 1 208", TG_ERR_VALUE, "no line `random`"},
    {"random d1 5 1 208", "random d1 5 1 208\nrandom d1 5 2 208", TG_ERR_VALUE, "stands once"},
    {"random d1 5 1 208", "random d1 5 1 208\nrandom d0 5 1 208", TG_ERR_VALUE, "two devices have place 1"},
    {"random d1 5 1 208", "random d1 5 1 208\nrandom d0 6 2 208", TG_ERR_VALUE, "two seeds"},
    {"random d1 5 1 208", "random d1 5 1 208\ndevice \"CPU\"", TG_ERR_VALUE, "a device behind"},
    {"parts 2", "parts 1", TG_ERR_VALUE, "of 1 parts"},
    {"parts 2", "parts 17", TG_ERR_VALUE, "17 is more than 16"},
    {"parts 2", "parts 3", TG_ERR_VALUE, "unlike the first"},
    {"parts 2", "parts 2\nparts 2", TG_ERR_VALUE, "a part"},
    {"parts 2 axis 0", "parts 2 axis 1", TG_ERR_VALUE, "unlike the first"},
    {"parts 2 axis 0", "parts 2", TG_ERR_VALUE, "unlike the first"},
    {"parts 2 axis 0", "parts 2 axis 2", TG_ERR_SHAPE, "no axis 2"},
    {"parts 2 axis 0", "parts 2 axis -1", TG_ERR_VALUE, "expected a number"},
    {"m1 = input d1 f32 (2, 3)", "m1 = input d1 i32 (2, 3)", TG_ERR_SHAPE, "unlike the first"},
    {"m1 = input d1", "m1 = input d0", TG_ERR_VALUE, "two parts on d0"},
    {"m1 = input d1", "m1 = output d1", TG_ERR_SHAPE, "unlike the first"},
    {"m1 = input d1", "m1 = input", TG_ERR_VALUE, "a device, such as d0"},
    {"m1 = input d1 f32 (2, 3) \"x\"", "m1 = scratch d1 f32 6", TG_ERR_VALUE,
     "a part of an input or output is"},
    {"m2 = output", "parts 2\nm2 = output", TG_ERR_VALUE, "a part of an input or output is"},
    {"m5 = memory d1", "m5 = memory d0", TG_ERR_VALUE, "two memories are \"w\""},
    {"m5 = memory d1 f32 (3)", "m5 = memory d1 f32 (1, 3)", TG_ERR_SHAPE, "another memory on another device"},
    {"step d1", "step", TG_ERR_VALUE, "a device, such as d0"},
    {"step d1", "step d0", TG_ERR_VALUE, "m1 is on d1, the step on d0"},
    {"step d0", "step d01", TG_ERR_VALUE, "m7 is on d0, the step on d1"},
    {"copy m6 m7\n", "copy m6 m7 d1\n", TG_ERR_VALUE, "the end of the line"},
};

/* all of a text, with `from` as `to` */
static void changed(char *out, size_t cap, const char *of, const char *from, const char *to) {
  const char *at = strstr(of, from);
  assert_non_null(at);
  snprintf(out, cap, "%.*s%s%s", (int)(at - of), of, to, at + strlen(from));
}

static TgJit *text_read(const char *text, TgTensor *w) {
  return tg_jit_from_text(C, text, ((const char *[]){"w", "other"}), ((TgTensor *[]){w, w}), 2);
}

static void test_malformed(void **state) {
  (void)state;
  char text[2048];
  int missed = 0;
  TgTensor *w = tg_from_text(C, "[10.0, 20.0, 30.0]"),
           *x = tg_from_text(C, "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"), *y;
  TgJit *j = text_read(good, w);
  if (!j) fail_msg("%s", tg_errmsg(C));
  OK(tg_jit_run(j, &x, 1, &y, 1));
  assert_string_equal(tg_to_text(y), "[[11.0, 22.0, 33.0], [14.0, 25.0, 36.0]]");
  OK(tg_jit_run(j, &x, 1, &y, 1)); /* w is now the first row; the tensor that was given is as it was */
  assert_string_equal(tg_to_text(y), "[[2.0, 4.0, 6.0], [5.0, 7.0, 9.0]]");
  assert_string_equal(tg_to_text(w), "[10.0, 20.0, 30.0]");
  tg_jit_free(j);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *at = wrong[i].from ? strstr(good, wrong[i].from) : good;
    assert_non_null(at);
    const char *rest = !wrong[i].to ? "" : wrong[i].from ? at + strlen(wrong[i].from) : "";
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, wrong[i].to ? wrong[i].to : "", rest);
    j = text_read(text, w);
    if (j || tg_error(C) != wrong[i].status || !strstr(tg_errmsg(C), wrong[i].why) ||
        strncmp(tg_errmsg(C), "program: line ", 14))
      missed++, print_error("%s -> %s: status %d, \"%s\", not %d about \"%s\"\n",
                            wrong[i].from ? wrong[i].from : "all", wrong[i].to ? wrong[i].to : "the end",
                            (int)tg_error(C), tg_errmsg(C), (int)wrong[i].status, wrong[i].why);
    tg_jit_free(j), tg_clear_error(C);
  }
  assert_int_equal(missed, 0);
}

static void test_malformed_pair(void **state) {
  (void)state;
  char text[2048];
  int missed = 0;
  const char *both[] = {"INTERP", "INTERP:1"};
  TgTensor *w = tg_from_text(C, "[10.0, 20.0, 30.0]"), *y,
           *x = tg_shard(tg_from_text(C, "[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]"), 2, both, 0,
                         .bounds = (int64_t[]){0, 1, 3});
  TgJit *j = text_read(pair, w);
  if (!j) fail_msg("%s", tg_errmsg(C));
  OK(tg_jit_run(j, &x, 1, &y, 1));
  assert_string_equal(tg_to_text(y), "[28.0, 50.0, 72.0]");
  const char *again = tg_jit_to_text(j, NULL, NULL, 0);
  assert_true(again && strstr(again, "parts 2 axis 0\nm0 = input d0 f32 (1, 3) \"x\"\nm1 = input d1 f32"));
  tg_jit_free(j);
  for (size_t i = 0; i < sizeof wrong_pair / sizeof *wrong_pair; i++) {
    changed(text, sizeof text, pair, wrong_pair[i].from, wrong_pair[i].to);
    j = text_read(text, w);
    if (j || !strstr(tg_errmsg(C), wrong_pair[i].why) || strncmp(tg_errmsg(C), "program: ", 9))
      missed++, print_error("%s -> %s: status %d, \"%s\", not about \"%s\"\n", wrong_pair[i].from,
                            wrong_pair[i].to, (int)tg_error(C), tg_errmsg(C), wrong_pair[i].why);
    tg_jit_free(j), tg_clear_error(C);
  }
  assert_int_equal(missed, 0);
  for (size_t n = 0; n + 1 < sizeof pair - 1; n++) {
    memcpy(text, pair, n), text[n] = 0;
    j = text_read(text, w);
    if (!j == !tg_error(C)) fail_msg("%zu bytes: \"%s\"", n, tg_errmsg(C));
    tg_jit_free(j), tg_clear_error(C);
  }
}

/* What is read of an output before anything wrote it is 0, whatever the memory had before. The sizes are of
 * memory that is kept when it comes back. */
enum { EARLY = 65536 };

static const char early[] = "tinygrad program 1\n"
                            "random 5 1 208\n"
                            "m0 = input f32 (65536) \"x\"\n"
                            "m1 = output f32 (65536) \"y\"\n"
                            "m2 = output f32 (65536) \"z\"\n"
                            "\n"
                            "copy m2 m1\n"
                            "step m0 -> m2\n"
                            "u0 = BUFFER[f32, 0, 65536]\n"
                            "u1 = NEG(u0)\n"
                            "end\n";

static void test_early_copy(void **state) {
  (void)state;
  static float y[EARLY], z[EARLY];
  TgTensor *x = tg_clone(tg_full(C, TG_SHAPE(EARLY), 2)), *w = tg_from_text(C, "[10.0, 20.0, 30.0]"), *out[2];
  OK(tg_realize(x));
  TgJit *j = text_read(early, w);
  if (!j) fail_msg("%s", tg_errmsg(C));
  for (int i = 0; i < 3; i++) {
    TG_SCOPE(C) {
      OK(tg_jit_run(j, &x, 1, out, 2));
      OK(tg_read(out[0], y, sizeof y));
      OK(tg_read(out[1], z, sizeof z));
    }
    tg_collect(C);
    for (int k = 0; k < EARLY; k++)
      if (y[k] != 0 || z[k] != -2) fail_msg("run %d, element %d: %g and %g", i, k, y[k], z[k]);
  }
  tg_jit_free(j);
}

/* ---- names that the caller gives: each once; of several for one memory the first */
static TgStatus plus_weight(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user) {
  (void)nin, (void)nout;
  out[0] = tg_add(in[0], *(TgTensor **)user);
  return tg_error(c);
}

static void test_given_names(void **state) {
  (void)state;
  TgTensor *w = tg_clone(tg_from_text(C, "[10.0, 20.0, 30.0]")), *x = tg_from_text(C, "[1.0, 2.0, 3.0]"), *y;
  OK(tg_realize(w));
  TgJit *j = tg_jit(C, plus_weight, &w);
  for (int i = 0; i < 2; i++)
    OK(tg_jit_run(j, &x, 1, &y, 1));
  const char *text = tg_jit_to_text(j, (const char *[]){"first", "second"},
                                    ((TgTensor *[]){w, tg_reshape(w, TG_SHAPE(3))}), 2);
  assert_non_null(text);
  assert_non_null(strstr(text, "memory f32 (3) \"first\""));
  assert_null(strstr(text, "second"));
  REFUSED(tg_jit_to_text(j, (const char *[]){"same", "same"}, ((TgTensor *[]){w, x}), 2), TG_ERR_VALUE,
          "two names are same");
  tg_jit_free(j);
}

/* Cut at every byte it is refused, or it is a shorter program. */
static void test_cut(void **state) {
  (void)state;
  TgTensor *w = tg_from_text(C, "[10.0, 20.0, 30.0]");
  char text[sizeof good];
  for (size_t n = 0; n + 1 < sizeof good - 1; n++) {
    memcpy(text, good, n), text[n] = 0;
    TgJit *j = text_read(text, w);
    if (!j == !tg_error(C)) fail_msg("%zu bytes: \"%s\"", n, tg_errmsg(C));
    tg_jit_free(j), tg_clear_error(C);
  }
}

/* A file that cannot be written leaves the old one; one that is damaged is refused, or is as good. */
static void test_files(void **state) {
  (void)state;
  static Results plain, loaded;
  saved_mlp(&plain);
  FILE *f = fopen(path, "rb");
  static char bytes[40000];
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  assert_true(n > 100 && n < sizeof bytes);
  uint64_t head;
  memcpy(&head, bytes, 8);
  assert_true((8 + head) % 64 == 0);
  for (size_t cut = 0; cut < n; cut += 1 + cut / 7) {
    TgTensor *t = tg_from(C, bytes, TG_U8, TG_SHAPE((int64_t)cut));
    REFUSED(tg_jit_load(t), TG_ERR_VALUE, "");
  }
  TgJit *j = tg_jit_load(tg_from(C, bytes, TG_U8, TG_SHAPE((int64_t)n)));
  runs_of(j, 0, RUNS, &loaded, TG_SHAPE(5, 7), 2);
  results_equal(__LINE__, &plain, &loaded, 0, RUNS, 0);
  char nowhere[200];
  snprintf(nowhere, sizeof nowhere, "%s/below", path);
  FAILS(tg_jit_save(j, nowhere), TG_ERR_IO, "below");
  tg_jit_free(j);
  j = tg_jit_load_file(C, path);
  assert_non_null(j);
  tg_jit_free(j);
}

int main(void) {
#define BOTH(t)                                                                                              \
  cmocka_unit_test_setup_teardown(t, open_cpu, close_it),                                                    \
      cmocka_unit_test_setup_teardown(t, open_interp, close_it)
#define INTERP(t) cmocka_unit_test_setup_teardown(t, open_interp, close_it)
  const struct CMUnitTest tests[] = {
      BOTH(test_inference),        BOTH(test_conv),         BOTH(test_training),     BOTH(test_stores),
      BOTH(test_stored_input),     BOTH(test_pieces),       BOTH(test_file_weights), INTERP(test_devices),
      BOTH(test_variables),        BOTH(test_disk),         INTERP(test_refused),    INTERP(test_malformed),
      INTERP(test_malformed_pair), BOTH(test_two_devices),  INTERP(test_cut),        INTERP(test_files),
      BOTH(test_early_copy),       INTERP(test_given_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
