/* rope.c: how positions rotate queries and keys, or what they subtract from their product. In: base, scaling
 * and factors of the file. Out: two tables with a row for each position. Element i of a head and its partner
 * rotate by position * frequency. A scaling lowers the frequencies, so that positions beyond those of the
 * training rotate only as far as the positions of the training. The tables are computed here once, in
 * double. */
#include "model_private.h"
#include <math.h>
#include <stdio.h>

typedef struct Rope {
  double base, factor, original, attention; /* attention: a factor on cos and sin */
  double fast, slow, amount, whole;         /* of YaRN; whole: the ramp ends at whole frequencies */
  char type[16];
  const float *divisor; /* of each frequency; NULL: none */
} Rope;

static bool real_of(TgLlm *m, const char *key, double fallback, double *out) {
  char name[128];
  snprintf(name, sizeof name, "%.60s.rope.%.50s", m->architecture, key);
  if (!llm_kv_real(m->ctx, m->gguf, name, fallback, out)) return false;
  return isfinite(*out) || llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is not finite", name);
}

static bool known_type(const char *type) {
  static const char *const types[] = {"none", "linear", "ntk", "yarn", "longrope"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (!strcmp(types[i], type)) return true;
  return false;
}

static bool rope_read(TgLlm *m, Rope *r) {
  char name[128];
  const char *type;
  snprintf(name, sizeof name, "%.60s.rope.scaling.type", m->architecture);
  if (!llm_kv_text(m->ctx, m->gguf, name, &type)) return false;
  if (!type) type = "none";
  snprintf(r->type, sizeof r->type, "%.15s", type);
  if (!known_type(type))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s is '%.30s', which is not known here", name, type);
  bool ok = real_of(m, "freq_base", 10000, &r->base) && real_of(m, "scaling.factor", 1, &r->factor) &&
            real_of(m, "scaling.original_context_length", (double)m->k.trained, &r->original) &&
            real_of(m, "scaling.attn_factor", 1, &r->attention) &&
            real_of(m, "scaling.yarn_ext_factor", 1, &r->amount) &&
            real_of(m, "scaling.yarn_truncate", 1, &r->whole) &&
            real_of(m, "scaling.yarn_beta_fast", 32, &r->fast) &&
            real_of(m, "scaling.yarn_beta_slow", 1, &r->slow);
  if (!ok) return false;
  if (!(r->base > 1) || !(r->factor > 0) || !(r->original > 0) || !(r->fast > 0) || !(r->slow > 0))
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s.rope: base %g, factor %g, context %g", m->architecture,
                    r->base, r->factor, r->original);
  return true;
}

/* YaRN: the share of a frequency that keeps its own rotation. It is 1 for a frequency that rotates many times
 * within the context of the training and 0 for one that rotates less than once. */
static double yarn_share(const Rope *r, int64_t rotary, int64_t i) {
  double log_base = 2 * log(r->base), n = (double)rotary;
  double low = n * log(r->original / (r->fast * 2 * M_PI)) / log_base;
  double high = n * log(r->original / (r->slow * 2 * M_PI)) / log_base;
  low = fmax(r->whole != 0 ? floor(low) : low, 0);
  high = fmin(r->whole != 0 ? ceil(high) : high, n - 1);
  double ramp = ((double)i - low) / fmax(0.001, high - low);
  return (1 - fmin(1, fmax(0, ramp))) * r->amount;
}

static double frequency(const Rope *r, int64_t rotary, int64_t i) {
  double base = r->base, n = (double)rotary;
  if (!strcmp(r->type, "ntk") && rotary > 2) base *= pow(r->factor, n / (n - 2));
  double own = pow(base, -2 * (double)i / n);
  if (r->divisor) own /= (double)r->divisor[i];
  if (!strcmp(r->type, "linear")) return own / r->factor;
  if (strcmp(r->type, "yarn")) return own;
  double share = yarn_share(r, rotary, i);
  return own / r->factor * (1 - share) + own * share;
}

