/* tg.h: the public API of tinygrad-c, the only header a program includes.
 *
 * A TgContext holds all state: its devices, the graph and the tensors. Functions that build (tg_add,
 * tg_matmul, ..) are lazy: they return a new TgTensor at once and compute nothing. tg_realize, tg_read and
 * tg_item_* compute.
 *
 * Errors. A function that builds returns NULL if an argument is NULL. If it fails, it returns NULL and
 * records the first error in the context, with the operation and the shapes (tg_error, tg_errmsg). A chain of
 * calls therefore needs one check, at its end. Actions return TgStatus.
 *
 * Ownership. Each tensor belongs to the scope that was innermost when the tensor was made, and ends with that
 * scope (tg_scope_begin, tg_scope_end, TG_SCOPE); tg_keep moves a tensor out of its scope. The library never
 * frees your memory and never returns memory that you must free.
 *
 * Options. Functions marked [options] take trailing designated initialisers. An option that is not written
 * has its default; a zero that is written counts as a zero:
 *   tg_sum(x)     tg_sum(x, .axis = TG_AXES(1, -1), .keepdim = true)     tg_var(x, .correction = 0)
 * Each such name is a macro over an exported function tg_NAME_opt, which takes a pointer to the options
 * struct (NULL: all defaults). Where tg_NAME itself takes the pointer (tg_open, tg_conv2d_new), the macro is
 * called tg_NAME_with. The struct must contain its size, otherwise it is refused (TG_ERR_VALUE). `set` lists
 * the fields that were written, as text such as ".eps = 0, .beta1"; only the names that follow a dot count.
 * If `set` is NULL, the fields that are not zero count as written. TG_WITH(TgOptimOptions, .eps = 0) makes
 * such a struct; the text must live as long as the call. In C++ the same names are inline functions that take
 * the struct by value and fill in its size.
 *
 * Broadcasting follows NumPy. The result dtype of two tensors is their join: bool < integers < f16, bf16 <
 * f32 < f64. Mixed signs give the next wider signed type, u64 with a signed type gives f32, f16 with bf16
 * gives f32, fp8 is below f16 and bf16, and fp8e4m3 with fp8e5m2 gives f16. Operations on f16, bf16 or fp8
 * are computed in f32 and rounded once per operation, on every device. A scalar adapts to the tensor: a
 * whole number keeps the dtype of an integer tensor if that dtype can hold the number (on bool: i32).
 * Otherwise the scalar counts as the narrowest of i8 i16 i32 i64 u64 that can hold it, and the result has
 * the join: u8 + 300 is i16, u8 < 300 is true. A fraction, an infinity, NaN or a number of 2^64 and more
 * counts as f32. Integers wrap. Floats follow IEEE: NaN passes through every op. Rank is at most
 * TG_MAX_RANK. Only one thread at a time may use a context; contexts share nothing. */
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
  TG_OK = 0,
  TG_ERR_NOMEM,
  TG_ERR_SHAPE,
  TG_ERR_DTYPE,
  TG_ERR_VALUE,
  TG_ERR_DEVICE,
  TG_ERR_COMPILE,
  TG_ERR_IO,
  TG_ERR_STATE,
  TG_ERR_LIMIT,
  TG_ERR_INTERNAL,
  TG_ERR_CANCELLED /* tg_cancel was called */
} TgStatus;
#endif
typedef enum TgDType {
  TG_DTYPE_DEFAULT = 0,
  TG_BOOL,
  TG_I8,
  TG_U8,
  TG_I16,
  TG_U16,
  TG_I32,
  TG_U32,
  TG_I64,
  TG_U64,
  TG_F16,
  TG_BF16,
  TG_F32,
  TG_F64,
  TG_FP8E4M3, /* OCP e4m3fn: largest value 448, no infinity; larger values become NaN */
  TG_FP8E5M2  /* largest value 57344; has infinities */
} TgDType;

/* how a loss combines its elements */
typedef enum TgReduction { TG_MEAN = 0, TG_SUM, TG_NONE } TgReduction;

typedef enum TgPadMode { TG_PAD_CONSTANT = 0, TG_PAD_REFLECT, TG_PAD_REPLICATE, TG_PAD_CIRCULAR } TgPadMode;

typedef enum TgInterpolation { TG_LINEAR = 0, TG_NEAREST, TG_NEAREST_EXACT } TgInterpolation;
typedef struct TgContext TgContext;
typedef struct TgTensor TgTensor;
typedef struct TgState TgState; /* see tg_io.h; layers and optimisers (tg_nn.h) take it too */
typedef TgStatus (*TgGradientFn)(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                 void *user);
typedef struct TgJit TgJit;
typedef TgStatus (*TgJitFn)(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user);
#define TG_MAX_RANK 16

/* Counted since tg_open or the last tg_counters_reset. */
typedef struct TgCounters {
  uint64_t kernels;                  /* kernels in the schedules that were run */
  uint64_t launches;                 /* kernels launched */
  uint64_t compiled;                 /* programs given to the device's compiler */
  uint64_t cache_hits;               /* programs found already compiled, in memory or on disk */
  uint64_t schedules, schedule_hits; /* graphs that were scheduled; schedules found in the cache */
  uint64_t nodes;                    /* graph nodes made by scheduling and by code generation */
  /* nodes that rules visited, rules that fired, further nodes that rules walked */
  uint64_t visits, firings, nested;
  uint64_t flops, bytes; /* estimated work of the launches */
  /* time in launches; on a device with a queue, counted once the host has waited for it */
  double ms;
  uint64_t graph_nodes;    /* nodes of the tensor graphs that were realized */
  uint64_t peak_bytes;     /* the most memory that the device held at once */
  uint64_t largest_source; /* the longest kernel source given to the device's compiler, in bytes */
  /* kernels that could not take all the opts chosen for them and run with fewer */
  uint64_t fallbacks;
  /* graphs that were scheduled again, with fewer stages in a kernel, because one of their kernels could
   * not be lowered */
  uint64_t cuts;
  uint64_t retried; /* times that the C compiler crashed and was started again without optimisation */
  uint64_t copies, bytes_copied; /* between devices */
  uint64_t graphs;               /* groups of captured launches that were replayed on the device as one */
  /* bytes of other ranks' devices that the host read, to return or to save them here */
  uint64_t bytes_read;
  /* kernels for which packed copies of weights were made, to be kept for later replays */
  uint64_t packed;
} TgCounters;

/* Made by TG_AXES(1) or TG_AXES(0, -1). If n is 0, the default applies (for reductions: all axes). The
 * function that is called refuses a bare number, .axis = 1, because C stores it in v[0] and leaves n 0. */
typedef struct TgAxes {
  int v[TG_MAX_RANK];
  int n;
} TgAxes;

#define TG_MAX_SPATIAL 4

/* Sizes along the spatial axes of convolutions and pools: none (the default), one for all axes, or one per
 * axis. A padding may also have two sizes per axis, before and after, with the last axis first: .stride =
 * TG_SIZES(2) .padding = TG_SIZES(0, 1). A bare number, .stride = 2, is one size for all axes: it is
 * stored in v[0], and n is 0. */
typedef struct TgSizes {
  int64_t v[2 * TG_MAX_SPATIAL];
  int n;
} TgSizes;

/* TG_NAMED({"h", 2}, {"w", 3}): for tg_rearrange */
typedef struct TgNamedSize {
  const char *name;
  int64_t size;
} TgNamedSize;

/* One index of tg_getitem and related functions. Indices are made by TG_ALL TG_AT(i) TG_SLICE(b, e[,
 * step]) TG_NEW TG_ELLIPSIS TG_TENSOR(t) TG_MASK(m). TG_OPEN as a bound of a slice leaves that bound out.
 * tg_getitem(x, TG_IDX(TG_SLICE(1, -1, 2), TG_AT(3), TG_NEW, TG_ELLIPSIS, TG_TENSOR(rows))) */
typedef enum TgIndexKind {
  TG_INDEX_ALL = 0,
  TG_INDEX_AT,
  TG_INDEX_SLICE,
  TG_INDEX_STEP,
  TG_INDEX_NEW,
  TG_INDEX_ELLIPSIS,
  TG_INDEX_TENSOR,
  TG_INDEX_MASK
} TgIndexKind;

/* kind STEP: a slice with a given step, which is not 0 */
typedef struct TgIndex {
  TgIndexKind kind;
  int64_t begin, end, step;
  TgTensor *tensor;
} TgIndex;

#define TG_OPEN INT64_MIN

/* ---- option structs: `size`, `set` and `end_` are filled in by the macros */
/* Receives what the library would otherwise print (TG_DEBUG, TG_TRACE): text of one or more whole lines. */
typedef void (*TgLogFn)(const char *text, void *user);
typedef void *(*TgAllocateFn)(size_t nbytes, void *user);
typedef void *(*TgReallocateFn)(void *p, size_t nbytes, void *user);
typedef void (*TgReleaseFn)(void *p, void *user);

/* The memory of a context: these functions behave as malloc, realloc and free do; allocate may return
 * NULL. The allocator must outlive the context, and may be called from several threads at once. */
typedef struct TgAllocator {
  TgAllocateFn allocate;
  TgReallocateFn reallocate;
  TgReleaseFn release;
  void *user;
} TgAllocator;

/* Options of tg_open. A field that is 0 or NULL has its default.
 *   device        "CPU", "INTERP", "CUDA", ..; default: $TG_DEV, otherwise the best device present. If no
 *                 device is named and there is no C compiler, the CPU is passed over, and the log says so.
 *   seed          of the random numbers; default, if it is not written: the time
 *   threads       threads of a CPU device, including the caller's; default: $TG_THREADS, otherwise as many as
 *                 the process has cores
 *   cores         cores of the machine that kernels are planned for; default: this machine's, and 8 on NULL
 *                 devices, so that their text is the same everywhere
 *   unpinned      the device's threads may move between cores; by default each is pinned to its own core
 *   memory_limit  bytes that the device may have in use, as tg_memory_limit
 *   log, log_user log receives the text of TG_DEBUG and TG_TRACE, and must not use the context;
 *                 default: stderr
 *   allocator     of all memory of the context: graphs, and on CPUs tensors; default: malloc */
typedef struct TgOpenOptions {
  size_t size;
  const char *set;
  const char *device;
  uint64_t seed;
  int threads, cores;
  bool unpinned;
  uint64_t memory_limit;
  TgLogFn log;
  void *log_user;
  const TgAllocator *allocator;
  int end_;
} TgOpenOptions;

typedef struct TgDTypeOptions {
  size_t size;
  const char *set;
  TgDType dtype;
  const char *device;
  int end_;
} TgDTypeOptions;

typedef struct TgArangeOptions {
  size_t size;
  const char *set;
  double step;
  TgDType dtype;
  const char *device;
  int end_;
} TgArangeOptions;

typedef struct TgEyeOptions {
  size_t size;
  const char *set;
  int64_t m;
  TgDType dtype;
  const char *device;
  int end_;
} TgEyeOptions;

typedef struct TgKaimingOptions {
  size_t size;
  const char *set;
  TgDType dtype;
  double a;
  const char *device;
  int end_;
} TgKaimingOptions;

typedef struct TgMultinomialOptions {
  size_t size;
  const char *set;
  bool replacement;
  int end_;
} TgMultinomialOptions;

typedef struct TgReduceOptions {
  size_t size;
  const char *set;
  TgAxes axis;
  bool keepdim;
  TgDType dtype;
  int end_;
} TgReduceOptions;

typedef struct TgVarOptions {
  size_t size;
  const char *set;
  TgAxes axis;
  bool keepdim, biased;
  int correction;
  int end_;
} TgVarOptions;

typedef struct TgAxisOptions {
  size_t size;
  const char *set;
  TgAxes axis;
  bool keepdim;
  TgDType dtype;
  int end_;
} TgAxisOptions;

typedef struct TgNormalizeOptions {
  size_t size;
  const char *set;
  int axis;
  double p, eps;
  bool zero;
  int end_;
} TgNormalizeOptions;

typedef struct TgMatmulOptions {
  size_t size;
  const char *set;
  TgDType dtype;
  int end_;
} TgMatmulOptions;

typedef struct TgConvOptions {
  size_t size;
  const char *set;
  TgTensor *bias;
  int64_t groups;
  TgSizes stride, dilation, padding, output_padding;
  TgDType dtype;
  int end_;
} TgConvOptions;

typedef struct TgPoolOptions {
  size_t size;
  const char *set;
  TgSizes kernel, stride, dilation, padding;
  int axes;
  bool exclude_pad, ceil_mode;
  TgTensor **indices;
  TgSizes output_size;
  int end_;
} TgPoolOptions;

typedef struct TgLossOptions {
  size_t size;
  const char *set;
  TgAxes axis;
  TgReduction reduction;
  double label_smoothing;
  TgTensor *weight;
  bool ignore;
  int64_t ignore_index;
  int end_;
} TgLossOptions;

typedef struct TgNormOptions {
  size_t size;
  const char *set;
  TgTensor *weight, *bias;
  double eps, momentum;
  int dims;
  int end_;
} TgNormOptions;

typedef struct TgAttentionOptions {
  size_t size;
  const char *set;
  TgTensor *mask;
  bool causal, grouped;
  double scale, dropout;
  int end_;
} TgAttentionOptions;

typedef struct TgIndexPutOptions {
  size_t size;
  const char *set;
  bool accumulate;
  int end_;
} TgIndexPutOptions;

typedef struct TgCloseOptions {
  size_t size;
  const char *set;
  double rtol, atol;
  bool exact, equal_nan;
  int end_;
} TgCloseOptions;

typedef struct TgGradientOptions {
  size_t size;
  const char *set;
  TgTensor *gradient;
  int end_;
} TgGradientOptions;

typedef struct TgSvdOptions {
  size_t size;
  const char *set;
  bool full_matrices;
  int end_;
} TgSvdOptions;

typedef struct TgInterpolateOptions {
  size_t size;
  const char *set;
  TgInterpolation mode;
  bool align_corners;
  int end_;
} TgInterpolateOptions;

typedef struct TgShardOptions {
  size_t size;
  const char *set;
  const int64_t *bounds;
  int end_;
} TgShardOptions;

typedef struct TgSortOptions {
  size_t size;
  const char *set;
  TgAxes axis;
  bool descending;
  int end_;
} TgSortOptions;

typedef struct TgTopkOptions {
  size_t size;
  const char *set;
  TgAxes axis;
  bool smallest, unsorted;
  int end_;
} TgTopkOptions;

typedef enum TgScatterReduce {
  TG_SCATTER_SET,
  TG_SCATTER_ADD,
  TG_SCATTER_MULTIPLY,
  TG_SCATTER_MEAN,
  TG_SCATTER_AMAX,
  TG_SCATTER_AMIN
} TgScatterReduce;

typedef struct TgScatterOptions {
  size_t size;
  const char *set;
  TgScatterReduce reduce;
  bool exclude_self;
  int end_;
} TgScatterOptions;

typedef struct TgSelectOptions {
  size_t size;
  const char *set;
  bool fixed;
  int64_t size_given;
  double fill_value;
  int end_;
} TgSelectOptions;

typedef struct TgFileOptions {
  size_t size;
  const char *set;
  int64_t offset;
  bool writable, create;
  const char *device;
  int end_;
} TgFileOptions;

typedef struct TgVariableOptions {
  size_t size;
  const char *set;
  int64_t multiple_of;
  int end_;
} TgVariableOptions;

typedef struct TgOptOptions {
  size_t size;
  const char *set;
  const char *pass, *emit, *opts, *from;
  int end_;
} TgOptOptions;

typedef struct TgExplainOptions {
  size_t size;
  const char *set;
  const char *kernel;
  bool json, measure;
  int end_;
} TgExplainOptions;

typedef struct TgCOptions {
  size_t size;
  const char *set;
  const char *name, *header, *target;
  const char *const *names;
  TgTensor *const *tensors;
  int count, threads;
  int64_t max_ram;
  bool own_math, weights_apart, big_endian, streamed, linked;
  const char *vectors;
  bool same_bits;
  int end_;
} TgCOptions;

