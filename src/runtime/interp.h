/* interp.h: a kernel as the reference device runs it. In: interp_compile.c makes it of a list. Out: interp.c
 * runs it. The one key fact: every value has a number, its slot, so nothing is looked up while it runs. */
#ifndef TG_INTERP_H
#define TG_INTERP_H
#include "runtime/cpu.h"

/* Slots hold Scalars, one per lane. A memory is a PARAM or a DEFINE_LOCAL. */
typedef struct Ins {
  uint8_t op, dtype, from, lanes; /* from: dtype of the operands */
  bool reg;                       /* LOAD, STORE: of a register */
  /* jump: RANGE -> its END, END -> its RANGE, IF -> its ENDIF; gate: slot or -1; mem: index */
  int dst, nsrc, mem, gate, jump;
  int *src; /* slots: operands; LOAD offset [alt]; STORE offset value; register accesses: value */
  /* GEP: first lane; SHUFFLE: how far apart lanes are; VAR: its number; RANGE: 1 where iterations are
   * distributed to threads; SPECIAL: axis, + 3 for the grid */
  Scalar value;
} Ins;

/* a constant that stands nowhere in the list */
typedef struct Loose {
  int slot, lanes;
  Scalar value;
  struct Loose *next;
} Loose;

/* slot -1: local */
typedef struct Memory {
  DType dtype;
  int64_t nelem;
  int slot;
} Memory;

struct Program {
  Arena arena;
  char name[96];
  Ins *at;
  Memory *mem;
  Loose *loose;
  int n, nslot, nmem, nthread, global[3], local[3];
  GridBlocks blocks[3];
};

/* A STORE of a WMMA whose operands are memory: results, a and b, each with the slot of its offset and its
 * memory, then rows, columns and steps, the pitch of a and of panels of b. */
enum { BLOCK_MEMORY = 3, BLOCK_ROWS = 6, BLOCK_PARTS = 11 };

TgStatus interp_compile(Device *d, const KernelSpec *k, int n, Program **out);
void interp_unload(Device *d, Program *p);
#endif
