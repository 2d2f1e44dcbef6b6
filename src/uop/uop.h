/* uop.h: the one graph. A UOp is an immutable node `op dtype src[] arg`. Nodes with equal content are the
 * same pointer (interning).
 *
 * A linear program, the output of codegen and the input of renderers and of INTERP, is a list of UOps in the
 * order in which they run:
 *
 *   PARAM                      pointer to a buffer of arg.param.nelem elements of dtype
 *   DEFINE_REG                 a mutable variable (dtype x lanes)
 *   STORE(reg, value)          writes it
 *   LOAD(reg, deps..)          reads it at this point of the program
 *   DEFINE_LOCAL               scratch array of arg.param.nelem elements of dtype: per thread of the CPU
 *                              pool, per block on a GPU
 *   RANGE(extent)              opens `for (r = 0; r < extent; r++)`; AXIS_THREAD opens no loop: r is the
 *                              launch's thread index
 *   END(r)                     closes it
 *   INDEX(buf, offset[, gate]) address of `lanes` consecutive elements from the flat element offset; there is
 *                              a gate, which is scalar, if arg.i != 0
 *   LOAD(INDEX[, alt])         if the gate is false: alt, or zero
 *   STORE(INDEX, value)        if the gate is false: nothing
 *   elementwise                all sources have the lanes of the result (bool for comparisons and for WHERE's
 *                              src0)
 *   VECTORIZE                  1 source: splat; n sources: one per lane
 *   GEP                        lanes arg.i.. of src0
 *   SHUFFLEVECTOR              as many lanes as arg.ints has numbers
 *
 * A program has no `index` dtype, because lowering has chosen int32 or int64. A value is defined once and
 * used only after its definition. */
#ifndef TG_UOP_H
#define TG_UOP_H
#include "base/base.h"

typedef enum Ops {

#define OP(name, nsrc, arg, flags, operands, weight, c, meaning) OPS_##name,
#include "uop/ops.def"
#undef OP
  OPS_COUNT
} Ops;

/* Data types. `index` is a mathematical integer (shapes, ranges, addresses). All other dtypes are data and
 * behave as in C or IEEE. */
typedef enum DType {

#define DTYPE(name, text, bytes, storage) DT_##name,
#include "uop/dtypes.def"
  DT_COUNT
} DType;

size_t dtype_size(DType d);      /* bytes of an element; 0 for void and index */
const char *dtype_name(DType d); /* "f32", "i8", "index" */

static inline bool dtype_is_float(DType d) { return d >= DT_FP8E4M3; }

/* Narrow floats are only stored: on every target an op on them is the op on f32, rounded once to the
 * dtype. */
static inline bool dtype_is_narrow_float(DType d) { return d >= DT_FP8E4M3 && d <= DT_BF16; }

static inline bool dtype_is_int(DType d) { return d >= DT_INDEX && d <= DT_U64 && d != DT_BOOL; }

static inline bool dtype_is_unsigned(DType d) {
  return d == DT_U8 || d == DT_U16 || d == DT_U32 || d == DT_U64;
}

int64_t dtype_min(DType d); /* integers and bool; u64's maximum is reported as INT64_MAX */
int64_t dtype_max(DType d);
/* Conversion between a narrow float's bits and its value. Packing rounds once, to nearest, ties to even. A
 * value that is too large becomes infinity, or NaN in fp8e4m3, which has no infinity. */
double narrow_value(DType d, uint16_t bits);
uint16_t narrow_bits(DType d, double x);

/* f for float dtypes, i for all other dtypes (u64: the same bits) */
typedef union Scalar {
  int64_t i;
  double f;
} Scalar;

Scalar dtype_least(DType d); /* minus infinity if the dtype has it */

/* A value rounded to dtype: integers wrap, floats round (f64 stays). */
Scalar scalar_round(DType d, Scalar v);
/* Converts between dtypes. Float to integer truncates and saturates, and NaN becomes 0. Conversion to bool is
 * != 0. */
Scalar scalar_cast(DType to, DType from, Scalar v);
/* Computes one elementwise op on scalars of operand dtype d, with the exact semantics of ops.def. Returns
 * false if op is not elementwise. */
bool scalar_eval(Ops op, DType d, const Scalar *src, Scalar *out);
/* Reads or writes an element of memory. The bits of a NaN do not change. */
Scalar scalar_load(DType d, const void *at);
void scalar_store(DType d, Scalar v, void *at);

