/* jinja_call.c: what templates call: filters, tests, methods of strings, lists and maps, and functions. Each
 * has a name in one of four tables; any other name is an error. */
#include "jinja.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>

/* ---- helpers */
static bool blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static JValue *need(Jinja *j, const JArguments *a, size_t place, const char *name) {
  JValue *v = j_argument(a, place, name);
  if (!v) j_fail(j, TG_ERR_VALUE, "the argument '%s' is missing", name);
  return v;
}

static JValue *need_string(Jinja *j, const JArguments *a, size_t place, const char *name) {
  JValue *v = need(j, a, place, name);
  if (v->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "the argument '%s' is no string", name);
  return v;
}

static int64_t whole_or(Jinja *j, const JArguments *a, size_t place, const char *name, int64_t otherwise) {
  JValue *v = j_argument(a, place, name);
  if (!v || v->kind == J_NONE) return otherwise;
  if (v->kind != J_INT && v->kind != J_BOOL)
    j_fail(j, TG_ERR_VALUE, "the argument '%s' is no whole number", name);
  return v->u.i;
}

static bool among(char c, const JValue *set) {
  return set && set->kind == J_STRING ? memchr(set->u.s, c, set->n) != NULL : blank(c);
}

/* sides: 1 left, 2 right, 3 both */
static JValue *stripped(Jinja *j, JValue *v, const JValue *set, int sides) {
  size_t begin = 0, end = v->n;
  while ((sides & 1) && begin < end && among(v->u.s[begin], set))
    begin++;
  while ((sides & 2) && end > begin && among(v->u.s[end - 1], set))
    end--;
  return j_string(j, v->u.s + begin, end - begin);
}

/* how: u upper, l lower, t title, c capitalized. Only ASCII letters change. */
static JValue *cased(Jinja *j, JValue *v, char how) {
  JValue *out = j_string(j, v->u.s, v->n);
  char *s = (char *)(uintptr_t)out->u.s;
  bool begin = true;
  for (size_t i = 0; i < out->n; i++) {
    bool lower = s[i] >= 'a' && s[i] <= 'z', upper = s[i] >= 'A' && s[i] <= 'Z';
    bool up = how == 'u' || ((how == 't' || how == 'c') && begin);
    if (lower && up) s[i] = (char)(s[i] - 32);
    if (upper && !up) s[i] = (char)(s[i] + 32);
    begin = how == 't' ? !(lower || upper || (unsigned char)s[i] >= 0x80) : false;
  }
  return out;
}

/* the place of `part` in s at or after `at`; SIZE_MAX: none */
static size_t find_text(const JValue *s, size_t at, const JValue *part) {
  for (; at + part->n <= s->n; at++)
    if (!memcmp(s->u.s + at, part->u.s, part->n)) return at;
  return SIZE_MAX;
}

static JValue *replaced(Jinja *j, JValue *s, const JValue *from, const JValue *to, int64_t most) {
  LlmText *t = j_buffer(j);
  size_t at = 0;
  j_step(j, (int64_t)(s->n / 64));
  for (size_t next; from->n && most != 0 && (next = find_text(s, at, from)) != SIZE_MAX; most--) {
    j_step(j, 1);
    j_buffer_put(j, t, s->u.s + at, next - at);
    j_buffer_put(j, t, to->u.s, to->n);
    at = next + from->n;
  }
  j_buffer_put(j, t, s->u.s + at, s->n - at);
  return j_text(j, t);
}

static JValue *pair(Jinja *j, JValue *a, JValue *b) {
  JValue *v = j_value(j, J_LIST);
  v->tuple = true;
  j_append(j, v, a), j_append(j, v, b);
  return v;
}

/* what: i items, k keys, v values */
static JValue *of_map(Jinja *j, const JValue *m, char what) {
  JValue *list = j_value(j, J_LIST);
  if (m->kind == J_UNDEFINED) return list;
  if (m->kind != J_MAP && m->kind != J_NAMESPACE) j_fail(j, TG_ERR_VALUE, "items of what is no map");
  for (size_t i = 0; i < m->n; i++) {
    JPair *p = &m->u.pair[i];
    j_step(j, 1);
    j_append(j, list, what == 'k' ? p->key : what == 'v' ? p->value : pair(j, p->key, p->value));
  }
  return list;
}

/* Sorts items by an attribute, by element `by` of each item, or by themselves. It is an insertion sort; each
 * step is counted. */
