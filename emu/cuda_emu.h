/* cuda_emu.h: a CUDA driver and a compiler of our own, whose GPUs are emulated (emulate.h), for tg and the
 * tests. The library finds it by the table in runtime/emulators.h. */
#ifndef TG_CUDA_EMU_H
#define TG_CUDA_EMU_H
#include "emu/table.h"
#include "runtime/cuda.h"

/* For tests: what lives in the mock and was asked of it since it was opened. */
typedef struct CudaMockCounts {
  int blocks, pinned, streams, events, modules, graphs, execs, units, contexts; /* that live */
  uint64_t launches, graph_launches, compiles, calls;
} CudaMockCounts;

CudaMockCounts cuda_mock_counts(void);
/* The nth call from now on (1: the next) of that name, as in cuda_api.def ("launch"), gives r instead of
 * being made; NULL: any call. nth 0: none. False: there is no such call. */
bool cuda_mock_fail(const char *name, uint64_t nth, CUresult r);
#endif
