/* emulate_memory.c: memory of an emulated GPU as the host sees it, and the description of places in it.
 * Device memory is taken from one large reservation, page after page and in a circle, so that an address is
 * not reused for a long time. The shadow is at a fixed multiple of the distance from the start; parts of it
 * that were never used cost nothing. */
#define _GNU_SOURCE
#include "emu/emulate_private.h"
#include "base/os.h"
#include <stdio.h>
#include <string.h>

static const size_t reserve_most = (size_t)16 << 30, reserve_least = (size_t)256 << 20;

/* ---- reservations */
static void *reserve(const Emu *e, size_t nbytes, int prot) {
  void *p = e->os->mmap(NULL, nbytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

bool space_new(Emu *e, Space *s, uintptr_t lo, size_t size, bool is_shared) {
  *s = (Space){.lo = lo, .size = size, .is_shared = is_shared};
  s->words = reserve(e, size / WORD * sizeof(Cell), PROT_READ | PROT_WRITE);
  s->bytes = s->words ? reserve(e, size * sizeof(Cell), PROT_READ | PROT_WRITE) : NULL;
  if (s->bytes) return true;
  space_end(e, s);
  return false;
}

void space_end(Emu *e, Space *s) {
  if (s->words) e->os->munmap(s->words, s->size / WORD * sizeof(Cell));
  if (s->bytes) e->os->munmap(s->bytes, s->size * sizeof(Cell));
  *s = (Space){0};
}

/* Reserves as much address space as possible. With less of it, addresses are only reused earlier. */
bool memory_new(Emu *e) {
  for (size_t n = reserve_most; n >= reserve_least; n /= 2) {
    void *p = reserve(e, n, PROT_NONE);
    if (!p) continue;
    if (space_new(e, &e->device, (uintptr_t)p, n, false)) {
      e->npage = n / e->page_bytes;
      e->owner = reserve(e, e->npage * sizeof *e->owner, PROT_READ | PROT_WRITE);
      if (e->owner) return true;
      space_end(e, &e->device);
    }
    e->os->munmap(p, n);
  }
  return false;
}

void memory_end(Emu *e) {
  if (e->owner) e->os->munmap(e->owner, e->npage * sizeof *e->owner);
  if (e->device.lo) e->os->munmap((void *)e->device.lo, e->device.size);
  space_end(e, &e->device);
  vec_free(e->mem, &e->allocations);
  vec_free(e->mem, &e->idle_records);
}

/* ---- allocations */
static Allocation *allocation_of_page(const Emu *e, size_t page) {
  return page < e->npage && e->owner[page] ? &e->allocations.at[e->owner[page] - 1] : NULL;
}

static size_t page_of(const Emu *e, uintptr_t at) { return (at - e->device.lo) / e->page_bytes; }

bool memory_holds(Emu *e, uintptr_t at, size_t nbytes) {
  if (e->recent < e->allocations.len) {
    const Allocation *a = &e->allocations.at[e->recent];
    if (a->live && at - a->at < a->nbytes && nbytes <= a->nbytes - (at - a->at)) return true;
  }
  if (!emu_holds(e, (const void *)at, nbytes)) return false;
  e->recent = e->owner[page_of(e, at)] - 1;
  return true;
}

/* Finds `n` free pages in a row. It searches from the end of the last allocation, then from the beginning.
 * SIZE_MAX: there are none. */
static size_t find_pages(const Emu *e, size_t n) {
  for (int round = 0; round < 2; round++) {
    size_t at = round ? 0 : e->next_page;
    while (at + n <= e->npage) {
      size_t i = 0;
      const Allocation *a = NULL;
      while (i < n && !((a = allocation_of_page(e, at + i)) && a->live))
        i++;
      if (i == n) return at;
      at = page_of(e, a->at) + a->npage;
    }
  }
  return SIZE_MAX;
}

/* Removes the records of released allocations that began in these pages. */
static bool records_reclaim(Emu *e, size_t at, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const Allocation *a = allocation_of_page(e, at + i);
    if (!a || page_of(e, a->at) != at + i) continue;
    if (!vec_push(e->mem, &e->idle_records, (uint32_t)(a - e->allocations.at))) return false;
    memset(&e->owner[at + i], 0, a->npage * sizeof *e->owner);
  }
  return true;
}

static bool record_new(Emu *e, uint32_t *index) {
  if (e->idle_records.len) {
    *index = e->idle_records.at[--e->idle_records.len];
    return true;
  }
  *index = (uint32_t)e->allocations.len;
  return vec_push(e->mem, &e->allocations, (Allocation){0});
}

/* Makes pages as they were at first, so that they cost nothing. If that is not possible, they are zeroed. */
static void pages_forget(const Emu *e, void *p, size_t nbytes) {
  if (e->os->zero_pages(p, nbytes)) memset(p, 0, nbytes);
}

static void shadow_forget(const Emu *e, size_t page, size_t npage) {
  size_t words = e->page_bytes / WORD * sizeof(Cell), bytes = e->page_bytes * sizeof(Cell);
  pages_forget(e, (uint8_t *)e->device.words + page * words, npage * words);
  pages_forget(e, (uint8_t *)e->device.bytes + page * bytes, npage * bytes);
}

TgStatus emu_alloc(Emu *e, size_t nbytes, TgError *err, void **out) {
  *out = NULL;
  size_t npage = nbytes / e->page_bytes + 2; /* at least one page between neighbours */
  if (nbytes >= e->device.size)
    return error_set(err, TG_ERR_NOMEM, "emulator: %zu bytes are too many", nbytes);
  size_t page = find_pages(e, npage);
  if (page == SIZE_MAX) return error_set(err, TG_ERR_NOMEM, "emulator: no room for %zu bytes", nbytes);
  uint8_t *at = (uint8_t *)e->device.lo + page * e->page_bytes;
  uint32_t index;
  if (!records_reclaim(e, page, npage) || !record_new(e, &index))
    return error_set(err, TG_ERR_NOMEM, "emulator: out of memory");
  if (e->os->mprotect(at, (npage - 1) * e->page_bytes, PROT_READ | PROT_WRITE)) {
    e->allocations.at[index].live = false; /* the record is not used again, which does no harm */
    return error_set(err, TG_ERR_NOMEM, "emulator: cannot allocate %zu bytes", nbytes);
  }
  e->allocations.at[index] = (Allocation){(uintptr_t)at, nbytes, npage, true};
  for (size_t i = 0; i < npage; i++)
    e->owner[page + i] = index + 1;
  e->next_page = page + npage;
  *out = at;
  return TG_OK;
}

TgStatus emu_release(Emu *e, void *p, TgError *err) {
  if (!p) return TG_OK;
  uintptr_t at = (uintptr_t)p;
  Allocation *a = at - e->device.lo < e->device.size ? allocation_of_page(e, page_of(e, at)) : NULL;
  if (!a || a->at != at)
    return error_set(err, TG_ERR_DEVICE, "emulator: release of %p, which is no allocation's start", p);
  if (!a->live)
    return error_set(err, TG_ERR_DEVICE, "emulator: release of %zu bytes that were released before",
                     a->nbytes);
  a->live = false;
  pages_forget(e, p, (a->npage - 1) * e->page_bytes);
  shadow_forget(e, page_of(e, at), a->npage);
  /* if this fails, accesses of kernels are still checked */
  (void)e->os->mprotect(p, (a->npage - 1) * e->page_bytes, PROT_NONE);
  return TG_OK;
}

bool emu_holds(const Emu *e, const void *p, size_t nbytes) {
  uintptr_t at = (uintptr_t)p;
  if (at - e->device.lo >= e->device.size) return false;
  const Allocation *a = allocation_of_page(e, page_of(e, at));
  return a && a->live && at >= a->at && at - a->at <= a->nbytes && nbytes <= a->nbytes - (at - a->at);
}

/* ---- describing places */
/* Returns the number of the launch's argument that points into an allocation; 0: none. */
static int argument_of(const Emu *e, const Allocation *a) {
  if (!emu_running) return 0;
  for (int i = 0; i < emu_nparam(e->kernel); i++) {
    uintptr_t v;
    if (emu_param_bytes(e->kernel, i) != sizeof v) continue;
    memcpy(&v, e->params[i], sizeof v);
    if (v >= a->at && v - a->at <= a->nbytes) return i + 1;
  }
  return 0;
}

static const Allocation *nearest_allocation(const Emu *e, uintptr_t at, size_t *distance) {
  const Allocation *best = NULL;
  *distance = SIZE_MAX;
  for (size_t i = 0; i < e->allocations.len; i++) {
    const Allocation *a = &e->allocations.at[i];
    if (!a->npage || (!a->live && at - a->at >= a->nbytes)) continue;
    size_t d = at < a->at ? a->at - at : at >= a->at + a->nbytes ? at - (a->at + a->nbytes) : 0;
    if (d < *distance) {
      best = a;
      *distance = d;
    }
  }
  return best;
}

static const char *device_place(const Emu *e, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]) {
  size_t far;
  const Allocation *a = nearest_allocation(e, at, &far);
  char what[64];

  enum { NEAR = 1 << 20 };

  if (!a || far > NEAR) {
    snprintf(out, PLACE_TEXT, "at %#zx, far from any allocation", (size_t)at);
    return out;
  }
  int arg = argument_of(e, a);
  if (arg)
    snprintf(what, sizeof what, "argument %d (%zu bytes)", arg, a->nbytes);
  else
    snprintf(what, sizeof what, "an allocation of %zu bytes", a->nbytes);
  if (!a->live)
    snprintf(out, PLACE_TEXT, "at byte %zu of %s, which was released", (size_t)(at - a->at), what);
  else if (at < a->at)
    snprintf(out, PLACE_TEXT, "%zu bytes before %s", (size_t)(a->at - at), what);
  else if (at >= a->at + a->nbytes)
    snprintf(out, PLACE_TEXT, "%zu bytes past the end of %s", (size_t)(at - a->at - a->nbytes), what);
  else if (at + nbytes > a->at + a->nbytes)
    snprintf(out, PLACE_TEXT, "at byte %zu of %s, over its end", (size_t)(at - a->at), what);
  else
    snprintf(out, PLACE_TEXT, "at byte %zu of %s", (size_t)(at - a->at), what);
  return out;
}

