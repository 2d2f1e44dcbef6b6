/* run.c: `tg run`: a model file on inputs. In: ONNX, or a captured program; arrays, pictures, numbers, or
 * random ones. Out: what the outputs are, the likeliest classes, files; with --bench how long a run takes,
 * and each of its kernels; with --capture a captured program. */
#define _POSIX_C_SOURCE 200809L
#include "layers.h"
#include "picture.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Options {
  CliTexts sizes;
  const char *mean, *std, *labels, *out, *device, *capture, *bundle, *save_bundle;
  int64_t image, top, runs, rows, seed, threads, loop_limit;
  bool bgr, bench, json;
} Options;

enum { MOST_IO = 64, MOST_RUNS = 1000, BAR = 28 };

typedef struct Model {
  const Options *o;
  TgContext *ctx;
  TgOnnx *onnx;   /* or .. */
  TgJit *program; /* .. a captured one */
  int nin, nout;
  TgOnnxValue in_about[MOST_IO], out_about[MOST_IO];
  const char *in_names[MOST_IO];
  CliWait *wait;
  char not_captured[400];                /* why */
  TgTensor *in[MOST_IO], *copy[MOST_IO]; /* kept */
} Model;

/* What is drawn is taken away, so that results can be printed. */
static void wait_over(Model *m) {
  if (m->ctx) tg_watch_progress(m->ctx, NULL, NULL);
  cli_wait_end(m->wait);
  m->wait = NULL;
}

static bool failed(const char *what, const char *why) { return cli_refuse(0, "run", "%s: %s", what, why); }

/* --size NAME=N of the name; fallback: there is none. -1: it says no size, which was said. */
static int64_t size_given(const Model *m, const char *name, int64_t fallback) {
  for (int k = 0; name && k < m->o->sizes.n; k++) {
    const char *given = m->o->sizes.at[k], *equals = strchr(given, '=');
    if (!equals || strlen(name) != (size_t)(equals - given) || strncmp(given, name, strlen(name))) continue;
    int64_t n = -1;
    if (!cli_whole(equals + 1, 0, INT32_MAX, &n)) failed(given, "no size");
    return n;
  }
  return fallback;
}

/* ---- inputs */
/* The sizes of an input: those of the model, --size for its free ones, else 1. */
static bool dims_of(const Model *m, const TgOnnxValue *v, int64_t *dims) {
  for (int a = 0; a < v->ndim; a++) {
    dims[a] = v->dims[a] >= 0 ? v->dims[a] : 1;
    if (v->dims[a] < 0 && (dims[a] = size_given(m, v->dim_names ? v->dim_names[a] : NULL, 1)) < 0)
      return false;
  }
  return v->ndim >= 0 || failed(v->name, "the model does not say its shape: give an array");
}

/* "random", or "random:1x576": the sizes too. */
static TgTensor *random_of(const Model *m, const TgOnnxValue *about, const char *spec) {
  int64_t dims[TG_MAX_RANK];
  TgOnnxValue given = *about, *v = &given;
  const char *p = strchr(spec, ':');
  bool zeros = *spec == 'z';
  if (p)
    for (v->ndim = 0; *p && v->ndim < TG_MAX_RANK; v->ndim++) {
      char *end;
      dims[v->ndim] = strtoll(p + 1, &end, 10);
      if (end == p + 1 || (*end && *end != 'x') || dims[v->ndim] < 0 || dims[v->ndim] > INT32_MAX)
        return failed(spec, "sizes are 1x3x224x224"), NULL;
      p = end;
    }
  else if (!dims_of(m, v, dims))
    return NULL;
  TgDType d = v->dtype ? v->dtype : TG_F32;
  if (zeros) return tg_zeros(m->ctx, v->ndim, dims, .dtype = d);
  if (tg_dtype_is_float(d)) return tg_rand(m->ctx, v->ndim, dims, .dtype = d);
  if (d == TG_BOOL) return tg_lt_scalar(tg_rand(m->ctx, v->ndim, dims), 0.5);
  return tg_randint(m->ctx, v->ndim, dims, 0, 2, d); /* an index into anything */
}

static int numbers_of(const char *text, double *v, double otherwise) {
  int n = 0;
  for (char *end; text && n < 3; text = *end == ',' ? end + 1 : NULL) {
    v[n] = strtod(text, &end);
    if (end == text || (*end && *end != ',')) return 0;
    n++;
  }
  if (!text && !n) v[n++] = otherwise;
  while (n < 3)
    v[n] = v[n - 1], n++;
  return n;
}

