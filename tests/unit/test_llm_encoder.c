/* test_llm_encoder.c: encoders: embeddings and rerankers. Expected vectors and scores are those of plain forward
 * passes in NumPy, kept in the files (tests/llm/make_models.py). */
#define _GNU_SOURCE
#include "llm/context.h"
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

static const char *golden(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/goldens/llm/%s.gguf", TG_TESTS, name);
  return path;
}

static const char *const files[] = {"bert",          "nomic-bert",         "nomic-bert-long",
                                    "jina-bert-v2",  "jina-bert-v2-norms", "gemma-embedding",
                                    "bert-quantised"};
static const char *const poolings[] = {"mean", "cls", "last"};

enum { FILES = sizeof files / sizeof *files, MOST_TOKENS = 640, MOST_WIDTH = 256 };

static TgLlm *opened(const char *name, const char *pooling, int64_t bits) {
  TgLlm *m = tg_llm_open(C, golden(name), .pooling = pooling, .activations = bits);
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  return m;
}

/* A list of numbers of 4 bytes that the file has. */
static int64_t numbers(const TgLlm *m, const char *key, void *to, size_t cap) {
  TgTensor *t = tg_value_tensor(tg_value_get(tg_value_get(tg_llm_gguf(m), "kv"), key));
  assert_true(t && tg_nbytes(t) <= cap);
  assert_int_equal(tg_read(t, to, tg_nbytes(t)), TG_OK);
  return tg_numel(t);
}

static void close_to(const char *name, const float *got, const float *want, int64_t n, double close) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs((double)(got[i] - want[i])) <= close))
      fail_msg("%s: number %lld is %g, not %g", name, (long long)i, (double)got[i], (double)want[i]);
}

/* The mean, the first, the last token: twice, as planned and as captured. */
static void vectors_of(const char *name, int64_t bits) {
  int32_t ids[MOST_TOKENS];
  float want[3 * MOST_WIDTH], got[MOST_WIDTH];
  bool packed = strstr(name, "quantised") && bits == 16 && !strcmp(tg_default_device(C), "CPU");
  for (int k = 0; k < 3; k++) {
    TgLlm *m = opened(name, poolings[k], bits);
    TgLlmAbout a = tg_llm_about(m);
    int64_t n = numbers(m, "test.ids", ids, sizeof ids);
    numbers(m, "test.embeddings", want, sizeof want);
    assert_true(a.encoder && !a.ranks && !a.batch && !a.cache_bytes && a.width <= MOST_WIDTH);
    for (int turn = 0; turn < 3; turn++) {
      if (tg_llm_embed(m, ids, n, got)) fail_msg("%s: %s", name, tg_errmsg(C));
      close_to(name, got, want + k * a.width, a.width, packed ? 1e-3 : 1e-4);
    }
    tg_llm_free(m);
  }
}

static void test_vectors(void **state) {
  (void)state;
  bool slow = strcmp(tg_default_device(C), "CPU") != 0;
  for (int i = 0; i < FILES; i++)
    if (!slow || !strstr(files[i], "long")) vectors_of(files[i], 16);
  if (!slow) vectors_of("bert-quantised", 32);
}

/* What the file says of pooling, where nothing else is said. */
static void test_pooling(void **state) {
  (void)state;
  static const char *const kinds[] = {"bert", "nomic-bert", "nomic-bert-long"};
  static const int row[] = {1, 0, 2};
  int32_t ids[MOST_TOKENS];
  float want[3 * MOST_WIDTH], got[MOST_WIDTH];
  for (int i = 0; i < (strcmp(tg_default_device(C), "CPU") ? 2 : 3); i++) {
    TgLlm *m = opened(kinds[i], NULL, 16);
    int64_t n = numbers(m, "test.ids", ids, sizeof ids), width = tg_llm_about(m).width;
    numbers(m, "test.embeddings", want, sizeof want);
    assert_int_equal(tg_llm_embed(m, ids, n, got), TG_OK);
    close_to(kinds[i], got, want + row[i] * width, width, 1e-4);
    tg_llm_free(m);
  }
  /* a decoder's last token: of all that it has read, in blocks or not */
  TgLlm *blocks = tg_llm_open(C, golden("llama"), .block = 4, .pooling = "last");
  TgLlm *whole = tg_llm_open(C, golden("llama"), .block = 32, .pooling = "last");
  float other[MOST_WIDTH];
  assert_int_equal(tg_llm_embed(blocks, (int32_t[]){1, 2, 3, 4, 5, 6}, 6, got), TG_OK);
  assert_int_equal(tg_llm_embed(whole, (int32_t[]){1, 2, 3, 4, 5, 6}, 6, other), TG_OK);
  close_to("llama", got, other, tg_llm_about(whole).width, 1e-5);
  assert_int_equal(tg_llm_embed(whole, (int32_t[]){6}, 1, other), TG_OK);
  assert_true(fabsf(got[0] - other[0]) > 1e-4f);
  tg_llm_free(blocks), tg_llm_free(whole);
  assert_null(tg_llm_open(C, golden("bert"), .pooling = "max"));
  assert_non_null(strstr(tg_errmsg(C), "pooling 'max': it is mean, cls, last or rank")), tg_clear_error(C);
}

