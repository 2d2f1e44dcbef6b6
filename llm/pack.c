/* pack.c: reorders the quantised matrices of a model so that a processor can multiply them (tg_packed_new).
 * In: a model whose weights are views of a gguf file. Out: the matrices of its layers, and of its head, in
 * memory of their own. The file is mapped again for each matrix, so that its pages are released as soon as
 * they are copied. */
#include "model_private.h"
#include <stdio.h>
#include <string.h>

/* The rows of a matrix, or of the matrices of all experts one after the other, each of whole 32s; 0: w is
 * neither. */
static int64_t rows_of(const TgTensor *w) {
  if (tg_ndim(w) == 2) return tg_dim(w, 0);
  return tg_ndim(w) == 3 && tg_dim(w, 1) % 32 == 0 ? tg_dim(w, 0) * tg_dim(w, 1) : 0;
}

/* Packs w if that is possible; then w becomes the values of *to. */
static bool pack(TgLlm *m, const char *name, TgTensor **w, TgPacked **to) {
  const TgValue *place = tg_value_get(tg_value_get(m->gguf, "places"), name);
  int type = (int)tg_value_int(tg_value_at(place, 0));
  int64_t offset = tg_value_int(tg_value_at(place, 1)), nbytes = tg_value_int(tg_value_at(place, 2));
  int64_t rows = *w ? rows_of(*w) : 0;
  if (!place || !rows || !tg_packed_fits(rows, tg_dim(*w, -1), type)) return true;
  bool ok = false;
  TG_SCOPE(m->ctx) {
    TgTensor *data = tg_from_file(m->ctx, m->path, TG_U8, TG_SHAPE(nbytes), .offset = offset);
    *to = tg_packed_new(data, rows, tg_dim(*w, -1), type);
    TgTensor *values = tg_reshape(tg_packed_values(*to), tg_ndim(*w), tg_shape(*w));
    ok = values != NULL;
    if (ok) *w = tg_keep(values);
  }
  return ok;
}

bool llm_pack(TgLlm *m) {
  char name[80];
  const char *device = tg_device(m->embedding);
  if (m->activations == 32 || !device || strcmp(device, "CPU")) return true;
  bool ok = !m->head || pack(m, m->tied ? "token_embd.weight" : "output.weight", &m->head, &m->packed_head);
  for (int64_t i = 0; ok && i < m->k.layers; i++)
    for (int w = 0; ok && w < W_COUNT; w++) {
      snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)i, llm_weights_of_layer[w].name);
      ok = pack(m, name, &m->layer[i].w[w], &m->layer[i].packed[w]);
    }
  return ok;
}

bool llm_is_packed(const TgLlm *m) { return m->layer[0].packed[W_OUT] != NULL; }

static void unpack(TgTensor **w, TgPacked **packed) {
  if (!*packed) return;
  tg_release(*w);
  tg_packed_free(*packed);
  *w = NULL;
  *packed = NULL;
}

void llm_pack_free(TgLlm *m) {
  unpack(&m->head, &m->packed_head);
  for (int64_t i = 0; m->layer && i < m->k.layers; i++)
    for (int w = 0; w < W_COUNT; w++)
      unpack(&m->layer[i].w[w], &m->layer[i].packed[w]);
}
