/* reply.c: makes a reply of a language model, step by step. In: a request. Out: pieces of text. Several
 * replies may be made in turn, each in its own sequence of the model. If a prompt begins like the text in the
 * cache, only the rest is computed. Text is held back while it may begin a stop string, which may span
 * tokens. */
#include "sight.h"
#include <stdlib.h>
#include <string.h>

/* ---- stop strings */
typedef struct Outlet {
  const CliTexts *stop; /* NULL: none */
  LlmPiece piece;
  void *user;
  char *held; /* text that may begin a stop string */
  size_t n, cap;
  bool ended;
} Outlet;

/* Returns how many bytes at the end of `held` may begin a stop string. */
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

/* Returns where the first stop string begins; o->n: there is none. */
static size_t stop_at(const Outlet *o) {
  size_t first = o->n;
  for (int i = 0; o->stop && i < o->stop->n; i++) {
    size_t n = strlen(o->stop->at[i]);
    for (size_t at = 0; n && at + n <= o->n && at < first; at++)
      if (!memcmp(o->held + at, o->stop->at[i], n)) first = at;
  }
  return first;
}

/* Adds text and passes on what cannot begin a stop string. */
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
  int32_t *ids;      /* of the prompt, followed by those of the reply */
  int64_t count, at; /* count: number of ids; at: how many of them are in the cache */
  int64_t asked;     /* how many of the ids are the prompt's */
  float *logits;     /* logits as the grammar masks them; NULL: there is no grammar */
  int32_t guess[LLM_ROWS];
  int64_t guesses; /* how many guesses are computed after the next token */
  LlmEnd end;
};

/* Tells whether a text has far more tokens than fit into the context, without tokenizing all of it: any text
 * is refused within a few times the work of tokenizing a context. It tries beginnings of the text, each twice
 * as long as the one before. Tokens depend only on nearby text, so no text fits if a beginning of it has
 * twice as many tokens as fit. */
bool llm_is_too_long(LlmSession *s, const char *prompt, size_t n, bool special) {
  int64_t context = tg_llm_about(s->m).context;
  for (size_t part = 16 * (size_t)context; part < n; part *= 2) {
    size_t end = part;
    while (end && ((unsigned char)prompt[end] & 0xc0) == 0x80)
      end--; /* do not cut within a character */
    int64_t count = tg_tokenize(s->tokenizer, prompt, end, NULL, 0, .special = special);
    if (count < 0) return false; /* tokenizing the whole text then reports the error */
    if (count <= 2 * context) continue;
    char why[160];
    snprintf(why, sizeof why, "a prompt of more than %lld tokens is more than the context of %lld",
             (long long)count, (long long)context);
    tg_set_error(s->ctx, TG_ERR_LIMIT, why);
    return true;
  }
  return false;
}

/* Returns the ids of a text, with room for one more, to be freed. Returns NULL on an error. */
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
    --*count; /* the text goes on, so its end token is removed */
  if (!*count) {
    int64_t id = tg_token_special(s->tokenizer, TG_TOKEN_BOS);
    ids[(*count)++] = (int32_t)(id >= 0 ? id : 0);
  }
  return ids;
}

/* A view of a picture whose first token is at `at`. picture NULL: there is none. */
typedef struct View {
  const Picture *picture;
  int64_t view, at;
} View;

/* Returns the view whose tokens begin at `at`, or, if `inside`, the one that has a token there. All tokens of
 * views have ids below 0, and no others have; so the next view begins at the next such id. */
static View view_at(const LlmReply *r, int64_t at, bool inside) {
  int64_t n = tg_vision_tokens(r->s->sight.vision);
  if (!r->ask.nshown || at >= r->count || r->ids[at] >= 0) return (View){NULL, 0, 0};
  for (size_t i = 0; i < r->ask.nshown; i++) {
    const LlmShown *p = &r->ask.shown[i];
    int64_t views = llm_sight_views(r->s, p->picture), begin = p->at;
    for (int64_t k = 0; k < views && begin <= at; k++) {
      if (begin == at || (inside && at < begin + n)) return (View){p->picture, k, begin};
      begin += n;
      while (begin < r->count && r->ids[begin] >= 0)
        begin++;
    }
  }
  return (View){NULL, 0, 0};
}

/* Keeps the part of the cache that agrees with the prompt, except for the last token, whose logits are
 * needed. If bits matter (exact), it keeps only what any prompt with this beginning would compute. A view of
 * a picture is kept as a whole or not at all. */
static bool prefix_kept(LlmReply *r) {
  int64_t n, same = 0;
  const int32_t *cached = tg_llm_ids(r->s->m, &n);
  while (same < n && same < r->count - 1 && cached[same] == r->ids[same])
    same++;
  if (r->s->exact && same > tg_llm_settled(r->s->m)) same = tg_llm_settled(r->s->m);
  if (r->s->exact) same -= same % tg_llm_about(r->s->m).block;
  View cut = view_at(r, same, true);
  if (cut.picture) same = cut.at;
  r->at = r->s->rates.kept = same;
  r->s->rates.prompt = r->count - same;
  return !tg_llm_rewind(r->s->m, same);
}

