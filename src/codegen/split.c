/* split.c: splits a loop of a nest into parts. In: a loop, and its range as blocks of n iterations. Out: the
 * loop over blocks is around its nest, and the iterations of a block are in place of the old loop, either as
 * a loop or in the lists of the statements, where they are expanded later. A part that ends past the end of
 * the loop is gated, so that it does nothing there. */
#include "codegen/split.h"
#include "uop/merge.h"
#include <string.h>

/* A new loop that is a part of the kernel's loop `like`, or of no loop if it is NULL. */
UOp *kernel_range(Kernel *k, UOp *extent, AxisType type, const UOp *like) {
  int64_t root = like ? range_root(like) : -1;
  int of = type >= AXIS_UPCAST ? 0 : root < 0 ? -1 : (int)root + 1;
  Arg arg = {.range = {k->next_range++, (int32_t)type, of}};
  return extent ? uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &extent, arg) : NULL;
}

UOp *blocks_in(Kernel *k, UOp *extent, int64_t n) {
  return ix(k, OPS_FLOORDIV, ix(k, OPS_ADD, extent, num(k, n - 1)), num(k, n));
}

UOp *loop_between(Kernel *k, UOp *loop, UOp *first, UOp *trips, AxisType type, const UOp *like) {
  UOp *r = loop->src[0], *inner = first ? kernel_range(k, trips, type, like) : NULL,
      *at = add(k, first, inner);
  UOp *body = at ? kernel_with(k, body_of(k, loop), 1, &r, &at) : NULL;
  return body ? loop_new(k, inner, body->nsrc, body->src) : NULL;
}

UOp *loop_of_block(Kernel *k, UOp *loop, UOp *block, int64_t n, const UOp *like) {
  const UOp *r = loop->src[0];
  UOp *size = r->src[0], *most = num(k, n), *first = uop_alu2(k->st, OPS_MUL, block, most);
  bool whole = is_const(size) && size->arg.v.i % n == 0;
  UOp *trips = whole ? most : ix_min(k, ix(k, OPS_SUB, size, first), most);
  return loop_between(k, loop, first, trips, (AxisType)r->arg.range.type, like);
}

UOp *range_of_blocks(Kernel *k, UOp *blocks, AxisType type, const UOp *of) {
  UOp *r = kernel_range(k, blocks, type, of);
  return r && range_root(of) >= 0 ? range_marked(k, r, BLOCKS_OF - (int)range_root(of)) : r;
}

/* ---- what a loop does */
bool facts_of(Kernel *k, UOp *loop, Facts *f) {
  PlaceVec at = {0};
  *f = (Facts){0};
  bool ok = nest_places(k, loop, &at);
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; ok && i < at.len; i++) {
      const UOp *u = at.at[i].u;
      if (u->op != OPS_STORE && u->op != OPS_ACC) continue;
      UOp *m = stored_in(u);
      if (pass == 0 && starts_register(k, at.at[i].u)) ok = vec_push(k->mem, &f->started, m);
      if (pass == 0) continue;
      f->carries |= u->op == OPS_ACC && !vec_has(&f->started, m);
      if (at.at[i].up >= 0 && is_shared(at.at[at.at[i].up].u)) continue;
      if (m->op == OPS_DEFINE_LOCAL && !depends(k, u->src[0], loop->src[0]) && !vec_has(&f->rows, m))
        ok = vec_push(k->mem, &f->rows, m);
      for (int s = 2; s < u->nsrc; s++)
        f->lanes |= u->src[s]->arg.range.type == AXIS_VEC || u->src[s]->arg.range.type == AXIS_GROUP;
    }
  vec_free(k->mem, &at);
  return ok;
}

/* ---- spreading: puts the expanded range r into the list of each statement of a body */
typedef struct Spread {
  Kernel *k;
  UOp *r;
} Spread;

