/* rulegen.c: *.rules -> C, at build time. In: one file of rules, a name, a pattern, a result and a condition
 * each. Out: one function per matcher, a switch on self->op that tries its rules in file order, both operand
 * orders of commutative ops written out; a `gradient` block instead gives one result per source. Or, with
 * --check, one function per rule, a builder of random instances of its pattern and the rule as a statement,
 * for tools/checkrules.c. Refuses what cannot be meant, as file:line: reason.
 *
 *   vars  x y: any   c: CONST   k: RANGE   h: u32   r s: list     a domain, an op, an op and a domain, a
 *                                                                 dtype
 *   matcher pm_t = pm_u + ...  ctx const Kernel *  if GUARD       what it tries first, what rw->ctx is, when
 *                                                                 its own rules are tried
 *   name:  PATTERN => RESULT   for op in SET - OPS  if GUARD       op(..), or REDUCE[op](..): once for each
 *   name:  PATTERN ~> RESULT                                       the same but for rounding: measured, not
 *                                                                  proved
 *
 * Brackets behind an op hold its dtype, its arg (REDUCE[ADD], RANGE[REDUCE], INDEX[gated], GEP[0]), or the
 * node that it has them from: CAST[a.dtype](x), REDUCE[self.arg](x, r...). u@(x * y) => MUL[u.order](f(x), y)
 * has its operands where u has them. Without brackets a pattern takes
 * any; a result has the dtype that follows from its sources. `...` in a pattern is any further sources,
 * `r...` names them: a list, given on to an op, a C function or a guard as UOpList; what follows it is at the
 * end. A literal has the dtype of what stands beside it, else of self. In a guard x.field is x->field,
 * vmin(x) and vmax(x) are bounds, a constant's name is its value (within a call: its node), an op's name is
 * OPS_NAME. `ctx` is the context: C functions and guards get it as any other operand, and read it as
 * ctx.field. */
#define _GNU_SOURCE
#include "uop/uop.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  U = OPF_U,
  B = OPF_B,
  T = OPF_T,
  COMM = OPF_COMM,
  ASSOC = OPF_ASSOC,
  CMP = OPF_CMP,
  MOV = OPF_MOV,
  TENSOR = OPF_TENSOR,
  KERNEL = OPF_KERNEL,
  MARK = OPF_MARK
};

static const struct {
  const char *name;
  int nsrc;
  ArgForm arg;
  unsigned flags;
} ops[] = {

#define OP(name, nsrc, arg, flags, c, meaning) {#name, nsrc, ARG_##arg, flags},
#include "uop/ops.def"
#undef OP
};

static const struct {
  const char *name;
  unsigned flags;
} sets[] = {{"UNARY", U},          {"BINARY", B},          {"TERNARY", T},      {"ALU", U | B | T},
            {"COMMUTATIVE", COMM}, {"ASSOCIATIVE", ASSOC}, {"COMPARISON", CMP}, {"MOVEMENT", MOV}};

static const struct {
  const char *text, *name;
} dtypes[] = {

#define DTYPE(name, text, bytes, storage) {text, "DT_" #name},
#include "uop/dtypes.def"
};
#define AXIS_TEXT(name) #name,
static const char *const axis_types[] = {AXIS_TYPES(AXIS_TEXT)};
static const char *const domains[] = {"any",  "int",    "index", "data", "wraps",
                                      "bool", "signed", "float", "list"};

enum { DOM_ANY, DOM_INT, DOM_INDEX, DOM_DATA, DOM_WRAPS, DOM_BOOL, DOM_SIGNED, DOM_FLOAT, DOM_LIST };

enum { MAX_SRC = 8 };

typedef enum Kind { LIT, NAME, LIST, OPN, OPVAR, CALL, FOLD, CONSTANT } Kind;
typedef struct Node Node;

struct Node {
  Kind kind;
  int op, dtype, narg; /* dtype: -1 none, -2 taken from the node named in `of` */
  bool rest;  /* of a pattern: any further sources behind the first `before`, and before the others, */
  int before; /* as the list `list` if that is named */
  char list[32];
  char order_of[32];             /* whose operands stand as its own: exchanged where the pattern's are */
  char arg_text[32], arg_of[32]; /* the arg as written (an op, a type of loop, `gated`, a number), or whose */
  long long lit;
  bool is_real; /* LIT: 0.5, inf */
  double real;
  char name[32], bind[32], of[32];
  const char *text, *text_end; /* CONSTANT: the integer expression */
  Node *arg[MAX_SRC];
};

/* op, dtype: the one that its nodes have, or -1 */
typedef struct Var {
  char name[32];
  int dom, op, dtype;
  bool is_const;
} Var;

typedef struct Rule {
  char name[40];
  int line;
  bool grad, ctx, about;     /* ctx: its matcher has a context */
  Node *pat, *res, *more[2]; /* more: gradients of sources 1, 2; NULL: none */
  uint64_t ops[2];
  char opvar[32];
  const char *guard, *guard_end;
} Rule;

typedef struct MatcherDef {
  char name[40], base[4][40];
  int nbase, first, end, line;
  bool grad;
  char ctx[64]; /* the C type of the context; "": it has none */
  const char *guard, *guard_end;
} MatcherDef;

/* as given; without its folder; a header that the rules' C functions are in */
static const char *path, *file, *includes[4];
static int nincludes;
static int line_no;
static Var vars[64];
static int nvars, nrules, nmatchers;
static Rule rules[512];
static MatcherDef matchers[32];

_Noreturn static void refuse(int line, const char *fmt, ...) {
  va_list ap;
  fprintf(stderr, "%s:%d: ", path, line);
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  exit(1);
}

/* ---- tokens of one line */
static const char *p; /* the rest of the line */
static char tok[64];
static const char *tok_at;

static void next(void) {
  static const char *const two[] = {"...", "=>", "~>", "//", "!=", "==", "<=", ">=", "&&", "||"};
  while (*p == ' ' || *p == '\t')
    p++;
  tok_at = p;
  size_t n = 0;
  if (isalpha((unsigned char)*p) || *p == '_')
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
      n++;
  else if (isdigit((unsigned char)*p)) {
    bool hex = p[0] == '0' && p[1] == 'x';
    while (isalnum((unsigned char)p[n]) || (p[n] == '.' && p[n + 1] != '.') ||
           (n && (p[n] == '-' || p[n] == '+') && p[n - 1] == (hex ? 'p' : 'e')))
      n++;
  } else {
    for (size_t i = 0; i < TG_COUNT(two) && !n; i++)
      if (!strncmp(p, two[i], strlen(two[i]))) n = strlen(two[i]);
    if (!n && *p) n = 1;
  }
  if (n >= sizeof tok || n >= 32) refuse(line_no, "a word of more than 31 characters");
  memcpy(tok, p, n), tok[n] = 0;
  p += n;
}

static bool is(const char *s) { return !strcmp(tok, s); }

static bool accept(const char *s) {
  if (!is(s)) return false;
  next();
  return true;
}

static void expect(const char *s) {
  if (!accept(s)) refuse(line_no, "expected '%s', found '%s'", s, *tok ? tok : "end of line");
}

static bool is_word(void) { return isalpha((unsigned char)*tok) || *tok == '_'; }

static int find_op(const char *s) {
  for (int i = 0; i < OPS_COUNT; i++)
    if (!strcmp(ops[i].name, s)) return i;
  return -1;
}

static int find_in(const char *const *t, size_t n, const char *s) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(t[i], s)) return (int)i;
  return -1;
}

static int find_dtype(const char *s) {
  for (size_t i = 0; i < TG_COUNT(dtypes); i++)
    if (!strcmp(dtypes[i].text, s)) return (int)i;
  return -1;
}

static const Var *find_var(const char *s) {
  for (int i = 0; i < nvars; i++)
    if (!strcmp(vars[i].name, s)) return &vars[i];
  return NULL;
}

