/* lanes.c: vectors in a language that has none. In: a linear program with vectors of a few lanes. Out: an
 * array for each vector, and for each operation one statement about lane l, in the macro LANES. The macro is
 * a loop, or it repeats the statement for each lane, whichever the compiler can vectorise (c99.c). The key
 * fact: a value that is used at once has no array, because its text is written inside the statement that uses
 * it. */
#include "renderer/cstyle_private.h"
#include <string.h>

/* NEAR: the most statements between a value and its last use, if the value is written there. MOST_TEXT: its
 * most characters. */
enum { NEAR = 64, MOST_TEXT = 100 };

typedef struct Use {
  int n, last;  /* last: the place of the last use */
  bool once;    /* each use's text contains the operand once */
  bool written; /* of a memory: it is stored to */
} Use;

/* Whether u's text contains the operand once and always evaluates it. An operand of only one side of a
 * selection would keep gcc from vectorising it. */
static bool has_once(const UOp *u, int operand) {
  if (u->op == OPS_STORE) return operand == 1;
  return op_is_alu((Ops)u->op) && u->op != OPS_MAX && !(u->op == OPS_WHERE && operand);
}

static bool is_splat(const UOp *u) { return u->op == OPS_VECTORIZE && u->nsrc == 1; }

static bool opens_or_closes(const UOp *u) {
  return u->op == OPS_RANGE || u->op == OPS_END || u->op == OPS_IF || u->op == OPS_ENDIF;
}

/* Whether the value at a place is unchanged at its last use, because nothing that it reads is written in
 * between. */
static bool lasts(const C *c, int at, int last) {
  const UOp *u = c->lin->at[at], *reg = u->op == OPS_LOAD ? uop_base(u->src[0]) : NULL;
  for (int i = at + 1; i < last; i++) {
    const UOp *v = c->lin->at[i];
    if (opens_or_closes(v)) return false;
    if (v->op != OPS_STORE) continue;
    const UOp *to = uop_base(v->src[0]);
    bool other = reg && (reg->op == OPS_DEFINE_REG ? to != reg : to->op == OPS_DEFINE_REG);
    if (!other) return false;
  }
  return true;
}

static const UOp *memory_of(const UOp *access) {
  const UOp *x = uop_base(access->src[0]);
  return x->op == OPS_INDEX ? uop_base(x->src[0]) : x;
}

/* Whether u reads a register, or reads without a gate a memory that the kernel does not write. In a memory
 * that it writes, a lane might be written before another lane is read. */
static bool is_plain_load(const C *c, const UOp *u, const Use *uses) {
  if (u->op != OPS_LOAD) return false;
  const UOp *x = uop_base(u->src[0]), *memory = memory_of(u);
  return x->op == OPS_DEFINE_REG ||
         (!x->arg.i && c->pos[memory->id] && !uses[c->pos[memory->id] - 1].written);
}

static bool is_within(const C *c, int at, const Use *uses) {
  const UOp *u = c->lin->at[at];
  const Use *use = &uses[at];
  if (!cs_has_lanes(c, u)) return false;
  if (is_splat(u)) return true;
  bool load = is_plain_load(c, u, uses);
  /* there are no vectors of conditions, so each condition is written where it is used */
  if (!load && u->op != OPS_GEP && !(op_is_alu((Ops)u->op) && (use->n == 1 || u->dtype == DT_BOOL)))
    return false;
  return use->n && use->once && use->last - at <= NEAR && lasts(c, at, use->last);
}

bool cs_find_lanes(C *c, TgMem *mem) {
  if (!c->lang->lane_loops) return true;
  Use *use = mem_alloc(mem, (size_t)(c->lin->n + 1) * sizeof *use);
  c->within = mem_alloc(mem, (size_t)c->lin->n + 1);
  c->text_at = mem_alloc(mem, (size_t)(c->lin->n + 1) * sizeof *c->text_at);
  bool ok = use && c->within && c->text_at;
  for (int i = 0; ok && i < c->lin->n; i++) {
    const UOp *u = c->lin->at[i];
    use[i] = (Use){.once = true};
    c->pos[u->id] = i + 1;
    for (int s = 0; s < u->nsrc && u->op != OPS_AFTER; s++) {
      const UOp *v = uop_base(u->src[s]);
      if (v->id >= c->npos || !c->pos[v->id]) continue;
      Use *of = &use[c->pos[v->id] - 1];
      of->n++, of->last = i;
      of->once &= has_once(u, s);
    }
    const UOp *to = u->op == OPS_STORE ? memory_of(u) : NULL;
    if (to && to->id < c->npos && c->pos[to->id]) use[c->pos[to->id] - 1].written = true;
  }
  for (int i = 0; ok && i < c->lin->n; i++)
    c->within[i] = is_within(c, i, use);
  for (size_t i = 0; ok && i < c->npos; i++)
    c->pos[i] = 0;
  mem_free(mem, use);
  return ok;
}

