/* onnx_proto.c: the bytes of an ONNX model -> graphs, nodes and tensors. A protobuf reader: fields by number,
 * lengths checked against what encloses them. A message is walked twice or more: first to count what repeats,
 * then to read it. Nodes stand in order, so a name that is not there yet is an error and no cycle gets in. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "onnx_private.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the wire */
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

static bool varint(Wire *w, uint64_t *v) {
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

/* false at the end, and after an error (w->bad). */
static bool next(Wire *w, Field *f) {
  uint64_t key;
  if (w->bad || w->at >= w->end || !varint(w, &key)) return false;
  *f = (Field){.number = key >> 3, .type = (int)(key & 7)};
  uint64_t left = w->end - w->at;
  switch (f->type) {
  case 0: return varint(w, &f->v);
  case 1:
    if (left >= 8) return f->v = le64(w->s->p + w->at), w->at += 8, true;
    break;
  case 5:
    if (left >= 4) return f->v = le32(w->s->p + w->at), w->at += 4, true;
    break;
  case 2:
    if (!varint(w, &f->n)) return false;
    f->at = w->at;
    if (f->n <= w->end - w->at) return w->at += f->n, true;
    break;
  default: break;
  }
  w->bad = true;
  return io_fail(w->s, TG_ERR_VALUE, "field %llu, wire type %d, at byte %llu does not fit",
                 (unsigned long long)f->number, f->type, (unsigned long long)w->at);
}

static Wire wire(const Source *s, uint64_t at, uint64_t n) { return (Wire){s, at, at + n, false}; }

static Wire within(const Source *s, const Field *f) { return wire(s, f->at, f->n); }

static bool want(Wire *w, const Field *f, int type, const char *what) {
  if (f->type == type) return true;
  w->bad = true;
  return io_fail(w->s, TG_ERR_VALUE, "%s: field %llu has wire type %d", what, (unsigned long long)f->number,
                 f->type);
}

/* How often a field is there. A bad wire is reported. */
static bool count(Wire w, uint64_t number, size_t *n) {
  Field f;
  *n = 0;
  while (next(&w, &f))
    *n += f.number == number;
  return !w.bad;
}

static const char *text(TgOnnx *m, const Field *f) {
  char *s = doc_alloc(m->doc, f->n + 1);
  if (s) memcpy(s, m->s.p + f->at, f->n);
  return s;
}

/* Numbers of a repeated field, packed or not, 0 <= size of an element: 8 or 4 bytes fixed, 0 varints. How
 * many: with put NULL; else they are given to put. */
typedef void (*Put)(void *to, size_t i, uint64_t v);

static bool numbers(Wire w, uint64_t number, int size, Put put, void *to, size_t *n) {
  Field f;
  *n = 0;
  int plain = size == 8 ? 1 : size == 4 ? 5 : 0;
  while (next(&w, &f)) {
    if (f.number != number) continue;
    if (f.type == plain) {
      if (put) put(to, *n, f.v);
      ++*n;
    } else if (f.type == 2) {
      Wire p = within(w.s, &f);
      if (size && f.n % (uint64_t)size)
        return io_fail(w.s, TG_ERR_VALUE, "field %llu holds no whole number of elements",
                       (unsigned long long)number);
      while (p.at < p.end) {
        uint64_t v;
        if (size)
          v = size == 8 ? le64(w.s->p + p.at) : le32(w.s->p + p.at), p.at += (uint64_t)size;
        else if (!varint(&p, &v))
          return false;
        if (put) put(to, *n, v);
        ++*n;
      }
    } else
      return want(&w, &f, plain, "repeated numbers");
  }
  return !w.bad;
}

static void put_i64(void *to, size_t i, uint64_t v) { ((int64_t *)to)[i] = (int64_t)v; }

static void put_4(void *to, size_t i, uint64_t v) {
  uint32_t x = (uint32_t)v;
  memcpy((char *)to + i * 4, &x, 4);
}

static void put_2(void *to, size_t i, uint64_t v) {
  uint16_t x = (uint16_t)v;
  memcpy((char *)to + i * 2, &x, 2);
}

static void put_1(void *to, size_t i, uint64_t v) { ((uint8_t *)to)[i] = (uint8_t)v; }

static double bits_f32(uint64_t v) {
  uint32_t u = (uint32_t)v;
  float x;
  return memcpy(&x, &u, 4), (double)x;
}

static void put_f32(void *to, size_t i, uint64_t v) { ((double *)to)[i] = bits_f32(v); }

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

/* one number as a constant, so that kernels have it built in */
static TgTensor *single(TgContext *ctx, TgTensor *host) {
  TgDType d = tg_dtype(host);
  if (tg_dtype_is_float(d)) return tg_full(ctx, tg_ndim(host), tg_shape(host), tg_item_f64(host), .dtype = d);
  return tg_full_i64(ctx, tg_ndim(host), tg_shape(host), tg_item_i64(host), d);
}

/* A TensorProto as it is told, before its elements are made. */
typedef struct TensorHead {
  const char *name;
  int64_t type;
  bool raw; /* its elements are bytes of `file` */
  const Source *file;
  uint64_t raw_at, raw_n;
  bool external, has_length;
  const char *location; /* where external: a path beside the model */
  TgDType dtype;
  int ndim;
  int64_t dims[TG_MAX_RANK];
  uint64_t nelem;
} TensorHead;

/* ---- data in files beside the model: location, a path from the model's folder, offset and length as decimal
 * text. The checksum that may stand with them is not looked at. */
static bool decimal(const char *s, uint64_t *v) {
  for (*v = 0; *s >= '0' && *s <= '9'; s++)
    if (__builtin_mul_overflow(*v, 10u, v) || __builtin_add_overflow(*v, (unsigned)(*s - '0'), v))
      return false;
  return !*s;
}

/* One pair of external_data. Keys that are not known mean nothing here. */
static bool entry_read(TgOnnx *m, Wire w, TensorHead *h) {
  Field f;
  const char *key = "", *value = "";
  while (next(&w, &f)) {
    if (f.number == 1 && (!want(&w, &f, 2, "external data") || !(key = text(m, &f)))) return false;
    if (f.number == 2 && (!want(&w, &f, 2, "external data") || !(value = text(m, &f)))) return false;
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

/* The path may not lead out of the model's folder: not by its text, and not by links. */
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
  if (!realpath(folder, real_folder) || !realpath(path, real_path)) return true; /* opening it tells why */
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
  b->name = h->location, b->path = strcpy(kept, path);
  if (!source_open(&b->s, file_tensor(m->ctx, kept), "onnx", kept)) return NULL;
  b->next = m->beside, m->beside = b;
  return &b->s;
}

/* The file that holds the elements, opened once; and that they lie in it. */
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
  h->raw = true, h->raw_n = nbytes;
  return inside(h->raw_at, nbytes, h->file->n) ||
         io_fail(&m->s, TG_ERR_VALUE,
                 "tensor %.100s: external data: bytes %llu to %llu of '%.100s', which has %llu", h->name,
                 (unsigned long long)h->raw_at, (unsigned long long)(h->raw_at + nbytes), h->location,
                 (unsigned long long)h->file->n);
}

static bool head_read(TgOnnx *m, Wire w, TensorHead *h) {
  Field f;
  *h = (TensorHead){.name = "", .nelem = 1, .file = &m->s};
  while (next(&w, &f))
    switch (f.number) {
    case 2:
      if (want(&w, &f, 0, "tensor")) h->type = (int64_t)f.v;
      break;
    case 8:
      if (want(&w, &f, 2, "tensor") && !(h->name = text(m, &f))) return false;
      break;
    case 9:
      if (want(&w, &f, 2, "tensor")) h->raw = true, h->raw_at = f.at, h->raw_n = f.n;
      break;
    case 13:
      if (want(&w, &f, 2, "tensor") && !entry_read(m, within(&m->s, &f), h)) return false;
      break;
    case 14:
      if (!want(&w, &f, 0, "tensor")) break;
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
  if (!numbers(w, 1, 0, NULL, NULL, &ndim)) return false;
  if (ndim > TG_MAX_RANK)
    return io_fail(&m->s, TG_ERR_SHAPE, "tensor %.200s: %zu axes, at most %d", h->name, ndim, TG_MAX_RANK);
  if (!numbers(w, 1, 0, put_i64, h->dims, &ndim)) return false;
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

/* The field that holds elements of a dtype one by one. */
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

/* Packed integers, a byte each in a copy. In int32_data a number stands for each byte of them. */
static const void *unpacked(TgOnnx *m, Wire w, TensorHead *h, const OnnxNarrow *narrow) {
  uint64_t per = 8 / (uint64_t)narrow->bits, nbytes = (h->nelem + per - 1) / per;
  if (h->external && !external_found(m, h, nbytes)) return NULL;
  size_t n = h->raw_n;
  if (!h->raw && !numbers(w, 5, 0, NULL, NULL, &n)) return NULL;
  if (n != nbytes) {
    io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: %zu bytes for a shape and data type of %llu", h->name, n,
            (unsigned long long)nbytes);
    return NULL;
  }
  uint8_t *copy = doc_alloc(m->doc, h->nelem + 8), *told = h->raw ? NULL : doc_alloc(m->doc, n + 8);
  if (!copy || (!h->raw && (!told || !numbers(w, 5, 0, put_1, told, &n)))) return NULL;
  const uint8_t *from = h->raw ? h->file->p + h->raw_at : told;
  unsigned mask = (1u << narrow->bits) - 1, sign = narrow->lo < 0 ? 1u << (narrow->bits - 1) : 0;
  for (uint64_t i = 0; i < h->nelem; i++) {
    unsigned v = from[i / per] >> (unsigned)(i % per) * (unsigned)narrow->bits & mask;
    copy[i] = (uint8_t)((v ^ sign) - sign);
  }
  h->raw = false; /* it is in memory of its own */
  return copy;
}

/* Where the elements are: in the file, or in a copy of those that are told one by one. NULL: an error. */
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
  if (!numbers(w, field, wide, NULL, NULL, &n)) return NULL;
  if (n != h->nelem) {
    io_fail(&m->s, TG_ERR_VALUE, "tensor %.200s: %zu elements for a shape of %llu", h->name, n,
            (unsigned long long)h->nelem);
    return NULL;
  }
  void *copy = doc_alloc(m->doc, n * size + 8);
  void (*put)(void *, size_t, uint64_t) = size == 8 ? put_i64 : size == 4 ? put_4 : size == 2 ? put_2 : put_1;
  return copy && numbers(w, field, wide, put, copy, &n) ? copy : NULL;
}

/* A small tensor is on the host besides: its values decide shapes there. */
OnnxTensor *onnx_tensor_parse(TgOnnx *m, uint64_t at, uint64_t nbytes) {
  OnnxTensor *t = doc_alloc(m->doc, sizeof *t);
  TensorHead h;
  const void *data;
  if (!t || !head_read(m, wire(&m->s, at, nbytes), &h)) return NULL;
  t->name = h.name, t->narrow = onnx_narrow(h.type) ? (int)h.type : 0;
  if (!head_shape(m, wire(&m->s, at, nbytes), &h)) return NULL;
  if (!(data = elements(m, wire(&m->s, at, nbytes), &h))) return NULL;

  bool small = h.nelem && h.nelem <= (tg_dtype_is_float(h.dtype) ? 16 : HOST_MAX);
  if (small && m->host && !(t->host = tg_keep(tg_from(m->host, data, h.dtype, h.ndim, h.dims))))
    return ctx_fail(m->ctx, tg_error(m->host), "%s", tg_errmsg(m->host)), NULL;
  if (!h.nelem)
    t->main = tg_zeros(m->ctx, h.ndim, h.dims, .dtype = h.dtype);
  else if (t->host && h.nelem == 1)
    t->main = single(m->ctx, t->host);
  else if (h.raw && !small && h.raw_at % tg_dtype_size(h.dtype) == 0)
    t->main = source_view(h.file, h.raw_at, h.dtype, h.ndim, h.dims);
  else /* an address unfit for the elements: one copy now, not shifts in every kernel */
    t->main = tg_from(m->ctx, data, h.dtype, h.ndim, h.dims);
  if (!tg_keep(t->main)) return NULL;
  t->next = m->tensors, m->tensors = t;
  return t;
}

/* ---- graphs */
static OnnxGraph *graph_parse(TgOnnx *m, Wire w, OnnxGraph *parent, int depth);

static bool value_new(TgOnnx *m, OnnxGraph *g, const char *name, const char *what, size_t *value, bool *was) {
  size_t at = m->nvalues;
  bool there = false;
  if (!index_put(m->ctx, &g->names, name, strlen(name), at, &there)) return false;
  if (there && !was) return io_fail(&m->s, TG_ERR_VALUE, "%s %.200s: the name is taken", what, name);
  if (was) *was = there;
  if (there) {
    index_find(&g->names, name, strlen(name), value);
    return true;
  }
  *value = at, m->nvalues++;
  return true;
}

static bool value_find(const OnnxGraph *g, const char *name, size_t *value) {
  for (; g; g = g->parent)
    if (index_find(&g->names, name, strlen(name), value)) return true;
  return false;
}

/* The attribute `name` of the call that g is a function's body for; NULL: the call does not give it. */
static const OnnxAttr *caller_attr(const OnnxGraph *g, const char *name) {
  while (g && !g->caller)
    g = g->parent;
  for (int i = 0; g && i < g->caller->nattrs; i++)
    if (!strcmp(g->caller->attrs[i].name, name)) return &g->caller->attrs[i];
  return NULL;
}

/* Twice over the message: counted first, then filled. The type that is said outweighs the field that was met.
 */
static bool attr_parse(TgOnnx *m, Wire w0, OnnxAttr *a, OnnxGraph *g, int depth) {
  Field f;
  size_t k = 0;
  *a = (OnnxAttr){.name = ""};
  const char **strings = NULL;
  Wire w = w0;
  int said = 0;
  const char *of_caller = NULL;
  static const uint8_t kind_of[] = {
      [2] = ONNX_FLOAT, [3] = ONNX_INT,    [4] = ONNX_STRING, [5] = ONNX_TENSOR,
      [6] = ONNX_GRAPH, [7] = ONNX_FLOATS, [8] = ONNX_INTS,   [9] = ONNX_STRINGS};
  while (next(&w, &f)) {
    if (f.number < sizeof kind_of && kind_of[f.number]) a->kind = kind_of[f.number];
    switch (f.number) {
    case 1:
      if (!want(&w, &f, 2, "attribute") || !(a->name = text(m, &f))) return false;
      break;
    case 2:
      if (!want(&w, &f, 5, "attribute")) return false;
      a->f = bits_f32(f.v);
      break;
    case 3:
      if (!want(&w, &f, 0, "attribute")) return false;
      a->i = (int64_t)f.v;
      break;
    case 4:
      if (!want(&w, &f, 2, "attribute") || !(a->s = text(m, &f))) return false;
      a->s_n = f.n;
      break;
    case 5:
      if (!want(&w, &f, 2, "attribute") || !(a->t = onnx_tensor_parse(m, f.at, f.n))) return false;
      break;
    case 6:
      if (!want(&w, &f, 2, "attribute")) return false;
      if (depth >= ONNX_DEPTH)
        return io_fail(&m->s, TG_ERR_LIMIT, "graphs within graphs, more than %d deep", ONNX_DEPTH);
      if (!(a->g = graph_parse(m, within(&m->s, &f), g, depth + 1))) return false;
      break;
    case 9:
      if (!want(&w, &f, 2, "attribute")) return false;
      a->nstrings++;
      break;
    case 20:
      if (!want(&w, &f, 0, "attribute")) return false;
      said = (int)(f.v & INT32_MAX);
      break;
    case 21:
      if (!want(&w, &f, 2, "attribute") || !(of_caller = text(m, &f))) return false;
      break;
    default: break;
    }
  }
  if (said) a->kind = said;
  if (of_caller && *of_caller && !w.bad) {
    const OnnxAttr *given = caller_attr(g, of_caller);
    const char *name = a->name;
    *a = given ? *given : (OnnxAttr){.name = NULL}; /* not given: the node has no such attribute */
    if (given) a->name = name;
    return true;
  }
  if (w.bad || !numbers(w0, 8, 0, NULL, NULL, &a->nints) || !numbers(w0, 7, 4, NULL, NULL, &a->nfloats))
    return false;
  int64_t *ints = doc_alloc(m->doc, (a->nints + 1) * sizeof *ints);
  double *floats = doc_alloc(m->doc, (a->nfloats + 1) * sizeof *floats);
  if (!ints || !floats || !(strings = doc_alloc(m->doc, (a->nstrings + 1) * sizeof *strings))) return false;
  a->ints = ints, a->floats = floats, a->strings = strings;
  for (w = w0; next(&w, &f);)
    if (f.number == 9 && !(strings[k++] = text(m, &f))) return false;
  return numbers(w0, 8, 0, put_i64, ints, &a->nints) && numbers(w0, 7, 4, put_f32, floats, &a->nfloats);
}

static bool function_called(TgOnnx *m, Wire w, OnnxNode *n, int depth);

static bool node_parse(TgOnnx *m, Wire w0, OnnxNode *n, OnnxGraph *g, int depth) {
  Field f;
  size_t nin, nout, nattrs, i = 0, o = 0, a = 0;
  *n = (OnnxNode){.name = "", .op = "", .domain = ""};
  if (!count(w0, 1, &nin) || !count(w0, 2, &nout) || !count(w0, 5, &nattrs)) return false;
  if (nin > 1 << 20 || nout > 1 << 20 || nattrs > 1 << 20)
    return io_fail(&m->s, TG_ERR_LIMIT, "a node with more than a million names");
  n->in = doc_alloc(m->doc, (nin + 1) * sizeof *n->in);
  n->out = doc_alloc(m->doc, (nout + 1) * sizeof *n->out);
  n->attrs = doc_alloc(m->doc, (nattrs + 1) * sizeof *n->attrs);
  if (!n->in || !n->out || !n->attrs) return false;
  n->nin = (int)nin, n->nout = (int)nout, n->nattrs = (int)nattrs;
  for (Wire w = w0; next(&w, &f);) {
    if (f.number == 3 && (f.type != 2 || !(n->name = text(m, &f)))) return want(&w, &f, 2, "node");
    if (f.number == 4 && (f.type != 2 || !(n->op = text(m, &f)))) return want(&w, &f, 2, "node");
    if (f.number == 7 && (f.type != 2 || !(n->domain = text(m, &f)))) return want(&w, &f, 2, "node");
  }
  if (++m->nnodes > ONNX_NODES_MAX)
    return io_fail(&m->s, TG_ERR_LIMIT, "more than %d nodes, with those of functions", ONNX_NODES_MAX);
  bool known = !*n->domain || !strcmp(n->domain, "ai.onnx") || !strcmp(n->domain, "com.microsoft");
  n->def = known ? onnx_op_find(n->op) : NULL;
  for (Wire w = w0; next(&w, &f);) {
    if ((f.number == 1 || f.number == 2 || f.number == 5) && !want(&w, &f, 2, "node")) return false;
    const char *name = f.number == 1 ? text(m, &f) : "";
    if (!name) return false;
    if (f.number == 1 && *name && !value_find(g, name, &n->in[i]))
      return io_fail(&m->s, TG_ERR_VALUE, "node %.100s (%.60s) reads %.200s, which nothing before it makes",
                     n->name, n->op, name);
    i += f.number == 1;
    if (f.number == 5 && !attr_parse(m, within(&m->s, &f), &n->attrs[a], g, depth)) return false;
    a += f.number == 5 && n->attrs[a].name;
  }
  n->nattrs = (int)a;
  if (!function_called(m, w0, n, depth)) return false;
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 2) {
      const char *name = text(m, &f);
      if (!name || (*name && !value_new(m, g, name, "output", &n->out[o], NULL))) return false;
      o++;
    }
  return true;
}

