/* cpu.h: private to src/runtime. The parts of the CPU backend: the compiler process, the ELF loader, the
 * cache of kernels and the thread pool. */
#ifndef TG_CPU_H
#define TG_CPU_H
#include "runtime/device.h"
#include <sys/types.h>

/* ---- host.c: memory of devices whose buffers are host memory */
TgStatus host_alloc(Device *d, size_t nbytes, void **out);
void host_free(Device *d, void *p, size_t nbytes);
/* Frees the memory that is kept for reuse. Called when the device closes or memory is short. */
void host_trim(Device *d);
TgStatus host_copy(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus host_clear(Device *d, void *dst, size_t nbytes);
TgStatus host_sync(Device *d);
TgStatus host_pinned(Device *d, size_t nbytes, void **out);
void host_unpinned(Device *d, void *p, size_t nbytes);
TgStatus host_memory(Device *d, uint64_t *unused, uint64_t *total);
TgStatus host_event_record(Device *d, Event **e);
TgStatus host_event_wait(Device *d, Event *e);
double host_event_us(Device *d, Event *from, Event *to);
void host_event_free(Device *d, Event *e);
TgStatus host_graph_new(Device *d, const Launch *l, int n, LaunchGraph **out);
TgStatus host_graph_update(Device *d, LaunchGraph *g, int i, const Launch *l);
TgStatus host_graph_launch(Device *d, LaunchGraph *g);
void host_graph_free(Device *d, LaunchGraph *g);
/* The members that a backend without a queue of its own takes from host.c. */
#define HOST_ORDER                                                                                           \
  .clear = host_clear, .sync = host_sync, .event_record = host_event_record, .event_reach = host_event_wait, \
  .event_wait = host_event_wait, .event_us = host_event_us, .event_free = host_event_free,                   \
  .graph_new = host_graph_new, .graph_update = host_graph_update, .graph_launch = host_graph_launch,         \
  .graph_free = host_graph_free, .host_alloc = host_pinned, .host_free = host_unpinned,                      \
  .memory_info = host_memory

/* ---- elf.c */
/* library: set if image.c loaded the object as a shared library; all other fields are then 0. */
typedef struct Image {
  /* read + execute; if variables were requested, the part from `data` on is read + write */
  uint8_t *at;
  size_t size, mapped;
  /* data: offset of the variables. room: offset of the caller's room, which ends the image. */
  size_t data, room;
  void *library;
} Image;

/* A function that an object may call besides the libc functions that the loader knows. */
typedef struct ElfExtern {
  const char *name;
  void (*fn)(void);
} ElfExtern;

/* Options of elf_load_with. variables: load writable sections too, each `apart` bytes from its neighbours.
 * room: that many bytes are added behind them, and undefined symbols that begin with room_prefix are placed
 * there. */
typedef struct ElfWants {
  const ElfExtern *externs;
  size_t nextern;
  bool variables;
  size_t apart, room;
  const char *room_prefix;
} ElfWants;

/* A symbol of a loaded section: its place in the image and its size. */
typedef struct ElfSymbol {
  const char *name;
  size_t at, nbytes;
  bool is_function, is_variable;
} ElfSymbol;

/* Whether the loader supports objects of this processor and system at all. */
bool elf_is_known(void);
/* Maps and relocates an ELF64 relocatable object. Refuses an object that is truncated, has zero-initialised
 * variables or refers to unknown symbols. Initialised variables are loaded, but cannot be written. */
TgStatus elf_load(TgMem *mem, const TgOs *os, TgError *err, const void *obj, size_t nbytes, Image *out);
/* Like elf_load, with more options. wants NULL: the same as elf_load. */
TgStatus elf_load_with(TgMem *mem, const TgOs *os, TgError *err, const void *obj, size_t nbytes,
                       const ElfWants *wants, Image *out);
/* Calls visit for each symbol, in the object's order, until visit returns false. Returns false then, and if
 * the object is damaged. The object and the options must be ones that elf_load_with accepted. */
bool elf_symbols(const void *obj, size_t nbytes, const ElfWants *wants,
                 bool (*visit)(void *user, const ElfSymbol *s), void *user);
/* Returns the offset of a function in the image, or -1 if there is none. The object must be one that elf_load
 * accepted. */
int64_t elf_symbol(const void *obj, size_t nbytes, const char *name);
void image_unmap(const TgOs *os, Image *im); /* unmaps an image of elf_load */

/* ---- compile.c */
typedef struct Compiler {
  char path[512];
  char ident[256]; /* start of the output of --version, as one line */
  bool is_clang;
} Compiler;

typedef struct Blob {
  uint8_t *at;
  size_t nbytes;
} Blob;

/* Finds the compiler's path. Does not run it. */
TgStatus compiler_find(const TgOs *os, const TgEnv *env, TgError *err, Compiler *out);
/* Runs the compiler with --version and sets ident and is_clang. */
TgStatus compiler_identify(TgMem *mem, const TgOs *os, TgError *err, Compiler *c, int limit_s);
/* Returns one line of text that is part of the cache key. */
const char *compiler_flags(const Compiler *c);

/* One call of the compiler. huge: it compiles without optimisation, because the time to optimise grows faster
 * than the text. gave_up: even that took too long, or a signal ended the compiler (for lack of memory), so
 * there is no object. retried: the compiler died of a unit that is not huge, and the unit was then compiled
 * without optimisation. why: the error, if there is no object. */
typedef struct Unit {
  Blob src, out;
  /* arguments of the compiler, ended by NULL; NULL: those for CPU kernels */
  const char *const *args;
  /* number of kernels, each of which adds the time limit once; 0 counts as 1 */
  int kernels;
  bool huge, gave_up, retried;
  TgError why;
} Unit;

/* One running process. died: a signal ended it, or the child process that did the work. cpu_s: the processor
 * time that it may use, in seconds. late: it used up that time, or the wait for it reached its deadline. src,
 * obj, msg, watch: file descriptors; -1: none. */
typedef struct Job {
  int src, obj, msg, watch;
  pid_t pid;
  bool running, ok, died, late;
  int cpu_s;
  double begin;
} Job;

/* A compiler that is started before there is anything to compile, because loading LLVM is two thirds of the
 * time that a small kernel waits. It waits for its source at the other end of the socket job.src, and ends by
 * itself if nothing arrives for some seconds or if the socket is closed. owner: the process that started it,
 * because a fork has a copy of this struct; 0: there is no spare. nbatch: number of compile_units calls so
 * far. */
typedef struct Spare {
  Job job;
  pid_t owner;
  int nbatch;
} Spare;

void spare_end(const TgOs *os, Spare *s);
/* Compiles n translation units at the same time. Each may use limit_s seconds of processor time for each of
 * its kernels. A unit that waits instead of computing is also ended, somewhat later. Units fail
 * independently: `why` holds a unit's error, and the caller frees its object if it has one. spare: kept by
 * the caller from call to call and ended by the caller; NULL: none. waiting: may cancel the call; NULL:
 * nothing does. If the result is not TG_OK nothing was compiled, either because memory ran out or because the
 * call was cancelled (TG_ERR_CANCELLED, which is not recorded in err). */
TgStatus compile_units(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, Spare *spare,
                       const Waiting *waiting, Unit *u, int n, int limit_s);
/* Compiles one unit. If the unit fails, the call fails with its error. */
TgStatus compile_unit(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, Unit *u, int limit_s);

/* Links an object file into a shared library, in at most limit_s seconds. */
TgStatus compiler_link(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, const char *object,
                       const char *library, int limit_s);

/* ---- image.c */
/* Loads the functions of an object into memory: with our own loader if it supports this machine, otherwise
 * with the system's. */
TgStatus image_load(Device *d, const Compiler *c, const Blob *object, Image *out);
/* Returns a function of the image, or NULL if it has none of that name. */
void *image_find(Device *d, const Image *im, const Blob *object, const char *name);
void image_unload(Device *d, Image *im);

/* ---- cache.c: the cache of kernels on disk. Without SQLite nothing is ever found. A failure of any kind
 * counts as a miss. */
typedef struct Cache Cache;
/* Returns NULL if there is no cache; all other calls accept that. */
Cache *cache_open(TgMem *mem, const TgOs *os, const TgEnv *env);
void cache_close(Cache *c);
/* Finds the object that contains a kernel. digest: set to the SHA-256 of the object. */
bool cache_get(Cache *c, const uint8_t key[32], uint8_t digest[32], Blob *out);
/* Stores one object that contains n kernels. */
void cache_put(Cache *c, const uint8_t (*keys)[32], int n, const Blob *obj);
/* Claims to be the process that compiles the kernel of this key, so that other processes can wait for it.
 * Returns 0 if the claim succeeds, 1 if another process has claimed it, -1 if this is not known. A claim
 * lasts until cache_unclaim, which releases all claims, or until the process ends. */
int cache_claim(Cache *c, const uint8_t key[32]);
void cache_unclaim(Cache *c);
bool cache_ident_get(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, char *out, size_t cap);
void cache_ident_put(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, const char *text);

/* ---- pool.c */
typedef void (*KernelFn)(void *const *bufs, const int64_t *vars, int tid, void *scratch);
typedef struct Pool Pool;
/* nthread includes the caller. pinned: each worker is bound to a core of its own. */
Pool *pool_new(TgMem *mem, const TgOs *os, int nthread, bool pinned);
void pool_free(Pool *p);
/* Runs fn for tid 0 .. n-1. Each thread that takes part has scratch_bytes of scratch memory. */
TgStatus pool_run(Pool *p, KernelFn fn, void *const *bufs, const int64_t *vars, int n, size_t scratch_bytes);
/* Writes the times of the last job that the threads shared and returns how many there are. Times are recorded
 * from the first call on. */
int pool_times(Pool *p, ThreadTime *out, int most);

/* ---- cpu.c: the interpreter, which runs the kernels that no compiler takes. NULL in a build without it. */
extern const TgBackend *const cpu_interpreter;
#endif
