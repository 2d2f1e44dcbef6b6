/* base.c: allocation, arena, vectors, maps, strings, hashing, environment. See base.h. */
#define _GNU_SOURCE
#include "base/base.h"
#include <errno.h>
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

static uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static const uint32_t sha_k[64] = {/* FIPS 180-4, section 4.2.2 */
                                   0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
                                   0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
                                   0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
                                   0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
                                   0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
                                   0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
                                   0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
                                   0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
                                   0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
                                   0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
                                   0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void sha_block(uint32_t h[8], const uint8_t *p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] =
        (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++)
    w[i] = w[i - 16] + (rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
           (rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) +
                  ((v[4] & v[5]) ^ (~v[4] & v[6])) + sha_k[i] + w[i];
    uint32_t t2 =
        (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++)
    h[i] += v[i];
}

void sha256(const void *data, size_t n, uint8_t out[32]) {
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint8_t *p = data;
  size_t left = n;
  for (; left >= 64; left -= 64, p += 64)
    sha_block(h, p);
  uint8_t tail[128] = {0};
  if (left) memcpy(tail, p, left);
  tail[left] = 0x80;
  size_t end = left < 56 ? 64 : 128;
  for (int i = 0; i < 8; i++)
    tail[end - 1 - (size_t)i] = (uint8_t)((uint64_t)n * 8 >> (8 * i));
  for (size_t o = 0; o < end; o += 64)
    sha_block(h, tail + o);
  for (int i = 0; i < 32; i++)
    out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- machine */
double time_now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* clang-format off */
static const char *const env_names[] = {
    "TG_DEV", "TG_CC", "TG_CC_LIMIT", "TG_THREADS", "TG_CACHE",
    "TG_FUSE", "TG_SKIP", "TG_NOOPT", "TG_BATCH_INVARIANT", "TG_PREPACK", "TG_OPTS", "TG_DEBUG",
    "TG_DUMP", "TG_PROFILE", "TG_EXPLAIN", "TG_VIZ", "TG_SPEC",
    "TG_TRACE", "TG_RULE_LIMIT", "TG_OPT_LIMIT", "TG_FUSE_LIMIT", "TG_BEAM", "TG_TF32", "TG_WGMMA", "TG_AMX",
    "TG_DOT", "TG_EMU", "TG_EMU_ARCHS", "TG_LOADER", "TG_ALLREDUCE",
    "TG_ALLREDUCE_CAST", "TG_COMM", "TG_COMM_NAME", "TG_COMM_RANK", "TG_COMM_SIZE",
    "TG_COMM_TIMEOUT", "TG_COMM_BUCKET", "TG_COMM_MACHINE", "TG_LINKS", "TG_MODELS", "HF_ENDPOINT", "XDG_CACHE_HOME", "HOME", "PATH", "TMPDIR"};

/* clang-format on */

const char *env_name(int i) { return i >= 0 && (size_t)i < TG_COUNT(env_names) ? env_names[i] : NULL; }

static TgStatus env_int(TgError *err, const char *name, int64_t lo, int64_t hi, int64_t *out) {
  const char *s = getenv(name);
  if (!s || !*s) return TG_OK;
  char *end;
  errno = 0;
  long long v = strtoll(s, &end, 10);
  if (*end || errno || v < lo || v > hi)
    return error_set(err, TG_ERR_VALUE, "environment: %s=%.40s: expected a whole number from %lld to %lld",
                     name, s, (long long)lo, (long long)hi);
  *out = v;
  return TG_OK;
}

static TgStatus env_text(TgError *err, const char *name, char *out, size_t cap) {
  const char *s = getenv(name);
  if (!s) return TG_OK;
  if (strlen(s) >= cap)
    return error_set(err, TG_ERR_VALUE, "environment: %s is longer than %zu bytes", name, cap - 1);
  memcpy(out, s, strlen(s) + 1);
  return TG_OK;
}

/* "10:10,1.25:50": gigabytes per second and microseconds per message, within a machine and between
 * machines. */
static TgStatus env_links(TgError *err, double *links) {
  const double usual[] = {10, 10, 1.25, 50};
  const char *s = getenv("TG_LINKS");
  char end = 0;
  memcpy(links, usual, sizeof usual);
  int n = s && *s ? sscanf(s, "%lf:%lf,%lf:%lf%c", &links[0], &links[1], &links[2], &links[3], &end) : 4;
  for (int i = 0; i < 4; i++)
    if (n != 4 || !(links[i] > 0 && links[i] < 1e9))
      return error_set(err, TG_ERR_VALUE, "environment: TG_LINKS=%.40s: expected GB/s:us,GB/s:us", s);
  links[0] *= 1e3; /* bytes per microsecond */
  links[2] *= 1e3;
  return TG_OK;
}

/* Reads a variable that may be unset or have one of two known values. other: the second value, or NULL. */
static TgStatus env_word(TgError *err, const char *name, const char *word, int *is_set, const char *other,
                         int *is_other) {
  const char *s = getenv(name);
  if (!s || !*s) return TG_OK;
  bool first = !strcmp(s, word), second = other && !strcmp(s, other);
  if (first) *is_set = 1;
  if (second) *is_other = 1;
  if (first || second) return TG_OK;
  return error_set(err, TG_ERR_VALUE, "environment: %s=%.40s: it may be '%s'%s%s", name, s, word,
                   other ? " or " : "", other ? other : "");
}

TgStatus env_read(TgEnv *env, TgError *err) {
  struct {
    const char *name;
    int *at;
    int lo, hi, def;
  } ints[] = {{"TG_DEBUG", &env->debug, 0, 9, 0},
              {"TG_THREADS", &env->threads, 0, 1024, 0},
              {"TG_FUSE", &env->fuse, 0, 1, 1},
              {"TG_NOOPT", &env->noopt, 0, 1, 0},
              {"TG_BATCH_INVARIANT", &env->invariant, 0, 1, 0},
              {"TG_PREPACK", &env->prepack, 0, 2, 1},
              {"TG_SPEC", &env->spec, 0, 1, 0},
              {"TG_CACHE", &env->cache, 0, 1, 1},
              {"TG_TF32", &env->tf32, 0, 1, 0},
              {"TG_WGMMA", &env->wgmma, 0, 1, 0},
              {"TG_ALLREDUCE", &env->allreduce, 0, 4, 0},
              {"TG_ALLREDUCE_CAST", &env->allreduce_cast, 0, 1, 0},
              {"TG_COMM_RANK", &env->comm_rank, 0, INT32_MAX, 0},
              {"TG_COMM_SIZE", &env->comm_size, 1, INT32_MAX, 1},
              {"TG_COMM_TIMEOUT", &env->comm_timeout, 1, 1000000, 300},
              {"TG_COMM_BUCKET", &env->comm_bucket, 0, INT32_MAX, 4 << 20},
              {"TG_BEAM", &env->beam, 0, 64, 0},
              {"TG_EMU", &env->emulate, 0, INT32_MAX, 0},
              {"TG_CC_LIMIT", &env->cc_limit, 1, 86400, 60},
              {"TG_AMX", &env->amx, 0, 1, 1},
              {"TG_DOT", &env->dot, 0, 1, 1}};

  memset(env, 0, sizeof *env);
  env->rule_limit = env->opt_limit = env->fuse_limit = -1;
  for (size_t i = 0; i < TG_COUNT(ints); i++) {
    int64_t v = ints[i].def;
    TgStatus s = env_int(err, ints[i].name, ints[i].lo, ints[i].hi, &v);
    if (s) return s;
    *ints[i].at = (int)v;
  }
  TgStatus s = env_int(err, "TG_RULE_LIMIT", 0, INT64_MAX, &env->rule_limit);
  if (!s) s = env_int(err, "TG_OPT_LIMIT", 0, INT64_MAX, &env->opt_limit);
  if (!s) s = env_int(err, "TG_FUSE_LIMIT", 0, INT64_MAX, &env->fuse_limit);
  if (!s) s = env_text(err, "TG_DEV", env->dev, sizeof env->dev);
  if (!s) s = env_text(err, "TG_COMM", env->comm, sizeof env->comm);
  if (!s) s = env_text(err, "TG_COMM_NAME", env->comm_name, sizeof env->comm_name);
  if (!s) s = env_links(err, env->links);
  if (!s) s = env_text(err, "TG_COMM_MACHINE", env->comm_machine, sizeof env->comm_machine);
  if (!s) s = env_text(err, "TG_CC", env->cc, sizeof env->cc);
  if (!s) s = env_text(err, "TG_OPTS", env->opts, sizeof env->opts);
  if (!s) s = env_text(err, "TG_SKIP", env->skip, sizeof env->skip);
  if (!s) s = env_text(err, "TG_DUMP", env->dump_dir, sizeof env->dump_dir);
  if (!s) s = env_text(err, "TG_PROFILE", env->profile, sizeof env->profile);
  if (!s) s = env_text(err, "TG_VIZ", env->viz, sizeof env->viz);
  if (!strcmp(env->viz, "1")) memcpy(env->viz, "tg-viz", sizeof "tg-viz");
  if (!strcmp(env->viz, "0")) *env->viz = 0;
  if (!s) s = env_text(err, "TG_EXPLAIN", env->explain, sizeof env->explain);
  if (!s) s = env_text(err, "TG_EMU_ARCHS", env->emulate_archs, sizeof env->emulate_archs);
  if (s) return s;
  env->dev_set = env->dev[0] != 0;
  if ((s = env_word(err, "TG_LOADER", "library", &env->link_objects, NULL, NULL))) return s;
  return env_word(err, "TG_TRACE", "rules", &env->trace_rules, "choices", &env->trace_choices);
}
