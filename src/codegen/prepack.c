/* prepack.c: copies that are made once and kept. In: a nest with all its opts except THREAD, and the set of
 * buffers that hold the same values at every launch. Out: for the kernel that runs, the nest without the
 * copies that are made from these buffers alone, which have become arguments. For the kernel that packs,
 * which runs before the first launch: the statements that fill these copies.
 *
 * A copy is local memory that only some statements write (stage.c, panels.c). If loops around these
 * statements change the copy, each iteration of these loops has its own copy, one after another in the
 * argument:
 *
 *   LOOP i:  copy w[i, ..] to local;  LOOP ..:  .. local[e] ..
 *
 *   packs:   LOOP i:  copy w[i, ..] to packed[i * n + ..]
 *   runs:    LOOP i:  LOOP ..:  .. packed[i * n + e] ..
 *
 * So a matrix that is read with strides, or that a matrix unit reads in panels, is laid out for the kernel
 * once, as libraries do that prepack weights. */
#include "codegen/nest.h"
#include <stdio.h>
#include <string.h>

bool prepack_fits(double nbytes, double source) {
  static const double MOST_GROWN = 1.25, GROWN_ANYHOW = 4096; /* GROWN_ANYHOW allows a few lines of padding */
  return nbytes <= MOST_GROWN * source + GROWN_ANYHOW;
}

typedef struct Fill {
  UOp *u;
  bool moves; /* true: it depends on a loop around it, or reads memory; false: it is padding */
} Fill;

typedef struct Packing {
  Kernel *k;
  UOp *memory, *argument;     /* the local memory; the PARAM that replaces it */
  Vec(Fill) fills;            /* the statements that write the memory */
  UOpVec around;              /* ranges of the loops around the fills that change them, outermost first */
  int64_t copies, bytes_read; /* iterations of `around`; bytes of the buffers that the fills read */
  uint64_t read;              /* PARAM slots, as bits, that bytes_read counts */
  UOpVec from, to;            /* each INDEX of the memory, and its replacement */
  int last;                   /* place of the last fill */
  bool fits;                  /* false: the memory cannot be prepacked */
} Packing;

static bool writes_only(const UOp *u, const UOp *memory) {
  if (u->op == OPS_STORE) return stored_in(u) == memory;
  for (int i = 1; is_loop(u) && i < u->nsrc; i++)
    if (!writes_only(u->src[i], memory)) return false;
  return is_loop(u);
}

/* Checks that the statements below u compute values and addresses from buffers that stay, and from nothing
 * else. Otherwise clears p->fits. Returns false if out of memory. */
static bool is_kept_value(Packing *p, UOp *u, bool *reads) {
  UOpVec order = {0};
  Kernel *k = p->k;
  bool ok = kernel_nodes(k, u, &order), kept = true;
  for (size_t i = 0; ok && kept && i < order.len; i++) {
    const UOp *x = order.at[i], *m = x->op == OPS_INDEX ? memory_of(x) : NULL;
    if (x->op == OPS_VAR || x->op == OPS_AFTER || x->op == OPS_DEFINE_REG) kept = false;
    if (x->op == OPS_DEFINE_LOCAL && x != p->memory) kept = false;
    if (!m || m->op != OPS_PARAM) continue;
    *reads = true;
    kept &= param_stays(k, m);
    if (!kept || p->read >> m->arg.param.slot & 1) continue;
    p->read |= UINT64_C(1) << m->arg.param.slot;
    p->bytes_read += m->arg.param.nelem * (int64_t)dtype_size((DType)m->dtype);
  }
  vec_free(k->mem, &order);
  p->fits &= kept;
  return ok;
}

/* Sets *reads if a statement's value or address reads the memory. */
static bool reads_memory(Packing *p, const UOp *statement, bool *reads) {
  UOpVec order = {0}, roots = {0};
  Kernel *k = p->k;
  const UOp *to = statement->src[0];
  bool ok = vec_push(k->mem, &roots, statement->src[1]);
  for (int i = 1; ok && i < to->nsrc; i++)
    ok = vec_push(k->mem, &roots, to->src[i]);
  ok = ok && uop_toposort(k->st, k->mem, roots.at, roots.len, &order);
  *reads = false;
  for (size_t i = 0; ok && i < order.len; i++)
    *reads |= order.at[i] == p->memory;
  vec_free(k->mem, &order), vec_free(k->mem, &roots);
  return ok;
}

