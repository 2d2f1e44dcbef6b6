/* optim.c: SGD, Adam, AdamW. The learning rate and Adam's powers of beta live in small tensors, so a step is
 * always the same graph. */
#include "tg_nn.h"
#include "tg_io.h"
#include <stdio.h>
#include <string.h>

typedef enum Kind { SGD, ADAM, ADAMW } Kind;

struct TgOptim {
  TgContext *ctx;
  Kind kind;
  TgOptimOptions o;
  int n;
  /* m: momentum or first moment, v: second moment; kept, made at the first step */
  TgTensor **params, **m, **v;
  TgTensor *lr, *power1, *power2; /* shape (1): learning rate, beta1^t, beta2^t */
  TgTensor **todo;                /* what a step computes */
};

/* where the first parameter is: most often, where all are */
static TgTensor *one_number(TgContext *ctx, double v, TgTensor *const *params, int n) {
  TgTensor *t = tg_from_f64(ctx, &v, TG_F32, TG_SHAPE(1));
  return tg_keep(n && t ? tg_to(t, tg_device(params[0])) : t);
}

static bool refuse(TgContext *ctx, const char *text) { return tg_set_error(ctx, TG_ERR_VALUE, text), false; }

static bool parameters_fine(TgContext *ctx, TgTensor *const *params, int n) {
  if (n < 0 || (n && !params)) return refuse(ctx, "optimiser: no list of parameters");
  for (int i = 0; i < n; i++) {
    if (!params[i]) return refuse(ctx, "optimiser: a parameter is NULL");
    if (tg_context(params[i]) != ctx) return refuse(ctx, "optimiser: a parameter belongs to another context");
  }
  return true;
}

static TgOptim *optim_new(TgContext *ctx, Kind kind, TgTensor *const *params, int n,
                          const TgOptimOptions *opt) {
  if (!ctx || !parameters_fine(ctx, params, n)) return NULL;
  TgOptim *p = tg_alloc(ctx, sizeof *p);
  TgTensor **all = tg_alloc(ctx, ((size_t)n * 6 + 2) * sizeof *all);
  if (!p || !all) {
    tg_free(ctx, p), tg_free(ctx, all);
    return NULL;
  }
  p->ctx = ctx, p->kind = kind, p->params = all, p->m = all + n, p->v = all + 2 * n, p->todo = all + 3 * n;
  if (opt) memcpy(&p->o, opt, opt->size < sizeof p->o ? opt->size : sizeof p->o);
  if (p->o.lr == 0) p->o.lr = 1e-3;
  if (p->o.beta1 == 0) p->o.beta1 = 0.9;
  if (p->o.beta2 == 0) p->o.beta2 = 0.999;
  if (p->o.eps == 0) p->o.eps = 1e-8;
  if (p->o.weight_decay == 0 && kind == ADAMW) p->o.weight_decay = 0.01;
  if (p->o.weight_decay < 0) p->o.weight_decay = 0;
  bool ok = (p->lr = one_number(ctx, p->o.lr, params, n)) != NULL;
  if (kind != SGD)
    ok = ok && (p->power1 = one_number(ctx, 1, params, n)) && (p->power2 = one_number(ctx, 1, params, n));
  for (int i = 0; ok && i < n; i++) { /* tied weights, given by two layers, are one parameter */
    int at = 0;
    while (at < p->n && p->params[at] != params[i])
      at++;
    if (at < p->n) continue;
    ok = (p->params[at] = tg_requires_grad(params[i], true)) != NULL;
    p->n += ok;
  }
  if (ok) return p;
  tg_optim_free(p);
  return NULL;
}

TgOptim *tg_sgd_opt(TgContext *ctx, TgTensor *const *p, int n, const TgOptimOptions *o) {
  return optim_new(ctx, SGD, p, n, o);
}

TgOptim *tg_adam_opt(TgContext *ctx, TgTensor *const *p, int n, const TgOptimOptions *o) {
  return optim_new(ctx, ADAM, p, n, o);
}

TgOptim *tg_adamw_opt(TgContext *ctx, TgTensor *const *p, int n, const TgOptimOptions *o) {
  return optim_new(ctx, ADAMW, p, n, o);
}

void tg_optim_free(TgOptim *p) {
  if (!p) return;
  for (int i = 0; i < p->n; i++)
    tg_release(p->m[i]), tg_release(p->v[i]);
  tg_release(p->lr), tg_release(p->power1), tg_release(p->power2);
  TgContext *ctx = p->ctx;
  tg_free(ctx, p->params);
  tg_free(ctx, p);
}

void tg_optim_zero_grad(TgOptim *p) {
  for (int i = 0; p && i < p->n; i++)
    tg_zero_grad(p->params[i]);
}

double tg_optim_lr(const TgOptim *p) { return p ? p->o.lr : 0; }

TgStatus tg_optim_set_lr(TgOptim *p, double lr) {
  if (!p) return TG_ERR_VALUE;
  TgTensor *t = one_number(p->ctx, lr, p->params, p->n);
  if (!t) return tg_error(p->ctx);
  tg_release(p->lr);
  p->lr = t, p->o.lr = lr;
  return TG_OK;
}

/* State is memory of zeros of its own, written once: a constant would be shared by all parameters of that
 * shape. */
static TgTensor *state(TgOptim *p, TgTensor **at, TgTensor *like) {
  if (*at) return *at;
  void *zeros = tg_alloc(p->ctx, tg_nbytes(like) + 1);
  TgTensor *t = zeros ? tg_from(p->ctx, zeros, tg_dtype(like), tg_ndim(like), tg_shape(like)) : NULL;
  *at = tg_keep(t ? tg_to(t, tg_device(like)) : NULL);
  tg_free(p->ctx, zeros);
  return *at;
}

