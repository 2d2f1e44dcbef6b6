/* cuda_memory.c: memory of a CUDA device, and copies to and from it. In: sizes and addresses. Out: blocks,
 * and copies that the host need not wait for. Freed blocks are kept for the next allocation. Such a block may
 * still be in use by work that the device was given. That is safe, because all work is put into one stream in
 * order, so the next user of the block comes later. Copies from the host pass through a ring of pinned
 * memory. If nothing given since the allocation has touched the block, they use a stream of their own and
 * overlap with the kernels. */
#define _GNU_SOURCE
#include "runtime/cuda.h"
#include <string.h>

/* ---- blocks */
static TgStatus block_taken(Device *d, size_t room, Block *b) {
  Cuda *p = d->priv;
  CUdeviceptr at = 0;
  CUresult r = p->api.memory_alloc(&at, room);
  b->at = (uintptr_t)at;
  return r == CUDA_OUT_OF_MEMORY ? TG_ERR_NOMEM : cuda_check(d, r, "memory is allocated");
}

static TgStatus block_given_back(Device *d, Block *b) {
  Cuda *p = d->priv;
  return cuda_check(d, p->api.memory_free(b->at), "memory is given back");
}

static const BlockDriver driver = {block_taken, block_given_back, cuda_sync, 1};

void cuda_memory_begin(Device *d, uint64_t most_free) {
  Cuda *p = d->priv;
  blocks_init(d, &p->memory.blocks, &driver);
  p->memory.poisons = p->emulated && most_free;
  p->memory.blocks.most_free = most_free;
  p->memory.blocks.exact = p->emulated;
}

TgStatus cuda_alloc(Device *d, size_t nbytes, void **out) {
  Cuda *p = d->priv;
  *out = NULL;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "memory is allocated");
  return st ? st : blocks_alloc(d, &p->memory.blocks, nbytes, out);
}

/* An emulated GPU overwrites a freed block, if blocks are reused at once. This happens after all work that
 * uses the block, because that work was given earlier. */
void cuda_free(Device *d, void *at, size_t nbytes) {
  enum { POISON = 0xff };

  Cuda *p = d->priv;
  const Block *b = p->memory.poisons && at ? blocks_find(&p->memory.blocks, at) : NULL;
  if (p->api.context_set(p->context)) return;
  if (b && !p->api.clear(b->at, POISON, TG_MAX(b->nbytes, (size_t)1), p->stream[COMPUTE]))
    p->memory.blocks.given++;
  blocks_free(d, &p->memory.blocks, at, nbytes);
}

TgStatus cuda_memory_info(Device *d, uint64_t *unused, uint64_t *total) {
  Cuda *p = d->priv;
  size_t u = 0, t = 0;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "memory is asked about");
  if (!st) st = cuda_check(d, p->api.memory_info(&u, &t), "memory is asked about");
  *unused = u + p->memory.blocks.bytes_free;
  *total = t;
  return st;
}

TgStatus cuda_host_alloc(Device *d, size_t nbytes, void **out) {
  Cuda *p = d->priv;
  *out = NULL;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "host memory is allocated");
  return st ? st
            : cuda_check(d, p->api.host_alloc(out, TG_MAX(nbytes, (size_t)1), 0), "host memory is allocated");
}

void cuda_host_free(Device *d, void *at, size_t nbytes) {
  Cuda *p = d->priv;
  (void)nbytes;
  if (at && !p->api.context_set(p->context)) p->api.host_free(at);
}

void cuda_memory_end(Device *d) {
  Cuda *p = d->priv;
  CudaMemory *m = &p->memory;
  if (m->blocks.driver) blocks_end(d, &m->blocks);
  for (int i = 0; i < STAGES; i++) {
    if (m->stage[i].done) p->api.event_destroy(m->stage[i].done);
    if (m->stage[i].host) p->api.host_free(m->stage[i].host);
  }
}

/* ---- copies */
/* Returns the next piece of pinned memory, after waiting until it is no longer in use. */
static TgStatus stage_next(Device *d, Stage **out) {
  Cuda *p = d->priv;
  Stage *s = *out = &p->memory.stage[p->memory.next_stage];
  TgStatus st = TG_OK;
  p->memory.next_stage = (p->memory.next_stage + 1) % STAGES;
  if (!s->done) st = cuda_check(d, p->api.event_create(&s->done, CUDA_EVENT_NO_TIME), "a copy is prepared");
  if (!st && !s->host) st = cuda_check(d, p->api.host_alloc(&s->host, STAGE_BYTES, 0), "a copy is prepared");
  if (!st && s->busy) st = cuda_check(d, p->api.event_sync(s->done), "a copy is waited for");
  s->busy = false;
  return st;
}

static TgStatus stage_used(Device *d, Stage *s, CUstream stream) {
  Cuda *p = d->priv;
  s->busy = true;
  return cuda_check(d, p->api.event_record(s->done, stream), "a copy is marked");
}

TgStatus cuda_ordered(Device *d, CUstream first, CUstream later) {
  Cuda *p = d->priv;
  TgStatus st = cuda_check(d, p->api.event_record(p->gate, first), "streams are ordered");
  return st ? st : cuda_check(d, p->api.stream_wait(later, p->gate, 0), "streams are ordered");
}

