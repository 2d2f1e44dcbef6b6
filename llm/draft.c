/* draft.c: guesses how a text continues. In: its tokens so far. Out: tokens that may follow, which the model
 * checks several at once. A guess changes no text, it only saves or costs time. So the number of guesses is
 * chosen from measured times: the time of steps with this many rows, the time of a guess, and the share of
 * guesses that were right. */
#include "model_private.h"
#include <math.h>

enum {
  USUAL_GUESSES = 7, /* with the token before them they fill a step of 8 rows */
  MOST_GUESSES = 256,
  LONGEST_MATCH = 3,
  LOOKED_THROUGH = 8192, /* at most this many tokens before the end */
  SPARE_TOKENS = 128,    /* that one vocabulary may have more than the other */
  UNTIMED_GUESSES = 3    /* first runs of a small model, which plan and compile */
};

/* How many guesses of a kind were tried and were right recently: the older a guess, the less it counts. */
typedef struct Trust {
  double tried, right;
} Trust;

typedef struct DraftText {
  const int32_t *ids;
  int64_t n;
} DraftText;

/* A source of guesses. find: returns the kind of guess, which is the length of the match; -1: there is none.
 * make: writes at most `most` guesses; -1: an error. */
typedef struct DraftKind {
  int (*find)(TgDraft *d, DraftText t);
  int64_t (*make)(TgDraft *d, DraftText t, int32_t *out, int64_t most);
} DraftKind;

struct TgDraft {
  TgContext *ctx;
  TgLlm *m, *small; /* small: NULL if the text itself is searched */
  const DraftKind *kind;
  TgDraftOptions o;
  Trust trust[LONGEST_MATCH + 1]; /* by the length of the match; a small model uses entry 0 */
  int last;                       /* the kind of the last guesses */
  int64_t match;                  /* where the text continues after the matching tokens */
  int64_t runs;                   /* of the small model */
  double seconds;                 /* that one guess of the small model takes */
};

/* ---- from the text itself */
/* How many tokens before `at` equal the last tokens of the text, at most LONGEST_MATCH. */
static int matched(DraftText t, int64_t at) {
  int n = 0;
  while (n < LONGEST_MATCH && n < at && t.ids[at - 1 - n] == t.ids[t.n - 1 - n])
    n++;
  return n;
}

/* Finds the longest match, the newest among equally long matches. */
static int match_find(TgDraft *d, DraftText t) {
  int best = 0;
  int64_t first = t.n > LOOKED_THROUGH ? t.n - LOOKED_THROUGH : 1;
  for (int64_t at = t.n - 1; at >= first && best < LONGEST_MATCH; at--) {
    int n = matched(t, at);
    if (n <= best) continue;
    best = n;
    d->match = at;
  }
  return best ? best : -1;
}

/* A token that ends a reply is not a guess, because nothing is computed after it. A token of a picture, whose
 * id is negative, is not a guess either. */
static bool is_guess(const TgDraft *d, int64_t id) {
  return id >= 0 && id < d->m->k.vocabulary && !(d->m->tokenizer && tg_token_ends(d->m->tokenizer, id));
}

/* Guesses the tokens that followed the match. At the end of the text it continues with the guesses
 * themselves, as a repetition does. */
static int64_t match_follow(TgDraft *d, DraftText t, int32_t *out, int64_t most) {
  int64_t known = t.n - d->match;
  for (int64_t i = 0; i < most; i++) {
    out[i] = i < known ? t.ids[d->match + i] : out[i - known];
    if (!is_guess(d, out[i])) return i;
  }
  return most;
}

