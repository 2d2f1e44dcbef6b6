/* info_files.c: `tg info FILE` for models and data that are not state dictionaries: ONNX, npy, npz, zip, tar,
 * idx. In: a path and its kind. Out: lines, or a JSON object per line. */
#include "info.h"
#include "tg_io.h"
#include <stdlib.h>
#include <string.h>

static bool ends(const char *s, const char *with) {
  size_t n = strlen(s), k = strlen(with);
  return n >= k && !strcmp(s + n - k, with);
}

static long long file_size(const char *path) {
  FILE *f = fopen(path, "rb");
  long long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : 0;
  if (f) fclose(f);
  return n;
}

/* ---- ONNX */
/* Prints sizes as in "n, 3, ?". A free size is shown by its name; one without a name is null in JSON. */
static void value_shape(const TgOnnxValue *v, bool json) {
  for (int a = 0; a < v->ndim; a++) {
    const char *name = v->dim_names[a];
    printf(a ? ", " : "");
    if (v->dims[a] >= 0)
      printf("%lld", (long long)v->dims[a]);
    else if (json && name && *name)
      cli_json_text(stdout, name);
    else
      printf("%s", json ? "null" : name && *name ? name : "?");
  }
}

static void value_say(const char *what, const TgOnnxValue *v, bool json) {
  const char *dtype = v->dtype ? tg_dtype_name(v->dtype) : "-";
  if (json) {
    printf("{\"%s\":", what), cli_json_text(stdout, v->name);
    printf(",\"dtype\":\"%s\",\"shape\":", dtype);
    printf(v->ndim < 0 ? "null" : "[");
    value_shape(v, true);
    printf("%s,\"optional\":%s}\n", v->ndim < 0 ? "" : "]", v->has_default ? "true" : "false");
    return;
  }
  printf("%-8s%-32s  %-7s  %s", what, v->name, dtype, v->ndim < 0 ? "of any shape" : "(");
  value_shape(v, false);
  printf(v->ndim < 0 ? "" : v->ndim == 1 ? ",)" : ")");
  puts(v->has_default ? "  has a value" : "");
}

typedef struct Operator {
  TgOnnxOperator about;
  size_t count;
  const char *node; /* the first node with this operator */
} Operator;

static int by_count(const void *a, const void *b) {
  const Operator *x = a, *y = b;
  if (x->about.implemented != y->about.implemented) return x->about.implemented ? 1 : -1;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->about.op, y->about.op);
}

static void operator_say(const Operator *o, bool json) {
  bool other = strcmp(o->about.domain, "ai.onnx") != 0;
  if (json) {
    printf("{\"operator\":"), cli_json_text(stdout, o->about.op);
    printf(",\"domain\":"), cli_json_text(stdout, o->about.domain);
    printf(",\"count\":%zu,\"implemented\":%s,\"node\":", o->count, o->about.implemented ? "true" : "false");
    cli_json_text(stdout, o->node), puts("}");
    return;
  }
  printf("%7zu %s%s%s", o->count, other ? o->about.domain : "", other ? "." : "", o->about.op);
  if (o->about.function) printf("  (a function of the model)");
  if (!o->about.implemented) printf("  not implemented: node %s", *o->node ? o->node : "without a name");
  putchar('\n');
}

static bool operators_say(const TgOnnx *m, bool json) {
  Operator *kinds = NULL;
  size_t n = 0, cap = 0;
  TgOnnxOperator about;
  for (size_t i = 0; tg_onnx_operator(m, i, &about); i++) {
    size_t k = 0;
    while (k < n && (strcmp(kinds[k].about.op, about.op) || strcmp(kinds[k].about.domain, about.domain)))
      k++;
    if (k == cap) {
      Operator *more = realloc(kinds, (cap = 2 * cap + 16) * sizeof *kinds);
      if (!more) return free(kinds), cli_refuse(0, "info", "out of memory");
      kinds = more;
    }
    if (k == n) kinds[n++] = (Operator){.about = about, .node = about.name};
    kinds[k].count++;
  }
  if (n) qsort(kinds, n, sizeof *kinds, by_count);
  for (size_t k = 0; k < n; k++)
    operator_say(&kinds[k], json);
  free(kinds);
  return true;
}

