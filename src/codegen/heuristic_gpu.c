/* heuristic_gpu.c: lists of opts that a kernel may have on a GPU. In: its loops, and the strides of its
 * reads and writes along them (heuristic.h). Out: lists; choose_grid.c takes the one that costs least.
 *
 * The lists give: a thread to each result, or to each register tile of results if a load can be reused; a
 * block to each row, or to a few neighbouring columns, with its threads along the reduction; a block to
 * each tile of a contraction (gpu_tiles.c). */
#include "codegen/heuristic.h"

enum { LEAST_ROW = 32, MOST_OF_ROW = 512, FEW_RESULTS = 4096, LEAST_BLOCK = 128 };

/* The iterations of the longest loop that is not a loop of the grid. */
static int64_t longest_inside(const Info *f) {
  int64_t longest = 0;
  for (int i = 0; i < f->nr; i++)
    if (!f->r[i].grid) longest = TG_MAX(longest, f->r[i].n);
  return longest;
}

static double results_of(const Info *f) {
  double grid = 1;
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].grid) grid *= (double)f->r[i].n;
  return grid;
}

static bool has_rows(const Kernel *k, const Info *f) {
  bool inner = false; /* some output has loops of its own */
  for (int i = 0; i < f->nr; i++)
    for (int j = 0; j < k->sink->nsrc; j++)
      inner |= store_has(k->sink->src[j], f->r[i].r) && !f->r[i].grid;
  return longest_inside(f) >= LEAST_ROW && (f->fills.len || results_of(f) < FEW_RESULTS || inner);
}

static bool stores_follow(Kernel *k, UOp *r) { /* whether neighbours along r are neighbours in all outputs */
  bool fits = true;
  for (int j = 0; fits && j < k->sink->nsrc; j++)
    fits = contiguous(k, k->sink->src[j], r);
  return fits;
}

/* ---- rows */
/* The loop of columns if reductions go across rows of memory: neighbours in a warp take neighbouring
 * columns. NULL: there is none. */
static const RInfo *column_of(Kernel *k, const Info *f) {
  const RInfo *column = NULL;
  if (f->fills.len || !f->reduces.len) return NULL;
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].reduce && f->r[i].n > 1 && !bad_loads(k, f, f->r[i].r)) return NULL;
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    bool fits = r->grid && r->n >= WARP / 2 && r->nout == k->sink->nsrc && !bad_loads(k, f, r->r);
    if (fits && stores_follow(k, r->r)) column = r;
  }
  return column;
}

/* Lists the nests, outermost first, because everything inside a distributed loop belongs to one thread. */
static bool nests_of(Kernel *k, const Info *f, UOpVec *nests) {
  bool ok = true;
  for (int j = 0; ok && j < k->sink->nsrc; j++)
    ok = vec_push(k->mem, nests, k->sink->src[j]);
  for (size_t j = f->fills.len; ok && j-- > 0;)
    ok = vec_push(k->mem, nests, f->fills.at[j]);
  for (size_t j = f->reduces.len; ok && j-- > 0;)
    ok = vec_push(k->mem, nests, f->reduces.at[j]);
  return ok;
}

/* The loop of a nest to distribute to a block's threads: the innermost that is long enough, or the
 * longest. NULL: there is none, or the nest is inside a distributed loop. *distributed: the bits of that
 * loop and of all loops inside it are added. */
static const RInfo *distribute_loop(const Info *f, const UOp *nest, int64_t threads, uint64_t *distributed) {
  int first = nest->op == OPS_STORE ? 2 : 1;
  const RInfo *best = NULL;
  bool inside = (nest->ranges & *distributed) != 0;
  for (int s = first; s < nest->nsrc; s++) {
    int i = find_range(f, nest->src[s]);
    const RInfo *r = i < 0 ? NULL : &f->r[i];
    inside |= (*distributed & range_bit(nest->src[s]->arg.range.id)) != 0;
    if (r && !r->grid && r->n > 1 && (!best || r->n >= best->n || r->n >= threads)) best = r;
  }
  bool here = best && !inside, past = inside;
  for (int s = first; s < nest->nsrc; s++) { /* adds the loop and the loops inside it */
    past |= here && nest->src[s] == best->r;
    if (past) *distributed |= range_bit(nest->src[s]->arg.range.id);
  }
  *distributed = ranges_inside(f, *distributed);
  return here ? best : NULL;
}

/* Adds a list that gives each row, or each few neighbouring columns, to `threads` threads. */
static bool block_per_row(Kernel *k, const Info *f, int64_t threads, const RInfo *column, ListVec *lists) {
  UOpVec nests = {0};
  uint64_t distributed = 0;
  OptVec *out = list_new(k, lists);
  bool ok = out && nests_of(k, f, &nests);
  if (ok && column) {
    int64_t wide = power_below(column->n, WARP);
    threads = TG_MAX(threads / wide, 1);
    ok = opt_add(k, out, OPT_LOCAL, column, wide);
  }
  for (size_t j = 0; ok && j < nests.len; j++) {
    const RInfo *r = distribute_loop(f, nests.at[j], threads, &distributed);
    ok = !r || opt_add(k, out, r->reduce ? OPT_GROUP : OPT_LOCAL, r, threads);
  }
  vec_free(k->mem, &nests);
  return ok;
}