static bool dim_parse(TgOnnx *m, Wire w, OnnxIO *x) {
  Field f;
  if (x->ndim == TG_MAX_RANK)
    return io_fail(&m->s, TG_ERR_SHAPE, "%.200s: more than %d axes", x->name, TG_MAX_RANK);
  x->dims[x->ndim] = -1;
  while (next(&w, &f)) {
    if (f.number == 1 && want(&w, &f, 0, "dimension")) x->dims[x->ndim] = (int64_t)f.v;
    if (f.number == 2 && want(&w, &f, 2, "dimension") && !(x->dim_names[x->ndim] = text(m, &f))) return false;
  }
  if (x->dims[x->ndim] < 0) x->dims[x->ndim] = -1;
  x->ndim++;
  return !w.bad;
}

static void type_of(OnnxIO *x, int64_t data_type) {
  const OnnxNarrow *narrow = onnx_narrow(data_type);
  x->dtype = narrow ? narrow->as : onnx_dtype(data_type), x->narrow = narrow ? narrow->type : 0;
}

static bool io_parse(TgOnnx *m, Wire w, OnnxIO *x) {
  Field f, ff, fff;
  *x = (OnnxIO){.name = "", .ndim = -1};
  while (next(&w, &f)) {
    if (f.number == 1 && want(&w, &f, 2, "value") && !(x->name = text(m, &f))) return false;
    if (f.number != 2 || !want(&w, &f, 2, "value")) continue;
    Wire type = within(&m->s, &f);
    while (next(&type, &ff)) {
      if (ff.number != 1) continue; /* sequences, maps, optionals: of no dtype of ours */
      if (!want(&type, &ff, 2, "type")) return false;
      Wire tensor = within(&m->s, &ff);
      while (next(&tensor, &fff)) {
        if (fff.number == 1 && want(&tensor, &fff, 0, "type")) type_of(x, (int64_t)fff.v);
        if (fff.number != 2 || !want(&tensor, &fff, 2, "type")) continue;
        Wire shape = within(&m->s, &fff);
        x->ndim = 0;
        while (next(&shape, &fff))
          if (fff.number == 1 && (!want(&shape, &fff, 2, "shape") || !dim_parse(m, within(&m->s, &fff), x)))
            return false;
        if (shape.bad) return false;
      }
      if (tensor.bad) return false;
    }
    if (type.bad) return false;
  }
  return !w.bad;
}

