/* nodes.c: see nodes.h. */
#define _GNU_SOURCE
#include "export/nodes.h"
#include "export/exported.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_IO = 32 };

typedef struct Node {
  TgOnnx *m;
  const char *names[MOST_IO];
  TgTensor *in[MOST_IO];
  int nin, nout;
} Node;

static TgStatus run_node(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Node *k = user;
  (void)c;
  return tg_onnx_run(k->m, k->names, in, nin, out, nout);
}

static TgTensor *tensor_file(TgContext *c, const char *folder, int i) {
  char path[1500];
  snprintf(path, sizeof path, "%s/test_data_set_0/input_%d.pb", folder, i);
  return access(path, R_OK) ? NULL : tg_onnx_tensor(tg_from_file(c, path, TG_U8, TG_SHAPE(-1)));
}

static bool node_open(TgContext *c, const char *folder, Node *k) {
  char path[1500];
  TgOnnxValue v;
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  k->m = tg_onnx_open(c, path);
  for (int i = 0; k->m && k->nin < MOST_IO && tg_onnx_input(k->m, (size_t)i, &v); i++)
    if ((k->in[k->nin] = tensor_file(c, folder, i))) k->names[k->nin++] = v.name;
  while (k->m && k->nout < MOST_IO && tg_onnx_output(k->m, (size_t)k->nout, &v))
    k->nout++;
  return k->m && !tg_error(c);
}

static bool both_nan(TgDType d, const void *a, const void *b) {
  float f[2];
  double g[2];
  if (d == TG_F32) return memcpy(&f[0], a, 4), memcpy(&f[1], b, 4), isnan(f[0]) && isnan(f[1]);
  if (d == TG_F64) return memcpy(&g[0], a, 8), memcpy(&g[1], b, 8), isnan(g[0]) && isnan(g[1]);
  uint16_t h[2], most = d == TG_F16 ? 0x7c00 : 0x7f80;
  if (d != TG_F16 && d != TG_BF16) return false;
  memcpy(&h[0], a, 2), memcpy(&h[1], b, 2);
  return (h[0] & 0x7fff) > most && (h[1] & 0x7fff) > most;
}

static bool same_bits(TgTensor *want, const char *got) {
  size_t n = tg_nbytes(want), size = tg_dtype_size(tg_dtype(want));
  char *w = malloc(n + 1);
  bool same = !n || !tg_read(want, w, n);
  for (size_t i = 0; same && i < n; i += size)
    same = !memcmp(w + i, got + i, size) || both_nan(tg_dtype(want), w + i, got + i);
  free(w);
  return same;
}

/* Whether floats differ by rounding alone: of another plan, which sums in another order. */
static bool near_values(TgTensor *want, const char *got) {
  TgDType d = tg_dtype(want);
  size_t n = (size_t)tg_numel(want);
  double eps = d == TG_F64    ? 0x1p-52
               : d == TG_F32  ? 0x1p-23
               : d == TG_F16  ? 0x1p-10
               : d == TG_BF16 ? 0x1p-7
                              : 0;
  TgTensor *other = tg_from(tg_context(want), got, d, 1, (const int64_t[]){tg_numel(want)});
  double *a = malloc(n * sizeof *a + 1), *b = malloc(n * sizeof *b + 1), most = 0;
  bool near = eps > 0 && !tg_read_f64(want, a, n) && !tg_read_f64(other, b, n);
  for (size_t i = 0; near && i < n; i++)
    if (isfinite(a[i])) most = fmax(most, fabs(a[i]));
  for (size_t i = 0; near && i < n; i++)
    near = (isnan(a[i]) && isnan(b[i])) || a[i] == b[i] || fabs(a[i] - b[i]) <= 4 * eps * most;
  free(a), free(b);
  return near;
}

enum { DIFFERS, NEAR, SAME };

/* Outputs begin as other bytes than the library's do: all of them must be written. What draws goes on from
 * the export, as the library does. */
