/* onnx.c: opens and runs an ONNX model. In: a file; tensors by name. Out: tensors, lazy like all tensors.
 * A node becomes calls of tg.h, in order. Whatever depends only on small constants (shapes, axes, indices)
 * is computed in a second context, an interpreter, so that a size is known when an operator needs it, and
 * no kernel is compiled to learn it. Its results move to the model's context when they are combined with a
 * large tensor. */
#include "onnx_private.h"
#include <stdio.h>

static const OnnxOp *const op_tables[] = {
    onnx_ops_math,   onnx_ops_shape,   onnx_ops_index, onnx_ops_nn,   onnx_ops_rnn,    onnx_ops_attention,
    onnx_ops_signal, onnx_ops_control, onnx_ops_grid,  onnx_ops_list, onnx_ops_region, onnx_ops_microsoft};

const OnnxOp *onnx_op_find(const char *domain, const char *name, int opset) {
  bool microsoft = !strcmp(domain, "com.microsoft");
  if (!microsoft && *domain && strcmp(domain, "ai.onnx")) return NULL;
  OnnxDomain other = microsoft ? DOMAIN_ONNX : DOMAIN_MICROSOFT;
  for (size_t t = 0; t < sizeof op_tables / sizeof *op_tables; t++)
    for (const OnnxOp *o = op_tables[t]; o->name; o++)
      if (o->domain != other && !strcmp(o->name, name)) return microsoft || o->since <= opset ? o : NULL;
  return NULL;
}

/* ---- a run */
/* Makes a tensor of the model's context from a small constant, of the host or of an operator. It is made
 * once for the same contents and kept, so that a captured run, which may not make tensors from data, finds
 * those of the run before. */
static TgTensor *constant_main(TgOnnx *m, const void *bytes, TgDType dtype, int ndim, const int64_t *dims) {
  size_t n = tg_dtype_size(dtype);
  for (int i = 0; i < ndim; i++)
    n *= (size_t)dims[i];
  OnnxConstant *at = m->constants;
  for (; at; at = at->next)
    if (at->n == n && tg_dtype(at->t) == dtype && tg_ndim(at->t) == ndim &&
        !memcmp(tg_shape(at->t), dims, (size_t)ndim * sizeof *dims) && !memcmp(at->bytes, bytes, n))
      return at->t;
  TgTensor *made = tg_from(m->ctx, bytes, dtype, ndim, dims);
  if (!made || n > CONSTANT_BYTES || m->nconstants >= CONSTANTS_MAX) return made;
  if (!(at = tg_alloc(m->ctx, sizeof *at + n))) return NULL;
  *at = (OnnxConstant){.next = m->constants, .t = tg_keep(made), .n = n};
  memcpy(at->bytes, bytes, n);
  m->constants = at;
  m->nconstants++;
  return made;
}

TgTensor *call_constant(OnnxCall *c, const void *data, TgDType dtype, int ndim, const int64_t *dims) {
  if (c->ctx != c->run->m->ctx) return tg_from(c->ctx, data, dtype, ndim, dims);
  return constant_main(c->run->m, data, dtype, ndim, dims);
}

static TgTensor *moved(TgOnnx *m, TgTensor *t) {
  size_t n = tg_nbytes(t);
  void *bytes = tg_alloc(m->ctx, n + 1);
  bool ok = bytes && !tg_read(t, bytes, n);
  TgTensor *made = ok ? constant_main(m, bytes, tg_dtype(t), tg_ndim(t), tg_shape(t)) : NULL;
  tg_free(m->ctx, bytes);
  return made;
}

TgTensor *val_main(OnnxRun *r, OnnxVal *v) {
  if (!v->host || v->moved) return v->host ? v->moved : v->t;
  if (has_symbolic(r) && v->sizes) return v->moved = onnx_sizes_main(r, v);
  TgDType d = tg_dtype(v->t);
  if (tg_numel(v->t) != 1)
    v->moved =
        tg_numel(v->t) ? moved(r->m, v->t) : tg_zeros(r->m->ctx, tg_ndim(v->t), tg_shape(v->t), .dtype = d);
  else if (tg_dtype_is_float(d))
    v->moved = tg_full(r->m->ctx, tg_ndim(v->t), tg_shape(v->t), tg_item_f64(v->t), .dtype = d);
  else
    v->moved = tg_full_i64(r->m->ctx, tg_ndim(v->t), tg_shape(v->t), tg_item_i64(v->t), d);
  return v->moved;
}

