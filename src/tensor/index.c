/* index.c: tensors that are read and written at places that are data. In: integer tensors. Out: GATHER and
 * SCATTER nodes with one index for each axis. The index of an axis that no data names is an ARANGE, which
 * costs nothing. A place outside the tensor reads 0 and is not written. */
#include "tensor/front.h"

/* Checks that index fits x on every axis except a. */
static bool one_place_each(const char *op, TgTensor *x, int a, TgTensor *index) {
  TG_REQUIRE_OR(x->ctx, is_index_dtype(index), false, TG_ERR_DTYPE, "%s: an index of %s", op,
                dtype_name(dt(index)));
  TG_REQUIRE_OR(x->ctx, rank(index) == rank(x), false, TG_ERR_SHAPE, "%s: %s by index %s", op, SHAPE_OF(x),
                SHAPE_OF(index));
  for (int i = 0; i < rank(x); i++)
    TG_REQUIRE_OR(x->ctx, i == a || dim_le(x->ctx->store, dims(index)[i], dims(x)[i]), false, TG_ERR_SHAPE,
                  "%s: %s by index %s", op, SHAPE_OF(x), SHAPE_OF(index));
  return true;
}

/* ---- reading */
TgTensor *tg_take(TgTensor *x, TgTensor *index) {
  TgContext *ctx = ctx_two("take", x, index);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, is_index_dtype(index), TG_ERR_DTYPE, "take: an index of %s", dtype_name(dt(index)));
  TG_REQUIRE(ctx, rank(x) >= 1 && rank(x) + rank(index) - 1 <= TG_MAX_RANK, TG_ERR_SHAPE,
             "take: rows of %s by index %s", SHAPE_OF(x), SHAPE_OF(index));
  UOpStore *st = ctx->store;
  int64_t d[TG_MAX_RANK], e[TG_MAX_RANK];
  int n = rank(index), r = n + rank(x) - 1;
  for (int i = 0; i < r; i++) {
    d[i] = i < n ? dims(index)[i] : dims(x)[i - n + 1];
    e[i] = i < n ? d[i] : 1;
  }
  if (!shape_check(ctx, "take", r, d, NULL)) return NULL;
  const Ints *s = ints_get(st, r, d);
  if (!s) return NULL;
  UOp *at[TG_MAX_RANK];
  at[0] = u_broadcast(st, u_reshape(st, index->uop, r, e), s);
  for (int i = n; i < r; i++)
    at[i - n + 1] = u_arange(st, s, i, dim_max(st, d[i]) > INT32_MAX ? DT_I64 : DT_I32);
  return tensor_new(ctx, u_gather(st, x->uop, at));
}

TgTensor *tg_embedding(TgTensor *weight, TgTensor *index) { return tg_take(weight, index); }

TgTensor *tg_gather(TgTensor *x, int axis, TgTensor *index) {
  TgContext *ctx = ctx_two("gather", x, index);
  if (!ctx) return NULL;
  int a = axis_get(ctx, "gather", axis, rank(x));
  if (a < 0 || !one_place_each("gather", x, a, index)) return NULL;
  return tensor_new(ctx, u_pick(ctx->store, x->uop, a, index->uop));
}

TgTensor *tg_one_hot(TgTensor *labels, int64_t n) {
  if (!labels) return NULL;
  TgContext *ctx = labels->ctx;
  UOpStore *st = ctx->store;
  TG_REQUIRE(ctx, is_index_dtype(labels), TG_ERR_DTYPE, "one_hot: labels of %s", dtype_name(dt(labels)));
  TG_REQUIRE(ctx, n >= 0, TG_ERR_VALUE, "one_hot: %lld classes", (long long)n);
  int64_t d[TG_MAX_RANK + 1];
  int r = rank(labels);
  for (int i = 0; i < r; i++)
    d[i] = dims(labels)[i];
  d[r] = n;
  if (!shape_check(ctx, "one_hot", r + 1, d, NULL)) return NULL;
  const Ints *s = ints_get(st, r + 1, d);
  DType wide = dtype_size(dt(labels)) < 4 ? DT_I32 : dt(labels);
  TgTensor *l = tg_unsqueeze(tensor_cast(labels, dtype_public(wide)), -1);
  if (!l || !s) return NULL;
  UOp *i = u_arange(st, s, r, n > INT32_MAX ? DT_I64 : DT_I32);
  return tensor_new(
      ctx, uop_cast(st, uop_alu2(st, OPS_CMPEQ, u_broadcast(st, l->uop, s), uop_cast(st, i, wide)), DT_I32));
}

/* ---- writing */
typedef struct Scatter {
  UOpStore *st;
  UOp *x, *v, *at[TG_MAX_RANK];
} Scatter;

/* Makes the common checks. v is cut to the shape of index. A tensor of rank 0 counts as one with a single
 * element. */
