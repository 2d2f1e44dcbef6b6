/* engine.c: joins the stages. In: tensors to realize. Out: their values in buffers. tg_realize = schedule -> programs -> launches.
 * The live graph is copied into a fresh store with its buffers numbered in order of use; that copy, as bytes, is the key under which the
 * schedule and its programs are kept, so a training step compiles nothing after the first time. */
#include "codegen/codegen.h"
#include "engine/engine.h"
#include "uop/dims.h"
#include "uop/spec.h"
#include "uop/text.h"
#include <stdio.h>
#include <string.h>

typedef struct Engine { Map plans, programs; Str prelude; } Engine;

static const TgBackend *const backends[] = {&backend_cpu, &backend_interp, &backend_interp_c, &backend_interp_cuda, &backend_interp_metal, &backend_null_c, &backend_null_cuda, &backend_null_metal};

TgStatus engine_open(TgContext *ctx) {
  Engine *e = mem_alloc(&ctx->mem, sizeof *e);
  if (!e) return error_set(&ctx->err, TG_ERR_NOMEM, "open: out of memory");
  map_init(&e->plans, &ctx->mem), map_init(&e->programs, &ctx->mem), str_init(&e->prelude, &ctx->mem);
  ctx->engine = e;
  ctx->dev = (Device){.mem = &ctx->mem, .os = ctx->os, .env = &ctx->env, .err = &ctx->err, .ncores = cpu_count()};
  const char *want = ctx->env.dev;
  for (size_t i = 0; i < TG_COUNT(backends); i++) {
    if (*want && strcmp(want, backends[i]->name)) continue;
    if (!*want && !(backends[i]->has & HAS_RUN)) continue;
    TgError err = {0};
    ctx->dev.backend = backends[i];
    ctx->dev.err = &err;
    TgStatus s = backends[i]->open(&ctx->dev);
    ctx->dev.err = &ctx->err;
    if (!s) { ctx->dev_open = true; return TG_OK; }
    if (*want || i + 1 == TG_COUNT(backends)) return error_set(&ctx->err, s, "%s", err.msg);
  }
  return error_set(&ctx->err, TG_ERR_VALUE, "open: no device is called '%s'", want);
}
static void plan_free(TgContext *ctx, Plan *p) {
  for (int i = 0; i < p->nslab; i++) if (p->slab && p->slab[i]) ctx->dev.backend->free(&ctx->dev, p->slab[i], p->slab_bytes[i]);
  mem_free(&ctx->mem, p->key), mem_free(&ctx->mem, p->prog), mem_free(&ctx->mem, p->slab_of);
  mem_free(&ctx->mem, p->slab_bytes), mem_free(&ctx->mem, p->slab);
  schedule_free(&p->sched, &ctx->mem);
  mem_free(&ctx->mem, p);
}
static void program_forget(TgContext *ctx, CachedProgram *p) { mem_free(&ctx->mem, p->key), mem_free(&ctx->mem, p->var), mem_free(&ctx->mem, p); }
void engine_cache_clear(TgContext *ctx) {
  Engine *e = ctx->engine;
  ctx->plans_dropped++;
  for (size_t i = 0; i < e->plans.cap; i++)
    if (e->plans.at[i].used)
      for (Plan *p = (Plan *)(uintptr_t)e->plans.at[i].val, *n; p; p = n) n = p->next, plan_free(ctx, p);
  for (size_t i = 0; i < e->programs.cap; i++)
    if (e->programs.at[i].used)
      for (CachedProgram *p = (CachedProgram *)(uintptr_t)e->programs.at[i].val, *n; p; p = n) {
        n = p->next;
        ctx->dev.backend->unload(&ctx->dev, p->prog);
        program_forget(ctx, p);
      }
  map_free(&e->plans), map_free(&e->programs);
}
void engine_close(TgContext *ctx) {
  if (ctx->engine) {
    engine_cache_clear(ctx);
    str_free(&((Engine *)ctx->engine)->prelude);
    mem_free(&ctx->mem, ctx->engine);
    ctx->engine = NULL;
  }
  if (ctx->dev_open) ctx->dev.backend->close(&ctx->dev);
  ctx->dev_open = false;
}