/* Reports the error of a node, with its label. */
static bool node_fail(OnnxRun *r, const OnnxNode *n) {
  TgContext *ctx = r->m->ctx, *from = tg_error(ctx) || !r->m->host ? ctx : r->m->host;
  TgStatus s = tg_error(from);
  bool captured = s == TG_ERR_STATE && !strncmp(tg_errmsg(from), "read: ", 6);
  char t[800];
  snprintf(t, sizeof t, "onnx: node %.120s (%.60s): %.500s%s", n->label, n->op,
           s ? tg_errmsg(from) : "no result",
           captured ? "; here a shape, or how often a loop runs, depends on an input's values" : "");
  if (r->m->host) tg_clear_error(r->m->host);
  tg_clear_error(ctx);
  tg_set_error(ctx, s ? s : TG_ERR_INTERNAL, t);
  return false;
}

TgTensor *onnx_op_called(OnnxCall *c) {
  const OnnxOp *o = c->n->def;
  switch ((OnnxForm)o->form) {
  case FORM_UNARY: return o->unary(c->in[0]);
  case FORM_BINARY: return o->binary(c->in[0], c->in[1]);
  case FORM_FOLD: return onnx_fold(c);
  case FORM_REDUCE: return onnx_reduce(c);
  default: return o->fn(c);
  }
}

static TgTensor *node_call(OnnxCall *c) {
  for (int i = 0; i < c->nin; i++) {
    if (!c->raw[i])
      c->in[i] = NULL;
    else if (!(c->in[i] = c->ctx == c->run->m->ctx ? val_main(c->run, c->raw[i]) : c->raw[i]->t))
      return NULL;
    else if (onnx_is_list(c, i))
      c->in[i] = as(c->in[i], TG_I64);
  }
  return onnx_op_called(c);
}

/* Whether input i is required. Operators with any number of inputs need all of them, except operators that
 * run graphs, which check themselves, and those of com.microsoft, which have zero points among their
 * inputs. */
static bool input_needed(const OnnxOp *o, int i) {
  bool any_number = o->max_in < 0 && o->form != FORM_CONTROL && o->domain != DOMAIN_MICROSOFT;
  return i < o->min_in || any_number;
}

/* Finds the values of a node's inputs; *host: all of them are on the host. Inputs that are left out are
 * NULL. */
static bool inputs_taken(OnnxCall *c, bool *host) {
  const OnnxNode *n = c->n;
  const OnnxOp *o = n->def;
  while (c->nin > 0 && !n->in[c->nin - 1])
    c->nin--;
  if (c->nin < o->min_in || (o->max_in >= 0 && c->nin > o->max_in))
    return call_fail(c, TG_ERR_VALUE, "%d inputs", c->nin), false;
  for (int i = 0; i < c->nin; i++) {
    c->raw[i] = n->in[i] ? &c->run->vals[n->in[i]] : NULL;
    if (c->raw[i] && c->raw[i]->left_out) c->raw[i] = NULL;
    if (!c->raw[i] && input_needed(o, i)) return call_fail(c, TG_ERR_VALUE, "input %d is left out", i), false;
    bool list = c->raw[i] && (c->raw[i]->list || c->raw[i]->none);
    if (list && o->form != FORM_CONTROL)
      return call_fail(c, TG_ERR_VALUE, "input %d is %s, not a tensor", i,
                       c->raw[i]->list ? "a list" : "an optional value that is not there"),
             false;
    if (c->raw[i] && !c->raw[i]->t && !list)
      return call_fail(c, TG_ERR_VALUE, "input %d has no value", i), false;
    *host = *host && (!c->raw[i] || c->raw[i]->host);
  }
  for (int i = c->nin; i < c->nin + 4; i++)
    c->in[i] = NULL;
  return true;
}

/* Reports why no operator read attribute i. */
static bool attr_refused(OnnxCall *c, int i) {
  const OnnxAttr *a = c->n->attrs;
  for (int k = 0; k < i; k++)
    if (!strcmp(a[k].name, a[i].name))
      return call_fail(c, TG_ERR_VALUE, "attribute %.60s is given twice", a[i].name), false;
  return call_fail(c, TG_ERR_VALUE, "attribute %.60s is not implemented", a[i].name), false;
}

/* Computes the node in c->ctx; *small: every output has few elements. Attributes that no operator read are
 * errors. */
