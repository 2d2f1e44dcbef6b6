/* parts.c: which launches compute what. In: the copy of a graph, tensors below its roots (parts), and
 * later the plan. Out: for each kernel, the parts that it computes. Nodes are identified by their ids in
 * the copy. These are the same for all graphs with one key, so this works for a plan from the cache too. */
#include "engine/graph_copy.h"
#include "tensor/front.h"

enum { NOBODY = INT32_MAX };

/* first, src: the sources of node i are src[first[i]] .. src[first[i + 1] - 1]. owner: the part that a
 * node counts to. ends: the node ends a loop nest of some kernel, and other nests read it. */
struct Parts {
  TgMem *mem;
  size_t nnode, nparts;
  uint32_t *first, *src, *seen, *stack;
  int *owner, *found;
  uint32_t stamp;
  bool *ends, *in, *moves; /* moves: the node only moves elements */
  bool ends_known;
};

void parts_free(Parts *ps) {
  if (!ps) return;
  TgMem *m = ps->mem;
  mem_free(m, ps->first), mem_free(m, ps->src), mem_free(m, ps->seen), mem_free(m, ps->stack);
  mem_free(m, ps->owner), mem_free(m, ps->found), mem_free(m, ps->ends), mem_free(m, ps->in);
  mem_free(m, ps->moves);
  mem_free(m, ps);
}

static bool parts_room(Parts *ps, size_t nedges) {
  TgMem *m = ps->mem;
  size_t n = ps->nnode + 1;
  ps->first = mem_alloc(m, n * sizeof *ps->first);
  ps->src = mem_alloc(m, (nedges + 1) * sizeof *ps->src);
  ps->seen = mem_alloc(m, n * sizeof *ps->seen);
  ps->stack = mem_alloc(m, (n + nedges) * sizeof *ps->stack);
  ps->owner = mem_alloc(m, n * sizeof *ps->owner);
  ps->found = mem_alloc(m, (ps->nparts + 1) * sizeof *ps->found);
  ps->ends = mem_alloc(m, n * sizeof *ps->ends);
  ps->moves = mem_alloc(m, n * sizeof *ps->moves);
  ps->in = mem_alloc(m, (ps->nparts + 1) * sizeof *ps->in);
  return ps->first && ps->src && ps->seen && ps->stack && ps->owner && ps->found && ps->ends && ps->moves &&
         ps->in;
}

/* Lists the sources of all nodes. A node that is computed from constants alone belongs to no part, because
 * one constant is shared by all parts. Such nodes are not listed. */
static void sources_listed(Parts *ps, const UOpVec *order) {
  bool *reads = ps->ends; /* borrowed here: the node is computed from memory */
  for (size_t k = 0; k < order->len; k++) {
    const UOp *u = order->at[k];
    reads[u->id] = u->op == OPS_BUFFER;
    ps->moves[u->id] = op_flags((Ops)u->op) & OPF_MOV;
    for (int i = 0; i < u->nsrc; i++) {
      reads[u->id] |= reads[u->src[i]->id];
      ps->first[u->id + 1] += reads[u->src[i]->id];
    }
  }
  for (size_t i = 0; i < ps->nnode; i++)
    ps->first[i + 1] += ps->first[i];
  for (size_t k = 0; k < order->len; k++) {
    const UOp *u = order->at[k];
    uint32_t at = ps->first[u->id];
    for (int i = 0; i < u->nsrc; i++)
      if (reads[u->src[i]->id]) ps->src[at++] = u->src[i]->id;
  }
  memset(reads, 0, ps->nnode * sizeof *reads);
}

/* Returns the copy of a part's value, if the graph reached it. */
static UOp *copy_of(Graph *g, const TgTensor *t) {
  UOp *u = value_of_node(g->ctx, t->uop);
  const GraphNode *n = u ? graph_node(g, u) : NULL;
  return n ? n->to : NULL;
}

/* Sets the owners. Readers are visited before what they read, so the owner of a node is final when it is
 * passed on to its sources. */
