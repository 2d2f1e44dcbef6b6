/* nccl_mock.h: NVIDIA's library of exchanges as a mock, for emulated GPUs of several processes. */
#ifndef TG_NCCL_MOCK_H
#define TG_NCCL_MOCK_H
#include "runtime/nccl.h"

/* For tests: what it was asked for since the process began. */
typedef struct NcclMockCounts {
  int groups, sends, receives, comms; /* comms: that live */
} NcclMockCounts;

extern const NcclApi nccl_mock;
NcclMockCounts nccl_mock_counts(void);
#endif