#ifndef __cplusplus
#define TG_AXES(...)  ((TgAxes){{__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))})
#define TG_SIZES(...) ((TgSizes){{__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))})
#define TG_SHAPE(...)                                                                                        \
  ((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), ((const int64_t[]){__VA_ARGS__})
#define TG_IDX(...)                                                                                          \
  ((const TgIndex[]){__VA_ARGS__}), ((int)(sizeof((const TgIndex[]){__VA_ARGS__}) / sizeof(TgIndex)))
/* clang-format off */
#define TG_ALL                   {.kind = TG_INDEX_ALL}
#define TG_AT(i)                 {.kind = TG_INDEX_AT, .begin = (i)}
#define TG_NEW                   {.kind = TG_INDEX_NEW}
#define TG_ELLIPSIS              {.kind = TG_INDEX_ELLIPSIS}
#define TG_TENSOR(t)             {.kind = TG_INDEX_TENSOR, .tensor = (t)}
#define TG_MASK(m)               {.kind = TG_INDEX_MASK, .tensor = (m)}
#define TG_SLICE2_(b, e, ...)    {.kind = TG_INDEX_SLICE, .begin = (b), .end = (e)}
#define TG_SLICE3_(b, e, s, ...) {.kind = TG_INDEX_STEP, .begin = (b), .end = (e), .step = (s)}
#define TG_SLICE_PICK_(a, b, c, name, ...) name
#define TG_SLICE(...) TG_SLICE_PICK_(__VA_ARGS__, TG_SLICE3_, TG_SLICE2_, 0)(__VA_ARGS__, 0)
/* clang-format on */
#define TG_NAMED(...)                                                                                        \
  ((const TgNamedSize[]){__VA_ARGS__}),                                                                      \
      ((int)(sizeof((const TgNamedSize[]){__VA_ARGS__}) / sizeof(TgNamedSize)))
#define TG_WITH_(T, ...)                      ((T){.size = sizeof(T), .set = #__VA_ARGS__, __VA_ARGS__})
#define TG_OPT0_(f, T, ...)                   f(&TG_WITH_(T, __VA_ARGS__))
#define TG_OPT1_(f, T, a, ...)                f((a), &TG_WITH_(T, __VA_ARGS__))
#define TG_OPT2_(f, T, a, b, ...)             f((a), (b), &TG_WITH_(T, __VA_ARGS__))
#define TG_OPT3_(f, T, a, b, c, ...)          f((a), (b), (c), &TG_WITH_(T, __VA_ARGS__))
#define TG_OPT4_(f, T, a, b, c, d, ...)       f((a), (b), (c), (d), &TG_WITH_(T, __VA_ARGS__))
#define TG_OPT5_(f, T, a, b, c, d, e, ...)    f((a), (b), (c), (d), (e), &TG_WITH_(T, __VA_ARGS__))
#define TG_OPT6_(f, T, a, b, c, d, e, g, ...) f((a), (b), (c), (d), (e), (g), &TG_WITH_(T, __VA_ARGS__))
#define TG_WITH(...)                          TG_WITH_(__VA_ARGS__, .end_ = 0)
#endif
#define TG_SCALAR 0, ((const int64_t *)0) /* the shape () */

/* ---- context */
/* [options] see TgOpenOptions. Opens a context on options->device ("CPU", "INTERP", "CUDA", ..), otherwise
 * on $TG_DEV, otherwise on the best device present: tg_open(NULL), tg_open_with(.device = "CPU"). Returns
 * NULL only if out of memory. Any other failure (TG_ERR_DEVICE, TG_ERR_VALUE) is reported by tg_error of
 * the context, which must still be closed. */
TG_API TgContext *tg_open(const TgOpenOptions *options);
/* Ends every tensor of the context and frees the context. ctx may be NULL. */
TG_API void tg_close(TgContext *ctx);
/* The first error since tg_open or tg_clear_error; TG_ERR_NOMEM if ctx is NULL. */
TG_API TgStatus tg_error(const TgContext *ctx);
/* the text of that error, "" if none; valid until the context closes */
TG_API const char *tg_errmsg(const TgContext *ctx);
TG_API void tg_clear_error(TgContext *ctx); /* forgets the error */
/* Records an error as the library does, for code that is built on this header. An earlier error is kept.
 * text is copied (cut at about 500 characters). Returns status. */
TG_API TgStatus tg_set_error(TgContext *ctx, TgStatus status, const char *text);
TG_API const char *tg_status_name(TgStatus s);              /* "shape error" */
TG_API const char *tg_version(void);                        /* "0.1.0" */
TG_API const char *tg_default_device(const TgContext *ctx); /* "CPU"; "" if no device opened */
/* From now on this device holds memory for which no device is named, draws random numbers, and computes
 * what is made of numbers alone. Existing tensors stay where they are. NULL: the device that the context
 * was opened on. TG_ERR_VALUE: there is no device of that name; TG_ERR_DEVICE: the device cannot be
 * opened, or only holds files. */
TG_API TgStatus tg_set_default_device(TgContext *ctx, const char *device);
TG_API const char *tg_device_describe(const TgContext *ctx); /* one line about the device */
TG_API const char *tg_device_name(int i); /* names that tg_open accepts, present or not; NULL past the last */
/* ---- devices. A tensor has the same shape and dtype on each device. A context computes on its default
 * device, which is at first the one it was opened on, and on every other device that is named: "INTERP",
 * "CPU:1" (a second CPU with threads, memory and counters of its own). A device is opened when it is first
 * named. Memory is on one device, and so is what is computed from it. Numbers, aranges and what is
 * computed from them alone can be used with any device. Tensors of two devices in one operation:
 * TG_ERR_DEVICE. */
TG_API const char *tg_device(const TgTensor *t); /* where t's value is or will be; for numbers: the default */
/* Returns x on another device (NULL: the default), lazily; if x is already there, a view of x. Gradients
 * are copied back in the same way. TG_ERR_VALUE: no such device; TG_ERR_DEVICE: the device does not work
 * here. */
TG_API TgTensor *tg_to(TgTensor *x, const char *device);
/* ---- tensors on several devices (docs/many.md). A tensor is either split along an axis, so that each of n
 * devices has a part, or whole on each device; shape and dtype are those of the whole tensor. An operation on
 * it is computed on all of these devices, each on its part. Sums over the split axis, products along it and
 * similar operations exchange what they need, lazily like everything else. tg_read gathers. Gradients are on
 * the devices of their tensors. tg_assign stores to each part. Numbers can be used with any device. A view
 * that does not contain a part from each device (for example one index of the split axis) sees stores, but
 * tg_assign refuses to write to it, TG_ERR_DEVICE: use tg_setitem. An operation with a tensor that is on
 * another device, or on other devices, is refused: TG_ERR_DEVICE. tg_device returns the devices of such a
 * tensor as one text, "CPU,CPU:1". tg_to and .device accept that text too: the tensor is then whole on each
 * device.
 * [options] .bounds (n + 1 numbers, from 0 to the size of the axis: where each part begins, and where the
 * last one ends; parts may have size 0). Without it, sizes differ by at most 1, the larger ones first. A
 * negative axis counts from the end. If n is 1, the call is the same as tg_to. A tensor that is already on
 * several devices is moved. TG_ERR_SHAPE: no such axis, or its size is symbolic; TG_ERR_VALUE: a device is
 * named twice, or there is no device of a name, or bounds do not fit; TG_ERR_DEVICE: a device cannot be
 * opened, or only holds files. */
TG_API TgTensor *tg_shard_opt(TgTensor *x, int n, const char *const *devices, int axis,
                              const TgShardOptions *o);
TG_API TgTensor *tg_replicate(TgTensor *x, int n, const char *const *devices); /* all of x on each */
/* Puts x on the devices of `like`, split in the same way. TG_ERR_SHAPE: x does not have that axis with
 * that size. */
TG_API TgTensor *tg_shard_like(TgTensor *x, TgTensor *like);
/* all of x on one device (NULL: the default) */
TG_API TgTensor *tg_gather_to(TgTensor *x, const char *device);
/* number of its devices; 1: it is on one device */
TG_API int tg_shard_count(const TgTensor *x);
TG_API int tg_shard_axis(TgTensor *x); /* the axis that is split; -1: none is */
/* Writes where each part begins and where the last one ends, tg_shard_count + 1 numbers. TG_ERR_VALUE: x
 * is not split. */
TG_API TgStatus tg_shard_bounds(TgTensor *x, int64_t *bounds);
/* Returns part i, 0 <= i < tg_shard_count, as a tensor on the part's device; a view if x is memory.
 * Otherwise TG_ERR_VALUE. */
TG_API TgTensor *tg_shard_part(TgTensor *x, int i);
/* ---- ranks (docs/many.md): processes that run the same program, on one machine or several, each with
 * devices of its own. $TG_COMM says how they reach each other ("local", "mpi", "nccl", or the path of a
 * plug-in); `tg launch` and mpirun start them. All ranks make the same calls in the same order. "CPU@2"
 * names the CPU of rank 2, on every rank. A tensor on several such devices is sharded, and each part is
 * computed where it is. "CPU", without a rank, is each rank's own CPU, and has the same values in each
 * rank. Every rank receives what is read (tg_read, tg_item). The first of these calls joins the ranks;
 * from then on all of them draw with rank 0's seed. TG_ERR_DEVICE, which names the rank and where: a rank
 * runs another program, fails, ends, or does not arrive within TG_COMM_TIMEOUT seconds (300). After that
 * nothing more can be exchanged. */
TG_API int tg_comm_size(TgContext *ctx); /* 1: there are no other ranks, or the recorded error says why not */
TG_API int tg_comm_rank(TgContext *ctx); /* 0 .. size - 1 */
/* names[r] becomes the name of that device (NULL: the default) on rank r; without $TG_COMM, of the one
 * device there is. The names live as long as the context. Returns the number of ranks; -1: TG_ERR_LIMIT,
 * more than `most`, or than 15; TG_ERR_VALUE: no such device; TG_ERR_DEVICE: a rank does not have it, or
 * is not there. */
TG_API int tg_comm_devices(TgContext *ctx, const char *device, int most, const char **names);
/* Waits for all ranks; *value becomes the largest value that any of them passes. Use it for what only one
 * rank knows: that a signal arrived, or that a file could not be written. With a single rank *value is
 * unchanged. TG_ERR_DEVICE: as above. */
TG_API TgStatus tg_comm_max(TgContext *ctx, int64_t *value);
/* Like tg_read, but only one rank reads. All ranks call it; the other ranks send what they have of t, and
 * their out may be NULL. What the reading rank has on a device of its own, and what all ranks have, is not
 * sent. TG_ERR_VALUE: no such rank. */
TG_API TgStatus tg_comm_read(TgTensor *t, int rank, void *out, size_t nbytes);
/* How data of one device reaches another (NULL: the default); both are opened. "same": they are one
 * device; "memory": both use the memory where it is; "peer": one reads the other's memory; "host": the
 * data is copied through the host's memory; "ranks": messages between processes. NULL: there is no such
 * device, or it cannot be opened. */
TG_API const char *tg_device_link(TgContext *ctx, const char *from, const char *to);
/* Limits the bytes that a device (NULL: the default) has in use; 0: no limit but the memory there is. An
 * allocation beyond the limit fails with TG_ERR_NOMEM, after memory held only by caches was given back;
 * nothing else is lost. */
TG_API TgStatus tg_memory_limit(TgContext *ctx, const char *device, uint64_t nbytes);
/* Memory that a computation needs between its kernels is returned to a pool, from which the next
 * computation takes it. This limits the bytes that the pool of a device (NULL: the default) keeps; 0:
 * twice the most that were in use at once. tg_collect empties the pool. */
TG_API TgStatus tg_pool_limit(TgContext *ctx, const char *device, uint64_t nbytes);
/* Facts for bug reports, i = 0, 1, ..: how the library was built, the device, the cache on disk, the
 * environment variables that it reads and their values ("" if unset). *name says what the text describes.
 * Returns NULL past the last fact. The text is valid until the next call. */
TG_API const char *tg_info(TgContext *ctx, int i, const char **name);
TG_API TgCounters tg_counters(const TgContext *ctx); /* what the context has done so far */
TG_API void tg_counters_reset(TgContext *ctx);       /* sets all of them to 0 */
/* Sets the setting `name` (NOOPT FUSE PREPACK BATCH_INVARIANT ALLREDUCE ALLREDUCE_CAST DEBUG, which are
 * the environment variables TG_.. of those names, TRAINING or ORIGIN) to value, unless value is negative.
 * Returns the value before, so that a caller can restore it: int old = tg_setting(ctx, "NOOPT", 1); ..;
 * tg_setting(ctx, "NOOPT", old). BATCH_INVARIANT 1: on a CPU the order of a sum depends only on the loop
 * that it runs along, not on the loops around it, so that a row has the same bits alone as among other
 * rows. This does not hold where NOOPT, OPTS or BEAM choose the loops. PREPACK and BATCH_INVARIANT are
 * read when tg_jit makes a function, and then hold for all its runs. -1, TG_ERR_VALUE: no such setting or
 * value. */
TG_API int tg_setting(TgContext *ctx, const char *name, int value);
/* May be called from any thread and from a signal handler. What is being scheduled or compiled, or is
 * about to run, ends with TG_ERR_CANCELLED. While a compiler is running this takes about 50 ms, because
 * the compiler is ended with all processes that it started. If nothing is under way, the next action ends
 * with that error. A schedule that has begun to run is completed, so nothing is half stored. Once the
 * error was reported and tg_clear_error was called, the context can be used again. */
TG_API void tg_cancel(TgContext *ctx);
/* For work of a host between two actions, such as a loop that builds graphs. Records and returns
 * TG_ERR_CANCELLED if tg_cancel was called and no action has reported it yet; otherwise returns TG_OK. */
TG_API TgStatus tg_cancelled(TgContext *ctx);
TG_API TgStatus tg_sync(TgContext *ctx); /* waits until the device has done all that it was given */
/* Forgets the schedules and programs kept for graphs that were seen before, so that the next tg_realize
 * lowers and compiles anew. Use it for measuring, and to free memory. The device's cache on disk stays. */
TG_API void tg_cache_clear(TgContext *ctx);
TG_API TgStatus tg_collect(TgContext *ctx); /* frees graph nodes and buffers that nothing refers to */

/* ---- kernels as text */
typedef struct TgKernelText {
  size_t size;
  /* language: "C", "CUDA", "METAL"; source: one kernel, to be placed below tg_source_prelude */
  const char *name, *language, *opts, *source;
  int threads, grid[3], block[3]; /* threads on a CPU; blocks, and threads of a block, on a GPU */
} TgKernelText;

/* seen(k, user) is called for each kernel made from now on, before it is compiled. The strings end with
 * the call. seen must not use the context. Kernels kept from before are not made again (tg_cache_clear
 * forgets them). INTERP takes no text: its source is "". If seen is NULL, the calls stop. */
TG_API void tg_watch_kernels(TgContext *ctx, void (*seen)(const TgKernelText *k, void *user), void *user);

/* The progress of an action that makes kernels. phase: first "lower" (graphs to programs), then "compile". */
typedef struct TgProgress {
  size_t size;
  const char *phase;
  int done, all; /* kernels; in phase "compile" only those that are new to the context */
} TgProgress;

/* seen(p, user) is called while kernels are made, by the thread that requested the action, several times a
 * second while it waits for the compiler. p ends with the call. seen must not use the context except for
 * tg_cancel. If seen is NULL, the calls stop. */
TG_API void tg_watch_progress(TgContext *ctx, void (*seen)(const TgProgress *p, void *user), void *user);
/* The types and helper functions that kernels of this device use; "" if the device takes no text, NULL if
 * out of memory. The text lives as long as the context. */
TG_API const char *tg_source_prelude(TgContext *ctx);

/* For functions with options in code that is built on this header. tg_options_read copies the caller's
 * options, whose struct may be smaller or larger, to a struct of `size` bytes that begins as every options
 * struct does (NULL: all zero). TG_ERR_VALUE, with a sentence that names function and type ("sum",
 * "TgReduceOptions"): the caller's size is 0. tg_option_written returns whether `set` names the field.
 * TG_OPTION(o, eps, 1e-5) is o.eps, or the default if it was not written. */
TG_API TgStatus tg_options_read(TgContext *ctx, const char *function, const char *type, void *to, size_t size,
                                const void *options);
TG_API bool tg_option_written(const char *set, const char *field);
#define TG_OPTION(o, field, otherwise)                                                                       \
  ((o).field != 0 || tg_option_written((o).set, #field) ? (o).field : (otherwise))
/* Compiled kernels, for processes that have no compiler or should not wait for it. tg_bundle returns all
 * kernels that the context's devices have loaded so far (at most a few dozen of those that nothing runs
 * any more) and those of the bundles that the context was given, as *nbytes bytes that live until the next
 * call; NULL: an error. Devices that keep no compiled kernels (GPUs, INTERP) contribute none. After
 * tg_bundle_use, kernels are looked up in that bundle too before a compiler is run. A kernel is found by
 * its text, and is used on processors that have all features of the one that it was compiled for; bundles
 * of several machines may be passed one after the other. A bundle is machine code: accept one only from
 * someone whose programs you would run. TG_ERR_VALUE: the bytes are not a complete bundle of tg_bundle.
 * tg_io.h has both functions with files. */
TG_API const void *tg_bundle(TgContext *ctx, size_t *nbytes);
TG_API TgStatus tg_bundle_use(TgContext *ctx, const void *bytes, size_t nbytes);

/* Memory of the context, zeroed, for code that is built on this header (layers, optimisers). Return it
 * with tg_free before tg_close. NULL: TG_ERR_NOMEM. */
TG_API void *tg_alloc(TgContext *ctx, size_t nbytes);
TG_API void tg_free(TgContext *ctx, void *p); /* p may be NULL */

/* flops: an estimate. microseconds: an estimate in tg_schedule, the device's measurement in
 * tg_watch_launches. part: the numbers of the parts that the launch computes (tg_schedule_parts),
 * ascending, nparts of them. */
typedef struct TgLaunch {
  size_t size;
  const char *name;
  int nargs;
  int64_t flops;
  double microseconds;
  const int *part;
  int nparts;
  const char *origin; /* the operations that it computes, "matmul (net.c:12), relu (net.c:12)"; "": unknown */
} TgLaunch;

/* ---- where operations come from. Each call of a function that builds, through its macro in tg_origin.h,
 * records its function, file and line. Kernels can then say which operations they compute (TG_DEBUG=2,
 * profiles, TgLaunch), and an error can say in which call it arose. If TG_NO_ORIGIN is defined before this
 * header, the macros are left out. Function pointers and bindings call the plain functions, and may record
 * an origin of their own. A handle points to the text of its origin. Origins of nodes whose handles have
 * ended are kept only if TG_DEBUG, TG_PROFILE or tg_setting(ctx, "ORIGIN", 1) requests it. Equal
 * operations of two places are one node, which has the origin of the first place. A tensor that is passed
 * through keeps its shape and dtype. Where no error is named, TG_ERR_NOMEM is the only one. */
/* Records that t was made by the call that the text names, "relu (net.c:12)", unless t already has an
 * origin. The text must live as long as t. Returns t. */
TG_API TgTensor *tg_origin(TgTensor *t, const char *place);
/* Marks the beginning of a call whose argument is x, or ctx: the message of an error that it causes ends
 * with the text. Returns its argument. */
TG_API TgTensor *tg_origin_here(TgTensor *x, const char *place);
TG_API TgContext *tg_origin_within(TgContext *ctx, const char *place);
/* "encoder/conv1/relu (net.c:12)"; "" if nothing is known. Valid until the next call. */
TG_API const char *tg_origin_of(TgTensor *t);
/* Until tg_name_end, whatever is built counts as part of this name ("conv1"): a layer, or a node of a
 * model file. Names nest. The text is copied. TG_ERR_STATE: end without begin. */
TG_API TgStatus tg_name_begin(TgContext *ctx, const char *name);
TG_API TgStatus tg_name_end(TgContext *ctx);
/* Plans what tg_realize_many would run and passes each launch to seen, in order, without running it. seen
 * may be NULL. Returns the number of launches, -1 on error. */
TG_API int tg_schedule(TgTensor *const *t, size_t n, void (*seen)(const TgLaunch *l, void *user), void *user);
/* The same, but each launch also lists the parts that it computes. Parts are tensors on the way to t, in
 * the order in which they were built, such as the outputs of a model's layers. The nodes that a part is
 * computed from, down to other parts, count as that part; a node that several parts share counts as the
 * first of them. A fused kernel may compute several parts, a part may take several kernels, and a part
 * that only renames elements or that nothing reads may take no kernel. */
TG_API int tg_schedule_parts(TgTensor *const *t, size_t n, TgTensor *const *part, size_t nparts,
                             void (*seen)(const TgLaunch *l, void *user), void *user);
/* seen(l, user) is called after each launch from now on, in tg_realize and in replays, with the time that
 * the device measured. Launches are then run one by one, each waited for, so that each measured time is
 * exact but their total is longer than without watching. l ends with the call. seen must not use the
 * context. If seen is NULL, the calls stop. */
TG_API void tg_watch_launches(TgContext *ctx, void (*seen)(const TgLaunch *l, void *user), void *user);
/* From now on, until tg_profile_stop or tg_close, writes a file that Chrome's tracing and Perfetto read.
 * It has a track for the host (realize, schedule, lower, compile, copy, read, replay, and what it waits
 * for), one for each device or its queue (each launch with its work, its bytes, its share of the roof and
 * its estimated time; between launches the device is idle), one for each thread that shares launches, and
 * one for the device's memory. Launches are run one by one, as under tg_watch_launches. TG_PROFILE=path
 * does the same from tg_open on; if that file already exists, path.2, path.3 and so on is written.
 * TG_ERR_IO: the file cannot be made; TG_ERR_STATE: a profile is already being written. */
TG_API TgStatus tg_profile_start(TgContext *ctx, const char *path);
TG_API TgStatus tg_profile_stop(TgContext *ctx); /* TG_ERR_IO: not everything could be written */
/* [options] .measure (the plan is also run, and its kernels timed) .json (every fact, as JSON) .kernel
 * (the source of one, by its name or as "0.2", kernel 2 of graph 0). Describes as text what
 * tg_realize_many would run: five lines with the size of the work and what may make it slow, then each
 * graph with its kernels (origins, loops, opts and times), its memories and why stages were not fused, and
 * finally the exchanges between devices. The plans are made anew for this (tg_cache_clear).
 * TG_EXPLAIN=file writes the same about everything that a context ran, when it closes. NULL: an error. The
 * text lives until the next call. */
TG_API const char *tg_explain_opt(TgTensor *const *t, size_t n, const TgExplainOptions *o);
/* Runs a kernel written by the user now. The text is a kernel graph in the form that TG_DUMP writes and
 * tg_opt reads (RANGE, INDEX, REDUCE, STORE..; the heuristic's opts apply). Its PARAM of slot i is
 * args[i], row-major, with the same dtype and number of elements. Arguments that are stored to are changed
 * in place, as by tg_assign. An access outside its tensor reads 0 and stores nothing (INTERP: an error).
 * The kernel has no gradient of its own; tg_custom_gradient adds one. TG_ERR_VALUE: the text, with line
 * and column, or a slot without a tensor; TG_ERR_SHAPE, TG_ERR_DTYPE: a PARAM that does not match its
 * tensor; TG_ERR_STATE: part of a tensor is written. */
TG_API TgStatus tg_kernel(TgContext *ctx, const char *text, TgTensor *const *args, int n);
/* Applies the elementwise op of that name (src/uop/ops.def: "ADD", "SQRT", "WHERE", ..) to n tensors.
 * Shapes are broadcast; dtypes must be equal, because nothing is promoted. TG_ERR_VALUE: no such op;
 * TG_ERR_DTYPE: the op does not take these dtypes. */
TG_API TgTensor *tg_alu(const char *op, TgTensor *const *x, int n);

/* ---- scopes and handles. A handle of a tensor, whatever its shape and dtype, ends with the scope that
 * was innermost when the handle was made, unless it is kept. Errors: TG_ERR_NOMEM, and those that each
 * function names. */
/* Until tg_scope_end, new tensors belong to a new scope. Scopes nest. */
TG_API TgStatus tg_scope_begin(TgContext *ctx);
TG_API TgStatus tg_scope_end(TgContext *ctx); /* ends the tensors made in it; TG_ERR_STATE: none was begun */
TG_API TgTensor *tg_keep(TgTensor *t);        /* t lives until tg_release or tg_close; returns t */
TG_API void tg_release(TgTensor *t);          /* ends t now, kept or not */
#define TG_CAT2_(a, b) a##b
#define TG_CAT_(a, b)  TG_CAT2_(a, b)
/* TG_SCOPE(ctx) { .. }: everything made inside ends with the block. `continue` ends the block early; do
 * not leave it by break or return. */
#define TG_SCOPE(ctx)                                                                                        \
  for (int TG_CAT_(tg_once_, __LINE__) = tg_scope_begin(ctx) == TG_OK; TG_CAT_(tg_once_, __LINE__);          \
       TG_CAT_(tg_once_, __LINE__) = 0, (void)tg_scope_end(ctx))

/* ---- questions about a tensor. If t is NULL they return 0, TG_DTYPE_DEFAULT or NULL. */
TG_API int tg_ndim(const TgTensor *t);
/* tg_ndim sizes; valid while t lives. Symbolic sizes have the values bound now (see variables). */
TG_API const int64_t *tg_shape(const TgTensor *t);
/* size of an axis (negative: from the end); -1: no such axis */
TG_API int64_t tg_dim(const TgTensor *t, int axis);
TG_API int64_t tg_numel(const TgTensor *t);         /* number of its elements */
TG_API TgDType tg_dtype(const TgTensor *t);         /* dtype of its elements */
TG_API size_t tg_nbytes(const TgTensor *t);         /* tg_numel times the size of an element */
TG_API TgContext *tg_context(const TgTensor *t);    /* the context it belongs to */
TG_API size_t tg_dtype_size(TgDType d);             /* bytes of an element */
TG_API const char *tg_dtype_name(TgDType d);        /* "f32" */
TG_API bool tg_dtype_is_float(TgDType d);           /* f16, bf16, f32, f64, fp8 */
TG_API TgDType tg_dtype_join(TgDType a, TgDType b); /* the result dtype of an operation on both */

TG_API size_t tg_element_size(const TgTensor *t);    /* bytes of an element */
TG_API bool tg_is_floating_point(const TgTensor *t); /* tg_dtype_is_float of its dtype */
TG_API int64_t tg_len(const TgTensor *t);            /* size of the first axis; -1 for a 0-d tensor */
/* One line for people, "tensor f32 (2, 3) on CPU, requires a gradient". Computes nothing. Valid until the
 * next call with a tensor of the context. */
TG_API const char *tg_describe(const TgTensor *t);

/* ---- data in. Shape and dtype are those of the arguments. Errors: TG_ERR_SHAPE (negative size, rank,
 * overflow), TG_ERR_VALUE, TG_ERR_NOMEM, TG_ERR_DEVICE. */
/* Copies row-major elements of dtype from data. tg_from(ctx, p, TG_F32, TG_SHAPE(2, 3)) */
TG_API TgTensor *tg_from(TgContext *ctx, const void *data, TgDType dtype, int ndim, const int64_t *dims);
/* [options] .dtype. Reads a nested list, "[[1, 2], [3, 4]]" of numbers, true, false, nan and inf; its
 * nesting is the shape. Without a dtype the result is bool; i32 (i64 or u64 if needed); f32 if a number
 * has a point or an exponent, or if there are no numbers. TG_ERR_VALUE: a ragged list, or no list, with
 * the column. */
TG_API TgTensor *tg_from_text_opt(TgContext *ctx, const char *text, const TgDTypeOptions *o);
/* Copies nbytes bytes as a 1-D tensor of nbytes / (size of an element) elements; TG_DTYPE_DEFAULT: u8. */
TG_API TgTensor *tg_from_bytes(TgContext *ctx, const void *data, size_t nbytes, TgDType dtype);
/* Converts doubles to dtype (integers truncate toward zero). */
TG_API TgTensor *tg_from_f64(TgContext *ctx, const double *data, TgDType dtype, int ndim,
                             const int64_t *dims);
/* Uses data where it is (64-byte aligned is best) until no tensor needs it, then calls destroy(data, user)
 * if destroy is not NULL. Devices with memory of their own copy the data at once. */
TG_API TgTensor *tg_borrow(TgContext *ctx, void *data, TgDType dtype, int ndim, const int64_t *dims,
                           void (*destroy)(void *data, void *user), void *user);
/* Makes a tensor of a part of a regular file. One of dims may be -1: as much as the file has, in whole
 * elements.
 * [options] .device ("DISK": nothing is computed there; views of the tensor are read straight to where
 * tg_to moves them; not .writable) .offset (bytes, a multiple of the element's size) .writable .create
 * (writable; the file is made, or lengthened with zeros, if needed). The tensor's memory is the file, so
 * nothing is read before it is needed. tg_assign to a writable tensor writes the file when the tensor is
 * realized, at the latest in tg_close. Devices with memory of their own copy the data at once and write it
 * back. Nobody else may change the file meanwhile; if it is cut short, the next read ends the process.
 * TG_ERR_IO: the file is not there, not a regular file, or too short; TG_ERR_STATE: assigned but not
 * writable. */
TG_API TgTensor *tg_from_file_opt(TgContext *ctx, const char *path, TgDType dtype, int ndim,
                                  const int64_t *dims, const TgFileOptions *o);
/* Memory without a value. tg_read of it before tg_assign is an error (TG_ERR_STATE); computations take it
 * as zeros. */
TG_API TgTensor *tg_empty(TgContext *ctx, TgDType dtype, int ndim, const int64_t *dims);
/* [options] .dtype (default f32) .device: a constant tensor, which takes no memory until it needs some.
 * tg_full(ctx, TG_SHAPE(2, 3), 1.5) */
TG_API TgTensor *tg_full_opt(TgContext *ctx, int ndim, const int64_t *dims, double value,
                             const TgDTypeOptions *o);
TG_API TgTensor *tg_full_i64(TgContext *ctx, int ndim, const int64_t *dims, int64_t value, TgDType dtype);
TG_API TgTensor *tg_zeros_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
TG_API TgTensor *tg_ones_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
/* Shape and dtype of t. The value is converted as by tg_full: integers truncate and saturate, NaN is 0. */
TG_API TgTensor *tg_full_like(TgTensor *t, double value);
TG_API TgTensor *tg_zeros_like(TgTensor *t);
TG_API TgTensor *tg_ones_like(TgTensor *t);
/* shape (), the dtype that a scalar takes beside t */
TG_API TgTensor *tg_scalar_like(TgTensor *t, double value);
/* [options] .step (1) .dtype (i32, i64 if needed, f32 if an argument is a fraction): the values start,
 * start+step, .. before stop; shape (n). */
TG_API TgTensor *tg_arange_opt(TgContext *ctx, double start, double stop, const TgArangeOptions *o);
/* [options] .dtype (f32): steps values from start to stop, including both. TG_ERR_VALUE: steps < 0. */
TG_API TgTensor *tg_linspace_opt(TgContext *ctx, double start, double stop, int64_t steps,
                                 const TgDTypeOptions *o);
/* [options] .m (n) .dtype (f32): (n, m) with ones on the diagonal. */
TG_API TgTensor *tg_eye_opt(TgContext *ctx, int64_t n, const TgEyeOptions *o);

/* ---- random numbers: tinygrad's stream. A draw of n 32-bit words has the key threefry2x32(counter,
 * {device, low 32 bits of the seed}) and advances the counter by n; each element takes as many bytes of
 * the draw as its dtype has. The same seed gives the same numbers on every device, in every run. For a
 * symbolic size the largest number of elements is drawn, so that the first elements do not depend on how
 * its variables are bound. Errors: TG_ERR_SHAPE, TG_ERR_DTYPE, TG_ERR_VALUE (an empty range). */
TG_API void tg_manual_seed(TgContext *ctx, uint64_t seed); /* also resets the counter */

/* The position of the default device in its random numbers. After tg_random_resume the same numbers are
 * drawn as after the tg_random_state call that returned the state. order: the device's place, from 1, in
 * the order in which devices first draw. */
typedef struct TgRandomState {
  uint64_t seed, counter;
  int64_t order;
} TgRandomState;

TG_API TgRandomState tg_random_state(TgContext *ctx);
/* TG_ERR_VALUE: an order below 1; TG_ERR_DEVICE: no device is open */
TG_API TgStatus tg_random_resume(TgContext *ctx, TgRandomState state);
/* n words for a key and a counter, which have two u32 each, low word first: u32 (n). The context's counter
 * is unchanged. */
TG_API TgTensor *tg_random_bits(TgTensor *key, TgTensor *counter, int64_t n);
/* [options] uniform in [0, 1), any float dtype */
TG_API TgTensor *tg_rand_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
/* [options] normally distributed, computed in f32 */
TG_API TgTensor *tg_randn_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
/* [options] shape of t, and its dtype unless .dtype names another */
TG_API TgTensor *tg_rand_like_opt(TgTensor *t, const TgDTypeOptions *o);
TG_API TgTensor *tg_randn_like_opt(TgTensor *t, const TgDTypeOptions *o);
TG_API TgTensor *tg_empty_like_opt(TgTensor *t, const TgDTypeOptions *o);
/* [options] [low, high), or high by rounding: the numbers are made in f32, cast to .dtype (f32), and then
 * low is added. */
TG_API TgTensor *tg_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims, double low, double high,
                                const TgDTypeOptions *o);
TG_API TgTensor *tg_normal_opt(TgContext *ctx, int ndim, const int64_t *dims, double mean, double std,
                               const TgDTypeOptions *o);
/* Integers in [low, high): an f32 uniform times the span, so a span above 2^24 skips numbers. dtype: an
 * integer (i32). */
TG_API TgTensor *tg_randint(TgContext *ctx, int ndim, const int64_t *dims, int64_t low, int64_t high,
                            TgDType dtype);
/* [options] .dtype (i32): 0 .. n-1 in random order, (n) */
TG_API TgTensor *tg_randperm_opt(TgContext *ctx, int64_t n, const TgDTypeOptions *o);
/* [options] +-1 / sqrt(elements) */
TG_API TgTensor *tg_scaled_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                       const TgDTypeOptions *o);
/* [options] .a (0.01; torch's layers take sqrt(5)) .dtype. Uniform in +-sqrt(6 / ((1 + a^2) fan_in)), or
 * normal with deviation sqrt(2 / ((1 + a^2) fan_in)), where fan_in is the product of dims[1..]. */
TG_API TgTensor *tg_kaiming_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                        const TgKaimingOptions *o);
TG_API TgTensor *tg_kaiming_normal_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                       const TgKaimingOptions *o);
/* [options] uniform in +-sqrt(6 / (dims[0] + product of dims[1..])). */
TG_API TgTensor *tg_glorot_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                       const TgDTypeOptions *o);
/* [options] .replacement. Indices drawn by weight (n) or (rows, n); weights need not add up to 1. The
 * result is i32 (k) or (rows, k). */
