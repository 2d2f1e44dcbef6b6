/* gpu.c: a kernel for a grid of blocks of threads. In: a nest with loops typed GLOBAL and LOCAL. Out:
 * SPECIAL indices instead of these loops, reductions over the threads of a block, and barriers where local
 * memory is written and then read by other threads.
 *
 * GLOBAL loops that hold nothing but each other become the grid. LOCAL loops of the grid are thread axes
 * of their own. LOCAL loops inside it (rows, reductions) share the next axis, so all of them have the same
 * length. What STAGE copies (LOCAL loops `of block`) is distributed to all threads. No code here branches:
 * accesses past an end are gated, so every thread of a block reaches every barrier. */
#include "codegen/gpu.h"
#include "codegen/heuristic.h"
#include <stdio.h>
#include <string.h>

static UOp *special(Kernel *k, int64_t extent, int dim, bool local) {
  UOp *n = uop_index_const(k->st, extent);
  return n ? uop_new(k->st, OPS_SPECIAL, DT_INDEX, 1, 1, &n, (Arg){.special = {dim, local}}) : NULL;
}

static bool is_a(const UOp *u, AxisType t) {
  return u->op == OPS_LOOP && (AxisType)u->src[0]->arg.range.type == t;
}

static bool becomes(Grid *g, UOp *range, UOp *index) {
  return index && vec_push(g->k->mem, &g->from, range) && vec_push(g->k->mem, &g->to, index);
}

static bool begins_in(const UOp *u, const UOp *reg) {
  if (u->op == OPS_STORE) return stored_in(u) == reg;
  for (int i = 1; u->op == OPS_LOOP && i < u->nsrc; i++)
    if (begins_in(u->src[i], reg)) return true;
  return false;
}

/* ---- what all threads of a block do together */

/* Distributes a loop to the threads: iteration t of thread i is t * threads + i, so neighbouring threads
 * have neighbouring iterations. */
static bool share_iters(Grid *g, const UOp *u, UOpVec *out) {
  Kernel *k = g->k;
  UOp *r = u->src[0], *store = u->src[1];
  int64_t all, step, size = r->src[0]->arg.v.i;
  UOp *thread = grid_thread(g, &all, &step), *n = num(k, (size + all - 1) / all), *iter = num(k, 0);
  if (size > all) {
    iter = kernel_range(k, n, AXIS_LOOP, NULL);
    iter = range_marked(k, iter, LOCAL_OF_BLOCK);
  }
  UOp *at = iter ? ix_top(k, OPS_ADD, ix_top(k, OPS_MUL, iter, num(k, all)), thread) : NULL;
  UOp *mine = at ? kernel_with(k, store, 1, &r, &at) : NULL;
  if (mine && size % all) {
    UOp *valid = ix_top(k, OPS_CMPLT, at, r->src[0]);
    UOp *to = valid ? index_gated(k, mine->src[0], valid) : NULL;
    UOp *value = to ? index_gated(k, mine->src[1], valid) : NULL;
    mine = value ? write_new(k, to, value, mine->nsrc - 2, mine->src + 2) : NULL;
  }
  if (mine && iter->op == OPS_RANGE) mine = loop_new(k, iter, 1, &mine);
  return mine && vec_push(k->mem, out, mine);
}

static bool has_shared(const UOp *u) {
  bool has = is_shared(u);
  for (int i = 0; !has && (is_loop(u) || u->op == OPS_SINK) && i < u->nsrc; i++)
    has = has_shared(u->src[i]);
  return has;
}

/* Whether a loop is distributed along the inner axis: a LOCAL loop with the length of that axis. Inside
 * another such loop it stays an ordinary loop. */
static bool is_distributed(const Grid *g, const UOp *u) {
  if (g->inner < 0 || !is_a(u, AXIS_LOCAL) || is_shared(u)) return false;
  return is_const_int(u->src[0]->src[0], g->extent[g->inner]);
}

