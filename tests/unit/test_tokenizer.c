/* test_tokenizer.c: tokenizers of gguf files. Expected ids are those of the published vocabularies' own test
 * vectors (shared/data), by hand for vocabularies made here; vocabularies that lie are refused. */
#include "llm/made.h"
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

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

/* ---- the published vectors */
enum { MOST = 4096 };

static TgTokenizer *tokenizer_of(const char *file) {
  TgValue *gguf = tg_gguf_load_file(C, file);
  TgTokenizer *t = tg_tokenizer_new(C, gguf);
  tg_value_free(gguf);
  if (!t) fail_msg("%s: %s", file, tg_errmsg(C));
  return t;
}

/* ids as a text, in one go and as a stream of whole characters */
static void text_is(TgTokenizer *t, const int32_t *ids, int64_t n, const char *want, size_t length) {
  TgDetokenizer *d = tg_detokenizer_new(t);
  char got[MOST];
  size_t at = 0, k;
  for (int64_t i = 0; i <= n; i++) {
    const char *piece = i < n ? tg_detokenizer_put(d, ids[i], &k) : tg_detokenizer_end(d, &k);
    assert_non_null(piece);
    assert_true(at + k < sizeof got);
    if (k) assert_int_not_equal((unsigned char)piece[0] & 0xc0, 0x80);
    memcpy(got + at, piece, k);
    at += k;
  }
  tg_detokenizer_free(d);
  if (at != length || memcmp(got, want, length)) fail_msg("'%.*s', not '%s'", (int)at, got, want);
}

static void vectors(const char *name, bool exact) {
  char file[100], part[120];
  snprintf(file, sizeof file, "gguf-vocab/ggml-vocab-%s.gguf", name);
  if (!data_at(file)) {
    print_message("%s is not here\n", file);
    skip();
  }
  TgTokenizer *t = tokenizer_of(data_at(file));
  size_t n, length;
  snprintf(part, sizeof part, "%s.inp", file);
  char *in = file_text(data_at(part), &n);
  snprintf(part, sizeof part, "%s.out", file);
  char *out = file_text(data_at(part), &length), *line = out, *text = in;
  static const char mark[] = "\n__ggml_vocab_test__\n";
  int count = 0;
  for (; text && line; count++) { /* the last text is empty, and has no line */
    char *end = strstr(text, mark), *next = line + strcspn(line, "\n");
    size_t size = end ? (size_t)(end - text) : strlen(text);
    int32_t want[MOST], got[MOST];
    int64_t k = 0;
    for (char *p = line, *after; p < next; p = after + strspn(after, " ")) {
      want[k++] = (int32_t)strtol(p, &after, 10);
      if (after == p) fail_msg("%s, line %d", part, count + 1);
    }
    int64_t m = tg_tokenize(t, text, size, got, MOST);
    bool same = m == k;
    for (int64_t i = 0; same && i < k; i++)
      same = got[i] == want[i];
    if (!same)
      fail_msg("%s: text %d, '%.*s': %lld ids, first %d, not %lld (%s)", name, count, (int)size, text,
               (long long)m, (int)got[0], (long long)k, tg_errmsg(C));
    if (exact) text_is(t, got, m, text, size);
    line = *next ? next + 1 : next;
    text = end ? end + strlen(mark) : NULL;
  }
  assert_int_equal(count, 47);
  free(in), free(out);
  tg_tokenizer_free(t);
}

static void test_gpt2(void **state) {
  (void)state;
  vectors("gpt-2", true);
}

static void test_deepseek(void **state) {
  (void)state;
  vectors("deepseek-coder", true);
}

static void test_phi3(void **state) {
  (void)state;
  vectors("phi-3", true);
}

/* 338,025 is what the vocabulary's own encoder gives for this text. */
static void test_long_text(void **state) {
  (void)state;
  const char *file = data_at("gguf-vocab/ggml-vocab-gpt-2.gguf");
  size_t n = 0;
  char *text = file_text(data_at("tinyshakespeare/input.txt"), &n);
  if (!file || !text) {
    print_message("tinyshakespeare is not here\n");
    skip();
  }
  TgTokenizer *t = tokenizer_of(file);
  assert_int_equal(tg_tokenize(t, text, n, NULL, 0), 338025);
  free(text);
  /* one piece of 2^20 letters: what grows with its square would not end */
  char *same = malloc(1 << 20);
  memset(same, 'a', 1 << 20);
  assert_true(tg_tokenize(t, same, 1 << 20, NULL, 0) > 0);
  free(same);
  tg_tokenizer_free(t);
}

