/* grammar_gbnf.c: a grammar as text (GBNF, the form of llama.cpp's grammars) -> an automaton. In:
 *
 *   root ::= "yes" | "no" [.!]{0,3}    # literals, sets of characters, alternatives, repetitions
 *   name ::= ( .. ) ? * + {m,n} .      # groups, the repetition operators; a dot is any character
 *
 * The text is read into a tree of expressions. Nodes are made from the last part of an expression to its
 * first, because a node names the node that follows it. Out: nodes. A rule that may call itself before it has
 * read a byte is refused. */
#include "grammar.h"
#include <stdlib.h>

enum { MOST_NODES = 1 << 20, MOST_NEST = 100, MOST_REPEAT = 10000, MOST_RULES = 10000, LAST_CODE = 0x10ffff };

typedef enum ExprKind { EXPR_EMPTY, EXPR_SET, EXPR_RULE, EXPR_PAIR, EXPR_EITHER, EXPR_REPEAT } ExprKind;

/* SET: ranges a .. b - 1 of the reader. RULE: rule a. PAIR: a, then b. EITHER: a, or b. REPEAT: a, lo .. hi
 * times (-1: no upper limit). */
typedef struct Expr {
  ExprKind kind;
  int32_t a, b;
  int64_t lo, hi;
} Expr;

typedef struct CodeRange {
  uint32_t lo, hi;
} CodeRange;

typedef struct RuleName {
  const char *at;
  size_t n;
  int32_t expr; /* -1: the rule is used but not defined yet */
  int line;
} RuleName;

typedef struct Reader {
  GrammarRules *g;
  TgContext *ctx;
  const char *at, *end;
  int line, nest;
  Expr *expr;
  size_t nexpr, expr_cap;
  CodeRange *range;
  size_t nrange, range_cap;
  RuleName *rule;
  size_t nrule, rule_cap;
} Reader;

static int32_t wrong(const Reader *r, const char *what) {
  llm_fail(r->ctx, TG_ERR_VALUE, "grammar: line %d: %s", r->line, what);
  return -1;
}

static int32_t expr_new(Reader *r, Expr e) {
  if (r->nexpr >= MOST_NODES) {
    llm_fail(r->ctx, TG_ERR_LIMIT, "grammar: line %d: it is too large", r->line);
    return -1;
  }
  Expr *at = llm_grow(r->ctx, r->expr, r->nexpr, 1, &r->expr_cap, sizeof *at);
  if (!at) return -1;
  r->expr = at;
  at[r->nexpr] = e;
  return (int32_t)r->nexpr++;
}

static int32_t pair(Reader *r, ExprKind kind, int32_t a, int32_t b) {
  return a < 0 || b < 0 ? -1 : expr_new(r, (Expr){.kind = kind, .a = a, .b = b});
}

/* ---- characters */
static void skip(Reader *r) {
  for (; r->at < r->end; r->at++) {
    if (*r->at == '#')
      while (r->at + 1 < r->end && r->at[1] != '\n')
        r->at++;
    else if (*r->at == '\n')
      r->line++;
    else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r')
      break;
  }
}

static bool is_next(const Reader *r, char c) { return r->at < r->end && *r->at == c; }

static bool take(Reader *r, char c) {
  bool is = is_next(r, c);
  if (is) {
    r->at++;
    skip(r);
  }
  return is;
}