static bool steps_in(const UOp *u, const UOp *reg) {
  if (u->op == OPS_ACC) return stored_in(u) == reg;
  for (int i = 1; u->op == OPS_LOOP && i < u->nsrc; i++)
    if (steps_in(u->src[i], reg)) return true;
  return false;
}

/* Whether a statement needs the value of register reg, or replaces it. Stepping it is neither. */
static bool needs(Kernel *k, const UOp *u, const UOp *reg) {
  if (is_loop(u)) {
    if (uop_contains(k->st, k->mem, &u->src[0]->src[0], 1, reg)) return true;
    for (int i = 1; i < u->nsrc; i++)
      if (needs(k, u->src[i], reg)) return true;
    return false;
  }
  if (u->op != OPS_STORE && u->op != OPS_ACC) return false;
  if (u->op == OPS_STORE && stored_in(u) == reg) return true;
  size_t nplace = u->src[0]->nsrc - 1u;
  return uop_contains(k->st, k->mem, u->src[0]->src + 1, nplace, reg) ||
         uop_contains(k->st, k->mem, &u->src[1], 1, reg);
}

/* Whether a distributed loop also needs the value of a register that it steps: running sums. */
static bool scans(Kernel *k, const UOp *loop) {
  bool scans = false;
  for (int i = 1; i < loop->nsrc; i++)
    if (loop->src[i]->op == OPS_ACC && !begins_in(loop, stored_in(loop->src[i])))
      scans |= needs(k, loop, stored_in(loop->src[i]));
  return scans;
}

static bool has_scan(Kernel *k, const UOp *u) {
  bool has = is_a(u, AXIS_LOCAL) && !is_shared(u) && scans(k, u);
  for (int i = is_loop(u); !has && (is_loop(u) || u->op == OPS_SINK) && i < u->nsrc; i++)
    has = has_scan(k, u->src[i]);
  return has;
}

/* Adds the ACCs in an inner LOCAL loop below u whose registers do not begin in that loop: one for each
 * register. */
static bool distributed_steps(const Grid *g, UOp *u, const UOp *distributed, UOpVec *out) {
  if (u->op == OPS_ACC && distributed && !begins_in(distributed, stored_in(u)) && !scans(g->k, distributed)) {
    for (size_t i = 0; i < out->len; i++)
      if (stored_in(out->at[i]) == stored_in(u)) return true; /* one ACC stands for the whole register */
    return vec_push(g->k->mem, out, u);
  }
  if (!distributed && is_distributed(g, u)) distributed = u;
  for (int i = 1; u->op == OPS_LOOP && i < u->nsrc; i++)
    if (!distributed_steps(g, u->src[i], distributed, out)) return false;
  return true;
}

/* ---- stores that do not move along the inner axis: the first thread of the axis makes them */

/* Returns store u made by one thread. Only that thread reads buffers that the kernel writes, in this or
 * another statement, because the other threads would read while it writes. */
static UOp *by_one_thread(Grid *g, UOp *u) {
  Kernel *k = g->k;
  UOp *src[MAX_LIST + 2], *first = ix_top(k, OPS_CMPLT, g->thread[g->inner], num(k, 1));
  UOpVec order = {0}, from = {0}, to = {0};
  bool ok = first && kernel_nodes(k, u->src[1], &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i];
    if (x->op != OPS_INDEX || memory_of(x)->op != OPS_PARAM) continue;
    if (nest_stores_to(k->sink, memory_of(x)))
      ok = vec_push(k->mem, &from, x) && vec_push(k->mem, &to, index_gated(k, x, first));
  }
  memcpy(src, u->src, u->nsrc * sizeof *src);
  src[0] = index_gated(k, u->src[0], first);
  src[1] = ok ? kernel_with(k, u->src[1], (int)from.len, from.at, to.at) : NULL;
  vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return src[0] && src[1] ? uop_new(k->st, OPS_STORE, DT_VOID, 1, u->nsrc, src, u->arg) : NULL;
}

