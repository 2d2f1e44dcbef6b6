/* engine.c: joins the stages. In: tensors to realize. Out: their values in buffers. tg_realize = schedule ->
 * programs -> launches. Here: plans, which are schedules with their programs, kept under the bytes of the
 * graph (graph_copy.c). launch.c runs them; kernel.c has the kernels that a user gives as text. */
#include "codegen/codegen.h"
#include "engine/graph_copy.h"
#include "runtime/bundle.h"
#include "runtime/comm.h"
#include "tensor/front.h"
#include "uop/dims.h"
#include "uop/text.h"
#include <stdio.h>
#include <string.h>

/* Plans that are kept; what runs in a captured function is kept by that. */
enum { MOST_PLANS = 512 };

typedef struct Engine {
  Map plans, programs;
  Plan *newest, *oldest;
  size_t nplan;
  uint64_t numbered; /* plans made */
  SlabPool slabs;
  GraphNodes nodes;
  Str prelude;
  const Renderer *prelude_of;
} Engine;

TgStatus engine_open(TgContext *ctx) {
  Engine *e = mem_alloc(&ctx->mem, sizeof *e);
  if (!e) return error_set(&ctx->err, TG_ERR_NOMEM, "open: out of memory");
  map_init(&e->plans, &ctx->mem), map_init(&e->programs, &ctx->mem), str_init(&e->prelude, &ctx->mem);
  ctx->engine = e;
  return devices_open(ctx);
}

static void program_forget(TgContext *ctx, CachedProgram *p) {
  mem_free(&ctx->mem, p->key), mem_free(&ctx->mem, p->var), mem_free(&ctx->mem, p);
}

void program_release(TgContext *ctx, CachedProgram *p) {
  if (!p || --p->refs) return;
  p->dev->backend->unload(p->dev, p->prog);
  program_forget(ctx, p);
}

static void program_withdraw(TgContext *ctx, CachedProgram *p);

/* A plan has it no more. What only the cache still has goes, or new shapes would fill that for ever. */
static void program_left(TgContext *ctx, CachedProgram *p) {
  if (p && p->cached && p->refs == 2)
    program_withdraw(ctx, p);
  else
    program_release(ctx, p);
}

void plan_release(TgContext *ctx, Plan *p) {
  if (!p || --p->refs > 0) return;
  for (int k = 0; p->prog && k < p->sched.nkernel; k++)
    program_left(ctx, p->prog[k]);
  mem_free(&ctx->mem, p->key), mem_free(&ctx->mem, p->prog), mem_free(&ctx->mem, p->slab_of);
  mem_free(&ctx->mem, p->slab_bytes), mem_free(&ctx->mem, p->slab_room), mem_free(&ctx->mem, p->slab);
  kernel_origins_forget(ctx, p);
  schedule_free(&p->sched, &ctx->mem);
  mem_free(&ctx->mem, p);
}

SlabPool *engine_slabs(TgContext *ctx) { return ctx->engine ? &((Engine *)ctx->engine)->slabs : NULL; }

GraphNodes *engine_graph_nodes(TgContext *ctx) {
  return ctx->engine ? &((Engine *)ctx->engine)->nodes : NULL;
}

/* ---- the cache of plans */
/* What is left of a chain stands for it; the key needs no memory, because it is there. */
static void map_left(Map *m, uint64_t hash, void *head) {
  if (head)
    map_put_ptr(m, (uintptr_t)hash, head);
  else
    map_drop(m, hash);
}

static Plan *plans_at(Engine *e, uint64_t hash) {
  uint64_t v = 0;
  map_get(&e->plans, hash, &v);
  return (Plan *)(uintptr_t)v;
}

static void plan_unlisted(Engine *e, Plan *p) {
  *(p->newer ? &p->newer->older : &e->newest) = p->older;
  *(p->older ? &p->older->newer : &e->oldest) = p->newer;
  p->newer = p->older = NULL;
}

static void plan_listed(Engine *e, Plan *p) {
  p->older = e->newest;
  *(e->newest ? &e->newest->newer : &e->oldest) = p;
  e->newest = p;
}

/* p leaves the cache, and where nothing runs it, its programs too. */
static void plan_forget(TgContext *ctx, Plan *p) {
  Engine *e = ctx->engine;
  Plan *head = plans_at(e, p->hash), **link = &head;
  while (*link && *link != p)
    link = &(*link)->next;
  if (*link) *link = p->next;
  map_left(&e->plans, p->hash, head);
  plan_unlisted(e, p);
  e->nplan--;
  plan_release(ctx, p);
}

/* A context that meets new shapes for ever keeps the plans that it asked for last. */
static void plans_trimmed(TgContext *ctx) {
  Engine *e = ctx->engine;
  while (e->nplan > MOST_PLANS)
    plan_forget(ctx, e->oldest);
}