/* (b, 3, h, w), (b, h, w, 3), (b, 1, h, w) or without the batch. */
static bool picture_layout(const TgOnnxValue *v, const int64_t *dims, int *channel_axis, int *first) {
  *first = v->ndim == 4;
  if (v->ndim != 3 && v->ndim != 4) return false;
  bool in_front = dims[*first] == 3 || dims[*first] == 1;
  *channel_axis = in_front ? *first : v->ndim - 1;
  return in_front || dims[v->ndim - 1] == 3 || dims[v->ndim - 1] == 1;
}

static TgTensor *picture_of(const Model *m, const TgOnnxValue *v, const char *path) {
  Picture p;
  int64_t dims[TG_MAX_RANK];
  double mean[3], std[3];
  int channel_axis = 0, first = 0;
  const char *why = picture_read(path, &p);
  if (why) return failed(path, why), NULL;
  bool ok = dims_of(m, v, dims) &&
            (picture_layout(v, dims, &channel_axis, &first) || failed(v->name, "is no picture"));
  if (ok && (!numbers_of(m->o->mean, mean, 0) || !numbers_of(m->o->std, std, 1)))
    ok = failed("--mean, --std", "one number, or three: 0.485,0.456,0.406");
  if (!ok) {
    free(p.rgb);
    return NULL;
  }
  bool in_front = channel_axis == first;
  int hy = in_front ? first + 1 : first, channels = (int)dims[channel_axis];
  for (int a = hy; a < hy + 2; a++)
    if (v->dims[a] < 0) dims[a] = m->o->image ? m->o->image : 224;
  int high = (int)dims[hy], wide = (int)dims[hy + 1];
  size_t n = (size_t)high * (size_t)wide;
  float *pixels = malloc(n * 3 * sizeof *pixels), *x = malloc(n * 3 * sizeof *x);
  TgTensor *t = NULL;
  if (pixels && x) {
    bool bytes = v->dtype == TG_U8;
    picture_resize(&p, wide, high, pixels);
    for (size_t i = 0; i < n; i++)
      for (int k = 0; k < channels; k++) {
        const float *c = pixels + 3 * i;
        float grey = 0.299f * c[0] + 0.587f * c[1] + 0.114f * c[2];
        double value = channels == 1 ? grey : c[m->o->bgr ? 2 - k : k];
        if (!bytes) value = (value / 255 - mean[k]) / std[k];
        x[in_front ? (size_t)k * n + i : i * (size_t)channels + (size_t)k] =
            (float)(bytes ? floor(value + 0.5) : value);
      }
    t = tg_from(m->ctx, x, TG_F32, v->ndim, dims);
    if (v->dtype && v->dtype != TG_F32) t = tg_cast(t, v->dtype);
  } else
    failed(path, "out of memory");
  free(pixels), free(x), free(p.rgb);
  return t;
}

static bool ends(const char *s, const char *with) {
  size_t n = strlen(s), k = strlen(with);
  return n >= k && !strcmp(s + n - k, with);
}

static bool is_number(const char *s) {
  char *end;
  strtod(s, &end);
  return end != s && !*end;
}

static TgTensor *input_of(const Model *m, const TgOnnxValue *v, const char *spec) {
  if (!strncmp(spec, "random", 6) && (!spec[6] || spec[6] == ':')) return random_of(m, v, spec);
  if (!strncmp(spec, "zeros", 5) && (!spec[5] || spec[5] == ':')) return random_of(m, v, spec);
  if (ends(spec, ".npy")) return tg_npy_load_file(m->ctx, spec);
  if (ends(spec, ".pb")) return tg_onnx_tensor(tg_from_file(m->ctx, spec, TG_U8, TG_SHAPE(-1)));
  TgTensor *t = NULL;
  if (*spec == '[')
    t = tg_from_text(m->ctx, spec, .dtype = v->dtype);
  else if (is_number(spec))
    t = tg_full(m->ctx, TG_SCALAR, strtod(spec, NULL), .dtype = v->dtype);
  else
    return picture_of(m, v, spec);
  return t && v->ndim >= 0 && tg_numel(t) == 1 && tg_ndim(t) != v->ndim
             ? tg_reshape(t, v->ndim, (const int64_t[TG_MAX_RANK]){1, 1, 1, 1, 1, 1, 1, 1})
             : t;
}

