/* test_sampler.c: each rule of the sampler chain beside a plain model of it, on random logits; draws by their
 * frequencies; the same seed, the same tokens. */
#include "tg_llm.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { V = 50 };

static TgContext *C;
static uint64_t seed = 7;

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

static double uniform(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(seed >> 40) / (1 << 24);
}

static void random_logits(float *l) {
  for (int i = 0; i < V; i++)
    l[i] = (float)(8 * uniform() - 4);
}

/* ---- plain models: a bool for each token, and its share */
static void shares(const double *l, const bool *in, double temperature, double *p) {
  double sum = 0;
  for (int i = 0; i < V; i++)
    sum += p[i] = in[i] ? exp(l[i] / temperature) : 0;
  for (int i = 0; i < V; i++)
    p[i] /= sum;
}

static void all_in(bool *in) {
  for (int i = 0; i < V; i++)
    in[i] = true;
}

/* how many of those that are in are better */
static int rank_of(const double *l, const bool *in, int k) {
  int n = 0;
  for (int i = 0; i < V; i++)
    n += in[i] && l[i] > l[k];
  return n;
}

static void model_top_k(const double *l, bool *in, int k) {
  bool was[V];
  memcpy(was, in, sizeof was);
  for (int i = 0; i < V; i++)
    in[i] = was[i] && rank_of(l, was, i) < k;
}

static void model_top_p(const double *l, bool *in, double top) {
  bool was[V];
  double p[V];
  memcpy(was, in, sizeof was);
  shares(l, was, 1, p);
  for (int i = 0; i < V; i++) {
    double before = 0;
    for (int j = 0; j < V; j++)
      if (was[j] && l[j] > l[i]) before += p[j];
    in[i] = was[i] && before < top;
  }
}

static void model_min_p(const double *l, bool *in, double least) {
  double p[V], most = 0;
  shares(l, in, 1, p);
  for (int i = 0; i < V; i++)
    most = fmax(most, p[i]);
  for (int i = 0; i < V; i++)
    in[i] = in[i] && p[i] >= least * most;
}

static void model_typical(const double *l, bool *in, double share) {
  bool was[V];
  double p[V], far[V], h = 0;
  memcpy(was, in, sizeof was);
  shares(l, was, 1, p);
  for (int i = 0; i < V; i++)
    if (was[i]) h -= p[i] * log(p[i]);
  for (int i = 0; i < V; i++)
    far[i] = was[i] ? fabs(-log(p[i]) - h) : INFINITY;
  for (int i = 0; i < V; i++) {
    double nearer = 0;
    for (int j = 0; j < V; j++)
      if (was[j] && far[j] < far[i]) nearer += p[j];
    in[i] = was[i] && nearer < share;
  }
}

/* The candidates are those of the model, the likeliest first, with its shares. */
static void same(int line, TgSampler *s, const float *logits, const double *l, const bool *in,
                 double temperature) {
  int32_t ids[V];
  double p[V], want[V];
  int count = 0;
  int64_t n = tg_sampler_candidates(s, logits, ids, p, V);
  shares(l, in, temperature, want);
  for (int i = 0; i < V; i++)
    count += in[i];
  if (n != count) fail_msg("line %d: %lld candidates, not %d (%s)", line, (long long)n, count, tg_errmsg(C));
  for (int64_t i = 0; i < n; i++)
    if (!in[ids[i]] || fabs(p[i] - want[ids[i]]) > 1e-6 || (i && p[i] > p[i - 1]))
      fail_msg("line %d: candidate %lld, token %d has %g, not %g", line, (long long)i, (int)ids[i], p[i],
               want[ids[i]]);
}

#define SAME(s, logits, l, in, t) same(__LINE__, s, logits, l, in, t)

/* nothing is left out but by what is written after it */
#define ALL_IN TG_WITH(TgSamplerOptions, .top_k = 0, .top_p = 1, .min_p = 0, .temperature = 1)

static TgSampler *open_with(TgSamplerOptions o) { return tg_sampler_new_opt(C, V, &o); }

static void doubles(const float *from, double *to) {
  for (int i = 0; i < V; i++)
    to[i] = (double)from[i];
}

