/* state.c: tensors as memory: copies, moving handles, updates in place that are written as operators, and
 * settings and facts of a context. */
#include "tensor/front.h"
#include "tensor/multi.h"
#include <strings.h>

/* ---- copies and handles */
static TgTensor *cloned(TgTensor *x) {
  UOp *n = buffer_node(x->ctx, tensor_device(x), dt(x), nelem(x), x->uop->shape);
  TgTensor *t = tensor_memory(x->ctx, n);
  if (!t) return NULL;
  if (!nelem(x)) t->memory->filled = true;
  return !nelem(x) || store_to(t, n, x->uop) ? t : NULL;
}

static TgTensor *cloned_shard(TgTensor *x) {
  TgTensor *t = tensor_new(x->ctx, x->uop);
  return t && shard_memory(t, x->uop) && shard_store(t, t->uop, x->uop) ? t : NULL;
}

TgTensor *tg_clone(TgTensor *x) {
  if (!x) return NULL;
  TgTensor *t = on_several(x->uop) ? cloned_shard(x) : cloned(x);
  if (!t) return NULL;
  if (x->requires_grad && !tg_requires_grad(t, true)) return NULL;
  if (x->grad && (t->grad = tg_clone(x->grad)) != NULL) t->grad->grad_of = t;
  return t;
}

TgTensor *tg_to_context(TgTensor *x, TgContext *ctx) {
  if (!x || !ctx) return NULL;
  if (x->ctx == ctx) return tensor_view(x, x->uop);
  size_t n = tg_nbytes(x);
  void *p = mem_alloc(&ctx->mem, n + 1);
  TG_REQUIRE(ctx, p, TG_ERR_NOMEM, "to_context: out of memory");
  TgStatus s = tg_read(x, p, n);
  if (s) error_set(&ctx->err, s, "to_context: %s", tg_errmsg(x->ctx));
  TgTensor *t = s ? NULL : tg_from(ctx, p, tg_dtype(x), rank(x), tg_shape(x));
  mem_free(&ctx->mem, p);
  if (t) t->requires_grad = x->requires_grad;
  return t;
}

TgTensor *tg_replace(TgTensor *t, TgTensor *x) {
  if (!t || !x) return NULL;
  TG_REQUIRE(t->ctx, t->ctx == x->ctx, TG_ERR_VALUE, "replace: the tensors belong to different contexts");
  TG_REQUIRE(t->ctx, t->uop->shape == x->uop->shape, TG_ERR_SHAPE, "replace: %s by %s", SHAPE_OF(t),
             SHAPE_OF(x));
  if (t == x) return t;
  if (t->uop != x->uop) tensor_changes(t);
  shard_unlink(t);
  if (x->memory)
    tensor_set(t, x->uop);
  else {
    places_unlink(t);
    t->uop = x->uop;
    places_link(t, NULL);
  }
  return !x->part || shard_place(t) ? t : NULL;
}

TgTensor *tg_from_bytes(TgContext *ctx, const void *data, size_t nbytes, TgDType dtype) {
  DType d = dtype_of(dtype, DT_U8);
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, d, TG_ERR_DTYPE, "from_bytes: unknown dtype %d", (int)dtype);
  return tg_from(ctx, data, dtype_public(d), TG_SHAPE((int64_t)(nbytes / dtype_size(d))));
}

const void *tg_map(TgTensor *x) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  TG_REQUIRE(ctx, ctx->dev_open, TG_ERR_DEVICE, "map: no device is open");
  if (capture_refuses(ctx, "map")) return NULL;
  static const char nothing[16];
  if (tg_numel(x) == 0) return nothing;
  return tg_realize(x) ? NULL : ctx->calls->map(ctx, x);
}

/* ---- updates: t = t op x, in t's memory. It is an error if the result has another dtype or shape. */
static TgTensor *update(const char *op, TgTensor *t, TgTensor *value) {
  if (!t || !value) return NULL;
  TG_REQUIRE(t->ctx, dt(value) == dt(t), TG_ERR_DTYPE, "%s: the result is %s, the tensor %s", op,
             dtype_name(dt(value)), dtype_name(dt(t)));
  return tg_assign(t, value);
}

