/* onnx_integer_rows.c: functions of a quantised model with integers alone that are not sums of products.
 * In: an operand. Out: for a function of a single number, a lookup in a table that the node itself fills
 * on the host; for functions of the numbers along axes, softmax and norms, computed with exponentials from
 * a table, and an inverse square root by Newton's iteration in 30 bits. */
#include "onnx_scaled.h"

enum { TABLE_MOST = 2048 };

/* ---- functions of a single number: a table */
/* Computes the node on the host, or `of`, for every integer that x may be. */
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

/* Rescales x so that it has few enough integers for a table with an element for each. */
static Scaled for_table(OnnxCall *c, Scaled x) {
  x = scaled_uniform(c, x);
  if (!x.t || !c->run->m->host) return scaled_none;
  return x.s->most > TABLE_MOST ? scaled_at(c, x, x.s->most * x.s->scale[0] / TABLE_MOST) : x;
}

/* Element `at` of a table; none of the places is out of range. */
static TgTensor *chosen(TgTensor *table, TgTensor *at) {
  TgTensor *y = tg_gather(table, 0, tg_reshape(at, TG_SHAPE(tg_numel(at))));
  return as(tg_reshape(y, tg_ndim(at), tg_shape(at)), TG_I32);
}

Scaled scaled_table(OnnxCall *c, Scaled x, double (*of)(double x)) {
  x = for_table(c, x);
  int most = x.t ? (int)x.s->most : 0, range = 2 * most + 1;
  OnnxScaled *room = scaled_new(c, range, 0, 0);
  if (!room || !x.t || !function_values(c, x.s->scale[0], most, of, room->scale)) return scaled_none;
  for (int i = 0; i < range; i++)
    room->scale[i] = room->scale[i] != room->scale[i] ? 0 : fmax(-1e30, fmin(1e30, room->scale[i]));
  double scale = scaled_greatest(room->scale, range) / 32767;
  int16_t *table = tg_alloc(c->run->m->ctx, (size_t)range * sizeof *table);
  if (!table) return scaled_none;
  if (scale == 0) scale = 1;
  for (int i = 0; i < range; i++)
    table[i] = (int16_t)nearbyint(room->scale[i] / scale);
  TgTensor *t = call_constant(c, table, TG_I16, TG_SHAPE((int64_t)range));
  tg_free(c->run->m->ctx, table);
  TgTensor *at = tg_clamp(tg_add(x.t, tg_full_i64(c->ctx, TG_SCALAR, most, TG_I32)), 0, range - 1);
  return at ? (Scaled){chosen(t, at), scaled_one(c, scale, 32767)} : scaled_none;
}

/* ---- along axes */
enum { BITS = 15 }; /* of exponentials and of their quotients */

/* The logarithm of a softmax, from the distance of each number below the largest and the sum of n
 * exponentials. The sum is a power of 2, times a factor given by its first TOP bits, whose logarithm is in
 * a table, times a little more than 1. */
static Scaled log_of(OnnxCall *c, double scale, TgTensor *below, TgTensor *sum, int64_t n) {
  enum { TOP = 8, ENTRIES = 1 << TOP };

  int bits = 4;
  while (bits < 16 && scale > ldexp(1, bits - 15))
    bits++;
  double unit = ldexp(scale, -bits), most = log((double)n + 1) / unit;
  if (most >= ldexp(1, SUM_BITS))
    return call_fail(c, TG_ERR_VALUE, "integers alone: a scale of %g", scale), scaled_none;
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
  return (Scaled){y, scaled_one(c, unit, ldexp(2 * TABLE_MOST, bits) + most)};
}

/* Softmax along an axis: exponentials, from a table, of each number's distance below the largest, divided
 * by their sum; or the logarithm of that. */
