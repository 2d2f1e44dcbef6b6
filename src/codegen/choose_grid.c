/* choose_grid.c: the opts of a kernel on a GPU. In: a kernel before its nest is made. Out: the list that
 * costs least by plan/grid_cost.c, among the lists that heuristic_gpu.c names and the lists that come from
 * the best of these by changing one opt at a time. The cost of a list is that of the program it makes, so
 * every effect of an opt is included. */
#include "codegen/heuristic.h"
#include "plan/grid_cost.h"
#include <math.h>

/* The most lists that are tried besides the named ones. */
enum { MOST_CHANGES = 160 };

/* The most iterations of a loop to write out beside each other: more loads are never under way. */
enum { MOST_UNROLLED = 16 };

/* A kernel that takes less than this share of its launch need not be made faster. The share is less than 1
 * because launches of a graph follow each other sooner than a single launch begins. */
static const double LITTLE = 1.0 / 3;

typedef struct Search {
  Kernel *k;
  OptVec best;
  double us;
  int left;
  bool better; /* set when a better list is found; `improved` clears it */
  bool any;    /* a list fits, even if its cost is not known */
} Search;

static bool list_copy(Kernel *k, OptVec *to, const OptVec *from) {
  to->len = 0;
  bool ok = true;
  for (size_t i = 0; ok && i < from->len; i++)
    ok = vec_push(k->mem, to, from->at[i]);
  return ok;
}

static bool cost_written(Kernel *k, Str *to, const GridCost *cost, const OptVec *list) {
  Str text;
  str_init(&text, k->mem);
  for (size_t i = 0; i < list->len; i++)
    opt_print(&text, &list->at[i]);
  grid_cost_print(to, cost);
  str_printf(to, "%s\n", str_text(&text));
  bool ok = !text.oom && !to->oom;
  str_free(&text);
  return ok;
}

/* Takes the list if it is the best so far. Returns false if out of memory. */
static bool looked_at(Search *s, const OptVec *list) {
  GridCost cost;
  bool fits;
  if (!kernel_grid_cost(s->k, list, &cost, &fits)) return false;
  if (!fits) return true;
  Str *to = s->k->opt->costs;
  if (to && !cost_written(s->k, to, &cost, list)) return false;
  if (s->any && cost.us >= s->us * (1 - 1e-6)) return true;
  s->us = cost.us;
  s->better = s->any = true;
  return list_copy(s->k, &s->best, list);
}

static bool is_long(const OptVec *list) {
  for (size_t i = 0; i < list->len; i++) {
    int64_t n = 1;
    for (size_t j = 0; j < list->len; j++)
      if (list->at[j].op == OPT_UNROLL && list->at[j].r == list->at[i].r) n *= list->at[j].n;
    if (n > MOST_UNROLLED) return true;
  }
  return false;
}

/* Tries a changed list unless it unrolls too much or no tries are left. Returns false if out of memory. */
static bool tried(Search *s, const OptVec *list) {
  return s->left-- <= 0 || is_long(list) || looked_at(s, list);
}

/* Whether an opt splits a loop by a number that can be changed. */
static bool has_number(OptOp op) {
  return op == OPT_TILE || op == OPT_LOCAL || is_upcast(op) || op == OPT_VEC || op == OPT_UNROLL ||
         op == OPT_GROUP;
}

/* Tries the list `from` without opt `without`, with size n for opt `at` (-1: none), and with `also` as
 * first or last opt. */
static bool changed(Search *s, const OptVec *from, int without, int at, int64_t n, const Opt *also,
                    bool first) {
  OptVec list = {0};
  bool ok = !also || !first || vec_push(s->k->mem, &list, *also);
  for (size_t i = 0; ok && i < from->len; i++) {
    Opt o = from->at[i];
    if ((int)i == at) o.n = n;
    if ((int)i != without) ok = vec_push(s->k->mem, &list, o);
  }
  if (ok && also && !first) ok = vec_push(s->k->mem, &list, *also);
  ok = ok && tried(s, &list);
  vec_free(s->k->mem, &list);
  return ok;
}

/* Tries the list with one more opt: each that is possible for each loop. */
static bool grown(Search *s, const Info *f, const OptVec *from) {
  bool ok = true;
  for (int i = 0; ok && i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    if (r->n < 2) continue;
    Opt inside = {r->reduce ? OPT_UNROLL : OPT_UPCAST, r->r->arg.range.id, TG_MIN(r->n, 4)},
        lanes = {OPT_VEC, inside.r, 4},
        apart = {r->reduce ? OPT_GROUP : OPT_LOCAL, inside.r, TG_MIN(power_below(r->n, WARP), WARP)};
    ok = changed(s, from, -1, -1, 0, &inside, true) && changed(s, from, -1, -1, 0, &inside, false);
    if (ok && !r->reduce) ok = changed(s, from, -1, -1, 0, &lanes, true);
    for (; ok && apart.n > 1; apart.n /= 4)
      ok = changed(s, from, -1, -1, 0, &apart, false);
  }
  return ok;
}

