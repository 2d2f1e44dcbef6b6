/* concat.c: a value with parts that are values of their own, such as a concatenation. In: a store that is
 * about to be built. Out: the stores that are left if parts that have memory are computed in their place
 * in the whole, so that nothing copies them. This is how each step of an LSTM writes its row of the
 * output.
 *
 *   STORE(y[r], WHERE(r < 64, a[r], WHERE(r < 128, b[r - 64], c)))     r: 192
 *
 * If a is at y[0] and b is at y[64], 64 iterations are left: those from 128 on, which store c. */
#include "schedule/stage.h"

enum { MOST_NESTED = 16 };

typedef struct Box {
  int64_t from[2 * MAX_RANK], to[2 * MAX_RANK]; /* iterations of each loop */
} Box;

/* A place as a function of the loops: the sum of by[r] * r, plus rest. */
typedef struct Affine {
  int64_t by[2 * MAX_RANK], rest;
} Affine;

typedef struct Piece {
  Segment part;
  Box box;
} Piece;

typedef struct Concat {
  Sched *s;
  const Store *store;
  Affine place;
  Vec(Piece) pieces;
  Box left[MOST_LEFT]; /* boxes around all that is in no piece */
  int nleft;
  UOp *common[2 * MAX_RANK]; /* new loops that all remaining stores share; NULL: not made yet */
} Concat;

/* Adds `times` * e. Returns false if e is not affine in the loops. */
static bool affine_add(const Store *s, const UOp *e, int64_t times, Affine *out) {
  if (e->op == OPS_ADD) return affine_add(s, e->src[0], times, out) && affine_add(s, e->src[1], times, out);
  int64_t n = times;
  if (e->op == OPS_MUL && is_const(e->src[1]))
    return !__builtin_mul_overflow(times, e->src[1]->arg.v.i, &n) && affine_add(s, e->src[0], n, out);
  if (is_const(e))
    return !__builtin_mul_overflow(times, e->arg.v.i, &n) &&
           !__builtin_add_overflow(out->rest, n, &out->rest);
  for (int r = 0; r < s->nrange; r++)
    if (s->range[r] == e) return !__builtin_add_overflow(out->by[r], times, &out->by[r]);
  return false;
}

/* The element of its memory that an INDEX without a gate reads. Returns false if it is not affine. */
static bool place_of(const Store *s, const UOp *index, Affine *out) {
  const UOp *memory = index->op == OPS_INDEX && !index->arg.i ? index->src[0] : NULL;
  int64_t stride = 1;
  *out = (Affine){.rest = 0};
  if (!memory || memory->op != OPS_PARAM) return false;
  for (int d = TG_MAX(memory->nsrc, 1) - 1; d >= 0; d--) {
    if (!affine_add(s, index->src[1 + d], stride, out)) return false;
    if (d && !is_const(memory->src[d])) return false;
    stride *= d ? memory->src[d]->arg.v.i : 1;
  }
  return true;
}

/* ---- conditions */
/* A condition on loop r: `r < at`, or `r >= at` if less is false. */
typedef struct Bound {
  int r;
  int64_t at;
  bool less;
} Bound;

static bool bound_of(const Store *s, const UOp *u, Bound *out) {
  bool holds = true;
  for (; u->op == OPS_CMPNE && is_const_int(u->src[1], 1); u = u->src[0])
    holds = !holds;
  Affine a = {.rest = 0};
  if (u->op != OPS_CMPLT || u->src[0]->dtype != DT_INDEX) return false;
  bool turned = is_const(u->src[0]); /* c < e */
  const UOp *e = u->src[turned], *c = u->src[!turned];
  if (!is_const(c) || !affine_add(s, e, 1, &a)) return false;
  *out = (Bound){-1, c->arg.v.i - a.rest + turned, holds != turned};
  for (int r = 0; r < s->nrange; r++) {
    if (a.by[r] && (a.by[r] != 1 || out->r >= 0)) return false;
    if (a.by[r]) out->r = r;
  }
  return out->r >= 0;
}

