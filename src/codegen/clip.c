/* clip.c: reductions behind a condition on their own loop. In: a nest after opts. Out: a loop whose steps add
 * WHERE(condition, value, identity), where the condition bounds the loop, runs only where it may hold, and
 * without it where it must: attention looks at no key behind its query, and at most of those before it
 * without asking.
 *
 * A bound that moves with ranges that the statements list (a tile of queries) is two: between what holds for
 * all of them and what holds for any the condition stays. What a step left out would have added is the
 * identity. */
#include "codegen/nest.h"

/* Where the condition holds: turns from .. to - 1. `all`: for every value of the listed ranges; `any`: for
 * one. */
typedef struct Clip {
  Kernel *k;
  UOp *loop, *r;
  UOp *from_any, *from_all, *to_any, *to_all; /* NULL: no such bound */
  UOpVec listed;
  bool holds; /* the value stands where the condition holds, not where it does not */
} Clip;

static UOp *num(Kernel *k, int64_t v) { return uop_index_const(k->st, v); }

static UOp *ix(Kernel *k, Ops op, UOp *a, UOp *b) {
  return a && b ? uop_simplify(k->st, k->mem, uop_alu2(k->st, op, a, b)) : NULL;
}

static UOp *at_value(Kernel *k, UOp *e, UOp *r, int64_t v) {
  UOp *to = num(k, v), *s = uop_substitute(k->st, k->mem, e, 1, &r, &to);
  return s ? uop_simplify(k->st, k->mem, s) : NULL;
}

/* How much e grows with r: the same everywhere, or false. */
static bool slope(Kernel *k, UOp *e, UOp *r, int64_t *out) {
  UOp *next = ix(k, OPS_ADD, r, num(k, 1)),
      *moved = next ? uop_substitute(k->st, k->mem, e, 1, &r, &next) : NULL;
  UOp *d = moved ? ix(k, OPS_SUB, uop_simplify(k->st, k->mem, moved), e) : NULL;
  if (!d || !is_const(d)) return false;
  *out = d->arg.v.i;
  return true;
}

/* The least or the greatest that e is over the listed ranges. */
static UOp *extreme(Clip *c, UOp *e, bool greatest) {
  for (size_t i = 0; e && i < c->listed.len; i++) {
    UOp *x = c->listed.at[i];
    int64_t by;
    if (!depends(c->k, e, x)) continue;
    if (!slope(c->k, e, x, &by)) return NULL;
    e = at_value(c->k, e, x, (by > 0) == greatest ? x->src[0]->arg.v.i - 1 : 0);
  }
  return e;
}

static bool bound(Clip *c, UOp *e, bool upper) { /* r < e, or r >= e */
  UOp *least = extreme(c, e, false), *most = extreme(c, e, true);
  UOp **all = upper ? &c->to_all : &c->from_all, **any = upper ? &c->to_any : &c->from_any;
  if (*all || !least || !most) return false; /* one bound of each side is enough */
  *all = upper ? least : most, *any = upper ? most : least;
  return true;
}

/* `less` is a < b; holds: whether it must be so. With d = a - b = step * r + rest, it bounds r. */
static bool bound_by(Clip *c, const UOp *less, bool holds) {
  Kernel *k = c->k;
  int64_t step;
  if (less->src[0]->dtype != DT_INDEX) return false;
  UOp *d = ix(k, OPS_SUB, less->src[0], less->src[1]), *rest = d ? at_value(k, d, c->r, 0) : NULL;
  if (!rest || !slope(k, d, c->r, &step) || !step || depends(c->k, rest, c->r)) return false;
  if (step > 0) { /* d < 0: r < ceil(-rest / step) */
    UOp *e = ix(k, OPS_FLOORDIV, ix(k, OPS_SUB, num(k, step - 1), rest), num(k, step));
    return e && bound(c, e, holds);
  }
  UOp *e = ix(k, OPS_ADD, ix(k, OPS_FLOORDIV, rest, num(k, -step)), num(k, 1)); /* d < 0: r > rest / -step */
  return e && bound(c, e, !holds);
}

/* The clauses that bound the loop, of a condition that must hold, or must not, are taken out; what is left of
 * it, or NULL: nothing. */
static bool take_bounds(Clip *c, UOp *g, bool holds, UOp **left) {
  bool clauses = g->dtype == DT_BOOL && g->op == (holds ? OPS_AND : OPS_OR);
  if (clauses) return take_bounds(c, g->src[0], holds, left) && take_bounds(c, g->src[1], holds, left);
  if (g->op == OPS_CMPNE && is_const_int(g->src[1], 1)) return take_bounds(c, g->src[0], !holds, left);
  if (depends(c->k, g, c->r) && g->op == OPS_CMPLT && bound_by(c, g, holds)) return true;
  if (!holds) g = uop_alu2(c->k->st, OPS_CMPNE, g, uop_const_int(c->k->st, DT_BOOL, 1));
  *left = *left && g ? uop_alu2(c->k->st, OPS_AND, *left, g) : g;
  return *left != NULL;
}

static bool is_identity(const UOp *acc, const UOp *v) {
  if (!is_const(v)) return false;
  Scalar none = op_identity((Ops)acc->arg.reduce.op, (DType)v->dtype);
  return dtype_is_float((DType)v->dtype) ? v->arg.v.f == none.f : v->arg.v.i == none.i;
}

/* All statements of the loop add a value where one condition holds (*holds: does not hold), else the
 * identity. */
