/* kernel_cost.c: the estimated time of a kernel, in us. In: stages with their axes in a grid, and the Target.
 * Out: a Cost. A fusion is decided by the difference of two estimates, so what both sides have in common need
 * not be right.
 *
 * This is not the planner's estimate (plan/cost.c), because it is made much more often and before a kernel
 * exists. The training step of a small GPT has 1,380 candidates for its 106 kernels. On a Zen 3 core all of
 * its scheduling takes 3 ms, and the planner spends 0.11 ms on each kernel that is left. The two estimates
 * share the Target, the model of a register tile (plan/tile.h) and the share of a gate (plan/gate.h). */
#include "schedule/stage.h"
#include "plan/gate.h"
#include "plan/tile.h"
#include "uop/rules.h"
#include <math.h>
#include <string.h>

int64_t range_extent(const UOp *r) { return r->op == OPS_RANGE ? TG_MAX(r->src[0]->vmax, 0) : 1; }

bool ints_have(const IntVec *v, int x) {
  for (size_t i = 0; i < v->len; i++)
    if (v->at[i] == x) return true;
  return false;
}

int64_t inner_size(Sched *s, const Gmap *g, int i) { /* number of elements per grid point */
  const Stage *q = &s->stages.at[i];
  int64_t n = 1;
  for (int d = 0; d < q->nout; d++)
    if (q->out[d]->op == OPS_RANGE && g->of(g, i, d) < 0) n *= range_extent(q->out[d]);
  return n;
}

/* ---- work of one stage, whatever kernel it is in. An operation is counted over the loops that it depends
 * on. The root of a row is counted once per row. What a nested reduction computes is counted once per
 * iteration of all loops around it. */
enum { LANE_BY_LANE = 8, MOST_SCANNED = 64, ROWS_IN_CACHE = 32 };

static const double COPY_SLOWS = 1.2; /* factor for a sum of products that copies a factor */
/* A cache line is read before a part of it is written, so writing moves twice the bytes. */
static const double WRITTEN = 2;

typedef struct Scan {
  Sched *s;
  Stage *g;
  UOp *loop[MOST_SCANNED]; /* bit i of a set of loops stands for loop[i] */
  int nloop;
  uint64_t out;
} Scan;

static uint64_t loop_bit(Scan *c, UOp *r) {
  int i = 0;
  while (i < c->nloop && c->loop[i] != r)
    i++;
  if (i == MOST_SCANNED) return 0;
  if (i == c->nloop) c->loop[c->nloop++] = r;
  return UINT64_C(1) << i;
}

static double trips_of(const Scan *c, uint64_t loops) {
  double n = 1;
  for (int i = 0; i < c->nloop; i++)
    if (loops >> i & 1) n *= (double)range_extent(c->loop[i]);
  return n;
}

/* The weight of a read whose lanes are loaded one by one, because its index is data or a quotient; otherwise
 * 0. A GPU's thread loads its own element in any case. */
static double gather_weight(const Target *t, const UOp *index) {
  const UOp *last = index->src[last_axis(index)];
  bool apart = t->warp <= 1 && (uop_has(last, INDEX) || divides_sum(last));
  return apart ? LANE_BY_LANE : 0;
}

static bool is_own_loop(const Stage *g, const UOp *r) {
  for (int d = 0; d < g->nout; d++)
    if (g->out[d] == r) return true;
  for (int d = 0; d < g->nred; d++)
    if (g->red[d] == r) return true;
  return false;
}

/* How often a value that depends on these loops is computed inside the stage. A compiler moves it out of
 * innermost loops of a reduction that it does not depend on. On a GPU each thread computes it for itself. */
static double iterations_within(Scan *c, uint64_t loops) {
  const Stage *g = c->g;
  double n = 1, within;
  for (int d = 0; d < g->nout; d++)
    n *= (double)range_extent(g->out[d]);
  within = n;
  uint64_t own = c->out;
  for (int d = 0; d < g->nred; d++) {
    uint64_t bit = g->red[d]->op == OPS_RANGE ? loop_bit(c, g->red[d]) : 0;
    n *= (double)range_extent(g->red[d]);
    own |= bit;
    if (loops & bit) within = n;
  }
  return (loops & ~own) || c->s->opt->target->warp > 1 ? n : within;
}

static uint64_t longest_loop(const Scan *c, uint64_t loops) {
  int most = -1;
  for (int i = 0; i < c->nloop; i++)
    if ((loops >> i & 1) && (most < 0 || range_extent(c->loop[i]) > range_extent(c->loop[most]))) most = i;
  return most < 0 ? 0 : UINT64_C(1) << most;
}

