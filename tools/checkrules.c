/* checkrules.c: are the rules true? In: the tables made by `rulegen --check`. Each rule is fired on random
 * graphs of its pattern, in every dtype of its domain; before and after are evaluated by scalar_eval on
 * random and edge values and must agree bit for bit (any NaN is NaN). A rule whose result is an expression is
 * also a statement: both sides over symbolic names and constants, under what its guard says, in every integer
 * dtype, proved by z3 for all values, index as Int, data as bit-vectors. Rules that call C, and what z3
 * leaves undecided, are proved firing by firing. The rules of wrong.rules must be refuted. Verdicts are
 * cached by the hash of the SMT text in the file named by the first argument. Exits with 77 where z3 is not
 * there and the cache does not have all of them. */
#include "checkrules.h"
#include "codegen/codegen.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 300, POINTS = 24, MAX_LEAVES = 32, PROOFS = 2, PROOFS_IN_C = 8 };

enum { STATEMENT_MS = 3000, FIRING_MS = 500 }; /* for z3, each; one that is undecided in them stays so */

enum { NOT_PROVED = 77 }; /* exit status: no rule was refuted, and nothing was there to prove them */

typedef struct Leaf {
  UOp *u;
  int64_t lo, hi;
  Scalar v;
} Leaf;

struct Gen {
  UOpStore *st;
  TgMem *mem;
  uint64_t seed;
  DType root, cmp, inner;
  bool fail, deep, symbolic;
  int nleaf, nparam, ngiven, nfitted, turn; /* turn: which of the instances of a rule this is */
  UOp *name[80];
  Leaf leaf[MAX_LEAVES];
  UOp *given[16], *fitted[8]; /* what is assumed; the names of it that fit a dtype */
};

static uint64_t rnd(Gen *g) {
  uint64_t z = g->seed += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int64_t pick(Gen *g, int64_t lo, int64_t hi) {
  uint64_t n = (uint64_t)hi - (uint64_t)lo + 1;
  return n ? (int64_t)((uint64_t)lo + rnd(g) % n) : (int64_t)rnd(g);
}

static UOp *fail(Gen *g) {
  g->fail = true;
  return NULL;
}

static Scalar value(Gen *g, DType d, int64_t lo, int64_t hi) {
  if (dtype_is_float(d)) {
    static const double edge[] = {0,   -0.0,  1,      -1,    2,      0.5,     INFINITY, -INFINITY,
                                  NAN, 1e-40, 5e-324, 65504, 3.4e38, 1.7e308, 16777217, -3.25};
    double x =
        rnd(g) % 2 ? edge[rnd(g) % TG_COUNT(edge)] : ldexp((double)(int64_t)rnd(g), (int)(rnd(g) % 80) - 100);
    return scalar_round(d, (Scalar){.f = x});
  }
  int64_t edge[] = {lo, hi, 0, 1, -1, 2, 3, 7, 8, lo + (lo < hi), hi - (lo < hi)};
  int64_t v = rnd(g) % 2 ? edge[rnd(g) % TG_COUNT(edge)] : rnd(g) % 2 ? pick(g, lo, hi) : pick(g, -20, 20);
  if (d == DT_U64) return (Scalar){.i = rnd(g) % 4 ? v : -1 - (v & 7)};
  return (Scalar){.i = v < lo || v > hi ? pick(g, lo, hi) : v};
}

static UOp *leaf_add(Gen *g, UOp *u, int64_t lo, int64_t hi) {
  for (int i = 0; i < g->nleaf; i++)
    if (g->leaf[i].u == u) return u;
  if (!u || g->nleaf == MAX_LEAVES) return fail(g);
  g->leaf[g->nleaf++] = (Leaf){.u = u, .lo = lo, .hi = hi};
  return u;
}

static UOp *leaf_var(Gen *g, DType d, int64_t lo, int64_t hi) {
  return leaf_add(g, uop_new(g->st, OPS_VAR, d, 1, 0, NULL, (Arg){.var = {lo, hi}}), lo, hi);
}

static UOp *leaf_new(Gen *g, DType d) {
  if (d == DT_INDEX) {
    int64_t lo = pick(g, -3, 3) * (int64_t)(rnd(g) % 2), n = pick(g, 0, rnd(g) % 2 ? 5 : 70);
    return leaf_var(g, d, lo, lo + n);
  }
  if (!dtype_is_float(d) && d != DT_U64 && rnd(g) % 3 == 0) {
    int64_t a = pick(g, dtype_min(d), dtype_max(d)), b = rnd(g) % 2 ? a : pick(g, a, dtype_max(d));
    return leaf_var(g, d, a, b);
  }
  return leaf_add(g, uop_new(g->st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, g->nparam++}}), dtype_min(d),
                  dtype_max(d));
}

