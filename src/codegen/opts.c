/* opts.c: shapes a kernel's loops by a list of opts. In: a nest and the list. Out: the same kernel with its
 * loops split and typed: UPCAST (register tile), VEC (vector lanes), UNROLL, GROUP (vector accumulators along
 * a reduction), LOCAL (threads of a GPU block). Each opt is an edit of the tree; those that are a subject of
 * their own have a file: CASCADE (cascade.c), TILE of a reduction (blocks.c), STAGE (stage.c), THREAD
 * (thread.c).
 *
 * An opt names a loop by its id in the kernel's graph and acts on every loop that descends from it. A loop
 * that a tile does not divide is cut in two, whole tiles and the rest, each a nest of its own: no masks.
 * UPCAST balances its tiles: 10 by 8 is 5 and 5. Only the grid of a GPU and the threads of a block are
 * padded, because they are a fixed number: what lies past the end is gated. */
#include "codegen/nest.h"
#include <stdio.h>
#include <string.h>

static UOp *simp(Kernel *k, UOp *u) { return u ? uop_simplify(k->st, k->mem, u) : NULL; }

static UOp *num(Kernel *k, int64_t v) { return uop_index_const(k->st, v); }

static UOp *add(Kernel *k, UOp *x, UOp *y) { return uop_alu2(k->st, OPS_ADD, x, y); }

/* A new loop, a part of `like`; NULL: of none. */
UOp *kernel_range(Kernel *k, UOp *extent, AxisType type, const UOp *like) {
  int64_t root = like ? range_root(like) : -1;
  int of = type >= AXIS_UPCAST ? 0 : root < 0 ? -1 : (int)root + 1;
  Arg arg = {.range = {k->next_range++, (int32_t)type, of}};
  return extent ? uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, &extent, arg) : NULL;
}

static bool refuse(Kernel *k, const Opt *o, const char *why) {
  Str text;
  str_init(&text, k->mem), opt_print(&text, o);
  snprintf(k->refused, sizeof k->refused, "%s: %s", str_text(&text), why);
  str_free(&text);
  if (k->strict) error_set(k->err, TG_ERR_VALUE, "opts: %s", k->refused);
  return false;
}

/* ---- what a loop does */
typedef struct Facts {
  UOpVec started; /* registers that begin in it */
  UOpVec rows;    /* local memory that it fills anew in every turn */
  bool carries;   /* it steps a register that begins outside */
  bool lanes;     /* a statement in it has its lanes */
} Facts;

static void facts_free(Kernel *k, Facts *f) { vec_free(k->mem, &f->started), vec_free(k->mem, &f->rows); }

static bool facts_of(Kernel *k, UOp *loop, Facts *f) {
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

/* ---- spreading: the statements of a body, each over the expanded range r */
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

/* Registers that begin in the body get an axis for r: they are apart for each of its values. */
static UOp *spread(Kernel *k, UOp *body, UOp *r) {
  Facts f = {0};
  UOpVec order = {0}, from = {0}, to = {0}, apart = {0};
  UOp *loop = loop_new(k, r, body->nsrc, body->src);
  bool ok = loop && facts_of(k, loop, &f) && uop_toposort(k->st, k->mem, &body, 1, &order);
  for (size_t i = 0; ok && i < f.started.len; i++) {
    UOp *reg = f.started.at[i], *extent[MAX_LIST + 1];
    if (reg->nsrc >= MAX_LIST) {
      ok = false;
      break;
    }
    if (reg->nsrc) memcpy(extent, reg->src, reg->nsrc * sizeof *extent);
    extent[reg->nsrc] = r->src[0];
    ok = vec_push(k->mem, &apart, reg_new(k, (DType)reg->dtype, reg->nsrc + 1, extent));
  }
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *x = order.at[i], *at[MAX_LIST + 1];
    size_t reg = 0;
    if (x->op != OPS_INDEX || !vec_has(&f.started, x->src[0])) continue;
    while (f.started.at[reg] != x->src[0])
      reg++;
    memcpy(at, x->src + 1, (size_t)(x->nsrc - 1) * sizeof *at);
    at[x->nsrc - 1] = r;
    ok = vec_push(k->mem, &from, x) && vec_push(k->mem, &to, reg_at(k, apart.at[reg], x->nsrc, at));
  }
  Spread s = {k, r};
  UOp *now = ok ? uop_substitute(k->st, k->mem, body, (int)from.len, from.at, to.at) : NULL;
  if (now) now = spread_tree(&s, now);
  facts_free(k, &f), vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  vec_free(k->mem, &apart);
  return now;
}

