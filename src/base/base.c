/* base.c: allocation, arena, vectors, maps, strings, hashing, time. See base.h. */
#define _GNU_SOURCE
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool mem_fails(TgMem *m) {
  if (!m) return false;
  uint64_t n = __atomic_add_fetch(&m->calls, 1, __ATOMIC_RELAXED);
  return m->fail_at && (n == m->fail_at || (m->fail_always_after && n > m->fail_at));
}

static void *no_memory(TgMem *m) {
  if (m) __atomic_add_fetch(&m->failed, 1, __ATOMIC_RELAXED);
  return NULL;
}

void *mem_alloc(TgMem *m, size_t nbytes) {
  nbytes = nbytes ? nbytes : 1;
  bool own = m && m->allocate;
  void *p = mem_fails(m) ? NULL : own ? m->allocate(nbytes, m->user) : calloc(1, nbytes);
  if (!p) return no_memory(m);
  if (own) memset(p, 0, nbytes);
  if (m) __atomic_add_fetch(&m->live, 1, __ATOMIC_RELAXED);
  return p;
}

void *mem_alloc_raw(TgMem *m, size_t nbytes) {
  nbytes = nbytes ? nbytes : 1;
  void *p = mem_fails(m) ? NULL : m && m->allocate ? m->allocate(nbytes, m->user) : malloc(nbytes);
  if (!p) return no_memory(m);
  if (m) __atomic_add_fetch(&m->live, 1, __ATOMIC_RELAXED);
  return p;
}

void *mem_realloc(TgMem *m, void *p, size_t old_nbytes, size_t nbytes) {
  size_t size = nbytes ? nbytes : 1;
  void *q = mem_fails(m) ? NULL : m && m->reallocate ? m->reallocate(p, size, m->user) : realloc(p, size);
  if (!q) return no_memory(m);
  if (!p && m) __atomic_add_fetch(&m->live, 1, __ATOMIC_RELAXED);
  if (nbytes > old_nbytes) memset((char *)q + old_nbytes, 0, nbytes - old_nbytes);
  return q;
}

void mem_free(TgMem *m, void *p) {
  if (!p) return;
  if (m) __atomic_sub_fetch(&m->live, 1, __ATOMIC_RELAXED);
  if (m && m->release)
    m->release(p, m->user);
  else
    free(p);
}

char *mem_strdup(TgMem *m, const char *s) {
  size_t n = strlen(s) + 1;
  char *p = mem_alloc_raw(m, n);
  if (p) memcpy(p, s, n);
  return p;
}

TgStatus error_set(TgError *e, TgStatus s, const char *fmt, ...) {
  if (!e || e->status) return s;
  e->status = s;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(e->msg, sizeof e->msg, fmt, ap);
  va_end(ap);
  if (e->place) {
    size_t n = strlen(e->msg);
    snprintf(e->msg + n, sizeof e->msg - n, "; in ");
    error_place_text(e->place, e->msg + strlen(e->msg), sizeof e->msg - strlen(e->msg));
    e->place = NULL;
  }
  return s;
}

TgStatus error_no_memory(TgError *e, const char *what) {
  return error_set(e, TG_ERR_NOMEM, "%s: out of memory", what);
}

/* The compiler gives a file's name as it was passed, perhaps with many folders. */
void error_place_text(const char *place, char *to, size_t cap) {
  const char *open = strrchr(place, '('), *slash = strrchr(place, '/');
  int op = open ? (int)(open + 1 - place) : 0;
  snprintf(to, cap, "%.*s%s", op, place, open && slash > open ? slash + 1 : place + op);
}

/* ---- arena */
void arena_init(Arena *a, TgMem *mem) { *a = (Arena){.mem = mem}; }

bool arena_grow(Arena *a, size_t nbytes) {
  const ArenaBlock *b = a->block;
  size_t size = b ? TG_MIN(b->size * 2, (size_t)8 << 20) : a->first ? a->first : 8192;
  if (size < nbytes || (a->mem && a->mem->apart)) size = nbytes;
  ArenaBlock *more = mem_alloc_raw(a->mem, sizeof *more + size);
  if (!more) return false;
  more->next = a->block;
  more->size = size;
  more->used = 0;
  a->block = more;
  a->total += size;
  bounds_forbid(more + 1, size);
  return true;
}

static void block_free(Arena *a, ArenaBlock *b) {
  bounds_allow(b + 1, b->size);
  mem_free(a->mem, b);
}

