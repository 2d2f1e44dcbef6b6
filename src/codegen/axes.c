/* axes.c: the axes of memory behind a flat offset. In: an INDEX of a PARAM at one offset, which is a sum
 * of loops times strides. Out: the same INDEX with one index for each axis that the strides tell apart. A
 * reshape between two kernels leaves offsets like c*256 + (y+p)*16 + (x+q) - 17. Strides alone do not tell
 * y+p from x+q, because their ranges overlap, but the gate does: it implies 0 <= x+q-1 < 16. A copy of a
 * tile (stage.c) needs the axes, and so does the estimate of what a tile touches (cost.c). */
#include "codegen/nest.h"
#include <string.h>

/* A sum of terms times[i] * of[i] and a constant. A term is a loop or any other expression that is no sum. */
typedef struct Sum {
  int n;
  int64_t add, times[MAX_AXES];
  UOp *of[MAX_AXES];
} Sum;

/* Terms that form one index: the terms of a gated axis, or a single term. step: elements of memory for one
 * step of the group. Where the gate holds, values run from `from` up to, but not including, `to`. */
typedef struct Group {
  Sum sum;
  int64_t step, from, to;
  bool gated;
} Group;

/* unit: elements of memory for one step of the axis. span: how many values its index takes. */
typedef struct Axis {
  UOp *at; /* the index minus its least value */
  int64_t unit, span;
  bool gated;
} Axis;

typedef struct Split {
  Kernel *k;
  Sum offset;
  int ngroup, naxis;
  Group group[2 * MAX_AXES];
  Axis axis[MAX_AXES];
  int64_t rest; /* what is left of the constant when every group begins at its least value */
  bool used[MAX_AXES];
} Split;

static bool sum_add(Sum *s, UOp *e, int64_t times) {
  if (is_const(e)) {
    s->add += e->arg.v.i * times;
    return true;
  }
  if (e->op == OPS_ADD) return sum_add(s, e->src[0], times) && sum_add(s, e->src[1], times);
  if (e->op == OPS_MUL && is_const(e->src[1])) return sum_add(s, e->src[0], times * e->src[1]->arg.v.i);
  int i = 0;
  while (i < s->n && s->of[i] != e)
    i++;
  if (i == MAX_AXES || e->vmin == INT64_MIN || e->vmax == INT64_MAX) return false;
  if (i == s->n) {
    s->of[i] = e;
    s->times[s->n++] = 0;
  }
  s->times[i] += times;
  return true;
}

static int64_t sum_least(const Sum *s) {
  int64_t v = 0;
  for (int i = 0; i < s->n; i++)
    v += s->times[i] * (s->times[i] > 0 ? s->of[i]->vmin : s->of[i]->vmax);
  return v;
}

static int64_t sum_most(const Sum *s) {
  int64_t v = 0;
  for (int i = 0; i < s->n; i++)
    v += s->times[i] * (s->times[i] > 0 ? s->of[i]->vmax : s->of[i]->vmin);
  return v;
}

static bool same_terms(const Sum *a, const Sum *b) {
  bool same = a->n == b->n;
  for (int i = 0; same && i < a->n; i++)
    same = a->of[i] == b->of[i] && a->times[i] == b->times[i];
  return same;
}

/* If all terms of `part` are also in the offset, multiplied by one common step, returns that step, else 0. */
static int64_t step_in(const Sum *part, const Sum *offset) {
  int64_t step = 0;
  for (int i = 0; i < part->n; i++) {
    int at = 0;
    while (at < offset->n && offset->of[at] != part->of[i])
      at++;
    if (at == offset->n || !part->times[i] || offset->times[at] % part->times[i]) return 0;
    int64_t by = offset->times[at] / part->times[i];
    if (by <= 0 || (step && by != step)) return 0;
    step = by;
  }
  return step;
}

/* Narrows a group by `less`, a comparison with a constant. holds: whether the comparison is true. */
static void bound(Split *p, const UOp *less, bool holds) {
  bool below = is_const(less->src[1]);
  UOp *e = less->src[!below], *c = less->src[below];
  Sum sum;
  sum.n = 0;
  sum.add = 0;
  if (!is_const(c) || e->dtype != DT_INDEX || !sum_add(&sum, e, 1) || !sum.n) return;
  int64_t at = c->arg.v.i - sum.add + !below;
  sum.add = 0;
  int g = 0;
  while (g < p->ngroup && !same_terms(&p->group[g].sum, &sum))
    g++;
  if (g == MAX_AXES) return;
  if (g == p->ngroup) p->group[p->ngroup++] = (Group){sum, 0, sum_least(&sum), sum_most(&sum) + 1, true};
  if (below == holds)
    p->group[g].to = TG_MIN(p->group[g].to, at);
  else
    p->group[g].from = TG_MAX(p->group[g].from, at);
}

static void bounds_of(Split *p, UOp *gate) {
  UOp *clause[MOST_CLAUSES];
  int n = gate ? gate_clauses(gate, clause) : 0;
  for (int i = 0; i < n; i++) {
    bool holds;
    const UOp *less = clause_of(clause[i], &holds);
    if (less->op == OPS_CMPLT) bound(p, less, holds);
  }
}

/* Keeps the gated groups that occur in the offset, and adds one group for each term that is in none of
 * them. */
