/* heuristic.c: what the choice of opts looks at (heuristic.h). In: a kernel's graph. Out: its loops, and
 * the strides of its reads and writes along them. No kernel is recognised by name: lanes are put where
 * memory is contiguous, register tiles where a load can be reused, and the loop that streams the smaller
 * operand is placed inside. heuristic_cpu.c and heuristic_gpu.c make the choices. */
#include "codegen/heuristic.h"
#include "plan/tile.h"
#include <string.h>

bool store_has(const UOp *s, const UOp *r) {
  for (int i = 2; i < s->nsrc; i++)
    if (s->src[i] == r) return true;
  return false;
}

void info_free(Kernel *k, Info *f) {
  mem_free(k->mem, f->r);
  vec_free(k->mem, &f->loads), vec_free(k->mem, &f->reduces), vec_free(k->mem, &f->fills);
}

bool info_get(Kernel *k, Info *f) {
  UOpVec order = {0};
  memset(f, 0, sizeof *f);
  bool ok = kernel_nodes(k, k->sink, &order);
  size_t nid = store_id_limit(k->st) + 1;
  /* 1: the node is loaded. An INDEX that only a store uses is an address, not a load. */
  uint8_t *loaded = mem_alloc(k->mem, nid);
  f->r = mem_alloc(k->mem, (order.len + 1) * sizeof *f->r);
  ok = ok && loaded && f->r;
  for (size_t i = 0; ok && i < order.len; i++)
    for (int s = 0; s < order.at[i]->nsrc; s++)
      if (!(order.at[i]->op == OPS_STORE && s == 0)) loaded[order.at[i]->src[s]->id] = 1;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (u->op == OPS_RANGE) {
      f->r[f->nr++] = (RInfo){.r = u,
                              .n = u->src[0]->ranges                   ? 0
                                   : u->arg.range.type == AXIS_ORDERED ? 1
                                                                       : u->src[0]->vmax,
                              .grid = u->arg.range.type == AXIS_GLOBAL};
    } else if (u->op == OPS_SCAN)
      f->scans = true;
    else if (u->op == OPS_INDEX && loaded[u->id])
      ok = vec_push(k->mem, &f->loads, u);
    else if (u->op == OPS_REDUCE)
      ok = vec_push(k->mem, &f->reduces, u);
    else if (u->op == OPS_AFTER)
      for (int s = 1; ok && s < u->nsrc; s++)
        ok = vec_push(k->mem, &f->fills, u->src[s]);
  }
  for (int i = 0; ok && i < f->nr; i++) {
    for (size_t j = 0; j < f->reduces.len; j++)
      for (int s = 1; s < f->reduces.at[j]->nsrc; s++)
        f->r[i].reduce |= f->reduces.at[j]->src[s] == f->r[i].r;
    for (int j = 0; j < k->sink->nsrc; j++)
      f->r[i].nout += store_has(k->sink->src[j], f->r[i].r);
  }
  vec_free(k->mem, &order);
  mem_free(k->mem, loaded);
  return ok;
}

int64_t expr_stride(Kernel *k, UOp *e, UOp *r) {
  if (!depends(k, e, r)) return 0;
  int64_t step;
  return moves_evenly(k, e, r, &step) ? step : STRIDE_ODD;
}

int64_t stride_of(Kernel *k, const UOp *index, UOp *r) {
  const UOp *memory = index->src[0];
  if (memory->op != OPS_PARAM || !memory->nsrc) return expr_stride(k, index->src[1], r);
  int64_t sum = 0, step = 1;
  for (int d = memory->nsrc - 1; d >= 0; step *= memory->src[d--]->arg.v.i) {
    int64_t s = expr_stride(k, index->src[1 + d], r);
    if (s == STRIDE_ODD) {
      UOp *flat = index_flat(k->st, k->mem, index);
      return flat ? expr_stride(k, flat, r) : STRIDE_ODD;
    }
    sum += s * step;
  }
  return sum;
}

