/* vision.c: pictures for a language model. In: RGB bytes. Out: vectors that take the place of tokens in a
 * text (given.c). A vision tower reads the patches of the picture like a text of fixed length whose tokens
 * all see each other; a projector turns its output into vectors of the language model's width. Each layer is
 * a captured program of its own, so that the memory of its decoded weights is released before the next layer
 * runs. */
#include "vision_private.h"
#include <math.h>
#include <sys/stat.h>

enum { MOST_SIDE = 1 << 15, MOST_PIXELS = 1 << 28, QUERIES_AT_ONCE = 512 };

/* ---- graphs */
static TgTensor *normed(const TgVision *v, TgTensor *x, TgTensor *w, TgTensor *b) {
  if (!w) return x;
  return tg_layer_norm(x, .weight = tg_cast(w, TG_F32), .bias = b ? tg_cast(b, TG_F32) : NULL,
                       .eps = v->k.eps);
}

static TgTensor *times(TgTensor *x, TgTensor *w, TgTensor *b) {
  return tg_linear(x, w, b ? tg_cast(b, TG_F32) : NULL);
}

static TgTensor *product(const VisionLayer *l, TgTensor *x, VisionWeight w) {
  return times(x, l->w[w], l->b[w]);
}

/* pixels (3, image, image) -> the tower's tokens (places, width), by one product for each patch */
static TgTensor *patches_of(const TgVision *v, TgTensor *x) {
  const VisionNumbers *k = &v->k;
  int64_t n = k->side * k->patch; /* pixels that are left at the edges belong to no patch */
  x = tg_slice(tg_slice(x, 1, 0, n), 2, 0, n);
  x = tg_reshape(x, TG_SHAPE(3, k->side, k->patch, k->side, k->patch));
  x = tg_permute(x, 5, (const int64_t[]){1, 3, 0, 2, 4});
  x = tg_reshape(x, TG_SHAPE(k->patches, 3 * k->patch * k->patch));
  TgTensor *w = tg_reshape(v->w[V_PATCH], TG_SHAPE(k->width, 3 * k->patch * k->patch));
  x = times(tg_contiguous(x), w, v->b[V_PATCH]);
  if (v->w[V_CLASS])
    x = tg_cat(TG_TENSORS(tg_cast(tg_reshape(v->w[V_CLASS], TG_SHAPE(1, k->width)), TG_F32), x), 0);
  x = tg_add(x, tg_cast(v->w[V_POSITIONS], TG_F32));
  return normed(v, x, v->w[V_PRE_NORM], v->b[V_PRE_NORM]);
}

/* (places, width) -> (heads, places, size) */
static TgTensor *heads_of(const TgVision *v, TgTensor *x) {
  const VisionNumbers *k = &v->k;
  return tg_transpose(tg_reshape(x, TG_SHAPE(k->places, k->heads, k->width / k->heads)), 0, 1);
}

/* Computes some queries at a time, because the scores of all would need too much memory. */
static TgTensor *attention(const TgVision *v, const VisionLayer *l, TgTensor *x) {
  const VisionNumbers *k = &v->k;
  double scale = 1 / sqrt((double)(k->width / k->heads));
  TgTensor *q = tg_contiguous(heads_of(v, tg_mul_scalar(product(l, x, V_Q), scale)));
  TgTensor *keys = tg_contiguous(tg_transpose(heads_of(v, product(l, x, V_K)), 1, 2));
  TgTensor *values = tg_contiguous(heads_of(v, product(l, x, V_V))), *y = NULL;
  for (int64_t at = 0; at < k->places; at += QUERIES_AT_ONCE) {
    int64_t end = at + QUERIES_AT_ONCE < k->places ? at + QUERIES_AT_ONCE : k->places;
    TgTensor *score = tg_matmul(tg_slice(q, 1, at, end), keys);
    TgTensor *part = tg_contiguous(tg_matmul(tg_softmax(score), values));
    y = y ? tg_cat(TG_TENSORS(y, part), 1) : part;
  }
  y = tg_reshape(tg_transpose(y, 0, 1), TG_SHAPE(k->places, k->width));
  return product(l, y, V_OUT);
}

