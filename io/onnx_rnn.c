/* onnx_rnn.c: LSTM, GRU and RNN. In: an OnnxCall. Out: the outputs of a step for each element of the
 * sequence, in order. All inputs are multiplied by their weights in one product before the steps. Both
 * directions use the same loop, which one of them runs backwards. A sequence that ends earlier keeps its
 * state from there on, and its further outputs are 0. */
#include "onnx_private.h"

typedef TgTensor *(*Activation)(TgTensor *x, double alpha, double beta);

static TgTensor *f_sigmoid(TgTensor *x, double a, double b) { return (void)a, (void)b, tg_sigmoid(x); }

static TgTensor *f_tanh(TgTensor *x, double a, double b) { return (void)a, (void)b, tg_tanh(x); }

static TgTensor *f_relu(TgTensor *x, double a, double b) { return (void)a, (void)b, tg_relu(x); }

static TgTensor *f_affine(TgTensor *x, double a, double b) { return tg_add_scalar(tg_mul_scalar(x, a), b); }

static TgTensor *f_leaky(TgTensor *x, double a, double b) { return (void)b, tg_leaky_relu(x, a); }

static TgTensor *f_elu(TgTensor *x, double a, double b) { return (void)b, tg_elu(x, a); }

static TgTensor *f_softsign(TgTensor *x, double a, double b) { return (void)a, (void)b, tg_softsign(x); }

static TgTensor *f_softplus(TgTensor *x, double a, double b) { return (void)a, (void)b, tg_softplus(x); }

static TgTensor *f_hard_sigmoid(TgTensor *x, double a, double b) {
  return tg_clamp(tg_add_scalar(tg_mul_scalar(x, a), b), 0, 1);
}

static TgTensor *f_scaled_tanh(TgTensor *x, double a, double b) {
  return tg_mul_scalar(tg_tanh(tg_mul_scalar(x, b)), a);
}

static TgTensor *f_thresholded(TgTensor *x, double a, double b) {
  return (void)b, tg_where(tg_gt_scalar(x, a), x, tg_zeros_like(x));
}

static const struct {
  const char *name;
  Activation f;
  double alpha, beta;
  int numbers; /* which of alpha and beta it takes: 0 none, 1 alpha, 2 both */
} known[] = {{"Sigmoid", f_sigmoid, 0, 0, 0},
             {"Tanh", f_tanh, 0, 0, 0},
             {"Relu", f_relu, 0, 0, 0},
             {"Affine", f_affine, 1, 0, 2},
             {"LeakyRelu", f_leaky, 0.01, 0, 1},
             {"Elu", f_elu, 1, 0, 1},
             {"Softsign", f_softsign, 0, 0, 0},
             {"Softplus", f_softplus, 0, 0, 0},
             {"HardSigmoid", f_hard_sigmoid, 0.2, 0.5, 2},
             {"ScaledTanh", f_scaled_tanh, 1, 1, 2},
             {"ThresholdedRelu", f_thresholded, 1, 0, 1}};

typedef struct Act {
  Activation f;
  double alpha, beta;
  int numbers;
} Act;

typedef enum Kind { RNN, GRU, LSTM } Kind;

static const struct {
  int gates, acts;
  const char *act[3];
} kinds[] = {{1, 1, {"Tanh"}}, {3, 2, {"Sigmoid", "Tanh"}}, {4, 3, {"Sigmoid", "Tanh", "Tanh"}}};

typedef struct Cell {
  OnnxCall *c;
  Kind kind;
  int64_t seq, batch, hidden;
  int directions;
  Act act[6]; /* the activations of one direction, then those of the other */
  double clip;
  bool batch_first, before_reset, coupled;
  TgTensor *x; /* (seq, batch, in) */
  TgTensor *lens;
} Cell;

static bool act_named(const char *name, Act *out) {
  for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
    if (!strcmp(known[i].name, name)) {
      *out = (Act){known[i].f, known[i].alpha, known[i].beta, known[i].numbers};
      return true;
    }
  return false;
}

/* The lists of alpha and beta have one number for each function that takes it, in the order of the
 * functions. */
static bool activations(Cell *k) {
  OnnxCall *c = k->c;
  const OnnxAttr *names = call_attr(c, "activations", ONNX_STRINGS);
  const OnnxAttr *alpha = call_attr(c, "activation_alpha", ONNX_FLOATS);
  const OnnxAttr *beta = call_attr(c, "activation_beta", ONNX_FLOATS);
  int each = kinds[k->kind].acts, n = each * k->directions;
  size_t alphas = 0, betas = 0;
  if (names && (int)names->nstrings != n)
    return call_fail(c, TG_ERR_VALUE, "%zu activations, not %d", names->nstrings, n), false;
  for (int i = 0; i < n; i++) {
    const char *name = names ? names->strings[i] : kinds[k->kind].act[i % each];
    if (!act_named(name, &k->act[i]))
      return call_fail(c, TG_ERR_VALUE, "activation %.40s", name ? name : ""), false;
    Act *a = &k->act[i];
    if (a->numbers > 0 && alpha && alphas < alpha->nfloats) a->alpha = alpha->floats[alphas++];
    if (a->numbers > 1 && beta && betas < beta->nfloats) a->beta = beta->floats[betas++];
  }
  return true;
}

