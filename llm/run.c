/* run.c: running a model. In: ids of tokens. Out: logits, or a text's vector. A step is a captured program of
 * 1 token or of a block of tokens, with the position as its variable. If a block has fewer tokens, the rest
 * of it is written after the tokens and overwritten by the next step. A step of several sequences takes
 * positions and sequences as inputs. */
#include "model_private.h"
#include <math.h>

/* Runs the parts of a step in turn. rows: the vectors (n, width) that it begins with; NULL: it begins with the ids
 * m->wanted. last: the index of the token whose logits are wanted. hidden: receives the tokens (n, width) in place
 * of logits; NULL: logits. */
static bool parts_run(TgLlm *m, LlmStep *s, const float *rows, int32_t last, float *hidden) {
  TgTensor *wanted = s->n > 1 && !hidden ? tg_from(m->ctx, &last, TG_I32, TG_SHAPE(1)) : NULL;
  TgTensor *x = rows ? tg_from(m->ctx, rows, TG_F32, TG_SHAPE(s->n, m->k.width))
                     : tg_from(m->ctx, m->wanted, TG_I32, TG_SHAPE(s->n));
  for (int64_t i = 0; i < s->nparts; i++) {
    TgTensor *in[] = {x, wanted};
    bool ends = i == s->nparts - 1, given = rows && i == 0 && s->given.jit;
    TgJit *jit = ends && hidden ? s->hidden.jit : given ? s->given.jit : s->part[i].jit;
    if (tg_cancelled(m->ctx) || tg_jit_run(jit, in, wanted && ends ? 2 : 1, &x, 1)) return false;
  }
  if (hidden) return !tg_read(x, hidden, (size_t)(s->n * m->k.width) * sizeof *hidden);
  return !tg_read(x, m->now->logits, (size_t)m->k.vocabulary * sizeof *m->now->logits);
}

bool llm_step_run(TgLlm *m, LlmStep *s, const float *rows, const int32_t *ids, int64_t count, float *hidden) {
  LlmSequence *now = m->now;
  bool ok = false;
  if (tg_variable_bind(s == &m->mutual ? m->mutual_at : m->position, now->nids)) return false;
  if (m->which && tg_variable_bind(m->which, now - m->sequence)) return false;
  TG_SCOPE(m->ctx) { ok = parts_run(m, s, rows, (int32_t)count - 1, hidden); }
  if (!ok) return false;
  memcpy(now->ids + now->nids, ids, (size_t)count * sizeof *ids);
  if (now->settled == now->nids && count == m->block) now->settled += count;
  now->nids += count;
  return true;
}

/* Runs one step on `count` tokens. The last token fills the remaining rows of its block. */
static bool ids_run(TgLlm *m, LlmStep *s, const int32_t *ids, int64_t count, float *hidden) {
  for (int64_t i = 0; i < s->n; i++)
    m->wanted[i] = ids[i < count ? i : count - 1];
  return llm_step_run(m, s, NULL, ids, count, hidden);
}

LlmStep *llm_step_for(TgLlm *m, int64_t count) {
  for (int i = 0; i < m->nsteps; i++)
    if (count >= m->step[i].n || (count > m->step[i].n / 2 && m->step[i].n > 1)) return &m->step[i];
  return &m->step[m->nsteps - 1];
}

/* Whether these tokens can follow in a sequence; otherwise an error. */
static bool follows(TgLlm *m, const LlmSequence *s, const char *what, const int32_t *ids, int64_t n) {
  int64_t before = s->nids + s->ahead;
  if (n < 1 || !ids) return llm_fail(m->ctx, TG_ERR_VALUE, "%s: no tokens", what);
  if (n > m->context && !before)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "%s: %lld tokens are more than the context of %lld", what,
                    (long long)n, (long long)m->context);
  if (n > m->context - before)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "%s: %lld tokens after %lld are more than the context of %lld",
                    what, (long long)n, (long long)before, (long long)m->context);
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
    LlmStep *s = llm_step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    if (!ids_run(m, s, ids + at, count, NULL)) return tg_error(m->ctx);
    at += count;
  }
  m->now->has_logits = true;
  return TG_OK;
}

