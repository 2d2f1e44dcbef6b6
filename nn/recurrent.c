/* recurrent.c: LSTM and GRU over a sequence, with several layers, both directions and dropout between layers.
 * In: (t, b, in). Out: the outputs of the last layer, (t, b, ways * hidden), and the last state of every
 * layer and direction ("way"). The products with the inputs are computed at once for all steps. A step then
 * is one product with the state and what follows it. */
#include "nn_private.h"
#include <stdio.h>

/* The part that LSTM and GRU share. */
typedef struct Rnn {
  const char *name;
  int gates;
  const TgRnnLayer (*ways)[2];
  TgRnnOptions o;
  int64_t in, hidden;
} Rnn;

/* ---- making the layers */
static bool options_read(TgContext *ctx, const char *name, const TgRnnOptions *given, TgRnnOptions *o) {
  if (NN_OPTIONS(ctx, name, TgRnnOptions, o, given)) return false;
  o->layers = TG_OPTION(*o, layers, 1);
  o->set = NULL;
  return true;
}

static bool ways_made(TgContext *ctx, const Rnn *r, TgRnnLayer (*ways)[2]) {
  int64_t rows = r->gates * r->hidden;
  if (!ctx || !nn_positive(ctx, r->name, r->in, r->hidden)) return false;
  if (r->hidden > INT32_MAX)
    return nn_refuse(ctx, TG_ERR_SHAPE, "%s: %lld hidden units", r->name, r->hidden, 0);
  if (r->o.layers < 1 || r->o.layers > TG_RNN_LAYERS)
    return nn_refuse(ctx, TG_ERR_LIMIT, "%s: %lld layers, not 1 to %lld", r->name, r->o.layers,
                     TG_RNN_LAYERS);
  if (!(r->o.dropout >= 0 && r->o.dropout <= 1))
    return nn_refuse(ctx, TG_ERR_VALUE, "%s: the dropout must be within 0 and 1", r->name, 0, 0);
  for (int k = 0; k < r->o.layers; k++)
    for (int way = 0; way < 1 + r->o.bidirectional; way++) {
      TgRnnLayer *l = &ways[k][way];
      int64_t in = k ? (1 + r->o.bidirectional) * r->hidden : r->in;
      l->weight_ih = nn_within(ctx, TG_SHAPE(rows, in), r->hidden);
      l->weight_hh = nn_within(ctx, TG_SHAPE(rows, r->hidden), r->hidden);
      if (r->o.plain) continue;
      l->bias_ih = nn_within(ctx, TG_SHAPE(rows), r->hidden);
      l->bias_hh = nn_within(ctx, TG_SHAPE(rows), r->hidden);
    }
  return true;
}

/* ---- a step: computes new states from the products with the input, which include the bias, and the old
 * state */
typedef struct State {
  TgTensor *h, *c; /* c: of LSTM only */
} State;

static bool lstm_step(const TgRnnLayer *l, TgTensor *from_x, State *s) {
  TgTensor *all = tg_add(from_x, tg_linear(s->h, l->weight_hh, l->bias_hh)), *gate[4];
  if (tg_chunk(all, -1, 4, gate, 4) != 4) return false;
  s->c = tg_add(tg_mul(tg_sigmoid(gate[1]), s->c), tg_mul(tg_sigmoid(gate[0]), tg_tanh(gate[2])));
  s->h = tg_mul(tg_sigmoid(gate[3]), tg_tanh(s->c));
  return s->h != NULL;
}

static bool gru_step(const TgRnnLayer *l, TgTensor *from_x, State *s) {
  TgTensor *x[3], *h[3];
  if (tg_chunk(from_x, -1, 3, x, 3) != 3) return false;
  if (tg_chunk(tg_linear(s->h, l->weight_hh, l->bias_hh), -1, 3, h, 3) != 3) return false;
  TgTensor *reset = tg_sigmoid(tg_add(x[0], h[0])), *keep = tg_sigmoid(tg_add(x[1], h[1]));
  TgTensor *fresh = tg_tanh(tg_add(x[2], tg_mul(reset, h[2])));
  s->h = tg_add(fresh, tg_mul(keep, tg_sub(s->h, fresh))); /* (1 - keep) fresh + keep h */
  return s->h != NULL;
}

/* ---- one way through the sequence. x (t, b, in); out[i]: output of step i, (b, hidden) */
static bool way_run(const Rnn *r, const TgRnnLayer *l, TgTensor *x, bool backwards, State *s,
                    TgTensor **out) {
  int64_t steps = tg_dim(x, 0);
  TgTensor *from_x = tg_linear(x, l->weight_ih, l->bias_ih);
  for (int64_t k = 0; k < steps; k++) {
    int64_t i = backwards ? steps - 1 - k : k;
    TgTensor *one = tg_select(from_x, 0, i);
    if (!(r->gates == 4 ? lstm_step(l, one, s) : gru_step(l, one, s))) return false;
    out[i] = s->h;
  }
  return true;
}

