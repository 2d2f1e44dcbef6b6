/* bands.c: consecutive kernels that run for one band of rows at a time. In: a schedule, and a machine with
 * less memory than its temporaries take (Target.memory). Out: the same kernels, some of them in bands: one
 * loop over bands runs all of them, and what one kernel leaves for the next is only as high as a band.
 *
 * Rows are the iterations of one loop of a kernel's grid. The first row of a kernel in a band is a
 * variable of its graph, so one program serves all bands. All windows of a kernel have the same height,
 * and are moved back if they would leave the axis. Rows that two bands need are computed in both. What is
 * read after the last band stays whole. */
#include "schedule/stage.h"
#include "uop/dims.h"
#include <string.h>

enum { MOST_ALONG = 12, MOST_COUNT = 64, MOST_TRIED = 8, SMALL_PART = 16 };

/* Rows lo .. hi - 1; none if lo >= hi. */
typedef struct Part {
  int64_t lo, hi;
} Part;

/* One kernel of the chain. height: rows of its window; need: rows that each band needs of it */
typedef struct Row {
  UOp *loop;
  int64_t extent, height;
  bool whole; /* it stores something that is not in bands */
  Part need[MOST_COUNT];
  int64_t at[MOST_COUNT]; /* its first row in each band */
} Row;

/* A temporary. writer: the kernel that stores it. It has `extent` rows, `stride` elements apart; 0: not known
 * yet. */
typedef struct Kept {
  int writer;
  int64_t stride, extent;
  bool band; /* it is not needed after the chain */
} Kept;

typedef struct Bands {
  Sched *s;
  Schedule *out;
  UOpVec *reads; /* by kernel: the INDEX nodes that it reads */
  Kept *kept;    /* by temporary */
  Row row[2 * MOST_ALONG + 1];
  int first, last, count;
  double us; /* extra time for rows that are computed more than once */
  int64_t peak;
} Bands;

static int64_t temp_bytes(const SchedTemp *t) { return t->nelem * (int64_t)dtype_size(t->dtype); }

/* A temporary with memory of its own: no root, no part of another one, and not made of parts. */
static bool is_own(const SchedTemp *t) { return t->root < 0 && !t->in && !t->whole; }

static int temp_of(const SchedKernel *k, const UOp *param) {
  int64_t slot = param->arg.param.slot;
  return slot >= 0 && slot < k->narg && k->arg[slot] >= TEMP_BASE ? (int)(k->arg[slot] - TEMP_BASE) : -1;
}

/* ---- what kernels read */
static bool is_memory(const UOp *u) { return u->op == OPS_INDEX && u->src[0]->op == OPS_PARAM; }

/* Lists the INDEX nodes of kernel k, including places that are stored to, because these may be read as
 * well. */
