/* read_options.c: how a caller's options are read. In: a pointer to the caller's struct, which may be
 * older or newer than this library. Out: a copy in this library's version of the struct; and which fields
 * were written although they are 0. */
#include "tensor/front.h"

/* Returns the end of one entry of `set`: a comma outside brackets and quotes. */
static const char *entry_end(const char *s) {
  int depth = 0;
  for (; *s && (*s != ',' || depth > 0); s++) {
    if (*s == '"' || *s == '\'') {
      char quote = *s++;
      while (*s && *s != quote)
        s += *s == '\\' && s[1] ? 2 : 1;
      if (!*s) break;
    }
    depth += (*s == '(' || *s == '[' || *s == '{') - (*s == ')' || *s == ']' || *s == '}');
  }
  return s;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns what follows the field's name in the entry of that field. NULL: there is no such entry. */
static const char *entry_of(const char *set, const char *field) {
  size_t n = strlen(field);
  for (const char *s = set; s && *s; s = *(s = entry_end(s)) ? s + 1 : s) {
    s += strspn(s, " \t\n");
    if (*s != '.') continue;
    const char *name = s + 1 + strspn(s + 1, " \t\n");
    if (!strncmp(name, field, n) && !is_word(name[n])) return name + n;
  }
  return NULL;
}

bool tg_option_written(const char *set, const char *field) { return field && entry_of(set, field); }

/* Detects ".axis = 0". In C this sets the first value of the list, but leaves the list without a value. */
static bool is_bare_zero(const char *set, const char *field) {
  const char *s = entry_of(set, field), *end = s ? entry_end(s) : NULL;
  if (!s || *(s += strspn(s, " \t\n")) != '=') return false;
  s += 1 + strspn(s + 1, " \t\n");
  return s < end && *s == '0' && s + 1 + strspn(s + 1, " \t\n") == end;
}

static TgStatus lists_written(TgContext *ctx, const char *function, const char *type, const char *set) {
  static const struct {
    const char *field, *form;
  } lists[] = {{"axis", "TG_AXES(0)"},
               {"kernel", "TG_SIZES(0)"},
               {"stride", "TG_SIZES(0)"},
               {"dilation", "TG_SIZES(0)"}};

  for (size_t i = strcmp(type, "TgNormalizeOptions") ? 0 : 1; i < TG_COUNT(lists);
       i++) /* its axis is an int */
    TG_REQUIRE_OR(ctx, !is_bare_zero(set, lists[i].field), TG_ERR_VALUE, TG_ERR_VALUE,
                  "%s: .%s = 0 is a list without a value: write .%s = %s", function, lists[i].field,
                  lists[i].field, lists[i].form);
  return TG_OK;
}

TgStatus tg_options_read(TgContext *ctx, const char *function, const char *type, void *to, size_t size,
                         const void *options) {
  size_t given = 0, set_end = sizeof given + sizeof(char *);
  const char *set = NULL;
  memset(to, 0, size);
  if (options) {
    memcpy(&given, options, sizeof given);
    if (!given && ctx)
      error_set(&ctx->err, TG_ERR_VALUE,
                "%s: the size of the %s is 0: write TG_WITH(%s, ..) for it, or .size = sizeof(%s)", function,
                type, type, type);
    if (!given) return TG_ERR_VALUE;
    memcpy(to, options, TG_MIN(given, size));
  }
  memcpy(to, &size, sizeof size);
  if (given >= set_end) memcpy(&set, (const char *)to + sizeof size, sizeof set);
  return ctx && set ? lists_written(ctx, function, type, set) : TG_OK;
}
