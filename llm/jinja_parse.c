/* jinja_parse.c: tokens -> nodes. In: tokens. Out: a list of statements. It is a recursive descent parser
 * with a function for each level of precedence, from `a if b else c` down to names; filters and tests bind
 * more closely than any operator. */
#include "jinja.h"

typedef struct Parser {
  Jinja *j;
  const JToken *at;
} Parser;

static JNode *expression(Parser *p);
static JNode *statements(Parser *p, const char *const *ends);

/* ---- words */
static bool name_is(const JToken *t, const char *word) {
  return t->kind == T_NAME && t->n == strlen(word) && !memcmp(t->s, word, t->n);
}

static bool sign_is(const JToken *t, const char *sign) {
  return t->kind == T_SIGN && t->n == strlen(sign) && !memcmp(t->s, sign, t->n);
}

static bool took_name(Parser *p, const char *word) {
  if (!name_is(p->at, word)) return false;
  p->at++;
  return true;
}

static bool took(Parser *p, const char *sign) {
  if (!sign_is(p->at, sign)) return false;
  p->at++;
  return true;
}

static _Noreturn void unexpected(Parser *p, const char *wanted) {
  p->j->line = p->at->line;
  int n = (int)(p->at->n > 30 ? 30 : p->at->n);
  j_fail(p->j, TG_ERR_VALUE, "%s is expected where '%.*s' stands", wanted, n, p->at->s);
}

static void need(Parser *p, const char *sign) {
  if (!took(p, sign)) unexpected(p, sign);
}

static const char *copied(Parser *p, const JToken *t) { return j_string(p->j, t->s, t->n)->u.s; }

static const char *need_name(Parser *p) {
  if (p->at->kind != T_NAME) unexpected(p, "a name");
  return copied(p, p->at++);
}

static void end_tag(Parser *p) {
  if (p->at->kind != T_END_TAG) unexpected(p, "%}");
  p->at++;
}

static JNode *node(Parser *p, JNodeKind kind) {
  JNode *n = j_alloc(p->j, sizeof *n);
  n->kind = kind;
  n->line = p->at->line;
  return n;
}

static void argument_put(Parser *p, JNode *n, const char *name, JNode *value) {
  if (n->narguments == n->cap) {
    size_t cap = 2 * n->cap + 4;
    JArgument *a = j_alloc(p->j, cap * sizeof *a);
    if (n->narguments) memcpy(a, n->argument, n->narguments * sizeof *a);
    n->argument = a;
    n->cap = cap;
  }
  n->argument[n->narguments++] = (JArgument){name, value};
}

/* ---- primaries */
static JNode *constant(Parser *p, JValue *v) {
  JNode *n = node(p, N_CONST);
  n->value = v;
  return n;
}

/* the arguments of a call, after its ( */
static void arguments(Parser *p, JNode *call) {
  while (!took(p, ")")) {
    const char *name = NULL;
    if (p->at->kind == T_NAME && sign_is(p->at + 1, "=")) {
      name = need_name(p);
      p->at++;
    }
    argument_put(p, call, name, expression(p));
    if (!took(p, ",") && !sign_is(p->at, ")")) unexpected(p, ")");
  }
}

static JNode *list(Parser *p, const char *end, bool tuple) {
  JNode *n = node(p, N_LIST);
  n->negative = tuple;
  while (!took(p, end)) {
    argument_put(p, n, NULL, expression(p));
    if (!took(p, ",") && !sign_is(p->at, end)) unexpected(p, end);
  }
  return n;
}

static JNode *map(Parser *p) {
  JNode *n = node(p, N_MAP);
  while (!took(p, "}")) {
    argument_put(p, n, NULL, expression(p));
    need(p, ":");
    argument_put(p, n, NULL, expression(p));
    if (!took(p, ",") && !sign_is(p->at, "}")) unexpected(p, "}");
  }
  return n;
}

/* after ( : a value in brackets, or a tuple */
static JNode *bracketed(Parser *p) {
  if (took(p, ")")) return node(p, N_LIST);
  JNode *first = expression(p);
  if (took(p, ")")) return first;
  need(p, ",");
  JNode *rest = list(p, ")", true), *n = node(p, N_LIST);
  n->negative = true;
  argument_put(p, n, NULL, first);
  for (size_t i = 0; i < rest->narguments; i++)
    argument_put(p, n, NULL, rest->argument[i].value);
  return n;
}

