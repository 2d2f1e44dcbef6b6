/* build.c: kernels as sets of stages -> kernel graphs. In: the members of each kernel, with their axes in
 * the grid. Out: a SINK of STOREs over RANGE, INDEX and REDUCE. Slots and loops are numbered in an order
 * that does not depend on the kernel's position in the schedule, so that equal kernels are equal text.
 *
 * Phases. A member that needs a finished reduction, or a row at another inner index, is one phase later.
 * Members of one phase with equal inner extents use the same RANGEs, and so share a loop: a softmax sums
 * its exponentials in the loop that stores them. What a later phase reads is in a register if it has no
 * inner axis. Otherwise it is in a DEFINE_LOCAL row, or it is computed again (local_plan decides). */
#include "schedule/stage.h"
#include <string.h>

typedef struct Nest {
  int phase, n;
  UOp *r[MAX_RANK];
} Nest; /* loops that members of a phase share */

typedef struct Member {
  UOp *value, *local;
  int nnest, phase;
  UOp *nest[MAX_RANK];
  int64_t elems;
} Member; /* value over the grid and the loops in nest; elems: elements in local memory */

typedef struct Build {
  Sched *s;
  const StageSets *ks;
  Schedule *out;
  int *temp_of;
  Member *m;
  int ki;    /* the kernel that is being built */
  int whole; /* the temporary that is being stored to */
  Vec(Nest) nests;
  /* Loops, locals and memories are numbered anew in each kernel, so that equal kernels have the same
   * nodes. */
  int64_t first_range, nlocal;
  Vec(int64_t) slots; /* the memories of the kernel; their slots begin at LOCAL_SLOT */
  Map numbered;       /* SINK of a kernel, before it is numbered -> Numbered */
} Build;

#define LOCAL_SLOT (INT64_C(1) << 41)

/* The slot of memory `global` in the kernel that is being built; -1: out of memory. */
static int64_t slot_here(Build *b, int64_t global) {
  size_t i = 0;
  while (i < b->slots.len && b->slots.at[i] != global)
    i++;
  if (i == b->slots.len && !vec_push(b->s->mem, &b->slots, global)) return -1;
  return LOCAL_SLOT + (int64_t)i;
}

/* The row-major offset. An axis of extent 1 is a constant, and is left out. */
static UOp *flat(Sched *s, int n, UOp *const *axis, UOp *const *idx) {
  UOp *f = uop_index_const(s->st, 0);
  int64_t stride = 1;
  for (int d = n - 1; d >= 0; d--) {
    if (axis[d]->op == OPS_RANGE)
      f = uop_alu2(s->st, OPS_ADD, f, uop_alu2(s->st, OPS_MUL, idx[d], uop_index_const(s->st, stride)));
    stride *= range_extent(axis[d]);
  }
  return uop_simplify(s->st, s->mem, f);
}

static UOp *placed(Build *b, UOp *value, int n, UOp *const *from, UOp *const *to);

/* The place of a stage's value in memory, at idx: in a temporary, or in the buffer that a store writes. */
static UOp *memory_at(Build *b, int i, UOp *const *idx) {
  Sched *s = b->s;
  Stage *g = stage_at(b->s, i);
  DType dt = stage_dtype(g);
  if (g->is_store && !g->update) {
    UOp *f[MAX_RANK], *t[MAX_RANK];
    int n = 0;
    for (int d = 0; d < g->nout; d++)
      if (g->out[d]->op == OPS_RANGE) {
        f[n] = g->out[d];
        t[n++] = idx[d];
      }
    return placed(b, g->target, n, f, t);
  }
  if (b->temp_of[i] < 0) {
    Schedule *o = b->out;
    SchedTemp *t = &o->temp[o->ntemp];
    *t = (SchedTemp){.dtype = dt, .nelem = stage_out_size(g), .first = -1, .last = -1, .root = g->root};
    b->temp_of[i] = o->ntemp++;
  }
  int64_t ext[MAX_RANK];
  for (int d = 0; d < g->nout; d++)
    ext[d] = range_extent(g->out[d]);
  int64_t slot = slot_here(b, TEMP_BASE + b->temp_of[i]);
  return slot < 0 ? NULL : memory_index(s, dt, stage_out_size(g), slot, g->nout, ext, idx);
}

