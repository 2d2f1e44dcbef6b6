/* merge.c: writes a model's file with its adapters, or its trained values, put into the weights. In: the
 * model and what its adapters add. Out: a copy of the file in which the bytes of these weights are replaced,
 * with the same types and at the same places. */
#define _POSIX_C_SOURCE 200809L
#include "model_private.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Merge {
  TgLlm *m;
  const char *path;
  char place[LLM_PATH], beside[LLM_PATH + 32];
  FILE *to;
  TgLlmMerged about;
} Merge;

static bool failed(const Merge *g, const char *path) {
  return llm_fail(g->m->ctx, TG_ERR_IO, "llm_merge: %.300s: %s", path,
                  errno ? strerror(errno) : "cannot be written");
}

static bool can_merge(Merge *g) {
  const TgLlm *m = g->m;
  struct stat own, other;
  if (!m->loras && !m->unfrozen)
    return llm_fail(m->ctx, TG_ERR_VALUE,
                    "llm_merge: the model has no adapter, and its weights are as in its file");
  if (!tg_value_get(m->gguf, "places"))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_merge: %.300s is no gguf file", m->path);
  if (tg_value_int(llm_kv(m->gguf, "split.count")) > 1)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_merge: %.300s is one of several files", m->path);
  if (!g->path || strlen(g->path) > 4000) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_merge: no path");
  if (!stat(m->path, &own) && !stat(g->path, &other) && own.st_dev == other.st_dev &&
      own.st_ino == other.st_ino)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_merge: %.300s is the model's own file", g->path);
  return llm_place(g->path, g->place) || failed(g, g->path);
}

static bool file_copied(Merge *g) {
  char piece[1 << 14];
  errno = 0;
  FILE *from = fopen(g->m->path, "rb");
  if (!from) return failed(g, g->m->path);
  snprintf(g->beside, sizeof g->beside, "%s.%ld.tmp", g->place, (long)getpid());
  g->to = fopen(g->beside, "wb");
  bool ok = g->to != NULL;
  for (size_t n; ok && (n = fread(piece, 1, sizeof piece, from)) > 0;)
    ok = fwrite(piece, 1, n, g->to) == n;
  ok = ok && !ferror(from);
  fclose(from);
  return ok || failed(g, g->beside);
}

/* ---- a weight */
static double error_of(const float *exact, const float *stored, int64_t n) {
  double e = 0, all = 0;
  for (int64_t i = 0; i < n; i++) {
    double d = (double)stored[i] - (double)exact[i];
    e += d * d;
    all += (double)exact[i] * (double)exact[i];
  }
  return all > 0 ? sqrt(e / all) : 0;
}

/* Decodes the bytes that were encoded and writes the values to x. */
static bool decoded(TgContext *ctx, const void *bytes, size_t nbytes, int type, float *x, int64_t n) {
  TgTensor *t = tg_ggml_data_to_tensor(tg_from_bytes(ctx, bytes, nbytes, TG_U8), n, type);
  return !tg_read(tg_cast(t, TG_F32), x, (size_t)n * sizeof *x);
}

static bool written(Merge *g, TgTensor *exact, const TgValue *place) {
  TgContext *ctx = g->m->ctx;
  int type = (int)tg_value_int(tg_value_at(place, 0));
  int64_t offset = tg_value_int(tg_value_at(place, 1)), n = tg_numel(exact);
  size_t nbytes = (size_t)tg_value_int(tg_value_at(place, 2)), floats = (size_t)n * sizeof(float);
  float *x = tg_alloc(ctx, floats), *again = x ? tg_alloc(ctx, floats) : NULL;
  void *bytes = again ? tg_alloc(ctx, nbytes) : NULL;
  bool ok = bytes && !tg_read(exact, x, floats) && !tg_ggml_encode(ctx, type, x, n, bytes, nbytes) &&
            decoded(ctx, bytes, nbytes, type, again, n);
  if (ok) {
    errno = 0;
    ok = !fseeko(g->to, offset, SEEK_SET) && fwrite(bytes, 1, nbytes, g->to) == nbytes;
    if (!ok) failed(g, g->beside);
    g->about.error = fmax(g->about.error, error_of(x, again, n));
    g->about.weights++;
  }
  tg_free(ctx, x), tg_free(ctx, again), tg_free(ctx, bytes);
  return ok;
}

/* The weight plus the deltas of all adapters; NULL: it is unchanged. */
static TgTensor *sum_of(const TgLlm *m, int64_t layer, LlmWeight w, TgTensor *weight) {
  TgTensor *sum = m->unfrozen ? weight : NULL;
  for (const TgLora *l = m->loras; l; l = l->next) {
    TgTensor *delta = llm_lora_delta(l, layer, w);
    if (delta) sum = tg_add(sum ? sum : tg_cast(weight, TG_F32), delta);
  }
  return sum;
}

/* Writes one of the model's weights, if it changed. Only matrices of layers have adapters. */
static bool weight_written(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Merge *g = user;
  TgTensor *sum = m->unfrozen ? *at : NULL;
  bool ok = true;
  TG_SCOPE(m->ctx) {
    for (int64_t i = 0; i < m->k.layers; i++)
      for (int w = 0; w < W_COUNT; w++)
        if (at == &m->layer[i].w[w]) sum = sum_of(m, i, (LlmWeight)w, *at);
    const TgValue *place = tg_value_get(tg_value_get(m->gguf, "places"), name);
    if (sum) ok = !tg_cancelled(m->ctx) && written(g, sum, place);
  }
  return ok;
}

TgStatus tg_llm_merge(TgLlm *m, const char *path, TgLlmMerged *about) {
  if (!m) return TG_ERR_NOMEM;
  Merge g = {.m = m, .path = path};
  bool ok = can_merge(&g) && file_copied(&g) && llm_weights_each(m, weight_written, &g);
  errno = 0;
  if (g.to) {
    bool whole = !fflush(g.to) && !fsync(fileno(g.to));
    whole = !fclose(g.to) && whole;
    if (ok) ok = (whole && !rename(g.beside, g.place)) || failed(&g, path);
    if (!ok) unlink(g.beside);
  }
  if (ok && about) *about = g.about;
  return ok ? TG_OK : tg_error(m->ctx) ? tg_error(m->ctx) : TG_ERR_IO;
}
