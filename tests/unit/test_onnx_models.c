/* test_onnx_models.c: whole ONNX models, captured. Each model gets inputs of random numbers, three different
 * sets; a captured run of each must have the bits of the plain one. Where a model is small enough the outputs
 * are also computed by INTERP, and where what they should be lies beside it, they are compared with that; free
 * sizes that have names are variables, of which one capture serves all values:
 *   test_data_set_N/input_K.pb, output_K.pb   as the model zoo has them
 *   NAME_output_0.pb for NAME.onnx            of the input 0/n, 1/n .. (the ONNX project's light models)
 *   io.npz                                    inputs and outputs by name
 * Without arguments: the models of the shared data ($TG_DATA, else ../shared/data). With arguments, files and
 * folders of anybody's models, and NAME=N for an input or a free size: a line for each model and a count.
 *   test_onnx_models --device CPU sr=16000 MODELS/ */
#define _GNU_SOURCE
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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST_IO = 64, SETS = 3, MOST_SETTINGS = 32 };

static const char *device = "CPU", *settings[MOST_SETTINGS];
static int nsettings;
static uint64_t interp_flops = 30 * 1000 * 1000; /* the most that INTERP is asked to do */

typedef struct Input {
  TgOnnxValue about;
  int ndim;
  int64_t dims[TG_MAX_RANK], n;
} Input;

typedef struct Check {
  const char *path;
  TgContext *ctx, *interp;
  TgOnnx *m, *m_interp;
  Input in[MOST_IO];
  const char *names[MOST_IO];
  int nin, nout;
  char said[400]; /* what was found */
  bool wrong, refused, captured, by_interp, expected, varied;
} Check;

__attribute__((format(printf, 2, 3))) static bool say(Check *k, const char *form, ...) {
  size_t n = strlen(k->said);
  va_list ap;
  va_start(ap, form);
  vsnprintf(k->said + n, sizeof k->said - n, form, ap);
  va_end(ap);
  return false;
}

__attribute__((format(printf, 2, 3))) static bool wrong(Check *k, const char *form, ...) {
  size_t n = strlen(k->said);
  va_list ap;
  va_start(ap, form);
  vsnprintf(k->said + n, sizeof k->said - n, form, ap);
  va_end(ap);
  k->wrong = true;
  return false;
}

/* ---- inputs */
static bool setting(const char *name, int64_t *v) {
  size_t n = name ? strlen(name) : 0;
  for (int i = 0; n && i < nsettings; i++)
    if (!strncmp(settings[i], name, n) && settings[i][n] == '=') return *v = atoll(settings[i] + n + 1), true;
  return false;
}

/* A free size: as it was set, 1 in front, the side of a picture where one seems meant, else a few. */
static int64_t free_size(const Check *k, const TgOnnxValue *v, int axis) {
  int64_t n;
  const char *name = v->dim_names ? v->dim_names[axis] : NULL;
  if (setting(name, &n)) return n;
  for (int i = 0; name && *name && i < k->nin; i++) /* as it was chosen for an input before */
    for (int a = 0; a < k->in[i].ndim; a++) {
      const char *other = k->in[i].about.dim_names ? k->in[i].about.dim_names[a] : NULL;
      if (other && !strcmp(other, name)) return k->in[i].dims[a];
    }
  if (axis == 0) return 1;
  return v->ndim == 4 && axis >= 2 && tg_dtype_is_float(v->dtype) ? 96 : 16;
}

static bool inputs_described(Check *k) {
  TgOnnxValue v;
  for (int i = 0; k->nin < MOST_IO && tg_onnx_input(k->m, (size_t)i, &v); i++) {
    if (v.has_default) continue;
    if (v.ndim < 0 || !v.dtype) return say(k, "input %s is of no known shape or dtype", v.name);
    Input *in = &k->in[k->nin];
    *in = (Input){.about = v, .ndim = v.ndim, .n = 1};
    for (int a = 0; a < v.ndim; a++) {
      in->dims[a] = v.dims[a] >= 0 ? v.dims[a] : free_size(k, &v, a);
      in->n *= in->dims[a];
    }
    k->names[k->nin++] = v.name;
  }
  while (k->nout < MOST_IO && tg_onnx_output(k->m, (size_t)k->nout, &v))
    k->nout++;
  return true;
}

