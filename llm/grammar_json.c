/* grammar_json.c: a JSON schema -> a grammar. In: a schema, as in OpenAI's response_format. Out: GBNF with a
 * rule for each part of the schema. Numbers, strings and spaces have limits, so that a model does not
 * continue without end.
 *
 * Members come in the schema's order; members that are not required may be left out. Further members may come
 * if the schema has additionalProperties or names no members. A keyword that would restrict a value and is
 * not supported is refused by its name. */
#include "llm_private.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>

enum { MOST_DEPTH = 60, MOST_PARTS = 5000, MOST_REFS = 2000 };

typedef struct Schema {
  TgContext *ctx;
  json_t *root;
  LlmText out;
  int n; /* rules so far: s0, s1, .. */
  int depth;
  bool ok;

  struct {
    const json_t *at;
    int rule;
  } ref[MOST_REFS]; /* parts with rules, for $ref: a part may contain itself */

  int nrefs;
} Schema;

static const char basics[] =
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"
    "char ::= [^\"\\\\\\x00-\\x1f\\x7f] | \"\\\\\" ([\"\\\\bfnrt/] | \"u\" [0-9a-fA-F]{4})\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "whole ::= \"0\" | [1-9] [0-9]{0,15}\n"
    "fraction ::= (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?\n"
    "integer ::= \"-\"? whole\n"
    "number ::= integer fraction\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "value ::= object | array | string | number | boolean | null\n"
    "member ::= string ws \":\" ws value\n"
    "object ::= \"{\" ws (member ws (\",\" ws member ws)*)? \"}\"\n"
    "array ::= \"[\" ws (value ws (\",\" ws value ws)*)? \"]\"\n";

static void put(Schema *s, const char *text) { llm_put(&s->out, text, strlen(text)); }

static void put_rule(Schema *s, const char *before, int rule, const char *after) {
  char name[32];
  put(s, before);
  snprintf(name, sizeof name, rule < 0 ? "value" : "s%d", rule);
  put(s, name);
  put(s, after);
}

static int wrong(Schema *s, const char *what) {
  if (s->ok) llm_fail(s->ctx, TG_ERR_VALUE, "json schema: %s", what);
  s->ok = false;
  return -1;
}

/* Writes a literal of the grammar: the JSON text of v. */
static void put_literal(Schema *s, const json_t *v) {
  char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
  if (!text) {
    wrong(s, "a constant that cannot be written");
    return;
  }
  put(s, "\"");
  for (const char *p = text; *p; p++) {
    if (*p == '"' || *p == '\\') put(s, "\\");
    llm_put(&s->out, p, 1);
  }
  put(s, "\"");
  free(text);
}

/* ---- keywords of schemas */
static const char *const notes[] = {"title",   "description", "default",  "examples",    "format",
                                    "$schema", "$id",         "$defs",    "definitions", "$comment",
                                    "type",    "deprecated",  "readOnly", "writeOnly"};

/* Whether each keyword of the schema is in `also` or one of these notes; otherwise an error. */
static bool known(Schema *s, const json_t *schema, const char *const *also) {
  const char *key;
  json_t *v;
  char what[120];
  json_object_foreach((json_t *)(uintptr_t)schema, key, v) {
    bool is = false;
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
      is |= !strcmp(key, notes[i]);
    for (int i = 0; also[i]; i++)
      is |= !strcmp(key, also[i]);
    if (is) continue;
    snprintf(what, sizeof what, "'%.60s' is not taken here", key);
    wrong(s, what);
    return false;
  }
  return true;
}

static int64_t bound(Schema *s, const json_t *schema, const char *key, int64_t fallback) {
  const json_t *v = json_object_get(schema, key);
  json_int_t i = json_integer_value(v);
  if (!v) return fallback;
  if (!json_is_integer(v) || i < 0 || i > 10000) wrong(s, "a length is a whole number up to 10,000");
  return i;
}

static int part(Schema *s, const json_t *schema);

/* Begins a rule. A rule is written without interruption, so the rules that it names are written before it. */
static void begin_rule(Schema *s, int rule) { put_rule(s, "", rule, " ::= "); }

