/* sum_order.c: in which order a list of opts adds up floats. In: a kernel's shape and a list. Out: whether the
 * list may be taken. The opts decide the order of a sum, and another order rounds to other bits. */
#include "plan/cost.h"

/* Whether a sum is computed in blocks that are added up. Then its order depends on the blocks, and so on the
 * loops around it. */
static bool cuts_sum(const KernelShape *c, const Taken *t) {
  bool cuts = false;
  for (int k = 0; k < t->n && k < MAX_TAKEN; k++)
    cuts |= t->opt[k].op == OPT_TILE && is_summed_over(c, t->opt[k].r);
  return cuts;
}

/* Whether floats are summed in another order than that of the loops, because a loop is written out inside a
 * later loop of the same sum. */
static bool reorders_sum(const KernelShape *c, const Taken *t) {
  int64_t unroll[MAX_LOOPS] = {0};
  uint32_t written_out = 0;
  bool reorders = false;
  for (int k = 0; k < t->n && k < MAX_TAKEN; k++) {
    const Opt *o = &t->opt[k];
    if (o->op == OPT_UNROLL || o->op == OPT_GROUP) unroll[o->r] = o->n;
    if (o->op == OPT_UNROLL && o->n > 1) written_out |= 1u << o->r;
  }
  for (int b = 0; b < c->nbody; b++)
    for (int r = 0; r < c->n && !c->body[b].integers; r++)
      for (int later = r + 1; later < c->n && (written_out >> r & 1); later++)
        reorders |= (c->body[b].own >> r & c->body[b].own >> later & 1) && unroll[later] < c->size[later];
  return reorders;
}

/* Whether a sum of floats that others are nested in is computed in lanes. Without others in it, a long sum
 * always has lanes (search). */
static bool parts_sum(const KernelShape *c, const Taken *t) {
  bool parts = false;
  for (int k = 0; k < t->n && k < MAX_TAKEN; k++)
    for (int b = 0; b < c->nbody; b++)
      parts |= t->opt[k].op == OPT_GROUP && !c->body[b].integers && (c->body[b].own >> t->opt[k].r & 1);
  return parts && is_nested(c);
}

/* If `invariant` is set, the order of a sum must not depend on what else is in the batch. Nested sums always
 * keep their order. Otherwise a row of Q6_K alone would have other bits than among 19 rows
 * (tests/unit/test_packed.c). */
bool keeps_order(const KernelShape *c, const Taken *t) {
  if (c->invariant && (cuts_sum(c, t) || parts_sum(c, t))) return false;
  return !(c->invariant || is_nested(c)) || !reorders_sum(c, t);
}
