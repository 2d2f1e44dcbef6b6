/* join.c: values of threads become one. In: a register in which each thread along the inner axis of a block has
 * the sum of its part; or an ORDERED loop that steps registers and writes their values so far, in blocks of
 * iterations that are distributed to threads (GROUP). Out: statements after which the register holds the whole
 * sum in all of these threads; or statements in which each thread has the running sum of its own iteration.
 *
 * Threads of a warp exchange values: thread i combines its value with that of thread i xor h, for h = 16,
 * 8 .. 1, so that all threads hold the same sum of the same tree. If the axis has several warps, the first
 * thread of each then writes its sum to shared memory, and all threads combine these sums in the same way:
 * this takes one barrier, and none after it. A block that is not a whole number of warps, or whose axis is
 * not a power of two, uses shared memory and halves instead: h threads add what the next h threads hold,
 * then h/2.
 *
 * For running sums each thread keeps two values: the sum of all iterations of its group up to its own, and the
 * sum of the whole group. Groups of one thread grow to groups of two, four, and so on. If bit h of i is set, the
 * group of thread i xor h precedes that of thread i, so thread i adds its sum to its running sum. Each thread
 * then adds the sums of the warps before its own to the former value of the register. */
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
  UOp *s = write_new(k, to, value, j->n, (UOp *const *)j->list);
  return s && vec_push(k->mem, j->out, s);
}

/* Shared memory with n values for each sum of the register. */
static UOp *memory_new(const Join *j, int64_t n) { return local_memory(j->g->k, j->x->dtype, n * j->apart); }

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

static UOp *both(const Join *j, UOp *a, UOp *b) { return uop_alu2(j->g->k->st, j->op, a, b); }

/* The value of thread i xor h. */
static UOp *of_thread(const Join *j, int64_t h) {
  return uop_new(j->g->k->st, OPS_SHUFFLE, (DType)j->x->dtype, 1, 1, (UOp **)&j->x, (Arg){.i = h});
}

/* Adds the shuffles that reduce groups of n threads. */
static bool shuffled(const Join *j, int64_t n) {
  for (int64_t h = n / 2; h >= 1; h /= 2)
    if (!put(j, j->x, both(j, j->x, of_thread(j, h)))) return false;
  return true;
}

/* Lets the first thread of each warp write its value to shared memory. *row: where the values of the warps along
 * the inner axis begin there. */
static UOp *warps_write(const Join *j, UOp *thread, int64_t all, UOp **row) {
  Kernel *k = j->g->k;
  UOp *inner = j->g->thread[j->g->inner], *mem = memory_new(j, all / WARP);
  UOp *first = ix_top(k, OPS_CMPLT, ix_top(k, OPS_FLOORMOD, inner, num(k, WARP)), num(k, 1));
  UOp *warp = of_list(j, ix_top(k, OPS_FLOORDIV, thread, num(k, WARP)), all / WARP);
  *row = ix_top(k, OPS_FLOORDIV, ix_top(k, OPS_SUB, thread, inner), num(k, WARP));
  return first && put(j, place(k, mem, warp, first), j->x) ? mem : NULL;
}

static bool join_warps(const Join *j, UOp *thread, int64_t all) {
  Kernel *k = j->g->k;
  UOp *inner = j->g->thread[j->g->inner], *row;
  int64_t threads = j->g->extent[j->g->inner], warps = threads / WARP;
  if (!shuffled(j, TG_MIN(threads, WARP))) return false;
  if (warps <= 1) return true;
  UOp *mem = warps_write(j, thread, all, &row);
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
    if (!near || !far || !put(j, near, both(j, near, far))) return false;
  }
  UOp *first = ix_top(k, OPS_SUB, at, ix_top(k, OPS_MUL, inner, num(k, step)));
  return put(j, j->x, place(k, mem, first, NULL));
}

bool threads_join(Grid *g, const UOp *acc, UOpVec *out) {
  Kernel *k = g->k;
  Join j = {.g = g, .x = acc->src[0], .op = (Ops)acc->arg.reduce.op, .apart = 1, .out = out};
  int64_t all, step = 1;
  j.at_list = num(k, 0);
  j.n = acc_moves(k, acc, j.list);
  for (int i = 0; i < j.n; i++) {
    UOp *r = j.list[i];
    j.at_list = ix_top(k, OPS_ADD, ix_top(k, OPS_MUL, j.at_list, r->src[0]), r);
    j.apart *= r->src[0]->arg.v.i;
  }
  UOp *thread = grid_thread(g, &all, &step);
  if (!thread || !j.at_list) return false;
  return has_warps(&j, all, step) ? join_warps(&j, thread, all) : join_halves(&j, thread, all, step);
}

/* ---- running sums: which loops */
static bool steps_register(const UOp *loop, const UOp *reg) {
  for (int i = 1; i < loop->nsrc; i++)
    if (loop->src[i]->op == OPS_ACC && stored_in(loop->src[i]) == reg) return true;
  return false;
}

