/* tg.h: the public API of tinygrad-c, the only header a program includes.
 *
 * A TgContext holds all state: its devices, the graph, the tensors. Building calls (tg_add, tg_matmul, ..)
 * are lazy: they return a new TgTensor at once and compute nothing. tg_realize, tg_read and tg_item_*
 * compute.
 *
 * Errors. A builder given NULL returns NULL; a builder that fails returns NULL and records the first error in
 * the context, with the operation and the shapes (tg_error, tg_errmsg). So a chain of calls needs one check,
 * at its end. Actions return TgStatus.
 *
 * Ownership. Each tensor belongs to the scope that was innermost when it was made and ends with it
 * (tg_scope_begin, tg_scope_end, TG_SCOPE); tg_keep moves one out. The library never frees your memory and
 * never returns memory that you must free.
 *
 * Options. Functions marked [options] take trailing designated initialisers; what is not written is the
 * default, and a zero that is written is a zero:
 *   tg_sum(x)     tg_sum(x, .axis = TG_AXES(1, -1), .keepdim = true)     tg_var(x, .correction = 0)
 * Each is a macro over an exported function tg_NAME_opt that takes a pointer to the options struct (NULL: all
 * defaults). Where tg_NAME itself takes the pointer (tg_open, tg_conv2d_new) the macro is tg_NAME_with. A
 * struct says its size, or it is refused (TG_ERR_VALUE), and in `set` which fields were written: a text as
 * ".eps = 0, .beta1", of which only the names that stand behind a dot count. NULL: those that are not zero.
 * TG_WITH(TgOptimOptions, .eps = 0) is such a struct; the text must live as long as the call. In C++ the
 * same names are inline functions that take the struct by value, whose size they fill in.
 *
 * Broadcasting is NumPy's; the result dtype of two tensors is their join: bool < integers < f16, bf16 < f32 <
 * f64, mixed signs take the next wider signed type, u64 with a signed type gives f32, f16 with bf16 gives
 * f32, fp8 is below f16 and bf16, fp8e4m3 with fp8e5m2 gives f16. What is computed in f16, bf16 or fp8 is
 * computed in f32 and rounded once per operation, on every device. A scalar takes the tensor's kind: a whole
 * number keeps an integer tensor's dtype if that holds it (on bool: i32), else stands for the narrowest of i8
 * i16 i32 i64 u64 that does, and the result has the join: u8 + 300 is i16, u8 < 300 is true. A fraction,
 * infinity, NaN or 2^64 and more makes it f32. Integers wrap. Floats follow IEEE: NaN passes through every
 * op. Rank is at most TG_MAX_RANK. One thread at a time may use a context; contexts share nothing. */
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
  TG_FP8E4M3, /* OCP e4m3fn: to 448, no infinity; what would round past that is NaN */
  TG_FP8E5M2  /* to 57344, infinities */
} TgDType;

/* what a loss does with its elements */
typedef enum TgReduction { TG_MEAN = 0, TG_SUM, TG_NONE } TgReduction;

typedef enum TgPadMode { TG_PAD_CONSTANT = 0, TG_PAD_REFLECT, TG_PAD_REPLICATE, TG_PAD_CIRCULAR } TgPadMode;

typedef enum TgInterpolation { TG_LINEAR = 0, TG_NEAREST, TG_NEAREST_EXACT } TgInterpolation;
typedef struct TgContext TgContext;
typedef struct TgTensor TgTensor;
typedef struct TgState TgState; /* of tg_io.h; layers and optimisers (tg_nn.h) take it too */
typedef TgStatus (*TgGradientFn)(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out,
                                 void *user);
typedef struct TgJit TgJit;
typedef TgStatus (*TgJitFn)(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                            void *user);
#define TG_MAX_RANK 16

/* Counted since tg_open or tg_counters_reset. */
typedef struct TgCounters {
  uint64_t kernels;                  /* kernels in the schedules that were run */
  uint64_t launches;                 /* kernels launched */
  uint64_t compiled;                 /* programs given to the device's compiler */
  uint64_t cache_hits;               /* programs found compiled, in memory or on disk */
  uint64_t schedules, schedule_hits; /* graphs scheduled anew; schedules found in the cache */
  uint64_t nodes;                    /* graph nodes made by scheduling and code generation */
  /* nodes visited by rules, rules that fired, nodes that rules walked besides */
  uint64_t visits, firings, nested;
  uint64_t flops, bytes;   /* estimated work of the launches */
  double ms;               /* time in launches; of a device with a queue, once it was waited for */
  uint64_t graph_nodes;    /* nodes of the tensor graphs that were realized */
  uint64_t peak_bytes;     /* the most memory that the device held at once */
  uint64_t largest_source; /* the longest text of a kernel given to the device's compiler, in bytes */
  /* kernels that could not take all the opts chosen for them, and run with fewer */
  uint64_t fallbacks;
  /* graphs scheduled again, with fewer stages in a kernel, because a kernel of theirs could not be lowered */
  uint64_t cuts;
  uint64_t retried; /* times that the C compiler died, and was started again without optimisation */
  uint64_t copies, bytes_copied; /* between devices */
  uint64_t graphs;               /* replays of captured launches that the device was given as one */
  uint64_t bytes_read;           /* of other ranks' devices, by the host: what is read or saved here */
  uint64_t packed;               /* kernels whose copies of weights were made, to be kept for later replays */
} TgCounters;

/* Made by TG_AXES(1) or TG_AXES(0, -1). n 0: the default (for reductions: all axes). A bare number, .axis =
 * 1, is refused where it is called: C takes it for v[0] alone. */
typedef struct TgAxes {
  int v[TG_MAX_RANK];
  int n;
} TgAxes;

#define TG_MAX_SPATIAL 4

/* Sizes along the spatial axes of convolutions and pools: none (the default), one for all axes, or one per
 * axis; for a padding also two per axis, before and after, the last axis first. .stride = TG_SIZES(2)
 * .padding = TG_SIZES(0, 1). A bare number, .stride = 2, is one for all axes: v[0], where n is 0. */
typedef struct TgSizes {
  int64_t v[2 * TG_MAX_SPATIAL];
  int n;
} TgSizes;

/* TG_NAMED({"h", 2}, {"w", 3}): for tg_rearrange */
typedef struct TgNamedSize {
  const char *name;
  int64_t size;
} TgNamedSize;

/* One index of tg_getitem and its kin; made by TG_ALL TG_AT(i) TG_SLICE(b, e[, step]) TG_NEW TG_ELLIPSIS
 * TG_TENSOR(t) TG_MASK(m). TG_OPEN as a bound of a slice leaves it out. tg_getitem(x, TG_IDX(TG_SLICE(1, -1,
 * 2), TG_AT(3), TG_NEW, TG_ELLIPSIS, TG_TENSOR(rows))) */
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

/* STEP: a slice whose step is given, and not 0 */
typedef struct TgIndex {
  TgIndexKind kind;
  int64_t begin, end, step;
  TgTensor *tensor;
} TgIndex;

#define TG_OPEN INT64_MIN

/* ---- option structs: `size`, `set` and `end_` are filled in by the macros */
/* What the library would print (TG_DEBUG, TG_TRACE): a piece of text, of one or more whole lines. */
typedef void (*TgLogFn)(const char *text, void *user);
typedef void *(*TgAllocateFn)(size_t nbytes, void *user);
typedef void *(*TgReallocateFn)(void *p, size_t nbytes, void *user);
typedef void (*TgReleaseFn)(void *p, void *user);

/* Memory of a context, as malloc, realloc and free give and take it; allocate may give NULL. It must outlive
 * the context, and may be called from several threads at once. */
typedef struct TgAllocator {
  TgAllocateFn allocate;
  TgReallocateFn reallocate;
  TgReleaseFn release;
  void *user;
} TgAllocator;

/* Of tg_open; what is 0 or NULL is the default.
 *   device        "CPU", "INTERP", "CUDA", ..; $TG_DEV, else the best one present: a CPU that is not named is
 * passed over where there is no C compiler, which the log is told
 *   seed          of the random numbers; the time, where none is written
 *   threads       of a CPU device, the caller's among them; as many as the process has cores ($TG_THREADS)
 *   cores         the machine that kernels are planned for; this one, and 8 on NULL devices, so that their
 * text is the same everywhere unpinned      its threads may move between cores; each has its own otherwise
 *   memory_limit  bytes that the device may have in use, as tg_memory_limit
 *   log, log_user gets the text of TG_DEBUG and TG_TRACE; stderr gets it otherwise. It may not use the
 * context allocator     of all memory of the context: graphs, and on CPUs tensors; malloc */
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
/* [options] as TgOpenOptions says. Opens a context on options->device ("CPU", "INTERP", "CUDA", ..), else
 * $TG_DEV, else the best device present: tg_open(NULL), tg_open_with(.device = "CPU"). NULL only
 * when out of memory; any other failure (TG_ERR_DEVICE, TG_ERR_VALUE) is in tg_error of the context, which
 * must still be closed. */
TG_API TgContext *tg_open(const TgOpenOptions *options);
/* Ends every tensor of the context and frees it. NULL is fine. */
TG_API void tg_close(TgContext *ctx);
/* first error since tg_open or tg_clear_error; NULL: TG_ERR_NOMEM */
TG_API TgStatus tg_error(const TgContext *ctx);
TG_API const char *tg_errmsg(const TgContext *ctx); /* its text, "" if none; valid until the context closes */
TG_API void tg_clear_error(TgContext *ctx);         /* forgets it */
/* Records an error as the library does, for what is built on this header: the first one stays. text is copied
 * (cut at some 500 characters). Returns status. */
TG_API TgStatus tg_set_error(TgContext *ctx, TgStatus status, const char *text);
TG_API const char *tg_status_name(TgStatus s);              /* "shape error" */
TG_API const char *tg_version(void);                        /* "0.1.0" */
TG_API const char *tg_default_device(const TgContext *ctx); /* "CPU"; "" if no device opened */
/* From now on memory is made on this device where none is named, random numbers are drawn there, and what is
 * made of numbers alone is computed there; tensors that exist stay where they are. NULL: the device that the
 * context was opened on. TG_ERR_VALUE: no device is called so; TG_ERR_DEVICE: it does not open, or has files
 * alone. */
TG_API TgStatus tg_set_default_device(TgContext *ctx, const char *device);
TG_API const char *tg_device_describe(const TgContext *ctx); /* one line about the device */
TG_API const char *tg_device_name(int i); /* names that tg_open knows, present or not; NULL past the last */
/* ---- devices. Shape and dtype of a tensor are the same on each. A context computes on its default
 * device, at first the one that it was opened on, and on every other one that is named: "INTERP", "CPU:1"
 * (a second CPU: threads, memory and counters of its own). The first to name a device opens it. Memory is
 * on one device, and so is what is computed from it; numbers, aranges and what is computed from those
 * alone are wherever they are used. Tensors of two devices in one operation: TG_ERR_DEVICE. */
TG_API const char *tg_device(const TgTensor *t); /* where t's value is or will be; of numbers: the default */
/* x on another device (NULL: the default), lazily; if it is there, a view of x. Gradients come back the same
 * way. TG_ERR_VALUE: no such device; TG_ERR_DEVICE: it does not work here. */
TG_API TgTensor *tg_to(TgTensor *x, const char *device);
/* ---- tensors on several devices (docs/many.md). A tensor is split along an axis, each of n devices
 * having a part, or all of it is on each; shape and dtype are those of the whole. What is computed from it
 * is computed on all of these devices, each on its part; sums over a split axis, products along one and
 * the like exchange what they must, lazily as all else. tg_read gathers; gradients are where their tensors
 * are; tg_assign stores to each part; numbers are wherever they are used. A view that is not one of each
 * device's part (one number of the split axis) sees stores, but tg_assign refuses it, TG_ERR_DEVICE:
 * tg_setitem writes there. With a tensor of another device, or of other devices: TG_ERR_DEVICE. tg_device
 * gives such a tensor's devices as one text, "CPU,CPU:1", which tg_to and .device take as well: all of it
 * on each.
 * [options] .bounds (n + 1 numbers, from 0 to the size of the axis: where each part begins, and the last
 * one ends; parts of 0 are fine). Without it, sizes differ by 1 at most, the larger ones first. axis is
 * negative from the end. n = 1: as tg_to. A tensor that is on several devices already moves. TG_ERR_SHAPE:
 * no such axis, or its size is symbolic; TG_ERR_VALUE: a device is named twice, or none is called so, or
 * bounds do not fit; TG_ERR_DEVICE: one does not open, or has files alone. */