static UOp *spread_list(Spread *s, UOp *u) {
  if (u->op == OPS_STORE && !depends(s->k, u->src[0], s->r) && !depends(s->k, u->src[1], s->r)) return u;
  UOp *src[MAX_LIST + 3];
  if (u->nsrc > MAX_LIST + 2) return NULL;
  memcpy(src, u->src, u->nsrc * sizeof *src);
  src[u->nsrc] = s->r;
  return uop_new(s->k->st, (Ops)u->op, DT_VOID, 1, u->nsrc + 1, src, u->arg);
}

static UOp *spread_tree(Spread *s, UOp *u) {
  if (u->op == OPS_STORE || u->op == OPS_ACC) return spread_list(s, u);
  if (u->op != OPS_LOOP && u->op != OPS_SINK) return u;
  UOpVec src = {0};
  bool ok = u->op != OPS_LOOP || !depends(s->k, u->src[0], s->r);
  for (int i = 0; ok && i < u->nsrc; i++)
    ok = vec_push(s->k->mem, &src, spread_tree(s, u->src[i])) && src.at[i];
  UOp *r = ok ? uop_new(s->k->st, (Ops)u->op, DT_VOID, 1, (int)src.len, src.at, u->arg) : NULL;
  vec_free(s->k->mem, &src);
  return r;
}

/* Registers that begin in the body get an axis for r, because each value of r needs its own register. */
UOp *spread(Kernel *k, UOp *body, UOp *r) {
  Facts f = {0};
  UOpVec order = {0}, from = {0}, to = {0}, apart = {0};
  UOp *loop = loop_new(k, r, body->nsrc, body->src);
  bool ok = loop && facts_of(k, loop, &f) && kernel_nodes(k, body, &order);
  for (size_t i = 0; ok && i < f.started.len; i++) {
    UOp *wide = reg_like(k, f.started.at[i], r);
    ok = wide && vec_push(k->mem, &apart, wide);
  }
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i];
    size_t reg = 0;
    if (x->op != OPS_INDEX || !vec_has(&f.started, x->src[0])) continue;
    while (f.started.at[reg] != x->src[0])
      reg++;
    ok = vec_push(k->mem, &from, x) && vec_push(k->mem, &to, reg_at_too(k, apart.at[reg], x, r));
  }
  Spread s = {k, r};
  UOp *now = ok ? kernel_with(k, body, (int)from.len, from.at, to.at) : NULL;
  if (now) now = spread_tree(&s, now);
  facts_free(k, &f), vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  vec_free(k->mem, &apart);
  return now;
}

/* ---- padding: iterations past the end, which write nothing and add nothing */
typedef struct Pad {
  Kernel *k;
  UOp *valid;
  const UOpVec *started;
} Pad;

/* Whether u depends on a range that `valid` depends on. */
static bool moves_with(Kernel *k, UOp *u, UOp *valid) {
  UOpVec order = {0};
  bool moves = false, ok = (u->ranges & valid->ranges) && kernel_nodes(k, valid, &order);
  for (size_t i = 0; ok && i < order.len && !moves; i++)
    moves = order.at[i]->op == OPS_RANGE && depends(k, u, order.at[i]);
  vec_free(k->mem, &order);
  return moves;
}

static UOp *gated_store(Pad *p, UOp *s) {
  Kernel *k = p->k;
  /* only the loads are gated, because a row that every iteration fills is read in any case */
  if (stored_in(s)->op == OPS_DEFINE_LOCAL && !moves_with(k, s->src[0], p->valid))
    return statement_with(k, s, gate_loads(k, s->src[1], p->valid));
  UOp *x = s->src[0], *own = x->arg.i ? gate_loads(k, index_gate(x), p->valid) : NULL, *at[MAX_AXES + 2];
  UOp *gate = x->arg.i ? simp(k, own ? uop_alu2(k->st, OPS_AND, own, p->valid) : NULL) : p->valid;
  int n = 1 + index_naxes(x);
  memcpy(at, x->src, (size_t)n * sizeof *at);
  for (int i = 1; i < n; i++)
    at[i] = gate_loads(k, at[i], p->valid); /* indices that are read from memory */
  at[n] = gate;
  UOp *src[MAX_LIST + 3];
  memcpy(src, s->src, s->nsrc * sizeof *src);
  src[0] = uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, n + 1, at, (Arg){.i = 1});
  src[1] = gate_loads(k, s->src[1], p->valid);
  return uop_new(k->st, OPS_STORE, DT_VOID, 1, s->nsrc, src, s->arg);
}

