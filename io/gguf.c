/* gguf.c: gguf files, versions 2 and 3. In: the file's bytes. Out: a map of key-values, a map of tensors
 * and a map of their places. Every count is checked against the bytes that are left before memory is
 * reserved for it, and the whole header is checked before a tensor is made. */
#include "io_private.h"
#include "ggml_types.h"
#include <stdio.h>

enum {
  V_U8,
  V_I8,
  V_U16,
  V_I16,
  V_U32,
  V_I32,
  V_F32,
  V_BOOL,
  V_STRING,
  V_ARRAY,
  V_U64,
  V_I64,
  V_F64,
  V_TYPES
};

static const struct {
  int size;
  TgDType d;
} kinds[V_TYPES] = {{1, TG_U8},   {1, TG_I8}, {2, TG_U16}, {2, TG_I16}, {4, TG_U32}, {4, TG_I32}, {4, TG_F32},
                    {1, TG_BOOL}, {0, 0},     {0, 0},      {8, TG_U64}, {8, TG_I64}, {8, TG_F64}};

typedef struct Reader {
  const Source *s;
  Doc *d;
  uint64_t at;
} Reader;

typedef struct Info {
  const char *name;
  size_t len;
  const GgmlType *type;
  int n;
  int64_t dims[4], nelem;
  uint64_t offset, nbytes;
} Info;

static bool bad(const Reader *r, const char *what) {
  return io_fail(r->s, TG_ERR_VALUE, "%s, at byte %llu", what, (unsigned long long)r->at);
}

static const uint8_t *take(Reader *r, uint64_t n) {
  if (!inside(r->at, n, r->s->n)) {
    bad(r, "the file is cut off");
    return NULL;
  }
  r->at += n;
  return r->s->p + r->at - n;
}

static bool take_u32(Reader *r, uint32_t *v) {
  const uint8_t *p = take(r, 4);
  if (p) *v = le32(p);
  return p != NULL;
}

static bool take_u64(Reader *r, uint64_t *v) {
  const uint8_t *p = take(r, 8);
  if (p) *v = le64(p);
  return p != NULL;
}

static bool take_text(Reader *r, const char **s, uint64_t *n, uint64_t most) {
  if (!take_u64(r, n)) return false;
  if (*n > most) return bad(r, "a text is too long");
  return (*s = (const char *)take(r, *n)) != NULL;
}

static bool number_of(Reader *r, uint32_t type, TgValue *v) {
  const uint8_t *p = take(r, (uint64_t)kinds[type].size);
  float f;
  double d;
  if (!p) return false;
  *v = (TgValue){.kind = TG_KIND_INT};
  switch (type) {
  case V_U8: v->u.i = p[0]; break;
  case V_I8: v->u.i = (int8_t)p[0]; break;
  case V_U16: v->u.i = le16(p); break;
  case V_I16: v->u.i = (int16_t)le16(p); break;
  case V_U32: v->u.i = le32(p); break;
  case V_I32: v->u.i = (int32_t)le32(p); break;
  case V_U64:
  case V_I64: v->u.i = (int64_t)le64(p); break;
  case V_BOOL:
    if (p[0] > 1) return bad(r, "a bool that is neither 0 nor 1");
    *v = (TgValue){.kind = TG_KIND_BOOL, .u.i = p[0]};
    break;
  case V_F32:
    memcpy(&f, &(uint32_t){le32(p)}, 4);
    *v = (TgValue){.kind = TG_KIND_FLOAT, .u.f = (double)f};
    break;
  default:
    memcpy(&d, &(uint64_t){le64(p)}, 8);
    *v = (TgValue){.kind = TG_KIND_FLOAT, .u.f = d};
    break;
  }
  return true;
}

static bool value_of(Reader *r, uint32_t type, TgValue *v) {
  const char *s;
  uint64_t n, count;
  uint32_t of;
  if (type >= V_TYPES) return bad(r, "an unknown type of value");
  if (type == V_STRING) return take_text(r, &s, &n, 1 << 30) && doc_string(r->d, v, s, n);
  if (type != V_ARRAY) return number_of(r, type, v);
  if (!take_u32(r, &of) || !take_u64(r, &count)) return false;
  if (of >= V_TYPES || of == V_ARRAY)
    return bad(r, of == V_ARRAY ? "an array of arrays" : "an unknown type of value");
  if (count > (r->s->n - r->at) / (of == V_STRING ? 8 : (uint64_t)kinds[of].size))
    return bad(r, "an array is longer than the file");
  if (of == V_STRING) {
    if (!doc_items(r->d, v, TG_KIND_LIST, count)) return false;
    for (uint64_t i = 0; i < count; i++)
      if (!take_text(r, &s, &n, 1 << 30) || !doc_string(r->d, &v->u.at[i], s, n)) return false;
    return true;
  }
  uint64_t at = r->at;
  for (uint64_t i = 0; of == V_BOOL && i < count; i++)
    if (r->s->p[at + i] > 1) return bad(r, "a bool that is neither 0 nor 1");
  r->at += count * (uint64_t)kinds[of].size;
  return doc_tensor(r->d, v, source_view(r->s, at, kinds[of].d, 1, &(int64_t){(int64_t)count}));
}