/* Writes {m,n}; most -1: no upper limit. */
static void put_times(Schema *s, int64_t least, int64_t most) {
  char text[64];
  if (most < 0)
    snprintf(text, sizeof text, "{%lld,}", (long long)least);
  else
    snprintf(text, sizeof text, "{%lld,%lld}", (long long)least, (long long)most);
  put(s, text);
}

/* ---- kinds of values */
static void string(Schema *s, const json_t *schema, int rule) {
  static const char *const keys[] = {"minLength", "maxLength", NULL};
  int64_t least = bound(s, schema, "minLength", 0), most = bound(s, schema, "maxLength", -1);
  if (!known(s, schema, keys)) return;
  begin_rule(s, rule);
  put(s, "\"\\\"\" char");
  put_times(s, least, most);
  put(s, " \"\\\"\"\n");
}

static void number(Schema *s, const json_t *schema, int rule, bool whole) {
  static const char *const keys[] = {"minimum", NULL};
  const json_t *least = json_object_get(schema, "minimum");
  if (!known(s, schema, keys)) return;
  if (least && json_number_value(least) != 0) wrong(s, "a 'minimum' other than 0 is not taken here");
  begin_rule(s, rule);
  put(s, least ? "whole" : "integer");
  put(s, whole ? "\n" : " fraction\n");
}

static void array(Schema *s, const json_t *schema, int rule) {
  static const char *const keys[] = {"items", "minItems", "maxItems", NULL};
  const json_t *items = json_object_get(schema, "items");
  int64_t least = bound(s, schema, "minItems", 0), most = bound(s, schema, "maxItems", -1);
  int item = items && known(s, schema, keys) ? part(s, items) : -1;
  if (!s->ok || !known(s, schema, keys)) return;
  begin_rule(s, rule);
  put(s, "\"[\" ws ");
  if (most) {
    put_rule(s, "(", item, " ws");
    put_rule(s, " (\",\" ws ", item, " ws)");
    put_times(s, least > 1 ? least - 1 : 0, most > 0 ? most - 1 : -1);
    put(s, least ? ") " : ")? ");
  }
  put(s, "\"]\"\n");
}

static bool is_required(const json_t *schema, const char *key) {
  const json_t *list = json_object_get(schema, "required");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *name = json_string_value(json_array_get(list, i));
    if (name && !strcmp(name, key)) return true;
  }
  return false;
}

/* Writes rules for the members from the k-th on: fK if no member came before, rK if one did.
 *   f1 ::= "b" ":" v r2 | f2      if b may be left out
 *   r1 ::= "," "b" ":" v r2 | r2 */
static void members(Schema *s, const json_t *schema, int rule, const int *value, int more) {
  const char *key;
  json_t *v;
  char text[120];
  int k = 0;
  json_object_foreach(json_object_get(schema, "properties"), key, v) {
    json_t *name = json_string(key);
    for (int after = 0; after < 2; after++) {
      snprintf(text, sizeof text, "s%d-%c%d ::= %s", rule, after ? 'r' : 'f', k, after ? "\",\" ws " : "");
      put(s, text);
      put_literal(s, name);
      put_rule(s, " ws \":\" ws ", value[k], " ws ");
      snprintf(text, sizeof text, "s%d-r%d", rule, k + 1);
      put(s, text);
      if (!is_required(schema, key)) {
        snprintf(text, sizeof text, " | s%d-%c%d", rule, after ? 'r' : 'f', k + 1);
        put(s, text);
      }
      put(s, "\n");
    }
    json_decref(name);
    k++;
  }
  snprintf(text, sizeof text, "s%d-r%d ::= ", rule, k);
  put(s, text);
  if (more != -2) put_rule(s, "(\",\" ws string ws \":\" ws ", more, " ws)*");
  snprintf(text, sizeof text, "\ns%d-f%d ::= ", rule, k);
  put(s, text);
  if (more != -2) {
    put_rule(s, "(string ws \":\" ws ", more, " ws ");
    snprintf(text, sizeof text, "s%d-r%d)?", rule, k);
    put(s, text);
  }
  put(s, "\n");
}

