/* shard.c: tensors on several devices. In: tensors and names of devices. Out: SHARD nodes; the parts that
 * a graph on several devices is made of (rules/multi.rules); handles of memory on several devices. Such a
 * handle has a hidden handle for each part, which is an ordinary place. A store to the tensor is a store
 * to each part. The tensor's own node, movements over a MULTI of the parts, is updated with them
 * (memory.c). */
#include "tensor/multi.h"
#include "tensor/front.h"

/* ---- names */
const char *devices_name(TgContext *ctx, uint64_t devices) {
  for (size_t i = 0; i < ctx->device_lists.len; i++)
    if (ctx->device_lists.at[i].devices == devices) return ctx->device_lists.at[i].names;
  Str s;
  str_init(&s, &ctx->mem);
  for (uint64_t d = devices; d; d &= d - 1)
    str_printf(&s, "%s%s", s.len ? "," : "", ctx->calls->facts(ctx, __builtin_ctzll(d)).name);
  if (!s.oom && vec_push(&ctx->mem, &ctx->device_lists, ((DeviceList){devices, s.at}))) return s.at;
  str_free(&s);
  error_set(&ctx->err, TG_ERR_NOMEM, "out of memory");
  return "";
}

static int device_to_compute(TgContext *ctx, const char *op, const char *name) {
  int d = ctx->calls->find(ctx, op, name);
  TG_REQUIRE_OR(ctx, d < 0 || !ctx->calls->facts(ctx, d).files_only, -1, TG_ERR_DEVICE,
                "%s: %s has files alone", op, name);
  return d;
}

uint64_t devices_find(TgContext *ctx, const char *op, const char *names) {
  uint64_t devices = 0;
  char name[64];
  while (*names) {
    size_t n = strcspn(names, ",");
    TG_REQUIRE_OR(ctx, n > 0 && n < sizeof name, 0, TG_ERR_VALUE, "%s: a list of devices with '%.64s'", op,
                  names);
    memcpy(name, names, n);
    name[n] = 0;
    int d = device_to_compute(ctx, op, name);
    if (d < 0) return 0;
    devices |= 1ull << d;
    names += n + (names[n] == ',');
  }
  return devices;
}

static Layout layout_whole(uint64_t devices) {
  Layout at = {.axis = -1};
  for (; devices; devices &= devices - 1)
    at.device[at.n++] = __builtin_ctzll(devices);
  return at;
}

TgTensor *tensor_on_all(TgTensor *t, uint64_t devices) {
  if (!t || t->uop->devices == devices) return t;
  if (!(devices & (devices - 1))) return tensor_on(t, __builtin_ctzll(devices));
  Layout at = layout_whole(devices);
  return tensor_new(t->ctx, shard_new(t->ctx->store, t->uop, &at));
}

/* ---- graphs of one device */
static UOp *rewritten(TgContext *ctx, Matcher m, uint64_t ops, UOp *u) {
  Rewrite rw = {.st = ctx->store, .mem = &ctx->mem, .ctx = ctx, .required = true, .ops = ops};
  UOp *r = graph_rewrite(&rw, m, u);
  if (!r || rw.failed) error_no_memory(&ctx->err, "shard");
  return rw.failed ? NULL : r;
}

/* Notes the sums over devices that are last in u. Sums below others belong to something else. */
static void sums_named(TgContext *ctx, const UOp *u, const char *of, int depth) {
  enum { DEEPEST = 8 };

  bool passes = op_is_alu((Ops)u->op) || op_flags((Ops)u->op) & OPF_MOV || u->op == OPS_MULTI;
  if (u->op == OPS_MSELECT && u->src[0]->op == OPS_ALLREDUCE) ctx->calls->summed(ctx, u->src[0]->src[0], of);
  for (int i = 0; passes && depth < DEEPEST && i < (is_multi(u) ? 1 : u->nsrc); i++)
    if (u->src[i]->opmask & op_bit(OPS_MSELECT)) sums_named(ctx, u->src[i], of, depth + 1);
}

void gradient_named(TgContext *ctx, UOp *u, const TgTensor *t) {
  const char *of = ctx->exchanges && u && has_multi(u) ? origin_kept(ctx, t) : NULL;
  UOp *m = of ? rewritten(ctx, pm_multi, op_bit(OPS_MULTI) | op_bit(OPS_SHARD), u) : NULL;
  if (m) sums_named(ctx, m, of, 0);
}