/* Makes a row for each position: halves [c c], [-s s]; pairs [c0 c0 c1 c1 ..], [-s0 s0 ..]. */
static bool rotation_make(TgLlm *m, const Rope *r, LlmRotation *to) {
  int64_t half = m->k.rotary / 2, n = m->k.rotary;
  size_t bytes = (size_t)(m->room * n) * sizeof(float);
  float *c = tg_alloc(m->ctx, bytes), *s = c ? tg_alloc(m->ctx, bytes) : NULL;
  for (int64_t i = 0; s && i < half; i++) {
    double f = frequency(r, n, i);
    int64_t first = m->rope == ROPE_PAIRS ? 2 * i : i;
    int64_t second = m->rope == ROPE_PAIRS ? first + 1 : i + half;
    for (int64_t p = 0; p < m->room; p++) {
      float cosine = (float)(cos((double)p * f) * r->attention),
            sine = (float)(sin((double)p * f) * r->attention);
      c[p * n + first] = c[p * n + second] = cosine;
      s[p * n + first] = -sine;
      s[p * n + second] = sine;
    }
  }
  if (s) {
    to->cos = tg_keep(tg_from(m->ctx, c, TG_F32, TG_SHAPE(m->room, n)));
    to->sin = tg_keep(tg_from(m->ctx, s, TG_F32, TG_SHAPE(m->room, n)));
  }
  tg_free(m->ctx, c), tg_free(m->ctx, s);
  return to->cos && to->sin;
}

/* Reads the divisors of the file: Llama 3's, or one of two lists, by the length of the context. */
static bool divisors_read(TgLlm *m, Rope *r, float **own) {
  bool beyond = (double)m->context > r->original;
  TgTensor *t = m->rope_long ? (beyond ? m->rope_long : m->rope_short) : m->rope_factors;
  if (!t) return true;
  int64_t n = m->k.rotary / 2;
  if (!(*own = tg_alloc(m->ctx, (size_t)n * sizeof **own))) return false;
  if (tg_read(tg_cast(t, TG_F32), *own, (size_t)n * sizeof **own)) return false;
  for (int64_t i = 0; i < n; i++)
    if (!((*own)[i] > 0))
      return llm_fail(m->ctx, TG_ERR_VALUE, "llm: factor %lld of the turning is %g", (long long)i,
                      (double)(*own)[i]);
  r->divisor = *own;
  return true;
}

/* YaRN scales queries and keys, because their positions are nearer to each other. With latent attention only
 * a part of a query and a key rotates, so their product is scaled instead. */
static bool yarn_scale(TgLlm *m, Rope *r) {
  double by = 0;
  if (!real_of(m, "scaling.yarn_log_multiplier", 0, &by)) return false;
  bool yarn = !strcmp(r->type, "yarn") && r->factor > 1;
  if (!m->k.kv_rank && by != 0)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s.rope.scaling.yarn_log_multiplier is not known here",
                    m->architecture);
  if (m->k.kv_rank && yarn && by == 0)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm: the file has no %s.rope.scaling.yarn_log_multiplier",
                    m->architecture);
  double mscale = 1 + (m->k.kv_rank ? by : 0.1) * log(r->factor);
  if (yarn && m->k.kv_rank)
    m->k.scale *= mscale * mscale;
  else if (yarn)
    r->attention *= mscale;
  return true;
}

bool llm_rotations_make(TgLlm *m) {
  if (m->rope == ROPE_NONE) return true;
  Rope r = {.divisor = NULL};
  float *own = NULL;
  bool ok = rope_read(m, &r) && yarn_scale(m, &r) && divisors_read(m, &r, &own);
  ok = ok && rotation_make(m, &r, &m->rotation);
  double base = m->arch->local_base;
  ok = ok && real_of(m, "freq_base_swa", base, &base);
  if (ok && base > 0 && !(base > 1))
    ok = llm_fail(m->ctx, TG_ERR_VALUE, "llm: %s.rope.freq_base_swa is %g", m->architecture, base);
  if (ok && base > 0) {
    Rope local = {.base = base, .factor = 1, .attention = 1, .type = "none"};
    ok = rotation_make(m, &local, &m->local_rotation);
  }
  tg_free(m->ctx, own);
  return ok;
}

/* ALiBi's slopes: the first heads, up to a power of 2, take consecutive slopes; the remaining heads take the
 * slopes between them. */
bool llm_slopes_make(TgLlm *m) {
  enum { MOST_HEADS = 4096 };

  float slope[MOST_HEADS];
  int64_t heads = m->k.heads, even = 1;
  if (!(m->k.alibi > 0)) return true;
  while (2 * even <= heads)
    even *= 2;
  for (int64_t i = 0; i < heads; i++) {
    double place = i < even ? (double)(i + 1) : (double)(i - even) + 0.5;
    slope[i] = (float)pow(2, -m->k.alibi * place / (double)even);
  }
  return (m->slopes = tg_keep(tg_from(m->ctx, slope, TG_F32, TG_SHAPE(heads)))) != NULL;
}