static UOp *condition(const UOp *loop, bool *holds) {
  UOp *g = NULL;
  for (int i = 1; i < loop->nsrc; i++) {
    const UOp *acc = loop->src[i], *v = acc->src[1];
    if (acc->op != OPS_ACC || v->op != OPS_WHERE) return NULL;
    bool yes = is_identity(acc, v->src[2]);
    if (!yes && !is_identity(acc, v->src[1])) return NULL;
    if (g && (v->src[0] != g || yes != *holds)) return NULL;
    g = v->src[0], *holds = yes;
  }
  return g;
}

static bool find(Clip *c, UOp **left) {
  UOp *g = condition(c->loop, &c->holds);
  bool ok = g && depends(c->k, g, c->r);
  for (int i = 1; ok && i < c->loop->nsrc; i++)
    for (int s = 2; ok && s < c->loop->src[i]->nsrc; s++) {
      UOp *x = c->loop->src[i]->src[s];
      bool known = false;
      for (size_t l = 0; l < c->listed.len; l++)
        known |= c->listed.at[l] == x;
      if (!known) ok = vec_push(c->k->mem, &c->listed, x);
    }
  return ok && take_bounds(c, g, c->holds, left) && (c->to_all || c->from_all);
}

/* ---- the loop in parts */
static UOp *inside(Clip *c, UOp *e) { /* e, but no less than 0 and no more than the loop's length */
  Kernel *k = c->k;
  UOp *minus = num(k, -1), *low = e ? ix(k, OPS_MAX, e, num(k, 0)) : NULL;
  UOp *most = ix(k, OPS_MAX, ix(k, OPS_MUL, low, minus), ix(k, OPS_MUL, c->r->src[0], minus));
  return ix(k, OPS_MUL, most, minus);
}

static UOp *without(Clip *c, UOp *left) { /* the loop, its condition what is left of it */
  Kernel *k = c->k;
  UOpVec src = {0};
  bool ok = vec_push(k->mem, &src, c->r);
  for (int i = 1; ok && i < c->loop->nsrc; i++) {
    UOp *acc = c->loop->src[i], *w = acc->src[1], *part[MAX_LIST + 3];
    for (int s = 0; s < acc->nsrc; s++)
      part[s] = acc->src[s];
    UOp *value = w->src[c->holds ? 1 : 2], *none = w->src[c->holds ? 2 : 1];
    part[1] = left ? uop_where(k->st, left, value, none) : value;
    UOp *now = part[1] ? uop_new(k->st, OPS_ACC, DT_VOID, 1, acc->nsrc, part, acc->arg) : NULL;
    ok = now && vec_push(k->mem, &src, now);
  }
  UOp *loop = ok ? uop_new(k->st, OPS_LOOP, DT_VOID, 1, (int)src.len, src.at, ARG0) : NULL;
  vec_free(k->mem, &src);
  return loop;
}

static bool part_add(Clip *c, UOp *of, UOp *from, UOp *to, UOpVec *out) { /* turns from .. to - 1 */
  Kernel *k = c->k;
  UOp *n = ix(k, OPS_MAX, ix(k, OPS_SUB, to, from), num(k, 0));
  if (!of || !n) return false;
  if (is_const_int(n, 0)) return true;
  UOp *r = kernel_range(k, n, (AxisType)c->r->arg.range.type, NULL), *at = ix(k, OPS_ADD, from, r);
  UOp *body = at ? uop_new(k->st, OPS_SINK, DT_VOID, 1, of->nsrc - 1, of->src + 1, ARG0) : NULL;
  body = body ? uop_substitute(k->st, k->mem, body, 1, &c->r, &at) : NULL;
  UOp *loop = body ? loop_new(k, r, body->nsrc, body->src) : NULL;
  return loop && vec_push(k->mem, out, loop);
}

static bool in_parts(Clip *c, UOp *left) {
  Kernel *k = c->k;
  UOp *zero = num(k, 0), *from_any = c->from_any ? inside(c, c->from_any) : zero;
  UOp *from_all = c->from_all ? inside(c, c->from_all) : zero;
  UOp *to_all = inside(c, c->to_all ? c->to_all : c->r->src[0]),
      *to_any = inside(c, c->to_any ? c->to_any : c->r->src[0]);
  UOp *clean_end = ix(k, OPS_MAX, from_all, to_all), *clean = without(c, left);
  UOpVec all = {0};
  bool ok = from_any && clean_end && to_any && part_add(c, c->loop, from_any, from_all, &all) &&
            part_add(c, clean, from_all, clean_end, &all) && part_add(c, c->loop, clean_end, to_any, &all);
  UOp *sink = ok ? nest_replace(k, k->sink, c->loop, (int)all.len, all.at) : NULL;
  vec_free(k->mem, &all);
  return sink && (k->sink = nest_simplify(k, sink)) != NULL;
}

bool clip_loops(Kernel *k) {
  PlaceVec at = {0};
  UOpVec loops = {0};
  bool ok = nest_places(k, k->sink, &at);
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *u = at.at[i].u;
    bool plain = u->op == OPS_LOOP &&
                 (u->src[0]->arg.range.type == AXIS_REDUCE || u->src[0]->arg.range.type == AXIS_LOOP);
    if (plain) ok = vec_push(k->mem, &loops, u);
  }
  for (size_t i = 0; ok && i < loops.len; i++) {
    Clip c = {.k = k, .loop = loops.at[i], .r = loops.at[i]->src[0]};
    UOp *left = NULL;
    if (find(&c, &left)) ok = in_parts(&c, left);
    vec_free(k->mem, &c.listed);
  }
  vec_free(k->mem, &at), vec_free(k->mem, &loops);
  return ok;
}
