/* learn.c: a training step that does not hold all values of a model. In: texts, and what is trained: an
 * adapter, or all weights. Out: the loss, and the parameters after the optimiser's step. Each layer has one
 * program forward and one backward. The backward program computes the layer again from its input, so only the
 * inputs of the layers are kept, and the memory of a layer's decoded weights is released before the next
 * layer runs. The head runs on some rows at a time, because logits are the largest values of all. */
#include "model_private.h"

enum { ROWS_AT_ONCE = 256, MOST_OF_LAYER = 2 * W_COUNT, MOST_OF_ENDS = 8 };

/* One layer, or some rows of the head, or the part before the layers. */
typedef struct LearnPart {
  struct TgLlmLearner *s;
  int64_t at, n; /* the layer; or the first row and the number of rows */
  TgJit *forward, *backward;
  int nparams, nmasks;
  TgTensor *param[MOST_OF_LAYER];
} LearnPart;

struct TgLlmLearner {
  TgLlm *m;
  TgLora *lora; /* NULL: the weights are trained */
  TgOptim *optim;
  LlmRows r;
  LearnPart *layer, *rows, first;
  int64_t nrows; /* the number of parts of the head */
  TgJit *update;
  int nparams; /* of all parts: the first part, the layers, the head */
  TgTensor **param, **grad;
};

static int64_t tokens_of(const TgLlmLearner *s) { return s->r.texts * s->r.each; }

/* ---- what is trained */
static void param_put(LearnPart *p, TgTensor *t) {
  if (t) p->param[p->nparams++] = t;
}

static void layer_params(LearnPart *p) {
  const TgLora *lora = p->s->lora;
  const LlmLayer *l = &p->s->m->layer[p->at];
  for (int w = 0; w < W_COUNT; w++) {
    param_put(p, lora ? lora->layers[p->at].a[w] : l->w[w]);
    param_put(p, lora ? lora->layers[p->at].b[w] : l->b[w]);
    p->nmasks += tg_training(p->s->m->ctx) && lora && lora->dropout > 0 && lora->layers[p->at].a[w];
  }
}

static void first_params(LearnPart *p) {
  if (p->s->lora) return;
  param_put(p, p->s->m->embedding);
  param_put(p, p->s->m->positions);
  param_put(p, p->s->m->embedding_norm);
  param_put(p, p->s->m->embedding_norm_bias);
}

static void head_params(LearnPart *p) {
  const TgLlm *m = p->s->m;
  if (p->s->lora) return;
  param_put(p, m->norm);
  param_put(p, m->norm_bias);
  param_put(p, m->head);
  param_put(p, m->head_bias);
}

/* ---- programs */
static TgStatus status_of(TgContext *ctx, bool ok) {
  return ok ? TG_OK : tg_error(ctx) ? tg_error(ctx) : TG_ERR_INTERNAL;
}

/* The layer's result for x. mask: the elements that dropout keeps, one tensor for each adapted weight; draw:
 * they are drawn here. */
static TgTensor *layer_of(const LearnPart *p, TgTensor *x, TgTensor **mask, bool draw) {
  TgLora *lora = p->s->lora;
  TgTensor *by_weight[W_COUNT] = {NULL};
  int n = 0;
  for (int w = 0; p->nmasks && w < W_COUNT; w++) {
    TgTensor *a = lora->layers[p->at].a[w];
    if (!a) continue;
    if (draw) {
      int64_t dims[] = {tokens_of(p->s), tg_dim(a, 1)};
      mask[n] = tg_ge_scalar(tg_rand(p->s->m->ctx, 2, dims), lora->dropout);
    }
    by_weight[w] = mask[n++];
  }
  if (lora) lora->mask = by_weight;
  x = llm_layers(p->s->m, x, p->s->r, p->at, p->at + 1);
  if (lora) lora->mask = NULL;
  return x;
}

static TgStatus layer_forward(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                              void *user) {
  const LearnPart *p = user;
  (void)nin, (void)nout;
  out[0] = layer_of(p, in[0], out + 1, true);
  return status_of(ctx, out[0]);
}

