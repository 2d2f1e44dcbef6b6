/* pair_sums.c: sums of products of bytes. In: one such sum, of a tensor graph. Out: the same value. If the
 * processor multiplies bytes in pairs (DOT2X2), a sum of DOT4 is computed by it, provided that the bytes
 * of src0 are small.
 *
 *   sum(DOT4(w, x))   =>   DOT2(sum by ADD2(DOT2X2(w, x)), 0x00010001)
 *
 * `vpmaddubsw` computes twice as many products as `vpmaddwd`, but its sums have 16 bits. If a byte of w
 * has 4 bits, 8 such sums fit together: 8 * 2 * 15 * 128 < 2^15. Only then are both halves of a word added
 * up in 32 bits. A longer axis is split into two axes. */
#include "schedule/stage.h"
#include "uop/dims.h"
#include "uop/nodes.h"
#include <string.h>

enum { MOST_NODES = 64, BYTE = 0xff, ONES = 0x00010001 };

/* The node that u is made of by movement ops alone. */
static const UOp *unmoved(const UOp *u) {
  while (u->nsrc == 1 && ((op_flags((Ops)u->op) & OPF_MOV) || u->op == OPS_CONTIGUOUS))
    u = u->src[0];
  return u;
}

/* An upper bound for the bytes of the words of u. left: the number of nodes that may still be visited. */
static int64_t most_byte(const UOp *u, int *left) {
  u = unmoved(u);
  int64_t most = 0, a = BYTE, b = BYTE;
  if (--*left < 0) return BYTE;
  for (int i = 0; u->op == OPS_CONST && i < 32; i += 8)
    most = TG_MAX(most, u->arg.v.i >> i & BYTE);
  for (int i = 0; u->op == OPS_LOOKUP4 && i < u->arg.ints->n; i++)
    most = TG_MAX(most, u->arg.ints->v[i]);
  if (u->op == OPS_CONST || u->op == OPS_LOOKUP4) return most;
  if (u->op != OPS_AND && u->op != OPS_OR && u->op != OPS_SHL) return BYTE;
  a = most_byte(u->src[0], left);
  if (u->op != OPS_SHL) b = most_byte(u->src[1], left);
  if (u->op == OPS_AND) return TG_MIN(a, b);
  if (u->op == OPS_OR) { /* every bit that one of them may have */
    while (most < TG_MAX(a, b))
      most = 2 * most + 1;
    return most;
  }
  const UOp *by = unmoved(u->src[1]); /* a left shift by so little that no bit leaves its byte */
  return is_const(by) && by->arg.v.i >= 0 && by->arg.v.i < 8 ? TG_MIN(a << by->arg.v.i, BYTE) : BYTE;
}

/* How many terms along the last reduced axis can be added up in 16 bits. Below 2: the sum cannot be computed
 * in this way. */
static int64_t added_together(const UOp *sum) {
  const Ints *axes = sum->arg.reduce.axes;
  int64_t n = sum->src[0]->shape->v[axes->v[axes->n - 1]];
  int left = MOST_NODES;
  if (dim_symbolic(n) || sum->shape->n == MAX_RANK) return 1;
  int64_t each = TG_MIN(target_pairs(most_byte(sum->src[0]->src[0], &left)), n);
  while (each > 1 && n % each)
    each--;
  return each;
}

bool is_pair_sum(const Sched *s, const UOp *u) {
  return u->op == OPS_REDUCE_AXIS && u->arg.reduce.op == OPS_ADD && u->src[0]->op == OPS_DOT4 &&
         s->opt->target->dots == DOTS_PAIRS && added_together(u) > 1;
}

UOp *pair_sum(Sched *s, UOp *sum, UOp *given) {
  UOpStore *st = s->st;
  const UOp *dot = sum->src[0];
  const Ints *axes = sum->arg.reduce.axes;
  int axis = (int)axes->v[axes->n - 1];
  int64_t d[MAX_RANK], each = added_together(sum), parts = dot->shape->v[axis] / each;
  bool mask[MAX_RANK + 1] = {false};
  memcpy(d, dot->shape->v, (size_t)dot->shape->n * sizeof *d);
  d[axis] = parts;
  mask[axis + 1] = true;
  UOp *pairs = axis_in_parts(st, uop_alu2(st, OPS_DOT2X2, dot->src[0], dot->src[1]), axis, parts, each);
  pairs = u_reshape(st, was_given(s, u_reduce(st, OPS_ADD2, pairs, mask), given), dot->shape->n, d);
  UOp *both = pairs ? uop_alu2(st, OPS_DOT2, pairs, u_num(st, ONES, pairs)) : NULL;
  mask[axis + 1] = false;
  for (int i = 0; i < axes->n; i++)
    mask[axes->v[i]] = true;
  return was_given(s, u_reduce(st, OPS_ADD, both, mask), given);
}
