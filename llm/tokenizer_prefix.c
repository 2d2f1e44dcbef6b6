/* tokenizer_prefix.c: tokens that a text begins with. In: the normal tokens, put in the order of their bytes
 * once. Out: a range of them that becomes narrower with each byte of a text, so that a text of n bytes asks
 * n binary searches, however long tokens are. */
#include "llm_private.h"

/* The order of bytes; of equal texts the first token. */
static int32_t text_order(const TgTokenizer *t, int32_t a, int32_t b) {
  size_t an, bn;
  const char *at = llm_token(t, a, &an), *bt = llm_token(t, b, &bn);
  int c = memcmp(at, bt, an < bn ? an : bn);
  return c ? c : an != bn ? (an < bn ? -1 : 1) : a - b;
}

bool llm_prefixes_make(TgTokenizer *t) {
  size_t n;
  if (!(t->order = tg_alloc(t->ctx, ((size_t)t->n + 1) * sizeof *t->order))) return false;
  for (int32_t i = 0; i < t->n; i++) {
    bool is = t->type[i] == TOKEN_NORMAL || t->type[i] == TOKEN_UNUSED || t->type[i] == TOKEN_USER;
    llm_token(t, i, &n);
    if (is && n) t->order[t->norder++] = i;
  }
  llm_tokens_sort(t, t->order, t->norder, text_order);
  return true;
}

LlmPrefix llm_prefix(const TgTokenizer *t) { return (LlmPrefix){0, t->norder, 0}; }

/* The byte of token i behind those that are matched; -1: it has no more. */
static int byte_of(const TgTokenizer *t, int32_t i, size_t at) {
  size_t n;
  const char *text = llm_token(t, t->order[i], &n);
  return at < n ? (unsigned char)text[at] : -1;
}

/* The first of first .. end - 1 whose next byte is not below `byte`. */
static int32_t bound(const TgTokenizer *t, LlmPrefix p, int byte) {
  while (p.first < p.end) {
    int32_t middle = p.first + (p.end - p.first) / 2;
    if (byte_of(t, middle, p.n) < byte)
      p.first = middle + 1;
    else
      p.end = middle;
  }
  return p.first;
}

bool llm_prefix_step(const TgTokenizer *t, LlmPrefix *p, char byte) {
  int b = (unsigned char)byte;
  int32_t first = bound(t, *p, b), end = bound(t, (LlmPrefix){first, p->end, p->n}, b + 1);
  *p = (LlmPrefix){first, end, p->n + 1};
  return first < end;
}

int32_t llm_prefix_token(const TgTokenizer *t, const LlmPrefix *p) {
  return p->first < p->end && byte_of(t, p->first, p->n) < 0 ? t->order[p->first] : -1;
}