static bool attributes(Cell *k) {
  OnnxCall *c = k->c;
  const char *way = attr_s(c, "direction", "forward");
  bool both = !strcmp(way, "bidirectional");
  k->directions = both ? 2 : 1;
  if (!both && strcmp(way, "forward") && strcmp(way, "reverse"))
    return call_fail(c, TG_ERR_VALUE, "direction %.40s", way), false;
  k->clip = attr_f(c, "clip", 0);
  k->batch_first = c->opset >= 14 && attr_i(c, "layout", 0);
  k->before_reset = k->kind == GRU && attr_i(c, "linear_before_reset", 0);
  k->coupled = k->kind == LSTM && attr_i(c, "input_forget", 0);
  TgTensor *x = c->in[0], *w = c->in[1], *r = c->in[2];
  int64_t gates = kinds[k->kind].gates;
  if (tg_ndim(x) != 3 || tg_ndim(w) != 3 || tg_ndim(r) != 3)
    return call_fail(c, TG_ERR_SHAPE, "the input and the weights have three axes"), false;
  k->x = k->batch_first ? tg_transpose(x, 0, 1) : x;
  k->seq = tg_dim(k->x, 0);
  k->batch = tg_size_of(k->x, 1);
  if (tg_is_symbolic(k->x, 0)) return call_fail(c, TG_ERR_SHAPE, "the number of steps is symbolic"), false;
  k->hidden = tg_dim(r, 2);
  if (attr_i(c, "hidden_size", k->hidden) != k->hidden || tg_dim(w, 0) != k->directions ||
      tg_dim(r, 0) != k->directions || tg_dim(w, 1) != gates * k->hidden ||
      tg_dim(r, 1) != gates * k->hidden || tg_dim(w, 2) != tg_dim(x, 2))
    return call_fail(c, TG_ERR_SHAPE, "weights %s and %s do not fit", "W", "R"), false;
  if (c->in[4]) k->lens = tg_reshape(c->in[4], TG_SHAPE(-1, 1));
  return activations(k);
}

static TgTensor *act(const Cell *k, int direction, int which, TgTensor *x) {
  const Act *a = &k->act[direction * kinds[k->kind].acts + which];
  if (k->clip > 0) x = tg_clamp(x, -k->clip, k->clip);
  return a->f(x, a->alpha, a->beta);
}

/* The state before the first step, (batch, hidden). */
static TgTensor *initial(const Cell *k, int input, int direction) {
  TgTensor *t = input < k->c->nin ? k->c->in[input] : NULL;
  if (!t) return tg_zeros(k->c->ctx, TG_SHAPE(k->batch, k->hidden), .dtype = tg_dtype(k->x));
  if (tg_ndim(t) != 3) return call_fail(k->c, TG_ERR_SHAPE, "an initial state of %d axes", tg_ndim(t));
  return tg_select(t, k->batch_first ? 1 : 0, direction);
}

static TgTensor *gate(const Cell *k, TgTensor *all, int i) {
  return tg_slice(all, -1, i * k->hidden, (i + 1) * k->hidden);
}

/* One step. px: the input's part of the gates, including both biases. Only with GRU's linear_before_reset,
 * the hidden bias of the candidate is apart: rb. */
static TgTensor *step(const Cell *k, int d, TgTensor *px, TgTensor *r, TgTensor *rb, TgTensor *h,
                      TgTensor **cell) {
  TgTensor *rt = tg_transpose(r, 0, 1), *p = k->kind == LSTM && k->c->nin > 7 ? k->c->in[7] : NULL;
  if (k->kind == RNN) return act(k, d, 0, tg_add(px, tg_matmul(h, rt)));
  if (k->kind == GRU) {
    int64_t n = k->hidden;
    TgTensor *zr = tg_add(tg_slice(px, -1, 0, 2 * n), tg_matmul(h, tg_slice(rt, 1, 0, 2 * n)));
    TgTensor *z = act(k, d, 0, tg_slice(zr, -1, 0, n)), *reset = act(k, d, 0, tg_slice(zr, -1, n, 2 * n));
    TgTensor *rh = tg_slice(rt, 1, 2 * n, 3 * n), *inner;
    if (k->before_reset) {
      inner = tg_matmul(h, rh);
      inner = tg_mul(reset, rb ? tg_add(inner, rb) : inner);
    } else
      inner = tg_matmul(tg_mul(reset, h), rh);
    TgTensor *fresh = act(k, d, 1, tg_add(gate(k, px, 2), inner));
    return tg_add(fresh, tg_mul(z, tg_sub(h, fresh)));
  }
  TgTensor *all = tg_add(px, tg_matmul(h, rt)), *peep[3] = {NULL};
  for (int i = 0; p && i < 3; i++)
    peep[i] = tg_slice(tg_select(p, 0, d), 0, i * k->hidden, (i + 1) * k->hidden);
  TgTensor *in = gate(k, all, 0), *out = gate(k, all, 1), *forget = gate(k, all, 2);
  if (p) {
    in = tg_add(in, tg_mul(peep[0], *cell));
    forget = tg_add(forget, tg_mul(peep[2], *cell));
  }
  in = act(k, d, 0, in);
  forget = k->coupled ? tg_rsub_scalar(in, 1) : act(k, d, 0, forget);
  *cell = tg_add(tg_mul(forget, *cell), tg_mul(in, act(k, d, 1, gate(k, all, 3))));
  if (p) out = tg_add(out, tg_mul(peep[1], *cell));
  const Act *last = &k->act[d * 3 + 2];
  return tg_mul(act(k, d, 0, out), last->f(*cell, last->alpha, last->beta));
}