static JNode *named(Parser *p) {
  const JToken *t = p->at;
  if (name_is(t, "true") || name_is(t, "True")) return p->at++, constant(p, j_bool(p->j, true));
  if (name_is(t, "false") || name_is(t, "False")) return p->at++, constant(p, j_bool(p->j, false));
  if (name_is(t, "none") || name_is(t, "None")) return p->at++, constant(p, j_value(p->j, J_NONE));
  JNode *n = node(p, N_NAME);
  n->name = need_name(p);
  n->n = strlen(n->name);
  return n;
}

static JNode *strings(Parser *p) { /* neighbouring strings are joined */
  LlmText *t = j_buffer(p->j);
  for (; p->at->kind == T_STRING; p->at++)
    j_buffer_put(p->j, t, p->at->s, p->at->n);
  return constant(p, j_text(p->j, t));
}

static JNode *primary(Parser *p) {
  const JToken *t = p->at;
  switch (t->kind) {
  case T_NAME: return named(p);
  case T_STRING: return strings(p);
  case T_INT: p->at++; return constant(p, j_int(p->j, t->i));
  case T_FLOAT: p->at++; return constant(p, j_float(p->j, t->f));
  default: break;
  }
  if (took(p, "(")) return bracketed(p);
  if (took(p, "[")) return list(p, "]", false);
  if (took(p, "{")) return map(p);
  unexpected(p, "a value");
}

/* x[a], x[a:b:c] */
static JNode *subscript(Parser *p, JNode *of) {
  JNode *n = node(p, N_INDEX);
  n->a = of;
  if (!sign_is(p->at, ":")) n->b = expression(p);
  if (took(p, "]")) return n;
  n->kind = N_SLICE;
  need(p, ":");
  if (!sign_is(p->at, ":") && !sign_is(p->at, "]")) n->c = expression(p);
  if (took(p, ":") && !sign_is(p->at, "]")) n->d = expression(p);
  need(p, "]");
  return n;
}

static JNode *postfix(Parser *p, JNode *n) {
  for (;;) {
    JNode *outer = node(p, N_ATTRIBUTE);
    outer->a = n;
    if (took(p, ".")) {
      if (p->at->kind == T_INT) {
        outer->kind = N_INDEX;
        outer->b = constant(p, j_int(p->j, p->at->i));
        p->at++;
      } else {
        outer->name = need_name(p);
        outer->n = strlen(outer->name);
      }
      n = outer;
    } else if (took(p, "["))
      n = subscript(p, n);
    else if (took(p, "(")) {
      outer->kind = N_CALL;
      arguments(p, outer);
      n = outer;
    } else
      return n;
    j_step(p->j, 1);
  }
}

/* x is [not] NAME, NAME(..), NAME value */
static JNode *test(Parser *p, JNode *of) {
  JNode *n = node(p, N_TEST);
  n->a = of;
  n->negative = took_name(p, "not");
  n->name = need_name(p);
  const JToken *t = p->at;
  bool word = name_is(t, "else") || name_is(t, "or") || name_is(t, "and") || name_is(t, "is") ||
              name_is(t, "if") || name_is(t, "not") || name_is(t, "in");
  bool value = t->kind == T_STRING || t->kind == T_INT || t->kind == T_FLOAT ||
               (t->kind == T_NAME && !word) || sign_is(t, "[") || sign_is(t, "{");
  if (took(p, "("))
    arguments(p, n);
  else if (value)
    argument_put(p, n, NULL, postfix(p, primary(p)));
  return n;
}

static JNode *filter(Parser *p, JNode *of) {
  JNode *n = node(p, N_FILTER);
  n->a = of;
  n->name = need_name(p);
  if (took(p, "(")) arguments(p, n);
  return n;
}

static JNode *filters(Parser *p, JNode *n) {
  for (;; j_step(p->j, 1))
    if (took(p, "|"))
      n = filter(p, n);
    else if (took_name(p, "is"))
      n = test(p, n);
    else if (took(p, "(")) {
      JNode *call = node(p, N_CALL);
      call->a = n;
      arguments(p, call);
      n = call;
    } else
      return n;
}

/* ---- operators, from the closest to the loosest */
static JNode *unary(Parser *p, bool filtered) {
  JNode *n;
  j_enter(p->j);
  if (took(p, "-")) {
    n = node(p, N_NEGATIVE);
    n->a = unary(p, false);
  } else if (took(p, "+"))
    n = unary(p, false);
  else
    n = primary(p);
  n = postfix(p, n);
  if (filtered) n = filters(p, n);
  p->j->depth--;
  return n;
}

typedef struct Sign {
  const char *text;
  JOp op;
} Sign;

static bool took_sign(Parser *p, const Sign *s, JOp *op) {
  for (; s->text; s++)
    if (took(p, s->text)) return *op = s->op, true;
  return false;
}

