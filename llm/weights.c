/* weights.c: visits the weights of a model one after the other, and makes them trainable. In: a model. Out:
 * where it stores its weights, with their names in the file; f32 tensors that the model owns in place of
 * views of the file. */
#include "model_private.h"
#include <stdio.h>

/* Visits one weight or bias of the whole model. */
static bool own_each(TgLlm *m, const LlmOwnWeight *own, bool bias, LlmWeightFn fn, void *user) {
  char name[80];
  TgTensor **at = llm_own_place(m, own, bias);
  if (!*at || (at == &m->head && m->tied) || own->who >= OWN_ROPE) return true;
  snprintf(name, sizeof name, "%s.%s", own->name, bias ? "bias" : "weight");
  return fn(m, at, name, user);
}

bool llm_weights_each(TgLlm *m, LlmWeightFn fn, void *user) {
  char name[80];
  bool ok = true;
  const LlmOwnWeight *own;
  for (int i = 0; ok && (own = llm_own_weight(i)); i++)
    for (int bias = 0; ok && bias <= (own->bias != 0); bias++)
      ok = own_each(m, own, bias, fn, user);
  for (int64_t i = 0; ok && i < m->k.layers; i++)
    for (int w = 0; ok && w < W_COUNT; w++)
      for (int bias = 0; ok && bias < 2; bias++) {
        TgTensor **at = bias ? &m->layer[i].b[w] : &m->layer[i].w[w];
        snprintf(name, sizeof name, "blk.%lld.%s.%s", (long long)i, llm_weights_of_layer[w].name,
                 bias ? "bias" : "weight");
        ok = !*at || fn(m, at, name, user);
      }
  return ok;
}

/* ---- weights that are trained */
static bool is_plain(TgLlm *m, TgTensor **at, const char *name, void *user) {
  const TgValue *places = tg_value_get(m->gguf, "places");
  const char *type = tg_ggml_type_name((int)tg_value_int(tg_value_at(tg_value_get(places, name), 0)));
  (void)at, (void)user;
  if (!places || !type || !strcmp(type, "F32") || !strcmp(type, "F16") || !strcmp(type, "BF16")) return true;
  llm_fail(m->ctx, TG_ERR_DTYPE, "llm_unfreeze: tensor '%s' is %s: what is quantised has an adapter", name,
           type);
  return false;
}

/* A list of the weights that replace those of the file. */
typedef struct Own {
  TgTensor **t;
  int n, cap;
} Own;

static bool own_make(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Own *own = user;
  bool ok = false;
  (void)name;
  TG_SCOPE(m->ctx) {
    TgTensor *t = tg_keep(tg_clone(tg_cast(*at, TG_F32)));
    ok = t && tg_requires_grad(t, true) && !tg_realize(t);
    if (t) own->t[own->n++] = t;
  }
  return ok;
}

static bool own_take(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Own *own = user;
  (void)m, (void)name;
  *at = own->t[own->n++];
  return true;
}

static bool parameter_put(TgLlm *m, TgTensor **at, const char *name, void *user) {
  Own *own = user;
  (void)m, (void)name;
  if (own->n < own->cap) own->t[own->n] = *at;
  own->n++;
  return true;
}

int tg_llm_parameters(const TgLlm *m, TgTensor **out, int cap) {
  Own all = {out, 0, out ? cap : 0};
  if (m) llm_weights_each((TgLlm *)m, parameter_put, &all);
  return all.n;
}

static const TgField weight_fields[] = {
    {"weight", TG_FIELD_PARAMETER, offsetof(TgLlm, learned), NULL, LEARNED}};
static const TgModule weight_table = {"Llm", sizeof(TgLlm), weight_fields, 1, NULL};

const TgModule *tg_llm_module(void) { return &weight_table; }

TgStatus tg_llm_unfreeze(TgLlm *m) {
  if (!m) return TG_ERR_NOMEM;
  if (m->unfrozen) return TG_OK;
  int count = tg_llm_parameters(m, NULL, 0);
  if (count > LEARNED)
    return tg_set_error(m->ctx, TG_ERR_LIMIT, "llm_unfreeze: the model has more than 8192 weights");
  Own own = {tg_alloc(m->ctx, (size_t)count * sizeof *own.t), 0, 0};
  bool ok = own.t && llm_weights_each(m, is_plain, NULL) && llm_weights_each(m, own_make, &own);
  for (int i = 0; !ok && own.t && i < own.n; i++)
    tg_release(own.t[i]);
  if (ok) {
    own.n = 0;
    llm_weights_each(m, own_take, &own);
    memcpy(m->learned, own.t, (size_t)count * sizeof *own.t);
    if (m->tied) m->head = m->embedding;
    m->unfrozen = true;
    llm_graphs_change(m);
  }
  tg_free(m->ctx, own.t);
  return ok ? TG_OK : tg_error(m->ctx);
}

static bool own_release(TgLlm *m, TgTensor **at, const char *name, void *user) {
  (void)m, (void)name, (void)user;
  tg_release(*at);
  *at = NULL;
  return true;
}

void llm_weights_free(TgLlm *m) {
  if (m->unfrozen) llm_weights_each(m, own_release, NULL);
}