static uint64_t random_bits(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9), z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

/* Floats in 0 .. 1, bytes, and whole numbers 0 and 1, which index anything; `ramp`: i / n. */
static TgTensor *input_made(TgContext *ctx, const Input *in, uint64_t seed, bool ramp) {
  TgDType d = in->about.dtype;
  int64_t fixed;
  if (setting(in->about.name, &fixed)) {
    TgTensor *t = tg_full_i64(ctx, in->ndim, in->dims, fixed, d);
    return tg_contiguous(t);
  }
  uint64_t state = seed;
  double *v = malloc(((size_t)in->n + 1) * sizeof *v);
  assert_non_null(v);
  for (int64_t i = 0; i < in->n; i++) {
    uint64_t bits = random_bits(&state);
    v[i] = tg_dtype_is_float(d)
               ? (double)(float)(ramp ? (double)i / (double)in->n : (double)(bits >> 40) / (1 << 24))
           : d == TG_U8 ? (double)(bits & 255)
                        : (double)(bits & 1);
  }
  TgTensor *t = tg_from(ctx, v, TG_F64, in->ndim, in->dims);
  t = d == TG_F64 ? t : tg_cast(t, d);
  free(v);
  return tg_contiguous(t);
}

/* ---- comparing */
static bool axes_dropped; /* what is expected may lack axes of 1, as arrays of other programs do */

static bool same_kind(Check *k, const char *what, int i, TgTensor *got, TgTensor *want) {
  bool same = tg_dtype(got) == tg_dtype(want) && tg_ndim(got) == tg_ndim(want);
  for (int a = 0; same && a < tg_ndim(want); a++)
    same = tg_dim(got, a) == tg_dim(want, a);
  if (axes_dropped)
    same = tg_dtype_is_float(tg_dtype(got)) == tg_dtype_is_float(tg_dtype(want)) &&
           tg_numel(got) == tg_numel(want);
  return same || wrong(k, "%s: output %d is %s; ", what, i, tg_describe(got));
}

static bool same_bits(Check *k, const char *what, int i, TgTensor *got, TgTensor *want) {
  if (!same_kind(k, what, i, got, want)) return false;
  size_t n = tg_nbytes(want), at = 0;
  uint8_t *a = calloc(2 * n + 1, 1), *b = a + n;
  assert_non_null(a);
  bool ok = !n || (!tg_read(got, a, n) && !tg_read(want, b, n));
  if (!ok) wrong(k, "%s: %s; ", what, tg_errmsg(k->ctx));
  while (ok && at < n && a[at] == b[at])
    at++;
  if (ok && at < n) ok = wrong(k, "%s: output %d differs at byte %zu; ", what, i, at);
  free(a);
  return ok;
}

/* Within `tol` of the largest number. */
static bool near(Check *k, const char *what, int i, TgTensor *got, TgTensor *want, double tol) {
  if (!same_kind(k, what, i, got, want)) return false;
  size_t n = (size_t)tg_numel(want);
  double *x = calloc(2 * n + 2, sizeof *x), *y = x + n, most = 1e-3;
  assert_non_null(x);
  bool ok = !n || (!tg_read_f64(got, x, n) && !tg_read_f64(want, y, n));
  if (!ok) wrong(k, "%s: %s; ", what, tg_errmsg(tg_context(want)));
  for (size_t e = 0; ok && e < n; e++)
    if (isfinite(y[e])) most = fmax(most, fabs(y[e]));
  for (size_t e = 0; ok && e < n; e++) {
    bool close = x[e] == y[e] || (isnan(x[e]) && isnan(y[e])) || fabs(x[e] - y[e]) <= tol * most;
    if (!close) ok = wrong(k, "%s: output %d [%zu] is %.9g, not %.9g; ", what, i, e, x[e], y[e]);
  }
  free(x);
  return ok;
}

/* ---- a model, plainly and captured */
static TgStatus run_model(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Check *k = user;
  return tg_onnx_run(c == k->interp ? k->m_interp : k->m, k->names, in, nin, out, nout);
}

