/* rangeify.c: tensor graph -> stages. In: tensor nodes. Out: stages whose values are expressions of RANGE,
 * INDEX and REDUCE; no movement op is left. One walk from the roots collects the demands on every node: which
 * stage reads it, at which indices. A movement op rewrites a demand and passes it on. A node with one demand
 * belongs to the stage that reads it. A node with several, and every REDUCE_AXIS, STORE, CONTIGUOUS and root,
 * is a stage with ranges of its own. A SCATTER is two: memory that starts as its target, and the update of
 * that memory, over the axes of what is scattered; readers read the memory after the update. The source of a
 * GATHER is a stage, because the demand on it is data. */
#include "schedule/stage.h"
#include "uop/dims.h"
#include <string.h>

typedef struct Demand {
  struct Demand *next;
  int stage;
  UOp *tuple;
} Demand;

typedef struct Node {
  Demand *demands;
  /* other: for a SCATTER, its update, or, with SCATTER_OLD, its memory */
  int stage, other, ndemand;
  int nslices;         /* 0, or the node is nslices stages, from `stage` on .. */
  const Slice *slices; /* .. one for each of these slices */
  UOp *lowered;
  /* copied: it is a view that is copied to memory for its readers */
  bool force, copied;
  bool kept; /* it is a reduction that was requested in memory */
} Node;

typedef struct Rangeify {
  Sched *s;
  Arena arena;
  Node *node; /* by node id */
  Map moved;  /* (movement node, tuple) -> the tuple of its source, and the gate */
  /* for nodes with many demands: (node, tuple) -> number; (number, stage) -> 1 if that demand exists */
  Map places, wanted;
  bool failed;
} Rangeify;

/* The index tuple of n's source for an index tuple of n. *gate is not NULL if a PAD puts zeros there. */
static UOp *move(Rangeify *r, UOp *n, UOp *tuple, UOp **gate) {
  *gate = NULL;
  if (!tuple) return r->failed = true, NULL;
  uint64_t key = (uint64_t)n->id << 32 | tuple->id, v;
  bool had = map_get(&r->moved, key, &v);
  UOp *to = had ? (UOp *)(uintptr_t)v : movement_index(r->s, n, tuple);
  if (!had && (!to || !map_put_ptr(&r->moved, (uintptr_t)key, to))) r->failed = true;
  if (!to || n->op != OPS_PAD) return to;
  *gate = to->src[to->nsrc - 1];
  if (*gate && is_const(*gate) && (*gate)->arg.v.i) *gate = NULL;
  return uop_new(r->s->st, OPS_TUPLE, DT_VOID, 1, to->nsrc - 1, to->src, ARG0);
}

/* The reduction that a CONTIGUOUS keeps, whatever its shape. It has memory of its own, so no copy of it is
 * made. NULL: none. */
static const UOp *kept_reduction(const UOp *n) {
  if (n->op != OPS_CONTIGUOUS) return NULL;
  do
    n = n->src[0];
  while (n->op == OPS_RESHAPE);
  return n->op == OPS_REDUCE_AXIS ? n : NULL;
}

static bool passes_on(const UOp *n) {
  return (op_flags((Ops)n->op) & OPF_MOV) || n->op == OPS_DETACH || n->op == OPS_CUSTOM_GRADIENT ||
         kept_reduction(n);
}

static bool is_leaf(const UOp *n) {
  return n->op == OPS_BUFFER || n->op == OPS_CONST || n->op == OPS_ARANGE || n->op == OPS_AFTER ||
         n->op == OPS_VAR;
}

/* Whether no element of n is ever read. Nothing is computed then, and any number can stand for it. */
static bool is_empty(const UOp *n) {
  for (int i = 0; n->is_tensor && i < n->shape->n; i++)
    if (n->shape->v[i] == 0) return true;
  return false;
}

enum { FEW_DEMANDS = 16 }; /* up to this many demands a list is searched, beyond it a map */

static bool want(Rangeify *r, const UOp *n, int stage, const UOp *tuple, bool *had) {
  uint64_t place, key = (uint64_t)n->id << 32 | tuple->id, one;
  if (!map_get(&r->places, key, &place) && !map_put(&r->places, key, place = r->places.len)) return false;
  key = place << 32 | (uint32_t)stage;
  *had = map_get(&r->wanted, key, &one);
  return *had || map_put(&r->wanted, key, 1);
}