TG_API TgTensor *tg_shard_opt(TgTensor *x, int n, const char *const *devices, int axis,
                              const TgShardOptions *o);
TG_API TgTensor *tg_replicate(TgTensor *x, int n, const char *const *devices); /* all of x on each */
/* Where `like` is, and split as that. TG_ERR_SHAPE: x has not that axis in that size. */
TG_API TgTensor *tg_shard_like(TgTensor *x, TgTensor *like);
TG_API TgTensor *tg_gather_to(TgTensor *x, const char *device); /* all of x on one (NULL: the default) */
TG_API int tg_shard_count(const TgTensor *x);                   /* of its devices; 1: it is on one */
TG_API int tg_shard_axis(TgTensor *x);                          /* that is split; -1: none is */
/* Where each part begins and the last one ends, tg_shard_count + 1 numbers. TG_ERR_VALUE: x is not split. */
TG_API TgStatus tg_shard_bounds(TgTensor *x, int64_t *bounds);
/* Part i, 0 <= i < tg_shard_count, a tensor on its device: a view, where x is memory. Else TG_ERR_VALUE. */
TG_API TgTensor *tg_shard_part(TgTensor *x, int i);
/* ---- ranks (docs/many.md): processes that run one program, on one machine or several, each with devices
 * of its own. $TG_COMM says how they reach each other ("local", "mpi", "nccl", or a plug-in's path); `tg
 * launch` and mpirun start them. All make the same calls in the same order. "CPU@2" is the CPU of rank 2,
 * on every rank: a tensor on several of these is a sharded one, and its parts are computed where they are.
 * "CPU", without a rank, is each one's own, and has the same values in each. What is read (tg_read,
 * tg_item) every rank gets. The first of these calls joins, and then all draw with rank 0's seed. Ranks
 * that run other programs, fail, end, or do not come within TG_COMM_TIMEOUT seconds (300): TG_ERR_DEVICE,
 * with who and where. Then nothing more can be exchanged. */
TG_API int tg_comm_size(TgContext *ctx); /* 1: there are no others, or it is recorded why not */
TG_API int tg_comm_rank(TgContext *ctx); /* 0 .. size - 1 */
/* names[r] = the device of that name (NULL: the default) on rank r; without $TG_COMM the one there is. The
 * names live as long as the context. Returns the size; -1: TG_ERR_LIMIT, more than `most`, or than 15;
 * TG_ERR_VALUE: no such device; TG_ERR_DEVICE: a rank has none, or is not there. */
TG_API int tg_comm_devices(TgContext *ctx, const char *device, int most, const char **names);
/* Waits for all ranks; *value becomes the largest that any of them gives. For what a rank alone knows: a
 * signal that came, a file that could not be written. Alone it is as it was. TG_ERR_DEVICE: as above. */
TG_API TgStatus tg_comm_max(TgContext *ctx, int64_t *value);
/* As tg_read, on one rank alone: all call it, the others give what they have of t, and out may be NULL.
 * What that rank has on a device of its own, or all ranks have, does not move. TG_ERR_VALUE: no such rank. */
TG_API TgStatus tg_comm_read(TgTensor *t, int rank, void *out, size_t nbytes);
/* How what one device has reaches another (NULL: the default), which open: "same", they are one; "memory"
 * that both have in place; "peer", the one reads the other's memory; "host", a copy in its memory; "ranks",
 * messages between processes. NULL: there is no such device, or it does not open. */
TG_API const char *tg_device_link(TgContext *ctx, const char *from, const char *to);
/* A device (NULL: the default) has at most so many bytes in use; 0: what there is. What would go beyond is
 * TG_ERR_NOMEM, after memory that only caches held was given back; nothing else is lost. */
TG_API TgStatus tg_memory_limit(TgContext *ctx, const char *device, uint64_t nbytes);
/* What computations need between their kernels goes back to a pool, from which the next one takes it. A
 * device (NULL: the default) keeps at most so many bytes in it; 0: twice the most that were in use at once.
 * tg_collect empties it. */
TG_API TgStatus tg_pool_limit(TgContext *ctx, const char *device, uint64_t nbytes);
/* Facts for bug reports, i = 0, 1, ..: how the library was built, the device, the cache on disk, the
 * environment variables that it reads and their values ("" where unset). *name is what the text says; NULL
 * past the last. The text is valid until the next call. */
TG_API const char *tg_info(TgContext *ctx, int i, const char **name);
TG_API TgCounters tg_counters(const TgContext *ctx); /* of what the context did so far */
TG_API void tg_counters_reset(TgContext *ctx);       /* all of them 0 */
/* The setting `name` (NOOPT FUSE PREPACK BATCH_INVARIANT ALLREDUCE ALLREDUCE_CAST DEBUG, as the variable
 * TG_.. of that name, TRAINING or ORIGIN), set to value if that is not negative; the value before, so that a
 * caller can put it back: int old = tg_setting(ctx, "NOOPT", 1); ..; tg_setting(ctx, "NOOPT", old).
 * BATCH_INVARIANT 1: on a CPU the order of a sum is to depend on the loop that it goes along, not on the
 * loops around it, so that a row has the same bits alone and among others; not so where NOOPT, OPTS or BEAM
 * choose the loops. PREPACK and BATCH_INVARIANT are asked when tg_jit makes a function, for all its runs.
 * -1, TG_ERR_VALUE: no such setting or value. */
TG_API int tg_setting(TgContext *ctx, const char *name, int value);
/* May be called from any thread and from a signal handler: what is being scheduled and compiled, or is about
 * to run, ends with TG_ERR_CANCELLED, within some 50 ms while a compiler is at work, which is ended with all
 * that it started; and so does the next action if nothing is. Kernels of a schedule that
 * has begun are all run, so nothing is half stored. Once reported, and after tg_clear_error, the context goes
 * on. */
TG_API void tg_cancel(TgContext *ctx);
/* For what a host does between two actions, a loop that builds graphs: TG_ERR_CANCELLED, recorded, where
 * tg_cancel was called and no action has told it yet; else TG_OK. */
TG_API TgStatus tg_cancelled(TgContext *ctx);
TG_API TgStatus tg_sync(TgContext *ctx); /* waits until the device has done all that it was given */
/* Forgets the schedules and programs kept for graphs seen before; the next tg_realize lowers and compiles
 * anew. For measuring, and to give memory back. What the device keeps on disk stays. */
TG_API void tg_cache_clear(TgContext *ctx);
TG_API TgStatus tg_collect(TgContext *ctx); /* frees graph nodes and buffers that nothing reaches */

/* ---- kernels as text */
typedef struct TgKernelText {
  size_t size;
  /* language: "C", "CUDA", "METAL"; source: one kernel, to stand below tg_source_prelude */
  const char *name, *language, *opts, *source;
  int threads, grid[3], block[3]; /* threads of a CPU; blocks and threads of a block on a GPU */
} TgKernelText;

/* seen(k, user) is called for each kernel made from now on, before it is compiled; the strings end with the
 * call, which must not use the context. Kernels kept from before are not made again (tg_cache_clear forgets
 * them). INTERP takes no text: source is "". NULL: no calls. */
TG_API void tg_watch_kernels(TgContext *ctx, void (*seen)(const TgKernelText *k, void *user), void *user);

/* How far an action is that makes kernels. phase: "lower", graphs to programs, then "compile". */
typedef struct TgProgress {
  size_t size;
  const char *phase;
  int done, all; /* kernels; of "compile" those that are new to the context */
} TgProgress;

/* seen(p, user) is called while kernels are made, by the thread that asked for it, some times a second while
 * it waits for the compiler. p ends with the call, which must not use the context but for tg_cancel. NULL: no
 * calls. */
TG_API void tg_watch_progress(TgContext *ctx, void (*seen)(const TgProgress *p, void *user), void *user);
/* The types and helpers that kernels of this device are written with; "" where a device takes no text, NULL
 * when out of memory. It lives as long as the context. */
TG_API const char *tg_source_prelude(TgContext *ctx);

/* For functions of options of what is built on this header. tg_options_read copies the caller's options, as
 * large as they know them, to a struct of `size` bytes that begins as every options struct does (NULL: all
 * zero). TG_ERR_VALUE, with a sentence that names function and type ("sum", "TgReduceOptions"): the caller's
 * size is 0. tg_option_written: `set` names the field. TG_OPTION(o, eps, 1e-5): o.eps, or the default where
 * it was not written. */
TG_API TgStatus tg_options_read(TgContext *ctx, const char *function, const char *type, void *to, size_t size,
                                const void *options);
