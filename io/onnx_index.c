/* onnx_index.c: operators that look up elements, write them to places, or sort them. In: an OnnxCall. Out:
 * lazy tensors. Negative indices count from the end. An index out of range reads 0, as tg.h defines it;
 * ONNX leaves that result open. */
#include "onnx_private.h"

static TgTensor *wrapped(TgTensor *index, int64_t n) {
  return tg_where(tg_lt_scalar(index, 0), tg_add(index, onnx_size_like(index, n)), index);
}

static TgTensor *op_gather(OnnxCall *c) {
  TgTensor *x = c->in[0];
  TgIndex at[TG_MAX_RANK] = {0};
  int axis, rank = tg_ndim(x);
  if (!rank) return call_fail(c, TG_ERR_SHAPE, "a tensor of no axes");
  if (!call_axis(c, attr_i(c, "axis", 0), rank, &axis)) return NULL;
  if (!call_indices(c, 1, tg_max_shape(x)[axis], 0, 1)) return NULL;
  at[axis] = (TgIndex){.kind = TG_INDEX_TENSOR, .tensor = c->in[1]};
  return tg_getitem(x, at, axis + 1);
}

static TgTensor *op_gather_elements(OnnxCall *c) {
  int axis;
  if (!call_axis(c, attr_i(c, "axis", 0), tg_ndim(c->in[0]), &axis)) return NULL;
  return call_indices(c, 1, tg_max_shape(c->in[0])[axis], 0, 1)
             ? tg_gather(c->in[0], axis, wrapped(c->in[1], tg_size_of(c->in[0], axis)))
             : NULL;
}

static TgTensor *op_gather_nd(OnnxCall *c) {
  TgTensor *x = c->in[0], *index = c->in[1];
  int batch = (int)attr_i(c, "batch_dims", 0), rank = tg_ndim(index), n = 0;
  int64_t k = rank && !tg_is_symbolic(index, -1) ? tg_dim(index, -1) : 0;
  TgIndex at[TG_MAX_RANK] = {0};
  if (!rank || batch < 0 || batch >= rank || k < 1 || batch + k > tg_ndim(x))
    return call_fail(c, TG_ERR_SHAPE, "%lld indices and %d batch axes for %d axes", (long long)k, batch,
                     tg_ndim(x));
  for (; n < batch; n++) { /* each batch indexes only itself */
    int64_t dims[TG_MAX_RANK];
    for (int a = 0; a < rank - 1; a++)
      dims[a] = a == n ? tg_size_of(index, a) : 1;
    at[n] = (TgIndex){.kind = TG_INDEX_TENSOR,
                      .tensor = tg_reshape(onnx_iota(c->ctx, tg_size_of(index, n)), rank - 1, dims)};
  }
  for (int64_t i = 0; i < k; i++)
    if (!call_indices(c, 1, tg_max_shape(x)[n + (int)i], i, k)) return NULL;
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
  return call_indices(c, 1, tg_max_shape(c->in[0])[axis], 0, 1)
             ? scatter(c, c->in[0], axis, wrapped(c->in[1], tg_size_of(c->in[0], axis)), c->in[2])
             : NULL;
}

/* Computed as a scatter along one axis: the first k axes of x are merged into one, and so are those of
 * what is written. */
