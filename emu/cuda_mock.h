/* cuda_mock.h: private to the mock of the driver: the objects in it. */
#ifndef TG_CUDA_MOCK_H
#define TG_CUDA_MOCK_H
#include "emu/cuda_emu.h"
#include "emu/emulate.h"
#include <pthread.h>

enum { GPUS = 4, MOST_GIVEN = 4096, ARCH = 120, VERSION = 13000 };

#define ARCH_TEXT "120"

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
  size_t most_dynamic; /* the most dynamic shared memory that a launch may request */
};

/* recorded: how often. reached: number of the last record that is done, with everything before it. sent: the
 * stream's `sent` at that record. refs: of the owner and of ops in streams. */
struct CudaEvent {
  uint64_t recorded, reached, sent;
  double at_s;
  int refs;
};

typedef struct KernelCall {
  CUfunction function;
  uint32_t grid[3], block[3];
  size_t shared_bytes;
  int narg;
  uint64_t *args; /* values of the arguments */
} KernelCall;

typedef enum OpKind { OP_LAUNCH, OP_IN, OP_OUT, OP_COPY, OP_CLEAR, OP_RECORD, OP_WAIT, OP_OTHER } OpKind;

/* One thing that a stream has to do. own: copy of host memory that is not pinned. number: of the event's
 * record, or the byte to fill with. */
typedef struct Op {
  OpKind kind;
  CUresult (*other)(const struct Op *op); /* does an op of another mock, whose data is call.args */
  struct Op *next;
  CUstream stream;
  KernelCall call;
  void *to;
  const void *from;
  void *own;
  size_t nbytes;
  int to_device, from_device;
  CUevent event;
  uint64_t number;
} Op;

/* sent: what the stream does next comes after the messages up to this number. */
struct CudaStream {
  int device;
  uint64_t sent;
  bool hasty; /* it does what it is given as soon as possible */
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

/* call[i]: the present call of node[i] of the graph from which this was made. */
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

/* A block of the emulator's memory. The list is used to find blocks that ops in flight use. */
typedef struct MockBlock {
  char *at;
  size_t nbytes;
  int device;
  struct MockBlock *next;
} MockBlock;

/* Bytes of a GPU's memory that another mock has sent. The stream may really read them until somebody waits
 * for it, so they must not change before that. */
typedef struct Sent {
  uint64_t number;
  int device;
  const void *p;
  char *was;
  size_t nbytes;
  struct Sent *next;
} Sent;

typedef struct Taken Taken;

typedef struct Mock {
  Taken *taken;
  int opened;
  TgMem mem; /* the driver's own, not that of a context */
  TgEnv env;
  Compiler cc;
  bool identified;
  void *nvrtc; /* NVIDIA's own library, for TG_EMU_ARCHS */
  CudaApi real;
  char ident[900];
  Emu *emu[GPUS];
  struct CudaContext context[GPUS];
  CUstream streams;
  CUfunction functions;
  Pinned *pinned;
  MockBlock *blocks;
  Sent *sent;
  uint64_t nsent;
  size_t ngiven; /* number of ops in all streams */
  uint64_t seed;
  CUresult broken; /* error of a kernel, which every later call returns */
  TgError why;
  CudaMockCounts counts;
  char fails[32];    /* name of the calls that may fail; "": any call */
  uint64_t fails_in; /* the call fails after this many calls of that name; 0: none */
  CUresult fails_with;
} Mock;

extern Mock cuda_mock;
extern _Thread_local CUcontext cuda_mock_now; /* current context of this thread */

/* every call of cuda_api.def, as the mock does it */
#define CUDA(library, result, name, symbol, params, args) result cuda_mock_##name params;
#include "runtime/cuda_api.def"
#undef CUDA

/* ---- cuda_mock.c */
void *mock_take(size_t nbytes); /* zeroed; NULL: out of memory */
void mock_drop(void *p);
/* Returns the driver's error for an error of the emulator. Such an error ends the GPU's work. */
CUresult mock_refused(TgStatus st);
/* Ends the GPU's work with an error. */
CUresult mock_misused(const char *what);

/* ---- cuda_mock_streams.c */
/* Puts an op into a stream and takes over what it owns. */
CUresult mock_op_given(CUstream s, Op what);
/* Does everything that the stream has to do. */
CUresult mock_stream_done(CUstream s);
/* Whether an op in a stream uses this memory. */
bool mock_in_use(const void *p, size_t nbytes);
/* Records that the bytes at p, whose value is `was` (taken over), are sent from s. They must not change until
 * s is waited for. */
CUresult mock_sent(CUstream s, const void *p, char *was, size_t nbytes);
/* Forgets the functions of a module; NULL: those of a device. */
void mock_functions_left(CUmodule m, int device);
#endif
