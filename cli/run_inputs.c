/* run_inputs.c: makes the inputs of a run. In: arguments: arrays, pictures, numbers, "random". Out: a tensor
 * for each input, of its dtype and shape. */
#include "run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t run_size_given(const RunModel *m, const char *name, int64_t fallback) {
  for (int k = 0; name && k < m->o->sizes.n; k++) {
    const char *given = m->o->sizes.at[k], *equals = strchr(given, '=');
    if (!equals || strlen(name) != (size_t)(equals - given) || strncmp(given, name, strlen(name))) continue;
    int64_t n = -1;
    const char *dots = m->program ? NULL : strstr(equals, "..");
    if (!cli_whole(dots ? dots + 2 : equals + 1, 0, INT32_MAX, &n)) run_failed(given, "no size");
    return n;
  }
  return fallback;
}

/* ---- inputs */
/* Finds the sizes of an input: those of the model, and for free sizes the bound value, that of --size, or the
 * smallest allowed. */
static bool dims_of(RunModel *m, const TgOnnxValue *v, int64_t *dims) {
  for (int a = 0; a < v->ndim; a++) {
    const char *name = v->dim_names ? v->dim_names[a] : NULL;
    const RunVaried *varied = run_varied(m, name);
    int64_t otherwise = varied && varied->least > 1 ? varied->least : 1;
    dims[a] = v->dims[a] >= 0 ? v->dims[a] : 1;
    if (varied && varied->known)
      tg_variable_value(varied->v, &dims[a]);
    else if (v->dims[a] < 0 && (dims[a] = run_size_given(m, name, otherwise)) < 0)
      return false;
  }
  return v->ndim >= 0 || run_failed(v->name, "the model does not say its shape: give an array");
}

/* Makes an input of "random" or "zeros", or of "random:1x576", which gives the sizes too. */
static TgTensor *random_of(RunModel *m, const TgOnnxValue *about, const char *spec) {
  int64_t dims[TG_MAX_RANK];
  TgOnnxValue given = *about, *v = &given;
  const char *p = strchr(spec, ':');
  bool zeros = *spec == 'z';
  if (p)
    for (v->ndim = 0; *p && v->ndim < TG_MAX_RANK; v->ndim++) {
      char *end;
      dims[v->ndim] = strtoll(p + 1, &end, 10);
      if (end == p + 1 || (*end && *end != 'x') || dims[v->ndim] < 0 || dims[v->ndim] > INT32_MAX)
        return run_failed(spec, "sizes are 1x3x224x224"), NULL;
      p = end;
    }
  else if (!dims_of(m, v, dims))
    return NULL;
  TgDType d = v->dtype ? v->dtype : TG_F32;
  if (zeros) return tg_zeros(m->ctx, v->ndim, dims, .dtype = d);
  if (tg_dtype_is_float(d)) return tg_rand(m->ctx, v->ndim, dims, .dtype = d);
  if (d == TG_BOOL) return tg_lt_scalar(tg_rand(m->ctx, v->ndim, dims), 0.5);
  return tg_randint(m->ctx, v->ndim, dims, 0, 2, d); /* a valid index into almost anything */
}

/* Reads one number for all three channels, or three. Returns 0 if the text is neither, or a number is not
 * finite. */
static int numbers_of(const char *text, double *v, double otherwise) {
  int n = 0;
  for (char *end; text; text = *end == ',' ? end + 1 : NULL) {
    double x = strtod(text, &end);
    if (end == text || (*end && *end != ',') || n == 3 || !isfinite(x)) return 0;
    v[n++] = x;
  }
  if (n == 2) return 0;
  if (!n) v[n++] = otherwise;
  while (n < 3) {
    v[n] = v[n - 1];
    n++;
  }
  return n;
}

/* Accepts (b, 3, h, w), (b, h, w, 3), (b, 1, h, w), and these without the batch. */
static bool picture_layout(const TgOnnxValue *v, const int64_t *dims, int *channel_axis, int *first) {
  *first = v->ndim == 4;
  if (v->ndim != 3 && v->ndim != 4) return false;
  bool in_front = dims[*first] == 3 || dims[*first] == 1;
  *channel_axis = in_front ? *first : v->ndim - 1;
  return in_front || dims[v->ndim - 1] == 3 || dims[v->ndim - 1] == 1;
}

