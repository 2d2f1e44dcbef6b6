/* older.c: expressions that a function reads and did not make. In: the handles that exist when the
 * function is called for the first time. Out: the drawn values among what it read, computed once so that
 * its capture can read them; and a notice when the capture is not right any more. The key fact: before a
 * capture, every memory gets a new version. So nothing that the capture computes from current memory is
 * known as already computed, and an expression from before the call is recognised by the older versions
 * that it is made of.
 *
 * Such an expression has a fixed value, but memory does not. The capture computes the expression from the
 * memories that hold its operands, or reads it where it was computed. This is right until one of these
 * memories is stored to; then the function is captured anew. The same happens if a handle that was read
 * gets another value, because it is assigned to or replaced, and if a handle that is memory becomes other
 * memory. What is computed from memory or constants stays in the kernels: a decoded weight, a mask. */
#include "engine/graph_copy.h"
#include "engine/jit.h"
#include "uop/dims.h"

/* What is known of a node while the function is called for the first time. IS_OLDER: it is the node of a
 * handle from before the call. WAS_READ: something that the function makes is computed from it.
 * WAS_READ_BELOW: an older expression that was read is computed from it. */
enum { IS_OLDER = 1, WAS_READ = 2, WAS_READ_BELOW = 4 };

static bool note(Map *nodes, const UOp *u, uint64_t what) {
  uint64_t is = 0;
  map_get(nodes, u->id, &is);
  return map_put(nodes, u->id, is | what);
}

bool older_begin(TgContext *ctx, Map *older) {
  bool ok = true;
  map_init(older, &ctx->mem);
  for (TgTensor *t = ctx->expressions; ok && t; t = t->next_place)
    ok = t->part || note(older, t->uop, IS_OLDER);
  ctx->older = older;
  return ok;
}

/* Notes the nodes that the nodes in `todo` are computed from, down to memory. The walk does not stop at a
 * node that was computed before, because the function computes it anew. It continues below an older
 * expression, where there may be more of them: the function may have built the upper expression again from
 * a lower one. */
static bool read_of(TgContext *ctx, UOpVec *todo, uint64_t as) {
  UOpVec older = {0};
  bool ok = true;
  while (ok && todo->len) {
    UOp *u = todo->at[--todo->len];
    uint64_t is = 0;
    map_get(ctx->older, u->id, &is);
    if (is & as) continue;
    ok = note(ctx->older, u, as);
    bool has_run = u->op == OPS_AFTER && u->is_tensor && stored_value(ctx, u) != u;
    for (int i = 0; ok && i < u->nsrc && !has_run; i++)
      ok = vec_push(&ctx->mem, is & IS_OLDER && as == WAS_READ ? &older : todo, u->src[i]);
  }
  if (ok && older.len) ok = read_of(ctx, &older, WAS_READ_BELOW);
  vec_free(&ctx->mem, &older), vec_free(&ctx->mem, todo);
  return ok;
}

/* Pending values are computed together with whatever is asked for, so they are read too. */
bool older_read(TgContext *ctx, TgTensor *const *t, size_t n) {
  UOpVec todo = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++)
    ok = vec_push(&ctx->mem, &todo, t[i]->uop);
  for (size_t i = 0; ok && i < ctx->pending.len; i++)
    ok = vec_push(&ctx->mem, &todo, ctx->pending.at[i]->uop);
  if (ok) return read_of(ctx, &todo, WAS_READ);
  vec_free(&ctx->mem, &todo);
  return false;
}

bool older_stored(TgContext *ctx, UOp *value) {
  UOpVec todo = {0};
  bool ok = !ctx->older || vec_push(&ctx->mem, &todo, value);
  return ok && read_of(ctx, &todo, WAS_READ);
}

/* Puts into `keep` the largest expressions below these handles that depend on random draws and on no
 * variable. */
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

/* Keeps values that were drawn, in memory of the function's own. What is computed from memory alone is
 * computed again, because it may be a weight that the kernels decode. */
