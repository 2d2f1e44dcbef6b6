/* sums.c: long sums of floats -> sums of sums of blocks. In: a kernel whose loops are shaped. Out: the same
 * kernel; an ADD reduction that adds more than two blocks of values to one accumulator in a row has its loops
 * in two levels: a block is added up from zero, then added to the sum. A level is cut again while it is long.
 *
 * A row of n additions to one accumulator is wrong by at most n * u * sum |x|, u = 2^-24 for f32; where the
 * sum is large and what is added is small, every addition rounds the same way, and it is that wrong: the mean
 * of 1e8 values of 255 came out as 255.96, of 2^24 values of 0.1 as 0.09975. With blocks of B the bound is 3
 * * B * u * sum |x| up to 2 * B^3 values an accumulator, and B * u * sum |x| more for each further level: B =
 * 128 gives under 3e-5 of sum |x| for any tensor. A sum of products has blocks of 512: its accumulators fill
 * the registers, and each block costs a few moves of them; its products round in all directions. Blocks are
 * powers of two, so that sums of equal values mostly stay exact.
 *
 * The cut is made from the loops' lengths alone, so the bits are the same for any number of threads. Loops
 * are cut before lanes are made; each accumulator, of a lane or of a thread of a block, then has its levels.
 * Every nest over a loop that is cut has it cut: they go on sharing it. What also fills a row is not cut:
 * rows are short. */
#include "codegen/codegen.h"

enum { BLOCK = 128, BLOCK_OF_PRODUCTS = 512 };

static bool is_sum(const UOp *u) {
  return u->op == OPS_REDUCE && u->arg.reduce.op == OPS_ADD && dtype_is_float((DType)u->dtype) &&
         u->dtype != DT_F64;
}

static double block_of(const UOp *sum) { return sum->src[0]->op == OPS_MUL ? BLOCK_OF_PRODUCTS : BLOCK; }

static bool in_a_row(const UOp *r) { /* its turns go to one accumulator, one after another */
  AxisType t = (AxisType)r->arg.range.type;
  return t == AXIS_REDUCE || t == AXIS_LOOP || t == AXIS_UNROLL;
}

static double turns(const UOp *r) { return (double)TG_MAX(r->src[0]->vmax, 1); }

static int first_loop(const UOp *u) { /* of a REDUCE or STORE: values come before loops */
  int i = u->op == OPS_STORE ? 2 : 1;
  while (i < u->nsrc && u->src[i]->op != OPS_RANGE)
    i++;
  return i;
}

/* The loops of a sum before src[end], innermost first, until they are a block: *at is where it begins, *size
 * the values in it. False: what is left is no long row. */
static bool next_block(const UOp *u, int end, int *at, double *size) {
  int first = first_loop(u);
  double all = *size;
  for (int i = first; i < end; i++)
    if (in_a_row(u->src[i])) all *= turns(u->src[i]);
  if (all <= 2 * block_of(u)) return false;
  *at = end;
  for (int i = end; i-- > first;) {
    if (!in_a_row(u->src[i])) continue;
    if (*size * turns(u->src[i]) > block_of(u)) break;
    *size *= turns(u->src[i]), *at = i;
  }
  return true;
}

/* The innermost loop that stands in a row before src[at], or NULL. */
static UOp *loop_before(const UOp *u, int at) {
  for (int i = at; i-- > first_loop(u);)
    if (in_a_row(u->src[i])) return u->src[i];
  return NULL;
}

static uint64_t bit_of(const UOp *r) { return UINT64_C(1) << r->arg.range.id; }

static uint64_t stored_over(const UOpVec *order) { /* loops of stores, by id */
  uint64_t loops = 0;
  for (size_t i = 0; i < order->len; i++)
    for (int s = 2; order->at[i]->op == OPS_STORE && s < order->at[i]->nsrc; s++)
      if (order->at[i]->src[s]->op == OPS_RANGE) loops |= bit_of(order->at[i]->src[s]);
  return loops;
}

