/* programs.c: the programs of a plan's kernels. In: a schedule. Out: for each of its kernels, a program
 * that its device can launch. A kernel is lowered to a list, rendered as text, and compiled together with
 * the other kernels of its plan. Kernels with the same graph share one program, which the cache finds by
 * the bytes of the graph. */
#include "engine/graph_copy.h"
#include "uop/dims.h"
#include <stdio.h>
#include <string.h>

/* ---- the cache */
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

static CachedProgram *programs_at(const ProgramCache *c, uint64_t hash) {
  return map_get_ptr(&c->by_hash, (void *)(uintptr_t)hash);
}

static CachedProgram *program_find(const ProgramCache *c, const Str *key, uint64_t hash) {
  for (CachedProgram *p = programs_at(c, hash); p; p = p->next)
    if (p->nkey == key->len && !memcmp(p->key, key->at, key->len)) return p;
  return NULL;
}

/* Lists the variables in the order in which the program takes them. */
static bool program_vars(TgContext *ctx, const Linear *lin, CachedProgram *p) {
  for (int i = 0; i < lin->n; i++)
    p->nvar += lin->at[i]->op == OPS_VAR;
  if (!p->nvar) return true;
  if (!(p->var = mem_alloc(&ctx->mem, (size_t)p->nvar * sizeof *p->var))) return false;
  for (int i = 0, n = 0; i < lin->n; i++)
    if (lin->at[i]->op == OPS_VAR) p->var[n++] = var_number(lin->at[i]);
  return true;
}

static void program_forget(TgContext *ctx, CachedProgram *p) {
  mem_free(&ctx->mem, p->key), mem_free(&ctx->mem, p->var), mem_free(&ctx->mem, p);
}

/* Makes an entry of the cache for a program. Returns NULL if out of memory. */
static CachedProgram *program_new(TgContext *ctx, Device *dev, const Str *key, uint64_t hash,
                                  const Linear *lin, const Prepack *prepack) {
  CachedProgram *p = mem_alloc(&ctx->mem, sizeof *p);
  if (!p) return NULL;
  p->hash = hash;
  p->dev = dev;
  p->packed = *prepack;
  snprintf(p->name, sizeof p->name, "%s", lin->name);
  if ((p->key = mem_alloc(&ctx->mem, key->len))) {
    memcpy(p->key, key->at, key->len);
    p->nkey = key->len;
  }
  if (p->key && program_vars(ctx, lin, p)) return p;
  program_forget(ctx, p);
  return NULL;
}

/* Removes a program from the cache, for example one that could not be completed. */
static void program_withdraw(TgContext *ctx, CachedProgram *p) {
  ProgramCache *c = engine_programs(ctx);
  CachedProgram *head = programs_at(c, p->hash), **link = &head;
  while (*link && *link != p)
    link = &(*link)->next;
  if (*link) *link = p->next;
  map_replace_ptr(&c->by_hash, p->hash, head);
  if (p->prog) p->dev->backend->unload(p->dev, p->prog); /* its plan was freed, or never ran */
  program_forget(ctx, p);
}

void program_release(TgContext *ctx, CachedProgram *p) {
  if (!p || --p->refs) return;
  p->dev->backend->unload(p->dev, p->prog);
  program_forget(ctx, p);
}

void program_left(TgContext *ctx, CachedProgram *p) {
  if (p && p->cached && p->refs == 2)
    program_withdraw(ctx, p);
  else
    program_release(ctx, p);
}

void programs_init(ProgramCache *c, TgMem *mem) { map_init(&c->by_hash, mem), str_init(&c->prelude, mem); }

void programs_forget(TgContext *ctx, ProgramCache *c) {
  for (size_t i = 0; i < c->by_hash.cap; i++)
    if (c->by_hash.at[i].used)
      for (CachedProgram *p = (CachedProgram *)(uintptr_t)c->by_hash.at[i].val, *n; p; p = n) {
        n = p->next;
        p->cached = false;
        program_release(ctx, p);
      }
  map_free(&c->by_hash);
}

/* ---- output of a kernel for the user */
static void kernel_print(TgContext *ctx, UOpStore *st, UOp *ast) { /* TG_DEBUG=5 */
  Str t;
  str_init(&t, NULL);
  uop_print(&t, st, NULL, &ast, 1);
  context_say(ctx, "%s", str_text(&t));
  str_free(&t);
}

/* Prints one line for each UOp, with loops indented (TG_DEBUG=6). */
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

