/* stage.h: the data of the scheduler. rangeify makes stages, and the partition joins them into kernels. A
 * stage is a loop nest with one result that has no memory yet. */
#ifndef TG_STAGE_H
#define TG_STAGE_H
#include "schedule/schedule.h"

#define STAGE_SLOT(i)                                                                                        \
  (-1 - (int64_t)(i)) /* the PARAM slot that stands for the value of stage i; the macro is its own inverse */

enum { MOST_REPEATED = 200 }; /* most operations that a kernel may write out more than once */

typedef Vec(int) IntVec;

typedef struct Read {
  UOp *index;
  int stage;
  double trips; /* trip count of the loops that the index depends on */
  /* trip count of the stage's loops, without the innermost ones that the index does not depend on */
  double within;
  uint32_t outs; /* bit d: the index depends on out axis d of the stage */
  bool again;    /* an earlier read of the stage reads the same memory */
  int next;      /* if the stage is mapped: its next read of the same stage; -1: none */
} Read;          /* one read in a stage's value; stage: which one it reads, or -1 for a buffer */

enum { MOST_PRODUCTS = 4 };

/* A sum of products of two factors that are read. Bits are out axes of the stage; the rest are iterations. */
typedef struct Product {
  double trips;
  /* axes along which the factor moves; axes along which the next iteration reads the next element */
  uint32_t moves[2], side[2];
  /* iterations in which both factors read one run; trip count of the longest loop summed over */
  double along, longest;
  double depth; /* number of products that are summed for one result */
} Product;

typedef struct Stage {
  UOp *node;
  /* keep: its value must be written, because it is a root, a store, or read by another kernel */
  bool is_reduce, is_store, keep, inlined;
  bool in_memory; /* it is a copy, requested or made for its readers: later kernels read that copy */
  bool late;      /* it runs just before its first reader */
  int root;       /* index of the root that it computes, or -1 */
  int nout, nred;
  UOp *out[MAX_RANK], *red[MAX_RANK]; /* a RANGE, or CONST 0 for an axis of size 1 */
  UOp *value;                         /* expression over out (and over red inside its REDUCE) */
  /* Out axes whose iterations run in order (ORDERED ranges): the axis of a scan, and the axes of a scatter
   * along which two iterations may write the same place. */
  uint32_t ordered;
  /* It is a scatter: value is TUPLE(value, INDEX of the target, gate), and out are the axes of the value. */
  bool update;
  /* It is ordered, an update, or memory that an update changes: it is never inlined, joined or split. */
  bool fixed;
  int64_t buffer; /* is_store: the number of the BUFFER that is written .. */
  UOp *target;    /* .. at this INDEX over out */
  /* stages whose store must be done before this stage; readers that must be done before this store */
  IntVec after, war;
  /* Buffers that it reads as they were before the stores of this schedule, and buffers that it reads as they
   * are after a store. */
  IntVec old, fresh;
  Vec(Read) reads; /* the INDEX nodes in its value */
  IntVec deps;     /* stages that it reads */
  IntVec readers;  /* stages that read it (partition) */
  /* weight: the weighted operations of its expression. ops: all operations that it does, each counted over
   * the loops that it depends on. apart: the extra operations for reads that are made lane by lane. flops:
   * the operations of its sums of products. */
  double weight, ops, apart, flops;
  /* The share of its iterations that count. In the other iterations its value, or what it reduces, is the
   * constant `other`. */
  double share;
  const UOp *other; /* NULL: all iterations count */
  Product product[MOST_PRODUCTS];
  int nproduct;
  double reads_us;  /* time to read all that it reads, from memory; negative: not known yet */
  bool mapped;      /* it has many reads, and Sched.reads maps them */
  bool heavy;       /* its value contains a transcendental operation */
  bool gathers;     /* it reads memory at indices that are read from memory */
  bool gated;       /* a factor of a sum of products is read behind a gate */
  int nreduce;      /* number of reductions in its value */
  int nested_loops; /* number of loops of the reductions nested in its value */
  bool parts;       /* out axis 0 is the parts of a reduction: it must stay in the grid */
  /* For the parts of an online reduction: if stage `near` (0: none) is in the same kernel, it has just read
   * near_bytes of the bytes that this stage reads. */
  int near;
  double near_bytes;
  int kernel;
  int gmap[MAX_RANK]; /* out axis -> grid axis of its kernel, or -1 */
} Stage;

/* An estimate in us, and its parts. us is IMPOSSIBLE_US if the kernel cannot be built. */
#define IMPOSSIBLE_US 1e30

typedef struct Cost {
  /* of one core; again: time to read operands once more for each block of rows */
  double us, launch, compute, memory, again;
  double cores; /* number of cores that get a share of the grid */
  /* it has a reduction; it has a sum of products in which a factor is reused */
  bool reduces, contracts, rounds; /* rounds: it reduces floats, whose order matters */
} Cost;

