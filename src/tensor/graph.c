/* graph.c: builders of tensor-graph nodes. Callers have checked the shapes. Trivial operations are dropped
 * here, and NULL is passed through. */
#include "tensor/front.h"
#include <stdio.h>

ShapeText dims_text(UOpStore *st, int n, const int64_t *v) {
  ShapeText t = {"("};
  for (int i = 0; i < n; i++) {
    size_t at = strlen(t.s);
    if (at + 64 > sizeof t.s) break;
    if (i) {
      memcpy(t.s + at, ", ", 3);
      at += 2;
    }
    dim_print(st, v[i], t.s + at, sizeof t.s - at - 2);
  }
  strcat(t.s, ")");
  return t;
}

ShapeText shape_text(UOpStore *st, const Ints *s) { return dims_text(st, s->n, s->v); }

ShapeText tensor_text(const TgTensor *x) { return shape_text(x->ctx->store, x->uop->shape); }

/* ---- dtypes: public and internal numbers. DT_VOID, which is 0, means none. */
static const DType dtype_table[] = {
#define INNER(name, text, bytes, storage)
#define DTYPE(name, text, bytes, storage) [TG_##name] = DT_##name,
#include "uop/dtypes.def"
};

DType dtype_of(TgDType d, DType fallback) {
  if (d == TG_DTYPE_DEFAULT) return fallback;
  return (unsigned)d < TG_COUNT(dtype_table) ? dtype_table[d] : DT_VOID;
}

TgDType dtype_public(DType d) {
  for (size_t i = 1; i < TG_COUNT(dtype_table); i++)
    if (dtype_table[i] == d) return (TgDType)i;
  return TG_DTYPE_DEFAULT;
}

/* The promotion lattice, as the result of each pair. Scalars are not in it: they take the tensor's kind.
 * No integer dtype holds both i64 and u64. tinygrad gives them a float without a width; here they give
 * f32. */
