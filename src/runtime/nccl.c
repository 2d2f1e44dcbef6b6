/* nccl.c: libnccl, loaded if TG_COMM=nccl requests it, or emulated (TG_EMU, emulators.h). In: sends and
 * receives of bytes in a GPU's memory. Out: the same as one group of NCCL's, which the GPU runs in the order
 * of its stream. Building needs nothing of NVIDIA's. It has only run against the mock. */
#define _GNU_SOURCE
#include "runtime/nccl.h"
#include "base/os.h"
#include "runtime/emulators.h"
#include <string.h>

typedef struct Posted {
  int rank;
  bool out;
  void *p;
  size_t nbytes;
} Posted;

struct Nccl {
  TgMem *mem;
  const TgOs *os;
  TgError *err;
  void *library;
  NcclApi api;
  NcclComm comm;
  Vec(Posted) posted;
};

static TgStatus loaded(Nccl *n) {
  static const char *const symbols[] = {
#define NCCL(name, symbol, params) symbol,
#include "runtime/nccl_api.def"
#undef NCCL
  };
  const char *path = "libnccl.so.2";
  if (!(n->library = n->os->library_open(path)))
    return error_set(n->err, TG_ERR_DEVICE, "comm: TG_COMM=nccl: %s is not found, or does not load", path);
  for (size_t i = 0; i < TG_COUNT(symbols); i++) {
    void *call = n->os->library_symbol(n->library, symbols[i]);
    if (!call) return error_set(n->err, TG_ERR_DEVICE, "comm: %s has no %s: it is too old", path, symbols[i]);
    memcpy((char *)&n->api + i * sizeof call, &call, sizeof call);
  }
  return TG_OK;
}

Nccl *nccl_load(TgMem *mem, const TgOs *os, const TgEnv *env, TgError *err) {
  Nccl *n = mem_alloc(mem, sizeof *n);
  if (!n) return error_no_memory(err, "comm"), NULL;
  *n = (Nccl){.mem = mem, .os = os, .err = err};
  bool emulated = env->emulate && emulators();
  if (emulated) n->api = *emulators()->nccl;
  if (emulated || !loaded(n)) return n;
  nccl_leave(n, true);
  return NULL;
}

static TgStatus checked(Nccl *n, int result, const char *what) {
  if (!result) return TG_OK;
  return error_set(n->err, TG_ERR_DEVICE, "comm: NCCL's %s fails, error %d", what, result);
}

bool nccl_joined(const Nccl *n) { return n->comm != NULL; }

TgStatus nccl_id(Nccl *n, NcclId *id) { return checked(n, n->api.unique_id(id), "ncclGetUniqueId"); }

TgStatus nccl_join(Nccl *n, const NcclId *id, int rank, int size) {
  return checked(n, n->api.join(&n->comm, size, *id, rank), "ncclCommInitRank");
}

bool nccl_posted(const Nccl *n) { return n && n->posted.len; }

TgStatus nccl_post(Nccl *n, int rank, bool out, void *p, size_t nbytes) {
  if (!nbytes || vec_push(n->mem, &n->posted, ((Posted){rank, out, p, nbytes}))) return TG_OK;
  return error_no_memory(n->err, "comm");
}

/* A group that was begun is always ended, even if a call in it fails. */
TgStatus nccl_group(Nccl *n, void *stream) {
  int first = 0, error = 0;
  TgStatus s = checked(n, n->api.async_error(n->comm, &error), "ncclCommGetAsyncError");
  if (!s) s = checked(n, error == NCCL_IN_PROGRESS ? 0 : error, "last exchange");
  if (!s) s = checked(n, n->api.group_begin(), "ncclGroupStart");
  if (s) return s;
  for (size_t i = 0; i < n->posted.len && !first; i++) {
    const Posted *p = &n->posted.at[i];
    first = p->out ? n->api.send(p->p, p->nbytes, NCCL_BYTES, p->rank, n->comm, stream)
                   : n->api.receive(p->p, p->nbytes, NCCL_BYTES, p->rank, n->comm, stream);
  }
  n->posted.len = 0;
  s = checked(n, first, "ncclSend or ncclRecv");
  TgStatus ended = checked(n, n->api.group_end(), "ncclGroupEnd");
  return s ? s : ended;
}

void nccl_leave(Nccl *n, bool well) {
  if (!n) return;
  if (n->comm && well) n->api.destroy(n->comm);
  if (n->comm && !well) n->api.abort(n->comm);
  if (n->library) n->os->library_close(n->library);
  vec_free(n->mem, &n->posted);
  mem_free(n->mem, n);
}
