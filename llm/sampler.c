/* sampler.c: chooses the next token. In: logits and the tokens so far. Out: one id. It is a chain: bias and
 * penalties change logits; top-k, typical, top-p and min-p remove candidates; temperature and a draw choose
 * one. The same seed and logits give the same tokens everywhere, because sums are made in double and in one
 * order. */
#include "llm_private.h"
#include <math.h>
#include <stdlib.h>

typedef struct Candidate {
  int32_t id;
  float logit;
  double p;
} Candidate;

struct TgSampler {
  TgContext *ctx;
  TgSamplerOptions o;
  int64_t vocabulary, n;  /* n: the number of candidates left */
  Candidate *at, *sorted; /* sorted: room to sort all; NULL: only a few are needed */
  int32_t *history;       /* the last tokens, the oldest first */
  int64_t nhistory, most_history;
  int32_t *count;   /* how often each token is among the last ones */
  int64_t *matched; /* DRY: the length of the repetition that each token would continue */
  int64_t *z;
  int32_t *bias_ids, *breakers;
  float *bias;
  uint64_t state;
};

/* ---- options */
static bool within(TgContext *ctx, const char *name, double v, double lo, double hi) {
  if (v >= lo && v <= hi) return true;
  return llm_fail(ctx, TG_ERR_VALUE, "sampler_new: %s is %g, not within %g and %g", name, v, lo, hi);
}

static bool options_read(TgSampler *s, const TgSamplerOptions *given) {
  TgSamplerOptions *o = &s->o;
  if (tg_options_read(s->ctx, "sampler_new", "TgSamplerOptions", o, sizeof *o, given)) return false;
  o->temperature = TG_OPTION(*o, temperature, 0.8);
  o->top_k = TG_OPTION(*o, top_k, 40);
  o->top_p = TG_OPTION(*o, top_p, 0.95);
  o->min_p = TG_OPTION(*o, min_p, 0.05);
  o->typical_p = TG_OPTION(*o, typical_p, 1);
  o->repeat_penalty = TG_OPTION(*o, repeat_penalty, 1);
  o->last = TG_OPTION(*o, last, 64);
  o->dry_base = TG_OPTION(*o, dry_base, 1.75);
  o->dry_allowed = TG_OPTION(*o, dry_allowed, 2);
  o->dry_last = TG_OPTION(*o, dry_last, 1024);
  TgContext *c = s->ctx;
  return within(c, "temperature", o->temperature, 0, 1e6) &&
         within(c, "top_k", (double)o->top_k, 0, INT32_MAX) && within(c, "top_p", o->top_p, 0, 1) &&
         within(c, "min_p", o->min_p, 0, 1) && within(c, "typical_p", o->typical_p, 0, 1) &&
         within(c, "repeat_penalty", o->repeat_penalty, 1e-3, 1e3) &&
         within(c, "presence_penalty", o->presence_penalty, -1e3, 1e3) &&
         within(c, "frequency_penalty", o->frequency_penalty, -1e3, 1e3) &&
         within(c, "last", (double)o->last, 0, 1 << 20) &&
         within(c, "dry_multiplier", o->dry_multiplier, 0, 1e3) &&
         within(c, "dry_base", o->dry_base, 1, 1e3) &&
         within(c, "dry_allowed", (double)o->dry_allowed, 0, 1 << 20) &&
         within(c, "dry_last", (double)o->dry_last, 0, 1 << 20) &&
         within(c, "nbias", (double)o->nbias, 0, (double)s->vocabulary) &&
         within(c, "nbreakers", (double)o->nbreakers, 0, (double)s->vocabulary);
}

static void *copy_of(TgContext *ctx, const void *p, int64_t n, size_t size) {
  void *to = tg_alloc(ctx, ((size_t)n + 1) * size);
  if (to && n && p) memcpy(to, p, (size_t)n * size);
  return to;
}

