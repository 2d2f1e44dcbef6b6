/* tensor.c: facts about tensors, data in and out, constants, in-place assignment. */
#include "tensor/front.h"
#include "tensor/multi.h"

/* ---- facts */
int tg_ndim(const TgTensor *t) { return t ? rank(t) : 0; }

/* Returns sizes as numbers if they are symbolic: for the current values of the variables, or the largest.
 * The list lives as long as the tensor. */
static const int64_t *sizes_as(const TgTensor *t, int which) {
  if (!dims_symbolic(t->uop->shape)) return dims(t);
  TgTensor *own = (TgTensor *)t;
  if (!own->sizes && !(own->sizes = mem_alloc(&t->ctx->mem, 2 * TG_MAX_RANK * sizeof *own->sizes))) {
    error_no_memory(&t->ctx->err, "shape");
    return NULL;
  }
  int64_t *to = own->sizes + which * TG_MAX_RANK;
  for (int i = 0; i < rank(t); i++)
    to[i] = which ? dim_max(t->ctx->store, dims(t)[i]) : dim_now(t->ctx->store, dims(t)[i]);
  return to;
}

const int64_t *tg_shape(const TgTensor *t) { return t ? sizes_as(t, 0) : NULL; }

const int64_t *tg_max_shape(const TgTensor *t) { return t ? sizes_as(t, 1) : NULL; }

int64_t tg_dim(const TgTensor *t, int axis) { return t ? dim_now(t->ctx->store, dim_at(t, axis)) : -1; }

int64_t tg_size_of(const TgTensor *t, int axis) { return t ? dim_at(t, axis) : -1; }

bool tg_is_symbolic(const TgTensor *t, int axis) { return t && dim_symbolic(dim_at(t, axis)); }

int64_t tg_numel(const TgTensor *t) {
  int64_t n = 1;
  for (int i = 0; t && i < rank(t); i++)
    n *= dim_now(t->ctx->store, dims(t)[i]);
  return t ? n : 0;
}

int64_t tg_max_numel(const TgTensor *t) {
  int64_t n = 1;
  for (int i = 0; t && i < rank(t); i++)
    n *= dim_max(t->ctx->store, dims(t)[i]);
  return t ? n : 0;
}

TgDType tg_dtype(const TgTensor *t) { return t ? dtype_public(dt(t)) : TG_DTYPE_DEFAULT; }

size_t tg_nbytes(const TgTensor *t) { return t ? (size_t)tg_numel(t) * dtype_size(dt(t)) : 0; }

size_t tg_element_size(const TgTensor *t) { return t ? dtype_size(dt(t)) : 0; }

bool tg_is_floating_point(const TgTensor *t) { return t && dtype_is_float(dt(t)); }

int64_t tg_len(const TgTensor *t) { return t && rank(t) ? tg_dim(t, 0) : -1; }

TgContext *tg_context(const TgTensor *t) { return t ? t->ctx : NULL; }

size_t tg_dtype_size(TgDType d) { return dtype_size(dtype_of(d, DT_VOID)); }

const char *tg_dtype_name(TgDType d) { return dtype_name(dtype_of(d, DT_VOID)); }

bool tg_dtype_is_float(TgDType d) { return dtype_is_float(dtype_of(d, DT_VOID)); }

TgDType tg_dtype_join(TgDType a, TgDType b) {
  DType x = dtype_of(a, DT_VOID), y = dtype_of(b, DT_VOID);
  return x && y ? dtype_public(dtype_join(x, y)) : TG_DTYPE_DEFAULT;
}

/* ---- constants */
static const Ints *shape_make(TgContext *ctx, const char *op, int n, const int64_t *d) {
  if (!ctx || !shape_check(ctx, op, n, d, NULL)) return NULL;
  const Ints *shape = ints_get(ctx->store, n, d);
  TG_REQUIRE(ctx, shape, TG_ERR_NOMEM, "%s: out of memory", op);
  return shape;
}

static TgTensor *constant(TgContext *ctx, const char *op, int n, const int64_t *d, double v,
                          const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, op, TgDTypeOptions, o, opt);
  DType dtype = dtype_of(o.dtype, DT_F32);
  TG_REQUIRE(ctx, dtype, TG_ERR_DTYPE, "%s: unknown dtype %d", op, (int)o.dtype);
  const Ints *shape = shape_make(ctx, op, n, d);
  return tensor_placed(tensor_new(ctx, u_full(ctx->store, dtype, scalar_number(dtype, v), shape)), op,
                       o.device);
}

