/* cuda_emu.h: our own CUDA driver and compiler with emulated GPUs (emulate.h), for tg and the tests. The
 * library finds them through the table in runtime/emulators.h. */
#ifndef TG_CUDA_EMU_H
#define TG_CUDA_EMU_H
#include "emu/table.h"
#include "runtime/cuda.h"

/* For tests: the number of objects that exist in the mock, and of calls since it was opened. */
typedef struct CudaMockCounts {
  int blocks, pinned, streams, events, modules, graphs, execs, units, contexts; /* that exist now */
  uint64_t launches, graph_launches, compiles, calls;
} CudaMockCounts;

CudaMockCounts cuda_mock_counts(void);
/* Makes the nth call from now on (1: the next) fail: it returns r instead of being done. name: the call's
 * name in cuda_api.def ("launch"); NULL: any call. nth 0: no call fails. Returns false if there is no such
 * call. */
bool cuda_mock_fail(const char *name, uint64_t nth, CUresult r);
#endif
