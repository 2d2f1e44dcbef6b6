/* front.h: what the files of src/tensor share: graph builders that know shapes, and checks of arguments. */
#ifndef TG_FRONT_H
#define TG_FRONT_H
#include "tensor/context.h"
#include "uop/nodes.h"
#include <math.h>
#include <string.h>

_Static_assert(MAX_RANK == TG_MAX_RANK, "one rank");

typedef struct ShapeText {
  char s[256];
} ShapeText;

ShapeText dims_text(UOpStore *st, int n, const int64_t *v); /* "(2, n + 1)" */
ShapeText shape_text(UOpStore *st, const Ints *s);
ShapeText tensor_text(const TgTensor *t);
#define SHAPE_OF(t) tensor_text(t).s

#define TG_REQUIRE_OR(ctx, cond, result, status, ...)                                                        \
  do {                                                                                                       \
    if (!(cond)) {                                                                                           \
      error_set(&(ctx)->err, (status), __VA_ARGS__);                                                         \
      return result;                                                                                         \
    }                                                                                                        \
  } while (0)
#define TG_REQUIRE(ctx, cond, status, ...) TG_REQUIRE_OR(ctx, cond, NULL, status, __VA_ARGS__)
/* A list of n that the caller must pass: NULL is an error unless n is 0. */
#define TG_LIST_OR(ctx, op, list, n, result)                                                                 \
  TG_REQUIRE_OR(ctx, (list) != NULL || (n) <= 0, result, TG_ERR_VALUE,                                       \
                "%s: NULL where a list of %lld is needed", (op), (long long)(n))
#define TG_LIST(ctx, op, list, n) TG_LIST_OR(ctx, op, list, n, NULL)
/* Copies the caller's options, whatever size their struct has in the caller's header. If that size is 0,
 * the function returns. */