enum { MAX_RANK = 16 }; /* axes of a tensor: TG_MAX_RANK */

/* interned list of integers: a shape, an axis list */
typedef struct Ints {
  int n;
  int64_t v[];
} Ints;

#define AXIS_TYPES(A)                                                                                        \
  A(GLOBAL) A(THREAD) A(LOCAL) A(LOOP) A(REDUCE) A(ORDERED) A(UPCAST) A(VEC) A(UNROLL) A(GROUP)

typedef enum AxisType {

#define AXIS_ENUM(name) AXIS_##name,
  AXIS_TYPES(AXIS_ENUM)
#undef AXIS_ENUM
} AxisType;

/* Values of arg.range.of for a loop that is not simply a part of one of the kernel's loops. OF_NONE: a new
 * loop. LOCAL_OF_GRID: a thread axis along the grid. BLOCKS_OF - r: the blocks of loop r. LOCAL_OF_BLOCK:
 * iterations that are distributed to all threads of a block. LANES_OF_COPY: lanes that no thread keeps,
 * because they are moved from a buffer to its copy. FRAGMENT_OF_A, _B: the elements of a matrix unit's
 * operand that one thread has (matrix.h). */
typedef enum RangeOf {
  OF_NONE = -1,
  LOCAL_OF_GRID = -2,
  BLOCKS_OF = -3,
  LOCAL_OF_BLOCK = -INT32_MAX,
  LANES_OF_COPY = INT32_MAX - 2,
  FRAGMENT_OF_A = INT32_MAX - 1,
  FRAGMENT_OF_B = INT32_MAX
} RangeOf;

/* SCATTER: with STORE, the last update of a place wins. OLD: the result is the value of each place just
 * before its update (shape of src1), 0 for places outside. ONCE: a promise that every place of src0 is
 * updated exactly once, so that order and old values do not matter. */
enum { SCATTER_OLD = 1, SCATTER_ONCE = 2 };

typedef union Arg {
  /* all 16 bytes, for hashing and comparing */
  struct {
    int64_t a, b;
  } raw;

  Scalar v;
  int64_t i;
  const Ints *ints;

  /* op: an Ops. A kernel's REDUCE and SCAN have axes NULL */
  struct {
    const Ints *axes;
    int64_t op;
  } reduce;

  /* op: STORE, or the op that combines; how: SCATTER_OLD, SCATTER_ONCE */
  struct {
    int64_t op;
    int64_t how;
  } scatter;

  /* of: 0: the loop is itself one of the kernel's; n > 0: a part of the kernel's loop n - 1; otherwise a
   * RangeOf */
  struct {
    int64_t id;
    int32_t type, of;
  } range;

  /* PARAM, DEFINE_LOCAL, DEFINE_REG, BUFFER (slot = uid) */
  struct {
    int64_t nelem;
    int64_t slot;
  } param;

  struct {
    int64_t lo, hi;
  } var;

  struct {
    int64_t dim;
    int64_t local;
  } special;
} Arg;

/* Which member of Arg an op uses, by ops.def. */
typedef enum ArgForm {
  ARG_NONE,
  ARG_VALUE,   /* v */
  ARG_MEMORY,  /* param */
  ARG_VAR,     /* var */
  ARG_SPECIAL, /* special */
  ARG_RANGE,   /* range */
  ARG_REDUCE,  /* reduce.op alone */
  ARG_AXES,    /* reduce */
  ARG_SCATTER, /* scatter */
  ARG_INTS,    /* ints */
  ARG_NUMBER,  /* i */
  ARG_GATED,   /* i: whether the last source is a gate */
  ARG_BOUND,   /* i: whether src0 is known to be at most 0, or NaN */
  ARG_TIME,    /* i: in a program, a time (linearize.c); otherwise 0 */
  ARG_MATRIX   /* i: a row of matrix.h */
} ArgForm;

/* the word that stands for i = 1 in text; NULL: this form has none */
static inline const char *arg_word(ArgForm f) {
  return f == ARG_GATED ? "gated" : f == ARG_BOUND ? "at_most_0" : NULL;
}

static inline bool arg_optional(ArgForm f) { return f == ARG_TIME || arg_word(f); } /* a 0 is not written */

