/* opts.c: shapes a kernel's loops by a list of opts. In: a nest and the list. Out: the same kernel with its
 * loops split and typed: UPCAST (register tile), VEC (vector lanes), UNROLL, GROUP (vector accumulators along
 * a reduction), LOCAL (threads of a GPU block). Each opt is an edit of the tree. The larger subjects have
 * files of their own: splitting (split.c), ONLINE (online.c), TILE of a reduction (blocked_sum.c), STAGE
 * (stage.c), TC (tensor_cores.c, panels.c), DOUBLE_BUFFER (double_buffer.c), THREAD (thread.c).
 *
 * An opt names a loop by its id in the kernel's graph and acts on every loop that descends from it. If a tile
 * does not divide a loop, the loop is cut into whole tiles and a tail, each a nest of its own, without masks.
 * UPCAST balances its tiles: 10 by 8 becomes 5 and 5. Only the grid of a GPU and the threads of a block are
 * padded, because their number is fixed: iterations past the end are gated. */
#include "codegen/split.h"
#include <stdio.h>
#include <string.h>

static bool refuse(Kernel *k, const Opt *o, const char *why) {
  Str text;
  str_init(&text, k->mem), opt_print(&text, o);
  snprintf(k->refused, sizeof k->refused, "%s: %s", str_text(&text), why);
  str_free(&text);
  if (k->strict) error_set(k->err, TG_ERR_VALUE, "opts: %s", k->refused);
  return false;
}

/* ---- GROUP on a CPU: each lane has its own register, and the registers are merged after the whole
 * reduction */
typedef struct Partial {
  UOpVec from, to, starts, merges; /* from: registers as ACCs name them; to: the same with an axis of lanes */
} Partial;

static UOp *group_range(const UOp *acc) {
  for (int i = 2; i < acc->nsrc; i++)
    if (acc->src[i]->arg.range.type == AXIS_GROUP) return acc->src[i];
  return NULL;
}

static bool partial_add(Kernel *k, Partial *p, UOp *acc) {
  UOp *x = acc->src[0], *lane = group_range(acc);
  if (!lane || vec_has(&p->from, x)) return true;
  PartReg wide = reg_part(k, acc, lane);
  return wide.at && vec_push(k->mem, &p->from, x) && vec_push(k->mem, &p->to, wide.at) &&
         vec_push(k->mem, &p->starts, wide.start) && vec_push(k->mem, &p->merges, wide.merge);
}

/* The outermost loop of the reduction that u belongs to: it is in the same body as the start of register
 * `reg`. NULL: u itself contains the start. */
static UOp *reduction_of(Kernel *k, const UOp *u, const UOp *reg) {
  PlaceVec at = {0};
  UOp *r = NULL;
  bool ok = nest_places(k, k->sink, &at);
  int start = ok ? place_of_start(&at, reg) : -1, here = -1;
  for (size_t i = 0; ok && i < at.len; i++)
    if (at.at[i].u == u) here = (int)i;
  while (start >= 0 && here >= 0 && !r) {
    if (at.at[here].up == at.at[start].up) r = at.at[here].u;
    here = at.at[here].up;
  }
  vec_free(k->mem, &at);
  return r;
}

static bool push_all(Kernel *k, UOpVec *to, UOp *const *from, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!from[i] || !vec_push(k->mem, to, from[i])) return false;
  return true;
}

/* The tail of the loop is computed in the first lanes, in whole vectors of this many elements. Lanes past its
 * end add nothing. */
enum { WHOLE_VECTOR = 16 };

static UOp *group_rest(Kernel *k, UOp *u, const Part *first, const Part *rest, const Partial *p) {
  UOp *copy = nest_copy(k, u, 0, NULL, NULL);
  int64_t lanes_left = (rest->n->arg.v.i + WHOLE_VECTOR - 1) / WHOLE_VECTOR * WHOLE_VECTOR;
  UOp *n = num(k, TG_MIN(lanes_left, first->n->arg.v.i));
  Part last = {rest->base, num(k, 1), n, first->inner, u->src[0]->src[0], false};
  bool lanes = rest->inner == first->inner && is_const(rest->n) && rest->n->arg.v.i > 1;
  UOp *nest = copy ? part_of(k, copy, copy, lanes ? &last : rest, false) : NULL;
  PlaceVec at = {0};
  UOpVec from = {0}, to = {0};
  bool ok = nest && nest_places(k, nest, &at);
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *acc = at.at[i].u, *lane = acc->op == OPS_ACC ? group_range(acc) : NULL, *x = acc->src[0];
    size_t had = 0;
    while (had < p->from.len && (!lane || p->from.at[had]->src[0] != x->src[0]))
      had++;
    if (had == p->from.len) continue;
    UOp *wide = reg_at_too(k, p->to.at[had]->src[0], x, lane);
    ok = wide && vec_push(k->mem, &from, x) && vec_push(k->mem, &to, wide);
  }
  nest = ok ? kernel_with(k, nest, (int)from.len, from.at, to.at) : NULL;
  vec_free(k->mem, &at), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return nest;
}

