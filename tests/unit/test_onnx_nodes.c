/* test_onnx_nodes.c: the node cases of the ONNX project, and whole models, where they are on this machine
 * ($TG_DATA, else ../shared/data): every case is either refused by name or gives what its files say; at least
 * LEAST of them do. Captured runs of models give the plain run's bits. A device on the command line computes
 * the cases, instead of INTERP. */
#define _POSIX_C_SOURCE 200809L
#include "tg_io.h"
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { LEAST = 912, MOST_IO = 32 };

static const char *device = "INTERP";

static const char *data(const char *name, char room[600]) {
  const char *own = getenv("TG_DATA");
  snprintf(room, 600, "%s/%s", own && *own ? own : "../shared/data", name);
  if (!access(room, R_OK)) return room;
  print_message("skipped: no %s in the shared data\n", name);
  return NULL;
}

static TgTensor *tensor_file(TgContext *c, const char *folder, const char *kind, int i) {
  char path[900];
  snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
  return access(path, R_OK) ? NULL : tg_onnx_tensor(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
}

/* What the case says, within the tolerance of the project's own runner. */
static void same(const char *name, int i, TgTensor *got, TgTensor *want) {
  if (tg_dtype(got) != tg_dtype(want) || tg_ndim(got) != tg_ndim(want)) {
    char text[200];
    snprintf(text, sizeof text, "%s", tg_describe(got));
    fail_msg("%s: output %d is %s, not %s", name, i, text, tg_describe(want));
  }
  for (int a = 0; a < tg_ndim(want); a++)
    if (tg_dim(got, a) != tg_dim(want, a)) fail_msg("%s: output %d, axis %d", name, i, a);
  size_t n = (size_t)tg_numel(want);
  double *x = calloc(2 * n + 2, sizeof *x), *y = x + n;
  if (tg_read_f64(got, x, n) || tg_read_f64(want, y, n))
    fail_msg("%s: output %d: %s", name, i, tg_errmsg(tg_context(got)));
  for (size_t k = 0; k < n; k++)
    if (!(x[k] == y[k] || (isnan(x[k]) && isnan(y[k])) || fabs(x[k] - y[k]) <= 1e-5 + 1e-3 * fabs(y[k])))
      fail_msg("%s: output %d [%zu] is %.9g, not %.9g", name, i, k, x[k], y[k]);
  free(x);
}

/* true: it ran, and was right; false: refused, or of values that are no tensors */
static bool node_case(TgContext *c, const char *name, const char *folder) {
  char path[900];
  TgOnnxValue v;
  TgTensor *in[MOST_IO], *out[MOST_IO];
  const char *names[MOST_IO];
  int nin = 0, nout = 0;
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  TgOnnx *m = tg_onnx_open(c, path);
  for (int i = 0; m && i < MOST_IO && tg_onnx_input(m, (size_t)i, &v); i++) {
    in[nin] = tensor_file(c, folder, "input", i);
    if (in[nin]) names[nin++] = v.name;
  }
  while (m && nout < MOST_IO && tg_onnx_output(m, (size_t)nout, &v))
    nout++;
  bool ok = m && !tg_error(c) && !tg_onnx_run(m, names, in, nin, out, nout);
  for (int i = 0; ok && i < nout; i++) {
    TgTensor *want = tensor_file(c, folder, "output", i);
    ok = want != NULL;
    if (want) same(name, i, out[i], want);
  }
  if (!ok && tg_error(c) && !*tg_errmsg(c)) fail_msg("%s: refused without a word", name);
  tg_onnx_free(m);
  return ok;
}

static void test_nodes(void **state) {
  (void)state;
  char room[600], folder[] = "/tmp/tg-onnx-XXXXXX", line[800];
  const char *archive = data("onnx-node-tests/node.tar.xz", room);
  if (!archive || !mkdtemp(folder)) skip();
  snprintf(line, sizeof line, "tar xf '%s' -C %s", archive, folder);
  int unpacked = system(line);
  snprintf(line, sizeof line, "%s/node", folder);
  DIR *dir = unpacked ? NULL : opendir(line);
  int fine = 0, all = 0;
  for (struct dirent *e; dir && (e = readdir(dir));) {
    if (e->d_name[0] == '.') continue;
    TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
    assert_int_equal(tg_error(c), TG_OK);
    snprintf(line, sizeof line, "%s/node/%s", folder, e->d_name);
    fine += node_case(c, e->d_name, line);
    all++;
    tg_close(c);
  }
  if (dir) closedir(dir);
  snprintf(line, sizeof line, "rm -rf %s", folder);
  assert_int_equal(system(line), 0);
  if (!dir) {
    print_message("skipped: the cases were not unpacked (tar and xz do that)\n");
    skip();
  }
  if (fine < LEAST) fail_msg("%d of %d cases are right, not %d", fine, all, LEAST);
}

/* ---- captured */
typedef struct Captured {
  TgOnnx *m;
  const char *name;
} Captured;

static TgStatus run_model(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Captured *k = user;
  (void)c;
  return tg_onnx_run(k->m, &k->name, in, nin, out, nout);
}

/* Shape arithmetic, resizing, reductions: constants of the model, which a capture finds made by the run
 * before it. Another input than the captured one is given last. */
static void test_captured(void **state) {
  (void)state;
  static const char *const models[] = {"onnx-mnist/mnist.onnx", "fastestdet/FastestDet.onnx"};
  for (int i = 0; i < 2; i++) {
    char room[600];
    if (!data(models[i], room)) skip();
    TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU", .seed = 3});
    TgOnnx *m = tg_onnx_open(c, room);
    TgOnnxValue v;
    assert_true(m && tg_onnx_input(m, 0, &v));
    Captured k = {m, v.name};
    TgJit *jit = tg_jit(c, run_model, &k);
    for (int turn = 0; turn < 4; turn++)
      TG_SCOPE(c) {
        TgTensor *x = tg_contiguous(tg_rand(c, v.ndim, v.dims)), *got, *want;
        assert_int_equal(tg_realize(x), TG_OK);
        if (tg_jit_run(jit, &x, 1, &got, 1)) fail_msg("%s: %s", models[i], tg_errmsg(c));
        assert_int_equal(tg_onnx_run(m, &v.name, &x, 1, &want, 1), TG_OK);
        size_t n = tg_nbytes(want);
        void *a = malloc(n), *b = malloc(n);
        assert_int_equal(tg_read(got, a, n) | tg_read(want, b, n), TG_OK);
        assert_memory_equal(a, b, n);
        free(a), free(b);
      }
    tg_jit_free(jit), tg_onnx_free(m);
    tg_close(c);
  }
}

/* A recurrent model over speech, a step at a time: the probabilities that its readme gives. */
static void test_speech(void **state) {
  (void)state;

  enum { HEAD = 44, CHUNK = 512, BEFORE = 64, STEPS = 400 };

  char room[600], path[600];
  if (!data("silero-vad/silero_vad_16k_op15.onnx", room) || !data("silero-vad/speech_16k.wav", path)) skip();
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU"});
  TgOnnx *m = tg_onnx_open(c, room);
  if (!m) fail_msg("%s", tg_errmsg(c));
  static int16_t sound[STEPS * CHUNK];
  static double want[STEPS];
  FILE *f = fopen(path, "rb");
  assert_true(f && !fseek(f, HEAD, SEEK_SET) && fread(sound, 2, STEPS * CHUNK, f) == STEPS * CHUNK);
  fclose(f);
  TgTensor *probs = tg_npy_load_file(c, data("silero-vad/probs.npy", path));
  assert_int_equal(tg_read_f64(tg_reshape(probs, TG_SHAPE(-1)), want, STEPS), TG_OK);
  static const char *const names[] = {"input", "state", "sr"};
  TgTensor *memory = tg_keep(tg_contiguous(tg_zeros(c, TG_SHAPE(2, 1, 128))));
  for (int i = 0; i < STEPS; i++)
    TG_SCOPE(c) {
      float x[BEFORE + CHUNK];
      for (int k = 0; k < BEFORE + CHUNK; k++)
        x[k] = i || k >= BEFORE ? (float)sound[i * CHUNK + k - BEFORE] / 32768.0f : 0;
      TgTensor *out[2], *in[] = {tg_from(c, x, TG_F32, TG_SHAPE(1, BEFORE + CHUNK)), memory,
                                 tg_full_i64(c, TG_SCALAR, 16000, TG_I64)};
      if (tg_onnx_run(m, names, in, 3, out, 2)) fail_msg("%s", tg_errmsg(c));
      assert_int_equal(tg_realize_many(out, 2), TG_OK);
      double p = tg_item_f64(out[0]);
      if (!(fabs(p - want[i]) < 1e-4)) fail_msg("step %d: %g, not %g", i, p, want[i]);
      tg_release(memory);
      memory = tg_keep(out[1]);
    }
  tg_release(memory);
  tg_onnx_free(m);
  tg_close(c);
}

int main(int argc, char **argv) {
  if (argc > 1) device = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes), cmocka_unit_test(test_captured),
                                     cmocka_unit_test(test_speech)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
