/* safetensors.c: safetensors files: the u64 length of a JSON header, the header, the data. In: a file's
 * bytes, or a state dictionary. Out: views by name, or a file. The whole header is checked before a tensor
 * is made: the entries, sorted by offset, must fill the data from start to end, without a gap. */
#define _POSIX_C_SOURCE 200809L
#include "io_private.h"
#ifdef TG_HAVE_JANSSON
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_MAX = 100000000 };

static const struct {
  const char *name;
  TgDType d;
} dtypes[] = {{"BOOL", TG_BOOL}, {"I8", TG_I8},           {"U8", TG_U8},          {"I16", TG_I16},
              {"U16", TG_U16},   {"I32", TG_I32},         {"U32", TG_U32},        {"I64", TG_I64},
              {"U64", TG_U64},   {"F16", TG_F16},         {"BF16", TG_BF16},      {"F32", TG_F32},
              {"F64", TG_F64},   {"F8_E4M3", TG_FP8E4M3}, {"F8_E5M2", TG_FP8E5M2}};

enum { NDTYPES = sizeof dtypes / sizeof *dtypes };

typedef struct Entry {
  const char *name;
  TgDType d;
  int n;
  int64_t dims[TG_MAX_RANK];
  uint64_t begin, end;
} Entry;

static json_t *header_read(const Source *s, uint64_t *data) {
  json_error_t e;
  uint64_t n = s->n >= 8 ? le64(s->p) : 0;
  if (s->n < 8) {
    io_fail(s, TG_ERR_VALUE, "%llu bytes are no safetensors file", (unsigned long long)s->n);
    return NULL;
  }
  if (n < 2 || n > HEADER_MAX || !inside(8, n, s->n)) {
    io_fail(s, TG_ERR_VALUE, "a header of %llu bytes in a file of %llu", (unsigned long long)n,
            (unsigned long long)s->n);
    return NULL;
  }
  /* a copy, so that what was checked is what is used, even if the file changes */
  char *copy = tg_alloc(s->ctx, n + 1);
  if (!copy) return NULL;
  memcpy(copy, s->p + 8, n);
  json_t *j = copy[0] == '{' ? json_loadb(copy, n, JSON_REJECT_DUPLICATES, &e) : NULL;
  if (!j)
    io_fail(s, TG_ERR_VALUE, "the header is no JSON object: %s",
            copy[0] == '{' ? e.text : "it does not begin with {");
  tg_free(s->ctx, copy);
  *data = 8 + n;
  return j;
}

/* Reads the sizes of an entry, and computes the number of bytes they need. */
static bool entry_shape(const Source *s, json_t *shape, Entry *e, uint64_t *nbytes) {
  size_t i;
  json_t *v;
  if (json_array_size(shape) > TG_MAX_RANK)
    return io_fail(s, TG_ERR_SHAPE, "%.200s: %zu axes, at most %d", e->name, json_array_size(shape),
                   TG_MAX_RANK);
  uint64_t product = 1; /* product of the sizes that are not 0, so that a 0 cannot hide sizes that overflow */
  bool wraps = false, empty = false;
  json_array_foreach(shape, i, v) {
    if (!json_is_integer(v) || json_integer_value(v) < 0)
      return io_fail(s, TG_ERR_VALUE, "%.200s: a size is no whole number", e->name);
    e->dims[e->n++] = json_integer_value(v);
    empty = empty || !e->dims[i];
    wraps = wraps || (e->dims[i] && product > (uint64_t)INT64_MAX / 16 / (uint64_t)e->dims[i]);
    if (!wraps && e->dims[i]) product *= (uint64_t)e->dims[i];
  }
  if (wraps) return io_fail(s, TG_ERR_VALUE, "%.200s: too many elements", e->name);
  *nbytes = empty ? 0 : tg_dtype_size(e->d) * product;
  return true;
}