static void owners_set(Parts *ps, const UOpVec *order, UOp *const *part) {
  bool *is_part = ps->ends; /* borrowed here */
  for (size_t i = 0; i < ps->nnode; i++)
    ps->owner[i] = NOBODY;
  for (size_t i = 0; i < ps->nparts; i++) {
    const UOp *u = part[i];
    if (!u || is_part[u->id]) continue;
    is_part[u->id] = true;
    ps->owner[u->id] = (int)i;
  }
  for (size_t k = order->len; k-- > 0;) {
    const UOp *u = order->at[k];
    for (int i = 0; i < u->nsrc; i++) {
      uint32_t s = u->src[i]->id;
      if (!is_part[s]) ps->owner[s] = TG_MIN(ps->owner[s], ps->owner[u->id]);
    }
  }
  memset(is_part, 0, ps->nnode * sizeof *is_part);
}

Parts *parts_of_tensors(Graph *g, TgTensor *const *part, int n) {
  UOp **copy = mem_alloc(&g->ctx->mem, ((size_t)n + 1) * sizeof *copy);
  for (int i = 0; copy && i < n; i++)
    copy[i] = copy_of(g, part[i]);
  if (!copy) error_no_memory(&g->ctx->err, "schedule");
  Parts *ps = copy ? parts_new(g, copy, n) : NULL;
  mem_free(&g->ctx->mem, copy);
  return ps;
}

Parts *parts_new(Graph *g, UOp *const *part, int n) {
  TgContext *ctx = g->ctx;
  UOpVec order = {0}, roots = {0};
  Parts *ps = mem_alloc(&ctx->mem, sizeof *ps);
  bool ok = ps != NULL;
  for (size_t i = 0; ok && i < g->roots.len; i++)
    ok = vec_push(&ctx->mem, &roots, graph_root(g, i));
  ok = ok && uop_toposort(g->st, &ctx->mem, roots.at, roots.len, &order);
  size_t nedges = 0;
  for (size_t k = 0; ok && k < order.len; k++)
    nedges += order.at[k]->nsrc;
  if (ok) {
    ps->mem = &ctx->mem;
    ps->nnode = store_id_limit(g->st);
    ps->nparts = (size_t)n;
  }
  ok = ok && parts_room(ps, nedges);
  if (ok) sources_listed(ps, &order), owners_set(ps, &order, part);
  vec_free(&ctx->mem, &order), vec_free(&ctx->mem, &roots);
  if (ok) return ps;
  if (ps) ps->mem = &ctx->mem;
  parts_free(ps);
  error_no_memory(&ctx->err, "schedule");
  return NULL;
}

int parts_owner(const Parts *ps, const UOp *u) {
  return u->id < ps->nnode && ps->owner[u->id] != NOBODY ? ps->owner[u->id] : -1;
}

static void ends_marked(Parts *ps, const Plan *p) {
  for (int k = 0; k < p->sched.nkernel; k++)
    for (int i = 0; i < p->sched.kernel[k].nnode; i++)
      if (p->sched.kernel[k].node[i] < ps->nnode) ps->ends[p->sched.kernel[k].node[i]] = true;
  ps->ends_known = true;
}

/* Walks from the ends of the kernel's loop nests down to the ends of other nests. */
const int *parts_of(Parts *ps, const Plan *p, int k, int *n) {
  const SchedKernel *sk = &p->sched.kernel[k];
  size_t deep = 0;
  if (!ps->ends_known) ends_marked(ps, p);
  ps->stamp++;
  memset(ps->in, 0, ps->nparts * sizeof *ps->in);
  for (int i = 0; i < sk->nnode; i++)
    if (sk->node[i] < ps->nnode) ps->stack[deep++] = sk->node[i];
  while (deep) {
    uint32_t u = ps->stack[--deep];
    bool leaf = ps->first[u] == ps->first[u + 1];
    if (leaf || ps->seen[u] == ps->stamp) continue;
    ps->seen[u] = ps->stamp;
    if (ps->owner[u] != NOBODY && !ps->moves[u]) ps->in[ps->owner[u]] = true;
    for (uint32_t e = ps->first[u]; e < ps->first[u + 1]; e++)
      if (!ps->ends[ps->src[e]]) ps->stack[deep++] = ps->src[e];
  }
  *n = 0;
  for (size_t i = 0; i < ps->nparts; i++)
    if (ps->in[i]) ps->found[(*n)++] = (int)i;
  return ps->found;
}