static UOp *gated_acc(Pad *p, UOp *u) {
  UOpStore *st = p->k->st;
  UOp *v = gate_loads(p->k, u->src[1], p->valid);
  if (!v) return NULL;
  if (!vec_has(p->started, stored_in(u)))
    v = uop_where(st, p->valid, v, uop_identity(st, (Ops)u->arg.reduce.op, v->dtype));
  return statement_with(p->k, u, v);
}

static UOp *padded(Pad *p, UOp *u) {
  if (u->op == OPS_ACC) return gated_acc(p, u);
  if (u->op == OPS_STORE) return stored_in(u)->op == OPS_DEFINE_REG ? u : gated_store(p, u);
  if ((u->op != OPS_LOOP && u->op != OPS_SINK) || is_shared(u)) return u;
  UOpVec src = {0};
  bool ok = true;
  for (int i = 0; ok && i < u->nsrc; i++)
    ok = vec_push(p->k->mem, &src, padded(p, u->src[i])) && src.at[i];
  UOp *r = ok ? uop_new(p->k->st, (Ops)u->op, DT_VOID, 1, (int)src.len, src.at, u->arg) : NULL;
  vec_free(p->k->mem, &src);
  return r;
}

static UOp *pad(Kernel *k, UOp *loop, UOp *body, UOp *valid) {
  Facts f;
  if (!valid || is_const_int(valid, 1)) return valid ? body : NULL;
  Pad p = {k, valid, &f.started};
  UOp *r = facts_of(k, loop, &f) ? padded(&p, body) : NULL;
  facts_free(k, &f);
  return r;
}

/* ---- rows: local memory that each iteration of a loop fills for itself, if several iterations are done at
 * once */
bool rows_fit(Kernel *k, const Facts *f, int64_t n) {
  int64_t bytes = 0;
  for (size_t i = 0; i < f->rows.len; i++)
    bytes += f->rows.at[i]->arg.param.nelem * (int64_t)dtype_size((DType)f->rows.at[i]->dtype);
  return bytes * n <= k->opt->target->local_most;
}

/* Each value of `inner` gets its own rows. The same element of all rows is contiguous. */
static UOp *rows_apart(Kernel *k, const Facts *f, UOp *body, UOp *inner) {
  UOpVec order = {0}, from = {0}, to = {0};
  bool ok = kernel_nodes(k, body, &order);
  for (size_t row = 0; ok && row < f->rows.len; row++) {
    UOp *m = f->rows.at[row], *n = inner->src[0];
    UOp *all = local_memory(k, m->dtype, m->arg.param.nelem * n->arg.v.i);
    for (size_t i = 0; ok && all && i < order.len; i++) {
      UOp *x = order.at[i], *src[3] = {all};
      if (x->op != OPS_INDEX || x->src[0] != m) continue;
      src[1] = add(k, uop_alu2(k->st, OPS_MUL, x->src[1], n), inner);
      src[2] = index_gate(x);
      UOp *now = uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, x->nsrc, src, x->arg);
      ok = vec_push(k->mem, &from, x) && vec_push(k->mem, &to, now);
    }
  }
  UOp *r = ok ? kernel_with(k, body, (int)from.len, from.at, to.at) : NULL;
  vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return r;
}

static bool is_batched(const UOp *r) {
  return r->op == OPS_RANGE && (is_expanded(r) || r->arg.range.type == AXIS_LOCAL);
}

/* ---- splitting */
static UOp *one_trip(Kernel *k, const UOp *extent, UOp *loop) {
  return loop && is_const_int(extent, 1) ? num(k, 0) : loop;
}

