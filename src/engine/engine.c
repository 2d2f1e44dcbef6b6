/* engine.c: joins the stages of the compiler. In: tensors to realize. Out: their values in buffers.
 * tg_realize = schedule -> programs -> launches. This file has the plans, which are schedules with their
 * programs (programs.c), kept under the bytes of their graphs (graph_copy.c). launch.c runs plans;
 * kernel.c has the kernels that a user gives as text. */
#include "engine/graph_copy.h"
#include "runtime/bundle.h"
#include "runtime/comm.h"
#include "tensor/front.h"
#include <stdio.h>
#include <string.h>

/* Number of plans in the cache. A captured function keeps its own plans. */
enum { MOST_PLANS = 512 };

typedef struct Engine {
  Map plans;
  ProgramCache programs;
  Plan *newest, *oldest;
  size_t nplan;
  uint64_t numbered; /* number of plans made so far */
  SlabPool slabs;
  GraphNodes nodes;
} Engine;

TgStatus engine_open(TgContext *ctx) {
  Engine *e = mem_alloc(&ctx->mem, sizeof *e);
  if (!e) return error_no_memory(&ctx->err, "open");
  map_init(&e->plans, &ctx->mem), programs_init(&e->programs, &ctx->mem);
  ctx->engine = e;
  return devices_open(ctx);
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

ProgramCache *engine_programs(TgContext *ctx) { return &((Engine *)ctx->engine)->programs; }

GraphNodes *engine_graph_nodes(TgContext *ctx) {
  return ctx->engine ? &((Engine *)ctx->engine)->nodes : NULL;
}

/* ---- the cache of plans */
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

/* A graph may have two plans: one adds up in the usual order, the other in an order that no batch changes. */
static uint64_t plan_hash(const TgContext *ctx, const void *key, size_t nkey) {
  return hash_bytes(ctx->env.invariant ? 5 : 3, key, nkey);
}

/* Removes p from the cache. If nothing runs p, its programs are released too. */
static void plan_forget(TgContext *ctx, Plan *p) {
  Engine *e = ctx->engine;
  Plan *head = plans_at(e, p->hash), **link = &head;
  while (*link && *link != p)
    link = &(*link)->next;
  if (*link) *link = p->next;
  map_replace_ptr(&e->plans, p->hash, head);
  plan_unlisted(e, p);
  e->nplan--;
  plan_release(ctx, p);
}

/* A context may meet new shapes for ever, so only the most recently used plans are kept. */
static void plans_trimmed(TgContext *ctx) {
  Engine *e = ctx->engine;
  while (e->nplan > MOST_PLANS)
    plan_forget(ctx, e->oldest);
}

/* Empties the cache. What a captured function runs stays until the function is freed. */
static void cache_clear(TgContext *ctx) {
  Engine *e = ctx->engine;
  while (e->oldest)
    plan_forget(ctx, e->oldest);
  map_free(&e->plans), programs_forget(ctx, &e->programs);
}

void tg_cache_clear(TgContext *ctx) {
  if (ctx && ctx->engine) cache_clear(ctx);
}

void engine_close(TgContext *ctx) {
  if (ctx->engine) {
    cache_clear(ctx);
    slabs_given_back(ctx, NULL);
    vec_free(&ctx->mem, &((Engine *)ctx->engine)->slabs.unused);
    str_free(&((Engine *)ctx->engine)->programs.prelude);
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

/* ---- memory of temporaries */
/* State while temporaries get slabs: the free slabs by number, and for each kernel the slabs whose
 * temporary is last read there. */
typedef struct SlabList {
  Vec(int) unused;
  /* index: kernel + 1 (a temporary that no kernel reads has last = -1); index: slab. -1: end of list */
  int *first_after, *next;
  int done; /* slabs whose last reader precedes this kernel are free */
} SlabList;

static bool slab_freed(TgMem *mem, SlabList *l, int slab) {
  if (!vec_push(mem, &l->unused, slab)) return false;
  size_t at = l->unused.len - 1;
  for (; at && l->unused.at[at - 1] > slab; at--)
    l->unused.at[at] = l->unused.at[at - 1];
  l->unused.at[at] = slab;
  return true;
}

/* Returns the place, among the free slabs, of the smallest with enough room, otherwise 0. -1: no slab is
 * free. */
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
  /* If first is less than `done`, the temporary is out of order because its kernel was removed. It needs a
   * new slab, because the free ones may be in use when it is written. */
  int at = temp->first < l->done ? -1 : slab_best(l, p, bytes);
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

/* Temporaries that do not live at the same time share a slab. They are numbered in the order of their
 * first writes. */
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
  return ok ? TG_OK : error_no_memory(&ctx->err, "realize");
}

/* Moves the kernels to a store of their own. The scheduler's other nodes take much more memory, and nobody
 * reads them again. */
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

/* Notes in p->f64 the first operation in f64, for the error message of a device without f64, because
 * kernels do not have the user's shapes. */
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
      snprintf(p->f64, sizeof p->f64, "%s of shape %.60s", op_name((Ops)u->op),
               shape_text(ctx->store, u->shape).s);
  }
  vec_free(&ctx->mem, &order);
  return ok;
}

/* Schedules the roots. They are in *st, which the schedule owns after success. most_stages: of a kernel;
 * 0: the usual limit. */
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
    /* Here only what the roots become and which memories the plan takes is needed. */
    if (p->dev->remote) {
      p->remote = p->sched.nkernel;
      p->sched.nkernel = 0;
    }
    if (!kernels_alone(ctx, &p->sched)) s = error_no_memory(&ctx->err, "realize");
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
  return p->prog ? programs_make(ctx, p) : error_no_memory(&ctx->err, "realize");
}