TG_API TgTensor *tg_multinomial_opt(TgTensor *weight, int64_t k, const TgMultinomialOptions *o);
TG_API void tg_set_training(TgContext *ctx, bool on); /* turns tg_dropout on or off; off at first */
TG_API bool tg_training(const TgContext *ctx);        /* whether tg_dropout drops */

/* ---- variables: one plan and one kernel for many sizes. A variable is a named integer. A size made from it
 * may be used for any shape, end of a slice or index. Its value is given when the kernels run: if it is bound
 * to another value, nothing is scheduled or compiled again.
 *
 *   TgVariable *n = tg_variable(ctx, "n", 1, 2048);
 *   TgTensor *part = tg_slice(cache, 0, 0, tg_size(n));   // (n, d) of (2048, d)
 *   tg_variable_bind(n, 17);                              // what is read now has 17 rows
 *
 * A tensor is an expression of its variables: after they are bound anew, it is computed anew when it is
 * read. Stored values (tg_assign) stay as they were stored. Memory is reserved for the largest sizes.
 * tg_shape, tg_dim, tg_numel, tg_nbytes and tg_read use the values bound now (the largest ones while a
 * variable is unbound). To build a graph from a tensor's size, pass on tg_size_of. Functions take symbolic
 * sizes, and so do their gradients, except where a size determines the graph itself: the axis that is
 * sorted, unfolded or resized; channels and pictures of a convolution (its batch may vary); the steps of
 * an LSTM; the fan of an initial value; an axis that tg_getitem takes in steps or by a mask. tg_setitem,
 * tg_masked_select, tg_nonzero, tg_multinomial, tg_max_unpool2d, tg_bitcast, hashes, tg_qr and tg_svd take
 * only numbers. These functions report TG_ERR_SHAPE, with the axis. Reading while a variable is unbound:
 * TG_ERR_STATE. */