/* ---- padding: turns past the end, which write nothing and add nothing */
typedef struct Pad {
  Kernel *k;
  UOp *valid;
  const UOpVec *started;
} Pad;

/* Whether u has a range that `valid` has. */
static bool moves_with(Kernel *k, UOp *u, UOp *valid) {
  UOpVec order = {0};
  bool moves = false, ok = (u->ranges & valid->ranges) && uop_toposort(k->st, k->mem, &valid, 1, &order);
  for (size_t i = 0; ok && i < order.len && !moves; i++)
    moves = order.at[i]->op == OPS_RANGE && depends(k, u, order.at[i]);
  vec_free(k->mem, &order);
  return moves;
}

static UOp *gated_store(Pad *p, UOp *s) {
  Kernel *k = p->k;
  if (stored_in(s)->op == OPS_DEFINE_LOCAL && !moves_with(k, s->src[0], p->valid))
    return statement_with(k, s,
                          gate_loads(k, s->src[1], p->valid)); /* a row of its own: it is read all the same */
  UOp *x = s->src[0], *own = x->arg.i ? gate_loads(k, index_gate(x), p->valid) : NULL, *at[MAX_AXES + 2];
  UOp *gate = x->arg.i ? simp(k, own ? uop_alu2(k->st, OPS_AND, own, p->valid) : NULL) : p->valid;
  int n = 1 + index_naxes(x);
  memcpy(at, x->src, (size_t)n * sizeof *at);
  for (int i = 1; i < n; i++)
    at[i] = gate_loads(k, at[i], p->valid); /* places that are data */
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
  if (!vec_has(p->started, stored_in(u))) {
    UOp *none = uop_const(st, (DType)v->dtype, op_identity((Ops)u->arg.reduce.op, (DType)v->dtype));
    v = uop_where(st, p->valid, v, none);
  }
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

/* ---- rows: local memory that each turn of a loop fills for itself, where turns go side by side */
static bool rows_fit(Kernel *k, const Facts *f, int64_t n) {
  int64_t bytes = 0;
  for (size_t i = 0; i < f->rows.len; i++)
    bytes += f->rows.at[i]->arg.param.nelem * (int64_t)dtype_size((DType)f->rows.at[i]->dtype);
  return bytes * n <= k->opt->target->local_bytes;
}

/* Each value of `inner` gets rows of its own, element beside element. */
static UOp *rows_apart(Kernel *k, const Facts *f, UOp *body, UOp *inner) {
  UOpVec order = {0}, from = {0}, to = {0};
  bool ok = uop_toposort(k->st, k->mem, &body, 1, &order);
  for (size_t row = 0; ok && row < f->rows.len; row++) {
    UOp *m = f->rows.at[row], *n = inner->src[0];
    UOp *all = uop_new(k->st, OPS_DEFINE_LOCAL, (DType)m->dtype, 1, 0, NULL,
                       (Arg){.param = {m->arg.param.nelem * n->arg.v.i, k->next_local++}});
    for (size_t i = 0; ok && all && i < order.len; i++) {
      UOp *x = order.at[i], *src[3] = {all};
      if (x->op != OPS_INDEX || x->src[0] != m) continue;
      src[1] = add(k, uop_alu2(k->st, OPS_MUL, x->src[1], n), inner), src[2] = index_gate(x);
      UOp *now = uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, x->nsrc, src, x->arg);
      ok = vec_push(k->mem, &from, x) && vec_push(k->mem, &to, now);
    }
  }
  UOp *r = ok ? uop_substitute(k->st, k->mem, body, (int)from.len, from.at, to.at) : NULL;
  vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return r;
}