static State first_state(const Rnn *r, TgTensor *x, TgTensor *h, TgTensor *c, int at) {
  int64_t dims[] = {tg_size_of(x, 1), r->hidden};
  TgTensor *none = h ? NULL : tg_zeros(tg_context(x), 2, dims, .dtype = tg_dtype(x), .device = tg_device(x));
  return (State){h ? tg_select(h, 0, at) : none, r->gates == 3 ? NULL : c ? tg_select(c, 0, at) : none};
}

/* Runs all layers. last: the final states, layer by layer, forwards before backwards. */
static TgTensor *layers_run(const Rnn *r, TgTensor *x, TgTensor *h, TgTensor *c, State *last) {
  TgContext *ctx = tg_context(x);
  int64_t steps = tg_dim(x, 0);
  int ways = 1 + r->o.bidirectional;
  TgTensor **out = tg_alloc(ctx, (size_t)(2 * steps + 2) * sizeof *out);
  bool ok = out != NULL;
  for (int k = 0; ok && k < r->o.layers; k++) {
    if (k && r->o.dropout > 0) x = tg_dropout(x, r->o.dropout);
    TgTensor *side[2] = {NULL, NULL};
    for (int way = 0; ok && way < ways; way++) {
      int at = k * ways + way;
      last[at] = first_state(r, x, h, c, at);
      ok = last[at].h && way_run(r, &r->ways[k][way], x, way, &last[at], out) &&
           (side[way] = tg_stack(out, (int)steps, 0)) != NULL;
    }
    if (ok) x = ways == 2 ? tg_cat(side, 2, 2) : side[0];
    ok = ok && x;
  }
  tg_free(ctx, out);
  return ok ? x : NULL;
}

/* ---- arguments and results: with or without a batch, either axis first */
static bool state_fits(const Rnn *r, TgTensor *s, const char *which, TgTensor *x, bool batched) {
  int64_t want[] = {r->o.layers * (1 + r->o.bidirectional), tg_dim(x, 1), r->hidden};
  bool fits = tg_ndim(s) == 2 + batched && tg_dim(s, 0) == want[0] && tg_dim(s, -1) == want[2] &&
              (!batched || tg_size_of(s, 1) == tg_size_of(x, 1));
  if (fits) return true;
  char text[160];
  snprintf(text, sizeof text, "%s: %s is %.60s, not (%lld, %lld, %lld)", r->name, which, tg_describe(s),
           (long long)want[0], (long long)want[1], (long long)want[2]);
  tg_set_error(tg_context(s), TG_ERR_SHAPE, text);
  return false;
}

static TgTensor *states_joined(const State *s, int n, bool cell, bool batched) {
  TgTensor *all[2 * TG_RNN_LAYERS];
  for (int i = 0; i < n; i++)
    all[i] = cell ? s[i].c : s[i].h;
  TgTensor *t = tg_stack(all, n, 0);
  return batched ? t : tg_squeeze(t, 1);
}

static TgTensor *rnn_run(const Rnn *r, TgTensor *x, TgTensor *h, TgTensor *c, TgTensor **new_h,
                         TgTensor **new_c) {
  State last[2 * TG_RNN_LAYERS];
  if (new_h) *new_h = NULL;
  if (new_c) *new_c = NULL;
  if (!x || !r->ways[0][0].weight_hh) return NULL;
  TgContext *ctx = tg_context(x);
  bool batched = tg_ndim(x) == 3, swapped = batched && r->o.batch_first;
  if (tg_ndim(x) < 2 || tg_ndim(x) > 3 || tg_dim(x, -1) != r->in)
    return nn_refuse(ctx, TG_ERR_SHAPE, "%s: x has %lld axes, or its last is not %lld", r->name, tg_ndim(x),
                     r->in),
           NULL;
  if (r->gates == 4 && !h != !c)
    return nn_refuse(ctx, TG_ERR_VALUE, "%s: one of h and c is NULL", r->name, 0, 0), NULL;
  x = swapped ? tg_transpose(x, 0, 1) : batched ? x : tg_unsqueeze(x, 1);
  if (!x) return NULL;
  if (tg_is_symbolic(x, 0))
    return nn_refuse(ctx, TG_ERR_SHAPE, "%s: a number of steps is needed, not a symbolic size", r->name, 0,
                     0),
           NULL;
  if (tg_dim(x, 0) < 1)
    return nn_refuse(ctx, TG_ERR_SHAPE, "%s: a sequence of %lld steps", r->name, tg_dim(x, 0), 0), NULL;
  if ((h && !state_fits(r, h, "h", x, batched)) || (c && !state_fits(r, c, "c", x, batched))) return NULL;
  if (!batched) {
    h = h ? tg_unsqueeze(h, 1) : NULL;
    c = c ? tg_unsqueeze(c, 1) : NULL;
  }
  int n = r->o.layers * (1 + r->o.bidirectional);
  TgTensor *y = layers_run(r, x, h, c, last);
  if (!y) return NULL;
  if (new_h && !(*new_h = states_joined(last, n, false, batched))) return NULL;
  if (new_c && !(*new_c = states_joined(last, n, true, batched))) return NULL;
  return swapped ? tg_transpose(y, 0, 1) : batched ? y : tg_squeeze(y, 1);
}

