/* random.c: random numbers, the same stream as tinygrad's, bit for bit. In: the context's seed and
 * counter. Out: lazy tensors. Equal programs get equal numbers on every device.
 *
 * A draw of n words takes the counter c and advances it by n. Its key is threefry2x32(c, {device, seed}).
 * With h = ceil(n / 2), word i < h is the low half of threefry2x32({i, i + h}, key) and word i + h is the
 * high half. Words are then read as elements: the top bits become the mantissa of a number in [1, 2), and
 * 1 is subtracted.
 *
 * The key of a draw is computed here and is put in a buffer of its own, so no graph contains it as a
 * constant. A program that draws is therefore the same graph each time, and a replay draws new keys
 * (draw_again). */
#include "tensor/front.h"
#include "tensor/multi.h"

/* The low 32 bits of SHA-256 of 0, 1, .. in four bytes, big-endian: tinygrad's numbers of the devices, in
 * the order in which they first draw. */
static const uint32_t device_number[MOST_DEVICES] = {
    0x14b81119, 0x764f528d, 0xdb12cf1a, 0x0f79f7d3, 0x900b0937, 0x3eaa7569, 0x7c0172cb, 0x28a3a23b,
    0x15036943, 0xdfa285d3, 0xeae31389, 0xf888ebe4, 0x9a1c7059, 0x4273a435, 0x5a3336e3, 0x0f41de35};

/* Words for one key. A longer draw continues with the key of the counter that it has reached. */
static const int64_t most_words = UINT32_MAX;

uint32_t draw_number(int order) { return device_number[order - 1]; }

static uint64_t key_at(const TgContext *ctx, int order, uint64_t counter) {
  uint64_t number = draw_number(order);
  Scalar in[2] = {{.i = (int64_t)counter}, {.i = (int64_t)(ctx->rng_seed << 32 | number)}}, out = {.i = 0};
  scalar_eval(OPS_THREEFRY, DT_U64, in, &out);
  return (uint64_t)out.i;
}

static UOp *u_int(UOpStore *st, UOp *like, int64_t v) {
  return like ? u_full(st, (DType)like->dtype, (Scalar){.i = v}, like->shape) : NULL;
}

static UOp *shifted(UOpStore *st, UOp *u, int n) {
  return u ? uop_alu2(st, OPS_SHR, u, u_int(st, u, n)) : NULL;
}

static UOp *packed(UOpStore *st, UOp *low, UOp *high) {
  UOp *h = uop_cast(st, high, DT_U64);
  return h ? uop_alu2(st, OPS_OR, uop_alu2(st, OPS_SHL, h, u_int(st, h, 32)), uop_cast(st, low, DT_U64))
           : NULL;
}

/* Returns n words for a key, u64 (1): u32 (n). */
static UOp *words_of(UOpStore *st, UOp *key, int64_t n) {
  int64_t h = (n + 1) / 2;
  const Ints *grid = ints_get(st, 2, (int64_t[]){2, h});
  if (!grid || !key) return NULL;
  UOp *i = uop_cast(st, u_arange(st, grid, 1, h > INT32_MAX ? DT_I64 : DT_I32), DT_U32);
  UOp *row = u_arange(st, grid, 0, DT_I32);
  UOp *both = i && row ? uop_alu2(st, OPS_THREEFRY, packed(st, i, uop_alu2(st, OPS_ADD, i, u_int(st, i, h))),
                                  u_broadcast(st, key, grid))
                       : NULL;
  if (!both) return NULL;
  UOp *w = uop_where(st, uop_alu2(st, OPS_CMPEQ, row, u_int(st, row, 0)), uop_cast(st, both, DT_U32),
                     uop_cast(st, shifted(st, both, 32), DT_U32));
  return u_shrink(st, u_reshape(st, w, 1, (int64_t[]){2 * h}), (int64_t[]){0, n});
}

static UOp *joined_words(TgContext *ctx, UOp **part, int n) {
  TgTensor *t[64];
  if (n == 1) return part[0];
  for (int i = 0; i < n; i++)
    if (!(t[i] = tensor_new(ctx, part[i]))) return NULL;
  TgTensor *all = tg_cat(t, n, 0);
  return all ? all->uop : NULL;
}