static const char *shared_place(const Emu *e, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]) {
  const EmuModule *m = e->kernel->module;
  size_t off = at - m->shared.lo, room = m->image.room - m->image.data;
  if (off >= room) {
    snprintf(out, PLACE_TEXT, "at byte %zu of dynamic shared memory (%zu bytes)", off - room,
             e->shared_limit);
    return out;
  }
  const Array *best = NULL;
  size_t far = SIZE_MAX;
  for (size_t i = 0; i < m->arrays.len; i++) {
    const Array *a = &m->arrays.at[i];
    size_t d = off < a->at ? a->at - off : off >= a->at + a->nbytes ? off - a->at - a->nbytes : 0;
    if (d < far) {
      best = a;
      far = d;
    }
  }
  if (!best)
    snprintf(out, PLACE_TEXT, "in shared memory, outside any array");
  else if (off < best->at)
    snprintf(out, PLACE_TEXT, "%zu bytes before shared %s (%zu bytes)", far, best->name, best->nbytes);
  else if (off >= best->at + best->nbytes)
    snprintf(out, PLACE_TEXT, "%zu bytes past the end of shared %s (%zu bytes)", far, best->name,
             best->nbytes);
  else
    snprintf(out, PLACE_TEXT, "at byte %zu of shared %s (%zu bytes)%s", off - best->at, best->name,
             best->nbytes, off + nbytes > best->at + best->nbytes ? ", over its end" : "");
  return out;
}