/* ---- the live graph, copied */
typedef struct Copy { UOpStore *st; UOp **to; Vec(int64_t) uids; Str key; Vec(uint32_t) number; } Copy;
static UOp *stands_for(TgContext *ctx, UOp *u) {
  UOp *r;
  while ((r = map_get_ptr(&ctx->realized, u)) && r != u) u = r;
  return u;
}
/* A node without its sources, as bytes that mean the same in every store: lists by content, a buffer by `slot`. */
static void key_put(Str *key, const UOp *u, int64_t slot) {
  struct { uint8_t op, dtype, lanes, pad; uint16_t nsrc, list; int64_t a, b; } head = {u->op, u->dtype, u->lanes, 0, u->nsrc, 0, u->arg.raw.a, u->arg.raw.b};
  const Ints *list = uop_list(u);
  if (u->op == OPS_BUFFER) head.b = slot;
  if (list) head.list = 1, head.a = list->n, head.b = op_has_axes((Ops)u->op) ? head.b : 0;
  str_putn(key, (char *)&head, sizeof head);
  if (list) str_putn(key, (const char *)list->v, (size_t)list->n * sizeof *list->v);
}
static bool copy_node(TgContext *ctx, Copy *c, UOp *u, uint32_t *num, uint32_t *count) {
  UOp *buf[16], **src = u->nsrc <= 16 ? buf : mem_alloc(&ctx->mem, u->nsrc * sizeof *src);
  if (!src) return false;
  Arg arg = u->arg;
  if (u->op == OPS_BUFFER) {
    arg.param.slot = (int64_t)c->uids.len;
    if (!vec_push(&ctx->mem, &c->uids, u->arg.param.slot)) return false;
  }
  for (int i = 0; i < u->nsrc; i++) {
    UOp *s = stands_for(ctx, u->src[i]);
    src[i] = c->to[s->id];
    uint32_t n = num[s->id];
    str_putn(&c->key, (char *)&n, sizeof n);
  }
  const Ints *list = uop_list(u), *own = list ? ints_get(c->st, list->n, list->v) : NULL;
  if (op_has_axes((Ops)u->op)) arg.reduce.axes = own; else if (list) arg.ints = own;
  key_put(&c->key, u, arg.param.slot);
  num[u->id] = (*count)++;
  c->to[u->id] = uop_new(c->st, (Ops)u->op, (DType)u->dtype, u->lanes, u->nsrc, src, arg);
  if (src != buf) mem_free(&ctx->mem, src);
  return c->to[u->id] != NULL && !c->key.oom;
}
typedef struct CFrame { UOp *u; int next; } CFrame;
static bool copy_live(TgContext *ctx, Copy *c, UOp *const *roots, size_t n) {
  Vec(CFrame) stack = {0};
  uint32_t limit = store_id_limit(ctx->store) + 1, count = 0, *num = mem_alloc(&ctx->mem, limit * sizeof *num);
  uint8_t *seen = mem_alloc(&ctx->mem, limit);
  c->to = mem_alloc(&ctx->mem, limit * sizeof *c->to);
  bool ok = num && seen && c->to;
  for (size_t r = 0; ok && r < n; r++) {
    UOp *root = stands_for(ctx, roots[r]);
    if (!seen[root->id]) seen[root->id] = 1, ok = vec_push(&ctx->mem, &stack, ((CFrame){root, 0}));
    while (ok && stack.len) {
      CFrame *f = &stack.at[stack.len - 1];
      if (f->next < f->u->nsrc) {
        UOp *s = stands_for(ctx, f->u->src[f->next++]);
        if (!seen[s->id]) seen[s->id] = 1, ok = vec_push(&ctx->mem, &stack, ((CFrame){s, 0}));
      } else {
        UOp *u = f->u;
        stack.len--;
        ok = copy_node(ctx, c, u, num, &count);
      }
    }
    uint32_t mark = UINT32_MAX, id = num[root->id];
    str_putn(&c->key, (char *)&mark, 4), str_putn(&c->key, (char *)&id, 4);
  }
  ctx->counters.graph_nodes += count;
  vec_free(&ctx->mem, &stack);
  mem_free(&ctx->mem, num), mem_free(&ctx->mem, seen);
  return ok && !c->key.oom;
}

