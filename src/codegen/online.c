/* online.c: the opt ONLINE. In: reductions over one axis, where the later ones need the result of the first:
 * a maximum, then sums of exponentials minus that maximum, through rows of local memory as long as the axis.
 * Out: one loop over blocks of the axis, with rows as long as a block. Whenever the maximum has grown, the
 * later results are corrected by the change that this makes in each of their terms.
 *
 * Let a be the maximum before a block and b the maximum after it. A sum of f(k, a) becomes a sum of f(k, b)
 * by one multiplication if f(k, b) = f(k, a) * SCALE, where SCALE does not depend on k. A maximum of f
 * becomes the new maximum by one addition if f(k, b) = f(k, a) + SHIFT. rules/rescale.rules derives both. If
 * it finds none, the opt is refused. While only the identity has been seen, a = -inf, and the sum so far is
 * dropped, because it was computed by f from -inf - -inf. (Known difference: a term that is a product with
 * inf or NaN is dropped as well if all its weights so far were 0.)
 *
 * A block in which no step counts changes nothing, so loop_bounds.c may skip it. */
#include "codegen/split.h"
#include "uop/merge.h"

/* A result that is carried from block to block. It is a register, or a row of them if there is one for each
 * iteration of some loops of the row (`nest`). */
typedef struct State {
  UOp *at; /* INDEX of the register */
  Ops op;
  /* the value of a step; the same with each read of a row replaced by what the row holds */
  UOp *value, *closed;
  UOp *nest; /* the outermost of the loops around the sum, or NULL */
  UOp *row;
  bool later;     /* its value needs the leader's result */
  UOp *change;    /* SCALE or SHIFT */
  UOp *statement; /* the statement of the home's body that steps it */
} State;

typedef struct Online {
  Kernel *k;
  const char *why;
  PlaceVec at;
  int home;        /* place of the loop that contains all loops over the axis, or -1: the kernel */
  UOpVec axes;     /* ranges of the loops over the axis */
  UOpVec rows;     /* local memory along the axis, .. */
  UOpVec stored;   /* .. and the value that is written to each row */
  UOpVec accesses; /* INDEXes of rows */
  UOpVec steps;    /* statements of the home that contain loops over the axis */
  Vec(State) states;
  int leader;
  UOp *before; /* INDEX of a register: the leader's value before the block */
} Online;

typedef struct Block { /* one copy of the statements, for a block or for the rest */
  UOp *base, *size;    /* it covers iterations base .. base + size - 1 of the axis */
  UOpVec from, to, loops, ranges;
} Block;

static bool cannot(Online *c, const char *why) {
  c->why = why;
  return false;
}

/* Statement i of the home, counted from 0. NULL: past the last. */
static UOp *body_at(const Online *c, int i) {
  const UOp *home = c->home < 0 ? c->k->sink : c->at.at[c->home].u;
  int first = c->home < 0 ? 0 : 1;
  return first + i < home->nsrc ? home->src[first + i] : NULL;
}

/* ---- which loops and rows belong together */
static UOp *loop_around(const Online *c, int place, const UOp *r) {
  for (int up = place; up >= 0; up = c->at.at[up].up)
    if (c->at.at[up].u->op == OPS_LOOP && c->at.at[up].u->src[0] == r) return c->at.at[up].u;
  return NULL;
}

/* Lists each INDEX of local memory in the statement at a place. */
static bool local_accesses(Online *c, int place, UOpVec *out) {
  UOp *u = c->at.at[place].u;
  UOpVec order = {0};
  out->len = 0;
  if (u->op != OPS_STORE && u->op != OPS_ACC) return true;
  bool ok = uop_toposort(c->k->st, c->k->mem, u->src, 2, &order);
  for (size_t i = 0; ok && i < order.len; i++)
    if (order.at[i]->op == OPS_INDEX && order.at[i]->src[0]->op == OPS_DEFINE_LOCAL)
      ok = vec_push(c->k->mem, out, order.at[i]);
  vec_free(c->k->mem, &order);
  return ok;
}

