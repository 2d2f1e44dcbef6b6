/* online_parts.c: two reductions over one axis, of which the second needs the result of the first, in
 * parts. In: stages with hazards and an order. Out: the same stages. If rows are too long to stay in the
 * cache until they are read again, or too few for the cores, both reductions are computed for each part of
 * the row while the part is in the cache. The part's own result takes the place of the row's, and the
 * difference is corrected when the parts are put together:
 *
 *   A maximum, and a sum of terms that change with it by a factor (log-sum-exp): rules/rescale.rules
 *
 *   A maximum, and what is chosen where it is (argmax): only parts whose maximum is the row's count
 *
 *   A sum, and the squares of differences from the mean (variance): adds the squared difference of the
 *   part's mean from the row's, once for each value of the part, so that no value is squared before a mean
 *   is subtracted
 *
 * The number of parts follows from lengths alone, and parts are put together in their order, so results
 * are the same for any number of threads. */
#include "schedule/stage.h"
#include "uop/merge.h"
#include <string.h>

enum {
  BLOCK = 16384, /* values of a part, which stay in the cache */
  LEAST_BLOCK = 1024,
  LEAST_PARTS = 64,
  MOST_PARTS = 4096,
  MOST_CHAIN = 8 /* most stages between the two reductions */
};

typedef enum Kind { BY_CHANGE, BY_CHOICE, BY_MEAN } Kind;

/* A first reduction that is in parts already, and the stage as it was before. More reductions may need its
 * result. */
typedef struct Done {
  int stage, parts_stage, loop;
  int64_t parts;
  Stage whole;
} Done;

typedef Vec(Done) DoneVec;

typedef struct Pair {
  Sched *s;
  const uint8_t *pinned; /* by stage: it reads what is overwritten later */
  DoneVec *done;
  int first, second; /* numbers of the two stages */
  UOp *term;         /* what the second reduces, down to reductions and memory */
  UOp *own;          /* what the first reduces, over the loops of the second */
  UOp *result;       /* the INDEX by which the second reads the first */
  UOpVec axes;       /* the loops that the second reduces over */
  Kind kind;
  int loop; /* number of the loop of these that is cut */
  int64_t parts;
  int part_of_first, part_of_second; /* numbers of the stages that were made */
} Pair;

static Done *done_at(const Pair *p, int stage) {
  for (size_t i = 0; i < p->done->len; i++)
    if (p->done->at[i].stage == stage) return &p->done->at[i];
  return NULL;
}

static const Stage *whole_stage(const Pair *p, int i) {
  const Done *d = done_at(p, i);
  return d ? &d->whole : stage_at(p->s, i);
}

/* ---- what is reduced */
static bool may_write_out(const Pair *p, int i) {
  const Stage *g = stage_at(p->s, i);
  return !g->is_reduce && !g->is_store && !g->fixed && !g->inlined && !g->gathers && !g->after.len &&
         !g->war.len && !p->pinned[i] && !g->in_memory && !uop_has(g->value, REDUCE);
}

/* Whether stage i is computed from the result of a reduction. If so, it must be written out to find the first
 * of a pair. */
static bool is_made_of_results(const Pair *p, int i, int depth) {
  const Stage *g = stage_at(p->s, i);
  bool found = false;
  for (size_t j = 0; j < g->deps.len && !found; j++) {
    int q = g->deps.at[j];
    found = stage_at(p->s, q)->is_reduce || (depth < MOST_CHAIN && is_made_of_results(p, q, depth + 1));
  }
  return found;
}

static UOp *value_at(Sched *s, const Stage *g, const UOp *index) {
  UOp *from[MAX_RANK], *to[MAX_RANK];
  int n = 0;
  for (int d = 0; d < g->nout; d++)
    if (g->out[d]->op == OPS_RANGE) {
      from[n] = g->out[d];
      to[n++] = index->src[1 + d];
    }
  return uop_substitute(s->st, s->mem, g->value, n, from, to);
}

/* The term that stage i reduces, with the stages between it and other reductions written out. NULL: out of
 * memory. */