typedef struct TgVariable TgVariable; /* lives as long as the context */
/* [options] .multiple_of (1). The bounds of its values: 0 <= lo <= value <= hi. TG_ERR_VALUE: no value
 * fits. Names are only for messages: two variables may have the same name. */
TG_API TgVariable *tg_variable_opt(TgContext *ctx, const char *name, int64_t lo, int64_t hi,
                                   const TgVariableOptions *o);
/* TG_ERR_VALUE: out of bounds, or not a multiple */
TG_API TgStatus tg_variable_bind(TgVariable *v, int64_t value);
/* *value (may be NULL) receives the value that it was bound to. TG_ERR_STATE: it was not bound. */
TG_API TgStatus tg_variable_unbind(TgVariable *v, int64_t *value);
TG_API bool tg_variable_value(const TgVariable *v, int64_t *value); /* false: it is not bound */
TG_API const char *tg_variable_name(const TgVariable *v);           /* as it was given */
/* A symbolic size: an int64_t that only this context understands. Ordinary numbers are sizes too. Use
 * these functions, not + and *, for sums and products of sizes. TG_ERR_LIMIT: more than 16 terms, or 6
 * variables in one term. */
TG_API int64_t tg_size(const TgVariable *v);
TG_API int64_t tg_size_add(TgContext *ctx, int64_t a, int64_t b);
TG_API int64_t tg_size_sub(TgContext *ctx, int64_t a, int64_t b);
TG_API int64_t tg_size_mul(TgContext *ctx, int64_t a, int64_t b);
/* *q = a / b if b divides a for all values of the variables, as n divides 6 n; otherwise returns false
 * without an error. */
TG_API bool tg_size_div(TgContext *ctx, int64_t a, int64_t b, int64_t *q);
/* least <= size <= most for all values of the variables (either pointer may be NULL). Returns false if it
 * is not a size of this context. */
TG_API bool tg_size_bounds(const TgContext *ctx, int64_t size, int64_t *least, int64_t *most);
/* Shape (); its value is the size when it is computed. Default dtype: i32, or i64 if it may not fit. */
TG_API TgTensor *tg_size_tensor(TgContext *ctx, int64_t size, TgDType dtype);
TG_API TgTensor *tg_variable_tensor(const TgVariable *v); /* tg_size_tensor of tg_size(v) */
TG_API bool tg_is_symbolic(const TgTensor *t, int axis);  /* whether that size is made of variables */
TG_API int64_t tg_size_of(const TgTensor *t, int axis);   /* as tg_dim, but symbolic if the size is */
TG_API const int64_t *tg_max_shape(const TgTensor *t);    /* the largest sizes; valid while t lives */
TG_API int64_t tg_max_numel(const TgTensor *t);           /* elements of tg_max_shape */

/* ---- movement. Nothing is copied, and the dtype is unchanged unless one is named. Errors: TG_ERR_SHAPE
 * names the op and the shapes. */
/* one size may be -1: it is inferred */
TG_API TgTensor *tg_reshape(TgTensor *x, int ndim, const int64_t *dims);
/* axis d of the result is axis order[d] of x */
TG_API TgTensor *tg_permute(TgTensor *x, int n, const int64_t *order);
TG_API TgTensor *tg_expand(TgTensor *x, int ndim, const int64_t *dims); /* broadcasts; -1 keeps a size */
TG_API TgTensor *tg_broadcast_to(TgTensor *x, int ndim, const int64_t *dims); /* the same as tg_expand */
/* adds zeros around x; lo and hi have tg_ndim(x) entries each; negative entries crop */
TG_API TgTensor *tg_pad(TgTensor *x, const int64_t *lo, const int64_t *hi);
/* Pads x according to mode: reflect (the edge is not repeated; less than the size), replicate (the edge),
 * circular (at most the size). A negative entry crops, after the other side of its axis was padded; in
 * circular mode, before. */
TG_API TgTensor *tg_pad_mode(TgTensor *x, const int64_t *lo, const int64_t *hi, TgPadMode mode);
/* Pads at the end of each axis, up to dims; -1 keeps a size. */
TG_API TgTensor *tg_pad_to(TgTensor *x, int ndim, const int64_t *dims, double value);
/* the leading part of each axis; -1 keeps a size */
TG_API TgTensor *tg_shrink_to(TgTensor *x, int ndim, const int64_t *dims);
/* like tg_pad, with this value instead of zeros */
TG_API TgTensor *tg_pad_value(TgTensor *x, const int64_t *lo, const int64_t *hi, double value);
/* keeps the elements begin <= i < end of each axis */
TG_API TgTensor *tg_shrink(TgTensor *x, const int64_t *begin, const int64_t *end);
TG_API TgTensor *tg_flip(TgTensor *x, int n, const int64_t *axes); /* the axes reversed */
TG_API TgTensor *tg_transpose(TgTensor *x, int a, int b);          /* two axes swapped */
/* Removes an axis of size 1. If its size is not 1, or x is 0-d, the result is a view of all of x. */
TG_API TgTensor *tg_squeeze(TgTensor *x, int axis);
TG_API TgTensor *tg_squeeze_all(TgTensor *x); /* every axis of size 1 removed */
/* splits one axis into n; one size may be -1 */
TG_API TgTensor *tg_unflatten(TgTensor *x, int axis, int n, const int64_t *sizes);
TG_API TgTensor *tg_unsqueeze(TgTensor *x, int axis); /* a new axis of size 1 at axis (-rank-1 .. rank) */
/* merges axes first..last into one; tg_flatten(x, 0, -1) */
TG_API TgTensor *tg_flatten(TgTensor *x, int first, int last);
/* negative bounds count from the end; bounds are clamped */
TG_API TgTensor *tg_slice(TgTensor *x, int axis, int64_t begin, int64_t end);
/* one entry of an axis; the axis is removed */
TG_API TgTensor *tg_select(TgTensor *x, int axis, int64_t index);
/* x[..] with n indices, as in NumPy and PyTorch: numbers (negative from the end), slices (bounds are
 * clamped; any step but 0), new axes of size 1, one ellipsis, integer tensors (broadcast together;
 * negative from the end; a number out of bounds reads 0), and bool masks of one or more axes (they select
 * the places where they are true, in order, and are computed at once, because their number must be known).
 * Axes that are not named are taken whole. The axes of index tensors are placed where the first of them
 * was if the tensors are adjacent, otherwise in front. Indexing by ranges alone gives a view.
 * TG_ERR_SHAPE: too many indices, a number out of bounds, shapes that do not broadcast, a mask of another
 * shape; TG_ERR_DTYPE: an index tensor that is not an integer, a mask that is not bool; TG_ERR_VALUE: step
 * 0, two ellipses. */
TG_API TgTensor *tg_getitem(TgTensor *x, const TgIndex *index, int n);
/* Splits an axis into parts of at most `size`. Writes at most cap handles. Returns the number of parts, 0
 * on error. */
TG_API int tg_split(TgTensor *x, int axis, int64_t size, TgTensor **out, int cap);
/* Splits an axis into n parts whose sizes add up to the axis. Returns n, 0 on error. */
TG_API int tg_split_sizes(TgTensor *x, int axis, int n, const int64_t *sizes, TgTensor **out);
/* Splits into parts of ceil(size / chunks), maybe fewer than chunks; otherwise as tg_split. */
TG_API int tg_chunk(TgTensor *x, int axis, int chunks, TgTensor **out, int cap);
/* Joins along an axis. The other sizes must be equal; the dtype is the join. */
TG_API TgTensor *tg_cat(TgTensor *const *x, int n, int axis);
/* Joins along a new axis. The shapes must be equal; the dtype is the join. */
TG_API TgTensor *tg_stack(TgTensor *const *x, int n, int axis);
TG_API TgTensor *tg_diag(TgTensor *x); /* (n) -> (n, n), zero off the diagonal */
/* The diagonal as a new last axis; a positive offset selects a diagonal above the main one. */
TG_API TgTensor *tg_diagonal(TgTensor *x, int64_t offset, int axis1, int axis2);
/* Rotates circularly. If axes is NULL and n is 1, rotates the flattened data. */
TG_API TgTensor *tg_roll(TgTensor *x, int n, const int64_t *shifts, const int64_t *axes);
/* repeats each element of the axis `times` times, next to each other */
TG_API TgTensor *tg_repeat_interleave(TgTensor *x, int64_t times, int axis);
/* The axis then counts windows, whose elements are a new last axis. TG_ERR_LIMIT: x has more than 14 axes. */
TG_API TgTensor *tg_unfold(TgTensor *x, int axis, int64_t size, int64_t step);
/* n tensors of shape (s_i) or () -> n tensors of shape (s_0, .., s_n-1); xy swaps the first two axes. */
TG_API TgStatus tg_meshgrid(TgTensor *const *x, int n, bool xy, TgTensor **out);
/* repeats the whole tensor along the last n axes */
TG_API TgTensor *tg_repeat(TgTensor *x, int n, const int64_t *times);
/* Rearranges axes by name, as einops does: "b (h w) c -> b c h w", with sizes for the names that the shape
 * does not determine: TG_NAMED({"h", 8}), or NULL, 0. "1" is an axis of size 1, "..." any axes.
 * TG_ERR_VALUE: the formula; TG_ERR_SHAPE: an axis cannot be split that way. */
TG_API TgTensor *tg_rearrange(TgTensor *x, const char *formula, const TgNamedSize *sizes, int n);
/* zeroes the elements above the diagonal of the last two axes */
TG_API TgTensor *tg_tril(TgTensor *x, int64_t diagonal);
TG_API TgTensor *tg_triu(TgTensor *x, int64_t diagonal); /* zeroes the elements below it */

/* ---- elementwise, two tensors, broadcast, dtype joined. TG_ERR_SHAPE: the shapes do not broadcast. */
TG_API TgTensor *tg_add(TgTensor *a, TgTensor *b);      /* on bool: or */
TG_API TgTensor *tg_sub(TgTensor *a, TgTensor *b);      /* TG_ERR_DTYPE on two bools */
TG_API TgTensor *tg_mul(TgTensor *a, TgTensor *b);      /* on bool: and */
TG_API TgTensor *tg_div(TgTensor *a, TgTensor *b);      /* integers are converted to f32 first */
TG_API TgTensor *tg_floordiv(TgTensor *a, TgTensor *b); /* toward minus infinity; integers by 0: 0 */
/* has the sign of b; integers by 0: a; floats as tg_fmod */
TG_API TgTensor *tg_mod(TgTensor *a, TgTensor *b);
/* Integers wrap. An integer to a negative power is 0, unless it is 1 or -1 (the exponent is not examined
 * when the graph is built). tests/unit/test_special.c lists the special values at which gradients differ
 * from PyTorch's. */