static bool words_check(TgContext *ctx, const char *op, int64_t n) {
  TG_REQUIRE_OR(ctx, n >= 0 && n / most_words < 64, false, TG_ERR_LIMIT, "%s: %lld words in one draw", op,
                (long long)n);
  return true;
}

int draw_order(const TgContext *ctx, int device) {
  int before = 0;
  for (int i = 0; i < MOST_DEVICES; i++)
    before += ctx->draws[i].order > 0;
  return ctx->draws[device].order ? ctx->draws[device].order : before + 1;
}

/* Returns the draws of a device, which now has its place in the order of devices that draw. */
static Draws *drawing(TgContext *ctx, int device) {
  ctx->draws[device].order = draw_order(ctx, device);
  return &ctx->draws[device];
}

static UOp *words(TgContext *ctx, const char *op, int64_t n) {
  UOp *part[64];
  int parts = 0;
  if (!words_check(ctx, op, n)) return NULL;
  TG_REQUIRE(ctx, ctx->dev_open, TG_ERR_DEVICE, "%s: no device is open", op);
  Draws *d = drawing(ctx, ctx->draw_device);
  for (int64_t at = 0; at < n; at += most_words, parts++) {
    uint64_t key = key_at(ctx, d->order, d->counter + (uint64_t)at);
    TgTensor *t = tensor_from(ctx, ctx->draw_device, &key, TG_U64, TG_SHAPE(1));
    Buffer *b = t ? t->memory : NULL;
    if (!b) return NULL;
    b->draws = TG_MIN(n - at, most_words);
    TgTensor *all = ctx->draw_devices ? tensor_on_all(t, ctx->draw_devices) : t;
    part[parts] = all ? words_of(ctx->store, all->uop, b->draws) : NULL;
  }
  d->counter += (uint64_t)n;
  return joined_words(ctx, part, parts);
}

TgStatus draw_again(TgContext *ctx, Buffer *b) {
  Draws *d = drawing(ctx, b->device);
  uint64_t key = key_at(ctx, d->order, d->counter);
  d->counter += (uint64_t)b->draws;
  return ctx->calls->copy_in(ctx, b->device, b->data, &key, sizeof key);
}

void tg_manual_seed(TgContext *ctx, uint64_t seed) {
  if (!ctx) return;
  ctx->rng_seed = seed;
  memset(ctx->draws, 0, sizeof ctx->draws);
}

TgRandomState tg_random_state(TgContext *ctx) {
  if (!ctx || !ctx->dev_open) return (TgRandomState){.order = 1};
  int d = ctx->draw_device;
  return (TgRandomState){
      .seed = ctx->rng_seed, .counter = ctx->draws[d].counter, .order = draw_order(ctx, d)};
}

TgStatus tg_random_resume(TgContext *ctx, TgRandomState state) {
  if (!ctx) return TG_ERR_NOMEM;
  TG_REQUIRE_OR(ctx, ctx->dev_open, ctx->err.status, TG_ERR_DEVICE, "random_resume: no device is open");
  TG_REQUIRE_OR(ctx, state.order >= 1 && state.order <= MOST_DEVICES, ctx->err.status, TG_ERR_VALUE,
                "random_resume: order %lld, which is one of 1 .. %d", (long long)state.order, MOST_DEVICES);
  ctx->rng_seed = state.seed;
  ctx->draws[ctx->draw_device] = (Draws){.counter = state.counter, .order = (int)state.order};
  return TG_OK;
}

