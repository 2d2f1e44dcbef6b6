/* onnx_integer.c: a quantised model run with integers alone. In: a model whose tensors pass through
 * QuantizeLinear and DequantizeLinear, or QLinear operators, with constant scales. Out: the same results,
 * each 8-bit number within one unit, computed without floats. The graph contains products and sums of
 * integers (onnx_scaled.h), tables and rows (onnx_integer_rows.c). An operator that has no such form is
 * refused by the name of its node. */
#include "onnx_scaled.h"

/* A constant that is added to sums with scale s: the n numbers of input i, whose last axis is along the
 * scales. */
static TgTensor *addend(OnnxCall *c, int i, const OnnxScaled *s, double times, int ndim,
                        const int64_t *dims) {
  const double *v;
  int64_t n;
  if (!scaled_reals(c, i, &v, &n)) return NULL;
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

/* ---- operators. Each returns its first output. Its operands are those that its row of the table
 * requests. */
typedef Scaled Op(OnnxCall *c, const Scaled *in);

/* Whether the operator has scales and zero points for its inputs and its result among its inputs. */
static bool quantised_within(const OnnxCall *c) { return !strncmp(c->n->op, "QLinear", 7); }

/* The scale of sums of `terms` products. */
static OnnxScaled *product_scale(OnnxCall *c, const OnnxScaled *a, const OnnxScaled *b, int axis,
                                 int64_t terms) {
  double most = a->most * b->most * (double)terms;
  if (b->real) { /* the numbers of a constant give a smaller bound */
    double least = INFINITY;
    for (int64_t i = 0; i < b->n; i++)
      least = fmin(least, b->scale[i]);
    most = fmin(most, a->most * ceil(scaled_greatest(b->real, b->nreal) / least) * (double)terms);
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

static Scaled op_conv(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0], w = in[1];
  Spatial g = {0};
  x = scaled_uniform(c, x);
  if (!x.t) return scaled_none;
  if (w.s->n > 1 && w.s->axis != 0)
    return call_fail(c, TG_ERR_VALUE, "integers alone: scales of filters along another axis"), scaled_none;
  if (!onnx_spatial(c, x.t, w.t, &g)) return scaled_none;
  int64_t filters = tg_dim(w.t, 0);
  OnnxScaled *s = product_scale(c, x.s, w.s, 1, tg_numel(w.t) / (filters ? filters : 1));
  if (!s) return scaled_none;
  bool q = quantised_within(c); /* in a QLinear operator the bias already has the scale of the sums */
  int i = q ? 8 : 2;
  TgTensor *b = NULL;
  if (i < c->nin && c->raw[i] &&
      !(b = q ? as(val_main(c->run, c->raw[i]), TG_I32) : addend(c, i, s, 1, 1, &filters)))
    return scaled_none;
  TgTensor *y = tg_conv2d(x.t, w.t, .bias = b, .groups = attr_i(c, "group", 1), .stride = g.stride,
                          .dilation = g.dilation, .padding = g.padding);
  return (Scaled){y, s};
}

static Scaled product(OnnxCall *c, Scaled a, Scaled b) {
  if (!a.t || !b.t) return scaled_none;
  int ra = tg_ndim(a.t), rb = tg_ndim(b.t), rank = ra > rb ? ra : rb;
  if (!ra || !rb) return call_fail(c, TG_ERR_SHAPE, "integers alone: a product with a number"), scaled_none;
  bool rows = a.s->n > 1, columns = b.s->n > 1;
  if (rows && (columns || a.s->axis != ra - 2)) a = scaled_uniform(c, a), rows = false;
  if (columns && b.s->axis != rb - 1) b = scaled_uniform(c, b), columns = false;
  int axis = rows ? rank - 2 : rank - 1;
  if (ra > 1 && rb == 1 && rows) axis = rank - 2;
  OnnxScaled *s = product_scale(c, a.s, b.s, axis, tg_dim(a.t, ra - 1));
  return s ? (Scaled){tg_matmul(a.t, b.t), s} : scaled_none;
}

/* Repeats the scales of one group's results for all groups. */
static OnnxScaled *repeated(OnnxCall *c, const OnnxScaled *each, int64_t groups) {
  OnnxScaled *s = scaled_new(c, each->n * groups, each->axis, each->most);
  for (int64_t i = 0; s && i < s->n; i++)
    s->scale[i] = each->scale[i % each->n];
  return s;
}

/* Calls the operator itself, on integers. */
static Scaled op_conv_transpose(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0], w = in[1];
  x = scaled_uniform(c, x);
  if (!x.t) return scaled_none;
  int64_t groups = attr_i(c, "group", 1);
  if (w.s->n > 1 && w.s->axis != 1)
    return call_fail(c, TG_ERR_VALUE, "integers alone: scales of filters along another axis"), scaled_none;
  int64_t each = tg_ndim(w.t) > 1 ? tg_dim(w.t, 1) : 0, channels = each * groups;
  OnnxScaled *s = product_scale(c, x.s, w.s, 1, each ? tg_numel(w.t) / each : 1);
  if (s && s->n > 1 && groups > 1) s = repeated(c, s, groups);
  TgTensor *b = NULL;
  if (!s || (c->nin > 2 && c->raw[2] && !(b = addend(c, 2, s, 1, 1, &channels)))) return scaled_none;
  c->in[0] = x.t;
  c->in[1] = w.t;
  c->in[2] = b;
  return (Scaled){onnx_op_called(c), s};
}

static Scaled op_matmul(OnnxCall *c, const Scaled *in) { return product(c, in[0], in[1]); }

static Scaled turned(OnnxCall *c, Scaled x, bool on) {
  if (!on || !x.t) return x;
  OnnxScaled *s = scaled_new(c, x.s->n, !x.s->axis, x.s->most);
  if (!s) return scaled_none;
  memcpy(s->scale, x.s->scale, (size_t)s->n * sizeof *s->scale);
  s->real = x.s->real, s->nreal = x.s->nreal; /* only its greatest number is used */
  return (Scaled){tg_transpose(x.t, 0, 1), s};
}

static Scaled op_gemm(OnnxCall *c, const Scaled *in) {
  Scaled a = in[0], b = in[1];
  double alpha = attr_f(c, "alpha", 1), beta = attr_f(c, "beta", 1);
  bool ta = attr_i(c, "transA", 0), tb = attr_i(c, "transB", 0);
  if (tg_ndim(a.t) != 2 || tg_ndim(b.t) != 2 || !(alpha > 0))
    return call_fail(c, TG_ERR_VALUE, "integers alone: operands of %d and %d axes, alpha %g", tg_ndim(a.t),
                     tg_ndim(b.t), alpha),
           scaled_none;
  Scaled y = product(c, turned(c, a, ta), turned(c, b, tb));
  if (!y.t) return scaled_none;
  OnnxScaled *s = (OnnxScaled *)y.s;
  for (int64_t i = 0; i < s->n; i++)
    s->scale[i] *= alpha;
  if (c->nin < 3 || !c->raw[2]) return y;
  TgTensor *t = c->raw[2]->t;
  if (s->n > 1 && tg_numel(t) != s->n) y = scaled_uniform(c, y), s = (OnnxScaled *)y.s;
  TgTensor *more = y.t ? addend(c, 2, s, beta, tg_ndim(t), tg_shape(t)) : NULL;
  return more ? (Scaled){tg_add(y.t, more), s} : scaled_none;
}

/* Merges any number of operands. */
static Scaled op_merge(OnnxCall *c, const Scaled *in) {
  const char *op = c->n->op;
  TgTensor *(*how)(TgTensor *, TgTensor *) = !strcmp(op, "Sub")   ? tg_sub
                                             : !strcmp(op, "Max") ? tg_maximum
                                             : !strcmp(op, "Min") ? tg_minimum
                                                                  : tg_add;
  Scaled y = in[1].t ? scaled_merged(c, in[0], in[1], how) : in[0];
  for (int i = 2; i < c->nin && !quantised_within(c); i++)
    y = scaled_merged(c, y, scaled_operand(c, i, 24), how);
  return y;
}

static Scaled op_mul(OnnxCall *c, const Scaled *in) {
  Scaled a = in[0], b = in[1];
  a = scaled_narrowed(c, a, FACTOR_BITS), b = scaled_narrowed(c, b, FACTOR_BITS);
  if (!a.t || !b.t) return scaled_none;
  return (Scaled){tg_mul(a.t, b.t), scaled_one(c, a.s->scale[0] * b.s->scale[0], a.s->most * b.s->most)};
}

/* The integer that represents v, for each scale. */
static TgTensor *level(OnnxCall *c, Scaled x, double v) {
  OnnxScaled *room = scaled_new(c, x.s->n, 0, 0);
  for (int64_t i = 0; room && i < x.s->n; i++)
    room->scale[i] = fmax(-2147483647.0, fmin(2147483647.0, nearbyint(v / x.s->scale[i])));
  return room ? scaled_constant(c, room->scale, x.s->n, x.s->axis, tg_ndim(x.t), TG_I32) : NULL;
}

static Scaled op_clip(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  bool relu = *c->n->op == 'R';
  double limit[2] = {relu ? 0 : attr_f(c, "min", -INFINITY), attr_f(c, "max", INFINITY)};
  for (int i = 0; i < 2; i++) {
    const double *v;
    int64_t n;
    if (i + 1 >= c->nin || !c->raw[i + 1]) continue;
    if (!scaled_reals(c, i + 1, &v, &n)) return scaled_none;
    limit[i] = *v;
  }
  TgTensor *y = limit[0] > -INFINITY ? tg_maximum(x.t, level(c, x, limit[0])) : x.t;
  return (Scaled){limit[1] < INFINITY ? tg_minimum(y, level(c, x, limit[1])) : y, x.s};
}

static Scaled op_leaky(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  double slope = attr_f(c, "alpha", 0.01f);
  if (!(slope > 0 && slope <= 1))
    return call_fail(c, TG_ERR_VALUE, "integers alone: alpha %g", slope), scaled_none;
  Scaled fine = scaled_at(c, scaled_uniform(c, x), scaled_unit(x, SUM_BITS));
  TgTensor *less = fine.t ? as(scaled_multiplied(c, fine.t, &slope, 1, 0), TG_I32) : NULL;
  return less ? (Scaled){tg_maximum(fine.t, less), fine.s} : scaled_none;
}

/* ---- averages: sums with a smaller scale */
static Scaled summed(OnnxCall *c, Scaled x, TgTensor *sum, int64_t count, bool mean) {
  if (!sum) return scaled_none;
  if (x.s->most * (double)count >= 2147483648.0)
    return call_fail(c, TG_ERR_VALUE, "integers alone: a sum of %lld numbers may leave 32 bits",
                     (long long)count),
           scaled_none;
  return (Scaled){sum, scaled_one(c, x.s->scale[0] / (mean ? (double)count : 1), x.s->most * (double)count)};
}

static Scaled averaged(OnnxCall *c, Scaled x, TgAxes axes, bool keep, bool mean) {
  int64_t count = 1;
  for (int i = 0; i < axes.n; i++)
    count *= tg_dim(x.t, axes.v[i]);
  return summed(c, x, tg_cast(tg_sum(x.t, .axis = axes, .keepdim = keep, .dtype = TG_I32), TG_I32), count,
                mean);
}

static Scaled op_global_average(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  TgAxes axes = {0};
  bool last = quantised_within(c) && attr_i(c, "channels_last", 0);
  int from = last ? 1 : 2, to = tg_ndim(x.t) - last;
  x = scaled_narrowed(c, x, 16);
  if (!x.t) return scaled_none;
  if (to - from < 1) return call_fail(c, TG_ERR_SHAPE, "no spatial axes"), scaled_none;
  for (int a = from; a < to; a++)
    axes.v[axes.n++] = a;
  return averaged(c, x, axes, true, true);
}

static Scaled op_reduce(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  Ints v;
  TgAxes axes = {0};
  x = scaled_narrowed(c, x, 15);
  if (!x.t || !call_ints(c, 1, "axes", &v)) return scaled_none;
  bool keep = attr_i(c, "keepdims", 1), nothing = attr_i(c, "noop_with_empty_axes", 0) && !v.n;
  if (nothing) return x;
  for (int i = 0; i < (v.n ? v.n : tg_ndim(x.t)); i++)
    if (!call_axis(c, v.n ? v.v[i] : i, tg_ndim(x.t), &axes.v[axes.n++])) return scaled_none;
  return averaged(c, x, axes, keep, !strcmp(c->n->op, "ReduceMean"));
}

/* At the edges a window may contain fewer numbers than the kernel has along an axis. Scales each sum to
 * what a full window would give, times 2^bits. */
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
  return ratio && n ? scaled_multiplied(c, sum, ratio->scale, n, axis) : sum;
}

