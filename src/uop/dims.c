/* dims.c: symbolic sizes. In: numbers and handles. Out: handles of interned polynomials over the variables of
 * a context. Terms are in a fixed order, and so are the variables of a term. Equal polynomials therefore have
 * equal bytes, by which they are found. */
#include "uop/dims.h"
#include "uop/uop_private.h"
#include <stdio.h>
#include <string.h>

enum { MAX_TERMS = 16, MAX_FACTORS = 6, MAX_SIZES = 1 << 20 };

/* k times the product of the variables, which are in ascending order */
typedef struct Term {
  int64_t k;
  uint16_t nvar, var[MAX_FACTORS];
} Term;

/* terms with the most variables first; the number, if there is one, last */
typedef struct Poly {
  int n;
  Term t[MAX_TERMS];
} Poly;

struct DimTable {
  TgMem *mem;
  TgError *err;
  Arena arena;
  Vec(DimVar) vars;
  Vec(Poly *) sizes;
  Map found;
};

/* handles are far apart from each other and from the ends of the range */
static const int64_t handle_first = INT64_MIN + (INT64_C(1) << 50), handle_step = 0x9E3779B1;

static int64_t handle_of(size_t i) { return handle_first + (int64_t)i * handle_step; }

static const Poly *poly_at(const DimTable *t, int64_t d) {
  if (!t || !dim_symbolic(d) || d < handle_first) return NULL;
  int64_t off = d - handle_first;
  return off % handle_step == 0 && (uint64_t)(off / handle_step) < t->sizes.len
             ? t->sizes.at[off / handle_step]
             : NULL;
}

DimTable *dims_new(TgMem *mem, TgError *err) {
  DimTable *t = mem_alloc(mem, sizeof *t);
  if (!t) return NULL;
  t->mem = mem;
  t->err = err;
  arena_init(&t->arena, mem), map_init(&t->found, mem);
  return t;
}

void dims_free(DimTable *t) {
  if (!t) return;
  arena_free(&t->arena), map_free(&t->found), vec_free(t->mem, &t->vars), vec_free(t->mem, &t->sizes);
  mem_free(t->mem, t);
}

int dims_var(DimTable *t, const char *name, int64_t lo, int64_t hi, int64_t multiple) {
  DimVar v = {arena_strdup(&t->arena, name), lo, hi, multiple, false, 0};
  return v.name && t->vars.len < UINT16_MAX && vec_push(t->mem, &t->vars, v) ? (int)t->vars.len - 1 : -1;
}

DimVar *dims_var_at(DimTable *t, int i) {
  return t && i >= 0 && (size_t)i < t->vars.len ? &t->vars.at[i] : NULL;
}

void store_set_dims(UOpStore *st, DimTable *t) { st->dims = t; }

DimTable *store_dims(const UOpStore *st) { return st->dims; }

TgMem *store_mem(const UOpStore *st) { return st->mem; }

/* ---- polynomials */
static bool poly_get(UOpStore *st, int64_t d, Poly *out) {
  memset(out, 0, sizeof *out);
  if (!dim_symbolic(d)) {
    if (d) {
      out->n = 1;
      out->t[0].k = d;
    }
    return true;
  }
  const Poly *p = poly_at(st->dims, d);
  if (p) *out = *p;
  return p != NULL;
}

static int term_order(const Term *a, const Term *b) {
  if (a->nvar != b->nvar) return a->nvar > b->nvar ? -1 : 1;
  return memcmp(a->var, b->var, sizeof a->var);
}

static bool poly_put(Poly *p, const Term *t) { /* adds a term at its place in the order */
  int i = 0;
  while (i < p->n && term_order(&p->t[i], t) < 0)
    i++;
  if (i < p->n && !term_order(&p->t[i], t)) {
    if (__builtin_add_overflow(p->t[i].k, t->k, &p->t[i].k)) return false;
    if (p->t[i].k) return true;
    memmove(&p->t[i], &p->t[i + 1], (size_t)(p->n - i - 1) * sizeof *t);
    memset(&p->t[--p->n], 0, sizeof *t);
    return true;
  }
  if (!t->k) return true;
  if (p->n == MAX_TERMS) return false;
  memmove(&p->t[i + 1], &p->t[i], (size_t)(p->n - i) * sizeof *t);
  p->t[i] = *t;
  p->n++;
  return true;
}

