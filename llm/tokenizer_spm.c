/* tokenizer_spm.c: SentencePiece's byte pairs (model `llama`). In: a text. Out: ids. Neighbours whose joined
 * text is a token are joined, the highest score first. Spaces are U+2581 in tokens; a character that is not a
 * token becomes byte tokens. */
#include "llm_private.h"

static const char blank[] = "\xe2\x96\x81";

bool llm_scores_read(TgTokenizer *t, const TgValue *gguf) {
  TgTensor *scores = tg_value_tensor(llm_kv(gguf, "tokenizer.ggml.scores"));
  if (!scores || tg_dtype(scores) != TG_F32 || tg_numel(scores) != t->n)
    return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: %d tokens need as many f32 in tokenizer.ggml.scores",
                    (int)t->n);
  if (!(t->score = tg_alloc(t->ctx, (size_t)t->n * sizeof *t->score))) return false;
  if (tg_read(scores, t->score, (size_t)t->n * sizeof *t->score)) return false;
  for (int32_t i = 0; i < t->n; i++)
    if (t->score[i] != t->score[i])
      return llm_fail(t->ctx, TG_ERR_VALUE, "tokenizer: the score of token %d is no number", (int)i);
  return true;
}

bool llm_sentence_piece_read(TgTokenizer *t, const TgValue *gguf) { return llm_scores_read(t, gguf); }

static bool join(const TgTokenizer *t, const char *text, const LlmSymbol *a, const LlmSymbol *b, double *key,
                 int32_t *id) {
  *id = llm_token_find(t, text + a->at, a->n + b->n);
  if (*id < 0) return false;
  *key = -(double)t->score[*id];
  return true;
}

/* Adds a symbol that is not a token as the tokens of its bytes. */
static bool bytes_put(TgTokenizer *t, const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!llm_byte_put(t, t->byte[(unsigned char)text[i]], text[i])) return false;
  return true;
}

bool llm_sentence_piece(TgTokenizer *t, const char *text, size_t n) {
  LlmText *escaped = &t->text;
  escaped->n = 0;
  for (size_t i = 0; i < n; i++)
    llm_put(escaped, text[i] == ' ' ? blank : text + i, text[i] == ' ' ? 3 : 1);
  if (escaped->bad || !llm_symbols_room(t, escaped->n)) return false;
  const char *p = escaped->at;
  size_t count = 0;
  for (size_t at = 0, length; at < escaped->n; at += length) {
    int32_t code;
    length = llm_utf8(p + at, escaped->n - at, &code);
    t->symbol[count++] = (LlmSymbol){.at = at, .n = length, .id = llm_token_find(t, p + at, length)};
  }
  if (!llm_merge(t, p, count, join)) return false;
  for (size_t i = 0; i < count; i++) {
    const LlmSymbol *s = &t->symbol[i];
    if (!s->n) continue;
    if (!(s->id >= 0 ? llm_ids_put(t, s->id) : bytes_put(t, p + s->at, s->n))) return false;
  }
  return true;
}