static bool group_parts(Kernel *k, const Opt *o, UOp *u, const Part *part, int n) {
  Partial p = {0};
  PlaceVec at = {0};
  UOpVec all = {0}, around = {0};
  UOp *head = part_of(k, u, u, &part[0], false), *whole = u, *rest = NULL;
  bool ok = head && nest_places(k, head, &at), one = true;
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *acc = at.at[i].u;
    if (acc->op != OPS_ACC || !group_range(acc)) continue;
    UOp *reduction = reduction_of(k, u, stored_in(acc));
    if (!reduction) continue; /* the register begins inside this loop */
    one &= whole == u || whole == reduction;
    whole = reduction;
    ok = partial_add(k, &p, acc);
  }
  if (ok && !one) ok = refuse(k, o, "it belongs to reductions that begin in different loops");
  if (ok) head = kernel_with(k, head, (int)p.from.len, p.from.at, p.to.at);
  if (ok && n > 1) ok = (rest = group_rest(k, u, &part[0], &part[1], &p)) != NULL;
  ok = ok && head && push_all(k, &all, head->src, head->nsrc) &&
       (!rest || push_all(k, &all, rest->src, rest->nsrc));
  UOp *now = ok && whole != u ? nest_replace(k, whole, u, (int)all.len, all.at) : NULL;
  ok = ok && push_all(k, &around, p.starts.at, p.starts.len) &&
       (whole == u ? push_all(k, &around, all.at, all.len) : push_all(k, &around, &now, 1)) &&
       push_all(k, &around, p.merges.at, p.merges.len);
  ok = ok && nest_edit(k, whole, uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)around.len, around.at, ARG0));
  vec_free(k->mem, &p.from), vec_free(k->mem, &p.to), vec_free(k->mem, &p.starts),
      vec_free(k->mem, &p.merges);
  vec_free(k->mem, &at), vec_free(k->mem, &all), vec_free(k->mem, &around);
  return ok;
}

/* Whether u is an inner loop of a reduction. Its lanes are then merged only after the outer loops, too. */
static bool is_inside(Kernel *k, UOp *u) {
  PlaceVec at = {0};
  bool inside = false, ok = nest_places(k, u, &at);
  for (size_t i = 0; ok && !inside && i < at.len; i++) {
    UOp *acc = at.at[i].u, *whole = acc->op == OPS_ACC ? reduction_of(k, u, stored_in(acc)) : NULL;
    inside = whole && whole != u;
  }
  vec_free(k->mem, &at);
  return inside;
}

static bool carries(Kernel *k, UOp *loop) {
  Facts f;
  bool r = facts_of(k, loop, &f) && f.carries;
  facts_free(k, &f);
  return r;
}

static bool parts_made(const Part *p, int n) {
  for (int i = 0; i < n; i++)
    if (!p[i].base || !p[i].blocks || !p[i].n) return false;
  return n > 0;
}

