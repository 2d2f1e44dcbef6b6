/* uop.h: the one graph. A UOp is an immutable node `op dtype src[] arg`; equal content means the same pointer
 * (interning).
 *
 * What a linear program (the output of codegen, the input of renderers and of INTERP) looks like: a list of
 * UOps in the order they run.
 *
 *   PARAM                      pointer to a buffer of arg.param.nelem elements of dtype
 *   DEFINE_REG                 a mutable variable (dtype x lanes)
 *   STORE(reg, value)          writes it
 *   LOAD(reg, deps..)          reads it where it stands
 *   DEFINE_LOCAL               scratch array of arg.param.nelem elements of dtype, per thread of the CPU
 * pool, per block on a GPU RANGE(extent)              opens `for (r = 0; r < extent; r++)`; AXIS_THREAD opens
 * no loop: r is the launch's thread index END(r)                     closes it INDEX(buf, offset[, gate])
 * address of `lanes` consecutive elements from the flat element offset; a gate, which is scalar, iff arg.i !=
 * 0 LOAD(INDEX[, alt])         gate false: alt, or zero STORE(INDEX, value)        gate false: nothing
 *   elementwise                all sources have the lanes of the result (bool for comparisons and for WHERE's
 *                              src0)
 *   VECTORIZE                  1 source: splat; n sources: one per lane
 *   GEP                        lanes arg.i.. of src0
 *   SHUFFLEVECTOR              as many lanes as arg.ints has numbers
 *
 * No `index` dtype remains in it: lowering has chosen int32 or int64. A value is defined once and used only
 * after its definition. */
#ifndef TG_UOP_H
#define TG_UOP_H
#include "base/base.h"

typedef enum Ops {

#define OP(name, nsrc, arg, flags, operands, weight, c, meaning) OPS_##name,
#include "uop/ops.def"
#undef OP
  OPS_COUNT
} Ops;

/* Data types. `index` is a mathematical integer (shapes, ranges, addresses); all others are data and behave
 * as in C or IEEE. */
typedef enum DType {

#define DTYPE(name, text, bytes, storage) DT_##name,
#include "uop/dtypes.def"
  DT_COUNT
} DType;

size_t dtype_size(DType d);      /* bytes of an element; 0 for void and index */
const char *dtype_name(DType d); /* "f32", "i8", "index" */

static inline bool dtype_is_float(DType d) { return d >= DT_FP8E4M3; }

/* Storage alone: an op on them is the op on f32, rounded once to the dtype, on every target. */
static inline bool dtype_is_narrow_float(DType d) { return d >= DT_FP8E4M3 && d <= DT_BF16; }

static inline bool dtype_is_int(DType d) { return d >= DT_INDEX && d <= DT_U64 && d != DT_BOOL; }

static inline bool dtype_is_unsigned(DType d) {
  return d == DT_U8 || d == DT_U16 || d == DT_U32 || d == DT_U64;
}

int64_t dtype_min(DType d); /* integers and bool; u64's maximum is reported as INT64_MAX */
int64_t dtype_max(DType d);
/* Bits of a narrow float. Packing rounds once, to nearest, ties to even. Past the largest value: infinity; in
 * fp8e4m3, which has none, NaN. */
double narrow_value(DType d, uint16_t bits);
uint16_t narrow_bits(DType d, double x);

/* f for float dtypes, i for all others (u64: same bits) */
typedef union Scalar {
  int64_t i;
  double f;
} Scalar;

/* A value forced into dtype: integers wrap, floats round (all but f64). */
Scalar scalar_round(DType d, Scalar v);
/* Conversion between dtypes: float to integer truncates, saturates out of range, NaN gives 0; to bool is !=
 * 0. */
Scalar scalar_cast(DType to, DType from, Scalar v);
/* One elementwise op on scalars of operand dtype d; the exact semantics of ops.def. False: op is not
 * elementwise. */
bool scalar_eval(Ops op, DType d, const Scalar *src, Scalar *out);
/* An element of memory. The bits of a NaN come through unchanged. */
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