static bool side_by_side(const UOp *r) {
  return r->op == OPS_RANGE && (is_expanded(r) || r->arg.range.type == AXIS_LOCAL);
}

/* ---- splitting */
typedef struct Part {
  UOp *base, *blocks, *n; /* r = base + block * n + inner */
  AxisType inner;
  UOp *size; /* NULL, or where r ends: turns past it do nothing */
} Part;

static UOp *one_turn(Kernel *k, const UOp *extent, UOp *loop) {
  return is_const_int(extent, 1) ? num(k, 0) : loop;
}

/* Loop u, found in `nest`, over one part of its range: the loop over blocks stands around `nest`, the inner
 * one where u stood, or in the lists of its statements. -> the statements, as a SINK. */
static UOp *part_of(Kernel *k, UOp *nest, UOp *u, const Part *p, bool tile) {
  UOp *r = u->src[0];
  AxisType outer_type = (AxisType)r->arg.range.type;
  UOp *block = one_turn(k, p->blocks, kernel_range(k, p->blocks, outer_type, r));
  if (block && tile && range_root(r) >= 0) block = range_marked(k, block, BLOCKS_OF - (int)range_root(r));
  UOp *inner = one_turn(k, p->n, kernel_range(k, p->n, p->inner, tile ? r : NULL));
  if (inner && p->inner == AXIS_LOCAL && outer_type == AXIS_GLOBAL)
    inner = range_marked(k, inner, LOCAL_OF_GRID);
  UOp *at = block && inner ? add(k, p->base, add(k, uop_alu2(k->st, OPS_MUL, block, p->n), inner)) : NULL;
  UOp *body = at ? uop_substitute(k->st, k->mem, body_of(k, u), 1, &r, &at) : NULL;
  if (body && p->size) body = pad(k, u, body, simp(k, uop_alu2(k->st, OPS_CMPLT, at, p->size)));
  if (body && side_by_side(inner)) {
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

/* The loop in a copy of `nest` that stands where u does in it. */
static UOp *same_loop(UOp *nest, const UOp *u, UOp *copy) {
  while (nest != u) {
    nest = alone(nest), copy = alone(copy);
    if (!nest || !copy) return NULL;
  }
  return copy;
}

/* Both parts of a loop in its place; the second, if any, is a nest of its own. */
static bool in_parts(Kernel *k, UOp *nest, UOp *u, const Part *p, int n, bool tile) {
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

/* A vector of n lanes is this many pieces of 16, 8, 4, 2 and 1 lanes: so often is written what it computes.
 */
static int64_t pieces(int64_t n) { return n / 16 + __builtin_popcountll((uint64_t)n % 16); }

static int64_t operations_along(Kernel *k, const UOp *r) {
  UOpVec order = {0};
  int64_t n = 0;
  bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->ranges & range_bit(r->arg.range.id))
      n += (int64_t)target_weight(k->opt->target, order.at[i]);
  vec_free(k->mem, &order);
  return n;
}

/* The loop that a TILE of u goes around: the outermost of those that hold nothing else, inside blocks made
 * before. */
static UOp *front(Kernel *k, UOp *u) {
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

static int parts_of_unknown(Kernel *k, const Opt *o, const UOp *r, AxisType inner, Part *p) {
  UOp *size = num(k, o->n), *blocks = simp(k, uop_alu2(k->st, OPS_FLOORDIV, r->src[0], size));
  UOp *left = simp(k, uop_alu2(k->st, OPS_FLOORMOD, r->src[0], size));
  if (!blocks || !left) return 0;
  p[0] = (Part){num(k, 0), blocks, size, inner, NULL};
  p[1] = (Part){uop_alu2(k->st, OPS_MUL, blocks, size), left, num(k, 1), (AxisType)r->arg.range.type, NULL};
  if (is_const_int(blocks, 0)) p[0] = p[1];
  return is_const_int(blocks, 0) || is_const_int(left, 0) ? 1 : 2;
}

static int parts_of_known(Kernel *k, const Opt *o, const UOp *r, AxisType inner, Part *p) {
  enum {
    MOST_PIECES_TEXT = 400
  }; /* operations written for the lanes that are left, else they run one by one */

  int64_t size = r->src[0]->arg.v.i, n = TG_MIN(o->n, size);
  bool lanes = inner == AXIS_VEC || inner == AXIS_GROUP;
  int64_t written = lanes ? operations_along(k, r) : 0;
  while (lanes && n < 16 && (n & (n - 1)) && written * pieces(n) > MOST_PIECES_TEXT)
    n &= n - 1;
  int64_t whole = size / n, rest = size % n, tiles = (size + n - 1) / n;
  if (o->op == OPT_UPCAST && rest) { /* balanced: tiles of one size and of one less */
    int64_t large = (size + tiles - 1) / tiles, small = size / tiles;
    int64_t nlarge = large == small ? tiles : size - tiles * small;
    p[0] = (Part){num(k, 0), num(k, nlarge), num(k, large), inner, NULL};
    p[1] = (Part){num(k, nlarge * large), num(k, tiles - nlarge), num(k, small), inner, NULL};
    return nlarge == tiles ? 1 : 2;
  }
  p[0] = (Part){num(k, 0), num(k, whole), num(k, n), inner, NULL};
  p[1] = (Part){num(k, whole * n), num(k, 1), num(k, rest), inner, NULL};
  if (written * pieces(rest) > MOST_PIECES_TEXT) p[1].inner = (AxisType)r->arg.range.type;
  return rest ? 2 : 1;
}

/* ---- GROUP on a CPU: each lane has a register of its own, joined when the whole reduction is done */
typedef struct Partial {
  UOpVec from, to, starts, merges;
} Partial;

static UOp *group_range(const UOp *acc) {
  for (int i = 2; i < acc->nsrc; i++)
    if (acc->src[i]->arg.range.type == AXIS_GROUP) return acc->src[i];
  return NULL;
}

static bool partial_add(Kernel *k, Partial *p, UOp *acc) {
  UOp *x = acc->src[0], *reg = x->src[0], *lane = group_range(acc), *at[MAX_LIST + 1], *extent[MAX_LIST + 1];
  if (!lane || vec_has(&p->from, x)) return true;
  int n = x->nsrc - 1, nlist = 0;
  UOp *list[MAX_LIST + 1];
  if (n >= MAX_LIST) return false;
  if (n) memcpy(at, x->src + 1, (size_t)n * sizeof *at), memcpy(extent, reg->src, (size_t)n * sizeof *extent);
  at[n] = lane, extent[n] = lane->src[0];
  for (int i = 2; i < acc->nsrc; i++)
    if (depends(k, x, acc->src[i])) list[nlist++] = acc->src[i];
  list[nlist++] = lane;
  Ops op = (Ops)acc->arg.reduce.op;
  UOp *wide = reg_at(k, reg_new(k, (DType)reg->dtype, n + 1, extent), n + 1, at);
  return wide && vec_push(k->mem, &p->from, x) && vec_push(k->mem, &p->to, wide) &&
         vec_push(k->mem, &p->starts, reg_start(k, wide, op, nlist, list)) &&
         vec_push(k->mem, &p->merges, acc_new(k, op, x, wide, nlist, list));
}

/* The loop of u's reduction that holds all its others: it stands beside where register `reg` begins. */
static UOp *reduction_of(Kernel *k, const UOp *u, const UOp *reg) {
  PlaceVec at = {0};
  UOp *r = NULL;
  bool ok = nest_places(k, k->sink, &at);
  int start = -1, here = -1;
  for (size_t i = 0; ok && i < at.len; i++) {
    if (start < 0 && at.at[i].u->op == OPS_STORE && stored_in(at.at[i].u) == reg) start = (int)i;
    if (at.at[i].u == u) here = (int)i;
  }
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
    if (!reduction) continue; /* begins in this very loop */
    one &= whole == u || whole == reduction;
    whole = reduction;
    ok = partial_add(k, &p, acc);
  }
  if (ok && !one) ok = refuse(k, o, "it belongs to reductions that begin in different loops");
  if (ok) head = uop_substitute(k->st, k->mem, head, (int)p.from.len, p.from.at, p.to.at);
  if (ok && n > 1) {
    UOp *copy = nest_copy(k, u, 0, NULL, NULL);
    rest = copy ? part_of(k, copy, copy, &part[1], false) : NULL;
    ok = rest != NULL;
  }
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

static bool carries(Kernel *k, UOp *loop) {
  Facts f;
  bool r = facts_of(k, loop, &f) && f.carries;
  facts_free(k, &f);
  return r;
}

static bool split(Kernel *k, const Opt *o, UOp *u, AxisType inner) {
  UOp *r = u->src[0];
  bool tile = o->op == OPT_TILE, grid = r->arg.range.type == AXIS_GLOBAL;
  Part p[2] = {{0}};
  if (tile) inner = (AxisType)r->arg.range.type;
  if (tile && !k->ren->has_grid && is_const(r->src[0]) && carries(k, u)) {
    const char *why;
    bool is, done = opt_tile_sum(k, u, o->n, &is, &why);
    if (is) return done || (why && refuse(k, o, why));
  }
  if (k->ren->has_grid && (grid || inner == AXIS_LOCAL)) { /* a fixed number of turns */
    int64_t size = r->src[0]->arg.v.i, n = inner == AXIS_LOCAL ? o->n : TG_MIN(o->n, size);
    p[0] = (Part){num(k, 0), num(k, (size + n - 1) / n), num(k, n), inner, size % n ? num(k, size) : NULL};
    return in_parts(k, tile ? front(k, u) : u, u, p, 1, tile);
  }
  int n = is_const(r->src[0]) ? parts_of_known(k, o, r, inner, p) : parts_of_unknown(k, o, r, inner, p);
  if (!n) return false;
  if (inner == AXIS_GROUP && !is_const_int(p[0].blocks, 1)) return group_parts(k, o, u, p, n);
  return in_parts(k, tile ? front(k, u) : u, u, p, n, tile);
}

/* ---- SWAP: two loops with nothing but loops between them */
static UOp *swapped(Kernel *k, UOp *u, UOp *outer, UOp *inner) { /* ranges of a chain that begins at u */
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
    bool scan = o->op == OPT_GROUP && k->ren->has_grid && is_scan(k, u);
    *ordered |=
        loop_type(u) == AXIS_ORDERED && !scan && (named || (o->op == OPT_SWAP && range_root(r) == o->n));
    if (!named || r->src[0]->ranges || (k->ren->has_grid && !is_const(r->src[0]))) continue;
    ok = vec_push(k->mem, loops, u);
  }
  vec_free(k->mem, &at);
  return ok;
}

/* LOCAL loops inside the grid share one axis: they have one length and do not nest; the grid has two more at
 * most. */
static bool threads_meet(Kernel *k, const Opt *o, const UOp *loop) {
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at), meet = false, grid = loop_type(loop) == AXIS_GLOBAL;
  int axes = 0, here = -1;
  for (size_t i = 0; ok && i < at.len; i++)
    if (at.at[i].u == loop) here = (int)i;
  for (size_t i = 0; ok && i < at.len; i++) {
    const UOp *u = at.at[i].u;
    if (!is_loop(u) || loop_type(u) != AXIS_LOCAL || is_shared(u)) continue;
    if (u->src[0]->arg.range.of == LOCAL_OF_GRID) {
      axes++;
      continue;
    }
    if (!grid) meet |= u->src[0]->src[0]->arg.v.i != o->n;
    for (int up = here; up >= 0; up = at.at[up].up)
      meet |= up == (int)i;
    for (int up = (int)i; up >= 0; up = at.at[up].up)
      meet |= up == here && !grid;
  }
  vec_free(k->mem, &at);
  return !ok || meet || (grid && axes >= 2);
}

enum { MOST_THREADS = 1024 };

/* Threads of a block with those that the opt gives it: the axes of the grid, by what the inner loops share.
 */
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
  if (o->n > MOST_THREADS || loop_type(loop) != AXIS_GLOBAL) return grid * TG_MIN(o->n, INT32_MAX);
  return TG_MIN(grid, INT32_MAX / MOST_THREADS) * inner * o->n;
}