TG_API bool tg_option_written(const char *set, const char *field);
#define TG_OPTION(o, field, otherwise)                                                                       \
  ((o).field != 0 || tg_option_written((o).set, #field) ? (o).field : (otherwise))
/* Compiled kernels, for processes that have no compiler, or would rather not wait for it. tg_bundle: all that
 * the context's devices have loaded so far (of kernels that nothing runs any more, a few dozen at most) and
 * that the bundles it was given hold, as *nbytes bytes that live until the next call; NULL: an error. Of
 * devices that keep no compiled kernels (GPUs, INTERP) there are none. tg_bundle_use: from now on kernels are
 * looked for there too, before a compiler is asked. Each is found by its text and taken on processors that
 * have all features of the one that it was compiled for; bundles of several machines may be given one after
 * the other. It is machine code: take it from whom you would take a program. TG_ERR_VALUE: the bytes are not
 * what tg_bundle gave, whole. tg_io.h has both with files. */
TG_API const void *tg_bundle(TgContext *ctx, size_t *nbytes);
TG_API TgStatus tg_bundle_use(TgContext *ctx, const void *bytes, size_t nbytes);

/* Memory of the context, zeroed, for what is built on this header (layers, optimisers); given back by tg_free
 * before tg_close. NULL: TG_ERR_NOMEM. */
TG_API void *tg_alloc(TgContext *ctx, size_t nbytes);
TG_API void tg_free(TgContext *ctx, void *p); /* NULL is fine */

/* flops: as estimated. microseconds: of tg_schedule as estimated, of tg_watch_launches as the device measured
 * it. part: numbers of the parts that it computes (tg_schedule_parts), rising, nparts of them. */
typedef struct TgLaunch {
  size_t size;
  const char *name;
  int nargs;
  int64_t flops;
  double microseconds;
  const int *part;
  int nparts;
  const char
      *origin; /* the operations that it computes, "matmul (net.c:12), relu (net.c:12)"; "": not known */
} TgLaunch;

/* ---- where operations come from. Each call of a builder through its macro in tg_origin.h tells its
 * function, file and line, so that kernels can say which operations they compute (TG_DEBUG=2, profiles,
 * TgLaunch) and an error in which call it arose. TG_NO_ORIGIN, defined before this header, leaves the macros
 * out; function pointers and bindings call the plain functions, and may tell an origin of their own. A
 * handle points to its text. Nodes whose handles end are remembered where TG_DEBUG, TG_PROFILE or
 * tg_setting(ctx, "ORIGIN", 1) asks. Equal operations of two places are one node, of the first place. Shape
 * and dtype of a tensor that is passed through stay. No error but TG_ERR_NOMEM where none is named. */
/* t was made by the call that the text names, "relu (net.c:12)", which must live as long as t; if t has none
 * yet. Returns t. */
TG_API TgTensor *tg_origin(TgTensor *t, const char *place);
/* A call begins that is given x, or ctx: an error that it makes ends with the text. Returns its argument. */
TG_API TgTensor *tg_origin_here(TgTensor *x, const char *place);
TG_API TgContext *tg_origin_within(TgContext *ctx, const char *place);
/* "encoder/conv1/relu (net.c:12)"; "" where nothing is known. Valid until the next call. */
TG_API const char *tg_origin_of(TgTensor *t);
/* Until tg_name_end, what is built is part of this ("conv1"): a layer, a node of a model file. Names nest.
 * The text is copied. TG_ERR_STATE: end without begin. */
TG_API TgStatus tg_name_begin(TgContext *ctx, const char *name);
TG_API TgStatus tg_name_end(TgContext *ctx);
/* Plans what tg_realize_many would run and tells each launch, in order, without running it. seen may be NULL.
 * The number of launches, -1 on error. */
TG_API int tg_schedule(TgTensor *const *t, size_t n, void (*seen)(const TgLaunch *l, void *user), void *user);
/* The same, and each launch says which of the parts it computes: tensors on the way to t, in the order in
 * which they were built, such as the outputs of a model's layers. What a part is computed from, down to other
 * parts, counts as that part, of several the first. Fused kernels compute several parts, a part may take
 * several kernels, and one that only renames elements or that nothing reads may take none. */
TG_API int tg_schedule_parts(TgTensor *const *t, size_t n, TgTensor *const *part, size_t nparts,
                             void (*seen)(const TgLaunch *l, void *user), void *user);
/* seen(l, user) is called after each launch from now on, of tg_realize and of replays, with the time that the
 * device measured for it. Launches then go one by one, each waited for: measured one is exact, and all of
 * them take longer than unwatched. l ends with the call, which must not use the context. NULL: no calls. */
TG_API void tg_watch_launches(TgContext *ctx, void (*seen)(const TgLaunch *l, void *user), void *user);
/* From now on, until tg_profile_stop or tg_close, a file is written that Chrome's tracing and Perfetto read:
 * a track of the host (realize, schedule, lower, compile, copy, read, replay, and what it waits for), one of
 * each device or its queue (each launch with its work, its bytes, its share of the roof and what it was
 * estimated to take; between them it is idle), one of each thread that shares launches, and the device's
 * memory. Launches go one by one, as under tg_watch_launches. TG_PROFILE=path does it from tg_open on; where
 * that file is there, it is path.2, path.3 and so on. TG_ERR_IO: the file cannot be made; TG_ERR_STATE: a
 * profile is being made. */
TG_API TgStatus tg_profile_start(TgContext *ctx, const char *path);
TG_API TgStatus tg_profile_stop(TgContext *ctx); /* TG_ERR_IO: not all could be written */
/* [options] .measure (it is also run, and its kernels timed) .json (every fact, as JSON) .kernel (the source
 * of one, by its name or as "0.2", kernel 2 of graph 0). What tg_realize_many would run, as text: five lines
 * with the size of the work and what may make it slow, then each graph: its kernels with their origins,
 * loops, opts and times, its memories, why stages were not fused; and the exchanges between devices. Plans
 * are made anew for it (tg_cache_clear). TG_EXPLAIN=file writes the same of all that a context ran, when it
 * closes. NULL: an error. The text lives until the next call. */
TG_API const char *tg_explain_opt(TgTensor *const *t, size_t n, const TgExplainOptions *o);
/* Runs a kernel of the user's own now: a kernel graph in the form that TG_DUMP writes and tg_opt reads
 * (RANGE, INDEX, REDUCE, STORE..; the heuristic's opts apply), whose PARAM of slot i is args[i], row-major,
 * of its dtype and number of elements. Those that are stored to are changed in place, as by tg_assign. An
 * access outside its tensor reads 0 and stores nothing (INTERP: an error). It has no gradient of its own:
 * tg_custom_gradient gives one. TG_ERR_VALUE: the text, with line and column, or a slot without a tensor;
 * TG_ERR_SHAPE, TG_ERR_DTYPE: a PARAM that is not as its tensor; TG_ERR_STATE: a part of a tensor is written.
 */
TG_API TgStatus tg_kernel(TgContext *ctx, const char *text, TgTensor *const *args, int n);
/* The elementwise op of that name (src/uop/ops.def: "ADD", "SQRT", "WHERE", ..) on n tensors, shapes
 * broadcast; dtypes must be equal, nothing is promoted. TG_ERR_VALUE: no such op; TG_ERR_DTYPE: it does not
 * take them. */
TG_API TgTensor *tg_alu(const char *op, TgTensor *const *x, int n);

/* ---- scopes and handles. A handle, of a tensor of any shape and dtype, ends with the scope that was
 * innermost when it was made, unless it is kept. Errors: TG_ERR_NOMEM, and as each says. */
/* Until tg_scope_end, tensors that are made belong to a new scope. Scopes nest. */
TG_API TgStatus tg_scope_begin(TgContext *ctx);
TG_API TgStatus tg_scope_end(TgContext *ctx); /* ends the tensors made in it; TG_ERR_STATE: none was begun */
TG_API TgTensor *tg_keep(TgTensor *t);        /* t lives until tg_release or tg_close; returns t */
TG_API void tg_release(TgTensor *t);          /* ends t now, kept or not */
#define TG_CAT2_(a, b) a##b
#define TG_CAT_(a, b)  TG_CAT2_(a, b)
/* TG_SCOPE(ctx) { .. }: everything made inside ends with the block. `continue` ends the block early; do not
 * leave by break or return. */
#define TG_SCOPE(ctx)                                                                                        \
  for (int TG_CAT_(tg_once_, __LINE__) = tg_scope_begin(ctx) == TG_OK; TG_CAT_(tg_once_, __LINE__);          \
       TG_CAT_(tg_once_, __LINE__) = 0, (void)tg_scope_end(ctx))

/* ---- questions about a tensor. NULL: 0, TG_DTYPE_DEFAULT, NULL. */
TG_API int tg_ndim(const TgTensor *t);
/* tg_ndim sizes; valid while t lives. Symbolic sizes: as bound now (see variables) */
TG_API const int64_t *tg_shape(const TgTensor *t);
/* size of an axis, negative from the end; -1: no such axis */
TG_API int64_t tg_dim(const TgTensor *t, int axis);
TG_API int64_t tg_numel(const TgTensor *t);         /* number of its elements */
TG_API TgDType tg_dtype(const TgTensor *t);         /* of its elements */
TG_API size_t tg_nbytes(const TgTensor *t);         /* tg_numel times the size of an element */
TG_API TgContext *tg_context(const TgTensor *t);    /* that it belongs to */
TG_API size_t tg_dtype_size(TgDType d);             /* bytes of an element */
TG_API const char *tg_dtype_name(TgDType d);        /* "f32" */
TG_API bool tg_dtype_is_float(TgDType d);           /* f16, bf16, f32, f64, fp8 */
TG_API TgDType tg_dtype_join(TgDType a, TgDType b); /* the result dtype of an operation on both */

TG_API size_t tg_element_size(const TgTensor *t);    /* bytes of an element */
TG_API bool tg_is_floating_point(const TgTensor *t); /* tg_dtype_is_float of its dtype */
TG_API int64_t tg_len(const TgTensor *t);            /* size of the first axis; -1 for a 0-d tensor */
/* One line for people, "tensor f32 (2, 3) on CPU, requires a gradient"; computes nothing; valid until the
 * next call with a tensor of the context. */
TG_API const char *tg_describe(const TgTensor *t);

/* ---- data in. Shape and dtype are those that are given. Errors: TG_ERR_SHAPE (negative size, rank,
 * overflow), TG_ERR_VALUE, TG_ERR_NOMEM, TG_ERR_DEVICE. */
/* Copies row-major elements of dtype from data. tg_from(ctx, p, TG_F32, TG_SHAPE(2, 3)) */
TG_API TgTensor *tg_from(TgContext *ctx, const void *data, TgDType dtype, int ndim, const int64_t *dims);
/* [options] .dtype. A nested list, "[[1, 2], [3, 4]]" of numbers, true, false, nan and inf: its nesting is
 * the shape. Without a dtype: bool; i32 (i64, u64 if needed); f32 if a number has a point or an exponent, or
 * there is none. TG_ERR_VALUE: ragged, or no list, with the column. */
TG_API TgTensor *tg_from_text_opt(TgContext *ctx, const char *text, const TgDTypeOptions *o);
/* nbytes / the element's size elements, 1-D, copied; TG_DTYPE_DEFAULT: u8. */
TG_API TgTensor *tg_from_bytes(TgContext *ctx, const void *data, size_t nbytes, TgDType dtype);
/* Converts doubles to dtype (integers truncate toward zero). */
TG_API TgTensor *tg_from_f64(TgContext *ctx, const double *data, TgDType dtype, int ndim,
                             const int64_t *dims);
/* Uses data where it is (64-byte aligned is best) until no tensor needs it, then calls destroy(data, user) if
 * destroy is not NULL. On devices with memory of their own the data is copied at once. */
TG_API TgTensor *tg_borrow(TgContext *ctx, void *data, TgDType dtype, int ndim, const int64_t *dims,
                           void (*destroy)(void *data, void *user), void *user);
/* One of dims may be -1: as much as the file has, in whole elements.
 * [options] .device ("DISK": nothing is computed there; views of it are read straight to where tg_to moves
 * them; not .writable) .offset (bytes, a multiple of the element's size) .writable .create (writable; made,
 * or lengthened with zeros, if need be). A part of a regular file as a tensor: its memory is the file, so
 * nothing is read before it is needed, and tg_assign to a writable one writes the file when it is realized,
 * at the latest in tg_close. On devices with memory of their own it is copied at once, and written back.
 * Nobody else may change the file meanwhile; one that is cut short ends the process at the next read.
 * TG_ERR_IO: not there, not a file, too short; TG_ERR_STATE: assigned but not writable. */
TG_API TgTensor *tg_from_file_opt(TgContext *ctx, const char *path, TgDType dtype, int ndim,
                                  const int64_t *dims, const TgFileOptions *o);
/* Memory without a value: tg_read of it before tg_assign is an error (TG_ERR_STATE); what is computed from it
 * takes it as zeros. */
TG_API TgTensor *tg_empty(TgContext *ctx, TgDType dtype, int ndim, const int64_t *dims);
/* [options] .dtype (default f32) .device: a constant tensor, no memory until needed. tg_full(ctx, TG_SHAPE(2,
 * 3), 1.5) */
TG_API TgTensor *tg_full_opt(TgContext *ctx, int ndim, const int64_t *dims, double value,
                             const TgDTypeOptions *o);
TG_API TgTensor *tg_full_i64(TgContext *ctx, int ndim, const int64_t *dims, int64_t value, TgDType dtype);
TG_API TgTensor *tg_zeros_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
TG_API TgTensor *tg_ones_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
/* shape and dtype of t, converted as tg_full does: integers truncate and saturate, NaN is 0 */
TG_API TgTensor *tg_full_like(TgTensor *t, double value);
TG_API TgTensor *tg_zeros_like(TgTensor *t);
TG_API TgTensor *tg_ones_like(TgTensor *t);
TG_API TgTensor *tg_scalar_like(TgTensor *t, double value); /* shape (), the dtype a scalar takes beside t */
/* [options] .step (1) .dtype (i32, i64 if needed, f32 if an argument is a fraction): start, start+step, ..
 * before stop; shape (n). */
TG_API TgTensor *tg_arange_opt(TgContext *ctx, double start, double stop, const TgArangeOptions *o);
/* [options] .dtype (f32): steps values from start to stop, both included. TG_ERR_VALUE: steps < 0. */
TG_API TgTensor *tg_linspace_opt(TgContext *ctx, double start, double stop, int64_t steps,
                                 const TgDTypeOptions *o);
/* [options] .m (n) .dtype (f32): (n, m) with ones on the diagonal. */
TG_API TgTensor *tg_eye_opt(TgContext *ctx, int64_t n, const TgEyeOptions *o);

/* ---- random numbers: tinygrad's stream. A draw of n 32-bit words has the key threefry2x32(counter, {device,
 * low 32 bits of the seed}) and moves the counter on by n; an element takes as many bytes of it as its dtype
 * has. The same seed gives the same numbers on every device, in every run. Of a symbolic size as many are
 * drawn as there are at most: the first ones do not depend on how its variables are bound. Errors:
 * TG_ERR_SHAPE, TG_ERR_DTYPE, TG_ERR_VALUE (a range with nothing in it). */
TG_API void tg_manual_seed(TgContext *ctx, uint64_t seed); /* also resets the counter */

/* Where the numbers of the device that draws now are, and on from there: what is drawn after
 * tg_random_resume is what was drawn after tg_random_state. order: how many devices had drawn, with it. */
typedef struct TgRandomState {
  uint64_t seed, counter;
  int64_t order;
} TgRandomState;

TG_API TgRandomState tg_random_state(TgContext *ctx);
/* TG_ERR_VALUE: an order below 1; TG_ERR_DEVICE: no device is open */
TG_API TgStatus tg_random_resume(TgContext *ctx, TgRandomState state);
/* n words for a key and a counter, two u32 each, low word first: u32 (n). Context and its counter are left
 * alone. */
TG_API TgTensor *tg_random_bits(TgTensor *key, TgTensor *counter, int64_t n);
/* [options] [0, 1), any float dtype */
TG_API TgTensor *tg_rand_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
/* [options] normal, made in f32 */
TG_API TgTensor *tg_randn_opt(TgContext *ctx, int ndim, const int64_t *dims, const TgDTypeOptions *o);
/* [options] shape of t and, unless .dtype says else, its dtype */
TG_API TgTensor *tg_rand_like_opt(TgTensor *t, const TgDTypeOptions *o);
TG_API TgTensor *tg_randn_like_opt(TgTensor *t, const TgDTypeOptions *o);
TG_API TgTensor *tg_empty_like_opt(TgTensor *t, const TgDTypeOptions *o);
/* [options] [low, high), or high by rounding: made in f32, cast to .dtype (f32), then low is added. */
TG_API TgTensor *tg_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims, double low, double high,
                                const TgDTypeOptions *o);
TG_API TgTensor *tg_normal_opt(TgContext *ctx, int ndim, const int64_t *dims, double mean, double std,
                               const TgDTypeOptions *o);
/* [low, high), a uniform of f32 times the span: a span above 2^24 skips numbers. dtype: an integer (i32). */
TG_API TgTensor *tg_randint(TgContext *ctx, int ndim, const int64_t *dims, int64_t low, int64_t high,
                            TgDType dtype);
/* [options] .dtype (i32): 0 .. n-1 in random order, (n) */
TG_API TgTensor *tg_randperm_opt(TgContext *ctx, int64_t n, const TgDTypeOptions *o);
/* [options] +-1 / sqrt(elements) */
TG_API TgTensor *tg_scaled_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                       const TgDTypeOptions *o);
/* [options] .a (0.01; sqrt(5) is what torch's layers take) .dtype. Uniform in +-sqrt(6 /
 * ((1 + a^2) fan_in)), or normal with deviation sqrt(2 / ((1 + a^2) fan_in)), where fan_in = product of
 * dims[1..]. */