static JValue *ordered(Jinja *j, JValue *list, const JValue *attribute, bool down, size_t by) {
  JValue *out = j_value(j, J_LIST);
  for (size_t i = 0; i < list->n; i++) {
    j_append(j, out, list->u.at[i]);
    for (size_t k = i; k > 0; k--) {
      JValue *a = out->u.at[k - 1], *b = out->u.at[k], *x = a, *y = b;
      if (attribute)
        x = j_attribute(j, a, attribute->u.s, attribute->n),
        y = j_attribute(j, b, attribute->u.s, attribute->n);
      if (by != SIZE_MAX) x = a->u.at[by], y = b->u.at[by];
      j_step(j, 1);
      int c = j_compare(j, x, y);
      if (down ? c >= 0 : c <= 0) break;
      out->u.at[k - 1] = b;
      out->u.at[k] = a;
    }
  }
  return out;
}

/* ---- filters */
typedef JValue *(*FilterFn)(Jinja *j, JValue *v, const JArguments *a);

static JValue *f_tojson(Jinja *j, JValue *v, const JArguments *a) {
  LlmText *t = j_buffer(j);
  int64_t indent = whole_or(j, a, 1, "indent", -1);
  if (indent > 16) j_fail(j, TG_ERR_VALUE, "tojson: an indent of %lld", (long long)indent);
  j_json(j, t, v, (int)(indent < -1 ? -1 : indent), 0);
  return j_text(j, t);
}

static JValue *f_length(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return j_int(j, j_length(j, v));
}

static JValue *f_trim(Jinja *j, JValue *v, const JArguments *a) {
  return stripped(j, j_to_string(j, v), j_argument(a, 0, "chars"), 3);
}

static JValue *f_string(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return j_to_string(j, v);
}

static JValue *f_same(Jinja *j, JValue *v, const JArguments *a) {
  (void)j, (void)a;
  return v;
}

static JValue *f_items(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return of_map(j, v, 'i');
}

static JValue *f_join(Jinja *j, JValue *v, const JArguments *a) {
  JValue *list = j_as_list(j, v), *by = j_argument(a, 0, "d"), *attribute = j_argument(a, 1, "attribute");
  LlmText *t = j_buffer(j);
  for (size_t i = 0; i < list->n; i++) {
    if (i && by) j_write(j, t, by, false);
    j_write(j, t, attribute ? j_item(j, list->u.at[i], attribute) : list->u.at[i], false);
  }
  return j_text(j, t);
}

static JValue *f_default(Jinja *j, JValue *v, const JArguments *a) {
  JValue *other = j_argument(a, 0, "default_value"), *falsy = j_argument(a, 1, "boolean");
  bool wanted = v->kind == J_UNDEFINED || (falsy && j_true(falsy) && !j_true(v));
  return !wanted ? v : other ? other : j_string(j, "", 0);
}

static JValue *f_list(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  JValue *list = j_as_list(j, v), *copy = j_value(j, J_LIST);
  for (size_t i = 0; i < list->n; i++)
    j_append(j, copy, list->u.at[i]);
  j_step(j, (int64_t)list->n);
  return copy;
}

/* the arguments from the n-th on */
static JArguments rest(const JArguments *a, size_t n) {
  n = n < a->n ? n : a->n;
  return (JArguments){a->at + n, a->n - n, a->name + n};
}

/* select, reject: by a test of the item; selectattr, rejectattr: by a test of one of its attributes */
static JValue *selected(Jinja *j, JValue *v, const JArguments *a, bool attribute, bool keep) {
  JValue *list = j_as_list(j, v), *out = j_value(j, J_LIST);
  JValue *by = attribute ? need_string(j, a, 0, "attribute") : NULL;
  JValue *test = j_argument(a, attribute, "test");
  JArguments more = rest(a, (size_t)attribute + 1);
  if (test && test->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "the name of a test is no string");
  for (size_t i = 0; i < list->n; i++) {
    JValue *item = by ? j_item(j, list->u.at[i], by) : list->u.at[i];
    j_step(j, 1);
    if ((test ? j_test(j, test->u.s, item, &more) : j_true(item)) == keep) j_append(j, out, list->u.at[i]);
  }
  return out;
}

static JValue *f_selectattr(Jinja *j, JValue *v, const JArguments *a) {
  return selected(j, v, a, true, true);
}

