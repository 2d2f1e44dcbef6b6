/* stages.c: reads back the text of stages (schedule/stage_text.h), for `tg opt --from`, the tests and `tg
 * bisect`. In: what TG_DUMP or tg_opt wrote after a pass of the scheduler. Out: a Sched as it was then. The
 * text is not trusted: numbers of stages, kernels and axes are checked. */
#include "emu/stages.h"
#include "schedule/stage_text.h"
#include "uop/text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const StageField stage_fields[] = {STAGE_FIELDS(STAGE_FIELD)};

typedef struct Reader {
  Sched *s;
  UOpVec roots;
  size_t next; /* index of the next root */
  int nstage, nkernel, line;
} Reader;

static bool wrong(Reader *r, const char *what) {
  error_set(r->s->err, TG_ERR_VALUE, "opt: line %d of the stages: %s", r->line, what);
  return false;
}

static UOp *root(Reader *r) { return r->next < r->roots.len ? r->roots.at[r->next++] : NULL; }

/* Returns the value of " name=" in a line. NULL: the line has no such name. */
static const char *value_of(const char *line, const char *name) {
  char key[40];
  size_t n = (size_t)snprintf(key, sizeof key, " %s=", name);
  const char *at = strstr(line, key);
  return at ? at + n : NULL;
}

static int64_t whole(const char *line, const char *name, int64_t otherwise) {
  const char *at = value_of(line, name);
  return at ? strtoll(at, NULL, 10) : otherwise;
}

/* Reads a list 1,2,3 and returns its length. */
static int numbers(const char *at, int *v, int most) {
  int n = 0;
  for (char *end; at && n < most; at = end + 1) {
    v[n++] = (int)strtol(at, &end, 10);
    if (end == at) return n - 1;
    if (*end != ',') break;
  }
  return n;
}

static bool ints_read(Reader *r, const char *at, int limit, IntVec *v) {
  for (char *end; at; at = *end == ',' ? end + 1 : NULL) {
    long x = strtol(at, &end, 10);
    if (end == at || x < 0 || x >= limit) return wrong(r, "a number of a stage that is not there");
    if (!vec_push(r->s->mem, v, (int)x)) return false;
  }
  return true;
}

static bool field_read(Reader *r, const StageField *f, const char *line, Stage *g) {
  void *at = (char *)g + f->offset;
  int64_t v = whole(line, f->name, 0);
  switch (f->kind) {
  case FIELD_BOOL: *(bool *)at = v != 0; break;
  case FIELD_INT: *(int *)at = (int)v; break;
  case FIELD_BITS: *(uint32_t *)at = (uint32_t)v; break;
  case FIELD_WIDE: *(int64_t *)at = v; break;
  case FIELD_REAL: *(double *)at = value_of(line, f->name) ? strtod(value_of(line, f->name), NULL) : 0; break;
  /* `old` and `fresh` contain numbers of buffers, not of stages */
  case FIELD_INTS:
    return ints_read(r, value_of(line, f->name),
                     !strcmp(f->name, "old") || !strcmp(f->name, "fresh") ? INT32_MAX : r->nstage, at);
  }
  return true;
}

/* Returns a node in place of the tensor graph's node. From here on, only its op, its dtype and how a scatter
 * stores are used. */
static UOp *node_of(Reader *r, const char *line) {
  UOpStore *st = r->s->st;
  char op[32], type[16];
  int how[2] = {0};
  if (sscanf(line, "stage %*d: %31s %15s", op, type) != 2) return wrong(r, "no op and dtype"), NULL;
  int d = 0;
  while (d < DT_COUNT && strcmp(dtype_name((DType)d), type))
    d++;
  if (d == DT_COUNT) return wrong(r, "an unknown dtype"), NULL;
  UOp *zero = uop_index_const(st, 0), *scatter = NULL;
  if (numbers(value_of(line, "scatter"), how, 2) == 2) {
    Arg a = {.scatter = {.op = how[0], .how = how[1]}};
    scatter = zero ? UNEW(st, OPS_SCATTER, (DType)d, 1, a, zero, zero) : NULL;
  }
  if (!strcmp(op, "STORE"))
    return zero ? UNEW(st, OPS_STORE, (DType)d, 1, ARG0, zero, scatter ? scatter : zero) : NULL;
  if (scatter) return scatter;
  if (!strcmp(op, "CONTIGUOUS")) return zero ? UNEW(st, OPS_CONTIGUOUS, (DType)d, 1, ARG0, zero) : NULL;
  return uop_const_int(st, (DType)d, 0);
}

static bool loops_read(Reader *r, int n, UOp **to) {
  if (n < 0 || n > MAX_RANK) return wrong(r, "a number of axes that cannot be");
  for (int d = 0; d < n; d++)
    if (!(to[d] = root(r)) || (to[d]->op != OPS_RANGE && !is_const(to[d])))
      return wrong(r, "an axis that is no loop");
  return true;
}