static void test_cuts(void **state) {
  (void)state;
  for (int turn = 0; turn < 200; turn++) {
    float logits[V];
    double l[V], x = 0.05 + 0.9 * uniform(), t = 0.2 + 2 * uniform();
    bool in[V];
    int k = 1 + turn % V;
    random_logits(logits);
    doubles(logits, l);
    TgSamplerOptions o;
    TgSampler *s;
    o = ALL_IN;
    o.top_k = k;
    s = open_with(o);
    all_in(in), model_top_k(l, in, k);
    SAME(s, logits, l, in, 1);
    tg_sampler_free(s);
    o = ALL_IN;
    o.top_p = x;
    s = open_with(o);
    all_in(in), model_top_p(l, in, x);
    SAME(s, logits, l, in, 1);
    tg_sampler_free(s);
    o = ALL_IN;
    o.min_p = x;
    s = open_with(o);
    all_in(in), model_min_p(l, in, x);
    SAME(s, logits, l, in, 1);
    tg_sampler_free(s);
    o = ALL_IN;
    o.typical_p = x;
    s = open_with(o);
    all_in(in), model_typical(l, in, x);
    SAME(s, logits, l, in, 1);
    tg_sampler_free(s);
    s = tg_sampler_new(C, V, .top_k = k, .typical_p = 0.9, .top_p = x, .min_p = 0.02, .temperature = t);
    all_in(in), model_top_k(l, in, k), model_typical(l, in, 0.9), model_top_p(l, in, x),
        model_min_p(l, in, 0.02);
    SAME(s, logits, l, in, t);
    tg_sampler_free(s);
  }
}

static void test_penalties(void **state) {
  (void)state;
  static const int32_t ids[] = {3, 9};
  static const float bias[] = {2.5f, -INFINITY};
  for (int turn = 0; turn < 100; turn++) {
    float logits[V];
    double l[V];
    bool in[V];
    int last[8];
    random_logits(logits);
    doubles(logits, l);
    TgSamplerOptions o;
    TgSampler *s;
    o = ALL_IN;
    o.repeat_penalty = 1.3;
    o.presence_penalty = 0.4;
    o.frequency_penalty = 0.2;
    o.last = 8;
    o.bias_ids = ids;
    o.bias = bias;
    o.nbias = 2;
    s = open_with(o);
    for (int i = 0; i < 30; i++) {
      int id = (int)(12 * uniform());
      tg_sampler_accept(s, id);
      if (i >= 22) last[i - 22] = id;
    }
    l[3] += 2.5;
    for (int id = 0; id < V; id++) {
      int count = 0;
      for (int i = 0; i < 8; i++)
        count += last[i] == id;
      if (count) l[id] = (l[id] > 0 ? l[id] / 1.3 : l[id] * 1.3) - 0.4 - 0.2 * count;
    }
    int32_t out[V];
    double p[V], want[V];
    all_in(in);
    in[9] = false;
    shares(l, in, 1, want);
    assert_int_equal(tg_sampler_candidates(s, logits, out, p, V), V);
    for (int i = 0; i < V; i++)
      assert_true(fabs(p[i] - want[out[i]]) < 1e-6);
    tg_sampler_free(s);
  }
}

/* DRY by its definition: for each earlier place, how many tokens before it are as the last ones. */
static void test_dry(void **state) {
  (void)state;
  static const int32_t breakers[] = {4};
  for (int turn = 0; turn < 200; turn++) {
    float logits[V];
    double l[V];
    bool in[V];
    int text[60], n = 5 + turn % 50, longest[V] = {0};
    random_logits(logits);
    doubles(logits, l);
    TgSamplerOptions o;
    TgSampler *s;
    o = ALL_IN;
    o.dry_multiplier = 0.8;
    o.dry_base = 1.5;
    o.dry_allowed = 2;
    o.dry_last = 40;
    o.breakers = breakers;
    o.nbreakers = 1;
    s = open_with(o);
    for (int i = 0; i < n; i++) {
      text[i] = (int)(3 * uniform()) + (uniform() < 0.1 ? 2 : 0);
      tg_sampler_accept(s, text[i]);
    }
    int begin = n > 40 ? n - 40 : 0;
    for (int at = begin + 1; at < n; at++) {
      int m = 0;
      while (at - 1 - m >= begin && text[at - 1 - m] == text[n - 1 - m] && text[n - 1 - m] != 4)
        m++;
      if (m > longest[text[at]]) longest[text[at]] = m;
    }
    for (int id = 0; id < V; id++)
      if (longest[id] >= 2) l[id] -= 0.8 * pow(1.5, longest[id] - 2);
    all_in(in);
    SAME(s, logits, l, in, 1);
    tg_sampler_free(s);
  }
}

