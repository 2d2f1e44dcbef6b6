/* jit.c: capture and replay. In: a function on tensors. Out: the list of its plans with their buffers; a
 * replay runs the list with the inputs' buffers, and new ones for the outputs, in place of the captured ones.
 * A captured buffer is an input, an output, a result that only the list needs (then the list has memory of
 * its own for it), or state: memory that was there before, or that the function assigned to. State is pinned:
 * it stays while the capture lives. */
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

/* ---- life */
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

/* What it captured, or was made of, goes. */
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
  vec_free(&ctx->mem, &j->expressions), vec_free(&ctx->mem, &j->assigned);
  mem_free(&ctx->mem, j);
}

/* ---- the function */
/* Stores that wait are run: before fn, which must not take them for its own; after it, since nothing later
 * may be what they wait for. */
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

static TgStatus call(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < nout; i++)
    out[i] = NULL;
  TgStatus s = j->fn(ctx, in, nin, out, nout, j->user);
  if (s || ctx->err.status) return s ? error_set(&ctx->err, s, "jit: the function failed") : ctx->err.status;
  for (int i = 0; i < nout; i++) {
    if (!out[i] || out[i]->ctx != ctx)
      return error_set(&ctx->err, TG_ERR_VALUE, "jit: output %d is NULL or of another context", i);
    if (dims_symbolic(out[i]->uop->shape))
      return error_set(&ctx->err, TG_ERR_SHAPE, "jit: output %d has a symbolic size, shape %s", i,
                       SHAPE_OF(out[i]));
    UOp *value = out[i]->uop; /* in memory of its own */
    out[i] =
        tensor_new(ctx, value->op == OPS_CONTIGUOUS ? value : uop_alu1(ctx->store, OPS_CONTIGUOUS, value));
    if (!out[i]) return ctx->err.status;
  }
  s = nout ? tg_realize_many(out, (size_t)nout) : TG_OK;
  for (int i = 0; i < nout && !s; i++) { /* memory does not change with a variable */
    UOp *value = out[i]->uop->symbolic ? value_of_node(ctx, out[i]->uop) : NULL;
    if (value && view_bottom(value)) tensor_set(out[i], value);
  }
  return s;
}

/* ---- tensors on several devices: each part is a tensor of the list */
static int nparts_of(const TgTensor *t) {
  return t && on_several(t->uop) ? __builtin_popcountll(t->uop->devices) : 1;
}

static int parts_count(TgTensor *const *t, int n) {
  int parts = 0;
  for (int i = 0; i < n; i++)
    parts += nparts_of(t[i]);
  return parts;
}

static bool has_own_memory(const TgTensor *t) {
  for (int i = 0; i < t->nparts; i++)
    if (!has_own_memory(t->part[i])) return false;
  return (t->part && !t->indirect) || (t->memory && in_memory(t->uop));
}

static Want want_of(TgTensor *t) {
  Want w = {.dtype = dt(t), .n = rank(t), .device = tensor_device(t)};
  memcpy(w.dims, dims(t), (size_t)w.n * sizeof *w.dims);
  return w;
}

/* The memory of part p of t, which is realized, and what it is; a value of variables has no handles of its
 * parts. NULL: recorded. */
static Buffer *part_value(TgTensor *t, int p, Want *want) {
  TgContext *ctx = t->ctx;
  TgTensor *of = t->part ? t->part[p] : t, *own = NULL;
  if (!t->part && on_several(t->uop)) {
    UOp *multi = multi_lowered(ctx, t->uop);
    of = own = multi ? shard_hidden(ctx, multi->src[p]) : NULL;
  }
  Buffer *b = of ? value_of(ctx, of) : NULL;
  if (of && want) *want = want_of(of);
  if (!of) error_no_memory(&ctx->err, "jit");
  tg_release(own);
  return b;
}

static TgStatus inputs_realized(TgContext *ctx, TgTensor *const *in, int nin) {
  for (int i = 0; i < nin; i++) {
    TG_REQUIRE_OR(ctx, in[i] && in[i]->ctx == ctx, TG_ERR_VALUE, TG_ERR_VALUE,
                  "jit: input %d is NULL or of another context", i);
    if (tg_realize(in[i])) return ctx->err.status;
  }
  return TG_OK;
}

/* Each input in a memory of its own, or one for each part: whole[i] is in[i], or a copy of what is a part of
 * another. */