static UOp *index_tree(Gen *g, int depth) { /* in normal form, as the sources of a node are */
  if (depth == 0 || rnd(g) % 4 == 0)
    return g->nleaf && rnd(g) % 2 && g->leaf[0].u->dtype == DT_INDEX ? g->leaf[0].u : leaf_new(g, DT_INDEX);
  static const Ops op[] = {OPS_ADD, OPS_ADD, OPS_SUB, OPS_MUL, OPS_MUL, OPS_FLOORDIV, OPS_FLOORMOD};
  Ops o = op[rnd(g) % TG_COUNT(op)];
  bool by_const = o == OPS_MUL || o == OPS_FLOORDIV || o == OPS_FLOORMOD || rnd(g) % 3 == 0;
  UOp *a = index_tree(g, depth - 1);
  UOp *b = by_const ? uop_index_const(g->st, pick(g, o == OPS_MUL || o == OPS_ADD ? -4 : 1, 8))
                    : index_tree(g, depth - 1);
  return g->fail ? NULL : uop_simplify(g->st, g->mem, uop_alu2(g->st, o, a, b));
}

static UOp *symbol(Gen *g, DType d) {
  return leaf_add(g, uop_new(g->st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, g->nparam++}}), 0, 0);
}

static UOp *not_less(Gen *g, UOp *a, UOp *b) {
  return uop_alu2(g->st, OPS_CMPNE, uop_alu2(g->st, OPS_CMPLT, a, b), uop_const_int(g->st, DT_BOOL, 1));
}

static bool assume(Gen *g, UOp *u) {
  if (!u || g->ngiven == (int)TG_COUNT(g->given)) return fail(g), false;
  g->given[g->ngiven++] = u;
  return true;
}

UOp *gen_bound(Gen *g, UOp *n, int hi) {
  DType d = (DType)n->dtype;
  if (d == DT_U64 || d == DT_BOOL || dtype_is_float(d)) return fail(g); /* has no bounds, or is one */
  UOp *b = symbol(g, d);
  return b && assume(g, hi ? not_less(g, b, n) : not_less(g, n, b)) ? b : NULL;
}

bool gen_given(Gen *g, const char *cmp, UOp *a, int64_t x, UOp *b, int64_t y) {
  if (g->fail || (!a && !b)) return false;
  if (!a) a = uop_const_int(g->st, (DType)b->dtype, x);
  if (!b) b = uop_const_int(g->st, (DType)a->dtype, y);
  if (cmp[0] == '=' || cmp[0] == '!')
    return assume(g, uop_alu2(g->st, cmp[0] == '=' ? OPS_CMPEQ : OPS_CMPNE, a, b));
  UOp *l = cmp[0] == '<' ? a : b, *r = cmp[0] == '<' ? b : a;
  return assume(g, cmp[1] ? not_less(g, r, l) : uop_alu2(g->st, OPS_CMPLT, l, r));
}

bool gen_fits(Gen *g, UOp *n, int dtype) {
  DType d = (DType)dtype;
  if (g->fail || dtype_is_float(d) || dtype_is_float((DType)n->dtype) || d == DT_U64 || n->dtype == DT_U64)
    return false;
  UOp *v = uop_cast(g->st, n, DT_INDEX);
  if (g->nfitted < (int)TG_COUNT(g->fitted)) g->fitted[g->nfitted++] = n;
  return assume(g, not_less(g, v, uop_index_const(g->st, dtype_min(d)))) &&
         assume(g, not_less(g, uop_index_const(g->st, dtype_max(d)), v));
}

bool gen_power(Gen *g, UOp *c, bool is) { /* each power that there is, one after another */
  DType d = (DType)c->dtype;
  int bits = d == DT_INDEX ? 63 : (int)dtype_size(d) * 8 - !dtype_is_unsigned(d);
  if (g->fail || !is || d == DT_BOOL) return false;
  return assume(
      g, uop_alu2(g->st, OPS_CMPEQ, c, uop_const_int(g->st, d, (int64_t)(UINT64_C(1) << g->turn % bits))));
}

bool gen_least(Gen *g, UOp *c, bool is) {
  UOp *least = uop_const_int(g->st, (DType)c->dtype, dtype_min((DType)c->dtype));
  return !g->fail && assume(g, uop_alu2(g->st, is ? OPS_CMPEQ : OPS_CMPNE, c, least));
}

bool gen_plus(Gen *g, UOp *n, bool is) { /* of one that may be negative nothing is known */
  if (!is || dtype_is_unsigned((DType)n->dtype) || n->dtype == DT_BOOL) return !g->fail;
  return !g->fail && assume(g, not_less(g, n, uop_const_int(g->st, (DType)n->dtype, 0)));
}

static DType wanted(Gen *g, DType d, int want) {
  if (want >= 0 && (int)d != want) g->fail = true;
  return d;
}

DType gen_dtype(Gen *g, int want) { return wanted(g, g->root, want); }

DType gen_child(Gen *g, Ops op, DType d, int i, bool root, int want) {
  if (op_flags(op) & OPF_CMP) return wanted(g, root ? g->cmp : g->inner, want);
  if (op == OPS_WHERE && i == 0) return wanted(g, DT_BOOL, want);
  if (op == OPS_CAST || op == OPS_BITCAST) return want >= 0 ? (DType)want : (DType)pick(g, DT_INDEX, DT_F64);
  return wanted(g, d, want);
}