enum { MAX_MEMBERS = 64 };

/* A kernel: a set of stages with a common grid. level: higher than the levels of all kernels that it waits
 * for. minout: the lowest level of the kernels that wait for it. */
typedef struct StageSet {
  IntVec mem;
  int ngrid;
  UOp *grid[MAX_RANK];
  int level, minout;
  Cost cost;
  uint64_t seen; /* the number (Sched.looks) of the look that set strict and asked */
  /* the stage that looks must be in a later kernel; its join into this kernel has been tried */
  bool strict, asked;
  int grown; /* the last pass over the refused joins in which another kernel was added to this one */
} StageSet;

typedef Vec(StageSet) StageSets;

typedef struct Refused {
  /* a member of the kernel, and the stage that was refused when it tried to join that kernel */
  int member, stage;
} Refused;

/* Three sets of loops, as bits of one stage: the loops that a node depends on, the loops along which it reads
 * the next element, and the loops that read one run of memory together. */
typedef struct LoopSet {
  uint64_t loops, steps, run;
} LoopSet;

static inline bool fuses(const SchedOptions *o) { return o->most_stages != 1; }

typedef struct Sched {
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const SchedOptions *opt;
  UOpMap *given; /* NULL, or a map from each node of the planned graph to its node in the graph as given */
  Vec(Stage) stages;
  int64_t next_range;
  Vec(LoopSet) loops; /* by node id, while a stage is scanned */
  Map scanned;        /* by slot of a memory: the number of the last scan that found a read of it */
  uint64_t scans;
  IntVec order; /* the stages in topological order: each comes after the stages it needs */
  StageSets ks;
  Vec(Refused) refused; /* joins that were refused, but nearly paid */
  uint64_t walked;      /* counts for Schedule.walked */
  uint64_t looks;       /* counts how often place() looked around a stage */
  Map reads;            /* by reader and stage (read_key): the first such read of a mapped reader */
  /* while a kernel is estimated: the reads of one member that matter for the other members */
  IntVec near;
} Sched;

/* Records that node `now` was node `was` in the graph as given, and returns `now`. Returns NULL if out of
 * memory. */
UOp *was_given(Sched *s, UOp *now, UOp *was);
/* Returns u with one of its axes as two: `parts` by `len`. The end is padded. */
UOp *axis_in_parts(UOpStore *st, UOp *u, int axis, int64_t parts, int64_t len);

/* pair_sums.c: whether u is a sum of products of bytes that is to be computed in 16 bits, and what replaces
 * it. */
bool is_pair_sum(const Sched *s, const UOp *u);
UOp *pair_sum(Sched *s, UOp *sum, UOp *given);

/* ---- the passes; their order is in passes.c */
bool split_reductions(Sched *s, UOp **roots, int nroots); /* replaces the roots by those of the new graph */
bool rangeify(Sched *s, UOp *const *roots, int nroots);   /* fills stages, producers first */

/* Elements from .. to - 1 of an axis. */
typedef struct Interval {
  int64_t from, to;
} Interval;

/* An interval of each axis. */
typedef struct Slice {
  Interval axis[MAX_RANK];
} Slice;

/* Finds slices of n that have no element in common, such that each tuple (a reader's indices into n) is
 * within one slice. Neighbouring slices are joined while they take at most `most` bytes. at and room have
 * space for ntuple entries. Returns the number of slices, or 0 if there is no more than one. */
int slices_found(const UOp *n, UOp *const *tuple, int ntuple, int64_t most, Slice *at, Interval *room);
/* Whether the read at `tuple` begins in the slice. */
bool slice_has(const UOp *n, const Slice *slice, const UOp *tuple);
bool align(Sched *s);
bool hazards(Sched *s);
bool order_stages(Sched *s);
bool readers_build(Sched *s);
bool nest_reductions(Sched *s, bool divided);
bool ranges_within(Sched *s, UOp *e, UOp *of); /* whether every loop of e is a loop of `of` */
/* gates.rules: whether x reads memory over all loops that p depends on. */
bool reads_over(Sched *s, UOp *x, UOp *p);
/* gates.rules: y as it is used if the other factor is gated by p. y gets the gate too if it may read out of
 * bounds. */
UOp *beside_gate(Rewrite *rw, UOp *y, UOp *p);
bool partial_sums(Sched *s);
/* partial.c: makes the stage that reduces `term` over one part of g's loop k. `part` (a LOOP range) is the
 * number of the part and the first axis of the new stage; the stage has loops of its own. */
bool part_stage(Sched *s, const Stage *g, UOp *term, int k, UOp *part, Stage *out);

