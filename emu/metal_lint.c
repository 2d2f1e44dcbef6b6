/* metal_lint.c: what C++ accepts in a text of MSL but Metal's compiler refuses: a pointer without an address
 * space; numbers of buffers that are too large or used twice; reserved words; parts of C++ that the language
 * lacks (double, goto, recursion ..); a threadgroup array that is not in the outermost block of a kernel. In:
 * the text. Out: the first such place, with its line. Preprocessor lines are not checked. */
#include "emu/metal_emu.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Token {
  const char *at;
  uint32_t n, line;
} Token;

typedef struct Function {
  size_t name, body, end; /* indices of tokens */
  bool is_kernel, visited, open;
} Function;

typedef struct Lint {
  TgMem *mem;
  TgError *err;
  Vec(Token) tokens;
  Vec(Function) functions;
  Map types; /* hashes of the names that typedef and struct define */
  TgStatus st;
} Lint;

enum { MOST_BUFFERS = 31 };

/* ---- tokens */
static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static const char *skip_string(const char *p) {
  char quote = *p++;
  while (*p && *p != quote && *p != '\n')
    p += *p == '\\' && p[1] ? 2 : 1;
  return *p ? p + 1 : p;
}

/* Returns the end of a comment, preprocessor line or string that begins at p, or p if none does. */
static const char *skip_inert(const char *p, bool line_start) {
  if (p[0] == '/' && p[1] == '/') return p + strcspn(p, "\n");
  if (p[0] == '/' && p[1] == '*') {
    const char *end = strstr(p + 2, "*/");
    return end ? end + 2 : p + strlen(p);
  }
  if (*p == '#' && line_start) {
    while (*p && *p != '\n')
      p += *p == '\\' && p[1] ? 2 : 1;
    return p;
  }
  return *p == '"' || *p == '\'' ? skip_string(p) : p;
}

static bool tokens_read(Lint *l, const char *text) {
  uint32_t line = 1;
  bool line_start = true;
  for (const char *p = text, *next; *p; p = next) {
    next = skip_inert(p, line_start);
    bool inert = next != p || isspace((unsigned char)*p);
    if (next == p) next = p + 1;
    while (!inert && in_name(*p) && in_name(*next))
      next++;
    if (!inert && !vec_push(l->mem, &l->tokens, ((Token){p, (uint32_t)(next - p), line}))) return false;
    if (*p == '\n')
      line_start = true;
    else if (!isspace((unsigned char)*p))
      line_start = false;
    for (const char *q = p; q < next; q++)
      line += *q == '\n';
  }
  return vec_push(l->mem, &l->tokens, ((Token){"", 0, line})); /* the end */
}

static const Token *token(const Lint *l, size_t i) {
  return &l->tokens.at[i < l->tokens.len ? i : l->tokens.len - 1];
}

static bool is(const Lint *l, size_t i, const char *word) {
  const Token *t = token(l, i);
  return t->n == strlen(word) && !memcmp(t->at, word, t->n);
}

static bool is_name(const Lint *l, size_t i) {
  const Token *t = token(l, i);
  return t->n && in_name(*t->at) && !isdigit((unsigned char)*t->at);
}

static bool is_among(const Lint *l, size_t i, const char *const *words, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (is(l, i, words[k])) return true;
  return false;
}

#define AMONG(l, i, words) is_among((l), (i), (words), TG_COUNT(words))

static void told(Lint *l, size_t i, const char *what) {
  const Token *t = token(l, i);
  if (!l->st)
    l->st = error_set(l->err, TG_ERR_COMPILE, "METAL kernel:%u: %s: '%.*s'", t->line, what,
                      (int)TG_MIN(t->n, 60u), t->at);
}

/* Returns the token behind the bracket that closes the one at i. */
static size_t behind(const Lint *l, size_t i) {
  int depth = 0;
  do {
    const Token *t = token(l, i);
    if (!t->n) return i;
    depth += strchr("([{", *t->at) != NULL;
    depth -= strchr(")]}", *t->at) != NULL;
    i++;
  } while (depth > 0);
  return i;
}

