/* nccl.h: bytes of GPUs between ranks by NVIDIA's library, from memory to memory. Only its sends and receives
 * are used, in groups: sums are made by kernels, in the order that the graph says. Who is there, what comes
 * next and whether it fits goes by another transport (comm.h). */
#ifndef TG_NCCL_H
#define TG_NCCL_H
#include "base/base.h"

enum { NCCL_BYTES = 1, NCCL_IN_PROGRESS = 7 }; /* ncclUint8; ncclInProgress */

typedef struct NcclId {
  char bytes[128];
} NcclId;

typedef struct NcclGroup *NcclComm; /* ncclComm_t */

typedef struct NcclApi {
#define NCCL(name, symbol, params) int(*name) params;
#include "runtime/nccl_api.def"
#undef NCCL
} NcclApi;

typedef struct Nccl Nccl;

/* NULL: recorded. */
Nccl *nccl_load(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err);
bool nccl_joined(const Nccl *n);
TgStatus nccl_id(Nccl *n, NcclId *id); /* of a new group, for all of its ranks */
/* All ranks come to this, each with its GPU current. */
TgStatus nccl_join(Nccl *n, const NcclId *id, int rank, int size);
/* Bytes to or from a rank with the next group. */
TgStatus nccl_post(Nccl *n, int rank, bool out, void *p, size_t nbytes);
bool nccl_posted(const Nccl *n); /* anything, since the last group; n may be NULL */
/* All that was posted is given to a GPU's stream at once, always to the same one: NCCL wants the calls of
 * a group of ranks in one order. */
TgStatus nccl_group(Nccl *n, void *stream);
void nccl_leave(Nccl *n, bool well); /* not well: what is under way is given up */
#endif
