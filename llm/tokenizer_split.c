/* tokenizer_split.c: a text cut where no token may cross. In: a text, and the name that the file has for its
 * patterns (tokenizer.ggml.pre). Out: spans. Each pattern cuts what the ones before it left: what it matches
 * is a span, and so is what lies between two matches. By pcre2, where the build has it. */
#include "llm_private.h"
#include <stdio.h>
#ifdef TG_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

enum { MOST_PATTERNS = 5 };

#define ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"
#define BLANKS  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2    ENDINGS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define GPT4(digits)                                                                                         \
  "(?i:" ENDINGS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS
/* words whose capitals come first: of any letters that UPPER and LOWER name */
#define CASED(UPPER, LOWER, ends)                                                                            \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ends "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ends
#define UPPERS         "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS         "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define NO_HAN(c)      "(?:(?!\\p{Han})" c ")"
#define TAIL(n, after) "|\\p{N}" n "| ?[^\\s\\p{L}\\p{N}]+[" after "]*|" BLANKS
#define ENDS           "(?i:" ENDINGS ")?"

/* whole_words: a piece that is a token is taken as it is, whatever the merges say */
typedef struct Pre {
  const char *names; /* each between two blanks */
  bool whole_words;
  const char *pattern[MOST_PATTERNS];
} Pre;

