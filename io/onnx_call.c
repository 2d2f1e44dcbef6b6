/* onnx_call.c: the arguments of an operator. In: a call, with the tensors of its node's inputs. Out:
 * attributes, inputs as numbers, errors that name the node; and whether the operator takes inputs of these
 * dtypes. */
#include "onnx_private.h"
#include <stdarg.h>
#include <stdio.h>

/* ---- what operators read */
TgTensor *call_fail(OnnxCall *c, TgStatus status, const char *format, ...) {
  char t[400];
  va_list ap;
  va_start(ap, format);
  vsnprintf(t, sizeof t, format, ap);
  va_end(ap);
  ctx_fail(c->ctx, status, "%s", t);
  return NULL;
}

const OnnxAttr *call_attr(const OnnxCall *c, const char *name, OnnxKind kind) {
  static const char *const kinds[] = {"nothing", "a float", "an int", "a string", "a tensor",
                                      "a graph", "floats",  "ints",   "strings"};
  for (int i = 0; i < c->n->nattrs; i++) {
    const OnnxAttr *a = &c->n->attrs[i];
    if (strcmp(a->name, name)) continue;
    if (c->seen) c->seen[i] = true;
    if (a->kind == (int)kind) return a;
    bool known = a->kind >= 0 && a->kind < (int)(sizeof kinds / sizeof *kinds);
    const char *is = known ? kinds[a->kind] : "of an unknown kind";
    ctx_fail(c->ctx, TG_ERR_VALUE, "attribute %.60s is %s, not %s", name, is, kinds[kind]);
    return NULL;
  }
  return NULL;
}

void attr_unused(const OnnxCall *c, const char *name) {
  for (int i = 0; i < c->n->nattrs; i++)
    if (c->seen && !strcmp(c->n->attrs[i].name, name)) c->seen[i] = true;
}

int64_t attr_i(const OnnxCall *c, const char *name, int64_t otherwise) {
  const OnnxAttr *a = call_attr(c, name, ONNX_INT);
  return a ? a->i : otherwise;
}

double attr_f(const OnnxCall *c, const char *name, double otherwise) {
  const OnnxAttr *a = call_attr(c, name, ONNX_FLOAT);
  return a ? a->f : otherwise;
}

const char *attr_s(const OnnxCall *c, const char *name, const char *otherwise) {
  const OnnxAttr *a = call_attr(c, name, ONNX_STRING);
  return a && a->s ? a->s : otherwise;
}

bool call_indices(OnnxCall *c, int i, int64_t n, int64_t column, int64_t step) {
  double v[HOST_MAX];
  OnnxVal *x = c->raw[i];
  if (!x->host || x->sizes || tg_numel(x->t) > HOST_MAX) return true;
  int64_t count = tg_numel(x->t);
  if (count && tg_read_f64(x->t, v, (size_t)count)) return false;
  for (int64_t k = column; k < count; k += step)
    if (v[k] < -(double)n || v[k] >= (double)n)
      return call_fail(c, TG_ERR_VALUE, "index %g is outside an axis of %lld", v[k], (long long)n), false;
  return true;
}

bool call_axis(OnnxCall *c, int64_t axis, int rank, int *out) {
  int64_t room = rank > 0 ? rank : 1;
  if (axis < -room || axis >= room)
    return call_fail(c, TG_ERR_SHAPE, "axis %lld of a tensor of %d axes", (long long)axis, rank), false;
  return *out = (int)(axis < 0 ? axis + room : axis), true;
}

static bool from_host(OnnxCall *c, TgContext *where) { /* records an error of either context in c's context */
  if (where != c->ctx && tg_error(where))
    ctx_fail(c->ctx, tg_error(where), "%s", tg_errmsg(where)), tg_clear_error(where);
  return false;
}

bool call_ints(OnnxCall *c, int i, const char *name, Ints *out) {
  if (i >= 0 && i < c->nin && c->raw[i] && c->raw[i]->sizes)
    return call_fail(c, TG_ERR_SHAPE,
                     "input %d has a symbolic size among its numbers, which the operator does not take", i),
           false;
  return call_sizes(c, i, name, out);
}

bool call_sizes(OnnxCall *c, int i, const char *name, Ints *out) {
  const OnnxAttr *a = name ? call_attr(c, name, ONNX_INTS) : NULL;

  enum { CAP = sizeof out->v / sizeof *out->v };

  *out = (Ints){0};
  if (i >= 0 && i < c->nin && c->raw[i]) {
    TgTensor *t = c->raw[i]->t;
    TgContext *where = tg_context(t);
    if (tg_ndim(t) > 1)
      return call_fail(c, TG_ERR_SHAPE, "input %d has %d axes, where a list is needed", i, tg_ndim(t)), false;
    if (!c->raw[i]->sizes && !value_now(c->run, c->raw[i])) return from_host(c, c->run->m->ctx);
    if (tg_numel(t) > CAP)
      return call_fail(c, TG_ERR_SHAPE, "input %d is a list of %lld numbers, at most %d", i,
                       (long long)tg_numel(t), CAP),
             false;
    out->given = true;
    out->n = (int)tg_numel(t);
    if (tg_dtype(t) != TG_I64) t = tg_cast(t, TG_I64);
    return (out->n == 0 && t) || tg_read(t, out->v, (size_t)out->n * 8) == TG_OK || from_host(c, where);
  }
  if (!a) return true;
  out->given = true;
  if (a->nints > CAP)
    return call_fail(c, TG_ERR_SHAPE, "%s: %zu numbers, at most %d", name, a->nints, CAP), false;
  for (size_t k = 0; k < a->nints; k++)
    out->v[out->n++] = a->ints[k];
  return true;
}

