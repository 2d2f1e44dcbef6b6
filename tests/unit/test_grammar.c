/* test_grammar.c: grammars and JSON schemas. What may follow is compared with predicates written here for
 * each language, over all texts of some length; UTF-8 over all code points; JSON with what jansson reads.
 * Grammars that are wrong, too large or damaged are refused. */
#include "llm/made.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#ifdef TG_HAVE_JANSSON
#include <jansson.h>
#endif

static TgContext *C;
static TgTokenizer *T; /* all bytes, some texts of several, and an end */

enum { BYTES = 256, TEXTS = 11, END = BYTES + TEXTS, COUNT = END + 1 };

static const char *const texts[TEXTS] = {"ab",   "aab", "abb", "((", "))",  "()",
                                         "\": ", "12",  "12.", "tr", "true"};

static int open_it(void **state) {
  static Made made;
  static char byte[BYTES][8];
  static const char *tokens[COUNT];
  static float scores[COUNT];
  static int types[COUNT];
  (void)state;
  C = tg_open_with(.device = "INTERP");
  for (int b = 0; b < BYTES; b++) {
    snprintf(byte[b], sizeof byte[b], "<0x%02X>", b);
    tokens[b] = byte[b];
    types[b] = 6;
  }
  for (int i = 0; i < TEXTS; i++) {
    tokens[BYTES + i] = texts[i];
    types[BYTES + i] = 1;
  }
  tokens[END] = "</s>";
  types[END] = 3;
  made = (Made){.n = 0};
  made_text(&made, "tokenizer.ggml.model", "llama");
  made_texts(&made, "tokenizer.ggml.tokens", tokens, COUNT);
  made_numbers(&made, "tokenizer.ggml.scores", MADE_F32, scores, COUNT);
  made_numbers(&made, "tokenizer.ggml.token_type", MADE_I32, types, COUNT);
  made_number(&made, "tokenizer.ggml.eos_token_id", END);
  TgValue *gguf = made_read(C, &made);
  T = tg_tokenizer_new(C, gguf);
  tg_value_free(gguf);
  if (!T) fail_msg("%s", tg_errmsg(C));
  return 0;
}

static int close_it(void **state) {
  (void)state;
  tg_tokenizer_free(T);
  tg_close(C);
  return 0;
}

static TgGrammar *grammar(const char *text) {
  TgGrammar *g = tg_grammar_new(C, T, text, strlen(text));
  if (!g) fail_msg("%s: %s", text, tg_errmsg(C));
  return g;
}

/* Whether the text, byte by byte, is one of the grammar's; *prefix: it may become one. */
static bool takes(TgGrammar *g, const char *text, size_t n, bool *prefix) {
  bool ok = true;
  assert_int_equal(tg_grammar_reset(g), TG_OK);
  for (size_t i = 0; ok && i < n; i++)
    ok = !tg_grammar_accept(g, (unsigned char)text[i]);
  tg_clear_error(C);
  *prefix = ok;
  return ok && tg_grammar_ends(g);
}

/* ---- languages with a predicate: text -> is it in it */
static bool is_anbn(const char *s, size_t n) { /* n a, then n b */
  for (size_t i = 0; i < n; i++)
    if (s[i] != (i < n / 2 ? 'a' : 'b')) return false;
  return n % 2 == 0;
}

static bool is_balanced(const char *s, size_t n) {
  int depth = 0;
  for (size_t i = 0; i < n; i++) {
    depth += s[i] == '(' ? 1 : s[i] == ')' ? -1 : 0;
    if (depth < 0 || (s[i] != '(' && s[i] != ')')) return false;
  }
  return !depth;
}

static bool is_odd_runs(const char *s,
                        size_t n) { /* a{2,3} or b+ or nothing, any number of times with c between */
  for (size_t i = 0; i <= n; i++) {
    size_t k = i;
    while (k < n && s[k] == s[i])
      k++;
    if (i < n && s[i] == 'a' && k - i != 2 && k - i != 3) return false;
    if (i < n && s[i] != 'a' && s[i] != 'b' && s[i] != 'c') return false;
    if (i == n || s[i] == 'c') continue;
    if (k < n && s[k] != 'c') return false;
    i = k - 1;
  }
  return true;
}

