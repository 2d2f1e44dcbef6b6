/* ptx.h: PTX, as NVIDIA's compiler writes it for our kernels, run instruction by instruction. In: the text of
 * a module (ptx_read.c), memory, a launch. Out: what its threads leave in memory, or the first thing that is
 * wrong (ptx_run.c). It shares nothing with the emulator, which replaces inline assembly by functions of its
 * own: so the two tell each other's mistakes. Written by "Parallel Thread Execution ISA". */
#ifndef PTX_H
#define PTX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_OPERANDS = 20, PTX_WORD = 72, PTX_MEMORIES = 16, PTX_WHY = 240 };

typedef enum PtxKind { PTX_REG, PTX_IMM, PTX_SPECIAL } PtxKind;

/* group: operands in one pair of braces have the same; address: [base + value] */
typedef struct PtxOperand {
  PtxKind kind;
  int reg, group;
  bool address, negated;
  uint64_t value;
  char special[16];
} PtxOperand;

typedef struct PtxIns {
  char op[PTX_WORD];
  int guard; /* register of a predicate, or -1 */
  bool unless;
  int n, target, line; /* target: of a branch */
  char label[PTX_WORD];
  PtxOperand at[PTX_OPERANDS];
} PtxIns;

typedef struct PtxSymbol {
  char name[128];
  uint64_t value;
} PtxSymbol;

/* A kernel: its instructions, and how many registers they name. Parameters stand in a row, 8 bytes each. */
typedef struct PtxKernel {
  PtxIns *ins;
  int n, nreg, nparam;
  size_t shared; /* bytes of the arrays that it declares */
} PtxKernel;

/* False: why says which line is not understood. */
bool ptx_read(const char *text, const char *kernel, PtxKernel *out, char why[PTX_WHY]);
void ptx_free(PtxKernel *k);

/* What a kernel may touch, as the host has it. */
typedef struct PtxMemory {
  void *at;
  size_t nbytes;
} PtxMemory;

typedef struct PtxLaunch {
  uint32_t grid[3], block[3];
  size_t dynamic; /* shared bytes that the launch asks for */
  const uint64_t *params;
  PtxMemory memory[PTX_MEMORIES];
  int nmemory;
} PtxLaunch;

bool ptx_run(const PtxKernel *k, const PtxLaunch *l, char why[PTX_WHY]);
#endif
