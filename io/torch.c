/* torch.c: torch checkpoints. In: a zip, a stream of pickles, or a tar. Out: the tree that was saved, with
 * its tensors as views of the file. Tensors are made at the end, when all storages are known, and only
 * those that the tree contains. */
#include "torch_pickle.h"
#include <stdio.h>

enum { MAX_DEPTH = 1000 };

/* ---- storages and tensors */
static const char *key_text(Pickle *p, uint32_t id, char number[24], size_t *n) {
  const Obj *o = &p->obj[id];
  if (o->kind == O_STR) {
    *n = o->n;
    return (const char *)o->u.s;
  }
  if (o->kind != O_INT) return NULL;
  *n = (size_t)snprintf(number, 24, "%lld", (long long)o->u.i);
  return number;
}

static bool storage_add(Pickle *p, const char *key, size_t n, Storage s) {
  bool there = false;
  Storage *more = io_grow(p->ctx, p->storage, p->nstorage, &p->stcap, sizeof *more);
  if (!more) return pickle_no_memory(p);
  p->storage = more;
  p->storage[p->nstorage] = s;
  if (!index_put(p->ctx, &p->storages, key, n, p->nstorage++, &there)) return pickle_no_memory(p);
  return !there || io_fail(p->s, TG_ERR_VALUE, "storage %.*s is there twice", (int)n, key);
}

/* A key as text that lives as long as the tree. */
static const char *key_keep(Pickle *p, Doc *d, uint32_t id, size_t *n) {
  char number[24];
  const char *k = key_text(p, id, number, n);
  if (!k || k != number) return k;
  char *copy = doc_alloc(d, *n + 1);
  if (copy) memcpy(copy, k, *n);
  return copy;
}

static bool sizes(Pickle *p, uint32_t id, int64_t *v, int *n) {
  if (!pickle_seq(p, id) || p->obj[id].n > TG_MAX_RANK)
    return pickle_seq(p, id) ? io_fail(p->s, TG_ERR_SHAPE, "a tensor of more than %d axes", TG_MAX_RANK)
                             : pickle_bad(p, "a shape that is no tuple");
  *n = (int)p->obj[id].n;
  for (int i = 0; i < *n; i++) {
    const Obj *o = &p->obj[pickle_item(p, id, (uint32_t)i)];
    if (o->kind != O_INT || o->u.i < 0) return pickle_bad(p, "a shape or stride that is no number from 0 up");
    v[i] = o->u.i;
  }
  return true;
}

/* The key of a tensor's storage. Returns NULL after an error, which is in the context. The text is in
 * `number` or belongs to p. */
static const char *storage_key(Pickle *p, uint32_t storage, char number[24], size_t *n) {
  const char *key = NULL;
  if (pickle_seq(p, storage) && p->obj[storage].n >= 5) {
    const Obj *tag = &p->obj[pickle_item(p, storage, 0)];
    if (tag->kind == O_STR && tag->n == 7 && !memcmp(tag->u.s, "storage", 7) &&
        pickle_is(p, pickle_item(p, storage, 1), G_STORAGE))
      key = key_text(p, pickle_item(p, storage, 2), number, n);
  }
  if (!key) return pickle_bad(p, "a tensor without a storage"), NULL;
  if (p->obj[storage].n > 5 && p->obj[pickle_item(p, storage, 5)].kind != O_NONE) {
    io_fail(p->s, TG_ERR_VALUE, "storage %.*s is a view of another, which is not read here", (int)*n, key);
    return NULL;
  }
  return key;
}

/* How a tensor is placed in its storage. */
typedef struct Strided {
  int n;
  int64_t dims[TG_MAX_RANK], strides[TG_MAX_RANK];
  int64_t offset; /* of the first element, in elements */
  int64_t last;   /* distance of the last element from the first, in elements */
} Strided;

static bool lies_inside(Strided *x, uint64_t nelem) {
  int64_t numel = 1;
  x->last = 0;
  for (int i = 0; i < x->n; i++) {
    if (__builtin_mul_overflow(numel, x->dims[i], &numel)) return false;
    if (x->dims[i] > 1 && x->strides[i] > INT64_MAX / 64 / x->dims[i]) return false;
    if (x->dims[i] > 1) x->last += (x->dims[i] - 1) * x->strides[i];
  }
  return x->offset <= INT64_MAX / 64 && x->last <= INT64_MAX / 64 &&
         (uint64_t)(x->offset + x->last + 1) <= nelem;
}