/* Writes the comment line above a kernel: its name, language, launch shape and opts. */
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
  ProgramCache *c = engine_programs(ctx);
  Str *s = &c->prelude;
  if (s->oom) str_free(s), str_init(s, &ctx->mem);
  if (r != c->prelude_of) str_free(s), str_init(s, &ctx->mem);
  if (!s->len) r->prelude(s);
  c->prelude_of = r;
  if (!s->oom) return str_text(s);
  error_no_memory(&ctx->err, "source prelude");
  return NULL;
}

/* ---- from a kernel to its program */
/* State while the programs of a plan are made. */
typedef struct Making {
  TgContext *ctx;
  Plan *plan;
  UOpStore *graphs; /* the store of the kernels' graphs */
  UOpStore *spare;  /* NULL, or the store of the last kernel's list, which the next kernel takes */
  CodegenOptions options;
  Arena arena;
  Vec(struct Todo) todo;
  Map made; /* graph of a kernel -> its program; equal kernels of a schedule are one graph */
} Making;

/* A program that is made but not compiled yet. Its list is freed once its text exists, unless the device
 * runs lists. */
typedef struct Todo {
  Making *of;
  int kernel; /* number in the plan */
  UOp *ast;
  bool tried;      /* its opts were found by TG_BEAM */
  Prepack prepack; /* stays 0: all copies are made at each launch */
  int64_t opts_before;
  Linear lin;
  UOpStore *st;
  Str source, opts;
  KernelSpec spec;
  CachedProgram *prog;
} Todo;

/* Keeps the store of a list that is not needed any more: its memory is still in the caches. */
static void spare_keep(Todo *t) {
  if (!t->st) return;
  store_free(t->of->spare);
  t->of->spare = t->st;
  t->st = NULL;
}

static void todo_end(Todo *t) { spare_keep(t), str_free(&t->source), str_free(&t->opts); }

static TgStatus todo_lower(Todo *t, const char *opts) {
  Making *m = t->of;
  TgContext *ctx = m->ctx;
  CodegenOptions options = m->options;
  if (opts) options.opts = opts;
  if (t->prepack.stays) options.prepack = &t->prepack;
  if (!t->st) t->st = m->spare, m->spare = NULL;
  Str taken;
  str_init(&taken, &ctx->mem);
  TgStatus s = codegen_lower(&ctx->mem, t->ast, m->graphs, m->plan->dev->backend->renderer, &options,
                             &m->arena, &t->st, &t->lin, &taken, &ctx->err);
  str_free(&t->opts);
  t->opts = taken;
  return s;
}

/* Makes the list again, which was freed, for a device that needs it after all. */
static const Linear *todo_listed(void *user) {
  Todo *t = user;
  Str opts = t->opts;
  str_init(&t->opts, opts.mem);
  Choices *count = &t->of->ctx->passes.opts, now = *count;
  count->taken = t->opts_before; /* so that the same opts are chosen as the first time */
  TgStatus s = todo_lower(t, t->tried ? str_text(&opts) : NULL);
  *count = now;
  str_free(&opts);
  return s ? NULL : &t->lin;
}

/* If TG_BEAM asks for it, lowers the kernel again with the opts that ran fastest. */
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
  TgStatus s = beam_opts(ctx, d, m->graphs, t->ast, &m->options, str_text(&t->opts), &best);
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

/* Prints each opt of a kernel with its number (TG_OPT_LIMIT), if TG_TRACE asks for it. */
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

/* Renders a kernel as text, and shows what TG_DEBUG and tg_watch_kernels ask for. */
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
  if (t->prepack.stays && !t->prepack.n) return s; /* there is nothing to keep */
  if (!s && !m->options.opts) opts_said(t, str_text(&t->opts));
  if (!s) s = todo_tried(t);
  const char *opts = str_text(&t->opts);
  if (!s && ctx->env.debug >= 6) linear_print(ctx, &t->lin);
  if (!s) s = dtypes_fit(ctx, plan, r, &t->lin);
  if (!s && r && !t->prepack.packs) header_put(&t->source, r, &t->lin, opts);
  if (!s && r && !r->render(&t->source, &t->lin, &ctx->err))
    s = error_set(&ctx->err, TG_ERR_INTERNAL, "render: kernel %s", t->lin.name);
  ctx->counters.largest_source = TG_MAX(ctx->counters.largest_source, t->source.len);

  if (ctx->env.debug >= 5) kernel_print(ctx, m->graphs, t->ast);
  if (ctx->env.debug >= 3) context_say(ctx, "%s %s: opts %s\n", plan->dev->name, t->lin.name, opts);
  if (ctx->env.debug >= 4) context_say(ctx, "%s\n", str_text(&t->source));
  if (!s && !t->prepack.packs)
    inside_kernel(ctx, plan, t->kernel, &t->lin, opts, str_text(&t->source), t->prepack.n > 0);
  if (!s && ctx->seen) kernel_seen(ctx, r, &t->lin, opts, str_text(&t->source));
  if (t->st) ctx->counters.nodes += store_created(t->st);
  return s;
}