/* ---- from a small model */
static int64_t likeliest(const float *logits, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

/* The small model guesses if it has room for the text and one more token. */
static int small_find(TgDraft *d, DraftText t) { return t.n < d->small->context ? 0 : -1; }

/* Reads n tokens, in one step if the model has programs of several rows. */
static bool small_read(TgDraft *d, const int32_t *ids, int64_t n) {
  int32_t sequence[MOST_GUESSES];
  if (n > d->small->batch || n > MOST_GUESSES) return !tg_llm_eval(d->small, ids, n);
  for (int64_t i = 0; i < n; i++)
    sequence[i] = (int32_t)d->o.sequence;
  return !tg_llm_eval_many(d->small, sequence, ids, n);
}

/* Keeps the tokens that the small model's cache and the text have in common and reads the rest, at most one
 * block. It reads nothing if the block has a token that the model does not know. *whole: all of the text has
 * been read. Returns false on an error. */
static bool small_follow(TgDraft *d, DraftText t, bool *whole) {
  int64_t n, same = 0;
  if (tg_llm_use(d->small, d->o.sequence)) return false;
  const int32_t *has = tg_llm_ids(d->small, &n);
  while (same < n && same < t.n - 1 && has[same] == t.ids[same])
    same++;
  int64_t left = t.n - same, count = left < d->small->block ? left : d->small->block;
  for (int64_t i = 0; i < count; i++)
    if (t.ids[same + i] < 0 || t.ids[same + i] >= d->small->k.vocabulary) return (*whole = false), true;
  *whole = count == left;
  return !tg_llm_rewind(d->small, same) && small_read(d, t.ids + same, count);
}

static int64_t small_guess(TgDraft *d, DraftText t, int32_t *out, int64_t most) {
  bool whole = false;
  double begin = llm_seconds();
  int64_t n = 0, room = d->small->context - t.n;
  if (!small_follow(d, t, &whole)) return -1;
  if (most > room) most = room;
  while (whole && n < most) {
    int64_t id = likeliest(tg_llm_logits(d->small), d->small->k.vocabulary);
    if (!is_guess(d, id)) break;
    out[n++] = (int32_t)id;
    if (n < most && !small_read(d, &out[n - 1], 1)) return -1;
  }
  double each = n ? (llm_seconds() - begin) / (double)n : 0;
  if (n && ++d->runs > UNTIMED_GUESSES) d->seconds = llm_least_of_late(d->seconds, each);
  return n;
}

static const DraftKind by_lookup = {match_find, match_follow}, by_model = {small_find, small_guess};

/* ---- how many */
/* The share of guesses of this kind that were right recently, mixed with the usual share. */
static double share_of(const TgDraft *d, int kind) {
  static const double usual[] = {0.6, 0.2, 0.4, 0.6};
  const Trust *t = &d->trust[kind];
  return (t->right + 2 * usual[kind]) / (t->tried + 2);
}

/* The number of guesses that gives the most tokens per second, including the other rows of the step. Nothing
 * is guessed until the time of a step without guesses is known. */
static int64_t worth(const TgDraft *d, int kind, int64_t beside, int64_t most) {
  double share = share_of(d, kind), took = llm_rows_seconds(d->m, beside + 1);
  double right = 1, tokens = (double)beside + 1, rate = took > 0 ? tokens / took : 0;
  int64_t best = 0;
  for (int64_t k = 1; rate > 0 && k <= most; k++) {
    right *= share; /* now the probability that all k guesses are right */
    tokens += right;
    double now = tokens / (llm_rows_seconds(d->m, beside + 1 + k) + (double)k * d->seconds);
    if (now <= rate) continue;
    rate = now;
    best = k;
  }
  return best;
}

static void faded(Trust *t, double by) {
  t->tried *= by;
  t->right *= by;
}

int64_t tg_draft_guess(TgDraft *d, const int32_t *ids, int64_t n, int64_t beside, int32_t *out,
                       int64_t most) {
  if (!d) return -1;
  if (n < 0 || beside < 0 || (n && !ids) || (most > 0 && !out)) {
    llm_fail(d->ctx, TG_ERR_VALUE, "draft_guess: %lld tokens beside %lld rows", (long long)n,
             (long long)beside);
    return -1;
  }
  DraftText t = {ids, n};
  if (most > d->o.most) most = d->o.most;
  int kind = n && most > 0 ? d->kind->find(d, t) : -1;
  if (kind < 0) return 0;
  d->last = kind;
  if (!d->o.always) most = worth(d, kind, beside, most);
  if (!most) faded(&d->trust[kind], 0.99); /* so that this kind is tried again later */
  return most ? d->kind->make(d, t, out, most) : 0;
}

void tg_draft_told(TgDraft *d, int64_t tried, int64_t right) {
  if (!d || tried < 1 || right < 0 || right > tried) return;
  Trust *t = &d->trust[d->last];
  faded(t, 0.8);
  t->tried += (double)tried;
  t->right += (double)right;
}

/* ---- beginning and end */
static TgDraft *draft_new(TgLlm *m, const DraftKind *kind, const char *what, const TgDraftOptions *given) {
  TgDraft *d = m ? tg_alloc(m->ctx, sizeof *d) : NULL;
  if (!d) return NULL;
  *d = (TgDraft){.ctx = m->ctx, .m = m, .kind = kind};
  bool ok = !tg_options_read(m->ctx, what, "TgDraftOptions", &d->o, sizeof d->o, given);
  d->o.set = NULL;
  if (ok && !d->o.most) d->o.most = USUAL_GUESSES;
  if (ok && (d->o.most < 1 || d->o.most > MOST_GUESSES))
    ok = llm_fail(m->ctx, TG_ERR_VALUE, "%s: %lld guesses at once: 1 to %d", what, (long long)d->o.most,
                  MOST_GUESSES);
  if (ok && !m->batch) ok = llm_fail(m->ctx, TG_ERR_VALUE, "%s: the model was opened without a batch", what);
  if (ok) return d;
  tg_draft_free(d);
  return NULL;
}

TgDraft *tg_draft_lookup_opt(TgLlm *m, const TgDraftOptions *o) {
  return draft_new(m, &by_lookup, "draft_lookup", o);
}

/* Whether both models have the same text for each token that both have. Otherwise it is an error that names
 * the first token that differs. */
static bool same_texts(const TgLlm *m, const TgLlm *small) {
  int64_t n = tg_tokenizer_count(m->tokenizer), others = tg_tokenizer_count(small->tokenizer);
  int64_t both = n < others ? n : others;
  for (int64_t i = 0; i < both; i++) {
    size_t na = 0, nb = 0;
    const char *a = tg_token_text(m->tokenizer, i, &na), *b = tg_token_text(small->tokenizer, i, &nb);
    if (na == nb && (!na || !memcmp(a, b, na))) continue;
    return llm_fail(m->ctx, TG_ERR_VALUE,
                    "draft_model: token %lld is '%.*s' of one model, '%.*s' of the other", (long long)i,
                    (int)(na < 60 ? na : 60), a, (int)(nb < 60 ? nb : 60), b);
  }
  return true;
}

static bool same_vocabulary(const TgLlm *m, const TgLlm *small) {
  int64_t n = m->k.vocabulary, others = small->k.vocabulary, apart = n < others ? others - n : n - others;
  if (apart > SPARE_TOKENS)
    return llm_fail(m->ctx, TG_ERR_VALUE, "draft_model: vocabularies of %lld and of %lld tokens",
                    (long long)n, (long long)others);
  if (m->tokenizer && small->tokenizer) return same_texts(m, small);
  return (!m->tokenizer && !small->tokenizer && !apart) ||
         llm_fail(m->ctx, TG_ERR_VALUE, "draft_model: one of the models has no vocabulary");
}

static bool small_fits(const TgDraft *d, TgLlm *small) {
  const TgLlm *m = d->m;
  if (m == small || m->ctx != small->ctx)
    return llm_fail(m->ctx, TG_ERR_VALUE, "draft_model: %s",
                    m == small ? "the model cannot be its own draft" : "the models are of two contexts");
  if (!llm_generates(small, "draft_model")) return false;
  if (d->o.sequence < 0 || d->o.sequence >= small->sequences)
    return llm_fail(m->ctx, TG_ERR_VALUE, "draft_model: sequence %lld of %lld", (long long)d->o.sequence,
                    (long long)small->sequences);
  return same_vocabulary(m, small);
}

TgDraft *tg_draft_model_opt(TgLlm *m, TgLlm *small, const TgDraftOptions *o) {
  TgDraft *d = m && small ? draft_new(m, &by_model, "draft_model", o) : NULL;
  if (!d) return NULL;
  d->small = small;
  if (small_fits(d, small)) return d;
  tg_draft_free(d);
  return NULL;
}

void tg_draft_free(TgDraft *d) {
  if (d) tg_free(d->ctx, d);
}
