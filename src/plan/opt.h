/* opt.h: one step of a plan. In: a loop of a kernel. Out: what it becomes, and the same as text. */
#ifndef TG_OPT_H
#define TG_OPT_H
#include "uop/uop.h"

/* One opt. It acts on every loop that descends from range r of the kernel's graph. n is a size, or the other
 * range of a SWAP, TC or TC4. For a STAGE, r is the number of a buffer, and n is a range: the reads of the
 * buffer that move with it are copied. If n is EVERY_READ, all its reads are copied. UPCAST takes n
 * consecutive iterations. UPCASTTOP takes the same iteration of n equal parts of the loop, so that they are
 * as far apart as possible. codegen/opts.c applies opts. */
enum { EVERY_READ = -1 };

typedef enum OptOp {
  OPT_THREAD,
  OPT_ONLINE,
  OPT_TILE,
  OPT_STAGE,
  OPT_SWAP,
  OPT_TC,
  OPT_TC4,
  OPT_DOUBLE_BUFFER,
  OPT_LOCAL,
  OPT_UPCAST,
  OPT_UPCASTTOP,
  OPT_VEC,
  OPT_UNROLL,
  OPT_GROUP
} OptOp;

typedef struct Opt {
  OptOp op;
  int64_t r, n;
} Opt;

typedef Vec(Opt) OptVec;

/* The rank of an opt. A list goes from the outer loops to the inner ones: no opt may follow one of a higher
 * rank. A THREAD may be anywhere. */
enum { OPT_RANKS = 5 };

static inline bool is_upcast(OptOp op) { return op == OPT_UPCAST || op == OPT_UPCASTTOP; }

int opt_rank(OptOp op);
bool opts_parse(const char *text, TgMem *mem, OptVec *out, TgError *err);
void opt_print(Str *out, const Opt *o);
#endif
