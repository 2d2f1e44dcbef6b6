/* grammar.c: which tokens may come next. In: an automaton over bytes (grammar.h) and the tokens so far. Out:
 * logits, in which tokens that cannot follow are -infinity.
 *
 * A place in a text is a set of states; a state is a node and a stack of nodes to return to. Equal stacks are
 * stored once, and so are equal sets. The set that a byte leads to from a set is computed only once, too. So
 * the sets become the states of a deterministic automaton, which is built only as far as it is used. Tokens
 * are visited in the order of their bytes: the bytes that a token shares with the token before it are not
 * read again, and all tokens that begin with impossible bytes are skipped. */
#include "grammar.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_STATES = 4096, MOST_SETS = 8192, MOST_FRAMES = 1 << 20, UNKNOWN = -1, NOWHERE = -2, BOTTOM = -1 };

typedef struct State {
  int32_t node, stack;
} State;

typedef struct Frame { /* the top of a stack: a node to return to, and the stack below */
  int32_t node, below;
} Frame;

typedef struct Set {
  int32_t first, n; /* its states, all at BYTE nodes */
  bool accepts;
  int32_t next[256];
  uint64_t *mask; /* a bit for each token; NULL: not known yet */
} Set;

typedef struct Table { /* a hash table of indices + 1; 0: free */
  int32_t *slot;
  size_t cap;
} Table;

struct TgGrammar {
  TgContext *ctx;
  const TgTokenizer *t;
  GrammarRules rules;
  int32_t *order; /* tokens that have bytes, sorted by them */
  int32_t *same;  /* how many bytes each has in common with the one before */
  int32_t norder;
  size_t longest;
  Frame *frame;
  size_t nframes, frame_cap;
  Set *set;
  size_t nsets, set_cap;
  State *state;
  size_t nstates, state_cap;
  Table frames, sets;
  State *work; /* the set that is being built */
  size_t nwork, work_cap;
  int32_t *path; /* the sets after 0, 1, .. bytes of a token */
  int32_t now;   /* NOWHERE: the text does not match */
  bool accepts;  /* whether `work` accepts */
  bool failed;
};

/* ---- tokens in order */
static int by_bytes(const TgTokenizer *t, int32_t a, int32_t b) {
  size_t n, k;
  const char *x = llm_token(t, a, &n), *y = llm_token(t, b, &k);
  int c = memcmp(x, y, n < k ? n : k);
  return c ? c : n < k ? -1 : n > k ? 1 : (a > b) - (a < b);
}

/* A merge sort, because qsort cannot pass the tokenizer to its comparison. */
static void sort(const TgTokenizer *t, int32_t *at, int32_t *room, int32_t n) {
  if (n < 2) return;
  int32_t h = n / 2, i = 0, j = h;
  sort(t, at, room, h);
  sort(t, at + h, room, n - h);
  for (int32_t k = 0; k < n; k++)
    room[k] = j >= n || (i < h && by_bytes(t, at[i], at[j]) <= 0) ? at[i++] : at[j++];
  memcpy(at, room, (size_t)n * sizeof *at);
}

/* Whether a token can be part of a text: it is neither a control token nor unused. */
static bool is_text(const TgTokenizer *t, int32_t id) {
  size_t n;
  llm_token(t, id, &n);
  return n && (t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_USER || t->type[id] == TOKEN_BYTE) &&
         !tg_token_ends(t, id);
}

static bool order_make(TgGrammar *g) {
  const TgTokenizer *t = g->t;
  g->order = tg_alloc(g->ctx, (size_t)t->n * sizeof *g->order);
  g->same = tg_alloc(g->ctx, (size_t)t->n * sizeof *g->same);
  if (!g->order || !g->same) return false;
  for (int32_t id = 0; id < t->n; id++)
    if (is_text(t, id)) g->order[g->norder++] = id;
  sort(t, g->order, g->same, g->norder);
  for (int32_t i = 0; i < g->norder; i++) {
    size_t n, k = 0, same = 0;
    const char *x = llm_token(t, g->order[i], &n), *y = i ? llm_token(t, g->order[i - 1], &k) : x;
    while (same < n && same < k && x[same] == y[same])
      same++;
    g->same[i] = (int32_t)same;
    if (n > g->longest) g->longest = n;
  }
  return (g->path = tg_alloc(g->ctx, (g->longest + 1) * sizeof *g->path)) != NULL;
}