static Scaled softmax_along(OnnxCall *c, Scaled x, int axis, bool log) {
  x = for_table(c, x);
  if (!x.t) return scaled_none;
  if (tg_dim(x.t, axis) >= INT64_C(1) << (31 - BITS))
    return call_fail(c, TG_ERR_LIMIT, "integers alone: a softmax of %lld numbers",
                     (long long)tg_dim(x.t, axis)),
           scaled_none;
  int range = 2 * (int)x.s->most + 1;
  int32_t *table = tg_alloc(c->run->m->ctx, (size_t)range * sizeof *table);
  for (int i = 0; table && i < range; i++)
    table[i] = (int32_t)nearbyint(ldexp(exp(-x.s->scale[0] * i), BITS));
  TgTensor *t = table ? call_constant(c, table, TG_I32, TG_SHAPE((int64_t)range)) : NULL;
  tg_free(c->run->m->ctx, table);
  TgTensor *below = tg_sub(tg_max(x.t, .axis = TG_AXES(axis), .keepdim = true), x.t);
  if (!t || !below) return scaled_none;
  TgTensor *e = chosen(t, tg_clamp(below, 0, range - 1));
  TgTensor *sum = as(tg_sum(e, .axis = TG_AXES(axis), .keepdim = true, .dtype = TG_I32), TG_I32);
  if (log) return log_of(c, x.s->scale[0], below, sum, tg_dim(x.t, axis));
  TgTensor *half = tg_shr(sum, tg_full_i64(c->ctx, TG_SCALAR, 1, TG_I32));
  TgTensor *y = tg_floordiv(tg_add(tg_shl(e, tg_full_i64(c->ctx, TG_SCALAR, BITS, TG_I32)), half), sum);
  return (Scaled){y, scaled_one(c, ldexp(1, -BITS), ldexp(1, BITS))};
}

/* Before opset 13 the softmax is over all axes from `axis` on. */
Scaled scaled_softmax(OnnxCall *c, Scaled x, int opset, bool log) {
  int axis, rank = x.t ? tg_ndim(x.t) : 0;
  if (!x.t || !call_axis(c, attr_i(c, "axis", opset < 13 ? 1 : -1), rank, &axis)) return scaled_none;
  if (opset >= 13) return softmax_along(c, x, axis, log);
  int64_t lead = 1, dims[RANK];
  memcpy(dims, tg_shape(x.t), (size_t)rank * sizeof *dims);
  for (int a = 0; a < axis; a++)
    lead *= dims[a];
  x = scaled_uniform(c, x);
  if (!x.t) return scaled_none;
  x.t = tg_reshape(x.t, TG_SHAPE(lead, lead ? tg_numel(x.t) / lead : 0));
  Scaled y = softmax_along(c, x, 1, log);
  return y.t ? (Scaled){tg_reshape(y.t, rank, dims), y.s} : scaled_none;
}

/* ---- norms */
enum {
  NORM_NUMBERS = 1 << 16, /* the most numbers of a norm, */
  NORM_BITS = 22,         /* with at most this many bits each */
  ROOT_BITS = 30,
  NORM_RESULT = 27 /* bits of a result, which is at most the square root of the number of numbers */
};

/* a * b / 2^bits, rounded. */
static TgTensor *product_over(TgTensor *a, TgTensor *b, int bits) {
  return tg_shr_scalar(tg_add_scalar(tg_mul(a, b), ldexp(1, bits - 1)), bits);
}

/* 2^30 / sqrt(v / 4^k) for 0 < v < 2^62, i64, where 4^k is the greatest power of 4 that is not above v. A
 * linear approximation has an error of at most .086; three steps of Newton's iteration reduce it to 2^-24. */
static TgTensor *inverse_root(TgTensor *v, TgTensor **k) {
  TgTensor *high = v, *power = tg_zeros_like(v);
  for (int bits = 16; bits; bits /= 2) {
    TgTensor *more = tg_mul_scalar(as(tg_ge_scalar(high, ldexp(1, 2 * bits)), TG_I64), bits);
    power = tg_add(power, more);
    high = tg_shr(high, tg_add(more, more));
  }
  *k = power;
  TgTensor *up = tg_rsub_scalar(tg_add(power, power), 2 * ROOT_BITS);
  TgTensor *q = tg_shr_scalar(tg_shl(v, up), ROOT_BITS); /* 2^30 .. 2^32 - 1 */
  TgTensor *down = tg_shr_scalar(tg_mul_scalar(q, nearbyint(ldexp(0.15234, ROOT_BITS))), ROOT_BITS);
  TgTensor *r = tg_rsub_scalar(down, nearbyint(ldexp(1.06638, ROOT_BITS)));
  for (int step = 0; step < 3; step++) {
    TgTensor *one = product_over(product_over(r, r, ROOT_BITS), q, ROOT_BITS);
    r = product_over(r, tg_rsub_scalar(one, ldexp(3, ROOT_BITS)), ROOT_BITS + 1);
  }
  return r;
}