static UOp *term_of(const Pair *p, int i) {
  Sched *s = p->s;
  UOp *x = whole_stage(p, i)->value->src[0];
  UOpVec order = {0}, from = {0}, to = {0};
  bool ok = true, again = true;
  for (int depth = 0; ok && again && depth < MOST_CHAIN; depth++) {
    order.len = from.len = to.len = 0;
    ok = uop_toposort(s->st, s->mem, &x, 1, &order);
    for (size_t k = 0; ok && k < order.len; k++) {
      UOp *u = order.at[k];
      int q = read_stage(u);
      if (q < 0 || !may_write_out(p, q) || !is_made_of_results(p, q, 0)) continue;
      UOp *v = value_at(s, stage_at(s, q), u);
      ok = v && vec_push(s->mem, &from, u) && vec_push(s->mem, &to, v);
    }
    again = from.len > 0;
    if (ok && again) {
      x = uop_substitute(s->st, s->mem, x, (int)from.len, from.at, to.at);
      ok = x != NULL;
    }
  }
  vec_free(s->mem, &order), vec_free(s->mem, &from), vec_free(s->mem, &to);
  return ok ? uop_simplify(s->st, s->mem, x) : NULL;
}

/* ---- which two reductions */
/* Finds the only read of a reduction's result that is the same in every iteration of the term. */
static bool find_result(Pair *p) {
  Sched *s = p->s;
  UOpVec order = {0};
  bool one = uop_toposort(s->st, s->mem, &p->term, 1, &order);
  p->result = NULL;
  for (size_t k = 0; one && k < order.len; k++) {
    int q = read_stage(order.at[k]);
    if (q < 0 || !is_free(&p->axes, order.at[k], NULL)) continue;
    one = !p->result && may_part(whole_stage(p, q));
    p->result = order.at[k];
    p->first = q;
  }
  vec_free(s->mem, &order);
  return one && p->result;
}

static int axis_of(const Stage *g, const UOp *r) {
  for (int d = 0; d < g->nout; d++)
    if (r->op == OPS_RANGE && g->out[d] == r) return d;
  return -1;
}

/* Whether both have the same rows and reduce over the same loops. p->own becomes the first one's term over
 * the loops of the second. */
static bool same_loops(Pair *p) {
  Sched *s = p->s;
  const Stage *a = whole_stage(p, p->first), *b = stage_at(s, p->second);
  UOp *from[2 * MAX_RANK], *to[2 * MAX_RANK];
  int n = 0, rows = 0;
  if (a->nred != b->nred) return false;
  for (int d = 0; d < a->nout; d++) {
    UOp *e = p->result->src[1 + d];
    if (a->out[d]->op != OPS_RANGE) continue;
    if (axis_of(b, e) < 0 || !same_extent(e, a->out[d])) return false;
    from[n] = a->out[d];
    to[n++] = e;
    rows++;
  }
  for (int d = 0; d < b->nout; d++)
    rows -= b->out[d]->op == OPS_RANGE;
  for (int k = 0; k < a->nred; k++) {
    if (!same_extent(a->red[k], b->red[k]) || !is_counted(a->red[k])) return false;
    if (a->red[k]->op == OPS_RANGE) {
      from[n] = a->red[k];
      to[n++] = b->red[k];
    }
  }
  UOp *own = rows == 0 ? term_of(p, p->first) : NULL;
  own = own ? uop_substitute(s->st, s->mem, own, n, from, to) : NULL;
  p->own = own ? uop_simplify(s->st, s->mem, own) : NULL;
  return p->own != NULL;
}

/* ---- what changes with the first result */
static bool is_between(const UOp *u, Ops op, const UOp *a, const UOp *b) {
  return u->op == op && ((u->src[0] == a && u->src[1] == b) || (u->src[0] == b && u->src[1] == a));
}

/* Whether condition c is that x is the result, or NaN. neg: that -x is the result. */
static bool is_extreme(const UOp *c, const UOp *x, const UOp *result, bool neg) {
  bool nan = c->op == OPS_OR && is_between(c->src[1], OPS_CMPNE, x, x);
  const UOp *is = nan ? c->src[0] : c;
  if (is->op != OPS_CMPEQ) return false;
  const UOp *most = is->src[0] == x ? is->src[1] : is->src[0];
  return (is->src[0] == x || is->src[1] == x) &&
         (neg ? most->op == OPS_NEG && most->src[0] == result : most == result);
}

/* What is compared if a term is chosen where something is extreme: what the maximum is taken of, or, for a
 * minimum, the negative of that. NULL: it is not chosen in this way. */
static UOp *compared(const Pair *p) {
  const UOp *t = p->term, *c = t->op == OPS_WHERE ? t->src[0] : NULL;
  if (!c || !is_const(t->src[2]) || uses(t->src[1], p->result)) return NULL;
  if (is_extreme(c, p->own, p->result, false)) return p->own;
  bool least = p->own->op == OPS_NEG && is_extreme(c, p->own->src[0], p->result, true);
  return least ? p->own->src[0] : NULL;
}

static bool is_square(const UOp *x) { return x->op == OPS_MUL && x->src[0] == x->src[1]; }

