/* cuda_mock.c: the driver and the compiler of a GPU that is not there. In: the calls of cuda_api.def. Out:
 * what they would do, done by the emulator (emulate.h) with its checks. What is put into a stream is done as
 * late as it may be, when somebody waits, or (TG_EMU=2 and more) at times and in an order between streams
 * that a seed chooses: a wait that is missing shows as a wrong value or as an error. So do memory that is
 * freed while work that was given may use it, what is never freed (counts), and any call that fails
 * (cuda_mock_fail). Like the real one it is one for the process, and after an error of a kernel every call
 * fails. */
#define _GNU_SOURCE
#include "runtime/cuda.h"
#include "runtime/emulate.h"
#include "base/os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GPUS = 2, MOST_GIVEN = 4096, ARCH = 90, VERSION = 13000 };

static const size_t GPU_BYTES = (size_t)16 << 30;

struct CudaContext {
  int device, refs;
};

struct CudaModule {
  EmuModule *module;
  int device;
};

struct CudaFunction {
  EmuKernel *kernel;
  CUmodule module;
  CUfunction next;
};

/* recorded: how often; reached: which of these, and all before it, are done. refs: the owner's, and of what
 * was put into streams. */
struct CudaEvent {
  uint64_t recorded, reached;
  double at_s;
  int refs;
};

typedef struct KernelCall {
  CUfunction function;
  uint32_t grid[3], block[3];
  size_t shared_bytes;
  int narg;
  uint64_t *args; /* by value */
} KernelCall;

typedef enum OpKind { OP_LAUNCH, OP_IN, OP_OUT, OP_COPY, OP_CLEAR, OP_RECORD, OP_WAIT } OpKind;

/* One thing that a stream is to do. own: host memory as it was at the call, where that is not pinned. number:
 * of the event's records, or the byte to fill with. */
typedef struct Op {
  OpKind kind;
  struct Op *next;
  KernelCall call;
  void *to;
  const void *from;
  void *own;
  size_t nbytes;
  int to_device, from_device;
  CUevent event;
  uint64_t number;
} Op;

struct CudaStream {
  int device;
  Op *first, *last;
  CUstream next;
};

struct CudaNode {
  KernelCall call;
  CUgraphNode next;
};

struct CudaGraph {
  CUgraphNode first, last;
};

/* call[i]: what node[i] of the graph that it was made from is now. */
struct CudaExec {
  int n;
  CUgraphNode *node;
  KernelCall *call;
};

struct CudaUnit {
  char *text, *log;
  Blob object;
};

typedef struct Pinned {
  char *at;
  size_t nbytes;
  struct Pinned *next;
} Pinned;

/* A block of the emulator, for what is in flight. */
typedef struct MockBlock {
  char *at;
  size_t nbytes;
  int device;
  struct MockBlock *next;
} MockBlock;

typedef struct Mock {
  int opened;
  TgMem mem; /* the driver's own, not a context's */
  TgEnv env;
  Compiler cc;
  bool identified;
  void *nvrtc; /* NVIDIA's own, for TG_EMU_ARCHS */
  CudaApi real;
  char ident[900];
  Emu *emu[GPUS];
  struct CudaContext context[GPUS];
  CUstream streams;
  CUfunction functions;
  Pinned *pinned;
  MockBlock *blocks;
  size_t ngiven; /* that streams are to do */
  uint64_t seed;
  CUresult broken; /* after an error of a kernel */
  TgError why;
  CudaMockCounts counts;
  char fails[32];    /* "": any call */
  uint64_t fails_in; /* calls of that name; 0: none */
  CUresult fails_with;
} Mock;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Mock mock;
static _Thread_local CUcontext now; /* of this thread */

static void *take(size_t nbytes) { return mem_alloc(&mock.mem, nbytes + 1); } /* zeroed */

static void drop(void *p) { mem_free(&mock.mem, p); }

/* What the emulator says of an access, a race or a barrier ends the GPU's work, as it does on a real one. */
static CUresult refused(TgStatus st) {
  if (!st) return CUDA_OK;
  if (st == TG_ERR_NOMEM) return CUDA_OUT_OF_MEMORY;
  if (!mock.broken) mock.broken = CUDA_LAUNCH_FAILED;
  return mock.broken;
}

static CUresult misused(const char *what) { return refused(error_set(&mock.why, TG_ERR_DEVICE, "%s", what)); }

static bool seeded(uint64_t below) { /* of some calls, by the seed */
  mock.seed = hash_mix(mock.seed, below);
  return mock.env.emulate > 1 && mock.seed % below == 0;
}

/* ---- what is given to streams */
static void event_unref(CUevent e) {
  if (e && --e->refs == 0) drop(e);
}