/* The loops along which the next iteration reads the next element. */
static uint64_t steps_of(Scan *c, const UOp *index) {
  UOp *e = index->src[last_axis(index)];
  uint64_t steps = 0;
  /* the remainder is the last axis of those that e is split into; the quotients are the rest */
  while (e->op == OPS_FLOORMOD)
    e = e->src[0];
  for (; e->op == OPS_ADD; e = e->src[0]) /* the right side of a sum is always a single term */
    if (e->src[1]->op == OPS_RANGE) steps |= loop_bit(c, e->src[1]);
  return e->op == OPS_RANGE ? steps | loop_bit(c, e) : steps;
}

static int64_t axis_extent(const Scan *c, const UOp *index, int axis) {
  int q = read_stage(index);
  const UOp *memory = index->src[0];
  if (q >= 0) return range_extent(c->s->stages.at[q].out[axis]);
  return memory->nsrc && is_const(memory->src[axis]) ? memory->src[axis]->arg.v.i : memory->arg.param.nelem;
}

/* The loops whose iterations read one run of memory together: axes that are read whole, and the first axis
 * outside them. Of loops that move the last axis together, as in windows, only the longest counts. */
static uint64_t run_of(Scan *c, const UOp *index) {
  int last = last_axis(index);
  if (index->src[last]->op != OPS_RANGE) return longest_loop(c, steps_of(c, index));
  uint64_t run = 0;
  for (int i = last; i >= 1 && index->src[i]->op == OPS_RANGE; i--) {
    run |= loop_bit(c, index->src[i]);
    if (range_extent(index->src[i]) != axis_extent(c, index, i - 1)) break;
  }
  return run;
}

const UOp *gated_value(const UOp *v) {
  if (v->op == OPS_CAST) return v->src[0];
  if (v->op == OPS_WHERE && is_const(v->src[2])) return v->src[1];
  return v->op == OPS_WHERE && is_const(v->src[1]) ? v->src[2] : NULL;
}

static const UOp *product_of(const UOp *reduce) {
  const UOp *v = reduce->src[0];
  if (reduce->arg.reduce.op != OPS_ADD) return NULL;
  while (gated_value(v))
    v = gated_value(v);
  bool memory = v->op == OPS_MUL && uop_has(v->src[0], INDEX) && uop_has(v->src[1], INDEX);
  return memory ? v : NULL;
}

static uint32_t outs_of(Scan *c, uint64_t loops) {
  uint32_t outs = 0;
  for (int d = 0; d < c->g->nout; d++)
    if (c->g->out[d]->op == OPS_RANGE && (loop_bit(c, c->g->out[d]) & loops)) outs |= UINT32_C(1) << d;
  return outs;
}

/* A stage has room for MOST_PRODUCTS products. The trips of any further product are added to the last one. */
static void product_add(Scan *c, const UOp *product, const LoopSet *of, double trips) {
  const LoopSet *a = &of[product->src[0]->id], *b = &of[product->src[1]->id];
  bool full = c->g->nproduct == MOST_PRODUCTS;
  Product *p = &c->g->product[full ? MOST_PRODUCTS - 1 : c->g->nproduct++];
  uint64_t run = (a->run & (b->run | ~b->loops)) | (b->run & (a->run | ~a->loops));
  if (!full)
    *p = (Product){.moves = {outs_of(c, a->loops), outs_of(c, b->loops)},
                   .side = {outs_of(c, a->steps), outs_of(c, b->steps)},
                   .along = trips_of(c, run & ~c->out),
                   .longest = trips_of(c, longest_loop(c, (a->loops | b->loops) & ~c->out)),
                   .depth = trips / trips_of(c, (a->loops | b->loops) & c->out)};
  p->trips += trips;
}

static void scan_reduce(Scan *c, const UOp *u, LoopSet *of) {
  uint64_t own = 0;
  for (int k = 1; k < u->nsrc; k++)
    if (u->src[k]->op == OPS_RANGE) own |= loop_bit(c, u->src[k]);
  LoopSet *me = &of[u->id], *src = &of[u->src[0]->id];
  double n = trips_of(c, src->loops | own);
  const UOp *p = product_of(u);
  me->loops = src->loops & ~own;
  me->steps = src->steps & ~own;
  me->run = src->run & ~own;
  if (!p) {
    c->g->ops += n;
    return;
  }
  for (const UOp *v = u->src[0]; v != p; v = gated_value(v))
    /* codegen clips its loop instead */
    if (v->op == OPS_WHERE) c->g->ops -= trips_of(c, of[v->id].loops);
  for (int i = 0; i < 2; i++)
    c->g->gated |= p->src[i]->op == OPS_WHERE; /* padding: the factor is loaded behind a gate */
  c->g->ops -= trips_of(c, of[p->id].loops);
  c->g->flops += 2 * n;
  product_add(c, p, of, n);
}

static const UOp *reduced(const Stage *g) { /* what the stage reduces, or NULL */
  return g->is_reduce && g->value && g->value->op == OPS_REDUCE ? g->value->src[0] : NULL;
}

