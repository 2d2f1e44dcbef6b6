/* vision_file.c: checks the contents of a mmproj file against its projector's row. In: key-values and tensors
 * of a gguf file of architecture clip. Out: the numbers and weights of a vision tower. As for a model's own
 * file (file.c), every number and shape is checked first. An unused tensor is an error, because it would have
 * changed the result. */
#include "vision_private.h"
#include <math.h>
#include <stdio.h>

#define OWN(w) ((uint64_t)1 << (w))

static const VisionKind kinds[] = {{.name = "mlp",
                                    .models = "LLaVA 1.5",
                                    .projection = PROJECT_MLP,
                                    .merge = 1,
                                    .filter = FILTER_BICUBIC,
                                    .padded = true,
                                    .own = OWN(V_MLP_IN) | OWN(V_MLP_OUT),
                                    .begin = "",
                                    .end = "",
                                    .mark = {"<image>"}},
                                   {.name = "gemma3",
                                    .models = "Gemma 3",
                                    .projection = PROJECT_MEANS,
                                    .merge = 4,
                                    .filter = FILTER_BILINEAR,
                                    .post_norm = true,
                                    .mutual = true,
                                    .own = OWN(V_SOFT_NORM) | OWN(V_INPUT),
                                    .begin = "\n\n<start_of_image>",
                                    .end = "<end_of_image>\n\n",
                                    .mark = {"<start_of_image>", "<image>"},
                                    .tiling = TILES_CROPS,
                                    .texts = {.whole = "Here is the original image \n\n<start_of_image>",
                                              .first = "<end_of_image>\n\n and here are some crops to help "
                                                       "you see better \n\n<start_of_image>",
                                              .tile = "<end_of_image>\n\n \n\n<start_of_image>",
                                              .row = ""}},
                                   {.name = "idefics3",
                                    .models = "SmolVLM, Idefics 3",
                                    .projection = PROJECT_SHUFFLED,
                                    .merge = 2,
                                    .filter = FILTER_LANCZOS,
                                    .post_norm = true,
                                    .own = OWN(V_FC),
                                    .begin = "<fake_token_around_image><global-img>",
                                    .end = "<fake_token_around_image>",
                                    .mark = {"<image>"},
                                    .tiling = TILES_GRID,
                                    .texts = {.whole_last = true,
                                              .whole = "\n<fake_token_around_image><global-img>",
                                              .tile = "<fake_token_around_image><row_{row}_col_{col}>",
                                              .row = "\n"}}};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- numbers */
static const VisionKind *kind_of(TgContext *ctx, const TgValue *gguf) {
  const char *name = NULL, *of_all = NULL;
  char known[200];
  if (!llm_kv_text(ctx, gguf, "clip.vision.projector_type", &name) ||
      !llm_kv_text(ctx, gguf, "clip.projector_type", &of_all))
    return NULL;
  if (!name) name = of_all ? of_all : "mlp"; /* old files have no such key and are of this type */
  size_t at = 0;
  for (int i = 0; i < KINDS; i++) {
    if (!strcmp(kinds[i].name, name)) return &kinds[i];
    at += (size_t)snprintf(known + at, sizeof known - at, "%s%s (%s)", i ? ", " : "", kinds[i].name,
                           kinds[i].models);
  }
  llm_fail(ctx, TG_ERR_VALUE, "vision: a projector of type '%.60s' is not known here: there are %s", name,
           known);
  return NULL;
}

static bool whole_of(TgVision *v, const char *key, int64_t fallback, int64_t most, int64_t *out) {
  char name[80];
  snprintf(name, sizeof name, "clip.vision.%s", key);
  if (fallback < 0 && !llm_kv(v->gguf, name))
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision: the file has no %s", name);
  if (!llm_kv_int(v->ctx, v->gguf, name, fallback, out)) return false;
  return (*out >= 1 && *out <= most) || llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s is %lld, of 1 to %lld",
                                                 name, (long long)*out, (long long)most);
}

/* Reads three numbers, one for each colour. */
static bool colours_of(TgVision *v, const char *key, float fallback, float out[3]) {
  const TgValue *has = llm_kv(v->gguf, key);
  TgTensor *t = tg_value_tensor(has);
  out[0] = out[1] = out[2] = fallback;
  if (has && (!t || tg_dtype(t) != TG_F32 || tg_numel(t) != 3))
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s is no list of three numbers", key);
  if (t && tg_read(t, out, 3 * sizeof *out)) return false;
  for (int i = 0; i < 3; i++)
    if (!isfinite(out[i]) || fabsf(out[i]) > 1e3f)
      return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s has %g", key, (double)out[i]);
  return true;
}

