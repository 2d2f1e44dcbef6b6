/* host.c: buffers in host memory, used by CPU, INTERP and NULL. They are 64-byte aligned, with a header just
 * below. Large freed buffers are kept by size for the next allocation, because fresh memory from the system
 * costs a page fault for each 4 KB, which takes longer than most kernels take to write it. The first content
 * of a buffer is undefined; kernels write everything that is read. If graphs are checked (TG_SPEC), it is a
 * pattern, so that a read of memory that nothing wrote is noticed. This file also has the events and graphs
 * of devices without a queue. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#include <string.h>

enum {
  ALIGN = 64,
  /* bytes; smaller buffers come from malloc, which keeps freed memory itself */
  KEPT_FROM = 64 << 10,
  LARGE_PAGE = 2 << 20, /* bytes, on x86-64 and on arm64 with pages of 4 KB */
  SHIFT = 17 * ALIGN,
  SHIFTS = 16,
  STEPS = 8, /* sizes between two powers of two */
  UNWRITTEN = 0xa5
};

static const uint64_t ALWAYS_KEPT = 64 << 20; /* may be kept in addition to as many bytes as are in use */

typedef struct HostBlock {
  void *raw;
  size_t room;
  struct HostBlock *next; /* next kept block of this size */
} HostBlock;

_Static_assert(sizeof(HostBlock) <= ALIGN, "the header fits before an aligned buffer");

static HostBlock *block_of(void *p) { return (HostBlock *)((char *)p - ALIGN); }

static size_t rounded(size_t nbytes) {
  size_t step = (size_t)1 << (63 - __builtin_clzll(nbytes | 1));
  step = TG_MAX(step / STEPS, (size_t)1);
  return nbytes < KEPT_FROM ? nbytes : (nbytes + step - 1) / step * step;
}

/* Returns the list of the kept blocks of a rounded size. There is one for each power of two and step. */
static HostBlock **list_of(Device *d, size_t room) {
  int power = 63 - __builtin_clzll(room);
  size_t step = ((size_t)1 << power) / STEPS;
  return &d->kept[power][(room - ((size_t)1 << power)) / step % STEPS];
}

void host_trim(Device *d) {
  for (size_t power = 0; power < TG_COUNT(d->kept); power++)
    for (int step = 0; step < STEPS; step++)
      while (d->kept[power][step]) {
        HostBlock *b = d->kept[power][step];
        d->kept[power][step] = b->next;
        mem_free(d->mem, b->raw);
      }
  d->bytes_kept = 0;
}

/* A weight of 9 MB has 2,300 pages of 4 KB. Each page is looked up and has to be found anew by the hardware
 * prefetcher, and its first write is a fault. So a large block begins at the start of a large page. If the
 * host has its own allocator, only the needed bytes are requested from it, and the large pages that lie
 * wholly inside are used. Buffers at the same offset in their pages would compete for the same cache lines,
 * so each begins some lines further than the one before. */
static HostBlock *block_new(Device *d, size_t room) {
  bool large = room >= LARGE_PAGE && (d->backend->has & HAS_RUN);
  size_t align = large && !(d->mem && d->mem->allocate) ? LARGE_PAGE : ALIGN;
  size_t shift = align == LARGE_PAGE ? d->large++ % SHIFTS * SHIFT : 0, more = align + shift + ALIGN;
  char *raw = room > SIZE_MAX - more ? NULL : mem_alloc_raw(d->mem, room + more);
  if (!raw) return NULL;
  uintptr_t at = ((uintptr_t)raw + align - 1) & ~(uintptr_t)(align - 1);
  uintptr_t from = (at + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1), to = at + shift + ALIGN + room;
  if (large && to >= from + LARGE_PAGE)
    (void)d->os->large_pages((void *)from, (to - from) & ~(uintptr_t)(LARGE_PAGE - 1));
  HostBlock *b = (HostBlock *)(at + shift);
  *b = (HostBlock){raw, room, NULL};
  return b;
}

TgStatus host_alloc(Device *d, size_t nbytes, void **out) {
  size_t room = rounded(nbytes);
  bool keeps = room >= KEPT_FROM && (d->backend->has & HAS_RUN);
  HostBlock *b = keeps ? *list_of(d, room) : NULL;
  *out = NULL;
  if (b) {
    *list_of(d, room) = b->next;
    d->bytes_kept -= room;
  } else if (!(b = block_new(d, room)) && d->bytes_kept) {
    host_trim(d);
    b = block_new(d, room);
  }
  if (!b) return error_set(d->err, TG_ERR_NOMEM, "%s: cannot allocate %zu bytes", d->backend->name, nbytes);
  *out = (char *)b + ALIGN;
  if (!(d->backend->has & HAS_RUN))
    memset(*out, 0, nbytes);
  else if (d->env && d->env->spec)
    memset(*out, UNWRITTEN, nbytes);
  d->bytes_in_use += nbytes;
  d->bytes_peak = TG_MAX(d->bytes_peak, d->bytes_in_use);
  return TG_OK;
}

