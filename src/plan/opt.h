/* opt.h: one step of a plan. In: a loop of a kernel. Out: what becomes of it, and the same as text. */
#ifndef TG_OPT_H
#define TG_OPT_H
#include "uop/uop.h"

/* One opt: acts on every loop that descends from range r of the kernel's graph. n: a size, or the other
 * range of a SWAP, TC or TC4. STAGE: r is the number of a buffer, n a range: what moves with it is copied
 * of what is read there; or EVERY_READ. UPCAST takes n iterations that follow each other, UPCASTTOP the
 * same iteration of n equal parts of the loop, as far from each other as can be. codegen/opts.c applies
 * them. */
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

/* The place of an opt in a list, which goes from the outer loops to the inner ones: none stands behind one
 * of a higher rank. THREAD stands anywhere. */
enum { OPT_RANKS = 5 };

static inline bool is_upcast(OptOp op) { return op == OPT_UPCAST || op == OPT_UPCASTTOP; }

int opt_rank(OptOp op);
bool opts_parse(const char *text, TgMem *mem, OptVec *out, TgError *err);
void opt_print(Str *out, const Opt *o);
#endif