static bool split(Kernel *k, const Opt *o, UOp *u, AxisType inner) {
  UOp *r = u->src[0];
  bool tile = o->op == OPT_TILE, grid = r->arg.range.type == AXIS_GLOBAL;
  Part p[MOST_PARTS] = {{0}};
  if (tile) inner = (AxisType)r->arg.range.type;
  if (tile && !has_grid(k->ren) && carries(k, u)) {
    const char *why;
    bool is, done = opt_tile_sum(k, u, o->n, &is, &why);
    if (is) return done || (why && refuse(k, o, why));
  }
  if (has_grid(k->ren) && (grid || inner == AXIS_LOCAL)) { /* the number of iterations is fixed: pad */
    UOp *end = r->src[0];
    int64_t n = inner == AXIS_LOCAL ? o->n : TG_MIN(o->n, end->vmax);
    p[0] = (Part){num(k, 0),
                  blocks_in(k, end, n),
                  num(k, n),
                  inner,
                  is_const(end) && end->vmax % n == 0 ? NULL : end,
                  o->op == OPT_UPCASTTOP};
    if (!parts_made(p, 1)) return false;
    return in_parts(k, tile ? front(k, u) : u, u, p, 1, tile);
  }
  int n = is_const(r->src[0]) ? parts_of_known(k, o, u, inner, p) : parts_of_unknown(k, o, r, inner, p);
  if (!parts_made(p, n)) return false;
  if (inner == AXIS_GROUP && (n > 1 || !is_const_int(p[0].blocks, 1) || is_inside(k, u)))
    return group_parts(k, o, u, p, n);
  return in_parts(k, tile ? front(k, u) : u, u, p, n, tile);
}

/* ---- SWAP: exchanges two loops that have only loops between them */
/* The chain of loops that begins at u, with two ranges exchanged. */
static UOp *swapped(Kernel *k, UOp *u, UOp *outer, UOp *inner) {
  UOp *r = u->src[0] == outer ? inner : u->src[0] == inner ? outer : u->src[0];
  if (u->src[0] == inner) return loop_new(k, r, u->nsrc - 1, u->src + 1);
  UOp *body = swapped(k, u->src[1], outer, inner);
  return body ? loop_new(k, r, 1, &body) : NULL;
}

static bool swap(Kernel *k, const Opt *o, bool *any) {
  PlaceVec at = {0};
  UOp *outer = NULL, *inner = NULL;
  bool ok = nest_places(k, k->sink, &at);
  for (size_t i = 0; ok && i < at.len && !inner; i++) {
    outer = at.at[i].u;
    if (!is_loop(outer) || range_root(outer->src[0]) != o->r) continue;
    for (UOp *u = alone(outer); u && !inner; u = alone(u))
      if (range_root(u->src[0]) == o->n && !depends(k, u->src[0], outer->src[0])) inner = u;
  }
  vec_free(k->mem, &at);
  *any = inner != NULL;
  if (!ok || !inner) return ok;
  UOp *now = swapped(k, outer, outer->src[0], inner->src[0]);
  k->sink = now ? nest_replace(k, k->sink, outer, 1, &now) : NULL;
  return k->sink != NULL;
}

/* ---- one opt */
static bool loops_of(Kernel *k, const Opt *o, UOpVec *loops, bool *ordered) {
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at);
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *u = at.at[i].u;
    if (!is_loop(u)) continue;
    const UOp *r = u->src[0];
    bool named = range_root(r) == o->r || (o->op == OPT_THREAD && block_root(r) == o->r);
    bool scan = o->op == OPT_GROUP && has_grid(k->ren) && is_scan(k, u);
    *ordered |=
        loop_type(u) == AXIS_ORDERED && !scan && (named || (o->op == OPT_SWAP && range_root(r) == o->n));
    bool blocks = o->op == OPT_TILE || o->op == OPT_TC || o->op == OPT_TC4; /* these need a known extent */
    if (!named || r->src[0]->ranges || (has_grid(k->ren) && blocks && !is_const(r->src[0]))) continue;
    ok = vec_push(k->mem, loops, u);
  }
  vec_free(k->mem, &at);
  return ok;
}

/* Whether the LOCAL loops of a block would conflict. LOCAL loops inside the grid share one axis of the block,
 * so they must have one extent and may not nest. A block has three axes. */
static bool threads_meet(Kernel *k, const Opt *o, const UOp *loop) {
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at), meet = false, grid = loop_type(loop) == AXIS_GLOBAL;
  int axes = 0, inner = 0, here = -1;
  for (size_t i = 0; ok && i < at.len; i++)
    if (at.at[i].u == loop) here = (int)i;
  for (size_t i = 0; ok && i < at.len; i++) {
    const UOp *u = at.at[i].u;
    if (!is_loop(u) || loop_type(u) != AXIS_LOCAL || is_shared(u)) continue;
    if (u->src[0]->arg.range.of == LOCAL_OF_GRID) {
      axes++;
      continue;
    }
    inner = 1;
    if (!grid) meet |= u->src[0]->src[0]->arg.v.i != o->n;
    for (int up = here; up >= 0; up = at.at[up].up)
      meet |= up == (int)i;
    for (int up = (int)i; up >= 0; up = at.at[up].up)
      meet |= up == here && !grid;
  }
  vec_free(k->mem, &at);
  return !ok || meet || axes + (grid ? inner + 1 : 1) > 3;
}