typedef enum UOpMark {
  MARK_SIMPLE = 1, /* no rule of pm_symbolic fires here or below */
  MARK_LINEAR = 2, /* an index sum in the normal form of linear.c */
  /* movements of a BUFFER, the end of the chain of first sources; set at creation */
  MARK_VIEW = 4,
} UOpMark;
typedef struct UOp UOp;

struct UOp {
  uint8_t op, dtype, lanes; /* lanes: 1 = scalar */
  /* is_tensor: the node has `shape` instead of bounds. symbolic: a VAR or a symbolic size is in it, and it is
   * not memory. mark: UOpMark bits found later; they are not part of the content */
  uint8_t is_tensor : 1, symbolic : 1, mark : 6;
  /* hash_high: 16 more bits for the hashes of the nodes that use this one, because 32 bits would repeat in
   * long chains */
  uint16_t nsrc, hash_high;
  /* id: dense in the store, may be reused after a sweep; hash: structural, the same in every store */
  uint32_t id, hash;
  Arg arg;

  union {
    /* bounds of integer and bool values; INT64_MIN/MAX: unknown */
    struct {
      int64_t vmin, vmax;
    };

    /* of a tensor. devices: bit k is set if memory below is on device k; 0: there is none, so the tensor may
     * be anywhere */
    struct {
      const Ints *shape;
      uint64_t devices;
    };
  };

  uint64_t opmask; /* op_bit of every op in the subtree */
  /* range_bit of every free RANGE below (a REDUCE closes its own). A tensor graph has no RANGEs; there, bit
   * uid % 64 of every BUFFER below */
  uint64_t ranges;
  UOp *src[];
};

_Static_assert(sizeof(UOp) <= 64, "a UOp is at most 64 bytes plus its sources");

/* ---- op facts */
enum {
  OPF_U = 1,
  OPF_B = 2,
  OPF_T = 4,
  OPF_COMM = 8,
  OPF_ASSOC = 16,
  OPF_CMP = 32,
  OPF_MOV = 64,
  OPF_TENSOR = 128,
  OPF_KERNEL = 256,
  OPF_MARK = 512,
  OPF_ALU = OPF_U | OPF_B | OPF_T
};

/* The dtypes that an elementwise op accepts. All operands have the same dtype, which is also the result's,
 * except for comparisons, whose result is bool, and for CHOICE and FREE. */
typedef enum OpOperands {
  OPERANDS_NONE,   /* not elementwise */
  OPERANDS_NUMBER, /* any */
  OPERANDS_FLOAT,
  OPERANDS_INT,
  OPERANDS_BITS, /* integers and bool */
  OPERANDS_U64,
  OPERANDS_I32,
  OPERANDS_CHOICE, /* the first is bool */
  OPERANDS_FREE    /* one operand of any dtype; the result has a dtype of its own */
} OpOperands;

/* Classes of cost. The target (target.h) has a number for each class. */
typedef enum OpWeight {
  WEIGHT_NONE, /* nothing: not elementwise */
  WEIGHT_ONE,  /* an addition */
  WEIGHT_ROOT, /* a division or a root */
  WEIGHT_EXP,  /* from here on transcendental: several instructions */
  WEIGHT_LOG,
  WEIGHT_TRIG,
  WEIGHT_POW,
  WEIGHT_THREEFRY,
  WEIGHT_COUNT
} OpWeight;

/* A row of ops.def. arg, operands and weight are an ArgForm, an OpOperands and an OpWeight in a byte each. The
 * texts are in the row itself, because a pointer to a text also takes a relocation, which is larger. */
typedef struct OpRow {
  char name[16], c[10]; /* c: its operator or function in C-like languages; "": it has neither */
  uint16_t flags;
  int8_t nsrc; /* -1: any number */
  uint8_t arg, operands, weight;
} OpRow;

extern const OpRow op_table[OPS_COUNT];

const char *op_name(Ops op);

static inline int op_nsrc(Ops op) { return op_table[op].nsrc; }

static inline ArgForm op_arg(Ops op) { return (ArgForm)op_table[op].arg; }

static inline unsigned op_flags(Ops op) { return op_table[op].flags; }

static inline OpOperands op_operands(Ops op) { return (OpOperands)op_table[op].operands; }