static void op_free(Op *op) {
  event_unref(op->event);
  drop(op->call.args), drop(op->own), drop(op);
  mock.ngiven--;
}

static TgStatus copied_between(Emu *to, Emu *from, const Op *op) {
  if (to == from) return emu_copy(to, op->to, op->from, op->nbytes, &mock.why);
  void *piece = take(op->nbytes);
  TgStatus st = piece ? emu_read(from, piece, op->from, op->nbytes, &mock.why) : TG_ERR_NOMEM;
  if (!st) st = emu_write(to, op->to, piece, op->nbytes, &mock.why);
  drop(piece);
  return st;
}

static TgStatus kernel_run(Emu *e, const KernelCall *c) {
  void **params = take((size_t)c->narg * sizeof *params);
  if (!params) return TG_ERR_NOMEM;
  for (int i = 0; i < c->narg; i++)
    params[i] = &c->args[i];
  mock.counts.launches++;
  TgStatus st = emu_launch(e, c->function->kernel, c->grid, c->block, c->shared_bytes, params, &mock.why);
  drop(params);
  return st;
}

static CUresult op_run(const Op *op) {
  Emu *to = mock.emu[op->to_device], *from = mock.emu[op->from_device];
  switch (op->kind) {
  case OP_LAUNCH: return refused(kernel_run(to, &op->call));
  case OP_IN: return refused(emu_write(to, op->to, op->own ? op->own : op->from, op->nbytes, &mock.why));
  case OP_OUT: return refused(emu_read(from, op->to, op->from, op->nbytes, &mock.why));
  case OP_COPY: return refused(copied_between(to, from, op));
  case OP_CLEAR: return refused(emu_fill(to, op->to, (int)op->number, op->nbytes, &mock.why));
  case OP_RECORD:
    op->event->reached = TG_MAX(op->event->reached, op->number);
    op->event->at_s = time_now_s();
    return CUDA_OK;
  default: return CUDA_OK;
  }
}

static bool held_up(const Op *op) { return op->kind == OP_WAIT && op->event->reached < op->number; }

static CUstream stream_of_record(const Op *wait) { /* that is to do what is waited for */
  for (CUstream s = mock.streams; s; s = s->next)
    for (const Op *op = s->first; op; op = op->next)
      if (op->kind == OP_RECORD && op->event == wait->event && op->number >= wait->number) return s;
  return NULL;
}

static void first_done(CUstream s) {
  Op *op = s->first;
  if (!mock.broken) op_run(op);
  if (!(s->first = op->next)) s->last = NULL;
  op_free(op);
}

/* Does what s is to do until nothing is left, or until `e` is reached; other streams only as far as it waits
 * for them. */
static CUresult stream_done(CUstream s, CUevent e, uint64_t number) {
  while (s->first && !(e && e->reached >= number) && !mock.broken) {
    CUstream busy = s; /* the last of those that wait for one another */
    for (int depth = 0; busy && busy->first && held_up(busy->first) && depth < MOST_GIVEN; depth++)
      busy = stream_of_record(busy->first);
    if (!busy || !busy->first || held_up(busy->first))
      return misused("streams wait for one another for ever");
    first_done(busy);
  }
  return mock.broken;
}

/* At times, and where very much was given, something is done before anybody waits. */
static void some_done(void) {
  while (seeded(3) || mock.ngiven > MOST_GIVEN) {
    CUstream ready[16];
    size_t n = 0;
    for (CUstream s = mock.streams; s && n < TG_COUNT(ready); s = s->next)
      if (s->first && !held_up(s->first)) ready[n++] = s;
    if (!n) return;
    first_done(ready[mock.seed / 3 % n]);
  }
}

static CUresult given(CUstream s, Op *op) {
  if (s->last)
    s->last->next = op;
  else
    s->first = op;
  s->last = op;
  if (op->event) op->event->refs++;
  mock.ngiven++;
  some_done();
  return mock.broken;
}

/* Takes what the op owns. */
static CUresult op_given(CUstream s, Op what) {
  Op *op = s && !mock.broken ? take(sizeof *op) : NULL;
  if (!op) {
    drop(what.call.args), drop(what.own);
    return mock.broken ? mock.broken : s ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
  }
  *op = what;
  return given(s, op);
}

static bool meets(const void *p, size_t n, const void *q, size_t m) {
  uintptr_t a = (uintptr_t)p, b = (uintptr_t)q;
  return n && m && a < b + m && b < a + n;
}

static bool call_uses(const KernelCall *c, const void *p, size_t nbytes) {
  for (int i = 0; i < c->narg; i++)
    if (meets((const void *)(uintptr_t)c->args[i], 1, p, nbytes)) return true;
  return false;
}

