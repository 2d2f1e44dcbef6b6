/* jinja_value.c: the values of templates: memory with a limit, JSON in and out, and Python's rules of truth,
 * equality and text. In: JSON. Out: values, texts. */
#include "jinja.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- memory, steps, errors */
_Noreturn void j_fail(Jinja *j, TgStatus status, const char *format, ...) {
  char text[300];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  llm_fail(j->ctx, status, "template: line %d: %s", j->line, text);
  longjmp(j->out, 1);
}

void *j_alloc(Jinja *j, size_t n) {
  JArena *a = &j->arena;
  n = (n + 15) & ~(size_t)15;
  if (n > a->most - a->bytes) j_fail(j, TG_ERR_LIMIT, "more than %zu bytes of memory", a->most);
  if (!a->blocks || a->blocks->cap - a->blocks->used < n) {
    size_t cap = n > 8192 ? n : 8192;
    JBlock *b = tg_alloc(a->ctx, sizeof *b + 16 + cap);
    if (!b) j_fail(j, TG_ERR_NOMEM, "out of memory");
    b->cap = cap;
    b->next = a->blocks;
    a->blocks = b;
  }
  char *base = (char *)(((uintptr_t)(a->blocks + 1) + 15) & ~(uintptr_t)15);
  void *p = base + a->blocks->used;
  a->blocks->used += n;
  a->bytes += n;
  return p;
}

void j_free(Jinja *j) {
  while (j->arena.blocks) {
    JBlock *b = j->arena.blocks;
    j->arena.blocks = b->next;
    tg_free(j->ctx, b);
  }
  j->arena.bytes = 0;
}

void j_step(Jinja *j, int64_t n) {
  j->steps += n;
  if (j->steps > j->most_steps) j_fail(j, TG_ERR_LIMIT, "more than %lld steps", (long long)j->most_steps);
}

void j_enter(Jinja *j) {
  if (++j->depth > j->most_depth) j_fail(j, TG_ERR_LIMIT, "nested more than %d deep", j->most_depth);
}

/* Texts grow in the arena by doubling. The memory that a text leaves behind still counts against the
 * limit. */
LlmText *j_buffer(Jinja *j) { return j_alloc(j, sizeof(LlmText)); }

void j_buffer_put(Jinja *j, LlmText *t, const void *p, size_t n) {
  if (n >= t->cap - t->n) {
    size_t cap = 2 * (t->n + n) + 32;
    if (t->n + n > j->most_bytes) j_fail(j, TG_ERR_LIMIT, "more than %zu bytes of text", j->most_bytes);
    char *at = j_alloc(j, cap);
    if (t->n) memcpy(at, t->at, t->n);
    t->at = at;
    t->cap = cap;
  }
  if (n) memcpy(t->at + t->n, p, n);
  t->n += n;
  t->at[t->n] = 0;
  j_step(j, (int64_t)(n / 256));
}

static void put_text(Jinja *j, LlmText *t, const char *s) { j_buffer_put(j, t, s, strlen(s)); }

/* ---- constructors */
JValue *j_value(Jinja *j, JKind kind) {
  JValue *v = j_alloc(j, sizeof *v);
  v->kind = kind;
  return v;
}

JValue *j_int(Jinja *j, int64_t i) {
  JValue *v = j_value(j, J_INT);
  v->u.i = i;
  return v;
}

JValue *j_bool(Jinja *j, bool b) {
  JValue *v = j_value(j, J_BOOL);
  v->u.i = b;
  return v;
}

JValue *j_float(Jinja *j, double f) {
  JValue *v = j_value(j, J_FLOAT);
  v->u.f = f;
  return v;
}

JValue *j_string(Jinja *j, const char *s, size_t n) {
  JValue *v = j_value(j, J_STRING);
  char *copy = j_alloc(j, n + 1);
  if (n) memcpy(copy, s, n);
  v->u.s = copy;
  v->n = n;
  j_step(j, (int64_t)(n / 256));
  return v;
}

