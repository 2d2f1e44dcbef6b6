/* tg.h: the public API of tinygrad-c, the only header a program includes.
 *
 * A TgContext holds all state: a device, the graph, the tensors. Building calls (tg_add, tg_matmul, ..) are lazy: they return a new
 * TgTensor at once and compute nothing. tg_realize, tg_read and tg_item_* compute.
 *
 * Errors. A builder given NULL returns NULL; a builder that fails returns NULL and records the first error in the context, with
 * the operation and the shapes (tg_error, tg_errmsg). So a chain of calls needs one check, at its end. Actions return TgStatus.
 *
 * Ownership. Each tensor belongs to the scope that was innermost when it was made and ends with it (tg_scope_begin, tg_scope_end,
 * TG_SCOPE); tg_keep moves one out. The library never frees your memory and never returns memory that you must free.
 *
 * Options. Functions marked [options] take trailing designated initialisers, and zero means the default:
 *   tg_sum(x)     tg_sum(x, .axis = TG_AXES(1, -1), .keepdim = true)
 * Each is a macro over an exported function tg_NAME_opt that takes a pointer to the options struct (NULL: all defaults).
 * In C++ the same names are inline functions that take the struct by value.
 *
 * Broadcasting is NumPy's; the result dtype of two tensors is their join: bool < integers < f16, bf16 < f32 < f64, mixed signs take
 * the next wider signed type, u64 with a signed type gives f32, f16 with bf16 gives f32. A scalar takes the tensor's kind: a whole
 * number keeps an integer tensor's dtype, a fraction makes it f32. Integers wrap. Floats follow IEEE: NaN passes through every op.
 * Rank is at most TG_MAX_RANK. One thread at a time may use a context; contexts share nothing. */
#ifndef TG_H
#define TG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

#ifndef TG_STATUS_DEFINED
#define TG_STATUS_DEFINED
typedef enum TgStatus {
  TG_OK = 0, TG_ERR_NOMEM, TG_ERR_SHAPE, TG_ERR_DTYPE, TG_ERR_VALUE, TG_ERR_DEVICE, TG_ERR_COMPILE, TG_ERR_IO, TG_ERR_STATE,
  TG_ERR_LIMIT, TG_ERR_INTERNAL
} TgStatus;
#endif
typedef enum TgDType {
  TG_DTYPE_DEFAULT = 0, TG_BOOL, TG_I8, TG_U8, TG_I16, TG_U16, TG_I32, TG_U32, TG_I64, TG_U64, TG_F16, TG_BF16, TG_F32, TG_F64
} TgDType;
typedef enum TgReduction { TG_MEAN = 0, TG_SUM, TG_NONE } TgReduction;   /* what a loss does with its elements */
typedef struct TgContext TgContext;
typedef struct TgTensor TgTensor;
#define TG_MAX_RANK 16

/* Counted since tg_open or tg_counters_reset. */
typedef struct TgCounters {
  uint64_t kernels;                       /* kernels in the schedules that were run */
  uint64_t launches;                      /* kernels launched */
  uint64_t compiled;                      /* programs given to the device's compiler */
  uint64_t cache_hits;                    /* programs found compiled, in memory or on disk */
  uint64_t schedules, schedule_hits;      /* graphs scheduled anew; schedules found in the cache */
  uint64_t nodes;                         /* graph nodes made by scheduling and code generation */
  uint64_t visits, firings, nested;       /* nodes visited by rules, rules that fired, nodes that rules walked besides */
  uint64_t flops, bytes;                  /* estimated work of the launches */
  double ms;                              /* time in launches */
  uint64_t graph_nodes;                   /* nodes of the tensor graphs that were realized */
  uint64_t peak_bytes;                    /* the most memory that the device held at once */
} TgCounters;

typedef struct TgAxes { int n; int v[TG_MAX_RANK]; } TgAxes;   /* n 0: the default (for reductions: all axes) */

/* ---- option structs: `size` and `end_` are filled in by the macros */
typedef struct TgOpenOptions { size_t size; const char *device; uint64_t seed; int threads, cores; int end_; } TgOpenOptions;
typedef struct TgDTypeOptions { size_t size; TgDType dtype; int end_; } TgDTypeOptions;
typedef struct TgArangeOptions { size_t size; double step; TgDType dtype; int end_; } TgArangeOptions;
typedef struct TgEyeOptions { size_t size; int64_t m; TgDType dtype; int end_; } TgEyeOptions;
typedef struct TgReduceOptions { size_t size; TgAxes axis; bool keepdim; TgDType dtype; int end_; } TgReduceOptions;
typedef struct TgVarOptions { size_t size; TgAxes axis; bool keepdim, biased; int correction; int end_; } TgVarOptions;
typedef struct TgAxisOptions { size_t size; TgAxes axis; bool keepdim; int end_; } TgAxisOptions;
typedef struct TgConvOptions {
  size_t size; TgTensor *bias; int64_t groups, stride[2], dilation[2], padding[2]; int end_;
} TgConvOptions;
typedef struct TgPoolOptions {
  size_t size; int64_t kernel[2], stride[2], dilation[2], padding[2]; bool exclude_pad; int end_;
} TgPoolOptions;
typedef struct TgLossOptions { size_t size; TgAxes axis; TgReduction reduction; double label_smoothing; int end_; } TgLossOptions;
typedef struct TgNormOptions {
  size_t size; TgTensor *weight, *bias; double eps, momentum; int dims; int end_;
} TgNormOptions;
typedef struct TgAttentionOptions { size_t size; TgTensor *mask; bool causal; double scale, dropout; int end_; } TgAttentionOptions;

