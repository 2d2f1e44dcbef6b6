/* nest.c: turns a kernel's graph into its loop nest (nest.h). In: a SINK of STOREs that list their loops,
 * with REDUCE and SCAN in their values and local memory behind AFTER. Out: the tree. Each reduction becomes a
 * register that statements step.
 *
 * The loops form a tree. An output lists its loops from the outside in. The loops of a reduction, or of a
 * store that fills local memory, are placed inside the deepest loop that they depend on, and reductions over
 * the same ranges share their loops. Inside a loop, a statement follows the statements that its value needs.
 * Stores to buffers come last, after all loads of the old contents. */
#include "codegen/nest.h"
#include "uop/merge.h"
#include <string.h>

/* ---- which loops a node is in: its free ranges, exact for any number of loops */
typedef struct Free {
  int n;
  UOp *r[];
} Free;

enum { MOST_SET_APART = 1000 }; /* attempts to give a nest ranges of its own */

typedef struct NestLoop {
  UOp *range;
  int parent, depth;
  bool closed;
  UOpVec body, stores, members;
} NestLoop; /* loop 0 is the kernel */

typedef struct Build {
  Kernel *k;
  Arena arena;
  Vec(NestLoop) loops;
  const Free **free;
  UOp **now;      /* by node id: what a node has become in the nest */
  int *loop_of;   /* by id of a RANGE: its loop, or -1 */
  int *late;      /* by node id: the innermost loop that is around all users of the node */
  uint8_t *state; /* 1: on the stack; 2: done */
  bool *output;   /* STOREs of the SINK; all other STOREs fill local memory */
  UOp *clash;     /* a nest that cannot share the loops of its ranges and needs ranges of its own, or NULL */
} Build;

static const Free no_loops = {0};

static bool free_has(const Free *f, const UOp *r) {
  for (int i = 0; i < f->n; i++)
    if (f->r[i] == r) return true;
  return false;
}

static const Free *free_union(Build *b, const Free *x, const Free *y) {
  int more = 0;
  for (int i = 0; i < y->n; i++)
    more += !free_has(x, y->r[i]);
  if (!more) return x;
  Free *f = arena_alloc(&b->arena, sizeof *f + (size_t)(x->n + more) * sizeof *f->r);
  if (!f) return NULL;
  f->n = x->n;
  if (x->n) memcpy(f->r, x->r, (size_t)x->n * sizeof *f->r);
  for (int i = 0; i < y->n; i++)
    if (!free_has(x, y->r[i])) f->r[f->n++] = y->r[i];
  return f;
}

static const Free *free_without(Build *b, const Free *x, int n, UOp *const *r) {
  Free *f = arena_alloc(&b->arena, sizeof *f + (size_t)x->n * sizeof *f->r);
  if (!f) return NULL;
  f->n = 0;
  for (int i = 0; i < x->n; i++) {
    bool closed = false;
    for (int k = 0; k < n; k++)
      closed |= r[k] == x->r[i];
    if (!closed) f->r[f->n++] = x->r[i];
  }
  return f;
}

static int list_start(const UOp *u) { return u->op == OPS_STORE ? 2 : u->op == OPS_REDUCE ? 1 : u->nsrc; }

/* Adds the loops around loop `first` to f. A nest may use the loops of an output, which lists its outer loops
 * too. The nest, and everything that reads it, is then inside those loops. */
static const Free *free_around(Build *b, const Free *f, const UOp *first) {
  int loop = b->loop_of[first->id];
  for (loop = loop < 0 ? 0 : b->loops.at[loop].parent; f && loop > 0; loop = b->loops.at[loop].parent) {
    Free *one = arena_alloc(&b->arena, sizeof *one + sizeof *one->r);
    if (!one) return NULL;
    one->n = 1;
    one->r[0] = b->loops.at[loop].range;
    f = free_union(b, f, one);
  }
  return f;
}

/* Called after place_outputs. */
static bool free_set(Build *b, UOp *u) {
  const Free *f = &no_loops;
  for (int i = 0; i < u->nsrc && f; i++)
    f = free_union(b, f, b->free[u->src[i]->id]);
  int first = list_start(u);
  if (f && first < u->nsrc) f = free_without(b, f, u->nsrc - first, u->src + first);
  if (f && first < u->nsrc && !b->output[u->id]) f = free_around(b, f, u->src[first]);
  if (f && u->op == OPS_RANGE) {
    Free *own = arena_alloc(&b->arena, sizeof *own + sizeof *own->r);
    if (!own) return false;
    own->n = 1;
    own->r[0] = u;
    f = free_union(b, own, f);
  }
  return (b->free[u->id] = f) != NULL;
}

/* ---- the tree of loops */
static int loop_add(Build *b, UOp *range, int parent) {
  int have = b->loop_of[range->id];
  if (have >= 0) return b->loops.at[have].parent == parent ? have : -1;
  NestLoop loop = {.range = range, .parent = parent, .depth = b->loops.at[parent].depth + 1};
  if (!vec_push(b->k->mem, &b->loops, loop)) return -1;
  return b->loop_of[range->id] = (int)b->loops.len - 1;
}