static bool stage_read(Reader *r, const char *line) {
  Stage g = {.node = node_of(r, line)};
  bool ok = g.node != NULL;
  for (size_t k = 0; ok && k < TG_COUNT(stage_fields); k++)
    ok = field_read(r, &stage_fields[k], line, &g);
  if (!value_of(line, "kernel")) g.kernel = r->nkernel ? 0 : -1;
  if (!value_of(line, "root")) g.root = 0;
  if (ok && (g.root < -1 || g.root >= MOST_ROOTS || g.kernel < -1 || g.kernel >= r->nkernel))
    ok = wrong(r, "a root or a kernel that is not there");
  for (int d = 0; d < MAX_RANK; d++)
    g.gmap[d] = -1;
  numbers(value_of(line, "gmap"), g.gmap, MAX_RANK);
  if (ok && (!(g.value = root(r)) || !loops_read(r, g.nout, g.out) || !loops_read(r, g.nred, g.red)))
    ok = wrong(r, "fewer nodes than its numbers tell");
  g.target = ok ? root(r) : NULL;
  if (g.target && g.target->op != OPS_INDEX) g.target = NULL;
  if (whole(line, "empty", 0)) g.value = NULL;
  if (ok && g.is_store && !g.update && !g.target) ok = wrong(r, "a store without its place");
  return vec_push(r->s->mem, &r->s->stages, g) && ok;
}

/* Each axis is a number, or an expression over variables. */
static bool grid_read(Reader *r, StageSet *k) {
  if (k->ngrid < 0 || k->ngrid > MAX_RANK) return wrong(r, "a number of axes that cannot be");
  for (int d = 0; d < k->ngrid; d++) {
    UOp *e = k->grid[d] = root(r);
    if (!e || e->dtype != DT_INDEX || e->lanes != 1 || e->vmin < 0 || uop_has(e, RANGE) || uop_has(e, INDEX))
      return wrong(r, "an axis of the grid that is no number of iterations");
  }
  return true;
}

static bool kernel_read(Reader *r, const char *line) {
  StageSet k = {.level = (int)whole(line, "level", 0),
                .minout = (int)whole(line, "minout", 0),
                .ngrid = (int)whole(line, "ngrid", 0)};
  double *cost[] = {&k.cost.us,     &k.cost.launch, &k.cost.compute,
                    &k.cost.memory, &k.cost.again,  &k.cost.cores};
  const char *at = value_of(line, "cost");
  for (size_t i = 0; at && i < TG_COUNT(cost); i++) {
    char *end;
    *cost[i] = strtod(at, &end);
    at = *end == ',' ? end + 1 : NULL;
  }
  bool ok = grid_read(r, &k) && ints_read(r, value_of(line, "mem"), r->nstage, &k.mem);
  return vec_push(r->s->mem, &r->s->ks, k) && ok;
}

/* Reads the lines of the stages, the kernels and the order. */
static bool lines_read(Reader *r, const char *text) {
  bool ok = true;
  for (const char *p = text; ok && p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
    Str one;
    str_init(&one, r->s->mem);
    str_printf(&one, "%.*s", (int)strcspn(p, "\n"), p);
    const char *line = str_text(&one);
    r->line++;
    if (!strncmp(line, "stage ", 6)) ok = stage_read(r, line);
    if (!strncmp(line, "kernel ", 7)) ok = kernel_read(r, line);
    if (!strncmp(line, "order", 5)) ok = ints_read(r, value_of(line, "of"), r->nstage, &r->s->order);
    ok = ok && !one.oom;
    str_free(&one);
  }
  return ok && ((int)r->s->stages.len == r->nstage && (int)r->s->ks.len == r->nkernel
                    ? true
                    : wrong(r, "not as many stages or kernels as it says"));
}

/* Checks that a read of a stage has an index for each of the stage's axes. */
static bool reads_fit(Reader *r, UOp *value) {
  Sched *s = r->s;
  UOpVec order = {0};
  bool ok = uop_toposort(s->st, s->mem, &value, 1, &order);
  for (size_t k = 0; ok && k < order.len; k++) {
    const UOp *u = order.at[k];
    if (u->op != OPS_INDEX) continue;
    if (u->src[0]->op != OPS_PARAM) ok = wrong(r, "an INDEX of what is no memory");
    int q = ok ? read_stage(u) : -1;
    if (ok && q >= r->nstage) ok = wrong(r, "a read of a stage that is not there");
    if (ok && q >= 0 && u->nsrc != 1 + stage_at(s, q)->nout)
      ok = wrong(r, "a read with other axes than the stage has");
  }
  vec_free(s->mem, &order);
  return ok;
}