static OnnxGraph *graph_parse(TgOnnx *m, Wire w0, OnnxGraph *parent, int depth) {
  OnnxGraph *g = doc_alloc(m->doc, sizeof *g);
  Field f;
  size_t sparse, node = 0, in = 0, out = 0, init = 0;
  bool was;
  if (!g) return NULL;
  g->parent = parent, g->next = m->graphs, m->graphs = g, g->opset = parent ? parent->opset : m->opset;
  if (!count(w0, 1, &g->nnodes) || !count(w0, 5, &g->ninit) || !count(w0, 11, &g->nin) ||
      !count(w0, 12, &g->nout) || !count(w0, 15, &sparse))
    return NULL;
  if (sparse) return io_fail(&m->s, TG_ERR_VALUE, "sparse initializers are not read here"), NULL;
  g->nodes = doc_alloc(m->doc, (g->nnodes + 1) * sizeof *g->nodes);
  g->in = doc_alloc(m->doc, (g->nin + 1) * sizeof *g->in);
  g->out = doc_alloc(m->doc, (g->nout + 1) * sizeof *g->out);
  g->init = doc_alloc(m->doc, (g->ninit + 1) * sizeof *g->init);
  g->init_value = doc_alloc(m->doc, (g->ninit + 1) * sizeof *g->init_value);
  if (!g->nodes || !g->in || !g->out || !g->init || !g->init_value) return NULL;
  for (Wire w = w0; next(&w, &f);) {
    if ((f.number == 1 || f.number == 5 || f.number == 11 || f.number == 12) && !want(&w, &f, 2, "graph"))
      return NULL;
    if (f.number != 11) continue;
    OnnxIO *x = &g->in[in++];
    if (!io_parse(m, within(&m->s, &f), x) || !value_new(m, g, x->name, "input", &x->value, NULL))
      return NULL;
  }
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 5) {
      OnnxTensor *t = g->init[init] = onnx_tensor_parse(m, f.at, f.n);
      if (!t || !value_new(m, g, t->name, "initializer", &g->init_value[init], &was)) return NULL;
      for (size_t i = 0; i < g->nin && was; i++)
        if (g->in[i].value == g->init_value[init]) {
          was = g->in[i].has_default;
          g->in[i].has_default = true;
          if (!was) goto given;
        }
      if (was) return io_fail(&m->s, TG_ERR_VALUE, "initializer %.200s: the name is taken", t->name), NULL;
    given:
      init++;
    }
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 1 && !node_parse(m, within(&m->s, &f), &g->nodes[node++], g, depth)) return NULL;
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 12) {
      OnnxIO *x = &g->out[out++];
      if (!io_parse(m, within(&m->s, &f), x)) return NULL;
      if (!value_find(g, x->name, &x->value))
        return io_fail(&m->s, TG_ERR_VALUE, "output %.200s: nothing makes it", x->name), NULL;
    }
  return g;
}

