/* codegen.c: the pass table of code generation, the pass that moves gates onto loads, and lowering with
 * fewer opts if a list does not fit. In: one kernel of a schedule. Out: its linear program. See codegen.h. */
#include "codegen/nest.h"
#include "plan/grid_cost.h"
#include <stdio.h>
#include <string.h>

UOp *node_mapped(UOpStore *st, TgMem *mem, const UOpMap *now, UOp *u) {
  UOp *buf[64], **src = u->nsrc <= 64 ? buf : mem_alloc(mem, u->nsrc * sizeof *src);
  if (!src) return NULL;
  for (int i = 0; i < u->nsrc; i++) {
    UOp *s = uop_map_get(now, u->src[i]);
    src[i] = s ? s : u->src[i];
  }
  UOp *v = uop_with_src(st, u, src);
  if (src != buf) mem_free(mem, src);
  return v;
}

/* Copies a graph depth first into a fresh store: then its nodes are close together in memory, and ids
 * depend on this kernel alone. */
static UOp *copy_in(UOpStore *st, TgMem *mem, UOp *root, UOpStore *from) {
  UOpVec order = {0};
  UOpMap *to = uop_map_begin(from, st);
  UOp *r = NULL;
  bool ok = to && uop_toposort(from, mem, &root, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *v = node_mapped(st, mem, to, u);
    ok = v && uop_map_put(from, to, u, v);
  }
  if (ok) r = uop_map_get(to, root);
  vec_free(mem, &order);
  uop_map_end(from, to);
  return r;
}

/* ---- gates. A WHERE over ranges and variables protects what its branches read: every load that may leave
 * its buffer is made only if the condition holds. One walk does this, inner conditions first. `loose`
 * holds the nodes above a load that no gate proves to be inside its buffer yet; other nodes are not
 * entered again. The statements that fill local memory, which are under an AFTER, are not part of the
 * branch. A condition that is data gates only the addresses that it compares. */
/* Whether an axis of local memory is read by a loop that runs as often as loop r, which fills the axis. */
static bool runs_as_often(const UOp *index, const UOp *filled, const UOp *r) {
  bool often = false;
  for (int d = 1; d <= index_naxes(index) && d <= index_naxes(filled); d++)
    often |= filled->src[d] == r && index->src[d]->op == OPS_RANGE && index->src[d]->src[0] == r->src[0];
  return often;
}

/* Whether this reads local memory with room for the longest run of a loop whose number of iterations is
 * unknown, and may read what that loop does not fill. */
static bool partly_filled(const UOp *index) {
  const UOp *memory = index->src[0];
  for (int i = 1; memory->op == OPS_AFTER && i < memory->nsrc; i++) {
    const UOp *s = memory->src[i];
    for (int k = 2; s->op == OPS_STORE && k < s->nsrc; k++)
      if (s->src[k]->op == OPS_RANGE && !is_const(s->src[k]->src[0]) &&
          !runs_as_often(index, s->src[0], s->src[k]))
        return true;
  }
  return false;
}

/* The ranges of a gate. all: all of its ranges; the gate also holds for the statements that fill local
 * memory if that memory depends on all of these ranges, because its readers have the same gate. past:
 * ranges that run past a symbolic end, where nobody may have written what is read, even though it is
 * inside its memory. nest: buffers that this nest writes are read only in the iterations of the gate,
 * because other threads write the rest at the same time; NULL: not checked. */
typedef struct Over {
  uint64_t all, past;
  const UOp *nest;
} Over;

static bool is_loose(const UOp *index, Over o) {
  if (partly_filled(index)) return true;
  const UOp *memory = memory_of(index);
  if (memory->op == OPS_DEFINE_REG) return false;
  if (index->ranges & o.past) return true;
  bool own = o.nest && memory->op == OPS_PARAM && (index->ranges & o.all);
  if (own && nest_stores_to(o.nest, memory)) return true;
  if (!memory->nsrc) return !uop_within(index->src[1], index_gate(index), memory->arg.param.nelem);
  for (int d = 0; d < memory->nsrc; d++)
    if (!uop_within(index->src[1 + d], index_gate(index), memory->src[d]->arg.v.i)) return true;
  return false;
}