static bool distributed(Grid *g, UOp *u, bool inside, UOpVec *out);

/* Whether register reg begins among the first i statements of a body. *stepped: another of these has
 * stepped it since. */
static bool starts_before(const UOp *body, int i, const UOp *reg, bool *stepped) {
  bool begun = false;
  *stepped = false;
  for (int j = body->op == OPS_LOOP; j < i; j++) {
    const UOp *u = body->src[j];
    if (u->op == OPS_STORE && stored_in(u) == reg) {
      begun = true;
      *stepped = false;
    } else
      *stepped |= steps_in(u, reg);
  }
  return begun;
}

/* Statement u adds to a register that already holds a whole value in all threads. So u steps a new
 * register instead; once the threads have joined that, *after adds it to the first. */
static UOp *apart(Grid *g, UOp *u, UOp **step, UOp **after, UOpVec *out) {
  Kernel *k = g->k;
  UOp *reg = stored_in(*step);
  PartReg own = reg_part(k, *step, NULL);
  if (!own.start || !vec_push(k->mem, out, own.start)) return NULL;
  *after = own.merge;
  *step = kernel_with(k, *step, 1, &reg, &own.at->src[0]);
  return *after && *step ? kernel_with(k, u, 1, &reg, &own.at->src[0]) : NULL;
}

/* Whether statement i of a body is followed by another whose threads each step reg, before any statement
 * needs its value: then the partial values are joined after that statement. */
static bool joins_later(const Grid *g, const UOp *body, int i, const UOp *reg) {
  for (int j = i + 1; j < body->nsrc; j++) {
    UOpVec steps = {0};
    UOp *u = body->src[j];
    bool ok = distributed_steps(g, u, NULL, &steps), all = false;
    for (size_t s = 0; s < steps.len; s++)
      all |= stored_in(steps.at[s]) == reg;
    vec_free(g->k->mem, &steps);
    if (!ok || needs(g->k, u, reg)) return false;
    if (all) return true;
    if (steps_in(u, reg)) return false;
  }
  return false;
}

/* Writes the statements of a LOOP or SINK. After a reduction's loop that is in the same body as the start
 * of its register, the threads join their partial values. */
static bool distributed_body(Grid *g, UOp *u, bool inside, UOpVec *out) {
  Kernel *k = g->k;
  UOpVec steps = {0}, after = {0}, open = {0}; /* open: registers to join later */
  bool ok = true, stepped;
  for (int i = u->op == OPS_LOOP; ok && i < u->nsrc; i++) {
    UOp *s = u->src[i];
    steps.len = after.len = 0;
    ok = distributed_steps(g, s, NULL, &steps);
    for (size_t j = 0; ok && j < steps.len; j++) {
      UOp *then = NULL, *reg = stored_in(steps.at[j]);
      if (!vec_has(&open, reg) && starts_before(u, i, reg, &stepped) && stepped)
        ok = (s = apart(g, s, &steps.at[j], &then, out)) != NULL;
      ok = ok && vec_push(k->mem, &after, then);
    }
    ok = ok && distributed(g, s, inside, out);
    for (size_t j = 0; ok && j < steps.len; j++) {
      const UOp *reg = stored_in(steps.at[j]);
      if (!after.at[j] && starts_before(u, i, reg, &stepped) && joins_later(g, u, i, reg))
        ok = vec_push(k->mem, &open, (UOp *)reg);
      else if (after.at[j] || starts_before(u, i, reg, &stepped))
        ok = threads_join(g, steps.at[j], out);
      ok = ok && (!after.at[j] || vec_push(k->mem, out, after.at[j]));
    }
  }
  vec_free(k->mem, &steps), vec_free(k->mem, &after), vec_free(k->mem, &open);
  return ok;
}

