/* update.c: the rules of the optimisers, as one table: the states that each remembers, its defaults, and how
 * it computes a parameter's next value from the gradient. A rule stores its new states as it computes them
 * (update_store) and goes on with the stored values, so that one kernel can do everything. */
#include "optim_private.h"
#include <math.h>

static TgTensor *blend(TgTensor *a, TgTensor *b, double beta) { /* a beta + b (1 - beta) */
  return tg_add(tg_mul_scalar(a, beta), tg_mul_scalar(b, 1 - beta));
}

static TgTensor *norm_of(TgTensor *x) { return tg_sqrt(tg_sum(tg_mul(x, x))); }

/* Returns the gradient of the loss plus decay/2 |w|^2. */
static TgTensor *decayed(const Update *u) {
  double decay = u->o->weight_decay;
  return decay != 0 ? tg_add(u->gradient, tg_mul_scalar(u->value, decay)) : u->gradient;
}

/* value (1 - lr decay) */
static TgTensor *shrunk(const Update *u) {
  double decay = u->o->weight_decay;
  return decay != 0 ? tg_mul(u->value, tg_rsub_scalar(tg_mul_scalar(u->lr, decay), 1)) : u->value;
}

/* a / b if both are positive, otherwise 1 */
static TgTensor *ratio(TgTensor *a, TgTensor *b) {
  TgTensor *both = tg_bitand(tg_gt_scalar(a, 0), tg_gt_scalar(b, 0));
  return tg_where(both, tg_div(a, tg_where(both, b, tg_ones_like(b))), tg_ones_like(a));
}

/* ---- momentum */
static bool has_momentum(const TgOptimOptions *o, int state) { return state > 0 || o->momentum != 0; }

/* torch's formula is b = mu b + g, with g for the first b; starting with b = 0 gives the same. */
static TgTensor *with_momentum(const Update *u, TgTensor *g, bool nesterov) {
  double mu = u->o->momentum;
  if (mu == 0) return g;
  TgTensor *b = update_store(u, 0, tg_add(tg_mul_scalar(update_state(u, 0), mu), g));
  return nesterov ? tg_add(g, tg_mul_scalar(b, mu)) : b;
}

static TgTensor *sgd(const Update *u) {
  TgTensor *g = u->o->late_decay ? u->gradient : decayed(u), *w = u->o->late_decay ? shrunk(u) : u->value;
  if (u->o->classic) return tg_sub(w, with_momentum(u, tg_mul(g, u->lr), u->o->nesterov));
  return tg_sub(w, tg_mul(with_momentum(u, g, u->o->nesterov), u->lr));
}

static TgTensor *lars(const Update *u) {
  TgTensor *wn = norm_of(u->value), *gn = norm_of(u->gradient);
  TgTensor *both = tg_bitand(tg_gt_scalar(wn, 0), tg_gt_scalar(gn, 0));
  TgTensor *under = tg_add(gn, tg_mul_scalar(wn, u->o->weight_decay));
  TgTensor *trust = tg_div(tg_mul_scalar(wn, u->o->trust), tg_where(both, under, tg_ones_like(under)));
  TgTensor *rate = tg_mul(tg_where(both, trust, tg_ones_like(trust)), u->lr);
  TgTensor *g = u->o->late_decay ? u->gradient : decayed(u), *w = u->o->late_decay ? shrunk(u) : u->value;
  if (u->o->classic) return tg_sub(w, with_momentum(u, tg_mul(g, rate), u->o->nesterov));
  return tg_sub(w, tg_mul(with_momentum(u, g, u->o->nesterov), rate));
}

