/* test_lora.c: language models that learn. Expected losses of whole texts are those of the logits in the
 * files of tests/llm/make_models.py; losses of 50 steps are PyTorch's (tests/llm/make_lora.py). Gradients
 * through quantised weights are held against differences of losses. */
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
  static const char *const left[] = {"test_lora_files/adapter_model.safetensors",
                                     "test_lora_files/adapter_config.json",
                                     "test_lora_files/one.safetensors",
                                     "test_lora_files/two.safetensors",
                                     "test_lora_files/wrong.safetensors",
                                     "test_lora_memory/adapter_model.safetensors",
                                     "test_lora_memory/adapter_config.json",
                                     "test_lora_memory/adapter_config.json.tmp",
                                     "test_lora_files",
                                     "test_lora_memory"};
  (void)state;
  tg_close(C);
  for (size_t i = 0; i < sizeof left / sizeof *left; i++)
    remove(left[i]);
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

enum { MOST = 128 };

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
  TgTensor *t = tg_value_tensor(tg_value_get(kv, "test.ids")),
           *l = tg_value_tensor(tg_value_get(kv, "test.logits"));
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
  static const char *const names[] = {
      "llama",    "llama-tied-linear", "llama-yarn", "llama-window", "llama-experts", "qwen2", "qwen3",
      "qwen2moe", "qwen3moe",          "gemma2",     "gemma3",       "phi3",          "glm4",  "gpt2",
      "gpt-oss",  "smollm3",           "gemma"};
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

static void pytorch(bool by_layers) {
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
  TgLlmLearner *learner = tg_llm_learner(m, l, x.optim);
  for (int i = 0; i < 50; i++)
    TG_SCOPE(C) {
      TgTensor *out = NULL;
      double loss = NAN;
      assert_true(tg_loader_next(loader, in));
      if (by_layers ? tg_llm_learn(learner, in[0], in[1], &loss) : tg_jit_run(jit, in, 2, &out, 1))
        fail_msg("%s", tg_errmsg(C));
      if (!by_layers) loss = tg_item_f64(out);
      double theirs = strtod(at, &at);
      if (!(fabs(loss - theirs) < 1e-3)) fail_msg("step %d: loss %.6f, PyTorch's %.6f", i, loss, theirs);
    }
  free(want);
  tg_llm_learner_free(learner);
  tg_jit_free(jit), tg_loader_free(loader), tg_dataset_end(&d), tg_optim_free(x.optim), tg_llm_free(m);
}

static void test_pytorch(void **state) {
  (void)state;
  pytorch(false);
  pytorch(true);
}

/* ---- a step by layers is the step of the whole: what a rate of 1 takes off each parameter */
enum { EACH = 140 }; /* tokens of a text: of two more than the head takes at once */

static void learned(TgLlm *m, TgLora *l, TgOptim *o, int64_t each, int32_t *ids, int32_t *targets,
                    double *loss) {
  TG_SCOPE(C) {
    TgTensor *in[] = {tg_from(C, ids, TG_I32, TG_SHAPE(2, each)),
                      tg_from(C, targets, TG_I32, TG_SHAPE(2, each))};
    TgLlmLearner *s = tg_llm_learner(m, l, o);
    if (tg_llm_learn(s, in[0], in[1], loss)) fail_msg("%s", tg_errmsg(C));
    tg_llm_learner_free(s);
  }
}

/* An adapter's parameters, or all weights (rank 0). */
static void by_layers(const char *name, int64_t rank) {
  char file[80];
  int32_t ids[2 * EACH], targets[2 * EACH];
  TgTensor *p[MOST], *was[MOST], *g[MOST];
  double loss = 0;
  int64_t each = strcmp(name, "gpt2") ? EACH : 32; /* it has no more positions */
  snprintf(file, sizeof file, "%s.gguf", name);
  TgLlm *m = tg_llm_open(C, golden(file), .context = EACH, .block = 1);
  TgLora *l = rank ? tg_lora_new(m, .rank = rank, .modules = "q,v") : NULL;
  if (rank ? !l : tg_llm_unfreeze(m)) fail_msg("%s: %s", name, tg_errmsg(C));
  if (l) shaken(l, 0.3);
  int n = l ? parameters(l, p) : tg_llm_parameters(m, p, MOST);
  assert_in_range(n, 1, MOST);
  for (int i = 0; i < 2 * EACH; i++) {
    ids[i] = (i * 7 + 3) % 20;
    targets[i] = i % 5 == 2 ? -1 : (i * 11 + 1) % 20;
  }
  TG_SCOPE(C) {
    TgTensor *whole = tg_llm_loss(m, tg_from(C, ids, TG_I32, TG_SHAPE(2, each)),
                                  tg_from(C, targets, TG_I32, TG_SHAPE(2, each)));
    assert_int_equal(tg_gradient(whole, p, n, g), TG_OK);
    double want = tg_item_f64(whole);
    for (int i = 0; i < n; i++) {
      was[i] = tg_keep(tg_clone(tg_sub(p[i], g[i])));
      assert_int_equal(tg_realize(was[i]), TG_OK);
    }
    TgOptim *o = tg_sgd(C, p, n, .lr = 1);
    learned(m, l, o, each, ids, targets, &loss);
    tg_optim_free(o);
    if (!(fabs(loss - want) < 1e-5 * (1 + want))) fail_msg("%s: loss %g, not %g", name, loss, want);
    for (int i = 0; i < n; i++) {
      double far = tg_item_f64(tg_max(tg_abs(tg_sub(p[i], was[i]))));
      if (!(far < 1e-4)) fail_msg("%s: parameter %d of %d is %g apart", name, i, n, far);
      tg_release(was[i]);
    }
  }
  tg_llm_free(m);
}