enum { MOST_LANES = 1024 };

/* The number of threads of a block with those that the opt adds: the extents of the grid's thread axes times
 * the extent of the axis that the inner loops share. */
static int64_t block_threads(Kernel *k, const Opt *o, const UOp *loop) {
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at);
  int64_t grid = 1, inner = 1;
  for (size_t i = 0; ok && i < at.len; i++) {
    const UOp *u = at.at[i].u;
    if (!is_loop(u) || loop_type(u) != AXIS_LOCAL || is_shared(u)) continue;
    if (u->src[0]->arg.range.of == LOCAL_OF_GRID)
      grid = TG_MIN(grid * u->src[0]->src[0]->arg.v.i, INT32_MAX);
    else
      inner = u->src[0]->src[0]->arg.v.i;
  }
  vec_free(k->mem, &at);
  if (o->n > MOST_LANES || loop_type(loop) != AXIS_GLOBAL) return grid * TG_MIN(o->n, INT32_MAX);
  return TG_MIN(grid, INT32_MAX / MOST_LANES) * inner * o->n;
}

/* Whether the kernel has an ONLINE. Its sums continue from block to block, some of them in rows, so each
 * thread along the grid needs its own. */
static bool in_online(const Kernel *k) { return k->list.len && k->list.at[0].op == OPT_ONLINE; }

static const char *cannot(Kernel *k, const Opt *o, UOp *loop, const Facts *f) {
  bool gpu = has_grid(k->ren), threads = o->op == OPT_LOCAL || (o->op == OPT_GROUP && gpu);
  if (o->op == OPT_TILE) return NULL;
  if (o->op == OPT_LOCAL && !gpu) return "the device has no blocks of threads";
  if (threads && block_threads(k, o, loop) > k->opt->target->most.block) {
    snprintf(k->limit, sizeof k->limit, "a block has %d threads at most", k->opt->target->most.block);
    return k->limit;
  }
  if (o->op == OPT_GROUP && o->n > MOST_LANES) return "of 1024 lanes at most";
  if (threads && loop_type(loop) != AXIS_GLOBAL && uop_has(k->sink, WMMA))
    return "neighbours in a warp are the threads of a matrix unit";
  if (threads && in_online(k) && loop_type(loop) != AXIS_GLOBAL)
    return "threads inside an ONLINE would share its running sums: along the grid each has its own";
  if (threads && threads_meet(k, o, loop))
    return "the threads of a block go along this loop nest already, or are another number";
  if (loop_type(loop) == AXIS_ORDERED && (o->n % TG_MAX(k->opt->target->warp, 2) || o->n & (o->n - 1)))
    return "running sums take 32 threads, 64, 128 ..";
  if (!rows_fit(k, f, o->n)) return "local memory has no room for a row of each of its iterations";
  switch (o->op) {
  case OPT_LOCAL: return f->carries ? "a loop of a reduction: GROUP distributes it to the threads" : NULL;
  case OPT_VEC:
    if (f->lanes) return "this loop nest has its lanes already";
    return f->carries ? "a loop of a reduction: GROUP makes lanes along it" : NULL;
  case OPT_UPCAST:
  case OPT_UPCASTTOP: return f->carries ? "a loop of a reduction: UNROLL takes its steps together" : NULL;
  case OPT_UNROLL:
  case OPT_GROUP:
    if (!f->carries) return "not a loop of a reduction";
    if (f->rows.len) return "local memory is filled anew in each of its iterations";
    return o->op == OPT_GROUP && !gpu && f->lanes ? "this loop nest has its lanes already" : NULL;
  default: return NULL;
  }
}

static AxisType inner_type(const Kernel *k, OptOp op) {
  switch (op) {
  case OPT_LOCAL: return AXIS_LOCAL;
  case OPT_VEC: return AXIS_VEC;
  case OPT_UNROLL: return AXIS_UNROLL;
  case OPT_GROUP: return has_grid(k->ren) ? AXIS_LOCAL : AXIS_GROUP;
  default: return AXIS_UPCAST;
  }
}