/* Sets r->ids to the prompt's ids, with room for a full context. */
static bool ids_take(LlmReply *r) {
  LlmSession *s = r->s;
  int64_t context = tg_llm_about(s->m).context;
  LlmAsk *a = &r->ask;
  int32_t *ids = a->ids ? NULL
                 : s->sight.vision
                     ? llm_sight_ids(s, a->prompt, a->n, a->special, a->shown, a->nshown, &r->count)
                     : llm_prompt_ids(s, a->prompt, a->n, a->special, &r->count);
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

/* Returns the logits to draw from, masked by the grammar; NULL: an error. */
static const float *allowed(LlmReply *r, const float *all) {
  if (!r->logits || !all) return all;
  memcpy(r->logits, all, (size_t)tg_llm_about(r->s->m).vocabulary * sizeof *all);
  return tg_grammar_mask(r->ask.grammar, r->logits) ? NULL : r->logits;
}

/* Draws the next token from these logits. Returns false on an error. */
static bool token_made(LlmReply *r, const float *all) {
  LlmSession *s = r->s;
  int64_t most = r->ask.tokens, context = tg_llm_about(s->m).context;
  const float *logits = allowed(r, all);
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

/* Makes the next token if all ids are computed. ok false: the reply has failed. */
static LlmEnd goes_on(LlmReply *r, bool ok) {
  double begin = cli_now();
  if (ok && r->at == r->count) {
    ok = token_made(r, tg_llm_logits(r->s->m));
    r->s->rates.tokens_s += cli_now() - begin;
  }
  if (!ok) r->end = LLM_FAILED;
  return r->end;
}

/* Computes a view of a picture, or up to a block of tokens before the next view. *n: how many tokens. */
static bool next_read(LlmReply *r, int64_t *n) {
  LlmSession *s = r->s;
  int64_t block = tg_llm_about(s->m).block;
  View p = view_at(r, r->at, false);
  *n = p.picture ? tg_vision_tokens(s->sight.vision) : 0;
  if (p.picture)
    return !tg_llm_eval_picture(s->m, s->sight.vision, p.picture->rgb, p.picture->height, p.picture->width,
                                p.view);
  int64_t most = r->count - r->at < block ? r->count - r->at : block;
  while (*n < most && !view_at(r, r->at + *n, false).picture)
    ++*n;
  return !tg_llm_eval(s->m, r->ids + r->at, *n);
}

/* Computes the next token and guesses in one step. Every token that could be guessed is computed so; thus its
 * bits are the same whether it was guessed or not. */
static LlmEnd guessed_step(LlmReply *r) {
  int32_t ids[LLM_ROWS], sequence[LLM_ROWS];
  int64_t n = llm_reply_rows(r, LLM_ROWS, 0, ids);
  for (int64_t i = 0; i < n; i++)
    sequence[i] = (int32_t)r->ask.sequence;
  double begin = cli_now();
  if (n > 0 && !tg_llm_eval_many(r->s->m, sequence, ids, n))
    return llm_reply_computed(r, 0, cli_now() - begin);
  return r->end = LLM_FAILED;
}

LlmEnd llm_reply_step(LlmReply *r) {
  LlmSession *s = r->s;
  if (s->o->draft && !llm_reply_reads(r)) return guessed_step(r);
  double begin = cli_now();
  bool prompt = r->at < r->asked;
  int64_t n = 0;
  bool ok = !tg_llm_use(s->m, r->ask.sequence) && next_read(r, &n);
  if (ok) r->at += n;
  *(prompt ? &s->rates.prompt_s : &s->rates.tokens_s) += cli_now() - begin;
  return goes_on(r, ok);
}

bool llm_reply_reads(const LlmReply *r) { return r->at < r->asked; }

/* Returns how many tokens the reply may have after the next one. */
static int64_t left(const LlmReply *r) {
  int64_t room = tg_llm_about(r->s->m).context - r->at - 1,
          wanted = r->ask.tokens - (r->count - r->asked) - 1;
  return r->ask.tokens && wanted < room ? wanted : room;
}

int64_t llm_reply_rows(LlmReply *r, int64_t room, int64_t beside, int32_t *ids) {
  double begin = cli_now();
  int64_t most = left(r) < room - 1 ? left(r) : room - 1, n = 0;
  if (most >= LLM_ROWS) most = LLM_ROWS - 1;
  if (most > 0 && r->ask.draft) n = tg_draft_guess(r->ask.draft, r->ids, r->count, beside, r->guess, most);
  r->s->rates.tokens_s += cli_now() - begin;
  if (n < 0) r->end = LLM_FAILED;
  if (n < 0) return -1;
  ids[0] = r->ids[r->at];
  memcpy(ids + 1, r->guess, (size_t)n * sizeof *ids);
  r->guesses = n;
  return n + 1;
}

/* The logits of each row make a token. If it is the token that was guessed, the next row is valid too;
 * otherwise that row and the rows after it are removed from the cache. Sampler and grammar see only the
 * tokens that are made. */
LlmEnd llm_reply_computed(LlmReply *r, int64_t row, double seconds) {
  LlmSession *s = r->s;
  double begin = cli_now();
  int64_t tried = 0, right = 0;
  bool ok = true;
  for (bool more = true; ok && more;) {
    r->at++;
    ok = token_made(r, tg_llm_row_logits(s->m, row + right));
    more = ok && r->end == LLM_GOES_ON && tried < r->guesses;
    if (!more) break;
    tried++;
    more = r->ids[r->at] == r->guess[right];
    right += more;
  }
  tg_draft_told(r->ask.draft, tried, right);
  s->rates.guessed += r->guesses;
  s->rates.right += right;
  s->rates.tokens_s += seconds + cli_now() - begin;
  ok = ok && !tg_llm_use(s->m, r->ask.sequence) && !tg_llm_rewind(s->m, r->at);
  if (!ok) r->end = LLM_FAILED;
  return r->end;
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