static bool inputs_made(const Check *k, TgContext *ctx, int set, bool ramp, TgTensor **in) {
  for (int i = 0; i < k->nin; i++)
    if (!(in[i] = input_made(ctx, &k->in[i], (uint64_t)set * 1000 + (uint64_t)i, ramp)) || tg_realize(in[i]))
      return false;
  return true;
}

static bool interp_agrees(Check *k, TgTensor *const *got) {
  TgTensor *in[MOST_IO], *out[MOST_IO];
  k->interp = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  k->m_interp = tg_onnx_open(k->interp, k->path);
  bool ok = k->m_interp && inputs_made(k, k->interp, 0, false, in) &&
            !run_model(k->interp, in, k->nin, out, k->nout, k);
  if (!ok) wrong(k, "INTERP: %s; ", tg_errmsg(k->interp));
  for (int i = 0; ok && i < k->nout; i++)
    ok = near(k, "INTERP", i, got[i], out[i], 1e-4);
  k->by_interp = ok;
  tg_onnx_free(k->m_interp);
  tg_close(k->interp);
  k->interp = NULL;
  return ok;
}

static bool runs_plainly(Check *k) {
  TgTensor *in[MOST_IO], *out[MOST_IO];
  bool ok = false;
  TG_SCOPE(k->ctx) {
    tg_counters_reset(k->ctx);
    ok = inputs_made(k, k->ctx, 0, false, in) && !run_model(k->ctx, in, k->nin, out, k->nout, k) &&
         !tg_realize_many(out, (size_t)k->nout);
    if (!ok) say(k, "%s", tg_errmsg(k->ctx)), k->refused = true;
    if (ok && tg_counters(k->ctx).flops <= interp_flops) interp_agrees(k, out);
  }
  return ok;
}

/* Through a file; NULL: refused. */
static TgJit *saved_and_loaded(Check *k, TgJit *jit) {
  char path[100];
  snprintf(path, sizeof path, "/tmp/tg_onnx_program_%ld.safetensors", (long)getpid());
  TgJit *again = tg_jit_save(jit, path) ? NULL : tg_jit_load_file(k->ctx, path);
  unlink(path);
  if (!again) wrong(k, "as a program in a file: %s; ", tg_errmsg(k->ctx));
  return again;
}

/* Turns: plain, captured, replays, one of them of what was saved and loaded; each with another set of inputs
 * than the one before. */
static void runs_captured(Check *k) {
  TgJit *jit = tg_jit(k->ctx, run_model, k), *first = NULL;
  bool ok = jit != NULL;
  for (int turn = 0; ok && turn < 5; turn++)
    TG_SCOPE(k->ctx) {
      if (turn == 4) first = jit, ok = (jit = saved_and_loaded(k, first)) != NULL;
      if (!ok) continue;
      TgTensor *in[MOST_IO], *got[MOST_IO], *want[MOST_IO];
      ok = inputs_made(k, k->ctx, turn % SETS, false, in);
      if (ok && tg_jit_run(jit, in, k->nin, got, k->nout)) {
        bool values = turn == 1 && tg_error(k->ctx) == TG_ERR_STATE; /* a size depends on values */
        if (values)
          say(k, "not captured: %s; ", tg_errmsg(k->ctx));
        else
          wrong(k, "captured, run %d: %s; ", turn, tg_errmsg(k->ctx));
        ok = false;
      }
      ok = ok && !run_model(k->ctx, in, k->nin, want, k->nout, k) && !tg_realize_many(want, (size_t)k->nout);
      for (int i = 0; ok && i < k->nout; i++)
        ok = same_bits(k, "captured", i, got[i], want[i]);
    }
  k->captured = ok;
  tg_clear_error(k->ctx);
  tg_jit_free(jit), tg_jit_free(first);
}

/* ---- with free sizes as variables: one capture for all of them */
typedef struct Free {
  const char *name;
  TgVariable *variable;
  int64_t most;
} Free;

enum { MOST_FREE = 8 };