/* Writes statement u. Inner LOCAL loops disappear: each thread runs its own iteration. */
static bool distributed(Grid *g, UOp *u, bool inside, UOpVec *out) {
  Kernel *k = g->k;
  if (is_shared(u)) return share_iters(g, u, out);
  bool alone = g->inner >= 0 && !inside;
  if (u->op == OPS_STORE && alone && stored_in(u)->op != OPS_DEFINE_REG) u = by_one_thread(g, u);
  if (!u) return false;
  if (u->op != OPS_LOOP) return vec_push(k->mem, out, u);
  if (!inside && is_distributed(g, u)) {
    if (!becomes(g, u->src[0], g->thread[g->inner])) return false;
    return scans(k, u) ? threads_scan(g, u, out) : distributed_body(g, u, true, out);
  }
  UOpVec body = {0};
  UOp *loop = distributed_body(g, u, inside, &body) ? loop_new(k, u->src[0], (int)body.len, body.at) : NULL;
  vec_free(k->mem, &body);
  return loop && vec_push(k->mem, out, loop);
}

/* ---- barriers */
typedef struct Touched {
  UOpVec reads, writes; /* each an INDEX of memory that threads share: local memory, buffers */
} Touched;

static bool touch(Kernel *k, UOpVec *v, UOp *x) { return vec_has(v, x) || vec_push(k->mem, v, x); }

static bool touched(Kernel *k, UOp *u, Touched *t) {
  if (u->op == OPS_LOOP) {
    for (int i = 1; i < u->nsrc; i++)
      if (!touched(k, u->src[i], t)) return false;
    return true;
  }
  if (u->op != OPS_STORE && u->op != OPS_ACC) return true;
  UOpVec order = {0};
  bool ok = uop_toposort(k->st, k->mem, u->src, 2, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i];
    bool shared = x->op == OPS_INDEX && x != u->src[0] && memory_of(x)->op != OPS_DEFINE_REG;
    if (shared) ok = touch(k, &t->reads, x);
  }
  vec_free(k->mem, &order);
  return ok && (stored_in(u)->op == OPS_DEFINE_REG || touch(k, &t->writes, u->src[0]));
}

/* Whether thread i along the inner axis is the only one that touches elements i, i + n, i + 2n .. of local
 * memory: then no other thread reads what it writes. */
static bool is_own(Grid *g, const UOp *x) {
  if (g->nlocal != 1 || g->inner != 0 || memory_of(x)->op != OPS_DEFINE_LOCAL) return false;
  const UOp *thread = ix_top(g->k, OPS_FLOORMOD, x->src[1], num(g->k, g->extent[0]));
  for (size_t i = 0; thread && i < g->from.len; i++)
    if (g->from.at[i] == thread) return g->to.at[i] == g->thread[0];
  return thread == g->thread[0];
}

/* Whether two threads may access one element, by the bounds of the indices. */
static bool may_meet(Grid *g, const UOp *x, const UOp *y) {
  if (memory_of(x) != memory_of(y) || (is_own(g, x) && is_own(g, y))) return false;
  for (int i = 1; i <= index_naxes(x) && i <= index_naxes(y); i++)
    if (x->src[i]->vmax < y->src[i]->vmin || y->src[i]->vmax < x->src[i]->vmin) return false;
  return true;
}

static bool meet(Grid *g, const UOpVec *a, const UOpVec *b) {
  for (size_t i = 0; i < a->len; i++)
    for (size_t j = 0; j < b->len; j++)
      if (may_meet(g, a->at[i], b->at[j])) return true;
  return false;
}

static bool meet_in_order(Grid *g, const Touched *first, const Touched *then) {
  return meet(g, &then->reads, &first->writes) || meet(g, &then->writes, &first->reads) ||
         meet(g, &then->writes, &first->writes);
}

static void forget(Kernel *k, Touched *t) { vec_free(k->mem, &t->reads), vec_free(k->mem, &t->writes); }