/* in: x, the gradient of the layer's result, masks; out: the gradients of the parameters, then that of x. */
static TgStatus layer_backward(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                               void *user) {
  const LearnPart *p = user;
  TgTensor *target[MOST_OF_LAYER + 1], *mask[W_COUNT] = {NULL};
  for (int i = 0; i < p->nmasks; i++)
    mask[i] = in[2 + i];
  (void)nin;
  for (int i = 0; i < p->nparams; i++)
    target[i] = p->param[i];
  target[p->nparams] = in[0];
  return status_of(ctx, !tg_vjp(layer_of(p, in[0], mask, false), in[1], target, nout, out));
}

static TgStatus first_forward(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                              void *user) {
  const LearnPart *p = user;
  (void)nin, (void)nout;
  out[0] = llm_embedded(p->s->m, tg_flatten(in[0], 0, -1), p->s->r);
  return status_of(ctx, out[0]);
}

static TgStatus first_backward(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                               void *user) {
  const LearnPart *p = user;
  (void)nin;
  TgTensor *x = llm_embedded(p->s->m, tg_flatten(in[0], 0, -1), p->s->r);
  return status_of(ctx, !tg_vjp(x, in[1], p->param, nout, out));
}

/* in: x of all tokens, targets, the inverse of the number that the loss is divided by; out: the loss of these
 * rows, the gradient of their x, the gradients of the parameters. */
static TgStatus head_both(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                          void *user) {
  const LearnPart *p = user;
  TgTensor *target[MOST_OF_LAYER + 1];
  (void)nin;
  TgTensor *x = tg_slice(in[0], 0, p->at, p->at + p->n);
  TgTensor *wanted = tg_slice(tg_flatten(in[1], 0, -1), 0, p->at, p->at + p->n);
  TgTensor *sum = tg_sparse_cross_entropy(llm_logits_of(p->s->m, x, (LlmRows){.whole = true}), wanted,
                                          .reduction = TG_SUM, .ignore = true, .ignore_index = -1);
  out[0] = tg_mul(sum, in[2]);
  target[0] = x;
  for (int i = 0; i < p->nparams; i++)
    target[1 + i] = p->param[i];
  return status_of(ctx, !tg_gradient(out[0], target, nout - 1, out + 1));
}

/* in: the gradients of all parameters. The sum of their products with the parameters has exactly these
 * gradients, so tg_backward of it gives them to the optimiser. */
static TgStatus updated(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const TgLlmLearner *s = user;
  TgTensor *sum = NULL;
  (void)out, (void)nout;
  for (int i = 0; i < nin; i++) {
    TgTensor *product = tg_sum(tg_mul(s->param[i], in[i]));
    sum = sum ? tg_add(sum, product) : product;
  }
  TgStatus status = sum ? tg_backward(sum) : status_of(ctx, false);
  return status ? status : tg_optim_step(s->optim);
}

/* ---- making the programs */
static bool part_make(LearnPart *p, TgJitFn forward, TgJitFn backward) {
  TgContext *ctx = p->s->m->ctx;
  p->forward = forward ? llm_jit(ctx, forward, p, false) : NULL;
  p->backward = backward ? llm_jit(ctx, backward, p, false) : NULL;
  return (p->forward || !forward) && (p->backward || !backward);
}

static void parts_free(TgLlmLearner *s) {
  for (int64_t i = 0; s->layer && i < s->m->k.layers; i++)
    tg_jit_free(s->layer[i].forward), tg_jit_free(s->layer[i].backward);
  for (int64_t i = 0; s->rows && i < s->nrows; i++)
    tg_jit_free(s->rows[i].forward);
  tg_jit_free(s->first.forward), tg_jit_free(s->first.backward), tg_jit_free(s->update);
  tg_free(s->m->ctx, s->layer), tg_free(s->m->ctx, s->rows);
  tg_free(s->m->ctx, s->param), tg_free(s->m->ctx, s->grad);
  s->layer = s->rows = NULL;
  s->first = (LearnPart){.s = s};
  s->update = NULL;
  s->param = s->grad = NULL;
}

