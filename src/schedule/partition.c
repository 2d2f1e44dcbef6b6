/* partition.c: stages -> kernels. In: stages, producers first. Out: sets of stages that share a grid; each
 * set is a kernel. A kernel has a strictly higher level than all kernels that it needs, so no cycle can
 * arise, and none is searched for. Stages are joined if the cost model says that the whole is cheaper than
 * its parts. */
#include "schedule/stage.h"
#include <stdio.h>
#include <string.h>

enum { MOST_BESIDE = 64 }; /* how many of the newest kernels are tried for sharing a launch */

/* A refused join is remembered if its cost is below this many times the cost apart, because it may pay once
 * the stage's readers have joined too. */
static const double NEARLY = 1.25;
/* Two kernels are joined only if that saves at least this share of the cheaper one, because estimates are no
 * more exact than that. The same share is required of a stage that joins a kernel if both reduce and one of
 * them is a contraction: on its own, the contraction is sure to get a tile and the other reduction is sure to
 * get lanes. */
static const double LEAST_WON = 0.02;
/* A join that avoids storing a large value may lose up to this share of its cost. The value has at least
 * LARGE_BYTES and is no smaller than the memory that it is made of, as decoded weights are. */
static const double LEAST_KEPT = 0.04, LARGE_BYTES = 1 << 20;

typedef struct Trial {
  int ngrid;
  UOp *grid[MAX_RANK];
  int old_to_new[MAX_RANK];
  int gmap[MAX_RANK];
  Cost cost;
  double won; /* time that the join saves */
} Trial;

static const IntVec *edges(const Stage *g, int kind) {
  return kind == 0 ? &g->deps : kind == 1 ? &g->after : &g->war;
}

int gmap_placed(const Gmap *g, int stage, int d) { return g->s->stages.at[stage].gmap[d]; }

static int gmap_trial(const Gmap *g, int stage, int d) {
  const Trial *t = g->trial;
  if (stage == g->stage) return t->gmap[d];
  int old = g->s->stages.at[stage].gmap[d];
  return old < 0 ? -1 : t->old_to_new[old];
}

/* ---- which other kernels a stage or a kernel needs */
/* The highest level among some kernels, the kernel it belongs to, and the highest level of any other
 * kernel. */
typedef struct Highest {
  int level, of, next;
} Highest;

static void highest_add(Highest *h, int level, int kernel) {
  if (kernel == h->of || level <= h->next) return;
  if (level <= h->level) {
    h->next = level;
    return;
  }
  h->next = h->level;
  h->level = level;
  h->of = kernel;
}

static int highest_but(const Highest *h, int kernel) { return kernel == h->of ? h->next : h->level; }

/* Notes in each kernel that stage i needs whether the stage must be in a later kernel. Returns the level that
 * the stage needs. */
static Highest look_around(Sched *s, int i) {
  const Stage *g = stage_at(s, i);
  Highest need = {0, -1, 0};
  s->looks++;
  for (int e = 0; e < 3; e++) {
    s->walked += edges(g, e)->len;
    for (size_t j = 0; j < edges(g, e)->len; j++) {
      const Stage *q = stage_at(s, edges(g, e)->at[j]);
      if (q->kernel < 0) continue;
      StageSet *k = &s->ks.at[q->kernel];
      k->strict = (k->seen == s->looks && k->strict) || e || q->in_memory;
      k->asked = false;
      k->seen = s->looks;
      highest_add(&need, k->level + 1, q->kernel);
    }
  }
  return need;
}

/* Whether stage i reads a member of kernel k. */
static bool reads_member(Sched *s, int i, const StageSet *k) {
  const Stage *g = stage_at(s, i);
  bool reads = false;
  for (size_t m = 0; m < k->mem.len && g->mapped && !reads; m++)
    reads = stage_reads(s, i, k->mem.at[m]);
  for (size_t j = 0; j < g->deps.len && !g->mapped && !reads; j++)
    reads = ints_have(&k->mem, g->deps.at[j]);
  return reads;
}