bool outputs_made(OnnxCall *c, bool *small) {
  const OnnxNode *n = c->n;
  memset(c->seen, 0, (size_t)n->nattrs);
  memset(c->out, 0, (size_t)n->nout * sizeof *c->out);
  c->out[0] = node_call(c);
  if (!c->out[0] || tg_error(c->ctx)) return false;
  for (int i = 0; i < n->nattrs; i++)
    if (!c->seen[i]) return attr_refused(c, i);
  *small = true;
  for (int i = 0; i < n->nout; i++)
    *small = *small && (!c->out[i] || tg_numel(c->out[i]) <= HOST_MAX);
  return true;
}

bool outputs_kept(OnnxCall *c) {
  const OnnxNode *n = c->n;
  TgOnnx *m = c->run->m;
  for (int i = 0; i < n->nout; i++) {
    if (!n->out[i]) continue;
    if (!c->out[i]) return call_fail(c, TG_ERR_VALUE, "output %d is not implemented", i), false;
    TgTensor *t = c->out[i];
    if (m->integers && tg_dtype_is_float(tg_dtype(t)) && tg_context(t) == m->ctx)
      return call_fail(c, TG_ERR_VALUE, "integers alone: output %d is of floats", i), false;
    OnnxVal *v = &c->run->vals[n->out[i]];
    *v = (OnnxVal){.t = t, .host = m->host && tg_context(t) == m->host, .narrow = i ? 0 : c->narrow};
    v->sizes = has_symbolic(c->run) && v->host ? c->sizes : TG_DTYPE_DEFAULT;
    if (v->sizes && !onnx_sizes_found(c->run, v)) return false;
  }
  return true;
}

/* Whether a node within n has already reported the error. */
static bool told_within(const TgOnnx *m) { return !strncmp(tg_errmsg(m->ctx), "onnx: node", 10); }

/* Calls one of the model's own functions. Its body has values of its own for each call. */
static bool function_run(OnnxRun *r, const OnnxNode *n) {
  OnnxGraph *g = n->body;
  for (size_t i = 0; i < g->nin; i++) {
    bool given = i < (size_t)n->nin && n->in[i] && !r->vals[n->in[i]].left_out;
    r->vals[g->in[i].value] = given ? r->vals[n->in[i]] : (OnnxVal){.left_out = true};
  }
  if (!graph_run(r, g)) return told_within(r->m) ? false : node_fail(r, n);
  for (int i = 0; i < n->nout; i++)
    if (n->out[i]) r->vals[n->out[i]] = r->vals[g->out[i].value];
  return true;
}

/* If all inputs are on the host, the node runs there. If its result is large, it is made on the device
 * instead. */
static bool node_made(OnnxRun *r, const OnnxNode *n, int opset, TgTensor **scratch, OnnxVal **raw,
                      bool *seen) {
  TgOnnx *m = r->m;
  const OnnxOp *o = n->def;
  bool host = m->host != NULL, small = false;
  if (n->body) return function_run(r, n);
  if (!o) {
    ctx_fail(m->ctx, TG_ERR_VALUE,
             "onnx: node %.120s: op %.100s of the domain %.100s, opset %d, is not implemented", n->label,
             n->op, *n->domain ? n->domain : "ai.onnx", opset);
    return false;
  }
  OnnxCall c = {.ctx = m->ctx,
                .run = r,
                .n = n,
                .opset = opset,
                .nin = n->nin,
                .nout = n->nout,
                .in = scratch,
                .out = scratch + n->nin + 4,
                .raw = raw,
                .seen = seen};
  if (!inputs_taken(&c, &host)) return node_fail(r, n);
  if (has_symbolic(r)) {
    OnnxDone done = onnx_sizes_node(&c);
    for (int i = 0; i < c.nin; i++)
      host = host && !(c.raw[i] && c.raw[i]->sizes);
    if (done != DONE_NOT) return done == DONE || node_fail(r, n);
    if (!onnx_sizes_fit(&c)) return node_fail(r, n);
  }
  if (o->form == FORM_CONTROL) return o->control(r, n) || (told_within(m) ? false : node_fail(r, n));
  if (m->integers) {
    bool done;
    if (!onnx_integer_node(&c, &done)) return node_fail(r, n);
    if (done) return true;
  }
  if (!onnx_types_fit(&c)) return node_fail(r, n);
  if (host) {
    c.ctx = m->host;
    if (!outputs_made(&c, &small)) return node_fail(r, n);
  }
  if (!small) {
    c.ctx = m->ctx;
    if (!outputs_made(&c, &small)) return node_fail(r, n);
  }
  return outputs_kept(&c) || node_fail(r, n);
}

