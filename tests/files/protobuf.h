/* protobuf.h: messages of protobuf, written for the tests: fields in the order they are put. */
#ifndef TG_TESTS_PROTOBUF_H
#define TG_TESTS_PROTOBUF_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Msg {
  uint8_t b[4096];
  size_t n;
} Msg;

static inline void num(Msg *m, uint64_t v) {
  for (; v > 127; v >>= 7)
    m->b[m->n++] = (uint8_t)(v | 128);
  m->b[m->n++] = (uint8_t)v;
}

static inline void put_int(Msg *m, int field, int64_t v) {
  num(m, (uint64_t)field << 3), num(m, (uint64_t)v);
}

static inline void put_bytes(Msg *m, int field, const void *p, size_t n) {
  num(m, (uint64_t)field << 3 | 2), num(m, n);
  if (m->n + n > sizeof m->b) abort(); /* a test's own fault */
  memcpy(m->b + m->n, p, n), m->n += n;
}

static inline void put_text(Msg *m, int field, const char *t) { put_bytes(m, field, t, strlen(t)); }

static inline void put(Msg *m, int field, const Msg *x) { put_bytes(m, field, x->b, x->n); }
#endif
