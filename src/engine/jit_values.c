/* jit_values.c: what a captured function takes and returns. In: handles. Out: their memories, in the order
 * of the handles, one for each part of a tensor on several devices; and what later inputs must look like. */
#include "engine/jit.h"
#include "tensor/front.h"
#include <string.h>

bool buffers_have(Buffer *const *v, size_t n, const Buffer *b) {
  for (size_t i = 0; i < n; i++)
    if (v[i] == b) return true;
  return false;
}

/* ---- parts */
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
  return (t->part && !t->indirect) || (t->memory && fills_memory(t->ctx, t->uop));
}

static Want want_of(TgTensor *t) {
  Want w = {.dtype = dt(t), .n = rank(t), .device = tensor_device(t)};
  memcpy(w.dims, dims(t), (size_t)w.n * sizeof *w.dims);
  return w;
}

/* Returns the memory of part p of t, which is realized, and describes it in *want. An expression of
 * variables on several devices has no handles for its parts, so one is made. NULL: an error was recorded. */
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

static bool given_of(TgTensor *t, Given *g) {
  UOp *multi = on_several(t->uop) ? multi_lowered(t->ctx, t->uop) : NULL;
  if (on_several(t->uop) && !multi) return false;
  Layout at = {.n = 1, .axis = -1, .device = {tensor_device(t)}};
  if (multi) at = layout_of(multi);
  *g = (Given){.want = want_of(t)};
  given_placed(t->ctx, g, &at);
  return true;
}

int64_t dims_nelem(UOpStore *st, int n, const int64_t *dims) {
  int64_t nelem = 1;
  for (int k = 0; k < n; k++)
    nelem *= dim_max(st, dims[k]);
  return nelem;
}

/* ---- inputs */
static TgStatus input_given(TgContext *ctx, const TgTensor *t, int i) {
  TG_REQUIRE_OR(ctx, t && t->ctx == ctx, TG_ERR_VALUE, TG_ERR_VALUE,
                "jit: input %d is NULL or of another context", i);
  return TG_OK;
}

TgStatus inputs_realized(TgContext *ctx, TgTensor *const *in, int nin) {
  TgStatus s = TG_OK;
  for (int i = 0; !s && i < nin; i++) {
    s = input_given(ctx, in[i], i);
    if (!s) s = tg_realize(in[i]);
  }
  return s;
}

TgStatus inputs_ready(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole) {
  TgStatus s = inputs_realized(ctx, in, nin);
  for (int i = 0; !s && i < nin; i++) {
    TG_REQUIRE_OR(ctx, !dims_symbolic(in[i]->uop->shape) || !on_several(in[i]->uop), TG_ERR_SHAPE,
                  TG_ERR_SHAPE, "jit: input %d, on %s, has a symbolic size, shape %s", i, tg_device(in[i]),
                  SHAPE_OF(in[i]));
    TgTensor *t = in[i];
    UOp *own = has_own_memory(t) ? NULL : uop_alu1(ctx->store, OPS_CONTIGUOUS, t->uop);
    if (own && (!(t = tensor_new(ctx, own)) || tg_realize(t))) return ctx->err.status;
    if (own) in_memory_now(ctx, t);
    whole[i] = t;
  }
  return s;
}

/* A gradient that was computed for a copy belongs to the input. */
static void gradient_moved(TgTensor *to, TgTensor *from) {
  if (!from->grad) return;
  if (to->grad) to->grad->grad_of = NULL;
  to->grad = from->grad;
  to->grad->grad_of = to;
  from->grad = NULL;
}

void inputs_done(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **whole) {
  for (int i = 0; whole && i < nin; i++) {
    if (!whole[i] || whole[i] == in[i]) continue;
    gradient_moved(in[i], whole[i]);
    tg_release(whole[i]);
  }
  mem_free(&ctx->mem, whole);
}

/* How many stores to t's memory have run or wait to run. */
static uint64_t stores_of(const TgTensor *t) {
  uint64_t n = t->memory ? t->memory->version + (t->memory->store != NULL) : 0;
  for (int i = 0; i < t->nparts; i++)
    n += stores_of(t->part[i]);
  return n;
}

static bool assigns(const TgJit *j, int input) { return j->assigned >> (input & 63) & 1; }