static void node_told(OnnxRun *r, const OnnxGraph *g, const OnnxNode *n, TgTensor **out) {
  TgOnnx *m = r->m;
  for (int i = 0; i < n->nout; i++) {
    const OnnxVal *v = n->out[i] ? &r->vals[n->out[i]] : NULL;
    out[i] = v && !v->host ? v->t : NULL;
  }
  TgOnnxNode node = {.size = sizeof node,
                     .name = n->name,
                     .op = n->op,
                     .domain = n->domain,
                     .number = (size_t)(n - g->nodes),
                     .out = out,
                     .nout = n->nout};
  m->seen(&node, m->seen_user);
}

/* "conv1/Conv": appends the op if the name does not end with it. */
static void node_name(const OnnxNode *n, char *to, size_t cap) {
  size_t name = n->name ? strlen(n->name) : 0, op = strlen(n->op);
  bool ends = name >= op && !strcmp(n->name + name - op, n->op);
  snprintf(to, cap, "%.120s%s%.60s", name ? n->name : "", name && !ends ? "/" : "", ends ? "" : n->op);
}

static bool node_run(OnnxRun *r, const OnnxGraph *g, const OnnxNode *n, TgTensor **scratch, OnnxVal **raw,
                     bool *seen) {
  char name[200];
  node_name(n, name, sizeof name);
  bool named = !tg_name_begin(r->m->ctx, name);
  bool made = node_made(r, n, g->opset, scratch, raw, seen);
  if (named) tg_name_end(r->m->ctx);
  if (!made) return false;
  if (r->m->seen) node_told(r, g, n, scratch);
  return true;
}

bool iteration_begin(OnnxRun *r) {
  TgOnnx *m = r->m;
  if (tg_cancelled(m->ctx)) return false;
  return m->iterations++ < m->most_iterations ||
         ctx_fail(m->ctx, TG_ERR_LIMIT, "the loops of a run have more than %lld iterations",
                  (long long)m->most_iterations);
}

TgStatus tg_onnx_loop_limit(TgOnnx *m, int64_t iterations) {
  if (!m) return TG_ERR_NOMEM;
  if (iterations < 0)
    ctx_fail(m->ctx, TG_ERR_VALUE, "tg_onnx_loop_limit: %lld iterations", (long long)iterations);
  else
    m->most_iterations = iterations;
  return tg_error(m->ctx);
}

void tg_onnx_watch(TgOnnx *m, void (*seen)(const TgOnnxNode *node, void *user), void *user) {
  if (m) {
    m->seen = seen;
    m->seen_user = user;
  }
}

bool graph_run(OnnxRun *r, OnnxGraph *g) {
  TgOnnx *m = r->m;
  size_t most = 1, attrs = 1;
  for (size_t i = 0; i < g->nnodes; i++)
    if ((size_t)g->nodes[i].nattrs > attrs) attrs = (size_t)g->nodes[i].nattrs;
  for (size_t i = 0; i < g->nnodes; i++)
    if ((size_t)g->nodes[i].nin + (size_t)g->nodes[i].nout > most)
      most = (size_t)g->nodes[i].nin + (size_t)g->nodes[i].nout;
  TgTensor **scratch = tg_alloc(m->ctx, (most + 8) * sizeof *scratch);
  OnnxVal **raw = tg_alloc(m->ctx, (most + 8) * sizeof *raw);
  bool *seen = tg_alloc(m->ctx, attrs * sizeof *seen), ok = scratch && raw && seen;
  for (size_t i = 0; i < g->ninit && ok; i++) {
    OnnxVal *v = &r->vals[g->init_value[i]];
    if (!v->t) {
      *v = g->init[i]->host ? (OnnxVal){.t = g->init[i]->host, .moved = g->init[i]->main, .host = true}
                            : (OnnxVal){.t = g->init[i]->main};
      v->narrow = g->init[i]->narrow;
      v->of = g->init[i];
    }
  }
  for (size_t i = 0; i < g->nnodes && ok; i++)
    ok = !tg_cancelled(m->ctx) && node_run(r, g, &g->nodes[i], scratch, raw, seen);
  tg_free(m->ctx, scratch), tg_free(m->ctx, raw), tg_free(m->ctx, seen);
  return ok;
}