static void demand(Rangeify *r, UOp *n, int stage, UOp *tuple) {
  if (!tuple || is_leaf(n) || is_empty(n)) {
    if (!tuple) r->failed = true;
    return;
  }
  Node *d = &r->node[n->id];
  if (d->ndemand <= FEW_DEMANDS) {
    for (Demand *x = d->demands; x; x = x->next)
      if (x->stage == stage && x->tuple == tuple) return;
  }
  bool had = false;
  if (d->ndemand == FEW_DEMANDS)
    for (Demand *x = d->demands; x; x = x->next)
      r->failed |= !want(r, n, x->stage, x->tuple, &had);
  had = false;
  if (d->ndemand >= FEW_DEMANDS && !want(r, n, stage, tuple, &had)) r->failed = true;
  if (had) return;
  Demand *x = arena_alloc(&r->arena, sizeof *x);
  if (!x) {
    r->failed = true;
    return;
  }
  *x = (Demand){d->demands, stage, tuple};
  d->demands = x;
  d->ndemand++;
}

static bool loops_made(const Stage *g) {
  bool made = true;
  for (int d = 0; d < g->nout; d++)
    made &= g->out[d] != NULL;
  for (int d = 0; d < g->nred; d++)
    made &= g->red[d] != NULL;
  return made;
}

/* Makes a stage over shape sh for node n. Returns its number, or -1 if out of memory. */
static int stage_over(Rangeify *r, UOp *n, const Ints *sh) {
  Sched *s = r->s;
  Stage g = {.node = n,
             .root = -1,
             .kernel = -1,
             .is_reduce = n->op == OPS_REDUCE_AXIS,
             .is_store = n->op == OPS_STORE};
  g.nout = sh->n;
  if (n->op == OPS_SCAN_AXIS) {
    g.ordered = 1u << n->arg.reduce.axes->v[0];
    g.fixed = true;
  }
  for (int i = 0; i < sh->n; i++)
    g.out[i] = sh->v[i] == 1 ? uop_index_const(s->st, 0)
                             : uop_range_of(s->st, dim_uop(s->st, s->mem, sh->v[i]), s->next_range++,
                                            g.ordered >> i & 1 ? AXIS_ORDERED : AXIS_LOOP);
  if (g.is_reduce)
    for (int i = 0; i < n->arg.reduce.axes->n; i++) {
      int64_t ext = n->src[0]->shape->v[n->arg.reduce.axes->v[i]];
      g.red[g.nred++] = ext == 1
                            ? uop_index_const(s->st, 0)
                            : uop_range_of(s->st, dim_uop(s->st, s->mem, ext), s->next_range++, AXIS_REDUCE);
    }
  if (!loops_made(&g) || !vec_push(s->mem, &s->stages, g)) {
    r->failed = true;
    return -1;
  }
  return (int)s->stages.len - 1;
}

static int stage_open(Rangeify *r, UOp *n) { return r->node[n->id].stage = stage_over(r, n, n->shape); }

/* The slice of its node that stage i computes; NULL: the whole. */
static const Slice *slice_of(const Rangeify *r, int i) {
  const Node *d = &r->node[r->s->stages.at[i].node->id];
  return d->nslices ? &d->slices[i - d->stage] : NULL;
}

/* The indices at which a stage reads its sources, or, unless of_source, computes its node. */
static UOp *stage_tuple(Rangeify *r, int i, bool of_source) {
  Stage *g = &r->s->stages.at[i];
  UOp *at[MAX_RANK];
  memcpy(at, g->out, sizeof at);
  if (of_source && g->is_reduce)
    for (int k = 0; k < g->nred; k++)
      at[g->node->arg.reduce.axes->v[k]] = g->red[k];
  const Slice *slice = slice_of(r, i);
  for (int k = 0; slice && k < g->nout; k++)
    if (slice->axis[k].from) at[k] = index_by(r->s, OPS_ADD, at[k], slice->axis[k].from);
  return uop_new(r->s->st, OPS_TUPLE, DT_VOID, 1, g->nout, at, ARG0);
}

/* A read of `stage` at a tuple. */
static UOp *stage_read(Sched *s, int stage, DType dt, UOp *tuple) {
  UOp *src[MAX_RANK + 1];
  src[0] = uop_new(s->st, OPS_PARAM, dt, 1, 0, NULL, (Arg){.param = {1, STAGE_SLOT(stage)}});
  for (int i = 0; i < tuple->nsrc; i++)
    src[1 + i] = tuple->src[i];
  return uop_new(s->st, OPS_INDEX, dt, 1, 1 + tuple->nsrc, src, ARG0);
}