/* Texts of any lengths, in any order and any sequence: each has the bits that it has alone. */
static void test_order(void **state) {
  (void)state;

  enum { TEXTS = 8, LONGEST = 60 };

  static const int64_t length[TEXTS] = {1, 15, 16, 17, 31, 33, 60, 3};
  float alone[TEXTS][16], got[16];
  int32_t ids[TEXTS][LONGEST];
  for (int t = 0; t < TEXTS; t++)
    for (int64_t i = 0; i < length[t]; i++)
      ids[t][i] = (int32_t)((i * 7 + t) % 20);
  for (int t = 0; t < TEXTS; t++) {
    TgLlm *m = opened("bert", "mean", 16);
    assert_int_equal(tg_llm_embed(m, ids[t], length[t], alone[t]), TG_OK);
    tg_llm_free(m);
  }
  TgLlm *m = tg_llm_open(C, golden("bert"), .pooling = "mean", .sequences = 3, .batch = -1);
  for (int i = 0; i < 5 * TEXTS; i++) {
    int t = i * 5 % TEXTS;
    assert_int_equal(tg_llm_use(m, i % 3), TG_OK);
    assert_int_equal(tg_llm_embed(m, ids[t], length[t], got), TG_OK);
    if (memcmp(got, alone[t], sizeof got)) fail_msg("text %d differs from itself alone, turn %d", t, i);
  }
  tg_llm_free(m);
}

static void error_is(TgStatus is, TgStatus want, const char *part) {
  if (is != want || !strstr(tg_errmsg(C), part)) fail_msg("%d: %s, not about \"%s\"", is, tg_errmsg(C), part);
  tg_clear_error(C);
}

static void test_limits(void **state) {
  (void)state;
  int32_t ids[100] = {0};
  float v[16];
  int64_t n = 1;
  TgLlm *m = tg_llm_open(C, golden("bert"), .context = 4096);
  assert_int_equal(tg_llm_about(m).context, 64); /* there are so many positions */
  assert_int_equal(tg_llm_embed(m, ids, 64, v), TG_OK);
  error_is(tg_llm_embed(m, ids, 65, v), TG_ERR_LIMIT, "65 tokens are more than the context of 64");
  error_is(tg_llm_embed(m, (int32_t[]){20}, 1, v), TG_ERR_VALUE, "token 20 of 20");
  error_is(tg_llm_embed(m, ids, 1, NULL), TG_ERR_VALUE, "nowhere");
  error_is(tg_llm_eval(m, ids, 1), TG_ERR_VALUE, "llm_eval: bert is an encoder: it has embeddings");
  error_is(tg_llm_eval_many(m, ids, ids, 1), TG_ERR_VALUE, "llm_eval_many: bert is an encoder");
  error_is(tg_llm_rank(m, "a", 1, "b", 1, v, NULL), TG_ERR_VALUE, "the model is no reranker");
  assert_null(tg_llm_loss(m, tg_zeros(C, TG_SHAPE(1, 2), .dtype = TG_I32),
                          tg_zeros(C, TG_SHAPE(1, 2), .dtype = TG_I32)));
  error_is(tg_error(C), TG_ERR_VALUE, "llm_loss: bert is an encoder");
  assert_null(tg_lora_new(m));
  error_is(tg_error(C), TG_ERR_VALUE, "encoders have no adapters here");
  assert_null(tg_lora_load(m, "nowhere", 1));
  error_is(tg_error(C), TG_ERR_VALUE, "encoders have no adapters here");
  assert_null(tg_llm_logits(m));
  tg_llm_ids(m, &n);
  assert_int_equal(n, 0);
  tg_cancel(C);
  assert_int_equal(tg_llm_embed(m, ids, 3, v), TG_ERR_CANCELLED), tg_clear_error(C);
  assert_int_equal(tg_llm_embed(m, ids, 3, v), TG_OK);
  tg_llm_free(m);
  m = tg_llm_open(C, golden("bert"), .context = 20);
  assert_int_equal(tg_llm_embed(m, ids, 20, v), TG_OK);
  error_is(tg_llm_embed(m, ids, 21, v), TG_ERR_LIMIT, "the context of 20");
  tg_llm_free(m);
}