/* NAME=SPEC, or a SPEC for the next input that has none. */
static int input_named(const Model *m, const char *argument, const char **spec) {
  const char *equals = strchr(argument, '=');
  *spec = argument;
  for (int i = 0; equals && i < m->nin; i++)
    if (strlen(m->in_names[i]) == (size_t)(equals - argument) &&
        !strncmp(argument, m->in_names[i], strlen(m->in_names[i]))) {
      *spec = equals + 1;
      return i;
    }
  for (int i = 0; i < m->nin; i++)
    if (!m->in[i] && !m->in_about[i].has_default) return i;
  return -1;
}

static bool input_set(Model *m, int i, const char *spec) {
  bool ok = false;
  TG_SCOPE(m->ctx) {
    TgTensor *t = input_of(m, &m->in_about[i], spec);
    if (t && m->in_about[i].dtype && tg_dtype(t) != m->in_about[i].dtype)
      t = tg_cast(t, m->in_about[i].dtype);
    t = tg_contiguous(t);
    TgTensor *copy = m->o->bench ? tg_clone(t) : NULL;
    ok = t && !tg_realize(t) && (!copy || !tg_realize(copy)) && (m->in[i] = tg_keep(t));
    m->copy[i] = tg_keep(copy);
  }
  return ok;
}

/* A name that the model has not, beside those that it needs. */
static bool name_unknown(const Model *m, const char *argument) {
  char names[400] = "";
  size_t n = 0;
  for (int i = 0; i < m->nin && n < sizeof names; i++)
    if (!m->in_about[i].has_default)
      n += (size_t)snprintf(names + n, sizeof names - n, "%s%.80s", n ? ", " : "", m->in_names[i]);
  return cli_refuse(0, "run", "the model has no input %.*s; its inputs: %s%s", (int)strcspn(argument, "="),
                    argument, n ? names : "none", n < sizeof names ? "" : " ..");
}

static bool inputs_set(Model *m, char **argument, int n) {
  for (int k = 0; k < n; k++) {
    const char *spec;
    int i = input_named(m, argument[k], &spec);
    if (spec == argument[k] && strchr(spec, '=') && access(spec, F_OK)) return name_unknown(m, spec);
    if (i < 0) return failed(argument[k], "the model has no input left for it");
    if (m->in[i]) return failed(argument[k], "this input is given twice");
    if (!input_set(m, i, spec)) return false;
  }
  for (int i = 0; i < m->nin; i++)
    if (!m->in[i] && !m->in_about[i].has_default && !input_set(m, i, "random")) return false;
  return true;
}

/* ---- the run */
static TgStatus run_graph(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                          void *user) {
  Model *m = user;
  const char *names[MOST_IO];
  int n = 0;
  (void)ctx;
  for (int i = 0; i < m->nin; i++)
    if (m->in[i]) names[n++] = m->in_names[i];
  TgStatus s = tg_onnx_run(m->onnx, names, in, nin, out, nout);
  for (int i = 0; !s && i < nout; i++)
    out[i] = tg_contiguous(out[i]);
  return s;
}

static int given(const Model *m, TgTensor **in) {
  int n = 0;
  for (int i = 0; i < m->nin; i++)
    if (m->in[i]) in[n++] = m->in[i];
  return n;
}

static bool run_plain(Model *m, TgTensor **out) {
  TgTensor *in[MOST_IO];
  int n = given(m, in);
  if (m->program) return !tg_jit_run(m->program, in, n, out, m->nout) && !tg_sync(m->ctx);
  return !run_graph(m->ctx, in, n, out, m->nout, m) && !tg_realize_many(out, (size_t)m->nout) &&
         !tg_sync(m->ctx);
}

/* The names that a model has for its tensors; NULL: out of memory. */
static TgState *weights_named(const Model *m) {
  TgState *s = tg_state_new(m->ctx);
  const char *name;
  TgTensor *t;
  bool ok = s != NULL;
  for (size_t i = 0; ok && (t = tg_onnx_weight(m->onnx, i, &name)); i++)
    ok = !*name || !strcmp(name, "__metadata__") || !tg_state_put(s, name, t);
  if (ok) return s;
  tg_state_free(s);
  return NULL;
}