JValue *j_text(Jinja *j, LlmText *t) {
  JValue *v = j_value(j, J_STRING);
  if (!t->at) j_buffer_put(j, t, "", 0);
  v->u.s = t->at;
  v->n = t->n;
  return v;
}

void j_append(Jinja *j, JValue *list, JValue *v) {
  if (list->n == list->cap) {
    size_t cap = 2 * list->cap + 4;
    JValue **at = j_alloc(j, cap * sizeof *at);
    if (list->n) memcpy(at, list->u.at, list->n * sizeof *at);
    list->u.at = at;
    list->cap = cap;
  }
  list->u.at[list->n++] = v;
}

JValue *j_get(const JValue *map, const char *key, size_t n) {
  for (size_t i = 0; i < map->n; i++) {
    const JValue *k = map->u.pair[i].key;
    if (k->kind == J_STRING && k->n == n && !memcmp(k->u.s, key, n)) return map->u.pair[i].value;
  }
  return NULL;
}

JValue *j_find(Jinja *j, const JValue *map, const JValue *key) {
  j_step(j, (int64_t)(map->n / 8));
  for (size_t i = 0; i < map->n; i++)
    if (j_equal(j, map->u.pair[i].key, key)) return map->u.pair[i].value;
  return NULL;
}

void j_put(Jinja *j, JValue *map, JValue *key, JValue *value) {
  j_step(j, (int64_t)(map->n / 8));
  for (size_t i = 0; i < map->n; i++)
    if (j_equal(j, map->u.pair[i].key, key)) {
      map->u.pair[i].value = value;
      return;
    }
  if (map->n == map->cap) {
    size_t cap = 2 * map->cap + 4;
    JPair *at = j_alloc(j, cap * sizeof *at);
    if (map->n) memcpy(at, map->u.pair, map->n * sizeof *at);
    map->u.pair = at;
    map->cap = cap;
  }
  map->u.pair[map->n++] = (JPair){key, value};
}

/* ---- questions */
bool j_is(const JValue *v, const char *text) {
  return v->kind == J_STRING && v->n == strlen(text) && !memcmp(v->u.s, text, v->n);
}

bool j_true(const JValue *v) {
  switch (v->kind) {
  case J_UNDEFINED:
  case J_NONE: return false;
  case J_BOOL:
  case J_INT: return v->u.i != 0;
  case J_FLOAT: return v->u.f != 0;
  case J_STRING:
  case J_LIST:
  case J_MAP: return v->n != 0;
  default: return true;
  }
}

static bool is_number(const JValue *v) { return v->kind == J_INT || v->kind == J_FLOAT || v->kind == J_BOOL; }

double j_number(Jinja *j, const JValue *v) {
  if (!is_number(v)) j_fail(j, TG_ERR_VALUE, "a number is needed");
  return v->kind == J_FLOAT ? v->u.f : (double)v->u.i;
}

static bool equal_lists(Jinja *j, const JValue *a, const JValue *b) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++)
    if (!j_equal(j, a->u.at[i], b->u.at[i])) return false;
  return true;
}

static bool equal_maps(Jinja *j, const JValue *a, const JValue *b) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++) {
    JValue *other = j_find(j, b, a->u.pair[i].key);
    if (!other || !j_equal(j, a->u.pair[i].value, other)) return false;
  }
  return true;
}

bool j_equal(Jinja *j, const JValue *a, const JValue *b) {
  if (a == b) return true;
  if (is_number(a) && is_number(b))
    return a->kind == J_FLOAT || b->kind == J_FLOAT ? j_number(j, a) == j_number(j, b) : a->u.i == b->u.i;
  if (a->kind != b->kind) return false;
  j_step(j, 1);
  if (a->kind == J_STRING) return a->n == b->n && !memcmp(a->u.s, b->u.s, a->n);
  if (a->kind != J_LIST && a->kind != J_MAP) return a->kind == J_NONE || a->kind == J_UNDEFINED;
  j_enter(j);
  bool same = a->kind == J_LIST ? equal_lists(j, a, b) : equal_maps(j, a, b);
  j->depth--;
  return same;
}