static inline OpWeight op_weight(Ops op) { return (OpWeight)op_table[op].weight; }

static inline const char *op_c(Ops op) { return op_table[op].c; }

bool op_takes(Ops op, int operand, DType d); /* whether this operand of an elementwise op may have dtype d */

static inline bool op_is_alu(Ops op) { return op_flags(op) & OPF_ALU; }

/* Whether its result is worth keeping, because computing it again would cost more. */
static inline bool op_is_costly(Ops op) { return op_weight(op) > WEIGHT_ONE; }

static inline bool op_is_transcendental(Ops op) { return op_weight(op) > WEIGHT_ROOT; }

/* An exact set of ops. */
typedef unsigned __int128 OpMask;
_Static_assert(OPS_COUNT <= 128, "a set of ops has 128 bits");
#define OP_IN_SET(op) ((OpMask)1 << (op))

static inline bool op_in_set(OpMask set, Ops op) { return set >> op & 1; }

/* The ops that uop_has can test. */
#define ASKED_OPS(X)                                                                                         \
  X(INDEX)                                                                                                   \
  X(RANGE)                                                                                                   \
  X(REDUCE)                                                                                                  \
  X(AFTER)                                                                                                   \
  X(BARRIER)                                                                                                 \
  X(DEFINE_REG)                                                                                              \
  X(WMMA)                                                                                                    \
  X(CMPEQ)                                                                                                   \
  X(FLOORDIV)                                                                                                \
  X(FLOORMOD)                                                                                                \
  X(THREEFRY)                                                                                                \
  X(SCALE)                                                                                                   \
  X(SHIFT)                                                                                                   \
  X(GATE)                                                                                                    \
  X(MULTI)                                                                                                   \
  X(SHARD)                                                                                                   \
  X(VAR)

enum {

#define ASKED_ENUM(name) ASKED_##name,
  ASKED_OPS(ASKED_ENUM)
#undef ASKED_ENUM
      NASKED
};

/* The bit of an op in a node's opmask. There are more ops than bits: each of ASKED_OPS has a bit of its own,
 * and all other ops share the remaining bits. A clear bit means that no such op is below, so a walk can stop.
 * A set bit proves something only for ASKED_OPS. */
static inline uint64_t op_bit(Ops op) {
  static const uint8_t own[OPS_COUNT] = {
#define ASKED_BIT(name) [OPS_##name] = ASKED_##name + 1,
      ASKED_OPS(ASKED_BIT)
#undef ASKED_BIT
  };
  return UINT64_C(1) << (own[op] ? own[op] - 1u : NASKED + (unsigned)op % (64 - NASKED));
}

/* The identity of an op that reduces (merge.c). */
Scalar op_identity(Ops op, DType d);

/* ---- store: owns and interns nodes. Creating a node returns NULL if out of memory or if a source is NULL,
 * so a chain of nodes needs only one check. */
typedef struct UOpStore UOpStore;
typedef struct RewriteEnv RewriteEnv;
UOpStore *store_new(TgMem *mem);
/* Rewrites in this store report to env and obey its limits; NULL: no one. env must outlive the store. */
void store_set_env(UOpStore *st, RewriteEnv *env);
/* err receives TG_ERR_NOMEM as soon as a node cannot be allocated, so that code that builds a graph need not
 * report it at each step. NULL: no error is recorded, only mem->failed grows. */
void store_set_error(UOpStore *st, TgError *err);
RewriteEnv *store_env(const UOpStore *st);
/* Places memory `uid` on a device. Call this before its first BUFFER is made. Returns false if out of
 * memory. */
bool store_set_device(UOpStore *st, int64_t uid, int device);
void store_free(UOpStore *st);
void store_clear(UOpStore *st);              /* makes it empty, but keeps its memory */
size_t store_count(const UOpStore *st);      /* live nodes */
size_t store_created(const UOpStore *st);    /* nodes ever made, a count that tests can bound */
uint32_t store_id_limit(const UOpStore *st); /* every id is below this */
/* Drops every node that is not reachable from the roots. */
bool store_sweep(UOpStore *st, UOp *const *roots, size_t nroots);
const Ints *ints_get(UOpStore *st, int n, const int64_t *v);