static JValue *f_rejectattr(Jinja *j, JValue *v, const JArguments *a) {
  return selected(j, v, a, true, false);
}

static JValue *f_select(Jinja *j, JValue *v, const JArguments *a) { return selected(j, v, a, false, true); }

static JValue *f_reject(Jinja *j, JValue *v, const JArguments *a) { return selected(j, v, a, false, false); }

static JValue *f_map(Jinja *j, JValue *v, const JArguments *a) {
  JValue *list = j_as_list(j, v), *out = j_value(j, J_LIST), *by = j_argument(a, SIZE_MAX, "attribute");
  JValue *otherwise = j_argument(a, SIZE_MAX, "default");
  JValue *name = by ? NULL : need_string(j, a, 0, "filter");
  JArguments more = rest(a, 1);
  j_enter(j);
  for (size_t i = 0; i < list->n; i++) {
    JValue *item = by ? j_item(j, list->u.at[i], by) : j_filter(j, name->u.s, list->u.at[i], &more);
    j_step(j, 1);
    j_append(j, out, item->kind == J_UNDEFINED && otherwise ? otherwise : item);
  }
  j->depth--;
  return out;
}

static JValue *f_dictsort(Jinja *j, JValue *v, const JArguments *a) {
  JValue *by = j_argument(a, 1, "by"), *down = j_argument(a, 2, "reverse");
  return ordered(j, of_map(j, v, 'i'), NULL, down && j_true(down), by && j_is(by, "value") ? 1 : 0);
}

static JValue *f_sort(Jinja *j, JValue *v, const JArguments *a) {
  JValue *down = j_argument(a, 0, "reverse"), *by = j_argument(a, 2, "attribute");
  if (by && by->kind != J_STRING) by = NULL;
  return ordered(j, j_as_list(j, v), by, down && j_true(down), SIZE_MAX);
}

static JValue *f_lower(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return cased(j, j_to_string(j, v), 'l');
}

static JValue *f_upper(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return cased(j, j_to_string(j, v), 'u');
}

static JValue *f_title(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return cased(j, j_to_string(j, v), 't');
}

static JValue *f_capitalize(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  return cased(j, j_to_string(j, v), 'c');
}

static JValue *f_replace(Jinja *j, JValue *v, const JArguments *a) {
  JValue *from = need_string(j, a, 0, "old"), *to = need_string(j, a, 1, "new");
  return replaced(j, j_to_string(j, v), from, to, whole_or(j, a, 2, "count", -1));
}

static JValue *f_from_json(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  if (v->kind != J_STRING) j_fail(j, TG_ERR_VALUE, "from_json of what is no string");
  return j_from_json(j, v->u.s, v->n);
}

static JValue *f_first(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  JValue *list = j_as_list(j, v);
  return list->n ? list->u.at[0] : j_value(j, J_UNDEFINED);
}

static JValue *f_last(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  JValue *list = j_as_list(j, v);
  return list->n ? list->u.at[list->n - 1] : j_value(j, J_UNDEFINED);
}

static JValue *f_reverse(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  JValue *list = j_as_list(j, v), *out = j_value(j, J_LIST);
  for (size_t i = list->n; i-- > 0;)
    j_append(j, out, list->u.at[i]);
  j_step(j, (int64_t)list->n);
  return v->kind == J_STRING ? f_join(j, out, &(JArguments){0}) : out;
}

static JValue *f_unique(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  JValue *list = j_as_list(j, v), *out = j_value(j, J_LIST);
  for (size_t i = 0; i < list->n; i++) {
    bool there = false;
    for (size_t k = 0; k < out->n && !there; k++) {
      j_step(j, 1);
      there = j_equal(j, out->u.at[k], list->u.at[i]);
    }
    if (!there) j_append(j, out, list->u.at[i]);
  }
  return out;
}

static JValue *f_int(Jinja *j, JValue *v, const JArguments *a) {
  int64_t otherwise = whole_or(j, a, 0, "default", 0);
  if (v->kind == J_INT || v->kind == J_BOOL) return j_int(j, v->u.i);
  if (v->kind == J_FLOAT) return j_int(j, fabs(v->u.f) < 9e18 ? (int64_t)v->u.f : otherwise);
  if (v->kind != J_STRING) return j_int(j, otherwise);
  char *end;
  long long i = strtoll(v->u.s, &end, 10);
  return j_int(j, end == v->u.s || *end ? otherwise : i);
}