/* ---- the interface */
static bool input_check(TgOnnx *m, size_t i, TgTensor *t, int64_t *named) {
  const OnnxIO *x = &m->graph->in[i];
  if (tg_context(t) != m->ctx)
    return ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: input %.200s belongs to another context", x->name);
  if (x->dtype && tg_dtype(t) != x->dtype)
    return ctx_fail(m->ctx, TG_ERR_DTYPE, "onnx: input %.200s is %s, the model takes %s", x->name,
                    tg_dtype_name(tg_dtype(t)), tg_dtype_name(x->dtype));
  if (x->ndim < 0) return true;
  if (tg_ndim(t) != x->ndim)
    return ctx_fail(m->ctx, TG_ERR_SHAPE, "onnx: input %.200s has %d axes, the model takes %d", x->name,
                    tg_ndim(t), x->ndim);
  for (int a = 0; a < x->ndim; a++) {
    int64_t n = tg_size_of(t, a);
    named[i * TG_MAX_RANK + (size_t)a] = n;
    if (x->dims[a] >= 0 && tg_is_symbolic(t, a))
      return ctx_fail(m->ctx, TG_ERR_SHAPE,
                      "onnx: axis %d of input %.200s has a symbolic size, the model takes %lld", a, x->name,
                      (long long)x->dims[a]);
    if (x->dims[a] >= 0 && n != x->dims[a])
      return ctx_fail(m->ctx, TG_ERR_SHAPE, "onnx: axis %d of input %.200s is %lld, the model takes %lld", a,
                      x->name, (long long)tg_dim(t, a), (long long)x->dims[a]);
    for (size_t j = 0; x->dim_names[a] && *x->dim_names[a] && j <= i; j++)
      for (int b = 0; b < m->graph->in[j].ndim && (j < i || b < a); b++) {
        const char *other = m->graph->in[j].dim_names[b];
        int64_t was = named[j * TG_MAX_RANK + (size_t)b];
        if (!other || was == -1 || was == n || strcmp(other, x->dim_names[a])) continue;
        if (was < 0 || n < 0)
          return ctx_fail(
              m->ctx, TG_ERR_SHAPE,
              "onnx: dimension %.100s has different sizes in inputs %.100s and %.100s, not both numbers",
              other, m->graph->in[j].name, x->name);
        return ctx_fail(m->ctx, TG_ERR_SHAPE,
                        "onnx: dimension %.100s is %lld in input %.100s and %lld in input %.100s", other,
                        (long long)was, m->graph->in[j].name, (long long)n, x->name);
      }
  }
  return true;
}

/* The message lists the names that are needed beside the name that was given. */
static bool input_unknown(TgOnnx *m, const char *name) {
  char is[300] = "";
  size_t n = 0;
  for (size_t i = 0; i < m->graph->nin && n < sizeof is; i++)
    if (!m->graph->in[i].has_default)
      n += (size_t)snprintf(is + n, sizeof is - n, "%s%.60s", n ? ", " : "", m->graph->in[i].name);
  return ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: the model has no input %.200s; its inputs: %s%s",
                  name ? name : "without a name", n ? is : "none", n < sizeof is ? "" : " ..");
}

static bool inputs(OnnxRun *r, const char *const *names, TgTensor *const *in, int nin, int64_t *named) {
  TgOnnx *m = r->m;
  OnnxVal *vals = r->vals;
  OnnxGraph *g = m->graph;
  for (int k = 0; k < nin; k++) {
    size_t i = 0;
    while (i < g->nin && (!names || !names[k] || strcmp(g->in[i].name, names[k])))
      i++;
    if (i == g->nin) return input_unknown(m, names ? names[k] : NULL);
    if (!in || !in[k])
      return tg_error(m->ctx) ? false
                              : ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: input %.200s is NULL", names[k]);
    if (vals[g->in[i].value].t)
      return ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: input %.200s is given twice", names[k]);
    vals[g->in[i].value] = (OnnxVal){.t = in[k], .narrow = g->in[i].narrow};
  }
  for (size_t i = 0; i < g->nin; i++) {
    OnnxVal *v = &vals[g->in[i].value];
    if (!v->t && g->in[i].has_default) continue;
    if (!v->t) return ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: input %.200s is missing", g->in[i].name);
    if (!input_check(m, i, v->t, named)) return false;
    for (int a = 0; a < tg_ndim(v->t); a++)
      r->symbolic = r->symbolic || tg_is_symbolic(v->t, a);
  }
  if (!r->symbolic || (m->host && !m->integers)) return true;
  return ctx_fail(m->ctx, TG_ERR_SHAPE, "onnx: symbolic sizes are not taken %s",
                  m->host ? "by a model of integers alone" : "by a build without INTERP");
}

