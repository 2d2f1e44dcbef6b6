/* test_lora.c: language models that learn. Expected losses of whole texts are those of the logits in the files
 * of tests/llm/make_models.py; losses of 50 steps are PyTorch's (tests/llm/make_lora.py). Gradients through
 * quantised weights are held against differences of losses. */
#include "llm/made.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

static TgContext *C;

static int open_it(void **state) {
  (void)state;
  C = tg_open_with(.device = "CPU", .seed = 1);
  return tg_error(C) != TG_OK;
}

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static const char *golden(const char *name) {
  static char path[600];
  snprintf(path, sizeof path, "%s/goldens/llm/%s", TG_TESTS, name);
  return path;
}

static const char *stories(const char *kind) {
  char name[80];
  snprintf(name, sizeof name, "stories260K/stories260K-%s.gguf", kind);
  const char *path = data_at(name);
  if (!path) {
    print_message("stories260K is not here\n");
    skip();
  }
  return path;
}

static void refused(TgStatus status, const char *part) {
  if (tg_error(C) != status || !strstr(tg_errmsg(C), part))
    fail_msg("%s: %s, not \"%s\"", tg_status_name(tg_error(C)), tg_errmsg(C), part);
  tg_clear_error(C);
}

static void file_put(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fwrite(text, 1, strlen(text), f);
  fclose(f);
}

enum { MOST = 64 };

static int parameters(TgLora *l, TgTensor **out) {
  int n = tg_module_parameters(tg_lora_module, l, out, MOST);
  assert_true(n > 0 && n <= MOST);
  return n;
}

/* Random values in all of its matrices. */
static void shaken(TgLora *l, double most) {
  TgTensor *p[MOST];
  int n = parameters(l, p);
  for (int i = 0; i < n; i++)
    TG_SCOPE(C) {
      tg_assign(p[i], tg_uniform(C, tg_ndim(p[i]), tg_shape(p[i]), -most, most));
      assert_int_equal(tg_realize(p[i]), TG_OK);
    }
}

static double loss_of(TgLlm *m, const int32_t *ids, const int32_t *targets, int64_t texts, int64_t n) {
  double loss = NAN;
  TG_SCOPE(C) {
    loss = tg_item_f64(tg_llm_loss(m, tg_from(C, ids, TG_I32, TG_SHAPE(texts, n)),
                                   tg_from(C, targets, TG_I32, TG_SHAPE(texts, n))));
  }
  if (tg_error(C)) fail_msg("%s", tg_errmsg(C));
  return loss;
}

/* ---- whole texts */
static double surprise(const float *logits, int64_t n, int64_t id) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++)
    most = fmax(most, (double)logits[i]);
  for (int64_t i = 0; i < n; i++)
    sum += exp((double)logits[i] - most);
  return most + log(sum) - (double)logits[id];
}

/* Two texts, the second of them the first's tokens without its first one for good measure of positions: the
 * loss of the first alone is that of the file's logits. */
static void whole(const char *name) {
  char file[80];
  int32_t ids[32], targets[32];
  float want[512];
  double sum = 0;
  snprintf(file, sizeof file, "%s.gguf", name);
  TgLlm *m = tg_llm_open(C, golden(file), .context = 24, .block = 4);
  if (!m) fail_msg("%s: %s", name, tg_errmsg(C));
  const TgValue *kv = tg_value_get(tg_llm_gguf(m), "kv");
  TgTensor *t = tg_value_tensor(tg_value_get(kv, "test.ids")), *l = tg_value_tensor(tg_value_get(kv, "test.logits"));
  int64_t n = tg_numel(t) - 1, v = tg_llm_about(m).vocabulary;
  assert_true(n <= 10 && tg_numel(l) <= 512);
  assert_int_equal(tg_read(t, ids, tg_nbytes(t)), TG_OK);
  assert_int_equal(tg_read(l, want, tg_nbytes(l)), TG_OK);
  int counted = 0;
  for (int64_t i = 0; i < n; i++) {
    targets[i] = i == 2 ? -1 : ids[i + 1]; /* one does not count */
    if (i != 2) sum += surprise(want + i * v, v, ids[i + 1]), counted++;
  }
  double got = loss_of(m, ids, targets, 1, n);
  if (!(fabs(got - sum / counted) < 2e-5)) fail_msg("%s: %g, not %g", name, got, sum / counted);
  for (int64_t i = 0; i < n; i++) {
    ids[n + i] = (int32_t)((i * 7 + 3) % v);
    targets[n + i] = -1;
  }
  got = loss_of(m, ids, targets, 2, n);
  if (!(fabs(got - sum / counted) < 2e-5)) fail_msg("%s, two: %g, not %g", name, got, sum / counted);
  for (int64_t i = 0; i < n; i++)
    targets[i] = -1;
  assert_true(loss_of(m, ids, targets, 1, n) == 0);
  assert_null(tg_llm_loss(m, tg_from(C, ids, TG_I32, TG_SHAPE(n)), tg_from(C, ids, TG_I32, TG_SHAPE(n))));
  refused(TG_ERR_SHAPE, "both are (texts, tokens)");
  TgTensor *longer = tg_full_i64(C, TG_SHAPE(1, 25), 1, TG_I32);
  assert_null(tg_llm_loss(m, longer, longer));
  refused(TG_ERR_LIMIT, "25 tokens are more than the context of 24");
  tg_llm_free(m);
}

