/* write.c: rules as functions of C. In: the rules of a matcher. Out: a switch on self->op that tries them in
 * file order, each in all orders of its operands. */
#include "rulegen.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the result as an expression of C */

/* The op of a node, in C. Where the rule stands for several ops and the root of its pattern is one of
 * them, it is the op that the root has: so the cases of those ops are the same text, and emit_function
 * writes them once. */
const char *op_text(const Emit *e, const Node *n) {
  bool is_root = n->kind == OPVAR && e->rule->pat->kind == OPVAR;
  return is_root ? "(Ops)self->op" : format("OPS_%s", ops[n->kind == OPVAR ? e->op : n->op].name);
}

/* The dtype of a node of the result, in C; NULL: it has the one of its place. */
static const char *dtype_of(const Emit *e, const Node *n) {
  int op = n->kind == OPVAR ? e->op : n->op;
  if (n->kind == NAME) return format("(DType)%s->dtype", path_of(e, n->name));
  if (n->kind == FOLD) return dtype_of(e, n->arg[0]);
  if (n->kind != OPN && n->kind != OPVAR) return NULL;
  if (n->dtype == -2) return format("(DType)%s->dtype", path_of(e, n->of));
  if (n->dtype >= 0) return dtypes[n->dtype].name;
  if (ops[op].flags & OPF_CMP) return "DT_BOOL";
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
  if (ops[op].flags & OPF_CMP) {
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
  return format("(Arg){.i = %s}", arg_word(ops[op].arg) ? "1" : n->arg_text);
}

/* A node with a dtype, an arg or a list that no shorter function makes. */
static const char *new_node(const Emit *e, const Node *n, int op, const char *const *src) {
  const char *parts = "";
  for (int i = 0; i < n->narg; i++)
    parts = format("%s%s%s", parts, i ? ", " : "",
                   n->arg[i]->kind == LIST ? src[i] : format("rule_one(%s)", src[i]));
  bool list = false, typed = n->dtype != -1 || *n->arg_text || *n->arg_of;
  for (int i = 0; i < n->narg; i++)
    list |= n->arg[i]->kind == LIST;
  if (!list && !typed && n->narg && n->narg <= 3)
    return format("rule_made(rw, %s, %d, %s, %s, %s)", op_text(e, n), n->narg, src[0],
                  n->narg > 1 ? src[1] : "NULL", n->narg > 2 ? src[2] : "NULL");
  const char *d = n->dtype == -1 ? "DT_COUNT" : dtype_of(e, n);
  if (!n->narg) return format("rule_new(rw, %s, %s, %s, 0, NULL)", op_text(e, n), d, arg_value(e, n, op));
  return format("rule_new(rw, %s, %s, %s, %d, (UOpList[]){%s})", op_text(e, n), d, arg_value(e, n, op),
                n->narg, parts);
}

static bool is_swapped(const Emit *e, const char *name) {
  for (int i = 0; i < e->nat; i++)
    if (!strcmp(e->at[i].name, name)) return e->at[i].swapped;
  return e->root_swap; /* self */
}

const char *result(Emit *e, const Node *n, bool fold, const char *like) {
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
  const char *name = op_text(e, n);
  bool list = false, plain = n->dtype == -1 && !*n->arg_text && !*n->arg_of;
  for (int i = 0; i < n->narg; i++)
    list |= n->arg[i]->kind == LIST;
  if (fold) {
    const char *to = op == OPS_CAST ? n->dtype == -1 ? "(DType)self->dtype" : dtype_of(e, n) : "DT_VOID";
    return format("rule_fold(rw, %s, %s%s%s)", name, to, text, &", NULL, NULL"[6 * TG_MIN(n->narg - 1, 2)]);
  }
  if (op == OPS_CAST && !*n->arg_of)
    return format("uop_cast(rw->st, %s, %s)", src[0], n->dtype == -1 ? "(DType)self->dtype" : dtype_of(e, n));
  if (list || !plain || !(ops[op].flags & (OPF_U | OPF_B | OPF_T))) return new_node(e, n, op, src);
  if (op == OPS_WHERE) return format("uop_where(rw->st%s)", text);
  return n->narg < 3 ? format("uop_alu%d(rw->st, %s%s)", n->narg, name, text)
                     : format("rule_new3(rw, %s%s)", name, text);
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

bool is_base_declared(const char *name) {
  for (int i = 0; i < nmatchers; i++)
    if (!strcmp(matchers[i].name, name)) return true;
  return false;
}

/* What is tried where the root has this op; "": nothing. */
static char *case_of(int op, int first, int end, int only) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) refuse(0, "out of memory");
  for (int i = first; i < end; i++)
    for (int v = 0; v < OPS_COUNT; v++)
      if (stands_for(&rules[i], v) && root_op(&rules[i], v) == op && (only < 0 || v == only))
        emit_rule(out, &rules[i], v);
  if (fclose(out)) refuse(0, "out of memory");
  return text;
}

/* only: of rules first .. end the case of one op that they stand for; -1: all of them. */
void emit_function(FILE *out, const char *linkage, const MatcherDef *m, const char *name, int first, int end,
                   int only) {
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
  char *text[OPS_COUNT];
  for (int op = 0; op < OPS_COUNT; op++)
    text[op] = case_of(op, first, end, only);
  for (int op = 0; op < OPS_COUNT; op++) {
    if (!*text[op]) continue;
    for (int same = OPS_COUNT - 1; same >= op; same--) {
      if (strcmp(text[same], text[op])) continue;
      fprintf(out, "  case OPS_%s:\n", ops[same].name);
      if (same > op) *text[same] = 0;
    }
    fprintf(out, "%s    return %s;\n", text[op], none);
  }
  for (int op = 0; op < OPS_COUNT; op++)
    free(text[op]);
  fprintf(out, "  default: return %s;\n  }\n}\n", none);
}

/* For tests: the matchers of the file. */
void emit_names(FILE *out) {
  fprintf(out, "const MatcherName matchers_%.*s[] = {", (int)strcspn(file, "."), file);
  for (int m = 0; m < nmatchers; m++)
    if (!matchers[m].grad) fprintf(out, "{\"%s\", %s}, ", matchers[m].name, matchers[m].name);
  fprintf(out, "{NULL, NULL}};\n");
}