/* Matches the axes of reader g with the grid of kernel k, for one read. Updates pair (see pairs_of). */
static void pair_axes(Sched *s, const StageSet *k, const Stage *g, const Read *rd, int pair[MAX_RANK]) {
  Stage *q = stage_at(s, rd->stage);
  for (int d = 0; d < q->nout; d++) {
    int gd = q->gmap[d];
    if (gd < 0 || q->out[d]->op != OPS_RANGE) continue;
    UOp *e = rd->index->src[1 + d];
    int axis = -1;
    for (int a = 0; a < g->nout; a++)
      /* the whole axis, not a part of it */
      if (e->op == OPS_RANGE && g->out[a] == e && e->src[0] == k->grid[gd]) axis = a;
    if (axis < 0 || (pair[gd] >= 0 && pair[gd] != axis))
      pair[gd] = -2;
    else if (pair[gd] == -1)
      pair[gd] = axis;
  }
}

/* Fills pair, by grid dim of kernel k: the axis of stage i that matches it in all reads of k; -1: i reads
 * nothing of k along it; -2: no axis matches it. */
static void pairs_of(Sched *s, const StageSet *k, int i, int pair[MAX_RANK]) {
  const Stage *g = stage_at(s, i);
  for (int a = 0; a < MAX_RANK; a++)
    pair[a] = -1;
  s->walked += g->mapped ? k->mem.len : g->reads.len;
  for (size_t j = 0; j < g->reads.len && !g->mapped; j++)
    if (g->reads.at[j].stage >= 0 && ints_have(&k->mem, g->reads.at[j].stage))
      pair_axes(s, k, g, &g->reads.at[j], pair);
  for (size_t m = 0; m < k->mem.len && g->mapped; m++)
    for (int j = read_first(s, i, k->mem.at[m]); j >= 0; j = g->reads.at[j].next)
      pair_axes(s, k, g, &g->reads.at[j], pair);
}

/* Fills *t with the grid of kernel k if stage i is added. A grid dim stays if every read of i indexes it by
 * the same plain output range of i. Returns false, with the reason in `why`, if i does not fit. */
static bool fit(Sched *s, const StageSet *k, int i, Trial *t, char why[96]) {
  int pair[MAX_RANK];
  pairs_of(s, k, i, pair);
  memset(t, 0, sizeof *t);
  for (int a = 0; a < MAX_RANK; a++) {
    t->gmap[a] = -1;
    t->old_to_new[a] = -1;
  }
  for (int gd = 0; gd < k->ngrid; gd++) {
    bool twice = false;
    for (int h = 0; h < gd; h++)
      twice |= pair[h] >= 0 && pair[h] == pair[gd];
    if (pair[gd] < 0 || twice) continue;
    t->old_to_new[gd] = t->ngrid;
    t->gmap[pair[gd]] = t->ngrid;
    t->grid[t->ngrid++] = k->grid[gd];
  }
  Gmap gm = {gmap_trial, s, i, t};
  for (size_t m = 0; m < k->mem.len; m++) {
    Stage *q = stage_at(s, k->mem.at[m]);
    if (q->is_store && inner_size(s, &gm, k->mem.at[m]) > 1) {
      snprintf(why, 96, "what s%d stores is read at another index", k->mem.at[m]);
      return false;
    }
    if (q->parts && gmap_trial(&gm, k->mem.at[m], 0) < 0) {
      snprintf(why, 96, "the parts of s%d would be iterations of a loop", k->mem.at[m]);
      return false;
    }
  }
  return true;
}

/* Whether stage i must be in a later kernel than k. It must if k contains a copy that i reads from memory, or
 * a store or a reader that i waits for. */
static bool strict_edge(Sched *s, int i, const StageSet *k) {
  const Stage *g = stage_at(s, i);
  for (size_t m = 0; m < k->mem.len; m++)
    if (stage_at(s, k->mem.at[m])->in_memory && stage_reads(s, i, k->mem.at[m])) return true;
  for (size_t j = 0; j < g->after.len; j++)
    if (ints_have(&k->mem, g->after.at[j])) return true;
  for (size_t j = 0; j < g->war.len; j++)
    if (ints_have(&k->mem, g->war.at[j])) return true;
  return false;
}