/* Whether u ends a loop nest of its own: a REDUCE, or a STORE that fills local memory. Nests over the same
 * ranges share their loops. */
static bool ends_nest(const Build *b, const UOp *u) {
  return (u->op == OPS_REDUCE || (u->op == OPS_STORE && !b->output[u->id])) && list_start(u) < u->nsrc;
}

static NestLoop *nest_of(Build *b, const UOp *u) {
  return &b->loops.at[b->loop_of[u->src[list_start(u)]->id]];
}

static bool around(const Build *b, int outer, int inner) { /* outer is inner, or a loop around it */
  while (b->loops.at[inner].depth > b->loops.at[outer].depth)
    inner = b->loops.at[inner].parent;
  return inner == outer;
}

static int common(const Build *b, int x, int y) { /* the deepest loop around both */
  while (x != y) {
    if (b->loops.at[x].depth >= b->loops.at[y].depth)
      x = b->loops.at[x].parent;
    else
      y = b->loops.at[y].parent;
  }
  return x;
}

/* The outermost loop in which a nest can be placed: the deepest loop that it depends on. */
static int earliest(const Build *b, const UOp *u) {
  const Free *f = b->free[u->id];
  int at = 0;
  for (int i = 0; i < f->n; i++) {
    int loop = b->loop_of[f->r[i]->id];
    if (loop > 0 && b->loops.at[loop].depth > b->loops.at[at].depth) at = loop;
  }
  return at;
}

static bool place_outputs(Build *b) {
  for (int i = 0; i < b->k->sink->nsrc; i++) {
    UOp *s = b->k->sink->src[i];
    int at = 0;
    for (int k = 2; k < s->nsrc; k++)
      if (s->src[k]->op == OPS_RANGE && (at = loop_add(b, s->src[k], at)) < 0) return false;
    b->late[s->id] = at;
  }
  return true;
}

/* Places the loops of u as far out as possible, but together with the other nests over the same ranges if
 * those are placed inside the loops that u needs. Returns the innermost loop, or -1. */
static int place_nest(Build *b, const UOpVec *order, size_t at, UOp *u) {
  int most = b->late[u->id], first = list_start(u), have = b->loop_of[u->src[first]->id];
  int own = earliest(b, u), want = own;
  if (have >= 0)
    want = b->loops.at[have].parent;
  else
    for (size_t j = 0; j < at; j++) {
      const UOp *o = order->at[j];
      if (!ends_nest(b, o) || o->src[list_start(o)] != u->src[first]) continue;
      int e = earliest(b, o);
      if (b->loops.at[e].depth > b->loops.at[want].depth) want = e;
    }
  int loop = around(b, own, want) && around(b, want, most) ? want : own;
  for (int i = first; i < u->nsrc && loop >= 0; i++)
    loop = loop_add(b, u->src[i], loop);
  if (loop < 0) return b->clash = u, -1;
  NestLoop *outer = nest_of(b, u);
  const UOp *other = outer->members.len ? outer->members.at[0] : NULL;
  if (other && other->nsrc - list_start(other) != u->nsrc - first) return b->clash = u, -1;
  return vec_push(b->k->mem, &outer->members, u) ? loop : -1;
}

/* Visits users first, because the loops around a nest must be known before its own loops are placed. */
static bool place_nests(Build *b, const UOpVec *order) {
  for (size_t i = order->len; i-- > 0;) {
    UOp *u = order->at[i];
    if (u->op == OPS_SINK) continue;
    int at = ends_nest(b, u) ? place_nest(b, order, i, u) : b->late[u->id];
    if (at < 0) return false;
    for (int k = 0; k < u->nsrc; k++) {
      int *late = &b->late[u->src[k]->id];
      *late = *late < 0 ? at : common(b, *late, at);
    }
  }
  return true;
}

/* ---- registers */
UOp *reg_new(Kernel *k, DType dtype, int naxis, UOp *const *extent) {
  int64_t n = 1;
  for (int i = 0; i < naxis; i++)
    n *= extent[i]->arg.v.i;
  return uop_new(k->st, OPS_DEFINE_REG, dtype, 1, naxis, extent, (Arg){.param = {n, k->next_reg++}});
}

UOp *reg_at(Kernel *k, UOp *reg, int n, UOp *const *at) {
  UOp *src[MAX_AXES + 1] = {reg};
  if (!reg || n > MAX_AXES) return NULL;
  if (n) memcpy(src + 1, at, (size_t)n * sizeof *at);
  return uop_new(k->st, OPS_INDEX, (DType)reg->dtype, 1, n + 1, src, ARG0);
}

static UOp *statement(Kernel *k, Ops op, UOp *to, UOp *value, Arg arg, int n, UOp *const *expanded) {
  UOp *src[2 + 2 * MAX_AXES] = {to, value};
  if (n > 2 * MAX_AXES) return NULL;
  if (n) memcpy(src + 2, expanded, (size_t)n * sizeof *expanded);
  return uop_new(k->st, op, DT_VOID, 1, 2 + n, src, arg);
}

