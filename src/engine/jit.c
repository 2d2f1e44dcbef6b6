/* jit.c: capture and replay. In: a function on tensors. Out: the list of its plans with their buffers; a replay runs the list with the inputs' buffers,
 * and new ones for the outputs, in place of the captured ones.
 * A captured buffer is an input, an output, a result that only the list needs (then the list has memory of its own for it), or state: memory that was
 * there before, or that the function assigned to. State is pinned: it stays while the capture lives. */
#include "engine/engine.h"
#include "tensor/front.h"

typedef struct Step { Plan *plan; Buffer **buf, **temp; size_t nbuf, ntemp; } Step;
typedef struct Patch { Buffer **at; int k; } Patch;           /* k: input k, or -1 - output */
typedef struct Capture { Vec(Step) steps; Vec(int64_t) stored; size_t first; bool failed; } Capture;
typedef struct Want { DType dtype; int n; int64_t dims[TG_MAX_RANK]; } Want;
struct TgJit {
  TgContext *ctx;
  TgJit *next, **link;
  TgJitFn fn;
  void *user;
  int runs;                                                  /* 0: the next is the first; 1: the next captures; 2: replays */
  uint64_t dropped;                                          /* ctx->plans_dropped of the capture */
  Capture c;
  Vec(UOp *) first_values;                                   /* what the first run realized */
  Vec(Patch) patches;
  Vec(Buffer *) own, pinned, draws;
  Vec(int64_t) input_stored;                                 /* inputs that fn assigns to */
  int nin, nout;
  Want *in, *out;
};

/* ---- hooks of the engine and the front end */
static bool kept_copy(TgContext *ctx, Buffer *const *from, size_t n, Buffer ***to) {
  *to = mem_alloc(&ctx->mem, (n + 1) * sizeof **to);
  if (*to && n) memcpy(*to, from, n * sizeof **to);
  return *to != NULL;
}
void capture_step(TgContext *ctx, Plan *p, Buffer *const *buf, size_t nbuf, Buffer *const *temp) {
  Capture *c = ctx->capture;
  Step s = {.plan = p, .nbuf = nbuf, .ntemp = (size_t)p->sched.ntemp};
  bool ok = kept_copy(ctx, buf, nbuf, &s.buf);
  ok = kept_copy(ctx, temp, s.ntemp, &s.temp) && ok;
  if (ok && vec_push(&ctx->mem, &c->steps, s)) return;
  mem_free(&ctx->mem, s.buf), mem_free(&ctx->mem, s.temp);
  c->failed = true;
}
void capture_stored(TgContext *ctx, UOp *const *buffers, size_t n) {
  for (size_t i = 0; i < n; i++) if (!vec_push(&ctx->mem, &ctx->capture->stored, buffers[i]->arg.param.slot)) ctx->capture->failed = true;
}
bool capture_refuses(TgContext *ctx, const char *op) {
  if (ctx->capture) error_set(&ctx->err, TG_ERR_STATE, "%s: not inside a function that is captured: what it sees now would hold for every replay", op);
  return ctx->capture != NULL;
}

/* ---- life */
static void capture_free(TgContext *ctx, Capture *c) {
  for (size_t i = 0; i < c->steps.len; i++) mem_free(&ctx->mem, c->steps.at[i].buf), mem_free(&ctx->mem, c->steps.at[i].temp);
  vec_free(&ctx->mem, &c->steps), vec_free(&ctx->mem, &c->stored);
  *c = (Capture){0};
}
void tg_jit_reset(TgJit *j) {
  if (!j) return;
  TgContext *ctx = j->ctx;
  for (size_t i = 0; i < j->pinned.len; i++) j->pinned.at[i]->pins--;
  for (size_t i = 0; i < j->own.len; i++) {
    Buffer *b = j->own.at[i];
    if (b->data) ctx->dev.backend->free(&ctx->dev, b->data, (size_t)b->nelem * dtype_size(b->dtype));
    mem_free(&ctx->mem, b);
  }
  capture_free(ctx, &j->c);
  vec_free(&ctx->mem, &j->patches), vec_free(&ctx->mem, &j->own), vec_free(&ctx->mem, &j->pinned), vec_free(&ctx->mem, &j->draws), vec_free(&ctx->mem, &j->first_values);
  vec_free(&ctx->mem, &j->input_stored);
  mem_free(&ctx->mem, j->in), mem_free(&ctx->mem, j->out);
  j->in = j->out = NULL, j->runs = 0;
}
TgJit *tg_jit(TgContext *ctx, TgJitFn fn, void *user) {
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, fn, TG_ERR_VALUE, "jit: no function");
  TgJit *j = mem_alloc(&ctx->mem, sizeof *j);
  TG_REQUIRE(ctx, j, TG_ERR_NOMEM, "jit: out of memory");
  j->ctx = ctx, j->fn = fn, j->user = user;
  j->next = ctx->jits, j->link = &ctx->jits;
  if (j->next) j->next->link = &j->next;
  ctx->jits = j;
  return j;
}
void tg_jit_free(TgJit *j) {
  if (!j) return;
  tg_jit_reset(j);
  *j->link = j->next;
  if (j->next) j->next->link = j->link;
  TgContext *ctx = j->ctx;
  mem_free(&ctx->mem, j);
}

