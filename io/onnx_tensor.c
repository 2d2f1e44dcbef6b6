/* onnx_tensor.c: the tensors of an ONNX model. In: a TensorProto. Out: its elements as a tensor, which is
 * a view of the model's file, or of a file beside the model, if they are suitably aligned there. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "onnx_wire.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static void put_4(void *to, size_t i, uint64_t v) {
  uint32_t x = (uint32_t)v;
  memcpy((char *)to + i * 4, &x, 4);
}

static void put_2(void *to, size_t i, uint64_t v) {
  uint16_t x = (uint16_t)v;
  memcpy((char *)to + i * 2, &x, 2);
}

static void put_1(void *to, size_t i, uint64_t v) { ((uint8_t *)to)[i] = (uint8_t)v; }

/* ---- tensors */
TgDType onnx_dtype(int64_t t) {
  static const TgDType d[] = {0,      TG_F32, TG_U8,   TG_I8,      TG_U16, TG_I16,    TG_I32,
                              TG_I64, 0,      TG_BOOL, TG_F16,     TG_F64, TG_U32,    TG_U64,
                              0,      0,      TG_BF16, TG_FP8E4M3, 0,      TG_FP8E5M2};
  return t >= 0 && t < (int64_t)(sizeof d / sizeof *d) ? d[t] : TG_DTYPE_DEFAULT;
}

const OnnxNarrow *onnx_narrow(int64_t data_type) {
  static const OnnxNarrow all[] = {
      {21, TG_U8, 4, 0, 15}, {22, TG_I8, 4, -8, 7}, {25, TG_U8, 2, 0, 3}, {26, TG_I8, 2, -2, 1}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].type == data_type) return &all[i];
  return NULL;
}

/* a single number becomes a constant, so that kernels contain it */
static TgTensor *single(TgContext *ctx, TgTensor *host) {
  TgDType d = tg_dtype(host);
  if (tg_dtype_is_float(d)) return tg_full(ctx, tg_ndim(host), tg_shape(host), tg_item_f64(host), .dtype = d);
  return tg_full_i64(ctx, tg_ndim(host), tg_shape(host), tg_item_i64(host), d);
}

/* A TensorProto's description, before its elements are made. */
typedef struct TensorHead {
  const char *name;
  int64_t type;
  bool raw; /* its elements are bytes of `file` */
  const Source *file;
  uint64_t raw_at, raw_n;
  bool external, has_length;
  const char *location; /* if external: a path beside the model */
  TgDType dtype;
  int ndim;
  int64_t dims[TG_MAX_RANK];
  uint64_t nelem;
} TensorHead;

/* ---- data in files beside the model: location, a path from the model's folder, offset and length as
 * decimal text. A checksum that may accompany them is ignored. */
static bool decimal(const char *s, uint64_t *v) {
  for (*v = 0; *s >= '0' && *s <= '9'; s++)
    if (__builtin_mul_overflow(*v, 10u, v) || __builtin_add_overflow(*v, (unsigned)(*s - '0'), v))
      return false;
  return !*s;
}

/* Reads one key and value of external_data. Unknown keys are ignored. */
static bool entry_read(TgOnnx *m, Wire w, TensorHead *h) {
  Field f;
  const char *key = "", *value = "";
  while (wire_next(&w, &f)) {
    if (f.number == 1 && (!wire_want(&w, &f, 2, "external data") || !(key = wire_text(m, &f)))) return false;
    if (f.number == 2 && (!wire_want(&w, &f, 2, "external data") || !(value = wire_text(m, &f))))
      return false;
    if (f.number == 2 && strlen(value) != f.n)
      return io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: external data: a text with a zero byte", h->name);
  }
  bool offset = !strcmp(key, "offset"), length = !strcmp(key, "length");
  if (!strcmp(key, "location")) h->location = value;
  if (length) h->has_length = true;
  if ((offset || length) && (!*value || !decimal(value, offset ? &h->raw_at : &h->raw_n)))
    return io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: external data: %s '%.40s' is no number", h->name, key,
                   value);
  return !w.bad;
}

/* The path may not lead out of the model's folder, neither by its text nor through links. */
static bool stays_inside(const char *location) {
  if (!*location || *location == '/' || strchr(location, '\\') || strchr(location, ':')) return false;
  for (const char *p = location; *p;) {
    size_t n = strcspn(p, "/");
    if (n == 2 && p[0] == '.' && p[1] == '.') return false;
    p += n;
    p += *p == '/';
  }
  return true;
}

static bool links_inside(const char *folder, const char *path) {
  char real_folder[PATH_MAX], real_path[PATH_MAX];
  /* opening the file reports the reason */
  if (!realpath(folder, real_folder) || !realpath(path, real_path)) return true;
  size_t n = strlen(real_folder);
  return !strncmp(real_path, real_folder, n) && (real_path[n] == '/' || real_folder[n - 1] == '/');
}

