/* getitem.c: x[..] as a list of TgIndex, read and written. In: a tensor and a list. Out: a view if every
 * index is a range (movement alone), otherwise a GATHER. A write is a store to the view, otherwise a
 * SCATTER. As in PyTorch and tinygrad, numbers, ranges and new axes are applied first. Index tensors are
 * broadcast together, and their axes are put where the first one was, or in front if something else is
 * between them. */
#include "tensor/front.h"
#include "tensor/multi.h"

/* An axis of x. kind: r(ange), a(t begin), t(ensor). */
typedef struct Axis {
  char kind;
  int64_t begin, count, step;
  TgTensor *index;
} Axis;

typedef struct Plan {
  int nitem, ntensor; /* item: r, n(ew), t; in the order of the result, before the axes of tensors move */
  char item[2 * TG_MAX_RANK];
  Axis axis[TG_MAX_RANK];
  const Ints *index_shape; /* the shape of all index tensors broadcast together */
  int ndim, at;            /* rank of the result; where the axes of index_shape begin */
  int64_t dims[TG_MAX_RANK];
} Plan;

static bool is_symbolic(UOpStore *st, int64_t d) { return dim_symbolic(d) && dim_known(st, d); }

/* Handles an axis of symbolic size: all of it, or a slice of step 1. */
static bool symbolic_range(const char *op, TgTensor *x, const TgIndex *i, int axis, Axis *a) {
  UOpStore *st = x->ctx->store;
  int64_t size = dims(x)[axis], b = i->begin == TG_OPEN ? 0 : i->begin, e = i->end == TG_OPEN ? size : i->end;
  bool back = i->kind == TG_INDEX_STEP && i->step == -1 && i->begin == TG_OPEN && i->end == TG_OPEN;
  *a = (Axis){'r', back ? dim_sub(st, size, 1) : 0, size, back ? -1 : 1, NULL};
  if (back) return true;
  TG_REQUIRE_OR(x->ctx, i->kind != TG_INDEX_STEP || i->step == 1, false, TG_ERR_SHAPE,
                "%s: a slice of step %lld of axis %d of %s, whose size is symbolic", op, (long long)i->step,
                axis, SHAPE_OF(x));
  if (!slice_bounds(op, x, axis, &b, &e)) return false;
  a->begin = b;
  a->count = dim_sub(st, e, b);
  return true;
}

static bool range_of(const char *op, TgTensor *x, const TgIndex *i, int axis, Axis *a) {
  TgContext *ctx = x->ctx;
  int64_t size = dims(x)[axis];
  if (dim_symbolic(size) || is_symbolic(ctx->store, i->begin) || is_symbolic(ctx->store, i->end))
    return symbolic_range(op, x, i, axis, a);
  int64_t step = i->step == 0 ? 1 : i->step, b = i->begin, e = i->end;
  TG_REQUIRE_OR(ctx, i->step != 0 || i->kind != TG_INDEX_STEP, false, TG_ERR_VALUE, "%s: a slice of step 0",
                op);
  TG_REQUIRE_OR(ctx, step > -INT64_MAX && step < INT64_MAX, false, TG_ERR_VALUE, "%s: a slice of step %lld",
                op, (long long)step);
  int64_t least = step < 0 ? -1 : 0, most = step < 0 ? size - 1 : size;
  b = b == TG_OPEN ? (step < 0 ? most : least) : TG_MIN(TG_MAX(b < 0 ? b + size : b, least), most);
  e = e == TG_OPEN ? (step < 0 ? least : most) : TG_MIN(TG_MAX(e < 0 ? e + size : e, least), most);
  int64_t span = step < 0 ? b - e : e - b, by = step < 0 ? -step : step;
  *a = (Axis){'r', b, span > 0 ? (span - 1) / by + 1 : 0, step, NULL};
  return true;
}

static bool tensor_of(TgContext *ctx, const char *op, int at, TgTensor *t, int64_t size, Plan *p, Axis *a) {
  TG_REQUIRE_OR(ctx, t && t->ctx == ctx, false, TG_ERR_VALUE, "%s: index %d is NULL or of another context",
                op, at);
  TG_REQUIRE_OR(ctx, dtype_is_int(dt(t)), false, TG_ERR_DTYPE, "%s: index %d is %s, not an integer", op, at,
                dtype_name(dt(t)));
  const Ints *s = p->index_shape ? shape_broadcast(ctx, op, p->index_shape, t->uop->shape) : t->uop->shape;
  if (!s) return false;
  if (!dtype_is_unsigned(dt(t))) {
    TgDType wide = dtype_size(dt(t)) == 8 || dim_max(ctx->store, size) > INT32_MAX ? TG_I64 : TG_I32;
    t = tg_where(tg_lt_scalar(t, 0), tg_add(tensor_cast(t, wide), tg_size_tensor(ctx, size, wide)), t);
  }
  p->index_shape = s;
  p->ntensor++;
  *a = (Axis){.kind = 't', .index = t};
  return t != NULL;
}