/* What dropout keeps is the same forward and backward: along the gradient, with the same seed, the loss rises
 * as the gradient says. */
static void dropped(void) {
  int32_t ids[2 * EACH], targets[2 * EACH];
  TgTensor *p[MOST], *was[MOST], *g[MOST];
  double loss[3], square = 0;
  TgLlm *m = tg_llm_open(C, golden("llama.gguf"), .context = EACH, .block = 1);
  TgLora *l = tg_lora_new(m, .rank = 2, .modules = "all", .dropout = 0.5);
  shaken(l, 0.3);
  int n = parameters(l, p);
  for (int i = 0; i < 2 * EACH; i++)
    ids[i] = (i * 7 + 3) % 20, targets[i] = (i * 11 + 1) % 20;
  TG_SCOPE(C) {
    tg_set_training(C, true);
    for (int i = 0; i < n; i++)
      was[i] = tg_clone(p[i]), tg_realize(was[i]);
    for (int turn = 0; turn < 3; turn++) {
      TgOptim *o = tg_sgd(C, p, n, .lr = turn ? 1e-30 : 1);
      tg_manual_seed(C, 5);
      learned(m, l, o, EACH, ids, targets, &loss[turn]);
      tg_optim_free(o);
      for (int i = 0; i < n; i++) {
        if (!turn) {
          g[i] = tg_clone(tg_sub(was[i], p[i])), tg_realize(g[i]);
          square += tg_item_f64(tg_sum(tg_square(g[i])));
        }
        tg_assign(p[i], tg_add(was[i], tg_mul_scalar(g[i], turn ? -1e-4 : 1e-4))), tg_realize(p[i]);
      }
    }
    tg_set_training(C, false);
  }
  double rise = (loss[1] - loss[2]) / 2e-4;
  if (!(fabs(rise - square) < 2e-2 * square)) fail_msg("the loss rises by %g, not %g", rise, square);
  assert_true(fabs(loss[0] - loss[1]) < 0.1);
  tg_llm_free(m);
}

static void test_by_layers(void **state) {
  (void)state;
  static const char *const names[] = {"llama", "gemma3", "qwen3moe", "phi3", "gpt-oss"};
  for (int i = 0; i < 5; i++)
    by_layers(names[i], 2);
  dropped();
  TgLlm *m = tg_llm_open(C, golden("llama.gguf"), .context = 8, .block = 1);
  TgLora *l = tg_lora_new(m, .dropout = 0.5), *other = tg_lora_new(m);
  TgTensor *p[MOST];
  TgOptim *o = tg_sgd(C, p, parameters(other, p), .lr = 1);
  assert_null(tg_llm_learner(m, other, o));
  refused(TG_ERR_VALUE, "another adapter of the model has dropout");
  TgLlmLearner *s = tg_llm_learner(m, l, o);
  TgTensor *longer = tg_full_i64(C, TG_SHAPE(1, 9), 1, TG_I32);
  assert_int_equal(tg_llm_learn(s, longer, longer, NULL), TG_ERR_LIMIT);
  refused(TG_ERR_LIMIT, "9 tokens are more than the context of 8");
  assert_int_equal(tg_llm_learn(s, longer, NULL, NULL), TG_ERR_INTERNAL);
  tg_llm_learner_free(s), tg_llm_learner_free(NULL);
  tg_optim_free(o), tg_llm_free(m);
}

