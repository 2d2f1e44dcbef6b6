/* pass.c: the runner. In: a table of passes. Out: the graph after them. Between passes it counts firings,
 * traces them, checks the graph and writes dumps. */
#define _GNU_SOURCE
#include "uop/dims.h"
#include "uop/pass.h"
#include "base/os.h"
#include "uop/pass_record.h"
#include "uop/text.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *type_text(const UOp *u, char *to, size_t n) {
  snprintf(to, n, u->lanes > 1 ? "%s x%d" : "%s", dtype_name((DType)u->dtype), u->lanes);
  return to;
}

/* Refuses a rule whose result has another type. Otherwise records the rule in made_by, so that it can be
 * named if the graph is bad after the pass. */
static bool fire_checked(PassEnv *e, Rewrite *rw, const char *name, const char *where, const UOp *self,
                         const UOp *result) {
  bool tensor = self->is_tensor && result->is_tensor && self->shape != result->shape;
  if (self->dtype == result->dtype && self->lanes == result->lanes && !tensor)
    return map_put(&e->made_by, (uint64_t)(uintptr_t)result, (uint64_t)(uintptr_t)name);
  char a[40], b[40];
  Str s;
  str_init(&s, rw->mem);
  uop_expr(&s, self, 12), str_put(&s, " => "), uop_expr(&s, result, 12);
  e->bad_rule = name;
  snprintf(e->bad, sizeof e->bad, "%s: %s becomes %s%s: %s", where, type_text(self, a, sizeof a),
           type_text(result, b, sizeof b), tensor ? " of another shape" : "", str_text(&s));
  str_free(&s);
  return false;
}

static bool on_fire(RewriteEnv *re, Rewrite *rw, const char *name, const char *where, UOp *self,
                    UOp *result) {
  PassEnv *e = (PassEnv *)re;
  if (e->spec && !fire_checked(e, rw, name, where, self, result)) return false;
  if (*e->dump_dir) {
    size_t i = 0;
    while (i < e->counts.len && strcmp(e->counts.at[i].name, name))
      i++;
    if (i < e->counts.len)
      e->counts.at[i].n++;
    else if (!vec_push(e->mem, &e->counts, ((RuleCount){name, where, 1})))
      return false;
  }
  if (pass_recorded(e) && e->now) pass_record_fire(e, name, where, self, result);
  if (e->trace && e->say) {
    Str s;
    str_init(&s, rw->mem);
    if (!e->said_pass && e->now)
      str_printf(&s, "%s%s%s: pass %s\n", e->now->stage, *e->now->subject ? " " : "", e->now->subject,
                 e->pass);
    e->said_pass = true;
    str_printf(&s, "%s: %s: ", where, name);
    uop_expr(&s, self, 24), str_put(&s, " => "), uop_expr(&s, result, 24), str_put(&s, "\n");
    e->say(e->say_to, str_text(&s));
    str_free(&s);
  }
  return true;
}

void pass_env_init(PassEnv *e, const TgEnv *env, const TgOs *os, TgMem *mem,
                   void (*say)(void *to, const char *text), void *say_to) {
  *e = (PassEnv){.rewrites = {.limit = env->rule_limit},
                 .mem = mem,
                 .os = os,
                 .trace = env->trace_rules,
                 .trace_choices = env->trace_choices,
                 .opts.limit = env->opt_limit,
                 .fusions.limit = env->fuse_limit,
                 .spec = env->spec,
                 .say = say,
                 .say_to = say_to};
  memcpy(e->dump_dir, env->dump_dir, sizeof e->dump_dir);
  memcpy(e->record_dir, env->viz, sizeof e->record_dir);
  map_init(&e->made_by, mem);
  str_init(&e->record, mem), str_init(&e->rewrites_text, mem);
  if (e->trace || e->spec || *e->dump_dir || pass_recorded(e)) e->rewrites.on_fire = on_fire;
}

void pass_env_free(PassEnv *e) { vec_free(e->mem, &e->counts), map_free(&e->made_by), pass_record_free(e); }

/* ---- dumps: DIR/k003-r_4_4.2-expand.uop and .dot */
static bool write_file(const TgOs *os, const char *path, const char *text, size_t n) {
  int fd = os->open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  bool ok = os_write_all(os, fd, text, n);
  return (os->close(fd) == 0) & ok;
}