/* Splits loop u, which is inside `nest`, over one part of its range. The loop over blocks is placed around
 * `nest`, the inner loop where u was, or in the lists of u's statements. Returns the statements as a SINK. */
UOp *part_of(Kernel *k, UOp *nest, UOp *u, const Part *p, bool tile) {
  UOp *r = u->src[0];
  AxisType outer_type = (AxisType)r->arg.range.type;
  UOp *block =
      tile ? range_of_blocks(k, p->blocks, outer_type, r) : kernel_range(k, p->blocks, outer_type, r);
  block = one_trip(k, p->blocks, block);
  UOp *inner = one_trip(k, p->n, kernel_range(k, p->n, p->inner, tile ? r : NULL));
  if (inner && p->inner == AXIS_LOCAL && outer_type == AXIS_GLOBAL)
    inner = range_marked(k, inner, LOCAL_OF_GRID);
  if (!block || !inner) return NULL;
  UOp *at = p->top ? add(k, uop_alu2(k->st, OPS_MUL, inner, p->blocks), block)
                   : add(k, uop_alu2(k->st, OPS_MUL, block, p->n), inner);
  at = add(k, p->base, at);
  UOp *body = at ? kernel_with(k, body_of(k, u), 1, &r, &at) : NULL;
  if (body && p->size) body = pad(k, u, body, simp(k, uop_alu2(k->st, OPS_CMPLT, at, p->size)));
  if (body && is_batched(inner)) {
    Facts f;
    body = facts_of(k, u, &f) ? rows_apart(k, &f, body, inner) : NULL;
    facts_free(k, &f);
  }
  if (!body) return NULL;
  if (inner->op == OPS_RANGE && is_expanded(inner))
    body = spread(k, body, inner);
  else if (inner->op == OPS_RANGE) {
    UOp *loop = loop_new(k, inner, body->nsrc, body->src);
    body = loop ? UNEW(k->st, OPS_SINK, DT_VOID, 1, ARG0, loop) : NULL;
  }
  if (body && nest != u) {
    UOp *now = nest_replace(k, nest, u, body->nsrc, body->src);
    body = now ? UNEW(k->st, OPS_SINK, DT_VOID, 1, ARG0, now) : NULL;
  }
  if (!body || block->op != OPS_RANGE) return body;
  UOp *loop = loop_new(k, block, body->nsrc, body->src);
  return loop ? UNEW(k->st, OPS_SINK, DT_VOID, 1, ARG0, loop) : NULL;
}

/* The loop of `copy`, a copy of `nest`, that corresponds to u. */
static UOp *same_loop(UOp *nest, const UOp *u, UOp *copy) {
  while (nest != u) {
    nest = alone(nest);
    copy = alone(copy);
    if (!nest || !copy) return NULL;
  }
  return copy;
}

/* Replaces a loop by n parts. Each part after the first is a copy of the nest. */
bool in_parts(Kernel *k, UOp *nest, UOp *u, const Part *p, int n, bool tile) {
  UOpVec all = {0};
  bool ok = true;
  for (int i = 0; ok && i < n; i++) {
    UOp *copy = i ? nest_copy(k, nest, 0, NULL, NULL) : nest, *loop = copy ? same_loop(nest, u, copy) : NULL;
    UOp *part = loop ? part_of(k, copy, loop, &p[i], tile) : NULL;
    ok = part != NULL;
    for (int s = 0; ok && s < part->nsrc; s++)
      ok = vec_push(k->mem, &all, part->src[s]);
  }
  UOp *with = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)all.len, all.at, ARG0) : NULL;
  vec_free(k->mem, &all);
  return nest_edit(k, nest, with);
}

/* A vector of n lanes is computed in this many pieces of 16, 8, 4, 2 and 1 lanes. Each operation is written
 * once per piece. */
static int64_t pieces(int64_t n) { return n / 16 + __builtin_popcountll((uint64_t)n % 16); }

static int64_t operations_along(Kernel *k, const UOp *r) {
  UOpVec order = {0};
  int64_t n = 0;
  bool ok = kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->ranges & range_bit(r->arg.range.id))
      n += (int64_t)target_weight(k->opt->target, order.at[i]);
  vec_free(k->mem, &order);
  return n;
}

