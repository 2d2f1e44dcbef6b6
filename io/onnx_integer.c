/* onnx_integer.c: a quantised model run with integers alone. In: a model whose tensors pass QuantizeLinear
 * and DequantizeLinear, or QLinear operators, with scales that are constants. Out: the same results, each
 * 8-bit number within one unit, and no float on the way.
 *
 * A float value is carried as integers beside a scale that is known: real = integer * scale, `most` bounds
 * the integer. Scales are numbers of this process. In the graph stand products of integers, and where a
 * scale changes a multiplication by 31 bits and a shift, which rounds halves to even as ONNX does. What has
 * no such form is refused by the name of its node. */
#include "onnx_private.h"
#include <math.h>

enum { RANK = TG_MAX_RANK, SUM_BITS = 28, FACTOR_BITS = 15, TABLE_MOST = 2048 };

/* scale: one number, or n along `axis`. plain: the quantised tensor that it was, or NULL. real: its numbers
 * where they are constants, nreal of them; else NULL. */
struct OnnxScaled {
  OnnxScaled *next;
  double most;
  int axis;
  int64_t n, nreal;
  TgTensor *plain;
  double *real;
  double scale[];
};

/* An operand: integers of 32 bits, and what they stand for. */
typedef struct Scaled {
  TgTensor *t;
  const OnnxScaled *s;
} Scaled;

static const Scaled none = {NULL, NULL};

/* ---- numbers that are constants */
/* Of input i: *n numbers, in memory of the run; false: it is not known, or an error. */
static bool known(OnnxCall *c, int i, const double **v, int64_t *n) {
  OnnxVal *x = i < c->nin ? c->raw[i] : NULL;
  if (!x || !x->t || x->scaled) return false;
  *n = tg_numel(x->t);
  if (x->of && x->of->numbers) return *v = x->of->numbers, true;
  if (!x->host || *n > ONNX_KNOWN_MOST) return false;
  OnnxScaled *room = tg_alloc(c->run->m->ctx, sizeof *room + (size_t)(*n + 1) * sizeof(double));
  if (!room) return false;
  *room = (OnnxScaled){.next = c->run->scaled};
  c->run->scaled = room;
  *v = room->scale;
  return !*n || !tg_read_f64(x->t, room->scale, (size_t)*n);
}

static bool needs(OnnxCall *c, int i, const char *what, const double **v, int64_t *n) {
  if (known(c, i, v, n) && *n > 0) return true;
  if (!tg_error(c->ctx))
    call_fail(c, TG_ERR_VALUE, "integers alone: %s (input %d) must be a constant", what, i);
  return false;
}

static OnnxScaled *scaled_new(OnnxCall *c, int64_t n, int axis, double most) {
  OnnxScaled *s = tg_alloc(c->run->m->ctx, sizeof *s + (size_t)n * sizeof(double));
  if (!s) return NULL;
  *s = (OnnxScaled){.next = c->run->scaled, .most = most, .axis = axis, .n = n};
  c->run->scaled = s;
  return s;
}

static OnnxScaled *with_scale(OnnxCall *c, double scale, double most) {
  OnnxScaled *s = scaled_new(c, 1, 0, most);
  if (s) s->scale[0] = scale;
  return s;
}

static double greatest(const double *v, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++)
    most = fmax(most, fabs(v[i]));
  return most;
}

/* v along one axis of a tensor of that rank, or alone, as a constant of the graph. */
static TgTensor *constant(OnnxCall *c, const double *v, int64_t n, int axis, int rank, TgDType d) {
  int64_t dims[RANK];
  for (int a = 0; a < rank; a++)
    dims[a] = n > 1 && a == axis ? n : 1;
  if (n == 1) return tg_full_i64(c->ctx, TG_SCALAR, (int64_t)v[0], d);
  int64_t *whole = tg_alloc(c->run->m->ctx, (size_t)n * sizeof *whole);
  for (int64_t i = 0; whole && i < n; i++)
    whole[i] = (int64_t)v[i];
  TgTensor *t = whole ? call_constant(c, whole, TG_I64, rank, dims) : NULL;
  tg_free(c->run->m->ctx, whole);
  return as(t, d);
}

/* ---- a change of scale */
/* x * ratio, rounded, halves to even, as i64: by 31 bits and a shift. ratio: n along axis, > 0. */
static TgTensor *multiplied(OnnxCall *c, TgTensor *x, const double *ratio, int64_t n, int axis) {
  OnnxScaled *room = scaled_new(c, 3 * n, 0, 0);
  if (!room) return NULL;
  double *factor = room->scale, *shift = factor + n, *below_half = shift + n;
  bool one = true;
  for (int64_t i = 0; i < n; i++) {
    int exponent;
    factor[i] = floor(ldexp(frexp(ratio[i], &exponent), 31) + 0.5);
    shift[i] = 31 - exponent;
    if (shift[i] > 62) factor[i] = floor(ldexp(factor[i], 62 - (int)shift[i]) + 0.5), shift[i] = 62;
    if (!(ratio[i] > 0) || shift[i] < 1)
      return call_fail(c, TG_ERR_VALUE, "integers alone: a change of scale by %g", ratio[i]);
    below_half[i] = ldexp(1, (int)shift[i] - 1) - 1;
    one &= ratio[i] == 1;
  }
  x = as(x, TG_I64);
  if (one) return x;
  int rank = tg_ndim(x);
  TgTensor *by = constant(c, shift, n, axis, rank, TG_I64);
  TgTensor *p = tg_mul(x, constant(c, factor, n, axis, rank, TG_I64));
  TgTensor *odd = tg_bitand(tg_shr(p, by), tg_full_i64(c->ctx, TG_SCALAR, 1, TG_I64));
  return tg_shr(tg_add(tg_add(p, constant(c, below_half, n, axis, rank, TG_I64)), odd), by);
}

/* The same value by another scale, one number. */
static Scaled at_scale(OnnxCall *c, Scaled x, double scale) {
  OnnxScaled *ratio = scaled_new(c, x.s->n, x.s->axis, 0);
  double most = 0;
  for (int64_t i = 0; ratio && i < x.s->n; i++) {
    ratio->scale[i] = x.s->scale[i] / scale;
    most = fmax(most, ceil(x.s->most * ratio->scale[i]));
  }
  if (!ratio) return none;
  if (x.s->n == 1 && x.s->scale[0] == scale) return x;
  return (Scaled){as(multiplied(c, x.t, ratio->scale, x.s->n, x.s->axis), TG_I32),
                  with_scale(c, scale, most)};
}

/* The scale by which `most` of the value takes so many bits. */
static double scale_of_bits(Scaled x, int bits) {
  return x.s->most * greatest(x.s->scale, x.s->n) / ldexp(1, bits);
}

static Scaled uniform(OnnxCall *c, Scaled x) {
  if (!x.t || x.s->n == 1) return x;
  return at_scale(c, x, fmax(scale_of_bits(x, SUM_BITS), 1e-300));
}

