/* A value that does not move with a nest's own loops is a number to that nest, whichever nest computes it.
 * The loops that all outputs have are around every nest: they are part of its shape, but opts leave them
 * alone. */
#include "codegen/heuristic.h"
#include <string.h>

typedef struct Nest {
  uint64_t own; /* bits of its loops */
  bool sums;    /* the roots are reductions that are only in loops around all nests; else stores */
  UOpVec roots; /* the reductions or stores */
  UOpVec loads; /* loads that move with its own loops */
} Nest;

typedef struct Nests {
  Kernel *k;
  const Info *f;
  uint64_t around;
  int64_t made; /* parameters made to replace the results of other nests */
  Vec(Nest) at;
} Nests;

static void nests_free(Nests *n) {
  for (size_t i = 0; i < n->at.len; i++) {
    vec_free(n->k->mem, &n->at.at[i].roots);
    vec_free(n->k->mem, &n->at.at[i].loads);
  }
  vec_free(n->k->mem, &n->at);
}

/* ---- which nests there are */
static uint64_t bit_of(const UOp *r) { return r->op == OPS_RANGE ? range_bit(r->arg.range.id) : 0; }

static uint64_t listed_loops(const UOp *u, int first) {
  uint64_t loops = 0;
  for (int i = first; i < u->nsrc; i++)
    loops |= bit_of(u->src[i]);
  return loops;
}

static bool nest_add(Nests *n, UOp *root, uint64_t own, bool sums) {
  size_t i = 0;
  while (i < n->at.len && (n->at.at[i].own != own || n->at.at[i].sums != sums))
    i++;
  if (i == n->at.len && !vec_push(n->k->mem, &n->at, ((Nest){.own = own, .sums = sums}))) return false;
  return vec_push(n->k->mem, &n->at.at[i].roots, root);
}

/* Whether a sum has the very loops of this store, which keeps what is summed, and their length is unknown. One
 * nest computes both then, and takes the opts of the sum, whose loops no VEC can have. If the length is known,
 * they are two nests that are not apart, because the guess has lanes along both already. */
static bool with_a_sum(const Nests *n, const UOp *store, uint64_t own) {
  bool with = false, open = false;
  for (int i = 2; i < store->nsrc; i++)
    open |= (bit_of(store->src[i]) & own) && !is_const(store->src[i]->src[0]);
  for (size_t i = 0; i < n->at.len; i++)
    with |= n->at.at[i].own == own && n->at.at[i].sums;
  return with && open;
}

static bool nests_find(Nests *n) {
  const Info *f = n->f;
  const UOp *sink = n->k->sink;
  bool ok = true;
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].grid && f->r[i].nout == sink->nsrc) n->around |= bit_of(f->r[i].r);
  for (size_t i = 0; ok && i < f->reduces.len; i++) {
    UOp *u = f->reduces.at[i];
    if (!(u->ranges & ~n->around)) ok = nest_add(n, u, listed_loops(u, 1), true);
  }
  for (int i = 0; ok && i < sink->nsrc + (int)f->fills.len; i++) {
    UOp *s = i < sink->nsrc ? sink->src[i] : f->fills.at[i - sink->nsrc];
    uint64_t own = listed_loops(s, 2) & ~n->around;
    ok = with_a_sum(n, s, own) || nest_add(n, s, own, false);
  }
  return ok;
}

/* Whether the opts of one nest do not affect any other: each loop belongs to one nest and has a range bit
 * of its own. */
static bool are_apart(const Nests *n) {
  uint64_t had = 0;
  bool apart = !n->f->scans;
  for (int i = 0; i < n->f->nr; i++) {
    const UOp *r = n->f->r[i].r;
    apart &= r->arg.range.id < 63 && r->arg.range.type != AXIS_ORDERED;
  }
  for (size_t i = 0; i < n->at.len; i++) {
    apart &= !(had & n->at.at[i].own);
    had |= n->at.at[i].own;
  }
  return apart;
}

/* ---- a nest as a kernel */
enum { SLOTS_MADE = 1 << 20, SLOTS_LOCAL = 1 << 30 }; /* first slots: no kernel has that many */

static UOp *param_new(Nests *n, const UOp *of, int naxis, UOp *const *extent) {
  Arg arg = {.param = {1, SLOTS_MADE + n->made++}};
  for (int i = 0; i < naxis; i++)
    arg.param.nelem *= extent[i]->arg.v.i;
  return uop_new(n->k->st, OPS_PARAM, (DType)of->dtype, 1, naxis, extent, arg);
}

