/* metal_memory.c: memory of a METAL device, and copies to and from it. In: sizes and addresses, which are the
 * GPU's own. Out: private buffers, of which freed ones are kept for the next allocation (block_list.c); and
 * copies by blits, which pass through shared memory to and from the host. A blit moves words of four bytes; a
 * kernel moves the bytes before and after them. */
#include "runtime/metal.h"
#include <string.h>

enum { WORD = 4 };

/* ---- buffers */
/* Returns the index of the first range that begins after `at`. */
static size_t range_after(const MetalMemory *m, uintptr_t at) {
  size_t lo = 0, hi = m->ranges.len;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (m->ranges.at[mid].at <= at)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

TgStatus metal_place(Device *d, const void *at, Place *out) {
  const MetalMemory *m = &((Metal *)d->priv)->memory;
  size_t after = range_after(m, (uintptr_t)at);
  *out = (Place){NULL, 0};
  if (!at) return TG_OK;
  const AddressRange *r = after ? &m->ranges.at[after - 1] : NULL;
  if (NEVER(!r || (uintptr_t)at - r->at > r->nbytes))
    return error_set(d->err, TG_ERR_INTERNAL, "%s: %p is no memory of it", d->name, at);
  *out = (Place){r->object, (uintptr_t)at - r->at};
  return TG_OK;
}

static TgStatus block_taken(Device *d, size_t room, Block *b) {
  Metal *p = d->priv;
  MetalMemory *m = &p->memory;
  if (!vec_reserve(d->mem, &m->ranges, m->ranges.len + 1)) return metal_oom(d);
  MetalId object = metal_new_buffer(&p->api, p->device, room, METAL_PRIVATE);
  if (!object) return TG_ERR_NOMEM;
  b->object = object;
  b->at = (uintptr_t)metal_address(&p->api, object);
  if (!b->at) {
    metal_release(&p->api, object);
    return metal_failed(d, "a buffer has no address");
  }
  size_t i = range_after(m, b->at);
  memmove(&m->ranges.at[i + 1], &m->ranges.at[i], (m->ranges.len - i) * sizeof *m->ranges.at);
  m->ranges.at[i] = (AddressRange){b->at, room, object};
  m->ranges.len++;
  return TG_OK;
}

static TgStatus block_given_back(Device *d, Block *b) {
  Metal *p = d->priv;
  MetalMemory *m = &p->memory;
  size_t i = range_after(m, b->at) - 1;
  m->ranges.len--;
  memmove(&m->ranges.at[i], &m->ranges.at[i + 1], (m->ranges.len - i) * sizeof *m->ranges.at);
  metal_release(&p->api, b->object);
  return TG_OK;
}

static const BlockDriver driver = {block_taken, block_given_back, metal_sync, WORD};

void metal_memory_begin(Device *d, uint64_t most_free) {
  Metal *p = d->priv;
  blocks_init(d, &p->memory.blocks, &driver);
  p->memory.blocks.most_free = most_free;
  p->memory.blocks.exact = p->emulated;
}

void metal_memory_end(Device *d) {
  Metal *p = d->priv;
  MetalMemory *m = &p->memory;
  if (m->blocks.driver) blocks_end(d, &m->blocks);
  for (int i = 0; i < STAGES; i++)
    if (m->stage[i].object) metal_release(&p->api, m->stage[i].object);
  for (size_t i = 0; i < m->host.len; i++) /* buffers that were never freed */
    metal_release(&p->api, m->host.at[i].object);
  vec_free(d->mem, &m->ranges), vec_free(d->mem, &m->host);
}

TgStatus metal_alloc(Device *d, size_t nbytes, void **out) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, blocks_alloc(d, &((Metal *)d->priv)->memory.blocks, nbytes, out));
}

void metal_free(Device *d, void *at, size_t nbytes) {
  void *pool = metal_pool(d);
  blocks_free(d, &((Metal *)d->priv)->memory.blocks, at, nbytes);
  metal_unpool(d, pool, TG_OK);
}

TgStatus metal_memory_info(Device *d, uint64_t *unused, uint64_t *total) {
  Metal *p = d->priv;
  void *pool = metal_pool(d);
  uint64_t taken = metal_allocated(&p->api, p->device);
  *total = metal_working_set(&p->api, p->device);
  *unused = *total - TG_MIN(*total, taken) + p->memory.blocks.bytes_free;
  TgStatus st = *total ? TG_OK : metal_failed(d, "memory is asked about");
  return metal_unpool(d, pool, st);
}

