/* kernel_shape.c: a kernel's graph as the planner sees it (plan/shape.h). In: a kernel whose reductions
 * have the same loops, or are nested in each other, before its nest is made. Out: its loops, its accesses,
 * and the operations on them. */
#include "codegen/heuristic.h"
#include "codegen/nest.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_EVEN = INT32_MIN };

/* As moves_evenly, but in the longest part of a loop that has few parts: lanes are cut at the same places. */
static bool moves_in_part(Kernel *k, UOp *e, UOp *r, int64_t *by) {
  int64_t at[MOST_CUTS + 1], from = 0, longest = 0, size = 0;
  int n = changes_of(k, e, r, at);
  if (!n) return false;
  at[n] = r->src[0]->arg.v.i;
  for (int i = 0; i <= n; i++) {
    if (at[i] - from > size) longest = from, size = at[i] - from;
    from = at[i];
  }
  Arg arg = r->arg;
  arg.range.id = k->next_range;
  UOp *extent = num(k, size), *part = extent ? uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &extent, arg) : NULL;
  UOp *to = part ? add(k, part, num(k, longest)) : NULL, *now = to ? kernel_with(k, e, 1, &r, &to) : NULL;
  now = now ? simp(k, now) : NULL;
  return now && moves_evenly(k, now, part, by);
}

static int64_t coefficient(Kernel *k, UOp *e, UOp *r, bool parts) {
  int64_t by;
  if (!depends(k, e, r)) return 0;
  return moves_evenly(k, e, r, &by) || (parts && moves_in_part(k, e, r, &by)) ? by : NOT_EVEN;
}

static uint32_t loops_of(const KernelShape *c, const UOp *u) {
  uint32_t on = 0;
  for (int r = 0; r < c->n; r++)
    if (u->ranges & range_bit(c->range[r]->arg.range.id)) on |= 1u << r;
  return on;
}

/* Whether lanes along the loop that a clause moves with are cut where the clause changes. */
static bool is_cut(Kernel *k, const KernelShape *c, const UOp *clause, uint32_t on) {
  bool holds;
  int64_t at[MOST_CUTS + 1];
  UOp *less = (UOp *)clause_of(clause, &holds);
  bool alone = on && !(on & (on - 1)) && less->op == OPS_CMPLT;
  return alone && changes_of(k, less, (UOp *)c->range[__builtin_ctz(on)], at);
}

/* Settles what the gate of an access means. Clauses that all factors of a product share bound the
 * product's loops and are no gate of one access. */
static void gate_settle(Kernel *k, Access *a, const KernelShape *c, const Clauses *asked) {
  Clauses own;
  own.n = a->index->arg.i ? gate_clauses(index_gate(a->index), own.at) : 0;
  for (int i = 0; i < own.n; i++) {
    uint32_t on = loops_of(c, own.at[i]);
    if (clauses_have(asked, own.at[i])) {
      a->asks |= on;
      continue;
    }
    a->gated = true;
    if (!c->reduce && is_cut(k, c, own.at[i], on)) continue;
    a->gate_moves |= on;
    for (int r = 0; r < c->n; r++)
      if (on >> r & 1) a->edges[r] |= on;
  }
}

/* Whether b reads the same buffer as a, a constant further, and none of the elements that a reads, as the
 * gates of an LSTM read parts of one matrix. */
static bool is_further(Kernel *k, const KernelShape *c, const Access *a, const Access *b) {
  bool own = false, alike = a->index->src[0] == b->index->src[0] && a->naxis == b->naxis &&
                            a->in_sum == b->in_sum && a->copied == b->copied && a->even && b->even &&
                            !a->gated && !b->gated && !a->asks && !b->asks;
  for (int d = 0; alike && d < index_naxes(a->index); d++) {
    UOp *by = ix(k, OPS_SUB, b->index->src[1 + d], a->index->src[1 + d]);
    double span = 1;
    alike = by && is_const(by);
    for (int r = 0; r < c->n; r++)
      span += fabs((double)a->coef[d][r]) * (double)(c->most[r] - 1);
    own |= alike && fabs((double)by->arg.v.i) >= span;
  }
  return alike && own;
}

