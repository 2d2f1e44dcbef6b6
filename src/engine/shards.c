/* shards.c: computes the values of tensors on several devices. In: handles. Out: each part in memory of
 * its device, and the stores that wait on parts done. Copies between devices cut the graph into levels:
 * level 0 needs nothing of another device, and each copy begins the next level. All of a level is computed
 * at once, each device its own part. What later levels read of it stays in memory, so that nothing
 * expensive is computed twice. */
#include "engine/graph_copy.h"
#include "tensor/front.h"
#include "tensor/multi.h"
#include <stdlib.h>
#include <string.h>

/* A value of fewer operations than CHEAP is computed again in the next level. */
enum { CHEAP = 4, DEAR = 64, MOST_WEIGHT = 255 };

typedef struct Leveled {
  UOp *u;
  int level;
} Leveled;

typedef struct WalkAt {
  UOp *u;
  int next;
} WalkAt;

typedef struct Levels {
  TgContext *ctx;
  Map seen; /* node -> level << 8 | weight */
  Map kept; /* the nodes in `roots` */
  Vec(WalkAt) stack;
  Vec(Leveled) roots, copies; /* values to keep in memory; copies to make then */
  int most;
} Levels;

/* ---- levels */
static bool crosses(const UOp *u) { return u->op == OPS_COPY && u->src[0]->devices & ~(1ull << u->arg.i); }

static bool is_exchanged(const UOp *u) { return u->op == OPS_BUFFER || u->op == OPS_AFTER || crosses(u); }

/* Returns source i of u as it is read. NULL: it is memory, or a number. */
static UOp *read_by(Levels *l, const UOp *u, int i) {
  UOp *s = u->src[i];
  if (i == 0 && (u->op == OPS_STORE || u->op == OPS_AFTER)) return NULL;
  if (s->op == OPS_STORE) return s;
  if (!s->is_tensor || !s->devices) return NULL;
  return value_of_node(l->ctx, s);
}

/* Returns what u moves, or u itself. */
static UOp *moved_by(Levels *l, UOp *u) {
  while (u && (op_flags((Ops)u->op) & OPF_MOV || u->op == OPS_DETACH || (u->op == OPS_COPY && !crosses(u))))
    u = u->src[0]->is_tensor && u->src[0]->devices ? value_of_node(l->ctx, u->src[0]) : NULL;
  return u;
}

static uint64_t known(const Levels *l, const UOp *u) {
  uint64_t v = 0;
  if (u) map_get(&l->seen, (uint64_t)(uintptr_t)u, &v);
  return v;
}

static int level_of(const Levels *l, const UOp *u) { return (int)(known(l, u) >> 8); }

static int weight_of(const Levels *l, const UOp *u) { return (int)(known(l, u) & MOST_WEIGHT); }

static int own_weight(const UOp *u) {
  if (op_is_alu((Ops)u->op)) return 1;
  bool dear = u->op == OPS_REDUCE_AXIS || u->op == OPS_SCAN_AXIS || u->op == OPS_GATHER ||
              u->op == OPS_SCATTER || u->op == OPS_CONTIGUOUS;
  return dear ? DEAR : 0;
}

/* Keeps in memory what u reads of an earlier level, unless it is cheap. What a copy reads is always kept,
 * because the copy is made from memory. */
static bool reads_kept(Levels *l, UOp *u) {
  for (int i = 0; i < u->nsrc; i++) {
    UOp *s = read_by(l, u, i), *b = s && s->op != OPS_STORE ? moved_by(l, s) : NULL;
    if (!b || is_exchanged(b) || level_of(l, b) >= level_of(l, u)) continue;
    if (!crosses(u) && weight_of(l, b) < CHEAP) continue;
    if (map_get_ptr(&l->kept, b)) continue;
    if (!map_put_ptr(&l->kept, b, b) || !vec_push(&l->ctx->mem, &l->roots, ((Leveled){b, level_of(l, b)})))
      return false;
  }
  return true;
}

static bool leveled(Levels *l, UOp *u) {
  int level = 0, weight = own_weight(u);
  for (int i = 0; i < u->nsrc; i++) {
    UOp *s = read_by(l, u, i);
    level = TG_MAX(level, level_of(l, s));
    weight += weight_of(l, s);
  }
  if (crosses(u)) {
    level++;
    weight = 0;
    if (!vec_push(&l->ctx->mem, &l->copies, ((Leveled){u, level}))) return false;
  }
  l->most = TG_MAX(l->most, level);
  uint64_t value = (uint64_t)level << 8 | (uint64_t)TG_MIN(weight, MOST_WEIGHT);
  return map_put(&l->seen, (uint64_t)(uintptr_t)u, value) && reads_kept(l, u);
}