static bool writes_param(const UOp *loop, const UOp *memory) {
  for (int i = 1; i < loop->nsrc; i++)
    if (loop->src[i]->op == OPS_STORE && stored_in(loop->src[i])->arg.param.slot == memory->arg.param.slot)
      return true;
  return false;
}

/* Whether earlier iterations of the loop leave an expression unchanged. */
static bool is_fresh(Kernel *k, const UOp *loop, UOp *e) {
  UOpVec order = {0};
  bool fresh = kernel_nodes(k, e, &order);
  for (size_t i = 0; fresh && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (u->op == OPS_DEFINE_REG) fresh = !steps_register(loop, u);
    if (u->op == OPS_PARAM) fresh = !writes_param(loop, u);
    if (u->op == OPS_DEFINE_LOCAL) fresh = false;
  }
  vec_free(k->mem, &order);
  return fresh;
}

/* Whether a loop steps each register once, by values that other iterations do not change, before it writes
 * anything. */
bool is_scan(Kernel *k, const UOp *loop) {
  bool writes = false, scans = false;
  for (int i = 1; i < loop->nsrc; i++) {
    const UOp *u = loop->src[i];
    bool step = u->op == OPS_ACC && !writes && u->nsrc == 2 && u->src[0]->nsrc == 1;
    bool write = u->op == OPS_STORE && u->nsrc == 2 && stored_in(u)->op == OPS_PARAM;
    if (!step && !write) return false;
    for (int j = 1; step && j < i; j++)
      if (stored_in(loop->src[j]) == stored_in(u)) return false;
    if (step && !is_fresh(k, loop, u->src[1])) return false;
    writes |= write;
    scans |= step;
  }
  return writes && scans;
}

/* ---- running sums: the statements. x of the Join is the sum of this thread's group. */
typedef struct Scan {
  Join j;
  UOp *sum;  /* the register of the loop: the sum of all blocks so far */
  UOp *mine; /* this thread's running sum */
} Scan;

static UOp *register_new(Kernel *k, const UOp *like) {
  return reg_at_too(k, reg_like(k, like->src[0], NULL), like, NULL);
}

static bool scan_warp(const Scan *s, UOp *thread) {
  const Join *j = &s->j;
  Kernel *k = j->g->k;
  UOp *other = register_new(k, s->sum);
  for (int64_t h = 1; h < WARP; h *= 2) {
    UOp *bit = ix_top(k, OPS_FLOORMOD, ix_top(k, OPS_FLOORDIV, thread, num(k, h)), num(k, 2));
    UOp *after = ix_top(k, OPS_CMPNE, bit, num(k, 0));
    if (!put(j, other, of_thread(j, h)) ||
        !put(j, s->mine, uop_where(k->st, after, both(j, other, s->mine), s->mine)) ||
        !put(j, j->x, both(j, j->x, other)))
      return false;
  }
  return true;
}

static bool scan_block(const Scan *s, UOp *thread, UOp *flat, int64_t warps, int64_t all) {
  const Join *j = &s->j;
  Kernel *k = j->g->k;
  UOp *before = register_new(k, s->sum), *warp = ix_top(k, OPS_FLOORDIV, thread, num(k, WARP)), *row;
  if (!put(j, before, s->sum)) return false;
  if (warps == 1) return put(j, s->mine, both(j, before, s->mine)) && put(j, s->sum, both(j, before, j->x));
  UOp *mem = warps_write(j, flat, all, &row);
  for (int64_t w = 0; w < warps; w++) {
    UOp *value = place(k, mem, ix_top(k, OPS_ADD, row, num(k, w)), NULL);
    UOp *later = ix_top(k, OPS_CMPLT, warp, num(k, w + 1));
    if (!put(j, before, uop_where(k->st, later, before, both(j, before, value))) ||
        !put(j, s->sum, both(j, s->sum, value)))
      return false;
  }
  return put(j, s->mine, both(j, before, s->mine));
}

bool threads_scan(Grid *g, const UOp *loop, UOpVec *out) {
  Kernel *k = g->k;
  UOpVec from = {0}, to = {0};
  int64_t all, step = 1, threads = g->extent[g->inner];
  UOp *flat = grid_thread(g, &all, &step), *thread = g->thread[g->inner];
  bool ok = flat != NULL;
  for (int i = 1; ok && i < loop->nsrc; i++) {
    UOp *u = loop->src[i];
    if (u->op == OPS_ACC) {
      Scan s = {.sum = u->src[0], .mine = register_new(k, u->src[0])};
      s.j = (Join){
          g, register_new(k, u->src[0]), (Ops)u->arg.reduce.op, .at_list = num(k, 0), .apart = 1, .out = out};
      ok = put(&s.j, s.mine, u->src[1]) && put(&s.j, s.j.x, s.mine) && scan_warp(&s, thread);
      ok = ok && scan_block(&s, thread, flat, threads / WARP, all);
      ok = ok && vec_push(k->mem, &from, s.sum) && vec_push(k->mem, &to, s.mine);
    } else {
      u = kernel_with(k, u, (int)from.len, from.at, to.at);
      ok = u && vec_push(k->mem, out, u);
    }
  }
  vec_free(k->mem, &from), vec_free(k->mem, &to);
  return ok;
}