/* ---- programs */
static bool kernel_key(Str *key, UOpStore *st, TgMem *mem, UOp *ast) {
  UOpVec order = {0};
  UOpMap *num = uop_map_begin(st, st);
  bool ok = num && uop_toposort(st, mem, &ast, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    key_put(key, u, u->arg.param.slot);
    for (int k = 0; k < u->nsrc; k++) {
      uint32_t n = uop_map_number(num, u->src[k]);
      str_putn(key, (char *)&n, sizeof n);
    }
    ok = uop_map_put_number(st, num, u, (uint32_t)i);
  }
  uop_map_end(st, num);
  vec_free(mem, &order);
  return ok && !key->oom;
}
static CachedProgram *program_find(Engine *e, const Str *key, uint64_t h) {
  uint64_t v;
  if (!map_get(&e->programs, h, &v)) return NULL;
  for (CachedProgram *p = (CachedProgram *)(uintptr_t)v; p; p = p->next) if (p->nkey == key->len && !memcmp(p->key, key->at, key->len)) return p;
  return NULL;
}
static void kernel_print(const Schedule *s, int k) {          /* TG_DEBUG=5 */
  Str t;
  str_init(&t, NULL);
  uop_print(&t, s->store, NULL, &s->kernel[k].ast, 1);
  fprintf(stderr, "%s", str_text(&t));
  str_free(&t);
}
static void linear_print(const Linear *lin) {                /* TG_DEBUG=6: one line per UOp, loops indented */
  int depth = 0;
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i];
    Str t;
    str_init(&t, NULL);
    uop_expr(&t, u, 6);
    if (u->op == OPS_END) depth--;
    fprintf(stderr, "%4d %*s%s x%d  %s\n", i, 2 * TG_MAX(depth, 0), "", op_name((Ops)u->op), u->lanes, str_text(&t));
    if (u->op == OPS_RANGE) depth++;
    str_free(&t);
  }
}
/* The line over each kernel: what it is called, for which language, how it is launched and shaped. */
static void header_put(Str *out, const Renderer *r, const Linear *lin, const char *opts) {
  str_printf(out, "/* %s, %s, ", lin->name, r->name);
  if (r->has_local) str_printf(out, "grid %d %d %d of blocks %d %d %d", lin->global[0], lin->global[1], lin->global[2], lin->local[0], lin->local[1], lin->local[2]);
  else str_printf(out, "%d thread%s", TG_MAX(lin->nthread, 1), lin->nthread > 1 ? "s" : "");
  str_printf(out, ", %s%s */\n", *opts ? "opts " : "no opts", opts);
}
static void kernel_seen(TgContext *ctx, const Linear *lin, const char *opts, const char *source) {
  const Renderer *r = ctx->dev.backend->renderer;
  TgKernelText k = {.size = sizeof k, .name = lin->name, .language = r ? r->name : "", .opts = opts, .source = source, .threads = TG_MAX(lin->nthread, 1)};
  for (int i = 0; i < 3; i++) k.grid[i] = TG_MAX(lin->global[i], 1), k.block[i] = TG_MAX(lin->local[i], 1);
  ctx->seen(&k, ctx->seen_user);
}
const char *tg_source_prelude(TgContext *ctx) {
  if (!ctx || !ctx->dev_open || !ctx->dev.backend->renderer) return "";
  Str *s = &((Engine *)ctx->engine)->prelude;
  if (s->oom) str_free(s), str_init(s, &ctx->mem);
  if (!s->len) ctx->dev.backend->renderer->prelude(s);
  if (!s->oom) return str_text(s);
  error_set(&ctx->err, TG_ERR_NOMEM, "source prelude: out of memory");
  return NULL;
}
static bool program_vars(TgContext *ctx, const Linear *lin, CachedProgram *p) {      /* in the order in which the program asks for them */
  for (int i = 0; i < lin->n; i++) p->nvar += lin->at[i]->op == OPS_VAR;
  if (!p->nvar) return true;
  if (!(p->var = mem_alloc(&ctx->mem, (size_t)p->nvar * sizeof *p->var))) return false;
  for (int i = 0, n = 0; i < lin->n; i++) if (lin->at[i]->op == OPS_VAR) p->var[n++] = var_number(lin->at[i]);
  return true;
}
typedef struct Todo { Linear lin; UOpStore *st; Str source; CachedProgram *prog; } Todo;
static TgStatus programs_make(TgContext *ctx, Plan *plan) {
  Engine *e = ctx->engine;
  Device *d = &ctx->dev;
  Vec(Todo) todo = {0};
  Arena arena;
  arena_init(&arena, &ctx->mem);
  TgStatus s = TG_OK;
  CodegenOptions copt = codegen_options(ctx, NULL);
  for (int k = 0; k < plan->sched.nkernel && !s; k++) {
    Str key;
    str_init(&key, &ctx->mem);
    if (!kernel_key(&key, plan->sched.store, &ctx->mem, plan->sched.kernel[k].ast)) { s = TG_ERR_NOMEM; str_free(&key); break; }
    uint64_t h = hash_bytes(1, key.at, key.len);
    CachedProgram *p = program_find(e, &key, h);
    if (p) ctx->counters.cache_hits++;
    else {
      Todo t = {0};
      Str opts;
      str_init(&opts, &ctx->mem), str_init(&t.source, &ctx->mem);
      s = codegen_lower(&ctx->mem, plan->sched.kernel[k].ast, plan->sched.store, d->backend->renderer, &copt, &arena, &t.st, &t.lin, &opts, &ctx->err);
      if (!s && ctx->env.debug >= 6) linear_print(&t.lin);
      if (!s && d->backend->renderer) header_put(&t.source, d->backend->renderer, &t.lin, str_text(&opts));
      if (!s && d->backend->renderer && !d->backend->renderer->render(&t.source, &t.lin, &ctx->err))
        s = error_set(&ctx->err, TG_ERR_INTERNAL, "render: kernel %s", t.lin.name);
      ctx->counters.largest_source = TG_MAX(ctx->counters.largest_source, t.source.len);
      if (ctx->env.debug >= 5) kernel_print(&plan->sched, k);
      if (ctx->env.debug >= 3) fprintf(stderr, "%s %s: opts %s\n", d->backend->name, t.lin.name, str_text(&opts));
      if (ctx->env.debug >= 4) fprintf(stderr, "%s\n", str_text(&t.source));
      if (!s && ctx->seen) kernel_seen(ctx, &t.lin, str_text(&opts), str_text(&t.source));
      str_free(&opts);
      if (t.st) ctx->counters.nodes += store_created(t.st);
      p = s ? NULL : mem_alloc(&ctx->mem, sizeof *p);
      if (p && (p->key = mem_alloc(&ctx->mem, key.len))) memcpy(p->key, key.at, key.len), p->nkey = key.len;
      if (p) p->hash = h, snprintf(p->name, sizeof p->name, "%s", t.lin.name);
      t.prog = p;
      if (p && !program_vars(ctx, &t.lin, p)) s = TG_ERR_NOMEM;
      if (!s && (!p || !p->key || !vec_push(&ctx->mem, &todo, t))) s = TG_ERR_NOMEM;
      if (s) { store_free(t.st); str_free(&t.source); if (p) program_forget(ctx, p); }
      else {                                                 /* found by the next equal kernel of this very schedule */
        uint64_t v = 0;
        map_get(&e->programs, h, &v);
        p->next = (CachedProgram *)(uintptr_t)v;
        if (!map_put_ptr(&e->programs, (uintptr_t)h, p)) s = TG_ERR_NOMEM;
      }
    }
    plan->prog[k] = p;
    str_free(&key);
  }
  KernelSpec *spec = todo.len ? mem_alloc(&ctx->mem, todo.len * sizeof *spec) : NULL;
  Program **out = todo.len ? mem_alloc(&ctx->mem, todo.len * sizeof *out) : NULL;
  if (todo.len && (!spec || !out)) s = TG_ERR_NOMEM;
  if (!s && todo.len) {
    for (size_t i = 0; i < todo.len; i++) spec[i] = (KernelSpec){&todo.at[i].lin, d->backend->renderer ? str_text(&todo.at[i].source) : NULL};
    s = d->backend->compile(d, spec, (int)todo.len, out);
    if (!s) ctx->counters.compiled += todo.len;
  }
  for (size_t i = 0; i < todo.len; i++) {
    CachedProgram *p = todo.at[i].prog;
    if (!s) p->prog = out[i];
    else {                                                   /* taken out again: nothing half-made stays in the cache */
      uint64_t v = 0;
      map_get(&e->programs, p->hash, &v);
      CachedProgram *head = (CachedProgram *)(uintptr_t)v, **link = &head;
      while (*link && *link != p) link = &(*link)->next;
      if (*link) *link = p->next;
      map_put_ptr(&e->programs, (uintptr_t)p->hash, head);
      program_forget(ctx, p);
    }
    store_free(todo.at[i].st), str_free(&todo.at[i].source);
  }
  mem_free(&ctx->mem, spec), mem_free(&ctx->mem, out);
  vec_free(&ctx->mem, &todo);
  arena_free(&arena);
  return s ? error_set(&ctx->err, s, "realize: out of memory") : TG_OK;
}
/* Temporaries that do not live at the same time share a slab. */
static TgStatus memory_plan(TgContext *ctx, Plan *p) {
  Schedule *s = &p->sched;
  size_t n = (size_t)s->ntemp + 1;
  int *last = mem_alloc(&ctx->mem, n * sizeof *last);
  p->slab_of = mem_alloc(&ctx->mem, n * sizeof *p->slab_of);
  p->slab_bytes = mem_alloc(&ctx->mem, n * sizeof *p->slab_bytes);
  p->slab = mem_alloc(&ctx->mem, n * sizeof *p->slab);
  TgStatus st = last && p->slab_of && p->slab_bytes && p->slab ? TG_OK : TG_ERR_NOMEM;
  for (int t = 0; !st && t < s->ntemp; t++) {                /* temporaries are numbered in the order they are first written */
    p->slab_of[t] = -1;
    if (s->temp[t].root >= 0) continue;
    size_t bytes = (size_t)s->temp[t].nelem * dtype_size(s->temp[t].dtype);
    int best = -1;
    for (int i = 0; i < p->nslab; i++)
      if (last[i] < s->temp[t].first && (best < 0 || (p->slab_bytes[i] >= bytes && (p->slab_bytes[best] < bytes || p->slab_bytes[i] < p->slab_bytes[best])))) best = i;
    if (best < 0) best = p->nslab++;
    p->slab_bytes[best] = TG_MAX(p->slab_bytes[best], bytes);
    last[best] = s->temp[t].last;
    p->slab_of[t] = best;
  }
  mem_free(&ctx->mem, last);
  return st ? error_set(&ctx->err, st, "realize: out of memory") : TG_OK;
}
/* The kernels alone, in a store of their own: what scheduling made besides is many times larger, and nobody reads it again. */
static bool kernels_alone(TgContext *ctx, Schedule *s) {
  UOpStore *st = store_new(&ctx->mem), *old = s->store;
  UOpMap *to = uop_map_begin(old, st);
  UOpVec order = {0};
  bool ok = st && to;
  for (int k = 0; ok && k < s->nkernel; k++) {
    order.len = 0;
    ok = uop_toposort(old, &ctx->mem, &s->kernel[k].ast, 1, &order);
    for (size_t i = 0; ok && i < order.len; i++) {
      UOp *u = order.at[i], *buf[64], **src = u->nsrc <= 64 ? buf : mem_alloc(&ctx->mem, u->nsrc * sizeof *src);
      if (!src) { ok = false; break; }
      for (int j = 0; j < u->nsrc; j++) src[j] = uop_map_get(to, u->src[j]);
      UOp *v = uop_with_src(st, u, src);
      if (src != buf) mem_free(&ctx->mem, src);
      ok = v && uop_map_put(old, to, u, v);
    }
  }
  for (int k = 0; ok && k < s->nkernel; k++) s->kernel[k].ast = uop_map_get(to, s->kernel[k].ast);
  if (ok) ctx->counters.nodes += store_created(old) + store_created(st);
  vec_free(&ctx->mem, &order);
  uop_map_end(old, to);
  if (ok) s->store = st;
  store_free(ok ? old : st);
  return ok;
}
static TgStatus plan_make(TgContext *ctx, Copy *c, UOp *const *roots, size_t n, uint64_t h, Plan **out) {
  Engine *e = ctx->engine;
  Plan *p = mem_alloc(&ctx->mem, sizeof *p);
  UOp **r = mem_alloc(&ctx->mem, n * sizeof *r);
  TgStatus s = p && r ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  Str explain;
  str_init(&explain, &ctx->mem);
  SchedOptions so = sched_options(ctx, ctx->dev.backend->renderer);
  so.explain = ctx->env.debug >= 3 ? &explain : NULL;
  if (!s) {
    for (size_t i = 0; i < n; i++) r[i] = c->to[stands_for(ctx, roots[i])->id];
    s = schedule_make(c->st, &ctx->mem, r, (int)n, &so, &p->sched, &ctx->err);
    if (!s) c->st = NULL;                                    /* the schedule owns it now */
    if (!s && !kernels_alone(ctx, &p->sched)) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  }
  if (so.explain) fprintf(stderr, "%s", str_text(&explain));
  str_free(&explain);
  if (!s) {
    ctx->counters.schedules++;
    p->prog = mem_alloc(&ctx->mem, ((size_t)p->sched.nkernel + 1) * sizeof *p->prog);
    p->key = mem_alloc(&ctx->mem, c->key.len + 1);
    if (!p->prog || !p->key) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  }
  if (!s) memcpy(p->key, c->key.at, c->key.len), p->nkey = c->key.len;
  if (!s) s = programs_make(ctx, p);
  if (p) store_free(p->sched.store), p->sched.store = NULL;  /* a plan that is kept needs programs and arguments, no graph */
  if (!s) s = memory_plan(ctx, p);
  if (!s) {
    uint64_t v = 0;
    map_get(&e->plans, h, &v);
    p->next = (Plan *)(uintptr_t)v;
    if (!map_put_ptr(&e->plans, (uintptr_t)h, p)) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  }
  mem_free(&ctx->mem, r);
  if (s && p) plan_free(ctx, p), p = NULL;
  *out = p;
  return s;
}