static bool barrier_put(Kernel *k, UOpVec *out) {
  UOp *b = uop_new(k->st, OPS_BARRIER, DT_VOID, 1, 0, NULL, ARG0);
  return b && vec_push(k->mem, out, b);
}

/* The accesses of a sequence of statements before its first barrier and after its last. */
typedef struct Span {
  Touched head, tail;
  bool fenced; /* the sequence contains a barrier that is always reached */
} Span;

static void span_free(Kernel *k, Span *s) { forget(k, &s->head), forget(k, &s->tail); }

static bool touch_all(Kernel *k, Touched *to, const Touched *from) {
  bool ok = true;
  for (size_t i = 0; ok && i < from->reads.len; i++)
    ok = touch(k, &to->reads, from->reads.at[i]);
  for (size_t i = 0; ok && i < from->writes.len; i++)
    ok = touch(k, &to->writes, from->writes.at[i]);
  return ok;
}

static bool fence(Kernel *k, Span *s, UOpVec *out) {
  s->fenced = true;
  forget(k, &s->tail);
  return barrier_put(k, out);
}

/* Appends the accesses of `next` to those of s. surely: `next` is no loop that may have no iteration. */
static bool follow(Kernel *k, Span *s, const Span *next, bool surely) {
  bool fenced = surely && next->fenced, ok = s->fenced || touch_all(k, &s->head, &next->head);
  if (fenced) {
    forget(k, &s->tail);
    s->fenced = true;
  }
  return ok && touch_all(k, &s->tail, &next->tail);
}

/* Adds the accesses of local memory to *to. Buffers are left out, because each element of a buffer is
 * written once, by the only thread that touches it: no iteration has to wait for an earlier one because of
 * a buffer. */
static bool local_alone(Kernel *k, const UOpVec *from, UOpVec *to) {
  bool ok = true;
  for (size_t i = 0; ok && i < from->len; i++)
    if (memory_of(from->at[i])->op == OPS_DEFINE_LOCAL) ok = touch(k, to, from->at[i]);
  return ok;
}

/* *is: whether an iteration has to wait for the end of the one before it. */
static bool iters_meet(Grid *g, const Span *iter, bool *is) {
  Kernel *k = g->k;
  Touched end = {0};
  bool ok = local_alone(k, &iter->tail.reads, &end.reads) && local_alone(k, &iter->tail.writes, &end.writes);
  *is = ok && meet_in_order(g, &end, &iter->head);
  forget(k, &end);
  return ok;
}

static bool has_trip(const UOp *loop) { return loop->src[0]->src[0]->vmin > 0; }

/* Inserts barriers. A statement waits if it reads what other threads wrote, or writes what they may still
 * read, since the last barrier. If the iterations of a loop meet in local memory, each begins with a
 * barrier. */
static UOp *with_barriers(Grid *g, UOp *u, Span *all) {
  Kernel *k = g->k;
  if (!is_loop(u) && u->op != OPS_SINK)
    return touched(k, u, &all->head) && touch_all(k, &all->tail, &all->head) ? u : NULL;
  UOpVec src = {0}, body = {0};
  bool ok = u->op == OPS_SINK || vec_push(k->mem, &src, u->src[0]), again = false;
  for (int i = is_loop(u); ok && i < u->nsrc; i++) {
    Span next = {0};
    UOp *s = with_barriers(g, u->src[i], &next);
    ok = s != NULL;
    if (ok && s->op == OPS_BARRIER) { /* made by DOUBLE_BUFFER */
      forget(k, &all->tail);
      ok = vec_push(k->mem, &body, s);
      all->fenced = true;
      continue;
    }
    if (ok && meet_in_order(g, &all->tail, &next.head)) ok = fence(k, all, &body);
    ok = ok && vec_push(k->mem, &body, s) && follow(k, all, &next, !is_loop(s) || has_trip(s));
    span_free(k, &next);
  }
  if (ok && is_loop(u) && !is_shared(u)) ok = iters_meet(g, all, &again);
  if (again) {
    ok = barrier_put(k, &src);
    forget(k, &all->head);
    all->fenced = true;
  }
  for (size_t i = 0; ok && i < body.len; i++)
    ok = vec_push(k->mem, &src, body.at[i]);
  UOp *r = ok ? uop_new(k->st, (Ops)u->op, DT_VOID, 1, (int)src.len, src.at, u->arg) : NULL;
  vec_free(k->mem, &src), vec_free(k->mem, &body);
  return r;
}

