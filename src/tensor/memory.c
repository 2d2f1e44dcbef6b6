/* memory.c: tensors that are memory. In: handles and what is to be stored. Out: BUFFER nodes, views of
 * them, and stores that wait. A handle whose graph is only movement over a BUFFER is a place. All places
 * of a memory see a store made through any of them, from the call that makes it on. A store waits
 * (Buffer.store) until something reads the memory or is realized. Only one store can wait, so the next
 * store first runs the one before. While a store waits, each place is AFTER(view, STORE) with its own
 * movements on top. Once the store has run, each place is the same view of the next version. */
#include "tensor/front.h"
#include "tensor/multi.h"

/* ---- buffers */
/* Gives a Buffer a uid: one that may be used again, or the next one. Returns false if out of memory. */
static bool buffer_numbered(TgContext *ctx, Buffer *b) {
  bool again = ctx->free_uids.len > 0;
  b->uid = again ? ctx->free_uids.at[ctx->free_uids.len - 1] : (int64_t)ctx->buffers.len;
  b->made = ctx->buffers_made++;
  if (!store_set_device(ctx->store, b->uid, b->device)) return false;
  if (!again) return vec_push(&ctx->mem, &ctx->buffers, b);
  ctx->free_uids.len--;
  ctx->buffers.at[b->uid] = b;
  return true;
}

UOp *memory_node(TgContext *ctx, const Buffer *b) {
  int64_t slot = b->uid | (int64_t)(b->version & INT32_MAX) << 32;
  return uop_new(ctx->store, OPS_BUFFER, b->dtype, 1, 0, NULL, (Arg){.param = {b->nelem, slot}});
}

UOp *buffer_node(TgContext *ctx, int device, DType dtype, int64_t nelem, const Ints *shape) {
  const Ints *most = shape ? dims_max(ctx->store, shape) : NULL;
  /* the memory has room for the largest sizes, so that a place has the same address whatever the sizes are */
  if (most != shape) {
    int64_t be[2 * TG_MAX_RANK];
    if (!most) return NULL;
    for (int i = 0; i < shape->n; i++) {
      be[2 * i] = 0;
      be[2 * i + 1] = shape->v[i];
    }
    UOp *whole = buffer_node(ctx, device, dtype, dim_product(ctx->store, most), most);
    if (whole) buffer_get(ctx, view_bottom(whole))->partly = true;
    return u_shrink(ctx->store, whole, be);
  }
  Buffer *b = mem_alloc(&ctx->mem, sizeof *b);
  if (!b) return NULL;
  b->dtype = dtype;
  b->nelem = nelem;
  b->device = device;
  if (!buffer_numbered(ctx, b)) {
    mem_free(&ctx->mem, b);
    return NULL;
  }
  UOp *u = memory_node(ctx, b);
  return u && shape ? u_reshape(ctx->store, u, shape->n, shape->v) : u;
}

Buffer *buffer_get(TgContext *ctx, const UOp *u) {
  uint64_t uid = (uint64_t)buffer_uid(u);
  return uid < ctx->buffers.len ? ctx->buffers.at[uid] : NULL;
}

void buffer_free(TgContext *ctx, int64_t uid) {
  Buffer *b = ctx->buffers.at[uid];
  if (!b) return;
  ctx->buffers.at[uid] = NULL;
  if (b->borrowed) {
    if (b->destroy) b->destroy(b->data, b->user);
  } else if (b->data && b->data != file_data(&b->file) && ctx->dev_open)
    ctx->calls->free(ctx, b->device, b->data, (size_t)b->nelem * dtype_size(b->dtype));
  file_unmap(ctx->os, &b->file);
  mem_free(&ctx->mem, b);
}

/* ---- views */
UOp *view_bottom(UOp *u) {
  if (!u || !(u->mark & MARK_VIEW)) return NULL;
  while (u->op != OPS_BUFFER)
    u = u->src[0];
  return u;
}

