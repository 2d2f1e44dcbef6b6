/* device.h: what a backend is: allocate, copy, compile, load, launch. The core asks what a device has, never
 * which one it is. */
#ifndef TG_DEVICE_H
#define TG_DEVICE_H
#include "renderer/renderer.h"

typedef struct Device Device;
typedef struct Bundle Bundle;   /* runtime/bundle.h */
typedef struct Program Program; /* a loaded kernel; the backend defines it */

/* A kernel to compile. Where `listed` is set, what linear->at lists is gone, and listed(user) makes it again,
 * or NULL with its error set: most kernels are compiled from their text alone. */
typedef struct KernelSpec {
  const Linear *linear;
  const char *source;   /* NULL for backends without renderer */
  int nvar;             /* variables that it reads */
  bool packs;           /* it makes copies that are kept (codegen/prepack.c) */
  size_t local_bytes;   /* at least what the renderer takes from scratch */
  int64_t shared_bytes; /* of a block on a GPU */
  const Linear *(*listed)(void *user);
  void *user;
} KernelSpec;

/* Of a buffer that a kernel is given. */
typedef struct ParamUse {
  bool used, stored; /* it is read or stored to; the latter */
  DType dtype;
} ParamUse;

/* A kernel of a device that renders and runs nothing. in_place: by parameter that is only read, those that are
 * stored to and may be the same memory (uop.h). ops, nbytes: what one call does, by weight, and reads and writes. */
typedef struct KernelText {
  const char *source;
  int64_t local_bytes;   /* of its arrays */
  int64_t scratch_bytes; /* of the same, as kernels of C take them from scratch */
  int nparam, nthread;   /* nthread: shares, each a call with its number */
  ParamUse *param;       /* nparam; NULL where its list was gone */
  bool runs;             /* a launch makes copies that are kept */
  uint64_t in_place[LIST_SLOTS];
  double ops, nbytes;
} KernelText;

/* Who waits for a device that compiles: `stop`, set by another thread or a signal handler, ends it with
 * TG_ERR_CANCELLED, and `tick` is called every now and then from the thread that compiles, with how many
 * kernels it has compiled since the last call. */
typedef struct Waiting {
  const _Atomic bool *stop;
  void (*tick)(void *user, int kernels);
  void *user;
} Waiting;

KernelSpec kernel_spec(const Linear *lin, const char *source);
/* TG_ERR_LIMIT where the device cannot launch such a grid, or has less local memory for a block: codegen asks
 * the same Target, so this is said of kernels that were made for another. */
TgStatus kernel_launches(const Device *d, const KernelSpec *k);
const Linear *kernel_list(const KernelSpec *k);

typedef struct Launch {
  Program *program;
  void *const *bufs;   /* for each PARAM slot */
  const int64_t *vars; /* of the program's variables, in its order */
  int nbuf, nvar;
} Launch;

/* When a thread of the host worked on a launch; as time_now_s. */
typedef struct ThreadTime {
  int thread; /* 0: the one that launched */
  double begin, end;
} ThreadTime;

typedef struct Event Event;             /* a moment in what a device was given; the backend defines it */
typedef struct LaunchGraph LaunchGraph; /* launches that are given as one; the backend defines it */

/* HAS_RUN: launch computes (NULL device: does not). HAS_CHECKS: an access outside its buffer is an error of
 * the launch. HAS_OWN_MEMORY: the host cannot read and write its buffers in place. HAS_FILES_ONLY: its memory
 * is files, and it computes nothing. HAS_LISTS: it takes kernels as lists, not as text. HAS_PEERS_ONLY: copy_beside
 * is for two of which one reads the other's memory, and whole words of it. HAS_QUEUE: launch and
 * copy return before they are done, and what goes wrong in them may be told by a later call. */
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

/* A device does what it is given in order: copies and launches that read what others write need nothing
 * besides. Between two devices, `wait` makes an order. A device without a queue has done each thing when the
 * call returns; host.c has its events and graphs. */