static void test_rank(void **state) {
  (void)state;
  float want, got;
  char text[200] = "";
  TgLlm *m = opened("bert-rank", NULL, 16);
  assert_true(tg_llm_about(m).ranks);
  numbers(m, "test.score", &want, sizeof want);
  for (int turn = 0; turn < 3; turn++) {
    if (tg_llm_rank(m, "aa cc", 5, "bb", 2, &got, NULL)) fail_msg("%s", tg_errmsg(C));
    close_to("bert-rank", &got, &want, 1, 1e-4);
  }
  float as_one = got;
  assert_int_equal(tg_llm_rank(m, "bb", 2, "aa cc", 5, &got, NULL), TG_OK);
  assert_true(fabsf(got - as_one) > 1e-4f);
  for (int i = 0; i < 62; i++)
    strcat(text, "aa ");
  error_is(tg_llm_rank(m, text, strlen(text), "bb", 2, &got, NULL), TG_ERR_LIMIT,
           "of 66 tokens are more than the context of 64");
  error_is(tg_llm_embed(m, (int32_t[]){1}, 1, &got), TG_ERR_VALUE, "is a reranker");
  error_is(tg_llm_eval(m, (int32_t[]){1}, 1), TG_ERR_VALUE, "ranks texts");
  tg_llm_free(m);
  assert_null(tg_llm_open(C, golden("bert-rank"), .pooling = "mean"));
  error_is(tg_error(C), TG_ERR_VALUE, "the model is a reranker");
}

/* A decoder that is asked by a template: its head has labels, or its answer is a token. */
static void test_answers(void **state) {
  (void)state;
  static const char *const names[] = {"qwen3-rank", "qwen3-answers"};
  float want, got;
  int64_t tokens;
  for (int i = 0; i < 2; i++) {
    TgLlm *m = tg_llm_open(C, golden(names[i]), .sequences = 2, .pooling = i ? "rank" : NULL);
    if (!m) fail_msg("%s: %s", names[i], tg_errmsg(C));
    assert_true(tg_llm_about(m).ranks && !tg_llm_about(m).encoder);
    numbers(m, "test.score", &want, sizeof want);
    for (int turn = 0; turn < 4; turn++) {
      assert_int_equal(tg_llm_use(m, turn / 2), TG_OK);
      if (tg_llm_rank(m, "aa cc", 5, "bb", 2, &got, &tokens)) fail_msg("%s: %s", names[i], tg_errmsg(C));
      close_to(names[i], &got, &want, 1, 1e-5);
      assert_int_equal(tokens, 7);
    }
    /* a text says nothing by control tokens, nor by the names of places */
    assert_int_equal(tg_llm_rank(m, "[SEP]", 5, "bb", 2, &got, &tokens), TG_OK);
    assert_int_equal(tokens, 8); /* three unknown words */
    assert_int_equal(tg_llm_rank(m, "{document}", 10, "bb bb bb bb", 11, &got, &tokens), TG_OK);
    assert_int_equal(tokens, 11);
    assert_int_equal(tg_llm_rank(m, "", 0, "", 0, &got, &tokens), TG_OK);
    assert_int_equal(tokens, 4);
    error_is(tg_llm_embed(m, (int32_t[]){1}, 1, &got), TG_ERR_VALUE, "is a reranker");
    tg_llm_free(m);
  }
  assert_null(tg_llm_open(C, golden("llama"), .pooling = "rank"));
  error_is(tg_error(C), TG_ERR_VALUE,
           "llama ranks texts, and the file has no template for them (tokenizer.chat_template.rerank)");
  assert_null(tg_llm_open(C, golden("bert"), .pooling = "rank"));
  error_is(tg_error(C), TG_ERR_VALUE, "pooling 'rank': the encoder has no head that ranks");
  assert_null(tg_llm_open(C, golden("qwen3"), .pooling = "rank"));
  error_is(tg_error(C), TG_ERR_VALUE, "a reranker without a vocabulary");
}