static bool entry_place(const Source *s, json_t *at, uint64_t room, uint64_t nbytes, Entry *e) {
  json_t *begin = json_array_get(at, 0), *end = json_array_get(at, 1);
  if (json_array_size(at) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
      json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
    return io_fail(s, TG_ERR_VALUE, "%.200s: data_offsets are not [begin, end]", e->name);
  e->begin = (uint64_t)json_integer_value(begin);
  e->end = (uint64_t)json_integer_value(end);
  if (e->end > room)
    return io_fail(s, TG_ERR_VALUE, "%.200s ends at %llu, the data at %llu", e->name,
                   (unsigned long long)e->end, (unsigned long long)room);
  if (e->end - e->begin != nbytes)
    return io_fail(s, TG_ERR_VALUE, "%.200s: %llu bytes for a shape and dtype of %llu", e->name,
                   (unsigned long long)(e->end - e->begin), (unsigned long long)nbytes);
  return true;
}

static bool entry_read(const Source *s, const char *name, json_t *j, uint64_t room, Entry *e) {
  *e = (Entry){.name = name};
  json_t *d = json_object_get(j, "dtype"), *shape = json_object_get(j, "shape");
  json_t *at = json_object_get(j, "data_offsets");
  uint64_t nbytes = 0;
  size_t i = 0;
  if (!json_is_string(d) || !json_is_array(shape) || !json_is_array(at) || json_object_size(j) != 3)
    return io_fail(s, TG_ERR_VALUE, "%.200s: an entry has dtype, shape and data_offsets, and no more", name);
  while (i < NDTYPES && strcmp(dtypes[i].name, json_string_value(d)))
    i++;
  if (i == NDTYPES)
    return io_fail(s, TG_ERR_DTYPE, "%.200s: dtype %.40s is not known here", name, json_string_value(d));
  e->d = dtypes[i].d;
  return entry_shape(s, shape, e, &nbytes) && entry_place(s, at, room, nbytes, e);
}

static int by_offset(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1)
         : x->end != y->end   ? (x->end < y->end ? -1 : 1)
                              : strcmp(x->name, y->name);
}

/* All entries are read and sorted before a tensor is made: they must fill the data without a gap. */
static TgState *load(TgTensor *t, const char *path) {
  Source s;
  uint64_t data = 0, at = 0;
  TgState *state = NULL;
  Entry *e = NULL;
  size_t n = 0;
  bool ok = source_open(&s, t, "safetensors", path);
  json_t *j = ok ? header_read(&s, &data) : NULL, *v;
  const char *name;
  ok = j && (e = tg_alloc(s.ctx, (json_object_size(j) + 1) * sizeof *e)) && (state = tg_state_new(s.ctx));
  if (ok) json_object_foreach(j, name, v) {
      if (strcmp(name, "__metadata__")) {
        if (!(ok = entry_read(&s, name, v, s.n - data, &e[n++]))) break;
        continue;
      }
      const char *key;
      json_t *text;
      ok = json_is_object(v) || io_fail(&s, TG_ERR_VALUE, "__metadata__ is no map");
      if (ok)
        json_object_foreach(v, key, text) ok =
            ok &&
            (json_is_string(text) || io_fail(&s, TG_ERR_VALUE, "__metadata__: %.200s is no string", key));
      if (!ok) break;
    }
  if (ok) qsort(e, n, sizeof *e, by_offset);
  for (size_t i = 0; i < n && ok; i++) {
    ok = e[i].begin == at || io_fail(&s, TG_ERR_VALUE, "%.200s begins at %llu, where %llu is next", e[i].name,
                                     (unsigned long long)e[i].begin, (unsigned long long)at);
    at = e[i].end;
  }
  if (ok)
    ok = at == s.n - data || io_fail(&s, TG_ERR_VALUE, "%llu bytes behind the last tensor",
                                     (unsigned long long)(s.n - data - at));
  if (ok) ok = tg_scope_begin(s.ctx) == TG_OK;
  bool scope = ok;
  for (size_t i = 0; i < n && ok; i++)
    ok = state_own(state, e[i].name, strlen(e[i].name),
                   source_view(&s, data + e[i].begin, e[i].d, e[i].n, e[i].dims));
  if (scope) tg_scope_end(s.ctx);
  json_decref(j);
  tg_free(s.ctx, e);
  source_close(&s);
  if (!ok) tg_state_free(state);
  return ok ? state : NULL;
}