TgTensor *tg_random_bits(TgTensor *key, TgTensor *counter, int64_t n) {
  TG_NUMBERS(key, "random_bits");
  if (key && !dims_numbers(key->ctx, "random_bits", 1, &n)) return NULL;
  TgContext *ctx = ctx_two("random_bits", key, counter);
  if (!ctx) return NULL;
  UOpStore *st = ctx->store;
  TG_REQUIRE(ctx, dt(key) == DT_U32 && dt(counter) == DT_U32 && nelem(key) == 2 && nelem(counter) == 2,
             TG_ERR_SHAPE, "random_bits: key %s %s, counter %s %s; both are two u32", dtype_name(dt(key)),
             SHAPE_OF(key), dtype_name(dt(counter)), SHAPE_OF(counter));
  if (!words_check(ctx, "random_bits", n)) return NULL;
  if (n == 0) return tg_zeros(ctx, TG_SHAPE(0), .dtype = TG_U32);
  TgTensor *k = tg_reshape(key, TG_SHAPE(2)), *c = tg_reshape(counter, TG_SHAPE(2));
  if (!k || !c) return NULL;
  UOp *k0 = u_shrink(st, k->uop, (int64_t[]){0, 1}), *k1 = u_shrink(st, k->uop, (int64_t[]){1, 2}), *part[64];
  UOp *at = packed(st, u_shrink(st, c->uop, (int64_t[]){0, 1}), u_shrink(st, c->uop, (int64_t[]){1, 2}));
  UOp *base = packed(st, k0, k1);
  int parts = 0;
  for (int64_t i = 0; i < n; i += most_words, parts++) {
    UOp *from = i && at ? uop_alu2(st, OPS_ADD, at, u_int(st, at, i)) : at;
    part[parts] =
        words_of(st, from && base ? uop_alu2(st, OPS_THREEFRY, from, base) : NULL, TG_MIN(n - i, most_words));
  }
  return tensor_new(ctx, joined_words(ctx, part, parts));
}

/* ---- floats in [0, 1) */
static int mantissa_of(DType d) {
  return d == DT_F64 ? 52 : d == DT_F32 ? 23 : d == DT_F16 ? 10 : d == DT_BF16 ? 7 : d == DT_FP8E4M3 ? 3 : 2;
}

/* Reads flat u32 words as n elements of [0, 1). */
static TgTensor *unit(TgContext *ctx, UOp *w, DType d, int64_t n) {
  UOpStore *st = ctx->store;
  int bits = 8 * (int)dtype_size(d);
  TgDType whole = bits == 8 ? TG_U8 : bits == 16 ? TG_U16 : bits == 32 ? TG_U32 : TG_U64;
  Scalar one = {.i = 0};
  scalar_store(d, (Scalar){.f = 1}, &one.i); /* little-endian */
  /* several elements share a word, so the words are computed once */
  if (bits < 32 && w) w = uop_alu1(st, OPS_CONTIGUOUS, w);
  TgTensor *u = tg_slice(tg_bitcast(tensor_new(ctx, w), whole), 0, 0, n);
  UOp *x = u ? shifted(st, u->uop, bits - mantissa_of(d)) : NULL;
  x = x ? uop_alu2(st, OPS_OR, x, u_int(st, x, one.i)) : NULL;
  return tg_sub_scalar(tg_bitcast(tensor_new(ctx, x), dtype_public(d)), 1);
}

/* Computed once, however many readers there are. */
static TgTensor *kept(TgTensor *t) {
  return t ? tensor_new(t->ctx, uop_alu1(t->ctx->store, OPS_CONTIGUOUS, t->uop)) : NULL;
}

/* The same, but split as x is. */
static TgTensor *kept_like(TgTensor *t, TgTensor *x) {
  return kept(t && on_several(x->uop) ? tg_shard_like(t, x) : t);
}

typedef TgTensor *Law(TgContext *ctx, const char *op, DType d, int n, const int64_t *dm, int64_t nelem);

/* For a symbolic size, the largest number of elements is drawn. So the first elements are the same for
 * every value of the variables. */
static TgTensor *drawn(Law *law, TgContext *ctx, const char *op, DType d, int n, const int64_t *dm) {
  int64_t nelem, most[TG_MAX_RANK];
  if (!shape_check(ctx, op, n, dm, &nelem)) return NULL;
  if (nelem == 0) return tg_zeros(ctx, n, dm, .dtype = dtype_public(d));
  if (!dim_symbolic(nelem)) return law(ctx, op, d, n, dm, nelem);
  for (int i = 0; i < n; i++)
    most[i] = dim_max(ctx->store, dm[i]);
  return tg_shrink_to(law(ctx, op, d, n, most, dim_max(ctx->store, nelem)), n, dm);
}

static TgTensor *unit_draw(TgContext *ctx, const char *op, DType d, int n, const int64_t *dm, int64_t nelem) {
  UOp *w = words(ctx, op, (nelem * (int64_t)dtype_size(d) + 3) / 4);
  TG_REQUIRE(ctx, w, TG_ERR_NOMEM, "%s: out of memory", op);
  return tg_reshape(unit(ctx, w, d, nelem), n, dm);
}