/* What a list of indices asks for, counted before anything is made. */
typedef struct Asked {
  int axes, dots, news; /* named axes of x; "..."; new axes */
} Asked;

static bool indices_count(TgContext *ctx, const char *op, TgTensor *x, const TgIndex *idx, int n, Asked *c) {
  *c = (Asked){0};
  TG_REQUIRE_OR(ctx, n >= 0 && (n == 0 || idx), false, TG_ERR_VALUE, "%s: %d indices", op, n);
  for (int i = 0; i < n; i++) {
    TgIndexKind kind = idx[i].kind;
    TG_REQUIRE_OR(ctx, (unsigned)kind <= TG_INDEX_MASK, false, TG_ERR_VALUE, "%s: index %d has kind %d", op,
                  i, (int)kind);
    if (kind == TG_INDEX_MASK)
      TG_REQUIRE_OR(ctx, idx[i].tensor && idx[i].tensor->ctx == ctx, false, TG_ERR_VALUE,
                    "%s: mask %d is NULL or of another context", op, i);
    if (kind == TG_INDEX_ELLIPSIS)
      c->dots++;
    else if (kind == TG_INDEX_NEW)
      c->news++;
    else
      c->axes += kind == TG_INDEX_MASK ? rank(idx[i].tensor) : 1;
  }
  TG_REQUIRE_OR(ctx, c->dots <= 1, false, TG_ERR_VALUE, "%s: two ellipses", op);
  TG_REQUIRE_OR(ctx, c->axes <= rank(x), false, TG_ERR_SHAPE, "%s: %d indices for %s", op, c->axes,
                SHAPE_OF(x));
  TG_REQUIRE_OR(ctx, rank(x) + c->news <= TG_MAX_RANK, false, TG_ERR_LIMIT, "%s: %d new axes for %s", op,
                c->news, SHAPE_OF(x));
  return true;
}

/* Turns a mask into the places where it is true, as one index tensor for each axis of x from `axis` on. */
static bool mask_plan(const char *op, TgTensor *x, int i, TgTensor *mask, int axis, Plan *p) {
  TgContext *ctx = x->ctx;
  TG_REQUIRE_OR(ctx, dt(mask) == DT_BOOL, false, TG_ERR_DTYPE, "%s: mask %d is %s, not bool", op, i,
                dtype_name(dt(mask)));
  bool same = rank(mask) >= 1;
  for (int d = 0; same && d < rank(mask); d++)
    same = dims(mask)[d] == dims(x)[axis + d];
  TG_REQUIRE_OR(ctx, same, false, TG_ERR_SHAPE, "%s: mask %s for axes from %d of %s", op, SHAPE_OF(mask),
                axis, SHAPE_OF(x));
  TgTensor *at = tg_nonzero(mask);
  for (int d = 0; d < rank(mask); d++, axis++) {
    TgTensor *column = tg_select(at, 1, d);
    if (!column || !tensor_of(ctx, op, i, column, dims(x)[axis], p, &p->axis[axis])) return false;
    p->item[p->nitem++] = 't';
  }
  return true;
}

/* Handles an index that takes one axis of x: a number, a tensor or a range. */
static bool axis_plan(const char *op, TgTensor *x, int i, const TgIndex *index, int axis, Plan *p) {
  TgContext *ctx = x->ctx;
  int64_t size = dims(x)[axis];
  Axis *a = &p->axis[axis];
  if (index->kind == TG_INDEX_AT) {
    UOpStore *st = ctx->store;
    int64_t at = is_negative(index->begin) ? dim_add(st, size, index->begin) : index->begin;
    char text[96];
    dim_print(st, index->begin, text, sizeof text);
    TG_REQUIRE_OR(ctx, dim_le(st, 0, at) && dim_le(st, dim_add(st, at, 1), size), false, TG_ERR_SHAPE,
                  "%s: index %s on axis %d of %s", op, text, axis, SHAPE_OF(x));
    *a = (Axis){'a', at, 1, 1, NULL};
    return true;
  }
  static const TgIndex whole = {.kind = TG_INDEX_SLICE, .begin = TG_OPEN, .end = TG_OPEN};
  bool is_tensor = index->kind == TG_INDEX_TENSOR;
  if (is_tensor ? !tensor_of(ctx, op, i, index->tensor, size, p, a)
                : !range_of(op, x, index->kind == TG_INDEX_ALL ? &whole : index, axis, a))
    return false;
  p->item[p->nitem++] = is_tensor ? 't' : 'r';
  return true;
}