UOp *uop_new(UOpStore *st, Ops op, DType dtype, int lanes, int nsrc, UOp *const *src, Arg arg);
#define ARG0 ((Arg){.raw = {0, 0}})
#define UNEW(st, op, dt, lanes, arg, ...)                                                                    \
  uop_new((st), (op), (dt), (lanes), (int)TG_COUNT(((UOp *[]){__VA_ARGS__})), (UOp *[]){__VA_ARGS__}, (arg))
UOp *uop_const(UOpStore *st, DType dtype, Scalar v);      /* rounded to dtype */
UOp *uop_const_int(UOpStore *st, DType dtype, int64_t v); /* float dtypes: the value as a float */
UOp *uop_index_const(UOpStore *st, int64_t v);
Arg uop_arg_in(UOpStore *st, const UOp *u);  /* u's arg, with its list interned in st */
UOp *uop_alu1(UOpStore *st, Ops op, UOp *a); /* with the dtype of a, or bool for comparisons */
UOp *uop_alu2(UOpStore *st, Ops op, UOp *a, UOp *b);
UOp *uop_where(UOpStore *st, UOp *c, UOp *a, UOp *b);
UOp *uop_cast(UOpStore *st, UOp *a, DType to); /* a itself if it has that dtype */
UOp *uop_range(UOpStore *st, int64_t extent, int64_t id, AxisType type);
UOp *uop_range_of(UOpStore *st, UOp *extent, int64_t id, AxisType type);
/* u with other sources */
UOp *uop_with_src(UOpStore *st, const UOp *u, UOp *const *src);

/* Whether arg.reduce has a list of axes. */
static inline bool op_has_axes(Ops op) { return op_arg(op) == ARG_AXES; }

/* The list in u's arg, or NULL. */
static inline const Ints *uop_list(const UOp *u) {
  ArgForm form = op_arg((Ops)u->op);
  return form == ARG_AXES ? u->arg.reduce.axes : form == ARG_INTS ? u->arg.ints : NULL;
}

/* A BUFFER of a tensor graph is the content of one memory at one time: slot = uid of the memory | version <<
 * 32. */
static inline int64_t buffer_uid(const UOp *u) { return u->arg.param.slot & UINT32_MAX; }

static inline uint32_t buffer_version(const UOp *u) { return (uint32_t)(u->arg.param.slot >> 32); }

/* The bit of a RANGE in `ranges`. Ranges past 62 share a bit, which no REDUCE closes and which therefore only
 * means "maybe". */
static inline uint64_t range_bit(int64_t id) { return UINT64_C(1) << (id < 0 || id > 63 ? 63 : id); }

/* A memory, a register or an INDEX, without the AFTERs that say when it is valid. */
static inline const UOp *uop_base(const UOp *u) {
  while (u->op == OPS_AFTER)
    u = u->src[0];
  return u;
}

static inline bool is_const(const UOp *u) { return u->op == OPS_CONST; }

/* false for NULL, which a failed allocation returns */
static inline bool is_const_int(const UOp *u, int64_t v) {
  return u && u->op == OPS_CONST && !dtype_is_float((DType)u->dtype) && u->arg.v.i == v;
}

/* Whether u or a node below it has the op OPS_##name. Compiles only for ASKED_OPS. */
#define uop_has(u, name) (((u)->opmask >> ASKED_##name & 1) != 0)

/* ---- a map from nodes to nodes, for the duration of one walk. Its memory belongs to the keys' store and is
 * reused, so a walk costs time for what it visits, not for what the store contains. Maps nest. A map sees
 * neither swept nodes nor the entries of an earlier walk. */
typedef struct UOpMap UOpMap;
UOpMap *uop_map_begin(UOpStore *keys, UOpStore *values); /* NULL: out of memory */
void uop_map_end(UOpStore *keys, UOpMap *m);             /* NULL is fine */
UOp *uop_map_get(const UOpMap *m, const UOp *u);         /* NULL: not there */
/* false: out of memory, or v is NULL */
bool uop_map_put(UOpStore *keys, UOpMap *m, const UOp *u, const UOp *v);
/* a map holds either nodes or numbers */
bool uop_map_put_number(UOpStore *keys, UOpMap *m, const UOp *u, uint32_t n);
uint32_t uop_map_number(const UOpMap *m, const UOp *u); /* UINT32_MAX: not there */