static bool same_scale(const OnnxScaled *a, const OnnxScaled *b) {
  bool same = a->n == b->n && (a->n == 1 || a->axis == b->axis);
  for (int64_t i = 0; same && i < a->n; i++)
    same = a->scale[i] == b->scale[i];
  return same;
}

/* ---- quantised tensors */
static bool dtype_range(TgDType d, double *lo, double *hi) {
  switch (d) {
  case TG_U8: return *lo = 0, *hi = 255, true;
  case TG_I8: return *lo = -128, *hi = 127, true;
  case TG_U16: return *lo = 0, *hi = 65535, true;
  case TG_I16: return *lo = -32768, *hi = 32767, true;
  case TG_I32: return *lo = INT32_MIN, *hi = INT32_MAX, true;
  default: return false;
  }
}

static bool axis_of(OnnxCall *c, int64_t along, int rank, int64_t n, int64_t dim, int *axis) {
  *axis = 0;
  if (n == 1) return true;
  if (!call_axis(c, along, rank, axis)) return false;
  return n == dim || (call_fail(c, TG_ERR_SHAPE, "integers alone: %lld scales for %lld elements",
                                (long long)n, (long long)dim),
                      false);
}

/* Scales of input is and zero points of input iz (all zeros where that is left out) beside x. */
typedef struct Points {
  const double *scale, *zero;
  int64_t n, nzero;
  int axis;
} Points;

static bool points_of(OnnxCall *c, int is, int iz, TgTensor *x, int64_t along, Points *p) {
  static const double zero = 0;
  *p = (Points){.zero = &zero, .nzero = 1};
  if (!needs(c, is, "a scale", &p->scale, &p->n)) return false;
  if (iz < c->nin && c->raw[iz] && !needs(c, iz, "a zero point", &p->zero, &p->nzero)) return false;
  int64_t n = p->n > p->nzero ? p->n : p->nzero;
  int rank = tg_ndim(x), axis = (int)(along < 0 ? along + rank : along);
  if ((p->n != n && p->n != 1) || (p->nzero != n && p->nzero != 1))
    return call_fail(c, TG_ERR_SHAPE, "integers alone: %lld zero points for %lld scales", (long long)p->nzero,
                     (long long)p->n),
           false;
  return axis_of(c, along, rank, n, axis >= 0 && axis < rank ? tg_dim(x, axis) : 0, &p->axis);
}

/* The numbers of a constant, as they really are. */
static bool real_set(OnnxCall *c, OnnxScaled *s, int ix, TgTensor *x, const Points *p) {
  const double *q;
  int64_t n, below = 1;
  if (!known(c, ix, &q, &n)) return !tg_error(c->ctx);
  OnnxScaled *room = scaled_new(c, n + 1, 0, 0);
  for (int a = p->axis + 1; a < tg_ndim(x); a++)
    below *= tg_dim(x, a);
  for (int64_t i = 0; room && i < n; i++) {
    int64_t k = i / below;
    room->scale[i] = (q[i] - p->zero[k % p->nzero]) * p->scale[k % p->n];
  }
  s->real = room ? room->scale : NULL;
  s->nreal = n;
  return room;
}

static Scaled dequantised(OnnxCall *c, int ix, int is, int iz, int64_t along) {
  TgTensor *x = val_main(c->run, c->raw[ix]);
  Points p;
  double lo, hi, most = 0;
  if (!x) return none;
  if (c->raw[ix]->scaled || !dtype_range(tg_dtype(x), &lo, &hi))
    return call_fail(c, TG_ERR_DTYPE, "integers alone: input %d is %s", ix, tg_dtype_name(tg_dtype(x))), none;
  if (!points_of(c, is, iz, x, along, &p)) return none;
  for (int64_t i = 0; i < p.nzero; i++)
    most = fmax(most, fmax(hi - p.zero[i], p.zero[i] - lo));
  OnnxScaled *s = scaled_new(c, p.n, p.axis, most);
  if (!s || !real_set(c, s, ix, x, &p)) return none;
  memcpy(s->scale, p.scale, (size_t)p.n * sizeof *s->scale);
  s->plain = x;
  TgTensor *t = as(x, TG_I32);
  if (greatest(p.zero, p.nzero) > 0) t = tg_sub(t, constant(c, p.zero, p.nzero, p.axis, tg_ndim(x), TG_I32));
  return (Scaled){t, s};
}

/* x as numbers of dtype d. */
static TgTensor *quantised(OnnxCall *c, Scaled x, int is, int iz, TgDType d, int64_t along) {
  Points p;
  double lo, hi;
  if (!x.t || !points_of(c, is, iz, x.t, along, &p)) return NULL;
  if (!dtype_range(d, &lo, &hi) || d == TG_I32)
    return call_fail(c, TG_ERR_DTYPE, "integers alone: a result of %s", tg_dtype_name(d));
  if (x.s->n > 1 && p.n > 1 && x.s->axis != p.axis) x = uniform(c, x);
  int64_t n = x.s->n > p.n ? x.s->n : p.n;
  int axis = p.n > 1 ? p.axis : x.s->axis, rank = tg_ndim(x.t);
  OnnxScaled *ratio = scaled_new(c, n, axis, 0);
  for (int64_t i = 0; ratio && i < n; i++)
    ratio->scale[i] = x.s->scale[i % x.s->n] / p.scale[i % p.n];
  TgTensor *y = ratio ? multiplied(c, x.t, ratio->scale, n, axis) : NULL;
  if (greatest(p.zero, p.nzero) > 0) y = tg_add(y, constant(c, p.zero, p.nzero, p.axis, rank, TG_I64));
  return tg_cast(tg_clamp(y, lo, hi), d);
}

/* ---- operands */
/* The tensor of a constant of floats: integers of so many bits. */
static Scaled of_floats(OnnxCall *c, int i, int bits) {
  const double *v;
  int64_t n;
  if (!known(c, i, &v, &n) || !n)
    return tg_error(c->ctx)
               ? NULL
               : call_fail(c, TG_ERR_VALUE, "integers alone: input %d is of floats: quantise it", i),
           none;
  double scale = greatest(v, n) / ldexp(1, bits);
  if (scale == 0) scale = 1;
  OnnxScaled *s = scaled_new(c, 1, 0, ldexp(1, bits));
  int32_t *whole = tg_alloc(c->run->m->ctx, (size_t)n * sizeof *whole);
  for (int64_t k = 0; whole && k < n; k++)
    whole[k] = (int32_t)nearbyint(v[k] / scale);
  TgTensor *x = c->raw[i]->t;
  TgTensor *t = whole && s ? call_constant(c, whole, TG_I32, tg_ndim(x), tg_shape(x)) : NULL;
  tg_free(c->run->m->ctx, whole);
  if (!t) return none;
  s->scale[0] = scale;
  s->real = (double *)v, s->nreal = n;
  return (Scaled){t, s};
}

