/* collect.c: the garbage collection of nodes and buffers that no handle reaches. The values that were
 * computed for live nodes are kept with them. */
#include "engine/graph_copy.h"

enum { LIVE = 1, REMEMBERED = 2 }; /* of a node: a handle needs it; only a gradient may need it */

/* A live node keeps its value: the value becomes a root too. */
static bool values_kept(TgContext *ctx, const uint8_t *keep, UOpVec *roots, bool *grew) {
  for (size_t i = 0; i < ctx->realized.cap; i++) {
    const MapEntry *m = &ctx->realized.at[i];
    if (!m->used || !m->val) continue;
    UOp *k = (UOp *)(uintptr_t)m->key, *v = (UOp *)(uintptr_t)m->val;
    if (!keep[k->id] || keep[v->id]) continue;
    *grew = true;
    if (!vec_push(&ctx->mem, roots, v)) return false;
  }
  return true;
}

/* A live store that has run stands for the next version of its memory. The node of that version may be in
 * no graph yet, so it becomes a root. */
static bool versions_kept(TgContext *ctx, const uint8_t *keep, uint32_t limit, const UOpVec *live,
                          UOpVec *roots, bool *grew) {
  for (size_t i = 0; i < live->len; i++) {
    UOp *u = live->at[i], *v = u->op == OPS_AFTER ? stored_value(ctx, u) : u;
    if (!v || v == u || (v->id < limit && keep[v->id])) continue;
    *grew = true;
    if (!vec_push(&ctx->mem, roots, v)) return false;
  }
  return true;
}

static bool has_past(const UOp *u) { return u->op == OPS_BUFFER || u->op == OPS_MULTI; }

/* A live value in memory remembers how it was computed. The values in that history need no memory because
 * they can be computed again. */
static bool histories_kept(TgContext *ctx, uint8_t *keep, UOpVec *live) {
  UOpVec more = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < live->len; i++) { /* live grows during the loop */
    UOp *e = has_past(live->at[i]) ? map_get_ptr(&ctx->history, live->at[i]) : NULL;
    if (!e || keep[e->id]) continue;
    more.len = 0;
    ok = uop_toposort(ctx->store, &ctx->mem, &e, 1, &more);
    for (size_t k = 0; ok && k < more.len; k++) {
      UOp *u = more.at[k];
      if (!keep[u->id]) {
        keep[u->id] = REMEMBERED;
        ok = vec_push(&ctx->mem, live, u);
      }
    }
  }
  vec_free(&ctx->mem, &more);
  return ok;
}

static void buffers_marked(TgContext *ctx, const uint8_t *keep, const UOpVec *live) {
  for (size_t i = 0; i < ctx->buffers.len; i++)
    if (ctx->buffers.at[i]) ctx->buffers.at[i]->marked = false;
  for (size_t i = 0; i < live->len; i++) {
    UOp *u = live->at[i];
    Buffer *b = u->op == OPS_BUFFER ? buffer_get(ctx, u) : NULL;
    if (!b || (keep[u->id] == REMEMBERED && map_get_ptr(&ctx->history, u))) continue;
    b->marked = true;
    Buffer *owner = b->owner ? ctx->buffers.at[b->owner - 1] : NULL;
    if (owner) owner->marked = true;
  }
  for (size_t i = 0; i < ctx->buffers.len; i++) { /* a capture reads a view that lies in its owner's memory */
    const Buffer *b = ctx->buffers.at[i];
    Buffer *owner = b && b->pins && b->owner ? ctx->buffers.at[b->owner - 1] : NULL;
    if (owner) owner->marked = true;
  }
}

/* Frees the memories that nothing reaches. */
static void buffers_freed(TgContext *ctx) {
  for (size_t i = 0; i < ctx->buffers.len; i++) {
    Buffer *b = ctx->buffers.at[i];
    if (b && !b->marked && !b->pins) buffer_free(ctx, (int64_t)i);
  }
  for (size_t i = 0; i < ctx->buffers.len; i++) { /* forgets the numbers of copies that were freed */
    Buffer *b = ctx->buffers.at[i];
    if (b && b->copy && !ctx->buffers.at[b->copy - 1]) b->copy = 0;
  }
}

