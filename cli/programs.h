/* programs.h: named programs of tensors, for measuring and counting the compiler's own work. They use only
 * tg.h and tg_nn.h; `tg bench` and tests/unit/test_counts.c share them. program_begin makes parameters,
 * optimiser and data once. program_step then builds the graph and realizes it, so that a step after
 * tg_cache_clear is exactly one lowering. */
#ifndef TG_PROGRAMS_H
#define TG_PROGRAMS_H
#include "tg_nn.h"

typedef struct ProgramState ProgramState;

/* size: the default of `n` (ops, layers, parts ..). peer_ms: how long tinygrad a9069c177a took to lower the
 * same program with n = `size`, on another day; 0: not measured. */
typedef struct ProgramInfo {
  const char *name;
  int size;
  double peer_ms;
} ProgramInfo;

const ProgramInfo *program_info(int i);
const char *program_name(int i);    /* both return NULL past the last program */
int program_find(const char *name); /* -1: no program has this name */
/* n 0: the default size. Returns NULL if out of memory or if there is an error in the context. */
ProgramState *program_begin(TgContext *ctx, int i, int n);
TgStatus program_step(ProgramState *p);
void program_end(ProgramState *p); /* must come before tg_close; NULL is fine */
#endif
