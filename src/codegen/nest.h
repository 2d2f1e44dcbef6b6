/* nest.h: a kernel as a tree of loops. In: a kernel's graph, in which each STORE and REDUCE lists its
 * loops. Out: a SINK of statements in the order they run; statements that run repeatedly are inside a
 * LOOP:
 *
 * - STORE(INDEX(m, ..), value, r..): writes value to m, for all values of the expanded ranges r.. (UPCAST,
 * VEC, UNROLL, GROUP). The values of an UNROLL range are taken in order.
 * - ACC[op](INDEX(reg, ..), value, r..): the register becomes itself op value.
 * - LOOP(r, statement..): runs the statements, in order, in every iteration of r. The iterations of a
 * LOCAL loop `of block` are distributed to all threads of the block; the thread loops around it do not
 * repeat it.
 * - BARRIER(): no thread of a block goes on before all threads have arrived.
 *
 * A LOOP over blocks of a reduction (is_block) that writes no buffer belongs to an ONLINE: if no step of
 * an iteration counts, the iteration changes nothing.
 *
 * A value is an expression that is computed where its statement stands. An INDEX of a register
 * (DEFINE_REG) or of local memory reads the value at that time. An INDEX of a PARAM reads the value from
 * before the kernel, unless an ORDERED loop writes the PARAM. A register has one axis for each expanded
 * range for whose values it is separate: DEFINE_REG(extent..). */
#ifndef TG_NEST_H
#define TG_NEST_H
#include "codegen/codegen.h"

/* A statement, the position in the list of the LOOP around it (-1: none), and its depth. In a list of
 * places, a loop comes before its body, and statements are in order. */
typedef struct Place {
  UOp *u;
  int up, depth;
} Place;

typedef Vec(Place) PlaceVec;

/* Adds all nodes below u, and u, to *order, sources first. Returns false if out of memory. */
bool kernel_nodes(Kernel *k, UOp *u, UOpVec *order);
/* Returns u with from[i] replaced by to[i], or NULL if out of memory. */
UOp *kernel_with(Kernel *k, UOp *u, int n, UOp *const *from, UOp *const *to);

/* ---- index arithmetic. Each function returns NULL if a source is NULL or if out of memory. */
static inline UOp *num(Kernel *k, int64_t v) { return uop_index_const(k->st, v); }

static inline UOp *add(Kernel *k, UOp *x, UOp *y) { return uop_alu2(k->st, OPS_ADD, x, y); }

UOp *simp(Kernel *k, UOp *u);

/* a op b. ix simplifies the whole expression; ix_top simplifies only the top node, for a and b that are
 * already simple. */
UOp *ix(Kernel *k, Ops op, UOp *a, UOp *b);
UOp *ix_top(Kernel *k, Ops op, UOp *a, UOp *b);

/* The lesser of a and b, written as -max(-a, -b), because the bounds of that expression are known. */
UOp *ix_min(Kernel *k, UOp *a, UOp *b);

/* The INDEX x with `gate` added to its gate. */
UOp *index_gated(Kernel *k, UOp *x, UOp *gate);

/* ---- the tree */

bool nest_build(Kernel *k);
bool nest_places(const Kernel *k, UOp *root, PlaceVec *out);
/* The place of the STORE that starts a register; -1: there is none. */
int place_of_start(const PlaceVec *at, const UOp *reg);
UOp *loop_new(Kernel *k, UOp *range, int n, UOp *const *body);

/* Simplifies all expressions and removes loops of one iteration, keeping their bodies. */
UOp *nest_simplify(Kernel *k, UOp *sink);

/* Returns the tree with `old` replaced by n statements (0: removed), or NULL if out of memory or if the
 * tree does not contain `old`. */
UOp *nest_replace(Kernel *k, UOp *root, const UOp *old, int n, UOp *const *with);

/* Returns a copy of u with loops of its own. Registers that it starts, and local memory that only it
 * touches, are also new. from[i] becomes to[i]. */
UOp *nest_copy(Kernel *k, UOp *u, int n, UOp *const *from, UOp *const *to);

/* Whether u, or a statement below it, writes this memory. */
bool nest_stores_to(const UOp *u, const UOp *memory);

/* Bytes of the local memory that statements below `root` touch; -1 if out of memory. */
int64_t nest_local_bytes(Kernel *k, UOp *root);

/* The id of the kernel's loop that a range is a part of; negative: none. */
static inline int64_t range_root(const UOp *r) {
  return r->arg.range.of ? (int64_t)r->arg.range.of - 1 : r->arg.range.id;
}

/* Whether r is the loop over the blocks of a TILE. block_root returns the id of the kernel's loop that is
 * tiled, or -1. */
static inline bool is_block(const UOp *r) {
  return r->arg.range.of <= BLOCKS_OF && r->arg.range.of != LOCAL_OF_BLOCK;
}

