/* run.c: a model at work. In: ids of tokens. Out: logits, or a text's direction. A step is a captured program
 * with the position as its variable, of 1 token or of a block of them; what a block has too few tokens for is
 * written behind the context and overwritten by the next step. A step of several sequences has positions and
 * sequences as its inputs. */
#include "model_private.h"
#include <math.h>

/* The parts of a step, one after the other; hidden: NULL, or where the tokens (n, width) go in place of
 * logits. */
static bool parts_run(TgLlm *m, LlmStep *s, int32_t last, float *hidden) {
  TgTensor *wanted = s->n > 1 && !hidden ? tg_from(m->ctx, &last, TG_I32, TG_SHAPE(1)) : NULL;
  TgTensor *x = tg_from(m->ctx, m->wanted, TG_I32, TG_SHAPE(s->n));
  for (int64_t i = 0; i < s->nparts; i++) {
    TgTensor *in[] = {x, wanted};
    bool ends = i == s->nparts - 1;
    TgJit *jit = ends && hidden ? s->hidden.jit : s->part[i].jit;
    if (tg_cancelled(m->ctx) || tg_jit_run(jit, in, wanted && ends ? 2 : 1, &x, 1)) return false;
  }
  if (hidden) return !tg_read(x, hidden, (size_t)(s->n * m->k.width) * sizeof *hidden);
  return !tg_read(x, m->now->logits, (size_t)m->k.vocabulary * sizeof *m->now->logits);
}

/* One step on `count` tokens (the rest of its block is filled up with the last). */
static bool step_run(TgLlm *m, LlmStep *s, const int32_t *ids, int64_t count, float *hidden) {
  bool ok = false;
  for (int64_t i = 0; i < s->n; i++)
    m->wanted[i] = ids[i < count ? i : count - 1];
  if (tg_variable_bind(m->position, m->now->nids)) return false;
  if (m->which && tg_variable_bind(m->which, m->now - m->sequence)) return false;
  TG_SCOPE(m->ctx) { ok = parts_run(m, s, (int32_t)count - 1, hidden); }
  if (!ok) return false;
  LlmSequence *now = m->now;
  memcpy(now->ids + now->nids, ids, (size_t)count * sizeof *ids);
  if (now->settled == now->nids && count == m->block) now->settled += count;
  now->nids += count;
  return true;
}

/* The largest program that these tokens fill, or the smallest that they fit into where they fill half of it.
 */
static LlmStep *step_for(TgLlm *m, int64_t count) {
  for (int i = 0; i < m->nsteps; i++)
    if (count >= m->step[i].n || (count > m->step[i].n / 2 && m->step[i].n > 1)) return &m->step[i];
  return &m->step[m->nsteps - 1];
}

/* Whether these tokens can follow in a sequence; else an error. */
static bool follows(TgLlm *m, const LlmSequence *s, const char *what, const int32_t *ids, int64_t n) {
  if (n < 1 || !ids) return llm_fail(m->ctx, TG_ERR_VALUE, "%s: no tokens", what);
  if (n > m->context && !s->nids)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "%s: %lld tokens are more than the context of %lld", what,
                    (long long)n, (long long)m->context);
  if (n > m->context - s->nids)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "%s: %lld tokens after %lld are more than the context of %lld",
                    what, (long long)n, (long long)s->nids, (long long)m->context);
  for (int64_t i = 0; i < n; i++)
    if (ids[i] < 0 || ids[i] >= m->k.vocabulary)
      return llm_fail(m->ctx, TG_ERR_VALUE, "%s: token %d of %lld", what, (int)ids[i],
                      (long long)m->k.vocabulary);
  return true;
}

TgStatus tg_llm_eval(TgLlm *m, const int32_t *ids, int64_t n) {
  if (!m) return TG_ERR_NOMEM;
  if (!llm_generates(m, "llm_eval")) return tg_error(m->ctx);
  if (!follows(m, m->now, "llm_eval", ids, n)) return tg_error(m->ctx);
  for (int64_t at = 0; at < n;) {
    LlmStep *s = step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    if (!step_run(m, s, ids + at, count, NULL)) return tg_error(m->ctx);
    at += count;
  }
  m->now->has_logits = true;
  return TG_OK;
}

