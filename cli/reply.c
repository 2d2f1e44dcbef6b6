/* reply.c: a reply of a language model, made step by step. In: what is asked. Out: text in pieces. Several
 * may be made in turn, each in a sequence of the model. A prompt that begins as what the sequence's cache has
 * is read from where they differ. Text is held back while it may be the beginning of a stop string, which may
 * span tokens. */
#include "llm.h"
#include <stdlib.h>
#include <string.h>

/* ---- stop strings */
typedef struct Outlet {
  const CliTexts *stop; /* NULL: none */
  LlmPiece piece;
  void *user;
  char *held; /* text that may be the beginning of a stop string */
  size_t n, cap;
  bool ended;
} Outlet;

/* How many bytes at the end of held may begin a stop string. */
static size_t waiting(const Outlet *o) {
  size_t most = 0;
  for (int i = 0; o->stop && i < o->stop->n; i++) {
    size_t n = strlen(o->stop->at[i]), k = n - 1 < o->n ? n - 1 : o->n;
    while (k > most && memcmp(o->held + o->n - k, o->stop->at[i], k))
      k--;
    if (n && k > most) most = k;
  }
  return most;
}

/* where the first stop string begins; o->n: none does */
static size_t stop_at(const Outlet *o) {
  size_t first = o->n;
  for (int i = 0; o->stop && i < o->stop->n; i++) {
    size_t n = strlen(o->stop->at[i]);
    for (size_t at = 0; n && at + n <= o->n && at < first; at++)
      if (!memcmp(o->held + at, o->stop->at[i], n)) first = at;
  }
  return first;
}

static bool outlet_put(Outlet *o, const char *text, size_t n) {
  if (o->n + n > o->cap) {
    size_t cap = 2 * (o->n + n) + 64;
    char *held = realloc(o->held, cap);
    if (!held) return false;
    o->held = held;
    o->cap = cap;
  }
  if (n) memcpy(o->held + o->n, text, n);
  o->n += n;
  size_t show = stop_at(o);
  o->ended = show < o->n;
  if (!o->ended) show = o->n - waiting(o);
  if (show) o->piece(o->held, show, o->user);
  if (show) memmove(o->held, o->held + show, o->n - show);
  o->n -= show;
  return true;
}

static void outlet_end(Outlet *o) {
  if (!o->ended && o->n) o->piece(o->held, o->n, o->user);
  free(o->held);
}

/* ---- a reply */
struct LlmReply {
  LlmSession *s;
  LlmAsk ask;
  TgDetokenizer *d;
  Outlet out;
  int32_t *ids;      /* of the prompt, and of the reply behind it */
  int64_t count, at; /* how many ids there are; how many of them are in the cache */
  int64_t asked;     /* of them, the prompt's */
  float *logits;     /* those that the grammar leaves; NULL: there is none */
  LlmEnd end;
};

/* Whether a text has far more tokens than the context has room for, so that a text of any length takes no
 * longer to refuse than a few times the context takes. Beginnings of it are tried, each twice as long as the
 * one before: tokens depend on what is near, so one that has twice as many as fit is of no text that fits. */
bool llm_is_too_long(LlmSession *s, const char *prompt, size_t n, bool special) {
  int64_t context = tg_llm_about(s->m).context;
  for (size_t part = 16 * (size_t)context; part < n; part *= 2) {
    size_t end = part;
    while (end && ((unsigned char)prompt[end] & 0xc0) == 0x80)
      end--; /* not within a character */
    int64_t count = tg_tokenize(s->tokenizer, prompt, end, NULL, 0, .special = special);
    if (count < 0) return false; /* the whole says why */
    if (count <= 2 * context) continue;
    char why[160];
    snprintf(why, sizeof why, "a prompt of more than %lld tokens is more than the context of %lld",
             (long long)count, (long long)context);
    tg_set_error(s->ctx, TG_ERR_LIMIT, why);
    return true;
  }
  return false;
}