/* Reads the layers whose outputs the projector reads, side by side; layer 0 is the input of the first
 * layer. */
static bool features_read(TgVision *v) {
  const char *key = "clip.vision.feature_layer";
  const TgValue *has = llm_kv(v->gguf, key);
  TgTensor *t = tg_value_tensor(has);
  int32_t all[VISION_FEATURES];
  if (!has) return true;
  if (!t || tg_dtype(t) != TG_I32 || tg_numel(t) < 1 || tg_numel(t) > VISION_FEATURES)
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s is no list of 1 to %d whole numbers", key,
                    VISION_FEATURES);
  if (v->kind->projection != PROJECT_MLP)
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s: not known here of %s", key, v->kind->name);
  v->k.nfeatures = tg_numel(t);
  if (tg_read(t, all, (size_t)v->k.nfeatures * sizeof *all)) return false;
  int64_t most = 0;
  for (int64_t i = 0; i < v->k.nfeatures; i++) {
    if (all[i] < 0 || all[i] > v->k.layers)
      return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s has %d, of %lld layers", key, (int)all[i],
                      (long long)v->k.layers);
    v->k.features[i] = all[i];
    if (all[i] > most) most = all[i];
  }
  v->k.layers = most; /* the outputs of later layers are not read */
  return true;
}

static bool activation_read(TgVision *v) {
  int64_t gelu, silu;
  if (!llm_kv_int(v->ctx, v->gguf, "clip.use_gelu", 0, &gelu) ||
      !llm_kv_int(v->ctx, v->gguf, "clip.use_silu", 0, &silu))
    return false;
  if (gelu && silu)
    return llm_fail(v->ctx, TG_ERR_VALUE, "vision: clip.use_gelu and clip.use_silu cannot both be");
  v->act = gelu ? V_GELU : silu ? V_SILU : V_QUICK_GELU;
  return true;
}

static bool together(TgVision *v, bool ok, const char *what, int64_t a, int64_t b) {
  return ok || llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s: %lld and %lld", what, (long long)a, (long long)b);
}

static bool numbers_read(TgVision *v) {
  VisionNumbers *k = &v->k;
  int64_t sees;
  if (!llm_kv_int(v->ctx, v->gguf, "clip.has_vision_encoder", 1, &sees)) return false;
  if (!sees) return llm_fail(v->ctx, TG_ERR_VALUE, "vision: clip.has_vision_encoder is false");
  if (!whole_of(v, "image_size", -1, 4096, &k->image) || !whole_of(v, "patch_size", -1, 4096, &k->patch) ||
      !whole_of(v, "embedding_length", -1, 65536, &k->width) ||
      !whole_of(v, "feed_forward_length", -1, 1 << 18, &k->ffn) ||
      !whole_of(v, "block_count", -1, VISION_LAYERS, &k->layers) ||
      !whole_of(v, "attention.head_count", -1, 1024, &k->heads) ||
      !whole_of(v, "projector.scale_factor", v->kind->merge, 64, &k->merge))
    return false;
  const char *eps = "clip.vision.attention.layer_norm_epsilon";
  if (!llm_kv_real(v->ctx, v->gguf, eps, 1e-6, &k->eps)) return false;
  if (!(k->eps >= 0 && k->eps < 1)) return llm_fail(v->ctx, TG_ERR_VALUE, "vision: %s is %g", eps, k->eps);
  if (!colours_of(v, "clip.vision.image_mean", 0.5f, k->mean) ||
      !colours_of(v, "clip.vision.image_std", 0.5f, k->std))
    return false;
  for (int i = 0; i < 3; i++)
    if (k->std[i] <= 0 || k->mean[i] < 0 || k->mean[i] > 1)
      return llm_fail(v->ctx, TG_ERR_VALUE, "vision: clip.vision.image_mean has %g, image_std %g",
                      (double)k->mean[i], (double)k->std[i]);
  if (v->kind->projection == PROJECT_MLP) k->merge = 1;
  if (!together(v, k->patch <= k->image, "image_size and patch_size", k->image, k->patch) ||
      !together(v, k->width % k->heads == 0, "embedding_length and attention.head_count", k->width, k->heads))
    return false;
  k->side = k->image / k->patch;
  k->patches = k->side * k->side;
  if (!together(v, k->side % k->merge == 0, "patches of a side, and projector.scale_factor", k->side,
                k->merge))
    return false;
  k->tokens = k->patches / (k->merge * k->merge);
  return activation_read(v) && features_read(v);
}