/* ---- expressions, by binding strength */
static const struct {
  const char *tok, *op;
  int level;
} infix[] = {{"|", "OR", 0},     {"^", "XOR", 1},       {"&", "AND", 2},      {"<", "CMPLT", 3},
             {"!=", "CMPNE", 3}, {"==", "CMPEQ", 3},    {"+", "ADD", 4},      {"-", "SUB", 4},
             {"*", "MUL", 5},    {"//", "FLOORDIV", 5}, {"%", "FLOORMOD", 5}, {"/", "FDIV", 5}};

static Node *node(Kind k) {
  Node *n = calloc(1, sizeof *n);
  if (!n) exit(2);
  n->kind = k, n->dtype = -1;
  return n;
}

static Node *expr(int level);

static const char *skip_guard(bool in_paren) { /* to the end of the guard; returns where it ends */
  int depth = 0;
  while (*tok && !(depth == 0 && (is("for") || (in_paren && is(")"))))) {
    depth += is("(") - is(")");
    next();
  }
  return tok_at;
}

/* What stands in brackets behind an op: its dtype, its arg, or the node that it has them from. */
static void brackets(Node *n) {
  if (n->kind != OPN && n->kind != CALL) refuse(line_no, "%s() has no dtype or arg", n->name);
  do {
    next();
    char name[32];
    strcpy(name, tok);
    if (*p == '.') {
      next(), next();
      if (is("dtype"))
        strcpy(n->of, name), n->dtype = -2;
      else if (is("arg"))
        strcpy(n->arg_of, name);
      else if (is("order"))
        strcpy(n->order_of, name);
      else
        refuse(line_no, "'%s.%s' is no dtype, no arg and no order", name, tok);
    } else if (find_dtype(name) >= 0)
      n->dtype = find_dtype(name);
    else if (n->op == OPS_CAST || n->op == OPS_BITCAST)
      refuse(line_no, "unknown dtype %s", name);
    else
      strcpy(n->arg_text, name);
    next();
  } while (is(","));
  expect("]");
}

static Node *primary(void) {
  if (accept("(")) {
    Node *n = expr(0);
    expect(")");
    return n;
  }
  if (isdigit((unsigned char)*tok) || is("-")) {
    Node *n = node(LIT);
    bool neg = accept("-");
    char *end, *real_end;
    if (!isdigit((unsigned char)*tok) && !is("inf"))
      refuse(line_no, "expected a number after '-', found '%s'", *tok ? tok : "end of line");
    n->lit = (long long)strtoull(tok, &end, 0);
    n->real = strtod(tok, &real_end), n->is_real = *end != 0;
    if (*real_end) refuse(line_no, "'%s' is no number", tok);
    if (neg) n->lit = -n->lit, n->real = -n->real;
    next();
    return n;
  }
  if (!is_word()) refuse(line_no, "expected an expression, found '%s'", *tok ? tok : "end of line");
  if ((is("inf") || is("nan")) && !find_var(tok)) {
    Node *n = node(LIT);
    n->real = strtod(tok, NULL), n->is_real = true;
    next();
    return n;
  }
  char name[32];
  strcpy(name, tok);
  next();
  if (accept("@")) {
    Node *n = primary();
    if (n->kind == NAME) refuse(line_no, "'%s@' names a name", name);
    strcpy(n->bind, name);
    return n;
  }
  if (!is("(") && !is("[")) {
    if (find_op(name) >= 0) refuse(line_no, "op %s needs its sources", name);
    Node *n = node(NAME);
    strcpy(n->name, name);
    return n;
  }
  Node *n = node(find_op(name) >= 0       ? OPN
                 : !strcmp(name, "fold")  ? FOLD
                 : !strcmp(name, "const") ? CONSTANT
                                          : CALL);
  strcpy(n->name, name);
  n->op = find_op(name);
  if (n->kind == CALL && isupper((unsigned char)*name)) refuse(line_no, "unknown op %s", name);
  if (is("[")) brackets(n);
  expect("(");
  if (n->kind == CONSTANT) {
    n->text = tok_at, n->text_end = skip_guard(true);
    expect(")");
    return n;
  }
  while (!is(")")) {
    if (accept("...")) {
      if (n->rest) refuse(line_no, "'...' twice in one list");
      n->rest = true, n->before = n->narg;
      if (!accept(",")) break;
      continue;
    }
    if (n->narg == MAX_SRC) refuse(line_no, "more than %d sources", MAX_SRC);
    Node *a = expr(0);
    if (a->kind == NAME && accept("...")) a->kind = LIST;
    n->arg[n->narg++] = a;
    if (!accept(",")) break;
  }
  expect(")");
  return n;
}

static Node *expr(int level) {
  if (level > 5) return primary();
  Node *a = expr(level + 1);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < TG_COUNT(infix); i++)
      if (infix[i].level == level && is(infix[i].tok)) {
        next();
        Node *n = node(OPN);
        n->op = find_op(infix[i].op), n->narg = 2, n->arg[0] = a, n->arg[1] = expr(level + 1);
        a = n, more = true;
        break;
      }
  }
  return a;
}

/* ---- what a rule may say */
static Node *find_name(Node *n, const char *name) {
  if (((n->kind == NAME || n->kind == LIST) && !strcmp(n->name, name)) || !strcmp(n->bind, name) ||
      !strcmp(n->list, name))
    return n;
  for (int i = 0; i < n->narg; i++) {
    Node *r = find_name(n->arg[i], name);
    if (r) return r;
  }
  return NULL;
}

static void check_arity(const Rule *r, const Node *n, int op, bool pattern) {
  int want = ops[op].nsrc;
  bool list = n->rest;
  for (int i = 0; i < n->narg && !pattern; i++)
    list |= n->arg[i]->kind == LIST;
  if (n->rest && !pattern) refuse(r->line, "'...' on the right of %s", r->name);
  if (list && want >= 0 && (!pattern || *n->list)) refuse(r->line, "op %s takes no list", ops[op].name);
  if (n->rest && want >= 0 && n->before < n->narg) refuse(r->line, "op %s takes no list", ops[op].name);
  if (want >= 0 && (n->rest ? n->narg > want : n->narg != want))
    refuse(r->line, "op %s takes %d sources, not %d", ops[op].name, want, n->narg);
}

static bool has_arg(int op) { /* one that a new node cannot do without */
  ArgForm f = ops[op].arg;
  return f != ARG_NONE && f != ARG_GATED && f != ARG_TIME;
}

/* Whether `text` is an arg of that form; new: of a node that is made. */
static bool is_arg(ArgForm f, const char *text, bool new) {
  switch (f) {
  case ARG_REDUCE: return find_op(text) >= 0;
  case ARG_AXES:
  case ARG_SCATTER: return !new &&find_op(text) >= 0;
  case ARG_RANGE: return !new &&find_in(axis_types, TG_COUNT(axis_types), text) >= 0;
  case ARG_GATED: return !strcmp(text, "gated");
  case ARG_NUMBER:
  case ARG_TIME: return isdigit((unsigned char)*text);
  default: return false;
  }
}

static void check_arg(const Rule *r, const Node *n, int op, bool pattern) {
  bool opvar = *r->opvar && !strcmp(n->arg_text, r->opvar);
  if (*n->arg_text && !opvar && !is_arg(ops[op].arg, n->arg_text, !pattern))
    refuse(r->line, "'%s' is no arg of %s", n->arg_text, ops[op].name);
  if (opvar && ops[op].arg != ARG_REDUCE) refuse(r->line, "%s has no op as its arg", ops[op].name);
  if (!pattern && !*n->arg_text && !*n->arg_of && has_arg(op))
    refuse(r->line, "op %s needs its arg", ops[op].name);
}

static bool each_op(const Rule *r, int op) { return r->ops[op / 64] >> (op % 64) & 1; }