/* ---- stacks and sets, each stored once */
static bool table_room(TgGrammar *g, Table *t, size_t n, uint64_t (*hash)(const TgGrammar *g, int32_t i)) {
  if (2 * (n + 1) <= t->cap) return true;
  size_t cap = t->cap ? 2 * t->cap : 64;
  int32_t *slot = tg_alloc(g->ctx, cap * sizeof *slot);
  if (!slot) return false;
  for (size_t i = 0; i < n; i++) {
    size_t at = hash(g, (int32_t)i) & (cap - 1);
    while (slot[at])
      at = (at + 1) & (cap - 1);
    slot[at] = (int32_t)i + 1;
  }
  tg_free(g->ctx, t->slot);
  *t = (Table){slot, cap};
  return true;
}

static uint64_t frame_hash(const TgGrammar *g, int32_t i) { return llm_hash(&g->frame[i], sizeof(Frame)); }

static uint64_t states_hash(const State *s, size_t n, bool accepts) {
  return llm_hash(s, n * sizeof *s) * 2 + accepts;
}

static uint64_t set_hash(const TgGrammar *g, int32_t i) {
  const Set *s = &g->set[i];
  return states_hash(g->state + s->first, (size_t)s->n, s->accepts);
}

/* The stack with a node pushed on it. Returns NOWHERE if out of memory or too deep. */
static int32_t frame_of(TgGrammar *g, int32_t node, int32_t below) {
  Frame f = {node, below};
  if (!table_room(g, &g->frames, g->nframes, frame_hash)) return NOWHERE;
  size_t at = llm_hash(&f, sizeof f) & (g->frames.cap - 1);
  for (; g->frames.slot[at]; at = (at + 1) & (g->frames.cap - 1)) {
    const Frame *has = &g->frame[g->frames.slot[at] - 1];
    if (has->node == node && has->below == below) return g->frames.slot[at] - 1;
  }
  if (g->nframes == MOST_FRAMES)
    return llm_fail(g->ctx, TG_ERR_LIMIT, "grammar: rules are nested too deep"), NOWHERE;
  Frame *grown = llm_grow(g->ctx, g->frame, g->nframes, 1, &g->frame_cap, sizeof *grown);
  if (!grown) return NOWHERE;
  g->frame = grown;
  grown[g->nframes] = f;
  g->frames.slot[at] = (int32_t)++g->nframes;
  return (int32_t)g->nframes - 1;
}

/* ---- the set that is being built: all states that are reached without reading a byte */
static void work_put(TgGrammar *g, int32_t node, int32_t stack) {
  if (g->failed) return;
  for (size_t i = 0; i < g->nwork; i++)
    if (g->work[i].node == node && g->work[i].stack == stack) return;
  if (g->nwork == MOST_STATES) {
    g->failed = !llm_fail(g->ctx, TG_ERR_LIMIT, "grammar: one place of a text has more than %d meanings",
                          MOST_STATES);
    return;
  }
  State *grown = llm_grow(g->ctx, g->work, g->nwork, 1, &g->work_cap, sizeof *grown);
  g->failed = !grown;
  if (!grown) return;
  g->work = grown;
  grown[g->nwork++] = (State){node, stack};
}

static void work_call(TgGrammar *g, const GrammarNode *n, int32_t stack) {
  int32_t to = stack;
  if (g->rules.node[n->a].op != GRAMMAR_END)
    to = frame_of(g, n->a, stack); /* a call at the end of a rule returns to the rule's caller */
  g->failed |= to == NOWHERE;
  work_put(g, g->rules.entry[n->b], to);
}

static void work_close(TgGrammar *g) {
  for (size_t i = 0; i < g->nwork && !g->failed; i++) {
    State s = g->work[i];
    const GrammarNode *n = &g->rules.node[s.node];
    if (n->op == GRAMMAR_SPLIT) {
      work_put(g, n->a, s.stack);
      work_put(g, n->b, s.stack);
    } else if (n->op == GRAMMAR_CALL)
      work_call(g, n, s.stack);
    else if (n->op == GRAMMAR_END && s.stack == BOTTOM)
      g->accepts = true;
    else if (n->op == GRAMMAR_END)
      work_put(g, g->frame[s.stack].node, g->frame[s.stack].below);
  }
}

