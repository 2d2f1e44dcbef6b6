/* variable.c: named integers that a program is given when it runs. In: a name and bounds. Out: symbolic
 * sizes, and tensors that hold them. The graph, and so the plan of a program, names the variable; its
 * value is read at each launch. */
#include "tensor/front.h"

struct TgVariable {
  TgContext *ctx;
  int number;
};

static DimVar *facts(const TgVariable *v) { return dims_var_at(v->ctx->dims, v->number); }

TgVariable *tg_variable_opt(TgContext *ctx, const char *name, int64_t lo, int64_t hi,
                            const TgVariableOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "variable", TgVariableOptions, o, opt);
  int64_t m = TG_OPTION(o, multiple_of, 1);
  TG_REQUIRE(ctx, name && *name, TG_ERR_VALUE, "variable: no name");
  TG_REQUIRE(ctx, m > 0 && lo >= 0 && lo <= hi && hi <= INT64_C(1) << 48 && hi / m * m >= lo, TG_ERR_VALUE,
             "variable '%.64s': no value from %lld to %lld that is a multiple of %lld", name, (long long)lo,
             (long long)hi, (long long)m);
  TgVariable *v = mem_alloc(&ctx->mem, sizeof *v);
  bool ok = v && vec_reserve(&ctx->mem, &ctx->variables, ctx->variables.len + 1);
  if (ok) {
    *v = (TgVariable){ctx, dims_var(ctx->dims, name, (lo + m - 1) / m * m, hi / m * m, m)};
    ok = v->number >= 0;
  }
  if (ok) return ctx->variables.at[ctx->variables.len++] = v;
  mem_free(&ctx->mem, v);
  error_set(&ctx->err, TG_ERR_NOMEM, "variable '%.64s': out of memory", name);
  return NULL;
}

/* A value that was computed from a variable is an expression of it, and is computed anew if it is asked
 * for after another value is bound (engine/graph_copy.c). A store is not: a store that waits must run with
 * the value that the variable had when the store was made. */
static bool stores_flushed(const TgVariable *v) {
  TgContext *ctx = v->ctx;
  bool ok = true, names = false;
  for (size_t i = ctx->waiting.len; ok && i-- > 0;) {
    if (i >= ctx->waiting.len) continue; /* it ran together with another one */
    Buffer *b = ctx->buffers.at[ctx->waiting.at[i]];
    if (!b->store->symbolic) continue;
    ok = dims_name(ctx->store, &ctx->mem, b->store, v->number, &names) ||
         (error_no_memory(&ctx->err, "variable"), false);
    if (ok && names) ok = memory_flush(ctx, b);
  }
  return ok;
}

TgStatus tg_variable_bind(TgVariable *v, int64_t value) {
  if (!v) return TG_ERR_VALUE;
  DimVar *f = facts(v);
  TG_REQUIRE_OR(v->ctx, value >= f->lo && value <= f->hi && value % f->multiple == 0, TG_ERR_VALUE,
                TG_ERR_VALUE, "variable '%.64s': %lld is not from %lld to %lld%s%.0lld", f->name,
                (long long)value, (long long)f->lo, (long long)f->hi,
                f->multiple > 1 ? ", a multiple of " : "", (long long)(f->multiple > 1 ? f->multiple : 0));
  if (f->bound && f->value == value) return TG_OK;
  if (f->bound && !stores_flushed(v)) return v->ctx->err.status;
  f = facts(v);
  f->bound = true;
  f->value = value;
  v->ctx->bound++;
  return TG_OK;
}

TgStatus tg_variable_unbind(TgVariable *v, int64_t *value) {
  if (!v) return TG_ERR_VALUE;
  DimVar *f = facts(v);
  TG_REQUIRE_OR(v->ctx, f->bound, TG_ERR_STATE, TG_ERR_STATE, "variable '%.64s' is not bound", f->name);
  if (!stores_flushed(v)) return v->ctx->err.status;
  f->bound = false;
  v->ctx->bound++;
  if (value) *value = f->value;
  return TG_OK;
}

bool tg_variable_value(const TgVariable *v, int64_t *value) {
  if (!v || !facts(v)->bound) return false;
  if (value) *value = facts(v)->value;
  return true;
}

int variable_number(const TgVariable *v) { return v->number; }

TgVariable *variable_at(TgContext *ctx, int number) {
  for (size_t i = 0; i < ctx->variables.len; i++)
    if (ctx->variables.at[i]->number == number) return ctx->variables.at[i];
  return NULL;
}

const char *tg_variable_name(const TgVariable *v) { return v ? facts(v)->name : ""; }

/* ---- sizes */
static int64_t known(TgContext *ctx, const char *op, int64_t size) {
  TG_REQUIRE_OR(ctx, size != DIM_BAD, DIM_BAD, TG_ERR_LIMIT, "%s: too long a sum of products, or too large",
                op);
  return size;
}

int64_t tg_size(const TgVariable *v) {
  return v ? known(v->ctx, "size", dim_of_var(v->ctx->store, v->number)) : DIM_BAD;
}

int64_t tg_size_add(TgContext *ctx, int64_t a, int64_t b) {
  return ctx ? known(ctx, "size_add", dim_add(ctx->store, a, b)) : DIM_BAD;
}

int64_t tg_size_sub(TgContext *ctx, int64_t a, int64_t b) {
  return ctx ? known(ctx, "size_sub", dim_sub(ctx->store, a, b)) : DIM_BAD;
}

int64_t tg_size_mul(TgContext *ctx, int64_t a, int64_t b) {
  return ctx ? known(ctx, "size_mul", dim_mul(ctx->store, a, b)) : DIM_BAD;
}

bool tg_size_div(TgContext *ctx, int64_t a, int64_t b, int64_t *q) {
  return ctx && q && dim_div(ctx->store, a, b, q);
}

bool tg_size_bounds(const TgContext *ctx, int64_t size, int64_t *least, int64_t *most) {
  if (!ctx || !dim_known(ctx->store, size)) return false;
  if (least) *least = dim_min(ctx->store, size);
  if (most) *most = dim_max(ctx->store, size);
  return true;
}

TgTensor *tg_size_tensor(TgContext *ctx, int64_t size, TgDType dtype) {
  if (!ctx) return NULL;
  bool fits = dim_max(ctx->store, size) <= INT32_MAX && dim_min(ctx->store, size) >= INT32_MIN;
  DType d = dtype_of(dtype, fits ? DT_I32 : DT_I64);
  TG_REQUIRE(ctx, d && d != DT_BOOL, TG_ERR_DTYPE, "size_tensor: dtype %s", dtype_name(d));
  UOp *u = u_size(ctx->store, size, d, ints_get(ctx->store, 0, NULL));
  TG_REQUIRE(ctx, u, TG_ERR_VALUE, "size_tensor: %lld is no size of this context", (long long)size);
  return tensor_new(ctx, u);
}

TgTensor *tg_variable_tensor(const TgVariable *v) {
  return v ? tg_size_tensor(v->ctx, tg_size(v), TG_DTYPE_DEFAULT) : NULL;
}