/* ---- the first run, and what the capture must not find done */
static TgStatus call(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < nout; i++) out[i] = NULL;
  TgStatus s = j->fn(ctx, in, nin, out, nout, j->user);
  if (s || ctx->err.status) return s ? error_set(&ctx->err, s, "jit: the function failed") : ctx->err.status;
  for (int i = 0; i < nout; i++) {
    if (!out[i] || out[i]->ctx != ctx) return error_set(&ctx->err, TG_ERR_VALUE, "jit: output %d is NULL or of another context", i);
    if (dims_symbolic(out[i]->uop->shape)) return error_set(&ctx->err, TG_ERR_SHAPE, "jit: output %d has a symbolic size, shape %s", i, SHAPE_OF(out[i]));
    out[i] = tensor_new(ctx, uop_alu1(ctx->store, OPS_CONTIGUOUS, out[i]->uop));      /* memory of its own */
    if (!out[i]) return ctx->err.status;
  }
  return nout ? tg_realize_many(out, (size_t)nout) : TG_OK;
}
static TgStatus first_run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  Map had;
  map_init(&had, &ctx->mem);
  bool ok = true;
  for (size_t i = 0; ok && i < ctx->realized.cap; i++) if (ctx->realized.at[i].used && ctx->realized.at[i].val) ok = map_put(&had, ctx->realized.at[i].key, 1);
  TgStatus s = ok ? call(j, in, nin, out, nout) : error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  uint64_t one;
  for (size_t i = 0; ok && !s && i < ctx->realized.cap; i++) {
    MapEntry *e = &ctx->realized.at[i];
    if (e->used && e->val && !map_get(&had, e->key, &one)) ok = vec_push(&ctx->mem, &j->first_values, (UOp *)(uintptr_t)e->key);
  }
  map_free(&had);
  if (!ok && !s) s = error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  if (!s) j->runs = 1;
  return s;
}
/* Handles take the values, and the map forgets that they were computed: so the capture computes them, each time. */
static bool forget_first_values(TgJit *j) {
  TgContext *ctx = j->ctx;
  Map gone, kept;
  map_init(&gone, &ctx->mem), map_init(&kept, &ctx->mem);
  bool ok = true;
  for (size_t i = 0; ok && i < j->first_values.len; i++) ok = map_put_ptr(&gone, j->first_values.at[i], ctx);
  for (size_t s = 0; ok && s <= ctx->scopes.len; s++)
    for (TgTensor *t = s < ctx->scopes.len ? ctx->scopes.at[s].tensors : ctx->kept; t; t = t->next) {
      UOp *v = map_get_ptr(&gone, t->uop) ? map_get_ptr(&ctx->realized, t->uop) : NULL;
      if (v) t->uop = v;
    }
  for (size_t i = 0; ok && i < ctx->realized.cap; i++) {
    MapEntry *e = &ctx->realized.at[i];
    if (e->used && e->val && !map_get_ptr(&gone, (void *)(uintptr_t)e->key)) ok = map_put(&kept, e->key, e->val);
  }
  if (ok) { Map old = ctx->realized; ctx->realized = kept, kept = old; }
  map_free(&gone), map_free(&kept);
  j->first_values.len = 0;
  return ok;
}

