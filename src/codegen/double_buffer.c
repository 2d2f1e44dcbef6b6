/* double_buffer.c: DOUBLE_BUFFER, which copies some blocks ahead. In: a loop over blocks, each of which
 * fills shared memory and then reads it. Out: n memories, which blocks use in turn: while one block is
 * computed, a later one is copied into another memory. With two memories a and b:
 *
 *   fill a with block 0
 *   for each pair of blocks 2t, 2t + 1:
 *     fill b with the second, compute the first from a
 *     fill a with the first block of the next pair, compute the second from b
 *   compute an odd last block from a
 *
 * Each memory is filled while another is read, so there is one barrier a block instead of two (gpu.c finds
 * where), and a device with asynchronous copies (renderer/cuda_text.c) has the time of a block for a copy.
 * With three or more memories, copies of later blocks may still be under way at a barrier; such barriers
 * are made here and carry the number of these copies. Matrix units that read shared memory by themselves
 * may then also still be at work on the block before. So with four or more memories and such units, the
 * memory that is filled is that of two blocks before. */
#include "codegen/split.h"

typedef struct Pipe {
  Kernel *k;
  UOp *loop;
  UOpVec fills;
  UOpVec memory; /* n for each fill, one after another */
  int n, ahead;  /* the number of memories; how many blocks ahead a block is copied */
  bool late;     /* products of one block are still under way when the next begins */
  UOp *rest;     /* the statements that read, as a SINK */
  const char *why;
} Pipe;

static bool cannot(Pipe *p, const char *why) {
  p->why = why;
  return false;
}

/* Separates the loop's fills, which come first, from the rest. */
static bool take_apart(Pipe *p) {
  Kernel *k = p->k;
  UOpVec rest = {0};
  bool ok = true;
  for (int i = 1; ok && i < p->loop->nsrc; i++) {
    UOp *u = p->loop->src[i];
    bool fill = is_shared(u) && u->nsrc == 2 && u->src[1]->op == OPS_STORE;
    if (fill && rest.len) ok = cannot(p, "a copy is made after something else");
    if (!fill) ok = ok && vec_push(k->mem, &rest, u);
    if (!fill || !ok) continue;
    UOp *m = stored_in(u->src[1]);
    ok = vec_push(k->mem, &p->fills, u) && vec_push(k->mem, &p->memory, m);
    for (int j = 1; ok && j < p->n; j++) {
      UOp *other = local_memory(k, m->dtype, m->arg.param.nelem);
      ok = other && vec_push(k->mem, &p->memory, other);
    }
  }
  if (ok && (!p->fills.len || !rest.len)) ok = cannot(p, "no copies are made in its blocks");
  p->rest = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)rest.len, rest.at, ARG0) : NULL;
  vec_free(k->mem, &rest);
  return p->rest != NULL;
}

/* Returns a copy of u for block `at`, which uses memory number `which`. */
static UOp *of_block(Pipe *p, UOp *u, UOp *at, int which) {
  UOpVec from = {0}, to = {0};
  UOp *range = p->loop->src[0];
  bool ok = at && vec_push(p->k->mem, &from, range) && vec_push(p->k->mem, &to, at);
  for (size_t i = 0; ok && which && i < p->memory.len; i += (size_t)p->n)
    ok = vec_push(p->k->mem, &from, p->memory.at[i]) &&
         vec_push(p->k->mem, &to, p->memory.at[i + (size_t)which]);
  UOp *r = ok ? nest_copy(p->k, u, (int)from.len, from.at, to.at) : NULL;
  vec_free(p->k->mem, &from), vec_free(p->k->mem, &to);
  return r;
}

/* Returns a fill whose store and read are gated by `valid`. */
static UOp *gated(Kernel *k, UOp *loop, UOp *valid) {
  UOp *store = loop->src[1], *to = index_gated(k, store->src[0], valid);
  UOp *value = to ? index_gated(k, store->src[1], valid) : NULL;
  UOp *now = value ? write_new(k, to, value, store->nsrc - 2, store->src + 2) : NULL;
  return now ? loop_new(k, loop->src[0], 1, &now) : NULL;
}

static bool fills_put(Pipe *p, UOp *at, int which, UOp *valid, UOpVec *out) {
  bool ok = true;
  for (size_t i = 0; ok && i < p->fills.len; i++) {
    UOp *fill = of_block(p, p->fills.at[i], at, which);
    if (fill && !is_const_int(valid, 1)) fill = gated(p->k, fill, valid);
    ok = fill && vec_push(p->k->mem, out, fill);
  }
  return ok;
}

static bool rest_put(Pipe *p, UOp *at, int which, UOpVec *out) {
  UOp *rest = of_block(p, p->rest, at, which);
  bool ok = rest != NULL;
  for (int i = 0; ok && i < rest->nsrc; i++)
    ok = vec_push(p->k->mem, out, rest->src[i]);
  return ok;
}