/* The mean in (x - mean) * (x - mean), if it is a sum divided by a constant; otherwise NULL. */
static const UOp *mean_of(const Pair *p) {
  const UOp *t = p->term, *d = is_square(t) ? t->src[0] : NULL;
  if (!d || d->op != OPS_SUB || d->src[0] != p->own || (d->dtype != DT_F32 && d->dtype != DT_F64))
    return NULL;
  const UOp *m = d->src[1];
  bool scaled = (m->op == OPS_FDIV || m->op == OPS_MUL) && m->src[0] == p->result && is_const(m->src[1]);
  return scaled && !uses(p->own, p->result) ? m : NULL;
}

static bool find_kind(Pair *p) {
  const UOp *a = whole_stage(p, p->first)->value, *b = stage_at(p->s, p->second)->value;
  Ops first = (Ops)a->arg.reduce.op, second = (Ops)b->arg.reduce.op;
  p->kind = first == OPS_ADD ? BY_MEAN : compared(p) ? BY_CHOICE : BY_CHANGE;
  if (first == OPS_ADD) return second == OPS_ADD && mean_of(p);
  if (p->kind == BY_CHANGE && !uop_contains(p->s->st, p->s->mem, &p->term, 1, p->own))
    return false; /* the maximum is of another row */
  return (p->kind == BY_CHANGE || second == OPS_MAX) && first == OPS_MAX && dtype_is_float((DType)a->dtype);
}

/* ---- the parts */
/* Chooses the least number of parts that divides a loop, of at most a block each, and enough for the cores.
 * Returns false if there is none, or if parts would be too short. */
static bool find_parts(Pair *p) {
  const Stage *b = stage_at(p->s, p->second);
  const Done *d = done_at(p, p->first);
  int64_t trips = 1;
  for (int k = 0; k < b->nred; k++)
    trips *= range_extent(b->red[k]);
  if (d) return p->loop = d->loop, p->parts = d->parts, true;
  int64_t least = TG_MIN(TG_MAX(trips / BLOCK, LEAST_PARTS), MOST_PARTS);
  for (p->loop = 0; p->loop < b->nred; p->loop++) {
    p->parts = part_count(range_extent(b->red[p->loop]), least, 2 * MOST_PARTS);
    if (p->parts) return trips / p->parts >= LEAST_BLOCK;
  }
  return false;
}

/* The first one's result for a part, which replaces the row's. */
static UOp *result_of_part(const Pair *p, UOp *part) {
  return part_read(p->s, p->part_of_first, part, p->result->nsrc - 1, p->result->src + 1);
}

static UOp *number(const Pair *p, double v) {
  return uop_const(p->s->st, (DType)p->result->dtype, (Scalar){.f = v});
}

/* The row's result if every part were like this one: a sum is multiplied by the number of parts, so that the
 * means are equal. */
static UOp *as_of_row(const Pair *p, UOp *of_part) {
  return p->kind == BY_MEAN ? uop_alu2(p->s->st, OPS_MUL, of_part, number(p, (double)p->parts)) : of_part;
}

static UOp *with_result(const Pair *p, UOp *x, UOp *result) {
  UOp *from = p->result;
  return x && result ? uop_substitute(p->s->st, p->s->mem, x, 1, &from, &result) : NULL;
}

static bool stage_push(Sched *s, const Stage *g, UOp *term, int loop, UOp *part) {
  Stage v;
  bool ok = part && term && part_stage(s, g, term, loop, part, &v);
  return ok && vec_push(s->mem, &s->stages, v);
}

static bool parts_make(Pair *p) {
  Sched *s = p->s;
  const Done *d = done_at(p, p->first);
  p->part_of_first = d ? d->parts_stage : (int)s->stages.len;
  UOp *part = uop_range(s->st, p->parts, s->next_range++, AXIS_LOOP);
  const Stage *first = stage_at(s, p->first);
  if (!d && !stage_push(s, first, first->value->src[0], p->loop, part)) return false;
  p->part_of_second = (int)s->stages.len;
  part = uop_range(s->st, p->parts, s->next_range++, AXIS_LOOP);
  UOp *own = part ? result_of_part(p, part) : NULL;
  UOp *term = own ? with_result(p, p->term, as_of_row(p, own)) : NULL;
  return stage_push(s, stage_at(s, p->second), term, p->loop, part) && stage_scan(s, p->part_of_first) &&
         stage_scan(s, p->part_of_second);
}

