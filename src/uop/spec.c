/* spec.c: the laws of a node. In: a node with its sources. Out: whether it may be in a graph of that kind.
 * There is one row per op: the kinds of graph, the number of sources, and a function that checks the rest.
 * All elementwise ops share one function. */
#include "uop/spec_private.h"
#include "uop/dims.h"
#include "uop/matrix.h"
#include "uop/merge.h"
#include <stdio.h>
#include <string.h>

const char *const graph_kind_names[GRAPH_KINDS] = {"tensor", "stages", "kernel", "nest", "loops", "linear"};

#define MAX_NELEM (INT64_C(1) << 48)

bool spec_broken(Check *c, const UOp *u, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  c->bad->node = u;
  vsnprintf(c->bad->why, sizeof c->bad->why, fmt, ap);
  va_end(ap);
  return false;
}

static const UOp *under(const UOp *u) {
  while (u->op == OPS_AFTER && u->nsrc)
    u = u->src[0];
  return u;
}

static const char *dt(const UOp *u) { return dtype_name((DType)u->dtype); }

static bool same_type(Check *c, const UOp *u, const UOp *s, const char *what) {
  if (s->dtype != u->dtype) return spec_broken(c, u, "%s is %s, the result %s", what, dt(s), dt(u));
  if (s->lanes != u->lanes)
    return spec_broken(c, u, "%s has %d lanes, the result %d", what, s->lanes, u->lanes);
  return true;
}

static bool no_arg(Check *c, const UOp *u) {
  return (!u->arg.raw.a && !u->arg.raw.b) || spec_broken(c, u, "takes no arg");
}

/* In a program, arg.i distinguishes reads and writes of one place at different times. */
static bool at_a_time(Check *c, const UOp *u) {
  return c->kind == GRAPH_LINEAR ? u->arg.i >= 0 || spec_broken(c, u, "time %lld", (long long)u->arg.i)
                                 : no_arg(c, u);
}

static bool one_lane(Check *c, const UOp *u) {
  return u->lanes == 1 || spec_broken(c, u, "has %d lanes", u->lanes);
}

static bool is_void(Check *c, const UOp *u) {
  return (u->dtype == DT_VOID && u->lanes == 1) || spec_broken(c, u, "is no value, yet of dtype %s", dt(u));
}

static bool is_data(Check *c, const UOp *u) {
  return (u->dtype > DT_INDEX && u->dtype < DT_COUNT) || spec_broken(c, u, "dtype %s", dt(u));
}

/* Addresses and loop bounds have dtype index until lowering, int32 or int64 after it. */
static bool is_address(Check *c, const UOp *u, const UOp *s, const char *what) {
  if (s->lanes != 1) return spec_broken(c, u, "%s has %d lanes", what, s->lanes);
  if (c->kind == GRAPH_LINEAR ? s->dtype == DT_I32 || s->dtype == DT_I64 : s->dtype == DT_INDEX) return true;
  return spec_broken(c, u, "%s is %s, not %s", what, dt(s), c->kind == GRAPH_LINEAR ? "i32 or i64" : "index");
}

static bool is_memory(const UOp *u) {
  u = under(u);
  return u->op == OPS_PARAM || u->op == OPS_DEFINE_LOCAL || u->op == OPS_DEFINE_REG;
}

static bool is_index(const UOp *u) { return under(u)->op == OPS_INDEX; }

static bool is_reg(const UOp *u) { return under(u)->op == OPS_DEFINE_REG; }

static bool is_statement(const UOp *u) {
  return u->op == OPS_STORE || u->op == OPS_ACC || u->op == OPS_LOOP || u->op == OPS_BARRIER ||
         u->op == OPS_PREFETCH;
}

/* ---- one function per form of arg and sources */
static bool check_sink(Check *c, const UOp *u) {
  for (int i = 0; c->kind != GRAPH_TENSOR && i < u->nsrc; i++)
    if (u->src[i]->op != OPS_STORE && (c->kind < GRAPH_NEST || !is_statement(u->src[i])))
      return spec_broken(c, u, "source %d is %s, not %s", i, op_name((Ops)u->src[i]->op),
                         c->kind < GRAPH_NEST ? "STORE" : "a statement");
  return is_void(c, u) && no_arg(c, u);
}

static bool check_loop(Check *c, const UOp *u) {
  if (u->src[0]->op != OPS_RANGE) return spec_broken(c, u, "over %s, not RANGE", op_name((Ops)u->src[0]->op));
  if (u->src[0]->arg.range.type >= AXIS_UPCAST)
    return spec_broken(c, u, "a range of expanded type is no loop");
  for (int i = 1; i < u->nsrc; i++)
    if (!is_statement(u->src[i]))
      return spec_broken(c, u, "source %d is %s, not a statement", i, op_name((Ops)u->src[i]->op));
  return is_void(c, u) && no_arg(c, u);
}

static bool check_const(Check *c, const UOp *u) {
  if (u->dtype == DT_VOID || u->dtype >= DT_COUNT) return spec_broken(c, u, "dtype %s", dt(u));
  Scalar r = scalar_round((DType)u->dtype, u->arg.v);
  bool nan = dtype_is_float((DType)u->dtype) && u->arg.v.f != u->arg.v.f;
  if (u->arg.raw.b || (!nan && r.i != u->arg.v.i)) return spec_broken(c, u, "is no value of %s", dt(u));
  return one_lane(c, u);
}

