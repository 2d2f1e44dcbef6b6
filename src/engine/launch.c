/* launch.c: runs plans. In: plans with the memories that they read and write. Out: launches that are given
 * to the device one by one, or, for a replay, as one graph of which only the arguments change. Nothing
 * here waits for the device, except to measure time. */
#include "engine/jit.h"
#include "uop/dims.h"
#include <string.h>

/* ---- memory */
TgStatus buffer_ready(TgContext *ctx, Buffer *b) {
  if (b->data || !b->nelem) return TG_OK;
  size_t nbytes = (size_t)b->nelem * dtype_size(b->dtype);
  TgStatus st = device_alloc(ctx, b->device, nbytes, &b->data);
  Device *d = device_at(ctx, b->device);
  return st || !b->partly ? st : d->backend->clear(d, b->data, nbytes);
}

/* ---- arguments */
/* The program of kernel k. A prepacked program takes copies as arguments besides those that the plan
 * knows. */
static const CachedProgram *program_of(const PlanRun *run, int k) {
  const Prepacked *own = run->prepacked ? &run->prepacked[k] : NULL;
  return own && own->run ? own->run : run->plan->prog[k];
}

static int arguments_of(const PlanRun *run, int k) {
  return run->plan->sched.kernel[k].narg + program_of(run, k)->packed.n;
}

/* Reads the values of a program's variables, in units of the VAR nodes. */
static TgStatus vars_get(TgContext *ctx, const CachedProgram *p, int64_t *out) {
  for (int i = 0; i < p->nvar; i++) {
    const DimVar *v = dims_var_at(ctx->dims, p->var[i]);
    if (!v || !v->bound)
      return error_set(&ctx->err, TG_ERR_STATE, "realize: variable '%.64s' is not bound to a value",
                       v ? v->name : "?");
    out[i] = v->value / v->multiple;
  }
  return TG_OK;
}

/* The arguments of a launch: room for the pointers and variables of the largest kernel. */
typedef struct LaunchRoom {
  void *bufs_small[32], **bufs;
  int64_t vars_small[16], *vars;
} LaunchRoom;

static TgStatus launch_room(TgContext *ctx, const PlanRun *run, size_t n, LaunchRoom *r) {
  int most = 0, most_vars = 0;
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < run[i].plan->sched.nkernel; k++) {
      most = TG_MAX(most, arguments_of(&run[i], k));
      most_vars = TG_MAX(most_vars, program_of(&run[i], k)->nvar);
    }
  r->bufs = most > 32 ? mem_alloc(&ctx->mem, (size_t)most * sizeof *r->bufs) : r->bufs_small;
  r->vars = most_vars > 16 ? mem_alloc(&ctx->mem, (size_t)most_vars * sizeof *r->vars) : r->vars_small;
  return r->bufs && r->vars ? TG_OK : error_no_memory(&ctx->err, "realize");
}

static void launch_room_end(TgContext *ctx, LaunchRoom *r) {
  if (r->bufs != r->bufs_small) mem_free(&ctx->mem, r->bufs);
  if (r->vars != r->vars_small) mem_free(&ctx->mem, r->vars);
}

static TgStatus args_set(TgContext *ctx, const PlanRun *run, const SchedKernel *sk, void **bufs) {
  const Plan *p = run->plan;
  for (int a = 0; a < sk->narg; a++) {
    int64_t id = sk->arg[a];
    if (id >= TEMP_BASE) {
      int t = (int)(id - TEMP_BASE);
      void *at = run->temp[t] ? run->temp[t]->data : p->slab[p->slab_of[t]];
      bufs[a] = (char *)at + sk->offset[a];
      continue;
    }
    Buffer *b = run->buf[id].buffer;
    TgStatus st = b ? buffer_ready(ctx, b)
                    : error_set(&ctx->err, TG_ERR_STATE, "realize: a buffer that the graph reads was freed");
    if (st) return st;
    bufs[a] = (char *)b->data + run->buf[id].offset + sk->offset[a];
  }
  return TG_OK;
}