void *arena_alloc(Arena *a, size_t nbytes) {
  void *p = nbytes <= SIZE_MAX / 2 ? arena_take(a, nbytes) : NULL;
  /* zeroed here, not a whole block at once: it is about to be written */
  return p ? memset(p, 0, nbytes) : NULL;
}

char *arena_strdup(Arena *a, const char *s) {
  size_t n = strlen(s) + 1;
  char *p = arena_alloc(a, n);
  if (p) memcpy(p, s, n);
  return p;
}

char *arena_printf(Arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
  if (!p) return NULL;
  va_start(ap, fmt);
  vsnprintf(p, (size_t)n + 1, fmt, ap);
  va_end(ap);
  return p;
}

void arena_reset(Arena *a) {
  ArenaBlock *keep = a->block;
  if (!keep) return;
  for (ArenaBlock *b = keep->next, *n; b; b = n) {
    n = b->next;
    block_free(a, b);
  }
  keep->next = NULL;
  keep->used = 0;
  bounds_forbid(keep + 1, keep->size);
  a->total = keep->size;
}

void arena_free(Arena *a) {
  for (ArenaBlock *b = a->block, *n; b; b = n) {
    n = b->next;
    block_free(a, b);
  }
  a->block = NULL;
  a->total = 0;
}

bool vec_grow(TgMem *m, void **at, size_t *cap, size_t need, size_t item) {
  enum { FIRST_BYTES = 256 }; /* most arrays of pointers have more than a few elements and are freed soon */

  size_t n = *cap ? *cap : TG_MAX(FIRST_BYTES / item, 8);
  while (n < need)
    n *= 2;
  bounds_allow(*at, *cap * item);
  void *p = mem_realloc(m, *at, *cap * item, n * item);
  if (!p) return false;
  *at = p;
  *cap = n;
  return true;
}

/* ---- for any Vec: all of them have the same layout */
bool vec_room(TgMem *m, void *vec, size_t item) {
  Vec(char) v;
  memcpy(&v, vec, sizeof v);
  if (v.len == v.cap) {
    if (!vec_grow(m, (void **)&v.at, &v.cap, v.len + 1, item)) return false;
    bounds_forbid(v.at + v.len * item, (v.cap - v.len) * item);
    memcpy(vec, &v, sizeof v);
  }
  bounds_allow(v.at + v.len * item, item);
  return true;
}

void vec_drop(TgMem *m, void *vec) {
  Vec(char) v;
  memcpy(&v, vec, sizeof v);
  mem_free(m, v.at);
  memset(vec, 0, sizeof v);
}

/* ---- map */
void map_init(Map *m, TgMem *mem) { *m = (Map){.mem = mem}; }

void map_clear(Map *m) {
  if (m->at) memset(m->at, 0, m->cap * sizeof *m->at);
  m->len = 0;
}

void map_free(Map *m) {
  mem_free(m->mem, m->at);
  m->at = NULL;
  m->cap = m->len = 0;
}

static uint64_t key_hash(uint64_t k) { return hash_mix(0x9e3779b97f4a7c15u, k); }

/* Returns the entry of the key, or the free entry where it would be put. */
static MapEntry *map_place(const Map *m, uint64_t key) {
  size_t i = key_hash(key) & (m->cap - 1);
  while (m->at[i].used && m->at[i].key != key)
    i = (i + 1) & (m->cap - 1);
  return &m->at[i];
}

static bool map_grown(Map *m) {
  Map wide = {.mem = m->mem, .cap = m->cap ? m->cap * 2 : 32, .len = m->len};
  if (!(wide.at = mem_alloc(m->mem, wide.cap * sizeof *wide.at))) return false;
  for (size_t i = 0; i < m->cap; i++)
    if (m->at[i].used) *map_place(&wide, m->at[i].key) = m->at[i];
  mem_free(m->mem, m->at);
  *m = wide;
  return true;
}

/* Putting a key that is in the map takes no memory. */
bool map_put(Map *m, uint64_t key, uint64_t val) {
  MapEntry *e = m->cap ? map_place(m, key) : NULL;
  if (!e || !e->used) {
    if ((m->len + 1) * 2 > m->cap) {
      if (!map_grown(m)) return false;
      e = map_place(m, key);
    }
    m->len++;
  }
  *e = (MapEntry){key, val, true};
  return true;
}