static bool check_memory(Check *c, const UOp *u) {
  if (u->arg.param.nelem < 0 || (u->arg.param.slot < 0 && c->kind != GRAPH_STAGES) ||
      u->arg.param.nelem > MAX_NELEM)
    return spec_broken(c, u, "slot %lld of %lld elements", (long long)u->arg.param.slot,
                       (long long)u->arg.param.nelem);
  if (u->op == OPS_PARAM && c->lin && u->arg.param.slot >= c->lin->nparam)
    return spec_broken(c, u, "slot %lld of %d", (long long)u->arg.param.slot, c->lin->nparam);
  return is_data(c, u) && (u->op == OPS_DEFINE_REG || one_lane(c, u));
}

static bool check_var(Check *c, const UOp *u) {
  if (!dtype_is_int((DType)u->dtype)) return spec_broken(c, u, "dtype %s", dt(u));
  if (u->nsrc > 1 || (u->nsrc && !is_const(u->src[0])))
    return spec_broken(c, u, "which variable it is, is not said by a CONST");
  return (u->arg.var.lo <= u->arg.var.hi ||
          spec_broken(c, u, "no value between %lld and %lld", (long long)u->arg.var.lo,
                      (long long)u->arg.var.hi)) &&
         one_lane(c, u);
}

static bool is_size(Check *c, int64_t d) {
  return dim_symbolic(d) ? c->st && dim_valid(c->st, d) && dim_max(c->st, d) <= MAX_NELEM
                         : d >= 0 && d <= MAX_NELEM;
}

/* Checks one axis of a movement other than RESHAPE. a, b: the axis's numbers in the arg. seen: the axes that
 * a PERMUTE has used so far. */
static bool check_axis(Check *c, const UOp *u, const Ints *s, int i, int64_t a, int64_t b, int *seen) {
  bool ok = true;
  switch (u->op) {
  case OPS_PERMUTE:
    ok = a >= 0 && a < s->n && !(*seen >> a & 1);
    if (ok) *seen |= 1 << a;
    break;
  case OPS_EXPAND: ok = a == s->v[i] || s->v[i] == 1; break;
  case OPS_SHRINK: ok = dim_le(c->st, a, b) && dim_le(c->st, b, s->v[i]); break;
  case OPS_FLIP: ok = a <= 1; break;
  default: break;
  }
  return ok || spec_broken(c, u, "axis %d of size %lld: %lld %lld", i, (long long)s->v[i], (long long)a,
                           (long long)b);
}

/* Checks the sizes of the result. PERMUTE and FLIP keep the elements. */
static bool check_result_size(Check *c, const UOp *u, const Ints *s, int naxes) {
  const Ints *p = u->arg.ints;
  int64_t most = 1;
  for (int i = 0; i < naxes; i++) {
    int64_t n = 1;
    if (u->op == OPS_RESHAPE || u->op == OPS_EXPAND) n = p->v[i];
    if (u->op == OPS_PAD) n = dim_add(c->st, dim_add(c->st, s->v[i], p->v[2 * i]), p->v[2 * i + 1]);
    if (!is_size(c, n) || __builtin_mul_overflow(most, dim_max(c->st, n), &most) || most > MAX_NELEM)
      return spec_broken(c, u, "more than 2^48 elements");
  }
  return true;
}

static int64_t size_product(Check *c, const Ints *s) {
  int64_t n = 1;
  for (int i = 0; i < s->n; i++)
    n = dim_mul(c->st, n, s->v[i]);
  return n;
}

static bool check_movement(Check *c, const UOp *u) {
  static const Ints scalar;
  const Ints *p = u->arg.ints, *s = u->src[0]->is_tensor ? u->src[0]->shape : &scalar;
  if (!u->src[0]->is_tensor && u->src[0]->op != OPS_CONST && u->src[0]->op != OPS_VAR &&
      !(u->src[0]->symbolic && op_is_alu((Ops)u->src[0]->op)))
    return spec_broken(c, u, "source %s has no shape", op_name((Ops)u->src[0]->op));
  if (!u->src[0]->is_tensor && (u->op == OPS_PAD || u->op == OPS_SHRINK || u->op == OPS_FLIP))
    return spec_broken(c, u, "of a number, which has no axes");
  int per = u->op == OPS_PAD || u->op == OPS_SHRINK ? 2 : 1, seen = 0;
  bool reshape = u->op == OPS_RESHAPE;
  if (!reshape && p->n != per * s->n)
    return spec_broken(c, u, "%d numbers for a source of rank %d", p->n, s->n);
  if (p->n > per * MAX_RANK) return spec_broken(c, u, "rank %d", p->n / per);
  for (int i = 0; i < p->n; i++)
    if (!is_size(c, p->v[i])) return spec_broken(c, u, "%lld", (long long)p->v[i]);
  int64_t in = reshape ? size_product(c, s) : 1, out = reshape ? size_product(c, p) : 1;
  if (!check_result_size(c, u, s, p->n / per)) return false;
  if (in != out) return spec_broken(c, u, "%lld elements into %lld", (long long)in, (long long)out);
  for (int i = 0; !reshape && i < s->n; i++)
    if (!check_axis(c, u, s, i, p->v[per * i], per == 2 ? p->v[2 * i + 1] : 0, &seen)) return false;
  return same_type(c, u, u->src[0], "the source");
}

static bool check_axes(Check *c, const UOp *u) {
  const Ints *a = u->arg.reduce.axes;
  if (!op_reduces(u->arg.reduce.op) || !a) return spec_broken(c, u, "not a reduction");
  if (!u->src[0]->is_tensor) return spec_broken(c, u, "source has no shape");
  for (int i = 0; i < a->n; i++)
    if (a->v[i] < 0 || a->v[i] >= u->src[0]->shape->n || (i && a->v[i] <= a->v[i - 1]))
      return spec_broken(c, u, "axis %lld", (long long)a->v[i]);
  return true;
}

