/* older.c: expressions that a function reads and did not make. In: the handles that live when it is called
 * for the first time. Out: what was drawn for those that it read, computed once, for its capture to read. The
 * one key fact: a capture has new versions of all memories, so that what it computes is found nowhere and its
 * draws are drawn again; an expression of before is of old versions, and its value is found where it was
 * computed to.
 *
 * The handle stays an expression, so that views of it stay what they were. What is made of memory or of
 * constants stays in the kernels: a decoded weight, a mask. Should a handle that was read get another value,
 * because it is assigned to or replaced, or should memory that its expression was made of be assigned to, so
 * that it is one of a copy of the old version, the function is captured anew. So it is where a handle that is
 * memory becomes other memory. */
#include "engine/graph_copy.h"
#include "engine/jit.h"
#include "uop/dims.h"

/* What is known of a node while the function is called for the first time. IS_ITS_OWN (context.h): the
 * function has made a handle of it. */
enum { WAS_READ = 2, IS_INPUT = 4, WAS_KNOWN = 8 };

static bool is_input(const TgTensor *t, TgTensor *const *in, int nin) {
  for (int i = 0; i < nin; i++)
    if (in[i] == t) return true;
  return false;
}

static bool note(Map *nodes, const UOp *u, uint64_t what) {
  uint64_t is = 0;
  map_get(nodes, u->id, &is);
  return map_put(nodes, u->id, is | what);
}

bool older_begin(TgContext *ctx, Map *older, TgTensor *const *in, int nin) {
  bool ok = true;
  map_init(older, &ctx->mem);
  for (int i = 0; ok && i < nin; i++)
    ok = !in[i] || note(older, in[i]->uop, IS_INPUT);
  ctx->older = older;
  return ok;
}

/* Notes the nodes that are read to compute these. The walk ends at an input and at a value that is in memory,
 * because nothing below it is read: without that, each function of a row would read what all before it read.
 * It goes through an expression of variables, which is computed again. */
static bool read_of(TgContext *ctx, UOpVec *todo) {
  Map seen;
  map_init(&seen, &ctx->mem);
  bool ok = true;
  while (ok && todo->len) {
    UOp *u = todo->at[--todo->len];
    uint64_t is = 0;
    if (map_get(&seen, u->id, &is)) continue;
    ok = map_put(&seen, u->id, 1) && note(ctx->older, u, WAS_READ);
    map_get(ctx->older, u->id, &is);
    UOp *v = value_of_node(ctx, u);
    bool known = v && v != u && !u->symbolic;
    if (known) ok = ok && note(ctx->older, u, WAS_KNOWN);
    if ((is & IS_INPUT) || known) continue;
    for (int i = 0; ok && i < u->nsrc; i++)
      ok = vec_push(&ctx->mem, todo, u->src[i]);
  }
  map_free(&seen);
  return ok;
}

/* What was said to be computed before it goes with whatever is asked for. */
bool older_read(TgContext *ctx, TgTensor *const *t, size_t n) {
  UOpVec todo = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++)
    ok = vec_push(&ctx->mem, &todo, t[i]->uop);
  for (size_t i = 0; ok && i < ctx->pending.len; i++)
    ok = vec_push(&ctx->mem, &todo, ctx->pending.at[i]->uop);
  ok = ok && read_of(ctx, &todo);
  vec_free(&ctx->mem, &todo);
  return ok;
}

bool older_stored(TgContext *ctx, UOp *value) {
  UOpVec todo = {0};
  bool ok = !ctx->older || (vec_push(&ctx->mem, &todo, value) && read_of(ctx, &todo));
  vec_free(&ctx->mem, &todo);
  return ok;
}

/* Puts into `keep` what was drawn for these handles: the largest expressions of it that have no variable. */
static bool put_drawn(TgContext *ctx, TgTensor *const *t, size_t n, UOpVec *keep) {
  UOpVec order = {0}, roots = {0};
  Map draws;
  bool ok = true;
  uint64_t is;
  map_init(&draws, &ctx->mem);
  for (size_t i = 0; ok && i < n; i++)
    ok = vec_push(&ctx->mem, &roots, t[i]->uop);
  ok = ok && uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    const Buffer *b = u->op == OPS_BUFFER ? buffer_get(ctx, u) : NULL;
    bool draw = b && b->draws;
    for (int k = 0; ok && k < u->nsrc; k++) {
      if (!map_get(&draws, u->src[k]->id, &is)) continue;
      draw = true;
      if (u->symbolic && !u->src[k]->symbolic) ok = vec_push(&ctx->mem, keep, u->src[k]);
    }
    if (ok && draw) ok = map_put(&draws, u->id, 1);
  }
  for (size_t i = 0; ok && i < n; i++)
    if (!t[i]->uop->symbolic && map_get(&draws, t[i]->uop->id, &is))
      ok = vec_push(&ctx->mem, keep, t[i]->uop);
  map_free(&draws);
  vec_free(&ctx->mem, &order), vec_free(&ctx->mem, &roots);
  return ok;
}