static bool axis_add(Online *c, UOp *r) {
  if (vec_has(&c->axes, r)) return true;
  if (r->src[0] != c->axes.at[0]->src[0]) return cannot(c, "rows are read along loops of different lengths");
  return vec_push(c->k->mem, &c->axes, r);
}

/* Adds a row along the axis. It may be read and written only at the current iteration of a loop over the
 * axis. */
static bool row_add(Online *c, UOp *x, int place) {
  UOp *m = x->src[0], *r = x->src[1];
  bool ours = vec_has(&c->rows, m), along = r->op == OPS_RANGE && vec_has(&c->axes, r);
  if (!ours && !along) {
    for (size_t i = 0; i < c->axes.len; i++)
      if (depends(c->k, r, c->axes.at[i]))
        return cannot(c, "a row is read at another place than its iteration's");
    return true;
  }
  if (r->op != OPS_RANGE || x->arg.i || !loop_around(c, place, r))
    return cannot(c, "a row is read at another place than its iteration's");
  if (!ours && !vec_push(c->k->mem, &c->rows, m)) return false;
  if (!vec_has(&c->accesses, x) && !vec_push(c->k->mem, &c->accesses, x)) return false;
  return axis_add(c, r);
}

static bool find_axis(Online *c) {
  UOpVec found = {0};
  bool ok = true;
  /* rows lead to more loops, and loops to more rows */
  for (size_t had = 0; ok && had != c->axes.len + c->rows.len;) {
    had = c->axes.len + c->rows.len;
    for (size_t i = 0; ok && i < c->at.len; i++) {
      ok = local_accesses(c, (int)i, &found);
      for (size_t j = 0; ok && j < found.len; j++)
        ok = row_add(c, found.at[j], (int)i);
    }
  }
  vec_free(c->k->mem, &found);
  return ok;
}

static bool is_axis_loop(const Online *c, const UOp *u) {
  return u->op == OPS_LOOP && vec_has(&c->axes, u->src[0]);
}

static bool place_around(const Online *c, int outer, int inner) {
  while (inner >= 0 && inner != outer)
    inner = c->at.at[inner].up;
  return inner == outer;
}

/* Finds the home, the deepest loop that contains all loops over the axis, and the home's statements that
 * contain them. */
static bool find_home(Online *c) {
  bool first = true, ok = true;
  for (size_t i = 0; i < c->at.len; i++) {
    if (!is_axis_loop(c, c->at.at[i].u)) continue;
    if (first) c->home = c->at.at[i].up;
    first = false;
    while (c->home >= 0 && (!place_around(c, c->home, (int)i) || c->home == (int)i))
      c->home = c->at.at[c->home].up;
  }
  for (size_t i = 0; ok && i < c->at.len; i++) {
    int up = (int)i;
    if (!is_axis_loop(c, c->at.at[i].u)) continue;
    for (int above = c->at.at[i].up; above != c->home; above = c->at.at[above].up) {
      up = above;
      if (is_axis_loop(c, c->at.at[above].u)) return cannot(c, "a loop over the axis stands in another");
    }
    UOp *step = c->at.at[up].u;
    if (!vec_has(&c->steps, step)) ok = vec_push(c->k->mem, &c->steps, step);
  }
  return ok;
}

/* ---- what is carried */
static UOp *step_of(const Online *c, int place) { /* the home's statement that contains a place */
  while (c->at.at[place].up != c->home)
    place = c->at.at[place].up;
  return c->at.at[place].u;
}

static bool state_add(Online *c, const UOp *acc, int place, int start) {
  State s = {.at = acc->src[0], .op = (Ops)acc->arg.reduce.op, .value = acc->src[1]};
  s.statement = step_of(c, place);
  for (size_t i = 0; i < c->states.len; i++)
    if (c->states.at[i].at == s.at) return cannot(c, "a result has two statements");
  int up = c->at.at[start].up;
  /* the sum begins in the innermost of a chain of loops, beside the loop over the axis */
  if (up != c->home) {
    s.nest = s.statement;
    for (; up != c->home; up = c->at.at[up].up)
      if (c->at.at[up].up != c->home && c->at.at[c->at.at[up].up].u->nsrc != 2)
        return cannot(c, "something else is computed around a sum");
  }
  return vec_push(c->k->mem, &c->states, s);
}