UOp *write_new(Kernel *k, UOp *to, UOp *value, int n, UOp *const *expanded) {
  return statement(k, OPS_STORE, to, value, ARG0, n, expanded);
}

UOp *acc_new(Kernel *k, Ops op, UOp *acc, UOp *value, int n, UOp *const *expanded) {
  return statement(k, OPS_ACC, acc, value, (Arg){.reduce = {NULL, op}}, n, expanded);
}

bool starts_register(Kernel *k, UOp *store) {
  if (store->op != OPS_STORE || stored_in(store)->op != OPS_DEFINE_REG) return false;
  if (is_const(store->src[1])) return true;
  return !uop_contains(k->st, k->mem, &store->src[1], 1, stored_in(store));
}

UOp *reg_start(Kernel *k, UOp *at, Ops op, int n, UOp *const *expanded) {
  return at ? write_new(k, at, uop_identity(k->st, op, at->dtype), n, expanded) : NULL;
}

UOp *reg_like(Kernel *k, const UOp *reg, UOp *r) {
  UOp *extent[MAX_LIST + 1];
  int n = reg->nsrc;
  if (n > MAX_LIST - (r != NULL)) return NULL;
  if (n) memcpy(extent, reg->src, (size_t)n * sizeof *extent);
  if (r) extent[n++] = r->src[0];
  return reg_new(k, (DType)reg->dtype, n, extent);
}

UOp *reg_at_too(Kernel *k, UOp *reg, const UOp *x, UOp *r) {
  UOp *at[MAX_LIST + 1];
  int n = x->nsrc - 1;
  if (n > MAX_LIST) return NULL;
  if (n) memcpy(at, x->src + 1, (size_t)n * sizeof *at);
  if (r) at[n++] = r;
  return reg_at(k, reg, n, at);
}

UOp *local_memory(Kernel *k, int dtype, int64_t nelem) {
  return uop_new(k->st, OPS_DEFINE_LOCAL, (DType)dtype, 1, 0, NULL, (Arg){.param = {nelem, k->next_local++}});
}

int acc_moves(Kernel *k, const UOp *acc, UOp **list) {
  int n = 0;
  for (int i = 2; i < acc->nsrc; i++)
    if (depends(k, acc->src[0], acc->src[i])) list[n++] = acc->src[i];
  return n;
}

PartReg reg_part(Kernel *k, const UOp *acc, UOp *lane) {
  UOp *x = acc->src[0], *list[MAX_LIST + 1];
  Ops op = (Ops)acc->arg.reduce.op;
  int n = acc_moves(k, acc, list);
  if (lane) list[n++] = lane;
  UOp *at = reg_at_too(k, reg_like(k, x->src[0], lane), x, lane);
  return (PartReg){at, reg_start(k, at, op, n, list), acc_new(k, op, x, at, n, list)};
}

/* ---- statements in order */
static bool append(Build *b, int loop, UOp *statement) {
  return statement && !b->loops.at[loop].closed && vec_push(b->k->mem, &b->loops.at[loop].body, statement);
}

UOp *loop_new(Kernel *k, UOp *range, int n, UOp *const *body) {
  UOp **src = mem_alloc(k->mem, ((size_t)n + 1) * sizeof *src);
  if (!src || !range) return mem_free(k->mem, src), NULL;
  src[0] = range;
  if (n) memcpy(src + 1, body, (size_t)n * sizeof *body);
  UOp *loop = uop_new(k->st, OPS_LOOP, DT_VOID, 1, n + 1, src, ARG0);
  mem_free(k->mem, src);
  return loop;
}

static bool loop_close(Build *b, int loop) {
  /* loops that are still open inside it are closed first; a loop is closed only once */
  for (size_t i = 1; i < b->loops.len; i++)
    if (b->loops.at[i].parent == loop && !b->loops.at[i].closed && !loop_close(b, (int)i)) return false;
  NestLoop *l = &b->loops.at[loop];
  if (l->closed || b->loops.at[l->parent].closed) return false;
  for (size_t i = 0; i < l->stores.len; i++)
    if (!vec_push(b->k->mem, &l->body, l->stores.at[i])) return false;
  l->closed = true;
  UOp *range = b->now[l->range->id] ? b->now[l->range->id] : l->range;
  return append(b, l->parent, loop_new(b->k, range, (int)l->body.len, l->body.at));
}

/* A SCAN steps its register in every iteration of its loop. */
static bool scan_done(Build *b, UOp *u) {
  Kernel *k = b->k;
  int loop = b->loop_of[u->src[1]->id];
  if (loop < 0) return false;
  Ops op = (Ops)u->arg.reduce.op;
  DType wide = target_running(k->opt->target, op, (DType)u->src[0]->dtype);
  UOp *acc = reg_at(k, reg_new(k, wide, 0, NULL), 0, NULL);
  UOp *step = acc_new(k, op, acc, uop_cast(k->st, b->now[u->src[0]->id], wide), 0, NULL);
  b->now[u->id] = uop_cast(k->st, acc, (DType)u->dtype);
  return append(b, b->loops.at[loop].parent, reg_start(k, acc, op, 0, NULL)) && append(b, loop, step);
}