/* The stage of n that has what is read at the tuple. The tuple becomes the index into that stage. */
static int stage_with(Rangeify *r, const UOp *n, UOp **tuple) {
  Sched *s = r->s;
  const Node *d = &r->node[n->id];
  int i = d->stage;
  if (!d->nslices) return i;
  while (i + 1 < d->stage + d->nslices && !slice_has(n, slice_of(r, i), *tuple))
    i++;
  const Slice *slice = slice_of(r, i);
  UOp *at[MAX_RANK];
  memcpy(at, (*tuple)->src, (*tuple)->nsrc * sizeof *at);
  for (int k = 0; k < (*tuple)->nsrc; k++)
    if (slice->axis[k].from) at[k] = index_by(s, OPS_SUB, at[k], slice->axis[k].from);
  *tuple = uop_new(s->st, OPS_TUPLE, DT_VOID, 1, (*tuple)->nsrc, at, ARG0);
  return i;
}

/* The INDEX of a buffer at a tuple. Through a reshape it keeps an index per axis, because an opt that copies
 * a tile needs the extents, and a flat index with padding cannot be split again. */
static UOp *buffer_at(Rangeify *r, const UOp *n, const UOp *tuple) {
  const UOp *b = n->op == OPS_BUFFER ? n : n->src[0];
  if (n->op == OPS_BUFFER)
    return memory_index(r->s, (DType)b->dtype, b->arg.param.nelem, b->arg.param.slot, 1, &b->arg.param.nelem,
                        tuple->src);
  return memory_index(r->s, (DType)b->dtype, b->arg.param.nelem, b->arg.param.slot, n->arg.ints->n,
                      n->arg.ints->v, tuple->src);
}

/* Notes that a stage reads a buffer before a store, or after it. It cannot do both, because its reads look
 * alike and it runs once. */
static bool buffer_read(Rangeify *r, int reader, int64_t buffer, bool after) {
  Sched *s = r->s;
  Stage *g = &s->stages.at[reader];
  int slot = (int)buffer;
  IntVec *list = after ? &g->fresh : &g->old;
  if (ints_have(after ? &g->old : &g->fresh, slot)) {
    error_set(s->err, TG_ERR_STATE,
              "schedule: an assignment needs a value that must be read before it and after it");
    return false;
  }
  return ints_have(list, slot) || vec_push(s->mem, list, slot);
}

static bool is_buffer(const UOp *n) {
  return n->op == OPS_BUFFER || (n->op == OPS_RESHAPE && n->src[0]->op == OPS_BUFFER);
}

/* The value of n at tuple for stage `reader`: movement ops are followed to the node that has it. Gates on the
 * way become one WHERE. */
static UOp *lower_read(Rangeify *r, UOp *n, UOp *tuple, int reader) {
  Sched *s = r->s;
  UOp *gates = NULL, *v = NULL, *g;
  DType dt = (DType)n->dtype;
  bool after = false;
  for (; tuple;) {
    bool own = r->node[n->id].stage >= 0 && (!passes_on(n) || r->node[n->id].copied);
    if (own && n->op != OPS_AFTER) {
      int from = stage_with(r, n, &tuple);
      v = tuple ? stage_read(s, from, dt, tuple) : NULL;
      if (n->op == OPS_SCATTER && !(n->arg.scatter.how & SCATTER_OLD) &&
          !vec_push(s->mem, &s->stages.at[reader].after, r->node[n->id].other))
        r->failed = true;
      break;
    }
    if (n->op == OPS_AFTER && n->nsrc == 2 && n->src[1]->op == OPS_STORE && n->src[1]->src[0] == n->src[0] &&
        !s->stages.at[r->node[n->src[1]->id].stage].update) {
      /* the whole target was stored: its value is the store's */
      int store = r->node[n->src[1]->id].stage;
      v = buffer_read(r, reader, s->stages.at[store].buffer, true) ? stage_read(s, store, dt, tuple) : NULL;
      break;
    }
    if (is_empty(n)) {
      v = uop_const_int(s->st, dt, 0);
      break;
    }
    if (is_buffer(n)) {
      v = buffer_at(r, n, tuple);
      if (v && !buffer_read(r, reader, v->src[0]->arg.param.slot, after)) v = NULL;
      break;
    }
    if (passes_on(n)) {
      tuple = move(r, n, tuple, &g);
      if (g) gates = gates ? uop_alu2(s->st, OPS_AND, gates, g) : g;
      n = n->src[0];
      if (!n->is_tensor) {
        v = uop_simplify(s->st, s->mem, n);
        break;
      }
      continue;
    }
    if (n->op == OPS_ARANGE) {
      v = uop_cast(s->st, tuple->src[0], dt);
      break;
    }
    if (n->op == OPS_AFTER) {
      for (int i = 1; i < n->nsrc; i++)
        if (r->node[n->src[i]->id].stage >= 0 &&
            !vec_push(s->mem, &s->stages.at[reader].after, r->node[n->src[i]->id].stage))
          r->failed = true;
      n = n->src[0];
      after = true;
      continue;
    }
    v = r->node[n->id].lowered;
    break;
  }
  if (!v) {
    r->failed = true;
    return NULL;
  }
  return gates ? uop_where(s->st, gates, v, uop_const_int(s->st, dt, 0)) : v;
}