/* What a captured function runs stays until that is freed. */
static void cache_clear(TgContext *ctx) {
  Engine *e = ctx->engine;
  while (e->oldest)
    plan_forget(ctx, e->oldest);
  for (size_t i = 0; i < e->programs.cap; i++)
    if (e->programs.at[i].used)
      for (CachedProgram *p = (CachedProgram *)(uintptr_t)e->programs.at[i].val, *n; p; p = n) {
        n = p->next;
        p->cached = false;
        program_release(ctx, p);
      }
  map_free(&e->plans), map_free(&e->programs);
}

void tg_cache_clear(TgContext *ctx) {
  if (ctx && ctx->engine) cache_clear(ctx);
}

void engine_close(TgContext *ctx) {
  if (ctx->engine) {
    cache_clear(ctx);
    slabs_given_back(ctx, NULL);
    vec_free(&ctx->mem, &((Engine *)ctx->engine)->slabs.unused);
    str_free(&((Engine *)ctx->engine)->prelude);
    mem_free(&ctx->mem, ((Engine *)ctx->engine)->nodes.at);
    mem_free(&ctx->mem, ctx->engine);
    ctx->engine = NULL;
  }
  devices_close(ctx);
  comm_leave(ctx->comm);
  ctx->comm = NULL;
  bundle_free(ctx->bundle);
  ctx->bundle = NULL;
}

/* ---- bundles of compiled kernels */
const void *tg_bundle(TgContext *ctx, size_t *nbytes) {
  if (!ctx || !nbytes) return NULL;
  *nbytes = 0;
  TG_REQUIRE(ctx, ctx->dev_open, TG_ERR_DEVICE, "bundle: no device is open");
  Str *out = &ctx->bundle_text;
  str_free(out), str_init(out, &ctx->mem);
  Bundle *b = bundle_new(&ctx->mem);
  bool ok = b && bundle_add(b, ctx->bundle);
  for (int i = 0; ok && i < device_count(ctx); i++) {
    Device *d = device_at(ctx, i);
    if (d->backend->bundled) ok = d->backend->bundled(d, b);
  }
  ok = ok && bundle_write(b, out);
  bundle_free(b);
  TG_REQUIRE(ctx, ok, TG_ERR_NOMEM, "bundle: out of memory");
  *nbytes = out->len;
  return out->at;
}

TgStatus tg_bundle_use(TgContext *ctx, const void *bytes, size_t nbytes) {
  if (!ctx) return TG_ERR_VALUE;
  TG_REQUIRE_OR(ctx, bytes, TG_ERR_VALUE, TG_ERR_VALUE, "bundle: no bytes");
  return bundle_read(&ctx->mem, &ctx->err, bytes, nbytes, &ctx->bundle);
}

/* ---- programs */
static bool kernel_key(Str *key, const Device *dev, UOpStore *st, TgMem *mem, UOp *ast) {
  UOpVec order = {0};
  UOpMap *num = uop_map_begin(st, st);
  bool ok = num && uop_toposort(st, mem, &ast, 1, &order);
  str_putn(key, (const char *)&dev->index, sizeof dev->index);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    key_put(key, u);
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
  for (CachedProgram *p = (CachedProgram *)(uintptr_t)v; p; p = p->next)
    if (p->nkey == key->len && !memcmp(p->key, key->at, key->len)) return p;
  return NULL;
}

static void kernel_print(TgContext *ctx, const Schedule *s, int k) { /* TG_DEBUG=5 */
  Str t;
  str_init(&t, NULL);
  uop_print(&t, s->store, NULL, &s->kernel[k].ast, 1);
  context_say(ctx, "%s", str_text(&t));
  str_free(&t);
}

/* TG_DEBUG=6: one line per UOp, loops indented. */
static void linear_print(TgContext *ctx, const Linear *lin) {
  int depth = 0;
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i];
    Str t;
    str_init(&t, NULL);
    uop_expr(&t, u, 6);
    if (u->op == OPS_END) depth--;
    context_say(ctx, "%4d %*s%s x%d  %s\n", i, 2 * TG_MAX(depth, 0), "", op_name((Ops)u->op), u->lanes,
                str_text(&t));
    if (u->op == OPS_RANGE) depth++;
    str_free(&t);
  }
}

/* The line over each kernel: what it is called, for which language, how it is launched and shaped. */
static void header_put(Str *out, const Renderer *r, const Linear *lin, const char *opts) {
  str_printf(out, "/* %s, %s, ", lin->name, r->name);
  if (r->has_grid)
    str_printf(out, "grid %d %d %d of blocks %d %d %d", lin->global[0], lin->global[1], lin->global[2],
               lin->local[0], lin->local[1], lin->local[2]);
  else
    str_printf(out, "%d thread%s", TG_MAX(lin->nthread, 1), lin->nthread > 1 ? "s" : "");
  str_printf(out, ", %s%s */\n", *opts ? "opts " : "no opts", opts);
}

static void kernel_seen(TgContext *ctx, const Renderer *r, const Linear *lin, const char *opts,
                        const char *source) {
  TgKernelText k = {.size = sizeof k,
                    .name = lin->name,
                    .language = r ? r->name : "",
                    .opts = opts,
                    .source = source,
                    .threads = TG_MAX(lin->nthread, 1)};
  for (int i = 0; i < 3; i++) {
    k.grid[i] = TG_MAX(lin->global[i], 1);
    k.block[i] = TG_MAX(lin->local[i], 1);
  }
  ctx->seen(&k, ctx->seen_user);
}

