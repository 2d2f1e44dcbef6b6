/* c11.c: the headers as a strict C99 or C11 program sees them. Compiled, not run: tools/check-header. */
#include "tg.h"
#include "tg_io.h"
#include "tg_llm.h"
#include "tg_nn.h"

int main(void) {
  TgContext *c = tg_open_with(.device = "INTERP");
  TgTensor *x = tg_full(c, TG_SHAPE(2, 3), 1.5, .dtype = TG_F64), *s = tg_full(c, TG_SCALAR, 2);
  TG_SCOPE(c) {
    TgTensor *y = tg_add(tg_sum(x, .axis = TG_AXES(1, -1), .keepdim = true), tg_mean(x));
    TgTensor *z = tg_conv2d(x, y, .bias = s, .stride = TG_SIZES(1, 2));
    TgTensor *w = tg_max_pool2d(z, .kernel = TG_SIZES(2));
    TgTensor *f = tg_from_file(c, "data", TG_F32, TG_SHAPE(2, 3), .offset = 64, .writable = true);
    TgTensor *r = tg_rand(c, TG_SHAPE(4));
    TgTensor *u = tg_uniform(c, TG_SHAPE(4), -1, 1, .dtype = TG_F32);
    TgTensor *a = tg_arange(c, 0, 4, .step = 2);
    TgOptim *opt = tg_adam(c, ((TgTensor *[]){x, w}), 2, .lr = 0.1, .beta1 = 0);
    TgConv2d conv = tg_conv2d_new_with(c, 3, 8, 3, true, .stride = TG_SIZES(2));
    const TgSafeOptions named = TG_WITH(TgSafeOptions, .metadata = NULL);
    (void)tg_safe_save_opt(NULL, "x", &named), tg_conv2d_free(&conv);
    (void)tg_optim_step(opt), (void)tg_layer_norm(r, .weight = u), (void)tg_eye(c, 3, .m = 4),
        (void)tg_opt(c, "", .emit = "c");
    (void)tg_cross_entropy(f, a, .reduction = TG_SUM), (void)tg_softmax(x), (void)tg_zeros(c, TG_SHAPE(1)),
        (void)tg_var(x, .correction = 0);
    (void)tg_getitem(x, TG_IDX(TG_AT(0), TG_SLICE(1, -1), TG_SLICE(TG_OPEN, 2, -1), TG_NEW, TG_ELLIPSIS,
                               TG_ALL, TG_TENSOR(a), TG_MASK(y)));
    (void)tg_einsum("ij,jk->ik", TG_TENSORS(x, y), .dtype = TG_F64),
        (void)tg_rearrange(x, "(a b) c -> a b c", TG_NAMED({"a", 2}, {"b", 3}));
    (void)tg_setitem(x, TG_IDX(TG_ALL), y), (void)tg_index_put(x, TG_IDX(TG_ALL), y, .accumulate = true),
        (void)tg_sort(x, NULL, .descending = true);
    TgLlm *model = tg_llm_open(c, "m.gguf", .context = 64, .cache = TG_F16);
    TgSampler *sampler = tg_sampler_new(c, 8, .top_k = 0, .seed = 1);
    (void)tg_tokenize(tg_llm_tokenizer(model), "a", 1, NULL, 0, .special = true),
        (void)tg_template_render(NULL, "{}", NULL, .now = 1), (void)tg_detokenizer_new(NULL, .inside = true);
    tg_sampler_free(sampler), tg_llm_free(model), tg_optim_free(opt);
  }
  tg_close(c);
  return 0;
}