/* Whether what was given, and is not done, uses memory. */
static bool in_use(const void *p, size_t nbytes) {
  for (CUstream s = mock.streams; s; s = s->next)
    for (const Op *op = s->first; op; op = op->next)
      if (call_uses(&op->call, p, nbytes) || meets(op->to, op->nbytes, p, nbytes) ||
          (!op->own && meets(op->from, op->nbytes, p, nbytes)))
        return true;
  return false;
}

/* ---- the driver: device and context */
static CUresult mock_init(unsigned flags) { return flags ? CUDA_INVALID_VALUE : CUDA_OK; }

static CUresult mock_driver_version(int *version) { return *version = VERSION, CUDA_OK; }

static CUresult mock_error_name(CUresult r, const char **text) {
  static const struct {
    CUresult r;
    const char *name;
  } names[] = {{CUDA_OK, "CUDA_SUCCESS"},
               {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
               {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
               {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
               {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};

  for (size_t i = 0; i < TG_COUNT(names); i++)
    if (names[i].r == r) return *text = names[i].name, CUDA_OK;
  return CUDA_INVALID_VALUE;
}

static CUresult mock_error_text(CUresult r, const char **text) {
  *text = r == mock.broken && r ? mock.why.msg : "";
  return CUDA_OK;
}

static CUresult mock_device_count(int *n) { return *n = GPUS, CUDA_OK; }

static CUresult mock_device_get(CUdevice *d, int index) {
  return *d = index, index >= 0 && index < GPUS ? CUDA_OK : CUDA_INVALID_VALUE;
}

static CUresult mock_device_name(char *name, int room, CUdevice d) {
  return snprintf(name, (size_t)room, "emulated GPU %d", d), CUDA_OK;
}

/* The GPU that plans are made for where there is none (target_cuda). */
static CUresult mock_device_attribute(int *value, int attribute, CUdevice d) {
  const Target *t = &target_cuda;

  enum { BUS_BITS = 5120 };

  (void)d;
  double bytes_s = t->bytes_us[LEVEL_MEMORY] * t->streams * 1e6;
  switch (attribute) {
  case CUDA_SHARED_PER_BLOCK: *value = (int)t->local_bytes; break;
  case CUDA_CLOCK_KHZ: *value = (int)(t->mhz * 1000); break;
  case CUDA_MULTIPROCESSORS: *value = t->cores; break;
  case CUDA_MEMORY_KHZ: *value = (int)(bytes_s / 2 / (BUS_BITS / 8) / 1000); break;
  case CUDA_MEMORY_BITS: *value = BUS_BITS; break;
  case CUDA_L2_BYTES: *value = (int)t->cache[LEVEL_L3]; break;
  case CUDA_ARCH_MAJOR: *value = ARCH / 10; break;
  case CUDA_ARCH_MINOR: *value = ARCH % 10; break;
  default: return CUDA_INVALID_VALUE;
  }
  return CUDA_OK;
}

static CUresult mock_context_retain(CUcontext *c, CUdevice d) {
  if (!mock.emu[d] && !(mock.emu[d] = emu_new(&mock.mem, &tg_os_default))) return CUDA_OUT_OF_MEMORY;
  emu_order(mock.emu[d], mock.env.emulate > 1 ? (uint64_t)mock.env.emulate - 1 : 0);
  *c = &mock.context[d];
  (*c)->device = d;
  mock.counts.contexts += !(*c)->refs++;
  return CUDA_OK;
}

static void blocks_left(int device) { /* the driver frees what its user did not */
  for (MockBlock **b = &mock.blocks; *b;) {
    MockBlock *gone = *b;
    if (gone->device != device) {
      b = &gone->next;
      continue;
    }
    *b = gone->next;
    drop(gone);
  }
}

static void functions_left(CUmodule m, int device) { /* of a module, or NULL: of a device */
  for (CUfunction *f = &mock.functions; *f;) {
    CUfunction gone = *f;
    if (m ? gone->module != m : gone->module->device != device) {
      f = &gone->next;
      continue;
    }
    *f = gone->next;
    drop(gone);
  }
}

static CUresult mock_context_release(CUdevice d) {
  CUcontext c = &mock.context[d];
  if (!c->refs) return CUDA_INVALID_VALUE;
  if (--c->refs) return CUDA_OK;
  mock.counts.contexts--;
  blocks_left(d), functions_left(NULL, d);
  emu_free(mock.emu[d]);
  mock.emu[d] = NULL;
  bool any = false;
  for (int i = 0; i < GPUS; i++)
    any |= mock.context[i].refs > 0;
  if (!any) mock.broken = CUDA_OK, mock.why = (TgError){0};
  return CUDA_OK;
}

static CUresult mock_context_set(CUcontext c) { return now = c, CUDA_OK; }

static CUresult mock_peer_can(int *can, CUdevice d, CUdevice peer) { return *can = d != peer, CUDA_OK; }

static CUresult mock_peer_enable(CUcontext peer, unsigned flags) {
  return peer && !flags ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- memory */
static CUresult mock_memory_info(size_t *unused, size_t *total) {
  *unused = *total = GPU_BYTES;
  for (const MockBlock *b = mock.blocks; b; b = b->next)
    if (now && b->device == now->device) *unused -= TG_MIN(*unused, b->nbytes);
  return CUDA_OK;
}

static CUresult mock_memory_alloc(CUdeviceptr *p, size_t nbytes) {
  size_t unused, total;
  void *at = NULL;
  if (mock.broken) return mock.broken;
  if (!now || !nbytes) return CUDA_INVALID_VALUE;
  mock_memory_info(&unused, &total);
  MockBlock *b = nbytes <= unused ? take(sizeof *b) : NULL;
  TgError why = {0};
  if (!b || emu_alloc(mock.emu[now->device], nbytes, &why, &at)) {
    drop(b);
    return CUDA_OUT_OF_MEMORY;
  }
  *b = (MockBlock){at, nbytes, now->device, mock.blocks};
  mock.blocks = b, mock.counts.blocks++;
  *p = (uintptr_t)at;
  return CUDA_OK;
}

/* A real driver may wait here for what uses the memory, or not: it is not to be relied on. */
static CUresult mock_memory_free(CUdeviceptr p) {
  for (MockBlock **b = &mock.blocks; *b; b = &(*b)->next) {
    if ((uintptr_t)(*b)->at != p) continue;
    MockBlock *gone = *b;
    if (in_use(gone->at, gone->nbytes)) misused("memory is freed while what was given to a stream uses it");
    TgError why = {0};
    emu_release(mock.emu[gone->device], gone->at, &why);
    *b = gone->next;
    drop(gone);
    mock.counts.blocks--;
    return mock.broken;
  }
  return misused("what is freed is no memory of the GPU, or was freed before");
}

static CUresult mock_host_alloc(void **p, size_t nbytes, unsigned flags) {
  Pinned *host = take(sizeof *host);
  char *at = host ? take(nbytes) : NULL;
  if (!at || flags) {
    drop(host), drop(at);
    return flags ? CUDA_INVALID_VALUE : CUDA_OUT_OF_MEMORY;
  }
  *host = (Pinned){at, nbytes, mock.pinned};
  mock.pinned = host, mock.counts.pinned++;
  *p = at;
  return CUDA_OK;
}

static CUresult mock_host_free(void *p) {
  for (Pinned **h = &mock.pinned; *h; h = &(*h)->next) {
    if ((*h)->at != p) continue;
    Pinned *gone = *h;
    if (in_use(gone->at, gone->nbytes)) misused("host memory is freed while a copy that was given uses it");
    *h = gone->next;
    drop(gone->at), drop(gone);
    mock.counts.pinned--;
    return mock.broken;
  }
  return CUDA_INVALID_VALUE;
}

static bool is_pinned(const void *p, size_t nbytes) {
  for (const Pinned *h = mock.pinned; h; h = h->next)
    if ((const char *)p >= h->at && (const char *)p + nbytes <= h->at + h->nbytes) return true;
  return false;
}

static CUresult mock_copy_in(CUdeviceptr to, const void *from, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_IN, .to = (void *)(uintptr_t)to, .from = from, .nbytes = nbytes};
  if (!s) return CUDA_INVALID_VALUE;
  op.to_device = s->device;
  if (!is_pinned(from, nbytes)) { /* it may be changed as soon as the call returns */
    if (!(op.own = take(nbytes))) return CUDA_OUT_OF_MEMORY;
    memcpy(op.own, from, nbytes);
  }
  return op_given(s, op);
}

static CUresult mock_copy_out(void *to, CUdeviceptr from, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_OUT, .to = to, .from = (void *)(uintptr_t)from, .nbytes = nbytes};
  if (!s) return CUDA_INVALID_VALUE;
  op.from_device = s->device;
  CUresult r = op_given(s, op);
  return r || is_pinned(to, nbytes) ? r : stream_done(s, NULL, 0);
}

static CUresult mock_copy(CUdeviceptr to, CUdeviceptr from, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .nbytes = nbytes};
  if (!s) return CUDA_INVALID_VALUE;
  op.to_device = op.from_device = s->device;
  return op_given(s, op);
}

static CUresult mock_clear(CUdeviceptr to, unsigned char byte, size_t nbytes, CUstream s) {
  Op op = {.kind = OP_CLEAR, .to = (void *)(uintptr_t)to, .nbytes = nbytes, .number = byte};
  if (!s) return CUDA_INVALID_VALUE;
  op.to_device = s->device;
  return op_given(s, op);
}

static CUresult mock_copy_peer(CUdeviceptr to, CUcontext at, CUdeviceptr from, CUcontext of, size_t nbytes,
                               CUstream s) {
  Op op = {.kind = OP_COPY, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .nbytes = nbytes};
  op.to_device = at->device, op.from_device = of->device;
  return op_given(s, op);
}

/* ---- streams and events */
static CUresult mock_stream_create(CUstream *s, unsigned flags) {
  if (!now || flags != CUDA_STREAM_NON_BLOCKING) return CUDA_INVALID_VALUE;
  if (!(*s = take(sizeof **s))) return CUDA_OUT_OF_MEMORY;
  (*s)->device = now->device, (*s)->next = mock.streams;
  mock.streams = *s, mock.counts.streams++;
  return CUDA_OK;
}

static CUresult mock_stream_destroy(CUstream s) {
  CUstream *at = &mock.streams;
  stream_done(s, NULL, 0);
  while (s->first) { /* of a GPU that is broken */
    Op *op = s->first;
    s->first = op->next;
    op_free(op);
  }
  while (*at != s)
    at = &(*at)->next;
  *at = s->next;
  drop(s);
  mock.counts.streams--;
  return CUDA_OK;
}

static CUresult mock_stream_sync(CUstream s) { return mock.broken ? mock.broken : stream_done(s, NULL, 0); }

static CUresult mock_stream_wait(CUstream s, CUevent e, unsigned flags) {
  if (flags) return CUDA_INVALID_VALUE;
  if (!e->recorded) return CUDA_OK;
  return op_given(s, (Op){.kind = OP_WAIT, .event = e, .number = e->recorded});
}

static CUresult mock_event_create(CUevent *e, unsigned flags) {
  if (flags & ~(unsigned)CUDA_EVENT_NO_TIME) return CUDA_INVALID_VALUE;
  if (!(*e = take(sizeof **e))) return CUDA_OUT_OF_MEMORY;
  (*e)->refs = 1, mock.counts.events++;
  return CUDA_OK;
}

static CUresult mock_event_destroy(CUevent e) {
  event_unref(e);
  mock.counts.events--;
  return CUDA_OK;
}

static CUresult mock_event_record(CUevent e, CUstream s) {
  return op_given(s, (Op){.kind = OP_RECORD, .event = e, .number = ++e->recorded});
}

static CUresult mock_event_sync(CUevent e) {
  Op wait = {.kind = OP_WAIT, .event = e, .number = e->recorded};
  while (!mock.broken && held_up(&wait)) {
    CUstream s = stream_of_record(&wait);
    if (!s) return misused("an event is waited for that nobody records");
    stream_done(s, e, e->recorded);
  }
  return mock.broken;
}

static CUresult mock_event_ms(float *ms, CUevent from, CUevent to) {
  enum { NOT_READY = 600 };

  if (from->reached < from->recorded || to->reached < to->recorded) return NOT_READY;
  *ms = (float)((to->at_s - from->at_s) * 1e3);
  return CUDA_OK;
}

/* ---- kernels */
static CUresult mock_module_load(CUmodule *m, const void *image) {
  size_t nbytes;
  if (mock.broken || !now) return now ? mock.broken : CUDA_INVALID_VALUE;
  memcpy(&nbytes, image, sizeof nbytes);
  if (!(*m = take(sizeof **m))) return CUDA_OUT_OF_MEMORY;
  (*m)->device = now->device;
  TgError why = {0};
  const char *object = (const char *)image + sizeof nbytes;
  if (emu_load(mock.emu[now->device], object, nbytes, &why, &(*m)->module)) {
    drop(*m);
    return CUDA_INVALID_VALUE;
  }
  mock.counts.modules++;
  return CUDA_OK;
}

static CUresult mock_module_unload(CUmodule m) {
  for (CUstream s = mock.streams; s; s = s->next)
    for (const Op *op = s->first; op; op = op->next)
      if (op->kind == OP_LAUNCH && op->call.function->module == m)
        misused("a module is unloaded while a kernel of it is to run");
  functions_left(m, 0);
  emu_unload(mock.emu[m->device], m->module);
  drop(m);
  mock.counts.modules--;
  return mock.broken;
}

static CUresult mock_module_function(CUfunction *f, CUmodule m, const char *name) {
  enum { NOT_FOUND = 500 };

  EmuKernel *k = emu_kernel(m->module, name);
  if (!k) return NOT_FOUND;
  if (!(*f = take(sizeof **f))) return CUDA_OUT_OF_MEMORY;
  **f = (struct CudaFunction){k, m, mock.functions};
  mock.functions = *f;
  return CUDA_OK;
}

/* A launch with its arguments taken, as the call may change them when it returns. Each has 8 bytes here. */
static CUresult call_made(KernelCall *c, CUfunction f, const unsigned grid[3], const unsigned block[3],
                          unsigned shared, void **args) {
  *c = (KernelCall){.function = f, .shared_bytes = shared, .narg = emu_nparam(f->kernel)};
  if (!(c->args = take((size_t)c->narg * sizeof *c->args))) return CUDA_OUT_OF_MEMORY;
  for (int i = 0; i < 3; i++)
    c->grid[i] = grid[i], c->block[i] = block[i];
  for (int i = 0; i < c->narg; i++)
    memcpy(&c->args[i], args[i], TG_MIN(emu_param_bytes(f->kernel, i), sizeof *c->args));
  return CUDA_OK;
}

static CUresult call_copied(KernelCall *c, const KernelCall *from) {
  *c = *from;
  if (!(c->args = take((size_t)c->narg * sizeof *c->args))) return CUDA_OUT_OF_MEMORY;
  memcpy(c->args, from->args, (size_t)c->narg * sizeof *c->args);
  return CUDA_OK;
}

static CUresult call_given(CUstream s, const KernelCall *c) {
  return op_given(s, (Op){.kind = OP_LAUNCH, .call = *c, .to_device = s->device, .from_device = s->device});
}

static CUresult mock_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, CUstream s, void **args, void **extra) {
  KernelCall c;
  if (!f || !s || extra) return CUDA_INVALID_VALUE;
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  CUresult r = call_made(&c, f, grid, block, shared, args);
  return r ? r : call_given(s, &c);
}

/* ---- graphs */
static CUresult mock_graph_create(CUgraph *g, unsigned flags) {
  if (flags) return CUDA_INVALID_VALUE;
  if (!(*g = take(sizeof **g))) return CUDA_OUT_OF_MEMORY;
  mock.counts.graphs++;
  return CUDA_OK;
}

static CUresult mock_graph_destroy(CUgraph g) {
  while (g->first) {
    CUgraphNode n = g->first;
    g->first = n->next;
    drop(n->call.args), drop(n);
  }
  drop(g);
  mock.counts.graphs--;
  return CUDA_OK;
}

/* A chain is what is built here: each node after the one that was added before it. */
static CUresult mock_graph_add(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t nafter,
                               const CudaKernelNode *k) {
  if (nafter != (g->last != NULL) || (nafter && after[0] != g->last)) return CUDA_INVALID_VALUE;
  if (!(*n = take(sizeof **n))) return CUDA_OUT_OF_MEMORY;
  CUresult r = call_made(&(*n)->call, k->function, k->grid, k->block, k->shared_bytes, k->args);
  if (r) {
    drop(*n);
    return r;
  }
  *(g->last ? &g->last->next : &g->first) = *n;
  g->last = *n;
  return CUDA_OK;
}

static CUresult mock_graph_exec_destroy(CUgraphExec e) {
  for (int i = 0; i < e->n; i++)
    drop(e->call[i].args);
  drop(e->node), drop(e->call), drop(e);
  mock.counts.execs--;
  return CUDA_OK;
}

static CUresult mock_graph_instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags) {
  size_t n = 0;
  if (flags) return CUDA_INVALID_VALUE;
  for (CUgraphNode at = g->first; at; at = at->next)
    n++;
  CUgraphExec e = *out = take(sizeof *e);
  if (!e) return CUDA_OUT_OF_MEMORY;
  mock.counts.execs++;
  e->node = take(n * sizeof *e->node), e->call = take(n * sizeof *e->call);
  CUresult r = e->node && e->call ? CUDA_OK : CUDA_OUT_OF_MEMORY;
  for (CUgraphNode at = g->first; at && !r; at = at->next)
    if (!(r = call_copied(&e->call[e->n], &at->call))) e->node[e->n++] = at;
  if (r) mock_graph_exec_destroy(e);
  return r;
}

