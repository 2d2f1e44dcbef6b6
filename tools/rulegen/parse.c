/* parse.c: the words of a line of rules, and the expressions that patterns and results are. In: the line.
 * Out: words one by one, or a tree of them. */
#include "rulegen.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens of one line */
const char *line_at, *tok_at;
char tok[64];

void tok_next(void) {
  static const char *const two[] = {"...", "=>", "~>", "//", "!=", "==", "<=", ">=", "&&", "||"};
  while (*line_at == ' ' || *line_at == '\t')
    line_at++;
  tok_at = line_at;
  size_t n = 0;
  if (isalpha((unsigned char)*line_at) || *line_at == '_')
    while (isalnum((unsigned char)line_at[n]) || line_at[n] == '_')
      n++;
  else if (isdigit((unsigned char)*line_at)) {
    bool hex = line_at[0] == '0' && line_at[1] == 'x';
    while (isalnum((unsigned char)line_at[n]) || (line_at[n] == '.' && line_at[n + 1] != '.') ||
           (n && (line_at[n] == '-' || line_at[n] == '+') && line_at[n - 1] == (hex ? 'p' : 'e')))
      n++;
  } else {
    for (size_t i = 0; i < TG_COUNT(two) && !n; i++)
      if (!strncmp(line_at, two[i], strlen(two[i]))) n = strlen(two[i]);
    if (!n && *line_at) n = 1;
  }
  if (n >= sizeof tok || n >= 32) refuse(line_no, "a word of more than 31 characters");
  memcpy(tok, line_at, n), tok[n] = 0;
  line_at += n;
}

bool tok_is(const char *s) { return !strcmp(tok, s); }

bool tok_take(const char *s) {
  if (!tok_is(s)) return false;
  tok_next();
  return true;
}

void tok_expect(const char *s) {
  if (!tok_take(s)) refuse(line_no, "expected '%s', found '%s'", s, *tok ? tok : "end of line");
}

bool tok_is_word(void) { return isalpha((unsigned char)*tok) || *tok == '_'; }

int find_op(const char *s) {
  for (int i = 0; i < OPS_COUNT; i++)
    if (!strcmp(ops[i].name, s)) return i;
  return -1;
}

int find_in(const char *const *t, size_t n, const char *s) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(t[i], s)) return (int)i;
  return -1;
}

int find_dtype(const char *s) {
  for (size_t i = 0; i < TG_COUNT(dtypes); i++)
    if (!strcmp(dtypes[i].text, s)) return (int)i;
  return -1;
}

const Var *find_var(const char *s) {
  for (int i = 0; i < nvars; i++)
    if (!strcmp(vars[i].name, s)) return &vars[i];
  return NULL;
}

/* ---- expressions, by binding strength */
static const struct {
  const char *tok, *op;
  int level;
} infix[] = {

#define INFIX(sign, op, level) {sign, #op, level},
#include "uop/infix.def"
#undef INFIX
};

static Node *node(Kind k) {
  Node *n = calloc(1, sizeof *n);
  if (!n) exit(2);
  n->kind = k, n->dtype = -1;
  return n;
}

const char *skip_guard(bool in_paren) { /* to the end of the guard; returns where it ends */
  int depth = 0;
  while (*tok && !(depth == 0 && (tok_is("for") || (in_paren && tok_is(")"))))) {
    depth += tok_is("(") - tok_is(")");
    tok_next();
  }
  return tok_at;
}

/* What stands in brackets behind an op: its dtype, its arg, or the node that it has them from. */
static void brackets(Node *n) {
  if (n->kind != OPN && n->kind != CALL) refuse(line_no, "%s() has no dtype or arg", n->name);
  do {
    tok_next();
    char name[32];
    strcpy(name, tok);
    if (*line_at == '.') {
      tok_next(), tok_next();
      if (tok_is("dtype"))
        strcpy(n->of, name), n->dtype = -2;
      else if (tok_is("arg"))
        strcpy(n->arg_of, name);
      else if (tok_is("order"))
        strcpy(n->order_of, name);
      else
        refuse(line_no, "'%s.%s' is no dtype, no arg and no order", name, tok);
    } else if (find_dtype(name) >= 0)
      n->dtype = find_dtype(name);
    else if (n->op == OPS_CAST || n->op == OPS_BITCAST)
      refuse(line_no, "unknown dtype %s", name);
    else
      strcpy(n->arg_text, name);
    tok_next();
  } while (tok_is(","));
  tok_expect("]");
}

static Node *primary(void) {
  if (tok_take("(")) {
    Node *n = expression(0);
    tok_expect(")");
    return n;
  }
  if (isdigit((unsigned char)*tok) || tok_is("-")) {
    Node *n = node(LIT);
    bool neg = tok_take("-");
    char *end, *real_end;
    if (!isdigit((unsigned char)*tok) && !tok_is("inf"))
      refuse(line_no, "expected a number after '-', found '%s'", *tok ? tok : "end of line");
    n->lit = (long long)strtoull(tok, &end, 0);
    n->real = strtod(tok, &real_end), n->is_real = *end != 0;
    if (*real_end) refuse(line_no, "'%s' is no number", tok);
    if (neg) n->lit = -n->lit, n->real = -n->real;
    tok_next();
    return n;
  }
  if (!tok_is_word()) refuse(line_no, "expected an expression, found '%s'", *tok ? tok : "end of line");
  if ((tok_is("inf") || tok_is("nan")) && !find_var(tok)) {
    Node *n = node(LIT);
    n->real = strtod(tok, NULL), n->is_real = true;
    tok_next();
    return n;
  }
  char name[32];
  strcpy(name, tok);
  tok_next();
  if (tok_take("@")) {
    Node *n = primary();
    if (n->kind == NAME) refuse(line_no, "'%s@' names a name", name);
    strcpy(n->bind, name);
    return n;
  }
  if (!tok_is("(") && !tok_is("[")) {
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
  if (tok_is("[")) brackets(n);
  tok_expect("(");
  if (n->kind == CONSTANT) {
    n->text = tok_at, n->text_end = skip_guard(true);
    tok_expect(")");
    return n;
  }
  while (!tok_is(")")) {
    if (tok_take("...")) {
      if (n->rest) refuse(line_no, "'...' twice in one list");
      n->rest = true, n->before = n->narg;
      if (!tok_take(",")) break;
      continue;
    }
    if (n->narg == MAX_SRC) refuse(line_no, "more than %d sources", MAX_SRC);
    Node *a = expression(0);
    if (a->kind == NAME && tok_take("...")) a->kind = LIST;
    n->arg[n->narg++] = a;
    if (!tok_take(",")) break;
  }
  tok_expect(")");
  return n;
}

Node *expression(int level) {
  if (level > 5) return primary();
  Node *a = expression(level + 1);
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < TG_COUNT(infix); i++)
      if (infix[i].level == level && tok_is(infix[i].tok)) {
        tok_next();
        Node *n = node(OPN);
        n->op = find_op(infix[i].op), n->narg = 2, n->arg[0] = a, n->arg[1] = expression(level + 1);
        a = n, more = true;
        break;
      }
  }
  return a;
}