static Scaled operand(OnnxCall *c, int i, int bits) {
  OnnxVal *x = i < c->nin ? c->raw[i] : NULL;
  if (!x) return call_fail(c, TG_ERR_VALUE, "integers alone: input %d is left out", i), none;
  return x->scaled ? (Scaled){x->t, x->scaled} : of_floats(c, i, bits);
}

/* The numbers of input i, a constant of either kind. */
static bool reals(OnnxCall *c, int i, const double **v, int64_t *n) {
  const OnnxScaled *s = c->raw[i] ? c->raw[i]->scaled : NULL;
  if (!s) return needs(c, i, "what is added", v, n);
  *v = s->real, *n = s->nreal;
  return s->real || (call_fail(c, TG_ERR_VALUE, "integers alone: input %d must be a constant", i), false);
}

/* What is added to sums of this scale: n numbers of input i, the last axis along the scales. */
static TgTensor *addend(OnnxCall *c, int i, const OnnxScaled *s, double times, int ndim,
                        const int64_t *dims) {
  const double *v;
  int64_t n;
  if (!reals(c, i, &v, &n)) return NULL;
  int32_t *whole = tg_alloc(c->run->m->ctx, (size_t)(n + 1) * sizeof *whole);
  if (!whole) return NULL;
  bool fits = s->n == 1 || n % s->n == 0;
  for (int64_t k = 0; fits && k < n; k++) {
    double w = nearbyint(times * v[k] / s->scale[k % s->n]);
    fits = fabs(w) < 2147483648.0;
    whole[k] = fits ? (int32_t)w : 0;
  }
  TgTensor *t = fits ? call_constant(c, whole, TG_I32, ndim, dims)
                     : call_fail(c, TG_ERR_VALUE, "integers alone: input %d does not fit 32 bits", i);
  tg_free(c->run->m->ctx, whole);
  return t;
}

/* ---- operators. Each gives its first output; the table says which ones. */
typedef Scaled Op(OnnxCall *c);

/* The scale of sums of `terms` products. */
static OnnxScaled *product_scale(OnnxCall *c, const OnnxScaled *a, const OnnxScaled *b, int axis,
                                 int64_t terms) {
  double most = a->most * b->most * (double)terms;
  if (b->real) { /* what a constant really has is less */
    double least = INFINITY;
    for (int64_t i = 0; i < b->n; i++)
      least = fmin(least, b->scale[i]);
    most = fmin(most, a->most * ceil(greatest(b->real, b->nreal) / least) * (double)terms);
  }
  if (most >= 2147483648.0)
    return call_fail(c, TG_ERR_VALUE, "integers alone: a sum of %lld products may leave 32 bits",
                     (long long)terms),
           NULL;
  OnnxScaled *s = scaled_new(c, a->n > b->n ? a->n : b->n, axis, most);
  for (int64_t i = 0; s && i < s->n; i++)
    s->scale[i] = a->scale[i % a->n] * b->scale[i % b->n];
  return s;
}

static Scaled conv(OnnxCall *c, Scaled x, Scaled w, int bias) {
  Spatial g = {0};
  if (!x.t || !w.t) return none;
  x = uniform(c, x);
  if (w.s->n > 1 && w.s->axis != 0)
    return call_fail(c, TG_ERR_VALUE, "integers alone: scales of filters along another axis"), none;
  if (!onnx_spatial(c, x.t, w.t, &g)) return none;
  OnnxScaled *s = product_scale(c, x.s, w.s, 1, tg_numel(w.t) / (tg_dim(w.t, 0) ? tg_dim(w.t, 0) : 1));
  if (!s) return none;
  TgTensor *b = NULL;
  int64_t filters = tg_dim(w.t, 0);
  if (bias < c->nin && c->raw[bias] && !(b = addend(c, bias, s, 1, 1, &filters))) return none;
  TgTensor *y = tg_conv2d(x.t, w.t, .bias = b, .groups = attr_i(c, "group", 1), .stride = g.stride,
                          .dilation = g.dilation, .padding = g.padding);
  return (Scaled){y, s};
}

static Scaled product(OnnxCall *c, Scaled a, Scaled b) {
  if (!a.t || !b.t) return none;
  int ra = tg_ndim(a.t), rb = tg_ndim(b.t), rank = ra > rb ? ra : rb;
  if (!ra || !rb) return call_fail(c, TG_ERR_SHAPE, "integers alone: a product with a number"), none;
  bool rows = a.s->n > 1, columns = b.s->n > 1;
  if (rows && (columns || a.s->axis != ra - 2)) a = uniform(c, a), rows = false;
  if (columns && b.s->axis != rb - 1) b = uniform(c, b), columns = false;
  int axis = rows ? rank - 2 : rank - 1;
  if (ra > 1 && rb == 1 && rows) axis = rank - 2;
  OnnxScaled *s = product_scale(c, a.s, b.s, axis, tg_dim(a.t, ra - 1));
  return s ? (Scaled){tg_matmul(a.t, b.t), s} : none;
}

static Scaled op_conv(OnnxCall *c) { return conv(c, operand(c, 0, FACTOR_BITS), operand(c, 1, 7), 2); }

/* The scales of one group's results, for those of all groups. */
static OnnxScaled *repeated(OnnxCall *c, const OnnxScaled *each, int64_t groups) {
  OnnxScaled *s = scaled_new(c, each->n * groups, each->axis, each->most);
  for (int64_t i = 0; s && i < s->n; i++)
    s->scale[i] = each->scale[i % each->n];
  return s;
}

/* The operator itself, on integers. */
static Scaled op_conv_transpose(OnnxCall *c) {
  Scaled x = uniform(c, operand(c, 0, FACTOR_BITS)), w = operand(c, 1, 7);
  if (!x.t || !w.t) return none;
  int64_t groups = attr_i(c, "group", 1);
  if (w.s->n > 1 && w.s->axis != 1)
    return call_fail(c, TG_ERR_VALUE, "integers alone: scales of filters along another axis"), none;
  int64_t each = tg_ndim(w.t) > 1 ? tg_dim(w.t, 1) : 0, channels = each * groups;
  OnnxScaled *s = product_scale(c, x.s, w.s, 1, each ? tg_numel(w.t) / each : 1);
  if (s && s->n > 1 && groups > 1) s = repeated(c, s, groups);
  TgTensor *b = NULL;
  if (!s || (c->nin > 2 && c->raw[2] && !(b = addend(c, 2, s, 1, 1, &channels)))) return none;
  c->in[0] = x.t, c->in[1] = w.t, c->in[2] = b;
  return (Scaled){onnx_op_called(c), s};
}

static Scaled op_matmul(OnnxCall *c) { return product(c, operand(c, 0, 7), operand(c, 1, 7)); }

