/* graph_copy.c: the live graph, copied into a store of its own, with its memories numbered in order of
 * use. In: roots. Out: the copy, and its bytes. The bytes are the key under which the schedule and
 * programs are kept, so that a training step compiles nothing after the first time. A node of the live
 * graph never changes its value, whatever is stored meanwhile, because a BUFFER names one version of a
 * memory. So each source is looked up during the copy: an expression that was computed is read from where
 * its value lies, a store that has run becomes the next version of its memory, and a version that was
 * overwritten becomes the copy that was kept of it. Only the place of a STORE is never looked up, because
 * it is memory. */
#include "engine/graph_copy.h"
#include "engine/jit.h"
#include "uop/dims.h"
#include <string.h>

enum { MANY = UINT32_MAX };

/* ---- values */
static bool is_now(TgContext *ctx, const UOp *memory) {
  const Buffer *b = buffer_get(ctx, memory);
  return b && b->version == buffer_version(memory);
}

/* Returns where the older version u of a memory is. Each capture makes a version, so the versions form a
 * chain. u and the versions along the chain are redirected to its end, so that nobody walks the chain
 * twice. */
static UOp *older_version(TgContext *ctx, UOp *u) {
  UOp *v = map_get_ptr(&ctx->realized, u), *last = v, *next;
  while (last && last->op == OPS_BUFFER && !is_now(ctx, last) && (next = map_get_ptr(&ctx->realized, last)))
    last = next;
  for (; last && u != last && v != last; u = v, v = next) {
    next = map_get_ptr(&ctx->realized, v);
    map_replace_ptr(&ctx->realized, (uintptr_t)u, last);
  }
  return last;
}

Buffer *buffer_of_value(TgContext *ctx, UOp *bottom) {
  while (bottom && !is_now(ctx, bottom))
    bottom = buffer_get(ctx, bottom) ? view_bottom(older_version(ctx, bottom)) : NULL;
  return bottom ? buffer_get(ctx, bottom) : NULL;
}

/* Returns where an expression was computed to, if that memory still holds it. A value computed from
 * variables is valid only for the variables' values at that time. While a function is captured, a value
 * from before the capture is computed again if it depends on no memory, if it depends on variables,
 * because replays have other values of them, or if only an input holds it. The exception is an input that
 * is an expression of variables: it is read from its memory. */
static UOp *computed(TgContext *ctx, UOp *u) {
  UOp *v = map_get_ptr(&ctx->realized, u);
  Buffer *b = v ? buffer_of_value(ctx, view_bottom(v)) : NULL;
  if (!b) return NULL;
  if (u->symbolic && b->bound_at != ctx->bound + 1) return NULL;
  if (!ctx->capture || b->made >= ctx->capture_first) return v;
  return u->ranges && u->symbolic == b->given ? v : NULL;
}

UOp *stored_value(TgContext *ctx, UOp *after) {
  UOp *bottom = view_bottom(after->src[1]->src[0]);
  Buffer *b = buffer_get(ctx, bottom);
  if (!b || b->version == buffer_version(bottom)) return b ? after : NULL;
  int64_t slot = bottom->arg.param.slot + (INT64_C(1) << 32);
  UOp *next = uop_new(ctx->store, OPS_BUFFER, (DType)bottom->dtype, 1, 0, NULL,
                      (Arg){.param = {bottom->arg.param.nelem, slot & INT64_MAX}});
  return view_on(ctx, after->src[0], view_bottom(after->src[0]), next);
}

/* During a capture, notes that the function reads the earlier expression u from v, which is an older
 * version of a memory or where u was computed to. Returns v. */
static UOp *read_from(TgContext *ctx, UOp *u, UOp *v) {
  const Capture *c = ctx->capture;
  Buffer *b = c && !c->asks && v ? buffer_of_value(ctx, view_bottom(v)) : NULL;
  if (b && !(u->symbolic && b->given)) older_read_from(ctx, b);
  return v;
}