/* For each kernel that stage i of kernel k needs: lowers its minout to the level of k. */
static void lower_minout(Sched *s, int i, int k) {
  Stage *g = stage_at(s, i);
  for (int e = 0; e < 3; e++)
    for (size_t j = 0; j < edges(g, e)->len; j++) {
      int q = stage_at(s, edges(g, e)->at[j])->kernel;
      if (q >= 0 && q != k) s->ks.at[q].minout = TG_MIN(s->ks.at[q].minout, s->ks.at[k].level);
    }
}

/* ---- fusions are counted, over all schedules of a program */
static void stage_said(Sched *s, Str *out, int i) {
  const Stage *g = stage_at(s, i);
  PassEnv *e = s->opt->passes;
  UOp *given = s->given ? uop_map_get(s->given, g->node) : NULL;
  str_printf(out, "s%d (%s of %s", i, op_name((Ops)g->node->op), dtype_name(stage_dtype(g)));
  for (int d = 0; d < g->nout; d++)
    str_printf(out, "%c%lld", d ? 'x' : ' ', (long long)g->out[d]->vmax + 1);
  const char *origin = e->origin ? e->origin(e->origin_to, given ? given : g->node) : "";
  str_printf(out, "%s%s)", *origin ? ", " : "", origin);
}

/* The member of kernel k that stage i reads; if there is none, the first member. */
static int read_member(Sched *s, int i, int k) {
  const Stage *g = stage_at(s, i);
  for (size_t j = 0; j < g->deps.len; j++)
    if (stage_at(s, g->deps.at[j])->kernel == k) return g->deps.at[j];
  return s->ks.at[k].mem.at[0];
}

bool fusion_taken(Sched *s, const char *how, int i, int with) {
  PassEnv *e = s->opt->passes;
  if (!e) return true;
  if (choices_left(&e->fusions) <= 0) return false;
  e->fusions.taken++;
  if (!e->trace_choices || !e->say) return true;
  Str text;
  str_init(&text, s->mem);
  str_printf(&text, "fusion %lld: %s ", (long long)e->fusions.taken, how);
  stage_said(s, &text, i);
  str_put(&text, " with "), stage_said(s, &text, with);
  str_put(&text, "\n");
  e->say(e->say_to, str_text(&text));
  str_free(&text);
  return true;
}

/* Whether two kernels must stay apart to keep results invariant: next to another sum, a sum of floats may get
 * another order. A sum of integers has the same bits in any order. */
static bool sums_apart(const Sched *s, const Cost *a, const Cost *b) {
  return s->opt->invariant && a->rounds && b->rounds;
}

/* The time that a join saves. 0 or less: it saves too little. */
static double won(const Sched *s, const Cost *a, const Cost *b, const Cost *both) {
  if (sums_apart(s, a, b)) return 0;
  bool tiled = (a->contracts && b->reduces) || (b->contracts && a->reduces);
  return a->us + b->us - both->us - (tiled ? LEAST_WON * TG_MIN(a->us, b->us) : 0);
}

/* Whether a kernel only reads memory and writes at least as many bytes, and at least LARGE_BYTES. */
static bool enlarges(Sched *s, const StageSet *kk) {
  const Stage *g = stage_at(s, kk->mem.at[0]);
  double n = 1, read = 0;
  for (int d = 0; d < g->nout; d++)
    n *= (double)range_extent(g->out[d]);
  for (size_t r = 0; r < g->reads.len; r++) {
    const Read *rd = &g->reads.at[r];
    if (rd->stage >= 0) return false;
    read += rd->again ? 0 : read_bytes(s, rd, rd->trips);
  }
  return kk->mem.len == 1 && !g->is_reduce && read > 0 && value_bytes(g, n) >= TG_MAX(read, LARGE_BYTES);
}

static void explain_join(const Sched *s, int i, int k, const Cost *there, const Cost *one, const Trial *t) {
  Str *out = s->opt->explain;
  str_printf(out, "%s s%d into k%d: apart ", t->won > 0 ? "join " : "no   ", i, k);
  cost_print(out, there), str_put(out, " + "), cost_print(out, one);
  str_put(out, ", fused "), cost_print(out, &t->cost);
  str_printf(out, ", grid of %d\n", t->ngrid);
}

