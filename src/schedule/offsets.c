/* offsets.c: where in its memory an argument begins. In: kernels that count the places of a memory from its
 * first element. Out: kernels that count them from the first element that they may use, and whose arguments
 * end with the last such element. The offset of that first element is given at the launch. The steps of an
 * unrolled loop do the same with one row after another, so they become one graph and one program. */
#include "schedule/stage.h"

/* A memory as one PARAM of a kernel describes it. A memory that is read in several shapes has several
 * views. */
typedef struct View {
  UOp *param, *now;
  int naxis, dropped;    /* axes; outermost axes that are left out, because one element of them remains */
  bool steady[MAX_RANK]; /* by axis: every INDEX is a constant */
  int64_t extent[MAX_RANK], stride[MAX_RANK];
  /* the constant term that all INDEXes have in common; their largest value */
  int64_t common[MAX_RANK], most[MAX_RANK];
  int64_t from[MAX_RANK], kept[MAX_RANK]; /* where the argument begins; number of elements from there on */
  int next;                               /* the next view of the same slot, from 1 on; 0: none */
} View;

enum { WHOLE = -1 };

typedef struct Offsets {
  Sched *s;
  Arena *arena;
  Vec(View) views;
  int *first; /* by slot: its first view; WHOLE: it is also used without an INDEX, so it stays as it is */
  Map done;   /* graph of a kernel -> Begun */
} Offsets;

typedef struct Begun {
  UOp *ast;
  int64_t *offset;
} Begun;

/* ---- what is used of a memory */
static View *first_of(const Offsets *o, int64_t slot) {
  return o->first[slot] > 0 ? &o->views.at[o->first[slot] - 1] : NULL;
}

static View *next_of(const Offsets *o, const View *v) { return v->next ? &o->views.at[v->next - 1] : NULL; }

static View *view_of(Offsets *o, UOp *param) {
  int64_t slot = param->arg.param.slot;
  for (View *v = first_of(o, slot); v; v = next_of(o, v))
    if (v->param == param) return v;
  View v = {.param = param, .now = param, .naxis = TG_MAX(param->nsrc, 1), .next = o->first[slot]};
  int64_t stride = 1;
  for (int d = v.naxis - 1; d >= 0; d--) {
    v.extent[d] = param->nsrc ? param->src[d]->vmax : param->arg.param.nelem;
    v.stride[d] = stride;
    stride *= v.extent[d];
    v.steady[d] = true;
    v.common[d] = INT64_MAX;
  }
  if (!vec_push(o->s->mem, &o->views, v)) return NULL;
  o->first[slot] = (int)o->views.len;
  return first_of(o, slot);
}

/* The part of an index's constant term that may be subtracted without making the index negative. */
static int64_t constant_term(const UOp *index) {
  const UOp *last = index->op == OPS_ADD ? index->src[1] : index;
  return is_const(last) ? TG_MAX(TG_MIN(last->arg.v.i, index->vmin), 0) : 0;
}

static bool index_noted(Offsets *o, const UOp *x) {
  View *v = view_of(o, x->src[0]);
  for (int d = 0; v && d < v->naxis; d++) {
    const UOp *at = x->src[1 + d];
    v->common[d] = TG_MIN(v->common[d], constant_term(at));
    v->most[d] = TG_MAX(v->most[d], at->vmax);
    v->steady[d] &= is_const(at);
  }
  return v != NULL;
}

/* Whether all indices along an inner axis are constants inside its extent. Such constants may be left out,
 * but the extent is a stride of the outer axes, and stays. */
static bool is_steady(const View *v, int d) { return v->steady[d] && v->most[d] < v->extent[d]; }

static bool extents_known(const UOp *param) {
  for (int d = 0; d < param->nsrc; d++)
    if (!is_const(param->src[d])) return false;
  return param->arg.param.nelem > 0;
}

