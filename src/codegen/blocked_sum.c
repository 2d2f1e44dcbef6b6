/* blocked_sum.c: TILE of a reduction. In: a nest with one reduction, whose loop is in the same body as the
 * stores of its outputs. Out: the reduction's blocks are around the loops of the outputs, and each block
 * adds its sum to an accumulator. The accumulator is the output itself if that is just the sum. Otherwise
 * it is local memory, and the last block computes the outputs from it. A block is summed from zero, so
 * that no sum gets longer than a block. */
#include "codegen/split.h"

typedef struct Blocked {
  UOp *nest, *loop,
      *sum; /* outermost loop of the outputs, loop of the reduction, INDEX that reads the register */
  Ops op;
  UOpVec stores;
  bool plain;    /* there is one output, and it is the sum */
  UOpVec around; /* ranges of the loops of the outputs, innermost first */
} Blocked;

static void blocked_free(Kernel *k, Blocked *b) {
  vec_free(k->mem, &b->stores), vec_free(k->mem, &b->around);
}

/* Finds the one INDEX by which the values of the stores read a register. */
static bool find_sum(Kernel *k, Blocked *b) {
  UOpVec order = {0};
  bool ok = true;
  for (size_t s = 0; ok && s < b->stores.len; s++) {
    const UOp *store = b->stores.at[s];
    ok = store->nsrc == 2 && !store->src[0]->arg.i;
    ok = ok && uop_toposort(k->st, k->mem, store->src, 2, &order);
  }
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (u->op != OPS_INDEX || memory_of(u)->op == OPS_PARAM) continue;
    ok = memory_of(u)->op == OPS_DEFINE_REG && (!b->sum || b->sum == u);
    b->sum = u;
  }
  vec_free(k->mem, &order);
  return ok && b->sum;
}

static bool find_blocked(Kernel *k, UOp *u, Blocked *b) {
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at), together = true;
  int here = -1, home = -1, starts = 0;
  *b = (Blocked){.loop = u};
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *s = at.at[i].u;
    if (s == u) here = (int)i;
    if (s->op == OPS_ACC) b->op = (Ops)s->arg.reduce.op;
    if (s->op != OPS_STORE) continue;
    starts += stored_in(s)->op == OPS_DEFINE_REG;
    if (stored_in(s)->op != OPS_PARAM) continue;
    together &= !b->stores.len || home == at.at[i].up;
    home = at.at[i].up;
    ok = vec_push(k->mem, &b->stores, s);
  }
  ok = ok && here >= 0 && home >= 0 && together && starts == 1 && find_sum(k, b);
  b->plain = ok && b->stores.len == 1 && b->stores.at[0]->src[1] == b->sum;
  int up = here;
  /* the loop of the reduction must be inside the loop whose body writes the outputs */
  while (ok && up >= 0 && up != home)
    up = at.at[up].up;
  ok = ok && up == home;
  /* Whether the output moves with a loop around it: then its load is not hoisted in front of all blocks. */
  bool moves = false;
  for (; ok && up >= 0; up = at.at[up].up) {
    UOp *loop = at.at[up].u;
    if (is_block(loop->src[0]) || (up != home && !alone(loop))) break;
    b->nest = loop;
    moves |= depends(k, b->stores.at[0]->src[0], loop->src[0]);
    ok = vec_push(k->mem, &b->around, loop->src[0]);
  }
  vec_free(k->mem, &at);
  return ok && b->nest && moves;
}

/* Returns the INDEX of local memory with one element for each iteration of the loops around. The
 * iterations that VEC will make lanes are contiguous. Returns NULL if out of memory or, with *room false,
 * if local memory has no room. */