bool cs_has_lanes(const C *c, const UOp *u) {
  return c->lang->lane_loops && u->lanes > 1 && u->dtype != DT_VOID && u->op != OPS_INDEX &&
         u->op != OPS_AFTER;
}

/* A lane of a vector: an element of a named array, or an expression that is valid for any lane. */
const char *cs_lane(C *c, const UOp *u, const char *lane) {
  if (u->op == OPS_CONST) return cs_const(c, (DType)u->dtype, u->arg.v);
  int at = cs_place(c, u);
  if (c->text_at[at]) return c->texts.oom ? "" : c->texts.at + c->text_at[at] - 1;
  return cs_text(c, "%s%d[%s]", u->op == OPS_DEFINE_REG ? "acc" : "v", c->number[at], lane);
}

/* Writes the value of lane l onto the body. */
static void put_value(C *c, const UOp *u) {
  const char *s[3] = {"", "", ""};
  if (u->op == OPS_GEP) {
    cs_put(c, "%s", cs_lane(c, uop_base(u->src[0]), cs_text(c, "l + %d", (int)u->arg.i)));
    return;
  }
  for (int i = 0; i < u->nsrc && i < 3 && u->op != OPS_LOAD; i++)
    s[i] = cs_ref(c, u->src[i]);
  const UOp *x = uop_base(u->src[0]);
  if (u->op != OPS_LOAD)
    cs_scalar_alu(c, u, s[0], s[1], s[2]);
  else if (x->op == OPS_DEFINE_REG)
    cs_put(c, "%s", cs_ref(c, x));
  else
    cs_put(c, "%s[%s + l]", cs_ref(c, uop_base(x->src[0])), cs_ref(c, x->src[1]));
}

/* Removes the text after `start` from the body and keeps it as the text of the value at a place. */
static void take_text(C *c, const UOp *u, int at, size_t start) {
  if (c->body.oom) return;
  c->text_at[at] = (int)c->texts.len + 1;
  bool simple = u->op == OPS_LOAD || u->op == OPS_GEP || is_splat(u);
  /* an unrounded product might have more bits than its type, so it is cast */
  if (!simple)
    cs_fmt(&c->texts, "%s(", dtype_is_float((DType)u->dtype) ? cs_text(c, "(%s)", cs_scalar[u->dtype]) : "");
  str_putn(&c->texts, c->body.at + start, c->body.len - start);
  if (!simple) str_put(&c->texts, ")");
  str_putn(&c->texts, "", 1);
  c->body.len = start;
  c->body.at[start] = 0;
}

static bool has_sources(C *c, const UOp *u) {
  const UOp *x = u->nsrc ? uop_base(u->src[0]) : NULL;
  if (u->op == OPS_VECTORIZE && u->nsrc != 1 && u->nsrc != u->lanes)
    return cs_fail(c, u, "sources do not match the lanes");
  if (u->op == OPS_GEP && (u->arg.i < 0 || u->arg.i + u->lanes > u->src[0]->lanes))
    return cs_fail(c, u, "lanes out of range");
  bool memory = u->op == OPS_LOAD || u->op == OPS_STORE;
  if (memory && x->op != OPS_DEFINE_REG && (x->op != OPS_INDEX || x->nsrc < 2))
    return cs_fail(c, u,
                   u->op == OPS_LOAD ? "source is neither INDEX nor register"
                                     : "target is neither INDEX nor register");
  if (memory || u->op == OPS_DEFINE_REG || u->op == OPS_VECTORIZE || u->op == OPS_GEP ||
      op_is_alu((Ops)u->op))
    return true;
  return cs_fail(c, u, "no vectors here");
}

static const UOp *gate_of(const UOp *access) {
  const UOp *x = uop_base(access->src[0]);
  return x->op == OPS_INDEX && x->arg.i ? x->src[x->nsrc - 1] : NULL;
}