/* How far one loop moves an index in all; `most` if that is not known. */
static int64_t reach_of(Kernel *k, const KernelShape *c, UOp *index, int loop, int64_t most) {
  UOp *from[MAX_LOOPS], *to[MAX_LOOPS], *zero = num(k, 0);
  int n = 0;
  for (int r = 0; r < c->n; r++)
    if (r != loop) from[n] = (UOp *)c->range[r], to[n++] = zero;
  UOp *alone = zero ? kernel_with(k, index, n, from, to) : NULL;
  alone = alone ? simp(k, alone) : NULL;
  bool known = alone && alone->vmin > -most && alone->vmax < most;
  return known ? TG_MIN(alone->vmax - alone->vmin, most) : most;
}

/* Adds an access. asked: the clauses that all factors of the product share. Returns false if the planner
 * cannot describe it. */
static bool access_add(Kernel *k, KernelShape *c, const UOp *x, bool in_sum, const Clauses *asked,
                       const UOpVec *order) {
  const UOp *memory = x->src[0];
  if (memory->op != OPS_PARAM || c->naccess == MAX_ACCESS) return false;
  Access *a = &c->access[c->naccess++];
  DType copied = stage_dtype(k, order, x);
  *a = (Access){.index = x,
                .slot = memory->arg.param.slot,
                .bytes = (int)dtype_size((DType)x->dtype),
                .copied = (int)dtype_size(copied),
                .converted = in_sum && copied != x->dtype,
                .even = true,
                .naxis = index_naxes(x),
                .found = index_is_data(x),
                .in_sum = in_sum};
  a->stays = param_stays(k, memory);
  gate_settle(k, a, c, asked);
  int64_t step = 1;
  for (int d = a->naxis - 1; d >= 0; d--) {
    a->extent[d] = memory->nsrc ? memory->src[d]->arg.v.i : memory->arg.param.nelem;
    a->step[d] = step;
    step *= a->extent[d];
    if (uop_has(x->src[1 + d], INDEX)) a->even = false;
    for (int r = 0; r < c->n; r++) {
      int64_t by = coefficient(k, x->src[1 + d], (UOp *)c->range[r], !c->reduce);
      if (by == NOT_EVEN) {
        a->even = false;
        a->reach[d][r] = reach_of(k, c, x->src[1 + d], r, a->extent[d] - 1);
        by = a->reach[d][r] ? a->extent[d] : 0;
        if (by) a->computed |= 1u << r;
      }
      a->coef[d][r] = by;
      if (by) a->moves |= 1u << r;
    }
  }
  a->clips = c->nbody < 2 && (!a->gated || stage_takes_gate(k, x, asked));
  for (int b = c->nstore; b < c->naccess - 1; b++)
    if (is_further(k, c, &c->access[b], a)) {
      Access *first = &c->access[b];
      double each = first->whole / access_reads(first);
      first->more++;
      first->whole = each * access_reads(first);
      c->naccess--;
      return true;
    }
  access_settle(a, c);
  return true;
}

static int64_t planned_size(const UOp *length, double at) {
  double least = (double)TG_MAX(length->vmin, 1), most = (double)length->vmax;
  return most < 1 ? 0 : (int64_t)(least * pow(most / least, at) + .5);
}

static bool loop_add(KernelShape *c, const UOp *r, bool reduce) {
  bool counted = r->op == OPS_RANGE && is_const(r->src[0]);
  if (r->op != OPS_RANGE || r->src[0]->ranges || r->arg.range.type == AXIS_ORDERED) return false;
  for (int at = 0; at < c->n; at++)
    if (c->range[at] == r) return false; /* this is a reduction over a loop of an output */
  if (c->n == MAX_LOOPS) return false;
  c->range[c->n] = r;
  c->most[c->n] = r->src[0]->vmax;
  c->size[c->n] = counted ? r->src[0]->vmax : planned_size(r->src[0], c->at);
  if (reduce) c->reduce |= 1u << c->n;
  if (!counted) c->open |= 1u << c->n;
  c->n++;
  return true;
}