/* A rule stands for one op of its `for`, v; one without `for` for the op of its root. */
static bool stands_for(const Rule *r, int v) { return *r->opvar ? each_op(r, v) : r->pat->op == v; }

static int root_op(const Rule *r, int v) { return r->pat->kind == OPVAR ? v : r->pat->op; }

static bool has_opvar(const Rule *r, const Node *n) {
  if (n->kind == OPVAR || (*n->arg_text && !strcmp(n->arg_text, r->opvar))) return true;
  for (int i = 0; i < n->narg; i++)
    if (has_opvar(r, n->arg[i])) return true;
  return false;
}

/* Of a pattern: r... is the name of the rest. */
static void take_list(const Rule *r, Node *n) {
  for (int i = 0; i < n->narg; i++) {
    const Node *a = n->arg[i];
    if (a->kind != LIST) continue;
    if (n->rest) refuse(r->line, "'%s...' is the second list of %s", a->name, n->name);
    if (find_name(r->pat, a->name) != a) refuse(r->line, "the list '%s' stands twice", a->name);
    const Var *v = find_var(a->name);
    if (!v || v->dom != DOM_LIST) refuse(r->line, "'%s' is no list in vars", a->name);
    strcpy(n->list, a->name), n->rest = true, n->before = i--;
    n->narg--;
    for (int k = n->before; k < n->narg; k++)
      n->arg[k] = n->arg[k + 1];
  }
}

/* A name on the right, or of a dtype or arg. */
static void check_name(const Rule *r, const char *name) {
  if (!strcmp(name, "self") || (r->grad && !strcmp(name, "g")) || find_name(r->pat, name)) return;
  refuse(r->line, "name '%s' is not in the pattern", name);
}

static void check_order(const Rule *r, const Node *n, bool pattern) {
  const Node *of = strcmp(n->order_of, "self") ? find_name(r->pat, n->order_of) : r->pat;
  if (pattern) refuse(r->line, "an order in the pattern");
  if (!of || of->kind != OPN || !(ops[of->op].flags & COMM))
    refuse(r->line, "'%s' has no operands that the pattern exchanges", n->order_of);
  if (n->narg != 2) refuse(r->line, "%s has no two operands to exchange", n->name);
}

static void resolve(Rule *r, Node *n, bool pattern) {
  if (n->kind == CALL && *r->opvar && !strcmp(n->name, r->opvar)) n->kind = OPVAR;
  if (pattern) take_list(r, n);
  for (int op = 0; op < OPS_COUNT; op++)
    if (n->kind == OPN ? op == n->op : n->kind == OPVAR && each_op(r, op))
      check_arity(r, n, op, pattern), check_arg(r, n, op, pattern);
  if (pattern && n->kind == CALL) refuse(r->line, "unknown op %s in the pattern", n->name);
  if (pattern && (n->kind == FOLD || n->kind == CONSTANT)) refuse(r->line, "%s() in the pattern", n->name);
  if (n->kind == FOLD && (n->narg != 1 || n->arg[0]->kind == LIT || n->arg[0]->kind == NAME))
    refuse(r->line, "fold() takes one operation");
  if (n->dtype == -2) check_name(r, n->of);
  if (*n->arg_of) check_name(r, n->arg_of);
  if (*n->order_of) check_order(r, n, pattern);
  if (pattern && *n->bind && find_var(n->bind) && find_var(n->bind)->dom == DOM_LIST)
    refuse(r->line, "'%s' is a list", n->bind);
  const Var *v = n->kind == NAME || n->kind == LIST ? find_var(n->name) : NULL;
  bool ctx = n->kind == NAME && !pattern && r->ctx && !strcmp(n->name, "ctx");
  if (n->kind == NAME && pattern && !v) refuse(r->line, "name '%s' is not in vars", n->name);
  if (n->kind == NAME && v && v->dom == DOM_LIST) refuse(r->line, "'%s' is a list: %s...", v->name, v->name);
  if (n->kind == LIST && (!v || v->dom != DOM_LIST)) refuse(r->line, "'%s' is no list in vars", n->name);
  if (n->kind == LIT && n->is_real && pattern) refuse(r->line, "a fraction in the pattern");
  if (r->grad && (n->kind == FOLD || n->kind == CONSTANT))
    refuse(r->line, "%s() in a gradient rule", n->name);
  if ((n->kind == NAME || n->kind == LIST) && !pattern && !ctx) check_name(r, n->name);
  for (int i = 0; i < n->narg; i++)
    resolve(r, n->arg[i], pattern);
}

static void check_guard(const Rule *r, Node *pat, const char *at, const char *end, int line) {
  const char *keep = p;
  for (p = at, next(); tok_at < end; next()) {
    if (!is_word() || (tok_at > at && tok_at[-1] == '.')) continue; /* a field */
    char name[32];
    strcpy(name, tok);
    while (*p == ' ')
      p++;
    if (*p == '(' || !strcmp(name, "self") || find_dtype(name) >= 0 || find_op(name) >= 0) continue;
    if (!strcmp(name, r->opvar) || (r->ctx && !strcmp(name, "ctx"))) continue;
    if (!pat || !find_name(pat, name)) refuse(line, "name '%s' is not in the pattern", name);
    bool list = find_var(name) && find_var(name)->dom == DOM_LIST, dots = !strncmp(p, "...", 3);
    if (list ? !dots && *p != '.' : dots)
      refuse(line, list ? "'%s' is a list: %s..." : "'%s' is no list: %s", name, name);
  }
  p = keep;
}

/* Does every graph that b matches also match a? `bound` remembers which part of b each name of a stands for.
 */
typedef struct Bound {
  const char *name[16];
  const Node *to[16];
  int n;
} Bound;

static bool same(const Node *a, const Node *b) {
  if (a->kind != b->kind || a->narg != b->narg || a->rest != b->rest || a->before != b->before ||
      a->lit != b->lit || a->op != b->op || strcmp(a->name, b->name) || strcmp(a->arg_text, b->arg_text) ||
      strcmp(a->arg_of, b->arg_of))
    return false;
  for (int i = 0; i < a->narg; i++)
    if (!same(a->arg[i], b->arg[i])) return false;
  return a->kind != OPN || a->dtype == b->dtype;
}

static bool dom_within(int in, int out) {
  static const int outer[] = {[DOM_INDEX] = DOM_INT, [DOM_DATA] = DOM_INT,     [DOM_WRAPS] = DOM_DATA,
                              [DOM_BOOL] = DOM_DATA, [DOM_SIGNED] = DOM_WRAPS, [DOM_LIST] = DOM_ANY};
  while (in != out && in != DOM_ANY)
    in = outer[in]; /* any stands around those that are not named */
  return in == out;
}

/* av, bv: the ops that the rules of a and b stand for. */
static bool covers(const Node *a, int av, const Node *b, int bv, Bound *bd) {
  int aop = a->kind == OPN ? a->op : av, bop = b->kind == OPN ? b->op : bv;
  if (a->kind == NAME) {
    const Var *va = find_var(a->name), *vb = b->kind == NAME ? find_var(b->name) : NULL;
    if (va->is_const && b->kind != LIT && !(vb && vb->is_const)) return false;
    if (va->op >= 0 && !va->is_const && !(vb ? vb->op == va->op : b->kind == OPN && b->op == va->op))
      return false;
    if (va->dtype >= 0 && !(vb ? vb->dtype == va->dtype : b->dtype == va->dtype)) return false;
    if (!dom_within(vb ? vb->dom : DOM_ANY, va->dom)) return false;
    for (int i = 0; i < bd->n; i++)
      if (!strcmp(bd->name[i], a->name)) return same(bd->to[i], b);
    if (bd->n == 16) return false;
    bd->name[bd->n] = a->name, bd->to[bd->n++] = b;
    return true;
  }
  if (a->kind == LIT) return b->kind == LIT && a->lit == b->lit;
  if (b->kind != OPN && b->kind != OPVAR) return false;
  if (*a->arg_of || (*a->arg_text && strcmp(a->arg_text, b->arg_text))) return false;
  if (aop != bop || (a->dtype != -1 && a->dtype != b->dtype) ||
      (a->rest ? b->narg < a->narg : a->narg != b->narg || b->rest))
    return false;
  if (a->rest && a->before < a->narg && (!b->rest || a->before != b->before || a->narg != b->narg))
    return false;
  if (a->rest && b->rest && b->before < a->before) return false;
  Bound keep = *bd;
  bool ok = true;
  for (int i = 0; ok && i < a->narg; i++)
    ok = covers(a->arg[i], av, b->arg[i], bv, bd);
  if (ok || !(ops[aop].flags & COMM) || a->narg != 2) return ok;
  *bd = keep;
  return covers(a->arg[0], av, b->arg[1], bv, bd) && covers(a->arg[1], av, b->arg[0], bv, bd);
}

