/* test_template.c: chat templates. Expected texts are jinja2's for templates of real models (shared data),
 * and by hand for small ones; templates that never end, nest or grow are stopped; damaged ones crash
 * nothing. */
#include "llm/made.h"
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>
#include <cmocka.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>
#endif

static TgContext *C;

static int open_it(void **state) {
  (void)state;
  C = tg_open_with(.device = "INTERP");
  return tg_error(C) != TG_OK;
}

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

enum { NOW = 1785067200 }; /* 26 July 2026, noon */

/* ---- real templates */
#ifdef TG_HAVE_JANSSON
/* The makers of the cases fixed the date in any form but "%d %b %Y": Granite's, "%B %d, %Y", is written so.
 */
static void date_fixed(char *text) {
  static const char is[] = "July 26, 2026", fixed[] = "2026-07-26";
  char *at = strstr(text, is);
  if (!at) return;
  memcpy(at, fixed, sizeof fixed - 1);
  memmove(at + sizeof fixed - 1, at + sizeof is - 1, strlen(at + sizeof is - 1) + 1);
}

static void one_case(const char *name, TgTemplate *t, const char *which, json_t *input, json_t *about,
                     json_t *want) {
  json_t *names = json_deep_copy(input);
  json_object_set(names, "bos_token", json_object_get(about, "bos_token"));
  json_object_set(names, "eos_token", json_object_get(about, "eos_token"));
  char *json = json_dumps(names, 0);
  size_t n = 0;
  const char *out = tg_template_render(t, json, &n, .now = NOW);
  char *got = out ? malloc(n + 1) : NULL;
  if (got) {
    memcpy(got, out, n + 1);
    date_fixed(got);
    n = strlen(got);
  }
  const char *text = json_string_value(json_object_get(want, "text"));
  const char *raised = json_string_value(json_object_get(want, "raised"));
  if (text && (!got || n != strlen(text) || memcmp(got, text, n)))
    fail_msg("%s, %s: got\n%s\nnot\n%s\n(%s)", name, which, got ? got : "nothing", text, tg_errmsg(C));
  if (raised && (got || !strstr(tg_errmsg(C), raised)))
    fail_msg("%s, %s: %s, not about \"%s\"", name, which, tg_errmsg(C), raised);
  if (!text && got) fail_msg("%s, %s: not refused", name, which);
  tg_clear_error(C);
  free(json), free(got);
  json_decref(names);
}

static void test_cases(void **state) {
  (void)state;
  const char *path = data_at("chat-templates/cases.json");
  json_t *all = path ? json_load_file(path, 0, NULL) : NULL, *about, *want;
  if (!all) {
    print_message("chat-templates are not here\n");
    skip();
  }
  const char *name, *which;
  int count = 0;
  json_object_foreach(json_object_get(all, "templates"), name, about) {
    char file[200];
    size_t n = 0;
    snprintf(file, sizeof file, "chat-templates/%s.jinja", name);
    char *text = file_text(data_at(file), &n);
    TgTemplate *t = tg_template_new(C, text, n);
    if (!t) fail_msg("%s: %s", name, tg_errmsg(C));
    json_object_foreach(json_object_get(about, "expected"), which, want) {
      one_case(name, t, which, json_object_get(json_object_get(all, "cases"), which), about, want);
      count++;
    }
    tg_template_free(t);
    free(text);
  }
  assert_int_equal(count, 84);
  json_decref(all);
}
#else
static void test_cases(void **state) {
  (void)state;
  print_message("jansson is not here\n");
  skip();
}
#endif

/* ---- small ones: by hand, from Jinja's documentation */
static void rendered(int line, const char *text, const char *json, const char *want) {
  TgTemplate *t = tg_template_new(C, text, strlen(text));
  const char *got = t ? tg_template_render(t, json, NULL, .now = NOW) : NULL;
  if (!got || strcmp(got, want))
    fail_msg("line %d: '%s', not '%s' (%s)", line, got ? got : "nothing", want, tg_errmsg(C));
  tg_template_free(t);
}