TG_API TgTensor *tg_kaiming_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                        const TgKaimingOptions *o);
TG_API TgTensor *tg_kaiming_normal_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                       const TgKaimingOptions *o);
/* [options] uniform in +-sqrt(6 / (dims[0] + product of dims[1..])). */
TG_API TgTensor *tg_glorot_uniform_opt(TgContext *ctx, int ndim, const int64_t *dims,
                                       const TgDTypeOptions *o);
/* [options] .replacement. Indices drawn by weight (n) or (rows, n), which need not add up to 1: i32 (k) or
 * (rows, k). */
TG_API TgTensor *tg_multinomial_opt(TgTensor *weight, int64_t k, const TgMultinomialOptions *o);
TG_API void tg_set_training(TgContext *ctx, bool on); /* whether tg_dropout drops; off at first */
TG_API bool tg_training(const TgContext *ctx);        /* whether it drops */

/* ---- variables: one plan and one kernel for many sizes. A variable is a named integer; a size made of it
 * may stand wherever a shape, an end of a slice or an index is named, and its value is given when the kernels
 * run: bound to another, nothing is scheduled or compiled again.
 *
 * TgVariable *n = tg_variable(ctx, "n", 1, 2048); TgTensor *part = tg_slice(cache, 0, 0, tg_size(n));   //
 * (n, d) of (2048, d) tg_variable_bind(n, 17);                              // what is read now has 17 rows
 *
 * A tensor is an expression of its variables: bound anew, it is computed anew when it is read. What is stored
 * (tg_assign) stays as it was stored. Memory is reserved for the largest sizes. tg_shape, tg_dim, tg_numel,
 * tg_nbytes and tg_read speak of the values bound now (of the largest while a variable is unbound): to build
 * a graph from a tensor's size, pass on tg_size_of. Functions take symbolic sizes, and so do their gradients,
 * but where a size shapes the graph itself: the axis that is sorted, unfolded or resized, channels and
 * pictures of a convolution (its batch may vary), the steps of an LSTM, the fan of an initial value, an axis
 * that tg_getitem takes in steps or by a mask; and tg_setitem, tg_masked_select, tg_nonzero, tg_multinomial,
 * tg_max_unpool2d, tg_bitcast, hashes, tg_qr and tg_svd take numbers alone. Those say so: TG_ERR_SHAPE, with
 * the axis. Reading while a variable is unbound: TG_ERR_STATE. */
typedef struct TgVariable TgVariable; /* lives as long as the context */
/* [options] .multiple_of (1). 0 <= lo <= value <= hi. TG_ERR_VALUE: there is no such value. Names are for
 * messages: equal ones are two variables. */
TG_API TgVariable *tg_variable_opt(TgContext *ctx, const char *name, int64_t lo, int64_t hi,
                                   const TgVariableOptions *o);
/* TG_ERR_VALUE: out of bounds, or no multiple */
TG_API TgStatus tg_variable_bind(TgVariable *v, int64_t value);
/* *value (may be NULL): what it was bound to; TG_ERR_STATE: it was not */
TG_API TgStatus tg_variable_unbind(TgVariable *v, int64_t *value);
TG_API bool tg_variable_value(const TgVariable *v, int64_t *value); /* false: it is not bound */
TG_API const char *tg_variable_name(const TgVariable *v);           /* as it was given */
/* A symbolic size: an int64_t that only this context understands. Ordinary numbers are sizes too. Sums and
 * products of sizes are made by these, not by + and *. TG_ERR_LIMIT: more than 16 terms, or 6 variables in
 * one. */
TG_API int64_t tg_size(const TgVariable *v);
TG_API int64_t tg_size_add(TgContext *ctx, int64_t a, int64_t b);
TG_API int64_t tg_size_sub(TgContext *ctx, int64_t a, int64_t b);
TG_API int64_t tg_size_mul(TgContext *ctx, int64_t a, int64_t b);
/* *q = a / b where b divides a whatever the variables are, as n divides 6 n; else false, and no error. */
TG_API bool tg_size_div(TgContext *ctx, int64_t a, int64_t b, int64_t *q);
/* least <= size <= most whatever the variables are (either may be NULL). false: no size of this context */
TG_API bool tg_size_bounds(const TgContext *ctx, int64_t size, int64_t *least, int64_t *most);
/* shape (), its value when it is computed; default i32, i64 if it may not fit */
TG_API TgTensor *tg_size_tensor(TgContext *ctx, int64_t size, TgDType dtype);
TG_API TgTensor *tg_variable_tensor(const TgVariable *v); /* tg_size_tensor of tg_size(v) */
TG_API bool tg_is_symbolic(const TgTensor *t, int axis);  /* that size is made of variables */
TG_API int64_t tg_size_of(const TgTensor *t, int axis);   /* as tg_dim, but symbolic where the size is */
TG_API const int64_t *tg_max_shape(const TgTensor *t);    /* the largest sizes; valid while t lives */
TG_API int64_t tg_max_numel(const TgTensor *t);           /* elements of tg_max_shape */

/* ---- movement. Nothing is copied, and the dtype stays where none is named. Errors: TG_ERR_SHAPE names
 * the op and the shapes. */
TG_API TgTensor *tg_reshape(TgTensor *x, int ndim, const int64_t *dims); /* one size may be -1: inferred */
/* axis d of the result is axis order[d] of x */
TG_API TgTensor *tg_permute(TgTensor *x, int n, const int64_t *order);
TG_API TgTensor *tg_expand(TgTensor *x, int ndim, const int64_t *dims); /* broadcasts; -1 keeps a size */
TG_API TgTensor *tg_broadcast_to(TgTensor *x, int ndim, const int64_t *dims); /* the same as tg_expand */
/* zeros around; tg_ndim(x) entries each; negative crops */
TG_API TgTensor *tg_pad(TgTensor *x, const int64_t *lo, const int64_t *hi);
/* Around x by mode: reflect (the edge not repeated; less than the size), replicate (the edge), circular (at
 * most the size). A negative side crops: after the other side of its axis was made, circular before. */
TG_API TgTensor *tg_pad_mode(TgTensor *x, const int64_t *lo, const int64_t *hi, TgPadMode mode);
/* at the end of each axis, up to dims; -1 keeps a size */
TG_API TgTensor *tg_pad_to(TgTensor *x, int ndim, const int64_t *dims, double value);
/* the leading part of each axis; -1 keeps a size */
TG_API TgTensor *tg_shrink_to(TgTensor *x, int ndim, const int64_t *dims);
/* tg_pad with this value around */
TG_API TgTensor *tg_pad_value(TgTensor *x, const int64_t *lo, const int64_t *hi, double value);
/* keeps begin <= i < end on each axis */
TG_API TgTensor *tg_shrink(TgTensor *x, const int64_t *begin, const int64_t *end);
TG_API TgTensor *tg_flip(TgTensor *x, int n, const int64_t *axes); /* the axes reversed */
TG_API TgTensor *tg_transpose(TgTensor *x, int a, int b);          /* two axes swapped */
/* an axis of size 1 removed; of other sizes, and 0-d: a view of all of x */
TG_API TgTensor *tg_squeeze(TgTensor *x, int axis);
TG_API TgTensor *tg_squeeze_all(TgTensor *x); /* every axis of size 1 removed */
/* one axis as n; one size may be -1 */
TG_API TgTensor *tg_unflatten(TgTensor *x, int axis, int n, const int64_t *sizes);
TG_API TgTensor *tg_unsqueeze(TgTensor *x, int axis); /* a new axis of size 1 at axis (-rank-1 .. rank) */
/* axes first..last as one; tg_flatten(x, 0, -1) */
TG_API TgTensor *tg_flatten(TgTensor *x, int first, int last);
/* negative ends count from the size; clamped */
TG_API TgTensor *tg_slice(TgTensor *x, int axis, int64_t begin, int64_t end);
TG_API TgTensor *tg_select(TgTensor *x, int axis, int64_t index); /* one entry of an axis, which vanishes */
/* x[..] with n indices, as NumPy and PyTorch: numbers (negative from the end), slices (bounds are clamped;
 * any step but 0), new axes of size 1, one ellipsis, integer tensors (broadcast together; negative from the
 * end; a number outside reads 0) and bool masks of one or more axes (the places where they are true, in
 * order: computed at once, to know how many). Axes not named are whole. The axes of index tensors stand where
 * the first stood if they are neighbours, else in front. Ranges alone are a view. TG_ERR_SHAPE: too many
 * indices, a number outside, shapes that do not broadcast, a mask of another shape; TG_ERR_DTYPE: a tensor
 * that is no integer, a mask that is not bool; TG_ERR_VALUE: step 0, two ellipses. */
TG_API TgTensor *tg_getitem(TgTensor *x, const TgIndex *index, int n);
/* Splits an axis in parts of at most `size`; writes at most cap handles and returns how many parts there are,
 * 0 on error. */