static bool lists_copy(TgSampler *s) {
  TgSamplerOptions *o = &s->o;
  if ((o->nbias && (!o->bias_ids || !o->bias)) || (o->nbreakers && !o->breakers))
    return llm_fail(s->ctx, TG_ERR_VALUE, "sampler_new: a number of ids, and no ids");
  s->bias_ids = copy_of(s->ctx, o->bias_ids, o->nbias, sizeof *s->bias_ids);
  s->bias = copy_of(s->ctx, o->bias, o->nbias, sizeof *s->bias);
  s->breakers = copy_of(s->ctx, o->breakers, o->nbreakers, sizeof *s->breakers);
  if (!s->bias_ids || !s->bias || !s->breakers) return false;
  for (int64_t i = 0; i < o->nbias; i++)
    if (s->bias_ids[i] < 0 || s->bias_ids[i] >= s->vocabulary)
      return llm_fail(s->ctx, TG_ERR_VALUE, "sampler_new: a bias for token %d of %lld", (int)s->bias_ids[i],
                      (long long)s->vocabulary);
  o->bias_ids = s->bias_ids;
  o->bias = s->bias;
  o->breakers = s->breakers;
  o->set = NULL;
  return true;
}

static bool room_make(TgSampler *s) {
  int64_t most = s->o.last > s->o.dry_last ? s->o.last : s->o.dry_last;
  size_t v = (size_t)s->vocabulary, h = (size_t)most + 1;
  s->most_history = most;
  bool many = !s->o.top_k || s->o.top_k > s->vocabulary / 8;
  s->at = tg_alloc(s->ctx, v * sizeof *s->at);
  s->sorted = many ? tg_alloc(s->ctx, v * sizeof *s->at) : NULL;
  s->count = tg_alloc(s->ctx, v * sizeof *s->count);
  s->matched = tg_alloc(s->ctx, v * sizeof *s->matched);
  s->history = tg_alloc(s->ctx, 2 * h * sizeof *s->history);
  s->z = tg_alloc(s->ctx, h * sizeof *s->z);
  return s->at && (s->sorted || !many) && s->count && s->matched && s->history && s->z;
}

TgSampler *tg_sampler_new_opt(TgContext *ctx, int64_t vocabulary, const TgSamplerOptions *given) {
  TgSampler *s = ctx ? tg_alloc(ctx, sizeof *s) : NULL;
  if (!s) return NULL;
  s->ctx = ctx;
  s->vocabulary = vocabulary;
  bool ok = (vocabulary > 0 && vocabulary < INT32_MAX / 4) ||
            llm_fail(ctx, TG_ERR_VALUE, "sampler_new: a vocabulary of %lld", (long long)vocabulary);
  ok = ok && options_read(s, given) && lists_copy(s) && room_make(s);
  if (!ok) {
    tg_sampler_free(s);
    return NULL;
  }
  tg_sampler_reset(s, s->o.seed);
  return s;
}

void tg_sampler_free(TgSampler *s) {
  if (!s) return;
  TgContext *ctx = s->ctx;
  tg_free(ctx, s->at), tg_free(ctx, s->sorted), tg_free(ctx, s->count);
  tg_free(ctx, s->matched), tg_free(ctx, s->history);
  tg_free(ctx, s->z), tg_free(ctx, s->bias_ids), tg_free(ctx, s->bias), tg_free(ctx, s->breakers);
  tg_free(ctx, s);
}

void tg_sampler_reset(TgSampler *s, uint64_t seed) {
  if (!s) return;
  s->state = seed;
  s->nhistory = 0;
}

/* ---- the tokens so far: there is twice the room, so that they are moved to the front only rarely */
void tg_sampler_accept(TgSampler *s, int64_t id) {
  if (!s || id < 0 || id >= s->vocabulary || !s->most_history) return;
  if (s->nhistory == 2 * s->most_history) {
    memmove(s->history, s->history + s->most_history, (size_t)s->most_history * sizeof *s->history);
    s->nhistory = s->most_history;
  }
  s->history[s->nhistory++] = (int32_t)id;
}

/* the last n of them, or all if there are fewer */
static const int32_t *last_of(const TgSampler *s, int64_t *n) {
  if (*n > s->nhistory) *n = s->nhistory;
  return s->history + s->nhistory - *n;
}

/* ---- bias and penalties */
static void penalize(TgSampler *s) {
  const TgSamplerOptions *o = &s->o;
  int64_t n = o->last;
  const int32_t *last = last_of(s, &n);
  if (o->repeat_penalty == 1 && o->presence_penalty == 0 && o->frequency_penalty == 0) return;
  for (int64_t i = 0; i < n; i++)
    s->count[last[i]]++;
  for (int64_t i = 0; i < n; i++) {
    int32_t id = last[i], c = s->count[id];
    if (!c) continue; /* the token was handled already */
    double l = (double)s->at[id].logit;
    l = l > 0 ? l / o->repeat_penalty : l * o->repeat_penalty;
    s->at[id].logit = (float)(l - c * o->frequency_penalty - o->presence_penalty);
    s->count[id] = 0;
  }
}