/* Collects the uids that may be used again. A node that is only remembered may name a memory that was
 * freed. Its uid stays taken, because otherwise the node would stand for the contents of another memory. */
static bool uids_freed(TgContext *ctx, const UOpVec *live) {
  uint8_t *named = mem_alloc(&ctx->mem, ctx->buffers.len + 1);
  bool ok = named && vec_reserve(&ctx->mem, &ctx->free_uids, ctx->buffers.len);
  for (size_t i = 0; ok && i < live->len; i++) {
    uint64_t uid = live->at[i]->op == OPS_BUFFER ? (uint64_t)buffer_uid(live->at[i]) : UINT64_MAX;
    if (uid < ctx->buffers.len) named[uid] = 1;
  }
  if (ok) ctx->free_uids.len = 0;
  for (size_t i = ctx->buffers.len; ok && i-- > 0;) /* descending, so that the least is taken first */
    if (!ctx->buffers.at[i] && !named[i]) ctx->free_uids.at[ctx->free_uids.len++] = (int64_t)i;
  mem_free(&ctx->mem, named);
  return ok;
}

static bool known_swept(TgContext *ctx, Map *known, const uint8_t *keep, bool values) {
  Map left;
  bool ok = true;
  map_init(&left, &ctx->mem);
  for (size_t i = 0; ok && i < known->cap; i++) {
    const MapEntry *m = &known->at[i];
    if (!m->used || !m->val || !keep[((UOp *)(uintptr_t)m->key)->id]) continue;
    UOp *v = (UOp *)(uintptr_t)m->val;
    Buffer *b = values && keep[v->id] ? buffer_get(ctx, view_bottom(v)) : NULL;
    if (!values || (b && (b->marked || b->pins))) ok = map_put(&left, m->key, m->val);
  }
  if (ok) {
    Map old = *known;
    *known = left;
    left = old;
  }
  map_free(&left);
  return ok;
}

/* Forgets values that were overwritten without a copy being kept, so that nothing is kept alive for them.
 * A value whose memory was renewed several times now points to the latest version, so that the versions in
 * between are not kept. */
static void stale_forgotten(TgContext *ctx) {
  for (size_t i = 0; i < ctx->realized.cap; i++) {
    MapEntry *m = &ctx->realized.at[i];
    if (!m->used || !m->val) continue;
    UOp *v = (UOp *)(uintptr_t)m->val;
    Buffer *b = buffer_of_value(ctx, view_bottom(v));
    UOp *now = b && v->op == OPS_BUFFER ? memory_node(ctx, b) : v;
    if (!b || now) m->val = b ? (uintptr_t)now : 0;
  }
}

static bool handle_reaches(TgContext *ctx, UOpVec *roots, const TgTensor *t) {
  bool ok = vec_push(&ctx->mem, roots, t->uop);
  for (int i = 0; ok && i < t->nparts; i++)
    ok = vec_push(&ctx->mem, roots, t->part[i]->uop);
  return ok;
}

static bool is_file(const Buffer *b) { return b->file.at; }

/* Called when the context ends. A file is visible from outside, so a store to a file must run even if no
 * handle is left, if an earlier call failed, or if the store to another file fails. Errors are not
 * reported any more. */
void engine_files_written(TgContext *ctx) {
  for (size_t i = ctx->waiting.len; i-- > 0;) {
    Buffer *b = i < ctx->waiting.len ? ctx->buffers.at[ctx->waiting.at[i]] : NULL;
    if (!b || !is_file(b)) continue;
    tg_clear_error(ctx); /* an error would keep the store from running */
    engine_stores(ctx, &b, 1);
  }
}

