/* node_facts.c: the facts that a node stores. In: a node with its sources. Out: its shape or its bounds, the
 * ops and the ranges below it, its devices, and whether it is a view. They are computed once, when the node
 * is made, from the facts of its sources only, so that the cost of making a node does not depend on the size
 * of the graph below it. */
#include "uop/dims.h"
#include "uop/float_bounds.h"
#include "uop/uop_private.h"
#include <math.h>

/* ---- bounds */
static bool add_ok(int64_t a, int64_t b, int64_t *r) {
  return a != INT64_MIN && a != INT64_MAX && b != INT64_MIN && b != INT64_MAX &&
         !__builtin_add_overflow(a, b, r);
}

static bool mul_ok(int64_t a, int64_t b, int64_t *r) {
  return a != INT64_MIN && a != INT64_MAX && b != INT64_MIN && b != INT64_MAX &&
         !__builtin_mul_overflow(a, b, r);
}

static int64_t floordiv(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

static void bounds_of_four(const int64_t v[4], int64_t *lo, int64_t *hi) {
  *lo = *hi = v[0];
  for (int i = 1; i < 4; i++) {
    *lo = TG_MIN(*lo, v[i]);
    *hi = TG_MAX(*hi, v[i]);
  }
}

static void bounds_mul(const UOp *a, const UOp *b, int64_t *lo, int64_t *hi) {
  int64_t v[4];
  if (mul_ok(a->vmin, b->vmin, &v[0]) && mul_ok(a->vmin, b->vmax, &v[1]) && mul_ok(a->vmax, b->vmin, &v[2]) &&
      mul_ok(a->vmax, b->vmax, &v[3]))
    bounds_of_four(v, lo, hi);
  else if (a->vmin >= 0 && b->vmin >= 0)
    *lo = 0;
}

/* Rounds toward zero (c) or toward minus infinity. */
static void bounds_div(const UOp *a, const UOp *b, bool c, int64_t *lo, int64_t *hi) {
  if (b->vmin > 0 && a->vmin != INT64_MIN && a->vmax != INT64_MAX) {
    int64_t v[4] = {c ? a->vmin / b->vmin : floordiv(a->vmin, b->vmin),
                    c ? a->vmin / b->vmax : floordiv(a->vmin, b->vmax),
                    c ? a->vmax / b->vmin : floordiv(a->vmax, b->vmin),
                    c ? a->vmax / b->vmax : floordiv(a->vmax, b->vmax)};
    bounds_of_four(v, lo, hi);
  } else if (b->vmin > 0 && a->vmin >= 0)
    *lo = 0;
}

/* The result has the sign of the divisor, or of a (c). */
static void bounds_mod(const UOp *a, const UOp *b, bool c, int64_t *lo, int64_t *hi) {
  if (b->vmin <= 0) return;
  if (c) {
    if (b->vmax == INT64_MAX) return;
    *hi = a->vmax < 0 ? 0 : TG_MIN(b->vmax - 1, a->vmax);
    *lo = a->vmin >= 0 ? 0 : -(b->vmax - 1);
    return;
  }
  *lo = 0;
  *hi = b->vmax - (b->vmax != INT64_MAX);
  if (a->vmin >= 0 && a->vmax < b->vmin) {
    *lo = a->vmin;
    *hi = a->vmax;
  } else if (a->vmin >= 0)
    *hi = TG_MIN(*hi, a->vmax);
}

static void bounds_equal(const UOp *a, const UOp *b, bool negated, int64_t *lo, int64_t *hi) {
  bool apart = a->vmax < b->vmin || b->vmax < a->vmin;
  bool same = a->vmin == a->vmax && b->vmin == b->vmax && a->vmin == b->vmin;
  *lo = negated ? apart : same;
  *hi = negated ? !same : !apart;
}

static void bounds_bits(const UOp *u, const UOp *a, const UOp *b, int64_t *lo, int64_t *hi) {
  if (u->op == OPS_SHR) {
    if (b->vmin == b->vmax && b->vmin >= 0 && b->vmin < 64 && u->dtype != DT_BOOL) {
      *lo = a->vmin >> b->vmin;
      *hi = a->vmax >> b->vmin;
    }
    return;
  }
  if (u->op == OPS_OR) {
    if (u->dtype == DT_BOOL) {
      *lo = TG_MAX(a->vmin, b->vmin);
      *hi = TG_MAX(a->vmax, b->vmax);
    }
    return;
  }
  if (a->vmin >= 0 || b->vmin >= 0) *lo = 0;
  if (u->dtype == DT_BOOL) {
    *lo = TG_MIN(a->vmin, b->vmin);
    *hi = TG_MIN(a->vmax, b->vmax);
  } else if (b->vmin >= 0)
    *hi = a->vmin >= 0 ? TG_MIN(a->vmax, b->vmax) : b->vmax;
}

/* Leaves *lo and *hi unchanged if nothing is known. */
static void bounds_binary(const UOp *u, const UOp *a, const UOp *b, int64_t *lo, int64_t *hi) {
  int64_t v;
  switch (u->op) {
  case OPS_ADD:
    if (u->dtype == DT_BOOL) {
      *lo = TG_MAX(a->vmin, b->vmin);
      *hi = TG_MAX(a->vmax, b->vmax);
      break;
    }
    if (add_ok(a->vmin, b->vmin, &v)) *lo = v;
    if (add_ok(a->vmax, b->vmax, &v)) *hi = v;
    break;
  case OPS_SUB:
    if (b->vmax > INT64_MIN + 1 && add_ok(a->vmin, -b->vmax, &v) && b->vmax != INT64_MAX) *lo = v;
    if (b->vmin > INT64_MIN + 1 && add_ok(a->vmax, -b->vmin, &v)) *hi = v;
    break;
  case OPS_MUL: bounds_mul(a, b, lo, hi); break;
  case OPS_FLOORDIV:
  case OPS_CDIV: bounds_div(a, b, u->op == OPS_CDIV, lo, hi); break;
  case OPS_FLOORMOD:
  case OPS_CMOD: bounds_mod(a, b, u->op == OPS_CMOD, lo, hi); break;
  case OPS_MAX:
    *lo = TG_MAX(a->vmin, b->vmin);
    *hi = TG_MAX(a->vmax, b->vmax);
    break;
  case OPS_CMPLT:
    *lo = a->vmax < b->vmin;
    *hi = !(a->vmin >= b->vmax);
    break;
  case OPS_CMPNE:
  case OPS_CMPEQ: bounds_equal(a, b, u->op == OPS_CMPNE, lo, hi); break;
  case OPS_AND:
  case OPS_OR:
  case OPS_SHR: bounds_bits(u, a, b, lo, hi); break;
  case OPS_XOR: /* the result has no bit above the highest bit of the larger operand */
    if (a->vmin >= 0 && b->vmin >= 0 && u->dtype == DT_INDEX) {
      *lo = 0;
      *hi = TG_MAX(a->vmax, b->vmax);
      for (int shift = 1; shift < 64; shift *= 2)
        *hi |= *hi >> shift;
    }
    break;
  default: break;
  }
}

/* Bounds of a float that is cast to an integer: a cast truncates towards 0, saturates at the ends of the dtype
 * and makes 0 of NaN. */
static void bounds_of_float(const UOp *x, DType to, int64_t *lo, int64_t *hi) {
  if (to == DT_BOOL) return; /* true if the float is not 0 */
  Bounds b = bounds_of(x);
  if (b.lo > (double)*lo) *lo = (int64_t)fmin(b.lo, 0);
  if (b.hi < (double)*hi) *hi = (int64_t)fmax(b.hi, 0);
}

/* Bounds are proven. A value that may wrap in its dtype has the dtype's own bounds. A u64 above INT64_MAX is
 * treated as unknown. */
static void set_bounds(UOp *u) {
  DType d = (DType)u->dtype;
  if (dtype_is_float(d) || d == DT_VOID || d == DT_U64) {
    u->vmin = INT64_MIN;
    u->vmax = INT64_MAX;
    if (d != DT_U64) return;
  }
  int64_t lo = dtype_min(d), hi = dtype_max(d);
  const UOp *a = u->nsrc > 0 ? u->src[0] : NULL, *b = u->nsrc > 1 ? u->src[1] : NULL;
  int64_t blo = lo, bhi = hi;
  switch (u->op) {
  case OPS_CONST: blo = bhi = u->arg.v.i; break;
  case OPS_RANGE:
  case OPS_SPECIAL:
    blo = 0;
    bhi = a->vmax == INT64_MAX ? INT64_MAX : TG_MAX(a->vmax, 1) - 1;
    /* A loop that may not run must not look like a constant, because reads inside it would then not depend on
     * it and would be moved before it. */
    if (u->op == OPS_RANGE && a->vmin < 1 && a->vmax == 1) bhi = 1;
    break;
  case OPS_VAR:
    blo = u->arg.var.lo;
    bhi = u->arg.var.hi;
    break;
  case OPS_WHERE: {
    const UOp *c = u->src[2], *x = a->op == OPS_CMPLT ? a->src[0] : NULL, *y = x ? a->src[1] : NULL;
    bool least = x && b == x && c == y, most = x && b == y && c == x;
    blo = most ? TG_MAX(b->vmin, c->vmin) : TG_MIN(b->vmin, c->vmin);
    bhi = least ? TG_MIN(b->vmax, c->vmax) : TG_MAX(b->vmax, c->vmax);
    break;
  }
  case OPS_CAST:
    if (dtype_is_float((DType)a->dtype))
      bounds_of_float(a, d, &blo, &bhi);
    else if (a->dtype != DT_U64) {
      blo = a->vmin;
      bhi = a->vmax;
    }
    break;
  case OPS_NEG:
    if (a->vmin != INT64_MIN && a->vmax != INT64_MAX) {
      blo = -a->vmax;
      bhi = -a->vmin;
    }
    break;
  case OPS_VECTORIZE: {
    blo = INT64_MAX;
    bhi = INT64_MIN;
    for (int i = 0; i < u->nsrc; i++) {
      blo = TG_MIN(blo, u->src[i]->vmin);
      bhi = TG_MAX(bhi, u->src[i]->vmax);
    }
    break;
  }
  case OPS_GEP:
  case OPS_SHUFFLE:
  case OPS_LOOKUP:
  case OPS_FRAGMENT:
  case OPS_AFTER:
    blo = a->vmin;
    bhi = a->vmax;
    break;
  case OPS_SHUFFLEVECTOR:
    blo = TG_MIN(a->vmin, b->vmin);
    bhi = TG_MAX(a->vmax, b->vmax);
    break;
  default:
    if ((op_flags((Ops)u->op) & OPF_B) && !dtype_is_float((DType)a->dtype) && a->dtype != DT_U64)
      bounds_binary(u, a, b, &blo, &bhi);
    else if (op_flags((Ops)u->op) & OPF_CMP) {
      blo = 0;
      bhi = 1;
    }
  }
  if (d == DT_U64) {
    if (u->op == OPS_CONST && u->arg.v.i >= 0) u->vmin = u->vmax = u->arg.v.i;
    return;
  }
  if (blo < lo || bhi > hi) {
    blo = lo;
    bhi = hi;
  } /* may wrap */
  u->vmin = blo;
  u->vmax = bhi;
}

/* ---- shapes */
/* s with a different size of one axis. */
static bool with_size(UOpStore *st, const Ints *s, int64_t axis, int64_t size, const Ints **out) {
  int64_t d[16];
  for (int i = 0; i < s->n; i++)
    d[i] = i == axis ? size : s->v[i];
  return (*out = ints_get(st, s->n, d)) != NULL;
}

/* The shape of part i of an exchange, or of a SHARD: the whole shape, or the part between two bounds. */
static bool part_shape(UOpStore *st, const UOp *exchange, int64_t i, const Ints **out) {
  const Ints *cut = exchange->op == OPS_ALLTOALL        ? exchange->arg.ints
                    : exchange->op == OPS_REDUCESCATTER ? exchange->arg.reduce.axes
                                                        : NULL;
  *out = exchange->shape;
  if (exchange->op == OPS_SHARD && exchange->arg.ints->v[0] >= 0) {
    const int64_t *p = exchange->arg.ints->v, *bound = p + 2 + p[1];
    return with_size(st, exchange->shape, p[0], bound[i + 1] - bound[i], out);
  }
  return !cut || with_size(st, exchange->shape, cut->v[0], cut->v[2 + i] - cut->v[1 + i], out);
}

/* Sets *out to the shape of u, or to NULL if u has none, as in a kernel. Returns false if out of memory. */
static bool shape_of(UOpStore *st, UOp *u, const Ints **out) {
  const Ints *s = u->nsrc && u->src[0]->is_tensor ? u->src[0]->shape : NULL, *p = u->arg.ints;
  int64_t d[16];
  *out = NULL;
  switch (u->op) {
  case OPS_BUFFER: d[0] = u->arg.param.nelem; return (*out = ints_get(st, 1, d)) != NULL;
  case OPS_ARANGE: *out = p; return true;
  case OPS_RESHAPE:
  case OPS_EXPAND: *out = p; return true;
  case OPS_PERMUTE:
    for (int i = 0; i < p->n; i++)
      d[i] = s->v[p->v[i]];
    return (*out = ints_get(st, p->n, d)) != NULL;
  case OPS_PAD:
    for (int i = 0; i < s->n; i++)
      d[i] = dim_add(st, dim_add(st, s->v[i], p->v[2 * i]), p->v[2 * i + 1]);
    return (*out = ints_get(st, s->n, d)) != NULL;
  case OPS_SHRINK:
    for (int i = 0; i < s->n; i++)
      d[i] = dim_sub(st, p->v[2 * i + 1], p->v[2 * i]);
    return (*out = ints_get(st, s->n, d)) != NULL;
  case OPS_GATHER: *out = u->nsrc > 1 ? u->src[1]->shape : s; return true;
  case OPS_SCATTER: *out = u->arg.scatter.how & SCATTER_OLD ? u->src[1]->shape : s; return true;
  case OPS_REDUCE_AXIS:
    for (int i = 0; i < s->n; i++)
      d[i] = s->v[i];
    for (int i = 0; i < u->arg.reduce.axes->n; i++)
      d[u->arg.reduce.axes->v[i]] = 1;
    return (*out = ints_get(st, s->n, d)) != NULL;
  case OPS_MULTI: return p->v[0] < 0 ? (*out = s) != NULL : with_size(st, s, p->v[0], p->v[p->n - 1], out);
  case OPS_MSELECT: return part_shape(st, u->src[0], p->v[0], out);
  default:
    if (s && u->op != OPS_SINK && !(op_flags((Ops)u->op) & OPF_KERNEL)) *out = s;
    return true;
  }
}

/* Whether no padding is visible in a strided view whose step does not divide the axis, so that every element
 * is one of memory. Such a view is a PAD at the end of the axis, a RESHAPE of it to (.., iterations, step,
 * ..), and a SHRINK to one element of each step. */
static bool padding_hidden(const UOp *shrink) {
  const UOp *split = shrink->src[0], *pad = split->src[0];
  const int64_t *lohi = pad->arg.ints->v, *seen = shrink->arg.ints->v;
  int axis = -1;
  for (int i = 0; i < pad->shape->n; i++) {
    if (lohi[2 * i] || (lohi[2 * i + 1] && axis >= 0)) return false;
    if (lohi[2 * i + 1]) axis = i;
  }
  if (axis < 0 || dims_symbolic(pad->shape) || dims_symbolic(split->shape)) return false;
  int64_t inside = 1, behind = 1, n = pad->shape->v[axis];
  for (int i = axis + 1; i < pad->shape->n; i++)
    inside *= pad->shape->v[i];
  int at = split->shape->n;
  while (at > 0 && (behind < inside || split->shape->v[at - 1] == 1))
    behind *= split->shape->v[--at];
  if (behind != inside || at < 2 || split->shape->v[at - 1] * split->shape->v[at - 2] != n) return false;
  int64_t step = split->shape->v[at - 1];
  int64_t last = (seen[2 * (at - 2) + 1] - 1) * step + seen[2 * (at - 1) + 1] - 1;
  return last < n - lohi[2 * axis + 1];
}

static bool is_view(const UOp *u) {
  if (u->op == OPS_BUFFER) return true;
  if (u->op == OPS_SHRINK && u->src[0]->op == OPS_RESHAPE && u->src[0]->src[0]->op == OPS_PAD)
    return (u->src[0]->src[0]->src[0]->mark & MARK_VIEW) && padding_hidden(u);
  bool moves = (op_flags((Ops)u->op) & OPF_MOV) && u->op != OPS_PAD;
  return (moves || u->op == OPS_DETACH || (u->op == OPS_AFTER && u->is_tensor)) &&
         (u->src[0]->mark & MARK_VIEW);
}

/* ---- devices */
bool store_set_device(UOpStore *st, int64_t uid, int device) {
  if (!device && uid >= (int64_t)st->devices.len) return true;
  while ((int64_t)st->devices.len <= uid)
    if (!vec_push(st->mem, &st->devices, 0)) return false;
  st->devices.at[uid] = (uint8_t)device;
  return true;
}

/* A set with the bit of each device in the list. */
static uint64_t devices_listed(const int64_t *device, int64_t n) {
  uint64_t all = 0;
  for (int64_t i = 0; i < n; i++)
    all |= 1ull << (device[i] & 63);
  return all;
}

/* The devices of u. An AFTER is on the device of its memory, because the stored data comes from there,
 * too. */
static uint64_t devices_of(const UOpStore *st, const UOp *u) {
  uint64_t all = 0;
  if (u->op == OPS_BUFFER) {
    int64_t uid = buffer_uid(u);
    return 1ull << (uid < (int64_t)st->devices.len ? st->devices.at[uid] : 0);
  }
  if (u->op == OPS_COPY) return 1ull << (u->arg.i & 63);
  if (u->op == OPS_MSELECT) return devices_listed(u->arg.ints->v + 1, 1);
  if (u->op == OPS_SHARD) return devices_listed(u->arg.ints->v + 2, u->arg.ints->v[1]);
  if (u->op == OPS_BROADCAST) return devices_listed(u->arg.ints->v, u->arg.ints->n);
  for (int i = 0; i < (u->op == OPS_AFTER ? 1 : u->nsrc); i++)
    if (u->src[i]->is_tensor) all |= u->src[i]->devices;
  return all;
}

/* ---- all */
/* Sets the shape of a node of a tensor graph, and whether one of its sizes is symbolic. */
static bool tensor_facts(UOpStore *st, UOp *u) {
  const Ints *shape, *list = uop_list(u);
  if (!shape_of(st, u, &shape)) return false;
  for (int i = 0; list && i < list->n; i++)
    u->symbolic |= dim_symbolic(list->v[i]);
  for (int i = 0; shape && i < shape->n; i++)
    if (dim_symbolic(shape->v[i]) && !dim_valid(st, shape->v[i])) return false;
  if (shape) {
    u->is_tensor = 1;
    u->shape = shape;
    u->devices = devices_of(st, u);
  } else
    set_bounds(u);
  if (is_view(u)) u->mark |= MARK_VIEW;
  return true;
}

static uint64_t closed_bit(const UOp *r) { return range_bit(r->arg.range.id) & ~range_bit(63); }

bool facts_set(UOpStore *st, UOp *u) {
  uint64_t opmask = op_bit((Ops)u->op);
  uint64_t ranges = u->op == OPS_RANGE    ? range_bit(u->arg.range.id)
                    : u->op == OPS_BUFFER ? 1ull << (buffer_uid(u) & 63)
                                          : 0;
  bool symbolic = u->op == OPS_VAR, tensor = (op_flags((Ops)u->op) & OPF_TENSOR) != 0;
  for (int i = 0; i < u->nsrc; i++) {
    const UOp *s = u->src[i];
    opmask |= s->opmask;
    ranges |= s->ranges;
    symbolic |= s->symbolic;
    tensor |= s->is_tensor;
  }
  u->opmask = opmask;
  u->ranges = ranges;
  u->symbolic = symbolic;
  if (u->op == OPS_AFTER) u->symbolic = u->src[0]->symbolic;
  if (u->op == OPS_REDUCE)
    for (int i = 1; i < u->nsrc; i++)
      if (u->src[i]->op == OPS_RANGE) u->ranges &= ~closed_bit(u->src[i]);
  /* the loops that filled the memory have ended */
  if ((u->op == OPS_AFTER && u->src[0]->op == OPS_DEFINE_LOCAL) || u->op == OPS_BARRIER)
    for (int i = 0; i < u->nsrc; i++)
      for (int k = 2; u->src[i]->op == OPS_STORE && k < u->src[i]->nsrc; k++)
        u->ranges &= ~(u->src[i]->src[k]->ranges & ~range_bit(63));
  if (tensor) return tensor_facts(st, u);
  set_bounds(u);
  return true;
}
