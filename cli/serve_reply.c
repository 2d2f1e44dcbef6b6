/* serve_reply.c: writes a reply as OpenAI's API has it. In: pieces of text, tokens. Out: one JSON object at
 * the end, or a stream of events: "data: {..}" and an empty line for each, at last "data: [DONE]". */
#define _POSIX_C_SOURCE 200809L
#ifdef TG_HAVE_MICROHTTPD
#include "serve.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool answer_begin(Answer *a, Job *j, const char *model, int64_t number) {
  static const char *const heads[] = {"chatcmpl", "cmpl", "emb", "rank"};
  const char *head = heads[j->route];
  *a = (Answer){.j = j, .model = model, .created = (int64_t)time(NULL)};
  snprintf(a->id, sizeof a->id, "%s-%llx-%lld", head, (unsigned long long)a->created, (long long)number);
  a->choices = json_array();
  a->logs = json_array();
  return a->choices && a->logs;
}

void answer_free(Answer *a) {
  json_decref(a->choices);
  json_decref(a->logs);
  tg_detokenizer_free(a->spelling);
  free(a->text.at), free(a->seen.at);
  *a = (Answer){.j = NULL};
}

/* ---- bytes that need not be UTF-8 */
/* Appends bytes, and a 0 byte after them. If there is no memory, they are dropped. */
static void bytes_put(Bytes *b, const char *text, size_t n) {
  if (b->n + n + 1 > b->cap) {
    size_t cap = 2 * (b->n + n) + 256;
    char *grown = realloc(b->at, cap);
    if (!grown) return;
    b->at = grown;
    b->cap = cap;
  }
  if (n) memcpy(b->at + b->n, text, n);
  b->n += n;
  b->at[b->n] = 0;
}

/* Removes the first n bytes. */
static void bytes_drop(Bytes *b, size_t n) {
  if (!n) return;
  memmove(b->at, b->at + n, b->n - n + 1);
  b->n -= n;
}

/* The beginning of a text: a character, or bytes that form none and are shown as one U+FFFD (Unicode's
 * "maximal subpart"). cut: the text ends within it. */
typedef struct Character {
  size_t n;
  bool whole, cut;
} Character;

static Character character_at(const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text;
  size_t more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;
  unsigned char lo = *p == 0xe0 ? 0xa0 : *p == 0xf0 ? 0x90 : 0x80; /* refuses a longer form than needed */
  /* Refuses surrogates and what is above U+10FFFF. */
  unsigned char hi = *p == 0xed ? 0x9f : *p == 0xf4 ? 0x8f : 0xbf;
  if (*p < 0x80) return (Character){1, .whole = true};
  if (*p < 0xc2 || *p > 0xf4) return (Character){1, .whole = false};
  for (size_t i = 1; i <= more; i++) {
    if (i == n) return (Character){i, .cut = true};
    if (p[i] < lo || p[i] > hi) return (Character){i, .whole = false};
    lo = 0x80;
    hi = 0xbf;
  }
  return (Character){more + 1, .whole = true};
}

/* Returns how many bytes come before a character that is cut off; *characters grows by the number that are
 * shown. */
static size_t complete(const char *text, size_t n, int64_t *characters) {
  size_t at = 0;
  while (at < n) {
    Character c = character_at(text + at, n - at);
    if (c.cut) break;
    at += c.n;
    ++*characters;
  }
  return at;
}

json_t *serve_text(const char *text, size_t n) {
  json_t *v = json_stringn(text ? text : "", n);
  if (v) return v;
  Bytes b = {.at = NULL};
  for (size_t at = 0; at < n;) {
    Character c = character_at(text + at, n - at);
    bytes_put(&b, c.whole ? text + at : "\xef\xbf\xbd", c.whole ? c.n : 3);
    at += c.n;
  }
  v = json_stringn(b.at ? b.at : "", b.n);
  free(b.at);
  return v;
}

/* ---- what is sent */
static void put_json(Answer *a, json_t *v, const char *before, const char *after) {
  char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
  if (text) {
    job_put(a->j, before, strlen(before));
    job_put(a->j, text, strlen(text));
    job_put(a->j, after, strlen(after));
  }
  free(text);
  json_decref(v);
}

static json_t *whole_of(const Answer *a, json_t *choices, bool chunk) {
  bool chat = a->j->route == ROUTE_CHAT;
  const char *object = !chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion";
  return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", a->id, "object", object, "created",
                   (json_int_t)a->created, "model", a->model, "system_fingerprint", "tinygrad-c", "choices",
                   choices);
}