/* ---- the next tokens of several sequences */
typedef struct Batch {
  int32_t *ids, *at, *which; /* rows of the step */
} Batch;

/* How much of the cache a step on `count` sequences sees: what the longest has, in whole REACH_STEPs. */
static int64_t reach_of(const TgLlm *m, const int32_t *sequences, int64_t count) {
  int64_t most = 0;
  for (int64_t i = 0; i < count; i++)
    if (m->sequence[sequences[i]].nids > most) most = m->sequence[sequences[i]].nids;
  return (most / REACH_STEP + 1) * REACH_STEP;
}

/* One step on `count` sequences; rows that are left write behind the context, and nobody reads them. */
static bool several_rows(TgLlm *m, LlmStep *s, const int32_t *sequences, const int32_t *ids, int64_t count,
                         Batch b) {
  int64_t reach = reach_of(m, sequences, count);
  for (int64_t i = 0; i < s->n; i++) {
    bool there = i < count;
    b.which[i] = there ? sequences[i] : 0;
    b.ids[i] = there ? ids[i] : 0;
    b.at[i] = (int32_t)(there ? m->sequence[sequences[i]].nids : m->context);
  }
  if (tg_variable_bind(m->reach, reach)) return false;
  TgTensor *x = tg_from(m->ctx, b.ids, TG_I32, TG_SHAPE(s->n));
  TgTensor *at = tg_from(m->ctx, b.at, TG_I32, TG_SHAPE(s->n));
  TgTensor *which = tg_from(m->ctx, b.which, TG_I32, TG_SHAPE(s->n));
  for (int64_t i = 0; i < s->nparts; i++) {
    TgTensor *in[] = {x, at, which};
    if (tg_cancelled(m->ctx) || tg_jit_run(s->part[i].jit, in, 3, &x, 1)) return false;
  }
  return !tg_read(x, m->batch_logits, (size_t)(s->n * m->k.vocabulary) * sizeof *m->batch_logits);
}

/* The program with the fewest rows that so many fit into. */
static LlmStep *several_for(TgLlm *m, int64_t count) {
  LlmStep *best = &m->several[0];
  for (int i = 1; i < m->nseveral && m->several[i].n >= count; i++)
    if (!m->several[i].differs) best = &m->several[i];
  return best;
}

/* What a sequence computes must not depend on how many are beside it. Programs of fewer rows have the same
 * sums, but the compiler chose their order; so the first time that one runs with a reach, the largest does
 * too, and where a bit of its logits is another one it is not used again: what it has said so far was the
 * same. Each has a scope of its own, because handles of the first that read the cache would have it copied
 * before the second writes to it. */
static bool several_step(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t count, Batch b) {
  LlmStep *s = several_for(m, count), *largest = &m->several[0];
  bool *agrees = &s->agrees[reach_of(m, sequences, count) / REACH_STEP];
  bool ok = false;
  TG_SCOPE(m->ctx) { ok = several_rows(m, s, sequences, ids, count, b); }
  if (!ok || s == largest || *agrees) return ok;

  size_t nbytes = (size_t)(count * m->k.vocabulary) * sizeof *m->batch_logits;
  float *first = tg_alloc(m->ctx, nbytes);
  if (first) memcpy(first, m->batch_logits, nbytes);
  ok = false;
  if (first) TG_SCOPE(m->ctx) {
      ok = several_rows(m, largest, sequences, ids, count, b);
    }
  *agrees = ok && !memcmp(first, m->batch_logits, nbytes);
  s->differs = ok && !*agrees;
  tg_free(m->ctx, first);
  return ok;
}

