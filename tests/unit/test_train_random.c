/* test_train_random.c: training programs at random. In: seeds. Out: whether a step that is captured gives what the
 * same step gives that is called plainly, whatever happens between steps: weights are frozen, assigned to,
 * replaced; rates, seeds and tg_training change; values are read. On INTERP, or $TG_DEV. */
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 16, MOST_READ = 3 * STEPS + 8, PARAMETERS = 8 };

/* a small network with a part that is skipped; target: an expression of one of its weights, or of its value */
typedef struct Net {
  TgContext *ctx;
  TgLinear in, within, out;
  TgBatchNorm norm;
  TgOptim *optim;
  TgLR *rate;
  TgTensor *target, *average, *x[2];
  bool norms, drops, averages, clips;
  uint64_t rng;
  double read[MOST_READ];
  int n;
  char text[8 * STEPS + 80];
} Net;

static int below(Net *t, int n) {
  t->rng = t->rng * 6364136223846793005u + 1442695040888963407u;
  return (int)((t->rng >> 33) % (uint64_t)n);
}

static int parameters(const Net *t, TgTensor **p) {
  TgTensor *all[PARAMETERS] = {t->in.weight,  t->in.bias,  t->within.weight, t->within.bias,
                               t->out.weight, t->out.bias, t->norm.weight,   t->norm.bias};
  int n = t->norms ? PARAMETERS : PARAMETERS - 2;
  memcpy(p, all, (size_t)n * sizeof *p);
  return n;
}

static TgStatus step(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Net *t = user;
  TgTensor *p[PARAMETERS], *h = tg_linear_run(&t->in, in[0]);
  int n = parameters(t, p);
  if (t->norms) h = tg_batch_norm_run(&t->norm, h);
  h = tg_relu(h);
  if (t->drops) h = tg_dropout(h, .3);
  h = tg_add(h, tg_linear_run(&t->within, h));
  out[0] = tg_mean(tg_square(tg_sub(tg_linear_run(&t->out, h), t->target)));
  if (tg_backward(out[0])) return tg_error(c);
  out[1] = t->clips ? tg_clip_grad_norm(c, p, n, .5) : tg_sum(t->in.weight);
  if (tg_optim_step(t->optim)) return tg_error(c);
  if (t->averages)
    tg_assign(t->average, tg_add(tg_mul_scalar(t->average, .9), tg_mul_scalar(t->in.weight, .1)));
  return tg_error(c);
}

static void noted(Net *t, TgTensor *value) { t->read[t->n++] = tg_item_f64(value); }

static void switched(TgTensor *w) { tg_requires_grad(w, !tg_is_parameter(w)); }

/* What happens between two steps; mostly something. */
static void event(Net *t, int what) {
  TgContext *c = t->ctx;
  snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), " %d", what);
  switch (what) {
  case 0: switched(t->in.weight); break;
  case 1: switched(t->out.bias); break;
  case 2: tg_optim_set_lr(t->optim, .01 * (1 + below(t, 5))); break;
  case 3: tg_set_training(c, !tg_training(c)); break;
  case 4: tg_assign(t->in.weight, tg_mul_scalar(t->in.weight, .5)); break;
  case 5:
    tg_replace(t->out.weight, tg_requires_grad(tg_mul_scalar(tg_detach(t->out.weight), .9), true));
    break;
  case 6:
    if (t->rate) tg_lr_step(t->rate);
    break;
  case 7: tg_realize(t->target); break;
  case 8: tg_assign(t->target, tg_full(c, TG_SCALAR, .3)); break;
  case 9: tg_assign(t->target, tg_mul_scalar(tg_sum(tg_detach(t->within.weight)), .2)); break;
  case 10: tg_manual_seed(c, (uint64_t)t->n); break;
  case 11: tg_realize(tg_randn(c, TG_SHAPE(3))); break;
  case 12: tg_assign(t->x[0], tg_mul_scalar(t->x[0], .9)); break;
  case 13: tg_collect(c); break;
  case 14: noted(t, tg_sum(tg_linear_run(&t->in, t->x[1]))); break;
  case 15: tg_assign(t->norm.weight, tg_full(c, TG_SHAPE(5), 1.1)); break;
  default: break;
  }
}