/* Writes the graph as text, which can be read back, with counts of the rules that fired; a graph also as
 * dot. */
static bool dump(PassRun *r, const UOpVec *roots, int number, const char *pass, const RewriteEnv *before) {
  PassEnv *e = r->env;
  const RewriteEnv *now = &e->rewrites;
  char path[512];
  Str text, dot;
  str_init(&text, r->mem), str_init(&dot, r->mem);
  bool linear = r->linear && r->linear->n;
  str_printf(&text,
             "# %s%s%s, after pass %d: %s\n# %llu visits, %llu firings, %llu nodes made, %llu nested\n",
             r->stage, *r->subject ? " " : "", r->subject, number, pass,
             (unsigned long long)(now->visits - before->visits),
             (unsigned long long)(now->firings - before->firings),
             (unsigned long long)(now->created - before->created),
             (unsigned long long)(now->nested - before->nested));
  for (size_t i = 0; i < e->counts.len; i++)
    str_printf(&text, "# %8llu %s (%s)\n", (unsigned long long)e->counts.at[i].n, e->counts.at[i].name,
               e->counts.at[i].where);
  e->counts.len = 0;
  bool ok = linear ? uop_print_list(&text, r->linear, r->mem)
                   : dims_put(&text, r->st, r->mem, roots->at, roots->len) &&
                         uop_print(&text, r->st, r->mem, roots->at, roots->len);
  if (r->more) ok = ok && r->more(r->state, pass, &text);
  ok = ok && (linear || uop_dot(&dot, r->st, r->mem, roots->at, roots->len)) && !text.oom && !dot.oom;
  for (int k = 0; ok && k < (linear ? 1 : 2); k++) {
    int n = snprintf(path, sizeof path, "%s/%c%03d%s%s.%d-%s.%s", e->dump_dir, r->letter, r->number,
                     *r->subject ? "-" : "", r->subject, number, pass, k ? "dot" : "uop");
    for (char *c = path + strlen(e->dump_dir) + 1; *c; c++)
      if (*c == ' ' || *c == '/') *c = '_';
    e->os->mkdir(e->dump_dir, 0777); /* it may exist already; otherwise open reports the problem */
    const Str *s = k ? &dot : &text;
    if (n < 0 || (size_t)n >= sizeof path || !write_file(e->os, path, s->at, s->len)) {
      error_set(r->err, TG_ERR_IO, "dump: cannot write %.300s", path);
      ok = false;
    }
  }
  str_free(&text), str_free(&dot);
  return ok;
}

/* ---- spec */
/* The rule that returned the bad node, or the nearest node above it. NULL: none did. */
static const char *rule_behind(PassEnv *e, PassRun *r, const UOpVec *roots, const UOp *bad) {
  const char *rule = map_get_ptr(&e->made_by, bad);
  UOpVec order = {0};
  uint8_t *above = mem_alloc(r->mem, store_id_limit(r->st) + 1);
  bool ok = !rule && above && uop_toposort(r->st, r->mem, roots->at, roots->len, &order);
  if (above) above[bad->id] = 1;
  for (size_t i = 0; ok && !rule && i < order.len; i++) {
    const UOp *u = order.at[i];
    for (int k = 0; k < u->nsrc; k++)
      above[u->id] |= above[u->src[k]->id];
    if (above[u->id]) rule = map_get_ptr(&e->made_by, u);
  }
  vec_free(r->mem, &order);
  mem_free(r->mem, above);
  return rule;
}

static bool refuse(PassRun *r, const char *pass, const char *rule, const char *why, const UOp *node) {
  Str s;
  str_init(&s, r->mem);
  if (node) str_put(&s, ": "), uop_line(&s, node), str_put(&s, ": "), uop_expr(&s, node, 12);
  error_set(r->err, TG_ERR_INTERNAL, "spec: %s%s%s: after %s%s%s: %s%s", r->stage, *r->subject ? " " : "",
            r->subject, pass, rule ? ", rule " : "", rule ? rule : "", why, str_text(&s));
  str_free(&s);
  return false;
}

/* Checks, for graphs of at most this many nodes, that the printed text reads back as the same text. */
#define MAX_ROUND_TRIP 4000

