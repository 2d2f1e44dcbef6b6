/* onnx_scaled.h: values of a quantised model as integers beside a scale that is known: the real number is the
 * integer times the scale. Shared by the files that run such a model with integers alone. Scales are numbers
 * of this process. */
#ifndef TG_ONNX_SCALED_H
#define TG_ONNX_SCALED_H
#include "onnx_private.h"
#include <math.h>

/* SUM_BITS: of sums of values whose scales differ; FACTOR_BITS: of factors */
enum { RANK = TG_MAX_RANK, SUM_BITS = 28, FACTOR_BITS = 15 };

/* most: a bound of the integers. scale: one number, or n along `axis`. plain: the quantised tensor that it
 * was, or NULL. real: its numbers where they are constants, nreal of them; else NULL. */
struct OnnxScaled {
  OnnxScaled *next;
  double most;
  int axis;
  int64_t n, nreal;
  TgTensor *plain;
  double *real;
  double scale[];
};

/* An operand: integers of 32 bits, and what they stand for. t NULL: an error. */
typedef struct Scaled {
  TgTensor *t;
  const OnnxScaled *s;
} Scaled;

static const Scaled scaled_none = {NULL, NULL};

OnnxScaled *scaled_new(OnnxCall *c, int64_t n, int axis, double most); /* it lives as long as the run */
OnnxScaled *scaled_one(OnnxCall *c, double scale, double most);
double scaled_greatest(const double *v, int64_t n); /* of |v| */
/* v along one axis of a tensor of that rank, or alone, as a constant of the graph. */
TgTensor *scaled_constant(OnnxCall *c, const double *v, int64_t n, int axis, int rank, TgDType d);

/* x * ratio, rounded, halves to even, as i64. ratio: n along axis, > 0. */
TgTensor *scaled_multiplied(OnnxCall *c, TgTensor *x, const double *ratio, int64_t n, int axis);
Scaled scaled_at(OnnxCall *c, Scaled x, double scale);   /* the same value by another scale, one number */
double scaled_unit(Scaled x, int bits);                  /* by which `most` of the value takes so many bits */
Scaled scaled_uniform(OnnxCall *c, Scaled x);            /* by one scale */
Scaled scaled_narrowed(OnnxCall *c, Scaled x, int bits); /* by one scale, of no more bits */
bool scaled_alike(OnnxCall *c, Scaled *x, int n);        /* all by one, with room for the sum of two */
Scaled scaled_merged(OnnxCall *c, Scaled a, Scaled b, TgTensor *(*how)(TgTensor *, TgTensor *));

/* Reads input ix, a quantised tensor with the scale of input `is` and the zero point of input iz (several of
 * them: along that axis). */
Scaled scaled_read(OnnxCall *c, int ix, int is, int iz, int64_t along);
/* Quantises x to dtype d by the scale of input `is` and the zero point of input iz. */
TgTensor *scaled_written(OnnxCall *c, Scaled x, int is, int iz, TgDType d, int64_t along);
/* Input i; a constant of floats becomes integers of so many bits. */
Scaled scaled_operand(OnnxCall *c, int i, int bits);
bool scaled_reals(OnnxCall *c, int i, const double **v, int64_t *n); /* input i, a constant of either kind */

/* onnx_integer_rows.c. of: NULL, or what the node computes */
Scaled scaled_table(OnnxCall *c, Scaled x, double (*of)(double x)); /* a function of one number */
Scaled scaled_softmax(OnnxCall *c, Scaled x, int opset, bool log);
Scaled scaled_norm(OnnxCall *c, const Scaled *in); /* layer, group, instance, root mean square */
#endif
