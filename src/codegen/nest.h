/* nest.h: a kernel as a tree of loops. In: a kernel's graph, where a STORE or REDUCE lists its loops. Out: a
 * SINK of statements in order; what runs again is a LOOP of statements:
 *
 * - STORE(INDEX(m, ..), value, r..): value is written to m, for all values of the expanded ranges r..
 * (UPCAST, VEC, UNROLL, GROUP), those of UNROLL in order.
 * - ACC[op](INDEX(reg, ..), value, r..): the register becomes itself op value.
 * - LOOP(r, statement..): the statements, in order, in every iteration of r. Iterations of a LOCAL loop `of
 * block` are distributed to all threads of the block: the loops around that are threads do not repeat it.
 * - BARRIER(): all threads of a block arrive before any goes on.
 *
 * A LOOP over blocks of a reduction (is_block) that writes no buffer is one of an ONLINE: where no step of a
 * iteration counts, the iteration changes nothing.
 *
 * A value is an expression that is computed where its statement stands: an INDEX of a register (DEFINE_REG)
 * or of local memory reads what it holds then, an INDEX of a PARAM what it held before the kernel, unless an
 * ORDERED loop writes it. A register has an axis for each expanded range that it is apart for:
 * DEFINE_REG(extent..). */
#ifndef TG_NEST_H
#define TG_NEST_H
#include "codegen/codegen.h"

/* A statement and the place of the LOOP around it (-1: none); outer before inner, in order. */
typedef struct Place {
  UOp *u;
  int up, depth;
} Place;

typedef Vec(Place) PlaceVec;

/* All nodes that u is made of, sources first, added to *order. False: out of memory. */
bool kernel_nodes(Kernel *k, UOp *u, UOpVec *order);
/* u with to[i] in place of from[i]. NULL: out of memory. */
UOp *kernel_with(Kernel *k, UOp *u, int n, UOp *const *from, UOp *const *to);

/* ---- index arithmetic. NULL where a source is, or out of memory. */
static inline UOp *num(Kernel *k, int64_t v) { return uop_index_const(k->st, v); }

static inline UOp *add(Kernel *k, UOp *x, UOp *y) { return uop_alu2(k->st, OPS_ADD, x, y); }

UOp *simp(Kernel *k, UOp *u);

/* a op b, simplified: all of it, or, where a and b are simple, its top alone. */
UOp *ix(Kernel *k, Ops op, UOp *a, UOp *b);
UOp *ix_top(Kernel *k, Ops op, UOp *a, UOp *b);

/* The lesser, as -max(-a, -b): bounds see through it. */
UOp *ix_min(Kernel *k, UOp *a, UOp *b);

/* The INDEX where `gate` holds too. */
UOp *index_gated(Kernel *k, UOp *x, UOp *gate);

/* ---- the tree */

bool nest_build(Kernel *k);
bool nest_places(const Kernel *k, UOp *root, PlaceVec *out);
UOp *loop_new(Kernel *k, UOp *range, int n, UOp *const *body);

/* Its expressions simplified; loops of one iteration are no loops. */
UOp *nest_simplify(Kernel *k, UOp *sink);

/* The tree with `old` replaced by n statements (0: taken away). NULL: out of memory, or it is not there. */
UOp *nest_replace(Kernel *k, UOp *root, const UOp *old, int n, UOp *const *with);

/* `u` over loops, registers and local memory of its own, where it fills them itself, and with from[i] ->
 * to[i]. */
UOp *nest_copy(Kernel *k, UOp *u, int n, UOp *const *from, UOp *const *to);

/* Whether u, or a statement below it, writes this memory. */
bool nest_stores_to(const UOp *u, const UOp *memory);

/* Bytes of the local memory that statements below `root` touch; -1: out of memory. */
int64_t nest_local_bytes(Kernel *k, UOp *root);

/* The kernel's loop that a range is a part of, or a negative number: none. */
static inline int64_t range_root(const UOp *r) {
  return r->arg.range.of ? (int64_t)r->arg.range.of - 1 : r->arg.range.id;
}

/* The loop over the blocks of a TILE: of the kernel's loop block_root. */
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

/* Whether range r is in u, however many ranges the kernel has: those past 62 share a bit of u->ranges. */
bool depends(Kernel *k, UOp *u, const UOp *r);

enum { MOST_CLAUSES = 32 };

/* The clauses of a gate, and how many: conjunctions taken apart, as far as there is room. */
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

/* What the gates of all factors of a product ask: where one of these clauses fails, each factor is 0. None: it
 * is another value, or a factor has no gate. */
void product_clauses(UOp *value, Clauses *out);

/* A clause that is a comparison, or one that must not hold. */
static inline const UOp *clause_of(const UOp *g, bool *holds) {
  *holds = !(g->op == OPS_CMPNE && is_const_int(g->src[1], 1));
  return *holds ? g : g->src[0];
}

/* How much e grows when r does by one: the same everywhere, or false. */
bool moves_evenly(Kernel *k, UOp *e, UOp *r, int64_t *step);

/* The iterations of r in which something that u computes of r alone changes, a comparison, a quotient, which of two
 * is the greater: how many. 0: there are none, or more than MOST_CUTS, which at[] has room for. */
enum { MOST_CUTS = 15 };

int changes_of(Kernel *k, UOp *u, UOp *r, int64_t *at);

static inline UOp *memory_of(const UOp *index) {
  UOp *m = index->src[0];
  while (m->op == OPS_AFTER)
    m = m->src[0];
  return m;
}

static inline UOp *stored_in(const UOp *store) { return memory_of(store->src[0]); }