/* Follows the view that a STORE names to its BUFFER and INDEX. */
static bool lower_store_target(Rangeify *r, int i, UOp *tuple) {
  Sched *s = r->s;
  UOp *n = s->stages.at[i].node->src[0], *g;
  while (tuple && !is_buffer(n)) {
    if (passes_on(n)) {
      tuple = move(r, n, tuple, &g);
      n = n->src[0];
      continue;
    }
    if (n->op == OPS_AFTER) {
      for (int k = 1; k < n->nsrc; k++)
        if (r->node[n->src[k]->id].stage >= 0 &&
            !vec_push(s->mem, &s->stages.at[i].after, r->node[n->src[k]->id].stage))
          return false;
      n = n->src[0];
      continue;
    }
    error_set(s->err, TG_ERR_STATE, "assign: the target is a computed %s, not memory; realize it first",
              op_name((Ops)n->op));
    return false;
  }
  if (!tuple) return false;
  UOp *target = buffer_at(r, n, tuple);
  if (target) s->stages.at[i].buffer = target->src[0]->arg.param.slot;
  return (s->stages.at[i].target = target) != NULL;
}

/* The integers src[first ..] of n at tuple, as a TUPLE of places in `shape`. *gate: where all of them are in
 * bounds; NULL: everywhere. */
static UOp *lower_places(Rangeify *r, UOp *n, int first, const Ints *shape, UOp *tuple, int reader,
                         UOp **gate) {
  Sched *s = r->s;
  UOp *at[MAX_RANK], *yes = uop_const_int(s->st, DT_BOOL, 1), *g = yes, *zero = uop_index_const(s->st, 0);
  for (int i = 0; i < shape->n; i++) {
    UOp *e = lower_read(r, n->src[first + i], tuple, reader);
    if (!(at[i] = e = e ? uop_simplify(s->st, s->mem, uop_cast(s->st, e, DT_INDEX)) : NULL)) return NULL;
    if (e->vmin < 0)
      g = uop_alu2(s->st, OPS_AND, g, uop_alu2(s->st, OPS_CMPNE, uop_alu2(s->st, OPS_CMPLT, e, zero), yes));
    if (e->vmax >= dim_min(s->st, shape->v[i]))
      g = uop_alu2(s->st, OPS_AND, g, uop_alu2(s->st, OPS_CMPLT, e, dim_uop(s->st, s->mem, shape->v[i])));
  }
  if (!(g = g ? uop_simplify(s->st, s->mem, g) : NULL)) return NULL;
  *gate = is_const_int(g, 1) ? NULL : g;
  return uop_new(s->st, OPS_TUPLE, DT_VOID, 1, shape->n, at, ARG0);
}

static UOp *lower_gather(Rangeify *r, UOp *n, UOp *tuple, int reader) {
  UOp *gate, *at = lower_places(r, n, 1, n->src[0]->shape, tuple, reader, &gate),
             *v = at ? lower_read(r, n->src[0], at, reader) : NULL;
  return v && gate ? uop_where(r->s->st, gate, v, uop_const_int(r->s->st, (DType)n->dtype, 0)) : v;
}

/* Whether places differ whenever r does: some coordinate depends on r alone, and by a constant step. */
static bool tells_apart(Sched *s, const UOp *places, UOp *r) {
  for (int i = 0; i < places->nsrc; i++) {
    UOp *e = places->src[i];
    if (e->ranges != r->ranges || uop_has(e, INDEX) || !ranges_within(s, e, r)) continue;
    UOp *plus = uop_alu2(s->st, OPS_ADD, r, uop_index_const(s->st, 1));
    UOp *d = plus ? uop_simplify(s->st, s->mem,
                                 uop_alu2(s->st, OPS_SUB, uop_substitute(s->st, s->mem, e, 1, &r, &plus), e))
                  : NULL;
    if (d && is_const(d) && d->arg.v.i) return true;
  }
  return false;
}

static bool updates_in_place(const UOp *n) {
  return n->op == OPS_STORE && n->src[1]->op == OPS_SCATTER && n->src[1]->src[0] == n->src[0] &&
         !n->src[1]->arg.scatter.how;
}

/* Stage i updates the memory of stage `memory`, or, if that is -1, the buffer under the view that its STORE
 * names. */
