/* schedule.c: learning rates by epoch. In: an optimiser, whose rate is the base. Out: calls of
 * tg_optim_set_lr with the rate of each epoch. Except for the plateau, a rate is a function of the base and
 * the epoch alone, so a schedule can continue from any epoch. */
#include "nn_private.h"
#include "tg_io.h"
#include <math.h>

static const double PI = 3.14159265358979323846;

enum { NSAVED = 4 };

struct TgLR {
  TgContext *ctx;
  TgOptim *opt;
  TgLROptions o;
  double (*rate)(const TgLR *s); /* NULL: a plateau or a group */
  double base, max, best;
  int64_t epoch, epochs, warmup, bad;
  int64_t *milestones;
  int nmilestones;
  TgLR **group;
  int ngroup;
  TgTensor *saved[NSAVED]; /* kept; tg_lr_state makes them */
};

/* ---- rates */
static double half_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + cos(PI * part)) / 2;
}

static double multi_step_rate(const TgLR *s) {
  double rate = s->base;
  for (int i = 0; i < s->nmilestones; i++)
    if (s->epoch >= s->milestones[i]) rate *= s->o.gamma;
  return rate;
}

static double steps_rate(const TgLR *s) { return s->base * pow(s->o.gamma, (double)(s->epoch / s->epochs)); }

static double exponential_rate(const TgLR *s) { return s->base * pow(s->o.gamma, (double)s->epoch); }

static double cosine_rate(const TgLR *s) {
  return half_cosine(s->base, s->o.minimum, (double)s->epoch / (double)s->epochs);
}

static double warmup_cosine_rate(const TgLR *s) {
  if (s->epoch < s->warmup)
    return s->base * (s->o.start + (1 - s->o.start) * (double)s->epoch / (double)s->warmup);
  if (s->epoch >= s->epochs) return s->o.minimum;
  return half_cosine(s->base, s->o.minimum, (double)(s->epoch - s->warmup) / (double)(s->epochs - s->warmup));
}

static double one_cycle_rate(const TgLR *s) {
  double first = s->max / s->o.div_factor, last = first / s->o.final_div_factor;
  double top = s->o.pct_start * (double)s->epochs - 1, end = (double)s->epochs - 1, e = (double)s->epoch;
  double from = e <= top ? first : s->max, to = e <= top ? s->max : last;
  double part = e <= top ? (top > 0 ? e / top : 1) : end > top ? (e - top) / (end - top) : 1;
  if (part > 1) part = 1;
  return s->o.cosine ? half_cosine(from, to, part) : from + (to - from) * part;
}

/* ---- making one */
static TgLR *refuse(TgContext *ctx, const char *text) {
  tg_set_error(ctx, TG_ERR_VALUE, text);
  return NULL;
}

static TgLR *lr_alloc(TgOptim *opt, const TgLROptions *given) {
  if (!opt) return NULL;
  TgLROptions o;
  if (NN_OPTIONS(nn_optim_context(opt), "lr", TgLROptions, &o, given)) return NULL;
  TgLR *s = tg_alloc(nn_optim_context(opt), sizeof *s);
  if (!s) return NULL;
  s->ctx = nn_optim_context(opt);
  s->opt = opt;
  s->base = tg_optim_lr(opt);
  o.gamma = TG_OPTION(o, gamma, 0.1);
  o.div_factor = TG_OPTION(o, div_factor, 25);
  o.final_div_factor = TG_OPTION(o, final_div_factor, 1e4);
  o.pct_start = TG_OPTION(o, pct_start, 0.3);
  o.factor = TG_OPTION(o, factor, 0.1);
  o.threshold = TG_OPTION(o, threshold, 1e-4);
  o.patience = TG_OPTION(o, patience, 10);
  o.set = NULL;
  s->o = o;
  s->best = s->o.highest ? -INFINITY : INFINITY;
  return s;
}

static TgStatus lr_apply(TgLR *s) { return s->rate ? tg_optim_set_lr(s->opt, s->rate(s)) : TG_OK; }

static TgLR *lr_begin(TgLR *s, double (*rate)(const TgLR *)) {
  if (!s) return NULL;
  s->rate = rate;
  if (!lr_apply(s)) return s;
  tg_lr_free(s);
  return NULL;
}

TgLR *tg_lr_multi_step_opt(TgOptim *opt, const int64_t *milestones, int n, const TgLROptions *o) {
  TgLR *s = n >= 0 && (milestones || !n) ? lr_alloc(opt, o) : NULL;
  if (!s) return NULL;
  s->milestones = tg_alloc(s->ctx, ((size_t)n + 1) * sizeof *s->milestones);
  if (!s->milestones) {
    tg_lr_free(s);
    return NULL;
  }
  for (int i = 0; i < n; i++)
    s->milestones[i] = milestones[i];
  s->nmilestones = n;
  return lr_begin(s, multi_step_rate);
}

/* Makes a schedule over a number of epochs. */
static TgLR *lr_over(TgOptim *opt, int64_t warmup, int64_t epochs, double max, const TgLROptions *o,
                     double (*rate)(const TgLR *)) {
  if (!opt) return NULL;
  TgContext *ctx = nn_optim_context(opt);
  if (epochs < 1 || warmup < 0 || warmup > epochs) return refuse(ctx, "schedule: the number of epochs");
  if (!(max >= 0)) return refuse(ctx, "schedule: a negative learning rate");
  TgLR *s = lr_alloc(opt, o);
  if (!s) return NULL;
  s->warmup = warmup;
  s->epochs = epochs;
  s->max = max;
  if (s->o.div_factor > 0 && s->o.final_div_factor > 0 && s->o.pct_start > 0 && s->o.pct_start <= 1)
    return lr_begin(s, rate);
  tg_lr_free(s);
  return refuse(ctx,
                "schedule: div_factor, final_div_factor and pct_start must be positive, pct_start at most 1");
}

