/* template.c: chat templates. In: a template's text, JSON. Out: the text that a model is given. The template
 * is not trusted: its steps, depth, memory and the length of its output are limited, and it can call nothing
 * that changes anything. */
#define _POSIX_C_SOURCE 200809L
#include "jinja.h"

enum { USUAL_STEPS = 2000000, USUAL_BYTES = 16 << 20, MOST_DEPTH = 200 };

struct TgTemplate {
  TgContext *ctx;
  Jinja parsed, rendered; /* the arenas of the nodes and of the last text */
  char *text;             /* nodes point into it */
  JNode *root;
};

static void limits_set(Jinja *j, TgContext *ctx, int64_t steps, int64_t bytes) {
  *j = (Jinja){
      .ctx = ctx, .most_depth = MOST_DEPTH, .most_steps = steps, .most_bytes = (size_t)bytes, .line = 1};
  j->arena.ctx = ctx;
  j->arena.most = 8 * (size_t)bytes;
}

/* turns \r\n and \r into \n; returns the new length */
static size_t newlines(char *s, size_t n) {
  size_t to = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\r' && i + 1 < n && s[i + 1] == '\n') continue;
    s[to++] = s[i] == '\r' ? '\n' : s[i];
  }
  return to;
}

static bool parse(TgTemplate *t, size_t n) {
  Jinja *j = &t->parsed;
  if (setjmp(j->out)) return false;
  t->root = j_parse(j, j_tokens(j, t->text, n));
  return true;
}

TgTemplate *tg_template_new(TgContext *ctx, const char *text, size_t nbytes) {
  TgTemplate *t = ctx && text ? tg_alloc(ctx, sizeof *t) : NULL;
  if (!t) return NULL;
  t->ctx = ctx;
  if (nbytes > 1 << 20) {
    llm_fail(ctx, TG_ERR_LIMIT, "template: %zu bytes", nbytes);
    tg_free(ctx, t);
    return NULL;
  }
  limits_set(&t->parsed, ctx, USUAL_STEPS, USUAL_BYTES);
  t->text = tg_alloc(ctx, nbytes + 1);
  if (t->text && nbytes) memcpy(t->text, text, nbytes);
  if (t->text && parse(t, newlines(t->text, nbytes))) return t;
  tg_template_free(t);
  return NULL;
}

void tg_template_free(TgTemplate *t) {
  if (!t) return;
  TgContext *ctx = t->ctx;
  if (t->parsed.ctx) j_free(&t->parsed);
  if (t->rendered.ctx) j_free(&t->rendered);
  tg_free(ctx, t->text);
  tg_free(ctx, t);
}

static bool render(TgTemplate *t, const char *json, size_t n, LlmText **to) {
  Jinja *j = &t->rendered;
  if (setjmp(j->out)) return false;
  JValue *names = j_from_json(j, json, n);
  if (names->kind != J_MAP) j_fail(j, TG_ERR_VALUE, "the JSON is no object");
  *to = j_buffer(j);
  j_buffer_put(j, *to, "", 0);
  j->depth = 0;
  j_render(j, t->root, names, *to);
  return true;
}

const char *tg_template_render_opt(TgTemplate *t, const char *json, size_t *nbytes,
                                   const TgTemplateOptions *given) {
  TgTemplateOptions o;
  LlmText *to = NULL;
  if (nbytes) *nbytes = 0;
  if (!t || !json) return NULL;
  if (tg_options_read(t->ctx, "template_render", "TgTemplateOptions", &o, sizeof o, given)) return NULL;
  int64_t steps = o.steps > 0 ? o.steps : USUAL_STEPS, bytes = o.bytes > 0 ? o.bytes : USUAL_BYTES;
  if (t->rendered.ctx) j_free(&t->rendered);
  limits_set(&t->rendered, t->ctx, steps, bytes > 1 << 28 ? 1 << 28 : bytes);
  t->rendered.now = o.now;
  if (!render(t, json, strlen(json), &to)) return NULL;
  if (nbytes) *nbytes = to->n;
  return to->at;
}

/* ---- messages as JSON */
static void json_text(LlmText *to, const char *s) {
  char escaped[8];
  llm_put(to, "\"", 1);
  for (; s && *s; s++)
    if ((unsigned char)*s < 0x20 || *s == '"' || *s == '\\') {
      static const char digits[] = "0123456789abcdef";
      memcpy(escaped, "\\u00", 4);
      escaped[4] = digits[(unsigned char)*s >> 4];
      escaped[5] = digits[*s & 15];
      llm_put(to, escaped, 6);
    } else
      llm_put(to, s, 1);
  llm_put(to, "\"", 1);
}

static void put(LlmText *to, const char *s) { llm_put(to, s, strlen(s)); }

/* a token as a JSON string; no such token: "" */
static void json_token(LlmText *to, const TgTokenizer *k, TgTokenRole role) {
  size_t n = 0;
  const char *s = tg_token_text(k, tg_token_special(k, role), &n);
  LlmText one = {.ctx = to->ctx};
  llm_put(&one, s ? s : "", n);
  json_text(to, one.at);
  tg_free(to->ctx, one.at);
}

const char *tg_template_chat_opt(TgTemplate *t, const TgTokenizer *tokenizer, const TgMessage *m, size_t n,
                                 size_t *nbytes, const TgTemplateOptions *o) {
  if (nbytes) *nbytes = 0;
  if (!t || (n && !m)) return NULL;
  LlmText json = {.ctx = t->ctx};
  put(&json, "{\"messages\": [");
  for (size_t i = 0; i < n; i++) {
    put(&json, i ? ", {\"role\": " : "{\"role\": ");
    json_text(&json, m[i].role);
    put(&json, ", \"content\": ");
    json_text(&json, m[i].content);
    put(&json, "}");
  }
  put(&json, "], \"add_generation_prompt\": true, \"bos_token\": ");
  json_token(&json, tokenizer, TG_TOKEN_BOS);
  put(&json, ", \"eos_token\": ");
  json_token(&json, tokenizer, TG_TOKEN_EOS);
  put(&json, "}");
  const char *text = json.bad ? NULL : tg_template_render_opt(t, json.at, nbytes, o);
  tg_free(t->ctx, json.at);
  return text;
}