static json_t *usage_of(const Answer *a) {
  return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", (json_int_t)a->prompt, "completion_tokens",
                   (json_int_t)a->made, "total_tokens", (json_int_t)(a->prompt + a->made),
                   "prompt_tokens_details", "cached_tokens", (json_int_t)a->cached);
}

/* ---- logprobs */
static json_t *bytes_of(const char *text, size_t n) {
  json_t *list = json_array();
  for (size_t i = 0; i < n; i++)
    json_array_append_new(list, json_integer((unsigned char)text[i]));
  return list;
}

/* The token's text, logprob and bytes. A control token adds no text, so it is shown by its name, without
 * bytes. */
static json_t *log_of(Answer *a, const TgTokenizer *t, int64_t id, double logprob) {
  size_t n = 0, length = 0;
  const char *text = tg_detokenizer_put(a->spelling, id, &n), *name = tg_token_text(t, id, &length);
  return json_pack("{s:o, s:f, s:o}", "token", n ? serve_text(text, n) : serve_text(name, length), "logprob",
                   logprob, "bytes", bytes_of(text, n));
}

/* Lists the likeliest tokens, in a pass for each, because there are few. */
static json_t *likeliest(Answer *a, const TgTokenizer *t, const float *logits, int64_t vocabulary,
                         double sum) {
  json_t *list = json_array();
  int64_t last = -1, n = a->j->ask.logprobs;
  for (int64_t k = 0; k < n && k < vocabulary; k++) {
    int64_t best = -1;
    for (int64_t i = 0; i < vocabulary; i++) {
      bool after = last < 0 || logits[i] < logits[last] || (logits[i] == logits[last] && i > last);
      if (after && (best < 0 || logits[i] > logits[best])) best = i;
    }
    if (best < 0) break;
    json_array_append_new(list, log_of(a, t, best, (double)logits[best] - sum));
    last = best;
  }
  return list;
}

/* Returns where in the text, in characters, the token begins; or where the character begins that it
 * continues. */
static int64_t offset_taken(Answer *a, int64_t id) {
  size_t n = 0, before = a->seen.n;
  int64_t offset = a->characters;
  const char *text = tg_detokenizer_put(a->spelling, id, &n);
  bytes_put(&a->seen, text, n);
  /* It did not continue the character. */
  if (before && n && character_at(a->seen.at, a->seen.n).n <= before) offset++;
  bytes_drop(&a->seen, complete(a->seen.at, a->seen.n, &a->characters));
  return offset;
}

void answer_token(Answer *a, const TgTokenizer *t, int64_t id, const float *logits, int64_t vocabulary) {
  double most = -INFINITY, sum = 0;
  a->made++;
  if (a->j->ask.logprobs < 0) return;
  for (int64_t i = 0; i < vocabulary; i++)
    most = fmax(most, (double)logits[i]);
  for (int64_t i = 0; i < vocabulary; i++)
    sum += exp((double)logits[i] - most);
  sum = most + log(sum);
  if (!a->spelling) a->spelling = tg_detokenizer_new(t, .inside = true, .bytes = true);
  json_t *v = log_of(a, t, id, (double)logits[id] - sum);
  json_object_set_new(v, "top_logprobs", likeliest(a, t, logits, vocabulary, sum));
  if (a->j->route == ROUTE_TEXT) json_object_set_new(v, "text_offset", json_integer(offset_taken(a, id)));
  json_array_append_new(a->logs, v);
}

/* Completions list the likeliest tokens as an object. If two are written alike, as bytes that are no text, it
 * has the likelier. */
static json_t *by_token(json_t *list) {
  json_t *all = json_object(), *each;
  size_t i;
  json_array_foreach(list, i, each) {
    const char *token = json_string_value(json_object_get(each, "token"));
    if (!json_object_get(all, token)) json_object_set(all, token, json_object_get(each, "logprob"));
  }
  return all;
}

/* Returns the tokens since the last call, in the form of the route; null: they are not wanted. */
static json_t *logs_taken(Answer *a) {
  if (a->j->ask.logprobs < 0) return json_null();
  json_t *logs = a->logs, *r, *each;
  size_t i;
  a->logs = json_array();
  if (a->j->route == ROUTE_CHAT) return json_pack("{s:o}", "content", logs);
  json_t *tokens = json_array(), *values = json_array(), *tops = json_array(), *offsets = json_array();
  json_array_foreach(logs, i, each) {
    json_array_append(tokens, json_object_get(each, "token"));
    json_array_append(values, json_object_get(each, "logprob"));
    json_array_append(offsets, json_object_get(each, "text_offset"));
    json_array_append_new(tops, by_token(json_object_get(each, "top_logprobs")));
  }
  r = json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values, "top_logprobs", tops,
                "text_offset", offsets);
  json_decref(logs);
  return r;
}

