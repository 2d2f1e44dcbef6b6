// cpp17.cc: the library from C++17: contexts and layers that end by themselves, errors as exceptions.
//   cpp17       learns a curve, y = sin(3 x)
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <tg_nn.h>
#include <vector>

struct Close {
  void operator()(TgContext *c) const { tg_close(c); }

  void operator()(TgOptim *o) const { tg_optim_free(o); }
};

using Context = std::unique_ptr<TgContext, Close>;
using Optim = std::unique_ptr<TgOptim, Close>;

// A scope that ends with the block, also by an exception.
class Scope {
  TgContext *ctx;

public:
  explicit Scope(const Context &c) : ctx(c.get()) { tg_scope_begin(ctx); }

  ~Scope() { tg_scope_end(ctx); }

  Scope(const Scope &) = delete;
};

static void check(const Context &c) {
  if (tg_error(c.get())) throw std::runtime_error(tg_errmsg(c.get()));
}

class Linear {
  TgLinear layer;

public:
  Linear(const Context &c, int64_t in, int64_t out) : layer(tg_linear_new(c.get(), in, out, true)) {
    check(c);
  }

  ~Linear() { tg_linear_free(&layer); }

  Linear(const Linear &) = delete;

  TgTensor *operator()(TgTensor *x) const { return tg_linear_run(&layer, x); }

  void parameters(std::vector<TgTensor *> &to) const { to.insert(to.end(), {layer.weight, layer.bias}); }
};

static void learn() {
  TgOpenOptions options{};
  options.size = sizeof options, options.seed = 7;
  Context ctx(tg_open(&options));
  check(ctx);
  Linear first(ctx, 1, 32), second(ctx, 32, 32), last(ctx, 32, 1);
  std::vector<TgTensor *> params;
  for (const Linear *l : {&first, &second, &last})
    l->parameters(params);
  TgOptimOptions adam{};
  adam.size = sizeof adam, adam.lr = 1e-2;
  Optim optim(tg_adam_opt(ctx.get(), params.data(), (int)params.size(), &adam));
  check(ctx);

  std::vector<float> xs, ys;
  for (int i = 0; i < 128; i++)
    xs.push_back((float)i / 64 - 1), ys.push_back(std::sin(3 * xs.back()));
  double loss = 0;
  for (int step = 0; step < 300; step++) {
    Scope scope(ctx);
    TgTensor *x = tg_from(ctx.get(), xs.data(), TG_F32, TG_SHAPE(128, 1));
    TgTensor *y = tg_from(ctx.get(), ys.data(), TG_F32, TG_SHAPE(128, 1));
    TgTensor *error = tg_mse(last(tg_tanh(second(tg_tanh(first(x))))), y);
    tg_backward(error);
    tg_optim_step(optim.get());
    loss = tg_item_f64(error);
    check(ctx);
    if (step % 100 == 0) std::printf("step %d  loss %.4f\n", step + 1, loss);
  }
  std::printf("loss %.5f\n", loss);
  if (!(loss < 0.01)) throw std::runtime_error("it did not learn");
  Scope scope(ctx);
  tg_add(tg_ones(ctx.get(), TG_SHAPE(2)), tg_ones(ctx.get(), TG_SHAPE(3)));
  try {
    check(ctx);
  } catch (const std::exception &e) {
    std::printf("what a mistake looks like: %s\n", e.what());
    tg_clear_error(ctx.get());
  }
}

int main() {
  try {
    learn();
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