/* The variable of axis a of an input; NULL: its size is a number. batch: of the first axes alone. */
static Free *free_of(Check *k, Free *all, int *n, const Input *in, int a, bool batch) {
  const char *name = in->about.dim_names ? in->about.dim_names[a] : NULL;
  int64_t fixed;
  int i = 0;
  if (in->about.dims[a] >= 0 || !name || !*name || setting(name, &fixed)) return NULL;
  while (i < *n && strcmp(all[i].name, name))
    i++;
  if (i == *n && ((batch && a) || i == MOST_FREE)) return NULL;
  if (i == *n) {
    all[i] = (Free){.name = name, .most = in->dims[a] + 4};
    all[i].variable = tg_variable(k->ctx, name, 1, all[i].most);
    *n += 1;
  }
  return &all[i];
}

/* An input at the sizes that are bound, and the same as the first rows of one of the largest sizes. */
static bool input_varied(Check *k, Free *all, int *n, int i, bool batch, int set, TgTensor **plain,
                         TgTensor **part) {
  Input in = k->in[i];
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0}, value;
  in.n = 1;
  for (int a = 0; a < in.ndim; a++) {
    Free *f = free_of(k, all, n, &in, a, batch);
    if (f && tg_variable_value(f->variable, &value)) in.dims[a] = value, hi[a] = f->most - value;
    in.n *= in.dims[a];
  }
  uint64_t seed = (uint64_t)set * 1000 + (uint64_t)i;
  *plain = *part = input_made(k->ctx, &in, seed, false);
  if (in.ndim) *part = tg_contiguous(tg_pad(*plain, lo, hi));
  for (int a = 0; a < in.ndim; a++) {
    Free *f = free_of(k, all, n, &in, a, batch);
    if (f) *part = tg_slice(*part, a, 0, tg_size(f->variable));
  }
  return *plain && *part && !tg_realize(*plain);
}

/* The same program from a file, and its own variables. */
static TgJit *varied_again(Check *k, TgJit *jit, Free *all, int n) {
  TgJit *again = saved_and_loaded(k, jit);
  TgVariable *v;
  for (size_t i = 0; again && (v = tg_jit_variable(again, i)); i++)
    for (int f = 0; f < n; f++)
      if (!strcmp(all[f].name, tg_variable_name(v))) all[f].variable = v;
  return again;
}

/* false: refused, with what the model said; or wrong. */
static bool runs_varied(Check *k, bool batch) {
  Free all[MOST_FREE];
  int n = 0;
  for (int i = 0; i < k->nin; i++)
    for (int a = 0; a < k->in[i].ndim; a++)
      free_of(k, all, &n, &k->in[i], a, batch);
  if (!n) return false;
  TgJit *jit = tg_jit(k->ctx, run_model, k), *first = NULL;
  bool ok = jit != NULL;
  for (int turn = 0; ok && turn < 6; turn++)
    TG_SCOPE(k->ctx) {
      if (turn == 4) first = jit, ok = (jit = varied_again(k, first, all, n)) != NULL;
      TgTensor *plain[MOST_IO], *part[MOST_IO], *got[MOST_IO], *want[MOST_IO];
      for (int f = 0; f < n; f++)
        tg_variable_bind(all[f].variable, turn % 2 ? 1 + (turn + f) % all[f].most : all[f].most - turn / 2);
      for (int i = 0; ok && i < k->nin; i++)
        ok = input_varied(k, all, &n, i, batch, turn, &plain[i], &part[i]);
      ok = ok && !run_model(k->ctx, plain, k->nin, want, k->nout, k) &&
           !tg_realize_many(want, (size_t)k->nout);
      if (!ok) wrong(k, "at other sizes: %s; ", tg_errmsg(k->ctx));
      if (ok && tg_jit_run(jit, part, k->nin, got, k->nout)) {
        ok = false;
        say(k, "%s symbolic: %s; ", batch ? "batch" : "sizes", tg_errmsg(k->ctx));
      }
      for (int i = 0; ok && i < k->nout; i++)
        ok = near(k, "symbolic", i, got[i], want[i], 1e-4);
    }
  tg_clear_error(k->ctx);
  tg_jit_free(jit), tg_jit_free(first);
  return ok;
}

