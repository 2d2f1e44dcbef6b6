/* run_outputs.c: shows a model's outputs: a line about their values, the likeliest classes, the boxes that a
 * detector found, files. */
#include "boxes.h"
#include "run.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 28 };

/* ---- what is shown */
const char *run_shape_text(int ndim, const int64_t *dims, char room[300]) {
  int n = snprintf(room, 300, "(");
  for (int i = 0; i < ndim && n < 280; i++)
    n += snprintf(room + n, (size_t)(300 - n), "%s%lld", i ? ", " : "", (long long)dims[i]);
  if (n < 290) snprintf(room + n, (size_t)(300 - n), ndim == 1 ? ",)" : ")");
  return room;
}

static void output_say(const RunModel *m, int i, TgTensor *t) {
  char shape[300];
  run_shape_text(tg_ndim(t), tg_shape(t), shape);
  size_t n = (size_t)tg_numel(t);
  double *v = malloc((n + 1) * sizeof *v), lo = INFINITY, hi = -INFINITY, sum = 0;
  bool read = v && n && !tg_read_f64(t, v, n);
  size_t none = 0;
  for (size_t k = 0; read && k < n; k++) {
    none += isnan(v[k]) != 0;
    lo = fmin(lo, v[k]);
    hi = fmax(hi, v[k]);
    sum += v[k];
  }
  if (m->o->json) {
    printf("{\"output\":"), cli_json_text(stdout, m->out_about[i].name);
    printf(",\"dtype\":\"%s\",\"shape\":[%.*s]", tg_dtype_name(tg_dtype(t)), (int)strcspn(shape + 1, ")"),
           shape + 1);
    if (read && isfinite(lo) && isfinite(hi) && isfinite(sum))
      printf(",\"least\":%.9g,\"most\":%.9g,\"mean\":%.9g", lo, hi, sum / (double)n);
    puts("}");
  } else {
    printf("%-24s %-5s %-20s", m->out_about[i].name, tg_dtype_name(tg_dtype(t)), shape);
    if (read && none < n) printf("  %.5g .. %.5g", lo, hi);
    if (read && !none) printf(", mean %.5g", sum / (double)n);
    if (none) printf("%s%zu of %zu are NaN", none < n ? ", " : "  ", none, n);
    putchar('\n');
  }
  free(v);
}