static Scaled turned(OnnxCall *c, Scaled x, bool on) {
  if (!on || !x.t) return x;
  OnnxScaled *s = scaled_new(c, x.s->n, !x.s->axis, x.s->most);
  if (!s) return none;
  memcpy(s->scale, x.s->scale, (size_t)s->n * sizeof *s->scale);
  s->real = x.s->real, s->nreal = x.s->nreal; /* only its greatest is looked at */
  return (Scaled){tg_transpose(x.t, 0, 1), s};
}

static Scaled op_gemm(OnnxCall *c) {
  Scaled a = operand(c, 0, 7), b = operand(c, 1, 7);
  double alpha = attr_f(c, "alpha", 1), beta = attr_f(c, "beta", 1);
  bool ta = attr_i(c, "transA", 0), tb = attr_i(c, "transB", 0);
  if (!a.t || !b.t) return none;
  if (tg_ndim(a.t) != 2 || tg_ndim(b.t) != 2 || !(alpha > 0))
    return call_fail(c, TG_ERR_VALUE, "integers alone: operands of %d and %d axes, alpha %g", tg_ndim(a.t),
                     tg_ndim(b.t), alpha),
           none;
  Scaled y = product(c, turned(c, a, ta), turned(c, b, tb));
  if (!y.t) return none;
  OnnxScaled *s = (OnnxScaled *)y.s;
  for (int64_t i = 0; i < s->n; i++)
    s->scale[i] *= alpha;
  if (c->nin < 3 || !c->raw[2]) return y;
  TgTensor *t = c->raw[2]->t;
  if (s->n > 1 && tg_numel(t) != s->n) y = uniform(c, y), s = (OnnxScaled *)y.s;
  TgTensor *more = y.t ? addend(c, 2, s, beta, tg_ndim(t), tg_shape(t)) : NULL;
  return more ? (Scaled){tg_add(y.t, more), s} : none;
}

/* Sums have room for all operands, however their scales differ. */
static bool at_one_scale(OnnxCall *c, Scaled *x, int n) {
  double most = 0;
  bool same = true;
  for (int i = 0; i < n; i++) {
    if (!x[i].t) return false;
    same = same && same_scale(x[0].s, x[i].s) && x[i].s->most < ldexp(1, SUM_BITS);
    most = fmax(most, x[i].s->most * greatest(x[i].s->scale, x[i].s->n));
  }
  for (int i = 0; i < n && !(same && x[0].s->n == 1); i++)
    if (!(x[i] = at_scale(c, x[i], fmax(most / ldexp(1, SUM_BITS), 1e-300))).t) return false;
  return true;
}

static Scaled merged(OnnxCall *c, Scaled a, Scaled b, TgTensor *(*how)(TgTensor *, TgTensor *)) {
  Scaled x[2] = {a, b};
  if (!at_one_scale(c, x, 2)) return none;
  return (Scaled){how(x[0].t, x[1].t), with_scale(c, x[0].s->scale[0], x[0].s->most + x[1].s->most)};
}

static Scaled op_add(OnnxCall *c) { return merged(c, operand(c, 0, 24), operand(c, 1, 24), tg_add); }

static Scaled op_sub(OnnxCall *c) { return merged(c, operand(c, 0, 24), operand(c, 1, 24), tg_sub); }

static Scaled op_max(OnnxCall *c) {
  return c->nin == 1 ? operand(c, 0, 24) : merged(c, operand(c, 0, 24), operand(c, 1, 24), tg_maximum);
}

static Scaled op_min(OnnxCall *c) {
  return c->nin == 1 ? operand(c, 0, 24) : merged(c, operand(c, 0, 24), operand(c, 1, 24), tg_minimum);
}

static Scaled narrowed(OnnxCall *c, Scaled x, int bits) {
  x = uniform(c, x);
  return !x.t || x.s->most <= ldexp(1, bits) ? x : at_scale(c, x, scale_of_bits(x, bits));
}

static Scaled times(OnnxCall *c, Scaled a, Scaled b) {
  a = narrowed(c, a, FACTOR_BITS), b = narrowed(c, b, FACTOR_BITS);
  if (!a.t || !b.t) return none;
  return (Scaled){tg_mul(a.t, b.t), with_scale(c, a.s->scale[0] * b.s->scale[0], a.s->most * b.s->most)};
}

static Scaled op_mul(OnnxCall *c) { return times(c, operand(c, 0, 14), operand(c, 1, 14)); }

/* The integer that stands for v by each scale. */
static TgTensor *level(OnnxCall *c, Scaled x, double v) {
  OnnxScaled *room = scaled_new(c, x.s->n, 0, 0);
  for (int64_t i = 0; room && i < x.s->n; i++)
    room->scale[i] = fmax(-2147483647.0, fmin(2147483647.0, nearbyint(v / x.s->scale[i])));
  return room ? constant(c, room->scale, x.s->n, x.s->axis, tg_ndim(x.t), TG_I32) : NULL;
}

static Scaled op_relu(OnnxCall *c) {
  Scaled x = operand(c, 0, 24);
  return x.t ? (Scaled){tg_maximum(x.t, level(c, x, 0)), x.s} : none;
}

static Scaled op_clip(OnnxCall *c) {
  Scaled x = operand(c, 0, 24);
  double limit[2] = {attr_f(c, "min", -INFINITY), attr_f(c, "max", INFINITY)};
  if (!x.t) return none;
  for (int i = 0; i < 2; i++) {
    const double *v;
    int64_t n;
    if (i + 1 >= c->nin || !c->raw[i + 1]) continue;
    if (!reals(c, i + 1, &v, &n)) return none;
    limit[i] = *v;
  }
  TgTensor *y = limit[0] > -INFINITY ? tg_maximum(x.t, level(c, x, limit[0])) : x.t;
  return (Scaled){limit[1] < INFINITY ? tg_minimum(y, level(c, x, limit[1])) : y, x.s};
}

static Scaled leaky(OnnxCall *c, Scaled x) {
  double slope = attr_f(c, "alpha", 0.01f);
  if (!x.t) return none;
  if (!(slope > 0 && slope <= 1)) return call_fail(c, TG_ERR_VALUE, "integers alone: alpha %g", slope), none;
  Scaled fine = at_scale(c, uniform(c, x), scale_of_bits(x, SUM_BITS));
  TgTensor *less = fine.t ? as(multiplied(c, fine.t, &slope, 1, 0), TG_I32) : NULL;
  return less ? (Scaled){tg_maximum(fine.t, less), fine.s} : none;
}

static Scaled op_leaky(OnnxCall *c) { return leaky(c, operand(c, 0, 24)); }

/* ---- averages: sums, by a smaller scale */
static Scaled summed(OnnxCall *c, Scaled x, TgTensor *sum, int64_t count, bool mean) {
  if (!sum) return none;
  if (x.s->most * (double)count >= 2147483648.0)
    return call_fail(c, TG_ERR_VALUE, "integers alone: a sum of %lld numbers may leave 32 bits",
                     (long long)count),
           none;
  return (Scaled){sum, with_scale(c, x.s->scale[0] / (mean ? (double)count : 1), x.s->most * (double)count)};
}