/* ---- all weights: a step by layers, and the file that has them */
static void test_full(void **state) {
  (void)state;
  static const char *const names[] = {"llama", "llama-tied-linear", "qwen2moe", "gpt2", "gpt-oss"};
  static const int32_t ids[] = {1, 2, 3, 4};
  float want[20];
  TgTensor *p[MOST];
  TgLlmMerged about;
  for (int i = 0; i < 5; i++)
    by_layers(names[i], 0);
  TgLlm *m = tg_llm_open(C, golden("llama-tied-linear.gguf"), .context = 8, .block = 4);
  assert_int_equal(tg_llm_merge(m, "test_lora.gguf", NULL), TG_ERR_VALUE);
  refused(TG_ERR_VALUE, "no adapter, and its weights are as in its file");
  assert_null(tg_llm_learner(m, NULL, (TgOptim *)p));
  refused(TG_ERR_STATE, "weights are frozen");
  assert_int_equal(tg_llm_eval(m, ids, 4), TG_OK);
  memcpy(want, tg_llm_logits(m), sizeof want);
  assert_int_equal(tg_llm_unfreeze(m), TG_OK);
  assert_int_equal(tg_llm_eval(m, ids, 4), TG_OK); /* from the beginning, and the same */
  for (int i = 0; i < 20; i++)
    assert_true(fabs((double)(want[i] - tg_llm_logits(m)[i])) < 1e-5);
  int n = tg_llm_parameters(m, p, MOST);
  assert_int_equal(n, tg_value_count(tg_value_get(tg_llm_gguf(m), "tensors")));
  for (int i = 0; i < n; i++)
    TG_SCOPE(C) {
      tg_assign(p[i], tg_mul_scalar(p[i], 1.25));
      assert_int_equal(tg_realize(p[i]), TG_OK);
    }
  assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
  assert_int_equal(tg_llm_eval(m, ids, 4), TG_OK);
  memcpy(want, tg_llm_logits(m), sizeof want);
  if (tg_llm_merge(m, "test_lora.gguf", &about)) fail_msg("%s", tg_errmsg(C));
  assert_int_equal(about.weights, n);
  assert_true(about.error < 1e-3);
  tg_llm_free(m);
  m = tg_llm_open(C, "test_lora.gguf", .context = 8, .block = 4);
  remove("test_lora.gguf");
  assert_int_equal(tg_llm_eval(m, ids, 4), TG_OK);
  for (int i = 0; i < 20; i++)
    assert_true(fabs((double)(want[i] - tg_llm_logits(m)[i])) < 2e-2);
  tg_llm_free(m);
  m = tg_llm_open(C, stories("q8_0"), .context = 8, .block = 4);
  assert_int_equal(tg_llm_unfreeze(m), TG_ERR_DTYPE);
  refused(TG_ERR_DTYPE, "is Q8_0: what is quantised has an adapter");
  tg_llm_free(m);
}

/* ---- gradients through decoded weights: of q8_0 too they are differences of losses */
static void gradients(const char *kind) {
  TgLlm *m = tg_llm_open(C, stories(kind), .context = 16, .block = 1);
  TgLora *l = tg_lora_new(m, .rank = 2, .modules = "all");
  if (!l) fail_msg("%s", tg_errmsg(C));
  shaken(l, 0.05);
  TgTensor *p[MOST], *g[MOST];
  int n = tg_module_parameters(tg_lora_module, l, p, MOST);
  assert_int_equal(n, 2 * 7 * 5);
  static const int32_t ids[] = {1, 403, 407, 261, 378, 31, 40, 99},
                       targets[] = {403, 407, 261, -1, 31, 40, 99, 5};
  for (int i = 0; i < n; i += 3) {
    double at[2], want, got = 0;
    TG_SCOPE(C) {
      TgTensor *loss = tg_llm_loss(m, tg_from(C, ids, TG_I32, TG_SHAPE(2, 4)),
                                   tg_from(C, targets, TG_I32, TG_SHAPE(2, 4)));
      assert_int_equal(tg_gradient(loss, &p[i], 1, g), TG_OK);
      /* along the gradient, which is the steepest */
      got = tg_item_f64(tg_sqrt(tg_sum(tg_square(g[0]))));
      TgTensor *along = tg_keep(tg_contiguous(tg_div_scalar(g[0], got))), *was = tg_keep(tg_clone(p[i]));
      assert_int_equal(tg_realize(along) | tg_realize(was), TG_OK);
      for (int k = 0; k < 2; k++) {
        tg_assign(p[i], tg_add(was, tg_mul_scalar(along, k ? 0.004 : -0.004)));
        assert_int_equal(tg_realize(p[i]), TG_OK);
        at[k] = loss_of(m, ids, targets, 2, 4);
      }
      tg_assign(p[i], was);
      assert_int_equal(tg_realize(p[i]), TG_OK);
      tg_release(along), tg_release(was);
    }
    want = (at[1] - at[0]) / 0.008;
    if (!(fabs(got - want) < 3e-3 * (1 + fabs(want)))) fail_msg("%s: %d: %g, not %g", kind, i, got, want);
  }
  tg_llm_free(m);
}

static void test_gradients(void **state) {
  (void)state;
  gradients("f32");
  gradients("q8_0");
}

/* ---- files */
static void logits_after(TgLlm *m, float *to) {
  static const int32_t ids[] = {1, 403, 407, 261, 378};
  assert_int_equal(tg_llm_rewind(m, 0), TG_OK);
  if (tg_llm_eval(m, ids, 5)) fail_msg("%s", tg_errmsg(C));
  memcpy(to, tg_llm_logits(m), 512 * sizeof *to);
}

static double apart(const float *a, const float *b) {
  double most = 0;
  for (int i = 0; i < 512; i++)
    most = fmax(most, fabs((double)(a[i] - b[i])));
  return most;
}

/* What is saved and loaded is the same to the bit; a new adapter changes nothing but how sums round, because
 * what it adds is in their kernels; scales and several adapters add up; without them the model is what it
 * was. */
