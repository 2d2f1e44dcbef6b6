/* onnx_shape.c: operators that move data, and operators that return shapes. In: an OnnxCall. Out: lazy
 * tensors, mostly views. Shape and Size make their results in the host context, where values computed from
 * them are known at once. */
#include "onnx_private.h"

static TgTensor *same(TgTensor *x) { return shaped_as(x, x); }

static TgContext *known(OnnxCall *c) { return c->run->m->host ? c->run->m->host : c->ctx; }

static TgTensor *op_shape(OnnxCall *c) {
  int64_t room[TG_MAX_RANK];
  const int64_t *dims = sizes_in(c->in[0], room);
  int64_t n = tg_ndim(c->in[0]), from = attr_i(c, "start", 0), to = attr_i(c, "end", n);
  from = from < 0 ? from + n : from;
  to = to < 0 ? to + n : to;
  from = from < 0 ? 0 : from > n ? n : from;
  to = to < from ? from : to > n ? n : to;
  c->sizes = TG_I64;
  return to > from ? tg_from(known(c), dims + from, TG_I64, TG_SHAPE(to - from))
                   : tg_zeros(known(c), TG_SHAPE(0), .dtype = TG_I64);
}

static TgTensor *op_size(OnnxCall *c) {
  int64_t n = 1;
  for (int a = 0; a < tg_ndim(c->in[0]); a++)
    n = tg_size_mul(c->ctx, n, tg_size_of(c->in[0], a));
  c->sizes = TG_I64;
  return tg_from(known(c), &n, TG_I64, TG_SCALAR);
}