bool opt_split(Kernel *k, OptOp op, UOp *loop, int64_t n) {
  return split(k, &(Opt){op, -1, n}, loop, inner_type(k, op));
}

static bool stage(Kernel *k, const Opt *o) {
  const char *why;
  return opt_stage(k, o->r, o->n, &why) || (why && refuse(k, o, why));
}

static bool online(Kernel *k, const Opt *o, const UOpVec *loops) {
  const char *why;
  if (loops->len > 1) return refuse(k, o, "it comes before what splits its loop");
  return opt_online(k, loops->at[0], o->n, &why) || (why && refuse(k, o, why));
}

static bool units(Kernel *k, const Opt *o) {
  const char *why;
  bool ok = has_grid(k->ren) ? opt_tc(k, o, &why) : opt_panels(k, o, &why);
  return ok || (why && refuse(k, o, why));
}

static bool double_buffer_blocks(Kernel *k, const Opt *o) {
  const char *why;
  if (!has_grid(k->ren)) return refuse(k, o, "the device has no blocks of threads");
  return opt_double_buffer(k, o, &why) || (why && refuse(k, o, why));
}

static bool thread_checked(Kernel *k, const Opt *o, const UOpVec *loops) {
  if (!k->ren->has_threads) return refuse(k, o, "the device has no threads of this kind");
  if (o->n < 2 || o->n > 1024 || k->nthread > 1) return refuse(k, o, "one THREAD, of 2 to 1024");
  for (size_t i = 0; i < loops->len; i++) {
    Facts f;
    bool ok = facts_of(k, loops->at[i], &f);
    facts_free(k, &f);
    if (!ok || f.carries) return ok && refuse(k, o, "a loop of a reduction");
  }
  return opt_thread(k, o);
}

static bool opt_apply(Kernel *k, const Opt *o) {
  if (o->op == OPT_STAGE) return stage(k, o);
  if (o->op == OPT_DOUBLE_BUFFER) return double_buffer_blocks(k, o);
  UOpVec loops = {0};
  bool ordered = false, ok = loops_of(k, o, &loops, &ordered), any = false;
  if (ok && ordered) ok = refuse(k, o, "its iterations run in order, one after another");
  if (ok && !loops.len) ok = refuse(k, o, "no such loop is left");
  if (ok && o->op == OPT_THREAD)
    ok = thread_checked(k, o, &loops);
  else if (ok && o->op == OPT_ONLINE)
    ok = online(k, o, &loops);
  else if (ok && (o->op == OPT_TC || o->op == OPT_TC4))
    ok = units(k, o);
  else if (ok && o->op == OPT_SWAP) {
    ok = swap(k, o, &any);
    if (ok && !any)
      ok = refuse(k, o, "no loop nest has both, the first outside and nothing but loops between");
  } else
    for (size_t i = 0; ok && i < loops.len; i++) {
      Facts f;
      ok = facts_of(k, loops.at[i], &f);
      const char *why = ok ? cannot(k, o, loops.at[i], &f) : NULL;
      facts_free(k, &f);
      if (why) ok = refuse(k, o, why);
      ok = ok && split(k, o, loops.at[i], inner_type(k, o->op));
    }
  vec_free(k->mem, &loops);
  return ok;
}

static bool opts_apply(Kernel *k, const OptVec *v) {
  int last = 0;
  for (size_t i = 0; i < v->len; i++) { /* a list is ordered from the outer loops to the inner ones */
    if (v->at[i].op == OPT_THREAD) continue;
    if (opt_rank(v->at[i].op) < last)
      return refuse(
          k, &v->at[i],
          "ONLINE comes first, TILE and STAGE before SWAP, SWAP, TC and DOUBLE_BUFFER before what shapes "
          "the inner loops");
    last = opt_rank(v->at[i].op);
  }
  const Prepack *p = k->opt->prepack;
  /* THREAD is the outermost loop, so it is applied after all other opts */
  for (int late = 0; late < 2; late++) {
    for (size_t i = 0; i < v->len; i++) {
      k->ndone = i;
      if ((v->at[i].op == OPT_THREAD) != (late == 1)) continue;
      /* the packing kernel has its own loops: THREAD takes any that is long enough */
      bool packs = late && p && p->packs && p->n;
      if (!(packs ? opt_thread(k, &v->at[i]) : opt_apply(k, &v->at[i]))) return false;
    }
    if (!late && !prepack(k)) return false;
  }
  for (size_t i = 0; i < v->len; i++)
    opt_print(&k->opts, &v->at[i]);
  return true;
}

