/* passes.c: the pass table of the scheduler. In: the roots of a tensor graph. Out: stages, then kernels. */
#include "schedule/stage_text.h"
#include "uop/dims.h"
#include <string.h>

typedef struct Run {
  Sched *s;
  UOp **roots;
  int nroots;
  Schedule *out;
} Run;

static bool run_split(void *state) {
  Run *r = state;
  return split_reductions(r->s, r->roots, r->nroots);
}

static bool run_rangeify(void *state) {
  Run *r = state;
  return rangeify(r->s, r->roots, r->nroots);
}

static bool run_align(void *state) {
  Run *r = state;
  return !fuses(r->s->opt) || align(r->s);
}

static bool run_hazards(void *state) {
  Run *r = state;
  return hazards(r->s) && order_stages(r->s) && readers_build(r->s);
}

static bool run_nest(void *state) {
  Run *r = state;
  return !fuses(r->s->opt) || (nest_reductions(r->s, false) && order_stages(r->s));
}

static bool run_nest_divided(void *state) {
  Run *r = state;
  return !fuses(r->s->opt) || (nest_reductions(r->s, true) && order_stages(r->s));
}

static bool run_partial(void *state) {
  Run *r = state;
  return !fuses(r->s->opt) || (partial_sums(r->s) && order_stages(r->s));
}

static bool run_inline(void *state) {
  Run *r = state;
  return !fuses(r->s->opt) || (inline_cheap(r->s) && order_stages(r->s));
}

static bool run_order(void *state) {
  Run *r = state;
  return order_axes(r->s);
}

static bool run_join(void *state) {
  Run *r = state;
  return place_stages(r->s);
}

static bool run_memory(void *state) {
  Run *r = state;
  return !fuses(r->s->opt) || (recompute_or_store(r->s) && narrow_stages(r->s));
}

static bool run_kernels(void *state) {
  Run *r = state;
  return build_kernels(r->s, &r->s->ks, r->out) && in_bands(r->s, r->out) && arguments_begun(r->s, r->out) &&
         parts_joined(r->s, r->out);
}

const Pass schedule_passes[] = {
    /* a running reduction of a long axis is done in parts; a sum of products of bytes is done in 16 bits */
    {"split reductions", .run = run_split, .makes = GRAPH_TENSOR},
    /* tensor graph -> stages over ranges */
    {"rangeify", .run = run_rangeify, .makes = GRAPH_STAGES},
    /* edges from each stage to those that must run before it, and an order */
    {"hazards", .run = run_hazards, .makes = GRAPH_STAGES},
    /* a sum of sums over shifted places becomes one sum */
    {"nest reductions", .run = run_nest, .optional = true, .makes = GRAPH_STAGES},
    /* a reshape between two stages splits their loops alike */
    {"align ranges", .run = run_align, .optional = true, .makes = GRAPH_STAGES},
    /* the same at places for which loops were aligned */
    {"nest again", .run = run_nest_divided, .optional = true, .makes = GRAPH_STAGES},
    /* a reduction that would leave cores idle is done in parts */
    {"partial sums", .run = run_partial, .optional = true, .makes = GRAPH_STAGES},
    /* values that cost less where they are read than in memory are written into their readers */
    {"inline cheap", .run = run_inline, .optional = true, .makes = GRAPH_STAGES},
    /* what is computed from memory is contiguous along the same axis, if its readers go along that axis
     * too */
    {"order axes", .run = run_order, .optional = true, .makes = GRAPH_STAGES},
    /* stages that share a grid share a kernel */
    {"join by level", .run = run_join, .makes = GRAPH_STAGES},
    /* decides where each value that other kernels read is kept, and how wide it is there */
    {"recompute or store", .run = run_memory, .optional = true, .makes = GRAPH_STAGES},
    /* kernel graphs, numbered alike when they are alike */
    {"kernels", .run = run_kernels, .makes = GRAPH_KERNEL},
};
const size_t schedule_npass = TG_COUNT(schedule_passes);

/* The graph that is dumped: first the roots, then the values of the stages, at last the kernels. */
static bool graph_of(void *state, UOpVec *to) {
  Run *r = state;
  TgMem *m = r->s->mem;
  bool ok = true;
  if (r->out->nkernel)
    for (int i = 0; ok && i < r->out->nkernel; i++)
      ok = vec_push(m, to, r->out->kernel[i].ast);
  else if (r->s->stages.len)
    for (size_t i = 0; ok && i < r->s->stages.len; i++)
      ok = !r->s->stages.at[i].value || vec_push(m, to, r->s->stages.at[i].value);
  else
    for (int i = 0; ok && i < r->nroots; i++)
      ok = vec_push(m, to, r->roots[i]);
  return ok;
}