static bool opset_parse(TgOnnx *m, Wire w, int *opset) {
  Field f;
  const char *domain = "";
  uint64_t version = 0;
  while (next(&w, &f)) {
    if (f.number == 1 && want(&w, &f, 2, "opset") && !(domain = text(m, &f))) return false;
    if (f.number == 2 && want(&w, &f, 0, "opset")) version = f.v;
  }
  if (w.bad) return false;
  /* what is used of another domain is refused by its name */
  if (*domain && strcmp(domain, "ai.onnx")) return true;
  if (version < ONNX_OPSET_MIN || version > ONNX_OPSET_MAX)
    return io_fail(&m->s, TG_ERR_VALUE, "opset %llu of the domain ai.onnx is not read here: %d to %d are",
                   (unsigned long long)version, ONNX_OPSET_MIN, ONNX_OPSET_MAX);
  *opset = (int)version;
  return true;
}

/* ---- functions of the model's own */
/* A node of the main graph, or of a function, that is not known: told when the model is opened. */
static bool nodes_known(const TgOnnx *m, const OnnxGraph *g) {
  for (size_t i = 0; i < g->nnodes; i++) {
    const OnnxNode *n = &g->nodes[i];
    if (!n->body && (!n->def || n->def->since > g->opset))
      return io_fail(&m->s, TG_ERR_VALUE,
                     "node %.100s: op %.100s of the domain %.100s, opset %d, is not implemented", n->name,
                     n->op, *n->domain ? n->domain : "ai.onnx", g->opset);
  }
  return true;
}