/* ---- the next tokens of several sequences, or several of one */
typedef struct Batch {
  const int32_t *sequences, *given; /* the caller's `count` rows */
  int64_t count;
  int32_t *ids, *at, *which; /* rows of the step */
  float *logits;             /* (rows of the step, vocabulary): the results */
} Batch;

/* Clears the counts of rows that are not in the caches yet. */
static void ahead_clear(TgLlm *m, const int32_t *sequences, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (sequences[i] >= 0 && sequences[i] < m->sequences) m->sequence[sequences[i]].ahead = 0;
}

/* Finds the place of each row in its text: after the earlier rows of the same text. */
static void places_find(TgLlm *m, Batch b) {
  for (int64_t i = 0; i < b.count; i++) {
    LlmSequence *s = &m->sequence[b.sequences[i]];
    b.at[i] = (int32_t)(s->nids + s->ahead++);
  }
  ahead_clear(m, b.sequences, b.count);
}

/* The part of the cache that a step reads: the length of its longest text, rounded up to whole
 * REACH_STEPs. */
static int64_t reach_of(Batch b) {
  int64_t most = 0;
  for (int64_t i = 0; i < b.count; i++)
    if (b.at[i] > most) most = b.at[i];
  return (most / REACH_STEP + 1) * REACH_STEP;
}

/* Runs one step. Keys and values of all rows are written before any are read, and a row sees the places up to
 * its own, so rows of one text may follow one another. Unused rows write after the context, where nothing is
 * read. */
static bool several_rows(TgLlm *m, LlmStep *s, Batch b) {
  for (int64_t i = 0; i < s->n; i++) {
    bool there = i < b.count;
    b.which[i] = there ? b.sequences[i] : 0;
    b.ids[i] = there ? b.given[i] : 0;
    if (!there) b.at[i] = (int32_t)m->context;
  }
  if (tg_variable_bind(m->reach, reach_of((Batch){.at = b.at, .count = b.count}))) return false;
  TgTensor *x = tg_from(m->ctx, b.ids, TG_I32, TG_SHAPE(s->n));
  TgTensor *at = tg_from(m->ctx, b.at, TG_I32, TG_SHAPE(s->n));
  TgTensor *which = tg_from(m->ctx, b.which, TG_I32, TG_SHAPE(s->n));
  for (int64_t i = 0; i < s->nparts; i++) {
    TgTensor *in[] = {x, at, which};
    if (tg_cancelled(m->ctx) || tg_jit_run(s->part[i].jit, in, 3, &x, 1)) return false;
  }
  return !tg_read(x, b.logits, (size_t)(s->n * m->k.vocabulary) * sizeof *b.logits);
}

/* The program with the fewest rows that `count` rows fit into. */
static int several_for(const TgLlm *m, int64_t count) {
  int best = 0;
  for (int i = 1; i < m->nseveral && m->several[i].n >= count; i++)
    if (!m->several[i].differs) best = i;
  return best;
}

enum { UNTIMED = 3 }; /* first runs of a program, which plan, compile and capture */

/* The same in a scope of its own, timed. The smallest recent time is kept, so that other work of the machine
 * has little influence. */
static bool several_timed(TgLlm *m, LlmStep *s, Batch b) {
  bool ok = false;
  double begin = llm_seconds();
  TG_SCOPE(m->ctx) { ok = several_rows(m, s, b); }
  double took = llm_seconds() - begin;
  if (!ok || ++s->runs <= UNTIMED) return ok;
  s->seconds = llm_least_of_late(s->seconds, took);
  return ok;
}