/* The values of members that the schema does not name: a rule; -1: any value; -2: there are no such
 * members. */
static int additional(Schema *s, const json_t *schema, size_t named) {
  const json_t *more = json_object_get(schema, "additionalProperties");
  if (!more) return named ? -2 : -1;
  if (json_is_boolean(more)) return json_is_true(more) ? -1 : -2;
  return part(s, more);
}

static void object(Schema *s, const json_t *schema, int rule) {
  static const char *const keys[] = {"properties", "required", "additionalProperties", NULL};
  json_t *properties = json_object_get(schema, "properties"), *v;
  size_t n = json_object_size(properties);
  int *value = tg_alloc(s->ctx, (n + 1) * sizeof *value), k = 0;
  const char *key;
  char text[40];
  s->ok = s->ok && value && known(s, schema, keys);
  json_object_foreach(properties, key, v) if (s->ok) value[k++] = part(s, v);
  int more = s->ok ? additional(s, schema, n) : -2;
  if (s->ok) members(s, schema, rule, value, more);
  if (s->ok) {
    begin_rule(s, rule);
    snprintf(text, sizeof text, "\"{\" ws s%d-f0 \"}\"\n", rule);
    put(s, text);
  }
  tg_free(s->ctx, value);
}

/* ---- alternatives */
static void constants(Schema *s, const json_t *list, const json_t *one, int rule) {
  begin_rule(s, rule);
  if (one) put_literal(s, one);
  for (size_t i = 0; !one && i < json_array_size(list); i++) {
    if (i) put(s, " | ");
    put_literal(s, json_array_get(list, i));
  }
  put(s, "\n");
}

static void any_of(Schema *s, const json_t *list, int rule) {
  size_t n = json_array_size(list);
  int *each = tg_alloc(s->ctx, (n + 1) * sizeof *each);
  s->ok = s->ok && each;
  if (s->ok && !n) wrong(s, "a list of no schemas");
  for (size_t i = 0; s->ok && i < n; i++)
    each[i] = part(s, json_array_get(list, i));
  if (s->ok) begin_rule(s, rule);
  for (size_t i = 0; s->ok && i < n; i++)
    put_rule(s, i ? " | " : "", each[i], "");
  put(s, "\n");
  tg_free(s->ctx, each);
}

/* Writes a schema of several types as alternatives of one type each. */
static void types(Schema *s, const json_t *schema, const json_t *list, int rule) {
  json_t *all = json_array();
  for (size_t i = 0; i < json_array_size(list); i++) {
    json_t *one = json_object();
    const char *type = json_string_value(json_array_get(list, i));
    if (type && (!strcmp(type, "object") || !strcmp(type, "array") || !strcmp(type, "string"))) {
      json_decref(one);
      one = json_copy((json_t *)(uintptr_t)schema);
    }
    json_object_set(one, "type", json_array_get(list, i));
    json_array_append_new(all, one);
  }
  any_of(s, all, rule);
  json_decref(all);
}

/* The part that "#/$defs/Name", a JSON pointer into this schema, refers to; NULL: there is none. */
static const json_t *pointed(const Schema *s, const char *at) {
  const json_t *v = s->root;
  char name[200];
  if (*at++ != '#') return NULL;
  while (v && *at == '/') {
    size_t n = strcspn(++at, "/");
    if (n >= sizeof name) return NULL;
    memcpy(name, at, n);
    name[n] = 0;
    v = json_is_array(v) ? json_array_get(v, (size_t)atoi(name)) : json_object_get(v, name);
    at += n;
  }
  return *at ? NULL : v;
}

static int referred(Schema *s, const char *at) {
  const json_t *to = pointed(s, at);
  if (!to) return wrong(s, "a $ref leads nowhere in this schema");
  for (int i = 0; i < s->nrefs; i++)
    if (s->ref[i].at == to) return s->ref[i].rule;
  if (s->nrefs == MOST_REFS) return wrong(s, "too many $ref");
  return part(s, to);
}

