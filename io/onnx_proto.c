/* onnx_proto.c: the bytes of an ONNX model -> graphs, nodes and functions. In: a model's bytes. Out: its
 * graphs, with names resolved to values. Nodes are in topological order, so a name that is not known yet
 * is an error, and cycles cannot occur. */
#include "onnx_wire.h"
#include <stdio.h>

/* ---- graphs */
static OnnxGraph *graph_parse(TgOnnx *m, Wire w, OnnxGraph *parent, int depth);

static bool value_new(TgOnnx *m, OnnxGraph *g, const char *name, const char *what, size_t *value, bool *was) {
  size_t at = m->nvalues;
  bool there = false;
  if (!index_put(m->ctx, &g->names, name, strlen(name), at, &there)) return false;
  if (there && !was) return io_fail(&m->s, TG_ERR_VALUE, "%s %.200s: the name is taken", what, name);
  if (was) *was = there;
  if (there) {
    index_find(&g->names, name, strlen(name), value);
    return true;
  }
  *value = at;
  m->nvalues++;
  return true;
}

static bool value_find(const OnnxGraph *g, const char *name, size_t *value) {
  for (; g; g = g->parent)
    if (index_find(&g->names, name, strlen(name), value)) return true;
  return false;
}

/* The attribute `name` of the call whose function has g as its body; NULL: the call does not give it. */
static const OnnxAttr *caller_attr(const OnnxGraph *g, const char *name) {
  while (g && !g->caller)
    g = g->parent;
  for (int i = 0; g && i < g->caller->nattrs; i++)
    if (!strcmp(g->caller->attrs[i].name, name)) return &g->caller->attrs[i];
  return NULL;
}

/* Reads the message twice: first to count, then to fill the arrays. A declared type takes precedence over
 * the field that was found. */
static bool attr_parse(TgOnnx *m, Wire w0, OnnxAttr *a, OnnxGraph *g, int depth) {
  Field f;
  size_t k = 0;
  *a = (OnnxAttr){.name = ""};
  const char **strings = NULL;
  Wire w = w0;
  int said = 0;
  const char *of_caller = NULL;
  static const uint8_t kind_of[] = {
      [2] = ONNX_FLOAT, [3] = ONNX_INT,    [4] = ONNX_STRING, [5] = ONNX_TENSOR,
      [6] = ONNX_GRAPH, [7] = ONNX_FLOATS, [8] = ONNX_INTS,   [9] = ONNX_STRINGS};
  while (wire_next(&w, &f)) {
    if (f.number < sizeof kind_of && kind_of[f.number]) a->kind = kind_of[f.number];
    switch (f.number) {
    case 1:
      if (!wire_want(&w, &f, 2, "attribute") || !(a->name = wire_text(m, &f))) return false;
      break;
    case 2:
      if (!wire_want(&w, &f, 5, "attribute")) return false;
      a->f = wire_f32(f.v);
      break;
    case 3:
      if (!wire_want(&w, &f, 0, "attribute")) return false;
      a->i = (int64_t)f.v;
      break;
    case 4:
      if (!wire_want(&w, &f, 2, "attribute") || !(a->s = wire_text(m, &f))) return false;
      a->s_n = f.n;
      break;
    case 5:
      if (!wire_want(&w, &f, 2, "attribute") || !(a->t = onnx_tensor_parse(m, f.at, f.n))) return false;
      break;
    case 6:
      if (!wire_want(&w, &f, 2, "attribute")) return false;
      if (depth >= ONNX_DEPTH)
        return io_fail(&m->s, TG_ERR_LIMIT, "graphs within graphs, more than %d deep", ONNX_DEPTH);
      if (!(a->g = graph_parse(m, wire_within(&m->s, &f), g, depth + 1))) return false;
      break;
    case 9:
      if (!wire_want(&w, &f, 2, "attribute")) return false;
      a->nstrings++;
      break;
    case 20:
      if (!wire_want(&w, &f, 0, "attribute")) return false;
      said = (int)(f.v & INT32_MAX);
      break;
    case 21:
      if (!wire_want(&w, &f, 2, "attribute") || !(of_caller = wire_text(m, &f))) return false;
      break;
    default: break;
    }
  }
  if (said) a->kind = said;
  if (of_caller && *of_caller && !w.bad) {
    const OnnxAttr *given = caller_attr(g, of_caller);
    const char *name = a->name;
    *a = given ? *given : (OnnxAttr){.name = NULL}; /* not given: the node has no such attribute */
    if (given) a->name = name;
    return true;
  }
  if (w.bad || !wire_numbers(w0, 8, 0, NULL, NULL, &a->nints) ||
      !wire_numbers(w0, 7, 4, NULL, NULL, &a->nfloats))
    return false;
  int64_t *ints = doc_alloc(m->doc, (a->nints + 1) * sizeof *ints);
  double *floats = doc_alloc(m->doc, (a->nfloats + 1) * sizeof *floats);
  if (!ints || !floats || !(strings = doc_alloc(m->doc, (a->nstrings + 1) * sizeof *strings))) return false;
  a->ints = ints;
  a->floats = floats;
  a->strings = strings;
  for (w = w0; wire_next(&w, &f);)
    if (f.number == 9 && !(strings[k++] = wire_text(m, &f))) return false;
  return wire_numbers(w0, 8, 0, wire_put_i64, ints, &a->nints) &&
         wire_numbers(w0, 7, 4, wire_put_f32, floats, &a->nfloats);
}