const char *tg_source_prelude(TgContext *ctx) {
  if (!ctx || !ctx->dev_open) return "";
  const Renderer *r = device_at(ctx, ctx->default_device)->backend->renderer;
  if (!r) return "";
  Str *s = &((Engine *)ctx->engine)->prelude;
  if (s->oom) str_free(s), str_init(s, &ctx->mem);
  if (r != ((Engine *)ctx->engine)->prelude_of) str_free(s), str_init(s, &ctx->mem);
  if (!s->len) r->prelude(s);
  ((Engine *)ctx->engine)->prelude_of = r;
  if (!s->oom) return str_text(s);
  error_set(&ctx->err, TG_ERR_NOMEM, "source prelude: out of memory");
  return NULL;
}

/* in the order in which the program asks for them */
static bool program_vars(TgContext *ctx, const Linear *lin, CachedProgram *p) {
  for (int i = 0; i < lin->n; i++)
    p->nvar += lin->at[i]->op == OPS_VAR;
  if (!p->nvar) return true;
  if (!(p->var = mem_alloc(&ctx->mem, (size_t)p->nvar * sizeof *p->var))) return false;
  for (int i = 0, n = 0; i < lin->n; i++)
    if (lin->at[i]->op == OPS_VAR) p->var[n++] = var_number(lin->at[i]);
  return true;
}

/* The programs of a plan, while they are made. */
typedef struct Making {
  TgContext *ctx;
  Plan *plan;
  CodegenOptions options;
  Arena arena;
  Vec(struct Todo) todo;
  Map made; /* graph of a kernel -> its program: equal kernels of a schedule are one graph */
} Making;

/* A program that is made but not compiled yet. Its list goes once its text is there, unless the device runs
 * lists: the memory of one kernel, which is in the caches, is that of the next. */
typedef struct Todo {
  Making *of;
  int kernel; /* of the plan */
  bool tried; /* its opts are what TG_BEAM found */
  int64_t opts_before;
  Linear lin;
  UOpStore *st;
  Str source, opts;
  KernelSpec spec;
  CachedProgram *prog;
} Todo;

static void todo_end(Todo *t) { store_free(t->st), str_free(&t->source), str_free(&t->opts); }

static TgStatus todo_lower(Todo *t, const char *opts) {
  Making *m = t->of;
  TgContext *ctx = m->ctx;
  CodegenOptions options = m->options;
  if (opts) options.opts = opts;
  store_free(t->st);
  t->st = NULL;
  Str taken;
  str_init(&taken, &ctx->mem);
  TgStatus s =
      codegen_lower(&ctx->mem, m->plan->sched.kernel[t->kernel].ast, m->plan->sched.store,
                    m->plan->dev->backend->renderer, &options, &m->arena, &t->st, &t->lin, &taken, &ctx->err);
  str_free(&t->opts);
  t->opts = taken;
  return s;
}

/* For a device that would rather have the list, now that it is gone. */
static const Linear *todo_listed(void *user) {
  Todo *t = user;
  Str opts = t->opts;
  str_init(&t->opts, opts.mem);
  Choices *count = &t->of->ctx->passes.opts, now = *count;
  count->taken = t->opts_before; /* the same opts as the first time */
  TgStatus s = todo_lower(t, t->tried ? str_text(&opts) : NULL);
  *count = now;
  str_free(&opts);
  return s ? NULL : &t->lin;
}

/* Where TG_BEAM asks for it, the kernel is lowered again, with the opts that ran fastest. */
static TgStatus todo_tried(Todo *t) {
  Making *m = t->of;
  TgContext *ctx = m->ctx;
  Device *d = m->plan->dev;
  bool tries =
      ctx->env.beam && d->backend->renderer && (d->backend->has & HAS_RUN) && !(d->backend->has & HAS_CHECKS);
  bool counted = ctx->passes.opts.limit >= 0;
  if (!tries || counted || m->options.opts || m->options.noopt) return TG_OK;
  Str best;
  str_init(&best, &ctx->mem);
  UOp *ast = m->plan->sched.kernel[t->kernel].ast;
  TgStatus s = beam_opts(ctx, d, m->plan->sched.store, ast, &m->options, str_text(&t->opts), &best);
  t->tried = !s && strcmp(str_text(&best), str_text(&t->opts));
  if (t->tried) s = todo_lower(t, str_text(&best));
  str_free(&best);
  return s;
}

static TgStatus dtypes_fit(TgContext *ctx, const Plan *plan, const Renderer *r, const Linear *lin) {
  bool has = false;
  for (int i = 0; r && !r->has_f64 && i < lin->n; i++)
    has |= lin->at[i]->dtype == DT_F64;
  if (!has) return TG_OK;
  return error_set(&ctx->err, TG_ERR_DTYPE,
                   "realize: %s is f64, which %s does not compute; cast it to f32, or move it to another "
                   "device (tg_to)",
                   *plan->f64 ? plan->f64 : lin->name, plan->dev->name);
}