/* r in blocks of n; the last is what is left. */
static UOp *in_blocks(Kernel *k, UOp *r, int64_t n) {
  UOpStore *st = k->st;
  UOp *len = uop_index_const(st, n), *more = uop_alu2(st, OPS_ADD, r->src[0], uop_index_const(st, n - 1));
  UOp *blocks = more ? uop_simplify(st, k->mem, uop_alu2(st, OPS_FLOORDIV, more, len)) : NULL;
  UOp *a = kernel_range(k, blocks, (AxisType)r->arg.range.type, ROOT_NONE);
  UOp *from = a ? uop_alu2(st, OPS_MUL, a, len) : NULL, *turn = len;
  if (from && !(is_const(r->src[0]) && r->src[0]->arg.v.i % n == 0)) {
    UOp *done =
        uop_alu2(st, OPS_SUB, from,
                 r->src[0]); /* the lesser of n and what is left, as -max(-n, -left): bounds see through it */
    turn = done ? uop_alu2(st, OPS_MUL, uop_alu2(st, OPS_MAX, done, uop_index_const(st, -n)),
                           uop_index_const(st, -1))
                : NULL;
    turn = turn ? uop_simplify(st, k->mem, turn) : NULL;
  }
  UOp *b = turn ? kernel_range(k, turn, (AxisType)r->arg.range.type, ROOT_NONE) : NULL;
  return from && b ? uop_alu2(st, OPS_ADD, from, b) : NULL;
}

/* A loop that a long sum needs cut into blocks of *n, or NULL: one that is too long for a block beside what
 * stands inside it. */
static UOp *too_long(const UOp *u, uint64_t stored, int64_t *n) {
  int at = u->nsrc;
  for (double size = 1; next_block(u, at, &at, &size); size = 1) {
    UOp *r = loop_before(u, at);
    if (size >= block_of(u) / 4) continue;
    *n = (int64_t)(block_of(u) / size);
    *n = INT64_C(1) << (63 - __builtin_clzll((uint64_t)*n));
    return r && r->arg.range.type != AXIS_UNROLL && !r->src[0]->ranges && !(bit_of(r) & stored) ? r : NULL;
  }
  return NULL;
}

bool cut_sums(Kernel *k) {
  for (int cuts = 0; cuts < MAX_RANGES; cuts++) {
    UOpVec order = {0};
    UOp *loop = NULL;
    int64_t n = 0;
    bool ok = ranges_recycle(k) && uop_toposort(k->st, k->mem, &k->sink, 1, &order);
    uint64_t stored = ok ? stored_over(&order) : 0;
    for (size_t i = 0; ok && i < order.len && !loop; i++)
      if (is_sum(order.at[i])) loop = too_long(order.at[i], stored, &n);
    vec_free(k->mem, &order);
    if (!ok || !loop) return ok;
    UOp *e = in_blocks(k, loop, n);
    if (!e) break; /* no id is left: the sum stays as it is */
    UOp *sink = open_lists(k, uop_substitute(k->st, k->mem, k->sink, 1, &loop, &e));
    if (!sink || !(k->sink = uop_simplify(k->st, k->mem, sink))) return false;
  }
  return true;
}

/* ---- once every loop stands: a list in two, before each loop that begins a block */
static UOp *pm_two_levels(Rewrite *rw, UOp *u) {
  const uint64_t *begins = rw->ctx;
  if (u->op != OPS_REDUCE) return NULL;
  int first = first_loop(u), at = u->nsrc - 1;
  while (at > first && !(*begins & bit_of(u->src[at])))
    at--;
  if (at <= first) return NULL;
  UOp *src[2 * MAX_RANGES + 256];
  int n = 0, m = 1;
  if (u->nsrc > (int)TG_COUNT(src)) return NULL;
  for (int i = 0; i < first; i++)
    src[n++] = u->src[i];
  for (int i = at; i < u->nsrc; i++)
    src[n++] = u->src[i];
  src[0] = uop_new(rw->st, OPS_REDUCE, (DType)u->dtype, u->lanes, n, src, u->arg);
  for (int i = first; i < at; i++)
    src[m++] = u->src[i];
  return src[0] ? uop_new(rw->st, OPS_REDUCE, (DType)u->dtype, u->lanes, m, src, u->arg) : NULL;
}

bool block_sums(Kernel *k) {
  UOpVec order = {0};
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  uint64_t begins = 0;
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    double size = first_loop(u); /* values of unrolled turns */
    for (int at = u->nsrc, end = at;
         is_sum(u) && next_block(u, end, &at, &size) && at < end && loop_before(u, at); end = at, size = 1)
      begins |= bit_of(u->src[at]);
  }
  if (ok) begins &= ~stored_over(&order);
  vec_free(k->mem, &order);
  Rewrite rw = {.st = k->st, .mem = k->mem, .ctx = &begins};
  return ok && (!begins || (k->sink = graph_rewrite(&rw, pm_two_levels, k->sink)) != NULL);
}
