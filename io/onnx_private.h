/* onnx_private.h: what the files of the ONNX reader share: the model as parsed, a run of it, and the
 * arguments of an operator. Names are resolved when the model is opened: from then on a value is a number,
 * and 0 is an input or output that is left out. */
#ifndef TG_ONNX_PRIVATE_H
#define TG_ONNX_PRIVATE_H
#include "io_private.h"
#include "tg_io.h"

enum {
  ONNX_OPSET_MIN = 7,
  ONNX_OPSET_MAX = 28,
  ONNX_DEPTH = 8,           /* the most levels of graphs within graphs */
  ONNX_CALLS = 24,          /* the most levels of functions that call functions */
  ONNX_NODES_MAX = 1 << 20, /* counting the body of each function once for each call */
  ITERATIONS_MOST = 100000,
  HOST_MAX = 1024,
  CONSTANTS_MAX = 1024,
  CONSTANT_BYTES = 1 << 16,
  ONNX_KNOWN_MOST = 1 << 16 /* the most numbers of a constant that are read for a run with integers alone */
};
typedef struct OnnxGraph OnnxGraph;

/* Integers of less than a byte. In files they are packed, the first one in the lowest bits; here each is a
 * byte, of dtype `as`. */
typedef struct OnnxNarrow {
  int type; /* its data_type */
  TgDType as;
  int bits;
  double lo, hi;
} OnnxNarrow;

const OnnxNarrow *onnx_narrow(int64_t data_type); /* NULL: this data_type is not one of them */

/* A tensor of the file. narrow: its data_type if that is narrower than a byte, otherwise 0. host: the same
 * tensor in the model's host context if it is small, otherwise NULL. */
typedef struct OnnxTensor {
  struct OnnxTensor *next;
  const char *name;
  TgTensor *main, *host;
  int narrow;
  double *numbers; /* tg_onnx_integers: its elements, if there are few */
} OnnxTensor;

typedef enum OnnxKind {
  ONNX_FLOAT = 1,
  ONNX_INT,
  ONNX_STRING,
  ONNX_TENSOR,
  ONNX_GRAPH,
  ONNX_FLOATS,
  ONNX_INTS,
  ONNX_STRINGS
} OnnxKind;

typedef struct OnnxAttr {
  const char *name, *s;
  int kind; /* an OnnxKind, or the file's number if that is none; 0: it has no value */
  double f;
  int64_t i;
  const int64_t *ints;
  const double *floats;
  const char *const *strings;
  size_t s_n, nints, nfloats, nstrings;
  OnnxTensor *t;
  OnnxGraph *g;
} OnnxAttr;
typedef struct OnnxCall OnnxCall;

typedef struct OnnxRun OnnxRun;
typedef struct OnnxNode OnnxNode;

/* The domain that an operator belongs to. A name with different meanings in the two domains is two
 * operators. */
typedef enum OnnxDomain { DOMAIN_ONNX, DOMAIN_MICROSOFT, DOMAIN_BOTH } OnnxDomain;

/* FORM_FOLD: a binary function over any number of inputs. */
typedef enum OnnxForm { FORM_CALL, FORM_UNARY, FORM_BINARY, FORM_FOLD, FORM_REDUCE, FORM_CONTROL } OnnxForm;

typedef struct OnnxOp {
  const char *name;

  union { /* by form */
    TgTensor *(*fn)(OnnxCall *c);
    TgTensor *(*unary)(TgTensor *x);
    TgTensor *(*binary)(TgTensor *a, TgTensor *b);
    TgTensor *(*reduce)(TgTensor *x, TgAxes a, bool keep);
    bool (*control)(OnnxRun *r, const OnnxNode *n); /* runs graphs, and gives all outputs their values */
  };

  int8_t since, min_in, max_in; /* max_in -1: any number */
  uint8_t form, domain;
  bool sized; /* it accepts inputs of symbolic sizes */
} OnnxOp;

#define ONNX_ROW(name, since, lo, hi, form, domain, sized, ...)                                              \
  { name, {__VA_ARGS__}, since, lo, hi, form, domain, sized }
