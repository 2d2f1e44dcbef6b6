/* jit.c: capture and replay. In: a function on tensors. Out: the list of its plans with their buffers. A
 * replay runs the list, with the inputs' buffers and new output buffers in place of the captured ones. A
 * captured buffer is one of four: an input; an output; a result that only the list needs, for which the
 * list has its own memory; or state, which is memory that existed before or that the function assigned to.
 * State is pinned, so it stays as long as the capture. */
#include "engine/graph_copy.h"
#include "engine/jit.h"
#include "tensor/front.h"

/* ---- hooks of the engine and the front end */
static bool hold(TgContext *ctx, Buffer *b) {
  if (!b) return true;
  if (!vec_push(&ctx->mem, &ctx->capture->held, b)) return false;
  b->pins++;
  return true;
}

static void let_go(TgContext *ctx, Capture *c) {
  for (size_t i = 0; i < c->held.len; i++)
    c->held.at[i]->pins--;
  vec_free(&ctx->mem, &c->held);
}

void capture_asks(TgContext *ctx, bool asks) {
  if (ctx->capture) ctx->capture->asks = asks;
}

void capture_step(TgContext *ctx, Plan *p, const BufferPart *buf, size_t nbuf, Buffer *const *temp) {
  Capture *c = ctx->capture;
  Step s = {.plan = p, .nbuf = nbuf, .ntemp = (size_t)p->sched.ntemp};
  s.buf = mem_alloc(&ctx->mem, (nbuf + 1) * sizeof *s.buf);
  s.temp = mem_alloc(&ctx->mem, (s.ntemp + 1) * sizeof *s.temp);
  if (s.buf && s.temp && vec_push(&ctx->mem, &c->steps, s)) {
    if (nbuf) memcpy(s.buf, buf, nbuf * sizeof *buf);
    if (s.ntemp) memcpy(s.temp, temp, s.ntemp * sizeof *temp);
    p->refs++;
    for (size_t i = 0; i < nbuf; i++)
      c->failed |= !hold(ctx, buf[i].buffer);
    for (size_t i = 0; i < s.ntemp; i++)
      c->failed |= !hold(ctx, temp[i]);
    return;
  }
  mem_free(&ctx->mem, s.buf), mem_free(&ctx->mem, s.temp);
  c->failed = true;
}

void capture_copied(TgContext *ctx, Buffer *from, size_t offset, Buffer *to, int exchange) {
  Step copy = {.from = from, .to = to, .offset = offset, .exchange = exchange};
  if (!vec_push(&ctx->mem, &ctx->capture->steps, copy) || !hold(ctx, from) || !hold(ctx, to))
    ctx->capture->failed = true;
}

void capture_stored(TgContext *ctx, Buffer *b) {
  Capture *c = ctx->capture;
  for (size_t i = 0; i < c->stored.len; i++)
    if (c->stored.at[i] == b) return;
  if (!vec_push(&ctx->mem, &c->stored, b) || !hold(ctx, b)) c->failed = true;
}

/* ---- creating and freeing */
static void capture_free(TgContext *ctx, Capture *c) {
  let_go(ctx, c);
  for (size_t i = 0; i < c->steps.len; i++) {
    replay_free(ctx, c->steps.at[i].replay);
    prepacked_free(ctx, c->steps.at[i].plan, c->steps.at[i].prepacked);
    plan_release(ctx, c->steps.at[i].plan);
    mem_free(&ctx->mem, c->steps.at[i].buf), mem_free(&ctx->mem, c->steps.at[i].temp);
  }
  vec_free(&ctx->mem, &c->steps), vec_free(&ctx->mem, &c->stored);
  *c = (Capture){0};
}

void jit_memories_free(TgJit *j) {
  for (size_t i = 0; i < j->memories.len; i++)
    tg_release(j->memories.at[i].t), mem_free(&j->ctx->mem, j->memories.at[i].name);
  vec_free(&j->ctx->mem, &j->memories);
}

Given *given_new(TgContext *ctx, int n) { return mem_alloc(&ctx->mem, ((size_t)n + 1) * sizeof(Given)); }