/* Emits all members of the loop nest that starts at `outer`. Everything that they need is done. */
static bool nest_done(Build *b, int outer) {
  Kernel *k = b->k;
  UOp *first = b->loops.at[outer].members.at[0];
  int home = b->loops.at[outer].parent, inner = b->loop_of[first->src[first->nsrc - 1]->id];
  for (size_t m = 0; m < b->loops.at[outer].members.len; m++) {
    UOp *u = b->loops.at[outer].members.at[m];
    if (u->op == OPS_STORE) {
      UOp *s = b->now[u->id] = write_new(k, b->now[u->src[0]->id], b->now[u->src[1]->id], 0, NULL);
      if (!s || !vec_push(k->mem, &b->loops.at[inner].stores, s)) return false;
      continue;
    }
    Ops op = (Ops)u->arg.reduce.op;
    UOp *acc = b->now[u->id] = reg_at(k, reg_new(k, (DType)u->dtype, 0, NULL), 0, NULL);
    if (!append(b, home, reg_start(k, acc, op, 0, NULL)) ||
        !append(b, inner, acc_new(k, op, acc, b->now[u->src[0]->id], 0, NULL)))
      return false;
  }
  for (int i = inner; i != home; i = b->loops.at[i].parent)
    if (!loop_close(b, i)) return false;
  for (size_t m = 0; m < b->loops.at[outer].members.len; m++)
    b->state[b->loops.at[outer].members.at[m]->id] = 2;
  return true;
}

/* The k-th node that must be done before u, or NULL. */
static UOp *dependency(Build *b, UOp *u, int k) {
  if (!ends_nest(b, u)) return k < u->nsrc ? u->src[k] : NULL;
  NestLoop *loop = nest_of(b, u);
  for (size_t m = 0; m < loop->members.len; m++) {
    UOp *r = loop->members.at[m];
    if (k < r->nsrc) return r->src[k];
    k -= r->nsrc;
  }
  /* the nest's outer loop is closed behind its members, so outputs inside that loop come first */
  int outer = b->loop_of[u->src[list_start(u)]->id];
  for (int i = 0; i < b->k->sink->nsrc; i++) {
    UOp *o = b->k->sink->src[i];
    if (around(b, outer, b->late[o->id]) && k-- == 0) return o;
  }
  return NULL;
}

static bool node_done(Build *b, UOp *u) {
  Kernel *k = b->k;
  b->state[u->id] = 2;
  if (ends_nest(b, u)) return nest_done(b, b->loop_of[u->src[list_start(u)]->id]);
  if (u->op == OPS_SCAN) return scan_done(b, u);
  if (u->op == OPS_AFTER) return (b->now[u->id] = b->now[u->src[0]->id]) != NULL;
  if (u->op == OPS_STORE) {
    int loop = b->output[u->id] ? b->late[u->id] : TG_MAX(b->late[u->id], 0);
    UOp *s = b->now[u->id] = write_new(k, b->now[u->src[0]->id], b->now[u->src[1]->id], 0, NULL);
    if (b->loops.at[loop].closed) return false;       /* a store is never lost */
    if (!b->output[u->id]) return append(b, loop, s); /* a row of one element */
    return s && vec_push(k->mem, &b->loops.at[loop].stores, s);
  }
  UOp *buf[64], **src = u->nsrc <= 64 ? buf : mem_alloc(k->mem, u->nsrc * sizeof *src);
  if (!src) return false;
  for (int i = 0; i < u->nsrc; i++)
    src[i] = b->now[u->src[i]->id];
  b->now[u->id] = uop_with_src(k->st, u, src);
  if (src != buf) mem_free(k->mem, src);
  return b->now[u->id] != NULL;
}

/* Called when the stack waits for d while d waits for the stack: the members of one nest wait for each other.
 * Returns a member that must get loops of its own, or NULL. */
static UOp *waits_for_itself(const Build *b, const UOpVec *stack, const UOp *d) {
  for (size_t i = stack->len; i-- > 0;) {
    UOp *u = stack->at[i];
    if (ends_nest(b, u) && nest_of((Build *)b, u)->members.len > 1) return u;
    if (u == d) break;
  }
  return NULL;
}

static bool order_statements(Build *b) {
  TgMem *m = b->k->mem;
  UOpVec stack = {0};
  Vec(int) next = {0};
  bool ok = true;
  for (int s = 0; ok && s < b->k->sink->nsrc; s++) {
    ok = vec_push(m, &stack, b->k->sink->src[s]) && vec_push(m, &next, 0);
    while (ok && stack.len) {
      UOp *u = stack.at[stack.len - 1];
      if (b->state[u->id] == 2) {
        stack.len--, next.len--;
        continue;
      }
      b->state[u->id] = 1;
      UOp *d = dependency(b, u, next.at[next.len - 1]++);
      if (!d) {
        ok = node_done(b, u);
        stack.len--, next.len--;
      } else if (b->state[d->id] == 1) {
        b->clash = waits_for_itself(b, &stack, d);
        ok = false;
      } else if (b->state[d->id] != 2)
        ok = vec_push(m, &stack, d) && vec_push(m, &next, 0);
    }
  }
  vec_free(m, &stack), vec_free(m, &next);
  return ok;
}