static void test_files(void **state) {
  (void)state;
  float plain[512], with[512], got[512];
  TgLlm *m = tg_llm_open(C, stories("f32"), .context = 16, .block = 4);
  logits_after(m, plain);
  TgLora *l = tg_lora_new(m, .rank = 3, .alpha = 5, .modules = "q,k,down");
  assert_non_null(l);
  logits_after(m, got);
  assert_true(apart(plain, got) < 1e-5);
  shaken(l, 0.1);
  logits_after(m, with);
  assert_true(apart(plain, with) > 0.01);
  assert_int_equal(tg_lora_save(l, "test_lora_files", "a model"), TG_OK);
  assert_int_equal(tg_lora_save(l, "test_lora_files/one.safetensors", NULL), TG_OK);
  tg_lora_free(l);
  l = tg_lora_new(m, .rank = 2, .alpha = 50); /* another one in the folder leaves them as they are */
  assert_int_equal(tg_lora_save(l, "test_lora_files/two.safetensors", NULL), TG_OK);
  tg_lora_free(l);
  assert_null(tg_llm_logits(m));
  logits_after(m, got);
  assert_true(apart(plain, got) == 0);
  l = tg_lora_load(m, "test_lora_files", 1);
  if (!l) fail_msg("%s", tg_errmsg(C));
  logits_after(m, got);
  assert_true(apart(with, got) == 0);
  tg_lora_free(l);
  TgLora *half = tg_lora_load(m, "test_lora_files/one.safetensors", 0.5);
  TgLora *other = tg_lora_load(m, "test_lora_files/one.safetensors", 0.5);
  assert_true(half && other);
  logits_after(m, got);
  assert_true(apart(with, got) < 1e-4);
  tg_lora_free(half);
  logits_after(m, got);
  assert_true(apart(with, got) > 1e-3 && apart(plain, got) > 1e-3);
  tg_llm_free(m); /* and the other with it */
}