static bool note(Online *c, int place, UOp *axis) { /* records a statement inside a loop over the axis */
  UOp *u = c->at.at[place].u, *m = stored_in(u);
  int start = place_of_start(&c->at, m);
  if (m->op == OPS_DEFINE_LOCAL && vec_has(&c->rows, m)) {
    for (size_t i = 0; i < c->rows.len; i++)
      if (c->rows.at[i] == m) c->stored.at[i] = u->src[1];
    return u->src[0]->src[1] == axis;
  }
  if (m->op != OPS_DEFINE_REG) return cannot(c, "it writes memory in a loop over the axis");
  bool own = start >= 0 && loop_around(c, start, axis);
  if (own || u->op != OPS_ACC) return own || cannot(c, "a loop over the axis writes a register");
  return start >= 0 && state_add(c, u, place, start);
}

/* Whether u begins a register. Such statements of the home may be moved from between the steps to before
 * them. */
static bool is_start(const UOp *u) {
  return u->op == OPS_STORE && stored_in(u)->op == OPS_DEFINE_REG && is_const(u->src[1]);
}

/* The innermost loop of a chain of loops that ends at a loop over the axis. */
static UOp *around_axis(const Online *c, UOp *u) {
  while (!is_axis_loop(c, u) && alone(u))
    u = alone(u);
  return u;
}

/* Checks the other statements of a step: registers may begin before the loops over the axis, and values made
 * from the sums may follow them, but nothing may be computed between them. */
static bool plain_step(Online *c, UOp *step) {
  UOp *u = around_axis(c, step);
  if (is_axis_loop(c, u)) return u == step || cannot(c, "no sum begins around a loop over the axis");
  int phase = 0;
  for (int i = 1; i < u->nsrc; i++) {
    int now = is_axis_loop(c, u->src[i]) ? 1 : is_start(u->src[i]) && phase == 0 ? 0 : 2;
    if (now < phase) return cannot(c, "something is computed between loops over the axis");
    phase = now;
  }
  return true;
}

static bool find_states(Online *c) {
  bool ok = true;
  for (size_t i = 0; ok && i < c->rows.len; i++)
    ok = vec_push(c->k->mem, &c->stored, NULL);
  for (size_t i = 0; ok && i < c->steps.len; i++)
    ok = plain_step(c, c->steps.at[i]);
  for (size_t i = 0; ok && i < c->at.len; i++) {
    const UOp *u = c->at.at[i].u;
    UOp *axis = NULL;
    for (int up = (int)i; up >= 0 && !axis; up = c->at.at[up].up)
      if (is_axis_loop(c, c->at.at[up].u)) axis = c->at.at[up].u->src[0];
    if (axis && u->op != OPS_LOOP) ok = note(c, (int)i, axis);
  }
  for (size_t i = 0; ok && i < c->rows.len; i++)
    if (!c->stored.at[i]) ok = cannot(c, "a row is filled elsewhere");
  return ok;
}

/* ---- how values change with the leader */
static UOp *leader(const Online *c) { return c->states.at[c->leader].at; }

/* x with each read of a row replaced by what was written to the row. All loops over the axis become the one
 * range r. */
static UOp *closed(Online *c, UOp *x, UOp *r) {
  Kernel *k = c->k;
  UOpVec order = {0}, from = {0}, to = {0};
  bool ok = true, again = true;
  while (ok && again) {
    from.len = to.len = order.len = 0;
    ok = kernel_nodes(k, x, &order);
    for (size_t i = 0; ok && i < order.len; i++)
      for (size_t m = 0; ok && m < c->rows.len; m++)
        if (order.at[i]->op == OPS_INDEX && order.at[i]->src[0] == c->rows.at[m])
          ok = vec_push(k->mem, &from, order.at[i]) && vec_push(k->mem, &to, c->stored.at[m]);
    again = from.len > 0;
    if (ok && again) ok = (x = kernel_with(k, x, (int)from.len, from.at, to.at)) != NULL;
  }
  from.len = to.len = 0;
  for (size_t i = 0; ok && i < c->axes.len; i++)
    ok = vec_push(k->mem, &from, c->axes.at[i]) && vec_push(k->mem, &to, r);
  if (ok) x = kernel_with(k, x, (int)from.len, from.at, to.at);
  vec_free(k->mem, &order), vec_free(k->mem, &from), vec_free(k->mem, &to);
  return ok ? x : NULL;
}

