/* stage.h: what rangeify makes and the partition joins. A stage is a loop nest with one result; not yet
 * memory. */
#ifndef TG_STAGE_H
#define TG_STAGE_H
#include "schedule/schedule.h"

#define STAGE_SLOT(i)                                                                                        \
  (-1 - (int64_t)(i)) /* PARAM slot that stands for the value of stage i; its own inverse */

enum { MOST_REPEATED = 200 }; /* operations that may be written out again */

typedef Vec(int) IntVec;

typedef struct Read {
  UOp *index;
  int stage;
  double trips;  /* of the loops that the index depends on */
  double within; /* of all loops of the stage but the innermost ones that it does not depend on */
  uint32_t outs; /* bit d: it depends on out axis d of the stage */
  bool again;    /* another read of the same memory stands before it */
  int next;      /* of a stage that is mapped: its next read of the same stage, -1: none */
} Read;          /* what a value reads: stage, or -1 for a buffer */

enum { MOST_PRODUCTS = 4 };

/* A sum of products of what two factors read, by its loops: bits of out axes, iterations of those summed
 * over. */
typedef struct Product {
  double trips;
  uint32_t moves[2], side[2]; /* a factor moves along it; reads the next element with its next iteration */
  double along, longest;      /* iterations in which both read one run; of the longest loop summed over */
  double depth;               /* products that one result sums */
} Product;

typedef struct Stage {
  UOp *node;
  /* keep: a root, a store, or read by another kernel: must be written */
  bool is_reduce, is_store, keep, inlined;
  bool in_memory; /* a copy, as was asked or for who reads it: kernels after it read that */
  bool late;      /* made just before who reads it */
  int root;       /* index of the root it computes, or -1 */
  int nout, nred;
  UOp *out[MAX_RANK], *red[MAX_RANK]; /* RANGE, or CONST 0 for an axis of size 1 */
  UOp *value;                         /* expression over out (and red inside its REDUCE) */
  /* Out axes whose iterations run in order (ORDERED ranges): a scan's axis, a scatter's that may meet in a
   * place. */
  uint32_t ordered;
  /* A scatter: value is TUPLE(value, INDEX of the target, gate), out are the axes of the value. */
  bool update;
  /* Ordered, update, or memory that an update changes: never inlined, joined or split. */
  bool fixed;
  int64_t buffer;    /* is_store: BUFFER number written .. */
  UOp *target;       /* .. at this INDEX over out */
  IntVec after, war; /* stages whose store must have happened; readers that a store must wait for */
  /* Buffers read as they were before the stores of this schedule, and as they are after one. */
  IntVec old, fresh;
  Vec(Read) reads; /* INDEX nodes in the value */
  IntVec deps;     /* stages read */
  IntVec readers;  /* stages that read it (partition) */
  /* Weighted operations of its expression; all that it makes, each over the loops that it depends on; what
   * reads lane by lane take beside them; operations of sums of products. */
  double weight, ops, apart, flops;
  /* The share of its iterations that count: its value, or what it reduces, is constant `other` elsewhere. */
  double share;
  const UOp *other; /* NULL: all of them count */
  Product product[MOST_PRODUCTS];
  int nproduct;
  double reads_us;  /* to read all that it reads from memory; below 0: not known */
  bool mapped;      /* Sched.reads has its reads: they are many */
  bool heavy;       /* transcendental inside */
  bool gathers;     /* reads at indices that are read */
  bool gated;       /* a factor of a sum of products is read behind a gate */
  int nreduce;      /* reductions in its value */
  int nested_loops; /* loops of the reductions nested in the value */
  bool parts;       /* out axis 0 are the parts of a reduction: it stays in the grid */
  /* Of an online reduction's parts: stage `near` (0: none), if it is
   * in the same kernel, has just read near_bytes of what this one reads. */
  int near;
  double near_bytes;
  int kernel;
  int gmap[MAX_RANK]; /* out axis -> grid axis of its kernel, or -1 */
} Stage;