/* encoder.json and vocab.bpe say what the gguf file says: each token's bytes, and where it stands. */
static void test_gpt2_files(void **state) {
  (void)state;
  const char *file = data_at("gguf-vocab/ggml-vocab-gpt-2.gguf");
  size_t n = 0;
  char *merges = file_text(data_at("gpt2-vocab/vocab.bpe"), &n);
  if (!file || !merges) {
    print_message("gpt2-vocab is not here\n");
    skip();
  }
  TgTokenizer *t = tokenizer_of(file);
  assert_int_equal(tg_tokenizer_count(t), 50257);
  int64_t rank = 256; /* tokens are 256 bytes, then the merges in their order */
  int tested = 0;
  char *line = strchr(merges, '\n') + 1;
  for (char *next; (next = strchr(line, '\n')); line = next + 1, rank++) {
    char plain[200];
    size_t k = 0;
    bool ascii = true;
    for (char *p = line; p < next; p++) {
      if ((unsigned char)*p >= 0x80) ascii = false;
      if (*p != ' ' && k < sizeof plain) plain[k++] = *p;
    }
    if (!ascii) continue;
    const char *got = tg_token_text(t, rank, &n);
    if (n != k || memcmp(got, plain, k)) fail_msg("token %d is '%.*s'", (int)rank, (int)n, got);
    tested++;
  }
  assert_true(tested > 10000);
  free(merges);
  tg_tokenizer_free(t);
}

/* ---- unigrams and words: what sentencepiece and tokenizers say (tests/llm/make_tokenizers.py) */
static void file_copy(const char *from, const char *to) {
  size_t n = 0;
  char *text = file_text(from, &n);
  FILE *f = fopen(to, "wb");
  assert_true(text && f);
  fwrite(text, 1, n, f), fclose(f), free(text);
}

enum { COPIES = 4 };

/* The tokenizer of goldens/llm/tokenizers/NAME, in a folder with the rest of a model; NULL: the folder goes. */
static TgTokenizer *folder_tokenizer(const char *name) {
  static const char *const files[COPIES] = {"config.json", "model.safetensors", "tokenizer.json",
                                            "tokenizer_config.json"};
  char from[700], to[100];
  mkdir("test_tokenizer_files", 0777);
  for (int i = 0; i < COPIES; i++) {
    snprintf(from, sizeof from, "%s/goldens/llm/%s/%s/%s", TG_TESTS, i < 2 ? "hf" : "tokenizers",
             i < 2 ? "llama" : name, files[i]);
    snprintf(to, sizeof to, "test_tokenizer_files/%s", files[i]);
    if (name)
      file_copy(from, to);
    else
      remove(to);
  }
  if (!name) return rmdir("test_tokenizer_files"), NULL;
  TgValue *v = tg_hf_load(C, "test_tokenizer_files");
  TgTokenizer *t = tg_tokenizer_new(C, v);
  tg_value_free(v);
  if (!t) fail_msg("%s/: %s", name, tg_errmsg(C));
  return t;
}

static void says(TgTokenizer *t, const char *name, const char *text, size_t n, const json_t *want) {
  int32_t got[MOST];
  int64_t k = tg_tokenize(t, text, n, got, MOST, .ends = true);
  bool same = k == (int64_t)json_array_size(want);
  for (int64_t i = 0; same && i < k; i++)
    same = got[i] == json_integer_value(json_array_get(want, (size_t)i));
  if (same) return;
  char *theirs = json_dumps(want, JSON_COMPACT), ours[1000] = "";
  for (int64_t i = 0; i < k && i < 100; i++)
    snprintf(ours + strlen(ours), sizeof ours - strlen(ours), "%d,", (int)got[i]);
  fail_msg("%s: '%.*s' is [%s] (%s), not %.900s", name, (int)n, text, ours, tg_errmsg(C), theirs);
}