static bool may_decline(const Node *n) {
  if (n->kind == CALL || n->kind == FOLD || n->kind == CONSTANT || n->kind == LIT) return true;
  for (int i = 0; i < n->narg; i++)
    if (may_decline(n->arg[i])) return true;
  return false;
}

/* Rule a, for one of its ops, takes all that rule b, for op v, could. */
static bool hides(const Rule *a, const Rule *b, int v) {
  bool lit = a->res && a->res->kind == LIT; /* a literal declines on vectors alone, as it does in b */
  if (a->guard || (!a->grad && may_decline(a->res) && !lit)) return false;
  for (int av = 0; av < OPS_COUNT; av++)
    if (stands_for(a, av) && root_op(a, av) == root_op(b, v) && covers(a->pat, av, b->pat, v, &(Bound){0}))
      return true;
  return false;
}

static void check_hidden(int first, int end) {
  for (int b = first; b < end; b++) {
    int by = -1;
    for (int v = 0, seen = 0; v < OPS_COUNT; v++) {
      if (!stands_for(&rules[b], v)) continue;
      int hit = -1;
      for (int a = first; a < b && hit < 0; a++)
        if (hides(&rules[a], &rules[b], v)) hit = a;
      if (hit < 0) {
        by = -1;
        break;
      }
      if (!seen++) by = hit;
    }
    if (by >= 0)
      refuse(rules[b].line, "rule %s is hidden by %s (line %d)", rules[b].name, rules[by].name,
             rules[by].line);
  }
}

/* ---- reading a file */
static void read_vars(void) {
  while (*tok) {
    int first = nvars;
    while (is_word()) {
      if (find_op(tok) >= 0 || find_var(tok) || is("self") || is("ctx"))
        refuse(line_no, "the name '%s' is taken", tok);
      if (nvars == 64) refuse(line_no, "more than 64 names");
      strcpy(vars[nvars++].name, tok);
      next();
    }
    expect(":");
    if (first == nvars) refuse(line_no, "a domain with no names");
    int op = find_op(tok), dom = DOM_ANY, dtype = -1;
    if (op >= 0) next();
    int named = find_in(domains, TG_COUNT(domains), tok);
    while (*p == ' ')
      p++;
    bool next_name = op >= 0 && (!*tok || *p == ':' ||
                                 (named < 0 && find_dtype(tok) < 0)); /* what follows an op may be left out */
    if (!next_name) {
      dtype = named < 0 ? find_dtype(tok) : -1, dom = TG_MAX(named, 0);
      if (named < 0 && dtype < 0) refuse(line_no, "unknown domain %s", tok);
      next();
    }
    for (int i = first; i < nvars; i++)
      vars[i].dom = dom, vars[i].op = op, vars[i].dtype = dtype, vars[i].is_const = op == OPS_CONST;
  }
}

static void read_matcher(bool grad) {
  if (nmatchers == 32) refuse(line_no, "more than 32 matchers");
  MatcherDef *m = &matchers[nmatchers++];
  m->first = m->end = nrules, m->line = line_no, m->grad = grad;
  if (!is_word()) refuse(line_no, "a matcher needs a name");
  strcpy(m->name, tok);
  next();
  if (accept("=")) do {
      if (accept("...")) break;
      if (m->nbase == 4) refuse(line_no, "more than 4 matchers");
      strcpy(m->base[m->nbase++], tok);
      next();
    } while (accept("+"));
  if (is("ctx")) {
    next();
    const char *at = tok_at;
    while (*tok && !is("if"))
      next();
    size_t n = (size_t)(tok_at - at);
    while (n && at[n - 1] == ' ')
      n--;
    if (!n || n >= sizeof m->ctx) refuse(line_no, "a context needs a C type");
    memcpy(m->ctx, at, n);
  }
  if (is("if")) {
    next();
    m->guard = tok_at, m->guard_end = skip_guard(false);
    check_guard(&(Rule){.ctx = *m->ctx != 0}, NULL, m->guard, m->guard_end, line_no);
    p = m->guard_end;
    next();
  }
  if (*tok) refuse(line_no, "unexpected '%s'", tok);
}

static void read_set(Rule *r) {
  bool drop = false;
  while (*tok && !is("if")) {
    if (accept("-")) {
      drop = true;
      continue;
    }
    uint64_t in[2] = {0, 0};
    int op = find_op(tok);
    bool known = op >= 0;
    if (known) in[op / 64] = 1ull << (op % 64);
    for (size_t s = 0; s < TG_COUNT(sets); s++)
      if (is(sets[s].name)) {
        known = true;
        for (int o = 0; o < OPS_COUNT; o++)
          if (ops[o].flags & sets[s].flags) in[o / 64] |= 1ull << (o % 64);
      }
    if (!known) refuse(line_no, "unknown op %s", tok);
    for (int k = 0; k < 2; k++)
      r->ops[k] = drop ? r->ops[k] & ~in[k] : r->ops[k] | in[k];
    next();
  }
}

/* One result per source of the pattern, `-` where no gradient flows. */
static void read_gradients(Rule *r) {
  Node **to[] = {&r->res, &r->more[0], &r->more[1]};
  int n = 0;
  r->grad = true;
  do {
    if (n == 3) refuse(line_no, "more than 3 gradients");
    if (is("-") && !isdigit((unsigned char)*p))
      next();
    else
      *to[n] = expr(0);
    n++;
  } while (accept(","));
  if (n != r->pat->narg && !(r->pat->rest && n < r->pat->narg))
    refuse(line_no, "%s has %d sources, not %d", r->name, r->pat->narg, n);
}

static void read_rule(const char *colon, const char *line) {
  if (!nmatchers) refuse(line_no, "a rule before the first matcher");
  if (nrules == 512) refuse(line_no, "more than 512 rules");
  Rule *r = &rules[nrules];
  r->line = line_no, r->ctx = *matchers[nmatchers - 1].ctx != 0;
  size_t n = (size_t)(colon - line);
  while (n && (line[n - 1] == ' '))
    n--;
  if (!n || n >= sizeof r->name) refuse(line_no, "a rule needs a name of 1 to 39 characters");
  memcpy(r->name, line, n);
  for (int i = 0; i < nrules; i++)
    if (!strcmp(rules[i].name, r->name))
      refuse(line_no, "rule %s is already on line %d", r->name, rules[i].line);
  p = colon + 1;
  next();
  r->pat = expr(0);
  r->about = accept("~>");
  if (!r->about) expect("=>");
  if (matchers[nmatchers - 1].grad)
    read_gradients(r);
  else
    r->res = expr(0);
  while (*tok) {
    if (accept("for")) {
      strcpy(r->opvar, tok);
      next();
      expect("in");
      read_set(r);
    } else if (is("if")) {
      next();
      r->guard = tok_at, r->guard_end = skip_guard(false);
    } else
      refuse(line_no, "unexpected '%s'", tok);
  }
  resolve(r, r->pat, true);
  if (r->pat->kind != OPN && r->pat->kind != OPVAR)
    refuse(line_no, "the pattern of %s is no operation", r->name);
  if (*r->opvar && !has_opvar(r, r->pat)) refuse(line_no, "'%s' is not in the pattern", r->opvar);
  if (r->res) resolve(r, r->res, false);
  for (int i = 0; i < 2; i++)
    if (r->more[i]) resolve(r, r->more[i], false);
  if (r->guard) check_guard(r, r->pat, r->guard, r->guard_end, line_no);
  matchers[nmatchers - 1].end = ++nrules;
}