/* Collects of[d] for each axis d that is an inner loop. Returns their number. */
static int inner_axes(const Stage *g, UOp *const *of, UOp **out) {
  int n = 0;
  for (int d = 0; d < g->nout; d++)
    if (g->out[d]->op == OPS_RANGE && g->gmap[d] < 0) out[n++] = of[d];
  return n;
}

static bool same_axes(int n, UOp *const *a, int m, UOp *const *b) {
  if (n != m) return false;
  for (int i = 0; i < n; i++)
    if (a[i] != b[i]) return false;
  return true;
}

/* The value of member q at idx (one index per out axis). It is the value itself inside q's own loops.
 * Elsewhere it is an element of q's row, or, if q has no row, the value computed again. */
static UOp *member_at(Build *b, int q, UOp *const *idx) {
  Sched *s = b->s;
  Stage *g = stage_at(b->s, q);
  Member *m = &b->m[q];
  UOp *at[MAX_RANK];
  int n = inner_axes(g, idx, at);
  if (same_axes(n, at, m->nnest, m->nest)) return m->value;
  if (!m->local) return uop_substitute(s->st, s->mem, m->value, n, m->nest, at);
  return UNEW(s->st, OPS_INDEX, stage_dtype(g), 1, ARG0, m->local, flat(s, n, m->nest, at));
}

/* Node u as it is in the kernel: it gets the new sources, and a read of a stage becomes that stage's value or
 * memory. */
static UOp *node_placed(Build *b, UOp *u, const UOpMap *there) {
  Sched *s = b->s;
  if (u->op == OPS_PARAM && u->arg.param.slot >= 0) {
    int64_t slot = slot_here(b, u->arg.param.slot);
    Arg arg = {.param = {u->arg.param.nelem, slot}};
    return slot < 0 ? NULL : uop_new(s->st, OPS_PARAM, (DType)u->dtype, 1, u->nsrc, u->src, arg);
  }
  int q = u->op == OPS_INDEX ? read_stage(u) : -1;
  if (q < 0) return uop_mapped(s->st, s->mem, u, there);
  UOp *idx[MAX_RANK];
  for (int d = 0; d + 1 < u->nsrc; d++)
    if (!(idx[d] = uop_simplify(s->st, s->mem, uop_map_get(there, u->src[d + 1])))) return NULL;
  return stage_at(s, q)->kernel == b->ki ? member_at(b, q, idx) : memory_at(b, q, idx);
}

/* The value of a stage in the kernel, with `to` in place of its loops `from`. */
static UOp *placed(Build *b, UOp *value, int n, UOp *const *from, UOp *const *to) {
  Sched *s = b->s;
  UOpVec order = {0};
  UOpMap *there = uop_map_begin(s->st, s->st);
  bool ok = there && uop_toposort(s->st, s->mem, &value, 1, &order);
  for (int i = 0; ok && i < n; i++)
    ok = uop_map_put(s->st, there, from[i], to[i]);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (uop_map_get(there, u)) continue;
    UOp *v = node_placed(b, u, there);
    ok = v && uop_map_put(s->st, there, u, v);
  }
  UOp *r = ok ? uop_simplify(s->st, s->mem, uop_map_get(there, value)) : NULL;
  vec_free(s->mem, &order);
  uop_map_end(s->st, there);
  return r;
}