static char **labels_read(const char *path, int *n, char **text) {
  *text = cli_read_file(path, NULL);
  char **line = *text ? calloc(strlen(*text) + 2, sizeof *line) : NULL;
  if (!line) return run_failed(path, errno ? strerror(errno) : "cannot be read"), NULL;
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

/* Turns scores into probabilities by softmax, unless they are probabilities already. */
static void probabilities(double *v, size_t n) {
  double sum = 0, most = v[0], least = v[0];
  for (size_t i = 0; i < n; i++) {
    sum += v[i];
    most = fmax(most, v[i]);
    least = fmin(least, v[i]);
  }
  if (least >= 0 && fabs(sum - 1) < 1e-2) return;
  sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += v[i] = exp(v[i] - most);
  for (size_t i = 0; i < n; i++)
    v[i] /= sum;
}

static void top_line(const RunModel *m, double p, size_t class, const char *label) {
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

static bool top_say(const RunModel *m, TgTensor *t) {
  char *text = NULL, **label = NULL;
  int nlabels = 0;
  if (m->o->labels && !(label = labels_read(m->o->labels, &nlabels, &text))) return false;
  size_t n = (size_t)tg_numel(t);
  double *v = malloc((n + 1) * sizeof *v);
  bool ok = v && n && !tg_read_f64(t, v, n);
  for (size_t i = 0; ok && i < n; i++)
    if (!isfinite(v[i])) {
      fprintf(stderr, "no classes: not all of the scores are finite numbers\n");
      free(v), free(label), free(text);
      return true;
    }
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

/* Writes an output to a file with its name, in which / and : are replaced. */
static bool output_write(const RunModel *m, int i, TgTensor *t) {
  char path[4200];
  int n = snprintf(path, sizeof path, "%s%s.npy", m->o->out, m->out_about[i].name);
  if (n < 0 || n >= (int)sizeof path) return run_failed(m->o->out, "too long a name");
  for (char *p = path + strlen(m->o->out); *p; p++)
    if (*p == '/' || *p == ':') *p = '_';
  return tg_npy_save(t, path) == TG_OK;
}

/* ---- boxes */
/* Finds the sides, in pixels, of the input that is a picture: (b, c, h, w) or (b, h, w, c), or without the
 * batch. */
static bool input_sides(const RunModel *m, double *wide, double *high) {
  for (int i = 0; i < m->nin; i++) {
    int n = m->in[i] ? tg_ndim(m->in[i]) : 0;
    if (n != 3 && n != 4) continue;
    bool in_front = tg_dim(m->in[i], n - 3) <= 4;
    *high = (double)tg_dim(m->in[i], in_front ? n - 2 : n - 3);
    *wide = (double)tg_dim(m->in[i], in_front ? n - 1 : n - 2);
    return true;
  }
  return run_failed("--boxes", "the model has no picture for an input");
}

/* Prints a box, in pixels of the picture, or of the input if that is an array. */
static void box_say(const RunModel *m, const Box *b, double wide, double high, const char *label) {
  double x0 = b->x0 * wide, y0 = b->y0 * high, x1 = b->x1 * wide, y1 = b->y1 * high;
  if (m->o->json) {
    printf("{\"box\":[%.1f,%.1f,%.1f,%.1f],\"score\":%.6f,\"class\":%d,\"label\":", x0, y0, x1, y1, b->score,
           b->class);
    cli_json_text(stdout, label), puts("}");
  } else
    printf("%5.1f %%  %-20s x %.0f .. %.0f  y %.0f .. %.0f\n", 100 * b->score, label, x0, x1, y0, y1);
}

static bool boxes_found(RunModel *m, const Boxes *boxes, double wide, double high) {
  char *text = NULL, **label = NULL;
  int nlabels = 0;
  if (m->o->labels && !(label = labels_read(m->o->labels, &nlabels, &text))) return false;
  for (int i = 0; i < boxes->n; i++) {
    const Box *b = &boxes->at[i];
    char number[32], drawn[80];
    snprintf(number, sizeof number, "class %d", b->class);
    const char *name = b->class >= 0 && b->class < nlabels ? label[b->class] : number;
    box_say(m, b, wide, high, name);
    snprintf(drawn, sizeof drawn, "%.60s %.0f%%", name, 100 * b->score);
    if (m->o->draw) boxes_draw(&m->picture, b, drawn);
  }
  if (!boxes->n && !m->o->json) printf("no box of a score of %g\n", m->o->score);
  free(label), free(text);
  const char *why = m->o->draw ? picture_write(m->o->draw, &m->picture) : NULL;
  return !why || run_failed(m->o->draw, why);
}

/* Reads the values of t, without the leading axes of size 1, which are batches of one. */
static bool values_read(TgTensor *t, const char *name, BoxValues *v) {
  size_t n = (size_t)tg_numel(t);
  double *at = malloc((n + 1) * sizeof *at);
  int skip = 0;
  while (skip < tg_ndim(t) && tg_dim(t, skip) == 1)
    skip++;
  *v = (BoxValues){name, tg_ndim(t) - skip, tg_shape(t) + skip, at};
  return at && !tg_read_f64(t, at, n);
}

static void kinds_say(void) {
  const char *name, *about;
  for (int i = 0; boxes_kind(i, &name, &about); i++)
    fprintf(stderr, "  %-10s %s\n", name, about);
}

static bool boxes_say(RunModel *m, TgTensor **out) {
  BoxValues v[MOST_IO] = {{0}};
  Boxes boxes = {0};
  double wide = 0, high = 0;
  if (m->o->draw && !m->picture.rgb) return run_failed("--draw", "no input is a picture");
  bool ok = input_sides(m, &wide, &high);
  for (int i = 0; ok && i < m->nout; i++)
    ok = values_read(out[i], m->out_about[i].name, &v[i]);
  const char *kind = m->o->boxes && strcmp(m->o->boxes, "auto") ? m->o->boxes : NULL,
             *why = ok ? boxes_of(kind, v, m->nout, wide, high, m->o->score, m->o->overlap, &boxes) : NULL;
  if (why) {
    ok = run_failed(kind ? kind : "--boxes", why);
    kinds_say();
  }
  if (m->picture.rgb) {
    wide = m->picture.width;
    high = m->picture.height;
  }
  ok = ok && boxes_found(m, &boxes, wide, high);
  for (int i = 0; i < m->nout; i++)
    free((void *)v[i].at);
  free(boxes.at);
  return ok;
}

bool run_outputs_say(RunModel *m, TgTensor **out) {
  bool ok = true;
  for (int i = 0; ok && i < m->nout; i++) {
    output_say(m, i, out[i]);
    if (!m->o->boxes && !m->o->draw && m->o->top && (m->o->labels || m->nout == 1) && is_classes(out[i]))
      ok = top_say(m, out[i]);
    if (ok && m->o->out) ok = output_write(m, i, out[i]);
  }
  return ok && (!(m->o->boxes || m->o->draw) || boxes_say(m, out));
}