void given_placed(TgContext *ctx, Given *g, const Layout *at) {
  g->at = *at;
  for (int i = 0; i < at->n; i++)
    g->device[i] = device_at(ctx, at->device[i])->name;
}

static void given_free(TgContext *ctx, Given *g, int n) {
  for (int i = 0; g && i < n; i++)
    mem_free(&ctx->mem, g[i].name);
  mem_free(&ctx->mem, g);
}

/* Frees what j captured or was loaded from. */
static void jit_clear(TgJit *j) {
  TgContext *ctx = j->ctx;
  for (size_t i = 0; i < j->pinned.len; i++)
    j->pinned.at[i]->pins--;
  for (size_t i = 0; i < j->own.len; i++) {
    Buffer *b = j->own.at[i];
    Device *d = device_at(ctx, b->device);
    if (b->data) d->backend->free(d, b->data, (size_t)b->nelem * dtype_size(b->dtype));
    mem_free(&ctx->mem, b);
  }
  capture_free(ctx, &j->c);
  vec_free(&ctx->mem, &j->patches), vec_free(&ctx->mem, &j->own), vec_free(&ctx->mem, &j->pinned),
      vec_free(&ctx->mem, &j->draws);
  vec_free(&ctx->mem, &j->input_stored), vec_free(&ctx->mem, &j->variables), vec_free(&ctx->mem, &j->devices);
  given_free(ctx, j->given, j->ngiven), given_free(ctx, j->made, j->nmade);
  mem_free(&ctx->mem, j->in), mem_free(&ctx->mem, j->out);
  jit_memories_free(j);
  for (size_t i = 0; i < j->older.len; i++)
    tg_release(j->older.at[i]);
  vec_free(&ctx->mem, &j->older);
  older_forgotten(j);
  j->in = j->out = NULL;
  j->given = j->made = NULL;
  j->prepacked = j->stale = false;
  j->nin = j->nout = j->ngiven = j->nmade = j->runs = 0;
}

void tg_jit_reset(TgJit *j) {
  if (j && !j->loaded) jit_clear(j);
}

TgJit *jit_new(TgContext *ctx, TgJitFn fn, void *user) {
  TgJit *j = mem_alloc(&ctx->mem, sizeof *j);
  TG_REQUIRE(ctx, j, TG_ERR_NOMEM, "jit: out of memory");
  j->ctx = ctx;
  j->fn = fn;
  j->user = user;
  j->prepacks = ctx->env.prepack;
  j->invariant = ctx->env.invariant;
  j->next = ctx->jits;
  j->link = &ctx->jits;
  if (j->next) j->next->link = &j->next;
  ctx->jits = j;
  return j;
}

TgJit *tg_jit(TgContext *ctx, TgJitFn fn, void *user) {
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, fn, TG_ERR_VALUE, "jit: no function");
  return jit_new(ctx, fn, user);
}

TgContext *tg_jit_context(const TgJit *j) { return j ? j->ctx : NULL; }

void tg_jit_free(TgJit *j) {
  if (!j) return;
  jit_clear(j);
  *j->link = j->next;
  if (j->next) j->next->link = j->link;
  TgContext *ctx = j->ctx;
  vec_free(&ctx->mem, &j->expressions);
  mem_free(&ctx->mem, j);
}

/* ---- settings of the context that fn depends on */
static uint64_t trained_now(const TgJit *j) {
  uint64_t hash = 0;
  for (size_t i = 0; i < j->pinned.len; i++)
    hash = hash_mix(hash, memory_is_trained(j->pinned.at[i]));
  return hash;
}

/* Whether fn would build another graph now: tg_dropout drops elements or not, or other weights are
 * trained. */
static bool other_graph(TgJit *j) {
  const TgContext *ctx = j->ctx;
  bool other = j->training != ctx->training;
  if (j->runs == 2 && j->grad_switches != ctx->grad_switches) other |= j->trained != trained_now(j);
  j->training = ctx->training;
  j->grad_switches = ctx->grad_switches;
  return other;
}