/* ---- a thread per result */
/* The number of threads for whose own rows a block's local memory has room. */
static int64_t rows_room(const Kernel *k, const Info *f) {
  int64_t bytes = 1;
  for (size_t j = 0; j < f->fills.len; j++) {
    const UOp *row = f->fills.at[j]->src[0]->src[0];
    bytes += row->arg.param.nelem * (int64_t)dtype_size((DType)row->dtype);
  }
  return f->fills.len ? TG_MAX(k->opt->target->local_bytes / bytes, 1) : INT64_MAX;
}

/* The longest loop of the grid along which neighbours in a warp are neighbours in memory, or NULL. */
static const RInfo *warp_loop(Kernel *k, const Info *f) {
  const RInfo *lane = NULL;
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    if (r->grid && r->n > 1 && (!lane || r->n > lane->n) && stores_follow(k, r->r)) lane = r;
  }
  return lane;
}

/* The longest loop of the grid, except for `lane`, along which some load can be reused, or NULL. */
static const RInfo *tile_loop(Kernel *k, const Info *f, const RInfo *lane) {
  const RInfo *tile = NULL;
  for (int i = 0; f->reduces.len && i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    bool longer = r->grid && r != lane && r->n > 1 && (!tile || r->n > tile->n);
    if (longer && reused_along(k, f, r->r)) tile = r;
  }
  return tile;
}

static bool thread_per_tile(Kernel *k, const Info *f, const RInfo *lane, const RInfo *tile, ListVec *lists) {
  OptVec *out = list_new(k, lists);
  int64_t vec = lane->n % 4 == 0 && lane->n >= 128 && !bad_loads(k, f, lane->r) ? 4 : 1;
  int64_t room = rows_room(k, f),
          threads = power_below(lane->n / vec, TG_MIN(room, tile ? WARP : BLOCK_THREADS));
  bool ok = out != NULL;
  if (ok && tile && tile->n >= 4)
    ok = opt_add(k, out, OPT_UPCAST, tile, tile->n % 8 == 0 && tile->n >= 64 ? 8 : 4);
  if (ok && vec > 1) ok = opt_add(k, out, OPT_VEC, lane, vec);
  if (ok && threads > 1) ok = opt_add(k, out, OPT_LOCAL, lane, threads);
  const RInfo *other = tile;
  for (int i = 0; i < f->nr && !other; i++)
    if (f->r[i].grid && &f->r[i] != lane && f->r[i].n > 1) other = &f->r[i];
  if (!ok || !other || threads >= LEAST_BLOCK) return ok;
  int64_t n = other == tile && other->n >= 4 ? (other->n + 3) / 4 : other->n;
  int64_t more = power_below(n, TG_MIN(room, LEAST_BLOCK) / threads); /* a block has at least a few warps */
  return more <= 1 || opt_add(k, out, OPT_LOCAL, other, more);
}

static bool thread_per_result(Kernel *k, const Info *f, ListVec *lists) {
  const RInfo *lane = warp_loop(k, f), *tile = lane ? tile_loop(k, f, lane) : NULL, *any = NULL;
  if (lane)
    return thread_per_tile(k, f, lane, NULL, lists) && (!tile || thread_per_tile(k, f, lane, tile, lists));
  OptVec *out = list_new(k, lists);
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].grid && (!any || f->r[i].n > any->n)) any = &f->r[i];
  int64_t threads = any ? power_below(any->n, TG_MIN(rows_room(k, f), LEAST_BLOCK)) : 1;
  return out && (threads <= 1 || opt_add(k, out, OPT_LOCAL, any, threads));
}

/* The ordered loop of a running sum over long rows. NULL: there is none. */
static const RInfo *scanned(const Kernel *k, const Info *f) {
  const RInfo *row = NULL;
  for (int i = 0; f->scans && i < f->nr; i++)
    if (f->r[i].r->arg.range.type == AXIS_ORDERED && is_const(f->r[i].r->src[0])) row = &f->r[i];
  int64_t n = row ? row->r->src[0]->arg.v.i : 0;
  bool fits = n >= 2 * WARP && !f->reduces.len && !f->fills.len && k->opt->target->warp == WARP;
  return fits ? row : NULL;
}

static bool row_lists(Kernel *k, const Info *f, ListVec *lists) {
  const RInfo *column = column_of(k, f), *scan = scanned(k, f);
  int64_t longest = scan ? scan->r->src[0]->arg.v.i : longest_inside(f);
  bool ok = true;
  for (int64_t threads = WARP; ok && threads <= power_below(longest, MOST_OF_ROW); threads *= 2) {
    OptVec *out = scan ? list_new(k, lists) : NULL;
    ok = scan ? out && opt_add(k, out, OPT_GROUP, scan, threads) : block_per_row(k, f, threads, NULL, lists);
    int64_t high = threads / 4; /* rows of threads in a block that is a warp wide */
    if (ok && column && WARP * high <= k->opt->target->most.block)
      ok = block_per_row(k, f, WARP * high, column, lists);
  }
  return ok;
}

bool grid_lists(Kernel *k, const Info *f, ListVec *lists) {
  bool rows = has_rows(k, f), ok = rows || thread_per_result(k, f, lists);
  if (ok) ok = row_lists(k, f, lists);
  if (ok && rows) ok = thread_per_result(k, f, lists);
  return ok && tile_lists(k, f, lists);
}