/* peft's order of q's rows: of head h the first halves of all pairs, then the second ones; v stays. */
static void test_order(void **state) {
  (void)state;
  static float ours[64 * 2], theirs[64 * 2];
  TgLlm *m = tg_llm_open(C, stories("f32"), .context = 16, .block = 1);
  TgLora *l = tg_lora_new(m, .rank = 2);
  shaken(l, 1);
  TgTensor *p[MOST];
  int n = parameters(l, p);
  assert_int_equal(n, 5 * 4); /* a of q and v, then b of them, layer by layer */
  assert_int_equal(tg_lora_save(l, "test_lora_files", NULL), TG_OK);
  TgState *s = tg_safe_load_file(C, "test_lora_files/adapter_model.safetensors");
  TgTensor *q = tg_state_get(s, "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  TgTensor *v = tg_state_get(s, "base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight");
  assert_true(q && v && tg_state_count(s) == 20);
  assert_int_equal(tg_read(p[2], ours, sizeof ours) | tg_read(q, theirs, sizeof theirs), TG_OK);
  for (int head = 0; head < 8; head++)
    for (int i = 0; i < 4; i++)
      for (int half = 0; half < 2; half++)
        for (int k = 0; k < 2; k++)
          assert_true(ours[2 * (8 * head + 2 * i + half) + k] == theirs[2 * (8 * head + 4 * half + i) + k]);
  assert_int_equal(tg_read(p[3], ours, tg_nbytes(p[3])) | tg_read(v, theirs, tg_nbytes(v)), TG_OK);
  assert_memory_equal(ours, theirs, tg_nbytes(v));
  tg_state_free(s), tg_llm_free(m);
}

/* ---- wrong files: one tensor of a right one renamed, or of another shape; another configuration */
static void wrong_tensor(TgLlm *m, const char *name, const char *as, int64_t rows, int64_t columns,
                         TgStatus status, const char *part) {
  TgState *s = tg_safe_load_file(C, "test_lora_files/adapter_model.safetensors");
  TG_SCOPE(C) {
    TgTensor *t = tg_state_remove(s, name);
    assert_non_null(t);
    if (as) tg_state_put(s, as, rows ? tg_ones(C, TG_SHAPE(rows, columns)) : t);
    assert_int_equal(tg_safe_save(s, "test_lora_files/wrong.safetensors"), TG_OK);
    tg_release(t);
  }
  tg_state_free(s);
  assert_null(tg_lora_load(m, "test_lora_files/wrong.safetensors", 1));
  refused(status, part);
}

static void wrong_config(TgLlm *m, const char *text, const char *part) {
  file_put("test_lora_files/adapter_config.json", text);
  assert_null(tg_lora_load(m, "test_lora_files", 1));
  refused(TG_ERR_VALUE, part);
}

static void test_wrong(void **state) {
  (void)state;
  static const char q[] = "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight";
  static const char b[] = "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight";
  TgLlm *m = tg_llm_open(C, stories("f32"), .context = 16, .block = 1);
  TgLora *l = tg_lora_new(m);
  assert_int_equal(tg_lora_save(l, "test_lora_files", NULL), TG_OK);
  tg_lora_free(l);
  wrong_tensor(m, q, NULL, 0, 0, TG_ERR_VALUE,
               "there is no tensor 'base_model.model.model.layers.1.self_attn.q_proj.lora_A");
  wrong_tensor(m, q, q, 8, 63, TG_ERR_SHAPE,
               "q_proj.lora_A.weight' is f32 (8, 63), where the model wants (rank, 64)");
  wrong_tensor(m, b, b, 65, 8, TG_ERR_SHAPE, "where the model wants (64, rank)");
  wrong_tensor(m, b, b, 64, 4, TG_ERR_SHAPE, "rank 4, and lora_A beside it of rank 8");
  wrong_tensor(m, q, "base_model.model.model.layers.5.self_attn.q_proj.lora_A.weight", 0, 0, TG_ERR_VALUE,
               "no such weight in its 5 layers");
  wrong_tensor(m, q, "base_model.model.model.layers.1.self_attn.x_proj.lora_A.weight", 0, 0, TG_ERR_VALUE,
               "x_proj.lora_A.weight' is none that an adapter of llama has here");
  wrong_tensor(m, q, "base_model.model.model.layers.99999999999999999999.self_attn.q_proj.lora_A.weight", 0,
               0, TG_ERR_VALUE, "no such weight");
  wrong_tensor(m, q, "base_model.model.model.layers.self_attn.q_proj.lora_A.weight", 0, 0, TG_ERR_VALUE,
               "is none that");
  wrong_tensor(m, q, "x", 0, 0, TG_ERR_VALUE, "'x' is none that");
  wrong_config(m, "{}", "no number lora_alpha");
  wrong_config(m, "{\"lora_alpha\": 1", "adapter_config.json");
  wrong_config(m, "[]", "no number lora_alpha");
  wrong_config(m, "{\"lora_alpha\": 1, \"peft_type\": \"IA3\"}", "the kind IA3");
  wrong_config(m, "{\"lora_alpha\": 1, \"use_dora\": true}", "use_dora is not known here");
  wrong_config(m, "{\"lora_alpha\": 1, \"bias\": \"all\"}", "biases are not adapted here");
  remove("test_lora_files/adapter_config.json");
  assert_null(tg_lora_load(m, "test_lora_files", 1));
  refused(TG_ERR_IO, "adapter_config.json");
  assert_null(tg_lora_load(m, "test_lora_none", 1)), refused(TG_ERR_IO, "test_lora_none");
  assert_null(tg_lora_load(m, "test_lora_files", NAN)), refused(TG_ERR_VALUE, "scale");
  assert_null(tg_lora_new(m, .modules = "q,x")), refused(TG_ERR_VALUE, "'x' is none of q, k, v, o, gate");
  assert_null(tg_lora_new(m, .modules = "")), refused(TG_ERR_VALUE, "no modules");
  assert_null(tg_lora_new(m, .rank = -1)), refused(TG_ERR_VALUE, "rank -1");
  assert_null(tg_lora_new(m, .dropout = 1)), refused(TG_ERR_VALUE, "dropout 1");
  tg_llm_free(m);
  m = tg_llm_open(C, golden("llama-experts.gguf"), .context = 16);
  assert_null(tg_lora_new(m, .modules = "gate")), refused(TG_ERR_VALUE, "'gate': llama has no such matrix");
  assert_non_null(l = tg_lora_new(m, .modules = "all"));
  tg_llm_free(m);
  tg_lora_free(NULL);
}

/* Every architecture's names go out and come in. */
static void test_names(void **state) {
  (void)state;
  static const char *const kinds[][2] = {{"phi3.gguf", "model.layers.1.self_attn.qkv_proj.lora_A.weight"},
                                         {"glm4.gguf", "model.layers.1.mlp.gate_up_proj.lora_B.weight"},
                                         {"gpt2.gguf", "transformer.h.1.attn.c_proj.lora_B.weight"},
                                         {"qwen3.gguf", "model.layers.1.mlp.down_proj.lora_A.weight"}};
  for (int i = 0; i < 4; i++) {
    char name[120];
    TgLlm *m = tg_llm_open(C, golden(kinds[i][0]), .context = 16, .block = 1);
    TgLora *l = tg_lora_new(m, .modules = "all", .rank = 2);
    if (!l) fail_msg("%s", tg_errmsg(C));
    assert_int_equal(tg_lora_save(l, "test_lora_files", NULL), TG_OK);
    TgState *s = tg_safe_load_file(C, "test_lora_files/adapter_model.safetensors");
    snprintf(name, sizeof name, "base_model.model.%s", kinds[i][1]);
    if (!tg_state_get(s, name)) fail_msg("%s has no %s", kinds[i][0], name);
    assert_int_equal(tg_state_count(s), tg_module_parameters(tg_lora_module, l, NULL, 0));
    tg_state_free(s);
    if (!tg_lora_load(m, "test_lora_files", 1)) fail_msg("%s", tg_errmsg(C));
    tg_llm_free(m);
  }
}

/* ---- merged: the file's logits are the adapter's */
static void merged(const char *kind, double close, double error) {
  float with[512], got[512];
  TgLlmMerged about;
  TgLlm *m = tg_llm_open(C, stories(kind), .context = 16, .block = 4);
  assert_int_equal(tg_llm_merge(m, "test_lora.gguf", NULL), TG_ERR_VALUE);
  refused(TG_ERR_VALUE, "no adapter");
  TgLora *l = tg_lora_new(m, .rank = 3, .modules = "q,v,gate,down");
  shaken(l, 0.1);
  logits_after(m, with);
  if (tg_llm_merge(m, "test_lora.gguf", &about)) fail_msg("%s", tg_errmsg(C));
  assert_int_equal(about.weights, 5 * 4);
  if (!(about.error <= error)) fail_msg("%s: an error of %g", kind, about.error);
  assert_int_equal(tg_llm_merge(m, stories(kind), NULL), TG_ERR_VALUE);
  refused(TG_ERR_VALUE, "own file");
  tg_llm_free(m);
  m = tg_llm_open(C, "test_lora.gguf", .context = 16, .block = 4);
  remove("test_lora.gguf");
  if (!m) fail_msg("%s", tg_errmsg(C));
  logits_after(m, got);
  if (!(apart(with, got) < close)) fail_msg("%s: logits are %g apart", kind, apart(with, got));
  tg_llm_free(m);
}

static void test_merged(void **state) {
  (void)state;
  merged("f32", 1e-4, 0);
  merged("q8_0", 0.3, 0.01);
}

/* ---- a training that was saved goes on to the same bits, dropout included; l NULL: of all weights */
static void train_some(TgLlm *m, TgLora *l, int first, int last, bool load, bool save, double *losses) {
  TgTensor *p[MOST], *in[2];
  static int32_t ids[2 * 8], targets[2 * 8];
  TgModuleFn module = l ? tg_lora_module : tg_llm_module;
  assert_ptr_not_equal(tg_llm_module(), tg_lora_module());
  void *model = l ? (void *)l : m;
  TgOptim *o = tg_adamw(C, p, tg_module_parameters(module, model, p, MOST), .lr = 1e-2);
  TgTraining t = {.size = sizeof t, .module = module, .model = model, .optim = o, .step = last};
  if (load && tg_train_load(C, &t, "test_lora.safetensors")) fail_msg("%s", tg_errmsg(C));
  assert_true(!load || t.step == first);
  TgLlmLearner *learner = tg_llm_learner(m, l, o);
  tg_set_training(C, true);
  for (int i = first; i < last; i++)
    TG_SCOPE(C) {
      int v = (int)tg_llm_about(m).vocabulary;
      for (int k = 0; k < 16; k++)
        ids[k] = (i * 37 + k * 11) % v, targets[k] = (i * 5 + k * 3) % v;
      in[0] = tg_from(C, ids, TG_I32, TG_SHAPE(2, 8)), in[1] = tg_from(C, targets, TG_I32, TG_SHAPE(2, 8));
      if (tg_llm_learn(learner, in[0], in[1], &losses[i])) fail_msg("%s", tg_errmsg(C));
    }
  tg_set_training(C, false);
  t.step = last;
  if (save) assert_int_equal(tg_train_save(C, &t, "test_lora.safetensors", NULL), TG_OK);
  tg_llm_learner_free(learner), tg_optim_free(o);
}

static void test_resume(void **state) {
  (void)state;
  double all[8], parts[8] = {0};
  for (int turn = 0; turn < 3; turn++) {
    TgLlm *m = tg_llm_open(C, stories("q8_0"), .context = 16, .block = 1);
    tg_manual_seed(C, turn == 2 ? 9 : 3); /* the third is told by the file */
    TgLora *l = tg_lora_new(m, .rank = 2, .dropout = 0.2);
    if (turn == 0) train_some(m, l, 0, 8, false, false, all);
    if (turn == 1) train_some(m, l, 0, 4, false, true, parts);
    if (turn == 2) train_some(m, l, 4, 8, true, false, parts);
    tg_llm_free(m);
  }
  remove("test_lora.safetensors");
  assert_memory_equal(all, parts, sizeof all);
}

static void test_resume_full(void **state) {
  (void)state;
  static const char *const names[] = {"llama-tied-linear", "gpt2"};
  for (int i = 0; i < 2; i++) {
    double all[8], parts[8] = {0};
    char path[40];
    snprintf(path, sizeof path, "%s.gguf", names[i]);
    for (int turn = 0; turn < 3; turn++) {
      TgLlm *m = tg_llm_open(C, golden(path), .context = 16, .block = 1);
      assert_int_equal(tg_llm_unfreeze(m), TG_OK);
      if (turn == 0) train_some(m, NULL, 0, 8, false, false, all);
      if (turn == 1) train_some(m, NULL, 0, 4, false, true, parts);
      if (turn == 2) train_some(m, NULL, 4, 8, true, false, parts);
      tg_llm_free(m);
    }
    remove("test_lora.safetensors");
    assert_memory_equal(all, parts, sizeof all);
  }
}

/* ---- texts */
static TgDataset texts(TgLlm *m, const char *text, int64_t length, TgLlmTexts *about) {
  file_put("test_lora.txt", text);
  TgDataset d = tg_llm_dataset(m, "test_lora.txt", .length = length, .about = about);
  remove("test_lora.txt");
  return d;
}

/* What an item shows and what it wants, as texts. */
static void item_is(TgLlm *m, const TgDataset *d, int64_t item, const char *shown, const char *wanted) {
  int32_t ids[32], targets[32];
  char text[2][400] = {"", ""};
  int64_t n = d->tensor[0].dims[0];
  assert_int_equal(d->item(d->user, item, 0, (void *[]){ids, targets}), TG_OK);
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 2; k++) {
      size_t length = 0;
      int32_t id = k ? targets[i] : ids[i];
      const char *piece = id < 0   ? "-"
                          : id < 3 ? &"_^$"[id]
                                   : tg_token_text(tg_llm_tokenizer(m), id, &length);
      strncat(text[k], piece, id < 3 ? 1 : length);
    }
  if (strcmp(text[0], shown) || strcmp(text[1], wanted))
    fail_msg("item %lld is '%s' and '%s', not '%s' and '%s'", (long long)item, text[0], text[1], shown,
             wanted);
}

