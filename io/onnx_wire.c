/* onnx_wire.c: protobuf's fields. In: bytes of a model. Out: one field after the other, or an error with
 * the byte at which it occurred. */
#include "onnx_wire.h"

/* Reads a number with 7 bits in each byte. Returns false after an error, which is in the context. */
static bool wire_number(Wire *w, uint64_t *v) {
  *v = 0;
  for (int shift = 0; shift < 70 && w->at < w->end; shift += 7) {
    uint8_t b = w->s->p[w->at++];
    if (shift == 63 && b > 1) break;
    *v |= (uint64_t)(b & 127) << shift;
    if (b < 128) return true;
  }
  w->bad = true;
  return io_fail(w->s, TG_ERR_VALUE, "a number is cut off or too long at byte %llu",
                 (unsigned long long)w->at);
}

bool wire_next(Wire *w, Field *f) {
  uint64_t key;
  if (w->bad || w->at >= w->end || !wire_number(w, &key)) return false;
  *f = (Field){.number = key >> 3, .type = (int)(key & 7)};
  uint64_t left = w->end - w->at;
  switch (f->type) {
  case 0: return wire_number(w, &f->v);
  case 1:
    if (left >= 8) return f->v = le64(w->s->p + w->at), w->at += 8, true;
    break;
  case 5:
    if (left >= 4) return f->v = le32(w->s->p + w->at), w->at += 4, true;
    break;
  case 2:
    if (!wire_number(w, &f->n)) return false;
    f->at = w->at;
    if (f->n <= w->end - w->at) return w->at += f->n, true;
    break;
  default: break;
  }
  w->bad = true;
  return io_fail(w->s, TG_ERR_VALUE,
                 "field %llu, wire type %d, at byte %llu does not fit: it is cut off, or no ONNX model",
                 (unsigned long long)f->number, f->type, (unsigned long long)w->at);
}

bool wire_want(Wire *w, const Field *f, int type, const char *what) {
  if (f->type == type) return true;
  w->bad = true;
  return io_fail(w->s, TG_ERR_VALUE, "%s: field %llu has wire type %d", what, (unsigned long long)f->number,
                 f->type);
}

bool wire_count(Wire w, uint64_t number, size_t *n) {
  Field f;
  *n = 0;
  while (wire_next(&w, &f))
    *n += f.number == number;
  return !w.bad;
}

const char *wire_text(TgOnnx *m, const Field *f) {
  char *s = doc_alloc(m->doc, f->n + 1);
  if (s) memcpy(s, m->s.p + f->at, f->n);
  return s;
}

bool wire_numbers(Wire w, uint64_t number, int size, WirePut put, void *to, size_t *n) {
  Field f;
  *n = 0;
  int plain = size == 8 ? 1 : size == 4 ? 5 : 0;
  while (wire_next(&w, &f)) {
    if (f.number != number) continue;
    if (f.type == plain) {
      if (put) put(to, *n, f.v);
      ++*n;
    } else if (f.type == 2) {
      Wire p = wire_within(w.s, &f);
      if (size && f.n % (uint64_t)size)
        return io_fail(w.s, TG_ERR_VALUE, "field %llu holds no whole number of elements",
                       (unsigned long long)number);
      while (p.at < p.end) {
        uint64_t v;
        if (size) {
          v = size == 8 ? le64(w.s->p + p.at) : le32(w.s->p + p.at);
          p.at += (uint64_t)size;
        } else if (!wire_number(&p, &v))
          return false;
        if (put) put(to, *n, v);
        ++*n;
      }
    } else
      return wire_want(&w, &f, plain, "repeated numbers");
  }
  return !w.bad;
}