#define ONNX_UNARY(name, f)  ONNX_ROW(name, 1, 1, 1, FORM_UNARY, DOMAIN_ONNX, true, .unary = f)
#define ONNX_BINARY(name, f) ONNX_ROW(name, 1, 2, 2, FORM_BINARY, DOMAIN_ONNX, true, .binary = f)
#define ONNX_FOLD(name, f)   ONNX_ROW(name, 1, 1, -1, FORM_FOLD, DOMAIN_ONNX, true, .binary = f)
#define ONNX_REDUCE(name, f) ONNX_ROW(name, 1, 1, 2, FORM_REDUCE, DOMAIN_ONNX, true, .reduce = f)
/* Rows for operators whose inputs may have symbolic sizes (SIZED), and for operators whose sizes must all
 * be numbers, so that they may use tg_dim. MICROSOFT: rows of com.microsoft. BOTH: rows of both domains,
 * where `since` is that of ai.onnx. */
#define ONNX_SIZED(name, since, lo, hi, f)                                                                   \
  ONNX_ROW(name, since, lo, hi, FORM_CALL, DOMAIN_ONNX, true, .fn = f)
#define ONNX_SIZED_MICROSOFT(name, lo, hi, f)                                                                \
  ONNX_ROW(name, 1, lo, hi, FORM_CALL, DOMAIN_MICROSOFT, true, .fn = f)
#define ONNX_SIZED_BOTH(name, since, lo, hi, f)                                                              \
  ONNX_ROW(name, since, lo, hi, FORM_CALL, DOMAIN_BOTH, true, .fn = f)
#define ONNX_SIZED_CONTROL(name, since, lo, hi, f)                                                           \
  ONNX_ROW(name, since, lo, hi, FORM_CONTROL, DOMAIN_ONNX, true, .control = f)
#define ONNX_OP(name, since, lo, hi, f) ONNX_ROW(name, since, lo, hi, FORM_CALL, DOMAIN_ONNX, false, .fn = f)
#define ONNX_MICROSOFT(name, lo, hi, f) ONNX_ROW(name, 1, lo, hi, FORM_CALL, DOMAIN_MICROSOFT, false, .fn = f)
#define ONNX_BOTH(name, since, lo, hi, f)                                                                    \
  ONNX_ROW(name, since, lo, hi, FORM_CALL, DOMAIN_BOTH, false, .fn = f)
#define ONNX_CONTROL(name, since, lo, hi, f)                                                                 \
  ONNX_ROW(name, since, lo, hi, FORM_CONTROL, DOMAIN_ONNX, false, .control = f)

struct OnnxNode {
  const char *name, *op, *domain;
  const char *label; /* what error messages call it: its name or, if it has none, a text that identifies it */
  size_t *in, *out;  /* values */
  int nin, nout, nattrs;
  OnnxAttr *attrs;
  const OnnxOp *def; /* NULL: the operator is unknown, or not in this opset */
  OnnxGraph *body;   /* if the node calls one of the model's own functions; otherwise NULL */
};

typedef struct OnnxIO {
  const char *name;
  TgDType dtype;
  int ndim;
  int64_t dims[TG_MAX_RANK];
  const char *dim_names[TG_MAX_RANK];
  size_t value;
  bool has_default;
  int narrow;
} OnnxIO;

struct OnnxGraph {
  OnnxGraph *parent;
  Index names;
  OnnxNode *nodes;
  OnnxIO *in, *out;
  OnnxTensor **init;
  size_t *init_value;
  size_t nnodes, nin, nout, ninit;
  struct OnnxGraph *next; /* all graphs of the model, which are freed through this list */
  const OnnxNode *caller; /* for the body of a function: the node whose attributes it takes; otherwise NULL */
  int opset;
};

/* A function of the model, as bytes: each call of it is parsed anew, with the attributes of the call.
 * nodes: the number of nodes that a call adds, including those of the functions that it calls; valid once
 * counted. */
typedef struct OnnxFunction {
  const char *name, *domain, *overload;
  uint64_t at, n;
  size_t nodes;
  bool counted;
} OnnxFunction;

/* A version of a domain's operators that the model states it uses. */
typedef struct OnnxImport {
  const char *domain;
  int64_t version;
} OnnxImport;

/* A file beside the model that holds tensors. */
typedef struct OnnxBeside {
  struct OnnxBeside *next;
  const char *name, *path;
  Source s;
} OnnxBeside;

/* a constant that constant_main made; bytes: its contents */
typedef struct OnnxConstant {
  struct OnnxConstant *next;
  TgTensor *t;
  size_t n;
  uint8_t bytes[];
} OnnxConstant;