/* ---- weights */
static int64_t size_of(const TgVision *v, VisionSize s) {
  const VisionNumbers *k = &v->k;
  switch (s) {
  case VS_WIDTH: return k->width;
  case VS_FFN: return k->ffn;
  case VS_PLACES: return k->places;
  case VS_FEATURES: return k->width * (k->nfeatures ? k->nfeatures : 1);
  case VS_MERGED: return k->width * k->merge * k->merge;
  case VS_TEXT: return tg_llm_about(v->m).width;
  default: return 0;
  }
}

static const struct {
  const char *name;
  VisionSize dims[2];
} weights_of_layer[V_COUNT] = {[V_LN_1] = {"ln1", {VS_WIDTH}},
                               [V_Q] = {"attn_q", {VS_WIDTH, VS_WIDTH}},
                               [V_K] = {"attn_k", {VS_WIDTH, VS_WIDTH}},
                               [V_V] = {"attn_v", {VS_WIDTH, VS_WIDTH}},
                               [V_OUT] = {"attn_out", {VS_WIDTH, VS_WIDTH}},
                               [V_LN_2] = {"ln2", {VS_WIDTH}},
                               [V_UP] = {"ffn_up", {VS_FFN, VS_WIDTH}},
                               [V_DOWN] = {"ffn_down", {VS_WIDTH, VS_FFN}}};

/* plain: the name does not end with ".weight", and there is no bias. The shape of the patches' weight is
 * handled separately. */
static const struct {
  const char *name;
  VisionSize dims[2];
  bool plain;
} own_weights[V_OWN] = {[V_PATCH] = {"v.patch_embd", {VS_NONE}, false},
                        [V_CLASS] = {"v.class_embd", {VS_WIDTH}, true},
                        [V_POSITIONS] = {"v.position_embd", {VS_PLACES, VS_WIDTH}, false},
                        [V_PRE_NORM] = {"v.pre_ln", {VS_WIDTH}, false},
                        [V_POST_NORM] = {"v.post_ln", {VS_WIDTH}, false},
                        [V_MLP_IN] = {"mm.0", {VS_TEXT, VS_FEATURES}, false},
                        [V_MLP_OUT] = {"mm.2", {VS_TEXT, VS_TEXT}, false},
                        [V_SOFT_NORM] = {"mm.soft_emb_norm", {VS_WIDTH}, false},
                        [V_INPUT] = {"mm.input_projection", {VS_WIDTH, VS_TEXT}, false},
                        [V_FC] = {"mm.model.fc", {VS_TEXT, VS_MERGED}, false}};

/* The tensor of that name and shape. ok: false from the first error on. */
static TgTensor *find(TgVision *v, const char *name, bool must, int n, const int64_t *dims, bool *ok) {
  const TgValue *has = tg_value_get(tg_value_get(v->gguf, "tensors"), name);
  TgTensor *t = tg_value_tensor(has);
  char is[120], should[120];
  if (!*ok) return NULL;
  if (!t) {
    if (has)
      *ok = llm_fail(v->ctx, TG_ERR_VALUE, "vision: tensor '%s' is of a type whose values are not known here",
                     name);
    else if (must)
      *ok = llm_fail(v->ctx, TG_ERR_VALUE, "vision: the file has no tensor '%s'", name);
    return NULL;
  }
  bool same = tg_ndim(t) == n;
  for (int i = 0; same && i < n; i++)
    same = tg_dim(t, i) == dims[i];
  if (same) return t;
  *ok = llm_fail(v->ctx, TG_ERR_VALUE, "vision: tensor '%s' is %s, where the model has %s", name,
                 llm_dims_text(is, sizeof is, tg_ndim(t), tg_shape(t)),
                 llm_dims_text(should, sizeof should, n, dims));
  return NULL;
}

static void own_find(TgVision *v, VisionOwn w, bool must, bool *ok) {
  const VisionSize *sizes = own_weights[w].dims;
  bool plain = own_weights[w].plain;
  char name[80];
  int64_t dims[4] = {size_of(v, sizes[0]), sizes[1] ? size_of(v, sizes[1]) : 0};
  int n = sizes[1] ? 2 : 1;
  if (w == V_PATCH) {
    const int64_t patch[] = {v->k.width, 3, v->k.patch, v->k.patch};
    memcpy(dims, patch, sizeof patch);
    n = 4;
  }
  snprintf(name, sizeof name, "%s%s", own_weights[w].name, plain ? "" : ".weight");
  v->w[w] = find(v, name, must, n, dims, ok);
  if (plain || !v->w[w]) return;
  snprintf(name, sizeof name, "%s.bias", own_weights[w].name);
  v->b[w] = find(v, name, false, 1, dims, ok);
}