/* The number of blocks of a grid must be known at compile time. Therefore a grid loop of symbolic extent runs
 * to its largest extent, and iterations past its actual end are gated. */
static bool pad_grid(Kernel *k) {
  PlaceVec at = {0};
  UOpVec loops = {0};
  bool ok = nest_places(k, k->sink, &at);
  /* inner loops first, so that an outer loop is still found where it was */
  for (size_t i = at.len; ok && i-- > 0;) {
    UOp *u = at.at[i].u;
    if (is_loop(u) && loop_type(u) == AXIS_GLOBAL && !is_const(u->src[0]->src[0]) &&
        !u->src[0]->src[0]->ranges)
      ok = vec_push(k->mem, &loops, u->src[0]);
  }
  for (size_t l = 0; ok && l < loops.len; l++) {
    UOp *r = loops.at[l], *u = NULL;
    ok = nest_places(k, k->sink, &at);
    for (size_t i = 0; ok && i < at.len && !u; i++)
      if (is_loop(at.at[i].u) && at.at[i].u->src[0] == r) u = at.at[i].u;
    Part p = {num(k, 0), num(k, 1), num(k, r->src[0]->vmax), AXIS_GLOBAL, r->src[0], false};
    ok = ok && u && in_parts(k, u, u, &p, 1, true);
  }
  vec_free(k->mem, &at), vec_free(k->mem, &loops);
  return ok;
}

/* The local memory and the number of threads that a block needs are known only after its grid is made. */
static bool block_fits(Kernel *k) {
  return !has_grid(k->ren) || (bound_loops(k) && cut_sums(k) && gpu_dims(k));
}

bool opts_fit(Kernel *k, const OptVec *list) {
  Kernel trial = *k;
  str_init(&trial.opts, k->mem);
  trial.strict = false;
  trial.stays = 0;
  trial.list = *list;
  bool ok = nest_build(&trial) && (!has_grid(k->ren) || pad_grid(&trial)) && opts_apply(&trial, list) &&
            block_fits(&trial);
  str_free(&trial.opts);
  return ok;
}

/* Drops the last n opts of the list, but never THREAD, which costs nothing and gains most. */
static void leave_out(OptVec *list, int n) {
  size_t kept = 0, shaping = 0, i;
  for (i = 0; i < list->len; i++)
    shaping += list->at[i].op != OPT_THREAD;
  size_t most = shaping > (size_t)n ? shaping - (size_t)n : 0, taken = 0;
  for (i = 0; i < list->len; i++) {
    bool stays = list->at[i].op == OPT_THREAD || taken++ < most;
    if (stays) list->at[kept++] = list->at[i];
  }
  list->len = kept;
}

/* Chooses the list of opts, before the nest is built. */
bool choose_opts(Kernel *k, const CodegenOptions *opt) {
  bool ok = true;
  int64_t left = opt->passes && !opt->opts ? choices_left(&opt->passes->opts) : INT64_MAX;
  k->list.len = 0;
  if (!k->ren) return true;
  if (opt->opts) {
    k->strict = true;
    ok = opts_parse(opt->opts, k->mem, &k->list, k->err);
    if (ok && opt->costs) ok = has_grid(k->ren) ? grid_costs(k) : list_costs(k, opt->ncores);
  } else if (!opt->noopt)
    ok = has_grid(k->ren) ? heuristic_gpu(k, &k->list) : heuristic_cpu(k, opt->ncores, &k->list);
  if (ok && !opt->opts && few_lanes(k->ren)) ok = scalar_opts(k, &k->list);
  k->nopt = (int)k->list.len;
  if (ok && !opt->opts && opt->leave_out) leave_out(&k->list, opt->leave_out);
  k->list.len = (size_t)TG_MIN((int64_t)k->list.len, left);
  return ok;
}

bool apply_opts(Kernel *k, const CodegenOptions *opt) {
  if (!k->ren) return true;
  /* this pass was run alone, by its name */
  if (opt->opts && !k->list.len && !choose_opts(k, opt)) return false;
  if (has_grid(k->ren) && !opt->noopt && !pad_grid(k)) return false;
  return opts_apply(k, &k->list);
}
