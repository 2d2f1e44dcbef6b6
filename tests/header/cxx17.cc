// cxx17.cc: the headers as a C++17 program sees them. Compiled, not run: tools/check-header.
#include "tg.h"
#include "tg_llm.h"
#include "tg_nn.h"
int main() {
  TgContext *c = tg_open(nullptr);
  TgTensor *x = tg_full(c, TG_SHAPE(2, 3), 1.5), *s = tg_full(c, TG_SCALAR, 2);
  TG_SCOPE(c) {
    TgReduceOptions o{};
    o.axis = TG_AXES(1, -1), o.keepdim = true;
    TgFileOptions file{};
    file.offset = 64;
    TgTensor *y = tg_add(tg_sum(x, o), tg_mean(x)), *z = tg_conv2d(x, y), *w = tg_max_pool2d(z);
    TgTensor *f = tg_from_file(c, "data", TG_F32, TG_SHAPE(2, 3), file), *r = tg_rand(c, TG_SHAPE(4)), *u = tg_uniform(c, TG_SHAPE(4), -1, 1);
    TgTensor *params[] = {x, w};
    TgOptimOptions adam{};
    adam.set = ".beta1";
    TgOptim *opt = tg_adam(c, params, 2, adam);
    (void)tg_optim_step(opt), (void)tg_layer_norm(r), (void)tg_eye(c, 3), (void)tg_arange(c, 0, 4), (void)tg_cross_entropy(f, u);
    (void)tg_softmax(s), (void)tg_zeros(c, TG_SHAPE(1)), (void)tg_var(x), (void)tg_opt(c, "");
    tg_optim_free(opt);
  }
  (void)tg_getitem(x, TG_IDX(TG_AT(0), TG_SLICE(1, -1), TG_SLICE(TG_OPEN, 2, -1), TG_NEW, TG_ELLIPSIS, TG_ALL, TG_TENSOR(x), TG_MASK(x)));
  (void)tg_einsum("ij,jk->ik", TG_TENSORS(x, x)), (void)tg_rearrange(x, "(a b) c -> a b c", TG_NAMED({"a", 2}, {"b", 3}));
  (void)tg_setitem(x, TG_IDX(TG_ALL), x), (void)tg_index_put(x, TG_IDX(TG_ALL), x), (void)tg_sort(x, nullptr), (void)tg_conv2d(x, x, TgConvOptions());
  const char *devices[] = {"CPU", "CPU:1"};
  (void)tg_shard(x, 2, devices, 0), (void)tg_replicate(x, 2, devices), (void)tg_shard_like(x, s);
  TgLlm *model = tg_llm_open(c, "m.gguf");
  TgSampler *sampler = tg_sampler_new(c, 8);
  (void)tg_tokenize(tg_llm_tokenizer(model), "a", 1, nullptr, 0), (void)tg_template_render(nullptr, "{}", nullptr);
  tg_sampler_free(sampler), tg_llm_free(model);
  tg_close(c);
}
