/* onnx_wire.h: protobuf as bytes: fields by number, whose lengths are checked against the message that
 * contains them. A message is read twice or more: first to count repeated fields, then to read them. */
#ifndef TG_ONNX_WIRE_H
#define TG_ONNX_WIRE_H
#include "onnx_private.h"

typedef struct Wire {
  const Source *s;
  uint64_t at, end;
  bool bad;
} Wire;

/* type 0: v is the number; types 1 and 5: v has the bits; type 2: n bytes at `at` */
typedef struct Field {
  uint64_t number, v, at, n;
  int type;
} Field;

/* Reads the next field. Returns false at the end, and after an error (w->bad), which is in the context. */
bool wire_next(Wire *w, Field *f);
/* whether a field has the required type; otherwise records an error */
bool wire_want(Wire *w, const Field *f, int type, const char *what);
/* Counts how often a field occurs. Errors of the wire are reported. */
bool wire_count(Wire w, uint64_t number, size_t *n);
const char *wire_text(TgOnnx *m,
                      const Field *f); /* a copy that lives as long as the model; NULL: out of memory */
/* Reads the numbers of a repeated field, packed or not. size: bytes of an element, 8 or 4 if fixed, 0 for
 * varints. *n becomes their number; if put is not NULL, each number is passed to it. */
typedef void (*WirePut)(void *to, size_t i, uint64_t v);
bool wire_numbers(Wire w, uint64_t number, int size, WirePut put, void *to, size_t *n);

static inline Wire wire_of(const Source *s, uint64_t at, uint64_t n) { return (Wire){s, at, at + n, false}; }

static inline Wire wire_within(const Source *s, const Field *f) { return wire_of(s, f->at, f->n); }

static inline void wire_put_i64(void *to, size_t i, uint64_t v) { ((int64_t *)to)[i] = (int64_t)v; }

static inline double wire_f32(uint64_t v) {
  uint32_t u = (uint32_t)v;
  float x;
  return memcpy(&x, &u, 4), (double)x;
}

static inline void wire_put_f32(void *to, size_t i, uint64_t v) { ((double *)to)[i] = wire_f32(v); }
#endif
