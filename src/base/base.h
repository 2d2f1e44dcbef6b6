/* base.h: memory, arrays, strings, hashing, errors and the table of OS calls. Nothing here knows of
 * tensors. Every allocation of the library uses TgMem and every OS call uses TgOs, so that a test can make
 * the n-th one fail. */
#ifndef TG_BASE_H
#define TG_BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>

#ifndef TG_STATUS_DEFINED /* tg.h has the same enum */
#define TG_STATUS_DEFINED

typedef enum TgStatus {
  TG_OK = 0,
  TG_ERR_NOMEM,
  TG_ERR_SHAPE,
  TG_ERR_DTYPE,
  TG_ERR_VALUE,
  TG_ERR_DEVICE,
  TG_ERR_COMPILE,
  TG_ERR_IO,
  TG_ERR_STATE,
  TG_ERR_LIMIT,
  TG_ERR_INTERNAL,
  TG_ERR_CANCELLED
} TgStatus;
#endif

#define TG_COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define TG_MIN(a, b)    ((a) < (b) ? (a) : (b))
#define TG_MAX(a, b)    ((a) > (b) ? (a) : (b))
#define TG_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TG_MUST_USE     __attribute__((warn_unused_result))
/* A condition that the library's own code rules out. It traps in debug builds and is an ordinary branch in
 * release builds. */
#ifdef TG_DEBUG_BUILD
#define NEVER(x) ((x) ? (__builtin_trap(), true) : false)
#else
#define NEVER(x) __builtin_expect(!!(x), 0)
#endif

/* ---- allocation. Any of these may return NULL. The counters serve the tests: fail_at = n makes the n-th
 * call fail (counted from 1; 0: never), and `live` counts blocks that are not freed yet. `failed` counts
 * the calls that returned NULL: code that cannot tell why a step failed checks whether it grew. The
 * counters of a context are freed with it, so `last` receives their final state. `apart`: arenas allocate
 * each piece separately, so that any node can be the one that fails and sanitizers see reads beyond a
 * piece. */
typedef struct TgMem {
  uint64_t calls, fail_at, live, failed;
  bool fail_always_after, apart;
  /* used instead of malloc, realloc, free: all or none of them */
  void *(*allocate)(size_t nbytes, void *user);
  void *(*reallocate)(void *p, size_t nbytes, void *user);
  void (*release)(void *p, void *user);
  void *user;
  struct TgMem *last;
} TgMem;

void *mem_alloc(TgMem *m, size_t nbytes);     /* zeroed */
void *mem_alloc_raw(TgMem *m, size_t nbytes); /* not initialised */
/* the new part is zeroed; on failure p stays valid */
void *mem_realloc(TgMem *m, void *p, size_t old_nbytes, size_t nbytes);
void mem_free(TgMem *m, void *p); /* NULL is allowed */
char *mem_strdup(TgMem *m, const char *s);

/* ---- error record: the first error stays until it is cleared. Nothing is allocated to record an error. */
typedef struct TgError {
  TgStatus status;
  char msg[512];
  const char *place; /* NULL, or the call that is running, "relu (net.c:12)", which ends the message */
} TgError;

/* keeps an earlier error; returns s */
TgStatus error_set(TgError *e, TgStatus s, const char *fmt, ...) TG_PRINTF(3, 4);
TgStatus error_no_memory(TgError *e, const char *what); /* "WHAT: out of memory" */
/* Writes "relu (/home/a/net.c:12)" without the folders: "relu (net.c:12)". */
void error_place_text(const char *place, char *to, size_t cap);

/* ---- bounds: AddressSanitizer only knows whole blocks. So it is told which parts of a block may be
 * touched: the pieces of an arena that were handed out, and the elements that an array has. */
#ifdef __SANITIZE_ADDRESS__
#define BOUNDS_ARE_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOUNDS_ARE_WATCHED 1
#endif
#endif
#ifdef BOUNDS_ARE_WATCHED
#include <sanitizer/asan_interface.h>
#define bounds_forbid(p, nbytes) __asan_poison_memory_region((p), (nbytes))
#define bounds_allow(p, nbytes)  __asan_unpoison_memory_region((p), (nbytes))
#else
#define BOUNDS_ARE_WATCHED       0
#define bounds_forbid(p, nbytes) ((void)0)
#define bounds_allow(p, nbytes)  ((void)0)
#endif

