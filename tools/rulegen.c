/* rulegen.c: *.rules -> C, at build time. In: one file of rules, a name, a pattern, a result and a condition
 * each. Out: one function per matcher, a switch on self->op that tries its rules in file order, both operand
 * orders of commutative ops written out; a `gradient` block instead gives one result per source. Or, with
 * --check, one function per rule, a builder of random instances of its pattern and the rule as a statement,
 * for tools/checkrules.c. Refuses what cannot be meant, as file:line: reason. */
#include "uop/uop.h"
#include <ctype.h>
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
  KERNEL = OPF_KERNEL
};

static const struct {
  const char *name;
  int nsrc;
  unsigned flags;
} ops[] = {

#define OP(name, nsrc, arg, flags, c, meaning) {#name, nsrc, flags},
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
static const char *const domains[] = {"any", "int", "index", "data", "bool", "float"};

enum { DOM_ANY, DOM_INT, DOM_INDEX, DOM_DATA, DOM_BOOL, DOM_FLOAT };

typedef enum Kind { LIT, NAME, OPN, OPVAR, CALL, FOLD, CONSTANT } Kind;
typedef struct Node Node;

struct Node {
  Kind kind;
  int op, dtype, narg; /* dtype: -1 none, -2 taken from the node named in `of` */
  bool rest;
  long long lit;
  bool is_real; /* LIT: 0.5, in the results of gradient rules alone */
  double real;
  char name[32], bind[32], of[32];
  const char *text, *text_end; /* CONSTANT: the integer expression */
  Node *arg[4];
};

typedef struct Var {
  char name[32];
  int dom;
  bool is_const;
} Var;

typedef struct Rule {
  char name[40];
  int line;
  bool grad;
  Node *pat, *res, *more[2]; /* more: gradients of sources 1, 2; NULL: none */
  uint64_t ops[2];
  char opvar[32];
  const char *guard, *guard_end;
} Rule;

typedef struct MatcherDef {
  char name[40], base[4][40];
  int nbase, first, end, line;
  bool grad;
  const char *guard, *guard_end;
} MatcherDef;

/* as given; without its folder; a header that the rules' C functions are in */
static const char *path, *file, *include;
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
  static const char *const two[] = {"...", "=>", "//", "!=", "==", "<=", ">=", "&&", "||"};
  while (*p == ' ' || *p == '\t')
    p++;
  tok_at = p;
  size_t n = 0;
  if (isalpha((unsigned char)*p) || *p == '_')
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
      n++;
  else if (isdigit((unsigned char)*p)) {
    while (isdigit((unsigned char)p[n]))
      n++;
    if (p[n] == '.' && isdigit((unsigned char)p[n + 1]))
      for (n++; isdigit((unsigned char)p[n]);)
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

static Node *primary(void) {
  if (accept("(")) {
    Node *n = expr(0);
    expect(")");
    return n;
  }
  if (isdigit((unsigned char)*tok) || is("-")) {
    Node *n = node(LIT);
    bool neg = accept("-");
    if (!isdigit((unsigned char)*tok)) refuse(line_no, "expected a number after '-', found '%s'", tok);
    n->lit = strtoll(tok, NULL, 10) * (neg ? -1 : 1);
    n->real = strtod(tok, NULL) * (neg ? -1 : 1), n->is_real = strchr(tok, '.') != NULL;
    next();
    return n;
  }
  if (!is_word()) refuse(line_no, "expected an expression, found '%s'", *tok ? tok : "end of line");
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
  if (accept("[")) {
    if (is("self") || find_var(tok) || p[0] == '.') {
      strcpy(n->of, tok), n->dtype = -2;
      next();
      expect(".");
      expect("dtype");
    } else {
      if ((n->dtype = find_dtype(tok)) < 0) refuse(line_no, "unknown dtype %s", tok);
      next();
    }
    expect("]");
  }
  expect("(");
  if (n->kind == CONSTANT) {
    n->text = tok_at, n->text_end = skip_guard(true);
    expect(")");
    return n;
  }
  while (!is(")")) {
    if (accept("...")) {
      n->rest = true;
      break;
    }
    if (n->narg == 4) refuse(line_no, "more than 4 sources");
    n->arg[n->narg++] = expr(0);
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
  if ((n->kind == NAME && !strcmp(n->name, name)) || !strcmp(n->bind, name)) return n;
  for (int i = 0; i < n->narg; i++) {
    Node *r = find_name(n->arg[i], name);
    if (r) return r;
  }
  return NULL;
}

static void check_arity(const Rule *r, const Node *n, int op, bool pattern) {
  int want = ops[op].nsrc;
  if (n->rest && !pattern) refuse(r->line, "'...' on the right of %s", r->name);
  if (want >= 0 && (n->rest ? n->narg > want : n->narg != want))
    refuse(r->line, "op %s takes %d sources, not %d", ops[op].name, want, n->narg);
}

static bool each_op(const Rule *r, int op) { return r->ops[op / 64] >> (op % 64) & 1; }

static void resolve(Rule *r, Node *n, bool pattern) {
  if (n->kind == CALL && *r->opvar && !strcmp(n->name, r->opvar)) {
    n->kind = OPVAR;
    if (pattern && n != r->pat) refuse(r->line, "'%s' must be the root of the pattern", r->opvar);
    for (int op = 0; op < OPS_COUNT; op++)
      if (each_op(r, op)) check_arity(r, n, op, pattern);
  }
  if (n->kind == OPN) check_arity(r, n, n->op, pattern);
  if (pattern && n->kind == CALL) refuse(r->line, "unknown op %s in the pattern", n->name);
  if (pattern && (n->kind == FOLD || n->kind == CONSTANT)) refuse(r->line, "%s() in the pattern", n->name);
  if (n->kind == FOLD && (n->narg != 1 || n->arg[0]->kind == LIT || n->arg[0]->kind == NAME))
    refuse(r->line, "fold() takes one operation");
  if (n->dtype == -2 && strcmp(n->of, "self") && !find_name(r->pat, n->of))
    refuse(r->line, "name '%s' is not in the pattern", n->of);
  if (n->kind == NAME && pattern && !find_var(n->name)) refuse(r->line, "name '%s' is not in vars", n->name);
  if (n->kind == LIT && n->is_real && (pattern || !r->grad))
    refuse(r->line, "a fraction outside the result of a gradient rule");
  if (r->grad && (n->kind == FOLD || n->kind == CONSTANT))
    refuse(r->line, "%s() in a gradient rule", n->name);
  if (n->kind == NAME && !pattern && r->grad && !strcmp(n->name, "g")) return;
  if (n->kind == NAME && !pattern && strcmp(n->name, "self") && !find_name(r->pat, n->name))
    refuse(r->line, "name '%s' is not in the pattern", n->name);
  for (int i = 0; i < n->narg; i++)
    resolve(r, n->arg[i], pattern);
}

static void check_guard(const Rule *r, const Node *pat, const char *at, const char *end, int line) {
  const char *keep = p;
  for (p = at, next(); tok_at < end; next()) {
    if (!is_word()) continue;
    char name[32];
    strcpy(name, tok);
    while (*p == ' ')
      p++;
    if (*p == '(' || !strcmp(name, "self") || find_dtype(name) >= 0) continue;
    if (*p == '.') {
      if (!r || !find_name((Node *)pat, name)) refuse(line, "name '%s' is not in the pattern", name);
      next();
      next();
      continue;
    }
    if (tok_at > at && tok_at[-1] == '.') continue;
    if (!r || !find_name((Node *)pat, name)) refuse(line, "name '%s' is not in the pattern", name);
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
  if (a->kind != b->kind || a->narg != b->narg || a->rest != b->rest || a->lit != b->lit || a->op != b->op ||
      strcmp(a->name, b->name))
    return false;
  for (int i = 0; i < a->narg; i++)
    if (!same(a->arg[i], b->arg[i])) return false;
  return a->kind != OPN || a->dtype == b->dtype;
}

static bool dom_within(int in, int out) {
  return out == DOM_ANY || in == out ||
         (out == DOM_INT && (in == DOM_INDEX || in == DOM_DATA || in == DOM_BOOL)) ||
         (out == DOM_DATA && in == DOM_BOOL);
}

static bool covers(const Node *a, int aop, const Node *b, int bop, Bound *bd) {
  if (a->kind == NAME) {
    const Var *va = find_var(a->name), *vb = b->kind == NAME ? find_var(b->name) : NULL;
    if (va->is_const && b->kind != LIT && !(vb && vb->is_const)) return false;
    if (!dom_within(vb ? vb->dom : DOM_ANY, va->dom)) return false;
    for (int i = 0; i < bd->n; i++)
      if (!strcmp(bd->name[i], a->name)) return same(bd->to[i], b);
    if (bd->n == 16) return false;
    bd->name[bd->n] = a->name, bd->to[bd->n++] = b;
    return true;
  }
  if (a->kind == LIT) return b->kind == LIT && a->lit == b->lit;
  if (a->kind == OPN) aop = a->op;
  if (b->kind == OPN)
    bop = b->op;
  else if (b->kind != OPVAR)
    return false;
  if (aop != bop || (a->dtype != -1 && a->dtype != b->dtype) ||
      (a->rest ? b->narg < a->narg : a->narg != b->narg || b->rest))
    return false;
  Bound keep = *bd;
  bool ok = true;
  for (int i = 0; ok && i < a->narg; i++)
    ok = covers(a->arg[i], -1, b->arg[i], -1, bd);
  if (ok || !(ops[aop].flags & COMM) || a->narg != 2) return ok;
  *bd = keep;
  return covers(a->arg[0], -1, b->arg[1], -1, bd) && covers(a->arg[1], -1, b->arg[0], -1, bd);
}

static bool has_rule_op(const Rule *r, int op) {
  return r->pat->kind == OPN ? r->pat->op == op : each_op(r, op);
}

static bool may_decline(const Node *n) {
  if (n->kind == CALL || n->kind == FOLD || n->kind == CONSTANT || n->kind == LIT) return true;
  for (int i = 0; i < n->narg; i++)
    if (may_decline(n->arg[i])) return true;
  return false;
}

static void check_hidden(int first, int end) {
  for (int b = first; b < end; b++) {
    int by = -1;
    for (int op = 0, seen = 0; op < OPS_COUNT; op++) {
      if (!has_rule_op(&rules[b], op)) continue;
      int hit = -1;
      for (int a = first; a < b && hit < 0; a++) {
        const Rule *ra = &rules[a];
        bool lit = ra->res && ra->res->kind == LIT; /* a literal declines on vectors alone, as it does in b */
        if (ra->guard || (!ra->grad && may_decline(ra->res) && !lit) || !has_rule_op(ra, op)) continue;
        if (covers(ra->pat, op, rules[b].pat, op, &(Bound){0})) hit = a;
      }
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
      if (find_op(tok) >= 0 || find_var(tok) || is("self")) refuse(line_no, "the name '%s' is taken", tok);
      if (nvars == 64) refuse(line_no, "more than 64 names");
      strcpy(vars[nvars++].name, tok);
      next();
    }
    expect(":");
    bool con = accept("CONST");
    int dom = find_in(domains, TG_COUNT(domains), tok);
    if (dom < 0 && !con) refuse(line_no, "unknown domain %s", tok);
    if (con) {
      while (*p == ' ')
        p++;
      if (*p == ':' || find_var(tok)) dom = -1;
    }
    if (dom >= 0) next();
    if (first == nvars) refuse(line_no, "a domain with no names");
    for (int i = first; i < nvars; i++)
      vars[i].dom = dom < 0 ? DOM_ANY : dom, vars[i].is_const = con;
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
  if (is("if")) {
    next();
    m->guard = tok_at, m->guard_end = skip_guard(false);
    check_guard(NULL, NULL, m->guard, m->guard_end, line_no);
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
  r->line = line_no;
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
  expect("=>");
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
  if (*r->opvar && r->pat->kind != OPVAR) refuse(line_no, "'%s' must be the root of the pattern", r->opvar);
  if (r->res) resolve(r, r->res, false);
  for (int i = 0; i < 2; i++)
    if (r->more[i]) resolve(r, r->more[i], false);
  if (r->guard) check_guard(r, r->pat, r->guard, r->guard_end, line_no);
  matchers[nmatchers - 1].end = ++nrules;
}

/* ---- writing C */
typedef struct Emit {
  FILE *out;
  char cond[2048];

  struct {
    char name[32], path[96];
  } at[24];

  int nat, op;
  unsigned swaps;
  int nswap, root_swap;
  bool grad, stated;
} Emit;

static const char *path_of(const Emit *e, const char *name) {
  if (!strcmp(name, "self")) return "self";
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
  strcpy(e->at[e->nat].name, name);
  snprintf(e->at[e->nat++].path, 96, "%s", at);
  return true;
}

static bool plain_names(const Node *n) {
  return n->arg[0]->kind == NAME && n->arg[1]->kind == NAME &&
         find_var(n->arg[0]->name)->dom == find_var(n->arg[1]->name)->dom &&
         find_var(n->arg[0]->name)->is_const == find_var(n->arg[1]->name)->is_const;
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
    if (v->is_const) cond(e, "is_const(%s)", at);
    if (v->dom != DOM_ANY) cond(e, "in_%s(%s)", domains[v->dom], at);
    return;
  }
  int op = n->kind == OPVAR ? e->op : n->op;
  bool root = n == r->pat;
  if (!root) cond(e, "%s->op == OPS_%s", at, ops[op].name);
  if (n->dtype >= 0) cond(e, "%s->dtype == %d /* %s */", at, n->dtype, dtypes[n->dtype].text);
  if (ops[op].nsrc < 0) cond(e, "%s->nsrc %s %d", at, n->rest ? ">=" : "==", n->narg);
  bool may_swap =
      (ops[op].flags & COMM) && n->narg == 2 && !same(n->arg[0], n->arg[1]) &&
      !(plain_names(n) && root && !r->guard && (r->grad || r->res->kind == FOLD || r->res->kind == CALL));
  int swap = may_swap ? (int)(e->swaps >> e->nswap++ & 1) : 0;
  if (root) e->root_swap = swap;
  for (int k = 0; k < 2; k++) /* simple sources first: they are cheap to test and bind names */
    for (int i = 0; i < n->narg; i++) {
      Node *a = n->arg[i];
      if ((a->kind == OPN) != (k == 1)) continue;
      char sub[96];
      if (root)
        snprintf(sub, sizeof sub, "s%d", i ^ swap);
      else
        snprintf(sub, sizeof sub, "%.70s->src[%d]", at, i ^ swap);
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
    else if (is_word() && *p == '.') {
      const char *who = path_of(e, tok);
      next(), next();
      snprintf(buf, sizeof buf, "%s->%s", who, tok), text = buf;
    } else if (is_word() && strcmp(path_of(e, tok), "?")) {
      const Var *v = find_var(tok);
      snprintf(buf, sizeof buf, !call && v && v->is_const ? "rule_int(%s)" : "%s", path_of(e, tok)),
          text = buf;
    } else if (is_word() && find_dtype(tok) >= 0) {
      text = dtypes[find_dtype(tok)].name;
    }
    bool tight = is("(") || is(")") || is("!") || text != tok || !n || out[n - 1] == '(' || out[n - 1] == '!';
    n += (size_t)snprintf(
        out + n, cap - n, "%s%s",
        !n || tight ? (n && (is_word() || text != tok) && out[n - 1] != '(' && out[n - 1] != '!' ? " " : "")
                    : " ",
        text);
  }
  p = keep;
}

static void result(Emit *e, const Node *n, bool fold, char *out, size_t cap) {
  char a[4][512] = {"", "", "", ""};
  switch (n->kind) {
  case NAME: snprintf(out, cap, "%s", path_of(e, n->name)); return;
  case LIT:
    if (e->grad) {
      snprintf(out, cap, "gradient_number(rw, g, %.17g)", n->real);
      return;
    }
    snprintf(out, cap, "rule_const(rw, self, %lld)", n->lit);
    return;
  case CONSTANT: {
    guard(e, a[0], sizeof a[0], n->text, n->text_end);
    snprintf(out, cap, "rule_const(rw, self, %s)", a[0]);
    return;
  }
  case FOLD: result(e, n->arg[0], !e->stated, out, cap); return;
  default: break;
  }
  for (int i = 0; i < n->narg; i++) {
    const Node *other = n->kind == OPN && n->narg == 2 ? n->arg[1 - i] : NULL;
    /* a literal beside a name has its dtype */
    if (!e->grad && n->arg[i]->kind == LIT && other && other->kind == NAME)
      snprintf(a[i], sizeof a[i], "rule_const(rw, %s, %lld)", path_of(e, other->name), n->arg[i]->lit);
    else
      result(e, n->arg[i], fold, a[i], sizeof a[i]);
  }
  int op = n->kind == OPVAR ? e->op : n->op;
  char dt[64] = "self->dtype";
  if (n->dtype >= 0)
    snprintf(dt, sizeof dt, "%d /* %s */", n->dtype, dtypes[n->dtype].text);
  else if (n->dtype == -2)
    snprintf(dt, sizeof dt, "%.48s->dtype", path_of(e, n->of));
  size_t k = 0;
  if (n->kind == CALL)
    k = (size_t)snprintf(out, cap, "%s(rw", n->name);
  else if (fold)
    k = (size_t)snprintf(out, cap, "rule_fold(rw, OPS_%s, (DType)%s", ops[op].name,
                         op == OPS_CAST ? dt : "DT_VOID");
  else if (op == OPS_CAST) {
    snprintf(out, cap, "uop_cast(rw->st, %s, (DType)%s)", a[0], dt);
    return;
  } else if (op == OPS_WHERE) {
    snprintf(out, cap, "uop_where(rw->st, %s, %s, %s)", a[0], a[1], a[2]);
    return;
  } else if (n->narg == 1 || n->narg == 2)
    k = (size_t)snprintf(out, cap, "uop_alu%d(rw->st, OPS_%s", n->narg, ops[op].name);
  else
    k = (size_t)snprintf(out, cap, "rule_new3(rw, OPS_%s", ops[op].name);
  for (int i = 0; i < n->narg; i++)
    k += (size_t)snprintf(out + k, cap - k, ", %s", a[i]);
  if (fold && n->kind != CALL)
    for (int i = n->narg; i < 3; i++)
      k += (size_t)snprintf(out + k, cap - k, ", NULL");
  snprintf(out + k, cap - k, ")");
}

static void emit_gradients(Emit *e, const Rule *r, const char *note) {
  const Node *res[] = {r->res, r->more[0], r->more[1]};
  fprintf(e->out, "    if (%s) {   /* %s, %s:%d */%s\n", *e->cond ? e->cond : "true", r->name, file, r->line,
          note);
  for (int i = 0; i < 3; i++) {
    char text[2048];
    if (!res[i]) continue;
    result(e, res[i], false, text, sizeof text);
    fprintf(e->out, "      if (!(out[%d] = %s)) return 0;\n", i ^ (i < 2 ? e->root_swap : 0), text);
  }
  fprintf(e->out, "      return 1;\n    }\n");
}

static void emit_rule(FILE *out, const Rule *r, int op) {
  for (unsigned swaps = 0, end = 1; swaps < end; swaps++) {
    Emit e = {.out = out, .op = op, .swaps = swaps, .grad = r->grad};
    char g[1024], res[2048];
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
    result(&e, r->res, false, res, sizeof res);
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

static void emit_function(FILE *out, const char *linkage, const MatcherDef *m, const char *name, int first,
                          int end, int only_op) {
  const char *none = m->grad ? "-1" : "NULL";
  if (m->grad)
    fprintf(out, "%sint %s(Rewrite *rw, UOp *self, UOp *g, UOp **out) {\n", linkage, name);
  else
    fprintf(out, "%sUOp *%s(Rewrite *rw, UOp *self) {\n", linkage, name);
  if (m->guard) {
    char g[512];
    guard(&(Emit){0}, g, sizeof g, m->guard, m->guard_end);
    fprintf(out, "  if (!(%s)) return NULL;\n", g);
  }
  if (only_op < 0)
    for (int i = 0; i < m->nbase; i++)
      fprintf(out, "  UOp *base%d = %s(rw, self);\n  if (base%d) return base%d;\n", i, m->base[i], i, i);
  fprintf(out,
          "  UOp *s0 = SRC(self, 0), *s1 = SRC(self, 1), *s2 = SRC(self, 2)%s;\n  (void)s0, (void)s1, "
          "(void)s2, (void)rw%s;\n  switch (self->op) {\n",
          m->grad ? "" : ", *fired", m->grad ? "" : ", (void)fired");
  for (int op = 0; op < OPS_COUNT; op++) {
    if (only_op >= 0 && op != only_op) continue;
    bool any = false;
    for (int i = first; i < end; i++) {
      if (!has_rule_op(&rules[i], op)) continue;
      if (!any) fprintf(out, "  case OPS_%s:\n", ops[op].name);
      any = true;
      emit_rule(out, &rules[i], op);
    }
    if (any) fprintf(out, "    return %s;\n", none);
  }
  fprintf(out, "  default: return %s;\n  }\n}\n", none);
}

/* ---- for the checker: a function that makes random graphs of the pattern's shape */
static int emit_build(FILE *out, const Rule *r, const Node *n, int op, int *count, int parent_op, int parent,
                      int i) {
  int id = (*count)++;
  if (parent < 0)
    fprintf(out, "  DType d%d = gen_dtype(g);\n", id);
  else
    fprintf(out, "  DType d%d = gen_child(g, OPS_%s, d%d, %d, %d);\n", id, ops[parent_op].name, parent, i,
            parent == 0);
  if (n->kind == LIT)
    fprintf(out, "  UOp *u%d = gen_literal(g, d%d, %lld);\n", id, id, n->lit);
  else if (n->kind == NAME) {
    const Var *v = find_var(n->name);
    static const char *const D[] = {"ANY", "INT", "INDEX", "DATA", "BOOL", "FLOAT"};
    fprintf(out, "  UOp *u%d = gen_name(g, %d, d%d, GEN_%s, %d);\n", id, (int)(v - vars), id, D[v->dom],
            v->is_const);
  } else {
    if (n->kind == OPN) op = n->op;
    if (n->dtype >= 0) fprintf(out, "  d%d = gen_force(g, d%d, %d);\n", id, id, n->dtype);
    int kid[4], k = 0, want = ops[op].nsrc < 0 ? n->narg : ops[op].nsrc;
    for (; k < n->narg; k++)
      kid[k] = emit_build(out, r, n->arg[k], -1, count, op, id, k);
    for (; k < want && k < 4; k++) {
      kid[k] = (*count)++;
      fprintf(out,
              "  DType d%d = gen_child(g, OPS_%s, d%d, %d, %d);\n  UOp *u%d = gen_name(g, %d, d%d, GEN_ANY, "
              "0);\n",
              kid[k], ops[op].name, id, k, id == 0, kid[k], 64 + k, kid[k]);
    }
    fprintf(out, "  UOp *u%d = gen_op(g, OPS_%s, d%d, %d, (UOp *[]){", id, ops[op].name, id, k);
    for (int j = 0; j < k; j++)
      fprintf(out, "u%d, ", kid[j]);
    fprintf(out, "NULL});\n");
  }
  return id;
}

/* ---- for the prover: the rule as a statement about all values of its names, constants among them. False:
 * its result or guard is a C function. */
static bool calls(const Node *n) {
  if (n->kind == CALL || n->kind == CONSTANT) return true;
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
  Emit e = {.out = out, .op = op};
  char res[2048], part[16][256];
  int n = 0;
  if (!(ops[op].flags & (U | B | T)) || calls(r->res)) return false;
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
  result(&e, r->res, false, res, sizeof res);
  fprintf(out, "static UOp *state_%d_%s(Gen *g, Rewrite *rw, UOp *self) {\n", r->line, ops[op].name);
  fprintf(out, "  UOp *s0 = SRC(self, 0), *s1 = SRC(self, 1), *s2 = SRC(self, 2);\n  (void)s0, (void)s1, "
               "(void)s2, (void)rw, (void)g;\n");
  for (int i = 0; i < n; i++)
    fprintf(out, "  if (!(%s)) return NULL;\n", part[i]);
  fprintf(out, "  return %s;\n}\n", res);
  return true;
}

static void emit_check(FILE *out, const char *table) {
  static bool stated[512][OPS_COUNT];
  for (int i = 0; i < nrules; i++)
    if (rules[i].grad) refuse(rules[i].line, "gradient rules are not equations");
  fprintf(out, "#include \"checkrules.h\"\n");
  for (int m = 0; m < nmatchers; m++)
    for (int i = matchers[m].first; i < matchers[m].end; i++)
      for (int op = 0; op < OPS_COUNT; op++) {
        if (!has_rule_op(&rules[i], op)) continue;
        char name[64];
        snprintf(name, sizeof name, "match_%d_%s", rules[i].line, ops[op].name);
        emit_function(out, "static ", &matchers[m], name, i, i + 1, op);
        fprintf(out, "static UOp *build_%d_%s(Gen *g) {\n", rules[i].line, ops[op].name);
        int count = 0;
        emit_build(out, &rules[i], rules[i].pat, op, &count, -1, -1, 0);
        fprintf(out, "  return u0;\n}\n");
        stated[i][op] = emit_state(out, &rules[i], op);
      }
  fprintf(out, "const RuleCheck %s[] = {\n", table);
  for (int i = 0; i < nrules; i++)
    for (int op = 0; op < OPS_COUNT; op++)
      if (has_rule_op(&rules[i], op)) {
        int arith = (ops[op].flags & (U | B | T)) != 0, l = rules[i].line;
        fprintf(out, "  {\"%s\", \"%s:%d\", \"%s\", %d, %d, build_%d_%s, match_%d_%s, ", rules[i].name, file,
                l, ops[op].name, arith, rules[i].res->kind == CALL, l, ops[op].name, l, ops[op].name);
        if (stated[i][op])
          fprintf(out, "state_%d_%s},\n", l, ops[op].name);
        else
          fprintf(out, "NULL},\n");
      }
  fprintf(out, "  {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL}\n};\n");
}

int main(int argc, char **argv) {
  bool check = argc == 5 && !strcmp(argv[1], "--check");
  if (argc != 3 && !check) {
    fprintf(stderr, "usage: rulegen IN.rules OUT.c | rulegen --check IN.rules OUT.c TABLE\n");
    return 2;
  }
  path = argv[check ? 2 : 1];
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
      include = p; /* the rest of a line, which is kept */
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
  const char *to = argv[argc - (check ? 2 : 1)];
  FILE *out = fopen(to, "w");
  if (!out) {
    perror(to);
    return 1;
  }
  fprintf(out, "/* %s, made from %s by rulegen: edit the rules, not this. */\n#include \"uop/rules.h\"\n",
          strrchr(to, '/') ? strrchr(to, '/') + 1 : to, file);
  if (include) fprintf(out, "#include \"%s\"\n", include);
  if (check) emit_check(out, argv[4]);
  for (int m = 0; m < nmatchers && !check; m++) {
    for (int i = 0; i < matchers[m].nbase; i++)
      if (!is_base_declared(matchers[m].base[i]))
        fprintf(out, "UOp *%s(Rewrite *rw, UOp *self);\n", matchers[m].base[i]);
    emit_function(out, "", &matchers[m], matchers[m].name, matchers[m].first, matchers[m].end, -1);
  }
  if (fclose(out)) {
    perror(to);
    return 1;
  }
  return 0;
}
