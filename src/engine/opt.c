/* opt.c: the compiler on text: tg_opt. In: a graph or a program as TG_DUMP writes it. Out: the same after
 * one pass, or after all remaining passes, as text or as source. A text that does not fit the pass is
 * refused by spec.c before the pass sees it. */
#include "engine/engine.h"
#include "runtime/emulators.h"
#include "tensor/front.h"
#include "uop/dims.h"
#include "uop/text.h"

const char *tg_pass_name(int i, const char **stage) {
  bool codegen = i >= (int)schedule_npass;
  if (i < 0 || (size_t)i >= schedule_npass + codegen_npass) return NULL;
  if (stage) *stage = codegen ? "codegen" : "schedule";
  return codegen ? codegen_passes[i - (int)schedule_npass].name : schedule_passes[i].name;
}

typedef struct Job {
  TgContext *ctx;
  TgOptOptions o;
  UOpText text;
  UOpStore *st;   /* holds what the text describes; the schedule may take it over */
  DimTable *dims; /* the variables of the text */
  /* ren: the renderer to lower for; emit: the renderer to write with, NULL: text */
  const Renderer *ren, *emit;
  bool kind, costs; /* only report what the text is; only report what lists of opts cost */
  Arena arena;
  Str *out;
} Job;

static const Device *job_device(const Job *j) {
  return j->ctx->dev_open ? device_at(j->ctx, j->ctx->default_device) : NULL;
}

static const Pass *find(const Pass *table, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}

static TgError *err_of(Job *j) { return &j->ctx->err; }

static bool no_memory(Job *j) { return error_no_memory(err_of(j), "opt"), false; }

static bool misfit(Job *j, const char *who, GraphKind kind, const SpecError *bad) {
  if (!bad->node) return no_memory(j);
  Str s;
  str_init(&s, &j->ctx->mem);
  uop_expr(&s, bad->node, 12);
  error_set(err_of(j), TG_ERR_VALUE, "opt: %s takes a %s graph: %s: %s: %s", who, graph_kind_names[kind],
            op_name((Ops)bad->node->op), bad->why, str_text(&s));
  str_free(&s);
  return false;
}

static bool write_program(Job *j, const Linear *lin) {
  if (j->costs) return true;
  if (!j->emit) return uop_print_list(j->out, lin, &j->ctx->mem) || no_memory(j);
  if (!j->out->len) j->emit->prelude(j->out); /* once, before the first kernel */
  bool ok = j->emit->render(j->out, lin, err_of(j));
  str_put(j->out, "\n");
  return (ok && !j->out->oom) || (!err_of(j)->status && no_memory(j));
}

static bool lower(Job *j, UOp *ast, UOpStore *st) {
  UOpStore *own = NULL;
  Linear lin;
  CodegenOptions co = codegen_options(j->ctx, job_device(j), j->ren, j->o.opts);
  if (j->costs) co.costs = j->out;
  if (codegen_lower(&j->ctx->mem, ast, st, j->ren, &co, &j->arena, &own, &lin, NULL, err_of(j))) return false;
  bool ok = write_program(j, &lin);
  store_free(own);
  return ok;
}

/* Whether a pass can take the text. A function needs exactly the graph that the pass before it makes; a
 * matcher takes any nodes. */
static bool takes(Job *j, const Pass *p) {
  const UOpVec *r = &j->text.roots;
  GraphKind kind = p == codegen_passes ? GRAPH_KERNEL : p[-1].makes;
  SpecError bad, other;
  if (spec_graph(j->st, &j->ctx->mem, kind, r->at, r->len, &bad))
    return r->len == 1 || p->matcher ||
           (error_set(err_of(j), TG_ERR_VALUE, "opt: '%s' takes one kernel, not %zu graphs", p->name, r->len),
            false);
  for (int k = GRAPH_TENSOR; p->matcher && k < GRAPH_LINEAR; k++)
    if (spec_graph(j->st, &j->ctx->mem, (GraphKind)k, r->at, r->len, &other)) return true;
  return misfit(j, p->name, kind, &bad);
}

/* Reads the rest of the kernel's state from the dump. A list of opts in the options replaces the dump's. */
static bool kernel_state(Job *j, Kernel *k, const char *text) {
  const Emulators *e = emulators();
  return !e || !e->kernel_read || e->kernel_read(k, text, !j->o.opts);
}