bool call_doubles(OnnxCall *c, int i, double *v, int cap, int *n) {
  *n = 0;
  if (i >= c->nin || !c->raw[i]) return true;
  TgTensor *t = c->raw[i]->t;
  if (!value_now(c->run, c->raw[i])) return from_host(c, c->run->m->ctx);
  if (tg_numel(t) > cap)
    return call_fail(c, TG_ERR_SHAPE, "input %d: %lld numbers, at most %d", i, (long long)tg_numel(t), cap),
           false;
  *n = (int)tg_numel(t);
  return !*n || tg_read_f64(t, v, (size_t)*n) == TG_OK || from_host(c, tg_context(t));
}

/* ---- the dtypes that operators take. One letter for each input, and the last letter for all further
 * inputs: f float, n number, i integer, b bool, a any. All inputs with a capital letter must have the same
 * dtype. Operators that are not listed take what the functions that they call take. */
static const struct Constraint {
  const char *types, *ops;
} constraints[] = {
    {"f", " Exp Log Sqrt Reciprocal Erf Floor Ceil Round Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh "
          "Atanh Tanh Sigmoid Softplus Softsign Mish HardSwish IsNaN IsInf"
          " Gelu LeakyRelu Elu Celu Selu HardSigmoid ThresholdedRelu Swish Softmax LogSoftmax "
          "Hardmax LpNormalization LRN MeanVarianceNormalization GlobalAveragePool"
          " GlobalMaxPool AveragePool DynamicQuantizeLinear "},
    {"n", " Abs Neg Sign Relu Shrink ReduceSum ReduceMean ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
          "ReduceLogSum ReduceLogSumExp ArgMax ArgMin CumSum TopK MaxPool Pow "},
    {"b", " Not And Or Xor "},
    {"i", " BitwiseNot "},
    {"I", " BitwiseAnd BitwiseOr BitwiseXor BitShift "},
    {"N", " Add Sub Mul Div Mod Max Min Clip Less LessOrEqual Greater GreaterOrEqual MatMul Gemm Range PRelu "
          "Einsum "},
    {"F",
     " Sum Mean Conv ConvTranspose DeformConv InstanceNormalization GroupNormalization LayerNormalization "
     "RMSNormalization "},
    {"A", " Equal Concat "},
    {"bAA", " Where "},
    {"ai", " Gather GatherElements GatherND "},
    {"AiA", " ScatterElements Scatter ScatterND "},
    {"ab", " Compress "},
    {"f", " BatchNormalization "},
    {"FFFi", " RotaryEmbedding "},
    {"FFi", " RoiAlign "},
    {"fif", " NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss "},
    {"ffb", " Dropout "},
    {"iiii", " ConvInteger MatMulInteger "},
    {NULL, NULL}};

/* The same for operators that only com.microsoft has. */
static const struct Constraint constraints_microsoft[] = {
    {"F", " FastGelu QuickGelu BiasGelu SkipLayerNormalization SkipSimplifiedLayerNormalization FusedMatMul "
          "FusedGemm FusedConv "},
    {"FFFiFFi", " Attention "},
    {"FFFFiFFFi", " MultiHeadAttention "},
    {"FiFF", " RotaryEmbedding "},
    {"iiFFFFFi", " EmbedLayerNormalization "},
    {"ifiififi", " QLinearAdd QLinearMul "},
    {"ififi", " QLinearSigmoid QLinearSoftmax QLinearLeakyRelu QLinearGlobalAveragePool QLinearAveragePool "},
    {"fifif", " DynamicQuantizeMatMul "},
    {"iiffiif", " MatMulIntegerToFloat "},
    {NULL, NULL}};

static bool is_word(const char *list, const char *word) {
  size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)); p += n)
    if (p[-1] == ' ' && p[n] == ' ') return true;
  return false;
}

static bool type_fits(char letter, TgDType d) {
  switch (letter | 0x20) {
  case 'f': return tg_dtype_is_float(d);
  case 'n': return d != TG_BOOL;
  case 'i': return d != TG_BOOL && !tg_dtype_is_float(d);
  case 'b': return d == TG_BOOL;
  default: return true;
  }
}

bool onnx_types_fit(OnnxCall *c) {
  const char *types = NULL;
  const struct Constraint *row = c->n->def->domain == DOMAIN_MICROSOFT ? constraints_microsoft : constraints;
  for (; row->ops && !types; row++)
    if (is_word(row->ops, c->n->op)) types = row->types;
  TgDType common = TG_DTYPE_DEFAULT;
  for (int i = 0; types && i < c->nin; i++) {
    if (!c->raw[i]) continue;
    char letter = types[(size_t)i < strlen(types) ? (size_t)i : strlen(types) - 1];
    TgDType d = c->raw[i]->sizes ? c->raw[i]->sizes : tg_dtype(c->raw[i]->t);
    if (!type_fits(letter, d))
      return call_fail(c, TG_ERR_DTYPE, "input %d is %s, which the operator does not take", i,
                       tg_dtype_name(d)),
             false;
    if (letter & 0x20) continue;
    if (common && d != common)
      return call_fail(c, TG_ERR_DTYPE, "input %d is %s, not %s as those before it", i, tg_dtype_name(d),
                       tg_dtype_name(common)),
             false;
    common = d;
  }
  return true;
}

TgTensor *as(TgTensor *t, TgDType d) { return t && tg_dtype(t) != d ? tg_cast(t, d) : t; }