UOp *value_of_node(TgContext *ctx, UOp *u) {
  while (u) {
    if (u->op == OPS_AFTER && u->is_tensor) {
      UOp *v = stored_value(ctx, u);
      if (v == u) return u; /* the store waits */
      u = v;
      continue;
    }
    if (u->op == OPS_BUFFER) {
      if (is_now(ctx, u)) return u;
      u = read_from(ctx, u, older_version(ctx, u));
      continue;
    }
    UOp *v = computed(ctx, u);
    if (!v || v == u) return u;
    u = read_from(ctx, u, v);
  }
  return NULL;
}

/* ---- reaching */
GraphNode *graph_node(const Graph *g, const UOp *u) {
  GraphNode *n = u->id < g->nnode ? &g->node[u->id] : NULL;
  return n && n->graph == g->number_of_graph ? n : NULL;
}

/* Returns the facts of u, which are made if u was not reached yet. NULL if out of memory. */
static GraphNode *node_of(Graph *g, const UOp *u) {
  if (u->id >= g->nnode) { /* looking up values adds a few nodes to the store */
    size_t n = TG_MAX((size_t)u->id + 1, store_id_limit(g->ctx->store)) * 5 / 4 + 64;
    GraphNode *more = mem_alloc(&g->ctx->mem, n * sizeof *more);
    if (!more) return NULL;
    if (g->nnode) memcpy(more, g->node, g->nnode * sizeof *more);
    mem_free(&g->ctx->mem, g->node);
    g->node = more;
    g->nnode = n;
  }
  GraphNode *n = &g->node[u->id];
  if (n->graph != g->number_of_graph) *n = (GraphNode){.graph = g->number_of_graph};
  return n;
}

/* A graph that is made while another one lives has an array of its own. */
static void nodes_borrow(Graph *g, GraphNodes *kept) {
  g->number_of_graph = 1;
  if (!kept || kept->lent) return;
  if (kept->graphs == UINT32_MAX) {
    kept->graphs = 0;
    memset(kept->at, 0, kept->n * sizeof *kept->at);
  }
  g->node = kept->at;
  g->nnode = kept->n;
  g->number_of_graph = ++kept->graphs;
  g->borrowed = kept->lent = true;
}

static void nodes_return(Graph *g) {
  GraphNodes *kept = engine_graph_nodes(g->ctx);
  if (g->borrowed) {
    kept->at = g->node;
    kept->n = g->nnode;
    kept->lent = false;
  } else
    mem_free(&g->ctx->mem, g->node);
  g->node = NULL;
  g->nnode = 0;
  g->borrowed = false;
}

bool graph_init(Graph *g, TgContext *ctx, int device) {
  *g = (Graph){.ctx = ctx, .device = device};
  nodes_borrow(g, engine_graph_nodes(ctx));
  str_init(&g->key, &ctx->mem);
  str_putn(&g->key, (const char *)&device, sizeof device);
  map_init(&g->slots, &ctx->mem), map_init(&g->pieces, &ctx->mem);
  map_init(&g->is_stored, &ctx->mem);
  g->st = store_new(&ctx->mem);
  if (!g->st) return false;
  store_set_env(g->st, &ctx->passes.rewrites), store_set_dims(g->st, ctx->dims);
  return true;
}

void graph_free(Graph *g) {
  if (!g->ctx) return; /* it was never initialised */
  TgMem *mem = &g->ctx->mem;
  nodes_return(g);
  vec_free(mem, &g->order), vec_free(mem, &g->copies), vec_free(mem, &g->roots), vec_free(mem, &g->stored),
      vec_free(mem, &g->buffers);
  map_free(&g->slots), map_free(&g->pieces), map_free(&g->is_stored);
  str_free(&g->key);
  store_free(g->st);
}

/* Finds source i of a node as it is read. A value is looked up. A place, or the first source of an AFTER,
 * is the memory itself. */