void answer_text(Answer *a, const char *text, size_t n) { bytes_put(&a->text, text, n); }

/* ---- calls of tools: in the form of the templates of Hermes and Qwen, <tool_call>{"name": .., "arguments":
 * {..}}</tool_call> one or more times, or in that of Llama, where the whole reply is {"name": ..,
 * "parameters": {..}} */
static json_t *call_of(const Answer *a, const char *text, size_t n, size_t number) {
  json_error_t e;
  json_t *v = json_loadb(text, n, 0, &e), *of = json_object_get(v, "arguments");
  if (!of) of = json_object_get(v, "parameters");
  const char *name = json_string_value(json_object_get(v, "name"));
  char *args = name && json_is_object(of) ? json_dumps(of, JSON_COMPACT) : NULL;
  char id[80];
  snprintf(id, sizeof id, "call_%s_%lld_%zu", a->id, (long long)a->choice, number);
  json_t *r = args ? json_pack("{s:I, s:s, s:s, s:{s:s, s:s}}", "index", (json_int_t)number, "id", id, "type",
                               "function", "function", "name", name, "arguments", args)
                   : NULL;
  free(args);
  json_decref(v);
  return r;
}

/* Returns the calls in the text, and cuts the text where the first begins. Returns NULL if there are none. */
static json_t *calls_taken(Answer *a) {
  static const char begin[] = "<tool_call>", end[] = "</tool_call>";
  if (!a->j->ask.tools || !a->text.at) return NULL;
  char *at = strstr(a->text.at, begin), *first = at;
  json_t *list = json_array(), *call;
  for (; at; at = strstr(at, begin)) {
    at += strlen(begin);
    char *stop = strstr(at, end);
    if (!stop) stop = at + strlen(at);
    if ((call = call_of(a, at, (size_t)(stop - at), json_array_size(list))))
      json_array_append_new(list, call);
    at = stop;
  }
  if (!first && a->text.at[strspn(a->text.at, " \n")] == '{' &&
      (call = call_of(a, a->text.at, a->text.n, 0))) {
    json_array_append_new(list, call);
    first = a->text.at;
  }
  if (json_array_size(list)) {
    *first = 0;
    a->text.n = (size_t)(first - a->text.at);
    return list;
  }
  json_decref(list);
  return NULL;
}

/* ---- events of a stream */
static void event(Answer *a, json_t *delta, json_t *logs, json_t *finish) {
  const char *name = a->j->route == ROUTE_CHAT ? "delta" : "text";
  json_t *choice = json_pack("{s:I, s:o, s:o, s:o}", "index", (json_int_t)a->choice, name, delta, "logprobs",
                             logs, "finish_reason", finish);
  put_json(a, whole_of(a, json_pack("[o]", choice), true), "data: ", "\n\n");
}

/* Removes the next n bytes of the text and returns them in the form of the route. */
static json_t *delta_of(Answer *a, size_t n) {
  json_t *text = serve_text(a->text.at, n);
  bytes_drop(&a->text, n);
  return a->j->route == ROUTE_CHAT ? json_pack("{s:o}", "content", text) : text;
}

static void choice_open(Answer *a) {
  if (!a->begun && a->j->ask.stream && a->j->route == ROUTE_CHAT)
    event(a, json_pack("{s:s, s:s}", "role", "assistant", "content", ""), json_null(), json_null());
  a->begun = true;
}

/* Sends what is complete. Possible calls of tools wait for the end, and the beginning of a character for its
 * rest, so that a stream has the same text as a reply that is sent whole. */
void answer_flush(Answer *a) {
  if (!a->j->ask.stream || (a->j->ask.tools && a->j->route == ROUTE_CHAT)) return;
  choice_open(a);
  int64_t characters = 0;
  size_t n = complete(a->text.at, a->text.n, &characters);
  if (n) event(a, delta_of(a, n), logs_taken(a), json_null());
}