static bool check_reduce_axis(Check *c, const UOp *u) {
  return check_axes(c, u) && same_type(c, u, u->src[0], "the source");
}

/* A scan has its source's type, or is an f32 that is carried in f64. */
static bool scan_type(Check *c, const UOp *u) {
  return (u->dtype == DT_F32 && u->src[0]->dtype == DT_F64) || same_type(c, u, u->src[0], "the source");
}

static bool check_scan_axis(Check *c, const UOp *u) {
  return check_axes(c, u) && scan_type(c, u) &&
         (u->arg.reduce.axes->n == 1 || spec_broken(c, u, "along %d axes", u->arg.reduce.axes->n));
}

/* Checks the sources from `first` on: integer indices into `of`, one per axis, all of the same shape. */
static bool check_places(Check *c, const UOp *u, int first, const UOp *of, const Ints *shape) {
  if (!of->is_tensor || !shape) return spec_broken(c, u, "source has no shape");
  if (of->shape->n != u->nsrc - first || of->shape->n < 1)
    return spec_broken(c, u, "%d indices into rank %d", u->nsrc - first, of->shape->n);
  for (int i = first; i < u->nsrc; i++) {
    if (!dtype_is_int((DType)u->src[i]->dtype) || u->src[i]->dtype == DT_INDEX)
      return spec_broken(c, u, "index %d is %s", i - first, dt(u->src[i]));
    if (!u->src[i]->is_tensor || u->src[i]->shape != shape)
      return spec_broken(c, u, "index %d has another shape", i - first);
  }
  return same_type(c, u, of, "the source");
}

static bool check_gather(Check *c, const UOp *u) {
  return no_arg(c, u) && check_places(c, u, 1, u->src[0], u->src[1]->is_tensor ? u->src[1]->shape : NULL);
}

static bool check_scatter(Check *c, const UOp *u) {
  int64_t op = u->arg.scatter.op;
  if ((op != OPS_STORE && !op_reduces(op)) || u->arg.scatter.how < 0 || u->arg.scatter.how > 3)
    return spec_broken(c, u, "combines by nothing known");
  if (u->src[1]->dtype != u->src[0]->dtype)
    return spec_broken(c, u, "%s into %s", dt(u->src[1]), dt(u->src[0]));
  return check_places(c, u, 2, u->src[0], u->src[1]->is_tensor ? u->src[1]->shape : NULL);
}

static bool check_tuple(Check *c, const UOp *u) { return is_void(c, u) && no_arg(c, u); }

static bool check_arange(Check *c, const UOp *u) {
  if (u->arg.ints->n != 1 || !is_size(c, u->arg.ints->v[0])) return spec_broken(c, u, "takes one length");
  return dtype_is_int((DType)u->dtype) || spec_broken(c, u, "dtype %s", dt(u));
}

static bool check_custom_gradient(Check *c, const UOp *u) {
  for (int i = 1; i < u->nsrc; i++)
    if (!u->src[i]->is_tensor) return spec_broken(c, u, "source %d has no shape", i);
  return same_type(c, u, u->src[0], "the source") &&
         (u->arg.i >= 0 || spec_broken(c, u, "function %lld", (long long)u->arg.i));
}

static bool check_same(Check *c, const UOp *u) {
  return same_type(c, u, u->src[0], "the source") && no_arg(c, u);
}

static bool check_copy(Check *c, const UOp *u) {
  bool known = u->arg.i >= 0 && u->arg.i < 64;
  return same_type(c, u, u->src[0], "the source") &&
         (known || spec_broken(c, u, "device %lld", (long long)u->arg.i));
}

/* Checks the bounds of n parts of an axis: from 0 to its size, in ascending order. at: the axis, then the
 * bounds. */
static bool check_bounds(Check *c, const UOp *u, const Ints *shape, const int64_t *at, int n) {
  int64_t axis = at[0];
  if (axis < 0 || axis >= shape->n) return spec_broken(c, u, "axis %lld", (long long)axis);
  bool ok = at[1] == 0 && at[1 + n] == shape->v[axis];
  for (int i = 0; i < n; i++)
    ok = ok && at[1 + i] <= at[2 + i];
  return ok || spec_broken(c, u, "the parts of axis %lld do not make it up", (long long)axis);
}

static bool check_multi(Check *c, const UOp *u) {
  const Ints *p = u->arg.ints;
  bool split = p->n > 0 && p->v[0] >= 0;
  if (p->n != (split ? u->nsrc + 2 : 1)) return spec_broken(c, u, "%d numbers for %d parts", p->n, u->nsrc);
  uint64_t on = 0;
  for (int i = 0; i < u->nsrc; i++) {
    uint64_t d = u->src[i]->devices;
    if (!same_type(c, u, u->src[i], "a part")) return false;
    if (!d || (d & (d - 1)) || (d & on)) return spec_broken(c, u, "part %d has no device of its own", i);
    on |= d;
  }
  return !split || check_bounds(c, u, u->shape, p->v, u->nsrc);
}

static bool check_shard(Check *c, const UOp *u) {
  const Ints *p = u->arg.ints;
  bool split = p->n > 1 && p->v[0] >= 0;
  if (!same_type(c, u, u->src[0], "the source")) return false;
  if (p->n < 3 || p->n != (split ? 3 + 2 * p->v[1] : 2 + p->v[1]))
    return spec_broken(c, u, "%d numbers", p->n);
  if (!split) return true;
  int64_t at[2 + 64] = {p->v[0]};
  for (int64_t i = 0; i <= p->v[1] && i <= 64; i++)
    at[1 + i] = p->v[2 + p->v[1] + i];
  return check_bounds(c, u, u->src[0]->shape, at, (int)p->v[1]);
}