static bool source_of(Graph *g, Reached r, int i, Reached *to) {
  UOp *s = r.u->src[i];
  bool place = r.place || ((r.u->op == OPS_STORE || r.u->op == OPS_AFTER) && i == 0);
  *to = (Reached){s, place};
  if (place || s->op == OPS_STORE) return true;
  uint64_t failed = g->ctx->mem.failed;
  if ((to->u = value_of_node(g->ctx, s)) == NULL && failed == g->ctx->mem.failed)
    error_set(&g->ctx->err, TG_ERR_STATE,
              "realize: a tensor was built from memory that has changed since, and what that held was not "
              "kept; compute it before");
  bool elsewhere = to->u && !s->devices && to->u->devices && !(to->u->devices >> g->device & 1);
  if (elsewhere) to->u = s; /* a number that was computed on another device is computed here instead */
  if (g->apart && to->u && to->u->op == OPS_BUFFER) {
    UOp *kept = map_get_ptr(&g->ctx->realized, to->u);
    if (kept) to->u = kept;
  }
  return to->u != NULL;
}

static bool store_seen(Graph *g, UOp *store) {
  Buffer *b = buffer_get(g->ctx, view_bottom(store->src[0]));
  if (!b || map_get_ptr(&g->is_stored, b)) return b != NULL;
  return map_put_ptr(&g->is_stored, b, b) && vec_push(&g->ctx->mem, &g->stored, b);
}

typedef struct Frame {
  Reached at;
  int next;
} Frame;

/* Whether a value comes from another device. It must be copied before the graph can be, so the walk stops
 * here. */
static bool comes_from_elsewhere(const Graph *g, const UOp *u) {
  return u->op == OPS_COPY && u->src[0]->devices & ~(1ull << g->device);
}