static void test_whole(void **state) {
  (void)state;
  static const char *const names[] = {"llama",        "llama-tied-linear", "llama-yarn", "llama-window",
                                      "llama-experts", "qwen2",            "qwen3",      "qwen2moe",
                                      "qwen3moe",     "gemma2",            "gemma3",     "phi3",
                                      "glm4",         "gpt2"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    whole(names[i]);
}

/* ---- PyTorch's 50 steps */
typedef struct Learning {
  TgLlm *m;
  TgOptim *optim;
} Learning;

static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Learning *l = user;
  (void)nin, (void)nout;
  out[0] = tg_llm_loss(l->m, in[0], in[1]);
  TgStatus s = out[0] ? tg_backward(out[0]) : tg_error(ctx);
  return s ? s : tg_optim_step(l->optim);
}

/* The generator of make_lora.py, into what is a and not b. */
static void numbers_set(TgLora *l, int64_t rank) {
  TgTensor *p[MOST];
  uint32_t random = 1;
  static float v[1 << 14];
  int n = parameters(l, p);
  for (int i = 0; i < n; i++)
    TG_SCOPE(C) {
      int64_t k = tg_numel(p[i]);
      if (tg_dim(p[i], 0) != rank) continue;
      for (int64_t j = 0; j < k; j++) {
        random = random * 1664525u + 1013904223u;
        v[j] = (float)(((double)random / 2147483648.0 - 1) * 0.125);
      }
      tg_assign(p[i], tg_from(C, v, TG_F32, tg_ndim(p[i]), tg_shape(p[i])));
      assert_int_equal(tg_realize(p[i]), TG_OK);
    }
}

static void beginning_of(const char *path, size_t n) {
  size_t all = 0;
  char *text = file_text(data_at("tinyshakespeare/input.txt"), &all);
  if (!text) {
    print_message("tinyshakespeare is not here\n");
    skip();
  }
  text[all < n ? all : n] = 0;
  file_put(path, text);
  free(text);
}

static void tokens_are(const TgDataset *d, int64_t count, uint32_t hash) {
  int32_t ids[64], targets[64], first = 0;
  uint32_t got = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < d->count; i++) {
    assert_int_equal(d->item(d->user, i, 0, (void *[]){ids, targets}), TG_OK);
    if (!i) first = ids[0], got = (uint32_t)first, n = 1;
    for (int k = 0; k < 64 && targets[k] >= 0; k++)
      got = got * 31 + (uint32_t)targets[k], n++;
  }
  assert_int_equal(n, count);
  assert_int_equal(got, hash);
}

static void test_pytorch(void **state) {
  (void)state;
  size_t n = 0;
  beginning_of("test_lora.txt", 40000);
  char *want = file_text(golden("lora.txt"), &n), *at = want;
  assert_non_null(want);
  TgLlm *m = tg_llm_open(C, stories("f32"));
  TgLora *l = tg_lora_new(m, .rank = 4, .alpha = 8);
  if (!l) fail_msg("%s", tg_errmsg(C));
  numbers_set(l, 4);
  TgTensor *p[MOST], *in[2];
  Learning x = {m, tg_adamw(C, p, parameters(l, p), .lr = 5e-3, .weight_decay = 0.01)};
  TgLlmTexts about;
  TgDataset d = tg_llm_dataset(m, "test_lora.txt", .length = 64, .about = &about);
  remove("test_lora.txt");
  if (!d.item) fail_msg("%s", tg_errmsg(C));
  int64_t count = strtoll(at, &at, 10);
  tokens_are(&d, count, (uint32_t)strtoll(at, &at, 10));
  assert_int_equal(about.tokens, count - 1);
  assert_int_equal(about.items, (count + 62) / 64);
  TgLoader *loader = tg_loader(C, &d, .batch = 4);
  TgJit *jit = tg_jit(C, step, &x);
  for (int i = 0; i < 50; i++)
    TG_SCOPE(C) {
      TgTensor *out = NULL;
      assert_true(tg_loader_next(loader, in));
      if (tg_jit_run(jit, in, 2, &out, 1)) fail_msg("%s", tg_errmsg(C));
      double loss = tg_item_f64(out), theirs = strtod(at, &at);
      if (!(fabs(loss - theirs) < 1e-3)) fail_msg("step %d: loss %.6f, PyTorch's %.6f", i, loss, theirs);
    }
  free(want);
  tg_jit_free(jit), tg_loader_free(loader), tg_dataset_end(&d), tg_optim_free(x.optim), tg_llm_free(m);
}

#define SUITE(open)                                                                                          \
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_pytorch)};          \
  return cmocka_run_group_tests(tests, open, close_it)

int main(void) { SUITE(open_it); }