static bool note_loose(Kernel *k, UOpMap *loose, const UOp *u, Over o) {
  bool is = u->op == OPS_INDEX && is_loose(u, o);
  bool closed = u->op == OPS_AFTER && (!o.all || (o.all & ~u->ranges));
  for (int i = 0; !is && !closed && i < u->nsrc; i++)
    is = uop_map_get(loose, u->src[i]) != NULL;
  return !is || uop_map_put(k->st, loose, u, u);
}

static bool note_all(Kernel *k, UOpMap *loose, UOp *u, Over o) {
  UOpVec order = {0};
  bool ok = u && kernel_nodes(k, u, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    ok = note_loose(k, loose, order.at[i], o);
  vec_free(k->mem, &order);
  return ok;
}

/* Returns the part of a condition that is data which is about the place that an INDEX reads: its
 * comparisons of indices that are read from the same memory as that place. It compares memories, not
 * nodes, because an inner condition may have gated one of two reads that were one node. NULL: there is no
 * such part. */
static UOp *about_place(Kernel *k, const UOp *index, UOp *gate) {
  UOp *todo[64], *r = NULL;
  int n = 0;
  UOpVec order = {0};
  UOpMap *below = uop_map_begin(k->st, k->st);
  bool ok =
      below && uop_toposort(k->st, k->mem, (UOp *const *)index->src + 1, (size_t)index_naxes(index), &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *m = order.at[i]->op == OPS_INDEX ? memory_of(order.at[i]) : NULL;
    ok = !m || uop_map_put(k->st, below, m, m);
  }
  todo[n++] = gate;
  while (ok && n) {
    UOp *g = todo[--n], *less = g->op == OPS_CMPNE && is_const_int(g->src[1], 1) ? g->src[0] : g;
    if (g->op == OPS_AND && g->dtype == DT_BOOL && n + 2 <= (int)TG_COUNT(todo)) {
      todo[n++] = g->src[1];
      todo[n++] = g->src[0];
      continue;
    }
    bool same = less->op == OPS_CMPLT && less->src[0]->dtype == DT_INDEX;
    order.len = 0;
    ok = !same || kernel_nodes(k, less, &order);
    for (size_t i = 0; ok && same && i < order.len; i++)
      same = order.at[i]->op != OPS_INDEX || uop_map_get(below, memory_of(order.at[i]));
    if (same) r = r ? uop_alu2(k->st, OPS_AND, r, g) : g;
  }
  uop_map_end(k->st, below);
  vec_free(k->mem, &order);
  return ok ? r : NULL;
}

/* Returns the parts of a condition that can keep the address of an INDEX inside its memory: those over
 * loops that the address moves with, and those over no loops. Any other part would only tie the load, and
 * a reduction around it that other nodes read too, to an unrelated loop. NULL: there are none. */
static UOp *about_loops(Kernel *k, const UOp *index, UOp *gate) {
  UOp *todo[64], *r = NULL;
  uint64_t moves = 0;
  int n = 0;
  for (int i = 1; i <= index_naxes(index); i++)
    moves |= index->src[i]->ranges;
  todo[n++] = gate;
  while (n) {
    UOp *g = todo[--n];
    if (g->op == OPS_AND && g->dtype == DT_BOOL && n + 2 <= (int)TG_COUNT(todo)) {
      todo[n++] = g->src[1];
      todo[n++] = g->src[0];
      continue;
    }
    if (g->ranges && !(g->ranges & moves)) continue;
    if (!(r = r ? uop_alu2(k->st, OPS_AND, r, g) : g)) return NULL;
  }
  return r;
}

static UOp *gate_loose(Kernel *k, UOpMap *loose, UOp *branch, UOp *gate, Over over) {
  typedef struct Frame {
    UOp *u;
    int i;
  } Frame;

  bool data = gate && uop_has(gate, INDEX), reduces = branch && uop_has(branch, REDUCE);
  Vec(Frame) stack = {0};
  UOpMap *now = uop_map_begin(k->st, k->st);
  bool ok = now && gate && branch;
  if (ok && uop_map_get(loose, branch)) ok = vec_push(k->mem, &stack, ((Frame){branch, 0}));
  while (ok && stack.len) {
    Frame *f = &stack.at[stack.len - 1];
    UOp *u = f->u, *buf[64];
    if (f->i < u->nsrc) {
      UOp *s = u->src[f->i++];
      if (uop_map_get(loose, s) && !uop_map_get(now, s)) ok = vec_push(k->mem, &stack, ((Frame){s, 0}));
      continue;
    }
    stack.len--;
    if (uop_map_get(now, u)) continue;
    UOp **src = u->nsrc <= 64 ? buf : mem_alloc(k->mem, u->nsrc * sizeof *src), *v = NULL;
    if (!src) {
      ok = false;
      break;
    }
    for (int j = 0; j < u->nsrc; j++) {
      UOp *s = uop_map_get(now, u->src[j]);
      src[j] = s ? s : u->src[j];
    }
    if (u->op == OPS_INDEX && is_loose(u, over)) {
      UOp *with[MAX_AXES + 2], *g = gate;
      int n = 1 + index_naxes(u);
      memcpy(with, src, (size_t)n * sizeof *with);
      v = uop_with_src(k->st, u, src);
      if (v && data)
        g = about_place(k, v, gate);
      else if (v && reduces)
        g = about_loops(k, v, gate);
      if (v && g) {
        with[n] = u->arg.i ? uop_simplify_top(k->st, k->mem, uop_alu2(k->st, OPS_AND, src[n], g))
                           : g; /* only the top changes: parts stay the address's nodes */
        v = uop_new(k->st, OPS_INDEX, (DType)u->dtype, 1, n + 1, with, (Arg){.i = 1});
        if (data || (u->arg.i && uop_map_get(loose, src[n])))
          ok = note_all(k, loose, with[n], over); /* a gate may contain loads, too */
      }
    } else
      v = uop_with_src(k->st, u, src);
    if (src != buf) mem_free(k->mem, src);
    ok = ok && v && uop_map_put(k->st, now, u, v) && note_loose(k, loose, v, (Over){.all = over.all});
  }
  UOp *r = !ok ? NULL : uop_map_get(now, branch) ? uop_map_get(now, branch) : branch;
  uop_map_end(k->st, now);
  vec_free(k->mem, &stack);
  return r;
}

/* Simplifies the indices of a branch that have quotients and remainders of loops by what the condition
 * implies about the loops (uop_given). Reductions and the statements that fill local memory are left
 * alone, because their loops are different ones. Indices that are data are left alone, too, because a
 * condition further out that keeps such an index inside compares it in its present form. */
static UOp *places_given(Kernel *k, UOp *branch, UOp *gate) {
  UOpVec order = {0};
  UOpMap *now = uop_map_begin(k->st, k->st);
  bool asks = branch && gate && gate->ranges && (uop_has(branch, FLOORDIV) || uop_has(branch, FLOORMOD));
  bool ok = now && (!asks || kernel_nodes(k, branch, &order));
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *v = node_mapped(k->st, k->mem, now, u);
    if (u->op == OPS_REDUCE || u->op == OPS_AFTER) v = u;
    if (v && v->op == OPS_INDEX && !index_is_data(v) && any_divided((UOpList){v->src + 1, index_naxes(v)})) {
      UOp *src[MAX_AXES + 2] = {v->src[0]};
      for (int d = 1; ok && d < v->nsrc; d++) {
        src[d] = d <= index_naxes(v) ? uop_given(k->st, k->mem, v->src[d], gate) : v->src[d];
        ok = src[d] != NULL;
      }
      v = ok ? uop_with_src(k->st, v, src) : NULL;
    }
    ok = v && uop_map_put(k->st, now, u, v);
  }
  if (order.len) branch = ok ? uop_map_get(now, branch) : NULL;
  vec_free(k->mem, &order);
  uop_map_end(k->st, now);
  return ok ? branch : NULL;
}

