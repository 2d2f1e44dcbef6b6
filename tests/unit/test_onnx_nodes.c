/* test_onnx_nodes.c: the node cases of the ONNX project, and whole models, where they are on this machine
 * ($TG_DATA, else ../shared/data): every case is either refused by name or gives what its files say; at least
 * LEAST of them do, and captured they give the same bits. Each axis of each input is made a variable, too: that is
 * refused by name, or gives the same. A device on the command line computes
 * the cases, instead of INTERP; those of f64 must be refused by name where it has none. */
#define _POSIX_C_SOURCE 200809L
#include "tg_io.h"
#include "fixture.h"
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

enum { LEAST = 981, LEAST_SYMBOLIC = 7828, MOST_IO = 32 };

static const char *device = "INTERP";

static TgTensor *tensor_file(TgContext *c, const char *folder, const char *kind, int i) {
  char path[900];
  snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
  return access(path, R_OK) ? NULL : tg_onnx_tensor(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
}

/* What the case says, within the tolerance of the project's own runner; else what is wrong, in words. */
static bool is_same(int i, TgTensor *got, TgTensor *want, char *wrong, size_t room) {
  bool fits = tg_dtype(got) == tg_dtype(want) && tg_ndim(got) == tg_ndim(want);
  for (int a = 0; fits && a < tg_ndim(want); a++)
    fits = tg_dim(got, a) == tg_dim(want, a);
  if (!fits) {
    int n = snprintf(wrong, room, "output %d is %s, ", i, tg_describe(got));
    snprintf(wrong + n, room - (size_t)n, "not %s", tg_describe(want));
    return false;
  }
  size_t n = (size_t)tg_numel(want);
  double *x = calloc(2 * n + 2, sizeof *x), *y = x + n;
  bool right = !tg_read_f64(got, x, n) && !tg_read_f64(want, y, n);
  if (!right) snprintf(wrong, room, "output %d: %s", i, tg_errmsg(tg_context(got)));
  for (size_t k = 0; k < n && right; k++) {
    right = x[k] == y[k] || (isnan(x[k]) && isnan(y[k])) || fabs(x[k] - y[k]) <= 1e-5 + 1e-3 * fabs(y[k]);
    if (!right) snprintf(wrong, room, "output %d [%zu] is %.9g, not %.9g", i, k, x[k], y[k]);
  }
  free(x);
  return right;
}

/* ---- captured */
typedef struct Captured {
  TgOnnx *m;
  const char **names;
} Captured;

static TgStatus run_model(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Captured *k = user;
  (void)c;
  return tg_onnx_run(k->m, k->names, in, nin, out, nout);
}

enum { MOST_MEMORIES = 64 };

/* The same program, read again from its text. */
static TgJit *read_again(TgContext *c, const char *name, TgJit *jit) {
  const char *names[MOST_MEMORIES];
  TgTensor *t[MOST_MEMORIES];
  int n = 0;
  const char *text = tg_jit_to_text(jit, NULL, NULL, 0);
  char *copy = text ? strdup(text) : NULL;
  while (n < MOST_MEMORIES && (t[n] = tg_jit_memory(jit, (size_t)n, &names[n])))
    n++;
  TgJit *again = copy ? tg_jit_from_text(c, copy, names, t, n) : NULL;
  if (!again) fail_msg("%s as text: %s\n%s", name, tg_errmsg(c), copy ? copy : "");
  free(copy), tg_jit_free(jit);
  return again;
}

/* The replays of a case have the bits of its plain run, `out`, and so has what is read from its text. What
 * cannot be captured, since a size depends on values, says so. */
static void captured_too(TgContext *c, const char *name, Captured *k, TgTensor *const *in, int nin,
                         TgTensor *const *out, int nout) {
  TgJit *jit = tg_jit(c, run_model, k);
  TgTensor *got[MOST_IO];
  for (int turn = 0; turn < 4; turn++) {
    if (turn == 3) jit = read_again(c, name, jit);
    if (tg_jit_run(jit, in, nin, got, nout)) {
      /* STATE: values are read; VALUE: all inputs are shapes and the like, one memory for two */
      bool no_f64 = strstr(tg_errmsg(c), "is f64, which"); /* the copy of an output */
      if (!no_f64 && (turn != 1 || (tg_error(c) != TG_ERR_STATE && tg_error(c) != TG_ERR_VALUE)))
        fail_msg("%s, captured run %d: %s", name, turn, tg_errmsg(c));
      tg_clear_error(c);
      break;
    }
    for (int i = 0; i < nout; i++) {
      size_t n = tg_nbytes(out[i]);
      void *a = calloc(n + 1, 1), *b = calloc(n + 1, 1);
      if (n && (tg_read(got[i], a, n) || tg_read(out[i], b, n))) fail_msg("%s: %s", name, tg_errmsg(c));
      if (tg_nbytes(got[i]) != n || memcmp(a, b, n))
        fail_msg("%s: captured run %d, output %d", name, turn, i);
      free(a), free(b);
    }
  }
  tg_jit_free(jit);
}

/* ---- sizes that are variables */
static uint64_t varint(const uint8_t **p, const uint8_t *end) {
  uint64_t v = 0;
  for (int shift = 0; *p < end && shift < 64; shift += 7) {
    v |= (uint64_t)(**p & 127) << shift;
    if (!(*(*p)++ & 128)) break;
  }
  return v;
}

static uint8_t *put_varint(uint8_t *to, uint64_t v) {
  for (; v > 127; v >>= 7)
    *to++ = (uint8_t)(v | 128);
  return *to++ = (uint8_t)v, to;
}

/* A message without what its path of fields, ended by 0, leads to. */
static uint8_t *without(const uint8_t *p, const uint8_t *end, const int *path, uint8_t *to) {
  while (p < end) {
    const uint8_t *from = p;
    uint64_t key = varint(&p, end), n = 0;
    switch (key & 7) {
    case 0: varint(&p, end); break;
    case 1: p += 8; break;
    case 5: p += 4; break;
    default: n = varint(&p, end); p += n;
    }
    bool on_path = (key & 7) == 2 && (int)(key >> 3) == *path;
    if (on_path && !path[1]) continue;
    if (!on_path) {
      memcpy(to, from, (size_t)(p - from));
      to += p - from;
      continue;
    }
    uint8_t *part = malloc(n + 16), *part_end = without(p - n, p, path + 1, part);
    to = put_varint(put_varint(to, key), (uint64_t)(part_end - part));
    memcpy(to, part, (size_t)(part_end - part));
    to += part_end - part;
    free(part);
  }
  return to;
}

/* The model's bytes, of which the inputs may have any sizes; to be freed. */
static uint8_t *of_any_size(TgContext *c, const char *path, size_t *n) {
  static const int shapes[] = {7, 11, 2, 1, 2, 0}; /* graph, input, type, tensor_type, shape */
  TgTensor *file = tg_from_file(c, path, TG_U8, TG_SHAPE(-1));
  size_t size = tg_nbytes(file);
  uint8_t *bytes = malloc(2 * size + 64);
  assert_int_equal(tg_read(file, bytes + size, size), TG_OK);
  *n = (size_t)(without(bytes + size, bytes + 2 * size, shapes, bytes) - bytes);
  return bytes;
}

/* How input i is said to have the size n: axes of its that are as long as axis `axis` of input `from`. */
typedef enum Same { AXIS_OF_ALL, ANY_AXIS, ONE_INPUT, SAMES } Same;

typedef struct Symbolic {
  TgVariable *n;
  int64_t size;
  int from, axis;
  Same same;
} Symbolic;

static bool is_varied(const Symbolic *s, const TgTensor *t, int i, int axis) {
  if (tg_dim(t, axis) != s->size || (s->same == ONE_INPUT && i != s->from)) return false;
  return s->same == ANY_AXIS || axis == s->axis;
}

/* The first n of what is longer: what stands behind is no part of it. */
static TgTensor *varied(const Symbolic *s, TgTensor *t, int i, int more) {
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  bool any = false;
  for (int a = 0; a < tg_ndim(t); a++)
    if (is_varied(s, t, i, a)) {
      hi[a] = more;
      any = true;
    }
  if (!any) return t;
  TgTensor *longer = tg_contiguous(tg_pad(t, lo, hi)); /* of any dtype */
  for (int a = 0; a < tg_ndim(t); a++)
    if (hi[a]) longer = tg_slice(longer, a, 0, tg_size(s->n));
  return longer;
}

static int symbolic_right, symbolic_refused, symbolic_wrong;

/* A case as it is run again and again. */
typedef struct Case {
  const char *name, **names;
  const uint8_t *model;
  size_t size;
  TgTensor *const *in, *const *want;
  int nin, nout;
} Case;

/* Shapes, axes and the like, which a model needs to know. */
static bool is_list(const TgTensor *t) { return tg_ndim(t) < 2 && tg_numel(t) < 16; }

/* The model of inputs of symbolic sizes, made while nothing is bound: read at the sizes of the case it gives what the
 * case says, or was refused by name. */
static void symbolic_case(TgContext *c, const Case *k, Symbolic *s) {
  enum { MORE = 3 };

  TgTensor *given[MOST_IO], *out[MOST_IO];
  const char *names[MOST_IO];
  char title[400], wrong[400];
  int nin = 0;
  snprintf(title, sizeof title, "%.200s with axis %d of input %d symbolic, way %d", k->name, s->axis, s->from,
           (int)s->same);
  assert_int_equal(tg_scope_begin(c), TG_OK);
  TgOnnx *m = tg_onnx_load(tg_borrow(c, (void *)k->model, TG_U8, TG_SHAPE((int64_t)k->size), NULL, NULL));
  if (!m) fail_msg("%s: %s", title, tg_errmsg(c));
  s->n = tg_variable(c, "n", s->same == AXIS_OF_ALL ? 1 : s->size, s->size + MORE);
  for (int i = 0; i < k->nin; i++) {
    TgTensor *t = varied(s, k->in[i], i, MORE);
    if (t == k->in[i] && is_list(t) && !tg_onnx_fix(m, k->names[i], t)) continue;
    tg_clear_error(c); /* an input with a value */
    names[nin] = k->names[i];
    given[nin++] = t;
  }
  if (tg_onnx_run(m, names, given, nin, out, k->nout)) {
    if (!strstr(tg_errmsg(c), "onnx: ")) fail_msg("%s: %s", title, tg_errmsg(c));
    if (getenv("V")) print_message("%s: %s\n", title, tg_errmsg(c));
    tg_clear_error(c);
    symbolic_refused++;
  } else {
    tg_variable_bind(s->n, s->size);
    bool right = true;
    for (int i = 0; i < k->nout && right; i++)
      right = is_same(i, out[i], k->want[i], wrong, sizeof wrong);
    if (!right) print_message("%s: %s\n", title, wrong);
    symbolic_wrong += !right;
    symbolic_right += right;
    tg_clear_error(c);
  }
  tg_onnx_free(m);
  tg_scope_end(c);
}

static void symbolic_too(TgContext *c, const Case *k) {
  for (int i = 0; i < k->nin; i++)
    for (int a = 0; a < tg_ndim(k->in[i]); a++)
      for (Same same = AXIS_OF_ALL; same < SAMES; same++)
        if (tg_dim(k->in[i], a) > 0)
          symbolic_case(c, k, &(Symbolic){.size = tg_dim(k->in[i], a), .from = i, .axis = a, .same = same});
}

/* Each run draws other numbers. */
static bool is_random(const char *name) {
  return strstr(name, "dropout") || strstr(name, "bernoulli") || strstr(name, "random");
}

static int without_f64; /* cases that the device refuses for that */

/* Whether the outputs are computed; false where the device has no f64, and says so. */
static bool computed(TgContext *c, const char *name, TgTensor **out, int nout) {
  if (!nout || !tg_realize_many(out, (size_t)nout)) return true;
  if (!strstr(tg_errmsg(c), "is f64, which")) fail_msg("%s: %s", name, tg_errmsg(c));
  return false;
}

/* true: it ran, and was right; false: refused, or of values that are no tensors */
static bool node_case(TgContext *c, const char *name, const char *folder) {
  char path[900];
  TgOnnxValue v;
  TgTensor *in[MOST_IO], *out[MOST_IO], *want[MOST_IO];
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
  bool ok = m && !tg_error(c) && !tg_onnx_run(m, names, in, nin, out, nout) && computed(c, name, out, nout);
  for (int i = 0; ok && i < nout; i++) {
    want[i] = tensor_file(c, folder, "output", i);
    ok = want[i] != NULL;
    char wrong[400];
    if (want[i] && !is_same(i, out[i], want[i], wrong, sizeof wrong)) fail_msg("%s: %s", name, wrong);
  }
  if (ok && !is_random(name)) captured_too(c, name, &(Captured){m, names}, in, nin, out, nout);
  if (ok && !is_random(name)) {
    Case k = {.name = name, .names = names, .in = in, .want = want, .nin = nin, .nout = nout};
    uint8_t *bytes = of_any_size(c, path, &k.size);
    k.model = bytes;
    symbolic_too(c, &k);
    free(bytes);
  }
  without_f64 += !ok && strstr(tg_errmsg(c), "is f64, which");
  if (!ok && tg_error(c) && !*tg_errmsg(c)) fail_msg("%s: refused without a word", name);
  tg_onnx_free(m);
  return ok;
}

static void test_nodes(void **state) {
  (void)state;
  char room[600], folder[] = "/tmp/tg-onnx-XXXXXX", line[800];
  const char *archive = data_file("onnx-node-tests/node.tar.xz", room);
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
  if (symbolic_wrong) fail_msg("%d inputs with a symbolic size give something else", symbolic_wrong);
  if (!without_f64 && symbolic_right < LEAST_SYMBOLIC)
    fail_msg("%d inputs with a symbolic size are taken, not %d", symbolic_right, LEAST_SYMBOLIC);
  if (fine + without_f64 < LEAST) fail_msg("%d of %d cases are right, not %d", fine, all, LEAST);
}

/* ---- a model in steps */
/* A recurrent model over speech, a step at a time: the probabilities that its readme gives. */
static void test_speech(void **state) {
  (void)state;

  enum { HEAD = 44, CHUNK = 512, BEFORE = 64, STEPS = 400 };

  char room[600], path[600];
  if (!data_file("silero-vad/silero_vad_16k_op15.onnx", room) ||
      !data_file("silero-vad/speech_16k.wav", path))
    skip();
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU"});
  TgOnnx *m = tg_onnx_open(c, room);
  if (!m) fail_msg("%s", tg_errmsg(c));
  static int16_t sound[STEPS * CHUNK];
  static double want[STEPS];
  FILE *f = fopen(path, "rb");
  assert_true(f && !fseek(f, HEAD, SEEK_SET) && fread(sound, 2, STEPS * CHUNK, f) == STEPS * CHUNK);
  fclose(f);
  TgTensor *probs = tg_npy_load_file(c, data_file("silero-vad/probs.npy", path));
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes), cmocka_unit_test(test_speech)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