/* The phase of stage i, whose innermost loops are `loop`. */
static int phase_of(Build *b, int i, int nloop, UOp *const *loop) {
  Stage *g = stage_at(b->s, i);
  int phase = 0;
  for (size_t k = 0; k < g->reads.len; k++) {
    int q = g->reads.at[k].stage;
    if (q < 0 || stage_at(b->s, q)->kernel != b->ki) continue;
    Stage *pq = stage_at(b->s, q);
    UOp *at[MAX_RANK];
    int n = inner_axes(pq, g->reads.at[k].index->src + 1, at);
    bool here = n && same_axes(n, at, nloop, loop);
    for (int d = 0, l = 0; here && d < pq->nout; d++)
      if (pq->out[d]->op == OPS_RANGE && pq->gmap[d] < 0) here = same_extent(pq->out[d], at[l++]);
    phase = TG_MAX(phase, b->m[q].phase + (pq->is_reduce || (b->m[q].elems && !here)));
  }
  return phase;
}

/* Fills `to` with the loops that this phase has for these extents, or makes them. Returns false if out of
 * memory. */
static bool shared_nest(Build *b, int phase, int n, UOp *const *loop, UOp **to) {
  Sched *s = b->s;
  for (size_t i = 0; i < b->nests.len; i++) {
    Nest *e = &b->nests.at[i];
    bool same = e->phase == phase && e->n == n;
    for (int d = 0; same && d < n; d++)
      same = same_extent(e->r[d], loop[d]);
    if (same) {
      memcpy(to, e->r, (size_t)n * sizeof *to);
      return true;
    }
  }
  Nest e = {phase, n, {0}};
  for (int d = 0; d < n; d++)
    if (!(to[d] = e.r[d] = uop_range_of(s->st, loop[d]->src[0], s->next_range++, AXIS_REDUCE))) return false;
  return vec_push(s->mem, &b->nests, e);
}

static bool build_member(Build *b, UOp *const *grid, int i) {
  Sched *s = b->s;
  Stage *g = stage_at(b->s, i);
  Member *m = &b->m[i];
  UOp *from[2 * MAX_RANK], *to[2 * MAX_RANK], *loop[MAX_RANK] = {0};
  int n = 0, nloop = 0;
  for (int d = 0; d < g->nout; d++)
    if (g->out[d]->op == OPS_RANGE && g->gmap[d] >= 0) {
      from[n] = g->out[d];
      to[n++] = grid[g->gmap[d]];
    }
  m->nnest = inner_axes(g, g->out, m->nest);
  if (g->is_reduce && !m->nnest) {
    for (int k = 0; k < g->nred; k++)
      if (g->red[k]->op == OPS_RANGE) loop[nloop++] = g->red[k];
  } else if (m->elems && !uop_has(g->value, REDUCE))
    nloop = inner_axes(g, g->out, loop);
  m->phase = phase_of(b, i, nloop, loop);
  if (nloop) {
    if (!shared_nest(b, m->phase, nloop, loop, to + n)) return false;
    memcpy(from + n, loop, (size_t)nloop * sizeof *loop);
    if (m->nnest) memcpy(m->nest, to + n, (size_t)nloop * sizeof *loop);
    n += nloop;
  }
  UOp *v = placed(b, g->value, n, from, to);
  m->value = v;
  if (!v || !m->elems) return v != NULL;
  DType dt = stage_dtype(g);
  UOp *src[2 + MAX_RANK],
      *l = uop_new(s->st, OPS_DEFINE_LOCAL, dt, 1, 0, NULL, (Arg){.param = {m->elems, b->nlocal++}});
  src[0] = UNEW(s->st, OPS_INDEX, dt, 1, ARG0, l, flat(s, m->nnest, m->nest, m->nest));
  src[1] = v;
  memcpy(src + 2, m->nest, (size_t)m->nnest * sizeof *src);
  m->local =
      UNEW(s->st, OPS_AFTER, dt, 1, ARG0, l, uop_new(s->st, OPS_STORE, DT_VOID, 1, 2 + m->nnest, src, ARG0));
  return m->local != NULL;
}

/* The loops of a stage's own store. A scatter runs in the order of its axes. The innermost loop of a scan
 * carries its value. */
static int own_loops(const Stage *g, UOp *const *idx, UOp *const *grid, int ngrid, UOp **out) {
  int n = 0;
  if (g->update)
    for (int d = 0; d < g->nout; d++)
      if (g->out[d]->op == OPS_RANGE) out[n++] = idx[d];
  if (g->update) return n;
  for (int gd = 0; gd < ngrid; gd++)
    out[n++] = grid[gd];
  return n + inner_axes(g, g->out, out + n);
}