/* ---- writing C */
typedef struct Emit {
  FILE *out;
  const Rule *rule;
  char cond[2048];

  struct {
    char name[32];
    const char *path;
    bool swapped;
  } at[24];

  int nat, op; /* op: the one that the rule stands for */
  unsigned swaps;
  int nswap, root_swap;
  bool grad, stated;
} Emit;

/* Lives until the end, like the lines. */
static const char *format(const char *fmt, ...) {
  char *text;
  va_list ap;
  va_start(ap, fmt);
  if (vasprintf(&text, fmt, ap) < 0) exit(2);
  va_end(ap);
  return text;
}

static const char *op_word(const Emit *e, const char *word) { /* an op's name, the rule's own for `op` */
  return e->rule && !strcmp(word, e->rule->opvar) ? ops[e->op].name : word;
}

static const char *path_of(const Emit *e, const char *name) {
  if (!strcmp(name, "self")) return "self";
  if (!strcmp(name, "ctx") && e->rule && e->rule->ctx) return "ctx";
  if (e->grad && !strcmp(name, "g")) return "g";
  for (int i = 0; i < e->nat; i++)
    if (!strcmp(e->at[i].name, name)) return e->at[i].path;
  return "?";
}

static void cond(Emit *e, const char *fmt, ...) {
  size_t n = strlen(e->cond);
  if (n) n += (size_t)snprintf(e->cond + n, sizeof e->cond - n, " && ");
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->cond + n, sizeof e->cond - n, fmt, ap);
  va_end(ap);
}

/* false: bound before, now a pointer compare */
static bool set_name(Emit *e, const char *name, const char *at) {
  for (int i = 0; i < e->nat; i++)
    if (!strcmp(e->at[i].name, name)) {
      cond(e, "%s == %s", at, e->at[i].path);
      return false;
    }
  if (e->nat == (int)TG_COUNT(e->at)) refuse(e->rule->line, "more than %d names", e->nat);
  strcpy(e->at[e->nat].name, name);
  e->at[e->nat++].path = format("%s", at);
  return true;
}

static bool plain_names(const Node *n) {
  return n->arg[0]->kind == NAME && n->arg[1]->kind == NAME &&
         find_var(n->arg[0]->name)->dom == find_var(n->arg[1]->name)->dom &&
         find_var(n->arg[0]->name)->is_const == find_var(n->arg[1]->name)->is_const;
}

/* Whether a rule with plain names matches in its first order or in none. */
static bool guard_has(const Rule *r, const char *name) {
  size_t len = strlen(name);
  for (const char *at = r->guard; at && (at = strstr(at, name)) && at < r->guard_end; at++) {
    bool begins = !isalnum((unsigned char)at[-1]) && at[-1] != '_' && at[-1] != '.';
    if (begins && !isalnum((unsigned char)at[len]) && at[len] != '_') return true;
  }
  return false;
}

static bool may_decline(const Node *n);

static bool one_order(const Rule *r, const Node *n) {
  if (!plain_names(n) || guard_has(r, n->arg[0]->name) || guard_has(r, n->arg[1]->name)) return false;
  return r->grad || r->res->kind == FOLD || r->res->kind == CALL || !may_decline(r->res);
}

static const char *bound(const Emit *e,
                         const char *name) { /* where the pattern has it, seen from its root on */
  const char *path = path_of(e, name);
  if (!strcmp(path, "?")) refuse(e->rule->line, "'%s' comes later in the pattern", name);
  return path;
}

static void match_arg(Emit *e, const Node *n, int op, const char *at) {
  switch (ops[op].arg) {
  case ARG_REDUCE:
  case ARG_AXES: cond(e, "%s->arg.reduce.op == OPS_%s", at, op_word(e, n->arg_text)); break;
  case ARG_SCATTER: cond(e, "%s->arg.scatter.op == OPS_%s", at, op_word(e, n->arg_text)); break;
  case ARG_RANGE: cond(e, "%s->arg.range.type == AXIS_%s", at, n->arg_text); break;
  case ARG_GATED: cond(e, "%s->arg.i != 0", at); break;
  default: cond(e, "%s->arg.i == %s", at, n->arg_text);
  }
}

static void match(Emit *e, const Rule *r, const Node *n, const char *at) {
  if (*n->bind) set_name(e, n->bind, at);
  if (n->kind == LIT) {
    cond(e, "rule_is(%s, %lld)", at, n->lit);
    return;
  }
  if (n->kind == NAME) {
    const Var *v = find_var(n->name);
    if (!set_name(e, n->name, at)) return;
    if (v->is_const)
      cond(e, "is_const(%s)", at);
    else if (v->op >= 0)
      cond(e, "%s->op == OPS_%s", at, ops[v->op].name);
    if (v->dom != DOM_ANY) cond(e, "in_%s(%s)", domains[v->dom], at);
    if (v->dtype >= 0) cond(e, "%s->dtype == %s", at, dtypes[v->dtype].name);
    return;
  }
  int op = n->kind == OPVAR ? e->op : n->op;
  bool root = n == r->pat;
  if (!root) cond(e, "%s->op == OPS_%s", at, ops[op].name);
  if (n->dtype >= 0) cond(e, "%s->dtype == %s", at, dtypes[n->dtype].name);
  if (n->dtype == -2) cond(e, "%s->dtype == %s->dtype", at, bound(e, n->of));
  if (*n->arg_of) cond(e, "rule_same_arg(%s, %s)", at, bound(e, n->arg_of));
  if (*n->arg_text) match_arg(e, n, op, at);
  if (ops[op].nsrc < 0) cond(e, "%s->nsrc %s %d", at, n->rest ? ">=" : "==", n->narg);
  if (*n->list) set_name(e, n->list, format("rule_rest(%s, %d, %d)", at, n->before, n->narg - n->before));
  bool may_swap =
      (ops[op].flags & COMM) && n->narg == 2 && !same(n->arg[0], n->arg[1]) && !(root && one_order(r, n));
  int swap = may_swap ? (int)(e->swaps >> e->nswap++ & 1) : 0;
  for (int i = 0; i < e->nat && *n->bind; i++)
    if (!strcmp(e->at[i].name, n->bind)) e->at[i].swapped = swap;
  if (root) e->root_swap = swap;
  for (int k = 0; k < 2; k++) /* simple sources first: they are cheap to test and bind names */
    for (int i = 0; i < n->narg; i++) {
      Node *a = n->arg[i];
      if ((a->kind == OPN || a->kind == OPVAR) != (k == 1)) continue;
      const char *sub;
      if (n->rest && i >= n->before)
        sub = format("%s->src[%s->nsrc - %d]", at, at, n->narg - i);
      else if (root && i < 3)
        sub = format("s%d", i ^ swap);
      else
        sub = format("%s->src[%d]", at, i ^ swap);
      match(e, r, a, sub);
    }
}

