/* join.c: partial values of threads become one. In: a register in which each thread along the inner axis
 * of a block has the sum of its part. Out: statements after which the register holds the whole sum in all
 * of these threads.
 *
 * Threads of a warp exchange values: thread i combines its value with that of thread i xor h, for h = 16,
 * 8 .. 1, so that all threads hold the same sum of the same tree. If the axis has several warps, the first
 * thread of each then writes its sum to shared memory, and all threads combine these sums in the same way:
 * this takes one barrier, and none after it. A block that is not a whole number of warps, or whose axis is
 * not a power of two, uses shared memory and halves instead: h threads add what the next h threads hold,
 * then h/2. */
#include "codegen/gpu.h"

typedef struct Join {
  Grid *g;
  UOp *x; /* an INDEX of the register */
  Ops op;
  int n; /* the number of ranges for each of whose values the register has its own sum */
  UOp *list[MAX_LIST], *at_list;
  int64_t apart;
  UOpVec *out;
} Join;

UOp *grid_thread(Grid *g, int64_t *all, int64_t *step) {
  Kernel *k = g->k;
  UOp *at = num(k, 0);
  *all = 1;
  for (int d = g->nlocal - 1; d >= 0; d--) {
    if (d == g->inner) *step = *all;
    at = ix_top(k, OPS_ADD, at, ix_top(k, OPS_MUL, g->thread[d], num(k, *all)));
    *all *= g->extent[d];
  }
  return at;
}

static UOp *place(Kernel *k, UOp *mem, UOp *at, UOp *gate) {
  if (!mem || !at) return NULL;
  if (!gate) return UNEW(k->st, OPS_INDEX, (DType)mem->dtype, 1, ARG0, mem, at);
  return UNEW(k->st, OPS_INDEX, (DType)mem->dtype, 1, ((Arg){.i = 1}), mem, at, gate);
}

static bool put(const Join *j, UOp *to, UOp *value) {
  Kernel *k = j->g->k;
  UOp *s = to && value ? write_new(k, to, value, j->n, (UOp *const *)j->list) : NULL;
  return s && vec_push(k->mem, j->out, s);
}

/* Shared memory with n values for each sum of the register. */
static UOp *memory_new(const Join *j, int64_t n) {
  Kernel *k = j->g->k;
  return uop_new(k->st, OPS_DEFINE_LOCAL, (DType)j->x->dtype, 1, 0, NULL,
                 (Arg){.param = {n * j->apart, k->next_local++}});
}

static UOp *of_list(const Join *j, UOp *at, int64_t n) {
  Kernel *k = j->g->k;
  return ix_top(k, OPS_ADD, ix_top(k, OPS_MUL, j->at_list, num(k, n)), at);
}

/* ---- by shuffles */
static bool power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* Whether all warps are full and the threads of a sum are neighbours: then shuffles use full masks. */
static bool has_warps(const Join *j, int64_t all, int64_t step) {
  int64_t threads = j->g->extent[j->g->inner];
  return j->g->k->opt->target->warp == WARP && step == 1 && all % WARP == 0 && power_of_two(threads);
}

/* Adds the shuffles that reduce groups of n threads. */
static bool shuffled(const Join *j, int64_t n) {
  Kernel *k = j->g->k;
  for (int64_t h = n / 2; h >= 1; h /= 2) {
    UOp *other = uop_new(k->st, OPS_SHUFFLE, (DType)j->x->dtype, 1, 1, &j->x, (Arg){.i = h});
    if (!other || !put(j, j->x, uop_alu2(k->st, j->op, j->x, other))) return false;
  }
  return true;
}

static bool join_warps(const Join *j, UOp *thread, int64_t all) {
  Grid *g = j->g;
  Kernel *k = g->k;
  UOp *inner = g->thread[g->inner];
  int64_t threads = g->extent[g->inner], warps = threads / WARP;
  if (!shuffled(j, TG_MIN(threads, WARP))) return false;
  if (warps <= 1) return true;
  UOp *mem = memory_new(j, all / WARP);
  UOp *first = ix_top(k, OPS_CMPLT, ix_top(k, OPS_FLOORMOD, inner, num(k, WARP)), num(k, 1));
  UOp *warp = of_list(j, ix_top(k, OPS_FLOORDIV, thread, num(k, WARP)), all / WARP);
  if (!first || !put(j, place(k, mem, warp, first), j->x)) return false;
  UOp *row = ix_top(k, OPS_FLOORDIV, ix_top(k, OPS_SUB, thread, inner), num(k, WARP));
  UOp *from = ix_top(k, OPS_ADD, row, ix_top(k, OPS_FLOORMOD, inner, num(k, warps)));
  return put(j, j->x, place(k, mem, of_list(j, from, all / WARP), NULL)) && shuffled(j, warps);
}

/* ---- in shared memory */
static bool join_halves(const Join *j, UOp *thread, int64_t all, int64_t step) {
  Grid *g = j->g;
  Kernel *k = g->k;
  UOp *inner = g->thread[g->inner], *mem = memory_new(j, all), *at = of_list(j, thread, all);
  int64_t threads = g->extent[g->inner], half = 1;
  if (!put(j, place(k, mem, at, NULL), j->x)) return false;
  while (half * 2 < threads)
    half *= 2;
  for (int64_t h = half; threads > 1 && h >= 1; h /= 2) {
    UOp *gate = ix_top(k, OPS_CMPLT, inner, num(k, TG_MIN(h, threads - h)));
    UOp *near = gate ? place(k, mem, at, gate) : NULL;
    UOp *far = gate ? place(k, mem, ix_top(k, OPS_ADD, at, num(k, h * step)), gate) : NULL;
    if (!near || !far || !put(j, near, uop_alu2(k->st, j->op, near, far))) return false;
  }
  UOp *first = ix_top(k, OPS_SUB, at, ix_top(k, OPS_MUL, inner, num(k, step)));
  return put(j, j->x, place(k, mem, first, NULL));
}

bool threads_join(Grid *g, const UOp *acc, UOpVec *out) {
  Kernel *k = g->k;
  Join j = {.g = g, .x = acc->src[0], .op = (Ops)acc->arg.reduce.op, .apart = 1, .out = out};
  int64_t all, step = 1;
  j.at_list = num(k, 0);
  for (int i = 2; i < acc->nsrc; i++) {
    UOp *r = acc->src[i];
    if (!depends(k, j.x, r)) continue;
    j.list[j.n++] = r;
    j.at_list = ix_top(k, OPS_ADD, ix_top(k, OPS_MUL, j.at_list, r->src[0]), r);
    j.apart *= r->src[0]->arg.v.i;
  }
  UOp *thread = grid_thread(g, &all, &step);
  if (!thread || !j.at_list) return false;
  return has_warps(&j, all, step) ? join_warps(&j, thread, all) : join_halves(&j, thread, all, step);
}