double llm_rows_seconds(const TgLlm *m, int64_t count) {
  double grown = 1;
  for (int i = several_for(m, count); i < m->nseveral; i++, grown *= UNKNOWN_GROWTH)
    if (m->several[i].seconds > 0) return m->several[i].seconds * grown;
  return 0;
}

enum { FEW_KEYS = 16 };

/* Whether the longest text has enough tokens in the cache that sums of another order would show: few numbers
 * may have the same sum in any order. */
static bool tells(Batch b) {
  int64_t most = 0;
  for (int64_t i = 0; i < b.count; i++)
    if (b.at[i] > most) most = b.at[i];
  return most >= FEW_KEYS;
}

/* The result of a sequence must not depend on how many other sequences share the step. Programs of fewer rows
 * have the same sums, but the compiler chose their order. So when a program first runs with a reach (and as
 * long as there is little in the cache), the largest program runs as well. If any bit of the logits differs,
 * the smaller program is not used again; its earlier results were the same. Each has a scope of its own,
 * because handles of the first run that read the cache would force a copy of the cache before the second run
 * writes to it. */
static bool several_step(TgLlm *m, Batch b) {
  LlmStep *s = &m->several[several_for(m, b.count)], *largest = &m->several[0];
  places_find(m, b);
  bool *agrees = &s->agrees[reach_of(b) / REACH_STEP];
  bool ok = several_timed(m, s, b);
  if (!ok || s == largest || *agrees) return ok;

  size_t nbytes = (size_t)(b.count * m->k.vocabulary) * sizeof *b.logits;
  float *first = tg_alloc(m->ctx, nbytes);
  if (first) memcpy(first, b.logits, nbytes);
  ok = first && several_timed(m, largest, b);
  bool same = ok && !memcmp(first, b.logits, nbytes);
  *agrees = same && tells(b);
  s->differs = ok && !same;
  tg_free(m->ctx, first);
  return ok;
}

/* Records the rows, which are in the caches now. A text's logits are those of its last row. */
static void several_done(TgLlm *m, Batch b) {
  size_t v = (size_t)m->k.vocabulary;
  for (int64_t i = 0; i < b.count; i++) {
    LlmSequence *s = &m->sequence[b.sequences[i]];
    bool last = i + 1 == b.count || b.sequences[i + 1] != b.sequences[i];
    s->ids[s->nids++] = b.given[i];
    if (last) memcpy(s->logits, b.logits + (size_t)i * v, v * sizeof *s->logits);
    s->has_logits = true;
  }
  m->nrows += b.count;
}

static bool several_fit(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n) {
  if (!llm_generates(m, "llm_eval_many")) return false;
  if (!m->batch) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: the model was opened without a batch");
  if (n < 1 || !sequences || !ids) return llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: no tokens");
  bool ok = true;
  int64_t i = 0;
  for (; ok && i < n; i++) {
    if (sequences[i] < 0 || sequences[i] >= m->sequences)
      ok = llm_fail(m->ctx, TG_ERR_VALUE, "llm_eval_many: sequence %d of %lld", (int)sequences[i],
                    (long long)m->sequences);
    ok = ok && follows(m, &m->sequence[sequences[i]], "llm_eval_many", ids + i, 1);
    if (ok) m->sequence[sequences[i]].ahead++;
  }
  ahead_clear(m, sequences, i);
  return ok;
}

/* Makes room for the logits of n rows and of the rows that fill up the last step. */
static bool rows_room(TgLlm *m, int64_t n) {
  int64_t rows = (n + m->batch - 1) / m->batch * m->batch;
  size_t nbytes;
  if (rows <= m->rows_room) return true;
  if (__builtin_mul_overflow((size_t)rows, (size_t)m->k.vocabulary * sizeof *m->batch_logits, &nbytes))
    return llm_fail(m->ctx, TG_ERR_LIMIT, "llm_eval_many: logits of %lld rows", (long long)n);
  float *grown = tg_alloc(m->ctx, nbytes);
  if (!grown) return false;
  tg_free(m->ctx, m->batch_logits);
  m->batch_logits = grown;
  m->rows_room = rows;
  return true;
}