/* Each of its opts with its number (TG_OPT_LIMIT), where TG_TRACE asks. */
static void opts_said(Todo *t, const char *opts) {
  Making *m = t->of;
  TgContext *ctx = m->ctx;
  int64_t number = t->opts_before;
  char *origin = ctx->passes.trace_choices ? kernel_origin_asked(ctx, m->plan, t->kernel) : NULL;
  for (const char *at = opts, *end; ctx->passes.trace_choices && *at; at = *end ? end + 2 : end) {
    end = strchr(at, ',');
    if (!end) end = at + strlen(at);
    context_say(ctx, "opt %lld: %.*s of kernel %s (%s)\n", (long long)++number, (int)(end - at), at,
                t->lin.name, origin ? origin : "");
  }
  mem_free(&ctx->mem, origin);
}

/* The kernel as text, and what TG_DEBUG and tg_watch_kernels ask to see of it. */
static TgStatus todo_text(Todo *t) {
  Making *m = t->of;
  TgContext *ctx = m->ctx;
  Plan *plan = m->plan;
  const Renderer *r = plan->dev->backend->renderer;
  t->opts_before = ctx->passes.opts.taken;
  TgStatus s = todo_lower(t, NULL);
  if (*ctx->passes.fallback && ctx->env.debug >= 1)
    context_say(ctx, "%s fewer opts: %s\n", plan->dev->name, ctx->passes.fallback);
  *ctx->passes.fallback = 0;
  if (!s && !m->options.opts) opts_said(t, str_text(&t->opts));
  if (!s) s = todo_tried(t);
  const char *opts = str_text(&t->opts);
  if (!s && ctx->env.debug >= 6) linear_print(ctx, &t->lin);
  if (!s) s = dtypes_fit(ctx, plan, r, &t->lin);
  if (!s && r) header_put(&t->source, r, &t->lin, opts);
  if (!s && r && !r->render(&t->source, &t->lin, &ctx->err))
    s = error_set(&ctx->err, TG_ERR_INTERNAL, "render: kernel %s", t->lin.name);
  ctx->counters.largest_source = TG_MAX(ctx->counters.largest_source, t->source.len);

  if (ctx->env.debug >= 5) kernel_print(ctx, &plan->sched, t->kernel);
  if (ctx->env.debug >= 3) context_say(ctx, "%s %s: opts %s\n", plan->dev->name, t->lin.name, opts);
  if (ctx->env.debug >= 4) context_say(ctx, "%s\n", str_text(&t->source));
  if (!s) inside_kernel(ctx, plan, t->kernel, &t->lin, opts, str_text(&t->source));
  if (!s && ctx->seen) kernel_seen(ctx, r, &t->lin, opts, str_text(&t->source));
  if (t->st) ctx->counters.nodes += store_created(t->st);
  return s;
}

/* An entry of the cache for a program; NULL: out of memory. */
static CachedProgram *program_new(TgContext *ctx, Device *dev, const Str *key, uint64_t hash,
                                  const Linear *lin) {
  CachedProgram *p = mem_alloc(&ctx->mem, sizeof *p);
  if (!p) return NULL;
  p->hash = hash;
  p->dev = dev;
  snprintf(p->name, sizeof p->name, "%s", lin->name);
  if ((p->key = mem_alloc(&ctx->mem, key->len))) {
    memcpy(p->key, key->at, key->len);
    p->nkey = key->len;
  }
  if (p->key && program_vars(ctx, lin, p)) return p;
  program_forget(ctx, p);
  return NULL;
}

static CachedProgram *programs_at(Engine *e, uint64_t hash) {
  uint64_t v = 0;
  map_get(&e->programs, hash, &v);
  return (CachedProgram *)(uintptr_t)v;
}

/* Its text stands for it from here on. */
static void todo_unlist(Todo *t) {
  const TgBackend *be = t->of->plan->dev->backend;
  t->spec = kernel_spec(&t->lin, be->renderer ? str_text(&t->source) : NULL);
  if (be->has & HAS_LISTS) return;
  store_free(t->st);
  t->st = NULL;
  t->lin.at = NULL;
  t->spec.listed = todo_listed;
}

/* The program of kernel k is found, or made and put on the list. Once there it is found by the next equal
 * kernel of this very schedule. */
