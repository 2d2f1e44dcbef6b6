/* test_shard_beside.c: copies between devices beside kernels, in captured functions. Expected: what the same
 * function gives that is not captured. Emulated GPUs do what queues were given as late as they may, as soon as
 * they may, or in an order by chance, so that a wait that is missing gives wrong values. */
#pragma GCC diagnostic ignored "-Wunused-function" /* of shard.inc it needs a part */
#include "shard.inc"
#include <unistd.h>

enum { LAYERS = 8 };

static int layers = LAYERS;

static TgStatus net_step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  TgTensor **w = user, *y = in[0], *grad[LAYERS];
  for (int i = 0; i < layers; i++)
    y = tg_tanh(tg_matmul(y, w[i]));
  out[0] = tg_mean(tg_mul(y, y));
  if (tg_gradient(out[0], w, layers, grad)) return tg_error(ctx);
  for (int i = 0; i < layers; i++)
    tg_assign(w[i], tg_sub(w[i], tg_mul_scalar(grad[i], 0.5)));
  return tg_error(ctx);
}

/* The share of the bytes that are given to be copied while their device's plan has kernels to run. */
static double given_early(const char *path) {
  char line[4096];
  long long plan = -1;
  double early = 0, all = 0, waiting = 0;
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    const char *at = strstr(line, "\"plan\":"), *bytes = strstr(line, "\"bytes\":");
    if (bytes && strstr(line, ": copy\",\"cat\":\"host\""))
      all += atof(bytes + 8), waiting += atof(bytes + 8);
    if (!at) continue;
    if (atoll(at + 7) == plan) early += waiting;
    plan = atoll(at + 7), waiting = 0;
  }
  fclose(f);
  return all > 0 ? early / all : 0;
}

static bool gpus(void) { return !ranks_asked() && (!strcmp(D[0], "CUDA") || !strcmp(D[0], "METAL")); }

/* Weights change in each step, by kernels that must not begin before the last step's copies are done. */
static void same_values(int side) {
  TgTensor *w[2][LAYERS];
  for (int i = 0; i < layers; i++)
    for (int k = 0; k < 2; k++)
      w[k][i] = tg_keep(
          tg_clone(tg_replicate(tg_mul_scalar(counted(2, (const int64_t[]){side, side}), 0.125), 2, D)));
  TgJit *j = tg_jit(C, net_step, w[0]);
  for (int i = 0; i < 6; i++) {
    OK(tg_scope_begin(C));
    TgTensor *x = tg_shard(tg_add_scalar(counted(2, (const int64_t[]){8, side}), i), 2, D, 0), *loss, *want;
    OK(tg_realize(x));
    OK(tg_jit_run(j, &x, 1, &loss, 1));
    OK(net_step(C, &x, 1, &want, 1, w[1]));
    EQUAL(loss, want);
    OK(tg_scope_end(C));
  }
  for (int i = 0; i < layers; i++)
    EQUAL(w[0][i], w[1][i]);
  tg_jit_free(j);
}

/* One device stores over what another one takes, and takes nothing of it: it may run ahead. */
static TgStatus taken(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  TgTensor **v = user, *a = v[0], *b = v[1];
  const char *there = tg_device(b);
  TgTensor *made = tg_to(tg_add_scalar(tg_mul_scalar(a, 3), 1), there);
  TgTensor *next = tg_add(tg_add(tg_mul_scalar(b, 2), tg_to(a, there)), made);
  out[0] = tg_add(a, in[0]);
  tg_assign(b, next);
  tg_assign(a, tg_add_scalar(a, 1));
  return tg_error(ctx);
}

/* Replays one after another, of which nobody reads anything: what a device has still to read of the one before
 * is not overwritten, neither where a copy comes from nor where it goes. ahead: the device that is read first. */
static void replays_in_a_row(int from, int ahead) {
  enum { N = 8, RUNS = 6 };

  float want[2][N], got[N];
  TgTensor *v[2], *x = tg_to(tg_cast(tg_arange(C, 0, N), TG_F32), D[from]), *y;
  for (int k = 0; k < 2; k++) {
    v[k] = tg_keep(tg_clone(tg_to(tg_cast(tg_arange(C, k, N + k), TG_F32), D[k ? !from : from])));
    for (int i = 0; i < N; i++)
      want[k][i] = (float)(i + k);
  }
  OK(tg_realize(x));
  TgJit *j = tg_jit(C, taken, v);
  for (int run = 0; run < RUNS; run++) {
    OK(tg_jit_run(j, &x, 1, &y, 1));
    for (int i = 0; i < N; i++) {
      want[1][i] = 2 * want[1][i] + 4 * want[0][i] + 1;
      want[0][i] += 1;
    }
  }
  for (int n = 0; n < 2; n++) {
    int k = n ? !ahead : ahead;
    OK(tg_read(v[k], got, sizeof got));
    for (int i = 0; i < N; i++)
      if (got[i] != want[k][i]) fail_msg("%d, element %d: %g, not %g", k, i, got[i], want[k][i]);
  }
  tg_jit_free(j);
}

static void copies_beside_kernels(void **state) {
  (void)state;
  char path[80];
  TgTensor *w[LAYERS];
  same_values(16);
  for (int k = 0; k < 4; k++)
    replays_in_a_row(k % 2, k / 2);
  snprintf(path, sizeof path, "/tmp/tg_shard_beside_%ld", (long)getpid());
  for (int i = 0; i < layers; i++)
    w[i] = tg_keep(tg_clone(tg_replicate(tg_mul_scalar(counted(2, (const int64_t[]){16, 16}), 0.125), 2, D)));
  OK(tg_profile_start(C, path)); /* names of exchanges are those of a capture in a profile */
  TgJit *j = tg_jit(C, net_step, w);
  for (int i = 0; i < 3; i++) {
    OK(tg_scope_begin(C));
    TgTensor *x = tg_shard(counted(2, (const int64_t[]){8, 16}), 2, D, 0), *loss;
    OK(tg_realize(x));
    if (i == 2) OK(tg_profile_stop(C)), OK(tg_profile_start(C, path));
    OK(tg_jit_run(j, &x, 1, &loss, 1));
    OK(tg_scope_end(C));
  }
  OK(tg_profile_stop(C));
  double share = given_early(path);
  unlink(path);
  if (gpus() && share < 0.8) fail_msg("%.3f of the bytes", share);
  tg_jit_free(j);
}

/* Of two GPUs each order of their queues gives the same. */
static void orders(void **state) {
  static const char *const order[] = {"1", "2", "3", "5", "7"};
  const char *had = getenv("TG_EMU");
  if (!gpus() || !had || !*had) {
    print_message("skipped: only emulated GPUs ($TG_EMU) run their queues in another order\n");
    skip();
  }
  char kept[16];
  snprintf(kept, sizeof kept, "%s", had);
  layers = 3;
  for (int i = 0; i < 5; i++) {
    close_it(state);
    setenv("TG_EMU", order[i], 1);
    assert_int_equal(open_it(state), 0);
    same_values(4);
    for (int k = 0; k < 8; k++) /* after another number of calls each: queues run in another order */
      replays_in_a_row(k % 2, k / 2 % 2);
  }
  layers = LAYERS;
  setenv("TG_EMU", kept, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(copies_beside_kernels, open_it, close_it),
      cmocka_unit_test_setup_teardown(orders, open_it, close_it),
  };
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
