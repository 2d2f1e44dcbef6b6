/* test_llm.c: language models. Expected logits are those of plain forward passes in NumPy, kept in the files
 * (tests/llm/make_models.py), and of stories260K (shared data): its published text, token for token. Each
 * runs by single tokens and by blocks, on CPU and INTERP, or on the device that is named; files that contradict
 * themselves are refused. */
#define _GNU_SOURCE
#include "llm/context.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <cmocka.h>
#include <jansson.h>

/* Closes the context, and removes the folder that a test wrote. */
static int close_all(void **state) {
  static const char *const left[] = {"config.json", "model.safetensors", "tokenizer.json",
                                     "tokenizer_config.json", ""};
  char path[80];
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, "test_llm_folder/%s", left[i]);
    remove(path);
  }
  return close_it(state);
}

static const char *golden(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/goldens/llm/%s.gguf", TG_TESTS, name);
  return path;
}

static const char *const names[] = {"llama",         "llama-tied-linear",
                                    "llama-ntk",     "llama-yarn",
                                    "llama-factors", "llama-window",
                                    "llama-experts", "llama-bf16",
                                    "qwen2",         "qwen3",
                                    "qwen2moe",      "qwen3moe",
                                    "gpt-oss",       "smollm3",
                                    "gemma",         "gemma2",
                                    "gemma3",        "phi3",
                                    "phi3-long",     "glm4",
                                    "gpt2",          "granite",
                                    "granitemoe",    "olmo2",
                                    "command-r",     "cohere2",
                                    "exaone",        "internlm2",
                                    "starcoder2",    "nemotron",
                                    "stablelm",      "stablelm-12b",
                                    "phi2",          "phi2-joined",
                                    "gptneox",       "gptneox-serial",
                                    "falcon",        "falcon-40b",
                                    "bloom",         "mpt",
                                    "mpt-learned",   "olmo",
                                    "olmoe",         "minicpm",
                                    "minicpm-usual", "deepseek",
                                    "deepseek2",     "deepseek2-lite",
                                    "glm4moe",       "ernie4_5",
                                    "hunyuan-dense", "exaone4",
                                    "exaone4-small", "seed_oss"};

enum { NAMES = sizeof names / sizeof *names, MOST_TOKENS = 16, MOST_LOGITS = 512, VOCABULARY = 20 };

/* Logits after token i are those of the file, within `close`. */
static void logits_are(const TgLlm *m, const char *name, const float *want, int64_t i, double close) {
  int64_t v = tg_llm_about(m).vocabulary;
  const float *got = tg_llm_logits(m);
  assert_non_null(got);
  for (int64_t j = 0; j < v; j++)
    if (!(fabs((double)(got[j] - want[i * v + j])) <= close))
      fail_msg("%s: token %lld, logit %lld is %g, not %g", name, (long long)i, (long long)j, (double)got[j],
               (double)want[i * v + j]);
}

static int64_t expected(const TgLlm *m, int32_t *ids, float *logits) {
  const TgValue *kv = tg_value_get(tg_llm_gguf(m), "kv");
  TgTensor *t = tg_value_tensor(tg_value_get(kv, "test.ids"));
  TgTensor *l = tg_value_tensor(tg_value_get(kv, "test.logits"));
  assert_true(t && l && tg_numel(t) <= MOST_TOKENS && tg_numel(l) <= MOST_LOGITS);
  assert_int_equal(tg_read(t, ids, tg_nbytes(t)), TG_OK);
  assert_int_equal(tg_read(l, logits, tg_nbytes(l)), TG_OK);
  return tg_numel(t);
}

static TgLlm *opened(const char *path, int64_t block, TgDType cache) {
  TgLlm *m = tg_llm_open(C, path, .context = 24, .block = block, .cache = cache);
  if (!m) fail_msg("%s: %s", path, tg_errmsg(C));
  return m;
}

static void architecture(const char *name) {
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS];
  TgLlm *m = opened(golden(name), 4, TG_F32);
  int64_t n = expected(m, ids, want);
  for (int64_t i = 0; i < n; i++) {
    if (tg_llm_eval(m, &ids[i], 1)) fail_msg("%s: %s", name, tg_errmsg(C));
    logits_are(m, name, want, i, 1e-4);
  }
  /* blocks of 4, the last one not full, after a beginning that is not a block's; twice, as captured */
  for (int turn = 0; turn < 2; turn++) {
    assert_int_equal(tg_llm_rewind(m, turn), TG_OK);
    assert_null(tg_llm_logits(m));
    if (tg_llm_eval(m, ids + turn, n - turn)) fail_msg("%s: %s", name, tg_errmsg(C));
    logits_are(m, name, want, n - 1, 1e-4);
  }
  assert_int_equal(tg_llm_rewind(m, 5), TG_OK);
  assert_int_equal(tg_llm_eval(m, ids + 5, 3), TG_OK);
  logits_are(m, name, want, 7, 1e-4);
  tg_llm_free(m);
}

/* Every quantised type: of packed matrices with x in 16 bits, and of the file's order with f32. Nothing is
 * packed in INTERP. */
static void test_quantised(void **state) {
  (void)state;
  static const char *const files[] = {"llama-quantised", "qwen3moe-quantised", "deepseek2-eights"};
  bool cpu = !strcmp(tg_default_device(C), "CPU");
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS];
  for (int f = 0; f < 3; f++)
    for (int64_t bits = 16; bits <= 32; bits += 16) {
      TgLlm *m = tg_llm_open(C, golden(files[f]), .context = 24, .block = 8, .activations = bits);
      if (!m) fail_msg("%s: %s", files[f], tg_errmsg(C));
      int64_t n = expected(m, ids, want);
      double close = bits == 32 || !cpu ? 1e-4 : 1e-3;
      for (int64_t i = 0; i < n; i++) {
        if (tg_llm_eval(m, &ids[i], 1)) fail_msg("%s: %s", files[f], tg_errmsg(C));
        logits_are(m, files[f], want, i, close);
      }
      assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
      assert_int_equal(tg_llm_eval(m, ids, n), TG_OK);
      logits_are(m, files[f], want, n - 1, close);
      tg_llm_free(m);
    }
}

/* Weights of bf16 in a block of a prompt: with 8 bits activations are rounded to bf16, too, by at most 1/256. A single
 * token's stay f32. */