static bool check_exchange_of(Check *c, const UOp *u) { /* every exchange has sources of one type */
  for (int i = 0; i < u->nsrc; i++)
    if (!same_type(c, u, u->src[i], "a source")) return false;
  return true;
}

static bool check_range(Check *c, const UOp *u) {
  int64_t t = u->arg.range.type;
  if (!is_address(c, u, u, "the loop variable") || !is_address(c, u, u->src[0], "the extent")) return false;
  if (u->arg.range.id < 0 || t < 0 || t > AXIS_GROUP)
    return spec_broken(c, u, "id %lld, type %lld", (long long)u->arg.range.id, (long long)t);
  if ((c->kind <= GRAPH_KERNEL && t != AXIS_GLOBAL && t != AXIS_LOOP && t != AXIS_REDUCE &&
       t != AXIS_ORDERED) ||
      (c->kind >= GRAPH_LOOPS && t >= AXIS_UPCAST))
    return spec_broken(c, u, "a loop of type %lld in a %s graph", (long long)t, graph_kind_names[c->kind]);
  if (t >= AXIS_UPCAST && !is_const(u->src[0]))
    return spec_broken(c, u, "the extent of an unrolled loop must be a constant");
  return u->src[0]->vmax >= 0 || spec_broken(c, u, "extent below 0");
}

static bool check_index(Check *c, const UOp *u) {
  bool gated = u->arg.i != 0;
  int n = u->nsrc - 1 - gated;
  if (u->arg.raw.a < 0 || u->arg.raw.a > 1 || u->arg.raw.b)
    return spec_broken(c, u, "gated or not, nothing else");
  if (!is_memory(u->src[0])) return spec_broken(c, u, "into %s, not memory", op_name((Ops)u->src[0]->op));
  const UOp *memory = under(u->src[0]);
  int axes = memory->op == OPS_PARAM        ? TG_MAX(memory->nsrc, 1)
             : memory->op == OPS_DEFINE_REG ? memory->nsrc
                                            : 1;
  if (n < 0 || (c->kind >= GRAPH_LOOPS && n != 1) || (c->kind != GRAPH_STAGES && n != axes))
    return spec_broken(c, u, "%d offsets", n);
  if (u->dtype != u->src[0]->dtype) return spec_broken(c, u, "%s in a buffer of %s", dt(u), dt(u->src[0]));
  if (c->kind < GRAPH_LOOPS && u->lanes != 1) return spec_broken(c, u, "has %d lanes", u->lanes);
  for (int i = 1; i <= n; i++)
    if (!is_address(c, u, u->src[i], "an offset")) return false;
  const UOp *g = gated ? u->src[u->nsrc - 1] : NULL;
  return !g || (g->dtype == DT_BOOL && g->lanes == 1) ||
         spec_broken(c, u, "the gate is %s of %d lanes", dt(g), g->lanes);
}

static bool check_reduce(Check *c, const UOp *u) {
  if (!op_reduces(u->arg.reduce.op) || u->arg.reduce.axes) return spec_broken(c, u, "not a reduction");
  int n = 0;
  while (n < u->nsrc && u->src[n]->op != OPS_RANGE)
    n++;
  if (c->kind != GRAPH_LOOPS && n != 1) return spec_broken(c, u, "%d values", n);
  for (int i = 0; i < u->nsrc; i++) {
    if (i < n) {
      if (!same_type(c, u, u->src[i], "a value")) return false;
    } else if (u->src[i]->op != OPS_RANGE)
      return spec_broken(c, u, "source %d is %s, not RANGE", i, op_name((Ops)u->src[i]->op));
    else if (u->src[i]->arg.range.type == AXIS_ORDERED)
      return spec_broken(c, u, "over the ordered loop r%lld", (long long)u->src[i]->arg.range.id);
  }
  return n > 0 && n < u->nsrc ? true : spec_broken(c, u, "%d values over %d ranges", n, u->nsrc - n);
}

static bool check_scan(Check *c, const UOp *u) {
  if (!op_reduces(u->arg.reduce.op) || u->arg.reduce.axes)
    return spec_broken(c, u, "not a running reduction");
  if (u->src[1]->op != OPS_RANGE || u->src[1]->arg.range.type != AXIS_ORDERED)
    return spec_broken(c, u, "along %s, not an ordered loop", op_name((Ops)u->src[1]->op));
  return scan_type(c, u);
}

static bool check_load(Check *c, const UOp *u) {
  const UOp *x = under(u->src[0]);
  if (!is_index(x) && !is_reg(x)) return spec_broken(c, u, "of %s", op_name((Ops)x->op));
  if (is_index(x) && u->nsrc > 1 && !x->arg.i)
    return spec_broken(c, u, "a value for a gate that is not there");
  if (is_index(x) && u->nsrc > 2) return spec_broken(c, u, "%d sources", u->nsrc);
  return at_a_time(c, u) && same_type(c, u, x, "the source") &&
         (is_reg(x) || u->nsrc < 2 || same_type(c, u, u->src[1], "the other value"));
}

/* Checks the ranges that a statement lists: in a kernel all its loops, in a nest the expanded ones. */
static bool check_list(Check *c, const UOp *u) {
  for (int i = 2; i < u->nsrc; i++) {
    if (u->src[i]->op != OPS_RANGE)
      return spec_broken(c, u, "source %d is %s, not RANGE", i, op_name((Ops)u->src[i]->op));
    if (c->kind == GRAPH_NEST && u->src[i]->arg.range.type < AXIS_UPCAST)
      return spec_broken(c, u, "lists the loop r%lld", (long long)u->src[i]->arg.range.id);
  }
  return true;
}