static bool function_called(TgOnnx *m, Wire w, OnnxNode *n, int depth);

static bool nodes_fit(const TgOnnx *m, size_t more) {
  return m->nnodes + more <= ONNX_NODES_MAX ||
         io_fail(&m->s, TG_ERR_LIMIT, "more than %d nodes, with those of functions", ONNX_NODES_MAX);
}

/* A label for error messages. Exporters leave names out; then the first output, or the place in the graph,
 * identifies the node. */
static const char *label_new(TgOnnx *m, Wire w, const OnnxNode *n, const OnnxGraph *g) {
  enum { CAP = 128 };

  Field f;
  const char *makes = "";
  if (*n->name) return n->name;
  while (!*makes && wire_next(&w, &f))
    if (f.number == 2 && (!wire_want(&w, &f, 2, "node") || !(makes = wire_text(m, &f)))) return NULL;
  char *label = doc_alloc(m->doc, CAP);
  if (label && *makes) snprintf(label, CAP, "with output %.100s", makes);
  if (label && !*makes) snprintf(label, CAP, "number %zu", (size_t)(n - g->nodes));
  return label;
}

static bool node_parse(TgOnnx *m, Wire w0, OnnxNode *n, OnnxGraph *g, int depth) {
  Field f;
  size_t nin, nout, nattrs, i = 0, o = 0, a = 0;
  *n = (OnnxNode){.name = "", .op = "", .domain = ""};
  if (!wire_count(w0, 1, &nin) || !wire_count(w0, 2, &nout) || !wire_count(w0, 5, &nattrs)) return false;
  if (nin > 1 << 20 || nout > 1 << 20 || nattrs > 1 << 20)
    return io_fail(&m->s, TG_ERR_LIMIT, "a node with more than a million names");
  n->in = doc_alloc(m->doc, (nin + 1) * sizeof *n->in);
  n->out = doc_alloc(m->doc, (nout + 1) * sizeof *n->out);
  n->attrs = doc_alloc(m->doc, (nattrs + 1) * sizeof *n->attrs);
  if (!n->in || !n->out || !n->attrs) return false;
  n->nin = (int)nin;
  n->nout = (int)nout;
  n->nattrs = (int)nattrs;
  for (Wire w = w0; wire_next(&w, &f);) {
    if (f.number == 3 && (f.type != 2 || !(n->name = wire_text(m, &f)))) return wire_want(&w, &f, 2, "node");
    if (f.number == 4 && (f.type != 2 || !(n->op = wire_text(m, &f)))) return wire_want(&w, &f, 2, "node");
    if (f.number == 7 && (f.type != 2 || !(n->domain = wire_text(m, &f))))
      return wire_want(&w, &f, 2, "node");
  }
  if (!(n->label = label_new(m, w0, n, g))) return false;
  if (!nodes_fit(m, 1)) return false;
  m->nnodes++;
  n->def = onnx_op_find(n->domain, n->op, g->opset);
  for (Wire w = w0; wire_next(&w, &f);) {
    if ((f.number == 1 || f.number == 2 || f.number == 5) && !wire_want(&w, &f, 2, "node")) return false;
    const char *name = f.number == 1 ? wire_text(m, &f) : "";
    if (!name) return false;
    if (f.number == 1 && *name && !value_find(g, name, &n->in[i]))
      return io_fail(&m->s, TG_ERR_VALUE, "node %.120s (%.60s) reads %.200s, which nothing before it makes",
                     n->label, n->op, name);
    i += f.number == 1;
    if (f.number == 5 && !attr_parse(m, wire_within(&m->s, &f), &n->attrs[a], g, depth)) return false;
    a += f.number == 5 && n->attrs[a].name;
  }
  n->nattrs = (int)a;
  if (!function_called(m, w0, n, depth)) return false;
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 2) {
      const char *name = wire_text(m, &f);
      if (!name || (*name && !value_new(m, g, name, "output", &n->out[o], NULL))) return false;
      o++;
    }
  return true;
}