UOp *gen_literal(Gen *g, DType d, int64_t v) {
  if (g->fail || (d == DT_BOOL && (v < 0 || v > 1))) return fail(g);
  return uop_const_int(g->st, d, v);
}

UOp *gen_name(Gen *g, int name, DType d, int domain, bool constant) {
  bool f = dtype_is_float(d);
  bool wraps = !f && d != DT_INDEX && d != DT_BOOL;
  bool ok = domain == GEN_ANY || (domain == GEN_FLOAT    ? f
                                  : domain == GEN_INT    ? !f
                                  : domain == GEN_INDEX  ? d == DT_INDEX
                                  : domain == GEN_BOOL   ? d == DT_BOOL
                                  : domain == GEN_WRAPS  ? wraps
                                  : domain == GEN_SIGNED ? wraps && !dtype_is_unsigned(d)
                                                         : !f && d != DT_INDEX);
  if (g->fail || !ok || (g->name[name] && g->name[name]->dtype != d)) return fail(g);
  if (g->name[name]) return g->name[name];
  UOp *u = NULL;
  if (g->symbolic)
    u = f ? fail(g) : symbol(g, d);
  else if (constant)
    u = uop_const(g->st, d,
                  d == DT_INDEX ? (Scalar){.i = pick(g, -9, 12)} : value(g, d, dtype_min(d), dtype_max(d)));
  else if (d == DT_INDEX && g->deep)
    u = rnd(g) % 3 ? index_tree(g, 2) : uop_index_const(g->st, pick(g, 1, 12));
  else
    u = leaf_new(g, d);
  return g->name[name] = u;
}

UOp *gen_op(Gen *g, Ops op, DType d, int n, UOp **src) {
  bool cmp = op_flags(op) & OPF_CMP;
  if (g->fail || (cmp && d != DT_BOOL) || !op_is_alu(op)) return fail(g);
  for (int i = 0; i < n; i++)
    if (!src[i]) return fail(g);
  if (!g->symbolic && (op_flags(op) & OPF_COMM) && rnd(g) % 2) {
    UOp *t = src[0];
    src[0] = src[1], src[1] = t;
  }
  return uop_new(g->st, op, d, 1, n, src, ARG0);
}

/* ---- evaluation */
typedef struct Known {
  unsigned point; /* for which its value is known */
  Scalar v;
} Known;

static Known *known; /* by node id: what is written out has nodes with many users */
static size_t nknown;
static unsigned point;

static bool eval(const Gen *g, const UOp *u, Scalar *out);

static bool eval_op(const Gen *g, const UOp *u, Scalar *out) {
  if (is_const(u)) {
    *out = u->arg.v;
    return true;
  }
  for (int i = 0; i < g->nleaf; i++)
    if (g->leaf[i].u == u) {
      *out = g->leaf[i].v;
      return true;
    }
  Scalar v[3] = {{0}, {0}, {0}};
  if (!op_is_alu((Ops)u->op) || u->nsrc > 3) return false;
  for (int i = 0; i < u->nsrc; i++)
    if (!eval(g, u->src[i], &v[i])) return false;
  DType d = (DType)(u->op == OPS_WHERE ? u->dtype : u->src[0]->dtype);
  if (u->op == OPS_CAST) {
    *out = scalar_cast((DType)u->dtype, d, v[0]);
    return true;
  }
  return scalar_eval((Ops)u->op, d, v, out);
}

static bool eval(const Gen *g, const UOp *u, Scalar *out) {
  if (u->id >= nknown) {
    size_t n = 2 * (size_t)u->id + 256;
    Known *more = realloc(known, n * sizeof *known);
    if (!more) return false;
    memset(more + nknown, 0, (n - nknown) * sizeof *known);
    known = more, nknown = n;
  }
  if (known[u->id].point == point) {
    *out = known[u->id].v;
    return true;
  }
  if (!eval_op(g, u, out)) return false;
  known[u->id] = (Known){point, *out};
  return true;
}

static bool agree(DType d, Scalar a, Scalar b) {
  return dtype_is_float(d) && isnan(a.f) ? isnan(b.f) : a.i == b.i;
}

/* ---- SMT-LIB. False: has no meaning there (floats, math functions, bits of an index). */
enum { FITTED_BITS = 66 }; /* holds every value of every dtype, and its sign */

static int index_bits; /* of the query at hand; 0: an index is an Int */
static DType as_int; /* of the query at hand: a signed dtype whose values are Int in its range; or DT_VOID */

static int width(DType d) {
  if (d == as_int) return 0;
  return d == DT_BOOL ? 1 : d == DT_INDEX ? index_bits : (int)dtype_size(d) * 8;
}

static void smt_int(Str *s, int w, int64_t v) {
  if (w > 64 && v < 0)
    str_printf(s, "(bvneg (_ bv%" PRIu64 " %d))", 0 - (uint64_t)v, w);
  else if (w)
    str_printf(s, "(_ bv%" PRIu64 " %d)", w >= 64 ? (uint64_t)v : (uint64_t)v & ((UINT64_C(1) << w) - 1), w);
  else if (v < 0)
    str_printf(s, "(- %" PRIu64 ")", 0 - (uint64_t)v);
  else
    str_printf(s, "%" PRId64, v);
}