/* What was launched before keeps its arguments. */
static CUresult mock_graph_update(CUgraphExec e, CUgraphNode n, const CudaKernelNode *k) {
  KernelCall c;
  int i = 0;
  while (i < e->n && e->node[i] != n)
    i++;
  if (i == e->n || e->call[i].function != k->function) return CUDA_INVALID_VALUE;
  CUresult r = call_made(&c, k->function, k->grid, k->block, k->shared_bytes, k->args);
  if (r) return r;
  drop(e->call[i].args);
  e->call[i] = c;
  return CUDA_OK;
}

static CUresult mock_graph_launch(CUgraphExec e, CUstream s) {
  CUresult r = mock.broken;
  mock.counts.graph_launches++;
  for (int i = 0; i < e->n && !r; i++) {
    KernelCall c;
    r = call_copied(&c, &e->call[i]);
    if (!r) r = call_given(s, &c);
  }
  return r;
}

/* ---- the compiler */
enum { OUT_OF_MEMORY = 1, INVALID_INPUT = 3, COMPILATION = 6 }; /* nvrtcResult */

static TgStatus compiler_known(TgError *err) {
  if (mock.identified) return TG_OK;
  TgStatus st = compiler_find(&tg_os_default, &mock.env, err, &mock.cc);
  if (!st) st = compiler_identify(&mock.mem, &tg_os_default, err, &mock.cc, mock.env.cc_limit);
  mock.identified = !st;
  return st;
}