/* The windows are summed by a convolution with ones, for each channel separately. */
static Scaled op_average_pool(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  Spatial g = {0};
  int64_t dims[RANK], count = 1;
  bool last = quantised_within(c) && attr_i(c, "channels_last", 0);
  x = scaled_narrowed(c, x, 15);
  if (last && x.t) x.t = onnx_channels_moved(x.t, false);
  if (!x.t || !onnx_spatial(c, x.t, NULL, &g)) return scaled_none;
  if (attr_i(c, "ceil_mode", 0))
    return call_fail(c, TG_ERR_VALUE, "integers alone: windows of different sizes (ceil_mode)"), scaled_none;
  dims[0] = tg_dim(x.t, 1), dims[1] = 1;
  for (int i = 0; i < g.n; i++)
    count *= dims[2 + i] = g.kernel.v[i];
  TgTensor *ones = tg_ones(c->ctx, g.n + 2, dims, .dtype = TG_I32);
  TgTensor *sum = tg_conv2d(x.t, ones, .groups = dims[0], .stride = g.stride, .dilation = g.dilation,
                            .padding = g.padding);
  bool pads = attr_i(c, "count_include_pad", 0);
  int bits = 0, spare = 30 - ilogb(x.s->most * (double)count + 1);
  for (int i = 0; sum && i < g.n && !pads; i++) /* uses all spare bits, because each result is rounded */
    if (g.padding.v[2 * i] || g.padding.v[2 * i + 1]) {
      int more = bits || spare < 0 ? 0 : spare < 16 ? spare : 16;
      sum = as_full(c, sum, &g, g.n - 1 - i, tg_dim(x.t, 2 + g.n - 1 - i), more);
      bits += more;
    }
  sum = as(last ? onnx_channels_moved(sum, true) : sum, TG_I32);
  Scaled y = summed(c, x, sum, count, true);
  return y.t ? (Scaled){y.t, scaled_one(c, ldexp(y.s->scale[0], -bits), ldexp(y.s->most, bits))}
             : scaled_none;
}

