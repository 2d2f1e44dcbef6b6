/* loop_names.c: lists of opts in two numberings: that of a kernel's graph, whose ranges and arguments have
 * ids, and that of its shape, which the cost model uses. In: a list. Out: the same list in the other
 * numbering, its cost, or a line of text about its cost. */
#include "plan/cost.h"
#include <math.h>

static int64_t id_of(const KernelShape *c, int r) { return c->range[r]->arg.range.id; }

static Opt in_graph(const KernelShape *c, const Opt *o) {
  if (o->op != OPT_STAGE)
    return (Opt){o->op, id_of(c, (int)o->r), o->op == OPT_SWAP ? id_of(c, (int)o->n) : o->n};
  int loop;
  can_stage(c, (int)o->r, &loop);
  return (Opt){OPT_STAGE, c->access[o->r].slot, loop < 0 ? EVERY_READ : id_of(c, loop)};
}

/* The inverse of in_graph. Returns false if the model does not know the opt. */
static bool in_shape(const KernelShape *c, const Opt *o, Opt *out) {
  int r = -1, to = -1;
  *out = *o;
  if (o->op == OPT_STAGE) {
    for (int a = c->naccess - 1; a >= c->nstore; a--)
      if (c->access[a].slot == o->r && in_graph(c, &(Opt){OPT_STAGE, a, 0}).n == o->n) r = a;
    return (out->r = r) >= 0;
  }
  for (int i = 0; i < c->n; i++) {
    if (id_of(c, i) == o->r) r = i;
    if (id_of(c, i) == o->n) to = i;
  }
  out->r = r;
  if (o->op == OPT_SWAP) return r >= 0 && (out->n = to) >= 0;
  bool known =
      o->op == OPT_TILE || is_upcast(o->op) || o->op == OPT_VEC || o->op == OPT_UNROLL || o->op == OPT_GROUP;
  return known && r >= 0 && o->n >= 1;
}

bool list_named(const KernelShape *c, const Taken *t, const Cost *cost, int ncores, TgMem *mem, OptVec *out) {
  bool ok = true;
  for (int i = 0; ok && i < t->n; i++) {
    Opt o = t->opt[i];
    if (o.op != OPT_TILE || o.n < c->most[o.r]) ok = vec_push(mem, out, in_graph(c, &o));
  }
  if (ok && cost->thread >= 0) ok = vec_push(mem, out, ((Opt){OPT_THREAD, id_of(c, cost->thread), ncores}));
  return ok;
}

void cost_line(const KernelShape *c, const Taken *t, const Cost *cost, int ncores, TgMem *mem, Str *costs) {
  Str list;
  str_init(&list, mem);
  for (int i = 0; i < t->n; i++) {
    Opt o = in_graph(c, &t->opt[i]);
    opt_print(&list, &o);
  }
  if (cost->thread >= 0) {
    Opt o = {OPT_THREAD, id_of(c, cost->thread), ncores};
    opt_print(&list, &o);
  }
  str_printf(costs, "%12.1f  compute %.1f, into L1 %.1f L2 %.1f L3 %.1f, copies %.1f, stores %.1f  %s\n",
             cost->cycles / 1000, cost->compute / 1000, cost->traffic[0] / 1000, cost->traffic[1] / 1000,
             cost->traffic[2] / 1000, cost->copy / 1000, cost->stores / 1000, str_text(&list));
  str_free(&list);
}

void cost_given(const KernelShape *c, const OptVec *list, int ncores, TgMem *mem, Str *costs) {
  Taken t = {0};
  Cost cost;
  bool ok = true, threads = false;
  for (size_t i = 0; ok && i < list->len; i++) {
    bool thread = list->at[i].op == OPT_THREAD;
    threads |= thread;
    if (!thread) ok = t.n < MAX_TAKEN && in_shape(c, &list->at[i], &t.opt[t.n++]);
  }
  if (!threads) ncores = 1;
  if (ok && cost_of(c, &t, ncores, INFINITY, &cost)) cost_line(c, &t, &cost, ncores, mem, costs);
}

double cost_of_list(const KernelShape *c, const OptVec *list) {
  Taken t = {0};
  Cost cost;
  for (size_t i = 0; i < list->len; i++) {
    Opt o;
    if (t.n < MAX_TAKEN && in_shape(c, &list->at[i], &o)) t.opt[t.n++] = o;
  }
  return cost_of(c, &t, 1, INFINITY, &cost) ? cost.cycles : INFINITY;
}