/* Prints what the passes after this one need besides the graph: the stages, until they are kernels. */
static bool stages_of(void *state, const char *pass, Str *text) {
  Run *r = state;
  return !r->s->stages.len || r->out->nkernel || stages_print(r->s, pass, text);
}

static size_t pass_named(const char *name, size_t otherwise) {
  for (size_t i = 0; name && i < schedule_npass; i++)
    if (!strcmp(schedule_passes[i].name, name)) return i;
  return otherwise;
}

static bool schedule_run(Sched *s, UOp *const *roots, int nroots, Schedule *out) {
  Run r = {s, mem_alloc(s->mem, ((size_t)nroots + 1) * sizeof *roots), nroots, out};
  if (!r.roots) return false;
  if (nroots && roots) memcpy(r.roots, roots, (size_t)nroots * sizeof *roots);
  PassRun run = {.env = s->opt->passes,
                 .st = s->st,
                 .mem = s->mem,
                 .err = s->err,
                 .stage = "schedule",
                 .letter = 's',
                 .takes = GRAPH_TENSOR,
                 .subject = "",
                 .state = &r,
                 .graph = graph_of,
                 .more = stages_of,
                 .skip = s->opt->skip};
  if (run.env) run.number = run.env->next_schedule++;
  size_t n = pass_named(s->opt->last, schedule_npass - 1) + 1, first = pass_named(s->opt->first, 0);
  bool ok = true;
  if (s->opt->text) {
    run.takes = schedule_passes[first - 1].makes;
    ok = s->opt->read(s, s->opt->text, schedule_passes[first - 1].name);
  }
  ok = ok && passes_run(&run, schedule_passes + first, n - first);
  if (ok && s->opt->graph) {
    UOpVec at = {0};
    ok = graph_of(&r, &at) && dims_put(s->opt->graph, s->st, s->mem, at.at, at.len) &&
         uop_print(s->opt->graph, s->st, s->mem, at.at, at.len) &&
         stages_of(&r, schedule_passes[n - 1].name, s->opt->graph);
    vec_free(s->mem, &at);
  }
  mem_free(s->mem, r.roots);
  return ok;
}

TgStatus schedule_make(UOpStore *st, TgMem *mem, UOp *const *roots, int nroots, const SchedOptions *opt,
                       Schedule *out, TgError *err) {
  Sched s = {.st = st, .mem = mem, .err = err, .opt = opt, .scanned = {.mem = mem}, .reads = {.mem = mem}};
  uint64_t failed = mem->failed;
  memset(out, 0, sizeof *out);
  arena_init(&out->arena, mem);
  out->arena.first = 1024; /* a small first block, because it is kept as long as its plan */
  out->nroot = nroots;
  out->root = arena_array(&out->arena, int64_t, nroots + 1);
  bool ok = out->root != NULL;
  for (int i = 0; ok && i < nroots; i++)
    out->root[i] = -1;
  ok = ok && schedule_run(&s, roots, nroots, out) && mem->failed == failed;
  out->walked = s.walked;
  for (size_t i = 0; i < s.stages.len; i++) {
    Stage *g = &s.stages.at[i];
    vec_free(mem, &g->after), vec_free(mem, &g->war), vec_free(mem, &g->deps), vec_free(mem, &g->reads),
        vec_free(mem, &g->readers), vec_free(mem, &g->old), vec_free(mem, &g->fresh);
  }
  for (size_t k = 0; k < s.ks.len; k++)
    vec_free(mem, &s.ks.at[k].mem);
  vec_free(mem, &s.stages), vec_free(mem, &s.ks), vec_free(mem, &s.order), vec_free(mem, &s.loops),
      map_free(&s.scanned), vec_free(mem, &s.refused);
  vec_free(mem, &s.near), map_free(&s.reads), uop_map_end(st, s.given);
  if (ok) {
    out->store = st;
    return TG_OK;
  }
  arena_free(&out->arena);
  memset(out, 0, sizeof *out);
  if (mem->failed != failed) error_no_memory(err, "schedule");
  return error_set(err, TG_ERR_INTERNAL, "schedule: a graph it cannot lower"), err->status;
}

void schedule_free(Schedule *s, TgMem *mem) {
  (void)mem;
  arena_free(&s->arena);
  store_free(s->store);
  memset(s, 0, sizeof *s);
}