/* An estimate, us, and its parts: us is IMPOSSIBLE_US for what is not to be built. */
#define IMPOSSIBLE_US 1e30

typedef struct Cost {
  double us, launch, compute, memory, again; /* a core's; again: operands read once per block of rows */
  double cores;                              /* that have a share of the grid */
  bool reduces, contracts;                   /* it has a reduction; one whose factors are used again */
} Cost;

enum { MAX_MEMBERS = 64 };

/* A kernel: a set of stages with a common grid, of these extents. */
typedef struct StageSet {
  IntVec mem;
  int ngrid;
  UOp *grid[MAX_RANK];
  int level, minout;
  Cost cost;
  uint64_t seen;      /* the look that these two are of */
  bool strict, asked; /* the stage that looks must come after it; has asked to join it */
  int grown;          /* the last pass over what was refused in which another kernel became part of it */
} StageSet;

typedef Vec(StageSet) StageSets;

typedef struct Refused {
  int member, stage; /* the kernel of which this was a member when the stage asked to join it */
} Refused;

/* Loops that a node depends on, those along which it reads the next element, and those that read one run of
 * memory together: bits of one stage. */
typedef struct LoopSet {
  uint64_t loops, steps, run;
} LoopSet;

static inline bool fuses(const SchedOptions *o) { return o->most_stages != 1; }

typedef struct Sched {
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const SchedOptions *opt;
  UOpMap *given; /* NULL, or what a node of the graph that is planned was in the graph as given */
  Vec(Stage) stages;
  int64_t next_range;
  Vec(LoopSet) loops; /* by node id, while a stage is scanned */
  Map scanned;        /* by slot of a memory: the last scan that met a read of it */
  uint64_t scans;
  IntVec order; /* stages, each after what it needs */
  StageSets ks;
  Vec(Refused) refused; /* joins that did not pay, but nearly */
  uint64_t walked;      /* for Schedule.walked */
  uint64_t looks;       /* of stages at kernels */
  Map reads;            /* by reader and stage (read_key): the first such read, for readers that are mapped */
  IntVec near;          /* reads of a member that are of other members, while a kernel is estimated */
} Sched;

/* now, which was `was` in the graph as given; NULL: out of memory */
UOp *was_given(Sched *s, UOp *now, UOp *was);
/* u with an axis of size n as two, parts by len, filled up at the end. */
UOp *axis_in_parts(UOpStore *st, UOp *u, int axis, int64_t parts, int64_t len);

/* pair_sums.c: a sum of products of bytes that is to be made in 16 bits, and what it is then. */
bool is_pair_sum(const Sched *s, const UOp *u);
UOp *pair_sum(Sched *s, UOp *sum, UOp *given);

/* ---- the passes; their order is in passes.c */
bool split_reductions(Sched *s, UOp **roots, int nroots); /* roots: become what they are afterwards */
bool rangeify(Sched *s, UOp *const *roots, int nroots);   /* fills stages, producers first */

/* Elements from .. to - 1 of an axis; of each axis. */
typedef struct Interval {
  int64_t from, to;
} Interval;

typedef struct Slice {
  Interval axis[MAX_RANK];
} Slice;

/* Slices of n that have no element in common, such that each tuple, n's indices for a reader, is within one.
 * Neighbours are one up to `most` bytes. at, room: for as many as there are tuples. 0: there is no more than
 * one. */
int slices_found(const UOp *n, UOp *const *tuple, int ntuple, int64_t most, Slice *at, Interval *room);
bool slice_has(const UOp *n, const Slice *slice, const UOp *tuple); /* what is read begins in it */
bool align(Sched *s);
bool hazards(Sched *s);
bool order_stages(Sched *s);
bool readers_build(Sched *s);
bool nest_reductions(Sched *s, bool divided);
bool ranges_within(Sched *s, UOp *e, UOp *of); /* every loop of e is a loop of `of` */
bool reads_over(Sched *s, UOp *x, UOp *p); /* gates.rules: x reads memory, over all loops that p depends on */
/* gates.rules: y where the other factor is gated by p; gated too, if it may read past what is there */
UOp *beside_gate(Rewrite *rw, UOp *y, UOp *p);
bool partial_sums(Sched *s);
/* partial.c: what g reduces of `term`, of part number `part` (a LOOP range) of its loop k, over loops of its
 * own: a stage whose first axis is `part`. */