static int64_t poly_handle(UOpStore *st, const Poly *p) {
  DimTable *t = st->dims;
  uint64_t at;
  if (p->n == 0) return 0;
  if (p->n == 1 && !p->t[0].nvar) return dim_symbolic(p->t[0].k) ? DIM_BAD : p->t[0].k;
  if (!t) return DIM_BAD;
  uint64_t h = hash_bytes(11, p, sizeof *p);
  for (; map_get(&t->found, h, &at); h++)
    if (!memcmp(t->sizes.at[at], p, sizeof *p)) return handle_of(at);
  if (t->sizes.len == MAX_SIZES) return DIM_BAD;
  Poly *own = arena_alloc(&t->arena, sizeof *own);
  if (!own || !vec_reserve(t->mem, &t->sizes, t->sizes.len + 1) || !map_put(&t->found, h, t->sizes.len)) {
    if (t->err) error_no_memory(t->err, "size");
    return DIM_BAD;
  }
  *own = *p;
  t->sizes.at[t->sizes.len++] = own;
  return handle_of(t->sizes.len - 1);
}

static bool term_times(const Term *a, const Term *b, Term *out) {
  memset(out, 0, sizeof *out);
  if (a->nvar + b->nvar > MAX_FACTORS || __builtin_mul_overflow(a->k, b->k, &out->k)) return false;
  int i = 0, j = 0;
  while (i < a->nvar || j < b->nvar)
    out->var[out->nvar++] =
        j == b->nvar || (i < a->nvar && a->var[i] <= b->var[j]) ? a->var[i++] : b->var[j++];
  return true;
}

static bool term_over(const Term *a, const Term *b, Term *out) { /* a / b; false: b does not divide a */
  memset(out, 0, sizeof *out);
  if (!b->k || a->k % b->k) return false;
  out->k = a->k / b->k;
  int j = 0;
  for (int i = 0; i < a->nvar; i++)
    if (j < b->nvar && a->var[i] == b->var[j])
      j++;
    else
      out->var[out->nvar++] = a->var[i];
  return j == b->nvar;
}

/* ---- sizes */
int64_t dim_of_var(UOpStore *st, int var) {
  DimVar *v = dims_var_at(st->dims, var);
  if (!v) return DIM_BAD;
  if (v->lo == v->hi) return v->lo;
  return poly_handle(st, &(Poly){.n = 1, .t = {{.k = v->multiple, .nvar = 1, .var = {(uint16_t)var}}}});
}

int64_t dim_unit(UOpStore *st, int var) {
  if (!dims_var_at(st->dims, var)) return DIM_BAD;
  return poly_handle(st, &(Poly){.n = 1, .t = {{.k = 1, .nvar = 1, .var = {(uint16_t)var}}}});
}

static int64_t combine(UOpStore *st, int64_t a, int64_t b, int64_t sign) {
  Poly p, q;
  int64_t r, m;
  if (!dim_symbolic(a) && !dim_symbolic(b))
    return __builtin_mul_overflow(b, sign, &m) || __builtin_add_overflow(a, m, &r) || dim_symbolic(r)
               ? DIM_BAD
               : r;
  if (!poly_get(st, a, &p) || !poly_get(st, b, &q)) return DIM_BAD;
  for (int i = 0; i < q.n; i++)
    if (__builtin_mul_overflow(q.t[i].k, sign, &q.t[i].k) || !poly_put(&p, &q.t[i])) return DIM_BAD;
  return poly_handle(st, &p);
}

int64_t dim_add(UOpStore *st, int64_t a, int64_t b) { return combine(st, a, b, 1); }

int64_t dim_sub(UOpStore *st, int64_t a, int64_t b) { return combine(st, a, b, -1); }

int64_t dim_mul(UOpStore *st, int64_t a, int64_t b) {
  Poly p, q, r = {0};
  Term t;
  int64_t v;
  if (!dim_symbolic(a) && !dim_symbolic(b))
    return __builtin_mul_overflow(a, b, &v) || dim_symbolic(v) ? DIM_BAD : v;
  if (!poly_get(st, a, &p) || !poly_get(st, b, &q)) return DIM_BAD;
  for (int i = 0; i < p.n; i++)
    for (int j = 0; j < q.n; j++)
      if (!term_times(&p.t[i], &q.t[j], &t) || !poly_put(&r, &t)) return DIM_BAD;
  return poly_handle(st, &r);
}

bool dim_div(UOpStore *st, int64_t a, int64_t b, int64_t *quotient) {
  Poly p, d, q = {0};
  Term t, s;
  if (b == 0 || !poly_get(st, a, &p) || !poly_get(st, b, &d)) return false;
  for (int step = 0; p.n; step++) { /* long division by the first term of the divisor */
    if (step == MAX_TERMS || !term_over(&p.t[0], &d.t[0], &t) || !poly_put(&q, &t)) return false;
    t.k = -t.k;
    for (int j = 0; j < d.n; j++)
      if (!term_times(&d.t[j], &t, &s) || !poly_put(&p, &s)) return false;
  }
  *quotient = poly_handle(st, &q);
  return *quotient != DIM_BAD;
}

int64_t dim_product(UOpStore *st, const Ints *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->n; i++)
    n = dim_mul(st, n, shape->v[i]);
  return n;
}