static TgTensor *muon(const Update *u) {
  static const double quintic[3] = {3.4445, -4.775, 2.0315};
  double rows = (double)tg_dim(u->value, 0), columns = (double)tg_numel(u->value) / (rows > 0 ? rows : 1);
  TgTensor *g = with_momentum(u, u->gradient, true);
  TgTensor *flat = tg_reshape(g, TG_SHAPE(tg_dim(u->value, 0), -1));
  TgTensor *step = tg_newton_schulz(flat, u->o->steps, quintic, 1e-7);
  step = tg_mul_scalar(tg_reshape(step, tg_ndim(u->value), tg_shape(u->value)),
                       sqrt(columns > 0 && rows > columns ? rows / columns : 1));
  return tg_sub(shrunk(u), tg_mul(step, u->lr));
}

/* ---- moments */
static void powers(const TgOptimOptions *o, TgTensor **number) {
  number[0] = tg_mul_scalar(number[0], o->beta1);
  number[1] = tg_mul_scalar(number[1], o->beta2);
}

/* Returns the bias-corrected first moment, divided by the root of the second. */
static TgTensor *adam_direction(const Update *u, TgTensor *g) {
  TgTensor *m = update_store(u, 0, blend(update_state(u, 0), g, u->o->beta1));
  TgTensor *v = update_store(u, 1, blend(update_state(u, 1), tg_mul(g, g), u->o->beta2));
  TgTensor *mh = tg_div(m, tg_rsub_scalar(u->number[0], 1)), *vh = tg_div(v, tg_rsub_scalar(u->number[1], 1));
  return tg_div(mh, tg_add_scalar(tg_sqrt(vh), u->o->eps));
}

static TgTensor *adam(const Update *u) {
  return tg_sub(u->value, tg_mul(adam_direction(u, decayed(u)), u->lr));
}

static TgTensor *decoupled(const Update *u) {
  TgTensor *up = adam_direction(u, u->gradient);
  return u->o->weight_decay != 0 ? tg_add(up, tg_mul_scalar(u->value, u->o->weight_decay)) : up;
}

static TgTensor *adamw(const Update *u) { return tg_sub(u->value, tg_mul(decoupled(u), u->lr)); }

static TgTensor *lamb(const Update *u) {
  TgTensor *up = tg_contiguous(decoupled(u));
  return tg_sub(u->value, tg_mul(up, tg_mul(ratio(norm_of(u->value), norm_of(up)), u->lr)));
}

static void first_power(const TgOptimOptions *o, TgTensor **number) {
  number[0] = tg_mul_scalar(number[0], o->beta1);
}

static TgTensor *adamax(const Update *u) {
  TgTensor *g = decayed(u), *m = update_store(u, 0, blend(update_state(u, 0), g, u->o->beta1));
  TgTensor *most =
      tg_maximum(tg_mul_scalar(update_state(u, 1), u->o->beta2), tg_add_scalar(tg_abs(g), u->o->eps));
  TgTensor *rate = tg_div(u->lr, tg_rsub_scalar(u->number[0], 1));
  return tg_sub(u->value, tg_mul(tg_div(m, update_store(u, 1, most)), rate));
}

/* ---- Nesterov's Adam. Its numbers are the step, the product of the momenta, and beta2^step. */
static TgTensor *nadam_momentum(const TgOptimOptions *o, TgTensor *step) {
  TgTensor *fade = tg_rpow_scalar(tg_mul_scalar(step, o->alpha), 0.96);
  return tg_mul_scalar(tg_rsub_scalar(tg_mul_scalar(fade, 0.5), 1), o->beta1);
}

static void nadam_advance(const TgOptimOptions *o, TgTensor **number) {
  number[0] = tg_add_scalar(number[0], 1);
  number[1] = tg_mul(number[1], nadam_momentum(o, number[0]));
  number[2] = tg_mul_scalar(number[2], o->beta2);
}