UOp *view_on(TgContext *ctx, UOp *u, const UOp *at, UOp *base) {
  UOpVec path = {0};
  bool ok = true;
  for (; ok && u != at; u = u->src[0])
    if (u->op != OPS_AFTER) ok = vec_push(&ctx->mem, &path, u);
  for (size_t i = path.len; ok && base && i-- > 0;)
    base = uop_with_src(ctx->store, path.at[i], &base);
  vec_free(&ctx->mem, &path);
  return ok ? base : NULL;
}

UOp *piece_of(UOp *u, int64_t *start) {
  *start = 0;
  for (; u->op != OPS_BUFFER; u = u->src[0]) {
    if (u->op == OPS_RESHAPE || u->op == OPS_DETACH) {
      if (!u->src[0]->is_tensor) return NULL;
      continue;
    }
    if (u->op != OPS_SHRINK || dims_symbolic(u->arg.ints) || dims_symbolic(u->src[0]->shape)) return NULL;
    const Ints *from = u->src[0]->shape, *to = u->shape;
    int64_t stride = 1, at = 0;
    bool part = false; /* an inner axis is cut, so this axis may keep only one place */
    for (int i = from->n; i-- > 0; stride *= from->v[i]) {
      if (part && to->v[i] != 1) return NULL;
      part = part || to->v[i] != from->v[i];
      at += u->arg.ints->v[2 * i] * stride;
    }
    *start += at;
  }
  return u;
}

void places_unlink(TgTensor *t) {
  t->memory = NULL;
  if (!t->place_link) return;
  *t->place_link = t->next_place;
  if (t->next_place) t->next_place->place_link = t->place_link;
  t->next_place = NULL;
  t->place_link = NULL;
}

void places_link(TgTensor *t, Buffer *b) {
  TgTensor **list = b ? &b->places : &t->ctx->expressions;
  t->memory = b;
  t->nbelow = -1;
  if (!b) t->ctx->read_below |= t->uop->ranges;
  if (!b && !t->link) return; /* a hidden handle of a part is in no list */
  t->next_place = *list;
  t->place_link = list;
  if (t->next_place) t->next_place->place_link = &t->next_place;
  *list = t;
}

void tensor_changes(TgTensor *t) {
  for (int i = 0; i < t->nparts; i++)
    tensor_changes(t->part[i]);
  if (t->captured) t->ctx->calls->captured_changes(t->ctx, t);
  t->captured = false;
}

void tensor_computed(TgTensor *t, const UOp *was) {
  if (t->captured && t->uop != was) t->ctx->calls->captured_computed(t->ctx, t, was);
}

void tensor_set(TgTensor *t, UOp *u) {
  const UOp *was = t->uop;
  places_unlink(t);
  t->uop = u;
  UOp *bottom = view_bottom(u);
  places_link(t, bottom ? buffer_get(t->ctx, bottom) : NULL);
  tensor_computed(t, was);
}

/* ---- stores */
bool is_place(const UOp *u) {
  for (; u->op != OPS_BUFFER; u = u->src[0])
    if (u->op == OPS_EXPAND) return false;
  return true;
}

/* Finds where AFTER is put in a place's chain: over the view that is stored to, so that the stored value
 * is recognised as the place's value; otherwise over the whole memory. */
static UOp *after_at(UOp *u, const UOp *view) {
  UOp *whole = u;
  for (; u != view && u->op != OPS_BUFFER; u = u->src[0])
    whole = u;
  return u == view || whole->op != OPS_RESHAPE ? u : whole;
}

/* Returns u, a place of the memory, as it is after the store to view that waits. */
static UOp *place_after(TgContext *ctx, UOp *u, const UOp *view, UOp *store) {
  UOp *at = after_at(u, view);
  UOp *after = UNEW(ctx->store, OPS_AFTER, (DType)at->dtype, 1, ARG0, at, store);
  return after ? view_on(ctx, u, at, after) : NULL;
}

/* Returns a tensor on several devices whose part in b is after a store to view, or, if store is NULL, the
 * current contents of b. NULL: out of memory. */