/* Whether a STORE begins a register: what it writes is not made of what the register holds. */
bool starts_register(Kernel *k, UOp *store);

/* Whether this PARAM holds the same at every launch, so that a copy of it can be made once. */
static inline bool param_stays(const Kernel *k, const UOp *param) {
  return param->arg.param.slot < 64 && k->stays >> param->arg.param.slot & 1;
}

UOp *reg_new(Kernel *k, DType dtype, int naxis, UOp *const *extent);
UOp *reg_at(Kernel *k, UOp *reg, int n, UOp *const *at); /* its INDEX */
UOp *write_new(Kernel *k, UOp *to, UOp *value, int n, UOp *const *expanded);
UOp *acc_new(Kernel *k, Ops op, UOp *acc, UOp *value, int n, UOp *const *expanded);
UOp *reg_start(Kernel *k, UOp *at, Ops op, int n,
               UOp *const *expanded); /* the statement: the identity of op */

static inline bool is_loop(const UOp *u) { return u->op == OPS_LOOP; }

/* A loop that all threads of a block turn together: they fill what they share. */
static inline bool is_shared(const UOp *u) { return is_loop(u) && u->src[0]->arg.range.of == LOCAL_OF_BLOCK; }

static inline AxisType loop_type(const UOp *loop) { return (AxisType)loop->src[0]->arg.range.type; }

/* The loop that is all that a loop holds, or NULL. */
static inline UOp *alone(const UOp *loop) {
  return loop->nsrc == 2 && is_loop(loop->src[1]) ? loop->src[1] : NULL;
}

UOp *body_of(Kernel *k, const UOp *loop);           /* a LOOP's statements, as a SINK */
UOp *range_marked(Kernel *k, UOp *r, int of);       /* r with another arg.range.of; what is no range stays */
UOp *statement_with(Kernel *k, UOp *u, UOp *value); /* a STORE or ACC of another value */
bool nest_edit(Kernel *k, UOp *old,
               UOp *with); /* the kernel with `old` replaced by the statements of a SINK */

/* TILE of a reduction in blocks of n iterations (blocked_sum.c). False: as STAGE; or, with *is false, it is
 * no such one. */
bool opt_tile_sum(Kernel *k, UOp *loop, int64_t n, bool *is, const char **why);
bool opt_thread(Kernel *k, const Opt *o); /* thread.c */

/* TC or TC4 of a loop of rows and one of columns (tensor_cores.c). False: as STAGE. */
bool opt_tc(Kernel *k, const Opt *o, const char **why);

/* The same on a CPU (panels.c). */
bool opt_panels(Kernel *k, const Opt *o, const char **why);

/* DOUBLE_BUFFER of the blocks of a loop (double_buffer.c). False: as STAGE. */
bool opt_double_buffer(Kernel *k, const Opt *o, const char **why);

/* The rows and columns of the tiles that TC, or TC4, gives to a unit of this device; false: it has none that
 * may be used, or the opt is another one. */
bool matrix_sides(const Kernel *k, OptOp op, int64_t *rows, int64_t *columns);

/* Whether units of four warps are in it. */
bool has_groups(Kernel *k, UOp *u);

/* Whether each instruction of units of four warps begins where a line of b does, of a b that is turned: what
 * UPCAST and LOCAL have made of its columns says so. */
bool groups_begin_lines(Kernel *k);

/* Whether neighbours in a fragment of b are of one row. */
bool matrix_b_by_rows(const Kernel *k);

/* Rows of matrix.h that may be used, as bits. */
uint32_t matrix_units(const Kernel *k);

/* Whether v is a product of the unit's types, of which one factor does not move along the columns, and the
 * other not along the rows: *a moves along the rows. */
struct MatrixShape;
bool matrix_product(Kernel *k, const UOp *v, const struct MatrixShape *s, const UOp *row, const UOp *column,
                    UOp **a, UOp **b);

/* The unit that takes a product summed over `depth` steps; NULL: none. */
const struct MatrixShape *matrix_for(Kernel *k, const UOp *product, int64_t depth, const UOp *row,
                                     const UOp *column);
/* Whether a loop writes running sums, which do not need its iterations one after another (scan.c). */
bool is_scan(Kernel *k, const UOp *loop);

/* Whether the opts take a list: on a copy of a kernel that is a graph yet, as nodes never change. */
bool opts_fit(Kernel *k, const OptVec *list);

/* Splits a loop as opt `op` with n does (opts.c). */
bool opt_split(Kernel *k, OptOp op, UOp *loop, int64_t n);
/* ONLINE of the axis of a loop into blocks of n iterations (online.c). False: as STAGE. */
bool opt_online(Kernel *k, UOp *loop, int64_t n, const char **why);
/* STAGE of the PARAM of this slot (stage.c). along: a range, of what moves with it, or EVERY_READ. False: *why
 * says why not, or out of memory. */
bool opt_stage(Kernel *k, int64_t slot, int64_t along, const char **why);
/* Whether the gate of a read is what STAGE can put zeros for: an interval of each axis. */
bool stage_takes_gate(Kernel *k, const UOp *index, const Clauses *left);
/* Of what all factors of a product ask, what is no interval of the axes of one of them: it stays with what reads
 * a copy, and bounds the loops (loop_bounds.c). False: out of memory. */
bool clauses_asked(Kernel *k, UOp *value, Clauses *out);
/* stage.c: what a copy of what `index` reads holds: the dtype that all nodes of `order` that read it convert
 * it to, or its own. */
DType stage_dtype(const Kernel *k, const UOpVec *order, const UOp *index);
#endif