bool graph_reach(Graph *g, UOp *root) {
  TgContext *ctx = g->ctx;
  Vec(Frame) stack = {0};
  root = value_of_node(ctx, root);
  bool ok = root && vec_push(&ctx->mem, &g->roots, root);
  GraphNode *n = ok ? node_of(g, root) : NULL;
  ok = n != NULL;
  if (ok && !n->value) {
    n->value = true;
    ok = vec_push(&ctx->mem, &stack, ((Frame){{root, false}, 0}));
  }
  while (ok && stack.len) {
    Frame *f = &stack.at[stack.len - 1];
    Reached at = f->at, s;
    if (comes_from_elsewhere(g, at.u)) {
      stack.len--;
      ok = vec_push(&ctx->mem, &g->copies, at.u);
      continue;
    }
    if (f->next == at.u->nsrc) {
      stack.len--;
      ok = vec_push(&ctx->mem, &g->order, at) && (at.u->op != OPS_STORE || store_seen(g, at.u));
      continue;
    }
    int i = f->next++;
    ok = source_of(g, at, i, &s) && (n = node_of(g, s.u)) != NULL;
    if (!ok) break;
    /* only an AFTER that is read reads its base: see graph_pieces */
    bool base = at.u->op == OPS_AFTER && i == 0;
    if (!base) n->user = n->user && n->user != at.u->id + 1 ? MANY : at.u->id + 1;
    bool *seen = s.place ? &n->place : &n->value;
    if (!*seen) {
      *seen = true;
      ok = vec_push(&ctx->mem, &stack, ((Frame){s, 0}));
    }
  }
  vec_free(&ctx->mem, &stack);
  return ok || (error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory copying the graph"), false);
}

/* Returns the user of u. 0: u was not reached, so it has none. */
static uint32_t user_of(const Graph *g, const UOp *u) {
  const GraphNode *n = graph_node(g, u);
  return n ? n->user : 0;
}

static bool many_read(Graph *g, const UOp *u) {
  GraphNode *n = node_of(g, u);
  if (n) n->user = MANY;
  return n != NULL;
}

/* ---- pieces: if the graph sees a memory through only one view, and that view is a contiguous piece of
 * it, then to the graph it is a memory of the size of the piece. The start of the piece is given at the
 * launch and is not part of the key. So a loop over the batches of a data set, or over the rows of a
 * cache, is planned only once. */
static bool graph_pieces(Graph *g) {
  TgContext *ctx = g->ctx;
  const Renderer *r = device_at(ctx, g->device)->backend->renderer;
  size_t align = r ? (size_t)r->vec_align : 1;
  for (size_t k = 0; k < g->order.len; k++) {
    UOp *u = g->order.at[k].u;
    if (u->op == OPS_AFTER && u->is_tensor && user_of(g, u))
      for (UOp *v = u->src[0];; v = v->src[0]) {
        if (!many_read(g, v)) return false;
        if (v->op == OPS_BUFFER) break;
      }
  }
  for (size_t k = 0; k < g->roots.len; k++) /* a root is seen by the caller too */
    if (!many_read(g, g->roots.at[k])) return false;
  for (size_t k = 0; k < g->order.len; k++) {
    UOp *u = g->order.at[k].u;
    if (u->op != OPS_SHRINK || !(u->mark & MARK_VIEW)) continue;
    int64_t start, nelem = dim_product(ctx->store, u->shape);
    UOp *b = piece_of(u, &start), *seen = u;
    if (!b || !nelem || nelem == b->arg.param.nelem || (size_t)start * dtype_size((DType)b->dtype) % align)
      continue;
    while (seen != b && user_of(g, seen->src[0]) == seen->id + 1)
      seen = seen->src[0];
    if (seen == b && !map_put_ptr(&g->pieces, (uintptr_t)buffer_uid(b), u)) return false;
  }
  return true;
}

/* ---- copying */
/* The bytes of a node in a key. They are followed by its list, if it has one, and the numbers of its
 * sources. */
typedef struct KeyHead {
  uint8_t op, dtype, lanes, pad;
  uint16_t nsrc, list;
  int64_t a, b;
} KeyHead;

void key_put(Str *key, const UOp *u) {
  KeyHead head = {u->op, u->dtype, u->lanes, 0, u->nsrc, 0, u->arg.raw.a, u->arg.raw.b};

  const Ints *list = uop_list(u);
  if (list) {
    head.list = 1;
    head.a = list->n;
    head.b = op_has_axes((Ops)u->op) ? head.b : 0;
  }
  str_putn(key, (char *)&head, sizeof head);
  if (list) str_putn(key, (const char *)list->v, (size_t)list->n * sizeof *list->v);
}

/* Takes n bytes of a key. Returns false if fewer are left. */
static bool key_taken(const uint8_t **at, const uint8_t *end, void *out, size_t n) {
  if ((size_t)(end - *at) < n) return false;
  memcpy(out, *at, n);
  *at += n;
  return true;
}

UOp *key_graph(UOpStore *st, TgMem *mem, const uint8_t *key, size_t nkey) {
  const uint8_t *end = key + nkey;
  UOpVec all = {0}, src = {0};
  bool ok = true;
  while (ok && key < end) {
    KeyHead head;
    int64_t list[TG_MAX_RANK];
    ok = key_taken(&key, end, &head, sizeof head);
    Arg arg = {.raw = {head.a, head.b}};
    if (ok && head.list) {
      ok = head.a <= TG_MAX_RANK && key_taken(&key, end, list, (size_t)head.a * sizeof *list);
      const Ints *ints = ok ? ints_get(st, (int)head.a, list) : NULL;
      arg.ints = ints;
      ok = ints != NULL;
    }
    src.len = 0;
    for (int i = 0; ok && i < head.nsrc; i++) {
      uint32_t n;
      ok = key_taken(&key, end, &n, sizeof n) && n < all.len && vec_push(mem, &src, all.at[n]);
    }
    UOp *u = ok ? uop_new(st, (Ops)head.op, (DType)head.dtype, head.lanes, head.nsrc, src.at, arg) : NULL;
    ok = u && vec_push(mem, &all, u);
  }
  UOp *root = ok && all.len ? all.at[all.len - 1] : NULL;
  vec_free(mem, &all), vec_free(mem, &src);
  return root;
}

/* Appends v, a node of the copy, to the key unless it is there already. */
static UOp *key_node(Graph *g, UOp *v) {
  if (!v || uop_map_number(g->number, v) != UINT32_MAX) return v;
  key_put(&g->key, v);
  for (int i = 0; i < v->nsrc; i++) {
    uint32_t n = uop_map_number(g->number, v->src[i]);
    str_putn(&g->key, (char *)&n, sizeof n);
  }
  return !g->key.oom && uop_map_put_number(g->st, g->number, v, g->count++) ? v : NULL;
}

static void key_root(Graph *g, UOp *root) {
  uint32_t mark = UINT32_MAX, id = uop_map_number(g->number, root);
  str_putn(&g->key, (char *)&mark, 4), str_putn(&g->key, (char *)&id, 4);
}

static int64_t slot_of(Graph *g, const UOp *buffer, int64_t start) {
  uint64_t slot;
  if (map_get(&g->slots, (uint64_t)buffer_uid(buffer), &slot)) return (int64_t)slot - 1;
  Buffer *b = buffer_get(g->ctx, buffer);
  if (NEVER(b->device != g->device))
    return error_set(&g->ctx->err, TG_ERR_INTERNAL, "realize: memory of another device"), -1;
  size_t offset = (size_t)start * dtype_size(b->dtype);
  bool ok = vec_push(&g->ctx->mem, &g->buffers, ((BufferPart){b, offset})) &&
            map_put(&g->slots, (uint64_t)buffer_uid(buffer), g->buffers.len);
  return ok ? (int64_t)g->buffers.len - 1 : -1;
}

static UOp *copied_memory(Graph *g, const UOp *buffer, int64_t start, int64_t nelem) {
  int64_t slot = slot_of(g, buffer, start);
  return slot < 0 ? NULL
                  : key_node(g, uop_new(g->st, OPS_BUFFER, (DType)buffer->dtype, 1, 0, NULL,
                                        (Arg){.param = {nelem, slot}}));
}

/* A COPY that is left only says on which device its source is computed, so it becomes its source. */
static UOp *copied_here(Graph *g, Reached at) {
  Reached s;
  if (!source_of(g, at, 0, &s)) return NULL;
  GraphNode *n = graph_node(g, at.u), *from = graph_node(g, s.u);
  n->grad = from->grad;
  n->generation = from->generation;
  return s.place ? from->place_to : from->to;
}

/* Returns the copy of a reached node. A piece of memory becomes a buffer of its own. Any other node stays
 * as it is, with sources and lists of the copy's store. */
static UOp *copied(Graph *g, Reached at) {
  UOp *u = at.u, *buf[16], **src = buf, *piece = NULL;
  TgContext *ctx = g->ctx;
  if (u->mark & MARK_VIEW) piece = map_get_ptr(&g->pieces, (void *)(uintptr_t)buffer_uid(view_bottom(u)));
  if (piece == u) {
    int64_t start, nelem = dim_product(ctx->store, u->shape);
    UOp *memory = piece_of(u, &start), *b = memory ? copied_memory(g, memory, start, nelem) : NULL;
    const Ints *shape = ints_get(g->st, u->shape->n, u->shape->v);
    return b && shape
               ? key_node(g, uop_new(g->st, OPS_RESHAPE, (DType)u->dtype, 1, 1, &b, (Arg){.ints = shape}))
               : NULL;
  }
  if (u->op == OPS_BUFFER) return copied_memory(g, u, 0, u->arg.param.nelem);
  if (u->op == OPS_COPY) return copied_here(g, at);
  if (u->nsrc > 16 && !(src = mem_alloc(&ctx->mem, u->nsrc * sizeof *src))) return NULL;
  bool ok = true;
  for (int i = 0; ok && i < u->nsrc; i++) {
    Reached s;
    ok = source_of(g, at, i, &s);
    if (ok) src[i] = s.place ? graph_node(g, s.u)->place_to : graph_node(g, s.u)->to;
    if (ok && piece && u->op == OPS_AFTER && i == 0) src[i] = graph_node(g, piece)->place_to;
    ok = ok && src[i];
    if (!ok) break;
    GraphNode *n = graph_node(g, u), *from = graph_node(g, s.u);
    if (!at.place) {
      n->grad |= from->grad && u->op != OPS_DETACH;
      n->generation = TG_MAX(n->generation, from->generation);
    }
  }
  UOp *v = ok ? key_node(g, uop_new(g->st, (Ops)u->op, (DType)u->dtype, u->lanes, u->nsrc, src,
                                    uop_arg_in(g->st, u)))
              : NULL;
  if (src != buf) mem_free(&ctx->mem, src);
  return v;
}

/* Whether u lies between a memory and the only view that is seen of it. Such a node is not copied. */
static bool under_piece(Graph *g, const UOp *u) {
  UOp *bottom = g->pieces.len ? view_bottom((UOp *)u) : NULL;
  UOp *piece = bottom ? map_get_ptr(&g->pieces, (void *)(uintptr_t)buffer_uid(bottom)) : NULL;
  for (UOp *v = piece; v && v->op != OPS_BUFFER; v = v->src[0])
    if (v->src[0] == u) return true;
  return false;
}

/* Copies sources first, so that the key lists a node before the nodes that name it. Two graphs with one
 * key have one plan. */
bool graph_copy(Graph *g) {
  TgContext *ctx = g->ctx;
  bool ok = (g->number = uop_map_begin(g->st, g->st)) != NULL && graph_pieces(g);
  for (size_t k = 0; ok && k < g->order.len; k++) {
    Reached at = g->order.at[k];
    GraphNode *n = graph_node(g, at.u);
    if (at.u->op == OPS_BUFFER) {
      Buffer *b = buffer_get(ctx, at.u);
      n->grad = b->leaf;
      n->generation = b->generation;
    }
    if (under_piece(g, at.u)) continue;
    UOp *v = copied(g, at);
    if (at.place)
      n->place_to = v;
    else
      n->to = v;
    ok = v != NULL;
    if (at.u->op == OPS_DETACH) n->grad = false;
    if (at.u->op != OPS_STORE && !dtype_is_float((DType)at.u->dtype)) {
      n->grad = false;
      n->generation = 0;
    }
  }
  for (size_t i = 0; ok && i < g->roots.len; i++)
    key_root(g, graph_root(g, i));
  uop_map_end(g->st, g->number);
  ctx->counters.graph_nodes += g->count;
  return (ok && !g->key.oom) ||
         (error_set(&ctx->err, TG_ERR_NOMEM, "realize: out of memory copying the graph"), false);
}

bool graph_given(Graph *g, UOp *const *roots, size_t n) {
  UOpVec order = {0};
  bool ok = uop_toposort(g->st, &g->ctx->mem, roots, n, &order);
  ok = ok && (g->number = uop_map_begin(g->st, g->st)) != NULL;
  for (size_t i = 0; ok && i < order.len; i++)
    ok = key_node(g, order.at[i]) != NULL;
  for (size_t i = 0; ok && i < n; i++) {
    GraphNode *node = node_of(g, roots[i]);
    ok = node && vec_push(&g->ctx->mem, &g->roots, roots[i]);
    if (ok) {
      node->to = roots[i];
      key_root(g, roots[i]);
    }
  }
  uop_map_end(g->st, g->number);
  vec_free(&g->ctx->mem, &order);
  return ok && !g->key.oom;
}

/* Returns a node with its list and its variable renumbered. list NULL: it has none. */
static UOp *node_renumbered(UOpStore *st, const KeyHead *head, const int64_t *list, UOp **src,
                            const Renumber *r) {
  Arg arg = {.raw = {head->a, head->b}};
  if (list) {
    int64_t v[64];
    bool ok = head->a <= 64;
    for (int i = 0; ok && i < head->a; i++) {
      v[i] = dim_moved(st, r->from, list[i], r->number, r->user);
      ok = v[i] != DIM_BAD;
    }
    const Ints *own = ok ? ints_get(st, (int)head->a, v) : NULL;
    if (!own) return NULL;
    arg.raw.a = 0;
    if (op_has_axes((Ops)head->op))
      arg.reduce.axes = own;
    else
      arg.ints = own;
  }
  if (head->op == OPS_VAR && head->nsrc) {
    int to = r->number(r->user, (int)src[0]->arg.v.i);
    if (to < 0 || !(src[0] = uop_index_const(st, to))) return NULL;
  }
  return uop_new(st, (Ops)head->op, (DType)head->dtype, head->lanes, head->nsrc, src, arg);
}

UOp *node_moved(UOpStore *st, const UOp *u, UOp *const *src, const Renumber *r) {
  const Ints *list = uop_list(u);
  UOp *few[8], **own = u->nsrc <= 8 ? few : mem_alloc(store_mem(st), u->nsrc * sizeof *own);
  KeyHead head = {u->op, u->dtype, u->lanes, 0, u->nsrc, list != NULL, u->arg.raw.a, u->arg.raw.b};
  if (!own) return NULL;
  if (list) head.a = list->n;
  for (int i = 0; i < u->nsrc; i++)
    own[i] = src[i];
  UOp *v = node_renumbered(st, &head, list ? list->v : NULL, own, r);
  if (own != few) mem_free(store_mem(st), own);
  return v;
}

/* Reads one node of a key at *at, whose sources are among the nodes before it. */
static UOp *node_of_key(const uint8_t **at, UOpStore *st, const UOpVec *nodes, const Renumber *r) {
  KeyHead head;
  memcpy(&head, *at, sizeof head);
  *at += sizeof head;
  TgMem *mem = store_mem(st);
  size_t n = head.list ? (size_t)head.a : 0;
  int64_t *list = mem_alloc(mem, n * sizeof *list);
  UOp **src = mem_alloc(mem, (size_t)head.nsrc * sizeof *src), *u = NULL;
  if (list && src) {
    if (n) {
      memcpy(list, *at, n * sizeof *list);
      *at += n * sizeof *list;
    }
    for (int i = 0; i < head.nsrc; i++) {
      uint32_t number;
      memcpy(&number, *at, sizeof number);
      *at += sizeof number;
      src[i] = nodes->at[number];
    }
    u = node_renumbered(st, &head, head.list ? list : NULL, src, r);
  }
  mem_free(mem, list), mem_free(mem, src);
  return u;
}

bool graph_of_key(TgMem *mem, const uint8_t *key, size_t nkey, UOpStore *st, const Renumber *r,
                  UOpVec *roots) {
  const uint8_t *at = key + sizeof(int), *end = key + nkey; /* after the device */
  UOpVec nodes = {0};
  bool ok = true;
  while (ok && at < end) {
    uint32_t root[2];
    memcpy(root, at, sizeof root);
    if (root[0] == UINT32_MAX) { /* marks a root, because no op is 255 */
      at += sizeof root;
      ok = vec_push(mem, roots, nodes.at[root[1]]);
      continue;
    }
    UOp *u = node_of_key(&at, st, &nodes, r);
    ok = u && vec_push(mem, &nodes, u);
  }
  vec_free(mem, &nodes);
  return ok;
}

UOp *graph_root(const Graph *g, size_t i) { return graph_node(g, g->roots.at[i])->to; }