/* Until draw_end, draws are made on the device with this name (NULL: the same device as before), or alike
 * on each of a list of devices. Returns what draw_end must get. -1: an error was recorded. */
static int draw_begin(TgContext *ctx, const char *op, const char *device) {
  bool several = device && strchr(device, ',');
  uint64_t all = several ? devices_find(ctx, op, device) : 0;
  if (several && !all) return -1;
  int before = ctx->draw_device;
  int on = several ? __builtin_ctzll(all) : device ? ctx->calls->find(ctx, op, device) : before;
  if (on < 0) return -1;
  TG_REQUIRE_OR(ctx, !ctx->dev_open || !(ctx->calls->facts(ctx, on).files_only), -1, TG_ERR_DEVICE,
                "%s: %s has files alone", op, device);
  ctx->draw_device = on;
  ctx->draw_devices = all;
  return before;
}

static TgTensor *draw_end(TgContext *ctx, int before, TgTensor *t) {
  ctx->draw_device = before;
  ctx->draw_devices = 0;
  return t;
}

static TgTensor *draw(TgContext *ctx, const char *op, DType d, int n, const int64_t *dm) {
  TG_REQUIRE(ctx, dtype_is_float(d), TG_ERR_DTYPE, "%s: %s is not a float", op, dtype_name(d));
  return drawn(unit_draw, ctx, op, d, n, dm);
}

/* Draws f32 on the device of x. */
static TgTensor *draw_beside(TgTensor *x, const char *op, int n, const int64_t *dm) {
  int before = draw_begin(x->ctx, op, tg_device(x));
  return before < 0 ? NULL : draw_end(x->ctx, before, draw(x->ctx, op, DT_F32, n, dm));
}

static bool dtype_wanted(TgContext *ctx, const char *op, TgDType want, DType fallback, DType *d) {
  *d = dtype_of(want, fallback);
  TG_REQUIRE_OR(ctx, *d, false, TG_ERR_DTYPE, "%s: unknown dtype %d", op, (int)want);
  return true;
}

/* The Box-Muller transform of two uniform f32, drawn as one tensor of two halves. */
static TgTensor *normal(TgContext *ctx, const char *op, DType d, int n, const int64_t *dm, int64_t nelem) {
  TgTensor *u = draw(ctx, op, DT_F32, 2, (int64_t[]){2, nelem});
  TgTensor *angle = tg_mul_scalar(tg_select(u, 0, 0), 6.283185307179586);
  TgTensor *r = tg_sqrt(tg_mul_scalar(tg_log(tg_rsub_scalar(tg_select(u, 0, 1), 1)), -2));
  return tg_reshape(kept(tensor_cast(tg_mul(tg_cos(angle), r), dtype_public(d))), n, dm);
}

TgTensor *tg_rand_opt(TgContext *ctx, int n, const int64_t *dm, const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "rand", TgDTypeOptions, o, opt);
  DType d;
  if (!dtype_wanted(ctx, "rand", o.dtype, DT_F32, &d)) return NULL;
  int before = draw_begin(ctx, "rand", o.device);
  return before < 0 ? NULL : draw_end(ctx, before, kept(draw(ctx, "rand", d, n, dm)));
}

TgTensor *tg_randn_opt(TgContext *ctx, int n, const int64_t *dm, const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "randn", TgDTypeOptions, o, opt);
  DType d;
  if (!dtype_wanted(ctx, "randn", o.dtype, DT_F32, &d)) return NULL;
  int before = draw_begin(ctx, "randn", o.device);
  return before < 0 ? NULL : draw_end(ctx, before, drawn(normal, ctx, "randn", d, n, dm));
}

/* Fills in the options of a tensor like t. Returns false if they are refused. */
static bool like(const char *op, TgTensor *t, const TgDTypeOptions *opt, TgDTypeOptions *o) {
  if (!t || tg_options_read(t->ctx, op, "TgDTypeOptions", o, sizeof *o, opt)) return false;
  if (!o->dtype) o->dtype = tg_dtype(t);
  if (!o->device) o->device = tg_device(t);
  return true;
}

