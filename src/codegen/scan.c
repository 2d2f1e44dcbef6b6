/* scan.c: running sums computed by the threads of a block. In: an ORDERED loop that steps registers and
 * writes their values so far, in blocks of iterations that are distributed to threads (GROUP). Out:
 * statements in which each thread has the running sum of its own iteration.
 *
 * Each thread keeps two values: the sum of all iterations of its group up to its own, and the sum of the
 * whole group. Groups of one thread grow to groups of two, four, and so on. Thread i gets the sum of the
 * group of thread i xor h by a shuffle. If bit h of i is set, that group precedes its own, so thread i adds
 * the sum to its running sum. The sums of the warps are written to shared memory, and each thread adds the
 * sums of the warps before its own to the former value of the register. */
#include "codegen/gpu.h"

enum { MOST_WARPS = 32 };

/* ---- which loops */
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

/* ---- the statements */
typedef struct Scan {
  Grid *g;
  Ops op;
  UOp *sum;   /* the register of the loop: the sum of all blocks so far */
  UOp *mine;  /* this thread's running sum */
  UOp *whole; /* the sum of this thread's group */
  UOpVec *out;
} Scan;

static UOp *register_new(Kernel *k, const UOp *like) {
  UOp *reg = reg_new(k, (DType)like->dtype, 0, NULL);
  return reg ? reg_at(k, reg, 0, NULL) : NULL;
}

static bool put(const Scan *s, UOp *to, UOp *value) {
  Kernel *k = s->g->k;
  UOp *u = to && value ? write_new(k, to, value, 0, NULL) : NULL;
  return u && vec_push(k->mem, s->out, u);
}

static UOp *both(const Scan *s, UOp *a, UOp *b) { return a && b ? uop_alu2(s->g->k->st, s->op, a, b) : NULL; }

static UOp *chosen(Kernel *k, UOp *gate, UOp *yes, UOp *no) {
  return gate && yes && no ? UNEW(k->st, OPS_WHERE, (DType)no->dtype, 1, ARG0, gate, yes, no) : NULL;
}

static bool scan_warp(const Scan *s, UOp *thread) {
  Kernel *k = s->g->k;
  UOp *other = register_new(k, s->sum);
  for (int64_t h = 1; h < WARP; h *= 2) {
    UOp *from = uop_new(k->st, OPS_SHUFFLE, (DType)s->sum->dtype, 1, 1, (UOp *[]){s->whole}, (Arg){.i = h});
    UOp *bit = ix_top(k, OPS_FLOORMOD, ix_top(k, OPS_FLOORDIV, thread, num(k, h)), num(k, 2));
    UOp *after = ix_top(k, OPS_CMPNE, bit, num(k, 0));
    if (!put(s, other, from) || !put(s, s->mine, chosen(k, after, both(s, other, s->mine), s->mine)))
      return false;
    if (!put(s, s->whole, both(s, s->whole, other))) return false;
  }
  return true;
}

static bool scan_block(const Scan *s, UOp *thread, UOp *flat, int64_t warps, int64_t all) {
  Kernel *k = s->g->k;
  DType dt = (DType)s->sum->dtype;
  UOp *before = register_new(k, s->sum), *warp = ix_top(k, OPS_FLOORDIV, thread, num(k, WARP));
  if (!put(s, before, s->sum)) return false;
  if (warps == 1)
    return put(s, s->mine, both(s, before, s->mine)) && put(s, s->sum, both(s, before, s->whole));
  UOp *mem = uop_new(k->st, OPS_DEFINE_LOCAL, dt, 1, 0, NULL, (Arg){.param = {all, k->next_local++}});
  UOp *first = ix_top(k, OPS_CMPLT, ix_top(k, OPS_FLOORMOD, thread, num(k, WARP)), num(k, 1));
  UOp *own = ix_top(k, OPS_FLOORDIV, flat, num(k, WARP));
  if (!mem || !first || !own) return false;
  UOp *to = UNEW(k->st, OPS_INDEX, dt, 1, ((Arg){.i = 1}), mem, own, first);
  if (!put(s, to, s->whole)) return false;
  UOp *row = ix_top(k, OPS_FLOORDIV, ix_top(k, OPS_SUB, flat, thread), num(k, WARP));
  for (int64_t w = 0; w < warps; w++) {
    UOp *at = ix_top(k, OPS_ADD, row, num(k, w)), *later = ix_top(k, OPS_CMPLT, warp, num(k, w + 1));
    UOp *value = at ? UNEW(k->st, OPS_INDEX, dt, 1, ARG0, mem, at) : NULL;
    if (!put(s, before, chosen(k, later, before, both(s, before, value)))) return false;
    if (!put(s, s->sum, both(s, s->sum, value))) return false;
  }
  return put(s, s->mine, both(s, before, s->mine));
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
      Scan s = {g,  (Ops)u->arg.reduce.op, u->src[0], register_new(k, u->src[0]), register_new(k, u->src[0]),
                out};
      ok = put(&s, s.mine, u->src[1]) && put(&s, s.whole, s.mine) && scan_warp(&s, thread);
      ok = ok && scan_block(&s, thread, flat, threads / WARP, all / WARP);
      ok = ok && vec_push(k->mem, &from, s.sum) && vec_push(k->mem, &to, s.mine);
    } else {
      u = kernel_with(k, u, (int)from.len, from.at, to.at);
      ok = u && vec_push(k->mem, out, u);
    }
  }
  vec_free(k->mem, &from), vec_free(k->mem, &to);
  return ok;
}
