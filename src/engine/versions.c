/* versions.c: the old versions of memories that are still needed. In: memories that are about to be stored
 * to. Out: a copy of each version that a live handle is computed from, and that is nowhere else. The key
 * fact: a handle's graph names the versions that it reads, so it never needs one that was made later. */
#include "engine/realize.h"

static bool no_memory(TgContext *ctx) {
  error_no_memory(&ctx->err, "realize");
  return false;
}

Bits bits_of(TgContext *ctx, Buffer *const *b, size_t n) {
  Bits bits = {0};
  for (size_t i = 0; i < n; i++) {
    /* The copy is included, because the question is also whether its memory can be reused. */
    const Buffer *copy = b[i]->copy ? ctx->buffers.at[b[i]->copy - 1] : NULL;
    bits.values |= b[i]->origin | (copy ? copy->origin : 0);
    bits.of |= 1ull << (b[i]->uid & 63) | bits.values;
    bits.all |= b[i]->constant || (copy && copy->constant);
  }
  return bits;
}

typedef struct Needs {
  TgContext *ctx;
  Bits bits;
  const Run *run; /* its results are computed now; NULL: there are none */
  uint8_t *seen;  /* by node; NULL: nothing is needed yet */
  size_t nseen;
  UOpVec todo;
  Vec(Buffer *) marked;
} Needs;

static bool needs_begin(Needs *w) {
  w->nseen = store_id_limit(w->ctx->store);
  w->seen = mem_alloc(&w->ctx->mem, w->nseen + 1);
  for (size_t i = 0; w->seen && w->run && i < w->run->results.len; i++) {
    const UOp *expr = w->run->results.at[i].expr;
    if (expr->id < w->nseen && !expr->symbolic) w->seen[expr->id] = 1;
  }
  return w->seen != NULL;
}

static void needs_end(Needs *w) {
  for (size_t i = 0; i < w->marked.len; i++)
    w->marked.at[i]->needed = false;
  mem_free(&w->ctx->mem, w->seen);
  vec_free(&w->ctx->mem, &w->todo), vec_free(&w->ctx->mem, &w->marked);
}

static bool need(Needs *w, UOp *u) {
  if (!u || !may_need(w->bits, u)) return true;
  if (!w->seen && !needs_begin(w)) return false;
  if (u->id < w->nseen && w->seen[u->id]) return true;
  if (u->id < w->nseen) w->seen[u->id] = 1;
  return vec_push(&w->ctx->mem, &w->todo, u);
}

/* Lists the memories in the graph of a handle, once: 64 bits say little of a replay that stores to 60. */
static void look_below(TgContext *ctx, TgTensor *t) {
  UOpVec order = {0};
  bool few = uop_toposort(ctx->store, &ctx->mem, &t->uop, 1, &order);
  t->nbelow = 0;
  for (size_t i = 0; few && i < order.len; i++) {
    const Buffer *b = order.at[i]->op == OPS_BUFFER ? buffer_get(ctx, order.at[i]) : NULL;
    bool had = !b;
    for (int k = 0; !had && k < t->nbelow; k++)
      had = t->below[k] == b->uid;
    few = had || t->nbelow < MOST_BELOW;
    if (!had && few) t->below[t->nbelow++] = b->uid;
  }
  if (!few) t->nbelow = MOST_BELOW + 1;
  vec_free(&ctx->mem, &order);
}

/* Whether t reads none of the memories that are about to be stored to, and no value that they hold. */
static bool reads_none(Needs *w, TgTensor *t) {
  if (w->bits.all || (t->uop->ranges & w->bits.values)) return false;
  if (t->nbelow < 0) look_below(w->ctx, t);
  bool none = t->nbelow <= MOST_BELOW;
  for (int i = 0; none && i < t->nbelow; i++)
    none = !w->ctx->buffers.at[t->below[i]]->changes;
  return none;
}

/* Adds what handle t is to be computed from. */
static bool need_handle(Needs *w, TgTensor *t) {
  bool ok = t->part || !may_need(w->bits, t->uop) || reads_none(w, t) || need(w, t->uop);
  for (int i = 0; ok && i < t->nparts; i++) /* parts on several devices, while the whole is computed */
    if (!t->part[i]->memory) ok = need(w, t->part[i]->uop);
  return ok;
}

static bool marked(Needs *w, Buffer *b) {
  if (!b || b->needed) return true;
  b->needed = true;
  return vec_push(&w->ctx->mem, &w->marked, b);
}

/* Marks the buffers that hold what the nodes in `todo` are to be computed from. */
static bool needs_walk(Needs *w) {
  bool ok = true;
  uint64_t failed = w->ctx->mem.failed;
  capture_asks(w->ctx, true);
  while (ok && w->todo.len) {
    UOp *u = w->todo.at[--w->todo.len];
    /* An expression of variables is computed again. */
    UOp *v = u->symbolic && !(u->mark & MARK_VIEW) ? u : value_of_node(w->ctx, u);
    /* A waiting store runs now, or is looked at with the other waiting stores. */
    if (v && v->op == OPS_AFTER) continue;
    if (v && v->op == OPS_BUFFER)
      ok = marked(w, buffer_of_value(w->ctx, v));
    else
      for (int i = 0; ok && v && i < v->nsrc; i++)
        ok = need(w, v->src[i]);
  }
  capture_asks(w->ctx, false);
  return ok && w->ctx->mem.failed == failed;
}