static TgStatus program_get(Making *m, int k, const Str *key) {
  TgContext *ctx = m->ctx;
  Engine *e = ctx->engine;
  uint64_t hash = hash_bytes(1, key->at, key->len);
  if ((m->plan->prog[k] = program_find(e, key, hash))) {
    ctx->counters.cache_hits++;
    return TG_OK;
  }
  Todo t = {.of = m, .kernel = k};
  str_init(&t.source, &ctx->mem), str_init(&t.opts, &ctx->mem);
  TgStatus s = todo_text(&t);
  if (!s && !(t.prog = program_new(ctx, m->plan->dev, key, hash, &t.lin))) s = TG_ERR_NOMEM;
  if (!s) todo_unlist(&t);
  if (!s && !vec_push(&ctx->mem, &m->todo, t)) s = TG_ERR_NOMEM;
  if (s) {
    if (t.prog) program_forget(ctx, t.prog);
    todo_end(&t);
    return s;
  }
  m->plan->prog[k] = t.prog;
  t.prog->next = programs_at(e, hash);
  t.prog->cached = true;
  return map_put_ptr(&e->programs, (uintptr_t)hash, t.prog) ? TG_OK : TG_ERR_NOMEM;
}

/* Nothing half-made stays in the cache. */
static void program_withdraw(TgContext *ctx, CachedProgram *p) {
  Engine *e = ctx->engine;
  CachedProgram *head = programs_at(e, p->hash), **link = &head;
  while (*link && *link != p)
    link = &(*link)->next;
  if (*link) *link = p->next;
  map_left(&e->programs, p->hash, head);
  if (p->prog) p->dev->backend->unload(p->dev, p->prog); /* of a plan that went, or was never run */
  program_forget(ctx, p);
}

/* All in one call: the device may compile them side by side. */
static TgStatus programs_compile(Making *m) {
  TgContext *ctx = m->ctx;
  Device *d = m->plan->dev;
  size_t n = m->todo.len;
  if (!n) return TG_OK;
  KernelSpec *spec = mem_alloc(&ctx->mem, n * sizeof *spec);
  Program **out = mem_alloc(&ctx->mem, n * sizeof *out);
  TgStatus s = spec && out ? TG_OK : TG_ERR_NOMEM;
  for (size_t i = 0; !s && i < n; i++) {
    spec[i] = m->todo.at[i].spec;
    spec[i].linear = &m->todo.at[i].lin;
    spec[i].user = &m->todo.at[i];
  }
  context_progress(ctx, "compile", 0, (int)n);
  double begin = profile_now(ctx);
  if (!s) s = d->backend->compile(d, spec, (int)n, out);
  profile_span(ctx, "compile", begin, "\"kernels\":%zu", n);
  if (s == TG_ERR_CANCELLED) s = context_cancelled(ctx);
  if (!s) {
    ctx->counters.compiled += n;
    context_progress(ctx, "compile", (int)n, (int)n);
  }
  for (size_t i = 0; !s && i < n; i++) {
    m->todo.at[i].prog->prog = out[i];
    m->todo.at[i].prog->refs = 1;
  }
  mem_free(&ctx->mem, spec), mem_free(&ctx->mem, out);
  return s;
}

static TgStatus program_known(Making *m, int k) {
  Plan *plan = m->plan;
  TgMem *mem = &m->ctx->mem;
  UOp *ast = plan->sched.kernel[k].ast;
  if ((plan->prog[k] = map_get_ptr(&m->made, ast))) {
    m->ctx->counters.cache_hits++;
    return TG_OK;
  }
  Str key;
  str_init(&key, mem);
  TgStatus s = TG_ERR_NOMEM;
  if (kernel_key(&key, plan->dev, plan->sched.store, mem, ast)) s = program_get(m, k, &key);
  str_free(&key);
  if (!s && !map_put_ptr(&m->made, (uintptr_t)ast, plan->prog[k])) s = TG_ERR_NOMEM;
  return s;
}

/* Lowered one after the other, compiled all at once; where anything fails, nothing of it stays. */
TgStatus programs_make(TgContext *ctx, Plan *plan) {
  Making m = {.ctx = ctx, .plan = plan};
  arena_init(&m.arena, &ctx->mem), map_init(&m.made, &ctx->mem);
  TgStatus s = TG_OK;
  m.options = codegen_options(ctx, plan->dev, plan->dev->backend->renderer, NULL);
  double begin = profile_now(ctx);
  for (int k = 0; k < plan->sched.nkernel && !s; k++) {
    if (!(s = context_cancelled(ctx))) s = program_known(&m, k);
    if (!s) context_progress(ctx, "lower", k + 1, plan->sched.nkernel);
  }
  profile_span(ctx, "lower", begin, "\"kernels\":%zu", m.todo.len);
  if (!s) s = context_cancelled(ctx);
  if (!s) s = programs_compile(&m);
  if (!s) s = context_cancelled(ctx);

  for (size_t i = 0; i < m.todo.len; i++) {
    if (s) program_withdraw(ctx, m.todo.at[i].prog);
    todo_end(&m.todo.at[i]);
  }
  for (int k = 0; k < plan->sched.nkernel; k++) {
    if (s)
      plan->prog[k] = NULL;
    else
      plan->prog[k]->refs++;
  }
  vec_free(&ctx->mem, &m.todo), map_free(&m.made);
  arena_free(&m.arena);
  return s ? error_set(&ctx->err, s, "realize: out of memory") : TG_OK;
}

/* Slabs while temporaries are placed: those that are free, in order of their numbers, and for each kernel
 * those whose temporary is read there last. */