static nvrtcResult mock_compiler_version(int *major, int *minor) {
  return *major = VERSION / 1000, *minor = VERSION % 1000 / 10, CUDA_OK;
}

static nvrtcResult mock_compiler_narchs(int *n) { return *n = 1, CUDA_OK; }

static nvrtcResult mock_compiler_archs(int *archs) { return *archs = ARCH, CUDA_OK; }

static nvrtcResult mock_unit_create(nvrtcProgram *p, const char *text, const char *name, int nheader,
                                    const char *const *headers, const char *const *names) {
  (void)name, (void)headers, (void)names;
  if (nheader) return INVALID_INPUT;
  if (!(*p = take(sizeof **p))) return OUT_OF_MEMORY;
  if (!((*p)->text = mem_strdup(&mock.mem, text))) {
    drop(*p);
    return OUT_OF_MEMORY;
  }
  mock.counts.units++;
  return CUDA_OK;
}

static nvrtcResult mock_unit_destroy(nvrtcProgram *p) {
  drop((*p)->text), drop((*p)->log), drop((*p)->object.at), drop(*p);
  *p = NULL;
  mock.counts.units--;
  return CUDA_OK;
}

/* NVIDIA's compiler takes the text for an architecture, and has nothing to say about it. */
static TgStatus taken_by_nvrtc(const char *text, const char *arch, TgError *err) {
  const CudaApi *real = &mock.real;
  nvrtcProgram unit = NULL;
  char option[64], *log = NULL;
  size_t n = 0;
  snprintf(option, sizeof option, "--gpu-architecture=sm_%.20s", arch);
  const char *options[] = {option, "--fmad=false"};
  if (real->unit_create(&unit, text, "kernels.cu", 0, NULL, NULL)) return TG_ERR_DEVICE;
  bool ok = !real->unit_compile(unit, TG_COUNT(options), options);
  if (!real->unit_log_size(unit, &n) && (log = take(n)) != NULL) real->unit_log(unit, log);
  TgStatus st = TG_OK;
  if (!ok || (log && strstr(log, "warning")))
    st = error_set(err, TG_ERR_COMPILE, "NVRTC for sm_%.20s: %.200s", arch, log ? log : "it fails");
  drop(log);
  real->unit_destroy(&unit);
  return st;
}

