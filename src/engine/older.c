/* older.c: tensors that a function reads and did not make. In: the handles that live when it is called for the
 * first time. Out: those that it read and that were no memory yet are computed, so that its capture has memory
 * there: state, which keeps its value whatever that was made of is assigned, and is what a later assignment
 * changes. The one key fact: an expression has no owner in the graph, so its handle must become memory before
 * the function is captured; afterwards its replays would compute the expression again, with new draws. */
#include "engine/jit.h"
#include "uop/dims.h"

enum { IS_OLDER = 1, WAS_READ };

/* The i-th list of handles: of a scope, or at last of those that are kept. */
static TgTensor *handles_at(const TgContext *ctx, size_t i) {
  return i < ctx->scopes.len ? ctx->scopes.at[i].tensors : ctx->kept;
}

bool older_begin(TgContext *ctx, Map *older) {
  bool ok = true;
  map_init(older, &ctx->mem);
  for (size_t i = 0; i <= ctx->scopes.len; i++)
    for (TgTensor *t = handles_at(ctx, i); ok && t; t = t->next)
      if (!t->memory && !t->part && !dims_symbolic(t->uop->shape)) ok = map_put(older, t->uop->id, IS_OLDER);
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

TgStatus older_end(TgContext *ctx, TgStatus s) {
  Map *older = ctx->older;
  Vec(TgTensor *) read = {0};
  uint64_t is;
  bool ok = true;
  ctx->older = NULL;
  for (size_t i = 0; !s && i <= ctx->scopes.len; i++)
    for (TgTensor *t = handles_at(ctx, i); ok && t; t = t->next)
      if (!t->memory && !t->part && map_get(older, t->uop->id, &is) && is == WAS_READ)
        ok = vec_push(&ctx->mem, &read, t);
  map_free(older);
  if (!ok) s = error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  if (!s && read.len) s = tg_realize_many(read.at, read.len);
  vec_free(&ctx->mem, &read);
  return s;
}
