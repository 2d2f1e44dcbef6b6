/* mnist_mlp.c: a multilayer perceptron on MNIST, with a checkpoint.
 *   mnist_mlp FOLDER [STEPS]     FOLDER: the four idx files, gz or not
 * A second run goes on from mlp.safetensors, where the first one left the weights and the optimiser. */
#include <stdio.h>
#include <stdlib.h>
#include <tg_io.h>
#include <tg_nn.h>

enum { BATCH = 128, WIDE = 128 };

typedef struct Net {
  TgLinear fc1, fc2;
} Net;

static const TgModule *net_module(void) {
  static const TgField fields[] = {TG_LAYER(Net, fc1, tg_linear_module),
                                   TG_LAYER(Net, fc2, tg_linear_module)};
  static const TgModule m = {"Net", sizeof(Net), fields, 2, NULL};
  return &m;
}

typedef struct Training {
  Net net;
  TgOptim *optim;
} Training;

static TgTensor *forward(const Net *n, TgTensor *x) { /* u8 (b, 1, 28, 28) -> (b, 10) */
  x = tg_div_scalar(tg_float(tg_flatten(x, 1, -1)), 255);
  return tg_linear_run(&n->fc2, tg_relu(tg_linear_run(&n->fc1, x)));
}

/* Called twice, then replayed: see tg_jit in tg.h. in: pictures and labels; out: the loss. */
static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Training *t = user;
  (void)ctx, (void)nin, (void)nout;
  out[0] = tg_sparse_cross_entropy(forward(&t->net, in[0]), in[1]);
  TgStatus s = tg_backward(out[0]);
  return s ? s : tg_optim_step(t->optim);
}

/* The state of both under one roof: what is saved and loaded. */
static TgState *state_of(TgContext *ctx, Training *t) {
  TgState *s = tg_state_new(ctx);
  tg_module_state(net_module, &t->net, s, "model");
  tg_optim_state(t->optim, s, "optim");
  return s;
}

static int train(TgContext *ctx, Training *t, TgTensor *const data[4], int steps) {
  TgJit *jit = tg_jit(ctx, step, t);
  int64_t batches = tg_len(data[0]) / BATCH;
  for (int i = 0; i < steps && !tg_error(ctx); i++)
    TG_SCOPE(ctx) {
      int64_t at = i % batches * BATCH;
      TgTensor *in[2] = {tg_contiguous(tg_slice(data[0], 0, at, at + BATCH)),
                         tg_contiguous(tg_slice(data[1], 0, at, at + BATCH))};
      TgTensor *loss = NULL;
      tg_realize_many(in, 2);
      if (!tg_jit_run(jit, in, 2, &loss, 1) && (i % 100 == 0 || i + 1 == steps))
        printf("step %d  loss %.4f\n", i + 1, tg_item_f64(loss));
    }
  tg_jit_free(jit);
  return tg_error(ctx);
}

int main(int argc, char **argv) {
  const char *path = "mlp.safetensors";
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .seed = 1});
  TgTensor *data[4];
  if (argc < 2 || tg_error(ctx) || tg_mnist(ctx, argv[1], data)) {
    fprintf(stderr, "usage: mnist_mlp FOLDER [STEPS]  %s\n", tg_errmsg(ctx));
    return 1;
  }
  Training t = {{tg_linear_new(ctx, 784, WIDE, true), tg_linear_new(ctx, WIDE, 10, true)}, NULL};
  TgTensor *params[4];
  t.optim = tg_adam(ctx, params, tg_module_parameters(net_module, &t.net, params, 4), .lr = 2e-3);

  TgState *state = state_of(ctx, &t);
  FILE *f = fopen(path, "rb");
  if (f) { /* the checkpoint of an earlier run */
    fclose(f);
    TgState *saved = tg_safe_load_file(ctx, path);
    if (!tg_load_state(state, saved)) printf("going on from %s\n", path);
    tg_state_free(saved);
  }
  train(ctx, &t, data, argc > 2 ? atoi(argv[2]) : 1000);
  tg_safe_save(state, path);
  TG_SCOPE(ctx) {
    TgTensor *right = tg_eq(tg_argmax(forward(&t.net, data[2]), .axis = TG_AXES(-1)), data[3]);
    printf("test accuracy %.2f %%\n", 100 * tg_item_f64(tg_mean(tg_float(right))));
  }
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_state_free(state), tg_optim_free(t.optim), tg_module_free(net_module, &t.net);
  tg_close(ctx);
  return bad != 0;
}
