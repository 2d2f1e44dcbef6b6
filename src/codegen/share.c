/* share.c: STAGE on a GPU. The copy is shared memory, which all threads of a block fill. In: the reads of a
 * buffer (stage.c). Out: the layout of the copy, and one loop over all of its elements, LOCAL `of block`. Its
 * iterations are distributed to the threads, however many there are (gpu.c). Neighbouring elements of the
 * buffer are given to neighbouring threads.
 *
 * The fill has no branches: an element that fails the gate, or is past the end of the buffer, is a gated
 * load, which gives 0.
 *
 * Elements are in the order of the buffer, unless a register tile is along another axis. That axis then
 * becomes the last one, so that the values of a tile are one load. Shared memory has as many banks as a warp
 * has threads, each one word wide. If threads, or the fill, move along another axis than the last, each row
 * begins one bank further than the end of the row before, or one vector further if loads must stay
 * aligned. */
#include "codegen/share.h"
#include "uop/matrix.h"

enum { BANK_BYTES = 4, WIDEST_LOAD = 4 }; /* lanes */

/* The last iteration of a loop of n iterations, a part of loop `root`, after the opts from number i on have
 * padded it. */
static int64_t last_iter(const Kernel *k, int64_t root, bool grid, int64_t n, size_t i) {
  for (; i < k->list.len; i++) {
    const Opt *o = &k->list.at[i];
    int64_t rows, columns;
    bool unit = (o->op == OPT_TC || o->op == OPT_TC4) && (o->r == root || o->n == root);
    if (unit && matrix_sides(k, o->op, &rows, &columns)) {
      int64_t side = o->r == root ? rows : columns;
      return last_iter(k, root, grid, (n + side - 1) / side, i + 1) * side + side - 1;
    }
    bool threads = o->op == OPT_LOCAL || o->op == OPT_GROUP;
    bool tiles = grid && (o->op == OPT_UPCAST || o->op == OPT_VEC), blocks = grid && o->op == OPT_TILE;
    if (o->r != root || !(threads || tiles || blocks)) continue;
    int64_t size = threads ? TG_MIN(o->n, INT32_MAX) : TG_MIN(o->n, n), many = (n + size - 1) / size;
    if (blocks) return (many - 1) * size + last_iter(k, root, grid, size, i + 1);
    return last_iter(k, root, grid, many, i + 1) * size + size - 1;
  }
  return n - 1;
}

UOp *share_padded(Kernel *k, UOp *r) {
  if (!is_const(r->src[0]) || r->src[0]->arg.v.i > INT32_MAX) return r;
  bool grid = r->arg.range.type == AXIS_GLOBAL;
  int64_t n = last_iter(k, range_root(r), grid, r->src[0]->arg.v.i, k->ndone) + 1;
  return n == r->src[0]->arg.v.i ? r : kernel_range(k, num(k, n), (AxisType)r->arg.range.type, r);
}

/* The axis that is the loop of a coming register tile, and its tile size; lanes before other tiles. -1:
 * none. */
static int tile_axis(Staged *s, int64_t *tile) {
  static const OptOp ops[] = {OPT_VEC, OPT_UPCAST};
  for (size_t o = 0; o < TG_COUNT(ops); o++)
    for (size_t i = 0; i < s->k->list.len; i++) {
      const Opt *opt = &s->k->list.at[i];
      UOp *r = opt->op == ops[o] && opt->n > 1 ? staged_range(s, opt->r) : NULL;
      for (int d = 0; r && d < s->naxis; d++)
        if (s->axis[d].span > 1 && staged_along(s, d, r, opt->n)) return *tile = opt->n, d;
    }
  return -1;
}

static int axis_along(Staged *s, UOp *r) {
  for (int d = 0; r && d < s->naxis; d++)
    if (s->axis[d].span > 1 && staged_along(s, d, r, INT64_MAX)) return d;
  return -1;
}

