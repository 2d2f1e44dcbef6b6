/* passes.c: the pass table of the scheduler. In: the roots of a tensor graph. Out: stages, then kernels. */
#include "schedule/stage.h"

typedef struct Run { Sched *s; UOp *const *roots; int nroots; Schedule *out; } Run;
static bool run_rangeify(void *state) { Run *r = state; return rangeify(r->s, r->roots, r->nroots); }
static bool run_partition(void *state) { Run *r = state; return partition(r->s, r->out); }
const Pass schedule_passes[] = {
  {"rangeify",  .run = run_rangeify, .makes = GRAPH_STAGES},       /* tensor graph -> stages over ranges */
  {"partition", .run = run_partition, .makes = GRAPH_KERNEL},      /* stages -> kernels in order */
};
const size_t schedule_npass = TG_COUNT(schedule_passes);
/* The graph is the roots at first, then the values of the stages, at last the kernels. */
static bool graph_of(void *state, UOpVec *to) {
  Run *r = state;
  TgMem *m = r->s->mem;
  bool ok = true;
  if (r->out->nkernel) for (int i = 0; ok && i < r->out->nkernel; i++) ok = vec_push(m, to, r->out->kernel[i].ast);
  else if (r->s->stages.len) for (size_t i = 0; ok && i < r->s->stages.len; i++) ok = !r->s->stages.at[i].value || vec_push(m, to, r->s->stages.at[i].value);
  else for (int i = 0; ok && i < r->nroots; i++) ok = vec_push(m, to, r->roots[i]);
  return ok;
}
bool schedule_run(Sched *s, UOp *const *roots, int nroots, Schedule *out) {
  Run r = {s, roots, nroots, out};
  PassRun run = {.env = s->opt->passes, .st = s->st, .mem = s->mem, .err = s->err, .stage = "schedule", .letter = 's', .takes = GRAPH_TENSOR, .subject = "", .state = &r, .graph = graph_of};
  if (run.env) run.number = run.env->next_schedule++;
  return passes_run(&run, schedule_passes, schedule_npass);
}
