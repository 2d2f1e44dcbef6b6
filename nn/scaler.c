/* scaler.c: loss scaling. In: a loss, and the gradients of the scaled loss. Out: a step that is only taken if
 * all gradients are finite, and the scale of the next step. All of this is in the graph, so nothing is read
 * back to the host. */
#include "nn_private.h"
#include "tg_io.h"
#include <math.h>

struct TgScaler {
  TgContext *ctx;
  TgScalerOptions o;
  TgTensor *scale, *growth_tracker; /* kept, f32 (1) and i32 (1) */
};

TgScaler *tg_scaler_opt(TgContext *ctx, const TgScalerOptions *given) {
  TgScalerOptions o;
  if (NN_OPTIONS(ctx, "scaler", TgScalerOptions, &o, given) || !ctx) return NULL;
  o.scale = TG_OPTION(o, scale, 65536);
  o.growth = TG_OPTION(o, growth, 2);
  o.backoff = TG_OPTION(o, backoff, 0.5);
  o.interval = TG_OPTION(o, interval, 2000);
  o.set = NULL;
  if (!(o.scale > 0) || !(o.growth >= 1) || !(o.backoff > 0) || !(o.backoff <= 1) || o.interval < 1) {
    tg_set_error(ctx, TG_ERR_VALUE,
                 "scaler: scale and backoff must be positive, growth and interval at least 1");
    return NULL;
  }
  TgScaler *s = tg_alloc(ctx, sizeof *s);
  if (!s) return NULL;
  s->ctx = ctx;
  s->o = o;
  s->scale = nn_number(ctx, o.scale, TG_F32, NULL);
  s->growth_tracker = nn_number(ctx, 0, TG_I32, NULL);
  if (s->scale && s->growth_tracker) return s;
  tg_scaler_free(s);
  return NULL;
}

void tg_scaler_free(TgScaler *s) {
  if (!s) return;
  tg_release(s->scale), tg_release(s->growth_tracker);
  tg_free(s->ctx, s);
}

TgTensor *tg_scaler_scale(TgScaler *s, TgTensor *loss) {
  if (!s || !loss) return NULL;
  return tg_mul(loss, tg_to(tg_reshape(s->scale, TG_SCALAR), tg_device(loss)));
}

double tg_scaler_value(TgScaler *s) { return s ? tg_item_f64(s->scale) : NAN; }

TgStatus tg_scaler_state(TgScaler *s, TgState *state, const char *prefix) {
  if (!s || !state) return TG_ERR_VALUE;
  TgStatus status = nn_state_put(state, prefix, "scale", s->scale);
  return status ? status : nn_state_put(state, prefix, "growth_tracker", s->growth_tracker);
}

static TgTensor *all_finite(TgScaler *s, TgTensor *const *g, int n) {
  TgTensor *all = NULL;
  for (int i = 0; i < n; i++) {
    TgTensor *one = tg_to(tg_all(tg_isfinite(g[i])), tg_device(s->scale));
    all = all ? tg_bitand(all, one) : one;
  }
  return all;
}

TgStatus tg_scaler_step(TgScaler *s, TgOptim *opt) {
  if (!s || !opt || nn_optim_context(opt) != s->ctx) return TG_ERR_VALUE;
  TgStatus status = tg_scope_begin(s->ctx);
  if (status) return status;
  int n = nn_optim_gradients(opt, NULL, 0);
  TgTensor **g = tg_alloc(s->ctx, ((size_t)n + 1) * sizeof *g);
  if (g && n) {
    nn_optim_gradients(opt, g, n);
    TgTensor *finite = all_finite(s, g, n), *was = s->scale;
    TgTensor *inverse = tg_reciprocal(tg_reshape(was, TG_SCALAR));
    TgTensor *count = tg_add_scalar(s->growth_tracker, 1), *grows = tg_ge_scalar(count, s->o.interval);
    TgTensor *larger = tg_where(grows, tg_mul_scalar(was, s->o.growth), was);
    TgTensor *next = tg_where(finite, larger, tg_mul_scalar(was, s->o.backoff));
    TgTensor *kept = tg_where(grows, tg_zeros_like(count), count);
    bool ok = tg_assign(s->growth_tracker, tg_where(finite, kept, tg_zeros_like(kept))) &&
              tg_assign(s->scale, next);
    TgTensor *more[] = {s->scale, s->growth_tracker};
    if (ok)
      status = nn_optim_step(opt, inverse, finite, more, 2);
    else
      status = tg_error(s->ctx);
  }
  tg_free(s->ctx, g);
  TgStatus ended = tg_scope_end(s->ctx);
  return !g ? TG_ERR_NOMEM : status ? status : ended;
}
