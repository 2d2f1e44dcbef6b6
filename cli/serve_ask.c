/* serve_ask.c: reads a request of OpenAI's API into an Ask. In: JSON that was not checked before. Out:
 * numbers within their bounds, or a sentence about the first that is not. The options of `tg serve` are the
 * defaults for what a request leaves out. */
#ifdef TG_HAVE_MICROHTTPD
#include "serve.h"
#include "sight.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A request that is being read, and what is wrong with it. */
typedef struct Reader {
  Ask *a;
  json_t *known; /* the names of the members that were read */
  char *why, *param;
  bool ok;
} Reader;

static void wrong(Reader *r, const char *param, const char *what) {
  if (!r->ok) return;
  r->ok = false;
  snprintf(r->param, 40, "%s", param);
  snprintf(r->why, 200, "'%s' %s", param, what);
}

/* Returns the member, or NULL if it is missing or null. */
static json_t *member(Reader *r, const char *name) {
  json_object_set_new(r->known, name, json_true());
  json_t *v = json_object_get(r->a->json, name);
  return json_is_null(v) ? NULL : v;
}

static void real(Reader *r, const char *name, double lo, double hi, double *out) {
  json_t *v = member(r, name);
  char what[80];
  if (!v) return;
  double d = json_number_value(v);
  snprintf(what, sizeof what, "is a number from %g to %g", lo, hi);
  if (!json_is_number(v) || !(d >= lo && d <= hi))
    wrong(r, name, what);
  else
    *out = d;
}

static void whole(Reader *r, const char *name, int64_t lo, int64_t hi, int64_t *out) {
  json_t *v = member(r, name);
  char what[100];
  if (!v) return;
  int64_t i = json_integer_value(v);
  snprintf(what, sizeof what, "is a whole number from %lld to %lld", (long long)lo, (long long)hi);
  if (!json_is_integer(v) || i < lo || i > hi)
    wrong(r, name, what);
  else
    *out = i;
}

static void flag(Reader *r, const char *name, bool *out) {
  json_t *v = member(r, name);
  if (v && !json_is_boolean(v)) wrong(r, name, "is true or false");
  if (v) *out = json_is_true(v);
}

/* ---- lists */
static void stop_put(Reader *r, json_t *v) {
  CliTexts *s = &r->a->stop;
  const char *text = json_string_value(v);
  if (!text || strlen(text) != json_string_length(v))
    wrong(r, "stop", "is a text, or a list of texts");
  else if (s->n == CLI_MANY)
    wrong(r, "stop", "has too many texts");
  else if (*text)
    s->at[s->n++] = text;
}

static void stops(Reader *r) {
  json_t *v = member(r, "stop"), *each;
  size_t i;
  if (v) r->a->stop.n = 0;
  if (v && !json_is_array(v)) stop_put(r, v);
  json_array_foreach(v, i, each) stop_put(r, each);
}

/* Reads {"50256": -100}: a number that is added to the logit of a token. */
static void biases(Reader *r) {
  json_t *v = member(r, "logit_bias"), *each;
  const char *key;
  Ask *a = r->a;
  if (!v) return;
  if (!json_is_object(v)) {
    wrong(r, "logit_bias", "is an object of token ids and numbers");
    return;
  }
  size_t n = json_object_size(v);
  a->bias_ids = calloc(n + 1, sizeof *a->bias_ids);
  a->bias = calloc(n + 1, sizeof *a->bias);
  if (!a->bias_ids || !a->bias) {
    wrong(r, "logit_bias", "is more than there is memory for");
    return;
  }
  json_object_foreach(v, key, each) {
    int64_t id;
    double b = json_number_value(each);
    if (!cli_whole(key, 0, INT32_MAX, &id) || !json_is_number(each) || !(fabs(b) <= 100)) {
      wrong(r, "logit_bias", "has token ids, each with a number from -100 to 100");
      return;
    }
    a->bias_ids[a->nbias] = (int32_t)id;
    a->bias[a->nbias++] = (float)b;
  }
}