TG_API TgTensor *tg_pow(TgTensor *a, TgTensor *b);
/* NaN if either is NaN; equal values share the gradient; of 0 and -0 either may be returned */
TG_API TgTensor *tg_maximum(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_minimum(TgTensor *a, TgTensor *b);
/* comparisons return bool; with NaN only tg_ne is true */
TG_API TgTensor *tg_lt(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_gt(TgTensor *a, TgTensor *b);       /* a > b */
TG_API TgTensor *tg_le(TgTensor *a, TgTensor *b);       /* a <= b */
TG_API TgTensor *tg_ge(TgTensor *a, TgTensor *b);       /* a >= b */
TG_API TgTensor *tg_eq(TgTensor *a, TgTensor *b);       /* a == b */
TG_API TgTensor *tg_ne(TgTensor *a, TgTensor *b);       /* a != b */
TG_API TgTensor *tg_bitand(TgTensor *a, TgTensor *b);   /* bool and integers; TG_ERR_DTYPE on floats */
TG_API TgTensor *tg_bitor(TgTensor *a, TgTensor *b);    /* as tg_bitand */
TG_API TgTensor *tg_bitxor(TgTensor *a, TgTensor *b);   /* as tg_bitand */
TG_API TgTensor *tg_shl(TgTensor *a, TgTensor *b);      /* a's bits moved up by b places; integers */
TG_API TgTensor *tg_shr(TgTensor *a, TgTensor *b);      /* a's bits moved down by b places; integers */
TG_API TgTensor *tg_truncdiv(TgTensor *a, TgTensor *b); /* toward zero; integers by 0: 0 */
/* Has the sign of a; integers by 0: a. Floats are exact, but NaN if |a/b| >= 2^69 (f64: 2^150). */
TG_API TgTensor *tg_fmod(TgTensor *a, TgTensor *b);
/* log(e^a + e^b), float, without overflow. The result of two equal infinities is that infinity. */
TG_API TgTensor *tg_logaddexp(TgTensor *a, TgTensor *b);
/* the magnitude of x with the sign bit of sign (-0.0 and NaN have one); float; gradient 0 at 0 */
TG_API TgTensor *tg_copysign(TgTensor *x, TgTensor *sign);
/* the angle of the point (x, y), -pi .. pi, float; as IEEE at zeros and infinities */
TG_API TgTensor *tg_atan2(TgTensor *y, TgTensor *x);
/* x + (end - x) weight, broadcast. If x is u8 and the weight a float, the weight is rounded to 1/128 and
 * the result to nearest, in u8. */
TG_API TgTensor *tg_lerp(TgTensor *x, TgTensor *end, TgTensor *weight);
/* [options] .rtol (1e-5) .atol (1e-8) .exact (use both tolerances as given, even 0) .equal_nan. Returns
 * bool: |a - b| <= atol + rtol |b|, or equal. TG_ERR_VALUE: a negative tolerance. tg_allclose: whether
 * this holds for all elements, shape (). */
TG_API TgTensor *tg_isclose_opt(TgTensor *a, TgTensor *b, const TgCloseOptions *o);
TG_API TgTensor *tg_allclose_opt(TgTensor *a, TgTensor *b, const TgCloseOptions *o);
/* threefry2x32, 20 rounds, on u64 tensors; TG_ERR_DTYPE otherwise */
TG_API TgTensor *tg_threefry(TgTensor *counter, TgTensor *key);
/* The words hold four bytes each, as i32: the sum over i of byte i of x, 0 .. 255, times byte i of y, -128
 * .. 127; broadcast. tg_bitcast turns tensors of bytes into words. No gradient. TG_ERR_DTYPE: not i32. One
 * instruction on an x86-64 with AVX-512 VNNI. */
TG_API TgTensor *tg_dot4(TgTensor *x, TgTensor *y);
/* The words hold two signed 16-bit numbers each, as i32: bits 0 .. 15 of x times those of y, plus bits 16
 * .. 31 of x times those of y, wrapped to 32 bits; broadcast. No gradient. TG_ERR_DTYPE: not i32. One
 * instruction on an x86-64 with AVX2. */
TG_API TgTensor *tg_dot2(TgTensor *x, TgTensor *y);
/* The words hold four bytes each, as i32: each byte is replaced by the entry of the table of 16 that its
 * low four bits select. No gradient. TG_ERR_DTYPE: not i32, or no table. One instruction on x86-64 and
 * arm64 for a vector of words. */
TG_API TgTensor *tg_lookup4(TgTensor *x, const uint8_t *table);
TG_API TgTensor *tg_usum(TgTensor *const *x, int n);  /* x[0] + x[1] + ..; on bool: or */
TG_API TgTensor *tg_uprod(TgTensor *const *x, int n); /* x[0] * x[1] * ..; on bool: and */
/* c ? a : b, all broadcast; c must be bool (TG_ERR_DTYPE). The branch that is not taken affects neither
 * the result nor its gradient. */
TG_API TgTensor *tg_where(TgTensor *c, TgTensor *a, TgTensor *b);

/* ---- a tensor and a scalar. The result has x's shape, and the dtype that x and the scalar's kind join to
 * (see above); comparisons return bool. Errors are those of the same function on two tensors: TG_ERR_DTYPE
 * if an operation on bits is applied to a float. */
TG_API TgTensor *tg_add_scalar(TgTensor *x, double v);  /* x + v */
TG_API TgTensor *tg_sub_scalar(TgTensor *x, double v);  /* x - v */
TG_API TgTensor *tg_rsub_scalar(TgTensor *x, double v); /* v - x */
TG_API TgTensor *tg_mul_scalar(TgTensor *x, double v);  /* x * v */
TG_API TgTensor *tg_div_scalar(TgTensor *x, double v);  /* x / v */
TG_API TgTensor *tg_rdiv_scalar(TgTensor *x, double v); /* v / x */
/* TG_ERR_VALUE: x an integer, v a negative whole number */
TG_API TgTensor *tg_pow_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_maximum_scalar(TgTensor *x, double v);  /* the larger of x and v */
TG_API TgTensor *tg_minimum_scalar(TgTensor *x, double v);  /* the smaller of x and v */
TG_API TgTensor *tg_lt_scalar(TgTensor *x, double v);       /* x < v */
TG_API TgTensor *tg_gt_scalar(TgTensor *x, double v);       /* x > v */
TG_API TgTensor *tg_le_scalar(TgTensor *x, double v);       /* x <= v */
TG_API TgTensor *tg_ge_scalar(TgTensor *x, double v);       /* x >= v */
TG_API TgTensor *tg_eq_scalar(TgTensor *x, double v);       /* x == v */
TG_API TgTensor *tg_ne_scalar(TgTensor *x, double v);       /* x != v */
TG_API TgTensor *tg_floordiv_scalar(TgTensor *x, double v); /* as tg_floordiv */
TG_API TgTensor *tg_mod_scalar(TgTensor *x, double v);      /* as tg_mod */
TG_API TgTensor *tg_fmod_scalar(TgTensor *x, double v);     /* as tg_fmod */
TG_API TgTensor *tg_rpow_scalar(TgTensor *x, double v);     /* v ** x */
TG_API TgTensor *tg_bitand_scalar(TgTensor *x, double v);   /* TG_ERR_DTYPE: x is a float, or v a fraction */
TG_API TgTensor *tg_bitor_scalar(TgTensor *x, double v);    /* as tg_bitand_scalar */
TG_API TgTensor *tg_bitxor_scalar(TgTensor *x, double v);   /* as tg_bitand_scalar */
TG_API TgTensor *tg_shl_scalar(TgTensor *x, int v);         /* TG_ERR_VALUE: v < 0 */
TG_API TgTensor *tg_shr_scalar(TgTensor *x, int v);         /* as tg_shl_scalar */
/* x, with value where the bool mask (broadcast) is true */
TG_API TgTensor *tg_masked_fill(TgTensor *x, TgTensor *mask, double value);
/* The lower bound is applied first, then the upper one, so hi wins if they cross. An infinite bound has no
 * effect, nor has one outside the range of an integer x's dtype. NaN stays; the gradient is 1 inside and
 * on the bounds. */
TG_API TgTensor *tg_clamp(TgTensor *x, double lo, double hi);
/* bounds are broadcast; one may be NULL; TG_ERR_VALUE if both are */
TG_API TgTensor *tg_clamp_tensor(TgTensor *x, TgTensor *lo, TgTensor *hi);

/* ---- elementwise, one tensor. Shape and dtype are unchanged unless the comment names another. "float":
 * integers are converted to f32 first. Every value has a result, so where no error is named, TG_ERR_NOMEM
 * is the only one. */
/* Defined for every value, with the same result on every device. A float cast to an integer truncates
 * toward zero and saturates, and NaN gives 0. Integers wrap. A cast to bool is x != 0 (NaN: true). A cast
 * to a float rounds once, to nearest, ties to even; values past the largest one become infinity (in
 * fp8e4m3, which has no infinity, NaN). */
TG_API TgTensor *tg_cast(TgTensor *x, TgDType to);
TG_API TgTensor *tg_float(TgTensor *x);    /* casts to f32 */
TG_API TgTensor *tg_double(TgTensor *x);   /* f64 */
TG_API TgTensor *tg_half(TgTensor *x);     /* f16 */
TG_API TgTensor *tg_bfloat16(TgTensor *x); /* bf16 */
TG_API TgTensor *tg_int(TgTensor *x);      /* i32 */
TG_API TgTensor *tg_long(TgTensor *x);     /* i64 */
TG_API TgTensor *tg_short(TgTensor *x);    /* i16 */
TG_API TgTensor *tg_bool(TgTensor *x);     /* bool */
/* The same bytes as another dtype; no gradient. If the sizes of the elements differ, the last axis is
 * rescaled: u8 (2, 8) is f32 (2, 2). A part of a file opened for reading is viewed in place if it is
 * contiguous and its address is aligned for `to`; otherwise the parts are combined with shifts. A bool is
 * a byte of 0 or 1; any byte other than 0 is read as true. TG_ERR_SHAPE: the last axis does not hold a
 * whole number of elements, or there is no axis. */
TG_API TgTensor *tg_bitcast(TgTensor *x, TgDType to);
TG_API TgTensor *tg_neg(TgTensor *x);         /* -x */
TG_API TgTensor *tg_logical_not(TgTensor *x); /* x == 0, bool */
TG_API TgTensor *tg_exp(TgTensor *x);         /* float */
TG_API TgTensor *tg_exp2(TgTensor *x);        /* float */
TG_API TgTensor *tg_log(TgTensor *x);         /* float */
TG_API TgTensor *tg_log2(TgTensor *x);        /* float */
/* float, as are cos and tan; on the CPU within 1 ulp for every finite x */
TG_API TgTensor *tg_sin(TgTensor *x);
TG_API TgTensor *tg_cos(TgTensor *x); /* as tg_sin */
TG_API TgTensor *tg_tan(TgTensor *x); /* as tg_sin */
/* float, as are all functions down to reciprocal; worst errors in f32: 4 ulp */
TG_API TgTensor *tg_log10(TgTensor *x);
TG_API TgTensor *tg_sinh(TgTensor *x);       /* float */
TG_API TgTensor *tg_cosh(TgTensor *x);       /* float */
TG_API TgTensor *tg_asin(TgTensor *x);       /* NaN outside [-1, 1] */
TG_API TgTensor *tg_acos(TgTensor *x);       /* NaN outside [-1, 1] */
TG_API TgTensor *tg_atan(TgTensor *x);       /* +-inf: +-pi/2 */
TG_API TgTensor *tg_asinh(TgTensor *x);      /* float */
TG_API TgTensor *tg_acosh(TgTensor *x);      /* NaN below 1 */
TG_API TgTensor *tg_atanh(TgTensor *x);      /* +-1: +-inf, NaN beyond */
TG_API TgTensor *tg_erf(TgTensor *x);        /* float, the error function */
TG_API TgTensor *tg_sqrt(TgTensor *x);       /* float */
TG_API TgTensor *tg_rsqrt(TgTensor *x);      /* float */
TG_API TgTensor *tg_reciprocal(TgTensor *x); /* float */
TG_API TgTensor *tg_square(TgTensor *x);     /* x * x */
TG_API TgTensor *tg_abs(TgTensor *x);        /* 0 for -0; gradient 0 at both */
TG_API TgTensor *tg_sign(TgTensor *x);       /* -1, 0, 1; NaN stays; gradient 0 */
TG_API TgTensor *tg_trunc(TgTensor *x);      /* integers unchanged; gradient 0 */
TG_API TgTensor *tg_floor(TgTensor *x);      /* toward minus infinity; integers unchanged */
TG_API TgTensor *tg_ceil(TgTensor *x);       /* toward infinity; integers unchanged */
TG_API TgTensor *tg_round(TgTensor *x);      /* ties to even */
/* bool, as the next four; for integers all false, tg_isfinite true */
TG_API TgTensor *tg_isnan(TgTensor *x);
TG_API TgTensor *tg_isinf(TgTensor *x);    /* bool; either infinity */
TG_API TgTensor *tg_isposinf(TgTensor *x); /* bool; +inf */
TG_API TgTensor *tg_isneginf(TgTensor *x); /* bool; -inf */
TG_API TgTensor *tg_isfinite(TgTensor *x); /* bool; neither NaN nor an infinity */
/* bool; true for -0.0 and negative NaN, and for negative integers */
TG_API TgTensor *tg_signbit(TgTensor *x);
TG_API TgTensor *tg_bitnot(TgTensor *x); /* inverts every bit; on bool: not; TG_ERR_DTYPE on floats */
TG_API TgTensor *tg_relu(TgTensor *x);   /* NaN stays; gradient 0 at and below 0 */
TG_API TgTensor *tg_leaky_relu(TgTensor *x, double slope); /* x < 0 ? slope * x : x */
TG_API TgTensor *tg_elu(TgTensor *x, double alpha);        /* x < 0 ? alpha (e^x - 1) : x */
TG_API TgTensor *tg_sigmoid(TgTensor *x);                  /* value and gradient without overflow */
TG_API TgTensor *tg_tanh(TgTensor *x);                     /* float */
TG_API TgTensor *tg_gelu(TgTensor *x);                     /* the tanh form */
TG_API TgTensor *tg_silu(TgTensor *x);                     /* x sigmoid(x) */
TG_API TgTensor *tg_softplus(TgTensor *x);                 /* log(1 + e^x) without overflow */
/* softplus(beta x) / beta; TG_ERR_VALUE: beta is 0 */
TG_API TgTensor *tg_softplus_beta(TgTensor *x, double beta);
TG_API TgTensor *tg_gelu_erf(TgTensor *x);   /* the exact form, x/2 (1 + erf(x / sqrt 2)) */
TG_API TgTensor *tg_quick_gelu(TgTensor *x); /* x sigmoid(1.702 x) */
TG_API TgTensor *tg_relu6(TgTensor *x);      /* min(max(x, 0), 6); gradient 0 at both bounds */
/* x < 0 ? alpha (e^(x / alpha) - 1) : x; TG_ERR_VALUE: alpha is 0 */
TG_API TgTensor *tg_celu(TgTensor *x, double alpha);
TG_API TgTensor *tg_selu(TgTensor *x);        /* 1.0507 times tg_elu with alpha 1.6733 */
TG_API TgTensor *tg_logsigmoid(TgTensor *x);  /* log(sigmoid(x)) without overflow */
TG_API TgTensor *tg_hardsigmoid(TgTensor *x); /* x/6 + 1/2, clamped to 0 .. 1 */
TG_API TgTensor *tg_hardswish(TgTensor *x);   /* x hardsigmoid(x) */
/* a clamp whose gradient is 0 at the bounds; TG_ERR_VALUE: lo > hi */
TG_API TgTensor *tg_hardtanh(TgTensor *x, double lo, double hi);
TG_API TgTensor *tg_softsign(TgTensor *x); /* x / (1 + |x|) */
TG_API TgTensor *tg_mish(TgTensor *x);     /* x tanh(softplus(x)) */

/* ---- reductions [options] .axis = TG_AXES(..) (all) .keepdim .dtype (of the accumulator and the result
 * of sums, products and means). Reduced axes are removed unless .keepdim; the dtype is x's unless the
 * comment names another. TG_ERR_SHAPE: no such axis, or one named twice. */
/* i8 i16 bool give i32, u8 u16 give u32; f16 bf16 fp8 are summed in f32 */
TG_API TgTensor *tg_sum_opt(TgTensor *x, const TgReduceOptions *o);
/* x's dtype; f16 bf16 fp8 are multiplied in f32; the gradient is right even with zeros */
TG_API TgTensor *tg_prod_opt(TgTensor *x, const TgReduceOptions *o);
/* NaN if any element is NaN; equal maxima share the gradient */
TG_API TgTensor *tg_max_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_min_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_mean_opt(TgTensor *x, const TgReduceOptions *o); /* integers give f32 */
TG_API TgTensor *tg_any_opt(TgTensor *x, const TgReduceOptions *o);  /* bool */
TG_API TgTensor *tg_all_opt(TgTensor *x, const TgReduceOptions *o);  /* bool */
/* At most one axis (none: the flattened tensor). Returns i32, the index of the first winner; a NaN wins. */
TG_API TgTensor *tg_argmax_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_argmin_opt(TgTensor *x, const TgReduceOptions *o);
/* [options] .axis .keepdim .correction (1) .biased (correction 0). NaN if the correction is at least the
 * number of elements. */
TG_API TgTensor *tg_var_opt(TgTensor *x, const TgVarOptions *o);
TG_API TgTensor *tg_std_opt(TgTensor *x, const TgVarOptions *o);
/* returns the variance; *mean receives the mean */
TG_API TgTensor *tg_var_mean_opt(TgTensor *x, TgTensor **mean, const TgVarOptions *o);
TG_API TgTensor *tg_std_mean_opt(TgTensor *x, TgTensor **mean, const TgVarOptions *o);
/* [options] .axis (1) .p (2; INFINITY, -INFINITY: the largest, the least) .zero (p = 0: the number of
 * nonzero elements) .eps (1e-12). x / max(its p-norm along axis, eps), float. */
TG_API TgTensor *tg_normalize_opt(TgTensor *x, const TgNormalizeOptions *o);
/* [options] .axis (-1; of logsumexp all), which logsumexp reduces (.keepdim); the other functions keep the
 * shape. Float. .dtype is that of the result (softmax functions), converted after the maximum was
 * subtracted. An axis may have size 0. */
TG_API TgTensor *tg_softmax_opt(TgTensor *x, const TgAxisOptions *o);
TG_API TgTensor *tg_softmin_opt(TgTensor *x, const TgAxisOptions *o); /* softmax of -x */
TG_API TgTensor *tg_log_softmax_opt(TgTensor *x, const TgAxisOptions *o);
TG_API TgTensor *tg_logsumexp_opt(TgTensor *x, const TgAxisOptions *o);

/* ---- along an axis: running reductions, order. x keeps its shape; a 0-d tensor has axis 0. TG_ERR_SHAPE:
 * no such axis. If a function also returns places, `indices` (NULL: not wanted) receives a tensor of the
 * result's shape: i32, or i64 if the axis is longer. */
TG_API TgTensor *tg_cumsum(TgTensor *x, int axis);  /* dtype as tg_sum, but floats keep their own */
TG_API TgTensor *tg_cumprod(TgTensor *x, int axis); /* x's dtype; the gradient is right even with zeros */
/* after a NaN all values are NaN; indices: where each value first occurred */
TG_API TgTensor *tg_cummax(TgTensor *x, int axis, TgTensor **indices);
TG_API TgTensor *tg_cummin(TgTensor *x, int axis, TgTensor **indices);
/* log of the running sum of exponentials, without overflow; float */
TG_API TgTensor *tg_logcumsumexp(TgTensor *x, int axis);
/* [options] .axis (-1) .descending. Stable; NaN counts as the largest value, and -0 equals 0. Gradients
 * flow to where the values came from. */
TG_API TgTensor *tg_sort_opt(TgTensor *x, TgTensor **indices, const TgSortOptions *o);
TG_API TgTensor *tg_argsort_opt(TgTensor *x, const TgSortOptions *o);
/* [options] .axis (-1) .smallest .unsorted (in any order). The k largest values; of equal ones the lower
 * index comes first. TG_ERR_VALUE: k is not in 0 .. size. */
TG_API TgTensor *tg_topk_opt(TgTensor *x, int64_t k, TgTensor **indices, const TgTopkOptions *o);

/* ---- products. Dtypes of operands are joined. TG_ERR_SHAPE: sizes that do not match, with both shapes;
 * TG_ERR_DTYPE: an operand or .dtype that the function does not take; TG_ERR_VALUE: an invalid option. */
/* [options] .dtype: of operands, accumulator and result (default: the operands' join; products and sums of
 * narrow integers and floats are then computed in i32, u32 or f32 and cast back at the end: integers
 * wrap). a (.., m, k) by b (.., k, n) -> (.., m, n). A 1-D operand counts as a row or a column, and that
 * axis is removed from the result; leading axes broadcast. TG_ERR_SHAPE: inner sizes differ or an operand
 * is 0-d. tg_dot is another name. */
TG_API TgTensor *tg_matmul_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *o);
TG_API TgTensor *tg_dot_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *o);
/* [options] .dtype (of the accumulator and the result). "ij,jk->ik" of n tensors: each letter names an
 * axis, "..." stands for axes that broadcast, spaces are ignored. Letters that are not in the result are
 * summed over; a letter that occurs twice in an operand takes the diagonal. Without "->" the result has
 * "..." and the letters that occur once, sorted. TG_ERR_VALUE: the formula; TG_ERR_SHAPE: sizes that
 * differ. tg_einsum("ij,jk", TG_TENSORS(a, b)) */
TG_API TgTensor *tg_einsum_opt(const char *formula, TgTensor *const *x, int n, const TgDTypeOptions *o);
/* x (.., in) by weight (out, in), bias (out) or NULL -> (.., out): x @ weight^T + bias, torch's layout. */
TG_API TgTensor *tg_linear(TgTensor *x, TgTensor *weight, TgTensor *bias);
/* A (.., m, n) = Q (.., m, m) R (.., m, n), with Q orthogonal and R upper triangular (Householder).
 * Integers are converted to f32. TG_ERR_SHAPE: rank below 2. */