/* ---- words */
static const char *const spaces[] = {"device", "threadgroup", "constant", "thread"};
static const char *const left_out[] = {"double", "goto",    "new",    "delete",       "try",          "catch",
                                       "throw",  "virtual", "typeid", "dynamic_cast", "thread_local", "asm"};
static const char *const kept[] = {
    "vertex", "fragment", "texture1d",   "texture2d",           "texture3d", "sampler",   "imageblock",
    "mesh",   "ray_data", "object_data", "patch_control_point", "visible",   "stitchable"};

/* A type must follow a word for an address space or for a kernel. */
static void words_checked(Lint *l) {
  for (size_t i = 0; i < l->tokens.len && !l->st; i++) {
    if (AMONG(l, i, left_out)) told(l, i, "the language does not have");
    if (AMONG(l, i, kept)) told(l, i, "a name that the language keeps for itself");
    bool leads = AMONG(l, i, spaces) || is(l, i, "kernel");
    if (leads && !is_name(l, i + 1)) told(l, i, "a name that the language keeps for itself");
  }
}

/* ---- types and pointers */
static const char *const type_names[] = {"void", "bool", "char",  "uchar", "short",  "ushort", "int",
                                         "uint", "long", "ulong", "half",  "bfloat", "float",  "size_t"};

static uint64_t hash_of(const Token *t) { return hash_bytes(7, t->at, t->n); }

/* Collects the name before the ; of a typedef, and the name behind struct. */
static bool types_found(Lint *l) {
  bool ok = true;
  for (size_t i = 0; i < l->tokens.len && ok; i++) {
    if (is(l, i, "struct") && is_name(l, i + 1)) ok = map_put(&l->types, hash_of(token(l, i + 1)), 1);
    if (!is(l, i, "typedef")) continue;
    while (token(l, i)->n && !is(l, i, ";"))
      i++;
    ok = ok && map_put(&l->types, hash_of(token(l, i - 1)), 1);
  }
  return ok;
}

/* Whether a token is a type: a known name, perhaps with a digit or packed_ (float4, packed_uint2). */
static bool is_type(const Lint *l, size_t i) {
  Token t = *token(l, i);
  uint64_t v;
  if (map_get(&l->types, hash_of(&t), &v)) return true;
  if (t.n > 7 && !memcmp(t.at, "packed_", 7)) {
    t.at += 7;
    t.n -= 7;
  }
  if (t.n > 1 && t.at[t.n - 1] >= '2' && t.at[t.n - 1] <= '4') t.n--;
  for (size_t k = 0; k < TG_COUNT(type_names); k++)
    if (t.n == strlen(type_names[k]) && !memcmp(t.at, type_names[k], t.n)) return true;
  return false;
}

/* A type with * or & behind it is a pointer or a reference. The address space must be before or behind the
 * type. */
static void pointers_checked(Lint *l) {
  for (size_t i = 0; i < l->tokens.len && !l->st; i++) {
    if (!is_type(l, i)) continue;
    size_t from = i, to = i + 1;
    bool space = false;
    while (from > 0 &&
           (is(l, from - 1, "const") || is(l, from - 1, "volatile") || AMONG(l, from - 1, spaces)))
      space |= AMONG(l, --from, spaces);
    while (is(l, to, "const") || is(l, to, "volatile") || AMONG(l, to, spaces))
      space |= AMONG(l, to++, spaces);
    bool leads = is(l, to, "*") || (is(l, to, "&") && !is(l, to + 1, "&"));
    if (leads && !space) told(l, i, "a pointer without an address space, to");
  }
}

