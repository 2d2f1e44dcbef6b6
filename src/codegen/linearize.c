/* linearize.c: nest -> list. In: a nest of LOOPs whose statements list nothing any more (expand.c). Out:
 * Linear: loops opened and closed, index arithmetic as int64, or as int32 where bounds prove that it fits and
 * the target gains by it; its divisions by constants as decompose.c says.
 *
 * A value is made once, in the outermost loop where all that it reads stands: below the loops whose ranges it
 * has, and below those that write a register or local memory that it reads. What a statement writes makes the
 * reads of it made so far old: LOADs of a register, local memory, or a buffer that an ORDERED loop writes
 * carry the time of the last write as arg (a WMMA that reads memory: as its last source), so that equal text
 * at different times is not one node. Other stores to buffers come last in their loop: all loads of the old
 * contents are done. */
#include "codegen/nest.h"
#include "uop/matrix.h"
#include <string.h>

typedef struct OpenLoop {
  UOp *range;      /* lowered; NULL: the kernel */
  uint64_t writes; /* memories that are written in it */
  bool skipped;    /* it may have no iteration */
  uint32_t begun;  /* at this time */
  uint32_t serial;
  UOpVec body, stores;
} OpenLoop;

typedef struct Lin {
  Kernel *k;
  Vec(OpenLoop) open; /* outer first; the first is the kernel */
  uint32_t serial, time;
  uint32_t changed[64]; /* by memory: the time of its last write */
  uint64_t partly;      /* memories that are filled as far as a loop of symbolic length goes */

  struct {
    const UOp *reg;
    UOp *value; /* lowered */
    int level;  /* of the value */
    uint32_t time, serial;
  } last[64]; /* by memory: what was last written to a register, and in which loop */

  UOp **repl;          /* what a node became, .. */
  uint32_t *in, *when; /* .. in the loop of this serial, at this time; 0: not made */
  int *level;          /* .. which is that deep */
  uint64_t *reads;     /* memories below a node that statements write */
  bool *updates;       /* by PARAM slot: an ORDERED loop writes it */
  UOpMap *listed;      /* nodes of the program: lowering may meet one again */
  DType ix;
  UOpVec stack;
  Vec(int) next;
} Lin;

/* Memories share 64 bits; two that share one are only taken for changed more often. */
static uint64_t memory_bit(const Lin *l, const UOp *m) {
  switch (m->op) {
  case OPS_DEFINE_REG: return 1ull << (m->arg.param.slot % 40);
  case OPS_DEFINE_LOCAL: return 1ull << (40 + m->arg.param.slot % 16);
  case OPS_PARAM: return l->updates[m->arg.param.slot] ? 1ull << (56 + m->arg.param.slot % 8) : 0;
  default: return 0;
  }
}

static const UOp *place_memory(const UOp *place) { /* of an INDEX, or a register itself */
  return place->op == OPS_INDEX ? memory_of(place) : place;
}

static void written(Lin *l, uint64_t memories) {
  l->time++;
  for (; memories; memories &= memories - 1)
    l->changed[__builtin_ctzll(memories)] = l->time;
}

static uint32_t last_change(const Lin *l, uint64_t memories) {
  uint32_t t = 0;
  for (; memories; memories &= memories - 1)
    t = TG_MAX(t, l->changed[__builtin_ctzll(memories)]);
  return t;
}

static bool is_made(const Lin *l, const UOp *u) {
  if (!l->in[u->id] || l->level[u->id] >= (int)l->open.len) return false;
  return l->open.at[l->level[u->id]].serial == l->in[u->id] &&
         l->when[u->id] >= last_change(l, l->reads[u->id]);
}

static bool list(Lin *l, int level, UOp *u) { return u && vec_push(l->k->mem, &l->open.at[level].body, u); }

/* A node of the program, once. */
static bool list_once(Lin *l, int level, UOp *u) {
  if (!u) return false;
  if (uop_map_get(l->listed, u)) return true;
  return uop_map_put(l->k->st, l->listed, u, u) && list(l, level, u);
}

static bool set(Lin *l, const UOp *u, UOp *as, int level) {
  l->repl[u->id] = as;
  l->level[u->id] = level;
  l->in[u->id] = l->open.at[level].serial;
  l->when[u->id] = l->time;
  return as != NULL;
}

/* Memories that a WMMA reads by itself, where its operands are places. */
static uint64_t read_in_place(const Lin *l, const UOp *u) {
  uint64_t m = 0;
  for (int i = 0; u->op == OPS_WMMA && i < 2; i++)
    if (u->src[i]->op == OPS_INDEX) m |= memory_bit(l, memory_of(u->src[i]));
  return m;
}