static bool smt(const Gen *g, Str *s, const UOp *u);

/* A B C: sources, Z: zero, O: one of the operand sort */
static bool smt_fill(const Gen *g, Str *s, const char *form, const UOp *u) {
  DType d = (DType)(u->op == OPS_WHERE ? u->dtype : u->src[0]->dtype);
  for (; *form; form++)
    if (*form >= 'A' && *form <= 'C') {
      if (!smt(g, s, u->src[*form - 'A'])) return false;
    } else if (*form == 'Z' || *form == 'O')
      smt_int(s, width(d), *form == 'O');
    else
      str_putn(s, form, 1);
  return s->len < 60000;
}

static const char *smt_form(Ops op, DType d) {
  bool idx = !width(d), uns = dtype_is_unsigned(d) || d == DT_BOOL;
  if (d == DT_BOOL && op != OPS_WHERE && !(op_flags(op) & OPF_CMP))
    return op == OPS_ADD || op == OPS_MAX || op == OPS_OR ? "(bvor A B)"
           : op == OPS_MUL || op == OPS_AND               ? "(bvand A B)"
           : op == OPS_SUB || op == OPS_XOR               ? "(bvxor A B)"
           : op == OPS_NEG || op == OPS_TRUNC             ? "A"
                                                          : NULL;
  switch (op) {
  case OPS_NEG: return idx ? "(- A)" : "(bvneg A)";
  case OPS_TRUNC: return "A";
  case OPS_ADD: return idx ? "(+ A B)" : "(bvadd A B)";
  case OPS_SUB: return idx ? "(- A B)" : "(bvsub A B)";
  case OPS_MUL: return idx ? "(* A B)" : "(bvmul A B)";
  case OPS_MULACC: return idx ? "(+ (* A B) C)" : "(bvadd (bvmul A B) C)";
  case OPS_CDIV:
    return idx   ? "(ite (= B 0) 0 (ite (= (< A 0) (< B 0)) (div (abs A) (abs B)) (- (div (abs A) (abs B)))))"
           : uns ? "(ite (= B Z) Z (bvudiv A B))"
                 : "(ite (= B Z) Z (bvsdiv A B))";
  case OPS_CMOD:
    return idx   ? "(ite (= B 0) A (ite (< A 0) (- (mod (abs A) (abs B))) (mod A (abs B))))"
           : uns ? "(ite (= B Z) A (bvurem A B))"
                 : "(ite (= B Z) A (bvsrem A B))";
  case OPS_FLOORDIV:
    return idx   ? "(ite (= B 0) 0 (ite (> B 0) (div A B) (div (- A) (- B))))"
           : uns ? "(ite (= B Z) Z (bvudiv A B))"
                 : "(ite (= B Z) Z (ite (and (distinct (bvsrem A B) Z) (distinct (bvslt A Z) (bvslt B Z))) "
                   "(bvsub (bvsdiv A B) O) (bvsdiv A B)))";
  case OPS_FLOORMOD:
    return idx   ? "(ite (= B 0) A (ite (> B 0) (mod A B) (- (mod (- A) (- B)))))"
           : uns ? "(ite (= B Z) A (bvurem A B))"
                 : "(ite (= B Z) A (bvsmod A B))";
  case OPS_MAX: return idx ? "(ite (> A B) A B)" : uns ? "(ite (bvugt A B) A B)" : "(ite (bvsgt A B) A B)";
  case OPS_CMPLT:
    return idx ? "(ite (< A B) #b1 #b0)" : uns ? "(ite (bvult A B) #b1 #b0)" : "(ite (bvslt A B) #b1 #b0)";
  case OPS_CMPNE: return "(ite (distinct A B) #b1 #b0)";
  case OPS_CMPEQ: return "(ite (= A B) #b1 #b0)";
  case OPS_AND: return d == as_int ? "(mod A (+ B 1))" : idx ? NULL : "(bvand A B)"; /* is_low_bits */
  case OPS_OR: return idx ? NULL : "(bvor A B)";
  case OPS_XOR: return idx ? NULL : "(bvxor A B)";
  case OPS_SHL: return idx ? NULL : "(bvshl A B)";
  case OPS_SHR: return idx ? NULL : uns ? "(bvlshr A B)" : "(bvashr A B)";
  case OPS_WHERE: return "(ite (= A #b1) B C)";
  default: return NULL;
  }
}