/* Whether input i fits; sizes of named free dimensions are unknown here. */
static bool input_fits(TgOnnx *m, size_t i, TgTensor *value) {
  size_t n = (m->graph->nin + 1) * TG_MAX_RANK;
  int64_t *named = tg_alloc(m->ctx, n * sizeof *named);
  for (size_t k = 0; named && k < n; k++)
    named[k] = -1;
  bool fits = named && input_check(m, i, value, named);
  for (int a = 0; fits && a < tg_ndim(value); a++)
    if (tg_is_symbolic(value, a))
      fits = ctx_fail(m->ctx, TG_ERR_SHAPE, "onnx: axis %d of the value of input %.200s has a symbolic size",
                      a, m->graph->in[i].name);
  tg_free(m->ctx, named);
  return fits;
}

/* Makes one more initializer, also on the host if it is small. Returns NULL after an error, which is
 * recorded. */
static OnnxTensor *tensor_fixed(TgOnnx *m, const OnnxIO *input, TgTensor *value) {
  OnnxTensor *t = doc_alloc(m->doc, sizeof *t);
  int64_t n = tg_numel(value);
  uint8_t bytes[8 * HOST_MAX];
  if (!t) return NULL;
  *t = (OnnxTensor){.name = input->name, .narrow = input->narrow};
  t->main = tg_keep(tg_clone(value));
  if (!t->main || tg_realize(t->main)) return NULL;
  t->next = m->tensors;
  m->tensors = t;
  bool small = n > 0 && n <= (tg_dtype_is_float(tg_dtype(value)) ? 16 : HOST_MAX) && m->host;
  if (!small) return t;
  if (tg_read(t->main, bytes, tg_nbytes(t->main))) return NULL;
  t->host = tg_keep(tg_from(m->host, bytes, tg_dtype(value), tg_ndim(value), tg_shape(value)));
  return t->host ? t : (ctx_fail(m->ctx, tg_error(m->host), "%s", tg_errmsg(m->host)), NULL);
}

TgStatus tg_onnx_fix(TgOnnx *m, const char *name, TgTensor *value) {
  if (!m) return TG_ERR_NOMEM;
  if (tg_error(m->ctx)) return tg_error(m->ctx);
  OnnxGraph *g = m->graph;
  size_t i = 0;
  while (i < g->nin && (!name || strcmp(g->in[i].name, name)))
    i++;
  if (i == g->nin) return input_unknown(m, name), tg_error(m->ctx);
  if (!value || g->in[i].has_default)
    return ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: input %.200s has a value, or is given none", name),
           tg_error(m->ctx);
  OnnxTensor **init = doc_alloc(m->doc, (g->ninit + 2) * sizeof *init);
  size_t *at = doc_alloc(m->doc, (g->ninit + 2) * sizeof *at);
  OnnxTensor *t = init && at && input_fits(m, i, value) ? tensor_fixed(m, &g->in[i], value) : NULL;
  if (!t) return tg_error(m->ctx) ? tg_error(m->ctx) : TG_ERR_NOMEM;
  if (g->ninit)
    memcpy(init, g->init, g->ninit * sizeof *init), memcpy(at, g->init_value, g->ninit * sizeof *at);
  init[g->ninit] = t;
  at[g->ninit++] = g->in[i].value;
  g->init = init;
  g->init_value = at;
  g->in[i].has_default = true;
  return TG_OK;
}