/* Documents for one query keep what was computed for the query, and have the bits that they have alone. */
static void test_answers_in_turn(void **state) {
  (void)state;
  static const char *const query = "aa bb cc dd aa bb cc dd aa bb";
  static const char *const documents[] = {"aa", "bb cc", "aa", "bb cc dd dd dd dd dd", "bb cc", ""};
  float alone, got;
  TgLlm *kept = tg_llm_open(C, golden("qwen3-rank"), .block = 4);
  for (int i = 0; i < 6; i++) {
    size_t n = strlen(documents[i]);
    TgLlm *m = tg_llm_open(C, golden("qwen3-rank"), .block = 4);
    assert_int_equal(tg_llm_rank(m, query, strlen(query), documents[i], n, &alone, NULL), TG_OK);
    assert_int_equal(tg_llm_rank(kept, query, strlen(query), documents[i], n, &got, NULL), TG_OK);
    if (memcmp(&alone, &got, sizeof got))
      fail_msg("document %d: %g, alone %g", i, (double)got, (double)alone);
    tg_llm_free(m);
  }
  char text[200] = "";
  for (int i = 0; i < 60; i++)
    strcat(text, "aa ");
  error_is(tg_llm_rank(kept, text, strlen(text), "bb", 2, &got, NULL), TG_ERR_LIMIT,
           "of 65 tokens are more than the context of 64");
  tg_cancel(C);
  assert_int_equal(tg_llm_rank(kept, "aa", 2, "bb", 2, &got, NULL), TG_ERR_CANCELLED), tg_clear_error(C);
  tg_llm_free(kept);
}

/* ---- files that contradict themselves: bytes of a right one, changed at `at` behind the text `from` */
static void changed(const char *name, const char *from, size_t at, const char *to, size_t nto) {
  size_t n = 0;
  char *file = file_text(golden(name), &n), *place = memmem(file, n, from, strlen(from));
  assert_non_null(place);
  memcpy(place + at, to, nto);
  FILE *f = fopen("test_llm_encoder.gguf", "wb");
  fwrite(file, 1, n, f);
  fclose(f);
  free(file);
}

static void refused(const char *name, const char *from, size_t at, const char *to, size_t nto,
                    const char *part) {
  changed(name, from, at, to, nto);
  assert_null(tg_llm_open(C, "test_llm_encoder.gguf"));
  remove("test_llm_encoder.gguf");
  error_is(tg_error(C), TG_ERR_VALUE, part);
}

