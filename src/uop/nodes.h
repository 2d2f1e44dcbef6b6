/* nodes.h: builders of tensor-graph nodes. They return NULL if an argument is NULL. A trivial operation
 * returns its source. */
#ifndef TG_NODES_H
#define TG_NODES_H
#include "uop/dims.h"

Scalar scalar_number(DType d, double v); /* v as a constant of d: integers truncate and saturate, NaN is 0 */
UOp *u_reshape(UOpStore *st, UOp *u, int n, const int64_t *d);
UOp *u_permute(UOpStore *st, UOp *u, const int64_t *order);
UOp *u_expand(UOpStore *st, UOp *u, const int64_t *d); /* same rank */
UOp *u_pad(UOpStore *st, UOp *u, const int64_t *lohi);
UOp *u_shrink(UOpStore *st, UOp *u, const int64_t *be);
UOp *u_flip(UOpStore *st, UOp *u, const int64_t *flags);
UOp *u_reduce(UOpStore *st, Ops op, UOp *u, const bool *mask); /* reduced axes stay with size 1 */
UOp *u_drop(UOpStore *st, UOp *u, const bool *mask);           /* removes axes of size 1 */
UOp *u_broadcast(UOpStore *st, UOp *u, const Ints *shape);     /* NumPy's rule; shapes must fit */
UOp *u_full(UOpStore *st, DType dtype, Scalar v, const Ints *shape);
/* the constant v with the dtype and shape of `like`, converted by scalar_number */
UOp *u_num(UOpStore *st, double v, const UOp *like);
/* a tensor with the value of a size, which is a number or symbolic */
UOp *u_size(UOpStore *st, int64_t size, DType dtype, const Ints *shape);
UOp *u_not(UOpStore *st, UOp *u); /* logical not of a bool */
/* the index along axis, at every element of shape */
UOp *u_arange(UOpStore *st, const Ints *shape, int axis, DType dtype);
/* A running reduction by op along axis: each element is combined with all elements before it. dtype: u's own,
 * or f32 if u is f64; it is then carried in f64 and each result is rounded. */
UOp *u_scan_axis(UOpStore *st, Ops op, UOp *u, DType dtype, int axis);
#endif