/* Sums run on through the blocks of a CASCADE, some in rows: a thread has its own, along the grid. */
static bool in_cascade(const Kernel *k) { return k->list.len && k->list.at[0].op == OPT_CASCADE; }

static const char *cannot(Kernel *k, const Opt *o, UOp *loop, const Facts *f) {
  bool gpu = k->ren->has_grid, threads = o->op == OPT_LOCAL || (o->op == OPT_GROUP && gpu);
  if (o->op == OPT_TILE) return NULL;
  if (o->op == OPT_LOCAL && !gpu) return "the device has no blocks of threads";
  if (threads && block_threads(k, o, loop) > MOST_THREADS) return "a block has 1024 threads at most";
  if (o->op == OPT_GROUP && o->n > MOST_THREADS) return "of 1024 lanes at most";
  if (threads && in_cascade(k) && loop_type(loop) != AXIS_GLOBAL)
    return "threads inside a CASCADE would share its running sums: along the grid each has its own";
  if (threads && threads_meet(k, o, loop))
    return "the threads of a block go along this loop nest already, or are another number";
  if (loop_type(loop) == AXIS_ORDERED && (o->n % TG_MAX(k->opt->target->warp, 2) || o->n & (o->n - 1)))
    return "running sums take 32 threads, 64, 128 ..";
  if (!rows_fit(k, f, o->n)) return "local memory has no room for a row of each of its turns";
  switch (o->op) {
  case OPT_LOCAL: return f->carries ? "a loop of a reduction: GROUP deals it to the threads" : NULL;
  case OPT_VEC:
    if (f->lanes) return "this loop nest has its lanes already";
    return f->carries ? "a loop of a reduction: GROUP makes lanes along it" : NULL;
  case OPT_UPCAST: return f->carries ? "a loop of a reduction: UNROLL takes its steps together" : NULL;
  case OPT_UNROLL:
  case OPT_GROUP:
    if (!f->carries) return "not a loop of a reduction";
    if (f->rows.len) return "local memory is filled anew in each of its turns";
    return o->op == OPT_GROUP && !gpu && f->lanes ? "this loop nest has its lanes already" : NULL;
  default: return NULL;
  }
}