static int hex_of(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* The code point of a character, or of an escape after a backslash; negative: an error. */
static int32_t character(Reader *r) {
  static const char letters[] = "nrt", codes[] = "\n\r\t";
  int32_t code;
  if (r->at >= r->end) return wrong(r, "it ends inside of a literal or a set");
  if (*r->at != '\\') {
    r->at += llm_utf8(r->at, (size_t)(r->end - r->at), &code);
    if (code == '\n') return wrong(r, "a literal or a set goes over the end of a line");
    return code < 0 ? wrong(r, "it is no UTF-8") : code;
  }
  if (++r->at >= r->end) return wrong(r, "it ends with a backslash");
  char c = *r->at++;
  const char *letter = c ? strchr(letters, c) : NULL;
  if (letter) return codes[letter - letters];
  int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (!digits) return strchr("\\\"[]^-", c) && c ? c : wrong(r, "no such character behind a backslash");
  int64_t all = 0;
  for (int i = 0; i < digits; i++) {
    int h = r->at < r->end ? hex_of(*r->at) : -1;
    if (h < 0) return wrong(r, "\\x has 2 digits, \\u 4, \\U 8");
    all = all << 4 | h;
    r->at++;
  }
  return all > LAST_CODE ? wrong(r, "no such code point") : (int32_t)all;
}

static bool range_put(Reader *r, uint32_t lo, uint32_t hi) {
  CodeRange *at = llm_grow(r->ctx, r->range, r->nrange, 1, &r->range_cap, sizeof *at);
  if (!at) return false;
  r->range = at;
  at[r->nrange++] = (CodeRange){lo, hi};
  return true;
}

static int32_t set_of(Reader *r, size_t first) {
  return expr_new(r, (Expr){.kind = EXPR_SET, .a = (int32_t)first, .b = (int32_t)r->nrange});
}

static int by_low(const void *a, const void *b) {
  const CodeRange *x = a, *y = b;
  return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Replaces the ranges from `first` on by all code points that are in none of them. */
static bool complement(Reader *r, size_t first) {
  size_t n = r->nrange - first;
  uint32_t next = 0;
  qsort(r->range + first, n, sizeof *r->range, by_low);
  for (size_t i = 0; i < n; i++) {
    CodeRange c = r->range[first + i];
    if (c.lo > next && !range_put(r, next, c.lo - 1)) return false;
    if (c.hi + 1 > next) next = c.hi + 1;
  }
  if (next <= LAST_CODE && !range_put(r, next, LAST_CODE)) return false;
  memmove(r->range + first, r->range + first + n, (r->nrange - first - n) * sizeof *r->range);
  r->nrange -= n;
  return true;
}

static int32_t set(Reader *r) {
  size_t first = r->nrange;
  r->at++;
  bool not = is_next(r, '^');
  r->at += not ;
  while (!is_next(r, ']')) {
    int32_t lo = character(r), hi = lo;
    if (lo < 0) return -1;
    if (is_next(r, '-') && r->at + 1 < r->end && r->at[1] != ']') {
      r->at++;
      if ((hi = character(r)) < 0) return -1;
    }
    if (hi < lo) return wrong(r, "a range ends before it begins");
    if (!range_put(r, (uint32_t)lo, (uint32_t)hi)) return -1;
  }
  r->at++;
  skip(r);
  if (not &&!complement(r, first)) return -1;
  return set_of(r, first);
}

static int32_t literal(Reader *r) {
  int32_t all = expr_new(r, (Expr){.kind = EXPR_EMPTY});
  r->at++;
  while (all >= 0 && !is_next(r, '"')) {
    int32_t c = character(r);
    size_t first = r->nrange;
    if (c < 0 || !range_put(r, (uint32_t)c, (uint32_t)c)) return -1;
    all = pair(r, EXPR_PAIR, all, set_of(r, first));
  }
  r->at++;
  skip(r);
  return all;
}

/* ---- rules */
static bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static size_t name_length(const Reader *r) {
  const char *p = r->at;
  while (p < r->end && in_name(*p))
    p++;
  return (size_t)(p - r->at);
}

/* Whether a rule begins here: a name, and ::= */
static bool begins_rule(Reader *r) {
  Reader ahead = *r;
  size_t n = name_length(r);
  ahead.at += n;
  skip(&ahead);
  return n && ahead.end - ahead.at >= 3 && !memcmp(ahead.at, "::=", 3);
}

static int32_t rule_named(Reader *r, const char *name, size_t n) {
  for (size_t i = 0; i < r->nrule; i++)
    if (r->rule[i].n == n && !memcmp(r->rule[i].at, name, n)) return (int32_t)i;
  if (r->nrule == MOST_RULES) return wrong(r, "too many rules");
  RuleName *at = llm_grow(r->ctx, r->rule, r->nrule, 1, &r->rule_cap, sizeof *at);
  if (!at) return -1;
  r->rule = at;
  at[r->nrule] = (RuleName){name, n, -1, r->line};
  return (int32_t)r->nrule++;
}

static int32_t either(Reader *r);

static int32_t group(Reader *r) {
  if (++r->nest > MOST_NEST) return wrong(r, "groups are nested too deep");
  take(r, '(');
  int32_t e = either(r);
  r->nest--;
  if (e >= 0 && !take(r, ')')) return wrong(r, "a group does not end");
  return e;
}

static int32_t item(Reader *r) {
  char c = *r->at;
  if (c == '"') return literal(r);
  if (c == '[') return set(r);
  if (c == '(') return group(r);
  if (c == '.') {
    size_t first = r->nrange;
    take(r, '.');
    return range_put(r, 0, LAST_CODE) ? set_of(r, first) : -1;
  }
  size_t n = name_length(r);
  if (!n) return wrong(r, "a literal, a set, a group or a rule's name should stand here");
  int32_t rule = rule_named(r, r->at, n);
  r->at += n;
  skip(r);
  return rule < 0 ? -1 : expr_new(r, (Expr){.kind = EXPR_RULE, .a = rule});
}

static int64_t count(Reader *r) {
  int64_t n = 0;
  if (r->at >= r->end || *r->at < '0' || *r->at > '9') return -1;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && n <= MOST_REPEAT; r->at++)
    n = 10 * n + (*r->at - '0');
  skip(r);
  return n;
}

static bool braces(Reader *r, Expr *e) {
  e->lo = count(r);
  e->hi = e->lo;
  bool more = e->lo >= 0 && take(r, ',');
  if (more) e->hi = count(r);
  if (e->lo < 0 || !take(r, '}') || (e->hi >= 0 && e->hi < e->lo) || e->lo > MOST_REPEAT ||
      e->hi > MOST_REPEAT)
    return wrong(r, "how often is {m}, {m,} or {m,n}, at most 10,000") >= 0;
  return true;
}

static int32_t repeated(Reader *r) {
  int32_t a = item(r);
  while (a >= 0 && r->at < r->end) {
    Expr e = {.kind = EXPR_REPEAT, .a = a};
    if (take(r, '*'))
      e.hi = -1;
    else if (take(r, '+')) {
      e.lo = 1;
      e.hi = -1;
    } else if (take(r, '?'))
      e.hi = 1;
    else if (!take(r, '{'))
      break;
    else if (!braces(r, &e))
      return -1;
    a = expr_new(r, e);
  }
  return a;
}

static int32_t sequence(Reader *r) {
  int32_t all = expr_new(r, (Expr){.kind = EXPR_EMPTY});
  while (all >= 0 && r->at < r->end && *r->at != '|' && *r->at != ')' && !begins_rule(r))
    all = pair(r, EXPR_PAIR, all, repeated(r));
  return all;
}

static int32_t either(Reader *r) {
  int32_t e = sequence(r);
  while (e >= 0 && take(r, '|'))
    e = pair(r, EXPR_EITHER, e, sequence(r));
  return e;
}

static bool rule(Reader *r) {
  if (!begins_rule(r)) return wrong(r, "a rule begins with its name and ::=") >= 0;
  size_t n = name_length(r);
  int32_t i = rule_named(r, r->at, n);
  r->at += n;
  skip(r);
  r->at += 3;
  skip(r);
  if (i < 0) return false;
  if (r->rule[i].expr >= 0) return wrong(r, "a rule of this name is there already") >= 0;
  int32_t e = either(r);
  if (e >= 0 && is_next(r, ')')) return wrong(r, "a group ends that did not begin") >= 0;
  if (e >= 0) r->rule[i].expr = e;
  return e >= 0;
}

/* ---- nodes */
static int32_t node_new(GrammarRules *g, GrammarNode n) {
  if (g->nnodes >= MOST_NODES) {
    llm_fail(g->ctx, TG_ERR_LIMIT, "grammar: it is more than %d parts: fewer repetitions", MOST_NODES);
    return -1;
  }
  GrammarNode *at = llm_grow(g->ctx, g->node, g->nnodes, 1, &g->node_cap, sizeof *at);
  if (!at) return -1;
  g->node = at;
  at[g->nnodes] = n;
  return (int32_t)g->nnodes++;
}

static int32_t byte_node(GrammarRules *g, uint8_t lo, uint8_t hi, int32_t next) {
  return next < 0 ? -1 : node_new(g, (GrammarNode){GRAMMAR_BYTE, lo, hi, next, -1});
}

/* A node for `so_far` or `more`; so_far -1: there was nothing before. */
static int32_t or_node(GrammarRules *g, int32_t so_far, int32_t more, bool *ok) {
  *ok = *ok && more >= 0;
  if (!*ok || so_far < 0) return more;
  int32_t n = node_new(g, (GrammarNode){GRAMMAR_SPLIT, 0, 0, so_far, more});
  *ok = n >= 0;
  return n;
}

/* The nodes for code points lo .. hi whose UTF-8 has n bytes. The first byte is lead | the top bits, and n -
 * 1 bytes of six bits follow. If the following bytes do not have their full range, the range is split at the
 * first byte. */
static int32_t utf8_node(GrammarRules *g, uint32_t lo, uint32_t hi, int n, uint8_t lead, int32_t next,
                         bool *ok) {
  int shift = 6 * (n - 1);
  if (n == 1) return byte_node(g, (uint8_t)(lead | lo), (uint8_t)(lead | hi), next);
  uint32_t tail = (1u << shift) - 1, first = lo >> shift, last = hi >> shift;
  if (first == last || ((lo & tail) == 0 && (hi & tail) == tail)) {
    int32_t rest = utf8_node(g, lo & tail, hi & tail, n - 1, 0x80, next, ok);
    return byte_node(g, (uint8_t)(lead | first), (uint8_t)(lead | last), rest);
  }
  int32_t all = -1;
  if (lo & tail) {
    all = or_node(g, all, utf8_node(g, lo, lo | tail, n, lead, next, ok), ok);
    lo = (lo | tail) + 1;
  }
  if (*ok && (hi & tail) != tail) {
    all = or_node(g, all, utf8_node(g, hi & ~tail, hi, n, lead, next, ok), ok);
    hi = (hi & ~tail) - 1;
  }
  if (*ok && lo <= hi && (lo >> shift) <= (hi >> shift))
    all = or_node(g, all, utf8_node(g, lo, hi, n, lead, next, ok), ok);
  return all;
}

/* Splits a range by the length of its UTF-8, without the surrogates. */
static int32_t range_node(GrammarRules *g, CodeRange c, int32_t so_far, int32_t next, bool *ok) {
  static const struct {
    uint32_t lo, hi;
    int n;
    uint8_t lead;
  } forms[] = {{0, 0x7f, 1, 0},
               {0x80, 0x7ff, 2, 0xc0},
               {0x800, 0xd7ff, 3, 0xe0},
               {0xe000, 0xffff, 3, 0xe0},
               {0x10000, LAST_CODE, 4, 0xf0}};

  for (size_t i = 0; *ok && i < sizeof forms / sizeof *forms; i++) {
    uint32_t lo = c.lo > forms[i].lo ? c.lo : forms[i].lo, hi = c.hi < forms[i].hi ? c.hi : forms[i].hi;
    if (lo <= hi) so_far = or_node(g, so_far, utf8_node(g, lo, hi, forms[i].n, forms[i].lead, next, ok), ok);
  }
  return so_far;
}

static int32_t set_node(const Reader *r, const Expr *e, int32_t next) {
  int32_t all = -1;
  bool ok = true;
  for (int32_t i = e->a; ok && i < e->b; i++)
    all = range_node(r->g, r->range[i], all, next, &ok);
  if (!ok) return -1;
  return all >= 0 ? all : byte_node(r->g, 1, 0, next); /* an empty set: no byte is in 1 .. 0 */
}

/* The node from which expression e is read and then `next`; -1: an error. A tree is as deep as a line is
 * long, so chains of pairs are followed by a loop instead of recursion. */
static int32_t expr_node(const Reader *r, int32_t at, int32_t next, int nest);

static int32_t repeat_node(const Reader *r, const Expr *e, int32_t next, int nest) {
  GrammarRules *g = r->g;
  int32_t to = next;
  if (e->hi < 0) {
    to = node_new(g, (GrammarNode){GRAMMAR_SPLIT, 0, 0, -1, next});
    int32_t body = to < 0 ? -1 : expr_node(r, e->a, to, nest);
    if (body < 0) return -1;
    g->node[to].a = body;
  }
  for (int64_t i = e->lo; i < e->hi && to >= 0; i++) {
    int32_t body = expr_node(r, e->a, to, nest);
    to = body < 0 ? -1 : node_new(g, (GrammarNode){GRAMMAR_SPLIT, 0, 0, body, next});
  }
  for (int64_t i = 0; i < e->lo && to >= 0; i++)
    to = expr_node(r, e->a, to, nest);
  return to;
}

static int32_t expr_node(const Reader *r, int32_t at, int32_t next, int nest) {
  if (nest > 4 * MOST_NEST) {
    llm_fail(r->ctx, TG_ERR_LIMIT, "grammar: it is nested too deep");
    return -1;
  }
  while (next >= 0) {
    const Expr *e = &r->expr[at];
    switch (e->kind) {
    case EXPR_EMPTY: return next;
    case EXPR_SET: return set_node(r, e, next);
    case EXPR_RULE: return node_new(r->g, (GrammarNode){GRAMMAR_CALL, 0, 0, next, e->a});
    case EXPR_REPEAT: return repeat_node(r, e, next, nest + 1);
    case EXPR_PAIR:
      next = expr_node(r, e->b, next, nest + 1);
      at = e->a;
      break;
    case EXPR_EITHER: { /* alternatives are a chain to the left */
      int32_t all = -1;
      bool ok = true;
      for (; ok && r->expr[at].kind == EXPR_EITHER; at = r->expr[at].a)
        all = or_node(r->g, all, expr_node(r, r->expr[at].b, next, nest + 1), &ok);
      if (ok) all = or_node(r->g, all, expr_node(r, at, next, nest + 1), &ok);
      return ok ? all : -1;
    }
    }
  }
  return -1;
}

/* ---- a rule that calls itself before it reads a byte would be called without end */
typedef struct Walk {
  const GrammarRules *g;
  uint8_t *empty; /* for each rule: it may match without a byte */
  uint8_t *seen;  /* for each node */
  int32_t *stack;
  size_t n;
} Walk;

static void walk_put(Walk *w, int32_t node) {
  if (w->seen[node]) return;
  w->seen[node] = 1;
  w->stack[w->n++] = node;
}

/* Visits all nodes that are reached from a rule's entry without reading a byte. Returns whether its END is
 * one of them. calls: the rules that are called. */
static bool reached(Walk *w, int32_t rule, uint8_t *calls) {
  const GrammarRules *g = w->g;
  bool end = false;
  memset(w->seen, 0, g->nnodes);
  walk_put(w, g->entry[rule]);
  while (w->n) {
    const GrammarNode *n = &g->node[w->stack[--w->n]];
    if (n->op == GRAMMAR_SPLIT) {
      walk_put(w, n->a);
      walk_put(w, n->b);
    }
    if (n->op == GRAMMAR_CALL) {
      if (calls) calls[n->b] = 1;
      if (w->empty[n->b]) walk_put(w, n->a);
    }
    end |= n->op == GRAMMAR_END;
  }
  return end;
}

/* The first of the remaining rules that rule i calls before it takes a character; -1: none. */
static int32_t remaining_call(Walk *w, int32_t i, uint8_t *calls, const uint8_t *left) {
  memset(calls, 0, w->g->nrules);
  reached(w, i, calls);
  for (size_t k = 0; k < w->g->nrules; k++)
    if (calls[k] && left[k]) return (int32_t)k;
  return -1;
}

/* Removes rules that call none of the remaining rules, until nothing changes. Each remaining rule then calls
 * another, so as many calls as there are rules lead into a cycle. Returns a rule of it; -1: none remains. */
static int32_t ring_of(Walk *w, uint8_t *calls, uint8_t *left) {
  int32_t n = (int32_t)w->g->nrules, at = -1;
  memset(left, 1, w->g->nrules);
  for (bool changed = true; changed;) {
    changed = false;
    for (int32_t i = 0; i < n; i++) {
      if (!left[i] || remaining_call(w, i, calls, left) >= 0) continue;
      left[i] = 0;
      changed = true;
    }
  }
  for (int32_t i = 0; i < n && at < 0; i++)
    if (left[i]) at = i;
  for (int32_t i = 0; i < n && at >= 0; i++)
    at = remaining_call(w, at, calls, left);
  return at;
}

static bool no_ring(const Reader *r) {
  const GrammarRules *g = r->g;
  TgContext *ctx = r->ctx;
  Walk w = {.g = g,
            .empty = tg_alloc(ctx, g->nrules + 1),
            .seen = tg_alloc(ctx, g->nnodes + 1),
            .stack = tg_alloc(ctx, (g->nnodes + 1) * sizeof *w.stack)};
  uint8_t *calls = tg_alloc(ctx, g->nrules + 1), *left = tg_alloc(ctx, g->nrules + 1);
  bool ok = w.empty && w.seen && w.stack && calls && left;
  for (bool changed = ok; changed;) {
    changed = false;
    for (size_t i = 0; i < g->nrules; i++)
      if (!w.empty[i] && reached(&w, (int32_t)i, NULL)) {
        w.empty[i] = 1;
        changed = true;
      }
  }
  int32_t ring = ok ? ring_of(&w, calls, left) : -1;
  if (ring >= 0) {
    const RuleName *n = &r->rule[ring];
    ok = llm_fail(ctx, TG_ERR_VALUE, "grammar: line %d: rule %.*s calls itself before it takes a character",
                  n->line, (int)(n->n < 60 ? n->n : 60), n->at);
  }
  tg_free(ctx, w.empty), tg_free(ctx, w.seen), tg_free(ctx, w.stack), tg_free(ctx, calls), tg_free(ctx, left);
  return ok;
}

/* ---- the whole */
static bool rules_read(Reader *r) {
  skip(r);
  while (r->at < r->end)
    if (!rule(r)) return false;
  GrammarRules *g = r->g;
  g->root = -1;
  g->entry = tg_alloc(r->ctx, (r->nrule + 1) * sizeof *g->entry);
  if (!g->entry) return false;
  g->nrules = r->nrule;
  for (size_t i = 0; i < r->nrule; i++) {
    const RuleName *n = &r->rule[i];
    if (n->expr < 0)
      return llm_fail(r->ctx, TG_ERR_VALUE, "grammar: line %d: there is no rule %.*s", n->line,
                      (int)(n->n < 60 ? n->n : 60), n->at);
    if (n->n == 4 && !memcmp(n->at, "root", 4)) g->root = (int32_t)i;
    int32_t end = node_new(g, (GrammarNode){GRAMMAR_END, 0, 0, -1, -1});
    if (end < 0 || (g->entry[i] = expr_node(r, n->expr, end, 0)) < 0) return false;
  }
  if (g->root < 0) return llm_fail(r->ctx, TG_ERR_VALUE, "grammar: it has no rule root");
  return no_ring(r);
}

bool grammar_read(GrammarRules *g, const char *text, size_t n) {
  Reader r = {.g = g, .ctx = g->ctx, .at = text, .end = text + n, .line = 1};
  bool ok = rules_read(&r);
  tg_free(r.ctx, r.expr), tg_free(r.ctx, r.range), tg_free(r.ctx, r.rule);
  return ok;
}

void grammar_rules_free(GrammarRules *g) { tg_free(g->ctx, g->node), tg_free(g->ctx, g->entry); }