static TgStatus plan_tried(TgContext *ctx, Graph *g, Plan *p) {
  UOpVec root = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < g->roots.len; i++)
    ok = vec_push(&ctx->mem, &root, graph_root(g, i));
  ok = ok && f64_noted(ctx, g, root.at, root.len, p);
  TgStatus s = ok ? plan_scheduled(ctx, &g->st, &root, 0, p) : error_no_memory(&ctx->err, "realize");
  if (!s && !p->cyclic) s = plan_programs(ctx, p);
  vec_free(&ctx->mem, &root);
  return s;
}

static int same_variable(void *user, int var) {
  (void)user;
  return var;
}

/* Schedules the graph of the plan's key anew, with at most `most_stages` stages in a kernel. The new nodes
 * have other numbers, so the kernels do not tell which nodes they compute. */
static TgStatus plan_cut(TgContext *ctx, Plan *p, int most_stages) {
  UOpVec root = {0};
  UOpStore *st = store_new(&ctx->mem);
  mem_free(&ctx->mem, p->prog);
  p->prog = NULL;
  schedule_free(&p->sched, &ctx->mem);
  if (st) store_set_env(st, &ctx->passes.rewrites), store_set_dims(st, ctx->dims);
  Renumber same = {ctx->store, same_variable, NULL};
  bool ok = st && graph_of_key(&ctx->mem, p->key, p->nkey, st, &same, &root);
  TgStatus s = ok ? plan_scheduled(ctx, &st, &root, most_stages, p) : error_no_memory(&ctx->err, "realize");
  for (int k = 0; !s && k < p->sched.nkernel; k++)
    p->sched.kernel[k].nnode = 0;
  if (!s && !p->cyclic) s = plan_programs(ctx, p);
  store_free(st), vec_free(&ctx->mem, &root);
  return s;
}

/* If a kernel of a schedule cannot be lowered, the schedule is made again with smaller kernels. Such a
 * failure is a defect of this library, but no reason to end a program. With TG_SPEC set, it is an error. */
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

/* Returns the plan of the same graph for another device with the same target. NULL: there is none. */
static Plan *plan_elsewhere(TgContext *ctx, const Plan *p) {
  Plan *found = NULL;
  for (int i = 0; i < device_count(ctx) && !found; i++) {
    const Device *d = device_at(ctx, i);
    Target as = d->target;
    as.name = p->dev->target.name;
    if (i == p->dev->index || !d->of_rank || memcmp(&as, &p->dev->target, sizeof as)) continue;
    memcpy(p->key, &i, sizeof i); /* a key begins with its device */
    found = plans_at(ctx->engine, plan_hash(ctx, p->key, p->nkey));
    while (found && (found->nkey != p->nkey || memcmp(found->key, p->key, p->nkey)))
      found = found->next;
  }
  memcpy(p->key, &p->dev->index, sizeof p->dev->index);
  return found;
}

/* Makes p, a plan for another rank's device, from the plan `of` for an equal device. Only what is needed
 * here is copied: which temporaries the roots are, when they are made, and the memories that the plan
 * takes, as arguments of a single kernel. */
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
  if (!s->root || !s->kernel || !arg || !s->temp) return error_no_memory(&ctx->err, "realize");
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

/* Makes a plan. It enters the cache only when it is complete. */
static TgStatus plan_make(TgContext *ctx, Graph *g, uint64_t hash, Plan **out) {
  Engine *e = ctx->engine;
  Plan *p = mem_alloc(&ctx->mem, sizeof *p);
  *out = NULL;
  if (!p) return error_no_memory(&ctx->err, "realize");
  p->refs = 1;
  p->dev = device_at(ctx, g->device);
  p->hash = hash;
  p->number = ++e->numbered;
  TgStatus s = TG_OK;
  if ((p->key = mem_alloc(&ctx->mem, g->key.len + 1))) {
    memcpy(p->key, g->key.at, g->key.len);
    p->nkey = g->key.len;
  } else
    s = error_no_memory(&ctx->err, "realize");
  double begin = ctx->inside ? time_now_s() : 0;
  const Plan *alike = !s && p->dev->remote ? plan_elsewhere(ctx, p) : NULL;
  if (!s) s = alike ? plan_as(ctx, p, alike) : plan_lowered(ctx, g, p);
  /* A plan that is kept needs programs and arguments, but no graph. */
  if (p->sched.store) {
    store_free(p->sched.store);
    p->sched.store = NULL;
  }
  if (!s && !p->cyclic && !p->dev->remote) s = memory_plan(ctx, p);
  if (!s) {
    p->next = plans_at(e, hash);
    if (!map_put_ptr(&e->plans, (uintptr_t)hash, p)) s = error_no_memory(&ctx->err, "realize");
  }
  if (!s && !p->cyclic && ctx->inside) inside_made(ctx, p, (time_now_s() - begin) * 1e6);
  if (s) return plan_release(ctx, p), s;
  plan_listed(e, p), e->nplan++;
  *out = p;
  return TG_OK;
}

Plan *plan_get(TgContext *ctx, Graph *g) {
  Engine *e = ctx->engine;
  uint64_t hash = plan_hash(ctx, g->key.at, g->key.len);
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