/* Describes the launch of kernel k of a plan. Its arguments are in r. */
static TgStatus launch_get(TgContext *ctx, const PlanRun *run, int k, const LaunchRoom *r, Launch *out) {
  const SchedKernel *sk = &run->plan->sched.kernel[k];
  const CachedProgram *prog = program_of(run, k);
  TgStatus st = vars_get(ctx, prog, r->vars);
  if (!st) st = args_set(ctx, run, sk, r->bufs);
  for (int i = 0; i < prog->packed.n; i++)
    r->bufs[sk->narg + i] = prepacked_of(&run->prepacked[k])->data[i];
  *out = (Launch){prog->prog, r->bufs, r->vars, arguments_of(run, k), prog->nvar};
  return st;
}

const Launch *packing_of(const Prepacked *p, void **bufs, int narg, Launch *out) {
  int n = 0;
  for (int a = 0; a < narg; a++)
    if (a < 64 && p->reads >> a & 1) bufs[n++] = bufs[a];
  for (int i = 0; i < p->pack->packed.n; i++)
    bufs[n++] = bufs[narg + i];
  *out = (Launch){p->pack->prog, bufs, NULL, n, 0};
  return out;
}

/* Makes the prepacked copies that were never made, or one of whose sources has a new version. */
static TgStatus packed(TgContext *ctx, const PlanRun *run, const LaunchRoom *r) {
  Device *d = run->plan->dev;
  TgStatus st = TG_OK;
  for (int k = 0; run->prepacked && !st && k < run->plan->sched.nkernel; k++) {
    Launch l;
    if (!run->prepacked[k].run || !prepacked_stale(run, k)) continue;
    const Prepacked *p = &run->prepacked[k];
    st = launch_get(ctx, run, k, r, &l);
    if (!st) st = d->backend->launch(d, packing_of(p, r->bufs, run->plan->sched.kernel[k].narg, &l));
    if (!st) prepacked_made(run, k), ctx->counters.packed++;
  }
  return st;
}

/* ---- time */
/* On a device with a queue, time is measured from the first launch that nobody has waited for yet to the
 * last one. */
static TgStatus time_begins(Device *d) {
  if (!(d->backend->has & HAS_QUEUE) || d->timing) return TG_OK;
  d->timing = true;
  return d->backend->event_record(d, &d->begun);
}

static TgStatus time_ends(TgContext *ctx, Device *d, double begin) {
  if (d->backend->has & HAS_QUEUE) return d->backend->event_record(d, &d->ended);
  ctx->counters.ms += (time_now_s() - begin) * 1e3;
  return TG_OK;
}

void launch_time_taken(TgContext *ctx, Device *d) {
  if (d->timing && d->begun && d->ended)
    ctx->counters.ms += d->backend->event_us(d, d->begun, d->ended) / 1e3;
  d->timing = false;
}

static void launch_told(TgContext *ctx, const PlanRun *run, int k, double begin, double us) {
  const Plan *p = run->plan;
  const SchedKernel *sk = &p->sched.kernel[k];
  TgLaunch l = {sizeof l, program_of(run, k)->name, sk->narg, sk->flops, us, NULL, 0, kernel_origin(p, k)};
  if (ctx->env.debug >= 2)
    context_say(ctx, "*** %-4s %4d %-40s arg %2d %9.2f us (estimated %.2f)%s%s\n", p->dev->name, k, l.name,
                l.nargs, us, sk->est_us, *l.origin ? "  " : "", l.origin);
  profile_launch(ctx, run, k, begin, us);
  inside_launch(ctx, p, k, us);
  if (ctx->launched) ctx->launched(&l, ctx->launched_user);
}

static bool launches_timed(const TgContext *ctx) {
  return ctx->env.debug >= 2 || ctx->launched || ctx->profile || ctx->inside;
}