static TgTensor *nadam(const Update *u) {
  TgTensor *g = decayed(u), *m = update_store(u, 0, blend(update_state(u, 0), g, u->o->beta1));
  TgTensor *v = update_store(u, 1, blend(update_state(u, 1), tg_mul(g, g), u->o->beta2));
  TgTensor *under = tg_add_scalar(tg_sqrt(tg_div(v, tg_rsub_scalar(u->number[2], 1))), u->o->eps);
  TgTensor *mu = nadam_momentum(u->o, u->number[0]);
  TgTensor *after = nadam_momentum(u->o, tg_add_scalar(u->number[0], 1));
  TgTensor *of_g = tg_div(tg_rsub_scalar(mu, 1), tg_rsub_scalar(u->number[1], 1));
  TgTensor *of_m = tg_div(after, tg_rsub_scalar(tg_mul(u->number[1], after), 1));
  TgTensor *up = tg_div(tg_add(tg_mul(g, of_g), tg_mul(m, of_m)), under);
  return tg_sub(u->value, tg_mul(up, u->lr));
}

/* ---- rectified Adam. Its numbers are the step, 1 - beta1^step and 1 - beta2^step. The differences are kept,
 * because 1 minus a power near 1 has few digits, and they decide when the rectification begins. */
static void radam_advance(const TgOptimOptions *o, TgTensor **number) {
  number[0] = tg_add_scalar(number[0], 1);
  number[1] = tg_add_scalar(tg_mul_scalar(number[1], o->beta1), 1 - o->beta1);
  number[2] = tg_add_scalar(tg_mul_scalar(number[2], o->beta2), 1 - o->beta2);
}

static TgTensor *radam(const Update *u) {
  /* length of the moving average after many steps */
  double last = 2 / (1 - u->o->beta2) - 1;
  TgTensor *g = decayed(u), *m = update_store(u, 0, blend(update_state(u, 0), g, u->o->beta1));
  TgTensor *v = update_store(u, 1, blend(update_state(u, 1), tg_mul(g, g), u->o->beta2));
  TgTensor *rest = u->number[2], *mh = tg_div(m, u->number[1]);
  TgTensor *power = tg_rsub_scalar(rest, 1);
  TgTensor *length = tg_rsub_scalar(tg_mul_scalar(tg_div(tg_mul(u->number[0], power), rest), 2), last);
  TgTensor *long_enough = tg_gt_scalar(length, 5);
  TgTensor *safe = tg_where(long_enough, length, tg_full_like(length, 6));
  TgTensor *top = tg_mul_scalar(tg_mul(tg_sub_scalar(safe, 4), tg_sub_scalar(safe, 2)), last);
  TgTensor *rectified = tg_sqrt(tg_div(top, tg_mul_scalar(safe, (last - 4) * (last - 2))));
  TgTensor *adaptive = tg_div(tg_sqrt(rest), tg_add_scalar(tg_sqrt(v), u->o->eps));
  TgTensor *up = tg_mul(mh, tg_where(long_enough, tg_mul(adaptive, rectified), tg_ones_like(adaptive)));
  return tg_sub(u->value, tg_mul(up, u->lr));
}

/* ---- averages of squares */
static bool rmsprop_has(const TgOptimOptions *o, int state) {
  return state == 0 || (state == 1 ? o->momentum != 0 : o->centered);
}

static TgTensor *rmsprop(const Update *u) {
  TgTensor *g = decayed(u),
           *spread = update_store(u, 0, blend(update_state(u, 0), tg_mul(g, g), u->o->alpha));
  if (u->o->centered) {
    TgTensor *mean = update_store(u, 2, blend(update_state(u, 2), g, u->o->alpha));
    spread = tg_sub(spread, tg_mul(mean, mean));
  }
  TgTensor *up = tg_div(g, tg_add_scalar(tg_sqrt(spread), u->o->eps));
  if (u->o->momentum != 0)
    up = update_store(u, 1, tg_add(tg_mul_scalar(update_state(u, 1), u->o->momentum), up));
  return tg_sub(u->value, tg_mul(up, u->lr));
}

