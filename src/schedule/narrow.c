/* narrow.c: values that are kept as they were before they were widened. In: stages in kernels. Out: the same
 * stages. If a value that other kernels read is a widened narrow float, or a factor whose numbers are small,
 * it is written narrow and its readers widen it. That takes less memory for the same value, and a matrix unit
 * takes a narrow factor. So it is done only if the machine has matrix units that take the narrow dtype. */
#include "schedule/stage.h"
#include "uop/matrix.h"
#include <string.h>

bool unit_takes(const Target *t, DType d) {
  for (int i = 0; i < MATRIX_COUNT; i++)
    if ((t->matrices >> i & 1) &&
        (matrix_shapes[i].operand[MATRIX_A].dtype == d || matrix_widens(&matrix_shapes[i], MATRIX_A, d)))
      return true;
  return false;
}

static bool crosses(Sched *s, const Stage *g) { /* whether another kernel reads it */
  for (size_t r = 0; r < g->readers.len; r++)
    if (stage_at(s, g->readers.at[r])->kernel != g->kernel) return true;
  return false;
}

static bool is_factor(Sched *s, const Stage *g) { /* whether a reader of it sums products */
  for (size_t r = 0; r < g->readers.len; r++)
    if (stage_at(s, g->readers.at[r])->nproduct) return true;
  return false;
}

/* The value as it should be written; NULL: it stays as it is. */
static UOp *narrowed(Sched *s, const Stage *g) {
  static const DType whole[] = {DT_I8, DT_U8, DT_I16};
  if (g->inlined || g->is_store || g->update || g->fixed || g->is_reduce || g->root >= 0) return NULL;
  UOp *v = g->value, *from = v->op == OPS_CAST ? v->src[0] : NULL;
  for (size_t i = 0; i < TG_COUNT(whole) && v->dtype == DT_I32 && is_factor(s, g); i++)
    if (v->vmin >= dtype_min(whole[i]) && v->vmax <= dtype_max(whole[i]) &&
        unit_takes(s->opt->target, whole[i]))
      return crosses(s, g) ? uop_cast(s->st, v, whole[i]) : NULL;
  bool narrow = from && dtype_is_float((DType)v->dtype) && dtype_is_narrow_float((DType)from->dtype) &&
                dtype_size((DType)from->dtype) < dtype_size((DType)v->dtype);
  return narrow && unit_takes(s->opt->target, (DType)from->dtype) && crosses(s, g) ? from : NULL;
}

/* The same read, if the stage is written as `narrow`. Returns NULL if out of memory. */
static UOp *widened(Sched *s, const UOp *read, DType narrow) {
  UOp *src[1 + MAX_RANK];
  memcpy(src, read->src, read->nsrc * sizeof *src);
  src[0] = uop_new(s->st, OPS_PARAM, narrow, 1, 0, NULL, read->src[0]->arg);
  UOp *index = src[0] ? uop_new(s->st, OPS_INDEX, narrow, 1, read->nsrc, src, read->arg) : NULL;
  return index ? uop_cast(s->st, index, (DType)read->dtype) : NULL;
}

static bool reads_widened(Sched *s, int reader, int producer, DType narrow) {
  Stage *q = stage_at(s, reader);
  UOpVec from = {0}, to = {0};
  bool ok = true;
  for (size_t k = 0; ok && k < q->reads.len; k++) {
    if (q->reads.at[k].stage != producer) continue;
    UOp *read = q->reads.at[k].index;
    ok = read->nsrc <= 1 + MAX_RANK && vec_push(s->mem, &from, read) &&
         vec_push(s->mem, &to, widened(s, read, narrow)) && to.at[to.len - 1];
  }
  UOp *v = ok && from.len ? uop_substitute(s->st, s->mem, q->value, (int)from.len, from.at, to.at)
           : ok           ? q->value
                          : NULL;
  vec_free(s->mem, &from), vec_free(s->mem, &to);
  return v && (q->value = v) && stage_scan(s, reader);
}

bool narrow_stages(Sched *s) {
  bool ok = true;
  for (size_t i = 0; ok && s->opt->target->matrices && i < s->stages.len; i++) {
    Stage *g = stage_at(s, (int)i);
    UOp *v = narrowed(s, g);
    if (!v) continue;
    DType narrow = (DType)v->dtype;
    g->value = v;
    ok = stage_scan(s, (int)i);
    for (size_t r = 0; ok && r < s->stages.len; r++)
      if (!stage_at(s, (int)r)->inlined && ints_have(&stage_at(s, (int)r)->deps, (int)i))
        ok = reads_widened(s, (int)r, (int)i, narrow);
  }
  return ok;
}
