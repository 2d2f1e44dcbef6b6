/* onnx_list.c: values that are not tensors: lists (the sequences of ONNX) and optional values. In: a node
 * and the values so far. Out: the values of its outputs. A list is never changed; an operator that adds to
 * a list makes another one, which shares the tensors. An optional value that is present is the value
 * itself. */
#include "onnx_private.h"

enum { MOST_VALUES = 1 << 20 }; /* the most values of a list */

OnnxList *list_new(OnnxRun *r, size_t n) {
  if (n > MOST_VALUES) return ctx_fail(r->m->ctx, TG_ERR_LIMIT, "a list of %zu values", n), NULL;
  OnnxList *l = tg_alloc(r->m->ctx, sizeof *l + n * sizeof *l->at);
  if (!l) return NULL;
  l->n = n;
  l->next = r->lists;
  r->lists = l;
  return l;
}

static bool wrong(OnnxRun *r, const char *what, long long n) {
  return ctx_fail(r->m->ctx, TG_ERR_VALUE, what, n);
}

static bool give(OnnxRun *r, const OnnxNode *n, OnnxVal v) {
  if (n->nout != 1) return wrong(r, "%lld outputs", n->nout);
  if (n->out[0]) r->vals[n->out[0]] = v;
  return true;
}

static const OnnxList *list_in(OnnxRun *r, const OnnxNode *n, int i) {
  OnnxVal *v = node_value(r, n, i);
  if (v && v->list) return v->list;
  wrong(r, "input %lld is no list", i);
  return NULL;
}

/* Reads input i as a place in 0 .. room - 1; negative places count from the end, `length`. If the input is
 * left out, the place is `otherwise`. */
static bool place_in(OnnxRun *r, const OnnxNode *n, int i, int64_t length, int64_t room, int64_t otherwise,
                     size_t *at) {
  OnnxVal *v = node_value(r, n, i);
  double given = (double)otherwise;
  if (v && !value_number(r, v, &given)) return false;
  if (given < 0) given += (double)length;
  if (!(given >= 0 && given < (double)room))
    return ctx_fail(r->m->ctx, TG_ERR_VALUE, "place %g of a list of %lld", given, (long long)length);
  return *at = (size_t)given, true;
}

/* ---- lists */
/* attribute dtype only describes values that there might be */
static bool list_empty(OnnxRun *r, const OnnxNode *n) {
  OnnxList *l = list_new(r, 0);
  return l && give(r, n, (OnnxVal){.list = l});
}

static bool list_construct(OnnxRun *r, const OnnxNode *n) {
  OnnxList *l = list_new(r, (size_t)n->nin);
  for (int i = 0; l && i < n->nin; i++) {
    OnnxVal *v = node_value(r, n, i);
    if (!v || !v->t) return wrong(r, "input %lld is no tensor", i);
    l->at[i] = *v;
  }
  return l && give(r, n, (OnnxVal){.list = l});
}

static bool list_insert(OnnxRun *r, const OnnxNode *n) {
  const OnnxList *was = list_in(r, n, 0);
  OnnxVal *v = node_value(r, n, 1);
  size_t at = 0;
  if (!was) return false;
  if (!v || !v->t) return wrong(r, "input %lld is no tensor", 1);
  int64_t length = (int64_t)was->n;
  if (!place_in(r, n, 2, length, length + 1, length, &at)) return false;
  OnnxList *l = list_new(r, was->n + 1);
  for (size_t i = 0; l && i < l->n; i++)
    l->at[i] = i == at ? *v : was->at[i - (i > at)];
  return l && give(r, n, (OnnxVal){.list = l});
}

static bool list_erase(OnnxRun *r, const OnnxNode *n) {
  const OnnxList *was = list_in(r, n, 0);
  size_t at = 0;
  if (!was || !place_in(r, n, 1, (int64_t)was->n, (int64_t)was->n, (int64_t)was->n - 1, &at)) return false;
  OnnxList *l = list_new(r, was->n - 1);
  for (size_t i = 0; l && i < l->n; i++)
    l->at[i] = was->at[i + (i >= at)];
  return l && give(r, n, (OnnxVal){.list = l});
}

static bool list_at(OnnxRun *r, const OnnxNode *n) {
  const OnnxList *l = list_in(r, n, 0);
  size_t at = 0;
  return l && place_in(r, n, 1, (int64_t)l->n, (int64_t)l->n, -1, &at) && give(r, n, l->at[at]);
}