TgTensor *tg_rand_like_opt(TgTensor *t, const TgDTypeOptions *opt) {
  TgDTypeOptions o;
  DType d;
  if (!like("rand_like", t, opt, &o)) return NULL;
  if (!on_several(t->uop)) return tg_rand_opt(t->ctx, rank(t), dims(t), &o);
  if (!dtype_wanted(t->ctx, "rand_like", o.dtype, DT_F32, &d)) return NULL;
  int before = draw_begin(t->ctx, "rand_like", o.device);
  TgTensor *r = before < 0 ? NULL : draw_end(t->ctx, before, draw(t->ctx, "rand_like", d, rank(t), dims(t)));
  return kept_like(r, t);
}

TgTensor *tg_randn_like_opt(TgTensor *t, const TgDTypeOptions *opt) {
  TgDTypeOptions o;
  if (!like("randn_like", t, opt, &o)) return NULL;
  TgTensor *r = tg_randn_opt(t->ctx, rank(t), dims(t), &o);
  return on_several(t->uop) ? tg_shard_like(r, t) : r;
}

TgTensor *tg_empty_like_opt(TgTensor *t, const TgDTypeOptions *opt) {
  TgDTypeOptions o;
  if (!like("empty_like", t, opt, &o)) return NULL;
  if (on_several(t->uop)) {
    TgTensor *r = tg_cast(tg_zeros_like(t), o.dtype);
    return r && shard_memory(r, r->uop) ? r : NULL;
  }
  return tensor_empty(t->ctx, o.device, o.dtype, rank(t), dims(t));
}

/* ---- other distributions */
static TgTensor *between(TgContext *ctx, const char *op, int n, const int64_t *dm, double low, double high,
                         DType d) {
  TG_REQUIRE(ctx, low < high, TG_ERR_VALUE, "%s: %g is not below %g", op, low, high);
  TgTensor *u = tg_mul_scalar(draw(ctx, op, DT_F32, n, dm), high - low);
  u = tensor_cast(u, dtype_public(d)); /* low is added in that dtype */
  return kept(tg_add_scalar(u, low));
}

static TgTensor *uniform(TgContext *ctx, const char *op, int n, const int64_t *dm, double low, double high,
                         const TgDTypeOptions *opt) {
  TG_OPTIONS(ctx, op, TgDTypeOptions, o, opt);
  DType d;
  if (!dtype_wanted(ctx, op, o.dtype, DT_F32, &d)) return NULL;
  TG_REQUIRE(ctx, d != DT_BOOL, TG_ERR_DTYPE, "%s: bool", op);
  int before = draw_begin(ctx, op, o.device);
  return before < 0 ? NULL : draw_end(ctx, before, between(ctx, op, n, dm, low, high, d));
}

TgTensor *tg_uniform_opt(TgContext *ctx, int n, const int64_t *dm, double low, double high,
                         const TgDTypeOptions *o) {
  return ctx ? uniform(ctx, "uniform", n, dm, low, high, o) : NULL;
}

TgTensor *tg_randint(TgContext *ctx, int n, const int64_t *dm, int64_t low, int64_t high, TgDType dtype) {
  DType d;
  if (!ctx || !dtype_wanted(ctx, "randint", dtype, DT_I32, &d)) return NULL;
  TG_REQUIRE(ctx, dtype_is_int(d), TG_ERR_DTYPE, "randint: %s is not an integer", dtype_name(d));
  TG_REQUIRE(ctx, low < high && low >= dtype_min(d) && high - 1 <= dtype_max(d), TG_ERR_VALUE,
             "randint: %lld .. %lld in %s", (long long)low, (long long)high, dtype_name(d));
  int64_t span;
  TG_REQUIRE(ctx, !__builtin_sub_overflow(high, low, &span), TG_ERR_VALUE, "randint: %lld .. %lld",
             (long long)low, (long long)high);
  TgTensor *u = tg_mul_scalar(draw(ctx, "randint", DT_F32, n, dm), (double)span);
  /* If the dtype cannot hold the span, it is computed in i64, which wraps to the same result. */
  u = tensor_cast(tg_add(tensor_cast(u, TG_I64), tg_full_i64(ctx, TG_SCALAR, low, TG_I64)), dtype_public(d));
  return kept(u);
}

