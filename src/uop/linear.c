/* linear.c: index expressions, and the rules of symbolic.rules that do not fit on a line. In: one node whose
 * sources are simplified. Out: a smaller or more canonical node, or NULL. Index expressions have one normal
 * form: a sum of constant * term, sorted by structure. Equal addresses are therefore equal pointers, and a
 * stride is found by subtracting two of them. // and % by a constant work on that form. */
#include "uop/rules.h"

#define MAX_TERMS 24

/* c + the sum of k * t */
typedef struct LinForm {
  int n;
  int64_t c;

  struct {
    UOp *t;
    int64_t k;
  } at[MAX_TERMS];
} LinForm;

_Static_assert(MAX_LINEAR <= MAX_TERMS, "a sum has room for every range that it is asked about");

static bool lin_add(LinForm *f, UOp *t, int64_t k) {
  if (!k) return true;
  for (int i = 0; i < f->n; i++)
    if (f->at[i].t == t) {
      if (__builtin_add_overflow(f->at[i].k, k, &f->at[i].k)) return false;
      if (!f->at[i].k) f->at[i] = f->at[--f->n];
      return true;
    }
  if (f->n == MAX_TERMS) return false;
  f->at[f->n].t = t;
  f->at[f->n++].k = k;
  return true;
}

/* Adds scale * u to f. It takes apart + - and * by constants. Its depth is bounded, because sources are
 * already in normal form. Returns false on overflow or if f is full. */
static bool lin_of(LinForm *f, UOp *u, int64_t scale, int depth) {
  int64_t k;
  if (is_const(u))
    return !__builtin_mul_overflow(u->arg.v.i, scale, &k) && !__builtin_add_overflow(f->c, k, &f->c);
  if (depth < 2 * MAX_TERMS) {
    if (u->op == OPS_ADD)
      return lin_of(f, u->src[0], scale, depth + 1) && lin_of(f, u->src[1], scale, depth + 1);
    if (u->op == OPS_SUB)
      return scale != INT64_MIN && lin_of(f, u->src[0], scale, depth + 1) &&
             lin_of(f, u->src[1], -scale, depth + 1);
    if (u->op == OPS_NEG) return scale != INT64_MIN && lin_of(f, u->src[0], -scale, depth + 1);
    if (u->op == OPS_MUL && is_const(u->src[1]))
      return !__builtin_mul_overflow(u->src[1]->arg.v.i, scale, &k) && lin_of(f, u->src[0], k, depth + 1);
    if (u->op == OPS_MUL && is_const(u->src[0]))
      return !__builtin_mul_overflow(u->src[0]->arg.v.i, scale, &k) && lin_of(f, u->src[1], k, depth + 1);
  }
  return lin_add(f, u, scale);
}

static UOp *divmod_simple(UOpStore *st, UOp *u);

/* Whether x // c is the quotient d plus a number, *more. */
static bool is_quotient(UOpStore *st, const UOp *d, UOp *x, UOp *cu, int64_t *more) {
  LinForm q = {0};
  *more = 0;
  if (d->op != OPS_FLOORDIV) return false;
  if (d->src[0] == x && d->src[1] == cu) return true;
  UOp *u = x->op == OPS_ADD ? uop_alu2(st, OPS_FLOORDIV, x, cu) : NULL, *v = u ? divmod_simple(st, u) : NULL;
  if (!v || !lin_of(&q, v, 1, 0) || q.n != 1 || q.at[0].k != 1 || q.at[0].t != d) return false;
  *more = q.c;
  return true;
}

/* (x // c) * (k c) + (x % c) * k = x * k: joins the two halves of a split axis. (x // c % b) * (k c) + (x %
 * c) * k = (x % (b c)) * k: joins two parts of three. If a number is added, x // c may be written as a
 * quotient of another expression: ((x // a + 1) // c = (x + a) // (a c)). */