static bool lower_update(Rangeify *r, int i, UOp *n, int memory) {
  Sched *s = r->s;
  Stage *g = &s->stages.at[i];
  UOp *own = stage_tuple(r, i, false), *gate,
      *places = lower_places(r, n, 2, n->src[0]->shape, own, i, &gate), *target = NULL;
  if (!places) return false;
  if (memory >= 0)
    target = stage_read(s, memory, (DType)n->dtype, places);
  else if (lower_store_target(r, i, places))
    target = s->stages.at[i].target;
  UOp *v = target ? lower_read(r, n->src[1], own, i) : NULL, *from[MAX_RANK], *to[MAX_RANK];
  int nr = 0;
  g = &s->stages.at[i];
  for (int d = 0; d < g->nout; d++) {
    if (g->out[d]->op != OPS_RANGE || (n->arg.scatter.how & SCATTER_ONCE) ||
        tells_apart(s, places, g->out[d]))
      continue;
    from[nr] = g->out[d];
    g->ordered |= 1u << d;
    to[nr] = g->out[d] = uop_range_of(s->st, g->out[d]->src[0], s->next_range++, AXIS_ORDERED);
    nr++;
  }
  v = v ? UNEW(s->st, OPS_TUPLE, DT_VOID, 1, ARG0, v, target, gate ? gate : uop_const_int(s->st, DT_BOOL, 1))
        : NULL;
  v = v && nr ? uop_substitute(s->st, s->mem, v, nr, from, to) : v;
  return (g->value = v ? uop_simplify(s->st, s->mem, v) : NULL) != NULL && loops_made(g);
}

static UOp *lower_compute(Rangeify *r, UOp *n, UOp *tuple, int reader) {
  UOp *src[8];
  if (n->op == OPS_GATHER) return lower_gather(r, n, tuple, reader);
  if (n->nsrc > 8) return NULL;
  for (int i = 0; i < n->nsrc; i++)
    if (!(src[i] = lower_read(r, n->src[i], tuple, reader))) return NULL;
  return uop_simplify_top(
      r->s->st, r->s->mem,
      uop_new(r->s->st, (Ops)n->op, (DType)n->dtype, 1, n->nsrc, src, uop_arg_in(r->s->st, n)));
}

static bool lower_stage(Rangeify *r, int i) {
  Sched *s = r->s;
  UOp *n = s->stages.at[i].node, *tuple = stage_tuple(r, i, true), *v;
  if (s->stages.at[i].update && n->op == OPS_STORE) return lower_update(r, i, n->src[1], -1);
  if (n->op == OPS_SCATTER) {
    bool old = n->arg.scatter.how & SCATTER_OLD;
    int memory = old ? r->node[n->id].other : i, update = old ? i : r->node[n->id].other;
    UOp *at = stage_tuple(r, memory, false);
    /* otherwise every place is written, so the former values do not matter */
    if (!s->stages.at[memory].inlined) {
      v = at ? lower_read(r, n->src[0], at, memory) : NULL;
      if (!v || !(s->stages.at[memory].value = uop_simplify(s->st, s->mem, v))) return false;
    }
    return lower_update(r, update, n, memory);
  }
  if (n->op == OPS_STORE) {
    if (!lower_store_target(r, i, tuple)) return false;
    v = lower_read(r, n->src[1], tuple, i);
  } else if (n->op == OPS_REDUCE_AXIS) {
    UOp *src[MAX_RANK + 1];
    Stage *g = &s->stages.at[i];
    src[0] = lower_read(r, n->src[0], tuple, i);
    for (int k = 0; k < g->nred; k++)
      src[1 + k] = g->red[k];
    v = src[0] ? uop_new(s->st, OPS_REDUCE, (DType)n->dtype, 1, 1 + g->nred, src,
                         (Arg){.reduce = {NULL, n->arg.reduce.op}})
               : NULL;
  } else if (n->op == OPS_SCAN_AXIS) {
    UOp *along = s->stages.at[i].out[n->arg.reduce.axes->v[0]];
    v = lower_read(r, n->src[0], tuple, i);
    v = v && along->op == OPS_RANGE ? uop_new(s->st, OPS_SCAN, (DType)n->dtype, 1, 2, (UOp *[]){v, along},
                                              (Arg){.reduce = {NULL, n->arg.reduce.op}})
                                    : v;
  } else if (n->op == OPS_CONTIGUOUS || n->op == OPS_COPY || passes_on(n) || is_leaf(n)) {
    /* a root that is a view is read through itself, so its own stage must not be found on the way */
    int own = r->node[n->id].stage;
    r->node[n->id].stage = -1;
    v = passes_on(n) || is_leaf(n) ? lower_read(r, n, tuple, i) : lower_read(r, n->src[0], tuple, i);
    r->node[n->id].stage = own;
  } else
    v = lower_compute(r, n, tuple, i);
  s->stages.at[i].value = uop_simplify(s->st, s->mem, v);
  return s->stages.at[i].value != NULL;
}