static bool round_trip(PassRun *r, const UOpVec *roots, const char *pass) {
  bool linear = r->linear && r->linear->n;
  TgMem *m = r->mem;
  Str a, b;
  UOpText t = {.mem = m};
  TgError err = {0};
  str_init(&a, m), str_init(&b, m);
  UOpStore *st = store_new(m);
  if (st) store_set_dims(st, store_dims(r->st));
  bool ok =
      st && (linear ? uop_print_list(&a, r->linear, m) : uop_print(&a, r->st, m, roots->at, roots->len));
  bool same = true;
  if (ok && !uop_parse(&t, st, m, str_text(&a), a.len, &err)) ok = false;
  ok = ok && (linear ? uop_print_list(&b, &t.program, m) : uop_print(&b, st, m, t.roots.at, t.roots.len));
  if (ok) same = !strcmp(str_text(&a), str_text(&b));
  if (err.status == TG_ERR_VALUE || !same)
    ok = refuse(r, pass, NULL, same ? err.msg : "the text of the graph reads back as another graph", NULL);
  uop_text_free(&t);
  store_free(st);
  str_free(&a), str_free(&b);
  return ok;
}

static bool check(PassRun *r, const UOpVec *roots, const char *pass, GraphKind kind) {
  SpecError bad;
  bool linear = r->linear && r->linear->n;
  if (linear ? spec_linear(r->linear, r->mem, &bad)
             : spec_graph(r->st, r->mem, kind, roots->at, roots->len, &bad))
    return store_count(r->st) > MAX_ROUND_TRIP || round_trip(r, roots, pass);
  return bad.node
             ? refuse(r, pass, linear ? NULL : rule_behind(r->env, r, roots, bad.node), bad.why, bad.node)
             : false;
}

static bool look(PassRun *r, int number, const char *pass, GraphKind kind, const RewriteEnv *before) {
  PassEnv *e = r->env;
  if (!e || (!*e->dump_dir && !e->spec && !pass_recorded(e))) return true;
  UOpVec roots = {0};
  bool ok = r->graph(r->state, &roots);
  if (ok && pass_recorded(e)) pass_record_graph(e, r, &roots, number, pass);
  if (ok && *e->dump_dir) ok = dump(r, &roots, number, pass, before);
  if (ok && e->spec) ok = check(r, &roots, pass, kind);
  vec_free(r->mem, &roots);
  return ok;
}

/* Whether `list` contains the pass's name. */
static bool pass_listed(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
    if (strcspn(p, ",") == n && !strncmp(p, name, n)) return true;
  return false;
}

const char *pass_unknown(const char *list, const Pass *table, size_t n, int *length) {
  for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
    bool known = false;
    *length = (int)strcspn(p, ",");
    for (size_t i = 0; i < n; i++)
      known |= table[i].optional && (int)strlen(table[i].name) == *length &&
               !strncmp(p, table[i].name, (size_t)*length);
    if (!known) return p;
  }
  return NULL;
}

bool passes_run(PassRun *r, const Pass *table, size_t n) {
  PassEnv *e = r->env;
  RewriteEnv before = {0};
  if (e) {
    e->now = r;
    before = e->rewrites;
  }
  bool ok = look(r, 0, "input", r->takes, &before);
  for (size_t i = 0; ok && i < n; i++) {
    const Pass *p = &table[i];
    if (e && e->made_by.len) map_clear(&e->made_by);
    if (e) {
      e->pass = p->name;
      e->said_pass = false;
      e->bad_rule = NULL;
      before = e->rewrites;
    }
    if (p->optional && pass_listed(r->skip, p->name))
      ok = true;
    else if (p->matcher) {
      Rewrite rw = {.st = r->st,
                    .mem = r->mem,
                    .ctx = r->state,
                    .top_down = p->top_down,
                    .required = p->required,
                    .mark = p->matcher == pm_symbolic ? MARK_SIMPLE : 0};
      ok = (*r->root = graph_rewrite(&rw, p->matcher, *r->root)) != NULL;
    } else
      ok = p->run(r->state);
    if (!ok && e && e->bad_rule) refuse(r, p->name, e->bad_rule, e->bad, NULL);
    ok = ok && look(r, (int)i + 1, p->name, p->makes, &before);
  }
  if (e && pass_recorded(e)) ok = pass_record_end(e, r) && ok;
  if (e) e->now = NULL;
  return ok;
}