static Scaled averaged(OnnxCall *c, Scaled x, TgAxes axes, bool keep, bool mean) {
  int64_t count = 1;
  for (int i = 0; i < axes.n; i++)
    count *= tg_dim(x.t, axes.v[i]);
  return summed(c, x, tg_cast(tg_sum(x.t, .axis = axes, .keepdim = keep, .dtype = TG_I32), TG_I32), count,
                mean);
}

static Scaled global_average(OnnxCall *c, Scaled x, int from, int to) {
  TgAxes axes = {0};
  x = narrowed(c, x, 16);
  if (!x.t) return none;
  if (to - from < 1) return call_fail(c, TG_ERR_SHAPE, "no spatial axes"), none;
  for (int a = from; a < to; a++)
    axes.v[axes.n++] = a;
  return averaged(c, x, axes, true, true);
}

static Scaled op_global_average(OnnxCall *c) {
  Scaled x = operand(c, 0, 15);
  return x.t ? global_average(c, x, 2, tg_ndim(x.t)) : none;
}

static Scaled reduced(OnnxCall *c, bool mean) {
  Scaled x = narrowed(c, operand(c, 0, 15), 15);
  Ints v;
  TgAxes axes = {0};
  if (!x.t || !call_ints(c, 1, "axes", &v)) return none;
  bool keep = attr_i(c, "keepdims", 1), nothing = attr_i(c, "noop_with_empty_axes", 0) && !v.n;
  if (nothing) return x;
  for (int i = 0; i < (v.n ? v.n : tg_ndim(x.t)); i++)
    if (!call_axis(c, v.n ? v.v[i] : i, tg_ndim(x.t), &axes.v[axes.n++])) return none;
  return averaged(c, x, axes, keep, mean);
}

static Scaled op_reduce_mean(OnnxCall *c) { return reduced(c, true); }

static Scaled op_reduce_sum(OnnxCall *c) { return reduced(c, false); }

/* Sums of windows of which some have fewer numbers than the kernel along an axis, as they lie over the edge: the
 * sums that full windows would have, times 2^bits. */
static TgTensor *as_full(OnnxCall *c, TgTensor *sum, const Spatial *g, int i, int64_t dim, int bits) {
  int axis = 2 + i;
  int64_t n = tg_dim(sum, axis), before = g->padding.v[2 * (g->n - 1 - i)];
  OnnxScaled *ratio = scaled_new(c, n > 1 ? n : 1, axis, 0);
  for (int64_t o = 0; ratio && o < n; o++) {
    int64_t within = 0;
    for (int64_t k = 0; k < g->kernel.v[i]; k++) {
      int64_t at = o * g->stride.v[i] + k * g->dilation.v[i] - before;
      within += at >= 0 && at < dim;
    }
    if (!within) return call_fail(c, TG_ERR_VALUE, "integers alone: a window of padding alone");
    ratio->scale[o] = ldexp((double)g->kernel.v[i] / (double)within, bits);
  }
  return ratio && n ? multiplied(c, sum, ratio->scale, n, axis) : sum;
}

/* Windows: by a convolution with ones, each channel alone. */
static Scaled average_pool(OnnxCall *c, Scaled x) {
  Spatial g = {0};
  int64_t dims[RANK], count = 1;
  x = narrowed(c, x, 15);
  if (!x.t || !onnx_spatial(c, x.t, NULL, &g)) return none;
  if (attr_i(c, "ceil_mode", 0))
    return call_fail(c, TG_ERR_VALUE, "integers alone: windows of different sizes (ceil_mode)"), none;
  dims[0] = tg_dim(x.t, 1), dims[1] = 1;
  for (int i = 0; i < g.n; i++)
    count *= dims[2 + i] = g.kernel.v[i];
  TgTensor *ones = tg_ones(c->ctx, g.n + 2, dims, .dtype = TG_I32);
  TgTensor *sum = tg_conv2d(x.t, ones, .groups = dims[0], .stride = g.stride, .dilation = g.dilation,
                            .padding = g.padding);
  bool pads = attr_i(c, "count_include_pad", 0);
  int bits = 0, spare = 30 - ilogb(x.s->most * (double)count + 1);
  for (int i = 0; sum && i < g.n && !pads; i++) /* by all bits that there are, as each is rounded */
    if (g.padding.v[2 * i] || g.padding.v[2 * i + 1]) {
      int more = bits || spare < 0 ? 0 : spare < 16 ? spare : 16;
      sum = as_full(c, sum, &g, g.n - 1 - i, tg_dim(x.t, 2 + g.n - 1 - i), more);
      bits += more;
    }
  Scaled y = summed(c, x, as(sum, TG_I32), count, true);
  return y.t ? (Scaled){y.t, with_scale(c, ldexp(y.s->scale[0], -bits), ldexp(y.s->most, bits))} : none;
}

static Scaled op_average_pool(OnnxCall *c) { return average_pool(c, operand(c, 0, 15)); }

/* ---- functions of one number: a table */
/* The node on the host, or `of`, for every integer that x may be. */
static bool function_values(OnnxCall *c, double scale, int most, double (*of)(double x), double *v) {
  for (int i = 0; of && i <= 2 * most; i++)
    v[i] = of(scale * (double)(i - most));
  if (of) return true;
  TgOnnx *m = c->run->m;
  int64_t n = 2 * (int64_t)most + 1;
  for (int i = 1; i < c->nin; i++) {
    const OnnxScaled *s = c->raw[i] ? c->raw[i]->scaled : NULL;
    if (s && !(s->real && s->nreal == 1))
      return call_fail(c, TG_ERR_VALUE, "integers alone: input %d must be a constant number", i), false;
    c->in[i] = s ? tg_full(m->host, TG_SCALAR, s->real[0]) : c->raw[i] ? c->raw[i]->t : NULL;
  }
  float *x = tg_alloc(m->ctx, (size_t)n * sizeof *x);
  for (int64_t i = 0; x && i < n; i++)
    x[i] = (float)(scale * (double)(i - most));
  c->ctx = m->host;
  TgTensor *t = x ? tg_from(m->host, x, TG_F32, TG_SHAPE(n)) : NULL;
  tg_free(m->ctx, x);
  c->in[0] = t;
  TgTensor *y = t ? onnx_op_called(c) : NULL;
  bool ok = y && tg_numel(y) == n && !tg_read_f64(as(y, TG_F32), v, (size_t)n);
  c->ctx = m->ctx;
  if (ok) return true;
  const char *why = tg_error(m->host) ? tg_errmsg(m->host) : "not of one number";
  call_fail(c, TG_ERR_VALUE, "integers alone: no table: %s", why);
  tg_clear_error(m->host);
  return false;
}