TgTensor *tg_full_opt(TgContext *ctx, int n, const int64_t *d, double value, const TgDTypeOptions *o) {
  return constant(ctx, "full", n, d, value, o);
}

TgTensor *tg_zeros_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) {
  return constant(ctx, "zeros", n, d, 0, o);
}

TgTensor *tg_ones_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) {
  return constant(ctx, "ones", n, d, 1, o);
}

TgTensor *tg_full_i64(TgContext *ctx, int n, const int64_t *d, int64_t value, TgDType dtype) {
  if (!ctx) return NULL;
  DType dty = dtype_of(dtype, DT_I64);
  TG_REQUIRE(ctx, dty, TG_ERR_DTYPE, "full: unknown dtype %d", (int)dtype);
  const Ints *shape = shape_make(ctx, "full", n, d);
  return tensor_new(ctx,
                    u_full(ctx->store, dty,
                           dtype_is_float(dty) ? (Scalar){.f = (double)value} : (Scalar){.i = value}, shape));
}

TgTensor *tg_full_like(TgTensor *t, double v) {
  if (!t) return NULL;
  TgTensor *like = tensor_new(t->ctx, u_num(t->ctx->store, v, t->uop));
  return on_several(t->uop) ? tg_shard_like(like, t) : tensor_on(like, tensor_device(t));
}

TgTensor *tg_zeros_like(TgTensor *t) { return tg_full_like(t, 0); }

TgTensor *tg_ones_like(TgTensor *t) { return tg_full_like(t, 1); }

/* Returns the dtype of a scalar that is combined with a tensor of dtype d. It is d itself if d holds the
 * number, so that the result keeps d. Otherwise it is a dtype that holds the number, so that the join
 * holds it too and a comparison is right. */
static DType scalar_dtype(DType d, double v) {
  const DType wider[] = {d == DT_BOOL ? DT_I32 : d, DT_I8, DT_I16, DT_I32, DT_I64, DT_U64};
  if (dtype_is_float(d)) return d;
  for (size_t i = 0; v == floor(v) && i < TG_COUNT(wider); i++)
    if (v >= dtype_lowest(wider[i]) && v <= dtype_highest(wider[i])) return wider[i];
  return DT_F32;
}

TgTensor *tg_scalar_like(TgTensor *t, double v) {
  if (!t) return NULL;
  DType d = scalar_dtype(dt(t), v);
  return tensor_new(t->ctx, u_full(t->ctx->store, d, scalar_number(d, v), ints_get(t->ctx->store, 0, NULL)));
}

TgTensor *tg_arange_opt(TgContext *ctx, double start, double stop, const TgArangeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "arange", TgArangeOptions, o, opt);
  double step = TG_OPTION(o, step, 1), count = ceil((stop - start) / step);
  TG_REQUIRE(ctx, count == count && count < 1e15, TG_ERR_VALUE, "arange: from %g to %g by %g", start, stop,
             step);
  if (count < 0) count = 0;
  int64_t n = (int64_t)count;
  bool whole = start == floor(start) && step == floor(step) && stop == floor(stop);
  double last = n ? start + (double)(n - 1) * step : start;
  double low = TG_MIN(start, last);
  double high = TG_MAX(start, last);
  double big = TG_MAX(fabs(start), fabs(last));
  bool wide = big > 2147483647.0 || count > 2147483647.0;
  DType d = dtype_of(o.dtype, !whole ? DT_F32 : wide ? DT_I64 : DT_I32);
  TG_REQUIRE(ctx, d && d != DT_BOOL, TG_ERR_DTYPE, "arange: dtype %s", dtype_name(d));
  TG_REQUIRE(ctx,
             dtype_is_float(d) || !n ||
                 (low >= dtype_lowest(d) && high <= TG_MIN(dtype_highest(d), dtype_highest(DT_I64))),
             TG_ERR_VALUE, "arange: %g .. %g does not fit in %s", start, last, dtype_name(d));
  const Ints *shape = shape_make(ctx, "arange", 1, &n);
  UOpStore *st = ctx->store;
  if (!shape) return NULL;
  if (!n) return tensor_placed(tensor_new(ctx, u_full(st, d, (Scalar){.i = 0}, shape)), "arange", o.device);
  UOp *u = u_arange(st, shape, 0, wide ? DT_I64 : DT_I32);
  /* For integers, step and start may be outside the range of a narrow d although the elements are not. */
  if (dtype_is_float(d)) u = uop_cast(st, u, d);
  if (step != 1) u = uop_alu2(st, OPS_MUL, u, u_num(st, step, u));
  if (start != 0) u = uop_alu2(st, OPS_ADD, u, u_num(st, start, u));
  return tensor_placed(tensor_new(ctx, uop_cast(st, u, d)), "arange", o.device);
}

