/* stage.h: what rangeify makes and the partition joins. A stage is a loop nest with one result; not yet memory. */
#ifndef TG_STAGE_H
#define TG_STAGE_H
#include "schedule/schedule.h"

#define STAGE_BASE (INT64_C(1) << 41)       /* PARAM slot of a value that stage slot - STAGE_BASE computes */
#define MAX_RANK 16
typedef Vec(int) IntVec;
typedef struct Stage {
  UOp *node;
  bool is_reduce, is_store, keep, inlined;  /* keep: a root, a store, or read by another kernel: must be written */
  int root;                                 /* index of the root it computes, or -1 */
  int nout, nred;
  UOp *out[MAX_RANK], *red[MAX_RANK];       /* RANGE, or CONST 0 for an axis of size 1 */
  UOp *value;                               /* expression over out (and red inside its REDUCE) */
  int64_t buffer;                           /* is_store: BUFFER number written .. */
  UOp *store_index;                         /* .. at this flat offset */
  IntVec after, war;                        /* stages whose store must have happened; readers that a store must wait for */
  IntVec deps;                              /* stages read */
  double weight;                            /* weighted operations per element of its iteration space */
  bool heavy;                               /* transcendental inside */
  int kernel;
  int gmap[MAX_RANK];                       /* out axis -> grid axis of its kernel, or -1 */
} Stage;
typedef struct Sched {
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const SchedOptions *opt;
  Vec(Stage) stages;
  int64_t next_range;
} Sched;
extern const Pass schedule_passes[];
extern const size_t schedule_npass;
bool schedule_run(Sched *s, UOp *const *roots, int nroots, Schedule *out);   /* the passes, in order (passes.c) */
bool rangeify(Sched *s, UOp *const *roots, int nroots);      /* fills stages, producers first */
bool stage_scan(Sched *s, int i);                            /* recomputes deps, weight from value */
bool partition(Sched *s, Schedule *out);                     /* stages -> kernels */
int64_t stage_out_size(const Stage *g);
int64_t stage_iterations(const Stage *g);
static inline int64_t range_extent(const UOp *r) { return r->op == OPS_RANGE ? r->src[0]->arg.v.i : 1; }
static inline int read_stage(const UOp *index) {             /* INDEX -> stage it reads, or -1 */
  return index->op == OPS_INDEX && index->src[0]->arg.param.slot >= STAGE_BASE ? (int)(index->src[0]->arg.param.slot - STAGE_BASE) : -1;
}
#endif
