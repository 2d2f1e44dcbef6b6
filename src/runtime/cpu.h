/* cpu.h: private to src/runtime. The parts of the CPU backend: compiler process, ELF loader, kernel cache,
 * thread pool. */
#ifndef TG_CPU_H
#define TG_CPU_H
#include "runtime/device.h"
#include <sys/types.h>

/* ---- host.c: memory of devices whose buffers are host memory */
TgStatus host_alloc(Device *d, size_t nbytes, void **out);
void host_free(Device *d, void *p, size_t nbytes);
void host_trim(Device *d); /* gives back what is kept; when the device closes, or memory is short */
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
/* what a backend without a queue of its own takes from here */
#define HOST_ORDER                                                                                           \
  .clear = host_clear, .sync = host_sync, .event_record = host_event_record, .event_reach = host_event_wait, \
  .event_wait = host_event_wait, .event_us = host_event_us, .event_free = host_event_free,                   \
  .graph_new = host_graph_new, .graph_update = host_graph_update, .graph_launch = host_graph_launch,         \
  .graph_free = host_graph_free, .host_alloc = host_pinned, .host_free = host_unpinned,                      \
  .memory_info = host_memory

/* ---- elf.c */
/* library: of image.c; where it is set there is nothing else. */
typedef struct Image {
  uint8_t *at; /* read + execute; from `data` on, where variables were asked for, read + write */
  size_t size, mapped;
  size_t data, room; /* where they begin; the room ends the image */
  void *library;
} Image;

/* A function that an object may call besides those of libc that the loader knows. */
typedef struct ElfExtern {
  const char *name;
  void (*fn)(void);
} ElfExtern;

/* What a caller wants besides code and constants. variables: sections that can be written, each `apart` bytes
 * from its neighbours; room: that many bytes behind them, where undefined symbols with room_prefix are. */
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

/* Whether objects for this processor and system can be loaded at all. */
bool elf_is_known(void);
/* Maps and relocates an ELF64 relocatable object. Refuses what is truncated, writable or refers to unknown
 * symbols. */
TgStatus elf_load(TgMem *mem, const TgOs *os, TgError *err, const void *obj, size_t nbytes, Image *out);
/* The same with more than that; wants NULL: as elf_load. */
TgStatus elf_load_with(TgMem *mem, const TgOs *os, TgError *err, const void *obj, size_t nbytes,
                       const ElfWants *wants, Image *out);
/* Visits the symbols, in the object's order, until visit gives false. False then, or for a damaged object.
 * Valid for the bytes and wishes that elf_load_with accepted. */
bool elf_symbols(const void *obj, size_t nbytes, const ElfWants *wants,
                 bool (*visit)(void *user, const ElfSymbol *s), void *user);
/* Offset of a global function in the image, or -1. Valid for the bytes that elf_load accepted. */
int64_t elf_symbol(const void *obj, size_t nbytes, const char *name);
void image_unmap(const TgOs *os, Image *im); /* of what elf_load gave */

/* ---- compile.c */
typedef struct Compiler {
  char path[512];
  char ident[256]; /* first line of --version */
  bool is_clang;
} Compiler;

typedef struct Blob {
  uint8_t *at;
  size_t nbytes;
} Blob;

TgStatus compiler_find(const TgOs *os, const TgEnv *env, TgError *err, Compiler *out); /* path alone */
/* Runs --version. */
TgStatus compiler_identify(TgMem *mem, const TgOs *os, TgError *err, Compiler *c, int limit_s);
const char *compiler_flags(const Compiler *c); /* one line: part of the cache key */

/* huge: no optimisation, whose time grows faster than the text. Where even that takes too long, or the
 * compiler is ended by a signal (memory), `gave_up` is set and there is no object. retried: the compiler died
 * of a unit that is not huge, which was then compiled without optimisation. why: what it failed of, which is
 * nothing where there is an object. */
typedef struct Unit {
  Blob src, out;
  const char *const *args; /* of the compiler, up to a NULL; NULL: those of CPU kernels */
  int kernels;             /* each of them has the limit's time; 0: one */
  bool huge, gave_up, retried;
  TgError why;
} Unit;