TgTensor *tg_eye_opt(TgContext *ctx, int64_t n, const TgEyeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "eye", TgEyeOptions, o, opt);
  DType d = dtype_of(o.dtype, DT_F32);
  TG_REQUIRE(ctx, d, TG_ERR_DTYPE, "eye: unknown dtype %d", (int)o.dtype);
  const Ints *s = shape_make(ctx, "eye", 2, (int64_t[]){n, TG_OPTION(o, m, n)});
  if (!s) return NULL;
  UOpStore *st = ctx->store;
  UOp *same = uop_alu2(st, OPS_CMPEQ, u_arange(st, s, 0, DT_I32), u_arange(st, s, 1, DT_I32));
  return tensor_placed(tensor_new(ctx, uop_cast(st, same, d)), "eye", o.device);
}

/* ---- data in */
static UOp *memory_new(TgContext *ctx, const char *op, int device, TgDType dtype, int n, const int64_t *d,
                       Buffer **buf, size_t *nbytes) {
  DType dty = dtype_of(dtype, DT_F32);
  int64_t nelem;
  TG_REQUIRE(ctx, dty, TG_ERR_DTYPE, "%s: unknown dtype %d", op, (int)dtype);
  if (!shape_check(ctx, op, n, d, &nelem) || (strcmp(op, "empty") && !dims_numbers(ctx, op, n, d)))
    return NULL;
  TG_REQUIRE(ctx, ctx->dev_open, TG_ERR_DEVICE, "%s: no device is open", op);
  const Ints *shape = ints_get(ctx->store, n, d);
  UOp *u = shape ? buffer_node(ctx, device, dty, nelem, shape) : NULL;
  TG_REQUIRE(ctx, u, TG_ERR_NOMEM, "%s: out of memory", op);
  *buf = buffer_get(ctx, view_bottom(u));
  *nbytes = (size_t)nelem * dtype_size(dty);
  return u;
}

static bool memory_fill(TgContext *ctx, Buffer *b, const void *data, size_t nbytes) {
  if (nbytes) {
    if (ctx->calls->alloc(ctx, b->device, nbytes, &b->data)) {
      error_set(&ctx->err, TG_ERR_NOMEM, "from: no device memory for %zu bytes", nbytes);
      return false;
    }
    TgStatus s = ctx->calls->copy_in(ctx, b->device, b->data, data, nbytes);
    if (s) {
      error_set(&ctx->err, s, "from: the copy to the device failed");
      return false;
    }
  }
  b->filled = true;
  return true;
}

TgTensor *tg_from(TgContext *ctx, const void *data, TgDType dtype, int n, const int64_t *d) {
  return tensor_from(ctx, ctx ? ctx->default_device : 0, data, dtype, n, d);
}

TgTensor *tensor_from(TgContext *ctx, int device, const void *data, TgDType dtype, int n, const int64_t *d) {
  if (!ctx) return NULL;
  Buffer *b;
  size_t nbytes;
  UOp *u = memory_new(ctx, "from", device, dtype, n, d, &b, &nbytes);
  if (!u) return NULL;
  TG_REQUIRE(ctx, data || nbytes == 0, TG_ERR_VALUE, "from: no data");
  return memory_fill(ctx, b, data, nbytes) ? tensor_memory(ctx, u) : NULL;
}