static void test_damaged(void **state) {
  (void)state;
  refused("bert", "bert.attention.causal", 25, "\1", 1,
          "bert.attention.causal is true, which bert is not here");
  refused("bert", "bert.pooling_type", 21, "\5", 1, "bert.pooling_type is 5");
  refused("bert", "bert.pooling_type", 21, "\4", 1,
          "bert.pooling_type is 4, and the file has no tensor 'cls.output.weight'");
  refused("bert-rank", "bert.pooling_type", 21, "\1", 1,
          "bert.pooling_type is 1, and the file has a tensor 'cls.weight'");
  refused("bert-rank", "bert.pooling_type", 8, "X", 1, "bert.pooling_type is 1, and the file has a tensor");
  refused("bert", "bert.context_length", 23, "\40", 1,
          "tensor 'position_embd.weight' is (64, 16), where the model has (32, 16)");
  refused("bert", "token_embd_norm.bias", 0, "token_embd_norn", 15,
          "'token_embd_norn.bias' is none that bert has here");
  refused("bert", "blk.1.layer_output_norm.weight", 6, "layer_output_nerm", 17,
          "no tensor 'blk.1.layer_output_norm.weight'");
  refused("nomic-bert", "nomic-bert.feed_forward_length", 34, "\7", 1,
          "'blk.0.ffn_gate.weight' is (20, 16), where the model has (7, 16)");
  refused("jina-bert-v2-norms", "feed_forward_length", 23, "\7", 1, "no tensor 'blk.0.ffn_gate.weight'");
  refused("bert", "token_types.weight", 0, "output_norm.weig", 16, "is none that bert has here");
  refused("gemma-embedding", "dense_3.weight", 0, "dense_9.weight", 14, "'dense_9.weight' is none that");
  refused("gemma-embedding", "output_norm.weight", 0, "output_nerm.weight", 18,
          "no tensor 'output_norm.weight'");
  refused("qwen3-rank", "qwen3.pooling_type", 22, "\1", 1,
          "qwen3.pooling_type is 1, and the file has a tensor 'cls.output.weight'");
  refused("qwen3-rank", "classifier.output_labels", 58, "yea", 3,
          "neither of the two labels of qwen3.classifier.output_labels is 'yes'");
  refused("qwen3-rank", "{query}", 0, "{quest}", 7, "has no {query} or no {document}");
  refused("qwen3-answers",
          "\xe2\x96\x81"
          "dd",
          23, "yea", 3, "answers by the tokens 'yes' and 'no', which the vocabulary has not");
  changed("bert", "bert.pooling_type", 21, "\0", 1);
  TgLlm *m = tg_llm_open(C, "test_llm_encoder.gguf");
  float v[16];
  error_is(tg_llm_embed(m, (int32_t[]){1}, 1, v), TG_ERR_VALUE, "bert.pooling_type is 0: say what");
  tg_llm_free(m);
  m = tg_llm_open(C, "test_llm_encoder.gguf", .pooling = "cls");
  assert_int_equal(tg_llm_embed(m, (int32_t[]){1}, 1, v), TG_OK);
  tg_llm_free(m);
  remove("test_llm_encoder.gguf");
}

/* ---- folders as Hugging Face has them: what transformers, tokenizers and their pooling say (make_hf.py) */
static const char *folder_at(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/goldens/llm/hf/%s", TG_TESTS, name);
  return path;
}

static json_t *json_at(const char *name, const char *file) {
  char path[700];
  snprintf(path, sizeof path, "%s/%s", folder_at(name), file);
  json_t *v = json_load_file(path, 0, NULL);
  assert_non_null(v);
  return v;
}

static void folder_texts(const char *name, const TgLlm *m, const json_t *want) {
  json_t *each;
  size_t i;
  int32_t ids[200];
  json_array_foreach(json_object_get(want, "texts"), i, each) {
    const char *s = json_string_value(json_object_get(each, "text"));
    const json_t *theirs = json_object_get(each, "ids");
    int64_t n = tg_tokenize(tg_llm_tokenizer(m), s, strlen(s), ids, 200, .ends = true);
    assert_int_equal(n, json_array_size(theirs));
    for (int64_t k = 0; k < n; k++)
      if (ids[k] != json_integer_value(json_array_get(theirs, (size_t)k)))
        fail_msg("%s: '%s': token %lld is %d", name, s, (long long)k, ids[k]);
  }
}

static void folder_vectors(const char *name, const char *own) {
  static const char *const kinds[] = {NULL, "mean", "cls", "last"};
  json_t *want = json_at(name, "expected.json"), *list = json_object_get(want, "ids");
  int32_t ids[64];
  float theirs[16], got[16];
  size_t n = json_array_size(list);
  for (size_t i = 0; i < n; i++)
    ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
  for (int k = 0; k < 4; k++) {
    TgLlm *m = tg_llm_open(C, folder_at(name), .pooling = kinds[k]);
    if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
    if (!k) folder_texts(name, m, want);
    for (size_t i = 0; i < 16; i++)
      theirs[i] = (float)json_real_value(json_array_get(json_object_get(want, k ? kinds[k] : own), i));
    if (tg_llm_embed(m, ids, (int64_t)n, got)) fail_msg("%s: %s", name, tg_errmsg(C));
    close_to(name, got, theirs, 16, 1e-4);
    tg_llm_free(m);
  }
  json_decref(want);
}