/* One process at work. died: ended by a signal, or the part that did the work was. cpu_s: the time of
 * processors that it may use; late: it used that, or was waited for long enough. */
typedef struct Job {
  int src, obj, msg, watch;
  pid_t pid;
  bool running, ok, died, late;
  int cpu_s;
  double begin;
} Job;

/* A compiler started before there is anything to compile: two thirds of what a small kernel waits for is the
 * loading of LLVM. It waits for its source at the other end of the socket job.src, and ends by itself when
 * nothing comes for some seconds or when that is closed. owner: the process that started it, as a fork has a
 * copy of this; 0: there is none. nbatch: compile_units calls so far. */
typedef struct Spare {
  Job job;
  pid_t owner;
  int nbatch;
} Spare;

void spare_end(const TgOs *os, Spare *s);
/* Compiles n translation units at the same time. Each may use limit_s seconds of a processor for each of its
 * kernels; one that waits for something else ends too, later. Units fail one by one (why), and have an object
 * that the caller frees or none. spare: kept from call to call, by the caller, who ends it; NULL: none.
 * waiting: NULL, or who may stop it. Not TG_OK: nothing was compiled, for want of memory or because it was
 * stopped (TG_ERR_CANCELLED, which is not recorded). */
TgStatus compile_units(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, Spare *spare,
                       const Waiting *waiting, Unit *u, int n, int limit_s);
/* One, whose failure is the call's. */
TgStatus compile_unit(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, Unit *u, int limit_s);

/* Links an object file to a shared library, in at most limit_s seconds. */
TgStatus compiler_link(TgMem *mem, const TgOs *os, TgError *err, const Compiler *c, const char *object,
                       const char *library, int limit_s);

/* ---- image.c */
/* The functions of an object, in memory: by our own loader where it knows the machine, else by the system's.
 */
TgStatus image_load(Device *d, const Compiler *c, const Blob *object, Image *out);
/* A function of it; NULL: it has none of that name. */
void *image_find(Device *d, const Image *im, const Blob *object, const char *name);
void image_unload(Device *d, Image *im);

/* ---- cache.c: on disk; without SQLite nothing is ever found. A failure of any kind is a miss. */
typedef struct Cache Cache;
Cache *cache_open(TgMem *mem, const TgOs *os, const TgEnv *env); /* NULL: run without */
void cache_close(Cache *c);
/* object of a kernel; digest names the object */
bool cache_get(Cache *c, const uint8_t key[32], uint8_t digest[32], Blob *out);
/* one object that holds n kernels */
void cache_put(Cache *c, const uint8_t (*keys)[32], int n, const Blob *obj);
/* This process makes what the key says, for all that look. 1: another one does; -1: who knows. Until
 * cache_unclaim, which gives up all, or the end of the process. */
int cache_claim(Cache *c, const uint8_t key[32]);
void cache_unclaim(Cache *c);
bool cache_ident_get(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, char *out, size_t cap);
void cache_ident_put(Cache *c, const char *path, int64_t mtime_ns, int64_t nbytes, const char *text);

/* ---- pool.c */
typedef void (*KernelFn)(void *const *bufs, const int64_t *vars, int tid, void *scratch);
typedef struct Pool Pool;
/* nthread counts the caller; pinned: each worker has a core of its own */
Pool *pool_new(TgMem *mem, const TgOs *os, int nthread, bool pinned);
void pool_free(Pool *p);
/* Runs fn for tid 0 .. n-1; scratch of that many bytes for each thread at work. */
TgStatus pool_run(Pool *p, KernelFn fn, void *const *bufs, const int64_t *vars, int n, size_t scratch_bytes);
/* Of the last job that threads shared; they keep it from the first call on. */
int pool_times(Pool *p, ThreadTime *out, int most);

/* ---- cpu.c: what runs kernels that no compiler takes, from their lists; NULL: a build without */
extern const TgBackend *const cpu_interpreter;
#endif