/* What was run, as a program in a file: a model is run twice more to be captured. */
static bool capture(Model *m) {
  TgTensor *in[MOST_IO], *out[MOST_IO];
  const char *in_names[MOST_IO], *out_names[MOST_IO];
  int n = given(m, in), k = 0;
  TgJit *jit = m->program ? m->program : tg_jit(m->ctx, run_graph, m);
  TgState *weights = weights_named(m);
  bool ok = jit && weights;
  for (int i = 0; i < m->nin; i++)
    if (m->in[i]) in_names[k++] = m->in_names[i];
  for (int i = 0; i < m->nout; i++)
    out_names[i] = m->out_about[i].name;
  for (int i = 0; ok && !m->program && i < 2; i++)
    TG_SCOPE(m->ctx) { ok = !tg_jit_run(jit, in, n, out, m->nout); }
  ok = ok && !tg_jit_save(jit, m->o->capture, .inputs = in_names, .outputs = out_names, .state = weights);
  tg_state_free(weights);
  if (!m->program) tg_jit_free(jit);
  return ok;
}

/* ---- what is shown */
static const char *shape_text(int ndim, const int64_t *dims, const char *const *names, char room[300]) {
  int n = snprintf(room, 300, "(");
  for (int i = 0; i < ndim && n < 280; i++) {
    const char *name = names && dims[i] < 0 ? names[i] : NULL;
    if (name && *name)
      n += snprintf(room + n, (size_t)(300 - n), "%s%.60s", i ? ", " : "", name);
    else
      n += snprintf(room + n, (size_t)(300 - n), "%s%lld", i ? ", " : "", (long long)dims[i]);
  }
  if (n < 290) snprintf(room + n, (size_t)(300 - n), ndim == 1 ? ",)" : ")");
  return room;
}

static void output_say(const Model *m, int i, TgTensor *t) {
  char shape[300];
  shape_text(tg_ndim(t), tg_shape(t), NULL, shape);
  size_t n = (size_t)tg_numel(t);
  double *v = malloc((n + 1) * sizeof *v), lo = INFINITY, hi = -INFINITY, sum = 0;
  bool read = v && n && !tg_read_f64(t, v, n);
  for (size_t k = 0; read && k < n; k++)
    lo = fmin(lo, v[k]), hi = fmax(hi, v[k]), sum += v[k];
  if (m->o->json) {
    printf("{\"output\":"), cli_json_text(stdout, m->out_about[i].name);
    printf(",\"dtype\":\"%s\",\"shape\":[%.*s]", tg_dtype_name(tg_dtype(t)), (int)strcspn(shape + 1, ")"),
           shape + 1);
    if (read && isfinite(lo) && isfinite(hi) && isfinite(sum))
      printf(",\"least\":%.9g,\"most\":%.9g,\"mean\":%.9g", lo, hi, sum / (double)n);
    puts("}");
  } else {
    printf("%-24s %-5s %-20s", m->out_about[i].name, tg_dtype_name(tg_dtype(t)), shape);
    if (read) printf("  %.5g .. %.5g, mean %.5g", lo, hi, sum / (double)n);
    putchar('\n');
  }
  free(v);
}

static char **labels_read(const char *path, int *n, char **text) {
  FILE *f = fopen(path, "rb");
  *text = f ? cli_read(f) : NULL;
  if (f) fclose(f);
  char **line = *text ? calloc(strlen(*text) + 2, sizeof *line) : NULL;
  if (!line) return failed(path, errno ? strerror(errno) : "cannot be read"), NULL;
  *n = 0;
  for (char *p = *text; *p;) {
    char *end = p + strcspn(p, "\r\n");
    line[(*n)++] = p;
    if (*end == '\r') *end++ = 0;
    if (*end) *end++ = 0;
    p = end;
  }
  return line;
}

/* Scores that are no probabilities become such. */
static void probabilities(double *v, size_t n) {
  double sum = 0, most = v[0], least = v[0];
  for (size_t i = 0; i < n; i++)
    sum += v[i], most = fmax(most, v[i]), least = fmin(least, v[i]);
  if (least >= 0 && fabs(sum - 1) < 1e-2) return;
  sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += v[i] = exp(v[i] - most);
  for (size_t i = 0; i < n; i++)
    v[i] /= sum;
}