static bool find_leader(Online *c) {
  c->leader = -1;
  for (size_t i = 0; i < c->states.len; i++) {
    State *s = &c->states.at[i];
    int needs = -1;
    if (!(s->closed = closed(c, s->value, c->axes.at[0]))) return false;
    for (size_t j = 0; j < c->states.len; j++) {
      if (!uses(s->closed, c->states.at[j].at)) continue;
      if (needs >= 0) return cannot(c, "a result needs two others");
      needs = (int)j;
    }
    if (needs < 0) continue;
    if (c->leader >= 0 && c->leader != needs) return cannot(c, "results need different others");
    c->leader = needs;
    s->later = true;
  }
  if (c->leader < 0) return cannot(c, "no reduction needs the result of another");
  const State *l = &c->states.at[c->leader];
  if (l->later || l->nest || l->op != OPS_MAX || !dtype_is_float((DType)l->at->dtype))
    return cannot(c, "the result that others need is no maximum of the row");
  return true;
}

/* Whether a change is known at the end of a block: it depends on no loop of a step, except the loops around
 * the sum. */
static bool known_after(Online *c, const State *s) {
  bool known = true;
  for (size_t i = 0; known && i < c->at.len; i++) {
    UOp *u = c->at.at[i].u;
    bool inside = false, around = false;
    for (size_t j = 0; j < c->steps.len; j++)
      inside |= u->op == OPS_LOOP && loop_around(c, (int)i, c->steps.at[j]->src[0]) == c->steps.at[j];
    for (UOp *n = s->nest; n && n->op == OPS_LOOP && !is_axis_loop(c, n); n = n->src[1])
      around |= n == u;
    known = !inside || around || !depends(c->k, s->change, u->src[0]);
  }
  return known;
}

static bool find_changes(Online *c) {
  UOp *l = leader(c);
  c->before = reg_at(c->k, reg_new(c->k, (DType)l->dtype, 0, NULL), 0, NULL);
  for (size_t i = 0; c->before && i < c->states.len; i++) {
    State *s = &c->states.at[i];
    if (!s->later) continue;
    if (s->statement == c->states.at[c->leader].statement) return cannot(c, "a result needs its own loop's");
    UOp *old = kernel_with(c->k, s->closed, 1, &l, &c->before);
    s->change = change_of(c->k->st, c->k->mem, s->op, &c->axes, old, c->before, l);
    if (!s->change || !known_after(c, s))
      return cannot(c, "a term changes with the maximum by no factor of all terms");
  }
  return c->before != NULL;
}

/* ---- the blocks */
/* The value `old` of a state, corrected after the leader has changed. */
static UOp *state_new(Online *c, const State *s, UOp *old) {
  return s->later ? rescaled(c->k->st, s->op, old, s->change, c->before, leader(c)) : old;
}

static bool map(Online *c, Block *b, UOp *from, UOp *to) {
  return to && vec_push(c->k->mem, &b->from, from) && vec_push(c->k->mem, &b->to, to);
}

static bool map_range(Online *c, Block *b, UOp *r, UOp *extent) {
  UOp *now = kernel_range(c->k, extent, (AxisType)r->arg.range.type, r);
  return now && vec_push(c->k->mem, &b->loops, r) && vec_push(c->k->mem, &b->ranges, now);
}

static UOp *mapped_range(const Block *b, const UOp *r) {
  for (size_t i = 0; i < b->loops.len; i++)
    if (b->loops.at[i] == r) return b->ranges.at[i];
  return NULL;
}