static AxisType inner_type(const Kernel *k, OptOp op) {
  switch (op) {
  case OPT_LOCAL: return AXIS_LOCAL;
  case OPT_VEC: return AXIS_VEC;
  case OPT_UNROLL: return AXIS_UNROLL;
  case OPT_GROUP: return k->ren->has_grid ? AXIS_LOCAL : AXIS_GROUP;
  default: return AXIS_UPCAST;
  }
}

bool opt_split(Kernel *k, OptOp op, UOp *loop, int64_t n) {
  return split(k, &(Opt){op, -1, n}, loop, inner_type(k, op));
}

static bool stage(Kernel *k, const Opt *o) {
  const char *why;
  return opt_stage(k, o->r, &why) || (why && refuse(k, o, why));
}

static bool cascade(Kernel *k, const Opt *o, const UOpVec *loops) {
  const char *why;
  if (loops->len > 1) return refuse(k, o, "it comes before what splits its loop");
  return opt_cascade(k, loops->at[0], o->n, &why) || (why && refuse(k, o, why));
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
  UOpVec loops = {0};
  bool ordered = false, ok = loops_of(k, o, &loops, &ordered), any = false;
  if (ok && ordered) ok = refuse(k, o, "its turns run in order, one after another");
  if (ok && !loops.len) ok = refuse(k, o, "no such loop is left");
  if (ok && o->op == OPT_THREAD)
    ok = thread_checked(k, o, &loops);
  else if (ok && o->op == OPT_CASCADE)
    ok = cascade(k, o, &loops);
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

bool opts_apply(Kernel *k, const OptVec *v) {
  static const int rank[] = {
      [OPT_CASCADE] = 0, [OPT_TILE] = 1, [OPT_STAGE] = 1,  [OPT_SWAP] = 2, [OPT_LOCAL] = 3,
      [OPT_UPCAST] = 3,  [OPT_VEC] = 3,  [OPT_UNROLL] = 3, [OPT_GROUP] = 3};
  int last = 0;
  for (size_t i = 0; i < v->len; i++) { /* a list reads from the outer loops to the inner ones */
    if (v->at[i].op == OPT_THREAD) continue;
    if (rank[v->at[i].op] < last)
      return refuse(
          k, &v->at[i],
          "CASCADE comes first, TILE and STAGE before SWAP, SWAP before what shapes the inner loops");
    last = rank[v->at[i].op];
  }
  for (int late = 0; late < 2; late++) /* THREAD is the outermost loop: it is made when the others stand */
    for (size_t i = 0; i < v->len; i++) {
      k->ndone = i;
      if ((v->at[i].op == OPT_THREAD) == (late == 1) && !opt_apply(k, &v->at[i])) return false;
    }
  for (size_t i = 0; i < v->len; i++)
    opt_print(&k->opts, &v->at[i]);
  return true;
}

bool opts_fit(Kernel *k, const OptVec *list) {
  Kernel trial = *k;
  str_init(&trial.opts, k->mem);
  trial.strict = false;
  bool ok = nest_build(&trial) && opts_apply(&trial, list);
  str_free(&trial.opts);
  return ok;
}

/* A grid has a number of blocks that is known here: loops of symbolic length that would be of it run to their
 * largest length, and what lies past their end is gated. */
static bool pad_grid(Kernel *k) {
  PlaceVec at = {0};
  UOpVec loops = {0};
  bool ok = nest_places(k, k->sink, &at);
  for (size_t i = at.len; ok && i-- > 0;) { /* inner first: an outer one is then found where it was */
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
    Part p = {num(k, 0), num(k, 1), num(k, r->src[0]->vmax), AXIS_GLOBAL, r->src[0]};
    ok = ok && u && in_parts(k, u, u, &p, 1, true);
  }
  vec_free(k->mem, &at), vec_free(k->mem, &loops);
  return ok;
}

/* The last n opts but THREAD, which costs nothing and gains most, are left out. */
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

/* Before the nest is made: the list that it will get. */
bool choose_opts(Kernel *k, const CodegenOptions *opt) {
  bool ok = true;
  k->list.len = 0;
  if (!k->ren) return true;
  if (opt->opts)
    k->strict = true, ok = opts_parse(opt->opts, k->mem, &k->list, k->err);
  else if (!opt->noopt)
    ok = k->ren->has_grid ? heuristic_gpu(k, &k->list) : heuristic_cpu(k, opt->ncores, &k->list);
  k->nopt = (int)k->list.len;
  if (ok && !opt->opts && opt->leave_out) leave_out(&k->list, opt->leave_out);
  return ok;
}

bool apply_opts(Kernel *k, const CodegenOptions *opt) {
  if (!k->ren) return true;
  if (opt->opts && !k->list.len && !choose_opts(k, opt)) return false; /* a pass alone, by its name */
  if (k->ren->has_grid && !opt->noopt && !pad_grid(k)) return false;
  return opts_apply(k, &k->list);
}
