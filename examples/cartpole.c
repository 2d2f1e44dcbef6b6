/* cartpole.c: reinforcement learning by policy gradients (REINFORCE): a cart is pushed left or right so that
 * the pole on it stays up. A game lasts at most 200 turns. cartpole [GAMES] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tg_nn.h>

enum { TURNS = 200, WIDE = 32, GAMES_A_STEP = 8, ROWS = TURNS * GAMES_A_STEP };

typedef struct Policy {
  TgLinear l1, l2;
  TgOptim *optim;
} Policy;

static TgTensor *logits_of(const Policy *p, TgTensor *state) { /* (n, 4) -> (n, 2) */
  return tg_linear_run(&p->l2, tg_tanh(tg_linear_run(&p->l1, state)));
}

/* Barto, Sutton, Anderson 1983: x, its speed, the angle, its speed; a step of 0.02 s. false: it fell. */
static bool push(float s[4], int right) {
  double force = right ? 10 : -10, sine = sin(s[2]), cosine = cos(s[2]);
  double part = (force + 0.05 * s[3] * s[3] * sine) / 1.1;
  double turn = (9.8 * sine - cosine * part) / (0.5 * (4.0 / 3 - 0.1 * cosine * cosine / 1.1));
  double move = part - 0.05 * turn * cosine / 1.1;
  s[0] += 0.02f * s[1], s[1] += (float)(0.02 * move), s[2] += 0.02f * s[3], s[3] += (float)(0.02 * turn);
  return fabs(s[0]) < 2.4 && fabs(s[2]) < 0.2095;
}

/* in: states (ROWS, 4), what was done (ROWS), how well that went (ROWS; 0 where there was no turn) */
static TgStatus learn(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Policy *p = user;
  (void)ctx, (void)nin, (void)nout;
  TgTensor *each = tg_sparse_cross_entropy(logits_of(p, in[0]), in[1], .reduction = TG_NONE);
  out[0] = tg_div_scalar(tg_sum(tg_mul(each, in[2])), GAMES_A_STEP);
  TgStatus s = tg_backward(out[0]);
  return s ? s : tg_optim_step(p->optim);
}

static TgStatus act(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)ctx, (void)nin, (void)nout;
  out[0] = tg_softmax(logits_of(user, in[0]));
  return TG_OK;
}

static double chance(void) { return rand() / (RAND_MAX + 1.0); }

static float states[ROWS][4], gains[ROWS];
static int32_t done[ROWS];

/* A few games at a time, so that one run of the policy serves them all; the turns of each. */
static int play(TgContext *ctx, TgJit *policy, int turns[GAMES_A_STEP]) {
  float s[GAMES_A_STEP][4];
  int going = GAMES_A_STEP;
  for (int g = 0; g < GAMES_A_STEP; g++) {
    turns[g] = 0;
    for (int k = 0; k < 4; k++)
      s[g][k] = (float)(0.1 * chance() - 0.05);
  }
  bool up[GAMES_A_STEP] = {true, true, true, true, true, true, true, true};
  for (int t = 0; t < TURNS && going && !tg_error(ctx); t++)
    TG_SCOPE(ctx) {
      double p[GAMES_A_STEP][2];
      TgTensor *in = tg_from(ctx, s, TG_F32, TG_SHAPE(GAMES_A_STEP, 4)), *out = NULL;
      if (!tg_jit_run(policy, &in, 1, &out, 1)) tg_read_f64(out, p[0], 2 * GAMES_A_STEP);
      for (int g = 0; g < GAMES_A_STEP && !tg_error(ctx); g++) {
        int row = g * TURNS + t;
        if (!up[g]) continue;
        for (int k = 0; k < 4; k++)
          states[row][k] = s[g][k];
        done[row] = chance() < p[g][1];
        turns[g] = t + 1;
        up[g] = push(s[g], done[row]);
        going -= !up[g];
      }
    }
  return tg_error(ctx);
}

/* What came after each turn, discounted, less the mean, over the deviation. */
static void judge(const int turns[GAMES_A_STEP]) {
  double sum = 0, squares = 0, n = 0;
  for (int g = 0; g < GAMES_A_STEP; g++) {
    double after = 0;
    for (int t = TURNS - 1; t >= 0; t--) {
      after = t < turns[g] ? 1 + 0.99 * after : 0;
      gains[g * TURNS + t] = (float)after;
      if (t < turns[g]) sum += after, squares += after * after, n++;
    }
  }
  double mean = sum / n, deviation = sqrt(squares / n - mean * mean) + 1e-6;
  for (int row = 0; row < ROWS; row++)
    gains[row] = row % TURNS < turns[row / TURNS] ? (float)((gains[row] - mean) / deviation) : 0;
}

int main(int argc, char **argv) {
  int games = argc > 1 ? atoi(argv[1]) : 800;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .seed = 5});
  Policy p = {tg_linear_new(ctx, 4, WIDE, true), tg_linear_new(ctx, WIDE, 2, true), NULL};
  p.optim = tg_adam(ctx, ((TgTensor *[]){p.l1.weight, p.l1.bias, p.l2.weight, p.l2.bias}), 4, .lr = 1e-2);
  TgJit *policy = tg_jit(ctx, act, &p), *learner = tg_jit(ctx, learn, &p);
  srand(5);
  double mean = 0;
  for (int i = 0; i * GAMES_A_STEP < games && !tg_error(ctx); i++) {
    int turns[GAMES_A_STEP];
    if (play(ctx, policy, turns)) break;
    judge(turns);
    TG_SCOPE(ctx) {
      TgTensor *in[] = {tg_from(ctx, states, TG_F32, TG_SHAPE(ROWS, 4)),
                        tg_from(ctx, done, TG_I32, TG_SHAPE(ROWS)),
                        tg_from(ctx, gains, TG_F32, TG_SHAPE(ROWS))};
      TgTensor *out = NULL;
      tg_jit_run(learner, in, 3, &out, 1);
    }
    mean = 0;
    for (int g = 0; g < GAMES_A_STEP; g++)
      mean += (double)turns[g] / GAMES_A_STEP;
    if (i % 10 == 0)
      printf("game %d  mean of %d games: %.0f turns\n", (i + 1) * GAMES_A_STEP, GAMES_A_STEP, mean);
  }
  printf("at the end %.0f turns of %d\n", mean, TURNS);
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_jit_free(policy), tg_jit_free(learner), tg_optim_free(p.optim);
  tg_close(ctx);
  return bad != 0;
}