static void test_draws(void **state) {
  (void)state;
  float logits[V];
  double l[V], p[V];
  bool in[V];
  int count[V] = {0}, first[64];
  random_logits(logits);
  doubles(logits, l);
  all_in(in), model_top_k(l, in, 5);
  shares(l, in, 0.7, p);
  TgSamplerOptions o;
  TgSampler *s;
  o = ALL_IN;
  o.top_k = 5;
  o.temperature = 0.7;
  o.seed = 11;
  s = open_with(o);
  for (int i = 0; i < 20000; i++) {
    int64_t id = tg_sampler_pick(s, logits);
    count[id]++;
    if (i < 64) first[i] = (int)id;
  }
  for (int i = 0; i < V; i++) /* five deviations */
    assert_true(fabs(count[i] - 20000 * p[i]) <= 5 * sqrt(20000 * p[i] * (1 - p[i])) + 1e-9);
  tg_sampler_reset(s, 11);
  for (int i = 0; i < 64; i++)
    assert_int_equal(tg_sampler_pick(s, logits), first[i]);
  tg_sampler_reset(s, 12);
  int equal = 0;
  for (int i = 0; i < 64; i++)
    equal += tg_sampler_pick(s, logits) == first[i];
  assert_true(equal < 60);
  tg_sampler_free(s);
}

static void test_greedy(void **state) {
  (void)state;
  float logits[V] = {0};
  TgSampler *s = tg_sampler_new(C, V, .temperature = 0);
  assert_int_equal(tg_sampler_pick(s, logits), 0); /* of equal ones the first */
  logits[30] = 1, logits[31] = 1, logits[2] = NAN;
  assert_int_equal(tg_sampler_pick(s, logits), 30);
  for (int i = 0; i < V; i++)
    logits[i] = NAN;
  assert_int_equal(tg_sampler_pick(s, logits), -1);
  assert_int_equal(tg_error(C), TG_ERR_VALUE);
  tg_clear_error(C);
  tg_sampler_free(s);
}

static void test_refused(void **state) {
  (void)state;
  static const int32_t far[] = {V};
  static const float bias[] = {1};
  TgSampler *s[] = {tg_sampler_new(C, 0),
                    tg_sampler_new(C, V, .temperature = -1),
                    tg_sampler_new(C, V, .top_p = 1.5),
                    tg_sampler_new(C, V, .repeat_penalty = 0),
                    tg_sampler_new(C, V, .temperature = NAN),
                    tg_sampler_new(C, V, .bias_ids = far, .bias = bias, .nbias = 1),
                    tg_sampler_new(C, V, .nbias = 1)};
  for (size_t i = 0; i < sizeof s / sizeof *s; i++)
    assert_null(s[i]);
  assert_int_equal(tg_error(C), TG_ERR_VALUE);
  tg_clear_error(C);
  tg_sampler_free(NULL);
}

/* The likeliest first, of equal ones the first id, whether few of many are asked for, many or all. */
static void test_order(void **state) {
  (void)state;

  enum { MANY = 5000 };

  static float logits[MANY];
  static int32_t ids[3][MANY];
  const int64_t k[3] = {0, MANY - 1, 100};
  for (int i = 0; i < MANY; i++)
    logits[i] = i % 7 == 3 ? 0.0f : i % 7 == 5 ? -0.0f : (float)floor(400 * uniform() - 200) / 8;
  logits[17] = NAN, logits[18] = -INFINITY, logits[19] = 1e30f, logits[20] = 1e-40f;
  for (int i = 0; i < 3; i++) {
    TgSampler *s = tg_sampler_new(C, MANY, .top_k = k[i], .top_p = 1, .min_p = 0, .temperature = 1);
    int64_t n = tg_sampler_candidates(s, logits, ids[i], NULL, MANY);
    assert_int_equal(n, k[i] ? k[i] : MANY);
    for (int64_t j = 1; j < n; j++) {
      float a = logits[ids[i][j - 1]], b = logits[ids[i][j]];
      bool last = b != b || b == -INFINITY;
      if (!(last ? a != a || a >= -INFINITY : a > b || (a == b && ids[i][j - 1] < ids[i][j])))
        fail_msg("place %lld of %lld: %d with %g before %d with %g", (long long)j, (long long)n,
                 (int)ids[i][j - 1], (double)a, (int)ids[i][j], (double)b);
    }
    assert_memory_equal(ids[i], ids[0], (size_t)n * sizeof **ids);
    tg_sampler_free(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cuts),  cmocka_unit_test(test_penalties), cmocka_unit_test(test_dry),
      cmocka_unit_test(test_draws), cmocka_unit_test(test_greedy),    cmocka_unit_test(test_refused),
      cmocka_unit_test(test_order),
  };
  return cmocka_run_group_tests(tests, open_it, close_it);
}