/* arg.range.of of a loop that is no part of one of the kernel's, or not only that: of none; a thread axis
 * along the grid; the blocks of loop r: BLOCKS_OF - r; iterations that are distributed to all threads of a
 * block; lanes that no thread holds, as they go from a buffer to its copy; elements that a thread has of the operands of a matrix unit (matrix.h). */
typedef enum RangeOf {
  OF_NONE = -1,
  LOCAL_OF_GRID = -2,
  BLOCKS_OF = -3,
  LOCAL_OF_BLOCK = -INT32_MAX,
  LANES_OF_COPY = INT32_MAX - 2,
  FRAGMENT_OF_A = INT32_MAX - 1,
  FRAGMENT_OF_B = INT32_MAX
} RangeOf;

/* SCATTER by STORE: the last one wins. OLD: the result is what each place held just before its update (shape
 * of src1), 0 for places outside. ONCE: every place of src0 is met exactly once, so that order and old values
 * do not matter; a promise. */
enum { SCATTER_OLD = 1, SCATTER_ONCE = 2 };

typedef union Arg {
  /* all 16 bytes: for hashing and comparing */
  struct {
    int64_t a, b;
  } raw;

  Scalar v;
  int64_t i;
  const Ints *ints;

  /* op: Ops. Kernel REDUCE and SCAN have axes NULL */
  struct {
    const Ints *axes;
    int64_t op;
  } reduce;

  /* op: STORE, or what combines; how: SCATTER_OLD, SCATTER_ONCE */
  struct {
    int64_t op;
    int64_t how;
  } scatter;

  /* of: 0 where the loop is itself; n > 0: a part of the kernel's loop n - 1; else RangeOf */
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

/* Which part of Arg an op has, by ops.def. */
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
  ARG_TIME,    /* i: in a program, when; else 0 */
  ARG_MATRIX   /* i: a row of matrix.h */
} ArgForm;

/* the word that says i = 1; NULL: of no other form */
static inline const char *arg_word(ArgForm f) {
  return f == ARG_GATED ? "gated" : f == ARG_BOUND ? "at_most_0" : NULL;
}

static inline bool arg_optional(ArgForm f) { return f == ARG_TIME || arg_word(f); } /* 0 is not written */

typedef enum UOpMark {
  MARK_SIMPLE = 1, /* no rule of pm_symbolic fires here or below */
  MARK_LINEAR = 2, /* an index sum in the normal form of linear.c */
  /* movements over memory: BUFFER is at the end of the chain of first sources. Set at creation */
  MARK_VIEW = 4,
} UOpMark;
typedef struct UOp UOp;

struct UOp {
  uint8_t op, dtype, lanes; /* lanes: 1 = scalar */
  /* is_tensor: has `shape` instead of bounds. symbolic: a VAR or a size of one is in it, and it is not
   * memory. mark: UOpMark bits found out since; no content */
  uint8_t is_tensor : 1, symbolic : 1, mark : 6;
  /* hash_high: 16 more bits that users' hashes build on: 32 would repeat in long chains */
  uint16_t nsrc, hash_high;
  uint32_t id, hash; /* id: dense in the store; hash: structural, the same in every store */
  Arg arg;

  union {
    /* bounds of integer and bool values; INT64_MIN/MAX: unknown */
    struct {
      int64_t vmin, vmax;
    };

    /* of a tensor. devices: bit k for device k, whose memory is below; 0: none, it may be anywhere */
    struct {
      const Ints *shape;
      uint64_t devices;
    };
  };