/* Runs the passes from `first` to p. */
static bool some_passes(Job *j, const char *text, const Pass *first, const Pass *p) {
  TgMem *m = &j->ctx->mem;
  if (!takes(j, first)) return false;
  CodegenOptions co = codegen_options(j->ctx, job_device(j), j->ren, j->o.opts);
  co.passes = NULL; /* a matcher may be given only a part of a graph, which is not checked as a whole */
  Linear lin = {0};
  Str more;
  str_init(&more, m);
  bool ok = true;
  for (size_t i = 0; ok && i < j->text.roots.len; i++) {
    Kernel k = {.st = j->st,
                .mem = m,
                .err = err_of(j),
                .ren = j->ren,
                .sink = j->text.roots.at[i],
                .nthread = 1,
                .opt = &co,
                .arena = &j->arena,
                .linear = &lin};
    str_init(&k.opts, m);
    bool one = j->text.roots.len == 1 && k.sink->op == OPS_SINK;
    ok = kernel_open(&k) && (!one || kernel_state(j, &k, text)) &&
         kernel_passes(&k, first, (size_t)(p - first) + 1);
    ok = ok && (!one || lin.n || kernel_state_print(&k, &more));
    str_free(&k.opts), vec_free(m, &k.list);
    if (ok)
      j->text.roots.at[i] = k.sink;
    else /* an error of the pass itself stays, because the first error is kept */
      error_set(err_of(j), TG_ERR_VALUE, "opt: '%s' cannot do it", p->name);
  }
  if (ok && !lin.n && j->emit)
    ok = (error_set(err_of(j), TG_ERR_VALUE, "opt: '%s' gives a graph; only a program can be emitted as %s",
                    p->name, j->o.emit),
          false);
  else if (ok && lin.n)
    ok = write_program(j, &lin);
  else if (ok)
    ok = uop_print(j->out, j->st, m, j->text.roots.at, j->text.roots.len) || no_memory(j);
  if (ok && more.oom) ok = no_memory(j);
  str_put(j->out, str_text(&more));
  str_free(&more);
  return ok;
}

enum { BEFORE_STAGES = 2 }; /* number of scheduler passes that take a tensor graph */

/* Whether the first pass takes stages. If so, sets up *so to read them from the text. */
static bool takes_stages(Job *j, const Pass *first, const char *text, SchedOptions *so) {
  so->first = first ? first->name : NULL;
  if (!first || first < schedule_passes + BEFORE_STAGES) return false;
  so->text = text;
  so->read = emulators() ? emulators()->stages_read : NULL;
  if (!so->read) error_set(err_of(j), TG_ERR_VALUE, "opt: from '%s': only tg reads stages", first->name);
  return true;
}

/* Schedules a tensor graph, or the stages of one, up to the pass asked for or all the way to programs. */
static bool schedule(Job *j, const Pass *first, const char *text) {
  TgMem *m = &j->ctx->mem;
  SpecError bad;
  SchedOptions so = sched_options(j->ctx, job_device(j), j->ren);
  bool stages = takes_stages(j, first, text, &so);
  if (stages && !so.read) return false;
  if (!stages && !spec_graph(j->st, m, GRAPH_TENSOR, j->text.roots.at, j->text.roots.len, &bad))
    return misfit(j, "schedule", GRAPH_TENSOR, &bad);
  for (size_t i = 0; !stages && i < j->text.roots.len; i++)
    if (!j->text.roots.at[i]->is_tensor)
      return error_set(err_of(j), TG_ERR_VALUE, "opt: a root of the tensor graph has no shape"), false;
  Schedule s;
  so.last = j->o.pass;
  so.graph = j->o.pass ? j->out : NULL;
  if (schedule_make(j->st, m, stages ? NULL : j->text.roots.at, stages ? MOST_ROOTS : (int)j->text.roots.len,
                    &so, &s, err_of(j)))
    return false;
  bool ok = true;
  for (int k = 0; ok && !j->o.pass && k < s.nkernel; k++)
    ok = lower(j, s.kernel[k].ast, s.store);
  j->st = NULL;
  schedule_free(&s, m);
  return ok;
}

static bool say_kind(Job *j) {
  const UOpVec *r = &j->text.roots;
  bool program = j->text.program.at || !r->len;
  SpecError bad;
  int k = program ? GRAPH_LINEAR : GRAPH_TENSOR;
  if (program && !spec_linear(&j->text.program, &j->ctx->mem, &bad))
    return misfit(j, "a renderer", GRAPH_LINEAR, &bad);
  while (k < GRAPH_LINEAR && !spec_graph(j->st, &j->ctx->mem, (GraphKind)k, r->at, r->len, &bad))
    k++;
  if (!program && k == GRAPH_LINEAR) return misfit(j, "a device", GRAPH_KERNEL, &bad);
  if (program)
    str_printf(j->out, "program of %d UOps", j->text.program.n);
  else
    str_printf(j->out, "%s graph of %zu nodes with %zu root%s", graph_kind_names[k], store_count(j->st),
               r->len, r->len == 1 ? "" : "s");
  return true;
}