/* Texts of the list, then those of the published vocabularies, where they are here. */
static void said_all(TgTokenizer *t, const char *name, const json_t *texts, const json_t *ids) {
  static const char mark[] = "\n__ggml_vocab_test__\n";
  size_t n = json_array_size(texts), length = 0, i = 0;
  for (; i < n; i++) {
    const json_t *text = json_array_get(texts, i);
    says(t, name, json_string_value(text), json_string_length(text), json_array_get(ids, i));
  }
  char *in = file_text(data_at("gguf-vocab/ggml-vocab-gpt-2.gguf.inp"), &length);
  for (char *text = in; text; i++) {
    char *end = strstr(text, mark);
    says(t, name, text, end ? (size_t)(end - text) : strlen(text), json_array_get(ids, i));
    text = end ? end + strlen(mark) : NULL;
  }
  if (in) assert_int_equal(i, json_array_size(ids));
  free(in);
}

/* A text has no control tokens unless they are asked for. */
static void not_smuggled(TgTokenizer *t, const char *special) {
  int32_t got[16];
  int64_t id = tg_token_id(t, special), n = tg_tokenize(t, special, strlen(special), got, 16);
  assert_in_range(n, 1, 16);
  for (int64_t i = 0; i < n; i++)
    assert_true(id < 0 || got[i] != id);
  if (id < 0) return;
  assert_int_equal(tg_tokenize(t, special, strlen(special), got, 16, .special = true), 1);
  assert_int_equal(got[0], id);
}

static void test_learned(void **state) {
  (void)state;
  char path[700];
  size_t n = 0;
  const char *name;
  json_t *ids;
  snprintf(path, sizeof path, "%s/goldens/llm/tokenizers/expected.json", TG_TESTS);
  char *text = file_text(path, &n);
  json_t *want = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
  assert_non_null(want);
  json_object_foreach(json_object_get(want, "ids"), name, ids) {
    char plain[40];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "/"), name);
    snprintf(path, sizeof path, "%s/goldens/llm/tokenizers/%s.gguf", TG_TESTS, plain);
    TgTokenizer *t = strchr(name, '/') ? folder_tokenizer(plain) : tokenizer_of(path);
    said_all(t, name, json_object_get(want, "texts"), ids);
    not_smuggled(t, "</s>");
    not_smuggled(t, "[SEP]");
    tg_tokenizer_free(t);
  }
  folder_tokenizer(NULL);
  json_decref(want), free(text);
}

/* ---- vocabularies made here */
static const char *const pieces[] = {"<unk>",
                                     "<s>",
                                     "</s>",
                                     "\xe2\x96\x81",
                                     "a",
                                     "b",
                                     "ab",
                                     "abb",
                                     "<0x63>",
                                     "<0xC3>",
                                     "<0xA9>",
                                     "[USER]",
                                     "\xe2\x96\x81"
                                     "ab"};
static const float scores[] = {0, 0, 0, -9, -8, -7, -1, -2, 0, 0, 0, 0, -3};
static const int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1, 6, 6, 6, 4, 1};

enum { NPIECES = sizeof pieces / sizeof *pieces };

static void sentence_piece(Made *m) {
  *m = (Made){.n = 0};
  made_text(m, "tokenizer.ggml.model", "llama");
  made_texts(m, "tokenizer.ggml.tokens", pieces, NPIECES);
  made_numbers(m, "tokenizer.ggml.scores", MADE_F32, scores, NPIECES);
  made_numbers(m, "tokenizer.ggml.token_type", MADE_I32, types, NPIECES);
}

static TgTokenizer *made_tokenizer(const Made *m) {
  TgValue *gguf = made_read(C, m);
  TgTokenizer *t = tg_tokenizer_new(C, gguf);
  tg_value_free(gguf);
  return t;
}

static void ids_are(int line, const int32_t *got, int64_t n, const int32_t *want, int64_t k) {
  bool same = n == k;
  for (int64_t i = 0; same && i < k; i++)
    same = got[i] == want[i];
  if (same) return;
  char text[300] = "";
  for (int64_t i = 0; i < n && i < 20; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), " %d", (int)got[i]);
  fail_msg("line %d:%s (%s)", line, text, tg_errmsg(C));
}