static bool levels_add(Levels *l, UOp *root) {
  TgMem *mem = &l->ctx->mem;
  uint64_t v;
  root = root ? value_of_node(l->ctx, root) : NULL;
  bool ok = !root || vec_push(mem, &l->stack, ((WalkAt){root, 0}));
  while (ok && l->stack.len) {
    WalkAt *w = &l->stack.at[l->stack.len - 1];
    UOp *u = w->u, *s = NULL;
    if (w->next == 0 && map_get(&l->seen, (uint64_t)(uintptr_t)u, &v)) {
      l->stack.len--;
      continue;
    }
    while (w->next < u->nsrc && !s)
      s = read_by(l, u, w->next++);
    if (s) {
      if (!map_get(&l->seen, (uint64_t)(uintptr_t)s, &v)) ok = vec_push(mem, &l->stack, ((WalkAt){s, 0}));
      continue;
    }
    l->stack.len--;
    if (!map_get(&l->seen, (uint64_t)(uintptr_t)u, &v)) ok = leveled(l, u);
  }
  return ok;
}

static void levels_free(Levels *l) {
  TgMem *mem = &l->ctx->mem;
  map_free(&l->seen), map_free(&l->kept);
  vec_free(mem, &l->stack), vec_free(mem, &l->roots), vec_free(mem, &l->copies);
}

/* handles that nobody else has */
typedef Vec(TgTensor *) Handles;

static bool hide(TgContext *ctx, Handles *to, UOp *u) {
  TgTensor *t = shard_hidden(ctx, u);
  if (t && vec_push(&ctx->mem, to, t)) return true;
  tg_release(t);
  error_no_memory(&ctx->err, "realize");
  return false;
}

static void handles_free(TgContext *ctx, Handles *h) {
  for (size_t i = 0; i < h->len; i++)
    tg_release(h->at[i]);
  vec_free(&ctx->mem, h);
}

/* Makes all copies of a level at once. A copy that reads what another copy writes waits for it. */
static TgStatus copies_of_level(Levels *l, int level) {
  TgContext *ctx = l->ctx;
  TgStatus s = TG_OK;
  copies_gathered(ctx, true);
  for (size_t i = 0; !s && i < l->copies.len; i++)
    if (l->copies.at[i].level == level && !realize_copy(ctx, l->copies.at[i].u)) s = ctx->err.status;
  copies_gathered(ctx, false);
  if (s) copies_given_up(ctx);
  return s ? s : copies_awaited(ctx);
}

static TgStatus level_made(Levels *l, int level) {
  TgContext *ctx = l->ctx;
  Handles now = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < l->roots.len; i++)
    if (l->roots.at[i].level == level) ok = hide(ctx, &now, l->roots.at[i].u);
  TgStatus s = !ok ? ctx->err.status : now.len ? realize_alone(ctx, now.at, now.len) : TG_OK;
  handles_free(ctx, &now);
  return s ? s : copies_of_level(l, level + 1);
}

/* Makes all levels before the last. */
static TgStatus levels_made(Levels *l) {
  TgStatus s = TG_OK;
  for (int level = 0; !s && level < l->most; level++)
    s = level_made(l, level);
  return s;
}

/* ---- the tensors that are asked for */
typedef struct Many {
  TgContext *ctx;
  Handles values, places;  /* tensors of one device that are computed; those that a store waits on */
  Handles wholes, singles; /* tensors on several devices and on one, whose values these become */
  Handles made;            /* for each of singles, a handle of the same value without a MULTI below */
} Many;

static bool add(Many *m, TgTensor *t) {
  TgContext *ctx = m->ctx;
  bool whole = on_several(t->uop), place = t->part != NULL;
  UOp *u = whole && place ? NULL : multi_lowered(ctx, t->uop);
  if (!place && !u) return false;
  if (whole && !place) {
    if (!shard_parts(t, u, false) || !vec_push(&ctx->mem, &m->wholes, t)) return false;
  } else if (!whole && u != t->uop)
    return vec_push(&ctx->mem, &m->singles, t) && hide(ctx, &m->made, u) &&
           vec_push(&ctx->mem, &m->values, m->made.at[m->made.len - 1]);
  else if (!whole)
    return vec_push(&ctx->mem, t->memory && t->memory->store ? &m->places : &m->values, t);
  for (int i = 0; i < t->nparts; i++) {
    TgTensor *p = t->part[i];
    bool waits = p->memory && p->memory->store;
    if (!vec_push(&ctx->mem, waits ? &m->places : &m->values, p)) return false;
  }
  return true;
}