#define TG_OPTIONS_OR(ctx, op, T, v, o, result)                                                              \
  T v;                                                                                                       \
  if (tg_options_read((ctx), (op), #T, &v, sizeof v, (o))) return result
#define TG_OPTIONS(ctx, op, T, v, o) TG_OPTIONS_OR(ctx, op, T, v, o, NULL)

/* ---- dtypes */
DType dtype_of(TgDType d, DType fallback); /* DTYPE_DEFAULT gives fallback, an unknown dtype DT_VOID */
TgDType dtype_public(DType d);
DType dtype_join(DType a, DType b);
double dtype_lowest(DType d); /* the limits of an integer dtype or bool */
double dtype_highest(DType d);

static inline DType dtype_as_float(DType d) { return dtype_is_float(d) ? d : DT_F32; }

static inline DType dt(const TgTensor *t) { return (DType)t->uop->dtype; }

static inline TgTensor *as_float(TgTensor *x) {
  return x && !dtype_is_float((DType)x->uop->dtype) ? tensor_cast(x, TG_F32) : x;
}

/* A function that is made of several operations computes narrow floats and integers in f32 and rounds
 * once. as_wide returns x as it is computed with; as_narrow returns the result r in the dtype of a
 * function of x. */
TgTensor *as_wide(TgTensor *x);

TgTensor *as_narrow(TgTensor *r, const TgTensor *x);

static inline int rank(const TgTensor *t) { return t->uop->shape->n; }

/* Sizes may be numbers or symbolic: use the functions of dims.h to compute with them. */
static inline const int64_t *dims(const TgTensor *t) { return t->uop->shape->v; }

static inline int64_t nelem(const TgTensor *t) { return dim_product(t->ctx->store, t->uop->shape); }

/* The size of an axis; a negative axis counts from the end. -1: there is no such axis. */
static inline int64_t dim_at(const TgTensor *t, int axis) {
  int a = axis < 0 ? axis + rank(t) : axis;
  return a >= 0 && a < rank(t) ? dims(t)[a] : -1;
}

static inline bool is_negative(int64_t d) { return d < 0 && !dim_symbolic(d); }

static inline bool is_index_dtype(const TgTensor *t) { return !dtype_is_float(dt(t)) && dt(t) != DT_BOOL; }

/* ---- checks */
/* Returns the context of two tensors. NULL: one is NULL, or they are of different contexts, which is
 * recorded. */
TgContext *ctx_two(const char *op, const TgTensor *a, const TgTensor *b);
int axis_get(TgContext *ctx, const char *op, int axis, int n); /* 0 .. n-1; -1: an error was recorded */
/* Checks rank, signs and overflow. */
bool shape_check(TgContext *ctx, const char *op, int n, const int64_t *d, int64_t *nelem);
/* For functions that need sizes that are numbers. Returns false if one is symbolic, which is recorded with
 * its axis. */
bool dims_numbers(TgContext *ctx, const char *op, int n, const int64_t *d);
/* checks the axes from `first` on; NULL passes */
bool last_numbers(const TgTensor *x, const char *op, int first);
/* like axis_get, but the axis's size must be a number */
int axis_number(const TgTensor *x, const char *op, int axis);
#define TG_NUMBERS_OR(x, op, result)                                                                         \
  do {                                                                                                       \
    if (!last_numbers((x), (op), 0)) return result;                                                          \
  } while (0)
#define TG_NUMBERS(x, op) TG_NUMBERS_OR(x, op, NULL)
/* Returns NULL if an error was recorded. */
const Ints *shape_broadcast(TgContext *ctx, const char *op, const Ints *a, const Ints *b);
/* no axis named: all axes */
TgAxes axes_or(const TgAxes *a, int axis); /* that axis if none is given */
bool axes_get(TgContext *ctx, const char *op, const TgAxes *a, int n, bool mask[TG_MAX_RANK]);

/* Resolves the bounds of a slice of an axis with symbolic sizes to 0 .. its size. They are clamped if it
 * is known on which side they lie; otherwise an error is recorded and false is returned. */
bool slice_bounds(const char *op, TgTensor *x, int axis, int64_t *begin, int64_t *end);

/* ---- devices (place.c) */
TgTensor *tensor_on(TgTensor *t, int device); /* copies it there unless it is there already */
/* Whether sums by tg_dot4 are faster than sums by tg_dot2 on t's device, if no byte of x is more than
 * `most`. */
bool tensor_has_dot4(const TgTensor *t, int most);
/* x * y + z, all of one dtype. */
TgTensor *tensor_mulacc(TgTensor *x, TgTensor *y, TgTensor *z);
TgTensor *tensor_placed(TgTensor *t, const char *op, const char *device); /* NULL: where it is */
TgTensor *tensor_empty(TgContext *ctx, const char *device, TgDType dtype, int n, const int64_t *d);
TgTensor *tensor_from(TgContext *ctx, int device, const void *data, TgDType dtype, int n, const int64_t *d);
UOp *u_min(UOpStore *st, UOp *a, UOp *b);
UOp *u_sum_to(UOpStore *st, UOp *u, const Ints *shape); /* adds up what a broadcast from shape repeated */
/* layout.c. If u is windows of an axis of some node and g its gradient, returns the gradient of that node,
 * which becomes *of. NULL: u is not windows. */
UOp *u_windows_gradient(UOpStore *st, UOp *u, UOp *g, UOp **of);
/* Turns the last n axes into windows.., k... lo, hi: zeros added before and after each axis. */
UOp *u_windows_nd(UOpStore *st, UOp *u, int n, const int64_t *k, const int64_t *stride, const int64_t *dil,
                  const int64_t *lo, const int64_t *hi);
/* Like tg_custom_gradient. If own is not 0, it is the size of user, which is copied and lives as long as
 * the context. */
TgTensor *with_gradient(TgTensor *y, TgTensor *const *x, int n, TgGradientFn fn, void *user, size_t own);
/* The gradient of u_windows_nd for n elements after `pad` zeros on each axis: (.., o.., k..) -> (.., n..). */
UOp *u_windows_back_nd(UOpStore *st, UOp *g, int m, const int64_t *n, const int64_t *pad,
                       const int64_t *stride, const int64_t *dil);
/* at: an integer tensor for each axis of x (at least one), all of one shape */
UOp *u_gather(UOpStore *st, UOp *x, UOp *const *at);
/* op: OPS_STORE or the op that combines; how: SCATTER_OLD, SCATTER_ONCE */
UOp *u_scatter(UOpStore *st, Ops op, int how, UOp *to, UOp *v, UOp *const *at);
UOp *u_scan(UOpStore *st, Ops op, UOp *u, int axis); /* running reduction */
/* Moves u by `step` places along the axis; zeros come first. */
UOp *u_later(UOpStore *st, UOp *u, int axis, int64_t step);
/* Picks x at `index` along the axis, and at the element's own place along the other axes. */
UOp *u_pick(UOpStore *st, UOp *x, int axis, UOp *index);
/* Sets at[d] to the index along axis d at every place of shape; along `axis` it is `index`. */
void u_places(UOpStore *st, const Ints *shape, int axis, UOp *index, UOp **at);
bool u_is_arange(const UOp *u, int axis); /* u_arange along the axis, or zeros if its size is 1 */
/* Returns the index where each running maximum of x was first met. max: the running maximum. */
UOp *u_first_of_max(UOpStore *st, UOp *x, UOp *max, int axis);
/* Reverses the order: negation for floats, complement for integers. */
UOp *u_reversed(UOpStore *st, UOp *u);
DType sum_dtype(DType d);                 /* the accumulator's dtype for a sum */
bool u_is_number(const UOp *u, double v); /* u is a broadcast constant equal to v */

/* movement.c: records that begin .. end is not a part of the axis. */
void part_refused(TgTensor *x, const char *op, int axis, int64_t begin, int64_t end);

/* elementwise.c: both operands in one dtype (`to`, or their join if it is DT_VOID) and one shape. ctx
 * NULL: an error was recorded. */
typedef struct Pair {
  TgContext *ctx;
  UOpStore *st;
  UOp *a, *b;
} Pair;

Pair operands(const char *op, TgTensor *a, TgTensor *b, DType to);

void pending_add(TgTensor *t);
/* Defines the function of a tensor and a scalar by the function of two tensors. */
#define BY_SCALAR(name)                                                                                      \
  TgTensor *tg_##name##_scalar(TgTensor *x, double v) { return tg_##name(x, tg_scalar_like(x, v)); }
TgTensor *tensor_sum(TgTensor *x, int naxes, const int *axes);
#endif