static void test_bf16(void **state) {
  (void)state;
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS];
  double off[2] = {0}, largest = 0;
  for (int k = 0; k < 2; k++) {
    TgLlm *m = tg_llm_open(C, golden("llama-bf16"), .context = 24, .block = 16, .activations = k ? 8 : 16);
    if (!m) fail_msg("llama-bf16: %s", tg_errmsg(C));
    int64_t n = expected(m, ids, want), v = tg_llm_about(m).vocabulary;
    if (tg_llm_eval(m, ids, n)) fail_msg("llama-bf16: %s", tg_errmsg(C));
    const float *got = tg_llm_logits(m);
    for (int64_t i = 0; i < v; i++) {
      off[k] = fmax(off[k], fabs((double)(got[i] - want[(n - 1) * v + i])));
      largest = fmax(largest, fabs((double)got[i]));
    }
    tg_llm_free(m);
  }
  if (!(off[0] <= 1e-4 && off[1] > 1e-4 && off[1] < largest / 100))
    fail_msg("off by %g and %g of %g", off[0], off[1], largest);
}

static void test_architectures(void **state) {
  (void)state;
  for (int i = 0; i < NAMES; i++)
    architecture(names[i]);
}

/* The same bits; a GPU plans a model of one sequence and one of several apart, so sums may have another order.
 */
static bool as_alone(const TgLlm *m, const float *alone, int64_t v) {
  const float *is = tg_llm_logits(m);
  bool near = is && named;
  for (int64_t i = 0; near && i < v; i++)
    near = fabsf(is[i] - alone[i]) < 1e-5f;
  return near || (is && !memcmp(is, alone, (size_t)v * sizeof *alone));
}

/* Three texts in turn, token by token, and one that begins with what another has: the bits of each alone. */
static void sequences_of(const char *name, const char *cache) {
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS], alone[MOST_LOGITS];
  TgLlm *m = tg_llm_open(C, golden(name), .context = 24, .block = 4, .cache_type = cache);
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  int64_t n = expected(m, ids, want), v = tg_llm_about(m).vocabulary;
  for (int64_t i = 0; i < n; i++) {
    assert_int_equal(tg_llm_eval(m, &ids[i], 1), TG_OK);
    memcpy(alone + i * v, tg_llm_logits(m), (size_t)v * sizeof *alone);
  }
  tg_llm_free(m);
  m = tg_llm_open(C, golden(name), .context = 24, .block = 4, .sequences = 3, .cache_type = cache);
  assert_non_null(m);
  assert_int_equal(tg_llm_about(m).sequences, 3);
  for (int64_t i = 0; i < n + 4; i++)
    for (int64_t s = 0; s < 3; s++) {
      int64_t at = i - 2 * s; /* the others begin later */
      if (at < 0 || at >= n) continue;
      assert_int_equal(tg_llm_use(m, s), TG_OK);
      assert_int_equal(tg_llm_eval(m, &ids[at], 1), TG_OK);
      if (!as_alone(m, alone + at * v, v))
        fail_msg("%s: sequence %lld, token %lld differs from itself alone", name, (long long)s,
                 (long long)at);
    }
  for (int64_t other = 0; other < 3; other++) { /* of itself: a rewind */
    assert_int_equal(tg_llm_use(m, 1), TG_OK);
    assert_int_equal(tg_llm_rewind(m, other == 1 ? n : 0), TG_OK);
    assert_int_equal(tg_llm_copy(m, other, n - 1), TG_OK);
    assert_null(tg_llm_logits(m));
    assert_int_equal(tg_llm_eval(m, &ids[n - 1], 1), TG_OK);
    assert_true(as_alone(m, alone + (n - 1) * v, v));
  }
  assert_int_equal(tg_llm_use(m, 3), TG_ERR_VALUE);
  assert_int_equal(tg_llm_use(m, -1), TG_ERR_VALUE);
  assert_int_equal(tg_llm_copy(m, 0, n + 1), TG_ERR_VALUE);
  assert_int_equal(tg_llm_copy(m, 3, 0), TG_ERR_VALUE);
  tg_llm_free(m);
  assert_null(tg_llm_open(C, golden(name), .sequences = -1));
  tg_clear_error(C);
}

static void test_sequences(void **state) {
  (void)state;
  sequences_of("llama", NULL);
  sequences_of("llama-cache", "q8_0");
  sequences_of("gemma3", NULL);
}

/* Tokens of several sequences at once: near the expected logits, and the bits of each alone in a step,
 * whatever its place, its sequence, the others, and how far they are. */
static void many_of(const char *name, int64_t sequences, int64_t batch, const char *cache) {
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS], alone[MOST_LOGITS];
  TgLlm *m = tg_llm_open(C, golden(name), .context = 24, .block = 4, .sequences = sequences, .batch = batch,
                         .cache_type = cache);
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  assert_int_equal(tg_llm_about(m).batch, batch);
  int64_t n = expected(m, ids, want), v = tg_llm_about(m).vocabulary;
  int32_t last = (int32_t)sequences - 1;
  assert_int_equal(tg_llm_use(m, last), TG_OK);
  for (int64_t i = 0; i < n; i++) {
    if (tg_llm_eval_many(m, &last, &ids[i], 1)) fail_msg("%s: %s", name, tg_errmsg(C));
    logits_are(m, name, want, i, strstr(name, "quantised") ? 1e-3 : 1e-4);
    memcpy(alone + i * v, tg_llm_logits(m), (size_t)v * sizeof *alone);
  }
  assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
  for (int64_t step = 0; step < n + 2 * sequences; step++) {
    int32_t which[8], id[8], k = 0;
    for (int64_t i = 0; i < sequences; i++) {
      int64_t s = (i + step) % sequences, at = step - 2 * s; /* they begin one after the other */
      if (at < 0 || at >= n) continue;
      which[k] = (int32_t)s;
      id[k++] = ids[at];
    }
    if (!k) continue;
    if (tg_llm_eval_many(m, which, id, k)) fail_msg("%s: %s", name, tg_errmsg(C));
    for (int i = 0; i < k; i++) {
      int64_t at = step - 2 * which[i];
      assert_int_equal(tg_llm_use(m, which[i]), TG_OK);
      if (memcmp(tg_llm_logits(m), alone + at * v, (size_t)v * sizeof *alone))
        fail_msg("%s: sequence %d, token %lld differs from itself alone", name, which[i], (long long)at);
    }
  }
  tg_llm_free(m);
}