TgStatus cuda_copy_in(Device *d, void *dst, const void *src, size_t nbytes) {
  Cuda *p = d->priv;
  CudaMemory *m = &p->memory;
  if (!nbytes) return TG_OK;
  const Block *b = blocks_find(&m->blocks, dst);
  /* nothing given since the allocation can use the block */
  bool apart = b && b->given_at == m->blocks.given;
  CUstream stream = apart ? p->stream[COPIES] : p->stream[COMPUTE];
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "a copy to the device");
  if (!st && apart && b->freed_at > m->blocks.done) st = cuda_ordered(d, p->stream[COMPUTE], stream);
  for (size_t at = 0; at < nbytes && !st; at += STAGE_BYTES) {
    size_t n = TG_MIN(nbytes - at, (size_t)STAGE_BYTES);
    Stage *s;
    if ((st = stage_next(d, &s))) break;
    memcpy(s->host, (const char *)src + at, n);
    st = cuda_check(d, p->api.copy_in((uintptr_t)dst + at, s->host, n, stream), "a copy to the device");
    if (!st) st = stage_used(d, s, stream);
  }
  if (!st && apart) st = cuda_ordered(d, stream, p->stream[COMPUTE]);
  m->blocks.given++;
  return st;
}

/* While the host copies one piece to dst, the device brings the next. When the last piece is there,
 * everything given before is done. If there are no bytes to copy, nothing is waited for. */
TgStatus cuda_copy_out(Device *d, void *dst, const void *src, size_t nbytes) {
  Cuda *p = d->priv;
  if (!nbytes) return TG_OK;
  Stage *had = NULL;
  size_t had_at = 0, had_bytes = 0;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "a copy from the device");
  for (size_t at = 0; !st && (at < nbytes || had); at += STAGE_BYTES) {
    Stage *s = NULL;
    size_t n = at < nbytes ? TG_MIN(nbytes - at, (size_t)STAGE_BYTES) : 0;
    if (n) st = stage_next(d, &s);
    if (n && !st)
      st = cuda_check(d, p->api.copy_out(s->host, (uintptr_t)src + at, n, p->stream[COMPUTE]),
                      "a copy from the device");
    if (n && !st) st = stage_used(d, s, p->stream[COMPUTE]);
    if (had && !st) st = cuda_check(d, p->api.event_sync(had->done), "a copy from the device");
    if (had && !st) {
      memcpy((char *)dst + had_at, had->host, had_bytes);
      had->busy = false;
    }
    had = s;
    had_at = at;
    had_bytes = n;
  }
  if (!st) {
    p->memory.blocks.done = p->memory.blocks.given;
    p->nlaunched = 0;
  }
  return st;
}

TgStatus cuda_copy(Device *d, void *dst, const void *src, size_t nbytes) {
  Cuda *p = d->priv;
  if (!nbytes) return TG_OK;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "a copy");
  p->memory.blocks.given++;
  return st ? st
            : cuda_check(d, p->api.copy((uintptr_t)dst, (uintptr_t)src, nbytes, p->stream[COMPUTE]),
                         "a copy");
}

TgStatus cuda_clear(Device *d, void *dst, size_t nbytes) {
  Cuda *p = d->priv;
  if (!nbytes) return TG_OK;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "memory is cleared");
  p->memory.blocks.given++;
  return st ? st
            : cuda_check(d, p->api.clear((uintptr_t)dst, 0, nbytes, p->stream[COMPUTE]), "memory is cleared");
}

bool cuda_reads_peer(Device *d, Device *from) {
  Cuda *p = d->priv, *q = from->priv;
  int can = 0;
  return p->device == q->device || (!p->api.peer_can(&can, p->device, q->device) && can);
}

/* Prepares a copy between two devices. A GPU that can read the other's memory is allowed to; otherwise the
 * driver makes the copy pass through the host. */
static TgStatus peer_met(Device *d, Device *other) {
  Cuda *p = d->priv, *q = other->priv;
  TgStatus st = cuda_check(d, p->api.context_set(p->context), "a copy between devices");
  bool known = p->device == q->device || (p->peers >> (q->device & 63) & 1);
  if (!st && !known && cuda_reads_peer(d, other)) {
    CUresult r = p->api.peer_enable(q->context, 0);
    if (r != CUDA_PEER_ENABLED) st = cuda_check(d, r, "access to another GPU");
  }
  p->peers |= 1ull << (q->device & 63);
  p->memory.blocks.given++, q->memory.blocks.given++;
  return st;
}

TgStatus cuda_copy_peer(Device *d, void *dst, Device *from, const void *src, size_t nbytes) {
  Cuda *p = d->priv, *q = from->priv;
  TgStatus st = nbytes ? peer_met(d, from) : TG_OK;
  if (st || !nbytes) return st;
  return cuda_check(
      d, p->api.copy_peer((uintptr_t)dst, p->context, (uintptr_t)src, q->context, nbytes, p->stream[COMPUTE]),
      "a copy between devices");
}

TgStatus cuda_copy_to(Device *d, const void *src, Device *to, void *dst, size_t nbytes, CUstream stream) {
  Cuda *p = d->priv, *q = to->priv;
  TgStatus st = nbytes ? peer_met(d, to) : TG_OK;
  if (st || !nbytes) return st;
  return cuda_check(d,
                    p->api.copy_peer((uintptr_t)dst, q->context, (uintptr_t)src, p->context, nbytes, stream),
                    "a copy between devices");
}