/* ---- putting the parts together */
/* The squares of differences from the part's mean, and of the part's mean from the row's. */
static UOp *by_mean(const Pair *p, UOp *sum, UOp *of_part) {
  UOpStore *st = p->s->st;
  const Stage *b = stage_at(p->s, p->second);
  double n = 1;
  for (int k = 0; k < b->nred; k++)
    n *= (double)range_extent(b->red[k]);
  UOp *mean = (UOp *)mean_of(p), *own = with_result(p, mean, as_of_row(p, of_part));
  UOp *apart = own ? uop_alu2(st, OPS_SUB, own, mean) : NULL;
  UOp *square = apart ? uop_alu2(st, OPS_MUL, apart, apart) : NULL;
  UOp *all = square ? uop_alu2(st, OPS_MUL, square, number(p, n / (double)p->parts)) : NULL;
  return all ? uop_alu2(st, OPS_ADD, sum, all) : NULL;
}

/* What was chosen in a part counts only if the part's maximum is the row's. */
static UOp *by_choice(const Pair *p, UOp *chosen, UOp *of_part) {
  UOpStore *st = p->s->st;
  UOp *x = compared(p), *most = x == p->own ? of_part : uop_alu1(st, OPS_NEG, of_part);
  UOp *is = most ? uop_substitute(st, p->s->mem, p->term->src[0], 1, &x, &most) : NULL;
  return is ? uop_where(st, is, chosen, p->term->src[2]) : NULL;
}

static UOp *by_change(const Pair *p, Ops op, UOp *sum, UOp *of_part) {
  Sched *s = p->s;
  UOp *old = with_result(p, p->term, of_part);
  UOp *change = change_of(s->st, s->mem, op, &p->axes, old, of_part, p->result);
  return rescaled(s->st, op, sum, change, of_part, p->result);
}

/* The second reduction, over parts. NULL: its terms do not all change in the same way. */
static UOp *second_value(const Pair *p, UOp *part) {
  Sched *s = p->s;
  const Stage *b = stage_at(s, p->second);
  UOp *of_part = result_of_part(p, part), *v = part_read(s, p->part_of_second, part, b->nout, b->out);
  Ops op = (Ops)b->value->arg.reduce.op;
  if (!v || !of_part) return NULL;
  v = p->kind == BY_MEAN     ? by_mean(p, v, of_part)
      : p->kind == BY_CHOICE ? by_choice(p, v, of_part)
                             : by_change(p, op, v, of_part);
  return uop_simplify(s->st, s->mem, over_parts(s, b, v, part));
}

/* ---- whether it pays */
/* Whether rows stay in the cache until they are read again, and are enough for the cores: they are best left
 * whole. */
static bool rows_stay(const Pair *p) {
  const Target *t = p->s->opt->target;
  const Stage *a = stage_at(p->s, p->part_of_first);
  double bytes = 0, rows = (double)stage_out_size(stage_at(p->s, p->second));
  for (size_t j = 0; j < a->reads.len; j++)
    bytes += read_bytes(p->s, &a->reads.at[j], a->reads.at[j].trips);
  return rows >= t->cores && bytes / rows <= (double)t->cache[LEVEL_L2] / 2;
}

/* The bytes of what the first has just read that the second reads. */
static double bytes_near(const Pair *p) {
  const Stage *a = stage_at(p->s, p->part_of_first), *b = stage_at(p->s, p->part_of_second);
  double bytes = 0;
  for (size_t j = 0; j < b->reads.len; j++) {
    bool had = false;
    for (size_t l = 0; l < a->reads.len; l++)
      had |= same_memory(a->reads.at[l].index, b->reads.at[j].index);
    for (size_t l = 0; l < j; l++)
      had &= !same_memory(b->reads.at[l].index, b->reads.at[j].index);
    if (had) bytes += read_bytes(p->s, &b->reads.at[j], b->reads.at[j].trips);
  }
  return bytes;
}

/* Compares the parts of both in one kernel with a kernel for each, which is the alternative. The second
 * reduction of a part waits for the first, so no time of the first is hidden behind the second. */