static void folder_scores(const char *name) {
  json_t *want = json_at(name, "expected.json"), *each;
  size_t i;
  TgLlm *m = tg_llm_open(C, folder_at(name));
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  folder_texts(name, m, want);
  json_array_foreach(json_object_get(want, "pairs"), i, each) {
    const char *q = json_string_value(json_object_get(each, "query"));
    const char *d = json_string_value(json_object_get(each, "document"));
    float theirs = (float)json_real_value(json_object_get(each, "score")), got;
    int64_t tokens;
    if (tg_llm_rank(m, q, strlen(q), d, strlen(d), &got, &tokens)) fail_msg("%s: %s", name, tg_errmsg(C));
    close_to(name, &got, &theirs, 1, 1e-4 * (1 + fabs((double)theirs)));
    assert_int_equal(tokens, json_integer_value(json_object_get(each, "tokens")));
  }
  assert_true(i == 3);
  tg_llm_free(m);
  json_decref(want);
}

static void test_folders(void **state) {
  (void)state;
  folder_vectors("bert", "cls");
  folder_vectors("xlm-roberta", "mean");
  folder_vectors("nomic-bert", "mean");
  folder_scores("bert-rank");
  folder_scores("xlm-roberta-rank");
  folder_vectors("roberta", "mean");
  folder_scores("roberta-rank");
  folder_vectors("modernbert", "cls");
  folder_scores("modernbert-rank");
  folder_vectors("qwen3-embedding", "last");
  folder_scores("qwen3-reranker");
  folder_scores("qwen3-rank");
}

/* A folder of a decoder is a reranker by its name, or by the heading of its README. */
static void test_named(void **state) {
  (void)state;
  static const char *const readme[] = {NULL, "# A model\n# A reranker\n", "about\n# Qwen3-Reranker-0.6B\n"};
  char line[1500];
  snprintf(line, sizeof line, "rm -rf test_named; cp -r '%s' test_named", folder_at("qwen3-reranker"));
  assert_int_equal(system(line), 0);
  for (int i = 0; i < 3; i++) {
    FILE *f = readme[i] ? fopen("test_named/README.md", "w") : NULL;
    if (f) fputs(readme[i], f), fclose(f);
    TgLlm *m = tg_llm_open(C, "test_named/");
    if (!m) fail_msg("%s", tg_errmsg(C));
    assert_int_equal(tg_llm_about(m).ranks, i == 2);
    tg_llm_free(m);
  }
  assert_int_equal(system("rm -rf test_named"), 0);
}

/* A copy of a folder, in which members of a file's JSON are set. */
static TgLlm *folder_with(const char *name, const char *file, json_t *members) {
  char line[1500], to[100];
  snprintf(line, sizeof line, "rm -rf test_with; cp -r '%s' test_with", folder_at(name));
  assert_int_equal(system(line), 0);
  snprintf(to, sizeof to, "test_with/%s", file);
  bool lengths = strstr(file, "tokenizer") != NULL; /* that file may contain lengths of 1e30 */
  json_t *v = json_load_file(to, lengths ? JSON_DECODE_INT_AS_REAL : 0, NULL);
  assert_non_null(v);
  assert_int_equal(json_object_update(v, members), 0);
  assert_int_equal(json_dump_file(v, to, 0), 0);
  json_decref(v), json_decref(members);
  TgLlm *m = tg_llm_open(C, "test_with");
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  return m;
}

