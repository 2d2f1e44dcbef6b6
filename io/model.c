/* model.c: a model file of any format. In: a path. Out: its tensors by name. The first bytes tell the
 * format: a safetensors file has the '{' of its header at byte 8, and an index of shards begins with '{'. */
#include "io_private.h"

/* Adds new handles of the same tensors, because one tensor may have several names. */
static bool all_of(TgState *to, const TgState *from) {
  const char *name;
  TgTensor *t;
  bool ok = to != NULL;
  for (size_t i = 0; ok && (t = tg_state_at(from, i, &name)); i++)
    ok = state_own(to, name, strlen(name), tg_reshape(t, tg_ndim(t), tg_shape(t)));
  return ok;
}

TgState *tg_state_from_file(TgContext *ctx, const char *path) {
  Source s;
  TgValue *tree = NULL;
  TgState *flat = NULL, *out = NULL;
  if (tg_scope_begin(ctx)) return NULL;
  bool ok = source_open(&s, file_tensor(ctx, path), "state_from_file", path), json = false;
  if (ok) {
    json = s.n > 8 && (s.p[8] == '{' || s.p[0] == '{');
    if (s.n >= 4 && !memcmp(s.p, "GGUF", 4))
      tree = tg_gguf_load_file(ctx, path);
    else if (zip_is(&s) || tar_is(&s) || (s.n > 2 && s.p[0] == 0x80 && !json))
      tree = tg_torch_load_file(ctx, path);
    else if (json)
      out = tg_safe_load_file(ctx, path);
    else
      io_fail(&s, TG_ERR_VALUE, "no safetensors, torch or gguf file");
  }
  source_close(&s);
  const TgValue *gguf = tg_value_get(tree, "kv") ? tg_value_get(tree, "tensors") : NULL;
  for (size_t i = 0; gguf && ok && i < tg_value_count(gguf); i++)
    if (tg_value_kind(tg_value_at(gguf, i)) != TG_KIND_TENSOR)
      ok = ctx_fail(ctx, TG_ERR_VALUE, "state_from_file: %.600s: %.63s has a type that is not read here",
                    path, tg_value_string(tg_value_key(gguf, i), NULL));
  if (tree && ok) flat = tg_get_state(ctx, gguf ? gguf : tree, NULL);
  if (flat && !all_of(out = tg_state_new(ctx), flat)) {
    tg_state_free(out);
    out = NULL;
  }
  tg_state_free(flat), tg_value_free(tree);
  tg_scope_end(ctx);
  return out;
}
