/* program_check.c: the rules for a step's graph that uop/spec.c does not know. In: the graph of a text
 * that has not been checked, and the memories that the step names. Out: whether every BUFFER lies within
 * its memory, every STORE could have waited on a memory, and every node is data with a shape. */
#include "engine/program_read.h"
#include "tensor/front.h"
#include <stdio.h>

bool program_bad(Reader *r, TgStatus s, const char *fmt, ...) {
  char what[400];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  error_set(&r->ctx->err, s, "program: line %d: %s", r->line, what);
  return false;
}

bool program_no_memory(Reader *r) { return program_bad(r, TG_ERR_NOMEM, "out of memory"); }

/* Returns the BUFFER that a view is of. */
static const UOp *bottom_of(const UOp *u) {
  while (u->op != OPS_BUFFER)
    u = u->src[0];
  return u;
}

/* Whether each element of a view is a place of memory of its own. A view may contain a PAD only if it
 * shows none of the elements that the PAD adds (MARK_VIEW, uop/node_facts.c). */
static bool is_target(const UOp *u) {
  for (; u->op != OPS_BUFFER; u = u->src[0])
    if (u->op == OPS_EXPAND || u->op == OPS_AFTER) return false;
  return true;
}

static bool buffer_fits(Reader *r, const UOp *u) {
  int64_t slot = u->arg.param.slot;
  if (slot < 0 || slot >= (int64_t)r->slots.len)
    return program_bad(r, TG_ERR_VALUE, "BUFFER %lld, but the step has %zu memories", (long long)slot,
                       r->slots.len);
  const Place *p = &r->slots.at[slot];
  const Declared *m = &r->memory.at[p->memory];
  if (m->dtype != u->dtype)
    return program_bad(r, TG_ERR_DTYPE, "BUFFER %lld is %s, m%d is %s", (long long)slot,
                       dtype_name((DType)u->dtype), p->memory, dtype_name(m->dtype));
  if (u->arg.param.nelem > m->nelem - p->start)
    return program_bad(r, TG_ERR_SHAPE, "BUFFER %lld has %lld elements, m%d has %lld from %lld on",
                       (long long)slot, (long long)u->arg.param.nelem, p->memory, (long long)m->nelem,
                       (long long)p->start);
  return true;
}

/* Checks a store. A graph stores to a memory at most once, through a view that names each place once. */
static bool store_fits(Reader *r, const UOp *after, uint8_t *stored) {
  const UOp *store = after->src[1], *place = after->src[0];
  if (after->nsrc != 2 || store->op != OPS_STORE || store->nsrc != 2)
    return program_bad(r, TG_ERR_VALUE, "AFTER something else than one STORE");
  if (!(place->mark & MARK_VIEW) || !(store->src[0]->mark & MARK_VIEW) || uop_has(place, AFTER) ||
      !is_target(store->src[0]) || bottom_of(place) != bottom_of(store->src[0]))
    return program_bad(r, TG_ERR_VALUE, "a STORE to what is no memory, or AFTER of another");
  if (store->src[0]->shape != store->src[1]->shape)
    return program_bad(r, TG_ERR_SHAPE, "a STORE of another shape");
  int64_t slot = bottom_of(place)->arg.param.slot;
  Declared *m = &r->memory.at[r->slots.at[slot].memory];
  if (m->kind == DRAW) return program_bad(r, TG_ERR_VALUE, "a STORE to the key of a draw");
  stored[slot]++;
  m->stored = m->written = true;
  return true;
}

/* Whether u is a number made of variables, with the bounds that the text declares. */
static bool number_fits(Reader *r, const UOp *u) {
  const DimVar *v = u->op == OPS_VAR && u->nsrc ? dims_var_at(r->dims, var_number(u)) : NULL;
  if (u->op != OPS_VAR) return u->symbolic && op_is_alu((Ops)u->op);
  return v && u->dtype == DT_INDEX && u->src[0]->dtype == DT_INDEX && u->arg.var.lo == v->lo / v->multiple &&
         u->arg.var.hi == v->hi / v->multiple;
}