bool part_stage(Sched *s, const Stage *g, UOp *term, int k, UOp *part, Stage *out);
bool online_in_parts(Sched *s); /* online_parts.c: part of partial sums */
bool inline_cheap(Sched *s);
bool order_axes(Sched *s);
UOp *with_value(Sched *s, int reader, int producer); /* the reader's value, with the producer's in it */
bool inline_stage(Sched *s, int i);                  /* computed by its readers alone */
UOp *one_hot_dropped(Sched *s,
                     UOp *sum); /* one_hot.c: without loops of which one iteration counts; NULL: no memory */
bool merge_reduces(Sched *s, Stage *q);        /* a value that is a reduction of a reduction: one */
UOp *pm_gate(Rewrite *rw, UOp *self);          /* rules/reduce.rules: answers GATE */
UOp *pm_merge_reduces(Rewrite *rw, UOp *self); /* rules/reduce.rules; it may leave GATE */
/* Below WHEREs that choose c, x is a reduction that can be one with `reduce`. */
bool gates_reduce(const UOp *reduce, const UOp *x, const UOp *c);
bool war_hand_on(Sched *s, int i, int to); /* stores that wait for stage i wait for `to` instead */
bool may_move(Sched *s, int i);
/* CONTIGUOUS read by a loop in order, which has no lanes: it is made beside it. */
bool for_lanes(Sched *s, int i);
bool replace_reads(Sched *s, int reader, int producer); /* the producer's value is written into the reader */
bool place_stages(Sched *s);
/* Whether stage i may be fused with stage `with` (`how`: "join", "inline"), which is then counted and told:
 * TG_FUSE_LIMIT says how many may. */
bool fusion_taken(Sched *s, const char *how, int i, int with);
bool recompute_or_store(Sched *s);

/* Where out axis d of a stage stands in a grid: a grid axis, or -1 for an inner loop. A trial asks about a
 * grid that is not yet made. */
typedef struct Gmap {
  int (*of)(const struct Gmap *g, int stage, int d);
  Sched *s;
  int stage;
  const void *trial;
} Gmap;

/* Elements that each member keeps in local memory per grid point: 0 for a register, or for what is computed
 * again at each read. False: what must be kept does not fit; *bytes then says how much it takes. */
bool local_plan(Sched *s, const Gmap *g, const int *mem, size_t nmem, int64_t *elems, int64_t *bytes);
int gmap_placed(const Gmap *g, int stage, int d); /* Gmap.of: the grid as it stands */
bool narrow_stages(Sched *s);
bool unit_takes(const Target *t, DType d); /* factors of this dtype */
bool build_kernels(Sched *s, const StageSets *ks, Schedule *out);

/* A store to be: loops in order, of which the first nshared are other stores' as well. */
typedef struct Store {
  UOp *place, *value, *range[2 * MAX_RANK];
  int nrange, nshared;
} Store;

/* A memory, as a PARAM's slot, and from which element of a whole on it lies there. */
typedef struct Segment {
  int64_t slot, at;
} Segment;

/* concat.c: leaves out of a store what is in memory already, if that may lie where it is stored, and says so for
 * each: joined. The number of stores that are left, -1: out of memory. */
enum { MOST_LEFT = 4 };

int concat_parts(Sched *s, const Store *store, bool (*may)(void *user, const Segment *p),
                 void (*joined)(void *user, const Segment *p), void *user, Store left[MOST_LEFT]);
bool parts_joined(Sched *s, Schedule *out);    /* concat.c: kernels are given what others are parts of */
bool in_bands(Sched *s, Schedule *out);        /* bands.c: where the target has less memory than they take */
bool arguments_begun(Sched *s, Schedule *out); /* offsets.c */