static void top_line(const Model *m, double p, size_t class, const char *label) {
  char bar[4 * BAR] = "", number[32];
  snprintf(number, sizeof number, "class %zu", class);
  if (m->o->json) {
    printf("{\"class\":%zu,\"probability\":%.6f,\"label\":", class, p),
        cli_json_text(stdout, label ? label : "");
    puts("}");
    return;
  }
  int cells = cli_columns(STDOUT_FILENO) < 60 ? 8 : BAR, eighths = (int)(p * cells * 8 + 0.5);
  size_t k = 0;
  for (int c = 0; c < cells; c++) {
    int left = eighths - 8 * c;
    k += (size_t)snprintf(bar + k, sizeof bar - k, left <= 0 ? " " : "\xe2\x96%c",
                          left >= 8 ? 0x88 : 0x90 - left);
  }
  printf("%5.1f %%  %s  %s\n", 100 * p, bar, label ? label : number);
}

static bool top_say(const Model *m, TgTensor *t) {
  char *text = NULL, **label = NULL;
  int nlabels = 0;
  if (m->o->labels && !(label = labels_read(m->o->labels, &nlabels, &text))) return false;
  size_t n = (size_t)tg_numel(t);
  double *v = malloc((n + 1) * sizeof *v);
  bool ok = v && n && !tg_read_f64(t, v, n);
  if (ok) probabilities(v, n);
  for (int64_t k = 0; ok && k < m->o->top && k < (int64_t)n; k++) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
      if (v[i] > v[best]) best = i;
    top_line(m, v[best], best, best < (size_t)nlabels ? label[best] : NULL);
    v[best] = -1;
  }
  free(v), free(label), free(text);
  return ok;
}

static bool is_classes(const TgTensor *t) {
  return tg_dtype_is_float(tg_dtype(t)) && tg_numel(t) >= 10 && tg_numel(t) == tg_dim(t, -1);
}

/* An output's name with what no file name may have replaced. */
static bool output_write(const Model *m, int i, TgTensor *t) {
  char path[4200];
  int n = snprintf(path, sizeof path, "%s%s.npy", m->o->out, m->out_about[i].name);
  if (n < 0 || n >= (int)sizeof path) return failed(m->o->out, "too long a name");
  for (char *p = path + strlen(m->o->out); *p; p++)
    if (*p == '/' || *p == ':') *p = '_';
  return tg_npy_save(t, path) == TG_OK;
}

/* ---- measuring: the captured run where the model can be captured, else the plain one */
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* An input gets new contents, equal ones: what is computed from it is computed again. */
static bool renew(Model *m) {
  bool ok = true;
  for (int i = 0; ok && i < m->nin; i++)
    if (m->in[i]) TG_SCOPE(m->ctx) {
        ok = tg_assign(m->in[i], m->copy[i]) && !tg_realize(m->in[i]);
      }
  return ok;
}

/* One run in the form that is measured: the captured one where jit is not NULL. */
static bool run_once(Model *m, TgJit *jit, TgTensor *const *in, int n) {
  TgTensor *out[MOST_IO];
  bool ok = false;
  if (!jit && !renew(m)) return false;
  TG_SCOPE(m->ctx) {
    ok = jit ? !tg_jit_run(jit, in, n, out, m->nout) && !tg_sync(m->ctx) : run_plain(m, out);
  }
  return ok;
}

/* Times of whole runs, after three that are not counted: a plain one, the capture, a first replay. A model
 * that cannot be captured, since a size depends on values, is run plainly; *jit is then NULL. */
static bool runs_measured(Model *m, TgJit **jit, TgTensor *const *in, int n, double *ms, int *runs) {
  double total = 0;
  *runs = 0;
  for (int i = 0; *runs < m->o->runs && (*runs < 5 || total < 3000) && !cli_interrupted(); i++) {
    if (i == 3) tg_counters_reset(m->ctx);
    double start = cli_now();
    bool ok = run_once(m, *jit, in, n);
    if (!ok && *jit && i == 1 && !m->program) {
      snprintf(m->not_captured, sizeof m->not_captured, "%s", tg_errmsg(m->ctx));
      tg_clear_error(m->ctx), tg_jit_free(*jit);
      *jit = NULL, ok = true;
    }
    if (!ok) return false;
    double took = (cli_now() - start) * 1e3;
    if (i >= 3) total += ms[(*runs)++] = took;
  }
  return *runs > 0;
}