static bool reads_listed(Bands *b, int k) {
  UOp *sink = b->out->kernel[k].ast;
  UOpVec order = {0};
  UOpMap *seen = uop_map_begin(b->s->st, b->s->st);
  bool ok = seen && uop_toposort(b->s->st, b->s->mem, &sink, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    for (int j = order.at[i]->op == OPS_STORE; ok && j < order.at[i]->nsrc; j++) {
      UOp *x = order.at[i]->src[j];
      if (is_memory(x) && !uop_map_get(seen, x))
        ok = uop_map_put(b->s->st, seen, x, x) && vec_push(b->s->mem, &b->reads[k], x);
    }
  vec_free(b->s->mem, &order);
  uop_map_end(b->s->st, seen);
  return ok;
}

/* The distance of elements along axis d, in elements. */
static int64_t stride_of(const UOp *param, int d) {
  int64_t stride = 1;
  for (int i = d + 1; i < param->nsrc; i++)
    stride *= param->src[i]->vmax;
  return stride;
}

/* The axis with this stride and extent; -1: there is none. */
static int axis_of(const UOp *param, int64_t stride, int64_t extent) {
  for (int d = 0; d < param->nsrc; d++)
    if (is_const(param->src[d]) && param->src[d]->vmax == extent && stride_of(param, d) == stride) return d;
  return -1;
}

static bool depends(Bands *b, UOp *e, const UOp *on) { return uop_contains(b->s->st, b->s->mem, &e, 1, on); }

static bool writes_in_chain(const Bands *b, int t) {
  return t >= 0 && b->kept[t].writer >= b->first && b->kept[t].writer <= b->last;
}

/* ---- which loop has the rows of a kernel */
static bool is_grid(const UOp *r) {
  return r->op == OPS_RANGE && r->arg.range.type == AXIS_GLOBAL && is_const(r->src[0]) && r->src[0]->vmax > 1;
}

/* Whether r is a loop of every store, and the row axis of each temporary that is read in rows. */
static bool stores_along(Bands *b, int k, const UOp *r) {
  const SchedKernel *sk = &b->out->kernel[k];
  for (int i = 0; i < sk->ast->nsrc; i++) {
    const UOp *st = sk->ast->src[i], *at = st->src[0];
    bool over = false;
    if (st->op != OPS_STORE || !is_memory(at)) return false;
    for (int l = 2; l < st->nsrc; l++)
      over |= st->src[l] == r;
    int t = temp_of(sk, at->src[0]);
    if (!over) return false;
    if (t < 0 || !b->kept[t].extent) continue;
    int d = axis_of(at->src[0], b->kept[t].stride, b->kept[t].extent);
    if (d < 0 || at->src[1 + d] != r) return false;
  }
  return true;
}

/* Whether all that k reads of the chain moves with r along one axis; its writer must then have rows along
 * that axis. */
static bool reads_along(Bands *b, int k, const UOp *r) {
  const SchedKernel *sk = &b->out->kernel[k];
  for (size_t i = 0; i < b->reads[k].len; i++) {
    UOp *x = b->reads[k].at[i], *p = x->src[0];
    int t = temp_of(sk, p), d = 0;
    if (!writes_in_chain(b, t)) continue;
    Kept *m = &b->kept[t];
    if (m->extent)
      d = axis_of(p, m->stride, m->extent);
    else
      while (d < p->nsrc && !depends(b, x->src[1 + d], r))
        d++;
    if (d < 0 || d >= p->nsrc || !is_const(p->src[d]) || !depends(b, x->src[1 + d], r)) return false;
    m->stride = stride_of(p, d), m->extent = p->src[d]->vmax;
  }
  return true;
}

static UOp *store_loop(const UOp *sink, int i) {
  const UOp *st = sink->nsrc ? sink->src[0] : sink;
  return st->op == OPS_STORE && st->nsrc > 2 + i ? st->src[2 + i] : NULL;
}

/* Finds the loop of kernel k whose iterations are the rows (for the last kernel: number `loop`), and those of
 * all kernels before it, as their readers require. */
static bool rows_found(Bands *b, int k, int loop) {
  if (k < b->first) return true;
  const SchedKernel *sk = &b->out->kernel[k];
  UOp *r;
  Kept *was = mem_alloc(b->s->mem, ((size_t)b->out->ntemp + 1) * sizeof *was);
  bool ok = false;
  if (was) memcpy(was, b->kept, (size_t)b->out->ntemp * sizeof *was);
  for (int i = 0; was && !ok && (r = store_loop(sk->ast, i)) != NULL; i++) {
    if ((k == b->last && i != loop) || !is_grid(r) || !stores_along(b, k, r)) continue;
    b->row[k - b->first] = (Row){.loop = r, .extent = r->src[0]->vmax};
    ok = reads_along(b, k, r) && rows_found(b, k - 1, loop);
    if (!ok) memcpy(b->kept, was, (size_t)b->out->ntemp * sizeof *was);
  }
  mem_free(b->s->mem, was);
  return ok;
}

/* Whether the chain reads no memory of the user's that it changes, and each temporary has one writer. */
static bool chain_is_pure(const Bands *b) {
  for (int k = b->first; k <= b->last; k++) {
    const SchedKernel *sk = &b->out->kernel[k];
    for (int i = 0; i < sk->ast->nsrc; i++) {
      const UOp *at = sk->ast->src[i]->op == OPS_STORE ? sk->ast->src[i]->src[0] : sk->ast;
      if (!is_memory(at)) return false;
      int64_t to = sk->arg[at->src[0]->arg.param.slot];
      for (int q = b->first; q <= b->last; q++)
        for (size_t j = 0; j < b->reads[q].len; j++) {
          const SchedKernel *from = &b->out->kernel[q];
          bool same = from->arg[b->reads[q].at[j]->src[0]->arg.param.slot] == to;
          if (same && (to < TEMP_BASE || q <= k)) return false;
        }
      if (to >= TEMP_BASE && b->kept[to - TEMP_BASE].writer != k) return false;
    }
  }
  return true;
}

/* ---- how high the windows are */
/* The rows of axis d that index x reads in the window of band i. */
static Part rows_read(Bands *b, int k, UOp *x, int d, int i) {
  Sched *s = b->s;
  Row *r = &b->row[k - b->first];
  UOp *in = uop_range_of(s->st, uop_index_const(s->st, r->height), r->loop->arg.range.id, AXIS_GLOBAL);
  UOp *to = uop_alu2(s->st, OPS_ADD, uop_index_const(s->st, r->at[i]), in);
  UOp *e = to ? uop_substitute(s->st, s->mem, x->src[1 + d], 1, &r->loop, &to) : NULL;
  if (e) e = uop_simplify(s->st, s->mem, e);
  int64_t extent = x->src[0]->src[d]->vmax;
  if (!e) return (Part){0, extent};
  return (Part){TG_MAX(e->vmin, 0), TG_MIN(e->vmax, extent - 1) + 1};
}

static void part_joined(Part *p, Part with) {
  if (with.lo >= with.hi) return;
  bool none = p->lo >= p->hi;
  p->lo = none ? with.lo : TG_MIN(p->lo, with.lo);
  p->hi = none ? with.hi : TG_MAX(p->hi, with.hi);
}

/* Sets the height of the window, and its first row in each band. Returns false if it is empty or the whole
 * loop. */
static bool window_set(Bands *b, int k) {
  Row *r = &b->row[k - b->first];
  int64_t share = (r->extent + b->count - 1) / b->count;
  for (int i = 0; i < b->count; i++) {
    if (r->whole)
      part_joined(&r->need[i], (Part){TG_MIN(i * share, r->extent), TG_MIN((i + 1) * share, r->extent)});
    r->height = TG_MAX(r->height, r->need[i].hi - r->need[i].lo);
  }
  for (int i = 0; i < b->count; i++)
    r->at[i] = r->need[i].lo < r->need[i].hi ? TG_MIN(r->need[i].lo, r->extent - r->height) : 0;
  return r->height > 0 && r->height < r->extent;
}

static bool needs_handed(Bands *b, int k) {
  const SchedKernel *sk = &b->out->kernel[k];
  for (size_t j = 0; j < b->reads[k].len; j++) {
    UOp *x = b->reads[k].at[j];
    int t = temp_of(sk, x->src[0]);
    if (!writes_in_chain(b, t)) continue;
    int d = axis_of(x->src[0], b->kept[t].stride, b->kept[t].extent);
    if (d < 0) return false;
    for (int i = 0; i < b->count; i++)
      part_joined(&b->row[b->kept[t].writer - b->first].need[i], rows_read(b, k, x, d, i));
  }
  return true;
}

/* ---- memory and time */
static int64_t live_bytes(const Bands *b, int k) {
  int64_t sum = 0;
  for (int t = 0; t < b->out->ntemp; t++) {
    const SchedTemp *m = &b->out->temp[t];
    int first = m->first, last = m->last;
    int64_t nbytes = temp_bytes(m);
    if (m->first < 0 || !is_own(m)) continue;
    bool inside = b->count && first <= b->last && last >= b->first;
    if (inside && b->kept[t].band)
      nbytes = nbytes / b->kept[t].extent * b->row[b->kept[t].writer - b->first].height;
    else if (inside)
      first = TG_MIN(first, b->first), last = TG_MAX(last, b->last);
    if (first <= k && k <= last) sum += nbytes;
  }
  return sum;
}

/* Computes the memory and the extra time of a chain in `count` bands. Returns false if it is impossible. */
static bool chain_tried(Bands *b, int first, int last, int loop, int count) {
  b->first = first;
  b->last = last;
  b->count = 0;
  for (int k = first; k <= last; k++)
    if (b->out->kernel[k].band) return false;
  for (int t = 0; t < b->out->ntemp; t++)
    b->kept[t] = (Kept){.writer = b->kept[t].writer};
  if (!chain_is_pure(b) || !rows_found(b, last, loop)) return false;
  for (int k = first; k <= last; k++) {
    const UOp *sink = b->out->kernel[k].ast;
    for (int i = 0; i < sink->nsrc; i++) {
      int t = temp_of(&b->out->kernel[k], sink->src[i]->src[0]->src[0]);
      bool band = t >= 0 && b->kept[t].extent && is_own(&b->out->temp[t]) && b->out->temp[t].last <= last;
      if (t >= 0) b->kept[t].band = band;
      b->row[k - first].whole |= !band;
    }
  }
  b->count = count;
  b->us = 0;
  b->peak = 0;
  for (int k = last; k >= first; k--) {
    if (!window_set(b, k) || !needs_handed(b, k)) return b->count = 0, false;
    const Row *r = &b->row[k - first];
    b->us += b->out->kernel[k].est_us * ((double)count * (double)r->height / (double)r->extent - 1);
  }
  for (int k = first; k <= last; k++)
    b->peak = TG_MAX(b->peak, live_bytes(b, k));
  return true;
}

/* ---- writing the kernels in bands */
/* The number, among the variables of k, of the first row of kernel `of`; -1: too many. */
static int row_number(SchedKernel *k, int of) {
  for (int i = 0; i < k->nrow; i++)
    if (k->row[i] == of) return i;
  if (k->nrow == SCHED_ROWS) return -1;
  k->row[k->nrow] = of;
  return k->nrow++;
}

static UOp *row_variable(Bands *b, const SchedBand *band, int i) {
  return i < 0 ? NULL : dim_uop(b->s->st, b->s->mem, dim_of_var(b->s->st, band->var[i]));
}

/* An index of a memory that is as high as a window: rows are counted from the window's first. */
static UOp *index_in_band(Bands *b, SchedKernel *sk, const SchedBand *band, UOp *x, const UOpMap *there) {
  UOpStore *st = b->s->st;
  UOp *p = x->src[0], *src[MAX_RANK + 2], *ext[MAX_RANK];
  int t = temp_of(sk, p);
  const Kept *m = &b->kept[t];
  int d = axis_of(p, m->stride, m->extent);
  int64_t height = b->row[m->writer - b->first].height;
  if (d < 0) return NULL;
  for (int i = 0; i < p->nsrc; i++)
    ext[i] = i == d ? uop_index_const(st, height) : p->src[i];
  Arg arg = {.param = {p->arg.param.nelem / m->extent * height, p->arg.param.slot}};
  src[0] = uop_new(st, OPS_PARAM, (DType)p->dtype, 1, p->nsrc, ext, arg);
  for (int i = 1; i < x->nsrc; i++)
    src[i] = uop_map_get(there, x->src[i]);
  UOp *from = row_variable(b, band, row_number(sk, m->writer));
  if (!src[0] || !from) return NULL;
  src[1 + d] = uop_simplify(st, b->s->mem, uop_alu2(st, OPS_SUB, src[1 + d], from));
  return src[1 + d] ? uop_new(st, OPS_INDEX, (DType)x->dtype, 1, x->nsrc, src, x->arg) : NULL;
}

static UOp *store_in_band(UOpStore *st, const UOp *u, const UOpMap *there, const Row *r, UOp *loop) {
  UOp *src[MAX_RANK + 4];
  if (u->nsrc > MAX_RANK + 4) return NULL;
  for (int i = 0; i < u->nsrc; i++)
    src[i] = i > 1 && u->src[i] == r->loop ? loop : uop_map_get(there, u->src[i]);
  return uop_new(st, OPS_STORE, (DType)u->dtype, 1, u->nsrc, src, u->arg);
}

static bool kernel_in_band(Bands *b, int k, const SchedBand *band) {
  UOpStore *st = b->s->st;
  TgMem *mem = b->s->mem;
  SchedKernel *sk = &b->out->kernel[k];
  const Row *r = &b->row[k - b->first];
  UOpVec order = {0};
  UOp *loop = uop_range_of(st, uop_index_const(st, r->height), r->loop->arg.range.id, AXIS_GLOBAL);
  UOp *own = row_variable(b, band, row_number(sk, k));
  UOp *row = own && loop ? uop_alu2(st, OPS_ADD, own, loop) : NULL;
  UOpMap *there = uop_map_begin(st, st);
  bool ok = there && row && uop_toposort(st, mem, &sk->ast, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    int t = is_memory(u) ? temp_of(sk, u->src[0]) : -1;
    UOp *v = u == r->loop                                         ? row
             : u->op == OPS_STORE                                 ? store_in_band(st, u, there, r, loop)
             : t >= 0 && writes_in_chain(b, t) && b->kept[t].band ? index_in_band(b, sk, band, u, there)
                                                                  : uop_mapped(st, mem, u, there);
    ok = v && uop_map_put(st, there, u, v);
  }
  UOp *ast = ok ? uop_simplify(st, mem, uop_map_get(there, sk->ast)) : NULL;
  uop_map_end(st, there);
  vec_free(mem, &order);
  if (ast) sk->ast = ast;
  return ast != NULL;
}

static bool chain_applied(Bands *b) {
  static const char *const names[SCHED_ROWS] = {"row0", "row1", "row2", "row3",
                                                "row4", "row5", "row6", "row7"};
  Schedule *o = b->out;
  int n = b->last - b->first + 1;
  int64_t most = 1;
  SchedBand band = {.first = b->first, .last = b->last, .count = b->count};
  band.at = arena_array(&o->arena, int64_t, n * b->count);
  for (int k = 0; k < n; k++)
    for (int i = 0; band.at && i < b->count; i++) {
      band.at[i * n + k] = b->row[k].at[i];
      most = TG_MAX(most, b->row[k].at[i]);
    }
  for (int i = 0; i < SCHED_ROWS; i++)
    if ((band.var[i] = dims_var(store_dims(b->s->st), names[i], 0, most, 1)) < 0) return false;
  bool ok = band.at != NULL;
  for (int k = b->first; ok && k <= b->last; k++)
    ok = kernel_in_band(b, k, &band);
  for (int k = b->first; ok && k <= b->last; k++) {
    const Row *r = &b->row[k - b->first];
    SchedKernel *sk = &o->kernel[k];
    sk->flops = (int64_t)((double)sk->flops * b->count * (double)r->height / (double)r->extent);
    sk->band = o->nband + 1;
  }
  for (int t = 0; ok && t < o->ntemp; t++) {
    const Kept *m = &b->kept[t];
    if (o->temp[t].first <= b->last && o->temp[t].last >= b->first && !(writes_in_chain(b, t) && m->band)) {
      o->temp[t].first = TG_MIN(o->temp[t].first, b->first);
      o->temp[t].last = TG_MAX(o->temp[t].last, b->last);
    }
    if (!writes_in_chain(b, t) || !m->band) continue;
    o->temp[t].nelem = o->temp[t].nelem / m->extent * b->row[m->writer - b->first].height;
    o->temp[t].band = true;
  }
  if (ok) o->band[o->nband++] = band;
  return ok;
}

/* ---- choosing the kernels */
static void said(const Bands *b, int64_t before) {
  if (b->s->opt->explain)
    str_printf(
        b->s->opt->explain,
        "bands k%d .. k%d in %d bands: %lld bytes, not %lld, and %.1f us more for rows that two bands need\n",
        b->first, b->last, b->count, (long long)b->peak, (long long)before, b->us);
}

/* Chooses the chain around kernel `at` that fits with the least extra work, or, if none fits, the one that
 * takes least memory. */
static bool chain_chosen(Bands *b, int at, int64_t most, int64_t before) {
  static const int counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, MOST_COUNT};
  int first = 0, last = 0, loop = 0, count = 0, n = b->out->nkernel;
  int64_t least = before;
  double us = 0;
  for (int i = TG_MAX(at - MOST_ALONG, 0); i <= at; i++)
    for (int j = TG_MAX(at, i + 1); j < TG_MIN(n, i + MOST_ALONG + 1); j++)
      for (int l = 0; store_loop(b->out->kernel[j].ast, l); l++)
        for (size_t c = 0; c < TG_COUNT(counts) && chain_tried(b, i, j, l, counts[c]); c++) {
          bool fits = b->peak <= most, fitted = count && least <= most;
          bool better = fits ? !fitted || b->us < us : !fitted && b->peak < least;
          if (!better) continue;
          first = i;
          last = j;
          loop = l;
          count = counts[c];
          least = b->peak;
          us = b->us;
          if (fits) break;
        }
  return count && chain_tried(b, first, last, loop, count);
}

