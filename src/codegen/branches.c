/* branches.c: work that is seldom needed. In: a linear program. Out: the same program, but what only one
 * side of a WHERE uses is computed behind an IF if it is much work. The IF tests whether any lane takes
 * that side.
 *
 *   c = x < 65536;  a = the short way;  b = the long way;  r = a
 *   v = WHERE(c, a, b)                                     IF any lane is not c:  b = ..,  r = WHERE(c, a, b)
 *
 * The key fact: a selection computes both sides, for all lanes. A function with a long way for arguments
 * that are rare (decompose.c: sin of a large number) pays for it every time. A branch that goes the same
 * way for all lanes of most vectors is predicted, and costs next to nothing.
 *
 * Selections by the same condition share a branch. Only arithmetic moves: loads stay where they are. */
#include "codegen/codegen.h"
#include <string.h>

/* LEAST: the least weight (ops.def) of the work that gets a branch; a wrong prediction costs as much.
 * LEAST_OTHER: the least weight of the other side. If the other side is a constant or a value that is
 * needed anyway, the lane that takes it is the special case, and the work is needed nearly always.
 * MOST_TRIED: the most conditions that are tried in a kernel, because each trial searches all of it. */
enum { LEAST = 48, LEAST_OTHER = 4, MOST_TRIED = 64 };

typedef enum Use { UNUSED, INSIDE = 1, OUTSIDE = 2 } Use;

typedef struct Branches {
  Kernel *k;
  UOpVec list;
  Vec(int) block;   /* by place: the number of the innermost RANGE or IF around it */
  Vec(double) work; /* by place: the weight of all arithmetic below, shared parts counted each time */
  int *place;       /* by node: its place + 1; 0: it is not in the list */
  uint8_t *use;     /* by place: a set of Use bits: whether the seldom side or other code uses it */
  uint8_t *late;    /* by place: 1: it depends on a selection of the branch */
} Branches;

static int place_of(const Branches *b, const UOp *u) { return b->place[u->id] - 1; }

static bool moves(const UOp *u) { return op_is_alu((Ops)u->op) && u->dtype != DT_INDEX; }

static void free_all(Branches *b) {
  TgMem *m = b->k->mem;
  vec_free(m, &b->list), vec_free(m, &b->block), vec_free(m, &b->work);
  mem_free(m, b->place), mem_free(m, b->use), mem_free(m, b->late);
  b->place = NULL;
  b->use = b->late = NULL;
}

/* Fills in the list and the facts about each place. */
static bool places_found(Branches *b, UOp *const *list, int n) {
  TgMem *m = b->k->mem;
  Vec(int) open = {0};
  int blocks = 0;
  bool ok = vec_push(m, &open, blocks++);
  b->place = mem_alloc(m, (store_id_limit(b->k->st) + 1) * sizeof *b->place);
  b->use = mem_alloc(m, (size_t)n + 1), b->late = mem_alloc(m, (size_t)n + 1);
  ok = ok && b->place && b->use && b->late;
  for (int i = 0; ok && i < n; i++) {
    UOp *u = list[i];
    double work = moves(u) ? target_weight(b->k->opt->target, u) : 0;
    for (int s = 0; moves(u) && s < u->nsrc; s++)
      if (place_of(b, u->src[s]) >= 0) work += b->work.at[place_of(b, u->src[s])];
    if (u->op == OPS_END || u->op == OPS_ENDIF) open.len--;
    ok = vec_push(m, &b->list, u) && vec_push(m, &b->block, open.at[open.len - 1]) &&
         vec_push(m, &b->work, TG_MIN(work, 1e9));
    b->place[u->id] = i + 1;
    if (u->op == OPS_RANGE || u->op == OPS_IF) ok = ok && vec_push(m, &open, blocks++);
  }
  vec_free(m, &open);
  return ok;
}

/* One branch: the selections at places first .. last by one condition, whose source `side` is seldom
 * needed. */
typedef struct Branch {
  const UOp *cond;
  int side, first, last;
} Branch;

/* Whether a place is a selection of the branch. Selections of bools are left out, because masks cannot be
 * kept in registers. */
static bool selects(const Branches *b, const Branch *br, int at) {
  const UOp *u = b->list.at[at];
  return at >= br->first && at <= br->last && u->op == OPS_WHERE && u->src[0] == br->cond &&
         u->dtype != DT_BOOL && b->block.at[at] == b->block.at[br->first] && !b->late[at];
}

/* Finds the last selection that no write or load separates from the first. Code between the selections
 * that depends on one of them is moved behind the branch. */