static bool function_parse(TgOnnx *m, Wire w, OnnxFunction *fn) {
  Field f;
  *fn = (OnnxFunction){.name = "", .domain = "", .overload = "", .at = w.at, .n = w.end - w.at};
  while (next(&w, &f)) {
    const char **to = f.number == 1    ? &fn->name
                      : f.number == 10 ? &fn->domain
                      : f.number == 13 ? &fn->overload
                                       : NULL;
    if (to && (!want(&w, &f, 2, "function") || !(*to = text(m, &f)))) return false;
  }
  return !w.bad;
}

static bool functions_parse(TgOnnx *m, Wire w0) {
  Field f;
  size_t n, k = 0;
  if (!count(w0, 25, &n)) return false;
  if (!(m->functions = doc_alloc(m->doc, (n + 1) * sizeof *m->functions))) return false;
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 25 &&
        (!want(&w, &f, 2, "model") || !function_parse(m, within(&m->s, &f), &m->functions[k++])))
      return false;
  m->nfunctions = n;
  return true;
}

/* The attributes of a call, and the function's defaults for those that it leaves out. */
static bool defaults_taken(TgOnnx *m, Wire w0, OnnxNode *n) {
  Field f;
  size_t more;
  if (!count(w0, 11, &more) || !more) return tg_error(m->ctx) == TG_OK;
  if (more > ONNX_NODES_MAX) return io_fail(&m->s, TG_ERR_LIMIT, "a function of %zu attributes", more);
  OnnxAttr *all = doc_alloc(m->doc, ((size_t)n->nattrs + more + 1) * sizeof *all);
  if (!all) return false;
  if (n->nattrs) memcpy(all, n->attrs, (size_t)n->nattrs * sizeof *all);
  n->attrs = all;
  for (Wire w = w0; next(&w, &f);) {
    if (f.number != 11) continue;
    OnnxAttr *a = &all[n->nattrs];
    if (!want(&w, &f, 2, "function") || !attr_parse(m, within(&m->s, &f), a, NULL, ONNX_DEPTH)) return false;
    bool given = !a->name;
    for (int i = 0; i < n->nattrs && !given; i++)
      given = !strcmp(all[i].name, a->name);
    n->nattrs += !given;
  }
  return true;
}

