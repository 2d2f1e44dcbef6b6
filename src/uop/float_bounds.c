/* float_bounds.c: bounds on the value of a float. In: an expression. Out: the least and the largest number
 * it can be, if it is a number at all. There are two uses. exp of a value that is at most 0 needs no step for
 * results that overflow, and the argument of exp is often -|x|, -x^2 or x minus its maximum. A cast to an
 * integer has the bounds of its float, so a place that was clamped to an axis needs no gate.
 *
 * Rounding keeps the order of numbers, so bounds computed in double are still bounds once they are moved
 * outwards a little. */
#include "uop/float_bounds.h"
#include <math.h>

enum { MOST_DEEP = 6 };

static const Bounds any = {-INFINITY, INFINITY};

/* What a condition implies about a node, on the side of the WHERE that is being examined. */
typedef struct Known {
  const UOp *of;
  Bounds is;
  const struct Known *outer;
} Known;

static Bounds ordered(double a, double b) {
  return isnan(a) || isnan(b) ? any : a < b ? (Bounds){a, b} : (Bounds){b, a};
}

static Bounds both(Bounds a, Bounds b) { return (Bounds){fmax(a.lo, b.lo), fmin(a.hi, b.hi)}; }

static Bounds either(Bounds a, Bounds b) { return (Bounds){fmin(a.lo, b.lo), fmax(a.hi, b.hi)}; }

static Bounds outwards(Bounds a) { /* by more than the rounding error of a narrow float */
  return (Bounds){a.lo - fabs(a.lo) / 8, a.hi + fabs(a.hi) / 8};
}

static Bounds find(const UOp *u, const Known *known, int deep);

static bool is_number(const UOp *u) { return is_const(u) && !isnan(u->arg.v.f); }

/* The bounds of a WHERE: those of each side, given what `p < q` implies there. If `p < q` is false, one of
 * p and q may be NaN; then nothing is known about the other. */
static Bounds of_where(const UOp *u, const Known *known, int deep) {
  const UOp *cond = u->src[0], *p = cond->src[0], *q = cond->src[1];
  if (cond->op != OPS_CMPLT || !dtype_is_float((DType)p->dtype))
    return either(find(u->src[1], known, deep - 1), find(u->src[2], known, deep - 1));
  Bounds a = find(p, known, deep - 1), b = find(q, known, deep - 1);
  Known p_less = {p, {-INFINITY, b.hi}, known}, q_more = {q, {a.lo, INFINITY}, &p_less};
  Known p_more = {p, is_number(q) ? (Bounds){b.lo, INFINITY} : any, known},
        q_less = {q, is_number(p) ? (Bounds){-INFINITY, a.hi} : any, &p_more};
  return either(find(u->src[1], &q_more, deep - 1), find(u->src[2], &q_less, deep - 1));
}

static Bounds of_product(const UOp *u, const Known *known, int deep) {
  Bounds a = find(u->src[0], known, deep - 1);
  if (u->src[0] == u->src[1]) {
    double most = fmax(fabs(a.lo), fabs(a.hi));
    return outwards((Bounds){0, most * most});
  }
  Bounds b = find(u->src[1], known, deep - 1);
  double p[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return outwards(either(ordered(p[0], p[1]), ordered(p[2], p[3])));
}

static Bounds find_alone(const UOp *u, const Known *known, int deep) {
  if (!deep || !dtype_is_float((DType)u->dtype)) return any;
  Bounds a, b;
  switch (u->op) {
  case OPS_CONST: return ordered(u->arg.v.f, u->arg.v.f);
  case OPS_CAST:
    return dtype_is_float((DType)u->src[0]->dtype) ? outwards(find(u->src[0], known, deep - 1)) : any;
  case OPS_NEG: a = find(u->src[0], known, deep - 1); return (Bounds){-a.hi, -a.lo};
  case OPS_EXP: return (Bounds){0, u->arg.i ? 1 : INFINITY};
  case OPS_EXP2:
  case OPS_SQRT: return (Bounds){0, INFINITY};
  case OPS_MAX:
    a = find(u->src[0], known, deep - 1), b = find(u->src[1], known, deep - 1);
    return (Bounds){fmax(a.lo, b.lo), fmax(a.hi, b.hi)};
  case OPS_ADD:
    a = find(u->src[0], known, deep - 1), b = find(u->src[1], known, deep - 1);
    return outwards(ordered(a.lo + b.lo, a.hi + b.hi));
  case OPS_MUL: return of_product(u, known, deep);
  case OPS_WHERE: return of_where(u, known, deep);
  default: return any;
  }
}

/* A bound that the dtype cannot hold becomes an infinity, because the value rounds to one. */
static Bounds overflown(DType d, Bounds a) {
  bool less = isinf(scalar_round(d, (Scalar){.f = a.lo}).f),
       more = isinf(scalar_round(d, (Scalar){.f = a.hi}).f);
  return (Bounds){less ? -INFINITY : a.lo, more ? INFINITY : a.hi};
}

static Bounds find(const UOp *u, const Known *known, int deep) {
  Bounds is = find_alone(u, known, deep);
  if (dtype_is_float((DType)u->dtype)) is = overflown((DType)u->dtype, is);
  for (const Known *k = known; k; k = k->outer)
    if (k->of == u) is = both(is, k->is);
  return is;
}

Bounds bounds_of(const UOp *u) { return find(u, NULL, MOST_DEEP); }

/* ---- a value minus a maximum. This runs before opts shape the loops, so both are over whole loops. */
enum { MOST_COMPARED = 200 };

/* Whether u is the value of v in some iteration: u is v with loop[i] replaced by as[i] throughout. *left:
 * how many more nodes may be compared. */
static bool is_one_of(const UOp *u, const UOp *v, int n, UOp *const *loop, const UOp **as, int *left) {
  bool moves = false;
  if (--*left < 0) return false;
  for (int i = 0; i < n; i++) {
    moves |= (v->ranges & loop[i]->ranges) != 0;
    if (loop[i] != v) continue;
    bool fits = u->op == OPS_RANGE && u->src[0] == v->src[0] && (!as[i] || as[i] == u);
    as[i] = u;
    return fits;
  }
  if (u == v && !moves) return true;
  if (u->op != v->op || u->dtype != v->dtype || u->nsrc != v->nsrc || u->op == OPS_RANGE ||
      u->arg.raw.a != v->arg.raw.a || u->arg.raw.b != v->arg.raw.b)
    return false;
  for (int i = 0; i < u->nsrc; i++)
    if (!is_one_of(u->src[i], v->src[i], n, loop, as, left)) return false;
  return true;
}

bool is_less_maximum(const UOp *x) {
  const UOp *most = x->src[1], *as[MAX_LINEAR] = {NULL};
  int left = MOST_COMPARED;
  return most->nsrc <= MAX_LINEAR &&
         is_one_of(x->src[0], most->src[0], most->nsrc - 1, most->src + 1, as, &left);
}