static void typed(Schema *s, const json_t *schema, const char *type, int rule) {
  static const char *const none[] = {NULL};
  if (!strcmp(type, "string"))
    string(s, schema, rule);
  else if (!strcmp(type, "integer") || !strcmp(type, "number"))
    number(s, schema, rule, *type == 'i');
  else if (!strcmp(type, "array"))
    array(s, schema, rule);
  else if (!strcmp(type, "object"))
    object(s, schema, rule);
  else if (strcmp(type, "boolean") && strcmp(type, "null"))
    wrong(s, "a type that is none of JSON");
  else if (known(s, schema, none)) {
    begin_rule(s, rule);
    put(s, type);
    put(s, "\n");
  }
}

/* Writes what the schema describes as rule `rule`. */
static void described(Schema *s, const json_t *schema, int rule) {
  static const char *const any[] = {"anyOf", "oneOf", "allOf", NULL}, *const set[] = {"const", "enum", NULL};
  const json_t *type = json_object_get(schema, "type"), *one = json_object_get(schema, "const");
  const json_t *list = json_object_get(schema, "enum"), * or = json_object_get(schema, "anyOf");
  if (! or) or = json_object_get(schema, "oneOf");
  if (! or &&json_array_size(json_object_get(schema, "allOf")) == 1) or = json_object_get(schema, "allOf");
  if (one || json_array_size(list)) {
    if (known(s, schema, set)) constants(s, list, one, rule);
  } else if (or) {
    if (known(s, schema, any)) any_of(s, or, rule);
  } else if (json_is_array(type))
    types(s, schema, type, rule);
  else if (json_is_string(type))
    typed(s, schema, json_string_value(type), rule);
  else if (json_object_get(schema, "properties"))
    object(s, schema, rule);
  else if (known(s, schema, any + 3)) {
    begin_rule(s, rule);
    put(s, "value\n");
  }
}

/* Returns the rule of a part of the schema; negative: an error, or, for the schema true, any value. */
static int part(Schema *s, const json_t *schema) {
  if (!s->ok || json_is_true(schema)) return -1;
  if (!json_is_object(schema)) return wrong(s, "a part of it is no schema");
  const char *ref = json_string_value(json_object_get(schema, "$ref"));
  if (s->depth == MOST_DEPTH || s->n == MOST_PARTS) return wrong(s, "it is too large");
  s->depth++;
  int rule = ref ? -1 : s->n++;
  if (ref)
    rule = referred(s, ref);
  else {
    if (s->nrefs < MOST_REFS) {
      s->ref[s->nrefs].at = schema;
      s->ref[s->nrefs++].rule = rule;
    }
    described(s, schema, rule);
  }
  s->depth--;
  return rule;
}

TgGrammar *tg_grammar_json(TgContext *ctx, const TgTokenizer *t, const char *schema, size_t n) {
  json_error_t e;
  Schema s = {.ctx = ctx, .out = {.ctx = ctx}, .ok = true};
  if (ctx && !t) llm_fail(ctx, TG_ERR_VALUE, "json schema: no tokenizer");
  if (!ctx || !t) return NULL;
  s.root = schema ? json_loadb(schema, n, JSON_DECODE_ANY, &e) : json_pack("{s:s}", "type", "object");
  if (!s.root) {
    llm_fail(ctx, TG_ERR_VALUE, "json schema: %.200s", schema ? e.text : "out of memory");
    return NULL;
  }
  put(&s, basics);
  int root = part(&s, s.root);
  put_rule(&s, "root ::= ", root, "\n");
  json_decref(s.root);
  TgGrammar *g = s.ok && !s.out.bad ? tg_grammar_new(ctx, t, s.out.at, s.out.n) : NULL;
  tg_free(ctx, s.out.at);
  return g;
}
#else
TgGrammar *tg_grammar_json(TgContext *ctx, const TgTokenizer *t, const char *schema, size_t n) {
  (void)t, (void)schema, (void)n;
  llm_fail(ctx, TG_ERR_VALUE, "json schema: this build reads no JSON (jansson)");
  return NULL;
}
#endif
