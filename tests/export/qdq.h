/* qdq.h: quantised ONNX models, written for the tests. In: nodes, constants. Out: a model that is open. */
#ifndef EXPORT_QDQ_H
#define EXPORT_QDQ_H
#include "tg_io.h"

typedef struct Net Net;

Net *net_new(void);
void net_free(Net *n);
void net_opset(Net *n, int opset); /* 18 without it; i16 wants 21 */
TgOnnx *net_open(Net *n, TgContext *c);
void net_input(Net *n, const char *name, TgDType d, int ndim, const int64_t *dims);
void net_output(Net *n, const char *name, TgDType d);
void net_constant(Net *n, const char *name, TgDType d, int ndim, const int64_t *dims, const void *values);
/* in, out: names, a blank between; attrs: "axis=1 alpha=0.5 pads=1,1,1,1" */
void net_node(Net *n, const char *op, const char *in, const char *out, const char *attrs);

/* ---- what quantised models are made of. Names that they return live as long as n. */
/* x through QuantizeLinear and DequantizeLinear; signed_: i8, else u8. */
const char *net_quantised(Net *n, const char *x, double scale, int zero, bool signed_);
const char *net_quantised_as(Net *n, const char *x, double scale, int zero, TgDType d);
/* Weights of 8 bits and their DequantizeLinear, with a scale for each of an axis (-1: one for all) .. */
const char *net_weight(Net *n, int ndim, const int64_t *dims, double scale, int axis);
/* .. and a bias of 32 bits by the scale of the sums. */
const char *net_bias(Net *n, int64_t channels, double x_scale, double w_scale, bool each);

/* A name that nothing else has, and random floats in lo .. hi as a constant. */
const char *net_name(Net *n, const char *what);
const char *net_floats(Net *n, int ndim, const int64_t *dims, double lo, double hi);

/* A constant that is such a scale, or zero point; their names. */
const char *net_scale(Net *n, double scale);
const char *net_zero(Net *n, int zero, TgDType d);

/* Whole networks with an input x: of a digit's picture, u8, (1, 1, 28, 28), and of 49 x 10 sounds. q: by
 * QLinear operators. */
Net *net_digit(bool q);
Net *net_keyword(void);
#endif