/* ---- the capture */
static bool list_has(Buffer *const *v, size_t n, const Buffer *b) {
  for (size_t i = 0; i < n; i++) if (v[i] == b) return true;
  return false;
}
static bool is_result(const Capture *c, const Buffer *b) {
  for (size_t i = 0; i < c->steps.len; i++) if (list_has(c->steps.at[i].temp, c->steps.at[i].ntemp, b)) return true;
  return false;
}
static int64_t uid_of(TgContext *ctx, const Buffer *b) {
  for (size_t i = ctx->buffers.len; i-- > 0;) if (ctx->buffers.at[i] == b) return (int64_t)i;
  return -1;
}
static bool is_stored(TgContext *ctx, const Capture *c, const Buffer *b) {
  for (size_t i = 0; i < c->stored.len; i++) if (ctx->buffers.at[c->stored.at[i]] == b) return true;
  return false;
}
/* What stands in one place of a step: an input or output to be put in, memory of the list, or state. */
static bool settle(TgJit *j, Buffer **at, Buffer *const *in, Buffer *const *out, Map *own) {
  TgContext *ctx = j->ctx;
  Buffer *b = *at;
  if (!b) return true;
  for (int k = 0; k < j->nin; k++) if (in[k] == b) return vec_push(&ctx->mem, &j->patches, ((Patch){at, k}));
  for (int k = 0; k < j->nout; k++) if (out[k] == b) return vec_push(&ctx->mem, &j->patches, ((Patch){at, -1 - k}));
  if (is_result(&j->c, b)) {
    Buffer *mine = map_get_ptr(own, b);
    if (!mine) {
      if (!(mine = mem_alloc(&ctx->mem, sizeof *mine))) return false;
      mine->dtype = b->dtype, mine->nelem = b->nelem;
      if (!vec_push(&ctx->mem, &j->own, mine) || !map_put_ptr(own, b, mine)) { if (!list_has(j->own.at, j->own.len, mine)) mem_free(&ctx->mem, mine); return false; }
    }
    *at = mine;
    return true;
  }
  if (list_has(j->pinned.at, j->pinned.len, b)) return true;
  if (b->draws) { if (!vec_push(&ctx->mem, &j->draws, b)) return false; }
  else if (uid_of(ctx, b) >= (int64_t)j->c.first && !is_stored(ctx, &j->c, b)) {
    error_set(&ctx->err, TG_ERR_STATE, "jit: the function makes a tensor of %lld %s from data: at every replay it would be the same; give it as an input", (long long)b->nelem, dtype_name(b->dtype));
    return false;
  }
  if (!vec_push(&ctx->mem, &j->pinned, b)) return false;
  b->pins++;
  return true;
}
static Want want_of(TgTensor *t) {
  Want w = {.dtype = dt(t), .n = rank(t)};
  memcpy(w.dims, dims(t), (size_t)w.n * sizeof *w.dims);
  return w;
}
/* Keys are drawn again in the order in which the function drew them. */
static void sort_draws(TgJit *j) {
  for (size_t i = 1; i < j->draws.len; i++)
    for (size_t k = i; k > 0 && uid_of(j->ctx, j->draws.at[k - 1]) > uid_of(j->ctx, j->draws.at[k]); k--) {
      Buffer *t = j->draws.at[k];
      j->draws.at[k] = j->draws.at[k - 1], j->draws.at[k - 1] = t;
    }
}
static TgStatus capture_run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  TgContext *ctx = j->ctx;
  size_t n = (size_t)(nin + nout) + 1;
  TgTensor **fresh = mem_alloc(&ctx->mem, n * sizeof *fresh);
  Buffer **b = mem_alloc(&ctx->mem, n * sizeof *b);
  j->in = mem_alloc(&ctx->mem, ((size_t)nin + 1) * sizeof *j->in), j->out = mem_alloc(&ctx->mem, ((size_t)nout + 1) * sizeof *j->out);
  bool ok = fresh && b && j->in && j->out && forget_first_values(j);
  TgStatus s = ok ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  j->nin = nin, j->nout = nout;
  for (int i = 0; !s && i < nin; i++) {                        /* copies, so that nothing that was computed from them is found done */
    if (!in[i] || in[i]->ctx != ctx) { s = error_set(&ctx->err, TG_ERR_VALUE, "jit: input %d is NULL or of another context", i); break; }
    if (dims_symbolic(in[i]->uop->shape)) { s = error_set(&ctx->err, TG_ERR_SHAPE, "jit: input %d has a symbolic size, shape %s", i, SHAPE_OF(in[i])); break; }
    fresh[i] = tg_clone(in[i]);
    s = fresh[i] ? tg_realize(fresh[i]) : ctx->err.status;
    if (!s && !(b[i] = value_of(ctx, fresh[i], 0))) s = ctx->err.status;
    if (!s) j->in[i] = want_of(fresh[i]);
  }
  j->c.first = ctx->buffers.len;
  ctx->capture = &j->c;
  if (!s) s = call(j, fresh, nin, out, nout);
  ctx->capture = NULL;
  if (!s && j->c.failed) s = error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  if (!s && !j->c.steps.len) s = error_set(&ctx->err, TG_ERR_STATE, "jit: the function computes nothing");
  for (int i = 0; !s && i < nout; i++) {
    if (!(b[nin + i] = value_of(ctx, out[i], 0))) s = ctx->err.status;
    else j->out[i] = want_of(out[i]);
  }
  Map own;
  map_init(&own, &ctx->mem);
  for (size_t i = 0; !s && i < j->c.steps.len; i++) {
    Step *p = &j->c.steps.at[i];
    ok = true;
    for (size_t k = 0; ok && k < p->nbuf; k++) ok = settle(j, &p->buf[k], b, b + nin, &own);
    if (!ok) s = ctx->err.status ? ctx->err.status : error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  }
  for (size_t i = 0; !s && i < j->c.steps.len; i++)
    for (size_t k = 0; !s && k < j->c.steps.at[i].ntemp; k++)
      if (!settle(j, &j->c.steps.at[i].temp[k], b, b + nin, &own)) s = error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  for (size_t i = 0; !s && i < j->c.stored.len; i++)
    for (int k = 0; k < nin; k++)
      if (ctx->buffers.at[j->c.stored.at[i]] == b[k]) { if (!vec_push(&ctx->mem, &j->input_stored, k)) s = error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory"); j->c.stored.at[i] = -1; break; }
  sort_draws(j);
  map_free(&own);
  mem_free(&ctx->mem, fresh), mem_free(&ctx->mem, b);
  if (s) { tg_jit_reset(j); j->runs = 1; return s; }
  j->runs = 2, j->dropped = ctx->plans_dropped;
  return TG_OK;
}

