/* optim.c: optimisers: lists of parameters, the state that a rule remembers, and the step. In: a rule of
 * update.c, parameters with gradients. Out: parameters and state, stored in one schedule. Everything that
 * changes from step to step (the learning rate, powers of beta) is in memory, so a step is always the same
 * graph. */
#include "optim_private.h"
#include "tg_io.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct TgOptim {
  TgContext *ctx;
  const Rule *rule;
  TgOptimOptions o;
  int n;
  TgTensor **params;
  TgTensor **state[MAX_STATES]; /* kept; made at the first step */
  /* kept. master: f32 copies of parameters. sum: gradients of the previous batches. */
  TgTensor **master, **sum;
  bool *summed;
  TgTensor *lr, *number[MAX_NUMBERS]; /* kept, f32 (1) */
  TgOptim **group;                    /* of a group: its optimisers */
  int ngroup;
  /* used while a step is built */
  TgTensor **todo, *finite, *inverse;
  int ntodo, cap;
};

static bool refuse(TgContext *ctx, TgStatus status, const char *text) {
  return tg_set_error(ctx, status, text), false;
}

static TgStatus failure(TgContext *ctx) { return tg_error(ctx) ? tg_error(ctx) : TG_ERR_INTERNAL; }

/* ---- numbers */
TgTensor *nn_number(TgContext *ctx, double value, TgDType dtype, const char *device) {
  TgTensor *t = tg_from_f64(ctx, &value, dtype, TG_SHAPE(1));
  return tg_keep(t && device ? tg_to(t, device) : t);
}

TgStatus nn_number_set(TgTensor *number, double value) {
  TgContext *ctx = tg_context(number);
  if (!ctx) return TG_ERR_VALUE;
  TgStatus s = tg_scope_begin(ctx);
  if (s) return s;
  TgTensor *t = tg_to(tg_from_f64(ctx, &value, tg_dtype(number), TG_SHAPE(1)), tg_device(number));
  bool ok = tg_assign(number, t) && !tg_realize(number);
  s = tg_scope_end(ctx);
  return ok ? s : failure(ctx);
}

static TgTensor *sized(TgTensor *number, TgTensor *like) {
  if (!number) return NULL;
  return tg_cast(tg_reshape(tg_to(number, tg_device(like)), TG_SCALAR), tg_dtype(like));
}

/* ---- making one */
static bool parameters_fine(TgContext *ctx, TgTensor *const *params, int n, int least_rank) {
  if (n < 0 || (n && !params)) return refuse(ctx, TG_ERR_VALUE, "optimiser: no list of parameters");
  for (int i = 0; i < n; i++) {
    if (!params[i]) return refuse(ctx, TG_ERR_VALUE, "optimiser: a parameter is NULL");
    if (tg_context(params[i]) != ctx)
      return refuse(ctx, TG_ERR_VALUE, "optimiser: a parameter belongs to another context");
    if (tg_ndim(params[i]) < least_rank)
      return refuse(ctx, TG_ERR_SHAPE, "optimiser: a parameter of less than two axes; muon is for matrices");
  }
  return true;
}

/* Options that were not written get the rule's default. */
static bool options_fine(TgContext *ctx, TgOptimOptions *o, const TgOptimOptions *otherwise) {
#define OPTION(field) o->field = TG_OPTION(*o, field, otherwise->field)
  OPTION(lr), OPTION(momentum), OPTION(weight_decay), OPTION(beta1), OPTION(beta2), OPTION(eps);
  OPTION(alpha), OPTION(trust), OPTION(steps);
#undef OPTION
  o->set = NULL; /* the text belongs to the caller */
  if (!isfinite(o->lr) || o->lr < 0)
    return refuse(ctx, TG_ERR_VALUE, "optimiser: a learning rate is a number from 0 on");
  if (!(o->beta1 >= 0 && o->beta1 < 1) || !(o->beta2 >= 0 && o->beta2 < 1))
    return refuse(ctx, TG_ERR_VALUE, "optimiser: beta1 and beta2 are in 0 .. 1, without 1");
  if (!isfinite(o->eps) || o->eps < 0) return refuse(ctx, TG_ERR_VALUE, "optimiser: a negative eps");
  if (!(o->momentum >= 0)) return refuse(ctx, TG_ERR_VALUE, "optimiser: a negative momentum");
  if (!(o->weight_decay >= 0)) return refuse(ctx, TG_ERR_VALUE, "optimiser: a negative weight decay");
  if (!(o->clip_norm >= 0) || !(o->clip_value >= 0))
    return refuse(ctx, TG_ERR_VALUE, "optimiser: a negative bound of gradients");
  return o->steps >= 0 && o->steps <= 100 ? true
                                          : refuse(ctx, TG_ERR_VALUE, "optimiser: steps are not in 0 .. 100");
}