static bool smt_cast(const Gen *g, Str *s, const UOp *u) {
  DType to = (DType)u->dtype, from = (DType)u->src[0]->dtype;
  int wt = width(to), wf = width(from);
  bool uns = dtype_is_unsigned(from) || from == DT_BOOL;
  if (dtype_is_float(from) || dtype_is_float(to)) return false;
  if (to == from) return smt(g, s, u->src[0]);
  const UOp *x = u->src[0]->op == OPS_CAST ? u->src[0]->src[0] : NULL;
  /* there and back: remainders of Int, which z3 decides where it does not int2bv */
  if (!wt && wf > 1 && wf <= 64 && x && x->dtype == DT_INDEX) {
    const char *m = wf == 8 ? "256" : wf == 16 ? "65536" : wf == 32 ? "4294967296" : "18446744073709551616";
    const char *h = uns        ? "0"
                    : wf == 8  ? "128"
                    : wf == 16 ? "32768"
                    : wf == 32 ? "2147483648"
                               : "9223372036854775808";
    str_printf(s, "(- (mod (+ %s ", h);
    if (!smt(g, s, x)) return false;
    str_printf(s, ") %s) %s)", m, h);
    return true;
  }
  if (to == DT_BOOL) return smt_fill(g, s, "(ite (= A Z) #b0 #b1)", u);
  if (!wf) {
    str_printf(s, "((_ int2bv %d) ", wt);
    return smt_fill(g, s, "A)", u);
  }
  if (!wt && uns) return smt_fill(g, s, "(bv2nat A)", u);
  if (!wt) { /* signed: take 2^width off where the sign bit is set */
    if (!smt_fill(g, s, "(- (bv2nat A) (ite (bvslt A Z) ", u)) return false;
    str_put(s, wf == 8    ? "256 0))"
               : wf == 16 ? "65536 0))"
               : wf == 32 ? "4294967296 0))"
                          : "18446744073709551616 0))");
    return true;
  }
  if (wt < wf)
    str_printf(s, "((_ extract %d 0) ", wt - 1);
  else
    str_printf(s, "((_ %s_extend %d) ", uns ? "zero" : "sign", wt - wf);
  return smt_fill(g, s, "A)", u);
}

static bool smt(const Gen *g, Str *s, const UOp *u) {
  DType d = (DType)u->dtype;
  if (dtype_is_float(d)) return false;
  if (is_const(u)) {
    smt_int(s, width(d), u->arg.v.i);
    return true;
  }
  for (int i = 0; i < g->nleaf; i++)
    if (g->leaf[i].u == u) {
      str_printf(s, "v%d", i);
      return true;
    }
  if (!op_is_alu((Ops)u->op) || u->nsrc > 3 || s->len > 60000) return false;
  if (u->op == OPS_CAST) return smt_cast(g, s, u);
  DType od = (DType)(u->op == OPS_WHERE ? u->dtype : u->src[0]->dtype);
  const char *form = dtype_is_float(od) ? NULL : smt_form((Ops)u->op, od);
  return form && smt_fill(g, s, form, u);
}

/* Whether an index below u is only compared, chosen and converted, and each is one that fits a dtype: then
 * bit-vectors of FITTED_BITS stand for all of its values, and z3 decides what it does not of Int. */
static bool only_fitted(const Gen *g, const UOp *u) {
  bool leaf = is_const(u) || u->op == OPS_PARAM;
  for (int i = 0; i < g->nfitted; i++)
    if (g->fitted[i] == u) return true;
  if (u->dtype == DT_INDEX && !is_const(u) && u->op != OPS_CAST && u->op != OPS_WHERE) return false;
  for (int i = 0; i < u->nsrc && !leaf; i++)
    if (!only_fitted(g, u->src[i])) return false;
  return true;
}

/* ---- division of wide data as Int. Sums, products and choices of numbers that differ by multiples of
 * 2^width differ so too: only what is divided or compared must be the number itself, in the range of its
 * dtype, which is asked of z3 with the rest. */
static bool is_division(const UOp *u) { return u->op >= OPS_CDIV && u->op <= OPS_FLOORMOD; }

/* x & c - 1 where c is assumed to be a power of two: the rest by c. */
static bool is_low_bits(const Gen *g, const UOp *u) {
  const UOp *c = u->op == OPS_AND && u->src[1]->op == OPS_SUB ? u->src[1]->src[0] : NULL;
  bool power = false;
  for (int i = 0; c && i < g->ngiven; i++)
    power |= g->given[i]->op == OPS_CMPEQ && g->given[i]->src[0] == c && is_const(g->given[i]->src[1]) &&
             is_power(g->given[i]->src[1]);
  return power && is_const_int(u->src[1]->src[1], 1);
}

static bool as_int_takes(const Gen *g, const UOp *u, DType d, bool *divides) {
  if (u->dtype != d && u->dtype != DT_BOOL) return false;
  *divides |= is_division(u);
  bool ring = u->op == OPS_NEG || u->op == OPS_ADD || u->op == OPS_SUB || u->op == OPS_MUL;
  bool fits = is_const(u) || u->op == OPS_PARAM || u->op == OPS_WHERE || (op_flags((Ops)u->op) & OPF_CMP);
  if (!fits && !is_division(u) && !is_low_bits(g, u) && (!ring || u->dtype == DT_BOOL)) return false;
  for (int i = 0; i < u->nsrc && u->op != OPS_PARAM; i++)
    if (!as_int_takes(g, u->src[i], d, divides)) return false;
  return true;
}

static bool smt_range(const Gen *g, Str *s, const UOp *u, DType d) { /* low <= u <= high */
  str_put(s, "(<= "), smt_int(s, 0, dtype_min(d)), str_put(s, " ");
  bool ok = smt(g, s, u);
  str_put(s, " "), smt_int(s, 0, dtype_max(d)), str_put(s, ")");
  return ok;
}