TgStatus tg_onnx_run(TgOnnx *m, const char *const *in_names, TgTensor *const *in, int nin, TgTensor **out,
                     int nout) {
  if (!m) return TG_ERR_NOMEM;
  if ((nout > 0 && !out) || nin < 0 || nout < 0 || (nin > 0 && !in))
    return tg_set_error(m->ctx, TG_ERR_VALUE,
                        "onnx: a list of inputs or outputs is NULL, or its length negative");
  for (int i = 0; i < nout; i++)
    out[i] = NULL;
  if (tg_error(m->ctx)) return tg_error(m->ctx);
  OnnxGraph *g = m->graph;
  m->iterations = 0;
  OnnxRun r = {.m = m, .vals = tg_alloc(m->ctx, m->nvalues * sizeof *r.vals)};
  size_t nnamed = (g->nin + 1) * TG_MAX_RANK;
  int64_t *named = tg_alloc(m->ctx, nnamed * sizeof *named);
  TgStatus status = TG_OK;
  bool scope = r.vals && named && !tg_scope_begin(m->ctx);
  bool scope2 = scope && m->host && !tg_scope_begin(m->host);
  bool ok = scope && (scope2 || !m->host);
  for (size_t i = 0; i < nnamed && ok; i++)
    named[i] = -1;
  if (ok && nout > (int)g->nout)
    ok = ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: %d outputs asked for, the model has %zu", nout, g->nout);
  ok = ok && inputs(&r, in_names, in, nin, named) && graph_run(&r, g);
  for (int i = 0; i < nout && ok; i++) {
    OnnxVal *v = &r.vals[g->out[i].value];
    if (v->list || v->none)
      ok = ctx_fail(m->ctx, TG_ERR_VALUE, "onnx: output %.200s is no tensor: %s", g->out[i].name,
                    v->list ? "a list" : "an optional value that is not there");
    TgTensor *t = !ok ? NULL : m->integers ? onnx_integer_output(&r, &g->out[i], v) : val_main(&r, v);
    ok = t && (out[i] = tg_keep(shaped_as(t, t)));
  }
  if (scope2) tg_scope_end(m->host);
  if (scope) tg_scope_end(m->ctx);
  for (int i = 0; i < nout; i++) { /* move the tensors from kept to the caller's scope */
    TgTensor *kept = out[i];
    if (kept) out[i] = ok ? shaped_as(kept, kept) : NULL;
    tg_release(kept);
    ok = ok && out[i];
  }
  for (OnnxList *after, *l = r.lists; l; l = after) {
    after = l->next;
    tg_free(m->ctx, l);
  }
  for (OnnxScaled *after, *s = r.scaled; s; s = after) {
    after = *(OnnxScaled **)s;
    tg_free(m->ctx, s);
  }
  tg_free(m->ctx, r.vals), tg_free(m->ctx, named);
  if (m->host && tg_error(m->host))
    ctx_fail(m->ctx, tg_error(m->host), "%s", tg_errmsg(m->host)), tg_clear_error(m->host);
  status = tg_error(m->ctx);
  return ok ? TG_OK : status ? status : TG_ERR_NOMEM;
}

static TgOnnx *open_model(TgTensor *file, const char *path, bool with_host) {
  TgContext *ctx = tg_context(file);
  TgOnnx *m = ctx && !tg_error(ctx) ? tg_alloc(ctx, sizeof *m) : NULL;
  if (!m) return NULL;
  m->ctx = ctx;
  m->path = path;
  m->most_iterations = ITERATIONS_MOST;
  bool ok = (m->doc = doc_new(ctx)) && source_open(&m->s, file, "onnx", path);
  if (ok && with_host) {
    m->host = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .threads = 1});
    /* without it everything is computed on the device */
    if (m->host && tg_error(m->host)) {
      tg_close(m->host);
      m->host = NULL;
    }
  }
  if (ok) return m;
  tg_onnx_free(m);
  return NULL;
}

static TgOnnx *load(TgTensor *file, const char *path, bool told_only) {
  TgOnnx *m = open_model(file, path, true);
  if (!m) return NULL;
  m->told_only = told_only;
  bool ok = !tg_scope_begin(m->ctx);
  if (ok) {
    ok = onnx_parse(m);
    tg_scope_end(m->ctx);
  }
  source_close(&m->s);
  m->s.p = NULL;
  for (OnnxBeside *b = m->beside; b; b = b->next) {
    source_close(&b->s);
    b->s.p = NULL;
  }
  m->path = NULL; /* the path belongs to the caller */
  if (!ok) {
    tg_onnx_free(m);
    m = NULL;
  }
  return m;
}

TgOnnx *tg_onnx_load(TgTensor *file) { return load(file, NULL, false); }

static TgOnnx *open_path(TgContext *ctx, const char *path, bool told_only) {
  if (!ctx || tg_scope_begin(ctx)) return NULL;
  TgOnnx *m = load(file_tensor(ctx, path), path, told_only);
  tg_scope_end(ctx);
  return m;
}

