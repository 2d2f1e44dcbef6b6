/* groups.c: steps of matrix units that four warps share (matrix_in_shared). In: a linear program. Out: one
 * instruction for steps that are side by side, with the same place in a and neighbouring columns of b; and
 * the waits for it.
 *
 * The unit works asynchronously. Between its instruction and a wait, nothing else may access the registers
 * that it adds to, or fill the memory that it reads. Registers are therefore stepped in place: a WMMA has the
 * name of its register, and the LOAD and the STORE around it have no text. A wait is written before any other
 * access to such a register, before a barrier (which may leave the last products under way), and at the end
 * of a loop. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

/* The register that u steps, looked up from a place on. */
static const UOp *sum_after(C *c, const UOp *u, int at) {
  for (int i = at; i < c->lin->n; i++)
    if (c->lin->at[i]->op == OPS_STORE && c->lin->at[i]->src[1] == u) return uop_base(c->lin->at[i]->src[0]);
  cs_fail(c, u, "steps no register");
  return u->src[2];
}

const UOp *cs_sum_of(C *c, const UOp *u) { return sum_after(c, u, cs_place(c, u)); }

/* Finds the LOADs of a register that only such steps read. */
void cs_find_groups(C *c) {
  for (int i = 0; i < c->lin->n; i++)
    if (cs_is_group(c->lin->at[i])) {
      c->groups = true;
      if (c->lin->at[i]->src[2]->op == OPS_LOAD) c->copied[c->lin->at[i]->src[2]->id] = 1;
    }
  for (int i = 0; c->groups && i < c->lin->n; i++)
    for (int s = 0; s < c->lin->at[i]->nsrc; s++) {
      const UOp *v = c->lin->at[i]->src[s];
      bool reg = v->op == OPS_LOAD && uop_base(v->src[0])->op == OPS_DEFINE_REG;
      if (reg && !cs_is_group(c->lin->at[i])) c->copied[v->id] = 0;
    }
}

static bool is_index(const UOp *u) { /* whether u is index arithmetic */
  return u->op == OPS_INDEX || u->op == OPS_CONST ||
         (op_is_alu((Ops)u->op) && !dtype_is_float((DType)u->dtype));
}

/* ---- steps side by side */
/* Splits an offset into a part and a constant *c. NULL: the offset is constant. */
static const UOp *apart(const UOp *at, int64_t *c) {
  *c = 0;
  if (at->op == OPS_CONST) return *c = at->arg.v.i, NULL;
  for (int i = 0; at->op == OPS_ADD && i < 2; i++)
    if (at->src[i]->op == OPS_CONST) return *c = at->src[i]->arg.v.i, at->src[!i];
  return at;
}

/* The distance in b from a step to the step `n` further along the columns. */
static int64_t column_after(const MatrixOperand *b, int64_t n) {
  int64_t chunk = MATRIX_ROW_BYTES / (int64_t)dtype_size(b->dtype), line = chunk * MATRIX_LINE_CHUNKS;
  if (!b->turned) return n * b->columns * line;
  return n / MATRIX_LINE_CHUNKS * line * line + n % MATRIX_LINE_CHUNKS * chunk;
}

/* The number of steps from `at` on that form one instruction. If the columns of b are neighbours, the
 * instruction must begin at a multiple of its part of a line. */
static int steps_beside(C *c, const UOp *u, int at) {
  enum { MOST = 32 };

  const MatrixOperand *b = &matrix_shapes[u->arg.i].operand[MATRIX_B];
  int n = 1, most = MOST;
  int64_t first, c_at;
  const UOp *part = apart(u->src[1]->src[1], &first);
  for (int whole = MATRIX_LINE_CHUNKS; b->turned && whole >= 1; whole /= 2)
    if (uop_is_multiple(u->src[1]->src[1], whole * b->columns)) {
      most = whole == MATRIX_LINE_CHUNKS ? MOST : whole;
      break;
    }
  for (int i = at + 1; i < c->lin->n && n < most; i++) {
    const UOp *v = c->lin->at[i];
    if (v->op == OPS_WMMA) {
      bool same = v->arg.i == u->arg.i && v->src[0] == u->src[0] && v->src[1]->src[0] == u->src[1]->src[0];
      if (!same || apart(v->src[1]->src[1], &c_at) != part || c_at - first != column_after(b, n)) break;
      n++;
    }
    bool reg = (v->op == OPS_LOAD && uop_base(v->src[0])->op == OPS_DEFINE_REG && cs_is_copied(c, v)) ||
               (v->op == OPS_STORE && cs_is_group(v->src[1]));
    bool index = is_index(v);
    if (!reg && !index && v->op != OPS_WMMA) break;
  }
  return n;
}