TG_API int tg_split(TgTensor *x, int axis, int64_t size, TgTensor **out, int cap);
/* n parts that add up to the axis; n, 0 on error */
TG_API int tg_split_sizes(TgTensor *x, int axis, int n, const int64_t *sizes, TgTensor **out);
/* parts of ceil(size / chunks), maybe fewer; as tg_split */
TG_API int tg_chunk(TgTensor *x, int axis, int chunks, TgTensor **out, int cap);
/* joined along an axis; other sizes equal, dtype their join */
TG_API TgTensor *tg_cat(TgTensor *const *x, int n, int axis);
/* joined along a new axis; equal shapes, dtype their join */
TG_API TgTensor *tg_stack(TgTensor *const *x, int n, int axis);
TG_API TgTensor *tg_diag(TgTensor *x); /* (n) -> (n, n), zero off the diagonal */
/* the diagonal as a new last axis; positive offsets lie above */
TG_API TgTensor *tg_diagonal(TgTensor *x, int64_t offset, int axis1, int axis2);
/* circular; axes NULL and n 1: of the flattened data */
TG_API TgTensor *tg_roll(TgTensor *x, int n, const int64_t *shifts, const int64_t *axes);
/* each element of the axis `times` times in place */
TG_API TgTensor *tg_repeat_interleave(TgTensor *x, int64_t times, int axis);
/* the axis counts windows, whose elements are a new last axis. TG_ERR_LIMIT: x has more than 14 axes */
TG_API TgTensor *tg_unfold(TgTensor *x, int axis, int64_t size, int64_t step);
/* n tensors (s_i) or () -> n tensors (s_0, .., s_n-1); xy: the first two axes swapped. */
TG_API TgStatus tg_meshgrid(TgTensor *const *x, int n, bool xy, TgTensor **out);
/* whole tensor repeated along the last n axes */
TG_API TgTensor *tg_repeat(TgTensor *x, int n, const int64_t *times);
/* Axes by name, as einops: "b (h w) c -> b c h w" with sizes for names that the shape does not tell:
 * TG_NAMED({"h", 8}), or NULL, 0. "1" is an axis of size 1, "..." any axes. TG_ERR_VALUE: the formula;
 * TG_ERR_SHAPE: an axis does not split so. */
TG_API TgTensor *tg_rearrange(TgTensor *x, const char *formula, const TgNamedSize *sizes, int n);
TG_API TgTensor *tg_tril(TgTensor *x, int64_t diagonal); /* zeroes above the diagonal of the last two axes */
TG_API TgTensor *tg_triu(TgTensor *x, int64_t diagonal); /* zeroes below it */

/* ---- elementwise, two tensors, broadcast, dtype joined. TG_ERR_SHAPE: shapes do not broadcast. */
TG_API TgTensor *tg_add(TgTensor *a, TgTensor *b);      /* on bool: or */
TG_API TgTensor *tg_sub(TgTensor *a, TgTensor *b);      /* TG_ERR_DTYPE on two bools */
TG_API TgTensor *tg_mul(TgTensor *a, TgTensor *b);      /* on bool: and */
TG_API TgTensor *tg_div(TgTensor *a, TgTensor *b);      /* integers are made f32 first */
TG_API TgTensor *tg_floordiv(TgTensor *a, TgTensor *b); /* toward minus infinity; integers by 0: 0 */
TG_API TgTensor *tg_mod(TgTensor *a, TgTensor *b);      /* sign of b; integers by 0: a; floats as tg_fmod */
/* Integers wrap; to a negative power they are 0, but 1 and -1 (an exponent is not looked at when the graph is
 * built). Gradients at special values: tests/unit/test_special.c says where they are not PyTorch's. */
TG_API TgTensor *tg_pow(TgTensor *a, TgTensor *b);
/* NaN if either is; equal values share the gradient; of 0 and -0 either */
TG_API TgTensor *tg_maximum(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_minimum(TgTensor *a, TgTensor *b);
TG_API TgTensor *tg_lt(TgTensor *a, TgTensor *b);     /* comparisons give bool; with NaN only tg_ne is true */
TG_API TgTensor *tg_gt(TgTensor *a, TgTensor *b);     /* a > b */
TG_API TgTensor *tg_le(TgTensor *a, TgTensor *b);     /* a <= b */
TG_API TgTensor *tg_ge(TgTensor *a, TgTensor *b);     /* a >= b */
TG_API TgTensor *tg_eq(TgTensor *a, TgTensor *b);     /* a == b */
TG_API TgTensor *tg_ne(TgTensor *a, TgTensor *b);     /* a != b */
TG_API TgTensor *tg_bitand(TgTensor *a, TgTensor *b); /* bool and integers; TG_ERR_DTYPE on floats */
TG_API TgTensor *tg_bitor(TgTensor *a, TgTensor *b);  /* as tg_bitand */
TG_API TgTensor *tg_bitxor(TgTensor *a, TgTensor *b); /* as tg_bitand */
TG_API TgTensor *tg_shl(TgTensor *a, TgTensor *b);    /* a's bits moved up by b places; integers */
TG_API TgTensor *tg_shr(TgTensor *a, TgTensor *b);    /* a's bits moved down by b places; integers */
TG_API TgTensor *tg_truncdiv(TgTensor *a, TgTensor *b); /* toward zero; integers by 0: 0 */
/* sign of a; integers by 0: a. Floats: exact, NaN where |a/b| >= 2^69 (f64: 2^150) */
TG_API TgTensor *tg_fmod(TgTensor *a, TgTensor *b);
/* log(e^a + e^b), float, without overflow; of two equal infinities: that */
TG_API TgTensor *tg_logaddexp(TgTensor *a, TgTensor *b);
/* magnitude of x, sign bit of sign (-0.0 and NaN have one); float; gradient 0 at 0 */
TG_API TgTensor *tg_copysign(TgTensor *x, TgTensor *sign);
/* the angle of (x, y), -pi .. pi, float; IEEE at zeros and infinities */
TG_API TgTensor *tg_atan2(TgTensor *y, TgTensor *x);
/* x + (end - x) weight, broadcast. u8 with a float weight: the weight is rounded to 1/128 and the result to
 * nearest, in u8. */
TG_API TgTensor *tg_lerp(TgTensor *x, TgTensor *end, TgTensor *weight);
/* [options] .rtol (1e-5) .atol (1e-8) .exact (take them as given, 0 too) .equal_nan. Bool: |a - b| <= atol +
 * rtol |b|, or equal. TG_ERR_VALUE: a negative tolerance. allclose: all of them, shape (). */
TG_API TgTensor *tg_isclose_opt(TgTensor *a, TgTensor *b, const TgCloseOptions *o);
TG_API TgTensor *tg_allclose_opt(TgTensor *a, TgTensor *b, const TgCloseOptions *o);
/* threefry2x32, 20 rounds, on u64 tensors; TG_ERR_DTYPE otherwise */
TG_API TgTensor *tg_threefry(TgTensor *counter, TgTensor *key);
/* Words of four bytes, i32: byte i of x, 0 .. 255, times byte i of y, -128 .. 127, added up; broadcast. Of
 * tensors of bytes, tg_bitcast makes words. No gradient. TG_ERR_DTYPE: not i32. One instruction on an x86-64
 * with AVX-512 VNNI. */
TG_API TgTensor *tg_dot4(TgTensor *x, TgTensor *y);
/* Words of two numbers of 16 bits with signs, i32: bits 0 .. 15 of x times those of y, and bits 16 .. 31
 * times those of y, added up, as 32 bits hold it; broadcast. No gradient. TG_ERR_DTYPE: not i32. One
 * instruction on an x86-64 with AVX2. */
TG_API TgTensor *tg_dot2(TgTensor *x, TgTensor *y);
/* Words of four bytes, i32: each byte is that of the table's 16 which its low four bits choose. No gradient.
 * TG_ERR_DTYPE: not i32, or no table. One instruction on x86-64 and arm64, for a vector of words. */
TG_API TgTensor *tg_lookup4(TgTensor *x, const uint8_t *table);
TG_API TgTensor *tg_usum(TgTensor *const *x, int n);  /* x[0] + x[1] + ..; on bool: or */
TG_API TgTensor *tg_uprod(TgTensor *const *x, int n); /* x[0] * x[1] * ..; on bool: and */
/* c ? a : b, all broadcast; c must be bool (TG_ERR_DTYPE). Nothing of the branch not taken reaches the result
 * or its gradient. */
TG_API TgTensor *tg_where(TgTensor *c, TgTensor *a, TgTensor *b);

/* ---- a tensor and a scalar. The result has x's shape, and the dtype that x and the scalar's kind join to
 * (see above); comparisons give bool. Errors are those of the same function of two tensors: TG_ERR_DTYPE
 * where bits are asked of a float. */
TG_API TgTensor *tg_add_scalar(TgTensor *x, double v);  /* x + v */
TG_API TgTensor *tg_sub_scalar(TgTensor *x, double v);  /* x - v */
TG_API TgTensor *tg_rsub_scalar(TgTensor *x, double v); /* v - x */
TG_API TgTensor *tg_mul_scalar(TgTensor *x, double v);  /* x * v */
TG_API TgTensor *tg_div_scalar(TgTensor *x, double v);  /* x / v */
TG_API TgTensor *tg_rdiv_scalar(TgTensor *x, double v); /* v / x */
/* TG_ERR_VALUE: x an integer, v a negative whole number */
TG_API TgTensor *tg_pow_scalar(TgTensor *x, double v);
TG_API TgTensor *tg_maximum_scalar(TgTensor *x, double v);  /* the larger of x and v */
TG_API TgTensor *tg_minimum_scalar(TgTensor *x, double v);  /* the smaller one */
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
/* value where the bool mask (broadcast) is true */
TG_API TgTensor *tg_masked_fill(TgTensor *x, TgTensor *mask, double value);
/* Lower bound first, then upper, so hi wins where they cross; an infinite bound is none, as is one outside of
 * an integer x's dtype. NaN stays; gradient 1 inside and on the bounds. */
TG_API TgTensor *tg_clamp(TgTensor *x, double lo, double hi);
/* broadcast; one may be NULL, TG_ERR_VALUE if both are */
TG_API TgTensor *tg_clamp_tensor(TgTensor *x, TgTensor *lo, TgTensor *hi);

/* ---- elementwise, one tensor. The shape stays, and the dtype where nothing else is said. "float":
 * integers are made f32 first. Every value has a result, so where no error is named there is none but
 * TG_ERR_NOMEM. */
/* Defined for every value, the same on every device. Float to integer truncates toward zero and saturates,
 * NaN gives 0; integers wrap; to bool is
 * != 0 (NaN: true); to a float rounds once, to nearest, ties to even, past its largest value infinity
 * (fp8e4m3: NaN, it has no infinity). */
TG_API TgTensor *tg_cast(TgTensor *x, TgDType to);
TG_API TgTensor *tg_float(TgTensor *x);    /* casts: f32 */
TG_API TgTensor *tg_double(TgTensor *x);   /* f64 */
TG_API TgTensor *tg_half(TgTensor *x);     /* f16 */
TG_API TgTensor *tg_bfloat16(TgTensor *x); /* bf16 */
TG_API TgTensor *tg_int(TgTensor *x);      /* i32 */
TG_API TgTensor *tg_long(TgTensor *x);     /* i64 */
TG_API TgTensor *tg_short(TgTensor *x);    /* i16 */
TG_API TgTensor *tg_bool(TgTensor *x);     /* bool */
/* The same bytes as another dtype; no gradient. Where sizes differ the last axis is rescaled: u8 (2, 8) is
 * f32 (2, 2). A part of a file opened for reading that lies in one piece, at an address fit for `to`, is
 * looked at where it is; else parts are put together with shifts. A bool is a byte of 0 or 1; a byte other
 * than 0 is true. TG_ERR_SHAPE: the last axis holds no whole number of elements, or there is none. */
TG_API TgTensor *tg_bitcast(TgTensor *x, TgDType to);
TG_API TgTensor *tg_neg(TgTensor *x);         /* -x */
TG_API TgTensor *tg_logical_not(TgTensor *x); /* x == 0, bool */
TG_API TgTensor *tg_exp(TgTensor *x);         /* float */
TG_API TgTensor *tg_exp2(TgTensor *x);        /* float */
TG_API TgTensor *tg_log(TgTensor *x);         /* float */
TG_API TgTensor *tg_log2(TgTensor *x);        /* float */
TG_API TgTensor *tg_sin(TgTensor *x); /* float, as cos and tan; on the CPU within 1 ulp for every finite x */
TG_API TgTensor *tg_cos(TgTensor *x); /* as tg_sin */
TG_API TgTensor *tg_tan(TgTensor *x); /* as tg_sin */
/* float, as all that follow down to reciprocal; worst errors in f32: 4 ulp */
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
TG_API TgTensor *tg_abs(TgTensor *x);        /* 0 of -0; gradient 0 at both */
TG_API TgTensor *tg_sign(TgTensor *x);       /* -1, 0, 1; NaN stays; gradient 0 */
TG_API TgTensor *tg_trunc(TgTensor *x);      /* integers unchanged; gradient 0 */
TG_API TgTensor *tg_floor(TgTensor *x);      /* toward minus infinity; integers unchanged */
TG_API TgTensor *tg_ceil(TgTensor *x);       /* toward infinity; integers unchanged */
TG_API TgTensor *tg_round(TgTensor *x);      /* ties to even */
TG_API TgTensor *tg_isnan(TgTensor *x);    /* bool, as the next ones; on integers all false, isfinite true */
TG_API TgTensor *tg_isinf(TgTensor *x);    /* bool; either infinity */
TG_API TgTensor *tg_isposinf(TgTensor *x); /* bool; +inf */
TG_API TgTensor *tg_isneginf(TgTensor *x); /* bool; -inf */
TG_API TgTensor *tg_isfinite(TgTensor *x); /* bool; neither NaN nor an infinity */
TG_API TgTensor *tg_signbit(TgTensor *x);  /* bool; of -0.0 and NaN too, and of integers */
TG_API TgTensor *tg_bitnot(TgTensor *x);   /* every bit; on bool: not; TG_ERR_DTYPE on floats */
TG_API TgTensor *tg_relu(TgTensor *x);     /* NaN stays; gradient 0 at and below 0 */
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
TG_API TgTensor *tg_relu6(TgTensor *x);      /* min(max(x, 0), 6); gradient 0 at both */
/* x < 0 ? alpha (e^(x / alpha) - 1) : x; TG_ERR_VALUE: alpha is 0 */
TG_API TgTensor *tg_celu(TgTensor *x, double alpha);
TG_API TgTensor *tg_selu(TgTensor *x);        /* 1.0507 times tg_elu with alpha 1.6733 */
TG_API TgTensor *tg_logsigmoid(TgTensor *x);  /* log(sigmoid(x)) without overflow */
TG_API TgTensor *tg_hardsigmoid(TgTensor *x); /* x/6 + 1/2 within 0 .. 1 */
TG_API TgTensor *tg_hardswish(TgTensor *x);   /* x hardsigmoid(x) */
/* clamp whose gradient is 0 at the bounds; TG_ERR_VALUE: lo > hi */
TG_API TgTensor *tg_hardtanh(TgTensor *x, double lo, double hi);
TG_API TgTensor *tg_softsign(TgTensor *x); /* x / (1 + |x|) */
TG_API TgTensor *tg_mish(TgTensor *x);     /* x tanh(softplus(x)) */

/* ---- reductions [options] .axis = TG_AXES(..) (all) .keepdim .dtype (of the accumulator and the result
 * of sums, products and means). Reduced axes vanish unless .keepdim; the dtype is x's where nothing else is
 * said. TG_ERR_SHAPE: no such axis, or one named twice. */
/* i8 i16 bool: i32, u8 u16: u32; f16 bf16 fp8 add up in f32 */
TG_API TgTensor *tg_sum_opt(TgTensor *x, const TgReduceOptions *o);
/* x's dtype; f16 bf16 fp8 multiply in f32; gradient right with zeros */
TG_API TgTensor *tg_prod_opt(TgTensor *x, const TgReduceOptions *o);
/* NaN if any is; equal maxima share the gradient */
TG_API TgTensor *tg_max_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_min_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_mean_opt(TgTensor *x, const TgReduceOptions *o); /* integers give f32 */
TG_API TgTensor *tg_any_opt(TgTensor *x, const TgReduceOptions *o);  /* bool */
TG_API TgTensor *tg_all_opt(TgTensor *x, const TgReduceOptions *o);  /* bool */
/* At most one axis (none: of the flattened tensor); i32, the first winner; a NaN wins. */
TG_API TgTensor *tg_argmax_opt(TgTensor *x, const TgReduceOptions *o);
TG_API TgTensor *tg_argmin_opt(TgTensor *x, const TgReduceOptions *o);
/* [options] .axis .keepdim .correction (1) .biased (correction 0). NaN where correction is the number
 * of elements, or more. */
TG_API TgTensor *tg_var_opt(TgTensor *x, const TgVarOptions *o);
TG_API TgTensor *tg_std_opt(TgTensor *x, const TgVarOptions *o);
/* the variance; *mean: the mean */
TG_API TgTensor *tg_var_mean_opt(TgTensor *x, TgTensor **mean, const TgVarOptions *o);
TG_API TgTensor *tg_std_mean_opt(TgTensor *x, TgTensor **mean, const TgVarOptions *o);
/* [options] .axis (1) .p (2; INFINITY, -INFINITY: the largest, the least) .zero (p = 0: how many are not 0)
 * .eps (1e-12). x / max(its p-norm along axis, eps), float. */
TG_API TgTensor *tg_normalize_opt(TgTensor *x, const TgNormalizeOptions *o);
/* [options] .axis (-1; of logsumexp all), which logsumexp reduces (.keepdim); the others keep the shape.
 * Float; .dtype of the result (softmax kinds): converted once the maximum is off. An axis of size 0 is fine.
 */
TG_API TgTensor *tg_softmax_opt(TgTensor *x, const TgAxisOptions *o);
TG_API TgTensor *tg_softmin_opt(TgTensor *x, const TgAxisOptions *o); /* softmax of -x */
TG_API TgTensor *tg_log_softmax_opt(TgTensor *x, const TgAxisOptions *o);
TG_API TgTensor *tg_logsumexp_opt(TgTensor *x, const TgAxisOptions *o);

/* ---- along an axis: running reductions, order. x keeps its shape; a 0-d tensor has axis 0. TG_ERR_SHAPE: no
 * such axis. Where a function also gives places, `indices` (NULL: not wanted) receives a tensor of their
 * shape: i32, i64 where the axis is longer. */
TG_API TgTensor *tg_cumsum(TgTensor *x, int axis);  /* dtype as tg_sum, but a float keeps its own */
TG_API TgTensor *tg_cumprod(TgTensor *x, int axis); /* x's dtype; gradient right with zeros */
/* NaN stays once met; indices: where each was first met */
TG_API TgTensor *tg_cummax(TgTensor *x, int axis, TgTensor **indices);
TG_API TgTensor *tg_cummin(TgTensor *x, int axis, TgTensor **indices);
/* log of the running sum of exponentials, without overflow; float */
TG_API TgTensor *tg_logcumsumexp(TgTensor *x, int axis);
/* [options] .axis (-1) .descending. Stable; NaN counts as the largest value, -0 equals 0. Gradients flow to
 * where values came from. */
TG_API TgTensor *tg_sort_opt(TgTensor *x, TgTensor **indices, const TgSortOptions *o);
TG_API TgTensor *tg_argsort_opt(TgTensor *x, const TgSortOptions *o);
/* [options] .axis (-1) .smallest .unsorted (in any order). The k largest, equal ones by lower index.
 * TG_ERR_VALUE: k is not in 0 .. size. */
TG_API TgTensor *tg_topk_opt(TgTensor *x, int64_t k, TgTensor **indices, const TgTopkOptions *o);

/* ---- products. Dtypes of operands are joined. TG_ERR_SHAPE: sizes that do not go together, with both
 * shapes; TG_ERR_DTYPE: an operand or .dtype that it does not take; TG_ERR_VALUE: an option that cannot
 * be. */
/* [options] .dtype: of operands, accumulator and result (default: the operands' join; products and sums of
 * narrow integers and floats are then made in i32, u32 or f32, and cast back at the end: integers wrap). a
 * (.., m, k) by b (.., k, n) -> (.., m, n); 1-D operands are a row or a column whose axis vanishes; leading
 * axes broadcast. TG_ERR_SHAPE: inner sizes differ or an operand is 0-d. tg_dot is another name. */
TG_API TgTensor *tg_matmul_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *o);
TG_API TgTensor *tg_dot_opt(TgTensor *a, TgTensor *b, const TgMatmulOptions *o);
/* [options] .dtype (of the accumulator and the result). "ij,jk->ik" of n tensors: each letter names an axis,
 * "..." axes that broadcast, spaces do not count. Letters not in the result are summed over; a letter twice
 * in an operand takes the diagonal; without "->" the result has "..." and the letters that stand once,
 * sorted. TG_ERR_VALUE: the formula; TG_ERR_SHAPE: sizes that differ. tg_einsum("ij,jk", TG_TENSORS(a, b)) */
