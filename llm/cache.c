/* cache.c: the keys and values of the tokens so far. In: the rows of a step's tokens. Out: the part of the
 * cache that these tokens may see, as f32, of one sequence or of several. In q8_0, a block of 32 elements is
 * stored as 8 bits each and one scale, like blocks of weights. The kernel of attention decodes a block where
 * it reads it, so the cache is never kept decoded. */
#include "model_private.h"

enum { PACKED_BLOCK = 32, PACKED_MOST = 127 };

static int64_t blocks_of(int64_t size) { return (size + PACKED_BLOCK - 1) / PACKED_BLOCK; }

static TgTensor *room_of(const TgLlm *m, TgDType d, int64_t size) {
  return tg_keep(tg_empty(m->ctx, d, TG_SHAPE(m->sequences, m->k.kv_heads, m->room, size)));
}

bool llm_cache_make(const TgLlm *m, LlmCache *c, int64_t size) {
  int64_t blocks = blocks_of(size);
  c->size = size;
  c->x = room_of(m, m->cache, m->packed ? blocks * PACKED_BLOCK : size);
  if (m->packed) c->scale = room_of(m, TG_F16, blocks);
  return c->x && (c->scale || !m->packed);
}

void llm_cache_free(LlmCache *c) { tg_release(c->x), tg_release(c->scale); }

size_t llm_cache_nbytes(const LlmCache *c) { return tg_nbytes(c->x) + (c->scale ? tg_nbytes(c->scale) : 0); }

/* ---- q8_0 */
/* Packs x (tokens, kv heads, size) into whole blocks of i8. *scale: (tokens, kv heads, blocks). */
static TgTensor *packed(TgTensor *x, int64_t size, TgTensor **scale) {
  int64_t blocks = blocks_of(size);
  x = tg_pad_to(x, 3, (const int64_t[]){-1, -1, blocks * PACKED_BLOCK}, 0);
  x = tg_unflatten(x, 2, 2, (const int64_t[]){blocks, PACKED_BLOCK});
  TgTensor *most = tg_max(tg_abs(x), .axis = TG_AXES(-1), .keepdim = true);
  TgTensor *by = tg_where(tg_gt_scalar(most, 0), tg_div(tg_scalar_like(most, PACKED_MOST), most),
                          tg_scalar_like(most, 0));
  *scale = tg_cast(tg_squeeze(tg_div_scalar(most, PACKED_MOST), -1), TG_F16);
  return tg_flatten(tg_cast(tg_round(tg_mul(x, by)), TG_I8), 2, 3);
}

/* Decodes x (.., blocks * 32) with scale (.., blocks) to (.., size). Both have 4 axes. */
static TgTensor *unpacked(TgTensor *x, TgTensor *scale, int64_t size) {
  int64_t blocks = blocks_of(size);
  x = tg_unflatten(tg_cast(x, TG_F32), 3, 2, (const int64_t[]){blocks, PACKED_BLOCK});
  x = tg_flatten(tg_mul(x, tg_unsqueeze(tg_cast(scale, TG_F32), 4)), 3, 4);
  return size == blocks * PACKED_BLOCK ? x : tg_slice(x, 3, 0, size);
}

/* ---- places */
/* Where sequence `which` begins in the cache; NULL: the only sequence, at 0. */
static int64_t begins(const TgVariable *which) { return which ? tg_size(which) : 0; }

/* The cache of this sequence: (kv heads, room, size). */
static TgTensor *of_sequence(const TgLlm *m, TgTensor *cache, const TgVariable *which) {
  int64_t at = begins(which);
  return tg_squeeze(tg_slice(cache, 0, at, tg_size_add(m->ctx, at, 1)), 0);
}

/* Writes values (kv heads, n, size) to places at .. at + n - 1 of the current sequence's cache. */
static bool sequence_put(const TgLlm *m, TgTensor *cache, int64_t at, int64_t n, TgTensor *values) {
  int64_t row = begins(m->which);
  const int64_t begin[] = {row, 0, at, 0}, end[] = {tg_size_add(m->ctx, row, 1), tg_dim(cache, 1),
                                                    tg_size_add(m->ctx, at, n), tg_dim(cache, 3)};
  return tg_assign_slice(cache, begin, end, tg_unsqueeze(values, 0)) != NULL;
}

/* Writes rows (tokens, kv heads, size), which have the cache's type. */
static bool rows_put(const TgLlm *m, TgTensor *cache, TgTensor *rows, LlmRows r) {
  if (!r.at) return sequence_put(m, cache, tg_size(llm_begins(m, r)), r.each, tg_transpose(rows, 0, 1));
  const TgIndex places[] = {TG_TENSOR(r.which), TG_ALL, TG_TENSOR(r.at), TG_ALL};
  return tg_setitem(cache, places, 4, rows) != NULL;
}

bool llm_cache_put(const TgLlm *m, const LlmCache *c, TgTensor *rows, LlmRows r) {
  if (!c->scale) return rows_put(m, c->x, tg_cast(rows, m->cache), r);
  TgTensor *scale = NULL;
  rows = packed(rows, c->size, &scale);
  return rows_put(m, c->x, rows, r) && rows_put(m, c->scale, scale, r);
}

/* The first `seen` places of the cache, for each text: (texts, kv heads, seen, ..). */
static TgTensor *seen_of(const TgLlm *m, TgTensor *cache, LlmRows r, int64_t seen) {
  if (r.at) return tg_take(tg_slice(cache, 2, 0, seen), r.which);
  return tg_unsqueeze(tg_slice(of_sequence(m, cache, m->which), 1, 0, seen), 0);
}

TgTensor *llm_cache_get(const TgLlm *m, const LlmCache *c, LlmRows r, int64_t seen) {
  TgTensor *x = seen_of(m, c->x, r, seen);
  return c->scale ? unpacked(x, seen_of(m, c->scale, r, seen), c->size) : tg_cast(x, TG_F32);
}

TgStatus llm_copy(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const TgLlm *m = user;
  (void)in, (void)nin, (void)out, (void)nout;
  for (int64_t i = 0; i < m->k.layers; i++) {
    const LlmLayer *l = &m->layer[i];
    TgTensor *cache[] = {l->keys.x, l->values.x, l->keys.scale, l->values.scale};
    for (int c = 0; c < 4; c++) {
      int64_t n = tg_size(m->length);
      TgTensor *rows = cache[c] ? tg_slice(of_sequence(m, cache[c], m->other), 1, 0, n) : NULL;
      if (cache[c] && !sequence_put(m, cache[c], 0, n, rows)) return tg_error(ctx);
    }
  }
  return TG_OK;
}