/* Closes the loops of outputs, which are all that is still open: deepest first, in the order in which they
 * were made. */
static bool close_outputs(Build *b) {
  int deepest = 0;
  for (size_t i = 0; i < b->loops.len; i++)
    deepest = TG_MAX(deepest, b->loops.at[i].depth);
  for (int d = deepest; d > 0; d--)
    for (size_t i = 1; i < b->loops.len; i++)
      if (b->loops.at[i].depth == d && !b->loops.at[i].closed && !loop_close(b, (int)i)) return false;
  UOpVec *body = &b->loops.at[0].body, *stores = &b->loops.at[0].stores;
  for (size_t i = 0; i < stores->len; i++)
    if (!vec_push(b->k->mem, body, stores->at[i])) return false;
  UOp *sink = uop_new(b->k->st, OPS_SINK, DT_VOID, 1, (int)body->len, body->at, ARG0);
  return (b->k->sink = nest_simplify(b->k, sink)) != NULL;
}

/* ---- before the tree */
static bool fills_local(const UOp *u) {
  return u->op == OPS_STORE && u->src[0]->src[0]->op == OPS_DEFINE_LOCAL;
}

static int loops_of(const UOp *u) { return u->nsrc - list_start(u); }

/* Whether two lists begin with the same range but are not the same list. */
static bool lists_clash(const UOp *a, const UOp *b) {
  UOp *const *x = a->src + list_start(a), *const *y = b->src + list_start(b);
  return x[0] == y[0] && (loops_of(a) != loops_of(b) || memcmp(x, y, (size_t)loops_of(a) * sizeof *x));
}

/* u over ranges of its own, which descend from its old ranges. */
static UOp *with_own_ranges(Kernel *k, UOp *u) {
  UOp *to[MAX_AXES], *const *from = u->src + list_start(u);
  int n = loops_of(u);
  if (n > MAX_AXES) return NULL;
  for (int i = 0; i < n; i++)
    if (!(to[i] = kernel_range(k, from[i]->src[0], (AxisType)from[i]->arg.range.type, from[i]))) return NULL;
  return kernel_with(k, u, n, from, to);
}

/* Finds the first two nests whose lists clash. *clash: the one of them that is to get ranges of its own. It
 * is the one with more loops, because other nests may share the shorter list. NULL: no lists clash. */
static bool find_clash(Kernel *k, UOp **clash) {
  UOpVec order = {0};
  Map first; /* range -> the first nest that begins with it */
  map_init(&first, k->mem);
  bool ok = kernel_nodes(k, k->sink, &order);
  *clash = NULL;
  for (size_t i = 0; ok && !*clash && i < order.len; i++) {
    UOp *u = order.at[i];
    if ((u->op != OPS_REDUCE && !fills_local(u)) || loops_of(u) < 1) continue;
    UOp *other = map_get_ptr(&first, u->src[list_start(u)]);
    if (!other)
      ok = map_put_ptr(&first, u->src[list_start(u)], u);
    else if (lists_clash(u, other))
      *clash = loops_of(other) > loops_of(u) ? other : u;
  }
  vec_free(k->mem, &order), map_free(&first);
  return ok;
}

/* Gives the nest that u ends ranges of its own. */
static bool set_apart(Kernel *k, UOp *u) {
  UOp *own = with_own_ranges(k, u);
  UOp *sink = own ? kernel_with(k, k->sink, 1, &u, &own) : NULL;
  if (sink) k->sink = sink;
  return sink != NULL;
}

/* All members of a nest have the very same ranges. Merged reductions, such as a maximum of maxima, may begin
 * with a range of another reduction, or of a store that fills a row. They get ranges of their own. */
static bool lists_apart(Kernel *k) {
  for (UOp *clash;;) {
    if (!find_clash(k, &clash)) return false;
    if (!clash) return true;
    if (!set_apart(k, clash)) return false;
  }
}

static bool build_begin(Build *b, const UOpVec *order) {
  size_t n = store_id_limit(b->k->st) + 1;
  b->free = arena_alloc(&b->arena, n * sizeof *b->free);
  b->now = arena_array(&b->arena, UOp *, n);
  b->loop_of = arena_array(&b->arena, int, n);
  b->late = arena_array(&b->arena, int, n);
  b->state = arena_array(&b->arena, uint8_t, n);
  b->output = arena_array(&b->arena, bool, n);
  if (!b->free || !b->now || !b->loop_of || !b->late || !b->state || !b->output) return false;
  for (size_t i = 0; i < n; i++)
    b->loop_of[i] = b->late[i] = -1;
  for (int i = 0; i < b->k->sink->nsrc; i++)
    b->output[b->k->sink->src[i]->id] = true;
  bool ok = vec_push(b->k->mem, &b->loops, ((NestLoop){.parent = -1})) && place_outputs(b);
  for (size_t i = 0; ok && i < order->len; i++)
    ok = free_set(b, order->at[i]);
  return ok;
}

