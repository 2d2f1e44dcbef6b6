/* serve.c: `tg serve`: language models behind OpenAI's HTTP API. In: gguf files, jobs of serve_http.c. Out:
 * replies. One thread works on all replies: in turn, it computes a block of each prompt that is still read,
 * and then the next tokens of all other replies, several in one step. Each reply has a sequence of its own. A
 * reply never depends on the other replies, so the same request gives the same text whatever else is
 * requested. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#ifdef TG_HAVE_MICROHTTPD
#include "serve.h"
#include "sight.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_MODELS = 8,
  MOST_SLOTS = 64,
  WORTH_COPYING = 32 /* tokens of a common prefix that make it worth copying another sequence's cache */
};

typedef struct Model Model;

/* The decoded pictures of a request. */
typedef struct Gallery {
  Picture picture[LLM_PICTURES];
  LlmShown shown[LLM_PICTURES];
  size_t n;
} Gallery;

/* A sequence of a model, and the reply that is made in it. job NULL: the slot is free. */
typedef struct Slot {
  Job *job;
  Model *m;
  LlmReply *reply;
  TgSampler *sampler;
  TgGrammar *grammar;
  Gallery *gallery; /* NULL: no pictures */
  int32_t *ids;
  int64_t n;
  Answer answer;
} Slot;

struct Model {
  LlmSession s;
  LlmChoices o; /* the server's, with what reads pictures for this model */
  TgTemplate *template_;
  char name[128];
  Slot *slot;
  TgDraft *draft[MOST_SLOTS]; /* of each slot; NULL: nothing is guessed */
};

typedef struct Serving {
  Server http;
  const ServeOptions *o;
  Model model[MOST_MODELS];
  int n;
  int64_t made; /* number of jobs so far, from which ids are made */
  int told;     /* number of interrupts that were reported */
} Serving;

/* ---- a prompt */
/* A special token as text for the template. Its bytes do not end with a 0. */
static json_t *token_text(const Model *m, TgTokenRole role) {
  size_t n = 0;
  const char *text = tg_token_text(m->s.tokenizer, tg_token_special(m->s.tokenizer, role), &n);
  json_t *v = json_stringn(text ? text : "", n);
  return v ? v : json_string("");
}

/* Copies JSON, replacing in every string what looks like a picture's mark. */
static json_t *guarded(const LlmSession *s, const json_t *v) {
  json_t *each, *all;
  const char *key;
  size_t i;
  if (json_is_string(v)) {
    char *text = llm_sight_text(s, json_string_value(v), json_string_length(v));
    all = text ? json_string(text) : NULL;
    free(text);
    return all;
  }
  if (!json_is_array(v) && !json_is_object(v)) return json_deep_copy(v);
  all = json_is_array(v) ? json_array() : json_object();
  if (json_is_array(v)) json_array_foreach(v, i, each) json_array_append_new(all, guarded(s, each));
  if (json_is_object(v))
    json_object_foreach((json_t *)v, key, each) json_object_set_new(all, key, guarded(s, each));
  return all;
}

/* Joins a content of parts into one text, with a mark for each picture. */
static json_t *content_marked(const LlmSession *s, json_t *parts) {
  char *mark = llm_sight_message(s, 1, "", 0), *text = NULL;
  size_t n = 0, i;
  json_t *part;
  FILE *f = mark ? open_memstream(&text, &n) : NULL;
  json_array_foreach(parts, i, part) {
    const char *said = json_string_value(json_object_get(part, "text"));
    if (f) fputs(said ? said : mark, f);
  }
  bool ok = f && !fclose(f);
  json_t *v = ok ? json_stringn(text, n) : NULL;
  free(text), free(mark);
  return v;
}

/* Returns the messages in the form that the template of a model with pictures takes. */
static json_t *messages_shown(const LlmSession *s, const json_t *messages) {
  json_t *all = guarded(s, messages), *m;
  size_t i;
  json_array_foreach(all, i, m) {
    json_t *content = json_object_get(m, "content");
    if (json_is_string(content) && s->sight.lists)
      json_object_set_new(m, "content", json_pack("[{s:s, s:O}]", "type", "text", "text", content));
    else if (json_is_array(content) && !s->sight.lists)
      json_object_set_new(m, "content", content_marked(s, content));
  }
  return all;
}

