/* emulate_private.h: the parts of the emulator: emulate.c (modules, launches), emulate_memory.c (memory),
 * emulate_shadow.c (what is known of each byte), emulate_calls.c (what a kernel calls), emulate_warp.c (what
 * a warp does together), emulate_text.c (the text around a kernel). */
#ifndef TG_EMULATE_PRIVATE_H
#define TG_EMULATE_PRIVATE_H
#include "emu/emulate.h"
#include "emu/fibre.h"

enum { MOST_THREADS = 1024, MOST_DYNAMIC = 256 << 10, MOST_PARAMS = 512, STACK_BYTES = 128 << 10 };

/* ---- memory and its shadow.
 * Time is a counter of the whole emulator, the tick: it grows with each launch, block, barrier and meeting of
 * a warp, so nothing that a cell remembers needs clearing. A cell keeps who wrote last and who read since. */
typedef struct Cell {
  uint64_t w, r;
} Cell;

/* Memory with a shadow: a cell for each word of four bytes, and one for each byte where the bytes of a word
 * have different histories. */
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

/* An array of shared memory: `at` counts from the start of the module's. */
typedef struct Array {
  char name[48];
  size_t at, nbytes;
  const EmuKernel *owner; /* NULL: of no one kernel */
} Array;

struct EmuKernel {
  char name[128];
  EmuModule *module;
  void (*entry)(void *const *params);
  const int32_t *info; /* number of parameters, most threads, sizes of the parameters */
  size_t shared_bytes;
};

struct EmuModule {
  Emu *emu;
  EmuModule *next;
  Image image;
  Vec(EmuKernel *) kernels;
  Vec(Array) arrays;
  Space shared; /* all variables of the module, and the room for dynamic arrays */
};

/* ---- threads */
/* The memory whose accesses a barrier puts in order. */
enum { ORDERS_SHARED = 1, ORDERS_DEVICE = 2 };

typedef enum WaitFor { FRESH, READY, AT_BARRIER, AT_WARP, DONE } WaitFor;

typedef enum WarpOp {
  WARP_SYNC,
  WARP_SHUFFLE,      /* from lane arg */
  WARP_SHUFFLE_XOR,  /* lane ^ arg */
  WARP_SHUFFLE_UP,   /* lane - arg */
  WARP_SHUFFLE_DOWN, /* lane + arg */
  WARP_BALLOT,
  WARP_MMA,
  WARP_GROUP,
  WARP_ROWS /* arg matrices, turned where it is negative */
} WarpOp;

/* What a lane brings to a meeting of its warp, and takes from it. */
typedef struct WarpCall {
  WarpOp op;
  uint32_t id, line, mask;
  uint64_t value, result;
  int arg, width;
  const void *a, *b, *c; /* fragments; a: a row */
  void *d;
} WarpCall;

/* An asynchronous copy of 4, 8 or 16 bytes that was not waited for. */
typedef struct PendingCopy {
  uintptr_t to, from;
  uint32_t nbytes, group;
} PendingCopy;

/* A step of a matrix unit of four warps that was not waited for: its operands as descriptors, the words of its
 * sum, and what they held when it began. */
enum { MOST_GROUP_COLUMNS = 256 };

typedef struct PendingStep {
  uint64_t a, b;
  uint32_t columns, group, line;
  int kind;
  float *sum[MOST_GROUP_COLUMNS / 2];
  float held[MOST_GROUP_COLUMNS / 2];
  bool follows[MOST_GROUP_COLUMNS / 2]; /* an earlier step that is under way adds to the word, too */
} PendingStep;

typedef struct Stack Stack;

typedef struct Thread {
  Stack *stack;
  WaitFor state;
  uint32_t index[3], id, line, orders; /* of the barrier that it waits at; orders: ORDERS_ */
  WarpCall warp;
  Vec(PendingCopy) copies;
  uint32_t group; /* that the next asynchronous copy belongs to */
  Vec(PendingStep) steps;
  uint32_t step_group; /* the same of steps */
  bool step_begun;     /* a fence stands since registers of steps were touched by others */
  uint64_t seen_tick;  /* what it wrote until then is seen by units that read memory themselves */
} Thread;

struct Stack {
  Fibre fibre;
  Stack *next; /* in the list of idle ones */
  Emu *emu;
  Thread *thread;
  uint8_t *low;
  bool begun;
};

/* The order of the blocks: the one at place i is i * step + start, modulo their number. */
typedef struct Walk {
  uint64_t n, step, start;
} Walk;

struct Emu {
  TgMem *mem;
  const TgOs *os;
  uint64_t order, random, tick;
  uint64_t accesses, patience; /* of the running thread since it began to run; at most */
  bool strict;