/* Writes the address of a step's operand. */
static void place(C *c, const UOp *u, MatrixRole role) {
  const UOp *x = u->src[role];
  cs_put(c, "%s(%s + %s)", matrix_shapes[u->arg.i].operand[role].turned ? "tg_turned" : "tg_lines",
         cs_ref(c, uop_base(x->src[0])), cs_ref(c, x->src[1]));
}

/* The first step after a wait, or a loop of steps, begins a group. */
static void group_begins(C *c) {
  if (!c->begun) {
    cs_line(c);
    str_put(&c->body, "tg_group_begin();\n");
  }
  c->begun = c->at_work = true;
}

void cs_group(C *c, const UOp *u, int at) {
  if (c->side && c->side--) return;
  if (!c->lang->group) {
    cs_fail(c, u, "no matrix units of four warps here");
    return;
  }
  int n = steps_beside(c, u, at);
  c->lang->group(c, u, n);
  group_begins(c);
  cs_line(c);
  cs_put(c, "tg_mma_%s(", matrix_shapes[u->arg.i].name);
  place(c, u, MATRIX_A), str_put(&c->body, ", "), place(c, u, MATRIX_B);
  for (int i = at, done = 0; done < n; i++)
    if (cs_is_group(c->lin->at[i])) {
      cs_put(c, ", %s", cs_ref(c, sum_after(c, c->lin->at[i], i)));
      done++;
    }
  str_put(&c->body, ");\n");
  c->side = n - 1;
}

/* ---- waits */
static int end_of(const Linear *lin, int at) { /* the place of a RANGE's END */
  int i = at + 1;
  while (i < lin->n && !(lin->at[i]->op == OPS_END && lin->at[i]->src[0] == lin->at[at]))
    i++;
  return i;
}

/* Whether a loop contains steps, and nothing else that must wait for them. */
static bool only_steps(const C *c, int at) {
  bool any = false;
  int end = end_of(c->lin, at);
  for (int i = at + 1; i < end; i++) {
    const UOp *u = c->lin->at[i];
    bool step = cs_is_group(u) || (u->op == OPS_STORE && cs_is_group(u->src[1])) || cs_is_copied(c, u);
    bool index = is_index(u);
    if (!step && !index) return false;
    any |= step;
  }
  return any;
}

/* The number of groups of products that may be under way when an iteration of a loop begins: as many as its
 * barrier allows, if the iteration begins with a barrier. */
static int left_by(const C *c, int at) {
  for (int i = at + 1; i < c->lin->n; i++) {
    const UOp *u = c->lin->at[i];
    if (u->op == OPS_BARRIER) return u->nsrc ? (int)u->src[1]->arg.v.i : 0;
    if (!is_index(u)) return 0;
  }
  return 0;
}

/* Ends the group that was begun, and waits for all but the last `left` groups. */
static void wait_for(C *c, int left) {
  cs_line(c);
  if (c->begun) str_put(&c->body, "tg_group_commit(); ");
  cs_put(c, "tg_group_wait(%d);\n", left);
  c->at_work = left > 0;
  c->begun = false;
}

static bool touches_sum(const C *c, const UOp *u) {
  if (cs_is_group(u) || (u->op == OPS_STORE && cs_is_group(u->src[1])) || cs_is_copied(c, u)) return false;
  bool touches = (u->op == OPS_LOAD || u->op == OPS_STORE) && uop_base(u->src[0])->op == OPS_DEFINE_REG;
  for (int i = 0; i < u->nsrc; i++)
    touches |= cs_is_group(uop_base(u->src[i]));
  return touches;
}

/* Whether a loop does not affect the steps, such as a loop that copies. */
static bool is_beside(const C *c, int at) {
  int end = end_of(c->lin, at);
  for (int i = at + 1; i < end; i++) {
    const UOp *u = c->lin->at[i];
    if (cs_is_group(u) || u->op == OPS_BARRIER || touches_sum(c, u)) return false;
  }
  return true;
}

void cs_group_waits(C *c, const UOp *u, int at) {
  bool loop = u->op == OPS_RANGE || u->op == OPS_END;
  int from = u->op == OPS_END ? cs_place(c, u->src[0]) : at;
  if (loop && (is_beside(c, from) || (only_steps(c, from) && u->op == OPS_END))) return;
  if (loop && only_steps(c, from)) {
    group_begins(c);
    return;
  }
  int left = loop ? left_by(c, from) : u->op == OPS_BARRIER && u->nsrc ? (int)u->src[1]->arg.v.i : 0;
  bool waits = loop || u->op == OPS_BARRIER || u->op == OPS_IF || u->op == OPS_ENDIF || touches_sum(c, u);
  if (waits && c->at_work && (!left || c->begun)) wait_for(c, u->op == OPS_RANGE ? 0 : left);
  if (loop && left) c->at_work = true;
}