/* ---- the header as a tree, whose depth is limited */
static bool value_of(Doc *d, TgValue *v, json_t *j, int depth) {
  size_t i = 0;
  json_t *x;
  const char *key;
  if (depth > 64)
    return ctx_fail(d->ctx, TG_ERR_LIMIT, "safetensors: the header is nested more than 64 deep");
  switch (json_typeof(j)) {
  case JSON_STRING: return doc_string(d, v, json_string_value(j), json_string_length(j));
  case JSON_INTEGER: return *v = (TgValue){.kind = TG_KIND_INT, .u.i = json_integer_value(j)}, true;
  case JSON_REAL: return *v = (TgValue){.kind = TG_KIND_FLOAT, .u.f = json_real_value(j)}, true;
  case JSON_TRUE:
  case JSON_FALSE: return *v = (TgValue){.kind = TG_KIND_BOOL, .u.i = json_is_true(j)}, true;
  case JSON_ARRAY:
    if (!doc_items(d, v, TG_KIND_LIST, json_array_size(j))) return false;
    json_array_foreach(j, i, x) if (!value_of(d, &v->u.at[i], x, depth + 1)) return false;
    return true;
  case JSON_OBJECT:
    if (!doc_items(d, v, TG_KIND_MAP, json_object_size(j))) return false;
    json_object_foreach(j, key, x) {
      if (!doc_string(d, &v->u.at[i], key, strlen(key)) || !value_of(d, &v->u.at[i + 1], x, depth + 1))
        return false;
      i += 2;
    }
    return true;
  default: return *v = (TgValue){0}, true;
  }
}

TgValue *tg_safe_load_metadata(TgTensor *file, int64_t *data_start) {
  Source s;
  uint64_t data = 0;
  bool ok = source_open(&s, file, "safetensors", NULL);
  bool index = ok && s.n > 8 && s.p[0] == '{' && le64(s.p) > HEADER_MAX;
  json_t *j = index ? safe_index_metadata(&s) : ok ? header_read(&s, &data) : NULL;
  Doc *d = j ? doc_new(s.ctx) : NULL;
  ok = d && value_of(d, &d->root, j, 0);
  json_decref(j);
  source_close(&s);
  if (!ok) {
    doc_free(d);
    return NULL;
  }
  if (data_start) *data_start = (int64_t)data;
  return &d->root;
}

/* ---- saving */
typedef struct Item {
  const char *name;
  TgTensor *t;
  size_t size;
} Item;

static int by_size_then_name(const void *a, const void *b) {
  const Item *x = a, *y = b;
  return x->size != y->size ? (x->size > y->size ? -1 : 1) : strcmp(x->name, y->name);
}

static bool add_string(json_t *o, const char *key, const char *text) {
  return json_object_set_new(o, key, json_string(text)) == 0;
}

static char *header_text(TgContext *ctx, const Item *item, size_t n, const char *const *meta) {
  json_t *j = json_object();
  uint64_t at = 0;
  bool ok = j != NULL;
  if (ok && meta && meta[0]) {
    json_t *m = json_object();
    ok = m != NULL && !json_object_set_new(j, "__metadata__", m);
    for (int i = 0; ok && meta[i]; i += 2)
      ok = meta[i + 1] ? add_string(m, meta[i], meta[i + 1])
                       : ctx_fail(ctx, TG_ERR_VALUE, "safe_save: metadata %.200s has no value", meta[i]);
    if (!ok && !tg_error(ctx)) ctx_fail(ctx, TG_ERR_VALUE, "safe_save: metadata that is not UTF-8");
  }
  for (size_t i = 0; i < n && ok; i++) {
    json_t *e = json_object(), *shape = json_array(), *offsets = json_array();
    size_t k = 0;
    while (k < NDTYPES && dtypes[k].d != tg_dtype(item[i].t))
      k++;
    ok = k < NDTYPES && add_string(e, "dtype", dtypes[k].name);
    for (int a = 0; a < tg_ndim(item[i].t); a++)
      ok = ok && !json_array_append_new(shape, json_integer(tg_shape(item[i].t)[a]));
    ok = ok && !json_array_append_new(offsets, json_integer((json_int_t)at));
    at += tg_nbytes(item[i].t);
    ok = ok && !json_array_append_new(offsets, json_integer((json_int_t)at));
    ok = !json_object_set_new(e, "shape", shape) && ok;
    ok = !json_object_set_new(e, "data_offsets", offsets) && ok;
    if (json_object_set_new(j, item[i].name, e))
      ok = ctx_fail(ctx, TG_ERR_VALUE, "safe_save: a name that is not UTF-8");
  }
  char *text = ok ? json_dumps(j, JSON_COMPACT) : NULL;
  json_decref(j);
  if (!text && !tg_error(ctx)) tg_set_error(ctx, TG_ERR_NOMEM, "safe_save: out of memory");
  return text;
}

/* The rank that writes the file reads the tensor; the other ranks send what they have of it. This happens
 * even if the file cannot be written, because all ranks must take part. */