typedef struct TgSortOptions { size_t size; TgAxes axis; bool descending; int end_; } TgSortOptions;
typedef struct TgTopkOptions { size_t size; TgAxes axis; bool smallest, unsorted; int end_; } TgTopkOptions;
typedef enum TgScatterReduce { TG_SCATTER_SET, TG_SCATTER_ADD, TG_SCATTER_MULTIPLY, TG_SCATTER_MEAN, TG_SCATTER_AMAX, TG_SCATTER_AMIN } TgScatterReduce;
typedef struct TgScatterOptions { size_t size; TgScatterReduce reduce; bool exclude_self; int end_; } TgScatterOptions;
typedef struct TgSelectOptions { size_t size; bool fixed; int64_t size_given; double fill_value; int end_; } TgSelectOptions;
typedef struct TgFileOptions { size_t size; int64_t offset; bool writable, create; int end_; } TgFileOptions;
typedef struct TgOptOptions { size_t size; const char *pass, *emit, *opts; int end_; } TgOptOptions;

#ifndef __cplusplus
#define TG_AXES(...) ((TgAxes){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})
#define TG_SHAPE(...) ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), ((const int64_t[]){__VA_ARGS__})
#define TG_OPT0_(f, T, ...) f(&(T){.size = sizeof(T), __VA_ARGS__})
#define TG_OPT1_(f, T, a, ...) f((a), &(T){.size = sizeof(T), __VA_ARGS__})
#define TG_OPT2_(f, T, a, b, ...) f((a), (b), &(T){.size = sizeof(T), __VA_ARGS__})
#define TG_OPT3_(f, T, a, b, c, ...) f((a), (b), (c), &(T){.size = sizeof(T), __VA_ARGS__})
#define TG_OPT4_(f, T, a, b, c, d, ...) f((a), (b), (c), (d), &(T){.size = sizeof(T), __VA_ARGS__})
#define TG_OPT5_(f, T, a, b, c, d, e, ...) f((a), (b), (c), (d), (e), &(T){.size = sizeof(T), __VA_ARGS__})
#endif
#define TG_SCALAR 0, ((const int64_t *)0)                      /* the shape () */

/* ---- context */
/* Opens a context on options->device ("CPU", "INTERP", "CUDA", ..), else $TG_DEV, else the best device present. NULL only when out
 * of memory; any other failure (TG_ERR_DEVICE, TG_ERR_VALUE) is in tg_error of the context, which must still be closed. options->cores:
 * the machine that kernels are planned for (0: this one; on NULL devices 8, so that their text is the same everywhere). */
TG_API TgContext *tg_open(const TgOpenOptions *options);
/* Ends every tensor of the context and frees it. NULL is fine. */
TG_API void tg_close(TgContext *ctx);
TG_API TgStatus tg_error(const TgContext *ctx);                /* first error since tg_open or tg_clear_error; NULL: TG_ERR_NOMEM */
TG_API const char *tg_errmsg(const TgContext *ctx);            /* its text, "" if none; valid until the context closes */
TG_API void tg_clear_error(TgContext *ctx);
TG_API const char *tg_status_name(TgStatus s);                 /* "shape error" */
TG_API const char *tg_version(void);
TG_API const char *tg_device(const TgContext *ctx);            /* "CPU"; "" if no device opened */
TG_API const char *tg_device_describe(const TgContext *ctx);   /* one line about the device */
TG_API const char *tg_device_name(int i);                      /* names that tg_open knows, present or not; NULL past the last */
/* Facts for bug reports, i = 0, 1, ..: how the library was built, the device, the cache on disk, the environment variables that it reads
 * and their values ("" where unset). *name is what the text says; NULL past the last. The text is valid until the next call. */
TG_API const char *tg_info(TgContext *ctx, int i, const char **name);
TG_API TgCounters tg_counters(const TgContext *ctx);
TG_API void tg_counters_reset(TgContext *ctx);
/* Forgets the schedules and programs kept for graphs seen before; the next tg_realize lowers and compiles anew. For measuring, and to
 * give memory back. What the device keeps on disk stays. */
TG_API void tg_cache_clear(TgContext *ctx);
TG_API TgStatus tg_collect(TgContext *ctx);                    /* frees graph nodes and buffers that nothing reaches */

/* ---- kernels as text */
typedef struct TgKernelText {
  size_t size;
  const char *name, *language, *opts, *source;   /* language: "C", "CUDA", "METAL"; source: one kernel, to stand below tg_source_prelude */
  int threads, grid[3], block[3];                /* threads of a CPU; blocks and threads of a block on a GPU */
} TgKernelText;
/* seen(k, user) is called for each kernel made from now on, before it is compiled; the strings end with the call, which must not use the
 * context. Kernels kept from before are not made again (tg_cache_clear forgets them). INTERP takes no text: source is "". NULL: no calls. */
TG_API void tg_watch_kernels(TgContext *ctx, void (*seen)(const TgKernelText *k, void *user), void *user);
/* The types and helpers that kernels of this device are written with; "" where a device takes no text, NULL when out of memory. It lives
 * as long as the context. */
TG_API const char *tg_source_prelude(TgContext *ctx);

/* Memory of the context, zeroed, for what is built on this header (layers, optimisers); given back by tg_free before tg_close. NULL:
 * TG_ERR_NOMEM. */
TG_API void *tg_alloc(TgContext *ctx, size_t nbytes);
TG_API void tg_free(TgContext *ctx, void *p);                  /* NULL is fine */

/* ---- scopes and handles */
TG_API TgStatus tg_scope_begin(TgContext *ctx);
TG_API TgStatus tg_scope_end(TgContext *ctx);                  /* ends the tensors made in it; TG_ERR_STATE: none was begun */
TG_API TgTensor *tg_keep(TgTensor *t);                         /* t lives until tg_release or tg_close; returns t */
TG_API void tg_release(TgTensor *t);                           /* ends t now, kept or not */
#define TG_CAT2_(a, b) a##b
#define TG_CAT_(a, b) TG_CAT2_(a, b)
/* TG_SCOPE(ctx) { .. }: everything made inside ends with the block. `continue` ends the block early; do not leave by break or return. */
#define TG_SCOPE(ctx) \
  for (int TG_CAT_(tg_once_, __LINE__) = tg_scope_begin(ctx) == TG_OK; TG_CAT_(tg_once_, __LINE__); \
       TG_CAT_(tg_once_, __LINE__) = 0, (void)tg_scope_end(ctx))