TG_API TgStatus tg_qr(TgTensor *a, TgTensor **q, TgTensor **r);
/* [options] .full_matrices (u (.., m, m) and vt (.., n, n) instead of (.., m, k) and (.., k, n), k =
 * min(m, n)). A = u diag(s) vt, s (.., k) descending, computed by Jacobi rotations. The graph has about 10
 * k steps, so it is meant for small matrices. u and v are orthonormal even where s is 0. */
TG_API TgStatus tg_svd_opt(TgTensor *a, TgTensor **u, TgTensor **s, TgTensor **vt, const TgSvdOptions *o);
/* Makes x (.., m, n) nearly orthogonal: applies X <- c0 X + (c1 A + c2 A^2) X, A = X X^T, `steps` times,
 * starting from x / (its norm + eps (0: 1e-7)). */
TG_API TgTensor *tg_newton_schulz(TgTensor *x, int steps, const double coefficients[3], double eps);
/* [options] .bias (cout) .groups (1) .stride (1) .dilation (1) .padding (0; negative crops) .dtype (as
 * tg_matmul's; by default narrow integers stay i32 or u32). One to TG_MAX_SPATIAL axes s: x (b, cin, s..),
 * weight (cout, cin/groups, k..) -> (b, cout, o..), o = (s + pads - dilation (k - 1) - 1) / stride + 1. */
TG_API TgTensor *tg_conv2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *o);
/* [options] as tg_conv2d, and .output_padding (0; less than stride or dilation). weight (cin, cout/groups,
 * k..) -> (b, cout, o..), o = (s - 1) stride - pads + dilation (k - 1) + 1 + output_padding. An infinite
 * weight may be multiplied by the zeros around x, which gives NaN. */
TG_API TgTensor *tg_conv_transpose2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *o);
/* [options] .axes (how many of the last axes of x: as many as .kernel has sizes if it has several,
 * otherwise 2; one size is used for all of them) .kernel (2) .stride (kernel) .dilation (1) .padding (0)
 * .ceil_mode (a last window that is cut off counts too, unless it begins in the padding) .exclude_pad
 * (average over real elements) .indices (max: i32, the flat index of the first largest element in the
 * unpadded block, as in torch; for a window of padding alone 2147483647, which max_unpool2d skips). x (..,
 * s..). For integers max keeps the dtype and avg gives f32. */
TG_API TgTensor *tg_max_pool2d_opt(TgTensor *x, const TgPoolOptions *o);
TG_API TgTensor *tg_avg_pool2d_opt(TgTensor *x, const TgPoolOptions *o);

/* [options] .mode (linear; TG_NEAREST, TG_NEAREST_EXACT) .align_corners (linear only: the corner elements
 * stay, as in torch). Resizes the last n axes to size, axis by axis; computed in f32 or f64, the dtype is
 * kept. TG_ERR_VALUE: the mode; TG_ERR_SHAPE: an empty axis, or more sizes than axes. */
TG_API TgTensor *tg_interpolate_opt(TgTensor *x, int n, const int64_t *size, const TgInterpolateOptions *o);
/* [options] as the pool's, .output_size (of the pooled axes; default (s - 1) stride - pads + kernel). x
 * and its i32 indices, both (.., s..), as max_pool2d with .indices returned them. Each value is put at its
 * place in a grid of zeros; values at the same place are added. */
TG_API TgTensor *tg_max_unpool2d_opt(TgTensor *x, TgTensor *indices, const TgPoolOptions *o);
/* Keccak (FIPS 202) of the bytes along the last axis: u8 (.., digest). name: sha3_224 _256 _384 _512,
 * shake_128 (16 bytes), shake_256 (32), or "RATE,DOMAIN" in bytes, whose digest has (200 - RATE) / 2
 * bytes. Not allowed in a captured function. TG_ERR_VALUE: another name; TG_ERR_SHAPE: no bytes;
 * TG_ERR_LIMIT: a message of more than 512 blocks. */
TG_API TgTensor *tg_keccak(TgTensor *x, const char *name);
/* A hash of all bytes of x, u8 (16): shake_128 of each 4 KiB, then of each 256 of those hashes, and so on;
 * the last piece of a mebibyte is filled up with zeros. */
TG_API TgTensor *tg_hash(TgTensor *x);
/* Passes x through n functions in order; shape and dtype are those that the last one returns. */
TG_API TgTensor *tg_sequential(TgTensor *x, TgTensor *(*const *layers)(TgTensor *x), int n);

/* ---- losses [options] .reduction (TG_MEAN, else TG_SUM, TG_NONE). The result is a float, of shape ()
 * unless the reduction is TG_NONE: then there is one element for each loss. TG_ERR_VALUE: another
 * reduction; TG_ERR_SHAPE: shapes that do not match. */
/* [options] .axis (-1, the classes; PyTorch's layout of images is .axis = TG_AXES(1)) .label_smoothing
 * (within 0 .. 1). target: probabilities of the logits' shape, or labels as for sparse_cross_entropy. The
 * mean is over the batch. */
TG_API TgTensor *tg_cross_entropy_opt(TgTensor *logits, TgTensor *target, const TgLossOptions *o);
/* [options] .axis (-1) .label_smoothing .weight (of each class) .ignore .ignore_index (0, if .ignore:
 * elements with this label are left out). labels: integers of the logits' shape without the classes; a
 * label out of range adds 0. The mean is over the weights of the labels, which are 1 without .weight: NaN
 * if all are ignored. */
TG_API TgTensor *tg_sparse_cross_entropy_opt(TgTensor *logits, TgTensor *labels, const TgLossOptions *o);
/* the same for log probabilities */
TG_API TgTensor *tg_nll_opt(TgTensor *log_probs, TgTensor *labels, const TgLossOptions *o);
/* the mean of (x - target)^2, x and target broadcast */
TG_API TgTensor *tg_mse_opt(TgTensor *x, TgTensor *target, const TgLossOptions *o);
/* -(target log(prob) + (1 - target) log(1 - prob)), prob within 0 .. 1 */
TG_API TgTensor *tg_binary_cross_entropy_opt(TgTensor *prob, TgTensor *target, const TgLossOptions *o);
/* [options] .weight (of the positive term, broadcast). Stable for any finite logits. */
TG_API TgTensor *tg_binary_cross_entropy_logits_opt(TgTensor *logits, TgTensor *target,
                                                    const TgLossOptions *o);

/* ---- neural-network functions. The dtype is x's unless the comment names another; norms and dropout also
 * keep x's shape. TG_ERR_SHAPE: shapes that do not match; TG_ERR_DTYPE: an index that is not an integer, a
 * mask that is not bool, or an operand that must be a float and is not; TG_ERR_VALUE: an invalid option. */
/* integers (..) -> i32 (.., classes); a label out of range gives all zeros */
TG_API TgTensor *tg_one_hot(TgTensor *labels, int64_t classes);
/* x (.., n, ..), index integers of the same rank: out[..i..] = x[..index[..i..]..] along axis; an index
 * out of range reads 0. */
TG_API TgTensor *tg_gather(TgTensor *x, int axis, TgTensor *index);
/* selects rows: x (n, ..), index (i..) -> (i.., ..); an index out of range reads 0 */
TG_API TgTensor *tg_take(TgTensor *x, TgTensor *index);
TG_API TgTensor *tg_embedding(TgTensor *weight, TgTensor *index); /* the same as tg_take */
/* [options] .reduce (TG_SCATTER_SET; _ADD, _MULTIPLY). Returns x with r[..index[..i..]..] = src[..i..]
 * along axis, in row-major order, so the last of several writes to a place wins. src has x's dtype and at
 * least index's shape; index is no longer than x on the other axes. Places out of range are skipped. */
TG_API TgTensor *tg_scatter_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src,
                                const TgScatterOptions *o);
/* [options] .exclude_self: x's own value does not count where something is written. how: ADD (dtype as
 * tg_sum), MULTIPLY, MEAN (float), AMAX, AMIN (NaN if any value is NaN). */
TG_API TgTensor *tg_scatter_reduce_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src,
                                       TgScatterReduce how, const TgScatterOptions *o);
/* [options] .fixed .size_given .fill_value. masked_select: the elements of x where mask (bool, broadcast
 * to x) is true -> (count). nonzero: where x is not 0, as i32 coordinates (count, rank). The count is
 * computed and read back, unless .fixed: then there are size_given elements, cut or filled up. */
TG_API TgTensor *tg_masked_select_opt(TgTensor *x, TgTensor *mask, const TgSelectOptions *o);
TG_API TgTensor *tg_nonzero_opt(TgTensor *x, const TgSelectOptions *o);
/* [options] .weight .bias (of the trailing axes' shape) .dims (weight's rank, else 1: trailing axes) .eps
 * (1e-5). */
TG_API TgTensor *tg_layer_norm_opt(TgTensor *x, const TgNormOptions *o);
TG_API TgTensor *tg_rms_norm_opt(TgTensor *x, const TgNormOptions *o);
/* [options] .weight .bias (c) .eps (1e-5). x (b, c, ..), normalised by the given statistics (c):
 * inference. */
TG_API TgTensor *tg_batch_norm_opt(TgTensor *x, TgTensor *mean, TgTensor *var, const TgNormOptions *o);
/* [options] Normalises by the batch's own statistics and moves running_mean and running_var (c) by
 * .momentum (0.1) toward them, in place. The running statistics are computed with the next tg_realize of
 * an assigned tensor (an optimiser step), or when they are read. NULL: none are kept. */
TG_API TgTensor *tg_batch_norm_train_opt(TgTensor *x, TgTensor *running_mean, TgTensor *running_var,
                                         const TgNormOptions *o);
/* when training: zeroes elements with probability p and scales the rest by 1/(1-p) */
TG_API TgTensor *tg_dropout(TgTensor *x, double p);
/* [options] .mask (bool, broadcast: true may attend; float: added) .causal (and: key j for query i if j <=
 * i) .grouped (the axis before the last two of q is a multiple of that of k and v, whose heads are shared)
 * .scale (1/sqrt(d)) .dropout (when training). q (.., l, d), k (.., s, d), v (.., s, e) -> (.., l, e).
 * Scores and sums are computed in f32 or wider. Where a mask is false, the values of k and v have no
 * effect, not even NaN, except on the gradient of q, which multiplies by k. A row that may attend to
 * nothing is 0. */
TG_API TgTensor *tg_scaled_dot_product_attention_opt(TgTensor *q, TgTensor *k, TgTensor *v,
                                                     const TgAttentionOptions *o);

/* ---- gradients. A gradient has the shape and dtype of its tensor, which must be a float: TG_ERR_DTYPE
 * otherwise. TG_ERR_SHAPE: a gradient of another shape; TG_ERR_VALUE: tensors of two contexts, or too many
 * of them. */
/* Makes tg_backward compute a gradient for t, and gives t memory of its own. Returns t. */
TG_API TgTensor *tg_requires_grad(TgTensor *t, bool on);
TG_API bool tg_is_parameter(const TgTensor *t); /* whether it requires a gradient */
TG_API TgTensor *tg_detach(TgTensor *x);        /* same values; no gradient flows through */
/* [options] .gradient (of the loss's shape: the gradient of the loss itself, for a loss of more than one
 * element). Adds the gradient of a scalar float loss to tg_grad of each tensor that requires one and that
 * the loss depends on. The gradients are lazy tensors of the innermost scope and end with it. The loss is
 * computed with the next in-place update, before that update takes effect. TG_ERR_SHAPE: the loss has more
 * than one element; TG_ERR_DTYPE: it is not a float. */
TG_API TgStatus tg_backward_opt(TgTensor *loss, const TgGradientOptions *o);
TG_API TgTensor *tg_grad(const TgTensor *t); /* NULL if there is none, which is not an error */
TG_API void tg_zero_grad(TgTensor *t);       /* drops the gradient */
/* Gradients of a scalar loss for n float targets, which may be any tensors of its graph: out[i] has
 * targets[i]'s shape, and is zeros if the loss does not depend on it. A gradient is a graph like any other
 * and can be differentiated again. After an in-place update has run, what it wrote is plain numbers: no
 * gradient flows through it. */
TG_API TgStatus tg_gradient(TgTensor *loss, TgTensor *const *targets, int n, TgTensor **out);
/* The same for y of any shape, given the gradient g of y, which has y's shape: out[i] = the sum over y of
 * g dy/dtargets[i]. */
TG_API TgStatus tg_vjp(TgTensor *y, TgTensor *g, TgTensor *const *targets, int n, TgTensor **out);
/* Returns y with a gradient that the user defines. When the gradient g of y is known, fn(g, y, x, n, out,
 * user) sets out[i] to the gradient of x[i], in x[i]'s shape, or leaves NULL where none flows. The graph
 * that computed y gets no gradient. fn runs within tg_gradient and tg_backward; it may build tensors but
 * not realize them. y itself may be among x (a straight-through function). */
TG_API TgTensor *tg_custom_gradient(TgTensor *y, TgTensor *const *x, int n, TgGradientFn fn, void *user);
/* Returns x; the gradient that arrives at it is kept in memory of its own. */
TG_API TgTensor *tg_contiguous_backward(TgTensor *x);

/* ---- in place and actions
 * What aliases what. A tensor is memory, or an expression. It is memory from the start if it is made of
 * data (tg_from, tg_borrow, tg_from_file, tg_empty), by tg_clone, or as an output of a captured function.
 * An expression, however it was made, becomes memory of its own when it is realized, read or assigned to.
 * A movement of memory (reshape, permute, expand, shrink, flip, slices with any step, detach) is a view of
 * it: all views of a memory, and the tensor itself, see every write through any of them, from the call
 * that makes the write. Everything else is a value: it has the value of the moment when it was built, as
 * if everything were computed at once, whatever is written or replayed meanwhile. This includes a bitcast,
 * a view of an expression that was not yet memory, and two tensors of equal expressions, which never share
 * memory. A function that returns a tensor returns a new handle, even if there is nothing to do (a cast to
 * the same dtype, a roll by 0), unless its comment says that it returns its argument. A tensor that
 * depends on a variable stays an expression. If a write would change what a live tensor still needs, the
 * old contents are copied first; to avoid that copy, end the scope of tensors that you do not need, or
 * capture the function. A tensor keeps its shape and dtype when it is written to. TG_ERR_SHAPE: a value
 * that does not broadcast to the tensor; TG_ERR_VALUE: a value of another context. */
/* Writes value, broadcast, to t's memory. The write is delayed until something reads that memory, writes
 * to it again or realizes t. Dtypes must be equal (TG_ERR_DTYPE). TG_ERR_STATE: t is a view made with
 * tg_expand, in which several elements are one place, or a file opened for reading. No gradient flows
 * through what is written to a tensor that requires a gradient. Returns t. */
TG_API TgTensor *tg_assign(TgTensor *t, TgTensor *value);
/* t = t op x in t's memory (tg_assign of the operator's result). Returns t. TG_ERR_DTYPE: the result has
 * another dtype; TG_ERR_SHAPE: another shape. */
TG_API TgTensor *tg_add_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_sub_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_mul_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_div_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_floordiv_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_pow_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_bitand_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_bitor_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_bitxor_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_shl_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_shr_(TgTensor *t, TgTensor *x);
TG_API TgTensor *tg_matmul_(TgTensor *t, TgTensor *x);
/* A copy, which has memory of its own once it is computed. It requires a gradient if x does, and has a
 * copy of x's gradient. */
TG_API TgTensor *tg_clone(TgTensor *x);
/* a view of x if x belongs to ctx, otherwise a tensor of ctx with x's present values */
TG_API TgTensor *tg_to_context(TgTensor *x, TgContext *ctx);
/* Makes t another handle of x's graph. Shapes must be equal; the dtype may change. Returns t. */
TG_API TgTensor *tg_replace(TgTensor *t, TgTensor *x);
/* Writes value, broadcast, to x[..] (see tg_getitem), in x's memory as tg_assign does. If x is an
 * expression, x becomes another expression, and gradients flow to both. The last of several writes to a
 * place wins; a number in an index tensor that is out of bounds is skipped. Returns x. Errors as
 * tg_getitem, and TG_ERR_DTYPE: value has another dtype. */
TG_API TgTensor *tg_setitem(TgTensor *x, const TgIndex *index, int n, TgTensor *value);
TG_API TgTensor *tg_setitem_scalar(TgTensor *x, const TgIndex *index, int n, double value);
/* [options] .accumulate (add instead of replacing). Returns x with value at x[..] as a new tensor; x is
 * unchanged. Differentiable by both. */
TG_API TgTensor *tg_index_put_opt(TgTensor *x, const TgIndex *index, int n, TgTensor *value,
                                  const TgIndexPutOptions *o);
