/* gan.c: two networks against each other. One makes points of a plane out of noise, the other tells them from
 * points of a ring; in the end the made ones lie on the ring.
 *   gan [STEPS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tg_nn.h>

enum { BATCH = 256, NOISE = 8, WIDE = 64, SHOWN = 512 };

typedef struct Net {
  TgLinear layer[3];
} Net;

static const TgModule *net_module(void) {
  static const TgField fields[] = {TG_LAYERS(Net, layer, tg_linear_module)};
  static const TgModule m = {"Net", sizeof(Net), fields, 1, NULL};
  return &m;
}

static Net net_new(TgContext *ctx, int in, int out) {
  return (Net){{tg_linear_new(ctx, in, WIDE, true), tg_linear_new(ctx, WIDE, WIDE, true),
                tg_linear_new(ctx, WIDE, out, true)}};
}

static TgTensor *net_run(const Net *n, TgTensor *x) {
  for (int i = 0; i < 3; i++) {
    x = tg_linear_run(&n->layer[i], x);
    if (i < 2) x = tg_leaky_relu(x, 0.2);
  }
  return x;
}

typedef struct Game {
  Net maker, judge;
  TgOptim *makes, *judges;
} Game;

static TgTensor *ring(TgContext *ctx, int64_t n) { /* (n, 2), two away from the middle */
  TgTensor *angle = tg_uniform(ctx, TG_SHAPE(n), 0, 2 * 3.14159265358979);
  TgTensor *xy[2] = {tg_cos(angle), tg_sin(angle)};
  return tg_add(tg_mul_scalar(tg_stack(xy, 2, 1), 2), tg_normal(ctx, TG_SHAPE(n, 2), 0, 0.05));
}

static TgTensor *told(TgTensor *logits, double truth) {
  return tg_binary_cross_entropy_logits(logits, tg_full_like(logits, truth));
}

/* The judge learns from both kinds; then the maker learns to be taken for the ring. Each optimiser holds one
 * net's parameters; what flows to the other's is dropped. */
static TgStatus turn(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Game *g = user;
  (void)in, (void)nin, (void)nout;
  TgTensor *made = net_run(&g->maker, tg_randn(ctx, TG_SHAPE(BATCH, NOISE)));
  out[0] =
      tg_add(told(net_run(&g->judge, ring(ctx, BATCH)), 1), told(net_run(&g->judge, tg_detach(made)), 0));
  TgStatus s = tg_backward(out[0]);
  if (!s) s = tg_optim_step(g->judges);
  made = net_run(&g->maker, tg_randn(ctx, TG_SHAPE(BATCH, NOISE)));
  out[1] = told(net_run(&g->judge, made), 1);
  if (!s) s = tg_backward(out[1]);
  tg_optim_zero_grad(g->judges);
  return s ? s : tg_optim_step(g->makes);
}

static void show(const double *xy, int n) {
  char page[21][42];
  for (int r = 0; r < 21; r++)
    snprintf(page[r], sizeof page[r], "%41s", "");
  for (int i = 0; i < n; i++) {
    int c = (int)(20.5 + 7 * xy[2 * i]), r = (int)(10.5 - 3.5 * xy[2 * i + 1]);
    if (r >= 0 && r < 21 && c >= 0 && c < 41) page[r][c] = '*';
  }
  for (int r = 0; r < 21; r++)
    puts(page[r]);
}

int main(int argc, char **argv) {
  int steps = argc > 1 ? atoi(argv[1]) : 3000;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .seed = 3});
  Game g = {net_new(ctx, NOISE, 2), net_new(ctx, 2, 1), NULL, NULL};
  TgTensor *p[6];
  g.makes = tg_adam(ctx, p, tg_module_parameters(net_module, &g.maker, p, 6), .lr = 1e-3, .beta1 = 0.5);
  g.judges = tg_adam(ctx, p, tg_module_parameters(net_module, &g.judge, p, 6), .lr = 1e-3, .beta1 = 0.5);
  TgJit *jit = tg_jit(ctx, turn, &g);
  for (int i = 0; i < steps && !tg_error(ctx); i++)
    TG_SCOPE(ctx) {
      TgTensor *out[2];
      if (!tg_jit_run(jit, NULL, 0, out, 2) && (i % 500 == 0 || i + 1 == steps))
        printf("step %d  judge %.3f  maker %.3f\n", i + 1, tg_item_f64(out[0]), tg_item_f64(out[1]));
    }
  double xy[2 * SHOWN], off = 0;
  TG_SCOPE(ctx) { tg_read_f64(net_run(&g.maker, tg_randn(ctx, TG_SHAPE(SHOWN, NOISE))), xy, 2 * SHOWN); }
  show(xy, SHOWN);
  for (int i = 0; i < SHOWN; i++)
    off += fabs(hypot(xy[2 * i], xy[2 * i + 1]) - 2) / SHOWN;
  printf("mean distance from the ring %.3f\n", off);
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_jit_free(jit), tg_optim_free(g.makes), tg_optim_free(g.judges);
  tg_close(ctx);
  return bad != 0;
}