  /* memory */
  Space device;
  uint32_t *owner; /* of each page of device memory: the number of its allocation and 1 */
  size_t npage, next_page, page_bytes;
  Vec(Allocation) allocations;
  Vec(uint32_t) idle_records;
  uint32_t recent; /* the allocation that was used last */
  EmuModule *modules;

  /* the launch under way */
  const EmuKernel *kernel;
  void *const *params;
  uint32_t grid[3], block[3], block_index[3];
  size_t shared_limit; /* of dynamic shared memory */
  size_t recent_array; /* of the module: the one that was used last */
  uint32_t nthread;
  Thread *threads; /* MOST_THREADS of them */
  Thread *current;
  uint32_t *turn;
  uint64_t launch_tick, block_tick; /* when they began */
  uint64_t barrier_tick[2];         /* .. of device and of shared memory */
  uint64_t warp_tick[MOST_THREADS / WARP];
  Walk walk;
  Vec(uint64_t) block_ticks; /* of the blocks so far */
  TgError *err;
  bool failed;
  TgStatus fail_status;

  /* stacks */
  uint8_t *stacks; /* MOST_THREADS of them, each behind a page that nobody may touch */
  Stack *stack;
  size_t stack_stride;
  uint32_t nstack;
  Stack *idle;
  Fibre scheduler;
};

/* The emulator that runs on this OS thread. */
extern _Thread_local Emu *emu_running;

/* UNIT_READS: of a matrix unit, which sees what a thread wrote once that thread has said so. */
typedef enum Access { READS, WRITES, ATOMIC, ATOMIC_LOADS, ATOMIC_STORES, UNIT_READS } Access;

/* ---- emulate_memory.c */
bool memory_new(Emu *e);
void memory_end(Emu *e);
bool space_new(Emu *e, Space *s, uintptr_t lo, size_t size, bool is_shared);
void space_end(Emu *e, Space *s);
bool memory_holds(Emu *e, uintptr_t at, size_t nbytes); /* as emu_holds, faster where that was just used */

enum { WORD = 4, PLACE_TEXT = 160 };

/* Where a range is, or how far from what: "at byte 4 of argument 2 (256 bytes)". */
const char *place_text(const Emu *e, const Space *s, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]);

/* ---- emulate_shadow.c */
void shadow_mark(const Space *s, uintptr_t at, size_t nbytes, bool set); /* as the host wrote it, or nobody */
bool shadow_is_set(const Space *s, uintptr_t at);
void memory_access(Emu *e, uintptr_t at, size_t nbytes, Access how);
/* An asynchronous copy into shared memory: begun (nobody may touch the bytes), then done by its thread. */
void memory_pending(Emu *e, uintptr_t at, size_t nbytes);
void memory_arrived(Emu *e, uintptr_t at, size_t nbytes);

/* ---- emulate.c */
/* Ends the launch with what the running thread did wrong; comes back only where no thread runs. */
void emu_fail(Emu *e, const char *fmt, ...) TG_PRINTF(2, 3);
void emu_fail_at(Emu *e, const Thread *t, const char *fmt, ...) TG_PRINTF(3, 4); /* what thread t did */
void thread_stop(Emu *e, WaitFor state); /* until the scheduler lets the running thread go on */

static inline uint32_t thread_number(const Emu *e, const Thread *t) { return (uint32_t)(t - e->threads); }

enum { INDEX_TEXT = 48 };

void block_index_at(const Emu *e, uint64_t i, uint32_t out[3]);    /* of the block at place i of the order */
const char *index_text(char out[INDEX_TEXT], const uint32_t v[3]); /* (x,y,z) */

/* ---- emulate_calls.c */
extern const ElfExtern emu_calls[];
extern const size_t emu_ncall;

/* ---- emulate_warp.c */
/* Lets the warps go on whose lanes have met. True: some have, or the launch has failed. */
bool warps_meet(Emu *e);

/* ---- emulate_group.c: units of four warps. */
uint64_t emu_group_place(const void *p, uint64_t apart);
void emu_group_step(uint32_t id, uint32_t line, int kind, uint64_t a, uint64_t b, uint32_t words,
                    float **sum);
void emu_group_begin(void);
void emu_group_commit(void);
void emu_group_wait(int left);
void emu_group_fence(void);
void groups_ended(Emu *e); /* where all threads have: none may have left out a wait */

/* ---- emulate_text.c */
extern const char emu_prelude[];
/* The text with what is around it. False: out of memory. */
bool emu_text(Str *out, const EmuDialect *d, const char *text);
#define EMU_ENTRY   "emu_entry_"
#define EMU_INFO    "emu_info_"
#define EMU_DYNAMIC "emu_dynamic_"
#endif
