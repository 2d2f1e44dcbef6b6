/* tokenizer_prefix.c: finds the tokens that a text begins with. In: the normal tokens, sorted once by their
 * bytes. Out: a range of them that becomes narrower with each byte of a text. So a text of n bytes needs two
 * binary searches for each byte, however long the tokens are. */
#include "llm_private.h"

/* Compares bytes; among equal texts the lower id is first. */
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

/* Byte `at` of the i-th sorted token; -1: the token is shorter. */
static int byte_of(const TgTokenizer *t, int32_t i, size_t at) {
  size_t n;
  const char *text = llm_token(t, t->order[i], &n);
  return at < n ? (unsigned char)text[at] : -1;
}

/* The first of first .. end - 1 whose next byte is at least `byte`. */
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