static void runs_with_variables(Check *k) {
  k->varied = runs_varied(k, false) || (!k->wrong && runs_varied(k, true));
}

/* ---- what lies beside it */
static bool there(const char *path) { return !access(path, R_OK); }

static void expected_of(Check *k, TgTensor *const *in, TgTensor *const *want, const char *what) {
  TgTensor *out[MOST_IO];
  bool ok = !run_model(k->ctx, in, k->nin, out, k->nout, k);
  if (!ok) wrong(k, "%s: %s; ", what, tg_errmsg(k->ctx));
  for (int i = 0; ok && i < k->nout; i++)
    if (want[i]) ok = near(k, what, i, out[i], want[i], 1e-3), k->expected |= ok;
}

static void expected_sets(Check *k, const char *folder) {
  for (int set = 0; set < 9; set++)
    TG_SCOPE(k->ctx) {
      TgTensor *in[MOST_IO], *want[MOST_IO] = {0};
      char path[1200];
      bool all = true;
      for (int i = 0; i < k->nin && all; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d/input_%d.pb", folder, set, i);
        all = there(path);
        in[i] = all ? tg_onnx_tensor(tg_from_file(k->ctx, path, TG_U8, TG_SHAPE(-1))) : NULL;
      }
      for (int i = 0; i < k->nout && all; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_%d/output_%d.pb", folder, set, i);
        if (there(path)) want[i] = tg_onnx_tensor(tg_from_file(k->ctx, path, TG_U8, TG_SHAPE(-1)));
      }
      if (all) expected_of(k, in, want, "test_data_set");
    }
}

static void expected_light(Check *k, const char *stem) {
  char path[1200];
  snprintf(path, sizeof path, "%s_output_0.pb", stem);
  if (!there(path)) return;
  TG_SCOPE(k->ctx) {
    TgTensor *in[MOST_IO], *want[MOST_IO] = {0};
    bool ok = inputs_made(k, k->ctx, 0, true, in);
    want[0] = tg_onnx_tensor(tg_from_file(k->ctx, path, TG_U8, TG_SHAPE(-1)));
    if (ok && want[0]) expected_of(k, in, want, "output_0.pb");
  }
}

static TgTensor *npz_entry(const TgState *npz, const char *name) {
  char entry[300];
  snprintf(entry, sizeof entry, "%.250s.npy", name);
  TgTensor *t = tg_state_get(npz, entry);
  return t ? tg_npy_load(t) : NULL;
}

static void expected_npz(Check *k, const char *folder) {
  char path[1200];
  snprintf(path, sizeof path, "%s/io.npz", folder);
  if (!there(path)) return;
  TG_SCOPE(k->ctx) {
    TgTensor *in[MOST_IO], *want[MOST_IO] = {0};
    TgState *npz = tg_zip_extract(tg_from_file(k->ctx, path, TG_U8, TG_SHAPE(-1)));
    bool all = npz != NULL;
    for (int i = 0; i < k->nin; i++) {
      in[i] = npz ? npz_entry(npz, k->names[i]) : NULL;
      all = all && in[i];
      if (in[i] && tg_dtype(in[i]) != k->in[i].about.dtype) in[i] = tg_cast(in[i], k->in[i].about.dtype);
    }
    for (int i = 0; i < k->nout; i++) {
      TgOnnxValue v;
      if (all && tg_onnx_output(k->m, (size_t)i, &v)) want[i] = npz_entry(npz, v.name);
    }
    axes_dropped = true;
    if (all) expected_of(k, in, want, "io.npz");
    axes_dropped = false;
    tg_state_free(npz);
  }
}

static void expected_beside(Check *k) {
  char folder[1000], stem[1000];
  snprintf(folder, sizeof folder, "%s", k->path), snprintf(stem, sizeof stem, "%s", k->path);
  char *slash = strrchr(folder, '/'), *dot = strrchr(stem, '.');
  if (slash) *slash = 0;
  if (dot) *dot = 0;
  expected_sets(k, slash ? folder : ".");
  expected_light(k, stem);
  expected_npz(k, slash ? folder : ".");
  tg_clear_error(k->ctx);
}