static size_t most_members(const Sched *s) {
  return s->opt->most_stages ? (size_t)TG_MIN(s->opt->most_stages, MAX_MEMBERS) : MAX_MEMBERS;
}

/* Whether stage i may be in kernel k after look_around: all that it needs is done before, and all kernels
 * that need k still come after. */
static bool in_order(Sched *s, int k, const Highest *need) {
  const StageSet *kk = &s->ks.at[k];
  if (stage_at(s, kk->mem.at[0])->fixed) return false; /* its loops run in order, so it stays alone */
  if ((kk->seen == s->looks && kk->strict) || kk->mem.len >= most_members(s)) return false;
  int level = highest_but(need, k);
  return level <= kk->level || kk->minout > level;
}

/* Computes the cost of kernel k with stage i and the grid in t. Returns false if that is impossible. */
static bool try_join(Sched *s, int i, int k, const Cost *one, Trial *t) {
  const StageSet *kk = &s->ks.at[k];
  int mem[MAX_MEMBERS];
  int64_t elems[MAX_MEMBERS], bytes;
  Gmap gm = {gmap_trial, s, i, t};
  size_t nmem = kk->mem.len;
  memcpy(mem, kk->mem.at, nmem * sizeof *mem);
  mem[nmem++] = i;
  if (!local_plan(s, &gm, mem, nmem, elems, &bytes)) {
    if (s->opt->explain)
      str_printf(s->opt->explain, "no    s%d into k%d: rows of %.1f KB do not fit %lld KB of local memory\n",
                 i, k, (double)bytes / 1024, (long long)s->opt->target->local_bytes >> 10);
    return false;
  }
  t->cost = kernel_cost(s, mem, nmem, t->ngrid, t->grid, &gm);
  t->won = won(s, &kk->cost, one, &t->cost);
  if (one->reduces && reads_member(s, i, kk) && enlarges(s, kk)) t->won += LEAST_KEPT * t->cost.us;
  if (s->opt->explain) explain_join(s, i, k, &kk->cost, one, t);
  return true;
}

/* The most time that a kernel may take to share a launch. It is little beside the launch, because the shapes
 * of all parts of a launch are chosen together. */
static double most_beside(const Target *t) { return 2 * t->launch_us + t->distribute_us; }

/* Whether stage i, placed by itself as in `one`, needs nothing of kernel k and has the same grid. If so,
 * fills *t. */
static bool alike(Sched *s, int i, int k, const StageSet *one, Trial *t) {
  const StageSet *kk = &s->ks.at[k];
  const Stage *g = stage_at(s, i);
  if (kk->ngrid != one->ngrid) return false;
  if (reads_member(s, i, kk)) return false; /* it does need k, so fit decides */
  memset(t, 0, sizeof *t);
  for (int a = 0; a < MAX_RANK; a++) {
    t->gmap[a] = -1;
    t->old_to_new[a] = a < kk->ngrid ? a : -1;
  }
  for (int a = 0; a < g->nout; a++) {
    if (g->gmap[a] < 0) continue;
    if (one->grid[g->gmap[a]] != kk->grid[g->gmap[a]]) return false;
    t->gmap[a] = g->gmap[a];
  }
  t->ngrid = kk->ngrid;
  memcpy(t->grid, kk->grid, sizeof t->grid);
  return true;
}

/* Whether stage i can share the launch of kernel k: both are small, and alike. If so, fills *t. */
static bool beside(Sched *s, int i, int k, const StageSet *one, const Highest *need, Trial *t) {
  const StageSet *kk = &s->ks.at[k];
  const Stage *g = stage_at(s, i);
  double most = most_beside(s->opt->target);
  if (kk->cost.us > most || one->cost.us > most || !in_order(s, k, need)) return false;
  /* its readers would have to wait for the level of k */
  if (g->readers.len && kk->level > need->level) return false;
  return alike(s, i, k, one, t);
}