static bool check_store(Check *c, const UOp *u) {
  const UOp *to = u->src[0], *v = u->src[1];
  if (c->kind == GRAPH_TENSOR) {
    if (v->is_tensor && to->is_tensor && v->shape != to->shape)
      return spec_broken(c, u, "a value of another shape");
    return v->dtype == to->dtype ? no_arg(c, u) : spec_broken(c, u, "%s into %s", dt(v), dt(to));
  }
  if (!is_index(to) && !(c->kind >= GRAPH_LOOPS && is_reg(to)))
    return spec_broken(c, u, "into %s", op_name((Ops)to->op));
  if (v->dtype != to->dtype || v->lanes != to->lanes)
    return spec_broken(c, u, "%s x%d into %s x%d", dt(v), v->lanes, dt(to), to->lanes);
  if (c->kind >= GRAPH_LOOPS && u->nsrc != 2) return spec_broken(c, u, "%d sources", u->nsrc);
  return check_list(c, u) && is_void(c, u) && at_a_time(c, u);
}

static bool check_acc(Check *c, const UOp *u) {
  const UOp *to = u->src[0], *v = u->src[1];
  if (!is_reg(c->kind == GRAPH_NEST && is_index(to) ? to->src[0] : to))
    return spec_broken(c, u, "into %s, not a register", op_name((Ops)to->op));
  if (!op_reduces(u->arg.reduce.op) || u->arg.reduce.axes) return spec_broken(c, u, "not a reduction");
  if (v->dtype != to->dtype || v->lanes != to->lanes)
    return spec_broken(c, u, "%s x%d into %s x%d", dt(v), v->lanes, dt(to), to->lanes);
  return check_list(c, u) && is_void(c, u);
}

static bool check_after(Check *c, const UOp *u) {
  return no_arg(c, u) && same_type(c, u, u->src[0], "the source");
}

static bool check_end(Check *c, const UOp *u) {
  Ops open = u->op == OPS_END ? OPS_RANGE : OPS_IF;
  return (u->src[0]->op == open || spec_broken(c, u, "of %s", op_name((Ops)u->src[0]->op))) &&
         is_void(c, u) && no_arg(c, u);
}

static bool check_if(Check *c, const UOp *u) {
  return (u->src[0]->dtype == DT_BOOL && at_a_time(c, u)) ||
         spec_broken(c, u, "the condition is %s of %d lanes", dt(u->src[0]), u->src[0]->lanes);
}

/* Two constant sources: the numbers of groups of copies and of products that may still be under way after the
 * threads have met. */
static bool check_barrier(Check *c, const UOp *u) {
  for (int i = 0; i < u->nsrc; i++)
    if (!is_const(u->src[i])) return spec_broken(c, u, "source %d is not constant", i);
  return (!u->nsrc || u->nsrc == 2 || spec_broken(c, u, "%d sources", u->nsrc)) && is_void(c, u) &&
         at_a_time(c, u);
}

static bool check_prefetch(Check *c, const UOp *u) {
  if (!is_index(u->src[0])) return spec_broken(c, u, "source 0 is %s", op_name((Ops)u->src[0]->op));
  return is_void(c, u) && no_arg(c, u);
}

static bool check_special(Check *c, const UOp *u) {
  if (u->arg.special.dim < 0 || u->arg.special.dim > 2 || u->arg.special.local < 0 ||
      u->arg.special.local > 1)
    return spec_broken(c, u, "dim %lld, local %lld", (long long)u->arg.special.dim,
                       (long long)u->arg.special.local);
  return is_address(c, u, u, "it") && is_address(c, u, u->src[0], "the extent");
}

static bool check_vectorize(Check *c, const UOp *u) {
  if (u->nsrc != 1 && u->nsrc != u->lanes)
    return spec_broken(c, u, "%d sources for %d lanes", u->nsrc, u->lanes);
  for (int i = 0; i < u->nsrc; i++)
    if (u->src[i]->dtype != u->dtype || u->src[i]->lanes != 1)
      return spec_broken(c, u, "source %d is %s x%d", i, dt(u->src[i]), u->src[i]->lanes);
  return no_arg(c, u);
}

static bool check_gep(Check *c, const UOp *u) {
  if (u->arg.i < 0 || u->arg.raw.b || u->arg.i > u->src[0]->lanes - u->lanes)
    return spec_broken(c, u, "lanes %lld and on, %d of %d", (long long)u->arg.i, u->lanes, u->src[0]->lanes);
  return u->dtype == u->src[0]->dtype || spec_broken(c, u, "%s of %s", dt(u), dt(u->src[0]));
}

static bool check_shufflevector(Check *c, const UOp *u) {
  const UOp *a = u->src[0], *b = u->src[1];
  const Ints *lane = u->arg.ints;
  if (a->dtype != u->dtype || b->dtype != u->dtype || b->lanes != a->lanes || a->lanes < 2)
    return spec_broken(c, u, "of %s x%d and %s x%d", dt(a), a->lanes, dt(b), b->lanes);
  if (lane->n != u->lanes) return spec_broken(c, u, "%d numbers for %d lanes", lane->n, u->lanes);
  for (int i = 0; i < lane->n; i++)
    if (lane->v[i] < 0 || lane->v[i] >= 2 * a->lanes)
      return spec_broken(c, u, "lane %lld of two vectors of %d", (long long)lane->v[i], a->lanes);
  return true;
}

