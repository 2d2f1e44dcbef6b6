/* rows.c: chooses opts for kernels that keep rows in local memory, so that several rows are computed at once,
 * one row per lane. In: the kernel's loops (heuristic.h). Out: a list of opts.
 *
 * Rows are batched in two cases. In the first, the same element of neighbouring rows is contiguous in memory
 * (a softmax along the first axis). In the second, the rows multiply matrices (attention, a normalised row
 * times weights). Lanes along a row would read data that only this row needs. Lanes across rows read data
 * that all of them need (a key, a weight) only once, as a scalar for all lanes, and tiles along the inner
 * loops reuse each row's value. Data that only one row reads (its query) is strided from row to row, so
 * blocks of rows copy it, transposed. */
#include "codegen/heuristic.h"
#include "plan/tile.h"
#include <stdlib.h>

enum {
  STORE_TILE = 16, /* rows are transposed into lines of memory in squares of one vector */
  LEAST_ONLINE_BLOCK = 64,
  TILE_ROWS = 8,
  NUMBERS = 2,        /* registers for values that all lanes share */
  TILE_VECTORS = 2,   /* vectors of a typical register tile */
  MOST_SEARCHED = 512 /* nodes of a value that are searched; a longer value is no product */
};

typedef struct Rows {
  Kernel *k;
  const Info *f;
  int ncores;
  UOp *lane;    /* the loop of the grid that becomes the lanes */
  UOpVec inner; /* one loop per product: register tiles along it */
  UOp *axis;    /* the loop that ONLINE cuts into blocks, or NULL */
} Rows;

/* ---- which kernels */
/* Lists what a reduction reads in each of its steps, without what was read to fill rows or for other
 * reductions. */
static bool operands(Kernel *k, UOp *reduce, UOpVec *out) {
  UOpVec seen = {0};
  bool ok = vec_push(k->mem, &seen, reduce->src[0]);
  for (size_t i = 0; ok && i < seen.len && seen.len < MOST_SEARCHED; i++) {
    UOp *u = seen.at[i];
    if (u->op == OPS_INDEX) ok = vec_push(k->mem, out, u);
    if (u->op == OPS_INDEX || u->op == OPS_REDUCE || u->op == OPS_AFTER) continue;
    for (int s = 0; ok && s < u->nsrc; s++)
      if (!vec_has(&seen, u->src[s])) ok = vec_push(k->mem, &seen, u->src[s]);
  }
  if (seen.len >= MOST_SEARCHED) out->len = 0;
  vec_free(k->mem, &seen);
  return ok;
}

/* Whether an operand differs between iterations of r: by its address, or because it is in another row. */
static bool moves_along(Kernel *k, const UOp *x, const UOp *r) {
  return address_moves(k, x, r) || (x->src[0]->op == OPS_AFTER && depends(k, x->src[0], r));
}

/* Whether some operands move with r and some do not. Each value that does not move is then used for several
 * values of r. */
static bool shared_along(Kernel *k, const UOpVec *reads, const UOp *r) {
  bool moves = false, stays = false;
  for (size_t i = 0; i < reads->len; i++) {
    const UOp *x = reads->at[i];
    moves |= moves_along(k, x, r);
    stays |= !address_moves(k, x, r) && x->src[0]->op == OPS_PARAM;
  }
  return moves && stays;
}

/* The number of loads per product if a tile is along r and the lanes are along another loop. */
static double loads_each(Kernel *k, const UOpVec *reads, const RInfo *r, const UOp *lane) {
  double tile = (double)TG_MIN(r->n, TILE_ROWS), loads = 0;
  for (size_t i = 0; i < reads->len; i++)
    loads +=
        (depends(k, reads->at[i], r->r) ? tile : 1) * (moves_along(k, reads->at[i], lane) ? TILE_VECTORS : 1);
  return loads / (tile * TILE_VECTORS);
}

/* The loop inside a row, among those around the reduction, along which the reduction reuses most of what it
 * reads. */