#define IDS(text, options, ...)                                                                              \
  do {                                                                                                       \
    int32_t got_[64], want_[] = {__VA_ARGS__};                                                               \
    int64_t n_ = tg_tokenize_opt(t, text, strlen(text), got_, 64, &options);                                 \
    ids_are(__LINE__, got_, n_, want_, (int64_t)(sizeof want_ / sizeof *want_));                             \
  } while (0)

static void test_sentence_piece(void **state) {
  (void)state;
  static Made m;
  sentence_piece(&m);
  TgTokenizer *t = made_tokenizer(&m);
  assert_non_null(t);
  TgTokenizeOptions plain = TG_WITH(TgTokenizeOptions, .special = false);
  TgTokenizeOptions special = TG_WITH(TgTokenizeOptions, .special = true);
  TgTokenizeOptions ends = TG_WITH(TgTokenizeOptions, .ends = true);
  TgTokenizeOptions inside = TG_WITH(TgTokenizeOptions, .inside = true);
  IDS("ab", plain, 12);               /* the blank, then "ab" (-1) before the blank with it (-3) */
  IDS("abb", plain, 3, 7);            /* "ab" is joined, then "abb" (-2) before the blank and "ab" (-3) */
  IDS("abb", inside, 7);              /* "ab", then "abb" */
  IDS("c\xc3\xa9", inside, 8, 9, 10); /* bytes */
  IDS("\xff", inside, 0);             /* no token of that byte */
  IDS("ab", ends, 1, 12);
  IDS("<s>ab", special, 1, 12); /* a control token, and a blank after it */
  IDS("ab[USER]b", inside, 6, 11, 3, 5);
  assert_int_equal(tg_token_special(t, TG_TOKEN_EOS), 2);
  assert_int_equal(tg_token_id(t, "</s>"), 2);
  assert_int_equal(tg_token_id(t, "abb"), 7);
  assert_int_equal(tg_token_id(t, "nothing"), -1);
  assert_true(tg_token_ends(t, 2) && !tg_token_ends(t, 4));
  /* control tokens are characters where they are not asked for, here without tokens of their own */
  int32_t got[64];
  assert_int_equal(tg_tokenize(t, "<s>", 3, got, 64), 4);
  assert_int_equal(got[1], 0);
  tg_tokenizer_free(t);
}

/* A character that is cut waits for its end, and one that never ends is U+FFFD. */
static void test_stream(void **state) {
  (void)state;
  static Made m;
  sentence_piece(&m);
  TgTokenizer *t = made_tokenizer(&m);
  TgDetokenizer *d = tg_detokenizer_new(t);
  size_t n;
  assert_string_equal(tg_detokenizer_put(d, 12, &n), "ab"); /* without the blank before a text */
  assert_string_equal(tg_detokenizer_put(d, 12, &n), " ab");
  tg_detokenizer_put(d, 9, &n);
  assert_int_equal(n, 0);
  const char *rest = tg_detokenizer_put(d, 10, &n);
  assert_int_equal(n, 2);
  assert_memory_equal(rest, "\xc3\xa9", 2);
  tg_detokenizer_put(d, 9, &n);
  assert_int_equal(n, 0);
  assert_string_equal(tg_detokenizer_end(d, &n), "\xef\xbf\xbd");
  assert_string_equal(tg_detokenizer_put(d, 1, &n), ""); /* a control token is no text */
  assert_null(tg_detokenizer_put(d, NPIECES, &n));
  assert_int_equal(tg_error(C), TG_ERR_VALUE);
  tg_clear_error(C);
  tg_detokenizer_free(d);
  d = tg_detokenizer_new(t, .special = true, .inside = true);
  assert_string_equal(tg_detokenizer_put(d, 1, &n), "<s>");
  assert_string_equal(tg_detokenizer_put(d, 12, &n), " ab");
  tg_detokenizer_free(d);
  d = tg_detokenizer_new(t, .inside = true, .bytes = true);
  assert_string_equal(tg_detokenizer_put(d, 12, &n), " ab");
  assert_string_equal(tg_detokenizer_put(d, 9, &n), "\xc3"); /* its own byte, and none of the next token's */
  assert_string_equal(tg_detokenizer_put(d, 10, &n), "\xa9");
  assert_string_equal(tg_detokenizer_put(d, 1, &n), "");
  assert_string_equal(tg_detokenizer_end(d, &n), "");
  tg_detokenizer_free(d);
  tg_tokenizer_free(t);
}