#define IS(text, want)                                                                                       \
  rendered(__LINE__, text, "{\"a\": [1, 2, 3], \"s\": \"x y\", \"m\": {\"k\": \"v\", \"n\": null}}", want)

static void test_small(void **state) {
  (void)state;
  IS("{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 1 / 2 }} {{ 2 ** 3 }}", "7 3 -4 2 0.5 8");
  IS("{{ 'a' ~ 1 ~ true }} {{ 'ab' * 2 }} {{ [1] + [2] }}", "a1True abab [1, 2]");
  IS("{{ a[0] }}{{ a[-1] }}{{ a[1:] }}{{ a[::-1] }}{{ s[:1] }}{{ a[9] }}", "13[2, 3][3, 2, 1]x");
  IS("{{ m.k }}{{ m['k'] }}{{ m.none }}{{ m.n }}{{ m }}", "vvNone{'k': 'v', 'n': None}");
  IS("{{ nothing is defined }} {{ a is iterable }} {{ m is mapping }} {{ s is not string }}",
     "False True True False");
  IS("{% for x in a %}{{ loop.index }}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}", "11,22,33");
  IS("{% for x in a if x != 2 %}{{ x }}{{ loop.length }}{% else %}no{% endfor %}", "1232");
  IS("{% for x in [] %}{{ x }}{% else %}none{% endfor %}", "none");
  IS("{% for k, v in m.items() %}{{ k }}={{ v }};{% endfor %}", "k=v;n=None;");
  IS("{% for x in a %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in a %}{% break "
     "%}{% endfor %}",
     "13");
  IS("{% set n = namespace(x=0) %}{% for x in a %}{% set n.x = n.x + x %}{% set y = 1 %}{% endfor %}{{ n.x "
     "}}{{ y }}",
     "6");
  IS("{% macro f(x, y='d') %}<{{ x }}{{ y }}>{% endmacro %}{{ f(1) }}{{ f(1, y=2) }}", "<1d><12>");
  IS("{% set t %}a{{ 1 }}{% endset %}{{ t }}{% set t | upper %}b{% endset %}{{ t }}", "a1B");
  IS("{% filter upper | trim %} ab {% endfilter %}", "AB");
  IS("  {% if true %}  \n  x\n  {% endif %}\ny\n",
     "  \n  x\ny"); /* blanks before a tag, the newline after it */
  IS("a {%- if true -%} b {%- endif -%} c", "abc");
  IS("a\n{#- note -#}\n b{# more #}\n c", "ab c");
  IS("{{ 'yes' if 1 in a else 'no' }}{{ '' if false }}", "yes");
  IS("{{ (1, 2) }}{{ {'a': [true, none]} }}", "(1, 2){'a': [True, None]}");
  IS("{{ {'a': 'q\"\\n\xc3\xa9<'} | tojson }}{{ [1, {}] | tojson(indent=2) }}",
     "{\"a\": \"q\\\"\\n\xc3\xa9<\"}[\n  1,\n  {}\n]");
  IS("{{ ' a b '.strip().split(' ') }}{{ 'a,b,c'.split(',', 1) }}{{ 'abc'.startswith('ab') }}",
     "['a', 'b']['a', 'b,c']True");
  IS("{{ a | map('string') | join('-') }}{{ [m, m] | map(attribute='k') | list }}", "1-2-3['v', 'v']");
  IS("{{ [m] | selectattr('k', 'equalto', 'v') | list | length }}{{ a | reject('odd') | list }}", "1[2]");
  IS("{{ x | default('d') }}{{ '' | default('e', true) }}{{ m | dictsort | first }}", "de('k', 'v')");
  IS("{{ 1 < 2 < 3 }}{{ 3 > 2 > 2 }}{{ not 1 == 2 and 3 }}{{ none or 'x' }}", "TrueFalse3x");
  IS("{{ -1 | abs }}{{ '%d' }}{{ 'abc'[-2:] }}{{ '\xc3\xa9x' | length }}", "1%dbc2");
  IS("{{ strftime_now('%d %b %Y') }} {{ range(3) | list }} {{ '{\"a\": [1.5]}' | from_json }}",
     "26 Jul 2026 [0, 1, 2] {'a': [1.5]}");
}