static UOp *inner_loop(Rows *w, UOp *reduce, const UOpVec *reads, const UOp *lane) {
  const RInfo *best = NULL;
  double least = 0;
  for (int i = 0; i < w->f->nr; i++) {
    const RInfo *r = &w->f->r[i];
    if (r->grid || r->reduce || r->n < 2 || !depends(w->k, reduce, r->r)) continue;
    bool moves = false, stays = false;
    for (size_t j = 0; j < reads->len; j++) {
      bool with = depends(w->k, reads->at[j], r->r);
      moves |= with;
      stays |= !with;
    }
    if (!moves || !stays) continue;
    double each = loads_each(w->k, reads, r, lane);
    if (!best || each < least || (each == least && r->n > best->n)) {
      best = r;
      least = each;
    }
  }
  return best ? best->r : NULL;
}

static bool reads_even(Rows *w, const UOpVec *reads, UOp *r) {
  bool even = true;
  for (size_t i = 0; even && i < reads->len; i++) {
    int64_t step = reads->at[i]->src[0]->op == OPS_PARAM ? stride_of(w->k, reads->at[i], r) : 0;
    even = step == 0 || step == 1;
  }
  return even;
}

/* Whether copies pay. Data that is not contiguous from row to row is copied. It must then be reused along the
 * inner loop, as a query is for each key. If each row of a matrix is used only once, the matrix would be
 * read, copied and read again. */
static bool copies_pay(Rows *w, const UOpVec *reads, UOp *r, const UOp *inner) {
  bool pay = true;
  for (size_t i = 0; pay && i < reads->len; i++) {
    int64_t step = reads->at[i]->src[0]->op == OPS_PARAM ? stride_of(w->k, reads->at[i], r) : 0;
    pay = step == 0 || step == 1 || !depends(w->k, reads->at[i], inner);
  }
  return pay;
}

/* Whether a reduction is a sum of products of two different values in memory. */
static bool sums_products(const UOp *reduce) {
  const UOp *v = reduce->src[0];
  while (v->op == OPS_CAST || (v->op == OPS_WHERE && is_const(v->src[2])))
    v = v->op == OPS_CAST ? v->src[0] : v->src[1];
  return v->op == OPS_MUL && v->src[0] != v->src[1] && uop_has(v->src[0], INDEX) && uop_has(v->src[1], INDEX);
}

/* Whether all products can have their lanes along r: they read only vectors and scalars, or they reuse what
 * they read both here and in an inner loop. Other sums can have lanes along any loop, because data that is
 * not contiguous is copied. */
static bool products_fit(Rows *w, UOp *r) {
  bool ok = true, any = false;
  w->inner.len = 0;
  for (size_t i = 0; ok && i < w->f->reduces.len; i++) {
    UOp *reduce = w->f->reduces.at[i];
    UOpVec reads = {0};
    ok = operands(w->k, reduce, &reads);
    UOp *inner = ok && reads.len > 1 ? inner_loop(w, reduce, &reads, r) : NULL;
    if (ok && reads.len > 1 && sums_products(reduce)) {
      any = true;
      ok = (inner && shared_along(w->k, &reads, r) && copies_pay(w, &reads, r, inner)) ||
           reads_even(w, &reads, r);
    }
    if (ok && inner && !vec_has(&w->inner, inner)) ok = vec_push(w->k->mem, &w->inner, inner);
    vec_free(w->k->mem, &reads);
  }
  return ok && any;
}

/* The number of reads and writes along r that are neither a vector nor a scalar. */
static int64_t odd_along(Rows *w, UOp *r) {
  int64_t odd = bad_loads(w->k, w->f, r);
  for (int j = 0; j < w->k->sink->nsrc; j++)
    odd += !contiguous(w->k, w->k->sink->src[j], r);
  return odd;
}

/* Finds the loop for the lanes. Fewer rows than lanes would leave lanes idle. If a variable gives the number
 * of rows, the geometric mean of its bounds is used. */
static bool find_lane(Rows *w, int64_t least) {
  const RInfo *best = NULL;
  int64_t fewest = 0;
  for (int i = 0; i < w->f->nr; i++) {
    const RInfo *r = &w->f->r[i];
    const UOp *rows = r->r->src[0];
    bool few = (double)rows->vmax * (double)TG_MAX(rows->vmin, 1) < (double)(least * least);
    if (!r->grid || r->n < least || few || r->nout != w->k->sink->nsrc) continue;
    int64_t odd = odd_along(w, r->r);
    if (odd && !products_fit(w, r->r)) continue;
    if (!best || odd < fewest || (odd == fewest && r->n > best->n)) {
      best = r;
      fewest = odd;
    }
  }
  w->lane = best ? best->r : NULL;
  if (best && !products_fit(w, best->r)) w->inner.len = 0;
  return best;
}