struct TgOnnx {
  TgContext *ctx, *host; /* host: an interpreter in which shapes are computed as soon as they are known */
  Doc *doc;
  Source s;
  OnnxGraph *graph, *graphs;
  OnnxTensor *tensors;
  OnnxConstant *constants;
  int nconstants;
  OnnxFunction *functions;
  size_t nfunctions;
  OnnxImport *imports;
  size_t nimports;
  bool integers;    /* tg_onnx_integers */
  bool told_only;   /* the model is opened only to be described: unsupported operators are no error */
  const char *path; /* of the model; NULL: it was given as a tensor */
  OnnxBeside *beside;
  size_t nvalues, nnodes;
  /* of all loops of a run: the limit of tg_onnx_loop_limit; the number so far */
  int64_t most_iterations, iterations;
  int opset;                                        /* version of the domain "" */
  void (*seen)(const TgOnnxNode *node, void *user); /* tg_onnx_watch */
  void *seen_user;
};

/* ---- parsing (onnx_proto.c, onnx_tensor.c). false or NULL: an error, which is in the context */
bool onnx_parse(TgOnnx *m);
OnnxTensor *onnx_tensor_parse(TgOnnx *m, uint64_t at, uint64_t n);
TgDType onnx_dtype(int64_t data_type); /* TG_DTYPE_DEFAULT: we have no such dtype */
/* domain: "" or "ai.onnx", whose operators are those of `opset`, or "com.microsoft". NULL: no such
 * operator */
const OnnxOp *onnx_op_find(const char *domain, const char *name, int opset);
/* each list ends with a name of NULL */
extern const OnnxOp onnx_ops_math[], onnx_ops_shape[], onnx_ops_index[], onnx_ops_nn[], onnx_ops_rnn[],
    onnx_ops_attention[], onnx_ops_signal[], onnx_ops_control[], onnx_ops_grid[], onnx_ops_list[],
    onnx_ops_region[], onnx_ops_microsoft[];

/* ---- running */
typedef struct OnnxList OnnxList;
typedef struct OnnxScaled OnnxScaled;

/* A tensor, a list of values, or an optional value that is absent (none). left_out: an input of a function
 * that its caller did not pass. */
typedef struct OnnxVal {
  TgTensor *t, *moved;
  OnnxList *list;
  int narrow; /* as an OnnxTensor's */
  bool host, none, left_out;
  TgDType
      /* not 0: t, of i64 on the host, has symbolic sizes among its numbers (onnx_sizes.c); this is then
       * the value's dtype */
      sizes;
  const OnnxTensor *of; /* a tensor of the file, or NULL */
  /* onnx_integer.c: t has integers, and this says what numbers they represent; or NULL */
  const OnnxScaled *scaled;
} OnnxVal;

/* A list is never changed, because values share it. */
struct OnnxList {
  OnnxList *next; /* all lists of a run, which are freed through this list */
  size_t n;
  OnnxVal at[];
};

struct OnnxRun {
  TgOnnx *m;
  bool symbolic; /* an input has a symbolic size */
  OnnxVal *vals;
  OnnxList *lists;
  OnnxScaled *scaled; /* all of a run; the first member is the next one */
};

/* Whether an input has a symbolic size. A build without INTERP, which computes such sizes, accepts none. */
static inline bool has_symbolic(const OnnxRun *r) {
#ifdef TG_NO_INTERP
  return (void)r, false;
#else
  return r->symbolic;
#endif
}

OnnxList *list_new(OnnxRun *r, size_t n); /* onnx_list.c; NULL: an error */
/* of any kind; NULL: left out, or without a value */
OnnxVal *node_value(OnnxRun *r, const OnnxNode *n, int i);
bool value_number(OnnxRun *r, OnnxVal *v, double *out); /* reads the value now */
OnnxVal value_of_int(OnnxRun *r, int64_t v, TgDType d);

TgTensor *val_main(OnnxRun *r, OnnxVal *v); /* the value in the model's context */

struct OnnxCall {
  TgContext *ctx; /* the context in which the node is computed: the model's, or its host */
  OnnxRun *run;
  const OnnxNode *n;
  int opset, nin, nout;
  TgTensor **in, **out; /* in: in ctx; NULL if left out. fn returns out[0] and fills in the other outputs */
  OnnxVal **raw;        /* the inputs, in whichever context they are */
  bool *seen;           /* for each attribute: an operator has read it */
  int narrow;           /* of out[0], as in an OnnxTensor; fn sets it */
  uint8_t lists;        /* bit i: input i is a list that may contain symbolic sizes, and is i64 here */
  TgDType sizes;        /* not 0: the outputs may be such lists, of this dtype */
};