static bool is_palindrome(const char *s, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (s[i] != s[n - 1 - i] || (s[i] != 'a' && s[i] != 'b')) return false;
  return true;
}

typedef struct Language {
  const char *grammar, *letters;
  bool (*has)(const char *s, size_t n);
} Language;

static const Language languages[] = {
    {"root ::= (\"a\" root \"b\")?", "ab", is_anbn},
    {"root ::= pair*\npair ::= \"(\" root \")\"", "()", is_balanced},
    {"# runs\nroot ::= run (\"c\" run)*\nrun ::= \"a\"{2,3} | [b]+ |\n", "abc", is_odd_runs},
    {"root ::= \"\" | \"a\" | \"b\" | \"a\" root \"a\" | \"b\" root \"b\"", "ab", is_palindrome},
};

enum { LONGEST = 12 };

/* texts are numbers in base `letters`; of length n */
static void letters_of(const Language *l, int64_t number, int n, char *out) {
  int k = (int)strlen(l->letters);
  for (int i = 0; i < n; i++, number /= k)
    out[i] = l->letters[number % k];
}

/* Some text of the language begins with s: found by going on in all ways. */
static bool can_become(const Language *l, const char *s, size_t n, size_t most) {
  char t[LONGEST + 2];
  if (l->has(s, n)) return true;
  if (n == most) return false;
  memcpy(t, s, n);
  for (const char *c = l->letters; *c; c++) {
    t[n] = *c;
    if (can_become(l, t, n + 1, most)) return true;
  }
  return false;
}

static void test_languages(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof languages / sizeof *languages; k++) {
    const Language *l = &languages[k];
    TgGrammar *g = grammar(l->grammar);
    int64_t letters = (int64_t)strlen(l->letters), count = 1;
    for (int n = 0; n <= (letters == 2 ? 8 : 6); n++, count *= letters)
      for (int64_t i = 0; i < count; i++) {
        char s[LONGEST + 2];
        bool prefix;
        letters_of(l, i, n, s);
        bool is = takes(g, s, (size_t)n, &prefix),
             can = can_become(l, s, (size_t)n, letters == 2 && n > 5 ? LONGEST : 10);
        if (is != l->has(s, (size_t)n)) fail_msg("%s: '%.*s' is %d", l->grammar, n, s, is);
        if (n <= 5 && prefix != can) fail_msg("%s: '%.*s' may go on: %d", l->grammar, n, s, prefix);
      }
    tg_grammar_free(g);
  }
}

/* The mask of every token is what accepting it says, after each of the first texts; what ends does where it
 * may. */
static void test_masks(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof languages / sizeof *languages; k++) {
    const Language *l = &languages[k];
    TgGrammar *g = grammar(l->grammar), *other = grammar(l->grammar);
    for (int n = 0, count = 1; n <= 4; n++, count *= (int)strlen(l->letters))
      for (int i = 0; i < count; i++) {
        char s[LONGEST + 2];
        float logits[COUNT];
        bool prefix;
        letters_of(l, i, n, s);
        takes(g, s, (size_t)n, &prefix);
        if (!prefix) continue;
        for (int id = 0; id < COUNT; id++)
          logits[id] = (float)id;
        assert_int_equal(tg_grammar_mask(g, logits), TG_OK);
        for (int id = 0; id < COUNT; id++) {
          takes(other, s, (size_t)n, &prefix);
          bool may = !tg_grammar_accept(other, id);
          tg_clear_error(C);
          if (may != (logits[id] == (float)id) || (!may && logits[id] != -INFINITY))
            fail_msg("%s: after '%.*s' token %d is %g", l->grammar, n, s, id, (double)logits[id]);
        }
      }
    tg_grammar_free(g), tg_grammar_free(other);
  }
}

