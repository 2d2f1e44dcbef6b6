/* check.c: what a rule may say. In: the trees of a rule. Out: the same, names and lists resolved; or the
 * reason why it is refused: an op that is none, a wrong number of sources, a name that is not in the pattern,
 * a rule that an earlier one hides. */
#include "rulegen.h"
#include <ctype.h>
#include <string.h>

Node *find_name(Node *n, const char *name) {
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
  return f != ARG_NONE && !arg_optional(f);
}

/* Whether `text` is an arg of that form; new: of a node that is made. */
static bool is_arg(ArgForm f, const char *text, bool new) {
  switch (f) {
  case ARG_REDUCE: return find_op(text) >= 0;
  case ARG_AXES:
  case ARG_SCATTER: return !new &&find_op(text) >= 0;
  case ARG_RANGE: return !new &&find_in(axis_types, naxis_types, text) >= 0;
  case ARG_GATED:
  case ARG_BOUND: return !strcmp(text, arg_word(f));
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
bool stands_for(const Rule *r, int v) { return *r->opvar ? each_op(r, v) : r->pat->op == v; }

int root_op(const Rule *r, int v) { return r->pat->kind == OPVAR ? v : r->pat->op; }

bool has_opvar(const Rule *r, const Node *n) {
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
  if (!of || of->kind != OPN || !(ops[of->op].flags & OPF_COMM))
    refuse(r->line, "'%s' has no operands that the pattern exchanges", n->order_of);
  if (n->narg != 2) refuse(r->line, "%s has no two operands to exchange", n->name);
}

void resolve(Rule *r, Node *n, bool pattern) {
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

void check_guard(const Rule *r, Node *pat, const char *at, const char *end, int line) {
  const char *keep = line_at;
  for (line_at = at, tok_next(); tok_at < end; tok_next()) {
    if (!tok_is_word() || (tok_at > at && tok_at[-1] == '.')) continue; /* a field */
    char name[32];
    strcpy(name, tok);
    while (*line_at == ' ')
      line_at++;
    if (*line_at == '(' || !strcmp(name, "self") || find_dtype(name) >= 0 || find_op(name) >= 0) continue;
    if (!strcmp(name, r->opvar) || (r->ctx && !strcmp(name, "ctx"))) continue;
    if (!pat || !find_name(pat, name)) refuse(line, "name '%s' is not in the pattern", name);
    bool list = find_var(name) && find_var(name)->dom == DOM_LIST, dots = !strncmp(line_at, "...", 3);
    if (list ? !dots && *line_at != '.' : dots)
      refuse(line, list ? "'%s' is a list: %s..." : "'%s' is no list: %s", name, name);
  }
  line_at = keep;
}

/* Does every graph that b matches also match a? `bound` remembers which part of b each name of a stands for.
 */
typedef struct Bound {
  const char *name[16];
  const Node *to[16];
  int n;
} Bound;

bool same_tree(const Node *a, const Node *b) {
  if (a->kind != b->kind || a->narg != b->narg || a->rest != b->rest || a->before != b->before ||
      a->lit != b->lit || a->op != b->op || strcmp(a->name, b->name) || strcmp(a->arg_text, b->arg_text) ||
      strcmp(a->arg_of, b->arg_of))
    return false;
  for (int i = 0; i < a->narg; i++)
    if (!same_tree(a->arg[i], b->arg[i])) return false;
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
      if (!strcmp(bd->name[i], a->name)) return same_tree(bd->to[i], b);
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
  if (ok || !(ops[aop].flags & OPF_COMM) || a->narg != 2) return ok;
  *bd = keep;
  return covers(a->arg[0], av, b->arg[1], bv, bd) && covers(a->arg[1], av, b->arg[0], bv, bd);
}

bool may_decline(const Node *n) {
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

void check_hidden(int first, int end) {
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