/* Adds pending values on several devices, which are computed with the next store. */
static bool add_pending(Many *m) {
  TgContext *ctx = m->ctx;
  bool ok = true;
  size_t left = 0;
  for (size_t i = 0; i < ctx->pending.len; i++) {
    TgTensor *t = ctx->pending.at[i];
    bool now = ok && has_multi(t->uop) && !t->part;
    if (now) ok = add(m, t);
    if (now) t->pending = false;
    if (!now) ctx->pending.at[left++] = t;
  }
  ctx->pending.len = left;
  return ok;
}

/* Keeps how a value in memory was computed, which gradients need for the whole and not for each part. If
 * the past of a part was forgotten, that of the whole is too. */
static bool past_kept(TgContext *ctx, UOp *memory, UOp *expr) {
  bool known = dtype_is_float((DType)expr->dtype);
  for (int i = 0; i < (is_multi(memory) ? memory->nsrc : 0); i++) {
    UOp *bottom = view_bottom(memory->src[i]);
    known = known && !buffer_get(ctx, bottom)->forgotten;
    map_drop(&ctx->history, (uint64_t)(uintptr_t)bottom);
  }
  return !known || map_put_ptr(&ctx->history, memory, expr);
}

static bool whole_made(Many *m, TgTensor *t) {
  TgContext *ctx = m->ctx;
  UOp *src[MOST_DEVICES], *was = multi_lowered(ctx, t->uop), *now = NULL;
  bool ok = was && is_multi(was), memory = true;
  for (int i = 0; ok && i < t->nparts; i++) {
    src[i] = t->part[i]->uop;
    memory = memory && t->part[i]->memory;
  }
  if (ok && !memory) { /* an expression of variables is computed again when it is asked for */
    shard_unlink(t);
    return true;
  }
  ok = ok && (now = uop_with_src(ctx->store, was, src)) != NULL && past_kept(ctx, now, t->uop);
  for (int i = 0; ok && i < t->nparts; i++)
    t->part[i]->whole = t;
  if (ok) {
    const UOp *expr = t->uop;
    t->uop = now;
    tensor_computed(t, expr);
  }
  return ok;
}

static bool single_made(Many *m, TgTensor *t, TgTensor *made) {
  UOp *expr = t->uop, *bottom = view_bottom(made->uop);
  if (!made->memory || !bottom) return true;
  tensor_set(t, made->uop);
  return past_kept(m->ctx, bottom, expr);
}

static bool values_made(Many *m) {
  bool ok = true;
  for (size_t i = 0; i < m->wholes.len; i++)
    if (m->wholes.at[i]->part) ok = whole_made(m, m->wholes.at[i]) && ok;
  for (size_t i = 0; ok && i < m->singles.len; i++)
    ok = single_made(m, m->singles.at[i], m->made.at[i]);
  return ok;
}

static TgStatus run(Many *m, Buffer *const *stores, size_t nstores) {
  TgContext *ctx = m->ctx;
  Levels l = {.ctx = ctx};
  map_init(&l.seen, &ctx->mem), map_init(&l.kept, &ctx->mem);
  bool ok = true;
  for (size_t i = 0; ok && i < m->values.len; i++)
    ok = levels_add(&l, m->values.at[i]->uop);
  for (size_t i = 0; ok && i < m->places.len; i++)
    ok = levels_add(&l, m->places.at[i]->uop);
  for (size_t i = 0; ok && i < nstores; i++)
    ok = !stores[i]->store || levels_add(&l, stores[i]->store);
  TgStatus s = ok ? levels_made(&l) : error_no_memory(&ctx->err, "realize");
  levels_free(&l);
  if (!s && m->values.len) s = realize_plain(ctx, m->values.at, m->values.len, NULL, 0);
  if (!s && !values_made(m)) s = error_no_memory(&ctx->err, "realize");
  if (!s && (m->places.len || nstores)) s = realize_plain(ctx, m->places.at, m->places.len, stores, nstores);
  return s;
}