/* The same over several reaches: a text's bits do not depend on how many are beside it, nor how long they are. */
static void reaches_of(const char *name) {
  enum { LENGTH = 150, OTHERS = 4 };

  float alone[LENGTH][VOCABULARY];
  TgLlm *m = tg_llm_open(C, golden(name), .context = LENGTH, .block = 8, .sequences = OTHERS + 1, .batch = 6);
  assert_int_equal(tg_llm_about(m).vocabulary, VOCABULARY);
  for (int turn = 0; turn < 2; turn++) {
    int32_t which[OTHERS + 1], id[OTHERS + 1];
    for (int s = 0; s <= OTHERS; s++)
      assert_int_equal(tg_llm_use(m, s) | tg_llm_rewind(m, 0), TG_OK);
    for (int at = 0; at < LENGTH; at++) {
      int k = 0;
      for (int s = 0; s <= (turn ? OTHERS : 0); s++)
        if (!s || (at > 30 * s && (at + s) % 3)) which[k] = s, id[k++] = (at * 7 + s) % VOCABULARY;
      if (tg_llm_eval_many(m, which, id, k)) fail_msg("%s", tg_errmsg(C));
      assert_int_equal(tg_llm_use(m, 0), TG_OK);
      if (!turn) memcpy(alone[at], tg_llm_logits(m), sizeof *alone);
      if (memcmp(alone[at], tg_llm_logits(m), sizeof *alone)) fail_msg("token %d, %d beside it", at, k - 1);
    }
  }
  tg_llm_free(m);
}

static void test_reaches(void **state) {
  (void)state;
  reaches_of("llama-quantised");
  reaches_of("llama");
}

/* A step costs what its rows are worth, with an adapter too: the small programs, whose bits are the same, are taken. */
static void test_rows(void **state) {
  (void)state;

  enum { ROWS = 16 };

  static const char *const files[] = {"llama", "llama-quantised", "qwen2", "gemma3"};
  int32_t which[ROWS], id[ROWS];
  for (int i = 0; i < ROWS; i++)
    which[i] = i, id[i] = i % 7;
  for (size_t f = 0; f < 2 * sizeof files / sizeof *files; f++) {
    uint64_t flops[2];
    TgLlm *m = tg_llm_open(C, golden(files[f / 2]), .context = 48, .sequences = ROWS, .batch = -1);
    if (f % 2) assert_non_null(tg_lora_new(m, .modules = "all", .rank = 4));
    for (int many = 0; many < 2; many++) {
      for (int turn = 0; turn < 20; turn++) {
        tg_counters_reset(C);
        if (tg_llm_eval_many(m, which, id, many ? ROWS : 1)) fail_msg("%s: %s", files[f / 2], tg_errmsg(C));
      }
      flops[many] = tg_counters(C).flops;
    }
    if (flops[0] > flops[1] / 2)
      fail_msg("%s: one sequence takes %.0f operations, 16 take %.0f", files[f / 2], (double)flops[0],
               (double)flops[1]);
    tg_llm_free(m);
  }
}

static void test_many(void **state) {
  (void)state;
  for (int i = 0; i < NAMES; i++)
    many_of(names[i], 3, 2, NULL);
  many_of("llama", 5, 4, NULL);
  many_of("gemma3", 4, 4, NULL);
  many_of("llama", 7, 7, NULL); /* programs of 7, 4, 2 and 1 */
  many_of("llama-quantised", 7, 7, NULL);
  many_of("qwen3moe-quantised", 3, 3, NULL);
  many_of("qwen3", 4, 3, NULL);
  many_of("llama-cache", 4, 3, "q8_0");
  many_of("llama", 2, 1, NULL);
  many_of("llama", 2, 4, NULL);
  TgLlm *m = tg_llm_open(C, golden("llama"), .context = 24, .sequences = 3, .batch = 2);
  int64_t n = 0;
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0, 0}, (int32_t[]){1, 20}, 2), TG_ERR_VALUE),
      tg_clear_error(C);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0, 3}, (int32_t[]){1, 1}, 2), TG_ERR_VALUE),
      tg_clear_error(C);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0, -1}, (int32_t[]){1, 1}, 2), TG_ERR_VALUE),
      tg_clear_error(C);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0, 1}, (int32_t[]){1, 20}, 2), TG_ERR_VALUE),
      tg_clear_error(C);
  assert_int_equal(tg_llm_eval_many(m, NULL, NULL, 1), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0}, (int32_t[]){1}, 0), TG_ERR_VALUE), tg_clear_error(C);
  for (int i = 0; i < 24; i++)
    assert_int_equal(tg_llm_eval_many(m, (int32_t[]){1}, (int32_t[]){1}, 1), TG_OK);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0, 1}, (int32_t[]){1, 1}, 2), TG_ERR_LIMIT),
      tg_clear_error(C);
  tg_llm_ids(m, &n); /* of the first: nothing was done */
  assert_int_equal(n, 0);
  tg_cancel(C);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0}, (int32_t[]){1}, 1), TG_ERR_CANCELLED),
      tg_clear_error(C);
  tg_llm_ids(m, &n);
  assert_int_equal(n, 0);
  tg_llm_free(m);
  m = tg_llm_open(C, golden("llama"), .sequences = 3);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0}, (int32_t[]){1}, 1), TG_ERR_VALUE);
  assert_non_null(strstr(tg_errmsg(C), "without a batch")), tg_clear_error(C);
  tg_llm_free(m);
  assert_null(tg_llm_open(C, golden("llama"), .sequences = 3, .batch = 4096)), tg_clear_error(C);
  m = tg_llm_open(C, golden("llama"), .sequences = 3, .batch = -1);
  assert_int_equal(tg_llm_about(m).batch, 16); /* as of any other number of sequences */
  tg_llm_free(m);
}