/* Offsets must follow each other, so that no two tensors share bytes and no bytes are skipped. */
static bool info_of(Reader *r, Info *t, uint64_t *expect, uint64_t alignment) {
  uint64_t n, k, bytes_;
  uint32_t rank, type;
  if (!take_text(r, &t->name, &n, 63) || !take_u32(r, &rank)) return false;
  if (!n || memchr(t->name, 0, n)) return bad(r, "a tensor without a proper name");
  if (rank > 4) return bad(r, "a tensor of more than 4 axes");
  t->len = n;
  t->n = (int)rank;
  t->nelem = 1;
  for (uint32_t i = 0; i < rank; i++) { /* the file has the innermost size first */
    if (!take_u64(r, &k)) return false;
    if (!k || k > INT64_MAX) return bad(r, "a size that cannot be");
    t->dims[rank - 1 - i] = (int64_t)k;
    if (__builtin_mul_overflow(t->nelem, (int64_t)k, &t->nelem)) return bad(r, "too many elements");
  }
  if (!take_u32(r, &type) || !take_u64(r, &t->offset)) return false;
  if (!(t->type = ggml_type((int)type)))
    return io_fail(r->s, TG_ERR_VALUE, "%.*s: type %u is not known here", (int)n, t->name, type);
  if ((rank ? t->dims[rank - 1] : 1) % t->type->block)
    return io_fail(r->s, TG_ERR_VALUE, "%.*s: a row is no whole number of blocks of %s", (int)n, t->name,
                   t->type->name);
  if (__builtin_mul_overflow((uint64_t)(t->nelem / t->type->block), (uint64_t)t->type->nbytes, &bytes_) ||
      bytes_ > r->s->n)
    return bad(r, "a tensor is longer than the file");
  t->nbytes = bytes_;
  if (t->offset != *expect)
    return io_fail(r->s, TG_ERR_VALUE, "%.*s is at %llu, where %llu is next", (int)n, t->name,
                   (unsigned long long)t->offset, (unsigned long long)*expect);
  uint64_t end = *expect + bytes_;
  *expect = (end + alignment - 1) & ~(alignment - 1);
  return *expect >= end || bad(r, "the data is too long");
}

/* Reads magic, version and counts, and makes maps with that many entries. */
static bool header_read(Reader *r, uint64_t *kv, uint64_t *tensors) {
  const Source *s = r->s;
  TgValue *root = &r->d->root;
  uint32_t version;
  const uint8_t *magic = s->n >= 4 ? take(r, 4) : NULL;
  if (!magic || memcmp(magic, "GGUF", 4)) return io_fail(s, TG_ERR_VALUE, "no gguf file");
  if (!take_u32(r, &version)) return false;
  if (version != 2 && version != 3)
    return io_fail(s, TG_ERR_VALUE,
                   version & 0xffff ? "version %u is not read here" : "a big-endian file, version 0x%08x",
                   version);
  if (!take_u64(r, tensors) || !take_u64(r, kv)) return false;
  /* 13 and 24: an entry takes at least this many bytes */
  if (*kv > (s->n - r->at) / 13 || *tensors > (s->n - r->at) / 24)
    return bad(r, "more entries than the file has room for");
  return doc_items(r->d, root, TG_KIND_MAP, 3) && doc_string(r->d, &root->u.at[0], "kv", 2) &&
         doc_items(r->d, &root->u.at[1], TG_KIND_MAP, *kv) &&
         doc_string(r->d, &root->u.at[2], "tensors", 7) &&
         doc_items(r->d, &root->u.at[3], TG_KIND_MAP, *tensors) &&
         doc_string(r->d, &root->u.at[4], "places", 6) &&
         doc_items(r->d, &root->u.at[5], TG_KIND_MAP, *tensors);
}

