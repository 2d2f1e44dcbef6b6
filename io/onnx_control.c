/* onnx_control.c: operators that run graphs: If, Loop, Scan. In: a node and the values so far. Out: the
 * values of its outputs. A loop is unrolled: its body is run once for each iteration, and if its condition
 * is not a constant, the condition is computed and read before the next iteration. */
#include "onnx_private.h"
#include <math.h>

/* Records an error of the node, and returns false. */
static bool wrong(OnnxRun *r, TgStatus status, const char *what, long long n) {
  return ctx_fail(r->m->ctx, status, what, n);
}

static OnnxGraph *body_of(OnnxRun *r, const OnnxNode *n, const char *name) {
  OnnxCall c = {.ctx = r->m->ctx, .run = r, .n = n};
  const OnnxAttr *a = call_attr(&c, name, ONNX_GRAPH);
  if (a && a->g) return a->g;
  wrong(r, TG_ERR_VALUE, "the graph of the node is missing (%lld)", 0);
  return NULL;
}

OnnxVal *node_value(OnnxRun *r, const OnnxNode *n, int i) {
  OnnxVal *v = i < n->nin && n->in[i] ? &r->vals[n->in[i]] : NULL;
  return v && (v->t || v->list || v->none) ? v : NULL;
}

/* The value of input i if it is a tensor; otherwise NULL. */
static OnnxVal *value_in(OnnxRun *r, const OnnxNode *n, int i) {
  OnnxVal *v = node_value(r, n, i);
  return v && v->t ? v : NULL;
}

bool value_number(OnnxRun *r, OnnxVal *v, double *out) {
  if (!v->t) return wrong(r, TG_ERR_VALUE, "a number is needed where a value is no tensor (%lld)", 0);
  TgContext *where = tg_context(v->t);
  if (!value_now(r, v)) return false;
  *out = tg_item_f64(v->t);
  if (!tg_error(where)) return true;
  if (where == r->m->ctx) return false;
  ctx_fail(r->m->ctx, tg_error(where), "%s", tg_errmsg(where));
  tg_clear_error(where);
  return false;
}

OnnxVal value_of_int(OnnxRun *r, int64_t v, TgDType d) {
  TgContext *where = r->m->host ? r->m->host : r->m->ctx;
  return (OnnxVal){.t = tg_full_i64(where, TG_SCALAR, v, d), .host = r->m->host != NULL};
}

/* Runs the graph of a branch. Returns NULL after an error, which is recorded. */
static OnnxGraph *branch_run(OnnxRun *r, const OnnxNode *n, const char *name) {
  OnnxGraph *g = body_of(r, n, name);
  if (g && (int)g->nout != n->nout)
    wrong(r, TG_ERR_VALUE, "the branch has %lld outputs", (long long)g->nout);
  else if (g && graph_run(r, g))
    return g;
  return NULL;
}

static TgTensor *chosen(OnnxRun *r, TgTensor *cond, int i, OnnxVal *yes, OnnxVal *no) {
  int64_t x[TG_MAX_RANK], y[TG_MAX_RANK];
  TgTensor *a = yes->t ? val_main(r, yes) : NULL, *b = no->t ? val_main(r, no) : NULL;
  bool same = a && b && tg_dtype(a) == tg_dtype(b) && tg_ndim(a) == tg_ndim(b) &&
              !memcmp(sizes_in(a, x), sizes_in(b, y), sizeof(int64_t) * (size_t)tg_ndim(a));
  if (same) return tg_where(tg_cast(tg_reshape(cond, TG_SCALAR), TG_BOOL), a, b);
  wrong(r, TG_ERR_STATE,
        "the condition depends on an input's values, and output %lld is not of one shape and dtype in both "
        "branches, which a captured function computes",
        i);
  return NULL;
}

/* While a function is captured no value can be read. Both branches are then computed, and each output is
 * chosen by the condition. */
static bool if_by_both(OnnxRun *r, const OnnxNode *n, OnnxVal *cond) {
  TgTensor *c = val_main(r, cond);
  OnnxGraph *yes = c ? branch_run(r, n, "then_branch") : NULL;
  OnnxGraph *no = yes ? branch_run(r, n, "else_branch") : NULL;
  for (int i = 0; no && i < n->nout; i++) {
    TgTensor *t = chosen(r, c, i, &r->vals[yes->out[i].value], &r->vals[no->out[i].value]);
    if (!t) return false;
    r->vals[n->out[i]] = (OnnxVal){.t = t};
  }
  return no != NULL;
}

static bool control_if(OnnxRun *r, const OnnxNode *n) {
  double v;
  OnnxVal *cond = value_in(r, n, 0);
  if (!cond) return wrong(r, TG_ERR_VALUE, "input %lld has no value", 0);
  if (!value_number(r, cond, &v)) {
    if (cond->host || tg_error(r->m->ctx) != TG_ERR_STATE) return false;
    tg_clear_error(r->m->ctx);
    return if_by_both(r, n, cond);
  }
  OnnxGraph *g = branch_run(r, n, v != 0 ? "then_branch" : "else_branch");
  for (int i = 0; g && i < n->nout; i++)
    r->vals[n->out[i]] = r->vals[g->out[i].value];
  return g != NULL;
}

