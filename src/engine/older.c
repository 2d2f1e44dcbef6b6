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
#include "engine/jit.h"
#include "uop/dims.h"

enum { IS_OLDER = 1, WAS_READ };

/* The i-th list of handles: of a scope, or at last of those that are kept. */
static TgTensor *handles_at(const TgContext *ctx, size_t i) {
  return i < ctx->scopes.len ? ctx->scopes.at[i].tensors : ctx->kept;
}

static bool is_input(const TgTensor *t, TgTensor *const *in, int nin) {
  for (int i = 0; i < nin; i++)
    if (in[i] == t) return true;
  return false;
}

bool older_begin(TgContext *ctx, Map *older, TgTensor *const *in, int nin) {
  bool ok = true;
  map_init(older, &ctx->mem);
  for (size_t i = 0; i <= ctx->scopes.len; i++)
    for (TgTensor *t = handles_at(ctx, i); ok && t; t = t->next)
      if (!t->memory && !t->part && !dims_symbolic(t->uop->shape) && !is_input(t, in, nin))
        ok = map_put(older, t->uop->id, IS_OLDER);
  ctx->older = older;
  return ok;
}

static bool read_of(TgContext *ctx, UOp *const *root, size_t n) {
  UOpVec order = {0};
  uint64_t is;
  bool ok = uop_toposort(ctx->store, &ctx->mem, root, n, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (map_get(ctx->older, order.at[i]->id, &is) && is == IS_OLDER)
      ok = map_put(ctx->older, order.at[i]->id, WAS_READ);
  vec_free(&ctx->mem, &order);
  return ok;
}

bool older_read(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores) {
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++)
    ok = read_of(ctx, &t[i]->uop, 1);
  for (size_t i = 0; ok && i < nstores; i++)
    if (stores[i]->store) ok = read_of(ctx, &stores[i]->store, 1);
  return ok;
}

/* Whether a random number is drawn for it. */
static bool is_drawn(TgContext *ctx, UOp *u, bool *drawn) {
  UOpVec order = {0};
  bool ok = uop_toposort(ctx->store, &ctx->mem, &u, 1, &order);
  for (size_t i = 0; ok && i < order.len && !*drawn; i++) {
    const Buffer *b = order.at[i]->op == OPS_BUFFER ? buffer_get(ctx, order.at[i]) : NULL;
    *drawn = b && b->draws;
  }
  vec_free(&ctx->mem, &order);
  return ok;
}

/* What was drawn is kept, in memory of the function's own. What is computed of memory alone is computed
 * again: it may be a weight that its kernels decode. */
static bool value_kept(TgJit *j, TgTensor *t) {
  TgContext *ctx = j->ctx;
  bool drawn = false;
  if (!is_drawn(ctx, t->uop, &drawn)) return false;
  if (!drawn) return true;
  TgTensor *own = tg_keep(tensor_new(ctx, t->uop));
  if (own && vec_push(&ctx->mem, &j->older, own)) return !tg_realize(own);
  tg_release(own);
  return false;
}

TgStatus older_end(TgJit *j, Map *older, TgTensor *const *in, int nin, TgStatus s) {
  TgContext *ctx = j->ctx;
  Vec(TgTensor *) read = {0};
  uint64_t is;
  bool ok = true;
  ctx->older = NULL;
  for (size_t i = 0; !s && i <= ctx->scopes.len; i++)
    for (TgTensor *t = handles_at(ctx, i); ok && t; t = t->next)
      if (!t->memory && !t->part && !is_input(t, in, nin) && map_get(older, t->uop->id, &is) &&
          is == WAS_READ)
        ok = vec_push(&ctx->mem, &read, t);
  map_free(older);
  for (size_t i = 0; ok && i < read.len; i++) {
    read.at[i]->captured = true;
    ok = vec_push(&ctx->mem, &j->expressions, read.at[i]->uop->id) && value_kept(j, read.at[i]);
  }
  vec_free(&ctx->mem, &read);
  if (!ok && !ctx->err.status) error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  return s ? s : ctx->err.status;
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