/* The whole kernel with barriers. */
static UOp *barriers(Grid *g, UOp *sink) {
  Span all = {0};
  UOp *r = with_barriers(g, sink, &all);
  span_free(g->k, &all);
  return r;
}

/* ---- the grid */
static bool refused(Kernel *k, const char *why) {
  snprintf(k->refused, sizeof k->refused, "%s", why);
  if (k->strict) error_set(k->err, TG_ERR_VALUE, "opts: %s", k->refused);
  return false;
}

static int64_t blocks_of(UOp *const *grid, int from, int to) { /* INT64_MAX: that many or more blocks */
  int64_t n = 1;
  for (int d = from; d < to; d++)
    if (__builtin_mul_overflow(n, grid[d]->src[0]->arg.v.i, &n)) return INT64_MAX;
  return n;
}

/* Divides `all` blocks, one for each iteration of all loops together, between three axes. Most blocks are
 * along x. If x is too short, small prime factors of their number are moved to y, then to z. Returns false
 * if they do not fit. */
static bool folded(const LaunchLimits *most, int64_t all, int64_t axis[3]) {
  int64_t rest = all;
  axis[0] = all;
  axis[1] = axis[2] = 1;
  for (int64_t p = 2; axis[0] > most->blocks[0] && p <= most->blocks[1] && rest > 1;) {
    int to = axis[1] <= most->blocks[1] / p ? 1 : 2;
    if (rest % p || axis[to] > most->blocks[to] / p)
      p++;
    else {
      rest /= p;
      axis[0] /= p;
      axis[to] *= p;
    }
  }
  return axis[0] <= most->blocks[0];
}

/* The number of a block among all blocks, counted along x first. */
static UOp *block_number(Kernel *k, const int64_t axis[3]) {
  UOp *at = NULL;
  for (int i = 2; i >= 0; i--) {
    if (axis[i] == 1 && i) continue;
    UOp *along = special(k, axis[i], i, false);
    at = at ? ix_top(k, OPS_ADD, along, ix_top(k, OPS_MUL, at, num(k, axis[i]))) : along;
    k->global[i] = (int)axis[i];
  }
  return at;
}

/* Reorders the blocks of a grid so that TOGETHER rows of blocks advance along the columns together and
 * find what they read still in L2. This is done for units of four warps, which otherwise wait for it. x,
 * y: the indices along the last two axes; they become those of another block of the same grid. */
static void rows_together(Kernel *k, int64_t nx, int64_t ny, UOp **x, UOp **y) {
  enum { TOGETHER = 8 };

  if (ny % TOGETHER || !*x || !*y || !has_groups(k, k->sink)) return;
  UOp *rows = num(k, TOGETHER), *row = ix_top(k, OPS_FLOORMOD, *y, rows);
  UOp *rest = ix_top(k, OPS_ADD, ix_top(k, OPS_MUL, row, num(k, nx)), *x);
  UOp *first = ix_top(k, OPS_MUL, ix_top(k, OPS_FLOORDIV, *y, rows), rows);
  *y = ix_top(k, OPS_ADD, first, ix_top(k, OPS_FLOORMOD, rest, rows));
  *x = ix_top(k, OPS_FLOORDIV, rest, rows);
}

/* Gives each loop of the grid its index. The last loop is x, the one before it is y, and the loops before
 * share z. If a loop is too long for its axis, all loops are counted together. */