/* Adds the stores of an update: the new value of its place, and, with SCATTER_OLD, the old value of that
 * place. */
static bool build_update(Build *b, int i, UOp *const *idx, int nloop, UOp *const *loop, UOpVec *stores) {
  Sched *s = b->s;
  Stage *g = stage_at(s, i);
  UOp *t = b->m[i].value, *n = g->node->op == OPS_STORE ? g->node->src[1] : g->node, *src[2 + MAX_RANK],
      *x[MAX_RANK + 2];
  if (t->op != OPS_TUPLE || t->nsrc != 3 || t->src[1]->op != OPS_INDEX) return false;
  UOp *place = t->src[1];
  if (!is_const_int(t->src[2], 1)) {
    memcpy(x, place->src, place->nsrc * sizeof *x);
    x[place->nsrc] = t->src[2];
    place = uop_new(s->st, OPS_INDEX, (DType)place->dtype, 1, place->nsrc + 1, x, (Arg){.i = 1});
  }
  memcpy(src + 2, loop, (size_t)nloop * sizeof *loop);
  int64_t op = n->arg.scatter.op;
  src[0] = place;
  src[1] = op == OPS_STORE ? t->src[0] : uop_alu2(s->st, (Ops)op, place, t->src[0]);
  UOp *st = src[1] ? uop_new(s->st, OPS_STORE, DT_VOID, 1, 2 + nloop, src, ARG0) : NULL;
  if (!st || !vec_push(s->mem, stores, st)) return false;
  if (!(n->arg.scatter.how & SCATTER_OLD)) return true;
  src[0] = memory_at(b, i, idx);
  src[1] = place;
  st = src[0] ? uop_new(s->st, OPS_STORE, DT_VOID, 1, 2 + nloop, src, ARG0) : NULL;
  return st && vec_push(s->mem, stores, st);
}

/* Lists the loops of a kernel in the order in which its stores and reductions list them, readers before what
 * they read. If loops are numbered in this order, equal kernels have equal loops, however their index sums
 * are written. Index sums are sorted by the names of loops, so after one more simplification equal sums are
 * equal too. */
static bool loops_listed(Sched *s, UOp *sink, UOpVec *out) {
  UOpVec todo = {0};
  UOpMap *seen = uop_map_begin(s->st, s->st);
  bool ok = seen && vec_push(s->mem, &todo, sink);
  while (ok && todo.len) {
    UOp *u = todo.at[--todo.len];
    if (uop_map_get(seen, u)) continue;
    ok = uop_map_put(s->st, seen, u, u);
    if (u->op == OPS_RANGE) ok = ok && vec_push(s->mem, out, u);
    bool lists = u->op == OPS_STORE || u->op == OPS_REDUCE;
    int listed = lists ? u->op == OPS_STORE ? 2 : 1 : u->nsrc;
    for (int i = listed; ok && i-- > 0;)
      ok = vec_push(s->mem, &todo, u->src[i]);
    for (int i = u->nsrc; ok && i-- > listed;)
      ok = vec_push(s->mem, &todo, u->src[i]);
  }
  vec_free(s->mem, &todo);
  uop_map_end(s->st, seen);
  return ok;
}

/* A kernel's graph with its final numbers. */
typedef struct Numbered {
  UOp *ast;
  int narg;
  int64_t local[]; /* by PARAM slot: its index in Build.slots */
} Numbered;