static const Source *beside_open(TgOnnx *m, const TensorHead *h) {
  const char *slash = m->path ? strrchr(m->path, '/') : NULL;
  int n = slash ? (int)(slash - m->path) + 1 : 0;
  char folder[PATH_MAX], path[PATH_MAX];
  int wide = snprintf(folder, sizeof folder, "%.*s", n, m->path ? m->path : "");
  int wider = snprintf(path, sizeof path, "%.*s%s", n, m->path ? m->path : "", h->location);
  bool fits = wide >= 0 && wide < (int)sizeof folder && wider >= 0 && wider < (int)sizeof path;
  if (!fits || !stays_inside(h->location) || !links_inside(n ? folder : ".", path)) {
    io_fail(&m->s, TG_ERR_VALUE, "tensor %.100s: external data at '%.200s': not in the model's folder",
            h->name, h->location);
    return NULL;
  }
  OnnxBeside *b = doc_alloc(m->doc, sizeof *b);
  char *kept = b ? doc_alloc(m->doc, strlen(path) + 1) : NULL;
  if (!kept) return NULL;
  b->name = h->location;
  b->path = strcpy(kept, path);
  if (!source_open(&b->s, file_tensor(m->ctx, kept), "onnx", kept)) return NULL;
  b->next = m->beside;
  m->beside = b;
  return &b->s;
}

/* Finds the file that holds the elements, which is opened only once, and checks that they are inside it. */
static bool external_found(TgOnnx *m, TensorHead *h, uint64_t nbytes) {
  if (!m->path)
    return io_fail(
        &m->s, TG_ERR_VALUE,
        "tensor %.200s: its data lies in a file beside the model, which was given without its path", h->name);
  if (!h->location)
    return io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: external data without a location", h->name);
  if (h->has_length && h->raw_n != nbytes)
    return io_fail(&m->s, TG_ERR_VALUE,
                   "tensor %.200s: external data: %llu bytes for a shape and data type of %llu", h->name,
                   (unsigned long long)h->raw_n, (unsigned long long)nbytes);
  const OnnxBeside *b = m->beside;
  while (b && strcmp(b->name, h->location))
    b = b->next;
  if (!(h->file = b ? &b->s : beside_open(m, h))) return false;
  h->raw = true;
  h->raw_n = nbytes;
  return inside(h->raw_at, nbytes, h->file->n) ||
         io_fail(&m->s, TG_ERR_VALUE,
                 "tensor %.100s: external data: bytes %llu to %llu of '%.100s', which has %llu", h->name,
                 (unsigned long long)h->raw_at, (unsigned long long)(h->raw_at + nbytes), h->location,
                 (unsigned long long)h->file->n);
}

static bool head_read(TgOnnx *m, Wire w, TensorHead *h) {
  Field f;
  *h = (TensorHead){.name = "", .nelem = 1, .file = &m->s};
  while (wire_next(&w, &f))
    switch (f.number) {
    case 2:
      if (wire_want(&w, &f, 0, "tensor")) h->type = (int64_t)f.v;
      break;
    case 8:
      if (wire_want(&w, &f, 2, "tensor") && !(h->name = wire_text(m, &f))) return false;
      break;
    case 9:
      if (wire_want(&w, &f, 2, "tensor")) {
        h->raw = true;
        h->raw_at = f.at;
        h->raw_n = f.n;
      }
      break;
    case 13:
      if (wire_want(&w, &f, 2, "tensor") && !entry_read(m, wire_within(&m->s, &f), h)) return false;
      break;
    case 14:
      if (!wire_want(&w, &f, 0, "tensor")) break;
      if (f.v > 1)
        return io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: data location %llu", h->name,
                       (unsigned long long)f.v);
      h->external = f.v == 1;
      break;
    default: break;
    }
  return !w.bad;
}

static bool head_shape(TgOnnx *m, Wire w, TensorHead *h) {
  size_t ndim;
  if (!wire_numbers(w, 1, 0, NULL, NULL, &ndim)) return false;
  if (ndim > TG_MAX_RANK)
    return io_fail(&m->s, TG_ERR_SHAPE, "tensor %.200s: %zu axes, at most %d", h->name, ndim, TG_MAX_RANK);
  if (!wire_numbers(w, 1, 0, wire_put_i64, h->dims, &ndim)) return false;
  h->ndim = (int)ndim;
  const OnnxNarrow *narrow = onnx_narrow(h->type);
  h->dtype = narrow ? narrow->as : onnx_dtype(h->type);
  if (!h->dtype)
    return io_fail(&m->s, TG_ERR_DTYPE, "tensor %.200s: data type %lld is not read here", h->name,
                   (long long)h->type);
  uint64_t nbytes = tg_dtype_size(h->dtype); /* of the sizes that are not 0 */
  for (int i = 0; i < h->ndim; i++) {
    if (h->dims[i] < 0 || (h->dims[i] && nbytes > (uint64_t)INT64_MAX / 16 / (uint64_t)h->dims[i]))
      return io_fail(&m->s, TG_ERR_SHAPE, "tensor %.200s: sizes out of bounds", h->name);
    if (h->dims[i]) nbytes *= (uint64_t)h->dims[i];
    h->nelem *= (uint64_t)h->dims[i];
  }
  return true;
}