/* What a text that goes on may keep: whole blocks from the first token on, of prompts. */
static void test_settled(void **state) {
  (void)state;
  int32_t ids[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
  TgLlm *m = tg_llm_open(C, golden("llama"), .context = 24, .block = 4, .sequences = 2, .batch = 2);
  assert_int_equal(tg_llm_settled(m), 0);
  assert_int_equal(tg_llm_eval(m, ids, 10), TG_OK);
  assert_int_equal(tg_llm_settled(m), 8);
  assert_int_equal(tg_llm_eval_many(m, (int32_t[]){0}, ids, 1), TG_OK);
  assert_int_equal(tg_llm_eval(m, ids, 4), TG_OK); /* a block, but not after whole ones */
  assert_int_equal(tg_llm_settled(m), 8);
  assert_int_equal(tg_llm_use(m, 1), TG_OK);
  assert_int_equal(tg_llm_copy(m, 0, 7), TG_OK);
  assert_int_equal(tg_llm_settled(m), 4);
  assert_int_equal(tg_llm_use(m, 0), TG_OK);
  assert_int_equal(tg_llm_rewind(m, 8), TG_OK);
  assert_int_equal(tg_llm_settled(m), 8);
  assert_int_equal(tg_llm_rewind(m, 6), TG_OK);
  assert_int_equal(tg_llm_settled(m), 4);
  assert_int_equal(tg_llm_eval(m, ids, 4), TG_OK);
  assert_int_equal(tg_llm_settled(m), 4);
  tg_llm_free(m);
}

/* An embedding has the direction of the tokens' sum, so its products with the head are to each other as the
 * sums of the expected logits are. */
static void embedding_of(const char *name) {
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS], e[256];
  double sum[256] = {0}, got[256] = {0}, length = 0, wg = 0, gg = 0;
  TgLlm *m = opened(golden(name), 4, TG_F32);
  int64_t n = expected(m, ids, want), v = tg_llm_about(m).vocabulary, width = tg_llm_about(m).width;
  const TgValue *tensors = tg_value_get(tg_llm_gguf(m), "tensors");
  TgTensor *head = tg_value_tensor(tg_value_get(tensors, "output.weight"));
  head = tg_cast(head ? head : tg_value_tensor(tg_value_get(tensors, "token_embd.weight")), TG_F32);
  float *rows = calloc((size_t)(v * width), sizeof *rows);
  assert_true(width <= 256 && v <= 256 && rows && !tg_read(head, rows, (size_t)(v * width) * sizeof *rows));
  assert_int_equal(tg_llm_eval(m, ids, 3), TG_OK); /* what was there before does not count */
  if (tg_llm_embed(m, ids, n, e)) fail_msg("%s: %s", name, tg_errmsg(C));
  assert_null(tg_llm_logits(m));
  for (int64_t i = 0; i < width; i++)
    length += (double)e[i] * (double)e[i];
  assert_true(fabs(length - 1) < 1e-5);
  for (int64_t j = 0; j < v; j++) {
    for (int64_t i = 0; i < n; i++)
      sum[j] += (double)want[i * v + j];
    for (int64_t i = 0; i < width; i++)
      got[j] += (double)rows[j * width + i] * (double)e[i];
    wg += sum[j] * got[j];
    gg += got[j] * got[j];
  }
  for (int64_t j = 0; j < v; j++)
    if (fabs(got[j] * wg / gg - sum[j]) > 1e-3)
      fail_msg("%s: %lld: %g, not %g", name, (long long)j, got[j] * wg / gg, sum[j]);
  free(rows);
  assert_int_equal(tg_llm_eval(m, ids, 1), TG_OK); /* after those of the embedding */
  tg_llm_free(m);
}

static void test_embedding(void **state) {
  (void)state;
  embedding_of("llama");
  embedding_of("qwen3");
  embedding_of("gpt2");
  float e[256];
  TgLlm *m = opened(golden("llama"), 4, TG_F32);
  assert_int_equal(tg_llm_embed(m, (int32_t[]){1}, 0, e), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_llm_embed(m, (int32_t[]){-1}, 1, e), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_llm_embed(m, (int32_t[]){1}, 1, NULL), TG_ERR_VALUE), tg_clear_error(C);
  assert_int_equal(tg_llm_embed(m, (int32_t[]){1}, 25, e), TG_ERR_LIMIT), tg_clear_error(C);
  assert_int_equal(tg_llm_embed(m, (int32_t[]){1}, 1, e), TG_OK);
  tg_llm_free(m);
}

/* A narrow cache is near: 11, 8 or 7 bits of keys and values that are about 1. Single tokens and blocks read
 * the same of it. */
static void cache_of(const char *name, const char *type, double near, int64_t bits) {
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS];
  TgLlm *m = tg_llm_open(C, golden(name), .context = 24, .block = 16, .cache_type = type,
                         .activations = named ? 32 : 16);
  if (!m) fail_msg("%s, %s: %s", name, type, tg_errmsg(C));
  int64_t n = expected(m, ids, want), v = tg_llm_about(m).vocabulary;
  if (tg_llm_eval(m, ids, n)) fail_msg("%s, %s: %s", name, type, tg_errmsg(C));
  logits_are(m, name, want, n - 1, near);
  memcpy(want, tg_llm_logits(m), (size_t)v * sizeof *want);
  assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
  for (int64_t i = 0; i < n; i++)
    assert_int_equal(tg_llm_eval(m, &ids[i], 1), TG_OK);
  logits_are(m, name, want, 0, 1e-4 + near / 10); /* another order may round a key otherwise */
  assert_int_equal(tg_llm_about(m).cache_bytes, tg_llm_about(m).layers * 2 * 2 * 40 * bits / 8);
  tg_llm_free(m);
}

static void test_cache(void **state) {
  (void)state;
  cache_of("llama", "f32", 1e-4, 6 * 32); /* 2 heads of 6, 24 and 16 places */
  cache_of("llama", "f16", 0.03, 6 * 16);
  cache_of("llama", "bf16", 0.2, 6 * 16);
  cache_of("llama-cache", "q8_0", 1e-4, 32 * 8 + 16); /* its logits are of such a cache */
  cache_of("llama", "q8_0", 0.1, 32 * 8 + 16);
  cache_of("qwen3", "q8_0", 0.1, 32 * 8 + 16);
  cache_of("gpt-oss", "q8_0", 0.1, 32 * 8 + 16);
  assert_null(tg_llm_open(C, golden("llama"), .cache_type = "q4_0"));
  assert_int_equal(tg_error(C), TG_ERR_DTYPE);
  assert_non_null(strstr(tg_errmsg(C), "a cache of q4_0: it is f32, f16, bf16 or q8_0"));
  tg_clear_error(C);
}

/* Whole texts, without a cache: the loss is the one that the expected logits have. */
static void test_losses(void **state) {
  (void)state;
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS], loss = 0;
  if (strcmp(tg_default_device(C), "CPU")) skip(); /* slow elsewhere, and the same graph */
  for (int i = 0; i < NAMES; i++) {
    TgLlm *m = opened(golden(names[i]), 4, TG_F32);
    int64_t n = expected(m, ids, want) - 1, v = tg_llm_about(m).vocabulary;
    double sum = 0;
    for (int64_t t = 0; t < n; t++) {
      double all = 0;
      for (int64_t j = 0; j < v; j++)
        all += exp((double)want[t * v + j]);
      sum += log(all) - (double)want[t * v + ids[t + 1]];
    }
    TG_SCOPE(C) {
      TgTensor *x = tg_from(C, ids, TG_I32, TG_SHAPE(1, n)), *y = tg_from(C, ids + 1, TG_I32, TG_SHAPE(1, n));
      if (tg_read(tg_llm_loss(m, x, y), &loss, sizeof loss)) fail_msg("%s: %s", names[i], tg_errmsg(C));
    }
    if (!(fabs((double)loss - sum / (double)n) < 1e-4))
      fail_msg("%s: a loss of %g, not %g", names[i], (double)loss, sum / (double)n);
    tg_llm_free(m);
  }
}

