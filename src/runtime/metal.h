/* metal.h: private to the METAL device. It declares the messages that the device sends to Apple's objects, so
 * that building needs neither Apple's compiler nor its headers, and the parts of the device. */
#ifndef TG_METAL_H
#define TG_METAL_H
#include "runtime/block_list.h"
#include "runtime/kernels.h"

/* ---- the types of the Objective-C runtime and of Metal, as documented by Apple */
typedef struct MetalObject *MetalId;
typedef struct MetalSelectorName *MetalSelector;
typedef unsigned long MetalUint; /* NSUInteger */
typedef long MetalInt;           /* NSInteger */
typedef signed char MetalBool;   /* BOOL */

typedef struct MetalSize {
  MetalUint width, height, depth;
} MetalSize;

typedef struct MetalRange {
  MetalUint at, length;
} MetalRange;

enum { /* MTLResourceOptions */
       METAL_SHARED = 0,
       METAL_PRIVATE = 2 << 4
};

enum { METAL_COMPLETED = 4, METAL_ERROR = 5 }; /* MTLCommandBufferStatus */

enum { METAL_READ_WRITE = 3 }; /* MTLResourceUsage */

enum { METAL_CONCURRENT_DISPATCH = 1 << 5 }; /* MTLIndirectCommandType */

enum { METAL_MATH_SAFE = 0, METAL_PRECISE = 1 }; /* MTLMathMode, MTLMathFloatingPointFunctions */

/* MTLGPUFamily: Apple 7 is that of the M1, Apple 9 that of the M3; Metal 3 */
enum { METAL_FAMILY_APPLE7 = 1007, METAL_FAMILY_APPLE9 = 1009, METAL_FAMILY_3 = 5001 };

/* ---- metal_load.c: the messages. A message to a NULL receiver returns 0. */
typedef enum MetalMessage {

#define METAL(n, result, name, selector, ...) METAL_##name,
#include "runtime/metal_api.def"
#undef METAL
  METAL_MESSAGES
} MetalMessage;

typedef struct MetalApi {
  void (*send)(void); /* objc_msgSend: called with the types of the message */
  MetalId (*class_named)(const char *name);
  MetalSelector (*selector_named)(const char *name);
  void *(*pool_push)(void);
  void (*pool_pop)(void *pool);
  MetalId (*devices)(void); /* returns a list that the caller releases */
  MetalSelector selector[METAL_MESSAGES];
} MetalApi;

#define METAL_HEAD(result, name, ...)                                                                        \
  static inline result metal_##name(const MetalApi *m, MetalId self, ##__VA_ARGS__)