static bool old_version_kept(TgContext *ctx, Buffer *b) {
  Buffer *to = b->copy ? ctx->buffers.at[b->copy - 1] : NULL;
  UOp *was = memory_node(ctx, b), *node = NULL;
  if (was && buffer_of_value(ctx, view_bottom(map_get_ptr(&ctx->realized, was)))) return true;
  bool again = to && !ctx->capture && !to->needed && !to->pins && !to->places && !to->store;
  if (again) {
    to->version = (to->version + 1) & INT32_MAX;
    node = memory_node(ctx, to);
  } else if ((node = buffer_node(ctx, b->device, b->dtype, b->nelem, NULL)) != NULL)
    to = buffer_get(ctx, node);
  bool ok = was && node && !buffer_ready(ctx, b) && !buffer_ready(ctx, to);
  Device *d = device_at(ctx, b->device);
  ok = ok && !d->backend->copy(d, to->data, b->data, (size_t)b->nelem * dtype_size(b->dtype));
  if (!ok || !value_known(ctx, was, node)) return no_memory(ctx);
  to->filled = true;
  b->copy = to->uid + 1;
  if (ctx->capture) capture_copied(ctx, b, 0, to, 0);
  return true;
}

/* Called during a capture that copies the old versions of some of n memories, which the function's first
 * call did not store to. If a copy is for an older expression that the function reads, a replay would copy
 * later contents instead, so the function must be captured anew. */
static bool captures_told(TgContext *ctx, Buffer *const *stored, size_t n, const bool *copied) {
  Bits bits = bits_of(ctx, stored, n);
  bool ok = true;
  for (TgTensor *t = ctx->expressions; ok && t; t = t->next_place) {
    if (!t->captured || !may_need(bits, t->uop)) continue;
    Needs w = {.ctx = ctx, .bits = bits};
    bool reads = false;
    ok = need(&w, t->uop) && needs_walk(&w);
    for (size_t i = 0; i < n; i++)
      reads |= copied[i] && stored[i]->needed;
    needs_end(&w);
    if (ok && reads) tensor_changes(t);
  }
  return ok;
}

/* Copies those of n memories whose current version is needed later. */
static bool needed_copied(Needs *w, Buffer *const *stored, size_t n) {
  TgContext *ctx = w->ctx;
  bool *keep = mem_alloc(&ctx->mem, n * sizeof *keep), copies = false, ok = keep != NULL;
  for (size_t i = 0; ok && i < n; i++)
    keep[i] = stored[i]->needed;
  /* A memory that this run reads is not reused for a copy. */
  for (size_t i = 0; ok && w->run && i < w->run->g.buffers.len; i++)
    ok = marked(w, w->run->g.buffers.at[i].buffer);
  for (size_t i = 0; ok && i < n; i++) {
    if (keep[i]) ok = old_version_kept(ctx, stored[i]);
    copies |= keep[i];
  }
  for (size_t i = 0; i < w->marked.len; i++)
    w->marked.at[i]->needed = false;
  w->marked.len = 0;
  ok = ok && (!copies || !ctx->capture || captures_told(ctx, stored, n, keep));
  mem_free(&ctx->mem, keep);
  return ok;
}

bool old_versions_kept(TgContext *ctx, Buffer *const *stored, size_t n, const Run *r) {
  Needs w = {.ctx = ctx, .bits = bits_of(ctx, stored, n), .run = r};
  bool ok = true, any = false;
  for (size_t i = 0; i < n; i++) {
    stored[i]->changes = true;
    any |= stored[i]->filled || stored[i]->data;
    if (stored[i]->fixed && stored[i]->filled) older_overwritten(ctx, stored[i]);
  }
  for (TgTensor *t = any ? ctx->expressions : NULL; ok && t; t = t->next_place)
    ok = need_handle(&w, t);
  for (size_t i = 0; ok && any && i < ctx->waiting.len; i++) {
    Buffer *b = ctx->buffers.at[ctx->waiting.at[i]];
    if (b->store && !b->changes) ok = need(&w, b->store->src[1]);
  }
  ok = ok && needs_walk(&w) && (!w.seen || needed_copied(&w, stored, n));
  for (size_t i = 0; i < n; i++) {
    stored[i]->changes = false;
    ok = ok && memory_prepare(ctx, stored[i]);
  }
  needs_end(&w);
  return ok || no_memory(ctx);
}

TgStatus engine_before_stores(TgContext *ctx, Buffer *const *b, size_t n) {
  return old_versions_kept(ctx, b, n, NULL) ? TG_OK : ctx->err.status;
}