/* Each operand of a division or comparison below u that is an expression: `(not range)`. */
static bool smt_leaves(const Gen *g, Str *s, const UOp *u) {
  bool ok = true;
  for (int i = 0; ok && i < u->nsrc && u->op != OPS_PARAM; i++) {
    const UOp *x = u->src[i];
    bool asks =
        (is_division(u) || u->op == OPS_AND || (op_flags((Ops)u->op) & OPF_CMP)) && x->dtype == as_int;
    if (asks && !is_const(x) && x->op != OPS_PARAM)
      str_put(s, "(not "), ok = smt_range(g, s, x, as_int), str_put(s, ") ");
    ok = ok && smt_leaves(g, s, x);
  }
  return ok;
}

static DType int_of_query(const Gen *g, const UOp *a, const UOp *b) {
  DType d = (DType)a->dtype;
  bool divides = false, signed_ = d == DT_I16 || d == DT_I32 || d == DT_I64;
  if (!g->symbolic || !signed_ || !as_int_takes(g, a, d, &divides) || !as_int_takes(g, b, d, &divides))
    return DT_VOID;
  for (int i = 0; i < g->ngiven; i++)
    if (!as_int_takes(g, g->given[i], d, &divides)) return DT_VOID;
  return divides ? d : DT_VOID;
}

static bool smt_query(const Gen *g, Str *s, const UOp *a, const UOp *b) {
  as_int = int_of_query(g, a, b);
  index_bits = g->nfitted && only_fitted(g, a) && only_fitted(g, b) ? FITTED_BITS : 0;
  str_put(s, "(push)\n");
  for (int i = 0; i < g->nleaf; i++) {
    DType d = (DType)g->leaf[i].u->dtype;
    if (dtype_is_float(d)) continue;
    if (!width(d))
      str_printf(s, "(declare-const v%d Int)\n", i);
    else
      str_printf(s, "(declare-const v%d (_ BitVec %d))\n", i, width(d));
    if (d == as_int) str_put(s, "(assert "), smt_range(g, s, g->leaf[i].u, d), str_put(s, ")\n");
    if (g->leaf[i].u->op != OPS_VAR || d == DT_BOOL) continue;
    for (int hi = 0; hi < 2; hi++) {
      str_printf(s, "(assert (%s ", !width(d) ? "<=" : dtype_is_unsigned(d) ? "bvule" : "bvsle");
      if (hi) str_printf(s, "v%d ", i);
      smt_int(s, width(d), hi ? g->leaf[i].hi : g->leaf[i].lo);
      if (!hi) str_printf(s, " v%d", i);
      str_put(s, "))\n");
    }
  }
  for (int i = 0; i < g->nleaf; i++)
    if (g->leaf[i].u->op == OPS_VAR && g->leaf[i].u->dtype == DT_BOOL && g->leaf[i].lo == g->leaf[i].hi)
      str_printf(s, "(assert (= v%d #b%d))\n", i, (int)g->leaf[i].lo);
  for (int i = 0; i < g->ngiven; i++) {
    str_put(s, "(assert (= #b1 ");
    if (!smt(g, s, g->given[i])) return false;
    str_put(s, "))\n");
  }
  str_put(s, "(assert (or ");
  if (as_int != DT_VOID && (!smt_leaves(g, s, a) || !smt_leaves(g, s, b))) return false;
  str_put(s, "(distinct ");
  if (!smt(g, s, a)) return false;
  str_put(s, " ");
  if (!smt(g, s, b)) return false;
  str_put(s, ")))\n(check-sat)\n(pop)\n");
  return !s->oom;
}

/* ---- one rule */
typedef struct Query {
  char *text;
  uint64_t key;
  int rule;
  DType d;
  char verdict; /* u(nsat) s(at) ?(unknown) 0 */
  bool symbolic;
} Query;

/* refuted: as a statement */
typedef struct Result {
  int fired, bad, refuted;
} Result;

static Query *queries;
static size_t nqueries;
static int malformed;
static TgMem mem;

/* false: said before, or not sayable */
static bool query_add(const Gen *g, const UOp *a, const UOp *b, int id, DType d) {
  Str s;
  str_init(&s, &mem);
  bool added = false;
  if (smt_query(g, &s, a, b)) {
    uint64_t key = hash_bytes(0, s.at, s.len);
    bool known = false;
    for (size_t i = 0; i < nqueries && !known; i++)
      known = queries[i].key == key && queries[i].rule == id && queries[i].symbolic == g->symbolic;
    Query *q = known ? NULL : realloc(queries, (nqueries + 1) * sizeof *q);
    if (q)
      queries = q, queries[nqueries++] = (Query){strdup(str_text(&s)), key, id, d, 0, g->symbolic},
      added = true;
  }
  str_free(&s);
  return added;
}