/* Makes stage i a member of kernel k with the grid in t. Returns false if out of memory. */
static bool put_in(Sched *s, int i, int k, const Trial *t) {
  StageSet *kk = &s->ks.at[k];
  for (size_t m = 0; m < kk->mem.len; m++) {
    Stage *q = stage_at(s, kk->mem.at[m]);
    for (int d = 0; d < q->nout; d++)
      q->gmap[d] = q->gmap[d] < 0 ? -1 : t->old_to_new[q->gmap[d]];
  }
  memcpy(stage_at(s, i)->gmap, t->gmap, sizeof t->gmap);
  memcpy(kk->grid, t->grid, sizeof kk->grid);
  kk->ngrid = t->ngrid;
  stage_at(s, i)->kernel = k;
  return vec_push(s->mem, &kk->mem, i);
}

/* Puts stage i into the kernel that gains most, or into a new one. Returns false if out of memory. */
static bool place(Sched *s, int i) {
  Stage *g = stage_at(s, i);
  StageSet one;
  stage_cost(s, i, &one);
  int best = -1;
  Highest need = look_around(s, i);
  Trial bt = {0}, t;
  double gain = 0;
  bool joins = fuses(s->opt) && !g->fixed;
  for (size_t j = 0; joins && j < g->deps.len; j++) {
    int k = stage_at(s, g->deps.at[j])->kernel;
    if (k < 0 || s->ks.at[k].asked) continue;
    s->ks.at[k].asked = true;
    if (!in_order(s, k, &need)) continue;
    char why[96] = "";
    if (!fit(s, &s->ks.at[k], i, &t, why)) {
      if (s->opt->explain) str_printf(s->opt->explain, "no    s%d into k%d: %s\n", i, k, why);
      continue;
    }
    if (!try_join(s, i, k, &one.cost, &t)) continue;
    double apart = s->ks.at[k].cost.us + one.cost.us;
    bool better = t.won > gain; /* it joins one of several kernels; chain_refused tries to join the rest */
    int other = better ? best : k;
    Refused left = {other < 0 ? -1 : s->ks.at[other].mem.at[0], i};
    if (other >= 0 && t.cost.us < NEARLY * apart && !vec_push(s->mem, &s->refused, left)) return false;
    if (better) {
      gain = t.won;
      best = k;
      bt = t;
    }
  }
  for (size_t k = s->ks.len, tried = 0; joins && best < 0 && k-- > 0 && tried < MOST_BESIDE; tried++)
    if (beside(s, i, (int)k, &one, &need, &t) && try_join(s, i, (int)k, &one.cost, &t) && t.won > 0) {
      best = (int)k;
      bt = t;
    }
  if (best >= 0 && !fusion_taken(s, "join", i, read_member(s, i, best))) best = -1;
  if (best < 0) {
    one.level = need.level;
    if (!vec_push(s->mem, &one.mem, i) || !vec_push(s->mem, &s->ks, one)) {
      vec_free(s->mem, &one.mem);
      return false;
    }
    g->kernel = (int)s->ks.len - 1;
  } else {
    StageSet *k = &s->ks.at[best];
    k->level = TG_MAX(k->level, highest_but(&need, best));
    k->cost = bt.cost;
    if (!put_in(s, i, best, &bt)) return false;
    for (size_t m = 0; m < k->mem.len; m++)
      lower_minout(s, k->mem.at[m], best);
  }
  lower_minout(s, i, g->kernel);
  return true;
}

/* ---- joining whole kernels: a stage alone may not pay in the kernel that it reads, but its whole kernel
 * may. An example is the maximum of scores, if its exponentials read these scores too. */
typedef struct Undo {
  int stage, gmap[MAX_RANK];
} Undo;

/* The stages that come after each stage, along all edges: for stage i, who[first[i]] .. who[first[i + 1] -
 * 1]. */
typedef struct Followers {
  int *first, *who;
} Followers;