static bool lin_join_divmod(UOpStore *st, LinForm *f) {
  for (int i = 0; i < f->n; i++) {
    UOp *m = f->at[i].t;
    if (m->op != OPS_FLOORMOD || !is_const(m->src[1])) continue;
    int64_t c = m->src[1]->arg.v.i, want, more;
    if (c <= 0 || __builtin_mul_overflow(f->at[i].k, c, &want)) continue;
    for (int j = 0; j < f->n; j++) {
      UOp *d = f->at[j].t, *base = NULL;
      if (f->at[j].k != want) continue;
      if (is_quotient(st, d, m->src[0], m->src[1], &more)) {
        base = m->src[0];
        if (__builtin_mul_overflow(more, want, &more) || __builtin_sub_overflow(f->c, more, &f->c))
          return false;
      } else if (d->op == OPS_FLOORMOD && is_const(d->src[1]) && d->src[1]->arg.v.i > 0 &&
                 d->src[0]->op == OPS_FLOORDIV && d->src[0]->src[1] == m->src[1] &&
                 d->src[0]->src[0] == m->src[0]) {
        int64_t bc;
        if (__builtin_mul_overflow(d->src[1]->arg.v.i, c, &bc)) continue;
        if (!(base = uop_alu2(st, OPS_FLOORMOD, m->src[0], uop_index_const(st, bc)))) return false;
      }
      if (!base) continue;
      int64_t k = f->at[i].k;
      int hi = TG_MAX(i, j), lo = TG_MIN(i, j);
      f->at[hi] = f->at[--f->n];
      f->at[lo] = f->at[--f->n];
      return lin_of(f, base, k, 0) && lin_join_divmod(st, f);
    }
  }
  return true;
}

static int lin_before(const UOp *a, const UOp *b) {
  return a->hash != b->hash ? a->hash < b->hash : a->id < b->id;
}

static UOp *lin_build(UOpStore *st, LinForm *f) {
  for (int i = 1; i < f->n; i++)
    for (int j = i; j > 0 && lin_before(f->at[j].t, f->at[j - 1].t); j--) {
      __typeof__(f->at[0]) x = f->at[j];
      f->at[j] = f->at[j - 1];
      f->at[j - 1] = x;
    }
  UOp *sum = NULL;
  for (int i = 0; i < f->n; i++) {
    UOp *t =
        f->at[i].k == 1 ? f->at[i].t : uop_alu2(st, OPS_MUL, f->at[i].t, uop_index_const(st, f->at[i].k));
    if (t && f->at[i].k != 1) t->mark |= MARK_LINEAR;
    sum = sum ? uop_alu2(st, OPS_ADD, sum, t) : t;
    if (!sum) return NULL;
    if (i) sum->mark |= MARK_LINEAR; /* every prefix of a sorted sum is in normal form */
  }
  if (!sum) return uop_index_const(st, f->c);
  if (f->c && (sum = uop_alu2(st, OPS_ADD, sum, uop_index_const(st, f->c)))) sum->mark |= MARK_LINEAR;
  return sum;
}

static void lin_bounds(const LinForm *f, int64_t *lo, int64_t *hi) {
  __int128 l = f->c, h = f->c;
  for (int i = 0; i < f->n; i++) {
    if (f->at[i].t->vmin == INT64_MIN || f->at[i].t->vmax == INT64_MAX) {
      *lo = INT64_MIN;
      *hi = INT64_MAX;
      return;
    }
    __int128 a = (__int128)f->at[i].t->vmin * f->at[i].k, b = (__int128)f->at[i].t->vmax * f->at[i].k;
    l += TG_MIN(a, b);
    h += TG_MAX(a, b);
  }
  *lo = l < INT64_MIN ? INT64_MIN : (int64_t)l;
  *hi = h > INT64_MAX ? INT64_MAX : (int64_t)h;
}