typedef enum { HOLDS, FAILS, SPLITS, UNKNOWN } Asked;

/* Whether u holds or fails in all of box b. SPLITS: bound *by cuts the box. */
static Asked asked(const Store *s, const UOp *u, const Box *b, Bound *by) {
  if (u->op == OPS_AND) {
    Asked x = asked(s, u->src[0], b, by);
    return x == HOLDS ? asked(s, u->src[1], b, by) : x;
  }
  if (!bound_of(s, u, by)) return UNKNOWN;
  if (by->at <= b->from[by->r]) return by->less ? FAILS : HOLDS;
  if (by->at >= b->to[by->r]) return by->less ? HOLDS : FAILS;
  return SPLITS;
}

/* ---- pieces */
static int64_t box_size(const Store *s, const Box *b) {
  int64_t n = 1;
  for (int r = 0; r < s->nrange; r++)
    n *= b->to[r] - b->from[r];
  return n;
}

/* Whether a box of the whole is all of a memory, in order. *out: that memory and its place in the whole. */
static bool is_part(const Concat *c, const UOp *u, const Box *b, Segment *out) {
  const Store *s = c->store;
  Affine a;
  if (u->dtype != s->place->dtype || !place_of(s, u, &a)) return false;
  int64_t first = a.rest, last = a.rest, whole = c->place.rest;
  for (int r = 0; r < s->nrange; r++) {
    if (b->to[r] - b->from[r] > 1 && a.by[r] != c->place.by[r]) return false;
    if (a.by[r] < 0) return false;
    first += a.by[r] * b->from[r];
    last += a.by[r] * (b->to[r] - 1);
    whole += c->place.by[r] * b->from[r];
  }
  *out = (Segment){u->src[0]->arg.param.slot, whole - first};
  return first == 0 && last == u->src[0]->arg.param.nelem - 1 && last + 1 == box_size(s, b);
}

/* Adds a box to what is left. If there is no room, the last box is extended around both. */
static void left_add(Concat *c, const Box *b) {
  if (c->nleft < MOST_LEFT) {
    c->left[c->nleft++] = *b;
    return;
  }
  Box *last = &c->left[MOST_LEFT - 1];
  for (int r = 0; r < c->store->nrange; r++) {
    last->from[r] = TG_MIN(last->from[r], b->from[r]);
    last->to[r] = TG_MAX(last->to[r], b->to[r]);
  }
}

static bool pieces_found(Concat *c, const UOp *u, Box b, int depth) {
  Bound by;
  for (Asked a; u->op == OPS_WHERE; u = u->src[a == HOLDS ? 1 : 2]) {
    while ((a = asked(c->store, u->src[0], &b, &by)) == SPLITS && depth < MOST_NESTED) {
      Box below = b;
      below.to[by.r] = b.from[by.r] = by.at;
      if (!pieces_found(c, u, below, depth + 1)) return false;
    }
    if (a != HOLDS && a != FAILS) break;
  }
  Piece p = {.box = b};
  if (is_part(c, u, &b, &p.part)) return vec_push(c->s->mem, &c->pieces, p);
  left_add(c, &b);
  return true;
}

static bool meets_left(const Concat *c, const Box *b) {
  bool any = false;
  for (int i = 0; i < c->nleft && !any; i++) {
    any = true;
    for (int r = 0; r < c->store->nrange; r++)
      any = any && b->from[r] < c->left[i].to[r] && c->left[i].from[r] < b->to[r];
  }
  return any;
}

/* Whether this scan has not met the memory before. */
static bool is_new(Sched *s, int64_t slot, bool *ok) {
  uint64_t last = 0;
  bool had = map_get(&s->scanned, (uint64_t)slot, &last) && last == s->scans;
  if (!had) *ok = *ok && map_put(&s->scanned, (uint64_t)slot, s->scans);
  return !had;
}

/* Drops pieces that must be copied: those that overlap a box that is left, that `may` refuses, or whose
 * memory is in another piece. Each adds a box, so this is repeated until nothing changes. */