UOp *gate_loads(Kernel *k, UOp *branch, UOp *gate) {
  Over over = {.nest = k->sink};
  if (gate) over.all = gate->ranges, over.past = uop_has(gate, VAR) ? gate->ranges : 0;
  UOpMap *loose = uop_map_begin(k->st, k->st);
  UOp *r = loose && note_all(k, loose, branch, over) ? gate_loose(k, loose, branch, gate, over) : NULL;
  uop_map_end(k->st, loose);
  return r;
}

static UOp *gate_branch(Kernel *k, UOpMap *loose, UOp *branch, UOp *gate) {
  UOp *given = places_given(k, branch, gate);
  if (!given || (given != branch && !note_all(k, loose, given, (Over){0}))) return NULL;
  return gate_loose(k, loose, given, gate, (Over){0});
}

static bool move_gates(Kernel *k) {
  Rewrite rw = {.st = k->st, .mem = k->mem};
  UOpVec order = {0};
  UOpMap *now = uop_map_begin(k->st, k->st), *loose = uop_map_begin(k->st, k->st);
  bool ok = now && loose && kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *buf[64], **src = u->nsrc <= 64 ? buf : mem_alloc(k->mem, u->nsrc * sizeof *src);
    if (!src) {
      ok = false;
      break;
    }
    for (int j = 0; j < u->nsrc; j++)
      src[j] = uop_map_get(now, u->src[j]);
    if (u->op == OPS_WHERE &&
        (uop_has(u->src[0], RANGE) || uop_has(u->src[0], INDEX) || uop_has(u->src[0], VAR))) {
      UOp *no = uop_simplify_top(k->st, k->mem,
                                 uop_alu2(k->st, OPS_CMPNE, src[0], uop_const_int(k->st, DT_BOOL, 1)));
      src[1] = gate_branch(k, loose, src[1], src[0]);
      src[2] = gate_branch(k, loose, src[2], no);
    }
    UOp *v = uop_with_src(k->st, u, src), *load = v ? pm_gated(&rw, v) : NULL;
    if (load) v = load;
    if (src != buf) mem_free(k->mem, src);
    ok = v && uop_map_put(k->st, now, u, v) && note_loose(k, loose, v, (Over){0});
  }
  if (ok) k->sink = uop_map_get(now, k->sink);
  vec_free(k->mem, &order);
  uop_map_end(k->st, now), uop_map_end(k->st, loose);
  return ok;
}