/* onnx_call.c. Whether the operator takes inputs of these dtypes; false: the error is recorded. */
bool onnx_types_fit(OnnxCall *c);
/* Records an error with the text, and returns NULL. */
TgTensor *call_fail(OnnxCall *c, TgStatus status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* NULL: the attribute is not given, or it is of another kind, which is recorded as an error. Attributes
 * that no operator reads are errors of the node. */
const OnnxAttr *call_attr(const OnnxCall *c, const char *name, OnnxKind kind);
/* marks an attribute that has no effect here, but may be given */
void attr_unused(const OnnxCall *c, const char *name);
int64_t attr_i(const OnnxCall *c, const char *name, int64_t otherwise);
double attr_f(const OnnxCall *c, const char *name, double otherwise);
const char *attr_s(const OnnxCall *c, const char *name, const char *otherwise);

TgTensor *as(TgTensor *t, TgDType d);

static inline TgTensor *input(const OnnxCall *c, int i) { return i < c->nin ? c->in[i] : NULL; }

typedef struct Ints {
  bool given;
  int n;
  int64_t v[4 * TG_MAX_RANK];
} Ints;

/* Reads numbers that are needed now: those of input i (computed and read), or of the attribute `name` (may
 * be NULL). !given: neither is there. Returns false on an error. */
bool call_ints(OnnxCall *c, int i, const char *name, Ints *out);

/* The same, but the numbers may include symbolic sizes. Compute with these only by tg_size_add and related
 * functions. */
bool call_sizes(OnnxCall *c, int i, const char *name, Ints *out);
/* Returns false, with an error, if v has symbolic sizes, so that its value cannot be read now. */
bool value_now(OnnxRun *r, const OnnxVal *v);

/* ---- symbolic sizes (onnx_sizes.c) */
typedef enum OnnxDone { DONE_NOT, DONE, DONE_ERROR } OnnxDone;

enum { ALL_LISTS = 255 }; /* for OnnxCall.lists: every input */

bool onnx_is_list(const OnnxCall *c, int i);
/* Handles a node of lists of sizes: either makes its outputs, or leaves it to be computed with these
 * numbers as data of the device. */
OnnxDone onnx_sizes_node(OnnxCall *c);
bool onnx_sizes_fit(OnnxCall *c); /* whether the operator accepts its inputs; false: the error is recorded */
TgTensor *onnx_sizes_main(OnnxRun *r, OnnxVal *v); /* puts such a list on the device */
/* clears v->sizes if all sizes are numbers; returns false on an error */
bool onnx_sizes_found(OnnxRun *r, OnnxVal *v);
/* y reshaped to the sizes of x, including symbolic ones */
TgTensor *shaped_as(TgTensor *y, TgTensor *x);
TgTensor *onnx_iota(TgContext *ctx, int64_t size);   /* 0, 1 .. size - 1, of i64 */
TgTensor *onnx_size_like(TgTensor *x, int64_t size); /* that number, of x's dtype */
/* x as a matrix: the axes before `axis` are its rows. */
TgTensor *onnx_matrix(TgTensor *x, int axis);
bool onnx_is_symbolic(OnnxCall *c, int64_t size); /* call it only if has_symbolic is true */
/* Writes tg_size_of of all axes of x to room, and returns room. */
const int64_t *sizes_in(const TgTensor *x, int64_t room[TG_MAX_RANK]);
bool outputs_made(OnnxCall *c, bool *small); /* onnx.c */
bool outputs_kept(OnnxCall *c);

/* onnx_nn.c: strides, dilations, pads and auto_pad of a convolution or a pool over the axes from the third
 * one on. padding: before and after, for each axis, the last axis first. kernel: sizes from the weight, or
 * from the attribute kernel_shape if the weight is NULL. Returns false on an error. */
typedef struct Spatial {
  int n;
  TgSizes kernel, stride, dilation, padding;
} Spatial;

/* onnx_microsoft.c: x (n, .., c) with its channels moved to the second axis, or, if back, the reverse. */
TgTensor *onnx_channels_moved(TgTensor *x, bool back);

/* onnx_attention.c: what attention shares between both domains. Heads are (b, heads, s, d), after keys and
 * values were repeated. */
typedef struct Heads {
  TgTensor *q, *k, *v;
  int64_t nq, nk, past, heads;
} Heads;

typedef struct Scores {
  TgTensor *mask, *may; /* mask: added or bool; may: what may be attended to. Both may be NULL */
  double scale, softcap;
  int64_t shown_after; /* the step after which the scores are an output: 0 .. 3 */
  TgTensor *shown;
} Scores;

/* Whether the heads have four axes, with a number and size of heads that are not symbolic. false: the
 * error is recorded, or one of them is NULL. */
bool onnx_heads_known(OnnxCall *c, const Heads *h);
/* (b, s, heads d) -> (b, heads, s, d); a tensor of four axes is returned unchanged */
TgTensor *onnx_by_heads(OnnxCall *c, TgTensor *x, int64_t heads);
TgTensor *onnx_heads_joined(TgTensor *y); /* the reverse: -> (b, s, heads d) */
/* Repeats keys or values so that there are `heads` heads; each head of keys serves several heads of
 * queries. */
TgTensor *onnx_heads_repeated(TgTensor *x, int64_t heads);
/* Which keys a query may see, (.., q, k) bool, or NULL for all: it applies the causal order, and hides
 * what is past the end of each sequence's keys. past: the number of keys before the first query. */
TgTensor *onnx_seen(OnnxCall *c, int64_t nq, int64_t nk, int64_t past, TgTensor *lens, bool causal);
TgTensor *onnx_attend(const Heads *h, Scores *o); /* (b, heads, q, d) */
/* Rotates the first `turned` numbers of each head. h (b, heads, s, size); cosines and sines (.., s, half),
 * broadcast. */
TgTensor *onnx_turn(TgTensor *h, TgTensor *cosines, TgTensor *sines, int64_t turned, bool inner);

/* onnx_nn.c */
/* (x - mean) / sqrt(var + eps) over axes, in f32 or wider. mean, inv: receive the mean and 1 / sqrt(var +
 * eps); may be NULL */
TgTensor *onnx_standard(TgTensor *x, TgAxes axes, double eps, TgTensor **mean, TgTensor **inv);
/* x divided by its root mean square */
TgTensor *onnx_rms(TgTensor *x, TgAxes axes, double eps, TgTensor **inv);
TgTensor *onnx_gemm(OnnxCall *c);
/* applies the function that attribute `activation` names */
TgTensor *onnx_activated(OnnxCall *c, TgTensor *y, double a, double b, int given);
/* y rounded to a scale and a zero point, with the zero point's dtype (NULL: u8, 0). */
TgTensor *onnx_quantised(OnnxCall *c, TgTensor *y, TgTensor *scale, TgTensor *zero);
TgTensor *onnx_dynamically_quantised(TgTensor *x, TgTensor **scale, TgTensor **zero); /* u8 */

bool onnx_spatial(OnnxCall *c, const TgTensor *x, const TgTensor *weight, Spatial *s);
/* Extends the padding of a pool over x for ceil_mode, if what ceil_mode adds counts as padding does. */
void onnx_ceil_padded(const TgTensor *x, Spatial *s);
bool call_doubles(OnnxCall *c, int i, double *v, int cap, int *n); /* n 0: the input is not there */
/* Whether each index of input i, if its values are known, is in -n .. n-1. Only every step-th index is
 * checked, from `column` on. Returns false on an error. */
bool call_indices(OnnxCall *c, int i, int64_t n, int64_t column, int64_t step);
/* A tensor of data that is the same in every run of these shapes. */
TgTensor *call_constant(OnnxCall *c, const void *data, TgDType dtype, int ndim, const int64_t *dims);
/* negative: from the end; false: no such axis */
bool call_axis(OnnxCall *c, int64_t axis, int rank, int *out);
/* Softmax of input 0 along the attribute axis, as opset c->opset defines it. */
TgTensor *onnx_softmax(OnnxCall *c);
TgTensor *onnx_fold(OnnxCall *c); /* applies the operator's binary function to all inputs */
/* Applies the operator's function over the axes that the node names. */
TgTensor *onnx_reduce(OnnxCall *c);
/* The operator of c, applied to c->in. */
TgTensor *onnx_op_called(OnnxCall *c);
/* onnx_integer.c: computes a node without floats. *done: its outputs were made and kept. Returns false on
 * an error. */
bool onnx_integer_node(OnnxCall *c, bool *done);
/* the quantised tensor that these integers came from; NULL: none */
TgTensor *onnx_scaled_plain(const OnnxScaled *s);
/* onnx_border.c */
TgTensor *onnx_integer_output(OnnxRun *r, const OnnxIO *out, OnnxVal *v); /* NULL: an error */
bool graph_run(OnnxRun *r, OnnxGraph *g);
bool iteration_begin(
    OnnxRun *r); /* begins an iteration of any kind of loop. false: cancelled, or past tg_onnx_loop_limit */
TgTensor *onnx_resize(OnnxCall *c); /* onnx_resize.c: for the table in onnx_nn.c */
#endif
