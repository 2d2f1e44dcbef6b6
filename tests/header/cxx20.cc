// cxx20.cc: the named options as a C++20 program writes them. Compiled, not run: tools/check-header.
#include "tg_io.h"
#include "tg_llm.h"
#include "tg_nn.h"

int main() {
  TgContext *c = tg_open_with({.device = "INTERP", .seed = 1});
  TgTensor *x = tg_full(c, TG_SHAPE(2, 3), 1.5, {.dtype = TG_F64});
  TgTensor *y = tg_sum(x, {.axis = TG_AXES(1, -1), .keepdim = true}), *params[] = {x, y};
  (void)tg_var(x, TG_WITH(TgVarOptions, .correction = 0));
  TgConv2d conv = tg_conv2d_new_with(c, 3, 8, 3, true, {.stride = TG_SIZES(2)});
  TgBatchNorm norm = tg_batch_norm_new(c, 8, {.momentum = 0.2});
  TgOptim *opt = tg_adamw(c, params, 2, TG_WITH(TgOptimOptions, .lr = 0.1, .weight_decay = 0));
  TgLR *rate = tg_lr_cosine(opt, 10, {.minimum = 1e-4}), *other = tg_lr_plateau(opt);
  TgScaler *scaler = tg_scaler(c, {.growth = 4});
  TgLSTM lstm = tg_lstm_new(c, 3, 4, {.layers = 2});
  TgState *s = tg_state_new(c);
  (void)tg_load_state(s, s, {.partial = true}), (void)tg_safe_save(s, "state"), (void)tg_jit_save(nullptr, "x");
  TgLlm *model = tg_llm_open(c, "m.gguf", {.context = 64});
  TgSampler *sampler = tg_sampler_new(c, 8, TG_WITH(TgSamplerOptions, .temperature = 0));
  tg_sampler_free(sampler), tg_llm_free(model);
  tg_state_free(s), tg_lstm_free(&lstm), tg_scaler_free(scaler), tg_lr_free(rate), tg_lr_free(other);
  tg_optim_free(opt), tg_batch_norm_free(&norm), tg_conv2d_free(&conv), tg_close(c);
}