static void find_last(const Branches *b, Branch *br) {
  for (int i = br->last = br->first; i < (int)b->list.len && b->block.at[i] == b->block.at[br->first]; i++) {
    const UOp *u = b->list.at[i];
    if (u->dtype == DT_VOID || u->op == OPS_LOAD) break;
    if (u->op == OPS_WHERE && u->src[0] == br->cond) br->last = i;
  }
}

static void find_late(Branches *b, const Branch *br) {
  memset(b->late, 0, b->list.len);
  for (int i = br->first; i <= br->last; i++) {
    const UOp *u = b->list.at[i];
    for (int s = 0; s < u->nsrc; s++) {
      int at = place_of(b, u->src[s]);
      if (at >= br->first && (b->late[at] || selects(b, br, at))) b->late[i] = 1;
    }
  }
}

/* Marks each place with its users: those that only the seldom sides use have INSIDE and no other bit.
 * Returns the weight of these. */
static double find_inside(Branches *b, const Branch *br) {
  double weight = 0;
  memset(b->use, UNUSED, b->list.len);
  for (int i = (int)b->list.len - 1; i >= 0; i--) {
    const UOp *u = b->list.at[i];
    bool here = moves(u) && !b->late[i] && b->block.at[i] == b->block.at[br->first],
         chooses = selects(b, br, i);
    if (b->use[i] == INSIDE && !here) b->use[i] = OUTSIDE;
    bool inside = b->use[i] == INSIDE && !chooses;
    if (b->use[i] == INSIDE && chooses) b->use[i] = OUTSIDE;
    if (inside) weight += target_weight(b->k->opt->target, u);
    for (int s = 0; s < u->nsrc; s++) {
      int at = place_of(b, u->src[s]);
      if (at >= 0) b->use[at] |= inside || (chooses && s == br->side) ? INSIDE : OUTSIDE;
    }
  }
  return weight;
}

/* ---- the branch */
typedef struct Rebuilt {
  Branches *b;
  UOpVec out;
  UOpMap *now; /* the node that replaces a changed node */
  UOpMap *put; /* the nodes that are in out */
} Rebuilt;

static bool put(Rebuilt *r, UOp *u) {
  if (u && uop_map_get(r->put, u)) return true;
  return u && uop_map_put(r->b->k->st, r->put, u, u) && vec_push(r->b->k->mem, &r->out, u);
}

/* Appends u, with its sources replaced by what they have become. */
static bool put_again(Rebuilt *r, UOp *u) {
  UOp *v = node_mapped(r->b->k->st, r->b->k->mem, r->now, u);
  return put(r, v) && (v == u || uop_map_put(r->b->k->st, r->now, u, v));
}

static UOp *register_set(Rebuilt *r, UOp *reg, UOp *value, int time) {
  return UNEW(r->b->k->st, OPS_STORE, DT_VOID, 1, ((Arg){.i = time}), reg, value);
}

/* True in each lane. It is placed in front of all blocks. */
static UOp *true_lanes(UOpStore *st, int lanes) {
  UOp *yes = uop_const_int(st, DT_BOOL, 1);
  return lanes > 1 && yes ? UNEW(st, OPS_VECTORIZE, DT_BOOL, lanes, ARG0, yes) : yes;
}

/* The mask of the lanes that take the seldom side. It is placed right behind the condition, so that all
 * its users can read it. */
static UOp *asked(UOpStore *st, const Branch *br) {
  UOp *cond = (UOp *)br->cond, *yes = true_lanes(st, cond->lanes);
  if (br->side == 1) return cond;
  return yes ? UNEW(st, OPS_CMPNE, DT_BOOL, cond->lanes, ARG0, cond, yes) : NULL;
}