/* ---- messages */
/* Returns the URI of a part that is a picture; NULL: it cannot be read, and this was reported. */
static json_t *picture_of(Reader *r, json_t *part) {
  json_t *url = json_object_get(part, "image_url");
  if (json_is_object(url)) url = json_object_get(url, "url");
  const char *text = json_string_value(url);
  if (text && !strncmp(text, "http", 4))
    wrong(r, "messages", "has a picture at an address: nothing is fetched here, send a data: URI");
  else if (text && (strncmp(text, "data:image/", 11) || !strstr(text, ";base64,")))
    wrong(r, "messages", "has a picture that is no data: URI (data:image/png;base64,.. or image/jpeg)");
  else if (!text)
    wrong(
        r, "messages",
        "has a part of a content that is neither a text nor an image_url: sounds and the like are not read");
  return r->ok ? url : NULL;
}

/* Rewrites a content that has pictures as the list of texts and pictures that templates take, and appends the
 * pictures to a list. */
static void content_list(Reader *r, json_t *message, json_t *parts) {
  json_t *part, *list = json_array();
  size_t i;
  if (!r->a->pictures) r->a->pictures = json_array();
  json_array_foreach(parts, i, part) {
    json_t *text = json_object_get(part, "text");
    json_t *url = json_is_string(text) ? NULL : picture_of(r, part);
    if (url) json_array_append(r->a->pictures, url);
    json_array_append_new(list, url ? json_pack("{s:s}", "type", "image")
                                    : json_pack("{s:s, s:O?}", "type", "text", "text", text));
  }
  if (json_array_size(r->a->pictures) > LLM_PICTURES) wrong(r, "messages", "have more than 16 pictures");
  json_object_set_new(message, "content", list);
}

/* Joins a content of texts into one text, because templates take texts. One allocation serves any number of
 * them. */
static void content_join(Reader *r, json_t *message, json_t *parts) {
  json_t *part;
  size_t i, n = 0;
  json_array_foreach(parts, i, part) {
    json_t *text = json_object_get(part, "text");
    if (!json_is_string(text)) {
      content_list(r, message, parts);
      return;
    }
    n += json_string_length(text);
  }

  char *all = malloc(n + 1), *at = all;
  json_array_foreach(parts, i, part) {
    json_t *text = json_object_get(part, "text");
    if (all) memcpy(at, json_string_value(text), json_string_length(text)), at += json_string_length(text);
  }
  json_t *joined = all ? json_stringn(all, n) : NULL;
  free(all);
  if (!joined) wrong(r, "messages", "has a content that is more than there is memory for");
  json_object_set_new(message, "content", joined ? joined : json_null());
}

static void messages(Reader *r) {
  json_t *v = member(r, "messages"), *m;
  size_t i;
  if (!json_is_array(v) || !json_array_size(v)) {
    wrong(r, "messages", "is a list of messages, each with a role and a content");
    return;
  }
  json_array_foreach(v, i, m) {
    json_t *content = json_object_get(m, "content");
    bool calls = json_is_array(json_object_get(m, "tool_calls"));
    if (!json_is_string(json_object_get(m, "role")) ||
        !(json_is_string(content) || json_is_array(content) || calls)) {
      wrong(r, "messages", "is a list of messages, each with a role and a content");
      return;
    }
    if (json_is_array(content)) content_join(r, m, content);
  }
  r->a->messages = v;
}

/* Reads one text or a list of texts. Each is a string or a list of token ids. */
static void texts(Reader *r, const char *name) {
  json_t *v = member(r, name), *list, *each, *id;
  size_t i, k;
  bool one = json_is_string(v) || json_is_integer(json_array_get(v, 0)),
       ok = json_is_string(v) || json_array_size(v);
  list = one ? json_pack("[O]", v) : json_incref(v);
  json_array_foreach(list, i, each) {
    ok = ok && (json_is_string(each) || json_array_size(each));
    json_array_foreach(each, k, id) ok = ok && json_is_integer(id);
  }
  if (!ok || json_array_size(list) > MOST_INPUTS)
    wrong(r, name, "is a text, a list of token ids, or a list of such");
  if (list) json_object_set_new(r->a->json, name, list);
  r->a->prompt = list;
}