/* Returns the template's prompt for the messages, valid until its next call. */
static const char *chat_prompt(Model *m, const Ask *a, size_t *n) {
  bool sees = m->s.sight.vision != NULL;
  json_t *messages = sees ? messages_shown(&m->s, a->messages) : json_incref(a->messages);
  json_t *tools = !a->tools ? NULL : sees ? guarded(&m->s, a->tools) : json_incref(a->tools);
  json_t *all = json_pack("{s:o, s:b, s:o, s:o}", "messages", messages, "add_generation_prompt", 1,
                          "bos_token", token_text(m, TG_TOKEN_BOS), "eos_token", token_text(m, TG_TOKEN_EOS));
  if (all && tools) json_object_set_new(all, "tools", tools);
  char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
  const char *r = text ? tg_template_render(m->template_, text, n) : NULL;
  if (!text) tg_set_error(m->s.ctx, TG_ERR_VALUE, "a text of the messages is none that a template can take");
  free(text);
  json_decref(all);
  return r;
}

static int32_t *chat_ids(Model *m, const Ask *a, Gallery *g, int64_t *count) {
  size_t n = 0;
  if (!m->template_) {
    tg_set_error(m->s.ctx, TG_ERR_VALUE, "the model's file has no chat template: ask /v1/completions");
    return NULL;
  }
  const char *text = chat_prompt(m, a, &n);
  if (!text || !m->s.sight.vision) return text ? llm_prompt_ids(&m->s, text, n, true, count) : NULL;
  return llm_sight_ids(&m->s, text, n, true, g ? g->shown : NULL, g ? g->n : 0, count);
}

static void gallery_free(Gallery *g) {
  for (size_t i = 0; g && i < g->n; i++)
    free(g->picture[i].rgb);
  free(g);
}

/* Decodes the pictures of a request. Returns false on an error. */
static bool gallery_open(Model *m, const Ask *a, Gallery **to) {
  int64_t left = LLM_PIXELS;
  size_t i;
  json_t *uri;
  if (!json_array_size(a->pictures)) return true;
  if (!m->s.sight.vision)
    return !tg_set_error(m->s.ctx, TG_ERR_VALUE,
                         "the model reads no pictures: tg serve --mmproj FILE says what reads them");
  Gallery *g = *to = calloc(1, sizeof *g);
  if (!g) return !tg_set_error(m->s.ctx, TG_ERR_NOMEM, "out of memory");
  json_array_foreach(a->pictures, i, uri) {
    Picture *p = &g->picture[g->n];
    const char *why = llm_sight_uri(json_string_value(uri), json_string_length(uri), left, p);
    if (why) return !tg_set_error(m->s.ctx, TG_ERR_VALUE, why);
    left -= (int64_t)p->width * p->height;
    g->shown[g->n++].picture = p;
  }
  return true;
}

/* Returns the tokens of prompt or input number `at`, to be freed; NULL: an error. */
static int32_t *ids_asked(Model *m, const Ask *a, size_t at, int64_t *count) {
  json_t *from = json_array_get(a->prompt, at);
  if (json_is_string(from) && a->route == ROUTE_EMBED)
    return llm_text_ids(&m->s, json_string_value(from), json_string_length(from), count);
  if (json_is_string(from))
    return llm_prompt_ids(&m->s, json_string_value(from), json_string_length(from), false, count);
  *count = (int64_t)json_array_size(from);
  int32_t *ids = malloc((size_t)(*count + 1) * sizeof *ids);
  for (int64_t i = 0; ids && i < *count; i++) {
    json_int_t id = json_integer_value(json_array_get(from, (size_t)i));
    ids[i] = id < 0 || id > INT32_MAX ? -1 : (int32_t)id;
  }
  if (!ids) tg_set_error(m->s.ctx, TG_ERR_NOMEM, "out of memory");
  return ids;
}