static bool run_gates(void *k) { return move_gates(k); }

static bool run_ranges(void *k) { return simplify_ranges(k); }

static bool run_opts(void *state) {
  Kernel *k = state;
  return apply_opts(k, k->opt);
}

static bool run_bound_loops(void *k) { return bound_loops(k); }

static bool run_cut_sums(void *k) { return cut_sums(k); }

static bool run_nest(void *k) { return nest_build(k); }

static bool run_choose(void *state) {
  Kernel *k = state;
  return choose_opts(k, k->opt);
}

static bool run_expand(void *k) { return expand(k); }

static bool run_gpu(void *k) { return !has_grid(((Kernel *)k)->ren) || gpu_dims(k); }

static bool run_prefetch(void *k) { return prefetch_rows(k); }

static bool run_linearize(void *state) {
  Kernel *k = state;
  Linear *l = k->linear;
  l->nthread = k->nthread;
  for (int d = 0; d < 3; d++) {
    l->global[d] = TG_MAX(k->global[d], 1);
    l->local[d] = TG_MAX(k->local[d], 1);
  }
  if (!linearize(k, k->arena, l) || (k->ren && !branch_seldom(k, k->arena, l))) return false;
  grid_blocks(l);
  return true;
}

/* Opts come after gates and decompositions, so what they split is already in the target's own types. Each
 * math function stays one op until the nest has its shape. */
const Pass codegen_passes[] = {
    {"gates onto loads", .run = run_gates, .makes = GRAPH_KERNEL},
    {"decompositions", pm_decompose, .makes = GRAPH_KERNEL, .required = true},
    {"initial symbolic", pm_symbolic, .makes = GRAPH_KERNEL},
    {"simplify ranges", .run = run_ranges, .makes = GRAPH_KERNEL},
    {"choose opts", .run = run_choose, .makes = GRAPH_KERNEL},
    {"nest", .run = run_nest, .makes = GRAPH_NEST},
    {"apply opts", .run = run_opts, .makes = GRAPH_NEST},
    {"bound loops", .run = run_bound_loops, .makes = GRAPH_NEST},
    {"cut long sums", .run = run_cut_sums, .makes = GRAPH_NEST},
    {"gpu dims", .run = run_gpu, .makes = GRAPH_NEST},
    {"math functions", pm_functions, .makes = GRAPH_NEST, .required = true},
    {"flatten indices", pm_flatten, .makes = GRAPH_NEST, .required = true},
    {"expand", .run = run_expand, .makes = GRAPH_LOOPS},
    {"expanded symbolic", pm_late, .makes = GRAPH_LOOPS},
    {"prefetch", .run = run_prefetch, .makes = GRAPH_LOOPS},
    {"linearize", .run = run_linearize, .makes = GRAPH_LINEAR},
};
const size_t codegen_npass = TG_COUNT(codegen_passes);