/* ---- kernels */
/* Checks the [[buffer(n)]] of each parameter, or the other attributes that may be there. */
static void parameters_checked(Lint *l, size_t open) {
  static const char *const places[] = {"threadgroup_position_in_grid", "thread_position_in_threadgroup",
                                       "threads_per_threadgroup",      "threadgroups_per_grid",
                                       "thread_index_in_simdgroup",    "simdgroup_index_in_threadgroup"};
  size_t end = behind(l, open);
  bool taken[MOST_BUFFERS] = {false}, said = false;
  for (size_t i = open + 1; i < end && !l->st; i++) {
    if ((is(l, i, ",") || i + 1 == end) && !said && end > open + 2)
      told(l, i - 1, "a parameter without [[ ]]");
    if (is(l, i, ",")) said = false;
    if (!is(l, i, "[") || !is(l, i + 1, "[")) continue;
    said = true;
    bool buffer = is(l, i + 2, "buffer") && is(l, i + 3, "(");
    if (!buffer && !AMONG(l, i + 2, places)) told(l, i + 2, "not known of a parameter");
    if (buffer) {
      char *stop;
      unsigned long n = strtoul(token(l, i + 4)->at, &stop, 10);
      if (stop == token(l, i + 4)->at || n >= MOST_BUFFERS)
        told(l, i + 4, "buffers have numbers below 31");
      else if (taken[n])
        told(l, i + 4, "a buffer's number is given twice");
      else
        taken[n] = true;
    }
    i = behind(l, i) - 1;
  }
}

/* Collects names with ( ) { } behind them, outside any block. */
static bool functions_found(Lint *l) {
  bool is_kernel = false, ok = true;
  for (size_t i = 0; i < l->tokens.len && ok; i++) {
    is_kernel |= is(l, i, "kernel");
    if (is(l, i, ";") || is(l, i, "}")) is_kernel = false;
    if (is(l, i, "{")) {
      i = behind(l, i) - 1;
      continue;
    }
    if (!is(l, i, "(")) continue;
    size_t close = behind(l, i);
    if (is_kernel) parameters_checked(l, i);
    if (i && is_name(l, i - 1) && is(l, close, "{")) {
      Function f = {.name = i - 1, .body = close, .end = behind(l, close), .is_kernel = is_kernel};
      ok = vec_push(l->mem, &l->functions, f);
      i = f.end - 1;
      is_kernel = false;
    } else
      i = close - 1;
  }
  return ok;
}

static void arrays_checked(Lint *l, const Function *f) {
  int depth = 0;
  for (size_t i = f->body; i < f->end; i++) {
    depth += is(l, i, "{");
    depth -= is(l, i, "}");
    size_t at = i + 1;
    if (!is(l, i, "threadgroup")) continue;
    while (is_name(l, at))
      at++;
    bool array = is(l, at, "[") || is(l, at, ";");
    if (array && (!f->is_kernel || depth != 1))
      told(l, at - 1, "a threadgroup array that is not in the outermost block of a kernel");
  }
}

static bool same(const Token *a, const Token *b) { return a->n == b->n && !memcmp(a->at, b->at, a->n); }

/* Visits calls depth first. A function that is met while it is open calls itself. */
static void calls_checked(Lint *l, Function *f) {
  f->visited = f->open = true;
  for (size_t i = f->body; i < f->end && !l->st; i++) {
    if (!is_name(l, i) || !is(l, i + 1, "(")) continue;
    for (size_t k = 0; k < l->functions.len; k++) {
      Function *g = &l->functions.at[k];
      if (!same(token(l, i), token(l, g->name))) continue;
      if (g->open) told(l, i, "a function that calls itself");
      if (!g->visited) calls_checked(l, g);
    }
  }
  f->open = false;
}

TgStatus metal_lint(TgMem *mem, const char *text, TgError *err) {
  Lint l = {.mem = mem, .err = err};
  map_init(&l.types, mem);
  if (!tokens_read(&l, text) || !types_found(&l)) l.st = error_set(err, TG_ERR_NOMEM, "METAL: out of memory");
  if (!l.st) words_checked(&l);
  if (!l.st) pointers_checked(&l);
  if (!l.st && !functions_found(&l)) l.st = error_set(err, TG_ERR_NOMEM, "METAL: out of memory");
  for (size_t i = 0; i < l.functions.len && !l.st; i++) {
    arrays_checked(&l, &l.functions.at[i]);
    if (!l.functions.at[i].visited) calls_checked(&l, &l.functions.at[i]);
  }
  vec_free(mem, &l.tokens), vec_free(mem, &l.functions), map_free(&l.types);
  return l.st;
}
