/* double_buffer.c: DOUBLE_BUFFER, copies one block ahead. In: a loop over blocks, each of which fills shared
 * memory and then reads it. Out: two memories, for even and for odd blocks: while one block is computed,
 * the next is copied into the other memory.
 *
 *   fill a with block 0; for each pair of blocks 2t, 2t + 1: fill b with the second, compute the first from
 * a, fill a with the one after the pair, compute the second from b; an odd block that is left from a.
 *
 * Each memory is filled while the other is read, so there is one barrier a block instead of two (gpu.c finds
 * them), and a device that copies by itself (renderer/cuda_text.c) has the time of a block for it. */
#include "codegen/split.h"

typedef struct Pipe {
  Kernel *k;
  UOp *loop;
  UOpVec fills, other; /* loops that fill memory, and that memory's second */
  UOpVec memory;
  UOp *rest; /* what reads, as a SINK */
  const char *why;
} Pipe;

static bool cannot(Pipe *p, const char *why) {
  p->why = why;
  return false;
}

/* What the loop fills, and the rest: fills come first. */
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
    Arg arg = {.param = {m->arg.param.nelem, k->next_local++}};
    UOp *other = uop_new(k->st, OPS_DEFINE_LOCAL, (DType)m->dtype, 1, 0, NULL, arg);
    ok = other && vec_push(k->mem, &p->fills, u) && vec_push(k->mem, &p->memory, m) &&
         vec_push(k->mem, &p->other, other);
  }
  if (ok && (!p->fills.len || !rest.len)) ok = cannot(p, "no copies are made in its blocks");
  p->rest = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)rest.len, rest.at, ARG0) : NULL;
  vec_free(k->mem, &rest);
  return p->rest != NULL;
}

/* A copy of u for block `at`, in the first memories or the second. */
static UOp *of_block(Pipe *p, UOp *u, UOp *at, bool second) {
  UOpVec from = {0}, to = {0};
  UOp *range = p->loop->src[0];
  bool ok = at && vec_push(p->k->mem, &from, range) && vec_push(p->k->mem, &to, at);
  for (size_t i = 0; ok && second && i < p->memory.len; i++)
    ok = vec_push(p->k->mem, &from, p->memory.at[i]) && vec_push(p->k->mem, &to, p->other.at[i]);
  UOp *r = ok ? nest_copy(p->k, u, (int)from.len, from.at, to.at) : NULL;
  vec_free(p->k->mem, &from), vec_free(p->k->mem, &to);
  return r;
}

/* What is stored at a place and what is read for it, where `valid` holds. */
static UOp *gated(Kernel *k, UOp *loop, UOp *valid) {
  UOp *store = loop->src[1], *to = index_gated(k, store->src[0], valid);
  UOp *value = to ? index_gated(k, store->src[1], valid) : NULL;
  UOp *now = value ? write_new(k, to, value, store->nsrc - 2, store->src + 2) : NULL;
  return now ? loop_new(k, loop->src[0], 1, &now) : NULL;
}

static bool fills_put(Pipe *p, UOp *at, bool second, UOp *valid, UOpVec *out) {
  bool ok = true;
  for (size_t i = 0; ok && i < p->fills.len; i++) {
    UOp *fill = of_block(p, p->fills.at[i], at, second);
    if (fill && !is_const_int(valid, 1)) fill = gated(p->k, fill, valid);
    ok = fill && vec_push(p->k->mem, out, fill);
  }
  return ok;
}

static bool rest_put(Pipe *p, UOp *at, bool second, UOpVec *out) {
  UOp *rest = of_block(p, p->rest, at, second);
  bool ok = rest != NULL;
  for (int i = 0; ok && i < rest->nsrc; i++)
    ok = vec_push(p->k->mem, out, rest->src[i]);
  return ok;
}

static bool in_pairs(Pipe *p) {
  Kernel *k = p->k;
  UOp *range = p->loop->src[0], *yes = uop_const_int(k->st, DT_BOOL, 1);
  int64_t blocks = range->src[0]->arg.v.i, pairs = blocks / 2;
  UOpVec body = {0}, all = {0};
  UOp *pair = pairs > 1 ? kernel_range(k, num(k, pairs), AXIS_REDUCE, range) : num(k, 0);
  if (pair && pair->op == OPS_RANGE) pair = range_marked(k, pair, range->arg.range.of);
  UOp *first = ix(k, OPS_MUL, pair, num(k, 2)), *second = ix(k, OPS_ADD, first, num(k, 1));
  UOp *next = ix(k, OPS_ADD, first, num(k, 2));
  UOp *valid = blocks % 2 ? yes : ix(k, OPS_CMPLT, next, num(k, blocks));
  bool ends = valid && is_const_int(valid, 0); /* two blocks: none comes after them */
  bool ok = valid && fills_put(p, num(k, 0), false, yes, &all) && fills_put(p, second, true, yes, &body) &&
            rest_put(p, first, false, &body) && (ends || fills_put(p, next, false, valid, &body)) &&
            rest_put(p, second, true, &body);
  UOp *loop = ok && pair->op == OPS_RANGE ? loop_new(k, pair, (int)body.len, body.at) : NULL;
  if (loop)
    ok = vec_push(k->mem, &all, loop);
  else
    for (size_t i = 0; ok && i < body.len; i++)
      ok = pair->op != OPS_RANGE && vec_push(k->mem, &all, body.at[i]);
  if (ok && blocks % 2) ok = rest_put(p, num(k, blocks - 1), false, &all);
  UOp *with = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)all.len, all.at, ARG0) : NULL;
  vec_free(k->mem, &body), vec_free(k->mem, &all);
  return nest_edit(k, p->loop, with);
}

bool opt_double_buffer(Kernel *k, const Opt *o, const char **why) {
  Pipe p = {.k = k};
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at);
  if (o->n != 2) ok = cannot(&p, "of two copies");
  for (size_t i = 0; ok && i < at.len && !p.loop; i++)
    if (is_loop(at.at[i].u) && block_root(at.at[i].u->src[0]) == o->r) p.loop = at.at[i].u;
  vec_free(k->mem, &at);
  if (ok && (!p.loop || !is_const(p.loop->src[0]->src[0]) || p.loop->src[0]->src[0]->arg.v.i < 2))
    ok = cannot(&p, "no loop over two blocks of it or more");
  ok = ok && take_apart(&p);
  int64_t used = ok ? nest_local_bytes(k, k->sink) : 0, more = 0;
  for (size_t i = 0; ok && i < p.memory.len; i++)
    more += p.memory.at[i]->arg.param.nelem * (int64_t)dtype_size((DType)p.memory.at[i]->dtype);
  if (ok && used + more > k->opt->target->local_most) ok = cannot(&p, "local memory has no room for two");
  ok = ok && in_pairs(&p);
  *why = ok ? NULL : p.why;
  vec_free(k->mem, &p.fills), vec_free(k->mem, &p.memory), vec_free(k->mem, &p.other);
  return ok;
}