/* ---- questions about a tensor. NULL: 0, TG_DTYPE_DEFAULT, NULL. */
TG_API int tg_ndim(const TgTensor *t);
TG_API const int64_t *tg_shape(const TgTensor *t);             /* tg_ndim sizes; valid while t lives */
TG_API int64_t tg_dim(const TgTensor *t, int axis);            /* size of an axis, negative from the end; -1: no such axis */
TG_API int64_t tg_numel(const TgTensor *t);
TG_API TgDType tg_dtype(const TgTensor *t);
TG_API size_t tg_nbytes(const TgTensor *t);
TG_API TgContext *tg_context(const TgTensor *t);
TG_API size_t tg_dtype_size(TgDType d);                        /* bytes of an element */
TG_API const char *tg_dtype_name(TgDType d);                   /* "f32" */
TG_API bool tg_dtype_is_float(TgDType d);
TG_API TgDType tg_dtype_join(TgDType a, TgDType b);            /* the result dtype of an operation on both */

/* ---- data in. Errors: TG_ERR_SHAPE (negative size, rank, overflow), TG_ERR_VALUE, TG_ERR_NOMEM, TG_ERR_DEVICE. */
/* Copies row-major elements of dtype from data. tg_from(ctx, p, TG_F32, TG_SHAPE(2, 3)) */
TG_API TgTensor *tg_from(TgContext *ctx, const void *data, TgDType dtype, int ndim, const int64_t *dims);
/* Converts doubles to dtype (integers truncate toward zero). */
TG_API TgTensor *tg_from_f64(TgContext *ctx, const double *data, TgDType dtype, int ndim, const int64_t *dims);
/* Uses data where it is (64-byte aligned is best) until no tensor needs it, then calls destroy(data, user) if destroy is not NULL.
 * On devices with memory of their own the data is copied at once. */
TG_API TgTensor *tg_borrow(TgContext *ctx, void *data, TgDType dtype, int ndim, const int64_t *dims,
                           void (*destroy)(void *data, void *user), void *user);
/* [options] .offset (bytes, a multiple of the element's size) .writable .create (writable; made, or lengthened with zeros, if need be). A part of
 * a regular file as a tensor: its memory is the file, so nothing is read before it is needed, and tg_assign to a writable one writes the file
 * when it is realized. On devices with memory of their own it is copied at once, and written back. Nobody else may change the file meanwhile; one
 * that is cut short ends the process at the next read. TG_ERR_IO: not there, not a file, too short; TG_ERR_STATE: assigned but not writable. */
TG_API TgTensor *tg_from_file_opt(TgContext *ctx, const char *path, TgDType dtype, int ndim, const int64_t *dims, const TgFileOptions *o);
/* Memory without a value: an error to read before tg_assign. */
TG_API TgTensor *tg_empty(TgContext *ctx, TgDType dtype, int ndim, const int64_t *dims);
/* [options] .dtype (default f32): a constant tensor, no memory until needed. tg_full(ctx, TG_SHAPE(2, 3), 1.5) */
TG_API TgTensor *tg_full_opt(TgContext *ctx, int ndim, const int64_t *dims, double value, const TgDTypeOptions *o);
TG_API TgTensor *tg_full_i64(TgContext *ctx, int ndim, const int64_t *dims, int64_t value, TgDType dtype);
TG_API TgTensor *tg_zeros_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
TG_API TgTensor *tg_ones_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
TG_API TgTensor *tg_full_like(TgTensor *t, double value);      /* shape and dtype of t */
TG_API TgTensor *tg_zeros_like(TgTensor *t);
TG_API TgTensor *tg_ones_like(TgTensor *t);
TG_API TgTensor *tg_scalar_like(TgTensor *t, double value);    /* shape (), the dtype a scalar takes beside t */
/* [options] .step (1) .dtype (i32, i64 if needed, f32 if an argument is a fraction): start, start+step, .. before stop; shape (n). */
TG_API TgTensor *tg_arange_opt(TgContext *ctx, double start, double stop, const TgArangeOptions *o);
/* [options] .m (n) .dtype (f32): (n, m) with ones on the diagonal. */
TG_API TgTensor *tg_eye_opt(TgContext *ctx, int64_t n, const TgEyeOptions *o);

/* ---- random numbers: draw i of a call is threefry2x32(counter + i, seed); a call with n elements moves the counter on by n. The
 * same seed gives the same numbers on every device. rand, uniform: the low word's top bits. randn: Box-Muller on both words. */
TG_API void tg_manual_seed(TgContext *ctx, uint64_t seed);     /* also resets the counter */
TG_API TgTensor *tg_rand_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);    /* [options] [0, 1) */
TG_API TgTensor *tg_randn_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);   /* [options] normal */
TG_API TgTensor *tg_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims, double low, double high, const TgDTypeOptions *o);
TG_API TgTensor *tg_randint(TgContext *ctx, int ndim, const int64_t *dims, int64_t low, int64_t high, TgDType dtype);  /* [low, high) */
/* [options] uniform in +-sqrt(6 / ((1 + a^2) fan_in)) with a = sqrt(5): torch's default, where fan_in = product of dims[1..]. */
TG_API TgTensor *tg_kaiming_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
TG_API TgTensor *tg_glorot_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
TG_API void tg_set_training(TgContext *ctx, bool on);          /* whether tg_dropout drops; off at first */
TG_API bool tg_training(const TgContext *ctx);

