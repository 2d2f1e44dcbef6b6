/* onnx_border.c: inputs and outputs of a quantised model that is run with integers alone. In: a model.
 * Out: its float inputs and outputs become the 8-bit numbers that a QuantizeLinear makes or a
 * DequantizeLinear takes, and their scales can be read. onnx_integer.c computes what is between them. */
#include "onnx_private.h"

static const OnnxNode *maker_of(const OnnxGraph *g, size_t value) {
  for (size_t k = 0; k < g->nnodes; k++)
    for (int o = 0; o < g->nodes[k].nout; o++)
      if (g->nodes[k].out[o] == value) return &g->nodes[k];
  return NULL;
}

static const OnnxTensor *constant_of(const OnnxGraph *g, size_t value) {
  for (size_t i = 0; value && i < g->ninit; i++)
    if (g->init_value[i] == value) return g->init[i];
  const OnnxNode *n = value ? maker_of(g, value) : NULL;
  for (int i = 0; n && !strcmp(n->op, "Constant") && i < n->nattrs; i++)
    if (!strcmp(n->attrs[i].name, "value")) return n->attrs[i].t;
  return NULL;
}

/* The only QuantizeLinear that takes an input, or the DequantizeLinear that makes an output. *others: the
 * number of other nodes that read the input. */
static const OnnxNode *border_of(const OnnxGraph *g, size_t value, bool input, int *others) {
  const OnnxNode *found = NULL;
  *others = 0;
  if (!input) {
    const OnnxNode *n = maker_of(g, value);
    return n && !strcmp(n->op, "DequantizeLinear") ? n : NULL;
  }
  for (size_t k = 0; k < g->nnodes; k++)
    for (int i = 0; i < g->nodes[k].nin; i++) {
      if (g->nodes[k].in[i] != value) continue;
      if (!found && !i && !strcmp(g->nodes[k].op, "QuantizeLinear"))
        found = &g->nodes[k];
      else
        ++*others;
    }
  return found;
}

static TgDType border_dtype(const OnnxGraph *g, const OnnxNode *n, bool input) {
  const OnnxTensor *zero = n->nin > 2 ? constant_of(g, n->in[2]) : NULL;
  if (zero) return tg_dtype(zero->main);
  for (int i = 0; input && i < n->nattrs; i++)
    if (!strcmp(n->attrs[i].name, "output_dtype")) return onnx_dtype(n->attrs[i].i);
  return TG_U8;
}

/* Float inputs must be passed quantised. */
static bool inputs_quantised(TgOnnx *m) {
  OnnxGraph *g = m->graph;
  for (size_t i = 0; i < g->nin; i++) {
    int others;
    if (g->in[i].has_default || !tg_dtype_is_float(g->in[i].dtype)) continue;
    const OnnxNode *n = border_of(g, g->in[i].value, true, &others);
    if (!n || others)
      return ctx_fail(m->ctx, TG_ERR_VALUE,
                      "onnx: integers alone: input %.100s is of floats, and not taken by one QuantizeLinear",
                      g->in[i].name);
    g->in[i].dtype = border_dtype(g, n, true);
  }
  for (size_t i = 0; i < g->nout; i++) {
    int others;
    const OnnxNode *n = border_of(g, g->out[i].value, false, &others);
    if (n) g->out[i].dtype = border_dtype(g, n, false);
  }
  return true;
}

static bool numbers_read(TgOnnx *m) {
  for (OnnxTensor *t = m->tensors; t; t = t->next) {
    int64_t n = tg_numel(t->main);
    if (t->numbers || n < 1 || n > ONNX_KNOWN_MOST) continue;
    if (!(t->numbers = doc_alloc(m->doc, (size_t)n * sizeof(double)))) return false;
    if (tg_read_f64(t->main, t->numbers, (size_t)n)) return false;
  }
  return true;
}

TgStatus tg_onnx_integers(TgOnnx *m) {
  if (!m) return TG_ERR_NOMEM;
  if (tg_error(m->ctx)) return tg_error(m->ctx);
  bool ok = m->integers || (numbers_read(m) && inputs_quantised(m));
  m->integers = ok;
  return ok ? TG_OK : tg_error(m->ctx) ? tg_error(m->ctx) : TG_ERR_NOMEM;
}

bool tg_onnx_scale(const TgOnnx *m, const char *name, double *scale, int64_t *zero) {
  const OnnxGraph *g = m && m->integers && name ? m->graph : NULL;
  const OnnxNode *n = NULL;
  int others;
  for (size_t i = 0; g && !n && i < g->nin; i++)
    if (!strcmp(g->in[i].name, name)) n = border_of(g, g->in[i].value, true, &others);
  for (size_t i = 0; g && !n && i < g->nout; i++)
    if (!strcmp(g->out[i].name, name)) n = border_of(g, g->out[i].value, false, &others);
  const OnnxTensor *s = n && n->nin > 1 ? constant_of(g, n->in[1]) : NULL;
  const OnnxTensor *z = n && n->nin > 2 ? constant_of(g, n->in[2]) : NULL;
  if (!s || !s->numbers) return false;
  if (scale) *scale = s->numbers[0];
  if (zero) *zero = z && z->numbers ? (int64_t)z->numbers[0] : 0;
  return true;
}

TgTensor *onnx_integer_output(OnnxRun *r, const OnnxIO *out, OnnxVal *v) {
  int others;
  bool border = v->scaled && border_of(r->m->graph, out->value, false, &others);
  if (border && onnx_scaled_plain(v->scaled)) return onnx_scaled_plain(v->scaled);
  TgTensor *t = val_main(r, v);
  if (!v->scaled && (!t || !tg_dtype_is_float(tg_dtype(t)))) return t;
  ctx_fail(r->m->ctx, TG_ERR_VALUE,
           "onnx: integers alone: output %.100s is of floats, with no QuantizeLinear before it", out->name);
  return NULL;
}
