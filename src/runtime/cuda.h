/* cuda.h: private to the CUDA device: the driver's calls, declared here, so that building needs no toolkit;
 * and the parts of the device. */
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
       CUDA_BLOCK_X = 2, /* y, z behind it, and for a grid */
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

/* What is missing is said in err. */
TgStatus cuda_load(const TgOs *os, const TgEnv *env, TgError *err, CudaLibraries *lib, CudaApi *api);

/* libnvrtc alone: the newest that is of CUDA most_major or older; what is found instead is said in err. */
enum { NVRTC_ANY = INT32_MAX };

TgStatus nvrtc_load(const TgOs *os, TgError *err, int most_major, void **lib, CudaApi *api);
void cuda_unload(const TgOs *os, CudaLibraries *lib);

/* ---- the device */
/* Pinned memory through which copies go to and from the host, a piece at a time. */
enum { STAGES = 4, STAGE_BYTES = 4 << 20 };

typedef struct Stage {
  void *host;
  CUevent done; /* what was put into a stream with it */
  bool busy;
} Stage;

typedef struct CudaMemory {
  Blocks blocks; /* its numbers count what was put into the stream of launches */
  Stage stage[STAGES];
  int next_stage;
  bool poisons; /* what is freed is overwritten */
} CudaMemory;

enum { EXCHANGES, COPIES, COMPUTE, STREAMS }; /* in the order in which they are waited for */

typedef struct Cuda {
  CudaApi api;
  CudaLibraries lib;
  CUdevice device;
  CUcontext context;
  CUstream stream[STREAMS]; /* EXCHANGES: NULL until there are any */
  CUevent gate;             /* by which one of the streams waits for the other */
  bool retained, emulated;
  char arch[32], compiler[32]; /* "sm_90" or "compute_90": what NVRTC is asked for; its version */
  KernelTable kernels;
  CudaMemory memory;
  char last[96]; /* the kernel that was launched last, and how many since the device was waited for */
  uint64_t nlaunched;
  uint64_t peers; /* bits of the devices whose memory this one may read */
  char text[256];
} Cuda;

/* TG_OK, or d's error with what was done and the driver's words. */
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
/* What is given to `later` from now on comes after what `first` was given. */
TgStatus cuda_ordered(Device *d, CUstream first, CUstream later);
void cuda_memory_end(Device *d);
#endif