/* Numbers loops, PARAM slots and locals; slots and locals are numbered in depth-first order. */
static Numbered *renumbered(Build *b, UOp *sink) {
  Sched *s = b->s;
  UOpVec order = {0}, from = {0}, to = {0};
  Numbered *n = arena_alloc(&b->out->arena, sizeof *n + b->slots.len * sizeof n->local[0]);
  bool ok = n && loops_listed(s, sink, &from) && uop_toposort(s->st, s->mem, &sink, 1, &order);
  int64_t nl = 0;
  for (size_t i = 0; ok && i < from.len; i++) {
    Arg arg = {.range = {(int64_t)i, from.at[i]->arg.range.type}};
    UOp *r = uop_new(s->st, OPS_RANGE, DT_INDEX, 1, 1, from.at[i]->src, arg);
    ok = r && vec_push(s->mem, &to, r);
  }
  for (size_t k = 0; ok && k < order.len; k++) {
    UOp *u = order.at[k], *v = NULL;
    if (u->op == OPS_PARAM) {
      int64_t local = u->arg.param.slot - LOCAL_SLOT;
      int j = 0;
      while (j < n->narg && n->local[j] != local)
        j++;
      if (j == n->narg) n->local[n->narg++] = local;
      Arg arg = {.param = {u->arg.param.nelem, j}};
      v = uop_new(s->st, OPS_PARAM, (DType)u->dtype, 1, u->nsrc, u->src, arg);
    } else if (u->op == OPS_DEFINE_LOCAL)
      v = uop_new(s->st, OPS_DEFINE_LOCAL, (DType)u->dtype, 1, 0, NULL,
                  (Arg){.param = {u->arg.param.nelem, nl++}});
    else
      continue;
    ok = ok && v && vec_push(s->mem, &from, u) && vec_push(s->mem, &to, v);
  }
  UOp *ast = ok ? uop_substitute(s->st, s->mem, sink, (int)from.len, from.at, to.at) : NULL;
  if (ok) n->ast = uop_simplify(s->st, s->mem, ast);
  vec_free(s->mem, &order), vec_free(s->mem, &from), vec_free(s->mem, &to);
  return ok && n->ast ? n : NULL;
}

/* Gives *sk its graph. Equal kernels are numbered once, and are one graph. */
static bool number(Build *b, SchedKernel *sk, UOp *sink) {
  Numbered *n = map_get_ptr(&b->numbered, sink);
  if (!n && (!(n = renumbered(b, sink)) || !map_put_ptr(&b->numbered, (uintptr_t)sink, n))) return false;
  sk->ast = n->ast;
  sk->narg = n->narg;
  sk->arg = arena_array(&b->out->arena, int64_t, n->narg + 1);
  for (int i = 0; sk->arg && i < n->narg; i++)
    sk->arg[i] = b->slots.at[n->local[i]];
  return sk->arg != NULL;
}

static bool nodes_noted(Build *b, const StageSet *k, SchedKernel *sk) {
  sk->node = arena_array(&b->out->arena, uint32_t, k->mem.len + 1);
  for (size_t m = 0; sk->node && m < k->mem.len; m++) {
    const UOp *n = stage_at(b->s, k->mem.at[m])->node,
              *given = b->s->given ? uop_map_get(b->s->given, n) : NULL;
    sk->node[sk->nnode++] = given ? given->id : n->id;
    sk->carries |= given && given->op == OPS_SCAN_AXIS && given->dtype == DT_F32;
  }
  return sk->node != NULL;
}

/* ---- parts of what is stored (concat.c) */
static int temp_in(const Build *b, int64_t slot) {
  int64_t here = slot - LOCAL_SLOT, id = here < 0 || here >= (int64_t)b->slots.len ? -1 : b->slots.at[here];
  return id < TEMP_BASE ? -1 : (int)(id - TEMP_BASE);
}

static bool may_lie_there(void *user, const Segment *p) {
  const Build *b = user;
  int t = temp_in(b, p->slot);
  const SchedTemp *m = t < 0 || t == b->whole ? NULL : &b->out->temp[t];
  int64_t align = TG_MAX(b->s->opt->align, 1);
  return m && m->root < 0 && !m->in && p->at * (int64_t)dtype_size(m->dtype) % align == 0;
}

static void lies_there(void *user, const Segment *p) {
  Build *b = user;
  SchedTemp *m = &b->out->temp[temp_in(b, p->slot)];
  m->in = b->whole + 1;
  m->at = p->at;
  b->out->temp[b->whole].whole = true;
}