static TgContext *scatter_begin(const char *op, TgTensor *x, int axis, TgTensor *index, TgTensor *v,
                                Scatter *s) {
  TgContext *ctx = ctx_two(op, x, index);
  if (!ctx || !ctx_two(op, x, v)) return NULL;
  bool scalar = rank(x) == 0 && rank(index) == 0 && rank(v) == 0 && (axis == 0 || axis == -1);
  int a = scalar ? 0 : axis_get(ctx, op, axis, rank(x));
  if (a < 0 || (!scalar && !one_place_each(op, x, a, index))) return NULL;
  TG_REQUIRE(ctx, dt(v) == dt(x), TG_ERR_DTYPE, "%s: %s into %s", op, dtype_name(dt(v)), dtype_name(dt(x)));
  bool fits = rank(v) == rank(x);
  int64_t be[2 * TG_MAX_RANK];
  for (int i = 0; fits && i < rank(v); i++) {
    fits = dim_le(ctx->store, dims(index)[i], dims(v)[i]);
    be[2 * i] = 0;
    be[2 * i + 1] = dims(index)[i];
  }
  TG_REQUIRE(ctx, fits, TG_ERR_SHAPE, "%s: values %s for index %s", op, SHAPE_OF(v), SHAPE_OF(index));
  int64_t one = 1;
  UOp *at = index->uop;
  s->st = ctx->store;
  s->x = x->uop;
  s->v = scalar ? v->uop : u_shrink(s->st, v->uop, be);
  if (scalar) {
    s->x = u_reshape(s->st, s->x, 1, &one);
    s->v = u_reshape(s->st, s->v, 1, &one);
    at = u_reshape(s->st, at, 1, &one);
  }
  if (!at || !s->v || !s->x) return NULL;
  u_places(s->st, at->shape, a, at, s->at);
  return ctx;
}

static TgTensor *scatter_end(TgContext *ctx, TgTensor *x, UOp *u) {
  return tensor_new(ctx, u ? u_reshape(ctx->store, u, rank(x), dims(x)) : NULL);
}

TgTensor *tg_scatter_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src, const TgScatterOptions *opt) {
  TG_OPTIONS(tg_context(x), "scatter", TgScatterOptions, o, opt);
  Scatter s;
  TgContext *ctx = scatter_begin("scatter", x, axis, index, src, &s);
  if (!ctx) return NULL;
  static const Ops by[] = {
      [TG_SCATTER_SET] = OPS_STORE, [TG_SCATTER_ADD] = OPS_ADD, [TG_SCATTER_MULTIPLY] = OPS_MUL};
  TG_REQUIRE(ctx, (unsigned)o.reduce < TG_COUNT(by), TG_ERR_VALUE,
             "scatter: reduce %d; scatter_reduce has the others", (int)o.reduce);
  return scatter_end(ctx, x, u_scatter(s.st, by[o.reduce], 0, s.x, s.v, s.at));
}

/* The minimum is the maximum in the reversed order. A mean is a sum divided by the number of elements that
 * met there. */
TgTensor *tg_scatter_reduce_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src, TgScatterReduce how,
                                const TgScatterOptions *opt) {
  TG_OPTIONS(tg_context(x), "scatter_reduce", TgScatterOptions, o, opt);
  Scatter s;
  TgContext *ctx = scatter_begin("scatter_reduce", x, axis, index, src, &s);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, how >= TG_SCATTER_ADD && how <= TG_SCATTER_AMIN, TG_ERR_VALUE, "scatter_reduce: reduce %d",
             (int)how);
  UOpStore *st = ctx->store;
  DType d = dt(x), out = d, acc = d;
  bool min = how == TG_SCATTER_AMIN, mean = how == TG_SCATTER_MEAN;
  Ops op = how == TG_SCATTER_MULTIPLY ? OPS_MUL : how >= TG_SCATTER_AMAX ? OPS_MAX : OPS_ADD;
  if (op == OPS_ADD) {
    acc = sum_dtype(mean ? dtype_as_float(d) : d);
    out = mean ? dtype_as_float(d) : dtype_is_float(d) ? d : acc;
  }
  if (d == DT_BOOL && op == OPS_MAX) acc = DT_U8;
  UOp *to = uop_cast(st, s.x, acc), *v = uop_cast(st, s.v, acc), *met = NULL, *count = NULL;
  if (min) {
    to = u_reversed(st, to);
    v = u_reversed(st, v);
  }
  if (!to || !v) return NULL;
  if (o.exclude_self) {
    met = u_scatter(st, OPS_STORE, 0, u_full(st, DT_BOOL, (Scalar){.i = 0}, to->shape),
                    u_full(st, DT_BOOL, (Scalar){.i = 1}, v->shape), s.at);
    to = uop_where(st, met, u_full(st, acc, op_identity(op, acc), to->shape), to);
  }
  UOp *r = u_scatter(st, op, 0, to, v, s.at);
  if (min) r = u_reversed(st, r);
  if (mean && r) {
    UOp *one = u_num(st, 1, r);
    count = u_scatter(st, OPS_ADD, 0, met ? uop_where(st, met, u_num(st, 0, r), one) : one, u_num(st, 1, v),
                      s.at);
    r = uop_alu2(st, OPS_FDIV, r, count);
  }
  return scatter_end(ctx, x, uop_cast(st, r, out));
}

/* ---- places where a condition holds: their number is data, so it is read back unless the caller says how
 * many are wanted */