TgTensor *tg_from_f64(TgContext *ctx, const double *data, TgDType dtype, int n, const int64_t *d) {
  if (!ctx) return NULL;
  DType dty = dtype_of(dtype, DT_F32);
  int64_t nelem;
  TG_REQUIRE(ctx, dty, TG_ERR_DTYPE, "from: unknown dtype %d", (int)dtype);
  if (!shape_check(ctx, "from", n, d, &nelem) || !dims_numbers(ctx, "from", n, d)) return NULL;
  TG_REQUIRE(ctx, data || nelem == 0, TG_ERR_VALUE, "from: no data");
  size_t size = dtype_size(dty);
  char *p = mem_alloc(&ctx->mem, (size_t)nelem * size);
  TG_REQUIRE(ctx, p, TG_ERR_NOMEM, "from: out of memory");
  for (int64_t i = 0; i < nelem; i++)
    scalar_store(dty, scalar_cast(dty, DT_F64, (Scalar){.f = data[i]}), p + (size_t)i * size);
  TgTensor *t = tg_from(ctx, p, dtype_public(dty), n, d);
  mem_free(&ctx->mem, p);
  return t;
}

TgTensor *tg_borrow(TgContext *ctx, void *data, TgDType dtype, int n, const int64_t *d,
                    void (*destroy)(void *, void *), void *user) {
  if (!ctx) return NULL;
  Buffer *b;
  size_t nbytes;
  UOp *u = memory_new(ctx, "borrow", ctx->default_device, dtype, n, d, &b, &nbytes);
  if (!u) return NULL;
  TG_REQUIRE(ctx, data, TG_ERR_VALUE, "borrow: no data");
  TgTensor *t = tensor_memory(ctx, u);
  if (!t) return NULL;
  if (ctx->calls->facts(ctx, b->device).own_memory) { /* the data is copied and released at once */
    bool ok = memory_fill(ctx, b, data, nbytes);
    if (ok && destroy) destroy(data, user);
    return ok ? t : NULL;
  }
  b->data = data;
  b->borrowed = b->filled = true;
  b->destroy = destroy;
  b->user = user;
  return t;
}

TgTensor *tg_from_file_opt(TgContext *ctx, const char *path, TgDType dtype, int n, const int64_t *d,
                           const TgFileOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "from_file", TgFileOptions, o, opt);
  TG_REQUIRE(ctx, path, TG_ERR_VALUE, "from_file: no path");
  int device = ctx->calls->find(ctx, "from_file", o.device);
  if (device < 0) return NULL;
  Buffer *b;
  size_t nbytes;
  int64_t whole[TG_MAX_RANK], known = (int64_t)dtype_size(dtype_of(dtype, DT_F32)), have = 0;
  int infer = -1;
  for (int i = 0; i < n && n <= TG_MAX_RANK && d && known; i++) { /* one size may be -1: what the file has */
    if (d[i] == -1 && infer < 0)
      infer = i;
    else if (d[i] > 0 && __builtin_mul_overflow(known, d[i], &known))
      known = INT64_MAX;
    whole[i] = d[i];
  }
  if (infer >= 0) {
    if (file_size(ctx->os, &ctx->err, path, &have)) return NULL;
    whole[infer] = o.offset >= 0 && have > o.offset ? (have - o.offset) / TG_MAX(known, 1) : 0;
    d = whole;
  }
  UOp *u = memory_new(ctx, "from_file", device, dtype, n, d, &b, &nbytes);
  if (!u) return NULL;
  size_t size = dtype_size(b->dtype);
  TG_REQUIRE(ctx, o.offset >= 0 && o.offset % (int64_t)size == 0, TG_ERR_VALUE,
             "from_file: %.300s: offset %lld is no multiple of %zu, the size of %s", path,
             (long long)o.offset, size, dtype_name(b->dtype));
  if (file_map(ctx->os, &ctx->err, path, o.offset, nbytes, o.writable, o.create, &b->file)) return NULL;
  b->read_only = !o.writable && !o.create;
  DeviceFacts dev = ctx->calls->facts(ctx, device);
  TG_REQUIRE(ctx, b->read_only || !dev.files_only, TG_ERR_VALUE,
             "from_file: nothing is stored on DISK: %.300s is for reading there", path);
  if (dev.own_memory) { /* a copy, which is written back after each store */
    if (!memory_fill(ctx, b, file_data(&b->file), nbytes)) return NULL;
    if (b->read_only) file_unmap(ctx->os, &b->file);
  } else {
    b->data = file_data(&b->file);
    b->filled = true;
  }
  return tensor_memory(ctx, u);
}

TgTensor *tg_empty(TgContext *ctx, TgDType dtype, int n, const int64_t *d) {
  return tensor_empty(ctx, NULL, dtype, n, d);
}