static bool pieces_kept(Concat *c, bool (*may)(void *user, const Segment *p), void *user) {
  bool ok = true;
  for (bool changed = true; ok && changed;) {
    size_t n = 0, had = c->pieces.len;
    c->s->scans++;
    for (size_t i = 0; ok && i < had; i++) {
      const Piece *p = &c->pieces.at[i];
      if (!meets_left(c, &p->box) && may(user, &p->part) && is_new(c->s, p->part.slot, &ok))
        c->pieces.at[n++] = *p;
      else
        left_add(c, &p->box);
    }
    c->pieces.len = n;
    changed = n < had;
  }
  return ok;
}

/* Makes loop r run over the iterations of a box. *now: a loop from 0 on; NULL: one iteration. *out: the
 * iteration as an expression of it. A loop that all remaining stores have in common stays one of the grid. */
static bool loop_left(Concat *c, int r, const Box *left, UOp **now, UOp **out) {
  UOpStore *st = c->s->st;
  UOp *was = c->store->range[r], *begin = uop_index_const(st, left->from[r]);
  int64_t trips = left->to[r] - left->from[r];
  bool alike = true;
  for (int i = 0; i < c->nleft; i++)
    alike = alike && c->left[i].from[r] == left->from[r] && c->left[i].to[r] == left->to[r];
  AxisType type = alike ? (AxisType)was->arg.range.type : AXIS_LOOP;
  *now = trips == 1 ? NULL : was;
  if (trips > 1 && !(alike && trips == range_extent(was))) {
    if (!alike || !c->common[r])
      *now = uop_range_of(st, uop_index_const(st, trips), c->s->next_range++, type);
    if (alike && c->common[r]) *now = c->common[r];
    if (alike) c->common[r] = *now;
    if (!*now) return false;
  }
  *out = *now ? uop_alu2(st, OPS_ADD, *now, begin) : begin;
  return *out != NULL;
}

/* The store of the iterations of a box. */
static bool store_left(Concat *c, const Box *left, Store *out) {
  Sched *s = c->s;
  const Store *own = c->store;
  UOp *to[2 * MAX_RANK], *all[2] = {own->place, own->value}, *now[2 * MAX_RANK];
  *out = (Store){.nrange = 0};
  for (int r = 0; r < own->nrange; r++)
    if (!loop_left(c, r, left, &now[r], &to[r])) return false;
  for (int grid = 1; grid >= 0; grid--) /* loops of the grid are the outer ones */
    for (int r = 0; r < own->nrange; r++)
      if (now[r] && (now[r]->arg.range.type == AXIS_GLOBAL) == grid) out->range[out->nrange++] = now[r];
  for (int i = 0; i < 2; i++) {
    all[i] = uop_substitute(s->st, s->mem, all[i], own->nrange, own->range, to);
    if (!all[i] || !(all[i] = uop_simplify(s->st, s->mem, all[i]))) return false;
  }
  out->place = all[0];
  out->value = all[1];
  return true;
}

int concat_parts(Sched *s, const Store *store, bool (*may)(void *user, const Segment *p),
                 void (*joined)(void *user, const Segment *p), void *user, Store left[MOST_LEFT]) {
  left[0] = *store;
  if (store->value->op != OPS_WHERE) return 1;
  Concat c = {.s = s, .store = store};
  Box all = {{0}, {0}};
  bool fits = place_of(store, store->place, &c.place), ok = true;
  for (int r = 0; fits && r < store->nrange; r++) {
    fits = is_counted(store->range[r]) && c.place.by[r] > 0;
    all.to[r] = range_extent(store->range[r]);
  }
  if (fits) ok = pieces_found(&c, store->value, all, 0);
  if (ok) ok = pieces_kept(&c, may, user);
  for (int i = 0; i < c.nleft; i++) /* a loop shared with other stores stays as it is */
    for (int r = 0; r < store->nshared; r++)
      if (c.left[i].from[r] != 0 || c.left[i].to[r] != all.to[r]) c.pieces.len = 0;
  for (size_t i = 0; ok && i < c.pieces.len; i++)
    joined(user, &c.pieces.at[i].part);
  for (int i = 0; ok && c.pieces.len && i < c.nleft; i++)
    ok = store_left(&c, &c.left[i], &left[i]);
  if (!c.pieces.len) c.nleft = 1; /* the whole store */
  vec_free(s->mem, &c.pieces);
  return ok ? c.nleft : -1;
}