static bool check_lookup(Check *c, const UOp *u) {
  const UOp *table = u->src[0], *at = u->src[1];
  if (dtype_size((DType)u->dtype) != 1 || table->dtype != u->dtype || table->lanes != 16)
    return spec_broken(c, u, "of %s x%d", dt(table), table->lanes);
  if (at->dtype != DT_U8 || at->lanes != u->lanes)
    return spec_broken(c, u, "%d lanes by %s x%d", u->lanes, dt(at), at->lanes);
  return true;
}

static bool check_shuffle(Check *c, const UOp *u) {
  enum { WARP = 32 };

  if (u->arg.i < 1 || u->arg.i >= WARP) return spec_broken(c, u, "%lld threads apart", (long long)u->arg.i);
  return is_data(c, u) && same_type(c, u, u->src[0], "the source");
}

static bool check_fragment(Check *c, const UOp *u) {
  int size = (int)dtype_size((DType)u->dtype), words = u->lanes * size / MATRIX_WORD_BYTES;
  if (u->arg.i != 0 && (u->arg.i != 1 || size != 2))
    return spec_broken(c, u, "turned %lld", (long long)u->arg.i);
  if (u->src[0]->dtype != u->dtype || u->src[0]->lanes * size != MATRIX_ROW_BYTES)
    return spec_broken(c, u, "of a row of %s x%d", dt(u->src[0]), u->src[0]->lanes);
  bool whole = u->lanes * size == words * MATRIX_WORD_BYTES && (words == 1 || words == 2 || words == 4);
  return whole ? is_data(c, u) : spec_broken(c, u, "has %d lanes", u->lanes);
}

/* A WMMA whose operands are in memory. In a list its sources are a, b, rows, columns, steps, the pitch of
 * rows of a and of panels of b, and the time at which what it reads was written. */
static bool check_wmma_in_memory(Check *c, const UOp *u, const MatrixShape *s) {
  bool whole = c->kind == GRAPH_LOOPS || c->kind == GRAPH_LINEAR;
  if (dtype_size((DType)u->dtype) != 4 ||
      dtype_is_float((DType)u->dtype) != dtype_is_float(s->operand[MATRIX_C].dtype) || u->lanes != 1)
    return spec_broken(c, u, "gives %s x%d", dt(u), u->lanes);
  if (u->nsrc != (c->kind == GRAPH_LINEAR ? 8 : whole ? 7 : 3))
    return spec_broken(c, u, "%d sources", u->nsrc);
  for (int role = MATRIX_A; role <= MATRIX_B; role++) {
    const UOp *v = u->src[role];
    if (v->op != OPS_INDEX || v->dtype != s->operand[role].dtype || v->arg.i)
      return spec_broken(c, u, "source %d is no place of %s", role, dtype_name(s->operand[role].dtype));
  }
  if (!whole) return u->src[2]->op == OPS_RANGE || spec_broken(c, u, "source 2 is no loop");
  for (int i = 2; i < u->nsrc; i++)
    if (!is_const(u->src[i])) return spec_broken(c, u, "source %d is not constant", i);
  bool fits = u->src[2]->arg.v.i > 0 && u->src[2]->arg.v.i % s->m == 0 && u->src[3]->arg.v.i > 0 &&
              u->src[3]->arg.v.i % s->n == 0 && u->src[4]->arg.v.i > 0 && u->src[4]->arg.v.i % s->k == 0;
  fits = fits && u->src[2]->arg.v.i * u->src[3]->arg.v.i <= s->blocks.most[0] * s->blocks.most[1];
  return fits || spec_broken(c, u, "is no block of this unit");
}

/* A WMMA whose operands are in shared memory. Its sources are a and b as places; in a list also the sum that
 * it adds to, and the time at which what it reads was written. */
static bool check_wmma_in_shared(Check *c, const UOp *u, const MatrixShape *s) {
  bool whole = c->kind == GRAPH_LOOPS || c->kind == GRAPH_LINEAR;
  const MatrixOperand *sum = &s->operand[MATRIX_C];
  if (u->dtype != sum->dtype || u->lanes != (whole ? sum->elements : 1))
    return spec_broken(c, u, "gives %s x%d", dt(u), u->lanes);
  if (u->nsrc != (c->kind == GRAPH_LINEAR ? 4 : whole ? 3 : 2))
    return spec_broken(c, u, "%d sources", u->nsrc);
  for (int role = MATRIX_A; role <= MATRIX_B; role++) {
    const UOp *v = u->src[role];
    if (v->op != OPS_INDEX || v->dtype != s->operand[role].dtype || v->arg.i)
      return spec_broken(c, u, "source %d is no place of %s", role, dtype_name(s->operand[role].dtype));
  }
  if (!whole || (u->src[2]->dtype == u->dtype && u->src[2]->lanes == u->lanes)) return true;
  return spec_broken(c, u, "source 2 is no fragment");
}

/* A WMMA whose operands are fragments. In a nest it has two sources; in a list its sources are the vectors of
 * the fragments of a, b and c. */
