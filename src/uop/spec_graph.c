/* spec_graph.c: the laws of a whole graph, or of a list. In: roots, or a list. Out: the first node that
 * breaks a law. Each node must obey its own laws (spec.c). Laws about loops and where they are closed concern
 * the whole graph. */
#include "uop/spec_private.h"

/* ---- loops: an id belongs to one loop; what a statement computes uses only the loops around it and those it
 * lists */
typedef Vec(const UOp *) Around;

static bool opened(const Around *open, const UOp *r) {
  for (size_t i = 0; i < open->len; i++)
    if (open->at[i] == r) return true;
  return false;
}

static bool ids_unique(Check *c, TgMem *mem, const UOpVec *order) {
  Map by_id;
  bool ok = true;
  uint64_t had;
  map_init(&by_id, mem);
  for (size_t i = 0; ok && i < order->len; i++) {
    const UOp *u = order->at[i];
    if (u->op != OPS_RANGE) continue;
    if (map_get(&by_id, (uint64_t)u->arg.range.id, &had))
      ok = spec_broken(c, u, "two loops have the id %lld", (long long)u->arg.range.id);
    else if (!map_put_ptr(&by_id, (uintptr_t)u->arg.range.id, u)) {
      c->bad->node = NULL;
      ok = false;
    }
  }
  map_free(&by_id);
  return ok;
}

/* A free loop below u that is not among `open`, as far as the bits of `ranges` tell; NULL: there is none. */
static const UOp *stray(const UOpVec *ranges, const UOp *u, const Around *open) {
  for (size_t i = 0; i < ranges->len; i++) {
    const UOp *r = ranges->at[i];
    if (r->arg.range.id < 63 && (u->ranges & range_bit(r->arg.range.id)) && !opened(open, r)) return r;
  }
  return NULL;
}

static bool uses_open(Check *c, const UOpVec *ranges, const UOp *u, const UOp *value, const Around *open) {
  const UOp *r = stray(ranges, value, open);
  return !r || spec_broken(c, u, "uses loop r%lld but does not close it", (long long)r->arg.range.id);
}

static bool open_range(Check *c, TgMem *mem, const UOpVec *ranges, const UOp *u, const UOp *r, Around *open) {
  const UOp *out = stray(ranges, r->src[0], open);
  if (out)
    return spec_broken(c, u, "loop r%lld depends on r%lld, which is not outside it",
                       (long long)r->arg.range.id, (long long)out->arg.range.id);
  if (opened(open, r))
    return spec_broken(c, u, "loop r%lld stands inside itself", (long long)r->arg.range.id);
  if (vec_push(mem, open, r)) return true;
  c->bad->node = NULL;
  return false;
}

static bool check_statement(Check *c, TgMem *mem, const UOpVec *ranges, const UOp *u, Around *open) {
  size_t outside = open->len;
  bool ok = true;
  if (u->op == OPS_LOOP) {
    ok = open_range(c, mem, ranges, u, u->src[0], open);
    for (int i = 1; ok && i < u->nsrc; i++)
      ok = check_statement(c, mem, ranges, u->src[i], open);
  } else if (u->op == OPS_STORE || u->op == OPS_ACC) {
    for (int i = 2; ok && i < u->nsrc; i++)
      ok = open_range(c, mem, ranges, u, u->src[i], open);
    ok = ok && uses_open(c, ranges, u, u->src[0], open) && uses_open(c, ranges, u, u->src[1], open);
  }
  open->len = outside;
  return ok;
}

/* A SCAN carries its value along the innermost loop of its store. */
static bool carried_innermost(Check *c, const UOpVec *order, const UOp *store) {
  for (size_t i = 0; i < order->len; i++) {
    const UOp *scan = order->at[i];
    if (scan->op != OPS_SCAN) continue;
    for (int k = 2; k + 1 < store->nsrc; k++)
      if (store->src[k] == scan->src[1])
        return spec_broken(c, store, "carries a value along a loop that is not its innermost");
  }
  return true;
}

static bool check_loops(Check *c, TgMem *mem, const UOpVec *order, const UOp *root) {
  UOpVec ranges = {0};
  Around open = {0};
  bool ok = ids_unique(c, mem, order);
  for (size_t i = 0; ok && i < order->len; i++)
    if (order->at[i]->op == OPS_RANGE && !vec_push(mem, &ranges, order->at[i])) {
      c->bad->node = NULL;
      ok = false;
    }
  for (int i = 0; ok && i < root->nsrc; i++) {
    if (c->kind == GRAPH_KERNEL) ok = carried_innermost(c, order, root->src[i]);
    ok = ok && check_statement(c, mem, &ranges, root->src[i], &open);
  }
  vec_free(mem, &ranges), vec_free(mem, &open);
  return ok;
}

