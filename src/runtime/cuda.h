/* cuda.h: private to the CUDA device. It declares the driver's calls, so that building needs no toolkit, and
 * the parts of the device. */
#ifndef TG_CUDA_H
#define TG_CUDA_H
#include "runtime/block_list.h"
#include "runtime/kernels.h"

/* ---- the driver's types (CUDA Driver API and NVRTC reference) */
typedef int CUresult, nvrtcResult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CudaContext *CUcontext;
typedef struct CudaStream *CUstream;
typedef struct CudaEvent *CUevent;
typedef struct CudaModule *CUmodule;
typedef struct CudaFunction *CUfunction;
typedef struct CudaGraph *CUgraph;
typedef struct CudaNode *CUgraphNode;
typedef struct CudaExec *CUgraphExec;
typedef struct CudaUnit *nvrtcProgram;

/* CUDA_KERNEL_NODE_PARAMS_v1 */
typedef struct CudaKernelNode {
  CUfunction function;
  unsigned grid[3], block[3], shared_bytes;
  void **args, **extra;
} CudaKernelNode;

enum { /* CUresult */
       CUDA_OK = 0,
       CUDA_INVALID_VALUE = 1,
       CUDA_OUT_OF_MEMORY = 2,
       CUDA_NO_DEVICE = 100,
       CUDA_PEER_ENABLED = 704,
       CUDA_ILLEGAL_ADDRESS = 700,
       CUDA_LAUNCH_FAILED = 719
};

enum { /* CUdevice_attribute */
       CUDA_BLOCK_THREADS = 1,
       CUDA_BLOCK_X = 2, /* y and z follow; the same for a grid */
       CUDA_GRID_X = 5,
       CUDA_SHARED_PER_BLOCK = 8,
       CUDA_CLOCK_KHZ = 13,
       CUDA_MULTIPROCESSORS = 16,
       CUDA_MEMORY_KHZ = 36,
       CUDA_MEMORY_BITS = 37,
       CUDA_L2_BYTES = 38,
       CUDA_ARCH_MAJOR = 75,
       CUDA_ARCH_MINOR = 76,
       CUDA_SHARED_OPTIN = 97
};

enum { CUDA_FUNCTION_DYNAMIC_SHARED = 8 }; /* CUfunction_attribute */

enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_EVENT_NO_TIME = 2 };

typedef struct CudaApi {
#define CUDA(library, result, name, symbol, params, args) result(*name) params;
#include "runtime/cuda_api.def"
#undef CUDA
} CudaApi;

/* ---- cuda_load.c */
typedef struct CudaLibraries {
  void *driver, *nvrtc;
} CudaLibraries;

/* Loads the driver and NVRTC. On failure err says what is missing. */
TgStatus cuda_load(const TgOs *os, const TgEnv *env, TgError *err, CudaLibraries *lib, CudaApi *api);

/* Loads libnvrtc alone: the newest one of CUDA most_major or older. On failure err says which versions were
 * found instead. */
enum { NVRTC_ANY = INT32_MAX };

TgStatus nvrtc_load(const TgOs *os, TgError *err, int most_major, void **lib, CudaApi *api);
void cuda_unload(const TgOs *os, CudaLibraries *lib);

/* ---- the device */
/* Pinned host memory through which copies to and from the device pass, one piece at a time. */
enum { STAGES = 4, STAGE_BYTES = 4 << 20 };

typedef struct Stage {
  void *host;
  CUevent done; /* reached when the copy that uses this piece is done */
  bool busy;
} Stage;

typedef struct CudaMemory {
  Blocks blocks; /* `given` and `done` count the things put into the COMPUTE stream */
  Stage stage[STAGES];
  int next_stage;
  bool poisons; /* freed memory is overwritten */
} CudaMemory;

/* The streams of a device, in the order in which cuda_sync waits for them. */
enum { EXCHANGES, COPIES, COMPUTE, STREAMS };

typedef struct Cuda {
  CudaApi api;
  CudaLibraries lib;
  CUdevice device;
  CUcontext context;
  CUstream stream[STREAMS]; /* EXCHANGES: NULL until there is an exchange */
  CUevent gate;             /* with it one stream waits for another */
  bool retained, emulated;
  /* arch: the architecture that NVRTC compiles for, "sm_90" or "compute_90". compiler: version of NVRTC. */
  char arch[32], compiler[32];
  KernelTable kernels;
  CudaMemory memory;
  /* last: the kernel that was launched last. nlaunched: launches since the last wait for the device. */
  char last[96];
  uint64_t nlaunched;
  uint64_t peers; /* bit i: this device can read the memory of GPU i */
  char text[256];
} Cuda;

/* Returns TG_OK if r is a success. Otherwise sets the error of d to `what` and the driver's message. */
TgStatus cuda_check(Device *d, CUresult r, const char *what);
TgStatus cuda_sync(Device *d);

/* ---- cuda_memory.c */
void cuda_memory_begin(Device *d, uint64_t most_free);
TgStatus cuda_alloc(Device *d, size_t nbytes, void **out);
void cuda_free(Device *d, void *p, size_t nbytes);
TgStatus cuda_host_alloc(Device *d, size_t nbytes, void **out);
void cuda_host_free(Device *d, void *p, size_t nbytes);
TgStatus cuda_memory_info(Device *d, uint64_t *unused, uint64_t *total);
TgStatus cuda_copy_in(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus cuda_copy_out(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus cuda_copy(Device *d, void *dst, const void *src, size_t nbytes);
TgStatus cuda_clear(Device *d, void *dst, size_t nbytes);
TgStatus cuda_copy_peer(Device *d, void *dst, Device *from, const void *src, size_t nbytes);
TgStatus cuda_copy_to(Device *d, const void *src, Device *to, void *dst, size_t nbytes, CUstream stream);
bool cuda_reads_peer(Device *d, Device *from);
/* Makes everything that is put into `later` from now on wait for everything that was put into `first`. */
TgStatus cuda_ordered(Device *d, CUstream first, CUstream later);
void cuda_memory_end(Device *d);
#endif