static void refused(int line, const char *text, TgStatus status, const char *part) {
  TgTemplate *t = tg_template_new(C, text, strlen(text));
  const char *got = t ? tg_template_render(t, "{\"a\": []}", NULL) : NULL;
  if (got || tg_error(C) != status || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: %s: %s, not about \"%s\"", line, tg_status_name(tg_error(C)), tg_errmsg(C), part);
  tg_template_free(t);
  tg_clear_error(C);
}

#define REFUSED(text, status, part) refused(__LINE__, text, status, part)

static void test_refused(void **state) {
  (void)state;
  REFUSED("\n\n{% if %}", TG_ERR_VALUE, "line 3");
  REFUSED("{% if 1 %}", TG_ERR_VALUE, "elif is expected");
  REFUSED("{{ 'a }}", TG_ERR_VALUE, "does not end");
  REFUSED("{% include 'x' %}", TG_ERR_VALUE, "a tag that is known here");
  REFUSED("{{ x | shout }}", TG_ERR_VALUE, "no filter 'shout'");
  REFUSED("{{ x.y }}", TG_ERR_VALUE, "'y' of what is undefined");
  REFUSED("{{ raise_exception('no ' ~ 1) }}", TG_ERR_VALUE, "it refuses: no 1");
  REFUSED("{{ 1 // 0 }}", TG_ERR_VALUE, "division by 0");
  REFUSED("{{ 9223372036854775807 + 1 }}", TG_ERR_VALUE, "past 64 bits");
  /* without an end, without a bound */
  REFUSED("{% for x in range(10 ** 12) %}{% endfor %}", TG_ERR_LIMIT, "steps");
  REFUSED("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", TG_ERR_LIMIT, "deep");
  REFUSED(
      "{% set n = namespace(s='abcdefgh') %}{% for x in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
      TG_ERR_LIMIT, "bytes");
  REFUSED("{{ 'x' * 10 ** 12 }}", TG_ERR_LIMIT, "line 1");
  REFUSED("{% set a = [] %}{{ a.append(a) }}{{ a }}", TG_ERR_LIMIT, "deep");
  char deep[2010];
  memset(deep, '(', 1004);
  memset(deep + 1004, ')', 1002);
  memcpy(deep, "{{ ", 3);
  memcpy(deep + 1003, "1", 1);
  memcpy(deep + 2004, "}}", 3);
  REFUSED(deep, TG_ERR_LIMIT, "deep");
}

static void test_messages(void **state) {
  (void)state;
  static const char text[] =
      "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m['content'] }}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  const TgMessage m[] = {{"user", "a \"b\"\n\\ \x01 \xc3\xa9"}, {"assistant", "c"}};
  TgTemplate *t = tg_template_new(C, text, strlen(text));
  assert_string_equal(tg_template_chat(t, NULL, m, 2, NULL),
                      "<user>a \"b\"\n\\ \x01 \xc3\xa9<assistant>c<assistant>");
  tg_template_free(t);
  tg_template_free(NULL);
}

/* ---- damage. N mutants (TG_MUTANTS, else 4,000) of real templates: an error or a text, within a bound. */
static uint64_t seed = 1;

static size_t below(size_t n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return n ? (size_t)(seed >> 33) % n : 0;
}

