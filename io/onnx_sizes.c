/* onnx_sizes.c: runs in which an input has a symbolic size (tg_size). In: a node. Out: the node's results
 * for such sizes. The one key fact: a symbolic size is an int64, so the result of Shape stays a list of
 * int64 on the host, and is cut and joined there like any other list. Arithmetic on sizes is done here,
 * because only tg_size_add and related functions can do it. Everything else is left to the device, which
 * computes with the values that the sizes have when it runs. */
#include "onnx_private.h"

const int64_t *sizes_in(const TgTensor *x, int64_t room[TG_MAX_RANK]) {
  for (int a = 0; a < tg_ndim(x); a++)
    room[a] = tg_size_of(x, a);
  return room;
}

TgTensor *shaped_as(TgTensor *y, TgTensor *x) {
  int64_t room[TG_MAX_RANK];
  return tg_reshape(y, tg_ndim(x), sizes_in(x, room));
}

static bool is_symbolic(const TgContext *ctx, int64_t size) {
  int64_t least;
  return tg_size_bounds(ctx, size, &least, NULL) && least != size;
}

TgTensor *onnx_iota(TgContext *ctx, int64_t size) {
  int64_t most = 0;
  tg_size_bounds(ctx, size, NULL, &most);
  return tg_slice(tg_arange(ctx, 0, (double)most, .dtype = TG_I64), 0, 0, size);
}

TgTensor *onnx_size_like(TgTensor *x, int64_t size) {
  return tg_size_tensor(tg_context(x), size, tg_dtype(x));
}

TgTensor *onnx_matrix(TgTensor *x, int axis) {
  int64_t rows = 1, columns = 1;
  for (int a = 0; a < tg_ndim(x); a++) {
    int64_t *n = a < axis ? &rows : &columns;
    *n = tg_size_mul(tg_context(x), *n, tg_size_of(x, a));
  }
  return tg_reshape(x, TG_SHAPE(rows, columns));
}

bool onnx_is_symbolic(OnnxCall *c, int64_t size) { return is_symbolic(c->run->m->ctx, size); }

/* ---- lists of sizes */
/* The numbers of such a list, which the caller frees; NULL: the error is recorded. */
static int64_t *list_read(OnnxRun *r, TgTensor *t) {
  TgTensor *whole = as(t, TG_I64);
  size_t n = (size_t)tg_numel(t);
  int64_t *v = whole ? tg_alloc(r->m->ctx, (n + 1) * sizeof *v) : NULL;
  if (!v || !n || !tg_read(whole, v, n * sizeof *v)) return v;
  tg_free(r->m->ctx, v);
  return NULL;
}

bool onnx_sizes_found(OnnxRun *r, OnnxVal *v) {
  int64_t *list = list_read(r, v->t), n = tg_numel(v->t);
  bool any = false;
  for (int64_t i = 0; list && i < n; i++)
    any = any || is_symbolic(r->m->ctx, list[i]);
  tg_free(r->m->ctx, list);
  if (!list || any) return list != NULL;
  v->t = as(v->t, v->sizes);
  v->sizes = TG_DTYPE_DEFAULT;
  return v->t != NULL;
}

TgTensor *onnx_sizes_main(OnnxRun *r, OnnxVal *v) {
  TgContext *ctx = r->m->ctx;
  int64_t *list = list_read(r, v->t), n = tg_numel(v->t);
  TgTensor **part = list ? tg_alloc(ctx, ((size_t)n + 1) * sizeof *part) : NULL;
  for (int64_t i = 0; part && i < n; i++)
    part[i] = tg_reshape(tg_size_tensor(ctx, list[i], v->sizes), TG_SHAPE(1));
  TgTensor *all = part ? tg_cat(part, (int)n, 0) : NULL;
  tg_free(ctx, part), tg_free(ctx, list);
  return all ? tg_reshape(all, tg_ndim(v->t), tg_shape(v->t)) : NULL;
}

bool value_now(OnnxRun *r, const OnnxVal *v) {
  if (!has_symbolic(r) || v->of || (v->host && !v->sizes) || !tg_max_numel(v->t)) return true;
  return ctx_fail(r->m->ctx, TG_ERR_STATE,
                  "a number is needed now that depends on a symbolic size, or on an input's values");
}