int j_compare(Jinja *j, const JValue *a, const JValue *b) {
  if (is_number(a) && is_number(b)) {
    double x = j_number(j, a), y = j_number(j, b);
    return (x > y) - (x < y);
  }
  if (a->kind != J_STRING || b->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "these values have no order");
  size_t n = a->n < b->n ? a->n : b->n;
  int c = memcmp(a->u.s, b->u.s, n);
  return c ? c : (a->n > b->n) - (a->n < b->n);
}

int64_t j_length(Jinja *j, const JValue *v) {
  int64_t n = 0;
  int32_t code;
  if (v->kind == J_LIST || v->kind == J_MAP) return (int64_t)v->n;
  if (v->kind == J_UNDEFINED) return 0;
  if (v->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "this has no length");
  for (size_t at = 0; at < v->n; n++)
    at += llm_utf8(v->u.s + at, v->n - at, &code);
  j_step(j, n / 256);
  return n;
}

JValue *j_as_list(Jinja *j, JValue *v) {
  if (v->kind == J_LIST) return v;
  JValue *list = j_value(j, J_LIST);
  if (v->kind == J_MAP)
    for (size_t i = 0; i < v->n; i++)
      j_append(j, list, v->u.pair[i].key);
  else if (v->kind == J_STRING)
    for (size_t at = 0, n; at < v->n; at += n) {
      int32_t code;
      n = llm_utf8(v->u.s + at, v->n - at, &code);
      j_step(j, 1);
      j_append(j, list, j_string(j, v->u.s + at, n));
    }
  else if (v->kind != J_UNDEFINED)
    j_fail(j, TG_ERR_VALUE, "this cannot be gone through");
  return list;
}

/* ---- as text */
static void write_float(Jinja *j, LlmText *to, double f) {
  char text[40];
  if (isnan(f) || isinf(f)) {
    put_text(j, to, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, f);
    if (strtod(text, NULL) == f) break;
  }
  if (!strpbrk(text, ".en")) snprintf(text + strlen(text), 3, ".0");
  put_text(j, to, text);
}