/* Finds the axes of the result. Those of the index tensors are put where the first tensor was, or in front
 * if the tensors are not neighbours. */
static bool result_axes(const char *op, TgTensor *x, Plan *p) {
  int first = -1, last = -1, n = 0, from = 0;
  for (int i = 0; i < p->nitem; i++)
    if (p->item[i] == 't') {
      first = first < 0 ? i : first;
      last = i;
    }
  bool apart = last - first + 1 != p->ntensor, placed = false; /* only used if there are index tensors */
  int64_t d[3 * TG_MAX_RANK];
  for (int i = -1; i < p->nitem; i++) {
    if (p->ntensor && !placed && (apart ? i < 0 : i == first)) {
      p->at = n;
      placed = true;
      for (int b = 0; b < p->index_shape->n; b++)
        d[n++] = p->index_shape->v[b];
    }
    if (i < 0 || p->item[i] == 't') continue;
    if (p->item[i] == 'n') {
      d[n++] = 1;
      continue;
    }
    while (p->axis[from].kind != 'r')
      from++;
    d[n++] = p->axis[from++].count;
  }
  TG_REQUIRE_OR(x->ctx, n <= TG_MAX_RANK, false, TG_ERR_LIMIT, "%s: a result of %d axes from %s", op, n,
                SHAPE_OF(x));
  p->ndim = n;
  memcpy(p->dims, d, (size_t)n * sizeof *d);
  return shape_check(x->ctx, op, n, d, NULL);
}

/* Plans an access. Axes that no index names are whole: they stand for "...", or follow all others. */
static bool plan(const char *op, TgTensor *x, const TgIndex *idx, int n, Plan *p) {
  *p = (Plan){0};
  Asked asked;
  if (!indices_count(x->ctx, op, x, idx, n, &asked)) return false;
  int axis = 0;
  for (int i = 0; i < n + !asked.dots; i++) {
    TgIndexKind kind = i < n ? idx[i].kind : TG_INDEX_ELLIPSIS;
    if (kind == TG_INDEX_NEW)
      p->item[p->nitem++] = 'n';
    else if (kind == TG_INDEX_ELLIPSIS)
      for (int k = asked.axes; k < rank(x); k++, axis++) {
        p->axis[axis] = (Axis){'r', 0, dims(x)[axis], 1, NULL};
        p->item[p->nitem++] = 'r';
      }
    else if (kind == TG_INDEX_MASK) {
      if (!mask_plan(op, x, i, idx[i].tensor, axis, p)) return false;
      axis += rank(idx[i].tensor);
    } else if (!axis_plan(op, x, i, &idx[i], axis++, p))
      return false;
  }
  return result_axes(op, x, p);
}

/* Takes `count` places of an axis, from `low` on, every by-th. The axis is cut into whole steps. If the
 * last step does not fit, the cut begins earlier where there is room, or the end is padded, and the
 * padding is not visible. So the result is still a view. */
static UOp *every(UOpStore *st, UOp *u, int axis, int64_t low, int64_t count, int64_t by) {
  int64_t be[2 * TG_MAX_RANK], pad[2 * TG_MAX_RANK] = {0}, d[TG_MAX_RANK], phase = 0, before = 1, behind = 1;
  if (!u) return NULL;
  int64_t size = u->shape->v[axis], end = low + count * by, over = TG_MAX(end - size, 0);
  if (over <= low) {
    phase = over;
    low -= over;
    end -= over;
  } else
    pad[2 * axis + 1] = over;
  for (int i = 0; i < u->shape->n; i++) {
    be[2 * i] = i == axis ? low : 0;
    be[2 * i + 1] = i == axis ? TG_MIN(end, size) : u->shape->v[i];
    d[i] = i == axis ? count : u->shape->v[i];
    if (i < axis) before = dim_mul(st, before, d[i]);
    if (i > axis) behind = dim_mul(st, behind, d[i]);
  }
  int n = u->shape->n;
  u = u_pad(st, u_shrink(st, u, be), pad);
  u = u_reshape(st, u, 4, (int64_t[]){before, count, by, behind});
  u = u_shrink(st, u, (int64_t[]){0, before, 0, count, phase, phase + 1, 0, behind});
  return u_reshape(st, u, n, d);
}

