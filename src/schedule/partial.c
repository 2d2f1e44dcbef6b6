/* partial.c: reductions that leave cores idle. In: stages with hazards and an order. Out: the same stages. A
 * long reduction to fewer results (or vectors of results) than there are cores becomes two stages: one
 * reduces each part of its first loop, and the other reduces the results of the parts. The number of parts
 * follows from the length of the loop, so all processors that split round alike. On a GPU there are as many
 * parts as keep all of it busy: one block of threads for each part, and several blocks for each core. If a
 * block computes a tile of a sum of products, few results of long sums are few blocks. Then each part is such
 * a sum, on matrix units if these take its types. */
#include "plan/tile.h"
#include "schedule/stage.h"
#include <math.h>
#include <string.h>

enum {
  PARTS = 64,
  MOST_PARTS = 1024,
  LEAST_GPU_LAUNCHES_WON = 8,
  LEAST_RUN = 512, /* bytes */
  TILE_RESULTS = 32 * 32
};

/* Whether a loop of the results with 16 iterations or more moves read a and does not move read b. */
static bool moves_alone(const Stage *g, const Read *a, const Read *b) {
  for (int d = 0; d < g->nout; d++)
    if ((a->outs & ~b->outs) >> d & 1 && range_extent(g->out[d]) >= LEAST_SIDE) return true;
  return false;
}

/* Whether g sums products of two operands, each of which is shared along one side of a tile of results. On a
 * GPU a block then computes such a tile, not one result. */
static bool makes_tiles(const Sched *s, const Stage *g) {
  const UOp *v = g->value;
  if (s->opt->target->warp <= 1 || v->op != OPS_REDUCE || (Ops)v->arg.reduce.op != OPS_ADD) return false;
  bool tiles = false;
  for (size_t i = 0; v->src[0]->op == OPS_MUL && i < g->reads.len; i++)
    for (size_t j = 0; !tiles && j < i; j++)
      tiles = moves_alone(g, &g->reads.at[i], &g->reads.at[j]) &&
              moves_alone(g, &g->reads.at[j], &g->reads.at[i]);
  return tiles;
}

/* The number of blocks that keep a core of a GPU busy. Blocks that compute tiles use more registers, so a
 * core runs fewer of them. */
static double blocks_of_core(const Sched *s, const Stage *g) {
  double blocks = TG_MAX((double)s->opt->target->threads / BLOCK_THREADS, 1);
  return makes_tiles(s, g) ? TG_MAX(blocks / 2, 1) : blocks;
}

int64_t part_count(int64_t n, int64_t least, int64_t most) {
  for (int64_t p = least; p <= TG_MIN(n, most); p++)
    if (n % p == 0) return p;
  return 0;
}

bool part_stage(Sched *s, const Stage *g, UOp *term, int k, UOp *part, Stage *out) {
  Stage v = {.node = g->node, .root = -1, .kernel = -1, .is_reduce = true, .parts = true};
  v.nout = g->nout + 1;
  v.nred = g->nred;
  UOp *from[MAX_RANK + 1], *to[MAX_RANK + 1], *src[MAX_RANK + 1];
  int n = 0;
  int64_t trips = range_extent(g->red[k]) / range_extent(part);
  v.out[0] = part;
  UOp *inside = uop_range(s->st, trips, s->next_range++, AXIS_REDUCE);
  UOp *first = uop_alu2(s->st, OPS_MUL, part, uop_index_const(s->st, trips));
  UOp *iter = inside ? uop_alu2(s->st, OPS_ADD, first, inside) : NULL;
  if (!iter) return false;
  for (int d = 0; d < g->nout; d++) {
    v.out[1 + d] = g->out[d];
    if (g->out[d]->op != OPS_RANGE) continue;
    from[n] = g->out[d];
    to[n] = v.out[1 + d] = uop_range_of(s->st, g->out[d]->src[0], s->next_range++, AXIS_LOOP);
    if (!to[n++]) return false;
  }
  from[n] = g->red[k];
  to[n++] = iter;
  src[0] = uop_substitute(s->st, s->mem, term, n, from, to);
  for (int r = 0; r < g->nred; r++)
    src[1 + r] = v.red[r] = r == k ? inside : g->red[r];
  UOp *value =
      src[0] ? uop_new(s->st, OPS_REDUCE, (DType)g->value->dtype, 1, 1 + g->nred, src, g->value->arg) : NULL;
  v.value = value ? uop_simplify(s->st, s->mem, value) : NULL;
  *out = v;
  return v.value != NULL;
}