TgTensor *tensor_empty(TgContext *ctx, const char *device, TgDType dtype, int n, const int64_t *d) {
  if (!ctx) return NULL;
  Buffer *b;
  size_t nbytes;
  int on = ctx->calls->find(ctx, "empty", device);
  UOp *u = on < 0 ? NULL : memory_new(ctx, "empty", on, dtype, n, d, &b, &nbytes);
  return u ? tensor_memory(ctx, u) : NULL;
}

/* ---- data out */
TgStatus tg_read(TgTensor *t, void *out, size_t nbytes) {
  if (!t) return TG_ERR_VALUE;
  TgContext *ctx = t->ctx;
  bool away = ctx->reader < 0; /* another rank reads it */
  TG_REQUIRE_OR(ctx, nbytes == tg_nbytes(t), TG_ERR_VALUE, TG_ERR_VALUE,
                "read: %zu bytes asked of %s %s, which has %zu", nbytes, dtype_name(dt(t)), SHAPE_OF(t),
                tg_nbytes(t));
  for (int i = 0; i < rank(t); i++) {
    const DimVar *v = dim_unbound(ctx->store, dims(t)[i]);
    TG_REQUIRE_OR(ctx, !v, TG_ERR_STATE, TG_ERR_STATE,
                  "read: variable '%.64s' of axis %d is not bound to a value", v->name, i);
  }
  if (nbytes == 0) return TG_OK;
  TG_REQUIRE_OR(ctx, out || away, TG_ERR_VALUE, TG_ERR_VALUE, "read: no memory to read to");
  Buffer *b = t->memory;
  TG_REQUIRE_OR(ctx, !b || b->store || b->filled || b->data, TG_ERR_STATE, TG_ERR_STATE,
                "read: tensor %s was never given a value", SHAPE_OF(t));
  if (capture_refuses(ctx, "read")) return TG_ERR_STATE;
  return ctx->calls->read(ctx, t, away ? NULL : out, nbytes);
}

TgStatus tg_read_f64(TgTensor *t, double *out, size_t n) {
  if (!t) return TG_ERR_VALUE;
  TgContext *ctx = t->ctx;
  TG_REQUIRE_OR(ctx, (int64_t)n == tg_numel(t), TG_ERR_VALUE, TG_ERR_VALUE, "read: %zu elements asked of %s",
                n, SHAPE_OF(t));
  TG_LIST_OR(ctx, "read", out, n > 0, TG_ERR_VALUE);
  DType d = dt(t);
  size_t size = dtype_size(d);
  char *p = mem_alloc(&ctx->mem, n * size);
  TG_REQUIRE_OR(ctx, p, TG_ERR_NOMEM, TG_ERR_NOMEM, "read: out of memory");
  TgStatus s = tg_read(t, p, n * size);
  for (size_t i = 0; !s && i < n; i++)
    out[i] = scalar_cast(DT_F64, d, scalar_load(d, p + i * size)).f;
  mem_free(&ctx->mem, p);
  return s;
}

static bool item_read(TgTensor *t, Scalar *v) {
  if (!t) return false;
  TG_REQUIRE_OR(t->ctx, tg_numel(t) == 1, false, TG_ERR_SHAPE, "item: %s does not have exactly one element",
                SHAPE_OF(t));
  char p[8] = {0};
  if (tg_read(t, p, dtype_size(dt(t)))) return false;
  *v = scalar_load(dt(t), p);
  return true;
}

double tg_item_f64(TgTensor *t) {
  Scalar v;
  return item_read(t, &v) ? scalar_cast(DT_F64, dt(t), v).f : (double)NAN;
}

int64_t tg_item_i64(TgTensor *t) {
  Scalar v;
  return item_read(t, &v) ? scalar_cast(DT_I64, dt(t), v).i : 0;
}

/* ---- in place */
static UOp *value_for(TgTensor *t, const Ints *shape, TgTensor *value) {
  TgContext *ctx = ctx_two("assign", t, value);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, !value->uop->devices || tensor_device(value) == tensor_device(t), TG_ERR_DEVICE,
             "assign: a value on %s to a tensor on %s; tg_to moves it", tg_device(value), tg_device(t));
  TG_REQUIRE(ctx, dt(t) == dt(value), TG_ERR_DTYPE, "assign: %s to a tensor of %s", dtype_name(dt(value)),
             dtype_name(dt(t)));
  const Ints *s = shape_broadcast(ctx, "assign", value->uop->shape, shape);
  if (!s) return NULL;
  TG_REQUIRE(ctx, s == shape, TG_ERR_SHAPE, "assign: %s to a place of shape %s", SHAPE_OF(value),
             shape_text(ctx->store, shape).s);
  return u_broadcast(ctx->store, value->uop, shape);
}

