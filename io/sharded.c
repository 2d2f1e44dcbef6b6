/* sharded.c: a state as several safetensors files and an index, in Hugging Face's layout. In: a path that
 * ends in .safetensors.index.json. Out: model-00001-of-00004.safetensors and so on, each written by a rank
 * of its own, and, once all are there, the index, which says which tensor is in which file. Files that an
 * index names are never overwritten: the files of the next save have other names, and the old files are
 * deleted after the new index was written. */
#define _GNU_SOURCE
#include "io_private.h"
#ifdef TG_HAVE_JANSSON
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_SHARDS = 99999 };

static const char ending[] = ".index.json";

bool safe_is_index(const char *path) {
  size_t n = strlen(path);
  return n > sizeof ending - 1 && !strcmp(path + n - (sizeof ending - 1), ending);
}

/* ---- reading */
/* An index cannot be mistaken for a safetensors file, because its first eight bytes are not a valid
 * length. */
static json_t *index_read(const Source *s) {
  json_error_t e;
  json_t *j =
      s->n && s->p[0] == '{' ? json_loadb((const char *)s->p, s->n, JSON_REJECT_DUPLICATES, &e) : NULL;
  if (!j) io_fail(s, TG_ERR_VALUE, "this is no JSON object");
  return j;
}

json_t *safe_index_metadata(const Source *s) {
  json_t *index = index_read(s), *meta = json_object_get(index, "metadata"), *all = json_object();
  if (index && all && meta) json_object_set(all, "__metadata__", meta);
  json_decref(index);
  if (index) return all;
  json_decref(all);
  return NULL;
}

/* Reads a file of the index, which must be in the same folder. */
static TgState *shard_read(const Source *s, const char *path, const char *file) {
  char at[4200];
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash + 1 - path) : 0;
  bool ok = file && *file && !strchr(file, '/') && folder + strlen(file) < sizeof at;
  if (!ok) io_fail(s, TG_ERR_VALUE, "weight_map: '%.100s' is no file beside the index", file ? file : "");
  snprintf(at, sizeof at, "%.*s%.255s", folder, path, file ? file : "");
  return ok ? tg_safe_load_file(s->ctx, at) : NULL;
}

/* Moves the tensors that the map assigns to this file from `from` to `to`. Other tensors of the file are
 * left out. */
static bool shard_taken(const Source *s, json_t *map, const char *file, TgState *from, TgState *to) {
  const char *name;
  json_t *in;
  bool ok = from != NULL;
  json_object_foreach(map, name, in) {
    if (!ok || !json_is_string(in) || strcmp(json_string_value(in), file)) continue;
    ok = state_moved(to, from, name) ||
         io_fail(s, TG_ERR_VALUE, "%.200s is not in %.200s, as the index says", name, file);
  }
  return ok;
}

TgState *safe_index_load(TgContext *ctx, const char *path) {
  Source s;
  bool ok = source_open(&s, file_tensor(ctx, path), "safetensors", path);
  json_t *index = ok ? index_read(&s) : NULL, *map = json_object_get(index, "weight_map"), *file;
  json_t *seen = json_object();
  TgState *all = index && seen ? tg_state_new(ctx) : NULL;
  const char *name;
  ok = all && (json_is_object(map) || io_fail(&s, TG_ERR_VALUE, "there is no weight_map"));
  if (ok) json_object_foreach(map, name, file) {
      const char *text = json_string_value(file);
      if (!ok || (text && json_object_get(seen, text))) continue;
      TgState *shard = shard_read(&s, path, text);
      ok = shard_taken(&s, map, text, shard, all) && !json_object_set_new(seen, text, json_true());
      tg_state_free(shard);
    }
  json_decref(index), json_decref(seen);
  source_close(&s);
  if (!ok) tg_state_free(all);
  return ok ? all : NULL;
}

/* ---- saving */
typedef struct Sharded {
  TgContext *ctx;
  const char *path;
  int n, stem;     /* n: files; stem: bytes of the path before .safetensors */
  char generation; /* part of their names: 0, or 'b' if the existing index names files of generation 0 */
} Sharded;

typedef struct ShardName {
  char text[4200];
} ShardName;