static JValue *f_float(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  if (v->kind == J_STRING) return j_float(j, strtod(v->u.s, NULL));
  return j_float(j, j_number(j, v));
}

static JValue *f_abs(Jinja *j, JValue *v, const JArguments *a) {
  (void)a;
  double f = j_number(j, v);
  return v->kind == J_FLOAT ? j_float(j, fabs(f))
                            : j_int(j, v->u.i < 0 && v->u.i > INT64_MIN ? -v->u.i : v->u.i);
}

static JValue *f_indent(Jinja *j, JValue *v, const JArguments *a) {
  int64_t n = whole_or(j, a, 0, "width", 4);
  JValue *first = j_argument(a, 1, "first"), *s = j_to_string(j, v);
  LlmText *t = j_buffer(j);
  bool begin = first && j_true(first);
  for (size_t i = 0; i < s->n; i++) {
    for (int64_t k = 0; begin && k < n && s->u.s[i] != '\n'; k++)
      j_buffer_put(j, t, " ", 1), j_step(j, 1);
    j_buffer_put(j, t, s->u.s + i, 1);
    begin = s->u.s[i] == '\n';
  }
  return j_text(j, t);
}

typedef struct Filter {
  const char *name;
  FilterFn fn;
} Filter;

static const Filter filters[] = {{"tojson", f_tojson},
                                 {"length", f_length},
                                 {"count", f_length},
                                 {"trim", f_trim},
                                 {"string", f_string},
                                 {"items", f_items},
                                 {"join", f_join},
                                 {"default", f_default},
                                 {"d", f_default},
                                 {"list", f_list},
                                 {"safe", f_same},
                                 {"selectattr", f_selectattr},
                                 {"rejectattr", f_rejectattr},
                                 {"select", f_select},
                                 {"reject", f_reject},
                                 {"map", f_map},
                                 {"dictsort", f_dictsort},
                                 {"sort", f_sort},
                                 {"lower", f_lower},
                                 {"upper", f_upper},
                                 {"title", f_title},
                                 {"capitalize", f_capitalize},
                                 {"replace", f_replace},
                                 {"from_json", f_from_json},
                                 {"fromjson", f_from_json},
                                 {"first", f_first},
                                 {"last", f_last},
                                 {"reverse", f_reverse},
                                 {"unique", f_unique},
                                 {"int", f_int},
                                 {"float", f_float},
                                 {"abs", f_abs},
                                 {"indent", f_indent}};

JValue *j_filter(Jinja *j, const char *name, JValue *v, const JArguments *a) {
  for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
    if (!strcmp(filters[i].name, name)) return filters[i].fn(j, v, a);
  j_fail(j, TG_ERR_VALUE, "no filter '%.60s' is known here", name);
}

/* ---- tests */
typedef enum Test {
  IS_DEFINED,
  IS_UNDEFINED,
  IS_NONE,
  IS_STRING,
  IS_NUMBER,
  IS_INTEGER,
  IS_FLOAT,
  IS_BOOLEAN,
  IS_TRUE,
  IS_FALSE,
  IS_MAPPING,
  IS_ITERABLE,
  IS_SEQUENCE,
  IS_CALLABLE,
  IS_EQUAL,
  IS_UNEQUAL,
  IS_LESS,
  IS_GREATER,
  IS_IN,
  IS_ODD,
  IS_EVEN,
  IS_DIVISIBLE
} Test;

static const struct {
  const char *name;
  Test test;
} tests[] = {{"defined", IS_DEFINED},
             {"undefined", IS_UNDEFINED},
             {"none", IS_NONE},
             {"string", IS_STRING},
             {"number", IS_NUMBER},
             {"integer", IS_INTEGER},
             {"float", IS_FLOAT},
             {"boolean", IS_BOOLEAN},
             {"true", IS_TRUE},
             {"false", IS_FALSE},
             {"mapping", IS_MAPPING},
             {"iterable", IS_ITERABLE},
             {"sequence", IS_SEQUENCE},
             {"callable", IS_CALLABLE},
             {"equalto", IS_EQUAL},
             {"eq", IS_EQUAL},
             {"==", IS_EQUAL},
             {"sameas", IS_EQUAL},
             {"ne", IS_UNEQUAL},
             {"!=", IS_UNEQUAL},
             {"lt", IS_LESS},
             {"lessthan", IS_LESS},
             {"gt", IS_GREATER},
             {"greaterthan", IS_GREATER},
             {"in", IS_IN},
             {"odd", IS_ODD},
             {"even", IS_EVEN},
             {"divisibleby", IS_DIVISIBLE}};