static void several_done(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t count) {
  size_t v = (size_t)m->k.vocabulary;
  for (int64_t i = 0; i < count; i++) {
    LlmSequence *s = &m->sequence[sequences[i]];
    s->ids[s->nids++] = ids[i];
    memcpy(s->logits, m->batch_logits + (size_t)i * v, v * sizeof *s->logits);
    s->has_logits = true;
  }
}

static bool several_fit(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n) {
  if (!llm_generates(m, "llm_eval_many")) return false;
  if (!m->batch) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: the model was opened without a batch");
  if (n < 1 || !sequences || !ids) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: no tokens");
  for (int64_t i = 0; i < n; i++) {
    if (sequences[i] < 0 || sequences[i] >= m->sequences)
      return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: sequence %d of %lld", (int)sequences[i],
                      (long long)m->sequences);
    for (int64_t k = 0; k < i; k++)
      if (sequences[k] == sequences[i])
        return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: sequence %d twice", (int)sequences[i]);
    if (!follows(m, &m->sequence[sequences[i]], "llm_eval_many", ids + i, 1)) return false;
  }
  return true;
}

TgStatus tg_llm_eval_many(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n) {
  if (!m) return TG_ERR_NOMEM;
  if (!several_fit(m, sequences, ids, n)) return tg_error(m->ctx);
  int32_t *rows = tg_alloc(m->ctx, 3 * (size_t)m->batch * sizeof *rows);
  bool ok = rows != NULL;
  for (int64_t at = 0; ok && at < n; at += m->batch) {
    int64_t count = n - at < m->batch ? n - at : m->batch;
    Batch b = {rows, rows + m->batch, rows + 2 * m->batch};
    ok = several_step(m, sequences + at, ids + at, count, b);
    if (ok) several_done(m, sequences + at, ids + at, count);
  }
  tg_free(m->ctx, rows);
  return ok ? TG_OK : tg_error(m->ctx);
}

/* ---- embeddings, and what an encoder says */
/* A text that an encoder reads as a whole: the smallest program that it fits into, filled up with its last
 * token, which nobody sees. second: where the second of two texts begins. */
static bool whole_run(TgLlm *m, const int32_t *ids, int64_t n, int64_t second, float *out) {
  LlmStep *s = &m->step[m->nsteps - 1];
  while (s->n < n)
    s--;
  for (int64_t i = 0; i < s->n; i++)
    m->wanted[i] = ids[i < n ? i : n - 1];
  bool ok = false;
  TG_SCOPE(m->ctx) {
    TgTensor *x = tg_from(m->ctx, m->wanted, TG_I32, TG_SHAPE(s->n));
    TgTensor *extent = tg_from(m->ctx, (int32_t[]){(int32_t)n, (int32_t)second}, TG_I32, TG_SHAPE(2));
    ok = x && extent;
    for (int64_t i = 0; ok && i < s->nparts; i++)
      ok = !tg_cancelled(m->ctx) && !tg_jit_run(s->part[i].jit, (TgTensor *[]){x, extent}, 2, &x, 1);
    ok = ok && !tg_read(x, out, tg_nbytes(x));
  }
  return ok;
}

/* To sum what pooling takes of rows at .. at + count - 1 of n. */
static void pooled(const TgLlm *m, const float *rows, int64_t at, int64_t count, int64_t n, double *sum) {
  int64_t width = m->k.width;
  for (int64_t i = 0; i < count; i++) {
    bool first = at + i == 0, last = at + i == n - 1;
    if (!(m->k.pooling == POOL_MEAN || (m->k.pooling == POOL_FIRST ? first : last))) continue;
    for (int64_t j = 0; j < width; j++)
      sum[j] += (double)rows[i * width + j];
  }
}

static bool embedded(TgLlm *m, const int32_t *ids, int64_t n, float *rows, double *sum) {
  if (m->arch->encoder) {
    if (!whole_run(m, ids, n, n, rows)) return false;
    pooled(m, rows, 0, n, n, sum);
    return true;
  }
  for (int64_t at = 0; at < n;) {
    LlmStep *s = step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    if (!step_run(m, s, ids + at, count, rows)) return false;
    pooled(m, rows, at, count, n, sum);
    at += count;
  }
  return true;
}