static bool lists(const UOp *store, const UOp *r) {
  for (int i = 2; i < store->nsrc; i++)
    if (store->src[i] == r) return true;
  return false;
}

/* Adds the loops that all outputs have. An output may have other loops inside these, in which it only
 * reads what was summed. */
static bool outputs_add(Kernel *k, KernelShape *c, const UOp *sink, UOp *reduce) {
  for (int s = 0; s < sink->nsrc; s++)
    for (int i = 2; i < sink->src[s]->nsrc; i++) {
      const UOp *r = sink->src[s]->src[i];
      bool all = true, had = false;
      for (int o = 0; o < sink->nsrc; o++)
        all = all && lists(sink->src[o], r);
      for (int at = 0; at < c->n; at++)
        had |= c->range[at] == r;
      if (all && !had && !loop_add(c, r, false)) return false;
      c->own |= !all && r->op == OPS_RANGE && r->src[0]->vmax > 1;
      if (!all &&
          (!reduce || r->op != OPS_RANGE || r->arg.range.type == AXIS_ORDERED || depends(k, reduce, r)))
        return false;
    }
  return true;
}

static bool same_loops(const UOp *a, const UOp *b) {
  bool same = a->nsrc == b->nsrc && a->arg.reduce.op == b->arg.reduce.op;
  for (int i = 1; same && i < a->nsrc; i++)
    same = a->src[i] == b->src[i];
  return same && dtype_size((DType)a->dtype) == dtype_size((DType)b->dtype);
}

/* Whether the value of another reduction needs u. */
static bool is_inner(Kernel *k, const UOpVec *order, const UOp *u) {
  bool inner = false;
  for (size_t i = 0; !inner && i < order->len; i++) {
    const UOp *v = order->at[i];
    if (v->op == OPS_REDUCE && v != u && uop_has(v->src[0], REDUCE))
      inner = uop_contains(k->st, k->mem, &v->src[0], 1, u);
  }
  return inner;
}

static bool sum_add(KernelShape *c, UOp *u, UOp *sum[MAX_SUMS]) {
  if (c->nsum == MAX_SUMS) return false;
  c->value[c->nsum] = u->src[0];
  sum[c->nsum++] = u;
  return true;
}

/* Sets `sum` to the reductions, the outermost first: *nouter of them. Returns false if there are too many,
 * if the outermost do not have the same loops, or if something is ordered. */
static bool sums_found(Kernel *k, const UOpVec *order, KernelShape *c, UOp *sum[MAX_SUMS], int *nouter) {
  UOp *inner[MAX_SUMS];
  int n = 0;
  bool ok = true;
  for (size_t i = 0; ok && i < order->len; i++) {
    UOp *u = order->at[i];
    if (u->op == OPS_SCAN || u->op == OPS_AFTER) return false;
    if (u->op != OPS_REDUCE) continue;
    if (!is_inner(k, order, u))
      ok = (!c->nsum || same_loops(u, sum[0])) && sum_add(c, u, sum);
    else if ((ok = n < MAX_SUMS))
      inner[n++] = u;
  }
  *nouter = c->nsum;
  while (ok && n > 0) /* in the graph, a reduction comes before those that need it */
    ok = sum_add(c, inner[--n], sum);
  return ok;
}

/* Whether u is a product that is fused with the addition. */
static bool is_fused(const KernelShape *c, const UOp *u) {
  bool is = false;
  for (int i = 0; i < c->nsum; i++)
    is |= c->value[i] == u;
  return is && c->body[body_around(c, loops_of(c, u))].fused;
}

/* Adds an operation. A choice costs nothing where its condition is known. An operation on no loaded data
 * costs nothing where its loops are unrolled. A shift by an unknown number takes a few operations. A
 * conversion that a copy could hold is counted with the load before it. */
