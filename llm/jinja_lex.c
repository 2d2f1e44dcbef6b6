/* jinja_lex.c: a template as tokens. In: text. Out: pieces of text, and the words and signs between {{ }} and
 * {% %}. A tag removes the newline after it and the spaces before it on its line (trim_blocks,
 * lstrip_blocks), because chat templates are written for this; - removes all white space on its side, + none.
 * Comments are dropped. */
#include "jinja.h"
#include <stdlib.h>

typedef struct Lexer {
  Jinja *j;
  const char *s;
  size_t n, at;
  int line;
  JToken *token;
  size_t count, cap;
  bool trim_next; /* white space after this tag is removed */
} Lexer;

static JToken *put(Lexer *l, JTokenKind kind, const char *s, size_t n) {
  if (l->count == l->cap) {
    size_t cap = 2 * l->cap + 64;
    JToken *t = j_alloc(l->j, cap * sizeof *t);
    if (l->count) memcpy(t, l->token, l->count * sizeof *t);
    l->token = t;
    l->cap = cap;
  }
  JToken *t = &l->token[l->count++];
  *t = (JToken){.kind = kind, .line = l->line, .s = s, .n = n};
  return t;
}

static bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool digit(char c) { return c >= '0' && c <= '9'; }

static char peek(const Lexer *l, size_t ahead) { return l->at + ahead < l->n ? l->s[l->at + ahead] : 0; }

/* ---- within {{ }} and {% %} */
static void escape(Lexer *l, LlmText *to) {
  static const char names[] = "nrtbfv0\\'\"/", are[] = "\n\r\t\b\f\v\0\\'\"/";
  char c = peek(l, 0);
  const char *at = c ? strchr(names, c) : NULL;
  l->at++;
  if (at) {
    j_buffer_put(l->j, to, &are[at - names], 1);
    return;
  }
  int digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
  if (!digits) {
    j_buffer_put(l->j, to, "\\", 1);
    l->at--;
    return;
  }
  char hex[5] = {0}, utf8[5];
  for (int i = 0; i < digits; i++)
    hex[i] = peek(l, 0) ? l->s[l->at++] : 0;
  uint32_t v = (uint32_t)strtoul(hex, NULL, 16);
  size_t n = v < 0x80 ? 1 : v < 0x800 ? 2 : 3;
  for (size_t i = n; i-- > 0; v >>= 6)
    utf8[i] = (char)(n == 1 ? v : i ? 0x80 | (v & 0x3f) : (0xf00u >> n & 0xff) | v);
  j_buffer_put(l->j, to, utf8, n);
}

static void string(Lexer *l, char quote) {
  LlmText *t = j_buffer(l->j);
  for (l->at++; peek(l, 0) != quote;) {
    if (l->at >= l->n) j_fail(l->j, TG_ERR_VALUE, "a string that does not end");
    if (l->s[l->at] == '\n') l->line++;
    if (l->s[l->at] == '\\') {
      l->at++;
      escape(l, t);
    } else
      j_buffer_put(l->j, t, &l->s[l->at++], 1);
  }
  l->at++;
  JValue *v = j_text(l->j, t);
  put(l, T_STRING, v->u.s, v->n);
}

static void number(Lexer *l) {
  char text[40];
  size_t n = 0;
  bool whole = true;
  while (n < sizeof text - 1 &&
         (digit(peek(l, n)) || peek(l, n) == '_' || (peek(l, n) == '.' && digit(peek(l, n + 1)) && whole))) {
    if (peek(l, n) == '.') whole = false;
    text[n] = peek(l, n);
    n++;
  }
  text[n] = 0;
  JToken *t = put(l, whole ? T_INT : T_FLOAT, l->s + l->at, n);
  t->i = strtoll(text, NULL, 10);
  t->f = strtod(text, NULL);
  l->at += n;
}

static void sign(Lexer *l) {
  static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
  for (size_t i = 0; i < sizeof two / sizeof *two; i++)
    if (l->at + 2 <= l->n && !memcmp(l->s + l->at, two[i], 2)) {
      put(l, T_SIGN, l->s + l->at, 2);
      l->at += 2;
      return;
    }
  if (!strchr("+-*/%~<>=()[]{}.,:|", l->s[l->at]) || !l->s[l->at])
    j_fail(l->j, TG_ERR_VALUE, "the character '%c' stands for nothing", l->s[l->at]);
  put(l, T_SIGN, l->s + l->at++, 1);
}