static void text_is_wrong(TgLlm *m, const char *text, const char *part) {
  TgDataset d = texts(m, text, 8, NULL);
  assert_null(d.item);
  refused(TG_ERR_VALUE, part);
}

static void test_texts(void **state) {
  (void)state;
  TgLlmTexts about;
  TgLlm *m = tg_llm_open(C, stories("f32"), .context = 32, .block = 1);
  TgDataset d =
      texts(m, "{\"prompt\": \"the\", \"completion\": \" dog\"}\n\n {\"text\": \"a dog\"}\r\n", 8, &about);
  if (!d.item) fail_msg("%s", tg_errmsg(C));
  assert_true(d.count == 2 && about.items == 2 && about.cut == 0);
  item_is(m, &d, 0, "^▁the▁dog$___", "-▁dog$----");
  item_is(m, &d, 1, "^▁a▁dog$___", "▁a▁dog$----");
  tg_dataset_end(&d);
  d = texts(m, "the dog", 2, &about); /* plain, in pieces of two tokens; no end */
  item_is(m, &d, 0, "^▁the", "▁the▁do");
  item_is(m, &d, 1, "▁dog", "g-");
  assert_true(d.count == 2 && about.items == 2 && about.tokens == 3 && about.cut == 0);
  tg_dataset_end(&d);
  d = texts(m, "{\"prompt\": \"the\", \"completion\": \" dog\"}", 2, &about);
  item_is(m, &d, 0, "^▁the", "-▁do");
  assert_true(d.count == 1 && about.tokens == 1 && about.cut == 1);
  tg_dataset_end(&d);
  text_is_wrong(m, "{\"text\": 3}", "line 1: no text where one is wanted");
  text_is_wrong(m, "{\"text\": \"a\"}\n{\"prompt\": \"a\"}", "line 2: no text");
  text_is_wrong(m, "{\"text\": \"a\"", "line 1: ");
  text_is_wrong(m, "{\"text\": \"a\"}\n[]", "line 2: no JSON object");
  text_is_wrong(m, "{\"text\": \"a\", \"text\": \"b\"}", "line 1: ");
  text_is_wrong(m, "{\"messages\": []}", "no chat template");
  text_is_wrong(m, "", "nothing to learn");
  d = tg_llm_dataset(m, "test_lora_none.txt");
  assert_null(d.item), refused(TG_ERR_IO, "test_lora_none.txt");
  d = tg_llm_dataset(m, "x", .length = 33);
  assert_null(d.item), refused(TG_ERR_VALUE, "items of 33 tokens, where the context is of 32");
  tg_llm_free(m);
}