static void operation_add(KernelShape *c, const UOp *u) {
  enum { SHIFT_BY_ANY = 3, SHIFT_BY_LESS = 1 };

  uint32_t on = loops_of(c, u);
  double weight = target_weight(c->target, u);
  bool shifts = u->op == OPS_SHL || u->op == OPS_SHR;
  if (!weight || u->op == OPS_CAST || u->op == OPS_BITCAST) return;
  bool chooses = u->op == OPS_WHERE && !uop_has(u->src[0], INDEX), known = !c->reduce && !uop_has(u, INDEX);
  uint32_t decided = known ? on : chooses ? loops_of(c, u->src[0]) : 0;
  work_add(c, (Work){.on = on, .decided = decided, .weight = weight});
  uint32_t by = shifts ? loops_of(c, u->src[1]) : 0;
  if (!by) return;
  bool any = u->src[1]->vmin < 0 || u->src[1]->vmax >= 8 * (int64_t)dtype_size((DType)u->dtype);
  work_add(c, (Work){.on = on, .decided = by, .weight = any ? SHIFT_BY_ANY : SHIFT_BY_LESS});
}

/* The clauses that the factors of the products share. Returns false unless all sums have the same clauses;
 * nested sums must have none. */
static bool sums_asked(Kernel *k, const KernelShape *c, Clauses *asked) {
  bool ok = true;
  for (int i = 0; ok && i < c->nsum; i++) {
    Clauses own = {0};
    ok = clauses_asked(k, c->value[i], &own) && (c->nbody == 1 || !own.n);
    if (i)
      ok = ok && own.n == asked->n && !memcmp(own.at, asked->at, (size_t)own.n * sizeof *own.at);
    else
      *asked = own;
  }
  return ok;
}

/* Adds the loads and operations below the roots. had: loads that already have an access. */
static bool loads_add(Kernel *k, KernelShape *c, UOp **root, int nroot, bool in_sum, const UOpVec *all,
                      UOpVec *had) {
  UOpVec order = {0};
  Clauses asked = {0};
  bool ok = (!in_sum || sums_asked(k, c, &asked)) && uop_toposort(k->st, k->mem, root, (size_t)nroot, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    bool number = u->dtype != DT_INDEX && (u->dtype != DT_BOOL || uop_has(u, INDEX));
    bool alu = op_is_alu((Ops)u->op) && number;
    if (in_sum && alu && !is_fused(c, u)) operation_add(c, u);
    if (!in_sum && alu && uop_has(u, REDUCE)) c->after += target_weight(c->target, u);
    if (u->op != OPS_INDEX || vec_has(had, u)) continue;
    int n = c->naccess;
    ok = vec_push(k->mem, had, u) && access_add(k, c, u, in_sum, &asked, all);
    if (ok && c->naccess > n && c->access[c->naccess - 1].converted)
      work_add(c, (Work){.on = loops_of(c, u), .converts = c->naccess - 1, .weight = 1});
  }
  vec_free(k->mem, &order);
  return ok;
}

/* Whether two reads of a buffer are always in the same cache lines: loops that leave a line move both
 * alike, and within one iteration of these loops the two stay closer than the next iteration is. The
 * scales of a block of packed weights are beside its values in this way, and the window of a stencil
 * beside itself. */
