/* emulate_private.h: the parts of the emulator: emulate.c (modules, launches), emulate_memory.c (memory),
 * emulate_shadow.c (the history of each byte), emulate_calls.c (what a kernel calls), emulate_warp.c (what a
 * warp does together), emulate_group.c (what four warps do together), emulate_text.c (the text around a
 * kernel). */
#ifndef TG_EMULATE_PRIVATE_H
#define TG_EMULATE_PRIVATE_H
#include "emu/emulate.h"
#include "emu/fibre.h"

enum { MOST_THREADS = 1024, MOST_DYNAMIC = 256 << 10, MOST_PARAMS = 512, STACK_BYTES = 128 << 10 };

/* ---- memory and its shadow.
 * Time is a counter of the whole emulator, the tick. It grows with each launch, block, barrier and meeting of
 * a warp, so cells never have to be cleared. A cell records the last write and the reads since then. */
typedef struct Cell {
  uint64_t w, r;
} Cell;

/* Memory with a shadow: a cell for each word of four bytes, and one for each byte, which is used if the bytes
 * of a word have different histories. */
typedef struct Space {
  uintptr_t lo;
  size_t size;
  Cell *words, *bytes;
  bool is_shared;
} Space;

typedef struct Allocation {
  uintptr_t at;
  size_t nbytes, npage;
  bool live;
} Allocation;

/* An array in shared memory. at: offset in the module's shared memory. */
typedef struct Array {
  char name[48];
  size_t at, nbytes;
  const EmuKernel *owner; /* NULL: belongs to no single kernel */
} Array;

struct EmuKernel {
  char name[128];
  EmuModule *module;
  void (*entry)(void *const *params);
  /* number of parameters, most threads of a block, sizes of the parameters */
  const int32_t *info;
  size_t shared_bytes;
};

struct EmuModule {
  Emu *emu;
  EmuModule *next;
  Image image;
  Vec(EmuKernel *) kernels;
  Vec(Array) arrays;
  Space shared; /* all variables of the module, and the space for dynamic arrays */
};

/* ---- threads */
/* The memory whose accesses a barrier orders. */
enum { ORDERS_SHARED = 1, ORDERS_DEVICE = 2 };

typedef enum WaitFor { FRESH, READY, AT_BARRIER, AT_WARP, DONE } WaitFor;

typedef enum WarpOp {
  WARP_SYNC,
  WARP_SHUFFLE,      /* reads lane arg */
  WARP_SHUFFLE_XOR,  /* lane ^ arg */
  WARP_SHUFFLE_UP,   /* lane - arg */
  WARP_SHUFFLE_DOWN, /* lane + arg */
  WARP_BALLOT,
  WARP_MMA,
  WARP_GROUP,
  /* arg: number of matrices; negative: they are transposed */
  WARP_ROWS
} WarpOp;

/* What a lane brings to a meeting of its warp, and what it receives. */
typedef struct WarpCall {
  WarpOp op;
  uint32_t id, line, mask;
  uint64_t value, result;
  int arg, width;
  const void *a, *b, *c; /* fragments; WARP_ROWS: a is a row */
  void *d;
} WarpCall;

/* An asynchronous copy of 4, 8 or 16 bytes that has not been waited for. */
typedef struct PendingCopy {
  uintptr_t to, from;
  uint32_t nbytes, group;
} PendingCopy;

/* A step of a matrix unit of four warps that has not been waited for: the descriptors of its operands, the
 * words of its sum, and their values when it began. */
enum { MOST_GROUP_COLUMNS = 256 };

typedef struct PendingStep {
  uint64_t a, b;
  uint32_t columns, group, line;
  int kind;
  float *sum[MOST_GROUP_COLUMNS / 2];
  float held[MOST_GROUP_COLUMNS / 2];
  /* an earlier step under way also adds to the word */
  bool follows[MOST_GROUP_COLUMNS / 2];
} PendingStep;

typedef struct Stack Stack;

typedef struct Thread {
  Stack *stack;
  WaitFor state;
  /* id, line, orders: of the barrier at which it waits; orders: set of ORDERS_ bits */
  uint32_t index[3], id, line, orders;
  WarpCall warp;
  Vec(PendingCopy) copies;
  uint32_t group; /* group of the next asynchronous copy */
  Vec(PendingStep) steps;
  uint32_t step_group; /* group of the next step */
  /* there was a fence since the registers of steps were used otherwise */
  bool step_begun;
  /* units that read memory themselves see what it wrote up to this tick */
  uint64_t seen_tick;
} Thread;

struct Stack {
  Fibre fibre;
  Stack *next; /* next in the list of idle stacks */
  Emu *emu;
  Thread *thread;
  uint8_t *low;
  bool begun;
};

/* The order of the blocks: the block at position i is i * step + start, modulo the number of blocks. */
typedef struct Walk {
  uint64_t n, step, start;
} Walk;

struct Emu {
  TgMem *mem;
  const TgOs *os;
  uint64_t order, random, tick;
  /* accesses of the running thread since it began to run, and the most that are allowed */
  uint64_t accesses, patience;
  bool strict;

