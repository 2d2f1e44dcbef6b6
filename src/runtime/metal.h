/* metal.h: private to the METAL device: the messages that it sends to Apple's objects, declared here, so that
 * building needs neither their compiler nor their headers; and the parts of the device. */
#ifndef TG_METAL_H
#define TG_METAL_H
#include "runtime/block_list.h"
#include "runtime/kernels.h"

/* ---- the types of the Objective-C runtime and of Metal, as their documentation has them */
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

enum { METAL_MATH_SAFE = 0, METAL_PRECISE = 1 }; /* MTLMathMode */

/* MTLGPUFamily: of the M1, of the M3; Metal 3 */
enum { METAL_FAMILY_APPLE7 = 1007, METAL_FAMILY_APPLE9 = 1009, METAL_FAMILY_3 = 5001 };

/* ---- metal_load.c: the messages. A receiver that is NULL answers 0. */
typedef enum MetalMessage {

#define METAL(n, result, name, selector, ...) METAL_##name,
#include "runtime/metal_api.def"
#undef METAL
  METAL_MESSAGES
} MetalMessage;

typedef struct MetalApi {
  void (*send)(void); /* objc_msgSend: called by the types of the message */
  MetalId (*class_named)(const char *name);
  MetalSelector (*selector_named)(const char *name);
  void *(*pool_push)(void);
  void (*pool_pop)(void *pool);
  MetalId (*devices)(void); /* a list, which the caller releases */
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

/* What is missing is said in err. */
TgStatus metal_load(const TgOs *os, const TgEnv *env, TgError *err, MetalLibraries *lib, MetalApi *api);
void metal_unload(const TgOs *os, MetalLibraries *lib);

/* ---- the device */
/* A command buffer: what was given since the one before it, or a copy beside that. serial: of its queue, from
 * 1 on. busy_s: of all up to its end, once it is done. refs: the list of those under way, and events. */
typedef struct Given {
  struct Metal *owner; /* whose launches are in order with it; NULL: nobody's */
  MetalId buffer;      /* NULL once it is done */
  MetalId event;       /* reaches its serial at its end */
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

/* Shared memory through which copies go to and from the host: used from its start to its end, then again once
 * the device has done with it. */
enum { STAGES = 4, STAGE_BYTES = 4 << 20 };

typedef struct Stage {
  MetalId object;
  char *host;
  size_t used;
  uint64_t serial; /* that used it last */
} Stage;

typedef struct HostMemory {
  void *at;
  MetalId object;
} HostMemory;

typedef struct MetalMemory {
  Blocks blocks;
  Vec(AddressRange) ranges; /* of all blocks, by address */
  Vec(HostMemory) host;
  Stage stage[STAGES];
  int now;
} MetalMemory;

typedef enum EncoderKind { NO_ENCODER, COMPUTE, BLIT } EncoderKind;

typedef struct Metal {
  MetalApi api;
  MetalLibraries lib;
  bool emulated, finds_pipelines; /* of indirect commands, which no encoder was given */
  MetalId device, queue, event;   /* event: reaches the serial of each command buffer at its end */
  Given *now;                     /* that is being filled, or NULL */
  MetalId encoder;                /* of it, or NULL */
  EncoderKind kind;
  int nencoded;        /* in it */
  Given *first, *last; /* committed and not known to be done */
  MetalId copies,
      copied;    /* a queue of copies to it beside its launches, and its event; NULL: none was made */
  Given *beside; /* of that queue, not known to be done; the last one first */
  uint64_t ncopied;
  uint64_t serial, done; /* of the last that was begun, of the last that is done */
  double busy_s;         /* of those that are done */
  TgError why;           /* of one that failed, until it is told */
  KernelTable kernels;
  MetalMemory memory;
  void *bytes_module; /* the kernel that copies bytes, where blits do not reach */
  struct MetalKernel *bytes;
  char last_kernel[96]; /* the one that was launched last */
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

/* The grid that a launch needs. */
static inline MetalSize metal_grid(const Launch *l) {
  const Program *g = l->program;
  MetalUint n[3];
  for (int i = 0; i < 3; i++)
    n[i] = (MetalUint)blocks_needed(&g->blocks[i], g->grid[i], l->vars);
  return (MetalSize){n[0], n[1], n[2]};
}

/* Objects that a call leaves to nobody go with the pool. */
static inline void *metal_pool(Device *d) { return ((Metal *)d->priv)->api.pool_push(); }

static inline TgStatus metal_unpool(Device *d, void *pool, TgStatus st) {
  ((Metal *)d->priv)->api.pool_pop(pool);
  return st;
}

TgStatus metal_failed(Device *d, const char *what); /* where there is no NSError that says why */
TgStatus metal_oom(Device *d);

/* ---- metal_queue.c: command buffers. What a device is given goes into one until it is committed: when it is
 * full, when somebody waits, when an event is recorded. */
MetalId metal_encoder(Device *d, EncoderKind kind); /* of the present one; NULL: told in d->err */
TgStatus metal_encoded(Device *d);                  /* one thing more: commits what is full */
TgStatus metal_commit(Device *d);
void metal_look(Device *d);                       /* takes note of what is done, without waiting */
TgStatus metal_reach(Device *d, uint64_t serial); /* waits; tells what went wrong */
TgStatus metal_told(Device *d, const char *what); /* what went wrong meanwhile, once */
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
/* The buffer that an address of the device leads into; at NULL: none. */
TgStatus metal_place(Device *d, const void *at, Place *out);
/* Shared memory for what is given next, at a multiple of a power of two and `over` bytes; at most
 * STAGE_BYTES. */
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
bool metal_has_bfloat(const MetalApi *m); /* the compiler of this system */
TgStatus metal_compile(Device *d, const KernelSpec *ks, int n, Program **out);
void metal_program_free(Device *d, Program *g);
/* A kernel of a text, alone. */
TgStatus metal_kernel_of(Device *d, const char *text, const char *name, unsigned block, void **module,
                         MetalKernel **out);
void metal_module_free(Device *d, void *module);

/* ---- metal_launch.c */
enum { INLINE_BYTES = 4096 }; /* that a command takes by value */

TgStatus metal_launch(Device *d, const Launch *l);
TgStatus metal_graph_new(Device *d, const Launch *l, int n, LaunchGraph **out);
TgStatus metal_graph_update(Device *d, LaunchGraph *g, int i, const Launch *l);
TgStatus metal_graph_launch(Device *d, LaunchGraph *g);
void metal_graph_free(Device *d, LaunchGraph *g);
#endif