/* Writes the axes longer than 1 to `order`, the one with the largest stride first. Returns how many there
 * are, or -1 if the strides are not those of a dense tensor in such an order. */
static int memory_order(const Strided *x, int64_t order[TG_MAX_RANK]) {
  int m = 0;
  for (int i = 0; i < x->n; i++)
    if (x->dims[i] > 1) order[m++] = i;
  for (int i = 1; i < m; i++)
    for (int k = i; k > 0 && x->strides[order[k]] > x->strides[order[k - 1]]; k--) {
      int64_t o = order[k];
      order[k] = order[k - 1];
      order[k - 1] = o;
    }
  int64_t want = 1;
  for (int k = m; k-- > 0;) {
    if (x->strides[order[k]] != want) return -1;
    want *= x->dims[order[k]];
  }
  return m;
}

static bool strided_read(Pickle *p, uint32_t id, Strided *x) {
  const Obj *offset = &p->obj[pickle_item(p, id, 1)];
  int nstrides;
  if (!sizes(p, pickle_item(p, id, 2), x->dims, &x->n) ||
      !sizes(p, pickle_item(p, id, 3), x->strides, &nstrides))
    return false;
  if (x->n != nstrides || offset->kind != O_INT || offset->u.i < 0)
    return pickle_bad(p, "a tensor whose parts do not fit together");
  x->offset = offset->u.i;
  return true;
}

/* Makes a view of the file: first with the axes in the order of memory, then permuted to the tensor's
 * order. */
static TgTensor *tensor_of(Pickle *p, uint32_t id) {
  uint32_t storage = pickle_item(p, id, 0);
  if (p->obj[storage].kind == O_PERSISTENT) storage = pickle_item(p, storage, 0);
  char number[24];
  size_t nkey = 0, place;
  const char *key = storage_key(p, storage, number, &nkey);
  Strided x;
  if (!key || !strided_read(p, id, &x)) return NULL;
  TgDType d = pickle_dtype(p, p->obj[id].n > 4 ? pickle_item(p, id, 4) : pickle_item(p, storage, 1));
  for (int i = 0; i < x.n; i++)
    if (!x.dims[i]) return tg_zeros(p->ctx, x.n, x.dims, .dtype = d);

  if (!index_find(&p->storages, key, nkey, &place)) {
    io_fail(p->s, TG_ERR_VALUE, "storage %.*s is missing", (int)nkey, key);
    return NULL;
  }
  const Storage *s = &p->storage[place];
  int64_t size = (int64_t)tg_dtype_size(d);
  if (!lies_inside(&x, s->nbytes / (uint64_t)size)) {
    io_fail(p->s, TG_ERR_VALUE, "a tensor lies outside of storage %.*s", (int)nkey, key);
    return NULL;
  }
  int64_t order[TG_MAX_RANK], sorted[TG_MAX_RANK], back[TG_MAX_RANK];
  int m = memory_order(&x, order);
  if (m < 0) {
    io_fail(p->s, TG_ERR_VALUE, "a tensor of storage %.*s has strides that are no permutation of its axes",
            (int)nkey, key);
    return NULL;
  }
  for (int k = 0; k < m; k++)
    sorted[k] = x.dims[order[k]];
  for (int k = 0, axis = 0; axis < x.n; axis++) /* axis (longer than 1) -> its place in memory order */
    for (int q = 0; q < m; q++)
      if (order[q] == axis) back[k++] = q;
  TgTensor *t = source_view(s->in, s->at + (uint64_t)(x.offset * size), d, m, sorted);
  return tg_reshape(tg_permute(t, m, back), x.n, x.dims);
}

/* ---- objects -> the tree. Each object is converted once; an object that contains itself is refused, so
 * the tree is finite. */
typedef struct Step {
  uint32_t id;
  uint32_t next;
  TgValue *to;
} Step;

