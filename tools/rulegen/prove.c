/* prove.c: what tools/checkrules.c needs of a rule. In: the rules. Out: a function per rule that matches it
 * alone, one that builds random graphs of its pattern, and one that states it about all values of its names.
 */
#include "rulegen.h"
#include <ctype.h>
#include <string.h>

/* ---- for the checker: a function that makes random graphs of the pattern's shape; v: the op that the rule
 * stands for */
static bool is_alu(const Node *n, int v) {
  int op = n->kind == OPVAR ? v : n->op;
  bool ok = n->kind == NAME || n->kind == LIT ||
            ((ops[op].flags & (OPF_U | OPF_B | OPF_T)) && ops[op].arg != ARG_INTS); /* no list of its own */
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
  if (tok_is("vmin") || tok_is("vmax")) {
    bool hi = tok_is("vmax");
    tok_next(), tok_next();
    snprintf(out, cap, "gen_bound(g, %s, %d), 0", path_of(e, tok), hi);
    tok_next(), tok_next();
  } else if (isdigit((unsigned char)*tok) || tok_is("-")) {
    bool neg = tok_take("-");
    snprintf(out, cap, "NULL, %s%s", neg ? "-" : "", tok);
    tok_next();
  } else {
    const Var *v = find_var(tok);
    if (!v || !v->is_const || *line_at == '.') return false;
    snprintf(out, cap, "%s, 0", path_of(e, tok));
    tok_next();
  }
  return tok_at <= end;
}

static bool state_clause(const Emit *e, const char *at, const char *end, char *out, size_t cap) {
  static const char *const cmp[] = {"<", "<=", ">", ">=", "==", "!="};
  char l[100], r[100], o[8];
  line_at = at, tok_next();
  if (tok_is("fits")) { /* fits(NAME, NAME.dtype) */
    tok_next(), tok_next();
    char n[32];
    strcpy(n, tok);
    tok_next(), tok_next();
    snprintf(out, cap, "gen_fits(g, %s, %s->dtype)", path_of(e, n), path_of(e, tok));
    return true;
  }
  static const char *const known[] = {"is_power", "is_least", "is_plus"};
  line_at = at, tok_next();
  bool not = tok_take("!");
  if (find_in(known, TG_COUNT(known), tok) >= 0) { /* what is known of a name, in words */
    char what[32];
    strcpy(what, tok + 3);
    tok_next(), tok_next();
    snprintf(out, cap, "gen_%s(g, %s, %d)", what, path_of(e, tok), !not );
    return !strcmp(what, "plus") || not == !strcmp(what, "least");
  }
  if (tok_is_word() && *line_at == '(' &&
      !strncmp(line_at, "(ctx", 4)) { /* what the target has: the rule is true on all */
    snprintf(out, cap, "true");
    return true;
  }
  line_at = at, tok_next();
  if (operand(e, end, l, sizeof l)) {
    strcpy(o, tok);
    if (find_in(cmp, TG_COUNT(cmp), o) < 0) return false;
    tok_next();
    if (!operand(e, end, r, sizeof r)) return false;
    return snprintf(out, cap, "gen_given(g, \"%s\", %s, %s)", o, l, r) < (int)cap;
  }
  for (line_at = at, tok_next(); *tok && tok_at < end; tok_next())
    if (tok_is("(") || tok_is("||")) return false;
  guard((Emit *)e, out, cap, at, end); /* of dtypes alone */
  return true;
}

static bool emit_state(FILE *out, const Rule *r, int op) {
  Emit e = {.out = out, .rule = r, .op = op};
  char part[16][256];
  int n = 0;
  if (!is_alu(r->pat, op) || calls(r->res)) return false;
  match(&e, r, r->pat, "self");
  const char *keep = line_at;
  for (const char *at = r->guard; at && at < r->guard_end; n++) {
    const char *end = strstr(at, "&&");
    if (!end || end > r->guard_end) end = r->guard_end;
    bool ok = n < 16 && state_clause(&e, at, end, part[n], sizeof part[n]);
    if (!ok) {
      line_at = keep;
      return false;
    }
    at = end < r->guard_end ? end + 2 : end;
  }
  line_at = keep;
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
  bool tensors = !strcmp(m->ctx, "TgContext *"); /* a rule of tensor graphs, whose operations have shapes */
  bool arith = !r->grad && !r->about && !tensors && is_alu(r->pat, v), stated = false;
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

void emit_check(FILE *out) {
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