/* ---- arena: bump allocation, freed all at once. Zeroed memory, 16-byte aligned. */
enum { ARENA_GAP = BOUNDS_ARE_WATCHED ? 16 : 0 }; /* bytes after each piece, to keep it from the next one */

typedef struct ArenaBlock {
  struct ArenaBlock *next;
  size_t size, used;
  char pad[8];
} ArenaBlock;

typedef struct Arena {
  TgMem *mem;
  ArenaBlock *block;
  size_t total;
  size_t first; /* bytes of the first block, for arenas that stay small; 0: 8192 */
} Arena;

void arena_init(Arena *a, TgMem *mem);
void *arena_alloc(Arena *a, size_t nbytes); /* zeroed; NULL if out of memory */
bool arena_grow(Arena *a, size_t nbytes);   /* adds a block with room for nbytes */
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) TG_PRINTF(2, 3);
void arena_reset(Arena *a); /* keeps one block for reuse */
void arena_free(Arena *a);

/* Like arena_alloc, but not initialised. nbytes: at most SIZE_MAX / 2. */
static inline void *arena_take(Arena *a, size_t nbytes) {
  size_t room = ((nbytes + 15) & ~(size_t)15) + ARENA_GAP;
  if ((!a->block || a->block->size - a->block->used < room) && !arena_grow(a, room)) return NULL;
  ArenaBlock *b = a->block;
  void *p = (char *)(b + 1) + b->used;
  b->used += room;
  bounds_allow(p, nbytes);
  return p;
}

#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

/* ---- growable array: `Vec(T) v = {0}; vec_push(mem, &v, x)`. vec_push returns false if out of memory. */
#define Vec(T)                                                                                               \
  struct {                                                                                                   \
    T *at;                                                                                                   \
    size_t len, cap;                                                                                         \
  }
bool vec_grow(TgMem *m, void **at, size_t *cap, size_t need, size_t item);
/* makes room for n elements; those after the first n may not be touched yet */
#define vec_grown(m, v, n)                                                                                   \
  ((n) <= (v)->cap || (vec_grow((m), (void **)&(v)->at, &(v)->cap, (n), sizeof *(v)->at) &&                  \
                       (bounds_forbid((v)->at + (n), ((v)->cap - (n)) * sizeof *(v)->at), true)))
#define vec_reserve(m, v, n)                                                                                 \
  (vec_grown((m), (v), (n)) && (bounds_allow((v)->at, (n) * sizeof *(v)->at), true))
/* Makes room for one more element. */
bool vec_room(TgMem *m, void *vec, size_t item);
#ifdef __OPTIMIZE_SIZE__ /* a call at each place is shorter but slower */
#define vec_push(m, v, x) (vec_room((m), (v), sizeof *(v)->at) && ((v)->at[(v)->len++] = (x), true))
#else
#define vec_push(m, v, x)                                                                                    \
  (vec_grown((m), (v), (v)->len + 1) &&                                                                      \
   (bounds_allow((v)->at + (v)->len, sizeof *(v)->at), (v)->at[(v)->len++] = (x), true))
#endif
void vec_drop(TgMem *m, void *vec);
#define vec_free(m, v) ((void)sizeof(char[sizeof *(v) == sizeof(Vec(char)) ? 1 : -1]), vec_drop((m), (v)))

/* ---- hash map: uint64 key -> uint64 value, open addressing. Keys are hashed; 0 is an ordinary key. */
typedef struct MapEntry {
  uint64_t key, val;
  bool used;
} MapEntry;

typedef struct Map {
  TgMem *mem;
  MapEntry *at;
  size_t cap, len;
} Map;

void map_init(Map *m, TgMem *mem);
void map_free(Map *m);
void map_clear(Map *m);                           /* makes it empty, but keeps its memory */
bool map_put(Map *m, uint64_t key, uint64_t val); /* false: out of memory */
bool map_get(const Map *m, uint64_t key, uint64_t *val);
void map_drop(Map *m, uint64_t key); /* the key need not be in the map */
/* Changes the value of a key that is in the map, so no memory is needed. NULL: removes the key. */
void map_replace_ptr(Map *m, uint64_t key, void *v);
#define map_put_ptr(m, k, v) map_put((m), (uint64_t)(uintptr_t)(k), (uint64_t)(uintptr_t)(v))

static inline void *map_get_ptr(const Map *m, const void *k) {
  uint64_t v;
  return map_get(m, (uint64_t)(uintptr_t)k, &v) ? (void *)(uintptr_t)v : NULL;
}