#define IN_PLACE(name)                                                                                       \
  TgTensor *tg_##name##_(TgTensor *t, TgTensor *x) { return update(#name "_", t, tg_##name(t, x)); }
IN_PLACE(add)
IN_PLACE(sub)
IN_PLACE(mul)
IN_PLACE(div)
IN_PLACE(floordiv)
IN_PLACE(pow)
IN_PLACE(bitand)
IN_PLACE(bitor)
IN_PLACE(bitxor)
IN_PLACE(shl)
IN_PLACE(shr)
IN_PLACE(matmul)

/* ---- nodes by name */
TgTensor *tg_alu(const char *op, TgTensor *const *x, int n) {
  if (!x || n < 1 || !x[0]) return NULL;
  TgContext *ctx = x[0]->ctx;
  int o = 0;
  while (o < OPS_COUNT && (!op || !op_is_alu((Ops)o) || strcmp(op_name((Ops)o), op)))
    o++;
  TG_REQUIRE(ctx, o < OPS_COUNT && o != OPS_CAST && o != OPS_BITCAST, TG_ERR_VALUE,
             "alu: no elementwise op %s", op ? op : "without a name");
  TG_REQUIRE(ctx, op_nsrc((Ops)o) == n, TG_ERR_VALUE, "alu: %s takes %d operands, %d are given", op,
             op_nsrc((Ops)o), n);
  const Ints *s = x[0]->uop->shape;
  UOp *src[3];
  for (int i = 1; i < n; i++)
    if (!ctx_two("alu", x[0], x[i]) || !(s = shape_broadcast(ctx, op, s, x[i]->uop->shape))) return NULL;
  int first = o == OPS_WHERE;
  for (int i = 0; i < n; i++) {
    DType d = dt(x[i]);
    bool ok = (i < first || d == dt(x[first])) && op_takes((Ops)o, i, d);
    TG_REQUIRE(ctx, ok, TG_ERR_DTYPE, "alu: %s with %s as operand %d", op, dtype_name(d), i);
    if (!(src[i] = u_broadcast(ctx->store, x[i]->uop, s))) return tensor_new(ctx, NULL);
  }
  return tensor_new(
      ctx, uop_new(ctx->store, (Ops)o, op_flags((Ops)o) & OPF_CMP ? DT_BOOL : dt(x[first]), 1, n, src, ARG0));
}

/* ---- settings */
int tg_setting(TgContext *ctx, const char *name, int value) {
  if (!ctx) return -1;

  struct {
    const char *name;
    int *at, least, most;
    bool plans;
  } const s[] = {{"NOOPT", &ctx->env.noopt, 0, 1, true},
                 {"FUSE", &ctx->env.fuse, 0, 1, true},
                 {"BATCH_INVARIANT", &ctx->env.invariant, 0, 1, false},
                 {"ALLREDUCE", &ctx->env.allreduce, 0, 4, false},
                 {"ALLREDUCE_CAST", &ctx->env.allreduce_cast, 0, 1, false},
                 {"PREPACK", &ctx->env.prepack, 0, 2, false},
                 {"DEBUG", &ctx->env.debug, 0, 7, false}};

  if (name && !strcasecmp(name, "ORIGIN")) {
    int old = ctx->origins.asked;
    if (value >= 0) ctx->origins.asked = value != 0;
    return old;
  }

  if (name && !strcasecmp(name, "TRAINING")) {
    int old = ctx->training;
    if (value >= 0) ctx->training = value != 0;
    return old;
  }
  for (size_t i = 0; name && i < TG_COUNT(s); i++) {
    if (strcasecmp(name, s[i].name)) continue;
    int old = *s[i].at;
    TG_REQUIRE_OR(ctx, value <= s[i].most, -1, TG_ERR_VALUE, "setting: %s = %d is not in %d .. %d", s[i].name,
                  value, s[i].least, s[i].most);
    if (value >= 0 && value != old) {
      *s[i].at = value;
      if (ctx->env.debug >= 1) ctx->origins.asked = true;
      if (s[i].plans) ctx->calls->cache_clear(ctx); /* plans were made under the old setting */
    }
    return old;
  }
  error_set(&ctx->err, TG_ERR_VALUE, "setting: there is no %s", name ? name : "name");
  return -1;
}
