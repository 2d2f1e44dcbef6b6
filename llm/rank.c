/* rank.c: rerankers. In: a query and a document. Out: a number, the larger the better the document
 * answers. An encoder reads both texts with special tokens between them, and its head gives the number. A
 * decoder is asked by a template whether the document answers the query, and the number is the share of
 * "yes" in its answer. */
#include "model_private.h"
#include <math.h>
#include <stdio.h>

/* ---- how a decoder is asked */
/* The templates of models whose files have none. */
static const struct {
  const char *architecture, *pair;
} usual[] = {{"qwen3",
              "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
              "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
              "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
              "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
              "<|im_start|>assistant\n<think>\n\n</think>\n\n"}};

static bool pair_read(TgLlm *m) {
  const char *key = "tokenizer.chat_template.rerank";
  if (!llm_kv_text(m->ctx, m->gguf, key, &m->pair)) return false;
  for (size_t i = 0; !m->pair && i < sizeof usual / sizeof *usual; i++)
    if (!strcmp(usual[i].architecture, m->architecture) && !m->arch->encoder) m->pair = usual[i].pair;
  if (!m->pair)
    return m->arch->encoder ||
           llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s ranks texts, and the file has no template for them (%s)",
                    m->architecture, key);
  return (strstr(m->pair, "{query}") && strstr(m->pair, "{document}")) ||
         llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s has no {query} or no {document}", key);
}

/* ---- which answer is yes */
/* Without a head the answer is a token. */
static bool tokens_read(TgLlm *m) {
  if (!m->tokenizer) return llm_fail(m->ctx, TG_ERR_VALUE, "llm: a reranker without a vocabulary");
  m->yes = llm_token_find(m->tokenizer, "yes", 3);
  m->no = llm_token_find(m->tokenizer, "no", 2);
  return (m->yes >= 0 && m->no >= 0) ||
         llm_fail(m->ctx, TG_ERR_VALUE,
                  "llm: a reranker without tensor 'cls.output.weight' answers by the tokens 'yes' and 'no', "
                  "which the vocabulary has not");
}

/* If a head has two rows, the names of the labels say which of them is yes; without names it is the first. */
static bool labels_read(TgLlm *m) {
  char key[128];
  size_t n;
  snprintf(key, sizeof key, "%.60s.classifier.output_labels", m->architecture);
  const TgValue *list = llm_kv(m->gguf, key);
  m->yes = list ? -1 : 0;
  for (int32_t i = 0; i < 2; i++) {
    const char *name = tg_value_string(tg_value_at(list, (size_t)i), &n);
    if (name && n == 3 && !memcmp(name, "yes", 3)) m->yes = i;
  }
  m->no = 1 - m->yes;
  return m->yes >= 0 || llm_fail(m->ctx, TG_ERR_VALUE, "llm: neither of the two labels of %s is 'yes'", key);
}

bool llm_rank_read(TgLlm *m) {
  if (m->k.pooling != POOL_RANK) return true;
  if (!pair_read(m)) return false;
  return !m->cls_out ? tokens_read(m) : m->k.labels < 2 || labels_read(m);
}

/* ---- both texts as ids */
/* The ids of a pair: n of them, even if the array has no room for all. */
typedef struct Pair {
  TgLlm *m;
  int32_t *ids; /* room for the context */
  int64_t n, second;
} Pair;

/* Appends a text without special tokens at its beginning and end. */
static bool text_put(Pair *p, const char *text, size_t nbytes) {
  int64_t context = p->m->context, room = context > p->n ? context - p->n : 0;
  int64_t count = tg_tokenize(p->m->tokenizer, text, nbytes, p->ids + context - room, (size_t)room);
  p->n += count;
  return count >= 0;
}

static void token_put(Pair *p, int32_t id) {
  if (id >= 0 && p->n < p->m->context) p->ids[p->n] = id;
  p->n += id >= 0;
}

/* Both texts with the tokens between them: BERT's words and ModernBERT have one token there, others two. */
static bool joined_put(Pair *p, const char *query, size_t nquery, const char *document, size_t ndocument) {
  const TgTokenizer *t = p->m->tokenizer;
  token_put(p, t->bos);
  if (!text_put(p, query, nquery)) return false;
  token_put(p, t->eos);
  p->second = p->n;
  if (t->kind != LLM_WORDS && !p->m->arch->one_between) token_put(p, t->eos);
  if (!text_put(p, document, ndocument)) return false;
  token_put(p, t->eos);
  return true;
}

enum { MOST_GIVEN = 8 };

/* Writes the template with the texts in their places to `to`, and where these are to `given`. What the texts
 * contain is not read as a place. */
static bool filled(const TgLlm *m, const char *const text[2], const size_t n[2], LlmText *to,
                   LlmSpan given[MOST_GIVEN], size_t *ngiven) {
  static const char *const places[] = {"{query}", "{document}"};
  *ngiven = 0;
  for (const char *at = m->pair; *at;) {
    int which = -1;
    for (int i = 0; i < 2; i++)
      if (!strncmp(at, places[i], strlen(places[i]))) which = i;
    if (which < 0) {
      llm_put(to, at++, 1);
      continue;
    }
    if (*ngiven == MOST_GIVEN)
      return llm_fail(m->ctx, TG_ERR_LIMIT, "llm_rank: the template has more than %d places", MOST_GIVEN);
    given[(*ngiven)++] = (LlmSpan){to->n, n[which]};
    llm_put(to, text[which], n[which]);
    at += strlen(places[which]);
  }
  return !to->bad;
}