static void layer_find(TgVision *v, int64_t i, bool *ok) {
  char name[80];
  for (int w = 0; w < V_COUNT; w++) {
    const VisionSize *sizes = weights_of_layer[w].dims;
    int64_t dims[2] = {size_of(v, sizes[0]), sizes[1] ? size_of(v, sizes[1]) : 0};
    int filed = !v->swapped ? w : w == V_UP ? V_DOWN : w == V_DOWN ? V_UP : w;
    snprintf(name, sizeof name, "v.blk.%lld.%s.weight", (long long)i, weights_of_layer[filed].name);
    v->layer[i].w[w] = find(v, name, true, sizes[1] ? 2 : 1, dims, ok);
    snprintf(name, sizeof name, "v.blk.%lld.%s.bias", (long long)i, weights_of_layer[filed].name);
    v->layer[i].b[w] = find(v, name, false, 1, dims, ok);
  }
}

/* Whether the file calls the first matrix ffn_down, as older files do: its shape shows that. */
static bool is_swapped(const TgVision *v) {
  const TgValue *all = tg_value_get(v->gguf, "tensors");
  TgTensor *down = tg_value_tensor(tg_value_get(all, "v.blk.0.ffn_down.weight"));
  return down && tg_ndim(down) == 2 && tg_dim(down, 0) == v->k.ffn && tg_dim(down, 1) == v->k.width;
}

/* Whether this tensor may be unused: it belongs to a layer after the last one that is read, or to an unused
 * norm after the layers. */
static bool is_left(const TgVision *v, const char *name) {
  int layer = 0;
  if (sscanf(name, "v.blk.%9d.", &layer) == 1) return layer >= v->k.layers;
  return !v->kind->post_norm && !strncmp(name, "v.post_ln.", 10);
}

static bool is_used(const TgVision *v, const TgTensor *t) {
  for (int w = 0; w < V_OWN; w++)
    if (t == v->w[w] || t == v->b[w]) return true;
  for (int64_t i = 0; i < v->k.layers; i++)
    for (int w = 0; w < V_COUNT; w++)
      if (t == v->layer[i].w[w] || t == v->layer[i].b[w]) return true;
  return false;
}

static bool all_used(const TgVision *v) {
  const TgValue *all = tg_value_get(v->gguf, "tensors");
  for (size_t i = 0; i < tg_value_count(all); i++) {
    const char *name = tg_value_string(tg_value_key(all, i), NULL);
    const TgTensor *t = tg_value_tensor(tg_value_at(all, i));
    if (!is_left(v, name) && !(t && is_used(v, t)))
      return llm_fail(v->ctx, TG_ERR_VALUE, "vision: tensor '%.63s' is none that %s has here", name,
                      v->kind->name);
  }
  return true;
}

static bool weights_find(TgVision *v) {
  bool ok = true;
  v->layer = tg_alloc(v->ctx, (size_t)(v->k.layers + 1) * sizeof *v->layer);
  if (!v->layer) return false;
  own_find(v, V_PATCH, true, &ok);
  own_find(v, V_CLASS, false, &ok);
  v->k.places = v->k.patches + (v->w[V_CLASS] != NULL);
  own_find(v, V_POSITIONS, true, &ok);
  own_find(v, V_PRE_NORM, false, &ok);
  if (v->kind->post_norm) own_find(v, V_POST_NORM, true, &ok);
  for (int w = V_MLP_IN; w < V_OWN; w++)
    if (v->kind->own & OWN(w)) own_find(v, (VisionOwn)w, true, &ok);
  v->swapped = is_swapped(v);
  for (int64_t i = 0; ok && i < v->k.layers; i++)
    layer_find(v, i, &ok);
  return ok && all_used(v);
}

bool vision_read(TgVision *v) {
  const char *architecture = NULL;
  if (!llm_kv_text(v->ctx, v->gguf, "general.architecture", &architecture)) return false;
  if (!architecture || strcmp(architecture, "clip"))
    return llm_fail(v->ctx, TG_ERR_VALUE,
                    "vision: general.architecture is '%.60s': the file of a vision tower (mmproj) has 'clip'",
                    architecture ? architecture : "");
  return (v->kind = kind_of(v->ctx, v->gguf)) && numbers_read(v) && weights_find(v);
}