/* The ends that a folder of a decoder asks for, as e5-mistral does. */
static void test_ends(void **state) {
  (void)state;
  int32_t ids[8];
  TgLlm *m = folder_with("mistral", "tokenizer_config.json", json_pack("{s:b}", "add_eos_token", 1));
  const TgTokenizer *t = tg_llm_tokenizer(m);
  int64_t n = tg_tokenize(tg_llm_tokenizer(m), "dog", 3, ids, 8, .ends = true);
  assert_true(n > 2 && n <= 8);
  assert_int_equal(ids[0], tg_token_special(t, TG_TOKEN_BOS));
  assert_int_equal(ids[n - 1], tg_token_special(t, TG_TOKEN_EOS));
  assert_true(ids[n - 1] == tg_token_id(t, "<|end|>"));
  tg_llm_free(m);
  /* Qwen's embeddings end with another token than its replies */
  m = tg_llm_open(C, folder_at("qwen3-embedding"));
  t = tg_llm_tokenizer(m);
  assert_true(tg_token_special(t, TG_TOKEN_EOS) == tg_token_id(t, "<|endoftext|>"));
  assert_true(tg_token_special(t, TG_TOKEN_EOT) == tg_token_id(t, "<|im_end|>"));
  tg_llm_free(m);
  assert_int_equal(system("rm -rf test_with"), 0);
}

/* Settings that are written in two ways, or are left out: the same vector. */
static void test_ways(void **state) {
  (void)state;
  float want[16], got[16];
  static const int32_t ids[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 9, 7, 5, 3};
  TgLlm *m = tg_llm_open(C, folder_at("modernbert"));
  assert_int_equal(tg_llm_embed(m, ids, 13, want), TG_OK);
  tg_llm_free(m);
  m = folder_with("modernbert", "config.json",
                  json_pack("{s:n, s:n, s:f, s:f}", "rope_parameters", "layer_types", "global_rope_theta",
                            500.0, "local_rope_theta", 50.0));
  assert_int_equal(tg_llm_embed(m, ids, 13, got), TG_OK);
  close_to("modernbert", got, want, 16, 0);
  tg_llm_free(m);
  m = folder_with("modernbert", "config.json", json_pack("{s:n}", "global_attn_every_n_layers"));
  assert_int_equal(tg_llm_embed(m, ids, 13, got), TG_OK);
  close_to("modernbert", got, want, 16, 0);
  tg_llm_free(m);
  m = folder_with("modernbert", "1_Pooling/config.json",
                  json_pack("{s:s, s:b}", "pooling_mode", "mean", "pooling_mode_cls_token", 0));
  assert_int_equal(tg_llm_embed(m, ids, 13, got), TG_OK);
  assert_true(fabsf(got[0] - want[0]) > 1e-4f);
  tg_llm_free(m);
  m = tg_llm_open(C, folder_at("roberta"));
  assert_int_equal(tg_llm_embed(m, ids, 13, want), TG_OK);
  tg_llm_free(m);
  m = folder_with("roberta", "config.json",
                  json_pack("{s:n}", "pad_token_id")); /* positions begin behind 1 */
  assert_int_equal(tg_llm_embed(m, ids, 13, got), TG_OK);
  close_to("roberta", got, want, 16, 0);
  tg_llm_free(m);
  assert_int_equal(system("rm -rf test_with"), 0);
}

/* A decoder whose tokens see the later ones, too, as gte-Qwen2's do: it is an encoder. */
static void test_both_ways(void **state) {
  (void)state;
  folder_vectors("qwen2-both-ways", "last");
  TgLlm *m = tg_llm_open(C, folder_at("qwen2-both-ways"));
  assert_true(tg_llm_about(m).encoder);
  error_is(tg_llm_eval(m, (int32_t[]){1}, 1), TG_ERR_VALUE, "qwen2 is an encoder");
  tg_llm_free(m);
}

/* The folder with one file otherwise: a member of its JSON set. */
static void folder_refused(const char *name, const char *file, const char *member, json_t *value,
                           const char *part) {
  char line[1500], to[100];
  snprintf(line, sizeof line, "rm -rf test_encoder_folder; cp -r '%s' test_encoder_folder", folder_at(name));
  assert_int_equal(system(line), 0);
  snprintf(to, sizeof to, "test_encoder_folder/%s", file);
  json_t *v = json_load_file(to, 0, NULL);
  if (!v) { /* one more file */
    *strrchr(to, '/') = 0;
    mkdir(to, 0777);
    to[strlen(to)] = '/';
    v = json_object();
  }
  json_object_set_new(v, member, value);
  assert_int_equal(json_dump_file(v, to, 0), 0);
  json_decref(v);
  TgLlm *m = tg_llm_open(C, "test_encoder_folder");
  assert_null(m);
  error_is(tg_error(C), TG_ERR_VALUE, part);
  assert_int_equal(system("rm -rf test_encoder_folder"), 0);
}