static int last_wide(const Staged *s) { /* the last axis with more than one element */
  int d = s->naxis - 1;
  while (d > 0 && s->axis[d].span == 1)
    d--;
  return d;
}

/* The last axis of the buffer, if only a loop of the unit's results moves it. Fragments are transposed when
 * they are read, so the copy need not be. -1: it is another axis. */
static int turned_axis(Staged *s, const Opt *units) {
  int d = last_wide(s);
  bool fits = s->k->ren->has_rows && dtype_size((DType)s->param->dtype) == 2;
  fits = fits &&
         (d == axis_along(s, staged_range(s, units->r)) || d == axis_along(s, staged_range(s, units->n)));
  return fits ? d : -1;
}

/* The axis along which the elements of a fragment are neighbours: the axis of the depth, or of the columns if
 * the unit takes b by rows, or the buffer's last axis if the operand can be transposed. -1: none. */
static int fragment_axis(Staged *s) {
  UOp *depth = NULL;
  const Opt *units = NULL;
  for (size_t i = 0; i < s->k->list.len; i++)
    if (s->k->list.at[i].op == OPT_TC) units = &s->k->list.at[i];
  int columns = units ? axis_along(s, staged_range(s, units->n)) : -1;
  if (columns >= 0 && matrix_b_by_rows(s->k)) return columns;
  if (units && turned_axis(s, units) >= 0) return turned_axis(s, units);
  for (size_t i = 0; units && i < s->inside.len; i++) {
    UOp *r = s->inside.at[i];
    bool sums = r->arg.range.type == AXIS_REDUCE && is_const(r->src[0]);
    if (sums && (!depth || r->src[0]->arg.v.i > depth->src[0]->arg.v.i)) depth = r;
  }
  return axis_along(s, depth);
}

/* Whether later opts put threads along axis d. */
static bool has_threads(Staged *s, int d) {
  for (size_t i = 0; i < s->k->list.len; i++) {
    const Opt *opt = &s->k->list.at[i];
    const UOp *r = opt->op == OPT_LOCAL ? staged_range(s, opt->r) : NULL;
    for (size_t x = 0; r && x < s->reads.len; x++)
      if (depends(s->k, s->reads.at[x]->src[1 + d], r)) return true;
  }
  return false;
}

static int64_t padding(Staged *s, int last, int tiled, int64_t tile) {
  int64_t size = (int64_t)dtype_size((DType)s->param->dtype);
  /* eight rows must use eight different sets of banks, so a row is an odd number of sets */
  if (last == fragment_axis(s)) {
    int64_t set = TG_MAX(s->k->ren->vec_align / size, 1), sets = (s->axis[last].span + set - 1) / set;
    return s->k->ren->has_rows ? (sets | 1) * set - s->axis[last].span : set;
  }
  int64_t vector = TG_MIN(s->k->ren->vec_bytes / size, WIDEST_LOAD);
  bool across = last != last_wide(s);
  for (int d = 0; d < s->naxis; d++)
    across |= d != last && s->axis[d].span > 1 && has_threads(s, d);
  if (!across) return 0;
  return last == tiled && vector && tile % vector == 0 ? vector : TG_MAX(BANK_BYTES / size, 1);
}

static const Opt *groups_of(const Staged *s) { /* the TC4 of the list, or NULL */
  for (size_t i = 0; i < s->k->list.len; i++)
    if (s->k->list.at[i].op == OPT_TC4) return &s->k->list.at[i];
  return NULL;
}

/* ---- lines, in the layout of matrix.h: the last axis in lines, all other axes one after another */
enum { COPY_LINE = 64, COPY_CHUNK = 8 };

