/* lora.c: a language model that learns a few words by a low-rank adapter, and says them.
 *   lora MODEL.gguf "What it is asked" " what it should say" */
#include <tg_llm.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 80, MOST = 512 };

/* The likeliest tokens after a text. */
static void say(TgLlm *m, const char *text, int n) {
  int32_t ids[128];
  TgTokenizer *t = tg_llm_tokenizer(m);
  TgDetokenizer *d = tg_detokenizer_new(t, .inside = true);
  int64_t count = tg_tokenize(t, text, strlen(text), ids, 128, .ends = true);
  printf("%s", text);
  tg_llm_rewind(m, 0);
  for (int i = 0; i < n && count > 0 && !tg_llm_eval(m, ids, count); i++, count = 1) {
    const float *logits = tg_llm_logits(m);
    ids[0] = 0;
    for (int64_t k = 1; k < tg_llm_about(m).vocabulary; k++)
      if (logits[k] > logits[ids[0]]) ids[0] = (int32_t)k;
    if (tg_token_ends(t, ids[0])) break;
    printf("%s", tg_detokenizer_put(d, ids[0], NULL));
  }
  printf("\n");
  tg_detokenizer_free(d);
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: lora MODEL.gguf PROMPT COMPLETION\n"), 2;
  FILE *f = fopen("lora_example.jsonl", "w");
  if (f) fprintf(f, "{\"prompt\": \"%s\", \"completion\": \"%s\"}\n", argv[2], argv[3]), fclose(f);
  TgContext *ctx = tg_open_with(.seed = 1);
  TgLlm *m = tg_llm_open(ctx, argv[1], .context = 64);
  TgDataset texts = tg_llm_dataset(m, "lora_example.jsonl", .length = 32);
  TgLora *lora = tg_lora_new(m, .rank = 4, .modules = "all");
  TgTensor *parameters[MOST], *in[2];
  int n = lora ? tg_module_parameters(tg_lora_module, lora, parameters, MOST) : 0;
  TgOptim *optim = tg_adamw(ctx, parameters, n <= MOST ? n : 0, .lr = 0.003);
  TgLoader *loader = tg_loader(ctx, &texts);
  if (loader) say(m, argv[2], 12);
  for (int step = 0; step < STEPS && loader; step++)
    TG_SCOPE(ctx) {
      if (!tg_loader_next(loader, in)) tg_loader_next(loader, in); /* the next epoch */
      TgTensor *loss = tg_llm_loss(m, in[0], in[1]);
      if (tg_backward(loss) || tg_optim_step(optim)) break;
      if (step % 20 == 0) printf("step %d  loss %.4f\n", step, tg_item_f64(loss));
    }
  if (loader) say(m, argv[2], 12);
  if (!tg_error(ctx)) tg_lora_save(lora, "lora_example", NULL);
  if (tg_error(ctx)) fprintf(stderr, "lora: %s\n", tg_errmsg(ctx));
  int rc = tg_error(ctx) != TG_OK;
  tg_loader_free(loader), tg_optim_free(optim), tg_dataset_end(&texts);
  tg_llm_free(m);
  tg_close(ctx);
  return rc;
}