/* as tg_assign, to the part begin <= i < end of t */
TG_API TgTensor *tg_assign_slice(TgTensor *t, const int64_t *begin, const int64_t *end, TgTensor *value);
TG_API TgTensor *tg_contiguous(TgTensor *x); /* has memory of its own when it is computed */
TG_API TgStatus tg_realize(TgTensor *t);     /* computes t */
/* computes all in one schedule; NULL entries are errors */
TG_API TgStatus tg_realize_many(TgTensor *const *t, size_t n);
/* Computes t and copies its elements, in row-major order, to out; nbytes must be tg_nbytes(t)
 * (TG_ERR_VALUE). */
TG_API TgStatus tg_read(TgTensor *t, void *out, size_t nbytes);
/* any dtype, converted to double; n must be tg_numel(t) */
TG_API TgStatus tg_read_f64(TgTensor *t, double *out, size_t n);
/* Computes t and returns the address of its row-major elements, on devices that use the host's memory
 * (elsewhere TG_ERR_DEVICE). They may only be read, until t ends or its memory is assigned to. NULL: an
 * error. */
TG_API const void *tg_map(TgTensor *t);
/* Computes t and returns its elements as nested lists, "[[1.0, 2.5], [nan, inf]]", floats with the fewest
 * digits that reproduce the value; tg_from_text reads it. Valid until the next call with a tensor of the
 * context. NULL: an error. */
TG_API const char *tg_to_text(TgTensor *t);
/* the only element; NaN and TG_ERR_SHAPE if there is not exactly one */
TG_API double tg_item_f64(TgTensor *t);
TG_API int64_t tg_item_i64(TgTensor *t); /* the same as an integer; 0 on error */

/* ---- captured functions. fn(ctx, in, nin, out, nout, user) builds out[] from in[] and may assign to
 * tensors that it knows (weights, a cache); out[] is computed when it returns. tg_jit_run calls fn in the
 * first run. In the second run it calls fn again and captures what runs. From the third run on it replays
 * the capture: no graph is built and nothing is scheduled. Tensors that fn reads but did not make, such as
 * weights, and tensors that it assigns to are state: a value assigned to them takes effect from the next
 * run on. An expression that was made before keeps its value. fn is called and captured again if the
 * memory that such an expression was made of is assigned to; if a tensor that fn reads is replaced
 * (tg_replace, tg_load_state); and if tg_training, or which of the tensors that fn reads require a
 * gradient, has changed since the run before. Random numbers that fn uses advance as if it were called.
 * Variables, in shapes and in what fn reads, have the values that they are bound to. */
/* Kernels make copies of memories that fn never assigns to, such as weights laid out for a matrix product.
 * The copies are made at the first replay and kept; they take at most 1.25 times the bytes of their
 * originals. If tg_setting PREPACK is 0 when tg_jit is called, none are kept. The function lives until
 * tg_jit_free or tg_close. NULL: TG_ERR_NOMEM, or fn is NULL. */
TG_API TgJit *tg_jit(TgContext *ctx, TgJitFn fn, void *user);
/* in: any tensors of fn's shapes and dtypes, each in memory of its own. out: nout tensors of the innermost
 * scope, in memory of their own that no later run changes. What fn assigns to has been written when a run
 * returns, whether an output depends on it or not. An input that fn assigns to must be a whole tensor in
 * memory (TG_ERR_VALUE), which fn knows by no other handle. Handles that fn makes belong to that scope
 * too; gradients that fn leaves in tg_grad are those of the captured run. A symbolic size of an input or
 * output is the value that its variables are bound to when it runs. An input with a symbolic size must
 * have the same expression each time, such as tg_slice(x, 0, 0, tg_size(n)). An output with a symbolic
 * size has room for the largest size, and the sizes that are bound when it is read. TG_ERR_SHAPE: a tensor
 * with a symbolic size is on several devices. From the capture on: TG_ERR_SHAPE, TG_ERR_DTYPE,
 * TG_ERR_VALUE: another number of tensors, shape or dtype than captured, or one tensor given twice. In the
 * capture itself TG_ERR_STATE: fn reads a value, makes a tensor from data (it would be the same at every
 * replay: pass it as an input), or runs a captured function. After an error in fn the next run captures
 * anew. */
TG_API TgStatus tg_jit_run(TgJit *jit, TgTensor *const *in, int nin, TgTensor **out, int nout);
TG_API TgContext *tg_jit_context(const TgJit *jit); /* NULL: jit is NULL */
/* Forgets the capture, so that the next run counts as the first. A function that was loaded stays as it
 * is. */
TG_API void tg_jit_reset(TgJit *jit);
TG_API void tg_jit_free(TgJit *jit); /* jit may be NULL */

/* ---- captured functions as text: what tg_jit_save and tg_jit_load (tg_io.h) keep in a file. The text
 * describes the inputs and outputs, names the memories that persist (weights, state), and contains the
 * graph of each step as it was before planning. The machine and device that read it plan and compile it
 * for themselves. */
/* An input or output. Valid while the capture is, and until tg_jit_name. An input that is on several
 * devices (ndevice > 1) is made as tg_shard(x, ndevice, devices, axis, .bounds = bounds), or if axis is -1
 * as tg_replicate(x, ndevice, devices). */
typedef struct TgJitValue {
  const char *name; /* "": it has none */
  TgDType dtype;
  int ndim;
  const int64_t *dims; /* some may be symbolic sizes, made of variables that tg_jit_variable returns */
  int ndevice;
  const char *const *devices;
  int axis;
  const int64_t *bounds; /* NULL: it is not split */
} TgJitValue;

/* false: i is past the last, or nothing is captured yet */
TG_API bool tg_jit_input(const TgJit *jit, size_t i, TgJitValue *v);
TG_API bool tg_jit_output(const TgJit *jit, size_t i, TgJitValue *v);
/* Names the captured inputs and outputs; each list has as many names as there are inputs or outputs. NULL,
 * or a NULL in a list: no name. The names hold for this capture. TG_ERR_STATE: nothing is captured yet. */
TG_API TgStatus tg_jit_name(TgJit *jit, const char *const *inputs, const char *const *outputs);
/* names[i] names the memory of tensors[i], which then also has the shape of that tensor. Memories without
 * a name are called "memory.0" and so on. A tensor that is split has a memory for each part, "w.part0" ..;
 * a tensor that is whole on several devices has a memory of the same name on each, with the same values.
 * What was loaded keeps its names. Valid until the next call with a tensor of the context. NULL:
 * TG_ERR_STATE, nothing is captured yet; TG_ERR_DEVICE: an input or output is on DISK; TG_ERR_VALUE: two
 * equal names. */
TG_API const char *tg_jit_to_text(TgJit *jit, const char *const *names, TgTensor *const *tensors, int n);
/* Variable i of the last text, or of what was loaded. Variables of a loaded function are unbound, and must
 * be bound before a run. NULL: past the last. */
TG_API TgVariable *tg_jit_variable(TgJit *jit, size_t i);
/* Memory i of the last text, or of what was loaded, as it is now: a tensor of the innermost scope that is
 * that memory, with its shape and dtype. A value assigned to it takes effect in the next run. Once it is
 * replaced, a program that was loaded does not run (TG_ERR_STATE). name may be NULL. NULL: past the last,
 * or TG_ERR_NOMEM. */
TG_API TgTensor *tg_jit_memory(TgJit *jit, size_t i, const char **name);
/* The name of device i of the last text, or of what was loaded. NULL: past the last. */
TG_API const char *tg_jit_device(const TgJit *jit, size_t i);
/* Makes a captured function from text. tg_jit_run replays it on the context's default device or, if the
 * text uses several devices, on the devices of the same names, which are opened. tensors[i] supplies the
 * memory names[i]. It is used in place if the program does not write it and sharing is allowed (a model's
 * file is then not copied); otherwise it is copied. Names that are not in the text are ignored. If the
 * program draws, the context's random numbers continue from where they were when the text was written;
 * tg_manual_seed starts others. The text is not trusted: no memory is read or written out of bounds. NULL:
 * TG_ERR_VALUE, with the line: it is not such a text, has another version, or a tensor it names is
 * missing; TG_ERR_DTYPE, TG_ERR_SHAPE: a tensor that does not match its memory; TG_ERR_VALUE,
 * TG_ERR_DEVICE: a device that is not there or cannot be opened. */
TG_API TgJit *tg_jit_from_text(TgContext *ctx, const char *text, const char *const *names,
                               TgTensor *const *tensors, int n);
/* The same on other devices: devices[i] replaces the i-th device that the text names, or the only one that
 * it uses. There are ndevice of them, each named once. TG_ERR_VALUE, with the text's devices: another
 * number of them. */
TG_API TgJit *tg_jit_from_text_on(TgContext *ctx, const char *text, const char *const *devices, int ndevice,
                                  const char *const *names, TgTensor *const *tensors, int n);

/* ---- captured functions as C: a source file of C99 without extensions, and its header, which need no
 * library and no allocation (docs/export.md). Kernels are planned for a machine about which nothing is
 * known, whatever the context's own device is; values are the present ones. The header contains all that a
 * caller must know. */
/* header, source: text. weights: the argument of NAME_reset if weights are in a file, otherwise NULL. In
 * bytes: arena_bytes, what a run needs between its kernels, of which arena_least are live at once;
 * state_bytes, what it changes and keeps; weight_bytes, what it only reads; stack_bytes, the most stack it
 * takes if the text is portable. operations: of floats and of data, in a run. plans: which of several
 * plans this is, with the arena and state bytes of the other plans and their estimated times compared with
 * the fastest. */
typedef struct TgCText {
  const char *header, *source;
  const void *weights;
  size_t weights_nbytes;
  int64_t arena_bytes, arena_least, state_bytes, weight_bytes, operations, stack_bytes;
  int kernels, launches;
  const char *plans;
} TgCText;

/* [options] .name: the prefix of the text's names, an identifier ("model"). .header: the file that the
 * source includes (NAME.h). .names, .tensors, .count: names of memories, as for tg_jit_to_text. .own_math:
 * the text also computes roots itself, so that it needs nothing of <math.h>. .weights_apart: no weights in
 * the text; .big_endian: numbers of their file begin with the high byte, for machines of that byte order.
 * A weight that every kernel reads in another order is replaced by a packed copy in that order,
 * NAME_packed; with the setting PREPACK 0 all weights are as the function has them. .streamed: weights are
 * apart, and a function of the host brings those of each kernel to the arena. .threads: the number of
 * shares that kernels are split into (1 .. 1024; 1): a function of the host may run them at the same time,
 * and the results are the same. .max_ram: takes the fastest of the plans whose arena and state have at
 * most this many bytes (0: no bound). .same_bits: takes the first plan, whatever memory it needs; for
 * "generic" that is the plan of INTERP:C99, so the results have the same bits. .target: the processor to
 * plan for, "generic" (the default), "native", "x86-64-v2", -v3, -v4, "armv8", "cortex-m4", "cortex-m7",
 * "wasm32", "wasm-simd". .vectors: "gnu": the source is GNU C with vectors, to be compiled with -std=gnu11
 * -ffp-contract=off and the flags that the header names; own_math has no effect there. "none": C99. NULL:
 * the usual choice for the target, which is vectors if the target has some, unless it is "generic".
 * .linked: weights are apart, in a symbol NAME_weights that is linked; NAME_reset does not take them. The
 * texts live until the next call with this context. Errors: those of tg_jit_to_text; TG_ERR_VALUE: no such
 * name, no such target; TG_ERR_LIMIT: no plan fits .max_ram; the message says how much more the smallest
 * one needs. */
TG_API TgStatus tg_jit_to_c_opt(TgJit *jit, TgCText *out, const TgCOptions *o);

/* ---- the compiler on text: graphs and programs in the form that TG_DUMP writes
 * [options] .pass: only this pass (default: all remaining passes); .from: an earlier pass to begin with.
 * After rangeify the text must include the stages, and after the first pass of code generation what is
 * known of the kernel: TG_DUMP and .pass write both after the graph, and only tg reads them. .emit: "uops"
 * (default: text again), "costs" (of a kernel: each list of opts that is considered, and its estimated
 * cost; with .opts, the cost of that list), "c", "cuda", "metal", "kind" (what the text is, "kernel graph
 * of 12 nodes with 1 root"; nothing is compiled). .opts: a list of opts instead of the heuristic's. A
 * tensor graph is scheduled and its kernels compiled, a kernel is compiled, a program is rendered. NULL:
 * refused; tg_errmsg gives the reason (with line and column if it is in the text). The result lives until
 * the next tg_opt of ctx. */
TG_API const char *tg_opt_opt(TgContext *ctx, const char *text, const TgOptOptions *o);
/* the passes in the order they run; NULL past the last. stage: "codegen" */
TG_API const char *tg_pass_name(int i, const char **stage);

#ifndef __cplusplus
#define tg_open_with(...)       TG_OPT0_(tg_open, TgOpenOptions, __VA_ARGS__, .end_ = 0)
#define tg_variable(...)        TG_OPT4_(tg_variable_opt, TgVariableOptions, __VA_ARGS__, .end_ = 0)
#define tg_jit_to_c(...)        TG_OPT2_(tg_jit_to_c_opt, TgCOptions, __VA_ARGS__, .end_ = 0)
#define tg_explain(...)         TG_OPT2_(tg_explain_opt, TgExplainOptions, __VA_ARGS__, .end_ = 0)
#define tg_opt(...)             TG_OPT2_(tg_opt_opt, TgOptOptions, __VA_ARGS__, .end_ = 0)
#define tg_from_file(...)       TG_OPT5_(tg_from_file_opt, TgFileOptions, __VA_ARGS__, .end_ = 0)
#define tg_from_text(...)       TG_OPT2_(tg_from_text_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_full(...)            TG_OPT4_(tg_full_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_zeros(...)           TG_OPT3_(tg_zeros_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_ones(...)            TG_OPT3_(tg_ones_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_arange(...)          TG_OPT3_(tg_arange_opt, TgArangeOptions, __VA_ARGS__, .end_ = 0)
#define tg_linspace(...)        TG_OPT4_(tg_linspace_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_eye(...)             TG_OPT2_(tg_eye_opt, TgEyeOptions, __VA_ARGS__, .end_ = 0)
#define tg_rand(...)            TG_OPT3_(tg_rand_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_randn(...)           TG_OPT3_(tg_randn_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_uniform(...)         TG_OPT5_(tg_uniform_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_normal(...)          TG_OPT5_(tg_normal_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_rand_like(...)       TG_OPT1_(tg_rand_like_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_randn_like(...)      TG_OPT1_(tg_randn_like_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_empty_like(...)      TG_OPT1_(tg_empty_like_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_scaled_uniform(...)  TG_OPT3_(tg_scaled_uniform_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_multinomial(...)     TG_OPT2_(tg_multinomial_opt, TgMultinomialOptions, __VA_ARGS__, .end_ = 0)
#define tg_kaiming_normal(...)  TG_OPT3_(tg_kaiming_normal_opt, TgKaimingOptions, __VA_ARGS__, .end_ = 0)
#define tg_kaiming_uniform(...) TG_OPT3_(tg_kaiming_uniform_opt, TgKaimingOptions, __VA_ARGS__, .end_ = 0)
#define tg_glorot_uniform(...)  TG_OPT3_(tg_glorot_uniform_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_shard(...)           TG_OPT4_(tg_shard_opt, TgShardOptions, __VA_ARGS__, .end_ = 0)
#define tg_sort(...)            TG_OPT2_(tg_sort_opt, TgSortOptions, __VA_ARGS__, .end_ = 0)
#define tg_argsort(...)         TG_OPT1_(tg_argsort_opt, TgSortOptions, __VA_ARGS__, .end_ = 0)
#define tg_topk(...)            TG_OPT3_(tg_topk_opt, TgTopkOptions, __VA_ARGS__, .end_ = 0)
#define tg_scatter(...)         TG_OPT4_(tg_scatter_opt, TgScatterOptions, __VA_ARGS__, .end_ = 0)
#define tg_scatter_reduce(...)  TG_OPT5_(tg_scatter_reduce_opt, TgScatterOptions, __VA_ARGS__, .end_ = 0)
#define tg_masked_select(...)   TG_OPT2_(tg_masked_select_opt, TgSelectOptions, __VA_ARGS__, .end_ = 0)
#define tg_nonzero(...)         TG_OPT1_(tg_nonzero_opt, TgSelectOptions, __VA_ARGS__, .end_ = 0)
#define tg_sum(...)             TG_OPT1_(tg_sum_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_prod(...)            TG_OPT1_(tg_prod_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_max(...)             TG_OPT1_(tg_max_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_min(...)             TG_OPT1_(tg_min_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_mean(...)            TG_OPT1_(tg_mean_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_any(...)             TG_OPT1_(tg_any_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_all(...)             TG_OPT1_(tg_all_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_argmax(...)          TG_OPT1_(tg_argmax_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_argmin(...)          TG_OPT1_(tg_argmin_opt, TgReduceOptions, __VA_ARGS__, .end_ = 0)
#define tg_var(...)             TG_OPT1_(tg_var_opt, TgVarOptions, __VA_ARGS__, .end_ = 0)
#define tg_std(...)             TG_OPT1_(tg_std_opt, TgVarOptions, __VA_ARGS__, .end_ = 0)
#define tg_index_put(...)       TG_OPT4_(tg_index_put_opt, TgIndexPutOptions, __VA_ARGS__, .end_ = 0)
#define tg_isclose(...)         TG_OPT2_(tg_isclose_opt, TgCloseOptions, __VA_ARGS__, .end_ = 0)
#define tg_allclose(...)        TG_OPT2_(tg_allclose_opt, TgCloseOptions, __VA_ARGS__, .end_ = 0)
#define tg_var_mean(...)        TG_OPT2_(tg_var_mean_opt, TgVarOptions, __VA_ARGS__, .end_ = 0)
#define tg_std_mean(...)        TG_OPT2_(tg_std_mean_opt, TgVarOptions, __VA_ARGS__, .end_ = 0)
#define tg_normalize(...)       TG_OPT1_(tg_normalize_opt, TgNormalizeOptions, __VA_ARGS__, .end_ = 0)
#define tg_softmin(...)         TG_OPT1_(tg_softmin_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_softmax(...)         TG_OPT1_(tg_softmax_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_log_softmax(...)     TG_OPT1_(tg_log_softmax_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define tg_logsumexp(...)       TG_OPT1_(tg_logsumexp_opt, TgAxisOptions, __VA_ARGS__, .end_ = 0)
#define TG_TENSORS(...)                                                                                      \
  ((TgTensor *const[]){__VA_ARGS__}), ((int)(sizeof((TgTensor *const[]){__VA_ARGS__}) / sizeof(TgTensor *)))