static bool lines_shared(Kernel *k, const KernelShape *c, const Access *a, const Access *b) {
  int64_t next = INT64_MAX;
  bool alike = a->index->src[0] == b->index->src[0] && index_naxes(a->index) == index_naxes(b->index);
  if (!alike || !a->even || !b->even) return false;
  for (int r = 0; r < c->n; r++) {
    int64_t by = llabs(a->by[r]) * a->bytes;
    if (by < LINE && llabs(b->by[r]) * b->bytes < LINE) continue;
    if (a->by[r] != b->by[r]) return false;
    if (by < next) next = by;
  }
  int64_t step = 1;
  UOp *apart = num(k, 0);
  for (int d = index_naxes(a->index) - 1; d >= 0; d--) {
    UOp *each = ix(k, OPS_SUB, a->index->src[1 + d], b->index->src[1 + d]);
    apart = ix(k, OPS_ADD, apart, ix(k, OPS_MUL, each, num(k, step)));
    step *= a->index->src[0]->nsrc ? a->index->src[0]->src[d]->arg.v.i : 1;
  }
  if (!apart || apart->vmin == INT64_MIN || apart->vmax == INT64_MAX) return false;
  int64_t most = TG_MAX(llabs(apart->vmin), llabs(apart->vmax));
  return most < next / a->bytes;
}

static void find_beside(Kernel *k, KernelShape *c) {
  for (int b = 0; b < c->naccess; b++) {
    c->access[b].beside = -1;
    for (int a = c->nstore; a < b && c->access[b].beside < 0; a++)
      if (c->access[a].beside < 0 && lines_shared(k, c, &c->access[a], &c->access[b]))
        c->access[b].beside = a;
  }
}

/* Makes the target one for numbers of 8 bytes: registers hold half as many of them as of f32, which the
 * model counts in. */
static void target_of_eight(KernelShape *c) {
  c->eight = *c->target;
  c->eight.vec_bytes /= 2;
  c->eight.fmas /= 2, c->eight.ops /= 2;
  c->target = &c->eight;
}

/* The loops that alone decide whether a clause of a gate holds. */
static uint32_t clauses_of_one(const KernelShape *c, const UOp *index) {
  UOp *clause[MOST_CLAUSES];
  int n = index->arg.i ? gate_clauses(index_gate(index), clause) : 0;
  uint32_t decides = 0;
  for (int i = 0; i < n; i++) {
    uint32_t on = loops_of(c, clause[i]);
    if (!(on & (on - 1))) decides |= on;
  }
  return decides;
}

/* Adds the loops of the reductions from `first` on, which are not outermost. Each has loops of its own or
 * those of another in its body, and is nested in the loops of a reduction that needs it. */
static bool inner_loops_add(KernelShape *c, UOp *const *sum, int first) {
  bool ok = true;
  for (int i = first; ok && i < c->nsum; i++) {
    bool had = false;
    for (int j = first; j < i; j++)
      had |= same_loops(sum[i], sum[j]);
    for (int s = 1; ok && !had && s < sum[i]->nsrc; s++)
      ok = loop_add(c, sum[i]->src[s], true);
  }
  return ok;
}

static uint32_t own_loops(const KernelShape *c, const UOp *sum) {
  uint32_t own = 0;
  for (int r = 0; r < c->n; r++)
    for (int s = 1; s < sum->nsrc; s++)
      own |= (sum->src[s] == c->range[r] ? 1u : 0) << r;
  return own;
}

/* Finds the bodies. Returns false if there are too many, or if a reduction is not nested in the loops of
 * the one that needs it. */
static bool bodies_find(KernelShape *c, UOp *const *sum, int nouter) {
  if (!c->nsum) c->body[c->nbody++] = (Body){.loops = (1u << c->n) - 1};
  for (int i = 0; i < c->nsum; i++) {
    bool products = sum[i]->arg.reduce.op == OPS_ADD && c->value[i]->op == OPS_MUL;
    Body b = {.own = own_loops(c, sum[i]), .nsum = 1, .fused = products};
    b.integers = !dtype_is_float((DType)sum[i]->dtype);
    b.loops = i < nouter ? ((1u << c->n) - 1) & ~(c->reduce & ~b.own) : loops_of(c, c->value[i]) | b.own;
    int at = 0;
    while (at < c->nbody && (c->body[at].loops != b.loops || c->body[at].own != b.own))
      at++;
    if (at < c->nbody) {
      c->body[at].nsum++;
      c->body[at].fused &= products;
      continue;
    }
    if (at == MAX_BODIES || (at && !(b.loops & c->reduce & ~b.own))) return false;
    c->body[c->nbody++] = b;
  }
  return true;
}