/* Adds the store of member i, without the parts that are in memory already. */
static bool store_add(Build *b, int i, const Store *st, UOpVec *stores) {
  Sched *s = b->s;
  const Stage *g = stage_at(s, i);
  Store left[MOST_LEFT];
  int n = 1;
  b->whole = b->temp_of[i];
  if (g->is_store || g->fixed || b->whole < 0)
    left[0] = *st;
  else
    n = concat_parts(s, st, may_lie_there, lies_there, b, left);
  for (int k = 0; k < n; k++) {
    UOp *src[2 + 2 * MAX_RANK] = {left[k].place, left[k].value};
    memcpy(src + 2, left[k].range, (size_t)left[k].nrange * sizeof *src);
    UOp *u = uop_new(s->st, OPS_STORE, DT_VOID, 1, 2 + left[k].nrange, src, ARG0);
    if (!u || !vec_push(s->mem, stores, u)) return false;
  }
  return n >= 0;
}

static bool is_written(Build *b, int i) {
  const Stage *g = stage_at(b->s, i);
  bool written = g->keep;
  for (size_t l = 0; l < g->readers.len && !written; l++)
    written = stage_at(b->s, g->readers.at[l])->kernel != b->ki;
  return written;
}

static bool build_kernel(Build *b, int ki, SchedKernel *sk) {
  Sched *s = b->s;
  const StageSet *k = &b->ks->at[ki];
  UOp *grid[MAX_RANK];
  UOpVec stores = {0};
  Gmap gm = {.of = gmap_placed, .s = s};
  int64_t elems[MAX_MEMBERS], bytes;
  bool ok = local_plan(s, &gm, k->mem.at, k->mem.len, elems, &bytes);
  b->ki = ki;
  b->nests.len = b->slots.len = 0;
  b->nlocal = 0;
  s->next_range = b->first_range;
  for (int g = 0; g < k->ngrid; g++)
    grid[g] = uop_range_of(s->st, k->grid[g], s->next_range++, AXIS_GLOBAL);
  for (size_t m = 0; ok && m < k->mem.len; m++) {
    b->m[k->mem.at[m]].elems = elems[m];
    ok = build_member(b, grid, k->mem.at[m]);
  }
  int nwritten = 0;
  bool written[MAX_MEMBERS];
  for (size_t m = 0; m < k->mem.len; m++)
    nwritten += written[m] = is_written(b, k->mem.at[m]);
  for (size_t m = 0; ok && m < k->mem.len; m++) {
    int i = k->mem.at[m];
    Stage *g = stage_at(b->s, i);
    sk->flops += (int64_t)(g->flops + g->ops);
    if (!written[m]) continue;
    UOp *idx[MAX_RANK];
    Store st = {.nshared = nwritten > 1 ? k->ngrid : 0};
    for (int d = 0; d < g->nout; d++)
      idx[d] = g->out[d]->op == OPS_RANGE && g->gmap[d] >= 0 ? grid[g->gmap[d]] : g->out[d];
    st.nrange = own_loops(g, idx, grid, k->ngrid, st.range);
    if (g->update) {
      ok = build_update(b, i, idx, st.nrange, st.range, &stores);
      continue;
    }
    st.place = memory_at(b, i, idx);
    st.value = uop_simplify(s->st, s->mem, member_at(b, i, idx));
    ok = st.place && st.value && store_add(b, i, &st, &stores);
  }
  ok = ok && nodes_noted(b, k, sk);
  UOp *sink = ok ? uop_new(s->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0) : NULL;
  ok = sink && number(b, sk, sink);
  sk->level = k->level;
  sk->est_us = k->cost.us;
  vec_free(s->mem, &stores);
  return ok;
}

/* Moves kernels between levels. A kernel that makes a slice of a value waits until the last level before its
 * first reader, so that fewer slices are alive at once. by: the kernels of each level, changed in place. */