/* Runs one direction: computes y[t] (batch, hidden), the last state and the last cell. */
static bool direction(Cell *k, int d, bool backwards, TgTensor **y, TgTensor **last, TgTensor **last_cell) {
  OnnxCall *c = k->c;
  int64_t gates = kinds[k->kind].gates * k->hidden;
  TgTensor *b = c->in[3] ? tg_select(c->in[3], 0, d) : NULL, *rb = NULL;
  TgTensor *h = initial(k, 5, d), *cell = k->kind == LSTM ? initial(k, 6, d) : NULL;
  TgTensor *all = tg_matmul(k->x, tg_transpose(tg_select(c->in[1], 0, d), 0, 1));
  if (b) {
    TgTensor *hidden = tg_slice(b, 0, gates, 2 * gates);
    all = tg_add(all, tg_slice(b, 0, 0, gates));
    if (k->before_reset) {
      rb = tg_slice(hidden, 0, 2 * k->hidden, gates);
      hidden = tg_pad(tg_slice(hidden, 0, 0, 2 * k->hidden), &(int64_t){0}, &(int64_t){k->hidden});
    }
    all = tg_add(all, hidden);
  }
  for (int64_t i = 0; i < k->seq; i++) {
    int64_t t = backwards ? k->seq - 1 - i : i;
    TgTensor *next_cell = cell,
             *next = step(k, d, tg_select(all, 0, t), tg_select(c->in[2], 0, d), rb, h, &next_cell);
    if (k->lens) {
      TgTensor *on = tg_gt_scalar(k->lens, (double)t);
      y[t] = tg_where(on, next, tg_zeros_like(next));
      next = tg_where(on, next, h);
      if (cell) next_cell = tg_where(on, next_cell, cell);
    }
    h = tg_contiguous(next);
    if (!k->lens) y[t] = h;
    cell = cell ? tg_contiguous(next_cell) : NULL;
    if (!h) return false;
  }
  *last = h;
  *last_cell = cell;
  return true;
}

static TgTensor *run(OnnxCall *c, Kind kind) {
  Cell k = {.c = c, .kind = kind};
  if (!attributes(&k)) return NULL;
  bool reverse = !strcmp(attr_s(c, "direction", "forward"), "reverse");
  TgTensor **y = tg_alloc(c->ctx, ((size_t)k.seq + 1) * sizeof *y), *way[2], *h[2], *cells[2];
  bool ok = y != NULL && (k.seq > 0 || call_fail(c, TG_ERR_SHAPE, "an empty sequence"));
  for (int d = 0; ok && d < k.directions; d++) {
    ok = direction(&k, d, reverse || d == 1, y, &h[d], &cells[d]);
    if (ok) ok = (way[d] = tg_stack(y, (int)k.seq, 0)) != NULL;
  }
  tg_free(c->ctx, y);
  if (!ok) return NULL;
  int at = k.batch_first ? 1 : 0;                 /* the axis of the directions, before or after the batch */
  TgTensor *all = tg_stack(way, k.directions, 1); /* (seq, directions, batch, hidden) */
  if (k.batch_first) all = tg_permute(all, 4, (const int64_t[]){2, 0, 1, 3});
  if (c->nout > 1) c->out[1] = tg_stack(h, k.directions, at);
  if (c->nout > 2 && kind == LSTM) c->out[2] = tg_stack(cells, k.directions, at);
  return all;
}

static TgTensor *op_lstm(OnnxCall *c) { return run(c, LSTM); }

static TgTensor *op_gru(OnnxCall *c) { return run(c, GRU); }

static TgTensor *op_rnn(OnnxCall *c) { return run(c, RNN); }

const OnnxOp onnx_ops_rnn[] = {ONNX_SIZED("LSTM", 7, 3, 8, op_lstm),
                               ONNX_SIZED("GRU", 7, 3, 6, op_gru),
                               ONNX_SIZED("RNN", 7, 3, 6, op_rnn),
                               {0}};