TgLR *tg_lr_steps_opt(TgOptim *opt, int64_t every, const TgLROptions *o) {
  return lr_over(opt, 0, every, 0, o, steps_rate);
}

TgLR *tg_lr_exponential(TgOptim *opt, double gamma) {
  TgLROptions o = {.size = sizeof o, .gamma = gamma};
  if (opt && !(gamma > 0)) return refuse(nn_optim_context(opt), "lr_exponential: gamma is not positive");
  return lr_over(opt, 0, 1, 0, &o, exponential_rate);
}

TgLR *tg_lr_cosine_opt(TgOptim *opt, int64_t epochs, const TgLROptions *o) {
  return lr_over(opt, 0, epochs, 0, o, cosine_rate);
}

TgLR *tg_lr_warmup_cosine_opt(TgOptim *opt, int64_t warmup, int64_t epochs, const TgLROptions *o) {
  return lr_over(opt, warmup, epochs, 0, o, warmup_cosine_rate);
}

TgLR *tg_lr_one_cycle_opt(TgOptim *opt, double max, int64_t epochs, const TgLROptions *o) {
  return lr_over(opt, 0, epochs, max, o, one_cycle_rate);
}

TgLR *tg_lr_plateau_opt(TgOptim *opt, const TgLROptions *o) { return lr_alloc(opt, o); }

TgLR *tg_lr_group(TgContext *ctx, TgLR *const *schedules, int n) {
  if (!ctx || n < 0 || (n && !schedules)) return NULL;
  for (int i = 0; i < n; i++)
    if (!schedules[i] || schedules[i]->ctx != ctx || schedules[i]->group)
      return refuse(ctx, "lr_group: a schedule is NULL, a group, or of another context");
  TgLR *s = tg_alloc(ctx, sizeof *s);
  if (!s) return NULL;
  s->ctx = ctx;
  s->ngroup = n;
  s->group = tg_alloc(ctx, ((size_t)n + 1) * sizeof *s->group);
  if (s->group) {
    for (int i = 0; i < n; i++)
      s->group[i] = schedules[i];
    return s;
  }
  tg_lr_free(s);
  return NULL;
}

void tg_lr_free(TgLR *s) {
  if (!s) return;
  for (int i = 0; i < NSAVED; i++)
    tg_release(s->saved[i]);
  tg_free(s->ctx, s->milestones), tg_free(s->ctx, s->group);
  tg_free(s->ctx, s);
}

/* ---- stepping */
TgStatus tg_lr_step(TgLR *s) {
  if (!s) return TG_ERR_VALUE;
  TgStatus status = TG_OK;
  for (int i = 0; !status && i < s->ngroup; i++)
    status = tg_lr_step(s->group[i]);
  s->epoch++;
  return status ? status : lr_apply(s);
}

static bool better(const TgLR *s, double metric) {
  double by = s->o.threshold, sign = s->o.highest ? 1 : -1;
  double bound = s->o.absolute ? s->best + sign * by : s->best * (1 + sign * by);
  if (isinf(s->best)) bound = s->best;
  return s->o.highest ? metric > bound : metric < bound;
}

TgStatus tg_lr_metric(TgLR *s, double metric) {
  if (!s) return TG_ERR_VALUE;
  TgStatus status = TG_OK;
  for (int i = 0; !status && i < s->ngroup; i++)
    status = s->group[i]->rate ? tg_lr_step(s->group[i]) : tg_lr_metric(s->group[i], metric);
  s->epoch++;
  if (status || s->rate || s->ngroup) return status ? status : lr_apply(s);
  if (better(s, metric)) {
    s->best = metric;
    s->bad = 0;
  } else
    s->bad++;
  if (s->bad <= s->o.patience) return TG_OK;
  s->bad = 0;
  double next = tg_optim_lr(s->opt) * s->o.factor;
  return tg_optim_set_lr(s->opt, next > s->o.minimum ? next : s->o.minimum);
}

int64_t tg_lr_epoch(const TgLR *s) { return s ? s->epoch : 0; }

/* ---- state */
TgStatus tg_lr_state(TgLR *s, TgState *state, const char *prefix) {
  static const char *const names[NSAVED] = {"last_epoch", "best", "bad_epochs", "lr"};
  if (!s || !state || s->group) return TG_ERR_VALUE;
  double now[NSAVED] = {(double)s->epoch, s->best, (double)s->bad, tg_optim_lr(s->opt)};
  TgStatus status = TG_OK;
  for (int i = 0; !status && i < NSAVED; i++) {
    if (s->saved[i])
      status = nn_number_set(s->saved[i], now[i]);
    else
      s->saved[i] = nn_number(s->ctx, now[i], TG_F64, NULL);
    if (!status) status = nn_state_put(state, prefix, names[i], s->saved[i]);
  }
  return status;
}

TgStatus tg_lr_resume(TgLR *s) {
  double was[NSAVED];
  if (!s || !s->saved[0]) return TG_ERR_VALUE;
  for (int i = 0; i < NSAVED; i++) {
    was[i] = tg_item_f64(s->saved[i]);
    if (tg_error(s->ctx)) return tg_error(s->ctx);
  }
  if (!(was[0] >= 0 && was[0] < 0x1p53) || !(was[2] >= 0 && was[2] < 0x1p53) || !(was[3] >= 0))
    return refuse(s->ctx, "lr_resume: these are no epochs and rates"), TG_ERR_VALUE;
  s->epoch = (int64_t)was[0];
  s->best = was[1];
  s->bad = (int64_t)was[2];
  return tg_optim_set_lr(s->opt, was[3]);
}