typedef struct TgBackend {
  const char *name; /* "CPU", "INTERP", "NULL:CUDA" .. */
  uint32_t has;
  TgStatus (*open)(Device *d); /* TG_ERR_DEVICE with a reason when it cannot work here */
  void (*close)(Device *d);

  /* memory */
  TgStatus (*alloc)(Device *d, size_t nbytes, void **out); /* 64-byte aligned; of any content */
  void (*free)(Device *d, void *p, size_t nbytes);         /* also while what it was given still uses p */
  TgStatus (*host_alloc)(Device *d, size_t nbytes, void **out); /* the host's, which the device reaches too */
  void (*host_free)(Device *d, void *p, size_t nbytes);
  TgStatus (*memory_info)(Device *d, uint64_t *unused, uint64_t *total); /* bytes */

  /* copies */
  TgStatus (*copy_in)(Device *d, void *dst, const void *src, size_t nbytes);  /* src may be reused at once */
  TgStatus (*copy_out)(Device *d, void *dst, const void *src, size_t nbytes); /* waits: dst is filled */
  TgStatus (*copy)(Device *d, void *dst, const void *src, size_t nbytes);     /* within the device */
  TgStatus (*clear)(Device *d, void *dst, size_t nbytes);                     /* to zeros */
  /* from another device of this backend, which the caller orders by events; NULL: goes through the host */
  TgStatus (*copy_peer)(Device *d, void *dst, Device *from, const void *src, size_t nbytes);
  /* optional: to another device of this backend, in a queue beside the launches of d, when both events were
   * reached; then *done is, which is made where it is NULL */
  TgStatus (*copy_beside)(Device *d, const void *src, Device *to, void *dst, size_t nbytes,
                          Event *const after[2], Event **done);
  /* optional: d may read the other's memory itself */
  bool (*reads_peer)(Device *d, Device *from);

  /* Compiles a batch: out[i] for k[i]; all or nothing. */
  TgStatus (*compile)(Device *d, const KernelSpec *k, int n, Program **out);
  void (*unload)(Device *d, Program *p);
  TgStatus (*launch)(Device *d, const Launch *l);

  /* the same launches again and again: made once, given other arguments, launched as one */
  TgStatus (*graph_new)(Device *d, const Launch *l, int n, LaunchGraph **out);
  TgStatus (*graph_update)(Device *d, LaunchGraph *g, int i, const Launch *l); /* launch i, same program */
  TgStatus (*graph_launch)(Device *d, LaunchGraph *g);
  void (*graph_free)(Device *d, LaunchGraph *g);

  /* order and time */
  TgStatus (*sync)(Device *d);                    /* until all that it was given is done */
  TgStatus (*event_record)(Device *d, Event **e); /* after all given so far; *e is made where it is NULL */
  TgStatus (*event_reach)(Device *d, Event *e);   /* the host waits for it */
  TgStatus (*event_wait)(Device *d, Event *e);    /* what d is given from now on waits for e of any device */
  double (*event_us)(Device *d, Event *from, Event *to); /* between two that were reached */
  void (*event_free)(Device *d, Event *e);
  /* optional: a queue of its own for exchanges between ranks, beside the launches and behind all that d
   * was given so far, as the system's other libraries know it: the caller puts something into it. Then *e
   * is reached when that is done; *e is made where it is NULL. */
  void *(*stream)(Device *d);
  TgStatus (*stream_event)(Device *d, Event **e);
  /* optional: when each thread worked on the last launch that several shared, as many as there is room for; it
   * is kept from the first call on */
  int (*threads)(Device *d, ThreadTime *out, int most);
  /* optional: adds to a bundle what it has compiled; false: out of memory */
  bool (*bundled)(Device *d, Bundle *b);
  /* optional: what a program is, while it is loaded */
  const KernelText *(*text)(const Program *p);
  const Renderer *renderer; /* optional: NULL takes linear UOps directly */
} TgBackend;

struct Device {
  const TgBackend *backend;
  int index;     /* in its context: 0 is the one that the context was opened on */
  char name[24]; /* "CPU", "CPU:1" */
  TgMem *mem;
  const TgOs *os;
  const TgEnv *env;
  TgError *err;
  Waiting waiting;       /* .stop NULL: nobody waits */
  Bundle *const *bundle; /* of its context, which may have none; NULL: never */
  bool named;            /* somebody asked for this device, so that it opens though it can do little */
  int of_rank;           /* 1 + the rank that has it; 0: each rank has its own, as where there are no ranks */
  bool remote;           /* another rank's */
  void *priv;
  Target target;                 /* the machine that it plans for */
  const char *describe;          /* one line for `tg devices` */
  struct HostBlock *kept[48][8]; /* host memory that was freed, by size (host.c) */
  uint32_t large;                /* blocks of large pages that were made of it */
  uint64_t bytes_kept;
  Event *fence;         /* of the last copy to or from another device */
  Event *begun, *ended; /* around the launches whose time .. */
  bool timing;          /* .. was not taken yet */
  uint64_t bytes_most;  /* it may have in use; 0: what there is */
  /* bytes of the plans' temporaries: in use, the most that were at once, kept for the next plan, the most to
   * keep (0: twice what was in use at once) */
  uint64_t slabs_used, slabs_most, slabs_unused, pool_most;
  uint64_t bytes_in_use, bytes_peak, kernels_compiled, cache_hits, compiles_retried; /* counters */
};

/* The cache of compiled kernels: its folder, bytes on disk and kernels. False: there is none. */
bool cache_facts(TgMem *mem, const TgOs *os, const TgEnv *env, char *dir, size_t cap, int64_t *nbytes,
                 int64_t *entries);
/* d stands in for a device of another rank, of that backend (remote.c). */
TgStatus remote_open(Device *d, const TgBackend *of);
#define BACKEND(name) extern const TgBackend backend_##name;
#include "runtime/backends.def"
#undef BACKEND
#endif