/* Applies ranges and numbers by movement. The axes of index tensors stay whole. */
static UOp *view_of(UOpStore *st, UOp *u, const Plan *p) {
  int n = u->shape->n, k = 0;
  int64_t be[2 * TG_MAX_RANK] = {0}, flip[TG_MAX_RANK] = {0}, d[2 * TG_MAX_RANK];
  const Ints *whole = u->shape;
  for (int i = 0; i < n; i++) { /* first the cuts without a step */
    const Axis *a = &p->axis[i];
    bool steps = a->kind == 'r' && a->count > 1 && a->step != 1 && a->step != -1;
    bool all = a->kind == 't' || steps || (dim_symbolic(a->count) && a->step < 0);
    flip[i] = a->kind == 'r' && a->step < 0;
    int64_t low = a->count == 0 ? 0 : a->step < 0 && a->count > 1 ? a->begin - (a->count - 1) : a->begin;
    be[2 * i] = all ? 0 : low;
    be[2 * i + 1] = all ? whole->v[i] : dim_add(st, low, a->count);
  }
  u = u_shrink(st, u, be);
  for (int i = 0; i < n; i++) {
    const Axis *a = &p->axis[i];
    int64_t by = a->step < 0 ? -a->step : a->step;
    if (a->kind == 'r' && a->count > 1 && by > 1)
      u = every(st, u, i, a->step < 0 ? a->begin - (a->count - 1) * by : a->begin, a->count, by);
  }
  u = u_flip(st, u, flip);
  if (!u) return NULL;
  for (int i = 0, a = 0; i < p->nitem || a < n; i++) { /* numbers disappear, new axes appear */
    while (a < n && p->axis[a].kind == 'a')
      a++;
    if (i >= p->nitem) break;
    d[k++] = p->item[i] == 'n' ? 1 : u->shape->v[a++];
  }
  return u_reshape(st, u, k, d);
}

/* Makes, for each axis of what view_of returns (whole: of x itself), an integer tensor of the result's
 * shape that says where each element comes from. */
static bool places(TgTensor *x, const Plan *p, bool whole, UOp **at) {
  UOpStore *st = x->ctx->store;
  const Ints *shape = ints_get(st, p->ndim, p->dims);
  int out = p->ntensor && p->at == 0 && p->item[0] != 't' ? p->index_shape->n : 0, k = 0;
  bool put = out > 0; /* the axes of the index tensors precede all others */
  int64_t d[TG_MAX_RANK];
  for (int i = 0, a = 0; shape && (i < p->nitem || a < rank(x)); i++) {
    for (; a < rank(x) && p->axis[a].kind == 'a'; a++)
      if (whole)
        at[k++] = u_full(st, p->axis[a].begin > INT32_MAX ? DT_I64 : DT_I32, (Scalar){.i = p->axis[a].begin},
                         shape);
    if (i >= p->nitem) break;
    const Axis *ax = &p->axis[a];
    if (p->item[i] == 't') {
      UOp *u = ax->index->uop;
      int b = p->index_shape->n;
      for (int j = 0; j < p->ndim; j++)
        d[j] = 1;
      for (int j = 0; j < u->shape->n; j++)
        d[p->at + b - u->shape->n + j] = u->shape->v[j];
      at[k++] = u_expand(st, u_reshape(st, u, p->ndim, d), shape->v);
      if (!put) {
        out += b;
        put = true;
      }
      a++;
    } else if (p->item[i] == 'n') {
      if (!whole) at[k++] = u_full(st, DT_I32, (Scalar){.i = 0}, shape);
      out++;
    } else {
      bool wide = dim_max(st, dims(x)[a]) > INT32_MAX;
      UOp *u = u_arange(st, shape, out++, wide ? DT_I64 : DT_I32);
      if (whole && u && ax->step != 1) u = uop_alu2(st, OPS_MUL, u, u_num(st, (double)ax->step, u));
      if (whole && u && ax->begin) u = uop_alu2(st, OPS_ADD, u, u_num(st, (double)ax->begin, u));
      at[k++] = u;
      a++;
    }
    if (k && !at[k - 1]) return false;
  }
  return shape != NULL;
}