static int level_of_sources(const Lin *l, const UOp *u) {
  int level = 0;
  for (int i = 0; i < u->nsrc; i++)
    level = TG_MAX(level, l->level[u->src[i]->id]);
  return level;
}

/* Whether bounds prove that an INDEX is a place of its memory, in any iteration of any loop. One that is not
 * proved may be a place only because a loop around it has no iteration where it is none. */
static bool is_in_bounds(const UOp *index) {
  if (index->op != OPS_INDEX) return true;
  const UOp *at = index->src[1];
  return at->vmin >= 0 && at->vmax <= memory_of(index)->arg.param.nelem - index->lanes;
}

static int level_of(const Lin *l, const UOp *u) {
  int level = level_of_sources(l, u);
  if (u->op == OPS_LOAD) { /* in the innermost loop that writes what it reads, or may keep it from running */
    uint64_t m = memory_bit(l, place_memory(u->src[0]));
    bool anywhere = is_in_bounds(u->src[0]) && !(l->partly & m);
    for (int d = (int)l->open.len - 1; d > level; d--)
      if ((l->open.at[d].writes & m) || (l->open.at[d].skipped && !anywhere)) return d;
  }
  uint64_t in_place = read_in_place(l, u);
  for (int d = (int)l->open.len - 1; in_place && d > level; d--)
    if (l->open.at[d].writes & in_place) return d;
  return level;
}

static DType lowered(const Lin *l, const UOp *u) { return u->dtype == DT_INDEX ? l->ix : (DType)u->dtype; }

static bool divided(Lin *l, UOp *u, UOp *x, int level, bool *done) { /* an index division by a constant */
  UOp *part[DIVIDE_NODES];
  int n = u->dtype == DT_INDEX && u->nsrc == 2 && l->k->ren ? divide_index(l->k->st, u, x, part) : 0;
  *done = n > 0;
  for (int i = 0; i < n; i++)
    if (!part[i] || !list_once(l, part[i]->op == OPS_CONST ? 0 : level, part[i])) return false;
  return !n || set(l, u, part[n - 1], level);
}

/* What a register holds, where that was written in a loop that is still open and nothing has changed it
 * since. */
static UOp *held(const Lin *l, const UOp *reg, uint64_t m) {
  int bit = __builtin_ctzll(m);
  if (reg->op != OPS_DEFINE_REG || l->last[bit].reg != reg || l->last[bit].time != l->changed[bit])
    return NULL;
  return l->last[bit].serial == l->open.at[l->open.len - 1].serial ? l->last[bit].value : NULL;
}

static bool make(Lin *l, UOp *u) { /* its sources are made */
  UOpStore *st = l->k->st;
  UOp *buf[70], **src = u->nsrc <= 70 ? buf : mem_alloc(l->k->mem, u->nsrc * sizeof *src);
  if (!src) return false;
  for (int i = 0; i < u->nsrc; i++)
    src[i] = l->repl[u->src[i]->id];
  DType d = lowered(l, u);
  int level = u->op == OPS_DEFINE_REG ? (int)l->open.len - 1 : level_of(l, u);
  bool done = false, ok = true;
  if (u->op == OPS_CAST && src[0]->dtype == d) {
    ok = set(l, u, src[0], level);
    done = true;
  } else
    ok = divided(l, u, src[0], level, &done);
  if (ok && !done) {
    Arg arg = u->arg;
    uint64_t m = u->op == OPS_LOAD ? memory_bit(l, place_memory(u->src[0])) : 0;
    if (m) arg.i = last_change(l, m);
    if (u->op == OPS_LOAD && level > level_of_sources(l, u)) /* not the one of another loop */
      arg.i = TG_MAX(arg.i, l->open.at[level].begun);
    UOp *known = m ? held(l, u->src[0], m) : NULL;
    if (known)
      level = l->last[__builtin_ctzll(m)].level; /* what is made of it may be made there, for others too */
    int n = u->op == OPS_PARAM || u->op == OPS_DEFINE_REG ? 0 : u->nsrc; /* without extents */
    uint64_t in_place = read_in_place(l, u);
    if (in_place) src[n++] = uop_const_int(st, l->ix, last_change(l, in_place));
    UOp *r = known                ? known
             : u->op == OPS_CONST ? uop_const(st, d, u->arg.v)
                                  : uop_new(st, (Ops)u->op, d, u->lanes, n, src, arg);
    ok = r && set(l, u, r, level) && (known || list_once(l, level, r));
  }
  if (src != buf) mem_free(l->k->mem, src);
  return ok;
}