#define METAL_SEND(result, name, ...) return ((result(*)(MetalId, MetalSelector, ##__VA_ARGS__))m->send)
#define METAL_0(result, name, selector_text)                                                                 \
  METAL_HEAD(result, name) { METAL_SEND(result, name)(self, m->selector[METAL_##name]); }
#define METAL_1(result, name, selector_text, A)                                                              \
  METAL_HEAD(result, name, A a) { METAL_SEND(result, name, A)(self, m->selector[METAL_##name], a); }
#define METAL_2(result, name, selector_text, A, B)                                                           \
  METAL_HEAD(result, name, A a, B b) {                                                                       \
    METAL_SEND(result, name, A, B)(self, m->selector[METAL_##name], a, b);                                   \
  }
#define METAL_3(result, name, selector_text, A, B, C)                                                        \
  METAL_HEAD(result, name, A a, B b, C c) {                                                                  \
    METAL_SEND(result, name, A, B, C)(self, m->selector[METAL_##name], a, b, c);                             \
  }
#define METAL_4(result, name, selector_text, A, B, C, D)                                                     \
  METAL_HEAD(result, name, A a, B b, C c, D d) {                                                             \
    METAL_SEND(result, name, A, B, C, D)(self, m->selector[METAL_##name], a, b, c, d);                       \
  }
#define METAL_5(result, name, selector_text, A, B, C, D, E)                                                  \
  METAL_HEAD(result, name, A a, B b, C c, D d, E e) {                                                        \
    METAL_SEND(result, name, A, B, C, D, E)(self, m->selector[METAL_##name], a, b, c, d, e);                 \
  }
#define METAL(n, ...) METAL_##n(__VA_ARGS__)
#include "runtime/metal_api.def"
#undef METAL

typedef struct MetalLibraries {
  void *objc, *foundation, *metal, *graphics;
} MetalLibraries;

/* On failure err says what is missing. */
TgStatus metal_load(const TgOs *os, const TgEnv *env, TgError *err, MetalLibraries *lib, MetalApi *api);
void metal_unload(const TgOs *os, MetalLibraries *lib);

/* ---- the device */
/* A command buffer: the work given since the one before it, or a single copy in the queue of copies. serial:
 * its number in its queue, from 1 on. busy_s: the seconds that the GPU worked on all command buffers up to
 * the end of this one, known once it is done. refs: references from the list of those under way and from
 * events. */
typedef struct Given {
  /* the device whose launches are in order with it; NULL: none, it is a copy */
  struct Metal *owner;
  MetalId buffer; /* NULL once it is done */
  MetalId event;  /* reaches `serial` when this command buffer ends */
  uint64_t serial;
  double busy_s;
  int refs;
  struct Given *next;
} Given;

/* A part of a buffer. */
typedef struct Place {
  MetalId object;
  size_t offset;
} Place;

typedef struct AddressRange {
  uintptr_t at;
  size_t nbytes;
  MetalId object;
} AddressRange;

/* Shared memory through which copies to and from the host pass. Each piece is filled from its start to its
 * end, and again once the device is done with it. */
enum { STAGES = 4, STAGE_BYTES = 4 << 20 };

typedef struct Stage {
  MetalId object;
  char *host;
  size_t used;
  uint64_t serial; /* command buffer that used it last */
} Stage;

typedef struct HostMemory {
  void *at;
  MetalId object;
} HostMemory;

typedef struct MetalMemory {
  Blocks blocks;
  Vec(AddressRange) ranges; /* all blocks, sorted by address */
  Vec(HostMemory) host;
  Stage stage[STAGES];
  int now;
} MetalMemory;

typedef enum EncoderKind { NO_ENCODER, COMPUTE, BLIT } EncoderKind;

typedef struct Metal {
  MetalApi api;
  MetalLibraries lib;
  /* finds_pipelines: the GPU finds the pipelines of indirect commands by itself, without an encoder having
   * set them */
  bool emulated, finds_pipelines;
  /* event: reaches the serial of each command buffer when it ends */
  MetalId device, queue, event;
  Given *now;      /* being filled, or NULL */
  MetalId encoder; /* of `now`, or NULL */
  EncoderKind kind;
  int nencoded;        /* number of things encoded in `now` */
  Given *first, *last; /* committed and not known to be done */
  /* a queue for copies to this device, beside its launches, and that queue's event; NULL: not made yet */
  MetalId copies, copied;
  /* command buffers of `copies` that are not known to be done, the latest first */
  Given *beside;
  uint64_t ncopied;
  /* serials of the last command buffer that was begun and of the last that is done */
  uint64_t serial, done;
  double busy_s; /* of the command buffers that are done */
  TgError why;   /* error of a failed command buffer, until it is reported */
  KernelTable kernels;
  MetalMemory memory;
  void *bytes_module; /* kernel that copies bytes that no blit can copy */
  struct MetalKernel *bytes;
  char last_kernel[96]; /* the kernel that was launched last */
  char text[256];
} Metal;

/* A kernel that was compiled. */
typedef struct MetalKernel {
  MetalId function, pipeline; /* pipeline: NULL until it is first used */
  struct MetalKernel *next;
} MetalKernel;

struct Program {
  MetalKernel *kernel;
  Kernel *of;
  MetalSize block;
  int grid[3];
  GridBlocks blocks[3];
  int nbuf, nvar;
  bool in_one; /* all arguments are members of one struct */
  char name[96];
};

/* Returns the grid that a launch needs. */
static inline MetalSize metal_grid(const Launch *l) {
  const Program *g = l->program;
  MetalUint n[3];
  for (int i = 0; i < 3; i++)
    n[i] = (MetalUint)blocks_needed(&g->blocks[i], g->grid[i], l->vars);
  return (MetalSize){n[0], n[1], n[2]};
}

/* Begins an autorelease pool. The objects that calls create without an owner are freed with the pool, by
 * metal_unpool. */
static inline void *metal_pool(Device *d) { return ((Metal *)d->priv)->api.pool_push(); }

static inline TgStatus metal_unpool(Device *d, void *pool, TgStatus st) {
  ((Metal *)d->priv)->api.pool_pop(pool);
  return st;
}

/* Sets an error for which there is no NSError with a reason. */
TgStatus metal_failed(Device *d, const char *what);
TgStatus metal_oom(Device *d);

/* ---- metal_queue.c: command buffers. What a device is given is collected in one until it is committed: when
 * it is full, when somebody waits or when an event is recorded. */
/* Returns an encoder of the present command buffer. NULL: failed, with d->err set. */
MetalId metal_encoder(Device *d, EncoderKind kind);
/* Counts one more thing in the command buffer, and commits it if it is full. */
TgStatus metal_encoded(Device *d);
TgStatus metal_commit(Device *d);
/* Notes which command buffers are done, without waiting. */
void metal_look(Device *d);
/* Waits for a command buffer and reports what went wrong. */
TgStatus metal_reach(Device *d, uint64_t serial);
/* Reports, once, what went wrong since the last call. */
TgStatus metal_told(Device *d, const char *what);
TgStatus metal_sync(Device *d);
void metal_queue_end(Device *d);
bool metal_reads_peer(Device *d, Device *from);
TgStatus metal_copy_beside(Device *d, const void *src, Device *to, void *dst, size_t nbytes,
                           Event *const after[2], Event **done);
TgStatus metal_event_record(Device *d, Event **e);
TgStatus metal_event_reach(Device *d, Event *e);
TgStatus metal_event_wait(Device *d, Event *e);
double metal_event_us(Device *d, Event *from, Event *to);
void metal_event_free(Device *d, Event *e);

/* ---- metal_memory.c */
void metal_memory_begin(Device *d, uint64_t most_free);
void metal_memory_end(Device *d);
/* Finds the buffer that contains an address of the device, and the offset in it. For NULL the object is
 * NULL. */
TgStatus metal_place(Device *d, const void *at, Place *out);
/* Returns shared memory for the work that is given next, `over` bytes after a multiple of `multiple`, which
 * is a power of two. At most STAGE_BYTES. */
TgStatus metal_stage(Device *d, size_t nbytes, size_t multiple, size_t over, Place *out, char **host);
TgStatus metal_alloc(Device *d, size_t nbytes, void **out);
void metal_free(Device *d, void *p, size_t nbytes);
TgStatus metal_host_alloc(Device *d, size_t nbytes, void **out);
void metal_host_free(Device *d, void *p, size_t nbytes);
TgStatus metal_memory_info(Device *d, uint64_t *unused, uint64_t *total);
TgStatus metal_copy_in(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus metal_copy_out(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus metal_copy_within(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus metal_clear(Device *d, void *dst, size_t nbytes);

/* ---- metal_compile.c */
extern const KernelLoader metal_loader;
bool metal_has_bfloat(const MetalApi *m); /* whether this system's compiler has the type */
TgStatus metal_compile(Device *d, const KernelSpec *ks, int n, Program **out);
void metal_program_free(Device *d, Program *g);
/* Compiles a text that contains a single kernel. */
TgStatus metal_kernel_of(Device *d, const char *text, const char *name, unsigned block, void **module,
                         MetalKernel **out);
void metal_module_free(Device *d, void *module);

/* ---- metal_launch.c */
enum { INLINE_BYTES = 4096 }; /* the most that a command takes by value */

TgStatus metal_launch(Device *d, const Launch *l);
TgStatus metal_graph_new(Device *d, const Launch *l, int n, LaunchGraph **out);
TgStatus metal_graph_update(Device *d, LaunchGraph *g, int i, const Launch *l);
TgStatus metal_graph_launch(Device *d, LaunchGraph *g);
void metal_graph_free(Device *d, LaunchGraph *g);
#endif