static int64_t fdiv(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

static int64_t gcd64(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}

/* x // c or x % c, if x is itself a quotient or a remainder. NULL: there is no simpler form. */
static UOp *divmod_nested(UOpStore *st, UOp *x, UOp *cu, bool div) {
  if ((x->op != OPS_FLOORDIV && x->op != OPS_FLOORMOD) || !is_const(x->src[1])) return NULL;
  int64_t a = x->src[1]->arg.v.i, c = cu->arg.v.i, ac;
  if (a <= 0) return NULL;
  if (x->op == OPS_FLOORDIV) { /* (y // a) // c = y // (a c) */
    if (!div || __builtin_mul_overflow(a, c, &ac)) return NULL;
    return uop_alu2(st, OPS_FLOORDIV, x->src[0], uop_index_const(st, ac));
  }
  if (a % c) return NULL;
  if (!div) return uop_alu2(st, OPS_FLOORMOD, x->src[0], cu); /* (y % cm) % c = y % c */
  return uop_alu2(st, OPS_FLOORMOD, uop_alu2(st, OPS_FLOORDIV, x->src[0], cu), uop_index_const(st, a / c));
}

static void term_add(LinForm *f, UOp *t, int64_t k) {
  if (k) {
    f->at[f->n].t = t;
    f->at[f->n++].k = k;
  }
}

/* Splits f = c * q + r. The coefficients of r are those of f modulo c; a coefficient below c in magnitude
 * stays. If `nearest`, each one is the remainder of least magnitude. */
static void lin_split(const LinForm *f, int64_t c, bool nearest, LinForm *q, LinForm *r) {
  q->n = r->n = 0;
  q->c = fdiv(f->c, c);
  r->c = f->c - q->c * c;
  for (int i = 0; i < f->n; i++) {
    int64_t k = f->at[i].k, d = k > -c && k < c ? 0 : fdiv(k, c), m = k - d * c;
    if (nearest && m > c / 2) {
      m -= c;
      d++;
    }
    if (nearest && m < -(c / 2)) {
      m += c;
      d--;
    }
    term_add(q, f->at[i].t, d), term_add(r, f->at[i].t, m);
  }
}

/* r = g*s + t with g | c, 0 <= t < g: r // c = s // (c/g), r % c = g * (s % (c/g)) + t. NULL: there is no
 * such g. */
static UOp *divmod_common(UOpStore *st, const LinForm *r, int64_t c, bool div) {
  for (int i = 0; i < r->n; i++) {
    int64_t g = gcd64(r->at[i].k, c), lo, hi;
    if (g <= 1) continue;
    LinForm s, t;
    s.n = t.n = 0;
    s.c = fdiv(r->c, g);
    t.c = r->c - s.c * g;
    for (int j = 0; j < r->n; j++) {
      bool whole = r->at[j].k % g == 0;
      term_add(whole ? &s : &t, r->at[j].t, whole ? r->at[j].k / g : r->at[j].k);
    }
    lin_bounds(&t, &lo, &hi);
    if (lo < 0 || hi >= g) continue;
    UOp *sv = lin_build(st, &s), *cg = uop_index_const(st, c / g);
    if (div) return uop_alu2(st, OPS_FLOORDIV, sv, cg);
    return uop_alu2(st, OPS_ADD,
                    uop_alu2(st, OPS_MUL, uop_alu2(st, OPS_FLOORMOD, sv, cg), uop_index_const(st, g)),
                    lin_build(st, &t));
  }
  return NULL;
}

/* (y // a + k) // c = (y + k a) // (a c). NULL: the dividend f is no such sum. */
static UOp *divmod_of_quotient(UOpStore *st, const LinForm *f, int64_t c) {
  const UOp *t = f->n == 1 && f->at[0].k == 1 ? f->at[0].t : NULL;
  int64_t a = t && t->op == OPS_FLOORDIV && is_const(t->src[1]) ? t->src[1]->arg.v.i : 0, ac, ka;
  LinForm y = {0};
  if (a <= 0 || __builtin_mul_overflow(a, c, &ac) || __builtin_mul_overflow(a, f->c, &ka)) return NULL;
  if (!lin_of(&y, t->src[0], 1, 0) || __builtin_add_overflow(y.c, ka, &y.c)) return NULL;
  int64_t whole = fdiv(y.c, ac);
  y.c -= whole * ac;
  UOp *q = uop_alu2(st, OPS_FLOORDIV, lin_build(st, &y), uop_index_const(st, ac));
  return q && whole ? uop_alu2(st, OPS_ADD, q, uop_index_const(st, whole)) : q;
}

/* x // c and x % c for a constant c > 0. Let x = c*q + r, where no coefficient of r is a multiple of c. Then
 * x // c = q + r // c and x % c = r % c. */
static UOp *divmod_simple(UOpStore *st, UOp *u) {
  UOp *x = u->src[0], *cu = u->src[1];
  bool div = u->op == OPS_FLOORDIV;
  if (x == cu && x->vmin > 0) return uop_index_const(st, div ? 1 : 0);
  if (!is_const(cu) || cu->arg.v.i <= 0) return NULL;
  int64_t c = cu->arg.v.i, lo, hi;
  if (c == 1) return div ? x : uop_index_const(st, 0);
  if (x->vmin != INT64_MIN && x->vmax != INT64_MAX && fdiv(x->vmin, c) == fdiv(x->vmax, c)) {
    int64_t q = fdiv(x->vmin, c);
    return div ? uop_index_const(st, q) : q ? uop_alu2(st, OPS_ADD, x, uop_index_const(st, -q * c)) : x;
  }
  UOp *nested = divmod_nested(st, x, cu, div);
  if (nested) return nested;

  LinForm f, q, r;
  f.n = 0;
  f.c = 0;
  if (!lin_of(&f, x, 1, 0)) return NULL;
  /* if r is always between the same two multiples of c, r // c is a constant */
  for (int nearest = 1; nearest >= 0; nearest--) {
    lin_split(&f, c, nearest, &q, &r);
    lin_bounds(&r, &lo, &hi);
    if (lo == INT64_MIN || hi == INT64_MAX || fdiv(lo, c) != fdiv(hi, c)) continue;
    int64_t b = fdiv(lo, c);
    q.c += b;
    r.c -= b * c;
    return lin_build(st, div ? &q : &r);
  }
  UOp *quotient = div ? divmod_of_quotient(st, &f, c) : NULL;
  if (quotient) return quotient;
  if (!q.n && !q.c) return divmod_common(st, &r, c, div);
  UOp *rest = uop_alu2(st, (Ops)u->op, lin_build(st, &r), cu);
  return div ? uop_alu2(st, OPS_ADD, lin_build(st, &q), rest) : rest;
}

UOp *simplify_divmod(Rewrite *rw, UOp *u) { return divmod_simple(rw->st, u); }

static bool is_term(const UOp *u) { /* lin_of does not take it apart */
  return !is_const(u) && u->op != OPS_ADD && u->op != OPS_SUB && u->op != OPS_NEG &&
         !(u->op == OPS_MUL && (is_const(u->src[0]) || is_const(u->src[1])));
}

/* Handles x + c and x * c, the most frequent cases, without taking x apart. *normal: u is already in normal
 * form. */
static UOp *linear_quick(Rewrite *rw, UOp *u, bool *normal) {
  UOp *x = u->src[0], *c = u->nsrc > 1 ? u->src[1] : NULL;
  int64_t v;
  if (!c || !is_const(c) || c->arg.v.i == 0) return NULL;
  if (u->op == OPS_MUL) *normal = c->arg.v.i != 1 && is_term(x);
  if (u->op != OPS_ADD) return NULL;
  if (x->op != OPS_ADD || !is_const(x->src[1]))
    *normal = (x->mark & MARK_LINEAR) || is_term(x);
  else if ((x->mark & MARK_LINEAR) && !__builtin_add_overflow(x->src[1]->arg.v.i, c->arg.v.i, &v)) {
    UOp *r = v ? uop_alu2(rw->st, OPS_ADD, x->src[0], uop_index_const(rw->st, v)) : x->src[0];
    if (r && v) r->mark |= MARK_LINEAR;
    return r;
  }
  return NULL;
}

UOp *simplify_linear(Rewrite *rw, UOp *u) {
  LinForm f;
  f.n = 0;
  f.c = 0;
  bool normal = (u->mark & MARK_LINEAR) != 0;
  UOp *quick = normal ? NULL : linear_quick(rw, u, &normal);
  if (normal) u->mark |= MARK_LINEAR;
  if (normal || quick) return quick;
  if (u->op == OPS_MUL && !is_const(u->src[0]) && !is_const(u->src[1])) return NULL;
  return lin_of(&f, u, 1, 0) && lin_join_divmod(rw->st, &f) ? lin_build(rw->st, &f) : NULL;
}

/* depth: how deep u is in the index */
static bool is_multiple(const UOp *u, int64_t n, int depth) {
  enum { DEEPEST = 16, WIDEST = 62 };

  if (u->op == OPS_CONST) return u->arg.v.i % n == 0;
  if (depth > DEEPEST) return false;
  switch (u->op) {
  case OPS_ADD:
  case OPS_SUB: return is_multiple(u->src[0], n, depth + 1) && is_multiple(u->src[1], n, depth + 1);
  case OPS_MUL: return is_multiple(u->src[0], n, depth + 1) || is_multiple(u->src[1], n, depth + 1);
  case OPS_SHL:
    return is_const(u->src[1]) && u->src[1]->arg.v.i >= 0 && u->src[1]->arg.v.i <= WIDEST &&
           ((int64_t)1 << u->src[1]->arg.v.i) % n == 0;
  case OPS_CAST: return !dtype_is_float((DType)u->src[0]->dtype) && is_multiple(u->src[0], n, depth + 1);
  default: return false;
  }
}

bool uop_is_multiple(const UOp *u, int64_t n) { return is_multiple(u, n, 0); }

bool uop_coefficient(UOp *e, const UOp *r, int64_t *k) {
  LinForm f;
  f.n = 0;
  f.c = 0;
  *k = 0;
  if (!lin_of(&f, e, 1, 0)) return false;
  for (int i = 0; i < f.n; i++)
    if (f.at[i].t == r)
      *k = f.at[i].k;
    else if (f.at[i].t->ranges & range_bit(r->arg.range.id))
      return false;
  return true;
}

/* Moves the terms that are ranges from f to `by`. Returns false if another term contains one of the
 * ranges. */
static bool ranges_out(LinForm *f, int n, UOp *const *r, int64_t *by) {
  uint64_t bits = 0;
  int rest = 0;
  for (int i = 0; i < n; i++) {
    by[i] = 0;
    bits |= range_bit(r[i]->arg.range.id);
  }
  for (int t = 0; t < f->n; t++) {
    int i = 0;
    while (i < n && r[i] != f->at[t].t)
      i++;
    if (i < n)
      by[i] = f->at[t].k;
    else if (f->at[t].t->ranges & bits)
      return false;
    else
      f->at[rest++] = f->at[t];
  }
  f->n = rest;
  return true;
}

/* Whether c + the sum of by[i] * r[i] fits an int64 for all values of the ranges. */
static bool stays_small(const LinearIn *sum, int n, UOp *const *r) {
  int64_t most = sum->c < 0 ? ~sum->c : sum->c, add;
  for (int i = 0; i < n; i++) {
    int64_t k = sum->by[i] < 0 ? ~sum->by[i] : sum->by[i];
    if (r[i]->vmax == INT64_MAX || k == INT64_MAX || __builtin_mul_overflow(k + 1, r[i]->vmax, &add) ||
        __builtin_add_overflow(most, add, &most))
      return false;
  }
  return true;
}

bool uop_linear_in(UOpStore *st, TgMem *mem, UOp *e, int n, UOp *const *r, LinearIn *out) {
  LinForm f;
  f.n = 0;
  f.c = 0;
  e = uop_simplify(st, mem, e);
  if (!e || n > MAX_LINEAR || !lin_of(&f, e, 1, 0) || !ranges_out(&f, n, r, out->by)) return false;
  out->c = f.c;
  f.c = 0;
  out->rest = NULL;
  if (!stays_small(out, n, r)) return false;
  if (f.n) out->rest = uop_simplify(st, mem, lin_build(st, &f));
  return !f.n || out->rest;
}

/* The bounds of the sum of the terms that g does not divide. Returns false if they are not known, or if there
 * are no such terms. */
static bool bounds_beside(const LinForm *f, int64_t g, int64_t *low, int64_t *high) {
  bool any = false;
  *low = *high = 0;
  for (int i = 0; i < f->n; i++) {
    int64_t k = f->at[i].k, a, b;
    const UOp *t = f->at[i].t;
    if (k % g == 0) continue;
    if (t->vmin == INT64_MIN || t->vmax == INT64_MAX || __builtin_mul_overflow(k, t->vmin, &a) ||
        __builtin_mul_overflow(k, t->vmax, &b) || __builtin_add_overflow(*low, TG_MIN(a, b), low) ||
        __builtin_add_overflow(*high, TG_MAX(a, b), high))
      return false;
    any = true;
  }
  return any;
}

/* Simplifies g*x + y < c to x < e if y is too small to decide the comparison: x <= (c - 1 - y) // g gives the
 * same bound for every y. */
static bool drop_small_terms(LinForm *f, int64_t *c) {
  for (int i = 0; i < f->n; i++) {
    int64_t g = f->at[i].k, low, high, most, least;
    if (g == INT64_MIN || (g = g < 0 ? -g : g) < 2 || !bounds_beside(f, g, &low, &high)) continue;
    if (__builtin_sub_overflow(*c, 1, &most) || __builtin_sub_overflow(most, high, &least) ||
        __builtin_sub_overflow(most, low, &most) || fdiv(least, g) != fdiv(most, g))
      continue;
    int n = 0;
    for (int k = 0; k < f->n; k++)
      if (f->at[k].k % g == 0) {
        f->at[n] = f->at[k];
        f->at[n++].k /= g;
      }
    f->n = n;
    *c = fdiv(most, g) + 1;
    return true;
  }
  return false;
}

/* a < b on index: moves all terms to the left and the constant to the right, and divides by the common
 * factor. */
UOp *simplify_less(Rewrite *rw, UOp *u) {
  UOpStore *st = rw->st;
  LinForm f, b;
  f.n = b.n = 0;
  f.c = b.c = 0;
  if (!lin_of(&f, u->src[0], 1, 0) || f.c == INT64_MIN) return NULL;
  if (!lin_of(&b, u->src[1], 1, 0)) return NULL;
  for (int i = 0; i < b.n; i++)
    if (b.at[i].k == INT64_MIN || !lin_add(&f, b.at[i].t, -b.at[i].k)) return NULL;
  int64_t c, g = 0;
  if (__builtin_sub_overflow(b.c, f.c, &c)) return NULL;
  f.c = 0;
  for (int i = 0; i < f.n; i++)
    g = gcd64(g, f.at[i].k);
  if (!f.n) return uop_const_int(st, DT_BOOL, 0 < c);
  if (g > 1) {
    for (int i = 0; i < f.n; i++)
      f.at[i].k /= g;
    if (c == INT64_MIN) return NULL;
    c = -fdiv(-c, g); /* g*x < c  <=>  x < ceil(c/g) */
  }
  while (f.n > 1 && drop_small_terms(&f, &c)) {}
  UOp *r = uop_alu2(st, OPS_CMPLT, lin_build(st, &f), uop_index_const(st, c));
  return r == u ? NULL : r;
}

/* A cast to index of a sum, difference or product of data. An index never wraps. If by its bounds the data does
 * not wrap either, the operands are cast and the result is computed as an index, because gates and strides are
 * known of a linear form only. */
UOp *cast_parts(Rewrite *rw, UOp *u) {
  UOp *of = u->src[0];
  UOp *r = uop_alu2(rw->st, (Ops)of->op, uop_cast(rw->st, of->src[0], DT_INDEX),
                    uop_cast(rw->st, of->src[1], DT_INDEX));
  return r && fits(r, of->dtype) ? r : NULL;
}

UOp *store_drop_const(Rewrite *rw, UOp *u) { /* a constant in the list of loops is a loop of one iteration */
  UOp *src[64];
  int n = 0;
  if (u->nsrc > 64) return NULL;
  for (int i = 0; i < u->nsrc; i++)
    if (i < 2 || !is_const(u->src[i])) src[n++] = u->src[i];
  return n == u->nsrc ? NULL : uop_new(rw->st, OPS_STORE, (DType)u->dtype, u->lanes, n, src, u->arg);
}

UOp *reduce_drop_const(Rewrite *rw, UOp *u) {
  UOp *src[64];
  int n = 0;
  if (u->nsrc > 64) return NULL;
  /* a constant index is a loop of one iteration; any other constant is a value */
  for (int i = 0; i < u->nsrc; i++)
    if (i == 0 || !is_const(u->src[i]) || u->src[i]->dtype != DT_INDEX) src[n++] = u->src[i];
  if (n == u->nsrc) return NULL;
  return n == 1 ? src[0] : uop_new(rw->st, OPS_REDUCE, (DType)u->dtype, u->lanes, n, src, u->arg);
}

/* ---- bounds under the condition that a gate holds. A clause bounds a sum of terms, and every multiple of
 * that sum inside another sum. No node is made. */
typedef struct Clause {
  LinForm f;      /* f.c = 0 */
  int64_t lo, hi; /* lo <= f <= hi */
} Clause;

enum { MAX_CLAUSES = 12 };

static bool same_terms(const LinForm *a, const LinForm *b) {
  bool same = a->n == b->n;
  for (int i = 0; same && i < a->n; i++) {
    bool found = false;
    for (int j = 0; j < b->n; j++)
      found |= a->at[i].t == b->at[j].t && a->at[i].k == b->at[j].k;
    same = found;
  }
  return same;
}

/* Adds `a < b` (if !holds: a >= b) as a clause, or tightens an existing clause with the same sum. Leaving a
 * clause out only weakens the result. Returns the new number of clauses. */
static int clause_add(Clause *all, int n, const UOp *less, bool holds) {
  LinForm f, b;
  f.n = b.n = 0;
  f.c = b.c = 0;
  if (less->src[0]->dtype != DT_INDEX || !lin_of(&f, less->src[0], 1, 0) || !lin_of(&b, less->src[1], 1, 0) ||
      b.n || !f.n)
    return n;
  int64_t c, lo, hi;
  if (__builtin_sub_overflow(b.c, f.c, &c) || c == INT64_MIN) return n;
  f.c = 0;
  int at = 0;
  while (at < n && !same_terms(&all[at].f, &f))
    at++;
  if (at == MAX_CLAUSES) return n;
  if (at == n) {
    lin_bounds(&f, &lo, &hi);
    all[n++] = (Clause){f, lo, hi};
  }
  if (holds)
    all[at].hi = TG_MIN(all[at].hi, c - 1);
  else
    all[at].lo = TG_MAX(all[at].lo, c);
  return n;
}

/* Writes f = m * g + rest, and removes m * g from f. Returns m; 0: f does not contain g. */
static int64_t lin_take(LinForm *f, const LinForm *g) {
  int64_t m = 0;
  for (int i = 0; i < g->n; i++) {
    int j = 0;
    while (j < f->n && f->at[j].t != g->at[i].t)
      j++;
    if (j == f->n || f->at[j].k % g->at[i].k || (i && f->at[j].k / g->at[i].k != m)) return 0;
    if (!i) m = f->at[j].k / g->at[i].k;
  }
  for (int i = 0; m && i < g->n; i++)
    for (int j = 0; j < f->n; j++)
      if (f->at[j].t == g->at[i].t) {
        f->at[j] = f->at[--f->n];
        break;
      }
  return m;
}

UOp *index_flat(UOpStore *st, TgMem *mem, const UOp *x) {
  const UOp *memory = x->src[0];
  if (memory->op != OPS_PARAM || !memory->nsrc) return x->src[1];
  UOp *f = uop_index_const(st, 0);
  int64_t stride = 1;
  for (int d = memory->nsrc - 1; f && d >= 0; stride *= memory->src[d--]->arg.v.i)
    f = uop_alu2(st, OPS_ADD, f, uop_alu2(st, OPS_MUL, x->src[1 + d], uop_index_const(st, stride)));
  return f ? uop_simplify(st, mem, f) : NULL;
}

static int clauses_of(UOp *gate, Clause *all) {
  UOp *todo[64];
  int nc = 0, nt = 0;
  todo[nt++] = gate;
  while (nt) {
    UOp *g = todo[--nt];
    if (g->op == OPS_AND && g->dtype == DT_BOOL && nt + 2 <= (int)TG_COUNT(todo)) {
      todo[nt++] = g->src[0];
      todo[nt++] = g->src[1];
    } else if (g->op == OPS_CMPLT && g->src[0]->dtype == DT_INDEX)
      nc = clause_add(all, nc, g, true); /* only on index, because data wraps or is not an integer */
    else if (g->op == OPS_CMPNE && g->src[0]->op == OPS_CMPLT && g->src[0]->src[0]->dtype == DT_INDEX &&
             is_const_int(g->src[1], 1))
      nc = clause_add(all, nc, g->src[0], false);
  }
  return nc;
}

/* The gate is a conjunction of clauses. Each multiple of a clause's sum is removed from the offset and
 * contributes the clause's bounds instead of the bounds of its terms. */
bool uop_within(UOp *offset, UOp *gate, int64_t n) {
  if (offset->vmin >= 0 && offset->vmax < n) return true;
  LinForm f;
  f.n = 0;
  f.c = 0;
  if (!gate || !lin_of(&f, offset, 1, 0)) return false;
  Clause all[MAX_CLAUSES];
  int nc = clauses_of(gate, all);
  __int128 lo = 0, hi = 0;
  /* long sums first, because a part of a long sum may be bounded, too */
  for (int terms = MAX_TERMS; terms > 0; terms--)
    for (int i = 0; i < nc; i++) {
      if (all[i].f.n != terms || all[i].lo == INT64_MIN || all[i].hi == INT64_MAX) continue;
      if (all[i].lo > all[i].hi) return true; /* the gate never holds */
      int64_t m = lin_take(&f, &all[i].f);
      __int128 a = (__int128)m * all[i].lo, b = (__int128)m * all[i].hi;
      lo += TG_MIN(a, b);
      hi += TG_MAX(a, b);
    }
  int64_t rlo, rhi;
  lin_bounds(&f, &rlo, &rhi);
  return rlo != INT64_MIN && rhi != INT64_MAX && lo + rlo >= 0 && hi + rhi < n;
}

/* e, simplified by one clause. The sum that the clause bounds is replaced by a variable with the clause's
 * bounds, e is simplified, and the sum is put back. Quotients and remainders that the bounds decide are then
 * gone. */
static UOp *given_clause(UOpStore *st, TgMem *mem, UOp *e, const Clause *c) {
  LinForm f = c->f;
  int64_t lo, hi;
  lin_bounds(&f, &lo, &hi);
  if (c->lo > c->hi || c->lo == INT64_MIN || c->hi == INT64_MAX || (c->lo == lo && c->hi == hi)) return e;
  UOp *sum = lin_build(st, &f), *least = uop_index_const(st, c->lo), *none = uop_index_const(st, -1);
  UOp *at = sum && none ? UNEW(st, OPS_VAR, DT_INDEX, 1, ((Arg){.var = {0, c->hi - c->lo}}), none) : NULL;
  UOp *now = at ? uop_alu2(st, OPS_ADD, at, least) : NULL, *was = uop_alu2(st, OPS_SUB, sum, least);
  if (now && was && (e = uop_substitute(st, mem, e, 1, &sum, &now)) && (e = uop_simplify(st, mem, e)))
    e = uop_substitute(st, mem, e, 1, &at, &was);
  return e ? uop_simplify(st, mem, e) : NULL;
}

UOp *uop_given(UOpStore *st, TgMem *mem, UOp *e, UOp *gate) {
  Clause all[MAX_CLAUSES];
  int n = clauses_of(gate, all);
  for (int i = 0; e && i < n; i++)
    e = given_clause(st, mem, e, &all[i]);
  return e;
}