static void guard(Emit *e, char *out, size_t cap, const char *at, const char *end) {
  const char *keep = p;
  size_t n = 0;
  int call = 0, depth = 0; /* call: the depth at which a C call's arguments began */
  out[0] = 0;
  for (p = at, next(); *tok && tok_at < end && n + 128 < cap; next()) {
    if (is("(")) depth++;
    if (is(")") && --depth < call) call = 0;
    const char *text = tok;
    char buf[160];
    if (is_word() && *p == '(' && (is("vmin") || is("vmax"))) {
      char what[8];
      strcpy(what, tok);
      next(), next();
      snprintf(buf, sizeof buf, "%s->%s", path_of(e, tok), what), text = buf;
      next();
    } else if (is_word() && *p == '(')
      call = call ? call : depth + 1;
    else if (is_word() && *p == '.' && p[1] != '.') { /* a field, or one of it */
      int k = snprintf(buf, sizeof buf, "%s", path_of(e, tok));
      for (const char *to = find_var(tok) && find_var(tok)->dom == DOM_LIST ? "." : "->"; *p == '.';
           to = ".") {
        next(), next();
        k += snprintf(buf + k, sizeof buf - (size_t)k, "%s%s", to, tok);
      }
      text = buf;
    } else if (is("..."))
      continue; /* the name before it is the list */
    else if (is_word() && strcmp(path_of(e, tok), "?")) {
      const Var *v = find_var(tok);
      snprintf(buf, sizeof buf, !call && v && v->is_const ? "rule_int(%s)" : "%s", path_of(e, tok)),
          text = buf;
    } else if (is_word() && find_dtype(tok) >= 0) {
      text = dtypes[find_dtype(tok)].name;
    } else if (is_word() && (find_op(op_word(e, tok)) >= 0)) {
      snprintf(buf, sizeof buf, "OPS_%s", op_word(e, tok)), text = buf;
    }
    bool tight = is("(") || is(")") || is("!") || is(",") || text != tok || !n || out[n - 1] == '(' ||
                 out[n - 1] == '!';
    n += (size_t)snprintf(
        out + n, cap - n, "%s%s",
        !n || tight ? (n && (is_word() || text != tok) && out[n - 1] != '(' && out[n - 1] != '!' ? " " : "")
                    : " ",
        text);
  }
  p = keep;
}

/* ---- the result as an expression of C */
static const char *result(Emit *e, const Node *n, bool fold, const char *like);

/* The dtype of a node of the result, in C; NULL: it has the one of its place. */
static const char *dtype_of(const Emit *e, const Node *n) {
  int op = n->kind == OPVAR ? e->op : n->op;
  if (n->kind == NAME) return format("(DType)%s->dtype", path_of(e, n->name));
  if (n->kind == FOLD) return dtype_of(e, n->arg[0]);
  if (n->kind != OPN && n->kind != OPVAR) return NULL;
  if (n->dtype == -2) return format("(DType)%s->dtype", path_of(e, n->of));
  if (n->dtype >= 0) return dtypes[n->dtype].name;
  if (ops[op].flags & CMP) return "DT_BOOL";
  for (int i = op == OPS_WHERE; i < n->narg; i++) {
    const char *d = n->arg[i]->kind == LIST ? NULL : dtype_of(e, n->arg[i]);
    if (d) return d;
  }
  return NULL;
}

/* What a literal below source i of n takes its dtype from: what stands beside it, else the place of n. */
static const char *like_of(const Emit *e, const Node *n, int i, const char *like) {
  int op = n->kind == OPVAR ? e->op : n->op;
  if (n->kind != OPN && n->kind != OPVAR) return like;
  if (op == OPS_WHERE && !i) return "DT_BOOL";
  if (op == OPS_CAST || op == OPS_BITCAST) return dtype_of(e, n->arg[0]);
  if (ops[op].flags & CMP) {
    const char *d = dtype_of(e, n->arg[0]);
    return d ? d : dtype_of(e, n->arg[1]);
  }
  const char *d = dtype_of(e, n);
  return d ? d : like;
}

static const char *literal(const Emit *e, const Node *n, const char *like) {
  if (e->grad) return format("gradient_number(rw, g, %.17g)", n->real);
  if (!like) refuse(e->rule->line, "no name says the dtype of a literal");
  if (!n->is_real) return format("rule_const(rw, self, %s, %lld)", like, n->lit);
  if (isinf(n->real)) return format("rule_real(rw, self, %s, %sINFINITY)", like, n->real < 0 ? "-" : "");
  if (isnan(n->real)) return format("rule_real(rw, self, %s, NAN)", like);
  return format("rule_real(rw, self, %s, %a)", like, n->real);
}

/* The arg of a node that is made. */
static const char *arg_value(const Emit *e, const Node *n, int op) {
  if (*n->arg_of) return format("%s->arg", path_of(e, n->arg_of));
  if (!*n->arg_text) return "ARG0";
  if (ops[op].arg == ARG_REDUCE) return format("(Arg){.reduce = {NULL, OPS_%s}}", op_word(e, n->arg_text));
  return format("(Arg){.i = %s}", ops[op].arg == ARG_GATED ? "1" : n->arg_text);
}

/* A node with a dtype, an arg or a list that no shorter function makes. */
static const char *new_node(const Emit *e, const Node *n, int op, const char *const *src) {
  const char *parts = "";
  for (int i = 0; i < n->narg; i++)
    parts = format("%s%s%s", parts, i ? ", " : "",
                   n->arg[i]->kind == LIST ? src[i] : format("rule_one(%s)", src[i]));
  const char *d = n->dtype == -1 ? "DT_COUNT" : dtype_of(e, n);
  if (!n->narg) return format("rule_new(rw, OPS_%s, %s, %s, 0, NULL)", ops[op].name, d, arg_value(e, n, op));
  return format("rule_new(rw, OPS_%s, %s, %s, %d, (UOpList[]){%s})", ops[op].name, d, arg_value(e, n, op),
                n->narg, parts);
}

static bool is_swapped(const Emit *e, const char *name) {
  for (int i = 0; i < e->nat; i++)
    if (!strcmp(e->at[i].name, name)) return e->at[i].swapped;
  return e->root_swap; /* self */
}

static const char *result(Emit *e, const Node *n, bool fold, const char *like) {
  const char *src[MAX_SRC], *text = "";
  if (n->kind == NAME || n->kind == LIST) return path_of(e, n->name);
  if (n->kind == LIT) return literal(e, n, like);
  if (n->kind == FOLD) return result(e, n->arg[0], !e->stated, like);
  if (n->kind == CONSTANT) {
    char expr[512];
    guard(e, expr, sizeof expr, n->text, n->text_end);
    return format("rule_const(rw, self, %s, %s)", like, expr);
  }
  for (int i = 0; i < n->narg; i++) {
    src[i] = result(e, n->arg[i], fold, like_of(e, n, i, like));
    text = format("%s, %s", text, src[i]);
  }
  if (n->kind == CALL) return format("%s(rw%s)", n->name, text);
  if (*n->order_of && is_swapped(e, n->order_of)) {
    const char *first = src[0];
    src[0] = src[1], src[1] = first;
    text = format(", %s, %s", src[0], src[1]);
  }
  int op = n->kind == OPVAR ? e->op : n->op;
  const char *name = ops[op].name;
  bool list = false, plain = n->dtype == -1 && !*n->arg_text && !*n->arg_of;
  for (int i = 0; i < n->narg; i++)
    list |= n->arg[i]->kind == LIST;
  if (fold) {
    const char *to = op == OPS_CAST ? n->dtype == -1 ? "(DType)self->dtype" : dtype_of(e, n) : "DT_VOID";
    return format("rule_fold(rw, OPS_%s, %s%s%s)", name, to, text,
                  &", NULL, NULL"[6 * TG_MIN(n->narg - 1, 2)]);
  }
  if (op == OPS_CAST && !*n->arg_of)
    return format("uop_cast(rw->st, %s, %s)", src[0], n->dtype == -1 ? "(DType)self->dtype" : dtype_of(e, n));
  if (list || !plain || !(ops[op].flags & (U | B | T))) return new_node(e, n, op, src);
  if (op == OPS_WHERE) return format("uop_where(rw->st%s)", text);
  return n->narg < 3 ? format("uop_alu%d(rw->st, OPS_%s%s)", n->narg, name, text)
                     : format("rule_new3(rw, OPS_%s%s)", name, text);
}

