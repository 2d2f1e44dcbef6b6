/* given.c: steps of a language model whose tokens are vectors instead of ids, as those of pictures are. In:
 * vectors (n, width) and the ids that they are recorded by. Out: keys and values in the cache, as from any
 * token. A step has the same programs as a step of ids except for its first part, which looks up no
 * embeddings. If the vectors see each other in both directions, all of them are one step. */
#include "vision_private.h"

/* Makes the first part of a step that begins with vectors. */
static bool given_part(TgLlm *m, LlmStep *s) {
  s->given = s->part[0];
  s->given.given = true;
  return (s->given.jit = llm_jit(m->ctx, llm_part, &s->given, false)) != NULL;
}

/* Makes the step of n tokens that see each other, with one part for each layer. */
static bool mutual_make(TgLlm *m, int64_t n) {
  LlmStep *s = &m->mutual;
  if (n > m->context)
    return llm_fail(m->ctx, TG_ERR_LIMIT, "vision: a picture of %lld tokens is more than the context of %lld",
                    (long long)n, (long long)m->context);
  m->mutual_at = tg_variable(m->ctx, "picture_position", 0, m->context - n);
  s->part = tg_alloc(m->ctx, (size_t)m->k.layers * sizeof *s->part);
  if (!m->mutual_at || !s->part) return false;
  s->n = n;
  s->nparts = m->k.layers;
  for (int64_t i = 0; i < s->nparts; i++) {
    LlmPart *p = &s->part[i];
    *p = (LlmPart){.m = m, .n = n, .first = i, .last = i + 1, .mutual = true, .given = i == 0};
    if (!(p->jit = llm_jit(m->ctx, llm_part, p, false))) return false;
  }
  return true;
}

bool llm_given_make(TgLlm *m, int64_t mutual) {
  if (mutual) return mutual_make(m, mutual);
  for (int i = 0; i < m->nsteps; i++)
    if (!given_part(m, &m->step[i])) return false;
  return true;
}

void llm_given_free(TgLlm *m) {
  for (int i = 0; i < m->nsteps; i++) {
    tg_jit_free(m->step[i].given.jit);
    m->step[i].given.jit = NULL;
  }
  for (int64_t i = 0; m->mutual.part && i < m->mutual.nparts; i++)
    tg_jit_free(m->mutual.part[i].jit);
  tg_free(m->ctx, m->mutual.part);
  m->mutual = (LlmStep){.n = 0};
}

/* Runs one step on `count` vectors. `room` holds the rows of the whole step; the last vector fills its
 * remaining rows. */
static bool step_run(TgLlm *m, LlmStep *s, const float *rows, const int32_t *ids, int64_t count,
                     float *room) {
  size_t width = (size_t)m->k.width;
  memcpy(room, rows, (size_t)count * width * sizeof *room);
  for (int64_t i = count; i < s->n; i++)
    memcpy(room + (size_t)i * width, rows + (size_t)(count - 1) * width, width * sizeof *room);
  return llm_step_run(m, s, room, ids, count, NULL);
}

bool llm_given_eval(TgLlm *m, const float *rows, const int32_t *ids, int64_t n, bool mutual) {
  int64_t most = mutual ? m->mutual.n : m->step[0].n;
  if (n > m->context - m->now->nids)
    return llm_fail(m->ctx, TG_ERR_LIMIT,
                    "llm_eval_picture: %lld tokens after %lld are more than the context of %lld",
                    (long long)n, (long long)m->now->nids, (long long)m->context);
  float *room = tg_alloc(m->ctx, (size_t)(most * m->k.width) * sizeof *room);
  bool ok = room != NULL;
  for (int64_t at = 0; ok && at < n;) {
    LlmStep *s = mutual ? &m->mutual : llm_step_for(m, n - at);
    int64_t count = n - at < s->n ? n - at : s->n;
    ok = step_run(m, s, rows + at * m->k.width, ids + at, count, room);
    at += count;
  }
  tg_free(m->ctx, room);
  if (ok) m->now->has_logits = true;
  return ok;
}
