/* prefetch.c: prefetches cache lines before they are read. In: a nest with explicit loads (expand.c). Out:
 * the same nest with a PREFETCH beside each load of short rows. It prefetches the address of the same load in
 * the next iteration of the loop over rows.
 *
 *   for each 4 rows n of 10,000:  for each block k of a row:  load w[n][k], w[n + 1][k], w[n + 2][k], ..
 *
 * A processor detects sequential reads by itself, but it needs a few misses to do so, again in each of the 4
 * rows. Rows that are read one at a time and lie behind one another are one long run. A long run is
 * prefetched eight lines ahead if a reduction decodes it, as it does weights. Otherwise a run is not
 * prefetched. Data that fit in L1, or rows that another loop reads again, are not prefetched either.
 *
 * Measured on a Zen 3, one core, 30 MB of 8-bit weights in memory, 4 rows at a time: rows of 612 bytes 6.4
 * GB/s without and 10.7 with, 2 KB 9.1 and 13.2, 9 KB 12.5 and 14.7; two iterations ahead is no better. Long
 * runs, one core of a Zen 2, tokens of a language model a second: F16 69 and 74, Q8_0 105 and 114, Q4_0 132
 * and 160; twice as far ahead F16 and Q8_0 lose half of that. Pieces, the Q6_K head of a model of 1B on one
 * core of a Zen 3: 28.5 and 22.9 ms.
 *
 * If each line is read for several outputs, or only every other line is read, the processor does not run
 * ahead by itself: eight lines are read before the first of them arrives. 17 MB of 8-bit weights in memory,
 * one core of a Zen 3: for 2 rows of outputs 1000 us, 880 four times as far ahead; every other line for 4
 * rows 2280 and 1430 (1120 if the weights are in a cache); for 8 rows, whose second half reads what L2 has,
 * 3400 and 2500.
 *
 * A Zen 4 reads long runs ahead by itself, up to 4 outputs of each line (Target.follows_runs). Tokens a second
 * of models of 135M and 1B on one core, with a PREFETCH and without: Q8_0 137 and 145, 18.0 and 25.3; Q4_K of
 * 1B 38 and 49; two texts, which are 4 outputs of a line, of 1B in Q4_0 43 and 54; four texts 74 and 63; pieces,
 * the Q6_K of 1B, 16.2 and 14.5. */
#include "codegen/heuristic.h"
#include "codegen/nest.h"
#include <stdlib.h>

enum {
  /* bytes between iterations that prefetch; with fewer, too many would prefetch the same line */
  LEAST_STEP = 16,
  LEAST_JUMP = 2 << 10, /* bytes to the next rows; the processor sees nearer rows as one run */
  LEAST_ROWS = 4,       /* iterations of the loop over rows */
  /* bytes between iterations of the innermost loop; when unrolled, it reads everything between */
  MOST_STEP = 512,
  LONG_ROW = 16 << 10,  /* bytes; the processor has detected the order of such a row long before its end */
  MOST_AGAIN = 4 << 10, /* bytes that loops inside a run may read again, because L1 still has them */
  PIECES = 4,           /* the most loads that read one run interleaved, each its own pieces of it */
  AHEAD = 512,          /* bytes that a run is prefetched ahead, in addition to what is read again */
  FEW_AGAIN = 4,        /* times that a long run is read; only the first time gains by a prefetch */
  FAR_AHEAD = 4,        /* factor on AHEAD if the processor does not run ahead by itself */
  FEW_OUTPUTS = 4       /* with more outputs, no processor runs far enough ahead */
};

/* A load, and how it moves from one row to the next. */
typedef struct Rows {
  LinearIn at; /* its address, over the loops around it */
  UOp *index;
  int next, in;   /* the loop over rows, or -1: one run; the loop that prefetches one line per iteration */
  int64_t ahead;  /* elements between the address read and the address prefetched */
  size_t outputs; /* number of outputs that each line is read for at the same time */
} Rows;

typedef struct Ahead {
  Kernel *k;
  UOp *loop[MAX_LINEAR];
  int depth;
  UOpMap *met;              /* nodes already visited */
  UOpVec loads;             /* INDEXes of the loads in the open loops that have not been considered yet */
  Vec(Rows) rows;           /* loads in open loops that are prefetched */
  UOpVec asked[MAX_LINEAR]; /* statements that the new body of each open loop begins with */
} Ahead;

