/* linearize.c: turns a loop nest into a list. In: a nest of LOOPs whose statements no longer list expanded
 * ranges (expand.c). Out: a Linear, in which loops are opened and closed by RANGE and END. Index arithmetic
 * is int64, or int32 if bounds prove that every index fits and the target gains by it. Index divisions by
 * constants are replaced as decompose.c decides.
 *
 * A value is computed once, in the outermost loop where everything that it reads is available: inside the
 * loops whose ranges it uses, and inside the loops that write a register or local memory that it reads. A
 * statement that writes a memory invalidates earlier reads of that memory. Therefore a LOAD of a register, of
 * local memory, or of a buffer that an ORDERED loop writes carries the time of the last write as its arg (a
 * WMMA that reads memory carries it as its last source), so that equal reads at different times are different
 * nodes. All other stores to buffers are placed last in their loop, after all loads of the old contents. */
#include "codegen/nest.h"
#include "uop/matrix.h"
#include <string.h>

typedef struct OpenLoop {
  UOp *range;      /* lowered to the index dtype; NULL: the kernel itself */
  uint64_t writes; /* set of memories that are written in this loop */
  bool skipped;    /* true: the loop may have no iteration */
  uint32_t begun;  /* the time at which the loop was opened */
  uint32_t serial;
  UOpVec body, stores;
} OpenLoop;

/* What is known of a node of the nest. One record, because all of it is asked for at once. */
typedef struct Lowered {
  UOp *as;           /* what the node was lowered to, or NULL */
  uint64_t reads;    /* the memories that the node or a source below it reads and that statements write */
  uint32_t in, when; /* the serial of the loop that it was made in (0: not made), and the time */
  int level;         /* the depth of that loop */
} Lowered;

typedef struct Lin {
  Kernel *k;
  Vec(OpenLoop) open; /* outermost first; open.at[0] is the kernel */
  uint32_t serial, time;
  uint32_t changed[64]; /* per memory bit: the time of its last write */
  /* memories that are written in a loop of symbolic extent, which may fill only part of them */
  uint64_t partly;

  struct {
    const UOp *reg;
    UOp *value; /* lowered */
    int level;  /* loop depth of the value */
    uint32_t time, serial;
  } last[64]; /* per memory bit: the value last written to a register, and the loop in which it was written */

  Lowered *of;    /* by node id */
  bool *updates;  /* by PARAM slot: true if an ORDERED loop writes it */
  UOpMap *listed; /* nodes already in the program, because lowering may produce the same node again */
  DType ix;
  UOpVec stack;
  Vec(int) next;
} Lin;

/* The bit of a memory in a set of memories; 0 for a buffer that no ORDERED loop writes. All memories share 64
 * bits. Two memories with the same bit are only assumed to change more often than they do. */
static uint64_t memory_bit(const Lin *l, const UOp *m) {
  switch (m->op) {
  case OPS_DEFINE_REG: return 1ull << (m->arg.param.slot % 40);
  case OPS_DEFINE_LOCAL: return 1ull << (40 + m->arg.param.slot % 16);
  case OPS_PARAM: return l->updates[m->arg.param.slot] ? 1ull << (56 + m->arg.param.slot % 8) : 0;
  default: return 0;
  }
}

/* The memory of a place, which is an INDEX or the register itself. */
static const UOp *place_memory(const UOp *place) { return place->op == OPS_INDEX ? memory_of(place) : place; }

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

/* Whether u has been lowered in a loop that is still open and none of the memories that it reads has changed
 * since. */
static bool is_made(const Lin *l, const UOp *u) {
  const Lowered *w = &l->of[u->id];
  if (!w->in || w->level >= (int)l->open.len) return false;
  return l->open.at[w->level].serial == w->in && w->when >= last_change(l, w->reads);
}

static bool list(Lin *l, int level, UOp *u) { return u && vec_push(l->k->mem, &l->open.at[level].body, u); }

/* Adds a node to the program unless the program has it already. */
static bool list_once(Lin *l, int level, UOp *u) {
  if (!u) return false;
  if (uop_map_get(l->listed, u)) return true;
  return uop_map_put(l->k->st, l->listed, u, u) && list(l, level, u);
}

