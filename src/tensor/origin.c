/* origin.c: where operations come from. In: a text for each call, "relu (net.c:12)", from the macros of
 * tg_origin.h; and scopes of names, "conv1", which layers and model files open. Out: what is known of a
 * node.
 *
 * A handle has a pointer to the text. Nothing more is done unless somebody asks for origins
 * (Origins.asked); then a table keeps them for nodes whose handles are gone. The graph does not contain
 * them: equal operations of two places are one node, which has the origin of the first. */
#include "tensor/front.h"
#include <stdio.h>

enum { MOST_PATH = 400 };

/* Returns the number of a text, which is copied when it is first met. 0: out of memory, which is not an
 * error. */
static uint32_t text_number(TgContext *ctx, const char *text) {
  Origins *o = &ctx->origins;
  size_t n = strlen(text);
  uint64_t hash = hash_bytes(7, text, n), v;
  for (; map_get(&o->number, hash, &v); hash++)
    if (!strcmp(o->text.at[v - 1], text)) return (uint32_t)v;
  char *own = mem_alloc(&ctx->mem, n + 1);
  if (own) memcpy(own, text, n + 1);
  if (own && vec_push(&ctx->mem, &o->text, own)) {
    if (map_put(&o->number, hash, o->text.len)) return (uint32_t)o->text.len;
    o->text.len--;
  }
  mem_free(&ctx->mem, own);
  return 0;
}

static uint32_t place_number(TgContext *ctx, const char *place) {
  char text[300];
  error_place_text(place, text, sizeof text);
  return text_number(ctx, text);
}

void origins_free(TgContext *ctx) {
  Origins *o = &ctx->origins;
  for (size_t i = 0; i < o->text.len; i++)
    mem_free(&ctx->mem, o->text.at[i]);
  vec_free(&ctx->mem, &o->text), vec_free(&ctx->mem, &o->path);
  map_free(&o->number), map_free(&o->of_node);
}

static Origin unpacked(uint64_t v) { return (Origin){(uint32_t)(v >> 32), (uint32_t)v}; }

/* The first path and the first place noted for a node stay. A call fills in what its layer left open. */
static void node_told(TgContext *ctx, const UOp *u, Origin o) {
  uint64_t had = 0;
  map_get(&ctx->origins.of_node, (uint64_t)(uintptr_t)u, &had);
  Origin now = unpacked(had);
  if (!now.path) now.path = o.path;
  if (!now.place) now.place = o.place;
  uint64_t v = (uint64_t)now.path << 32 | now.place;
  if (v != had) map_put(&ctx->origins.of_node, (uint64_t)(uintptr_t)u, v); /* lost if memory is short */
}

void origin_of_handle(TgTensor *t) {
  Origins *o = &t->ctx->origins;
  t->path = o->path.at[o->path.len - 1];
  if (o->asked && t->path) node_told(t->ctx, t->uop, (Origin){t->path, 0});
}

/* Returns what a call computed. For a call that writes to memory, this is the value that will be written. */
static const UOp *computed(const TgTensor *t) {
  const UOp *store = t->memory ? t->memory->store : NULL;
  return store ? store->src[1] : t->uop;
}

/* Notes that a call begins. One of its arguments may be a call of its own that begins later, so the outer
 * call's place is kept for errors in the outer call. */
static void call_begins(TgContext *ctx, const char *place) {
  Origins *o = &ctx->origins;
  const char *outer = ctx->err.place;
  if (!outer) o->nouter = 0;
  if (outer && outer != place && o->nouter < MOST_OUTER) o->outer[o->nouter++] = outer;
  ctx->err.place = place;
}

static void call_ends(TgContext *ctx, const char *place) {
  Origins *o = &ctx->origins;
  const char *now = ctx->err.place;
  if (now && place && (now == place || !strcmp(now, place)))
    ctx->err.place = o->nouter ? o->outer[--o->nouter] : NULL;
}

TgTensor *tg_origin(TgTensor *t, const char *place) {
  if (!t) return NULL;
  call_ends(t->ctx, place);
  if (!t->origin) t->origin = place;
  if (t->ctx->origins.asked && place) {
    uint32_t path = t->memory && t->memory->store ? 0 : t->path;
    node_told(t->ctx, computed(t), (Origin){path, place_number(t->ctx, place)});
  }
  return t;
}

TgTensor *tg_origin_here(TgTensor *x, const char *place) {
  if (x) call_begins(x->ctx, place);
  return x;
}

TgContext *tg_origin_within(TgContext *ctx, const char *place) {
  if (ctx) call_begins(ctx, place);
  return ctx;
}

Origin origin_find(TgContext *ctx, const TgTensor *t, const UOp *u) {
  uint64_t v = 0;
  if (map_get(&ctx->origins.of_node, (uint64_t)(uintptr_t)u, &v)) return unpacked(v);
  if (!t) return (Origin){0};
  return (Origin){t->path, t->origin ? place_number(ctx, t->origin) : 0};
}

void origin_of_gradient(TgContext *ctx, const UOp *u, Origin of) {
  char text[320];
  if (!u || !(of.place | of.path) || map_get(&ctx->origins.of_node, (uint64_t)(uintptr_t)u, &(uint64_t){0}))
    return;
  const char *what = of.place ? ctx->origins.text.at[of.place - 1] : "";
  const char *is = strncmp(what, "gradient", 8) ? "gradient" : "";
  snprintf(text, sizeof text, "%s%s%s", is, *is && *what ? " of " : "", what);
  node_told(ctx, u, (Origin){of.path, text_number(ctx, text)});
}

void origin_put(TgContext *ctx, Str *to, Origin o) {
  if (o.path) str_put(to, ctx->origins.text.at[o.path - 1]);
  if (o.path && o.place) str_put(to, "/");
  if (o.place) str_put(to, ctx->origins.text.at[o.place - 1]);
}

const char *origin_kept(TgContext *ctx, const TgTensor *t) {
  Str s;
  str_init(&s, &ctx->mem);
  origin_put(ctx, &s, origin_find(ctx, t, t->uop));
  uint32_t n = s.len ? text_number(ctx, str_text(&s)) : 0;
  str_free(&s);
  return n ? ctx->origins.text.at[n - 1] : NULL;
}

const char *tg_origin_of(TgTensor *t) {
  if (!t) return "";
  Str *s = &t->ctx->origin_text;
  str_free(s), str_init(s, &t->ctx->mem);
  origin_put(t->ctx, s, origin_find(t->ctx, t, computed(t)));
  return str_text(s);
}

/* ---- scopes of names */
TgStatus tg_name_begin(TgContext *ctx, const char *name) {
  if (!ctx) return TG_ERR_VALUE;
  Origins *o = &ctx->origins;
  char path[MOST_PATH];
  const char *outer =
      o->path.len && o->path.at[o->path.len - 1] ? o->text.at[o->path.at[o->path.len - 1] - 1] : "";
  snprintf(path, sizeof path, "%s%s%s", outer, *outer && name && *name ? "/" : "", name ? name : "");
  if (vec_push(&ctx->mem, &o->path, *path ? text_number(ctx, path) : 0)) return TG_OK;
  return error_no_memory(&ctx->err, "name");
}

TgStatus tg_name_end(TgContext *ctx) {
  if (!ctx) return TG_ERR_VALUE;
  TG_REQUIRE_OR(ctx, ctx->origins.path.len, TG_ERR_STATE, TG_ERR_STATE, "name: end without begin");
  ctx->origins.path.len--;
  return TG_OK;
}