static int64_t remainder_of(Jinja *j, const JValue *v, int64_t by) {
  if ((v->kind != J_INT && v->kind != J_BOOL) || !by)
    j_fail(j, TG_ERR_VALUE, "a test of what is no whole number");
  return by == -1 ? 0 : v->u.i % by;
}

static bool in_list(Jinja *j, JValue *v, JValue *list) {
  if (list->kind == J_STRING) return v->kind == J_STRING && find_text(list, 0, v) != SIZE_MAX;
  list = j_as_list(j, list);
  for (size_t i = 0; i < list->n; i++)
    if (j_equal(j, list->u.at[i], v)) return true;
  return false;
}

static bool test_of(Jinja *j, Test t, JValue *v, const JArguments *a) {
  JKind k = v->kind;
  switch (t) {
  case IS_DEFINED: return k != J_UNDEFINED;
  case IS_UNDEFINED: return k == J_UNDEFINED;
  case IS_NONE: return k == J_NONE;
  case IS_STRING: return k == J_STRING;
  case IS_NUMBER: return k == J_INT || k == J_FLOAT || k == J_BOOL;
  case IS_INTEGER: return k == J_INT;
  case IS_FLOAT: return k == J_FLOAT;
  case IS_BOOLEAN: return k == J_BOOL;
  case IS_TRUE: return k == J_BOOL && v->u.i;
  case IS_FALSE: return k == J_BOOL && !v->u.i;
  case IS_MAPPING: return k == J_MAP;
  case IS_ITERABLE: return k == J_LIST || k == J_MAP || k == J_STRING || k == J_UNDEFINED;
  case IS_SEQUENCE: return k == J_LIST || k == J_MAP || k == J_STRING || k == J_UNDEFINED;
  case IS_CALLABLE: return k == J_MACRO || k == J_FUNCTION;
  case IS_EQUAL: return j_equal(j, v, need(j, a, 0, "other"));
  case IS_UNEQUAL: return !j_equal(j, v, need(j, a, 0, "other"));
  case IS_LESS: return j_compare(j, v, need(j, a, 0, "other")) < 0;
  case IS_GREATER: return j_compare(j, v, need(j, a, 0, "other")) > 0;
  case IS_IN: return in_list(j, v, need(j, a, 0, "seq"));
  case IS_ODD: return remainder_of(j, v, 2) != 0;
  case IS_EVEN: return remainder_of(j, v, 2) == 0;
  default: return remainder_of(j, v, whole_or(j, a, 0, "num", 0)) == 0;
  }
}

bool j_test(Jinja *j, const char *name, JValue *v, const JArguments *a) {
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
    if (!strcmp(tests[i].name, name)) return test_of(j, tests[i].test, v, a);
  j_fail(j, TG_ERR_VALUE, "no test '%.60s' is known here", name);
}

/* ---- methods */
static JValue *split(Jinja *j, JValue *s, const JArguments *a) {
  JValue *by = j_argument(a, 0, "sep"), *out = j_value(j, J_LIST);
  int64_t most = whole_or(j, a, 1, "maxsplit", -1);
  size_t at = 0;
  bool plain = !by || by->kind == J_NONE;
  if (!plain && (by->kind != J_STRING || !by->n)) j_fail(j, TG_ERR_VALUE, "split: an empty separator");
  j_step(j, (int64_t)(s->n / 64));
  for (; plain; most--) {
    while (at < s->n && blank(s->u.s[at]))
      at++;
    size_t end = at;
    while (end < s->n && (most == 0 || !blank(s->u.s[end])))
      end++;
    if (at == end) return out;
    j_append(j, out, j_string(j, s->u.s + at, end - at));
    at = end;
    j_step(j, 1);
  }
  for (size_t next; most != 0 && (next = find_text(s, at, by)) != SIZE_MAX; most--) {
    j_append(j, out, j_string(j, s->u.s + at, next - at));
    at = next + by->n;
    j_step(j, 1);
  }
  j_append(j, out, j_string(j, s->u.s + at, s->n - at));
  return out;
}