/* Writes a value that the store itself rounds, without the cast and the parentheses of its text. */
static void put_stored(C *c, const UOp *v) {
  if (c->texts.oom) return; /* there is no text to take the parentheses from */
  const char *text = cs_ref(c, v);
  const UOp *u = uop_base(v);
  bool within = u->op != OPS_CONST && c->text_at[cs_place(c, u)] && op_is_alu((Ops)u->op);
  const char *inner = within ? strchr(text + (dtype_is_float((DType)u->dtype) ? 1 : 0), '(') + 1 : text;
  str_putn(&c->body, inner, strlen(inner) - within);
}

void cs_lanes_store(C *c, const UOp *u) {
  const UOp *x = uop_base(u->src[0]), *gate = gate_of(u);
  if (!has_sources(c, u)) return;
  if (gate) cs_put(c, "if (%s) ", cs_ref(c, gate));
  cs_put(c, "LANES%d(", u->src[1]->lanes);
  if (x->op == OPS_DEFINE_REG)
    cs_put(c, "%s", cs_ref(c, x));
  else
    cs_put(c, "%s[%s + l]", cs_ref(c, uop_base(x->src[0])), cs_ref(c, x->src[1]));
  str_put(&c->body, " = ");
  put_stored(c, u->src[1]);
  str_put(&c->body, ";)\n");
}

/* The vector of four lanes whose halves u adds, or NULL. Such halves are used only for their total, so the
 * total may be put into the first lane, next to -0, which changes no number that it is added to. */
static const UOp *halves_added(const UOp *u) {
  const UOp *lo = u->nsrc > 1 ? uop_base(u->src[0]) : u, *hi = u->nsrc > 1 ? uop_base(u->src[1]) : u;
  bool halves = u->op == OPS_ADD && u->dtype == DT_F32 && u->lanes == 2 && lo->op == OPS_GEP &&
                hi->op == OPS_GEP && lo->src[0] == hi->src[0] && lo->src[0]->lanes == 4;
  return halves && lo->arg.i == 0 && hi->arg.i == 2 ? uop_base(lo->src[0]) : NULL;
}

void cs_lanes_value(C *c, const UOp *u, int at) {
  const char *type = cs_stored((DType)u->dtype);
  size_t start = c->body.len;
  int n = u->lanes;
  if (!has_sources(c, u)) return;
  if (u->op == OPS_VECTORIZE && !is_splat(u)) {
    int id = c->number[at] = c->nval++;
    cs_line(c);
    cs_put(c, "%s v%d[%d];", type, id, n);
    for (int i = 0; i < n; i++)
      cs_put(c, " v%d[%d] = %s;", id, i, cs_ref(c, u->src[i]));
    str_put(&c->body, "\n");
    return;
  }
  const UOp *four = halves_added(u);
  if (four) {
    int id = c->number[at] = c->nval++;
    cs_line(c);
    cs_put(c, "f32 v%d[2] = {four_f32(v%d), -0.0f};\n", id, c->number[cs_place(c, four)]);
    return;
  }
  if (is_splat(u))
    cs_put(c, "%s", cs_ref(c, u->src[0]));
  else
    put_value(c, u);
  if (c->body.oom) return;
  if (is_splat(u) || (c->within[at] && c->body.len - start <= MOST_TEXT)) {
    take_text(c, u, at, start);
    return;
  }
  int id = c->number[at] = c->nval++;
  str_put(&c->body, ";)\n");
  const UOp *gate = u->op == OPS_LOAD ? gate_of(u) : NULL;
  Str front;
  str_init(&front, c->body.mem);
  for (int i = 0; i < c->depth; i++)
    str_put(&front, "  ");
  cs_fmt(&front, "%s v%d[%d]; ", type, id, n);
  if (gate)
    cs_fmt(&front, "LANES%d(v%d[l] = %s;) if (%s) ", n, id, u->nsrc < 2 ? "0" : cs_lane(c, u->src[1], "l"),
           cs_ref(c, gate));
  cs_fmt(&front, "LANES%d(v%d[l] = ", n, id);
  cs_put_before(c, start, str_text(&front));
  if (front.oom) c->body.oom = true;
  str_free(&front);
}

void cs_lanes_if(C *c, const UOp *u) {
  int id = c->nval++;
  cs_put(c, "i32 v%d = 0; LANES%d(v%d |= %s;) if (v%d) {\n", id, u->src[0]->lanes, id, cs_ref(c, u->src[0]),
         id);
}