static bool asked_put(Pair *p, const char *query, size_t nquery, const char *document, size_t ndocument) {
  TgLlm *m = p->m;
  LlmText all = {.ctx = m->ctx};
  LlmSpan given[MOST_GIVEN];
  size_t ngiven;
  bool ok = filled(m, (const char *const[]){query, document}, (const size_t[]){nquery, ndocument}, &all,
                   given, &ngiven);
  if (ok)
    p->second = p->n =
        llm_tokenize_filled(m->tokenizer, all.at, all.n, given, ngiven, p->ids, (size_t)m->context);
  tg_free(m->ctx, all.at);
  return ok && p->n >= 0;
}

static bool pair_put(Pair *p, const char *query, size_t nquery, const char *document, size_t ndocument) {
  TgLlm *m = p->m;
  if (!(m->pair ? asked_put : joined_put)(p, query, nquery, document, ndocument)) return false;
  if (p->n < 1) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_rank: no tokens");
  return p->n <= m->context ||
         llm_fail(m->ctx, TG_ERR_LIMIT,
                  "llm_rank: a query and a document of %lld tokens are more than the context of %lld",
                  (long long)p->n, (long long)m->context);
}

/* ---- the answer */
/* The scores of a decoder's labels for its last token: by its head, or by the two rows of the table of
 * tokens that say yes and no. */
static bool answered(TgLlm *m, const float *last, float score[2]) {
  bool ok = false;
  TG_SCOPE(m->ctx) {
    TgTensor *w = m->cls_out, *b = m->cls_out_bias;
    if (!w) {
      TgTensor *two = tg_from(m->ctx, (int32_t[]){m->yes, m->no}, TG_I32, TG_SHAPE(2));
      w = tg_take(m->head, two);
      b = m->head_bias ? tg_take(m->head_bias, two) : NULL;
    }
    int64_t rows = m->cls_out ? m->k.labels : 2;
    TgTensor *x = tg_from(m->ctx, last, TG_F32, TG_SHAPE(1, m->k.width));
    w = tg_cast(tg_reshape(w, TG_SHAPE(rows, m->k.width)), TG_F32);
    ok = !tg_read(tg_linear(x, w, b ? tg_cast(b, TG_F32) : NULL), score, (size_t)rows * sizeof *score);
  }
  return ok;
}

/* Of two logits, the share of yes in their softmax. A decoder's logits without a head are scaled and
 * capped as those of its other tokens. */
static bool judged(TgLlm *m, const float score[2], float *out) {
  bool tokens = !m->cls_out;
  int yes = tokens ? 0 : m->yes, no = tokens ? 1 : m->no;
  double two[2] = {(double)score[0], (double)score[tokens || m->k.labels == 2]};
  for (int i = 0; tokens && i < 2; i++) {
    two[i] *= m->k.logit_scale;
    if (m->k.final_cap > 0) two[i] = m->k.final_cap * tanh(two[i] / m->k.final_cap);
  }
  *out = tokens || m->k.labels == 2 ? (float)(1 / (1 + exp(two[no] - two[yes]))) : score[0];
  return isfinite(*out) || llm_fail(m->ctx, TG_ERR_VALUE, "llm_rank: the score is not finite");
}

static bool scored(Pair *p, float *out) {
  TgLlm *m = p->m;
  float score[2] = {0, 0};
  if (m->arch->encoder) return llm_whole_run(m, p->ids, p->n, p->second, score) && judged(m, score, out);
  float *last = tg_alloc(m->ctx, (size_t)m->k.width * sizeof *last);
  bool ok =
      last && llm_last_token(m, p->ids, p->n, last) && answered(m, last, score) && judged(m, score, out);
  tg_free(m->ctx, last);
  return ok;
}

TgStatus tg_llm_rank(TgLlm *m, const char *query, size_t nquery, const char *document, size_t ndocument,
                     float *score, int64_t *tokens) {
  if (!m) return TG_ERR_NOMEM;
  if (m->k.pooling != POOL_RANK || !m->tokenizer || !query || !document || !score)
    return tg_set_error(m->ctx, TG_ERR_VALUE,
                        m->k.pooling != POOL_RANK ? "llm_rank: the model is no reranker"
                        : m->tokenizer            ? "llm_rank: a query, a document and a place for the score"
                                                  : "llm_rank: the model has no tokenizer");
  Pair p = {.m = m, .ids = tg_alloc(m->ctx, (size_t)m->context * sizeof *p.ids)};
  bool ok = p.ids && pair_put(&p, query, nquery, document, ndocument) && scored(&p, score);
  tg_free(m->ctx, p.ids);
  if (tokens) *tokens = p.n;
  return ok ? TG_OK : tg_error(m->ctx);
}