static TgTensor *activated(const TgVision *v, TgTensor *x) {
  if (v->act == V_GELU) return tg_gelu(x);
  if (v->act == V_SILU) return tg_silu(x);
  return tg_mul(x, tg_sigmoid(tg_mul_scalar(x, 1.702)));
}

static TgTensor *layer_of(const TgVision *v, const VisionLayer *l, TgTensor *x) {
  x = tg_contiguous(tg_add(x, attention(v, l, normed(v, x, l->w[V_LN_1], l->b[V_LN_1]))));
  TgTensor *y = product(l, normed(v, x, l->w[V_LN_2], l->b[V_LN_2]), V_UP);
  return tg_add(x, product(l, activated(v, y), V_DOWN));
}

/* Arranges each square of merge x merge tokens (patches, width) as one row: (tokens, merge * merge,
 * width). */
static TgTensor *squares_of(const TgVision *v, TgTensor *x) {
  const VisionNumbers *k = &v->k;
  int64_t n = k->side / k->merge;
  x = tg_reshape(x, TG_SHAPE(n, k->merge, n, k->merge, k->width));
  x = tg_permute(x, 5, (const int64_t[]){0, 2, 1, 3, 4});
  return tg_reshape(x, TG_SHAPE(k->tokens, k->merge * k->merge, k->width));
}

/* The projector's result for the tower's tokens (places, width), of several layers if it reads several:
 * (tokens, the language model's width). */
static TgTensor *projected(const TgVision *v, TgTensor *const *in, int nin) {
  const VisionNumbers *k = &v->k;
  TgTensor *x = in[0];
  for (int i = 1; i < nin; i++)
    x = tg_cat(TG_TENSORS(x, in[i]), 1);
  if (v->kind->post_norm) x = normed(v, x, v->w[V_POST_NORM], v->b[V_POST_NORM]);
  if (v->w[V_CLASS]) x = tg_slice(x, 0, 1, k->places);
  switch (v->kind->projection) {
  case PROJECT_MEANS:
    x = tg_mean(squares_of(v, x), .axis = TG_AXES(1));
    x = tg_rms_norm(x, .weight = tg_cast(v->w[V_SOFT_NORM], TG_F32), .eps = k->eps);
    return tg_matmul(x, tg_cast(v->w[V_INPUT], TG_F32));
  case PROJECT_SHUFFLED: return times(tg_flatten(squares_of(v, x), 1, 2), v->w[V_FC], v->b[V_FC]);
  default:
    x = tg_gelu_erf(times(tg_contiguous(x), v->w[V_MLP_IN], v->b[V_MLP_IN]));
    return times(x, v->w[V_MLP_OUT], v->b[V_MLP_OUT]);
  }
}

/* The TgJitFn of a part. */
static TgStatus part_run(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const VisionPart *p = user;
  (void)nout;
  TgTensor *x = p->stage == STAGE_PATCHES ? patches_of(p->v, in[0])
                : p->stage == STAGE_LAYER ? layer_of(p->v, &p->v->layer[p->layer], in[0])
                                          : projected(p->v, in, nin);
  out[0] = tg_contiguous(x);
  return out[0] ? TG_OK : tg_error(ctx) ? tg_error(ctx) : TG_ERR_INTERNAL;
}