static ShardName shard_name(const Sharded *a, int i, char generation) {
  ShardName s;
  snprintf(s.text, sizeof s.text, "%.*s-%05d-of-%05d%s.safetensors", a->stem, a->path, i + 1, a->n,
           generation ? ".b" : "");
  return s;
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The index as it is on disk, read by rank 0. NULL: there is none that can be read. */
static json_t *index_there(const Sharded *a) {
  json_error_t e;
  return tg_comm_rank(a->ctx) ? NULL : json_load_file(a->path, 0, &e);
}

static json_t *any_file(json_t *index) {
  return json_object_iter_value(json_object_iter(json_object_get(index, "weight_map")));
}

/* The file that a tensor is put in. Tensors are not split, keep the order of the state, and fill each file
 * with about the same number of bytes. */
static int shard_of(uint64_t before, uint64_t nbytes, uint64_t total, int n) {
  int i = total ? (int)((before + nbytes / 2) / ((double)total / n)) : 0;
  return i < n ? i : n - 1;
}

static TgStatus shards_written(const Sharded *a, const TgState *state, const char *const *meta, json_t *map) {
  uint64_t total = 0;
  const char *name;
  for (size_t i = 0; i < tg_state_count(state); i++)
    total += tg_nbytes(tg_state_at(state, i, NULL));
  TgStatus s = TG_OK;
  for (int k = 0; k < a->n && !s; k++) {
    TgState *part = tg_state_new(a->ctx);
    ShardName file = shard_name(a, k, a->generation);
    uint64_t before = 0;
    for (size_t i = 0; part && !s && i < tg_state_count(state); i++) {
      TgTensor *t = tg_state_at(state, i, &name);
      bool here = shard_of(before, tg_nbytes(t), total, a->n) == k;
      before += tg_nbytes(t);
      if (here) s = tg_state_put(part, name, t);
      if (here && json_object_set_new(map, name, json_string(base_of(file.text)))) s = TG_ERR_NOMEM;
    }
    bool empty = part && !tg_state_count(part); /* there are fewer tensors than files */
    if (!s && !empty)
      s = part ? safe_file_save(part, file.text, meta, k % tg_comm_size(a->ctx)) : TG_ERR_NOMEM;
    tg_state_free(part);
  }
  return s;
}

static bool index_written(const Sharded *a, const TgState *state, const char *const *meta, json_t *map) {
  json_t *index = json_object(), *about = json_object();
  uint64_t total = 0;
  for (size_t i = 0; i < tg_state_count(state); i++)
    total += tg_nbytes(tg_state_at(state, i, NULL));
  json_object_set_new(about, "total_size", json_integer((json_int_t)total));
  for (int i = 0; meta && meta[i] && meta[i + 1]; i += 2)
    json_object_set_new(about, meta[i], json_string(meta[i + 1]));
  json_object_set_new(index, "metadata", about);
  json_object_set(index, "weight_map", map);
  char *text = json_dumps(index, JSON_INDENT(2) | JSON_SORT_KEYS);
  NewFile f = {.fd = -1};
  bool ok = text && file_begin_once(a->ctx, &f, a->path, 0) && file_write(&f, text, strlen(text));
  ok = file_end_once(a->ctx, &f, ok);
  if (!ok) ctx_fail(a->ctx, TG_ERR_IO, "safe_save: %.600s: %s", a->path, strerror(errno));
  json_decref(index);
  free(text);
  return ok;
}

/* Deletes the files of the previous index that the new one does not name. */
static void old_removed(const Sharded *a, json_t *old, json_t *map) {
  const char *name, *key;
  json_t *file, *now;
  json_object_foreach(json_object_get(old, "weight_map"), name, file) {
    const char *text = json_string_value(file);
    bool used = !text || strchr(text, '/');
    json_object_foreach(map, key, now) used = used || !strcmp(json_string_value(now), text);
    int folder = (int)(base_of(a->path) - a->path);
    char at[4200];
    if (used) continue;
    snprintf(at, sizeof at, "%.*s%.255s", folder, a->path, text);
    unlink(at);
  }
}

TgStatus safe_index_save(const TgState *state, const char *path, const TgSafeOptions *o) {
  TgContext *ctx = state_context(state);
  Sharded a = {.ctx = ctx, .path = path, .n = o->shards ? o->shards : tg_comm_size(ctx)};
  a.stem = (int)(strlen(path) - (sizeof ending - 1));
  if (a.stem > 12 && !strncmp(path + a.stem - 12, ".safetensors", 12)) a.stem -= 12;
  if (a.n < 1 || a.n > MOST_SHARDS || a.stem > 4000)
    return ctx_fail(ctx, TG_ERR_VALUE, "safe_save: %d shards, at most %d", a.n, MOST_SHARDS), TG_ERR_VALUE;
  json_t *old = index_there(&a), *map = json_object();
  const char *had = json_string_value(any_file(old));
  int64_t other = had && !strstr(had, ".b.safetensors");
  if (tg_comm_max(ctx, &other)) other = 0;
  a.generation = other ? 'b' : 0;
  TgStatus s = map && !tg_error(ctx) ? shards_written(&a, state, o->metadata, map) : TG_ERR_NOMEM;
  if (!s && index_written(&a, state, o->metadata, map)) old_removed(&a, old, map);
  if (s && !tg_error(ctx)) ctx_fail(ctx, s, "safe_save: out of memory");
  json_decref(old), json_decref(map);
  return tg_error(ctx);
}
#endif