/* What was drawn is kept, in memory of the function's own. What is computed of memory alone is computed
 * again: it may be a weight that its kernels decode. */
static bool values_kept(TgJit *j, TgTensor *const *read, size_t n) {
  TgContext *ctx = j->ctx;
  UOpVec keep = {0};
  bool ok = put_drawn(ctx, read, n, &keep);
  for (size_t i = 0; ok && i < n; i++) {
    read[i]->captured = true;
    ok = vec_push(&ctx->mem, &j->expressions, read[i]->uop->id);
  }
  for (size_t i = 0; ok && i < keep.len; i++) {
    TgTensor *own = tg_keep(tensor_new(ctx, keep.at[i]));
    ok = own && vec_push(&ctx->mem, &j->older, own);
    if (!ok) tg_release(own);
    ok = ok && !tg_realize(own);
  }
  vec_free(&ctx->mem, &keep);
  return ok;
}

/* What these handles are made of and was read where somebody had computed it. It lives as long as they do. */
static bool known_noted(TgJit *j, const Map *older, TgTensor *const *read, size_t n) {
  TgContext *ctx = j->ctx;
  UOpVec roots = {0}, order = {0};
  uint64_t is;
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++)
    ok = vec_push(&ctx->mem, &roots, read[i]->uop);
  ok = ok && uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (map_get(older, order.at[i]->id, &is) && (is & WAS_KNOWN))
      ok = vec_push(&ctx->mem, &j->known, order.at[i]->id);
  vec_free(&ctx->mem, &order), vec_free(&ctx->mem, &roots);
  return ok;
}

TgStatus older_end(TgJit *j, Map *older, TgTensor *const *in, int nin, TgStatus s) {
  TgContext *ctx = j->ctx;
  Vec(TgTensor *) read = {0};
  uint64_t is;
  bool ok = true;
  ctx->older = NULL;
  for (TgTensor *t = s ? NULL : ctx->expressions; ok && t; t = t->next_place)
    if (!t->part && map_get(older, t->uop->id, &is) && (is & WAS_READ) && !(is & IS_ITS_OWN) &&
        !dims_symbolic(t->uop->shape) && !is_input(t, in, nin))
      ok = vec_push(&ctx->mem, &read, t);
  ok = ok && known_noted(j, older, read.at, read.len);
  map_free(older);
  ok = ok && values_kept(j, read.at, read.len);
  vec_free(&ctx->mem, &read);
  if (!ok && !ctx->err.status) error_no_memory(&ctx->err, "jit");
  return s ? s : ctx->err.status;
}

bool older_known(const TgContext *ctx, const UOp *u, const Buffer *b) {
  const TgJit *j = ctx->capture->of;
  bool known = b->drawn;
  for (size_t i = 0; i < j->known.len && !known; i++)
    known = j->known.at[i] == u->id;
  return known;
}

void older_drawn(TgJit *j, bool drawn) {
  for (size_t i = 0; i < j->older.len; i++) {
    TgTensor *t = j->older.at[i];
    if (t->memory) t->memory->drawn = drawn;
    for (int k = 0; k < t->nparts; k++)
      if (t->part[k]->memory) t->part[k]->memory->drawn = drawn;
  }
}

void older_memories(TgJit *j) {
  for (size_t i = 0; i < j->pinned.len; i++)
    for (TgTensor *t = j->pinned.at[i]->places; t; t = t->next_place)
      t->captured = true;
}

static bool reads(const TgJit *j, const TgTensor *t) {
  bool is = false;
  for (size_t i = 0; i < j->pinned.len; i++)
    is |= t->memory == j->pinned.at[i];
  for (size_t i = 0; i < j->expressions.len && !t->memory; i++)
    is |= j->expressions.at[i] == t->uop->id;
  return is;
}

void older_changes(TgContext *ctx, const TgTensor *t, bool value) {
  for (TgJit *j = ctx->jits; j; j = j->next) {
    if (!reads(j, t)) continue;
    if (j->running || j->loaded || !value)
      j->stale = true;
    else
      tg_jit_reset(j);
  }
}