static bool graph_of(void *state, UOpVec *roots) {
  Kernel *k = state;
  return vec_push(k->mem, roots, k->sink);
}

/* Names the kernel: r for reductions or e for elementwise, then the loop extents of the first store. */
static void name_kernel(const Kernel *k, Linear *out) {
  int n = snprintf(out->name, sizeof out->name, "%c", uop_has(k->sink, REDUCE) ? 'r' : 'e');
  UOp *s = k->sink->nsrc ? k->sink->src[0] : NULL;
  for (int i = 2; s && i < s->nsrc && n < 70; i++)
    if (s->src[i]->op == OPS_RANGE)
      n += snprintf(out->name + n, sizeof out->name - (size_t)n, "_%lld", (long long)s->src[i]->src[0]->vmax);
}

bool kernel_open(Kernel *k) {
  UOpVec order = {0};
  bool ok = kernel_nodes(k, k->sink, &order);
  int64_t maxid = -1;
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (u->op == OPS_RANGE) maxid = TG_MAX(maxid, u->arg.range.id);
    if (u->op == OPS_DEFINE_LOCAL) k->next_local = TG_MAX(k->next_local, u->arg.param.slot + 1);
    if (u->op == OPS_DEFINE_REG) k->next_reg = TG_MAX(k->next_reg, u->arg.param.slot + 1);
  }
  k->next_range = maxid + 1;
  vec_free(k->mem, &order);
  if (ok) name_kernel(k, k->linear);
  return ok;
}

/* Prints what later passes need besides the graph: the name, the shape of a launch, the free ids, and the
 * list of opts. */
bool kernel_state_print(const Kernel *k, Str *out) {
  Str list;
  str_init(&list, k->mem);
  for (size_t i = 0; i < k->list.len; i++)
    opt_print(&list, &k->list.at[i]);
  str_printf(out,
             KERNEL_TEXT
             "%s: %d threads, grid %d %d %d, block %d %d %d, next ids %lld %lld %lld, %zu done of: %s\n",
             k->linear->name, k->nthread, k->global[0], k->global[1], k->global[2], k->local[0], k->local[1],
             k->local[2], (long long)k->next_range, (long long)k->next_local, (long long)k->next_reg,
             k->ndone, str_text(&list));
  bool ok = !list.oom && !out->oom;
  str_free(&list);
  return ok;
}

static bool more_of(void *state, const char *pass, Str *out) {
  const Kernel *k = state;
  (void)pass;
  return k->linear->n || kernel_state_print(k, out);
}

bool kernel_passes(Kernel *k, const Pass *first, size_t n) {
  PassEnv *e = k->opt->passes;
  PassRun run = {.env = e,
                 .st = k->st,
                 .mem = k->mem,
                 .err = k->err,
                 .stage = "codegen",
                 .letter = 'k',
                 .subject = k->linear->name,
                 .state = k,
                 .takes = first == codegen_passes ? GRAPH_KERNEL : first[-1].makes,
                 .root = &k->sink,
                 .graph = graph_of,
                 .linear = k->linear,
                 .more = more_of};
  if (e) run.number = e->next_kernel++;
  return passes_run(&run, first, n);
}

/* Reports to e, if there is one, why the kernel did not take its opts. Returns false if that is an error. */
static bool fell_back(Kernel *k, PassEnv *e) {
  char why[320];
  snprintf(why, sizeof why, "kernel %s: %s: %s", k->linear->name, e && e->pass ? e->pass : "codegen",
           *k->refused ? k->refused : "the nest cannot be lowered");
  if (!e) return true;
  e->fallbacks++;
  snprintf(e->fallback, sizeof e->fallback, "%s", why);
  if (!e->spec) return true;
  error_set(k->err, TG_ERR_INTERNAL, "codegen: %s", why);
  return false;
}