static bool grid_indices(Grid *g, int n, UOp *const *grid) {
  Kernel *k = g->k;
  const LaunchLimits *most = &k->opt->target->most;
  int own = n <= 3 ? n : 2; /* loops with an axis of their own: the last ones */
  int64_t axis[3] = {1, 1, blocks_of(grid, 0, n - own)}, below = 1;
  bool fits = axis[2] <= most->blocks[2];
  for (int d = n - own; fits && d < n; d++)
    fits = grid[d]->src[0]->arg.v.i <= most->blocks[n - 1 - d];
  if (!fits) {
    int64_t all = blocks_of(grid, 0, n);
    own = 0;
    if (!folded(most, all, axis))
      return error_set(k->err, TG_ERR_LIMIT,
                       "codegen: a grid of %lld blocks: there are at most %lld along x, %lld along y, %lld "
                       "along z, and no factors of it that fit",
                       (long long)all, (long long)most->blocks[0], (long long)most->blocks[1],
                       (long long)most->blocks[2]),
             false;
  }
  UOp *shared = !fits ? block_number(k, axis) : own < n ? special(k, axis[2], own, false) : NULL;
  if (fits && own < n) k->global[own] = (int)axis[2];
  UOp *axis_at[3] = {NULL};
  for (int i = 0; i < own; i++) {
    k->global[i] = (int)grid[n - 1 - i]->src[0]->arg.v.i;
    axis_at[i] = special(k, k->global[i], i, false);
  }
  if (own > 1) rows_together(k, k->global[0], k->global[1], &axis_at[0], &axis_at[1]);
  for (int d = n; d-- > 0;) {
    int64_t e = grid[d]->src[0]->arg.v.i;
    UOp *at = NULL;
    if (d >= n - own) {
      at = axis_at[n - 1 - d];
    } else {
      UOp *q = ix_top(k, OPS_FLOORDIV, shared, num(k, below));
      at = d ? ix_top(k, OPS_FLOORMOD, q, num(k, e)) : q;
      below *= e;
    }
    if (!becomes(g, grid[d], at)) return false;
  }
  return true;
}

static UOp *inner_local(UOp *u) { /* the first LOCAL loop below u */
  if (is_a(u, AXIS_LOCAL) && !is_shared(u)) return u;
  for (int i = 0; (u->op == OPS_LOOP || u->op == OPS_SINK) && i < u->nsrc; i++) {
    UOp *r = inner_local(u->src[i]);
    if (r) return r;
  }
  return NULL;
}

/* Whether a block's local memory has room for what STAGE copies and for what threads use to join values:
 * its size is known only now. */
static bool memory_fits(Kernel *k, UOp *body) {
  int64_t nbytes = nest_local_bytes(k, body), most = k->opt->target->local_most;
  if (nbytes < 0 || nbytes <= most || !k->list.len) return nbytes >= 0;
  char why[LAUNCH_WHY];
  snprintf(why, sizeof why, "local memory: %lld bytes for a block, there are %lld", (long long)nbytes,
           (long long)most);
  return refused(k, why);
}

/* Makes the thread axes. Refuses a list of opts that gives a block more threads along an axis than the
 * device has. */
static bool block_axes(Grid *g, UOp *const *local) {
  char why[LAUNCH_WHY];
  int none[3] = {0}, block[3] = {0};
  for (int d = 0; d < g->nlocal; d++)
    block[g->nlocal - 1 - d] = (int)TG_MIN(g->extent[d], INT32_MAX);
  if (!target_launches(g->k->opt->target, none, block, why)) return refused(g->k, why);
  for (int d = 0; d < g->nlocal; d++) {
    int dim = g->nlocal - 1 - d;
    g->thread[d] = special(g->k, g->extent[d], dim, true);
    g->k->local[dim] = (int)g->extent[d];
    if (!g->thread[d] || (d != g->inner && !becomes(g, local[d], g->thread[d]))) return false;
  }
  return true;
}

