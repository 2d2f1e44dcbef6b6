/* bitcast.c: the bits of a tensor as another dtype. In: any tensor. Out: for dtypes of equal size, one
 * BITCAST. Otherwise the last axis is rescaled: the parts of a wide element are shifted out of it, and
 * narrow elements are shifted together, so that the conversion fuses like any arithmetic. A contiguous
 * part of memory that nobody may write (a model's file) is viewed in place: a buffer of the other dtype
 * over the same bytes, which costs nothing. Elements are little-endian, as in the memory of every device. */
#include "tensor/front.h"

static DType unsigned_of(DType d) {
  size_t n = dtype_size(d);
  return n == 1 ? DT_U8 : n == 2 ? DT_U16 : n == 4 ? DT_U32 : DT_U64;
}

static UOp *same_size(UOpStore *st, UOp *u, DType to) {
  if (!u || u->dtype == to) return u;
  /* A bool is a byte of 0 or 1. A byte is true if it is not 0. */
  if (u->dtype == DT_BOOL || to == DT_BOOL) {
    u = u->dtype == DT_BOOL ? uop_cast(st, u, DT_U8) : same_size(st, u, DT_U8);
    return to == DT_BOOL ? uop_cast(st, u, to) : same_size(st, u, to);
  }
  if (u->op == OPS_BITCAST) return same_size(st, u->src[0], to);
  return UNEW(st, OPS_BITCAST, to, 1, ARG0, u);
}

/* Returns n elements of the flat tensor u as n / k wider ones. `parted` returns n * k narrower ones. */
static UOp *joined(UOpStore *st, UOp *u, DType to, int64_t n, int64_t k) {
  DType part = unsigned_of((DType)u->dtype), whole = unsigned_of(to);
  UOp *x = u_reshape(st, same_size(st, u, part), 2, (int64_t[]){n / k, k}), *sum = NULL;
  for (int64_t i = 0; i < k; i++) {
    UOp *p = uop_cast(
        st, u_reshape(st, u_shrink(st, x, (int64_t[]){0, n / k, i, i + 1}), 1, (int64_t[]){n / k}), whole);
    if (p && i)
      p = uop_alu2(st, OPS_SHL, p,
                   u_full(st, whole, (Scalar){.i = i * 8 * (int64_t)dtype_size(part)}, p->shape));
    sum = i ? uop_alu2(st, OPS_OR, sum, p) : p;
  }
  return same_size(st, sum, to);
}

static UOp *parted(UOpStore *st, UOp *u, DType to, int64_t n, int64_t k) {
  DType whole = unsigned_of((DType)u->dtype), part = unsigned_of(to);
  const Ints *grid = ints_get(st, 2, (int64_t[]){n, k});
  UOp *x = u_reshape(st, same_size(st, u, whole), 2, (int64_t[]){n, 1});
  if (!x || !grid) return NULL;
  UOp *at = uop_cast(st, u_arange(st, grid, 1, DT_I32), whole);
  UOp *shift =
      at ? uop_alu2(st, OPS_MUL, at, u_full(st, whole, (Scalar){.i = 8 * (int64_t)dtype_size(part)}, grid))
         : NULL;
  return same_size(st,
                   u_reshape(st, uop_cast(st, uop_alu2(st, OPS_SHR, u_expand(st, x, grid->v), shift), part),
                             1, (int64_t[]){n * k}),
                   to);
}

static UOp *view_of(TgContext *ctx, UOp *u, DType to, const Ints *shape) {
  int64_t start;
  UOp *base = u->is_tensor ? piece_of(u, &start) : NULL;
  Buffer *b = base ? buffer_get(ctx, base) : NULL;
  if (!b || !b->read_only || !b->data || to == DT_BOOL) return NULL;
  char *data = (char *)b->data + (size_t)start * dtype_size(b->dtype);
  if ((uintptr_t)data % TG_MAX(dtype_size(to), ctx->calls->facts(ctx, b->device).align)) return NULL;
  UOp *v = buffer_node(ctx, b->device, to, dim_product(ctx->store, shape), shape);
  Buffer *w = v ? buffer_get(ctx, view_bottom(v)) : NULL;
  if (w) {
    w->data = data;
    w->borrowed = w->filled = w->read_only = true;
    w->owner = b->owner ? b->owner : b->uid + 1;
  }
  return v;
}

TgTensor *tg_bitcast(TgTensor *x, TgDType dtype) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  UOpStore *st = ctx->store;
  DType from = dt(x), to = dtype_of(dtype, DT_VOID);
  TG_REQUIRE(ctx, to, TG_ERR_DTYPE, "bitcast: unknown dtype %d", (int)dtype);
  if (to == from) return tensor_result(x, x);
  int64_t a = (int64_t)dtype_size(from), b = (int64_t)dtype_size(to), d[TG_MAX_RANK], n = nelem(x);
  if (a == b) return tensor_new(ctx, same_size(st, x->uop, to));
  TG_NUMBERS(x, "bitcast");
  int r = rank(x);
  TG_REQUIRE(ctx, r > 0 && dims(x)[r - 1] * a % b == 0, TG_ERR_SHAPE,
             "bitcast: %s %s to %s: the last axis does not hold whole elements", dtype_name(from),
             SHAPE_OF(x), dtype_name(to));
  for (int i = 0; i < r; i++)
    d[i] = dims(x)[i];
  d[r - 1] = d[r - 1] * a / b;
  if (!shape_check(ctx, "bitcast", r, d, NULL)) return NULL;
  const Ints *shape = ints_get(st, r, d);
  if (!shape) return tensor_new(ctx, NULL);
  if (n == 0) return tensor_new(ctx, u_full(st, to, (Scalar){.i = 0}, shape));
  UOp *u = view_of(ctx, x->uop, to, shape);
  if (!u) {
    UOp *flat = u_reshape(st, x->uop, 1, &n);
    u = flat ? u_reshape(st, a < b ? joined(st, flat, to, n, b / a) : parted(st, flat, to, n, a / b), r, d)
             : NULL;
  }
  return tensor_view(x, u);
}