static bool value(Lin *l, UOp *root) {
  TgMem *m = l->k->mem;
  bool ok = vec_push(m, &l->stack, root) && vec_push(m, &l->next, 0);
  while (ok && l->stack.len) {
    UOp *u = l->stack.at[l->stack.len - 1];
    int i = l->next.at[l->next.len - 1]++;
    if (i == 0 && is_made(l, u)) {
      l->stack.len--, l->next.len--;
      continue;
    }
    bool leaf = u->op == OPS_PARAM || u->op == OPS_DEFINE_REG;
    if (i < u->nsrc && !leaf) {
      ok = is_made(l, u->src[i]) || (vec_push(m, &l->stack, u->src[i]) && vec_push(m, &l->next, 0));
      continue;
    }
    ok = u->op != OPS_RANGE && make(l, u); /* the RANGE of a loop that is not open: no nest */
    l->stack.len--, l->next.len--;
  }
  return ok;
}

/* ---- statements */
static bool close_stores(Lin *l, OpenLoop *loop) { /* to buffers: the last thing in an iteration */
  for (size_t i = 0; i < loop->stores.len; i++)
    if (!vec_push(l->k->mem, &loop->body, loop->stores.at[i])) return false;
  return true;
}

static bool store(Lin *l, UOp *u) {
  const UOp *memory = place_memory(u->src[0]);
  OpenLoop *here = &l->open.at[l->open.len - 1];
  int last = memory->op == OPS_DEFINE_REG ? 0 : 1; /* a register is declared where it gets its first value */
  if (!value(l, u->src[!last]) || !value(l, u->src[last])) return false;
  uint64_t m = memory->op == OPS_PARAM ? 0 : memory_bit(l, memory);
  written(l, m);
  UOp *to = l->repl[u->src[0]->id], *v = l->repl[u->src[1]->id];
  if (m) {
    int bit = __builtin_ctzll(m);
    l->last[bit].reg = u->src[0];
    l->last[bit].value = v;
    l->last[bit].level = l->level[u->src[1]->id];
    l->last[bit].time = l->time;
    l->last[bit].serial = here->serial;
  }
  UOp *s = UNEW(l->k->st, OPS_STORE, DT_VOID, 1, ((Arg){.i = m ? l->time : 0}), to, v);
  return s && vec_push(l->k->mem, memory->op == OPS_PARAM ? &here->stores : &here->body, s);
}

static bool barrier(Lin *l, const UOp *u) { /* what other threads wrote is read again */
  UOp *keep[2];
  for (int i = 0; i < u->nsrc && i < 2; i++)
    keep[i] = uop_const_int(l->k->st, l->ix, u->src[i]->arg.v.i);
  written(l, ((1ull << 16) - 1) << 40);
  return list(l, (int)l->open.len - 1,
              uop_new(l->k->st, OPS_BARRIER, DT_VOID, 1, u->nsrc, keep, (Arg){.i = l->time}));
}

static bool prefetch(Lin *l, const UOp *u) {
  if (!value(l, u->src[0])) return false;
  return list(l, (int)l->open.len - 1,
              UNEW(l->k->st, OPS_PREFETCH, DT_VOID, 1, ARG0, l->repl[u->src[0]->id]));
}

static uint64_t writes_of(const Lin *l, const UOp *u) {
  if (u->op == OPS_STORE) return memory_bit(l, place_memory(u->src[0]));
  uint64_t m = u->op == OPS_BARRIER ? ((1ull << 16) - 1) << 40 : 0;
  for (int i = 1; u->op == OPS_LOOP && i < u->nsrc; i++)
    m |= writes_of(l, u->src[i]);
  return m;
}

static bool statement(Lin *l, UOp *u);