UOp *part_read(Sched *s, int parts, UOp *part, int n, UOp *const *at) {
  DType d = (DType)stage_at(s, parts)->value->dtype;
  UOp *src[MAX_RANK + 2];
  src[0] = uop_new(s->st, OPS_PARAM, d, 1, 0, NULL, (Arg){.param = {1, STAGE_SLOT(parts)}});
  src[1] = part;
  memcpy(src + 2, at, (size_t)n * sizeof *src);
  return uop_new(s->st, OPS_INDEX, d, 1, 2 + n, src, ARG0);
}

UOp *over_parts(Sched *s, const Stage *g, UOp *of_part, UOp *part) {
  return UNEW(s->st, OPS_REDUCE, (DType)g->value->dtype, 1, g->value->arg, of_part, part);
}

bool parts_reduced(Sched *s, int i, UOp *value, UOp *part) {
  Stage *g = stage_at(s, i);
  g->value = value;
  g->red[0] = part;
  g->nred = 1;
  return value && stage_scan(s, i);
}

bool parts_wait(Sched *s, int i, int parts) {
  Stage *g = stage_at(s, i), *of = stage_at(s, parts);
  IntVec none = of->after;
  of->after = g->after;
  g->after = none;
  return war_hand_on(s, i, parts);
}

void parts_drop(Sched *s, size_t had) {
  while (s->stages.len > had) {
    Stage *g = &s->stages.at[--s->stages.len];
    vec_free(s->mem, &g->reads), vec_free(s->mem, &g->deps), vec_free(s->mem, &g->readers);
  }
}

/* Whether the index moves with a loop that is reduced over. */
static bool goes_over(const Stage *g, const UOp *index) {
  bool over = false;
  for (int k = 0; k < g->nred; k++)
    over |= index == g->red[k] || (index->ranges & g->red[k]->ranges);
  return over;
}

/* Whether most memory is read in the order of the results. Then the results are lanes, and each core computes
 * a vector of them. A row that all results share is read too, but is small compared to that. */
static bool results_are_lanes(const Sched *s, const Stage *g) {
  double most = 0;
  bool lanes = false;
  for (size_t j = 0; j < g->reads.len; j++) {
    const Read *rd = &g->reads.at[j];
    double nbytes = read_bytes(s, rd, rd->trips);
    bool over = goes_over(g, rd->index->src[last_axis(rd->index)]);
    if (nbytes > most || (nbytes == most && over)) {
      lanes = !over;
      most = nbytes;
    }
  }
  return lanes;
}

/* The number of blocks that the results make on a GPU: one for each result, for each warp of results, or for
 * each tile. */
static double blocks_of(const Sched *s, const Stage *g) {
  double results = TG_MAX((double)stage_out_size(g), 1);
  if (makes_tiles(s, g)) return ceil(results / TILE_RESULTS);
  return results_are_lanes(s, g) ? ceil(results / s->opt->target->warp) : results;
}

/* The number of the first loop that can be split, and *parts; -1: none. The first loop is taken because the
 * loops of a reduction mostly are in the order of memory. */