static bool set(Lin *l, const UOp *u, UOp *as, int level) {
  Lowered *w = &l->of[u->id];
  w->as = as;
  w->level = level;
  w->in = l->open.at[level].serial;
  w->when = l->time;
  return as != NULL;
}

/* The memories that a WMMA reads itself. Its operands are then places, not values. */
static uint64_t read_in_place(const Lin *l, const UOp *u) {
  uint64_t m = 0;
  for (int i = 0; u->op == OPS_WMMA && i < 2; i++)
    if (u->src[i]->op == OPS_INDEX) m |= memory_bit(l, memory_of(u->src[i]));
  return m;
}

static int level_of_sources(const Lin *l, const UOp *u) {
  int level = 0;
  for (int i = 0; i < u->nsrc; i++)
    level = TG_MAX(level, l->of[u->src[i]->id].level);
  return level;
}

/* Whether bounds prove that an INDEX is inside its memory in every iteration of every loop. If they do not,
 * the INDEX may be valid only because a loop around it runs no iteration in which it would be outside. */
static bool is_in_bounds(const UOp *index) {
  if (index->op != OPS_INDEX) return true;
  const UOp *at = index->src[1];
  return at->vmin >= 0 && at->vmax <= memory_of(index)->arg.param.nelem - index->lanes;
}