static bool dim_parse(TgOnnx *m, Wire w, OnnxIO *x) {
  Field f;
  if (x->ndim == TG_MAX_RANK)
    return io_fail(&m->s, TG_ERR_SHAPE, "%.200s: more than %d axes", x->name, TG_MAX_RANK);
  x->dims[x->ndim] = -1;
  while (wire_next(&w, &f)) {
    if (f.number == 1 && wire_want(&w, &f, 0, "dimension")) x->dims[x->ndim] = (int64_t)f.v;
    if (f.number == 2 && wire_want(&w, &f, 2, "dimension") && !(x->dim_names[x->ndim] = wire_text(m, &f)))
      return false;
  }
  if (x->dims[x->ndim] < 0) x->dims[x->ndim] = -1;
  const char *name = x->dim_names[x->ndim]; /* writers put "?" for any size that they do not know */
  if (name && !strcmp(name, "?")) x->dim_names[x->ndim] = NULL;
  x->ndim++;
  return !w.bad;
}

static void type_of(OnnxIO *x, int64_t data_type) {
  const OnnxNarrow *narrow = onnx_narrow(data_type);
  x->dtype = narrow ? narrow->as : onnx_dtype(data_type);
  x->narrow = narrow ? narrow->type : 0;
}

static bool io_parse(TgOnnx *m, Wire w, OnnxIO *x) {
  Field f, ff, fff;
  *x = (OnnxIO){.name = "", .ndim = -1};
  while (wire_next(&w, &f)) {
    if (f.number == 1 && wire_want(&w, &f, 2, "value") && !(x->name = wire_text(m, &f))) return false;
    if (f.number != 2 || !wire_want(&w, &f, 2, "value")) continue;
    Wire type = wire_within(&m->s, &f);
    while (wire_next(&type, &ff)) {
      if (ff.number != 1) continue; /* sequences, maps, optionals: these have no dtype */
      if (!wire_want(&type, &ff, 2, "type")) return false;
      Wire tensor = wire_within(&m->s, &ff);
      while (wire_next(&tensor, &fff)) {
        if (fff.number == 1 && wire_want(&tensor, &fff, 0, "type")) type_of(x, (int64_t)fff.v);
        if (fff.number != 2 || !wire_want(&tensor, &fff, 2, "type")) continue;
        Wire shape = wire_within(&m->s, &fff);
        x->ndim = 0;
        while (wire_next(&shape, &fff))
          if (fff.number == 1 &&
              (!wire_want(&shape, &fff, 2, "shape") || !dim_parse(m, wire_within(&m->s, &fff), x)))
            return false;
        if (shape.bad) return false;
      }
      if (tensor.bad) return false;
    }
    if (type.bad) return false;
  }
  return !w.bad;
}

