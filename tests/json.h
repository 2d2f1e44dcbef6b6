/* json.h: JSON as far as tg_abi.json goes: a value is found by walking, a list is walked with each_of. */
#ifndef TG_TESTS_JSON_H
#define TG_TESTS_JSON_H
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static inline const char *skip_string(const char *p) {
  for (p++; *p != '"'; p++)
    if (*p == '\\') p++;
  return p + 1;
}

static inline const char *skip_value(const char *p) {
  if (*p == '"') return skip_string(p);
  if (*p != '{' && *p != '[') return p + strcspn(p, ",]} \n");
  int depth = 0;
  do {
    if (*p == '"') {
      p = skip_string(p);
      continue;
    }
    depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']'), p++;
  } while (depth);
  return p;
}

static inline const char *blank(const char *p) { return p + strspn(p, " \n,:"); }

/* of an object or a list; NULL: nothing */
static inline const char *inside(const char *v) { return v ? blank(v + 1) : ""; }

static inline const char *member(const char *object, const char *key) { /* the value of key, or NULL */
  const char *p = inside(object);
  while (*p == '"') {
    const char *end = skip_string(p), *value = blank(end);
    if (strlen(key) == (size_t)(end - p - 2) && !memcmp(p + 1, key, strlen(key))) return value;
    p = blank(skip_value(value));
  }
  return NULL;
}

/* for each_of(list, p) { .. } */
#define each_of(list, p) (const char *p = inside(list); *p == '{'; p = blank(skip_value(p)))

/* the object of the list whose "name" it is */
static inline const char *named(const char *list, const char *name) {
  for
    each_of(list, p) {
      const char *v = member(p, "name");
      if (v && !strncmp(v + 1, name, strlen(name)) && v[1 + strlen(name)] == '"') return p;
    }
  return NULL;
}

static inline void text_of(const char *v, char *to, size_t cap) {
  const char *end = skip_string(v);
  snprintf(to, cap, "%.*s", (int)(end - v - 2), v + 1);
}
#endif