static void inputs(Reader *r) {
  const char *form = json_string_value(member(r, "encoding_format"));
  texts(r, "input");
  if (form && strcmp(form, "float") && strcmp(form, "base64"))
    wrong(r, "encoding_format", "is float or base64");
  r->a->base64 = form && !strcmp(form, "base64");
}

/* Reads a query and the documents to rank for it. A document is a string, or an object with a text. */
static void documents(Reader *r) {
  json_t *list = member(r, "documents"), *each;
  size_t i;
  r->a->query = member(r, "query");
  r->a->best = INT64_MAX;
  if (!json_is_string(r->a->query)) wrong(r, "query", "is a text");
  bool ok = json_array_size(list) && json_array_size(list) <= MOST_INPUTS;
  json_array_foreach(list, i, each) {
    json_t *text = json_object_get(each, "text");
    if (text) json_array_set(list, i, text);
    ok = ok && json_is_string(text ? text : each);
  }
  if (!ok) wrong(r, "documents", "is a list of texts, 2048 at most");
  whole(r, "top_n", 1, INT64_MAX, &r->a->best);
  r->a->prompt = list;
}

/* ---- tools */
/* The model chooses whether to call a tool and which: a template can only leave the tools out. */
static void tools(Reader *r) {
  json_t *v = member(r, "tools"), *choice = member(r, "tool_choice"), *each;
  const char *chosen = json_string_value(choice);
  size_t i;
  if (v && !json_is_array(v)) wrong(r, "tools", "is a list");
  json_array_foreach(v, i, each) {
    if (!json_is_string(json_object_get(json_object_get(each, "function"), "name")))
      wrong(r, "tools",
            "is a list of functions, each {\"type\": \"function\", \"function\": {\"name\": ..}}");
  }
  if (choice && (!chosen || (strcmp(chosen, "none") && strcmp(chosen, "auto"))))
    wrong(r, "tool_choice", "is \"none\" or \"auto\": no other is done here");
  r->a->tools = chosen && !strcmp(chosen, "none") ? NULL : v;
}

/* ---- the whole request */
static void logprobs(Reader *r) {
  bool wanted = false;
  int64_t most = 0;
  r->a->logprobs = -1;
  if (r->a->route == ROUTE_TEXT) {
    whole(r, "logprobs", 0, MOST_LOGPROBS, &r->a->logprobs);
    return;
  }
  flag(r, "logprobs", &wanted);
  whole(r, "top_logprobs", 0, MOST_LOGPROBS, &most);
  if (wanted) r->a->logprobs = most;
  if (most && !wanted) wrong(r, "top_logprobs", "wants logprobs too");
}

/* Reads the form of a reply: json_object allows any object, json_schema one of this schema. `grammar` is an
 * extension of OpenAI's API. */
static void format(Reader *r) {
  json_t *v = member(r, "response_format"), *grammar = member(r, "grammar");
  const char *type = json_string_value(json_object_get(v, "type"));
  if (grammar && !json_is_string(grammar)) wrong(r, "grammar", "is a text");
  r->a->grammar = json_string_value(grammar);
  if (!v || (type && !strcmp(type, "text"))) return;
  if (type && !strcmp(type, "json_schema"))
    r->a->schema = json_object_get(json_object_get(v, "json_schema"), "schema");
  else if (type && !strcmp(type, "json_object"))
    json_object_set_new(v, "any", r->a->schema = json_pack("{s:s}", "type", "object"));
  if (!r->a->schema)
    wrong(r, "response_format", "has a type of text, json_object, or json_schema with its schema");
  if (r->a->schema && grammar) wrong(r, "grammar", "and a response_format cannot both be");
}

/* Members that change no reply: with any value (NULL), or only with this value. */
static const struct {
  const char *name, *value;
} idle[] = {{"user", NULL},
            {"safety_identifier", NULL},
            {"prompt_cache_key", NULL},
            {"prompt_cache_retention", NULL},
            {"store", NULL},
            {"metadata", NULL},
            {"service_tier", NULL},
            {"prediction", NULL},
            {"cache_prompt", NULL}, /* sent by clients of llama.cpp and ollama */
            {"keep_alive", NULL},
            {"echo", "false"},
            {"return_documents", "false"},
            {"best_of", "1"},
            {"suffix", "\"\""},
            {"parallel_tool_calls", "true"},
            {"modalities", "[\"text\"]"}};