/* Items as long as the longest text needs: steps of 32 up to the length. */
static void test_texts_fit(void **state) {
  (void)state;
  TgLlm *m = tg_llm_open(C, stories("f32"), .context = 100, .block = 1);

  static const struct {
    int words;
    int64_t length;
  } cases[] = {{1, 32}, {35, 64}, {60, 64}, {68, 96}, {99, 100}, {300, 100}}; /* and 1 or 2 that begin */

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    FILE *f = fopen("test_lora.txt", "w");
    assert_non_null(f);
    for (int k = 0; k < cases[i].words; k++)
      fputs(k ? " the" : "the", f);
    fclose(f);
    TgDataset d = tg_llm_dataset(m, "test_lora.txt", .length = 100, .fit = true);
    remove("test_lora.txt");
    if (!d.item) fail_msg("%s", tg_errmsg(C));
    if (d.tensor[0].dims[0] != cases[i].length || d.tensor[1].dims[0] != cases[i].length)
      fail_msg("%d words: %lld", cases[i].words, (long long)d.tensor[0].dims[0]);
    tg_dataset_end(&d);
  }
  tg_llm_free(m);
}

/* The model's file with a template: a key-value more, of a size that keeps the data where it is aligned. */
static void with_template(const char *from, const char *to, const char *template_) {
  size_t n = 0;
  char *file = file_text(from, &n), text[600];
  static const char key[] = "tokenizer.chat_template";
  uint64_t length = strlen(key), size, count;
  size_t pad = 0;
  while ((8 + length + 4 + 8 + strlen(template_) + 4 + pad) % 32)
    pad++;
  snprintf(text, sizeof text, "{#%.*s#}%s", (int)pad, "--------------------------------", template_);
  size = strlen(text);
  memcpy(&count, file + 16, 8);
  count++;
  FILE *f = fopen(to, "wb");
  fwrite(file, 1, 16, f), fwrite(&count, 8, 1, f);
  fwrite(&length, 8, 1, f), fwrite(key, 1, length, f), fwrite(&(uint32_t){8}, 4, 1, f),
      fwrite(&size, 8, 1, f);
  fwrite(text, 1, size, f), fwrite(file + 24, 1, n - 24, f);
  fclose(f), free(file);
}