/* A bound or the present value of a term (which: 0 least, 1 most, 2 now). Variables are not negative, so a
 * term has its largest magnitude if all of them are largest. */
static int64_t term_value(const DimTable *t, const Term *m, int which) {
  int64_t r = m->k;
  bool most = which == 1 ? m->k > 0 : m->k < 0;
  for (int i = 0; i < m->nvar; i++) {
    const DimVar *v = &t->vars.at[m->var[i]];
    int64_t x = which == 2 ? (v->bound ? v->value : v->hi) : most ? v->hi : v->lo;
    if (__builtin_mul_overflow(r, x / v->multiple, &r)) return m->k > 0 ? INT64_MAX : INT64_MIN;
  }
  return r;
}

static int64_t value(UOpStore *st, int64_t d, int which) {
  if (!dim_symbolic(d) || !st) return d;
  const Poly *p = poly_at(st->dims, d);
  int64_t r = 0;
  for (int i = 0; p && i < p->n; i++) {
    int64_t v = term_value(st->dims, &p->t[i], which);
    if (__builtin_add_overflow(r, v, &r)) r = v > 0 ? INT64_MAX : INT64_MIN;
  }
  return r;
}

int64_t dim_max(UOpStore *st, int64_t d) { return value(st, d, 1); }

int64_t dim_min(UOpStore *st, int64_t d) { return value(st, d, 0); }

int64_t dim_now(UOpStore *st, int64_t d) { return value(st, d, 2); }

const DimVar *dim_unbound(const UOpStore *st, int64_t d) {
  const Poly *p = dim_symbolic(d) ? poly_at(st->dims, d) : NULL;
  for (int i = 0; p && i < p->n; i++)
    for (int j = 0; j < p->t[i].nvar; j++) {
      const DimVar *v = &st->dims->vars.at[p->t[i].var[j]];
      if (!v->bound) return v;
    }
  return NULL;
}

bool dim_known(UOpStore *st, int64_t d) { return !dim_symbolic(d) || poly_at(st->dims, d); }

bool dim_valid(UOpStore *st, int64_t d) { return d >= 0 || (poly_at(st->dims, d) && dim_min(st, d) >= 0); }

bool dims_symbolic(const Ints *s) {
  for (int i = 0; i < s->n; i++)
    if (dim_symbolic(s->v[i])) return true;
  return false;
}

const Ints *dims_max(UOpStore *st, const Ints *s) {
  int64_t d[32];
  if (!dims_symbolic(s)) return s;
  for (int i = 0; i < s->n; i++)
    d[i] = dim_max(st, s->v[i]);
  return ints_get(st, s->n, d);
}

bool dim_le(UOpStore *st, int64_t a, int64_t b) {
  if (!dim_symbolic(a) && !dim_symbolic(b)) return a <= b;
  int64_t d = dim_sub(st, b, a);
  return d != DIM_BAD && dim_min(st, d) >= 0;
}

void dim_print(UOpStore *st, int64_t d, char *out, size_t n) {
  const Poly *p = poly_at(st->dims, d);
  size_t at = 0;
  if (!p) {
    snprintf(out, n, dim_symbolic(d) ? "?" : "%lld", (long long)d);
    return;
  }
  for (int i = 0; i < p->n && at + 1 < n; i++) {
    const Term *t = &p->t[i];
    int64_t k = t->k, unit = 1;
    /* a VAR counts multiples of this unit */
    for (int j = 0; j < t->nvar; j++)
      unit *= st->dims->vars.at[t->var[j]].multiple;
    bool whole = t->nvar && k % unit == 0;
    if (whole) k /= unit;
    at += (size_t)snprintf(out + at, n - at, "%s", !i ? (k < 0 ? "-" : "") : k < 0 ? " - " : " + ");
    uint64_t size = k < 0 ? 0 - (uint64_t)k : (uint64_t)k;
    if (at < n && (size != 1 || !t->nvar))
      at += (size_t)snprintf(out + at, n - at, "%llu%s", (unsigned long long)size, t->nvar ? "*" : "");
    for (int j = 0; j < t->nvar && at < n; j++) {
      const DimVar *v = &st->dims->vars.at[t->var[j]];
      at += (size_t)snprintf(out + at, n - at, "%s%s", j ? "*" : "", v->name);
      if (!whole && v->multiple != 1 && at < n)
        at += (size_t)snprintf(out + at, n - at, "/%lld", (long long)v->multiple);
    }
  }
}

int64_t dim_moved(UOpStore *to, UOpStore *from, int64_t d, int (*number)(void *user, int var), void *user) {
  if (!dim_symbolic(d)) return d;
  const Poly *p = poly_at(from->dims, d);
  int64_t sum = 0;
  for (int i = 0; p && i < p->n; i++) {
    int64_t term = p->t[i].k;
    for (int j = 0; j < p->t[i].nvar; j++)
      term = dim_mul(to, term, dim_unit(to, number(user, p->t[i].var[j])));
    sum = dim_add(to, sum, term);
  }
  return p ? sum : DIM_BAD;
}