static int loop_to_split(const Sched *s, const Stage *g, int64_t *parts) {
  const Target *t = s->opt->target;
  double blocks = t->cores * blocks_of_core(s, g) / blocks_of(s, g);
  int64_t least = t->warp > 1 ? TG_MAX((int64_t)ceil(blocks), 2) : PARTS;
  for (int k = 0; k < g->nred; k++)
    if (g->red[k]->op == OPS_RANGE && is_counted(g->red[k]) &&
        (*parts = part_count(range_extent(g->red[k]), least, MOST_PARTS)))
      return k;
  return -1;
}

/* The number of cores that a reduction can occupy if it is not split. If results are lanes, a core reads a
 * run of each row. If that run is short, the cache lines that are fetched ahead of it belong to another
 * core. */
static double cores_of(const Sched *s, const Stage *g) {
  const Target *t = s->opt->target;
  double results = (double)stage_out_size(g);
  if (t->warp <= 1 && results_are_lanes(s, g)) results = ceil(results * 4 / LEAST_RUN);
  if (t->warp > 1) results = blocks_of(s, g) / blocks_of_core(s, g);
  return TG_MAX(TG_MIN(results, t->cores), 1);
}

bool may_part(const Stage *g) {
  return g->is_reduce && !g->inlined && !g->fixed && !g->war.len && g->nout < MAX_RANK &&
         g->value->op == OPS_REDUCE && g->value->nsrc == 1 + g->nred;
}

/* Splits stage i if that pays. The whole and its parts are both priced as kernels of their own, because what
 * they could share with other kernels is the same for both. */
static bool split(Sched *s, int i) {
  int64_t parts = 0;
  int k = loop_to_split(s, stage_at(s, i), &parts), at = (int)s->stages.len;
  Stage v;
  if (k < 0) return true;
  UOp *own = uop_range(s->st, parts, s->next_range++, AXIS_LOOP), *term = stage_at(s, i)->value->src[0];
  if (!own || !part_stage(s, stage_at(s, i), term, k, own, &v) || !vec_push(s->mem, &s->stages, v))
    return false;
  Cost whole = stage_cost(s, i, NULL);
  double rows = TG_MAX(TG_MIN((double)stage_out_size(stage_at(s, i)), s->opt->target->cores), 1);
  whole = cost_on_cores(s, whole, rows, cores_of(s, stage_at(s, i)));
  Stage old = *stage_at(s, i), *g = stage_at(s, i);
  UOp *part = uop_range(s->st, parts, s->next_range++, AXIS_REDUCE);
  UOp *of_part = part_read(s, at, part, g->nout, g->out);
  if (!stage_scan(s, at) || !parts_reduced(s, i, over_parts(s, g, of_part, part), part)) return false;
  if (!vec_push(s->mem, &stage_at(s, at)->readers, i)) return false;
  Cost first = stage_cost(s, at, NULL), last = stage_cost(s, i, NULL);
  double launches = s->opt->target->warp > 1 ? LEAST_GPU_LAUNCHES_WON : LEAST_LAUNCHES_WON;
  bool pays = whole.us - first.us - last.us > launches * whole.launch;
  if (s->opt->explain) {
    str_printf(s->opt->explain, "%s s%d in %lld parts: whole ", pays ? "split" : "no   ", i,
               (long long)parts);
    cost_print(s->opt->explain, &whole), str_put(s->opt->explain, ", parts ");
    cost_print(s->opt->explain, &first), str_put(s->opt->explain, " + "), cost_print(s->opt->explain, &last);
    str_put(s->opt->explain, "\n");
  }
  if (pays) return parts_wait(s, i, at);
  g->value = old.value;
  g->nred = old.nred;
  memcpy(g->red, old.red, sizeof g->red);
  parts_drop(s, (size_t)at);
  return stage_scan(s, i);
}

bool partial_sums(Sched *s) {
  bool ok = readers_build(s) && online_in_parts(s) && readers_build(s);
  for (size_t i = 0, n = s->stages.len; ok && i < n; i++)
    if (may_part(stage_at(s, (int)i)) && cores_of(s, stage_at(s, (int)i)) < s->opt->target->cores)
      ok = split(s, (int)i);
  return ok && readers_build(s);
}
