/* scalars.c: opts for text without vectors, in which a compiler finds the vectors itself (few_lanes). In: the
 * list that a machine with vectors would get. Out: the list cut down to what a compiler can keep in registers
 * and vectorise. Four lanes with at most four rows are sixteen sums, if the machine has registers for them.
 * Sixteen lanes of one sum (GROUP) get no rows beside them, because compilers look for vectors among the rows
 * first. */
#include "codegen/heuristic.h"

enum { FEW = 4, WIDE = 16, REGISTERS_A_SUM = 4, MOST_STATEMENTS = 100 };

/* How many iterations of a loop are done together: preferably a number that divides its extent. */
static int64_t together(const Info *f, const Opt *o, int64_t most) {
  static const int64_t nice[] = {16, 8, 4, 5, 3};
  int64_t size = 0;
  for (int i = 0; i < f->nr; i++)
    if (f->r[i].r->arg.range.id == o->r) size = f->r[i].n;
  for (size_t i = 0; i < TG_COUNT(nice); i++)
    if (nice[i] <= TG_MIN(o->n, most + 1) && size && size % nice[i] == 0) return nice[i];
  return TG_MIN(o->n, most);
}

/* Whether a loop fills a row of sums in local memory. Such a loop gets no rows beside it. */
static bool fills_sums(const Info *f, const Opt *o) {
  bool sums = false;
  for (int i = 0; i < f->nr; i++)
    for (size_t k = 0; f->r[i].r->arg.range.id == o->r && k < f->fills.len; k++)
      sums |= store_has(f->fills.at[k], f->r[i].r) && uop_has(f->fills.at[k]->src[1], REDUCE);
  return sums;
}

static bool shapes(OptOp op) { return is_upcast(op) || op == OPT_VEC || op == OPT_GROUP; }

/* Whether all steps that the list unrolls are few enough to be written out. Either all UNROLLs are kept or
 * none. */
static bool unrolls(const OptVec *list, int64_t sums) {
  int64_t steps = 1;
  for (size_t i = 0; i < list->len; i++)
    if (list->at[i].op == OPT_UNROLL) steps *= list->at[i].n;
  return steps * sums <= MOST_STATEMENTS;
}

static void list_cut(const Info *f, OptVec *list, int64_t most_sums) {
  int64_t sums = 1;
  size_t n = 0;
  bool grouped = false;
  /* lanes before rows, because lanes are contiguous */
  for (int lanes = 1; lanes >= 0; lanes--)
    for (size_t i = 0; i < list->len; i++) {
      Opt *o = &list->at[i];
      if (!shapes(o->op) || is_upcast(o->op) == lanes) continue;
      bool wide = o->op == OPT_GROUP || (o->op == OPT_VEC && fills_sums(f, o));
      o->n = sums >= most_sums || (!lanes && grouped) ? 1 : together(f, o, wide ? WIDE : FEW);
      grouped |= o->op == OPT_GROUP;
      sums *= TG_MAX(o->n, 1);
    }
  bool unrolled = unrolls(list, sums);
  for (size_t i = 0; i < list->len; i++) {
    const Opt *o = &list->at[i];
    bool gone = shapes(o->op) ? o->n < 2 : o->op == OPT_UNROLL && !unrolled;
    if (!gone) list->at[n++] = *o;
  }
  list->len = n;
}

/* Another loop of the outputs along which the values read by the lanes are reused. -1: none. */
static int rows_loop(Kernel *k, const Info *f, const Opt *lanes) {
  int best = -1;
  for (int i = 0; i < f->nr; i++) {
    const RInfo *r = &f->r[i];
    bool fits = !r->reduce && r->n > 1 && r->nout == k->sink->nsrc && r->r->arg.range.id != lanes->r;
    fits = fits && is_const(r->r->src[0]) && reused_along(k, f, r->r);
    if (fits && (best < 0 || TG_MIN(r->n, FEW) > TG_MIN(f->r[best].n, FEW))) best = i;
  }
  return best;
}

/* Gives a sum that has lanes but no rows some rows, because four sums alone wait for each other's latency. */
static bool rows_added(Kernel *k, const Info *f, OptVec *list) {
  int lanes = -1, shaped = 0;
  for (size_t i = 0; i < list->len; i++) {
    shaped += shapes(list->at[i].op) || list->at[i].op == OPT_ONLINE;
    if (list->at[i].op == OPT_VEC) lanes = (int)i;
  }
  int loop = shaped == 1 && lanes >= 0 && f->reduces.len == 1 && !f->fills.len && !f->scans
                 ? rows_loop(k, f, &list->at[lanes])
                 : -1;
  if (loop < 0) return true;
  OptVec more = {0};
  bool ok = true;
  for (size_t i = 0; ok && i < list->len; i++) {
    if ((int)i == lanes) ok = opt_add(k, &more, OPT_UPCAST, &f->r[loop], FEW);
    if ((int)i == lanes && ok) more.at[i].n = together(f, &more.at[i], FEW);
    ok = ok && vec_push(k->mem, &more, list->at[i]);
  }
  bool fits = ok && opts_fit(k, &more);
  for (size_t i = 0; ok && fits && i < more.len; i++)
    if (i < list->len)
      list->at[i] = more.at[i];
    else
      ok = vec_push(k->mem, list, more.at[i]);
  vec_free(k->mem, &more);
  return ok;
}

bool scalar_opts(Kernel *k, OptVec *list) {
  Info f;
  bool ok = info_get(k, &f);
  if (ok) list_cut(&f, list, k->opt->target->registers / REGISTERS_A_SUM);
  ok = ok && rows_added(k, &f, list);
  info_free(k, &f);
  return ok;
}