TgTensor *tg_getitem(TgTensor *x, const TgIndex *idx, int n) {
  Plan p;
  if (!x || !plan("getitem", x, idx, n, &p)) return NULL;
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  UOp *at[TG_MAX_RANK];
  bool empty = false;
  for (int i = 0; i < p.ndim; i++)
    empty = empty || p.dims[i] == 0;
  if (empty)
    return tensor_new(ctx, u_full(st, dt(x), op_identity(OPS_ADD, dt(x)), ints_get(st, p.ndim, p.dims)));
  UOp *v = view_of(st, x->uop, &p);
  if (!v || !p.ntensor) return tensor_view(x, v);
  return tensor_new(ctx, places(x, &p, false, at) ? u_gather(st, v, at) : NULL);
}

/* ---- writing */
/* Returns x with value at the places, as a SCATTER. */
static UOp *written(TgTensor *x, const Plan *p, TgTensor *value, bool add) {
  UOp *at[TG_MAX_RANK];
  UOpStore *st = x->ctx->store;
  UOp *v = u_broadcast(st, value->uop, ints_get(st, p->ndim, p->dims));
  if (rank(x) == 0) return add ? uop_alu2(st, OPS_ADD, x->uop, v) : v;
  return places(x, p, true, at) ? u_scatter(st, add ? OPS_ADD : OPS_STORE, 0, x->uop, v, at) : NULL;
}

static bool value_fits(const char *op, TgTensor *x, const Plan *p, TgTensor *value) {
  TG_NUMBERS_OR(x, op, false);
  TG_NUMBERS_OR(value, op, false);
  if (!dims_numbers(x->ctx, op, p->ndim, p->dims)) return false;
  TgContext *ctx = x->ctx;
  const Ints *shape = ints_get(ctx->store, p->ndim, p->dims);
  TG_REQUIRE_OR(ctx, shape, false, TG_ERR_NOMEM, "%s: out of memory", op);
  const Ints *s = shape_broadcast(ctx, op, value->uop->shape, shape);
  if (!s) return false;
  TG_REQUIRE_OR(ctx, dt(value) == dt(x), false, TG_ERR_DTYPE, "%s: %s to a tensor of %s", op,
                dtype_name(dt(value)), dtype_name(dt(x)));
  TG_REQUIRE_OR(ctx, s == shape, false, TG_ERR_SHAPE, "%s: %s to a place of shape %s", op, SHAPE_OF(value),
                shape_text(ctx->store, shape).s);
  return true;
}

TgTensor *tg_index_put_opt(TgTensor *x, const TgIndex *idx, int n, TgTensor *value,
                           const TgIndexPutOptions *opt) {
  Plan p;
  TG_OPTIONS(tg_context(x), "index_put", TgIndexPutOptions, o, opt);
  if (!ctx_two("index_put", x, value) || !plan("index_put", x, idx, n, &p) ||
      !value_fits("index_put", x, &p, value))
    return NULL;
  UOp *u = written(x, &p, value, o.accumulate && dt(x) != DT_BOOL);
  return tensor_new(x->ctx, u);
}

TgTensor *tg_setitem(TgTensor *x, const TgIndex *idx, int n, TgTensor *value) {
  Plan p;
  if (!ctx_two("setitem", x, value) || !plan("setitem", x, idx, n, &p) ||
      !value_fits("setitem", x, &p, value))
    return NULL;
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  for (int i = 0; i < p.ndim; i++)
    if (p.dims[i] == 0) return x;
  /* x is an expression: it becomes another graph, through which both gradients pass */
  if (!x->memory && !x->part) {
    UOp *u = written(x, &p, value, false);
    TG_REQUIRE(ctx, u, TG_ERR_NOMEM, "setitem: out of memory");
    tensor_changes(x);
    tensor_set(x, u);
    return x;
  }
  if (!place_ready("setitem", x, true)) return NULL;
  UOp *view = p.ntensor ? x->uop : view_of(st, x->uop, &p);
  bool part = !p.ntensor && (!x->part || shard_is_view(x, view)); /* otherwise all of x is stored */
  UOp *stored = part ? u_broadcast(st, value->uop, view ? view->shape : NULL) : written(x, &p, value, false);
  if (!part) view = x->uop;
  return store_to(x, view, stored) ? x : NULL;
}

TgTensor *tg_setitem_scalar(TgTensor *x, const TgIndex *idx, int n, double value) {
  return x ? tg_setitem(x, idx, n, tg_full(x->ctx, TG_SCALAR, value, .dtype = tg_dtype(x))) : NULL;
}