static TgTensor *lerp(TgTensor *a, TgTensor *b, double beta) {
  return tg_add(tg_mul_scalar(a, beta), tg_mul_scalar(b, 1 - beta));
}

static TgTensor *sized(TgTensor *scalar, TgTensor *like) {
  return tg_cast(tg_reshape(tg_to(scalar, tg_device(like)), TG_SCALAR), tg_dtype(like));
}

static bool has_first(const TgOptim *p) { return p->kind != SGD || p->o.momentum != 0; }

static TgStatus put(TgState *s, const char *prefix, const char *name, TgTensor *t) {
  char full[512];
  if (!t) return TG_ERR_NOMEM;
  if (snprintf(full, sizeof full, "%s%s%s", prefix ? prefix : "", prefix && *prefix ? "." : "", name) >=
      (int)sizeof full)
    return TG_ERR_LIMIT;
  return tg_state_put(s, full, t);
}

TgStatus tg_optim_state(TgOptim *p, TgState *s, const char *prefix) {
  if (!p || !s) return TG_ERR_VALUE;
  TgStatus status = TG_OK;
  if (p->kind != SGD) {
    status = put(s, prefix, "beta1_power", p->power1);
    if (!status) status = put(s, prefix, "beta2_power", p->power2);
  }
  for (int i = 0; !status && has_first(p) && i < p->n; i++) {
    char name[64];
    snprintf(name, sizeof name, "state.%d.%s", i, p->kind == SGD ? "momentum_buffer" : "exp_avg");
    status = put(s, prefix, name, state(p, &p->m[i], p->params[i]));
    if (status || p->kind == SGD) continue;
    snprintf(name, sizeof name, "state.%d.exp_avg_sq", i);
    status = put(s, prefix, name, state(p, &p->v[i], p->params[i]));
  }
  return status;
}

/* The new value of parameter i; state assignments are appended to todo. */
static TgTensor *sgd_step(TgOptim *p, int i, TgTensor *w, TgTensor *g, int *ntodo) {
  if (p->o.weight_decay != 0) g = tg_add(g, tg_mul_scalar(w, p->o.weight_decay));
  if (p->o.momentum != 0) { /* torch: b = mu b + g, the first b is g: zeros give the same */
    TgTensor *b = state(p, &p->m[i], w);
    if (!(b = tg_assign(b, tg_add(tg_mul_scalar(b, p->o.momentum), g)))) return NULL;
    p->todo[(*ntodo)++] = b;
    g = p->o.nesterov ? tg_add(g, tg_mul_scalar(b, p->o.momentum)) : b;
  }
  return tg_sub(w, tg_mul(g, sized(p->lr, w)));
}

static TgTensor *adam_step(TgOptim *p, int i, TgTensor *w, TgTensor *g, int *ntodo) {
  double wd = p->o.weight_decay;
  if (wd != 0 && p->kind == ADAM) g = tg_add(g, tg_mul_scalar(w, wd));
  TgTensor *m = state(p, &p->m[i], w), *v = state(p, &p->v[i], w);
  if (!(m = tg_assign(m, lerp(m, g, p->o.beta1))) || !(v = tg_assign(v, lerp(v, tg_mul(g, g), p->o.beta2))))
    return NULL;
  p->todo[(*ntodo)++] = m, p->todo[(*ntodo)++] = v;
  TgTensor *mh = tg_div(m, sized(tg_rsub_scalar(p->power1, 1), w));
  TgTensor *vh = tg_div(v, sized(tg_rsub_scalar(p->power2, 1), w));
  TgTensor *up = tg_div(mh, tg_add_scalar(tg_sqrt(vh), p->o.eps));
  if (wd != 0 && p->kind == ADAMW) up = tg_add(up, tg_mul_scalar(w, wd));
  return tg_sub(w, tg_mul(up, sized(p->lr, w)));
}

TgStatus tg_optim_step(TgOptim *p) {
  if (!p) return TG_ERR_VALUE;
  int ntodo = 0;
  TgStatus s = tg_scope_begin(p->ctx);
  if (s) return s;
  bool ok = true, any = false;
  for (int i = 0; i < p->n; i++)
    any = any || tg_grad(p->params[i]);
  if (any && p->kind != SGD) {
    ok = tg_assign(p->power1, tg_mul_scalar(p->power1, p->o.beta1)) &&
         tg_assign(p->power2, tg_mul_scalar(p->power2, p->o.beta2));
    if (ok) p->todo[ntodo++] = p->power1, p->todo[ntodo++] = p->power2;
  }
  for (int i = 0; ok && i < p->n; i++) {
    TgTensor *w = p->params[i], *g = tg_grad(w);
    if (!g) continue;
    ok = tg_assign(w, p->kind == SGD ? sgd_step(p, i, w, g, &ntodo) : adam_step(p, i, w, g, &ntodo)) != NULL;
    if (ok) p->todo[ntodo++] = w;
  }
  tg_optim_zero_grad(p);    /* lazy gradients would soon be of the new values */
  s = tg_scope_end(p->ctx); /* only the parameters and the state are realized: all kept outside */
  if (ok && !s && ntodo) s = tg_realize_many(p->todo, (size_t)ntodo);
  return ok ? s : tg_error(p->ctx) ? tg_error(p->ctx) : TG_ERR_INTERNAL;
}