/* One attempt to build the tree. If it returns false, *clash is a nest that must get ranges of its own first,
 * or NULL for an error. */
static bool build_tree(Kernel *k, UOp **clash) {
  Build b = {.k = k};
  UOpVec order = {0};
  TgMem *m = k->mem;
  arena_init(&b.arena, m);
  bool ok = uop_toposort(k->st, m, &k->sink, 1, &order) && build_begin(&b, &order);
  ok = ok && place_nests(&b, &order) && order_statements(&b) && close_outputs(&b);
  for (size_t i = 0; i < b.loops.len; i++)
    vec_free(m, &b.loops.at[i].body), vec_free(m, &b.loops.at[i].stores), vec_free(m, &b.loops.at[i].members);
  vec_free(m, &b.loops), vec_free(m, &order);
  arena_free(&b.arena);
  *clash = b.clash;
  return ok;
}

/* Equal expressions over equal ranges are one node. Two reductions may therefore share a range although one
 * of them is inside a loop that the other cannot be in. Each attempt that fails for this reason gives one
 * more nest ranges of its own. */
bool nest_build(Kernel *k) {
  UOp *clash = NULL;
  if (!lists_apart(k)) return false;
  for (int left = MOST_SET_APART; !build_tree(k, &clash); left--)
    if (!clash || !left || !set_apart(k, clash)) return false;
  return true;
}

/* ---- looking at the tree and changing it */
bool nest_places(const Kernel *k, UOp *root, PlaceVec *out) {
  PlaceVec todo = {0}; /* a stack: the last statement of a body is pushed first */
  out->len = 0;
  bool ok = true;
  if (root->op == OPS_SINK)
    for (int i = root->nsrc; ok && i-- > 0;)
      ok = vec_push(k->mem, &todo, ((Place){root->src[i], -1, 0}));
  else
    ok = vec_push(k->mem, &todo, ((Place){root, -1, 0}));
  while (ok && todo.len) {
    Place p = todo.at[--todo.len];
    ok = vec_push(k->mem, out, p);
    int here = (int)out->len - 1;
    if (p.u->op != OPS_LOOP) continue;
    for (int i = p.u->nsrc; ok && i-- > 1;)
      ok = vec_push(k->mem, &todo, ((Place){p.u->src[i], here, p.depth + 1}));
  }
  vec_free(k->mem, &todo);
  return ok;
}

int place_of_start(const PlaceVec *at, const UOp *reg) {
  for (size_t i = 0; i < at->len; i++)
    if (at->at[i].u->op == OPS_STORE && stored_in(at->at[i].u) == reg) return (int)i;
  return -1;
}

/* Recursion is safe because loops nest only as deep as a kernel has axes. */
static UOp *replaced(Kernel *k, UOp *u, const UOp *old, int n, UOp *const *with, bool *found) {
  if (u->op != OPS_LOOP && u->op != OPS_SINK) return u;
  UOpVec src = {0};
  bool ok = true, changed = false;
  for (int i = 0; ok && i < u->nsrc; i++) {
    if (u->src[i] == old && !*found) {
      *found = changed = true;
      for (int j = 0; ok && j < n; j++)
        ok = with[j] && vec_push(k->mem, &src, with[j]);
      continue;
    }
    UOp *s = replaced(k, u->src[i], old, n, with, found);
    changed |= s != u->src[i];
    ok = s && vec_push(k->mem, &src, s);
  }
  UOp *r = !ok ? NULL : changed ? uop_new(k->st, (Ops)u->op, DT_VOID, 1, (int)src.len, src.at, u->arg) : u;
  vec_free(k->mem, &src);
  return r;
}

/* Replaces a loop of one iteration, whose range has become 0, by its statements, and drops a loop of no
 * iterations. */
static bool unlooped(Kernel *k, UOp *u, UOpVec *out) {
  if (u->op != OPS_LOOP && u->op != OPS_SINK) return vec_push(k->mem, out, u);
  if (u->op == OPS_LOOP && u->src[0]->op == OPS_RANGE && is_const_int(u->src[0]->src[0], 0)) return true;
  bool range = u->op == OPS_LOOP && u->src[0]->op == OPS_RANGE, ok = true;
  UOpVec src = {0};
  if (range) ok = vec_push(k->mem, &src, u->src[0]);
  for (int i = u->op == OPS_LOOP; ok && i < u->nsrc; i++)
    ok = unlooped(k, u->src[i], &src);
  if (u->op == OPS_LOOP && !range)
    for (size_t i = 0; ok && i < src.len; i++)
      ok = vec_push(k->mem, out, src.at[i]);
  else if (ok) {
    UOp *now = uop_new(k->st, (Ops)u->op, DT_VOID, 1, (int)src.len, src.at, u->arg);
    ok = now && vec_push(k->mem, out, now);
  }
  vec_free(k->mem, &src);
  return ok;
}