TgOnnx *tg_onnx_open(TgContext *ctx, const char *path) { return open_path(ctx, path, false); }

TgOnnx *tg_onnx_describe(TgContext *ctx, const char *path) { return open_path(ctx, path, true); }

TgTensor *tg_onnx_tensor(TgTensor *file) {
  TgOnnx *m = open_model(file, NULL, false);
  OnnxTensor *t = m ? onnx_tensor_parse(m, 0, m->s.n) : NULL;
  TgTensor *out = t ? tg_reshape(t->main, tg_ndim(t->main), tg_shape(t->main)) : NULL;
  if (m) tg_onnx_free(m);
  return out;
}

void tg_onnx_free(TgOnnx *m) {
  if (!m) return;
  for (OnnxTensor *t = m->tensors; t; t = t->next)
    tg_release(t->main);
  for (OnnxConstant *next, *at = m->constants; at; at = next) {
    next = at->next;
    tg_release(at->t), tg_free(m->ctx, at);
  }
  for (OnnxGraph *g = m->graphs; g; g = g->next)
    index_free(m->ctx, &g->names);
  if (m->host) tg_close(m->host); /* this also ends the host's tensors */
  if (m->s.ctx) source_close(&m->s);
  if (m->doc) doc_free(m->doc);
  tg_free(m->ctx, m);
}

static bool describe(const OnnxIO *x, TgOnnxValue *v) {
  if (v)
    *v = (TgOnnxValue){.name = x->name,
                       .dtype = x->dtype,
                       .ndim = x->ndim,
                       .dims = x->dims,
                       .dim_names = x->dim_names,
                       .has_default = x->has_default};
  return true;
}

bool tg_onnx_input(const TgOnnx *m, size_t i, TgOnnxValue *v) {
  return m && i < m->graph->nin && describe(&m->graph->in[i], v);
}

bool tg_onnx_output(const TgOnnx *m, size_t i, TgOnnxValue *v) {
  return m && i < m->graph->nout && describe(&m->graph->out[i], v);
}

int tg_onnx_opset(const TgOnnx *m) { return m ? m->opset : 0; }

size_t tg_onnx_node_count(const TgOnnx *m) { return m ? m->graph->nnodes : 0; }

static const char *domain_name(const char *domain) { return *domain ? domain : "ai.onnx"; }

bool tg_onnx_import(const TgOnnx *m, size_t i, const char **domain, int64_t *version) {
  if (!m || i >= m->nimports) return false;
  if (domain) *domain = domain_name(m->imports[i].domain);
  if (version) *version = m->imports[i].version;
  return true;
}

static const OnnxNode *node_at(const OnnxGraph *g, size_t *i) {
  if (*i < g->nnodes) return &g->nodes[*i];
  *i -= g->nnodes;
  return NULL;
}

bool tg_onnx_operator(const TgOnnx *m, size_t i, TgOnnxOperator *about) {
  if (!m) return false;
  const OnnxNode *n = node_at(m->graph, &i);
  for (const OnnxGraph *g = m->graphs; g && !n; g = g->next)
    if (g != m->graph) n = node_at(g, &i);
  if (!n) return false;
  if (about)
    *about = (TgOnnxOperator){.name = n->name,
                              .op = n->op,
                              .domain = domain_name(n->domain),
                              .implemented = n->def || n->body,
                              .function = n->body != NULL};
  return true;
}

int64_t tg_onnx_weights(const TgOnnx *m) {
  int64_t n = 0;
  for (const OnnxTensor *t = m ? m->tensors : NULL; t; t = t->next)
    n += tg_numel(t->main);
  return n;
}

TgTensor *tg_onnx_weight(const TgOnnx *m, size_t i, const char **name) {
  const OnnxTensor *t = m ? m->tensors : NULL;
  while (t && i--)
    t = t->next;
  if (!t) return NULL;
  if (name) *name = t->name ? t->name : "";
  return t->main;
}

const char *tg_onnx_op_name(size_t i, const char **domain) {
  for (size_t t = 0; t < sizeof op_tables / sizeof *op_tables; t++)
    for (const OnnxOp *o = op_tables[t]; o->name; o++) {
      if (i--) continue;
      if (domain) *domain = o->domain == DOMAIN_MICROSOFT ? "com.microsoft" : "";
      return o->name;
    }
  return NULL;
}