static bool put_branch(Rebuilt *r, const Branch *br) {
  Branches *b = r->b;
  UOpStore *st = b->k->st;
  UOpVec reg = {0};
  bool ok = true;
  for (int i = br->first; ok && i <= br->last; i++) {
    UOp *u = b->list.at[i];
    if (!selects(b, br, i)) continue;
    UOp *often = u->src[3 - br->side];
    UOp *held = uop_new(st, OPS_DEFINE_REG, (DType)u->dtype, u->lanes, 0, NULL,
                        (Arg){.param = {1, b->k->next_reg++}});
    ok = held && vec_push(b->k->mem, &reg, held) && put(r, held) && put(r, register_set(r, held, often, 1));
  }
  UOp *cond = ok ? asked(st, br) : NULL;
  Arg own = {.i = b->k->next_reg}; /* keeps two branches by the same condition from being one node */
  UOp *branch = cond ? UNEW(st, OPS_IF, DT_VOID, 1, own, cond) : NULL;
  ok = put(r, branch);
  for (int i = 0; ok && i < br->last; i++)
    if (b->use[i] == INSIDE) ok = put(r, b->list.at[i]);
  size_t n = 0;
  for (int i = br->first; ok && i <= br->last; i++) {
    UOp *u = b->list.at[i];
    if (!selects(b, br, i)) continue;
    bool whole = u->lanes == 1; /* a scalar: the branch has made the selection */
    ok = (whole || put(r, u)) && put(r, register_set(r, reg.at[n++], whole ? u->src[br->side] : u, 2));
  }
  ok = ok && put(r, UNEW(st, OPS_ENDIF, DT_VOID, 1, ARG0, branch));
  n = 0;
  for (int i = br->first; ok && i <= br->last; i++) {
    UOp *u = b->list.at[i];
    if (!selects(b, br, i)) continue;
    UOp *now = UNEW(st, OPS_LOAD, (DType)u->dtype, u->lanes, ((Arg){.i = 2}), reg.at[n++]);
    ok = put(r, now) && uop_map_put(st, r->now, u, now);
  }
  vec_free(b->k->mem, &reg);
  return ok;
}

/* Writes the program with the branch to *out. *at: the place behind the branch. */
static bool rebuilt(Branches *b, const Branch *br, UOpVec *out, int *at) {
  UOpStore *st = b->k->st;
  Rebuilt r = {.b = b, .now = uop_map_begin(st, st), .put = uop_map_begin(st, st)};
  bool front = br->side == 2 && br->cond->lanes > 1;
  bool ok = r.now && r.put && (!front || put(&r, true_lanes(st, br->cond->lanes)));
  for (int i = 0; ok && i <= br->last; i++)
    if (b->use[i] != INSIDE && !selects(b, br, i) && !b->late[i])
      ok = put(&r, b->list.at[i]) && (b->list.at[i] != br->cond || put(&r, asked(st, br)));
  ok = ok && put_branch(&r, br);
  *at = (int)r.out.len;
  for (int i = br->first; ok && i < (int)b->list.len; i++)
    if (i > br->last || b->late[i]) ok = put_again(&r, b->list.at[i]);
  uop_map_end(st, r.now), uop_map_end(st, r.put);
  *out = r.out;
  return ok;
}

static double work_of(const Branches *b, const UOp *u) {
  return place_of(b, u) < 0 ? 0 : b->work.at[place_of(b, u)];
}

/* Finds the first branch from place *at on. */
static bool next_branch(Branches *b, int *at, int *tried, Branch *br) {
  for (; *at < (int)b->list.len; ++*at) {
    const UOp *u = b->list.at[*at];
    if (u->op != OPS_WHERE || u->dtype == DT_BOOL || is_const(u->src[0])) continue;
    for (int side = 1; side <= 2; side++) {
      if (work_of(b, u->src[side]) < LEAST || work_of(b, u->src[3 - side]) < LEAST_OTHER) continue;
      if (++*tried > MOST_TRIED) return false;
      *br = (Branch){u->src[0], side, *at, *at};
      memset(b->late, 0, b->list.len);
      find_last(b, br);
      find_late(b, br);
      if (find_inside(b, br) >= LEAST) return true;
    }
  }
  return false;
}

static bool any_selection(const Linear *lin) {
  for (int i = 0; i < lin->n; i++)
    if (lin->at[i]->op == OPS_WHERE) return true;
  return false;
}

bool branch_seldom(Kernel *k, Arena *arena, Linear *lin) {
  if (!any_selection(lin)) return true;
  Branches b = {.k = k};
  Branch br;
  int at = 0, tried = 0;
  bool ok = places_found(&b, lin->at, lin->n), any = false;
  while (ok && next_branch(&b, &at, &tried, &br)) {
    UOpVec out = {0};
    ok = rebuilt(&b, &br, &out, &at);
    free_all(&b);
    ok = ok && places_found(&b, out.at, (int)out.len);
    vec_free(k->mem, &out);
    any = true;
  }
  if (ok && any) {
    lin->n = (int)b.list.len;
    lin->at = arena_array(arena, UOp *, lin->n + 1);
    ok = lin->at != NULL;
    if (ok) memcpy(lin->at, b.list.at, b.list.len * sizeof *b.list.at);
  }
  free_all(&b);
  return ok;
}