static TgTensor *op_scatter_nd(OnnxCall *c) {
  TgTensor *x = c->in[0], *index = c->in[1], *line = NULL, *inside = NULL;
  int rank = tg_ndim(index);
  int64_t k = rank && !tg_is_symbolic(index, -1) ? tg_dim(index, -1) : 0, places = 1, rest = 1, n = 1;
  if (!rank || k < 1 || k > tg_ndim(x))
    return call_fail(c, TG_ERR_SHAPE, "%lld indices for %d axes", (long long)k, tg_ndim(x));
  for (int a = 0; a < tg_ndim(x); a++) {
    int64_t *many = a < k ? &places : &rest;
    *many = tg_size_mul(c->ctx, *many, tg_size_of(x, a));
  }
  for (int a = 0; a < rank - 1; a++)
    n = tg_size_mul(c->ctx, n, tg_size_of(index, a));
  for (int64_t i = 0; i < k; i++) {
    int64_t size = tg_size_of(x, (int)i);
    if (!call_indices(c, 1, tg_max_shape(x)[i], i, k)) return NULL;
    TgTensor *one = wrapped(tg_select(index, rank - 1, i), size), *many = onnx_size_like(one, size);
    TgTensor *fits = tg_bitand(tg_ge_scalar(one, 0), tg_lt(one, many));
    line = line ? tg_add(tg_mul(line, many), one) : one;
    inside = inside ? tg_bitand(inside, fits) : fits;
  }
  /* a place that is out of range on one axis is out of range on all: nothing is written */
  line = tg_where(inside, line, tg_scalar_like(line, -1));
  line = tg_expand(tg_reshape(line, TG_SHAPE(n, 1)), TG_SHAPE(n, rest));
  return shaped_as(
      scatter(c, tg_reshape(x, TG_SHAPE(places, rest)), 0, line, tg_reshape(c->in[2], TG_SHAPE(n, rest))), x);
}