TgTensor *tg_assign(TgTensor *t, TgTensor *value) {
  UOp *v = t ? value_for(t, t->uop->shape, value) : NULL;
  if (!v) return NULL;
  if (nelem(t) == 0 || (v == t->uop && (t->memory || t->part))) return t;
  if (v == t->uop) return place_ready("assign", t, true) ? t : NULL;
  return place_ready("assign", t, false) && store_to(t, t->uop, v) ? t : NULL;
}

TgTensor *tg_assign_slice(TgTensor *t, const int64_t *begin, const int64_t *end, TgTensor *value) {
  if (!t || !value) return NULL;
  TgContext *ctx = t->ctx;
  int64_t be[2 * TG_MAX_RANK], d[TG_MAX_RANK];
  TG_LIST(ctx, "assign_slice", begin, rank(t));
  TG_LIST(ctx, "assign_slice", end, rank(t));
  for (int i = 0; i < rank(t); i++) {
    UOpStore *st = ctx->store;
    if (!dim_le(st, 0, begin[i]) || !dim_le(st, begin[i], end[i]) || !dim_le(st, end[i], dims(t)[i]))
      return part_refused(t, "assign_slice", i, begin[i], end[i]), NULL;
    be[2 * i] = begin[i];
    be[2 * i + 1] = end[i];
    d[i] = dim_sub(st, end[i], begin[i]);
  }
  const Ints *shape = ints_get(ctx->store, rank(t), d);
  UOp *v = shape ? value_for(t, shape, value) : NULL;
  if (!v) return NULL;
  if (dim_product(ctx->store, shape) == 0) return t;
  return place_ready("assign_slice", t, true) && store_to(t, u_shrink(ctx->store, t->uop, be), v) ? t : NULL;
}

TgTensor *tg_contiguous(TgTensor *x) {
  if (!x) return NULL;
  UOp *u = x->uop;
  while ((u->op == OPS_RESHAPE && u->src[0]->is_tensor) || u->op == OPS_AFTER)
    u = u->src[0];
  bool parts = u->op == OPS_MULTI && x->part; /* realized, so that each part is contiguous */
  if ((u->op == OPS_BUFFER && x->memory) || parts || x->uop->op == OPS_CONTIGUOUS) return tensor_result(x, x);
  return tensor_new(x->ctx, uop_alu1(x->ctx->store, OPS_CONTIGUOUS, x->uop));
}

TgTensor *tg_detach(TgTensor *x) {
  return x ? tensor_view(x, uop_alu1(x->ctx->store, OPS_DETACH, x->uop)) : NULL;
}

/* A parameter gets memory of its own, because interning would make two tensors of zeros one node. */
TgTensor *tg_requires_grad(TgTensor *t, bool on) {
  if (!t) return NULL;
  TgContext *ctx = t->ctx;
  TG_REQUIRE(ctx, !on || dtype_is_float(dt(t)), TG_ERR_DTYPE, "requires_grad: %s is not a float",
             dtype_name(dt(t)));
  if (on && !t->requires_grad && !t->part && on_several(t->uop)) {
    UOp *value = t->uop;
    if (!shard_memory(t, value) || !shard_store(t, t->uop, value)) return NULL;
  } else if (on && !t->requires_grad && !t->memory && !t->part) {
    UOp *value = t->uop, *n = buffer_node(ctx, tensor_device(t), dt(t), nelem(t), value->shape);
    TG_REQUIRE(ctx, n, TG_ERR_NOMEM, "requires_grad: out of memory");
    tensor_set(t, n);
    if (!nelem(t))
      t->memory->filled = true;
    else if (!store_to(t, n, value))
      return NULL;
  }
  ctx->grad_switches += t->requires_grad != on;
  t->requires_grad = on;
  if (on && t->memory) t->memory->leaf = true;
  for (int i = 0; on && i < t->nparts; i++)
    if (t->part[i]->memory) t->part[i]->memory->leaf = true;
  return t;
}

bool tg_is_parameter(const TgTensor *t) { return t && t->requires_grad; }
