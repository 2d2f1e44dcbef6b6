/* onnx_index.c: the operators that look elements up, write them somewhere, or order them. In: an OnnxCall.
 * Out: lazy tensors. Negative indices count from the end; tg.h reads 0 outside, where ONNX leaves the result
 * open. */
#include "onnx_private.h"

static TgTensor *wrapped(TgTensor *index, int64_t n) {
  return tg_where(tg_lt_scalar(index, 0), tg_add_scalar(index, (double)n), index);
}

static TgTensor *op_gather(OnnxCall *c) {
  TgTensor *x = c->in[0];
  TgIndex at[TG_MAX_RANK] = {0};
  int axis, rank = tg_ndim(x);
  if (!rank) return call_fail(c, TG_ERR_SHAPE, "a tensor of no axes");
  if (!call_axis(c, attr_i(c, "axis", 0), rank, &axis)) return NULL;
  if (!call_indices(c, 1, tg_dim(x, axis), 0, 1)) return NULL;
  at[axis] = (TgIndex){.kind = TG_INDEX_TENSOR, .tensor = c->in[1]};
  return tg_getitem(x, at, axis + 1);
}

static TgTensor *op_gather_elements(OnnxCall *c) {
  int axis;
  if (!call_axis(c, attr_i(c, "axis", 0), tg_ndim(c->in[0]), &axis)) return NULL;
  return call_indices(c, 1, tg_dim(c->in[0], axis), 0, 1)
             ? tg_gather(c->in[0], axis, wrapped(c->in[1], tg_dim(c->in[0], axis)))
             : NULL;
}

static TgTensor *op_gather_nd(OnnxCall *c) {
  TgTensor *x = c->in[0], *index = c->in[1];
  int batch = (int)attr_i(c, "batch_dims", 0), rank = tg_ndim(index), n = 0;
  int64_t k = rank ? tg_dim(index, -1) : 0;
  TgIndex at[TG_MAX_RANK] = {0};
  if (!rank || batch < 0 || batch >= rank || k < 1 || batch + k > tg_ndim(x))
    return call_fail(c, TG_ERR_SHAPE, "%lld indices and %d batch axes for %d axes", (long long)k, batch,
                     tg_ndim(x));
  for (; n < batch; n++) { /* each batch looks into itself */
    int64_t dims[TG_MAX_RANK];
    for (int a = 0; a < rank - 1; a++)
      dims[a] = a == n ? tg_dim(index, a) : 1;
    at[n] = (TgIndex){.kind = TG_INDEX_TENSOR,
                      .tensor = tg_reshape(tg_arange(c->ctx, 0, (double)tg_dim(index, n), .dtype = TG_I64),
                                           rank - 1, dims)};
  }
  for (int64_t i = 0; i < k; i++)
    if (!call_indices(c, 1, tg_dim(x, n + (int)i), i, k)) return NULL;
  for (int64_t i = 0; i < k; i++)
    at[n++] = (TgIndex){.kind = TG_INDEX_TENSOR, .tensor = tg_select(index, rank - 1, i)};
  return tg_getitem(x, at, n);
}

static TgTensor *scatter(OnnxCall *c, TgTensor *x, int axis, TgTensor *index, TgTensor *src) {
  const char *how = attr_s(c, "reduction", "none");
  TgScatterReduce r = TG_SCATTER_ADD;
  if (!strcmp(how, "none")) return tg_scatter(x, axis, index, src);
  if (!strcmp(how, "mul"))
    r = TG_SCATTER_MULTIPLY;
  else if (!strcmp(how, "max"))
    r = TG_SCATTER_AMAX;
  else if (!strcmp(how, "min"))
    r = TG_SCATTER_AMIN;
  else if (strcmp(how, "add"))
    return call_fail(c, TG_ERR_VALUE, "reduction %.20s", how);
  TgTensor *t = tg_scatter_reduce(x, axis, index, src, r);
  return t && tg_dtype(t) != tg_dtype(x) ? tg_cast(t, tg_dtype(x)) : t;
}

static TgTensor *op_scatter_elements(OnnxCall *c) {
  int axis;
  if (!call_axis(c, attr_i(c, "axis", 0), tg_ndim(c->in[0]), &axis)) return NULL;
  return call_indices(c, 1, tg_dim(c->in[0], axis), 0, 1)
             ? scatter(c, c->in[0], axis, wrapped(c->in[1], tg_dim(c->in[0], axis)), c->in[2])
             : NULL;
}