/* Whether number m of the list occurs before. */
static bool twice(const IntVec *v, size_t m) {
  for (size_t i = 0; i < m; i++)
    if (v->at[i] == v->at[m]) return true;
  return false;
}

/* Checks that each stage is listed once, by its own kernel, along axes of that kernel's grid. */
static bool kernels_fit(Reader *r) {
  Sched *s = r->s;
  int listed = 0, placed = 0;
  for (int k = 0; k < r->nkernel; k++)
    for (size_t m = 0; m < s->ks.at[k].mem.len; m++, listed++)
      if (stage_at(s, s->ks.at[k].mem.at[m])->kernel != k || twice(&s->ks.at[k].mem, m))
        return wrong(r, "a stage that its kernel does not have");
  for (int i = 0; i < r->nstage; i++) {
    const Stage *g = stage_at(s, i);
    /* a stage that was inlined last is in no kernel */
    placed += g->kernel >= 0 && !g->inlined;
    for (int d = 0; g->kernel >= 0 && d < g->nout; d++)
      if (g->gmap[d] >= s->ks.at[g->kernel].ngrid) return wrong(r, "an axis past the grid");
  }
  return listed >= placed || wrong(r, "a stage in no kernel");
}

/* Checks that the order names each stage that is not inlined once, after the stages that it reads. */
static bool order_fits(Reader *r) {
  Sched *s = r->s;
  uint8_t *seen = mem_alloc(s->mem, (size_t)r->nstage + 1);
  bool ok = seen != NULL;
  for (size_t o = 0; ok && o < s->order.len; o++) {
    const Stage *g = stage_at(s, s->order.at[o]);
    for (size_t k = 0; ok && k < g->deps.len; k++)
      if (!seen[g->deps.at[k]] && !stage_at(s, g->deps.at[k])->inlined)
        ok = wrong(r, "an order in which a stage reads a later one");
    if (ok && seen[s->order.at[o]]++) ok = wrong(r, "an order that names a stage twice");
  }
  for (int i = 0; ok && s->order.len && i < r->nstage; i++)
    if (!seen[i] && !stage_at(s, i)->inlined) ok = wrong(r, "an order without a stage");
  mem_free(s->mem, seen);
  return ok;
}

/* Computes what follows from the values, and checks the lines against it. */
static bool scanned(Reader *r) {
  Sched *s = r->s;
  SpecError bad;
  for (int i = 0; i < r->nstage; i++) {
    UOp *value = stage_at(s, i)->value;
    if (!value) continue;
    if (!spec_graph(s->st, s->mem, GRAPH_STAGES, &value, 1, &bad)) return bad.node && wrong(r, bad.why);
    if (!reads_fit(r, value)) return false;
  }
  for (int i = 0; i < r->nstage; i++)
    if (stage_at(s, i)->value && !stage_scan(s, i)) return false;
  return kernels_fit(r) && order_fits(r) && (!s->ks.len || reads_map(s));
}

static void graph_and_lines(const char *text, Str *graph, Str *lines) {
  bool state = false;
  for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
    if (strncmp(p, STAGE_TEXT, strlen(STAGE_TEXT))) continue;
    const char *line = p + strlen(STAGE_TEXT);
    state |= !strncmp(line, "state ", 6);
    str_printf(state ? lines : graph, "%.*s\n", (int)strcspn(line, "\n"), line);
  }
}

bool stages_read(Sched *s, const char *text, const char *before) {
  Str graph, lines;
  UOpText t = {.mem = s->mem};
  str_init(&graph, s->mem), str_init(&lines, s->mem);
  graph_and_lines(text, &graph, &lines);
  Reader r = {.s = s};
  const char *head = str_text(&lines), *after = value_of(head, "after");
  r.nstage = (int)whole(head, "stages", -1), r.nkernel = (int)whole(head, "kernels", 0);
  bool ok = !graph.oom && !lines.oom;
  if (ok && (!after || r.nstage < 0))
    ok = (error_set(s->err, TG_ERR_VALUE,
                    "opt: the text has no stages: TG_DUMP and .pass write them, after rangeify and on"),
          false);
  if (ok && (strlen(before) != strcspn(after, "\n") || strncmp(after, before, strlen(before))))
    ok = (error_set(s->err, TG_ERR_VALUE, "opt: these are the stages after '%.*s', not after '%s'",
                    (int)strcspn(after, "\n"), after, before),
          false);
  ok = ok && uop_parse(&t, s->st, s->mem, str_text(&graph), graph.len, s->err);
  r.roots = t.roots;
  s->next_range = whole(head, "next_range", 0);
  ok = ok && lines_read(&r, head) && scanned(&r);
  uop_text_free(&t);
  str_free(&graph), str_free(&lines);
  return ok;
}