/* ---- walking. Walks are iterative: depth costs heap memory, never stack. */
typedef Vec(UOp *) UOpVec;
/* sources first */
bool uop_toposort(UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots, UOpVec *out);
/* Whether `what` is a root or below one. Also true if memory runs out, because it may be. */
bool uop_contains(UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots, const UOp *what);

/* ---- rewriting (rewrite.c): applies rules to the fixed point, sources first. A matcher returns NULL or self
 * if nothing matches. */
typedef struct Rewrite Rewrite;
typedef UOp *(*Matcher)(Rewrite *rw, UOp *self);

typedef struct RuleInfo {
  const char *name, *where;
} RuleInfo;

struct Rewrite {
  UOpStore *st;
  TgMem *mem;
  void *ctx; /* the pass's own state */
  /* a node is matched before its sources, so a rule sees the old sources, not the rewritten ones */
  bool top_down;
  bool required; /* a lowering that a target needs: the limit does not stop it */
  uint16_t mark; /* the UOpMark of the matcher's fixed points, which are not walked; 0: none */
  /* op_bit of each op that the rules match; a subtree without any of them is not walked; 0: walk
   * everything */
  uint64_t ops;
  uint64_t firings;
  bool failed; /* out of memory, no fixed point within the budget, or a firing was refused */
};

/* Shared by all rewrites of a context. Every store that the context compiles in points to it, so that calls
 * need not pass it. */
struct RewriteEnv {
  uint64_t visits, firings, created; /* nodes visited by graph_rewrite, rules that fired, nodes made */
  uint64_t nested; /* nodes walked by rewrites, substitutions and toposorts started inside a rule */
  int64_t limit;   /* firings left for rewrites that are not required; negative: no limit */
  int in_rule;     /* nesting depth of the running matchers */
  /* NULL, or called for every firing. If it returns false, the firing is refused and the rewrite fails. */
  bool (*on_fire)(RewriteEnv *env, Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result);
};

UOp *graph_rewrite(Rewrite *rw, Matcher m, UOp *root); /* NULL: failed */
/* Generated matchers call this. It counts and traces the firing and obeys the limit. Returns NULL if the rule
 * may not fire. */
UOp *rule_fired(Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result);
/* u with its sources replaced as m maps them, in st, the store of m's values. NULL: out of memory, or m lacks
 * a source. */
UOp *uop_mapped(UOpStore *st, TgMem *mem, const UOp *u, const UOpMap *m);
/* Copies the graph below root to another store. m, from nodes of `from` to nodes of `to`, keeps what was
 * copied, and may be passed again. NULL: out of memory. */
UOp *uop_copy(UOpStore *to, UOpStore *from, UOpMap *m, TgMem *mem, UOp *root);
/* root with each from[i] replaced by to[i], in one pass without rules */
UOp *uop_substitute(UOpStore *st, TgMem *mem, UOp *root, int n, UOp *const *from, UOp *const *to);

/* ---- symbolic (rules/symbolic.rules, with linear.c) */
UOp *pm_symbolic(Rewrite *rw, UOp *self);
UOp *uop_simplify(UOpStore *st, TgMem *mem, UOp *u); /* graph_rewrite with pm_symbolic */
/* the same for a node whose sources are simplified; it walks only if a rule fires */
UOp *uop_simplify_top(UOpStore *st, TgMem *mem, UOp *u);

/* Finds *k so that e = *k * r + an expression without r (*k = 0: r is not in e). Makes no nodes. Returns
 * false if e has no such form, or if that cannot be told without making nodes. */
bool uop_coefficient(UOp *e, const UOp *r, int64_t *k);
/* Whether an index is certainly a multiple of n. Works in a graph and in a list. */
bool uop_is_multiple(const UOp *u, int64_t n);

enum { MAX_LINEAR = 16 };

/* rest + c + the sum of by[i] * r[i]. rest: simplified, without a constant and without any of the ranges, or
 * NULL. */
typedef struct LinearIn {
  UOp *rest;
  int64_t c, by[MAX_LINEAR];
} LinearIn;

/* Writes an index expression as such a sum over n ranges. Returns false if it is none, or if out of
 * memory. */
bool uop_linear_in(UOpStore *st, TgMem *mem, UOp *e, int n, UOp *const *r, LinearIn *out);