  uint64_t opmask; /* op_bit of every op in the subtree */
  /* bit id%64 of every free RANGE below (a REDUCE closes its own); in a tensor graph, which has none, bit
   * uid%64 of every BUFFER below */
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

/* Which dtypes an elementwise op takes. All operands have one dtype, which the result has too, but for
 * comparisons, whose result is bool, and CHOICE and FREE. */
typedef enum OpOperands {
  OPERANDS_NONE,   /* not elementwise */
  OPERANDS_NUMBER, /* any */
  OPERANDS_FLOAT,
  OPERANDS_INT,
  OPERANDS_BITS, /* integers and bool */
  OPERANDS_U64,
  OPERANDS_I32,
  OPERANDS_CHOICE, /* the first is bool */
  OPERANDS_FREE    /* one of any dtype; the result says its own */
} OpOperands;

/* What an op costs is a number of the target (target.h) for each of these. */
typedef enum OpWeight {
  WEIGHT_NONE, /* nothing: not elementwise */
  WEIGHT_ONE,  /* an addition */
  WEIGHT_ROOT, /* a division or a root */
  WEIGHT_EXP,  /* from here on transcendental: a sequence of instructions */
  WEIGHT_LOG,
  WEIGHT_TRIG,
  WEIGHT_POW,
  WEIGHT_THREEFRY,
  WEIGHT_COUNT
} OpWeight;

/* A row of ops.def: an ArgForm, an OpOperands and an OpWeight, each a byte. */
typedef struct OpRow {
  const char *name, *c; /* c: its operator or function in C-like languages; "": neither */
  uint16_t flags;
  int8_t nsrc; /* -1: any */
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

bool op_takes(Ops op, int operand, DType d); /* of an elementwise op: whether this operand may have it */

static inline bool op_is_alu(Ops op) { return op_flags(op) & OPF_ALU; }

/* Whether its result is worth keeping rather than computing it again. */
static inline bool op_is_costly(Ops op) { return op_weight(op) > WEIGHT_ONE; }

static inline bool op_is_transcendental(Ops op) { return op_weight(op) > WEIGHT_ROOT; }

/* A set of ops, exact. */
typedef unsigned __int128 OpMask;
_Static_assert(OPS_COUNT <= 128, "a set of ops has 128 bits");
#define OP_IN_SET(op) ((OpMask)1 << (op))

static inline bool op_in_set(OpMask set, Ops op) { return set >> op & 1; }

/* The ops that uop_has asks for. */
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

/* Its bit in a node's opmask. There are more ops than bits: those that uop_has asks for have one of their
 * own, the others share the rest. So a clear bit says that there is no such op below, and lets a walk stop;
 * that one is set says something only of ASKED_OPS. */
static inline uint64_t op_bit(Ops op) {
  static const uint8_t own[OPS_COUNT] = {
#define ASKED_BIT(name) [OPS_##name] = ASKED_##name + 1,
      ASKED_OPS(ASKED_BIT)
#undef ASKED_BIT
  };
  return UINT64_C(1) << (own[op] ? own[op] - 1u : NASKED + (unsigned)op % (64 - NASKED));
}

/* of a reduce op: ADD 0, MUL 1, MAX -inf or the minimum, AND all ones, OR 0 */
Scalar op_identity(Ops op, DType d);

/* ---- store: owns and interns nodes. Creation returns NULL when out of memory or when a source is NULL (so
 * chains need one check). */
typedef struct UOpStore UOpStore;
typedef struct RewriteEnv RewriteEnv;
UOpStore *store_new(TgMem *mem);
/* what rewrites in this store report to and obey; NULL: nobody. env outlives the store */
void store_set_env(UOpStore *st, RewriteEnv *env);
/* A node for which there is no memory is an error there at once, TG_ERR_NOMEM: who builds a graph then need
 * not tell of it in each of its steps. NULL: nobody is told, mem->failed grows. */
void store_set_error(UOpStore *st, TgError *err);
RewriteEnv *store_env(const UOpStore *st);
/* Memory `uid` is on this device; said before its first BUFFER is made. False: out of memory. */
bool store_set_device(UOpStore *st, int64_t uid, int device);
void store_free(UOpStore *st);
size_t store_count(const UOpStore *st);      /* live nodes */
size_t store_created(const UOpStore *st);    /* nodes ever made: a count that tests can bound */
uint32_t store_id_limit(const UOpStore *st); /* every id is below this */
/* Drop every node that cannot be reached from the roots. */
bool store_sweep(UOpStore *st, UOp *const *roots, size_t nroots);
const Ints *ints_get(UOpStore *st, int n, const int64_t *v);

UOp *uop_new(UOpStore *st, Ops op, DType dtype, int lanes, int nsrc, UOp *const *src, Arg arg);
#define ARG0 ((Arg){.raw = {0, 0}})
#define UNEW(st, op, dt, lanes, arg, ...)                                                                    \
  uop_new((st), (op), (dt), (lanes), (int)TG_COUNT(((UOp *[]){__VA_ARGS__})), (UOp *[]){__VA_ARGS__}, (arg))
UOp *uop_const(UOpStore *st, DType dtype, Scalar v);      /* rounded to dtype */
UOp *uop_const_int(UOpStore *st, DType dtype, int64_t v); /* float dtypes: the value as a float */
UOp *uop_index_const(UOpStore *st, int64_t v);
Arg uop_arg_in(UOpStore *st, const UOp *u);  /* u's, with its list in st */
UOp *uop_alu1(UOpStore *st, Ops op, UOp *a); /* dtype of a; comparisons bool */
UOp *uop_alu2(UOpStore *st, Ops op, UOp *a, UOp *b);
UOp *uop_where(UOpStore *st, UOp *c, UOp *a, UOp *b);
UOp *uop_cast(UOpStore *st, UOp *a, DType to); /* a itself if it has that dtype */
UOp *uop_range(UOpStore *st, int64_t extent, int64_t id, AxisType type);
UOp *uop_range_of(UOpStore *st, UOp *extent, int64_t id, AxisType type);
/* same op, dtype, lanes, arg; other sources */
UOp *uop_with_src(UOpStore *st, const UOp *u, UOp *const *src);

/* arg.reduce with a list */
static inline bool op_has_axes(Ops op) { return op_arg(op) == ARG_AXES; }

/* The list in its arg, or NULL. */
static inline const Ints *uop_list(const UOp *u) {
  ArgForm form = op_arg((Ops)u->op);
  return form == ARG_AXES ? u->arg.reduce.axes : form == ARG_INTS ? u->arg.ints : NULL;
}

/* A BUFFER of a tensor graph is what one memory holds at one time: slot = uid of the memory | version << 32.
 */
static inline int64_t buffer_uid(const UOp *u) { return u->arg.param.slot & UINT32_MAX; }

static inline uint32_t buffer_version(const UOp *u) { return (uint32_t)(u->arg.param.slot >> 32); }

/* A RANGE's bit in `ranges`. Those past 62 share one, which no REDUCE closes: it says "maybe". */
static inline uint64_t range_bit(int64_t id) { return UINT64_C(1) << (id < 0 || id > 63 ? 63 : id); }

/* What it is, without the AFTERs that say from when on: a memory, a register, an INDEX. */
static inline const UOp *uop_base(const UOp *u) {
  while (u->op == OPS_AFTER)
    u = u->src[0];
  return u;
}

static inline bool is_const(const UOp *u) { return u->op == OPS_CONST; }

static inline bool is_const_int(const UOp *u, int64_t v) { /* NULL, where there was no memory, is none */
  return u && u->op == OPS_CONST && !dtype_is_float((DType)u->dtype) && u->arg.v.i == v;
}

/* Whether u or what is below it has the op OPS_##name, one of ASKED_OPS: others do not compile. */
#define uop_has(u, name) (((u)->opmask >> ASKED_##name & 1) != 0)

/* ---- a map from nodes to nodes for the time of one walk. Its memory stays with the keys' store and is
 * reused: a walk costs what it visits, not what the store holds. Maps nest; a map sees neither swept nodes
 * nor the entries of an earlier walk. */
typedef struct UOpMap UOpMap;
UOpMap *uop_map_begin(UOpStore *keys, UOpStore *values); /* NULL: out of memory */
void uop_map_end(UOpStore *keys, UOpMap *m);             /* NULL is fine */
UOp *uop_map_get(const UOpMap *m, const UOp *u);         /* NULL: not there */
/* false: out of memory, or v is NULL */
bool uop_map_put(UOpStore *keys, UOpMap *m, const UOp *u, const UOp *v);
/* a map holds nodes, or numbers */
bool uop_map_put_number(UOpStore *keys, UOpMap *m, const UOp *u, uint32_t n);
uint32_t uop_map_number(const UOpMap *m, const UOp *u); /* UINT32_MAX: not there */

/* ---- walking. Iterative; depth costs heap, never stack. */
typedef Vec(UOp *) UOpVec;
/* sources first */
bool uop_toposort(UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots, UOpVec *out);
/* Whether a root is `what`, or it is below one. True, too, where memory runs out: it may be. */
bool uop_contains(UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots, const UOp *what);

/* ---- rewriting (rewrite.c): to the fixed point, sources first. A matcher returns NULL or self when nothing
 * matches. */
typedef struct Rewrite Rewrite;
typedef UOp *(*Matcher)(Rewrite *rw, UOp *self);

typedef struct RuleInfo {
  const char *name, *where;
} RuleInfo;

struct Rewrite {
  UOpStore *st;
  TgMem *mem;
  void *ctx;     /* the pass's own state */
  bool top_down; /* a node before its sources: a rule sees what they were, not what they became */
  bool required; /* lowering that a target needs: the limit does not stop it */
  uint16_t mark; /* UOpMark that the matcher's fixed points carry: those are not walked; 0: none */
  uint64_t ops;  /* op_bit of each op that is looked for: what has none of them below is not walked; 0: all */
  uint64_t firings;
  bool failed; /* out of memory, no fixed point within the budget, or a firing was refused */
};

/* Shared by all rewrites of a context: every store that it compiles in carries it, so no call passes it on.
 */
struct RewriteEnv {
  uint64_t visits, firings, created; /* nodes visited by graph_rewrite, rules that fired, nodes made */
  uint64_t nested; /* nodes walked by rewrites, substitutions and toposorts started inside a rule */
  int64_t limit;   /* firings left of what is not required; negative: no limit */
  int in_rule;     /* depth of matchers now running */
  /* NULL, or told of every firing; false refuses it and fails the rewrite. */
  bool (*on_fire)(RewriteEnv *env, Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result);
};

UOp *graph_rewrite(Rewrite *rw, Matcher m, UOp *root); /* NULL: failed */
/* Called by generated matchers: counts, traces, honours the limit; NULL when the rule may not fire. */
UOp *rule_fired(Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result);
/* u with its sources as m has them, in st, the store of m's values. NULL: out of memory, or m lacks a source.
 */
UOp *uop_mapped(UOpStore *st, TgMem *mem, const UOp *u, const UOpMap *m);
/* The graph below root in another store. m, from nodes of `from` to nodes of `to`, keeps what was copied: it
 * may be given again. NULL: out of memory. */
UOp *uop_copy(UOpStore *to, UOpStore *from, UOpMap *m, TgMem *mem, UOp *root);
/* one pass; no rules */
UOp *uop_substitute(UOpStore *st, TgMem *mem, UOp *root, int n, UOp *const *from, UOp *const *to);

/* ---- symbolic (rules/symbolic.rules, with linear.c) */
UOp *pm_symbolic(Rewrite *rw, UOp *self);
UOp *uop_simplify(UOpStore *st, TgMem *mem, UOp *u); /* graph_rewrite with pm_symbolic */
/* the same for a node whose sources are simplified: no walk unless a rule fires */
UOp *uop_simplify_top(UOpStore *st, TgMem *mem, UOp *u);

/* e = *k * r + what r is not in (*k is 0 where it is nowhere in e). No node is made. False: it is not so, or
 * cannot be told without making any. */
bool uop_coefficient(UOp *e, const UOp *r, int64_t *k);
/* Whether an index is surely a multiple of n, in a graph or a list. */
bool uop_is_multiple(const UOp *u, int64_t n);

enum { MAX_LINEAR = 16 };

/* rest + c + the sum of by[i] * r[i]. rest: simplified, without constant and without any of the ranges; NULL:
 * there is none. */
typedef struct LinearIn {
  UOp *rest;
  int64_t c, by[MAX_LINEAR];
} LinearIn;

/* An index expression as such a sum over n ranges. False: it is none, or out of memory. */
bool uop_linear_in(UOpStore *st, TgMem *mem, UOp *e, int n, UOp *const *r, LinearIn *out);

/* ---- marks: questions that a pass puts into a graph and rules answer */
#define MARKS (op_bit(OPS_SCALE) | op_bit(OPS_SHIFT) | op_bit(OPS_GATE))
/* root, of a kernel graph, with m's answer for every mark in it. NULL: one has none, or out of memory. What
 * has no mark below it is not walked. */
UOp *uop_answer(UOpStore *st, TgMem *mem, Matcher m, void *ctx, UOp *root);

/* Whether 0 <= offset < n wherever gate (a bool; NULL: everywhere) holds. False when it cannot be told. */
static inline int index_naxes(const UOp *x) { return x->nsrc - 1 - (x->arg.i != 0); }

/* Whether an INDEX reads at a place that is read. */
static inline bool index_is_data(const UOp *index) {
  for (int i = 1; i < index->nsrc; i++)
    if (uop_has(index->src[i], INDEX)) return true;
  return false;
}

static inline UOp *index_gate(const UOp *x) { return x->arg.i ? x->src[x->nsrc - 1] : NULL; }

UOp *index_flat(UOpStore *st, TgMem *mem, const UOp *x); /* the flat element offset of an INDEX, simplified */
bool uop_within(UOp *offset, UOp *gate, int64_t n);
/* Index expression e, simpler by what its value is where the gate holds. NULL: out of memory. */
UOp *uop_given(UOpStore *st, TgMem *mem, UOp *e, UOp *gate);

/* ---- text (print.c; parse.c reads it back): `u3 = ADD(u1, u2)` per line, sources first */
extern const char *const axis_type_names[AXIS_GROUP + 1];
/* The type that follows from op and sources: what text need not say. dtype DT_COUNT or lanes 0: it must be
 * said. */
void uop_type_default(Ops op, int nsrc, UOp *const *src, DType *dtype, int *lanes);
bool uop_print(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots);
void uop_expr(Str *out, const UOp *u, int max_nodes); /* one-line infix form for messages */
void uop_line(Str *out, const UOp *u);                /* op, type and arg of one node: a label */
bool uop_dot(Str *out, UOpStore *st, TgMem *mem, UOp *const *roots, size_t nroots);

/* How many blocks along an axis of a grid have anything to do: (add + the sum of by[i] * the i-th variable of
 * the list) / each. each 0: all of them. */
enum { MOST_BLOCK_VARS = 4 };

typedef struct GridBlocks {
  int64_t each, add, by[MOST_BLOCK_VARS];
} GridBlocks;

typedef struct Linear { /* a program for one kernel, in order */
  UOp **at;
  int n;
  char name[96];
  int nparam;              /* PARAM slots are 0 .. nparam-1 */
  int nthread;             /* launches: thread index 0 .. nthread-1 */
  int global[3], local[3]; /* GPU: grid and block sizes */
  GridBlocks blocks[3];    /* of the grid, those that a launch needs (grid_blocks.c) */
} Linear;

/* Of `global` blocks along an axis, those that a launch with these variables makes: one at least. */
static inline int blocks_needed(const GridBlocks *b, int global, const int64_t *vars) {
  if (!b->each) return global;
  int64_t sum = b->add;
  for (int i = 0; i < MOST_BLOCK_VARS; i++)
    if (b->by[i]) sum += b->by[i] * vars[i];
  int64_t n = sum / b->each;
  return n < 1 ? 1 : n < global ? (int)n : global;
}

/* By number of a memory that the list only reads: those that it stores to, as bits, that may lie in the very
 * same place: no element is read after it may have been stored to (in_place.c). */
enum { LIST_SLOTS = 64 };

void list_in_place(const Linear *lin, uint64_t of[LIST_SLOTS]);

bool uop_print_list(Str *out, const Linear *lin, TgMem *mem);

/* Of a DEFINE_LOCAL on a GPU, where each begins at a multiple of 16; and of all that a block has. */
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