bool inputs_counted(const TgJit *j, TgTensor *const *in, int nin, uint64_t **counts) {
  *counts = mem_alloc(&j->ctx->mem, ((size_t)nin + 1) * sizeof **counts);
  for (int i = 0; *counts && i < nin; i++)
    (*counts)[i] = stores_of(in[i]);
  return *counts != NULL;
}

void inputs_assigned(TgJit *j, TgTensor *const *in, int nin, const uint64_t *counts) {
  for (int i = 0; i < nin; i++)
    j->assigned |= (uint64_t)(stores_of(in[i]) != counts[i]) << (i & 63);
}

TgStatus inputs_memories(TgContext *ctx, TgTensor *const *whole, int nin, Buffer **b, Want *want) {
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

/* Makes lists for n tensors with `parts` parts in all. */
static TgStatus lists_made(TgJit *j, int n, int parts, Given **given, Want **want) {
  *given = given_new(j->ctx, n);
  *want = mem_alloc(&j->ctx->mem, ((size_t)parts + 1) * sizeof **want);
  return *given && *want ? TG_OK : error_no_memory(&j->ctx->err, "jit");
}

TgStatus inputs_taken(TgJit *j, TgTensor *const *whole, int nin, Buffer **b) {
  TgStatus s = lists_made(j, nin, parts_count(whole, nin), &j->given, &j->in);
  if (!s) s = inputs_memories(j->ctx, whole, nin, b, j->in);
  if (s) return s;
  j->ngiven = nin;
  j->nin = parts_count(whole, nin);
  for (int i = 0; i < nin; i++)
    if (!given_of(whole[i], &j->given[i])) return j->ctx->err.status;
  return TG_OK;
}

static UOp *part_as(TgContext *ctx, const Want *w, bool cleared, Buffer **b) {
  const Ints *shape = ints_get(ctx->store, w->n, w->dims), *most = shape ? dims_max(ctx->store, shape) : NULL;
  UOp *u = most ? buffer_node(ctx, w->device, w->dtype, dim_product(ctx->store, most), shape) : NULL;
  *b = u ? buffer_get(ctx, view_bottom(u)) : NULL;
  if (!*b) return NULL;
  (*b)->partly |= cleared;
  if (buffer_ready(ctx, *b)) return NULL;
  (*b)->filled = true;
  return u;
}

/* Makes memory for an input or output, with b[p] for part p. NULL: out of memory. */
static TgTensor *memory_as(TgContext *ctx, const Given *g, const Want *want, bool cleared, Buffer **b) {
  UOp *part[MOST_DEVICES];
  int n = g->at.n;
  for (int p = 0; p < n; p++)
    if (!(part[p] = part_as(ctx, &want[p], cleared, &b[p]))) return NULL;
  UOp *all = n > 1 ? multi_new(ctx->store, &g->at, part) : part[0];
  TgTensor *t = !all ? NULL : n > 1 ? tensor_new(ctx, all) : tensor_memory(ctx, all);
  return t && (n == 1 || shard_parts(t, all, true)) ? t : NULL;
}

/* Replaces an input by a copy, in which it is captured. An input that fn assigns to stays the caller's
 * memory. Any other input is copied because fn may know the same memory by another handle, which must keep
 * its value when the input is another memory. */
static TgStatus input_copied(TgJit *j, const Given *g, const Want *want, TgTensor **whole, Buffer **b) {
  TgContext *ctx = j->ctx;
  Buffer *from[MOST_DEVICES];
  TgTensor *in = *whole;
  memcpy(from, b, (size_t)g->at.n * sizeof *from);
  bool ok = (*whole = memory_as(ctx, g, want, false, b)) != NULL;
  for (int p = 0; ok && p < g->at.n; p++) {
    Device *d = device_at(ctx, b[p]->device);
    size_t n = (size_t)b[p]->nelem * dtype_size(b[p]->dtype);
    ok = !n || !device_copy(ctx, d, b[p]->data, d, from[p]->data, n);
  }
  ok = ok && (!in->requires_grad || tg_requires_grad(*whole, true));
  if (ok) gradient_moved(*whole, in);
  return ok ? TG_OK : error_no_memory(&ctx->err, "jit");
}

TgStatus inputs_copied(TgJit *j, TgTensor *const *in, TgTensor **whole, Buffer **b) {
  TgStatus s = TG_OK;
  for (int i = 0, at = 0; !s && i < j->ngiven; at += j->given[i++].at.n) {
    bool only_files = (device_at(j->ctx, j->in[at].device)->backend->has & HAS_FILES_ONLY) != 0;
    if (whole[i] == in[i] && !only_files && !assigns(j, i))
      s = input_copied(j, &j->given[i], &j->in[at], &whole[i], b + at);
  }
  return s;
}

/* Checks that an input is split over devices as it was when it was captured. */
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

TgStatus inputs_checked(TgJit *j, TgTensor *const *in) {
  TgContext *ctx = j->ctx;
  for (int i = 0; i < j->ngiven; i++) {
    TgStatus s = input_given(ctx, in[i], i);
    if (s) return s;
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
    if (on_several(in[i]->uop) || g->at.n > 1) s = split_checked(ctx, i, in[i], g);
    if (s) return s;
  }
  return TG_OK;
}

/* ---- inputs that are stored to */
/* Returns the input that memory k of the list belongs to. */
static int given_at(const TgJit *j, int k) {
  int i = 0;
  for (; i < j->ngiven && k >= j->given[i].at.n; i++)
    k -= j->given[i].at.n;
  return i;
}

TgStatus input_whole(const TgJit *j, int k, TgTensor *const *in, TgTensor *const *whole) {
  int of = given_at(j, k);
  TG_REQUIRE_OR(
      j->ctx, whole[of] == in[of], TG_ERR_VALUE, TG_ERR_VALUE,
      "jit: input %d is assigned to by the function, and is no memory of its own; give the whole tensor", of);
  return TG_OK;
}

/* Handles an input that fn assigns to now but did not in its first call, so that a copy of it was
 * captured. The input gets the contents of the copy, and fn will be captured anew. */
static TgStatus copy_stored(TgJit *j, int of, TgTensor *in, TgTensor *copy) {
  j->stale = true;
  j->assigned |= UINT64_C(1) << (of & 63);
  return tg_assign(in, copy) ? tg_realize(in) : j->ctx->err.status;
}

static TgStatus input_stored(TgJit *j, int k, TgTensor *const *in, TgTensor *const *whole) {
  int of = given_at(j, k);
  bool copy = whole[of] != in[of] && has_own_memory(in[of]);
  TgStatus s = copy ? copy_stored(j, of, in[of], whole[of]) : input_whole(j, k, in, whole);
  return s || vec_push(&j->ctx->mem, &j->input_stored, k) ? s : error_no_memory(&j->ctx->err, "jit");
}

TgStatus inputs_stored(TgJit *j, TgTensor *const *in, TgTensor *const *whole, Buffer *const *b) {
  TgStatus s = TG_OK;
  for (size_t i = 0; !s && i < j->c.stored.len; i++) {
    Buffer **at = &j->c.stored.at[i];
    for (int k = 0; !s && k < j->nin; k++)
      if (b[k] == *at) s = input_stored(j, k, in, whole);
    bool stays = buffers_have(j->pinned.at, j->pinned.len, *at);
    if (!stays || buffers_have(b, (size_t)(j->nin + j->nout), *at)) *at = NULL;
  }
  return s;
}

bool input_is_state(const TgJit *j, int k, const Buffer *b) {
  if (!b->pins || !buffers_have(j->pinned.at, j->pinned.len, b)) return false;
  bool stored = buffers_have(j->c.stored.at, j->c.stored.len, b);
  for (size_t i = 0; i < j->input_stored.len; i++)
    stored |= j->input_stored.at[i] == k;
  return stored;
}

/* ---- outputs */
TgStatus outputs_taken(TgJit *j, TgTensor **out, int nout, Buffer **b) {
  TgStatus s = lists_made(j, nout, parts_count(out, nout), &j->made, &j->out);
  if (s) return s;
  j->nmade = nout;
  j->nout = parts_count(out, nout);
  for (int i = 0, at = 0; i < nout; i++) {
    if (!given_of(out[i], &j->made[i])) return j->ctx->err.status;
    for (int p = 0; p < nparts_of(out[i]); p++, at++)
      if (!(b[at] = part_value(out[i], p, &j->out[at]))) return j->ctx->err.status;
  }
  return TG_OK;
}

TgStatus outputs_new(TgJit *j, TgTensor **out, Buffer **b) {
  for (int i = 0, at = 0; i < j->nmade; at += j->made[i++].at.n)
    if (!(out[i] = memory_as(j->ctx, &j->made[i], &j->out[at], j->cleared, b + at)))
      return error_no_memory(&j->ctx->err, "jit");
  return TG_OK;
}
