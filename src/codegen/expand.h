/* expand.h: shared by expand.c, expand_loads.c and expand_units.c: the statement that is being expanded,
 * its ranges, and the value of each node for each chunk of the ranges. */
#ifndef TG_EXPAND_H
#define TG_EXPAND_H
#include "codegen/nest.h"

/* MAX_EXP: most ranges in the list of one statement. MAX_VECTOR: most lanes of a vector. */
enum { MAX_EXP = MAX_LINEAR, MAX_VECTOR = 64 };

#define BIT(e) (UINT64_C(1) << (e))

/* Iterations off .. off + lanes - 1 of a range, which one value holds. */
typedef struct Chunk {
  int off, lanes;
} Chunk;

typedef struct ExpRange {
  UOp *r;
  int n, nchunk;
  bool vec;
  Chunk *chunk;
} ExpRange;

/* What a node has become. mask: bit i: range r[i] of the statement is below the node. per_lane: index
 * arithmetic, made lane by lane; other values are made in chunks. at: the values made, by the lanes or
 * chunks of the ranges in mask. sum: index arithmetic as a linear sum over all ranges of the statement;
 * NULL: not computed yet (see `asked`), or no such sum. */
typedef struct Val {
  uint64_t mask;
  bool per_lane, asked;
  uint32_t count;
  UOp **at;
  const LinearIn *sum;
} Val;

typedef struct Exp {
  Kernel *k;
  Arena arena;
  int n;
  ExpRange r[MAX_EXP]; /* of the statement: UNROLL ranges first, lanes last */
  Val *val;
  UOpVec todo, order;
  Map pieces; /* (register, first element) -> the register that now holds that element */
} Exp;

/* How an address moves from one lane to the next: not at all, by one element, or in any other way. A gate
 * that moves makes it LANES_OTHER. */
typedef enum Along { LANES_SAME, LANES_NEXT, LANES_OTHER } Along;

/* expand.c */
UOp *simple(Exp *x, UOp *u); /* u with its top node simplified; its sources are simple already */
/* Writes to pos[] the iteration, 0 .. n - 1, of each range for one chunk of each range and a lane. */
void positions(const Exp *x, const int *chunk, int lane, int *pos);
/* The value of index arithmetic in the iteration pos[] of the expanded ranges. It is made at the first
 * call, with the sources that it needs. */
UOp *lane_value(Exp *x, UOp *u, const int *pos);
UOp *gate_lane(Exp *x, UOp *u, const int *pos); /* the same for a gate, which may be data */
/* n lanes of the vectors a and b, of equal width: lane[l] is an index into the lanes of a, followed by
 * those of b. */
UOp *shuffle(Exp *x, UOp *a, UOp *b, int n, const int64_t *lane);
/* u in each of `lanes` lanes, or u itself if it has that many lanes. */
UOp *splat(Exp *x, UOp *u, int lanes);
/* The value of u for one chunk of each range. */
UOp *chunk_value(Exp *x, UOp *u, const int *chunk);
/* The register that holds what `index` names for this chunk. */
UOp *reg_piece(Exp *x, UOp *index, const int *chunk);
/* expand_loads.c */
bool is_past(Exp *x, UOp *b, UOp *a, int n); /* whether address b is n elements past address a */
/* other: the value of a lane whose gate is false, a constant */
UOp *make_load(Exp *x, UOp *index, UOp *other, const int *chunk, int lanes, Along way);
/* expand_units.c */
bool is_fragment(const ExpRange *r); /* whether r counts elements of an operand: only WMMA has such ranges */
bool write_matrix(Exp *x, UOp *u, const int *chunk, UOpVec *out); /* a step whose operands are fragments */
bool write_block(Exp *x, UOp *u, UOpVec *out);                    /* sums whose operands are in memory */
#endif