static bool views_listed(Offsets *o, const UOpVec *nodes) {
  for (size_t i = 0; i < nodes->len; i++) {
    const UOp *u = nodes->at[i];
    for (int k = 0; k < u->nsrc; k++) {
      UOp *p = u->src[k];
      if (p->op != OPS_PARAM || o->first[p->arg.param.slot] == WHOLE) continue;
      if (u->op != OPS_INDEX || k || !extents_known(p))
        o->first[p->arg.param.slot] = WHOLE;
      else if (!index_noted(o, u))
        return false;
    }
  }
  return true;
}

/* ---- where the argument begins */
/* Returns how many elements before the argument can be left out: at most `most`, in steps of `align`. Along
 * the outermost axis all that the indices have in common is left out, and the extent becomes what is left. If
 * only one element is left, the same is done for the next axis. Along an inner axis, whose extent is the
 * stride of the axes around it, only a constant is left out. A loop along it could leave the memory at the
 * end of the last row. */
static int64_t view_begun(View *v, int64_t most, int64_t align) {
  int64_t sum = 0;
  bool outer = true;
  v->dropped = 0;
  for (int d = 0; d < v->naxis; d++) {
    int64_t stride = v->stride[d], unit = align, last = TG_MIN(v->most[d], v->extent[d] - 1);
    while (unit > 1 && stride * (unit / 2) % align == 0)
      unit /= 2;
    int64_t from = outer || is_steady(v, d) ? TG_MIN(TG_MIN(v->common[d], last), (most - sum) / stride) : 0;
    v->from[d] = from - from % unit;
    v->kept[d] = (outer || is_steady(v, d) ? last : v->extent[d] - 1) + 1 - v->from[d];
    sum += v->from[d] * stride;
    outer = outer && v->kept[d] == 1 && v->most[d] < v->extent[d];
    if (outer && d + 1 < v->naxis) v->dropped++;
  }
  return sum;
}

/* Elements from the first to the last that the view may use. */
static int64_t view_nelem(const View *v) {
  int64_t n = 1;
  for (int d = 0; d < v->naxis; d++)
    n += (v->kept[d] - 1) * v->stride[d];
  return n;
}

/* The number of elements that every view of the slot can leave out, at most `most`. */
static int64_t views_begun(const Offsets *o, int64_t slot, int64_t most) {
  int64_t least = most;
  for (View *v = first_of(o, slot); v; v = next_of(o, v)) {
    int64_t align = o->s->opt->align / (int64_t)dtype_size((DType)v->param->dtype);
    least = TG_MIN(least, view_begun(v, most, TG_MAX(align, 1)));
  }
  return least;
}

/* The PARAM of a view for an argument of nelem elements that begins where view_begun decided. */
static UOp *param_begun(Sched *s, const View *v, int64_t nelem) {
  UOp *extent[MAX_RANK];
  int n = v->naxis - v->dropped;
  for (int d = 0; d < n; d++) {
    int at = v->dropped + d;
    extent[d] = uop_index_const(s->st, d ? v->extent[at] : v->kept[at]);
  }
  Arg arg = {.param = {nelem, v->param->arg.param.slot}};
  return uop_new(s->st, OPS_PARAM, (DType)v->param->dtype, 1, n > 1 ? n : 0, extent, arg);
}

/* Returns the bytes that are before argument `slot`, and gives its views their new PARAM. Returns -1 if out
 * of memory. */
static int64_t slot_begun(Offsets *o, int64_t slot) {
  View *first = first_of(o, slot);
  int64_t from = views_begun(o, slot, INT64_MAX), nelem = 0;
  if (!first) return 0;
  if (views_begun(o, slot, from) != from) views_begun(o, slot, from = 0);
  for (View *v = first; v; v = next_of(o, v))
    nelem = TG_MAX(nelem, view_nelem(v));
  for (View *v = first; v; v = next_of(o, v))
    if (!(v->now = param_begun(o->s, v, nelem))) return -1;
  return from * (int64_t)dtype_size((DType)first->param->dtype);
}