UOp *multi_lowered(TgContext *ctx, UOp *u) {
  if (!u || !has_multi(u)) return u;
  u = rewritten(ctx, pm_multi, op_bit(OPS_MULTI) | op_bit(OPS_SHARD), u);
  u = u ? rewritten(ctx, pm_exchange, op_bit(OPS_MSELECT), u) : NULL;
  if (!u) return NULL;
  bool parts = is_multi(u);
  for (int i = 0; parts && i < u->nsrc; i++)
    parts = !has_multi(u->src[i]);
  TG_REQUIRE(ctx, parts || !has_multi(u), TG_ERR_INTERNAL, "shard: %s on several devices",
             op_name((Ops)u->op));
  return u;
}

/* ---- handles of parts */
TgTensor *shard_hidden(TgContext *ctx, UOp *u) {
  TgTensor *t = mem_alloc(&ctx->mem, sizeof *t);
  if (!t) return NULL;
  t->ctx = ctx;
  t->uop = u;
  return t;
}

void shard_unlink(TgTensor *t) {
  for (int i = 0; i < t->nparts; i++)
    tg_release(t->part[i]);
  mem_free(&t->ctx->mem, t->part);
  t->part = NULL;
  t->nparts = 0;
  t->nbelow = -1; /* the graph may have changed while it had parts */
  t->indirect = false;
}

bool shard_parts(TgTensor *t, UOp *multi, bool places) {
  TgContext *ctx = t->ctx;
  shard_unlink(t);
  t->part = mem_alloc(&ctx->mem, multi->nsrc * sizeof *t->part);
  bool ok = t->part != NULL;
  for (int i = 0; ok && i < multi->nsrc; i++) {
    TgTensor *p = t->part[i] = shard_hidden(ctx, multi->src[i]);
    if (!(ok = p != NULL)) break;
    if (places) tensor_set(p, p->uop);
    if (places) p->whole = t;
    t->nparts++;
  }
  if (ok) return true;
  shard_unlink(t);
  error_no_memory(&ctx->err, "shard");
  return false;
}

static bool no_elements(const UOp *u) {
  for (int i = 0; i < u->shape->n; i++)
    if (u->shape->v[i] == 0) return true;
  return false;
}

static bool all_views(const UOp *multi) {
  if (!is_multi(multi)) return false;
  for (int i = 0; i < multi->nsrc; i++)
    if (!(multi->src[i]->mark & MARK_VIEW) && !no_elements(multi->src[i])) return false;
  return true;
}

/* Returns the MULTI below movements. NULL: there is something else among them. */
static UOp *moved_multi(UOp *u) {
  while (op_flags((Ops)u->op) & OPF_MOV || u->op == OPS_DETACH)
    u = u->src[0];
  return is_multi(u) ? u : NULL;
}

bool shard_place(TgTensor *t) {
  UOp *multi = multi_lowered(t->ctx, t->uop), *of = moved_multi(t->uop);
  if (!multi) return false;
  if (all_views(multi)) return shard_parts(t, multi, true);
  if (!of || !all_views(of)) return true;
  if (!shard_parts(t, of, true)) return false;
  t->indirect = true;
  return true;
}

bool shard_memory(TgTensor *t, UOp *value) {
  TgContext *ctx = t->ctx;
  UOp *was = multi_lowered(ctx, value), *node[MOST_DEVICES];
  if (!was) return false;
  TG_REQUIRE_OR(ctx, is_multi(was), false, TG_ERR_INTERNAL, "shard: memory of one device");
  Layout at = layout_of(was);
  for (int i = 0; i < at.n; i++) {
    const Ints *shape = was->src[i]->shape;
    node[i] = buffer_node(ctx, at.device[i], (DType)was->dtype, dim_product(ctx->store, shape), shape);
    if (node[i] && no_elements(node[i])) buffer_get(ctx, view_bottom(node[i]))->filled = true;
  }
  UOp *multi = multi_new(ctx->store, &at, node);
  TG_REQUIRE_OR(ctx, multi, false, TG_ERR_NOMEM, "shard: out of memory");
  tensor_changes(t);
  t->uop = multi;
  return shard_parts(t, multi, true);
}

/* Runs the stores that wait on parts, all at once, because one may need the old contents of another part. */
static bool parts_flushed(TgTensor *t) {
  Buffer *wait[MOST_DEVICES];
  size_t n = 0;
  for (int i = 0; i < t->nparts; i++)
    if (t->part[i]->memory && t->part[i]->memory->store) wait[n++] = t->part[i]->memory;
  return !n || !t->ctx->calls->stores(t->ctx, wait, n);
}

