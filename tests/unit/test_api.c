/* test_api.c: each function of the API beside the results of NumPy and PyTorch in tests/goldens/api.txt (made
 * by make_api.py there, which says what a case is). A case runs on CPU and on INTERP, on its inputs as they
 * are and on views of them that are not contiguous; those marked `diff` are differentiated, once and twice,
 * beside finite differences in f64. And each is built with memory for a part of its graph alone. */
#include "engine/engine.h"
#include "files/short.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MAX_IN = 5, MAX_OUT = 8, MAX_A = 8 };

typedef struct Value {
  TgDType dtype;
  int ndim;
  int64_t dims[TG_MAX_RANK];
  int64_t n;
  double *v;
} Value;

typedef struct Case {
  char name[32];
  int na, nin, nout, line;
  double a[MAX_A], near;
  bool diff;
  Value in[MAX_IN], out[MAX_OUT];
} Case;

static TgContext *C;

/* ---- the functions by name. x: inputs, c->a: numbers, y: results; returns how many. */
#define RUN(name) static int run_##name(const Case *c, TgTensor **x, TgTensor **y)
#define ONE(expr)                                                                                            \
  do {                                                                                                       \
    y[0] = (expr);                                                                                           \
    return 1;                                                                                                \
  } while (0)
#define UNUSED (void)c, (void)x

static TgAxes axes_of(const Case *c) {
  TgAxes a = {.n = c->na - 1};
  for (int i = 0; i < a.n; i++)
    a.v[i] = (int)c->a[i + 1];
  return a;
}

static void ints_of(const Case *c, int from, int64_t *d) {
  for (int i = from; i < c->na; i++)
    d[i - from] = (int64_t)c->a[i];
}

static TgSizes same(double v) { return TG_SIZES((int64_t)v); }