static TgOptim *optimizer(Net *t) {
  TgTensor *p[PARAMETERS];
  int n = parameters(t, p);
  switch (below(t, 6)) {
  case 0: return tg_sgd(t->ctx, p, n, .lr = .05, .momentum = .9);
  case 1: return tg_adam(t->ctx, p, n, .lr = .02);
  case 2: return tg_adamw(t->ctx, p, n, .lr = .02);
  case 3: return tg_rmsprop(t->ctx, p, n, .lr = .01);
  case 4: return tg_adagrad(t->ctx, p, n, .lr = .05);
  default: return tg_sgd(t->ctx, p, n, .lr = .05);
  }
}

static void lived(Net *t, uint64_t seed, bool captured) {
  const char *device = getenv("TG_DEV");
  *t = (Net){.rng = seed};
  t->ctx = tg_open_with(.device = device ? device : "INTERP", .seed = 3);
  TgContext *c = t->ctx;
  TG_SCOPE(c) {
    t->in = tg_linear_new(c, 4, 5, true), t->within = tg_linear_new(c, 5, 5, true);
    t->out = tg_linear_new(c, 5, 2, true), t->norm = tg_batch_norm_new(c, 5);
    t->norms = below(t, 2), t->drops = below(t, 2), t->averages = below(t, 2), t->clips = below(t, 2);
    t->optim = optimizer(t);
    t->rate = below(t, 3) ? NULL : tg_lr_exponential(t->optim, .8);
    t->average = tg_clone(tg_zeros(c, TG_SHAPE(5, 4)));
    TgTensor *of = below(t, 2) ? t->within.weight : tg_detach(t->within.weight);
    t->target = tg_mul_scalar(tg_sum(of), .1);
    for (int i = 0; i < 2; i++)
      t->x[i] = tg_clone(tg_randn(c, TG_SHAPE(6, 4)));
    tg_set_training(c, true);
    TgJit *j = tg_jit(c, step, t);
    for (int i = 0; i < STEPS && !tg_error(c); i++)
      TG_SCOPE(c) {
        TgTensor *out[2] = {NULL};
        event(t, below(t, 22));
        TgTensor *in = t->x[below(t, 2)];
        if (captured ? tg_jit_run(j, &in, 1, out, 2) : step(c, &in, 1, out, 2, t)) break;
        noted(t, out[0]), noted(t, out[1]);
      }
    noted(t, tg_sum(t->average)), noted(t, tg_sum(t->in.weight)), noted(t, tg_sum(t->norm.running_mean));
    if (tg_error(c)) fail_msg("seed %d, events%s: %s", (int)seed, t->text, tg_errmsg(c));
    tg_jit_free(j);
    tg_lr_free(t->rate), tg_optim_free(t->optim);
  }
  tg_close(c);
}

static void programs(void **state) {
  (void)state;
  const char *n = getenv("PROGRAMS"), *first = getenv("SEED");
  for (int i = 0; i < (n ? atoi(n) : 150); i++) {
    static Net plain, captured;
    uint64_t seed = (uint64_t)((first ? atoi(first) : 1) + i);
    lived(&plain, seed, false), lived(&captured, seed, true);
    assert_int_equal(plain.n, captured.n);
    for (int k = 0; k < plain.n; k++)
      if (!(fabs(plain.read[k] - captured.read[k]) <= 2e-4 * (1 + fabs(plain.read[k]))))
        fail_msg("seed %d, events%s: value %d of %d is %g, not %g", (int)seed, plain.text, k, plain.n,
                 captured.read[k], plain.read[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