static const char plain[] =
    "{% macro f(x) %}{{ x | tojson }}{% endmacro %}{% set ns = namespace(i=0) %}{% for m in messages %}"
    "{% if m.role == 'user' and not loop.first %}{{ m['content'] | trim }}{% elif m.tool_calls is defined %}"
    "{% for c in m.tool_calls %}{{ f(c.function) }}{% endfor %}{% else %}{{- m.content.split('x')[-1] ~ 1 -}}"
    "{% set ns.i = ns.i + 1 %}{% endif %}{% endfor %}{{ range(3) | map('string') | join(',') }}";

static size_t damaged(char *to, size_t cap, const char *from, size_t n) {
  static const char *const bits[] = {
      "{{",         "}}",         "{%",       "%}",           "{#",     "(",     "[",     "'",    "|",
      ".",          "-",          " if ",     " for x in a ", "endfor", "endif", " not ", "loop", "*",
      "9999999999", "namespace(", "messages", "range(",       ":",      "\n",    "\xff"};
  if (n > cap) n = cap;
  memcpy(to, from, n);
  for (size_t k = 1 + below(4); k > 0; k--) {
    size_t at = below(n), some = below(12);
    const char *bit = bits[below(sizeof bits / sizeof *bits)];
    size_t length = strlen(bit);
    if (below(3) == 0 && at + some <= n) {
      memmove(to + at, to + at + some, n - at - some);
      n -= some;
    } else if (n + length <= cap) {
      memmove(to + at + length, to + at, n - at);
      memcpy(to + at, bit, length);
      n += length;
    }
  }
  return n;
}

static void test_damaged(void **state) {
  (void)state;
  static const char *const files[] = {"Qwen-Qwen3-0.6B", "mistralai-Mistral-Nemo-Instruct-2407",
                                      "openai-gpt-oss-120b", "HuggingFaceTB-SmolLM3-3B", "GLM-4.6"};
  static const char json[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": "
                             "\"assistant\", \"content\": \"\", "
                             "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": "
                             "1}}}]}], \"add_generation_prompt\": true}";
  static char text[32768];
  char *source[6] = {NULL};
  size_t size[6] = {sizeof plain - 1},
         count = getenv("TG_MUTANTS") ? strtoul(getenv("TG_MUTANTS"), NULL, 10) : 4000;
  for (int i = 0; i < 5; i++) {
    char file[200];
    snprintf(file, sizeof file, "chat-templates/%s.jinja", files[i]);
    source[i + 1] = file_text(data_at(file), &size[i + 1]);
  }
  int worked = 0;
  clock_t slowest = 0;
  for (size_t i = 0; i < count; i++) {
    size_t which = below(6);
    const char *from = which && source[which] ? source[which] : plain;
    size_t n = damaged(text, sizeof text, from, which && source[which] ? size[which] : sizeof plain - 1);
    clock_t begin = clock();
    TgTemplate *t = tg_template_new(C, text, n);
    const char *got = t ? tg_template_render(t, json, NULL, .steps = 200000, .bytes = 1 << 20) : NULL;
    worked += got != NULL;
    if (!got && tg_error(C) != TG_ERR_VALUE && tg_error(C) != TG_ERR_LIMIT)
      fail_msg("mutant %zu: %s\n%.*s", i, tg_errmsg(C), (int)n, text);
    tg_template_free(t);
    tg_clear_error(C);
    if (clock() - begin > slowest) slowest = clock() - begin;
  }
  for (int i = 1; i < 6; i++)
    free(source[i]);
  print_message("%d of %zu mutants gave a text, the slowest took %.0f ms\n", worked, count,
                1e3 * (double)slowest / CLOCKS_PER_SEC);
  assert_true(worked > 0 && slowest < 5 * CLOCKS_PER_SEC);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cases),    cmocka_unit_test(test_small),   cmocka_unit_test(test_refused),
      cmocka_unit_test(test_messages), cmocka_unit_test(test_damaged),
  };
  return cmocka_run_group_tests(tests, open_it, close_it);
}