/* ---- running */
TgStatus buffer_ready(TgContext *ctx, Buffer *b) {
  if (b->data || !b->nelem) return TG_OK;
  return ctx->dev.backend->alloc(&ctx->dev, (size_t)b->nelem * dtype_size(b->dtype), &b->data);
}
static TgStatus value_current(TgContext *ctx, const Buffer *b) {       /* a value of symbolic shape has the sizes of its time */
  if (!b->bound_at || b->bound_at == ctx->bound + 1) return TG_OK;
  return error_set(&ctx->err, TG_ERR_STATE, "realize: a tensor of symbolic shape was computed from memory that has changed since, and its variables are bound to other values now");
}
/* The values of a program's variables, in units of the VAR nodes. */
static TgStatus vars_get(TgContext *ctx, const CachedProgram *p, int64_t *out) {
  for (int i = 0; i < p->nvar; i++) {
    const DimVar *v = dims_var_at(ctx->dims, p->var[i]);
    if (!v || !v->bound) return error_set(&ctx->err, TG_ERR_STATE, "realize: variable '%.64s' is not bound to a value", v ? v->name : "?");
    out[i] = v->value / v->multiple;
  }
  return TG_OK;
}
TgStatus plan_run(TgContext *ctx, Plan *p, Buffer *const *buf, Buffer *const *temp) {
  Schedule *s = &p->sched;
  Device *d = &ctx->dev;
  void *bufs_small[32], **bufs = bufs_small;
  int most = 0, most_vars = 0;
  int64_t vars_small[16], *vars = vars_small;
  TgStatus st = TG_OK;
  for (int i = 0; i < p->nslab && !st; i++) if (!p->slab[i] && p->slab_bytes[i]) st = d->backend->alloc(d, p->slab_bytes[i], &p->slab[i]);
  for (int k = 0; k < s->nkernel; k++) most = TG_MAX(most, s->kernel[k].narg), most_vars = TG_MAX(most_vars, p->prog[k]->nvar);
  for (int k = 0; k < s->nkernel && !st && most_vars <= 16; k++) st = vars_get(ctx, p->prog[k], vars);      /* before anything runs */
  if (!st && most > 32) bufs = mem_alloc(&ctx->mem, (size_t)most * sizeof *bufs);
  if (!st && most_vars > 16) vars = mem_alloc(&ctx->mem, (size_t)most_vars * sizeof *vars);
  if (!bufs || !vars) st = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  double t0 = time_now_s();
  for (int k = 0; k < s->nkernel && !st; k++) {
    SchedKernel *sk = &s->kernel[k];
    for (int a = 0; a < sk->narg && !st; a++) {
      int64_t id = sk->arg[a];
      if (id >= TEMP_BASE) {
        int t = (int)(id - TEMP_BASE);
        bufs[a] = temp[t] ? temp[t]->data : p->slab[p->slab_of[t]];
      } else {
        Buffer *b = buf[id];
        st = b ? value_current(ctx, b) : TG_OK;
        if (!st) st = b ? buffer_ready(ctx, b) : error_set(&ctx->err, TG_ERR_STATE, "realize: a buffer that the graph reads was freed");
        if (!st) bufs[a] = b->data, b->filled = true;
      }
    }
    double k0 = ctx->env.debug >= 2 ? time_now_s() : 0;
    if (!st) st = vars_get(ctx, p->prog[k], vars);
    if (!st) st = d->backend->launch(d, p->prog[k]->prog, bufs, vars);
    if (!st && ctx->env.debug >= 2) {
      d->backend->sync(d);
      fprintf(stderr, "*** %-4s %4d %-40s arg %2d %9.2f us (estimated %.2f)\n", d->backend->name, k, p->prog[k]->name, sk->narg, (time_now_s() - k0) * 1e6, sk->est_us);
    }
    ctx->counters.launches++, ctx->counters.flops += (uint64_t)sk->flops;
  }
  if (!st) st = d->backend->sync(d);
  ctx->counters.kernels += (uint64_t)s->nkernel;
  ctx->counters.ms += (time_now_s() - t0) * 1e3;
  if (bufs != bufs_small) mem_free(&ctx->mem, bufs);
  if (vars != vars_small) mem_free(&ctx->mem, vars);
  return st;
}
static int64_t nelem_of(TgContext *ctx, const UOp *u) { return dim_product(ctx->store, u->shape); }
/* The leading part, of symbolic size, of a whole buffer: what holds a value of symbolic shape. */
static bool is_part(const UOp *u) {
  const UOp *whole = u->op == OPS_SHRINK ? u->src[0] : u;
  bool part = u->op == OPS_SHRINK && dims_symbolic(u->shape) && (whole->op == OPS_BUFFER || (whole->op == OPS_RESHAPE && whole->src[0]->op == OPS_BUFFER));
  for (int i = 0; part && i < u->shape->n; i++) part = u->arg.ints->v[2 * i] == 0;
  return part;
}
bool in_memory(TgContext *ctx, UOp *u) {              /* a whole buffer, perhaps in another shape */
  u = stands_for(ctx, u);
  if (is_part(u)) return true;
  while (u->op == OPS_RESHAPE) u = u->src[0];
  return u->op == OPS_BUFFER;
}
static UOp *strip_after(UOpStore *st, UOp *u) {              /* the memory itself, once its stores are done */
  UOp *chain[64];
  int n = 0;
  for (; u && u->op != OPS_BUFFER && n < 64; u = u->src[0]) if (u->op != OPS_AFTER) chain[n++] = u;
  for (; u && n-- > 0;) u = uop_new(st, (Ops)chain[n]->op, (DType)chain[n]->dtype, 1, 1, &u, chain[n]->arg);
  return u;
}
typedef struct Watch { void (*seen)(const TgLaunch *l, void *user); void *user; int count; } Watch;
static TgStatus run_roots(TgContext *ctx, UOp *const *roots, size_t n, Watch *only) {   /* only: told of, and not run */
  Engine *e = ctx->engine;
  Copy c = {0};
  str_init(&c.key, &ctx->mem);
  c.st = store_new(&ctx->mem);
  if (c.st) store_set_env(c.st, &ctx->passes.rewrites), store_set_dims(c.st, ctx->dims);
  TgStatus s = c.st && copy_live(ctx, &c, roots, n) ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory copying the graph");
  Plan *p = NULL;
  Buffer **temp = NULL;
  UOp **made = s ? NULL : mem_alloc(&ctx->mem, n * sizeof *made);
  if (!s) {
    uint64_t h = hash_bytes(3, c.key.at, c.key.len), v;
    if (map_get(&e->plans, h, &v))
      for (p = (Plan *)(uintptr_t)v; p; p = p->next) if (p->nkey == c.key.len && !memcmp(p->key, c.key.at, p->nkey)) break;
    if (p) ctx->counters.schedule_hits++;
    else s = plan_make(ctx, &c, roots, n, h, &p);
  }
  if (!s) temp = mem_alloc(&ctx->mem, ((size_t)p->sched.ntemp + 1) * sizeof *temp);
  if (!s && (!temp || !made)) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  if (!s && only) {
    for (int k = 0; k < p->sched.nkernel; k++, only->count++) {
      SchedKernel *sk = &p->sched.kernel[k];
      TgLaunch l = {sizeof l, p->prog[k]->name, sk->narg, sk->flops, sk->est_us};
      if (only->seen) only->seen(&l, only->user);
    }
    n = 0;
  }
  for (size_t i = 0; i < n && !s; i++) {
    UOp *u = stands_for(ctx, roots[i]);
    int64_t r = p->sched.root[i];
    if (r >= TEMP_BASE) {
      made[i] = buffer_node(ctx, (DType)u->dtype, nelem_of(ctx, u), u->shape);
      UOp *b = made[i];
      while (b && b->op != OPS_BUFFER) b = b->src[0];
      if (!b) { s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory"); break; }
      Buffer *buf = buffer_get(ctx, b);
      s = buffer_ready(ctx, buf);
      buf->filled = true, buf->bound_at = dims_symbolic(u->shape) ? ctx->bound + 1 : 0;
      temp[r - TEMP_BASE] = buf;
    } else made[i] = strip_after(ctx->store, roots[i]);
  }
  Buffer **buf = s ? NULL : mem_alloc(&ctx->mem, (c.uids.len + 1) * sizeof *buf);
  if (!s && !buf) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  for (size_t i = 0; !s && i < c.uids.len; i++) buf[i] = ctx->buffers.at[c.uids.at[i]];
  if (!s && !only) s = plan_run(ctx, p, buf, temp);
  if (!s && !only && ctx->capture) capture_step(ctx, p, buf, c.uids.len, temp);
  mem_free(&ctx->mem, buf);
  for (size_t i = 0; i < n && !s; i++)
    if (!made[i] || !map_put_ptr(&ctx->realized, stands_for(ctx, roots[i]), made[i])) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  mem_free(&ctx->mem, temp), mem_free(&ctx->mem, made), mem_free(&ctx->mem, c.to);
  vec_free(&ctx->mem, &c.uids);
  str_free(&c.key);
  store_free(c.st);
  return s;
}
static TgStatus realize(TgContext *ctx, TgTensor *const *t, size_t n, Watch *only) {
  if (!ctx->dev_open) return error_set(&ctx->err, TG_ERR_DEVICE, "realize: no device is open");
  UOpVec roots = {0};
  bool ok = true;
  for (size_t i = 0; i < n && ok; i++) {
    UOp *u = t[i]->uop;
    if (in_memory(ctx, u)) continue;
    u = stands_for(ctx, u);
    bool dup = false;
    for (size_t j = 0; j < roots.len; j++) dup |= roots.at[j] == u;
    if (dup) continue;
    if (u->op != OPS_AFTER && !nelem_of(ctx, u)) {                /* nothing to compute */
      UOp *b = only ? u : buffer_node(ctx, (DType)u->dtype, 0, u->shape);
      ok = b && (only || map_put_ptr(&ctx->realized, u, b));
      continue;
    }
    ok = vec_push(&ctx->mem, &roots, u);
  }
  TgStatus s = ok ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  if (!s && roots.len) s = run_roots(ctx, roots.at, roots.len, only);
  for (size_t i = 0; i < n && !s && !only; i++)
    if (t[i]->uop->op == OPS_AFTER) t[i]->uop = stands_for(ctx, t[i]->uop);
  vec_free(&ctx->mem, &roots);
  return s;
}
TgStatus engine_realize(TgContext *ctx, TgTensor *const *t, size_t n) { return realize(ctx, t, n, NULL); }
int tg_schedule(TgTensor *const *t, size_t n, void (*seen)(const TgLaunch *, void *), void *user) {
  Watch w = {seen, user, 0};
  TgContext *ctx = n && t && t[0] ? t[0]->ctx : NULL;
  for (size_t i = 0; ctx && i < n; i++)
    if (!t[i] || t[i]->ctx != ctx) return error_set(&ctx->err, TG_ERR_VALUE, "schedule: tensor %zu is NULL or of another context", i), -1;
  return ctx && !realize(ctx, t, n, &w) ? w.count : -1;
}
Buffer *value_of(TgContext *ctx, TgTensor *t, size_t nbytes) {
  if (engine_realize(ctx, &t, 1)) return NULL;
  UOp *u = stands_for(ctx, t->uop);
  if (is_part(u)) u = u->src[0];
  while (u->op == OPS_RESHAPE || u->op == OPS_AFTER) u = u->src[0];
  Buffer *b = u->op == OPS_BUFFER ? buffer_get(ctx, u) : NULL;
  if (!b || (!b->data && !b->filled)) error_set(&ctx->err, TG_ERR_STATE, "read: the tensor was never given a value");
  else if (value_current(ctx, b)) return NULL;
  else if ((size_t)b->nelem * dtype_size(b->dtype) < nbytes) error_set(&ctx->err, TG_ERR_INTERNAL, "read: buffer smaller than the tensor");
  else return b;
  return NULL;
}
/* Element runs of the part that are one piece in memory, one after another. */
static TgStatus read_part(TgContext *ctx, const Buffer *b, const UOp *part, char *out, size_t nbytes) {
  const Ints *all = part->src[0]->shape;
  int64_t now[16], at[16] = {0}, run = 1, row = 0;
  int n = all->n, first;
  for (int i = 0; i < n; i++) {
    now[i] = dim_now(ctx->store, part->shape->v[i]);
    if (dim_symbolic(part->shape->v[i]) && NEVER(now[i] > all->v[i])) return error_set(&ctx->err, TG_ERR_INTERNAL, "read: a part larger than its memory");
  }
  for (first = n; first > 0 && (first == n || now[first] == all->v[first]); first--) run *= now[first - 1];      /* axes first .. n-1 are one run */
  TgStatus s = TG_OK;
  size_t size = (size_t)run * dtype_size(b->dtype);
  for (size_t done = 0; !s && done < nbytes; done += size) {
    row = 0;
    for (int i = 0; i < n; i++) row = row * all->v[i] + (i < first ? at[i] : 0);
    s = ctx->dev.backend->copy_out(&ctx->dev, out + done, (const char *)b->data + (size_t)row * dtype_size(b->dtype), size);
    for (int i = first; i-- > 0 && ++at[i] == now[i];) at[i] = 0;
  }
  return s;
}
TgStatus engine_read(TgContext *ctx, TgTensor *t, void *out, size_t nbytes) {
  Buffer *b = value_of(ctx, t, nbytes);
  if (!b) return ctx->err.status;
  const UOp *part = stands_for(ctx, t->uop);
  if (is_part(part) && nbytes) return read_part(ctx, b, part, out, nbytes);
  return nbytes ? ctx->dev.backend->copy_out(&ctx->dev, out, b->data, nbytes) : TG_OK;
}
const void *engine_map(TgContext *ctx, TgTensor *t) {
  if (ctx->dev.backend->has & HAS_LOCAL) { error_set(&ctx->err, TG_ERR_DEVICE, "map: %s has memory of its own; use tg_read", ctx->dev.backend->name); return NULL; }
  Buffer *b = value_of(ctx, t, 0);
  const UOp *part = b ? stands_for(ctx, t->uop) : NULL;
  for (int i = 1; part && is_part(part) && i < part->shape->n; i++)
    if (dim_now(ctx->store, part->shape->v[i]) != part->src[0]->shape->v[i]) {
      error_set(&ctx->err, TG_ERR_SHAPE, "map: axis %d is symbolic, so that the elements do not stand side by side; use tg_read", i);
      return NULL;
    }
  return b ? b->data : NULL;
}

/* ---- sweeping: what no handle reaches goes, nodes and buffers; values computed for nodes that stay are kept with them */
TgStatus engine_collect(TgContext *ctx) {
  UOpVec roots = {0}, live = {0};
  bool ok = true;
  for (size_t s = 0; s <= ctx->scopes.len && ok; s++)
    for (TgTensor *t = s < ctx->scopes.len ? ctx->scopes.at[s].tensors : ctx->kept; t && ok; t = t->next) ok = vec_push(&ctx->mem, &roots, t->uop);
  uint8_t *keep = NULL;
  for (bool grew = true; ok && grew;) {                      /* a live node keeps its value; that value's buffer is then live too */
    grew = false;
    live.len = 0;
    ok = uop_toposort(ctx->store, &ctx->mem, roots.at, roots.len, &live);
    mem_free(&ctx->mem, keep);
    keep = ok ? mem_alloc(&ctx->mem, store_id_limit(ctx->store) + 1) : NULL;
    ok = keep != NULL;
    for (size_t i = 0; ok && i < live.len; i++) keep[live.at[i]->id] = 1;
    for (size_t i = 0; ok && i < ctx->realized.cap; i++) {
      MapEntry *m = &ctx->realized.at[i];
      if (!m->used || !m->val) continue;
      UOp *k = (UOp *)(uintptr_t)m->key, *v = (UOp *)(uintptr_t)m->val;
      if (keep[k->id] && !keep[v->id]) ok = vec_push(&ctx->mem, &roots, v), grew = true;
    }
  }
  Map realized;
  map_init(&realized, &ctx->mem);
  for (size_t i = 0; ok && i < ctx->realized.cap; i++) {
    MapEntry *m = &ctx->realized.at[i];
    if (m->used && m->val && keep[((UOp *)(uintptr_t)m->key)->id]) ok = map_put(&realized, m->key, m->val);
  }
  if (ok) {
    for (size_t i = 0; i < ctx->buffers.len; i++) if (ctx->buffers.at[i]) ctx->buffers.at[i]->marked = false;
    for (size_t i = 0; i < live.len; i++) {
      Buffer *b = live.at[i]->op == OPS_BUFFER ? buffer_get(ctx, live.at[i]) : NULL;
      if (b) b->marked = true;
      Buffer *owner = b && b->owner ? ctx->buffers.at[b->owner - 1] : NULL;
      if (owner) owner->marked = true;
    }
    ok = store_sweep(ctx->store, live.at, live.len);
  }
  if (ok) {
    Map old = ctx->realized;
    ctx->realized = realized, realized = old;
    for (size_t i = 0; i < ctx->buffers.len; i++) if (ctx->buffers.at[i] && !ctx->buffers.at[i]->marked && !ctx->buffers.at[i]->pins) buffer_free(ctx, (int64_t)i);
  }
  map_free(&realized);
  mem_free(&ctx->mem, keep);
  vec_free(&ctx->mem, &roots), vec_free(&ctx->mem, &live);
  return ok ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "collect: out of memory");
}