static TgOptim *optim_alloc(TgContext *ctx, int n) {
  enum { LISTS = MAX_STATES + 3 };

  TgOptim *p = tg_alloc(ctx, sizeof *p);
  if (!p) return NULL;
  p->ctx = ctx;
  p->cap = n * (LISTS + 1) + MAX_NUMBERS;
  p->params = tg_alloc(ctx, ((size_t)n * LISTS + 1) * sizeof *p->params);
  p->todo = tg_alloc(ctx, ((size_t)p->cap + 1) * sizeof *p->todo);
  p->summed = tg_alloc(ctx, (size_t)n + 1);
  if (!p->params || !p->todo || !p->summed) {
    tg_optim_free(p);
    return NULL;
  }
  for (int k = 0; k < MAX_STATES; k++)
    p->state[k] = p->params + (size_t)n * (size_t)(k + 1);
  p->master = p->params + (size_t)n * (MAX_STATES + 1);
  p->sum = p->params + (size_t)n * (MAX_STATES + 2);
  return p;
}

static TgOptim *optim_new(TgContext *ctx, RuleKind kind, TgTensor *const *params, int n,
                          const TgOptimOptions *given) {
  const Rule *rule = &nn_rules[kind];
  TgOptimOptions o;
  if (NN_OPTIONS(ctx, rule->name, TgOptimOptions, &o, given) || !ctx ||
      !parameters_fine(ctx, params, n, rule->least_rank) || !options_fine(ctx, &o, &rule->defaults))
    return NULL;
  TgOptim *p = optim_alloc(ctx, n);
  if (!p) return NULL;
  p->rule = rule;
  p->o = o;
  const char *device = n ? tg_device(params[0]) : NULL; /* usually all parameters are on this device */
  bool ok = (p->lr = nn_number(ctx, o.lr, TG_F32, device)) != NULL;
  for (int k = 0; ok && k < MAX_NUMBERS && rule->number[k]; k++)
    ok = (p->number[k] = nn_number(ctx, rule->initial[k], TG_F32, device)) != NULL;
  /* Tied weights are given by two layers, but are one parameter. */
  for (int i = 0; ok && i < n; i++) {
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

#define OPTIMISER(name, kind)                                                                                \
  TgOptim *tg_##name##_opt(TgContext *ctx, TgTensor *const *params, int n, const TgOptimOptions *o) {        \
    return optim_new(ctx, kind, params, n, o);                                                               \
  }
OPTIMISER(sgd, RULE_SGD)
OPTIMISER(lars, RULE_LARS)
OPTIMISER(muon, RULE_MUON)
OPTIMISER(adam, RULE_ADAM)
OPTIMISER(adamw, RULE_ADAMW)
OPTIMISER(lamb, RULE_LAMB)
OPTIMISER(rmsprop, RULE_RMSPROP)
OPTIMISER(adagrad, RULE_ADAGRAD)
OPTIMISER(adadelta, RULE_ADADELTA)
OPTIMISER(adamax, RULE_ADAMAX)
OPTIMISER(nadam, RULE_NADAM)
OPTIMISER(radam, RULE_RADAM)

TgOptim *tg_optim_group(TgContext *ctx, TgOptim *const *optims, int n) {
  if (!ctx) return NULL;
  for (int i = 0; i < n; i++)
    if (!optims || !optims[i] || optims[i]->ctx != ctx || optims[i]->ngroup) {
      refuse(ctx, TG_ERR_VALUE, "optim_group: an optimiser is NULL, a group, or of another context");
      return NULL;
    }
  TgOptim *p = n >= 0 ? optim_alloc(ctx, 0) : NULL;
  if (!p || !(p->group = tg_alloc(ctx, ((size_t)n + 1) * sizeof *p->group))) {
    tg_optim_free(p);
    return NULL;
  }
  for (int i = 0; i < n; i++)
    p->group[i] = optims[i];
  p->ngroup = n;
  return p;
}

TgOptim *tg_optim_at(const TgOptim *p, int i) { return p && i >= 0 && i < p->ngroup ? p->group[i] : NULL; }

void tg_optim_free(TgOptim *p) {
  if (!p) return;
  for (int i = 0; i < p->n; i++) {
    for (int k = 0; k < MAX_STATES; k++)
      tg_release(p->state[k][i]);
    tg_release(p->master[i]), tg_release(p->sum[i]);
  }
  tg_release(p->lr);
  for (int k = 0; k < MAX_NUMBERS; k++)
    tg_release(p->number[k]);
  TgContext *ctx = p->ctx;
  tg_free(ctx, p->params), tg_free(ctx, p->todo), tg_free(ctx, p->summed), tg_free(ctx, p->group);
  tg_free(ctx, p);
}

void tg_optim_zero_grad(TgOptim *p) {
  for (int i = 0; p && i < p->ngroup; i++)
    tg_optim_zero_grad(p->group[i]);
  for (int i = 0; p && i < p->n; i++) {
    tg_zero_grad(p->params[i]);
    p->summed[i] = false;
  }
}

double tg_optim_lr(const TgOptim *p) { return !p ? 0 : p->ngroup ? tg_optim_lr(p->group[0]) : p->o.lr; }

TgStatus tg_optim_set_lr(TgOptim *p, double lr) {
  if (!p) return TG_ERR_VALUE;
  if (!(lr >= 0)) return refuse(p->ctx, TG_ERR_VALUE, "optimiser: a negative learning rate"), TG_ERR_VALUE;
  for (int i = 0; i < p->ngroup; i++) {
    TgStatus s = tg_optim_set_lr(p->group[i], lr);
    if (s) return s;
  }
  TgStatus s = p->lr ? nn_number_set(p->lr, lr) : TG_OK;
  if (!s) p->o.lr = lr;
  return s;
}

/* ---- state */
/* Returns the axis along which to split the state of a parameter that is whole on each of n devices: the
 * first axis that gives each device a part. -1: there is none. */
static int state_axis(TgTensor *like, int n) {
  if (n < 2 || tg_shard_axis(like) >= 0) return -1;
  for (int i = 0; i < tg_ndim(like); i++)
    if (tg_dim(like, i) >= n) return i;
  return -1;
}

/* Places t where the parameter is or, with .split_state, a part of t on each of the parameter's devices. */
static TgTensor *state_placed(TgOptim *p, TgTensor *t, TgTensor *like) {
  enum { MOST = 16 };

  int n = tg_shard_count(like), axis = p->o.split_state ? state_axis(like, n) : -1;
  const char *device[MOST];
  if (axis < 0 || n > MOST) return t ? tg_shard_like(t, like) : NULL;
  for (int i = 0; i < n; i++)
    device[i] = tg_device(tg_shard_part(like, i));
  return tg_shard(t, n, device, axis);
}

/* Returns memory that begins as zeros, and makes it if there is none. It is its own buffer, because a
 * constant would be shared by all parameters of that shape. */
static TgTensor *memory_of(TgOptim *p, TgTensor **at, TgTensor *like, TgDType dtype) {
  if (*at) return *at;
  void *zeros = tg_alloc(p->ctx, (size_t)tg_numel(like) * tg_dtype_size(dtype) + 1);
  TgTensor *t = zeros ? tg_from(p->ctx, zeros, dtype, tg_ndim(like), tg_shape(like)) : NULL;
  *at = tg_keep(state_placed(p, t, like));
  tg_free(p->ctx, zeros);
  return *at;
}

static bool is_narrow(TgDType d) { return d == TG_F16 || d == TG_BF16 || d == TG_FP8E4M3 || d == TG_FP8E5M2; }

static bool has_master(const TgOptim *p, int i) { return p->o.master && is_narrow(tg_dtype(p->params[i])); }

static TgDType state_dtype(const TgOptim *p, int i) {
  return has_master(p, i) ? TG_F32 : tg_dtype(p->params[i]);
}

static TgTensor *state_of(TgOptim *p, int state, int i) {
  return memory_of(p, &p->state[state][i], p->params[i], state_dtype(p, i));
}

static TgTensor *master_of(TgOptim *p, int i) {
  if (p->master[i] || !has_master(p, i)) return p->master[i];
  TgTensor *t = memory_of(p, &p->master[i], p->params[i], TG_F32);
  return tg_assign(t, tg_cast(tg_detach(p->params[i]), TG_F32));
}

static bool has_state(const TgOptim *p, int state) {
  const Rule *r = p->rule;
  return r->state[state] && (!r->has_state || r->has_state(&p->o, state));
}

static TgStatus state_of_parameter(TgOptim *p, TgState *s, const char *prefix, int i) {
  TgStatus status = TG_OK;
  char name[64];
  for (int k = 0; !status && k < MAX_STATES; k++) {
    if (!has_state(p, k)) continue;
    snprintf(name, sizeof name, "state.%d.%s", i, p->rule->state[k]);
    status = nn_state_put(s, prefix, name, state_of(p, k, i));
  }
  if (status || !has_master(p, i)) return status;
  snprintf(name, sizeof name, "state.%d.master", i);
  return nn_state_put(s, prefix, name, master_of(p, i));
}

TgStatus tg_optim_state(TgOptim *p, TgState *s, const char *prefix) {
  if (!p || !s) return TG_ERR_VALUE;
  TgStatus status = TG_OK;
  for (int i = 0; !status && i < p->ngroup; i++) {
    char inner[512];
    bool fits = snprintf(inner, sizeof inner, "%s%s%d", prefix ? prefix : "", prefix && *prefix ? "." : "",
                         i) < (int)sizeof inner;
    status = fits ? tg_optim_state(p->group[i], s, inner) : TG_ERR_LIMIT;
  }
  for (int k = 0; !status && p->rule && k < MAX_NUMBERS && p->rule->number[k]; k++)
    status = nn_state_put(s, prefix, p->rule->number[k], p->number[k]);
  for (int i = 0; !status && i < p->n; i++)
    status = state_of_parameter(p, s, prefix, i);
  return status;
}

/* ---- gradients */
static TgTensor *norm_of_all(TgTensor *const *g, int n) {
  TgTensor *sum = NULL;
  for (int i = 0; i < n; i++) {
    TgTensor *wide = is_narrow(tg_dtype(g[i])) ? tg_float(g[i]) : g[i];
    TgTensor *part = tg_cast(tg_sum(tg_mul(wide, wide)), TG_F32);
    part = sum ? tg_to(part, tg_device(sum)) : part;
    sum = sum ? tg_add(sum, part) : part;
  }
  return tg_sqrt(sum);
}

static void clip_norm(TgTensor **g, int n, double max, TgTensor **norm) {
  *norm = norm_of_all(g, n);
  TgTensor *by = tg_minimum_scalar(tg_rdiv_scalar(tg_add_scalar(*norm, 1e-6), max), 1);
  for (int i = 0; i < n; i++)
    g[i] = tg_mul(g[i], tg_cast(tg_to(by, tg_device(g[i])), tg_dtype(g[i])));
}

/* Returns the gradients that exist, in the order of params. NULL: out of memory. */
static TgTensor **gradients_of(TgContext *ctx, TgTensor *const *params, int n, int *count) {
  TgTensor **g = tg_alloc(ctx, ((size_t)n + 1) * sizeof *g);
  *count = 0;
  for (int i = 0; g && i < n; i++)
    if ((g[*count] = tg_grad(params[i])) != NULL) ++*count;
  return g;
}

TgTensor *tg_clip_grad_norm(TgContext *ctx, TgTensor *const *params, int n, double max) {
  if (!ctx || !parameters_fine(ctx, params, n, 0)) return NULL;
  if (!(max > 0)) return refuse(ctx, TG_ERR_VALUE, "clip_grad_norm: the bound is not positive"), NULL;
  int count = 0;
  TgTensor **g = gradients_of(ctx, params, n, &count), *norm = NULL;
  if (g && !count) norm = tg_full(ctx, TG_SCALAR, 0);
  if (count) clip_norm(g, count, max, &norm);
  bool ok = norm != NULL;
  for (int i = 0, k = 0; ok && i < n; i++)
    if (tg_grad(params[i])) ok = tg_replace(tg_grad(params[i]), g[k++]) != NULL;
  tg_free(ctx, g);
  return ok ? norm : NULL;
}

TgStatus tg_clip_grad_value(TgContext *ctx, TgTensor *const *params, int n, double max) {
  if (!ctx || !parameters_fine(ctx, params, n, 0)) return TG_ERR_VALUE;
  if (!(max > 0))
    return refuse(ctx, TG_ERR_VALUE, "clip_grad_value: the bound is not positive"), TG_ERR_VALUE;
  for (int i = 0; i < n; i++) {
    TgTensor *g = tg_grad(params[i]);
    if (g && !tg_replace(g, tg_clamp(g, -max, max))) return failure(ctx);
  }
  return TG_OK;
}

int nn_optim_gradients(const TgOptim *p, TgTensor **out, int cap) {
  int n = 0;
  for (int i = 0; i < p->ngroup; i++)
    n += nn_optim_gradients(p->group[i], out ? out + n : NULL, cap > n ? cap - n : 0);
  for (int i = 0; i < p->n; i++) {
    TgTensor *g = tg_grad(p->params[i]);
    if (!g && !p->summed[i]) continue;
    if (p->summed[i]) g = g ? tg_add(p->sum[i], g) : p->sum[i];
    if (out && n < cap) out[n] = g;
    n++;
  }
  return n;
}

TgContext *nn_optim_context(const TgOptim *p) { return p->ctx; }

/* ---- the step */
static TgTensor *guarded(const TgOptim *p, TgTensor *value, TgTensor *old) {
  return p->finite ? tg_where(tg_to(p->finite, tg_device(old)), value, old) : value;
}

static TgTensor *store(TgOptim *p, TgTensor *at, TgTensor *value) {
  if (!tg_assign(at, guarded(p, value, at))) return NULL;
  p->todo[p->ntodo++] = at;
  return at;
}

TgTensor *update_state(const Update *u, int state) { return state_of(u->optim, state, u->index); }

TgTensor *update_store(const Update *u, int state, TgTensor *value) {
  return store(u->optim, state_of(u->optim, state, u->index), value);
}

static bool step_numbers(TgOptim *p) {
  TgTensor *next[MAX_NUMBERS];
  memcpy(next, p->number, sizeof next);
  if (p->rule->advance) p->rule->advance(&p->o, next);
  for (int k = 0; k < MAX_NUMBERS && p->number[k]; k++)
    if (!store(p, p->number[k], next[k])) return false;
  return true;
}

static bool step_parameter(TgOptim *p, int i, TgTensor *gradient) {
  TgTensor *w = p->params[i], *master = master_of(p, i);
  if (has_master(p, i) && !master) return false;
  Update u = {.o = &p->o, .value = master ? master : w, .optim = p, .index = i};
  u.gradient = master ? tg_cast(gradient, TG_F32) : gradient;
  u.lr = sized(p->lr, u.value);
  for (int k = 0; k < MAX_NUMBERS; k++)
    u.number[k] = sized(p->number[k], u.value);
  TgTensor *next = p->rule->update(&u);
  if (master && !(next = store(p, master, next))) return false;
  return store(p, w, master ? tg_cast(next, tg_dtype(w)) : next) != NULL;
}

/* Builds the graph of a step: assigns everything that the step computes and lists it in todo. */
static bool step_build(TgOptim *p) {
  int n = nn_optim_gradients(p, NULL, 0), at = 0;
  if (!n) return true;
  TgTensor **g = tg_alloc(p->ctx, (size_t)n * sizeof *g), *norm;
  if (!g) return false;
  nn_optim_gradients(p, g, n);
  /* gradients are summed where the state is, and only there */
  for (int i = 0, k = 0; k < n && p->o.split_state; i++) {
    bool has = tg_grad(p->params[i]) || p->summed[i];
    if (has) g[k] = state_placed(p, g[k], p->params[i]);
    k += has;
  }
  for (int i = 0; i < n; i++) {
    if (p->inverse) g[i] = tg_mul(g[i], tg_cast(tg_to(p->inverse, tg_device(g[i])), tg_dtype(g[i])));
    if (p->o.clip_value > 0) g[i] = tg_clamp(g[i], -p->o.clip_value, p->o.clip_value);
  }
  if (p->o.clip_norm > 0) clip_norm(g, n, p->o.clip_norm, &norm);
  bool named = !tg_name_begin(p->ctx, p->rule->name), ok = named && step_numbers(p);
  for (int i = 0; ok && i < p->n; i++)
    if (tg_grad(p->params[i]) || p->summed[i]) ok = step_parameter(p, i, g[at++]);
  if (named) tg_name_end(p->ctx);
  tg_free(p->ctx, g);
  return ok;
}

/* Only tensors that are kept outside the scope (parameters, state) are realized, and this is done after the
 * scope ended. Gradients that are still lazy then would be computed from the new values. */
TgStatus nn_optim_step(TgOptim *p, TgTensor *inverse, TgTensor *finite, TgTensor *const *more, int nmore) {
  TgOptim *one[1] = {p}, **each = p->ngroup ? p->group : one;
  int n = p->ngroup ? p->ngroup : 1, ntodo = 0, cap = nmore;
  for (int i = 0; i < n; i++)
    cap += each[i]->cap;
  TgTensor **todo = tg_alloc(p->ctx, ((size_t)cap + 1) * sizeof *todo);
  TgStatus s = todo ? tg_scope_begin(p->ctx) : TG_ERR_NOMEM;
  if (s) {
    tg_free(p->ctx, todo);
    return s;
  }
  bool ok = true;
  for (int i = 0; i < nmore; i++)
    todo[ntodo++] = more[i];
  for (int i = 0; ok && i < n; i++) {
    TgOptim *o = each[i];
    o->ntodo = 0;
    o->inverse = inverse;
    o->finite = finite;
    ok = step_build(o);
    o->inverse = o->finite = NULL;
    memcpy(todo + ntodo, o->todo, (size_t)o->ntodo * sizeof *todo);
    ntodo += o->ntodo;
  }
  tg_optim_zero_grad(p);
  s = tg_scope_end(p->ctx);
  if (ok && !s && ntodo) s = tg_realize_many(todo, (size_t)ntodo);
  tg_free(p->ctx, todo);
  return ok ? s : failure(p->ctx);
}

TgStatus tg_optim_step(TgOptim *p) { return p ? nn_optim_step(p, NULL, NULL, NULL, 0) : TG_ERR_VALUE; }

TgStatus tg_optim_accumulate(TgOptim *p) {
  if (!p) return TG_ERR_VALUE;
  TgStatus s = TG_OK;
  for (int i = 0; !s && i < p->ngroup; i++)
    s = tg_optim_accumulate(p->group[i]);
  if (s || p->ngroup || (s = tg_scope_begin(p->ctx))) return s;
  int ntodo = 0;
  bool ok = true;
  for (int i = 0; ok && i < p->n; i++) {
    TgTensor *w = p->params[i], *g = tg_grad(w);
    if (!g) continue;
    TgTensor *sum = memory_of(p, &p->sum[i], w, tg_dtype(w));
    ok = sum && tg_assign(sum, p->summed[i] ? tg_add(sum, g) : g);
    p->todo[ntodo++] = sum;
    p->summed[i] = ok;
    tg_zero_grad(w);
  }
  s = tg_scope_end(p->ctx);
  if (ok && !s && ntodo) s = tg_realize_many(p->todo, (size_t)ntodo);
  return ok ? s : failure(p->ctx);
}