/* The first rung: for all values of the names, in each integer dtype. */
static void state_rule(const RuleCheck *r, int id) {
  bool cmp = op_flags(r->root) & OPF_CMP;
  for (int d = DT_INDEX; d <= DT_U64; d++) {
    Gen g = {.mem = &mem, .seed = (uint64_t)d * 31 + (uint64_t)id, .symbolic = true};
    g.st = store_new(&mem);
    for (int t = 0; t < 100; t++) { /* the dtypes inside a cast or comparison are drawn */
      g.root = cmp ? DT_BOOL : (DType)d, g.cmp = (DType)d;
      g.inner = t % 3 ? (DType)pick(&g, DT_INDEX, DT_U64) : DT_BOOL;
      g.fail = false, g.nleaf = g.nparam = g.ngiven = g.nfitted = 0;
      g.turn = t;
      memset(g.name, 0, sizeof g.name);
      Rewrite rw = {.st = g.st, .mem = &mem};
      UOp *a = r->build(&g), *b = g.fail || !a ? NULL : r->state(&g, &rw, a);
      if (b && !g.fail && a->dtype == b->dtype) query_add(&g, a, b, id, (DType)d);
    }
    store_free(g.st);
  }
}

/* What a matcher with a context is run with: a kernel for each kind of target, in turn. */
static void *context(const RuleCheck *r, int turn) {
  static Renderer bare; /* has no op of its own */
  static Kernel kernels[] = {{.ren = &renderer_c}, {.ren = &renderer_cuda}, {.ren = &bare}};
  return strcmp(r->ctx, "const Kernel *") ? NULL : &kernels[turn % (int)TG_COUNT(kernels)];
}

static void check_rule(const RuleCheck *r, int id, bool expect_bad, Result *res) {
  bool cmp = op_flags(r->root) & OPF_CMP;
  for (int d = DT_INDEX; d < DT_COUNT; d++) {
    Gen g = {.mem = &mem, .seed = (uint64_t)d * 977 + (uint64_t)id, .deep = r->in_c};
    g.st = store_new(&mem);
    for (int t = 0, proofs = 0; t < TRIES; t++) {
      g.root = cmp ? DT_BOOL : (DType)d, g.cmp = (DType)d;
      g.inner = t % 3 ? (DType)pick(&g, DT_INDEX, DT_F64) : DT_BOOL;
      g.fail = false, g.nleaf = g.nparam = 0;
      memset(g.name, 0, sizeof g.name);
      Rewrite rw = {.st = g.st, .mem = &mem, .ctx = context(r, t)};
      UOp *a = r->build(&g), *b = g.fail || !a ? NULL : r->match(&rw, a);
      if (!b) continue;
      if (a->dtype != b->dtype) {
        if (!expect_bad)
          printf("%s: %s on %s: %s gives %s\n", r->where, r->name, op_name(r->op),
                 dtype_name((DType)a->dtype), dtype_name((DType)b->dtype));
        res->bad++;
        continue;
      }
      bool ok = true;
      for (int k = 0; k < POINTS && ok; k++) {
        Scalar x = {0}, y = {0};
        for (int i = 0; i < g.nleaf; i++)
          g.leaf[i].v = value(&g, (DType)g.leaf[i].u->dtype, g.leaf[i].lo, g.leaf[i].hi);
        point++;
        if (!eval(&g, a, &x)) break;
        res->fired++;
        if (eval(&g, b, &y) && agree((DType)a->dtype, x, y)) continue;
        ok = false, res->bad++;
        if (expect_bad || res->bad > 2) break;
        printf("%s: %s on %s %s is wrong:", r->where, r->name, op_name(r->op), dtype_name((DType)d));
        for (int i = 0; i < g.nleaf; i++)
          printf(" v%d=%" PRId64, i, g.leaf[i].v.i);
        Str s;
        str_init(&s, &mem);
        uop_expr(&s, a, 30), str_put(&s, "  =>  "), uop_expr(&s, b, 30);
        printf("\n  %s\n", str_text(&s));
        str_free(&s);
      }
      if (proofs == (r->in_c ? PROOFS_IN_C : PROOFS)) continue;
      proofs += query_add(&g, a, b, id, (DType)d);
    }
    store_free(g.st);
  }
}

/* Runs z3 once on every query whose verdict the cache lacks. -> how many are left without a verdict: none
 * where z3 is here, or was once. */