/* Reads key-value pair i into k[0] and k[1]. */
static bool pair_read(Reader *r, uint64_t i, TgValue *k, Index *names, uint64_t *alignment) {
  const char *key = NULL;
  uint32_t type;
  uint64_t n;
  bool there = false;
  if (!take_text(r, &key, &n, 65535)) return false;
  if (!n || memchr(key, 0, n)) return bad(r, "a key that is empty or has a 0 byte");
  if (!index_put(r->d->ctx, names, key, n, i, &there)) return false;
  if (there) return io_fail(r->s, TG_ERR_VALUE, "key %.*s is there twice", (int)(n > 200 ? 200 : n), key);
  if (!doc_string(r->d, k, key, n) || !take_u32(r, &type) || !value_of(r, type, k + 1)) return false;
  if (n != 17 || memcmp(key, "general.alignment", 17)) return true;
  *alignment = (uint64_t)tg_value_int(k + 1);
  return (type == V_U32 && *alignment && !(*alignment & (*alignment - 1))) ||
         bad(r, "general.alignment is no u32 that is a power of two");
}

static bool infos_read(Reader *r, Info *info, uint64_t tensors, uint64_t alignment, Index *names) {
  uint64_t expect = 0;
  for (uint64_t i = 0; i < tensors; i++) {
    bool there = false;
    if (!info_of(r, &info[i], &expect, alignment) ||
        !index_put(r->d->ctx, names, info[i].name, info[i].len, i, &there))
      return false;
    if (there)
      return io_fail(r->s, TG_ERR_VALUE, "tensor %.*s is there twice", (int)info[i].len, info[i].name);
  }
  return true;
}

/* Writes a tensor's name to k[0] and the tensor to k[1]. A type without values has only its name. */
static bool tensor_made(Reader *r, const Info *t, uint64_t data, TgValue *k) {
  const Source *s = r->s;
  if (data < r->at || !inside(data, t->offset, s->n) || !inside(data + t->offset, t->nbytes, s->n))
    return io_fail(s, TG_ERR_VALUE, "%.*s ends behind the file", (int)t->len, t->name);
  TgTensor *b = source_view(s, data + t->offset, TG_U8, 1, &(int64_t){(int64_t)t->nbytes});
  if (!doc_string(r->d, k, t->name, t->len)) return false;
  if (t->type->dtype == NO_VALUES) {
    k[1].kind = TG_KIND_OTHER;
    return true;
  }
  return doc_tensor(r->d, k + 1, tg_reshape(tg_ggml_data_to_tensor(b, t->nelem, t->type->id), t->n, t->dims));
}

/* Writes a tensor's name and the place of its bytes in the file: {type, offset, nbytes}. */
static bool place_made(Reader *r, const Info *t, uint64_t data, TgValue *k) {
  const uint64_t numbers[] = {(uint64_t)t->type->id, data + t->offset, t->nbytes};
  if (!doc_string(r->d, k, t->name, t->len) || !doc_items(r->d, k + 1, TG_KIND_LIST, 3)) return false;
  for (int i = 0; i < 3; i++)
    k[1].u.at[i] = (TgValue){.kind = TG_KIND_INT, .u.i = (int64_t)numbers[i]};
  return true;
}

static bool read_all(Reader *r, Info **info) {
  uint64_t tensors, kv, alignment = 32;
  Index names = {0};
  TgValue *root = &r->d->root;
  if (!header_read(r, &kv, &tensors)) return false;
  bool ok = true;
  for (uint64_t i = 0; i < kv && ok; i++)
    ok = pair_read(r, i, &root->u.at[1].u.at[2 * i], &names, &alignment);
  index_free(r->d->ctx, &names);
  if (ok) ok = (*info = tg_alloc(r->d->ctx, (size_t)(tensors + 1) * sizeof **info)) != NULL;
  if (ok) ok = infos_read(r, *info, tensors, alignment, &names);
  index_free(r->d->ctx, &names);
  uint64_t data = (r->at + alignment - 1) & ~(alignment - 1);
  for (uint64_t i = 0; i < tensors && ok; i++)
    ok = tensor_made(r, &(*info)[i], data, &root->u.at[3].u.at[2 * i]) &&
         place_made(r, &(*info)[i], data, &root->u.at[5].u.at[2 * i]);
  return ok;
}