/* ---- the kernel with these arguments */
static UOp *index_begun(Sched *s, const View *v, const UOp *x, const UOpMap *now) {
  UOp *src[MAX_RANK + 2] = {v->now};
  int n = 1;
  for (int d = v->dropped; d < v->naxis; d++) {
    UOp *at = uop_map_get(now, x->src[1 + d]);
    if (v->from[d]) at = uop_alu2(s->st, OPS_ADD, at, uop_index_const(s->st, -v->from[d]));
    if (!(src[n++] = v->from[d] && at ? uop_simplify(s->st, s->mem, at) : at)) return NULL;
  }
  if (index_gate(x)) src[n++] = uop_map_get(now, index_gate(x));
  return uop_new(s->st, OPS_INDEX, (DType)x->dtype, 1, n, src, x->arg);
}

static UOp *node_begun(Offsets *o, UOp *u, const UOpMap *now) {
  const View *v = NULL;
  if (u->op == OPS_INDEX && u->src[0]->op == OPS_PARAM) v = first_of(o, u->src[0]->arg.param.slot);
  while (v && v->param != u->src[0])
    v = next_of(o, v);
  if (v && v->now != v->param) return index_begun(o->s, v, u, now);
  for (int k = 0; k < u->nsrc; k++)
    if (uop_map_get(now, u->src[k]) != u->src[k]) return uop_mapped(o->s->st, o->s->mem, u, now);
  return u;
}

static UOp *kernel_rewritten(Offsets *o, const UOpVec *nodes) {
  Sched *s = o->s;
  UOpMap *now = uop_map_begin(s->st, s->st);
  UOp *v = NULL;
  bool ok = now != NULL;
  for (size_t i = 0; ok && i < nodes->len; i++)
    ok = (v = node_begun(o, nodes->at[i], now)) && uop_map_put(s->st, now, nodes->at[i], v);
  uop_map_end(s->st, now);
  return ok ? v : NULL;
}

static Begun *kernel_begun(Offsets *o, const SchedKernel *sk) {
  Sched *s = o->s;
  UOpVec nodes = {0};
  UOp *sink = sk->ast;
  Begun *b = arena_alloc(o->arena, sizeof *b);
  o->views.len = 0;
  o->first = mem_alloc(s->mem, ((size_t)sk->narg + 1) * sizeof *o->first);
  bool ok = b && o->first && uop_toposort(s->st, s->mem, &sink, 1, &nodes) && views_listed(o, &nodes);
  if (ok) ok = (b->offset = arena_array(o->arena, int64_t, sk->narg + 1)) != NULL;
  for (int a = 0; ok && a < sk->narg; a++)
    ok = (b->offset[a] = slot_begun(o, a)) >= 0;
  bool same = true;
  for (size_t i = 0; i < o->views.len; i++)
    same = same && o->views.at[i].now == o->views.at[i].param;
  if (ok) ok = (b->ast = same ? sink : kernel_rewritten(o, &nodes)) != NULL;
  vec_free(s->mem, &nodes), mem_free(s->mem, o->first);
  return ok ? b : NULL;
}

bool arguments_begun(Sched *s, Schedule *out) {
  Offsets o = {.s = s, .arena = &out->arena};
  bool ok = true;
  map_init(&o.done, s->mem);
  for (int k = 0; ok && k < out->nkernel; k++) {
    SchedKernel *sk = &out->kernel[k];
    Begun *b = map_get_ptr(&o.done, sk->ast);
    if (!b) ok = (b = kernel_begun(&o, sk)) && map_put_ptr(&o.done, sk->ast, b);
    if (ok) sk->ast = b->ast, sk->offset = b->offset;
  }
  vec_free(s->mem, &o.views), map_free(&o.done);
  return ok;
}