static bool scalar_of(Pickle *p, Doc *d, uint32_t id, TgValue *v) { /* any object except lists and maps */
  const Obj *o = &p->obj[id];
  switch (o->kind) {
  case O_NONE: return *v = (TgValue){0}, true;
  case O_BOOL: return *v = (TgValue){.kind = TG_KIND_BOOL, .u.i = o->u.i}, true;
  case O_INT: return *v = (TgValue){.kind = TG_KIND_INT, .u.i = o->u.i}, true;
  case O_FLOAT: return *v = (TgValue){.kind = TG_KIND_FLOAT, .u.f = o->u.f}, true;
  case O_STR: return doc_string(d, v, o->u.s, o->n);
  case O_TENSOR: return doc_tensor(d, v, tensor_of(p, id));
  default: return *v = (TgValue){.kind = TG_KIND_OTHER}, true;
  }
}

/* If id is the persistent id of a tensor of a tar, returns that tensor's object; otherwise returns id. */
static uint32_t tensor_named(Pickle *p, uint32_t id) {
  char number[24];
  size_t n, at;
  const char *key = p->obj[id].kind == O_PERSISTENT ? key_text(p, pickle_item(p, id, 0), number, &n) : NULL;
  return key && index_find(&p->tensors, key, n, &at) ? (uint32_t)at : id;
}

/* Converts the keys of a dict to those of its map. A key that was set twice occurs once, with its last
 * value. */
static bool keys_made(Pickle *p, Doc *d, Obj *dict, TgValue *map) {
  Index seen = {0};
  uint32_t kept = 0;
  bool ok = true;
  for (uint32_t i = 0; ok && i < dict->n; i++) {
    size_t nkey, at = kept;
    bool there = false;
    uint32_t k = dict->u.at[2 * i];
    const char *key = p->obj[k].kind == O_STR ? key_text(p, k, NULL, &nkey) : NULL;
    if (p->obj[k].kind != O_STR && p->obj[k].kind != O_INT) {
      ok = pickle_bad(p, "a key that is neither text nor a whole number");
      break;
    }
    if (key && index_put(p->ctx, &seen, key, nkey, kept, &there) && there) index_find(&seen, key, nkey, &at);
    dict->u.at[2 * at] = k;
    dict->u.at[2 * at + 1] = dict->u.at[2 * i + 1];
    if (!there) ok = scalar_of(p, d, k, &map->u.at[2 * kept++]);
  }
  index_free(p->ctx, &seen);
  dict->n = kept;
  map->n = kept;
  return ok;
}

/* The path from the root to the value that is being made. */
typedef struct Path {
  Step *at;
  size_t depth, cap;
} Path;

/* Begins a list or map, whose items are made next. */
static bool path_push(Pickle *p, Doc *d, Path *path, uint32_t id, TgValue *made, TgValue *to) {
  if (path->depth >= MAX_DEPTH)
    return io_fail(p->s, TG_ERR_LIMIT, "the pickle is nested more than %d deep", MAX_DEPTH);
  Step *more = io_grow(p->ctx, path->at, path->depth, &path->cap, sizeof *more);
  if (!more) return pickle_no_memory(p);
  path->at = more;
  Obj *o = &p->obj[id];
  if (!doc_items(d, made, o->kind == O_DICT ? TG_KIND_MAP : TG_KIND_LIST, o->n)) return false;
  if (o->kind == O_DICT && !keys_made(p, d, o, made)) return false;
  o->open = true;
  path->at[path->depth++] = (Step){id, 0, to};
  return true;
}

/* Finds the next item to make, and where it is stored; lists and maps that are complete are closed on the
 * way. Returns false if there is none. */
static bool path_next(Pickle *p, Path *path, TgValue *made, uint32_t *id, TgValue **to) {
  for (; path->depth; path->depth--) {
    Step *s = &path->at[path->depth - 1];
    Obj *o = &p->obj[s->id];
    if (s->next < o->n) {
      uint32_t i = s->next++;
      if (o->kind == O_DICT) i = 2 * i + 1;
      *id = o->u.at[i];
      *to = &made[s->id].u.at[i];
      return true;
    }
    o->open = false;
    o->done = true;
    *s->to = made[s->id];
  }
  return false;
}