/* The ids of a text, with room for one more. */
static int32_t *ids_of(LlmSession *s, const char *text, size_t n, bool special, bool ends, int64_t *count) {
  if (llm_is_too_long(s, text, n, special)) return NULL;
  *count = tg_tokenize(s->tokenizer, text, n, NULL, 0, .special = special, .ends = ends);
  if (*count < 0) return NULL;
  int32_t *ids = malloc(((size_t)*count + 2) * sizeof *ids);
  if (!ids) {
    tg_set_error(s->ctx, TG_ERR_NOMEM, "out of memory");
    return NULL;
  }
  tg_tokenize(s->tokenizer, text, n, ids, (size_t)*count, .special = special, .ends = ends);
  return ids;
}

int32_t *llm_text_ids(LlmSession *s, const char *text, size_t n, int64_t *count) {
  return ids_of(s, text, n, false, true, count);
}

int32_t *llm_prompt_ids(LlmSession *s, const char *prompt, size_t n, bool special, int64_t *count) {
  size_t bos_n = 0;
  const char *bos = tg_token_text(s->tokenizer, tg_token_special(s->tokenizer, TG_TOKEN_BOS), &bos_n);
  bool has = special && bos && bos_n && n >= bos_n && !memcmp(prompt, bos, bos_n);
  int32_t *ids = ids_of(s, prompt, n, special, !has, count);
  if (!ids) return NULL;
  if (*count && ids[*count - 1] == tg_token_special(s->tokenizer, TG_TOKEN_EOS) && !has)
    --*count; /* it goes on */
  if (!*count) {
    int64_t id = tg_token_special(s->tokenizer, TG_TOKEN_BOS);
    ids[(*count)++] = (int32_t)(id >= 0 ? id : 0);
  }
  return ids;
}

/* What the cache and the prompt have in common stays, but for the last token, whose logits are needed; where
 * bits count, of it what any prompt gets that begins so. */
static bool prefix_kept(LlmReply *r) {
  int64_t n, same = 0;
  const int32_t *cached = tg_llm_ids(r->s->m, &n);
  while (same < n && same < r->count - 1 && cached[same] == r->ids[same])
    same++;
  if (r->s->exact && same > tg_llm_settled(r->s->m)) same = tg_llm_settled(r->s->m);
  if (r->s->exact) same -= same % tg_llm_about(r->s->m).block;
  r->at = r->s->rates.kept = same;
  r->s->rates.prompt = r->count - same;
  return !tg_llm_rewind(r->s->m, same);
}

/* The ids, which have room for all of the context. */
static bool ids_take(LlmReply *r) {
  LlmSession *s = r->s;
  int64_t context = tg_llm_about(s->m).context;
  int32_t *ids = r->ask.ids ? NULL : llm_prompt_ids(s, r->ask.prompt, r->ask.n, r->ask.special, &r->count);
  const int32_t *from = r->ask.ids ? r->ask.ids : ids;
  if (r->ask.ids) r->count = (int64_t)r->ask.n;
  bool ok = from != NULL;
  if (ok && r->count > context) {
    char why[160];
    snprintf(why, sizeof why, "a prompt of %lld tokens is more than the context of %lld", (long long)r->count,
             (long long)context);
    tg_set_error(s->ctx, TG_ERR_LIMIT, why);
    ok = false;
  }
  if (ok && !(r->ids = malloc(((size_t)context + 1) * sizeof *r->ids)))
    ok = !tg_set_error(s->ctx, TG_ERR_NOMEM, "out of memory");
  if (ok) memcpy(r->ids, from, (size_t)r->count * sizeof *r->ids);
  free(ids);
  r->asked = r->count;
  return ok;
}