static bool is_idle(const char *name, const json_t *v) {
  if (json_is_null(v)) return true;
  for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
    if (strcmp(idle[i].name, name)) continue;
    if (!idle[i].value) return true;
    json_t *only = json_loads(idle[i].value, JSON_DECODE_ANY, NULL);
    bool is = json_equal(only, v);
    json_decref(only);
    return is;
  }
  return false;
}

/* Refuses members that were not read, because they might change a reply. */
static void refuse_others(Reader *r) {
  const char *name;
  json_t *v;
  json_object_foreach(r->a->json, name, v) {
    if (json_object_get(r->known, name) || is_idle(name, v)) continue;
    char shown[40];
    snprintf(shown, sizeof shown, "%s", name);
    wrong(r, shown, "is not taken here");
  }
}

static void stream(Reader *r) {
  json_t *more = member(r, "stream_options"), *usage = json_object_get(more, "include_usage");
  flag(r, "stream", &r->a->stream);
  if (more && (!json_is_object(more) || (usage && !json_is_null(usage) && !json_is_boolean(usage))))
    wrong(r, "stream_options", "is an object: include_usage, true or false");
  r->a->usage = json_is_true(usage);
}

static void options(Reader *r) {
  Ask *a = r->a;
  stream(r);
  whole(r, "max_tokens", 1, INT32_MAX, &a->tokens);
  whole(r, "max_completion_tokens", 1, INT32_MAX, &a->tokens);
  whole(r, "n", 1, MOST_CHOICES, &a->n);
  whole(r, "seed", INT64_MIN, INT64_MAX, &a->seed);
  whole(r, "top_k", 0, INT32_MAX, &a->top_k);
  real(r, "temperature", 0, 100, &a->temperature);
  real(r, "top_p", 0, 1, &a->top_p);
  real(r, "min_p", 0, 1, &a->min_p);
  real(r, "repeat_penalty", 0.1, 10, &a->repeat);
  real(r, "presence_penalty", -2, 2, &a->presence);
  real(r, "frequency_penalty", -2, 2, &a->frequency);
}

/* Reads the members of the route, and checks those that depend on each other. */
static void all(Reader *r) {
  Ask *a = r->a;
  json_t *model = member(r, "model");
  if (model && !json_is_string(model)) wrong(r, "model", "is the name of a model");
  a->model = json_string_value(model);
  if (a->route == ROUTE_CHAT)
    messages(r), tools(r);
  else if (a->route == ROUTE_TEXT)
    texts(r, "prompt");
  else if (a->route == ROUTE_EMBED)
    inputs(r);
  else
    documents(r);
  if (a->route == ROUTE_CHAT || a->route == ROUTE_TEXT)
    options(r), logprobs(r), stops(r), biases(r), format(r);
  if (a->route == ROUTE_TEXT && (int64_t)json_array_size(a->prompt) * a->n > MOST_INPUTS)
    wrong(r, "n", "times the prompts is more than 2048");
  refuse_others(r);
}

bool ask_read(Ask *a, Route route, const char *body, size_t n, const LlmChoices *usual, char why[200],
              char param[40]) {
  json_error_t e;
  *a = (Ask){.route = route,
             .json = json_loadb(body ? body : "", n, 0, &e),
             .tokens = usual->tokens,
             .n = 1,
             .seed = usual->seed,
             .top_k = usual->top_k,
             .temperature = usual->temperature,
             .top_p = usual->top_p,
             .min_p = usual->min_p,
             .repeat = usual->repeat,
             .stop = usual->stop};
  param[0] = 0;
  if (!json_is_object(a->json)) {
    snprintf(why, 200, "the body is no JSON object%s%.120s", a->json ? "" : ": ", a->json ? "" : e.text);
    return false;
  }
  Reader r = {a, json_object(), why, param, true};
  all(&r);
  json_decref(r.known);
  return r.ok;
}

void ask_free(Ask *a) {
  json_decref(a->json), json_decref(a->pictures);
  free(a->bias_ids);
  free(a->bias);
  *a = (Ask){.json = NULL};
}
#endif