/* ---- operators that only move numbers: they are called themselves, on integers */
static Scaled op_moves(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  x = scaled_uniform(c, x);
  OnnxVal whole = {.t = x.t}, nothing = {0};
  if (!x.t) return scaled_none;
  if (!strcmp(c->n->op, "MaxPool") && c->nout > 1 && c->n->out[1])
    return call_fail(c, TG_ERR_VALUE, "integers alone: places of the largest"), scaled_none;
  c->raw[0] = &whole;
  if (!strcmp(c->n->op, "Pad") && c->nin > 2 && c->raw[2]) { /* a padding value with the same scale */
    const double *v;
    int64_t n;
    if (!scaled_reals(c, 2, &v, &n)) return scaled_none;
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

/* Operators that return places: these are integers without a scale. */
static Scaled op_places(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  c->in[0] = scaled_uniform(c, x).t;
  return (Scaled){c->in[0] ? onnx_op_called(c) : NULL, NULL};
}

static Scaled op_resize(OnnxCall *c, const Scaled *in) {
  if (strcmp(attr_s(c, "mode", "nearest"), "nearest"))
    return call_fail(c, TG_ERR_VALUE, "integers alone: numbers between two"), scaled_none;
  return op_moves(c, in);
}

static TgDType dtype_asked(OnnxCall *c, int iz) {
  int64_t to = attr_i(c, "output_dtype", 0);
  return iz < c->nin && c->raw[iz] ? tg_dtype(c->raw[iz]->t) : to ? onnx_dtype(to) : TG_U8;
}

enum { MOST_PARTS = 64 };

/* In QLinearConcat the result's scale and zero point are the first inputs. */
static Scaled op_concat(OnnxCall *c, const Scaled *in) {
  Scaled x[MOST_PARTS];
  TgTensor *t[MOST_PARTS];
  bool q = quantised_within(c);
  int axis, first = 0, n = q ? (c->nin - 2) / 3 : c->nin;
  (void)in;
  if (n < 1 || n > MOST_PARTS)
    return call_fail(c, TG_ERR_LIMIT, "integers alone: %d inputs", c->nin), scaled_none;
  for (int i = 0; i < n; i++)
    x[i] = q ? scaled_read(c, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i, 1) : scaled_operand(c, i, 24);
  if (!scaled_alike(c, x, n) || !call_axis(c, attr_i(c, "axis", 0), tg_ndim(x[0].t), &axis))
    return scaled_none;
  for (int i = 0; i < n; i++) {
    t[i] = x[i].t;
    if (x[i].s->most > x[first].s->most) first = i;
  }
  Scaled y = {tg_cat(t, n, axis), x[first].s};
  return q ? (Scaled){scaled_written(c, y, 0, 1, dtype_asked(c, 1), 1), NULL} : y;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static Scaled op_table(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  return scaled_table(c, x, quantised_within(c) ? sigmoid : NULL);
}

static Scaled op_softmax(OnnxCall *c, const Scaled *in) {
  Scaled x = in[0];
  int opset = quantised_within(c) ? (int)attr_i(c, "opset", 13) : c->opset;
  return scaled_softmax(c, x, opset, *c->n->op == 'L');
}

/* ---- QuantizeLinear, DequantizeLinear */
static bool is_narrow(OnnxCall *c) {
  for (int i = 0; i < c->nin; i++)
    if (c->raw[i] && c->raw[i]->narrow)
      return call_fail(c, TG_ERR_DTYPE, "integers alone: numbers of less than 8 bits"), true;
  if (attr_i(c, "block_size", 0)) return call_fail(c, TG_ERR_VALUE, "integers alone: scales of blocks"), true;
  return false;
}

/* An input of the model may be quantised already. */
static Scaled op_quantize(OnnxCall *c, const Scaled *in) {
  TgDType d = dtype_asked(c, 2);
  int64_t axis = attr_i(c, "axis", 1);
  (void)in;
  attr_unused(c, "saturate"), attr_unused(c, "precision");
  if (is_narrow(c)) return scaled_none;
  if (!c->raw[0]->scaled && tg_dtype(c->raw[0]->t) == d) return (Scaled){val_main(c->run, c->raw[0]), NULL};
  return (Scaled){scaled_written(c, scaled_operand(c, 0, 24), 1, 2, d, axis), NULL};
}

static Scaled op_dequantize(OnnxCall *c, const Scaled *in) {
  (void)in;
  attr_unused(c, "output_dtype");
  return is_narrow(c) ? scaled_none : scaled_read(c, 0, 1, 2, attr_i(c, "axis", 1));
}

static Scaled op_constant(OnnxCall *c) {
  const OnnxAttr *a = call_attr(c, "value", ONNX_TENSOR);
  if (!a || !a->t) return scaled_none;
  c->run->vals[c->n->out[0]] = (OnnxVal){.t = a->t->host ? a->t->host : a->t->main,
                                         .moved = a->t->host ? a->t->main : NULL,
                                         .host = a->t->host != NULL,
                                         .narrow = a->t->narrow,
                                         .of = a->t};
  return (Scaled){a->t->main, NULL};
}

/* bits: of the first two inputs if they are constants of floats; 0: the row does not read that input
 * beforehand. along: the axis of several scales in the inputs and in the result of a QLinear operator. */
typedef struct Row {
  const char *ops;
  Op *fn;
  int bits[2], along[3];
} Row;

static const Row rows[] = {
    {" QuantizeLinear ", op_quantize, {0}, {0}},
    {" DequantizeLinear ", op_dequantize, {0}, {0}},
    {" Conv QLinearConv ", op_conv, {FACTOR_BITS, 7}, {1, 0, 1}},
    {" ConvTranspose ", op_conv_transpose, {FACTOR_BITS, 7}, {0}},
    {" MatMul QLinearMatMul ", op_matmul, {7, 7}, {-2, -1, -1}},
    {" Gemm ", op_gemm, {7, 7}, {0}},
    {" Add Sub Max Min Sum QLinearAdd ", op_merge, {24, 24}, {1, 1, 1}},
    {" Mul QLinearMul ", op_mul, {14, 14}, {1, 1, 1}},
    {" Clip Relu ", op_clip, {24}, {0}},
    {" LeakyRelu QLinearLeakyRelu ", op_leaky, {24}, {1, 1, 1}},
    {" GlobalAveragePool QLinearGlobalAveragePool ", op_global_average, {15}, {1, 1, 1}},
    {" AveragePool QLinearAveragePool ", op_average_pool, {15}, {1, 1, 1}},
    {" ReduceMean ReduceSum ", op_reduce, {15}, {0}},
    {" Concat QLinearConcat ", op_concat, {0}, {0}},
    {" Softmax LogSoftmax QLinearSoftmax ", op_softmax, {11}, {1, 1, 1}},
    {" LayerNormalization RMSNormalization SimplifiedLayerNormalization InstanceNormalization "
     "GroupNormalization ",
     scaled_norm,
     {24, FACTOR_BITS},
     {0}},
    {" ArgMax ArgMin ", op_places, {24}, {0}},
    {" Resize Upsample ", op_resize, {24}, {0}},
    {" Sigmoid Tanh HardSigmoid HardSwish Elu Selu Celu Gelu Erf Exp Softplus Softsign Mish Swish Sqrt Log "
     "Reciprocal Sin Cos Tan Atan Abs Neg Floor Ceil Round Sign ThresholdedRelu Shrink "
     "Pow Div PRelu QLinearSigmoid ",
     op_table,
     {11},
     {1, 1, 1}},
    {" Reshape Flatten Squeeze Unsqueeze Transpose Slice Identity Dropout Gather Split Expand Tile "
     "DepthToSpace "
     "SpaceToDepth Pad MaxPool GlobalMaxPool ReduceMax ReduceMin ",
     op_moves,
     {24},
     {0}}};

static bool is_word(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)); p += n)
    if (p[-1] == ' ' && p[n] == ' ') return true;
  return false;
}