static void write_quoted(Jinja *j, LlmText *to, const JValue *v) {
  bool doubled = memchr(v->u.s, '\'', v->n) && !memchr(v->u.s, '"', v->n);
  char quote = doubled ? '"' : '\'';
  j_buffer_put(j, to, &quote, 1);
  for (size_t i = 0; i < v->n; i++) {
    char c = v->u.s[i];
    if (c == '\n' || c == '\t' || c == '\r')
      put_text(j, to, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
    else {
      if (c == '\\' || c == quote) put_text(j, to, "\\");
      j_buffer_put(j, to, &c, 1);
    }
  }
  j_buffer_put(j, to, &quote, 1);
}

static void write_items(Jinja *j, LlmText *to, const JValue *v) {
  bool map = v->kind == J_MAP;
  put_text(j, to, map ? "{" : v->tuple ? "(" : "[");
  for (size_t i = 0; i < v->n; i++) {
    if (i) put_text(j, to, ", ");
    j_write(j, to, map ? v->u.pair[i].key : v->u.at[i], true);
    if (map) put_text(j, to, ": "), j_write(j, to, v->u.pair[i].value, true);
  }
  put_text(j, to, map ? "}" : v->tuple ? (v->n == 1 ? ",)" : ")") : "]");
}

void j_write(Jinja *j, LlmText *to, const JValue *v, bool quoted) {
  char number[32];
  j_step(j, 1);
  switch (v->kind) {
  case J_UNDEFINED: break;
  case J_NONE: put_text(j, to, "None"); break;
  case J_BOOL: put_text(j, to, v->u.i ? "True" : "False"); break;
  case J_INT:
    snprintf(number, sizeof number, "%lld", (long long)v->u.i);
    put_text(j, to, number);
    break;
  case J_FLOAT: write_float(j, to, v->u.f); break;
  case J_STRING:
    if (quoted)
      write_quoted(j, to, v);
    else
      j_buffer_put(j, to, v->u.s, v->n);
    break;
  case J_LIST:
  case J_MAP:
    j_enter(j);
    write_items(j, to, v);
    j->depth--;
    break;
  default: j_fail(j, TG_ERR_VALUE, "this is no text");
  }
}

JValue *j_to_string(Jinja *j, JValue *v) {
  if (v->kind == J_STRING) return v;
  LlmText *t = j_buffer(j);
  j_write(j, t, v, false);
  return j_text(j, t);
}

/* ---- JSON out */
static void json_string(Jinja *j, LlmText *to, const JValue *v) {
  put_text(j, to, "\"");
  for (size_t i = 0, plain = 0; i <= v->n; i++) {
    unsigned char c = i < v->n ? (unsigned char)v->u.s[i] : 0;
    if (i < v->n && c >= 0x20 && c != '"' && c != '\\') continue;
    j_buffer_put(j, to, v->u.s + plain, i - plain);
    plain = i + 1;
    if (i == v->n) break;
    static const char from[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
    const char *at = c ? strchr(from, c) : NULL;
    char escaped[8];
    if (at)
      snprintf(escaped, sizeof escaped, "\\%c", names[at - from]);
    else
      snprintf(escaped, sizeof escaped, "\\u%04x", c);
    put_text(j, to, escaped);
  }
  put_text(j, to, "\"");
}

static void new_line(Jinja *j, LlmText *to, int indent, int level) {
  put_text(j, to, "\n");
  for (int i = 0; i < indent * level; i++)
    put_text(j, to, " ");
}

void j_json(Jinja *j, LlmText *to, const JValue *v, int indent, int level) {
  j_step(j, 1);
  if (v->kind == J_STRING) {
    json_string(j, to, v);
    return;
  }
  if (v->kind == J_NONE || v->kind == J_BOOL) {
    put_text(j, to, v->kind == J_NONE ? "null" : v->u.i ? "true" : "false");
    return;
  }
  if (v->kind != J_LIST && v->kind != J_MAP) {
    if (v->kind == J_UNDEFINED) j_fail(j, TG_ERR_VALUE, "tojson: what is undefined is no JSON");
    j_write(j, to, v, false);
    return;
  }
  bool map = v->kind == J_MAP;
  j_enter(j);
  put_text(j, to, map ? "{" : "[");
  for (size_t i = 0; i < v->n; i++) {
    if (i) put_text(j, to, indent < 0 ? ", " : ",");
    if (indent >= 0) new_line(j, to, indent, level + 1);
    if (map) json_string(j, to, j_to_string(j, v->u.pair[i].key)), put_text(j, to, ": ");
    j_json(j, to, map ? v->u.pair[i].value : v->u.at[i], indent, level + 1);
  }
  if (indent >= 0 && v->n) new_line(j, to, indent, level);
  put_text(j, to, map ? "}" : "]");
  j->depth--;
}

/* ---- JSON in */
typedef struct JsonIn {
  Jinja *j;
  const char *p, *end;
} JsonIn;

static JValue *json_value(JsonIn *in);

static _Noreturn void json_bad(JsonIn *in, const char *what) {
  j_fail(in->j, TG_ERR_VALUE, "JSON: %s, where '%.*s' stands", what,
         (int)(in->end - in->p > 20 ? 20 : in->end - in->p), in->p);
}

static void json_blank(JsonIn *in) {
  while (in->p < in->end && (*in->p == ' ' || *in->p == '\n' || *in->p == '\t' || *in->p == '\r'))
    in->p++;
}

static bool json_sign(JsonIn *in, char c) {
  json_blank(in);
  if (in->p == in->end || *in->p != c) return false;
  in->p++;
  return true;
}

static uint32_t json_hex(JsonIn *in) {
  uint32_t v = 0;
  if (in->end - in->p < 4) json_bad(in, "a cut escape");
  for (int i = 0; i < 4; i++) {
    char c = *in->p++;
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : -1;
    if (d < 0) json_bad(in, "a wrong escape");
    v = v << 4 | (uint32_t)d;
  }
  return v;
}

static void utf8_put(Jinja *j, LlmText *to, uint32_t c) {
  char b[4];
  size_t n = llm_utf8_of(c, b);
  j_buffer_put(j, to, b, n);
}

static void json_escape(JsonIn *in, LlmText *to) {
  static const char names[] = "\"\\/nrtbf", are[] = "\"\\/\n\r\t\b\f";
  char c = in->p < in->end ? *in->p++ : 0;
  const char *at = c ? strchr(names, c) : NULL;
  if (at) {
    j_buffer_put(in->j, to, &are[at - names], 1);
    return;
  }
  if (c != 'u') json_bad(in, "a wrong escape");
  uint32_t u = json_hex(in);
  if (u >= 0xd800 && u < 0xdc00 && in->end - in->p >= 6 && in->p[0] == '\\' && in->p[1] == 'u') {
    in->p += 2;
    u = 0x10000 + ((u - 0xd800) << 10) + ((json_hex(in) - 0xdc00) & 0x3ff);
  }
  utf8_put(in->j, to, u);
}

static JValue *json_text(JsonIn *in) {
  LlmText *t = j_buffer(in->j);
  while (in->p < in->end && *in->p != '"') {
    const char *from = in->p;
    while (in->p < in->end && *in->p != '"' && *in->p != '\\')
      in->p++;
    j_buffer_put(in->j, t, from, (size_t)(in->p - from));
    if (in->p < in->end && *in->p == '\\') in->p++, json_escape(in, t);
  }
  if (in->p == in->end) json_bad(in, "a text that does not end");
  in->p++;
  return j_text(in->j, t);
}

static JValue *json_number(JsonIn *in) {
  char text[64];
  size_t n = 0;
  while (in->p + n < in->end && n < sizeof text - 1 && strchr("+-.eE0123456789", in->p[n]) && in->p[n])
    n++;
  memcpy(text, in->p, n);
  text[n] = 0;
  char *end;
  bool whole = !strpbrk(text, ".eE");
  int64_t i = whole ? strtoll(text, &end, 10) : 0;
  double f = whole ? 0 : strtod(text, &end);
  if (!n || *end) json_bad(in, "no value");
  in->p += n;
  return whole ? j_int(in->j, i) : j_float(in->j, f);
}

static JValue *json_items(JsonIn *in, bool map) {
  JValue *v = j_value(in->j, map ? J_MAP : J_LIST);
  char end = map ? '}' : ']';
  j_enter(in->j);
  for (bool more = !json_sign(in, end); more;) {
    JValue *key = NULL;
    if (map) {
      if (!json_sign(in, '"')) json_bad(in, "no key");
      key = json_text(in);
      if (!json_sign(in, ':')) json_bad(in, "no ':'");
    }
    JValue *item = json_value(in);
    if (map)
      j_put(in->j, v, key, item);
    else
      j_append(in->j, v, item);
    more = json_sign(in, ',');
    if (!more && !json_sign(in, end)) json_bad(in, "no end");
  }
  in->j->depth--;
  return v;
}

static bool json_word(JsonIn *in, const char *word) {
  size_t n = strlen(word);
  if ((size_t)(in->end - in->p) < n || memcmp(in->p, word, n)) return false;
  in->p += n;
  return true;
}

static JValue *json_value(JsonIn *in) {
  j_step(in->j, 1);
  if (json_sign(in, '"')) return json_text(in);
  if (json_sign(in, '{')) return json_items(in, true);
  if (json_sign(in, '[')) return json_items(in, false);
  if (json_word(in, "null")) return j_value(in->j, J_NONE);
  if (json_word(in, "true")) return j_bool(in->j, true);
  if (json_word(in, "false")) return j_bool(in->j, false);
  return json_number(in);
}

JValue *j_from_json(Jinja *j, const char *text, size_t n) {
  JsonIn in = {j, text, text + n};
  JValue *v = json_value(&in);
  json_blank(&in);
  if (in.p != in.end) json_bad(&in, "more than one value");
  return v;
}