/* The loop that a TILE of u is placed around: the outermost of the loops that contain nothing but u, inside
 * blocks made before. */
UOp *front(Kernel *k, UOp *u) {
  PlaceVec at = {0};
  UOp *top = u;
  bool ok = nest_places(k, k->sink, &at);
  size_t i = 0;
  while (ok && i < at.len && at.at[i].u != u)
    i++;
  for (int up = ok && i < at.len ? at.at[i].up : -1; up >= 0; up = at.at[up].up) {
    UOp *loop = at.at[up].u;
    if (loop->nsrc != 2 || is_block(loop->src[0])) break;
    top = loop;
  }
  vec_free(k->mem, &at);
  return top;
}

/* Splits a loop of symbolic extent into whole blocks. The tail is one smaller block if a TILE is placed
 * around other opts, otherwise smaller tiles and then single steps. */
int parts_of_unknown(Kernel *k, const Opt *o, const UOp *r, AxisType inner, Part *p) {
  const int64_t sizes[] = {o->n, o->op == OPT_GROUP ? 1 : tile_left(o->n), 1};
  AxisType own = (AxisType)r->arg.range.type;
  UOp *base = num(k, 0), *left = r->src[0];
  int n = 0;
  for (size_t i = 0; i < TG_COUNT(sizes); i++) {
    if ((i && sizes[i] == sizes[i - 1]) || (left && is_const_int(left, 0))) continue;
    bool rest = i && o->op == OPT_TILE, one = rest || (i && sizes[i] == 1);
    UOp *size = num(k, sizes[i]), *blocks = rest ? num(k, 1) : ix(k, OPS_FLOORDIV, left, size);
    if (!base || !blocks) return 0;
    if (is_const_int(blocks, 0)) continue;
    p[n++] = (Part){base, blocks, rest ? left : size, one ? own : inner, NULL, o->op == OPT_UPCASTTOP};
    base = ix(k, OPS_ADD, base, ix(k, OPS_MUL, blocks, size));
    left = rest ? num(k, 0) : ix(k, OPS_FLOORMOD, left, size);
  }
  return n;
}

/* The most operations that are written for lanes of a tail, which otherwise runs iteration by iteration, and
 * for all parts of a loop of lanes. */
enum { MOST_PIECES_TEXT = 400 };

/* Splits the `size` iterations from `from` on into blocks of o->n. written: operations per lane; 0: the block
 * is not lanes. own: the type of the loop. Returns the number of parts, 1 or 2. */
static int parts_between(Kernel *k, const Opt *o, AxisType own, AxisType inner, int64_t written, int64_t from,
                         int64_t size, Part *p) {
  int64_t n = TG_MIN(o->n, size);
  while (written && n < 16 && (n & (n - 1)) && written * pieces(n) > MOST_PIECES_TEXT)
    n &= n - 1;
  int64_t whole = size / n, rest = size % n, tiles = (size + n - 1) / n;
  if (o->op == OPT_UPCAST && rest) { /* balanced: tiles of one size, and tiles that are smaller by one */
    int64_t large = (size + tiles - 1) / tiles, small = size / tiles;
    int64_t nlarge = large == small ? tiles : size - tiles * small;
    p[0] = (Part){num(k, from), num(k, nlarge), num(k, large), inner, NULL, false};
    p[1] = (Part){num(k, from + nlarge * large), num(k, tiles - nlarge), num(k, small), inner, NULL, false};
    return nlarge == tiles ? 1 : 2;
  }
  p[0] = (Part){num(k, from), num(k, whole), num(k, n), inner, NULL, o->op == OPT_UPCASTTOP};
  p[1] = (Part){num(k, from + whole * n), num(k, 1), num(k, rest), inner, NULL, false};
  if (written * pieces(rest) > MOST_PIECES_TEXT) p[1].inner = own;
  return rest ? 2 : 1;
}

