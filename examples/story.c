/* story.c: a language model goes on with a text, and tells how it chose.
 *   story MODEL.gguf TEXT [TOKENS]
 * Each token is one call of tg_llm_eval: a captured program, whose position in the text is a variable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tg_llm.h>

enum { MOST = 4096 };

/* the three likeliest tokens after the text, with their shares */
static void likeliest(TgSampler *s, const TgTokenizer *words, const float *logits) {
  int32_t id[3];
  double p[3];
  int64_t n = tg_sampler_candidates(s, logits, id, p, 3);
  for (int i = 0; i < 3 && i < n; i++) {
    size_t length;
    const char *text = tg_token_text(words, id[i], &length);
    fprintf(stderr, "%5.1f %%  %.*s\n", 100 * p[i], (int)length, text);
  }
}

/* Up to `most` tokens, each shown as soon as it is whole. */
static TgStatus tell(TgLlm *m, TgSampler *s, int64_t most) {
  TgTokenizer *words = tg_llm_tokenizer(m);
  TgDetokenizer *out = tg_detokenizer_new(words, .inside = true);
  TgStatus status = TG_OK;
  for (int64_t i = 0; !status && i < most; i++) {
    int32_t id = (int32_t)tg_sampler_pick(s, tg_llm_logits(m));
    if (id < 0 || tg_token_ends(words, id)) break;
    const char *text = tg_detokenizer_put(out, id, NULL);
    if (text) fputs(text, stdout);
    tg_sampler_accept(s, id);
    status = tg_llm_eval(m, &id, 1);
  }
  puts("");
  tg_detokenizer_free(out);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: story MODEL.gguf TEXT [TOKENS]\n");
    return 1;
  }
  TgContext *ctx = tg_open(NULL);
  TgLlm *m = tg_llm_open(ctx, argv[1], .context = 256);
  TgSampler *s = m ? tg_sampler_new(ctx, tg_llm_about(m).vocabulary, .temperature = 0.7, .seed = 3) : NULL;
  TgTokenizer *words = tg_llm_tokenizer(m);
  int32_t ids[MOST];
  int64_t n = words ? tg_tokenize(words, argv[2], strlen(argv[2]), ids, MOST, .ends = true) : 0;
  if (s && n > 0 && n <= MOST && !tg_llm_eval(m, ids, n)) {
    likeliest(s, words, tg_llm_logits(m));
    fputs(argv[2], stdout);
    tell(m, s, argc > 3 ? atoll(argv[3]) : 100);
  }
  int bad = tg_error(ctx) != TG_OK || !words;
  if (bad) fprintf(stderr, "%s\n", tg_error(ctx) ? tg_errmsg(ctx) : "the file has no vocabulary");
  tg_sampler_free(s);
  tg_llm_free(m);
  tg_close(ctx);
  return bad;
}