/* ---- movement. Nothing is copied. Errors: TG_ERR_SHAPE names the op and the shapes. */
TG_API TgTensor *tg_reshape(TgTensor *x, int ndim, const int64_t *dims);       /* one size may be -1: inferred */
TG_API TgTensor *tg_permute(TgTensor *x, int n, const int64_t *order);         /* axis d of the result is axis order[d] of x */
TG_API TgTensor *tg_expand(TgTensor *x, int ndim, const int64_t *dims);        /* broadcasts; -1 keeps a size */
TG_API TgTensor *tg_broadcast_to(TgTensor *x, int ndim, const int64_t *dims);  /* the same as tg_expand */
TG_API TgTensor *tg_pad(TgTensor *x, const int64_t *lo, const int64_t *hi);    /* zeros around; tg_ndim(x) entries each; negative crops */
TG_API TgTensor *tg_pad_value(TgTensor *x, const int64_t *lo, const int64_t *hi, double value);
TG_API TgTensor *tg_shrink(TgTensor *x, const int64_t *begin, const int64_t *end);   /* keeps begin <= i < end on each axis */
TG_API TgTensor *tg_flip(TgTensor *x, int n, const int64_t *axes);             /* the axes reversed */
TG_API TgTensor *tg_transpose(TgTensor *x, int a, int b);                      /* two axes swapped */
TG_API TgTensor *tg_squeeze(TgTensor *x, int axis);                            /* an axis of size 1 removed; other sizes: x itself */
TG_API TgTensor *tg_unsqueeze(TgTensor *x, int axis);                          /* a new axis of size 1 at axis (-rank-1 .. rank) */
TG_API TgTensor *tg_flatten(TgTensor *x, int first, int last);                 /* axes first..last as one; tg_flatten(x, 0, -1) */
TG_API TgTensor *tg_slice(TgTensor *x, int axis, int64_t begin, int64_t end);  /* negative ends count from the size; clamped */
TG_API TgTensor *tg_select(TgTensor *x, int axis, int64_t index);              /* one entry of an axis, which vanishes */
/* Splits an axis in parts of at most `size`; writes at most cap handles and returns how many parts there are, 0 on error. */
TG_API int tg_split(TgTensor *x, int axis, int64_t size, TgTensor **out, int cap);
TG_API TgTensor *tg_cat(TgTensor *const *x, int n, int axis);                  /* joined along an axis; other sizes equal, same dtype */
TG_API TgTensor *tg_stack(TgTensor *const *x, int n, int axis);                /* joined along a new axis */
TG_API TgTensor *tg_repeat(TgTensor *x, int n, const int64_t *times);          /* whole tensor repeated along the last n axes */
TG_API TgTensor *tg_tril(TgTensor *x, int64_t diagonal);                       /* zeroes above the diagonal of the last two axes */
TG_API TgTensor *tg_triu(TgTensor *x, int64_t diagonal);                       /* zeroes below it */