/* Gives a block loops, rows and registers of its own. */
static bool block_open(Online *c, Block *b) {
  Kernel *k = c->k;
  UOpVec rows = {0};
  bool ok = map(c, b, c->before->src[0], reg_new(k, (DType)c->before->dtype, 0, NULL));
  for (size_t i = 0; ok && i < c->axes.len; i++) {
    ok = map_range(c, b, c->axes.at[i], b->size);
    UOp *iter = ok ? uop_alu2(k->st, OPS_ADD, b->base, mapped_range(b, c->axes.at[i])) : NULL;
    ok = ok && map(c, b, c->axes.at[i], iter);
  }
  for (size_t i = 0; ok && i < c->rows.len; i++)
    ok = vec_push(k->mem, &rows, local_memory(k, c->rows.at[i]->dtype, b->size->arg.v.i));
  for (size_t i = 0; ok && i < c->accesses.len; i++) {
    UOp *x = c->accesses.at[i], *src[2] = {NULL, mapped_range(b, x->src[1])};
    for (size_t j = 0; j < c->rows.len; j++)
      if (c->rows.at[j] == x->src[0]) src[0] = rows.at[j];
    ok = src[0] && map(c, b, x, uop_new(k->st, OPS_INDEX, (DType)x->dtype, 1, 2, src, ARG0));
  }
  for (size_t i = 0; ok && i < c->at.len; i++) {
    UOp *u = c->at.at[i].u;
    bool inside = false;
    for (int up = (int)i; up >= 0; up = c->at.at[up].up)
      inside |= vec_has(&c->steps, c->at.at[up].u) && c->at.at[up].up == c->home;
    if (!inside) continue;
    if (u->op == OPS_LOOP && !mapped_range(b, u->src[0])) {
      ok = map_range(c, b, u->src[0], u->src[0]->src[0]) && map(c, b, u->src[0], mapped_range(b, u->src[0]));
    } else if (u->op == OPS_STORE && stored_in(u)->op == OPS_DEFINE_REG && !vec_has(&b->from, stored_in(u)))
      ok = map(c, b, stored_in(u), reg_new(k, (DType)stored_in(u)->dtype, 0, NULL));
  }
  vec_free(k->mem, &rows);
  return ok;
}

static void block_close(Online *c, Block *b) {
  vec_free(c->k->mem, &b->from), vec_free(c->k->mem, &b->to);
  vec_free(c->k->mem, &b->loops), vec_free(c->k->mem, &b->ranges);
}

static UOp *of_block(Online *c, const Block *b, UOp *u) {
  return u ? kernel_with(c->k, u, (int)b->from.len, b->from.at, b->to.at) : NULL;
}

/* The element of a state in its row: an index over the loops around the sum. */
static UOp *row_place(Online *c, const State *s) {
  UOpStore *st = c->k->st;
  UOp *at = num(c->k, 0);
  for (UOp *u = s->nest; at && !is_axis_loop(c, u); u = u->src[1]) {
    at = uop_alu2(st, OPS_ADD, uop_alu2(st, OPS_MUL, at, u->src[0]->src[0]), u->src[0]);
    if (u->nsrc != 2 || u->src[1]->op != OPS_LOOP) break;
  }
  return at ? uop_simplify(st, c->k->mem, at) : NULL;
}

static UOp *row_index(Online *c, const State *s) {
  UOp *at = row_place(c, s);
  return at ? UNEW(c->k->st, OPS_INDEX, (DType)s->at->dtype, 1, ARG0, s->row, at) : NULL;
}

/* Appends what the innermost loop around a sum does at the end of a block: it adds the block's sum to the
 * corrected row. */
static bool catch_up(Online *c, const UOp *step, UOpVec *out) {
  bool ok = true;
  for (size_t i = 0; ok && i < c->states.len; i++) {
    const State *s = &c->states.at[i];
    if (s->nest != step) continue;
    UOp *x = row_index(c, s), *all = x ? uop_alu2(c->k->st, s->op, state_new(c, s, x), s->at) : NULL;
    ok = all && vec_push(c->k->mem, out, write_new(c->k, x, all, 0, NULL)) && out->at[out->len - 1];
  }
  return ok;
}

