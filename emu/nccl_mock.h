/* nccl_mock.h: a mock of NVIDIA's library of exchanges, for emulated GPUs of several processes. */
#ifndef TG_NCCL_MOCK_H
#define TG_NCCL_MOCK_H
#include "runtime/nccl.h"

/* For tests: the number of calls since the process began. */
typedef struct NcclMockCounts {
  int groups, sends, receives, comms; /* comms: that exist now */
} NcclMockCounts;

extern const NcclApi nccl_mock;
NcclMockCounts nccl_mock_counts(void);
#endif