bool shards_asked(TgContext *ctx, TgTensor *const *t, size_t n, size_t nstores) {
  bool stores = nstores > 0;
  for (size_t i = 0; i < n; i++) {
    if (t[i]->part || has_multi(t[i]->uop)) return true;
    stores = stores || (t[i]->memory && t[i]->memory->store);
  }
  if (stores && ctx->devices.len > 1) /* a store to a part, whose value may come from other devices */
    for (size_t i = 0; i < ctx->waiting.len; i++)
      for (const TgTensor *h = ctx->buffers.at[ctx->waiting.at[i]]->places; h; h = h->next_place)
        if (h->whole) return true;
  return false;
}

TgStatus shards_realize(TgContext *ctx, TgTensor *const *t, size_t n, Buffer *const *stores, size_t nstores) {
  Many m = {.ctx = ctx};
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++)
    ok = add(&m, t[i]);
  if (ok && (m.places.len || nstores)) ok = add_pending(&m);
  TgStatus s = ok                ? run(&m, stores, nstores)
               : ctx->err.status ? ctx->err.status
                                 : error_no_memory(&ctx->err, "realize");
  for (size_t i = 0; s && i < m.wholes.len; i++) /* turn the tensors back into expressions */
    if (m.wholes.at[i]->part && !is_multi(m.wholes.at[i]->uop)) shard_unlink(m.wholes.at[i]);
  handles_free(ctx, &m.made);
  vec_free(&ctx->mem, &m.values), vec_free(&ctx->mem, &m.places);
  vec_free(&ctx->mem, &m.wholes), vec_free(&ctx->mem, &m.singles);
  return s;
}

/* Shows the launches for each part, as for a tensor of one device. What copies between the parts read is
 * computed, so that it can be copied. */
TgStatus shards_watched(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only) {
  Handles parts = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    UOp *u = multi_lowered(ctx, t[i]->uop);
    ok = u != NULL;
    for (int k = 0; ok && k < (is_multi(u) ? u->nsrc : 1); k++)
      ok = hide(ctx, &parts, is_multi(u) ? u->src[k] : u);
  }
  TgStatus s = ok ? realize_watched(ctx, parts.at, parts.len, only) : ctx->err.status;
  handles_free(ctx, &parts);
  return s;
}

/* ---- reading */
/* Copies part i, which is row-major in `from`, to its place in the whole. */
static void part_placed(const Layout *at, const Ints *shape, size_t size, int i, const char *from, char *to) {
  int64_t outer = 1, inner = (int64_t)size, n = at->bound[i + 1] - at->bound[i];
  for (int k = 0; k < shape->n; k++) {
    if (k < at->axis) outer *= shape->v[k];
    if (k > at->axis) inner *= shape->v[k];
  }
  for (int64_t o = 0; o < outer; o++)
    memcpy(to + (o * shape->v[at->axis] + at->bound[i]) * inner, from + o * n * inner, (size_t)(n * inner));
}

/* Returns the part to read if each device has the whole value. A rank that reads alone reads its own part
 * if it has one. */
static int whole_read(const TgContext *ctx, const Layout *at) {
  for (int i = 0; ctx->reader && i < at->n; i++)
    if (device_at(ctx, at->device[i])->of_rank == abs(ctx->reader)) return i;
  return 0;
}

/* out: NULL if only another rank reads. */
TgStatus shards_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes) {
  if (engine_realize(ctx, &t, 1)) return ctx->err.status;
  UOp *multi = multi_lowered(ctx, t->uop);
  if (!multi || NEVER(!is_multi(multi))) return ctx->err.status ? ctx->err.status : TG_ERR_INTERNAL;
  Layout at = layout_of(multi);
  TgStatus s = TG_OK;
  for (int i = 0; !s && i < (at.axis < 0 ? 1 : at.n); i++) {
    UOp *u = multi->src[at.axis < 0 ? whole_read(ctx, &at) : i];
    TgTensor *p = shard_hidden(ctx, u);
    size_t n = p ? tg_nbytes(p) : 0;
    char *part = at.axis < 0 || !out ? out : mem_alloc(&ctx->mem, n + 1);
    if (!p || (out && !part))
      s = error_no_memory(&ctx->err, "read");
    else if (NEVER(at.axis < 0 && n != nbytes))
      s = error_set(&ctx->err, TG_ERR_INTERNAL, "read: a part of another size");
    else if (n)
      s = engine_read(ctx, p, part, n);
    if (!s && n && out && at.axis >= 0) part_placed(&at, t->uop->shape, dtype_size(dt(t)), i, part, out);
    if (at.axis >= 0) mem_free(&ctx->mem, part);
    tg_release(p);
  }
  return s;
}