/* ---- the function */
/* Runs the stores that wait. This is done before fn, which must not take them for its own, and after fn,
 * because nothing later may have to wait for them. */
TgStatus jit_stores_flushed(TgContext *ctx) {
  while (ctx->waiting.len) {
    size_t n = ctx->waiting.len;
    Buffer **b = mem_alloc(&ctx->mem, n * sizeof *b);
    if (!b) return error_no_memory(&ctx->err, "jit");
    for (size_t i = 0; i < n; i++)
      b[i] = ctx->buffers.at[ctx->waiting.at[i]];
    TgStatus s = engine_stores(ctx, b, n);
    mem_free(&ctx->mem, b);
    if (s) return s;
  }
  return TG_OK;
}

/* Whether an output has this value already. Two outputs with equal values of variables would share one
 * memory. */
static bool holds(TgTensor *const *out, int n, const UOp *value) {
  for (int i = 0; i < n; i++)
    if (out[i]->uop == value) return true;
  return false;
}

static TgStatus call(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < nout; i++)
    out[i] = NULL;
  TgStatus s = j->fn(ctx, in, nin, out, nout, j->user);
  if (s || ctx->err.status) return s ? error_set(&ctx->err, s, "jit: the function failed") : ctx->err.status;
  for (int i = 0; i < nout; i++) {
    if (!out[i] || out[i]->ctx != ctx)
      return error_set(&ctx->err, TG_ERR_VALUE, "jit: output %d is NULL or of another context", i);
    if (dims_symbolic(out[i]->uop->shape) && on_several(out[i]->uop))
      return error_set(&ctx->err, TG_ERR_SHAPE, "jit: output %d, on %s, has a symbolic size, shape %s", i,
                       tg_device(out[i]), SHAPE_OF(out[i]));
    UOp *value = out[i]->uop; /* each output needs memory of its own */
    if (value->op != OPS_CONTIGUOUS) value = uop_alu1(ctx->store, OPS_CONTIGUOUS, value);
    while (value && value->symbolic && holds(out, i, value))
      value = uop_alu1(ctx->store, OPS_CONTIGUOUS, value);
    out[i] = value ? tensor_new(ctx, value) : NULL;
    if (!out[i]) return ctx->err.status;
  }
  s = nout ? tg_realize_many(out, (size_t)nout) : TG_OK;
  for (int i = 0; i < nout && !s; i++)
    in_memory_now(ctx, out[i]);
  return s;
}

/* Makes the first call, and notes which of its inputs fn assigns to. */
static TgStatus first_call(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  uint64_t *counts;
  if (!inputs_counted(j, in, nin, &counts)) return error_no_memory(&ctx->err, "jit");
  TgStatus s = call(j, in, nin, out, nout);
  if (!s) inputs_assigned(j, in, nin, counts);
  mem_free(&ctx->mem, counts);
  return s;
}

/* ---- the capture */
static bool is_result(const Capture *c, const Buffer *b) {
  for (size_t i = 0; i < c->steps.len; i++)
    if (c->steps.at[i].to == b || buffers_have(c->steps.at[i].temp, c->steps.at[i].ntemp, b)) return true;
  return false;
}

/* Decides what a place of a step holds: an input or output to be filled in by each run, memory of the
 * list, or state. */