static TgTensor *adagrad(const Update *u) {
  TgTensor *g = decayed(u), *sum = update_store(u, 0, tg_add(update_state(u, 0), tg_mul(g, g)));
  return tg_sub(u->value, tg_mul(tg_div(g, tg_add_scalar(tg_sqrt(sum), u->o->eps)), u->lr));
}

static TgTensor *adadelta(const Update *u) {
  TgTensor *g = decayed(u), *sq = update_store(u, 0, blend(update_state(u, 0), tg_mul(g, g), u->o->alpha));
  TgTensor *had = update_state(u, 1);
  TgTensor *up =
      tg_mul(tg_div(tg_sqrt(tg_add_scalar(had, u->o->eps)), tg_sqrt(tg_add_scalar(sq, u->o->eps))), g);
  TgTensor *w = tg_sub(u->value, tg_mul(up, u->lr));
  return update_store(u, 1, blend(had, tg_mul(up, up), u->o->alpha)) ? w : NULL;
}

/* clang-format off */
#define MOMENTS {"exp_avg", "exp_avg_sq"}
#define BETAS .beta1 = 0.9, .beta2 = 0.999
#define POWERS  .number = {"beta1_power", "beta2_power"}, .initial = {1, 1}, .advance = powers
const Rule nn_rules[NRULES] = {
    [RULE_SGD] = {"sgd", {.lr = 1e-3}, .state = {"momentum_buffer"}, .has_state = has_momentum,
                  .update = sgd},
    [RULE_LARS] = {"lars", {.lr = 1e-3, .momentum = 0.9, .weight_decay = 1e-4, .trust = 1e-3},
                   .state = {"momentum_buffer"}, .has_state = has_momentum, .update = lars},
    [RULE_MUON] = {"muon", {.lr = 1e-3, .momentum = 0.95, .weight_decay = 0.1, .steps = 5},
                   .state = {"momentum_buffer"}, .has_state = has_momentum, .update = muon, .least_rank = 2},
    [RULE_ADAM] = {"adam", {.lr = 1e-3, BETAS, .eps = 1e-8}, POWERS, .state = MOMENTS, .update = adam},
    [RULE_ADAMW] = {"adamw", {.lr = 1e-3, BETAS, .eps = 1e-8, .weight_decay = 0.01}, POWERS,
                    .state = MOMENTS, .update = adamw},
    [RULE_LAMB] = {"lamb", {.lr = 1e-3, BETAS, .eps = 1e-6}, POWERS, .state = MOMENTS, .update = lamb},
    [RULE_RMSPROP] = {"rmsprop", {.lr = 1e-2, .alpha = 0.99, .eps = 1e-8},
                      .state = {"square_avg", "momentum_buffer", "grad_avg"}, .has_state = rmsprop_has,
                      .update = rmsprop},
    [RULE_ADAGRAD] = {"adagrad", {.lr = 1e-2, .eps = 1e-10}, .state = {"sum"}, .update = adagrad},
    [RULE_ADADELTA] = {"adadelta", {.lr = 1, .alpha = 0.9, .eps = 1e-6}, .state = {"square_avg", "acc_delta"},
                       .update = adadelta},
    [RULE_ADAMAX] = {"adamax", {.lr = 2e-3, BETAS, .eps = 1e-8}, .number = {"beta1_power"}, .initial = {1},
                     .advance = first_power, .state = {"exp_avg", "exp_inf"}, .update = adamax},
    [RULE_NADAM] = {"nadam", {.lr = 2e-3, BETAS, .eps = 1e-8, .alpha = 4e-3},
                    .number = {"step", "mu_product", "beta2_power"}, .initial = {0, 1, 1},
                    .advance = nadam_advance, .state = MOMENTS, .update = nadam},
    [RULE_RADAM] = {"radam", {.lr = 1e-3, BETAS, .eps = 1e-8},
                    .number = {"step", "beta1_rest", "beta2_rest"}, .initial = {0, 0, 0},
                    .advance = radam_advance, .state = MOMENTS, .update = radam},
};
/* clang-format on */