/* So few integers that a table may have an element for each. */
static Scaled for_table(OnnxCall *c, Scaled x) {
  x = uniform(c, x);
  if (!x.t || !c->run->m->host) return none;
  return x.s->most > TABLE_MOST ? at_scale(c, x, x.s->most * x.s->scale[0] / TABLE_MOST) : x;
}

/* Element `at` of a table, of which none lies outside. */
static TgTensor *chosen(TgTensor *table, TgTensor *at) {
  TgTensor *y = tg_gather(table, 0, tg_reshape(at, TG_SHAPE(tg_numel(at))));
  return as(tg_reshape(y, tg_ndim(at), tg_shape(at)), TG_I32);
}

static Scaled looked_up(OnnxCall *c, Scaled x, double (*of)(double x)) {
  x = for_table(c, x);
  int most = x.t ? (int)x.s->most : 0, range = 2 * most + 1;
  OnnxScaled *room = scaled_new(c, range, 0, 0);
  if (!room || !x.t || !function_values(c, x.s->scale[0], most, of, room->scale)) return none;
  for (int i = 0; i < range; i++)
    room->scale[i] = room->scale[i] != room->scale[i] ? 0 : fmax(-1e30, fmin(1e30, room->scale[i]));
  double scale = greatest(room->scale, range) / 32767;
  int16_t *table = tg_alloc(c->run->m->ctx, (size_t)range * sizeof *table);
  if (!table) return none;
  if (scale == 0) scale = 1;
  for (int i = 0; i < range; i++)
    table[i] = (int16_t)nearbyint(room->scale[i] / scale);
  TgTensor *t = call_constant(c, table, TG_I16, TG_SHAPE((int64_t)range));
  tg_free(c->run->m->ctx, table);
  TgTensor *at = tg_clamp(tg_add(x.t, tg_full_i64(c->ctx, TG_SCALAR, most, TG_I32)), 0, range - 1);
  return at ? (Scaled){chosen(t, at), with_scale(c, scale, 32767)} : none;
}

static Scaled op_table(OnnxCall *c) { return looked_up(c, operand(c, 0, 11), NULL); }

enum { BITS = 15 }; /* of exponentials and their quotients */

/* The logarithm of n exponentials' sum, and how far each number lies below the largest, taken together: the sum is
 * a power of 2, times what its first TOP bits say, of which there is a table, times a little more than 1. */
static Scaled log_of(OnnxCall *c, double scale, TgTensor *below, TgTensor *sum, int64_t n) {
  enum { TOP = 8, ENTRIES = 1 << TOP };

  int bits = 4;
  while (bits < 16 && scale > ldexp(1, bits - 15))
    bits++;
  double unit = ldexp(scale, -bits), most = log((double)n + 1) / unit;
  if (most >= ldexp(1, SUM_BITS))
    return call_fail(c, TG_ERR_VALUE, "integers alone: a scale of %g", scale), none;
  int32_t table[ENTRIES];
  for (int i = 0; i < ENTRIES; i++)
    table[i] = (int32_t)nearbyint(log1p((double)i / ENTRIES) / unit);
  TgTensor *power = tg_zeros_like(sum);
  for (int i = 1; INT64_C(1) << i <= n; i++)
    power = tg_add(power, as(tg_ge_scalar(sum, ldexp(1, BITS + i)), TG_I32));
  TgTensor *by = tg_add_scalar(power, BITS - TOP), *first = tg_shr(sum, by), *whole = tg_shl(first, by);
  TgTensor *more =
      tg_floordiv(tg_mul_scalar(as(tg_sub(sum, whole), TG_I64), nearbyint(1 / unit)), as(whole, TG_I64));
  TgTensor *y = chosen(call_constant(c, table, TG_I32, TG_SHAPE(ENTRIES)), tg_sub_scalar(first, ENTRIES));
  y = tg_add(tg_add(y, as(more, TG_I32)), tg_mul_scalar(power, nearbyint(log(2) / unit)));
  y = tg_neg(tg_add(tg_shl_scalar(below, bits), y));
  return (Scaled){y, with_scale(c, unit, ldexp(2 * TABLE_MOST, bits) + most)};
}

/* Along an axis: exponentials of how far each lies below the largest, from a table, over their sum, or the
 * logarithm of that. */
static Scaled softmax_along(OnnxCall *c, Scaled x, int axis, bool log) {
  x = for_table(c, x);
  if (!x.t) return none;
  if (tg_dim(x.t, axis) >= INT64_C(1) << (31 - BITS))
    return call_fail(c, TG_ERR_LIMIT, "integers alone: a softmax of %lld numbers",
                     (long long)tg_dim(x.t, axis)),
           none;
  int range = 2 * (int)x.s->most + 1;
  int32_t *table = tg_alloc(c->run->m->ctx, (size_t)range * sizeof *table);
  for (int i = 0; table && i < range; i++)
    table[i] = (int32_t)nearbyint(ldexp(exp(-x.s->scale[0] * i), BITS));
  TgTensor *t = table ? call_constant(c, table, TG_I32, TG_SHAPE((int64_t)range)) : NULL;
  tg_free(c->run->m->ctx, table);
  TgTensor *below = tg_sub(tg_max(x.t, .axis = TG_AXES(axis), .keepdim = true), x.t);
  if (!t || !below) return none;
  TgTensor *e = chosen(t, tg_clamp(below, 0, range - 1));
  TgTensor *sum = as(tg_sum(e, .axis = TG_AXES(axis), .keepdim = true, .dtype = TG_I32), TG_I32);
  if (log) return log_of(c, x.s->scale[0], below, sum, tg_dim(x.t, axis));
  TgTensor *half = tg_shr(sum, tg_full_i64(c->ctx, TG_SCALAR, 1, TG_I32));
  TgTensor *y = tg_floordiv(tg_add(tg_shl(e, tg_full_i64(c->ctx, TG_SCALAR, BITS, TG_I32)), half), sum);
  return (Scaled){y, with_scale(c, ldexp(1, -BITS), ldexp(1, BITS))};
}

/* Before opset 13 over all axes from `axis` on. */
static Scaled softmax(OnnxCall *c, Scaled x, int opset, bool log) {
  int axis, rank = x.t ? tg_ndim(x.t) : 0;
  if (!x.t || !call_axis(c, attr_i(c, "axis", opset < 13 ? 1 : -1), rank, &axis)) return none;
  if (opset >= 13) return softmax_along(c, x, axis, log);
  int64_t lead = 1, dims[RANK];
  memcpy(dims, tg_shape(x.t), (size_t)rank * sizeof *dims);
  for (int a = 0; a < axis; a++)
    lead *= dims[a];
  x = uniform(c, x);
  if (!x.t) return none;
  x.t = tg_reshape(x.t, TG_SHAPE(lead, lead ? tg_numel(x.t) / lead : 0));
  Scaled y = softmax_along(c, x, 1, log);
  return y.t ? (Scaled){tg_reshape(y.t, rank, dims), y.s} : none;
}