/* ---- stories260K */
static int32_t best(const float *l, int64_t n) {
  int32_t id = 0;
  for (int64_t i = 1; i < n; i++)
    if (l[i] > l[id]) id = (int32_t)i;
  return id;
}

static void story(const char *file, const char *text, const char *ids_file, int most) {
  const char *path = data_at(file);
  size_t n = 0, at = 0, k = 0;
  char *want = file_text(data_at(text), &n), *list = ids_file ? file_text(data_at(ids_file), &k) : NULL;
  if (!path || !want) {
    print_message("stories260K is not here\n");
    skip();
  }
  TgLlm *m = tg_llm_open(C, data_at(file));
  if (!m) fail_msg("%s", tg_errmsg(C));
  TgDetokenizer *d = tg_detokenizer_new(tg_llm_tokenizer(m));
  int32_t id = (int32_t)tg_token_special(tg_llm_tokenizer(m), TG_TOKEN_BOS);
  char *number = list ? list + strcspn(list, "0123456789") : NULL;
  for (int i = 0; i < most; i++) {
    if (number) {
      assert_int_equal(strtol(number, &number, 10), id);
      number += strcspn(number, "0123456789");
    }
    if (tg_llm_eval(m, &id, 1)) fail_msg("%s", tg_errmsg(C));
    id = best(tg_llm_logits(m), 512);
    const char *piece = tg_detokenizer_put(d, id, &k);
    size_t left = n - at;
    if (memcmp(piece, want + at, k < left ? k : left))
      fail_msg("step %d: '%s', not '%.20s'", i, piece, want + at);
    at += k;
  }
  assert_true(most < 200 || at + 1 >= n);
  free(want), free(list);
  tg_detokenizer_free(d);
  tg_llm_free(m);
}

static int steps(void) { return strcmp(tg_default_device(C), "CPU") ? 12 : 200; }

static void test_story(void **state) {
  (void)state;
  story("stories260K/stories260K-f32.gguf", "stories260K/expected.txt", "stories260K/expected_ids.json",
        steps());
}

static void test_story_q8(void **state) {
  (void)state;
  story("stories260K/stories260K-q8_0.gguf", "stories260K/expected_q8_0.txt", NULL, steps());
}

static void test_first_logits(void **state) {
  (void)state;
  const char *path = data_at("stories260K/first_logits.npy");
  if (!path) {
    print_message("stories260K is not here\n");
    skip();
  }
  float want[512];
  TgTensor *t = tg_npy_load_file(C, path);
  assert_int_equal(tg_read(t, want, sizeof want), TG_OK);
  TgLlm *m = tg_llm_open(C, data_at("stories260K/stories260K-f32.gguf"));
  assert_int_equal(tg_llm_eval(m, &(int32_t){1}, 1), TG_OK);
  logits_are(m, "stories260K", want, 0, 1e-4);
  assert_int_equal(tg_llm_about(m).parameters, 260032);
  tg_llm_free(m);
}

/* ---- folders as Hugging Face has them: logits are those of transformers, ids those of tokenizers
 * (tests/llm/make_hf.py) */
/* The largest difference of logits after one token, and after many at once. */
static double logits_apart(TgLlm *a, TgLlm *b) {
  int32_t ids[40];
  double most = 0;
  assert_true(a && b);
  int64_t v = tg_llm_about(a).vocabulary;
  for (int i = 0; i < 40; i++)
    ids[i] = 3 + 11 * i % 500;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(tg_llm_eval(a, ids + i, i ? 39 : 1), TG_OK);
    assert_int_equal(tg_llm_eval(b, ids + i, i ? 39 : 1), TG_OK);
    const float *x = tg_llm_logits(a), *y = tg_llm_logits(b);
    for (int64_t j = 0; j < v; j++)
      most = fmax(most, fabs((double)(x[j] - y[j])));
  }
  return most;
}

/* Packed matrices, and x in 16 bits or 8, beside the file's order and f32. */
static void test_activations(void **state) {
  (void)state;
  const char *file = data_at("stories260K/stories260K-q8_0.gguf");
  assert_null(tg_llm_open(C, golden("llama"), .activations = 12));
  assert_non_null(strstr(tg_errmsg(C), "activations of 12 bits"));
  tg_clear_error(C);
  if (!file) skip();
  bool packs = !strcmp(tg_device(tg_zeros(C, TG_SCALAR)), "CPU");
  double last = 0;
  for (int bits = 16; bits >= 8; bits -= 8) {
    TgLlm *m = tg_llm_open(C, file, .context = 64, .activations = bits);
    TgLlm *exact = tg_llm_open(C, file, .context = 64, .activations = 32);
    double most = logits_apart(m, exact);
    if (!(most < (bits == 16 ? 1e-3 : 0.2))) fail_msg("%d bits: logits differ by %g", bits, most);
    assert_true((most > last) == packs); /* elsewhere all are the same */
    last = most;
    tg_llm_free(m), tg_llm_free(exact);
  }
}

static void folder(const char *name) {
  char path[600], file[700];
  size_t n = 0;
  snprintf(path, sizeof path, "%s/goldens/llm/hf/%s", TG_TESTS, name);
  snprintf(file, sizeof file, "%s/expected.json", path);
  TgLlm *m = tg_llm_open(C, path, .context = 24, .block = 4);
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  char *text = file_text(file, &n);
  json_t *want = text ? json_loads(text, 0, NULL) : NULL, *each;
  assert_non_null(want);
  size_t i;
  int32_t ids[200], k = 0;
  json_array_foreach(json_object_get(want, "ids"), i, each) { ids[k++] = (int32_t)json_integer_value(each); }
  json_array_foreach(json_object_get(want, "rows"), i, each) {
    int64_t row = json_integer_value(each), at = 0;
    tg_llm_ids(m, &at);
    assert_true(row < k);
    if (tg_llm_eval(m, ids + at, row + 1 - at)) fail_msg("%s: %s", name, tg_errmsg(C));
    const float *got = tg_llm_logits(m);
    json_t *logits = json_array_get(json_object_get(want, "logits"), i);
    assert_int_equal(json_array_size(logits), tg_llm_about(m).vocabulary);
    for (size_t j = 0; j < json_array_size(logits); j++) {
      double theirs = json_real_value(json_array_get(logits, j));
      if (!(fabs((double)got[j] - theirs) < 1e-4 * (1 + fabs(theirs))))
        fail_msg("%s: row %lld, logit %zu is %g, not %g", name, (long long)row, j, (double)got[j], theirs);
    }
  }
  json_array_foreach(json_object_get(want, "texts"), i, each) {
    const char *s = json_string_value(json_object_get(each, "text"));
    const json_t *theirs = json_object_get(each, "ids");
    int64_t count = tg_tokenize(tg_llm_tokenizer(m), s, strlen(s), ids, 200, .ends = true);
    if (count != (int64_t)json_array_size(theirs))
      fail_msg("%s: '%s' is %lld tokens, not %zu", name, s, (long long)count, json_array_size(theirs));
    for (int64_t j = 0; j < count; j++)
      if (ids[j] != json_integer_value(json_array_get(theirs, (size_t)j)))
        fail_msg("%s: '%s': token %lld is %d, not %d", name, s, (long long)j, ids[j],
                 (int)json_integer_value(json_array_get(theirs, (size_t)j)));
  }
  assert_non_null(tg_llm_about(m).chat_template);
  assert_int_equal(tg_tokenize(tg_llm_tokenizer(m), "<|end|>", 7, ids, 200, .special = true, .inside = true),
                   1);
  assert_int_equal(ids[0], tg_token_special(tg_llm_tokenizer(m), TG_TOKEN_EOS));
  json_decref(want), free(text), tg_llm_free(m);
}