static bool followers_of(Sched *s, Followers *f) {
  size_t n = s->stages.len, nedge = 0;
  if (!(f->first = mem_alloc(s->mem, (n + 2) * sizeof *f->first))) return false;
  int *count = f->first + 2; /* shifted by one, so that filling moves each beginning to its final place */
  for (size_t i = 0; i < n; i++)
    for (int e = 0; e < 3; e++) {
      const IntVec *v = edges(stage_at(s, (int)i), e);
      nedge += v->len;
      for (size_t j = 0; j < v->len; j++)
        count[v->at[j]]++;
    }
  for (size_t i = 2; i <= n; i++)
    f->first[i] += f->first[i - 1];
  if (!(f->who = mem_alloc(s->mem, (nedge + 1) * sizeof *f->who))) return false;
  for (size_t i = 0; i < n; i++)
    for (int e = 0; e < 3; e++) {
      const IntVec *v = edges(stage_at(s, (int)i), e);
      for (size_t j = 0; j < v->len; j++)
        f->who[f->first[v->at[j] + 1]++] = (int)i;
    }
  return true;
}

/* The levels around a kernel. need: one more than the highest level of the kernels that it needs. first: the
 * lowest level of the kernels that need it, negated for highest_add. */
typedef struct Between {
  int kernel; /* -1: not known */
  Highest need, first;
} Between;

static void between_of(Sched *s, const Followers *f, int k, Between *w) {
  const IntVec *mem = &s->ks.at[k].mem;
  *w = (Between){k, {0, -1, 0}, {-INT32_MAX, -1, -INT32_MAX}};
  for (size_t m = 0; m < mem->len; m++) {
    const Stage *g = stage_at(s, mem->at[m]);
    for (int e = 0; e < 3; e++) {
      s->walked += edges(g, e)->len;
      for (size_t j = 0; j < edges(g, e)->len; j++) {
        int q = stage_at(s, edges(g, e)->at[j])->kernel;
        if (q >= 0 && q != k) highest_add(&w->need, s->ks.at[q].level + 1, q);
      }
    }
    for (int j = f->first[mem->at[m]]; j < f->first[mem->at[m] + 1]; j++) {
      int q = stage_at(s, f->who[j])->kernel;
      if (q >= 0 && q != k) highest_add(&w->first, -s->ks.at[q].level, q);
    }
  }
}

/* The level of both kernels as one; *before: the lowest level of the kernels that need them. Returns -1 if
 * that is not higher. */
static int level_of_both(const Between *a, const Between *b, int *before) {
  int need = TG_MAX(highest_but(&a->need, b->kernel), highest_but(&b->need, a->kernel));
  *before = -TG_MAX(highest_but(&a->first, b->kernel), highest_but(&b->first, a->kernel));
  return need < *before ? need : -1;
}

/* Whether the members of kernel b may be in kernel a. */
static bool may_chain(Sched *s, int a, int b) {
  const StageSet *ka = &s->ks.at[a], *kb = &s->ks.at[b];
  if (a == b || !ka->mem.len || !kb->mem.len || ka->mem.len + kb->mem.len > most_members(s)) return false;
  bool may = !stage_at(s, ka->mem.at[0])->fixed && !stage_at(s, kb->mem.at[0])->fixed;
  for (size_t m = 0; may && m < kb->mem.len; m++)
    may = !strict_edge(s, kb->mem.at[m], ka);
  return may;
}

static bool same_grid(const StageSet *a, const StageSet *b) {
  for (int d = 0; d < a->ngrid && a->ngrid == b->ngrid; d++)
    if (a->grid[d] != b->grid[d]) return false;
  return a->ngrid == b->ngrid;
}

/* Whether stage i, of a kernel with the same grid as k, can keep its axes in k. It can if it reads only
 * values of k from its own grid point. If so, fills *t. */
static bool stands(Sched *s, const StageSet *k, int i, Trial *t) {
  const Stage *g = stage_at(s, i);
  int pair[MAX_RANK];
  pairs_of(s, k, i, pair);
  memset(t, 0, sizeof *t);
  for (int gd = 0; gd < k->ngrid; gd++) {
    if (pair[gd] != -1 && (pair[gd] < 0 || g->gmap[pair[gd]] != gd)) return false;
    t->old_to_new[gd] = gd;
  }
  memcpy(t->gmap, g->gmap, sizeof t->gmap);
  memcpy(t->grid, k->grid, sizeof t->grid);
  t->ngrid = k->ngrid;
  return true;
}