/* Finds the conditions under which a summand counts: they bound the loops of the sum (loop_bounds.c). */
static void bounds_find(KernelShape *c) {
  for (int i = 0; i < c->nsum; i++) {
    UOp *v = c->value[i];
    Clauses all;
    product_clauses(v, &all);
    if (v->op == OPS_WHERE && is_const(v->src[2])) all.n = gate_clauses(v->src[0], all.at);
    for (int j = 0; j < all.n; j++) {
      uint32_t on = loops_of(c, all.at[j]);
      for (int r = 0; r < c->n; r++)
        if (on >> r & 1) c->bounds[r] |= on & c->reduce;
    }
  }
}

/* Settles what the outermost sums tell: which loops they are over, and whether blocks of them can add up
 * in an output. Returns false if they are summed in different loops. */
static bool sums_settle(Kernel *k, KernelShape *c, UOp *const *sum, int nouter) {
  UOp *reduce = sum[0];
  c->plain = c->nstore == 1 && k->sink->src[0]->src[1] == reduce;
  c->whole = c->nbody == 1;
  for (int i = 0; i < k->sink->nsrc; i++)
    c->whole &= k->sink->src[i]->nsrc - 2 == c->n - (reduce->nsrc - 1) && !k->sink->src[i]->src[0]->arg.i;
  for (int r = 0; r < c->n; r++) {
    if (depends(k, reduce, c->range[r])) c->summed |= 1u << r;
    for (int i = 1; i < nouter; i++)
      if (depends(k, sum[i], c->range[r]) != (bool)(c->summed >> r & 1)) return false;
    c->whole &= (c->reduce | c->summed) >> r & 1; /* each output has its own sum */
  }
  c->plain &= c->whole;
  for (int a = 1; a < c->naccess; a++)
    c->plain &= c->access[a].slot != c->access[0].slot;
  return true;
}

bool kernel_shape(Kernel *k, double at, KernelShape *c) {
  UOpVec order = {0}, had = {0};
  UOp *sum[MAX_SUMS];
  memset(c, 0, sizeof *c);
  c->at = at;
  c->target = k->opt->target;
  c->invariant = k->opt->invariant;
  c->nests = 1;
  int nouter = 0;
  bool ok = kernel_nodes(k, k->sink, &order) && sums_found(k, &order, c, sum, &nouter);
  UOp *reduce = ok && c->nsum ? sum[0] : NULL;
  ok = ok && k->sink->nsrc >= 1;
  for (int i = 0; ok && i < c->nsum; i++)
    if (dtype_size((DType)sum[i]->dtype) == 8 && c->target != &c->eight) target_of_eight(c);
  ok = ok && outputs_add(k, c, k->sink, reduce);
  for (int i = 1; ok && reduce && i < reduce->nsrc; i++)
    ok = loop_add(c, reduce->src[i], true);
  ok = ok && inner_loops_add(c, sum, nouter) && bodies_find(c, sum, nouter);
  if (ok) bounds_find(c);
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = access_add(k, c, k->sink->src[i]->src[0], false, &(Clauses){0}, &order) && c->access[i].even &&
         !c->access[i].gated;
  c->nstore = k->sink->nsrc;
  if (ok && reduce) ok = loads_add(k, c, c->value, c->nsum, true, &order, &had);
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = loads_add(k, c, &k->sink->src[i]->src[1], 1, !reduce, &order, &had);
  for (int r = 0; ok && r < c->n; r++)
    ok = c->size[r] > 0;
  if (ok) find_beside(k, c);
  if (ok && reduce) ok = sums_settle(k, c, sum, nouter);
  if (ok && !reduce) c->summed = (1u << c->n) - 1;
  for (int a = 0; ok && !reduce && a < c->naccess; a++)
    c->decides |= clauses_of_one(c, c->access[a].index);
  vec_free(k->mem, &order), vec_free(k->mem, &had);
  return ok;
}