/* The number of the field that holds elements of a dtype one by one. */
static uint64_t elements_field(TgDType d) {
  switch (d) {
  case TG_F32: return 4;
  case TG_F64: return 10;
  case TG_I64: return 7;
  case TG_U32:
  case TG_U64: return 11;
  default: return 5;
  }
}

/* Unpacks packed integers into a copy with a byte for each. In int32_data each number is a byte of packed
 * integers. */
static const void *unpacked(TgOnnx *m, Wire w, TensorHead *h, const OnnxNarrow *narrow) {
  uint64_t per = 8 / (uint64_t)narrow->bits, nbytes = (h->nelem + per - 1) / per;
  if (h->external && !external_found(m, h, nbytes)) return NULL;
  size_t n = h->raw_n;
  if (!h->raw && !wire_numbers(w, 5, 0, NULL, NULL, &n)) return NULL;
  if (n != nbytes) {
    io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: %zu bytes for a shape and data type of %llu", h->name, n,
            (unsigned long long)nbytes);
    return NULL;
  }
  uint8_t *copy = doc_alloc(m->doc, h->nelem + 8), *told = h->raw ? NULL : doc_alloc(m->doc, n + 8);
  if (!copy || (!h->raw && (!told || !wire_numbers(w, 5, 0, put_1, told, &n)))) return NULL;
  const uint8_t *from = h->raw ? h->file->p + h->raw_at : told;
  unsigned mask = (1u << narrow->bits) - 1, sign = narrow->lo < 0 ? 1u << (narrow->bits - 1) : 0;
  for (uint64_t i = 0; i < h->nelem; i++) {
    unsigned v = from[i / per] >> (unsigned)(i % per) * (unsigned)narrow->bits & mask;
    copy[i] = (uint8_t)((v ^ sign) - sign);
  }
  h->raw = false; /* the elements are in memory of their own now */
  return copy;
}

/* The elements: in the file, or a copy of those that are listed one by one. NULL: an error. */
static const void *elements(TgOnnx *m, Wire w, TensorHead *h) {
  uint64_t size = tg_dtype_size(h->dtype);
  const OnnxNarrow *narrow = onnx_narrow(h->type);
  if (narrow) return unpacked(m, w, h, narrow);
  if (h->external && !external_found(m, h, h->nelem * size)) return NULL;
  if (h->raw) {
    if (h->raw_n == h->nelem * size) return h->file->p + h->raw_at;
    io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: %llu bytes for a shape and data type of %llu", h->name,
            (unsigned long long)h->raw_n, (unsigned long long)(h->nelem * size));
    return NULL;
  }
  uint64_t field = elements_field(h->dtype);
  int wide = field == 4 ? 4 : field == 10 ? 8 : 0;
  size_t n = 0;
  if (!wire_numbers(w, field, wide, NULL, NULL, &n)) return NULL;
  if (n != h->nelem) {
    io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: %zu elements for a shape of %llu", h->name, n,
            (unsigned long long)h->nelem);
    return NULL;
  }
  void *copy = doc_alloc(m->doc, n * size + 8);
  void (*put)(void *, size_t, uint64_t) = size == 8   ? wire_put_i64
                                          : size == 4 ? put_4
                                          : size == 2 ? put_2
                                                      : put_1;
  return copy && wire_numbers(w, field, wide, put, copy, &n) ? copy : NULL;
}

/* A small tensor is also put on the host, because its values determine shapes there. */
OnnxTensor *onnx_tensor_parse(TgOnnx *m, uint64_t at, uint64_t nbytes) {
  OnnxTensor *t = doc_alloc(m->doc, sizeof *t);
  TensorHead h;
  const void *data;
  if (!t || !head_read(m, wire_of(&m->s, at, nbytes), &h)) return NULL;
  t->name = h.name;
  t->narrow = onnx_narrow(h.type) ? (int)h.type : 0;
  if (!head_shape(m, wire_of(&m->s, at, nbytes), &h)) return NULL;
  if (!(data = elements(m, wire_of(&m->s, at, nbytes), &h))) return NULL;

  bool small = h.nelem && h.nelem <= (tg_dtype_is_float(h.dtype) ? 16 : HOST_MAX);
  if (small && m->host && !(t->host = tg_keep(tg_from(m->host, data, h.dtype, h.ndim, h.dims))))
    return ctx_fail(m->ctx, tg_error(m->host), "%s", tg_errmsg(m->host)), NULL;
  if (!h.nelem)
    t->main = tg_zeros(m->ctx, h.ndim, h.dims, .dtype = h.dtype);
  else if (t->host && h.nelem == 1)
    t->main = single(m->ctx, t->host);
  else if (h.raw && !small && h.raw_at % tg_dtype_size(h.dtype) == 0)
    t->main = source_view(h.file, h.raw_at, h.dtype, h.ndim, h.dims);
  else /* the address is not aligned for the elements: one copy now is better than shifts in every kernel */
    t->main = tg_from(m->ctx, data, h.dtype, h.ndim, h.dims);
  if (!tg_keep(t->main)) return NULL;
  t->next = m->tensors;
  m->tensors = t;
  return t;
}