/* As a scatter along one axis: the first k axes of x, and of what is written, become one. */
static TgTensor *op_scatter_nd(OnnxCall *c) {
  TgTensor *x = c->in[0], *index = c->in[1], *line = NULL, *inside = NULL;
  int rank = tg_ndim(index);
  int64_t k = rank ? tg_dim(index, -1) : 0, places = 1, rest = 1, n = k ? tg_numel(index) / k : 0;
  if (!rank || k < 1 || k > tg_ndim(x))
    return call_fail(c, TG_ERR_SHAPE, "%lld indices for %d axes", (long long)k, tg_ndim(x));
  for (int a = 0; a < tg_ndim(x); a++)
    *(a < k ? &places : &rest) *= tg_dim(x, a);
  for (int64_t i = 0; i < k; i++) {
    int64_t size = tg_dim(x, (int)i);
    if (!call_indices(c, 1, size, i, k)) return NULL;
    TgTensor *one = wrapped(tg_select(index, rank - 1, i), size);
    TgTensor *fits = tg_bitand(tg_ge_scalar(one, 0), tg_lt_scalar(one, (double)size));
    line = line ? tg_add(tg_mul_scalar(line, (double)size), one) : one;
    inside = inside ? tg_bitand(inside, fits) : fits;
  }
  /* outside of one axis is outside of all: nothing is written */
  line = tg_where(inside, line, tg_scalar_like(line, -1));
  line = tg_expand(tg_reshape(line, TG_SHAPE(n, 1)), TG_SHAPE(n, rest));
  return tg_reshape(
      scatter(c, tg_reshape(x, TG_SHAPE(places, rest)), 0, line, tg_reshape(c->in[2], TG_SHAPE(n, rest))),
      tg_ndim(x), tg_shape(x));
}

static TgTensor *op_topk(OnnxCall *c) {
  Ints k;
  TgTensor *x = c->in[0], *places = NULL, *values;
  int axis;
  if (!call_ints(c, c->opset >= 10 ? 1 : -1, NULL, &k) ||
      !call_axis(c, attr_i(c, "axis", -1), tg_ndim(x), &axis))
    return NULL;
  int64_t n = k.n ? k.v[0] : attr_i(c, "k", -1);
  attr_unused(c, "sorted"); /* they always are */
  values = tg_topk(x, n, &places, .axis = TG_AXES(axis), .smallest = !attr_i(c, "largest", 1));
  if (c->nout > 1) c->out[1] = tg_long(places);
  return values;
}

static TgTensor *op_nonzero(OnnxCall *c) { return tg_long(tg_transpose(tg_nonzero(c->in[0]), 0, 1)); }

static TgTensor *op_onehot(OnnxCall *c) {
  Ints depth;
  TgTensor *x = tg_long(c->in[0]), *v = c->in[2];
  int axis, rank = tg_ndim(x);
  int64_t dims[TG_MAX_RANK];
  if (!call_ints(c, 1, NULL, &depth) || !call_axis(c, attr_i(c, "axis", -1), rank + 1, &axis)) return NULL;
  if (depth.n != 1 || depth.v[0] < 0 || rank >= TG_MAX_RANK || tg_numel(v) != 2)
    return call_fail(c, TG_ERR_SHAPE, "one depth and two values are needed");
  for (int a = 0; a <= rank; a++)
    dims[a] = a == axis ? depth.v[0] : 1;
  TgTensor *hit =
      tg_eq(tg_unsqueeze(wrapped(x, depth.v[0]), axis),
            tg_reshape(tg_arange(c->ctx, 0, (double)depth.v[0], .dtype = TG_I64), rank + 1, dims));
  return tg_where(hit, tg_select(v, 0, 1), tg_select(v, 0, 0));
}

static TgTensor *op_compress(OnnxCall *c) {
  TgTensor *x = c->in[0], *mask = c->in[1];
  int axis = 0;
  TgIndex at[TG_MAX_RANK] = {0};
  if (!call_attr(c, "axis", ONNX_INT))
    x = tg_reshape(x, TG_SHAPE(-1));
  else if (!call_axis(c, attr_i(c, "axis", 0), tg_ndim(x), &axis))
    return NULL;
  if (tg_ndim(mask) != 1 || tg_dim(mask, 0) > tg_dim(x, axis))
    return call_fail(c, TG_ERR_SHAPE, "a condition longer than the axis");
  mask = tg_pad(mask, &(int64_t){0}, &(int64_t){tg_dim(x, axis) - tg_dim(mask, 0)});
  at[axis] = (TgIndex){.kind = TG_INDEX_MASK, .tensor = mask};
  return tg_getitem(x, at, axis + 1);
}

#define F(name, since, lo, hi, f)                                                                            \
  { name, since, lo, hi, f, NULL, NULL, NULL }
const OnnxOp onnx_ops_index[] = {F("Gather", 1, 2, 2, op_gather),
                                 F("GatherElements", 11, 2, 2, op_gather_elements),
                                 F("GatherND", 11, 2, 2, op_gather_nd),
                                 F("ScatterElements", 11, 3, 3, op_scatter_elements),
                                 F("Scatter", 9, 3, 3, op_scatter_elements),
                                 F("ScatterND", 11, 3, 3, op_scatter_nd),
                                 F("TopK", 1, 1, 2, op_topk),
                                 F("NonZero", 9, 1, 1, op_nonzero),
                                 F("OneHot", 9, 3, 3, op_onehot),
                                 F("Compress", 9, 2, 2, op_compress),
                                 {0}};