static bool settle(TgJit *j, Buffer **at, Buffer *const *in, Buffer *const *out, Map *own) {
  TgContext *ctx = j->ctx;
  Buffer *b = *at;
  if (!b) return true;
  for (int k = 0; k < j->nin; k++)
    if (in[k] == b) return vec_push(&ctx->mem, &j->patches, ((Patch){at, k}));
  for (int k = 0; k < j->nout; k++)
    if (out[k] == b) return vec_push(&ctx->mem, &j->patches, ((Patch){at, -1 - k}));
  Buffer *mine = map_get_ptr(own, b);
  if (mine || is_result(&j->c, b)) {
    if (!mine) {
      if (!(mine = mem_alloc(&ctx->mem, sizeof *mine))) return false;
      mine->dtype = b->dtype;
      mine->nelem = b->nelem;
      mine->device = b->device;
      mine->partly = b->partly;
      if (!vec_push(&ctx->mem, &j->own, mine) || !map_put_ptr(own, b, mine)) {
        if (!buffers_have(j->own.at, j->own.len, mine)) mem_free(&ctx->mem, mine);
        return false;
      }
    }
    *at = mine;
    return true;
  }
  if (buffers_have(j->pinned.at, j->pinned.len, b)) return true;
  if (b->draws) {
    if (!vec_push(&ctx->mem, &j->draws, b)) return false;
  } else if (b->made >= ctx->capture_first && !buffers_have(j->c.stored.at, j->c.stored.len, b)) {
    error_set(&ctx->err, TG_ERR_STATE,
              "jit: the function makes a tensor of %lld %s from data: at every replay it would be the same; "
              "give it as an input",
              (long long)b->nelem, dtype_name(b->dtype));
    return false;
  }
  if (!vec_push(&ctx->mem, &j->pinned, b)) return false;
  b->pins++;
  return true;
}

/* Drops copies of old versions that no step reads: they were kept for somebody outside. */
static void drop_copies(Capture *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->steps.len; i++) {
    const Step *s = &c->steps.at[i];
    bool used = s->plan != NULL;
    for (size_t k = 0; k < c->steps.len && !used; k++) {
      used = c->steps.at[k].from == s->to;
      for (size_t l = 0; l < c->steps.at[k].nbuf; l++)
        used |= c->steps.at[k].buf[l].buffer == s->to;
    }
    if (used) c->steps.at[n++] = *s;
  }
  c->steps.len = n;
}

/* Sorts the keys in the order in which the function drew them, because replays draw them in the same
 * order. */
static void sort_draws(TgJit *j) {
  for (size_t i = 1; i < j->draws.len; i++)
    for (size_t k = i; k > 0 && j->draws.at[k - 1]->made > j->draws.at[k]->made; k--) {
      Buffer *t = j->draws.at[k];
      j->draws.at[k] = j->draws.at[k - 1];
      j->draws.at[k - 1] = t;
    }
}

/* Makes every memory of the steps an input, an output, memory of the capture's own or state. Places that
 * are written are settled after those that are read, because is_result looks at them. */
static TgStatus memories_settled(TgJit *j, Buffer **b) {
  TgContext *ctx = j->ctx;
  Map own;
  map_init(&own, &ctx->mem);
  Buffer **out = b + j->nin;
  bool ok = true;
  for (size_t i = 0; ok && i < j->c.steps.len; i++)
    for (size_t k = 0; ok && k < j->c.steps.at[i].nbuf; k++)
      ok = settle(j, &j->c.steps.at[i].buf[k].buffer, b, out, &own);
  for (size_t i = 0; ok && i < j->c.steps.len; i++) {
    Step *p = &j->c.steps.at[i];
    ok = settle(j, &p->from, b, out, &own);
    for (size_t k = 0; ok && k < p->ntemp; k++)
      ok = settle(j, &p->temp[k], b, out, &own);
  }
  for (size_t i = 0; ok && i < j->c.steps.len; i++)
    ok = settle(j, &j->c.steps.at[i].to, b, out, &own);
  map_free(&own);
  if (ok) return TG_OK;
  return ctx->err.status ? ctx->err.status : error_no_memory(&ctx->err, "jit");
}

/* Calls fn, and records what is computed meanwhile. b: the memories of the inputs. */
static TgStatus call_recorded(TgJit *j, TgTensor **whole, int nin, TgTensor **out, int nout, Buffer **b) {
  TgContext *ctx = j->ctx;
  ctx->capture_first = ctx->buffers_made;
  ctx->capture = &j->c;
  j->c.of = j;
  for (int i = 0; i < j->nin; i++)
    b[i]->given = true;
  TgStatus s = call(j, whole, nin, out, nout);
  if (!s) s = jit_stores_flushed(ctx);
  for (int i = 0; i < j->nin; i++)
    b[i]->given = false;
  ctx->capture = NULL;
  return s || !j->c.failed ? s : error_no_memory(&ctx->err, "jit");
}