/* ---- operators that move the numbers of a list unchanged; the bits say which inputs may be such lists */
static const struct Mover {
  char op[15];
  uint8_t lists;
} movers[] = {{"Gather", 1},  {"GatherElements", 1}, {"GatherND", 1},  {"Slice", 1},         {"Unsqueeze", 1},
              {"Squeeze", 1}, {"Reshape", 1},        {"Transpose", 1}, {"Flatten", 1},       {"Split", 1},
              {"Expand", 1},  {"Tile", 1},           {"Where", 6},     {"Concat", ALL_LISTS}};

bool onnx_is_list(const OnnxCall *c, int i) { return c->lists == ALL_LISTS || (i < 8 && c->lists >> i & 1); }

static bool is_whole(TgDType d) { return d == TG_I32 || d == TG_I64; }

/* Whether the node moves lists of sizes, and everything else that it needs is known. If so, c->lists says
 * which inputs are lists. */
static bool moves(OnnxCall *c) {
  for (size_t k = 0; k < sizeof movers / sizeof *movers; k++)
    if (!strcmp(movers[k].op, c->n->op)) c->lists = movers[k].lists;
  for (int i = 0; i < c->nin; i++) {
    const OnnxVal *v = c->raw[i];
    if (!v) continue;
    bool list = onnx_is_list(c, i);
    if (!v->host || (v->sizes && !list) || (list && !v->sizes && !is_whole(tg_dtype(v->t)))) return false;
    if (v->sizes) c->sizes = v->sizes;
  }
  return c->lists;
}

/* ---- arithmetic of sizes, element by element. From EQUAL on the result is a bool. */
typedef enum Pair {
  ADD,
  SUB,
  MUL,
  DIV,
  MOD,
  MAX,
  MIN,
  EQUAL,
  LESS,
  GREATER,
  LESS_OR_EQUAL,
  GREATER_OR_EQUAL,
  PAIRS
} Pair;