static bool onnx_info(TgContext *ctx, const char *path, bool json, CliWait *wait) {
  TgOnnx *m = tg_onnx_describe(ctx, path);
  TgOnnxValue v;
  const char *domain;
  int64_t version;
  char size[32];
  cli_wait_end(wait);
  if (!m) return false;
  long long elements = (long long)tg_onnx_weights(m);
  if (json)
    printf("{\"kind\":\"onnx\",\"nodes\":%zu,\"elements\":%lld,\"bytes\":%lld}\n", tg_onnx_node_count(m),
           elements, file_size(path));
  else
    printf("%s: ONNX, %s, %zu nodes, %lld elements\n", path, cli_bytes((double)file_size(path), size),
           tg_onnx_node_count(m), elements);
  for (size_t i = 0; tg_onnx_import(m, i, &domain, &version); i++)
    if (json) {
      printf("{\"opset\":%lld,\"domain\":", (long long)version), cli_json_text(stdout, domain), puts("}");
    } else
      printf("opset   %lld of %s\n", (long long)version, domain);
  for (size_t i = 0; tg_onnx_input(m, i, &v); i++)
    value_say("input", &v, json);
  for (size_t i = 0; tg_onnx_output(m, i, &v); i++)
    value_say("output", &v, json);
  bool ok = operators_say(m, json);
  tg_onnx_free(m);
  return ok;
}

/* ---- arrays and archives */
static bool array_info(TgTensor *t, const char *path, const char *kind, bool json) {
  if (!t) return false;
  if (json)
    printf("{\"kind\":\"%s\"}\n", kind);
  else
    printf("%s: %s\n", path, kind);
  info_tensor_line("array", t, json);
  return true;
}

/* Prints the arrays of an npz, named by its files. A file that is not an array is shown as bytes; an array of
 * a type that cannot be read, such as complex numbers, is only mentioned. */
static bool arrays_info(TgContext *ctx, const TgState *files, const char *path, bool json) {
  TgState *arrays = tg_state_new(ctx);
  const char *name;
  TgTensor *t;
  bool ok = arrays != NULL;
  for (size_t i = 0; ok && (t = tg_state_at(files, i, &name)); i++) {
    TgTensor *array = ends(name, ".npy") ? tg_npy_load(t) : t;
    ok = array ? !tg_state_put(arrays, name, array) : tg_error(ctx) == TG_ERR_VALUE;
    if (!array && ok) tg_clear_error(ctx);
  }
  if (ok) info_state_lines(path, "npz", arrays, json);
  for (size_t i = 0; ok && tg_state_at(files, i, &name); i++)
    if (!json && !tg_state_get(arrays, name)) printf("%-40s  of a type that is not read here\n", name);
  tg_state_free(arrays);
  return ok;
}

static bool archive_info(TgContext *ctx, const char *path, bool zip, bool json, CliWait *wait, bool *torch) {
  TgTensor *file = tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1));
  TgState *s = zip ? tg_zip_extract(file) : tg_tar_extract(file);
  const char *name;
  bool npz = false, ok = s != NULL;
  for (size_t i = 0; tg_state_at(s, i, &name); i++) {
    npz = npz || ends(name, ".npy");
    *torch = *torch || ends(name, "data.pkl") || (!zip && ends(name, "storages"));
  }
  if (!*torch) cli_wait_end(wait);
  if (ok && !*torch && zip && npz)
    ok = arrays_info(ctx, s, path, json);
  else if (ok && !*torch)
    info_state_lines(path, zip ? "zip" : "tar", s, json);
  tg_state_free(s);
  return ok;
}

/* Prints what is compressed: an idx file, or bytes. */
static bool gzip_info(TgContext *ctx, const char *path, bool json, CliWait *wait) {
  TgTensor *t = tg_gunzip(tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1)));
  unsigned char head[4] = {0};
  bool ok = t && (tg_numel(t) < 4 || !tg_read(tg_slice(t, 0, 0, 4), head, 4));
  bool idx = ok && !head[0] && !head[1] && head[2] == 8 && head[3] >= 1 && head[3] <= TG_MAX_RANK;
  cli_wait_end(wait);
  return ok && array_info(idx ? tg_idx(t) : t, path, idx ? "gzip of an idx file" : "gzip", json);
}

bool info_file(TgContext *ctx, const char *path, FileKind kind, bool json, CliWait *wait, bool *torch) {
  bool ok = false;
  TG_SCOPE(ctx) {
    switch (kind) {
    case ONNX: ok = onnx_info(ctx, path, json, wait); break;
    case GZIP: ok = gzip_info(ctx, path, json, wait); break;
    case ZIP:
    case TAR: ok = archive_info(ctx, path, kind == ZIP, json, wait, torch); break;
    default: {
      TgTensor *file = tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1));
      TgTensor *t = kind == NPY ? tg_npy_load(file) : tg_idx(file);
      cli_wait_end(wait);
      ok = array_info(t, path, kind == NPY ? "npy" : "idx", json);
    }
    }
  }
  return ok;
}