/* ---- the model and the slot of a request */
static Model *model_of(Serving *v, const Ask *a) {
  if (v->n == 1 || !a->model) return &v->model[0];
  for (int i = 0; i < v->n; i++)
    if (!strcmp(v->model[i].name, a->model)) return &v->model[i];
  return &v->model[0]; /* serve_http.c has checked the name */
}

static bool has_room(const Job *j, void *user) {
  Serving *v = user;
  Model *m = model_of(v, &j->ask);
  for (int64_t i = 0; i < v->o->slots; i++)
    if (!m->slot[i].job) return true;
  return false;
}

/* Returns how many tokens at the prompt's beginning the slot's cache has. */
static int64_t in_common(Model *m, int64_t slot, const int32_t *ids, int64_t count) {
  int64_t n = 0, same = 0;
  tg_llm_use(m->s.m, slot);
  const int32_t *has = tg_llm_ids(m->s.m, &n);
  while (same < n && same < count && has[same] == ids[same])
    same++;
  return m->s.exact && same > tg_llm_settled(m->s.m) ? tg_llm_settled(m->s.m) : same;
}

/* Returns the free slot whose cache has most of the prompt. If another slot has a longer beginning, that is
 * copied. */
static int64_t slot_for(Serving *v, Model *m, const int32_t *ids, int64_t count) {
  int64_t best = -1, most = -1, other = -1, others = 0;
  for (int64_t i = 0; i < v->o->slots; i++) {
    int64_t same = in_common(m, i, ids, count);
    if (!m->slot[i].job && same > most) {
      best = i;
      most = same;
    }
    if (same > others) {
      other = i;
      others = same;
    }
  }
  if (best >= 0 && others >= most + WORTH_COPYING && !tg_llm_use(m->s.m, best))
    tg_llm_copy(m->s.m, other, others);
  tg_clear_error(m->s.ctx);
  return best;
}

/* ---- a reply */
static void on_piece(const char *text, size_t n, void *user) {
  answer_text(&((Slot *)user)->answer, text, n);
}

static void on_token(int64_t id, const float *logits, void *user) {
  Slot *s = user;
  answer_token(&s->answer, s->m->s.tokenizer, id, logits, tg_llm_about(s->m->s.m).vocabulary);
}

/* Begins the next of the requested choices. Each choice of a prompt has a seed of its own. */
static bool choice_begin(Model *m, Slot *s) {
  const Ask *a = &s->job->ask;
  int64_t of_prompt = s->answer.choice % a->n;
  LlmAsk ask = {.ids = s->ids,
                .n = (size_t)s->n,
                .shown = s->gallery ? s->gallery->shown : NULL,
                .nshown = s->gallery ? s->gallery->n : 0,
                .sequence = s - m->slot,
                .tokens = a->tokens,
                .stop = &a->stop,
                .sampler = s->sampler,
                .grammar = s->grammar ? s->grammar : m->s.grammar,
                .draft = m->draft[s - m->slot],
                .seed = (uint64_t)a->seed + (uint64_t)of_prompt,
                .piece = on_piece,
                .token = on_token,
                .user = s};
  m->s.rates = (LlmRates){.tokens = 0};
  s->reply = llm_reply_begin(&m->s, &ask);
  if (s->reply && !of_prompt) s->answer.cached += m->s.rates.kept;
  return s->reply != NULL;
}

static int64_t choices_asked(const Ask *a) {
  return a->route == ROUTE_CHAT ? a->n : a->n * (int64_t)json_array_size(a->prompt);
}

/* Begins the choice after one that has ended: of the same prompt, or the first of the next prompt. */
static bool choice_next(Model *m, Slot *s) {
  const Ask *a = &s->job->ask;
  if (s->answer.choice % a->n == 0) {
    free(s->ids);
    s->ids = ids_asked(m, a, (size_t)(s->answer.choice / a->n), &s->n);
    if (!s->ids) return false;
    s->answer.prompt += s->n;
  }
  return choice_begin(m, s);
}

static TgSampler *sampler_for(Model *m, const Ask *a) {
  return tg_sampler_new(m->s.ctx, tg_llm_about(m->s.m).vocabulary, .temperature = a->temperature,
                        .top_k = a->top_k, .top_p = a->top_p, .min_p = a->min_p, .repeat_penalty = a->repeat,
                        .presence_penalty = a->presence, .frequency_penalty = a->frequency,
                        .bias_ids = a->bias_ids, .bias = a->bias, .nbias = a->nbias);
}