static bool values_kept(TgJit *j, TgTensor *const *read, size_t n) {
  TgContext *ctx = j->ctx;
  UOpVec keep = {0};
  bool ok = put_drawn(ctx, read, n, &keep);
  for (size_t i = 0; ok && i < keep.len; i++) {
    TgTensor *own = tg_keep(tensor_new(ctx, keep.at[i]));
    ok = own && vec_push(&ctx->mem, &j->older, own);
    if (!ok) tg_release(own);
    ok = ok && !tg_realize(own);
  }
  vec_free(&ctx->mem, &keep);
  return ok;
}

TgStatus older_end(TgJit *j, Map *older, TgStatus s) {
  TgContext *ctx = j->ctx;
  Vec(TgTensor *) read = {0};
  uint64_t is;
  bool ok = true;
  ctx->older = NULL;
  for (TgTensor *t = s ? NULL : ctx->expressions; ok && t; t = t->next_place) {
    if (t->part || !map_get(older, t->uop->id, &is) || !(is & (WAS_READ | WAS_READ_BELOW))) continue;
    if ((is & IS_OLDER) && (is & WAS_READ)) ok = vec_push(&ctx->mem, &read, t);
    t->captured = true;
    ok = ok && vec_push(&ctx->mem, &j->expressions, ((OlderNode){t->uop->id, !(is & IS_OLDER)}));
  }
  map_free(older);
  ok = ok && values_kept(j, read.at, read.len);
  vec_free(&ctx->mem, &read);
  if (!ok && !ctx->err.status) error_no_memory(&ctx->err, "jit");
  return s ? s : ctx->err.status;
}

/* ---- the memories that older expressions are read from */
static bool stays(TgJit *j, Buffer *b) {
  if (b->fixed && buffers_have(j->fixed.at, j->fixed.len, b)) return true;
  if (!vec_push(&j->ctx->mem, &j->fixed, b)) return false;
  b->fixed++, b->pins++;
  return true;
}

void older_read_from(TgContext *ctx, Buffer *b) {
  if (b->made < ctx->capture_first) ctx->capture->failed |= !stays(ctx->capture->of, b);
}

void older_forgotten(TgJit *j) {
  for (size_t i = 0; i < j->fixed.len; i++)
    j->fixed.at[i]->fixed--, j->fixed.at[i]->pins--;
  vec_free(&j->ctx->mem, &j->fixed);
}

static void begins_anew(TgJit *j) {
  if (j->running || j->loaded)
    j->stale = true;
  else
    tg_jit_reset(j);
}

void older_overwritten(TgContext *ctx, const Buffer *b) {
  for (TgJit *j = ctx->jits; j; j = j->next)
    if (buffers_have(j->fixed.at, j->fixed.len, b)) begins_anew(j);
}

/* ---- the handles of older expressions */
void older_memories(TgJit *j) {
  for (size_t i = 0; i < j->pinned.len; i++)
    for (TgTensor *t = j->pinned.at[i]->places; t; t = t->next_place)
      t->captured = true;
}

/* Whether the function read this expression. A handle that the function made in its first call does not
 * count while it runs, because the function may give the handle another value. */
static bool has(const TgJit *j, const UOp *expression) {
  bool is = false;
  for (size_t i = 0; i < j->expressions.len; i++)
    is |= j->expressions.at[i].id == expression->id && !(j->expressions.at[i].made && j->running);
  return is;
}

static bool reads(const TgJit *j, const Buffer *b) {
  return buffers_have(j->pinned.at, j->pinned.len, b) || buffers_have(j->fixed.at, j->fixed.len, b);
}

void older_changes(TgContext *ctx, const TgTensor *t) {
  for (TgJit *j = ctx->jits; j; j = j->next)
    if (t->memory ? reads(j, t->memory) : has(j, t->uop)) begins_anew(j);
}

/* Adds the memories that t has become to those that the capture reads. Returns false if out of memory. A
 * function that was not captured yet does not need this, because its capture will have them as state. */
static bool is_memory_now(TgJit *j, const TgTensor *t) {
  bool ok = !t->memory || stays(j, t->memory);
  for (int i = 0; i < t->nparts; i++)
    ok = is_memory_now(j, t->part[i]) && ok;
  return ok;
}

void older_computed(TgContext *ctx, const TgTensor *t, const UOp *was) {
  for (TgJit *j = ctx->jits; j; j = j->next)
    if (has(j, was) && (j->running || (j->runs == 2 && !is_memory_now(j, t)))) j->stale = true;
}
