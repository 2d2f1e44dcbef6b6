/* movement_index.c: movement ops as index arithmetic. In: RESHAPE, PERMUTE, EXPAND, SHRINK, FLIP or PAD, and
 * where its result is read. Out: where its source is read. An axis that a RESHAPE leaves alone keeps its
 * index. Only axes that it splits or merges need divisions. */
#include "schedule/stage.h"
#include "uop/dims.h"

static UOp *ix(Sched *s, Ops op, UOp *a, UOp *b) {
  return uop_simplify_top(s->st, s->mem, uop_alu2(s->st, op, a, b));
}

UOp *index_by(Sched *s, Ops op, UOp *a, int64_t c) { return ix(s, op, a, dim_uop(s->st, s->mem, c)); }

/* Splits both shapes into groups of equal product. An axis alone in its group keeps its index, so only real
 * splits and merges make divisions and remainders. */
static void move_reshape(Sched *s, const Ints *in, const Ints *out, UOp *const *idx, UOp **to) {
  UOpStore *st = s->st;
  UOp *zero = uop_index_const(st, 0);
  int i = 0, j = 0;
  while (i < in->n || j < out->n) {
    int i0 = i, j0 = j;
    int64_t pi = i < in->n ? in->v[i++] : 1, pj = j < out->n ? out->v[j++] : 1;
    /* a group ends when the products are equal; extending the smaller one (by largest value) finds that
     * early */
    while (pi != pj) {
      if (dim_max(st, pi) < dim_max(st, pj) && i < in->n)
        pi = dim_mul(st, pi, in->v[i++]);
      else if (j < out->n)
        pj = dim_mul(st, pj, out->v[j++]);
      else if (i < in->n)
        pi = dim_mul(st, pi, in->v[i++]);
      else
        break;
    }
    if (i - i0 == 1 && j - j0 == 1) {
      to[i0] = idx[j0];
      continue;
    }
    UOp *flat = zero;
    int64_t stride = 1;
    for (int k = j - 1; k >= j0; k--) {
      if (out->v[k] != 1) flat = ix(s, OPS_ADD, flat, index_by(s, OPS_MUL, idx[k], stride));
      stride = dim_mul(st, stride, out->v[k]);
    }
    stride = 1;
    for (int k = i - 1; k >= i0; k--) {
      if (in->v[k] == 1) {
        to[k] = zero;
        continue;
      }
      UOp *e = stride == 1 ? flat : index_by(s, OPS_FLOORDIV, flat, stride);
      int64_t above = dim_mul(st, stride, in->v[k]);
      to[k] = above == pi ? e : index_by(s, OPS_FLOORMOD, e, in->v[k]);
      stride = above;
    }
  }
}

UOp *movement_index(Sched *s, UOp *n, UOp *tuple) {
  static const Ints scalar; /* a CONST has no shape of its own */
  const Ints *p = n->arg.ints, *in = n->src[0]->is_tensor ? n->src[0]->shape : &scalar;
  UOp *to[MAX_RANK + 1], *g = NULL, *zero = uop_index_const(s->st, 0);
  for (int i = 0; i < in->n; i++)
    to[i] = i < tuple->nsrc ? tuple->src[i] : zero;
  switch (n->op) {
  case OPS_RESHAPE: move_reshape(s, in, p, tuple->src, to); break;
  case OPS_PERMUTE:
    for (int i = 0; i < p->n; i++)
      to[p->v[i]] = tuple->src[i];
    break;
  case OPS_EXPAND:
    for (int i = 0; i < in->n; i++)
      if (in->v[i] == 1) to[i] = zero;
    break;
  case OPS_SHRINK:
    for (int i = 0; i < in->n; i++)
      to[i] = index_by(s, OPS_ADD, tuple->src[i], p->v[2 * i]);
    break;
  case OPS_FLIP:
    for (int i = 0; i < in->n; i++)
      if (p->v[i]) to[i] = ix(s, OPS_SUB, dim_uop(s->st, s->mem, dim_sub(s->st, in->v[i], 1)), tuple->src[i]);
    break;
  case OPS_PAD:
    g = uop_const_int(s->st, DT_BOOL, 1);
    for (int i = 0; i < in->n; i++) {
      UOp *e = index_by(s, OPS_ADD, tuple->src[i], dim_sub(s->st, 0, p->v[2 * i]));
      if (p->v[2 * i]) /* not (e < 0) */
        g = uop_alu2(s->st, OPS_AND, g,
                     uop_alu2(s->st, OPS_CMPNE, uop_alu2(s->st, OPS_CMPLT, e, zero),
                              uop_const_int(s->st, DT_BOOL, 1)));
      if (p->v[2 * i + 1])
        g = uop_alu2(s->st, OPS_AND, g, uop_alu2(s->st, OPS_CMPLT, e, dim_uop(s->st, s->mem, in->v[i])));
      to[i] = e;
    }
    g = uop_simplify(s->st, s->mem, g);
    break;
  default: break; /* DETACH and other ops that keep the indices */
  }
  to[in->n] = g;
  return uop_new(s->st, OPS_TUPLE, DT_VOID, 1, in->n + (n->op == OPS_PAD), to, ARG0);
}