static void test_folders(void **state) {
  (void)state;
  static const char *const kinds[] = {
      "granite", "olmo2",    "cohere",       "cohere2",     "starcoder2",    "nemotron", "llama",
      "mistral", "mixtral",  "smollm3",      "qwen2",       "qwen3",         "qwen2moe", "qwen3moe",
      "phi3",    "glm4",     "gpt2",         "gpt-oss",     "gpt-oss-mxfp4", "gemma",    "gemma2",
      "gemma3",  "stablelm", "stablelm-12b", "phi",         "gpt-neox",      "falcon",   "falcon-40b",
      "bloom",   "olmo",     "olmoe",        "deepseek-v2", "deepseek-v3",   "glm4-moe", "ernie4-5",
      "hunyuan", "exaone4",  "seed-oss"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    folder(kinds[i]);
}

/* A folder of which one file has other bytes (to NULL: it is not there). */
static void folder_is_wrong(const char *name, const char *file, const char *from, const char *to,
                            const char *part) {
  static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                      "tokenizer_config.json"};
  char path[700];
  mkdir("test_llm_folder", 0777);
  for (int i = 0; i < 4; i++) {
    size_t n = 0;
    snprintf(path, sizeof path, "%s/goldens/llm/hf/%s/%s", TG_TESTS, name, files[i]);
    char *text = file_text(path, &n),
         *at = from && !strcmp(file, files[i]) ? memmem(text, n, from, strlen(from)) : NULL;
    snprintf(path, sizeof path, "test_llm_folder/%s", files[i]);
    remove(path);
    bool gone = !to && !strcmp(file, files[i]);
    FILE *f = gone ? NULL : fopen(path, "wb");
    if (from && !strcmp(file, files[i])) assert_non_null(at);
    if (f && at) {
      size_t before = (size_t)(at - text), after = before + strlen(from);
      fwrite(text, 1, before, f), fwrite(to, 1, strlen(to), f), fwrite(text + after, 1, n - after, f);
    } else if (f)
      fwrite(text, 1, n, f);
    if (f) fclose(f);
    free(text);
  }
  TgLlm *m = tg_llm_open(C, "test_llm_folder", .context = 8);
  if (!part) {
    if (!m) fail_msg("%s: %s", file, tg_errmsg(C));
    tg_llm_free(m);
    return;
  }
  if (m || !strstr(tg_errmsg(C), part)) fail_msg("%s: %s, not about \"%s\"", file, tg_errmsg(C), part);
  tg_clear_error(C);
}

static void test_wrong_folders(void **state) {
  (void)state;
  folder_is_wrong("llama", "config.json", NULL, NULL, "config.json");
  folder_is_wrong("llama", "model.safetensors", NULL, NULL, "model.safetensors");
  folder_is_wrong("llama", "tokenizer.json", NULL, NULL, NULL); /* a model without a tokenizer */
  folder_is_wrong("llama", "config.json", "\"llama\"", "\"lama\"", "model_type 'lama' is not read here");
  folder_is_wrong("llama", "config.json", "\"hidden_size\": 16", "\"hidden_size\": \"x\"",
                  "hidden_size is no number");
  folder_is_wrong("llama", "config.json", "\"hidden_size\": 16", "\"hidden_size\": 17",
                  "where the model has");
  folder_is_wrong("llama", "config.json", "\"silu\"", "\"relu\"", "hidden_act 'relu'");
  folder_is_wrong("llama", "config.json", "\"llama3\"", "\"dynamic\"", "rope_scaling of the kind dynamic");
  folder_is_wrong("llama", "config.json", "{", "[", "config.json");
  folder_is_wrong("llama", "model.safetensors", "self_attn.q_proj", "self_attn.x_proj",
                  "x_proj.weight' is none that is known here");
  folder_is_wrong("llama", "tokenizer.json", "\"BPE\"", "\"WordLevel\"", "of the kind WordLevel");
  folder_is_wrong("llama", "tokenizer.json", "\"BPE\"", "\"Unigram\"",
                  "the kind Split is not known here before");
  folder_is_wrong("llama", "tokenizer.json", "\"BPE\"", "\"WordPiece\"", "otherwise than BERT's");
  folder_is_wrong("llama", "tokenizer.json", "\\\\p{N}{1,3}", "\\\\p{N}{1,9}",
                  "whose patterns are not known here");
  folder_is_wrong("qwen2", "tokenizer.json", "\"ByteLevel\"", "\"Bytelevel\"", "neither of bytes");
  folder_is_wrong("qwen3moe", "config.json", "\"mlp_only_layers\": []", "\"mlp_only_layers\": [1]",
                  "mlp_only_layers is otherwise");
  folder_is_wrong("gpt-oss", "config.json", "\"swiglu_limit\": 7.0", "\"swiglu_limit\": 8.0",
                  "swiglu_limit is otherwise");
  folder_is_wrong("gpt-oss", "config.json", "\"sliding_attention\"", "\"chunked_attention\"",
                  "a layer of the kind 'chunked_attention'");
  folder_is_wrong("mixtral", "model.safetensors", "experts.3.w1", "experts.7.w1",
                  "an expert of 'blk.0.ffn_gate_exps.weight' is missing, or there twice");
  folder_is_wrong("gpt-oss-mxfp4", "model.safetensors", "down_proj_scales", "down_proj_scalez",
                  "down_proj_scalez' is none");
  folder_is_wrong("smollm3", "config.json", "\"no_rope_layer_interval\": 4", "\"no_rope_layer_interval\": 3",
                  "no_rope_layer_interval is otherwise");
  assert_null(tg_hf_load(C, "test_llm_none"));
  assert_int_equal(tg_error(C), TG_ERR_IO);
  tg_clear_error(C);
}

