/* codegen.c: the pass table of code generation. In: one kernel of a schedule. Out: its linear program. See codegen.h. */
#include "codegen/codegen.h"
#include <stdio.h>
#include <string.h>

/* Copied depth first into a fresh store: nodes lie close together, and ids depend on this kernel alone. */
static UOp *copy_in(UOpStore *st, TgMem *mem, UOp *root, UOpStore *from) {
  UOpVec order = {0};
  UOp **to = mem_alloc(mem, (store_id_limit(from) + 1) * sizeof *to), *r = NULL;
  bool ok = to && uop_toposort(from, mem, &root, 1, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *buf[64], **src = u->nsrc <= 64 ? buf : mem_alloc(mem, u->nsrc * sizeof *src);
    if (!src) { ok = false; break; }
    for (int k = 0; k < u->nsrc; k++) src[k] = to[u->src[k]->id];
    to[u->id] = uop_with_src(st, u, src);
    if (src != buf) mem_free(mem, src);
    ok = to[u->id] != NULL;
  }
  if (ok) r = to[root->id];
  vec_free(mem, &order);
  mem_free(mem, to);
  return r;
}
/* WHERE(gate, value, ..) over ranges protects what value reads: a load that may leave its buffer gets the gate. */
static bool move_gates(Kernel *k) {
  for (;;) {
    UOpVec order = {0}, inner = {0};
    bool ok = uop_toposort(k->st, k->mem, &k->sink, 1, &order), changed = false;
    for (size_t i = 0; ok && i < order.len && !changed; i++) {
      UOp *w = order.at[i];
      if (w->op != OPS_WHERE || uop_has_op(w->src[0], OPS_INDEX) || !uop_has_op(w->src[0], OPS_RANGE)) continue;
      inner.len = 0;
      ok = uop_toposort(k->st, k->mem, &w->src[1], 1, &inner);
      UOpVec from = {0}, to = {0};
      for (size_t j = 0; ok && j < inner.len; j++) {
        UOp *x = inner.at[j];
        if (x->op != OPS_INDEX || (x->src[1]->vmin >= 0 && x->src[1]->vmax < x->src[0]->arg.param.nelem)) continue;
        UOp *g = w->src[0];
        if (x->arg.i) {
          g = uop_simplify(k->st, k->mem, uop_alu2(k->st, OPS_AND, x->src[2], w->src[0]));
          if (g == x->src[2]) continue;
          UOpVec has = {0};                                  /* the gate may be there already, deeper in the conjunction */
          bool there = false;
          ok = uop_toposort(k->st, k->mem, &x->src[2], 1, &has);
          for (size_t h = 0; h < has.len; h++) there |= has.at[h] == w->src[0];
          vec_free(k->mem, &has);
          if (there) continue;
        }
        UOp *nx = UNEW(k->st, OPS_INDEX, (DType)x->dtype, 1, ((Arg){.i = 1}), x->src[0], x->src[1], g);
        ok = ok && nx && vec_push(k->mem, &from, x) && vec_push(k->mem, &to, nx);
      }
      if (ok && from.len) {
        UOp *v = uop_substitute(k->st, k->mem, w->src[1], (int)from.len, from.at, to.at);
        UOp *nw = v ? uop_where(k->st, w->src[0], v, w->src[2]) : NULL;
        k->sink = nw ? uop_substitute(k->st, k->mem, k->sink, 1, &w, &nw) : NULL;
        ok = k->sink != NULL, changed = true;
      }
      vec_free(k->mem, &from), vec_free(k->mem, &to);
    }
    vec_free(k->mem, &order), vec_free(k->mem, &inner);
    if (!ok || !changed) return ok;
  }
}
static bool decompositions(Kernel *k) {
  if (!k->ren) return true;
  Rewrite rw = {.st = k->st, .mem = k->mem, .limit = -1, .ctx = k};
  return (k->sink = graph_rewrite(&rw, pm_decompose, k->sink)) != NULL && (k->sink = uop_simplify(k->st, k->mem, k->sink)) != NULL;
}
static void name_kernel(const Kernel *k, Linear *out) {      /* r for reductions, e for elementwise; then the loop extents of the first store */
  int n = snprintf(out->name, sizeof out->name, "%c", uop_has_op(k->sink, OPS_REDUCE) ? 'r' : 'e');
  UOp *s = k->sink->nsrc ? k->sink->src[0] : NULL;
  for (int i = 2; s && i < s->nsrc && n < 70; i++)
    if (s->src[i]->op == OPS_RANGE) n += snprintf(out->name + n, sizeof out->name - (size_t)n, "_%lld", (long long)s->src[i]->src[0]->vmax);
}
/* Index bounds were proved per kernel by the scheduler's shapes; a program that could still leave a buffer is refused here. */
TgStatus codegen_lower(TgMem *mem, UOp *ast, UOpStore *ast_store, const Renderer *ren, const CodegenOptions *opt, Arena *arena, UOpStore **st_out,
                       Linear *out, Str *opts_text, TgError *err) {
  memset(out, 0, sizeof *out);
  static const struct { const char *name; bool (*run)(Kernel *); } early[] = {
    {"gates onto loads", move_gates}, {"decompositions", decompositions}};
  for (int attempt = opt->noopt ? 1 : 0; attempt < 2; attempt++) {       /* a nest that the opts cannot shape is lowered as it stands */
    Kernel k = {.mem = mem, .err = err, .ren = ren, .nthread = 1};
    CodegenOptions o = *opt;
    o.noopt |= attempt == 1;
    str_init(&k.opts, mem);
    k.st = store_new(mem);
    k.sink = k.st ? copy_in(k.st, mem, ast, ast_store) : NULL;
    k.next_range = 1000;
    UOpVec order = {0};
    bool ok = k.sink && uop_toposort(k.st, mem, &k.sink, 1, &order);
    for (size_t i = 0; ok && i < order.len; i++) if (order.at[i]->op == OPS_RANGE) k.next_range = i ? k.next_range : 1000;
    int64_t maxid = -1;
    for (size_t i = 0; ok && i < order.len; i++) if (order.at[i]->op == OPS_RANGE) maxid = TG_MAX(maxid, order.at[i]->arg.range.id);
    k.next_range = maxid + 1;
    vec_free(mem, &order);
    if (ok) name_kernel(&k, out);
    for (size_t p = 0; ok && p < TG_COUNT(early); p++) ok = early[p].run(&k);
    ok = ok && apply_opts(&k, &o) && expand(&k) && (k.sink = uop_simplify(k.st, mem, k.sink)) != NULL && linearize(&k, arena, out);
    if (ok && k.next_range > 64) ok = false;                 /* range sets are 64 bits wide */
    if (ok) {
      out->nthread = k.nthread;
      if (opts_text) str_put(opts_text, str_text(&k.opts));
      str_free(&k.opts);
      *st_out = k.st;
      return TG_OK;
    }
    str_free(&k.opts);
    store_free(k.st);
    out->n = out->nparam = 0;
  }
  return error_set(err, TG_ERR_INTERNAL, "codegen: kernel %s could not be lowered (out of memory, or more than 64 loops)", out->name);
}
