/* onnx_private.h: what the files of the ONNX reader share: the model as parsed, a run of it, and what an
 * operator is given. Names are resolved when the model is opened: from then on a value is a number, 0 for an
 * input or output that is left out. */
#ifndef TG_ONNX_PRIVATE_H
#define TG_ONNX_PRIVATE_H
#include "io_private.h"
#include "tg_io.h"

enum {
  ONNX_OPSET_MIN = 7,
  ONNX_OPSET_MAX = 28,
  ONNX_DEPTH = 8,           /* of graphs within graphs */
  ONNX_CALLS = 24,          /* of functions that call functions */
  ONNX_NODES_MAX = 1 << 20, /* with each function's body once for each call */
  ITERATIONS_MOST = 100000,
  HOST_MAX = 1024,
  CONSTANTS_MAX = 1024,
  CONSTANT_BYTES = 1 << 16,
  ONNX_KNOWN_MOST = 1 << 16 /* numbers of a constant that integers alone look at */
};
typedef struct OnnxGraph OnnxGraph;

/* Integers of less than a byte: packed in files, the first in the lowest bits; here a byte each, of dtype
 * `as`. */
typedef struct OnnxNarrow {
  int type; /* its data_type */
  TgDType as;
  int bits;
  double lo, hi;
} OnnxNarrow;

const OnnxNarrow *onnx_narrow(int64_t data_type); /* NULL: none of them */

/* A tensor of the file. narrow: the data_type, where it is such a one, else 0. host: the same in the model's
 * host context if it is small, else NULL. */
typedef struct OnnxTensor {
  struct OnnxTensor *next;
  const char *name;
  TgTensor *main, *host;
  int narrow;
  double *numbers; /* tg_onnx_integers: its elements, if they are not many */
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
  int kind; /* an OnnxKind, or what the file says; 0: it has no value */
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

/* The domain that an operator belongs to. A name that means another thing in each domain is two operators. */
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
    bool (*control)(OnnxRun *r, const OnnxNode *n); /* runs graphs: gives all its outputs their values */
  };

  int8_t since, min_in, max_in; /* max_in -1: any number */
  uint8_t form, domain;
  bool sized; /* it takes inputs of symbolic sizes */
} OnnxOp;

#define ONNX_ROW(name, since, lo, hi, form, domain, sized, ...)                                              \
  { name, {__VA_ARGS__}, since, lo, hi, form, domain, sized }
#define ONNX_UNARY(name, f)  ONNX_ROW(name, 1, 1, 1, FORM_UNARY, DOMAIN_ONNX, true, .unary = f)
#define ONNX_BINARY(name, f) ONNX_ROW(name, 1, 2, 2, FORM_BINARY, DOMAIN_ONNX, true, .binary = f)
#define ONNX_FOLD(name, f)   ONNX_ROW(name, 1, 1, -1, FORM_FOLD, DOMAIN_ONNX, true, .binary = f)
#define ONNX_REDUCE(name, f) ONNX_ROW(name, 1, 1, 2, FORM_REDUCE, DOMAIN_ONNX, true, .reduce = f)
/* Operators whose inputs may have symbolic sizes, then those of which all sizes are numbers: they may use tg_dim. Rows
 * of com.microsoft, and of both domains, where `since` is ai.onnx's. */
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
  const char *label; /* what errors call it: its name, or what says which one it is where it has none */
  size_t *in, *out;  /* values */
  int nin, nout, nattrs;
  OnnxAttr *attrs;
  const OnnxOp *def; /* NULL: not known here, or not in this opset */
  OnnxGraph *body;   /* of a call of one of the model's own functions; else NULL */
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
  struct OnnxGraph *next; /* all graphs of the model, to be freed */
  const OnnxNode *caller; /* of a function's body: whose attributes it takes; else NULL */
  int opset;
};

/* A function of the model, as bytes: each call of it is parsed anew, with the attributes of the call. nodes:
 * that a call adds, with those of the functions that it calls, once they are counted. */
typedef struct OnnxFunction {
  const char *name, *domain, *overload;
  uint64_t at, n;
  size_t nodes;
  bool counted;
} OnnxFunction;