void host_free(Device *d, void *p, size_t nbytes) {
  if (!p) return;
  HostBlock *b = block_of(p);
  d->bytes_in_use -= nbytes;
  bool keeps = b->room >= KEPT_FROM && (d->backend->has & HAS_RUN);
  if (!keeps || d->bytes_kept + b->room > ALWAYS_KEPT + d->bytes_in_use) {
    mem_free(d->mem, b->raw);
    return;
  }
  HostBlock **list = list_of(d, b->room);
  b->next = *list;
  *list = b;
  d->bytes_kept += b->room;
}

TgStatus host_copy(Device *d, void *dst, const void *src, size_t nbytes) {
  (void)d;
  if (nbytes) memmove(dst, src, nbytes);
  return TG_OK;
}

TgStatus host_clear(Device *d, void *dst, size_t nbytes) {
  if (nbytes && (d->backend->has & HAS_RUN)) memset(dst, 0, nbytes);
  return TG_OK;
}

TgStatus host_pinned(Device *d, size_t nbytes, void **out) {
  *out = mem_alloc_raw(d->mem, nbytes + 1);
  return *out ? TG_OK : error_set(d->err, TG_ERR_NOMEM, "%s: cannot allocate %zu bytes", d->name, nbytes);
}

void host_unpinned(Device *d, void *p, size_t nbytes) { (void)nbytes, mem_free(d->mem, p); }

TgStatus host_memory(Device *d, uint64_t *unused, uint64_t *total) {
  (void)d;
  os_memory(unused, total);
  return TG_OK;
}

/* ---- order and time of a device that has finished each thing when the call returns */
struct Event {
  double at_s;
};

TgStatus host_sync(Device *d) { return (void)d, TG_OK; }

TgStatus host_event_record(Device *d, Event **e) {
  if (!*e && !(*e = mem_alloc(d->mem, sizeof **e)))
    return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  (*e)->at_s = time_now_s();
  return TG_OK;
}

TgStatus host_event_wait(Device *d, Event *e) { return (void)d, (void)e, TG_OK; }

double host_event_us(Device *d, Event *from, Event *to) { return (void)d, (to->at_s - from->at_s) * 1e6; }

void host_event_free(Device *d, Event *e) { mem_free(d->mem, e); }

/* ---- graphs: copies of launches and of their arguments */
struct LaunchGraph {
  int n;
  Launch *launch;
  void **bufs; /* arguments of all launches, one launch after another */
  int64_t *vars;
};

void host_graph_free(Device *d, LaunchGraph *g) {
  if (!g) return;
  mem_free(d->mem, g->launch), mem_free(d->mem, g->bufs), mem_free(d->mem, g->vars);
  mem_free(d->mem, g);
}

TgStatus host_graph_update(Device *d, LaunchGraph *g, int i, const Launch *l) {
  (void)d;
  const Launch *own = &g->launch[i];
  if (l->nbuf) memcpy((void *)own->bufs, l->bufs, (size_t)l->nbuf * sizeof *l->bufs);
  if (l->nvar) memcpy((void *)own->vars, l->vars, (size_t)l->nvar * sizeof *l->vars);
  return TG_OK;
}

TgStatus host_graph_new(Device *d, const Launch *l, int n, LaunchGraph **out) {
  size_t nbuf = 0, nvar = 0;
  for (int i = 0; i < n; i++) {
    nbuf += (size_t)l[i].nbuf;
    nvar += (size_t)l[i].nvar;
  }
  LaunchGraph *g = mem_alloc(d->mem, sizeof *g);
  if (g) {
    g->launch = mem_alloc(d->mem, ((size_t)n + 1) * sizeof *g->launch);
    g->bufs = mem_alloc(d->mem, (nbuf + 1) * sizeof *g->bufs);
    g->vars = mem_alloc(d->mem, (nvar + 1) * sizeof *g->vars);
  }
  if (!g || !g->launch || !g->bufs || !g->vars) {
    host_graph_free(d, g);
    return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  }
  g->n = n;
  nbuf = nvar = 0;
  for (int i = 0; i < n; i++) {
    g->launch[i] = l[i];
    g->launch[i].bufs = g->bufs + nbuf;
    g->launch[i].vars = g->vars + nvar;
    nbuf += (size_t)l[i].nbuf;
    nvar += (size_t)l[i].nvar;
    host_graph_update(d, g, i, &l[i]);
  }
  *out = g;
  return TG_OK;
}

TgStatus host_graph_launch(Device *d, LaunchGraph *g) {
  TgStatus s = TG_OK;
  for (int i = 0; i < g->n && !s; i++)
    s = d->backend->launch(d, &g->launch[i]);
  return s;
}