static bool layers_make(TgLlmLearner *s) {
  bool ok = (s->layer = tg_alloc(s->m->ctx, (size_t)s->m->k.layers * sizeof *s->layer)) != NULL;
  for (int64_t i = 0; ok && i < s->m->k.layers; i++) {
    LearnPart *p = &s->layer[i];
    p->s = s;
    p->at = i;
    layer_params(p);
    ok = part_make(p, layer_forward, layer_backward);
  }
  return ok;
}

static bool head_make(TgLlmLearner *s) {
  int64_t n = tokens_of(s);
  s->nrows = (n + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
  bool ok = (s->rows = tg_alloc(s->m->ctx, (size_t)s->nrows * sizeof *s->rows)) != NULL;
  for (int64_t i = 0; ok && i < s->nrows; i++) {
    LearnPart *p = &s->rows[i];
    p->s = s;
    p->at = i * ROWS_AT_ONCE;
    p->n = n - p->at < ROWS_AT_ONCE ? n - p->at : ROWS_AT_ONCE;
    head_params(p);
    ok = part_make(p, head_both, NULL);
  }
  return ok;
}

/* Lists the parameters of all parts; a head that is the table of tokens is listed once. */
static bool params_list(TgLlmLearner *s) {
  int most = 2 * MOST_OF_ENDS + (int)s->m->k.layers * MOST_OF_LAYER;
  s->param = tg_alloc(s->m->ctx, (size_t)most * sizeof *s->param);
  s->grad = tg_alloc(s->m->ctx, (size_t)most * sizeof *s->grad);
  if (!s->param || !s->grad) return false;
  s->nparams = 0;
  for (int64_t k = -1; k <= s->m->k.layers; k++) {
    const LearnPart *p = k < 0 ? &s->first : k < s->m->k.layers ? &s->layer[k] : &s->rows[0];
    for (int i = 0; i < p->nparams; i++)
      if (k < s->m->k.layers || p->param[i] != s->m->embedding) s->param[s->nparams++] = p->param[i];
  }
  return s->nparams > 0 || llm_fail(s->m->ctx, TG_ERR_VALUE, "llm_learn: nothing is to be learned");
}

static bool programs_make(TgLlmLearner *s, int64_t texts, int64_t each) {
  parts_free(s);
  s->r = (LlmRows){.texts = texts, .each = each, .whole = true};
  first_params(&s->first);
  return part_make(&s->first, first_forward, s->first.nparams ? first_backward : NULL) && layers_make(s) &&
         head_make(s) && params_list(s) && (s->update = llm_jit(s->m->ctx, updated, s, false));
}

/* ---- a step */
typedef struct Step {
  TgLlmLearner *s;
  TgTensor **x;    /* the inputs of each layer and of the head; kept */
  TgTensor **mask; /* W_COUNT for each layer; kept */
  TgTensor *g;     /* the gradient of a layer's result; kept */
  double loss;
} Step;

/* Runs a program in a scope of its own, because the handles that planning makes hold memory. Its outputs are
 * kept. */
static bool run(TgLlmLearner *s, TgJit *jit, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  bool ok = !tg_cancelled(s->m->ctx);
  for (int i = 0; i < nout; i++)
    out[i] = NULL;
  if (ok) TG_SCOPE(s->m->ctx) {
      ok = !tg_jit_run(jit, in, nin, out, nout);
      for (int i = 0; i < nout; i++)
        out[i] = ok ? tg_keep(out[i]) : NULL;
    }
  return ok;
}

static void released(TgTensor **t, int n) {
  for (int i = 0; i < n; i++) {
    tg_release(t[i]);
    t[i] = NULL;
  }
}

/* Replaces a kept tensor by its numbers. A kept tensor still has the graph that it was computed by, and the
 * gradients of later results would follow that graph. */
static bool loose(TgLlmLearner *s, TgTensor **t) {
  TgContext *ctx = s->m->ctx;
  size_t n = tg_nbytes(*t);
  void *v = tg_alloc(ctx, n);
  bool ok = v && !tg_read(*t, v, n);
  TgTensor *numbers = NULL;
  if (ok) TG_SCOPE(ctx) {
      numbers = tg_keep(tg_from(ctx, v, tg_dtype(*t), tg_ndim(*t), tg_shape(*t)));
    }
  tg_free(ctx, v);
  if (!numbers) return false;
  tg_release(*t);
  *t = numbers;
  return true;
}

static bool forward(Step *t, TgTensor *ids) {
  TgLlmLearner *s = t->s;
  TgTensor *out[1 + W_COUNT];
  if (!run(s, s->first.forward, &ids, 1, &t->x[0], 1)) return false;
  for (int64_t i = 0; i < s->m->k.layers; i++) {
    LearnPart *p = &s->layer[i];
    if (!run(s, p->forward, &t->x[i], 1, out, 1 + p->nmasks)) return false;
    t->x[i + 1] = out[0];
    for (int k = 0; k < p->nmasks; k++)
      t->mask[i * W_COUNT + k] = out[1 + k];
  }
  return loose(s, &t->x[s->m->k.layers]); /* otherwise gradients of a tied head would also pass through the
                                           * embedding */
}

/* Adds g to the gradient of parameter p and takes ownership of g. */
static bool grad_put(TgLlmLearner *s, TgTensor *p, TgTensor *g) {
  int i = 0;
  while (i < s->nparams && s->param[i] != p)
    i++;
  if (i < s->nparams && s->grad[i]) TG_SCOPE(s->m->ctx) {
      TgTensor *sum = tg_keep(tg_contiguous(tg_add(s->grad[i], g)));
      bool ok = sum && !tg_realize(sum);
      tg_release(s->grad[i]), tg_release(g);
      s->grad[i] = sum;
      if (!ok) return false;
    }
  else if (i < s->nparams)
    s->grad[i] = g;
  return s->grad[i] != NULL;
}

static bool grads_put(TgLlmLearner *s, const LearnPart *p, TgTensor **g) {
  bool ok = true;
  for (int k = 0; k < p->nparams; k++)
    ok = grad_put(s, p->param[k], g[k]) && ok;
  return ok;
}

static bool rows_run(Step *t, TgTensor *const in[3], TgTensor **g) {
  TgLlmLearner *s = t->s;
  TgTensor *out[2 + MOST_OF_ENDS];
  for (int64_t i = 0; i < s->nrows; i++) {
    LearnPart *p = &s->rows[i];
    if (!run(s, p->forward, in, 3, out, 2 + p->nparams)) return false;
    g[i] = out[1];
    t->loss += tg_item_f64(out[0]);
    tg_release(out[0]);
    if (!grads_put(s, p, out + 2)) return false;
  }
  return true;
}

static bool head(Step *t, TgTensor *targets, TgTensor *inverse) {
  TgLlmLearner *s = t->s;
  TgTensor *in[] = {t->x[s->m->k.layers], targets, inverse};
  TgTensor **g = tg_alloc(s->m->ctx, (size_t)s->nrows * sizeof *g);
  bool ok = g && rows_run(t, in, g);
  if (ok) TG_SCOPE(s->m->ctx) {
      t->g = tg_keep(tg_contiguous(tg_cat(g, (int)s->nrows, 0)));
      ok = t->g && !tg_realize(t->g);
    }
  if (g) released(g, (int)s->nrows);
  tg_free(s->m->ctx, g);
  return ok;
}

static bool layer_back(Step *t, int64_t i) {
  TgLlmLearner *s = t->s;
  LearnPart *p = &s->layer[i];
  TgTensor *out[MOST_OF_LAYER + 1], *in[2 + W_COUNT] = {t->x[i], t->g};
  TgTensor **mask = t->mask + i * W_COUNT;
  bool ends = !i && !s->first.nparams; /* the gradient of x is not needed */
  memcpy(in + 2, mask, (size_t)p->nmasks * sizeof *mask);
  if (!run(s, p->backward, in, 2 + p->nmasks, out, p->nparams + !ends)) return false;
  released(&t->x[i + 1], 1), released(&t->g, 1), released(mask, p->nmasks);
  t->g = ends ? NULL : out[p->nparams];
  return grads_put(s, p, out);
}

static bool backward(Step *t, TgTensor *ids) {
  TgLlmLearner *s = t->s;
  TgTensor *out[MOST_OF_LAYER];
  for (int64_t i = s->m->k.layers; i-- > 0;)
    if (!layer_back(t, i)) return false;
  TgTensor *in[] = {ids, t->g};
  if (!s->first.nparams) return true;
  return run(s, s->first.backward, in, 2, out, s->first.nparams) && grads_put(s, &s->first, out);
}

/* The number of targets that count; -1: an error. */
static int64_t counted(TgLlmLearner *s, TgTensor *targets) {
  int64_t n = tg_numel(targets), count = 0;
  int32_t *each = tg_alloc(s->m->ctx, (size_t)n * sizeof *each);
  bool ok = each && !tg_read(tg_cast(targets, TG_I32), each, (size_t)n * sizeof *each);
  for (int64_t i = 0; ok && i < n; i++)
    count += each[i] >= 0;
  tg_free(s->m->ctx, each);
  return ok ? count : -1;
}

/* Replaces all gradients by their numbers. */
static bool grads_loose(TgLlmLearner *s) {
  bool ok = true;
  for (int i = 0; ok && i < s->nparams; i++)
    ok = loose(s, &s->grad[i]);
  return ok;
}

static bool step(TgLlmLearner *s, TgTensor *ids, TgTensor *targets, double *loss) {
  TgContext *ctx = s->m->ctx;
  int layers = (int)s->m->k.layers;
  int64_t count = counted(s, targets);
  float inverse = count > 0 ? (float)(1 / (double)count) : 0;
  Step t = {.s = s};
  t.x = tg_alloc(ctx, (size_t)(layers + 1) * sizeof *t.x);
  t.mask = tg_alloc(ctx, (size_t)layers * W_COUNT * sizeof *t.mask);
  bool ok = count >= 0 && t.x && t.mask && forward(&t, ids) &&
            head(&t, targets, tg_from(ctx, &inverse, TG_F32, 0, NULL)) && backward(&t, ids);
  ok = ok && grads_loose(s) && run(s, s->update, s->grad, s->nparams, NULL, 0);
  if (t.x) released(t.x, layers + 1);
  if (t.mask) released(t.mask, layers * W_COUNT);
  released(&t.g, 1), released(s->grad, s->nparams);
  tg_free(ctx, t.x), tg_free(ctx, t.mask);
  if (loss) *loss = t.loss;
  return ok;
}

TgStatus tg_llm_learn(TgLlmLearner *s, TgTensor *ids, TgTensor *targets, double *loss) {
  if (!s) return TG_ERR_NOMEM;
  TgContext *ctx = s->m->ctx;
  if (!ids || !targets || !llm_whole_fits(s->m, ids, targets)) return status_of(ctx, false);
  bool ok = s->update && s->r.texts == tg_dim(ids, 0) && s->r.each == tg_dim(ids, 1);
  if (!ok) ok = programs_make(s, tg_dim(ids, 0), tg_dim(ids, 1));
  if (ok) TG_SCOPE(ctx) {
      ok = step(s, ids, targets, loss);
    }
  return status_of(ctx, ok && !tg_error(ctx));
}

static bool can_learn(const TgLlm *m, const TgLora *l) {
  if (!llm_generates(m, "llm_learner")) return false;
  for (const TgLora *other = m->loras; other; other = other->next)
    if (other != l && other->dropout > 0)
      return llm_fail(m->ctx, TG_ERR_VALUE, "llm_learner: another adapter of the model has dropout");
  return l || m->unfrozen || llm_fail(m->ctx, TG_ERR_STATE, "llm_learner: the model's weights are frozen");
}

TgLlmLearner *tg_llm_learner(TgLlm *m, TgLora *l, TgOptim *optim) {
  bool ok = m && optim && can_learn(m, l);
  TgLlmLearner *s = ok ? tg_alloc(m->ctx, sizeof *s) : NULL;
  if (!s) return NULL;
  s->m = m;
  s->lora = l;
  s->optim = optim;
  s->first.s = s;
  return s;
}

void tg_llm_learner_free(TgLlmLearner *s) {
  if (!s) return;
  parts_free(s);
  tg_free(s->m->ctx, s);
}
