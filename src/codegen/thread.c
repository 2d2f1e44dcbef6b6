/* thread.c: the opt THREAD. In: a nest that has all its other opts. Out: the same nest inside a loop over
 * threads. One loop of each nest that writes buffers is distributed to the threads. Nests that write no
 * buffer are computed by every thread. */
#include "codegen/split.h"

static bool writes_buffer(const UOp *u) {
  if (u->op == OPS_STORE) return stored_in(u)->op == OPS_PARAM;
  for (int i = 1; is_loop(u) && i < u->nsrc; i++)
    if (writes_buffer(u->src[i])) return true;
  return false;
}

/* The loop of a nest that is distributed to threads: the loop that the opt names, if the nest has it,
 * otherwise the nest's first loop of the grid that is long enough. Only outer loops are considered, so
 * nothing is computed between them. NULL: there is none. */
static UOp *thread_loop(UOp *u, const Opt *o) {
  UOp *best = NULL;
  for (; u && is_loop(u); u = alone(u)) {
    const UOp *r = u->src[0];
    if (loop_type(u) == AXIS_ORDERED) break;
    bool named = range_root(r) == o->r || block_root(r) == o->r;
    if (loop_type(u) == AXIS_REDUCE && !named) continue;
    if (r->src[0]->ranges || r->src[0]->vmax < o->n) continue;
    if (named) return u;
    if (!best && loop_type(u) == AXIS_GLOBAL) best = u;
  }
  return best;
}

static UOp *guarded(Kernel *k, UOp *u, UOp *thread) { /* u, run only by the first thread */
  UOp *one = uop_where(k->st, uop_alu2(k->st, OPS_CMPLT, thread, num(k, 1)), num(k, 1), num(k, 0));
  UOp *once = kernel_range(k, one, AXIS_LOOP, NULL);
  return loop_new(k, once, 1, &u);
}

/* Distributes a loop: thread t gets chunk t of its iterations. The chunks do not depend on which core runs
 * them, and a reduction is never distributed, so any number of cores gives the same bits. */
static UOp *distributed(Kernel *k, UOp *u, UOp *loop, UOp *thread) {
  int64_t threads = thread->src[0]->arg.v.i;
  UOp *m = loop->src[0]->src[0], *zero = num(k, 0);
  UOp *c = blocks_in(k, m, threads);
  UOp *begin = uop_alu2(k->st, OPS_MUL, thread, c), *left = uop_alu2(k->st, OPS_SUB, m, begin), *trips = c;
  if (!is_const(m) || m->arg.v.i % threads)
    trips = simp(
        k, uop_where(k->st, uop_alu2(k->st, OPS_CMPLT, left, c), uop_alu2(k->st, OPS_MAX, left, zero), c));
  UOp *now = loop_between(k, loop, begin, trips, AXIS_LOOP, NULL);
  if (!now || u == loop) return now;
  return nest_replace(k, u, loop, 1, &now);
}

/* Lists the statements of `of` for a thread. Statements that write buffers are distributed, or run on the
 * first thread only. All other statements are computed by each thread. If blocks of a reduction are around an
 * output, every block is distributed in the same way. */
static bool deal_all(Kernel *k, const Opt *o, const UOp *of, UOp *t, UOpVec *body) {
  bool ok = true;
  for (int i = of->op == OPS_LOOP; ok && i < of->nsrc; i++) {
    UOp *u = of->src[i], *loop = thread_loop(u, o);
    if (writes_buffer(u) && is_loop(u) && is_block(u->src[0]) && loop_type(u) == AXIS_REDUCE) {
      UOpVec inner = {0};
      u = deal_all(k, o, u, t, &inner) ? loop_new(k, u->src[0], (int)inner.len, inner.at) : NULL;
      vec_free(k->mem, &inner);
    } else if (writes_buffer(u))
      u = loop ? distributed(k, u, loop, t) : guarded(k, u, t);
    ok = u && vec_push(k->mem, body, u);
  }
  return ok;
}

bool opt_thread(Kernel *k, const Opt *o) {
  UOp *t = kernel_range(k, num(k, o->n), AXIS_THREAD, NULL);
  UOpVec body = {0};
  bool ok = t && deal_all(k, o, k->sink, t, &body);
  UOp *all = ok ? loop_new(k, t, (int)body.len, body.at) : NULL;
  vec_free(k->mem, &body);
  k->sink = all ? nest_simplify(k, UNEW(k->st, OPS_SINK, DT_VOID, 1, ARG0, all)) : NULL;
  k->nthread = (int)o->n;
  return k->sink != NULL;
}