static inline int64_t block_root(const UOp *r) { return is_block(r) ? BLOCKS_OF - r->arg.range.of : -1; }

static inline bool is_expanded(const UOp *r) {
  return r->op == OPS_RANGE && r->arg.range.type >= AXIS_UPCAST;
}

static inline bool vec_has(const UOpVec *v, const UOp *u) {
  for (size_t i = 0; i < v->len; i++)
    if (v->at[i] == u) return true;
  return false;
}

/* Whether u depends on range r. This is exact for any number of ranges, although ranges 63 and above share
 * one bit of u->ranges. */
bool depends(Kernel *k, UOp *u, const UOp *r);

enum { MOST_CLAUSES = 32 };

/* Takes the conjunctions of a gate apart and returns the number of clauses. When there is no room left, a
 * clause may still be a conjunction. */
int gate_clauses(UOp *gate, UOp *out[MOST_CLAUSES]);

typedef struct Clauses {
  int n;
  UOp *at[MOST_CLAUSES];
} Clauses;

static inline bool clauses_have(const Clauses *c, const UOp *g) {
  for (int i = 0; i < c->n; i++)
    if (c->at[i] == g) return true;
  return false;
}

/* The clauses that the gates of all factors of a product share: if one of them fails, each factor is 0.
 * There are none if the value is not a product or if a factor has no gate. */
void product_clauses(UOp *value, Clauses *out);

/* The comparison of a clause that is a comparison or the negation of one. *holds: false if it is negated. */
static inline const UOp *clause_of(const UOp *g, bool *holds) {
  *holds = !(g->op == OPS_CMPNE && is_const_int(g->src[1], 1));
  return *holds ? g : g->src[0];
}

/* *step: how much e grows when r grows by one. Returns false if the growth is not the same everywhere. */
bool moves_evenly(Kernel *k, UOp *e, UOp *r, int64_t *step);

/* Writes to at[] the iterations of r in which something changes that u computes from r alone: a
 * comparison, a quotient, or which operand of a MAX is the greater. Returns how many there are; 0 also if
 * there are more than MOST_CUTS, which is the room in at[]. */
enum { MOST_CUTS = 15 };

int changes_of(Kernel *k, UOp *u, UOp *r, int64_t *at);

static inline UOp *memory_of(const UOp *index) {
  UOp *m = index->src[0];
  while (m->op == OPS_AFTER)
    m = m->src[0];
  return m;
}

static inline UOp *stored_in(const UOp *store) { return memory_of(store->src[0]); }

/* Whether a STORE starts a register: its value does not depend on what the register holds. */
bool starts_register(Kernel *k, UOp *store);

/* Whether this PARAM holds the same values at every launch, so that a copy of it can be made once. */
static inline bool param_stays(const Kernel *k, const UOp *param) {
  return param->arg.param.slot < 64 && k->stays >> param->arg.param.slot & 1;
}

UOp *reg_new(Kernel *k, DType dtype, int naxis, UOp *const *extent);
UOp *reg_at(Kernel *k, UOp *reg, int n, UOp *const *at); /* the INDEX of a register */
UOp *write_new(Kernel *k, UOp *to, UOp *value, int n, UOp *const *expanded);
UOp *acc_new(Kernel *k, Ops op, UOp *acc, UOp *value, int n, UOp *const *expanded);
UOp *reg_start(Kernel *k, UOp *at, Ops op, int n, UOp *const *expanded); /* the STORE of the identity of op */
UOp *local_memory(Kernel *k, int dtype, int64_t nelem);                  /* new local memory */
/* A new register like reg, with one more axis for r unless r is NULL, and the INDEX of it that is like x. */
UOp *reg_like(Kernel *k, const UOp *reg, UOp *r);
UOp *reg_at_too(Kernel *k, UOp *reg, const UOp *x, UOp *r);
/* Lists the ranges of an ACC along which its register moves. */
int acc_moves(Kernel *k, const UOp *acc, UOp **list);

/* A register for partial results of what an ACC reduces. Lanes (opts.c), blocks of a long sum (sums.c) and threads
 * (gpu.c) all split a reduction by it. at: its INDEX. start: the STORE of the identity. merge: the ACC that merges
 * it into the register of the first ACC. */
typedef struct PartReg {
  UOp *at, *start, *merge;
} PartReg;

/* lane: NULL, or a range for each of whose values there is a partial result. NULL in the answer: out of memory, or
 * the register has too many axes. */
PartReg reg_part(Kernel *k, const UOp *acc, UOp *lane);

static inline bool is_loop(const UOp *u) { return u->op == OPS_LOOP; }

/* A loop that all threads of a block run together to fill the memory that they share. */
static inline bool is_shared(const UOp *u) { return is_loop(u) && u->src[0]->arg.range.of == LOCAL_OF_BLOCK; }