static bool write_tensor(TgContext *ctx, NewFile *f, TgTensor *t, int rank, int *why) {
  size_t n = tg_nbytes(t);
  void *p = f->elsewhere ? NULL : tg_alloc(ctx, n + 1);
  bool ok = (p || f->elsewhere) && !tg_comm_read(t, rank, p, n);
  if (ok && !*why && !file_write(f, p, n)) *why = errno ? errno : EIO;
  tg_free(ctx, p);
  return ok;
}

/* The data begins at a multiple of 64 bytes, so that a mapped file can be used in place by computations.
 * The file is written beside the old one and renamed, so a reader of path sees either the old file or the
 * complete new one. */
TgStatus safe_file_save(const TgState *state, const char *path, const char *const *metadata, int rank) {
  size_t n = tg_state_count(state);
  TgContext *ctx = state_context(state);
  char spaces[64];
  NewFile f = {.fd = -1};
  Item *item = tg_error(ctx) ? NULL : tg_alloc(ctx, (n + 1) * sizeof *item);
  for (size_t i = 0; item && i < n; i++) {
    item[i].t = tg_state_at(state, i, &item[i].name);
    item[i].size = tg_dtype_size(tg_dtype(item[i].t));
    if (!strcmp(item[i].name, "__metadata__")) {
      ctx_fail(ctx, TG_ERR_VALUE, "safe_save: a tensor cannot be named __metadata__");
      tg_free(ctx, item);
      return TG_ERR_VALUE;
    }
  }
  if (item) qsort(item, n, sizeof *item, by_size_then_name);
  char *text = item ? header_text(ctx, item, n, metadata) : NULL;
  size_t len = text ? strlen(text) : 0, pad = (64 - (8 + len) % 64) % 64;
  uint8_t head[8];
  memset(spaces, ' ', sizeof spaces);
  for (int i = 0; i < 8; i++)
    head[i] = (uint8_t)((uint64_t)(len + pad) >> 8 * i);
  bool ok = text != NULL, begun = ok && file_begin_once(ctx, &f, path, rank) && file_write(&f, head, 8) &&
                                  file_write(&f, text, len) && file_write(&f, spaces, pad);
  int why = begun ? 0 : errno ? errno : EIO;
  for (size_t i = 0; i < n && ok && (!why || tg_comm_size(ctx) > 1); i++)
    ok = write_tensor(ctx, &f, item[i].t, rank, &why);
  if (why) errno = why;
  ok = file_end_once(ctx, &f, ok && !why);
  int e = errno;
  /* this does not replace an earlier error */
  if (!ok) ctx_fail(ctx, TG_ERR_IO, "safe_save: %.600s: %s", path, strerror(e));
  free(text);
  tg_free(ctx, item);
  return ok ? TG_OK : tg_error(ctx);
}

TgStatus tg_safe_save_opt(const TgState *state, const char *path, const TgSafeOptions *given) {
  if (!state || !path) return TG_ERR_VALUE;
  TgContext *ctx = state_context(state);
  TgSafeOptions o;
  if (tg_options_read(ctx, "safe_save", "TgSafeOptions", &o, sizeof o, given)) return TG_ERR_VALUE;
  return safe_is_index(path) ? safe_index_save(state, path, &o) : safe_file_save(state, path, o.metadata, 0);
}
#else
static TgState *load(TgTensor *t, const char *path) {
  (void)path;
  if (t) tg_set_error(tg_context(t), TG_ERR_STATE, "safetensors: built without jansson");
  return NULL;
}

TgValue *tg_safe_load_metadata(TgTensor *file, int64_t *data_start) {
  return (void)data_start, (void)load(file, NULL), NULL;
}

TgStatus tg_safe_save_opt(const TgState *s, const char *path, const TgSafeOptions *o) {
  return (void)s, (void)path, (void)o, TG_ERR_STATE;
}
#endif
TgState *tg_safe_load(TgTensor *file) { return load(file, NULL); }

TgState *tg_safe_load_file(TgContext *ctx, const char *path) {
  TgState *s = NULL;
  if (tg_scope_begin(ctx)) return NULL;
#ifdef TG_HAVE_JANSSON
  if (path && safe_is_index(path))
    s = safe_index_load(ctx, path);
  else
#endif
    s = load(file_tensor(ctx, path), path);
  tg_scope_end(ctx);
  return s;
}
