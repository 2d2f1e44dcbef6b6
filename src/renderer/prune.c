/* prune.c: reduces the prelude of C to the part that some kernels use. In: the text of the prelude and of the
 * kernels. Out: the prelude without the helper functions that are not called, because reading them is a third
 * of a C compiler's work on a small kernel. Everything that is not a function (types, macros, conditions)
 * stays. */
#include "renderer/renderer.h"
#include <ctype.h>
#include <string.h>

/* the functions that DIVS(type) defines: cdiv_type .. */
static const char *const divisions[] = {"cdiv", "cmod", "floordiv", "floormod", "shl", "shr"};
/* the functions that SATS(float) defines: i8_float .. */
static const char *const integers[] = {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"};

/* a line, or all lines of one definition */
typedef struct Line {
  const char *at;
  size_t n;
  bool dropped;
} Line;

typedef struct Prune {
  Map used;
  TgMem *mem;
  bool oom;
} Prune;

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void use_words(Prune *p, const char *s, size_t n) {
  for (size_t i = 0, len; i < n; i += len) {
    for (len = 0; i + len < n && in_word(s[i + len]); len++) {}
    if (len && !isdigit((unsigned char)s[i]) && !map_put(&p->used, hash_bytes(5, s + i, len), 1))
      p->oom = true;
    len += len == 0;
  }
}

static bool is_used(const Prune *p, const char *word, size_t n) {
  uint64_t v;
  return map_get(&p->used, hash_bytes(5, word, n), &v);
}

static bool any_used(const Prune *p, const char *const *names, size_t n, const char *type, size_t ntype) {
  char word[64];
  for (size_t i = 0; i < n; i++) {
    size_t len = strlen(names[i]);
    if (len + ntype + 2 > sizeof word) return true;
    memcpy(word, names[i], len);
    word[len] = '_';
    memcpy(word + len + 1, type, ntype);
    if (is_used(p, word, len + 1 + ntype)) return true;
  }
  return false;
}

static bool begins(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

static bool is_function(const char *s) {
  return begins(s, "INL ") || begins(s, "DIVS(") || begins(s, "SATS(");
}

static bool is_needed(const Prune *p, const char *s) {
  const char *open = strchr(s, '('), *name = open;
  if (!open) return true;
  size_t narg = strcspn(open + 1, ",)");
  if (begins(s, "DIVS(")) return any_used(p, divisions, TG_COUNT(divisions), open + 1, narg);
  if (begins(s, "SATS(")) return any_used(p, integers, TG_COUNT(integers), open + 1, narg);
  while (name > s && in_word(name[-1]))
    name--;
  return is_used(p, name, (size_t)(open - name));
}

static size_t definition_bytes(const char *s) { /* the bytes to the end of its last line */
  const char *end = strchr(s, '\n');
  while (end && end > s && end[-1] == '\\')
    end = strchr(end + 1, '\n');
  if (begins(s, "INL ") && end && end[-1] != '}')
    end = strstr(end, "\n}\n") ? strstr(end, "\n}\n") + 2 : NULL;
  return end ? (size_t)(end - s) + 1 : strlen(s);
}

bool prelude_prune(Str *out, const char *prelude, const char *const *sources, int n) {
  Prune p = {.mem = out->mem};
  Vec(Line) lines = {0};
  map_init(&p.used, p.mem);
  for (int i = 0; i < n; i++)
    use_words(&p, sources[i], strlen(sources[i]));
  for (const char *s = prelude; *s && !p.oom; s += lines.at[lines.len - 1].n)
    if (!vec_push(p.mem, &lines, ((Line){s, definition_bytes(s), false}))) {
      p.oom = true;
      break;
    }
  /* backwards, because a helper calls only helpers before it */
  for (size_t i = lines.len; !p.oom && i-- > 0;) {
    Line *l = &lines.at[i];
    l->dropped = is_function(l->at) && !is_needed(&p, l->at);
    if (is_function(l->at) && !l->dropped) use_words(&p, l->at, l->n);
  }
  /* the functions that DIVS and SATS define call nothing else of the prelude */
  for (size_t i = 0; !p.oom && i < lines.len; i++)
    if (!lines.at[i].dropped) str_putn(out, lines.at[i].at, lines.at[i].n);
  vec_free(p.mem, &lines);
  map_free(&p.used);
  return !p.oom && !out->oom;
}