/* Replaces local memory by a parameter, because the planner only needs to know where the elements are, not
 * what kind of memory it is. */
static UOp *index_of(Nests *n, UOp *x) {
  UOp *memory = memory_of(x), *src[MAX_AXES + 2];
  if (memory->op != OPS_DEFINE_LOCAL) return x;
  Arg arg = {.param = {memory->arg.param.nelem, SLOTS_LOCAL + memory->arg.param.slot}};
  memcpy(src, x->src, (size_t)x->nsrc * sizeof *src);
  src[0] = uop_new(n->k->st, OPS_PARAM, (DType)memory->dtype, 1, 0, NULL, arg);
  return src[0] ? uop_new(n->k->st, OPS_INDEX, (DType)x->dtype, x->lanes, x->nsrc, src, x->arg) : NULL;
}

/* Whether u is a number to the nest: data that does not move with the nest's loops. A condition on loops
 * alone is not replaced, because it is part of a gate. */
static bool is_number(const Nest *nest, const UOp *u) {
  bool data = u->nsrc && u->op != OPS_PARAM && u->dtype != DT_INDEX && u->dtype != DT_VOID;
  return data && !(u->ranges & nest->own) && (u->dtype != DT_BOOL || uop_has(u, INDEX));
}

/* Returns a value as the nest sees it, and notes the nest's own loads. */
static UOp *value_in(Nests *n, Nest *nest, UOp *value) {
  Kernel *k = n->k;
  UOpVec work = {0}, from = {0}, to = {0};
  uint8_t *seen = mem_alloc(k->mem, store_id_limit(k->st) + 1);
  bool ok = seen && vec_push(k->mem, &work, value);
  for (size_t i = 0; ok && i < work.len; i++) {
    UOp *u = work.at[i], *as = u;
    if (is_number(nest, u))
      as = param_new(n, u, 0, NULL);
    else if (u->op == OPS_INDEX) {
      as = index_of(n, u);
      ok = vec_push(k->mem, &nest->loads, u);
    }
    ok = ok && as;
    if (ok && as != u) ok = vec_push(k->mem, &from, u) && vec_push(k->mem, &to, as);
    for (int s = 0; ok && as == u && s < u->nsrc; s++) {
      if (seen[u->src[s]->id]) continue;
      seen[u->src[s]->id] = 1;
      ok = vec_push(k->mem, &work, u->src[s]);
    }
  }
  UOp *seen_as = ok ? kernel_with(k, value, (int)from.len, from.at, to.at) : NULL;
  vec_free(k->mem, &work), vec_free(k->mem, &from), vec_free(k->mem, &to);
  mem_free(k->mem, seen);
  return seen_as;
}

/* Writes the loops around all nests to `to` and returns how many there are. */
static int loops_around(const Nests *n, UOp **to) {
  int m = 0;
  for (int i = 0; i < n->f->nr && m < MAX_AXES; i++)
    if (n->around & bit_of(n->f->r[i].r)) to[m++] = n->f->r[i].r;
  return m;
}

/* Returns a STORE of a sum, with one element for each iteration of the loops around. */
static UOp *sum_stored(Nests *n, Nest *nest, UOp *sum) {
  UOp *store[MAX_AXES + 2], *at[MAX_AXES + 1] = {0}, *extent[MAX_AXES], *of[MAX_LIST + 1];
  int m = loops_around(n, at + 1);
  memcpy(store + 2, at + 1, (size_t)m * sizeof *at);
  bool ok = true;
  for (int i = 0; ok && i < m; i++)
    ok = (extent[i] = num(n->k, TG_MAX(at[1 + i]->src[0]->vmax, 1))) != NULL;
  at[0] = ok ? param_new(n, sum, m, extent) : NULL;
  if (!m) at[1] = num(n->k, 0);
  memcpy(of, sum->src, (size_t)sum->nsrc * sizeof *of);
  of[0] = at[0] && at[1] ? value_in(n, nest, sum->src[0]) : NULL;
  if (!of[0]) return NULL;
  store[0] = uop_new(n->k->st, OPS_INDEX, (DType)sum->dtype, 1, 1 + TG_MAX(m, 1), at, ARG0);
  store[1] = uop_new(n->k->st, OPS_REDUCE, (DType)sum->dtype, 1, sum->nsrc, of, sum->arg);
  return store[0] && store[1] ? uop_new(n->k->st, OPS_STORE, DT_VOID, 1, 2 + m, store, ARG0) : NULL;
}

/* Returns a store of the nest, with the loops around in its list: a store to local memory does not list
 * them itself. */