static TgStatus taken_for_all(const char *text, TgError *err) {
  char archs[sizeof mock.env.emulate_archs], *rest = archs, *arch;
  memcpy(archs, mock.env.emulate_archs, sizeof archs);
  TgStatus st = TG_OK;
  if (*archs && !mock.nvrtc) st = nvrtc_load(&tg_os_default, err, &mock.nvrtc, &mock.real);
  while (!st && (arch = strtok_r(rest, " ", &rest)))
    st = taken_by_nvrtc(text, arch, err);
  return st;
}

static nvrtcResult mock_unit_compile(nvrtcProgram p, int noption, const char *const *options) {
  TgError err = {0};
  if (noption < 1 || strcmp(options[0], "--gpu-architecture=sm_90")) return INVALID_INPUT;
  mock.counts.compiles++;
  TgStatus st = compiler_known(&err);
  if (!st)
    st = emu_compile(&mock.mem, &tg_os_default, &err, &mock.cc, &emu_dialect_cuda, p->text, mock.env.cc_limit,
                     &p->object);
  if (!st) st = taken_for_all(p->text, &err);
  p->log = mem_strdup(&mock.mem, st ? err.msg : "");
  return st ? COMPILATION : CUDA_OK;
}

static const char *log_of(nvrtcProgram p) { return p->log ? p->log : ""; }