/* ---- the list */
static bool opt_put(Rows *w, OptVec *list, OptOp op, int64_t r, int64_t n) {
  return vec_push(w->k->mem, list, ((Opt){op, r, n}));
}

static int64_t id_of(const UOp *r) { return r->arg.range.id; }

/* Whether blocks are placed inside the single iterations of a loop of the grid, so that they copy the data of
 * one iteration. This is not done for a loop that no copy moves with, because each copy would be made again
 * in every iteration, nor for a loop along which a copy reads memory in order. */
static bool is_batch(Rows *w, const UOpVec *copied, UOp *r) {
  bool batch = r != w->lane && r->op == OPS_RANGE && r->arg.range.type == AXIS_GLOBAL && r->src[0]->vmax > 1;
  bool moves = false;
  for (size_t i = 0; batch && i < copied->len; i++) {
    batch = stride_of(w->k, copied->at[i], r) != 1;
    moves |= address_moves(w->k, copied->at[i], r);
  }
  return batch && moves;
}

/* Whether a copy is the same in all iterations of the batch, as weights are for every picture. */
static bool is_common(Rows *w, const UOpVec *copied, const UOp *x) {
  const UOp *out = w->k->sink->src[0];
  bool common = true;
  for (int i = 2; common && i < out->nsrc; i++)
    common = !is_batch(w, copied, out->src[i]) || !address_moves(w->k, x, out->src[i]);
  return common;
}

static bool any_common(Rows *w, const UOpVec *copied) {
  bool any = false;
  for (size_t i = 0; i < copied->len; i++)
    any |= is_common(w, copied, copied->at[i]);
  return any;
}

/* The rows that a copy holds: rows that the whole batch shares, all rows of one iteration of the batch, or a
 * block of rows. */
typedef enum Whose { OF_BATCH, OF_ITERATION, OF_BLOCK } Whose;

static Whose whose(Rows *w, const UOpVec *copied, UOp *x) {
  if (is_common(w, copied, x)) return OF_BATCH;
  return depends(w->k, x, w->lane) ? OF_BLOCK : OF_ITERATION;
}

static bool stage_rows(Rows *w, const UOpVec *copied, Whose of, OptVec *list) {
  bool ok = true;
  for (size_t i = 0; ok && i < copied->len; i++)
    if (whose(w, copied, copied->at[i]) == of)
      ok = opt_put(w, list, OPT_STAGE, memory_of(copied->at[i])->arg.param.slot, EVERY_READ);
  return ok;
}

/* Adds the blocks of lanes and of the batch, with their copies. Copies that the whole batch shares are made
 * outside the batch loop. */
static bool block_rows(Rows *w, const UOpVec *copied, OptVec *list, int64_t lanes) {
  const UOp *out = w->k->sink->src[0];
  bool common = any_common(w, copied), ok = true;
  if (common) ok = opt_put(w, list, OPT_TILE, id_of(w->lane), lanes) && stage_rows(w, copied, OF_BATCH, list);
  for (int i = 2; ok && i < out->nsrc; i++)
    if (is_batch(w, copied, out->src[i])) ok = opt_put(w, list, OPT_TILE, id_of(out->src[i]), 1);
  ok = ok && stage_rows(w, copied, OF_ITERATION, list);
  if (!common) ok = ok && opt_put(w, list, OPT_TILE, id_of(w->lane), lanes);
  return ok && stage_rows(w, copied, OF_BLOCK, list);
}