/* Launches a kernel, and measures its time on the device if somebody asks for it. */
static TgStatus kernel_launch(TgContext *ctx, const PlanRun *run, int k, const LaunchRoom *r) {
  Device *d = run->plan->dev;
  Event *begin = NULL, *end = NULL;
  Launch l;
  bool timed = launches_timed(ctx);
  TgStatus st = launch_get(ctx, run, k, r, &l);
  double now = profile_now(ctx);
  if (!st && timed) st = d->backend->event_record(d, &begin);
  if (!st) st = d->backend->launch(d, &l);
  if (!st && timed) st = d->backend->event_record(d, &end);
  double given = profile_now(ctx);
  if (!st && timed) st = d->backend->event_reach(d, end);
  if (d->backend->has & HAS_QUEUE) profile_wait(ctx, "wait", given);
  if (!st && timed) launch_told(ctx, run, k, now, d->backend->event_us(d, begin, end));
  d->backend->event_free(d, begin), d->backend->event_free(d, end);
  return st;
}

static void run_counted(TgContext *ctx, const Plan *p) {
  ctx->counters.kernels += (uint64_t)p->sched.nkernel;
  ctx->counters.launches += (uint64_t)p->sched.nkernel;
  for (int k = 0; k < p->sched.nkernel; k++)
    ctx->counters.flops += (uint64_t)p->sched.kernel[k].flops;
}

/* Makes ready the memories that a plan of another rank's device takes, so that they count as in use here
 * as they do there. */
static TgStatus remote_run(TgContext *ctx, const PlanRun *run) {
  TgStatus st = TG_OK;
  for (int k = 0; k < run->plan->remote; k++) {
    const SchedKernel *sk = &run->plan->sched.kernel[k];
    for (int a = 0; a < sk->narg && !st; a++)
      if (sk->arg[a] < TEMP_BASE && run->buf[sk->arg[a]].buffer)
        st = buffer_ready(ctx, run->buf[sk->arg[a]].buffer);
  }
  return st;
}

/* Runs a plan. Its variables and arguments are looked up before the first kernel runs, and again for each
 * kernel, because an error must not leave a plan half run. */
TgStatus plan_run(TgContext *ctx, const PlanRun *run) {
  Plan *p = run->plan;
  LaunchRoom room;
  if (p->dev->remote) return remote_run(ctx, run);
  TgStatus st = launch_room(ctx, run, 1, &room), slabs = slabs_take(ctx, p);
  if (!st) st = slabs;
  if (!st) st = context_cancelled(ctx);
  for (int k = 0; k < p->sched.nkernel && !st; k++)
    st = vars_get(ctx, program_of(run, k), room.vars);
  for (int k = 0; k < p->sched.nkernel && !st; k++) /* no kernel may store unless all can run */
    st = args_set(ctx, run, &p->sched.kernel[k], room.bufs);
  if (!st) st = packed(ctx, run, &room);
  double begin = time_now_s();
  if (!st) st = time_begins(p->dev);
  for (int k = 0; k < p->sched.nkernel && !st; k++) {
    if (run->flight) st = flight_before(run->flight, run, k);
    if (!st) st = kernel_launch(ctx, run, k, &room);
    if (!st && run->flight) st = flight_after(run->flight, run, k);
  }
  if (!st) st = time_ends(ctx, p->dev, begin);
  profile_memory(ctx, p->dev);
  run_counted(ctx, p);
  slabs_return(ctx, p);
  launch_room_end(ctx, &room);
  return st;
}

/* ---- replay */
struct Replay {
  Device *dev;
  LaunchGraph *graph;
  Launch *launch; /* the n launches of the graph; their arguments are in bufs and vars */
  int n;
  void **bufs;
  int64_t *vars;
};

void replay_free(TgContext *ctx, Replay *r) {
  if (!r) return;
  if (r->graph) r->dev->backend->graph_free(r->dev, r->graph);
  mem_free(&ctx->mem, r->launch), mem_free(&ctx->mem, r->bufs), mem_free(&ctx->mem, r->vars);
  mem_free(&ctx->mem, r);
}