/* ---- characters: all code points, as UTF-8 */
static void points_are(const char *text, bool (*has)(uint32_t c)) {
  TgGrammar *g = grammar(text);
  for (uint32_t c = 0; c <= 0x10ffff; c++) {
    char b[4];
    bool prefix, surrogate = c >= 0xd800 && c < 0xe000;
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--)
      b[i] = (char)(0x80 | (c >> (6 * (n - 1 - i)) & 0x3f));
    b[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c >> (6 * (n - 1)));
    bool is = takes(g, b, (size_t)n, &prefix);
    if (is != (has(c) && !surrogate)) fail_msg("%s: U+%04X is %d", text, (unsigned)c, is);
  }
  bool prefix;
  static const char *const none[] = {"\xc0\x80",         "\xc1\xbf", "\xed\xa0\x80",
                                     "\xf5\x80\x80\x80", "\xff",     "\x80"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    assert_false(takes(g, none[i], strlen(none[i]), &prefix));
  tg_grammar_free(g);
}

static bool any(uint32_t c) { return c <= 0x10ffff; }

static bool is_greek(uint32_t c) { return c >= 0x3b1 && c <= 0x3c9; }

static bool is_no_letter(uint32_t c) {
  return !(c >= 'a' && c <= 'z') && c != 0x4e00 && !(c >= 0x7f0 && c <= 0x10005);
}

static bool is_middle(uint32_t c) { return c >= 0x41 && c <= 0x1f642; }

static bool none(uint32_t c) {
  (void)c;
  return false;
}

static void test_characters(void **state) {
  (void)state;
  points_are("root ::= .", any);
  points_are("root ::= [α-ω]", is_greek);
  points_are("root ::= [^a-z\\u4e00\\u07f0-\\U00010005]", is_no_letter);
  points_are("root ::= [\\x41-\\U0001f642]", is_middle);
  points_are("root ::= [^\\x00-\\U0010ffff]", none);
  bool prefix;
  TgGrammar *g = grammar("root ::= \"\\\"\\\\\\n\\x41é\" [\\]\\^-]");
  assert_true(takes(g, "\"\\\nA\xc3\xa9^", 7, &prefix) && takes(g, "\"\\\nA\xc3\xa9]", 7, &prefix) &&
              takes(g, "\"\\\nA\xc3\xa9-", 7, &prefix));
  tg_grammar_free(g);
}