static bool run(Job *j, const char *text) {
  const Pass *cp = j->o.pass ? find(codegen_passes, codegen_npass, j->o.pass) : NULL,
             *sp = j->o.pass ? find(schedule_passes, schedule_npass, j->o.pass) : NULL;
  if (j->o.pass && !cp && !sp)
    return error_set(err_of(j), TG_ERR_VALUE, "opt: no pass is called '%s'", j->o.pass), false;
  const Pass *first = j->o.from ? find(codegen_passes, codegen_npass, j->o.from) : cp;
  const Pass *sfirst = j->o.from ? find(schedule_passes, schedule_npass, j->o.from) : NULL;
  if (first && !j->o.pass) cp = &codegen_passes[codegen_npass - 1];
  if (j->o.from && !(sfirst && (!j->o.pass || sfirst <= sp)) && !(first && cp && first <= cp))
    return error_set(err_of(j), TG_ERR_VALUE, "opt: from '%s': it is no pass, or one that comes after .pass",
                     j->o.from),
           false;
  if (!uop_parse(&j->text, j->st, &j->ctx->mem, text, strlen(text), err_of(j)))
    return err_of(j)->status ? false : no_memory(j);
  if (j->kind) return say_kind(j);
  const UOpVec *r = &j->text.roots;
  SpecError bad;
  if (j->text.program.at || !r->len) {
    if (!spec_linear(&j->text.program, &j->ctx->mem, &bad))
      return misfit(j, "a renderer", GRAPH_LINEAR, &bad);
    if (j->o.pass)
      return error_set(err_of(j), TG_ERR_VALUE, "opt: '%s' takes a graph, not a program", j->o.pass), false;
    return write_program(j, &j->text.program);
  }
  if (cp) return some_passes(j, text, first, cp);
  if (sp || sfirst || r->at[0]->is_tensor) return schedule(j, sfirst, text);
  if (!spec_graph(j->st, &j->ctx->mem, GRAPH_KERNEL, r->at, r->len, &bad))
    return misfit(j, "codegen", GRAPH_KERNEL, &bad);
  bool ok = true;
  for (size_t i = 0; ok && i < r->len; i++)
    ok = lower(j, r->at[i], j->st);
  return ok;
}

const char *tg_opt_opt(TgContext *ctx, const char *text, const TgOptOptions *options) {
  if (!ctx || !text) return NULL;
  Job j = {.ctx = ctx, .out = &ctx->opt_text};
  TG_OPTIONS(ctx, "opt", TgOptOptions, o, options);
  j.o = o;
  j.ren = ctx->dev_open ? device_at(ctx, ctx->default_device)->backend->renderer : NULL;
  j.kind = o.emit && !strcmp(o.emit, "kind");
  j.costs = o.emit && !strcmp(o.emit, "costs");
  if (o.emit && strcmp(o.emit, "uops") && !j.kind && !j.costs) {
    j.emit = renderer_named(o.emit);
    bool c = j.emit == &renderer_c && (j.ren == &renderer_amx || j.ren == &renderer_dot);
    j.ren = j.emit = c ? j.ren : j.emit; /* C for the machine that the device plans for */
    TG_REQUIRE(ctx, j.emit, TG_ERR_VALUE, "opt: emit '%s': it is uops, c, cuda, metal, costs or kind",
               o.emit);
  }
  if (ctx->err.status) return NULL;
  str_free(&ctx->opt_text), str_init(&ctx->opt_text, &ctx->mem);
  j.st = store_new(&ctx->mem);
  j.dims = dims_new(&ctx->mem, &ctx->err);
  j.text.mem = &ctx->mem;
  arena_init(&j.arena, &ctx->mem);
  bool ok = j.st && j.dims;
  if (ok) {
    store_set_env(j.st, &ctx->passes.rewrites), store_set_dims(j.st, j.dims);
    ok = run(&j, text);
  } else
    no_memory(&j);
  if (ok && j.out->oom) ok = no_memory(&j);
  uop_text_free(&j.text);
  arena_free(&j.arena);
  store_free(j.st), dims_free(j.dims);
  return ok ? str_text(&ctx->opt_text) : NULL;
}