/* Puts the members of kernel b into a, and computes the cost of the whole. *cost is IMPOSSIBLE_US if they do
 * not fit. Returns false if out of memory. */
static bool chained_cost(Sched *s, int a, int b, Cost *cost) {
  StageSet *ka = &s->ks.at[a];
  int64_t elems[MAX_MEMBERS], bytes;
  Gmap gm = {.of = gmap_placed, .s = s};
  Trial t;
  char why[96];
  *cost = (Cost){.us = IMPOSSIBLE_US};
  for (size_t m = 0; m < s->ks.at[b].mem.len; m++) {
    int i = s->ks.at[b].mem.at[m];
    if (!same_grid(ka, &s->ks.at[b]) || !stands(s, ka, i, &t)) {
      StageSet one;
      stage_cost(s, i, &one);
      if (!alike(s, i, a, &one, &t) && !fit(s, ka, i, &t, why)) return true;
    }
    if (!put_in(s, i, a, &t)) return false;
  }
  if (local_plan(s, &gm, ka->mem.at, ka->mem.len, elems, &bytes))
    *cost = kernel_cost(s, ka->mem.at, ka->mem.len, ka->ngrid, ka->grid, &gm);
  return true;
}

static void undo(Sched *s, const Undo *was, size_t na, size_t n, int a, int b) {
  for (size_t m = 0; m < n; m++) {
    Stage *g = stage_at(s, was[m].stage);
    memcpy(g->gmap, was[m].gmap, sizeof g->gmap);
    g->kernel = m < na ? a : b;
  }
}

/* Joins kernels a and b if that pays. wb: the levels around b, if known; afterwards they are known unless
 * levels changed. Returns false if out of memory. */
static bool chain(Sched *s, const Followers *f, int a, int b, Between *wb) {
  Undo was[MAX_MEMBERS];
  StageSet *ka = &s->ks.at[a], *kb = &s->ks.at[b], old = *ka;
  const size_t na = ka->mem.len, n = na + kb->mem.len;
  Between wa;
  int before, level;
  if (!may_chain(s, a, b)) return true;
  between_of(s, f, a, &wa);
  if (wb->kernel != b) between_of(s, f, b, wb);
  if ((level = level_of_both(&wa, wb, &before)) < 0) return true;
  for (size_t m = 0; m < n; m++) {
    was[m].stage = m < na ? ka->mem.at[m] : kb->mem.at[m - na];
    memcpy(was[m].gmap, stage_at(s, was[m].stage)->gmap, sizeof was[m].gmap);
  }
  Cost cost;
  bool ok = chained_cost(s, a, b, &cost), wins = ok && !sums_apart(s, &old.cost, &kb->cost);
  double least = LEAST_WON * TG_MIN(old.cost.us, kb->cost.us);
  if (kb->cost.reduces && enlarges(s, &old)) least = -LEAST_KEPT * cost.us;
  wins = wins && old.cost.us + kb->cost.us - cost.us > least;
  wins = wins && fusion_taken(s, "chain", kb->mem.at[0], was[0].stage);
  if (ok && s->opt->explain && cost.us < IMPOSSIBLE_US) {
    str_printf(s->opt->explain, "%s k%d and k%d: apart ", wins ? "chain" : "no   ", a, b);
    cost_print(s->opt->explain, &old.cost), str_put(s->opt->explain, " + ");
    cost_print(s->opt->explain, &kb->cost), str_put(s->opt->explain, ", one ");
    cost_print(s->opt->explain, &cost), str_put(s->opt->explain, "\n");
  }
  if (!wins) {
    undo(s, was, na, n, a, b);
    IntVec mem = ka->mem;
    *ka = old;
    ka->mem = mem;
    ka->mem.len = na;
    return ok;
  }
  ka->cost = cost;
  ka->level = level;
  ka->minout = before;
  kb->mem.len = 0;
  wb->kernel = -1;
  for (size_t m = 0; m < n; m++)
    lower_minout(s, was[m].stage, a);
  return true;
}

/* Tries refused joins again as joins of whole kernels. A join may pay once one of the kernels has grown:
 * scores pay next to their maximum once the product that reads their exponentials is there too. */
