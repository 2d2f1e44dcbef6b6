/* device.h: what a backend provides: it allocates, copies, compiles, loads and launches. The core asks what a
 * device can do, never which device it is. */
#ifndef TG_DEVICE_H
#define TG_DEVICE_H
#include "renderer/renderer.h"

typedef struct Device Device;
typedef struct Bundle Bundle;   /* runtime/bundle.h */
typedef struct Program Program; /* a loaded kernel; each backend defines it */

/* A kernel to compile. Most kernels are compiled from their text alone. If `listed` is set, linear->at may be
 * gone; listed(user) then makes the list again, or returns NULL with its error set. */
typedef struct KernelSpec {
  const Linear *linear;
  const char *source;   /* NULL for backends without a renderer */
  int nvar;             /* number of variables that it reads */
  bool packs;           /* it makes copies that are kept (codegen/prepack.c) */
  size_t local_bytes;   /* at least what the renderer takes from scratch */
  int64_t shared_bytes; /* of one block on a GPU */
  const Linear *(*listed)(void *user);
  void *user;
} KernelSpec;

/* How a kernel uses one of its buffers. */
typedef struct ParamUse {
  bool used, stored; /* used: it is read or stored to; stored: it is stored to */
  DType dtype;
} ParamUse;

/* A kernel of a device that renders and runs nothing. in_place: for each parameter that is only read, the set
 * of parameters that are stored to and may be the same memory (uop.h). ops: weighted operations of one call.
 * nbytes: bytes that one call reads and writes. */
typedef struct KernelText {
  const char *source;
  int64_t local_bytes; /* of its local arrays */
  /* the same arrays, as the scratch memory that kernels in C take */
  int64_t scratch_bytes;
  /* nthread: number of shares; the kernel is called once for each, with the number of the share */
  int nparam, nthread;
  ParamUse *param; /* nparam elements; NULL if its list was gone */
  bool runs;       /* a launch makes copies that are kept */
  uint64_t in_place[LIST_SLOTS];
  double ops, nbytes;
} KernelText;

/* The caller that waits while a device compiles. If another thread or a signal handler sets `stop`, compiling
 * ends with TG_ERR_CANCELLED. `tick` is called every now and then from the thread that compiles, with the
 * number of kernels compiled since the last call. */
typedef struct Waiting {
  const _Atomic bool *stop;
  void (*tick)(void *user, int kernels);
  void *user;
} Waiting;

KernelSpec kernel_spec(const Linear *lin, const char *source);
/* Returns TG_ERR_LIMIT if the device cannot launch such a grid, or has less local memory for a block. Codegen
 * respects the same Target, so this only happens to kernels that were made for another device. */
TgStatus kernel_launches(const Device *d, const KernelSpec *k);
const Linear *kernel_list(const KernelSpec *k);

typedef struct Launch {
  Program *program;
  void *const *bufs;   /* one for each PARAM slot */
  const int64_t *vars; /* values of the program's variables, in its order */
  int nbuf, nvar;
} Launch;

/* When a thread of the host worked on a launch. Times are those of time_now_s. */
typedef struct ThreadTime {
  int thread; /* 0: the thread that launched */
  double begin, end;
} ThreadTime;

/* a point in the sequence of things that a device was given; each backend defines it */
typedef struct Event Event;
/* launches that are given to the device as one; each backend defines it */
typedef struct LaunchGraph LaunchGraph;

/* HAS_RUN: a launch computes (on a NULL device it does not). HAS_CHECKS: an access outside its buffer is an
 * error of the launch. HAS_OWN_MEMORY: the host cannot read and write its buffers in place. HAS_FILES_ONLY:
 * its memory is files, and it computes nothing. HAS_LISTS: it takes kernels as lists, not as text.
 * HAS_PEERS_ONLY: copy_beside works only between two devices that can read each other's memory, and only for
 * whole words. HAS_QUEUE: launch and copy return before they are done, and a later call may report what went
 * wrong in them. */
enum {
  HAS_THREADS = 1,
  HAS_RUN = 2,
  HAS_CHECKS = 4,
  HAS_OWN_MEMORY = 8,
  HAS_FILES_ONLY = 16,
  HAS_QUEUE = 32,
  HAS_LISTS = 64,
  HAS_PEERS_ONLY = 128
};

/* A device works in the order in which it is given things, so copies and launches that read what earlier ones
 * write need no further care. Between two devices event_wait makes an order. A device without a queue has
 * finished each thing when the call returns; its events and graphs are in host.c. */