/* ---- opening */
static bool parts_make(TgVision *v) {
  v->nparts = v->k.layers + 2;
  if (!(v->part = tg_alloc(v->ctx, (size_t)v->nparts * sizeof *v->part))) return false;
  for (int64_t i = 0; i < v->nparts; i++) {
    VisionPart *p = &v->part[i];
    VisionStage stage = !i ? STAGE_PATCHES : i < v->nparts - 1 ? STAGE_LAYER : STAGE_PROJECTOR;
    *p = (VisionPart){.v = v, .stage = stage, .layer = i - 1};
    if (!(p->jit = llm_jit(v->ctx, part_run, p, false))) return false;
  }
  return true;
}

static bool open_all(TgVision *v, const char *path, int64_t tiles) {
  if (!llm_generates(v->m, "vision_open")) return false;
  if (v->m->vision) return llm_fail(v->ctx, TG_ERR_STATE, "vision_open: the model has one already");
  struct stat about;
  bool folder = !stat(path, &about) && S_ISDIR(about.st_mode);
  v->gguf = folder ? tg_hf_load_vision(v->ctx, path) : tg_gguf_load_file(v->ctx, path);
  if (!v->gguf || !vision_read(v) || !vision_tiles_read(v, tiles) || !parts_make(v)) return false;
  v->m->vision = v;
  return llm_given_make(v->m, v->kind->mutual ? v->k.tokens : 0);
}

TgVision *tg_vision_open_opt(TgLlm *m, const char *path, const TgVisionOptions *given) {
  TgVisionOptions o;
  if (!m || !path || tg_options_read(m->ctx, "vision_open", "TgVisionOptions", &o, sizeof o, given))
    return NULL;
  TgVision *v = tg_alloc(m->ctx, sizeof *v);
  if (!v) return NULL;
  v->ctx = m->ctx;
  v->m = m;
  bool ok = false;
  TG_SCOPE(m->ctx) { ok = open_all(v, path, o.tiles); }
  if (ok) return v;
  tg_vision_free(v);
  return NULL;
}

void tg_vision_free(TgVision *v) {
  if (!v) return;
  TgContext *ctx = v->ctx;
  if (v->m->vision == v) {
    llm_given_free(v->m);
    v->m->vision = NULL;
  }
  for (int64_t i = 0; v->part && i < v->nparts; i++)
    tg_jit_free(v->part[i].jit);
  for (int i = 0; i < VISION_KEPT_TILES; i++)
    tg_free(ctx, v->kept[i].pixels), tg_free(ctx, v->kept[i].vectors);
  tg_value_free(v->gguf);
  tg_free(ctx, v->part), tg_free(ctx, v->layer), tg_free(ctx, v->sheet);
  tg_free(ctx, v);
}

int64_t tg_vision_tokens(const TgVision *v) { return v ? v->k.tokens : 0; }

TgVisionAbout tg_vision_about(const TgVision *v) {
  TgVisionAbout a = {.size = sizeof a};
  if (!v) return a;
  a.projector = v->kind->name;
  a.begin = v->kind->begin;
  a.end = v->kind->end;
  for (int i = 0; i < VISION_MARKS; i++)
    a.mark[i] = v->kind->mark[i];
  a.tokens = v->k.tokens;
  a.tiles = v->k.tiles;
  a.image = v->k.image;
  a.width = tg_llm_about(v->m).width;
  a.mutual = v->kind->mutual;
  return a;
}

/* ---- pictures */
static bool is_picture(const TgVision *v, const char *what, const uint8_t *rgb, int64_t height,
                       int64_t width) {
  bool sized = height >= 1 && width >= 1 && height <= MOST_SIDE && width <= MOST_SIDE;
  if (rgb && sized && height * width <= MOST_PIXELS) return true;
  return llm_fail(v->ctx, TG_ERR_VALUE, "%s: a picture of %lld x %lld pixels", what, (long long)width,
                  (long long)height);
}

int64_t tg_vision_views(const TgVision *v, int64_t height, int64_t width) {
  static const uint8_t none;
  if (!v || !is_picture(v, "vision_views", &none, height, width)) return 0;
  return vision_views(vision_grid(v, height, width));
}

