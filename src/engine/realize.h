/* realize.h: what realize.c and versions.c share. */
#ifndef TG_REALIZE_H
#define TG_REALIZE_H
#include "engine/graph_copy.h"

/* Tensor t becomes the value of a root. made: the memory of the value; NULL: another result has it. */
typedef struct Result {
  TgTensor *t;
  size_t root;
  UOp *expr;
  UOp *made;
} Result;

typedef struct Run {
  TgContext *ctx;
  Graph g;
  Vec(Result) results;
} Run;

/* Which graphs may need the contents of some memories. of: a set of bits in which each memory has bit uid
 * % 64; a graph without any of these bits does not need them. all: every graph may, because a memory holds
 * the value of a constant expression. values: the bits of the graphs whose values the memories hold. */
typedef struct Bits {
  uint64_t of, values;
  bool all;
} Bits;

Bits bits_of(TgContext *ctx, Buffer *const *b, size_t n);

static inline bool may_need(Bits bits, const UOp *u) { return bits.all || (u->ranges & bits.of); }

/* Called before n memories are stored to. Copies each version that the graph of a live handle reads and
 * that is nowhere else. Three kinds of readers do not count: handles of the memory itself, which move on
 * to the next version; the results of run r (NULL: none), which are computed now; and expressions of
 * variables, which are computed again. A memory that was never stored to cannot have been read. Returns
 * false if an error was recorded. */
bool old_versions_kept(TgContext *ctx, Buffer *const *stored, size_t n, const Run *r);
#endif