/* ---- a step that was captured plans and compiles nothing */
static void test_replay(void **state) {
  (void)state;
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS];
  TgLlm *m = opened(golden("llama"), 4, TG_F32);
  expected(m, ids, want);
  assert_int_equal(tg_llm_eval(m, ids, 2), TG_OK);
  tg_counters_reset(C);
  for (int i = 2; i < 7; i++) {
    assert_int_equal(tg_llm_eval(m, &ids[i], 1), TG_OK);
    TgCounters c = tg_counters(C);
    if (i > 3 && (c.schedules || c.compiled || c.graph_nodes)) fail_msg("step %d is planned anew", i);
    tg_counters_reset(C);
  }
  tg_llm_free(m);
}

/* ---- limits and wrong calls */
static void test_limits(void **state) {
  (void)state;
  static const char *const foreign[] = {"phi2", "gptneox", "falcon", "bloom", "mpt", "deepseek2"};
  int32_t ids[32] = {0}, wrong[] = {1, 20};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    TgLlm *m = opened(golden(foreign[i]), 4, TG_F32);
    assert_null(tg_lora_new(m));
    assert_non_null(strstr(tg_errmsg(C), "models of its kind have no adapters here")), tg_clear_error(C);
    tg_llm_free(m);
  }
  int64_t n = 0;
  TgLlm *m = opened(golden("llama"), 4, TG_F32);
  assert_null(tg_llm_logits(m));
  assert_int_equal(tg_llm_eval(m, wrong, 2), TG_ERR_VALUE);
  assert_non_null(strstr(tg_errmsg(C), "token 20 of 20"));
  tg_clear_error(C);
  assert_int_equal(tg_llm_eval(m, ids, 25), TG_ERR_LIMIT);
  tg_clear_error(C);
  assert_int_equal(tg_llm_eval(m, ids, 24), TG_OK); /* all of the context */
  assert_int_equal(tg_llm_eval(m, ids, 1), TG_ERR_LIMIT);
  tg_clear_error(C);
  tg_llm_ids(m, &n);
  assert_int_equal(n, 24);
  assert_int_equal(tg_llm_rewind(m, 25), TG_ERR_VALUE);
  tg_clear_error(C);
  tg_cancel(C);
  assert_int_equal(tg_llm_rewind(m, 3), TG_OK);
  assert_int_equal(tg_llm_eval(m, ids, 9), TG_ERR_CANCELLED);
  tg_clear_error(C);
  assert_int_equal(tg_llm_eval(m, ids, 9), TG_OK);
  tg_llm_free(m);
  assert_null(tg_llm_open(C, golden("llama"), .cache = TG_I8));
  assert_int_equal(tg_error(C), TG_ERR_DTYPE);
  tg_clear_error(C);
  tg_llm_free(NULL);
}

/* ---- files that contradict themselves: bytes of a right one, changed */
static void refused(const char *name, const char *from, const char *to, size_t skip_bytes, const char *part) {
  size_t n = 0, length = strlen(from);
  char *file = file_text(golden(name), &n), *at = NULL;
  for (size_t i = 0; i + length < n && !at; i++)
    if (!memcmp(file + i, from, length)) at = file + i;
  assert_non_null(at);
  memcpy(at + skip_bytes, to, skip_bytes ? 1 : length);
  FILE *f = fopen("test_llm_wrong.gguf", "wb");
  fwrite(file, 1, n, f);
  fclose(f);
  free(file);
  TgLlm *m = tg_llm_open(C, "test_llm_wrong.gguf");
  remove("test_llm_wrong.gguf");
  if (m || tg_error(C) != TG_ERR_VALUE || !strstr(tg_errmsg(C), part))
    fail_msg("%s: %s: %s, not about \"%s\"", name, from, tg_errmsg(C), part);
  tg_clear_error(C);
}

static void test_hostile(void **state) {
  (void)state;
  refused("llama", "general.architecture", "general.architectura", 0, "no general.architecture");
  refused("qwen2", "qwen2", "qwenX", 0, "architecture 'qwenX' is not here; there are llama, qwen2");
  refused("llama", "blk.1.attn_k.weight", "blk.1.attn_X.weight", 0, "no tensor 'blk.1.attn_k.weight'");
  refused("llama", "llama.block_count", "\1", 21, "tensor 'blk.1.");
  refused("llama", "llama.attention.head_count_kv", "\1", 33,
          "'blk.0.attn_k.weight' is (12, 16), where the model has (6, 16)");
  refused("llama", "llama.attention.head_count_kv", "\3", 33, "heads and heads of keys: 4 and 3");
  refused("llama", "llama.feed_forward_length", "\7", 29,
          "'blk.0.ffn_gate.weight' is (20, 16), where the model has (7, 16)");
  refused("llama", "llama.embedding_length", "\0", 26, "llama.embedding_length is 0");
  refused("llama", "llama.context_length", "llama.contest_length", 0, "no llama.context_length");
  refused("llama-yarn", "yarn", "yawn", 0, "'yawn'");
  refused("llama-experts", "llama.expert_used_count", "\x9", 27, "experts, and used ones");
  refused("llama", "llama.embedding_length", "\x6", 22, "llama.embedding_length is no whole number");
  refused("deepseek2", "deepseek2.attention.kv_lora_rank", "\x9", 36,
          "elements of a key, and of a latent one: 12 and 13");
  refused("deepseek2", "deepseek2.attention.head_count_kv", "\2", 37,
          "heads of keys, and those of latent attention: 2 and 1");
  refused("deepseek2", "deepseek2.attention.kv_lora_rank", "deepseek2.attention.kv_lora_rang", 0,
          "latent attention, and its rank: 1 and 0");
  refused("deepseek2", "deepseek2.attention.value_length", "\7", 36,
          "elements of a value, and of a latent one: 7 and 8");
  refused("deepseek2", "deepseek2.expert_group_used_count", "\5", 37,
          "expert_group_count is 4, 5 of them used");
  refused("deepseek2", "deepseek2.expert_group_used_count", "\1", 37,
          "expert_group_count is 4, 1 of them used");
  refused("deepseek2", "deepseek2.expert_gating_func", "\1", 32, "known here with a sigmoid alone");
  refused("deepseek2", "deepseek2.expert_gating_func", "\4", 32, "expert_gating_func is 4");
  refused("deepseek2", "deepseek2.rope.scaling.yarn_log_multiplier",
          "deepseek2.rope.scaling.yarn_log_multiplied", 0, "no deepseek2.rope.scaling.yarn_log_multiplier");
  refused("deepseek2-lite", "deepseek2.attention.head_count_kv", "\1", 37,
          "those of latent attention: 1 and 4");
  refused("glm4moe", "glm4moe.leading_dense_block_count", "\3", 37,
          "layers, and those without experts: 2 and 3");
  refused("glm4moe", "glm4moe.leading_dense_block_count", "\0", 37, "no tensor 'blk.0.ffn_gate_inp.weight'");
  refused("glm4moe", "glm4moe.nextn_predict_layers", "\3", 32, "those that predict further tokens: 3 and 3");
  refused("glm4moe", "glm4moe.expert_shared_count", "\2", 31,
          "'blk.1.ffn_gate_shexp.weight' is (8, 16), where the model has (16, 16)");
  refused("gemma2", "gemma2.final_logit_softcapping", "gemma2.rope.dimension_sections", 0,
          "gemma2.rope.dimension_sections: a model with it is not known here");
  refused("gemma2", "gemma2.attn_logit_softcapping", "gemma2.attention.output_scale", 0,
          "gemma2.attention.output_scale: a model with it is not known here");
  refused("llama-window", "llama.attention.sliding_window", "llama.router_logit_softcapping", 0,
          "llama.router_logit_softcapping: a model with it is not known here");
  refused("falcon-40b", "blk.1.attn_norm_2.bias", "blk.1.attn_norm_9.bias", 0,
          "no tensor 'blk.1.attn_norm_2.bias'");
  refused("bloom", "token_embd_norm.weight", "token_embd_nerm.weight", 0,
          "no tensor 'token_embd_norm.weight'");
  refused("olmo", "blk.1.ffn_up.weight", "output_norm.weight ", 0, "no tensor 'blk.1.ffn_up.weight'");
}

