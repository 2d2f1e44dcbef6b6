/* onnx_scaled.c: integers and their scales, for a quantised model that is run with integers alone. In:
 * inputs of a node: tensors of 8 to 32 bits with scales and zero points, or constants of floats. Out:
 * operands, changes of scale, and results as 8- or 16-bit numbers. The graph contains no floats: a change
 * of scale is a multiplication by a number of 31 bits and a shift, which rounds halves to even as ONNX
 * does. */
#include "onnx_scaled.h"

/* ---- numbers that are constants */
/* The numbers of input i: *n of them, in memory of the run. Returns false if they are not known, or on an
 * error. */
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

OnnxScaled *scaled_new(OnnxCall *c, int64_t n, int axis, double most) {
  OnnxScaled *s = tg_alloc(c->run->m->ctx, sizeof *s + (size_t)n * sizeof(double));
  if (!s) return NULL;
  *s = (OnnxScaled){.next = c->run->scaled, .most = most, .axis = axis, .n = n};
  c->run->scaled = s;
  return s;
}

OnnxScaled *scaled_one(OnnxCall *c, double scale, double most) {
  OnnxScaled *s = scaled_new(c, 1, 0, most);
  if (s) s->scale[0] = scale;
  return s;
}

double scaled_greatest(const double *v, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++)
    most = fmax(most, fabs(v[i]));
  return most;
}