/* ---- string builder. After a failed allocation `oom` is set and further appends do nothing. */
typedef struct Str {
  TgMem *mem;
  char *at;
  size_t len, cap;
  bool oom;
} Str;

void str_init(Str *s, TgMem *mem);
void str_free(Str *s);
/* makes room for n more bytes and the end; false: out of memory, as in oom */
bool str_reserve(Str *s, size_t n);
void str_put(Str *s, const char *text);
void str_putn(Str *s, const char *text, size_t n);
void str_int(Str *s, int64_t v); /* decimal; much faster than printf */

enum { INT_TEXT = 24 };

char *int_text(char b[INT_TEXT], int64_t v); /* decimal; returns where in b the text begins */
void str_printf(Str *s, const char *fmt, ...) TG_PRINTF(2, 3);
void str_json(Str *s, const char *text); /* as a quoted JSON string; bytes that are not UTF-8 become ? */
const char *str_text(const Str *s);      /* never NULL */

/* ---- hashing */
/* multiply-fold: the high half of the product reaches every bit */
static inline uint64_t hash_mix(uint64_t h, uint64_t v) {
  __uint128_t p = (__uint128_t)(h ^ v ^ 0x2d358dccaa6c78a5u) * 0x8bb84b93962eacc9u;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n);
void sha256(const void *p, size_t n, uint8_t out[32]);

/* ---- OS calls of the library: the table of base/os.h. A test gives a context another table to inject
 * failures. */
typedef struct TgOs TgOs;
extern const TgOs tg_os_default;

/* ---- environment: tg_open reads it once into the context. A bad value is an error that names the
 * variable. */
typedef struct TgEnv {
  char dev[64], cc[256], cache_dir[256], dump_dir[256], profile[256], explain[256], viz[256], opts[512],
      skip[256];
  int debug, cc_limit, threads, fuse, noopt, invariant, spec, trace_rules, trace_choices, dev_set, cache;
  bool unpinned;                  /* .unpinned of tg_open; there is no variable for it */
  int amx, dot;                   /* kernels may use this CPU's tiles; kernels may use its dot products */
  char comm[256], comm_name[256]; /* how processes reach each other; which group, if a machine has several */
  double links
      [4]; /* TG_LINKS: devices of one machine, then of two: bytes per microsecond, microseconds a message */
  char comm_machine[64];                               /* replaces this machine's own name */
  int comm_rank, comm_size, comm_timeout, comm_bucket; /* timeout: seconds; bucket: bytes of a message */
  int allreduce; /* how sums over devices are made: 0 by size, 1 naive, 2 ring, 3 direct */
  /* a sum over devices of values that were cast from narrow floats exchanges the narrow floats */
  int allreduce_cast;
  /* captured functions keep the copies that kernels make of constant memory; 2: all of them */
  int prepack;
  int tf32;  /* products of f32 may use operands with ten bits of mantissa */
  int wgmma; /* matrix units of four warps (TC4), whose kernels have not run on a GPU yet */
  int beam;  /* lists of opts kept in a search by trial; 0: no search */
  /* TG_LOADER=library: objects are linked and loaded by the system, even if this library could */
  int link_objects;
  /* GPUs are emulated on the CPU; 2 and more: in an order seeded by this number; even numbers: freed
   * memory is reused at once by the next allocation */
  int emulate;
  /* "80 90": the vendor's own compiler must also accept the texts for these architectures */
  char emulate_archs[64];
  int64_t rule_limit, opt_limit, fuse_limit; /* -1: no limit */
} TgEnv;

/* Whether an emulated GPU really frees memory, so that a late use of it is seen. */
static inline bool emulates_exactly(const TgEnv *env) { return env->emulate % 2 == 1; }

TgStatus env_read(TgEnv *env, TgError *err);
const char *env_name(int i); /* every variable that the library or tg reads; NULL after the last */
double time_now_s(void);
/* Facts about the machine, from os_linux.c or os_macos.c. */
int cpu_count(void);
int core_here(void); /* number of the core that this thread runs on; -1: not known */
int core_at(int k);  /* number of the k-th core that this thread may use; -1: there are fewer */
/* Bytes of the data cache of a level (1, 2 or 3) that one core uses; 0 or less: not known. */
int64_t cpu_cache_bytes(int level);
int cpu_cache_ways(int level); /* number of lines in a set of the cache; 0 or less: not known */
#endif
