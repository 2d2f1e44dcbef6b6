/* test_draft.c: tokens that are guessed, and checked several at once. Expected: of every architecture, cache and
 * sampler the tokens and the bits of each row alone in a step, whatever is guessed, how much, and how often it is
 * wrong. Files are those of tests/llm/make_models.py, and stories260K (shared data) where a vocabulary is needed. */
#define _GNU_SOURCE
#include "llm/context.h"

enum { VOCABULARY = 20, CONTEXT = 100, MADE = 90, MOST_ROWS = 16 };

static const char *golden(const char *name) {
  static char path[2][600];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/goldens/llm/%s.gguf", TG_TESTS, name);
  return path[turn];
}

/* ---- rows of one text */
typedef struct Kept {
  int32_t ids[CONTEXT];
  float logits[CONTEXT][VOCABULARY];
} Kept;

static TgLlm *opened(const char *name, const char *cache, int64_t sequences, int64_t batch) {
  TgLlm *m = tg_llm_open(C, golden(name), .context = CONTEXT, .block = 8, .cache_type = cache,
                         .sequences = sequences, .batch = batch);
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  assert_int_equal(tg_llm_about(m).vocabulary, VOCABULARY);
  return m;
}

/* Each token alone in its step. */
static void singly(TgLlm *m, const char *name, Kept *k) {
  for (int i = 0; i < MADE; i++) {
    k->ids[i] = (i * 7 + i / 11) % VOCABULARY;
    if (tg_llm_eval_many(m, (int32_t[]){0}, &k->ids[i], 1)) fail_msg("%s: %s", name, tg_errmsg(C));
    memcpy(k->logits[i], tg_llm_logits(m), sizeof *k->logits);
    assert_memory_equal(k->logits[i], tg_llm_row_logits(m, 0), sizeof *k->logits);
    assert_null(tg_llm_row_logits(m, 1));
  }
}

/* Several at once, of two texts in turn, some of them wrong and taken off again: the bits of each alone. */
static void rows_of(const char *name, const char *cache, int64_t batch) {
  static Kept alone;
  TgLlm *m = opened(name, cache, 2, batch);
  singly(m, name, &alone);
  assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
  int32_t sequence[2 * MOST_ROWS], id[2 * MOST_ROWS];
  int at[2] = {0, 0};
  for (int step = 0; at[0] < MADE; step++) {
    int n = 0, begin[2], count[2];
    for (int t = 0; t < 2; t++) {
      count[t] = (step * 5 + 3 * t) % 8 + 1;
      if (count[t] > MADE - at[t]) count[t] = MADE - at[t];
      begin[t] = n;
      for (int i = 0; i < count[t]; i++)
        sequence[n] = t, id[n++] = alone.ids[at[t] + i];
      if (count[t] > 2 && step % 3 == t)
        id[n - 1] = (id[n - 1] + 1) % VOCABULARY, count[t]--; /* a wrong guess */
    }
    if (tg_llm_eval_many(m, sequence, id, n)) fail_msg("%s: %s", name, tg_errmsg(C));
    for (int t = 0; t < 2; t++) {
      for (int i = 0; i < count[t]; i++)
        if (memcmp(tg_llm_row_logits(m, begin[t] + i), alone.logits[at[t] + i], sizeof *alone.logits))
          fail_msg("%s %s: token %d, row %d of %d, differs from itself alone", name, cache ? cache : "",
                   at[t] + i, begin[t] + i, n);
      at[t] += count[t];
      assert_int_equal(tg_llm_use(m, t) | tg_llm_rewind(m, at[t]), TG_OK);
    }
  }
  tg_llm_free(m);
}