static const Pre table[] = {
    {" gpt-2 gpt2 phi-2 olmo mpt roberta-bpe jina-es jina-de jina-v2-es jina-v2-de jina-v2-code gigachat ",
     false,
     {GPT2}},
    {" llama-bpe llama3 llama-v3 falcon3 ", true, {GPT4("\\p{N}{1,3}")}},
    {" dbrx smaug-bpe glm4 chatglm-bpe ", false, {GPT4("\\p{N}{1,3}")}},
    {" qwen2 stablelm2 deepseek-r1-qwen megrez ", false, {GPT4("\\p{N}")}},
    {" qwen35 ",
     false,
     {"(?i:" ENDINGS
      ")|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS}},
    {" smollm starcoder refact command-r codeshell exaone ", false, {"\\p{N}", GPT2}},
    {" deepseek-coder ",
     false,
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
      "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"}},
    {" deepseek-v3 ",
     false,
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
      "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
      "?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS}},
    {" tekken ", true, {CASED(UPPERS, LOWERS, "") TAIL("", "\\r\\n/")}},
    {" gpt-4o llama4 ", false, {CASED(UPPERS, LOWERS, ENDS) TAIL("{1,3}", "\\r\\n/")}},
    {" kimi-k2 ", false, {"\\p{Han}+|" CASED(NO_HAN(UPPERS), NO_HAN(LOWERS), ENDS) TAIL("{1,3}", "\\r\\n")}},
    {" falcon ", false, {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {" bloom gpt3-finnish ",
     false,
     {" ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{0964}\\x{06d4}\\x{060c})]+"}},
    {" default ", false, {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}}};

/* By its name, or, where a tokenizer says its pattern, by that. */
static const Pre *pre_find(const char *name) {
  char quoted[64];
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!table[i].pattern[1] && !strcmp(table[i].pattern[0], name)) return &table[i];
  int n = snprintf(quoted, sizeof quoted, " %s ", name);
  if (n < 3 || n >= (int)sizeof quoted || strchr(name, ' ')) return NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strstr(table[i].names, quoted)) return &table[i];
  return NULL;
}

#ifdef TG_HAVE_PCRE2
struct LlmSplitter {
  pcre2_code *code[MOST_PATTERNS];
  pcre2_match_data *match;
};

void llm_splitter_free(TgContext *ctx, LlmSplitter *s) {
  if (!s) return;
  for (int i = 0; i < MOST_PATTERNS; i++)
    pcre2_code_free(s->code[i]);
  pcre2_match_data_free(s->match);
  tg_free(ctx, s);
}

static pcre2_code *compiled(TgContext *ctx, const char *pattern) {
  int error;
  PCRE2_SIZE at;
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
  pcre2_code *c = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &at, NULL);
  if (c)
    pcre2_jit_compile(c, PCRE2_JIT_COMPLETE); /* where it cannot, matching is slower */
  else
    llm_fail(ctx, TG_ERR_INTERNAL, "tokenizer: pcre2 does not take '%.200s': error %d", pattern, error);
  return c;
}

LlmSplitter *llm_splitter_new(TgContext *ctx, const char *name, bool *whole_words) {
  const Pre *pre = pre_find(name);
  if (!pre) {
    llm_fail(ctx, TG_ERR_VALUE, "tokenizer: tokenizer.ggml.pre is '%.60s', whose patterns are not known here",
             name);
    return NULL;
  }
  LlmSplitter *s = tg_alloc(ctx, sizeof *s);
  if (!s) return NULL;
  *whole_words = pre->whole_words;
  s->match = pcre2_match_data_create(1, NULL);
  bool ok = s->match || llm_fail(ctx, TG_ERR_NOMEM, "tokenizer: out of memory");
  for (int i = 0; ok && i < MOST_PATTERNS && pre->pattern[i]; i++)
    ok = (s->code[i] = compiled(ctx, pre->pattern[i])) != NULL;
  if (ok) return s;
  llm_splitter_free(ctx, s);
  return NULL;
}

static bool span_put(TgTokenizer *t, size_t at, size_t end) {
  if (at == end) return true;
  LlmSpan *to = llm_grow(t->ctx, t->cut.at, t->cut.n, 1, &t->cut.cap, sizeof *to);
  if (!to) return false;
  t->cut.at = to;
  to[t->cut.n++] = (LlmSpan){at, end - at};
  return true;
}

/* One span, cut by one pattern, to t->cut. A pattern sees its span alone, as if it were a text. */
static bool span_cut(TgTokenizer *t, pcre2_code *code, const char *text, LlmSpan s) {
  const PCRE2_SIZE *found = pcre2_get_ovector_pointer(t->splitter->match);
  size_t done = 0;
  for (size_t from = 0; from < s.n;) {
    /* a pattern has no groups that count, so 0 (too little room for them) is a match too */
    int rc = pcre2_match(code, (PCRE2_SPTR)(text + s.at), s.n, from, 0, t->splitter->match, NULL);
    if (rc == PCRE2_ERROR_NOMATCH) break;
    if (rc < 0) return llm_fail(t->ctx, TG_ERR_LIMIT, "tokenizer: pcre2 gives up with %d", rc);
    size_t begin = found[0], end = found[1];
    if (!span_put(t, s.at + done, s.at + begin) || !span_put(t, s.at + begin, s.at + end)) return false;
    done = end;
    from = end > begin ? end : end + 1;
  }
  return span_put(t, s.at + done, s.at + s.n);
}

bool llm_split(TgTokenizer *t, const char *text, size_t n) {
  t->cut.n = 0;
  if (!span_put(t, 0, n)) return false;
  for (int i = 0; i < MOST_PATTERNS && t->splitter->code[i]; i++) {
    LlmSpans was = t->spans;
    t->spans = t->cut;
    t->cut = was;
    t->cut.n = 0;
    for (size_t k = 0; k < t->spans.n; k++)
      if (!span_cut(t, t->splitter->code[i], text, t->spans.at[k])) return false;
  }
  LlmSpans was = t->spans;
  t->spans = t->cut;
  t->cut = was;
  return true;
}
#else
LlmSplitter *llm_splitter_new(TgContext *ctx, const char *name, bool *whole_words) {
  (void)whole_words;
  llm_fail(ctx, TG_ERR_VALUE,
           pre_find(name) ? "tokenizer: '%.60s' needs pcre2, which this build has not"
                          : "tokenizer: tokenizer.ggml.pre is '%.60s', whose patterns are not known here",
           name);
  return NULL;
}

void llm_splitter_free(TgContext *ctx, LlmSplitter *s) { (void)ctx, (void)s; }

bool llm_split(TgTokenizer *t, const char *text, size_t n) {
  (void)t, (void)text, (void)n;
  return false;
}
#endif