static Check checked(const char *path) {
  Check k = {.path = path};
  k.ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .seed = 3});
  k.m = tg_onnx_open(k.ctx, path);
  if (!k.m)
    say(&k, "%s", tg_errmsg(k.ctx)), k.refused = true;
  else if (!inputs_described(&k))
    k.refused = true;
  else if (runs_plainly(&k))
    runs_captured(&k), runs_with_variables(&k), expected_beside(&k);
  tg_onnx_free(k.m);
  tg_close(k.ctx);
  return k;
}

/* ---- anybody's models */
typedef struct Count {
  int all, ran, captured, by_interp, expected, wrong;
} Count;

static void file_checked(const char *path, Count *c) {
  Check k = checked(path);
  const char *slash = strrchr(path, '/');
  printf("%-60s %-8s %-8s %-6s %-8s %-8s %s\n", slash ? slash + 1 : path,
         k.wrong     ? "WRONG"
         : k.refused ? "refused"
                     : "ran",
         k.captured ? "captured" : "", k.by_interp ? "interp" : "", k.varied ? "symbolic" : "",
         k.expected ? "expected" : "", k.said);
  fflush(stdout);
  c->all++, c->ran += !k.refused, c->captured += k.captured, c->by_interp += k.by_interp;
  c->expected += k.expected, c->wrong += k.wrong;
}

static void walked(const char *path, Count *c) {
  struct stat s;
  if (stat(path, &s)) {
    fprintf(stderr, "%s cannot be read\n", path);
    return;
  }
  if (!S_ISDIR(s.st_mode)) {
    file_checked(path, c);
    return;
  }
  struct dirent **entry;
  int n = scandir(path, &entry, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char at[1000];
    const char *name = entry[i]->d_name;
    size_t len = strlen(name);
    snprintf(at, sizeof at, "%s/%s", path, name);
    bool is_model = len > 5 && !strcmp(name + len - 5, ".onnx");
    if (*name != '.' && (is_model || (!stat(at, &s) && S_ISDIR(s.st_mode)))) walked(at, c);
    free(entry[i]);
  }
  if (n >= 0) free(entry);
}

/* ---- those that lie here */
static void test_models(void **state) {
  (void)state;

  static const struct {
    const char *name;
    bool expected; /* answers lie beside it */
    bool varied;   /* it has free sizes */
  } models[] = {{"onnx-mnist/mnist.onnx", true, false},
                {"fastestdet/FastestDet.onnx", false, false},
                {"mobilenet/mobilenet_v1_0.25_128.onnx", false, true},
                {"ultraface/version-RFB-320.onnx", false, false},
                {"silero-vad/silero_vad_16k_op15.onnx", false, true},
                /* captured it computes both branches of its If */
                {"silero-vad/silero_vad_op18_ifless.onnx", false, true}};

  int n = 0;
  settings[0] = "sr=16000", settings[1] = "sequence=576", nsettings = 2;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", data_folder(), models[i].name);
    if (!there(path)) continue;
    Check k = checked(path);
    if (k.wrong || k.refused || !k.captured) fail_msg("%s: %s", models[i].name, k.said);
    assert_true(k.by_interp || k.captured);
    assert_int_equal(k.expected, models[i].expected);
    if (k.varied != models[i].varied) fail_msg("%s with symbolic sizes: %s", models[i].name, k.said);
    n++;
  }
  if (n) return;
  print_message("skipped: no models in the shared data\n");
  skip();
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
  if (argc < 2) return cmocka_run_group_tests(tests, NULL, NULL);
  Count c = {0};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--device") && i + 1 < argc)
      device = argv[++i];
    else if (strchr(argv[i], '=') && nsettings < MOST_SETTINGS)
      settings[nsettings++] = argv[i];
    else
      walked(argv[i], &c);
  }
  printf("%d models: %d ran, %d captured with the same bits, %d agree with INTERP, %d with what lies beside "
         "them, %d wrong\n",
         c.all, c.ran, c.captured, c.by_interp, c.expected, c.wrong);
  return c.wrong != 0;
}