/* Whether a statement writes only zeros. Those are padding, and memory that is kept begins as zeros. */
static bool writes_zeros(Kernel *k, const UOp *u) {
  if (u->op == OPS_STORE) return u->src[1] == uop_const_int(k->st, (DType)u->src[1]->dtype, 0);
  for (int i = 1; is_loop(u) && i < u->nsrc; i++)
    if (!writes_zeros(k, u->src[i])) return false;
  return is_loop(u);
}

/* The place of the largest statement around place i that writes no other memory. */
static int fill_around(const Packing *p, const PlaceVec *at, int i) {
  while (at->at[i].up >= 0 && writes_only(at->at[at->at[i].up].u, p->memory))
    i = at->at[i].up;
  return i;
}

/* Lists the ranges of the loops around a place that u depends on, outermost first. */
static bool ranges_around(Packing *p, const PlaceVec *at, int place, UOp *u, UOpVec *out) {
  bool ok = true;
  for (int up = at->at[place].up; ok && up >= 0; up = at->at[up].up) {
    UOp *r = at->at[up].u->src[0];
    if (!depends(p->k, u, r)) continue;
    p->fits &= is_const(r->src[0]);
    ok = vec_push(p->k->mem, out, r);
  }
  for (size_t i = 0; i < out->len / 2; i++) {
    UOp *t = out->at[i];
    out->at[i] = out->at[out->len - 1 - i];
    out->at[out->len - 1 - i] = t;
  }
  return ok;
}

/* Adds the fill at a place. All fills that move must depend on the same loops. */
static bool fill_add(Packing *p, const PlaceVec *at, int place) {
  Kernel *k = p->k;
  Fill f = {.u = at->at[place].u};
  UOpVec around = {0};
  bool first = true;
  for (size_t i = 0; i < p->fills.len; i++) {
    if (p->fills.at[i].u == f.u) return true;
    first &= !p->fills.at[i].moves;
  }
  p->last = TG_MAX(p->last, place);
  bool ok = is_kept_value(p, f.u, &f.moves) && ranges_around(p, at, place, f.u, &around);
  f.moves |= around.len > 0;
  if (!f.moves) p->fits &= writes_zeros(k, f.u);
  ok = ok && vec_push(k->mem, &p->fills, f);
  if (f.moves && first) {
    p->around = around;
    return ok;
  }
  bool same = around.len == p->around.len;
  for (size_t i = 0; same && i < around.len; i++)
    same = around.at[i] == p->around.at[i];
  if (f.moves) p->fits &= same;
  vec_free(k->mem, &around);
  return ok;
}

/* Finds all statements that write the memory, in order. */
static bool find_fills(Packing *p, const PlaceVec *at) {
  bool ok = true;
  for (size_t i = 0; ok && p->fits && i < at->len; i++) {
    const UOp *u = at->at[i].u;
    if ((u->op != OPS_STORE && u->op != OPS_ACC) || stored_in(u) != p->memory) continue;
    bool reads = false;
    ok = reads_memory(p, u, &reads);
    if (u->op == OPS_ACC || reads) p->fits = false;
    if (ok && p->fits) ok = fill_add(p, at, fill_around(p, at, (int)i));
  }
  return ok;
}

/* Checks that each statement that reads the memory is inside the loops in `around` and follows all fills.
 * Otherwise the memory would hold several copies, one after another. */
static bool readers_checked(Packing *p, const PlaceVec *at) {
  bool ok = true;
  for (size_t i = 0; ok && p->fits && i < at->len; i++) {
    const UOp *u = at->at[i].u;
    if (u->op != OPS_STORE && u->op != OPS_ACC) continue;
    bool reads = false;
    size_t in = 0;
    ok = reads_memory(p, u, &reads);
    for (int up = at->at[i].up; up >= 0; up = at->at[up].up)
      in += vec_has(&p->around, at->at[up].u->src[0]);
    if (reads && (in != p->around.len || (int)i < p->last)) p->fits = false;
  }
  return ok;
}

