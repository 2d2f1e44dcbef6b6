/* tokenizer_split.c: splits a text at places that no token may cross. In: a text, and the file's name for its
 * patterns (tokenizer.ggml.pre). Out: spans. Each pattern splits the spans that the earlier patterns left: a
 * match is a span, and so is the text between two matches. It uses pcre2 if the build has it. */
#include "llm_private.h"
#include <stdio.h>
#ifdef TG_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

enum { MOST_PATTERNS = 6 };

#define ENDINGS "'s|'t|'re|'ve|'m|'ll|'d"
#define BLANKS  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2    ENDINGS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define GPT4(digits)                                                                                         \
  "(?i:" ENDINGS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS
/* words with capitals first, in the letters of UPPER and LOWER */
#define CASED(UPPER, LOWER, ends)                                                                            \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ends "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ends
#define UPPERS         "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWERS         "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define NO_HAN(c)      "(?:(?!\\p{Han})" c ")"
#define TAIL(n, after) "|\\p{N}" n "| ?[^\\s\\p{L}\\p{N}]+[" after "]*|" BLANKS
#define ENDS           "(?i:" ENDINGS ")?"

/* letters with a case, as DeepSeek lists them */
#define CASED_LETTERS                                                                                        \
  "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"                             \
  "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}"                     \
  "\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"                              \
  "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"                \
  "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}"                             \
  "\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}"                             \
  "\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}"                     \
  "\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"                    \
  "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"                             \
  "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}"                     \
  "\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}"                     \
  "\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}"                               \
  "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}"                              \
  "\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}"                             \
  "\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}"                             \
  "\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"                         \
  "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"                     \
  "\\x{1e900}-\\x{1e943}"

/* whole_words: a piece that is a token is used as it is, whatever the merges say */
typedef struct Pre {
  const char *names; /* each name between two spaces */
  bool whole_words;
  const char *pattern[MOST_PATTERNS];
} Pre;

static const Pre table[] = {
    {" gpt-2 gpt2 phi-2 olmo mpt roberta-bpe jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code "
     "gigachat exaone4 modern-bert a.x-4.0 mellum ",
     false,
     {GPT2}},
    {" llama-bpe llama3 llama-v3 falcon3 ", true, {GPT4("\\p{N}{1,3}")}},
    {" dbrx smaug-bpe glm4 chatglm-bpe ", false, {GPT4("\\p{N}{1,3}")}},
    {" qwen2 stablelm2 deepseek-r1-qwen megrez hunyuan ", false, {GPT4("\\p{N}")}},
    {" qwen35 ",
     false,
     {"(?i:" ENDINGS
      ")|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS}},
    {" smollm starcoder refact command-r codeshell exaone ", false, {"\\p{N}", GPT2}},
    {" deepseek-coder ",
     false,
     {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+",
      "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}"}},
    {" deepseek-llm ",
     false,
     {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+",
      "\\s?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+", "\\s+$",
      "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+", "\\p{N}+"}},
    {" seed-coder ",
     false,
     {"(?i:" ENDINGS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" BLANKS}},
    {" deepseek-v3 hunyuan-dense joyai-llm ",
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

/* Finds a row by its name, or by its pattern if a tokenizer gives the pattern itself. */
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
    pcre2_jit_compile(c, PCRE2_JIT_COMPLETE); /* if this fails, matching is only slower */
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

/* Splits one span by one pattern, into t->cut. A pattern sees its span alone, as if it were a text. */
static bool span_cut(TgTokenizer *t, pcre2_code *code, const char *text, LlmSpan s) {
  const PCRE2_SIZE *found = pcre2_get_ovector_pointer(t->splitter->match);
  size_t done = 0;
  for (size_t from = 0; from < s.n;) {
    /* the patterns have no capturing groups that are used, so 0 (too little room for groups) is also a
     * match */
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