/* Frees what no handle, kept tensor or pending file store reaches: nodes, remembered values, waiting
 * stores and memory. Marking adds new roots, so it is repeated until nothing is added. */
static TgStatus collect(TgContext *ctx) {
  UOpVec roots = {0}, live = {0};
  bool ok = true;
  stale_forgotten(ctx);
  for (size_t s = 0; s <= ctx->scopes.len && ok; s++)
    for (TgTensor *t = s < ctx->scopes.len ? ctx->scopes.at[s].tensors : ctx->kept; t && ok; t = t->next)
      ok = handle_reaches(ctx, &roots, t);
  for (size_t i = 0; ok && i < ctx->waiting.len; i++) {
    Buffer *b = ctx->buffers.at[ctx->waiting.at[i]];
    if (is_file(b)) ok = vec_push(&ctx->mem, &roots, b->store);
  }
  uint8_t *keep = NULL;
  /* A live node keeps its value, and the buffer of that value is then live too. */
  for (bool grew = true; ok && grew;) {
    grew = false;
    live.len = 0;
    ok = uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &live);
    mem_free(&ctx->mem, keep);
    keep = ok ? mem_alloc(&ctx->mem, store_id_limit(ctx->store) + 1) : NULL;
    ok = keep != NULL;
    for (size_t i = 0; ok && i < live.len; i++)
      keep[live.at[i]->id] = LIVE;
    uint32_t limit = store_id_limit(ctx->store);
    ok = ok && values_kept(ctx, keep, &roots, &grew) && versions_kept(ctx, keep, limit, &live, &roots, &grew);
  }
  ok = ok && histories_kept(ctx, keep, &live);
  /* A store whose result nobody can see any more does not run. */
  for (size_t i = 0; ok && i < ctx->waiting.len; i++) {
    Buffer *b = ctx->buffers.at[ctx->waiting.at[i]];
    if (keep[b->store->id]) continue;
    memory_waits_no_more(ctx, b);
    i--;
  }
  if (ok) buffers_marked(ctx, keep, &live);
  ok = ok && known_swept(ctx, &ctx->realized, keep, true) && known_swept(ctx, &ctx->history, keep, false);
  ok = ok && (!ctx->origins.of_node.len || known_swept(ctx, &ctx->origins.of_node, keep, false));
  ok = ok && store_sweep(ctx->store, live.at, live.len);
  if (ok) buffers_freed(ctx);
  ok = ok && uids_freed(ctx, &live);
  mem_free(&ctx->mem, keep);
  vec_free(&ctx->mem, &roots), vec_free(&ctx->mem, &live);
  return ok ? TG_OK : error_no_memory(&ctx->err, "collect");
}

/* ---- when a collection is due */
static TgStatus swept(TgContext *ctx) {
  TgStatus s = collect(ctx);
  ctx->swept_nodes = store_count(ctx->store);
  ctx->swept_bytes = devices_bytes(ctx);
  return s;
}

TgStatus tg_collect(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  if (!ctx->dev_open) return TG_OK;
  slabs_given_back(ctx, NULL);
  return swept(ctx);
}

/* Results whose handles are gone keep their memory until a sweep, so new results are written to memory
 * that is not in a cache. A sweep looks at each node. It is worth its time if it frees SWEPT_FOR_NODE
 * bytes for each node. */
enum { SWEPT_FOR_NODE = 100, SWEPT_FROM = 256 << 10 };

static bool sweep_is_due(const TgContext *ctx) {
  uint64_t used = devices_bytes(ctx), garbage = used > ctx->swept_bytes ? used - ctx->swept_bytes : 0;
  return store_count(ctx->store) > 2 * ctx->swept_nodes + 20000 ||
         garbage > SWEPT_FROM + (uint64_t)SWEPT_FOR_NODE * store_id_limit(ctx->store);
}

TgStatus engine_scope_ended(TgContext *ctx) {
  return ctx->dev_open && sweep_is_due(ctx) ? swept(ctx) : TG_OK;
}