static UOp *whole_with(TgContext *ctx, UOp *whole, const Buffer *b, const UOp *view, UOp *store) {
  UOp *multi = whole, *src[MOST_DEVICES];
  while (multi->op != OPS_MULTI)
    multi = multi->src[0];
  for (int i = 0; i < multi->nsrc; i++) {
    UOp *s = src[i] = multi->src[i], *bottom = view_bottom(s);
    if (!bottom || buffer_get(ctx, bottom) != b) continue;
    UOp *now = store ? NULL : memory_node(ctx, b);
    src[i] = store ? place_after(ctx, s, view, store) : now ? view_on(ctx, s, bottom, now) : NULL;
  }
  UOp *with = uop_with_src(ctx->store, multi, src);
  return with ? view_on(ctx, whole, multi, with) : NULL;
}

bool whole_renewed(TgTensor *t) {
  for (int i = 0; i < t->nparts; i++) {
    if (!t->part[i]->memory) continue;
    UOp *now = whole_with(t->ctx, t->uop, t->part[i]->memory, NULL, NULL);
    if (!now) return error_no_memory(&t->ctx->err, "assign"), false;
    t->uop = now;
  }
  return true;
}

bool memory_is_trained(const Buffer *b) {
  for (const TgTensor *t = b->places; t; t = t->next_place)
    if (t->requires_grad || (t->whole && t->whole->requires_grad)) return true;
  return false;
}

/* The value that is stored to a parameter is detached: it is not a function of other parameters, so no
 * gradient passes through the step that trained it. */
bool store_to(TgTensor *t, UOp *view, UOp *value) {
  TgContext *ctx = t->ctx;
  if (value && !ctx->calls->value_stored(ctx, value)) return error_no_memory(&ctx->err, "assign"), false;
  if (t->part) return shard_store(t, view, value);
  if (value && has_multi(value) && !(value = multi_lowered(ctx, value))) return false;
  Buffer *b = t->memory;
  if (value && memory_is_trained(b)) value = uop_alu1(ctx->store, OPS_DETACH, value);
  UOp *store = view && value ? UNEW(ctx->store, OPS_STORE, (DType)value->dtype, 1, ARG0, view, value) : NULL;
  bool ok = store && vec_reserve(&ctx->mem, &ctx->waiting, ctx->waiting.len + 1);
  for (TgTensor *h = b->places; ok && h; h = h->next_place) {
    ok = (h->then = place_after(ctx, h->uop, view, store)) != NULL;
    if (ok && h->whole) ok = (h->whole->then = whole_with(ctx, h->whole->uop, b, view, store)) != NULL;
  }
  if (!ok) {
    error_no_memory(&ctx->err, "assign");
    return false;
  }
  for (TgTensor *h = b->places; h; h = h->next_place) {
    h->uop = h->then;
    if (h->whole) h->whole->uop = h->whole->then;
  }
  b->store = store;
  b->waits_at = ctx->waiting.len;
  ctx->waiting.at[ctx->waiting.len++] = b->uid;
  return true;
}

bool memory_flush(TgContext *ctx, Buffer *b) { return !b->store || !ctx->calls->stores(ctx, &b, 1); }

UOp *memory_next(TgContext *ctx, Buffer *b) {
  b->version = (b->version + 1) & INT32_MAX;
  UOp *next = memory_node(ctx, b);
  b->version = (b->version - 1) & INT32_MAX;
  return next;
}

bool memory_prepare(TgContext *ctx, Buffer *b) {
  UOp *next = memory_next(ctx, b);
  bool ok = next != NULL;
  for (TgTensor *h = b->places; ok && h; h = h->next_place)
    ok = (h->then = view_on(ctx, h->uop, view_bottom(h->uop), next)) != NULL;
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
  return ok;
}

void memory_waits_no_more(TgContext *ctx, Buffer *b) {
  if (!b->store) return;
  int64_t last = ctx->waiting.at[--ctx->waiting.len];
  ctx->waiting.at[b->waits_at] = last;
  ctx->buffers.at[last]->waits_at = b->waits_at;
  b->store = NULL;
}