/* A view of a picture, and the hash of the picture. */
typedef struct Seen {
  const uint8_t *rgb;
  int64_t height, width, view, views;
  PictureHash hash;
} Seen;

static bool seen_begin(TgVision *v, const char *what, Seen *s, int64_t view) {
  if (!is_picture(v, what, s->rgb, s->height, s->width)) return false;
  VisionGrid g = vision_grid(v, s->height, s->width);
  s->view = view;
  s->views = vision_views(g);
  if (view < 0 || view >= s->views)
    return llm_fail(v->ctx, TG_ERR_VALUE, "%s: view %lld of a picture that has %lld", what, (long long)view,
                    (long long)s->views);
  s->hash = picture_hash(s->rgb, s->height, s->width, g.rows, g.cols);
  return true;
}

/* The bytes of a view that the tower reads, to be freed; NULL: an error. */
static uint8_t *fitted(TgVision *v, const Seen *s) {
  uint8_t *fit = tg_alloc(v->ctx, (size_t)(v->k.image * v->k.image * 3));
  if (fit && vision_view(v, s->rgb, s->height, s->width, &s->hash, s->view, fit)) return fit;
  tg_free(v->ctx, fit);
  return NULL;
}

TgStatus tg_vision_pixels(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, int64_t view,
                          float *out) {
  if (!v || !out) return v ? tg_set_error(v->ctx, TG_ERR_VALUE, "vision_pixels: no place") : TG_ERR_NOMEM;
  Seen s = {.rgb = rgb, .height = height, .width = width};
  uint8_t *fit = seen_begin(v, "vision_pixels", &s, view) ? fitted(v, &s) : NULL;
  if (!fit) return tg_error(v->ctx);
  picture_normalise(v, fit, out);
  tg_free(v->ctx, fit);
  return TG_OK;
}

/* Runs the parts, one after the other, on these pixels. */
static bool parts_run(TgVision *v, const float *pixels, float *out) {
  TgTensor *feature[VISION_FEATURES] = {NULL};
  TgTensor *x = tg_from(v->ctx, pixels, TG_F32, TG_SHAPE(3, v->k.image, v->k.image));
  for (int64_t i = 0; i <= v->k.layers; i++) { /* after part i, i layers are done */
    if (tg_cancelled(v->ctx) || tg_jit_run(v->part[i].jit, &x, 1, &x, 1)) return false;
    for (int64_t f = 0; f < v->k.nfeatures; f++)
      if (v->k.features[f] == i) feature[f] = x;
  }
  if (!v->k.nfeatures) feature[0] = x;
  int n = v->k.nfeatures ? (int)v->k.nfeatures : 1;
  if (tg_cancelled(v->ctx) || tg_jit_run(v->part[v->nparts - 1].jit, feature, n, &x, 1)) return false;
  return !tg_read(x, out, tg_nbytes(x));
}

/* The cache entry of a view that was seen recently; otherwise the entry that was used longest ago, emptied. */
static VisionKept *kept_of(TgVision *v, const uint8_t *fit, bool *there) {
  VisionKept *oldest = &v->kept[0];
  size_t n = (size_t)(v->k.image * v->k.image * 3);
  int kept = v->k.tiles ? VISION_KEPT_TILES : VISION_KEPT;
  *there = true;
  for (int i = 0; i < kept; i++) {
    VisionKept *k = &v->kept[i];
    if (k->pixels && !memcmp(k->pixels, fit, n)) return k;
    if (k->used < oldest->used) oldest = k;
  }
  tg_free(v->ctx, oldest->pixels), tg_free(v->ctx, oldest->vectors);
  *oldest = (VisionKept){.pixels = NULL};
  *there = false;
  return oldest;
}