static bool chain_refused(Sched *s) {
  Followers f = {0};
  Between around = {.kernel = -1};
  bool ok = !s->refused.len || followers_of(s, &f);
  for (int pass = 1, grown = 0; ok && pass <= grown + 1; pass++)
    for (size_t r = 0; ok && r < s->refused.len; r++) {
      int a = stage_at(s, s->refused.at[r].member)->kernel, b = stage_at(s, s->refused.at[r].stage)->kernel;
      size_t had = s->ks.at[a].mem.len;
      if (TG_MAX(s->ks.at[a].grown, s->ks.at[b].grown) < pass - 1) continue;
      ok = chain(s, &f, a, b, &around);
      if (s->ks.at[a].mem.len > had) s->ks.at[a].grown = grown = pass;
    }
  mem_free(s->mem, f.first), mem_free(s->mem, f.who);
  return ok;
}

/* Whether kernel a can run together with b: both are small and have the same grid, and all kernels that need
 * a run after b. */
static bool may_share(Sched *s, const StageSet *a, const StageSet *b) {
  double most = most_beside(s->opt->target);
  if (a == b || !a->mem.len || !b->mem.len || a->mem.len + b->mem.len > most_members(s)) return false;
  if (a->cost.us > most || b->cost.us > most || a->level > b->level || a->minout <= b->level) return false;
  if (stage_at(s, a->mem.at[0])->fixed || stage_at(s, b->mem.at[0])->fixed) return false;
  return same_grid(a, b);
}

/* Moves the members of kernel a to kernel b if one launch costs less than two. Returns false if out of
 * memory. */
static bool share(Sched *s, int a, int b) {
  StageSet *ka = &s->ks.at[a], *kb = &s->ks.at[b];
  Gmap gm = {.of = gmap_placed, .s = s};
  int mem[MAX_MEMBERS];
  int64_t elems[MAX_MEMBERS], bytes;
  size_t na = ka->mem.len, nb = kb->mem.len;
  memcpy(mem, kb->mem.at, nb * sizeof *mem);
  memcpy(mem + nb, ka->mem.at, na * sizeof *mem);
  if (!local_plan(s, &gm, mem, na + nb, elems, &bytes)) return true;
  Cost cost = kernel_cost(s, mem, na + nb, kb->ngrid, kb->grid, &gm);
  if (cost.us >= ka->cost.us + kb->cost.us || sums_apart(s, &ka->cost, &kb->cost) ||
      !fusion_taken(s, "share", ka->mem.at[0], kb->mem.at[0]))
    return true;
  if (!vec_reserve(s->mem, &kb->mem, na + nb)) return false;

  if (s->opt->explain) str_printf(s->opt->explain, "share k%d and k%d: one launch\n", a, b);
  memcpy(kb->mem.at, mem, (na + nb) * sizeof *mem);
  kb->mem.len = na + nb;
  ka->mem.len = 0;
  kb->cost = cost;
  kb->minout = TG_MIN(ka->minout, kb->minout);
  for (size_t m = 0; m < na; m++)
    stage_at(s, mem[nb + m])->kernel = b;
  for (size_t m = 0; m < na; m++)
    lower_minout(s, mem[nb + m], b);
  return true;
}

/* Lets small kernels that do not wait for each other share a launch. When their first stages were placed,
 * they may have had other grids or levels than now. */
static bool share_launches(Sched *s) {
  for (size_t a = 0; a < s->ks.len; a++) {
    size_t first = a > MOST_BESIDE ? a - MOST_BESIDE : 0, end = TG_MIN(s->ks.len, a + MOST_BESIDE);
    for (size_t b = first; b < end; b++)
      if (may_share(s, &s->ks.at[a], &s->ks.at[b]) && !share(s, (int)a, (int)b)) return false;
  }
  return true;
}

bool place_stages(Sched *s) {
  if (!reads_map(s)) return false;
  for (size_t k = 0; k < s->order.len; k++)
    if (!place(s, s->order.at[k])) return false;
  return !fuses(s->opt) || (chain_refused(s) && share_launches(s));
}
