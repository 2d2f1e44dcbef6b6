/* stage_text.c: stages -> text that tg can start from (stage_text.h). */
#include "schedule/stage_text.h"
#include <string.h>

static const StageField stage_fields[] = {STAGE_FIELDS(STAGE_FIELD)};

static void ints_put(Str *o, const char *name, const int *v, size_t n) {
  if (n) str_printf(o, " %s=", name);
  for (size_t i = 0; i < n; i++)
    str_printf(o, i ? ",%d" : "%d", v[i]);
}

static void field_put(Str *o, const StageField *f, const void *at) {
  int64_t v = 0;
  switch (f->kind) {
  case FIELD_BOOL: v = *(const bool *)at; break;
  case FIELD_INT: v = *(const int *)at; break;
  case FIELD_BITS: v = *(const uint32_t *)at; break;
  case FIELD_WIDE: v = *(const int64_t *)at; break;
  case FIELD_REAL: str_printf(o, " %s=%a", f->name, *(const double *)at); return;
  case FIELD_INTS: ints_put(o, f->name, ((const IntVec *)at)->at, ((const IntVec *)at)->len); return;
  }
  if (v) str_printf(o, " %s=%lld", f->name, (long long)v);
}

static void stage_put(Str *o, int i, const Stage *g) {
  const UOp *of = g->node->op == OPS_STORE && g->update ? g->node->src[1] : g->node;
  str_printf(o, "stage %d: %s %s", i, op_name((Ops)g->node->op), dtype_name((DType)g->node->dtype));
  for (size_t k = 0; k < TG_COUNT(stage_fields); k++)
    field_put(o, &stage_fields[k], (const char *)g + stage_fields[k].offset);
  if (g->update) str_printf(o, " scatter=%d,%d", (int)of->arg.scatter.op, (int)of->arg.scatter.how);
  if (!g->value) str_put(o, " empty=1");
  if (g->kernel >= 0) ints_put(o, "gmap", g->gmap, (size_t)g->nout);
  str_put(o, "\n");
}

static void kernel_put(Str *o, int k, const StageSet *s) {
  const Cost *c = &s->cost;
  str_printf(o, "kernel %d: level=%d minout=%d ngrid=%d cost=%a,%a,%a,%a,%a,%a", k, s->level, s->minout,
             s->ngrid, c->us, c->launch, c->compute, c->memory, c->again, c->cores);
  ints_put(o, "mem", s->mem.at, s->mem.len);
  str_put(o, "\n");
}

static bool roots_of(Sched *s, UOpVec *r) {
  UOp *none = uop_index_const(s->st, 0);
  bool ok = none != NULL;
  for (size_t i = 0; ok && i < s->stages.len; i++) {
    const Stage *g = &s->stages.at[i];
    ok = vec_push(s->mem, r, g->value ? g->value : none);
    for (int d = 0; ok && d < g->nout; d++)
      ok = vec_push(s->mem, r, g->out[d]);
    for (int d = 0; ok && d < g->nred; d++)
      ok = vec_push(s->mem, r, g->red[d]);
    ok = ok && vec_push(s->mem, r, g->target ? g->target : none);
  }
  for (size_t k = 0; ok && k < s->ks.len; k++)
    for (int d = 0; ok && d < s->ks.at[k].ngrid; d++)
      ok = vec_push(s->mem, r, s->ks.at[k].grid[d]);
  return ok;
}

bool stages_print(Sched *s, const char *pass, Str *out) {
  UOpVec roots = {0};
  Str text;
  str_init(&text, s->mem);
  bool ok = roots_of(s, &roots) && uop_print(&text, s->st, s->mem, roots.at, roots.len);
  str_printf(&text, "state stages=%zu kernels=%zu next_range=%lld after=%s\n", s->stages.len, s->ks.len,
             (long long)s->next_range, pass);
  for (size_t i = 0; i < s->stages.len; i++)
    stage_put(&text, (int)i, &s->stages.at[i]);
  for (size_t k = 0; k < s->ks.len; k++)
    kernel_put(&text, (int)k, &s->ks.at[k]);
  str_put(&text, "order");
  ints_put(&text, "of", s->order.at, s->order.len);
  str_put(&text, "\n");
  for (const char *p = str_text(&text), *end; ok && *p && (end = strchr(p, '\n')); p = end + 1)
    str_printf(out, STAGE_TEXT "%.*s\n", (int)(end - p), p);
  ok = ok && !text.oom && !out->oom;
  str_free(&text), vec_free(s->mem, &roots);
  return ok;
}