/* ---- after all kernels are built */
static void temps_used(Schedule *out) {
  for (int t = 0; t < out->ntemp; t++)
    out->temp[t].first = -1;
  for (int k = 0; k < out->nkernel; k++) {
    const SchedKernel *sk = &out->kernel[k];
    for (int a = 0; a < sk->narg; a++) {
      SchedTemp *t = sk->arg[a] < TEMP_BASE ? NULL : &out->temp[sk->arg[a] - TEMP_BASE];
      if (t && t->first < 0) t->first = k;
      if (t) t->last = k;
    }
    for (int i = 0; i < sk->ast->nsrc; i++) {
      int64_t id = sk->arg[sk->ast->src[i]->src[0]->src[0]->arg.param.slot];
      if (id >= TEMP_BASE) out->temp[id - TEMP_BASE].made = k;
    }
  }
}

/* A kernel's arguments that are parts become the whole, with an offset. */
static bool arguments_joined(Schedule *out, SchedKernel *sk) {
  bool any = false;
  for (int a = 0; a < sk->narg; a++)
    any |= sk->arg[a] >= TEMP_BASE && out->temp[sk->arg[a] - TEMP_BASE].in;
  int64_t *offset = any ? arena_array(&out->arena, int64_t, sk->narg) : sk->offset;
  for (int a = 0; any && offset && a < sk->narg; a++) {
    offset[a] = sk->offset[a];
    while (sk->arg[a] >= TEMP_BASE && out->temp[sk->arg[a] - TEMP_BASE].in) {
      const SchedTemp *t = &out->temp[sk->arg[a] - TEMP_BASE];
      offset[a] += t->at * (int64_t)dtype_size(t->dtype);
      sk->arg[a] = TEMP_BASE + t->in - 1;
    }
  }
  sk->offset = offset;
  return offset != NULL;
}

/* Numbers temporaries in the order of their first use, without parts. */
static bool temps_numbered(Sched *s, Schedule *out) {
  int *number = mem_alloc(s->mem, ((size_t)out->ntemp + 1) * sizeof *number), n = 0;
  SchedTemp *temp = arena_array(&out->arena, SchedTemp, out->ntemp + 1);
  bool ok = number && temp;
  for (int t = 0; ok && t < out->ntemp; t++)
    number[t] = -1;
  for (int k = 0; ok && k < out->nkernel; k++)
    for (int a = 0; a < out->kernel[k].narg; a++) {
      int64_t *id = &out->kernel[k].arg[a];
      if (*id < TEMP_BASE) continue;
      int t = (int)(*id - TEMP_BASE);
      if (number[t] < 0) temp[number[t] = n++] = out->temp[t];
      *id = TEMP_BASE + number[t];
    }
  for (int t = 0; ok && t < out->ntemp; t++)
    if (number[t] < 0 && !out->temp[t].in) temp[number[t] = n++] = out->temp[t];
  for (int r = 0; ok && r < out->nroot; r++)
    if (out->root[r] >= TEMP_BASE) out->root[r] = TEMP_BASE + number[out->root[r] - TEMP_BASE];
  if (ok) out->temp = temp, out->ntemp = n;
  mem_free(s->mem, number);
  return ok;
}

bool parts_joined(Sched *s, Schedule *out) {
  bool any = false, ok = true;
  for (int t = 0; t < out->ntemp; t++)
    any |= out->temp[t].in > 0;
  for (int k = 0; any && ok && k < out->nkernel; k++)
    ok = arguments_joined(out, &out->kernel[k]);
  if (any && ok) ok = temps_numbered(s, out);
  if (ok) temps_used(out);
  return ok;
}