/* Captures a call of fn. All memories get a new version first. So nothing that fn builds is known as
 * already computed, and the capture contains all of its computation. */
static TgStatus capture_run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  size_t n = (size_t)(nin + nout) + 1;
  TgTensor **whole = mem_alloc(&ctx->mem, n * sizeof *whole);
  Buffer **b = mem_alloc(&ctx->mem, n * MOST_DEVICES * sizeof *b);
  TgStatus s = whole && b ? inputs_ready(ctx, in, nin, whole) : error_no_memory(&ctx->err, "jit");
  if (!s) s = inputs_taken(j, whole, nin, b);
  if (!s) s = inputs_copied(j, in, whole, b);
  if (!s) s = jit_stores_flushed(ctx);
  if (!s && !memories_renewed(ctx)) s = ctx->err.status;
  if (!s) s = call_recorded(j, whole, nin, out, nout, b);
  if (!s && !nout && !j->c.steps.len)
    s = error_set(&ctx->err, TG_ERR_STATE, "jit: the function computes nothing");

  if (!s) s = outputs_taken(j, out, nout, b + j->nin);
  drop_copies(&j->c);
  if (!s) s = memories_settled(j, b);
  if (!s) s = inputs_stored(j, in, whole, b);
  sort_draws(j);
  let_go(ctx, &j->c);
  older_memories(j);
  j->trained = trained_now(j);
  inputs_done(ctx, in, nin, whole);
  mem_free(&ctx->mem, b);
  if (s) jit_clear(j);
  j->runs = s ? 1 : 2;
  return s;
}

/* ---- replay */
/* Draws the keys anew. They are state that each replay writes from the host. */
static TgStatus drawn_again(TgJit *j) {
  TgContext *ctx = j->ctx;
  TgStatus s = engine_before_stores(ctx, j->draws.at, j->draws.len);
  for (size_t i = 0; !s && i < j->draws.len; i++)
    if ((s = draw_again(ctx, j->draws.at[i])) != TG_OK)
      error_set(&ctx->err, s, "jit: the key of a draw cannot be written");
  return s || stores_done(ctx, j->draws.at, j->draws.len) ? s : ctx->err.status;
}

static TgStatus step_copied(TgContext *ctx, const Step *s) {
  double begin = profile_now(ctx), now = ctx->inside ? time_now_s() : 0;
  Device *to = device_at(ctx, s->to->device), *from = device_at(ctx, s->from->device);
  size_t nbytes = (size_t)s->to->nelem * dtype_size(s->to->dtype);
  TgStatus st = device_copy(ctx, to, s->to->data, from, (const char *)s->from->data + s->offset, nbytes);
  if (!st && ctx->inside) inside_copied_again(ctx, s->exchange, (time_now_s() - now) * 1e6);
  profile_copy(ctx, begin, s->exchange, to, from, nbytes, false);
  return st;
}

typedef struct Steps {
  TgContext *ctx;
  Flight *flight;
  PlanRun *run; /* room for all plans */
} Steps;

/* Runs n plans. Plans that follow one another on a device are replayed as one graph. If copies run beside
 * them, they run kernel by kernel instead. */
static TgStatus plans_run(Steps *all, Step *s, size_t n) {
  TgContext *ctx = all->ctx;
  TgStatus st = TG_OK;
  for (size_t i = 0, next; i < n && !st; i = next) {
    for (next = i + 1; next < n && s[next].plan->dev == s[i].plan->dev;)
      next++;
    if (s[i].plan->dev->remote) continue;
    bool waits = all->flight && flight_waits(all->flight);
    for (size_t k = i; k < next; k++)
      all->run[k] =
          (PlanRun){s[k].plan, s[k].buf, s[k].temp, s[k].prepacked, waits ? all->flight : NULL, (int)k};
    for (size_t k = i; k < next && waits && !st; k++)
      st = plan_run(ctx, &all->run[k]);
    if (!waits) st = replay_run(ctx, &s[i].replay, all->run + i, next - i);
  }
  return st;
}

static int copy_crosses_ranks(TgContext *ctx, const Step *s) {
  return !s->plan && copy_crosses(device_at(ctx, s->to->device), device_at(ctx, s->from->device));
}

