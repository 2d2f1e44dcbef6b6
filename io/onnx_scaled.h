/* onnx_scaled.h: values of a quantised model as integers with a known scale: the real number is the
 * integer times the scale. Shared by the files that run such a model with integers alone. Scales are
 * numbers of this process, not of the graph. */
#ifndef TG_ONNX_SCALED_H
#define TG_ONNX_SCALED_H
#include "onnx_private.h"
#include <math.h>

/* SUM_BITS: bits of sums of values with different scales; FACTOR_BITS: bits of factors */
enum { RANK = TG_MAX_RANK, SUM_BITS = 28, FACTOR_BITS = 15 };

/* most: a bound of the integers' magnitude. scale: one number, or n numbers along `axis`. plain: the
 * quantised tensor that the integers came from, or NULL. real: the real numbers if they are constants,
 * nreal of them; otherwise NULL. */
struct OnnxScaled {
  OnnxScaled *next;
  double most;
  int axis;
  int64_t n, nreal;
  TgTensor *plain;
  double *real;
  double scale[];
};

/* An operand: integers of 32 bits, and the numbers they represent. t NULL: an error. */
typedef struct Scaled {
  TgTensor *t;
  const OnnxScaled *s;
} Scaled;

static const Scaled scaled_none = {NULL, NULL};

OnnxScaled *scaled_new(OnnxCall *c, int64_t n, int axis, double most); /* lives as long as the run */
OnnxScaled *scaled_one(OnnxCall *c, double scale, double most);
double scaled_greatest(const double *v, int64_t n); /* the greatest |v| */
/* A constant of the graph: v along one axis of a tensor of that rank, or as a single number. */
TgTensor *scaled_constant(OnnxCall *c, const double *v, int64_t n, int axis, int rank, TgDType d);

/* x * ratio, rounded, halves to even, as i64. ratio: n numbers along axis, > 0. */
TgTensor *scaled_multiplied(OnnxCall *c, TgTensor *x, const double *ratio, int64_t n, int axis);
Scaled scaled_at(OnnxCall *c, Scaled x, double scale);   /* the same value with another scale, one number */
double scaled_unit(Scaled x, int bits);                  /* the scale by which `most` takes this many bits */
Scaled scaled_uniform(OnnxCall *c, Scaled x);            /* the same value with a single scale */
Scaled scaled_narrowed(OnnxCall *c, Scaled x, int bits); /* with a single scale, in at most this many bits */
/* all with one scale, with room for the sum of two */
bool scaled_alike(OnnxCall *c, Scaled *x, int n);
Scaled scaled_merged(OnnxCall *c, Scaled a, Scaled b, TgTensor *(*how)(TgTensor *, TgTensor *));

/* Reads input ix, a quantised tensor with the scale of input `is` and the zero point of input iz. If there
 * are several scales or zero points, they are along axis `along`. */
Scaled scaled_read(OnnxCall *c, int ix, int is, int iz, int64_t along);
/* Quantises x to dtype d by the scale of input `is` and the zero point of input iz. */
TgTensor *scaled_written(OnnxCall *c, Scaled x, int is, int iz, TgDType d, int64_t along);
/* Input i; a constant of floats is converted to integers of this many bits. */
Scaled scaled_operand(OnnxCall *c, int i, int bits);
/* the numbers of input i, which must be a constant of integers or floats */
bool scaled_reals(OnnxCall *c, int i, const double **v, int64_t *n);

/* onnx_integer_rows.c. of: the function; NULL: the function that the node computes */
Scaled scaled_table(OnnxCall *c, Scaled x, double (*of)(double x)); /* a function of a single number */
Scaled scaled_softmax(OnnxCall *c, Scaled x, int opset, bool log);
Scaled scaled_norm(OnnxCall *c, const Scaled *in); /* norms: layer, group, instance, root mean square */
#endif