/* A loop of a step, inside a block. Statements after its loops over the axis are left out: they run once,
 * after all blocks (rest_of). */
static UOp *in_block(Online *c, const Block *b, UOp *u, const UOp *step) {
  if (u->op != OPS_LOOP) return of_block(c, b, u);
  UOpVec body = {0}, ends = {0};
  bool ok = true, sums = false, within = is_axis_loop(c, u), past = false;
  for (int i = 1; i < u->nsrc; i++)
    sums |= !within && is_axis_loop(c, u->src[i]);
  for (int i = 1; ok && i < u->nsrc; i++) {
    past |= i > 1 && is_axis_loop(c, u->src[i - 1]) && !is_axis_loop(c, u->src[i]);
    if (sums && past) break;
    UOp *now = in_block(c, b, u->src[i], step);
    ok = now && vec_push(c->k->mem, &body, now);
  }
  if (sums) ok = ok && catch_up(c, step, &ends);
  for (size_t i = 0; ok && i < ends.len; i++) {
    UOp *now = of_block(c, b, ends.at[i]);
    ok = now && vec_push(c->k->mem, &body, now);
  }
  UOp *loop = ok ? loop_new(c->k, mapped_range(b, u->src[0]), (int)body.len, body.at) : NULL;
  vec_free(c->k->mem, &body), vec_free(c->k->mem, &ends);
  return loop;
}

static bool push(Online *c, UOpVec *out, UOp *u) { return u && vec_push(c->k->mem, out, u); }

static bool block_statements(Online *c, UOp *base, UOp *size, UOpVec *out) {
  Block b = {.base = base, .size = size};
  bool ok = block_open(c, &b);
  for (size_t i = 0; ok && i < c->steps.len; i++) {
    bool leads = c->states.at[c->leader].statement == c->steps.at[i];
    if (leads) ok = push(c, out, of_block(c, &b, write_new(c->k, c->before, leader(c), 0, NULL)));
    ok = ok && push(c, out, in_block(c, &b, c->steps.at[i], c->steps.at[i]));
    for (size_t s = 0; ok && leads && s < c->states.len; s++) {
      const State *state = &c->states.at[s];
      if (state->later && !state->nest)
        ok = push(c, out,
                  of_block(c, &b, write_new(c->k, state->at, state_new(c, state, state->at), 0, NULL)));
    }
  }
  block_close(c, &b);
  return ok;
}

/* ---- before and after the blocks */

/* Copies the chain of loops around a sum with loops of its own and puts `with` into the innermost one. */
static UOp *chain(Online *c, UOp *u, int n, UOp *const *with) {
  UOp *r = u->src[0], *now = kernel_range(c->k, r->src[0], (AxisType)r->arg.range.type, r);
  UOp *inner = NULL;
  if (alone(u)) inner = chain(c, alone(u), n, with);
  UOp *body = inner ? UNEW(c->k->st, OPS_SINK, DT_VOID, 1, ARG0, inner)
                    : uop_new(c->k->st, OPS_SINK, DT_VOID, 1, n, with, ARG0);
  body = body && now ? kernel_with(c->k, body, 1, &r, &now) : NULL;
  return body ? loop_new(c->k, now, body->nsrc, body->src) : NULL;
}

static bool rows_start(Online *c, UOpVec *out) {
  bool ok = true;
  for (size_t i = 0; ok && i < c->states.len; i++) {
    State *s = &c->states.at[i];
    if (!s->nest) continue;
    UOp *at = row_place(c, s);
    if (!at || at->vmax == INT64_MAX || at->vmin != 0) return cannot(c, "a row of sums has no known length");
    s->row = local_memory(c->k, s->at->dtype, at->vmax + 1);
    UOp *x = row_index(c, s);
    UOp *start = reg_start(c->k, x, s->op, 0, NULL);
    ok = start && push(c, out, chain(c, s->nest, 1, &start));
  }
  return ok;
}