static OnnxGraph *graph_parse(TgOnnx *m, Wire w0, OnnxGraph *parent, int depth) {
  OnnxGraph *g = doc_alloc(m->doc, sizeof *g);
  Field f;
  size_t sparse, node = 0, in = 0, out = 0, init = 0;
  bool was;
  if (!g) return NULL;
  g->parent = parent;
  g->next = m->graphs;
  m->graphs = g;
  g->opset = parent ? parent->opset : m->opset;
  if (!wire_count(w0, 1, &g->nnodes) || !wire_count(w0, 5, &g->ninit) || !wire_count(w0, 11, &g->nin) ||
      !wire_count(w0, 12, &g->nout) || !wire_count(w0, 15, &sparse))
    return NULL;
  if (sparse) return io_fail(&m->s, TG_ERR_VALUE, "sparse initializers are not read here"), NULL;
  g->nodes = doc_alloc(m->doc, (g->nnodes + 1) * sizeof *g->nodes);
  g->in = doc_alloc(m->doc, (g->nin + 1) * sizeof *g->in);
  g->out = doc_alloc(m->doc, (g->nout + 1) * sizeof *g->out);
  g->init = doc_alloc(m->doc, (g->ninit + 1) * sizeof *g->init);
  g->init_value = doc_alloc(m->doc, (g->ninit + 1) * sizeof *g->init_value);
  if (!g->nodes || !g->in || !g->out || !g->init || !g->init_value) return NULL;
  for (Wire w = w0; wire_next(&w, &f);) {
    if ((f.number == 1 || f.number == 5 || f.number == 11 || f.number == 12) &&
        !wire_want(&w, &f, 2, "graph"))
      return NULL;
    if (f.number != 11) continue;
    OnnxIO *x = &g->in[in++];
    if (!io_parse(m, wire_within(&m->s, &f), x) || !value_new(m, g, x->name, "input", &x->value, NULL))
      return NULL;
  }
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 5) {
      OnnxTensor *t = g->init[init] = onnx_tensor_parse(m, f.at, f.n);
      if (!t || !value_new(m, g, t->name, "initializer", &g->init_value[init], &was)) return NULL;
      for (size_t i = 0; i < g->nin && was; i++)
        if (g->in[i].value == g->init_value[init]) {
          was = g->in[i].has_default;
          g->in[i].has_default = true;
          if (!was) goto given;
        }
      if (was) return io_fail(&m->s, TG_ERR_VALUE, "initializer %.200s: the name is taken", t->name), NULL;
    given:
      init++;
    }
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 1 && !node_parse(m, wire_within(&m->s, &f), &g->nodes[node++], g, depth)) return NULL;
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 12) {
      OnnxIO *x = &g->out[out++];
      if (!io_parse(m, wire_within(&m->s, &f), x)) return NULL;
      if (!value_find(g, x->name, &x->value))
        return io_fail(&m->s, TG_ERR_VALUE, "output %.200s: nothing makes it", x->name), NULL;
    }
  return g;
}

