/* export_step.c: a step of training, written as C that needs no library: step.c and step.h.
 *   export_step [PATH]
 * The network learns from (x, y) what f is, y = f(x); examples/export/learn.c shows it numbers and lets it learn
 * on, on any machine with a compiler:
 *   cc -std=c99 -O2 examples/export/learn.c step.c -I. -lm -o learn */
#include <stdio.h>
#include <tg_io.h>
#include <tg_nn.h>

enum { BATCH = 16, WIDE = 24 };

typedef struct Net {
  TgLinear in, out;
  TgOptim *optim;
} Net;

/* in: x and y, (BATCH, 1). out: the loss, and what the network says of x. */
static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Net *n = user;
  (void)ctx, (void)nin, (void)nout;
  out[1] = tg_linear_run(&n->out, tg_tanh(tg_linear_run(&n->in, in[0])));
  out[0] = tg_mean(tg_square(tg_sub(out[1], in[1])));
  TgStatus s = tg_backward(out[0]);
  return s ? s : tg_optim_step(n->optim);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "step";
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .seed = 1});
  Net n = {tg_linear_new(ctx, 1, WIDE, true), tg_linear_new(ctx, WIDE, 1, true), NULL};
  TgTensor *params[] = {n.in.weight, n.in.bias, n.out.weight, n.out.bias}, *out[2];
  n.optim = tg_adam(ctx, params, 4, .lr = 0.01);
  TgState *names = tg_state_new(ctx);
  tg_linear_state(&n.in, names, "first");
  tg_linear_state(&n.out, names, "second");
  TgJit *jit = tg_jit(ctx, step, &n);
  TgTensor *in[] = {tg_clone(tg_zeros(ctx, TG_SHAPE(BATCH, 1))), tg_clone(tg_ones(ctx, TG_SHAPE(BATCH, 1)))};
  for (int i = 0; i < 2; i++) /* the second run is captured */
    tg_jit_run(jit, in, 2, out, 2);
  TgCText about = {0};
  const char *inputs[] = {"x", "y"}, *outputs[] = {"loss", "guess"};
  if (!tg_export(jit, path, .name = "step", .inputs = inputs, .outputs = outputs, .state = names,
                 .about = &about))
    printf("%s.c: state %lld bytes, arena %lld, %lld operations a step\n", path, (long long)about.state_bytes,
           (long long)about.arena_bytes, (long long)about.operations);
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_state_free(names), tg_optim_free(n.optim), tg_jit_free(jit);
  tg_close(ctx);
  return bad != 0;
}