TG_API TgTensor *tg_einsum_opt(const char *formula, TgTensor *const *x, int n, const TgDTypeOptions *o);
/* x (.., in) by weight (out, in), bias (out) or NULL -> (.., out): x @ weight^T + bias, torch's layout. */
TG_API TgTensor *tg_linear(TgTensor *x, TgTensor *weight, TgTensor *bias);
/* A (.., m, n) = Q (.., m, m) R (.., m, n), Q orthogonal, R upper triangular (Householder). Integers are made
 * f32. TG_ERR_SHAPE: rank below 2. */
TG_API TgStatus tg_qr(TgTensor *a, TgTensor **q, TgTensor **r);
/* [options] .full_matrices (u (.., m, m) and vt (.., n, n) instead of (.., m, k) and (.., k, n), k = min(m,
 * n)). A = u diag(s) vt, s (.., k) descending, by Jacobi rotations: a graph of about 10 k steps, for small
 * matrices. u and v are orthonormal also where s is 0. */
TG_API TgStatus tg_svd_opt(TgTensor *a, TgTensor **u, TgTensor **s, TgTensor **vt, const TgSvdOptions *o);
/* `steps` times X <- c0 X + (c1 A + c2 A^2) X, A = X X^T, from x / (its norm + eps (0: 1e-7)): x (.., m, n)
 * made nearly orthogonal. */
TG_API TgTensor *tg_newton_schulz(TgTensor *x, int steps, const double coefficients[3], double eps);
/* [options] .bias (cout) .groups (1) .stride (1) .dilation (1) .padding (0; negative crops) .dtype (as
 * tg_matmul's; by default narrow integers stay i32 or u32). One to TG_MAX_SPATIAL axes s: x (b, cin, s..),
 * weight (cout, cin/groups, k..) -> (b, cout, o..), o = (s + pads - dilation (k - 1) - 1) / stride + 1. */
TG_API TgTensor *tg_conv2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *o);
/* [options] as tg_conv2d, and .output_padding (0; less than stride or dilation). weight (cin, cout/groups,
 * k..) -> (b, cout, o..), o = (s - 1) stride - pads + dilation (k - 1) + 1 + output_padding. An infinite
 * weight may meet the zeros around x, which gives NaN. */
TG_API TgTensor *tg_conv_transpose2d_opt(TgTensor *x, TgTensor *weight, const TgConvOptions *o);
/* [options] .axes (of the last ones of x: as many as .kernel has sizes if it has several, else 2; one size
 * stands for all of them) .kernel (2) .stride (kernel) .dilation
 * (1) .padding (0) .ceil_mode (a last window that is cut off counts too, unless it begins in the padding)
 * .exclude_pad (average over real elements) .indices (max: i32, the flat place of the first largest in the
 * unpadded block, torch's; 2147483647, which max_unpool2d skips, for a window of padding alone). x (.., s..).
 * Integers: max keeps the dtype, avg gives f32. */
TG_API TgTensor *tg_max_pool2d_opt(TgTensor *x, const TgPoolOptions *o);
TG_API TgTensor *tg_avg_pool2d_opt(TgTensor *x, const TgPoolOptions *o);

/* [options] .mode (linear; TG_NEAREST, TG_NEAREST_EXACT) .align_corners (linear only: the corner elements
 * stay, torch's). The last n axes resized to size, axis by axis; computed in f32 or f64, dtype kept.
 * TG_ERR_VALUE: the mode; TG_ERR_SHAPE: an empty axis, or more sizes than axes. */
TG_API TgTensor *tg_interpolate_opt(TgTensor *x, int n, const int64_t *size, const TgInterpolateOptions *o);
/* [options] as the pool's, .output_size (of the pooled axes; default (s - 1) stride - pads + kernel). x and
 * its i32 indices, both (.., s..), as max_pool2d with .indices gave them: each value at its place in a grid
 * of zeros; values at one place are added. */
TG_API TgTensor *tg_max_unpool2d_opt(TgTensor *x, TgTensor *indices, const TgPoolOptions *o);
/* Keccak (FIPS 202) of the bytes along the last axis: u8 (.., digest). name: sha3_224 _256 _384 _512,
 * shake_128 (16 bytes), shake_256 (32), or "RATE,DOMAIN" in bytes, whose digest has (200 - RATE) / 2. Not in
 * a captured function. TG_ERR_VALUE: another name; TG_ERR_SHAPE: no bytes; TG_ERR_LIMIT: a message of more
 * than 512 blocks. */