/* The vectors of a view, owned by the vision until the next call; NULL: an error. */
static const float *vectors_of(TgVision *v, const Seen *s) {
  uint8_t *fit = fitted(v, s);
  if (!fit) return NULL;
  bool there = false, ok = false;
  VisionKept *k = kept_of(v, fit, &there);
  k->used = ++v->uses;
  if (there) {
    tg_free(v->ctx, fit);
    return k->vectors;
  }
  float *pixels = tg_alloc(v->ctx, (size_t)(v->k.image * v->k.image * 3) * sizeof *pixels);
  k->vectors = tg_alloc(v->ctx, (size_t)(v->k.tokens * tg_llm_about(v->m).width) * sizeof *k->vectors);
  if (pixels) picture_normalise(v, fit, pixels);
  if (pixels && k->vectors) TG_SCOPE(v->ctx) {
      ok = parts_run(v, pixels, k->vectors);
    }
  tg_free(v->ctx, pixels);
  if (ok) {
    k->pixels = fit;
    return k->vectors;
  }
  tg_free(v->ctx, fit), tg_free(v->ctx, k->vectors);
  *k = (VisionKept){.pixels = NULL};
  return NULL;
}

TgStatus tg_vision_vectors(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, int64_t view,
                           float *out) {
  if (!v || !out) return v ? tg_set_error(v->ctx, TG_ERR_VALUE, "vision_vectors: no place") : TG_ERR_NOMEM;
  Seen s = {.rgb = rgb, .height = height, .width = width};
  const float *all = seen_begin(v, "vision_vectors", &s, view) ? vectors_of(v, &s) : NULL;
  if (!all) return tg_error(v->ctx);
  memcpy(out, all, (size_t)(v->k.tokens * tg_llm_about(v->m).width) * sizeof *out);
  return TG_OK;
}

TgStatus tg_vision_ids(TgVision *v, const uint8_t *rgb, int64_t height, int64_t width, int32_t *ids,
                       int64_t n) {
  if (!v || !ids) return v ? tg_set_error(v->ctx, TG_ERR_VALUE, "vision_ids: no place") : TG_ERR_NOMEM;
  Seen s = {.rgb = rgb, .height = height, .width = width};
  if (!seen_begin(v, "vision_ids", &s, 0)) return tg_error(v->ctx);
  if (n != s.views * v->k.tokens) {
    llm_fail(v->ctx, TG_ERR_VALUE, "vision_ids: %lld ids, where %lld views have %lld", (long long)n,
             (long long)s.views, (long long)(s.views * v->k.tokens));
    return TG_ERR_VALUE;
  }
  picture_ids(&s.hash, 0, ids, n);
  return TG_OK;
}

TgStatus tg_llm_eval_picture(TgLlm *m, TgVision *v, const uint8_t *rgb, int64_t height, int64_t width,
                             int64_t view) {
  const char *what = "llm_eval_picture";
  if (!m) return TG_ERR_NOMEM;
  if (!v || v->m != m) return tg_set_error(m->ctx, TG_ERR_VALUE, "llm_eval_picture: no vision of this model");
  if (v->k.tokens > m->context - m->now->nids) { /* checked first, because the tower takes long */
    llm_fail(m->ctx, TG_ERR_LIMIT, "%s: %lld tokens after %lld are more than the context of %lld", what,
             (long long)v->k.tokens, (long long)m->now->nids, (long long)m->context);
    return TG_ERR_LIMIT;
  }
  Seen s = {.rgb = rgb, .height = height, .width = width};
  const float *all = seen_begin(v, what, &s, view) ? vectors_of(v, &s) : NULL;
  int32_t *ids = all ? tg_alloc(m->ctx, (size_t)v->k.tokens * sizeof *ids) : NULL;
  if (ids) picture_ids(&s.hash, view * v->k.tokens, ids, v->k.tokens);
  bool ok = ids && llm_given_eval(m, all, ids, v->k.tokens, v->kind->mutual);
  tg_free(m->ctx, ids);
  return ok ? TG_OK : tg_error(m->ctx);
}