bool spec_graph(UOpStore *st, TgMem *mem, GraphKind kind, UOp *const *roots, size_t nroots, SpecError *bad) {
  Check c = {.kind = kind, .bad = bad, .st = st};
  UOpVec order = {0};
  *bad = (SpecError){0};
  bool ok = uop_toposort(st, mem, roots, nroots, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    ok = spec_node(&c, order.at[i]);
  if (kind >= GRAPH_KERNEL)
    for (size_t i = 0; ok && i < nroots; i++)
      ok = roots[i]->op == OPS_SINK ||
           spec_broken(&c, roots[i], "the root of a kernel is %s, not SINK", op_name((Ops)roots[i]->op));
  if (ok && kind >= GRAPH_KERNEL) { /* each kernel numbers its loops on its own */
    for (size_t i = 0; ok && i < nroots; i++) {
      order.len = 0;
      ok = uop_toposort(st, mem, &roots[i], 1, &order) && check_loops(&c, mem, &order, roots[i]);
    }
  }
  vec_free(mem, &order);
  return ok;
}

/* ---- a list: sources come before their users, in a block that is still open; blocks nest */
typedef struct Blocks {
  TgMem *mem;
  Map of; /* node -> number of the block that it was defined in */
  Vec(const UOp *) open;
  Vec(int) number;     /* of the open blocks, from the outermost inwards */
  Vec(uint8_t) closed; /* by number of a block */
  int count;
} Blocks;

static bool block_open(Blocks *b, const UOp *u) {
  return (!u || vec_push(b->mem, &b->open, u)) && vec_push(b->mem, &b->number, b->count++) &&
         vec_push(b->mem, &b->closed, 0);
}

static bool source_defined(Check *c, const Blocks *b, const UOp *u, int k) {
  const UOp *s = u->src[k];
  uint64_t block;
  if (is_const(s)) return spec_node(c, s); /* constants may be listed anywhere, or not at all */
  if (!map_get(&b->of, (uint64_t)(uintptr_t)s, &block))
    return spec_broken(c, u, "source %d (%s) is not defined before", k, op_name((Ops)s->op));
  if (!b->closed.at[block] || s->op == OPS_END || s->op == OPS_ENDIF || (u->op == OPS_AFTER && k) ||
      u->op == OPS_BARRIER)
    return true;
  return spec_broken(c, u, "source %d (%s) was defined in a block that is closed", k, op_name((Ops)s->op));
}

static bool place_checked(Check *c, Blocks *b, const UOp *u) {
  uint64_t had;
  if (!spec_node(c, u)) return false;
  if (!is_const(u) && map_get(&b->of, (uint64_t)(uintptr_t)u, &had))
    return spec_broken(c, u, "stands twice in the program");
  for (int k = 0; k < u->nsrc; k++)
    if (!source_defined(c, b, u, k)) return false;
  if (u->op == OPS_END || u->op == OPS_ENDIF) {
    if (!b->open.len || b->open.at[b->open.len - 1] != u->src[0])
      return spec_broken(c, u, "closes something else than the innermost block");
    b->closed.at[b->number.at[--b->number.len]] = 1;
    b->open.len--;
  }
  if (!map_put(&b->of, (uint64_t)(uintptr_t)u, (uint64_t)b->number.at[b->number.len - 1])) return false;
  return (u->op != OPS_RANGE && u->op != OPS_IF) || block_open(b, u);
}

bool spec_linear(const Linear *lin, TgMem *mem, SpecError *bad) {
  Check c = {.kind = GRAPH_LINEAR, .lin = lin, .bad = bad};
  Blocks b = {.mem = mem};
  map_init(&b.of, mem);
  *bad = (SpecError){0};
  bool ok = block_open(&b, NULL);
  for (int i = 0; ok && i < lin->n; i++)
    ok = place_checked(&c, &b, lin->at[i]);
  if (ok && b.open.len) ok = spec_broken(&c, b.open.at[b.open.len - 1], "is never closed");
  map_free(&b.of), vec_free(mem, &b.open), vec_free(mem, &b.number), vec_free(mem, &b.closed);
  return ok;
}
