/* program.c: captured functions as files. In: a captured function. Out: a safetensors file. The memories
 * that persist (weights, state) are its tensors, and the program is text in its __metadata__
 * (src/engine/program.c describes the text). Therefore any reader of safetensors can see the weights, and
 * the checks of one reader cover both. */
#include "io_private.h"

static const char format_name[] = "tinygrad.program";
static const char program_key[] = "program";

/* The program's metadata, followed by the caller's. Returns NULL after an error, which is recorded. */
static const char **metadata_joined(TgContext *ctx, const char *text, const char *const *more) {
  size_t n = 0;
  while (more && more[n])
    n++;
  const char **all = tg_alloc(ctx, (n + 5) * sizeof *all);
  if (!all) return NULL;
  all[0] = "format";
  all[1] = format_name;
  all[2] = program_key;
  all[3] = text;
  if (n) memcpy(all + 4, more, n * sizeof *all);
  for (size_t i = 0; i + 1 < n; i += 2)
    if (!strcmp(more[i], "format") || !strcmp(more[i], program_key)) {
      ctx_fail(ctx, TG_ERR_VALUE, "jit_save: the metadata %s is the program's own", more[i]);
      tg_free(ctx, all);
      return NULL;
    }
  return all;
}

/* A memory that is whole on several devices is written once. */
static bool memories_put(TgJit *jit, TgState *s) {
  const char *name;
  TgTensor *t;
  for (size_t i = 0; (t = tg_jit_memory(jit, i, &name)); i++)
    if (!tg_state_get(s, name) && tg_state_put(s, name, t)) return false;
  return true;
}

/* Returns a copy of the text, because the text itself would not outlive the next call. */
static char *text_of(TgContext *ctx, TgJit *jit, const TgState *state) {
  size_t n = tg_state_count(state);
  const char **names = tg_alloc(ctx, (n + 1) * sizeof *names);
  for (size_t i = 0; names && i < n; i++)
    tg_state_at(state, i, &names[i]);
  const char *text = names ? tg_jit_to_text(jit, names, tg_get_parameters(state), (int)n) : NULL;
  char *copy = text ? tg_alloc(ctx, strlen(text) + 1) : NULL;
  if (copy) strcpy(copy, text);
  tg_free(ctx, names);
  return copy;
}

static TgStatus save(TgContext *ctx, TgJit *jit, const char *path, const TgJitSaveOptions *o) {
  if (!path) return ctx_fail(ctx, TG_ERR_VALUE, "jit_save: no path"), tg_error(ctx);
  if ((o->inputs || o->outputs) && tg_jit_name(jit, o->inputs, o->outputs)) return tg_error(ctx);
  TgState *s = tg_state_new(ctx);
  char *text = s ? text_of(ctx, jit, o->state) : NULL;
  const char **meta = text ? metadata_joined(ctx, text, o->metadata) : NULL;
  if (meta && !tg_scope_begin(ctx)) {
    if (memories_put(jit, s)) tg_safe_save(s, path, .metadata = meta);
    tg_scope_end(ctx);
  }
  tg_free(ctx, meta), tg_free(ctx, text);
  tg_state_free(s);
  return tg_error(ctx);
}

TgStatus tg_jit_save_opt(TgJit *jit, const char *path, const TgJitSaveOptions *opt) {
  TgJitSaveOptions o;
  if (!jit || tg_options_read(tg_jit_context(jit), "jit_save", "TgJitSaveOptions", &o, sizeof o, opt))
    return TG_ERR_VALUE;
  return save(tg_jit_context(jit), jit, path, &o);
}

/* ---- loading */
typedef struct Devices {
  const char *const *name;
  int n;
} Devices;

static TgJit *program_of(TgContext *ctx, const char *text, const TgState *s, Devices on) {
  size_t n = tg_state_count(s);
  const char **names = tg_alloc(ctx, (n + 1) * sizeof *names);
  for (size_t i = 0; names && i < n; i++)
    tg_state_at(s, i, &names[i]);
  TgJit *jit =
      names ? tg_jit_from_text_on(ctx, text, on.name, on.n, names, tg_get_parameters(s), (int)n) : NULL;
  tg_free(ctx, names);
  return jit;
}

static TgJit *load(TgTensor *file, const char *path, Devices on) {
  TgContext *ctx = tg_context(file);
  if (!file || tg_error(ctx)) return NULL;
  TgState *s = path ? tg_safe_load_file(ctx, path) : tg_safe_load(file);
  TgValue *head = s ? tg_safe_load_metadata(file, NULL) : NULL;
  const TgValue *meta = tg_value_get(head, "__metadata__");
  const char *format = tg_value_string(tg_value_get(meta, "format"), NULL);
  const char *text = tg_value_string(tg_value_get(meta, program_key), NULL);
  TgJit *jit = NULL;
  if (head && (!format || strcmp(format, format_name) || !text))
    ctx_fail(ctx, TG_ERR_VALUE, "program: %.600s holds tensors, and no captured function",
             path ? path : "the file");
  else if (head)
    jit = program_of(ctx, text, s, on);
  tg_value_free(head), tg_state_free(s);
  return jit;
}

TgJit *tg_jit_load(TgTensor *file) { return load(file, NULL, (Devices){0}); }

TgJit *tg_jit_load_file(TgContext *ctx, const char *path) { return tg_jit_load_file_on(ctx, path, NULL, 0); }

TgJit *tg_jit_load_file_on(TgContext *ctx, const char *path, const char *const *devices, int ndevice) {
  TgJit *jit = NULL;
  if (tg_scope_begin(ctx)) return NULL;
  jit = load(file_tensor(ctx, path), path, (Devices){devices, ndevice});
  tg_scope_end(ctx);
  return jit;
}
