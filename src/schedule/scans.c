/* scans.c: reductions that are done in parts: running reductions of long axes, and the sums of pair_sums.c.
 * In: the roots of a tensor graph. Out: the same values. An axis of many elements and few rows is cut in
 * parts, because parts can be scanned side by side. First the reduction of each part is computed. A scan of
 * these results gives what is before each part, and the first element of the part is combined with that. All
 * of this is carried in the dtype of the registers, so that a result is rounded once, as without parts. The
 * number of parts depends on the shape alone. */
#include "schedule/stage.h"
#include "uop/nodes.h"

/* 64 parts are enough for the cores and lanes of a CPU. A longer axis has parts of about 4096 elements,
 * because a GPU has more cores. */
enum { SCAN_LONG = 8192, SCAN_PARTS = 64, SCAN_MOST_PARTS = 2048, SCAN_PART = 4096, SCAN_FEWER = 4 };

/* The number of parts that an axis is cut in; below 2: it stays whole. Parts of equal length need no copy, so
 * fewer equal parts are preferred to more unequal parts. */
static int64_t parts_of_scan(UOpStore *st, const UOp *scan) {
  const Ints *s = scan->shape;
  int axis = (int)scan->arg.reduce.axes->v[0];
  int64_t n = s->v[axis];
  if (dim_symbolic(n) || n < SCAN_LONG || s->n == MAX_RANK) return 1;
  int64_t most = TG_MIN(TG_MAX(n / SCAN_PART, SCAN_PARTS), SCAN_MOST_PARTS);
  for (int i = 0; i < s->n; i++)
    if (i != axis) most /= TG_MAX(dim_max(st, s->v[i]), 1);
  for (int64_t p = most; p > most / SCAN_FEWER; p--)
    if (n % p == 0) return p;
  return most;
}

/* Places begin .. end of one axis. */
static UOp *part_of_axis(UOpStore *st, UOp *u, int axis, int64_t begin, int64_t end) {
  int64_t be[2 * MAX_RANK];
  for (int i = 0; u && i < u->shape->n; i++) {
    be[2 * i] = i == axis ? begin : 0;
    be[2 * i + 1] = i == axis ? end : u->shape->v[i];
  }
  return u_shrink(st, u, be);
}

UOp *axis_in_parts(UOpStore *st, UOp *u, int axis, int64_t parts, int64_t len) {
  int64_t lohi[2 * MAX_RANK] = {0}, d[MAX_RANK];
  if (!u) return NULL;
  lohi[2 * axis + 1] = parts * len - u->shape->v[axis];
  for (int i = 0, o = 0; i < u->shape->n; i++) {
    if (i == axis) d[o++] = parts;
    d[o++] = i == axis ? len : u->shape->v[i];
  }
  return u_reshape(st, u_pad(st, u, lohi), u->shape->n + 1, d);
}

UOp *was_given(Sched *s, UOp *now, UOp *was) {
  bool same = now == was || !now;
  return same || uop_map_get(s->given, now) || uop_map_put(s->st, s->given, now, was) ? now : NULL;
}

/* The reduction of all that is before each part, at every place of the part. u: (.., parts, len, ..). Before
 * the first part it is 0. */
static UOp *before_parts(Sched *s, Ops op, UOp *u, int axis, UOp *given) {
  UOpStore *st = s->st;
  int64_t lohi[2 * MAX_RANK] = {0};
  bool mask[MAX_RANK] = {false};
  mask[axis + 1] = true;
  lohi[2 * axis] = 1;
  /* the last part is before no other part */
  UOp *whole = part_of_axis(st, u, axis, 0, u->shape->v[axis] - 1);
  UOp *each = was_given(s, u_reduce(st, op, whole, mask), given);
  UOp *upto = was_given(s, u_scan_axis(st, op, each, (DType)u->dtype, axis), given),
      *before = u_pad(st, upto, lohi);
  return before ? u_expand(st, before, u->shape->v) : NULL;
}

static UOp *scan_in_parts(Sched *s, UOp *scan, int64_t parts, UOp *given) {
  UOpStore *st = s->st;
  Ops op = (Ops)scan->arg.reduce.op;
  int axis = (int)scan->arg.reduce.axes->v[0];
  int64_t n = scan->shape->v[axis], len = (n + parts - 1) / parts, d[MAX_RANK];
  parts = (n + len - 1) / len;
  DType wide = target_running(s->opt->target, op, (DType)scan->src[0]->dtype);
  UOp *u = axis_in_parts(st, uop_cast(st, scan->src[0], wide), axis, parts, len);
  UOp *before = u ? before_parts(s, op, u, axis, given) : NULL;
  if (!before) return NULL;
  UOp *part = u_arange(st, u->shape, axis, DT_I32), *place = u_arange(st, u->shape, axis + 1, DT_I64);
  UOp *later = uop_alu2(st, OPS_CMPNE, part, u_num(st, 0, part));
  UOp *first = uop_alu2(st, OPS_AND, later, uop_alu2(st, OPS_CMPEQ, place, u_num(st, 0, place)));
  u = uop_where(st, first, uop_alu2(st, op, before, u), u);
  u = was_given(s, u_scan_axis(st, op, u, (DType)scan->dtype, axis + 1), given);
  for (int i = 0; i < scan->shape->n; i++)
    d[i] = i == axis ? parts * len : scan->shape->v[i];
  return part_of_axis(st, u_reshape(st, u, scan->shape->n, d), axis, 0, n);
}

static bool is_split(Sched *s, const UOp *u) {
  return (u->op == OPS_SCAN_AXIS && parts_of_scan(s->st, u) > 1) || is_pair_sum(s, u);
}

bool split_reductions(Sched *s, UOp **roots, int nroots) {
  UOpStore *st = s->st;
  UOpVec order = {0};
  bool ok = uop_toposort(st, s->mem, roots, (size_t)nroots, &order), any = false;
  for (size_t i = 0; ok && i < order.len && !any; i++)
    any = is_split(s, order.at[i]);
  if (!ok || !any) return vec_free(s->mem, &order), ok;
  UOpMap *now = uop_map_begin(st, st);
  s->given = now ? uop_map_begin(st, st) : NULL;
  ok = s->given != NULL;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *v = uop_mapped(st, s->mem, u, now);
    if (!v || !is_split(s, v))
      v = was_given(s, v, u);
    else
      v = v->op == OPS_SCAN_AXIS ? scan_in_parts(s, v, parts_of_scan(st, v), u) : pair_sum(s, v, u);
    ok = uop_map_put(st, now, u, v);
  }
  for (int i = 0; ok && i < nroots; i++)
    roots[i] = uop_map_get(now, roots[i]);
  uop_map_end(st, now), vec_free(s->mem, &order);
  return ok;
}
