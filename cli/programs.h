/* programs.h: named programs of tensors, for measuring and counting the compiler's own work. Built on tg.h
 * and tg_nn.h alone; `tg bench` and tests/unit/test_counts.c share them. Parameters, optimiser and data are
 * made once (program_begin); program_step then builds the graph and realizes it, so that a step after
 * tg_cache_clear is exactly one lowering. */
#ifndef TG_PROGRAMS_H
#define TG_PROGRAMS_H
#include "tg_nn.h"

typedef struct ProgramState ProgramState;

/* name; size: the default of `n` (ops, layers, parts ..); peer_ms: tinygrad a9069c177a's lowering of the same
 * program on another day (0: not measured), n is then `size`. */
typedef struct ProgramInfo {
  const char *name;
  int size;
  double peer_ms;
} ProgramInfo;

const ProgramInfo *program_info(int i); /* NULL past the last */
const char *program_name(int i);        /* NULL past the last */
int program_find(const char *name);     /* -1: no program is called that */
/* n 0: the default size. NULL: out of memory, or an error in the context. */
ProgramState *program_begin(TgContext *ctx, int i, int n);
TgStatus program_step(ProgramState *p);
void program_end(ProgramState *p); /* before tg_close; NULL is fine */
#endif