/* What the model says that it is written in: a version of a domain's operators. */
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

/* what constant_main made; bytes: its contents */
typedef struct OnnxConstant {
  struct OnnxConstant *next;
  TgTensor *t;
  size_t n;
  uint8_t bytes[];
} OnnxConstant;

struct TgOnnx {
  TgContext *ctx, *host; /* host: an interpreter, where shapes are computed as soon as they are known */
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
  bool told_only;   /* operators that are not here are no error: it is opened to be described */
  const char *path; /* of the model; NULL: it came as a tensor */
  OnnxBeside *beside;
  size_t nvalues, nnodes;
  int64_t most_iterations, iterations; /* of all loops of a run: tg_onnx_loop_limit; those so far */
  int opset;                           /* of the domain "" */
  void (*seen)(const TgOnnxNode *node, void *user); /* tg_onnx_watch */
  void *seen_user;
};

/* ---- parsing (onnx_proto.c, onnx_tensor.c). false, NULL: an error in the context */
bool onnx_parse(TgOnnx *m);
OnnxTensor *onnx_tensor_parse(TgOnnx *m, uint64_t at, uint64_t n);
TgDType onnx_dtype(int64_t data_type); /* TG_DTYPE_DEFAULT: none of ours */
/* domain: "" and "ai.onnx", of which `opset` says what there is, or "com.microsoft". NULL: none such */
const OnnxOp *onnx_op_find(const char *domain, const char *name, int opset);
/* each ends with a name of NULL */
extern const OnnxOp onnx_ops_math[], onnx_ops_shape[], onnx_ops_index[], onnx_ops_nn[], onnx_ops_rnn[],
    onnx_ops_attention[], onnx_ops_signal[], onnx_ops_control[], onnx_ops_grid[], onnx_ops_list[],
    onnx_ops_region[], onnx_ops_microsoft[];

/* ---- running */
typedef struct OnnxList OnnxList;
typedef struct OnnxScaled OnnxScaled;

/* A tensor, a list of values, or an optional value that is not there (none). left_out: an input that the
 * caller of a function did not give. */
typedef struct OnnxVal {
  TgTensor *t, *moved;
  OnnxList *list;
  int narrow; /* as an OnnxTensor's */
  bool host, none, left_out;
  TgDType
      sizes; /* t, of i64 on the host, has symbolic sizes among its numbers (onnx_sizes.c); then its dtype */
  const OnnxTensor *of;     /* a tensor of the file, or NULL */
  const OnnxScaled *scaled; /* onnx_integer.c: t has integers, for which this says what they mean; or NULL */
} OnnxVal;

/* It is never changed: values share it. */
struct OnnxList {
  OnnxList *next; /* all of a run, to be freed */
  size_t n;
  OnnxVal at[];
};

struct OnnxRun {
  TgOnnx *m;
  bool symbolic; /* an input has a symbolic size */
  OnnxVal *vals;
  OnnxList *lists;
  OnnxScaled *scaled; /* all of a run; the first member is the next */
};

/* Whether an input has a symbolic size; a build without INTERP, which computes with such sizes, takes none. */
static inline bool has_symbolic(const OnnxRun *r) {
#ifdef TG_NO_INTERP
  return (void)r, false;
#else
  return r->symbolic;
#endif
}

OnnxList *list_new(OnnxRun *r, size_t n);                  /* onnx_list.c; NULL: an error */
OnnxVal *node_value(OnnxRun *r, const OnnxNode *n, int i); /* of any kind; NULL: left out, or without value */
bool value_number(OnnxRun *r, OnnxVal *v, double *out);    /* read now */
OnnxVal value_of_int(OnnxRun *r, int64_t v, TgDType d);

TgTensor *val_main(OnnxRun *r, OnnxVal *v); /* in the model's context */

struct OnnxCall {
  TgContext *ctx; /* where the node is computed: the model's, or its host */
  OnnxRun *run;
  const OnnxNode *n;
  int opset, nin, nout;
  TgTensor **in, **out; /* in: of ctx; NULL where left out. fn returns out[0] and fills in the others */
  OnnxVal **raw;        /* the inputs wherever they are */
  bool *seen;           /* of each attribute: an operator has asked for it */
  int narrow;           /* of out[0], as an OnnxTensor's; fn sets it */
  uint8_t lists;        /* bit i: input i is a list in which symbolic sizes may stand, and is i64 here */
  TgDType sizes;        /* the outputs may be such lists, of this dtype; else 0 */
};