typedef struct SlabList {
  Vec(int) unused;
  int *first_after, *next; /* by kernel + 1, as what no kernel reads has -1; by slab; -1: none */
  int done;                /* the slabs of what was read last before this kernel are free */
} SlabList;

static bool slab_freed(TgMem *mem, SlabList *l, int slab) {
  if (!vec_push(mem, &l->unused, slab)) return false;
  size_t at = l->unused.len - 1;
  for (; at && l->unused.at[at - 1] > slab; at--)
    l->unused.at[at] = l->unused.at[at - 1];
  l->unused.at[at] = slab;
  return true;
}

/* Of the free slabs the smallest that has room, else the first: its place among them, -1: none is free. */
static int slab_best(const SlabList *l, const Plan *p, size_t bytes) {
  int best = -1;
  size_t had = 0;
  for (size_t i = 0; i < l->unused.len; i++) {
    size_t room = p->slab_bytes[l->unused.at[i]];
    if (best >= 0 && (room < bytes || (had >= bytes && room >= had))) continue;
    best = (int)i;
    had = room;
  }
  return best;
}

static void slab_take(SlabList *l, Plan *p, int t) {
  const SchedTemp *temp = &p->sched.temp[t];
  size_t bytes = (size_t)temp->nelem * dtype_size(temp->dtype);
  int at = temp->first < l->done ? -1 : slab_best(l, p, bytes); /* of a kernel that went: not in order */
  int slab = at < 0 ? p->nslab++ : l->unused.at[at];
  if (at >= 0) {
    l->unused.len--;
    memmove(l->unused.at + at, l->unused.at + at + 1, (l->unused.len - (size_t)at) * sizeof *l->unused.at);
  }
  p->slab_bytes[slab] = TG_MAX(p->slab_bytes[slab], bytes);
  p->slab_of[t] = slab;
  l->next[slab] = l->first_after[temp->last + 1];
  l->first_after[temp->last + 1] = slab;
}

/* Temporaries that do not live at the same time share a slab. They are numbered in the order in which they
 * are first written. */
static bool slabs_placed(TgMem *mem, SlabList *l, Plan *p) {
  const Schedule *s = &p->sched;
  for (int k = 0; k <= s->nkernel; k++)
    l->first_after[k] = -1;
  l->done = -1;
  for (int t = 0; t < s->ntemp; t++) {
    p->slab_of[t] = -1;
    if (s->temp[t].root >= 0) continue;
    for (; l->done < s->temp[t].first; l->done++)
      for (int slab = l->first_after[l->done + 1]; slab >= 0; slab = l->next[slab])
        if (!slab_freed(mem, l, slab)) return false;
    slab_take(l, p, t);
  }
  return true;
}

static TgStatus memory_plan(TgContext *ctx, Plan *p) {
  Schedule *s = &p->sched;
  TgMem *mem = &ctx->mem;
  size_t n = (size_t)s->ntemp + 1;
  SlabList l = {.first_after = mem_alloc(mem, ((size_t)s->nkernel + 1) * sizeof *l.first_after),
                .next = mem_alloc(mem, n * sizeof *l.next)};
  p->slab_of = mem_alloc(mem, n * sizeof *p->slab_of);
  p->slab_bytes = mem_alloc(mem, n * sizeof *p->slab_bytes);
  p->slab_room = mem_alloc(mem, n * sizeof *p->slab_room);
  p->slab = mem_alloc(mem, n * sizeof *p->slab);
  bool ok = l.first_after && l.next && p->slab_of && p->slab_bytes && p->slab_room && p->slab;
  ok = ok && slabs_placed(mem, &l, p);
  mem_free(mem, l.first_after), mem_free(mem, l.next), vec_free(mem, &l.unused);
  return ok ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
}

/* The kernels alone, in a store of their own: what scheduling made besides is many times larger, and nobody
 * reads it again. */
static bool kernels_alone(TgContext *ctx, Schedule *s) {
  UOpStore *st = store_new(&ctx->mem), *old = s->store;
  UOpMap *to = uop_map_begin(old, st);
  bool ok = st && to;
  for (int k = 0; ok && k < s->nkernel; k++)
    ok = uop_copy(st, old, to, &ctx->mem, s->kernel[k].ast) != NULL;
  for (int k = 0; ok && k < s->nkernel; k++)
    s->kernel[k].ast = uop_map_get(to, s->kernel[k].ast);
  if (ok) ctx->counters.nodes += store_created(old) + store_created(st);
  uop_map_end(old, to);
  if (ok) s->store = st;
  store_free(ok ? old : st);
  return ok;
}

/* What a device without f64 will refuse, should a kernel be left with it: kernels have no shapes of the
 * user's. */