/* Appends the statements of a step that follow its loops over the axis and use its sums. */
static bool rest_of(Online *c, UOp *step, UOpVec *out) {
  UOp *u = around_axis(c, step);
  if (is_axis_loop(c, u)) return true;
  UOpVec from = {0}, to = {0}, rest = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < c->states.len; i++)
    if (c->states.at[i].nest == step)
      ok = push(c, &from, c->states.at[i].at) && push(c, &to, row_index(c, &c->states.at[i]));
  int last = u->nsrc - 1;
  while (!is_axis_loop(c, u->src[last]))
    last--;
  for (int i = last + 1; ok && i < u->nsrc; i++)
    ok = push(c, &rest, kernel_with(c->k, u->src[i], (int)from.len, from.at, to.at));
  if (ok && rest.len) ok = push(c, out, chain(c, step, (int)rest.len, rest.at));
  vec_free(c->k->mem, &from), vec_free(c->k->mem, &to), vec_free(c->k->mem, &rest);
  return ok;
}

static bool blocks(Online *c, int64_t n, UOpVec *out) {
  Kernel *k = c->k;
  int64_t size = c->axes.at[0]->src[0]->arg.v.i;
  UOp *block = range_of_blocks(k, num(k, size / n), AXIS_REDUCE, c->axes.at[0]);
  UOpVec body = {0};
  bool ok = block && block_statements(c, uop_alu2(k->st, OPS_MUL, block, num(k, n)), num(k, n), &body);
  ok = ok && push(c, out, loop_new(k, block, (int)body.len, body.at));
  if (ok && size % n) ok = block_statements(c, num(k, size / n * n), num(k, size % n), out);
  vec_free(k->mem, &body);
  return ok;
}

static bool rebuild(Online *c, int64_t n) {
  Kernel *k = c->k;
  UOpVec body = {0}, after = {0};
  size_t done = 0;
  bool ok = true;
  UOp *u;
  for (int i = 0; ok && (u = body_at(c, i)); i++) {
    if (vec_has(&c->steps, u)) {
      done++;
      continue;
    }
    if (done && done < c->steps.len && !is_start(u))
      ok = cannot(c, "something is computed between the reductions");
    ok = ok && push(c, done < c->steps.len ? &body : &after, u);
  }
  ok = ok && rows_start(c, &body) && blocks(c, n, &body);
  for (size_t i = 0; ok && i < c->steps.len; i++)
    ok = rest_of(c, c->steps.at[i], &body);
  for (size_t i = 0; ok && i < after.len; i++)
    ok = push(c, &body, after.at[i]);
  if (ok && c->home >= 0) {
    UOp *old = c->at.at[c->home].u, *now = loop_new(k, old->src[0], (int)body.len, body.at);
    UOp *sink = now ? nest_replace(k, k->sink, old, 1, &now) : NULL;
    ok = sink && (k->sink = nest_simplify(k, sink));
  } else if (ok) {
    UOp *sink = uop_new(k->st, OPS_SINK, DT_VOID, 1, (int)body.len, body.at, ARG0);
    ok = sink && (k->sink = nest_simplify(k, sink));
  }
  vec_free(k->mem, &body), vec_free(k->mem, &after);
  return ok;
}

bool opt_online(Kernel *k, UOp *loop, int64_t n, const char **why) {
  Online c = {.k = k};
  UOp *r = loop->src[0];
  *why = NULL;
  if (!is_const(r->src[0])) return *why = "its length is not known", false;
  if (n >= r->src[0]->arg.v.i) return true; /* only one block */
  bool ok = nest_places(k, k->sink, &c.at) && vec_push(k->mem, &c.axes, r) && find_axis(&c) &&
            find_home(&c) && find_states(&c) && find_leader(&c) && find_changes(&c) && rebuild(&c, n);
  *why = c.why;
  vec_free(k->mem, &c.at), vec_free(k->mem, &c.axes), vec_free(k->mem, &c.rows), vec_free(k->mem, &c.stored);
  vec_free(k->mem, &c.accesses), vec_free(k->mem, &c.steps), vec_free(k->mem, &c.states);
  return ok;
}