/* Whether neighbours along thread axis `lane` of the grid are neighbours in memory, and neighbours along
 * the inner axis never are: a reduction across rows. */
static bool goes_across(Kernel *k, UOp *body, UOp *lane) {
  UOpVec order = {0}, inner = {0};
  bool along_lane = false, along_inner = false;
  bool ok = kernel_nodes(k, body, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (is_a(order.at[i], AXIS_LOCAL) && !is_shared(order.at[i]))
      ok = vec_push(k->mem, &inner, order.at[i]->src[0]);
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *x = order.at[i];
    if (x->op != OPS_INDEX || memory_of(x)->op != OPS_PARAM) continue;
    along_lane |= stride_of(k, x, lane) == 1;
    for (size_t j = 0; j < inner.len; j++)
      along_inner |= stride_of(k, x, inner.at[j]) == 1;
  }
  vec_free(k->mem, &order), vec_free(k->mem, &inner);
  return ok && along_lane && !along_inner;
}

/* Places the inner axis. The last axis is x, whose neighbours are neighbours in a warp: the inner axis,
 * unless the reduction goes across rows. */
static void place_inner(Grid *g, UOp *body, const UOp *inner, UOp **local) {
  int64_t extent = inner->src[0]->src[0]->arg.v.i;
  bool across = g->nlocal == 1 && !has_scan(g->k, body) && goes_across(g->k, body, local[0]);
  g->inner = across ? 0 : g->nlocal;
  if (across) {
    g->extent[1] = g->extent[0];
    local[1] = local[0];
  }
  g->extent[g->inner] = extent;
  g->nlocal++;
}

bool gpu_dims(Kernel *k) {
  Grid g = {.k = k, .inner = -1};
  UOp *grid[MAX_LIST], *local[4], *u = k->sink;
  int ngrid = 0;
  while (u->nsrc == 1 + (u->op == OPS_LOOP)) { /* outer first */
    UOp *next = u->src[u->nsrc - 1];
    bool block = is_a(next, AXIS_LOCAL) && next->src[0]->arg.range.of == LOCAL_OF_GRID;
    if ((!is_a(next, AXIS_GLOBAL) && !block) || !is_const(next->src[0]->src[0]) || ngrid == MAX_LIST ||
        g.nlocal == 3)
      break;
    u = next;
    if (block) {
      local[g.nlocal] = u->src[0];
      g.extent[g.nlocal++] = u->src[0]->src[0]->arg.v.i;
    } else
      grid[ngrid++] = u->src[0];
  }
  UOp *body =
      uop_new(k->st, OPS_SINK, DT_VOID, 1, u->nsrc - (u->op == OPS_LOOP), u->src + (u->op == OPS_LOOP), ARG0);
  UOp *inner = body ? inner_local(body) : NULL;
  bool ok = body != NULL && !(inner && g.nlocal == 3);
  if (ok && inner) place_inner(&g, body, inner, local);
  ok = ok && block_axes(&g, local) && grid_indices(&g, ngrid, grid);
  UOpVec out = {0};
  if (ok && (inner || has_shared(body))) {
    ok = distributed_body(&g, body, false, &out);
    body = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)out.len, out.at, ARG0) : NULL;
    body = body ? barriers(&g, body) : NULL;
  }
  ok = ok && body && memory_fits(k, body);
  body = ok ? kernel_with(k, body, (int)g.from.len, g.from.at, g.to.at) : NULL;
  k->sink = nest_simplify(k, body);
  if (k->sink && k->list.len && !groups_begin_lines(k)) {
    refused(k, "units of four warps take 64 columns of such a b, or a multiple");
    k->sink = NULL;
  }
  vec_free(k->mem, &g.from), vec_free(k->mem, &g.to), vec_free(k->mem, &out);
  return k->sink != NULL;
}