static TgStatus inputs_ready(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole) {
  TgStatus s = inputs_realized(ctx, in, nin);
  for (int i = 0; !s && i < nin; i++) {
    TG_REQUIRE_OR(ctx, !dims_symbolic(in[i]->uop->shape), TG_ERR_SHAPE, TG_ERR_SHAPE,
                  "jit: input %d has a symbolic size, shape %s", i, SHAPE_OF(in[i]));
    TgTensor *t = in[i];
    UOp *own = has_own_memory(t) ? NULL : uop_alu1(ctx->store, OPS_CONTIGUOUS, t->uop);
    if (own && (!(t = tensor_new(ctx, own)) || tg_realize(t))) return ctx->err.status;
    whole[i] = t;
  }
  return s;
}

static void inputs_done(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole) {
  for (int i = 0; whole && i < nin; i++)
    if (whole[i] != in[i]) tg_release(whole[i]);
  mem_free(&ctx->mem, whole);
}

/* What was captured has left its gradient in the copy. */
static void gradient_moved(TgTensor *to, TgTensor *from) {
  if (to == from || !to->requires_grad || !from->grad) return;
  if (to->grad) to->grad->grad_of = NULL;
  to->grad = from->grad;
  to->grad->grad_of = to;
  from->grad = NULL;
}

/* How often what t holds was stored to, or is to be. */
static uint64_t stores_of(const TgTensor *t) {
  uint64_t n = t->memory ? t->memory->version + (t->memory->store != NULL) : 0;
  for (int i = 0; i < t->nparts; i++)
    n += stores_of(t->part[i]);
  return n;
}

static bool assigns(const TgJit *j, int input) {
  for (size_t i = 0; i < j->assigned.len; i++)
    if (j->assigned.at[i] == input) return true;
  return false;
}

/* The first call; notes which of its inputs fn assigns to. */
static TgStatus first_call(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  uint64_t *was = mem_alloc(&ctx->mem, ((size_t)nin + 1) * sizeof *was);
  if (!was) return error_no_memory(&ctx->err, "jit");
  for (int i = 0; i < nin; i++)
    was[i] = stores_of(in[i]);
  TgStatus s = call(j, in, nin, out, nout);
  for (int i = 0; !s && i < nin; i++)
    if (stores_of(in[i]) != was[i] && !assigns(j, i) && !vec_push(&ctx->mem, &j->assigned, i))
      s = error_no_memory(&ctx->err, "jit");
  mem_free(&ctx->mem, was);
  return s;
}

/* What fn assigns to is the caller's memory. All else is captured in a copy: fn may know the same memory by
 * another handle, which stays what it is when the input is another one. */
static TgStatus inputs_copied(const TgJit *j, TgTensor *const *in, int nin, TgTensor **whole) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < nin; i++) {
    bool only_files =
        !on_several(in[i]->uop) && (device_at(ctx, tensor_device(in[i]))->backend->has & HAS_FILES_ONLY) != 0;
    if (whole[i] != in[i] || only_files || assigns(j, i)) continue;
    if (!(whole[i] = tg_clone(in[i])) || tg_realize(whole[i])) return ctx->err.status;
  }
  return TG_OK;
}

/* The memories of inputs, by part, and where want is not NULL what they are; none is two inputs'. */
static TgStatus inputs_memories(TgContext *ctx, TgTensor *const *whole, int nin, Buffer **b, Want *want) {
  for (int i = 0, at = 0; i < nin; i++) {
    for (int p = 0; p < nparts_of(whole[i]); p++, at++) {
      if (!(b[at] = part_value(whole[i], p, want ? &want[at] : NULL))) return ctx->err.status;
      for (int k = 0, before = 0; before < at; k++)
        for (int q = 0; q < nparts_of(whole[k]) && before < at; q++, before++)
          TG_REQUIRE_OR(ctx, b[before] != b[at], TG_ERR_VALUE, TG_ERR_VALUE,
                        "jit: inputs %d and %d are one memory", k, i);
    }
  }
  return TG_OK;
}

/* ---- the capture */
static bool list_has(Buffer *const *v, size_t n, const Buffer *b) {
  for (size_t i = 0; i < n; i++)
    if (v[i] == b) return true;
  return false;
}

static bool is_result(const Capture *c, const Buffer *b) {
  for (size_t i = 0; i < c->steps.len; i++)
    if (c->steps.at[i].to == b || list_has(c->steps.at[i].temp, c->steps.at[i].ntemp, b)) return true;
  return false;
}