static bool can_embed(TgLlm *m) {
  if (m->k.pooling == POOL_RANK)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_embed: the model is a reranker (llm_rank)");
  return m->k.pooling != POOL_NONE ||
         llm_fail(m->ctx, TG_ERR_VALUE,
                  "llm_embed: %s.pooling_type is 0: say what a text's tokens become (.pooling)",
                  m->architecture);
}

/* What an encoder does to the vector that pooling gave: two products. */
static bool behind_pooling(TgLlm *m, double *sum) {
  int64_t width = m->k.width;
  float *v = m->dense_in ? tg_alloc(m->ctx, (size_t)width * sizeof *v) : NULL;
  bool ok = false;
  if (!m->dense_in) return true;
  for (int64_t i = 0; v && i < width; i++)
    v[i] = (float)sum[i];
  if (v) TG_SCOPE(m->ctx) {
      TgTensor *x = tg_from(m->ctx, v, TG_F32, TG_SHAPE(1, width));
      x = tg_linear(tg_linear(x, tg_cast(m->dense_in, TG_F32), NULL), tg_cast(m->dense_out, TG_F32), NULL);
      ok = !tg_read(x, v, (size_t)width * sizeof *v);
    }
  for (int64_t i = 0; ok && i < width; i++)
    sum[i] = (double)v[i];
  tg_free(m->ctx, v);
  return ok;
}

TgStatus tg_llm_embed(TgLlm *m, const int32_t *ids, int64_t n, float *out) {
  if (!m) return TG_ERR_NOMEM;
  if (!out) return tg_set_error(m->ctx, TG_ERR_VALUE, "llm_embed: nowhere to write to");
  if (!can_embed(m) || tg_llm_rewind(m, 0) || !follows(m, m->now, "llm_embed", ids, n))
    return tg_error(m->ctx);
  double *sum = tg_alloc(m->ctx, (size_t)m->k.width * sizeof *sum), length = 0;
  float *rows = tg_alloc(m->ctx, (size_t)(m->block * m->k.width) * sizeof *rows);
  bool ok = sum && rows && embedded(m, ids, n, rows, sum) && behind_pooling(m, sum);
  for (int64_t i = 0; ok && i < m->k.width; i++)
    length += sum[i] * sum[i];
  if (ok && !isfinite(length)) ok = llm_fail(m->ctx, TG_ERR_VALUE, "llm_embed: the vector is not finite");
  for (int64_t i = 0; ok && i < m->k.width; i++)
    out[i] = (float)(length > 0 ? sum[i] / sqrt(length) : 0);
  tg_free(m->ctx, sum), tg_free(m->ctx, rows);
  m->now->has_logits = false;
  return ok ? TG_OK : tg_error(m->ctx);
}

/* A text behind *n ids, without what begins and ends it; then *n are there, or would be. */
static bool text_put(TgLlm *m, const char *text, size_t nbytes, int32_t *ids, int64_t *n) {
  int64_t room = m->context > *n ? m->context - *n : 0;
  int64_t count = tg_tokenize(m->tokenizer, text, nbytes, ids + m->context - room, (size_t)room);
  *n += count;
  return count >= 0;
}

static void token_put(TgLlm *m, int32_t id, int32_t *ids, int64_t *n) {
  if (id >= 0 && *n < m->context) ids[*n] = id;
  *n += id >= 0;
}