static bool lay_out_lines(Staged *s, const Opt *groups) {
  int last = last_wide(s);
  bool turned =
      last == axis_along(s, staged_range(s, groups->r)) || last == axis_along(s, staged_range(s, groups->n));
  s->nline = 1;
  for (int d = s->naxis - 1; d >= 0; d--) {
    s->axis[d].place = d == last ? 1 : s->nline;
    if (d != last && __builtin_mul_overflow(s->nline, s->axis[d].span, &s->nline)) s->nline = INT64_MAX;
  }
  bool fits = dtype_size((DType)s->param->dtype) == 2 && s->axis[last].span % COPY_LINE == 0;
  fits = fits && (turned ? s->nline == COPY_LINE : s->nline % MATRIX_LINES == 0) && s->nline < INT32_MAX;
  s->lane_axis = -1;
  s->lines = true;
  if (!fits || __builtin_mul_overflow(s->nline, s->axis[last].span, &s->nelem))
    s->why = "its copy is no lines of 64 that units of four warps read";
  return !s->why;
}

UOp *share_line(Staged *s, UOp *const *at) {
  Kernel *k = s->k;
  int last = last_wide(s);
  UOp *line = num(k, 0);
  for (int d = 0; d < s->naxis; d++)
    if (d != last) line = ix(k, OPS_ADD, line, ix(k, OPS_MUL, at[d], num(k, s->axis[d].place)));
  UOp *chunk =
      ix(k, OPS_FLOORMOD, ix(k, OPS_FLOORDIV, at[last], num(k, COPY_CHUNK)), num(k, COPY_LINE / COPY_CHUNK));
  chunk = ix(k, OPS_XOR, chunk, ix(k, OPS_FLOORMOD, line, num(k, MATRIX_LINES)));
  UOp *block = ix(k, OPS_FLOORDIV, at[last], num(k, COPY_LINE));
  line = ix(k, OPS_ADD, ix(k, OPS_MUL, block, num(k, s->nline)), line);
  UOp *first =
      ix(k, OPS_ADD, ix(k, OPS_MUL, line, num(k, COPY_LINE)), ix(k, OPS_MUL, chunk, num(k, COPY_CHUNK)));
  return ix(k, OPS_ADD, first, ix(k, OPS_FLOORMOD, at[last], num(k, COPY_CHUNK)));
}

static bool lay_out(Staged *s) {
  int64_t tile = 1;
  int fragment = fragment_axis(s), tiled = fragment >= 0 ? fragment : tile_axis(s, &tile);
  int last = tiled >= 0 ? tiled : last_wide(s);
  s->lane_axis = -1;
  s->axis[last].place = 1;
  int64_t place = s->axis[last].span, all = place;
  for (int d = 0; d < s->naxis; d++)
    if (d != last && __builtin_mul_overflow(all, s->axis[d].span, &all)) all = INT64_MAX;
  if (all == 1) return s->why = "one element is no copy", false;
  if (all > place) place += padding(s, last, tiled, tile);
  for (int d = s->naxis - 1; d >= 0; d--) {
    if (d == last) continue;
    s->axis[d].place = place;
    if (__builtin_mul_overflow(place, s->axis[d].span, &place)) place = INT64_MAX;
  }
  s->nelem = place;
  return true;
}

bool share_lay_out(Staged *s) {
  const Opt *groups = groups_of(s);
  int64_t size = (int64_t)dtype_size((DType)s->param->dtype);
  if (!(groups ? lay_out_lines(s, groups) : lay_out(s))) return false;
  bool again = s->memory && s->nelem <= s->memory->arg.param.nelem;
  int64_t used = nest_local_bytes(s->k, s->k->sink);
  if (used >= 0 && !again && s->nelem > (s->k->opt->target->local_most - used) / size)
    s->why = "local memory has no room for it";
  return used >= 0 && !s->why;
}

/* ---- the fill */
static UOp *both(Kernel *k, UOp *gate, UOp *more) {
  if (!more || is_const_int(more, 1)) return gate;
  return gate ? uop_alu2(k->st, OPS_AND, gate, more) : more;
}

/* Adds to *gate that the index of axis d is inside its interval. *gate NULL: everywhere. */
static bool gate_of(Staged *s, const Axis *a, UOp *index, UOp **gate) {
  Kernel *k = s->k;
  if (!a->clip) return true;
  UOp *below = ix(k, OPS_CMPLT, index, num(k, a->to)), *from = ix(k, OPS_CMPLT, num(k, a->from - 1), index);
  *gate = both(k, both(k, *gate, from), below);
  return below && from;
}