/* If an output is contiguous along a loop inside the row, it is transposed in squares. */
static bool iter_stores(Rows *w, OptVec *list) {
  bool ok = true;
  for (int j = 0; ok && j < w->k->sink->nsrc; j++) {
    const UOp *s = w->k->sink->src[j];
    if (stride_of(w->k, s->src[0], w->lane) == 1) continue;
    for (int i = 2; ok && i < s->nsrc; i++) {
      UOp *r = s->src[i];
      if (r->op != OPS_RANGE || r->arg.range.type == AXIS_GLOBAL || vec_has(&w->inner, r)) continue;
      bool line = is_const(r->src[0]) && r->src[0]->arg.v.i > 1 && stride_of(w->k, s->src[0], r) == 1;
      bool had = false;
      for (size_t o = 0; o < list->len; o++)
        had |= list->at[o].op == OPT_UPCAST && list->at[o].r == id_of(r);
      if (line && !had) ok = opt_put(w, list, OPT_UPCAST, id_of(r), STORE_TILE);
    }
  }
  return ok;
}

/* The loop that is distributed to threads. Other loops of the grid are preferred to the lanes, because the
 * rows of a triangle differ in work. Among equal loops, the one with the least waiting is chosen. A loop
 * inside a copy is never distributed. */
static UOp *distributed_loop(Rows *w, const UOpVec *copied, int64_t lanes) {
  UOp *best = NULL;
  double least = 0;
  bool common = any_common(w, copied);
  for (int i = 0; i < w->f->nr; i++) {
    const RInfo *r = &w->f->r[i];
    int64_t n = r->r == w->lane ? r->n / lanes : r->n, most = (n + w->ncores - 1) / w->ncores;
    if (!r->grid || n < w->ncores || r->nout != w->k->sink->nsrc) continue;
    if (copied->len && r->r != w->lane && (common || !is_batch(w, copied, r->r))) continue;
    double wait = (double)(most * w->ncores) / (double)n * (r->r == w->lane ? 1.25 : 1);
    if (!best || wait < least) {
      best = r->r;
      least = wait;
    }
  }
  return best;
}

static int64_t online_block(int64_t n) {
  for (int64_t size = ONLINE_BLOCK; size >= LEAST_ONLINE_BLOCK; size--)
    if (n % size == 0) return size;
  return ONLINE_BLOCK;
}

static int64_t widest_sum(const Rows *w) { /* bytes */
  size_t most = 1;
  for (size_t i = 0; i < w->f->reduces.len; i++)
    most = TG_MAX(most, dtype_size((DType)w->f->reduces.at[i]->dtype));
  return (int64_t)most;
}

static bool shape(Rows *w, const UOpVec *copied, int64_t lanes, OptVec *list) {
  const Target *t = w->k->opt->target;
  int64_t vectors = TG_MAX(lanes * widest_sum(w) / t->vec_bytes, 1);
  int64_t room = (t->registers - vectors - NUMBERS) / vectors, tile = TG_MAX(TG_MIN(room, TILE_ROWS), 2);
  tile = TG_MAX(tile_of_sums(w->k, w->f, TG_MAX(lanes / TILE_LANES, 1), tile, 2), 2);
  bool ok = !w->axis || opt_put(w, list, OPT_ONLINE, id_of(w->axis), online_block(w->axis->src[0]->arg.v.i));
  ok = ok && (!copied->len || block_rows(w, copied, list, lanes));
  for (size_t i = 0; ok && i < w->inner.len; i++) {
    const UOp *r = w->inner.at[i];
    ok = opt_put(w, list, OPT_UPCAST, id_of(r), is_const(r->src[0]) ? balanced(r->src[0]->vmax, tile) : tile);
  }
  ok = ok && iter_stores(w, list) && opt_put(w, list, OPT_VEC, id_of(w->lane), lanes);
  UOp *distributed = ok && w->ncores > 1 ? distributed_loop(w, copied, lanes) : NULL;
  return ok && (!distributed || opt_put(w, list, OPT_THREAD, id_of(distributed), w->ncores));
}

/* Whether x reads narrow floats that each iteration of another loop of the grid has its own copy of, such as
 * the keys of a head. All blocks of rows would convert the same values unless a copy holds them as f32. */
static bool converts_again(Rows *w, const UOp *x) {
  enum { LEAST_BLOCKS = 4 };

  const Target *t = w->k->opt->target;
  double n = (double)memory_of(x)->arg.param.nelem;
  bool batch = false;
  for (int i = 0; i < w->f->nr; i++) {
    const RInfo *r = &w->f->r[i];
    if (!r->grid || r->r == w->lane || !address_moves(w->k, x, r->r)) continue;
    batch |= r->n > 1;
    n /= (double)r->n;
  }
  bool again = w->lane->src[0]->vmax >= LEAST_BLOCKS * t->vec_bytes / 2;
  return batch && again && dtype_is_narrow_float((DType)x->dtype) &&
         n * sizeof(float) <= (double)t->cache[LEVEL_L2] / 2;
}

