/* match.c: a pattern as conditions of C. In: a rule, and which of its operands are exchanged. Out: the
 * conditions under which a node matches, and where the nodes that its names stand for are. */
#include "rulegen.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Lives until the end, like the lines. */
const char *format(const char *fmt, ...) {
  char *text;
  va_list ap;
  va_start(ap, fmt);
  if (vasprintf(&text, fmt, ap) < 0) exit(2);
  va_end(ap);
  return text;
}

const char *op_word(const Emit *e, const char *word) { /* an op's name, the rule's own for `op` */
  return e->rule && !strcmp(word, e->rule->opvar) ? ops[e->op].name : word;
}

const char *path_of(const Emit *e, const char *name) {
  if (!strcmp(name, "self")) return "self";
  if (!strcmp(name, "ctx") && e->rule && e->rule->ctx) return "ctx";
  if (e->grad && !strcmp(name, "g")) return "g";
  for (int i = 0; i < e->nat; i++)
    if (!strcmp(e->at[i].name, name)) return e->at[i].path;
  return "?";
}

void cond(Emit *e, const char *fmt, ...) {
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
  case ARG_GATED:
  case ARG_BOUND: cond(e, "%s->arg.i != 0", at); break;
  default: cond(e, "%s->arg.i == %s", at, n->arg_text);
  }
}

void match(Emit *e, const Rule *r, const Node *n, const char *at) {
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
  if (!root) cond(e, "%s->op == %s", at, op_text(e, n));
  if (n->dtype >= 0) cond(e, "%s->dtype == %s", at, dtypes[n->dtype].name);
  if (n->dtype == -2) cond(e, "%s->dtype == %s->dtype", at, bound(e, n->of));
  if (*n->arg_of) cond(e, "rule_same_arg(%s, %s)", at, bound(e, n->arg_of));
  if (*n->arg_text) match_arg(e, n, op, at);
  if (ops[op].nsrc < 0) cond(e, "%s->nsrc %s %d", at, n->rest ? ">=" : "==", n->narg);
  if (*n->list) set_name(e, n->list, format("rule_rest(%s, %d, %d)", at, n->before, n->narg - n->before));
  bool may_swap = (ops[op].flags & OPF_COMM) && n->narg == 2 && !same_tree(n->arg[0], n->arg[1]) &&
                  !(root && one_order(r, n));
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

void guard(Emit *e, char *out, size_t cap, const char *at, const char *end) {
  const char *keep = line_at;
  size_t n = 0;
  int call = 0, depth = 0; /* call: the depth at which a C call's arguments began */
  out[0] = 0;
  for (line_at = at, tok_next(); *tok && tok_at < end && n + 128 < cap; tok_next()) {
    if (tok_is("(")) depth++;
    if (tok_is(")") && --depth < call) call = 0;
    const char *text = tok;
    char buf[160];
    if (tok_is_word() && *line_at == '(' && (tok_is("vmin") || tok_is("vmax"))) {
      char what[8];
      strcpy(what, tok);
      tok_next(), tok_next();
      snprintf(buf, sizeof buf, "%s->%s", path_of(e, tok), what), text = buf;
      tok_next();
    } else if (tok_is_word() && *line_at == '(')
      call = call ? call : depth + 1;
    else if (tok_is_word() && *line_at == '.' && line_at[1] != '.') { /* a field, or one of it */
      int k = snprintf(buf, sizeof buf, "%s", path_of(e, tok));
      for (const char *to = find_var(tok) && find_var(tok)->dom == DOM_LIST ? "." : "->"; *line_at == '.';
           to = ".") {
        tok_next(), tok_next();
        k += snprintf(buf + k, sizeof buf - (size_t)k, "%s%s", to, tok);
      }
      text = buf;
    } else if (tok_is("..."))
      continue; /* the name before it is the list */
    else if (tok_is_word() && strcmp(path_of(e, tok), "?")) {
      const Var *v = find_var(tok);
      snprintf(buf, sizeof buf, !call && v && v->is_const ? "rule_int(%s)" : "%s", path_of(e, tok)),
          text = buf;
    } else if (tok_is_word() && find_dtype(tok) >= 0) {
      text = dtypes[find_dtype(tok)].name;
    } else if (tok_is_word() && (find_op(op_word(e, tok)) >= 0)) {
      snprintf(buf, sizeof buf, "OPS_%s", op_word(e, tok)), text = buf;
    }
    bool tight = tok_is("(") || tok_is(")") || tok_is("!") || tok_is(",") || text != tok || !n ||
                 out[n - 1] == '(' || out[n - 1] == '!';
    n += (size_t)snprintf(
        out + n, cap - n, "%s%s",
        !n || tight
            ? (n && (tok_is_word() || text != tok) && out[n - 1] != '(' && out[n - 1] != '!' ? " " : "")
            : " ",
        text);
  }
  line_at = keep;
}