static bool opset_parse(TgOnnx *m, Wire w, int *opset) {
  Field f;
  const char *domain = "";
  uint64_t version = 0;
  while (wire_next(&w, &f)) {
    if (f.number == 1 && wire_want(&w, &f, 2, "opset") && !(domain = wire_text(m, &f))) return false;
    if (f.number == 2 && wire_want(&w, &f, 0, "opset")) version = f.v;
  }
  if (w.bad) return false;
  /* operators of another domain are refused by their names when they are used */
  if (*domain && strcmp(domain, "ai.onnx")) return true;
  if (version < ONNX_OPSET_MIN || version > ONNX_OPSET_MAX)
    return io_fail(&m->s, TG_ERR_VALUE, "opset %lld of the domain ai.onnx is not read here: %d to %d are",
                   (long long)version, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
  *opset = (int)version;
  return true;
}

static bool imports_parse(TgOnnx *m, Wire w0) {
  Field f, ff;
  size_t n;
  if (!wire_count(w0, 8, &n) || !(m->imports = doc_alloc(m->doc, (n + 1) * sizeof *m->imports))) return false;
  for (Wire w = w0; wire_next(&w, &f);) {
    if (f.number != 8) continue;
    OnnxImport *import = &m->imports[m->nimports++];
    import->domain = "";
    for (Wire in = wire_within(&m->s, &f); wire_next(&in, &ff);) {
      if (ff.number == 1 && !(import->domain = wire_text(m, &ff))) return false;
      if (ff.number == 2) import->version = (int64_t)ff.v;
    }
  }
  return true;
}

/* ---- functions that the model defines */
/* Reports a node of the main graph, or of a function, with an unknown operator when the model is opened. */
static bool nodes_known(const TgOnnx *m, const OnnxGraph *g) {
  for (size_t i = 0; i < g->nnodes && !m->told_only; i++) {
    const OnnxNode *n = &g->nodes[i];
    if (!n->body && !n->def)
      return io_fail(&m->s, TG_ERR_VALUE,
                     "node %.120s: op %.100s of the domain %.100s, opset %d, is not implemented", n->label,
                     n->op, *n->domain ? n->domain : "ai.onnx", g->opset);
  }
  return true;
}

static bool function_parse(TgOnnx *m, Wire w, OnnxFunction *fn) {
  Field f;
  *fn = (OnnxFunction){.name = "", .domain = "", .overload = "", .at = w.at, .n = w.end - w.at};
  while (wire_next(&w, &f)) {
    const char **to = f.number == 1    ? &fn->name
                      : f.number == 10 ? &fn->domain
                      : f.number == 13 ? &fn->overload
                                       : NULL;
    if (to && (!wire_want(&w, &f, 2, "function") || !(*to = wire_text(m, &f)))) return false;
  }
  return !w.bad;
}

static bool functions_parse(TgOnnx *m, Wire w0) {
  Field f;
  size_t n, k = 0;
  if (!wire_count(w0, 25, &n)) return false;
  if (!(m->functions = doc_alloc(m->doc, (n + 1) * sizeof *m->functions))) return false;
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 25 &&
        (!wire_want(&w, &f, 2, "model") || !function_parse(m, wire_within(&m->s, &f), &m->functions[k++])))
      return false;
  m->nfunctions = n;
  return true;
}

/* Adds the function's default attributes to a call that leaves them out. */
static bool defaults_taken(TgOnnx *m, Wire w0, OnnxNode *n) {
  Field f;
  size_t more;
  if (!wire_count(w0, 11, &more) || !more) return tg_error(m->ctx) == TG_OK;
  if (more > ONNX_NODES_MAX) return io_fail(&m->s, TG_ERR_LIMIT, "a function of %zu attributes", more);
  OnnxAttr *all = doc_alloc(m->doc, ((size_t)n->nattrs + more + 1) * sizeof *all);
  if (!all) return false;
  if (n->nattrs) memcpy(all, n->attrs, (size_t)n->nattrs * sizeof *all);
  n->attrs = all;
  for (Wire w = w0; wire_next(&w, &f);) {
    if (f.number != 11) continue;
    OnnxAttr *a = &all[n->nattrs];
    if (!wire_want(&w, &f, 2, "function") || !attr_parse(m, wire_within(&m->s, &f), a, NULL, ONNX_DEPTH))
      return false;
    bool given = !a->name;
    for (int i = 0; i < n->nattrs && !given; i++)
      given = !strcmp(all[i].name, a->name);
    n->nattrs += !given;
  }
  return true;
}