/* Each launch with its time, over some runs of at most a second; then what it computes, as planned. */
static bool layers_measured(Model *m, TgJit *jit, TgTensor *const *in, int n, Layers *l) {
  TgTensor *out[MOST_IO];
  double start = cli_now();
  bool ok = true;
  tg_watch_launches(m->ctx, layers_launch, l);
  for (int i = 0; ok && i < m->o->runs && (i < 3 || cli_now() - start < 1) && !cli_interrupted(); i++) {
    if (!jit) ok = renew(m); /* its launches are none of the model's */
    layers_run_begin(l);
    ok = ok && run_once(m, jit, in, n);
    layers_run_end(l);
  }
  tg_watch_launches(m->ctx, NULL, NULL);
  if (m->program) return ok; /* it has no nodes any more */
  ok = ok && renew(m);       /* else its values are known already, and nothing is planned */
  tg_onnx_watch(m->onnx, layers_node, l);
  TG_SCOPE(m->ctx) { ok = ok && !run_graph(m->ctx, in, n, out, m->nout, m) && layers_plan(l, out, m->nout); }
  tg_onnx_watch(m->onnx, NULL, NULL);
  return ok;
}

static void measured_say(const Model *m, double *ms, int runs, bool captured, const TgCounters *c) {
  char memory[32];
  if (*m->not_captured) fprintf(stderr, "not captured: %s\n", m->not_captured);
  qsort(ms, (size_t)runs, sizeof *ms, by_value);
  double median = ms[runs / 2], flops = (double)c->flops / runs, kernels = (double)c->launches / runs;
  if (m->o->json)
    printf(
        "{\"runs\":%d,\"median_ms\":%.4f,\"least_ms\":%.4f,\"most_ms\":%.4f,\"gflops\":%.2f,\"kernels\":%.0f,"
        "\"captured\":%s,\"peak_bytes\":%llu}\n",
        runs, median, ms[0], ms[runs - 1], flops / median / 1e6, kernels, captured ? "true" : "false",
        (unsigned long long)c->peak_bytes);
  else
    printf("median %.3f ms  (%.3f .. %.3f, %d runs, %s)  %.1f GFLOPS  %.0f kernels  peak %s\n", median, ms[0],
           ms[runs - 1], runs, captured ? "captured" : "not captured", flops / median / 1e6, kernels,
           cli_bytes((double)c->peak_bytes, memory));
}

static bool measure(Model *m) {
  static double ms[MOST_RUNS];
  TgTensor *in[MOST_IO];
  int n = given(m, in), runs = 0;
  TgJit *jit = m->program ? m->program : tg_jit(m->ctx, run_graph, m);
  bool ok = jit && runs_measured(m, &jit, in, n, ms, &runs);
  TgCounters c = tg_counters(m->ctx);
  Layers *l = ok ? layers_new() : NULL;
  cli_wait_what(m->wait, "measuring each kernel");
  if (ok && !l) ok = failed("--bench", "out of memory");
  bool each = ok && layers_measured(m, jit, in, n, l);
  wait_over(m);
  if (ok) measured_say(m, ms, runs, jit != NULL, &c);
  ok = ok && each;
  if (ok) layers_say(l, m->o->json, (int)m->o->rows);
  layers_free(l);
  if (!m->program) tg_jit_free(jit);
  return ok;
}

/* ---- the command */
static int64_t program_weights(TgJit *program) {
  int64_t n = 0;
  TgTensor *t;
  for (size_t i = 0; (t = tg_jit_memory(program, i, NULL)); i++)
    n += tg_numel(t);
  return n;
}

static void model_say(const Model *m, const char *path, double load, double first, const TgCounters *c) {
  const char *slash = strrchr(path, '/');
  char bytes[32], count[32];
  FILE *f = fopen(path, "rb");
  double size = f && !fseek(f, 0, SEEK_END) ? (double)ftell(f) : 0;
  if (f) fclose(f);
  fprintf(stderr, "%s  ", slash ? slash + 1 : path);
  if (m->program)
    fprintf(stderr, "captured program");
  else
    fprintf(stderr, "opset %d  %zu nodes", tg_onnx_opset(m->onnx), tg_onnx_node_count(m->onnx));
  fprintf(stderr, "  %s params  %s  load %.0f ms  first run %.0f ms: %llu kernels, %llu compiled\n",
          cli_count(m->program ? program_weights(m->program) : tg_onnx_weights(m->onnx), count),
          cli_bytes(size, bytes), load * 1e3, first * 1e3, (unsigned long long)c->launches,
          (unsigned long long)c->compiled);
  for (int i = 0; i < m->nin; i++) {
    char shape[300];
    if (m->in[i])
      fprintf(stderr, "input %-18s %-5s %s\n", m->in_names[i], tg_dtype_name(tg_dtype(m->in[i])),
              shape_text(tg_ndim(m->in[i]), tg_shape(m->in[i]), NULL, shape));
  }
}