/* Returns how many of the first steps are copies of one kind, none of which reads what another one writes. */
static size_t copies_together(TgContext *ctx, const Step *s, size_t n,
                              int (*kind_of)(TgContext *, const Step *)) {
  size_t k = 0;
  for (int kind = n ? kind_of(ctx, s) : 0; k < n && kind && kind_of(ctx, &s[k]) == kind; k++)
    for (size_t i = 0; i < k; i++)
      if (s[i].to == s[k].from) return k;
  return k;
}

static TgStatus steps_run_in(Steps *all, Step *s, size_t n) {
  TgContext *ctx = all->ctx;
  Flight *f = all->flight;
  TgStatus st = TG_OK;
  for (size_t i = 0; i < n && !st;) {
    size_t plans = 0;
    for (; i + plans < n && s[i + plans].plan; plans++)
      plan_shared(ctx, s[i + plans].plan);
    size_t copies = f ? copies_together(ctx, s + i + plans, n - i - plans, copy_flies) : 0;
    if (copies) st = flight_begin(f, s + i, plans, s + i + plans, copies);
    if (!st) st = plans_run(all, s + i, plans);
    if (!st && copies) st = flight_left(f);
    i += plans + copies;
    if (plans + copies || st) continue;
    if (f) st = flight_end(f);
    size_t together = TG_MAX(copies_together(ctx, s + i, n - i, copy_crosses_ranks), 1);
    copies_gathered(ctx, together > 1);
    for (; together && !st; together--)
      st = step_copied(ctx, &s[i++]);
    copies_gathered(ctx, false);
    if (!st) st = copies_awaited(ctx);
  }
  return !st && f ? flight_end(f) : st;
}

static TgStatus steps_run(TgContext *ctx, Step *s, size_t n, Buffer *const *stored, size_t nstored) {
  Steps all = {.ctx = ctx, .run = mem_alloc(&ctx->mem, (n + 1) * sizeof *all.run)};
  bool flies = ctx->comm != NULL;
  for (size_t i = 0; i < n && !flies; i++)
    flies = copy_flies(ctx, &s[i]) != 0;
  if (flies) all.flight = flight_new(ctx, stored, nstored);
  bool room = all.run && (all.flight || !flies);
  TgStatus st = room ? steps_run_in(&all, s, n) : error_no_memory(&ctx->err, "jit");
  flight_free(all.flight);
  mem_free(&ctx->mem, all.run);
  return st;
}

/* Replays the capture. Everything that can be refused is checked before the first step runs, because
 * otherwise memories could be left half written. Nothing runs if the capture turns out to be stale. This
 * happens if fn assigns to an input which is, for the first time, memory that an older expression is read
 * from, or if an input is state of the capture. */
static TgStatus replay(TgJit *j, TgTensor *const *in, TgTensor **out) {
  TgContext *ctx = j->ctx;
  size_t nstored = 0, most = j->c.stored.len + j->input_stored.len, n = (size_t)(j->nin + j->nout) + 1;
  Buffer **b = mem_alloc(&ctx->mem, n * sizeof *b);
  Buffer **stored = mem_alloc(&ctx->mem, (most + 1) * sizeof *stored);
  TgTensor **whole = mem_alloc(&ctx->mem, n * sizeof *whole);
  TgStatus s = b && stored && whole ? jit_stores_flushed(ctx) : error_no_memory(&ctx->err, "jit");
  if (!s) s = inputs_checked(j, in);
  if (!s) s = inputs_ready(ctx, in, j->ngiven, whole);
  if (!s) s = inputs_memories(ctx, whole, j->ngiven, b, NULL);
  for (int i = 0; !s && i < j->nin; i++)
    j->stale |= input_is_state(j, i, b[i]);
  if (!s) s = outputs_new(j, out, b + j->nin);
  for (size_t i = 0; !s && i < j->own.len; i++)
    if ((s = buffer_ready(ctx, j->own.at[i])) != TG_OK) error_set(&ctx->err, s, "jit: no device memory");
  for (size_t i = 0; !s && i < j->patches.len; i++)
    *j->patches.at[i].at = b[j->patches.at[i].k >= 0 ? j->patches.at[i].k : j->nin - 1 - j->patches.at[i].k];
  for (size_t i = 0; !s && i < j->c.stored.len; i++)
    if (j->c.stored.at[i]) stored[nstored++] = j->c.stored.at[i];
  for (size_t i = 0; !s && i < j->input_stored.len; i++) {
    s = input_whole(j, j->input_stored.at[i], in, whole);
    stored[nstored++] = b[j->input_stored.at[i]];
  }
  if (!s) s = jit_prepack(j);
  if (!s) s = engine_before_stores(ctx, stored, nstored);
  if (!s && !j->stale) s = drawn_again(j);
  if (!s && !j->stale) s = steps_run(ctx, j->c.steps.at, j->c.steps.len, stored, nstored);
  if (!s && !j->stale && !stores_done(ctx, stored, nstored)) s = ctx->err.status;
  inputs_done(ctx, in, j->ngiven, whole);
  mem_free(&ctx->mem, b), mem_free(&ctx->mem, stored);
  return s;
}