static bool check_wmma(Check *c, const UOp *u) {
  if (u->arg.i < 0 || u->arg.i >= MATRIX_COUNT) return spec_broken(c, u, "row %lld", (long long)u->arg.i);
  const MatrixShape *s = &matrix_shapes[u->arg.i];
  if (matrix_in_memory(s)) return check_wmma_in_memory(c, u, s);
  if (matrix_in_shared(s)) return check_wmma_in_shared(c, u, s);
  const MatrixOperand *sum = &s->operand[MATRIX_C];
  bool whole = c->kind == GRAPH_LOOPS || c->kind == GRAPH_LINEAR;
  if (dtype_size((DType)u->dtype) != dtype_size(sum->dtype) ||
      dtype_is_float((DType)u->dtype) != dtype_is_float(sum->dtype) ||
      u->lanes != (whole ? sum->elements : 1))
    return spec_broken(c, u, "gives %s x%d", dt(u), u->lanes);
  if (!whole && u->nsrc != 2) return spec_broken(c, u, "%d values", u->nsrc);
  int at = 0;
  for (int role = MATRIX_A; role <= (whole ? MATRIX_C : MATRIX_B); role++) {
    const MatrixOperand *o = &s->operand[role];
    for (int n = 0; n < (whole ? o->elements : 1); n += whole ? o->together : 1) {
      const UOp *v = at < u->nsrc ? u->src[at++] : NULL;
      DType want = role == MATRIX_C ? (DType)u->dtype : o->dtype;
      if (!v || v->dtype != want || v->lanes != (whole ? o->together : 1))
        return spec_broken(c, u, "source %d is no fragment of %s", at, dtype_name(want));
    }
  }
  return at == u->nsrc || spec_broken(c, u, "%d sources", u->nsrc);
}

/* An elementwise op. */
static bool check_alu(Check *c, const UOp *u) {
  const UOp *a = u->src[0];
  unsigned flags = op_flags((Ops)u->op);
  OpOperands kind = op_operands((Ops)u->op);
  for (int i = 0; i < u->nsrc; i++) {
    const UOp *s = u->src[i];
    DType d = (DType)s->dtype,
          want = kind == OPERANDS_CHOICE ? (i ? (DType)u->dtype : DT_BOOL) : (DType)a->dtype;
    if (d == DT_VOID) return spec_broken(c, u, "source %d is no value", i);
    if (d != want) return spec_broken(c, u, "source %d is %s, not %s", i, dt(s), dtype_name(want));
    if (s->lanes != u->lanes)
      return spec_broken(c, u, "source %d has %d lanes, the result %d", i, s->lanes, u->lanes);
    if (c->kind == GRAPH_TENSOR && (s->is_tensor != u->is_tensor || (s->is_tensor && s->shape != u->shape)))
      return spec_broken(c, u, "source %d has another shape", i);
    if (!op_takes((Ops)u->op, i, d)) return spec_broken(c, u, "on %s", dt(s));
  }
  if (u->op == OPS_BITCAST &&
      (!dtype_size((DType)a->dtype) || dtype_size((DType)a->dtype) != dtype_size((DType)u->dtype)))
    return spec_broken(c, u, "%s to %s: sizes differ", dt(a), dt(u));
  DType r = flags & OPF_CMP                                    ? DT_BOOL
            : kind == OPERANDS_FREE || kind == OPERANDS_CHOICE ? (DType)u->dtype
                                                               : (DType)a->dtype;
  if (u->dtype != r || u->dtype == DT_VOID)
    return spec_broken(c, u, "gives %s, not %s", dt(u), dtype_name(r));
  if (u->op == OPS_LOOKUP4) return u->arg.ints->n == 16 || spec_broken(c, u, "a table of %d", u->arg.ints->n);
  bool bounds = op_arg((Ops)u->op) == ARG_BOUND;
  return bounds ? u->arg.i == 0 || u->arg.i == 1 || spec_broken(c, u, "says %lld", (long long)u->arg.i)
                : no_arg(c, u);
}

/* ---- the table */
enum {
  T = 1 << GRAPH_TENSOR,
  S = 1 << GRAPH_STAGES,
  K = 1 << GRAPH_KERNEL,
  N = 1 << GRAPH_NEST,
  L = 1 << GRAPH_LOOPS,
  P = 1 << GRAPH_LINEAR
};

/* in: kinds of graph, as bits; least: the fewest sources, for an op that takes any number */
typedef struct OpSpec {
  uint8_t in, least;
  bool (*check)(Check *c, const UOp *u);
} OpSpec;