LlmReply *llm_reply_begin(LlmSession *s, const LlmAsk *ask) {
  if (!s->tokenizer) return tg_set_error(s->ctx, TG_ERR_VALUE, "the file has no vocabulary"), NULL;
  LlmReply *r = calloc(1, sizeof *r);
  if (!r) return tg_set_error(s->ctx, TG_ERR_NOMEM, "out of memory"), NULL;
  r->s = s;
  r->ask = *ask;
  r->out = (Outlet){.stop = ask->stop, .piece = ask->piece, .user = ask->user};
  r->d = tg_detokenizer_new(s->tokenizer, .inside = true);
  tg_sampler_reset(ask->sampler, ask->seed);
  if (ask->grammar) r->logits = malloc((size_t)tg_llm_about(s->m).vocabulary * sizeof *r->logits);
  if (ask->grammar && !r->logits) tg_set_error(s->ctx, TG_ERR_NOMEM, "out of memory");
  bool ok = r->d && (!ask->grammar || (r->logits && !tg_grammar_reset(ask->grammar))) &&
            !tg_llm_use(s->m, ask->sequence) && ids_take(r) && prefix_kept(r);
  for (int64_t i = 0; ok && i < r->count; i++)
    tg_sampler_accept(ask->sampler, r->ids[i]);
  if (ok) return r;
  r->end = LLM_FAILED;
  llm_reply_end(r);
  return NULL;
}

/* The logits to draw from; NULL: an error. */
static const float *allowed(LlmReply *r) {
  const float *all = tg_llm_logits(r->s->m);
  if (!r->logits || !all) return all;
  memcpy(r->logits, all, (size_t)tg_llm_about(r->s->m).vocabulary * sizeof *all);
  return tg_grammar_mask(r->ask.grammar, r->logits) ? NULL : r->logits;
}

/* The next token; false: an error. */
static bool token_made(LlmReply *r) {
  LlmSession *s = r->s;
  int64_t most = r->ask.tokens, context = tg_llm_about(s->m).context;
  const float *logits = allowed(r);
  int64_t id = logits ? tg_sampler_pick(r->ask.sampler, logits) : -1;
  if (id < 0 || (r->logits && tg_grammar_accept(r->ask.grammar, id))) return false;
  s->rates.tokens++;
  if (tg_token_ends(s->tokenizer, id)) {
    r->end = LLM_ENDED;
    return true;
  }
  size_t length = 0;
  tg_sampler_accept(r->ask.sampler, id);
  if (r->ask.token) r->ask.token(id, logits, r->ask.user);
  const char *text = tg_detokenizer_put(r->d, id, &length);
  if (!text || !outlet_put(&r->out, text, length)) return false;
  if (r->out.ended)
    r->end = LLM_ENDED;
  else if (r->count >= context || (most && r->count - r->asked + 1 >= most))
    r->end = LLM_FULL;
  r->ids[r->count++] = (int32_t)id;
  return true;
}

/* All that there is was computed: the next token. */
static LlmEnd goes_on(LlmReply *r, bool ok) {
  double begin = cli_now();
  if (ok && r->at == r->count) {
    ok = token_made(r);
    r->s->rates.tokens_s += cli_now() - begin;
  }
  if (!ok) r->end = LLM_FAILED;
  return r->end;
}

LlmEnd llm_reply_step(LlmReply *r) {
  LlmSession *s = r->s;
  double begin = cli_now();
  bool prompt = r->at < r->asked;
  int64_t n = r->count - r->at, block = tg_llm_about(s->m).block;
  if (n > block) n = block;
  bool ok = !tg_llm_use(s->m, r->ask.sequence) && !tg_llm_eval(s->m, r->ids + r->at, n);
  if (ok) r->at += n;
  *(prompt ? &s->rates.prompt_s : &s->rates.tokens_s) += cli_now() - begin;
  return goes_on(r, ok);
}

int32_t llm_reply_next(const LlmReply *r) { return r->at < r->asked ? -1 : r->ids[r->at]; }

LlmEnd llm_reply_computed(LlmReply *r, double seconds) {
  r->at++;
  r->s->rates.tokens_s += seconds;
  return goes_on(r, !tg_llm_use(r->s->m, r->ask.sequence));
}

LlmEnd llm_reply_end(LlmReply *r) {
  if (!r) return LLM_FAILED;
  LlmEnd end = r->end;
  size_t left = 0;
  const char *rest = end != LLM_FAILED && !r->out.ended ? tg_detokenizer_end(r->d, &left) : NULL;
  if (rest && left) outlet_put(&r->out, rest, left);
  outlet_end(&r->out);
  tg_detokenizer_free(r->d);
  free(r->ids), free(r->logits);
  free(r);
  return end;
}