/* Adds a barrier. With two memories none is needed here, because gpu.c finds where threads must meet. */
static bool meeting_put(Pipe *p, UOpVec *out) {
  Kernel *k = p->k;
  UOp *keep[2] = {num(k, p->ahead - 1), num(k, p->late)};
  UOp *b = p->n > 2 && keep[0] && keep[1] ? uop_new(k->st, OPS_BARRIER, DT_VOID, 1, 2, keep, ARG0) : NULL;
  return p->n == 2 || (b && vec_push(k->mem, out, b));
}

/* Writes block `which` of the n blocks that begin at block `first`, and the fill for a later block. last:
 * the last block that this fill is ever for; the fill is gated if that is past the end. */
static bool block_put(Pipe *p, UOp *first, int which, int64_t last, UOpVec *out) {
  Kernel *k = p->k;
  int64_t blocks = p->loop->src[0]->src[0]->arg.v.i;
  UOp *next = ix(k, OPS_ADD, first, num(k, which + p->ahead));
  UOp *valid = last < blocks ? uop_const_int(k->st, DT_BOOL, 1) : ix(k, OPS_CMPLT, next, num(k, blocks));
  bool none = valid && is_const_int(valid, 0);
  return valid && meeting_put(p, out) &&
         (none || fills_put(p, next, (which + p->ahead) % p->n, valid, out)) &&
         rest_put(p, ix(k, OPS_ADD, first, num(k, which)), which, out);
}

static bool in_turn(Pipe *p) {
  Kernel *k = p->k;
  UOp *range = p->loop->src[0], *yes = uop_const_int(k->st, DT_BOOL, 1);
  int64_t blocks = range->src[0]->arg.v.i, turns = blocks / p->n, left = turns * p->n;
  UOpVec body = {0}, all = {0};
  UOp *turn = turns > 1 ? kernel_range(k, num(k, turns), AXIS_REDUCE, range) : num(k, 0);
  if (turn && turn->op == OPS_RANGE) turn = range_marked(k, turn, range->arg.range.of);
  UOp *first = ix(k, OPS_MUL, turn, num(k, p->n));
  bool ok = first && yes;
  for (int i = 0; ok && i < p->ahead; i++)
    ok = (!i || meeting_put(p, &all)) && fills_put(p, num(k, i), i, yes, &all);
  for (int i = 0; ok && i < p->n; i++)
    ok = block_put(p, first, i, left - p->n + i + p->ahead, &body);
  UOp *loop = ok && turn->op == OPS_RANGE ? loop_new(k, turn, (int)body.len, body.at) : NULL;
  if (loop)
    ok = vec_push(k->mem, &all, loop);
  else
    for (size_t i = 0; ok && i < body.len; i++)
      ok = turn->op != OPS_RANGE && vec_push(k->mem, &all, body.at[i]);
  for (int i = 0; ok && i < blocks - left; i++)
    ok = block_put(p, num(k, left), i, left + i + p->ahead, &all);
  UOp *with = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)all.len, all.at, ARG0) : NULL;
  vec_free(k->mem, &body), vec_free(k->mem, &all);
  return nest_edit(k, p->loop, with);
}

bool opt_double_buffer(Kernel *k, const Opt *o, const char **why) {
  enum { MOST = 8, LATE = 4 };

  Pipe p = {.k = k, .n = (int)TG_MIN(o->n, MOST)};
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at);
  if (o->n < 2 || o->n > MOST) ok = cannot(&p, "of two copies to eight");
  for (size_t i = 0; ok && i < at.len && !p.loop; i++)
    if (is_loop(at.at[i].u) && block_root(at.at[i].u->src[0]) == o->r) p.loop = at.at[i].u;
  vec_free(k->mem, &at);
  if (ok && (!p.loop || !is_const(p.loop->src[0]->src[0]) || p.loop->src[0]->src[0]->arg.v.i < o->n))
    ok = cannot(&p, "no loop over so many blocks of it or more");
  ok = ok && take_apart(&p);
  p.late = ok && p.n >= LATE && has_groups(k, p.rest); /* the units may still be at work when threads go on */
  p.ahead = p.n - 1 - p.late;
  int64_t used = ok ? nest_local_bytes(k, k->sink) : 0, more = 0;
  for (size_t i = 0; ok && i < p.memory.len; i += (size_t)p.n)
    more += (p.n - 1) * local_array_bytes(p.memory.at[i]);
  if (ok && used + more > k->opt->target->local_most) ok = cannot(&p, "local memory has no room for so many");
  ok = ok && in_turn(&p);
  *why = ok ? NULL : p.why;
  vec_free(k->mem, &p.fills), vec_free(k->mem, &p.memory);
  return ok;
}