static bool list_length(OnnxRun *r, const OnnxNode *n) {
  const OnnxList *l = list_in(r, n, 0);
  return l && give(r, n, value_of_int(r, (int64_t)l->n, TG_I64));
}

/* ---- lists and tensors */
/* The sizes of the parts of an axis of `size`: all 1, all the same number except the last, or as listed. */
static bool parts_of(OnnxRun *r, const OnnxNode *n, int64_t size, int64_t **parts, size_t *nparts) {
  TgContext *ctx = r->m->ctx;
  OnnxVal *v = node_value(r, n, 1);
  int64_t each = 1;
  double number;
  if (v && !v->t) return wrong(r, "input %lld is no tensor", 1);
  if (v && tg_ndim(v->t) == 0) {
    if (!value_number(r, v, &number)) return false;
    if (!(number >= 1 && number < INT32_MAX)) return wrong(r, "parts of %lld", (long long)number);
    each = (int64_t)number;
  }
  bool listed = v && tg_ndim(v->t) > 0;
  *nparts = listed ? (size_t)tg_numel(v->t) : (size_t)((size + each - 1) / each);
  if (*nparts > MOST_VALUES) return wrong(r, "%lld parts", (long long)*nparts);
  double *read = tg_alloc(ctx, (*nparts + 1) * sizeof *read);
  bool ok = read && (*parts = tg_alloc(ctx, (*nparts + 1) * sizeof **parts));
  if (ok && listed && *nparts && tg_read_f64(v->t, read, *nparts)) {
    TgContext *where = tg_context(v->t);
    if (where != ctx) ctx_fail(ctx, tg_error(where), "%s", tg_errmsg(where)), tg_clear_error(where);
    ok = false;
  }
  int64_t left = size;
  for (size_t i = 0; ok && i < *nparts; i++) {
    int64_t part = listed ? (int64_t)read[i] : left < each ? left : each;
    if (part < 0 || part > left) ok = wrong(r, "part %lld does not fit", (long long)i);
    (*parts)[i] = part;
    left -= part;
  }
  if (ok && left) ok = wrong(r, "the parts leave %lld", (long long)left);
  tg_free(ctx, read);
  return ok;
}

static bool list_split(OnnxRun *r, const OnnxNode *n) {
  OnnxCall c = {.ctx = r->m->ctx, .run = r, .n = n};
  OnnxVal *v = node_value(r, n, 0);
  int64_t *parts = NULL, at = 0;
  size_t nparts = 0;
  int axis;
  if (!v || !v->t) return wrong(r, "input %lld is no tensor", 0);
  if (!tg_ndim(v->t)) return wrong(r, "a tensor of %lld axes", 0);
  if (!call_axis(&c, attr_i(&c, "axis", 0), tg_ndim(v->t), &axis)) return false;
  /* the axis is removed, because each part has size 1 */
  bool gone = !attr_i(&c, "keepdims", 1) && !node_value(r, n, 1);
  bool ok = parts_of(r, n, tg_dim(v->t, axis), &parts, &nparts);
  OnnxList *l = ok ? list_new(r, nparts) : NULL;
  for (size_t i = 0; l && ok && i < nparts; at += parts[i++]) {
    TgTensor *t = tg_slice(v->t, axis, at, at + parts[i]);
    l->at[i] = (OnnxVal){.t = gone ? tg_squeeze(t, axis) : t, .host = v->host};
    ok = l->at[i].t != NULL;
  }
  tg_free(r->m->ctx, parts);
  return ok && l && give(r, n, (OnnxVal){.list = l});
}

/* The result is on the host if all values are there, and it is small. */
static bool list_concat(OnnxRun *r, const OnnxNode *n) {
  OnnxCall c = {.ctx = r->m->ctx, .run = r, .n = n};
  const OnnxList *l = list_in(r, n, 0);
  bool fresh = attr_i(&c, "new_axis", 0), host = r->m->host != NULL;
  int64_t total = 0;
  int axis;
  if (!l) return false;
  if (!l->n) return wrong(r, "a list of %lld to join", 0);
  for (size_t i = 0; i < l->n; i++) {
    host = host && l->at[i].host;
    total += tg_numel(l->at[i].t);
  }
  host = host && total <= HOST_MAX;
  if (!call_axis(&c, attr_i(&c, "axis", 0), tg_ndim(l->at[0].t) + fresh, &axis)) return false;
  TgTensor **t = tg_alloc(r->m->ctx, l->n * sizeof *t);
  bool ok = t != NULL;
  for (size_t i = 0; ok && i < l->n; i++)
    ok = (t[i] = host ? l->at[i].t : val_main(r, (OnnxVal *)&l->at[i])) != NULL;
  TgTensor *all = !ok ? NULL : fresh ? tg_stack(t, (int)l->n, axis) : tg_cat(t, (int)l->n, axis);
  tg_free(r->m->ctx, t);
  if (!all && host && tg_error(r->m->host))
    ctx_fail(r->m->ctx, tg_error(r->m->host), "%s", tg_errmsg(r->m->host)), tg_clear_error(r->m->host);
  return all && give(r, n, (OnnxVal){.t = all, .host = host});
}