/* ---- host memory that the device can access */
static MetalId shared_buffer(Device *d, size_t nbytes, void **host) {
  Metal *p = d->priv;
  MetalId object = metal_new_buffer(&p->api, p->device, nbytes, METAL_SHARED);
  *host = object ? metal_contents(&p->api, object) : NULL;
  if (object && !*host) metal_release(&p->api, object);
  if (*host) return object;
  error_set(d->err, TG_ERR_NOMEM, "%s: cannot allocate %zu bytes that the host shares", d->name, nbytes);
  return NULL;
}

TgStatus metal_host_alloc(Device *d, size_t nbytes, void **out) {
  MetalMemory *m = &((Metal *)d->priv)->memory;
  void *pool = metal_pool(d);
  *out = NULL;
  TgStatus st = vec_reserve(d->mem, &m->host, m->host.len + 1) ? TG_OK : metal_oom(d);
  MetalId object = st ? NULL : shared_buffer(d, TG_MAX(nbytes, (size_t)1), out);
  if (object)
    m->host.at[m->host.len++] = (HostMemory){*out, object};
  else if (!st)
    st = TG_ERR_NOMEM;
  return metal_unpool(d, pool, st);
}

void metal_host_free(Device *d, void *at, size_t nbytes) {
  Metal *p = d->priv;
  MetalMemory *m = &p->memory;
  void *pool = metal_pool(d);
  (void)nbytes;
  for (size_t i = 0; i < m->host.len; i++) {
    if (m->host.at[i].at != at) continue;
    metal_release(&p->api, m->host.at[i].object);
    m->host.at[i] = m->host.at[--m->host.len];
    break;
  }
  metal_unpool(d, pool, TG_OK);
}

TgStatus metal_stage(Device *d, size_t nbytes, size_t multiple, size_t over, Place *out, char **host) {
  Metal *p = d->priv;
  MetalMemory *m = &p->memory;
  Stage *s = &m->stage[m->now];
  size_t at = ((s->used + multiple - 1) & ~(multiple - 1)) + over;
  if (at + nbytes > STAGE_BYTES) {
    m->now = (m->now + 1) % STAGES;
    s = &m->stage[m->now];
    at = over;
    TgStatus st = s->serial ? metal_reach(d, s->serial) : TG_OK;
    if (st) return st;
  }
  if (!s->object && !(s->object = shared_buffer(d, STAGE_BYTES, (void **)&s->host))) return TG_ERR_NOMEM;
  s->used = at + nbytes;
  s->serial = p->now ? p->now->serial : p->serial + 1; /* the command buffer of the work given next */
  *out = (Place){s->object, at};
  *host = s->host + at;
  return TG_OK;
}

/* ---- moves within memory that the device can access */
static const char bytes_text[] = "#include <metal_stdlib>\nusing namespace metal;\n"
                                 "kernel void copy_bytes(device uchar *to [[buffer(0)]], "
                                 "device const uchar *from [[buffer(1)]], constant uint *n [[buffer(2)]], "
                                 "uint3 gid [[threadgroup_position_in_grid]], "
                                 "uint3 lid [[thread_position_in_threadgroup]]) {\n"
                                 "  uint i = gid.x * 64 + lid.x;\n  if (i < n[0]) to[i] = from[i];\n}\n";

enum { BYTES_BLOCK = 64, MOST_BYTES = 1 << 30 };

static TgStatus bytes_moved(Device *d, Place to, Place from, uint32_t n) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  TgStatus st = TG_OK;
  if (!p->bytes) st = metal_kernel_of(d, bytes_text, "copy_bytes", BYTES_BLOCK, &p->bytes_module, &p->bytes);
  MetalId e = st ? NULL : metal_encoder(d, COMPUTE);
  if (!e) return d->err->status;
  metal_set_pipeline(m, e, p->bytes->pipeline);
  metal_set_buffer(m, e, to.object, to.offset, 0);
  metal_set_buffer(m, e, from.object, from.offset, 1);
  metal_set_bytes(m, e, &n, sizeof n, 2);
  metal_dispatch(m, e, (MetalSize){(n + BYTES_BLOCK - 1) / BYTES_BLOCK, 1, 1},
                 (MetalSize){BYTES_BLOCK, 1, 1});
  return metal_encoded(d);
}

static TgStatus words_moved(Device *d, Place to, Place from, size_t n) {
  MetalId e = metal_encoder(d, BLIT);
  if (!e) return d->err->status;
  metal_copy(&((Metal *)d->priv)->api, e, from.object, from.offset, to.object, to.offset, n);
  return metal_encoded(d);
}

static Place behind(Place p, size_t n) { return (Place){p.object, p.offset + n}; }

/* Moves bytes up to the first word boundary, then words, then the remaining bytes. If the two places have
 * different offsets in a word, all bytes are moved by the kernel. */