/* ---- marks: questions that a pass puts into a graph and rules answer */
#define MARKS (op_bit(OPS_SCALE) | op_bit(OPS_SHIFT) | op_bit(OPS_GATE))
/* root, of a kernel graph, with every mark in it replaced by m's answer. NULL: a mark has no answer, or out
 * of memory. Subtrees without marks are not walked. */
UOp *uop_answer(UOpStore *st, TgMem *mem, Matcher m, void *ctx, UOp *root);

/* The number of indices of an INDEX: its sources without the memory and the gate. */
static inline int index_naxes(const UOp *x) { return x->nsrc - 1 - (x->arg.i != 0); }

/* Whether an index is itself read from memory. */
static inline bool index_is_data(const UOp *index) {
  for (int i = 1; i < index->nsrc; i++)
    if (uop_has(index->src[i], INDEX)) return true;
  return false;
}

static inline UOp *index_gate(const UOp *x) { return x->arg.i ? x->src[x->nsrc - 1] : NULL; }

UOp *index_flat(UOpStore *st, TgMem *mem, const UOp *x); /* the flat element offset of an INDEX, simplified */
/* Whether 0 <= offset < n wherever gate (a bool; NULL: everywhere) holds. False if that is not known. */
bool uop_within(UOp *offset, UOp *gate, int64_t n);
/* Index expression e, simplified with the knowledge that gate holds. NULL: out of memory. */
UOp *uop_given(UOpStore *st, TgMem *mem, UOp *e, UOp *gate);

/* ---- text (print.c; parse.c reads it back): `u3 = ADD(u1, u2)` per line, sources first */
extern const char *const axis_type_names[AXIS_GROUP + 1];
/* The type that follows from op and sources, which text may omit. dtype DT_COUNT or lanes 0: text must state
 * it. */
void uop_type_default(Ops op, int nsrc, UOp *const *src, DType *dtype, int *lanes);
bool uop_print(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots);
void uop_expr(Str *out, const UOp *u, int max_nodes); /* one line of infix notation for messages */
void uop_line(Str *out, const UOp *u);                /* op, type and arg of one node, for a label */
bool uop_dot(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots);

/* The number of blocks along an axis of a grid that have any work: (add + the sum of by[i] * the i-th
 * variable of the list) / each. each 0: all blocks. */
enum { MOST_BLOCK_VARS = 4 };

typedef struct GridBlocks {
  int64_t each, add, by[MOST_BLOCK_VARS];
} GridBlocks;

typedef struct Linear { /* a program for one kernel, in order */
  UOp **at;
  int n;
  char name[96];
  int nparam;              /* PARAM slots are 0 .. nparam-1 */
  int nthread;             /* a launch has thread indices 0 .. nthread-1 */
  int global[3], local[3]; /* GPU: grid and block sizes */
  GridBlocks blocks[3];    /* per axis of the grid: the blocks that a launch needs (grid_blocks.c) */
} Linear;

/* How many of `global` blocks along an axis a launch with these values of the variables makes: at least
 * one. */
static inline int blocks_needed(const GridBlocks *b, int global, const int64_t *vars) {
  if (!b->each) return global;
  int64_t sum = b->add;
  for (int i = 0; i < MOST_BLOCK_VARS; i++)
    if (b->by[i]) sum += b->by[i] * vars[i];
  int64_t n = sum / b->each;
  return n < 1 ? 1 : n < global ? (int)n : global;
}

/* of[i], for a memory i that the list only reads: the memories, as bits, that the list stores to and that may
 * be the very same memory, because no element is read after it may have been stored to (in_place.c). */
enum { LIST_SLOTS = 64 };

void list_in_place(const Linear *lin, uint64_t of[LIST_SLOTS]);

bool uop_print_list(Str *out, const Linear *lin, TgMem *mem);

/* The bytes of a DEFINE_LOCAL on a GPU, which begins at a multiple of 16; below, of all arrays of a block. */
static inline int64_t local_array_bytes(const UOp *u) {
  return (u->arg.param.nelem * (int64_t)dtype_size((DType)u->dtype) + 15) / 16 * 16;
}

static inline int64_t linear_local_bytes(const Linear *lin) {
  int64_t n = 0;
  for (int i = 0; i < lin->n; i++)
    if (lin->at[i]->op == OPS_DEFINE_LOCAL) n += local_array_bytes(lin->at[i]);
  return n;
}
#endif