/* What stands in one place of a step: an input or output to be put in, memory of the list, or state. */
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
      if (!vec_push(&ctx->mem, &j->own, mine) || !map_put_ptr(own, b, mine)) {
        if (!list_has(j->own.at, j->own.len, mine)) mem_free(&ctx->mem, mine);
        return false;
      }
    }
    *at = mine;
    return true;
  }
  if (list_has(j->pinned.at, j->pinned.len, b)) return true;
  if (b->draws) {
    if (!vec_push(&ctx->mem, &j->draws, b)) return false;
  } else if (b->made >= ctx->capture_first && !list_has(j->c.stored.at, j->c.stored.len, b)) {
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

/* A copy of an old version is a step only if one of the steps reads it; else it was kept for somebody
 * outside. */
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

static bool given_of(TgTensor *t, Given *g) {
  UOp *multi = on_several(t->uop) ? multi_lowered(t->ctx, t->uop) : NULL;
  if (on_several(t->uop) && !multi) return false;
  Layout at = {.n = 1, .axis = -1, .device = {tensor_device(t)}};
  if (multi) at = layout_of(multi);
  *g = (Given){.want = want_of(t)};
  given_placed(t->ctx, g, &at);
  return true;
}

/* Keys are drawn again in the order in which the function drew them. */
static void sort_draws(TgJit *j) {
  for (size_t i = 1; i < j->draws.len; i++)
    for (size_t k = i; k > 0 && j->draws.at[k - 1]->made > j->draws.at[k]->made; k--) {
      Buffer *t = j->draws.at[k];
      j->draws.at[k] = j->draws.at[k - 1];
      j->draws.at[k - 1] = t;
    }
}

/* The outputs' values in memory, b, and what a replay must make of them. */
static TgStatus outputs_taken(TgJit *j, TgTensor **out, Buffer **b) {
  for (int i = 0, at = 0; i < j->nmade; i++) {
    if (!given_of(out[i], &j->made[i])) return j->ctx->err.status;
    for (int p = 0; p < nparts_of(out[i]); p++, at++)
      if (!(b[at] = part_value(out[i], p, &j->out[at]))) return j->ctx->err.status;
  }
  return TG_OK;
}

/* Lists for n tensors of so many parts. */
static TgStatus lists_made(TgJit *j, int n, int parts, Given **given, Want **want) {
  *given = given_new(j->ctx, n);
  *want = mem_alloc(&j->ctx->mem, ((size_t)parts + 1) * sizeof **want);
  return *given && *want ? TG_OK : error_no_memory(&j->ctx->err, "jit");
}

/* What the function is given, in `whole`, and its memories. */
static TgStatus inputs_taken(TgJit *j, TgTensor *const *whole, int nin, Buffer **b) {
  TgStatus s = lists_made(j, nin, parts_count(whole, nin), &j->given, &j->in);
  if (!s) s = inputs_memories(j->ctx, whole, nin, b, j->in);
  if (s) return s;
  j->ngiven = nin;
  j->nin = parts_count(whole, nin);
  for (int i = 0; i < nin; i++)
    if (!given_of(whole[i], &j->given[i])) return j->ctx->err.status;
  return TG_OK;
}

/* Every memory of the steps becomes an input, an output, memory of the capture's own or one that stays. What
 * is written comes after all that is read: is_result looks at it. */
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

/* The input that memory k of the list is of. */
static int given_at(const TgJit *j, int k) {
  int i = 0;
  for (; i < j->ngiven && k >= j->given[i].at.n; i++)
    k -= j->given[i].at.n;
  return i;
}

/* Of an input that fn did not assign to when it was called first, and does now, a copy was captured: the input
 * gets what that holds, and fn is called anew. */
static TgStatus copy_stored(TgJit *j, int of, TgTensor *in, TgTensor *copy) {
  j->stale = true;
  if (!vec_push(&j->ctx->mem, &j->assigned, of)) return error_no_memory(&j->ctx->err, "jit");
  return tg_assign(in, copy) ? tg_realize(in) : j->ctx->err.status;
}

/* Inputs that the function assigns to: another memory at every replay. What else is stored to and does not
 * stay is memory of the list's own, which nobody outside has a version of. */
static TgStatus stored_inputs(TgJit *j, TgTensor *const *in, TgTensor *const *whole, Buffer *const *b) {
  for (size_t i = 0; i < j->c.stored.len; i++) {
    for (int k = 0; k < j->nin + j->nout; k++) {
      if (j->c.stored.at[i] != b[k]) continue;
      int of = given_at(j, k);
      if (k < j->nin && whole[of] != in[of] && has_own_memory(in[of])) {
        TgStatus s = copy_stored(j, of, in[of], whole[of]);
        if (s) return s;
      } else if (k < j->nin && whole[of] != in[of])
        return error_set(
            &j->ctx->err, TG_ERR_VALUE,
            "jit: input %d is assigned to by the function, and is no memory of its own; give the "
            "whole tensor",
            of);
      if (k < j->nin && !vec_push(&j->ctx->mem, &j->input_stored, k))
        return error_no_memory(&j->ctx->err, "jit");
      j->c.stored.at[i] = NULL;
      break;
    }
    if (!list_has(j->pinned.at, j->pinned.len, j->c.stored.at[i])) j->c.stored.at[i] = NULL;
  }
  return TG_OK;
}

/* fn is called on a new version of everything, so that what it builds is found nowhere, computed before: it
 * is computed in the capture, each time. */
static TgStatus capture_run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  size_t n = (size_t)(nin + nout) + 1;
  TgTensor **whole = mem_alloc(&ctx->mem, n * sizeof *whole);
  Buffer **b = mem_alloc(&ctx->mem, n * MOST_DEVICES * sizeof *b);
  TgStatus s = whole && b ? inputs_ready(ctx, in, nin, whole) : error_no_memory(&ctx->err, "jit");
  if (!s) s = inputs_copied(j, in, nin, whole);
  if (!s) s = inputs_taken(j, whole, nin, b);
  if (!s) s = jit_stores_flushed(ctx);
  if (!s && !memories_renewed(ctx)) s = ctx->err.status;

  ctx->capture_first = ctx->buffers_made;
  ctx->capture = &j->c;
  j->c.of = j;
  for (int i = 0; !s && i < j->nin; i++)
    b[i]->given = true;
  if (!s) s = call(j, whole, nin, out, nout);
  if (!s) s = jit_stores_flushed(ctx);
  for (int i = 0; i < j->nin; i++)
    b[i]->given = false;
  ctx->capture = NULL;
  if (!s && j->c.failed) s = error_no_memory(&ctx->err, "jit");
  if (!s && !nout && !j->c.steps.len)
    s = error_set(&ctx->err, TG_ERR_STATE, "jit: the function computes nothing");

  if (!s) s = lists_made(j, nout, parts_count(out, nout), &j->made, &j->out);
  if (!s) {
    j->nmade = nout;
    j->nout = parts_count(out, nout);
    s = outputs_taken(j, out, b + j->nin);
  }
  drop_copies(&j->c);
  if (!s) s = memories_settled(j, b);
  if (!s) s = stored_inputs(j, in, whole, b);
  sort_draws(j);
  let_go(ctx, &j->c);
  older_memories(j);
  for (int i = 0; !s && i < nin; i++)
    gradient_moved(in[i], whole[i]);
  inputs_done(ctx, in, nin, whole);
  mem_free(&ctx->mem, b);
  if (s) jit_clear(j);
  j->runs = s ? 1 : 2;
  return s;
}