/* splits from the right; requires a separator */
static JValue *rsplit(Jinja *j, JValue *s, const JArguments *a) {
  JValue *by = need_string(j, a, 0, "sep"), *back = j_value(j, J_LIST);
  int64_t most = whole_or(j, a, 1, "maxsplit", -1);
  size_t end = s->n;
  if (!by->n) j_fail(j, TG_ERR_VALUE, "rsplit: an empty separator");
  for (size_t i = s->n; most != 0 && i >= by->n; i--) {
    j_step(j, 1);
    if (i > end || memcmp(s->u.s + i - by->n, by->u.s, by->n)) continue;
    j_append(j, back, j_string(j, s->u.s + i, end - i));
    end = i - by->n;
    most--;
  }
  j_append(j, back, j_string(j, s->u.s, end));
  return f_reverse(j, back, a);
}

static bool bordered(const JValue *s, const JValue *part, bool begin) {
  return part->kind == J_STRING && part->n <= s->n &&
         !memcmp(begin ? s->u.s : s->u.s + s->n - part->n, part->u.s, part->n);
}

static JValue *borders(Jinja *j, JValue *s, const JArguments *a, bool begin) {
  JValue *part = need(j, a, 0, "prefix");
  bool is = part->kind == J_STRING && bordered(s, part, begin);
  for (size_t i = 0; part->kind == J_LIST && i < part->n; i++)
    is = is || bordered(s, part->u.at[i], begin);
  return j_bool(j, is);
}

static JValue *string_method(Jinja *j, JValue *s, const char *m, const JArguments *a) {
  JValue *set = j_argument(a, 0, "chars");
  if (!strcmp(m, "split")) return split(j, s, a);
  if (!strcmp(m, "rsplit")) return rsplit(j, s, a);
  if (!strcmp(m, "strip")) return stripped(j, s, set, 3);
  if (!strcmp(m, "lstrip")) return stripped(j, s, set, 1);
  if (!strcmp(m, "rstrip")) return stripped(j, s, set, 2);
  if (!strcmp(m, "startswith")) return borders(j, s, a, true);
  if (!strcmp(m, "endswith")) return borders(j, s, a, false);
  if (!strcmp(m, "upper")) return cased(j, s, 'u');
  if (!strcmp(m, "lower")) return cased(j, s, 'l');
  if (!strcmp(m, "title")) return cased(j, s, 't');
  if (!strcmp(m, "capitalize")) return cased(j, s, 'c');
  if (!strcmp(m, "replace")) return f_replace(j, s, a);
  if (!strcmp(m, "join"))
    return f_join(j, need(j, a, 0, "iterable"), &(JArguments){&s, 1, &(const char *){NULL}});
  if (strcmp(m, "find") && strcmp(m, "count")) return NULL;
  JValue *part = need_string(j, a, 0, "sub");
  size_t at = find_text(s, 0, part);
  if (*m == 'f') return j_int(j, at == SIZE_MAX ? -1 : j_length(j, j_string(j, s->u.s, at)));
  int64_t n = 0;
  for (; part->n && at != SIZE_MAX; at = find_text(s, at + part->n, part))
    n++;
  return j_int(j, n);
}

static JValue *list_method(Jinja *j, JValue *l, const char *m, const JArguments *a) {
  if (!strcmp(m, "append")) {
    j_append(j, l, need(j, a, 0, "item"));
    return j_value(j, J_NONE);
  }
  if (!strcmp(m, "extend")) {
    JValue *more = j_as_list(j, need(j, a, 0, "items"));
    for (size_t i = 0, n = more->n; i < n; i++)
      j_append(j, l, more->u.at[i]), j_step(j, 1);
    return j_value(j, J_NONE);
  }
  if (strcmp(m, "pop")) return NULL;
  int64_t i = whole_or(j, a, 0, "index", -1), n = (int64_t)l->n;
  if (i < 0) i += n;
  if (i < 0 || i >= n) j_fail(j, TG_ERR_VALUE, "pop: no such item");
  JValue *v = l->u.at[i];
  memmove(l->u.at + i, l->u.at + i + 1, (size_t)(n - i - 1) * sizeof *l->u.at);
  l->n--;
  return v;
}