/* No kernel is known that cannot be lowered. This makes some fail, so that a test sees how the engine
 * handles it. */
static bool refused_for_test(Kernel *k) {
  int most = k->opt->passes ? k->opt->passes->refuse_over : 0, n = 0;
  UOpVec order = {0};
  bool ok = !most || kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; i < order.len; i++)
    n += order.at[i]->op == OPS_REDUCE;
  vec_free(k->mem, &order);
  return !ok || (most && n > most);
}

/* Makes one attempt. If it returns false, err holds the reason, or no error if the opts did not fit. */
static bool lower_once(Kernel *k, UOp *ast, UOpStore *ast_store) {
  PassEnv *e = k->opt->passes;
  uint64_t failed = k->mem->failed;
  str_init(&k->opts, k->mem);
  if (k->st)
    store_clear(k->st);
  else
    k->st = store_new(k->mem);
  if (k->st && e) store_set_env(k->st, &e->rewrites);
  k->sink = k->st ? copy_in(k->st, k->mem, ast, ast_store) : NULL;
  bool ok = k->sink && !refused_for_test(k) && kernel_open(k) &&
            kernel_passes(k, codegen_passes, codegen_npass) && !k->opts.oom;
  if (ok && e && !k->opt->opts) e->opts.taken += (int64_t)k->list.len; /* without the lists that BEAM tries */
  vec_free(k->mem, &k->list);
  if (k->mem->failed != failed) {
    ok = false;
    *k->err = (TgError){0}; /* an opt that ran out of memory may have been taken for one that does not fit */
    error_no_memory(k->err, "codegen");
  }
  return ok;
}

/* Copies the kernel to a store of its own and runs all passes behind the choice of opts, unwatched. */
bool kernel_grid_cost(const Kernel *from, const OptVec *list, GridCost *out, bool *fits) {
  size_t first = 0;
  while (codegen_passes[first++].run != run_choose)
    ;
  TgError err = {0};
  Arena arena;
  Linear lin = {0};
  CodegenOptions o = *from->opt;
  o.passes = NULL;
  o.costs = NULL;
  Kernel k = {.mem = from->mem,
              .err = &err,
              .ren = from->ren,
              .nthread = 1,
              .opt = &o,
              .arena = &arena,
              .linear = &lin};
  uint64_t failed = from->mem->failed;
  arena_init(&arena, from->mem), str_init(&k.opts, from->mem);
  k.st = store_new(from->mem);
  k.sink = k.st ? copy_in(k.st, from->mem, from->sink, from->st) : NULL;
  k.list = *list;
  *fits = k.sink && kernel_open(&k) && kernel_passes(&k, codegen_passes + first, codegen_npass - first) &&
          grid_cost(o.target, &lin, from->mem, out);
  str_free(&k.opts);
  store_free(k.st);
  arena_free(&arena);
  return from->mem->failed == failed;
}

/* Lowers a kernel. If its nest cannot take all opts, it takes fewer, and in the end none. */
TgStatus codegen_lower(TgMem *mem, UOp *ast, UOpStore *ast_store, const Renderer *ren,
                       const CodegenOptions *opt, Arena *arena, UOpStore **st, Linear *out, Str *opts_text,
                       TgError *err) {
  memset(out, 0, sizeof *out);
  CodegenOptions o = *opt;
  for (bool last = opt->noopt; !err->status; last = o.noopt) {
    Kernel k = {.mem = mem, .err = err, .ren = ren, .nthread = 1, .opt = &o, .arena = arena, .linear = out};
    k.st = *st;
    if (o.prepack) k.stays = o.prepack->stays;
    bool ok = lower_once(&k, ast, ast_store);
    if (ok && opts_text) str_put(opts_text, str_text(&k.opts));
    str_free(&k.opts);
    *st = k.st;
    if (ok) return TG_OK;
    out->n = out->nparam = 0;
    if (err->status) break;
    if (last)
      error_set(err, TG_ERR_INTERNAL, "codegen: kernel %s could not be lowered", out->name);
    else if (fell_back(&k, opt->passes)) {
      o.leave_out = TG_MAX(2 * o.leave_out, 1);
      o.noopt |= opt->opts || o.leave_out > 2 * k.nopt;
    }
  }
  store_free(*st);
  *st = NULL;
  return err->status;
}