TgTensor *scaled_constant(OnnxCall *c, const double *v, int64_t n, int axis, int rank, TgDType d) {
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
/* Multiplies by a number of 31 bits, then shifts. */
TgTensor *scaled_multiplied(OnnxCall *c, TgTensor *x, const double *ratio, int64_t n, int axis) {
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
  TgTensor *by = scaled_constant(c, shift, n, axis, rank, TG_I64);
  TgTensor *p = tg_mul(x, scaled_constant(c, factor, n, axis, rank, TG_I64));
  TgTensor *odd = tg_bitand(tg_shr(p, by), tg_full_i64(c->ctx, TG_SCALAR, 1, TG_I64));
  return tg_shr(tg_add(tg_add(p, scaled_constant(c, below_half, n, axis, rank, TG_I64)), odd), by);
}

Scaled scaled_at(OnnxCall *c, Scaled x, double scale) {
  OnnxScaled *ratio = scaled_new(c, x.s->n, x.s->axis, 0);
  double most = 0;
  for (int64_t i = 0; ratio && i < x.s->n; i++) {
    ratio->scale[i] = x.s->scale[i] / scale;
    most = fmax(most, ceil(x.s->most * ratio->scale[i]));
  }
  if (!ratio) return scaled_none;
  if (x.s->n == 1 && x.s->scale[0] == scale) return x;
  return (Scaled){as(scaled_multiplied(c, x.t, ratio->scale, x.s->n, x.s->axis), TG_I32),
                  scaled_one(c, scale, most)};
}

double scaled_unit(Scaled x, int bits) {
  return x.s->most * scaled_greatest(x.s->scale, x.s->n) / ldexp(1, bits);
}

Scaled scaled_uniform(OnnxCall *c, Scaled x) {
  if (!x.t || x.s->n == 1) return x;
  return scaled_at(c, x, fmax(scaled_unit(x, SUM_BITS), 1e-300));
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

/* The scales of input `is` and the zero points of input iz (zero if it is left out), to be applied to x. */
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

/* Computes the real numbers of a constant. */
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

Scaled scaled_read(OnnxCall *c, int ix, int is, int iz, int64_t along) {
  TgTensor *x = val_main(c->run, c->raw[ix]);
  Points p;
  double lo, hi, most = 0;
  if (!x) return scaled_none;
  if (c->raw[ix]->scaled || !dtype_range(tg_dtype(x), &lo, &hi))
    return call_fail(c, TG_ERR_DTYPE, "integers alone: input %d is %s", ix, tg_dtype_name(tg_dtype(x))),
           scaled_none;
  if (!points_of(c, is, iz, x, along, &p)) return scaled_none;
  for (int64_t i = 0; i < p.nzero; i++)
    most = fmax(most, fmax(hi - p.zero[i], p.zero[i] - lo));
  OnnxScaled *s = scaled_new(c, p.n, p.axis, most);
  if (!s || !real_set(c, s, ix, x, &p)) return scaled_none;
  memcpy(s->scale, p.scale, (size_t)p.n * sizeof *s->scale);
  s->plain = x;
  TgTensor *t = as(x, TG_I32);
  if (scaled_greatest(p.zero, p.nzero) > 0)
    t = tg_sub(t, scaled_constant(c, p.zero, p.nzero, p.axis, tg_ndim(x), TG_I32));
  return (Scaled){t, s};
}

TgTensor *scaled_written(OnnxCall *c, Scaled x, int is, int iz, TgDType d, int64_t along) {
  Points p;
  double lo, hi;
  if (!x.t || !points_of(c, is, iz, x.t, along, &p)) return NULL;
  if (!dtype_range(d, &lo, &hi) || d == TG_I32)
    return call_fail(c, TG_ERR_DTYPE, "integers alone: a result of %s", tg_dtype_name(d));
  if (x.s->n > 1 && p.n > 1 && x.s->axis != p.axis) x = scaled_uniform(c, x);
  int64_t n = x.s->n > p.n ? x.s->n : p.n;
  int axis = p.n > 1 ? p.axis : x.s->axis, rank = tg_ndim(x.t);
  OnnxScaled *ratio = scaled_new(c, n, axis, 0);
  for (int64_t i = 0; ratio && i < n; i++)
    ratio->scale[i] = x.s->scale[i % x.s->n] / p.scale[i % p.n];
  TgTensor *y = ratio ? scaled_multiplied(c, x.t, ratio->scale, n, axis) : NULL;
  if (scaled_greatest(p.zero, p.nzero) > 0)
    y = tg_add(y, scaled_constant(c, p.zero, p.nzero, p.axis, rank, TG_I64));
  return tg_cast(tg_clamp(y, lo, hi), d);
}

/* ---- operands */
/* Converts a constant of floats to integers of this many bits. */
static Scaled of_floats(OnnxCall *c, int i, int bits) {
  const double *v;
  int64_t n;
  if (!known(c, i, &v, &n) || !n)
    return tg_error(c->ctx)
               ? NULL
               : call_fail(c, TG_ERR_VALUE, "integers alone: input %d is of floats: quantise it", i),
           scaled_none;
  double scale = scaled_greatest(v, n) / ldexp(1, bits);
  if (scale == 0) scale = 1;
  OnnxScaled *s = scaled_new(c, 1, 0, ldexp(1, bits));
  int32_t *whole = tg_alloc(c->run->m->ctx, (size_t)n * sizeof *whole);
  for (int64_t k = 0; whole && k < n; k++)
    whole[k] = (int32_t)nearbyint(v[k] / scale);
  TgTensor *x = c->raw[i]->t;
  TgTensor *t = whole && s ? call_constant(c, whole, TG_I32, tg_ndim(x), tg_shape(x)) : NULL;
  tg_free(c->run->m->ctx, whole);
  if (!t) return scaled_none;
  s->scale[0] = scale;
  s->real = (double *)v, s->nreal = n;
  return (Scaled){t, s};
}

Scaled scaled_operand(OnnxCall *c, int i, int bits) {
  OnnxVal *x = i < c->nin ? c->raw[i] : NULL;
  if (!x) return call_fail(c, TG_ERR_VALUE, "integers alone: input %d is left out", i), scaled_none;
  return x->scaled ? (Scaled){x->t, x->scaled} : of_floats(c, i, bits);
}

bool scaled_reals(OnnxCall *c, int i, const double **v, int64_t *n) {
  const OnnxScaled *s = c->raw[i] ? c->raw[i]->scaled : NULL;
  if (!s) return needs(c, i, "what is added", v, n);
  *v = s->real, *n = s->nreal;
  return s->real || (call_fail(c, TG_ERR_VALUE, "integers alone: input %d must be a constant", i), false);
}

/* ---- operands together */
/* The common scale leaves room for sums of all operands, however much their scales differ. */
bool scaled_alike(OnnxCall *c, Scaled *x, int n) {
  double most = 0;
  bool same = true;
  for (int i = 0; i < n; i++) {
    if (!x[i].t) return false;
    same = same && same_scale(x[0].s, x[i].s) && x[i].s->most < ldexp(1, SUM_BITS);
    most = fmax(most, x[i].s->most * scaled_greatest(x[i].s->scale, x[i].s->n));
  }
  for (int i = 0; i < n && !(same && x[0].s->n == 1); i++)
    if (!(x[i] = scaled_at(c, x[i], fmax(most / ldexp(1, SUM_BITS), 1e-300))).t) return false;
  return true;
}

Scaled scaled_merged(OnnxCall *c, Scaled a, Scaled b, TgTensor *(*how)(TgTensor *, TgTensor *)) {
  Scaled x[2] = {a, b};
  if (!scaled_alike(c, x, 2)) return scaled_none;
  return (Scaled){how(x[0].t, x[1].t), scaled_one(c, x[0].s->scale[0], x[0].s->most + x[1].s->most)};
}

Scaled scaled_narrowed(OnnxCall *c, Scaled x, int bits) {
  x = scaled_uniform(c, x);
  return !x.t || x.s->most <= ldexp(1, bits) ? x : scaled_at(c, x, scaled_unit(x, bits));
}