/* ---- memory that ends: each allocation fails in turn, and all is given back */
/* All that there is, once; false: something failed. */
static bool everything(TgContext *c) {
  static const char text[] = "{% for m in messages %}{{ m.role | upper }}{% endfor %}";
  static const TgMessage message = {"user", "hi"};
  int32_t ids[] = {1, 2, 3};
  TgLlm *m = tg_llm_open(c, golden("llama"), .context = 8, .block = 2);
  TgSampler *s = m ? tg_sampler_new(c, 20, .dry_multiplier = 1) : NULL;
  bool ok = s && !tg_llm_eval(m, ids, 3) && tg_sampler_pick(s, tg_llm_logits(m)) >= 0;
  TgTemplate *t = ok ? tg_template_new(c, text, strlen(text)) : NULL;
  ok = t && tg_template_chat(t, NULL, &message, 1, NULL);
  static Made made;
  static const char *const tokens[] = {"a", "b", "ab"};
  static const float scores[] = {-1, -2, -3};
  made = (Made){.n = 0};
  made_text(&made, "tokenizer.ggml.model", "llama");
  made_texts(&made, "tokenizer.ggml.tokens", tokens, 3);
  made_numbers(&made, "tokenizer.ggml.scores", MADE_F32, scores, 3);
  TgValue *gguf = ok ? made_read(c, &made) : NULL;
  TgTokenizer *k = tg_tokenizer_new(c, gguf);
  ok = ok && k && tg_tokenize(k, "abab", 4, ids, 3, .inside = true) == 2;
  tg_tokenizer_free(k), tg_value_free(gguf), tg_template_free(t), tg_sampler_free(s), tg_llm_free(m);
  return ok;
}

static void test_memory(void **state) {
  (void)state;
  const char *device = tg_default_device(C);
  if (strcmp(device, "INTERP")) skip(); /* where nothing is compiled on the way */
  short_everywhere(everything, 37);
}

#define SUITE(open)                                                                                          \
  const struct CMUnitTest open##_tests[] = {                                                                 \
      cmocka_unit_test(test_architectures), cmocka_unit_test(test_sequences),                                \
      cmocka_unit_test(test_activations),   cmocka_unit_test(test_bf16),                                     \
      cmocka_unit_test(test_folders),       cmocka_unit_test(test_wrong_folders),                            \
      cmocka_unit_test(test_many),          cmocka_unit_test(test_quantised),                                \
      cmocka_unit_test(test_reaches),       cmocka_unit_test(test_rows),                                     \
      cmocka_unit_test(test_settled),       cmocka_unit_test(test_embedding),                                \
      cmocka_unit_test(test_losses),        cmocka_unit_test(test_cache),                                    \
      cmocka_unit_test(test_story),         cmocka_unit_test(test_story_q8),                                 \
      cmocka_unit_test(test_replay),        cmocka_unit_test(test_limits),                                   \
      cmocka_unit_test(test_first_logits),  cmocka_unit_test(test_hostile),                                  \
      cmocka_unit_test(test_memory),                                                                         \
  };                                                                                                         \
  failed += cmocka_run_group_tests(open##_tests, open, close_all)

/* A block of a prompt on a GPU: products of f16, unless activations are to have 32 bits. */
static void test_units(void **state) {
  (void)state;
  static const char *const files[] = {"llama", "gemma2", "qwen3moe", "llama-quantised", "gpt2"};
  int32_t ids[MOST_TOKENS];
  float want[MOST_LOGITS];
  for (int f = 0; f < 5; f++)
    for (int64_t bits = 16; bits <= 32; bits += 16) {
      TgLlm *m = tg_llm_open(C, golden(files[f]), .context = 24, .block = 16, .activations = bits);
      if (!m) fail_msg("%s: %s", files[f], tg_errmsg(C));
      int64_t n = expected(m, ids, want);
      if (tg_llm_eval(m, ids, n)) fail_msg("%s: %s", files[f], tg_errmsg(C));
      logits_are(m, files[f], want, n - 1, bits == 32 ? 1e-4 : 5e-3);
      tg_llm_free(m);
    }
}

/* What a GPU computes, emulated or not: test_llm CUDA, or $TG_DEV. */
static int on_named(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_architectures), cmocka_unit_test(test_quantised),
                                     cmocka_unit_test(test_sequences), cmocka_unit_test(test_cache),
                                     cmocka_unit_test(test_units)};
  return cmocka_run_group_tests(tests, open_named, close_all);
}

int main(int argc, char **argv) {
  int failed = 0;
  const char *device = argc > 1 ? argv[1] : getenv("TG_DEV");
  setenv("TG_SPEC", "1", 0); /* a list of opts that is chosen and then refused is an error */
  cmocka_set_test_filter(getenv("TG_TEST"));
  if (device && (strstr(device, "CUDA") || strstr(device, "METAL"))) {
    named = device;
    return on_named();
  }
  SUITE(open_cpu);
  SUITE(open_interp);
  return failed;
}