static inline AxisType loop_type(const UOp *loop) { return (AxisType)loop->src[0]->arg.range.type; }

/* The inner loop if a loop contains nothing else, otherwise NULL. */
static inline UOp *alone(const UOp *loop) {
  return loop->nsrc == 2 && is_loop(loop->src[1]) ? loop->src[1] : NULL;
}

UOp *body_of(Kernel *k, const UOp *loop);           /* the statements of a LOOP, as a SINK */
UOp *range_marked(Kernel *k, UOp *r, int of);       /* r with another arg.range.of; only a RANGE changes */
UOp *statement_with(Kernel *k, UOp *u, UOp *value); /* the STORE or ACC u with another value */
bool nest_edit(Kernel *k, UOp *old, UOp *with);     /* replaces `old` by the statements of a SINK */

/* TILE of a reduction in blocks of n iterations (blocked_sum.c). *is: whether the loop is a reduction that
 * this handles. Returns false on failure, with *why as for opt_stage, or if *is is false. */
bool opt_tile_sum(Kernel *k, UOp *loop, int64_t n, bool *is, const char **why);
bool opt_thread(Kernel *k, const Opt *o); /* thread.c */

/* TC or TC4 of a loop of rows and a loop of columns (tensor_cores.c). Fails as opt_stage does. */
bool opt_tc(Kernel *k, const Opt *o, const char **why);

/* The same on a CPU (panels.c). Fails as opt_stage does. */
bool opt_panels(Kernel *k, const Opt *o, const char **why);

/* DOUBLE_BUFFER of the blocks of a loop (double_buffer.c). Fails as opt_stage does. */
bool opt_double_buffer(Kernel *k, const Opt *o, const char **why);

/* The rows and columns of the tiles that TC or TC4 gives to a matrix unit of this device. Returns false if
 * op is another opt, or if the device has no unit for it that may be used. */
bool matrix_sides(const Kernel *k, OptOp op, int64_t *rows, int64_t *columns);

/* Whether u uses a matrix unit of four warps. */
bool has_groups(Kernel *k, UOp *u);

/* For units of four warps whose b is turned: whether each instruction begins at the beginning of a line of
 * b. That depends on how UPCAST and LOCAL have split the columns. */
bool groups_begin_lines(Kernel *k);

/* Whether neighbours in a fragment of b are in the same row. */
bool matrix_b_by_rows(const Kernel *k);

/* Bit i: the unit in row i of matrix.h's table may be used. */
uint32_t matrix_units(const Kernel *k);

/* Whether v is a product of the unit's types with one factor that does not move along the columns, *a, and
 * one that does not move along the rows, *b. */
struct MatrixShape;
bool matrix_product(Kernel *k, const UOp *v, const struct MatrixShape *s, const UOp *row, const UOp *column,
                    UOp **a, UOp **b);

/* Returns the unit that computes a product summed over `depth` steps, or NULL if there is none. */
const struct MatrixShape *matrix_for(Kernel *k, const UOp *product, int64_t depth, const UOp *row,
                                     const UOp *column);
/* Whether a loop writes running sums, which can be computed without running its iterations one after
 * another (join.c). */
bool is_scan(Kernel *k, const UOp *loop);

/* Whether the opts of a list can be applied to a kernel that is still a graph. They are tried on a copy,
 * because nodes never change. */
bool opts_fit(Kernel *k, const OptVec *list);

/* Splits a loop as opt `op` with size n does (opts.c). */
bool opt_split(Kernel *k, OptOp op, UOp *loop, int64_t n);
/* ONLINE of the axis of a loop, in blocks of n iterations (online.c). Fails as opt_stage does. */
bool opt_online(Kernel *k, UOp *loop, int64_t n, const char **why);
/* STAGE of the PARAM in this slot (stage.c). along: a loop, if only the reads that move with it are
 * copied, or EVERY_READ. On failure returns false, and *why is the reason, or NULL if out of memory. */
bool opt_stage(Kernel *k, int64_t slot, int64_t along, const char **why);
/* Whether STAGE can replace the gate of a read by zeros in the copy: the gate, except for the clauses in
 * `left`, is an interval of each axis. */
bool stage_takes_gate(Kernel *k, const UOp *index, const Clauses *left);
/* The clauses that the gates of all factors of a product share, except those that are an interval of the
 * axes of each factor. They stay with the statement that reads a copy, and bound its loops
 * (loop_bounds.c). Returns false if out of memory. */
bool clauses_asked(Kernel *k, UOp *value, Clauses *out);
/* stage.c: the dtype of a copy of what `index` reads: the dtype to which all nodes of `order` that read
 * `index` convert it, otherwise its own. */
DType stage_dtype(const Kernel *k, const UOpVec *order, const UOp *index);
#endif
