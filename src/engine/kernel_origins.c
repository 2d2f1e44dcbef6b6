/* kernel_origins.c: which operations a kernel computes, as text: "matmul (net.c:12), relu (net.c:12)". In:
 * the copy of a graph, and what handles and the context's table tell of its nodes (tensor/origin.c). Out:
 * a text for each kernel of the plan. A node without a name counts as part of the node that reads it
 * (parts.c). */
#include "engine/graph_copy.h"
#include <string.h>

enum { MOST_NAMED = 8 };

struct KernelOrigins {
  Parts *parts;
  UOpVec copy; /* the nodes that have an origin, in the copy */
  Vec(Origin) of;
  TgContext *ctx; /* for the record of passes */
  Map at;         /* for the record: node -> number + 1 of its origin */
  Str text;
};

bool origins_wanted(const TgContext *ctx) {
  return ctx->origins.asked || ctx->origins.told || ctx->env.debug >= 1 || ctx->profile || ctx->launched ||
         ctx->inside;
}

static void origins_end(TgContext *ctx, KernelOrigins *o) {
  if (!o) return;
  vec_free(&ctx->mem, &o->copy), vec_free(&ctx->mem, &o->of);
  map_free(&o->at), str_free(&o->text);
  parts_free(o->parts);
  mem_free(&ctx->mem, o);
}

/* Maps each node to the oldest of its handles that has an origin. */
static bool handles_mapped(TgContext *ctx, Map *handle) {
  bool ok = true;
  for (size_t i = 0; i <= ctx->scopes.len && ok; i++)
    for (TgTensor *t = i < ctx->scopes.len ? ctx->scopes.at[i].tensors : ctx->kept; t && ok; t = t->next)
      if (t->origin || t->path)
        ok = map_put_ptr(handle, (uintptr_t)t->uop, t); /* the oldest handle is listed last */
  return ok;
}

KernelOrigins *kernel_origins_new(Graph *g) {
  TgContext *ctx = g->ctx;
  KernelOrigins *o = mem_alloc(&ctx->mem, sizeof *o);
  Map handle;
  map_init(&handle, &ctx->mem);
  if (o) o->ctx = ctx, map_init(&o->at, &ctx->mem), str_init(&o->text, &ctx->mem);
  bool ok = o && handles_mapped(ctx, &handle);
  for (size_t i = 0; ok && i < g->order.len; i++) {
    const UOp *u = g->order.at[i].u;
    const GraphNode *n = g->order.at[i].place ? NULL : graph_node(g, u);
    Origin of = n && n->to ? origin_find(ctx, map_get_ptr(&handle, u), u) : (Origin){0};
    if (of.place | of.path) ok = vec_push(&ctx->mem, &o->copy, n->to) && vec_push(&ctx->mem, &o->of, of);
  }
  map_free(&handle);
  ok = ok && o->of.len && (o->parts = parts_new(g, o->copy.at, (int)o->copy.len)) != NULL;
  if (ok) return o;
  origins_end(ctx, o);
  return NULL;
}

static const char *recorded_origin(void *to, const UOp *u) {
  KernelOrigins *o = to;
  uint64_t n;
  str_free(&o->text), str_init(&o->text, &o->ctx->mem);
  int part = parts_owner(o->parts, u);
  if (map_get(&o->at, (uint64_t)(uintptr_t)u, &n))
    origin_put(o->ctx, &o->text, o->of.at[n - 1]);
  else if (part >= 0)
    origin_put(o->ctx, &o->text, o->of.at[part]);
  return str_text(&o->text);
}

void kernel_origins_record(TgContext *ctx, KernelOrigins *o) {
  if (!o || !(*ctx->passes.record_dir || ctx->passes.trace_choices)) return;
  for (size_t i = 0; i < o->copy.len; i++)
    if (!map_put(&o->at, (uint64_t)(uintptr_t)o->copy.at[i], i + 1)) return;
  ctx->passes.origin = recorded_origin;
  ctx->passes.origin_to = o;
}

static char *text_of(TgContext *ctx, KernelOrigins *o, const Plan *p, int k) {
  int n, named = 0, more = 0;
  const int *part = parts_of(o->parts, p, k, &n);
  Str s;
  Map seen;
  str_init(&s, &ctx->mem);
  map_init(&seen, &ctx->mem);
  for (int i = 0; i < n; i++) {
    Origin of = o->of.at[part[i]];
    uint64_t key = (uint64_t)of.path << 32 | of.place, before;
    if (map_get(&seen, key, &before) || !map_put(&seen, key, 1)) continue;
    if (++named > MOST_NAMED) {
      more++;
      continue;
    }
    if (s.len) str_put(&s, ", ");
    origin_put(ctx, &s, of);
  }
  map_free(&seen);
  if (more) str_printf(&s, " and %d more", more);
  char *text = mem_alloc(&ctx->mem, s.len + 1);
  if (text) memcpy(text, str_text(&s), s.len + 1);
  str_free(&s);
  return text;
}

char *kernel_origin_asked(TgContext *ctx, const Plan *p, int k) {
  return ctx->passes.origin ? text_of(ctx, ctx->passes.origin_to, p, k) : NULL;
}

/* Prints the origin of each kernel, once. */
static void origins_say(TgContext *ctx, const Plan *p) {
  for (int k = 0; k < p->sched.nkernel; k++)
    if (p->prog && p->prog[k] && *kernel_origin(p, k))
      context_say(ctx, "%s %s: %s\n", p->dev->name, p->prog[k]->name, kernel_origin(p, k));
}

void kernel_origins_put(TgContext *ctx, KernelOrigins *o, Plan *p) {
  ctx->passes.origin = NULL;
  bool made = o && p && !p->origin;
  if (made) {
    p->origin = mem_alloc(&ctx->mem, ((size_t)p->sched.nkernel + 1) * sizeof *p->origin);
    for (int k = 0; p->origin && k < p->sched.nkernel; k++)
      p->origin[k] = text_of(ctx, o, p, k);
  }
  if (p && p->origin) inside_origins(ctx, p);
  if (made && p->origin && ctx->env.debug >= 1) origins_say(ctx, p);
  origins_end(ctx, o);
}

void kernel_origins_forget(TgContext *ctx, Plan *p) {
  for (int k = 0; p->origin && k < p->sched.nkernel; k++)
    mem_free(&ctx->mem, p->origin[k]);
  mem_free(&ctx->mem, p->origin);
  p->origin = NULL;
}

const char *kernel_origin(const Plan *p, int k) { return p->origin && p->origin[k] ? p->origin[k] : ""; }