/* ---- replay */
/* An input is split as it was when it was captured. */
static TgStatus split_checked(TgContext *ctx, int i, TgTensor *t, const Given *g) {
  Given now;
  if (!given_of(t, &now)) return ctx->err.status;
  const Layout *a = &now.at, *b = &g->at;
  bool same = a->n == b->n && a->axis == b->axis &&
              !memcmp(a->device, b->device, (size_t)a->n * sizeof *a->device) &&
              (a->axis < 0 || !memcmp(a->bound, b->bound, (size_t)(a->n + 1) * sizeof *a->bound));
  TG_REQUIRE_OR(
      ctx, same, TG_ERR_DEVICE, TG_ERR_DEVICE,
      "jit: input %d is on %s, along axis %d, and was captured on other devices, or split otherwise", i,
      tg_device(t), a->axis);
  return TG_OK;
}

static TgStatus inputs_checked(TgJit *j, TgTensor *const *in) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < j->ngiven; i++) {
    TG_REQUIRE_OR(ctx, in[i] && in[i]->ctx == ctx, TG_ERR_VALUE, TG_ERR_VALUE,
                  "jit: input %d is NULL or of another context", i);
    const Given *g = &j->given[i];
    const Want *w = &g->want;
    TG_REQUIRE_OR(ctx, dt(in[i]) == w->dtype, TG_ERR_DTYPE, TG_ERR_DTYPE,
                  "jit: input %d is %s, captured as %s", i, dtype_name(dt(in[i])), dtype_name(w->dtype));
    TG_REQUIRE_OR(ctx, tensor_device(in[i]) == w->device, TG_ERR_DEVICE, TG_ERR_DEVICE,
                  "jit: input %d is on %s, captured on %s", i, tg_device(in[i]),
                  device_at(ctx, w->device)->name);
    TG_REQUIRE_OR(ctx, rank(in[i]) == w->n && !memcmp(dims(in[i]), w->dims, (size_t)w->n * sizeof *w->dims),
                  TG_ERR_SHAPE, TG_ERR_SHAPE, "jit: input %d has shape %s, captured as %s", i,
                  SHAPE_OF(in[i]), dims_text(ctx->store, w->n, w->dims).s);
    TgStatus s = on_several(in[i]->uop) || g->at.n > 1 ? split_checked(ctx, i, in[i], g) : TG_OK;
    if (s) return s;
  }
  return TG_OK;
}

