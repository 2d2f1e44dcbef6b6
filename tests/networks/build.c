/* build.c: a random network as a whole: leaves, some operations, a loss of all that nothing else reads, its
 * gradients, and for every third program the gradients of those. */
#include "networks.h"
#include <stdio.h>
#include <string.h>

enum { LEAVES = 4, STEPS = 14, TRIES = 60 };

static int rows_of(const NetRow *table) {
  int n = 0;
  while (table[n].name)
    n++;
  return n;
}

static bool step(Net *p) {
  static const NetRow *const tables[] = {net_math,   net_math,   net_math,  net_math,   net_move,
                                         net_layers, net_layers, net_index, net_layers, net_math};
  const NetRow *table = tables[net_below(p, 10)], *row = &table[net_below(p, rows_of(table))];
  p->row = row->name;
  int before = p->n;
  row->make(p, row);
  if (p->n > before && !p->record->noted && p->record->nsteps < 32)
    p->record->rows[p->record->nsteps++] = p->row;
  return p->n > before;
}

static void first_leaf(Net *p) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 2, 3, 4};
  int n = net_below(p, 12) / 2;
  int64_t d[NET_RANK], all = 1;
  for (int i = 0; i < n; i++) {
    d[i] = sizes[net_below(p, 10)];
    if (net_chance(p, 60)) d[i] = 0;
    while (all * d[i] > 400)
      d[i] /= 2;
    all *= d[i] ? d[i] : 1;
  }
  net_fresh(p, n, d);
}

/* Numbers for a sum in which no element is left out: ((7 k + 3) mod 17 - 8) / 8 */
static TgTensor *weights(Net *p, TgTensor *t, TgDType wide) {
  TgTensor *k = tg_arange(p->ctx, 0, (double)tg_numel(t), .dtype = TG_I32);
  TgTensor *w = tg_sub_scalar(tg_mod_scalar(tg_add_scalar(tg_mul_scalar(k, 7), 3), 17), 8);
  return tg_reshape(tg_div_scalar(tg_cast(w, wide), 8), tg_ndim(t), tg_shape(t));
}

/* The sum of w (y + y^2 / 4) */
static TgTensor *weighed(Net *p, TgTensor *y, TgDType wide) {
  TgTensor *v = tg_cast(y, wide);
  return tg_sum(tg_mul(weights(p, y, wide), tg_add(v, tg_mul_scalar(tg_square(v), 0.25))));
}

static void output(NetOut *out, int *n, TgTensor *t, TgDType dtype, const char *kind, const char *of) {
  if (*n == NET_OUTS) return;
  out[*n] = (NetOut){.t = t, .dtype = dtype};
  snprintf(out[*n].what, sizeof out->what, "%s %s", kind, of);
  ++*n;
}

static void note_outputs(Net *p, const bool *term, const int *value, int nvalues, const NetOut *out,
                         int nout) {
  NetText *text = &p->record->python;
  net_say(text, " return [");
  for (int i = 0; i < nvalues; i++)
    net_say(text, "n%d,", value[i]);
  net_say(text, "], [");
  for (int i = 0; i < p->n; i++)
    if (term[i]) net_say(text, "n%d,", i);
  net_say(text, "], [");
  for (int i = 0; i < p->nleaves; i++)
    net_say(text, "l%d,", p->leaf_node[i]);
  net_say(text, "], [");
  for (int i = 0; i < nout; i++)
    net_say(text, "(%s,'%s'),", net_sizes(tg_ndim(out[i].t), tg_shape(out[i].t)),
            tg_dtype_name(out[i].dtype));
  net_say(text, "]\n");
}

static bool failed(Net *p, const char *where) {
  if (!p->fault[0]) snprintf(p->fault, sizeof p->fault, "%s: %s", where, tg_errmsg(p->ctx));
  return false;
}

bool net_build(Net *p, NetOut *out, int *nout) {
  NetRecord *r = p->record;
  bool term[NET_NODES] = {false}, all = r->all;
  int value[NET_NODES], nvalues = 0, terms = 0;
  p->rng = r->number * 0x632be59bd9b4e019u + 77, p->theme = net_theme(r->number);
  *nout = 0;
  for (int i = net_between(p, 1, LEAVES); i > 0; i--)
    first_leaf(p);
  int steps = net_between(p, 3, STEPS);
  for (int tries = 0; steps > 0 && tries < TRIES && !p->fault[0]; tries++)
    steps -= step(p);
  if (p->fault[0] || tg_error(p->ctx)) return failed(p, p->row);
  TgDType wide = net_wants_f64(r->number) || p->exact ? TG_F64 : TG_F32,
          own = net_wants_f64(r->number) ? TG_F64 : TG_F32;
  TgTensor *loss = tg_full(p->ctx, TG_SCALAR, 0, .dtype = wide);
  for (int i = p->n - 1; i >= 0; i--) {
    NetNode *x = &p->node[i];
    bool plain = x->most < NET_INFINITE;
    if (net_is_float(x) && plain && (!x->read || terms == 0) && terms < 12)
      term[i] = true, terms++, loss = tg_add(loss, weighed(p, x->t, wide));
    if (all || i == p->n - 1 || (nvalues < 4 && net_chance(p, 6))) value[nvalues++] = i;
  }
  for (int i = 0; i < nvalues; i++)
    output(out, nout, p->node[value[i]].t, p->node[value[i]].dtype, "value", p->node[value[i]].name);
  output(out, nout, loss, own, "the", "loss");
  TgTensor *g[NET_LEAVES], *h[NET_LEAVES];
  if (p->nleaves && tg_gradient(loss, p->leaf, p->nleaves, g)) return failed(p, "gradient");
  TgTensor *slope = tg_full(p->ctx, TG_SCALAR, 0, .dtype = wide);
  char name[12];
  for (int i = 0; i < p->nleaves; i++) {
    snprintf(name, sizeof name, "l%d", p->leaf_node[i]);
    output(out, nout, g[i], r->dtype[p->leaf_node[i]], "gradient", name);
    slope = tg_add(slope, weighed(p, g[i], wide));
  }
  r->second = p->nleaves && (r->number / 16) % 3 == 0;
  if (r->second) {
    if (tg_gradient(slope, p->leaf, p->nleaves, h)) return failed(p, "second gradient");
    for (int i = 0; i < p->nleaves; i++) {
      snprintf(name, sizeof name, "l%d", p->leaf_node[i]);
      output(out, nout, h[i], r->dtype[p->leaf_node[i]], "second", name);
    }
  }
  if (!r->noted) note_outputs(p, term, value, nvalues, out, *nout);
  r->noted = true;
  return !tg_error(p->ctx) || failed(p, "the loss");
}