static size_t prove(const char *cache) {
  char line[128], verdict, smt_path[600], command[700];
  uint64_t key;
  size_t todo = 0, i = 0;
  FILE *f = fopen(cache, "r");
  while (f && fgets(line, sizeof line, f))
    if (sscanf(line, "%" SCNx64 " %c", &key, &verdict) == 2)
      for (size_t q = 0; q < nqueries; q++)
        if (queries[q].key == key) queries[q].verdict = verdict;
  if (f) fclose(f);
  for (size_t q = 0; q < nqueries; q++)
    todo += !queries[q].verdict;
  if (!todo) return 0;
  snprintf(smt_path, sizeof smt_path, "%s.smt2", cache);
  FILE *out = fopen(smt_path, "w");
  if (!out) return todo;
  for (size_t q = 0; q < nqueries; q++)
    if (!queries[q].verdict)
      fprintf(out, "(set-option :timeout %d)\n%s", queries[q].symbolic ? STATEMENT_MS : FIRING_MS,
              queries[q].text);
  fclose(out);
  snprintf(command, sizeof command, "z3 -T:300 '%s' 2>&1", smt_path);
  FILE *z3 = popen(command, "r"), *save = fopen(cache, "a");
  if (!z3 || !save) return todo;
  while (fgets(line, sizeof line, z3)) {
    char v = !strncmp(line, "unsat", 5)                                     ? 'u'
             : !strncmp(line, "sat", 3)                                     ? 's'
             : !strncmp(line, "unknown", 7) || !strncmp(line, "timeout", 7) ? '?'
                                                                            : 0;
    if (!strncmp(line, "(error", 6)) malformed++; /* the verdicts that follow mean nothing */
    if (!v) {
      fputs(line, stderr);
      continue;
    }
    while (i < nqueries && queries[i].verdict)
      i++;
    if (i == nqueries) break;
    queries[i].verdict = v, todo--;
    if (!malformed) fprintf(save, "%016" PRIx64 " %c\n", queries[i].key, v);
  }
  fclose(save);
  pclose(z3);
  return todo;
}

/* every file of rules/, and the rules that must be refuted */
#define RULES(name) extern const RuleCheck *const rules_##name[];
#include "gen/rule_files.def"
RULES(wrong)
#undef RULES
#define RULES(name) rules_##name,
static const RuleCheck *const *const tables[] = {
#include "gen/rule_files.def"
};

/* The rules of rules/ come before those of wrong.rules. -> how many in all. */
static int rules_list(const RuleCheck **to, int *right) {
  int n = 0;
  for (size_t t = 0; t <= TG_COUNT(tables); t++) {
    const RuleCheck *const *table = t < TG_COUNT(tables) ? tables[t] : rules_wrong;
    if (t == TG_COUNT(tables)) *right = n;
    for (int i = 0; table[i]; i++, n++)
      if (to) to[n] = table[i];
  }
  return n;
}

int main(int argc, char **argv) {
  const char *cache = argc > 1 ? argv[1] : "rules.verdicts";
  if (argc > 2 || *cache == '-') return fputs("usage: checkrules [FILE of verdicts]\n", stderr), 2;
  int nright = 0, passed = 0, failed = 0, not_arith = 0, proved = 0, open = 0, stated = 0, unstated = 0;
  int n = rules_list(NULL, &nright), nwrong = n - nright;
  Result *res = calloc((size_t)n, sizeof *res);
  const RuleCheck **rules = calloc((size_t)n, sizeof *rules);
  if (!res || !rules) return 2;
  rules_list(rules, &nright);
  for (int k = 0; k < n; k++) {
    if (rules[k]->state) state_rule(rules[k], k);
    if (rules[k]->build) check_rule(rules[k], k, k >= nright, &res[k]);
  }
  size_t unproved = prove(cache);
  if (unproved) {
    printf("%zu of %zu statements were not put to z3 (install z3): these rules are evaluated, NOT PROVED\n",
           unproved, nqueries);
  }
  for (size_t i = 0; i < nqueries; i++) {
    const Query *q = &queries[i];
    bool right = q->rule < nright;
    const RuleCheck *r = rules[q->rule];
    if (q->verdict == 's') {
      if (right)
        printf("%s: %s on %s %s: z3 has a counterexample\n%s", r->where, r->name, op_name(r->op),
               dtype_name(q->d), q->text);
      res[q->rule].bad++, res[q->rule].refuted += q->symbolic;
    } else if (right && q->verdict == 'u')
      proved += !q->symbolic, stated += q->symbolic;
    else if (right) {
      open += !q->symbolic, unstated += q->symbolic;
      if (q->symbolic && q->verdict)
        printf("%s: %s on %s %s: undecided for all values; its firings are proved one by one\n", r->where,
               r->name, op_name(r->op), dtype_name(q->d));
    }
  }
  failed += malformed;
  for (int k = 0; k < n; k++) {
    bool right = k < nright, fired = false;
    const RuleCheck *r = rules[k];
    if (!r->build) {
      not_arith++;
      continue;
    }
    for (int j = right ? 0 : nright; j < (right ? nright : n); j++)
      fired |= res[j].fired > 0 && !strcmp(rules[j]->where, r->where);
    if (right ? fired && !res[k].bad : res[k].bad > 0) {
      passed++;
      continue;
    }
    failed++;
    printf("%s: %s on %s: %s\n", r->where, r->name, op_name(r->op),
           !right  ? "a wrong rule that was not refuted"
           : fired ? "refuted"
                   : "never fired");
  }
  int refuted = 0;
  for (int k = nright; k < n; k++)
    refuted += res[k].refuted > 0;
  printf("%d rules of ops (%d not arithmetic), %d wrong ones, %d refuted as statements; %d statements over "
         "all values proved by z3, %d undecided; "
         "%d firings proved, %d left open\n",
         nright, not_arith, nwrong, refuted, stated, unstated, proved, open);
  printf("%d passed, %d failed\n", passed, failed);
  if (failed || !passed) return 1;
  return unproved ? NOT_PROVED : 0;
}