int64_t dims_nelem(int n, const int64_t *dims) {
  int64_t nelem = 1;
  for (int k = 0; k < n; k++)
    nelem *= dims[k];
  return nelem;
}

/* Memory for an output, or for one part of it. */
static UOp *output_memory(TgJit *j, const Want *w, Buffer **b) {
  TgContext *ctx = j->ctx;
  UOp *u =
      buffer_node(ctx, w->device, w->dtype, dims_nelem(w->n, w->dims), ints_get(ctx->store, w->n, w->dims));
  *b = u ? buffer_get(ctx, view_bottom(u)) : NULL;
  if (!*b) return NULL;
  (*b)->partly = j->cleared;
  if (buffer_ready(ctx, *b)) return NULL;
  (*b)->filled = true;
  return u;
}

static TgStatus outputs_new(TgJit *j, TgTensor **out, Buffer **b) {
  TgContext *ctx = j->ctx;
  UOp *part[MOST_DEVICES];
  for (int i = 0, at = 0; i < j->nmade; i++) {
    int n = j->made[i].at.n;
    bool ok = true;
    for (int p = 0; ok && p < n; p++, at++)
      ok = (part[p] = output_memory(j, &j->out[at], &b[at])) != NULL;
    UOp *all = !ok ? NULL : n > 1 ? multi_new(ctx->store, &j->made[i].at, part) : part[0];
    out[i] = all ? n > 1 ? tensor_new(ctx, all) : tensor_memory(ctx, all) : NULL;
    if (!out[i] || (n > 1 && !shard_parts(out[i], all, true))) return error_no_memory(&ctx->err, "jit");
  }
  return TG_OK;
}

/* The keys of draws are state that each replay writes, from the host. */
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
  PlanRun *run; /* room for all */
} Steps;

/* Plans that follow one another on a device are replayed as one graph; where copies go beside them, kernel by
 * kernel. */
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

/* How many of the steps are such copies, all of one kind and none of what another of them brings. */
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

/* Whether an input is memory that the capture has as state, and one of the two is stored to: fn would see that
 * in both, and the capture has two memories. */
static bool is_state(const TgJit *j, int k, const Buffer *b) {
  if (!b->pins || !list_has(j->pinned.at, j->pinned.len, b)) return false;
  bool stored = list_has(j->c.stored.at, j->c.stored.len, b);
  for (size_t i = 0; i < j->input_stored.len; i++)
    stored |= j->input_stored.at[i] == k;
  return stored;
}

/* Everything that can be refused is looked at before a step runs: what is stored to would be half written.
 * Nothing runs where the capture turns out to be stale: fn reads an expression of what it assigns to, which
 * this input is for the first time, or this input is state. */
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
    j->stale |= is_state(j, i, b[i]);
  if (!s) s = outputs_new(j, out, b + j->nin);
  for (size_t i = 0; !s && i < j->own.len; i++)
    if ((s = buffer_ready(ctx, j->own.at[i])) != TG_OK) error_set(&ctx->err, s, "jit: no device memory");
  for (size_t i = 0; !s && i < j->patches.len; i++)
    *j->patches.at[i].at = b[j->patches.at[i].k >= 0 ? j->patches.at[i].k : j->nin - 1 - j->patches.at[i].k];
  for (size_t i = 0; !s && i < j->c.stored.len; i++)
    if (j->c.stored.at[i]) stored[nstored++] = j->c.stored.at[i];
  for (size_t i = 0; !s && i < j->input_stored.len; i++) {
    int k = j->input_stored.at[i], of = given_at(j, k);
    if (whole[of] != in[of])
      s = error_set(
          &ctx->err, TG_ERR_VALUE,
          "jit: input %d is assigned to by the function, and is no memory of its own; give the whole tensor",
          of);
    stored[nstored++] = b[k];
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
  if (j->stale) tg_jit_reset(j);
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