static bool breaks(const TgSampler *s, int32_t id) {
  for (int64_t i = 0; i < s->o.nbreakers; i++)
    if (s->breakers[i] == id) return true;
  return false;
}

/* DRY: a token that would continue a repetition of length m >= allowed loses multiplier * base^(m - allowed).
 * Read backwards, z[k] is the length that the text which ends k tokens ago and the text which ends now have
 * in common (the penalty counts it only up to a breaker). The token that followed then is the token that
 * would continue the repetition. */
static void penalize_repetition(TgSampler *s) {
  const TgSamplerOptions *o = &s->o;
  int64_t n = o->dry_last, least = 0;
  const int32_t *last = last_of(s, &n);
  if (o->dry_multiplier == 0 || n < 2) return;
  while (least < n && !breaks(s, last[n - 1 - least]))
    least++;
  for (int64_t k = 1, left = 0, right = 0; k < n; k++) {
    int64_t z = k < right && s->z[k - left] < right - k ? s->z[k - left] : k < right ? right - k : 0;
    while (k + z < n && last[n - 1 - z] == last[n - 1 - k - z])
      z++;
    if (k + z > right) {
      left = k;
      right = k + z;
    }
    s->z[k] = z;
    int32_t next = last[n - k];
    int64_t m = z < least ? z : least;
    if (m > s->matched[next]) s->matched[next] = m;
  }
  for (int64_t i = 0; i < n; i++) {
    int32_t id = last[i];
    if (s->matched[id] >= o->dry_allowed && s->matched[id])
      s->at[id].logit -=
          (float)(o->dry_multiplier * pow(o->dry_base, (double)(s->matched[id] - o->dry_allowed)));
    s->matched[id] = 0;
  }
}

/* ---- candidates */
static bool better(const Candidate *a, const Candidate *b) {
  return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

/* Restores a heap whose root is the worst candidate. */
static void sift(Candidate *at, int64_t i, int64_t n) {
  Candidate c = at[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && better(&at[child], &at[child + 1])) child++;
    if (better(&at[child], &c)) break;
    at[i] = at[child];
  }
  at[i] = c;
}

/* Eight bits of a number that decreases as the logit grows; -0 is treated as 0. */
static uint32_t digit_of(const Candidate *c, int shift) {
  union {
    float f;
    uint32_t u;
  } bits = {.f = c->logit + 0.0f};

  return (bits.u >> 31 ? bits.u : ~bits.u ^ 1u << 31) >> shift & 255;
}

/* Sorts all candidates by the bits of their logits, eight at a time. Each pass keeps the order of equal
 * digits, so among equal logits the first id comes first. The heap is used when few of many are needed:
 * sorting 150,000 tokens takes longer than a small model takes to compute them. */
static void sort_all(TgSampler *s) {
  for (int shift = 0; shift < 32; shift += 8) {
    int64_t place[257] = {0};
    for (int64_t i = 0; i < s->n; i++)
      place[digit_of(&s->at[i], shift) + 1]++;
    for (int d = 0; d < 256; d++)
      place[d + 1] += place[d];
    for (int64_t i = 0; i < s->n; i++)
      s->sorted[place[digit_of(&s->at[i], shift)]++] = s->at[i];
    Candidate *from = s->at;
    s->at = s->sorted;
    s->sorted = from;
  }
}

/* Keeps the k best candidates, in order. */
static void keep_best(TgSampler *s, int64_t k) {
  if (k > s->n) k = s->n;
  if (s->sorted && k > s->n / 8) {
    sort_all(s);
    s->n = k;
    return;
  }
  for (int64_t i = k / 2; i-- > 0;)
    sift(s->at, i, k);
  for (int64_t i = k; i < s->n; i++)
    if (better(&s->at[i], &s->at[0])) {
      s->at[0] = s->at[i];
      sift(s->at, 0, k);
    }
  for (int64_t i = k; i-- > 1;) {
    Candidate worst = s->at[0];
    s->at[0] = s->at[i];
    s->at[i] = worst;
    sift(s->at, 0, i);
  }
  s->n = k;
}