static void test_rows(void **state) {
  (void)state;
  static const char *const names[] = {
      "llama",     "llama-quantised", "llama-window", "gemma3", "gpt-oss",        "bloom", "mpt",
      "deepseek2", "cohere2",         "qwen3moe",     "falcon", "deepseek2-lite", "phi3"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    rows_of(names[i], NULL, MOST_ROWS);
  static const char *const caches[] = {"f16", "bf16", "q8_0"};
  for (int i = 0; i < 3; i++)
    rows_of(i < 2 ? "llama" : "llama-cache", caches[i], MOST_ROWS);
  rows_of("llama", NULL, 5); /* rows of one text in two steps */
  rows_of("gemma3", "f16", 3);
}

/* ---- texts */
typedef struct Guesser {
  TgDraft *draft;          /* NULL: what `right` says */
  const int32_t *expected; /* the text as it will be */
  bool right;
} Guesser;

static int64_t guessed(const Guesser *g, const int32_t *ids, int64_t n, int32_t *out, int64_t most) {
  if (g->draft) return tg_draft_guess(g->draft, ids, n, 0, out, most);
  for (int64_t i = 0; g->expected && i < most; i++)
    out[i] = (g->expected[n + i] + !g->right) % VOCABULARY;
  return g->expected ? most : 0;
}

/* n tokens behind ids[0], each drawn from the logits of its row; returns how many steps that took. */
static int made(TgLlm *m, TgSampler *s, const Guesser *g, int32_t *ids, int64_t n, int64_t most) {
  int32_t row[MOST_ROWS], sequence[MOST_ROWS] = {0};
  int steps = 0;
  int64_t count = 1;
  tg_sampler_reset(s, 5);
  assert_int_equal(tg_llm_use(m, 0) | tg_llm_rewind(m, 0), TG_OK);
  while (count < n) {
    int64_t room = most < n - count - 1 ? most : n - count - 1, right = 0;
    int64_t k = guessed(g, ids, count, row + 1, room);
    row[0] = ids[count - 1];
    if (k < 0 || tg_llm_eval_many(m, sequence, row, k + 1)) fail_msg("%s", tg_errmsg(C));
    for (;; right++) {
      ids[count] = (int32_t)tg_sampler_pick(s, tg_llm_row_logits(m, right));
      tg_sampler_accept(s, ids[count++]);
      if (right == k || ids[count - 1] != row[right + 1]) break;
    }
    if (getenv("DBG")) fprintf(stderr, "count %d k %d right %d\n", (int)count, (int)k, (int)right);
    tg_draft_told(g->draft, right < k ? right + 1 : k, right);
    assert_int_equal(tg_llm_rewind(m, count - 1), TG_OK);
    steps++;
  }
  return steps;
}

static TgSampler *sampler(int kind) {
  switch (kind) {
  case 0: return tg_sampler_new(C, VOCABULARY, .top_k = 1);
  case 1: return tg_sampler_new(C, VOCABULARY, .temperature = 1);
  case 2:
    return tg_sampler_new(C, VOCABULARY, .temperature = 0.7, .repeat_penalty = 1.3, .presence_penalty = 0.4);
  default: return tg_sampler_new(C, VOCABULARY, .temperature = 1, .dry_multiplier = 0.8);
  }
}

static void texts_of(const char *name, const char *small_name, const char *cache) {
  static Kept none;
  int32_t want[CONTEXT + MOST_ROWS] = {1}, got[CONTEXT + MOST_ROWS] = {1};
  TgLlm *m = opened(name, cache, 1, MOST_ROWS), *small = opened(small_name, NULL, 1, 4);
  (void)none;
  for (int kind = 0; kind < 4; kind++) {
    TgSampler *s = sampler(kind);
    assert_int_equal(made(m, s, &(Guesser){.expected = NULL}, want, MADE, 0), MADE - 1);
    TgDraft *drafts[] = {tg_draft_lookup(m, .always = true), tg_draft_model(m, small, .always = true),
                         tg_draft_lookup(m, .most = 15), tg_draft_model(m, small, .most = 3)};
    for (int d = 0; d < 6; d++) {
      Guesser g = {.draft = d < 4 ? drafts[d] : NULL, .expected = want, .right = d == 4};
      int steps = made(m, s, &g, got, MADE, 7);
      if (memcmp(want, got, MADE * sizeof *want))
        fail_msg("%s: sampler %d, draft %d: another text", name, kind, d);
      if (d == 4 && steps > (MADE + 7) / 8 + 1) fail_msg("%s: %d steps, all guesses right", name, steps);
      if (d == 5) assert_int_equal(steps, MADE - 1);
    }
    if (kind == 0 &&
        !strcmp(name, small_name)) { /* the same model: nothing it guesses is wrong, but rounding */
      int steps = made(m, s, &(Guesser){.draft = drafts[1]}, got, MADE, 7);
      if (steps > MADE / 4) fail_msg("%s: %d steps with itself as draft", name, steps);
    }
    for (int d = 0; d < 4; d++)
      assert_non_null(drafts[d]), tg_draft_free(drafts[d]);
    tg_sampler_free(s);
  }
  tg_llm_free(small), tg_llm_free(m);
}

static void test_texts(void **state) {
  (void)state;
  texts_of("llama", "llama", NULL);
  texts_of("llama-quantised", "qwen2", NULL);
  texts_of("gemma3", "llama", "f16");
  texts_of("bloom", "gemma3", NULL);
  texts_of("deepseek2", "llama", NULL);
  texts_of("llama-cache", "llama", "q8_0");
}

/* ---- where guesses come from */
static void test_lookup(void **state) {
  (void)state;
  TgLlm *m = opened("llama", NULL, 1, 2);
  TgDraft *d = tg_draft_lookup(m, .always = true, .most = 4);
  int32_t out[8];
  const int32_t ids[] = {1, 2, 3, 4, 9, 2, 3, 5, 7, 2, 3};
  assert_int_equal(tg_draft_guess(d, ids, 11, 0, out, 8), 4); /* the newest of those with "2 3" */
  assert_memory_equal(out, ((int32_t[]){5, 7, 2, 3}), 16);
  const int32_t longer[] = {1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3};
  assert_int_equal(tg_draft_guess(d, longer, 11, 0, out, 2), 2); /* "1 2 3" is longer, and older */
  assert_memory_equal(out, ((int32_t[]){4, 9}), 8);
  assert_int_equal(tg_draft_guess(d, (int32_t[]){6, 8, 8}, 3, 0, out, 4), 4); /* what repeats goes on */
  assert_memory_equal(out, ((int32_t[]){8, 8, 8, 8}), 16);
  assert_int_equal(tg_draft_guess(d, ids, 5, 0, out, 4), 0);
  assert_int_equal(tg_draft_guess(d, ids, 0, 0, out, 4), 0);
  assert_int_equal(tg_draft_guess(d, ids, 11, 0, out, 0), 0);
  assert_int_equal(tg_draft_guess(d, NULL, 3, 0, out, 4), -1), tg_clear_error(C);
  assert_int_equal(tg_draft_guess(d, ids, 11, -1, out, 4), -1), tg_clear_error(C);
  assert_int_equal(tg_draft_guess(NULL, ids, 11, 0, out, 4), -1);
  tg_draft_told(NULL, 1, 1), tg_draft_told(d, 1, 2), tg_draft_free(NULL), tg_draft_free(d);
  /* nothing is guessed before it is known what a step takes */
  d = tg_draft_lookup(m);
  assert_int_equal(tg_draft_guess(d, ids, 11, 0, out, 8), 0);
  tg_draft_free(d);
  tg_llm_free(m);
}

static void refused(TgDraft *d, TgStatus status, const char *why) {
  assert_null(d);
  assert_int_equal(tg_error(C), status);
  if (!strstr(tg_errmsg(C), why)) fail_msg("'%s', not '%s'", tg_errmsg(C), why);
  tg_clear_error(C);
}

static void test_refused(void **state) {
  (void)state;
  TgLlm *m = opened("llama", NULL, 2, 4), *small = opened("llama", NULL, 2, 0);
  refused(tg_draft_model(m, m), TG_ERR_VALUE, "its own draft");
  refused(tg_draft_model(small, m), TG_ERR_VALUE, "without a batch");
  refused(tg_draft_lookup(small), TG_ERR_VALUE, "without a batch");
  refused(tg_draft_lookup(m, .most = -1), TG_ERR_VALUE, "-1 guesses");
  refused(tg_draft_lookup(m, .most = 1000), TG_ERR_VALUE, "1000 guesses");
  refused(tg_draft_model(m, small, .sequence = 2), TG_ERR_VALUE, "sequence 2 of 2");
  TgContext *other = tg_open_with(.device = "CPU");
  TgLlm *far = tg_llm_open(other, golden("llama"), .context = 24);
  refused(tg_draft_model(m, far), TG_ERR_VALUE, "two contexts");
  tg_llm_free(far), tg_close(other);
  const char *stories = data_at("stories260K/stories260K-f32.gguf");
  TgLlm *words = stories ? tg_llm_open(C, stories, .context = 64, .batch = 4) : NULL;
  if (words) refused(tg_draft_model(m, words), TG_ERR_VALUE, "20 and of 512 tokens");
  if (words) refused(tg_draft_model(words, m), TG_ERR_VALUE, "512 and of 20 tokens");
  tg_llm_free(words), tg_llm_free(small), tg_llm_free(m);
}

/* A vocabulary that differs in one token, which is named. */
static void test_other_words(void **state) {
  (void)state;
  size_t n = 0;
  const char *path = data_at("stories260K/stories260K-f32.gguf");
  const char *to = "test_draft_words.gguf";
  char *file = file_text(path, &n), *at = file ? memmem(file, n, "\xe2\x96\x81the", 6) : NULL;
  if (!at) skip();
  memcpy(at + 3, "xyz", 3);
  FILE *f = fopen(to, "wb");
  assert_int_equal(fwrite(file, 1, n, f), n);
  fclose(f), free(file);
  TgLlm *m = tg_llm_open(C, path, .context = 64, .batch = 4), *small = tg_llm_open(C, to, .context = 64);
  assert_true(m && small);
  refused(tg_draft_model(m, small), TG_ERR_VALUE, "xyz");
  tg_llm_free(small);
  small = tg_llm_open(C, path, .context = 8);
  TgDraft *d = tg_draft_model(m, small, .always = true);
  int32_t ids[] = {1, 403, 407, 261, 378, 1, 2, 3, 4}, out[8];
  assert_int_equal(tg_draft_guess(d, ids, 5, 0, out, 7), 3); /* its context has room for so many */
  assert_int_equal(tg_draft_guess(d, ids, 8, 0, out, 7), 0);
  tg_cancel(C);
  assert_int_equal(tg_draft_guess(d, ids, 4, 0, out, 4), -1);
  assert_int_equal(tg_error(C), TG_ERR_CANCELLED), tg_clear_error(C);
  assert_int_equal(tg_draft_guess(d, ids, 5, 0, out, 7), 3);
  tg_draft_free(d), tg_llm_free(small), tg_llm_free(m);
  remove(to);
}

/* ---- errors, and an end in the middle */
static void test_errors(void **state) {
  (void)state;
  static Kept alone;
  TgLlm *m = opened("llama", NULL, 2, 4);
  int32_t zeros[CONTEXT + 1] = {0}, ids[CONTEXT + 1] = {0};
  int64_t n = 0;
  assert_int_equal(tg_llm_eval_many(m, zeros, ids, CONTEXT + 1), TG_ERR_LIMIT), tg_clear_error(C);
  assert_non_null(tg_llm_ids(m, &n));
  assert_int_equal(n, 0);
  assert_null(tg_llm_row_logits(m, 0));
  assert_int_equal(tg_llm_eval_many(m, zeros, ids, CONTEXT), TG_OK);
  assert_non_null(tg_llm_row_logits(m, CONTEXT - 1));
  assert_null(tg_llm_row_logits(m, CONTEXT)), assert_null(tg_llm_row_logits(m, -1));
  assert_memory_equal(tg_llm_row_logits(m, CONTEXT - 1), tg_llm_logits(m), VOCABULARY * sizeof(float));
  assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
  singly(m, "llama", &alone);
  assert_int_equal(tg_llm_rewind(m, 20), TG_OK);
  tg_cancel(C);
  assert_int_equal(tg_llm_eval_many(m, zeros, alone.ids + 20, 4), TG_ERR_CANCELLED), tg_clear_error(C);
  tg_llm_ids(m, &n);
  assert_int_equal(n, 20);
  assert_int_equal(tg_llm_eval_many(m, zeros, alone.ids + 20, 4), TG_OK);
  for (int i = 0; i < 4; i++)
    assert_memory_equal(tg_llm_row_logits(m, i), alone.logits[20 + i], sizeof *alone.logits);
  tg_llm_free(m);
}

static bool everything(TgContext *c) {
  TgLlm *m = tg_llm_open(c, golden("llama"), .context = 16, .block = 4, .batch = 4);
  TgLlm *small = m ? tg_llm_open(c, golden("llama"), .context = 16, .block = 4, .batch = 2) : NULL;
  TgDraft *look = small ? tg_draft_lookup(m, .always = true) : NULL;
  TgDraft *model = look ? tg_draft_model(m, small, .always = true, .most = 3) : NULL;
  int32_t ids[] = {1, 2, 1, 2, 3}, row[8] = {1}, sequence[8] = {0};
  int64_t k = model ? tg_draft_guess(model, ids, 3, 0, row + 1, 3) : -1;
  bool ok = k == 3 && !tg_llm_eval_many(m, sequence, row, 4) && tg_draft_guess(look, ids, 4, 0, row, 2) == 2;
  ok = ok && !tg_llm_rewind(m, 1) && !tg_llm_eval_many(m, sequence, ids, 5);
  tg_draft_free(model), tg_draft_free(look);
  tg_llm_free(small), tg_llm_free(m);
  return ok;
}

static void test_no_memory(void **state) {
  (void)state;
  short_everywhere(everything, 61);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),        cmocka_unit_test(test_texts),
                                     cmocka_unit_test(test_lookup),      cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_other_words), cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, open_cpu, close_it);
}