static bool loop(Lin *l, UOp *u) {
  UOp *range = u->src[0];
  OpenLoop open = {.writes = writes_of(l, u), .skipped = range->src[0]->vmin < 1, .serial = ++l->serial};
  if (uop_has(range->src[0], VAR)) l->partly |= open.writes;
  if (!value(l, range->src[0])) return false;
  Arg arg = {.range = {range->arg.range.id, range->arg.range.type, 0}};
  open.range = uop_new(l->k->st, OPS_RANGE, l->ix, 1, 1, &l->repl[range->src[0]->id], arg);
  written(l, open.writes);
  open.begun = l->time;
  if (!vec_push(l->k->mem, &l->open, open)) return false;
  int here = (int)l->open.len - 1;
  bool ok = list(l, here, open.range) && set(l, range, open.range, here);
  for (int i = 1; ok && i < u->nsrc; i++)
    ok = statement(l, u->src[i]);
  OpenLoop *done = &l->open.at[here], *up = &l->open.at[here - 1];
  ok = ok && close_stores(l, done);
  size_t n = done->body.len;
  ok = ok && vec_reserve(l->k->mem, &up->body, up->body.len + n + 1);
  if (ok && n) {
    memcpy(up->body.at + up->body.len, done->body.at, n * sizeof *done->body.at);
    up->body.len += n;
  }
  UOp *end = ok ? UNEW(l->k->st, OPS_END, DT_VOID, 1, ARG0, done->range) : NULL;
  ok = end && vec_push(l->k->mem, &up->body, end);
  written(l, done->writes);
  vec_free(l->k->mem, &done->body), vec_free(l->k->mem, &done->stores);
  l->open.len--;
  return ok;
}

static bool statement(Lin *l, UOp *u) { /* loops nest as deep as a kernel has axes: this may recurse */
  switch (u->op) {
  case OPS_LOOP: return loop(l, u);
  case OPS_STORE: return store(l, u);
  case OPS_BARRIER: return barrier(l, u);
  case OPS_PREFETCH: return prefetch(l, u);
  default: return false;
  }
}

/* ---- before: what an ACC does, as a STORE; a product is rounded once with the sum that it goes to, and
 * where a term is a product that was added to another term in one rounding, each of them is added so */
static UOp *added(Kernel *k, Ops op, UOp *was, UOp *v) {
  bool fuses = op == OPS_ADD && (!k->ren || op_in_set(k->ren->native, OPS_MULACC)) &&
               dtype_is_float((DType)v->dtype) && v->dtype >= DT_F32;
  if (!was || !fuses || (v->op != OPS_MUL && v->op != OPS_MULACC)) return uop_alu2(k->st, op, was, v);
  UOp *sum = v->op == OPS_MUL ? was : added(k, op, was, v->src[2]);
  return UNEW(k->st, OPS_MULACC, (DType)v->dtype, v->lanes, ARG0, v->src[0], v->src[1], sum);
}

static UOp *step(Kernel *k, UOp *u) {
  UOp *reg = u->src[0], *was = UNEW(k->st, OPS_LOAD, (DType)reg->dtype, reg->lanes, ARG0, reg);
  return UNEW(k->st, OPS_STORE, DT_VOID, 1, ARG0, reg, added(k, (Ops)u->arg.reduce.op, was, u->src[1]));
}

static UOp *steps(Kernel *k, UOp *u) {
  if (u->op == OPS_ACC) return step(k, u);
  if (u->op != OPS_LOOP && u->op != OPS_SINK) return u;
  UOpVec src = {0};
  bool ok = true;
  for (int i = 0; ok && i < u->nsrc; i++)
    ok = vec_push(k->mem, &src, steps(k, u->src[i])) && src.at[i];
  UOp *r = ok ? uop_new(k->st, (Ops)u->op, DT_VOID, 1, (int)src.len, src.at, u->arg) : NULL;
  vec_free(k->mem, &src);
  return r;
}

/* Buffers that an ORDERED loop writes, or the blocks of a reduction that they hold the sum of: they are read
 * again in each iteration. */
static void ordered_writes(Lin *l, const UOp *u, bool ordered) {
  if (u->op == OPS_STORE && ordered && place_memory(u->src[0])->op == OPS_PARAM)
    l->updates[place_memory(u->src[0])->arg.param.slot] = true;
  const UOp *r = u->op == OPS_LOOP ? u->src[0] : NULL;
  ordered |= r && (r->arg.range.type == AXIS_ORDERED || (r->arg.range.type == AXIS_REDUCE && is_block(r)));
  for (int i = u->op == OPS_LOOP; (u->op == OPS_LOOP || u->op == OPS_SINK) && i < u->nsrc; i++)
    ordered_writes(l, u->src[i], ordered);
}

static void index_dtype(Lin *l, const UOpVec *order) {
  l->ix = DT_I64;
  if (!l->k->ren || !l->k->ren->narrow_index) return;
  l->ix = DT_I32;
  for (size_t i = 0; i < order->len; i++)
    if (order->at[i]->dtype == DT_INDEX && (order->at[i]->vmin < INT32_MIN || order->at[i]->vmax > INT32_MAX))
      l->ix = DT_I64;
}