static int64_t bytes_of(const UOp *index) { return dtype_size((DType)index->dtype); }

static int64_t trips(const Ahead *a, int d) { return a->loop[d]->src[0]->src[0]->vmax; }

/* Bytes that a load moves per iteration of loop d; INT64_MAX: too many to say. */
static int64_t step_of(const Rows *r, int d) {
  int64_t by;
  return __builtin_mul_overflow(r->at.by[d], bytes_of(r->index), &by) || by == INT64_MIN ? INT64_MAX
                                                                                         : llabs(by);
}

/* Whether the data that the load reads in loops 0 .. d come from far away: they are more than L1 holds (if
 * `ahead`: more than any cache holds, because then the processor runs ahead by itself; who wrote the data and
 * how long ago is not known), and no loop around reads them more than most_again times while L2 still holds
 * them. */
static bool streams(const Ahead *a, const Rows *r, int d, double run, bool ahead, int64_t most_again) {
  const Target *t = a->k->opt->target;
  for (; d >= 0; d--) {
    bool again = !r->at.by[d] && loop_type(a->loop[d]) != AXIS_THREAD && trips(a, d) > most_again;
    if (again && run <= (double)t->cache[LEVEL_L2]) return false;
    run += (double)step_of(r, d) * (double)(trips(a, d) - 1);
  }
  return run > (double)t->cache[LEVEL_L1] && (!ahead || target_level(t, run) == LEVEL_MEMORY);
}

/* Whether elements must be decoded, if only to f32. Decoding leaves a processor less time to run ahead by
 * itself. Sums of f32 took 5 to 9 % longer with a PREFETCH, because they run at memory speed without one. */
static bool is_decoded(const UOp *index) {
  return !dtype_is_float((DType)index->dtype) || dtype_size((DType)index->dtype) < 4;
}

/* Whether other loops run before the next rows are read. A processor does not run ahead across those. Rows of
 * 12 KB in L3, one core of a Zen 3: sums of products 139 us with a PREFETCH and 100 without, variances 74 and
 * 87. */
static bool loops_between(const UOp *rows) {
  int n = 0;
  for (int i = 1; i < rows->nsrc; i++)
    n += is_loop(rows->src[i]);
  return n > 1;
}

/* The memory that a load reads in the inner loops. */
typedef struct Run {
  double bytes; /* from the first to the last byte */
  double again; /* bytes that are read again before the run continues */
  /* bytes from piece to piece, if other loads read the pieces between; 0: it reads everything */
  double period;
} Run;

/* Whether the processor reads a long run ahead by itself. Not if other loads read pieces of it. */
static bool follows(const Ahead *a, const Rows *r, const Run *run) {
  return a->k->opt->target->follows_runs && r->outputs <= FEW_OUTPUTS && run->period <= 0;
}

/* Whether the run continues with loop d. Updates the run. */
static bool reads_on(const Ahead *a, const Rows *r, int d, bool decoded, Run *run) {
  double step = (double)step_of(r, d), all = run->bytes + step * (double)(trips(a, d) - 1);
  bool piece = step > run->bytes + LINE;
  if (piece && !(decoded && step <= PIECES * (run->bytes + LINE))) return false;
  if (piece) run->period = step;
  if (step < run->bytes && all <= MOST_AGAIN) run->again = all;
  run->bytes = all;
  return true;
}

/* Finds the loop over rows. The loops of a row are those that continue where the previous iteration ended. If
 * there is no loop over rows, the load is one long run, which is prefetched a few lines ahead if a reduction
 * decodes it. Loops inside a run that read a few lines again, such as those over both halves of bytes, are
 * skipped. If several loads read interleaved pieces of one run, as with weights of 6 bits that have 4 bits in
 * one word and 2 in another, each load prefetches its own next piece. */