#define tg_einsum(...)           TG_OPT3_(tg_einsum_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_svd(...)              TG_OPT4_(tg_svd_opt, TgSvdOptions, __VA_ARGS__, .end_ = 0)
#define tg_interpolate(...)      TG_OPT3_(tg_interpolate_opt, TgInterpolateOptions, __VA_ARGS__, .end_ = 0)
#define tg_backward(...)         TG_OPT1_(tg_backward_opt, TgGradientOptions, __VA_ARGS__, .end_ = 0)
#define tg_matmul(...)           TG_OPT2_(tg_matmul_opt, TgMatmulOptions, __VA_ARGS__, .end_ = 0)
#define tg_dot(...)              TG_OPT2_(tg_dot_opt, TgMatmulOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv2d(...)           TG_OPT2_(tg_conv2d_opt, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_conv_transpose2d(...) TG_OPT2_(tg_conv_transpose2d_opt, TgConvOptions, __VA_ARGS__, .end_ = 0)
#define tg_max_pool2d(...)       TG_OPT1_(tg_max_pool2d_opt, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#define tg_max_unpool2d(...)     TG_OPT2_(tg_max_unpool2d_opt, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#define tg_randperm(...)         TG_OPT2_(tg_randperm_opt, TgDTypeOptions, __VA_ARGS__, .end_ = 0)
#define tg_avg_pool2d(...)       TG_OPT1_(tg_avg_pool2d_opt, TgPoolOptions, __VA_ARGS__, .end_ = 0)
#define tg_cross_entropy(...)    TG_OPT2_(tg_cross_entropy_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_sparse_cross_entropy(...)                                                                         \
  TG_OPT2_(tg_sparse_cross_entropy_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_nll(...) TG_OPT2_(tg_nll_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_mse(...) TG_OPT2_(tg_mse_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_binary_cross_entropy(...)                                                                         \
  TG_OPT2_(tg_binary_cross_entropy_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_binary_cross_entropy_logits(...)                                                                  \
  TG_OPT2_(tg_binary_cross_entropy_logits_opt, TgLossOptions, __VA_ARGS__, .end_ = 0)
#define tg_layer_norm(...)       TG_OPT1_(tg_layer_norm_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_rms_norm(...)         TG_OPT1_(tg_rms_norm_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_batch_norm(...)       TG_OPT3_(tg_batch_norm_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_batch_norm_train(...) TG_OPT3_(tg_batch_norm_train_opt, TgNormOptions, __VA_ARGS__, .end_ = 0)
#define tg_scaled_dot_product_attention(...)                                                                 \
  TG_OPT3_(tg_scaled_dot_product_attention_opt, TgAttentionOptions, __VA_ARGS__, .end_ = 0)
#else
} /* extern "C" */

template <class... A> inline TgAxes TG_AXES(A... a) { return TgAxes{{(int)a...}, (int)sizeof...(a)}; }

template <class... A> inline TgSizes TG_SIZES(A... a) { return TgSizes{{(int64_t)a...}, (int)sizeof...(a)}; }

struct TgDims_ { /* the sizes given to TG_SHAPE, alive for the whole call */
  int64_t v[TG_MAX_RANK];

  const int64_t *p() const { return v; }
};

template <class... A> inline TgDims_ tg_dims_(A... a) { return TgDims_{{(int64_t)a...}}; }

template <class... A> constexpr int tg_ndims_(A...) { return (int)sizeof...(A); }

inline TgIndex tg_index_(TgIndexKind kind, int64_t begin = 0, int64_t end = 0, TgTensor *tensor = nullptr) {
  return TgIndex{kind, begin, end, 0, tensor};
}

inline TgIndex TG_SLICE(int64_t begin, int64_t end) { return tg_index_(TG_INDEX_SLICE, begin, end); }

inline TgIndex TG_SLICE(int64_t begin, int64_t end, int64_t step) {
  return TgIndex{TG_INDEX_STEP, begin, end, step, nullptr};
}

#define TG_ALL       tg_index_(TG_INDEX_ALL)
#define TG_AT(i)     tg_index_(TG_INDEX_AT, (i))
#define TG_NEW       tg_index_(TG_INDEX_NEW)
#define TG_ELLIPSIS  tg_index_(TG_INDEX_ELLIPSIS)
#define TG_TENSOR(t) tg_index_(TG_INDEX_TENSOR, 0, 0, (t))
#define TG_MASK(m)   tg_index_(TG_INDEX_MASK, 0, 0, (m))

/* the elements given to TG_IDX and TG_TENSORS, alive for the whole call */
template <class T> struct TgList_ {
  T v[2 * TG_MAX_RANK];

  const T *p() const { return v; }
};

template <class T, class... A> inline TgList_<T> tg_list_(A... a) { return TgList_<T>{{a...}}; }

template <int N> constexpr const TgNamedSize *tg_named_(const TgNamedSize (&a)[N]) { return a; }

template <int N> constexpr int tg_nnamed_(const TgNamedSize (&)[N]) { return N; }

#define TG_IDX(...)     tg_list_<TgIndex>(__VA_ARGS__).p(), tg_ndims_(__VA_ARGS__)
#define TG_TENSORS(...) tg_list_<TgTensor *>(__VA_ARGS__).p(), tg_ndims_(__VA_ARGS__)
#define TG_NAMED(...)   tg_named_({__VA_ARGS__}), tg_nnamed_({__VA_ARGS__})
#define TG_SHAPE(...)   tg_ndims_(__VA_ARGS__), tg_dims_(__VA_ARGS__).p()
#define TG_CXX1_(f, T)                                                                                       \
  inline TgTensor *f(TgTensor *a, T o = T()) {                                                               \
    o.size = sizeof o;                                                                                       \
    return f##_opt(a, &o);                                                                                   \
  }
#define TG_CXX2_(f, T)                                                                                       \
  inline TgTensor *f(TgTensor *a, TgTensor *b, T o = T()) {                                                  \
    o.size = sizeof o;                                                                                       \
    return f##_opt(a, b, &o);                                                                                \
  }
#define TG_CXX3_(f, T)                                                                                       \
  inline TgTensor *f(TgTensor *a, TgTensor *b, TgTensor *c, T o = T()) {                                     \
    o.size = sizeof o;                                                                                       \
    return f##_opt(a, b, c, &o);                                                                             \
  }
#define TG_CXXN_(f, T)                                                                                       \
  inline TgTensor *f(TgContext *c, int n, const int64_t *d, T o = T()) {                                     \
    o.size = sizeof o;                                                                                       \
    return f##_opt(c, n, d, &o);                                                                             \
  }

/* C++20: TG_WITH(TgOptimOptions, .eps = 0) makes a struct that records which fields were written */
template <class T> inline T tg_with_(const char *set, T o) {
  o.size = sizeof o, o.set = set;
  return o;
}

#define TG_WITH(T, ...) tg_with_(#__VA_ARGS__, T{__VA_ARGS__})

inline TgContext *tg_open_with(TgOpenOptions o) {
  o.size = sizeof o;
  return tg_open(&o);
}

inline TgTensor *tg_full(TgContext *c, int n, const int64_t *d, double v,
                         TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_full_opt(c, n, d, v, &o);
}

inline TgTensor *tg_uniform(TgContext *c, int n, const int64_t *d, double lo, double hi,
                            TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_uniform_opt(c, n, d, lo, hi, &o);
}

inline TgTensor *tg_normal(TgContext *c, int n, const int64_t *d, double mean, double std,
                           TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_normal_opt(c, n, d, mean, std, &o);
}

inline TgTensor *tg_multinomial(TgTensor *w, int64_t k, TgMultinomialOptions o = TgMultinomialOptions()) {
  o.size = sizeof o;
  return tg_multinomial_opt(w, k, &o);
}

inline TgVariable *tg_variable(TgContext *c, const char *name, int64_t lo, int64_t hi,
                               TgVariableOptions o = TgVariableOptions()) {
  o.size = sizeof o;
  return tg_variable_opt(c, name, lo, hi, &o);
}

inline TgStatus tg_jit_to_c(TgJit *jit, TgCText *out, TgCOptions o = TgCOptions()) {
  o.size = sizeof o;
  return tg_jit_to_c_opt(jit, out, &o);
}

inline const char *tg_explain(TgTensor *const *t, size_t n, TgExplainOptions o = TgExplainOptions()) {
  o.size = sizeof o;
  return tg_explain_opt(t, n, &o);
}

inline const char *tg_opt(TgContext *c, const char *text, TgOptOptions o = TgOptOptions()) {
  o.size = sizeof o;
  return tg_opt_opt(c, text, &o);
}

inline TgTensor *tg_from_file(TgContext *c, const char *path, TgDType d, int n, const int64_t *dims,
                              TgFileOptions o = TgFileOptions()) {
  o.size = sizeof o;
  return tg_from_file_opt(c, path, d, n, dims, &o);
}

inline TgTensor *tg_arange(TgContext *c, double start, double stop, TgArangeOptions o = TgArangeOptions()) {
  o.size = sizeof o;
  return tg_arange_opt(c, start, stop, &o);
}

inline TgTensor *tg_einsum(const char *f, TgTensor *const *x, int n, TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_einsum_opt(f, x, n, &o);
}

inline TgTensor *tg_var_mean(TgTensor *x, TgTensor **mean, TgVarOptions o = TgVarOptions()) {
  o.size = sizeof o;
  return tg_var_mean_opt(x, mean, &o);
}

inline TgTensor *tg_std_mean(TgTensor *x, TgTensor **mean, TgVarOptions o = TgVarOptions()) {
  o.size = sizeof o;
  return tg_std_mean_opt(x, mean, &o);
}

inline TgStatus tg_svd(TgTensor *a, TgTensor **u, TgTensor **s, TgTensor **vt,
                       TgSvdOptions o = TgSvdOptions()) {
  o.size = sizeof o;
  return tg_svd_opt(a, u, s, vt, &o);
}

inline TgTensor *tg_interpolate(TgTensor *x, int n, const int64_t *size,
                                TgInterpolateOptions o = TgInterpolateOptions()) {
  o.size = sizeof o;
  return tg_interpolate_opt(x, n, size, &o);
}

inline TgStatus tg_backward(TgTensor *loss, TgGradientOptions o = TgGradientOptions()) {
  o.size = sizeof o;
  return tg_backward_opt(loss, &o);
}

inline TgTensor *tg_from_text(TgContext *c, const char *text, TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_from_text_opt(c, text, &o);
}

inline TgTensor *tg_index_put(TgTensor *x, const TgIndex *i, int n, TgTensor *v,
                              TgIndexPutOptions o = TgIndexPutOptions()) {
  o.size = sizeof o;
  return tg_index_put_opt(x, i, n, v, &o);
}

inline TgTensor *tg_randperm(TgContext *c, int64_t n, TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_randperm_opt(c, n, &o);
}

inline TgTensor *tg_linspace(TgContext *c, double start, double stop, int64_t steps,
                             TgDTypeOptions o = TgDTypeOptions()) {
  o.size = sizeof o;
  return tg_linspace_opt(c, start, stop, steps, &o);
}

inline TgTensor *tg_eye(TgContext *c, int64_t n, TgEyeOptions o = TgEyeOptions()) {
  o.size = sizeof o;
  return tg_eye_opt(c, n, &o);
}

inline TgTensor *tg_shard(TgTensor *x, int n, const char *const *devices, int axis,
                          TgShardOptions o = TgShardOptions()) {
  o.size = sizeof o;
  return tg_shard_opt(x, n, devices, axis, &o);
}

inline TgTensor *tg_sort(TgTensor *x, TgTensor **i, TgSortOptions o = TgSortOptions()) {
  o.size = sizeof o;
  return tg_sort_opt(x, i, &o);
}

inline TgTensor *tg_topk(TgTensor *x, int64_t k, TgTensor **i, TgTopkOptions o = TgTopkOptions()) {
  o.size = sizeof o;
  return tg_topk_opt(x, k, i, &o);
}

inline TgTensor *tg_scatter(TgTensor *x, int axis, TgTensor *i, TgTensor *v,
                            TgScatterOptions o = TgScatterOptions()) {
  o.size = sizeof o;
  return tg_scatter_opt(x, axis, i, v, &o);
}

inline TgTensor *tg_scatter_reduce(TgTensor *x, int axis, TgTensor *i, TgTensor *v, TgScatterReduce how,
                                   TgScatterOptions o = TgScatterOptions()) {
  o.size = sizeof o;
  return tg_scatter_reduce_opt(x, axis, i, v, how, &o);
}

/* clang-format off */
TG_CXX1_(tg_argsort, TgSortOptions)
TG_CXX2_(tg_masked_select, TgSelectOptions)
TG_CXX1_(tg_nonzero, TgSelectOptions)
TG_CXXN_(tg_zeros, TgDTypeOptions)
TG_CXXN_(tg_ones, TgDTypeOptions)
TG_CXXN_(tg_rand, TgDTypeOptions)
TG_CXXN_(tg_randn, TgDTypeOptions)
TG_CXXN_(tg_kaiming_uniform, TgKaimingOptions)
TG_CXXN_(tg_kaiming_normal, TgKaimingOptions)
TG_CXXN_(tg_scaled_uniform, TgDTypeOptions)
TG_CXX1_(tg_rand_like, TgDTypeOptions)
TG_CXX1_(tg_randn_like, TgDTypeOptions)
TG_CXX1_(tg_empty_like, TgDTypeOptions)
TG_CXXN_(tg_glorot_uniform, TgDTypeOptions)
TG_CXX1_(tg_sum, TgReduceOptions)
TG_CXX1_(tg_prod, TgReduceOptions)
TG_CXX1_(tg_max, TgReduceOptions)
TG_CXX1_(tg_min, TgReduceOptions)
TG_CXX1_(tg_mean, TgReduceOptions)
TG_CXX1_(tg_any, TgReduceOptions)
TG_CXX1_(tg_all, TgReduceOptions)
TG_CXX1_(tg_argmax, TgReduceOptions)
TG_CXX1_(tg_argmin, TgReduceOptions)
TG_CXX1_(tg_var, TgVarOptions)
TG_CXX1_(tg_std, TgVarOptions)
TG_CXX1_(tg_softmin, TgAxisOptions)
TG_CXX1_(tg_normalize, TgNormalizeOptions)
TG_CXX1_(tg_softmax, TgAxisOptions)
TG_CXX1_(tg_log_softmax, TgAxisOptions)
TG_CXX1_(tg_logsumexp, TgAxisOptions)
TG_CXX1_(tg_max_pool2d, TgPoolOptions)
TG_CXX1_(tg_avg_pool2d, TgPoolOptions)
TG_CXX2_(tg_conv2d, TgConvOptions)
TG_CXX2_(tg_conv_transpose2d, TgConvOptions)
TG_CXX2_(tg_max_unpool2d, TgPoolOptions)
TG_CXX2_(tg_isclose, TgCloseOptions)
TG_CXX2_(tg_allclose, TgCloseOptions)
TG_CXX2_(tg_cross_entropy, TgLossOptions)
TG_CXX2_(tg_sparse_cross_entropy, TgLossOptions)
TG_CXX2_(tg_nll, TgLossOptions)
TG_CXX2_(tg_matmul, TgMatmulOptions)
TG_CXX2_(tg_dot, TgMatmulOptions)
TG_CXX2_(tg_mse, TgLossOptions)
TG_CXX2_(tg_binary_cross_entropy, TgLossOptions)
TG_CXX2_(tg_binary_cross_entropy_logits, TgLossOptions)
TG_CXX1_(tg_layer_norm, TgNormOptions)
TG_CXX1_(tg_rms_norm, TgNormOptions)
TG_CXX3_(tg_batch_norm, TgNormOptions)
TG_CXX3_(tg_batch_norm_train, TgNormOptions)
TG_CXX3_(tg_scaled_dot_product_attention, TgAttentionOptions)
/* clang-format on */
#endif
#ifndef TG_NO_ORIGIN
#include "tg_origin.h"
#endif
#endif