/* ---- iterations at which something computed from the loop's range changes */
typedef struct Changes {
  int n;
  int64_t *at;
} Changes;

static bool change_add(Changes *c, int64_t at) {
  int to = c->n;
  while (to > 0 && c->at[to - 1] >= at)
    to--;
  if (to < c->n && c->at[to] == at) return true;
  if (c->n == MOST_CUTS) return false;
  memmove(c->at + to + 1, c->at + to, (size_t)(c->n++ - to) * sizeof *c->at);
  c->at[to] = at;
  return true;
}

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

/* Adds the iterations at which one node changes: a comparison flips, a MAX takes its other operand, a
 * quotient increases by one. Returns false if there are too many. */
static bool changes_add(Kernel *k, const UOp *u, UOp *r, Changes *c) {
  static const int64_t MOST_PLACE = INT64_MAX / 4;
  int64_t size = r->src[0]->arg.v.i, step, every = 0;
  bool divides = u->op == OPS_FLOORDIV || u->op == OPS_FLOORMOD;
  if ((u->op != OPS_CMPLT && u->op != OPS_MAX && !divides) || u->src[0]->dtype != DT_INDEX) return true;
  if ((u->src[0]->ranges | u->src[1]->ranges) != range_bit(r->arg.range.id)) return true;
  if (divides && !(is_const(u->src[1]) && (every = u->src[1]->arg.v.i) > 0)) return true;
  UOp *d = divides ? u->src[0] : ix(k, OPS_SUB, u->src[0], u->src[1]), *zero = num(k, 0);
  if (!d || !zero || !uop_coefficient(d, r, &step) || !step || (divides && step < 0)) return true;
  if (d->vmin < -MOST_PLACE || d->vmax > MOST_PLACE || every > MOST_PLACE)
    return true; /* so that the sums below cannot overflow */
  UOp *first = kernel_with(k, d, 1, &r, &zero);
  first = first ? simp(k, first) : NULL;
  if (!first || !is_const(first)) return true;
  int64_t from = first->arg.v.i; /* d is step * r + from; the node changes where d crosses 0 */
  if (!divides) {
    int64_t at = step > 0 ? ceil_div(-from, step) : ceil_div(from + 1, -step);
    return at <= 0 || at >= size || change_add(c, at);
  }
  for (int64_t j = from - (from % every + every) % every + every, at; (at = ceil_div(j - from, step)) < size;
       j += every)
    if (!change_add(c, at)) return false;
  return true;
}

int changes_of(Kernel *k, UOp *u, UOp *r, int64_t *at) {
  UOpVec order = {0};
  Changes c = {.at = at};
  bool few = true, ok = is_const(r->src[0]) && kernel_nodes(k, u, &order);
  for (size_t i = 0; ok && few && i < order.len; i++)
    few = changes_add(k, order.at[i], r, &c);
  vec_free(k->mem, &order);
  return ok && few ? c.n : 0;
}

/* Splits a loop of constant extent. Blocks of lanes are cut so that a condition holds for all lanes of a
 * block or for none, and no lane needs a test. */
int parts_of_known(Kernel *k, const Opt *o, UOp *u, AxisType inner, Part *p) {
  UOp *r = u->src[0];
  int64_t size = r->src[0]->arg.v.i, at[MOST_CUTS + 1], from = 0;
  int changes = inner == AXIS_VEC && o->n < size ? changes_of(k, u, r, at) : 0, n = 0;
  bool lanes = inner == AXIS_VEC || inner == AXIS_GROUP, between = false;
  int64_t written = lanes ? operations_along(k, r) : 0;
  for (int i = 0; i < changes; i++)
    between |= at[i] % o->n != 0;
  /* nothing is cut if the changes are at ends of blocks anyway, as with panels */
  if (!between || (changes + 1) * written > MOST_PIECES_TEXT) changes = 0;
  at[changes] = size;
  for (int i = 0; i <= changes; from = at[i++])
    n += parts_between(k, o, (AxisType)r->arg.range.type, inner, written, from, at[i] - from, p + n);
  return n;
}