static int by_state(const void *a, const void *b) {
  const State *x = a, *y = b;
  return x->node != y->node ? (x->node > y->node) - (x->node < y->node)
                            : (x->stack > y->stack) - (x->stack < y->stack);
}

/* The set of `work`: an equal set that exists, or a new one. Returns NOWHERE if it is empty or on an
 * error. */
static int32_t set_of_work(TgGrammar *g) {
  size_t n = 0;
  work_close(g);
  for (size_t i = 0; i < g->nwork; i++)
    if (g->rules.node[g->work[i].node].op == GRAMMAR_BYTE) g->work[n++] = g->work[i];
  if (g->failed || (!n && !g->accepts)) return NOWHERE;
  qsort(g->work, n, sizeof *g->work, by_state);
  g->failed = !table_room(g, &g->sets, g->nsets, set_hash);
  if (g->failed) return NOWHERE;
  size_t at = states_hash(g->work, n, g->accepts) & (g->sets.cap - 1);
  for (; g->sets.slot[at]; at = (at + 1) & (g->sets.cap - 1)) {
    const Set *s = &g->set[g->sets.slot[at] - 1];
    if ((size_t)s->n == n && s->accepts == g->accepts &&
        !memcmp(g->state + s->first, g->work, n * sizeof *g->work))
      return g->sets.slot[at] - 1;
  }
  Set *set = llm_grow(g->ctx, g->set, g->nsets, 1, &g->set_cap, sizeof *set);
  if (set) g->set = set;
  State *state = set ? llm_grow(g->ctx, g->state, g->nstates, n + 1, &g->state_cap, sizeof *state) : NULL;
  g->failed = !state;
  if (!state) return NOWHERE;
  g->state = state;
  Set *s = &set[g->nsets];
  *s = (Set){.first = (int32_t)g->nstates, .n = (int32_t)n, .accepts = g->accepts};
  for (int b = 0; b < 256; b++)
    s->next[b] = UNKNOWN;
  if (n) memcpy(state + g->nstates, g->work, n * sizeof *state);
  g->nstates += n;
  g->sets.slot[at] = (int32_t)++g->nsets;
  return (int32_t)g->nsets - 1;
}

static void work_begin(TgGrammar *g) {
  g->nwork = 0;
  g->accepts = g->failed = false;
}

static int32_t step(TgGrammar *g, int32_t from, uint8_t byte) {
  if (g->set[from].next[byte] != UNKNOWN) return g->set[from].next[byte];
  work_begin(g);
  for (int32_t i = 0; i < g->set[from].n; i++) {
    State s = g->state[g->set[from].first + i];
    const GrammarNode *n = &g->rules.node[s.node];
    if (byte >= n->lo && byte <= n->hi) work_put(g, n->a, s.stack);
  }
  int32_t to = set_of_work(g);
  if (!g->failed) g->set[from].next[byte] = to;
  return to;
}

/* ---- stored sets are dropped when there are many; only the set that the text led to is kept */
static void sets_free(TgGrammar *g) {
  for (size_t i = 0; i < g->nsets; i++)
    tg_free(g->ctx, g->set[i].mask);
  g->nsets = g->nstates = 0;
  if (g->sets.slot) memset(g->sets.slot, 0, g->sets.cap * sizeof *g->sets.slot);
}

static void sets_forgotten(TgGrammar *g) {
  if (g->nsets < MOST_SETS || g->now < 0) return;
  work_begin(g);
  g->accepts = g->set[g->now].accepts;
  for (int32_t i = 0; i < g->set[g->now].n; i++) {
    State s = g->state[g->set[g->now].first + i];
    work_put(g, s.node, s.stack);
  }
  sets_free(g);
  g->now = set_of_work(g);
}

/* ---- the grammar */
static bool grammar_begin(TgGrammar *g) {
  work_begin(g);
  work_put(g, g->rules.entry[g->rules.root], BOTTOM);
  g->now = set_of_work(g);
  return !g->failed;
}