static int level_of(const Lin *l, const UOp *u) {
  int level = level_of_sources(l, u);
  /* at least in the innermost loop that writes the memory that it reads, or that may skip the load */
  if (u->op == OPS_LOAD) {
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

/* Lowers an index division by a constant to cheaper operations. Sets *done to false if none are known.
 * Returns false on failure. */
static bool divided(Lin *l, UOp *u, UOp *x, int level, bool *done) {
  UOp *part[DIVIDE_NODES];
  int n = u->dtype == DT_INDEX && u->nsrc == 2 && l->k->ren ? divide_index(l->k->st, u, x, part) : 0;
  *done = n > 0;
  for (int i = 0; i < n; i++)
    if (!part[i] || !list_once(l, part[i]->op == OPS_CONST ? 0 : level, part[i])) return false;
  return !n || set(l, u, part[n - 1], level);
}

/* The value that a register holds, if it was written in the innermost open loop and has not changed since.
 * Otherwise NULL. */
static UOp *held(const Lin *l, const UOp *reg, uint64_t m) {
  int bit = __builtin_ctzll(m);
  if (reg->op != OPS_DEFINE_REG || l->last[bit].reg != reg || l->last[bit].time != l->changed[bit])
    return NULL;
  return l->last[bit].serial == l->open.at[l->open.len - 1].serial ? l->last[bit].value : NULL;
}

/* Lowers u, whose sources are lowered. */
static bool make(Lin *l, UOp *u) {
  UOpStore *st = l->k->st;
  UOp *buf[70], **src = u->nsrc <= 70 ? buf : mem_alloc(l->k->mem, u->nsrc * sizeof *src);
  if (!src) return false;
  for (int i = 0; i < u->nsrc; i++)
    src[i] = l->of[u->src[i]->id].as;
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
    /* must differ from the same LOAD in another loop */
    if (u->op == OPS_LOAD && level > level_of_sources(l, u)) arg.i = TG_MAX(arg.i, l->open.at[level].begun);
    UOp *known = m ? held(l, u->src[0], m) : NULL;
    if (known)
      level = l->last[__builtin_ctzll(m)].level; /* so that other expressions may use it in that loop, too */
    int n = u->op == OPS_PARAM || u->op == OPS_DEFINE_REG ? 0 : u->nsrc; /* these two lose their extents */
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
    ok = u->op != OPS_RANGE && make(l, u); /* the RANGE of a loop that is not open: the nest is malformed */
    l->stack.len--, l->next.len--;
  }
  return ok;
}

/* ---- statements */
/* Appends the stores to buffers, which come last in an iteration. */
static bool close_stores(Lin *l, OpenLoop *loop) {
  for (size_t i = 0; i < loop->stores.len; i++)
    if (!vec_push(l->k->mem, &loop->body, loop->stores.at[i])) return false;
  return true;
}

static bool store(Lin *l, UOp *u) {
  const UOp *memory = place_memory(u->src[0]);
  OpenLoop *here = &l->open.at[l->open.len - 1];
  /* a register's value is computed before the register, because the register is declared at its first
   * write */
  int last = memory->op == OPS_DEFINE_REG ? 0 : 1;
  if (!value(l, u->src[!last]) || !value(l, u->src[last])) return false;
  uint64_t m = memory->op == OPS_PARAM ? 0 : memory_bit(l, memory);
  written(l, m);
  UOp *to = l->of[u->src[0]->id].as, *v = l->of[u->src[1]->id].as;
  if (m) {
    int bit = __builtin_ctzll(m);
    l->last[bit].reg = u->src[0];
    l->last[bit].value = v;
    l->last[bit].level = l->of[u->src[1]->id].level;
    l->last[bit].time = l->time;
    l->last[bit].serial = here->serial;
  }
  UOp *s = UNEW(l->k->st, OPS_STORE, DT_VOID, 1, ((Arg){.i = m ? l->time : 0}), to, v);
  return s && vec_push(l->k->mem, memory->op == OPS_PARAM ? &here->stores : &here->body, s);
}

/* A barrier makes every later read of local memory a new one, because other threads may have written it. */
static bool barrier(Lin *l, const UOp *u) {
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
              UNEW(l->k->st, OPS_PREFETCH, DT_VOID, 1, ARG0, l->of[u->src[0]->id].as));
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
  open.range = uop_new(l->k->st, OPS_RANGE, l->ix, 1, 1, &l->of[range->src[0]->id].as, arg);
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

/* Recursion is safe because loops nest only as deep as a kernel has axes. */
static bool statement(Lin *l, UOp *u) {
  switch (u->op) {
  case OPS_LOOP: return loop(l, u);
  case OPS_STORE: return store(l, u);
  case OPS_BARRIER: return barrier(l, u);
  case OPS_PREFETCH: return prefetch(l, u);
  default: return false;
  }
}

/* ---- before the list is made: each ACC becomes a STORE. A product is added to its sum with one rounding
 * (MULACC). If a term is itself a MULACC, its product and its addend are each added to the sum in this
 * way. */
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

/* Finds the buffers that an ORDERED loop or a loop over blocks of a reduction writes. They are read again in
 * each iteration, because they may hold a running sum. */
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
  l->of = mem_alloc(m, n * sizeof *l->of);
  l->listed = uop_map_begin(k->st, k->st);
  for (size_t i = 0; i < order->len; i++)
    if (order->at[i]->op == OPS_PARAM)
      out->nparam = TG_MAX(out->nparam, (int)order->at[i]->arg.param.slot + 1);
  l->updates = mem_alloc(m, (size_t)out->nparam + 1);
  if (!l->of || !l->listed || !l->updates) return false;
  index_dtype(l, order);
  ordered_writes(l, sink, false);
  for (size_t i = 0; i < order->len; i++) {
    const UOp *u = order->at[i];
    uint64_t *reads = &l->of[u->id].reads;
    *reads = u->op == OPS_LOAD ? memory_bit(l, place_memory(u->src[0])) : read_in_place(l, u);
    for (int s = 0; s < u->nsrc; s++)
      *reads |= l->of[u->src[s]->id].reads;
  }
  OpenLoop kernel = {.serial = ++l->serial};
  bool ok = vec_push(m, &l->open, kernel);
  for (size_t i = 0; ok && i < order->len; i++) /* pointers are listed first */
    if (order->at[i]->op == OPS_PARAM) ok = value(l, order->at[i]);
  return ok;
}

static void lin_end(Lin *l) {
  TgMem *m = l->k->mem;
  for (size_t i = 0; i < l->open.len; i++)
    vec_free(m, &l->open.at[i].body), vec_free(m, &l->open.at[i].stores);
  vec_free(m, &l->open), vec_free(m, &l->stack), vec_free(m, &l->next);
  uop_map_end(l->k->st, l->listed);
  mem_free(m, l->of), mem_free(m, l->updates);
}

/* Whether a STORE is a step of a matrix unit that accumulates into the register itself. */
static bool steps_in_place(const UOp *u) {
  const UOp *v = u->op == OPS_STORE ? u->src[1] : NULL;
  return v && v->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[v->arg.i]);
}

/* Removes registers that are never loaded, and stores to them. They arise because the value after the last
 * iteration may be passed directly to its user. */
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