/* Sets g->share. A reduction combines only its identity where the condition fails, so codegen bounds its
 * loops (loop_bounds.c). */
static void find_share(Stage *g) {
  const UOp *v = g->is_reduce ? reduced(g) : g->value;
  g->share = 1;
  g->other = NULL;
  if (!v || v->op != OPS_WHERE || !(is_const(v->src[1]) || is_const(v->src[2]))) return;
  bool holds = is_const(v->src[2]);
  if (g->is_reduce && !is_neutral(g->value, v->src[holds ? 2 : 1])) return;
  g->share = gate_share(v->src[0], holds);
  g->other = v->src[holds ? 2 : 1];
}

bool stage_scan(Sched *s, int i) {
  UOpVec order = {0};
  bool ok = uop_toposort(s->st, s->mem, &s->stages.at[i].value, 1, &order);
  Stage *g = &s->stages.at[i];
  Scan c = {.s = s, .g = g};
  s->scans++;
  g->reads.len = g->deps.len = 0;
  g->reads_us = -1;
  g->mapped = false;
  g->weight = g->ops = g->apart = g->flops = 0;
  g->nproduct = 0;
  g->heavy = g->gathers = g->gated = false;
  g->nreduce = g->nested_loops = 0;
  find_share(g);
  for (int d = 0; d < g->nout; d++) {
    if (!g->out[d]) return vec_free(s->mem, &order), false;
    if (g->out[d]->op == OPS_RANGE) c.out |= loop_bit(&c, g->out[d]);
  }
  while (ok && s->loops.len < store_id_limit(s->st))
    ok = vec_push(s->mem, &s->loops, (LoopSet){0});
  LoopSet *of = s->loops.at;
  for (size_t k = 0; ok && k < order.len; k++) {
    UOp *u = order.at[k];
    LoopSet *me = &of[u->id];
    *me = (LoopSet){0};
    for (int j = 0; j < u->nsrc; j++) {
      const LoopSet *src = &of[u->src[j]->id];
      me->loops |= src->loops;
      me->steps |= src->steps;
      me->run |= src->run;
    }
    double w = target_weight(s->opt->target, u), apart = 0;
    if (u->op == OPS_INDEX) apart = gather_weight(s->opt->target, u);
    g->weight += w + apart;
    g->heavy |= op_is_transcendental((Ops)u->op);
    if (u->op == OPS_RANGE) {
      me->loops = loop_bit(&c, u);
      g->nested_loops += !is_own_loop(g, u);
    }
    if (u->op == OPS_REDUCE) scan_reduce(&c, u, of), g->nreduce++;
    if (w) g->ops += w * trips_of(&c, me->loops);
    if (apart) g->apart += apart * trips_of(&c, me->loops);
    if (u->op != OPS_INDEX) continue;
    me->steps = steps_of(&c, u);
    me->run = run_of(&c, u);
    g->gathers |= index_is_data(u);
    int d = read_stage(u);
    uint64_t slot = (uint64_t)u->src[0]->arg.param.slot, last = 0;
    bool again = map_get(&s->scanned, slot, &last) && last == s->scans;
    Read rd = {u,     d, trips_of(&c, me->loops), iterations_within(&c, me->loops), outs_of(&c, me->loops),
               again, -1};
    ok = vec_push(s->mem, &g->reads, rd) &&
         (again || (map_put(&s->scanned, slot, s->scans) && (d < 0 || vec_push(s->mem, &g->deps, d))));
  }
  g->ops += (double)stage_out_size(g); /* the store */
  vec_free(s->mem, &order);
  return ok;
}

