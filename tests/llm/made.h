/* made.h: gguf files made in memory, right ones and wrong ones, and the data that tests look for. */
#ifndef TG_TESTS_MADE_H
#define TG_TESTS_MADE_H
#include "tg_llm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { MADE_U32 = 4, MADE_I32 = 5, MADE_F32 = 6, MADE_BOOL = 7, MADE_STRING = 8, MADE_ARRAY = 9 };

/* key-values; tensors come from a file that a maker wrote */
typedef struct Made {
  unsigned char at[1 << 16];
  size_t n, count;
} Made;

static inline void made_put(Made *m, const void *p, size_t n) {
  if (n > sizeof m->at - m->n) abort();
  memcpy(m->at + m->n, p, n);
  m->n += n;
}

static inline void made_u32(Made *m, uint32_t v) { made_put(m, &v, 4); }

static inline void made_u64(Made *m, uint64_t v) { made_put(m, &v, 8); }

static inline void made_string(Made *m, const char *s) {
  made_u64(m, strlen(s));
  made_put(m, s, strlen(s));
}

static inline void made_key(Made *m, const char *key, uint32_t type) {
  made_string(m, key);
  made_u32(m, type);
  m->count++;
}

static inline void made_text(Made *m, const char *key, const char *value) {
  made_key(m, key, MADE_STRING);
  made_string(m, value);
}

static inline void made_number(Made *m, const char *key, uint32_t value) {
  made_key(m, key, MADE_U32);
  made_u32(m, value);
}

static inline void made_flag(Made *m, const char *key, bool value) {
  made_key(m, key, MADE_BOOL);
  made_put(m, &(char){value}, 1);
}

static inline void made_texts(Made *m, const char *key, const char *const *s, size_t n) {
  made_key(m, key, MADE_ARRAY);
  made_u32(m, MADE_STRING), made_u64(m, n);
  for (size_t i = 0; i < n; i++)
    made_string(m, s[i]);
}

/* of 4 bytes each */
static inline void made_numbers(Made *m, const char *key, uint32_t type, const void *p, size_t n) {
  made_key(m, key, MADE_ARRAY);
  made_u32(m, type), made_u64(m, n);
  made_put(m, p, 4 * n);
}

/* NULL: an error of the context */
static inline TgValue *made_read(TgContext *ctx, const Made *m) {
  static unsigned char file[sizeof m->at + 64];
  uint64_t counts[] = {0, m->count};
  memcpy(file, "GGUF\3\0\0\0", 8);
  memcpy(file + 8, counts, 16);
  memcpy(file + 24, m->at, m->n);
  return tg_gguf_load(tg_from_bytes(ctx, file, 24 + m->n, TG_U8));
}

/* "FOLDER/name" of the shared data; NULL: it is not here */
static inline const char *data_at(const char *name) {
  static char path[2][600];
  static int turn;
  const char *folder = getenv("TG_DATA");
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder ? folder : "../shared/data", name);
  FILE *f = fopen(path[turn], "rb");
  if (f) fclose(f);
  return f ? path[turn] : NULL;
}

/* a whole file, ended by a 0 byte, to be freed */
static inline char *file_text(const char *path, size_t *n) {
  FILE *f = path ? fopen(path, "rb") : NULL;
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *text = size >= 0 ? calloc((size_t)size + 1, 1) : NULL;
  *n = text ? fread(text, 1, (size_t)size, f) : 0;
  fclose(f);
  return text;
}

/* ---- memory that ends */
typedef struct Short {
  long left, held; /* allocations before one fails; blocks that are out */
} Short;

static inline void *short_allocate(size_t n, void *user) {
  Short *s = user;
  void *p = s->left-- == 0 ? NULL : malloc(n ? n : 1);
  if (p) __atomic_add_fetch(&s->held, 1, __ATOMIC_RELAXED);
  return p;
}

static inline void *short_reallocate(void *p, size_t n, void *user) {
  if (!p) return short_allocate(n, user);
  return ((Short *)user)->left-- == 0 ? NULL : realloc(p, n ? n : 1);
}

static inline void short_release(void *p, void *user) {
  if (p) __atomic_sub_fetch(&((Short *)user)->held, 1, __ATOMIC_RELAXED);
  free(p);
}

/* All that `everything` does, in a context of INTERP whose allocation `at` fails: an error that says so, and
 * all memory given back. *over: there was no such allocation. */
static inline bool short_once(bool (*everything)(TgContext *c), long at, bool *over) {
  Short s = {at, 0};
  TgAllocator a = {short_allocate, short_reallocate, short_release, &s};
  TgContext *c = tg_open_with(.device = "INTERP", .allocator = &a);
  bool ok = c && !tg_error(c) && everything(c);
  /* tg_size_tensor says of a size that there is no memory for that it is none */
  bool told = c && (tg_error(c) == TG_ERR_NOMEM || strstr(tg_errmsg(c), "is no size of this context"));
  if (!ok && c && !told) fail_msg("allocation %ld: %s", at, tg_errmsg(c));
  *over = s.left >= 0;
  tg_close(c);
  if (s.held) fail_msg("allocation %ld: %ld blocks are not given back", at, s.held);
  return ok;
}

/* Each stride-th allocation fails in turn (TG_TORTURE: each), until none does. */
static inline void short_everywhere(bool (*everything)(TgContext *c), long stride) {
  long failed = 0;
  bool over = false, ok = false;
  if (getenv("TG_TORTURE")) stride = 1;
  for (long at = 0; !over; at += stride) {
    ok = short_once(everything, at, &over);
    failed += !ok;
  }
  assert_true(ok);
  assert_true(failed > 20);
}
#endif