static bool tree_of(Pickle *p, Doc *d, uint32_t root) {
  Path path = {0};
  TgValue *made = tg_alloc(p->ctx, (p->nobj + 1) * sizeof *made), *to = &d->root;
  bool ok = made != NULL;
  uint32_t id = root;
  do {
    if (!ok) break;
    for (uint32_t named; (named = tensor_named(p, id)) != id;)
      id = named;
    Obj *o = &p->obj[id];
    if (o->open)
      ok = pickle_bad(p, "a value holds itself");
    else if (o->done)
      *to = made[id];
    else if (o->kind == O_TUPLE || o->kind == O_LIST || o->kind == O_DICT)
      ok = path_push(p, d, &path, id, &made[id], to);
    else {
      ok = scalar_of(p, d, id, &made[id]);
      o->done = true;
      *to = made[id];
    }
  } while (ok && path_next(p, &path, made, &id, &to));
  tg_free(p->ctx, made), tg_free(p->ctx, path.at);
  return ok;
}

/* ---- the three containers */
static const uint8_t stream_magic[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c, 0x46,
                                       0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

/* The files of an archive; a file that was unpacked is a tensor of its own. */
typedef struct Files {
  TgState *state;
  Source *at;
} Files;

static bool files_open(Pickle *p, Files *f, TgState *(*read)(const Source *, Source **)) {
  f->state = read(p->s, &f->at);
  for (size_t i = 0; i < tg_state_count(f->state); i++)
    if (!f->at[i].p && !source_open(&f->at[i], f->at[i].t, p->s->what, p->s->name)) return false;
  return f->state != NULL;
}

static const Source *file_named(const Files *f, const char *name) {
  const char *have;
  for (size_t i = 0; tg_state_at(f->state, i, &have); i++)
    if (!strcmp(have, name)) return &f->at[i];
  return NULL;
}

static bool load_zip(Pickle *p, Doc *d, const Files *f) {
  static const char tail[] = "/data.pkl";
  const char *name, *base = NULL;
  size_t n = 0;
  const Source *pickle = NULL;
  for (size_t i = 0; !pickle && tg_state_at(f->state, i, &name); i++) {
    const char *slash = strchr(name, '/');
    if (slash && !strcmp(slash, tail)) {
      pickle = &f->at[i];
      base = name;
      n = (size_t)(slash - name) + 1;
    }
  }
  if (!pickle) return io_fail(p->s, TG_ERR_VALUE, "the zip has no data.pkl: it is no checkpoint");
  for (size_t i = 0; tg_state_at(f->state, i, &name); i++) {
    if (strncmp(name, base, n)) continue;
    if (!strcmp(name + n, "byteorder") && (f->at[i].n < 6 || memcmp(f->at[i].p, "little", 6)))
      return io_fail(p->s, TG_ERR_VALUE, "the numbers are not little-endian");
    if (!strncmp(name + n, "data/", 5) && name[n + 5] &&
        !storage_add(p, name + n + 5, strlen(name + n + 5), (Storage){&f->at[i], 0, f->at[i].n}))
      return false;
  }
  uint32_t root;
  uint64_t at = 0;
  return pickle_run(p, pickle->p, &at, pickle->n, &root) && tree_of(p, d, root);
}

static bool count_of(Pickle *p, uint32_t id, uint64_t limit, uint64_t *n) {
  if (p->obj[id].kind != O_INT || p->obj[id].u.i < 0 || (uint64_t)p->obj[id].u.i > limit)
    return pickle_bad(p, "a count that cannot be");
  *n = (uint64_t)p->obj[id].u.i;
  return true;
}

/* Reads a storage: a u64 count, followed by the elements. */
static bool raw_storage(Pickle *p, Doc *d, const Source *s, uint64_t *at, uint32_t key, size_t size) {
  size_t n = 0;
  const char *k = key_keep(p, d, key, &n);
  if (!k || !inside(*at, 8, s->n))
    return pickle_bad(p, k ? "a storage is cut off" : "a storage without a key");
  uint64_t count = le64(s->p + *at);
  *at += 8;
  if (count > s->n / size || !inside(*at, count * size, s->n)) return pickle_bad(p, "a storage is cut off");
  *at += count * size;
  return storage_add(p, k, n, (Storage){s, *at - count * size, count * size});
}

/* Collects the width of each storage's elements, which the persistent ids contain. */
static bool widths_read(Pickle *p, Doc *d, Index *x) {
  for (uint32_t i = 0; i < p->nobj; i++) {
    size_t n = 0;
    bool there;
    uint32_t t = p->obj[i].kind == O_PERSISTENT ? pickle_item(p, i, 0) : p->none;
    const char *key = pickle_seq(p, t) && p->obj[t].n > 4 && pickle_is(p, pickle_item(p, t, 1), G_STORAGE)
                          ? key_keep(p, d, pickle_item(p, t, 2), &n)
                          : NULL;
    if (key && !index_put(p->ctx, x, key, n, tg_dtype_size(pickle_dtype(p, pickle_item(p, t, 1))), &there))
      return pickle_no_memory(p);
  }
  return true;
}

static bool load_stream(Pickle *p, Doc *d) {
  const Source *s = p->s;
  uint64_t at = sizeof stream_magic;
  uint32_t version, system, root, keys;
  if (!pickle_run(p, s->p, &at, s->n, &version)) return false;
  if (p->obj[version].kind != O_INT || p->obj[version].u.i != 1001) return pickle_bad(p, "not protocol 1001");
  if (!pickle_run(p, s->p, &at, s->n, &system) || !pickle_run(p, s->p, &at, s->n, &root) ||
      !pickle_run(p, s->p, &at, s->n, &keys))
    return false;
  for (uint32_t i = 0; p->obj[system].kind == O_DICT && i < p->obj[system].n; i++) {
    const Obj *k = &p->obj[pickle_item(p, system, 2 * i)];
    if (k->kind == O_STR && k->n == 13 && !memcmp(k->u.s, "little_endian", 13) &&
        pickle_item(p, system, 2 * i + 1) != p->none + 2)
      return io_fail(s, TG_ERR_VALUE, "the numbers are not little-endian");
  }
  if (!pickle_seq(p, keys)) return pickle_bad(p, "no list of storages");
  Index widths = {0};
  bool ok = widths_read(p, d, &widths);
  for (uint32_t i = 0; ok && i < p->obj[keys].n; i++) {
    char number[24];
    size_t n = 0, size;
    const char *key = key_text(p, pickle_item(p, keys, i), number, &n);
    ok = (key && index_find(&widths, key, n, &size)) || pickle_bad(p, "a storage that no tensor names");
    ok = ok && raw_storage(p, d, s, &at, pickle_item(p, keys, i), size);
  }
  index_free(p->ctx, &widths);
  return ok && tree_of(p, d, root);
}

static bool int_add(Pickle *p, uint32_t to, uint64_t v) {
  uint32_t id;
  return pickle_new(p, (Obj){.kind = O_INT, .u.i = (int64_t)v}, &id) && pickle_add(p, to, id);
}

/* Makes what a persistent id contains for a storage: ("storage", its type, key, .., ..). */
static bool storage_named(Pickle *p, uint32_t key, TgDType d, uint32_t *out) {
  uint32_t parts[5];
  if (!pickle_new(p, (Obj){.kind = O_STR, .n = 7, .u.s = (const uint8_t *)"storage"}, &parts[0]) ||
      !pickle_storage(p, d, &parts[1]) || !pickle_new(p, (Obj){.kind = O_TUPLE}, out))
    return false;
  parts[2] = key;
  parts[3] = parts[4] = p->none;
  for (int k = 0; k < 5; k++)
    if (!pickle_add(p, *out, parts[k])) return false;
  return true;
}

/* Reads a tensor of the oldest layout at s[*at]: its pickle (key, storage, type), then the rank (4 bytes
 * and 4 unused ones), and sizes, strides and offset as 8-byte numbers. */
static bool old_tensor(Pickle *p, Doc *d, const Source *s, uint64_t *at) {
  uint32_t id, storage, made;
  if (!pickle_run(p, s->p, at, s->n, &id)) return false;
  if (!pickle_seq(p, id) || p->obj[id].n != 3 || !pickle_is(p, pickle_item(p, id, 2), G_TENSOR_TYPE))
    return pickle_bad(p, "a tensor without key, storage and type");
  uint64_t rank = inside(*at, 8, s->n) ? le32(s->p + *at) : UINT64_MAX;
  if (rank > TG_MAX_RANK || !inside(*at, 8 + 16 * rank + 8, s->n))
    return pickle_bad(p, "a tensor is cut off");
  *at += 8;
  if (!storage_named(p, pickle_item(p, id, 1), pickle_dtype(p, pickle_item(p, id, 2)), &storage) ||
      !pickle_new(p, (Obj){.kind = O_TENSOR}, &made) || !pickle_add(p, made, storage) ||
      !int_add(p, made, le64(s->p + *at + 16 * rank)))
    return false;
  for (int part = 0; part < 2; part++) { /* first the sizes, then the strides */
    uint32_t list;
    if (!pickle_new(p, (Obj){.kind = O_TUPLE}, &list)) return false;
    for (uint64_t k = 0; k < rank; k++, *at += 8)
      if (!int_add(p, list, le64(s->p + *at))) return false;
    if (!pickle_add(p, made, list)) return false;
  }
  *at += 8;
  size_t len = 0;
  bool there = false;
  const char *key = key_keep(p, d, pickle_item(p, id, 0), &len);
  if (!key || !index_put(p->ctx, &p->tensors, key, len, made, &there) || there)
    return pickle_bad(p, "a tensor's key");
  return true;
}

static bool load_tar(Pickle *p, Doc *d, const Files *f) {
  const Source *pickle = file_named(f, "pickle"), *s = file_named(f, "storages");
  const Source *tensors =
      /* only in the oldest layout: tensors in a file of their own, named by number */
      file_named(f, "tensors");
  if (!pickle || !s)
    return io_fail(p->s, TG_ERR_VALUE, "the tar has no files pickle and storages: it is no checkpoint");
  uint64_t at = 0, n = 0;
  uint32_t id = 0;
  if (!pickle_run(p, s->p, &at, s->n, &id) || !count_of(p, id, s->n, &n)) return false;
  for (uint64_t i = 0; i < n; i++) {
    if (!pickle_run(p, s->p, &at, s->n, &id)) return false;
    if (!pickle_seq(p, id) || p->obj[id].n != 3 || !pickle_is(p, pickle_item(p, id, 2), G_STORAGE))
      return pickle_bad(p, "a storage without key, place and type");
    if (!raw_storage(p, d, s, &at, pickle_item(p, id, 0),
                     tg_dtype_size(pickle_dtype(p, pickle_item(p, id, 2)))))
      return false;
  }
  at = 0;
  if (tensors && (!pickle_run(p, tensors->p, &at, tensors->n, &id) || !count_of(p, id, tensors->n, &n)))
    return false;
  for (uint64_t i = 0; tensors && i < n; i++)
    if (!old_tensor(p, d, tensors, &at)) return false;
  at = 0;
  return pickle_run(p, pickle->p, &at, pickle->n, &id) && tree_of(p, d, id);
}

static TgValue *load(TgTensor *file, const char *path) {
  Source s;
  bool ok = source_open(&s, file, "torch_load", path);
  Pickle p = {.s = &s, .ctx = s.ctx};
  Files f = {0};
  Doc *d = ok ? doc_new(s.ctx) : NULL;
  ok = d && !tg_scope_begin(s.ctx);
  bool scope = ok;
  if (!ok) {
  } else if (zip_is(&s))
    ok = files_open(&p, &f, zip_read) && load_zip(&p, d, &f);
  else if (s.n > sizeof stream_magic && !memcmp(s.p, stream_magic, sizeof stream_magic))
    ok = load_stream(&p, d);
  else if (tar_is(&s))
    ok = files_open(&p, &f, tar_read) && load_tar(&p, d, &f);
  else
    ok = io_fail(&s, TG_ERR_VALUE, "no torch checkpoint: neither a zip, a stream of pickles, nor a tar");
  if (scope) tg_scope_end(s.ctx);
  for (size_t i = 0; i < p.nobj; i++)
    if (p.obj[i].cap) tg_free(s.ctx, p.obj[i].u.at);
  for (size_t i = 0; i < tg_state_count(f.state); i++)
    source_close(&f.at[i]);
  tg_free(s.ctx, p.obj), tg_free(s.ctx, p.stack), tg_free(s.ctx, p.memo), tg_free(s.ctx, p.storage),
      tg_free(s.ctx, f.at);
  index_free(s.ctx, &p.storages), index_free(s.ctx, &p.tensors);
  tg_state_free(f.state);
  source_close(&s);
  if (!ok) doc_free(d);
  return ok ? &d->root : NULL;
}

TgValue *tg_torch_load(TgTensor *file) { return load(file, NULL); }

TgValue *tg_torch_load_file(TgContext *ctx, const char *path) {
  if (tg_scope_begin(ctx)) return NULL;
  TgValue *v = load(file_tensor(ctx, path), path);
  tg_scope_end(ctx);
  return v;
}