/* Whether a loop nest reads each element of n at least twice. */
static bool read_often(const Rangeify *r, const UOp *n, const Stage *g) {
  int64_t own = 1;
  for (int i = 0; i < n->shape->n; i++)
    own *= dim_max(r->s->st, n->shape->v[i]);
  return own > 0 && stage_iterations(g) / own >= 2;
}

/* Whether n puts a number around a PAD. That is a gate, which costs nothing where it is read. What is inside
 * may be kept without it. */
static bool is_padding(const UOp *n) {
  const UOp *around = n->op == OPS_WHERE && n->src[0]->op == OPS_PAD ? n->src[2] : NULL;
  while (around && passes_on(around))
    around = around->src[0];
  return around && around->op == OPS_CONST;
}

/* Whether n should be a stage: it is expensive, or a reduction would compute it, and several times. Later
 * passes estimate what it costs there. */
static bool worth_keeping(const Rangeify *r, const UOp *n, const Stage *g) {
  bool made = (op_is_alu((Ops)n->op) && !is_padding(n)) || n->op == OPS_GATHER,
       may = op_is_costly((Ops)n->op) || (g->is_reduce && made);
  return may && read_often(r, n, g);
}

/* Whether an index divides a sum. Quotients and remainders of a loop, and of those, become loops once it is
 * split, so they divide no sum. A place that is computed as data counts as dividing one, and so does an index
 * too large for the walk. */
bool divides_sum(const UOp *index) {
  enum { MOST_STEPS = 64 };

  const UOp *stack[MOST_STEPS];
  int n = 0, steps = 0;
  stack[n++] = index;
  while (n) {
    const UOp *u = stack[--n];
    if (u->op == OPS_RANGE || !has_divmod(u)) continue;
    bool divides = u->op == OPS_FLOORDIV || u->op == OPS_FLOORMOD;
    bool whole = divides && u->src[0]->op != OPS_RANGE && u->src[0]->op != OPS_FLOORDIV &&
                 u->src[0]->op != OPS_FLOORMOD;
    if (whole || u->dtype != DT_INDEX) return true;
    if (++steps == MOST_STEPS || n + u->nsrc > MOST_STEPS) return true;
    for (int i = 0; i < u->nsrc; i++)
      stack[n++] = u->src[i];
  }
  return false;
}

static bool is_odd(const UOp *tuple) {
  bool odd = false;
  for (int i = 0; tuple && i < tuple->nsrc && !odd; i++)
    odd = divides_sum(tuple->src[i]);
  return odd;
}

/* Whether view n should be copied to memory: a reduction reads each element several times, at places that
 * have to be divided, as in the windows of an enlarged picture. Neither lanes nor copies of a tile can go
 * along these. n is the last view for which nothing is divided. Between zeros that a PAD puts in, few of the
 * places count, so those loops are cut instead. */
static bool worth_copying(Rangeify *r, UOp *n, const Demand *d) {
  UOp *gate, *x = n, *tuple = d->tuple;
  const Stage *g = stage_at(r->s, d->stage);
  if (!g->is_reduce || is_odd(tuple) || !read_often(r, n, g)) return false;
  for (; passes_on(x); x = x->src[0]) {
    if (x->op == OPS_PAD || (x != n && !is_odd(tuple))) return false;
    tuple = move(r, x, tuple, &gate);
  }
  return x->is_tensor && is_odd(tuple);
}

/* Gives what is read at indices that are data ranges of its own, unless it is memory or a closed form
 * already. */
static void force_memory(Rangeify *r, UOp *x) {
  while (passes_on(x))
    x = x->src[0];
  if (!is_leaf(x)) r->node[x->id].force = true;
}

/* Whether the scattered values or places are computed from the buffer that an update in place would
 * change. */
static bool reads_own_target(Rangeify *r, const UOp *n) {
  const UOp *b = n->src[0];
  while (b->op != OPS_BUFFER && b->nsrc)
    b = b->src[0];
  return uop_contains(r->s->st, r->s->mem, n->src + 1, (size_t)n->nsrc - 1, b);
}