static nvrtcResult mock_unit_log_size(nvrtcProgram p, size_t *nbytes) {
  return *nbytes = strlen(log_of(p)) + 1, CUDA_OK;
}

static nvrtcResult mock_unit_log(nvrtcProgram p, char *text) {
  memcpy(text, log_of(p), strlen(log_of(p)) + 1);
  return CUDA_OK;
}

/* An image says how long it is: who loads one tells the driver where it begins alone. */
static nvrtcResult mock_unit_cubin_size(nvrtcProgram p, size_t *nbytes) {
  return *nbytes = sizeof(size_t) + p->object.nbytes, CUDA_OK;
}

static nvrtcResult mock_unit_cubin(nvrtcProgram p, char *image) {
  memcpy(image, &p->object.nbytes, sizeof p->object.nbytes);
  memcpy(image + sizeof p->object.nbytes, p->object.at, p->object.nbytes);
  return CUDA_OK;
}

static nvrtcResult mock_unit_ptx_size(nvrtcProgram p, size_t *nbytes) {
  return (void)p, *nbytes = 0, INVALID_INPUT;
}

static nvrtcResult mock_unit_ptx(nvrtcProgram p, char *image) { return (void)p, (void)image, INVALID_INPUT; }

/* ---- the table: one caller at a time, and a call that is to fail does not happen */
static bool fails_now(const char *name) {
  mock.counts.calls++;
  if (!mock.fails_in || (*mock.fails && strcmp(mock.fails, name))) return false;
  return --mock.fails_in == 0;
}