/* Whether k reads no temporary and leaves little. It may run before all other kernels, and then interrupts no
 * chain. */
static bool runs_early(const Bands *b, int k) {
  const Schedule *o = b->out;
  const SchedKernel *sk = &o->kernel[k];
  int64_t nbytes = 0;
  for (size_t i = 0; i < b->reads[k].len; i++)
    if (temp_of(sk, b->reads[k].at[i]->src[0]) >= 0) return false;
  for (int i = 0; i < sk->ast->nsrc; i++) {
    const UOp *at = sk->ast->src[i]->src[0];
    int t = is_memory(at) ? temp_of(sk, at->src[0]) : -1;
    if (t < 0) return false;
    nbytes += temp_bytes(&o->temp[t]);
  }
  for (int q = 0; q < k; q++)
    for (int i = 0; i < o->kernel[q].ast->nsrc; i++) {
      const UOp *at = o->kernel[q].ast->src[i]->src[0];
      if (!is_memory(at) || temp_of(&o->kernel[q], at->src[0]) < 0) return false;
    }
  return nbytes <= b->s->opt->target->memory / SMALL_PART;
}

static bool early_first(Bands *b) {
  Schedule *o = b->out;
  SchedKernel *order = mem_alloc(b->s->mem, ((size_t)o->nkernel + 1) * sizeof *order);
  UOpVec *reads = mem_alloc(b->s->mem, ((size_t)o->nkernel + 1) * sizeof *reads);
  bool ok = order && reads;
  int n = 0;
  for (int late = 0; ok && late < 2; late++)
    for (int k = 0; k < o->nkernel; k++)
      if (runs_early(b, k) != late) order[n] = o->kernel[k], reads[n++] = b->reads[k];
  if (ok) memcpy(o->kernel, order, (size_t)n * sizeof *order);
  if (ok) memcpy(b->reads, reads, (size_t)n * sizeof *reads);
  mem_free(b->s->mem, order), mem_free(b->s->mem, reads);
  for (int t = 0; ok && t < o->ntemp; t++)
    o->temp[t].first = -1;
  for (int k = 0; ok && k < o->nkernel; k++)
    for (int a = 0; a < o->kernel[k].narg; a++) {
      int64_t t = o->kernel[k].arg[a] - TEMP_BASE;
      if (t < 0) continue;
      if (o->temp[t].first < 0) o->temp[t].first = k;
      o->temp[t].last = k;
    }
  return ok;
}