/* Whether elements of an axis that is contiguous in the buffer can be taken n at a time: each group is
 * aligned, and entirely inside or outside the interval. */
static bool in_groups(Staged *s, const Axis *a, int64_t n) {
  bool ok = a->step == 1 && a->span % n == 0 && a->low % n == 0 && uop_is_multiple(a->base, n);
  for (int d = 0; d < s->naxis; d++) /* rows of the buffer must begin at a multiple of n */
    ok = ok && (&s->axis[d] == a || s->axis[d].step % n == 0);
  return ok && (!a->clip || (a->from % n == 0 && a->to % n == 0));
}

/* The axis along which a thread takes several elements at a time, and how many. -1: none. */
static int grouped_axis(Staged *s, int64_t *n) {
  int64_t size = (int64_t)dtype_size((DType)s->param->dtype);
  int64_t most = s->k->ren->vec_bytes / size;
  if (!s->k->ren->has_rows || size != 2) most = TG_MIN(most, WIDEST_LOAD);
  for (*n = most; *n > 1; *n /= 2)
    for (int d = 0; d < s->naxis; d++) {
      bool fits = s->axis[d].span > 1 && in_groups(s, &s->axis[d], *n);
      if (fits && (*n <= WIDEST_LOAD || s->axis[d].place == 1)) return d;
    }
  return -1;
}

UOp *share_fill(Staged *s) {
  Kernel *k = s->k;
  int64_t all = 1, size = 1;
  int grouped = grouped_axis(s, &size);
  for (int d = 0; d < s->naxis; d++)
    all *= s->axis[d].span;
  UOp *iter = kernel_range(k, num(k, all / size), AXIS_LOCAL, NULL), *rest, *to = num(k, 0), *gate = NULL;
  UOp *lane = size > 1 ? kernel_range(k, num(k, size), AXIS_VEC, NULL) : num(k, 0), *along[MAX_AXES];
  if (size > WIDEST_LOAD) lane = range_marked(k, lane, LANES_OF_COPY);
  iter = rest = iter ? range_marked(k, iter, LOCAL_OF_BLOCK) : NULL;
  UOp *src[MAX_AXES + 2] = {s->param};
  bool ok = iter != NULL && lane != NULL;
  for (int d = s->naxis - 1; ok && d >= 0; d--) {
    const Axis *a = &s->axis[d];
    int64_t own = d == grouped ? size : 1;
    UOp *span = num(k, a->span / own), *at = ix(k, OPS_MUL, ix(k, OPS_FLOORMOD, rest, span), num(k, own));
    UOp *first = ix(k, OPS_ADD, ix(k, OPS_ADD, a->base, num(k, a->low)), at);
    rest = ix(k, OPS_FLOORDIV, rest, span);
    if (d == grouped) at = ix(k, OPS_ADD, at, lane);
    to = ix(k, OPS_ADD, to, ix(k, OPS_MUL, at, num(k, a->place)));
    along[d] = at;
    src[1 + d] = d == grouped ? ix(k, OPS_ADD, first, lane) : first;
    ok = src[1 + d] && gate_of(s, a, first, &gate);
  }
  if (ok && s->lines) to = share_line(s, along);
  int n = 1 + s->naxis;
  if (gate) src[n++] = gate;
  DType dt = (DType)s->param->dtype;
  UOp *value = ok ? uop_new(k->st, OPS_INDEX, dt, 1, n, src, (Arg){.i = gate != NULL}) : NULL;
  UOp *place = to ? UNEW(k->st, OPS_INDEX, dt, 1, ARG0, s->memory, to) : NULL;
  UOp *store = value && place ? write_new(k, place, value, size > 1, &lane) : NULL;
  return store ? loop_new(k, iter, 1, &store) : NULL;
}