/* onnx_call.c. Whether the operator takes inputs of these dtypes; false: recorded */
bool onnx_types_fit(OnnxCall *c);
/* TG_ERR_VALUE with the text; NULL. */
TgTensor *call_fail(OnnxCall *c, TgStatus status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* NULL: not given. An attribute that no operator asks for is an error of the node; one of another kind than
 * it asks for is, too (in the context). */
const OnnxAttr *call_attr(const OnnxCall *c, const char *name, OnnxKind kind);
void attr_unused(const OnnxCall *c, const char *name); /* means nothing here, and may be given */
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

/* Numbers that are needed now: of input i (computed and read), or of the attribute `name` (may be NULL).
 * !given: neither is there. false: an error. */
bool call_ints(OnnxCall *c, int i, const char *name, Ints *out);

/* The same, and symbolic sizes among them, which nothing may be computed of but by tg_size_add and the like. */
bool call_sizes(OnnxCall *c, int i, const char *name, Ints *out);
/* false, with an error: the value of v is needed now, which it has not if sizes are symbolic. */
bool value_now(OnnxRun *r, const OnnxVal *v);

/* ---- symbolic sizes (onnx_sizes.c) */
typedef enum OnnxDone { DONE_NOT, DONE, DONE_ERROR } OnnxDone;

enum { ALL_LISTS = 255 }; /* of OnnxCall.lists: every input */

bool onnx_is_list(const OnnxCall *c, int i);
/* A node of lists of sizes: outputs made, or left to do with these numbers as data of the device. */
OnnxDone onnx_sizes_node(OnnxCall *c);
bool onnx_sizes_fit(OnnxCall *c); /* whether the operator takes its inputs; false: recorded */
TgTensor *onnx_sizes_main(OnnxRun *r, OnnxVal *v); /* such a list on the device */
bool onnx_sizes_found(OnnxRun *r, OnnxVal *v); /* clears v->sizes where all are numbers. false: an error */
/* y with the sizes of x, symbolic ones too */
TgTensor *shaped_as(TgTensor *y, TgTensor *x);
TgTensor *onnx_iota(TgContext *ctx, int64_t size);   /* 0, 1 .. size - 1, of i64 */
TgTensor *onnx_size_like(TgTensor *x, int64_t size); /* that number, of x's dtype */
/* x as a matrix: the axes before `axis` are its rows. */
TgTensor *onnx_matrix(TgTensor *x, int axis);
bool onnx_is_symbolic(OnnxCall *c, int64_t size); /* asked where has_symbolic is true */
/* tg_size_of all axes of x, in room */
const int64_t *sizes_in(const TgTensor *x, int64_t room[TG_MAX_RANK]);
bool outputs_made(OnnxCall *c, bool *small); /* onnx.c */
bool outputs_kept(OnnxCall *c);

/* onnx_nn.c: strides, dilations, pads and auto_pad of a convolution or a pool over the axes from the third
 * on. padding: before and after, by axis, the last one first. kernel: of the weight; NULL: the attribute
 * kernel_shape. false: an error. */
typedef struct Spatial {
  int n;
  TgSizes kernel, stride, dilation, padding;
} Spatial;

/* onnx_microsoft.c: x (n, .., c) with its channels second, or, back, the other way round. */
TgTensor *onnx_channels_moved(TgTensor *x, bool back);

/* onnx_attention.c: what attention of both domains shares. Heads of (b, heads, s, d): repeated is done. */
typedef struct Heads {
  TgTensor *q, *k, *v;
  int64_t nq, nk, past, heads;
} Heads;

typedef struct Scores {
  TgTensor *mask, *may; /* added or bool; what may be seen. Both may be NULL */
  double scale, softcap;
  int64_t shown_after; /* of which step the scores are an output: 0 .. 3 */
  TgTensor *shown;
} Scores;

/* Heads of four axes, whose number and size are no variables. false: recorded, or one is NULL */
bool onnx_heads_known(OnnxCall *c, const Heads *h);
/* (b, s, heads d) -> (b, heads, s, d); what has four axes is that already */
TgTensor *onnx_by_heads(OnnxCall *c, TgTensor *x, int64_t heads);
TgTensor *onnx_heads_joined(TgTensor *y); /* and back: (b, s, heads d) */
/* Each head of keys serves several of queries. */
TgTensor *onnx_heads_repeated(TgTensor *x, int64_t heads);
/* Which keys a query may see, (.., q, k) bool, or NULL: the causal order, and what lies past the end of each
 * sequence's keys. past: how many keys stand before the first query. */
TgTensor *onnx_seen(OnnxCall *c, int64_t nq, int64_t nk, int64_t past, TgTensor *lens, bool causal);
TgTensor *onnx_attend(const Heads *h, Scores *o); /* (b, heads, q, d) */
/* h (b, heads, s, size); cosines and sines (.., s, half), broadcast. The first `turned` numbers of each head.
 */
TgTensor *onnx_turn(TgTensor *h, TgTensor *cosines, TgTensor *sines, int64_t turned, bool inner);

/* onnx_nn.c */
/* (x - mean) / sqrt(var + eps) over axes, in f32 or wider. mean, inv: NULL, or where these go */
TgTensor *onnx_standard(TgTensor *x, TgAxes axes, double eps, TgTensor **mean, TgTensor **inv);
TgTensor *onnx_rms(TgTensor *x, TgAxes axes, double eps, TgTensor **inv); /* x by its root mean square */
TgTensor *onnx_gemm(OnnxCall *c);
TgTensor *onnx_activated(OnnxCall *c, TgTensor *y, double a, double b, int given); /* by `activation` */
/* Rounded to a scale and a zero point (NULL: u8, 0), whose dtype it has. */
TgTensor *onnx_quantised(OnnxCall *c, TgTensor *y, TgTensor *scale, TgTensor *zero);
TgTensor *onnx_dynamically_quantised(TgTensor *x, TgTensor **scale, TgTensor **zero); /* u8 */

bool onnx_spatial(OnnxCall *c, const TgTensor *x, const TgTensor *weight, Spatial *s);
/* The padding of a pool over x with ceil_mode, where what that adds counts as padding does. */
void onnx_ceil_padded(const TgTensor *x, Spatial *s);
bool call_doubles(OnnxCall *c, int i, double *v, int cap, int *n); /* n 0: not there */
/* Whether each index of input i, where its numbers are known, is in -n .. n-1; column: only every step-th
 * from there on. false: an error. */
bool call_indices(OnnxCall *c, int i, int64_t n, int64_t column, int64_t step);
/* A tensor of data that is the same in every run of these shapes. */
TgTensor *call_constant(OnnxCall *c, const void *data, TgDType dtype, int ndim, const int64_t *dims);
bool call_axis(OnnxCall *c, int64_t axis, int rank, int *out); /* negative from the end; false: none such */
/* The operator of c on c->in. */
TgTensor *onnx_softmax(OnnxCall *c);
TgTensor *onnx_fold(OnnxCall *c); /* the function of its operator over all inputs */
TgTensor *onnx_reduce(OnnxCall *c);
/* the function of its operator over the axes that it names */ /* of input 0, by attribute axis as opset c->opset has it */
TgTensor *onnx_op_called(OnnxCall *c);
/* onnx_integer.c: a node without floats. *done: its outputs are there, and have been kept. false: an error */
bool onnx_integer_node(OnnxCall *c, bool *done);
TgTensor *onnx_scaled_plain(const OnnxScaled *s); /* the quantised tensor that it was; NULL: none */
/* onnx_border.c */
TgTensor *onnx_integer_output(OnnxRun *r, const OnnxIO *out, OnnxVal *v); /* NULL: an error */
bool graph_run(OnnxRun *r, OnnxGraph *g);
bool iteration_begin(
    OnnxRun *r); /* of a loop of any kind. false: cancelled, or more than tg_onnx_loop_limit */
TgTensor *onnx_resize(OnnxCall *c); /* onnx_resize.c: of the table in onnx_nn.c */
#endif