/* Returns where each true place of a flat mask goes (-1: it is false), and their number in *count. */
static UOp *order_of_true(UOpStore *st, UOp *mask, UOp **count) {
  int64_t n = mask->shape->v[0];
  DType d = n > INT32_MAX ? DT_I64 : DT_I32;
  bool all = true;
  UOp *one = uop_cast(st, mask, d), *upto = u_scan(st, OPS_ADD, one, 0);
  *count = u_reduce(st, OPS_ADD, one, &all);
  return upto ? uop_where(st, mask, uop_alu2(st, OPS_SUB, upto, one),
                          u_full(st, d, (Scalar){.i = -1}, upto->shape))
              : NULL;
}

static bool size_of(TgContext *ctx, const char *op, const TgSelectOptions *o, UOp *count, int64_t *size) {
  TG_REQUIRE_OR(ctx, o->size_given >= 0, false, TG_ERR_VALUE, "%s: size %lld", op, (long long)o->size_given);
  *size = o->size_given;
  /* the result may also be rows of coordinates */
  if (o->fixed) return shape_check(ctx, op, 2, (int64_t[]){*size, TG_MAX_RANK}, NULL);
  TgTensor *c = tensor_new(ctx, count);
  if (!c || tg_realize(c)) return false;
  *size = tg_item_i64(c);
  return ctx->err.status == TG_OK;
}

TgTensor *tg_masked_select_opt(TgTensor *x, TgTensor *mask, const TgSelectOptions *opt) {
  TG_NUMBERS(x, "masked_select");
  TG_NUMBERS(mask, "masked_select");
  TgContext *ctx = ctx_two("masked_select", x, mask);
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "masked_select", TgSelectOptions, o, opt);
  TG_REQUIRE(ctx, dt(mask) == DT_BOOL, TG_ERR_DTYPE, "masked_select: a mask of %s", dtype_name(dt(mask)));
  const Ints *s = shape_broadcast(ctx, "masked_select", mask->uop->shape, x->uop->shape);
  if (!s) return NULL;
  TG_REQUIRE(ctx, s == x->uop->shape, TG_ERR_SHAPE, "masked_select: mask %s for %s", SHAPE_OF(mask),
             SHAPE_OF(x));
  UOpStore *st = ctx->store;
  int64_t n = nelem(x), size;
  UOp *m = u_reshape(st, u_broadcast(st, mask->uop, s), 1, &n);
  UOp *v = u_reshape(st, x->uop, 1, &n);
  UOp *count;
  UOp *at = m ? order_of_true(st, m, &count) : NULL;
  if (!at || !v) return tensor_new(ctx, NULL); /* tensor_new records the error */
  if (!size_of(ctx, "masked_select", &o, count, &size)) return NULL;
  DType d = dt(x);
  Scalar fill = scalar_cast(d, DT_F64, (Scalar){.f = o.fill_value});
  return tensor_new(ctx, u_scatter(st, OPS_STORE, 0, u_full(st, d, fill, ints_get(st, 1, &size)), v, &at));
}

TgTensor *tg_nonzero_opt(TgTensor *x, const TgSelectOptions *opt) {
  TG_NUMBERS(x, "nonzero");
  if (!x) return NULL;
  TG_OPTIONS(tg_context(x), "nonzero", TgSelectOptions, o, opt);
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  int64_t n = nelem(x), size, d[2];
  UOp *v = u_reshape(st, x->uop, 1, &n);
  UOp *m = v && dt(x) != DT_BOOL ? uop_alu2(st, OPS_CMPNE, v, u_num(st, 0, v)) : v;
  UOp *count;
  UOp *at = m ? order_of_true(st, m, &count) : NULL;
  if (!at) return tensor_new(ctx, NULL); /* tensor_new records the error */
  if (!size_of(ctx, "nonzero", &o, count, &size)) return NULL;
  d[0] = size;
  d[1] = rank(x);
  Scalar fill = scalar_cast(DT_I32, DT_F64, (Scalar){.f = o.fill_value});
  const Ints *shape = ints_get(st, 2, d), *both = ints_get(st, 2, (int64_t[]){n, d[1]});
  UOp *to = u_full(st, DT_I32, fill, shape), *where[2];
  if (!size || !n || !rank(x)) return tensor_new(ctx, to);
  UOp *coord = NULL; /* (n, rank): the coordinates of each place */
  for (int i = 0; i < rank(x); i++) {
    UOp *c = u_reshape(st, u_arange(st, x->uop->shape, i, DT_I32), 2, (int64_t[]){n, 1});
    UOp *col = both ? u_arange(st, both, 1, DT_I32) : NULL;
    c = u_broadcast(st, c, both);
    coord = coord ? uop_where(st, uop_alu2(st, OPS_CMPEQ, col, u_num(st, i, col)), c, coord) : c;
    if (!coord) return tensor_new(ctx, NULL);
  }
  where[0] = u_broadcast(st, u_reshape(st, at, 2, (int64_t[]){n, 1}), both);
  where[1] = u_arange(st, both, 1, DT_I32);
  return tensor_new(ctx, u_scatter(st, OPS_STORE, 0, to, coord, where));
}