static bool pays(const Pair *p) {
  static const double LEAST_WON = 0.1;
  Sched *s = p->s;
  int mem[2] = {p->part_of_first, p->part_of_second};
  StageSet one;
  Cost first = stage_cost(s, mem[0], &one), second = stage_cost(s, mem[1], NULL), near = second;
  Stage *b = stage_at(s, mem[1]);
  const Stage *a = stage_at(s, mem[0]), *whole = stage_at(s, p->second);
  for (int d = 0; d < p->result->nsrc - 1; d++) {
    int axis = axis_of(whole, p->result->src[1 + d]);
    if (axis >= 0) b->gmap[1 + axis] = a->gmap[1 + d];
  }
  b->near = mem[0];
  b->near_bytes = bytes_near(p);
  Cost both = kernel_cost(s, mem, 2, one.ngrid, one.grid, &(Gmap){.of = gmap_placed, .s = s});
  near.memory = both.memory - first.memory;
  near = cost_on_cores(s, near, 1, 1);
  double won = second.us - near.us,
         least = TG_MAX(LEAST_LAUNCHES_WON * both.launch, LEAST_WON * (first.us + second.us));
  bool wins = both.us < IMPOSSIBLE_US && !rows_stay(p) && won > least;
  if (s->opt->explain) {
    str_printf(s->opt->explain, "%s s%d and s%d in %lld parts: apart ", wins ? "split" : "no   ", p->first,
               p->second, (long long)p->parts);
    cost_print(s->opt->explain, &first), str_put(s->opt->explain, " + ");
    cost_print(s->opt->explain, &second), str_put(s->opt->explain, ", near ");
    cost_print(s->opt->explain, &near), str_put(s->opt->explain, "\n");
  }
  return wins;
}

static bool split_pair(Pair *p) {
  Sched *s = p->s;
  size_t had = s->stages.len;
  bool shared = done_at(p, p->first) != NULL;
  if (!parts_make(p)) return false;
  UOp *part = uop_range(s->st, p->parts, s->next_range++, AXIS_REDUCE);
  UOp *again = uop_range(s->st, p->parts, s->next_range++, AXIS_REDUCE);
  UOp *second = part && again ? second_value(p, part) : NULL;
  Stage *a = stage_at(s, p->part_of_first);
  if (!vec_push(s->mem, &a->readers, p->first) || !vec_push(s->mem, &a->readers, p->second)) return false;
  if (!vec_push(s->mem, &a->readers, p->part_of_second)) return false;
  if (!vec_push(s->mem, &stage_at(s, p->part_of_second)->readers, p->second)) return false;
  if (!second || !pays(p)) return parts_drop(s, had), true;
  Done done = {p->first, p->part_of_first, p->loop, p->parts, *stage_at(s, p->first)};
  UOp *first = over_parts(s, &done.whole,
                          part_read(s, p->part_of_first, again, done.whole.nout, done.whole.out), again);
  if (!shared && (!vec_push(s->mem, p->done, done) || !parts_reduced(s, p->first, first, again) ||
                  !parts_wait(s, p->first, p->part_of_first)))
    return false;
  return parts_reduced(s, p->second, second, part) && parts_wait(s, p->second, p->part_of_second);
}

/* Sums of products of matrices are left whole: they have tiles, and their rows an online reduction
 * (codegen/online.c). */
static bool may_be_second(const Stage *g) {
  return may_part(g) && g->nreduce == 1 && (!g->flops || is_square(g->value->src[0]));
}

/* Whether reading all that it reduces takes at least the time that must be saved. The largest dtype is
 * assumed. */
static bool is_long(const Sched *s, const Stage *g) {
  const Target *t = s->opt->target;
  return target_read_us(t, 8.0 * (double)stage_iterations(g)) > LEAST_LAUNCHES_WON * t->launch_us;
}

/* Returns false if out of memory. */
static bool try_pair(Pair *p) {
  Sched *s = p->s;
  const Stage *g = stage_at(s, p->second);
  bool ok = true, pair = may_be_second(g) && is_long(s, g);
  p->axes.len = 0;
  for (int k = 0; ok && pair && k < g->nred; k++) {
    pair = is_counted(g->red[k]);
    ok = g->red[k]->op != OPS_RANGE || vec_push(s->mem, &p->axes, g->red[k]);
  }
  if (!ok || !pair || !p->axes.len) return ok;
  if (!(p->term = term_of(p, p->second))) return false;
  return !find_result(p) || !same_loops(p) || !find_kind(p) || !find_parts(p) || split_pair(p);
}

bool online_in_parts(Sched *s) {
  DoneVec done = {0};
  uint8_t *pinned = mem_alloc(s->mem, s->stages.len + 1);
  bool ok = pinned != NULL;
  Pair p = {.s = s, .pinned = pinned, .done = &done};
  size_t n = s->stages.len;
  for (size_t w = 0; ok && w < n; w++)
    for (size_t k = 0; k < stage_at(s, (int)w)->war.len; k++)
      pinned[stage_at(s, (int)w)->war.at[k]] = 1;
  for (size_t i = 0; ok && i < n; i++) {
    p.second = (int)i;
    ok = try_pair(&p);
  }
  vec_free(s->mem, &p.axes), vec_free(s->mem, &done);
  mem_free(s->mem, pinned);
  return ok;
}