static bool program_open(Model *m, const char *path) {
  TgJitValue v;
  if (!(m->program = tg_jit_load_file(m->ctx, path))) return false;
  for (; m->nin < MOST_IO && tg_jit_input(m->program, (size_t)m->nin, &v); m->nin++) {
    m->in_about[m->nin] = (TgOnnxValue){.name = v.name, .dtype = v.dtype, .ndim = v.ndim, .dims = v.dims};
    m->in_names[m->nin] = v.name;
  }
  for (; m->nout < MOST_IO && tg_jit_output(m->program, (size_t)m->nout, &v); m->nout++)
    m->out_about[m->nout] = (TgOnnxValue){.name = v.name, .dtype = v.dtype, .ndim = v.ndim, .dims = v.dims};
  TgVariable *n;
  for (size_t i = 0; (n = tg_jit_variable(m->program, i)); i++) {
    int64_t size = size_given(m, tg_variable_name(n), -2);
    if (size == -2)
      return cli_refuse(0, "run", "%s: a size is needed: --size %s=N (tg info tells which)", path,
                        tg_variable_name(n));
    if (size < 0 || tg_variable_bind(n, size)) return false;
  }
  return !tg_jit_input(m->program, MOST_IO, &v) && !tg_jit_output(m->program, MOST_IO, &v)
             ? true
             : failed(path, "more than 64 inputs or outputs");
}

static bool model_open(Model *m, const char *path) {
  TgOpenOptions open = {
      .size = sizeof open, .device = m->o->device, .log = cli_log, .seed = (uint64_t)m->o->seed};
  open.threads = (int)m->o->threads;
  m->ctx = tg_open(&open);
  if (!m->ctx || tg_error(m->ctx)) return false;
  if (m->o->bundle && tg_bundle_load(m->ctx, m->o->bundle)) return false;
  if (cli_is_safetensors(path)) return program_open(m, path);
  const char *other = cli_not_to_run(path);
  if (other) return failed(path, other);
  if (!(m->onnx = tg_onnx_open(m->ctx, path))) return false;
  if (m->o->loop_limit && tg_onnx_loop_limit(m->onnx, m->o->loop_limit)) return false;
  while (m->nin < MOST_IO && tg_onnx_input(m->onnx, (size_t)m->nin, &m->in_about[m->nin]))
    m->in_names[m->nin] = m->in_about[m->nin].name, m->nin++;
  while (m->nout < MOST_IO && tg_onnx_output(m->onnx, (size_t)m->nout, &m->out_about[m->nout]))
    m->nout++;
  return true;
}

static bool outputs_say(Model *m, TgTensor **out) {
  bool ok = true;
  for (int i = 0; ok && i < m->nout; i++) {
    output_say(m, i, out[i]);
    if (m->o->top && (m->o->labels || m->nout == 1) && is_classes(out[i])) ok = top_say(m, out[i]);
    if (ok && m->o->out) ok = output_write(m, i, out[i]);
  }
  return ok;
}

static bool run_all(Model *m, char **argument, int n) {
  double begin = cli_now();
  m->wait = cli_wait_begin("reading the model");
  if (!model_open(m, argument[0])) return false;
  double load = cli_now() - begin;
  cli_wait_what(m->wait, "reading the inputs");
  if (!inputs_set(m, argument + 1, n - 1)) return false;
  cli_wait_what(m->wait, "compiling and running");
  tg_watch_progress(m->ctx, cli_wait_progress, m->wait);
  TgTensor *out[MOST_IO];
  bool ok = false;
  TG_SCOPE(m->ctx) {
    tg_counters_reset(m->ctx);
    begin = cli_now();
    ok = run_plain(m, out);
    TgCounters c = tg_counters(m->ctx);
    wait_over(m);
    if (ok) model_say(m, argument[0], load, cli_now() - begin, &c), ok = outputs_say(m, out);
  }
  if (ok && m->o->capture) {
    m->wait = cli_wait_begin("capturing");
    tg_watch_progress(m->ctx, cli_wait_progress, m->wait);
    ok = capture(m);
    wait_over(m);
  }
  if (ok && m->o->save_bundle) ok = !tg_bundle_save(m->ctx, m->o->save_bundle);
  if (!ok || !m->o->bench) return ok;
  m->wait = cli_wait_begin("measuring"); /* what it prints comes after */
  return measure(m);
}