/* Makes the stages of a SCATTER, or of a STORE of one to its own target, and their demands. */
static bool scatter_open(Rangeify *r, UOp *n) {
  Sched *s = r->s;
  UOp *sc = n->op == OPS_STORE ? n->src[1] : n, *tuple;
  int64_t how = sc->arg.scatter.how;
  int memory = n->op == OPS_STORE ? -1 : stage_over(r, n, sc->src[0]->shape),
      update = stage_over(r, n, sc->src[1]->shape);
  if (update < 0 || (n->op != OPS_STORE && memory < 0)) return r->failed = true, false;
  Stage *g = &s->stages.at[update];
  g->update = g->fixed = g->keep = true;
  g->is_store = !(how & SCATTER_OLD);
  r->node[n->id].stage = memory < 0 || (how & SCATTER_OLD) ? update : memory;
  r->node[n->id].other = how & SCATTER_OLD ? memory : update;
  if (memory < 0)
    r->node[n->id].other = -1;
  else {
    g->buffer = STAGE_SLOT(memory);
    g = &s->stages.at[memory];
    g->fixed = g->keep = true;
    g->inlined = how & SCATTER_ONCE;
    if (!g->inlined && sc->src[0]->is_tensor) demand(r, sc->src[0], memory, stage_tuple(r, memory, false));
  }
  tuple = stage_tuple(r, update, false);
  for (int i = 1; i < sc->nsrc; i++)
    demand(r, sc->src[i], update, tuple);
  return !r->failed;
}

/* If each reader reads a slice of its own of a large value: makes a stage for each slice, which can run just
 * before it is read. Returns false if the value is one stage. */
static bool slices_open(Rangeify *r, UOp *n) {
  Node *d = &r->node[n->id];
  int64_t most = r->s->opt->target->slice_most;
  if (!most || d->ndemand < 2 || d->force || n->op == OPS_SCAN_AXIS || n->op == OPS_STORE) return false;
  UOp **tuple = arena_array(&r->arena, UOp *, d->ndemand);
  Interval *room = arena_array(&r->arena, Interval, d->ndemand);
  Slice *at = arena_array(&r->arena, Slice, d->ndemand);
  Ints *shape = arena_alloc(&r->arena, sizeof *shape + (size_t)n->shape->n * sizeof *shape->v);
  if (!tuple || !room || !at || !shape) return r->failed = true;
  int k = 0;
  for (const Demand *x = d->demands; x; x = x->next)
    tuple[k++] = x->tuple;
  d->slices = at;
  k = slices_found(n, tuple, k, most, at, room);
  memcpy(shape, n->shape, sizeof *shape + (size_t)n->shape->n * sizeof *shape->v);
  for (int i = 0; i < k && !r->failed; i++) {
    for (int axis = 0; axis < n->shape->n; axis++)
      shape->v[axis] = at[i].axis[axis].to - at[i].axis[axis].from;
    int stage = stage_over(r, n, shape);
    if (stage < 0) break;
    Stage *g = stage_at(r->s, stage);
    g->late = true;
    if (!i) d->stage = stage;
    d->nslices = i + 1;
  }
  return k > 0;
}

/* The node below reshapes and CONTIGUOUS that has memory of the same layout. That of symbolic sizes may have
 * gaps. */
static UOp *reshaped(UOp *n) {
  while ((n->op == OPS_RESHAPE || n->op == OPS_CONTIGUOUS) && n->src[0]->is_tensor &&
         !dims_symbolic(n->shape))
    n = n->src[0];
  return n;
}

/* The node that is computed for a root. The memory of a scan or a scatter that is only reshaped is already
 * that of the root. */
static UOp *root_node(UOp *const *roots, int nroots, int i) {
  UOp *n = reshaped(roots[i]);
  if (n->op != OPS_SCAN_AXIS && n->op != OPS_SCATTER) return roots[i];
  for (int k = 0; k < nroots; k++)
    if (k != i && reshaped(roots[k]) == n) return roots[i]; /* a stage is the memory of one root only */
  return n;
}

static void demand_sources(Rangeify *r, UOp *n, int stage, UOp *tuple) {
  if (n->op == OPS_GATHER) force_memory(r, n->src[0]);
  for (int i = n->op == OPS_STORE || n->op == OPS_GATHER ? 1 : 0; i < n->nsrc; i++)
    if (n->src[i]->is_tensor) demand(r, n->src[i], stage, tuple);
}