static bool has_rows(const Ahead *a, Rows *r) {
  int d = a->depth - 1, last;
  bool decoded = d >= 0 && loop_type(a->loop[d]) == AXIS_REDUCE && is_decoded(r->index);
  while (d >= 0 && !r->at.by[d])
    d--;
  Run run = {.bytes = (double)bytes_of(r->index) * (double)r->index->lanes};
  double line = run.bytes;
  bool plain = true; /* every loop is a loop of the row, or the loop to the next row */
  r->in = -1;
  for (int inner = last = d; d >= 0; d--) {
    AxisType type = loop_type(a->loop[d]);
    int64_t step = step_of(r, d);
    bool counts = type == AXIS_LOOP || type == AXIS_REDUCE || type == AXIS_GLOBAL;
    plain &= counts && step;
    if (counts && !step && run.bytes <= MOST_AGAIN) {
      run.again = run.bytes;
      continue;
    }
    if (!counts || !step || (d == inner && step > MOST_STEP)) break;
    if (d == inner)
      run.bytes += (double)step * (double)(trips(a, d) - 1);
    else if (!reads_on(a, r, d, decoded, &run))
      break;
    if (d == inner || (step <= LINE && step >= step_of(r, r->in))) {
      r->in = d;
      line = line * (double)(d == inner ? 1 : trips(a, last));
    }
    last = d;
  }
  r->next = d;
  if (r->in < 0 || step_of(r, r->in) < LEAST_STEP) return false;
  /* If the load uses little of the lines between its iterations, other loads read the rest and prefetch
   * it. */
  if (4 * line < (double)TG_MIN(step_of(r, r->in), LINE)) return false;
  if (run.bytes >= LONG_ROW) {
    bool far = r->outputs > 1 || run.period > 0;
    r->ahead = (int64_t)TG_MAX((far ? FAR_AHEAD : 1) * AHEAD + run.again, run.period) / bytes_of(r->index);
    r->next = -1;
    return decoded && !follows(a, r, &run) && streams(a, r, d, run.bytes, false, FEW_AGAIN);
  }
  if (!plain || d < 0 || trips(a, d) < LEAST_ROWS || step_of(r, d) < LEAST_JUMP) return false;
  r->ahead = r->at.by[d];
  return streams(a, r, d, run.bytes, !decoded && !loops_between(a->loop[d]), 1);
}

/* Whether another load of the same memory that moves in the same way already prefetches the line. */
static bool is_asked(const Ahead *a, const Rows *r) {
  for (size_t i = 0; i < a->rows.len; i++) {
    const Rows *o = &a->rows.at[i];
    if (memory_of(o->index) != memory_of(r->index) || o->at.rest != r->at.rest) continue;
    if (o->in != r->in || o->next != r->next) continue;
    bool same = llabs(o->at.c - r->at.c) < LINE / bytes_of(r->index);
    for (int d = 0; same && d <= r->in; d++)
      same = o->at.by[d] == r->at.by[d];
    if (same) return true;
  }
  return false;
}

/* The address ahead, with the loops inside the prefetching loop at their first iteration. */
static UOp *place_ahead(Ahead *a, const Rows *r) {
  Kernel *k = a->k;
  UOp *at = num(k, r->at.c + r->ahead);
  if (r->at.rest) at = ix(k, OPS_ADD, r->at.rest, at);
  for (int d = 0; d <= r->in; d++)
    if (r->at.by[d]) at = ix(k, OPS_ADD, at, ix(k, OPS_MUL, a->loop[d]->src[0], num(k, r->at.by[d])));
  UOp *src[2] = {memory_of(r->index), at};
  return at ? uop_new(k->st, OPS_INDEX, (DType)r->index->dtype, 1, 2, src, ARG0) : NULL;
}

static bool ask(Ahead *a, UOp *index, size_t outputs) {
  Kernel *k = a->k;
  UOp *range[MAX_LINEAR];
  Rows r = {.index = index, .outputs = outputs};
  for (int d = 0; d < a->depth; d++)
    range[d] = a->loop[d]->src[0];
  if (memory_of(index)->op != OPS_PARAM || index_naxes(index) != 1 || index_is_data(index)) return true;
  if (!uop_linear_in(k->st, k->mem, index->src[1], a->depth, range, &r.at)) return true;
  if (!has_rows(a, &r) || is_asked(a, &r)) return true;
  UOp *place = place_ahead(a, &r);
  UOp *now = place ? UNEW(k->st, OPS_PREFETCH, DT_VOID, 1, ARG0, place) : NULL;
  return now && vec_push(k->mem, &a->asked[r.in], now) && vec_push(k->mem, &a->rows, r);
}

