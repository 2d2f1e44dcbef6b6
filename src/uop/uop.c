/* uop.c: the store. In: op, dtype, sources, arg. Out: the only node with that content, with its structural
 * hash and its facts (node_facts.c). Nothing here recurses, so a chain of a million nodes needs no stack. */
#include "uop/uop_private.h"
#include <string.h>

/* ---- op table */
#define U      OPF_U
#define B      OPF_B
#define T      OPF_T
#define COMM   OPF_COMM
#define ASSOC  OPF_ASSOC
#define CMP    OPF_CMP
#define MOV    OPF_MOV
#define TENSOR OPF_TENSOR
#define KERNEL OPF_KERNEL
#define MARK   OPF_MARK

const OpRow op_table[OPS_COUNT] = {

#define OP(name, nsrc, arg, flags, operands, weight, c, meaning)                                             \
  {#name, c, flags, nsrc, ARG_##arg, OPERANDS_##operands, WEIGHT_##weight},
#include "uop/ops.def"
#undef OP
};

const char *op_name(Ops op) { return op < OPS_COUNT ? op_table[op].name : "?"; }

#undef U
#undef B
#undef T

bool op_takes(Ops op, int operand, DType d) {
  switch (op_operands(op)) {
  case OPERANDS_FLOAT: return dtype_is_float(d);
  case OPERANDS_INT: return dtype_is_int(d);
  case OPERANDS_BITS: return !dtype_is_float(d);
  case OPERANDS_U64: return d == DT_U64;
  case OPERANDS_I32: return d == DT_I32;
  case OPERANDS_CHOICE: return operand > 0 || d == DT_BOOL;
  default: return true;
  }
}

/* ---- store: nodes in an arena, with a free list for each number of sources, and an intern table of {hash,
 * id} */
UOpStore *store_new(TgMem *mem) {
  UOpStore *st = mem_alloc(mem, sizeof *st);
  if (!st) return NULL;
  st->mem = mem;
  arena_init(&st->arena, mem), arena_init(&st->ints_arena, mem), map_init(&st->ints, mem);
  return st;
}

void store_free(UOpStore *st) {
  if (!st) return;
  for (UOpMap *m = st->free_maps, *n; m; m = n) {
    n = m->next;
    mem_free(st->mem, m->at);
    vec_free(st->mem, &m->stack);
    vec_free(st->mem, &m->order);
    mem_free(st->mem, m);
  }
  for (size_t i = 0; i < st->big.len; i++)
    mem_free(st->mem, st->big.at[i]);
  vec_free(st->mem, &st->big), vec_free(st->mem, &st->all), vec_free(st->mem, &st->free_ids),
      vec_free(st->mem, &st->devices);
  arena_free(&st->arena), arena_free(&st->ints_arena), map_free(&st->ints);
  mem_free(st->mem, st->table), mem_free(st->mem, st);
}

void store_clear(UOpStore *st) {
  if (st->cap) memset(st->table, 0, st->cap * sizeof *st->table);
  st->cap = 0; /* a small graph is found faster in the first part of the table */
  for (size_t i = 0; i < st->big.len; i++)
    mem_free(st->mem, st->big.at[i]);
  st->big.len = st->all.len = st->free_ids.len = st->devices.len = 0;
  st->len = st->created = 0;
  memset(st->free_list, 0, sizeof st->free_list);
  memset(st->recent_const, 0, sizeof st->recent_const);
  arena_reset(&st->arena), arena_reset(&st->ints_arena), map_clear(&st->ints);
  st->env = NULL;
  st->err = NULL;
  st->dims = NULL;
}

void store_set_env(UOpStore *st, RewriteEnv *env) { st->env = env; }

void store_set_error(UOpStore *st, TgError *err) { st->err = err; }

static void *no_room(UOpStore *st) {
  error_set(st->err, TG_ERR_NOMEM, "out of memory");
  return NULL;
}

RewriteEnv *store_env(const UOpStore *st) { return st->env; }

size_t store_count(const UOpStore *st) { return st->len; }

size_t store_created(const UOpStore *st) { return st->created; }

uint32_t store_id_limit(const UOpStore *st) { return (uint32_t)st->all.len; }

const Ints *ints_get(UOpStore *st, int n, const int64_t *v) {
  uint64_t h = hash_bytes(7, v, (size_t)n * sizeof *v), at;
  for (; map_get(&st->ints, h, &at); h++) {
    const Ints *l = (const Ints *)(uintptr_t)at;
    if (l->n == n && (!n || !memcmp(l->v, v, (size_t)n * sizeof *v))) return l;
  }
  Ints *l = arena_alloc(&st->ints_arena, sizeof *l + (size_t)n * sizeof *v);
  if (!l) return no_room(st);
  l->n = n;
  if (n) memcpy(l->v, v, (size_t)n * sizeof *v);
  return map_put_ptr(&st->ints, (uintptr_t)h, l) ? l : no_room(st);
}

/* ---- nodes */
/* A structural hash: it depends only on content, so it is the same in every store. Lists are hashed by their
 * values. */
static uint64_t content_hash(Ops op, DType dtype, int lanes, int nsrc, UOp *const *src, Arg arg) {
  uint64_t h = hash_mix((uint64_t)op << 32 | (uint64_t)dtype << 16 | (uint64_t)lanes << 8, (uint64_t)nsrc);
  ArgForm form = op_arg(op);
  if (form == ARG_INTS)
    h = hash_bytes(h, arg.ints->v, (size_t)arg.ints->n * 8);
  else if (form == ARG_AXES)
    h = hash_mix(hash_bytes(h, arg.reduce.axes->v, (size_t)arg.reduce.axes->n * 8), (uint64_t)arg.reduce.op);
  else
    h = hash_mix(hash_mix(h, (uint64_t)arg.raw.a), (uint64_t)arg.raw.b);
  for (int i = 0; i < nsrc; i++)
    h = hash_mix(h, (uint64_t)src[i]->hash_high << 32 | src[i]->hash);
  return h;
}

static void table_enter(UOpStore *st, const UOp *u) {
  size_t j = u->hash & (st->cap - 1);
  while (st->table[j].next_id)
    j = (j + 1) & (st->cap - 1);
  st->table[j] = (Slot){u->hash, u->id + 1};
}

/* Also reserves room in `all` for as many nodes as the table can hold. */
static bool table_grow(UOpStore *st) {
  size_t cap = st->cap ? st->cap * (st->cap < 16384 ? 4 : 2) : 256;
  if (!vec_reserve(st->mem, &st->all, cap / 2)) return false;
  if (cap > st->room) {
    Slot *t = mem_alloc(st->mem, cap * sizeof *t);
    if (!t) return false;
    mem_free(st->mem, st->table);
    st->table = t;
    st->room = cap;
  } else if (st->cap)
    memset(st->table, 0, st->cap * sizeof *st->table);
  st->cap = cap;
  for (size_t id = 0; id < st->all.len; id++)
    if (st->all.at[id]) table_enter(st, st->all.at[id]);
  return true;
}

static UOp *node_alloc(UOpStore *st, int nsrc) {
  size_t size = sizeof(UOp) + (size_t)nsrc * sizeof(UOp *);
  if (nsrc > SMALL_NSRC) {
    UOp *u = mem_alloc(st->mem, size);
    if (u && !vec_push(st->mem, &st->big, u)) {
      mem_free(st->mem, u);
      return NULL;
    }
    return u;
  }
  UOp *u = st->free_list[nsrc];
  if (u)
    memcpy(&st->free_list[nsrc], &u->arg, sizeof(UOp *));
  else if (!(u = arena_take(&st->arena, size)))
    return NULL;
  memset(u, 0, sizeof *u);
  return u;
}

static void node_release(UOpStore *st, UOp *u, int nsrc) {
  if (nsrc > SMALL_NSRC) return; /* it stays in `big` until store_sweep or store_free frees it */
  memcpy(&u->arg, &st->free_list[nsrc], sizeof(UOp *));
  st->free_list[nsrc] = u;
}

/* A loop instead of memcmp, because most nodes have only one or two sources. */
static bool same_sources(const UOp *u, UOp *const *src) {
  for (int i = 0; i < u->nsrc; i++)
    if (u->src[i] != src[i]) return false;
  return true;
}

/* The part of arg that ops of this form use. `(Arg){.i = n}` sets only the named member. The bytes behind it
 * may be anything, and would make two nodes of one. */
static Arg arg_of(ArgForm form, Arg arg) {
  switch (form) {
  case ARG_NONE: return ARG0;
  case ARG_VALUE:
  case ARG_INTS:
  case ARG_NUMBER:
  case ARG_GATED:
  case ARG_BOUND:
  case ARG_TIME:
  case ARG_MATRIX: return (Arg){.raw = {arg.raw.a, 0}};
  default: return arg;
  }
}

/* Finds the node, or makes and enters it. The table is at most half full, so a search is short. */
UOp *uop_new(UOpStore *st, Ops op, DType dtype, int lanes, int nsrc, UOp *const *src, Arg arg) {
  for (int i = 0; i < nsrc; i++)
    if (!src[i]) return NULL;
  ArgForm form = op_arg(op);
  if (form == ARG_INTS && !arg.ints) return NULL;
  if (form == ARG_AXES && !arg.reduce.axes) return NULL;
  if (nsrc > UINT16_MAX) return NULL;
  arg = arg_of(form, arg);
  uint64_t full = content_hash(op, dtype, lanes, nsrc, src, arg);
  uint32_t h = (uint32_t)full;
  if ((st->len + 1) * 2 > st->cap && !table_grow(st)) return no_room(st);
  size_t j = h & (st->cap - 1);
  for (; st->table[j].next_id; j = (j + 1) & (st->cap - 1)) {
    if (st->table[j].hash != h) continue;
    UOp *u = st->all.at[st->table[j].next_id - 1];
    if (u->op == op && u->dtype == dtype && u->lanes == lanes && u->nsrc == nsrc &&
        u->arg.raw.a == arg.raw.a && u->arg.raw.b == arg.raw.b && same_sources(u, src))
      return u;
  }
  UOp *u = vec_reserve(st->mem, &st->all, st->all.len + 1) ? node_alloc(st, nsrc) : NULL;
  if (!u) return no_room(st);
  u->op = (uint8_t)op;
  u->dtype = (uint8_t)dtype;
  u->lanes = (uint8_t)lanes;
  u->nsrc = (uint16_t)nsrc;
  u->hash = h;
  u->hash_high = (uint16_t)(full >> 32);
  u->arg = arg;
  for (int i = 0; i < nsrc; i++)
    u->src[i] = src[i];
  if (!facts_set(st, u)) {
    node_release(st, u, nsrc);
    return NULL;
  }
  u->id = st->free_ids.len ? st->free_ids.at[--st->free_ids.len] : (uint32_t)st->all.len++;
  st->all.at[u->id] = u;
  st->table[j] = (Slot){h, u->id + 1}; /* only now, so that a failure above leaves the table unchanged */
  st->len++, st->created++;
  if (st->env) st->env->created++;
  return u;
}

/* Drops unreachable nodes. The table is filled anew, because removing single entries would end the searches
 * for other entries too early. */
bool store_sweep(UOpStore *st, UOp *const *roots, size_t nroots) {
  UOpVec live = {0};
  if (!uop_toposort(st, st->mem, roots, nroots, &live)) {
    vec_free(st->mem, &live);
    return false;
  }
  uint8_t *keep = mem_alloc(st->mem, st->all.len);
  bool ok = keep && vec_reserve(st->mem, &st->free_ids, st->all.len);
  if (ok) {
    for (size_t i = 0; i < live.len; i++)
      keep[live.at[i]->id] = 1;
    if (st->cap) memset(st->table, 0, st->cap * sizeof *st->table);
    memset(st->recent_const, 0, sizeof st->recent_const);
    size_t nbig = 0;
    for (size_t i = 0; i < st->big.len; i++)
      if (keep[st->big.at[i]->id])
        st->big.at[nbig++] = st->big.at[i];
      else {
        st->all.at[st->big.at[i]->id] = NULL;
        st->free_ids.at[st->free_ids.len++] = st->big.at[i]->id;
        st->len--;
        mem_free(st->mem, st->big.at[i]);
      }
    st->big.len = nbig;
    for (size_t id = 0; id < st->all.len; id++) {
      UOp *u = st->all.at[id];
      if (!u) continue;
      if (!keep[id]) {
        st->all.at[id] = NULL;
        st->free_ids.at[st->free_ids.len++] = (uint32_t)id;
        st->len--;
        node_release(st, u, u->nsrc);
        continue;
      }
      table_enter(st, u);
    }
  }
  mem_free(st->mem, keep);
  vec_free(st->mem, &live);
  return ok;
}

/* ---- builders */
UOp *uop_const(UOpStore *st, DType dtype, Scalar v) {
  return uop_new(st, OPS_CONST, dtype, 1, 0, NULL, (Arg){.raw = {scalar_round(dtype, v).i, 0}});
}

UOp *uop_const_int(UOpStore *st, DType dtype, int64_t v) {
  return uop_const(st, dtype, dtype_is_float(dtype) ? (Scalar){.f = (double)v} : (Scalar){.i = v});
}

UOp *uop_index_const(UOpStore *st, int64_t v) {
  UOp **at = &st->recent_const[(uint64_t)v % TG_COUNT(st->recent_const)];
  if (!*at || (*at)->arg.v.i != v) *at = uop_const(st, DT_INDEX, (Scalar){.i = v});
  return *at;
}

Arg uop_arg_in(UOpStore *st, const UOp *u) {
  Arg arg = u->arg;
  const Ints *list = uop_list(u), *own = list ? ints_get(st, list->n, list->v) : NULL;
  if (op_has_axes((Ops)u->op))
    arg.reduce.axes = own;
  else if (list)
    arg.ints = own;
  return arg;
}

UOp *uop_alu1(UOpStore *st, Ops op, UOp *a) {
  return a ? uop_new(st, op, (DType)a->dtype, a->lanes, 1, &a, ARG0) : NULL;
}

UOp *uop_alu2(UOpStore *st, Ops op, UOp *a, UOp *b) {
  if (!a || !b) return NULL;
  return uop_new(st, op, op_flags(op) & OPF_CMP ? DT_BOOL : (DType)a->dtype, a->lanes, 2, (UOp *[]){a, b},
                 ARG0);
}

UOp *uop_where(UOpStore *st, UOp *c, UOp *a, UOp *b) {
  if (!c || !a || !b) return NULL;
  return uop_new(st, OPS_WHERE, (DType)a->dtype, a->lanes, 3, (UOp *[]){c, a, b}, ARG0);
}

UOp *uop_cast(UOpStore *st, UOp *a, DType to) {
  return !a || a->dtype == to ? a : uop_new(st, OPS_CAST, to, a->lanes, 1, &a, ARG0);
}

UOp *uop_range(UOpStore *st, int64_t extent, int64_t id, AxisType type) {
  return uop_range_of(st, uop_index_const(st, extent), id, type);
}

UOp *uop_range_of(UOpStore *st, UOp *extent, int64_t id, AxisType type) {
  return UNEW(st, OPS_RANGE, DT_INDEX, 1, ((Arg){.range = {id, type}}), extent);
}

UOp *uop_with_src(UOpStore *st, const UOp *u, UOp *const *src) {
  /* only the lists of these ops are interned again in another store */
  Arg arg = op_is_alu((Ops)u->op) ? uop_arg_in(st, u) : u->arg;
  return uop_new(st, (Ops)u->op, (DType)u->dtype, u->lanes, u->nsrc, src, arg);
}

/* ---- walking */
UOpMap *uop_map_begin(UOpStore *keys, UOpStore *values) {
  UOpMap *m = keys->free_maps;
  if (m)
    keys->free_maps = m->next;
  else if (!(m = mem_alloc(keys->mem, sizeof *m)))
    return NULL;
  m->next = NULL;
  m->values = values;
  m->stack.len = 0;
  if (++m->epoch == 0) {
    memset(m->at, 0, m->cap * sizeof *m->at);
    m->epoch = 1;
  }
  return m;
}

void uop_map_end(UOpStore *keys, UOpMap *m) {
  if (m) {
    m->next = keys->free_maps;
    keys->free_maps = m;
  }
}

UOp *uop_map_get(const UOpMap *m, const UOp *u) { return map_node(m, u); }

bool uop_map_put(UOpStore *keys, UOpMap *m, const UOp *u, const UOp *v) {
  return v && map_set(keys, m, u, v->id);
}

bool uop_map_put_number(UOpStore *keys, UOpMap *m, const UOp *u, uint32_t n) {
  return map_set(keys, m, u, n);
}

uint32_t uop_map_number(const UOpMap *m, const UOp *u) {
  uint64_t e = u->id < m->cap ? m->at[u->id] : 0;
  return e >> 32 == m->epoch ? (uint32_t)e : UINT32_MAX;
}

bool uop_toposort(UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots, UOpVec *out) {
  UOpMap *seen = uop_map_begin(st, st);
  bool ok = seen != NULL;
  if (ok) seen->order.len = 0;
  for (size_t r = 0; ok && r < nroots; r++) {
    if (!roots[r] || map_node(seen, roots[r])) continue;
    ok = map_set(st, seen, roots[r], roots[r]->id) &&
         vec_push(st->mem, &seen->stack, ((WalkFrame){roots[r], NULL, 0}));
    while (ok && seen->stack.len) {
      WalkFrame *f = &seen->stack.at[seen->stack.len - 1];
      if (f->i < f->u->nsrc) {
        UOp *s = f->u->src[f->i++];
        if (!map_node(seen, s))
          ok = map_set(st, seen, s, s->id) && vec_push(st->mem, &seen->stack, ((WalkFrame){s, NULL, 0}));
      } else {
        ok = vec_push(st->mem, &seen->order, f->u);
        seen->stack.len--;
      }
    }
  }
  size_t n = ok ? seen->order.len : 0;
  ok = ok && vec_reserve(mem, out, out->len + n);
  if (ok && n) {
    memcpy(out->at + out->len, seen->order.at, n * sizeof *out->at);
    out->len += n;
  }
  if (st->env && st->env->in_rule) st->env->nested += n;
  uop_map_end(st, seen);
  return ok;
}

bool uop_contains(UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots, const UOp *what) {
  UOpVec order = {0};
  bool found = !uop_toposort(st, mem, roots, nroots, &order);
  for (size_t i = 0; !found && i < order.len; i++)
    found = order.at[i] == what;
  vec_free(mem, &order);
  return found;
}