/* Whether all copies together are at most slightly larger than the buffers that they are made from. */
static bool size_checked(Packing *p) {
  int64_t n = p->memory->arg.param.nelem, size = (int64_t)dtype_size((DType)p->memory->dtype), bytes;
  bool moves = false;
  p->copies = 1;
  for (size_t i = 0; i < p->around.len; i++)
    if (__builtin_mul_overflow(p->copies, p->around.at[i]->src[0]->arg.v.i, &p->copies)) return false;
  for (size_t i = 0; i < p->fills.len; i++)
    moves |= p->fills.at[i].moves;
  bool small = !__builtin_mul_overflow(p->copies, n * size, &bytes);
  return moves && small && prepack_fits((double)bytes, (double)p->bytes_read);
}

/* The element at which the copy of these iterations begins. */
static UOp *copy_begin(Packing *p, UOp *const *at) {
  Kernel *k = p->k;
  UOp *flat = num(k, 0);
  for (size_t i = 0; i < p->around.len; i++)
    flat = ix(k, OPS_ADD, ix(k, OPS_MUL, flat, p->around.at[i]->src[0]), at[i]);
  return ix(k, OPS_MUL, flat, num(k, p->memory->arg.param.nelem));
}

/* Finds the replacement of each access to the memory. */
static bool find_accesses(Packing *p) {
  Kernel *k = p->k;
  UOpVec order = {0};
  UOp *begin = copy_begin(p, p->around.at);
  bool ok = begin && kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; ok && p->fits && i < order.len; i++) {
    UOp *x = order.at[i], *src[MAX_AXES + 2];
    if (x->op != OPS_INDEX || memory_of(x) != p->memory) continue;
    if (x->src[0] != p->memory || index_naxes(x) != 1) {
      p->fits = false;
      break;
    }
    memcpy(src, x->src, x->nsrc * sizeof *src);
    src[0] = p->argument;
    src[1] = ix(k, OPS_ADD, x->src[1], begin);
    UOp *now = src[1] ? uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, x->nsrc, src, x->arg) : NULL;
    ok = now && vec_push(k->mem, &p->from, x) && vec_push(k->mem, &p->to, now);
  }
  vec_free(k->mem, &order);
  return ok;
}

/* The fills, except padding, in new loops over all copies. */
static UOp *packing_nest(Packing *p) {
  Kernel *k = p->k;
  UOpVec own = {0}, body = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < p->around.len; i++)
    ok = vec_push(k->mem, &own, kernel_range(k, p->around.at[i]->src[0], AXIS_GLOBAL, NULL)) && own.at[i];
  for (size_t i = 0; ok && i < p->fills.len; i++) {
    if (!p->fills.at[i].moves) continue;
    UOp *u = kernel_with(k, p->fills.at[i].u, (int)p->from.len, p->from.at, p->to.at);
    u = u ? nest_copy(k, u, (int)own.len, p->around.at, own.at) : NULL;
    ok = u && vec_push(k->mem, &body, u);
  }
  UOp *u = ok ? uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)body.len, body.at, ARG0) : NULL;
  for (size_t i = own.len; u && i-- > 0;)
    u = u->op == OPS_SINK ? loop_new(k, own.at[i], u->nsrc, u->src) : loop_new(k, own.at[i], 1, &u);
  vec_free(k->mem, &own), vec_free(k->mem, &body);
  return u;
}

static bool packed_one(Packing *p, UOpVec *packs) {
  Kernel *k = p->k;
  UOp *nest = packing_nest(p), *sink = k->sink;
  bool ok = nest != NULL;
  for (int i = 0; ok && i < (nest->op == OPS_SINK ? nest->nsrc : 1); i++)
    ok = vec_push(k->mem, packs, nest->op == OPS_SINK ? nest->src[i] : nest);
  for (size_t i = 0; ok && i < p->fills.len; i++)
    ok = (sink = nest_replace(k, sink, p->fills.at[i].u, 0, NULL)) != NULL;
  if (ok) sink = kernel_with(k, sink, (int)p->from.len, p->from.at, p->to.at);
  k->sink = ok ? sink : NULL;
  return k->sink != NULL;
}