static TgStatus run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  if (j->runs == 0) {
    Map older, *outer = ctx->older; /* fn may run another captured function */
    j->expressions.len = 0;
    TgStatus s = inputs_realized(ctx, in, nin);
    if (s) return s;
    s = older_begin(ctx, &older) ? TG_OK : error_no_memory(&ctx->err, "jit");
    if (!s) s = first_call(j, in, nin, out, nout);
    s = older_end(j, &older, s);
    ctx->older = outer;
    if (!s) j->runs = 1;
    return s;
  }
  if (j->runs == 1) return capture_run(j, in, nin, out, nout);
  TG_REQUIRE_OR(ctx, nin == j->ngiven && nout == j->nmade, TG_ERR_VALUE, TG_ERR_VALUE,
                "jit: %d inputs and %d outputs, captured with %d and %d", nin, nout, j->ngiven, j->nmade);
  TgStatus s = replay(j, in, out);
  if (s || !j->stale) return s;
  for (int i = 0; i < nout; i++)
    tg_release(out[i]);
  jit_clear(j);
  return run(j, in, nin, out, nout);
}

TgStatus tg_jit_run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  if (!j) return TG_ERR_VALUE;
  TgContext *ctx = j->ctx;
  if (capture_refuses(ctx, "jit")) return TG_ERR_STATE;
  TG_REQUIRE_OR(ctx, ctx->dev_open, TG_ERR_DEVICE, TG_ERR_DEVICE, "jit: no device is open");
  TG_REQUIRE_OR(
      ctx, !j->loaded || !j->stale, TG_ERR_STATE, TG_ERR_STATE,
      "jit: a tensor of the loaded program's state was replaced; assign to it, or load the program again");
  TG_REQUIRE_OR(ctx, nin >= 0 && nout >= 0 && (!nin || in) && (!nout || out), TG_ERR_VALUE, TG_ERR_VALUE,
                "jit: %d inputs, %d outputs", nin, nout);
  TgTensor **given = mem_alloc_raw(&ctx->mem, ((size_t)nin + 1) * sizeof *given);
  if (!given) return error_no_memory(&ctx->err, "jit");
  if (nin) memcpy(given, in, (size_t)nin * sizeof *given); /* out may be the same list */
  if (other_graph(j) || j->stale) tg_jit_reset(j);
  static const char *const names[] = {"first run", "capture", "replay"};
  double begin = profile_now(ctx);
  int runs = j->runs, invariant = ctx->env.invariant;
  ctx->env.invariant = j->invariant;
  j->running = true;
  TgStatus s = run(j, given, nin, out, nout);
  mem_free(&ctx->mem, given);
  j->running = false;
  if (j->stale) tg_jit_reset(j);
  ctx->env.invariant = invariant;
  profile_span(ctx, names[TG_MIN(runs, 2)], begin, "\"inputs\":%d,\"outputs\":%d", nin, nout);
  return rank_going_on(ctx, s);
}