/* Both texts with what stands between them: BERT's words have one token there, the others two. */
static bool pair_ids(TgLlm *m, const char *query, size_t nquery, const char *document, size_t ndocument,
                     int32_t *ids, int64_t *n, int64_t *second) {
  const TgTokenizer *t = m->tokenizer;
  token_put(m, t->bos, ids, n);
  if (!text_put(m, query, nquery, ids, n)) return false;
  token_put(m, t->eos, ids, n);
  *second = *n;
  if (t->kind != LLM_WORDS) token_put(m, t->eos, ids, n);
  if (!text_put(m, document, ndocument, ids, n)) return false;
  token_put(m, t->eos, ids, n);
  return *n <= m->context ||
         llm_fail(m->ctx, TG_ERR_LIMIT,
                  "llm_rank: a query and a document of %lld tokens are more than the context of %lld",
                  (long long)*n, (long long)m->context);
}

TgStatus tg_llm_rank(TgLlm *m, const char *query, size_t nquery, const char *document, size_t ndocument,
                     float *score, int64_t *tokens) {
  if (!m) return TG_ERR_NOMEM;
  if (m->k.pooling != POOL_RANK || !m->tokenizer || !query || !document || !score)
    return tg_set_error(m->ctx, TG_ERR_VALUE,
                        m->k.pooling != POOL_RANK ? "llm_rank: the model is no reranker"
                        : m->tokenizer            ? "llm_rank: a query, a document and a place for the score"
                                                  : "llm_rank: the model has no tokenizer");
  int64_t n = 0, second = 0;
  int32_t *ids = tg_alloc(m->ctx, (size_t)m->context * sizeof *ids);
  bool ok = ids && pair_ids(m, query, nquery, document, ndocument, ids, &n, &second) &&
            whole_run(m, ids, n, second, score);
  tg_free(m->ctx, ids);
  if (tokens) *tokens = n;
  return ok ? TG_OK : tg_error(m->ctx);
}

TgStatus tg_llm_use(TgLlm *m, int64_t sequence) {
  if (!m) return TG_ERR_NOMEM;
  if (sequence < 0 || sequence >= m->sequences) {
    llm_fail(m->ctx, TG_ERR_VALUE, "llm_use: sequence %lld of %lld", (long long)sequence,
             (long long)m->sequences);
    return TG_ERR_VALUE;
  }
  m->now = &m->sequence[sequence];
  return TG_OK;
}

/* Of the first `length` tokens those that are settled. */
static int64_t blocks_within(const TgLlm *m, const LlmSequence *s, int64_t length) {
  int64_t most = s->settled < length ? s->settled : length;
  return most - most % m->block;
}

TgStatus tg_llm_copy(TgLlm *m, int64_t from, int64_t length) {
  if (!m) return TG_ERR_NOMEM;
  if (from < 0 || from >= m->sequences || length < 0 || length > m->sequence[from].nids) {
    llm_fail(m->ctx, TG_ERR_VALUE, "llm_copy: %lld tokens of sequence %lld of %lld", (long long)length,
             (long long)from, (long long)m->sequences);
    return TG_ERR_VALUE;
  }
  const LlmSequence *source = &m->sequence[from];
  if (source == m->now) return tg_llm_rewind(m, length);
  if (tg_variable_bind(m->which, m->now - m->sequence) || tg_variable_bind(m->other, from))
    return tg_error(m->ctx);
  m->now->nids = m->now->settled = 0; /* what fails has written some of it */
  m->now->has_logits = false;
  if (length && (tg_variable_bind(m->length, length) || tg_jit_run(m->copy, NULL, 0, NULL, 0)))
    return tg_error(m->ctx);
  memcpy(m->now->ids, source->ids, (size_t)length * sizeof *source->ids);
  m->now->nids = length;
  m->now->settled = blocks_within(m, source, length);
  return TG_OK;
}

TgStatus tg_llm_rewind(TgLlm *m, int64_t length) {
  if (!m) return TG_ERR_NOMEM;
  if (length < 0 || length > m->now->nids) {
    llm_fail(m->ctx, TG_ERR_VALUE, "llm_rewind: to %lld of %lld", (long long)length, (long long)m->now->nids);
    return TG_ERR_VALUE;
  }
  if (length < m->now->nids) m->now->has_logits = false;
  m->now->settled = blocks_within(m, m->now, length);
  m->now->nids = length;
  return TG_OK;
}