static TgValue *load(TgTensor *file, const char *path) {
  Source s;
  Info *info = NULL;
  bool ok = source_open(&s, file, "gguf", path);
  Doc *d = ok ? doc_new(s.ctx) : NULL;
  ok = d && !tg_scope_begin(s.ctx);
  if (ok) {
    ok = read_all(&(Reader){&s, d, 0}, &info);
    tg_scope_end(s.ctx);
  }
  tg_free(s.ctx, info);
  source_close(&s);
  if (!ok) doc_free(d);
  return ok ? &d->root : NULL;
}

/* ---- split models: <stem>-00001-of-0000n.gguf and so on. The names are derived from the path that was
 * given; no file says where to look. */
enum { TAIL = 20 }; /* length of the end of a path: "-00001-of-00003.gguf" */

static const char *tail_of(char tail[32], int64_t i, int64_t n) {
  return snprintf(tail, 32, "-%05d-of-%05d.gguf", (int)i, (int)n), tail;
}

static bool part_is(TgContext *ctx, const TgValue *v, const char *path, int64_t i, int64_t n) {
  const TgValue *kv = tg_value_get(v, "kv");
  int64_t no = tg_value_int(tg_value_get(kv, "split.no"));
  int64_t count = tg_value_int(tg_value_get(kv, "split.count"));
  return (no == i && count == n) ||
         ctx_fail(ctx, TG_ERR_VALUE, "gguf: %.600s: part %lld of %lld, where %lld of %lld is expected", path,
                  (long long)no + 1, (long long)count, (long long)i + 1, (long long)n);
}

/* Puts the tensors of all parts into the map of the first. */
static bool joined(TgContext *ctx, Doc *first, int64_t n) {
  size_t total = 0, at = 0;
  Index names = {0};
  bool ok = true, there = false;
  TgValue all;
  for (Doc *d = first; d; d = d->more)
    total += tg_value_count(tg_value_get(&d->root, "tensors"));
  ok = doc_items(first, &all, TG_KIND_MAP, total);
  /* the list has the last part directly after the first */
  Doc **parts = ok ? tg_alloc(ctx, (size_t)n * sizeof *parts) : NULL;
  ok = parts != NULL;
  int64_t k = n;
  if (ok) parts[0] = first;
  for (Doc *d = ok ? first->more : NULL; d; d = d->more)
    parts[--k] = d;
  for (int64_t i = 0; i < n && ok; i++) {
    const TgValue *t = tg_value_get(&parts[i]->root, "tensors");
    for (size_t j = 0; j < tg_value_count(t) && ok; j++, at += 2) {
      size_t len;
      const char *name = tg_value_string(tg_value_key(t, j), &len);
      all.u.at[at] = *tg_value_key(t, j);
      all.u.at[at + 1] = *tg_value_at(t, j);
      ok = index_put(ctx, &names, name, len, at, &there);
      if (ok && there) ok = ctx_fail(ctx, TG_ERR_VALUE, "gguf: tensor %.63s is in two parts", name);
    }
  }
  if (ok) first->root.u.at[3] = all;
  index_free(ctx, &names);
  tg_free(ctx, parts);
  return ok;
}

static bool parts_load(TgContext *ctx, const char *path, Doc *first) {
  int64_t n = tg_value_int(tg_value_get(tg_value_get(&first->root, "kv"), "split.count"));
  size_t len = strlen(path);
  char name[4200], tail[32];
  if (n <= 1) return true;
  if (n > 99999 || len < TAIL || len >= sizeof name || strcmp(path + len - TAIL, tail_of(tail, 1, n)))
    return ctx_fail(ctx, TG_ERR_VALUE, "gguf: %.600s: one of %lld parts, and not named as the first of them",
                    path, (long long)n);
  bool ok = part_is(ctx, &first->root, path, 0, n);
  memcpy(name, path, len + 1);
  for (int64_t i = 1; i < n && ok; i++) {
    memcpy(name + len - TAIL, tail_of(tail, i + 1, n), TAIL);
    Doc *d = (Doc *)load(file_tensor(ctx, name), name);
    if (!d) return false;
    d->more = first->more;
    first->more = d;
    ok = part_is(ctx, &d->root, name, i, n);
  }
  return ok && joined(ctx, first, n);
}

TgValue *tg_gguf_load(TgTensor *file) { return load(file, NULL); }

TgValue *tg_gguf_load_file(TgContext *ctx, const char *path) {
  if (tg_scope_begin(ctx)) return NULL;
  TgValue *v = load(file_tensor(ctx, path), path);
  if (v && !parts_load(ctx, path, (Doc *)v)) {
    tg_value_free(v);
    v = NULL;
  }
  tg_scope_end(ctx);
  return v;
}