UOp *nest_simplify(Kernel *k, UOp *sink) {
  UOp *r = sink ? uop_simplify(k->st, k->mem, sink) : NULL;
  UOpVec out = {0};
  if (r) r = unlooped(k, r, &out) ? out.at[0] : NULL;
  vec_free(k->mem, &out);
  return r;
}

bool depends(Kernel *k, UOp *u, const UOp *r) {
  if (!(u->ranges & range_bit(r->arg.range.id))) return false;
  if (range_bit(r->arg.range.id) != range_bit(63)) return true;
  return uop_contains(k->st, k->mem, &u, 1, r);
}

int gate_clauses(UOp *gate, UOp *out[MOST_CLAUSES]) {
  int n = 1;
  out[0] = gate;
  for (int i = 0; i < n;) {
    UOp *g = out[i];
    if (g->op == OPS_AND && n < MOST_CLAUSES) {
      out[i] = g->src[0];
      out[n++] = g->src[1];
    } else
      i++;
  }
  return n;
}

static bool factor_clauses(UOp *u, Clauses *out, bool *first) {
  if (u->op == OPS_CAST) return factor_clauses(u->src[0], out, first);
  if (u->op == OPS_MUL) return factor_clauses(u->src[0], out, first) && factor_clauses(u->src[1], out, first);
  if (u->op != OPS_INDEX || !u->arg.i) return false;
  Clauses own, both = {0};
  own.n = gate_clauses(index_gate(u), own.at);
  for (int i = 0; i < own.n; i++)
    if (*first || clauses_have(out, own.at[i])) both.at[both.n++] = own.at[i];
  *out = both;
  *first = false;
  return out->n > 0;
}

void product_clauses(UOp *value, Clauses *out) {
  bool first = true;
  out->n = 0;
  if (!factor_clauses(value, out, &first)) out->n = 0;
}

bool moves_evenly(Kernel *k, UOp *e, UOp *r, int64_t *step) {
  /* true for most expressions, and makes no node */
  if (r->op == OPS_RANGE && uop_coefficient(e, r, step)) return true;
  UOp *next = uop_alu2(k->st, OPS_ADD, r, uop_index_const(k->st, 1));
  UOp *moved = next ? kernel_with(k, e, 1, &r, &next) : NULL;
  UOp *d = moved ? uop_simplify(k->st, k->mem, uop_alu2(k->st, OPS_SUB, moved, e)) : NULL;
  if (!d || !is_const(d)) return false;
  *step = d->arg.v.i;
  return true;
}

UOp *nest_replace(Kernel *k, UOp *root, const UOp *old, int n, UOp *const *with) {
  bool found = false;
  UOp *r = root ? replaced(k, root, old, n, with, &found) : NULL;
  return found ? r : NULL;
}

UOp *body_of(Kernel *k, const UOp *loop) {
  return uop_new(k->st, OPS_SINK, DT_VOID, 1, loop->nsrc - 1, loop->src + 1, ARG0);
}

UOp *range_marked(Kernel *k, UOp *r, int of) {
  if (!r) return NULL;
  Arg arg = r->arg;
  arg.range.of = of;
  return r->op == OPS_RANGE ? uop_new(k->st, OPS_RANGE, DT_INDEX, 1, 1, r->src, arg) : r;
}

UOp *statement_with(Kernel *k, UOp *u, UOp *value) {
  UOp *src[MAX_LIST + 3];
  memcpy(src, u->src, u->nsrc * sizeof *src);
  src[1] = value;
  return uop_new(k->st, (Ops)u->op, DT_VOID, 1, u->nsrc, src, u->arg);
}

bool nest_edit(Kernel *k, UOp *old, UOp *with) {
  UOp *sink = with ? nest_replace(k, k->sink, old, with->nsrc, with->src) : NULL;
  return (k->sink = nest_simplify(k, sink)) != NULL;
}

bool nest_stores_to(const UOp *u, const UOp *memory) {
  if (u->op == OPS_STORE || u->op == OPS_ACC) {
    const UOp *m = stored_in(u);
    return m == memory ||
           (m->op == OPS_PARAM && memory->op == OPS_PARAM && m->arg.param.slot == memory->arg.param.slot);
  }
  for (int i = is_loop(u); (is_loop(u) || u->op == OPS_SINK) && i < u->nsrc; i++)
    if (nest_stores_to(u->src[i], memory)) return true;
  return false;
}

int64_t nest_local_bytes(Kernel *k, UOp *root) {
  UOpVec order = {0};
  int64_t n = kernel_nodes(k, root, &order) ? 0 : -1;
  for (size_t i = 0; n >= 0 && i < order.len; i++)
    if (order.at[i]->op == OPS_DEFINE_LOCAL) n += local_array_bytes(order.at[i]);
  vec_free(k->mem, &order);
  return n;
}

typedef struct Fresh {
  Kernel *k;
  UOpVec from, to;
} Fresh;