TgTensor *tg_normal_opt(TgContext *ctx, int n, const int64_t *dm, double mean, double std,
                        const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_REQUIRE(ctx, std >= 0, TG_ERR_VALUE, "normal: a deviation of %g", std);
  return tg_add_scalar(tg_mul_scalar(tg_randn_opt(ctx, n, dm, opt), std), mean);
}

static double size_from(int n, const int64_t *d, int first) {
  double p = 1;
  for (int i = first; i < n; i++)
    p *= (double)d[i];
  return p;
}

TgTensor *tg_scaled_uniform_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) {
  if (ctx && !dims_numbers(ctx, "scaled_uniform", n, d)) return NULL;
  if (!ctx || !shape_check(ctx, "scaled_uniform", n, d, NULL)) return NULL;
  return tg_mul_scalar(uniform(ctx, "scaled_uniform", n, d, -1, 1, o),
                       1 / sqrt(TG_MAX(size_from(n, d, 0), 1)));
}

TgTensor *tg_glorot_uniform_opt(TgContext *ctx, int n, const int64_t *d, const TgDTypeOptions *o) {
  if (ctx && !dims_numbers(ctx, "glorot_uniform", n, d)) return NULL;
  if (!ctx || !shape_check(ctx, "glorot_uniform", n, d, NULL)) return NULL;
  TG_REQUIRE(ctx, n > 0, TG_ERR_SHAPE, "glorot_uniform: a shape of no axes");
  double bound = sqrt(6 / TG_MAX((double)d[0] + size_from(n, d, 1), 1));
  return uniform(ctx, "glorot_uniform", n, d, -bound, bound, o);
}

/* 1 / ((1 + a^2) fan_in). */
static double kaiming(const TgKaimingOptions *o, int n, const int64_t *d) {
  double a = TG_OPTION(*o, a, 0.01);
  return 1 / (1 + a * a) / TG_MAX(size_from(n, d, 1), 1);
}

TgTensor *tg_kaiming_uniform_opt(TgContext *ctx, int n, const int64_t *d, const TgKaimingOptions *opt) {
  if (ctx && !dims_numbers(ctx, "kaiming_uniform", n, d)) return NULL;
  if (!ctx || !shape_check(ctx, "kaiming_uniform", n, d, NULL)) return NULL;
  TG_OPTIONS(ctx, "kaiming_uniform", TgKaimingOptions, o, opt);
  double bound = sqrt(6 * kaiming(&o, n, d));
  return uniform(ctx, "kaiming_uniform", n, d, -bound, bound,
                 &(TgDTypeOptions){.size = sizeof(TgDTypeOptions), .dtype = o.dtype, .device = o.device});
}

TgTensor *tg_kaiming_normal_opt(TgContext *ctx, int n, const int64_t *d, const TgKaimingOptions *opt) {
  if (ctx && !dims_numbers(ctx, "kaiming_normal", n, d)) return NULL;
  if (!ctx || !shape_check(ctx, "kaiming_normal", n, d, NULL)) return NULL;
  TG_OPTIONS(ctx, "kaiming_normal", TgKaimingOptions, o, opt);
  return tg_normal_opt(
      ctx, n, d, 0, sqrt(2 * kaiming(&o, n, d)),
      &(TgDTypeOptions){.size = sizeof(TgDTypeOptions), .dtype = o.dtype, .device = o.device});
}

TgTensor *tg_dropout(TgTensor *x, double p) {
  if (!x) return NULL;
  TgContext *ctx = x->ctx;
  TG_REQUIRE(ctx, p >= 0 && p <= 1, TG_ERR_VALUE, "dropout: p = %g is not in 0 .. 1", p);
  TG_REQUIRE(ctx, dtype_is_float(dt(x)), TG_ERR_DTYPE, "dropout: %s is not a float", dtype_name(dt(x)));
  if (!ctx->training || p == 0 || nelem(x) == 0) return tensor_result(x, x);
  if (p == 1) return tg_zeros_like(x);
  TgTensor *mask =
      kept_like(tg_ge_scalar(draw_beside(x, "dropout", rank(x), dims(x)), p), x); /* one byte for each
                                                                                   * element */
  return tg_where(mask, tg_mul_scalar(x, 1 / (1 - p)), tg_scalar_like(x, 0));
}

