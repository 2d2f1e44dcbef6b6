// origins.cc: where operations come from, as a C++ program tells it. Compiled by each compiler for each standard, linked
// with the library and run by tests/header/check-cxx: lines are those of __LINE__ here, never the library's.
#include "tg.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

static int line;

static void is(const std::string &got, const char *op, int at) {
  std::string want = std::string(op) + " (origins.cc:" + std::to_string(at) + ")";
  if (got == want) return;
  std::printf("'%s', not '%s'\n", got.c_str(), want.c_str());
  std::exit(1);
}

static std::string of(TgTensor *t) { return tg_origin_of(t) ? tg_origin_of(t) : "NULL"; }

// A template whose arguments hold a comma, and a name of the user's own that an overload decides.
template <int A, int B> static TgTensor *picked(TgTensor *x) { return A < B ? x : nullptr; }

namespace model {
struct Layer {
  TgTensor *w;
  TgTensor *operator()(TgTensor *x) const { return line = __LINE__, tg_relu(tg_matmul(x, w)); }
};
static TgTensor *twice(TgTensor *x) { return line = __LINE__, ::tg_add(x, x); }
} // namespace model

static TgTensor *applied(TgTensor *(*f)(TgTensor *), TgTensor *x) { return f(x); }

static void overloads(TgTensor *x) {
  TgReduceOptions o = TgReduceOptions();
  o.keepdim = true;
  is(of(tg_sum(x)), "sum", __LINE__), is(of(tg_sum(x, o)), "sum", __LINE__);
  if (tg_ndim(tg_sum(x)) != 0 || tg_ndim(tg_sum(x, o)) != 2) std::exit(2);
  is(of(tg_conv2d(tg_reshape(x, TG_SHAPE(1, 1, 4, 4)), tg_reshape(x, TG_SHAPE(1, 1, 4, 4)), TgConvOptions())), "conv2d", __LINE__);
  is(of(tg_exp(picked<1, 2>(x))), "exp", __LINE__);
  is(of(tg_neg(x ? x : nullptr)), "neg", __LINE__);
  TgTensor *both[] = {x, x};
  is(of(tg_cat(both, 2, 0)), "cat", __LINE__);
}

static void names(TgTensor *x) {
  using ::tg_sqrt;
  model::Layer layer = {x};
  TgTensor *y = layer(x), *z = model::twice(y);
  is(of(z), "add", line);
  is(of(tg_sqrt(x)), "sqrt", __LINE__);
  auto f = [](TgTensor *t) { return tg_exp(t); };
  is(of(f(x)), "exp", __LINE__ - 1);
  if (!applied(tg_relu, x) || !applied(&::tg_relu, x)) std::exit(3);
}

int main() {
  TgOpenOptions open = TgOpenOptions();
  open.device = "INTERP";
  TgContext *c = tg_open_with(open);
  TgTensor *x = tg_full(c, TG_SHAPE(4, 4), 2);
  is(of(x), "full", __LINE__ - 1);
  overloads(x), names(x);
  if (tg_error(c)) return std::puts(tg_errmsg(c)), 1;
  line = __LINE__ + 1;
  TgTensor *bad = tg_matmul(x, tg_full(c, TG_SHAPE(3, 3), 1));
  std::string says = tg_errmsg(c), end = "in matmul (origins.cc:" + std::to_string(line) + ")";
  if (bad || says.find(end) == std::string::npos) return std::printf("%s\n", says.c_str()), 1;
  tg_close(c);
  return 0;
}