typedef struct TgBackend {
  const char *name; /* "CPU", "INTERP", "NULL:CUDA" .. */
  uint32_t has;
  /* returns TG_ERR_DEVICE with a reason if the device cannot work here */
  TgStatus (*open)(Device *d);
  void (*close)(Device *d);

  /* memory */
  TgStatus (*alloc)(Device *d, size_t nbytes, void **out); /* 64-byte aligned; any content */
  /* may be called while the device still uses p */
  void (*free)(Device *d, void *p, size_t nbytes);
  /* host memory that the device can access too */
  TgStatus (*host_alloc)(Device *d, size_t nbytes, void **out);
  void (*host_free)(Device *d, void *p, size_t nbytes);
  TgStatus (*memory_info)(Device *d, uint64_t *unused, uint64_t *total); /* bytes */

  /* copies */
  TgStatus (*copy_in)(Device *d, void *dst, const void *src, size_t nbytes);  /* src may be reused at once */
  TgStatus (*copy_out)(Device *d, void *dst, const void *src, size_t nbytes); /* waits until dst is filled */
  TgStatus (*copy)(Device *d, void *dst, const void *src, size_t nbytes);     /* within the device */
  TgStatus (*clear)(Device *d, void *dst, size_t nbytes);                     /* to zeros */
  /* copies from another device of this backend; the caller orders the two by events. NULL: copies go through
   * the host */
  TgStatus (*copy_peer)(Device *d, void *dst, Device *from, const void *src, size_t nbytes);
  /* optional: copies to another device of this backend in a queue beside the launches of d, once both events
   * are reached. *done is reached after the copy; it is created if it is NULL */
  TgStatus (*copy_beside)(Device *d, const void *src, Device *to, void *dst, size_t nbytes,
                          Event *const after[2], Event **done);
  /* optional: whether d can read the memory of `from` itself */
  bool (*reads_peer)(Device *d, Device *from);

  /* Compiles a batch: out[i] for k[i]. Compiles all or none. */
  TgStatus (*compile)(Device *d, const KernelSpec *k, int n, Program **out);
  void (*unload)(Device *d, Program *p);
  TgStatus (*launch)(Device *d, const Launch *l);

  /* the same launches, repeated: they are made once, may be given other arguments, and are launched as one */
  TgStatus (*graph_new)(Device *d, const Launch *l, int n, LaunchGraph **out);
  /* new arguments for launch i, of the same program */
  TgStatus (*graph_update)(Device *d, LaunchGraph *g, int i, const Launch *l);
  TgStatus (*graph_launch)(Device *d, LaunchGraph *g);
  void (*graph_free)(Device *d, LaunchGraph *g);

  /* order and time */
  TgStatus (*sync)(Device *d); /* waits until everything that it was given is done */
  /* reached after everything given so far; *e is created if it is NULL */
  TgStatus (*event_record)(Device *d, Event **e);
  TgStatus (*event_reach)(Device *d, Event *e); /* the host waits for the event */
  /* what d is given from now on waits for e, an event of any device */
  TgStatus (*event_wait)(Device *d, Event *e);
  double (*event_us)(Device *d, Event *from, Event *to); /* time between two events that were reached */
  void (*event_free)(Device *d, Event *e);
  /* optional: returns a queue for exchanges between ranks, as the handle that the system's other libraries
   * use. It is separate from the queue of launches, and starts after everything that d was given so far. The
   * caller puts work into it; stream_event then makes an event that is reached when the work is done (*e is
   * created if it is NULL) */
  void *(*stream)(Device *d);
  TgStatus (*stream_event)(Device *d, Event **e);
  /* optional: writes when each thread worked on the last launch that several threads shared, at most `most`
   * of them, and returns how many. Times are recorded from the first call on */
  int (*threads)(Device *d, ThreadTime *out, int most);
  /* optional: adds the kernels that it has compiled to a bundle; false: out of memory */
  bool (*bundled)(Device *d, Bundle *b);
  /* optional: returns the text of a program, which is valid while the program is loaded */
  const KernelText *(*text)(const Program *p);
  const Renderer *renderer; /* optional: NULL: the device takes linear UOps directly */
} TgBackend;

struct Device {
  const TgBackend *backend;
  /* index in its context: 0 is the device that the context was opened on */
  int index;
  char name[24]; /* "CPU", "CPU:1" */
  TgMem *mem;
  const TgOs *os;
  const TgEnv *env;
  TgError *err;
  Waiting waiting; /* .stop is NULL: nobody waits */
  /* bundle of its context, *bundle is NULL if the context has none; NULL: there can be none */
  Bundle *const *bundle;
  /* it was requested by name, so it opens even if it can do little */
  bool named;
  /* 1 + the rank that has this device; 0: each rank has its own, or there are no ranks */
  int of_rank;
  bool remote; /* it belongs to another rank */
  void *priv;
  Target target;        /* the machine to plan for */
  const char *describe; /* one line for `tg devices` */
  /* freed host memory, by rounded size (host.c) */
  struct HostBlock *kept[48][8];
  uint32_t large; /* number of blocks of large pages made so far */
  uint64_t bytes_kept;
  Event *fence; /* event of the last copy to or from another device */
  /* events around the launches whose time is being measured */
  Event *begun, *ended;
  bool timing;         /* that time has not been read yet */
  uint64_t bytes_most; /* the most it may have in use; 0: no limit */
  /* bytes of the plans' temporaries: in use, the most in use at once, kept for the next plan, and the most to
   * keep (0: twice the most in use at once) */
  uint64_t slabs_used, slabs_most, slabs_unused, pool_most;
  uint64_t bytes_in_use, bytes_peak, kernels_compiled, cache_hits, compiles_retried; /* counters */
};

/* Writes the folder, the bytes on disk and the number of kernels of the cache of compiled kernels. Returns
 * false if there is none. */
bool cache_facts(TgMem *mem, const TgOs *os, const TgEnv *env, char *dir, size_t cap, int64_t *nbytes,
                 int64_t *entries);
/* Makes d a stand-in for a device of another rank, which has that backend (remote.c). */
TgStatus remote_open(Device *d, const TgBackend *of);
#define BACKEND(name) extern const TgBackend backend_##name;
#include "runtime/backends.def"
#undef BACKEND
#endif