static TgTensor *op_reshape(OnnxCall *c) {
  Ints s;
  TgTensor *x = c->in[0];
  if (!call_sizes(c, 1, "shape", &s)) return NULL;
  if (s.n > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes, at most %d", s.n, TG_MAX_RANK);
  bool zeros = attr_i(c, "allowzero", 0);
  for (int i = 0; i < s.n; i++)
    if (!s.v[i] && !zeros) {
      if (i >= tg_ndim(x))
        return call_fail(c, TG_ERR_SHAPE, "size 0 at axis %d copies a size that is not there", i);
      s.v[i] = tg_size_of(x, i);
    }
  return tg_reshape(x, s.n, s.v);
}

static TgTensor *op_transpose(OnnxCall *c) {
  Ints p;
  TgTensor *x = c->in[0];
  if (!call_ints(c, -1, "perm", &p)) return NULL;
  int n = tg_ndim(x);
  if (!p.given)
    for (p.n = n; n--;)
      p.v[n] = p.n - 1 - n;
  return p.n ? tg_permute(x, p.n, p.v) : same(x);
}

static TgTensor *op_flatten(OnnxCall *c) {
  TgTensor *x = c->in[0];
  int64_t n = tg_ndim(x), axis = attr_i(c, "axis", 1);
  if (axis < -n || axis > n)
    return call_fail(c, TG_ERR_SHAPE, "axis %lld of a tensor of %lld axes", (long long)axis, (long long)n);
  return onnx_matrix(x, (int)(axis < 0 ? axis + n : axis));
}

static TgTensor *op_squeeze(OnnxCall *c) {
  Ints axes;
  TgTensor *x = c->in[0];
  int64_t dims[TG_MAX_RANK];
  int n = 0, rank = tg_ndim(x), at;
  bool drop[TG_MAX_RANK] = {0};
  if (!call_ints(c, c->opset >= 13 ? 1 : -1, "axes", &axes)) return NULL;
  for (int a = 0; a < rank; a++)
    drop[a] = !axes.given && tg_size_of(x, a) == 1;
  for (int i = 0; i < axes.n; i++) {
    if (!call_axis(c, axes.v[i], rank, &at)) return NULL;
    if (tg_size_of(x, at) != 1)
      return call_fail(c, TG_ERR_SHAPE, "axis %d is of size %lld", at, (long long)tg_dim(x, at));
    drop[at] = true;
  }
  for (int a = 0; a < rank; a++)
    if (!drop[a]) dims[n++] = tg_size_of(x, a);
  return tg_reshape(x, n, dims);
}

static TgTensor *op_unsqueeze(OnnxCall *c) {
  Ints axes;
  TgTensor *x = c->in[0];
  int64_t dims[TG_MAX_RANK];
  bool is_new[TG_MAX_RANK] = {0};
  if (!call_ints(c, c->opset >= 13 ? 1 : -1, "axes", &axes)) return NULL;
  int rank = tg_ndim(x) + axes.n, at, from = 0;
  if (rank > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes, at most %d", rank, TG_MAX_RANK);
  for (int i = 0; i < axes.n; i++) {
    if (!call_axis(c, axes.v[i], rank, &at)) return NULL;
    if (is_new[at]) return call_fail(c, TG_ERR_SHAPE, "axis %d is named twice", at);
    is_new[at] = true;
  }
  for (int a = 0; a < rank; a++)
    dims[a] = is_new[a] ? 1 : tg_size_of(x, from++);
  return tg_reshape(x, rank, dims);
}

static TgTensor *op_concat(OnnxCall *c) {
  int axis;
  return !call_axis(c, attr_i(c, "axis", 0), tg_ndim(c->in[0]), &axis) ? NULL
         : c->nin == 1                                                 ? same(c->in[0])
                                                                       : tg_cat(c->in, c->nin, axis);
}

/* Splits an axis of symbolic size into parts of equal sizes, or of the given sizes. */
static TgTensor *split_symbolic(OnnxCall *c, int axis, int64_t n, const Ints *given) {
  int64_t at = 0, each = n;
  if (!given->given && !tg_size_div(c->ctx, n, c->nout, &each))
    return call_fail(c, TG_ERR_SHAPE, "%d equal parts of axis %d, whose size is symbolic", c->nout, axis);
  for (int i = 0; i < c->nout; i++) {
    int64_t next = tg_size_add(c->ctx, at, given->given ? given->v[i] : each);
    if (!(c->out[i] = tg_slice(c->in[0], axis, at, next))) return NULL;
    at = next;
  }
  return at == n ? c->out[0] : call_fail(c, TG_ERR_SHAPE, "the parts are not all of axis %d", axis);
}

static TgTensor *op_split(OnnxCall *c) {
  Ints s;
  TgTensor *x = c->in[0];
  int axis;
  if (!call_sizes(c, c->opset >= 13 ? 1 : -1, c->opset >= 13 ? NULL : "split", &s) ||
      !call_axis(c, attr_i(c, "axis", 0), tg_ndim(x), &axis))
    return NULL;
  int64_t n = tg_size_of(x, axis), parts = attr_i(c, "num_outputs", c->nout), at = 0;
  if (parts != c->nout || (s.given && s.n != c->nout))
    return call_fail(c, TG_ERR_SHAPE, "%lld parts for %d outputs", (long long)(s.given ? s.n : parts),
                     c->nout);
  if (has_symbolic(c->run) && tg_is_symbolic(x, axis)) return split_symbolic(c, axis, n, &s);
  int64_t each = parts ? (n + parts - 1) / parts : 0;
  for (int i = 0; i < c->nout; i++) {
    int64_t size = s.given ? s.v[i] : at + each <= n ? each : n - at;
    if (size < 0 || size > n - at)
      return call_fail(c, TG_ERR_SHAPE, "part %d has %lld of %lld", i, (long long)size, (long long)n);
    if (!(c->out[i] = tg_slice(x, axis, at, at + size))) return NULL;
    at += size;
  }
  return at == n ? c->out[0]
                 : call_fail(c, TG_ERR_SHAPE, "parts add up to %lld of %lld", (long long)at, (long long)n);
}

/* The index of a slice of an axis of n elements, where n or a bound is symbolic; tg_getitem reports what
 * it cannot take. A model that reverses the whole axis takes a step back to an end far below zero. */
static TgIndex slice_symbolic(OnnxCall *c, int64_t n, int64_t b, int64_t e, int64_t step) {
  int64_t least, most = 0;
  tg_size_bounds(c->ctx, n, NULL, &most);
  bool far = e < -most && tg_size_bounds(c->ctx, e, &least, NULL) && least == e;
  bool back = step < 0 && (b == -1 || b >= most - 1) && far;
  if (!back && !onnx_is_symbolic(c, b) && b < -most) b = 0;
  return (TgIndex){
      .kind = TG_INDEX_STEP, .begin = back ? TG_OPEN : b, .end = back ? TG_OPEN : e, .step = step};
}

static TgTensor *op_slice(OnnxCall *c) {
  Ints starts, ends, axes, steps;
  bool input = c->opset >= 10;
  TgTensor *x = c->in[0];
  TgIndex index[TG_MAX_RANK] = {0};
  int rank = tg_ndim(x), axis;
  if (!call_sizes(c, input ? 1 : -1, input ? NULL : "starts", &starts) ||
      !call_sizes(c, input ? 2 : -1, input ? NULL : "ends", &ends) ||
      !call_ints(c, input ? 3 : -1, input ? NULL : "axes", &axes) ||
      !call_ints(c, input ? 4 : -1, NULL, &steps))
    return NULL;
  if (starts.n != ends.n || starts.n > rank || (axes.given && axes.n != starts.n) ||
      (steps.given && steps.n != starts.n))
    return call_fail(c, TG_ERR_SHAPE, "%d starts, %d ends", starts.n, ends.n);
  for (int i = 0; i < starts.n; i++) {
    if (!call_axis(c, axes.given ? axes.v[i] : i, rank, &axis)) return NULL;
    int64_t n = tg_size_of(x, axis), step = steps.given ? steps.v[i] : 1, b = starts.v[i], e = ends.v[i];
    if (has_symbolic(c->run) &&
        (onnx_is_symbolic(c, n) || onnx_is_symbolic(c, b) || onnx_is_symbolic(c, e))) {
      index[axis] = slice_symbolic(c, n, b, e, step);
      continue;
    }
    if (!step) return call_fail(c, TG_ERR_VALUE, "step 0");
    if (step > n + 1) step = n + 1; /* selects the same elements, without overflow */
    if (step < -n - 1) step = -n - 1;
    /* even if the step is negative: unlike NumPy, ONNX has no start before the first element */
    b = b < 0 ? (b < -n ? 0 : b + n) : b > n ? n : b;
    e = e < 0 ? (e < -n ? -1 : e + n) : e > n ? n : e;
    if (step > 0) e = e < 0 ? 0 : e;
    if (!n || (step > 0 ? b >= e : b <= e)) {
      b = e = 0;
      step = 1;
    }
    index[axis] =
        (TgIndex){.kind = TG_INDEX_STEP, .begin = b, .end = step < 0 && e < 0 ? TG_OPEN : e, .step = step};
  }
  return rank ? tg_getitem(x, index, rank) : same(x);
}

static TgTensor *op_expand(OnnxCall *c) {
  Ints s;
  TgTensor *x = c->in[0];
  if (!call_sizes(c, 1, NULL, &s)) return NULL;
  int rank = tg_ndim(x) > s.n ? tg_ndim(x) : s.n;
  int64_t dims[TG_MAX_RANK];
  if (rank > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes, at most %d", rank, TG_MAX_RANK);
  for (int a = 0; a < rank; a++) { /* broadcasts both ways, from the last axis */
    int64_t p = a - (rank - tg_ndim(x)) >= 0 ? tg_size_of(x, a - (rank - tg_ndim(x))) : 1;
    int64_t q = a - (rank - s.n) >= 0 ? s.v[a - (rank - s.n)] : 1;
    dims[a] = q == 1 ? p : q;
  }
  return rank ? tg_expand(x, rank, dims) : same(x);
}

static TgTensor *op_tile(OnnxCall *c) {
  Ints s;
  if (!call_sizes(c, 1, NULL, &s)) return NULL;
  if (s.n != tg_ndim(c->in[0]))
    return call_fail(c, TG_ERR_SHAPE, "%d repeats for %d axes", s.n, tg_ndim(c->in[0]));
  return s.n ? tg_repeat(c->in[0], s.n, s.v) : same(c->in[0]);
}

enum { PAD_LIMIT = 1 << 30 };

static bool whole_of_64(const TgTensor *x) { return tg_dtype(x) == TG_I64 || tg_dtype(x) == TG_U64; }

/* Wraps x along each axis: repeats it, and takes the requested number of elements before and after.
 * Elements that are cropped are not repeated. */
static TgTensor *wrapped(OnnxCall *c, TgTensor *x, const int64_t *lo, const int64_t *hi) {
  int64_t crop_lo[TG_MAX_RANK], crop_hi[TG_MAX_RANK], times[TG_MAX_RANK];
  int rank = tg_ndim(x);
  for (int a = 0; a < rank; a++) {
    crop_lo[a] = lo[a] < 0 ? lo[a] : 0;
    crop_hi[a] = hi[a] < 0 ? hi[a] : 0;
  }
  x = tg_pad(x, crop_lo, crop_hi);
  for (int a = 0; x && a < rank; a++) {
    int64_t before = lo[a] > 0 ? lo[a] : 0, behind = hi[a] > 0 ? hi[a] : 0, n = tg_size_of(x, a);
    if (!before && !behind) continue;
    if (has_symbolic(c->run) && onnx_is_symbolic(c, n))
      return call_fail(c, TG_ERR_SHAPE, "axis %d, of symbolic size, wrapped", a);
    if (!n) return call_fail(c, TG_ERR_SHAPE, "axis %d has no elements to wrap", a);
    int64_t turns = (before + n - 1) / n, from = turns * n - before;
    for (int i = 0; i < rank; i++)
      times[i] = i == a ? turns + 1 + (behind + n - 1) / n : 1;
    x = tg_slice(tg_repeat(x, rank, times), a, from, from + before + n + behind);
  }
  return x;
}

static TgTensor *op_pad(OnnxCall *c) {
  Ints p, axes;
  TgTensor *x = c->in[0];
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  int rank = tg_ndim(x), axis, nv = 0;
  double value = attr_f(c, "value", 0);
  bool input = c->opset >= 11;
  const char *mode = attr_s(c, "mode", "constant");
  if (!call_ints(c, input ? 1 : -1, input ? NULL : "pads", &p) ||
      !call_ints(c, input ? 3 : -1, NULL, &axes) || (input && !call_doubles(c, 2, &value, 1, &nv)))
    return NULL;
  int n = axes.given ? axes.n : rank;
  if (p.n != 2 * n || n > rank) return call_fail(c, TG_ERR_SHAPE, "%d pads for %d axes", p.n, n);
  for (int i = 0; i < n; i++) {
    if (!call_axis(c, axes.given ? axes.v[i] : i, rank, &axis)) return NULL;
    if (p.v[i] < -PAD_LIMIT || p.v[i] > PAD_LIMIT || p.v[i + n] < -PAD_LIMIT || p.v[i + n] > PAD_LIMIT)
      return call_fail(c, TG_ERR_VALUE, "pads of axis %d", axis);
    lo[axis] = p.v[i];
    hi[axis] = p.v[i + n];
  }
  if (!rank) return same(x);
  /* a double cannot hold every such value */
  if (!strcmp(mode, "constant") && whole_of_64(x) && input && c->in[2]) {
    TgTensor *v = tg_reshape(c->in[2], TG_SCALAR);
    return tg_add(tg_pad(tg_sub(x, v), lo, hi), v);
  }
  if (!strcmp(mode, "constant")) return tg_pad_value(x, lo, hi, value);
  bool reflect = !strcmp(mode, "reflect"), wrap = !strcmp(mode, "wrap");
  if (!reflect && !wrap && strcmp(mode, "edge")) return call_fail(c, TG_ERR_VALUE, "mode %.20s", mode);
  return wrap ? wrapped(c, x, lo, hi) : tg_pad_mode(x, lo, hi, reflect ? TG_PAD_REFLECT : TG_PAD_REPLICATE);
}

static TgTensor *op_constant(OnnxCall *c) {
  TgContext *ctx = known(c);
  const OnnxAttr *a;
  if ((a = call_attr(c, "value", ONNX_TENSOR)) && a->t)
    return a->t->host && c->ctx == ctx ? same(a->t->host) : same(a->t->main);
  if ((a = call_attr(c, "value_float", ONNX_FLOAT))) return tg_from_f64(ctx, &a->f, TG_F32, TG_SCALAR);
  if ((a = call_attr(c, "value_int", ONNX_INT))) return tg_from(ctx, &a->i, TG_I64, TG_SCALAR);
  if ((a = call_attr(c, "value_floats", ONNX_FLOATS)))
    return a->nfloats ? tg_from_f64(ctx, a->floats, TG_F32, TG_SHAPE((int64_t)a->nfloats))
                      : tg_zeros(ctx, TG_SHAPE(0));
  if ((a = call_attr(c, "value_ints", ONNX_INTS)))
    return a->nints ? tg_from(ctx, a->ints, TG_I64, TG_SHAPE((int64_t)a->nints))
                    : tg_zeros(ctx, TG_SHAPE(0), .dtype = TG_I64);
  return call_fail(c, TG_ERR_VALUE, "strings and sparse values are not implemented");
}

static TgTensor *op_constant_of_shape(OnnxCall *c) {
  Ints s;
  const OnnxAttr *a = call_attr(c, "value", ONNX_TENSOR);
  if (!call_sizes(c, 0, NULL, &s)) return NULL;
  if (s.n > TG_MAX_RANK) return call_fail(c, TG_ERR_SHAPE, "%d axes, at most %d", s.n, TG_MAX_RANK);
  if (!a || !a->t) return tg_zeros(c->ctx, s.n, s.v);
  TgTensor *t = a->t->host ? a->t->host : a->t->main;
  TgDType d = tg_dtype(t);
  if (tg_numel(t) != 1) return call_fail(c, TG_ERR_SHAPE, "a value of %lld elements", (long long)tg_numel(t));
  return tg_dtype_is_float(d) ? tg_full(c->ctx, s.n, s.v, tg_item_f64(t), .dtype = d)
                              : tg_full_i64(c->ctx, s.n, s.v, tg_item_i64(t), d);
}

/* A range of integers, computed exactly; the doubles were only used to check that it is not too long. */
static TgTensor *range_of_whole(OnnxCall *c) {
  Ints v[3];
  for (int i = 0; i < 3; i++)
    if (!call_ints(c, i, NULL, &v[i])) return NULL;
  int64_t from = v[0].v[0], to = v[1].v[0], step = v[2].v[0];
  uint64_t far = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
  uint64_t each = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  bool any = step > 0 ? from < to : from > to;
  TgTensor *i = tg_arange(c->ctx, 0, any ? (double)((far - 1) / each + 1) : 0, .dtype = TG_I64);
  i = tg_mul(i, tg_from(c->ctx, v[2].v, TG_I64, TG_SCALAR));
  return tg_cast(tg_add(i, tg_from(c->ctx, v[0].v, TG_I64, TG_SCALAR)), tg_dtype(c->in[0]));
}

/* A range from one size to another, with step 1. */
static TgTensor *range_of_sizes(OnnxCall *c) {
  Ints v[3];
  for (int i = 0; i < 3; i++)
    if (!call_sizes(c, i, NULL, &v[i]) || v[i].n != 1) return NULL;
  if (v[2].v[0] != 1)
    return call_fail(c, TG_ERR_SHAPE, "step %lld between symbolic sizes", (long long)v[2].v[0]);
  TgTensor *i = onnx_iota(c->ctx, tg_size_sub(c->ctx, v[1].v[0], v[0].v[0]));
  return as(v[0].v[0] ? tg_add(i, onnx_size_like(i, v[0].v[0])) : i, tg_dtype(c->in[0]));
}

static TgTensor *op_range(OnnxCall *c) {
  double v[3];
  int n;
  TgDType d = tg_dtype(c->in[0]);
  for (int i = 0; i < 3; i++)
    if (has_symbolic(c->run) && c->raw[i]->sizes) return range_of_sizes(c);
  for (int i = 0; i < 3; i++)
    if (!call_doubles(c, i, &v[i], 1, &n)) return NULL;
  if (v[2] == 0) return call_fail(c, TG_ERR_VALUE, "step 0");
  double count = (v[1] - v[0]) / v[2];
  if (!(count < 0x1p31)) return call_fail(c, TG_ERR_VALUE, "from %g to %g by %g", v[0], v[1], v[2]);
  if (!tg_dtype_is_float(d)) return range_of_whole(c);
  int64_t steps = count > 0 ? (int64_t)count + ((double)(int64_t)count < count) : 0;
  TgTensor *i = tg_arange(c->ctx, 0, (double)steps, .dtype = d == TG_F64 ? TG_I64 : TG_I32);
  TgDType wide = d == TG_F64 ? TG_F64 : TG_F32;
  return tg_cast(tg_add_scalar(tg_mul_scalar(tg_cast(i, wide), v[2]), v[0]), d);
}

static TgTensor *op_eyelike(OnnxCall *c) {
  TgTensor *x = c->in[0];
  const OnnxAttr *a = call_attr(c, "dtype", ONNX_INT);
  TgDType d = a ? onnx_dtype(a->i) : tg_dtype(x);
  if (tg_ndim(x) != 2 || !d)
    return call_fail(c, TG_ERR_SHAPE, "a matrix is needed, and a data type that is known");
  int64_t n = tg_dim(x, 0), m = tg_dim(x, 1);
  TgTensor *row = tg_reshape(tg_arange(c->ctx, 0, (double)n, .dtype = TG_I64), TG_SHAPE(n, 1));
  TgTensor *col = tg_reshape(tg_arange(c->ctx, 0, (double)m, .dtype = TG_I64), TG_SHAPE(1, m));
  return tg_cast(tg_eq(tg_add_scalar(row, (double)attr_i(c, "k", 0)), col), d);
}

static TgTensor *op_trilu(OnnxCall *c) {
  Ints k;
  if (!call_ints(c, 1, NULL, &k)) return NULL;
  int64_t d = k.n ? k.v[0] : 0, far = (int64_t)1 << 40;
  d = d < -far ? -far : d > far ? far : d;
  return attr_i(c, "upper", 1) ? tg_triu(c->in[0], d) : tg_tril(c->in[0], d);
}

static TgTensor *op_depth_to_space(OnnxCall *c) {
  TgTensor *x = c->in[0];
  int64_t b = attr_i(c, "blocksize", 0);
  if (tg_ndim(x) != 4) return call_fail(c, TG_ERR_SHAPE, "an input of %d axes, not 4", tg_ndim(x));
  int64_t n = tg_size_of(x, 0);
  int64_t ch = tg_size_of(x, 1);
  int64_t h = tg_size_of(x, 2);
  int64_t w = tg_size_of(x, 3);
  if (b < 1 || b > 1 << 20 || tg_is_symbolic(x, 1) || ch % (b * b))
    return call_fail(c, TG_ERR_SHAPE, "%lld channels in blocks of %lld", (long long)ch, (long long)b);
  bool crd = !strcmp(attr_s(c, "mode", "DCR"), "CRD");
  int64_t r = ch / (b * b);
  x = crd ? tg_permute(tg_reshape(x, TG_SHAPE(n, r, b, b, h, w)), TG_SHAPE(0, 1, 4, 2, 5, 3))
          : tg_permute(tg_reshape(x, TG_SHAPE(n, b, b, r, h, w)), TG_SHAPE(0, 3, 4, 1, 5, 2));
  return tg_reshape(x, TG_SHAPE(n, r, tg_size_mul(c->ctx, h, b), tg_size_mul(c->ctx, w, b)));
}

static TgTensor *op_space_to_depth(OnnxCall *c) {
  TgTensor *x = c->in[0];
  int64_t b = attr_i(c, "blocksize", 0);
  if (tg_ndim(x) != 4) return call_fail(c, TG_ERR_SHAPE, "an input of %d axes, not 4", tg_ndim(x));
  int64_t n = tg_size_of(x, 0);
  int64_t ch = tg_size_of(x, 1);
  int64_t h = tg_size_of(x, 2);
  int64_t w = tg_size_of(x, 3);
  if (b < 1 || b > 1 << 20 || !tg_size_div(c->ctx, h, b, &h) || !tg_size_div(c->ctx, w, b, &w))
    return call_fail(c, TG_ERR_SHAPE, "%lld by %lld in blocks of %lld", (long long)tg_dim(x, 2),
                     (long long)tg_dim(x, 3), (long long)b);
  x = tg_permute(tg_reshape(x, TG_SHAPE(n, ch, h, b, w, b)), TG_SHAPE(0, 3, 5, 1, 2, 4));
  return tg_reshape(x, TG_SHAPE(n, tg_size_mul(c->ctx, ch, b * b), h, w));
}

const OnnxOp onnx_ops_shape[] = {ONNX_SIZED("Shape", 1, 1, 1, op_shape),
                                 ONNX_SIZED("Size", 1, 1, 1, op_size),
                                 ONNX_SIZED("Reshape", 5, 2, 2, op_reshape),
                                 ONNX_SIZED("Transpose", 1, 1, 1, op_transpose),
                                 ONNX_SIZED("Flatten", 1, 1, 1, op_flatten),
                                 ONNX_SIZED("Squeeze", 1, 1, 2, op_squeeze),
                                 ONNX_SIZED("Unsqueeze", 1, 1, 2, op_unsqueeze),
                                 ONNX_SIZED("Concat", 1, 1, -1, op_concat),
                                 ONNX_SIZED("Split", 1, 1, 2, op_split),
                                 ONNX_SIZED("Slice", 1, 1, 5, op_slice),
                                 ONNX_SIZED("Expand", 8, 2, 2, op_expand),
                                 ONNX_SIZED("Tile", 6, 2, 2, op_tile),
                                 ONNX_SIZED("Pad", 1, 1, 4, op_pad),
                                 ONNX_OP("Constant", 1, 0, 0, op_constant),
                                 ONNX_SIZED("ConstantOfShape", 9, 1, 1, op_constant_of_shape),
                                 ONNX_SIZED_BOTH("Range", 11, 3, 3, op_range),
                                 ONNX_OP("EyeLike", 9, 1, 1, op_eyelike),
                                 ONNX_SIZED_BOTH("Trilu", 14, 1, 2, op_trilu),
                                 ONNX_SIZED("DepthToSpace", 1, 1, 1, op_depth_to_space),
                                 ONNX_SIZED("SpaceToDepth", 1, 1, 1, op_space_to_depth),
                                 {0}};