/* ---- replay */
static TgStatus inputs_ready(TgJit *j, TgTensor *const *in, Buffer **b, UOp **node) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < j->nin; i++) {
    TG_REQUIRE_OR(ctx, in[i] && in[i]->ctx == ctx, TG_ERR_VALUE, TG_ERR_VALUE, "jit: input %d is NULL or of another context", i);
    Want *w = &j->in[i];
    TG_REQUIRE_OR(ctx, dt(in[i]) == w->dtype, TG_ERR_DTYPE, TG_ERR_DTYPE, "jit: input %d is %s, captured as %s", i, dtype_name(dt(in[i])), dtype_name(w->dtype));
    TG_REQUIRE_OR(ctx, rank(in[i]) == w->n && !memcmp(dims(in[i]), w->dims, (size_t)w->n * sizeof *w->dims), TG_ERR_SHAPE, TG_ERR_SHAPE,
                  "jit: input %d has shape %s, captured as %s", i, SHAPE_OF(in[i]), dims_text(w->n, w->dims).s);
    TgTensor *t = in[i];
    if (tg_realize(t)) return ctx->err.status;
    if (!in_memory(ctx, t->uop) && (!(t = tensor_new(ctx, uop_alu1(ctx->store, OPS_CONTIGUOUS, t->uop))) || tg_realize(t))) return ctx->err.status;
    if (!(b[i] = value_of(ctx, t, 0))) return ctx->err.status;
    node[i] = uop_base(t->uop);
    for (int k = 0; k < i; k++) TG_REQUIRE_OR(ctx, b[k] != b[i], TG_ERR_VALUE, TG_ERR_VALUE, "jit: inputs %d and %d are one memory", k, i);
  }
  return TG_OK;
}
/* Updates that wait: the list reads memory as it is. */
static TgStatus updates_flushed(TgContext *ctx) {
  for (size_t s = 0; s <= ctx->scopes.len; s++)
    for (TgTensor *t = s < ctx->scopes.len ? ctx->scopes.at[s].tensors : ctx->kept; t; t = t->next)
      if (t->uop->op == OPS_AFTER && !map_get_ptr(&ctx->realized, t->uop) && tg_realize(t)) return ctx->err.status;
  return TG_OK;
}
static UOp *node_of(TgContext *ctx, int64_t uid) {
  Buffer *b = ctx->buffers.at[uid];
  return uop_new(ctx->store, OPS_BUFFER, b->dtype, 1, 0, NULL, (Arg){.param = {b->nelem, uid}});
}
static TgStatus replay(TgJit *j, TgTensor *const *in, TgTensor **out) {
  TgContext *ctx = j->ctx;
  size_t nstored = 0, most = j->c.stored.len + j->input_stored.len;
  Buffer **b = mem_alloc(&ctx->mem, ((size_t)(j->nin + j->nout) + 1) * sizeof *b);
  UOp **node = mem_alloc(&ctx->mem, ((size_t)(j->nin + j->nout) + most + 1) * sizeof *node), **stored = node ? node + j->nin + j->nout : NULL;
  TgStatus s = b && node ? updates_flushed(ctx) : error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  if (!s) s = inputs_ready(j, in, b, node);
  for (int i = 0; !s && i < j->nout; i++) {
    Want *w = &j->out[i];
    int64_t nelem = 1;
    for (int k = 0; k < w->n; k++) nelem *= w->dims[k];
    UOp *u = buffer_node(ctx, w->dtype, nelem, ints_get(ctx->store, w->n, w->dims));
    out[i] = u ? tensor_new(ctx, u) : NULL;
    Buffer *to = out[i] ? buffer_get(ctx, uop_base(u)) : NULL;
    s = to ? buffer_ready(ctx, to) : TG_ERR_NOMEM;
    if (!s) to->filled = true, b[j->nin + i] = to;
    else error_set(&ctx->err, TG_ERR_NOMEM, "jit: out of memory");
  }
  for (size_t i = 0; !s && i < j->draws.len; i++) if ((s = draw_again(ctx, j->draws.at[i])) != TG_OK) error_set(&ctx->err, s, "jit: the key of a draw cannot be written");
  for (size_t i = 0; !s && i < j->own.len; i++) if ((s = buffer_ready(ctx, j->own.at[i])) != TG_OK) error_set(&ctx->err, s, "jit: no device memory");
  for (size_t i = 0; !s && i < j->patches.len; i++) *j->patches.at[i].at = b[j->patches.at[i].k >= 0 ? j->patches.at[i].k : j->nin - 1 - j->patches.at[i].k];
  for (size_t i = 0; !s && i < j->c.steps.len; i++) s = plan_run(ctx, j->c.steps.at[i].plan, j->c.steps.at[i].buf, j->c.steps.at[i].temp);
  for (size_t i = 0; !s && i < j->c.stored.len; i++) if (j->c.stored.at[i] >= 0) stored[nstored++] = node_of(ctx, j->c.stored.at[i]);
  for (size_t i = 0; !s && i < j->input_stored.len; i++) stored[nstored++] = node[j->input_stored.at[i]];
  if (!s && nstored) s = memory_stored(ctx, stored, nstored);
  mem_free(&ctx->mem, b), mem_free(&ctx->mem, node);
  return s;
}
TgStatus tg_jit_run(TgJit *j, TgTensor *const *in, int nin, TgTensor **out, int nout) {
  if (!j) return TG_ERR_VALUE;
  TgContext *ctx = j->ctx;
  if (capture_refuses(ctx, "jit")) return TG_ERR_STATE;
  TG_REQUIRE_OR(ctx, ctx->dev_open, TG_ERR_DEVICE, TG_ERR_DEVICE, "jit: no device is open");
  TG_REQUIRE_OR(ctx, nin >= 0 && nout >= 0 && (!nin || in) && (!nout || out), TG_ERR_VALUE, TG_ERR_VALUE, "jit: %d inputs, %d outputs", nin, nout);
  if (j->runs == 2 && j->dropped != ctx->plans_dropped) tg_jit_reset(j), j->runs = 1;      /* the plans are gone: capture anew */
  if (j->runs == 0) return first_run(j, in, nin, out, nout);
  if (j->runs == 1) return capture_run(j, in, nin, out, nout);
  TG_REQUIRE_OR(ctx, nin == j->nin && nout == j->nout, TG_ERR_VALUE, TG_ERR_VALUE, "jit: %d inputs and %d outputs, captured with %d and %d", nin, nout, j->nin, j->nout);
  return replay(j, in, out);
}