static JNode *binary(Parser *p, int level) {
  static const Sign signs[4][5] = {{{"+", OP_ADD}, {"-", OP_SUB}},
                                   {{"~", OP_JOIN}},
                                   {{"*", OP_MUL}, {"/", OP_DIV}, {"//", OP_FLOORDIV}, {"%", OP_MOD}},
                                   {{"**", OP_POW}}};
  if (level == 4) return unary(p, true);
  JNode *left = binary(p, level + 1);
  for (JOp op; took_sign(p, signs[level], &op);) {
    JNode *n = node(p, N_BINARY);
    n->op = op;
    n->a = left;
    n->b = binary(p, level + 1);
    left = n;
    j_step(p->j, 1);
  }
  return left;
}

/* a < b < c is (a < b) and (b < c) */
static JNode *comparison(Parser *p) {
  static const Sign signs[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
                               {"<", OP_LT},  {">", OP_GT},  {NULL, OP_EQ}};
  JNode *left = binary(p, 0), *all = NULL;
  for (;; j_step(p->j, 1)) {
    JOp op;
    if (took_name(p, "in"))
      op = OP_IN;
    else if (name_is(p->at, "not") && name_is(p->at + 1, "in")) {
      p->at += 2;
      op = OP_NOT_IN;
    } else if (!took_sign(p, signs, &op))
      return all ? all : left;
    JNode *n = node(p, N_BINARY);
    n->op = op;
    n->a = left;
    n->b = left = binary(p, 0);
    if (all) {
      JNode *both = node(p, N_AND);
      both->a = all;
      both->b = n;
      n = both;
    }
    all = n;
  }
}

static JNode *negation(Parser *p) {
  if (!took_name(p, "not")) return comparison(p);
  JNode *n = node(p, N_NOT);
  j_enter(p->j);
  n->a = negation(p);
  p->j->depth--;
  return n;
}

static JNode *logic(Parser *p, bool or_) {
  JNode *left = or_ ? logic(p, false) : negation(p);
  while (took_name(p, or_ ? "or" : "and")) {
    JNode *n = node(p, or_ ? N_OR : N_AND);
    n->a = left;
    n->b = or_ ? logic(p, false) : negation(p);
    left = n;
    j_step(p->j, 1);
  }
  return left;
}

static JNode *expression(Parser *p) {
  j_enter(p->j);
  JNode *n = logic(p, true);
  while (took_name(p, "if")) {
    JNode *choice = node(p, N_CHOICE);
    choice->a = logic(p, true);
    choice->b = n;
    choice->c = took_name(p, "else") ? expression(p) : NULL;
    n = choice;
  }
  p->j->depth--;
  return n;
}

/* a, b: a tuple without brackets */
static JNode *tuple(Parser *p) {
  JNode *first = expression(p);
  if (!sign_is(p->at, ",")) return first;
  JNode *n = node(p, N_LIST);
  n->negative = true;
  argument_put(p, n, NULL, first);
  while (took(p, ","))
    argument_put(p, n, NULL, expression(p));
  return n;
}

/* ---- statements */
static bool at_tag(const Parser *p, const char *word) {
  return p->at->kind == T_BEGIN_TAG && name_is(p->at + 1, word);
}

static void close_tag(Parser *p, const char *word) {
  if (!at_tag(p, word)) unexpected(p, word);
  p->at += 2;
  if (p->at->kind == T_NAME) p->at++; /* endmacro may repeat the macro's name */
  end_tag(p);
}

static JNode *if_tag(Parser *p) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  static const char *const last[] = {"endif", NULL};
  JNode *n = node(p, N_IF);
  n->a = expression(p);
  end_tag(p);
  n->b = statements(p, ends);
  if (at_tag(p, "elif")) {
    p->at += 2;
    j_enter(p->j);
    n->c = if_tag(p);
    p->j->depth--;
    return n;
  }
  if (at_tag(p, "else")) {
    close_tag(p, "else");
    n->c = statements(p, last);
  }
  close_tag(p, "endif");
  return n;
}

static void targets(Parser *p, JNode *n) {
  bool open = took(p, "(");
  do
    argument_put(p, n, need_name(p), NULL);
  while (took(p, ","));
  if (open) need(p, ")");
}