/* ---- what a loop collects: for each output a list of tensors, one for each iteration */
typedef struct Rows {
  OnnxRun *r;
  TgTensor **at[64];
  size_t cap[64];
  int n, trips;
} Rows;

static bool rows_add(Rows *rows, int k, OnnxVal *v) {
  if (!v->t)
    return wrong(rows->r, TG_ERR_VALUE, "what is gathered over the iterations is no tensor (%lld)", k);
  TgTensor *t = val_main(rows->r, v);
  TgTensor **at =
      t ? io_grow(rows->r->m->ctx, rows->at[k], (size_t)rows->trips, &rows->cap[k], sizeof *at) : NULL;
  if (!at) return false;
  rows->at[k] = at;
  at[rows->trips] = t;
  return true;
}

/* Stacks along a new axis. Planning examines the values that a kernel reads again for each of them; if
 * there are many, groups of them are therefore joined in memory first. */
static TgTensor *stacked(TgContext *ctx, TgTensor **at, int n, int axis) {
  enum { TOGETHER = 256 };

  if (n <= TOGETHER) return tg_stack(at, n, axis);
  int parts = (n + TOGETHER - 1) / TOGETHER;
  TgTensor **part = tg_alloc(ctx, (size_t)parts * sizeof *part);
  for (int i = 0; part && i < parts; i++) {
    int first = i * TOGETHER, left = n - first;
    part[i] = tg_contiguous(tg_stack(at + first, left < TOGETHER ? left : TOGETHER, axis));
  }
  TgTensor *all = part ? tg_cat(part, parts, axis) : NULL;
  tg_free(ctx, part);
  return all;
}

/* Joins the tensors of output k along a new axis, in reverse order if backwards. Without any iteration the
 * shape is what the body declares. */
static bool rows_join(Rows *rows, int k, int64_t axis, bool backwards, const OnnxIO *said, OnnxVal *out) {
  TgContext *ctx = rows->r->m->ctx;
  TgTensor **at = rows->at[k];
  if (!rows->trips) {
    int64_t dims[TG_MAX_RANK] = {0};
    if (said->ndim < 0 || said->ndim + 1 > TG_MAX_RANK)
      return wrong(rows->r, TG_ERR_SHAPE, "%lld iterations, and no shape is told", 0);
    for (int i = 0; i < said->ndim; i++)
      dims[i + 1] = said->dims[i] < 0 ? 0 : said->dims[i];
    *out = (OnnxVal){.t = tg_zeros(ctx, said->ndim + 1, dims, .dtype = said->dtype)};
    return out->t != NULL;
  }
  for (int i = 0; backwards && i < rows->trips / 2; i++) {
    TgTensor *t = at[i];
    at[i] = at[rows->trips - 1 - i];
    at[rows->trips - 1 - i] = t;
  }
  int rank = tg_ndim(at[0]) + 1;
  if (axis < -rank || axis >= rank)
    return wrong(rows->r, TG_ERR_SHAPE, "axis %lld of what is gathered", (long long)axis);
  *out = (OnnxVal){.t = stacked(ctx, at, rows->trips, (int)(axis < 0 ? axis + rank : axis))};
  return out->t != NULL;
}

static bool rows_end(Rows *rows, bool ok) {
  for (int k = 0; k < rows->n; k++)
    tg_free(rows->r->m->ctx, rows->at[k]);
  return ok;
}

/* The n outputs of the body from `out` on become its inputs from `in` on in the next iteration. */
static void carry(OnnxRun *r, OnnxGraph *g, size_t in, size_t out, int n) {
  OnnxVal next[64];
  for (int i = 0; i < n; i++)
    next[i] = r->vals[g->out[out + (size_t)i].value];
  for (int i = 0; i < n; i++)
    r->vals[g->in[in + (size_t)i].value] = next[i];
}