/* From now on only the text of the kernel is kept. */
static void todo_unlist(Todo *t) {
  const TgBackend *be = t->of->plan->dev->backend;
  t->spec = kernel_spec(&t->lin, be->renderer ? str_text(&t->source) : NULL);
  t->spec.packs = t->prepack.packs;
  if (be->has & HAS_LISTS) return;
  spare_keep(t);
  t->lin.at = NULL;
  t->spec.listed = todo_listed;
}

/* Finds the program of kernel k, whose graph is `ast`, or makes it and puts it on the list. A program on
 * the list is found by the next equal kernel of the same schedule. For a program that makes copies, the
 * key is its text. *out is NULL if prepacked copies are asked for and the kernel has none. */
static TgStatus program_get(Making *m, int k, UOp *ast, Prepack *prepack, Str *key, CachedProgram **out) {
  TgContext *ctx = m->ctx;
  ProgramCache *c = engine_programs(ctx);
  /* two kinds of programs, as in plan_hash */
  uint64_t hash = hash_bytes(m->options.invariant ? 7 : 1, key->at, key->len);
  if (!prepack->packs && (*out = program_find(c, key, hash))) {
    ctx->counters.cache_hits++;
    return TG_OK;
  }
  Todo t = {.of = m, .kernel = k, .ast = ast, .prepack = *prepack};
  str_init(&t.source, &ctx->mem), str_init(&t.opts, &ctx->mem);
  TgStatus s = todo_text(&t);
  bool nothing = !s && prepack->stays && !t.prepack.n;
  *prepack = t.prepack;
  if (!s && !nothing && prepack->packs) {
    key->len = sizeof m->plan->dev->index;
    str_putn(key, t.source.at, t.source.len);
    hash = hash_bytes(2, key->at, key->len);
    *out = program_find(c, key, hash);
    nothing = *out || key->oom;
    if (key->oom) s = TG_ERR_NOMEM;
  }
  if (!s && !nothing && !(t.prog = program_new(ctx, m->plan->dev, key, hash, &t.lin, &t.prepack)))
    s = TG_ERR_NOMEM;
  if (!s && !nothing) todo_unlist(&t);
  if (!s && !nothing && !vec_push(&ctx->mem, &m->todo, t)) s = TG_ERR_NOMEM;
  if (s || nothing) {
    if (t.prog) program_forget(ctx, t.prog);
    todo_end(&t);
    return s;
  }
  *out = t.prog;
  t.prog->next = programs_at(c, hash);
  t.prog->cached = true;
  return map_put_ptr(&c->by_hash, (uintptr_t)hash, t.prog) ? TG_OK : TG_ERR_NOMEM;
}

/* Compiles all programs in one call, so that the device may compile several at the same time. */
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
  if (kernel_key(&key, plan->dev, plan->sched.store, mem, ast))
    s = program_get(m, k, ast, &(Prepack){0}, &key, &plan->prog[k]);
  str_free(&key);
  if (!s && !map_put_ptr(&m->made, (uintptr_t)ast, plan->prog[k])) s = TG_ERR_NOMEM;
  return s;
}

/* Finds or makes the program of a kernel with prepacked copies. The kernel's graph was freed, but the key
 * of its program contains it. */
static TgStatus program_prepacked(Making *m, int k, UOp *ast, Prepack *p, CachedProgram **out) {
  const CachedProgram *whole = m->plan->prog[k];
  Str key;
  str_init(&key, &m->ctx->mem);
  str_putn(&key, (const char *)whole->key, whole->nkey);
  str_putn(&key, (const char *)&p->stays, sizeof p->stays);
  str_putn(&key, "r", 1);
  TgStatus s = key.oom ? TG_ERR_NOMEM : program_get(m, k, ast, p, &key, out);
  str_free(&key);
  return s;
}