TG_API TgTensor *tg_keccak(TgTensor *x, const char *name);
/* u8 (16): 16 bytes that stand for all of x's: shake_128 of each 4 KiB, of each 256 of those, and so on;
 * the last piece of a mebibyte is filled up with zeros. */
TG_API TgTensor *tg_hash(TgTensor *x);
/* x through n functions in order; shape and dtype are what the last one gives. */
TG_API TgTensor *tg_sequential(TgTensor *x, TgTensor *(*const *layers)(TgTensor *x), int n);

/* ---- losses [options] .reduction (TG_MEAN, else TG_SUM, TG_NONE). The result is a float, of shape () unless
 * the reduction is TG_NONE: then an element for each that there is a loss of. TG_ERR_VALUE: another
 * reduction; TG_ERR_SHAPE: shapes that do not go together. */
/* [options] .axis (-1, the classes; PyTorch's layout of images is .axis = TG_AXES(1)) .label_smoothing
 * (within 0 .. 1). target: probabilities of the logits' shape, or labels as for sparse_cross_entropy. Mean
 * over the batch. */
TG_API TgTensor *tg_cross_entropy_opt(TgTensor *logits, TgTensor *target, const TgLossOptions *o);
/* [options] .axis (-1) .label_smoothing .weight (of each class) .ignore .ignore_index (0, if .ignore: labels
 * that count for nothing). labels: integers of the logits' shape without the classes; one outside them adds
 * 0. The mean is over the weights of the labels, which are 1 without .weight: NaN where all are ignored. */
TG_API TgTensor *tg_sparse_cross_entropy_opt(TgTensor *logits, TgTensor *labels, const TgLossOptions *o);
/* the same, of log probabilities */
TG_API TgTensor *tg_nll_opt(TgTensor *log_probs, TgTensor *labels, const TgLossOptions *o);
/* the mean of (x - target)^2, x and target broadcast */
TG_API TgTensor *tg_mse_opt(TgTensor *x, TgTensor *target, const TgLossOptions *o);
/* -(target log(prob) + (1 - target) log(1 - prob)), prob within 0 .. 1 */
TG_API TgTensor *tg_binary_cross_entropy_opt(TgTensor *prob, TgTensor *target, const TgLossOptions *o);
/* [options] .weight (of the positive term, broadcast). Stable for any finite logits. */
TG_API TgTensor *tg_binary_cross_entropy_logits_opt(TgTensor *logits, TgTensor *target,
                                                    const TgLossOptions *o);

/* ---- neural-network functions. The dtype is x's where nothing else is said, and so is the shape of norms
 * and of dropout. TG_ERR_SHAPE: shapes that do not go together; TG_ERR_DTYPE: an index that is no integer,
 * a mask that is not bool, and where a float is needed what is none; TG_ERR_VALUE: an option that cannot
 * be. */
/* integers (..) -> i32 (.., classes); outside: all zeros */
TG_API TgTensor *tg_one_hot(TgTensor *labels, int64_t classes);
/* x (.., n, ..), index integers of the same rank: out[..i..] = x[..index[..i..]..] along axis; out of range
 * gives 0. */
TG_API TgTensor *tg_gather(TgTensor *x, int axis, TgTensor *index);
/* rows: x (n, ..), index (i..) -> (i.., ..); out of range: 0 */
TG_API TgTensor *tg_take(TgTensor *x, TgTensor *index);
TG_API TgTensor *tg_embedding(TgTensor *weight, TgTensor *index); /* the same as tg_take */
/* [options] .reduce (TG_SCATTER_SET; _ADD, _MULTIPLY). x with r[..index[..i..]..] = src[..i..] along axis, in
 * row-major order: the last one wins. src has x's dtype and at least index's shape; index is no longer than x
 * on the other axes. Places outside are skipped. */
TG_API TgTensor *tg_scatter_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src,
                                const TgScatterOptions *o);
/* [options] .exclude_self: x's own value does not count where something is written. how: ADD (dtype as
 * tg_sum), MULTIPLY, MEAN (float), AMAX, AMIN (NaN if any is). */
TG_API TgTensor *tg_scatter_reduce_opt(TgTensor *x, int axis, TgTensor *index, TgTensor *src,
                                       TgScatterReduce how, const TgScatterOptions *o);
/* [options] .fixed .size_given .fill_value. Elements of x where mask (bool, broadcast to x) holds -> (count);
 * and where x is not 0, as i32 coordinates (count, rank). The count is computed and read back, unless .fixed:
 * then size_given elements, cut or filled up. */
TG_API TgTensor *tg_masked_select_opt(TgTensor *x, TgTensor *mask, const TgSelectOptions *o);
TG_API TgTensor *tg_nonzero_opt(TgTensor *x, const TgSelectOptions *o);
/* [options] .weight .bias (of the trailing axes' shape) .dims (weight's rank, else 1: trailing axes) .eps
 * (1e-5). */
TG_API TgTensor *tg_layer_norm_opt(TgTensor *x, const TgNormOptions *o);
TG_API TgTensor *tg_rms_norm_opt(TgTensor *x, const TgNormOptions *o);
/* [options] .weight .bias (c) .eps (1e-5). x (b, c, ..), statistics (c) as given: inference. */
TG_API TgTensor *tg_batch_norm_opt(TgTensor *x, TgTensor *mean, TgTensor *var, const TgNormOptions *o);
/* [options] Normalises by the batch's own statistics and moves running_mean and running_var (c) by .momentum
 * (0.1) toward them, in place: they are computed with the next tg_realize of an assigned tensor (an optimiser
 * step), or when read. NULL: none are kept. */
TG_API TgTensor *tg_batch_norm_train_opt(TgTensor *x, TgTensor *running_mean, TgTensor *running_var,
                                         const TgNormOptions *o);
/* when training: zeroes with chance p, scales by 1/(1-p) */
TG_API TgTensor *tg_dropout(TgTensor *x, double p);
/* [options] .mask (bool, broadcast: true may attend; float: added) .causal (and: key j for query i if j <= i)
 * .grouped (the axis before the last two of q is a multiple of k's and v's, whose heads are shared) .scale
 * (1/sqrt(d)) .dropout (when training). q (.., l, d), k (.., s, d), v (.., s, e) ->
 * (.., l, e). Scores and sums in f32 or wider. Where a mask is false nothing of k and v is seen, be it NaN,
 * but by the gradient of q, which multiplies by k; a row that sees nothing is 0. */
TG_API TgTensor *tg_scaled_dot_product_attention_opt(TgTensor *q, TgTensor *k, TgTensor *v,
                                                     const TgAttentionOptions *o);

/* ---- gradients. A gradient has the shape and dtype of its tensor, which is a float: TG_ERR_DTYPE otherwise.
 * TG_ERR_SHAPE: a gradient of another shape; TG_ERR_VALUE: tensors of two contexts, or too many of them. */
/* tg_backward will reach t, which gets memory of its own; returns t */
TG_API TgTensor *tg_requires_grad(TgTensor *t, bool on);
TG_API bool tg_is_parameter(const TgTensor *t); /* whether it requires a gradient */
TG_API TgTensor *tg_detach(TgTensor *x);        /* same values; no gradient flows through */
/* [options] .gradient (of the loss's shape: what the loss itself is given, for a loss of more than one
 * element). Adds the gradient of a scalar float loss to tg_grad of each tensor with requires_grad that it
 * depends on. The gradients are lazy tensors of the innermost scope and vanish with it. The loss is computed
 * with the next in-place update, before it. TG_ERR_SHAPE: the loss has more than one element; TG_ERR_DTYPE:
 * it is not a float. */
TG_API TgStatus tg_backward_opt(TgTensor *loss, const TgGradientOptions *o);
TG_API TgTensor *tg_grad(const TgTensor *t); /* NULL if there is none, which is no error */
TG_API void tg_zero_grad(TgTensor *t);       /* drops the gradient */
/* Gradients of a scalar loss for n float targets, any tensors of its graph: out[i] of targets[i]'s shape,
 * zeros where it does not depend. A gradient is a graph like any other and can be differentiated again. What
 * an in-place update wrote is numbers once the update has run: no gradient goes through it then. */
TG_API TgStatus tg_gradient(TgTensor *loss, TgTensor *const *targets, int n, TgTensor **out);
/* The same for y of any shape, given its own gradient g, of y's shape: out[i] = the sum over y of g
 * dy/dtargets[i]. */
TG_API TgStatus tg_vjp(TgTensor *y, TgTensor *g, TgTensor *const *targets, int n, TgTensor **out);
/* y with a gradient of the user's making: when the gradient g of y is known, fn(g, y, x, n, out, user) sets
 * out[i] to the gradient of x[i], of its shape, or leaves NULL where none flows; the graph that y was
 * computed by gets none. fn runs within tg_gradient and tg_backward, may build tensors, not realize them. y
 * itself may be among x (a straight-through function). */
TG_API TgTensor *tg_custom_gradient(TgTensor *y, TgTensor *const *x, int n, TgGradientFn fn, void *user);
/* x; the gradient that comes to it is kept in memory of its own */
TG_API TgTensor *tg_contiguous_backward(TgTensor *x);

/* ---- in place and actions
 * What aliases what. A tensor is memory, or an expression. It is memory from the start if it is made of data
 * (tg_from, tg_borrow, tg_from_file, tg_empty), by tg_clone or as the output of a captured function; an
 * expression becomes memory of its own when it is realized, read or assigned to, however it was made. What
 * movements alone give of memory (reshape, permute, expand, shrink, flip, slices with any step, detach) is a
 * view of it: all views of a memory, and the tensor itself, see every write through any of them, from the
 * call that makes it. All else is a value: that of the moment when it was built, as if everything were
 * computed at once, whatever is written or replayed meanwhile; so are a bitcast, a view of an expression that
 * was not yet memory, and two tensors of equal expressions, which never share memory. A function whose result
 * is a tensor gives a handle of its own, also where there is nothing to do (a cast to the same dtype, a roll
 * by 0), unless it says that it returns its argument. A tensor that depends on a variable stays an
 * expression. Where a write would change what a live tensor still needs, the old contents are copied first:
 * end the scope of tensors that you do not need, or capture the function, to save that. Shape and dtype of a
 * tensor stay when it is written to. TG_ERR_SHAPE: a value that does not broadcast to it; TG_ERR_VALUE: of
 * another context. */
/* value, broadcast, written to t's memory. Waits until something reads that memory, writes to it again or
 * realizes t. dtypes must be equal (TG_ERR_DTYPE). TG_ERR_STATE: t is a view that tg_expand is in, so that
 * several elements are one place, or a file opened for reading. No gradient goes on through what is written to
 * a tensor that requires one. Returns t. */
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
/* A copy in memory of its own, once computed; requires a gradient if x does, and has a copy of x's. */
TG_API TgTensor *tg_clone(TgTensor *x);
/* a view of x if it belongs to ctx, else its values now as a tensor of ctx */
TG_API TgTensor *tg_to_context(TgTensor *x, TgContext *ctx);
/* t becomes another handle of x's graph; equal shapes, the dtype may change. Returns t */
TG_API TgTensor *tg_replace(TgTensor *t, TgTensor *x);
/* value, broadcast, written to x[..] (see tg_getitem): to x's memory, as tg_assign; where x is an expression,
 * x becomes another one and gradients flow to both. The last of several writes to a place wins; a number in
 * an index tensor that is outside is skipped. Returns x. Errors as tg_getitem, and TG_ERR_DTYPE: value has
 * another dtype. */
TG_API TgTensor *tg_setitem(TgTensor *x, const TgIndex *index, int n, TgTensor *value);
TG_API TgTensor *tg_setitem_scalar(TgTensor *x, const TgIndex *index, int n, double value);
/* [options] .accumulate (add instead of replacing). x with value at x[..], as a new tensor; x stays.
 * Differentiable by both. */
TG_API TgTensor *tg_index_put_opt(TgTensor *x, const TgIndex *index, int n, TgTensor *value,
                                  const TgIndexPutOptions *o);