/* Reads to the end of the tag. Brackets are counted, so that the }} of a map does not end the tag. */
static void inside(Lexer *l, bool print) {
  const char *end = print ? "}}" : "%}";
  for (int open = 0;;) {
    while (l->at < l->n && blank(l->s[l->at]))
      if (l->s[l->at++] == '\n') l->line++;
    l->j->line = l->line;
    if (l->at >= l->n) j_fail(l->j, TG_ERR_VALUE, "a tag that does not end");
    size_t minus = (peek(l, 0) == '-' || peek(l, 0) == '+') && peek(l, 1) == end[0] && peek(l, 2) == end[1];
    if (!open && (minus || (peek(l, 0) == end[0] && peek(l, 1) == end[1]))) {
      char c = peek(l, 0);
      put(l, print ? T_END_PRINT : T_END_TAG, "", 0);
      l->at += 2 + minus;
      l->trim_next = minus && c == '-';
      if (!print && !(minus && c == '+') && peek(l, 0) == '\n') l->at++, l->line++;
      return;
    }
    char c = l->s[l->at];
    open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
    if (c == '"' || c == '\'')
      string(l, c);
    else if (digit(c))
      number(l);
    else if (letter(c)) {
      size_t n = 1;
      while (letter(peek(l, n)) || digit(peek(l, n)))
        n++;
      put(l, T_NAME, l->s + l->at, n);
      l->at += n;
    } else
      sign(l);
  }
}

/* ---- text */
static size_t next_tag(const Lexer *l) {
  for (size_t i = l->at; i + 1 < l->n; i++)
    if (l->s[i] == '{' && (l->s[i + 1] == '{' || l->s[i + 1] == '%' || l->s[i + 1] == '#')) return i;
  return l->n;
}

/* A piece of text up to `end`, without the white space that the tags on both sides remove. */
static void text(Lexer *l, size_t end) {
  size_t begin = l->at, stop = end;
  for (size_t i = begin; l->trim_next && i < end && blank(l->s[i]); i++)
    begin = i + 1;
  char kind = end < l->n ? l->s[end + 1] : 0, control = end + 2 < l->n ? l->s[end + 2] : 0;
  if (kind && control == '-')
    while (stop > begin && blank(l->s[stop - 1]))
      stop--;
  else if (kind && kind != '{' && control != '+') {
    size_t i = stop;
    while (i > begin && (l->s[i - 1] == ' ' || l->s[i - 1] == '\t'))
      i--;
    if (i == 0 || l->s[i - 1] == '\n') stop = i;
  }
  if (stop > begin) put(l, T_TEXT, l->s + begin, stop - begin);
  for (size_t i = l->at; i < end; i++)
    l->line += l->s[i] == '\n';
  l->at = end;
  l->trim_next = false;
}

static void comment(Lexer *l) {
  size_t i = l->at + 2;
  for (; i + 1 < l->n && !(l->s[i] == '#' && l->s[i + 1] == '}'); i++)
    l->line += l->s[i] == '\n';
  if (i + 1 >= l->n) j_fail(l->j, TG_ERR_VALUE, "a comment that does not end");
  l->trim_next = l->s[i - 1] == '-' && i > l->at + 2;
  l->at = i + 2;
  if (!l->trim_next && peek(l, 0) == '\n') l->at++, l->line++;
}

JToken *j_tokens(Jinja *j, const char *s, size_t n) {
  Lexer l = {.j = j, .s = s, .n = n, .line = 1};
  if (n && s[n - 1] == '\n') l.n--; /* a newline at the end belongs to the file, not to the template */
  while (l.at < l.n) {
    j->line = l.line;
    text(&l, next_tag(&l));
    if (l.at >= l.n) break;
    char kind = l.s[l.at + 1];
    if (kind == '#') {
      comment(&l);
      continue;
    }
    put(&l, kind == '{' ? T_BEGIN_PRINT : T_BEGIN_TAG, "", 0);
    l.at += 2;
    if (peek(&l, 0) == '-' || peek(&l, 0) == '+') l.at++;
    inside(&l, kind == '{');
  }
  put(&l, T_END, "", 0);
  return l.token;
}