#define CUDA(library, result, name, symbol, params, args)                                                    \
  static result locked_##name params {                                                                       \
    pthread_mutex_lock(&lock);                                                                               \
    result given_back = fails_now(#name) ? mock.fails_with : mock_##name args;                               \
    pthread_mutex_unlock(&lock);                                                                             \
    return given_back;                                                                                       \
  }
#include "runtime/cuda_api.def"
#undef CUDA

static const CudaApi table = {
#define CUDA(library, result, name, symbol, params, args) .name = locked_##name,
#include "runtime/cuda_api.def"
#undef CUDA
};

TgStatus cuda_mock_open(const TgEnv *env, TgError *err, CudaApi *api) {
  TgStatus st = TG_OK;
  pthread_mutex_lock(&lock);
  if (!mock.opened) {
    uint64_t fails_in = mock.fails_in; /* what is to fail may be said before */
    CUresult with = mock.fails_with;
    char fails[sizeof mock.fails];
    memcpy(fails, mock.fails, sizeof fails);
    mock = (Mock){.env = *env, .seed = (uint64_t)env->emulate, .fails_in = fails_in, .fails_with = with};
    memcpy(mock.fails, fails, sizeof fails);
    st = compiler_known(err);
  }
  if (!st) mock.opened++;
  pthread_mutex_unlock(&lock);
  *api = table;
  return st;
}

void cuda_mock_close(void) {
  pthread_mutex_lock(&lock);
  if (mock.opened && !--mock.opened) {
    for (int d = 0; d < GPUS; d++)
      if (mock.emu[d]) blocks_left(d), functions_left(NULL, d), emu_free(mock.emu[d]), mock.emu[d] = NULL;
    if (mock.nvrtc) tg_os_default.library_close(mock.nvrtc);
    mock.nvrtc = NULL;
  }
  pthread_mutex_unlock(&lock);
}

const char *cuda_mock_ident(void) {
  const Compiler *c = &mock.cc;
  snprintf(mock.ident, sizeof mock.ident, "%.250s %.250s %.200s %.64s %016llx", c->path, c->ident,
           emu_flags(), mock.env.emulate_archs,
           (unsigned long long)hash_bytes(1, emu_dialect_cuda.prelude, strlen(emu_dialect_cuda.prelude)));
  return mock.ident;
}

CudaMockCounts cuda_mock_counts(void) { return mock.counts; }

bool cuda_mock_fail(const char *name, uint64_t nth, CUresult r) {
  static const char *const names[] = {
#define CUDA(library, result, name, symbol, params, args) #name,
#include "runtime/cuda_api.def"
#undef CUDA
  };

  bool known = !name;
  for (size_t i = 0; i < TG_COUNT(names) && !known; i++)
    known = !strcmp(names[i], name);
  pthread_mutex_lock(&lock);
  snprintf(mock.fails, sizeof mock.fails, "%s", name ? name : "");
  mock.fails_in = known ? nth : 0, mock.fails_with = r;
  pthread_mutex_unlock(&lock);
  return known;
}
