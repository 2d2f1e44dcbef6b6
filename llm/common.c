/* common.c: what the files of llm/ share. In: texts, key-values. Out: errors of the context, growing buffers,
 * characters of UTF-8. */
#define _XOPEN_SOURCE 700
#include "llm_private.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

bool llm_fail(TgContext *ctx, TgStatus status, const char *format, ...) {
  char text[900];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (ctx) tg_set_error(ctx, status, text);
  return false;
}

bool llm_place(const char *path, char place[LLM_PATH]) {
  struct stat s;
  bool there = !stat(path, &s);
  if (there && !S_ISREG(s.st_mode)) return errno = S_ISDIR(s.st_mode) ? EISDIR : ENOTSUP, false;
  char *real = there ? realpath(path, NULL) : NULL;
  int n = there && !real ? -1 : snprintf(place, LLM_PATH, "%s", real ? real : path);
  free(real);
  return n >= 0 && (n < LLM_PATH || (errno = ENAMETOOLONG, false));
}

double llm_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double llm_least_of_late(double was, double now) {
  if (was <= 0 || now < was) return now;
  return was + 0.1 * ((now < 2 * was ? now : 2 * was) - was);
}

const char *llm_dims_text(char *to, size_t cap, int n, const int64_t *dims) {
  size_t at = (size_t)snprintf(to, cap, "(");
  for (int i = 0; i < n && at < cap; i++)
    at += (size_t)snprintf(to + at, cap - at, "%s%lld", i ? ", " : "", (long long)dims[i]);
  if (at < cap) snprintf(to + at, cap - at, ")");
  return to;
}

void *llm_grow(TgContext *ctx, void *at, size_t n, size_t more, size_t *cap, size_t size) {
  if (more <= *cap - n) return at;
  size_t room = *cap > n / 2 + more ? *cap : n / 2 + more, want, bytes;
  if (__builtin_add_overflow(n, room, &want) || __builtin_mul_overflow(want + 8, size, &bytes)) {
    llm_fail(ctx, TG_ERR_NOMEM, "llm: out of memory");
    return NULL;
  }
  void *grown = tg_alloc(ctx, bytes);
  if (!grown) return NULL;
  if (n) memcpy(grown, at, n * size);
  tg_free(ctx, at);
  *cap = want + 8;
  return grown;
}

void llm_put(LlmText *t, const void *p, size_t n) {
  if (t->bad) return;
  char *at = llm_grow(t->ctx, t->at, t->n, n + 1, &t->cap, 1);
  if (!at) {
    t->bad = true;
    return;
  }
  t->at = at;
  if (n) memcpy(at + t->n, p, n);
  t->n += n;
  at[t->n] = 0;
}

size_t llm_utf8_of(uint32_t c, char b[4]) {
  size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  if (n == 1)
    b[0] = (char)c;
  else
    for (size_t i = n; i-- > 0; c >>= 6)
      b[i] = (char)(i ? 0x80 | (c & 0x3f) : (0xf00u >> n & 0xff) | c);
  return n;
}

void llm_put_utf8(LlmText *t, uint32_t c) {
  char b[4];
  size_t n = llm_utf8_of(c, b);
  llm_put(t, b, n);
}

/* The number of bytes of a character whose first byte is b; 0: no character begins with b. */
static size_t utf8_length(unsigned char b) {
  return b < 0x80 ? 1 : b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0;
}

size_t llm_utf8(const char *p, size_t n, int32_t *code) {
  const unsigned char *b = (const unsigned char *)p;
  size_t want = utf8_length(b[0]);
  *code = want == 1 ? b[0] : -1;
  if (want <= 1 || want > n) return 1;
  int32_t c = b[0] & (0xff >> (want + 1));
  for (size_t i = 1; i < want; i++) {
    if ((b[i] & 0xc0) != 0x80) return 1;
    c = c << 6 | (b[i] & 0x3f);
  }
  *code = c;
  return want;
}

size_t llm_utf8_tail(const char *p, size_t n) {
  for (size_t back = 1; back <= 3 && back <= n; back++) {
    unsigned char b = (unsigned char)p[n - back];
    if (b < 0x80) return 0;
    if (b >= 0xc0) return utf8_length(b) > back ? back : 0;
  }
  return 0;
}

uint64_t llm_hash(const void *p, size_t n) {
  const unsigned char *b = p;
  uint64_t h = 0xcbf29ce484222325u ^ n;
  for (size_t i = 0; i < n; i++)
    h = (h ^ b[i]) * 0x100000001b3u;
  return h ^ h >> 29;
}

/* ---- key-values */
const TgValue *llm_kv(const TgValue *gguf, const char *key) {
  return tg_value_get(tg_value_get(gguf, "kv"), key);
}

bool llm_kv_int(TgContext *ctx, const TgValue *gguf, const char *key, int64_t fallback, int64_t *out) {
  const TgValue *v = llm_kv(gguf, key);
  *out = v ? tg_value_int(v) : fallback;
  if (!v || tg_value_kind(v) == TG_KIND_INT || tg_value_kind(v) == TG_KIND_BOOL) return true;
  return llm_fail(ctx, TG_ERR_VALUE, "gguf: %s is no whole number", key);
}

bool llm_kv_real(TgContext *ctx, const TgValue *gguf, const char *key, double fallback, double *out) {
  const TgValue *v = llm_kv(gguf, key);
  *out = v ? tg_value_float(v) : fallback;
  if (!v || tg_value_kind(v) == TG_KIND_INT || tg_value_kind(v) == TG_KIND_FLOAT) return true;
  return llm_fail(ctx, TG_ERR_VALUE, "gguf: %s is no number", key);
}

bool llm_kv_text(TgContext *ctx, const TgValue *gguf, const char *key, const char **out) {
  const TgValue *v = llm_kv(gguf, key);
  *out = v ? tg_value_string(v, NULL) : NULL;
  if (!v || *out) return true;
  return llm_fail(ctx, TG_ERR_VALUE, "gguf: %s is no text", key);
}