static UOp *accumulator(Kernel *k, const Blocked *b, bool *room) {
  int64_t lane = -1, n = 1, most = k->opt->target->local_bytes / (int64_t)dtype_size((DType)b->sum->dtype);
  for (size_t i = 0; i < k->list.len; i++)
    if (k->list.at[i].op == OPT_VEC) lane = k->list.at[i].r;
  UOp *flat = num(k, 0);
  *room = true;
  for (int lanes = 1; lanes >= 0; lanes--)
    for (size_t i = 0; *room && i < b->around.len; i++) {
      UOp *r = b->around.at[i];
      if ((range_root(r) == lane) != lanes) continue;
      flat = simp(k, flat ? add(k, flat, uop_alu2(k->st, OPS_MUL, r, num(k, n))) : NULL);
      *room = !__builtin_mul_overflow(n, r->src[0]->vmax, &n) && n <= most;
    }
  if (!*room || !flat) return NULL;
  UOp *memory = local_memory(k, b->sum->dtype, n);
  return memory ? UNEW(k->st, OPS_INDEX, (DType)memory->dtype, 1, ARG0, memory, flat) : NULL;
}

/* The nest in which only the last block stores the outputs; every block then stores the sum so far in the
 * accumulator. */
static UOp *with_accumulator(Kernel *k, const Blocked *b, UOp *nest, UOp *block, UOp *acc, UOp *all) {
  UOp *last = uop_alu2(k->st, OPS_CMPLT, block, ix(k, OPS_SUB, block->src[0], num(k, 1)));
  UOp *trips = last ? uop_where(k->st, last, num(k, 0), num(k, 1)) : NULL;
  UOp *once = kernel_range(k, trips, AXIS_LOOP, NULL), *with[2] = {0};
  UOpVec stores = {0};
  bool ok = once && all;
  for (size_t i = 0; ok && i < b->stores.len; i++) {
    UOp *s = b->stores.at[i], *value = kernel_with(k, s->src[1], 1, &(UOp *){b->sum}, &all);
    s = value ? statement_with(k, s, value) : NULL;
    ok = s && vec_push(k->mem, &stores, s);
    if (i) nest = nest ? nest_replace(k, nest, b->stores.at[i], 0, NULL) : NULL;
  }
  if (ok) {
    with[0] = loop_new(k, once, (int)stores.len, stores.at);
    with[1] = write_new(k, acc, all, 0, NULL);
  }
  vec_free(k->mem, &stores);
  return with[0] && with[1] && nest ? nest_replace(k, nest, b->stores.at[0], 2, with) : NULL;
}

static bool tile_sum(Kernel *k, UOp *u, int64_t n, const Blocked *b, const char **why) {
  UOp *r = u->src[0], *blocks = blocks_in(k, r->src[0], n), *acc = b->stores.at[0]->src[0];
  bool room = true;
  if (n >= r->src[0]->vmax) return true;
  if (!b->plain && !(acc = accumulator(k, b, &room))) {
    if (!room) *why = "local memory has no room for its sums";
    return false;
  }
  blocks = ix(k, OPS_MAX, blocks, num(k, 1)); /* an empty sum is stored, too */
  UOp *block = range_of_blocks(k, blocks, AXIS_REDUCE, r);
  UOp *loop = loop_of_block(k, u, block, n, r);
  UOp *nest = loop ? nest_replace(k, b->nest, u, 1, &loop) : NULL;
  UOp *first = block ? uop_alu2(k->st, OPS_CMPLT, block, num(k, 1)) : NULL;
  UOp *all = first ? uop_where(k->st, first, b->sum, uop_alu2(k->st, b->op, acc, b->sum)) : NULL;
  if (b->plain) {
    UOp *store = all ? statement_with(k, b->stores.at[0], all) : NULL;
    nest = nest && store ? nest_replace(k, nest, b->stores.at[0], 1, &store) : NULL;
  } else
    nest = nest ? with_accumulator(k, b, nest, block, acc, all) : NULL;
  nest = nest ? loop_new(k, block, 1, &nest) : NULL;
  return nest && nest_edit(k, b->nest, UNEW(k->st, OPS_SINK, DT_VOID, 1, ARG0, nest));
}

bool opt_tile_sum(Kernel *k, UOp *loop, int64_t n, bool *is, const char **why) {
  Blocked b;
  *why = NULL;
  *is = find_blocked(k, loop, &b);
  bool done = *is && tile_sum(k, loop, n, &b, why);
  blocked_free(k, &b);
  return done;
}