static UOp *store_in(Nests *n, Nest *nest, UOp *s) {
  UOp *src[MAX_LIST + MAX_AXES + 3];
  int nsrc = 2 + loops_around(n, src + 2);
  for (int i = 2; i < s->nsrc; i++)
    if (!(n->around & bit_of(s->src[i]))) src[nsrc++] = s->src[i];
  src[0] = index_of(n, s->src[0]);
  src[1] = value_in(n, nest, s->src[1]);
  return src[0] && src[1] ? uop_new(n->k->st, OPS_STORE, DT_VOID, 1, nsrc, src, s->arg) : NULL;
}

static UOp *nest_sink(Nests *n, Nest *nest) {
  UOpVec stores = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < nest->roots.len; i++) {
    UOp *u = nest->roots.at[i], *s = nest->sums ? sum_stored(n, nest, u) : store_in(n, nest, u);
    ok = s && vec_push(n->k->mem, &stores, s);
  }
  UOp *sink = ok ? uop_new(n->k->st, OPS_SINK, DT_VOID, 1, (int)stores.len, stores.at, ARG0) : NULL;
  vec_free(n->k->mem, &stores);
  return sink;
}

/* Whether another nest reads the buffer too: then a copy of it would also serve that nest. */
static bool read_elsewhere(const Nests *n, const Nest *nest, int64_t slot) {
  bool elsewhere = false;
  for (size_t i = 0; i < n->f->loads.len; i++) {
    const UOp *m = memory_of(n->f->loads.at[i]);
    elsewhere |= m->op == OPS_PARAM && m->arg.param.slot == slot && !vec_has(&nest->loads, n->f->loads.at[i]);
  }
  return elsewhere;
}

/* *has: the planner can describe the nest. plain and whole are cleared, because the sums are not outputs
 * in which blocks could add up. */
static bool nest_shape(Nests *n, Nest *nest, KernelShape *c, bool *has) {
  UOp *whole = n->k->sink;
  n->k->sink = nest_sink(n, nest);
  bool ok = n->k->sink;
  *has = ok && kernel_shape(n->k, 0.5, c) && !c->own;
  n->k->sink = whole;
  if (!*has) return ok;
  c->plain = c->whole = false;
  c->nests = (int)n->at.len;
  stays_used(c);
  for (int r = 0; r < c->n; r++)
    if (n->around & bit_of(c->range[r])) c->around |= 1u << r;
  for (int a = c->nstore; a < c->naccess; a++)
    c->access[a].clips &= c->access[a].slot < SLOTS_MADE && !read_elsewhere(n, nest, c->access[a].slot);
  return true;
}

/* Adds a nest's opts to the list, and adds to cycles[] what the nest takes with these opts and with the
 * given list. */
static bool choose_nest(Nests *n, Nest *nest, const OptVec *given, OptVec *list, double cycles[2],
                        bool *has) {
  KernelShape c;
  Taken best;
  Cost cost;
  if (!nest_shape(n, nest, &c, has)) return false;
  if (!*has) return true;
  if (!choose_list(&c, 1, n->k->mem, n->k->opt->costs, &best, &cost)) return false;
  if (cost.cycles < INFINITY && !list_named(&c, &best, &cost, 1, n->k->mem, list)) return false;
  cycles[0] += cost.cycles < INFINITY ? cost.cycles : cost_of_list(&c, &(OptVec){0});
  cycles[1] += cost_of_list(&c, given);
  return true;
}

/* Merges the lists of all nests: all opts of one rank come before those of the next. */
static bool in_ranks(Kernel *k, const OptVec *list, OptVec *out) {
  bool ok = true;
  out->len = 0;
  for (int rank = 0; rank < OPT_RANKS; rank++)
    for (size_t i = 0; ok && i < list->len; i++)
      if (opt_rank(list->at[i].op) == rank) ok = vec_push(k->mem, out, list->at[i]);
  return ok;
}

bool choose_nests(Kernel *k, const Info *f, OptVec *out) {
  static const double WORTH = 0.9; /* share of the given list's cost; closer estimates mean nothing */
  Nests n = {.k = k, .f = f};
  OptVec list = {0};
  double cycles[2] = {0};
  bool ok = nests_find(&n), has = ok && are_apart(&n);
  for (size_t i = 0; ok && has && i < n.at.len; i++)
    if (n.at.at[i].own) ok = choose_nest(&n, &n.at.at[i], out, &list, cycles, &has);
  if (ok && has && cycles[0] < WORTH * cycles[1]) ok = in_ranks(k, &list, out);
  vec_free(k->mem, &list);
  nests_free(&n);
  return ok;
}