static TgTensor *picture_of(RunModel *m, const TgOnnxValue *v, const char *path) {
  Picture p;
  int64_t dims[TG_MAX_RANK];
  double mean[3], std[3];
  int channel_axis = 0, first = 0;
  const char *why = picture_read(path, &p);
  if (why) return run_failed(path, why), NULL;
  bool ok = dims_of(m, v, dims) &&
            (picture_layout(v, dims, &channel_axis, &first) || run_failed(v->name, "is no picture"));
  if (ok && (!numbers_of(m->o->mean, mean, 0) || !numbers_of(m->o->std, std, 1)))
    ok = run_failed("--mean, --std", "one number, or three: 0.485,0.456,0.406");
  if (ok && (std[0] == 0 || std[1] == 0 || std[2] == 0)) ok = run_failed("--std", "it is divided by, and 0");
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
    run_failed(path, "out of memory");
  free(pixels), free(x);
  if (m->picture.rgb)
    free(p.rgb);
  else
    m->picture = p;
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

static TgTensor *input_of(RunModel *m, const TgOnnxValue *v, const char *spec) {
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

/* Returns the input that NAME=SPEC names, or for a plain SPEC the next input without a value; -1: none. */
static int input_named(const RunModel *m, const char *argument, const char **spec) {
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

/* Moves t to the devices of a program's input i. */
static TgTensor *placed(const RunModel *m, int i, TgTensor *t) {
  TgJitValue v;
  if (!t || !m->program || !tg_jit_input(m->program, (size_t)i, &v)) return t;
  if (v.axis >= 0) return tg_shard(t, v.ndevice, v.devices, v.axis, .bounds = v.bounds);
  return v.ndevice > 1 ? tg_replicate(t, v.ndevice, v.devices) : tg_to(t, v.devices[0]);
}

/* Copies t into a tensor with room for the largest size along each axis whose size varies. Returns NULL if it
 * failed; the reason was printed. */
static TgTensor *varied_of(RunModel *m, int i, TgTensor *t) {
  const TgOnnxValue *about = &m->in_about[i];
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0}, is;
  RunVaried *v[TG_MAX_RANK] = {0};
  bool any = false;
  if (!t || tg_ndim(t) != about->ndim) return t; /* the run refuses it */
  for (int a = 0; a < about->ndim; a++) {
    int64_t n = tg_dim(t, a);
    v[a] = about->dims[a] < 0 && about->dim_names ? run_varied(m, about->dim_names[a]) : NULL;
    if (!v[a]) continue;
    if (!v[a]->known && !run_size_bound(v[a], n)) return NULL;
    if (!tg_variable_value(v[a]->v, &is) || is != n)
      return cli_refuse(0, cli_running(), "axis %d of input %s is %lld, and %s is %lld", a, about->name,
                        (long long)n, v[a]->name, (long long)is),
             NULL;
    hi[a] = v[a]->most - n;
    any = true;
  }
  if (!any) return t;
  t = tg_contiguous(tg_pad(t, lo, hi));
  if (tg_realize(t)) return NULL;
  for (int a = 0; t && a < about->ndim; a++)
    if (v[a]) t = tg_slice(t, a, 0, tg_size(v[a]->v));
  return t;
}

static bool input_set(RunModel *m, int i, const char *spec) {
  bool ok = false;
  TG_SCOPE(m->ctx) {
    TgTensor *t = input_of(m, &m->in_about[i], spec);
    if (t && m->in_about[i].dtype && tg_dtype(t) != m->in_about[i].dtype)
      t = tg_cast(t, m->in_about[i].dtype);
    t = tg_contiguous(placed(m, i, t));
    t = varied_of(m, i, t);
    TgTensor *copy = m->o->bench ? tg_clone(t) : NULL;
    ok = t && !tg_realize(t) && (!copy || !tg_realize(copy)) && (m->in[i] = tg_keep(t));
    m->copy[i] = tg_keep(copy);
  }
  return ok;
}

/* Refuses a name that is no input of the model, and lists the inputs that it requires. */
static bool name_unknown(const RunModel *m, const char *argument) {
  char names[400] = "";
  size_t n = 0;
  for (int i = 0; i < m->nin && n < sizeof names; i++)
    if (!m->in_about[i].has_default)
      n += (size_t)snprintf(names + n, sizeof names - n, "%s%.80s", n ? ", " : "", m->in_names[i]);
  return cli_refuse(0, cli_running(), "the model has no input %.*s; its inputs: %s%s",
                    (int)strcspn(argument, "="), argument, n ? names : "none", n < sizeof names ? "" : " ..");
}

bool run_inputs_set(RunModel *m, char **argument, int n) {
  for (int k = 0; k < n; k++) {
    const char *spec;
    int i = input_named(m, argument[k], &spec);
    if (spec == argument[k] && strchr(spec, '=') && access(spec, F_OK)) return name_unknown(m, spec);
    if (!*spec) return run_failed(argument[k], "a file, a number or [..] is missing");
    if (i < 0) return run_failed(argument[k], "the model has no input left for it");
    if (m->in[i]) return run_failed(argument[k], "this input is given twice");
    if (!input_set(m, i, spec)) return false;
  }
  for (int i = 0; i < m->nin; i++)
    if (!m->in[i] && !m->in_about[i].has_default && !input_set(m, i, "random")) return false;
  for (int k = 0; k < m->nvaried; k++)
    if (!m->varied[k].known)
      return cli_refuse(0, cli_running(), "a size is needed: --size %s=N (tg info tells which)",
                        m->varied[k].name);
  return true;
}