/* Reads the names of a function's inputs or outputs as values of its body. */
static bool names_parse(TgOnnx *m, Wire w, uint64_t number, OnnxGraph *g, OnnxIO *io, bool made) {
  Field f;
  size_t k = 0;
  while (wire_next(&w, &f)) {
    if (f.number != number) continue;
    OnnxIO *x = &io[k++];
    *x = (OnnxIO){.name = "", .ndim = -1};
    if (!wire_want(&w, &f, 2, "function") || !(x->name = wire_text(m, &f))) return false;
    if (made ? !value_find(g, x->name, &x->value) : !value_new(m, g, x->name, "input", &x->value, NULL))
      return io_fail(&m->s, TG_ERR_VALUE, "output %.200s of a function: nothing makes it", x->name);
  }
  return !w.bad;
}

static OnnxGraph *body_parse(TgOnnx *m, const OnnxFunction *fn, const OnnxNode *n, int depth) {
  Wire w0 = wire_of(&m->s, fn->at, fn->n);
  Field f;
  size_t node = 0;
  OnnxGraph *g = doc_alloc(m->doc, sizeof *g);
  if (!g) return NULL;
  g->next = m->graphs;
  m->graphs = g;
  g->caller = n;
  g->opset = m->opset;
  if (!wire_count(w0, 7, &g->nnodes) || !wire_count(w0, 4, &g->nin) || !wire_count(w0, 5, &g->nout))
    return NULL;
  g->nodes = doc_alloc(m->doc, (g->nnodes + 1) * sizeof *g->nodes);
  g->in = doc_alloc(m->doc, (g->nin + 1) * sizeof *g->in);
  g->out = doc_alloc(m->doc, (g->nout + 1) * sizeof *g->out);
  if (!g->nodes || !g->in || !g->out || !names_parse(m, w0, 4, g, g->in, false)) return NULL;
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 9 &&
        (!wire_want(&w, &f, 2, "function") || !opset_parse(m, wire_within(&m->s, &f), &g->opset)))
      return NULL;
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 7 && (!wire_want(&w, &f, 2, "function") ||
                          !node_parse(m, wire_within(&m->s, &f), &g->nodes[node++], g, depth + 1)))
      return NULL;
  return names_parse(m, w0, 5, g, g->out, true) && nodes_known(m, g) ? g : NULL;
}

static bool text_is(const TgOnnx *m, const Field *f, const char *text) {
  return f->n == strlen(text) && !memcmp(m->s.p + f->at, text, f->n);
}

/* The function that a node calls, by the names in its bytes. NULL: there is none, or an error, which is in
 * the context. */
static OnnxFunction *function_named(TgOnnx *m, Wire w) {
  Field f, op = {0}, domain = {0}, overload = {0};
  while (wire_next(&w, &f)) {
    Field *to = f.number == 4 ? &op : f.number == 7 ? &domain : f.number == 8 ? &overload : NULL;
    if (to && !wire_want(&w, &f, 2, "node")) return NULL;
    if (to) *to = f;
  }
  for (size_t i = 0; i < m->nfunctions && !w.bad; i++) {
    OnnxFunction *fn = &m->functions[i];
    if (text_is(m, &op, fn->name) && text_is(m, &domain, fn->domain) && text_is(m, &overload, fn->overload))
      return fn;
  }
  return NULL;
}

/* Nodes are counted before they are made: if each of twenty functions calls the next one twice, there are
 * a million nodes. Depths are counted as in parsing, which refuses deeper nesting. */
static size_t function_nodes(TgOnnx *m, OnnxFunction *fn, int depth);

/* The number of nodes of a graph or a function, which are fields `number` of w, including those of their
 * graphs and calls. The result is at most one more than the limit. */