TgStatus tg_llm_eval_many(TgLlm *m, const int32_t *sequences, const int32_t *ids, int64_t n) {
  if (!m) return TG_ERR_NOMEM;
  m->nrows = 0;
  if (!several_fit(m, sequences, ids, n) || !rows_room(m, n)) return tg_error(m->ctx);
  int32_t *rows = tg_alloc(m->ctx, 3 * (size_t)m->batch * sizeof *rows);
  bool ok = rows != NULL;
  for (int64_t at = 0; ok && at < n; at += m->batch) {
    Batch b = {sequences + at,
               ids + at,
               n - at < m->batch ? n - at : m->batch,
               rows,
               rows + m->batch,
               rows + 2 * m->batch,
               m->batch_logits + at * m->k.vocabulary};
    ok = several_step(m, b);
    if (ok) several_done(m, b);
  }
  tg_free(m->ctx, rows);
  return ok ? TG_OK : tg_error(m->ctx);
}

const float *tg_llm_row_logits(const TgLlm *m, int64_t i) {
  return m && i >= 0 && i < m->nrows ? m->batch_logits + i * m->k.vocabulary : NULL;
}

/* ---- embeddings, and the results of encoders */
/* The last token fills the rest of the program, which no token sees. */
bool llm_whole_run(TgLlm *m, const int32_t *ids, int64_t n, int64_t second, float *out) {
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

/* Adds to `sum` the rows that pooling uses, of rows at .. at + count - 1 of n. */
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
    if (!llm_whole_run(m, ids, n, n, rows)) return false;
    pooled(m, rows, 0, n, n, sum);
    return true;
  }
  for (int64_t at = 0; at < n;) {
    LlmStep *s = llm_step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    if (!ids_run(m, s, ids + at, count, rows)) return false;
    pooled(m, rows, at, count, n, sum);
    at += count;
  }
  return true;
}

/* The tokens that stay settled if a text of n ids follows what is in the cache: whole blocks that both begin
 * with. */
static int64_t settled_of(const TgLlm *m, const int32_t *ids, int64_t n) {
  const LlmSequence *s = m->now;
  int64_t same = 0, most = s->settled < n - 1 ? s->settled : n - 1;
  while (same < most && s->ids[same] == ids[same])
    same++;
  return same - same % m->block;
}

bool llm_last_token(TgLlm *m, const int32_t *ids, int64_t n, float *out) {
  size_t width = (size_t)m->k.width;
  int64_t at = settled_of(m, ids, n), count = 0;
  float *rows = tg_alloc(m->ctx, (size_t)m->block * width * sizeof *rows);
  bool ok = rows && !tg_llm_rewind(m, at);
  m->now->has_logits = false;
  for (; ok && at < n; at += count) {
    LlmStep *s = llm_step_for(m, n - at);
    count = n - at < s->n ? n - at : s->n;
    ok = ids_run(m, s, ids + at, count, rows);
  }
  if (ok) memcpy(out, rows + (size_t)(count - 1) * width, width * sizeof *out);
  tg_free(m->ctx, rows);
  return ok;
}

static bool can_embed(TgLlm *m) {
  if (m->k.pooling == POOL_RANK)
    return llm_fail(m->ctx, TG_ERR_VALUE, "llm_embed: the model is a reranker (llm_rank)");
  return m->k.pooling != POOL_NONE ||
         llm_fail(m->ctx, TG_ERR_VALUE,
                  "llm_embed: %s.pooling_type is 0: say what a text's tokens become (.pooling)",
                  m->architecture);
}

/* Applies the two products that an encoder may have after pooling. */
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

/* The settled tokens among the first `length` ones, in whole blocks. */
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
  m->now->nids = m->now->settled = 0; /* a failed copy has already written a part */
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