static bool control_loop(OnnxRun *r, const OnnxNode *n) {
  OnnxGraph *g = body_of(r, n, "body");
  int carried = n->nin - 2;
  double limit = INFINITY, on = 1;
  if (!g) return false;
  Rows rows = {.r = r, .n = n->nout - carried};
  if (carried < 0 || (int)g->nin != carried + 2 || (int)g->nout != n->nout + 1 || rows.n < 0 || n->nout > 60)
    return wrong(r, TG_ERR_VALUE, "the body has %lld outputs, which do not fit", (long long)g->nout);
  OnnxVal *most = value_in(r, n, 0), *cond = value_in(r, n, 1);
  if ((most && !value_number(r, most, &limit)) || (cond && !value_number(r, cond, &on))) return false;
  for (int i = 0; i < carried; i++) {
    OnnxVal *v = node_value(r, n, i + 2); /* may be a list too */
    if (!v) return wrong(r, TG_ERR_VALUE, "input %lld has no value", i + 2);
    r->vals[g->in[i + 2].value] = *v;
  }
  bool ok = true;
  for (; ok && on != 0 && rows.trips < limit; rows.trips++) {
    if (!iteration_begin(r)) return rows_end(&rows, false);
    r->vals[g->in[0].value] = value_of_int(r, rows.trips, TG_I64);
    r->vals[g->in[1].value] = value_of_int(r, 1, TG_BOOL);
    ok = graph_run(r, g) && value_number(r, &r->vals[g->out[0].value], &on);
    for (int k = 0; ok && k < rows.n; k++)
      ok = rows_add(&rows, k, &r->vals[g->out[1 + carried + k].value]);
    if (ok) carry(r, g, 2, 1, carried);
  }
  for (int i = 0; ok && i < carried; i++)
    if (n->out[i]) r->vals[n->out[i]] = r->vals[g->in[i + 2].value];
  for (int k = 0; ok && k < rows.n; k++)
    if (n->out[carried + k])
      ok = rows_join(&rows, k, 0, false, &g->out[1 + carried + k], &r->vals[n->out[carried + k]]);
  return rows_end(&rows, ok);
}

/* number k of an attribute that has one number for each input or output; 0 if it is left out */
static int64_t listed(OnnxRun *r, const OnnxNode *n, const char *name, int k) {
  OnnxCall c = {.ctx = r->m->ctx, .run = r, .n = n};
  const OnnxAttr *a = call_attr(&c, name, ONNX_INTS);
  return a && (size_t)k < a->nints ? a->ints[k] : 0;
}

static bool control_scan(OnnxRun *r, const OnnxNode *n) {
  OnnxCall c = {.ctx = r->m->ctx, .run = r, .n = n};
  OnnxGraph *g = body_of(r, n, "body");
  int scanned = (int)attr_i(&c, "num_scan_inputs", 0), states = n->nin - scanned;
  int64_t trips = -1;
  int axis[64];
  if (!g) return false;
  Rows rows = {.r = r, .n = n->nout - states};
  if (r->m->opset < 9 || scanned < 1 || states < 0 || (int)g->nin != n->nin || (int)g->nout != n->nout ||
      rows.n < 0 || n->nout > 60 || n->nin > 60)
    return wrong(r, TG_ERR_VALUE, "the body has %lld inputs, which do not fit", (long long)g->nin);
  for (int i = 0; i < n->nin; i++) {
    OnnxVal *v = value_in(r, n, i);
    if (!v) return wrong(r, TG_ERR_VALUE, "input %lld has no value", i);
    if (i < states) {
      r->vals[g->in[i].value] = *v;
      continue;
    }
    int k = i - states;
    if (!call_axis(&c, listed(r, n, "scan_input_axes", k), tg_ndim(v->t), &axis[k])) return false;
    if (tg_is_symbolic(v->t, axis[k]))
      return wrong(r, TG_ERR_SHAPE, "input %lld is read along an axis of symbolic size", i);
    if (trips >= 0 && trips != tg_dim(v->t, axis[k]))
      return wrong(r, TG_ERR_SHAPE, "input %lld has another length", i);
    trips = tg_dim(v->t, axis[k]);
  }
  bool ok = true;
  for (; ok && rows.trips < trips; rows.trips++) {
    if (!iteration_begin(r)) return rows_end(&rows, false);
    for (int k = 0; k < scanned; k++) {
      OnnxVal *v = value_in(r, n, states + k);
      int64_t at = listed(r, n, "scan_input_directions", k) ? trips - 1 - rows.trips : rows.trips;
      r->vals[g->in[states + k].value] = (OnnxVal){.t = tg_select(v->t, axis[k], at), .host = v->host};
    }
    ok = graph_run(r, g);
    for (int k = 0; ok && k < rows.n; k++)
      ok = rows_add(&rows, k, &r->vals[g->out[states + k].value]);
    if (ok) carry(r, g, 0, 0, states);
  }
  for (int i = 0; ok && i < states; i++)
    if (n->out[i]) r->vals[n->out[i]] = r->vals[g->in[i].value];
  for (int k = 0; ok && k < rows.n; k++)
    if (n->out[states + k])
      ok = rows_join(&rows, k, listed(r, n, "scan_output_axes", k), listed(r, n, "scan_output_directions", k),
                     &g->out[states + k], &r->vals[n->out[states + k]]);
  return rows_end(&rows, ok);
}

const OnnxOp onnx_ops_control[] = {ONNX_SIZED_CONTROL("If", 1, 1, 1, control_if),
                                   ONNX_SIZED_CONTROL("Loop", 11, 0, -1, control_loop),
                                   ONNX_SIZED_CONTROL("Scan", 9, 1, -1, control_scan),
                                   {0}};