static const OpSpec specs[OPS_COUNT] = {
    [OPS_SINK] = {T | K | N | L, 0, check_sink},
    [OPS_CONST] = {T | S | K | N | L | P, 0, check_const},
    [OPS_BUFFER] = {T, 0, check_memory},
    [OPS_PARAM] = {S | K | N | L | P, 0, check_memory},
    [OPS_VAR] = {T | S | K | N | L | P, 0, check_var},
    [OPS_RESHAPE] = {T, 1, check_movement},
    [OPS_PERMUTE] = {T, 1, check_movement},
    [OPS_EXPAND] = {T, 1, check_movement},
    [OPS_PAD] = {T, 1, check_movement},
    [OPS_SHRINK] = {T, 1, check_movement},
    [OPS_FLIP] = {T, 1, check_movement},
    [OPS_REDUCE_AXIS] = {T, 1, check_reduce_axis},
    [OPS_SCAN_AXIS] = {T, 1, check_scan_axis},
    [OPS_GATHER] = {T, 2, check_gather},
    [OPS_SCATTER] = {T, 3, check_scatter},
    [OPS_ARANGE] = {T, 0, check_arange},
    [OPS_CONTIGUOUS] = {T, 1, check_same},
    [OPS_DETACH] = {T, 1, check_same},
    [OPS_COPY] = {T, 1, check_copy},
    [OPS_MULTI] = {T, 1, check_multi},
    [OPS_SHARD] = {T, 1, check_shard},
    [OPS_MSELECT] = {T, 1, check_exchange_of},
    [OPS_ALLREDUCE] = {T, 1, check_exchange_of},
    [OPS_REDUCESCATTER] = {T, 1, check_exchange_of},
    [OPS_ALLGATHER] = {T, 1, check_exchange_of},
    [OPS_ALLTOALL] = {T, 1, check_exchange_of},
    [OPS_BROADCAST] = {T, 1, check_exchange_of},
    [OPS_CUSTOM_GRADIENT] = {T, 1, check_custom_gradient},
    [OPS_RANGE] = {S | K | N | L | P, 1, check_range},
    [OPS_INDEX] = {S | K | N | L | P, 1, check_index},
    [OPS_REDUCE] = {S | K, 2, check_reduce},
    [OPS_SCAN] = {S | K, 2, check_scan},
    [OPS_TUPLE] = {S, 1, check_tuple},
    [OPS_STAGE] = {S | K, 1, check_same},
    [OPS_LOAD] = {L | P, 1, check_load},
    [OPS_STORE] = {T | K | N | L | P, 2, check_store},
    [OPS_AFTER] = {T | S | K | P, 2, check_after},
    [OPS_END] = {P, 1, check_end},
    [OPS_DEFINE_REG] = {N | L | P, 0, check_memory},
    [OPS_DEFINE_LOCAL] = {K | N | L | P, 0, check_memory},
    [OPS_SPECIAL] = {N | L | P, 1, check_special},
    [OPS_BARRIER] = {N | L | P, 0, check_barrier},
    [OPS_PREFETCH] = {L | P, 1, check_prefetch},
    [OPS_IF] = {P, 1, check_if},
    [OPS_ENDIF] = {P, 1, check_end},
    [OPS_VECTORIZE] = {L | P, 1, check_vectorize},
    [OPS_GEP] = {L | P, 1, check_gep},
    [OPS_SHUFFLEVECTOR] = {L | P, 2, check_shufflevector},
    [OPS_SHUFFLE] = {N | L | P, 1, check_shuffle},
    [OPS_LOOKUP] = {L | P, 2, check_lookup},
    [OPS_FRAGMENT] = {L | P, 1, check_fragment},
    [OPS_WMMA] = {N | L | P, 2, check_wmma},
    [OPS_LOOP] = {N | L, 1, check_loop},
    [OPS_ACC] = {N | L, 2, check_acc},
};

static bool check_count(Check *c, const UOp *u) {
  int want = op_nsrc((Ops)u->op), least = specs[u->op].least;
  return (want >= 0 ? u->nsrc == want : u->nsrc >= least) ||
         spec_broken(c, u, "%d sources, not %s%d", u->nsrc, want >= 0 ? "" : "at least ",
                     want >= 0 ? want : least);
}

bool spec_new(UOpStore *st, TgMem *mem, Ops op, DType dtype, int lanes, int nsrc, UOp *const *src, Arg arg,
              SpecError *bad) {
  Check c = {.kind = GRAPH_TENSOR, .bad = bad, .st = st};
  *bad = (SpecError){0};
  UOp *u = mem_alloc(mem, sizeof *u + (size_t)nsrc * sizeof *src);
  if (!u) return false;
  u->op = (uint8_t)op;
  u->dtype = (uint8_t)dtype;
  u->lanes = (uint8_t)lanes;
  u->nsrc = (uint16_t)nsrc;
  u->arg = arg;
  if (nsrc) memcpy(u->src, src, (size_t)nsrc * sizeof *src);
  bool ok = check_count(&c, u), tensor = nsrc && src[0]->is_tensor;
  for (int i = 0; ok && i < nsrc; i++) /* because facts are computed from all sources in the same way */
    if (op != OPS_SINK && src[i]->is_tensor != tensor && (op_is_alu(op) || !(op_flags(op) & OPF_TENSOR)))
      ok = spec_broken(&c, u, "source %d has %s shape", i, src[i]->is_tensor ? "a" : "no");
  if (ok && op_flags(op) & OPF_MOV)
    ok = check_movement(&c, u);
  else if (ok && op == OPS_REDUCE_AXIS)
    ok = check_reduce_axis(&c, u);
  else if (ok && op == OPS_SCAN_AXIS)
    ok = check_scan_axis(&c, u);
  else if (ok && op == OPS_GATHER)
    ok = check_gather(&c, u);
  else if (ok && op == OPS_SCATTER)
    ok = check_scatter(&c, u);
  else if (ok && op == OPS_ARANGE)
    ok = check_arange(&c, u);
  else if (ok && op == OPS_BUFFER)
    ok = check_memory(&c, u);
  else if (ok && (op_flags(op) & OPF_KERNEL) && tensor)
    ok = spec_broken(&c, u, "source 0 has a shape");
  bad->node = NULL; /* it was never made */
  mem_free(mem, u);
  return ok;
}

bool spec_node(Check *c, const UOp *u) {
  const OpSpec *s = &specs[u->op];
  bool alu = op_is_alu((Ops)u->op);
  if (!alu && !(s->in >> c->kind & 1))
    return spec_broken(c, u, "%s does not stand in a %s graph", op_name((Ops)u->op),
                       graph_kind_names[c->kind]);
  if (!check_count(c, u)) return false;
  if (c->kind == GRAPH_LINEAR && u->dtype == DT_INDEX) return spec_broken(c, u, "index is not lowered");
  if (c->kind != GRAPH_TENSOR && u->is_tensor) return spec_broken(c, u, "has a shape");
  if (!u->lanes || (c->kind < GRAPH_LOOPS && u->lanes != 1))
    return spec_broken(c, u, "has %d lanes", u->lanes);
  return alu ? check_alu(c, u) : s->check(c, u);
}