/* ---- vocabularies that lie */
static void refused(int line, const Made *m, const char *part) {
  TgTokenizer *t = made_tokenizer(m);
  if (t || tg_error(C) != TG_ERR_VALUE || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: %s, not about \"%s\"", line, tg_errmsg(C), part);
  tg_clear_error(C);
}

#define REFUSED(part) refused(__LINE__, &m, part)

static void test_hostile_pieces(void **state) {
  (void)state;
  static Made m, whole;
  m = (Made){.n = 0};
  REFUSED("no tokenizer.ggml.model");
  made_number(&m, "tokenizer.ggml.model", 3);
  REFUSED("no text");
  m = (Made){.n = 0};
  made_text(&m, "tokenizer.ggml.model", "rwkv");
  REFUSED("'rwkv' is not known");
  m = (Made){.n = 0};
  made_text(&m, "tokenizer.ggml.model", "llama");
  REFUSED("tokenizer.ggml.tokens");
  Made few = m;
  made_texts(&m, "tokenizer.ggml.tokens", pieces, 0);
  REFUSED("tokenizer.ggml.tokens");
  m = few;
  made_numbers(&m, "tokenizer.ggml.tokens", MADE_I32, types, NPIECES);
  REFUSED("tokenizer.ggml.tokens");
  m = few;
  made_texts(&m, "tokenizer.ggml.tokens", pieces, NPIECES);
  few = m;
  REFUSED("tokenizer.ggml.scores");
  made_numbers(&m, "tokenizer.ggml.scores", MADE_I32, types, NPIECES);
  REFUSED("tokenizer.ggml.scores");
  m = few;
  made_numbers(&m, "tokenizer.ggml.scores", MADE_F32, scores, NPIECES - 1);
  REFUSED("tokenizer.ggml.scores");
  m = few;
  made_numbers(&m, "tokenizer.ggml.token_type", MADE_I32, types, 3);
  REFUSED("tokenizer.ggml.token_type");
  m = few;
  static const int32_t strange[NPIECES] = {9};
  made_numbers(&m, "tokenizer.ggml.token_type", MADE_I32, strange, NPIECES);
  REFUSED("token 0 has the type 9");
  m = few;
  static const int32_t bytes[NPIECES] = {1, 1, 6};
  made_numbers(&m, "tokenizer.ggml.token_type", MADE_I32, bytes, NPIECES);
  REFUSED("token 2, '</s>', is no byte");
  m = few;
  float wrong[NPIECES] = {0};
  memset(&wrong[4], 0xff, 4);
  made_numbers(&m, "tokenizer.ggml.scores", MADE_F32, wrong, NPIECES);
  REFUSED("token 4 is no number");
  sentence_piece(&whole);
  m = whole;
  made_number(&m, "tokenizer.ggml.bos_token_id", NPIECES);
  REFUSED("bos_token_id is 13, and there are 13");
  m = whole;
  made_text(&m, "tokenizer.ggml.eos_token_id", "2");
  REFUSED("eos_token_id is no whole number");
}

