/* tokenizer_merge.c: joins neighbouring pieces of a text, the best pair first. In: a list of symbols. Out:
 * the same list, shorter. Pairs wait in a heap, and a pair whose halves have changed in the meantime is
 * skipped, so n symbols take n log n steps. */
#include "llm_private.h"

static bool before(const LlmPair *a, const LlmPair *b) {
  return a->key != b->key ? a->key < b->key : a->left < b->left;
}

static void heap_put(TgTokenizer *t, LlmPair p) {
  size_t i = t->nheap++;
  for (; i && before(&p, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
    t->heap[i] = t->heap[(i - 1) / 2];
  t->heap[i] = p;
}

static LlmPair heap_take(TgTokenizer *t) {
  LlmPair best = t->heap[0], last = t->heap[--t->nheap];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < t->nheap; i = child) {
    if (child + 1 < t->nheap && before(&t->heap[child + 1], &t->heap[child])) child++;
    if (!before(&t->heap[child], &last)) break;
    t->heap[i] = t->heap[child];
  }
  t->heap[i] = last;
  return best;
}

static void consider(TgTokenizer *t, const char *text, int32_t left, LlmJoin join) {
  LlmSymbol *s = t->symbol;
  int32_t right = left < 0 ? -1 : s[left].next;
  LlmPair p;
  if (right < 0 || !join(t, text, &s[left], &s[right], &p.key, &p.id)) return;
  p.left = left;
  p.right = right;
  p.n = s[left].n + s[right].n;
  heap_put(t, p);
}

/* n symbols have at most n - 1 pairs at first, and each join adds at most two more pairs. */
bool llm_symbols_room(TgTokenizer *t, size_t n) {
  if (n > INT32_MAX / 4) return llm_fail(t->ctx, TG_ERR_LIMIT, "tokenizer: a text of %zu symbols", n);
  LlmSymbol *s = llm_grow(t->ctx, t->symbol, 0, n, &t->symbol_cap, sizeof *s);
  if (s) t->symbol = s;
  LlmPair *h = s ? llm_grow(t->ctx, t->heap, 0, 3 * n, &t->heap_cap, sizeof *h) : NULL;
  if (h) t->heap = h;
  return h != NULL;
}

bool llm_merge(TgTokenizer *t, const char *text, size_t n, LlmJoin join) {
  LlmSymbol *s = t->symbol;
  t->nheap = 0;
  for (size_t i = 0; i < n; i++) {
    s[i].prev = (int32_t)i - 1;
    s[i].next = i + 1 < n ? (int32_t)i + 1 : -1;
  }
  for (size_t i = 0; i < n; i++)
    consider(t, text, (int32_t)i, join);
  while (t->nheap) {
    LlmPair p = heap_take(t);
    LlmSymbol *a = &s[p.left], *b = &s[p.right];
    if (!a->n || !b->n || a->next != p.right || a->n + b->n != p.n) continue;
    a->n = p.n;
    a->id = p.id;
    a->next = b->next;
    b->n = 0;
    if (a->next >= 0) s[a->next].prev = p.left;
    consider(t, text, a->prev, join);
    consider(t, text, p.left, join);
  }
  return true;
}