bool address_moves(Kernel *k, const UOp *index, const UOp *r) {
  for (int i = 1; i <= index_naxes(index); i++)
    if (depends(k, index->src[i], r)) return true;
  return false;
}

bool gate_moves(Kernel *k, const UOp *index, const UOp *r) {
  return index->arg.i && depends(k, index_gate(index), r);
}

int64_t bad_loads(Kernel *k, const Info *f, UOp *r) {
  int64_t bad = 0;
  for (size_t i = 0; i < f->loads.len; i++) {
    int64_t s = stride_of(k, f->loads.at[i], r);
    bad += (s != 0 && s != 1) || gate_moves(k, f->loads.at[i], r);
  }
  return bad;
}

int loads_apart(Kernel *k, UOp *value, UOp *r) {
  UOpVec order = {0};
  int n = 0;
  bool ok = kernel_nodes(k, value, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    if (order.at[i]->op != OPS_INDEX) continue;
    int64_t by = stride_of(k, order.at[i], r);
    n += (by != 0 && by != 1) || gate_moves(k, order.at[i], r);
  }
  vec_free(k->mem, &order);
  return n;
}

bool contiguous(Kernel *k, const UOp *store, UOp *r) {
  return !depends(k, store->src[0], r) || stride_of(k, store->src[0], r) == 1;
}

int find_range(const Info *f, const UOp *r) {
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].r == r) return i;
  return -1;
}

bool reused_along(Kernel *k, const Info *f, const UOp *r) {
  bool fixed = false, moves = false, all = true;
  for (size_t j = 0; j < f->loads.len; j++)
    if (depends(k, f->loads.at[j], r))
      moves = true;
    else
      fixed = true;
  for (size_t j = 0; all && j < f->reduces.len; j++)
    all = depends(k, f->reduces.at[j], r);
  return fixed && moves && all;
}

/* The most sums that are under way at once in one value. A sum that fills a row in local memory is
 * complete by then and does not count. Returns 1 also if a value is too large to be searched. */
static int sums_at_once(Kernel *k, const Info *f) {
  enum { MOST_SEARCHED = 512 };

  int most = 1;
  for (size_t j = 0; f->reduces.len > 1 && j < f->reduces.len; j++) {
    UOpVec seen = {0};
    int n = 1;
    bool ok = vec_push(k->mem, &seen, f->reduces.at[j]->src[0]);
    for (size_t i = 0; ok && i < seen.len; i++) {
      const UOp *u = seen.at[i];
      ok = seen.len < MOST_SEARCHED;
      n += u->op == OPS_REDUCE;
      for (int s = 0; ok && s < u->nsrc && u->op != OPS_AFTER && u->op != OPS_INDEX; s++)
        if (!vec_has(&seen, u->src[s])) ok = vec_push(k->mem, &seen, u->src[s]);
    }
    if (ok) most = TG_MAX(most, n);
    vec_free(k->mem, &seen);
  }
  return most;
}

int64_t tile_of_sums(Kernel *k, const Info *f, int64_t vectors, int64_t most, int fits) {
  enum { OTHERS = 4 }; /* registers for the values that are added */

  int sums = sums_at_once(k, f);
  int64_t room = ((int64_t)tile_room(k->opt->target) - OTHERS) / (sums * TG_MAX(vectors, 1));
  return sums > fits ? TG_MIN(most, room) : most;
}

bool opt_add(Kernel *k, OptVec *out, OptOp op, const RInfo *r, int64_t n) {
  return vec_push(k->mem, out, ((Opt){op, r->r->arg.range.id, n}));
}

uint64_t ranges_inside(const Info *f, uint64_t around) {
  for (uint64_t before = 0; before != around;) {
    before = around;
    for (size_t j = 0; j < f->reduces.len; j++) {
      const UOp *u = f->reduces.at[j];
      for (int s = 1; (u->ranges & around) && s < u->nsrc; s++)
        around |= range_bit(u->src[s]->arg.range.id);
    }
  }
  return around;
}