/* The names of a function's inputs or outputs as values of its body. */
static bool names_parse(TgOnnx *m, Wire w, uint64_t number, OnnxGraph *g, OnnxIO *io, bool made) {
  Field f;
  size_t k = 0;
  while (next(&w, &f)) {
    if (f.number != number) continue;
    OnnxIO *x = &io[k++];
    *x = (OnnxIO){.name = "", .ndim = -1};
    if (!want(&w, &f, 2, "function") || !(x->name = text(m, &f))) return false;
    if (made ? !value_find(g, x->name, &x->value) : !value_new(m, g, x->name, "input", &x->value, NULL))
      return io_fail(&m->s, TG_ERR_VALUE, "output %.200s of a function: nothing makes it", x->name);
  }
  return !w.bad;
}

static OnnxGraph *body_parse(TgOnnx *m, const OnnxFunction *fn, const OnnxNode *n, int depth) {
  Wire w0 = wire(&m->s, fn->at, fn->n);
  Field f;
  size_t node = 0;
  OnnxGraph *g = doc_alloc(m->doc, sizeof *g);
  if (!g) return NULL;
  g->next = m->graphs, m->graphs = g, g->caller = n, g->opset = m->opset;
  if (!count(w0, 7, &g->nnodes) || !count(w0, 4, &g->nin) || !count(w0, 5, &g->nout)) return NULL;
  g->nodes = doc_alloc(m->doc, (g->nnodes + 1) * sizeof *g->nodes);
  g->in = doc_alloc(m->doc, (g->nin + 1) * sizeof *g->in);
  g->out = doc_alloc(m->doc, (g->nout + 1) * sizeof *g->out);
  if (!g->nodes || !g->in || !g->out || !names_parse(m, w0, 4, g, g->in, false)) return NULL;
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 9 && (!want(&w, &f, 2, "function") || !opset_parse(m, within(&m->s, &f), &g->opset)))
      return NULL;
  for (Wire w = w0; next(&w, &f);)
    if (f.number == 7 &&
        (!want(&w, &f, 2, "function") || !node_parse(m, within(&m->s, &f), &g->nodes[node++], g, depth + 1)))
      return NULL;
  return names_parse(m, w0, 5, g, g->out, true) && nodes_known(m, g) ? g : NULL;
}