/* Runs the body once for each value of the first list. Other lists contribute their value at the same
 * place, and other tensors are passed whole. */
static bool list_map(OnnxRun *r, const OnnxNode *n) {
  OnnxCall c = {.ctx = r->m->ctx, .run = r, .n = n};
  const OnnxAttr *a = call_attr(&c, "body", ONNX_GRAPH);
  const OnnxList *first = list_in(r, n, 0);
  OnnxList *out[64];
  if (!first) return false;
  if (!a || !a->g || (int)a->g->nin != n->nin || (int)a->g->nout != n->nout || n->nout > 64)
    return wrong(r, "the body does not fit %lld inputs", n->nin);
  for (int k = 0; k < n->nout; k++)
    if (!(out[k] = list_new(r, first->n))) return false;
  for (size_t i = 0; i < first->n; i++) {
    for (int k = 0; k < n->nin; k++) {
      OnnxVal *v = node_value(r, n, k);
      if (!v || (v->list && v->list->n != first->n)) return wrong(r, "input %lld is of another length", k);
      r->vals[a->g->in[k].value] = v->list ? v->list->at[i] : *v;
    }
    if (!graph_run(r, a->g)) return false;
    for (int k = 0; k < n->nout; k++)
      out[k]->at[i] = r->vals[a->g->out[k].value];
  }
  for (int k = 0; k < n->nout; k++)
    if (n->out[k]) r->vals[n->out[k]] = (OnnxVal){.list = out[k]};
  return true;
}

/* ---- optional values */
static bool optional_new(OnnxRun *r, const OnnxNode *n) {
  OnnxVal *v = node_value(r, n, 0);
  return give(r, n, v ? *v : (OnnxVal){.none = true});
}

static bool optional_has(OnnxRun *r, const OnnxNode *n) {
  OnnxVal *v = node_value(r, n, 0);
  return give(r, n, value_of_int(r, v && !v->none, TG_BOOL));
}

static bool optional_get(OnnxRun *r, const OnnxNode *n) {
  OnnxVal *v = node_value(r, n, 0);
  return v && !v->none ? give(r, n, *v) : wrong(r, "there is no value (%lld)", 0);
}

static bool identity(OnnxRun *r, const OnnxNode *n) {
  OnnxVal *v = node_value(r, n, 0);
  return v ? give(r, n, *v) : wrong(r, "input %lld has no value", 0);
}

const OnnxOp onnx_ops_list[] = {ONNX_CONTROL("SequenceEmpty", 11, 0, 0, list_empty),
                                ONNX_CONTROL("SequenceConstruct", 11, 1, -1, list_construct),
                                ONNX_CONTROL("SequenceInsert", 11, 2, 3, list_insert),
                                ONNX_CONTROL("SequenceErase", 11, 1, 2, list_erase),
                                ONNX_CONTROL("SequenceAt", 11, 2, 2, list_at),
                                ONNX_CONTROL("SequenceLength", 11, 1, 1, list_length),
                                ONNX_CONTROL("SplitToSequence", 11, 1, 2, list_split),
                                ONNX_CONTROL("ConcatFromSequence", 11, 1, 1, list_concat),
                                ONNX_CONTROL("SequenceMap", 17, 1, -1, list_map),
                                ONNX_CONTROL("Optional", 15, 0, 1, optional_new),
                                ONNX_CONTROL("OptionalHasElement", 15, 0, 1, optional_has),
                                ONNX_CONTROL("OptionalGetElement", 15, 1, 1, optional_get),
                                ONNX_SIZED_CONTROL("Identity", 1, 1, 1, identity),
                                {0}};