/* ---- a kernel of the user's, given as text */
typedef struct Slots { TgContext *ctx; TgTensor *const *arg; int n; bool *written; } Slots;
static bool slots_check(Slots *s, const UOpVec *nodes) {      /* every PARAM is an argument, of its dtype and size; which ones are stored to */
  TgContext *ctx = s->ctx;
  for (size_t i = 0; i < nodes->len; i++) {
    const UOp *u = nodes->at[i], *to = u->op == OPS_STORE ? u->src[0]->src[0] : NULL;
    if (to && to->op == OPS_PARAM && to->arg.param.slot >= 0 && to->arg.param.slot < s->n) s->written[to->arg.param.slot] = true;
    if (u->op != OPS_PARAM) continue;
    int64_t slot = u->arg.param.slot;
    if (slot < 0 || slot >= s->n) return error_set(&ctx->err, TG_ERR_VALUE, "kernel: PARAM %lld, but %d tensors are given", (long long)slot, s->n), false;
    const UOp *t = s->arg[slot]->uop;
    if (dims_symbolic(t->shape)) return error_set(&ctx->err, TG_ERR_SHAPE, "kernel: tensor %lld has a symbolic size", (long long)slot), false;
    if (t->dtype != u->dtype) return error_set(&ctx->err, TG_ERR_DTYPE, "kernel: PARAM %lld is %s, the tensor %s", (long long)slot, dtype_name((DType)u->dtype), dtype_name((DType)t->dtype)), false;
    if (dim_product(ctx->store, t->shape) != u->arg.param.nelem)
      return error_set(&ctx->err, TG_ERR_SHAPE, "kernel: PARAM %lld has %lld elements, the tensor %lld", (long long)slot, (long long)u->arg.param.nelem, (long long)dim_product(ctx->store, t->shape)), false;
  }
  return true;
}
/* What is written becomes a whole buffer of its own; a written buffer is given once. */
static TgStatus slots_ready(Slots *s, void **bufs) {
  TgContext *ctx = s->ctx;
  Buffer **b = mem_alloc(&ctx->mem, ((size_t)s->n + 1) * sizeof *b);
  if (!b) return error_set(&ctx->err, TG_ERR_NOMEM, "kernel: out of memory");
  for (int i = 0; i < s->n && !ctx->err.status; i++) {
    TgTensor *t = s->arg[i];
    if (s->written[i] && !place_ready(t, true)) break;
    if (s->written[i] && !in_memory(ctx, t->uop)) error_set(&ctx->err, TG_ERR_STATE, "kernel: tensor %d is written, and is a part of another; give the whole", i);
    else if ((b[i] = value_of(ctx, t, 0)) != NULL) bufs[i] = b[i]->data;
  }
  for (int i = 0; i < s->n; i++)
    for (int k = 0; k < s->n && !ctx->err.status; k++)
      if (i != k && s->written[i] && b[i] == b[k]) error_set(&ctx->err, TG_ERR_VALUE, "kernel: tensors %d and %d are one memory, which is written", i, k);
  mem_free(&ctx->mem, b);
  return ctx->err.status;
}
static TgStatus kernel_run(TgContext *ctx, const char *text, Slots *s) {
  UOpText t = {.mem = &ctx->mem};
  Plan p = {.sched = {.nkernel = 1}};
  CachedProgram *prog = NULL;
  SpecError bad = {0};
  UOpVec nodes = {0};
  void **bufs = mem_alloc(&ctx->mem, ((size_t)s->n + 1) * sizeof *bufs);
  UOpStore *st = store_new(&ctx->mem);
  s->written = mem_alloc(&ctx->mem, (size_t)s->n + 1);
  bool ok = st && bufs && s->written;
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "kernel: out of memory");
  if (ok) store_set_env(st, &ctx->passes.rewrites), ok = uop_parse(&t, st, &ctx->mem, text, strlen(text), &ctx->err);
  if (ok && (t.program.n || t.roots.len != 1 || !spec_graph(st, &ctx->mem, GRAPH_KERNEL, t.roots.at, t.roots.len, &bad)))
    ok = false, error_set(&ctx->err, TG_ERR_VALUE, "kernel: the text is no kernel graph%s%s%s%s", bad.node ? ": " : "", bad.node ? op_name((Ops)bad.node->op) : "", bad.node ? ": " : "", bad.why);
  ok = ok && uop_toposort(st, &ctx->mem, t.roots.at, 1, &nodes) && slots_check(s, &nodes) && !slots_ready(s, bufs);
  UOp *kernel = ok ? t.roots.at[0] : NULL;
  if (ok && !(ctx->dev.backend->has & HAS_CHECKS)) ok = (kernel = guard_accesses(st, &ctx->mem, kernel)) != NULL;
  if (ok) {
    p.sched.store = st, p.prog = &prog;
    p.sched.kernel = &(SchedKernel){.ast = kernel, .narg = s->n};
    ok = !programs_make(ctx, &p) && !ctx->dev.backend->launch(&ctx->dev, prog->prog, bufs, NULL) && !ctx->dev.backend->sync(&ctx->dev);
    ctx->counters.kernels += ok, ctx->counters.launches += ok;
  }
  for (int i = 0; ok && i < s->n; i++) {
    UOp *base = s->written[i] ? uop_base(s->arg[i]->uop) : NULL;
    ok = !base || !memory_stored(ctx, &base, 1);
  }
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "kernel: out of memory, or the device refuses it");
  vec_free(&ctx->mem, &nodes);
  uop_text_free(&t);
  mem_free(&ctx->mem, bufs), mem_free(&ctx->mem, s->written);
  store_free(st);
  return ok ? TG_OK : ctx->err.status;
}
TgStatus tg_kernel(TgContext *ctx, const char *text, TgTensor *const *args, int n) {
  if (!ctx) return TG_ERR_VALUE;
  if (!ctx->dev_open) return error_set(&ctx->err, TG_ERR_DEVICE, "kernel: no device is open");
  if (capture_refuses(ctx, "kernel")) return TG_ERR_STATE;
  if (!text || n < 1 || !args) return error_set(&ctx->err, TG_ERR_VALUE, "kernel: %s", text ? "no tensors" : "no text");
  for (int i = 0; i < n; i++)
    if (!args[i] || args[i]->ctx != ctx) return error_set(&ctx->err, TG_ERR_VALUE, "kernel: tensor %d is NULL or of another context", i);
  return kernel_run(ctx, text, &(Slots){.ctx = ctx, .arg = args, .n = n});
}