/* ---- choices by weight. w is (rows, n). The index is the number of running sums that the uniform number
 * has passed. Without replacement (Efraimidis and Spirakis) these are the k largest of log(u) / w; of
 * equal ones, the first. */
TgTensor *tg_multinomial_opt(TgTensor *weight, int64_t k, const TgMultinomialOptions *opt) {
  TG_NUMBERS(weight, "multinomial");
  if (!weight) return NULL;
  TG_OPTIONS(tg_context(weight), "multinomial", TgMultinomialOptions, o, opt);
  TgContext *ctx = weight->ctx;
  int r = rank(weight);
  TG_REQUIRE(ctx, r == 1 || r == 2, TG_ERR_SHAPE, "multinomial: weights of shape %s", SHAPE_OF(weight));
  int64_t n = dims(weight)[r - 1];
  TG_REQUIRE(ctx, k > 0 && n > 0 && n < INT32_MAX && (o.replacement || k <= n), TG_ERR_VALUE,
             "multinomial: %lld samples of %lld weights", (long long)k, (long long)n);
  TgTensor *w = r == 1 ? tg_unsqueeze(weight, 0) : weight, *out = NULL;
  if (!w) return NULL;
  int64_t rows = dims(w)[0];
  if (o.replacement || k == 1) {
    /* (rows, n) */
    TgTensor *sum = tensor_cast(tg_cumsum(w, 1), TG_F32), *part = tg_div(sum, tg_slice(sum, 1, -1, n));
    TgTensor *u = kept(draw_beside(w, "multinomial", 3, (int64_t[]){k, rows, 1}));
    out = tg_transpose(tg_sum(tg_ge(u, tg_unsqueeze(part, 0)), .axis = TG_AXES(2)), 0, 1);
  } else {
    TgTensor *key = kept(tg_div(tg_log2(draw_beside(w, "multinomial", 2, dims(w))), tensor_cast(w, TG_F32)));
    TgTensor *at = tg_arange(ctx, 0, (double)n);
    TgTensor *open = tg_full(ctx, 2, dims(w), 1, .dtype = TG_BOOL);
    TgTensor **pick = mem_alloc(&ctx->mem, (size_t)k * sizeof *pick);
    TG_REQUIRE(ctx, pick, TG_ERR_NOMEM, "multinomial: out of memory");
    for (int64_t i = 0; i < k; i++) { /* one at a time: a place that is taken is closed */
      TgTensor *left = tg_where(open, key, tg_scalar_like(key, -INFINITY));
      TgTensor *best = tg_max(left, .axis = TG_AXES(1), .keepdim = true);
      TgTensor *hit = tensor_cast(tg_bitand(open, tg_eq(left, best)), TG_I32);
      pick[i] = kept(tg_argmax(hit, .axis = TG_AXES(1), .keepdim = true));
      open = kept(tg_bitand(open, tg_ne(at, pick[i])));
    }
    out = tg_cat(pick, (int)k, 1);
    mem_free(&ctx->mem, pick);
  }
  return tensor_cast(r == 1 ? tg_squeeze(out, 0) : out, TG_I32);
}

/* The sorting order of n uniform numbers. */
TgTensor *tg_randperm_opt(TgContext *ctx, int64_t n, const TgDTypeOptions *opt) {
  if (!ctx) return NULL;
  TG_OPTIONS(ctx, "randperm", TgDTypeOptions, o, opt);
  DType d;
  if (!dtype_wanted(ctx, "randperm", o.dtype, DT_I32, &d)) return NULL;
  TG_REQUIRE(ctx, n >= 0, TG_ERR_VALUE, "randperm: %lld numbers", (long long)n);
  TG_REQUIRE(ctx, dtype_is_int(d) && (n == 0 || n - 1 <= dtype_max(d)), TG_ERR_DTYPE,
             "randperm: %lld numbers in %s", (long long)n, dtype_name(d));
  return tensor_cast(tg_argsort(tg_rand(ctx, TG_SHAPE(n), .device = o.device)), dtype_public(d));
}