bool rangeify(Sched *s, UOp *const *roots, int nroots) {
  Rangeify r = {.s = s};
  UOpVec order = {0};
  arena_init(&r.arena, s->mem), map_init(&r.moved, s->mem), map_init(&r.places, s->mem),
      map_init(&r.wanted, s->mem);
  bool ok = uop_toposort(s->st, s->mem, roots, (size_t)nroots, &order);
  size_t nid = store_id_limit(s->st);
  r.node = ok ? arena_array(&r.arena, Node, nid + 1) : NULL;
  ok = r.node != NULL;
  for (size_t i = 0; ok && i < nid; i++)
    r.node[i].stage = r.node[i].other = -1;
  for (int i = 0; ok && i < nroots; i++)
    if (roots[i]->op != OPS_AFTER) r.node[root_node(roots, nroots, i)->id].force = true;
  /* consumers first: collect the demands */
  for (size_t k = order.len; ok && !r.failed && k-- > 0;) {
    UOp *n = order.at[k];
    Node *d = &r.node[n->id];
    if (!n->is_tensor) continue;
    bool must = d->force || n->op == OPS_STORE;
    bool held = is_leaf(n) && !d->force;
    if (held) continue;
    if (!must && !d->demands) continue;
    const UOp *kept = kept_reduction(n);
    if (kept && d->force)
      d->copied = true; /* it is a root, so the root's memory is that memory */
    else if (kept)
      r.node[kept->id].kept = true;
    for (Demand *x = d->demands; x && !must && passes_on(n); x = x->next)
      d->copied |= worth_copying(&r, n, x);
    must |= d->copied;
    if (!must && passes_on(n)) {
      UOp *g;
      for (Demand *x = d->demands; x; x = x->next)
        demand(&r, n->src[0], x->stage, move(&r, n, x->tuple, &g));
      continue;
    }
    if (!must)
      must = n->op == OPS_REDUCE_AXIS || n->op == OPS_CONTIGUOUS || n->op == OPS_COPY ||
             n->op == OPS_SCAN_AXIS || n->op == OPS_SCATTER || d->demands->next ||
             worth_keeping(&r, n, &s->stages.at[d->demands->stage]);
    if (n->op == OPS_SCATTER || (updates_in_place(n) && !reads_own_target(&r, n->src[1]))) {
      if (!scatter_open(&r, n)) break;
      continue;
    }
    if (must && !passes_on(n) && !is_leaf(n) && slices_open(&r, n)) {
      for (int i = 0; i < d->nslices; i++)
        demand_sources(&r, n, d->stage + i, stage_tuple(&r, d->stage + i, true));
      continue;
    }
    int stage = must ? stage_open(&r, n) : d->demands->stage;
    if (stage < 0) break;
    UOp *tuple = must ? stage_tuple(&r, stage, true) : d->demands->tuple;
    if (must && passes_on(n)) { /* a root that is a view: other stages still read through it */
      UOp *g;
      demand(&r, n->src[0], stage, move(&r, n, tuple, &g));
      stage_at(s, stage)->in_memory |= d->copied;
      for (Demand *x = d->copied ? NULL : d->demands; x; x = x->next)
        demand(&r, n->src[0], x->stage, move(&r, n, x->tuple, &g));
      continue;
    }
    if (!is_leaf(n)) demand_sources(&r, n, stage, tuple);
  }
  /* producers first: compute the values */
  for (size_t k = 0; ok && !r.failed && k < order.len; k++) {
    UOp *n = order.at[k];
    Node *d = &r.node[n->id];
    if (!n->is_tensor) continue;
    if (d->stage >= 0)
      for (int i = 0; ok && i < TG_MAX(d->nslices, 1); i++)
        ok = lower_stage(&r, d->stage + i);
    else if (d->demands && !passes_on(n) && !is_leaf(n))
      ok = (d->lowered = lower_compute(&r, n, d->demands->tuple, d->demands->stage)) != NULL;
  }
  for (int i = 0; ok && !r.failed && i < nroots; i++) {
    int g = r.node[root_node(roots, nroots, i)->id].stage;
    if (g >= 0) {
      s->stages.at[g].root = i;
      s->stages.at[g].keep = true;
    }
  }
  for (size_t i = 0; ok && i < s->stages.len; i++) {
    Stage *g = &s->stages.at[i];
    g->in_memory |= g->node->op == OPS_CONTIGUOUS || r.node[g->node->id].kept; /* as requested */
    g->keep |= g->is_store || g->in_memory;
    ok = stage_scan(s, (int)i);
  }
  if (r.failed) ok = false;
  vec_free(s->mem, &order);
  arena_free(&r.arena), map_free(&r.moved), map_free(&r.places), map_free(&r.wanted);
  return ok;
}

int64_t stage_out_size(const Stage *g) {
  int64_t n = 1;
  for (int i = 0; i < g->nout; i++)
    n *= range_extent(g->out[i]);
  return n;
}

int64_t stage_iterations(const Stage *g) {
  int64_t n = stage_out_size(g);
  for (int i = 0; i < g->nred; i++)
    n *= range_extent(g->red[i]);
  return n;
}
