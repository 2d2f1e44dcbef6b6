/* expand.h: what expand.c, expand_loads.c and expand_units.c share: the statement that is being expanded, its ranges, and
 * what each node is for a chunk of them. */
#ifndef TG_EXPAND_H
#define TG_EXPAND_H
#include "codegen/nest.h"

/* MAX_EXP: ranges in the list of one statement. MAX_VECTOR: lanes. */
enum { MAX_EXP = MAX_LINEAR, MAX_VECTOR = 64 };

#define BIT(e) (UINT64_C(1) << (e))

typedef struct Chunk {
  int off, lanes;
} Chunk;

typedef struct ExpRange {
  UOp *r;
  int n, nchunk;
  bool vec;
  Chunk *chunk;
} ExpRange;

/* mask: expanded ranges below. sum: of index arithmetic, over all ranges of the statement; NULL: not asked
 * for yet (asked), or it is no such sum */
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
  ExpRange r[MAX_EXP]; /* of the statement: UNROLL first, lanes last */
  Val *val;
  UOpVec todo, order;
  Map pieces; /* (register, first element) -> the register that holds it now */
} Exp;

/* How an address moves along the lanes: +1 for each, not at all, or otherwise; a gate that moves makes it
 * otherwise. */
typedef enum Along { LANES_SAME, LANES_NEXT, LANES_OTHER } Along;

/* expand.c */
UOp *simple(Exp *x, UOp *u); /* simplified, but for its sources */
/* the place of each range for a chunk of each of them and a lane: 0 .. n - 1 */
void positions(const Exp *x, const int *chunk, int lane, int *pos);
/* Value of index arithmetic where each expanded range stands at pos[]: made when first asked for, with the
 * sources that it needs. */
UOp *lane_value(Exp *x, UOp *u, const int *pos);
UOp *gate_lane(Exp *x, UOp *u, const int *pos); /* the same of a gate, which may be data */
/* n lanes of the vectors a and b, of equal width: lane[l] is an index into the lanes of a, followed by those of b */
UOp *shuffle(Exp *x, UOp *a, UOp *b, int n, const int64_t *lane);
/* u in so many lanes; itself, if it has them */
UOp *splat(Exp *x, UOp *u, int lanes);
/* u for one chunk of each range */
UOp *chunk_value(Exp *x, UOp *u, const int *chunk);
/* the register that holds a chunk of what index names */
UOp *reg_piece(Exp *x, UOp *index, const int *chunk);
/* expand_loads.c */
bool is_past(Exp *x, UOp *b, UOp *a, int n); /* whether address b is n past a */
/* other: the constant that a lane is where its gate is false */
UOp *make_load(Exp *x, UOp *index, UOp *other, const int *chunk, int lanes, Along way);
/* expand_units.c */
bool is_fragment(const ExpRange *r); /* it counts elements of an operand, in WMMA alone */
bool write_matrix(Exp *x, UOp *u, const int *chunk, UOpVec *out); /* a step whose operands are fragments */
bool write_block(Exp *x, UOp *u, UOpVec *out);                    /* sums whose operands are memory */
#endif