static size_t nodes_counted(TgOnnx *m, Wire w, uint64_t number, int opset, int depth) {
  size_t n = 0;
  Field f, attr, graph;
  while (n <= ONNX_NODES_MAX && wire_next(&w, &f)) {
    if (f.number != number || f.type != 2) continue;
    OnnxFunction *fn = function_named(m, wire_within(&m->s, &f));
    n++;
    if (fn && !onnx_op_find(fn->domain, fn->name, opset)) n += function_nodes(m, fn, depth);
    for (Wire node = wire_within(&m->s, &f); depth < ONNX_DEPTH && wire_next(&node, &attr);) {
      if (attr.number != 5 || attr.type != 2) continue;
      for (Wire in = wire_within(&m->s, &attr); wire_next(&in, &graph);)
        if (graph.number == 6 && graph.type == 2)
          n += nodes_counted(m, wire_within(&m->s, &graph), 1, opset, depth + 1);
    }
  }
  return n <= ONNX_NODES_MAX ? n : ONNX_NODES_MAX + 1;
}

static size_t function_nodes(TgOnnx *m, OnnxFunction *fn, int depth) {
  Field f;
  int opset = m->opset;
  if (fn->counted || depth >= ONNX_CALLS) return fn->nodes;
  fn->counted = true; /* a call of itself adds nothing here, and is refused later */
  Wire w0 = wire_of(&m->s, fn->at, fn->n);
  for (Wire w = w0; wire_next(&w, &f);)
    if (f.number == 9 && f.type == 2 && !opset_parse(m, wire_within(&m->s, &f), &opset)) return 0;
  return fn->nodes = nodes_counted(m, w0, 7, opset, depth + 1);
}

/* If a node calls one of the model's functions, parses the function's body for it. A supported operator
 * takes precedence over a function of the same name. */
static bool function_called(TgOnnx *m, Wire w, OnnxNode *n, int depth) {
  if (n->def || !m->nfunctions) return true;
  OnnxFunction *fn = function_named(m, w);
  if (!fn) return tg_error(m->ctx) == TG_OK;
  if (depth >= ONNX_CALLS)
    return io_fail(&m->s, TG_ERR_LIMIT, "function %.100s: calls within calls, more than %d deep", n->op,
                   ONNX_CALLS);
  if (!nodes_fit(m, function_nodes(m, fn, depth)) || tg_error(m->ctx)) return false;
  if (!defaults_taken(m, wire_of(&m->s, fn->at, fn->n), n) || !(n->body = body_parse(m, fn, n, depth)))
    return false;
  if ((size_t)n->nin <= n->body->nin && (size_t)n->nout <= n->body->nout) return true;
  return io_fail(&m->s, TG_ERR_VALUE,
                 "node %.120s: %d inputs and %d outputs, the function %.100s has %zu and %zu", n->label,
                 n->nin, n->nout, n->op, n->body->nin, n->body->nout);
}

bool onnx_parse(TgOnnx *m) {
  Wire w0 = wire_of(&m->s, 0, m->s.n);
  Field f, graph = {0};
  bool found = false, opsets = false;
  m->nvalues = 1; /* value 0 means left out */
  for (Wire w = w0; wire_next(&w, &f);) {
    if ((f.number == 7 || f.number == 8) && !wire_want(&w, &f, 2, "model")) return false;
    if (f.number == 8 && !opset_parse(m, wire_within(&m->s, &f), &m->opset)) return false;
    opsets = opsets || f.number == 8;
    if (f.number == 7) {
      graph = f;
      found = true;
    }
  }
  if (tg_error(m->ctx)) return false;
  if (!found) return io_fail(&m->s, TG_ERR_VALUE, "no ONNX model: it has no graph");
  if (!opsets) return io_fail(&m->s, TG_ERR_VALUE, "no ONNX model: it names no opset");
  if (!imports_parse(m, w0) || !functions_parse(m, w0)) return false;
  m->graph = graph_parse(m, wire_within(&m->s, &graph), NULL, 0);
  return m->graph && nodes_known(m, m->graph) && !tg_error(m->ctx);
}