const char *place_text(const Emu *e, const Space *s, uintptr_t at, size_t nbytes, char out[PLACE_TEXT]) {
  return s->is_shared ? shared_place(e, at, nbytes, out) : device_place(e, at, nbytes, out);
}

/* ---- accesses of the host */
static TgStatus host_refused(Emu *e, uintptr_t at, size_t nbytes, const char *what, TgError *err) {
  char where[PLACE_TEXT];
  device_place(e, at, nbytes, where);
  return error_set(err, TG_ERR_DEVICE, "emulator: the host %s %zu bytes %s", what, nbytes, where);
}

TgStatus emu_write(Emu *e, void *to, const void *from, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  if (!emu_holds(e, to, nbytes)) return host_refused(e, (uintptr_t)to, nbytes, "writes", err);
  memcpy(to, from, nbytes);
  shadow_mark(&e->device, (uintptr_t)to, nbytes, true);
  return TG_OK;
}

TgStatus emu_fill(Emu *e, void *to, int byte, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  if (!emu_holds(e, to, nbytes)) return host_refused(e, (uintptr_t)to, nbytes, "writes", err);
  memset(to, byte, nbytes);
  shadow_mark(&e->device, (uintptr_t)to, nbytes, true);
  return TG_OK;
}

TgStatus emu_read(Emu *e, void *to, const void *from, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  uintptr_t at = (uintptr_t)from;
  if (!emu_holds(e, from, nbytes)) return host_refused(e, at, nbytes, "reads", err);
  for (size_t i = 0; e->strict && i < nbytes; i++)
    if (!shadow_is_set(&e->device, at + i))
      return host_refused(e, at + i, nbytes - i, "reads what nobody wrote:", err);
  memcpy(to, from, nbytes);
  return TG_OK;
}

/* Bytes that were never written count as never written in the copy too. */
TgStatus emu_copy(Emu *e, void *to, const void *from, size_t nbytes, TgError *err) {
  if (!nbytes) return TG_OK;
  if (!emu_holds(e, from, nbytes)) return host_refused(e, (uintptr_t)from, nbytes, "copies", err);
  if (!emu_holds(e, to, nbytes)) return host_refused(e, (uintptr_t)to, nbytes, "copies to", err);
  uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
  size_t done = 0;
  /* the ranges overlap: marks, too, must be read before they are overwritten */
  if (a > b && a - b < nbytes) {
    for (size_t i = nbytes; i-- > 0;)
      shadow_mark(&e->device, a + i, 1, shadow_is_set(&e->device, b + i));
    done = nbytes;
  }
  while (done < nbytes) {
    bool set = shadow_is_set(&e->device, b + done);
    size_t run = 1;
    while (done + run < nbytes && shadow_is_set(&e->device, b + done + run) == set)
      run++;
    shadow_mark(&e->device, a + done, run, set);
    done += run;
  }
  memmove(to, from, nbytes);
  return TG_OK;
}