/* Makes the grammar that the request asks for. Returns false on an error. */
static bool grammar_for(Model *m, Slot *s) {
  const Ask *a = &s->job->ask;
  char *text = a->schema ? json_dumps(a->schema, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
  if (text)
    s->grammar = tg_grammar_json(m->s.ctx, m->s.tokenizer, text, strlen(text));
  else if (a->grammar)
    s->grammar = tg_grammar_new(m->s.ctx, m->s.tokenizer, a->grammar, strlen(a->grammar));
  free(text);
  return s->grammar || (!a->schema && !a->grammar);
}

static void slot_clear(Slot *s) {
  llm_reply_end(s->reply);
  tg_sampler_free(s->sampler);
  tg_grammar_free(s->grammar);
  answer_free(&s->answer);
  gallery_free(s->gallery);
  free(s->ids);
  *s = (Slot){.job = NULL};
}

/* Tells the client why a request failed: status 400 for a fault of the request, 500 for one of the server,
 * which goes on as before. */
static void refuse(Serving *v, Model *m, Job *j) {
  TgStatus st = tg_error(m->s.ctx);
  bool theirs = st == TG_ERR_VALUE || st == TG_ERR_LIMIT;
  char why[400];
  snprintf(why, sizeof why, "%s", tg_errmsg(m->s.ctx));
  tg_clear_error(m->s.ctx);
  pthread_mutex_lock(&v->http.lock);
  v->http.counts.failed++;
  v->http.active--;
  pthread_mutex_unlock(&v->http.lock);
  job_fail(j, theirs ? 400 : 500, theirs ? "invalid_request_error" : "server_error", why);
}

static void give_up(Serving *v, Slot *s) {
  Job *j = s->job;
  Model *m = s->m;
  slot_clear(s);
  refuse(v, m, j);
}

/* Returns whether the model can do what this route asks for; otherwise sets an error. */
static bool is_done_here(const Model *m, Route route) {
  TgLlmAbout a = tg_llm_about(m->s.m);
  if (a.ranks == (route == ROUTE_RANK) && (!a.encoder || route == ROUTE_EMBED || route == ROUTE_RANK))
    return true;
  tg_set_error(m->s.ctx, TG_ERR_VALUE,
               a.ranks               ? "the model is a reranker: ask /v1/rerank"
               : route == ROUTE_RANK ? "the model is no reranker"
                                     : "the model is an encoder and generates nothing: ask /v1/embeddings");
  return false;
}

static void take(Serving *v, Job *j) {
  Model *m = model_of(v, &j->ask);
  int64_t n = 0;
  Gallery *g = NULL;
  bool ranks = j->route == ROUTE_RANK;
  bool done = is_done_here(m, j->route) && gallery_open(m, &j->ask, &g);
  int32_t *ids = !done || ranks           ? NULL
                 : j->route == ROUTE_CHAT ? chat_ids(m, &j->ask, g, &n)
                                          : ids_asked(m, &j->ask, 0, &n);
  if (!done || (!ids && !ranks)) {
    gallery_free(g);
    refuse(v, m, j);
    return;
  }
  Slot *s = &m->slot[slot_for(v, m, ids, n)];
  s->job = j;
  s->m = m;
  s->gallery = g;
  s->ids = ids;
  s->n = n;
  bool ok = answer_begin(&s->answer, j, m->name, ++v->made);
  s->answer.prompt = n;
  if (ok && (j->route == ROUTE_EMBED || ranks)) return;
  s->sampler = ok ? sampler_for(m, &j->ask) : NULL;
  if (!s->sampler || !grammar_for(m, s) || !choice_begin(m, s))
    give_up(v, s);
  else if (j->ask.stream)
    job_begin(j, 200);
}

static void counted(Serving *v, const Slot *s) {
  pthread_mutex_lock(&v->http.lock);
  Counts *c = &v->http.counts;
  c->prompt_tokens += s->answer.prompt;
  c->cached_tokens += s->answer.cached;
  c->tokens += s->answer.made;
  v->http.active--;
  pthread_mutex_unlock(&v->http.lock);
}

/* Makes the embedding of the next text. Returns false on an error. */
static bool embed(Model *m, Slot *s) {
  int64_t n = s->n, width = tg_llm_about(m->s.m).width;
  int32_t *ids = s->answer.choice ? ids_asked(m, &s->job->ask, (size_t)s->answer.choice, &n) : s->ids;
  float *v = malloc((size_t)width * sizeof *v);
  if (ids && !v) tg_set_error(m->s.ctx, TG_ERR_NOMEM, "out of memory");
  bool ok = ids && v && !tg_llm_use(m->s.m, s - m->slot) && !tg_llm_embed(m->s.m, ids, n, v);
  if (ok && s->answer.choice) s->answer.prompt += n;
  if (ok) answer_vector(&s->answer, v, width);
  if (ids != s->ids) free(ids);
  free(v);
  return ok;
}

/* Ranks the next document. Returns false on an error. */
static bool rank(Model *m, Slot *s) {
  const json_t *query = s->job->ask.query;
  const json_t *document = json_array_get(s->job->ask.prompt, (size_t)s->answer.choice);
  const char *q = json_string_value(query), *d = json_string_value(document);
  size_t nq = json_string_length(query), nd = json_string_length(document);
  float score;
  int64_t tokens;
  if (llm_is_too_long(&m->s, q, nq, false) || llm_is_too_long(&m->s, d, nd, false)) return false;
  if (tg_llm_use(m->s.m, s - m->slot) || tg_llm_rank(m->s.m, q, nq, d, nd, &score, &tokens)) return false;
  s->answer.prompt += tokens;
  answer_score(&s->answer, (double)score);
  return true;
}

/* Does one text, or one document. */
static void text_step(Serving *v, Model *m, Slot *s) {
  if (!(s->job->route == ROUTE_RANK ? rank(m, s) : embed(m, s))) {
    give_up(v, s);
    return;
  }
  if (s->answer.choice < (int64_t)json_array_size(s->job->ask.prompt)) return;
  counted(v, s);
  answer_end(&s->answer);
  slot_clear(s);
}

/* Handles the result of a step of a reply. */
static void went_on(Serving *v, Model *m, Slot *s, LlmEnd end) {
  pthread_mutex_lock(&v->http.lock);
  v->http.counts.prompt_s += m->s.rates.prompt_s;
  v->http.counts.tokens_s += m->s.rates.tokens_s;
  v->http.counts.guessed += m->s.rates.guessed;
  v->http.counts.right += m->s.rates.right;
  pthread_mutex_unlock(&v->http.lock);
  m->s.rates = (LlmRates){.tokens = 0};
  if (end == LLM_FAILED) {
    give_up(v, s);
    return;
  }
  answer_flush(&s->answer);
  if (end == LLM_GOES_ON) return;
  llm_reply_end(s->reply);
  s->reply = NULL;
  answer_choice(&s->answer, end);
  if (s->answer.choice < choices_asked(&s->job->ask)) {
    if (!choice_next(m, s)) give_up(v, s);
    return;
  }
  counted(v, s);
  answer_end(&s->answer);
  slot_clear(s);
}

/* Computes a block of the prompt, or one token if tokens are made one by one. */
static void step(Serving *v, Model *m, Slot *s) {
  m->s.rates = (LlmRates){.tokens = 0};
  if (s->job->route == ROUTE_EMBED || s->job->route == ROUTE_RANK)
    text_step(v, m, s);
  else
    went_on(v, m, s, llm_reply_step(s->reply));
}

static void leave(Serving *v, Slot *s) {
  Job *j = s->job;
  counted(v, s);
  slot_clear(s);
  job_end(j, 499);
}

/* ---- the next tokens of several replies */
typedef struct Tokens {
  Slot *slot[MOST_SLOTS];
  LlmRates rates[MOST_SLOTS]; /* what guessing took */
  int64_t row[MOST_SLOTS], rows[MOST_SLOTS];
  int32_t sequence[MOST_SLOTS], id[MOST_SLOTS]; /* of each row */
  int64_t n, count;                             /* n: replies; count: rows */
} Tokens;

/* Adds the rows of one reply: its next token and guesses. The rows that are left in the largest step are
 * shared equally with the `after` replies that follow. If there is only one row for each reply, nothing is
 * guessed. */
static bool tokens_add(Model *m, Tokens *t, Slot *s, int64_t after) {
  int64_t share = (tg_llm_about(m->s.m).batch - t->count) / (after + 1);
  m->s.rates = (LlmRates){.tokens = 0};
  int64_t n = llm_reply_rows(s->reply, share > 1 ? share : 1, t->count + after, t->id + t->count);
  if (n < 0) return false;
  for (int64_t i = 0; i < n; i++)
    t->sequence[t->count + i] = (int32_t)(s - m->slot);
  t->rates[t->n] = m->s.rates;
  t->slot[t->n] = s;
  t->row[t->n] = t->count;
  t->rows[t->n++] = n;
  t->count += n;
  return true;
}

/* An error of the step is an error of all its replies. */
static void tokens_failed(Serving *v, Model *m, const Tokens *t) {
  char why[400];
  TgStatus status = tg_error(m->s.ctx);
  snprintf(why, sizeof why, "%s", tg_errmsg(m->s.ctx));
  for (int64_t i = 0; i < t->n; i++) {
    tg_clear_error(m->s.ctx);
    tg_set_error(m->s.ctx, status, why);
    give_up(v, t->slot[i]);
  }
}

static void tokens_step(Serving *v, Model *m, const Tokens *t) {
  double begin = cli_now();
  if (!t->n) return;
  if (tg_llm_eval_many(m->s.m, t->sequence, t->id, t->count)) {
    tokens_failed(v, m, t);
    return;
  }
  double each = (cli_now() - begin) / (double)t->count;
  for (int64_t i = 0; i < t->n; i++) {
    m->s.rates = t->rates[i];
    went_on(v, m, t->slot[i], llm_reply_computed(t->slot[i]->reply, t->row[i], each * (double)t->rows[i]));
  }
}

static void model_step(Serving *v, Model *m) {
  Tokens t = {.n = 0};
  Slot *go_on[MOST_SLOTS];
  int64_t n = 0;
  bool batch = tg_llm_about(m->s.m).batch > 0;
  for (int64_t k = 0; k < v->o->slots; k++) {
    Slot *s = &m->slot[k];
    if (s->job && job_gone(s->job)) leave(v, s);
    if (!s->job) continue;
    if (batch && s->reply && !llm_reply_reads(s->reply))
      go_on[n++] = s;
    else
      step(v, m, s);
  }
  for (int64_t i = 0; i < n; i++)
    if (!tokens_add(m, &t, go_on[i], n - 1 - i)) give_up(v, go_on[i]);
  tokens_step(v, m, &t);
}

/* ---- the loop */
static bool any_active(const Serving *v) {
  for (int i = 0; i < v->n; i++)
    for (int64_t k = 0; k < v->o->slots; k++)
      if (v->model[i].slot[k].job) return true;
  return false;
}

/* A first Ctrl-C lets the replies that are being made end; a second one does not. */
static bool goes_on(Serving *v) {
  if (!llm_interrupts()) return true;
  if (!v->told++) {
    pthread_mutex_lock(&v->http.lock);
    v->http.closing = true;
    pthread_mutex_unlock(&v->http.lock);
    if (any_active(v))
      fputs("\nclosing: replies that are being made end first; another Ctrl-C leaves at once\n", stderr);
  }
  return llm_interrupts() < 2 && any_active(v);
}

static void loop(Serving *v) {
  while (goes_on(v)) {
    for (Job *j; !v->told && (j = http_next(&v->http, has_room, v));)
      take(v, j);
    for (int i = 0; i < v->n; i++)
      model_step(v, &v->model[i]);
    if (!any_active(v)) http_wait(&v->http, 0.2);
  }
}

/* ---- models */
static void name_of(Model *m, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  size_t n = strlen(base);
  if (n > 5 && !strcmp(base + n - 5, ".gguf")) n -= 5;
  snprintf(m->name, sizeof m->name, "%.*s", (int)n, base);
}

/* What reads pictures for model i: the --mmproj after its file. If there is one model, it may stand anywhere. */
static const char *mmproj_of(const ServeOptions *o, int models, int i) {
  for (int k = 0; k < o->mmproj.n; k++)
    if (models == 1 || o->mmproj.after[k] == i + 1) return o->mmproj.at[k];
  return NULL;
}

/* Returns CLI_USAGE, with the reason printed, if a --mmproj belongs to no model, or two belong to one. */
static int mmproj_refuse(const ServeOptions *o, int models) {
  const CliTexts *t = &o->mmproj;
  for (int k = 0; k < t->n; k++) {
    if (models > 1 && !t->after[k])
      return cli_refuse(CLI_USAGE, "serve",
                        "--mmproj %s stands before all models: it belongs after its model's file", t->at[k]);
    if (k && (models == 1 || t->after[k] == t->after[k - 1]))
      return cli_refuse(CLI_USAGE, "serve", "--mmproj %s and %s are of one model", t->at[k - 1], t->at[k]);
  }
  return CLI_OK;
}

static bool model_open(Serving *v, const char *path, const char *mmproj) {
  Model *m = &v->model[v->n];
  m->o = v->o->llm;
  m->o.mmproj = mmproj;
  double begin = cli_now();
  int64_t batch = !v->o->batch       ? -1
                  : v->o->batch == 1 ? 0
                                     : v->o->batch; /* 1: no program that computes several replies' tokens */
  if (!llm_session_open(&m->s, path, &m->o, v->o->slots, batch)) return false;
  m->s.exact = !v->o->reuse;
  v->n++;
  name_of(m, path);
  for (int i = 0; i < v->n - 1; i++)
    if (!strcmp(v->model[i].name, m->name))
      return cli_refuse(0, "serve", "two models are called %s", m->name), false;
  if (!m->s.tokenizer) return cli_refuse(0, "serve", "%s has no vocabulary", path), false;
  const char *text = tg_llm_about(m->s.m).chat_template;
  if (text && !(m->template_ = tg_template_new(m->s.ctx, text, strlen(text))))
    return cli_fail(m->s.ctx, "serve"), false;
  if (!llm_sight_template(&m->s, m->template_)) return cli_fail(m->s.ctx, "serve"), false;
  for (int64_t k = 0; k < v->o->slots; k++)
    if (!llm_session_draft(&m->s, k, &m->draft[k])) return cli_fail(m->s.ctx, "serve"), false;
  m->slot = calloc((size_t)v->o->slots, sizeof *m->slot);
  json_array_append_new(v->http.names,
                        json_pack("{s:s, s:s, s:i, s:s, s:b, s:b}", "id", m->name, "object", "model",
                                  "created", 0, "owned_by", "local", "chat_template", m->template_ != NULL,
                                  "pictures", m->template_ && m->s.sight.vision));
  llm_session_say(&m->s, path, cli_now() - begin);
  return m->slot != NULL;
}

static void model_close(Serving *v, Model *m) {
  for (int64_t k = 0; m->slot && k < v->o->slots; k++) {
    Job *j = m->slot[k].job;
    if (!j) continue;
    slot_clear(&m->slot[k]);
    job_end(j, 503);
  }
  free(m->slot);
  for (int64_t k = 0; k < v->o->slots; k++)
    tg_draft_free(m->draft[k]);
  tg_template_free(m->template_);
  llm_session_close(&m->s);
}

static bool is_local(const char *host) { return !strncmp(host, "127.", 4); }

static int run_serve(const void *options, char **argument, int n) {
  const ServeOptions *o = options;
  Serving v = {.o = o, .http = {.o = o, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER}};
  if (o->key && !*o->key)
    return cli_refuse(CLI_USAGE, "serve", "--key is empty: leave it out, or say what who asks must send");
  if (!is_local(o->host) && !o->key)
    return cli_refuse(CLI_USAGE, "serve", "--host %s lets other machines ask: it wants --key TEXT", o->host);
  if (o->llm.draft && o->batch == 1)
    return cli_refuse(CLI_USAGE, "serve", "--draft wants steps of several tokens, and --batch is 1");
  LlmChoices choices = o->llm;
  choices.mmproj = o->mmproj.n ? o->mmproj.at[0] : NULL;
  int wrong = llm_choices_refuse(&choices);
  if (!wrong) wrong = mmproj_refuse(o, n);
  if (wrong) return wrong;
  v.http.names = json_array();
  bool ok = v.http.names != NULL;
  for (int i = 0; ok && i < n; i++)
    ok = model_open(&v, argument[i], mmproj_of(o, n, i));
  int port = 0;
  json_object_seed(0);
  signal(SIGPIPE, SIG_IGN);
  llm_catch_interrupt(SIGINT);
  llm_catch_interrupt(SIGTERM);
  ok = ok && http_begin(&v.http, &port);
  if (ok) {
    fprintf(stderr, "http://%s:%d: a page to chat, and the API at /v1; Ctrl-C ends it\n", o->host, port);
    loop(&v);
  }
  for (int i = 0; i < v.n; i++)
    model_close(&v, &v.model[i]);
  if (ok) http_end(&v.http);
  json_decref(v.http.names);
  return ok ? CLI_OK : CLI_FAILED;
}

static const ServeOptions defaults = {
    .llm = LLM_USUAL, .host = "127.0.0.1", .port = 8080, .slots = 4, .queue = 64};

static const CliOption options[] = {
    CLI_TEXT_OF(ServeOptions, host, "host", "ADDRESS",
                "where to listen (127.0.0.1); another one wants a key"),
    CLI_WHOLE_OF(ServeOptions, port, "port", 0, 65535, "0: any that is free (8080)"),
    CLI_TEXT_OF(ServeOptions, key, "key", "TEXT", "who asks must send it: Authorization: Bearer TEXT"),
    CLI_WHOLE_OF(ServeOptions, slots, "slots", 1, MOST_SLOTS,
                 "replies of a model that are made at the same time (4)"),
    CLI_WHOLE_OF(ServeOptions, batch, "batch", 1, MOST_SLOTS,
                 "tokens of so many replies are computed at once (16)"),
    CLI_FLAG_OF(ServeOptions, reuse, "reuse",
                "take all that the cache has of a prompt: sooner, but texts may differ in rare cases"),
    CLI_WHOLE_OF(ServeOptions, queue, "queue", 1, 100000, "requests that may wait (64)"),
    CLI_TEXTS_OF(ServeOptions, mmproj, "mmproj", "FILE",
                 "the gguf file of what reads pictures for the model whose file stands before it"),
    LLM_POOLING_OF(ServeOptions, llm.pooling),
    LLM_OPTIONS_OF(ServeOptions, llm)};

const CliCommand command_serve = {
    .name = "serve",
    .summary = "answer requests for language models by OpenAI's HTTP API",
    .arguments = "FILE.gguf..",
    .models = -1,
    .least = 1,
    .most = MOST_MODELS,
    CLI_TAKES(ServeOptions, options),
    .defaults = &defaults,
    .run = run_serve,
    .more =
        "GET / is a page to chat, /health, /metrics (Prometheus) and /v1/models say what there is; POST "
        "/v1/chat/completions and /v1/completions reply, in a stream where it is asked for; /v1/embeddings "
        "turns texts into vectors, and /v1/rerank orders documents by a reranker. What a request leaves out "
        "is as the options say, so the same request gives the same text, whatever else is asked. A "
        "model is "
        "called as its file; where there is one, any name will do. Encryption is left to a proxy."};
#else
static int run_serve(const void *options, char **argument, int n) {
  (void)options, (void)argument, (void)n;
  return cli_refuse(CLI_FAILED, "serve", "this build has no server (libmicrohttpd and jansson)");
}

const CliCommand command_serve = {.name = "serve",
                                  .summary = "answer requests for language models by OpenAI's HTTP API",
                                  .arguments = "FILE.gguf..",
                                  .models = -1,
                                  .least = 1,
                                  .most = 8,
                                  .run = run_serve,
                                  .more = "This build has no server."};
#endif
