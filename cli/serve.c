/* serve.c: `tg serve`: language models behind OpenAI's HTTP API. In: gguf files, jobs of serve_http.c. Out:
 * replies. One thread works on all replies: a block of a prompt of each, in turn, then the next tokens of
 * all that have read theirs, several at once. Each has a sequence of its own. What a reply is made of never
 * depends on the others, so the same request gives the same text whatever else is asked. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#ifdef TG_HAVE_MICROHTTPD
#include "serve.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_MODELS = 8,
  MOST_SLOTS = 64,
  WORTH_COPYING = 32 /* tokens of a prefix that another sequence has */
};

typedef struct Model Model;

/* A sequence of a model, and the reply that is made in it; job NULL: it is free. */
typedef struct Slot {
  Job *job;
  Model *m;
  LlmReply *reply;
  TgSampler *sampler;
  TgGrammar *grammar;
  int32_t *ids;
  int64_t n;
  Answer answer;
} Slot;

struct Model {
  LlmSession s;
  TgTemplate *template_;
  char name[128];
  Slot *slot;
};

typedef struct Serving {
  Server http;
  const ServeOptions *o;
  Model model[MOST_MODELS];
  int n;
  int64_t made; /* jobs so far: their ids */
  int told;     /* interrupts that were spoken of */
} Serving;

/* ---- a prompt */
/* A token as the template writes it: its bytes have no end of their own. */
static json_t *token_text(const Model *m, TgTokenRole role) {
  size_t n = 0;
  const char *text = tg_token_text(m->s.tokenizer, tg_token_special(m->s.tokenizer, role), &n);
  json_t *v = json_stringn(text ? text : "", n);
  return v ? v : json_string("");
}

/* What the template makes of the messages; its own until the next call. */
static const char *chat_prompt(Model *m, const Ask *a, size_t *n) {
  json_t *all = json_pack("{s:O, s:b, s:o, s:o}", "messages", a->messages, "add_generation_prompt", 1,
                          "bos_token", token_text(m, TG_TOKEN_BOS), "eos_token", token_text(m, TG_TOKEN_EOS));
  if (all && a->tools) json_object_set(all, "tools", a->tools);
  char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
  const char *r = text ? tg_template_render(m->template_, text, n) : NULL;
  free(text);
  json_decref(all);
  return r;
}