static Scaled op_softmax(OnnxCall *c) {
  return softmax(c, operand(c, 0, 11), c->opset, !strcmp(c->n->op, "LogSoftmax"));
}

/* ---- what moves numbers: the operator itself, on integers */
static Scaled op_moves(OnnxCall *c) {
  Scaled x = uniform(c, operand(c, 0, 24));
  OnnxVal whole = {.t = x.t}, nothing = {0};
  if (!x.t) return none;
  if (!strcmp(c->n->op, "MaxPool") && c->nout > 1 && c->n->out[1])
    return call_fail(c, TG_ERR_VALUE, "integers alone: places of the largest"), none;
  c->raw[0] = &whole;
  if (!strcmp(c->n->op, "Pad") && c->nin > 2 && c->raw[2]) { /* a value by the same scale */
    const double *v;
    int64_t n;
    if (!reals(c, 2, &v, &n)) return none;
    double level_of = nearbyint(*v / x.s->scale[0]);
    nothing = (OnnxVal){
        .t = tg_full_i64(c->run->m->host ? c->run->m->host : c->ctx, TG_SCALAR, (int64_t)level_of, TG_I32),
        .host = c->run->m->host != NULL};
    c->raw[2] = &nothing;
  }
  for (int i = 0; i < c->nin; i++)
    c->in[i] = c->raw[i] ? val_main(c->run, c->raw[i]) : NULL;
  return (Scaled){onnx_op_called(c), x.s};
}

/* Places of numbers are integers that stand for themselves. */
static Scaled op_places(OnnxCall *c) {
  c->in[0] = uniform(c, operand(c, 0, 24)).t;
  return (Scaled){c->in[0] ? onnx_op_called(c) : NULL, NULL};
}

static Scaled op_resize(OnnxCall *c) {
  if (strcmp(attr_s(c, "mode", "nearest"), "nearest"))
    return call_fail(c, TG_ERR_VALUE, "integers alone: numbers between two"), none;
  return op_moves(c);
}

enum { MOST_PARTS = 64 };

static Scaled joined(OnnxCall *c, Scaled *x, int n) {
  TgTensor *t[MOST_PARTS];
  int axis, first = 0;
  if (!at_one_scale(c, x, n) || !call_axis(c, attr_i(c, "axis", 0), tg_ndim(x[0].t), &axis)) return none;
  for (int i = 0; i < n; i++) {
    t[i] = x[i].t;
    if (x[i].s->most > x[first].s->most) first = i;
  }
  return (Scaled){tg_cat(t, n, axis), x[first].s};
}

static bool parts_fit(OnnxCall *c, int n) {
  return (n > 0 && n <= MOST_PARTS) ||
         (call_fail(c, TG_ERR_LIMIT, "integers alone: %d inputs", c->nin), false);
}

static Scaled op_concat(OnnxCall *c) {
  Scaled x[MOST_PARTS];
  if (!parts_fit(c, c->nin)) return none;
  for (int i = 0; i < c->nin; i++)
    x[i] = operand(c, i, 24);
  return joined(c, x, c->nin);
}

/* ---- QuantizeLinear, DequantizeLinear and the operators that have both within */
static TgDType dtype_asked(OnnxCall *c, int iz) {
  int64_t to = attr_i(c, "output_dtype", 0);
  return iz < c->nin && c->raw[iz] ? tg_dtype(c->raw[iz]->t) : to ? onnx_dtype(to) : TG_U8;
}

static bool is_narrow(OnnxCall *c) {
  for (int i = 0; i < c->nin; i++)
    if (c->raw[i] && c->raw[i]->narrow)
      return call_fail(c, TG_ERR_DTYPE, "integers alone: numbers of less than 8 bits"), true;
  if (attr_i(c, "block_size", 0)) return call_fail(c, TG_ERR_VALUE, "integers alone: scales of blocks"), true;
  return false;
}

/* An input of the model is given quantised. */
static Scaled op_quantize(OnnxCall *c) {
  TgDType d = dtype_asked(c, 2);
  int64_t axis = attr_i(c, "axis", 1);
  attr_unused(c, "saturate"), attr_unused(c, "precision");
  if (is_narrow(c)) return none;
  if (!c->raw[0]->scaled && tg_dtype(c->raw[0]->t) == d) return (Scaled){val_main(c->run, c->raw[0]), NULL};
  return (Scaled){quantised(c, operand(c, 0, 24), 1, 2, d, axis), NULL};
}

static Scaled op_dequantize(OnnxCall *c) {
  attr_unused(c, "output_dtype");
  return is_narrow(c) ? none : dequantised(c, 0, 1, 2, attr_i(c, "axis", 1));
}

static Scaled op_q_conv(OnnxCall *c) {
  Scaled x = dequantised(c, 0, 1, 2, 1), w = dequantised(c, 3, 4, 5, 0);
  Spatial g = {0};
  if (!x.t || !w.t || !onnx_spatial(c, x.t, w.t, &g)) return none;
  OnnxScaled *s = product_scale(c, x.s, w.s, 1, tg_numel(w.t) / (tg_dim(w.t, 0) ? tg_dim(w.t, 0) : 1));
  if (!s) return none;
  TgTensor *bias =
      c->nin > 8 && c->raw[8] ? as(val_main(c->run, c->raw[8]), TG_I32) : NULL; /* by the scale of sums */
  TgTensor *y = tg_conv2d(x.t, w.t, .bias = bias, .groups = attr_i(c, "group", 1), .stride = g.stride,
                          .dilation = g.dilation, .padding = g.padding);
  return (Scaled){quantised(c, (Scaled){y, s}, 6, 7, dtype_asked(c, 7), 1), NULL};
}

static Scaled op_q_matmul(OnnxCall *c) {
  Scaled a = dequantised(c, 0, 1, 2, -2), b = dequantised(c, 3, 4, 5, -1);
  return (Scaled){quantised(c, product(c, a, b), 6, 7, dtype_asked(c, 7), -1), NULL};
}

static Scaled two_quantised(OnnxCall *c, bool product_of) {
  Scaled a = dequantised(c, 0, 1, 2, 1), b = dequantised(c, 3, 4, 5, 1);
  Scaled y = product_of ? times(c, a, b) : merged(c, a, b, tg_add);
  return (Scaled){quantised(c, y, 6, 7, dtype_asked(c, 7), 1), NULL};
}

static Scaled op_q_add(OnnxCall *c) { return two_quantised(c, false); }

static Scaled op_q_mul(OnnxCall *c) { return two_quantised(c, true); }