/* Operators whose name contains "Linear" have floats or scales inside, whatever their inputs are. The
 * other rows apply only if an input has a scale. */
static const Row *row_of(const char *op, bool scaled) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows && (scaled || strstr(op, "Linear")); i++)
    if (is_word(rows[i].ops, op)) return &rows[i];
  return NULL;
}

static Scaled row_called(OnnxCall *c, const Row *row) {
  Scaled x[2] = {scaled_none, scaled_none};
  bool q = quantised_within(c) && row->bits[0];
  for (int i = 0; i < 2 && row->bits[i] && (q || i < c->nin); i++) {
    x[i] =
        q ? scaled_read(c, 3 * i, 3 * i + 1, 3 * i + 2, row->along[i]) : scaled_operand(c, i, row->bits[i]);
    if (!x[i].t) return scaled_none;
  }
  Scaled y = row->fn(c, x);
  int to = row->bits[1] ? 6 : 3;
  return q ? (Scaled){scaled_written(c, y, to, to + 1, dtype_asked(c, to + 1), row->along[2]), NULL} : y;
}

/* Whether an input is a float that is not a constant; such a node is refused. Constants are allowed,
 * because later nodes may read their numbers. */
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
  const Row *row = row_of(c->n->op, scaled);
  if (!row && (scaled || floats_in(c) || !strncmp(c->n->op, "QLinear", 7)))
    return call_fail(c, TG_ERR_VALUE, "integers alone: the operator has no form without floats"), false;
  *done = row != NULL;
  if (!row) return true;
  memset(c->out, 0, (size_t)c->nout * sizeof *c->out);
  Scaled y = row_called(c, row);
  c->out[0] = y.t;
  if (!y.t || tg_error(c->ctx)) return false;
  for (int i = 0; i < c->nout; i++)
    if (c->n->out[i] && c->out[i]) c->run->vals[c->n->out[i]] = (OnnxVal){.t = c->out[i], .scaled = y.s};
  return true;
}

TgTensor *onnx_scaled_plain(const OnnxScaled *s) { return s->plain; }