/* The tokens of what is asked (of prompt or input `at`), to be freed; NULL: an error in the context. */
static int32_t *ids_asked(Model *m, const Ask *a, size_t at, int64_t *count) {
  size_t n = 0;
  if (a->route == ROUTE_CHAT) {
    if (!m->template_) {
      tg_set_error(m->s.ctx, TG_ERR_VALUE, "the model's file has no chat template: ask /v1/completions");
      return NULL;
    }
    const char *text = chat_prompt(m, a, &n);
    return text ? llm_prompt_ids(&m->s, text, n, true, count) : NULL;
  }
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

/* ---- where */
static Model *model_of(Serving *v, const Ask *a) {
  if (v->n == 1 || !a->model) return &v->model[0];
  for (int i = 0; i < v->n; i++)
    if (!strcmp(v->model[i].name, a->model)) return &v->model[i];
  return &v->model[0]; /* serve_http.c has looked at the name */
}

static bool has_room(const Job *j, void *user) {
  Serving *v = user;
  Model *m = model_of(v, &j->ask);
  for (int64_t i = 0; i < v->o->slots; i++)
    if (!m->slot[i].job) return true;
  return false;
}

static int64_t in_common(Model *m, int64_t slot, const int32_t *ids, int64_t count) {
  int64_t n = 0, same = 0;
  tg_llm_use(m->s.m, slot);
  const int32_t *has = tg_llm_ids(m->s.m, &n);
  while (same < n && same < count && has[same] == ids[same])
    same++;
  return m->s.exact && same > tg_llm_settled(m->s.m) ? tg_llm_settled(m->s.m) : same;
}

/* The free slot whose cache has most of the prompt. A longer beginning that another has is copied. */
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

/* The next of the choices that are asked for; each of a prompt draws by a seed of its own. */
static bool choice_begin(Model *m, Slot *s) {
  const Ask *a = &s->job->ask;
  int64_t of_prompt = s->answer.choice % a->n;
  LlmAsk ask = {.ids = s->ids,
                .n = (size_t)s->n,
                .sequence = s - m->slot,
                .tokens = a->tokens,
                .stop = &a->stop,
                .sampler = s->sampler,
                .grammar = s->grammar ? s->grammar : m->s.grammar,
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

/* The choice after one that has ended: of the same prompt, or the first of the next. */
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

/* What the request says of the form of a reply; false: an error. */
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
  free(s->ids);
  *s = (Slot){.job = NULL};
}

/* A request that cannot be done says why; what failed here says so too, and both leave the server as it was.
 * */
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

/* Whether the model does what is asked; else an error in the context. */
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
  bool done = is_done_here(m, j->route), ranks = j->route == ROUTE_RANK;
  int32_t *ids = done && !ranks ? ids_asked(m, &j->ask, 0, &n) : NULL;
  if (!done || (!ids && !ranks)) {
    refuse(v, m, j);
    return;
  }
  Slot *s = &m->slot[slot_for(v, m, ids, n)];
  s->job = j;
  s->m = m;
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

/* The next of the texts whose embeddings are asked for. false: an error. */
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

/* The next of the documents that are ranked. false: an error. */
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

/* One text, or one document. */
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

/* What a step of a reply has come to. */
static void went_on(Serving *v, Model *m, Slot *s, LlmEnd end) {
  pthread_mutex_lock(&v->http.lock);
  v->http.counts.prompt_s += m->s.rates.prompt_s;
  v->http.counts.tokens_s += m->s.rates.tokens_s;
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

/* A block of the prompt, or a token where they are made one by one. */
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
  int32_t sequence[MOST_SLOTS], id[MOST_SLOTS];
  int64_t n;
} Tokens;

static void tokens_add(const Model *m, Tokens *t, Slot *s) {
  t->slot[t->n] = s;
  t->sequence[t->n] = (int32_t)(s - m->slot);
  t->id[t->n++] = llm_reply_next(s->reply);
}

/* What fails here fails for all of them. */
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
  if (tg_llm_eval_many(m->s.m, t->sequence, t->id, t->n)) {
    tokens_failed(v, m, t);
    return;
  }
  double each = (cli_now() - begin) / (double)t->n;
  for (int64_t i = 0; i < t->n; i++) {
    m->s.rates = (LlmRates){.tokens = 0};
    went_on(v, m, t->slot[i], llm_reply_computed(t->slot[i]->reply, each));
  }
}

static void model_step(Serving *v, Model *m) {
  Tokens t = {.n = 0};
  bool batch = tg_llm_about(m->s.m).batch > 0;
  for (int64_t k = 0; k < v->o->slots; k++) {
    Slot *s = &m->slot[k];
    if (s->job && job_gone(s->job)) leave(v, s);
    if (!s->job) continue;
    if (batch && s->reply && llm_reply_next(s->reply) >= 0)
      tokens_add(m, &t, s);
    else
      step(v, m, s);
  }
  tokens_step(v, m, &t);
}

/* ---- the loop */
static bool any_active(const Serving *v) {
  for (int i = 0; i < v->n; i++)
    for (int64_t k = 0; k < v->o->slots; k++)
      if (v->model[i].slot[k].job) return true;
  return false;
}

/* The first Ctrl-C lets what is being made end; the second does not. */
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

static bool model_open(Serving *v, const char *path) {
  Model *m = &v->model[v->n];
  double begin = cli_now();
  int64_t batch = !v->o->batch       ? -1
                  : v->o->batch == 1 ? 0
                                     : v->o->batch; /* 1: without a program of its own */
  if (!llm_session_open(&m->s, path, &v->o->llm, v->o->slots, batch)) return false;
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
  m->slot = calloc((size_t)v->o->slots, sizeof *m->slot);
  json_array_append_new(v->http.names,
                        json_pack("{s:s, s:s, s:i, s:s, s:b}", "id", m->name, "object", "model", "created", 0,
                                  "owned_by", "local", "chat_template", m->template_ != NULL));
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
  int wrong = llm_choices_refuse(&o->llm);
  if (wrong) return wrong;
  v.http.names = json_array();
  bool ok = v.http.names != NULL;
  for (int i = 0; ok && i < n; i++)
    ok = model_open(&v, argument[i]);
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
    LLM_POOLING_OF(ServeOptions, llm.pooling),
    LLM_OPTIONS_OF(ServeOptions, llm)};

const CliCommand command_serve = {
    .name = "serve",
    .summary = "answer requests for language models by OpenAI's HTTP API",
    .arguments = "FILE.gguf..",
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
                                  .least = 1,
                                  .most = 8,
                                  .run = run_serve,
                                  .more = "This build has no server."};
#endif