static bool memory_packed(Kernel *k, UOp *memory, UOpVec *packs) {
  Prepack *out = k->opt->prepack;
  Packing p = {.k = k, .memory = memory, .fits = true};
  PlaceVec at = {0};
  bool ok = nest_places(k, k->sink, &at) && find_fills(&p, &at) && (!p.fits || readers_checked(&p, &at));
  p.fits = p.fits && ok && size_checked(&p);
  if (p.fits) {
    Arg arg = {.param = {p.copies * memory->arg.param.nelem, out->first + out->n}};
    p.argument = uop_new(k->st, OPS_PARAM, (DType)memory->dtype, 1, 0, NULL, arg);
    ok = p.argument && find_accesses(&p);
  }
  if (ok && p.fits) {
    ok = packed_one(&p, packs);
    out->copy[out->n++] = (PackedCopy){p.argument->arg.param.nelem, (DType)memory->dtype};
  }
  vec_free(k->mem, &at), vec_free(k->mem, &p.fills), vec_free(k->mem, &p.around);
  vec_free(k->mem, &p.from), vec_free(k->mem, &p.to);
  return ok;
}

static bool list_noted(Kernel *k) {
  Str text;
  str_init(&text, k->mem);
  for (size_t i = 0; i < k->list.len; i++)
    opt_print(&text, &k->list.at[i]);
  k->opt->prepack->list = hash_bytes(1, str_text(&text), text.len);
  bool ok = !text.oom;
  str_free(&text);
  return ok;
}

static bool reads_noted(Kernel *k) {
  Prepack *out = k->opt->prepack;
  UOpVec order = {0};
  bool ok = kernel_nodes(k, k->sink, &order);
  out->reads = 0;
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (u->op == OPS_PARAM && u->arg.param.slot < 64) out->reads |= UINT64_C(1) << u->arg.param.slot;
  }
  out->reads &= out->stays;
  vec_free(k->mem, &order);
  return ok;
}

/* Renumbers the arguments of the packing kernel: first what it reads, in order, then the copies. Kernels that
 * require the same copies then share one packing program. */
static bool arguments_numbered(Kernel *k) {
  const Prepack *p = k->opt->prepack;
  UOpVec order = {0}, from = {0}, to = {0};
  bool ok = kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    Arg arg = u->arg;
    if (u->op != OPS_PARAM) continue;
    int64_t slot = arg.param.slot, before = TG_MIN(slot, p->first);
    uint64_t below = before < 64 ? (UINT64_C(1) << before) - 1 : UINT64_MAX;
    arg.param.slot = __builtin_popcountll(p->reads & below) + slot - before;
    UOp *now = uop_new(k->st, OPS_PARAM, (DType)u->dtype, 1, u->nsrc, u->src, arg);
    ok = now && vec_push(k->mem, &from, u) && vec_push(k->mem, &to, now);
  }
  if (ok) ok = (k->sink = kernel_with(k, k->sink, (int)from.len, from.at, to.at)) != NULL;
  vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return ok;
}

bool prepack(Kernel *k) {
  Prepack *out = k->opt->prepack;
  UOpVec order = {0}, packs = {0};
  if (!out) return true;
  out->n = 0;
  if (!k->stays || has_grid(k->ren)) return true;
  bool ok = kernel_nodes(k, k->sink, &order);
  for (size_t i = 0; ok && i < order.len && out->n < MOST_PREPACKED; i++)
    if (order.at[i]->op == OPS_DEFINE_LOCAL) ok = memory_packed(k, order.at[i], &packs);
  if (ok && out->n && out->packs) {
    k->sink = uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)packs.len, packs.at, ARG0);
    snprintf(k->linear->name, sizeof k->linear->name, "pack");
  }
  if (ok && out->n) ok = list_noted(k) && (k->sink = nest_simplify(k, k->sink)) != NULL && reads_noted(k);
  if (ok && out->n && out->packs) ok = arguments_numbered(k);
  vec_free(k->mem, &order), vec_free(k->mem, &packs);
  return ok;
}