  /* memory */
  Space device;
  /* for each page of device memory: 1 + the number of its allocation */
  uint32_t *owner;
  size_t npage, next_page, page_bytes;
  Vec(Allocation) allocations;
  Vec(uint32_t) idle_records;
  uint32_t recent; /* the allocation that was used last */
  EmuModule *modules;

  /* the launch under way */
  const EmuKernel *kernel;
  void *const *params;
  uint32_t grid[3], block[3], block_index[3];
  size_t shared_limit; /* bytes of dynamic shared memory */
  size_t recent_array; /* the array of the module that was used last */
  uint32_t nthread;
  Thread *threads; /* MOST_THREADS of them */
  Thread *current;
  uint32_t *turn;
  uint64_t launch_tick, block_tick; /* ticks of their beginnings */
  uint64_t barrier_tick[2];         /* last barrier of device memory and of shared memory */
  uint64_t warp_tick[MOST_THREADS / WARP];
  Walk walk;
  Vec(uint64_t) block_ticks; /* ticks of the blocks so far */
  TgError *err;
  bool failed;
  TgStatus fail_status;

  /* stacks */
  /* MOST_THREADS of them, each behind a page that must not be accessed */
  uint8_t *stacks;
  Stack *stack;
  size_t stack_stride;
  uint32_t nstack;
  Stack *idle;
  Fibre scheduler;
};

/* The emulator that runs on this OS thread. */
extern _Thread_local Emu *emu_running;

/* UNIT_READS: a read by a matrix unit, which sees what a thread wrote only after that thread's fence. */
typedef enum Access { READS, WRITES, ATOMIC, ATOMIC_LOADS, ATOMIC_STORES, UNIT_READS } Access;

/* ---- emulate_memory.c */
bool memory_new(Emu *e);
void memory_end(Emu *e);
bool space_new(Emu *e, Space *s, uintptr_t lo, size_t size, bool is_shared);
void space_end(Emu *e, Space *s);
/* Like emu_holds, but faster if the allocation was just used. */
bool memory_holds(Emu *e, uintptr_t at, size_t nbytes);

enum { WORD = 4, PLACE_TEXT = 160 };

/* Describes where a range is, or how far from the nearest memory: "at byte 4 of argument 2 (256 bytes)". */
const char *place_text(const Emu *e, const Space *s, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]);

/* ---- emulate_shadow.c */
/* Marks bytes as written by the host (set) or as never written. */
void shadow_mark(const Space *s, uintptr_t at, size_t nbytes, bool set);
bool shadow_is_set(const Space *s, uintptr_t at);
void memory_access(Emu *e, uintptr_t at, size_t nbytes, Access how);
/* An asynchronous copy into shared memory. memory_pending: it begins, and no thread may access the bytes.
 * memory_arrived: its thread has waited for it. */
void memory_pending(Emu *e, uintptr_t at, size_t nbytes);
void memory_arrived(Emu *e, uintptr_t at, size_t nbytes);

/* ---- emulate.c */
/* Ends the launch with an error of the running thread. Returns only if no thread runs. */
void emu_fail(Emu *e, const char *fmt, ...) TG_PRINTF(2, 3);
/* the same for an error of thread t */
void emu_fail_at(Emu *e, const Thread *t, const char *fmt, ...) TG_PRINTF(3, 4);
/* Stops the running thread until the scheduler continues it. */
void thread_stop(Emu *e, WaitFor state);

static inline uint32_t thread_number(const Emu *e, const Thread *t) { return (uint32_t)(t - e->threads); }

enum { INDEX_TEXT = 48 };

void block_index_at(const Emu *e, uint64_t i, uint32_t out[3]); /* of the block at position i of the order */
const char *index_text(char out[INDEX_TEXT], const uint32_t v[3]); /* writes "(x,y,z)" */

/* ---- emulate_calls.c */
extern const ElfExtern emu_calls[];
extern const size_t emu_ncall;

/* ---- emulate_warp.c */
/* Continues the warps whose lanes have all met. Returns true if there were any, or if the launch has
 * failed. */
bool warps_meet(Emu *e);

/* ---- emulate_group.c: matrix units of four warps */
uint64_t emu_group_place(const void *p, uint64_t apart);
void emu_group_step(uint32_t id, uint32_t line, int kind, uint64_t a, uint64_t b, uint32_t words,
                    float **sum);
void emu_group_begin(void);
void emu_group_commit(void);
void emu_group_wait(int left);
void emu_group_fence(void);
/* Called when all threads have ended: no thread may have left out a wait. */
void groups_ended(Emu *e);

/* ---- emulate_text.c */
extern const char emu_prelude[];
/* Writes the text with everything around it. Returns false if out of memory. */
bool emu_text(Str *out, const EmuDialect *d, const char *text);
#define EMU_ENTRY   "emu_entry_"
#define EMU_INFO    "emu_info_"
#define EMU_DYNAMIC "emu_dynamic_"
#endif