void dim_put(Str *out, UOpStore *st, int64_t d) {
  const Poly *p = st && dim_symbolic(d) ? poly_at(st->dims, d) : NULL;
  if (!p) {
    str_int(out, d);
    return;
  }
  for (int i = 0; i < p->n; i++) {
    const Term *t = &p->t[i];
    uint64_t size = t->k < 0 ? 0 - (uint64_t)t->k : (uint64_t)t->k;
    str_put(out, !i ? (t->k < 0 ? "-" : "") : t->k < 0 ? " - " : " + ");
    if (!t->nvar || size != 1 || (!i && t->k < 0)) /* -1*v0: in text, a sign must be followed by a number */
      str_printf(out, "%llu%s", (unsigned long long)size, t->nvar ? "*" : "");
    for (int j = 0; j < t->nvar; j++)
      str_printf(out, j ? "*v%d" : "v%d", (int)t->var[j]);
  }
}

static int vars_of(UOpStore *st, const Ints *sizes) { /* one more than the last variable that the sizes use */
  int n = 0;
  for (int i = 0; sizes && i < sizes->n; i++) {
    const Poly *p = dim_symbolic(sizes->v[i]) ? poly_at(st->dims, sizes->v[i]) : NULL;
    for (int k = 0; p && k < p->n; k++)
      for (int j = 0; j < p->t[k].nvar; j++)
        n = TG_MAX(n, p->t[k].var[j] + 1);
  }
  return n;
}

bool dims_put(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots) {
  UOpVec order = {0};
  int n = 0;
  bool ok = !st->dims || uop_toposort(st, mem, roots, nroots, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (op_arg((Ops)u->op) == ARG_INTS) n = TG_MAX(n, vars_of(st, u->arg.ints));
    if (u->is_tensor) n = TG_MAX(n, vars_of(st, u->shape));
  }
  for (int i = 0; i < n; i++) {
    const DimVar *v = &st->dims->vars.at[i];
    str_printf(out, "variable v%d[%lld, %lld", i, (long long)v->lo, (long long)v->hi);
    if (v->multiple != 1) str_printf(out, ", %lld", (long long)v->multiple);
    str_put(out, "]\n");
  }
  vec_free(mem, &order);
  return ok && !out->oom;
}

static bool sizes_name(UOpStore *st, const Ints *sizes, int var) {
  for (int i = 0; sizes && i < sizes->n; i++) {
    const Poly *p = dim_symbolic(sizes->v[i]) ? poly_at(st->dims, sizes->v[i]) : NULL;
    for (int k = 0; p && k < p->n; k++)
      for (int j = 0; j < p->t[k].nvar; j++)
        if (p->t[k].var[j] == var) return true;
  }
  return false;
}

bool dims_name(UOpStore *st, TgMem *mem, UOp *root, int var, bool *names) {
  UOpVec order = {0};
  bool ok = uop_toposort(st, mem, &root, 1, &order);
  *names = false;
  for (size_t i = 0; ok && i < order.len && !*names; i++) {
    const UOp *u = order.at[i];
    *names = (u->op == OPS_VAR && var_number(u) == var) ||
             (op_arg((Ops)u->op) == ARG_INTS && sizes_name(st, u->arg.ints, var)) ||
             (u->is_tensor && sizes_name(st, u->shape, var));
  }
  vec_free(mem, &order);
  return ok;
}

UOp *dim_uop(UOpStore *st, TgMem *mem, int64_t d) {
  if (!dim_symbolic(d)) return uop_index_const(st, d);
  const Poly *p = poly_at(st->dims, d);
  UOp *sum = NULL;
  for (int i = 0; p && i < p->n; i++) {
    UOp *t = NULL;
    for (int j = 0; j < p->t[i].nvar; j++) {
      const DimVar *v = &st->dims->vars.at[p->t[i].var[j]];
      UOp *x = UNEW(st, OPS_VAR, DT_INDEX, 1, ((Arg){.var = {v->lo / v->multiple, v->hi / v->multiple}}),
                    uop_index_const(st, p->t[i].var[j]));
      if (!x || !(t = t ? uop_alu2(st, OPS_MUL, t, x) : x)) return NULL;
    }
    UOp *k = uop_index_const(st, p->t[i].k);
    t = !t ? k : p->t[i].k == 1 ? t : uop_alu2(st, OPS_MUL, t, k);
    if (!t || !(sum = sum ? uop_alu2(st, OPS_ADD, sum, t) : t)) return NULL;
  }
  return sum ? uop_simplify(st, mem, sum) : NULL;
}