static int run_run(const void *options, char **argument, int n) {
  Model m = {.o = options};
  bool ok = run_all(&m, argument, n);
  wait_over(&m);
  if (!ok && (!m.ctx || tg_error(m.ctx))) cli_fail(m.ctx, "run");
  for (int i = 0; i < m.nin; i++)
    tg_release(m.in[i]), tg_release(m.copy[i]);
  tg_onnx_free(m.onnx), tg_jit_free(m.program);
  tg_close(m.ctx);
  return ok ? CLI_OK : CLI_FAILED;
}

static const Options defaults = {.top = 5, .runs = MOST_RUNS, .rows = 24, .seed = 1};

static const CliOption options[] = {
    CLI_TEXTS_OF(Options, sizes, "size", "NAME=N", "a free size of the model (1), or of a program"),
    CLI_WHOLE_OF(Options, image, "image", 1, 16384,
                 "the side of a picture where the model leaves it free (224)"),
    CLI_TEXT_OF(Options, mean, "mean", "X[,X,X]", "of pictures, taken off pixel / 255 (0)"),
    CLI_TEXT_OF(Options, std, "std", "X[,X,X]", "of pictures, divided by after that (1)"),
    CLI_FLAG_OF(Options, bgr, "bgr", "pictures have blue first"),
    CLI_TEXT_OF(Options, labels, "labels", "FILE", "names of the classes, one a line"),
    CLI_WHOLE_OF(Options, top, "top", 0, 1000, "how many of the likeliest classes to show (5)"),
    CLI_TEXT_OF(Options, out, "out", "PREFIX", "write each output to PREFIXname.npy"),
    CLI_TEXT_OF(Options, capture, "capture", "FILE",
                "write the captured program: weights and graphs, for any device, for these sizes"),
    CLI_TEXT_OF(Options, save_bundle, "save-bundle", "FILE",
                "write the compiled kernels, for machines without a compiler"),
    CLI_TEXT_OF(Options, bundle, "bundle", "FILE", "take compiled kernels from there"),
    CLI_FLAG_OF(Options, bench, "bench",
                "time it: about three seconds of runs, then its kernels one by one, and their nodes"),
    CLI_WHOLE_OF(Options, runs, "runs", 1, MOST_RUNS, "of --bench, at most"),
    CLI_WHOLE_OF(Options, rows, "rows", 1, 100000, "kernels that the table of --bench shows (24)"),
    CLI_WHOLE_OF(Options, seed, "seed", 0, INT32_MAX, "of random inputs (1)"),
    CLI_WHOLE_OF(Options, loop_limit, "loop-limit", 1, INT32_MAX,
                 "iterations that the loops of a model may have together (100000)"),
    CLI_TEXT_OF(Options, device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(Options, threads, "threads", 1, 4096, "threads of the CPU"),
    CLI_FLAG_OF(Options, json, "json", "an object per output and class, one a line")};

const CliCommand command_run = {
    .name = "run",
    .summary = "run a model file, or a captured program, on inputs",
    .arguments = "FILE [INPUT..]",
    .least = 1,
    .most = -1,
    .options = options,
    .noptions = CLI_COUNT(options),
    .nbytes = sizeof(Options),
    .defaults = &defaults,
    .run = run_run,
    .more =
        "FILE is an ONNX model, or what --capture or tg_jit_save wrote: a program with its weights, which "
        "this machine plans and compiles for itself; what it changes in its memories is kept by --capture.\n"
        "INPUT is NAME=WHAT, or WHAT for the inputs in their order: an array (.npy), a TensorProto (.pb), a "
        "picture (.png .jpg .ppm), a number, a list \"[[1, 2], [3, 4]]\", zeros, or random, which is also "
        "what an input gets that is not given; random:1x576 says the sizes too.\n"
        "--bench measures the captured program, then each of its kernels by itself, which takes longer in "
        "sum. A kernel may compute several nodes of the model (a convolution with its activation): it is one "
        "row, its time is theirs together. A node that takes several kernels stands in several rows, and one "
        "that only renames elements, or is known before the run, in none. A node without a name is shown by "
        "its number in the file."};
