/* spec.h: what a well-formed graph is, after each stage. In: a graph or a linear program. Out: the first node
 * that breaks a law, and the law. */
#ifndef TG_SPEC_H
#define TG_SPEC_H
#include "uop/uop.h"

typedef enum GraphKind {
  GRAPH_TENSOR, /* nodes with shapes, movement ops, no loops */
  GRAPH_STAGES, /* after rangeify: RANGE, INDEX with one expression per axis, REDUCE; no movement op */
  GRAPH_KERNEL, /* SINK of STOREs; INDEX has one flat offset; loops are GLOBAL, LOOP or REDUCE */
  GRAPH_NEST,   /* LOOPs of statements in order; ranges of every type; STORE and ACC list expanded ones */
  GRAPH_LOOPS,  /* after expand: a nest of vectors and explicit loads; no UPCAST, VEC, UNROLL or GROUP loop */
  GRAPH_LINEAR, /* a program, as uop.h describes it */
  GRAPH_KINDS
} GraphKind;

extern const char *const graph_kind_names[GRAPH_KINDS]; /* "tensor", "stages", .. */

/* node NULL: out of memory */
typedef struct SpecError {
  const UOp *node;
  char why[200];
} SpecError;

bool spec_graph(UOpStore *st, TgMem *mem, GraphKind kind, UOp *const *roots, size_t nroots, SpecError *bad);
/* Whether such a node can be made: it has enough sources, its axes exist, its sizes fit. False with an empty
 * `why`: out of memory. */
bool spec_new(UOpStore *st, TgMem *mem, Ops op, DType dtype, int lanes, int nsrc, UOp *const *src, Arg arg,
              SpecError *bad);
bool spec_linear(const Linear *lin, TgMem *mem, SpecError *bad);
#endif
