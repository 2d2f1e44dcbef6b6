/* copies.c: copies to shared memory that a GPU makes by itself. In: a linear program. Out: the set of its
 * loads that are copied directly from a buffer to shared memory, so that no thread holds the value or waits
 * for it; and the text of such a copy.
 *
 * A copy has arrived once each thread has waited for the copies that it started and all threads have met at a
 * barrier. Threads wait for copies at barriers. A memory that is copied to must therefore not be read before
 * the next barrier, in any order in which loops may run: `settled` walks through the program to check
 * this. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

/* The place of the END of the RANGE that is at `at`. */
static int end_of(const Linear *lin, int at) {
  int i = at + 1;
  while (i < lin->n && !(lin->at[i]->op == OPS_END && lin->at[i]->src[0] == lin->at[at]))
    i++;
  return i;
}

static const UOp *accessed(const UOp *u) {
  const UOp *x = u->op == OPS_LOAD || u->op == OPS_STORE ? uop_base(u->src[0]) : NULL;
  return x && x->op == OPS_INDEX ? uop_base(x->src[0]) : NULL;
}

/* Whether u is a WMMA whose unit reads m itself. */
static bool read_by_unit(const UOp *u, const UOp *m) {
  bool unit = u->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[u->arg.i]);
  return unit && (uop_base(u->src[0]->src[0]) == m || uop_base(u->src[1]->src[0]) == m);
}

/* Whether memory m is never read between a store to it and the barrier after which the stored data has
 * arrived. The copies between two barriers are a group, and a barrier says how many groups may still be under
 * way. *pending: 1 + the number of barriers since the last store; 0: everything has arrived. A loop whose
 * iteration ends with such a store pending is walked twice, so that the end of an iteration is checked
 * against the start of the next. A loop that may run no iteration does not count as waiting. */
static bool settled(const Linear *lin, int from, int to, const UOp *m, int *pending) {
  for (int i = from; i < to; i++) {
    const UOp *u = lin->at[i];
    if (u->op == OPS_RANGE) {
      int end = end_of(lin, i);
      int before = *pending;
      if (!settled(lin, i + 1, end, m, pending)) return false;
      if (*pending && *pending != before && !settled(lin, i + 1, end, m, pending)) return false;
      if (u->src[0]->vmin < 1 && before) *pending = 1;
      i = end;
    } else if (u->op == OPS_BARRIER) {
      if (*pending && ++*pending > 1 + (u->nsrc ? u->src[0]->arg.v.i : 0)) *pending = 0;
    } else if (accessed(u) == m || read_by_unit(u, m)) {
      if (u->op != OPS_STORE && *pending) return false;
      if (u->op == OPS_STORE) *pending = 1;
    }
  }
  return true;
}

static const UOp *gate_of(const UOp *x) { return x->arg.i ? uop_base(x->src[x->nsrc - 1]) : NULL; }

/* Whether the types, indices and gates of store u allow it to be such a copy. */
static bool is_copy(const UOp *u) {
  if (u->op != OPS_STORE || u->nsrc != 2) return false;
  const UOp *v = u->src[1], *to = uop_base(u->src[0]), *from = v->op == OPS_LOAD ? uop_base(v->src[0]) : NULL;
  if (!from || v->nsrc != 1 || to->op != OPS_INDEX || from->op != OPS_INDEX) return false;
  if (uop_base(to->src[0])->op != OPS_DEFINE_LOCAL || uop_base(from->src[0])->op != OPS_PARAM) return false;
  size_t nbytes = v->lanes * dtype_size((DType)v->dtype);
  bool whole = nbytes == 4 || nbytes == 8 || nbytes == 16;
  return whole && uop_is_multiple(to->src[1], v->lanes) && uop_is_multiple(from->src[1], v->lanes);
}

/* Counts the uses of each node of the list, up to 2. */
static void count_uses(const C *c, uint8_t *uses) {
  for (int i = 0; i < c->lin->n; i++)
    for (int s = 0; s < c->lin->at[i]->nsrc; s++) {
      uint32_t id = c->lin->at[i]->src[s]->id;
      if (id < c->npos) uses[id] = (uint8_t)TG_MIN(uses[id] + 1, 2); /* constants need not be listed */
    }
}

/* Whether all stores to m are such copies, and m is read only after barriers. */
static bool is_copied(const C *c, const UOp *m, const uint8_t *uses) {
  bool any = false;
  int pending = 0;
  for (int i = 0; i < c->lin->n; i++) {
    const UOp *u = c->lin->at[i];
    if (u->op != OPS_STORE || accessed(u) != m) continue;
    if (!is_copy(u) || uses[u->src[1]->id] != 1) return false;
    any = true;
  }
  return any && settled(c->lin, 0, c->lin->n, m, &pending);
}

bool cs_find_copies(C *c, TgMem *mem) {
  if (!c->lang->copy) return true;
  uint8_t *uses = mem_alloc(mem, c->npos + 1);
  c->copied = mem_alloc(mem, c->npos + 1);
  bool ok = uses && c->copied;
  if (ok) count_uses(c, uses);
  for (int i = 0; ok && i < c->lin->n; i++) {
    const UOp *m = c->lin->at[i];
    if (m->op != OPS_DEFINE_LOCAL || !is_copied(c, m, uses)) continue;
    c->copies = true;
    for (int j = 0; j < c->lin->n; j++)
      if (c->lin->at[j]->op == OPS_STORE && accessed(c->lin->at[j]) == m)
        c->copied[c->lin->at[j]->src[1]->id] = 1;
  }
  for (int i = 0; ok && i < c->lin->n; i++) /* rows that a warp reads for a FRAGMENT are held by no thread */
    if (c->lin->at[i]->op == OPS_FRAGMENT) c->copied[c->lin->at[i]->src[0]->id] = 1;
  if (ok && HAS_GRIDS) cs_find_groups(c);
  mem_free(mem, uses);
  return ok;
}

bool cs_is_copied(const C *c, const UOp *load) {
  return c->copied && load->op == OPS_LOAD && c->copied[load->id];
}

void cs_copy(C *c, const UOp *store) {
  const UOp *v = store->src[1], *to = uop_base(store->src[0]), *from = uop_base(v->src[0]);
  const UOp *there = gate_of(to), *here = gate_of(from);
  int nbytes = (int)(v->lanes * dtype_size((DType)v->dtype));
  if (there) cs_put(c, "if (%s) ", cs_ref(c, there));
  if (here && here != there) cs_put(c, there ? "{ if (%s) " : "if (%s) ", cs_ref(c, here));
  cs_put(c, c->lang->copy, nbytes, cs_ref(c, uop_base(to->src[0])), cs_ref(c, to->src[1]),
         cs_ref(c, uop_base(from->src[0])), cs_ref(c, from->src[1]));
  str_put(&c->body, ";");
  if (here && here != there) { /* elements behind a false gate are 0 */
    const char *type = cs_type(c, (DType)v->dtype, v->lanes);
    cs_put(c, " else *(%s *)(%s + %s) = %s;", type, cs_ref(c, uop_base(to->src[0])), cs_ref(c, to->src[1]),
           cs_zero(c, v));
    if (there) str_put(&c->body, " }");
  }
  str_put(&c->body, "\n");
}