static bool writers_found(Bands *b) {
  Schedule *o = b->out;
  for (int t = 0; t < o->ntemp; t++)
    b->kept[t] = (Kept){.writer = -1};
  for (int k = 0; k < o->nkernel; k++)
    if (!reads_listed(b, k)) return false;
  if (!early_first(b)) return false;
  for (int k = 0; k < o->nkernel; k++) {
    const UOp *sink = o->kernel[k].ast;
    for (int i = 0; i < sink->nsrc; i++) {
      const UOp *at = sink->src[i]->op == OPS_STORE ? sink->src[i]->src[0] : NULL;
      int t = at && is_memory(at) ? temp_of(&o->kernel[k], at->src[0]) : -1;
      if (t >= 0) b->kept[t].writer = b->kept[t].writer < 0 ? k : INT32_MAX;
    }
  }
  return true;
}

static bool bands_made(Bands *b) {
  Schedule *o = b->out;
  int64_t most = b->s->opt->target->memory;
  if (!writers_found(b)) return false;
  for (int turn = 0; turn < MOST_TRIED; turn++) {
    int at = -1;
    int64_t peak = 0;
    b->count = 0;
    for (int k = 0; k < o->nkernel; k++) {
      int64_t live = live_bytes(b, k);
      if (live > peak && !o->kernel[k].band) at = k, peak = live;
    }
    if (at < 0 || peak <= most || !chain_chosen(b, at, most, peak)) return true;
    said(b, peak);
    if (!chain_applied(b)) return false;
  }
  return true;
}

bool in_bands(Sched *s, Schedule *out) {
  if (!s->opt->target->memory || !store_dims(s->st)) return true;
  Bands *b = mem_alloc(s->mem, sizeof *b);
  UOpVec *reads = mem_alloc(s->mem, ((size_t)out->nkernel + 1) * sizeof *reads);
  Kept *kept = mem_alloc(s->mem, ((size_t)out->ntemp + 1) * sizeof *kept);
  out->band = arena_array(&out->arena, SchedBand, MOST_TRIED);
  bool ok = b && reads && kept && out->band;
  if (ok) {
    *b = (Bands){.s = s, .out = out, .reads = reads, .kept = kept};
    ok = bands_made(b);
  }
  for (int k = 0; reads && k < out->nkernel; k++)
    vec_free(s->mem, &reads[k]);
  mem_free(s->mem, reads), mem_free(s->mem, kept), mem_free(s->mem, b);
  return ok;
}