static void emit_gradients(Emit *e, const Rule *r, const char *note) {
  const Node *res[] = {r->res, r->more[0], r->more[1]};
  fprintf(e->out, "    if (%s) {   /* %s, %s:%d */%s\n", *e->cond ? e->cond : "true", r->name, file, r->line,
          note);
  for (int i = 0; i < 3; i++)
    if (res[i])
      fprintf(e->out, "      if (!(out[%d] = %s)) return 0;\n", i ^ (i < 2 ? e->root_swap : 0),
              result(e, res[i], false, NULL));
  fprintf(e->out, "      return 1;\n    }\n");
}

static void emit_rule(FILE *out, const Rule *r, int op) { /* op: the one that it stands for */
  for (unsigned swaps = 0, end = 1; swaps < end; swaps++) {
    Emit e = {.out = out, .rule = r, .op = op, .swaps = swaps, .grad = r->grad};
    char g[1024];
    match(&e, r, r->pat, "self");
    end = 1u << e.nswap;
    if (r->guard) {
      guard(&e, g, sizeof g, r->guard, r->guard_end);
      cond(&e, strstr(g, "||") ? "(%s)" : "%s", g);
    }
    if (r->grad) {
      emit_gradients(&e, r, swaps ? "   /* swapped */" : "");
      continue;
    }
    const char *res = result(&e, r->res, false, "(DType)self->dtype");
    const char *c = *e.cond ? e.cond : "true";
    fprintf(out, "    if (%s) FIRE(\"%s\", \"%s:%d\", %s);%s\n", c, r->name, file, r->line, res,
            swaps ? "   /* swapped */" : "");
  }
}

static bool is_base_declared(const char *name) {
  for (int i = 0; i < nmatchers; i++)
    if (!strcmp(matchers[i].name, name)) return true;
  return false;
}

/* only: of rules first .. end the case of one op that they stand for; -1: all of them. */
static void emit_function(FILE *out, const char *linkage, const MatcherDef *m, const char *name, int first,
                          int end, int only) {
  const char *none = m->grad ? "-1" : "NULL";
  if (m->grad)
    fprintf(out, "%sint %s(Rewrite *rw, UOp *self, UOp *g, UOp **out) {\n", linkage, name);
  else
    fprintf(out, "%sUOp *%s(Rewrite *rw, UOp *self) {\n", linkage, name);
  if (*m->ctx) fprintf(out, "  %s ctx = rw->ctx;\n  (void)ctx;\n", m->ctx);
  if (only < 0)
    for (int i = 0; i < m->nbase; i++)
      fprintf(out, "  UOp *base%d = %s(rw, self);\n  if (base%d) return base%d;\n", i, m->base[i], i, i);
  if (m->guard) {
    char g[512];
    guard(&(Emit){.rule = &(Rule){.ctx = *m->ctx != 0}}, g, sizeof g, m->guard, m->guard_end);
    fprintf(out, "  if (!(%s)) return NULL;\n", g);
  }
  fprintf(out,
          "  UOp *s0 = SRC(self, 0), *s1 = SRC(self, 1), *s2 = SRC(self, 2)%s;\n  (void)s0, (void)s1, "
          "(void)s2, (void)rw%s;\n  switch (self->op) {\n",
          m->grad ? "" : ", *fired", m->grad ? "" : ", (void)fired");
  for (int op = 0; op < OPS_COUNT; op++) {
    bool any = false;
    for (int i = first; i < end; i++)
      for (int v = 0; v < OPS_COUNT; v++) {
        if (!stands_for(&rules[i], v) || root_op(&rules[i], v) != op || (only >= 0 && v != only)) continue;
        if (!any) fprintf(out, "  case OPS_%s:\n", ops[op].name);
        any = true;
        emit_rule(out, &rules[i], v);
      }
    if (any) fprintf(out, "    return %s;\n", none);
  }
  fprintf(out, "  default: return %s;\n  }\n}\n", none);
}

/* For tests: the matchers of the file. */
static void emit_names(FILE *out) {
  fprintf(out, "const MatcherName matchers_%.*s[] = {", (int)strcspn(file, "."), file);
  for (int m = 0; m < nmatchers; m++)
    if (!matchers[m].grad) fprintf(out, "{\"%s\", %s}, ", matchers[m].name, matchers[m].name);
  fprintf(out, "{NULL, NULL}};\n");
}

/* ---- for the checker: a function that makes random graphs of the pattern's shape; v: the op that the rule
 * stands for */
static bool is_alu(const Node *n, int v) {
  int op = n->kind == OPVAR ? v : n->op;
  bool ok = n->kind == NAME || n->kind == LIT || (ops[op].flags & (U | B | T));
  for (int i = 0; ok && i < n->narg; i++)
    ok = is_alu(n->arg[i], v);
  return ok;
}

static int emit_name(FILE *out, int *count, int name, int dom, bool constant, int dtype, const char *child) {
  static const char *const text[] = {"ANY",  "INT",    "INDEX", "DATA", "WRAPS",
                                     "BOOL", "SIGNED", "FLOAT", "LIST"};
  int id = (*count)++;
  fprintf(out, "  DType d%d = %s%d);\n  UOp *u%d = gen_name(g, %d, d%d, GEN_%s, %d);\n", id, child, dtype, id,
          name, id, text[dom], constant);
  return id;
}

static int emit_build(FILE *out, const Node *n, int v, int *count, const char *child) {
  if (n->kind == NAME) {
    const Var *of = find_var(n->name);
    return emit_name(out, count, (int)(of - vars), of->dom, of->is_const, of->dtype, child);
  }
  int id = (*count)++, op = n->kind == OPVAR ? v : n->op, kid[MAX_SRC], k = 0;
  fprintf(out, "  DType d%d = %s%d);\n", id, child, n->dtype);
  if (n->kind == LIT) {
    fprintf(out, "  UOp *u%d = gen_literal(g, d%d, %lld);\n", id, id, n->lit);
    return id;
  }
  for (int want = ops[op].nsrc; k < want; k++) {
    const char *of = format("gen_child(g, OPS_%s, d%d, %d, %d, ", ops[op].name, id, k, id == 0);
    kid[k] = k < n->narg ? emit_build(out, n->arg[k], v, count, of)
                         : emit_name(out, count, 64 + k, DOM_ANY, false, -1, of);
  }
  fprintf(out, "  UOp *u%d = gen_op(g, OPS_%s, d%d, %d, (UOp *[]){", id, ops[op].name, id, k);
  for (int j = 0; j < k; j++)
    fprintf(out, "u%d, ", kid[j]);
  fprintf(out, "NULL});\n");
  return id;
}

/* ---- for the prover: the rule as a statement about all values of its names, constants among them. False:
 * its result or guard is a C function. */
static bool calls(const Node *n) {
  if (n->kind == CALL || n->kind == CONSTANT || (n->kind == LIT && n->is_real)) return true;
  for (int i = 0; i < n->narg; i++)
    if (calls(n->arg[i])) return true;
  return false;
}

static bool operand(const Emit *e, const char *end, char *out, size_t cap) { /* of a comparison in a guard */
  if (is("vmin") || is("vmax")) {
    bool hi = is("vmax");
    next(), next();
    snprintf(out, cap, "gen_bound(g, %s, %d), 0", path_of(e, tok), hi);
    next(), next();
  } else if (isdigit((unsigned char)*tok) || is("-")) {
    bool neg = accept("-");
    snprintf(out, cap, "NULL, %s%s", neg ? "-" : "", tok);
    next();
  } else {
    const Var *v = find_var(tok);
    if (!v || !v->is_const || *p == '.') return false;
    snprintf(out, cap, "%s, 0", path_of(e, tok));
    next();
  }
  return tok_at <= end;
}