static void making_init(Making *m, TgContext *ctx, Plan *plan) {
  *m = (Making){.ctx = ctx, .plan = plan, .graphs = plan->sched.store};
  arena_init(&m->arena, &ctx->mem), map_init(&m->made, &ctx->mem);
  m->options = codegen_options(ctx, plan->dev, plan->dev->backend->renderer, NULL);
}

/* Compiles what was lowered. If anything failed, none of it stays in the cache. */
static TgStatus making_end(Making *m, TgStatus s) {
  TgContext *ctx = m->ctx;
  if (!s) s = context_cancelled(ctx);
  if (!s) s = programs_compile(m);
  if (!s) s = context_cancelled(ctx);
  for (size_t i = 0; i < m->todo.len; i++) {
    if (s) program_withdraw(ctx, m->todo.at[i].prog);
    todo_end(&m->todo.at[i]);
  }
  vec_free(&ctx->mem, &m->todo), map_free(&m->made);
  arena_free(&m->arena);
  store_free(m->spare);
  return s ? error_set(&ctx->err, s, "realize: out of memory") : TG_OK;
}

/* Lowers the kernels one after the other, and compiles them all at once. */
TgStatus programs_make(TgContext *ctx, Plan *plan) {
  Making m;
  TgStatus s = TG_OK;
  making_init(&m, ctx, plan);
  double begin = profile_now(ctx);
  for (int k = 0; k < plan->sched.nkernel && !s; k++) {
    if (!(s = context_cancelled(ctx))) s = program_known(&m, k);
    if (!s) context_progress(ctx, "lower", k + 1, plan->sched.nkernel);
  }
  profile_span(ctx, "lower", begin, "\"kernels\":%zu", m.todo.len);
  s = making_end(&m, s);
  for (int k = 0; k < plan->sched.nkernel; k++) {
    if (s)
      plan->prog[k] = NULL;
    else
      plan->prog[k]->refs++;
  }
  return s;
}

TgStatus programs_prepacked(TgContext *ctx, Plan *plan, Prepacked *each) {
  Making m;
  TgStatus s = TG_OK;
  making_init(&m, ctx, plan);
  m.graphs = store_new(&ctx->mem);
  if (!m.graphs) s = TG_ERR_NOMEM;
  Map first; /* program of the plan -> the first kernel that has it; later kernels are the same */
  map_init(&first, &ctx->mem);
  for (int k = 0; k < plan->sched.nkernel && !s; k++) {
    const CachedProgram *whole = plan->prog[k];
    const size_t device = sizeof plan->dev->index; /* the key begins with the device, before the graph */
    Prepack p = {.stays = each[k].stays, .first = plan->sched.kernel[k].narg, .always = ctx->env.prepack > 1};
    if (!p.stays || (s = context_cancelled(ctx))) continue;
    const Prepacked *same = map_get_ptr(&first, whole);
    if (same && same->stays == p.stays) {
      each[k].run = same->run;
      each[k].pack = same->pack;
      each[k].reads = same->reads;
      continue;
    }
    if (!same && !map_put_ptr(&first, (uintptr_t)whole, &each[k])) s = TG_ERR_NOMEM;
    if (s) break;
    UOp *ast = key_graph(m.graphs, &ctx->mem, whole->key + device, whole->nkey - device);
    s = ast ? program_prepacked(&m, k, ast, &p, &each[k].run) : TG_ERR_NOMEM;
    if (s || !each[k].run) continue;
    Prepacked *known = map_get_ptr(&m.made, each[k].run);
    p.packs = true;
    if (known) {
      each[k].pack = known->pack;
      each[k].reads = known->reads;
    } else if (!(s = program_prepacked(&m, k, ast, &p, &each[k].pack)) && p.list == each[k].run->packed.list)
      each[k].reads = p.reads;
    if (!s && !map_put_ptr(&m.made, (uintptr_t)each[k].run, &each[k])) s = TG_ERR_NOMEM;
  }
  map_free(&first);
  s = making_end(&m, s);
  store_free(m.graphs);
  for (int k = 0; k < plan->sched.nkernel; k++) {
    /* both programs were lowered with the same list of opts */
    bool whole = !s && each[k].run && each[k].pack && each[k].reads;
    if (whole)
      each[k].run->refs++, each[k].pack->refs++;
    else
      each[k].run = each[k].pack = NULL;
  }
  return s;
}