#define UNARY(name)                                                                                          \
  RUN(name) {                                                                                                \
    UNUSED;                                                                                                  \
    ONE(tg_##name(x[0]));                                                                                    \
  }
/* clang-format off */
#define UNARIES(F) \
  F(exp2) F(log2) F(sin) F(sqrt) F(exp) F(cos) F(log) F(log10) F(tan) F(rsqrt) F(square) F(abs) F(neg) \
  F(reciprocal) F(sinh) F(cosh) F(tanh) F(asin) F(acos) F(atan) F(asinh) F(acosh) F(atanh) F(erf) F(relu) \
  F(relu6) F(selu) F(sigmoid) F(logsigmoid) F(hardsigmoid) F(hardswish) F(softplus) F(softsign) F(mish) \
  F(silu) F(quick_gelu) F(gelu) F(gelu_erf) F(sign) F(trunc) F(floor) F(ceil) F(round) F(isnan) F(isinf) \
  F(isfinite) F(isposinf) F(isneginf) F(signbit) F(logical_not) F(bitnot) F(squeeze_all) F(diag) \
  F(zeros_like) F(ones_like)
/* clang-format on */
UNARIES(UNARY)
#define BINARY(name)                                                                                         \
  RUN(name) {                                                                                                \
    UNUSED;                                                                                                  \
    ONE(tg_##name(x[0], x[1]));                                                                              \
  }
/* clang-format off */
#define BINARIES(F) \
  F(add) F(sub) F(mul) F(div) F(maximum) F(minimum) F(atan2) F(logaddexp) F(fmod) F(mod) F(copysign) \
  F(floordiv) F(truncdiv) F(pow) F(lt) F(gt) F(le) F(ge) F(eq) F(ne) F(isclose) F(bitand) F(bitor) \
  F(bitxor) F(shl) F(shr) F(matmul)
/* clang-format on */
BINARIES(BINARY)
#define REDUCTION(name)                                                                                      \
  RUN(name) { ONE(tg_##name(x[0], .keepdim = c->a[0] != 0, .axis = axes_of(c))); }
#define REDUCTIONS(F)                                                                                        \
  F(sum) F(mean) F(max) F(min) F(var) F(std) F(logsumexp) F(any) F(all) F(prod) F(argmax) F(argmin)
REDUCTIONS(REDUCTION)
#define ALONG(name)                                                                                          \
  RUN(name) { ONE(tg_##name(x[0], .axis = TG_AXES((int)c->a[0]))); }
#define ALONGS(F) F(softmax) F(log_softmax) F(softmin)
ALONGS(ALONG)

RUN(leaky_relu) { ONE(tg_leaky_relu(x[0], c->a[0])); }

RUN(elu) { ONE(tg_elu(x[0], c->a[0])); }

RUN(celu) { ONE(tg_celu(x[0], c->a[0])); }

RUN(softplus_beta) { ONE(tg_softplus_beta(x[0], c->a[0])); }

RUN(hardtanh) { ONE(tg_hardtanh(x[0], c->a[0], c->a[1])); }

RUN(clamp) { ONE(tg_clamp(x[0], c->a[0], c->a[1])); }

RUN(where) {
  UNUSED;
  ONE(tg_where(x[0], x[1], x[2]));
}

RUN(lerp) {
  UNUSED;
  ONE(tg_lerp(x[0], x[1], x[2]));
}

RUN(clamp_tensor) {
  UNUSED;
  ONE(tg_clamp_tensor(x[0], x[1], x[2]));
}

RUN(masked_fill) { ONE(tg_masked_fill(x[0], x[1], c->a[0])); }

RUN(var_mean) {
  y[0] = tg_var_mean(x[0], &y[1], .keepdim = c->a[0] != 0, .axis = axes_of(c));
  return 2;
}

RUN(std_mean) {
  y[0] = tg_std_mean(x[0], &y[1], .keepdim = c->a[0] != 0, .axis = axes_of(c));
  return 2;
}

RUN(normalize) { ONE(tg_normalize(x[0], .p = c->a[0], .zero = c->a[0] == 0)); }

#define DIMS(from)                                                                                           \
  int64_t d[MAX_A];                                                                                          \
  ints_of(c, from, d)

RUN(reshape) {
  DIMS(0);
  ONE(tg_reshape(x[0], c->na, d));
}

RUN(permute) {
  DIMS(0);
  ONE(tg_permute(x[0], c->na, d));
}

RUN(expand) {
  DIMS(0);
  ONE(tg_expand(x[0], c->na, d));
}

RUN(flip) {
  DIMS(0);
  ONE(tg_flip(x[0], c->na, d));
}

RUN(shrink) {
  DIMS(0);
  ONE(tg_shrink(x[0], d, d + c->na / 2));
}

RUN(pad) {
  DIMS(0);
  ONE(tg_pad(x[0], d, d + c->na / 2));
}

RUN(pad_value) {
  DIMS(0);
  ONE(tg_pad_value(x[0], d, d + 2, c->a[4]));
}

RUN(pad_mode) {
  DIMS(1);
  ONE(tg_pad_mode(x[0], d, d + 2, (TgPadMode)c->a[0]));
}

RUN(pad_to) {
  DIMS(0);
  ONE(tg_pad_to(x[0], 2, d, c->a[2]));
}

RUN(shrink_to) {
  DIMS(0);
  ONE(tg_shrink_to(x[0], c->na, d));
}

RUN(transpose) { ONE(tg_transpose(x[0], (int)c->a[0], (int)c->a[1])); }

RUN(squeeze) { ONE(tg_squeeze(x[0], (int)c->a[0])); }

RUN(unsqueeze) { ONE(tg_unsqueeze(x[0], (int)c->a[0])); }

RUN(flatten) { ONE(tg_flatten(x[0], (int)c->a[0], (int)c->a[1])); }

RUN(unflatten) {
  DIMS(1);
  ONE(tg_unflatten(x[0], (int)c->a[0], c->na - 1, d));
}

RUN(repeat) {
  DIMS(0);
  ONE(tg_repeat(x[0], c->na, d));
}

RUN(repeat_interleave) { ONE(tg_repeat_interleave(x[0], (int64_t)c->a[0], (int)c->a[1])); }

RUN(roll) {
  DIMS(0);
  ONE(tg_roll(x[0], c->na / 2, d, d + c->na / 2));
}

RUN(roll_flat) {
  DIMS(0);
  ONE(tg_roll(x[0], 1, d, NULL));
}

RUN(diagonal) { ONE(tg_diagonal(x[0], (int64_t)c->a[0], (int)c->a[1], (int)c->a[2])); }

RUN(tril) { ONE(tg_tril(x[0], (int64_t)c->a[0])); }

RUN(triu) { ONE(tg_triu(x[0], (int64_t)c->a[0])); }

RUN(unfold) { ONE(tg_unfold(x[0], (int)c->a[0], (int64_t)c->a[1], (int64_t)c->a[2])); }

RUN(slice) { ONE(tg_slice(x[0], (int)c->a[0], (int64_t)c->a[1], (int64_t)c->a[2])); }

RUN(select) { ONE(tg_select(x[0], (int)c->a[0], (int64_t)c->a[1])); }

RUN(cat) { ONE(tg_cat(x, c->nin, (int)c->a[0])); }

RUN(stack) { ONE(tg_stack(x, c->nin, (int)c->a[0])); }

RUN(split) { return tg_split(x[0], (int)c->a[0], (int64_t)c->a[1], y, MAX_OUT); }

RUN(split_sizes) {
  DIMS(1);
  return tg_split_sizes(x[0], (int)c->a[0], c->na - 1, d, y);
}

RUN(chunk) { return tg_chunk(x[0], (int)c->a[0], (int)c->a[1], y, MAX_OUT); }

RUN(meshgrid) { return tg_meshgrid(x, c->nin, c->a[0] != 0, y) ? 0 : c->nin; }

RUN(rearrange0) {
  UNUSED;
  ONE(tg_rearrange(x[0], "b (h p) c -> b c (h p)", TG_NAMED({"p", 2})));
}

RUN(rearrange1) {
  UNUSED;
  ONE(tg_rearrange(x[0], "b c h w -> b (h w) c", NULL, 0));
}

RUN(rearrange2) {
  UNUSED;
  ONE(tg_rearrange(x[0], "(b n) ... w->b ... n 1 w", TG_NAMED({"n", 3})));
}

RUN(arange) {
  UNUSED;
  ONE(tg_arange(C, c->a[0], c->a[1], .step = c->a[2]));
}

RUN(linspace) {
  UNUSED;
  ONE(tg_linspace(C, c->a[0], c->a[1], (int64_t)c->a[2]));
}

RUN(eye) {
  UNUSED;
  ONE(tg_eye(C, (int64_t)c->a[0], .m = (int64_t)c->a[1]));
}

RUN(full) {
  UNUSED;
  DIMS(1);
  ONE(tg_full(C, c->na - 1, d, c->a[0]));
}

RUN(zeros) {
  UNUSED;
  DIMS(0);
  ONE(tg_zeros(C, c->na, d));
}

RUN(ones) {
  UNUSED;
  DIMS(0);
  ONE(tg_ones(C, c->na, d));
}

RUN(full_like) { ONE(tg_full_like(x[0], c->a[0])); }

RUN(linear) {
  UNUSED;
  ONE(tg_linear(x[0], x[1], x[2]));
}

RUN(einsum) {
  static const char *const f[] = {"ij,jk->ik",  "ij,jk",   "ii->i",        "ii",
                                  "ij->ji",     "i,j->ij", "bij,bjk->bik", "...ij, ...jk -> ...ik",
                                  "ij,ij->",    "iij->j",  "ij,kj,k->i",   "i...->...",
                                  "abc,cd->abd"};
  ONE(tg_einsum(f[(int)c->a[0]], x, c->nin));
}

RUN(newton_schulz) { ONE(tg_newton_schulz(x[0], (int)c->a[0], (double[]){3.4445, -4.775, 2.0315}, 0)); }

RUN(conv2d) {
  ONE(tg_conv2d(x[0], x[1], .bias = x[2], .groups = (int64_t)c->a[0], .stride = same(c->a[1]),
                .dilation = same(c->a[2]), .padding = same(c->a[3])));
}

RUN(conv_transpose2d) {
  ONE(tg_conv_transpose2d(x[0], x[1], .groups = (int64_t)c->a[0], .stride = same(c->a[1]),
                          .dilation = same(c->a[2]), .padding = same(c->a[3]),
                          .output_padding = same(c->a[4])));
}

RUN(max_pool2d) {
  y[0] = tg_max_pool2d(x[0], .kernel = same(c->a[0]), .stride = same(c->a[1]), .dilation = same(c->a[2]),
                       .padding = same(c->a[3]), .ceil_mode = c->a[4] != 0, .indices = &y[1]);
  return 2;
}

RUN(avg_pool2d) {
  ONE(tg_avg_pool2d(x[0], .kernel = same(c->a[0]), .stride = same(c->a[1]), .dilation = same(c->a[2]),
                    .padding = same(c->a[3]), .ceil_mode = c->a[4] != 0, .exclude_pad = c->a[5] != 0));
}

RUN(max_pool1d) {
  ONE(tg_max_pool2d(x[0], .axes = 1, .kernel = same(c->a[0]), .stride = same(c->a[1]),
                    .padding = same(c->a[2])));
}

RUN(avg_pool3d) { ONE(tg_avg_pool2d(x[0], .axes = 3, .kernel = same(c->a[0]))); }

RUN(max_pool_places) {
  UNUSED;
  tg_max_pool2d(x[0], .kernel = TG_SIZES(3), .stride = TG_SIZES(2), .padding = TG_SIZES(1), .indices = &y[0]);
  return 1;
}

RUN(interpolate) {
  DIMS(2);
  ONE(tg_interpolate(x[0], c->na - 2, d, .mode = (TgInterpolation)c->a[0], .align_corners = c->a[1] != 0));
}

RUN(layer_norm) {
  UNUSED;
  ONE(tg_layer_norm(x[0], .weight = x[1], .bias = x[2]));
}

RUN(rms_norm) {
  UNUSED;
  ONE(tg_rms_norm(x[0], .weight = x[1]));
}

RUN(batch_norm) {
  UNUSED;
  ONE(tg_batch_norm(x[0], x[1], x[2], .weight = x[3], .bias = x[4]));
}

RUN(attention) { ONE(tg_scaled_dot_product_attention(x[0], x[1], x[2], .causal = c->a[0] != 0)); }

RUN(max_unpool2d) {
  UNUSED;
  ONE(tg_max_unpool2d(x[0], x[1], .kernel = TG_SIZES(2)));
}

RUN(sparse_cross_entropy) {
  ONE(tg_sparse_cross_entropy(x[0], x[1], .reduction = (TgReduction)c->a[0], .axis = TG_AXES((int)c->a[1]),
                              .label_smoothing = c->a[2], .ignore = c->a[3] != -100,
                              .ignore_index = (int64_t)c->a[3]));
}

RUN(cross_entropy) {
  ONE(tg_cross_entropy(x[0], x[1], .reduction = (TgReduction)c->a[0], .axis = TG_AXES((int)c->a[1]),
                       .label_smoothing = c->a[2]));
}

RUN(nll) {
  ONE(tg_nll(x[0], x[1], .reduction = (TgReduction)c->a[0], .axis = TG_AXES((int)c->a[1]), .weight = x[2],
             .ignore = c->a[3] != -100, .ignore_index = (int64_t)c->a[3]));
}

RUN(mse) { ONE(tg_mse(x[0], x[1], .reduction = (TgReduction)c->a[0])); }

RUN(binary_cross_entropy) { ONE(tg_binary_cross_entropy(x[0], x[1], .reduction = (TgReduction)c->a[0])); }

RUN(binary_cross_entropy_logits) {
  ONE(tg_binary_cross_entropy_logits(x[0], x[1], .reduction = (TgReduction)c->a[0], .weight = x[2]));
}

RUN(attention_grouped) {
  UNUSED;
  ONE(tg_scaled_dot_product_attention(x[0], x[1], x[2], .grouped = true));
}

RUN(attention_mask) {
  UNUSED;
  ONE(tg_scaled_dot_product_attention(x[0], x[1], x[2], .mask = x[3]));
}

/* the lists of make_api.py */
/* clang-format off */
#define ITEMS(F) \
  F(0, TG_AT(1)) \
  F(1, TG_AT(-1)) \
  F(2, TG_SLICE(1, 3)) \
  F(3, TG_SLICE(TG_OPEN, TG_OPEN, 2)) \
  F(4, TG_SLICE(TG_OPEN, TG_OPEN, -1)) \
  F(5, TG_ALL, TG_SLICE(3, 0, -2)) \
  F(6, TG_ELLIPSIS, TG_AT(0)) \
  F(7, TG_NEW, TG_ALL, TG_AT(1), TG_NEW) \
  F(8, TG_SLICE(1, -1), TG_SLICE(TG_OPEN, TG_OPEN, 3), TG_AT(-2)) \
  F(9, TG_TENSOR(t[0])) \
  F(10, TG_ALL, TG_TENSOR(t[0])) \
  F(11, TG_TENSOR(t[0]), TG_TENSOR(t[1])) \
  F(12, TG_TENSOR(t[0]), TG_ALL, TG_TENSOR(t[1])) \
  F(13, TG_ALL, TG_TENSOR(t[0]), TG_TENSOR(t[1])) \
  F(14, TG_AT(0), TG_ALL, TG_TENSOR(t[0])) \
  F(15, TG_SLICE(1, 3), TG_TENSOR(t[0])) \
  F(16, TG_MASK(t[0])) \
  F(17, TG_MASK(t[0])) \
  F(18, TG_ALL, TG_MASK(t[0])) \
  F(19, TG_TENSOR(t[0]), TG_NEW) \
  F(20, TG_SLICE(10, 20)) \
  F(21, TG_SLICE(2, 1)) \
  F(22, TG_NEW) \
  F(23, TG_ELLIPSIS, TG_TENSOR(t[0])) \
  F(24, TG_TENSOR(t[0])) \
  F(25, TG_SLICE(TG_OPEN, TG_OPEN, 7)) \
  F(26, TG_SLICE(-2, TG_OPEN)) \
  F(27, TG_SLICE(-100, 2)) \
  F(28, TG_ALL, TG_SLICE(TG_OPEN, TG_OPEN, -3)) \
  F(29, TG_TENSOR(t[0])) \
  F(30, TG_ELLIPSIS) \
  F(31, TG_TENSOR(t[0]), TG_MASK(t[1]))

/* clang-format on */

RUN(getitem) {
  TgTensor **t = x + 1;
#define GET(k, ...)                                                                                          \
  case k: ONE(tg_getitem(x[0], TG_IDX(__VA_ARGS__)));
  switch ((int)c->a[0]) { ITEMS(GET) }
  return 0;
}

RUN(setitem) {
  TgTensor **t = x + 2, *to = tg_clone(x[0]), *v = tg_cast(x[1], tg_dtype(x[0]));
#define SET(k, ...)                                                                                          \
  case k: ONE(tg_setitem(to, TG_IDX(__VA_ARGS__), v));
  switch ((int)c->a[0]) { ITEMS(SET) }
  return 0;
}

RUN(index_put) {
  TgTensor **t = x + 2;
#define PUT(k, ...)                                                                                          \
  case k: ONE(tg_index_put(x[0], TG_IDX(__VA_ARGS__), x[1]));
  switch ((int)c->a[0]) { ITEMS(PUT) }
  return 0;
}

RUN(index_add) {
  UNUSED;
  ONE(tg_index_put(x[0], TG_IDX(TG_TENSOR(x[2])), x[1], .accumulate = true));
}

typedef int (*Run)(const Case *, TgTensor **, TgTensor **);
#define ENTRY(name) {#name, run_##name},

static const struct {
  const char *name;
  Run run;
} functions[] = {
    /* clang-format off */
    UNARIES(ENTRY) BINARIES(ENTRY) REDUCTIONS(ENTRY) ALONGS(ENTRY) ENTRY(leaky_relu) ENTRY(elu)
    ENTRY(celu) ENTRY(softplus_beta) ENTRY(hardtanh) ENTRY(clamp) ENTRY(where) ENTRY(lerp)
    ENTRY(clamp_tensor) ENTRY(masked_fill) ENTRY(var_mean) ENTRY(std_mean) ENTRY(normalize) ENTRY(reshape)
    ENTRY(permute) ENTRY(expand) ENTRY(flip) ENTRY(shrink) ENTRY(pad) ENTRY(pad_value) ENTRY(pad_mode)
    ENTRY(pad_to) ENTRY(shrink_to) ENTRY(transpose) ENTRY(squeeze) ENTRY(unsqueeze) ENTRY(flatten)
    ENTRY(unflatten) ENTRY(repeat) ENTRY(repeat_interleave) ENTRY(roll) ENTRY(roll_flat) ENTRY(diagonal)
    ENTRY(tril) ENTRY(triu) ENTRY(unfold) ENTRY(slice) ENTRY(select) ENTRY(cat) ENTRY(stack) ENTRY(split)
    ENTRY(split_sizes) ENTRY(chunk) ENTRY(meshgrid) ENTRY(rearrange0) ENTRY(rearrange1) ENTRY(rearrange2)
    ENTRY(arange) ENTRY(linspace) ENTRY(eye) ENTRY(full) ENTRY(zeros) ENTRY(ones) ENTRY(full_like)
    ENTRY(linear) ENTRY(einsum) ENTRY(newton_schulz) ENTRY(conv2d) ENTRY(conv_transpose2d)
    ENTRY(max_pool2d) ENTRY(avg_pool2d) ENTRY(max_pool1d) ENTRY(avg_pool3d) ENTRY(max_pool_places)
    ENTRY(interpolate) ENTRY(layer_norm) ENTRY(rms_norm) ENTRY(batch_norm) ENTRY(attention) ENTRY(getitem)
    ENTRY(setitem) ENTRY(index_put) ENTRY(index_add) ENTRY(max_unpool2d) ENTRY(sparse_cross_entropy)
    ENTRY(cross_entropy) ENTRY(nll) ENTRY(mse) ENTRY(binary_cross_entropy)
    ENTRY(binary_cross_entropy_logits) ENTRY(attention_grouped) ENTRY(attention_mask)
    /* clang-format on */
};

static Run find(const char *name) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!strcmp(functions[i].name, name)) return functions[i].run;
  return NULL;
}

/* ---- the file */
static char *text;
static Case *cases;
static int ncases;

static TgDType dtype_named(const char *s) {
  for (TgDType d = TG_BOOL; tg_dtype_name(d) && *tg_dtype_name(d); d++)
    if (!strcmp(tg_dtype_name(d), s)) return d;
  fail_msg("no dtype %s", s);
  return TG_F32;
}

static void read_value(Value *v, char *s) {
  char name[16];
  int used;
  sscanf(s, "%15s %d%n", name, &v->ndim, &used);
  v->dtype = dtype_named(name), v->n = 1, s += used;
  for (int i = 0; i < v->ndim; i++)
    v->dims[i] = strtoll(s, &s, 10), v->n *= v->dims[i];
  s = strchr(s, ':') + 1;
  v->v = malloc((size_t)(v->n + 1) * sizeof *v->v);
  for (int64_t i = 0; i < v->n; i++)
    v->v[i] = strtod(s, &s);
}

static int load(void **state) {
  (void)state;
  const char *path = TG_TESTS "/goldens/api.txt";
  FILE *f = fopen(path, "rb");
  if (!f) fail_msg("no %s", path);
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  text = malloc((size_t)n + 1);
  if (fread(text, 1, (size_t)n, f) != (size_t)n) fail_msg("%s cannot be read", path);
  text[n] = 0;
  fclose(f);
  int line = 0, cap = 0;
  Case *c = NULL;
  for (char *s = text, *end; *s; s = end + 1) {
    end = strchr(s, '\n');
    *end = 0, line++;
    if (!strncmp(s, "case ", 5)) {
      if (ncases == cap) cases = realloc(cases, (size_t)(cap = cap * 2 + 64) * sizeof *cases);
      c = &cases[ncases++];
      *c = (Case){.line = line};
      int used;
      sscanf(s + 5, "%31s%n", c->name, &used);
      for (s += 5 + used; *s; c->na++)
        c->a[c->na] = strtod(s, &s);
    } else if (!strncmp(s, "opt diff", 8))
      c->diff = true;
    else if (!strncmp(s, "opt near ", 9))
      c->near = strtod(s + 9, NULL);
    else if (!strncmp(s, "in ", 3))
      read_value(&c->in[c->nin++], s + 3);
    else if (!strncmp(s, "out ", 4))
      read_value(&c->out[c->nout++], s + 4);
  }
  if (ncases < 1000) fail_msg("%s has %d cases", path, ncases);
  return 0;
}

static int unload(void **state) {
  (void)state;
  for (int i = 0; i < ncases; i++) {
    for (int k = 0; k < cases[i].nin; k++)
      free(cases[i].in[k].v);
    for (int k = 0; k < cases[i].nout; k++)
      free(cases[i].out[k].v);
  }
  free(cases), free(text);
  return 0;
}

/* ---- running */
static TgTensor *input(const Value *v, bool view) {
  TgTensor *t = tg_from_f64(C, v->v, v->dtype, v->ndim, v->dims);
  if (!view || v->ndim == 0 || v->n == 0) return t;
  int64_t lo[TG_MAX_RANK] = {1};
  int64_t hi[TG_MAX_RANK] = {2};
  int64_t b[TG_MAX_RANK] = {0};
  int64_t order[TG_MAX_RANK], e[TG_MAX_RANK];
  for (int i = 0; i < v->ndim; i++)
    order[i] = v->ndim - 1 - i;
  TgTensor *m = tg_contiguous(tg_pad(tg_flip(tg_permute(t, v->ndim, order), 1, (int64_t[]){0}), lo, hi));
  tg_realize(m);
  for (int i = 0; i < v->ndim; i++)
    b[i] = lo[i], e[i] = v->dims[v->ndim - 1 - i] + lo[i];
  return tg_permute(tg_flip(tg_shrink(m, b, e), 1, (int64_t[]){0}), v->ndim, order);
}

static double tolerance(const Case *c, TgDType d) {
  if (c->near > 0) return c->near;
  return d == TG_F64 ? 1e-13 : d == TG_F32 ? 4e-6 : d == TG_F16 ? 0x1p-9 : d == TG_BF16 ? 0x1p-6 : 0;
}

static const char *failed(const Case *c, const char *device) {
  static char s[400];
  snprintf(s, sizeof s, "api.txt:%d: %s on %s: %s", c->line, c->name, device, tg_errmsg(C));
  return s;
}

static int bad;

static void complain(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (bad++ < 40) vprintf(fmt, ap), printf("\n");
  va_end(ap);
}

static void check_value(const Case *c, const char *device, int k, TgTensor *t) {
  const Value *w = &c->out[k];
  if (!t) {
    complain("%s: no result %d", failed(c, device), k);
    return;
  }
  bool shape = tg_ndim(t) == w->ndim;
  for (int i = 0; shape && i < w->ndim; i++)
    shape = tg_shape(t)[i] == w->dims[i];
  if (!shape || tg_dtype(t) != w->dtype) {
    complain("%s: result %d is %s, not %s of rank %d", failed(c, device), k, tg_describe(t),
             tg_dtype_name(w->dtype), w->ndim);
    return;
  }
  double *got = malloc((size_t)(w->n + 1) * sizeof *got), tol = tolerance(c, w->dtype);
  if (tg_read_f64(t, got, (size_t)w->n))
    complain("%s", failed(c, device));
  else
    for (int64_t i = 0; i < w->n; i++) {
      double g = got[i], e = w->v[i];
      bool ok = isnan(e) ? isnan(g) : isinf(e) || tol == 0 ? g == e : fabs(g - e) <= tol * fmax(1, fabs(e));
      if (ok && e == 0 && !isnan(e) && tg_dtype_is_float(w->dtype) && signbit(e) != signbit(g) &&
          (!strcmp(c->name, "copysign") || !strcmp(c->name, "neg")))
        ok = false;
      if (ok) continue;
      complain("%s: result %d, element %lld is %.9g, not %.9g", failed(c, device), k, (long long)i, g, e);
      break;
    }
  free(got);
}

static void run_cases(const char *device, bool view) {
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  bad = 0;
  for (int i = 0; i < ncases; i++) {
    const Case *c = &cases[i];
    Run run = find(c->name);
    if (!run) fail_msg("api.txt:%d: no function %s", c->line, c->name);
    TG_SCOPE(C) {
      TgTensor *x[MAX_IN] = {NULL}, *y[MAX_OUT] = {NULL};
      for (int k = 0; k < c->nin; k++)
        x[k] = input(&c->in[k], view);
      int n = run(c, x, y);
      if (n != c->nout) complain("%s: %d results, not %d", failed(c, device), n, c->nout);
      if (n == c->nout && n > 0 && !tg_realize_many(y, (size_t)n))
        for (int k = 0; k < n; k++)
          check_value(c, device, k, y[k]);
      else
        complain("%s", failed(c, device));
    }
    tg_clear_error(C);
  }
  tg_close(C);
  if (bad) fail_msg("%d of %d cases on %s", bad, ncases, device);
}

static void test_cpu(void **state) {
  (void)state;
  run_cases("CPU", false);
}

static void test_interp(void **state) {
  (void)state;
  run_cases("INTERP", false);
}

static void test_views(void **state) {
  (void)state;
  run_cases("INTERP", true);
}

/* ---- gradients: of f(x) = sum(w y(x)), and of h(x) = sum(v df/dx), w and v fixed numbers */
static uint32_t noise(uint32_t i) { return (i * 2654435761u) ^ (i << 7) ^ 0x9e3779b9u; }

static TgTensor *weighted(TgTensor *y, uint32_t salt) {
  int64_t n = tg_numel(y);
  double *w = malloc((size_t)(n + 1) * sizeof *w);
  for (int64_t i = 0; i < n; i++)
    w[i] = 0.5 + (double)(noise((uint32_t)i + salt) >> 8) * 0x1p-24;
  TgTensor *s = tg_sum(tg_mul(y, tg_from_f64(C, w, TG_F64, tg_ndim(y), tg_shape(y))));
  free(w);
  return s;
}

static bool is_f64(TgTensor *t) { return t && tg_dtype(t) == TG_F64; }

/* order 0: f(x); order 1: h(x) */
static TgTensor *build(const Case *c, TgTensor **x, int order) {
  TgTensor *y[MAX_OUT] = {NULL}, *f = NULL, *g[MAX_IN], *t[MAX_IN], *h = NULL;
  int n = find(c->name)(c, x, y), m = 0;
  for (int k = 0; k < n; k++)
    if (is_f64(y[k])) {
      TgTensor *s = weighted(y[k], (uint32_t)k * 97);
      f = f ? tg_add(f, s) : s;
    }
  if (order == 0 || !f) return f;
  for (int k = 0; k < c->nin; k++)
    if (is_f64(x[k])) t[m++] = x[k];
  if (tg_gradient(f, t, m, g)) return NULL;
  for (int k = 0; k < m; k++) {
    TgTensor *s = weighted(g[k], 1000 + (uint32_t)k);
    h = h ? tg_add(h, s) : s;
  }
  return h;
}

static double at(const Case *c, int order, int k, int64_t i, double step) {
  double r = NAN;
  TG_SCOPE(C) {
    TgTensor *x[MAX_IN] = {NULL};
    double keep = c->in[k].v[i];
    c->in[k].v[i] += step;
    for (int q = 0; q < c->nin; q++)
      x[q] = input(&c->in[q], false);
    c->in[k].v[i] = keep;
    r = tg_item_f64(build(c, x, order));
  }
  return r;
}

static void check_gradient(const Case *c, const char *device, int order) {
  TG_SCOPE(C) {
    TgTensor *x[MAX_IN] = {NULL}, *g[MAX_IN] = {NULL};
    for (int k = 0; k < c->nin; k++)
      x[k] = input(&c->in[k], false);
    TgTensor *f = build(c, x, order), *t[MAX_IN];
    int m = 0;
    for (int k = 0; k < c->nin; k++)
      if (is_f64(x[k])) t[m++] = x[k];
    if (!f || tg_gradient(f, t, m, g))
      complain("%s: no gradient of order %d", failed(c, device), order + 1);
    else
      for (int k = 0, q = 0; k < c->nin; k++) {
        if (!is_f64(x[k])) continue;
        int64_t n = c->in[k].n;
        double *got = malloc((size_t)(n + 1) * sizeof *got), h = 1e-5;
        if (tg_read_f64(g[q++], got, (size_t)n))
          complain("%s", failed(c, device));
        else
          for (int64_t i = 0; i < n; i++) {
            double want = (at(c, order, k, i, h) - at(c, order, k, i, -h)) / (2 * h);
            if (fabs(got[i] - want) <= 2e-7 * fmax(1, fabs(want))) continue;
            complain("%s: gradient of order %d by input %d, element %lld is %.12g, not %.12g",
                     failed(c, device), order + 1, k, (long long)i, got[i], want);
            break;
          }
        free(got);
      }
  }
  tg_clear_error(C);
}

static void gradients(const char *device, int order) {
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  bad = 0;
  int n = 0;
  for (int i = 0; i < ncases; i++)
    if (cases[i].diff) check_gradient(&cases[i], device, order), n++;
  tg_close(C);
  if (bad) fail_msg("%d of %d gradients of order %d on %s", bad, n, order + 1, device);
}

static void test_gradients(void **state) {
  (void)state;
  gradients("INTERP", 0);
}

static void test_second_gradients(void **state) {
  (void)state;
  gradients("INTERP", 1);
}

/* ---- no memory for the graph */
/* The results, or the gradients of all inputs that have one; how many, 0 at an error. */
static int built(const Case *c, bool gradient, TgTensor **x, TgTensor **y) {
  int m = 0;
  TgTensor *t[MAX_IN];
  if (!gradient) {
    int n = find(c->name)(c, x, y);
    for (int k = 0; k < n; k++)
      m += y[k] != NULL;
    return m == n ? n : 0;
  }
  for (int k = 0; k < c->nin; k++)
    if (is_f64(x[k])) t[m++] = x[k];
  TgTensor *f = build(c, x, 0);
  return f && !tg_gradient(f, t, m, y) ? m : 0;
}

/* Built again and again with room for what an earlier try did not reach, so that each new node is once the
 * one that has none. A try gives an error that says so, or results; in the end they are the right ones. In a
 * context of its own, so that no node is there before. */
static void build_short(const Case *c, bool gradient) {
  TgMem last = {0};
  C = context_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"}, &tg_os_default,
                   (TgMem){.last = &last});
  TgTensor *x[MAX_IN] = {NULL}, *y[MAX_OUT] = {NULL};
  for (int k = 0; k < c->nin; k++)
    x[k] = input(&c->in[k], false);
  int n = 0;
  for (size_t room = 0, tries = 1; !n; tries++) {
    Short end;
    size_t before = store_created(C->store);
    assert_true(room < SHORT_MOST && short_begin(&end, C, room));
    n = built(c, gradient, x, y);
    short_end(&end, C);
    if (tg_error(C) != (n ? TG_OK : TG_ERR_NOMEM)) {
      complain("%s, status %s where memory ends", failed(c, "INTERP"), tg_status_name(tg_error(C)));
      break;
    }
    tg_clear_error(C);
    if (store_created(C->store) == before || tries % 8 == 0) room += 16;
  }
  for (int k = 0; !gradient && k < n; k++)
    check_value(c, "INTERP", k, y[k]);
  tg_close(C);
  if (last.live)
    complain("api.txt:%d: %s: %llu blocks left", c->line, c->name, (unsigned long long)last.live);
}

/* The first case of a function with so many inputs and numbers, of that rank. */
static bool is_first(int i) {
  for (int k = i; k-- > 0 && !strcmp(cases[k].name, cases[i].name);)
    if (cases[k].na == cases[i].na && cases[k].nin == cases[i].nin &&
        cases[k].in[0].ndim == cases[i].in[0].ndim)
      return false;
  return true;
}

static void short_of_memory(bool gradient) {
  int n = 0;
  bad = 0;
  for (int i = 0; i < ncases; i++)
    if ((cases[i].diff || !gradient) && is_first(i)) build_short(&cases[i], gradient), n++;
  if (bad) fail_msg("%d complaints, %d cases", bad, n);
}

static void test_no_memory(void **state) {
  (void)state;
  short_of_memory(false);
}

static void test_no_memory_gradients(void **state) {
  (void)state;
  short_of_memory(true);
}

/* A captured function renews what it may store to. However many there were, no node of theirs stays. */
static TgStatus times_parameter(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                                void *user) {
  (void)nin, (void)nout;
  out[0] = tg_mul(in[0], user);
  tg_assign(user, tg_add(user, in[0]));
  return tg_error(ctx);
}

static void test_captures_leave_no_node(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .threads = 1});
  TgTensor *w = tg_keep(tg_rand(ctx, TG_SHAPE(4)));
  size_t half = 0;
  for (int i = 0; i < 16; i++) {
    TgJit *jit = tg_jit(ctx, times_parameter, w);
    for (int k = 0; k < 3; k++)
      TG_SCOPE(ctx) {
        TgTensor *x = tg_clone(tg_ones(ctx, TG_SHAPE(4))), *y;
        assert_int_equal(tg_jit_run(jit, &x, 1, &y, 1), TG_OK);
      }
    tg_jit_free(jit);
    assert_int_equal(tg_collect(ctx), TG_OK);
    if (i == 7) half = store_count(ctx->store);
  }
  assert_int_equal(store_count(ctx->store), half);
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_interp),
                                     cmocka_unit_test(test_views),
                                     cmocka_unit_test(test_cpu),
                                     cmocka_unit_test(test_gradients),
                                     cmocka_unit_test(test_second_gradients),
                                     cmocka_unit_test(test_no_memory),
                                     cmocka_unit_test(test_no_memory_gradients),
                                     cmocka_unit_test(test_captures_leave_no_node)};
  cmocka_set_test_filter(getenv("TG_TEST"));
  return cmocka_run_group_tests(tests, load, unload);
}