static bool f64_noted(TgContext *ctx, Graph *g, UOp *const *root, size_t n, Plan *p) {
  const Renderer *ren = p->dev->backend->renderer;
  if (!ren || ren->has_f64) return true;
  UOpVec order = {0};
  bool ok = uop_toposort(g->st, &ctx->mem, root, (int)n, &order);
  for (size_t i = 0; ok && i < order.len && !*p->f64; i++) {
    const UOp *u = order.at[i];
    bool made = u->op != OPS_BUFFER && u->op != OPS_PARAM && u->op != OPS_CONST && u->shape;
    bool has = u->dtype == DT_F64;
    for (int j = 0; j < u->nsrc; j++)
      has |= u->src[j]->dtype == DT_F64;
    if (has && made)
      snprintf(p->f64, sizeof p->f64, "%s of shape %.60s", op_name((Ops)u->op), shape_text(u->shape).s);
  }
  vec_free(&ctx->mem, &order);
  return ok;
}

/* The roots stand in *st, which the schedule owns if all goes well. most_stages: of a kernel. */
static TgStatus plan_scheduled(TgContext *ctx, UOpStore **st, const UOpVec *root, int most_stages, Plan *p) {
  Str explain;
  double begin = profile_now(ctx);
  str_init(&explain, &ctx->mem);
  SchedOptions so = sched_options(ctx, p->dev, p->dev->backend->renderer);
  so.explain = ctx->env.debug >= 3 || ctx->inside ? &explain : NULL;
  if (most_stages) so.most_stages = most_stages;
  TgError err = {0};
  TgStatus s = schedule_make(*st, &ctx->mem, root->at, (int)root->len, &so, &p->sched, &err);
  if (!s) {
    *st = NULL;
    ctx->counters.schedules++;
    inside_scheduled(ctx, p, str_text(&explain));
    if (p->dev->remote) { /* what the roots become, and which memories it takes, is all that is needed here */
      p->remote = p->sched.nkernel;
      p->sched.nkernel = 0;
    }
    if (!kernels_alone(ctx, &p->sched)) s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  } else if (s == TG_ERR_STATE) {
    p->cyclic = true;
    s = TG_OK;
  } else
    error_set(&ctx->err, s, "%s", err.msg);
  if (ctx->env.debug >= 3) context_say(ctx, "%s", str_text(&explain));
  str_free(&explain);
  profile_span(ctx, "schedule", begin, "\"roots\":%zu,\"kernels\":%d", root->len, s ? 0 : p->sched.nkernel);
  return s;
}

static TgStatus plan_programs(TgContext *ctx, Plan *p) {
  p->prog = mem_alloc(&ctx->mem, ((size_t)p->sched.nkernel + 1) * sizeof *p->prog);
  return p->prog ? programs_make(ctx, p) : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
}

static TgStatus plan_tried(TgContext *ctx, Graph *g, Plan *p) {
  UOpVec root = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < g->roots.len; i++)
    ok = vec_push(&ctx->mem, &root, graph_root(g, i));
  ok = ok && f64_noted(ctx, g, root.at, root.len, p);
  TgStatus s = ok ? plan_scheduled(ctx, &g->st, &root, 0, p)
                  : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  if (!s && !p->cyclic) s = plan_programs(ctx, p);
  vec_free(&ctx->mem, &root);
  return s;
}

static int same_variable(void *user, int var) {
  (void)user;
  return var;
}

/* The graph of the plan's key, scheduled anew with at most so many stages in a kernel. Its nodes have other
 * numbers than those of the graph, so no kernel says which of these it computes. */
static TgStatus plan_cut(TgContext *ctx, Plan *p, int most_stages) {
  UOpVec root = {0};
  UOpStore *st = store_new(&ctx->mem);
  mem_free(&ctx->mem, p->prog);
  p->prog = NULL;
  schedule_free(&p->sched, &ctx->mem);
  if (st) store_set_env(st, &ctx->passes.rewrites), store_set_dims(st, ctx->dims);
  Renumber same = {ctx->store, same_variable, NULL};
  bool ok = st && graph_of_key(&ctx->mem, p->key, p->nkey, st, &same, &root);
  TgStatus s = ok ? plan_scheduled(ctx, &st, &root, most_stages, p)
                  : error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  for (int k = 0; !s && k < p->sched.nkernel; k++)
    p->sched.kernel[k].nnode = 0;
  if (!s && !p->cyclic) s = plan_programs(ctx, p);
  store_free(st), vec_free(&ctx->mem, &root);
  return s;
}

/* A schedule of which a kernel cannot be lowered is made again with smaller kernels: that is a defect of
 * ours, but no reason for a program to end. TG_SPEC asks to be told of it. */
static TgStatus plan_lowered(TgContext *ctx, Graph *g, Plan *p) {
  static const int fewer[] = {4, 1};
  bool clean = !ctx->err.status;
  TgStatus s = plan_tried(ctx, g, p);
  for (size_t i = 0; clean && s == TG_ERR_INTERNAL && !ctx->passes.spec && i < TG_COUNT(fewer); i++) {
    if (ctx->env.debug >= 1)
      context_say(ctx, "%s: %s: scheduled again with at most %d stage%s in a kernel\n", p->dev->name,
                  ctx->err.msg, fewer[i], fewer[i] > 1 ? "s" : "");
    ctx->err = (TgError){0};
    ctx->passes.cuts++;
    s = plan_cut(ctx, p, fewer[i]);
  }
  return s;
}