bool shard_ready(const char *op, TgTensor *t, bool keep_value) {
  UOp *value = t->uop;
  TG_REQUIRE_OR(t->ctx, !t->indirect, false, TG_ERR_DEVICE,
                "%s: the tensor, shape %s, is a view, but not of each device's part of what it is of; "
                "tg_setitem writes to that",
                op, SHAPE_OF(t));
  if (!parts_flushed(t) || !whole_renewed(t)) return false;
  for (int i = 0; i < t->nparts; i++)
    if (t->part[i]->memory && !place_ready(op, t->part[i], keep_value)) return false;
  if (t->part) return true;
  if (!shard_memory(t, value)) return false;
  if (!keep_value) return true;
  return shard_store(t, t->uop, value) && parts_flushed(t);
}

/* A store to a reshaped view is made to the view without the reshape; the value is reshaped back. */
static UOp *not_reshaped(const TgTensor *t, UOp *view) {
  while (view && view != t->uop && view->op == OPS_RESHAPE)
    view = view->src[0];
  return view;
}

bool shard_is_view(TgTensor *t, UOp *view) {
  UOp *multi = view ? multi_lowered(t->ctx, not_reshaped(t, view)) : NULL;
  return multi && all_views(multi);
}

static TgTensor *part_on(const TgTensor *t, UOp *view) {
  for (int i = 0; i < t->nparts; i++)
    if (t->part[i]->memory && t->part[i]->memory == buffer_get(t->ctx, view_bottom(view))) return t->part[i];
  return NULL;
}

bool shard_store(TgTensor *t, UOp *view, UOp *value) {
  TgContext *ctx = t->ctx;
  if (!view || !value) return error_no_memory(&ctx->err, "assign"), false;
  UOp *was = t->uop, *place = not_reshaped(t, view), *to = multi_lowered(ctx, place);
  if (!to) return false;
  TG_REQUIRE_OR(ctx, all_views(to), false, TG_ERR_DEVICE,
                "assign: the place, shape %s, is not a part of each device's part of the tensor",
                shape_text(ctx->store, view->shape).s);
  Layout at = layout_of(to);
  UOp *as = u_reshape(ctx->store, value, place->shape->n, place->shape->v);
  UOp *from = multi_lowered(ctx, shard_new(ctx->store, as, &at));
  if (!from) return error_no_memory(&ctx->err, "assign"), false;
  for (int i = 0; i < at.n; i++) {
    if (no_elements(to->src[i])) continue;
    TgTensor *p = part_on(t, to->src[i]);
    if (NEVER(!p)) return error_set(&ctx->err, TG_ERR_INTERNAL, "assign: no such part"), false;
    if (!store_to(p, to->src[i], from->src[i])) return false;
  }
  /* If the whole tensor is stored to, a gradient passes through the value as a whole, not through each
   * part. */
  bool all = view == was && dtype_is_float(dt(t));
  bool known = !all || map_put_ptr(&ctx->history, t->uop, value);
  return known || (error_no_memory(&ctx->err, "assign"), false);
}

/* ---- the API */
static bool bounds_fine(TgContext *ctx, Layout *at, const int64_t *bound, int64_t size) {
  bool ok = bound[0] == 0 && bound[at->n] == size;
  for (int i = 0; i < at->n; i++)
    ok = ok && bound[i] <= bound[i + 1];
  TG_REQUIRE_OR(ctx, ok, false, TG_ERR_VALUE, "shard: the bounds of %d parts do not go from 0 to %lld", at->n,
                (long long)size);
  memcpy(at->bound, bound, (size_t)(at->n + 1) * sizeof *bound);
  return true;
}

static bool devices_named(TgContext *ctx, const char *op, int n, const char *const *devices, int *out) {
  uint64_t seen = 0;
  TG_REQUIRE_OR(ctx, n > 0 && n <= MOST_DEVICES, false, TG_ERR_VALUE, "%s: %d devices, not 1 .. %d", op, n,
                MOST_DEVICES);
  TG_LIST_OR(ctx, op, devices, n, false);
  for (int i = 0; i < n; i++) {
    if ((out[i] = device_to_compute(ctx, op, devices[i])) < 0) return false;
    TG_REQUIRE_OR(ctx, !(seen >> out[i] & 1), false, TG_ERR_VALUE, "%s: %s is named twice", op, devices[i]);
    seen |= 1ull << out[i];
  }
  return true;
}

/* Like tg_to: if it is on that device already, returns a view. */
static TgTensor *on_one(TgTensor *t, int device) {
  TgTensor *r = tensor_on(t, device);
  return r == t ? tensor_view(t, t->uop) : r;
}

static TgTensor *placed(TgTensor *t, const Layout *at) {
  if (at->n == 1) return on_one(t, at->device[0]);
  return tensor_new(t->ctx, shard_new(t->ctx->store, t->uop, at));
}