/* Finds the loads of a statement. Each node is visited once for all statements, so a load belongs to the
 * first statement that has it. */
static bool find_loads(Ahead *a, UOp *u) {
  UOpVec todo = {0};
  bool ok = vec_push(a->k->mem, &todo, u);
  while (ok && todo.len) {
    UOp *v = todo.at[--todo.len];
    if (uop_map_get(a->met, v)) continue;
    ok = uop_map_put(a->k->st, a->met, v, v);
    for (int i = v->nsrc; ok && i-- > 0;) /* so that the first source is visited first */
      ok = vec_push(a->k->mem, &todo, v->src[i]);
    if (ok && v->op == OPS_LOAD && v->src[0]->op == OPS_INDEX) ok = vec_push(a->k->mem, &a->loads, v->src[0]);
  }
  vec_free(a->k->mem, &todo);
  return ok;
}

/* Considers the loads of a loop's own statements, from loads.at[first] on. The number of outputs per vector
 * is the number of sums per vector that is read. */
static bool loads_ask(Ahead *a, const UOp *loop, size_t first) {
  size_t sums = 0, vectors = 0;
  for (int i = 1; i < loop->nsrc; i++)
    sums += loop->src[i]->op == OPS_ACC;
  for (size_t i = first; i < a->loads.len; i++)
    vectors += a->loads.at[i]->lanes > 1;
  bool ok = true;
  for (size_t i = first; ok && i < a->loads.len; i++)
    ok = ask(a, a->loads.at[i], sums / TG_MAX(vectors, 1));
  a->loads.len = first;
  return ok;
}

/* Forgets the loads that are prefetched in loop d, which is closed. */
static void forget(Ahead *a, int d) {
  size_t n = 0;
  for (size_t i = 0; i < a->rows.len; i++)
    if (a->rows.at[i].in < d) a->rows.at[n++] = a->rows.at[i];
  a->rows.len = n;
}

/* A statement with the prefetches of its loops added. NULL: out of memory. */
static UOp *with_asked(Ahead *a, UOp *u) {
  if (!is_loop(u)) return find_loads(a, u) ? u : NULL;
  if (a->depth == MAX_LINEAR) return u;
  Kernel *k = a->k;
  int d = a->depth++;
  size_t loads = a->loads.len;
  a->loop[d] = u;
  UOpVec body = {0};
  bool ok = true;
  for (int i = 1; ok && i < u->nsrc; i++)
    ok = vec_push(k->mem, &body, with_asked(a, u->src[i])) && body.at[body.len - 1];
  ok = ok && loads_ask(a, u, loads);
  UOpVec *first = &a->asked[d];
  for (size_t i = 0; ok && i < body.len; i++)
    ok = vec_push(k->mem, first, body.at[i]);
  UOp *r = ok ? loop_new(k, u->src[0], (int)first->len, first->at) : NULL;
  vec_free(k->mem, &body);
  first->len = 0;
  forget(a, d);
  a->depth--;
  return r;
}

bool prefetch_rows(Kernel *k) {
  if (!k->ren || !k->opt->target || !k->opt->target->prefetches) return true;
  Ahead a = {.k = k, .met = uop_map_begin(k->st, k->st)};
  UOpVec body = {0};
  bool ok = a.met != NULL;
  for (int i = 0; ok && i < k->sink->nsrc; i++)
    ok = vec_push(k->mem, &body, with_asked(&a, k->sink->src[i])) && body.at[i];
  UOp *sink = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)body.len, body.at, k->sink->arg) : NULL;
  vec_free(k->mem, &body), vec_free(k->mem, &a.rows), vec_free(k->mem, &a.loads);
  for (int d = 0; d < MAX_LINEAR; d++)
    vec_free(k->mem, &a.asked[d]);
  uop_map_end(k->st, a.met);
  if (sink) k->sink = sink;
  return sink != NULL;
}