static Scaled op_q_average(OnnxCall *c) {
  Scaled x = dequantised(c, 0, 1, 2, 1);
  bool last = attr_i(c, "channels_last", 0);
  Scaled y = x.t ? global_average(c, x, last ? 1 : 2, tg_ndim(x.t) - last) : none;
  return (Scaled){quantised(c, y, 3, 4, dtype_asked(c, 4), 1), NULL};
}

static Scaled op_q_average_pool(OnnxCall *c) {
  Scaled x = dequantised(c, 0, 1, 2, 1);
  bool last = attr_i(c, "channels_last", 0);
  if (!x.t) return none;
  if (last) x = uniform(c, x), x.t = onnx_channels_moved(x.t, false);
  Scaled y = average_pool(c, x);
  if (last) y.t = onnx_channels_moved(y.t, true);
  return (Scaled){quantised(c, y, 3, 4, dtype_asked(c, 4), 1), NULL};
}

static Scaled op_q_leaky(OnnxCall *c) {
  return (Scaled){quantised(c, leaky(c, dequantised(c, 0, 1, 2, 1)), 3, 4, dtype_asked(c, 4), 1), NULL};
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static Scaled op_q_sigmoid(OnnxCall *c) {
  Scaled y = looked_up(c, dequantised(c, 0, 1, 2, 1), sigmoid);
  return (Scaled){quantised(c, y, 3, 4, dtype_asked(c, 4), 1), NULL};
}

static Scaled op_q_softmax(OnnxCall *c) {
  Scaled y = softmax(c, dequantised(c, 0, 1, 2, 1), (int)attr_i(c, "opset", 13), false);
  return (Scaled){quantised(c, y, 3, 4, dtype_asked(c, 4), 1), NULL};
}

static Scaled op_q_concat(OnnxCall *c) { /* the result's scale and zero point first */
  Scaled x[MOST_PARTS];
  int n = (c->nin - 2) / 3;
  if (!parts_fit(c, n)) return none;
  for (int i = 0; i < n; i++)
    if (!(x[i] = dequantised(c, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i, 1)).t) return none;
  return (Scaled){quantised(c, joined(c, x, n), 0, 1, dtype_asked(c, 1), 1), NULL};
}

static Scaled op_constant(OnnxCall *c) {
  const OnnxAttr *a = call_attr(c, "value", ONNX_TENSOR);
  if (!a || !a->t) return none;
  c->run->vals[c->n->out[0]] = (OnnxVal){.t = a->t->host ? a->t->host : a->t->main,
                                         .moved = a->t->host ? a->t->main : NULL,
                                         .host = a->t->host != NULL,
                                         .narrow = a->t->narrow,
                                         .of = a->t};
  return (Scaled){a->t->main, NULL};
}

/* always: it has floats or scales within, whatever comes in; else it is called where an input has a scale. */
static const struct Row {
  const char *ops;
  Op *fn;
  bool always;
} rows[] = {
    {" QuantizeLinear ", op_quantize, true},
    {" DequantizeLinear ", op_dequantize, true},
    {" QLinearConv ", op_q_conv, true},
    {" QLinearMatMul ", op_q_matmul, true},
    {" QLinearAdd ", op_q_add, true},
    {" QLinearMul ", op_q_mul, true},
    {" QLinearGlobalAveragePool ", op_q_average, true},
    {" QLinearAveragePool ", op_q_average_pool, true},
    {" QLinearLeakyRelu ", op_q_leaky, true},
    {" QLinearSigmoid ", op_q_sigmoid, true},
    {" QLinearSoftmax ", op_q_softmax, true},
    {" QLinearConcat ", op_q_concat, true},
    {" Conv ", op_conv, false},
    {" ConvTranspose ", op_conv_transpose, false},
    {" Softmax LogSoftmax ", op_softmax, false},
    {" MatMul ", op_matmul, false},
    {" Gemm ", op_gemm, false},
    {" Add ", op_add, false},
    {" Sub ", op_sub, false},
    {" Mul ", op_mul, false},
    {" Max ", op_max, false},
    {" Min ", op_min, false},
    {" Relu ", op_relu, false},
    {" Clip ", op_clip, false},
    {" LeakyRelu ", op_leaky, false},
    {" GlobalAveragePool ", op_global_average, false},
    {" AveragePool ", op_average_pool, false},
    {" ReduceMean ", op_reduce_mean, false},
    {" ReduceSum ", op_reduce_sum, false},
    {" Concat ", op_concat, false},
    {" ArgMax ArgMin ", op_places, false},
    {" Resize Upsample ", op_resize, false},
    {" Sigmoid Tanh HardSigmoid HardSwish Elu Selu Celu Gelu Erf Exp Softplus Softsign Mish Swish Sqrt Log "
     "Reciprocal Sin Cos Tan Atan Abs Neg Floor Ceil Round Sign ThresholdedRelu Shrink "
     "Pow Div PRelu ",
     op_table, false},
    {" Reshape Flatten Squeeze Unsqueeze Transpose Slice Identity Dropout Gather Split Expand Tile "
     "DepthToSpace "
     "SpaceToDepth Pad MaxPool GlobalMaxPool ReduceMax ReduceMin ",
     op_moves, false}};

static bool is_word(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)); p += n)
    if (p[-1] == ' ' && p[n] == ' ') return true;
  return false;
}

static const struct Row *row_of(const char *op, bool scaled) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (is_word(rows[i].ops, op)) return rows[i].always || scaled ? &rows[i] : NULL;
  return NULL;
}

/* A constant has numbers that later nodes may ask for; what is no constant and a float is refused. */
static bool floats_in(OnnxCall *c) {
  for (int i = 0; i < c->nin; i++)
    if (c->raw[i] && c->raw[i]->t && !c->raw[i]->host && !c->raw[i]->of &&
        tg_dtype_is_float(tg_dtype(c->raw[i]->t)))
      return true;
  return false;
}

bool onnx_integer_node(OnnxCall *c, bool *done) {
  bool scaled = false;
  for (int i = 0; i < c->nin; i++)
    scaled |= c->raw[i] && c->raw[i]->scaled;
  *done = true;
  if (!strcmp(c->n->op, "Constant") && op_constant(c).t) return true;
  const struct Row *row = row_of(c->n->op, scaled);
  if (!row && (scaled || floats_in(c) || !strncmp(c->n->op, "QLinear", 7)))
    return call_fail(c, TG_ERR_VALUE, "integers alone: the operator has no form without floats"), false;
  *done = row != NULL;
  if (!row) return true;
  memset(c->out, 0, (size_t)c->nout * sizeof *c->out);
  Scaled y = row->fn(c);
  c->out[0] = y.t;
  if (!y.t || tg_error(c->ctx)) return false;
  for (int i = 0; i < c->nout; i++)
    if (c->n->out[i] && c->out[i]) c->run->vals[c->n->out[i]] = (OnnxVal){.t = c->out[i], .scaled = y.s};
  return true;
}

TgTensor *onnx_scaled_plain(const OnnxScaled *s) { return s->plain; }