/* The other steps by which a stage becomes the reduction of its parts. Parts must save the time of
 * LEAST_LAUNCHES_WON launches. part_count: the least number from `least` to `most` that divides n; 0: none.
 * part_read: reads stage `parts` at a part, and at n places of its other axes. over_parts: reduces what is read
 * as g reduces its terms. parts_reduced: that value becomes the value of stage i. parts_wait: stores wait for
 * the parts instead of stage i, because the parts read what it read. parts_drop: drops all stages after the
 * first `had`. */
enum { LEAST_LAUNCHES_WON = 100 };

bool may_part(const Stage *g);
int64_t part_count(int64_t n, int64_t least, int64_t most);
UOp *part_read(Sched *s, int parts, UOp *part, int n, UOp *const *at);
UOp *over_parts(Sched *s, const Stage *g, UOp *of_part, UOp *part);
bool parts_reduced(Sched *s, int i, UOp *value, UOp *part);
bool parts_wait(Sched *s, int i, int parts);
void parts_drop(Sched *s, size_t had);
bool online_in_parts(Sched *s); /* online_parts.c: a step of partial_sums */
bool inline_cheap(Sched *s);
bool order_axes(Sched *s);
/* Returns the reader's value, with the producer's value in place of its reads. */
UOp *with_value(Sched *s, int reader, int producer);
bool inline_stage(Sched *s, int i); /* writes stage i into all its readers */
/* one_hot.c: the sum without the loops of which only one iteration counts. NULL: out of memory. */
UOp *one_hot_dropped(Sched *s, UOp *sum);
bool merge_reduces(Sched *s, Stage *q);        /* if the value is a reduction of a reduction, makes it one */
UOp *pm_gate(Rewrite *rw, UOp *self);          /* rules/reduce.rules: answers GATE */
UOp *pm_merge_reduces(Rewrite *rw, UOp *self); /* rules/reduce.rules; it may leave GATE */
/* Whether, below WHEREs that otherwise choose c, x is a reduction that can be merged with `reduce`. */
bool gates_reduce(const UOp *reduce, const UOp *x, const UOp *c);
bool war_hand_on(Sched *s, int i, int to); /* stores that wait for stage i now wait for `to` */
bool may_move(Sched *s, int i);
/* Whether stage i is a CONTIGUOUS that is read by an ordered loop. Such a loop has no lanes, so the value is
 * computed outside it. */
bool for_lanes(Sched *s, int i);
bool replace_reads(Sched *s, int reader, int producer); /* writes the producer's value into the reader */
bool place_stages(Sched *s);
/* Whether stage i may be fused with stage `with` (`how`: "join", "inline" ..). If so, the fusion is counted
 * and reported. TG_FUSE_LIMIT bounds the number of fusions. */
bool fusion_taken(Sched *s, const char *how, int i, int with);
bool recompute_or_store(Sched *s);

/* Maps out axis d of a stage to a grid axis, or to -1 for an inner loop. A trial maps to a grid that does not
 * exist yet. */
typedef struct Gmap {
  int (*of)(const struct Gmap *g, int stage, int d);
  Sched *s;
  int stage;
  const void *trial;
} Gmap;

/* Computes how many elements each member keeps in local memory per grid point: 0 for a value in a register,
 * or for one that is computed again at each read. Returns false if the required elements do not fit; *bytes
 * is then what they would take. */
bool local_plan(Sched *s, const Gmap *g, const int *mem, size_t nmem, int64_t *elems, int64_t *bytes);
int gmap_placed(const Gmap *g, int stage, int d); /* a Gmap.of: the grid as it is now */
bool narrow_stages(Sched *s);
bool unit_takes(const Target *t, DType d); /* whether a matrix unit takes factors of this dtype */
bool build_kernels(Sched *s, const StageSets *ks, Schedule *out);

/* A store that is about to be built. range: its loops in order; the first nshared are loops of other stores
 * too. */
typedef struct Store {
  UOp *place, *value, *range[2 * MAX_RANK];
  int nrange, nshared;
} Store;

/* A memory (a PARAM's slot) that is part of a whole, and the element of the whole at which it begins. */
typedef struct Segment {
  int64_t slot, at;
} Segment;

/* concat.c: leaves out of a store the parts that are in memory already, where `may` allows that memory to be
 * a segment of what is stored. Calls joined for each such segment. Returns the number of stores that are
 * left, or -1 if out of memory. */
enum { MOST_LEFT = 4 };

int concat_parts(Sched *s, const Store *store, bool (*may)(void *user, const Segment *p),
                 void (*joined)(void *user, const Segment *p), void *user, Store left[MOST_LEFT]);
