/* nccl.h: exchanges memory of GPUs between ranks with NVIDIA's library. Only its sends and receives are used,
 * in groups. Sums are computed by kernels, in the order of the graph. Another transport (comm.h) finds the
 * ranks, and checks which exchange comes next and that it matches. */
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

/* Returns NULL on failure, with the error recorded. */
Nccl *nccl_load(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err);
bool nccl_joined(const Nccl *n);
TgStatus nccl_id(Nccl *n, NcclId *id); /* makes the id of a new group, for all of its ranks */
/* Joins the group. All ranks must call this, each with its GPU as the current one. */
TgStatus nccl_join(Nccl *n, const NcclId *id, int rank, int size);
/* Adds bytes to be sent to a rank (out) or received from it to the next group. */
TgStatus nccl_post(Nccl *n, int rank, bool out, void *p, size_t nbytes);
bool nccl_posted(const Nccl *n); /* whether anything was posted since the last group; n may be NULL */
/* Puts everything that was posted into a GPU's stream at once. It must always be the same stream, because
 * NCCL requires the calls of a group of ranks in one order. */
TgStatus nccl_group(Nccl *n, void *stream);
void nccl_leave(Nccl *n, bool well); /* well = false: work under way is given up */
#endif