static bool in_grid(const Info *f, int64_t id) {
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].r->arg.range.id == id) return f->r[i].grid;
  return false;
}

static int64_t iterations_of(const Info *f, int64_t id) {
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].r->arg.range.id == id) return f->r[i].n;
  return 0;
}

/* Changes two opts of one loop: moves a factor of two from one to the other; if the first is the TILE,
 * also doubles or halves both. */
static bool scaled(Search *s, const OptVec *from, size_t first) {
  bool ok = true;
  const Opt *t = &from->at[first];
  for (size_t i = first + 1; ok && i < from->len; i++) {
    const Opt *o = &from->at[i];
    if (o->r != t->r || !has_number(o->op)) continue;
    OptVec list = {0};
    for (int way = 0; ok && way < 4; way++) { /* bit 0: the first doubles, bit 1: the second; else halved */
      bool larger = way & 1, other = way & 2;
      if ((larger == other && t->op != OPT_TILE) || (!larger && t->n % 2) || (!other && o->n % 2)) continue;
      ok = list_copy(s->k, &list, from);
      if (!ok) break;
      list.at[first].n = larger ? 2 * t->n : t->n / 2;
      list.at[i].n = other ? 2 * o->n : o->n / 2;
      ok = tried(s, &list);
    }
    vec_free(s->k->mem, &list);
  }
  return ok;
}

/* Doubles or halves the threads inside the grid: along all loops at once, because they share an axis of
 * the block. */
static bool threads_changed(Search *s, const Info *f, const OptVec *from) {
  OptVec list = {0};
  bool ok = true;
  for (int way = 0; ok && way < 2; way++) {
    int inner = 0;
    ok = list_copy(s->k, &list, from);
    for (size_t i = 0; ok && i < list.len; i++) {
      Opt *o = &list.at[i];
      if ((o->op != OPT_LOCAL && o->op != OPT_GROUP) || in_grid(f, o->r)) continue;
      o->n = way ? o->n / 2 : 2 * o->n;
      inner += o->n > 1 ? 1 : -2;
    }
    if (ok && inner > 1) ok = tried(s, &list);
  }
  vec_free(s->k->mem, &list);
  return ok;
}

/* Improves the best list until no change helps. A better list is taken at once; the opt after the changed
 * one is next. */
static bool improved(Search *s, const Info *f) {
  OptVec from = {0};
  bool ok = true;
  size_t at = 0;
  do {
    s->better = false;
    ok = list_copy(s->k, &from, &s->best);
    for (size_t n = 0; ok && !s->better && n < from.len; n++, at++) {
      size_t i = at % from.len;
      const Opt *o = &from.at[i];
      ok = changed(s, &from, (int)i, -1, 0, NULL, false);
      if (!has_number(o->op)) continue;
      if (ok && 2 * o->n <= iterations_of(f, o->r)) ok = changed(s, &from, -1, (int)i, 2 * o->n, NULL, false);
      if (ok && o->n > 2) ok = changed(s, &from, -1, (int)i, o->n / 2, NULL, false);
      if (ok) ok = scaled(s, &from, i);
    }
    if (ok && !s->better) ok = threads_changed(s, f, &from) && (s->better || grown(s, f, &from));
  } while (ok && s->better && s->left > 0);
  vec_free(s->k->mem, &from);
  return ok;
}

bool heuristic_gpu(Kernel *k, OptVec *out) {
  Info f;
  ListVec lists = {0};
  Search s = {.k = k, .us = INFINITY, .left = MOST_CHANGES};
  double little = k->opt->target->launch_us * LITTLE;
  bool ok = info_get(k, &f) && grid_lists(k, &f, &lists);
  for (size_t i = 0; ok && i < lists.len && s.us > little; i++)
    ok = looked_at(&s, &lists.at[i]);
  if (ok && s.us > little && s.us < INFINITY) ok = improved(&s, &f);
  if (ok) ok = list_copy(k, out, &s.best);
  for (size_t i = 0; i < lists.len; i++)
    vec_free(k->mem, &lists.at[i]);
  vec_free(k->mem, &lists), vec_free(k->mem, &s.best);
  info_free(k, &f);
  return ok;
}

bool grid_costs(Kernel *k) {
  Search s = {.k = k, .us = INFINITY};
  bool ok = looked_at(&s, &k->list);
  vec_free(k->mem, &s.best);
  return ok;
}