static inline void ints_drop(IntVec *v, int x) { /* one of them; the last takes its place */
  for (size_t i = 0; i < v->len; i++)
    if (v->at[i] == x) {
      v->at[i] = v->at[--v->len];
      return;
    }
}

/* ---- kernel_cost.c */
bool stage_scan(Sched *s, int i); /* recomputes reads, deps and work from the value */
/* Maps the reads of stages that have many, until they are scanned again. False: out of memory. */
bool reads_map(Sched *s);
/* The first read of a stage by a mapped reader, -1: none. */
int read_first(const Sched *s, int reader, int stage);
bool stage_reads(const Sched *s, int reader, int stage);
double read_bytes(const Sched *s, const Read *rd, double trips); /* read so often */
double value_bytes(const Stage *g, double nelem);
/* Whether it sums products whose factors move with different loops of the result: one is used again. */
bool contracts(const Stage *g);
bool divides_sum(const UOp *index);   /* of one axis: it divides more than a loop */
const UOp *gated_value(const UOp *v); /* below a cast, or a gate of which one side is a constant; or NULL */
int64_t inner_size(Sched *s, const Gmap *g, int i); /* elements of member i per grid point */
Cost kernel_cost(Sched *s, const int *mem, size_t nmem, int ngrid, UOp *const *grid, const Gmap *gm);
Cost cost_on_cores(const Sched *s, Cost c, double from, double to); /* where not `from` of them are busy */
Cost stage_cost(Sched *s, int i, StageSet *one); /* alone; places it, and fills *one unless that is NULL */
void cost_print(Str *out, const Cost *c);

static inline Stage *stage_at(Sched *s, int i) { return &s->stages.at[i]; }

bool ints_have(const IntVec *v, int x);

/* What its memory holds: narrow.c may have made it another than the node's. */
static inline DType stage_dtype(const Stage *g) {
  return (DType)(g->is_store || g->update || !g->value ? g->node->dtype : g->value->dtype);
}

int64_t stage_out_size(const Stage *g);
int64_t stage_iterations(const Stage *g);
/* A buffer's element at idx, one per axis of `extents`; axes of extent 1 do not count, and with fewer than
 * two the index is flat. */
UOp *memory_index(Sched *s, DType dt, int64_t nelem, int64_t slot, int n, const int64_t *extents,
                  UOp *const *idx);
/* a op c, simplified; c: a number or a size */
UOp *index_by(Sched *s, Ops op, UOp *a, int64_t c);
/* The index tuple of a movement op's source for one of the op: OPS_TUPLE of an index per axis; of a PAD one
 * more, the condition under which it is inside. */
UOp *movement_index(Sched *s, UOp *n, UOp *tuple);

#define fit_one(r, s) ((r).n + (s).n <= MAX_RANK) /* lists of loops, for one reduction */

static inline bool has_divmod(const UOp *e) { return uop_has(e, FLOORDIV) || uop_has(e, FLOORMOD); }

/* Of the axes of an INDEX, from 1, the last one along which it moves: that of neighbours in memory. */
static inline int last_axis(const UOp *index) {
  int last = index->nsrc - 1;
  while (last > 1 && is_const(index->src[last]))
    last--;
  return last;
}

static inline bool same_memory(const UOp *a, const UOp *b) {
  return a->src[0]->arg.param.slot == b->src[0]->arg.param.slot;
}

/* The most iterations that a loop has: what memory is laid out for. Loops of equal extent nodes have the same
 * number of iterations. */
int64_t range_extent(const UOp *r);

static inline bool same_extent(const UOp *a, const UOp *b) {
  return a->op == b->op && (a->op != OPS_RANGE || a->src[0] == b->src[0]);
}

static inline bool is_counted(const UOp *r) {
  return r->op != OPS_RANGE || is_const(r->src[0]);
} /* its iterations are known here */

static inline int read_stage(const UOp *index) { /* INDEX -> stage it reads, or -1 */
  return index->op == OPS_INDEX && index->src[0]->arg.param.slot < 0
             ? (int)STAGE_SLOT(index->src[0]->arg.param.slot)
             : -1;
}
#endif