static void test_hostile_pairs(void **state) {
  (void)state;
  static Made m;
  static const char *const tokens[] = {"a", "b", "ab"};
  static const char *const none[] = {"ab"}, *const stray[] = {"a c"}, *const right[] = {"a b"};
  made_text(&m, "tokenizer.ggml.model", "gpt2");
  made_texts(&m, "tokenizer.ggml.tokens", tokens, 3);
  Made base = m;
  REFUSED("tokenizer.ggml.merges");
  made_texts(&m, "tokenizer.ggml.merges", none, 1);
  REFUSED("merge 0 is no pair");
  m = base;
  made_texts(&m, "tokenizer.ggml.merges", stray, 1);
  REFUSED("merge 0, 'a c'");
  m = base;
  made_numbers(&m, "tokenizer.ggml.merges", MADE_I32, types, 3);
  REFUSED("tokenizer.ggml.merges");
  m = base;
  made_texts(&m, "tokenizer.ggml.merges", right, 1);
  base = m;
  made_text(&m, "tokenizer.ggml.pre", "gpt-2 olmo");
  REFUSED("'gpt-2 olmo'");
  m = base;
  made_text(&m, "tokenizer.ggml.pre", "unheard-of");
  REFUSED("'unheard-of', whose patterns are not known");
  m = base;
  made_text(&m, "tokenizer.ggml.pre", "gpt-2");
  TgTokenizer *t = made_tokenizer(&m);
  if (!t && strstr(tg_errmsg(C), "pcre2")) {
    tg_clear_error(C);
    return;
  }
  int32_t got[8];
  assert_int_equal(tg_tokenize(t, "abb", 3, got, 8), 2);
  assert_int_equal(got[0], 2);
  assert_int_equal(tg_tokenize(t, "c", 1, got, 8), -1);
  assert_non_null(strstr(tg_errmsg(C), "no token for byte 0x63"));
  tg_clear_error(C);
  tg_tokenizer_free(t);
}

/* What each list of patterns makes of numbers, capitals and Han: cuts by the rules of the published patterns,
 * shown by a vocabulary in which all pairs of neighbours join. */
static void test_patterns(void **state) {
  (void)state;

  static const struct {
    const char *pre;
    int64_t digits, camel; /* ids of "123456", of "aBcD" */
  } rows[] = {{"gpt-2", 1, 1},       {"llama-bpe", 2, 1},    {"qwen2", 6, 1},      {"smollm", 6, 1},
              {"tekken", 6, 3},      {"gpt-4o", 2, 3},       {"falcon", 2, 1},     {"kimi-k2", 2, 3},
              {"deepseek-v3", 2, 1}, {"deepseek-llm", 1, 1}, {"seed-coder", 6, 1}, {"hunyuan-dense", 2, 1},
              {"hunyuan", 6, 1},     {"exaone4", 1, 1}};

  static const char *const tokens[] = {"1",      "2", "3", "4", "5", "6",  "12",  "123",  "45", "456",
                                       "123456", "a", "B", "c", "D", "aB", "aBc", "aBcD", "Bc"};
  static const char *const merges[] = {"1 2", "12 3", "4 5",  "45 6", "123 456",
                                       "B c", "a B",  "a Bc", "aB c", "aBc D"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    static Made m;
    m = (Made){.n = 0};
    made_text(&m, "tokenizer.ggml.model", "gpt2");
    made_text(&m, "tokenizer.ggml.pre", rows[i].pre);
    made_texts(&m, "tokenizer.ggml.tokens", tokens, sizeof tokens / sizeof *tokens);
    made_texts(&m, "tokenizer.ggml.merges", merges, sizeof merges / sizeof *merges);
    TgTokenizer *t = made_tokenizer(&m);
    if (!t && strstr(tg_errmsg(C), "pcre2")) {
      tg_clear_error(C);
      return;
    }
    if (!t) fail_msg("%s: %s", rows[i].pre, tg_errmsg(C));
    int64_t digits = tg_tokenize(t, "123456", 6, NULL, 0), camel = tg_tokenize(t, "aBcD", 4, NULL, 0);
    if (digits != rows[i].digits || camel != rows[i].camel)
      fail_msg("%s: %lld, %lld (%s)", rows[i].pre, (long long)digits, (long long)camel, tg_errmsg(C));
    tg_tokenizer_free(t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gpt2),           cmocka_unit_test(test_deepseek),
      cmocka_unit_test(test_phi3),           cmocka_unit_test(test_long_text),
      cmocka_unit_test(test_learned),        cmocka_unit_test(test_gpt2_files),
      cmocka_unit_test(test_sentence_piece), cmocka_unit_test(test_stream),
      cmocka_unit_test(test_hostile_pieces), cmocka_unit_test(test_hostile_pairs),
      cmocka_unit_test(test_patterns),
  };
  return cmocka_run_group_tests(tests, open_it, close_it);
}