/* Makes room for the arguments of all launches. Returns NULL if out of memory. */
static Replay *replay_new(TgContext *ctx, const PlanRun *run, size_t n) {
  size_t nlaunch = 0, nbuf = 0, nvar = 0;
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < run[i].plan->sched.nkernel; k++) {
      nlaunch++;
      nbuf += (size_t)arguments_of(&run[i], k);
      nvar += (size_t)program_of(&run[i], k)->nvar;
    }
  Replay *r = mem_alloc(&ctx->mem, sizeof *r);
  if (!r) return NULL;
  r->dev = run->plan->dev;
  r->n = (int)nlaunch;
  r->launch = mem_alloc(&ctx->mem, (nlaunch + 1) * sizeof *r->launch);
  r->bufs = mem_alloc(&ctx->mem, (nbuf + 1) * sizeof *r->bufs);
  r->vars = mem_alloc(&ctx->mem, (nvar + 1) * sizeof *r->vars);
  if (r->launch && r->bufs && r->vars) return r;
  replay_free(ctx, r);
  return NULL;
}

/* Makes launch i like `now`, whose arguments are copied to bufs and vars. */
static TgStatus launch_updated(Replay *r, int i, const Launch *now, void **bufs, int64_t *vars) {
  Launch *had = &r->launch[i];
  size_t bufs_size = (size_t)now->nbuf * sizeof *bufs, vars_size = (size_t)now->nvar * sizeof *vars;
  bool same = had->program == now->program && !memcmp(bufs, now->bufs, bufs_size) &&
              !memcmp(vars, now->vars, vars_size);
  if (same) return TG_OK;
  memcpy(bufs, now->bufs, bufs_size), memcpy(vars, now->vars, vars_size);
  *had = *now;
  had->bufs = bufs;
  had->vars = vars;
  return r->graph ? r->dev->backend->graph_update(r->dev, r->graph, i, had) : TG_OK;
}

/* Updates all arguments, and passes those that changed to the graph, before anything runs. */
static TgStatus replay_updated(TgContext *ctx, Replay *r, const PlanRun *run, size_t n,
                               const LaunchRoom *room) {
  void **bufs = r->bufs;
  int64_t *vars = r->vars;
  int launch = 0;
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < run[i].plan->sched.nkernel; k++) {
      Launch now;
      TgStatus st = launch_get(ctx, &run[i], k, room, &now);
      if (!st) st = launch_updated(r, launch++, &now, bufs, vars);
      if (st) return st;
      bufs += now.nbuf;
      vars += now.nvar;
    }
  return r->graph ? TG_OK : r->dev->backend->graph_new(r->dev, r->launch, r->n, &r->graph);
}

TgStatus replay_run(TgContext *ctx, Replay **made, const PlanRun *run, size_t n) {
  LaunchRoom room;
  Device *d = run->plan->dev;
  TgStatus st = TG_OK;
  for (size_t i = 0; i < n && launches_timed(ctx); i++) /* each launch is timed */
    if ((st = plan_run(ctx, &run[i])) || i + 1 == n) return st;
  if (!*made && !(*made = replay_new(ctx, run, n))) return error_no_memory(&ctx->err, "jit");
  st = launch_room(ctx, run, n, &room);
  if (!st) st = context_cancelled(ctx);
  for (size_t i = 0; i < n && !st; i++)
    st = slabs_take(ctx, run[i].plan);
  for (size_t i = 0; i < n && !st; i++)
    st = packed(ctx, &run[i], &room);
  if (!st) st = replay_updated(ctx, *made, run, n, &room);
  double begin = time_now_s();
  if (!st) st = time_begins(d);
  if (!st) st = d->backend->graph_launch(d, (*made)->graph);
  if (!st) st = time_ends(ctx, d, begin);
  if (!st) ctx->counters.graphs++;
  for (size_t i = 0; i < n; i++)
    run_counted(ctx, run[i].plan), slabs_return(ctx, run[i].plan);
  launch_room_end(ctx, &room);
  return st;
}
