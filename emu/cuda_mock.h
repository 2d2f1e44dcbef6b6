/* cuda_mock.h: private to the mock of the driver: what lives in it. */
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
  size_t most_dynamic; /* shared memory that a launch of it may ask for */
};

/* recorded: how often; reached: which of these, and all before it, are done. sent: what was by then, as a
 * stream knows it. refs: the owner's, and of what was put into streams. */
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
  uint64_t *args; /* by value */
} KernelCall;

typedef enum OpKind { OP_LAUNCH, OP_IN, OP_OUT, OP_COPY, OP_CLEAR, OP_RECORD, OP_WAIT, OP_OTHER } OpKind;

/* One thing that a stream is to do. own: host memory as it was at the call, where that is not pinned. number:
 * of the event's records, or the byte to fill with. */
typedef struct Op {
  OpKind kind;
  CUresult (*other)(const struct Op *op); /* of another mock, whose own is call.args */
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

/* sent: up to which number it comes after what was sent. */
struct CudaStream {
  int device;
  uint64_t sent;
  bool hasty; /* does what it is given as soon as it can */
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

/* Bytes of a GPU that another mock has taken, from the stream's view at any time until somebody waits for
 * it: till then they stay as they were. */
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
  Sent *sent;
  uint64_t nsent;
  size_t ngiven; /* that streams are to do */
  uint64_t seed;
  CUresult broken; /* after an error of a kernel */
  TgError why;
  CudaMockCounts counts;
  char fails[32];    /* "": any call */
  uint64_t fails_in; /* calls of that name; 0: none */
  CUresult fails_with;
} Mock;

extern Mock cuda_mock;
extern _Thread_local CUcontext cuda_mock_now; /* of this thread */

/* every call of cuda_api.def, as it is done here */
#define CUDA(library, result, name, symbol, params, args) result cuda_mock_##name params;
#include "runtime/cuda_api.def"
#undef CUDA

/* ---- cuda_mock.c */
void *mock_take(size_t nbytes); /* zeroed; NULL: out of memory */
void mock_drop(void *p);
CUresult mock_refused(TgStatus st);      /* what the emulator says ends the GPU's work */
CUresult mock_misused(const char *what); /* and so does this */

/* ---- cuda_mock_streams.c */
CUresult mock_op_given(CUstream s, Op what);    /* takes what the op owns */
CUresult mock_stream_done(CUstream s);          /* does all that it is to do */
bool mock_in_use(const void *p, size_t nbytes); /* by what was given and is not done */
CUresult mock_sent(CUstream s, const void *p, char *was,
                   size_t nbytes);                /* takes `was`; p stays so till s is waited for */
void mock_functions_left(CUmodule m, int device); /* forgets those of a module; NULL: of a device */
#endif
