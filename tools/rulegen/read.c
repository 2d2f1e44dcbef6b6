/* read.c: a line of rules: names and their domains, a matcher, a rule. In: its words. Out: an entry of a
 * table.
 */
#include "rulegen.h"
#include <ctype.h>
#include <string.h>

void read_vars(void) {
  while (*tok) {
    int first = nvars;
    while (tok_is_word()) {
      if (find_op(tok) >= 0 || find_var(tok) || tok_is("self") || tok_is("ctx"))
        refuse(line_no, "the name '%s' is taken", tok);
      if (nvars == 64) refuse(line_no, "more than 64 names");
      strcpy(vars[nvars++].name, tok);
      tok_next();
    }
    tok_expect(":");
    if (first == nvars) refuse(line_no, "a domain with no names");
    int op = find_op(tok), dom = DOM_ANY, dtype = -1;
    if (op >= 0) tok_next();
    int named = find_in(domains, TG_COUNT(domains), tok);
    while (*line_at == ' ')
      line_at++;
    bool next_name = op >= 0 && (!*tok || *line_at == ':' ||
                                 (named < 0 && find_dtype(tok) < 0)); /* what follows an op may be left out */
    if (!next_name) {
      dtype = named < 0 ? find_dtype(tok) : -1, dom = TG_MAX(named, 0);
      if (named < 0 && dtype < 0) refuse(line_no, "unknown domain %s", tok);
      tok_next();
    }
    for (int i = first; i < nvars; i++)
      vars[i].dom = dom, vars[i].op = op, vars[i].dtype = dtype, vars[i].is_const = op == OPS_CONST;
  }
}

void read_matcher(bool grad) {
  if (nmatchers == 32) refuse(line_no, "more than 32 matchers");
  MatcherDef *m = &matchers[nmatchers++];
  m->first = m->end = nrules, m->line = line_no, m->grad = grad;
  if (!tok_is_word()) refuse(line_no, "a matcher needs a name");
  strcpy(m->name, tok);
  tok_next();
  if (tok_take("=")) do {
      if (tok_take("...")) break;
      if (m->nbase == 4) refuse(line_no, "more than 4 matchers");
      strcpy(m->base[m->nbase++], tok);
      tok_next();
    } while (tok_take("+"));
  if (tok_is("ctx")) {
    tok_next();
    const char *at = tok_at;
    while (*tok && !tok_is("if"))
      tok_next();
    size_t n = (size_t)(tok_at - at);
    while (n && at[n - 1] == ' ')
      n--;
    if (!n || n >= sizeof m->ctx) refuse(line_no, "a context needs a C type");
    memcpy(m->ctx, at, n);
  }
  if (tok_is("if")) {
    tok_next();
    m->guard = tok_at, m->guard_end = skip_guard(false);
    check_guard(&(Rule){.ctx = *m->ctx != 0}, NULL, m->guard, m->guard_end, line_no);
    line_at = m->guard_end;
    tok_next();
  }
  if (*tok) refuse(line_no, "unexpected '%s'", tok);
}

static bool in_set(const OpInfo *op, const OpSet *s) {
  if (s->from) return op->operands >= s->from && op->operands <= s->to;
  return s->flags ? op->flags & s->flags : op->weight > WEIGHT_ROOT;
}

static void read_set(Rule *r) {
  bool drop = false;
  while (*tok && !tok_is("if")) {
    if (tok_take("-")) {
      drop = true;
      continue;
    }
    uint64_t in[2] = {0, 0};
    int op = find_op(tok);
    bool known = op >= 0;
    if (known) in[op / 64] = 1ull << (op % 64);
    for (size_t s = 0; s < TG_COUNT(sets); s++)
      if (tok_is(sets[s].name)) {
        known = true;
        for (int o = 0; o < OPS_COUNT; o++)
          if (in_set(&ops[o], &sets[s])) in[o / 64] |= 1ull << (o % 64);
      }
    if (!known) refuse(line_no, "unknown op %s", tok);
    for (int k = 0; k < 2; k++)
      r->ops[k] = drop ? r->ops[k] & ~in[k] : r->ops[k] | in[k];
    tok_next();
  }
}

/* One result per source of the pattern, `-` where no gradient flows. */
static void read_gradients(Rule *r) {
  Node **to[] = {&r->res, &r->more[0], &r->more[1]};
  int n = 0;
  r->grad = true;
  do {
    if (n == 3) refuse(line_no, "more than 3 gradients");
    if (tok_is("-") && !isdigit((unsigned char)*line_at))
      tok_next();
    else
      *to[n] = expression(0);
    n++;
  } while (tok_take(","));
  if (n != r->pat->narg && !(r->pat->rest && n < r->pat->narg))
    refuse(line_no, "%s has %d sources, not %d", r->name, r->pat->narg, n);
}

void read_rule(const char *colon, const char *line) {
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
  line_at = colon + 1;
  tok_next();
  r->pat = expression(0);
  r->about = tok_take("~>");
  if (!r->about) tok_expect("=>");
  if (matchers[nmatchers - 1].grad)
    read_gradients(r);
  else
    r->res = expression(0);
  while (*tok) {
    if (tok_take("for")) {
      strcpy(r->opvar, tok);
      tok_next();
      tok_expect("in");
      read_set(r);
    } else if (tok_is("if")) {
      tok_next();
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