static bool in_list(const int *v, size_t n, int x) {
  for (size_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* The bytes of local memory for the rows of these stages. The warps of a GPU's block combine each reduction
 * there, too. */
static int64_t rows_most(const Sched *s, const int *mem, size_t nmem) {
  enum { ROW_THREADS = 256, ALIGN = 16 };

  const Target *t = s->opt->target;
  int64_t joins = 0;
  for (size_t k = 0; k < nmem && t->warp > 1; k++) {
    const Stage *q = &s->stages.at[mem[k]];
    int64_t bytes = ROW_THREADS / t->warp * (int64_t)dtype_size(stage_dtype(q));
    if (q->is_reduce) joins += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  }
  return TG_MAX(TG_MIN(t->local_bytes, t->local_most - joins), 0);
}

bool local_plan(Sched *s, const Gmap *g, const int *mem, size_t nmem, int64_t *elems, int64_t *bytes) {
  int64_t most = rows_most(s, mem, nmem);
  *bytes = 0;
  for (int optional = 0; optional < 2;
       optional++) /* rows of reductions first, because other rows can be computed again */
    for (size_t k = 0; k < nmem; k++) {
      const Stage *q = &s->stages.at[mem[k]];
      bool must = q->is_reduce || uop_has(q->value, REDUCE);
      if (!optional) elems[k] = 0;
      if (must == (bool)optional || q->is_store || (!must && !q->heavy)) continue;
      int64_t n = inner_size(s, g, mem[k]), size = (int64_t)dtype_size(stage_dtype(q));
      int readers = 0;
      bool written = q->keep;
      for (size_t l = 0; n > 1 && l < q->readers.len; l++) {
        bool inside = in_list(mem, nmem, q->readers.at[l]);
        readers += inside;
        written |= !inside;
      }
      if (!readers || (!must && readers + written < 2)) continue;
      if (n > most / size || *bytes + n * size > most) {
        if (!must) continue;
        *bytes = n > INT64_MAX / size ? INT64_MAX : *bytes + n * size;
        return false;
      }
      elems[k] = n;
      *bytes += n * size;
    }
  return true;
}

/* A kernel has at most 64 loops. The loops of a nest mostly become one, which opts then cut into whole blocks
 * and a rest, each of two loops. is_buildable also bounds repetition: if each stage of a chain read the one
 * before at two places, the expression would double at every step, and the C compiler's time too. A gather of
 * a gathered value doubles its conditions in the same way. */
enum { MOST_LOOPS = 60, LOOPS_OF_NEST = 4 };

typedef struct Loops {
  int axes, nests;
} Loops;

static void count_nest(Loops *l, int naxes) {
  l->axes += naxes;
  l->nests += naxes > 0;
}

/* Adds the loops that member m adds to its kernel: those it reduces over, those that fill its row, and those
 * that write it to memory. */
static void count_loops(Loops *l, const Stage *m, const Gmap *gm, int i, bool row, bool written) {
  int nred = 0, inner = 0;
  for (int d = 0; d < m->nred; d++)
    nred += m->red[d]->op == OPS_RANGE;
  for (int d = 0; d < m->nout; d++)
    inner += m->out[d]->op == OPS_RANGE && gm->of(gm, i, d) < 0;
  count_nest(l, nred), count_nest(l, m->nested_loops);
  if (m->is_reduce || row) count_nest(l, inner);
  if (!m->is_reduce && written) count_nest(l, inner);
}

static bool too_many_loops(const Loops *l) {
  return l->axes > MOST_LOOPS || l->nests * LOOPS_OF_NEST > MOST_LOOPS;
}

/* ---- work of a kernel */
typedef struct Members {
  Sched *s;
  const int *mem;
  size_t n;
  const Gmap *gm;
  double rows; /* number of grid points */
  int nreduce;
  bool sums; /* the kernel has a sum of products, whose lanes are along the grid */
  int64_t elems[MAX_MEMBERS];
  double share[MAX_MEMBERS]; /* by member: the share of its iterations that count in this kernel */
} Members;

static size_t member_of(const Members *m, int stage) { /* m->n: it is in another kernel, or a buffer */
  size_t at = 0;
  while (at < m->n && m->mem[at] != stage)
    at++;
  return at;
}

/* ---- which stage reads which. Most stages read few stages, which are searched in a list. A stage that adds
 * up thousands of values is estimated with each kernel that computes some of them. It has a map, so each
 * estimate looks up only the members. */
enum { FEW_READS = 16 };

static uint64_t read_key(int reader, int stage) { return (uint64_t)(uint32_t)reader << 32 | (uint32_t)stage; }

bool reads_map(Sched *s) {
  for (size_t i = 0; i < s->stages.len; i++) {
    Stage *g = stage_at(s, (int)i);
    if (g->inlined || g->deps.len <= FEW_READS) continue;
    /* from the last to the first, because each read is put before the later ones */
    for (size_t j = g->reads.len; j-- > 0;) {
      Read *rd = &g->reads.at[j];
      uint64_t next;
      if (rd->stage < 0) continue;
      rd->next = map_get(&s->reads, read_key((int)i, rd->stage), &next) ? (int)next : -1;
      if (!map_put(&s->reads, read_key((int)i, rd->stage), j)) return false;
    }
    g->mapped = true;
  }
  return true;
}

int read_first(const Sched *s, int reader, int stage) {
  uint64_t j;
  return map_get(&s->reads, read_key(reader, stage), &j) ? (int)j : -1;
}

bool stage_reads(const Sched *s, int reader, int stage) {
  const Stage *g = &s->stages.at[reader];
  return g->mapped ? read_first(s, reader, stage) >= 0 : ints_have(&g->deps, stage);
}

static bool read_by_others(const Members *m, size_t k, int stage) {
  for (size_t l = 0; l < k && stage >= 0; l++)
    if (stage_reads(m->s, m->mem[l], stage)) return true;
  return false;
}

static bool put_reads(Sched *s, int reader, int stage) {
  for (int j = read_first(s, reader, stage); j >= 0; j = stage_at(s, reader)->reads.at[j].next)
    if (!vec_push(s->mem, &s->near, j)) return false;
  return true;
}

/* Adds the reads of member k that earlier member l makes too, except those of members, and those that a
 * member before l makes. */
static bool put_shared(const Members *m, size_t l, size_t k) {
  Sched *s = m->s;
  const IntVec *a = &stage_at(s, m->mem[l])->deps, *b = &stage_at(s, m->mem[k])->deps;
  const IntVec *some = a->len < b->len ? a : b;
  int other = m->mem[a->len < b->len ? k : l];
  for (size_t d = 0; d < some->len; d++) {
    int stage = some->at[d];
    if (!stage_reads(s, other, stage) || member_of(m, stage) < m->n || read_by_others(m, l, stage)) continue;
    if (!put_reads(s, m->mem[k], stage)) return false;
  }
  return true;
}

/* Collects in s->near the reads of a mapped member k that are of members, and, if `shared`, those that an
 * earlier member makes too. Returns false if out of memory. */
static bool near_reads(const Members *m, size_t k, bool shared) {
  m->s->near.len = 0;
  for (size_t l = 0; l < m->n; l++)
    if (!put_reads(m->s, m->mem[k], m->mem[l]) || (shared && l < k && !put_shared(m, l, k))) return false;
  return true;
}

static bool is_written(const Members *m, const Stage *g) {
  bool written = g->keep;
  for (size_t l = 0; l < g->readers.len && !written; l++)
    written = !in_list(m->mem, m->n, g->readers.at[l]);
  return written;
}

/* The largest share of iterations in which another member needs the value of member k. */
static double share_needed(const Members *m, size_t k) {
  const Stage *g = stage_at(m->s, m->mem[k]);
  double most = is_written(m, g) ? 1 : 0;
  for (size_t l = k + 1; most < 1 && l < m->n; l++) {
    const Stage *r = stage_at(m->s, m->mem[l]);
    int j = r->mapped ? read_first(m->s, m->mem[l], m->mem[k]) : 0;
    for (; j >= 0 && j < (int)r->reads.len; j = r->mapped ? r->reads.at[j].next : j + 1) {
      const Read *rd = &r->reads.at[j];
      bool each = rd->trips == (double)stage_out_size(g);
      if (rd->stage == m->mem[k]) most = TG_MAX(most, each ? m->share[l] : 1);
    }
  }
  return most;
}

/* Sets the share of each member. A reduction skips values that are its identity. A value that all its readers
 * skip is not computed. The threads of a GPU's block all run as long as the longest, so nothing is saved
 * there. */
static void find_shares(Members *m) {
  bool some = false;
  for (size_t k = 0; k < m->n; k++) {
    m->share[k] = 1;
    some |= stage_at(m->s, m->mem[k])->share < 1;
  }
  some = some && m->s->opt->target->warp <= 1;
  for (size_t k = m->n; some && k-- > 0;) {
    const Stage *g = stage_at(m->s, m->mem[k]);
    const UOp *of = reduced(g);
    size_t from = of && of->op == OPS_INDEX ? member_of(m, read_stage(of)) : m->n;
    const Stage *q = from < m->n ? stage_at(m->s, m->mem[from]) : g; /* the stage whose condition decides */
    m->share[k] = share_needed(m, k);
    if (g->is_reduce && q->other && is_neutral(g->value, q->other))
      m->share[k] = TG_MIN(m->share[k], q->share);
  }
}

double value_bytes(const Stage *g, double n) { return n * (double)dtype_size(stage_dtype(g)); }

/* Returns false if an expression would be written out too often, or if there would be too many loops. */
static bool is_buildable(const Members *m, int ngrid) {
  Loops loops = {ngrid, 0};
  /* by member: operations including all that is computed again; total of the latter */
  double written_out[MAX_MEMBERS], repeated = 0;
  for (size_t k = 0; k < m->n; k++) {
    const Stage *g = stage_at(m->s, m->mem[k]);
    written_out[k] = g->weight + 1;
    if (g->mapped && !near_reads(m, k, false)) return false;
    for (size_t j = 0; j < (g->mapped ? m->s->near.len : g->reads.len); j++) {
      const Read *rd = &g->reads.at[g->mapped ? (size_t)m->s->near.at[j] : j];
      size_t at = member_of(m, rd->stage);
      if (at >= k || m->elems[at] || stage_at(m->s, rd->stage)->is_reduce) continue;
      bool again = inner_size(m->s, m->gm, rd->stage) > 1;
      if (again && stage_at(m->s, rd->stage)->gathers && index_is_data(rd->index)) return false;
      written_out[k] += again ? written_out[at] : 1;
      repeated += again ? written_out[at] : 0;
    }
    count_loops(&loops, g, m->gm, m->mem[k], m->elems[k] > 0, is_written(m, g));
    if (m->n > 1 && (repeated > MOST_REPEATED || too_many_loops(&loops))) return false;
  }
  return true;
}

double read_bytes(const Sched *s, const Read *rd, double trips) {
  double elem = rd->stage >= 0 ? (double)stage_out_size(&s->stages.at[rd->stage])
                               : (double)rd->index->src[0]->arg.param.nelem;
  return TG_MIN(elem, trips) * (double)dtype_size((DType)rd->index->dtype);
}

/* Whether rows are computed in blocks (codegen/online.c): sums of what is left after the maximum of the row
 * is subtracted. This is an estimate; the opt decides later whether all sums allow it. */
static bool has_maximum(const Members *m) {
  bool found = false;
  for (size_t k = 0; k < m->n; k++) {
    const UOp *n = stage_at(m->s, m->mem[k])->node;
    found |= n->op == OPS_REDUCE_AXIS && n->arg.reduce.op == OPS_MAX && !m->elems[k];
  }
  return found;
}

/* The rows that one core batches in local memory: the rows of the tile of a sum of products whose own axis
 * left the grid. The threads of a GPU's block share one row. A value behind a gate gets a tile only by a copy
 * without the gate (STAGE), and the nest of one row cannot share that copy with the next row. */
static double rows_together(const Members *m, const Stage *g) {
  if (g->gated) return 1;
  const Target *t = m->s->opt->target;
  double row = 1, longest = has_maximum(m) ? ONLINE_BLOCK : INFINITY;
  for (size_t k = 0; k < m->n; k++)
    row += value_bytes(stage_at(m->s, m->mem[k]), TG_MIN((double)m->elems[k], longest));
  double some = TG_MIN(TG_MIN(m->rows, (double)t->local_bytes / row), ROWS_IN_CACHE);
  return t->warp <= 1 && some >= (double)t->vec_bytes / 4 ? some : 1; /* a row to a lane (codegen/rows.c) */
}

/* The bytes that a read touches for one point of the grid. */
static double point_bytes(const Members *m, const Stage *g, int i, const Read *rd) {
  double trips = rd->trips;
  for (int d = 0; d < g->nout; d++)
    if ((rd->outs >> d & 1) && m->gm->of(m->gm, i, d) >= 0) trips /= (double)range_extent(g->out[d]);
  return read_bytes(m->s, rd, trips);
}

/* The outputs of a tile that share a value which does not depend on them. It is computed once for all of them
 * if it is computed from memory alone; other stages may be rows of the same kernel. */
static double tile_shares(const Members *m, const Stage *g, const Read *rd) {
  const Target *t = m->s->opt->target;
  const Stage *q = stage_at(m->s, rd->stage);
  double n = 1;
  for (size_t k = 0; k < q->reads.len; k++)
    if (q->reads.at[k].stage >= 0) return 1;
  for (int d = 0; d < g->nout; d++)
    if (!(rd->outs >> d & 1)) n *= (double)range_extent(g->out[d]);
  return (g->nproduct || g->is_reduce) && t->warp <= 1 ? TG_MIN(n, t->registers / 4) : 1;
}

/* The elements of a stage that are computed again because it is computed where it is read. The first reader's
 * elements are the stage's own, unless it is also written, in a loop of its own. */
static double computed_again(const Members *m, size_t k, const Read *rd) {
  const Stage *q = stage_at(m->s, rd->stage);
  double own = read_by_others(m, k, rd->stage) || is_written(m, q) ? 0 : (double)stage_out_size(q);
  return TG_MAX(rd->within / tile_shares(m, stage_at(m->s, m->mem[k]), rd) - own, 0);
}

/* The loops that tiles of a product are cut from. most: iterations of the grid that a core runs at once; 0:
 * there is no tile. copied: a copy makes a factor contiguous along any of its loops. */
static TileLoops tile_loops(const Members *m, size_t k, const Product *p, double most, bool copied) {
  const Stage *g = stage_at(m->s, m->mem[k]);
  TileLoops l = {{1, 1}, {1, 1}, copied ? p->longest : p->along, p->depth};
  for (int f = 0; f < 2; f++) {
    double grid = 1;
    for (int d = 0; d < g->nout; d++) {
      double n = (double)range_extent(g->out[d]);
      bool in_grid = m->gm->of(m->gm, m->mem[k], d) >= 0;
      if (((p->moves[f] & ~p->moves[!f]) >> d & 1) && in_grid) grid *= n;
      if (((p->moves[f] & ~p->moves[!f]) >> d & 1) && !in_grid) l.results[f] *= n;
      if ((copied ? p->moves[f] : p->side[f]) >> d & 1) l.lanes[f] = TG_MAX(l.lanes[f], n);
    }
    l.results[f] = most ? l.results[f] * TG_MIN(grid, most) : 1;
  }
  return l;
}

/* The time for the sums of products of member k, on one core. A factor may be copied (STAGE, on threads that
 * have a nest of their own). */
static double products_us(const Members *m, size_t k, double most, bool may_copy) {
  const Target *t = m->s->opt->target;
  const Stage *g = stage_at(m->s, m->mem[k]);
  double cycles = 0;
  for (int i = 0; i < g->nproduct; i++) {
    const Product *p = &g->product[i];
    TileLoops plain = tile_loops(m, k, p, most, false), copied = tile_loops(m, k, p, most, true);
    double each = tile_product(t, &plain);
    if (may_copy && t->warp <= 1) each = TG_MIN(each, COPY_SLOWS * tile_product(t, &copied));
    cycles += p->trips * each;
  }
  return cycles / t->mhz;
}

/* Rounds a time so that sums are exact in any order, and what is subtracted from a sum is exactly what was
 * added. */
static double exact_us(double us) { return us < 0x1p22 ? rint(us * 0x1p30) * 0x1p-30 : us; }

static double read_us(const Members *m, const Read *rd) {
  return exact_us(target_read_us(m->s->opt->target, read_bytes(m->s, rd, rd->trips)));
}

/* The time to read all that a mapped stage g reads, as if no part of it were computed in the same kernel. */
static double reads_us(const Members *m, Stage *g) {
  if (g->reads_us >= 0) return g->reads_us;
  g->reads_us = 0;
  for (size_t j = 0; j < g->reads.len; j++)
    g->reads_us += g->reads.at[j].again ? 0 : read_us(m, &g->reads.at[j]);
  return g->reads_us;
}

/* Adds the time that member k takes to get the value of member `at`. */
static void inside_cost(const Members *m, size_t k, size_t at, const Read *rd, double inner, Cost *c,
                        double *ops) {
  const Target *t = m->s->opt->target;
  const Stage *g = stage_at(m->s, m->mem[k]), *q = stage_at(m->s, rd->stage);
  double nbytes = read_bytes(m->s, rd, rd->trips);
  bool same_loop = g->is_reduce && inner == 1 && !q->is_reduce;
  if (m->elems[at])
    c->memory +=
        same_loop ? 0 : target_read_us(t, nbytes / TG_MAX(m->rows, 1)) * m->rows; /* a row in local memory */
  else if (!q->is_reduce && inner_size(m->s, m->gm, rd->stage) > 1)
    *ops += q->weight * computed_again(m, k, rd);
}

/* Adds the time of member k's reads, and the operations for values that it computes again. */
static void reads_cost(const Members *m, size_t k, double inner, Cost *c, double *ops) {
  Stage *g = stage_at(m->s, m->mem[k]);
  m->s->walked += g->mapped ? m->n : g->reads.len;
  for (size_t j = 0; j < g->reads.len && !g->mapped; j++) {
    const Read *rd = &g->reads.at[j];
    size_t at = member_of(m, rd->stage);
    if (rd->again) continue;
    if (at < m->n)
      inside_cost(m, k, at, rd, inner, c, ops);
    else if (!read_by_others(m, k, rd->stage))
      c->memory += target_read_us(m->s->opt->target, read_bytes(m->s, rd, rd->trips));
  }
  if (!g->mapped) return;
  double memory = near_reads(m, k, true) ? reads_us(m, g) : IMPOSSIBLE_US;
  for (size_t j = 0; j < m->s->near.len; j++) {
    const Read *rd = &g->reads.at[m->s->near.at[j]];
    size_t at = member_of(m, rd->stage);
    if (rd->again) continue;
    memory -= read_us(m, rd);
    if (at < m->n) inside_cost(m, k, at, rd, inner, c, ops);
  }
  c->memory += memory;
}

/* Adds the time that member k takes, on one core. */
static void member_cost(const Members *m, size_t k, Cost *c) {
  Sched *s = m->s;
  const Target *t = s->opt->target;
  const Stage *g = stage_at(s, m->mem[k]);
  double inner = (double)inner_size(s, m->gm, m->mem[k]), ops = g->ops + g->apart;
  reads_cost(m, k, inner, c, &ops);
  if (g->near && member_of(m, g->near) < m->n)
    c->memory += g->near_bytes / t->bytes_us[LEVEL_L2] - target_read_us(t, g->near_bytes);
  if (m->elems[k]) c->memory += target_read_us(t, value_bytes(g, (double)m->elems[k])) * m->rows;
  if (is_written(m, g)) c->memory += WRITTEN * target_read_us(t, value_bytes(g, (double)stage_out_size(g)));
  double lanes = t->warp > 1 ? 1 : (double)t->vec_bytes / 4;
  /* the lanes are apart in memory: one after the other */
  if (m->sums && !g->is_reduce && inner > 1 && inner < lanes)
    ops += (double)stage_out_size(g) * (double)(1 + g->reads.len) * lanes;
  c->compute += m->share[k] * ops / target_ops_us(t);
  if (!g->nproduct || inner == 1 || m->rows == 1) { /* next to other reductions it has no tile */
    c->compute += m->share[k] * products_us(m, k, m->nreduce == 1 ? INFINITY : 0, m->nreduce == 1);
    return;
  }
  double together = rows_together(m, g); /* its own axis is no longer in the grid */
  c->compute += m->share[k] * products_us(m, k, together > 1 ? together : 0, together > 1);
  for (size_t j = 0; j < g->reads.len; j++) {
    double nbytes = point_bytes(m, g, m->mem[k], &g->reads.at[j]);
    if (member_of(m, g->reads.at[j].stage) == m->n && !g->reads.at[j].again)
      c->again += (m->rows / together - 1) * target_read_us(t, nbytes);
  }
}

static double overlapped(double compute, double moved) {
  return TG_MAX(compute, moved) + OVERLAP_LEFT * TG_MIN(compute, moved);
}

/* Sets c->us: distributed over the cores, or on one core if that is faster. */
static void add_up(Cost *c, const Target *t) {
  double streams = TG_MIN(c->cores, t->streams), shared = overlapped(c->compute, c->memory + c->again);
  double alone = overlapped(c->compute * c->cores, c->memory * streams + c->again * c->cores);
  c->us = c->launch + (c->cores > 1 ? TG_MIN(t->distribute_us + shared, alone) : shared);
}

bool contracts(const Stage *g) {
  bool found = false;
  for (int i = 0; i < g->nproduct; i++)
    found |= g->product[i].moves[0] != g->product[i].moves[1];
  return found;
}

Cost kernel_cost(Sched *s, const int *mem, size_t nmem, int ngrid, UOp *const *grid, const Gmap *gm) {
  const Target *t = s->opt->target;
  Members m = {.s = s, .mem = mem, .n = nmem, .gm = gm, .rows = 1};
  Cost c = {.us = IMPOSSIBLE_US, .launch = t->launch_us};
  int64_t bytes;
  if (!local_plan(s, gm, mem, nmem, m.elems, &bytes) || !is_buildable(&m, ngrid)) return c;
  for (int g = 0; g < ngrid; g++)
    m.rows *= (double)grid[g]->vmax;
  for (size_t k = 0; k < nmem; k++) {
    m.nreduce += stage_at(s, mem[k])->nreduce;
    m.sums |= stage_at(s, mem[k])->flops > 0;
  }
  c.reduces = m.nreduce > 0;
  find_shares(&m);
  for (size_t k = 0; k < nmem; k++) {
    c.contracts |= contracts(stage_at(s, mem[k]));
    c.rounds |= stage_at(s, mem[k])->nreduce > 0 && dtype_is_float(stage_dtype(stage_at(s, mem[k])));
    member_cost(&m, k, &c);
  }
  c.cores = TG_MAX(TG_MIN(m.rows, t->cores), 1);
  c.compute /= c.cores;
  c.memory /= TG_MIN(c.cores, t->streams);
  c.again /= c.cores;
  add_up(&c, t);
  return c;
}

Cost cost_on_cores(const Sched *s, Cost c, double from, double to) {
  double streams = s->opt->target->streams;
  c.cores = to;
  c.compute *= from / to;
  c.again *= from / to;
  c.memory *= TG_MIN(from, streams) / TG_MIN(to, streams);
  add_up(&c, s->opt->target);
  return c;
}

/* The cost of the stage as a kernel of its own. Each join is compared with it. */
Cost stage_cost(Sched *s, int i, StageSet *one) {
  Stage *g = stage_at(s, i);
  StageSet k = {.level = 0, .minout = 1 << 30};
  for (int d = 0; d < g->nout; d++) {
    g->gmap[d] = -1;
    if (g->out[d]->op == OPS_RANGE && !(g->ordered >> d & 1)) {
      g->gmap[d] = k.ngrid;
      k.grid[k.ngrid++] = g->out[d]->src[0];
    }
  }
  k.cost = kernel_cost(s, &i, 1, k.ngrid, k.grid, &(Gmap){.of = gmap_placed, .s = s});
  if (one) *one = k;
  return k.cost;
}

void cost_print(Str *out, const Cost *c) {
  double most = TG_MAX(TG_MAX(c->launch, c->again), TG_MAX(c->compute, c->memory));
  if (c->us >= IMPOSSIBLE_US)
    str_put(out, "not to be built");
  else
    str_printf(out, "%.1f us (%s %.1f)", c->us,
               most == c->compute  ? "compute"
               : most == c->memory ? "memory"
               : most == c->again  ? "read again"
                                   : "launch",
               most);
}