/* concat.c: makes the whole the argument of a kernel that uses a part of it. */
bool parts_joined(Sched *s, Schedule *out);
/* bands.c: changes the schedule if its kernels take more memory than the target has. */
bool in_bands(Sched *s, Schedule *out);
bool arguments_begun(Sched *s, Schedule *out); /* offsets.c */

static inline void ints_drop(IntVec *v, int x) { /* drops one x; the last entry takes its place */
  for (size_t i = 0; i < v->len; i++)
    if (v->at[i] == x) {
      v->at[i] = v->at[--v->len];
      return;
    }
}

/* ---- kernel_cost.c */
bool stage_scan(Sched *s, int i); /* recomputes reads, deps and work from the value */
/* Maps the reads of stages that have many reads. A map is valid until its stage is scanned again. Returns
 * false if out of memory. */
bool reads_map(Sched *s);
/* The number of the first read of `stage` by a mapped reader; -1: none. */
int read_first(const Sched *s, int reader, int stage);
bool stage_reads(const Sched *s, int reader, int stage);
/* Bytes that the read moves if it is made `trips` times. */
double read_bytes(const Sched *s, const Read *rd, double trips);
double value_bytes(const Stage *g, double nelem);
/* Whether it sums products whose factors move with different loops of the result, so that a factor is
 * reused. */
bool contracts(const Stage *g);
bool divides_sum(const UOp *index); /* whether the index of one axis divides more than a single loop */
/* The value below a cast, or below a gate of which one side is a constant. NULL: v is neither. */
const UOp *gated_value(const UOp *v);
int64_t inner_size(Sched *s, const Gmap *g, int i); /* number of elements of member i per grid point */
Cost kernel_cost(Sched *s, const int *mem, size_t nmem, int ngrid, UOp *const *grid, const Gmap *gm);
Cost cost_on_cores(const Sched *s, Cost c, double from, double to); /* c, but on `to` cores, not `from` */
/* The cost of stage i as a kernel of its own. Maps its axes to that grid, and fills *one if not NULL. */
Cost stage_cost(Sched *s, int i, StageSet *one);
void cost_print(Str *out, const Cost *c);

static inline Stage *stage_at(Sched *s, int i) { return &s->stages.at[i]; }

bool ints_have(const IntVec *v, int x);

/* The dtype of the stage's memory. narrow.c may have made it different from the node's. */
static inline DType stage_dtype(const Stage *g) {
  return (DType)(g->is_store || g->update || !g->value ? g->node->dtype : g->value->dtype);
}

int64_t stage_out_size(const Stage *g);
int64_t stage_iterations(const Stage *g);
/* Returns the INDEX of a buffer at idx, one index per axis of `extents`. Axes of extent 1 are left out. If
 * fewer than two axes remain, the index is flat. */
UOp *memory_index(Sched *s, DType dt, int64_t nelem, int64_t slot, int n, const int64_t *extents,
                  UOp *const *idx);
/* Returns a op c, simplified. c is a number or a symbolic size. */
UOp *index_by(Sched *s, Ops op, UOp *a, int64_t c);
/* Maps an index tuple of a movement op to one of its source: an OPS_TUPLE with an index per axis. For a PAD
 * it has one more entry, the condition under which the place is inside the source. */
UOp *movement_index(Sched *s, UOp *n, UOp *tuple);

#define fit_one(r, s) ((r).n + (s).n <= MAX_RANK) /* two lists of loops fit in one reduction */

static inline bool has_divmod(const UOp *e) { return uop_has(e, FLOORDIV) || uop_has(e, FLOORMOD); }

/* The last axis of an INDEX (counted from 1) along which it moves. Neighbours in memory are neighbours along
 * this axis. */
static inline int last_axis(const UOp *index) {
  int last = index->nsrc - 1;
  while (last > 1 && is_const(index->src[last]))
    last--;
  return last;
}

static inline bool same_memory(const UOp *a, const UOp *b) {
  return a->src[0]->arg.param.slot == b->src[0]->arg.param.slot;
}

/* The maximum trip count of a loop, for which memory is allocated. Loops with equal extent nodes have equal
 * trip counts. */
int64_t range_extent(const UOp *r);

static inline bool same_extent(const UOp *a, const UOp *b) {
  return a->op == b->op && (a->op != OPS_RANGE || a->src[0] == b->src[0]);
}

static inline bool is_counted(const UOp *r) {
  return r->op != OPS_RANGE || is_const(r->src[0]);
} /* its trip count is known at compile time */

static inline int read_stage(const UOp *index) { /* the stage that an INDEX reads, or -1 */
  return index->op == OPS_INDEX && index->src[0]->arg.param.slot < 0
             ? (int)STAGE_SLOT(index->src[0]->arg.param.slot)
             : -1;
}
#endif