static int node_as(TgJit *jit, Node *k, TgTensor **out, const char *folder, TgCOptions o) {
  Exported e;
  void *values[2 * MOST_IO] = {NULL};
  bool ok =
      exported_new(&e, jit, folder, "gcc -O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error", o);
  for (int i = 0; ok && i < k->nin + k->nout; i++) {
    TgTensor *t = i < k->nin ? k->in[i] : out[i - k->nin];
    size_t n = tg_nbytes(t);
    values[i] = malloc(n + 1);
    memset(values[i], 0x5a, n + 1);
    ok = i >= k->nin || !n || !tg_read(t, values[i], n);
  }
  ok = ok && !exported_run(&e, e.m, values);
  if (ok && tg_jit_run(jit, k->in, k->nin, out, k->nout))
    ok = printf("%s\n", tg_errmsg(tg_jit_context(jit))) < 0;
  int as = ok ? SAME : DIFFERS;
  for (int i = 0; ok && as != DIFFERS && i < k->nout; i++)
    if (!same_bits(out[i], values[k->nin + i])) as = near_values(out[i], values[k->nin + i]) ? NEAR : DIFFERS;
  for (int i = 0; i < k->nin + k->nout; i++)
    free(values[i]);
  exported_free(&e);
  return as;
}

/* The interpreter's bits; or, by the plan of another, what is near them, and by the interpreter's own its bits. */
static bool node_same(TgJit *jit, Node *k, TgTensor **out, const char *name, const char *folder) {
  int as = node_as(jit, k, out, folder, (TgCOptions){0});
  if (as == NEAR) as = node_as(jit, k, out, folder, (TgCOptions){.same_bits = true});
  if (as != SAME) printf("%s: %s as C\n", name, as == NEAR ? "not by its own plan" : "not");
  return as == SAME;
}

/* Inputs that may decide a shape are fixed: first integers that stand in a row or alone, then whatever does,
 * then all. */
enum { FREE, FIX_INTEGERS, FIX_ROWS, FIX_ALL };

static bool inputs_fixed(Node *k, int how) {
  int left = 0, nin = k->nin;
  k->nin = 0;
  for (int i = 0; i < nin; i++) {
    bool row = tg_ndim(k->in[i]) <= 1, integer = tg_dtype(k->in[i]) == TG_I64 || tg_dtype(k->in[i]) == TG_I32;
    bool fixed = how == FIX_ALL || (how == FIX_ROWS && row) || (how == FIX_INTEGERS && row && integer);
    if (fixed && tg_onnx_fix(k->m, k->names[i], k->in[i])) return false;
    if (fixed) continue;
    k->in[left] = k->in[i];
    k->names[left++] = k->names[i];
  }
  k->nin = left;
  return true;
}

/* A refusal says what is refused: a node with its operator, or the part of the file. */
static bool message_says(TgContext *c) {
  TgStatus s = tg_error(c);
  return s && s != TG_ERR_INTERNAL && s != TG_ERR_NOMEM &&
         (strstr(tg_errmsg(c), "onnx: ") || strstr(tg_errmsg(c), "computes nothing"));
}

static void node_refused(TgContext *c, const char *name, NodeCounts *counts) {
  if (getenv("TG_WHY")) printf("%s: %s\n", name, tg_errmsg(c));
  if (message_says(c))
    counts->refused++;
  else
    counts->wrong += printf("%s: refused without a reason: %s\n", name, tg_errmsg(c)) > 0;
}

static void node_case(const char *name, const char *of, const char *folder, int fixed, NodeCounts *counts) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP:C99", .seed = 3});
  Node k = {0};
  TgTensor *out[MOST_IO];
  bool opened = node_open(c, of, &k), ok = opened && inputs_fixed(&k, fixed);
  TgJit *jit = ok ? tg_jit(c, run_node, &k) : NULL;
  for (int i = 0; ok && i < 2; i++)
    ok = !tg_jit_run(jit, k.in, k.nin, out, k.nout);
  if (!ok && opened && fixed < FIX_ALL && tg_error(c) == TG_ERR_STATE)
    node_case(name, of, folder, fixed + 1, counts);
  else if (!ok)
    node_refused(c, name, counts);
  else if (node_same(jit, &k, out, name, folder))
    counts->same[fixed != FREE]++;
  else
    counts->wrong++;
  tg_jit_free(jit), tg_onnx_free(k.m);
  tg_close(c);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

int nodes_exported(const char *archive, const char *folder, int every, NodeCounts *counts) {
  char line[1400];
  struct dirent **e;
  *counts = (NodeCounts){0};
  snprintf(line, sizeof line, "tar xf '%s' -C %s", archive, folder);
  if (system(line)) return 0;
  snprintf(line, sizeof line, "%s/node", folder);
  int n = scandir(line, &e, NULL, by_name), seen = 0;
  for (int i = 0; i < n; i++) {
    snprintf(line, sizeof line, "%s/node/%s", folder, e[i]->d_name);
    if (*e[i]->d_name != '.' && seen++ % every == 0) node_case(e[i]->d_name, line, folder, FREE, counts);
    free(e[i]);
  }
  if (n >= 0) free(e);
  return n > 2;
}