TgGrammar *tg_grammar_new(TgContext *ctx, const TgTokenizer *t, const char *text, size_t n) {
  if (ctx && (!t || !text)) llm_fail(ctx, TG_ERR_VALUE, "grammar: no %s", t ? "text" : "tokenizer");
  TgGrammar *g = ctx && t && text ? tg_alloc(ctx, sizeof *g) : NULL;
  if (!g) return NULL;
  g->ctx = g->rules.ctx = ctx;
  g->t = t;
  if (grammar_read(&g->rules, text, n) && order_make(g) && grammar_begin(g)) return g;
  tg_grammar_free(g);
  return NULL;
}

void tg_grammar_free(TgGrammar *g) {
  if (!g) return;
  TgContext *ctx = g->ctx;
  sets_free(g);
  grammar_rules_free(&g->rules);
  tg_free(ctx, g->order), tg_free(ctx, g->same), tg_free(ctx, g->frame), tg_free(ctx, g->set);
  tg_free(ctx, g->state), tg_free(ctx, g->frames.slot), tg_free(ctx, g->sets.slot), tg_free(ctx, g->work);
  tg_free(ctx, g->path), tg_free(ctx, g);
}

TgStatus tg_grammar_reset(TgGrammar *g) {
  if (!g) return TG_ERR_NOMEM;
  return grammar_begin(g) ? TG_OK : tg_error(g->ctx);
}

bool tg_grammar_ends(const TgGrammar *g) { return g && g->now >= 0 && g->set[g->now].accepts; }

/* Computes the tokens that may follow in set `from`, as bits. */
static bool mask_make(TgGrammar *g, int32_t from) {
  uint64_t *mask = tg_alloc(g->ctx, ((size_t)g->t->n / 64 + 1) * sizeof *mask);
  int32_t known = 0; /* bytes of the path that are possible */
  if (!mask) return false;
  g->path[0] = from;
  for (int32_t i = 0; i < g->norder && !g->failed; i++) {
    size_t n;
    const char *bytes = llm_token(g->t, g->order[i], &n);
    if (g->same[i] < known) known = g->same[i];
    if (i && g->same[i] > known) continue; /* its beginning is known to be impossible */
    int32_t at = known;
    while (at < (int32_t)n && (g->path[at + 1] = step(g, g->path[at], (uint8_t)bytes[at])) >= 0)
      at++;
    known = at;
    if (at == (int32_t)n) mask[g->order[i] / 64] |= 1ull << (g->order[i] % 64);
  }
  if (g->failed) {
    tg_free(g->ctx, mask);
    return false;
  }
  g->set[from].mask = mask;
  return true;
}

TgStatus tg_grammar_mask(TgGrammar *g, float *logits) {
  if (!g || !logits) return TG_ERR_NOMEM;
  bool any = tg_grammar_ends(g);
  g->failed = false;
  sets_forgotten(g);
  if (g->now >= 0 && !g->set[g->now].mask && !mask_make(g, g->now)) return tg_error(g->ctx);
  const uint64_t *mask = g->now >= 0 ? g->set[g->now].mask : NULL;
  for (int32_t id = 0; id < g->t->n; id++) {
    bool may = tg_token_ends(g->t, id) ? tg_grammar_ends(g) : mask && mask[id / 64] >> (id % 64) & 1;
    any |= may;
    if (!may) logits[id] = -INFINITY;
  }
  if (any) return TG_OK;
  llm_fail(g->ctx, TG_ERR_VALUE, "grammar: no token of the vocabulary can follow");
  return TG_ERR_VALUE;
}

TgStatus tg_grammar_accept(TgGrammar *g, int64_t id) {
  if (!g) return TG_ERR_NOMEM;
  size_t n = 0;
  const char *bytes = tg_token_text(g->t, id, &n);
  if (bytes && tg_token_ends(g->t, id) && tg_grammar_ends(g)) return TG_OK;
  int32_t at = bytes && n && is_text(g->t, (int32_t)id) ? g->now : NOWHERE;
  g->failed = false;
  for (size_t i = 0; i < n && at >= 0; i++)
    at = step(g, at, (uint8_t)bytes[i]);
  if (g->failed) return tg_error(g->ctx);
  if (at >= 0) {
    g->now = at;
    return TG_OK;
  }
  llm_fail(g->ctx, TG_ERR_VALUE, "grammar: token %lld cannot follow", (long long)id);
  return TG_ERR_VALUE;
}