static TgStatus moved(Device *d, Place to, Place from, size_t nbytes) {
  bool alike = (to.offset - from.offset) % WORD == 0;
  size_t head = TG_MIN((WORD - to.offset % WORD) % WORD, nbytes), words = (nbytes - head) / WORD * WORD;
  TgStatus st = TG_OK;
  if (!alike) {
    head = 0;
    words = 0;
  }
  if (head) st = bytes_moved(d, to, from, (uint32_t)head);
  if (words && !st) st = words_moved(d, behind(to, head), behind(from, head), words);
  for (size_t at = head + words; at < nbytes && !st; at += MOST_BYTES)
    st = bytes_moved(d, behind(to, at), behind(from, at), (uint32_t)TG_MIN(nbytes - at, (size_t)MOST_BYTES));
  return st;
}

/* ---- copies */
/* If a copy needs several moves, the last may be in a later command buffer than the first. */
static void stage_used(Device *d) {
  Metal *p = d->priv;
  p->memory.stage[p->memory.now].serial = p->serial;
}

static TgStatus copied_in(Device *d, void *dst, const void *src, size_t nbytes) {
  Place to, from;
  char *host;
  size_t n;
  TgStatus st = metal_place(d, dst, &to);
  for (size_t at = 0; at < nbytes && !st; at += n) {
    n = TG_MIN(nbytes - at, (size_t)(STAGE_BYTES - WORD));
    st = metal_stage(d, n, WORD, (to.offset + at) % WORD, &from, &host);
    if (st) return st;
    memcpy(host, (const char *)src + at, n);
    st = moved(d, behind(to, at), from, n);
    stage_used(d);
  }
  return st;
}

TgStatus metal_copy_in(Device *d, void *dst, const void *src, size_t nbytes) {
  void *pool = metal_pool(d);
  TgStatus st = copied_in(d, dst, src, nbytes);
  metal_look(d);
  return metal_unpool(d, pool, st);
}

/* A piece that is on its way to the host. */
typedef struct Piece {
  const char *host;
  char *to;
  size_t nbytes;
  uint64_t serial;
} Piece;

static TgStatus piece_taken(Device *d, const Piece *p) {
  if (!p->nbytes) return TG_OK;
  TgStatus st = metal_reach(d, p->serial);
  if (!st) memcpy(p->to, p->host, p->nbytes);
  return st;
}

/* While the host copies one piece to dst, the device brings the next. */
static TgStatus copied_out(Device *d, char *dst, const void *src, size_t nbytes) {
  Metal *p = d->priv;
  Place from, to;
  Piece had = {0};
  char *host;
  TgStatus st = metal_place(d, src, &from);
  for (size_t at = 0; at < nbytes && !st;) {
    size_t n = TG_MIN(nbytes - at, (size_t)(STAGE_BYTES - WORD));
    st = metal_stage(d, n, WORD, (from.offset + at) % WORD, &to, &host);
    if (!st) st = moved(d, to, behind(from, at), n);
    stage_used(d);
    if (!st) st = metal_commit(d);
    if (!st) st = piece_taken(d, &had);
    had = (Piece){host, dst + at, n, p->serial};
    at += n;
  }
  return st ? st : had.nbytes ? piece_taken(d, &had) : metal_reach(d, p->serial);
}

TgStatus metal_copy_out(Device *d, void *dst, const void *src, size_t nbytes) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, copied_out(d, dst, src, nbytes));
}

TgStatus metal_copy_within(Device *d, void *dst, const void *src, size_t nbytes) {
  void *pool = metal_pool(d);
  Place to, from;
  TgStatus st = nbytes ? metal_place(d, dst, &to) : TG_OK;
  if (!st && nbytes) st = metal_place(d, src, &from);
  if (!st && nbytes) st = moved(d, to, from, nbytes);
  return metal_unpool(d, pool, st);
}

/* Fills whole words. Zeros for the bytes before and after them are copied from the host. */
static TgStatus cleared(Device *d, char *dst, size_t nbytes) {
  static const char zeros[WORD];
  Place to;
  TgStatus st = metal_place(d, dst, &to);
  if (st) return st;
  size_t head = TG_MIN((WORD - to.offset % WORD) % WORD, nbytes), words = (nbytes - head) / WORD * WORD;
  MetalId e = words ? metal_encoder(d, BLIT) : NULL;
  if (words && !e) return d->err->status;
  if (e) metal_fill(&((Metal *)d->priv)->api, e, to.object, (MetalRange){to.offset + head, words}, 0);
  if (e) st = metal_encoded(d);
  if (head && !st) st = copied_in(d, dst, zeros, head);
  if (nbytes > head + words && !st) st = copied_in(d, dst + head + words, zeros, nbytes - head - words);
  return st;
}

TgStatus metal_clear(Device *d, void *dst, size_t nbytes) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, nbytes ? cleared(d, dst, nbytes) : TG_OK);
}