static bool node_fits(Reader *r, const UOp *u) {
  const char *op = op_name((Ops)u->op);
  if (u->op == OPS_CONST || (!u->is_tensor && number_fits(r, u))) return true;
  if (u->op == OPS_VAR) return program_bad(r, TG_ERR_VALUE, "VAR is no variable of the text");
  if (!u->is_tensor) return program_bad(r, TG_ERR_VALUE, "%s has no shape", op);
  if (u->dtype <= DT_INDEX || u->lanes != 1) return program_bad(r, TG_ERR_DTYPE, "%s is no data", op);
  if (u->op == OPS_COPY || u->op == OPS_SINK)
    return program_bad(r, TG_ERR_VALUE, "%s stands in no program", op);
  for (int i = 0; i < u->nsrc; i++)
    if (!u->src[i]->is_tensor && !(op_flags((Ops)u->op) & OPF_MOV))
      return program_bad(r, TG_ERR_SHAPE, "source %d of %s has no shape", i, op);
  for (int i = 0; u->op == OPS_REDUCE_AXIS && i < u->arg.reduce.axes->n; i++) {
    int64_t n = u->src[0]->shape->v[u->arg.reduce.axes->v[i]];
    if (n == 0 || n == 1) return program_bad(r, TG_ERR_SHAPE, "%s over an axis of size %d", op, (int)n);
  }
  /* The text only promises that a SCATTER_ONCE writes each place, so the memory begins as zeros. */
  if (u->op == OPS_SCATTER && u->arg.scatter.how & SCATTER_ONCE) r->clear = true;
  return u->op != OPS_BUFFER || buffer_fits(r, u);
}

/* Checks a step's graph. A STORE may only be a source of AFTERs, and a slot has one BUFFER and at most one
 * STORE. */
bool program_graph_fits(Reader *r, UOpStore *st, const UOpVec *roots) {
  UOpVec order = {0};
  TgMem *mem = &r->ctx->mem;
  uint8_t *stored = mem_alloc(mem, r->slots.len + 1);
  const UOp **buffer = mem_alloc(mem, (r->slots.len + 1) * sizeof *buffer), *u = NULL;
  Map seen;
  map_init(&seen, mem);
  bool ok =
      (stored && buffer && uop_toposort(st, mem, roots->at, roots->len, &order)) || program_no_memory(r);
  for (size_t i = 0; ok && i < order.len; i++) {
    u = order.at[i];
    ok = node_fits(r, u);
    if (ok && u->op == OPS_BUFFER) {
      const UOp **had = &buffer[u->arg.param.slot];
      ok = !*had || program_bad(r, TG_ERR_SHAPE, "BUFFER %lld in two sizes", (long long)u->arg.param.slot);
      *had = u;
    }
    for (int k = 0; ok && k < u->nsrc; k++)
      if (u->src[k]->op == OPS_STORE && (u->op != OPS_AFTER || k != 1))
        ok = program_bad(r, TG_ERR_VALUE, "%s of a STORE", op_name((Ops)u->op));
  }
  for (size_t i = 0; ok && i < order.len; i++) {
    uint64_t had;
    u = order.at[i];
    if (u->op != OPS_AFTER) continue;
    bool known = u->nsrc > 1 && map_get(&seen, (uint64_t)(uintptr_t)u->src[1], &had);
    ok = store_fits(r, u, stored) &&
         (known || map_put_ptr(&seen, (uintptr_t)u->src[1], u->src[1]) || program_no_memory(r));
    if (ok && known) stored[bottom_of(u->src[0])->arg.param.slot]--;
    if (ok && stored[bottom_of(u->src[0])->arg.param.slot] > 1)
      ok = program_bad(r, TG_ERR_VALUE, "two STOREs to one memory in a step");
  }
  for (size_t i = 0; ok && i < roots->len; i++) {
    u = roots->at[i];
    if (!u->is_tensor || u->op == OPS_STORE) ok = program_bad(r, TG_ERR_VALUE, "root %zu is no tensor", i);
  }
  mem_free(mem, stored), mem_free(mem, buffer);
  map_free(&seen), vec_free(mem, &order);
  return ok;
}