/* Divides each row of n numbers by the root of its mean square plus epsilon; if `centred`, after the mean
 * was subtracted. Let `deviation` be that root in units of 2^-22 of x's bound. The error of a result y is
 * at most (1.5 + |y|) / deviation + |y| / 2^23 + sqrt(n) / 2^27. */
static Scaled standardised(OnnxCall *c, Scaled x, int64_t n, bool centred) {
  const TgAxes along = TG_AXES(1);
  double eps = attr_f(c, "epsilon", 1e-5f) * (double)n;
  double unit = fmax(scaled_unit(x, NORM_BITS), fmax(ldexp(sqrt(eps), -ROOT_BITS), 1e-300));
  TgTensor *d = as(scaled_at(c, x, unit).t, TG_I64), *k;
  if (centred) {
    TgTensor *twice = tg_mul_scalar(tg_sum(d, .axis = along, .keepdim = true), 2);
    d = tg_sub(d, tg_floordiv_scalar(tg_add_scalar(twice, (double)n), 2 * (double)n));
  }
  TgTensor *squares = tg_sum(tg_mul(d, d), .axis = along, .keepdim = true);
  TgTensor *r = inverse_root(tg_add_scalar(squares, fmax(1, nearbyint(eps / unit / unit))), &k);
  TgTensor *by = tg_add_scalar(k, ROOT_BITS - NORM_RESULT);
  TgTensor *half = tg_shl(tg_ones_like(k), tg_sub_scalar(by, 1));
  TgTensor *y = as(tg_shr(tg_add(tg_mul(d, r), half), by), TG_I32);
  return (Scaled){y, scaled_one(c, ldexp(sqrt((double)n), -NORM_RESULT), ldexp(1, NORM_RESULT) + 256)};
}

/* Norms over the axes from `axis` on, or over groups of channels; an instance norm has one channel in each
 * group. */
Scaled scaled_norm(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  const char *op = c->n->op;
  bool group = *op == 'G', layers = !group && *op != 'I';
  int axis = 2, rank = tg_ndim(x.t);
  int64_t dims[RANK], beside[RANK], rows = 1, times = 1, numbers = tg_numel(x.t);
  if (layers ? !call_axis(c, attr_i(c, "axis", -1), rank, &axis) : rank < 2) return scaled_none;
  memcpy(dims, tg_shape(x.t), (size_t)rank * sizeof *dims);
  for (int a = 0; a < rank; a++) {
    rows *= a < axis ? dims[a] : 1;
    beside[a] = a || layers ? 1 : dims[1];
  }
  if (group) {
    int64_t groups = attr_i(c, "num_groups", 0);
    if (groups < 1 || dims[1] % groups)
      return call_fail(c, TG_ERR_SHAPE, "%lld channels in %lld groups", (long long)dims[1],
                       (long long)groups),
             scaled_none;
    rows = dims[0] * groups;
    times = c->opset < 21 ? dims[1] / groups : 1; /* each group has one factor */
  }
  int64_t n = rows ? numbers / rows : 0;
  if (n < 1 || n > NORM_NUMBERS)
    return call_fail(c, TG_ERR_LIMIT, "integers alone: a norm of %lld numbers", (long long)n), scaled_none;
  x = scaled_uniform(c, x);
  Scaled by[2] = {scaled_narrowed(c, in[1], FACTOR_BITS), scaled_none};
  if (c->nin > 2 && c->raw[2]) by[1] = scaled_uniform(c, scaled_operand(c, 2, 24));
  for (int i = 0; i < 2 && !layers; i++)
    by[i].t = tg_reshape(times > 1 ? tg_repeat_interleave(by[i].t, times, 0) : by[i].t, rank - 1, beside);
  if (!x.t || !by[0].t) return scaled_none;
  x.t = tg_reshape(x.t, TG_SHAPE(rows, n));
  Scaled y = standardised(c, x, n, *op != 'R' && *op != 'S');
  if (!y.t || !y.s) return scaled_none;
  int bits = ilogb(by[0].s->most) + 1;
  TgTensor *whole = as(tg_reshape(y.t, rank, dims), TG_I64);
  y.t = as(product_over(whole, as(by[0].t, TG_I64), bits), TG_I32);
  y.s = scaled_one(c, y.s->scale[0] * ldexp(by[0].s->scale[0], bits), y.s->most);
  return y.s && by[1].t ? scaled_merged(c, y, by[1], tg_add) : y;
}