void answer_choice(Answer *a, LlmEnd end) {
  bool chat = a->j->route == ROUTE_CHAT;
  json_t *calls = chat ? calls_taken(a) : NULL;
  json_t *finish = json_string(calls ? "tool_calls" : end == LLM_FULL ? "length" : "stop");
  if (a->j->ask.stream) {
    choice_open(a);
    if (a->text.n || json_array_size(a->logs)) event(a, delta_of(a, a->text.n), logs_taken(a), json_null());
    if (calls) event(a, json_pack("{s:o}", "tool_calls", calls), json_null(), json_null());
    event(a, chat ? json_object() : json_string(""), json_null(), finish);
  } else {
    json_t *text = calls && !a->text.n ? json_null() : serve_text(a->text.at, a->text.n), *choice;
    if (chat) {
      json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", text);
      if (calls) json_object_set_new(message, "tool_calls", calls);
      choice = json_pack("{s:I, s:o, s:o, s:o}", "index", (json_int_t)a->choice, "message", message,
                         "logprobs", logs_taken(a), "finish_reason", finish);
    } else
      choice = json_pack("{s:I, s:o, s:o, s:o}", "index", (json_int_t)a->choice, "text", text, "logprobs",
                         logs_taken(a), "finish_reason", finish);
    json_array_append_new(a->choices, choice);
  }
  bytes_drop(&a->text, a->text.n), bytes_drop(&a->seen, a->seen.n);
  a->characters = 0;
  a->choice++;
  a->begun = false;
}

/* ---- embeddings */
static json_t *base64_of(const float *v, int64_t n) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t bytes = (size_t)n * sizeof *v, k = 0;
  const unsigned char *p = (const unsigned char *)v;
  char *text = malloc(bytes / 3 * 4 + 8);
  for (size_t i = 0; text && i < bytes; i += 3) {
    size_t left = bytes - i;
    uint32_t w = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
    text[k++] = digits[w >> 18];
    text[k++] = digits[w >> 12 & 63];
    text[k++] = left > 1 ? digits[w >> 6 & 63] : '=';
    text[k++] = left > 2 ? digits[w & 63] : '=';
  }
  json_t *r = text ? json_stringn(text, k) : NULL;
  free(text);
  return r;
}

void answer_vector(Answer *a, const float *v, int64_t n) {
  json_t *list = a->j->ask.base64 ? base64_of(v, n) : json_array();
  for (int64_t i = 0; !a->j->ask.base64 && i < n; i++)
    json_array_append_new(list, json_real((double)v[i]));
  json_array_append_new(a->choices, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
                                              (json_int_t)a->choice++, "embedding", list));
}

static void vectors_end(Answer *a) {
  json_t *all =
      json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "object", "list", "model", a->model, "data", a->choices,
                "usage", "prompt_tokens", (json_int_t)a->prompt, "total_tokens", (json_int_t)a->prompt);
  a->choices = NULL;
  put_json(a, all, "", "\n");
}

/* ---- documents, the best first */
void answer_score(Answer *a, double score) {
  json_array_append_new(a->choices,
                        json_pack("{s:I, s:f}", "index", (json_int_t)a->choice++, "relevance_score", score));
}

static int by_score(const void *a, const void *b) {
  json_t *const *x = a, *const *y = b;
  double p = json_real_value(json_object_get(*x, "relevance_score"));
  double q = json_real_value(json_object_get(*y, "relevance_score"));
  json_int_t i = json_integer_value(json_object_get(*x, "index")),
             k = json_integer_value(json_object_get(*y, "index"));
  return p != q ? (p < q) - (p > q) : (i > k) - (i < k);
}

static void scores_end(Answer *a) {
  size_t n = json_array_size(a->choices), most = (size_t)a->j->ask.best;
  json_t **each = malloc((n + 1) * sizeof *each), *list = json_array();
  for (size_t i = 0; each && i < n; i++)
    each[i] = json_array_get(a->choices, i);
  if (each) qsort(each, n, sizeof *each, by_score);
  for (size_t i = 0; each && i < n && i < most; i++)
    json_array_append(list, each[i]);
  free(each);
  json_t *all =
      json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "object", "list", "model", a->model, "results", list,
                "usage", "prompt_tokens", (json_int_t)a->prompt, "total_tokens", (json_int_t)a->prompt);
  put_json(a, all, "", "\n");
}

void answer_end(Answer *a) {
  if (a->j->route == ROUTE_EMBED)
    vectors_end(a);
  else if (a->j->route == ROUTE_RANK)
    scores_end(a);
  else if (a->j->ask.stream) {
    if (a->j->ask.usage) {
      json_t *last = whole_of(a, json_array(), true);
      json_object_set_new(last, "usage", usage_of(a));
      put_json(a, last, "data: ", "\n\n");
    }
    job_put(a->j, "data: [DONE]\n\n", strlen("data: [DONE]\n\n"));
  } else {
    json_t *all = whole_of(a, a->choices, false);
    a->choices = NULL;
    json_object_set_new(all, "usage", usage_of(a));
    put_json(a, all, "", "\n");
  }
  job_end(a->j, 200);
  answer_free(a);
}
#endif