static void test_wrong_folders(void **state) {
  (void)state;
  folder_refused("bert", "config.json", "is_decoder", json_true(), "is_decoder is otherwise");
  folder_refused("bert", "config.json", "position_embedding_type", json_string("relative_key"),
                 "position_embedding_type 'relative_key'");
  folder_refused("bert", "config.json", "hidden_act", json_string("gelu_new"), "hidden_act 'gelu_new'");
  folder_refused("bert", "config.json", "hidden_size", json_integer(20),
                 "is (84, 16), where the model has (84, 20)");
  folder_refused("bert", "1_Pooling/config.json", "pooling_mode_max_tokens", json_true(),
                 "pooling_mode_max_tokens is not known");
  folder_refused("bert", "1_Pooling/config.json", "pooling_mode_mean_tokens", json_true(), "or not alone");
  folder_refused("bert", "2_Dense/config.json", "in_features", json_integer(16),
                 "2_Dense: a layer after pooling");
  folder_refused("roberta-rank", "config.json", "id2label", json_pack("{s:s, s:s}", "0", "A", "1", "B"),
                 "neither of the two labels of bert.classifier.output_labels is 'yes'");
  folder_refused("modernbert-rank", "config.json", "classifier_pooling", json_string("max"),
                 "classifier_pooling 'max' is not known");
  folder_refused("modernbert-rank", "config.json", "classifier_activation", json_string("relu"),
                 "classifier_activation 'relu' is not known");
  folder_refused("roberta", "1_Pooling/config.json", "pooling_mode", json_string("max"),
                 "max is not known here");
  folder_refused("roberta", "config.json", "pad_token_id", json_integer(1000000000000),
                 "bert.context_length is");
  folder_refused("qwen3-rank", "config.json", "num_hidden_layers", json_integer(1), "'blk.1.");
  folder_refused("nomic-bert", "config.json", "prenorm", json_true(), "prenorm is otherwise");
  folder_refused("nomic-bert", "config.json", "rotary_emb_interleaved", json_true(),
                 "rotary_emb_interleaved is otherwise");
  folder_refused("xlm-roberta", "config.json", "max_position_embeddings", json_integer(60),
                 "'position_embd.weight' is (62, 16)");
}

/* ---- memory that ends: each allocation fails in turn, and all is given back */
static bool everything(TgContext *c) {
  float v[16];
  TgLlm *m = tg_llm_open(c, golden("bert-rank"), .context = 8);
  bool ok = m && !tg_llm_rank(m, "aa", 2, "bb", 2, v, NULL);
  tg_llm_free(m);
  m = ok ? tg_llm_open(c, golden("qwen3-answers"), .context = 8) : NULL;
  ok = m && !tg_llm_rank(m, "aa cc", 5, "bb", 2, v, NULL);
  tg_llm_free(m);
  m = ok ? tg_llm_open(c, golden("jina-bert-v2"), .context = 8) : NULL;
  ok = m && !tg_llm_embed(m, (int32_t[]){1, 2}, 2, (float[18]){0});
  tg_llm_free(m);
  return ok;
}

static void test_memory(void **state) {
  (void)state;
  if (strcmp(tg_default_device(C), "INTERP")) skip(); /* where nothing is compiled on the way */
  short_everywhere(everything, 701);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
                                     cmocka_unit_test(test_pooling),
                                     cmocka_unit_test(test_order),
                                     cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_rank),
                                     cmocka_unit_test(test_answers),
                                     cmocka_unit_test(test_answers_in_turn),
                                     cmocka_unit_test(test_damaged),
                                     cmocka_unit_test(test_folders),
                                     cmocka_unit_test(test_named),
                                     cmocka_unit_test(test_ends),
                                     cmocka_unit_test(test_ways),
                                     cmocka_unit_test(test_both_ways),
                                     cmocka_unit_test(test_wrong_folders),
                                     cmocka_unit_test(test_memory)};
  setenv("TG_SPEC", "1", 0);
  return cmocka_run_group_tests_name("CPU", tests, open_cpu, close_it) +
         cmocka_run_group_tests_name("INTERP", tests, open_interp, close_it);
}