void memory_written(TgContext *ctx, Buffer *b) {
  memory_waits_no_more(ctx, b);
  b->filled = true;
  b->origin = 0;
  b->constant = false;
  b->version = (b->version + 1) & INT32_MAX;
  for (TgTensor *h = b->places; h; h = h->next_place) {
    h->uop = h->then;
    /* If there is no memory for the shorter node, the AFTER has the same value. */
    UOp *whole = h->whole ? whole_with(ctx, h->whole->uop, b, NULL, NULL) : NULL;
    if (whole) h->whole->uop = whole;
  }
}

bool value_known(TgContext *ctx, UOp *u, UOp *place) {
  Buffer *to = buffer_get(ctx, view_bottom(place)), *from = u->op == OPS_BUFFER ? buffer_get(ctx, u) : NULL;
  if (!map_put_ptr(&ctx->realized, u, place)) return false;
  to->origin |= u->ranges | (from ? from->origin : 0);
  if (!from) ctx->read_below |= u->ranges;
  to->constant |= !u->ranges || (from && from->constant);
  return true;
}

/* Passes on how a value in memory was computed, for gradients, to the node that it has from now on. */
static bool history_goes_on(TgContext *ctx, const UOp *was, UOp *now) {
  UOp *e = map_get_ptr(&ctx->history, was);
  return !e || now == was || map_put_ptr(&ctx->history, now, e);
}

static bool memory_renewed(TgContext *ctx, Buffer *b) {
  UOp *was = memory_node(ctx, b);
  Buffer kept = *b;
  bool ok = was && memory_prepare(ctx, b);
  for (TgTensor *h = b->places; h; h = h->next_place)
    if (h->whole) h->whole->then = h->whole->uop;
  if (ok) memory_written(ctx, b);
  b->filled = kept.filled;
  b->origin = kept.origin;
  b->constant = kept.constant;
  b->renews = false;
  UOp *now = ok ? memory_node(ctx, b) : NULL;
  ok = now && value_known(ctx, was, now) && history_goes_on(ctx, was, now);
  for (TgTensor *h = b->places; ok && h; h = h->next_place)
    ok = !h->whole || history_goes_on(ctx, h->whole->then, h->whole->uop);
  return ok;
}

/* Memories from which nothing was computed since they were last renewed stay as they are. So each of
 * several captured functions in a row renews only the memories of the one before it. */
bool memories_renewed(TgContext *ctx) {
  for (size_t i = 0; i < ctx->buffers.len; i++) {
    Buffer *b = ctx->buffers.at[i];
    if (!b) continue;
    b->renews |= ctx->read_below >> (b->uid & 63) & 1;
    if (!b->renews || !b->places || b->store || memory_renewed(ctx, b)) continue;
    error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
    return false;
  }
  ctx->read_below = 0;
  return true;
}

bool place_ready(const char *op, TgTensor *t, bool keep_value) {
  TgContext *ctx = t->ctx;
  Buffer *b = t->memory;
  if (on_several(t->uop)) return shard_ready(op, t, keep_value);
  if (b) {
    TG_REQUIRE_OR(ctx, is_place(t->uop), false, TG_ERR_STATE,
                  "%s: several elements of the tensor, shape %s, are one place in memory (it was expanded); "
                  "assign to a tg_clone",
                  op, SHAPE_OF(t));
    TG_REQUIRE_OR(ctx, !b->read_only, false, TG_ERR_STATE,
                  "%s: the tensor is a file opened for reading; say .writable", op);
    return memory_flush(ctx, b);
  }
  UOp *value = t->uop, *n = buffer_node(ctx, tensor_device(t), dt(t), nelem(t), value->shape);
  TG_REQUIRE_OR(ctx, n, false, TG_ERR_NOMEM, "%s: out of memory", op);
  tensor_changes(t);
  tensor_set(t, n);
  return !keep_value || (store_to(t, n, value) && memory_flush(ctx, t->memory));
}