static TgTensor *op_topk(OnnxCall *c) {
  Ints k;
  TgTensor *x = c->in[0], *places = NULL, *values;
  int axis;
  if (!call_ints(c, c->opset >= 10 ? 1 : -1, NULL, &k) ||
      !call_axis(c, attr_i(c, "axis", -1), tg_ndim(x), &axis))
    return NULL;
  int64_t n = k.n ? k.v[0] : attr_i(c, "k", -1);
  attr_unused(c, "sorted"); /* they are always sorted */
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

/* ---- along an axis */
/* 0, 1 .. n - 1 along an axis of a tensor of `rank` axes. */
static TgTensor *steps_along(OnnxCall *c, int64_t n, int axis, int rank) {
  int64_t dims[TG_MAX_RANK];
  for (int a = 0; a < rank; a++)
    dims[a] = a == axis ? n : 1;
  return tg_reshape(onnx_iota(c->ctx, n), rank, dims);
}

/* Reverses the first lens[b] steps of each b; the other steps are unchanged. */
static TgTensor *op_reverse_sequence(OnnxCall *c) {
  TgTensor *x = c->in[0], *lens = tg_long(c->in[1]);
  int batch = (int)attr_i(c, "batch_axis", 1), time = (int)attr_i(c, "time_axis", 0), rank = tg_ndim(x);
  if (rank < 2 || (batch != 0 && batch != 1) || time != 1 - batch)
    return call_fail(c, TG_ERR_SHAPE, "batch_axis %d and time_axis %d of %d axes", batch, time, rank);
  if (tg_ndim(lens) != 1 || tg_size_of(lens, 0) != tg_size_of(x, batch))
    return call_fail(c, TG_ERR_SHAPE, "%lld lengths for %lld", (long long)tg_numel(lens),
                     (long long)tg_dim(x, batch));
  int64_t dims[TG_MAX_RANK];
  for (int a = 0; a < rank; a++)
    dims[a] = a == batch ? tg_size_of(x, batch) : 1;
  TgTensor *step = steps_along(c, tg_size_of(x, time), time, rank), *len = tg_reshape(lens, rank, dims);
  TgTensor *from = tg_where(tg_lt(step, len), tg_add_scalar(tg_sub(len, step), -1), step);
  return tg_gather(x, time, tg_expand(from, rank, sizes_in(x, dims)));
}

/* A cache into which an update is written, at a place given for each batch. If it is circular, places past
 * the end continue at the start. */
static TgTensor *op_tensor_scatter(OnnxCall *c) {
  TgTensor *cache = c->in[0], *update = c->in[1], *first = c->nin > 2 ? c->in[2] : NULL;
  const char *mode = attr_s(c, "mode", "linear");
  int axis, rank = tg_ndim(cache);
  bool circular = !strcmp(mode, "circular");
  if (!circular && strcmp(mode, "linear")) return call_fail(c, TG_ERR_VALUE, "mode %.20s", mode);
  if (!call_axis(c, attr_i(c, "axis", -2), rank, &axis)) return NULL;
  if (axis < 1 || tg_ndim(update) != rank || tg_is_symbolic(update, axis) || tg_is_symbolic(cache, axis) ||
      tg_dim(update, axis) > tg_dim(cache, axis))
    return call_fail(c, TG_ERR_SHAPE, "an update of %d axes along axis %d", tg_ndim(update), axis);
  int64_t dims[TG_MAX_RANK], n = tg_dim(cache, axis);
  for (int a = 0; a < rank; a++)
    dims[a] = a ? 1 : tg_size_of(cache, 0);
  TgTensor *at = steps_along(c, tg_dim(update, axis), axis, rank);
  if (first) at = tg_add(at, tg_reshape(tg_long(first), rank, dims));
  if (circular) at = tg_where(tg_ge_scalar(at, (double)n), tg_add_scalar(at, -(double)n), at);
  return tg_scatter(cache, axis, tg_expand(at, rank, sizes_in(update, dims)), update);
}

/* ---- Unique: the size of the result depends on the values, which are therefore read now */
typedef struct Rows {
  int64_t n, width;
  const double *f; /* the rows as floats; if NULL: */
  /* the rows as whole numbers */
  const int64_t *i;
} Rows;

/* NaN equals NaN, and is greater than all numbers. */
static int by_number(double a, double b) {
  if (a != a || b != b) return (a != a) - (b != b);
  return (a > b) - (a < b);
}

static int by_row(const Rows *r, int64_t a, int64_t b) {
  for (int64_t k = 0; k < r->width; k++) {
    int64_t x = a * r->width + k, y = b * r->width + k;
    int c = r->f ? by_number(r->f[x], r->f[y]) : (r->i[x] > r->i[y]) - (r->i[x] < r->i[y]);
    if (c) return c;
  }
  return 0;
}

/* A stable merge sort of the rows: merges runs of 1, 2, 4 .. rows. The buffers are swapped on the way, and
 * the result is in *order at the end. */
static void rows_sorted(const Rows *r, int64_t **order, int64_t **room) {
  for (int64_t i = 0; i < r->n; i++)
    (*order)[i] = i;
  for (int64_t run = 1; run < r->n; run *= 2) {
    for (int64_t from = 0; from < r->n; from += 2 * run) {
      int64_t mid = from + run < r->n ? from + run : r->n,
              end = from + 2 * run < r->n ? from + 2 * run : r->n;
      int64_t a = from, b = mid;
      for (int64_t k = from; k < end; k++) {
        bool left = a < mid && (b >= end || by_row(r, (*order)[a], (*order)[b]) <= 0);
        (*room)[k] = left ? (*order)[a++] : (*order)[b++];
      }
    }
    int64_t *t = *order;
    *order = *room;
    *room = t;
  }
}

/* Finds groups of equal rows. first[g], times[g]: the first row of group g, and the number of its rows;
 * group_of[i]: the group of row i. The groups are in the order of their values, or, if not sorted, of
 * their first rows. Returns the number of groups. */
static int64_t rows_grouped(const Rows *r, const int64_t *order, bool sorted, int64_t *first, int64_t *times,
                            int64_t *group_of, int64_t *renamed) {
  int64_t n = 0;
  for (int64_t k = 0; k < r->n; k++) {
    if (!k || by_row(r, order[k - 1], order[k])) {
      first[n] = order[k];
      times[n++] = 0;
    }
    group_of[order[k]] = n - 1;
    times[n - 1]++;
  }
  if (sorted) return n;
  int64_t next = 0;
  for (int64_t g = 0; g < n; g++)
    renamed[g] = -1;
  for (int64_t i = 0; i < r->n; i++) {
    int64_t *to = &renamed[group_of[i]];
    if (*to < 0) *to = next++;
    group_of[i] = *to;
  }
  for (int64_t g = 0; g < n; g++)
    times[g] = 0;
  for (int64_t i = r->n - 1; i >= 0; i--) {
    first[group_of[i]] = i;
    times[group_of[i]]++;
  }
  return n;
}

static TgTensor *op_unique(OnnxCall *c) {
  TgTensor *x = c->in[0], *front, *y = NULL;
  int axis = 0;
  if (!call_attr(c, "axis", ONNX_INT))
    x = tg_reshape(x, TG_SHAPE(-1));
  else if (!call_axis(c, attr_i(c, "axis", 0), tg_ndim(x), &axis))
    return NULL;
  bool sorted = attr_i(c, "sorted", 1), is_float = tg_dtype_is_float(tg_dtype(x));
  int64_t n = tg_ndim(x) ? tg_dim(x, axis) : 1, all = tg_numel(x);
  front = axis ? tg_transpose(x, 0, axis) : x;
  if (tg_dtype(x) == TG_U64) front = tg_bitxor(front, tg_full(c->ctx, TG_SCALAR, 0x1p63, .dtype = TG_U64));
  front = tg_contiguous(tg_cast(front, is_float ? TG_F64 : TG_I64)); /* u64 becomes i64 in the same order */
  if (!front) return NULL;
  void *values = tg_alloc(c->ctx, (size_t)all * 8 + 8);
  int64_t *lists = tg_alloc(c->ctx, ((size_t)n + 1) * 6 * sizeof *lists);
  bool ok = values && lists && (!all || !tg_read(front, values, (size_t)all * 8));
  if (ok) {
    int64_t *order = lists, *room = order + n + 1, *first = room + n + 1, *times = first + n + 1,
            *group_of = times + n + 1, *renamed = group_of + n + 1;
    Rows r = {n, n ? all / n : 0, is_float ? values : NULL, is_float ? NULL : values};
    rows_sorted(&r, &order, &room);
    int64_t groups = rows_grouped(&r, order, sorted, first, times, group_of, renamed);
    TgTensor *firsts = tg_from(c->ctx, first, TG_I64, TG_SHAPE(groups));
    TgIndex at[TG_MAX_RANK] = {0};
    at[axis] = (TgIndex){.kind = TG_INDEX_TENSOR, .tensor = firsts};
    y = tg_getitem(x, at, axis + 1);
    if (c->nout > 1) c->out[1] = firsts;
    if (c->nout > 2) c->out[2] = tg_from(c->ctx, group_of, TG_I64, TG_SHAPE(n));
    if (c->nout > 3) c->out[3] = tg_from(c->ctx, times, TG_I64, TG_SHAPE(groups));
  }
  tg_free(c->ctx, values), tg_free(c->ctx, lists);
  return y;
}

const OnnxOp onnx_ops_index[] = {ONNX_SIZED("Gather", 1, 2, 2, op_gather),
                                 ONNX_SIZED("GatherElements", 11, 2, 2, op_gather_elements),
                                 ONNX_SIZED_BOTH("GatherND", 11, 2, 2, op_gather_nd),
                                 ONNX_SIZED("ScatterElements", 11, 3, 3, op_scatter_elements),
                                 ONNX_SIZED("Scatter", 9, 3, 3, op_scatter_elements),
                                 ONNX_SIZED("ScatterND", 11, 3, 3, op_scatter_nd),
                                 ONNX_SIZED("TopK", 1, 1, 2, op_topk),
                                 ONNX_OP("NonZero", 9, 1, 1, op_nonzero),
                                 ONNX_SIZED("OneHot", 9, 3, 3, op_onehot),
                                 ONNX_OP("Compress", 9, 2, 2, op_compress),
                                 ONNX_SIZED("ReverseSequence", 10, 2, 2, op_reverse_sequence),
                                 ONNX_SIZED("TensorScatter", 24, 2, 3, op_tensor_scatter),
                                 ONNX_BOTH("Unique", 11, 1, 1, op_unique),
                                 {0}};