TgTensor *tg_shard_opt(TgTensor *t, int n, const char *const *devices, int axis, const TgShardOptions *opt) {
  if (!t) return NULL;
  TgContext *ctx = t->ctx;
  TG_OPTIONS(ctx, "shard", TgShardOptions, o, opt);
  int device[MOST_DEVICES];
  if (!devices_named(ctx, "shard", n, devices, device)) return NULL;
  int a = axis_get(ctx, "shard", axis, rank(t));
  if (a < 0) return NULL;
  TG_REQUIRE(ctx, !dim_symbolic(dims(t)[a]), TG_ERR_SHAPE,
             "shard: axis %d of %s has a symbolic size; a number is needed", axis, SHAPE_OF(t));
  Layout at = layout_even(n, device, a, dims(t)[a]);
  if (o.bounds && !bounds_fine(ctx, &at, o.bounds, dims(t)[a])) return NULL;
  return placed(t, &at);
}

TgTensor *tg_replicate(TgTensor *t, int n, const char *const *devices) {
  Layout at = {.n = n, .axis = -1};
  if (!t || !devices_named(t->ctx, "replicate", n, devices, at.device)) return NULL;
  return placed(t, &at);
}

/* Finds the layout of t, which is on several devices. Returns false if an error was recorded. */
static bool layout_asked(TgTensor *t, Layout *at) {
  UOp *multi = multi_lowered(t->ctx, t->uop);
  if (!multi) return false;
  TG_REQUIRE_OR(t->ctx, is_multi(multi), false, TG_ERR_INTERNAL, "shard: the tensor is on one device");
  *at = layout_of(multi);
  return true;
}

TgTensor *tg_shard_like(TgTensor *t, TgTensor *like) {
  if (!t || !like) return NULL;
  TgContext *ctx = t->ctx;
  Layout at;
  TG_REQUIRE(ctx, ctx == like->ctx, TG_ERR_VALUE, "shard_like: the tensors belong to different contexts");
  if (!on_several(like->uop)) return on_one(t, tensor_device(like));
  if (!layout_asked(like, &at)) return NULL;
  bool fits = at.axis < 0 || (at.axis < rank(t) && dims(t)[at.axis] == dims(like)[at.axis]);
  TG_REQUIRE(ctx, fits, TG_ERR_SHAPE, "shard_like: %s like %s, which is split along axis %d", SHAPE_OF(t),
             SHAPE_OF(like), at.axis);
  return placed(t, &at);
}

TgTensor *tg_gather_to(TgTensor *t, const char *device) {
  if (!t) return NULL;
  int to = device_to_compute(t->ctx, "gather_to", device);
  return to < 0 ? NULL : on_one(t, to);
}

int tg_shard_count(const TgTensor *t) {
  return t && on_several(t->uop) ? __builtin_popcountll(t->uop->devices) : 1;
}

int tg_shard_axis(TgTensor *t) {
  Layout at;
  return t && on_several(t->uop) && layout_asked(t, &at) ? at.axis : -1;
}

TgStatus tg_shard_bounds(TgTensor *t, int64_t *bounds) {
  Layout at;
  if (!t) return TG_ERR_VALUE;
  TG_REQUIRE_OR(t->ctx, on_several(t->uop), TG_ERR_VALUE, TG_ERR_VALUE,
                "shard_bounds: the tensor, shape %s, is on %s alone", SHAPE_OF(t), tg_device(t));
  TG_LIST_OR(t->ctx, "shard_bounds", bounds, 1, TG_ERR_VALUE);
  if (!layout_asked(t, &at)) return t->ctx->err.status;
  TG_REQUIRE_OR(t->ctx, at.axis >= 0, TG_ERR_VALUE, TG_ERR_VALUE,
                "shard_bounds: all of the tensor, shape %s, is on each device", SHAPE_OF(t));
  memcpy(bounds, at.bound, (size_t)(at.n + 1) * sizeof *bounds);
  return TG_OK;
}

TgTensor *tg_shard_part(TgTensor *t, int i) {
  if (!t) return NULL;
  TG_REQUIRE(t->ctx, i >= 0 && i < tg_shard_count(t), TG_ERR_VALUE, "shard_part: part %d of %d", i,
             tg_shard_count(t));
  if (!on_several(t->uop)) return tensor_view(t, t->uop);
  UOp *multi = multi_lowered(t->ctx, t->uop);
  if (!multi) return NULL;
  UOp *part = multi->src[i];
  return t->part && (part->mark & MARK_VIEW) ? tensor_memory(t->ctx, part) : tensor_new(t->ctx, part);
}