/* ---- elementwise, two tensors, broadcast, dtype joined. TG_ERR_SHAPE: shapes do not broadcast. */
TG_API TgTensor *tg_add(TgTensor *a, TgTensor *b);             /* on bool: or */
TG_API TgTensor *tg_sub(TgTensor *a, TgTensor *b);             /* TG_ERR_DTYPE on two bools */
TG_API TgTensor *tg_mul(TgTensor *a, TgTensor *b);             /* on bool: and */
TG_API TgTensor *tg_div(TgTensor *a, TgTensor *b);             /* integers are made f32 first */
TG_API TgTensor *tg_floordiv(TgTensor *a, TgTensor *b);        /* toward minus infinity; integers by 0: 0 */
TG_API TgTensor *tg_mod(TgTensor *a, TgTensor *b);             /* sign of b; integers by 0: a */
TG_API TgTensor *tg_pow(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_maximum(TgTensor *a, TgTensor *b);         /* NaN if either is; equal values share the gradient */
TG_API TgTensor *tg_minimum(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_lt(TgTensor *a, TgTensor *b);              /* comparisons give bool; with NaN only tg_ne is true */
TG_API TgTensor *tg_gt(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_le(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_ge(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_eq(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_ne(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_bitand(TgTensor *a, TgTensor *b);          /* bool and integers; TG_ERR_DTYPE on floats */
TG_API TgTensor *tg_bitor(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_bitxor(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_shl(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_shr(TgTensor *a, TgTensor *b);
/* c ? a : b, all broadcast; c must be bool (TG_ERR_DTYPE). Nothing of the branch not taken reaches the result or its gradient. */
TG_API TgTensor *tg_where(TgTensor *c, TgTensor *a, TgTensor *b);

/* ---- a tensor and a scalar */
TG_API TgTensor *tg_add_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_sub_scalar(TgTensor *x, double v);         /* x - v */
TG_API TgTensor *tg_rsub_scalar(TgTensor *x, double v);        /* v - x */
TG_API TgTensor *tg_mul_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_div_scalar(TgTensor *x, double v);         /* x / v */
TG_API TgTensor *tg_rdiv_scalar(TgTensor *x, double v);        /* v / x */
TG_API TgTensor *tg_pow_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_maximum_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_minimum_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_lt_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_gt_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_le_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_ge_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_eq_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_ne_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_clamp(TgTensor *x, double lo, double hi);  /* NaN stays; gradient 1 inside and on the bounds */

/* ---- elementwise, one tensor. "float": integers are made f32 first. */
TG_API TgTensor *tg_cast(TgTensor *x, TgDType to);             /* float to integer truncates and saturates, NaN gives 0; to bool: != 0 */
TG_API TgTensor *tg_bitcast(TgTensor *x, TgDType to);          /* same element size, else TG_ERR_DTYPE */
TG_API TgTensor *tg_neg(TgTensor *x);
TG_API TgTensor *tg_logical_not(TgTensor *x);                  /* x == 0, bool */
TG_API TgTensor *tg_exp(TgTensor *x);                          /* float */
TG_API TgTensor *tg_exp2(TgTensor *x);                         /* float */
TG_API TgTensor *tg_log(TgTensor *x);                          /* float */
TG_API TgTensor *tg_log2(TgTensor *x);                         /* float */
TG_API TgTensor *tg_sin(TgTensor *x);                          /* float */
TG_API TgTensor *tg_cos(TgTensor *x);                          /* float */
TG_API TgTensor *tg_tan(TgTensor *x);                          /* float */
TG_API TgTensor *tg_sqrt(TgTensor *x);                         /* float */
TG_API TgTensor *tg_rsqrt(TgTensor *x);                        /* float */
TG_API TgTensor *tg_reciprocal(TgTensor *x);                   /* float */
TG_API TgTensor *tg_square(TgTensor *x);
TG_API TgTensor *tg_abs(TgTensor *x);                          /* gradient 0 at 0 */
TG_API TgTensor *tg_sign(TgTensor *x);                         /* -1, 0, 1; NaN stays; gradient 0 */
TG_API TgTensor *tg_trunc(TgTensor *x);                        /* integers unchanged; gradient 0 */
TG_API TgTensor *tg_floor(TgTensor *x);
TG_API TgTensor *tg_ceil(TgTensor *x);
TG_API TgTensor *tg_round(TgTensor *x);                        /* ties to even */
TG_API TgTensor *tg_isnan(TgTensor *x);                        /* bool */
TG_API TgTensor *tg_isinf(TgTensor *x);                        /* bool */
TG_API TgTensor *tg_relu(TgTensor *x);                         /* NaN stays; gradient 0 at and below 0 */
TG_API TgTensor *tg_leaky_relu(TgTensor *x, double slope);     /* x < 0 ? slope * x : x */
TG_API TgTensor *tg_elu(TgTensor *x, double alpha);
TG_API TgTensor *tg_sigmoid(TgTensor *x);                      /* value and gradient without overflow */
TG_API TgTensor *tg_tanh(TgTensor *x);
TG_API TgTensor *tg_gelu(TgTensor *x);                         /* the tanh form */
TG_API TgTensor *tg_silu(TgTensor *x);
TG_API TgTensor *tg_softplus(TgTensor *x);

/* ---- reductions [options] .axis = TG_AXES(..) (all) .keepdim .dtype (of the accumulator and the result).
 * Reduced axes vanish unless .keepdim. TG_ERR_SHAPE: no such axis, or one named twice. */
TG_API TgTensor *tg_sum_opt(TgTensor *x, const TgReduceOptions *o);     /* i8 i16 bool: i32, u8 u16: u32; f16 bf16 add up in f32 */
TG_API TgTensor *tg_prod_opt(TgTensor *x, const TgReduceOptions *o);    /* gradient right with zeros */
TG_API TgTensor *tg_max_opt(TgTensor *x, const TgReduceOptions *o);     /* NaN if any is; equal maxima share the gradient */
TG_API TgTensor *tg_min_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_mean_opt(TgTensor *x, const TgReduceOptions *o);    /* integers give f32 */
TG_API TgTensor *tg_any_opt(TgTensor *x, const TgReduceOptions *o);     /* bool */
TG_API TgTensor *tg_all_opt(TgTensor *x, const TgReduceOptions *o);     /* bool */
/* At most one axis (none: of the flattened tensor); i32, the first winner; a NaN wins. */
TG_API TgTensor *tg_argmax_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_argmin_opt(TgTensor *x, const TgReduceOptions *o);
/* [options] .axis .keepdim .correction (1) .biased (correction 0). TG_ERR_VALUE: correction >= number of elements. */
TG_API TgTensor *tg_var_opt(TgTensor *x, const TgVarOptions *o);
TG_API TgTensor *tg_std_opt(TgTensor *x, const TgVarOptions *o);
/* [options] .axis (-1); logsumexp reduces (.keepdim), the others keep the shape. Float. */
TG_API TgTensor *tg_softmax_opt(TgTensor *x, const TgAxisOptions *o);
TG_API TgTensor *tg_log_softmax_opt(TgTensor *x, const TgAxisOptions *o);
TG_API TgTensor *tg_logsumexp_opt(TgTensor *x, const TgAxisOptions *o);

/* ---- along an axis: running reductions, order. x keeps its shape; a 0-d tensor has axis 0. TG_ERR_SHAPE: no such axis.
 * Where a function also gives places, `indices` (NULL: not wanted) receives a tensor of their shape: i32, i64 where the axis is longer. */
TG_API TgTensor *tg_cumsum(TgTensor *x, int axis);             /* dtype as tg_sum, but a float keeps its own */
TG_API TgTensor *tg_cumprod(TgTensor *x, int axis);            /* x's dtype; gradient right with zeros */
TG_API TgTensor *tg_cummax(TgTensor *x, int axis, TgTensor **indices);     /* NaN stays once met; indices: where each was first met */
TG_API TgTensor *tg_cummin(TgTensor *x, int axis, TgTensor **indices);
TG_API TgTensor *tg_logcumsumexp(TgTensor *x, int axis);       /* log of the running sum of exponentials, without overflow; float */
/* [options] .axis (-1) .descending. Stable; NaN counts as the largest value, -0 equals 0. Gradients flow to where values came from. */
TG_API TgTensor *tg_sort_opt(TgTensor *x, TgTensor **indices, const TgSortOptions *o);
TG_API TgTensor *tg_argsort_opt(TgTensor *x, const TgSortOptions *o);
/* [options] .axis (-1) .smallest .unsorted (in any order). The k largest, equal ones by lower index. TG_ERR_VALUE: k is not in 0 .. size. */
TG_API TgTensor *tg_topk_opt(TgTensor *x, int64_t k, TgTensor **indices, const TgTopkOptions *o);

/* ---- products */
/* a (.., m, k) by b (.., k, n) -> (.., m, n); 1-D operands are a row or a column whose axis vanishes; leading axes broadcast. f16 and
 * bf16 accumulate in f32. TG_ERR_SHAPE: inner sizes differ or an operand is 0-d. */
TG_API TgTensor *tg_matmul(TgTensor *a, TgTensor *b);
/* x (.., in) by weight (out, in), bias (out) or NULL -> (.., out): x @ weight^T + bias, torch's layout. */
TG_API TgTensor *tg_linear(TgTensor *x, TgTensor *weight, TgTensor *bias);
/* [options] .bias (cout) .groups (1) .stride (1) .dilation (1) .padding (0); of two entries a zero second one repeats the first (a
 * padding of {n, 0} is {n, n}; use tg_pad for one side). x (b, cin, h, w), weight (cout, cin/groups, kh, kw) -> (b, cout, oh, ow). */
TG_API TgTensor *tg_conv2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *o);
/* [options] .kernel (2) .stride (kernel) .dilation (1) .padding (0) .exclude_pad (average over real elements). x (.., h, w). */
TG_API TgTensor *tg_max_pool2d_opt(TgTensor *x, const TgPoolOptions *o);
TG_API TgTensor *tg_avg_pool2d_opt(TgTensor *x, const TgPoolOptions *o);

/* ---- losses [options] .reduction (TG_MEAN) */
/* [options] .axis (-1, the classes) .label_smoothing. logits and target (probabilities) of one shape; mean over the batch. */
TG_API TgTensor *tg_cross_entropy_opt(TgTensor *logits, TgTensor *target, const TgLossOptions *o);
/* logits (.., classes), labels integers (..). A label outside 0 .. classes-1 adds 0. */
TG_API TgTensor *tg_sparse_cross_entropy_opt(TgTensor *logits, TgTensor *labels, const TgLossOptions *o);
TG_API TgTensor *tg_nll_opt(TgTensor *log_probs, TgTensor *labels, const TgLossOptions *o);
TG_API TgTensor *tg_mse_opt(TgTensor *x, TgTensor *target, const TgLossOptions *o);
TG_API TgTensor *tg_binary_cross_entropy_opt(TgTensor *prob, TgTensor *target, const TgLossOptions *o);
TG_API TgTensor *tg_binary_cross_entropy_logits_opt(TgTensor *logits, TgTensor *target, const TgLossOptions *o);

/* ---- neural-network functions */
TG_API TgTensor *tg_one_hot(TgTensor *labels, int64_t classes);            /* integers (..) -> i32 (.., classes); outside: all zeros */
/* x (.., n, ..), index integers of the same rank: out[..i..] = x[..index[..i..]..] along axis; out of range gives 0. */
TG_API TgTensor *tg_gather(TgTensor *x, int axis, TgTensor *index);
TG_API TgTensor *tg_take(TgTensor *x, TgTensor *index);                    /* rows: x (n, ..), index (i..) -> (i.., ..); out of range: 0 */
TG_API TgTensor *tg_embedding(TgTensor *weight, TgTensor *index);          /* the same as tg_take */
/* [options] .reduce (TG_SCATTER_SET; _ADD, _MULTIPLY). x with r[..index[..i..]..] = src[..i..] along axis, in row-major order: the last one
 * wins. src has x's dtype and at least index's shape; index is no longer than x on the other axes. Places outside are skipped. */
TG_API TgTensor *tg_scatter_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src, const TgScatterOptions *o);
/* [options] .exclude_self: x's own value does not count where something is written. how: ADD (dtype as tg_sum), MULTIPLY, MEAN (float),
 * AMAX, AMIN (NaN if any is). */
TG_API TgTensor *tg_scatter_reduce_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src, TgScatterReduce how, const TgScatterOptions *o);
/* [options] .fixed .size_given .fill_value. Elements of x where mask (bool, broadcast to x) holds -> (count); and where x is not 0, as i32
 * coordinates (count, rank). The count is computed and read back, unless .fixed: then size_given elements, cut or filled up. */
TG_API TgTensor *tg_masked_select_opt(TgTensor *x, TgTensor *mask, const TgSelectOptions *o);
TG_API TgTensor *tg_nonzero_opt(TgTensor *x, const TgSelectOptions *o);
/* [options] .weight .bias (of the trailing axes' shape) .dims (weight's rank, else 1: trailing axes) .eps (1e-5). */
TG_API TgTensor *tg_layer_norm_opt(TgTensor *x, const TgNormOptions *o);
TG_API TgTensor *tg_rms_norm_opt(TgTensor *x, const TgNormOptions *o);
/* [options] .weight .bias (c) .eps (1e-5). x (b, c, ..), statistics (c) as given: inference. */
TG_API TgTensor *tg_batch_norm_opt(TgTensor *x, TgTensor *mean, TgTensor *var, const TgNormOptions *o);
/* Normalises by the batch's own statistics and moves running_mean and running_var (c) by .momentum (0.1) toward them, in place: they
 * are computed with the next tg_realize of an assigned tensor (an optimiser step), or when read. */
TG_API TgTensor *tg_batch_norm_train_opt(TgTensor *x, TgTensor *running_mean, TgTensor *running_var, const TgNormOptions *o);
TG_API TgTensor *tg_dropout(TgTensor *x, double p);                        /* when training: zeroes with chance p, scales by 1/(1-p) */
/* [options] .mask (bool: true may attend; float: added) .causal .scale (1/sqrt(d)) .dropout. q (.., l, d), k (.., s, d), v (.., s, e). */
TG_API TgTensor *tg_scaled_dot_product_attention_opt(TgTensor *q, TgTensor *k, TgTensor *v, const TgAttentionOptions *o);

/* ---- gradients */
TG_API TgTensor *tg_requires_grad(TgTensor *t, bool on);       /* tg_backward will reach t, which gets memory of its own; returns t */
TG_API TgTensor *tg_detach(TgTensor *x);                       /* same values; no gradient flows through */
/* Adds the gradient of a scalar float loss to tg_grad of each tensor with requires_grad that it depends on. The gradients are lazy
 * tensors of the innermost scope and vanish with it. The loss is computed with the next in-place update, before it. TG_ERR_SHAPE:
 * the loss has more than one element; TG_ERR_DTYPE: it is not a float. */
TG_API TgStatus tg_backward(TgTensor *loss);
TG_API TgTensor *tg_grad(const TgTensor *t);                   /* NULL if there is none, which is no error */
TG_API void tg_zero_grad(TgTensor *t);                         /* drops the gradient */
/* Gradients of a scalar loss for n targets, any tensors of its graph: out[i] of targets[i]'s shape, zeros where it does not depend. */
TG_API TgStatus tg_gradient(TgTensor *loss, TgTensor *const *targets, int n, TgTensor **out);

/* ---- in place and actions */
/* value, broadcast, written to t's memory when t is next realized. dtypes must be equal (TG_ERR_DTYPE). Returns t. An unrealized tensor
 * that reads t sees the new value; realize it before, or with it (losses given to tg_backward are). */
TG_API TgTensor *tg_assign(TgTensor *t, TgTensor *value);
TG_API TgTensor *tg_assign_slice(TgTensor *t, const int64_t *begin, const int64_t *end, TgTensor *value);   /* a part of t */
TG_API TgTensor *tg_contiguous(TgTensor *x);                   /* kept in memory of its own when computed */
TG_API TgStatus tg_realize(TgTensor *t);                       /* computes t */
TG_API TgStatus tg_realize_many(TgTensor *const *t, size_t n); /* computes all in one schedule; NULL entries are errors */
/* Computes t and copies its elements, row-major, to out; nbytes must be tg_nbytes(t) (TG_ERR_VALUE). */
TG_API TgStatus tg_read(TgTensor *t, void *out, size_t nbytes);
TG_API TgStatus tg_read_f64(TgTensor *t, double *out, size_t n);           /* any dtype, converted; n must be tg_numel(t) */
TG_API double tg_item_f64(TgTensor *t);                        /* the one element; NaN and TG_ERR_SHAPE if there is not exactly one */
TG_API int64_t tg_item_i64(TgTensor *t);                       /* the same as an integer; 0 on error */

/* ---- the compiler on text: graphs and programs in the form that TG_DUMP writes
 * [options] .pass: only this pass (default: all that is left to do). .emit: "uops" (default: text again), "c", "cuda", "metal",
 * "kind" (what the text is, "kernel graph of 12 nodes with 1 root"; nothing is compiled).
 * .opts: a list of opts instead of the heuristic's. A tensor graph is scheduled and its kernels compiled, a kernel is compiled, a program
 * is rendered. NULL: refused, tg_errmsg says why (line and column where it is the text). The result lives until the next tg_opt of ctx. */
TG_API const char *tg_opt_opt(TgContext *ctx, const char *text, const TgOptOptions *o);
TG_API const char *tg_pass_name(int i, const char **stage);    /* the passes in the order they run; NULL past the last. stage: "codegen" */

#ifndef __cplusplus
#define tg_opt(...) TG_OPT2_(tg_opt_opt, TgOptOptions, __VA_ARGS__, .end_ = 0)
#define tg_from_file(...) TG_OPT5_(tg_from_file_opt, TgFileOptions, __VA_ARGS__, .end_ = 0)
#define tg_full(...) TG_OPT4_(tg_full_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_zeros(...) TG_OPT3_(tg_zeros_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_ones(...) TG_OPT3_(tg_ones_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_arange(...) TG_OPT3_(tg_arange_opt, TgArangeOptions, __VA_ARGS__, .end_ = 0)
#define tg_eye(...) TG_OPT2_(tg_eye_opt, TgEyeOptions, __VA_ARGS__, .end_ = 0)
#define tg_rand(...) TG_OPT3_(tg_rand_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_randn(...) TG_OPT3_(tg_randn_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_uniform(...) TG_OPT5_(tg_uniform_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_kaiming_uniform(...) TG_OPT3_(tg_kaiming_uniform_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_glorot_uniform(...) TG_OPT3_(tg_glorot_uniform_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_sort(...) TG_OPT2_(tg_sort_opt, TgSortOptions, __VA_ARGS__, .end_ = 0)
#define tg_argsort(...) TG_OPT1_(tg_argsort_opt, TgSortOptions, __VA_ARGS__, .end_ = 0)
#define tg_topk(...) TG_OPT3_(tg_topk_opt, TgTopkOptions, __VA_ARGS__, .end_ = 0)
#define tg_scatter(...) TG_OPT4_(tg_scatter_opt, TgScatterOptions, __VA_ARGS__, .end_ = 0)
#define tg_scatter_reduce(...) TG_OPT5_(tg_scatter_reduce_opt, TgScatterOptions, __VA_ARGS__, .end_ = 0)
#define tg_masked_select(...) TG_OPT2_(tg_masked_select_opt, TgSelectOptions, __VA_ARGS__, .end_ = 0)
#define tg_nonzero(...) TG_OPT1_(tg_nonzero_opt, TgSelectOptions, __VA_ARGS__, .end_ = 0)
#define tg_sum(...) TG_OPT1_(tg_sum_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_prod(...) TG_OPT1_(tg_prod_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_max(...) TG_OPT1_(tg_max_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_min(...) TG_OPT1_(tg_min_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_mean(...) TG_OPT1_(tg_mean_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_any(...) TG_OPT1_(tg_any_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_all(...) TG_OPT1_(tg_all_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_argmax(...) TG_OPT1_(tg_argmax_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_argmin(...) TG_OPT1_(tg_argmin_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_var(...) TG_OPT1_(tg_var_opt, TgVarOptions, __VA_ARGS__, .end_ = 0)
#define tg_std(...) TG_OPT1_(tg_std_opt, TgVarOptions, __VA_ARGS__, .end_ = 0)
#define tg_softmax(...) TG_OPT1_(tg_softmax_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_log_softmax(...) TG_OPT1_(tg_log_softmax_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_logsumexp(...) TG_OPT1_(tg_logsumexp_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv2d(...) TG_OPT2_(tg_conv2d_opt, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_max_pool2d(...) TG_OPT1_(tg_max_pool2d_opt, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#define tg_avg_pool2d(...) TG_OPT1_(tg_avg_pool2d_opt, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#define tg_cross_entropy(...) TG_OPT2_(tg_cross_entropy_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_sparse_cross_entropy(...) TG_OPT2_(tg_sparse_cross_entropy_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_nll(...) TG_OPT2_(tg_nll_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_mse(...) TG_OPT2_(tg_mse_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_binary_cross_entropy(...) TG_OPT2_(tg_binary_cross_entropy_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_binary_cross_entropy_logits(...) TG_OPT2_(tg_binary_cross_entropy_logits_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_layer_norm(...) TG_OPT1_(tg_layer_norm_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_rms_norm(...) TG_OPT1_(tg_rms_norm_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_batch_norm(...) TG_OPT3_(tg_batch_norm_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_batch_norm_train(...) TG_OPT3_(tg_batch_norm_train_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_scaled_dot_product_attention(...) TG_OPT3_(tg_scaled_dot_product_attention_opt, TgAttentionOptions, __VA_ARGS__, .end_ = 0)
#else
}   /* extern "C" */
template <class... A> inline TgAxes TG_AXES(A... a) { return TgAxes{(int)sizeof...(a), {(int)a...}}; }
struct TgDims_ {                                               /* the sizes given to TG_SHAPE, alive for the whole call */
  int64_t v[TG_MAX_RANK];
  const int64_t *p() const { return v; }
};
template <class... A> inline TgDims_ tg_dims_(A... a) { return TgDims_{{(int64_t)a...}}; }
template <class... A> constexpr int tg_ndims_(A...) { return (int)sizeof...(A); }
#define TG_SHAPE(...) tg_ndims_(__VA_ARGS__), tg_dims_(__VA_ARGS__).p()
#define TG_CXX1_(f, T) inline TgTensor *f(TgTensor *a, T o = T()) { o.size = sizeof o; return f##_opt(a, &o); }
#define TG_CXX2_(f, T) inline TgTensor *f(TgTensor *a, TgTensor *b, T o = T()) { o.size = sizeof o; return f##_opt(a, b, &o); }
#define TG_CXX3_(f, T) \
  inline TgTensor *f(TgTensor *a, TgTensor *b, TgTensor *c, T o = T()) { o.size = sizeof o; return f##_opt(a, b, c, &o); }
#define TG_CXXN_(f, T) \
  inline TgTensor *f(TgContext *c, int n, const int64_t *d, T o = T()) { o.size = sizeof o; return f##_opt(c, n, d, &o); }
inline TgTensor *tg_full(TgContext *c, int n, const int64_t *d, double v, TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_full_opt(c, n, d, v, &o);
}
inline TgTensor *tg_uniform(TgContext *c, int n, const int64_t *d, double lo, double hi, TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_uniform_opt(c, n, d, lo, hi, &o);
}
inline const char *tg_opt(TgContext *c, const char *text, TgOptOptions o = TgOptOptions()) {
  o.size = sizeof o;
  return tg_opt_opt(c, text, &o);
}
inline TgTensor *tg_from_file(TgContext *c, const char *path, TgDType d, int n, const int64_t *dims, TgFileOptions o = TgFileOptions()) {
  o.size = sizeof o;
  return tg_from_file_opt(c, path, d, n, dims, &o);
}
inline TgTensor *tg_arange(TgContext *c, double start, double stop, TgArangeOptions o = TgArangeOptions()) {
  o.size = sizeof o;
  return tg_arange_opt(c, start, stop, &o);
}
inline TgTensor *tg_eye(TgContext *c, int64_t n, TgEyeOptions o = TgEyeOptions()) {
  o.size = sizeof o;
  return tg_eye_opt(c, n, &o);
}
inline TgTensor *tg_sort(TgTensor *x, TgTensor **i, TgSortOptions o = TgSortOptions()) {
  o.size = sizeof o;
  return tg_sort_opt(x, i, &o);
}
inline TgTensor *tg_topk(TgTensor *x, int64_t k, TgTensor **i, TgTopkOptions o = TgTopkOptions()) {
  o.size = sizeof o;
  return tg_topk_opt(x, k, i, &o);
}
inline TgTensor *tg_scatter(TgTensor *x, int axis, TgTensor *i, TgTensor *v, TgScatterOptions o = TgScatterOptions()) {
  o.size = sizeof o;
  return tg_scatter_opt(x, axis, i, v, &o);
}
inline TgTensor *tg_scatter_reduce(TgTensor *x, int axis, TgTensor *i, TgTensor *v, TgScatterReduce how, TgScatterOptions o = TgScatterOptions()) {
  o.size = sizeof o;
  return tg_scatter_reduce_opt(x, axis, i, v, how, &o);
}
TG_CXX1_(tg_argsort, TgSortOptions) TG_CXX2_(tg_masked_select, TgSelectOptions) TG_CXX1_(tg_nonzero, TgSelectOptions)
TG_CXXN_(tg_zeros, TgDTypeOptions) TG_CXXN_(tg_ones, TgDTypeOptions) TG_CXXN_(tg_rand, TgDTypeOptions)
TG_CXXN_(tg_randn, TgDTypeOptions) TG_CXXN_(tg_kaiming_uniform, TgDTypeOptions) TG_CXXN_(tg_glorot_uniform, TgDTypeOptions)
TG_CXX1_(tg_sum, TgReduceOptions) TG_CXX1_(tg_prod, TgReduceOptions) TG_CXX1_(tg_max, TgReduceOptions) TG_CXX1_(tg_min, TgReduceOptions)
TG_CXX1_(tg_mean, TgReduceOptions) TG_CXX1_(tg_any, TgReduceOptions) TG_CXX1_(tg_all, TgReduceOptions)
TG_CXX1_(tg_argmax, TgReduceOptions) TG_CXX1_(tg_argmin, TgReduceOptions) TG_CXX1_(tg_var, TgVarOptions) TG_CXX1_(tg_std, TgVarOptions)
TG_CXX1_(tg_softmax, TgAxisOptions) TG_CXX1_(tg_log_softmax, TgAxisOptions) TG_CXX1_(tg_logsumexp, TgAxisOptions)
TG_CXX1_(tg_max_pool2d, TgPoolOptions) TG_CXX1_(tg_avg_pool2d, TgPoolOptions) TG_CXX2_(tg_conv2d, TgConvOptions)
TG_CXX2_(tg_cross_entropy, TgLossOptions) TG_CXX2_(tg_sparse_cross_entropy, TgLossOptions) TG_CXX2_(tg_nll, TgLossOptions)
TG_CXX2_(tg_mse, TgLossOptions) TG_CXX2_(tg_binary_cross_entropy, TgLossOptions)
TG_CXX2_(tg_binary_cross_entropy_logits, TgLossOptions) TG_CXX1_(tg_layer_norm, TgNormOptions) TG_CXX1_(tg_rms_norm, TgNormOptions)
TG_CXX3_(tg_batch_norm, TgNormOptions) TG_CXX3_(tg_batch_norm_train, TgNormOptions)
TG_CXX3_(tg_scaled_dot_product_attention, TgAttentionOptions)
#endif
#endif