static bool groups_of(Split *p) {
  int n = 0;
  for (int g = 0; g < p->ngroup; g++) {
    Group *x = &p->group[g];
    x->step = step_in(&x->sum, &p->offset);
    bool taken = x->step == 0 || x->to <= x->from;
    for (int t = 0; !taken && t < p->offset.n; t++)
      for (int i = 0; i < x->sum.n; i++)
        taken |= p->offset.of[t] == x->sum.of[i] && p->used[t];
    if (taken) continue;
    for (int t = 0; t < p->offset.n; t++)
      for (int i = 0; i < x->sum.n; i++)
        p->used[t] |= p->offset.of[t] == x->sum.of[i];
    p->group[n++] = *x;
  }
  p->ngroup = n;
  for (int t = 0; t < p->offset.n; t++) {
    UOp *of = p->offset.of[t];
    int64_t times = p->offset.times[t];
    if (p->used[t] || !times) continue;
    if (times < 0) return false;
    Group *x = &p->group[p->ngroup++];
    x->sum.n = 1;
    x->sum.add = 0;
    x->sum.times[0] = 1;
    x->sum.of[0] = of;
    x->step = times;
    x->from = of->vmin;
    x->to = of->vmax + 1;
    x->gated = false;
  }
  return p->ngroup > 1;
}

static void sort_by_step(Split *p) {
  for (int i = 1; i < p->ngroup; i++)
    for (int k = i; k > 0 && p->group[k].step < p->group[k - 1].step; k--) {
      Group t = p->group[k];
      p->group[k] = p->group[k - 1];
      p->group[k - 1] = t;
    }
}

/* times * (the group's value - its least value). */
static UOp *group_value(Kernel *k, const Group *g, int64_t times) {
  UOp *v = num(k, -g->from * times);
  for (int i = 0; v && i < g->sum.n; i++) {
    UOp *term = uop_alu2(k->st, OPS_MUL, g->sum.of[i], num(k, g->sum.times[i] * times));
    v = term ? uop_alu2(k->st, OPS_ADD, v, term) : NULL;
  }
  return v;
}

/* Makes the axes, the innermost first: a group whose step reaches past everything inside it begins a new
 * axis. */
static bool axes_of(Split *p) {
  Kernel *k = p->k;
  p->rest = p->offset.add;
  if (p->group[0].step > 1) p->axis[p->naxis++] = (Axis){num(k, 0), 1, 1, true};
  for (int i = 0; i < p->ngroup; i++) {
    const Group *g = &p->group[i];
    Axis *a = p->naxis ? &p->axis[p->naxis - 1] : NULL;
    int64_t many = g->to - g->from;
    p->rest += g->step * g->from;
    if (a && g->step % a->unit) return false;
    if (!a || g->step >= a->unit * a->span) {
      if (p->naxis == MAX_AXES) return false;
      p->axis[p->naxis++] = (Axis){group_value(k, g, 1), g->step, many, g->gated};
    } else {
      if (g->gated || a->gated) return false;
      int64_t times = g->step / a->unit;
      a->at = uop_alu2(k->st, OPS_ADD, a->at, group_value(k, g, times));
      a->span += times * (many - 1);
    }
  }
  return p->naxis > 1 && p->rest >= 0;
}

/* Returns the INDEX over axes, u itself if strides and gate tell no two axes apart, or NULL if out of
 * memory. */
UOp *index_axes(Kernel *k, UOp *u) {
  UOp *memory = u->src[0], *src[MAX_AXES + 2], *extent[MAX_AXES];
  Split p; /* not zeroed as a whole, because its lists are long: entries are set when they are used */
  p.k = k;
  p.ngroup = p.naxis = 0;
  p.offset.n = 0;
  p.offset.add = 0;
  memset(p.used, 0, sizeof p.used);
  if (memory->op != OPS_PARAM || memory->nsrc || !sum_add(&p.offset, u->src[1], 1)) return u;
  bounds_of(&p, index_gate(u));
  if (!groups_of(&p)) return u;
  sort_by_step(&p);
  if (!axes_of(&p)) return u;
  int64_t nelem = memory->arg.param.nelem;
  for (int a = 0; a < p.naxis; a++) {
    bool last = a + 1 == p.naxis;
    const Axis *x = &p.axis[a];
    int64_t end = last ? nelem : p.axis[a + 1].unit, size = end / x->unit;
    if (end % x->unit) return u;
    int64_t begin = p.rest / x->unit % (last ? INT64_MAX : size);
    if (begin + x->span > size) return u;
    UOp *at = x->at ? uop_alu2(k->st, OPS_ADD, x->at, num(k, begin)) : NULL;
    extent[p.naxis - 1 - a] = num(k, size);
    src[p.naxis - a] = at ? uop_simplify(k->st, k->mem, at) : NULL;
    if (!src[p.naxis - a]) return NULL;
  }
  src[0] = uop_new(k->st, OPS_PARAM, (DType)memory->dtype, 1, p.naxis, extent, memory->arg);
  src[1 + p.naxis] = index_gate(u);
  return src[0] ? uop_new(k->st, OPS_INDEX, (DType)u->dtype, u->lanes, 1 + p.naxis + (u->arg.i != 0), src,
                          u->arg)
                : NULL;
}
