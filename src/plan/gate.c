/* gate.c: how often a condition on loops holds. In: conjunctions, disjunctions and negations of "a sum of
 * loops times constants is below another". Out: the share of all iterations. A loop is treated as a number
 * that is spread evenly over its iterations. The two longest terms of a sum are spread in this way, and the
 * rest are fixed at their middle. Causal attention needs key - query < 1, which holds for about half of all
 * pairs. */
#include "plan/gate.h"
#include <math.h>

enum { UNKNOWN = -1 };

/* A sum around a middle, with two terms that are spread evenly over a span, the longer one first. */
typedef struct Spread {
  double middle, span[2]; /* span: negative if the term falls when its loop rises */
  const UOp *loop[2];
} Spread;

static void spread_add(Spread *s, const UOp *r, double by) {
  double n = (double)r->src[0]->vmax, span = by * n;
  int at = 2;
  s->middle += by * (n - 1) / 2;
  while (at > 0 && fabs(span) > fabs(s->span[at - 1]))
    at--;
  if (at == 0) s->span[1] = s->span[0], s->loop[1] = s->loop[0];
  if (at < 2) s->span[at] = span, s->loop[at] = r;
}

/* Adds u * by. Returns false if u is not a sum of loops. */
static bool spread_of(Spread *s, const UOp *u, double by) {
  if (u->op == OPS_ADD || u->op == OPS_SUB)
    return spread_of(s, u->src[0], by) && spread_of(s, u->src[1], u->op == OPS_ADD ? by : -by);
  if (u->op == OPS_MUL && is_const(u->src[1]))
    return spread_of(s, u->src[0], by * (double)u->src[1]->arg.v.i);
  if (is_const(u)) s->middle += by * (double)u->arg.v.i;
  if (u->op == OPS_RANGE) spread_add(s, u, by);
  return is_const(u) || u->op == OPS_RANGE;
}

/* The share of a sum that is below 0. The sum has the density of a trapezoid. */
static double below_zero(const Spread *s) {
  /* the limit is halfway between 0 and the next integer, -1 */
  double a = fabs(s->span[0]), b = fabs(s->span[1]), x = -0.5 - s->middle;
  if (fabs(x) >= (a + b) / 2) return x > 0;
  if (fabs(x) <= (a - b) / 2) return 0.5 + x / a;
  double tail = ((a + b) / 2 - fabs(x)) * ((a + b) / 2 - fabs(x)) / (2 * a * b);
  return x > 0 ? 1 - tail : tail;
}

static bool is_negation(const UOp *g) { return g->op == OPS_CMPNE && is_const_int(g->src[1], 1); }

/* Sets *s to the sum of loops that is below 0 if g holds, or, if holds is false, if g fails. Returns false if
 * g is no such condition. */
static bool clause_spread(const UOp *g, bool holds, Spread *s) {
  if (is_negation(g)) return clause_spread(g->src[0], !holds, s);
  double by = holds ? 1 : -1;
  *s = (Spread){.middle = (by - 1) / 2};
  return g->op == OPS_CMPLT && g->src[0]->dtype == DT_INDEX && spread_of(s, g->src[0], by) &&
         spread_of(s, g->src[1], -by);
}

/* The sign with which b moves along the two loops of a; 0: it has other loops. */
static double along(const Spread *a, const Spread *b) {
  if (a->loop[0] == b->loop[0] && a->loop[1] == b->loop[1]) return a->span[0] * b->span[0];
  return a->loop[0] == b->loop[1] && a->loop[1] == b->loop[0] ? a->span[0] * b->span[1] : 0;
}

static double share(const UOp *g, bool holds);

/* The share in which both hold. Conditions that bound one sum from two sides, as a window does, hold between
 * the bounds. Conditions on different loops are independent. */
static double share_of_both(const UOp *a, const UOp *b, bool holds) {
  double p = share(a, holds), q = share(b, holds), sign = 0;
  Spread s, t;
  if (p < 0 || q < 0) return UNKNOWN;
  if (clause_spread(a, holds, &s) && clause_spread(b, holds, &t)) sign = along(&s, &t);
  return sign < 0 ? TG_MAX(p + q - 1, 0) : sign > 0 ? TG_MIN(p, q) : p * q;
}

static double share(const UOp *g, bool holds) {
  Spread s;
  if (is_negation(g)) return share(g->src[0], !holds);
  if (g->dtype == DT_BOOL && (g->op == OPS_AND || g->op == OPS_OR)) {
    bool all = (g->op == OPS_AND) == holds; /* otherwise: 1 - the share in which neither holds */
    double p = share_of_both(g->src[0], g->src[1], all ? holds : !holds);
    return p < 0 || all ? p : 1 - p;
  }
  return clause_spread(g, holds, &s) ? below_zero(&s) : UNKNOWN;
}

double gate_share(const UOp *condition, bool holds) {
  double p = share(condition, holds);
  return p < 0 ? 1 : p;
}