/* A node that calls one of the model's functions gets its body. An operator that is known here is itself. */
static bool function_called(TgOnnx *m, Wire w, OnnxNode *n, int depth) {
  Field f;
  const char *overload = "";
  const OnnxFunction *fn = NULL;
  if (n->def || !m->nfunctions) return true;
  while (next(&w, &f))
    if (f.number == 8 && (!want(&w, &f, 2, "node") || !(overload = text(m, &f)))) return false;
  for (size_t i = 0; i < m->nfunctions && !fn; i++)
    if (!strcmp(m->functions[i].name, n->op) && !strcmp(m->functions[i].domain, n->domain) &&
        !strcmp(m->functions[i].overload, overload))
      fn = &m->functions[i];
  if (!fn) return true;
  if (depth >= ONNX_CALLS)
    return io_fail(&m->s, TG_ERR_LIMIT, "function %.100s: calls within calls, more than %d deep", n->op,
                   ONNX_CALLS);
  if (!defaults_taken(m, wire(&m->s, fn->at, fn->n), n) || !(n->body = body_parse(m, fn, n, depth)))
    return false;
  if ((size_t)n->nin <= n->body->nin && (size_t)n->nout <= n->body->nout) return true;
  return io_fail(&m->s, TG_ERR_VALUE,
                 "node %.100s: %d inputs and %d outputs, the function %.100s has %zu and %zu", n->name,
                 n->nin, n->nout, n->op, n->body->nin, n->body->nout);
}

bool onnx_parse(TgOnnx *m) {
  Wire w0 = wire(&m->s, 0, m->s.n);
  Field f, graph = {0};
  bool found = false, opsets = false;
  m->nvalues = 1; /* 0: left out */
  for (Wire w = w0; next(&w, &f);) {
    if ((f.number == 7 || f.number == 8) && !want(&w, &f, 2, "model")) return false;
    if (f.number == 8 && !opset_parse(m, within(&m->s, &f), &m->opset)) return false;
    opsets = opsets || f.number == 8;
    if (f.number == 7) graph = f, found = true;
  }
  if (tg_error(m->ctx)) return false;
  if (!found) return io_fail(&m->s, TG_ERR_VALUE, "no ONNX model: it has no graph");
  if (!opsets) return io_fail(&m->s, TG_ERR_VALUE, "no ONNX model: it names no opset");
  if (!functions_parse(m, w0)) return false;
  m->graph = graph_parse(m, within(&m->s, &graph), NULL, 0);
  return m->graph && nodes_known(m, m->graph) && !tg_error(m->ctx);
}