static bool lin_begin(Lin *l, UOp *sink, UOpVec *order, Linear *out) {
  Kernel *k = l->k;
  TgMem *m = k->mem;
  if (!sink || !uop_toposort(k->st, m, &sink, 1, order)) return false;
  size_t n = store_id_limit(k->st) + 1;
  l->repl = mem_alloc(m, n * sizeof *l->repl);
  l->in = mem_alloc(m, n * sizeof *l->in);
  l->when = mem_alloc(m, n * sizeof *l->when);
  l->level = mem_alloc(m, n * sizeof *l->level);
  l->reads = mem_alloc(m, n * sizeof *l->reads);
  l->listed = uop_map_begin(k->st, k->st);
  for (size_t i = 0; i < order->len; i++)
    if (order->at[i]->op == OPS_PARAM)
      out->nparam = TG_MAX(out->nparam, (int)order->at[i]->arg.param.slot + 1);
  l->updates = mem_alloc(m, (size_t)out->nparam + 1);
  if (!l->repl || !l->in || !l->when || !l->level || !l->reads || !l->listed || !l->updates) return false;
  index_dtype(l, order);
  ordered_writes(l, sink, false);
  for (size_t i = 0; i < order->len; i++) {
    const UOp *u = order->at[i];
    uint64_t *reads = &l->reads[u->id];
    *reads = u->op == OPS_LOAD ? memory_bit(l, place_memory(u->src[0])) : read_in_place(l, u);
    for (int s = 0; s < u->nsrc; s++)
      *reads |= l->reads[u->src[s]->id];
  }
  OpenLoop kernel = {.serial = ++l->serial};
  bool ok = vec_push(m, &l->open, kernel);
  for (size_t i = 0; ok && i < order->len; i++) /* pointers first */
    if (order->at[i]->op == OPS_PARAM) ok = value(l, order->at[i]);
  return ok;
}

static void lin_end(Lin *l) {
  TgMem *m = l->k->mem;
  for (size_t i = 0; i < l->open.len; i++)
    vec_free(m, &l->open.at[i].body), vec_free(m, &l->open.at[i].stores);
  vec_free(m, &l->open), vec_free(m, &l->stack), vec_free(m, &l->next);
  uop_map_end(l->k->st, l->listed);
  mem_free(m, l->repl), mem_free(m, l->in), mem_free(m, l->when), mem_free(m, l->level),
      mem_free(m, l->reads);
  mem_free(m, l->updates);
}

/* A step of a unit that adds to the register itself. */
static bool steps_in_place(const UOp *u) {
  const UOp *v = u->op == OPS_STORE ? u->src[1] : NULL;
  return v && v->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[v->arg.i]);
}

/* What a register holds after its last iteration may go straight to who reads it; one that nobody loads is
 * none.
 */
static bool unread_dropped(const Lin *l, Linear *out) {
  bool *loaded = mem_alloc(l->k->mem, store_id_limit(l->k->st) + 1);
  int n = 0;
  if (!loaded) return false;
  for (int i = 0; i < out->n; i++)
    if (out->at[i]->op == OPS_LOAD || steps_in_place(out->at[i]))
      loaded[uop_base(out->at[i]->src[0])->id] = true;
  for (int i = 0; i < out->n; i++) {
    const UOp *u = out->at[i], *reg = u->op == OPS_STORE ? uop_base(u->src[0]) : u;
    if (reg->op != OPS_DEFINE_REG || loaded[reg->id]) out->at[n++] = out->at[i];
  }
  out->n = n;
  mem_free(l->k->mem, loaded);
  return true;
}

bool linearize(Kernel *k, Arena *arena, Linear *out) {
  Lin l = {.k = k};
  UOpVec order = {0};
  UOp *sink = steps(k, k->sink);
  bool ok = lin_begin(&l, sink, &order, out);
  for (int i = 0; ok && i < sink->nsrc; i++)
    ok = statement(&l, sink->src[i]);
  ok = ok && close_stores(&l, &l.open.at[0]);
  if (ok) {
    const UOpVec *body = &l.open.at[0].body;
    out->n = (int)body->len;
    out->at = arena_array(arena, UOp *, out->n + 1);
    ok = out->at != NULL;
    if (ok && body->len) memcpy(out->at, body->at, body->len * sizeof *body->at);
    ok = ok && unread_dropped(&l, out);
  }
  lin_end(&l);
  vec_free(k->mem, &order);
  return ok;
}