static bool state_clause(const Emit *e, const char *at, const char *end, char *out, size_t cap) {
  static const char *const cmp[] = {"<", "<=", ">", ">=", "==", "!="};
  char l[100], r[100], o[8];
  p = at, next();
  if (is("fits")) { /* fits(NAME, NAME.dtype) */
    next(), next();
    char n[32];
    strcpy(n, tok);
    next(), next();
    snprintf(out, cap, "gen_fits(g, %s, %s->dtype)", path_of(e, n), path_of(e, tok));
    return true;
  }
  static const char *const known[] = {"is_power", "is_least", "is_plus"};
  p = at, next();
  bool not = accept("!");
  if (find_in(known, TG_COUNT(known), tok) >= 0) { /* what is known of a name, in words */
    char what[32];
    strcpy(what, tok + 3);
    next(), next();
    snprintf(out, cap, "gen_%s(g, %s, %d)", what, path_of(e, tok), !not );
    return !strcmp(what, "plus") || not == !strcmp(what, "least");
  }
  if (is_word() && *p == '(' && !strncmp(p, "(ctx", 4)) { /* what the target has: the rule is true on all */
    snprintf(out, cap, "true");
    return true;
  }
  p = at, next();
  if (operand(e, end, l, sizeof l)) {
    strcpy(o, tok);
    if (find_in(cmp, TG_COUNT(cmp), o) < 0) return false;
    next();
    if (!operand(e, end, r, sizeof r)) return false;
    return snprintf(out, cap, "gen_given(g, \"%s\", %s, %s)", o, l, r) < (int)cap;
  }
  for (p = at, next(); *tok && tok_at < end; next())
    if (is("(") || is("||")) return false;
  guard((Emit *)e, out, cap, at, end); /* of dtypes alone */
  return true;
}

static bool emit_state(FILE *out, const Rule *r, int op) {
  Emit e = {.out = out, .rule = r, .op = op};
  char part[16][256];
  int n = 0;
  if (!is_alu(r->pat, op) || calls(r->res)) return false;
  match(&e, r, r->pat, "self");
  const char *keep = p;
  for (const char *at = r->guard; at && at < r->guard_end; n++) {
    const char *end = strstr(at, "&&");
    if (!end || end > r->guard_end) end = r->guard_end;
    bool ok = n < 16 && state_clause(&e, at, end, part[n], sizeof part[n]);
    if (!ok) {
      p = keep;
      return false;
    }
    at = end < r->guard_end ? end + 2 : end;
  }
  p = keep;
  e.stated = true;
  const char *res = result(&e, r->res, false, "(DType)self->dtype");
  fprintf(out, "static UOp *state_%d_%s(Gen *g, Rewrite *rw, UOp *self) {\n", r->line, ops[op].name);
  fprintf(out, "  UOp *s0 = SRC(self, 0), *s1 = SRC(self, 1), *s2 = SRC(self, 2);\n  (void)s0, (void)s1, "
               "(void)s2, (void)rw, (void)g;\n");
  for (int i = 0; i < n; i++)
    fprintf(out, "  if (!(%s)) return NULL;\n", part[i]);
  fprintf(out, "  return %s;\n}\n", res);
  return true;
}

static void emit_check_of(FILE *out, const MatcherDef *m, const Rule *r, int v) {
  const char *id = format("%d_%s", r->line, ops[v].name);
  int i = (int)(r - rules);
  bool arith = !r->grad && !r->about && is_alu(r->pat, v), stated = false;
  if (arith) {
    emit_function(out, "static ", m, format("match_%s", id), i, i + 1, v);
    fprintf(out, "static UOp *build_%s(Gen *g) {\n", id);
    emit_build(out, r->pat, v, &(int){0}, "gen_dtype(g, ");
    fprintf(out, "  return u0;\n}\n");
    stated = emit_state(out, r, v);
  }
  fprintf(out, "static const RuleCheck check_%s = {\"%s\", \"%s:%d\", OPS_%s, OPS_%s, \"%s\", %d, ", id,
          r->name, file, r->line, ops[root_op(r, v)].name, ops[v].name, m->ctx,
          !r->grad && r->res->kind == CALL);
  fprintf(out, arith ? "build_%s, match_%s, " : "NULL, NULL, ", id, id);
  fprintf(out, stated ? "state_%s};\n" : "NULL};\n", id);
}

static void emit_check(FILE *out) {
  fprintf(out, "#include \"checkrules.h\"\n");
  for (int m = 0; m < nmatchers; m++)
    for (int i = matchers[m].first; i < matchers[m].end; i++)
      for (int v = 0; v < OPS_COUNT; v++)
        if (stands_for(&rules[i], v)) emit_check_of(out, &matchers[m], &rules[i], v);
  fprintf(out, "const RuleCheck *const rules_%.*s[] = {\n", (int)strcspn(file, "."), file);
  for (int i = 0; i < nrules; i++)
    for (int v = 0; v < OPS_COUNT; v++)
      if (stands_for(&rules[i], v)) fprintf(out, "  &check_%d_%s,\n", rules[i].line, ops[v].name);
  fprintf(out, "  NULL\n};\n");
}

int main(int argc, char **argv) {
  bool check = argc == 4 && !strcmp(argv[1], "--check");
  if (argc != 3 && !check) {
    fprintf(stderr, "usage: rulegen [--check] IN.rules OUT.c\n");
    return 2;
  }
  path = argv[argc - 2];
  file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  FILE *in = fopen(path, "r");
  if (!in) {
    perror(path);
    return 1;
  }
  char *line = NULL; /* kept: guards point into it */
  size_t cap = 0;
  for (; getline(&line, &cap, in) >= 0; line = NULL, cap = 0) {
    line_no++;
    line[strcspn(line, "#\n")] = 0;
    p = line;
    next();
    if (!*tok) continue;
    const char *colon = strchr(line, ':');
    if (is("vars")) {
      next();
      read_vars();
    } else if (is("matcher") || is("gradient")) {
      bool grad = is("gradient");
      next();
      read_matcher(grad);
    } else if (is("include")) {
      while (*p == ' ')
        p++;
      if (nincludes == 4) refuse(line_no, "4 files at most are included");
      includes[nincludes++] = p; /* the rest of a line, which is kept */
      for (char *end = line + strlen(line); end > p && end[-1] == ' ';)
        *--end = 0;
    } else if (colon)
      read_rule(colon, tok_at);
    else
      refuse(line_no, "expected vars, matcher or a rule");
  }
  fclose(in);
  free(line);
  for (int m = 0; m < nmatchers && !check; m++)
    check_hidden(matchers[m].first, matchers[m].end);
  const char *to = argv[argc - 1];
  FILE *out = fopen(to, "w");
  if (!out) {
    perror(to);
    return 1;
  }
  fprintf(out,
          "/* %s, made from %s by rulegen: edit the rules, not this. */\n#include \"uop/rules.h\"\n#include "
          "<math.h>\n",
          strrchr(to, '/') ? strrchr(to, '/') + 1 : to, file);
  for (int i = 0; i < nincludes; i++)
    fprintf(out, "#include \"%s\"\n", includes[i]);
  if (check) emit_check(out);
  for (int m = 0; m < nmatchers && !check; m++) {
    for (int i = 0; i < matchers[m].nbase; i++)
      if (!is_base_declared(matchers[m].base[i]))
        fprintf(out, "UOp *%s(Rewrite *rw, UOp *self);\n", matchers[m].base[i]);
    emit_function(out, "", &matchers[m], matchers[m].name, matchers[m].first, matchers[m].end, -1);
  }
  if (!check) emit_names(out);
  if (fclose(out)) {
    perror(to);
    return 1;
  }
  return 0;
}