static void test_messages(void **state) {
  (void)state;
  static const char two[] =
      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": "
      "\"b\"}, {\"role\": \"user\", \"content\": \"c\"}, {\"role\": \"assistant\", \"content\": \"d\"}]}";
  with_template(stories("f32"), "test_lora.gguf",
                "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}Q{{ m.content }}{% else "
                "%}A{{ m.content "
                "}}{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}A{% endif %}");
  TgLlm *m = tg_llm_open(C, "test_lora.gguf", .context = 32, .block = 1);
  if (!m) fail_msg("%s", tg_errmsg(C));
  TgDataset d = texts(m, two, 16, NULL);
  if (!d.item) fail_msg("%s", tg_errmsg(C));
  item_is(m, &d, 0, "^▁QaAb$QcAd$____", "----b$---d$-----"); /* the blank is a piece of its own */
  tg_dataset_end(&d);
  text_is_wrong(m, "{\"messages\": 1}", "messages is no list");
  text_is_wrong(m, "{\"messages\": [{}]}", "without a role");
  text_is_wrong(m, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", "nothing to learn");
  tg_llm_free(m);
  with_template(stories("f32"), "test_lora.gguf", /* earlier replies are written otherwise */
                "{% for m in messages %}{% if m.role == 'user' %}Q{{ m.content }}{% elif loop.last %}A{{ "
                "m.content }}{% "
                "else %}B{% endif %}{% endfor %}{% if add_generation_prompt %}A{% endif %}");
  m = tg_llm_open(C, "test_lora.gguf", .context = 32, .block = 1);
  text_is_wrong(m, two, "line 1: the template writes what is before a reply otherwise than after it");
  tg_llm_free(m);
  remove("test_lora.gguf");
}

/* ---- memory that ends: each allocation fails in turn, and all is given back */
static bool everything(TgContext *c) {
  char path[600];
  TgTensor *p[MOST], *in[2];
  bool ok = false;
  snprintf(path, sizeof path, "%s/goldens/llm/hf/llama", TG_TESTS);
  TgLlm *m = tg_llm_open(c, path, .context = 8, .block = 2);
  TgDataset d = tg_llm_dataset(m, "test_lora_memory.jsonl", .length = 8);
  TgLora *l = m && d.item ? tg_lora_new(m, .rank = 2) : NULL;
  int n = l ? tg_module_parameters(tg_lora_module, l, p, MOST) : 0;
  TgOptim *o = n ? tg_adamw(c, p, n, .lr = 0.1) : NULL;
  TgLoader *loader = o ? tg_loader(c, &d, .workers = 0) : NULL;
  TgLlmLearner *s = loader ? tg_llm_learner(m, l, o) : NULL;
  double by_layers = NAN;
  if (s && tg_loader_next(loader, in)) TG_SCOPE(c) {
      TgTensor *loss = tg_llm_loss(m, in[0], in[1]);
      ok = loss && !tg_backward(loss) && !tg_optim_step(o) && isfinite(tg_item_f64(loss)) &&
           !tg_llm_learn(s, in[0], in[1], &by_layers) && isfinite(by_layers);
    }
  tg_llm_learner_free(s);
  ok = ok && !tg_lora_save(l, "test_lora_memory", NULL) && tg_lora_load(m, "test_lora_memory", 1);
  tg_loader_free(loader), tg_optim_free(o), tg_dataset_end(&d), tg_llm_free(m);
  m = ok ? tg_llm_open(c, golden("llama.gguf"), .context = 8, .block = 2) : NULL;
  l = m ? tg_lora_new(m, .rank = 1) : NULL;
  ok = l && !tg_llm_merge(m, "test_lora_memory.gguf", NULL);
  tg_llm_free(m);
  return ok;
}

static void test_memory(void **state) {
  (void)state;
  file_put("test_lora_memory.jsonl",
           "{\"text\": \"the dog\"}\n{\"messages\": [{\"role\": \"assistant\", \"content\": \"cat\"}]}\n");
  short_everywhere(everything, 97);
  remove("test_lora_memory.jsonl"), remove("test_lora_memory.gguf");
}

#define SUITE(open)                                                                                          \
  const struct CMUnitTest tests[] = {                                                                        \
      cmocka_unit_test(test_whole),   cmocka_unit_test(test_by_layers), cmocka_unit_test(test_full),         \
      cmocka_unit_test(test_pytorch), cmocka_unit_test(test_gradients), cmocka_unit_test(test_files),        \
      cmocka_unit_test(test_order),   cmocka_unit_test(test_wrong),     cmocka_unit_test(test_names),        \
      cmocka_unit_test(test_merged),  cmocka_unit_test(test_resume),    cmocka_unit_test(test_resume_full),  \
      cmocka_unit_test(test_texts),   cmocka_unit_test(test_texts_fit), cmocka_unit_test(test_messages),     \
      cmocka_unit_test(test_memory)};                                                                        \
  return cmocka_run_group_tests(tests, open, close_it)

int main(void) { SUITE(open_it); }