/* a part of t */
TG_API TgTensor *tg_assign_slice(TgTensor *t, const int64_t *begin, const int64_t *end, TgTensor *value);
TG_API TgTensor *tg_contiguous(TgTensor *x); /* kept in memory of its own when computed */
TG_API TgStatus tg_realize(TgTensor *t);     /* computes t */
/* computes all in one schedule; NULL entries are errors */
TG_API TgStatus tg_realize_many(TgTensor *const *t, size_t n);
/* Computes t and copies its elements, row-major, to out; nbytes must be tg_nbytes(t) (TG_ERR_VALUE). */
TG_API TgStatus tg_read(TgTensor *t, void *out, size_t nbytes);
/* any dtype, converted; n must be tg_numel(t) */
TG_API TgStatus tg_read_f64(TgTensor *t, double *out, size_t n);
/* Computes t; where its row-major elements stand, on devices that use the host's memory (TG_ERR_DEVICE
 * elsewhere). To be read only, until t ends or its memory is assigned to. NULL: an error. */
TG_API const void *tg_map(TgTensor *t);
/* Computes t; its elements as nested lists, "[[1.0, 2.5], [nan, inf]]", floats with the fewest digits that
 * give the value back; tg_from_text reads it. Valid until the next call with a tensor of the context. NULL:
 * an error. */
TG_API const char *tg_to_text(TgTensor *t);
/* the one element; NaN and TG_ERR_SHAPE if there is not exactly one */
TG_API double tg_item_f64(TgTensor *t);
TG_API int64_t tg_item_i64(TgTensor *t); /* the same as an integer; 0 on error */

/* ---- captured functions. fn(ctx, in, nin, out, nout, user) builds out[] from in[] and may assign to tensors
 * that it knows (weights, a cache); out[] is computed when it returns. tg_jit_run calls it the first time,
 * calls it once more and captures what runs, and from the third time on replays that: no graph is built,
 * nothing is scheduled. What fn reads and did not make is state, as a weight is, and what it assigns to: what
 * is assigned to it counts from the next run on. An expression that was made before keeps its value. fn is
 * called and captured again where the memory that such an expression was made of is assigned to; where a
 * tensor that it reads is replaced (tg_replace, tg_load_state); and where tg_training is another one than in
 * the run before, or which of the tensors that it reads require a gradient. Random numbers that fn uses go on
 * as if it were called; variables, in shapes and in what fn reads, take the values they are bound to. */
/* Copies that kernels make of memories that fn never assigns to, as weights laid out for a matrix product, are
 * made at the first replay and kept, at most 1.25 times the bytes of what they are made of: tg_setting PREPACK
 * 0, when tg_jit is called, keeps none. It lives until tg_jit_free, or tg_close. NULL: TG_ERR_NOMEM, or no
 * function. */
TG_API TgJit *tg_jit(TgContext *ctx, TgJitFn fn, void *user);
/* in: any tensors of fn's shapes and dtypes, each in memory of its own; out: nout tensors of the innermost
 * scope, in memory of their own that no later run touches. What fn assigns to is written when a run returns,
 * whether an output depends on it or not; an input that it assigns to must be a whole tensor in memory
 * (TG_ERR_VALUE), which it knows by no other handle. Handles that fn makes belong to that scope too; gradients
 * that fn leaves in tg_grad are those of the captured run. A symbolic size of an input or output is what
 * its variables are bound to when it runs. Such an input has the same expression of them each time, as
 * tg_slice(x, 0, 0, tg_size(n)); such an output has room for the most, and the sizes that are bound when it
 * is read. TG_ERR_SHAPE: one of those is on several devices. From the capture on: TG_ERR_SHAPE,
 * TG_ERR_DTYPE, TG_ERR_VALUE: another number of tensors, shape or dtype than captured, or one tensor given
 * twice. In the capture itself TG_ERR_STATE: fn reads a value, makes a tensor from data (it would be the
 * same at every replay: give it as an input), or runs a captured function. After an error in fn the next
 * run captures anew. */
TG_API TgStatus tg_jit_run(TgJit *jit, TgTensor *const *in, int nin, TgTensor **out, int nout);
TG_API TgContext *tg_jit_context(const TgJit *jit); /* NULL: jit is NULL */
/* Forgets the capture: the next run is the first. One that was loaded stays as it is. */
TG_API void tg_jit_reset(TgJit *jit);
TG_API void tg_jit_free(TgJit *jit); /* NULL is fine */

/* ---- captured functions as text: what tg_jit_save and tg_jit_load (tg_io.h) keep in a file. The text tells
 * of inputs and outputs, of the memories that stay (weights, state) by name, and has the graph of each step
 * as it was before it was planned: whatever machine and device reads it plans and compiles it for itself. */
/* An input or output. Valid while the capture is, and until tg_jit_name. An input that is on several devices
 * (ndevice > 1) is given as tg_shard(x, ndevice, devices, axis, .bounds = bounds), or where axis is -1 as
 * tg_replicate(x, ndevice, devices). */
typedef struct TgJitValue {
  const char *name; /* "": it has none */
  TgDType dtype;
  int ndim;
  const int64_t *dims; /* some may be symbolic sizes, of variables that tg_jit_variable tells */
  int ndevice;
  const char *const *devices;
  int axis;
  const int64_t *bounds; /* NULL: it is not split */
} TgJitValue;

/* false: i is past the last, or nothing is captured yet */
TG_API bool tg_jit_input(const TgJit *jit, size_t i, TgJitValue *v);
TG_API bool tg_jit_output(const TgJit *jit, size_t i, TgJitValue *v);
/* Names of the captured inputs and outputs, as many as there are; NULL, or a NULL in a list: none. They hold
 * for this capture. TG_ERR_STATE: nothing is captured yet. */
TG_API TgStatus tg_jit_name(TgJit *jit, const char *const *inputs, const char *const *outputs);
/* names[i]: what the memory of tensors[i] is to be called, and that tensor's shape is its; memories without
 * are "memory.0" and so on. A tensor that is split has a memory for each part, "w.part0" .., one that is
 * whole on several devices has as many of that name, with the same values. What was loaded keeps its names.
 * Valid until the next call with a tensor of the context. NULL: TG_ERR_STATE, nothing is captured yet;
 * TG_ERR_DEVICE: an input or output is on DISK; TG_ERR_VALUE: two equal names. */
TG_API const char *tg_jit_to_text(TgJit *jit, const char *const *names, TgTensor *const *tensors, int n);
/* Variable i of the last text, or of what was loaded, where it is unbound and to be bound before a run. NULL:
 * past the last. */
TG_API TgVariable *tg_jit_variable(TgJit *jit, size_t i);
/* Memory i of the last text, or of what was loaded, as it is now: a tensor of the innermost scope that is
 * that memory, of its shape and dtype. What is assigned to it counts in the next run; once it is replaced, a
 * program that was loaded does not run (TG_ERR_STATE). name may be NULL. NULL: past the last, or
 * TG_ERR_NOMEM. */
TG_API TgTensor *tg_jit_memory(TgJit *jit, size_t i, const char **name);
/* The name of device i of the last text, or of what was loaded. NULL: past the last. */
TG_API const char *tg_jit_device(const TgJit *jit, size_t i);
/* A captured function of text: tg_jit_run replays it, on the context's default device, or, where the text
 * is of several, on the devices of the same names, which are opened. tensors[i] is the memory names[i]:
 * used where it is if the program does not write it and it may be (no copy of a model's file), else copied;
 * names that the text does not have are left alone. If the program draws, the context's random numbers go
 * on from where they were when the text was written; tg_manual_seed begins others. The text is not trusted:
 * no memory is read or written outside of its bounds. NULL: TG_ERR_VALUE, with the line: what is no such
 * text, of another version, or has no tensor of a name; TG_ERR_DTYPE, TG_ERR_SHAPE: a tensor unlike its
 * memory; TG_ERR_VALUE, TG_ERR_DEVICE: a device that is not there, or does not open. */
TG_API TgJit *tg_jit_from_text(TgContext *ctx, const char *text, const char *const *names,
                               TgTensor *const *tensors, int n);
/* The same on other devices: devices[i] instead of the i-th that the text names, or that its one device is,
 * ndevice of them, each once. TG_ERR_VALUE, with the text's devices: another number of them. */
TG_API TgJit *tg_jit_from_text_on(TgContext *ctx, const char *text, const char *const *devices, int ndevice,
                                  const char *const *names, TgTensor *const *tensors, int n);

/* ---- captured functions as C: a source of C99 without extensions, and its header, which need no library and
 * no allocation (docs/export.md). Kernels are planned for a machine of which nothing is known, whatever the
 * context's own device is; values are those of the moment. The header tells all that a caller must know. */
/* header, source: text. weights: what NAME_reset takes where weights are in a file, else NULL. Bytes:
 * arena_bytes of what a run needs between its kernels, of which arena_least live at once; state_bytes of
 * what it changes and keeps; weight_bytes of what it only reads; stack_bytes that it takes at most, of
 * portable text. operations: of floats and of data, of a run. plans: which of several plans this is, and the
 * bytes of arena and state that others need, with their estimated time beside the least. */
typedef struct TgCText {
  const char *header, *source;
  const void *weights;
  size_t weights_nbytes;
  int64_t arena_bytes, arena_least, state_bytes, weight_bytes, operations, stack_bytes;
  int kernels, launches;
  const char *plans;
} TgCText;

/* [options] .name: what the text's names begin with, an identifier ("model"). .header: the file that the
 * source includes (NAME.h). .names, .tensors, .count: names of memories, as of tg_jit_to_text. .own_math:
 * roots are computed by the text as well, so that it needs nothing of <math.h>. .weights_apart: no weights
 * in the text; .big_endian: numbers of their file begin with the high byte, for machines that do so. A
 * weight that no kernel reads as it lies has a packed copy in its place, NAME_packed, in the order in which
 * it is read; with the setting PREPACK 0 all are as the function has them.
 * .streamed: weights are apart, and a function of the host brings those of each kernel to the arena.
 * .threads: so many shares that kernels are split in (1 .. 1024; 1): a function of the host may run them at
 * the same time, the results are the same. .max_ram: of the plans whose arena and state are no more bytes
 * the fastest is taken (0: no bound). .same_bits: the first plan is taken, whatever memory it needs: for
 * "generic" that of INTERP:C99, whose bits the results are then. .target: a processor to plan for,
 * "generic" (the default), "native", "x86-64-v2", -v3, -v4, "armv8", "cortex-m4", "cortex-m7", "wasm32",
 * "wasm-simd". .vectors: "gnu": the source is GNU C with vectors, to be compiled with -std=gnu11
 * -ffp-contract=off and the flags that the header names; own_math has no meaning there. "none": C99. NULL:
 * as is usual for the target, vectors where the target has some, unless it is "generic". .linked: weights
 * are apart, and a symbol NAME_weights that is linked has them; NAME_reset takes none. The texts live
 * until the next call with this context. Errors: those of tg_jit_to_text; TG_ERR_VALUE: no such name, no
 * such target; TG_ERR_LIMIT: no choice fits .max_ram, with how much the least is more. */
TG_API TgStatus tg_jit_to_c_opt(TgJit *jit, TgCText *out, const TgCOptions *o);

/* ---- the compiler on text: graphs and programs in the form that TG_DUMP writes
 * [options] .pass: only this pass (default: all that is left to do); .from: an earlier pass to begin with.
 * After rangeify that needs the stages, and after the first pass of code generation what is known of the
 * kernel: TG_DUMP and .pass write both behind the graph, and tg alone reads them. .emit: "uops" (default:
 * text again), "costs" (of a kernel: each list of opts that is considered, and what it is estimated to cost;
 * with .opts that of this list), "c",
 * "cuda", "metal", "kind" (what the text is, "kernel graph of 12 nodes with 1 root"; nothing is compiled).
 * .opts: a list of opts instead of the heuristic's. A tensor graph is scheduled and its kernels compiled,
 * a kernel is compiled, a program is rendered. NULL: refused, tg_errmsg says why (line and column where it
 * is the text). The result lives until the next tg_opt of ctx. */
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

template <class T> struct TgList_ { /* what is given to TG_IDX and TG_TENSORS, alive for the whole call */
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

/* C++20: TG_WITH(TgOptimOptions, .eps = 0), a struct that knows what was written in it */
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