static bool made_late(Sched *s, const StageSets *ks, IntVec *by, int nlevel) {
  /* by kernel: the level of its first reader */
  int *first = mem_alloc(s->mem, (ks->len + 1) * sizeof *first);
  bool ok = first != NULL;
  for (size_t k = 0; ok && k < ks->len; k++)
    first[k] = nlevel;
  for (int l = nlevel - 1; ok && l >= 0; l--)
    for (size_t j = 0; ok && j < by[l].len; j++) {
      int k = by[l].at[j], level = l;
      const IntVec *mem = &ks->at[k].mem;
      for (size_t m = 0; m < mem->len; m++)
        if (stage_at(s, mem->at[m])->late && first[k] < nlevel) level = first[k] - 1;
      for (size_t m = 0; m < mem->len; m++) {
        const Stage *g = stage_at(s, mem->at[m]);
        const IntVec *edges[] = {&g->deps, &g->after, &g->war};
        for (int e = 0; e < 3; e++)
          for (size_t i = 0; i < edges[e]->len; i++) {
            int q = stage_at(s, edges[e]->at[i])->kernel;
            if (q >= 0 && q != k) first[q] = TG_MIN(first[q], level);
          }
      }
      if (level == l) continue;
      ok = vec_push(s->mem, &by[level], k);
      by[l].at[j--] = by[l].at[--by[l].len];
    }
  mem_free(s->mem, first);
  return ok;
}

bool build_kernels(Sched *s, const StageSets *ks, Schedule *out) {
  size_t n = s->stages.len, nk = ks->len;
  Build b = {.s = s, .ks = ks, .out = out, .first_range = s->next_range};
  map_init(&b.numbered, s->mem);
  b.temp_of = arena_array(&out->arena, int, n + 1);
  b.m = mem_alloc(s->mem, (n + 1) * sizeof *b.m);
  out->temp = arena_array(&out->arena, SchedTemp, n + 1);
  out->kernel = arena_array(&out->arena, SchedKernel, nk + 1);
  bool ok = b.temp_of && b.m && out->temp && out->kernel;
  for (size_t i = 0; ok && i < n; i++)
    b.temp_of[i] = -1;
  int maxlevel = 0;
  for (size_t k = 0; k < nk; k++)
    maxlevel = TG_MAX(maxlevel, ks->at[k].level);
  IntVec *by = mem_alloc(s->mem, ((size_t)maxlevel + 1) * sizeof *by);
  ok = ok && by;
  for (size_t k = 0; ok && k < nk; k++)
    ok = vec_push(s->mem, &by[ks->at[k].level], (int)k);
  if (ok && s->opt->target->slice_most) ok = made_late(s, ks, by, maxlevel + 1);
  for (int l = 0; ok && l <= maxlevel; l++)
    for (size_t j = 0; ok && j < by[l].len; j++) {
      if (!ks->at[by[l].at[j]].mem.len) continue;
      SchedKernel *sk = &out->kernel[out->nkernel];
      ok = build_kernel(&b, by[l].at[j], sk);
      if (ok && sk->ast->nsrc)
        out->nkernel++;
      else
        *sk = (SchedKernel){0}; /* all its values were simplified out of their readers */
    }
  for (int l = 0; by && l <= maxlevel; l++)
    vec_free(s->mem, &by[l]);
  mem_free(s->mem, by);
  for (int k = 0; ok && k < out->nkernel; k++)
    for (int a = 0; a < out->kernel[k].narg; a++) {
      int64_t t = out->kernel[k].arg[a] - TEMP_BASE;
      if (t < 0) continue;
      if (out->temp[t].first < 0) out->temp[t].first = k;
      out->temp[t].last = k;
    }
  for (size_t i = 0; ok && i < n; i++) {
    Stage *g = stage_at(s, (int)i);
    if (g->root >= 0) out->root[g->root] = g->is_store ? g->buffer : TEMP_BASE + b.temp_of[i];
  }
  vec_free(s->mem, &b.nests), vec_free(s->mem, &b.slots), map_free(&b.numbered);
  mem_free(s->mem, b.m);
  return ok;
}
