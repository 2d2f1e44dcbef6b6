/* onnx_wire.h: protobuf as bytes: fields by number, lengths checked against what encloses them. A message is
 * walked twice or more: first to count what repeats, then to read it. */
#ifndef TG_ONNX_WIRE_H
#define TG_ONNX_WIRE_H
#include "onnx_private.h"

typedef struct Wire {
  const Source *s;
  uint64_t at, end;
  bool bad;
} Wire;

/* type 0: v; 1, 5: v, the bits; 2: n bytes at `at` */
typedef struct Field {
  uint64_t number, v, at, n;
  int type;
} Field;

/* false at the end, and after an error (w->bad), which is in the context. */
bool wire_next(Wire *w, Field *f);
/* whether a field has the type that it must have */
bool wire_want(Wire *w, const Field *f, int type, const char *what);
/* How often a field is there. A bad wire is reported. */
bool wire_count(Wire w, uint64_t number, size_t *n);
const char *wire_text(TgOnnx *m,
                      const Field *f); /* a copy that lives as long as the model; NULL: no memory */
/* Numbers of a repeated field, packed or not, 0 <= size of an element: 8 or 4 bytes fixed, 0 varints. How
 * many: with put NULL; else they are given to put. */
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