static const char pairs[PAIRS][15] = {"Add", "Sub",   "Mul",  "Div",     "Mod",         "Max",
                                      "Min", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"};

/* Computes the result if it is the same for all values of the variables; otherwise returns false. */
static bool sizes_paired(TgContext *ctx, Pair what, int64_t a, int64_t b, int64_t *out) {
  int64_t least = 0, most = 0;
  bool numbers = !is_symbolic(ctx, a) && !is_symbolic(ctx, b);
  if (what >= MAX && !tg_size_bounds(ctx, tg_size_sub(ctx, a, b), &least, &most)) return false;
  switch (what) {
  case ADD: return *out = tg_size_add(ctx, a, b), true;
  case SUB: return *out = tg_size_sub(ctx, a, b), true;
  case MUL: return *out = tg_size_mul(ctx, a, b), true;
  case DIV: return numbers && b > 0 ? (*out = a / b, true) : tg_size_div(ctx, a, b, out);
  case MOD: return tg_size_div(ctx, a, b, out) && (*out = 0, true);
  case MAX: return *out = least >= 0 ? a : b, least >= 0 || most <= 0;
  case MIN: return *out = least >= 0 ? b : a, least >= 0 || most <= 0;
  case EQUAL: return *out = !least && !most, least == most || least > 0 || most < 0;
  case LESS: return *out = most < 0, most < 0 || least >= 0;
  case GREATER: return *out = least > 0, least > 0 || most <= 0;
  case LESS_OR_EQUAL: return *out = most <= 0, most <= 0 || least > 0;
  default: return *out = least >= 0, least >= 0 || most < 0;
  }
}

static Pair pair_of(const OnnxCall *c) {
  Pair p = 0;
  while (p < PAIRS && strcmp(pairs[p], c->n->op))
    p++;
  return p;
}

/* a broadcast to the shape of both: zeros with b's shape are added to it. */
static int64_t *beside(OnnxCall *c, TgTensor *a, TgTensor *b, TgTensor **shaped) {
  *shaped = tg_add(as(a, TG_I64), tg_mul_scalar(as(b, TG_I64), 0));
  return *shaped ? list_read(c->run, *shaped) : NULL;
}

static OnnxDone list_made(OnnxCall *c, const int64_t *v, const TgTensor *shape, bool truth) {
  TgContext *host = c->run->m->host;
  TgTensor *t = tg_from(host, v, TG_I64, tg_ndim(shape), tg_shape(shape));
  memset(c->out, 0, (size_t)c->n->nout * sizeof *c->out);
  c->out[0] = truth && t ? tg_cast(t, TG_BOOL) : t;
  return c->out[0] && outputs_kept(c) ? DONE : DONE_ERROR;
}

static OnnxDone paired(OnnxCall *c, Pair p) {
  for (int i = 0; i < c->nin; i++)
    if (!c->raw[i] || !c->raw[i]->host || (!c->raw[i]->sizes && !is_whole(tg_dtype(c->raw[i]->t))))
      return DONE_NOT;
  if (c->nin != 2) return DONE_NOT;
  TgContext *ctx = c->run->m->ctx;
  TgTensor *shape, *other;
  int64_t *a = beside(c, c->raw[0]->t, c->raw[1]->t, &shape),
          *b = beside(c, c->raw[1]->t, c->raw[0]->t, &other);
  OnnxDone done = a && b ? DONE : DONE_ERROR;
  for (int64_t i = 0, n = done == DONE ? tg_numel(shape) : 0; i < n && done == DONE; i++) {
    if (!sizes_paired(ctx, p, a[i], b[i], &a[i])) done = DONE_NOT;
    if (tg_error(ctx)) done = DONE_ERROR;
  }
  bool truth = p >= EQUAL;
  c->sizes = truth ? TG_DTYPE_DEFAULT : c->raw[0]->sizes ? c->raw[0]->sizes : c->raw[1]->sizes;
  if (done == DONE) done = list_made(c, a, shape, truth);
  tg_free(ctx, a), tg_free(ctx, b);
  return done;
}

/* ReduceProd of a list of sizes: the number of elements. */
static OnnxDone product(OnnxCall *c) {
  TgContext *ctx = c->run->m->ctx;
  const OnnxVal *v = c->raw[0];
  if (tg_ndim(v->t) != 1 || attr_i(c, "noop_with_empty_axes", 0)) return DONE_NOT;
  int64_t *list = list_read(c->run, v->t), all = 1;
  for (int64_t i = 0; list && i < tg_numel(v->t); i++)
    all = tg_size_mul(ctx, all, list[i]);
  tg_free(ctx, list);
  if (!list || tg_error(ctx)) return DONE_ERROR;
  c->sizes = v->sizes;
  bool keep = attr_i(c, "keepdims", 1);
  return list_made(c, &all, keep ? tg_slice(v->t, 0, 0, 1) : tg_select(v->t, 0, 0), false);
}

/* A cast to 32 or 64 bits leaves the list unchanged, because a symbolic size does not fit 32 bits. */
static OnnxDone cast(OnnxCall *c) {
  TgTensor *t = c->raw[0]->t;
  c->sizes = onnx_dtype(attr_i(c, "to", 0));
  memset(c->out, 0, (size_t)c->n->nout * sizeof *c->out);
  if (!is_whole(c->sizes)) return DONE_NOT;
  return (c->out[0] = shaped_as(t, t)) && outputs_kept(c) ? DONE : DONE_ERROR;
}

OnnxDone onnx_sizes_node(OnnxCall *c) {
  bool any = false, small;
  for (int i = 0; i < c->nin; i++)
    any = any || (c->raw[i] && c->raw[i]->sizes);
  if (!any || c->n->def->domain == DOMAIN_MICROSOFT || c->n->def->form == FORM_CONTROL) return DONE_NOT;
  Pair pair = pair_of(c);
  OnnxDone done = pair < PAIRS                      ? paired(c, pair)
                  : !strcmp(c->n->op, "ReduceProd") ? product(c)
                  : !strcmp(c->n->op, "Cast")       ? cast(c)
                                                    : DONE_NOT;
  if (done != DONE_NOT) return done;
  bool moved = moves(c);
  if (moved) {
    c->ctx = c->run->m->host;
    return outputs_made(c, &small) && outputs_kept(c) ? DONE : DONE_ERROR;
  }
  c->sizes = TG_DTYPE_DEFAULT;
  c->lists = 0;
  return DONE_NOT;
}

bool onnx_sizes_fit(OnnxCall *c) {
  for (int i = 0; !c->n->def->sized && i < c->nin; i++)
    for (int a = 0; c->raw[i] && c->raw[i]->t && a < tg_ndim(c->raw[i]->t); a++)
      if (tg_is_symbolic(c->raw[i]->t, a))
        return call_fail(c, TG_ERR_SHAPE,
                         "axis %d of input %d has a symbolic size, which the operator does not take", a, i),
               false;
  return true;
}