bool map_get(const Map *m, uint64_t key, uint64_t *val) {
  if (!m->cap) return false;
  for (size_t i = key_hash(key) & (m->cap - 1); m->at[i].used; i = (i + 1) & (m->cap - 1))
    if (m->at[i].key == key) {
      *val = m->at[i].val;
      return true;
    }
  return false;
}

/* Entries that a collision had moved further on move back into the hole. */
void map_drop(Map *m, uint64_t key) {
  MapEntry *hole = m->cap ? map_place(m, key) : NULL;
  if (!hole || !hole->used) return;
  size_t mask = m->cap - 1, at = (size_t)(hole - m->at);
  for (size_t i = (at + 1) & mask; m->at[i].used; i = (i + 1) & mask) {
    size_t home = key_hash(m->at[i].key) & mask;
    if (((i - home) & mask) < ((i - at) & mask)) continue; /* it would be before its home position */
    m->at[at] = m->at[i];
    at = i;
  }
  m->at[at] = (MapEntry){0};
  m->len--;
}

void map_replace_ptr(Map *m, uint64_t key, void *v) {
  if (v)
    map_put_ptr(m, (uintptr_t)key, v);
  else
    map_drop(m, key);
}

/* ---- strings */
void str_init(Str *s, TgMem *mem) { *s = (Str){.mem = mem}; }

void str_free(Str *s) {
  mem_free(s->mem, s->at);
  s->at = NULL;
  s->len = s->cap = 0;
}

bool str_reserve(Str *s, size_t n) {
  size_t need = s->len + n + 1, cap = TG_MAX(s->cap, 256);
  if (s->oom || need <= s->cap) return !s->oom;
  while (cap < need)
    cap *= 2;
  /* text is written before it is read, so nothing need be zeroed */
  char *at = mem_realloc(s->mem, s->at, cap, cap);
  if (!at) return s->oom = true, false;
  s->at = at;
  s->cap = cap;
  return true;
}

void str_putn(Str *s, const char *text, size_t n) {
  if (!str_reserve(s, n)) return;
  memcpy(s->at + s->len, text, n);
  s->at[s->len += n] = 0;
}

void str_put(Str *s, const char *text) { str_putn(s, text, strlen(text)); }

char *int_text(char b[INT_TEXT], int64_t v) {
  char *p = b + INT_TEXT - 1;
  uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  *p = 0;
  do
    *--p = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) *--p = '-';
  return p;
}

void str_int(Str *s, int64_t v) {
  char b[INT_TEXT], *p = int_text(b, v);
  str_putn(s, p, (size_t)(b + INT_TEXT - 1 - p));
}

void str_printf(Str *s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  if (n < 0 || !str_reserve(s, (size_t)n)) return;
  va_start(ap, fmt);
  vsnprintf(s->at + s->len, (size_t)n + 1, fmt, ap);
  va_end(ap);
  s->len += (size_t)n;
}

/* Number of bytes of the UTF-8 character at p; 0: not valid. */
static int utf8_bytes(const unsigned char *p) {
  int n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
  for (int i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if (n == 3 && ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f))) return 0;
  return n == 4 && ((*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) ? 0 : n;
}

void str_json(Str *s, const char *text) {
  /* from: start of the text that is not copied yet */
  const unsigned char *p = (const unsigned char *)text, *from = p;
  str_put(s, "\"");
  for (int n;; p += n ? n : 1) {
    while (*p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\')
      p++;
    n = utf8_bytes(p);
    if (n && *p >= 0x20 && *p != 0x7f && *p != '"' && *p != '\\') continue;
    str_putn(s, (const char *)from, (size_t)(p - from));
    if (!*p) break;
    from = p + (n ? n : 1);
    if (!n)
      str_put(s, "?");
    else if (*p == '"' || *p == '\\')
      str_putn(s, *p == '"' ? "\\\"" : "\\\\", 2);
    else
      str_printf(s, "\\u%04x", *p);
  }
  str_put(s, "\"");
}

const char *str_text(const Str *s) { return s->at ? s->at : ""; }

/* ---- hashing */
uint64_t hash_bytes(uint64_t seed, const void *p, size_t n) {
  const uint8_t *b = p;
  uint64_t h = hash_mix(seed, n), w;
  for (; n >= 8; n -= 8, b += 8) {
    memcpy(&w, b, 8);
    h = hash_mix(h, w);
  }
  w = 0;
  if (n) memcpy(&w, b, n);
  return hash_mix(h, w);
}

/* ---- machine */
double time_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