/* ---- what is wrong */
static void test_wrong(void **state) {
  (void)state;
  static const char *const wrong[][2] = {
      {"", "no rule root"},
      {"x ::= \"a\"", "no rule root"},
      {"root ::= other", "no rule other"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2"},
      {"root ::= (\"a\"", "does not end"},
      {"root ::= \"a\")", "did not begin"},
      {"root ::= \"a", "ends inside"},
      {"root ::= \"a\n\"", "end of a line"},
      {"root ::= [a", "ends inside"},
      {"root ::= [z-a]", "ends before it begins"},
      {"root ::= \"\\q\"", "backslash"},
      {"root ::= \"\\x4\"", "2 digits"},
      {"root ::= \"\\U00110000\"", "code point"},
      {"root ::= \"a\"{3,2}", "{m,n}"},
      {"root ::= \"a\"{10001}", "10,000"},
      {"root ::= \"a\"{x}", "{m,n}"},
      {"root ::= *", "should stand here"},
      {"root = \"a\"", "::="},
      {"root ::= \"\xff\"", "no UTF-8"},
      {"root ::= root \"a\" | \"b\"", "calls itself"},
      {"root ::= a\na ::= \"\" b \"x\"\nb ::= [c]* a?", "calls itself"},
      {"root ::= lead\nlead ::= ring\nring ::= ring2 \"a\"\nring2 ::= ring | \"b\"", "rule ring"},
      {"root ::= ((((((((((.{1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}",
       "repetitions"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    TgGrammar *g = tg_grammar_new(C, T, wrong[i][0], strlen(wrong[i][0]));
    if (g || !strstr(tg_errmsg(C), wrong[i][1])) fail_msg("%s: %s", wrong[i][0], tg_errmsg(C));
    tg_clear_error(C);
  }
  char deep[400];
  memset(deep, '(', sizeof deep);
  memcpy(deep, "root ::= ", 9);
  assert_null(tg_grammar_new(C, T, deep, sizeof deep));
  assert_non_null(strstr(tg_errmsg(C), "deep"));
  tg_clear_error(C);
  assert_null(tg_grammar_new(C, NULL, "x", 1));
  assert_int_equal(tg_error(C), TG_ERR_VALUE), tg_clear_error(C);
  assert_null(tg_grammar_json(C, NULL, NULL, 0));
  assert_int_equal(tg_error(C), TG_ERR_VALUE), tg_clear_error(C);
  assert_null(tg_grammar_new(C, T, NULL, 1));
  assert_int_equal(tg_error(C), TG_ERR_VALUE), tg_clear_error(C);
  assert_null(tg_grammar_new(NULL, T, "x", 1));
  assert_int_equal(tg_grammar_reset(NULL), TG_ERR_NOMEM);
  assert_int_equal(tg_grammar_mask(NULL, NULL), TG_ERR_NOMEM);
  assert_int_equal(tg_grammar_accept(NULL, 0), TG_ERR_NOMEM);
  assert_false(tg_grammar_ends(NULL));
  tg_grammar_free(NULL);
  TgGrammar *g = grammar("root ::= \"ab\"");
  float logits[COUNT] = {0};
  assert_int_equal(tg_grammar_accept(g, -1), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_grammar_accept(g, COUNT), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_grammar_accept(g, END), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_grammar_accept(g, BYTES), TG_OK); /* "ab" */
  assert_int_equal(tg_grammar_mask(g, logits), TG_OK);
  for (int id = 0; id < COUNT; id++)
    assert_true((logits[id] == 0) == (id == END));
  assert_int_equal(tg_grammar_accept(g, END), TG_OK);
  tg_grammar_free(g);
}

/* Damaged grammars: an error, or a grammar that answers. */
static void test_damaged(void **state) {
  (void)state;
  static const char whole[] =
      "root ::= item (\",\" ws item)* # all\nitem ::= \"a\"{1,3} | [^b-d\\n]+ | (item2)?\n"
      "item2 ::= \"\\u00e9\" . | root2\nroot2 ::= \"(\" root \")\"\nws ::= [ \\t]{0,4}\n";
  static const char signs[] = "()[]{}*+?|\"\\-^.,:=#ab1 \n\xc3";
  uint32_t seed = 1;
  for (int i = 0; i < 4000; i++) {
    char s[sizeof whole + 16];
    size_t n = sizeof whole - 1;
    memcpy(s, whole, n);
    for (int k = 0; k < 3; k++) {
      seed = seed * 1664525 + 1013904223;
      size_t at = (seed >> 8) % n;
      char sign = signs[(seed >> 20) % (sizeof signs - 1)];
      if (seed >> 30 == 0)
        memmove(s + at, s + at + 1, --n - at);
      else if (seed >> 30 == 1) {
        memmove(s + at + 1, s + at, n - at);
        s[at] = sign;
        n++;
      } else
        s[at] = sign;
    }
    TgGrammar *g = tg_grammar_new(C, T, s, n);
    float logits[COUNT] = {0};
    if (g && tg_grammar_mask(g, logits)) assert_int_not_equal(tg_error(C), TG_ERR_INTERNAL);
    for (int id = 0; g && id < 40; id++)
      if (!tg_grammar_accept(g, (seed >> (id % 16)) % COUNT)) tg_grammar_mask(g, logits);
    tg_grammar_free(g);
    tg_clear_error(C);
  }
}

#ifdef TG_HAVE_JANSSON
/* ---- JSON */
typedef struct SchemaCase {
  const char *schema, *yes[6], *no[8];
} SchemaCase;

static const SchemaCase schemas[] = {
    {NULL,
     {"{}", "{\"a\": [1, -2.5e-3, true, null, \"x\\u00e9\\n\"]}", "{\"a\":{\"b\":{}},\"c\":[]}",
      "{ \"k\" : \"\xc3\xa9\" }"},
     {"[]", "{", "{\"a\":}", "{\"a\":1,}", "{\"a\":01}", "{\"a\":tru}", "{'a':1}", "{\"a\":\"\n\"}"}},
    {"{\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"type\": \"string\"}, "
     "\"c\": "
     "{\"type\": \"boolean\"}}, \"required\": [\"b\"], \"additionalProperties\": false}",
     {"{\"b\": \"\"}", "{\"a\":-7,\"b\":\"x\"}", "{\"a\":0, \"b\":\"x\", \"c\":true}",
      "{\"b\":\"x\",\"c\":false}"},
     {"{}", "{\"a\":1}", "{\"b\":\"x\",\"a\":1}", "{\"a\":1.5,\"b\":\"\"}", "{\"b\":\"x\",\"d\":1}",
      "{\"b\":\"\",}", "{,\"b\":\"\"}"}},
    {"{\"type\": \"array\", \"items\": {\"enum\": [\"x\", 1, null]}, \"minItems\": 1, \"maxItems\": 3}",
     {"[\"x\"]", "[1,null]", "[null, null, 1]"},
     {"[]", "[1,1,1,1]", "[2]", "[1,]", "[,1]", "[\"x\""}},
    {"{\"anyOf\": [{\"type\": \"string\", \"minLength\": 2, \"maxLength\": 3}, {\"type\": \"number\", "
     "\"minimum\": 0}, "
     "{\"const\": {\"a\": [1]}}]}",
     {"\"ab\"", "\"\xc3\xa9\\n\xe2\x82\xac\"", "0.5", "12e3", "{\"a\":[1]}"},
     {"\"a\"", "\"abcd\"", "-1", "01", "{\"a\": [1]}", "true"}},
    {"{\"type\": [\"null\", \"object\"], \"properties\": {\"next\": {\"$ref\": \"#\"}, \"n\": {\"$ref\": "
     "\"#/$defs/n\"}}, \"required\": [\"next\", \"n\"], \"$defs\": {\"n\": {\"type\": \"integer\", "
     "\"minimum\": 0}}}",
     {"null", "{\"next\":null,\"n\":1}", "{\"next\": {\"next\": null, \"n\": 2}, \"n\": 3}"},
     {"{}", "{\"next\":null}", "{\"next\":null,\"n\":-1}", "{\"next\":{},\"n\":1}"}},
    {"{\"type\": \"object\", \"properties\": {\"a\": true}, \"additionalProperties\": {\"type\": "
     "\"integer\"}}",
     {"{}", "{\"a\":[1]}", "{\"z\":1}", "{\"a\":{},\"z\":1, \"y\":2}"},
     {"{\"z\":\"x\"}", "{\"z\":1,\"y\":null}"}},
    {"{\"type\": \"array\"}", {"[]", "[[],{}]"}, {"{}", "1"}},
    {"true", {"1", "[null]", "\"x\""}, {"", "x"}},
    {"{\"title\": \"t\", \"description\": \"d\", \"properties\": {\"a b\": {\"type\": \"null\", \"default\": "
     "1}}, "
     "\"required\": [\"a b\"]}",
     {"{\"a b\":null}"},
     {"{}", "{\"a b\":1}"}},
};

static void test_schemas(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
    const SchemaCase *c = &schemas[i];
    TgGrammar *g = tg_grammar_json(C, T, c->schema, c->schema ? strlen(c->schema) : 0);
    if (!g) fail_msg("%s: %s", c->schema, tg_errmsg(C));
    bool prefix;
    for (int k = 0; k < 6 && c->yes[k]; k++) {
      json_t *v = json_loads(c->yes[k], JSON_DECODE_ANY, NULL); /* the case itself is JSON */
      assert_non_null(v);
      json_decref(v);
      if (!takes(g, c->yes[k], strlen(c->yes[k]), &prefix)) fail_msg("%s: not %s", c->schema, c->yes[k]);
    }
    for (int k = 0; k < 8 && c->no[k]; k++)
      if (takes(g, c->no[k], strlen(c->no[k]), &prefix)) fail_msg("%s: %s", c->schema, c->no[k]);
    tg_grammar_free(g);
  }
  static const char *const wrong[][2] = {
      {"{", "json schema"},
      {"5", "no schema"},
      {"{\"type\": \"string\", \"pattern\": \"a\"}", "'pattern'"},
      {"{\"type\": \"text\"}", "none of JSON"},
      {"{\"$ref\": \"#/nowhere\"}", "nowhere"},
      {"{\"type\": \"integer\", \"minimum\": 5}", "'minimum'"},
      {"{\"type\": \"array\", \"maxItems\": -1}", "whole number"},
      {"{\"anyOf\": [], \"type\": \"null\"}", "no schemas"},
      {"{\"items\": {}, \"uniqueItems\": true, \"type\": \"array\"}", "'uniqueItems'"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_null(tg_grammar_json(C, T, wrong[i][0], strlen(wrong[i][0])));
    if (!strstr(tg_errmsg(C), wrong[i][1])) fail_msg("%s: %s", wrong[i][0], tg_errmsg(C));
    tg_clear_error(C);
  }
}

/* Drawn from a grammar at random, to the end: what comes is JSON that jansson reads. */
static void test_drawn(void **state) {
  (void)state;
  TgGrammar *g = tg_grammar_json(C, T, NULL, 0);
  uint32_t seed = 7;
  int whole = 0;
  for (int turn = 0; turn < 300; turn++) {
    char text[4000];
    size_t n = 0;
    assert_int_equal(tg_grammar_reset(g), TG_OK);
    while (n < sizeof text - 40) {
      float logits[COUNT] = {0};
      int may[COUNT], count = 0;
      size_t k;
      assert_int_equal(tg_grammar_mask(g, logits), TG_OK);
      for (int id = 0; id < COUNT; id++)
        if (logits[id] == 0) may[count++] = id;
      seed = seed * 1664525 + 1013904223;
      int id = logits[END] == 0 && (seed >> 28) < 8 ? END : may[(seed >> 8) % (unsigned)count];
      if (n > 300 && logits['}'] == 0) id = '}'; /* towards an end */
      if (n > 300 && logits[']'] == 0) id = ']';
      if (n > 300 && logits['"'] == 0 && id != '}' && id != ']') id = '"';
      assert_int_equal(tg_grammar_accept(g, id), TG_OK);
      if (id == END) break;
      const char *bytes = tg_token_text(T, id, &k);
      memcpy(text + n, bytes, k);
      n += k;
    }
    if (!tg_grammar_ends(g)) continue;
    json_error_t e;
    json_t *v = json_loadb(text, n, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &e);
    if (!v && !strstr(e.text, "real number overflow") && !strstr(e.text, "Unicode") && !strstr(e.text, "\\u"))
      fail_msg("%.*s: %s", (int)n, text, e.text);
    json_decref(v);
    whole++;
  }
  assert_true(whole > 200);
  tg_grammar_free(g);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_languages), cmocka_unit_test(test_masks),   cmocka_unit_test(test_characters),
      cmocka_unit_test(test_wrong),     cmocka_unit_test(test_damaged),
#ifdef TG_HAVE_JANSSON
      cmocka_unit_test(test_schemas),   cmocka_unit_test(test_drawn),
#endif
  };
  return cmocka_run_group_tests(tests, open_it, close_it);
}