/* computes p of the candidates, which are sorted */
static void soften(TgSampler *s, double temperature) {
  double sum = 0, most = (double)s->at[0].logit;
  for (int64_t i = 0; i < s->n; i++) {
    s->at[i].p = exp(((double)s->at[i].logit - most) / temperature);
    sum += s->at[i].p;
  }
  for (int64_t i = 0; i < s->n; i++)
    s->at[i].p /= sum;
}

static int by_typicality(const void *a, const void *b) {
  const Candidate *x = a, *y = b;
  if (x->p != y->p) return x->p < y->p ? -1 : 1;
  return x->id < y->id ? -1 : 1;
}

/* Keeps the candidates whose surprise is nearest to the mean surprise, until their probabilities add up to
 * typical_p. */
static void keep_typical(TgSampler *s) {
  if (s->o.typical_p >= 1) return;
  double entropy = 0, share = 0, most = (double)s->at[0].logit, sum = 0;
  soften(s, 1);
  for (int64_t i = 0; i < s->n; i++) {
    double p = s->at[i].p;
    sum += exp((double)s->at[i].logit - most);
    if (p > 0) entropy -= p * log(p);
  }
  for (int64_t i = 0; i < s->n; i++)
    s->at[i].p = fabs(-((double)s->at[i].logit - most - log(sum)) - entropy);
  qsort(s->at, (size_t)s->n, sizeof *s->at, by_typicality);
  int64_t n = 0;
  while (n < s->n && share < s->o.typical_p)
    share += exp((double)s->at[n++].logit - most) / sum;
  s->n = n ? n : 1;
  keep_best(s, s->n);
}

/* Keeps the likeliest candidates until their probabilities add up to top_p, then removes those that are less
 * than min_p times as likely as the first. */
static void keep_likely(TgSampler *s) {
  int64_t n = 0;
  double share = 0;
  if (s->o.top_p < 1) {
    soften(s, 1);
    while (n < s->n && share < s->o.top_p)
      share += s->at[n++].p;
    s->n = n ? n : 1;
  }
  for (n = 1; n < s->n && exp((double)s->at[n].logit - (double)s->at[0].logit) >= s->o.min_p;)
    n++;
  s->n = n;
}

/* The whole chain up to the draw; false: no logit is a finite number. */
static bool chain(TgSampler *s, const float *logits) {
  const TgSamplerOptions *o = &s->o;
  s->n = s->vocabulary;
  for (int64_t i = 0; i < s->n; i++)
    s->at[i] = (Candidate){(int32_t)i, logits[i] == logits[i] ? logits[i] : -INFINITY, 0};
  for (int64_t i = 0; i < o->nbias; i++)
    s->at[s->bias_ids[i]].logit += s->bias[i];
  penalize(s);
  penalize_repetition(s);
  bool greedy = o->temperature == 0;
  keep_best(s, greedy ? 1 : o->top_k ? o->top_k : s->n);
  if (!(s->at[0].logit > -INFINITY) || s->at[0].logit == INFINITY)
    return llm_fail(s->ctx, TG_ERR_VALUE, "sampler: the best logit is %g", (double)s->at[0].logit);
  if (!greedy) {
    keep_typical(s);
    keep_likely(s);
  }
  soften(s, greedy ? 1 : o->temperature);
  return true;
}

/* splitmix64, as a number in [0, 1) */
static double draw(TgSampler *s) {
  uint64_t z = s->state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

int64_t tg_sampler_pick(TgSampler *s, const float *logits) {
  if (!s || !logits || !chain(s, logits)) return -1;
  if (s->n == 1) return s->at[0].id;
  double at = draw(s), sum = 0;
  for (int64_t i = 0; i < s->n; i++)
    if ((sum += s->at[i].p) > at) return s->at[i].id;
  return s->at[s->n - 1].id;
}

int64_t tg_sampler_candidates(TgSampler *s, const float *logits, int32_t *ids, double *p, size_t cap) {
  if (!s || !logits || !chain(s, logits)) return -1;
  for (size_t i = 0; i < cap && i < (size_t)s->n; i++) {
    if (ids) ids[i] = s->at[i].id;
    if (p) p[i] = s->at[i].p;
  }
  return s->n;
}