static bool fresh_add(Fresh *f, UOp *from, UOp *to) {
  return to && vec_push(f->k->mem, &f->from, from) && vec_push(f->k->mem, &f->to, to);
}

static bool fresh_has(const Fresh *f, const UOp *u) {
  for (size_t i = 0; i < f->from.len; i++)
    if (f->from.at[i] == u) return true;
  return false;
}

static bool fresh_range(Fresh *f, UOp *r) {
  if (r->op != OPS_RANGE || fresh_has(f, r)) return true;
  UOp *extent = kernel_with(f->k, r->src[0], (int)f->from.len, f->from.at, f->to.at);
  UOp *copy = extent ? kernel_range(f->k, extent, (AxisType)r->arg.range.type, r) : NULL;
  int32_t of = r->arg.range.of;
  bool stays = of == LOCAL_OF_BLOCK || of == LANES_OF_COPY || of == FRAGMENT_OF_A || of == FRAGMENT_OF_B;
  if (copy && stays) copy = range_marked(f->k, copy, of);
  return fresh_add(f, r, copy);
}

/* Whether a statement of the kernel outside `u` uses memory m. Also true if memory runs out. */
static bool touched_outside(Kernel *k, UOp *u, const UOp *m) {
  PlaceVec at = {0};
  bool found = !nest_places(k, k->sink, &at);
  for (size_t i = 0; i < at.len && !found; i++) {
    UOp *s = at.at[i].u;
    bool inside = false;
    for (int up = (int)i; up >= 0; up = at.at[up].up)
      inside |= at.at[up].u == u;
    bool writes = s->op == OPS_STORE || s->op == OPS_ACC;
    found = !inside && writes && uop_contains(k->st, k->mem, s->src, 2, m);
  }
  vec_free(k->mem, &at);
  return found;
}

/* Gives the copy a new register if the register is started inside, or new local memory if nothing else uses
 * it. */
static bool fresh_memory(Fresh *f, UOp *in, const UOp *store) {
  UOp *m = stored_in(store);
  if (fresh_has(f, m)) return true;
  if (starts_register(f->k, (UOp *)store)) return fresh_add(f, m, reg_like(f->k, m, NULL));
  if (m->op == OPS_DEFINE_LOCAL && !touched_outside(f->k, in, m))
    return fresh_add(f, m, local_memory(f->k, m->dtype, m->arg.param.nelem));
  return true;
}

UOp *nest_copy(Kernel *k, UOp *u, int n, UOp *const *from, UOp *const *to) {
  Fresh f = {.k = k};
  PlaceVec at = {0};
  bool ok = nest_places(k, u, &at);
  for (int i = 0; ok && i < n; i++)
    ok = fresh_add(&f, from[i], to[i]);
  for (size_t i = 0; ok && i < at.len; i++) {
    UOp *s = at.at[i].u;
    if (s->op == OPS_LOOP) ok = fresh_range(&f, s->src[0]);
    if (s->op != OPS_STORE && s->op != OPS_ACC) continue;
    ok = fresh_memory(&f, u, s);
    for (int r = 2; ok && r < s->nsrc; r++)
      ok = fresh_range(&f, s->src[r]);
  }
  UOp *copy = ok ? kernel_with(k, u, (int)f.from.len, f.from.at, f.to.at) : NULL;
  vec_free(k->mem, &f.from), vec_free(k->mem, &f.to), vec_free(k->mem, &at);
  return copy;
}

/* ---- index arithmetic */
bool kernel_nodes(Kernel *k, UOp *u, UOpVec *order) { return uop_toposort(k->st, k->mem, &u, 1, order); }

UOp *kernel_with(Kernel *k, UOp *u, int n, UOp *const *from, UOp *const *to) {
  return uop_substitute(k->st, k->mem, u, n, from, to);
}

UOp *simp(Kernel *k, UOp *u) { return u ? uop_simplify(k->st, k->mem, u) : NULL; }

UOp *ix(Kernel *k, Ops op, UOp *a, UOp *b) {
  return a && b ? uop_simplify(k->st, k->mem, uop_alu2(k->st, op, a, b)) : NULL;
}

UOp *ix_top(Kernel *k, Ops op, UOp *a, UOp *b) {
  return a && b ? uop_simplify_top(k->st, k->mem, uop_alu2(k->st, op, a, b)) : NULL;
}

UOp *ix_min(Kernel *k, UOp *a, UOp *b) {
  UOp *minus = num(k, -1);
  return ix(k, OPS_MUL, ix(k, OPS_MAX, ix(k, OPS_MUL, a, minus), ix(k, OPS_MUL, b, minus)), minus);
}

UOp *index_gated(Kernel *k, UOp *x, UOp *gate) {
  UOp *at[MAX_AXES + 2];
  int n = 1 + index_naxes(x);
  memcpy(at, x->src, (size_t)n * sizeof *at);
  at[n] = gate && x->arg.i ? uop_alu2(k->st, OPS_AND, index_gate(x), gate) : gate;
  return at[n] ? uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, n + 1, at, (Arg){.i = 1}) : NULL;
}