/* Finds the reads that are copied: those whose stride along the lanes is too large for vectors and shuffles
 * (windows of a small stride need no copy), and those that each block would otherwise convert. */
static bool find_copied(Rows *w, UOpVec *copied) {
  bool ok = true;
  for (size_t i = 0; ok && i < w->f->loads.len; i++) {
    UOp *x = w->f->loads.at[i];
    bool had = x->src[0]->op != OPS_PARAM;
    for (size_t j = 0; j < copied->len; j++)
      had |= copied->at[j]->src[0] == x->src[0];
    if (had) continue;
    bool copy =
        depends(w->k, x, w->lane) ? llabs(stride_of(w->k, x, w->lane)) > MOST_STRIDE : converts_again(w, x);
    if (copy) ok = vec_push(w->k->mem, copied, x);
  }
  return ok;
}

/* If the rows of a block of lanes do not fit in the near caches: the next axis of the rows after `last` that
 * ONLINE could cut into blocks. Otherwise, or after the last one, NULL. */
static UOp *next_axis(const Rows *w, int64_t lanes, const UOp *last) {
  const Target *t = w->k->opt->target;
  int64_t bytes = 0;
  bool past = !last;
  for (size_t i = 0; i < w->f->fills.len; i++) {
    const UOp *m = stored_in(w->f->fills.at[i]);
    bytes += m->arg.param.nelem * (int64_t)dtype_size((DType)m->dtype);
  }
  for (size_t i = 0; bytes * lanes > t->cache[LEVEL_L2] / 4 && i < w->f->reduces.len; i++) {
    const UOp *reduce = w->f->reduces.at[i];
    UOp *r = reduce->src[reduce->nsrc - 1];
    if (past && reduce->nsrc == 2 && is_const(r->src[0]) && r->src[0]->arg.v.i >= 2 * ONLINE_BLOCK) return r;
    past |= r == last;
  }
  return NULL;
}

static bool try_list(Rows *w, const UOpVec *copied, int64_t lanes, OptVec *out, bool *chosen) {
  out->len = 0;
  bool ok = shape(w, copied, lanes, out);
  *chosen = ok && opts_fit(w->k, out);
  return ok;
}

/* Finds the widest list that can be applied: with all copies, or without one copy if that cannot be made;
 * with ONLINE blocks if rows are long. */
static bool best_list(Rows *w, int64_t most, int64_t least, OptVec *out, bool *chosen) {
  UOpVec copied = {0};
  bool ok = find_copied(w, &copied);
  for (int64_t lanes = most; ok && lanes >= least && !*chosen; lanes /= 2)
    for (size_t leave = 0; ok && leave <= copied.len && !*chosen; leave++) {
      UOpVec some = {0};
      for (size_t i = 0; ok && i < copied.len; i++)
        if (!leave || i != leave - 1) ok = vec_push(w->k->mem, &some, copied.at[i]);
      w->axis = NULL;
      while (ok && !*chosen && (w->axis = next_axis(w, lanes, w->axis)))
        ok = try_list(w, &some, lanes, out, chosen);
      w->axis = NULL;
      if (ok && !*chosen) ok = try_list(w, &some, lanes, out, chosen);
      vec_free(w->k->mem, &some);
    }
  if (!*chosen) out->len = 0;
  vec_free(w->k->mem, &copied);
  return ok;
}

bool rows_batched(Kernel *k, const Info *f, int ncores, OptVec *out, bool *chosen) {
  Rows w = {.k = k, .f = f, .ncores = ncores};
  int64_t vector = k->opt->target->vec_bytes / 4;
  bool ok = true;
  *chosen = false;
  if (!f->scans && find_lane(&w, vector)) {
    int64_t n = w.lane->src[0]->vmax;
    ok = best_list(&w, n >= 2 * vector ? 2 * vector : vector, vector, out, chosen);
  }
  vec_free(k->mem, &w.inner);
  return ok;
}
