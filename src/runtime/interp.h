/* interp.h: a kernel as the reference device runs it. In: interp_compile.c makes it from a list. Out:
 * interp.c runs it. The one key fact: every value has a number, its slot, so nothing is looked up at run
 * time. */
#ifndef TG_INTERP_H
#define TG_INTERP_H
#include "runtime/cpu.h"

/* One instruction. A slot holds one lane of a value as a Scalar; a value has consecutive slots. A memory is a
 * PARAM or a DEFINE_LOCAL. */
typedef struct Ins {
  uint8_t op, dtype, from, lanes; /* from: dtype of the operands */
  bool reg;                       /* LOAD, STORE: the place is a register */
  /* dst: first slot of the result. jump: of a RANGE its END, of an END its RANGE, of an IF its ENDIF. gate:
   * slot, or -1. mem: index of a memory */
  int dst, nsrc, mem, gate, jump;
  /* slots of the operands; LOAD: offset [alternative]; STORE: offset, value; access to a register: register
   * [value] */
  int *src;
  /* GEP: first lane; SHUFFLE: thread i gets the value of thread i ^ value; VAR: its number; RANGE: 1 if its
   * iterations are distributed over threads; SPECIAL: axis, + 3 for the grid */
  Scalar value;
} Ins;

/* a constant that is not in the list */
typedef struct Loose {
  int slot, lanes;
  Scalar value;
  struct Loose *next;
} Loose;

/* slot: of the PARAM; -1: local memory */
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

/* The operands of a STORE of a WMMA whose operands are in memory: slots of the offsets of the results, a and
 * b; the memories of these; the numbers of rows, columns and steps; the distances between rows of a and
 * between panels of b. */
enum { BLOCK_MEMORY = 3, BLOCK_ROWS = 6, BLOCK_PARTS = 11 };

TgStatus interp_compile(Device *d, const KernelSpec *k, int n, Program **out);
void interp_unload(Device *d, Program *p);
#endif