/* clang-format off */
#define DT_E4M3 DT_FP8E4M3
#define DT_E5M2 DT_FP8E5M2
#define ROW(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o) \
  {DT_##a, DT_##b, DT_##c, DT_##d, DT_##e, DT_##f, DT_##g, DT_##h, \
   DT_##i, DT_##j, DT_##k, DT_##l, DT_##m, DT_##n, DT_##o}
static const uint8_t joins[DT_COUNT - DT_BOOL][DT_COUNT - DT_BOOL] = {
  /*            bool  i8    u8    i16   u16   i32   u32   i64   u64   e4m3  e5m2  f16   bf16  f32   f64 */
  /* bool */ ROW(BOOL, I8,   U8,   I16,  U16,  I32,  U32,  I64,  U64,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* i8   */ ROW(I8,   I8,   I16,  I16,  I32,  I32,  I64,  I64,  F32,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* u8   */ ROW(U8,   I16,  U8,   I16,  U16,  I32,  U32,  I64,  U64,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* i16  */ ROW(I16,  I16,  I16,  I16,  I32,  I32,  I64,  I64,  F32,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* u16  */ ROW(U16,  I32,  U16,  I32,  U16,  I32,  U32,  I64,  U64,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* i32  */ ROW(I32,  I32,  I32,  I32,  I32,  I32,  I64,  I64,  F32,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* u32  */ ROW(U32,  I64,  U32,  I64,  U32,  I64,  U32,  I64,  U64,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* i64  */ ROW(I64,  I64,  I64,  I64,  I64,  I64,  I64,  I64,  F32,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* u64  */ ROW(U64,  F32,  U64,  F32,  U64,  F32,  U64,  F32,  U64,  E4M3, E5M2, F16,  BF16, F32,  F64),
  /* e4m3 */ ROW(E4M3, E4M3, E4M3, E4M3, E4M3, E4M3, E4M3, E4M3, E4M3, E4M3, F16,  F16,  BF16, F32,  F64),
  /* e5m2 */ ROW(E5M2, E5M2, E5M2, E5M2, E5M2, E5M2, E5M2, E5M2, E5M2, F16,  E5M2, F16,  BF16, F32,  F64),
  /* f16  */ ROW(F16,  F16,  F16,  F16,  F16,  F16,  F16,  F16,  F16,  F16,  F16,  F16,  F32,  F32,  F64),
  /* bf16 */ ROW(BF16, BF16, BF16, BF16, BF16, BF16, BF16, BF16, BF16, BF16, BF16, F32,  BF16, F32,  F64),
  /* f32  */ ROW(F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F32,  F64),
  /* f64  */ ROW(F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64,  F64),
};
#undef ROW
#undef DT_E4M3
#undef DT_E5M2

/* clang-format on */

DType dtype_join(DType a, DType b) { return (DType)joins[a - DT_BOOL][b - DT_BOOL]; }

DType sum_dtype(DType d) {
  if (dtype_is_narrow_float(d)) return DT_F32;
  if (d == DT_BOOL || d == DT_I8 || d == DT_I16) return DT_I32;
  return d == DT_U8 || d == DT_U16 ? DT_U32 : d;
}

double dtype_lowest(DType d) {
  return d == DT_BOOL || dtype_is_unsigned(d) ? 0 : -ldexp(1, (int)dtype_size(d) * 8 - 1);
}

/* For 64 bits: the largest integer of the dtype that a double can represent. */
double dtype_highest(DType d) {
  if (d == DT_BOOL) return 1;
  int bits = (int)dtype_size(d) * 8 - !dtype_is_unsigned(d);
  return bits > 53 ? ldexp(1, bits) - ldexp(1, bits - 53) : ldexp(1, bits) - 1;
}

/* ---- checks */
TgContext *ctx_two(const char *op, const TgTensor *a, const TgTensor *b) {
  if (!a || !b) return NULL;
  TG_REQUIRE(a->ctx, a->ctx == b->ctx, TG_ERR_VALUE, "%s: the tensors belong to different contexts", op);
  uint64_t on = a->uop->devices, too = b->uop->devices;
  TG_REQUIRE(a->ctx, !on || !too || on == too, TG_ERR_DEVICE,
             "%s: a tensor on %s, shape %s, and one on %s, shape %s; tg_to moves one", op, tg_device(a),
             SHAPE_OF(a), tg_device(b), SHAPE_OF(b));
  return a->ctx;
}

int axis_get(TgContext *ctx, const char *op, int axis, int n) {
  int a = axis < 0 ? axis + n : axis;
  TG_REQUIRE_OR(ctx, a >= 0 && a < n, -1, TG_ERR_SHAPE,
                "%s: axis %d is not in %d .. %d, the axes of a tensor of rank %d", op, axis, -n, n - 1, n);
  return a;
}

/* A size of 0 does not hide that the product of the other sizes is too large. */
bool shape_check(TgContext *ctx, const char *op, int n, const int64_t *d, int64_t *nelem) {
  int64_t total = 1, size = 1;
  TG_LIST_OR(ctx, op, d, n, false);
  TG_REQUIRE_OR(ctx, n >= 0 && n <= TG_MAX_RANK, false, TG_ERR_SHAPE, "%s: rank %d is not in 0 .. %d", op, n,
                TG_MAX_RANK);
  bool zero = false, fits = true;
  for (int i = 0; i < n; i++) {
    TG_REQUIRE_OR(ctx, !is_negative(d[i]), false, TG_ERR_SHAPE, "%s: negative size in %s", op,
                  dims_text(ctx->store, n, d).s);
    TG_REQUIRE_OR(
        ctx, dim_valid(ctx->store, d[i]), false, TG_ERR_SHAPE,
        "%s: size %d of %s is below 0 for some value of its variables, or no symbolic size that is known", op,
        i, dims_text(ctx->store, n, d).s);
    int64_t most = dim_max(ctx->store, d[i]);
    TG_REQUIRE_OR(ctx, !dim_symbolic(d[i]) || most > 1, false, TG_ERR_SHAPE,
                  "%s: symbolic size %d of %s is never above 1", op, i, dims_text(ctx->store, n, d).s);
    if (most == 0)
      zero = true;
    else if (__builtin_mul_overflow(total, most, &total)) {
      fits = false;
      total = 1;
    }
    size = dim_mul(ctx->store, size, d[i]);
  }
  TG_REQUIRE_OR(ctx, fits && total <= INT64_MAX / 16, false, TG_ERR_SHAPE, "%s: too many elements in %s", op,
                dims_text(ctx->store, n, d).s);
  TG_REQUIRE_OR(ctx, size != DIM_BAD, false, TG_ERR_SHAPE,
                "%s: the number of elements in %s is too long a sum of products", op,
                dims_text(ctx->store, n, d).s);
  if (nelem) *nelem = zero ? 0 : size;
  return true;
}

static bool axes_numbers(TgContext *ctx, const char *op, const int64_t *d, int first, int end) {
  for (int i = first; d && i < end; i++) {
    if (!dim_symbolic(d[i])) continue;
    char size[128];
    dim_print(ctx->store, d[i], size, sizeof size);
    error_set(&ctx->err, TG_ERR_SHAPE, "%s: axis %d has the symbolic size %s; a number is needed", op, i,
              size);
    return false;
  }
  return true;
}

bool dims_numbers(TgContext *ctx, const char *op, int n, const int64_t *d) {
  return axes_numbers(ctx, op, d, 0, n);
}

bool last_numbers(const TgTensor *x, const char *op, int first) {
  return !x || axes_numbers(x->ctx, op, dims(x), first, rank(x));
}

int axis_number(const TgTensor *x, const char *op, int axis) {
  int a = axis_get(x->ctx, op, axis, rank(x));
  return a >= 0 && axes_numbers(x->ctx, op, dims(x), a, a + 1) ? a : -1;
}

const Ints *shape_broadcast(TgContext *ctx, const char *op, const Ints *a, const Ints *b) {
  int64_t d[TG_MAX_RANK];
  int n = TG_MAX(a->n, b->n);
  for (int i = 0; i < n; i++) {
    int ia = i - (n - a->n), ib = i - (n - b->n);
    int64_t da = ia < 0 ? 1 : a->v[ia], db = ib < 0 ? 1 : b->v[ib];
    TG_REQUIRE(ctx, da == db || da == 1 || db == 1, TG_ERR_SHAPE, "%s: shapes %s and %s do not broadcast", op,
               shape_text(ctx->store, a).s, shape_text(ctx->store, b).s);
    d[i] = da == 1 ? db : da;
  }
  const Ints *s = shape_check(ctx, op, n, d, NULL) ? ints_get(ctx->store, n, d) : NULL;
  if (!s) error_set(&ctx->err, TG_ERR_NOMEM, "%s: out of memory", op);
  return s;
}

TgAxes axes_or(const TgAxes *a, int axis) { return a->n || a->v[0] ? *a : TG_AXES(axis); }

bool axes_get(TgContext *ctx, const char *op, const TgAxes *a, int n, bool mask[TG_MAX_RANK]) {
  TG_REQUIRE_OR(ctx, a->n || !a->v[0], false, TG_ERR_VALUE, "%s: an axis is written TG_AXES(%d), not %d", op,
                a->v[0], a->v[0]);
  for (int i = 0; i < TG_MAX_RANK; i++)
    mask[i] = a->n == 0 && i < n;
  TG_REQUIRE_OR(ctx, a->n >= 0 && a->n <= TG_MAX_RANK, false, TG_ERR_VALUE, "%s: %d axes", op, a->n);
  for (int i = 0; i < a->n; i++) {
    /* a 0-d tensor has these two axes by convention */
    if (n == 0 && (a->v[i] == 0 || a->v[i] == -1)) continue;
    int axis = axis_get(ctx, op, a->v[i], n);
    if (axis < 0) return false;
    TG_REQUIRE_OR(ctx, !mask[axis], false, TG_ERR_SHAPE, "%s: axis %d is named twice", op, a->v[i]);
    mask[axis] = true;
  }
  return true;
}

bool u_is_arange(const UOp *u, int axis) {
  if (!u) return false;
  const UOp *e = u->op == OPS_EXPAND ? u->src[0] : u, *a = e;
  bool one = u->shape->v[axis] == 1; /* an index into one place may be outside of it */
  for (int i = 0; i < e->shape->n && !one; i++)
    if ((i == axis) != (e->shape->v[i] != 1)) return false;
  while (a->op == OPS_RESHAPE && a->src[0]->is_tensor)
    a = a->src[0];
  return (a->op == OPS_ARANGE && (!one || a->arg.ints->v[0] == 1)) || (one && u_is_number(u, 0));
}

/* ---- places named by data */
static int64_t elements(UOpStore *st, const UOp *u) { return dim_product(st, u->shape); }

static DType places_dtype(UOpStore *st, int64_t size) {
  return dim_max(st, size) > INT32_MAX ? DT_I64 : DT_I32;
}

void u_places(UOpStore *st, const Ints *shape, int axis, UOp *index, UOp **at) {
  for (int d = 0; d < shape->n; d++)
    at[d] = d == axis ? index : u_arange(st, shape, d, places_dtype(st, shape->v[d]));
}

UOp *u_gather(UOpStore *st, UOp *x, UOp *const *at) {
  UOp *src[TG_MAX_RANK + 1] = {x};
  for (int d = 0; x && d < x->shape->n; d++)
    if (!at[d]) return NULL;
  if (!x) return NULL;
  for (int d = 0; d < x->shape->n && !elements(st, at[0]); d++)
    if (at[d]->devices)
      return uop_cast(st, at[d], (DType)x->dtype); /* an empty result, but on the devices
                                                                      * of the indices */
  if (!elements(st, x) || !elements(st, at[0]))
    return u_full(st, (DType)x->dtype, op_identity(OPS_ADD, (DType)x->dtype), at[0]->shape);
  for (int d = 0; d < x->shape->n; d++)
    src[1 + d] = at[d];
  return uop_new(st, OPS_GATHER, (DType)x->dtype, 1, 1 + x->shape->n, src, ARG0);
}

UOp *u_scatter(UOpStore *st, Ops op, int how, UOp *to, UOp *v, UOp *const *at) {
  UOp *src[TG_MAX_RANK + 2] = {to, v};
  if (!to || !v) return NULL;
  if (!elements(st, to) || !elements(st, v)) return how & SCATTER_OLD ? u_num(st, 0, v) : to;
  for (int d = 0; d < to->shape->n; d++)
    src[2 + d] = at[d];
  return uop_new(st, OPS_SCATTER, (DType)to->dtype, 1, 2 + to->shape->n, src, (Arg){.scatter = {op, how}});
}

UOp *u_pick(UOpStore *st, UOp *x, int axis, UOp *index) {
  UOp *at[TG_MAX_RANK];
  if (!x || !index) return NULL;
  u_places(st, index->shape, axis, index, at);
  return u_gather(st, x, at);
}

UOp *u_scan(UOpStore *st, Ops op, UOp *u, int axis) {
  return !u || u->shape->v[axis] == 0 || u->shape->v[axis] == 1 || !elements(st, u)
             ? u
             : u_scan_axis(st, op, u, (DType)u->dtype, axis);
}

UOp *u_later(UOpStore *st, UOp *u, int axis, int64_t step) {
  int64_t lohi[2 * TG_MAX_RANK] = {0}, be[2 * TG_MAX_RANK] = {0};
  if (!u) return NULL;
  for (int i = 0; i < u->shape->n; i++)
    be[2 * i + 1] = u->shape->v[i];
  lohi[2 * axis] = step;
  return u_shrink(st, u_pad(st, u, lohi), be);
}

/* A new index wherever the running maximum differs from the one before it. */
UOp *u_first_of_max(UOpStore *st, UOp *x, UOp *max, int axis) {
  if (!x || !max) return NULL;
  UOp *at = u_arange(st, x->shape, axis, places_dtype(st, x->shape->v[axis]));
  UOp *was = u_later(st, max, axis, 1), *same = uop_alu2(st, OPS_CMPEQ, max, was);
  /* a NaN counts as equal to the NaN before it */
  if (dtype_is_float((DType)x->dtype)) same = uop_alu2(st, OPS_OR, same, uop_alu2(st, OPS_CMPNE, was, was));
  return at ? u_scan(st, OPS_MAX, uop_where(st, same, u_num(st, 0, at), at), axis) : NULL;
}

UOp *u_reversed(UOpStore *st, UOp *u) {
  if (!u) return NULL;
  if (dtype_is_float((DType)u->dtype)) return uop_alu1(st, OPS_NEG, u);
  return uop_alu2(st, OPS_XOR, u,
                  u_full(st, (DType)u->dtype, (Scalar){.i = u->dtype == DT_BOOL ? 1 : -1}, u->shape));
}

UOp *u_min(UOpStore *st, UOp *a, UOp *b) {
  if (!a || !b) return NULL;
  if (a->dtype == DT_BOOL) return uop_alu2(st, OPS_AND, a, b);
  if (!dtype_is_float((DType)a->dtype)) return uop_where(st, uop_alu2(st, OPS_CMPLT, a, b), a, b);
  return uop_alu1(st, OPS_NEG, uop_alu2(st, OPS_MAX, uop_alu1(st, OPS_NEG, a), uop_alu1(st, OPS_NEG, b)));
}

UOp *u_sum_to(UOpStore *st, UOp *u, const Ints *shape) {
  if (!u || !shape) return NULL;
  bool mask[TG_MAX_RANK] = {false};
  int lead = u->shape->n - shape->n;
  for (int i = 0; i < u->shape->n; i++)
    mask[i] = i < lead || (shape->v[i - lead] == 1 && u->shape->v[i] != 1);
  DType d = (DType)u->dtype;
  return u_reshape(st, uop_cast(st, u_reduce(st, OPS_ADD, uop_cast(st, u, sum_dtype(d)), mask), d), shape->n,
                   shape->v);
}

bool u_is_number(const UOp *u, double v) {
  while (u->op == OPS_EXPAND || u->op == OPS_RESHAPE)
    u = u->src[0];
  return u->op == OPS_CONST && (dtype_is_float((DType)u->dtype) ? u->arg.v.f == v : (double)u->arg.v.i == v);
}