static int rnn_describe(const Rnn *r, char *text, size_t cap) {
  int n = 0;
  nn_text(text, cap, &n, "%lld, %lld", (long long)r->in, (long long)r->hidden);
  if (r->o.layers != 1) nn_text(text, cap, &n, ", num_layers=%d", r->o.layers);
  if (r->o.plain) nn_text(text, cap, &n, ", bias=False");
  if (r->o.batch_first) nn_text(text, cap, &n, ", batch_first=True");
  if (r->o.dropout > 0) nn_text(text, cap, &n, ", dropout=%g", r->o.dropout);
  if (r->o.bidirectional) nn_text(text, cap, &n, ", bidirectional=True");
  return n;
}

/* ---- LSTM and GRU */
#define LSTM_OF(l)                                                                                           \
  (&(const Rnn){"lstm", 4, (const TgRnnLayer(*)[2])(l)->ways, (l)->options, (l)->in, (l)->hidden})
#define GRU_OF(l)                                                                                            \
  (&(const Rnn){"gru", 3, (const TgRnnLayer(*)[2])(l)->ways, (l)->options, (l)->in, (l)->hidden})

TgLSTM tg_lstm_new_opt(TgContext *ctx, int64_t in, int64_t hidden, const TgRnnOptions *o) {
  TgLSTM l = {.in = in, .hidden = hidden};
  if (options_read(ctx, "lstm_new", o, &l.options)) ways_made(ctx, LSTM_OF(&l), l.ways);
  return l;
}

TgTensor *tg_lstm_run(const TgLSTM *l, TgTensor *x, TgTensor *h, TgTensor *c, TgTensor **new_h,
                      TgTensor **new_c) {
  if (!l) return tg_set_error(tg_context(x), TG_ERR_VALUE, "LSTM: the layer is NULL"), NULL;
  bool named = nn_name_begin(x, "LSTM");
  TgTensor *y = rnn_run(LSTM_OF(l), x, h, c, new_h, new_c);
  return nn_name_end(x, named, y);
}

TgGRU tg_gru_new_opt(TgContext *ctx, int64_t in, int64_t hidden, const TgRnnOptions *o) {
  TgGRU l = {.in = in, .hidden = hidden};
  if (options_read(ctx, "gru_new", o, &l.options)) ways_made(ctx, GRU_OF(&l), l.ways);
  return l;
}

TgTensor *tg_gru_run(const TgGRU *l, TgTensor *x, TgTensor *h, TgTensor **new_h) {
  if (!l) return tg_set_error(tg_context(x), TG_ERR_VALUE, "GRU: the layer is NULL"), NULL;
  bool named = nn_name_begin(x, "GRU");
  TgTensor *y = rnn_run(GRU_OF(l), x, h, NULL, new_h, NULL);
  return nn_name_end(x, named, y);
}

static int lstm_describe(const void *layer, char *text, size_t cap) {
  const TgLSTM *l = layer;
  return rnn_describe(LSTM_OF(l), text, cap);
}

static int gru_describe(const void *layer, char *text, size_t cap) {
  const TgGRU *l = layer;
  return rnn_describe(GRU_OF(l), text, cap);
}

/* The names of all possible tensors; those that a network lacks are NULL. */
/* clang-format off */
#define WAY(k, way, end) \
  {"weight_ih_l" #k end, TG_FIELD_PARAMETER, offsetof(TgLSTM, ways[k][way].weight_ih), NULL, 0}, \
  {"weight_hh_l" #k end, TG_FIELD_PARAMETER, offsetof(TgLSTM, ways[k][way].weight_hh), NULL, 0}, \
  {"bias_ih_l" #k end, TG_FIELD_PARAMETER, offsetof(TgLSTM, ways[k][way].bias_ih), NULL, 0}, \
  {"bias_hh_l" #k end, TG_FIELD_PARAMETER, offsetof(TgLSTM, ways[k][way].bias_hh), NULL, 0}
#define WAYS(k) WAY(k, 0, ""), WAY(k, 1, "_reverse")
static const TgField fields[] = {WAYS(0), WAYS(1), WAYS(2), WAYS(3), WAYS(4), WAYS(5), WAYS(6), WAYS(7)};
/* clang-format on */
_Static_assert(offsetof(TgGRU, ways) == offsetof(TgLSTM, ways), "both have the fields of one table");
LAYER_OF(TgLSTM, lstm, "LSTM", fields)
LAYER_OF(TgGRU, gru, "GRU", fields)