static JNode *for_tag(Parser *p) {
  static const char *const ends[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
  JNode *n = node(p, N_FOR);
  targets(p, n);
  if (!took_name(p, "in")) unexpected(p, "in");
  n->a = logic(p, true);
  if (sign_is(p->at, ",")) {
    JNode *all = node(p, N_LIST);
    argument_put(p, all, NULL, n->a);
    while (took(p, ","))
      argument_put(p, all, NULL, logic(p, true));
    n->a = all;
  }
  if (took_name(p, "if")) n->d = expression(p);
  end_tag(p);
  n->b = statements(p, ends);
  if (at_tag(p, "else")) {
    close_tag(p, "else");
    n->c = statements(p, last);
  }
  close_tag(p, "endfor");
  return n;
}

/* set a = x, set a, b = x, set ns.a = x, set a [| filter] %} .. {% endset */
static JNode *set_tag(Parser *p) {
  static const char *const ends[] = {"endset", NULL};
  JNode *n = node(p, N_SET);
  if (p->at->kind == T_NAME && sign_is(p->at + 1, ".")) {
    n->name = need_name(p);
    p->at++;
    argument_put(p, n, need_name(p), NULL);
  } else
    targets(p, n);
  if (took(p, "=")) {
    n->a = tuple(p);
    end_tag(p);
    return n;
  }
  n->kind = N_SET_BLOCK;
  if (sign_is(p->at, "|")) n->a = filters(p, constant(p, NULL));
  end_tag(p);
  n->b = statements(p, ends);
  close_tag(p, "endset");
  return n;
}

static JNode *macro_tag(Parser *p) {
  static const char *const ends[] = {"endmacro", NULL};
  JNode *n = node(p, N_MACRO);
  n->name = need_name(p);
  need(p, "(");
  while (!took(p, ")")) {
    const char *name = need_name(p);
    argument_put(p, n, name, took(p, "=") ? expression(p) : NULL);
    if (!took(p, ",") && !sign_is(p->at, ")")) unexpected(p, ")");
  }
  end_tag(p);
  n->b = statements(p, ends);
  close_tag(p, "endmacro");
  return n;
}

static JNode *filter_tag(Parser *p) {
  static const char *const ends[] = {"endfilter", NULL};
  JNode *n = node(p, N_FILTER_BLOCK);
  n->a = filters(p, filter(p, constant(p, NULL)));
  end_tag(p);
  n->b = statements(p, ends);
  close_tag(p, "endfilter");
  return n;
}

/* {% generation %} marks the model's own words for training; here its body is simply printed */
static JNode *generation_tag(Parser *p) {
  static const char *const ends[] = {"endgeneration", NULL};
  JNode *n = node(p, N_IF);
  n->a = constant(p, j_bool(p->j, true));
  end_tag(p);
  n->b = statements(p, ends);
  close_tag(p, "endgeneration");
  return n;
}

static JNode *simple_tag(Parser *p, JNodeKind kind) {
  JNode *n = node(p, kind);
  end_tag(p);
  return n;
}

static JNode *tag(Parser *p) {
  p->at++;
  if (took_name(p, "if")) return if_tag(p);
  if (took_name(p, "for")) return for_tag(p);
  if (took_name(p, "set")) return set_tag(p);
  if (took_name(p, "macro")) return macro_tag(p);
  if (took_name(p, "filter")) return filter_tag(p);
  if (took_name(p, "generation")) return generation_tag(p);
  if (took_name(p, "break")) return simple_tag(p, N_BREAK);
  if (took_name(p, "continue")) return simple_tag(p, N_CONTINUE);
  unexpected(p, "a tag that is known here");
}

static JNode *statement(Parser *p) {
  if (p->at->kind == T_BEGIN_TAG) return tag(p);
  JNode *n = node(p, p->at->kind == T_TEXT ? N_TEXT : N_PRINT);
  if (n->kind == N_TEXT) {
    n->name = p->at->s;
    n->n = p->at->n;
    p->at++;
    return n;
  }
  p->at++;
  n->a = tuple(p);
  if (p->at->kind != T_END_PRINT) unexpected(p, "}}");
  p->at++;
  return n;
}

/* Statements up to one of the tags `ends`, which is not consumed; ends NULL: to the end of the template. */
static JNode *statements(Parser *p, const char *const *ends) {
  JNode *first = NULL, **to = &first;
  j_enter(p->j);
  for (;;) {
    if (p->at->kind == T_END) {
      if (ends) unexpected(p, ends[0]);
      break;
    }
    bool end = false;
    for (size_t i = 0; ends && ends[i]; i++)
      end = end || at_tag(p, ends[i]);
    if (end) break;
    j_step(p->j, 1);
    *to = statement(p);
    to = &(*to)->next;
  }
  p->j->depth--;
  return first;
}

JNode *j_parse(Jinja *j, const JToken *tokens) {
  Parser p = {j, tokens};
  return statements(&p, NULL);
}