/* The plan of the same graph for a device that is planned for alike; NULL: there is none. */
static Plan *plan_elsewhere(TgContext *ctx, const Plan *p) {
  Plan *found = NULL;
  for (int i = 0; i < device_count(ctx) && !found; i++) {
    const Device *d = device_at(ctx, i);
    Target as = d->target;
    as.name = p->dev->target.name;
    if (i == p->dev->index || !d->of_rank || memcmp(&as, &p->dev->target, sizeof as)) continue;
    memcpy(p->key, &i, sizeof i); /* a key begins with its device */
    found = plans_at(ctx->engine, hash_bytes(3, p->key, p->nkey));
    while (found && (found->nkey != p->nkey || memcmp(found->key, p->key, p->nkey)))
      found = found->next;
  }
  memcpy(p->key, &p->dev->index, sizeof p->dev->index);
  return found;
}

/* What is needed of a plan of another rank's device: which temporaries the roots are, when they are made, and
 * which memories it takes, here by one kernel that takes all. */
static TgStatus plan_as(TgContext *ctx, Plan *p, const Plan *of) {
  const Schedule *from = &of->sched;
  Schedule *s = &p->sched;
  int n = TG_MAX(from->nkernel, of->remote), nargs = 0;
  for (int k = 0; k < n; k++)
    nargs += from->kernel[k].narg;
  arena_init(&s->arena, &ctx->mem);
  s->root = arena_array(&s->arena, int64_t, from->nroot + 1);
  s->kernel = arena_array(&s->arena, SchedKernel, 1);
  int64_t *arg = arena_array(&s->arena, int64_t, nargs + 1);
  s->temp = arena_array(&s->arena, SchedTemp, from->ntemp + 1);
  if (!s->root || !s->kernel || !arg || !s->temp)
    return error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  if (from->nroot) memcpy(s->root, from->root, (size_t)from->nroot * sizeof *s->root);
  s->nroot = from->nroot;
  if (from->ntemp) memcpy(s->temp, from->temp, (size_t)from->ntemp * sizeof *s->temp);
  s->ntemp = from->ntemp;
  *s->kernel = (SchedKernel){.arg = arg};
  for (int k = 0; k < n; k++)
    for (int a = 0; a < from->kernel[k].narg; a++)
      if (from->kernel[k].arg[a] < TEMP_BASE) arg[s->kernel->narg++] = from->kernel[k].arg[a];
  p->remote = 1;
  p->cyclic = of->cyclic;
  return TG_OK;
}

/* A plan enters the cache when all of it is there. */
static TgStatus plan_make(TgContext *ctx, Graph *g, uint64_t hash, Plan **out) {
  Engine *e = ctx->engine;
  Plan *p = mem_alloc(&ctx->mem, sizeof *p);
  *out = NULL;
  if (!p) return error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  p->refs = 1;
  p->dev = device_at(ctx, g->device);
  p->hash = hash;
  p->number = ++e->numbered;
  TgStatus s = TG_OK;
  if ((p->key = mem_alloc(&ctx->mem, g->key.len + 1))) {
    memcpy(p->key, g->key.at, g->key.len);
    p->nkey = g->key.len;
  } else
    s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  double begin = ctx->inside ? time_now_s() : 0;
  const Plan *alike = !s && p->dev->remote ? plan_elsewhere(ctx, p) : NULL;
  if (!s) s = alike ? plan_as(ctx, p, alike) : plan_lowered(ctx, g, p);
  /* a plan that is kept needs programs and arguments, no graph */
  if (p->sched.store) {
    store_free(p->sched.store);
    p->sched.store = NULL;
  }
  if (!s && !p->cyclic && !p->dev->remote) s = memory_plan(ctx, p);
  if (!s) {
    p->next = plans_at(e, hash);
    if (!map_put_ptr(&e->plans, (uintptr_t)hash, p))
      s = error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory");
  }
  if (!s && !p->cyclic && ctx->inside) inside_made(ctx, p, (time_now_s() - begin) * 1e6);
  if (s) return plan_release(ctx, p), s;
  plan_listed(e, p), e->nplan++;
  *out = p;
  return TG_OK;
}

Plan *plan_get(TgContext *ctx, Graph *g) {
  Engine *e = ctx->engine;
  uint64_t hash = hash_bytes(3, g->key.at, g->key.len);
  Plan *p = plans_at(e, hash);
  while (p && (p->nkey != g->key.len || memcmp(p->key, g->key.at, p->nkey)))
    p = p->next;
  KernelOrigins *o = origins_wanted(ctx) && !(p && p->origin) ? kernel_origins_new(g) : NULL;
  if (p) {
    ctx->counters.schedule_hits++;
    plan_unlisted(e, p), plan_listed(e, p);
  } else {
    plans_trimmed(ctx);
    kernel_origins_record(ctx, o);
    plan_make(ctx, g, hash, &p);
  }
  plan_shared(ctx, p);
  kernel_origins_put(ctx, o, p);
  return p;
}