static JValue *map_method(Jinja *j, JValue *m, const char *name, const JArguments *a) {
  if (!strcmp(name, "items")) return of_map(j, m, 'i');
  if (!strcmp(name, "keys")) return of_map(j, m, 'k');
  if (!strcmp(name, "values")) return of_map(j, m, 'v');
  if (!strcmp(name, "update")) {
    JValue *more = need(j, a, 0, "other");
    if (more->kind != J_MAP) j_fail(j, TG_ERR_VALUE, "update: this is no map");
    for (size_t i = 0; i < more->n; i++)
      j_put(j, m, more->u.pair[i].key, more->u.pair[i].value);
    return j_value(j, J_NONE);
  }
  bool get = !strcmp(name, "get"), pop = !strcmp(name, "pop");
  if (!get && !pop) return NULL;
  JValue *key = need(j, a, 0, "key"), *v = j_find(j, m, key), *other = j_argument(a, 1, "default");
  for (size_t i = 0; pop && v && i < m->n; i++)
    if (m->u.pair[i].value == v && j_equal(j, m->u.pair[i].key, key)) {
      memmove(m->u.pair + i, m->u.pair + i + 1, (m->n - i - 1) * sizeof *m->u.pair);
      m->n--;
    }
  return v ? v : other ? other : j_value(j, J_NONE);
}

bool j_method(Jinja *j, JValue *of, const char *name, const JArguments *a, JValue **out) {
  if (of->kind == J_UNDEFINED) j_fail(j, TG_ERR_VALUE, "'%.60s' of what is undefined", name);
  *out = of->kind == J_STRING                           ? string_method(j, of, name, a)
         : of->kind == J_LIST                           ? list_method(j, of, name, a)
         : of->kind == J_MAP || of->kind == J_NAMESPACE ? map_method(j, of, name, a)
                                                        : NULL;
  return *out != NULL;
}

/* ---- functions */
static const char *const functions[] = {"raise_exception", "strftime_now", "range", "namespace", "dict"};

bool j_is_function(const char *name, size_t n) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strlen(functions[i]) == n && !memcmp(functions[i], name, n)) return true;
  return false;
}

static JValue *range(Jinja *j, const JArguments *a) {
  int64_t from = 0, to = whole_or(j, a, 0, "stop", 0), by = whole_or(j, a, 2, "step", 1);
  if (a->n > 1) {
    from = to;
    to = whole_or(j, a, 1, "stop", 0);
  }
  if (!by) j_fail(j, TG_ERR_VALUE, "range: a step of 0");
  JValue *list = j_value(j, J_LIST);
  for (int64_t i = from; by > 0 ? i < to : i > to;) {
    j_step(j, 1);
    j_append(j, list, j_int(j, i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  return list;
}

static JValue *now(Jinja *j, const JArguments *a) {
  JValue *format = need_string(j, a, 0, "format");
  char text[200] = "";
  time_t t = j->now ? (time_t)j->now : time(NULL);
  struct tm tm;
  if (!gmtime_r(&t, &tm)) j_fail(j, TG_ERR_VALUE, "strftime_now: no such time");
  if (format->n > 60) j_fail(j, TG_ERR_VALUE, "strftime_now: a format of %zu bytes", format->n);
  size_t n = format->n ? strftime(text, sizeof text, format->u.s, &tm) : 0;
  return j_string(j, text, n);
}

static JValue *space(Jinja *j, const JArguments *a, JKind kind) {
  JValue *v = j_value(j, kind);
  for (size_t i = 0; i < a->n; i++)
    if (a->name[i])
      j_put(j, v, j_string(j, a->name[i], strlen(a->name[i])), a->at[i]);
    else if (a->at[i]->kind == J_MAP)
      for (size_t k = 0; k < a->at[i]->n; k++)
        j_put(j, v, a->at[i]->u.pair[k].key, a->at[i]->u.pair[k].value);
    else
      j_fail(j, TG_ERR_VALUE, "values without names");
  return v;
}

JValue *j_function(Jinja *j, const char *name, const JArguments *a) {
  if (!strncmp(name, "raise", 5)) {
    JValue *text = j_to_string(j, need(j, a, 0, "message"));
    j_fail(j, TG_ERR_VALUE, "it refuses: %.*s", (int)(text->n > 200 ? 200 : text->n), text->u.s);
  }
  if (*name == 's') return now(j, a);
  if (*name == 'r') return range(j, a);
  return space(j, a, *name == 'n' ? J_NAMESPACE : J_MAP);
}
