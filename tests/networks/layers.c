/* layers.c: rows of random networks that multiply, convolve, pool, normalise, attend and judge: the functions
 * of tg.h and the layers of tg_nn.h, whose parameters are leaves of the program. */
#include "networks.h"
#include "nn/tg_nn.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A leaf that is used up by what is made of it. */
static NetNode *weight(Net *p, int n, const int64_t *d) {
  NetNode *w = net_fresh(p, n, d);
  if (w) w->read = true;
  return w;
}

#define WEIGHT(p, ...)                                                                                       \
  weight(p, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static const char *name_of(const NetNode *x) { return x ? x->name : "None"; }

static TgTensor *tensor_of(const NetNode *x) { return x ? x->t : NULL; }

/* ---- products */
static void multiplied(Net *p, const NetRow *row) {
  (void)row;
  NetNode *a = net_filled(p, 1), *b;
  if (!a) return;
  int n = tg_ndim(a->t), kind = net_below(p, 4);
  int64_t k = tg_dim(a->t, -1), m = net_between(p, 1, 5), d[NET_RANK];
  for (int i = 0; i < n; i++)
    d[i] = tg_dim(a->t, i);
  if (kind == 0)
    b = WEIGHT(p, k);
  else if (kind == 1 || n < 3)
    b = WEIGHT(p, k, m);
  else {
    d[n - 2] = k, d[n - 1] = m;
    int off = net_below(p, n - 1);
    if (n - off > 2 && net_chance(p, 3)) d[off] = 1;
    b = weight(p, n - off, d + off);
  }
  if (b)
    net_out(p, net_chance(p, 2) ? tg_matmul(a->t, b->t) : tg_dot(a->t, b->t), a->most * 2 * sqrt((double)k),
            "torch.matmul(%s, %s)", a->name, b->name);
}

static void multiplied_by_itself(Net *p, const NetRow *row) {
  (void)row;
  NetNode *a = net_in(p, net_filled(p, 2), NET_SMALL);
  if (a)
    net_out(p, tg_matmul(a->t, tg_transpose(a->t, -1, -2)), 3 * a->most * sqrt((double)tg_dim(a->t, -1)),
            "torch.matmul(%s, %s.transpose(-1, -2))", a->name, a->name);
}

static void linear(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int64_t in = tg_dim(x->t, -1), out = net_between(p, 1, 6);
  NetNode *w = WEIGHT(p, out, in), *b = w && net_chance(p, 2) ? WEIGHT(p, out) : NULL;
  if (!w) return;
  TgLinear l = {w->t, tensor_of(b)};
  net_out(p, net_chance(p, 2) ? tg_linear(x->t, w->t, tensor_of(b)) : tg_linear_run(&l, x->t),
          2 * x->most * sqrt((double)in), "F.linear(%s, %s, %s)", x->name, w->name, name_of(b));
}

static void summed_products(Net *p, const NetRow *row) { /* einsum */
  (void)row;

  static const struct {
    const char *formula;
    int rank; /* of the first operand */
    const char *second;
  } ways[] = {{"ij,jk->ik", 2, "jk"}, {"ij,kj->ki", 2, "kj"},     {"ij,ij->", 2, "ij"},
              {"ij,ij->i", 2, "ij"},  {"bij,bjk->bik", 3, "bjk"}, {"bij,jk->ikb", 3, "jk"},
              {"i,j->ij", 1, "j"},    {"ij->ji", 2, NULL},        {"ij->", 2, NULL},
              {"bhij->bjh", 4, NULL}, {"...i,ik->...k", 2, "ik"}, {"ij,jk", 2, "jk"}};

  int k = net_below(p, (int)(sizeof ways / sizeof *ways));
  NetNode *x = net_as_rank(p, net_filled(p, 0), ways[k].rank), *y = NULL;
  if (!x) return;
  int64_t size[128] = {0}, d[NET_RANK];
  for (const char *c = "abcdefghijklmnopqrstuvwxyz"; *c; c++)
    size[(int)*c] = 1 + (*c * 7) % 4;
  const char *c = ways[k].formula;
  if (*c == '.')
    size['i'] = tg_dim(x->t, -1);
  else
    for (int i = 0; i < ways[k].rank; i++)
      size[(int)c[i]] = tg_dim(x->t, i);
  int n = 0;
  if (ways[k].second) {
    for (c = ways[k].second; *c; c++)
      d[n++] = size[(int)*c];
    y = weight(p, n, d);
    if (!y) return;
  }
  TgTensor *in[] = {x->t, tensor_of(y)};
  net_out(p, tg_einsum(ways[k].formula, in, y ? 2 : 1), 10 * x->most, "torch.einsum('%s', %s%s%s)",
          ways[k].formula, x->name, y ? ", " : "", y ? y->name : "");
}

/* ---- convolutions and pools */
typedef struct Sizes {
  int n;
  int64_t v[3];
} Sizes;

static Sizes drawn(Net *p, int n, int lo, int hi) {
  Sizes s = {n, {0}};
  for (int i = 0; i < n; i++)
    s.v[i] = net_between(p, lo, hi);
  return s;
}

static TgSizes given(Sizes s) {
  TgSizes t = {.n = s.n};
  for (int i = 0; i < s.n; i++)
    t.v[i] = s.v[i];
  return t;
}

static const char *said(Sizes s) { return net_sizes(s.n, s.v); }

/* x (b, c, s..) of so many spatial axes, which are not tiny more often than not */
static NetNode *picture(Net *p, int axes) {
  NetNode *x = net_chance(p, 2) ? net_as_rank(p, net_filled(p, 0), axes + 2) : NULL;
  if (x) return x;
  int64_t d[5] = {net_between(p, 1, 2), net_between(p, 1, 4)};
  for (int i = 0; i < axes; i++)
    d[2 + i] = net_between(p, axes == 3 ? 2 : 3, axes == 1 ? 9 : axes == 2 ? 6 : 4);
  return weight(p, axes + 2, d);
}

static void convolved(Net *p, const NetRow *row) {
  (void)row;
  int axes = net_between(p, 1, 3);
  NetNode *x = picture(p, axes);
  if (!x) return;
  int64_t cin = tg_dim(x->t, 1), groups = net_chance(p, 3) ? cin : cin % 2 == 0 && net_chance(p, 2) ? 2 : 1;
  int64_t cout = groups * net_between(p, 1, 2), d[5] = {cout, cin / groups};
  Sizes pad = drawn(p, axes, 0, 2), kernel = drawn(p, axes, 1, 3), stride = drawn(p, axes, 1, 3),
        dilation = drawn(p, axes, 1, 2);
  for (int i = 0; i < axes; i++) {
    int64_t room = tg_dim(x->t, 2 + i) + 2 * pad.v[i];
    if (dilation.v[i] * (kernel.v[i] - 1) + 1 > room) kernel.v[i] = 1;
    d[2 + i] = kernel.v[i];
  }
  NetNode *w = weight(p, axes + 2, d), *b = w && net_chance(p, 2) ? WEIGHT(p, cout) : NULL;
  if (!w) return;
  TgSizes pads = given(pad);
  char from[100];
  snprintf(from, sizeof from, "%s", x->name);
  if (net_chance(p, 4)) { /* another padding behind than before */
    int64_t both[6];
    pads.n = 2 * axes;
    for (int i = 0; i < axes; i++) { /* the last axis first */
      both[2 * i] = pads.v[2 * i] = pad.v[axes - 1 - i];
      both[2 * i + 1] = pads.v[2 * i + 1] = pad.v[axes - 1 - i] + net_below(p, 2);
    }
    snprintf(from, sizeof from, "F.pad(%s, %s)", x->name, net_sizes(2 * axes, both));
    pad = (Sizes){axes, {0}};
  }
  TgConvOptions o = TG_WITH(TgConvOptions, .groups = groups, .stride = given(stride),
                            .dilation = given(dilation), .padding = pads);
  TgTensor *y;
  if (net_chance(p, 2)) {
    TgConv2d l = {w->t, tensor_of(b), o};
    y = tg_conv2d_run(&l, x->t);
  } else {
    o.bias = tensor_of(b);
    y = tg_conv2d_opt(x->t, w->t, &o);
  }
  net_out(p, y, 5 * x->most, "F.conv%dd(%s, %s, %s, %s, %s, %s, %lld)", axes, from, w->name, name_of(b),
          said(stride), said(pad), said(dilation), (long long)groups);
}

static void convolved_back(Net *p, const NetRow *row) {
  (void)row;
  int axes = net_between(p, 1, 3);
  NetNode *x = picture(p, axes);
  if (!x) return;
  int64_t cin = tg_dim(x->t, 1), groups = net_chance(p, 3) ? cin : cin % 2 == 0 && net_chance(p, 2) ? 2 : 1;
  int64_t each = net_between(p, 1, 2), cout = groups * each, d[5] = {cin, each};
  Sizes pad = drawn(p, axes, 0, 1), kernel = drawn(p, axes, 1, 3), stride = drawn(p, axes, 1, 3),
        dilation = drawn(p, axes, 1, 2), more = drawn(p, axes, 0, 2);
  for (int i = 0; i < axes; i++) {
    int64_t most = stride.v[i] > dilation.v[i] ? stride.v[i] : dilation.v[i];
    if (more.v[i] >= most) more.v[i] = most - 1;
    if ((tg_dim(x->t, 2 + i) - 1) * stride.v[i] + dilation.v[i] * (kernel.v[i] - 1) + 1 + more.v[i] <=
        2 * pad.v[i])
      pad.v[i] = 0;
    d[2 + i] = kernel.v[i];
  }
  NetNode *w = weight(p, axes + 2, d), *b = w && net_chance(p, 2) ? WEIGHT(p, cout) : NULL;
  if (!w) return;
  TgConvOptions o =
      TG_WITH(TgConvOptions, .groups = groups, .stride = given(stride), .dilation = given(dilation),
              .padding = given(pad), .output_padding = given(more));
  TgTensor *y;
  if (net_chance(p, 2)) {
    TgConvTranspose2d l = {w->t, tensor_of(b), o};
    y = tg_conv_transpose2d_run(&l, x->t);
  } else {
    o.bias = tensor_of(b);
    y = tg_conv_transpose2d_opt(x->t, w->t, &o);
  }
  net_out(p, y, 5 * x->most, "F.conv_transpose%dd(%s, %s, %s, %s, %s, %s, %lld, %s)", axes, x->name, w->name,
          name_of(b), said(stride), said(pad), said(more), (long long)groups, said(dilation));
}

static void pooled(Net *p, const NetRow *row) {
  (void)row;
  int axes = net_between(p, 1, 3), kind = net_below(p, 3);
  NetNode *x = picture(p, axes);
  if (!x) return;
  Sizes kernel = drawn(p, axes, 1, 3), stride = drawn(p, axes, 1, 3),
        dilation = drawn(p, axes, 1, kind ? 1 : 2), pad = {axes, {0}};
  for (int i = 0; i < axes; i++) {
    int64_t size = tg_dim(x->t, 2 + i);
    if (dilation.v[i] * (kernel.v[i] - 1) + 1 > size) kernel.v[i] = 1;
    pad.v[i] = net_below(p, (int)kernel.v[i] / 2 + 1);
  }
  bool up = net_chance(p, 3), real = net_chance(p, 2);
  const char *ceil = up ? "True" : "False";
  TgTensor *places = NULL;
  switch (kind) {
  case 0:
    p->row = "max_pool";
    net_out(p,
            tg_max_pool2d(x->t, .axes = axes, .kernel = given(kernel), .stride = given(stride),
                          .dilation = given(dilation), .padding = given(pad), .ceil_mode = up),
            x->most, "F.max_pool%dd(%s, %s, %s, %s, %s, %s)", axes, x->name, said(kernel), said(stride),
            said(pad), said(dilation), ceil);
    break;
  case 1:
    p->row = "avg_pool";
    net_out(p,
            tg_avg_pool2d(x->t, .axes = axes, .kernel = given(kernel), .stride = given(stride),
                          .padding = given(pad), .ceil_mode = up, .exclude_pad = real),
            x->most, "F.avg_pool%dd(%s, %s, %s, %s, %s, %s)", axes, x->name, said(kernel), said(stride),
            said(pad), ceil, real ? "False" : "True");
    break;
  default: {
    Sizes size = {axes, {0}};
    for (int i = 0; i < axes; i++)
      size.v[i] = tg_dim(x->t, 2 + i);
    p->row = "max_unpool";
    TgTensor *y = tg_max_pool2d(x->t, .axes = axes, .kernel = given(kernel), .stride = given(kernel),
                                .indices = &places);
    if (!y) {
      net_out(p, NULL, 0, " ");
      return;
    }
    net_out(p, tg_max_unpool2d(y, places, .axes = axes, .kernel = given(kernel), .output_size = given(size)),
            x->most, "unpool(%s, %s, %s)", x->name, said(kernel), said(size));
  }
  }
}

static void resized(Net *p, const NetRow *row) {
  (void)row;
  static const char *const linear[] = {"linear", "bilinear", "trilinear"};
  int axes = net_between(p, 1, 3), mode = net_below(p, 3);
  NetNode *x = picture(p, axes);
  if (!x) return;
  Sizes size = drawn(p, axes, 1, 7);
  bool corners = mode == TG_LINEAR && net_chance(p, 2);
  const char *name = mode == TG_LINEAR ? linear[axes - 1] : mode == TG_NEAREST ? "nearest" : "nearest-exact";
  net_out(p, tg_interpolate(x->t, axes, size.v, .mode = (TgInterpolation)mode, .align_corners = corners),
          x->most, "F.interpolate(%s, %s, mode='%s'%s)", x->name, said(size), name,
          mode      ? ""
          : corners ? ", align_corners=True"
                    : ", align_corners=False");
}

/* ---- norms */
static void normed(Net *p, const NetRow *row) { /* over the last axes */
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int n = tg_ndim(x->t), dims = net_between(p, 1, n < 3 ? n : 3), kind = net_below(p, 3);
  int64_t d[NET_RANK];
  for (int i = 0; i < dims; i++)
    d[i] = tg_dim(x->t, n - dims + i);
  if (kind == 2) dims = 1, d[0] = tg_dim(x->t, -1);
  double eps = net_chance(p, 2) ? 1e-5 : 0.01;
  NetNode *w = net_chance(p, 2) ? weight(p, dims, d) : NULL,
          *b = w && !(kind == 2) ? weight(p, dims, d) : NULL;
  if (kind == 2) {
    TgRMSNorm l = {tensor_of(w), eps, d[0]};
    p->row = "rms_norm";
    net_out(p,
            net_chance(p, 2) ? tg_rms_norm_run(&l, x->t)
                             : tg_rms_norm(x->t, .weight = tensor_of(w), .eps = eps, .dims = 1),
            4, "F.rms_norm(%s, %s, %s, %g)", x->name, net_sizes(1, d), name_of(w), eps);
    return;
  }
  TgLayerNorm l = {tensor_of(w), tensor_of(b), eps, dims, {0}};
  memcpy(l.shape, d, sizeof l.shape);
  p->row = "layer_norm";
  net_out(p,
          kind ? tg_layer_norm_run(&l, x->t)
               : tg_layer_norm(x->t, .weight = tensor_of(w), .bias = tensor_of(b), .eps = eps, .dims = dims),
          5, "layer_norm(%s, %s, %s, %s, %g)", x->name, net_sizes(dims, d), name_of(w), name_of(b), eps);
}

static void normed_by_channel(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = picture(p, net_between(p, 1, 2));
  if (!x) return;
  int64_t c = tg_dim(x->t, 1), groups = c % 2 == 0 && net_chance(p, 2) ? c / 2 : net_chance(p, 2) ? c : 1;
  double eps = net_chance(p, 2) ? 1e-5 : 0.01;
  NetNode *w = net_chance(p, 3) ? NULL : WEIGHT(p, c), *b = w ? WEIGHT(p, c) : NULL;
  switch (net_below(p, 4)) {
  case 0: {
    TgGroupNorm l = {tensor_of(w), tensor_of(b), eps, groups, c};
    p->row = "group_norm";
    if (tg_numel(x->t) / groups < 2) return; /* PyTorch refuses */
    net_out(p, tg_group_norm_run(&l, x->t), 5, "F.group_norm(%s, %lld, %s, %s, %g)", x->name,
            (long long)groups, name_of(w), name_of(b), eps);
    break;
  }
  case 1: {
    TgLayerNorm2d l = {tensor_of(w), tensor_of(b), eps, c};
    if (tg_ndim(x->t) != 4) return;
    p->row = "layer_norm2d";
    net_out(p, tg_layer_norm2d_run(&l, x->t), 5,
            "layer_norm(%s.movedim(1, -1), (%lld,), %s, %s, %g).movedim(-1, 1)", x->name, (long long)c,
            name_of(w), name_of(b), eps);
    break;
  }
  case 2: {
    NetNode *mean = WEIGHT(p, c), *var = mean ? net_in(p, WEIGHT(p, c), NET_POSITIVE) : NULL;
    if (!var) return;
    var->read = true;
    p->row = "batch_norm";
    net_out(p, tg_batch_norm(x->t, mean->t, var->t, .weight = tensor_of(w), .bias = tensor_of(b), .eps = eps),
            8, "batch_norm(%s, %s, %s, %s, %s, %g)", x->name, mean->name, var->name, name_of(w), name_of(b),
            eps);
    break;
  }
  default: {
    if (tg_numel(x->t) / c < 2) return; /* PyTorch refuses */
    TgBatchNorm l = {tensor_of(w), tensor_of(b), NULL, NULL, NULL, eps, 0.1, c};
    p->row = "batch_norm of the batch";
    net_out(p, tg_batch_norm_run(&l, x->t), 5, "F.batch_norm(%s, None, None, %s, %s, True, 0.1, %g)", x->name,
            name_of(w), name_of(b), eps);
  }
  }
}

/* ---- attention and networks over time */
/* what scores are computed in */
static TgDType scored(const NetNode *q, const NetNode *k) {
  return q->dtype == TG_F64 || k->dtype == TG_F64 ? TG_F64 : TG_F32;
}

static void attended(Net *p, const NetRow *row) {
  (void)row;
  int64_t b = net_between(p, 1, 2), h = net_between(p, 1, 2) * 2, l = net_between(p, 1, 5),
          s = net_between(p, 1, 5), d = net_between(p, 1, 4), e = net_between(p, 1, 4);
  bool grouped = net_chance(p, 4), causal = net_chance(p, 3);
  double scale = net_chance(p, 2) ? 0 : 0.7;
  int64_t heads = grouped ? h / 2 : h;
  NetNode *q = WEIGHT(p, b, h, l, d), *k = q ? WEIGHT(p, b, heads, s, d) : NULL,
          *v = k ? WEIGHT(p, b, heads, s, e) : NULL, *m = NULL, *x = net_pick(p);
  if (!v || !x) return;
  if (tg_numel(x->t) == b * h * l * d && net_chance(p, 2))
    q = net_out(p, tg_reshape(x->t, TG_SHAPE(b, h, l, d)), x->most, "%s.reshape(%lld, %lld, %lld, %lld)",
                x->name, (long long)b, (long long)h, (long long)l, (long long)d);
  if (!q) return;
  q->read = true;
  int masked = net_below(p, 4);
  int64_t md[] = {b, 1, l, s};
  int off = net_chance(p, 2) ? 2 : 0;
  if (masked == 1) m = net_mask(p, 4 - off, md + off);
  if (masked == 2) m = weight(p, 4 - off, md + off);
  if (masked == 3) { /* a float mask with -inf in places, whole rows too */
    NetNode *c = net_mask(p, 4 - off, md + off), *f = c ? weight(p, 4 - off, md + off) : NULL;
    if (f && f->dtype == TG_FP8E4M3)
      f = net_out(p, tg_cast(f->t, net_dtype(p, TG_F32)), 1.6, "%s * 1", f->name);
    if (f) f->read = true; /* fp8e4m3 has no infinity */
    m = f ? net_out(p, tg_masked_fill(f->t, tg_logical_not(c->t), -INFINITY), 1.6,
                    "torch.masked_fill(%s, ~%s, float('-inf'))", f->name, c->name)
          : NULL;
    if (m) m->read = true, m->most = NET_INFINITE;
  }
  if (masked && !m) return;
  TgAttentionOptions o =
      TG_WITH(TgAttentionOptions, .mask = tensor_of(m), .causal = causal, .grouped = grouped);
  if (scale > 0) o.scale = scale;
  net_out(p, tg_scaled_dot_product_attention_opt(q->t, k->t, v->t, &o), 1.6,
          "attention(%s, %s, %s, %s, %s, %s, %s, '%s')", q->name, k->name, v->name, name_of(m),
          causal ? "True" : "False", grouped ? "True" : "False", scale > 0 ? "0.7" : "None",
          tg_dtype_name(scored(q, k)));
}

static void heads(Net *p) {
  int64_t h = net_between(p, 1, 2), width = h * net_between(p, 1, 3), t = net_between(p, 1, 4),
          s = net_between(p, 1, 4), b = net_between(p, 1, 2);
  bool first = net_chance(p, 2), causal = net_chance(p, 3), plain = net_chance(p, 3);
  NetNode *q = first ? WEIGHT(p, b, t, width) : WEIGHT(p, t, b, width),
          *k = q ? first ? WEIGHT(p, b, s, width) : WEIGHT(p, s, b, width) : NULL,
          *in = k ? WEIGHT(p, 3 * width, width) : NULL, *in_bias = in && !plain ? WEIGHT(p, 3 * width) : NULL,
          *out = in ? WEIGHT(p, width, width) : NULL, *out_bias = out && !plain ? WEIGHT(p, width) : NULL;
  if (!out) return;
  TgMultiheadAttention a = {.in_proj_weight = in->t,
                            .in_proj_bias = tensor_of(in_bias),
                            .out_proj = {out->t, tensor_of(out_bias)},
                            .options = TG_WITH(TgMultiheadOptions, .kdim = width, .vdim = width,
                                               .batch_first = first, .plain = plain),
                            .width = width,
                            .heads = h};
  net_out(p, tg_multihead_attention_run_opt(&a, q->t, k->t, k->t, &TG_WITH(TgMultiheadRun, .causal = causal)),
          6, "multihead(%s, %s, %s, %s, %s, %s, %lld, %s, %s, '%s')", q->name, k->name, in->name,
          name_of(in_bias), out->name, name_of(out_bias), (long long)h, causal ? "True" : "False",
          first ? "True" : "False", p->theme == NET_FP8 ? "bf16" : tg_dtype_name(in->dtype));
}

static void recurrent(Net *p) {
  int kind = net_below(p, 3), layers = net_between(p, 1, 2), ways = net_between(p, 1, 2);
  bool plain = net_chance(p, 3), first = net_chance(p, 2), started = net_chance(p, 2);
  int64_t in = net_between(p, 1, 3), hidden = net_between(p, 1, 3), t = net_between(p, 1, 3),
          b = net_between(p, 1, 2);
  if (kind == 2) layers = ways = 1;
  TgRnnOptions o = TG_WITH(TgRnnOptions, .layers = layers, .bidirectional = ways == 2, .plain = plain,
                           .batch_first = first);
  TgLSTM lstm = {.options = o, .in = in, .hidden = hidden};
  TgGRU gru = {.options = o, .in = in, .hidden = hidden};
  int64_t gates = kind == 1 ? 3 : 4;
  char list[400] = "";
  TgLSTMCell cell = {0};
  NetNode *x = kind == 2 ? WEIGHT(p, b, in)
               : first   ? WEIGHT(p, b, t, in)
                         : WEIGHT(p, t, b, in),
          *h = NULL, *c = NULL;
  if (!x) return;
  for (int i = 0; i < layers; i++)
    for (int j = 0; j < ways; j++) {
      NetNode *w = WEIGHT(p, gates * hidden, i ? ways * hidden : in),
              *u = w ? WEIGHT(p, gates * hidden, hidden) : NULL;
      NetNode *bw = u && !plain ? WEIGHT(p, gates * hidden) : NULL,
              *bu = bw ? WEIGHT(p, gates * hidden) : NULL;
      if (!u || (!plain && !bu)) return;
      TgRnnLayer l = {w->t, u->t, tensor_of(bw), tensor_of(bu)};
      lstm.ways[i][j] = gru.ways[i][j] = l;
      cell = (TgLSTMCell){w->t, u->t, tensor_of(bw), tensor_of(bu)};
      snprintf(list + strlen(list), sizeof list - strlen(list), plain ? "%s,%s," : "%s,%s,%s,%s,", w->name,
               u->name, name_of(bw), name_of(bu));
    }
  if (started) {
    h = kind == 2 ? WEIGHT(p, b, hidden) : WEIGHT(p, layers * ways, b, hidden);
    c = h && kind != 1 ? kind == 2 ? WEIGHT(p, b, hidden) : WEIGHT(p, layers * ways, b, hidden) : NULL;
    if (!h || (kind != 1 && !c)) return;
  }
  TgTensor *last = NULL, *cells = NULL, *y;
  if (kind == 0)
    p->row = "lstm", y = tg_lstm_run(&lstm, x->t, tensor_of(h), tensor_of(c), &last, &cells);
  else if (kind == 1)
    p->row = "gru", y = tg_gru_run(&gru, x->t, tensor_of(h), &last);
  else
    p->row = "lstm_cell", y = tg_lstm_cell_run(&cell, x->t, tensor_of(h), tensor_of(c), &cells);
  int which = !y ? 0 : kind == 0 ? net_below(p, 3) : kind == 1 ? net_below(p, 2) : 2 * net_below(p, 2);
  net_out(p,
          which == 0   ? y
          : which == 1 ? last
                       : cells,
          3, "recurrent(%d, %s, %s, %s, (%s), %d, %d, %s, %s)[%d]", kind, x->name, name_of(h), name_of(c),
          list, layers, ways, plain ? "True" : "False", first ? "True" : "False", which);
}

/* What is computed inside of these is not seen from outside: all of it in one dtype. */
static void layered(Net *p, const NetRow *row) {
  int theme = p->theme;
  if (theme == NET_MIXED) p->theme = NET_F32;
  (*row->name == 'm' ? heads : recurrent)(p);
  p->theme = theme;
}

/* ---- losses */
static const char *const reductions[] = {"mean", "sum", "none"};

static void judged(Net *p, const NetRow *row) { /* by labels */
  (void)row;
  NetNode *x = net_filled(p, 2), *w, *labels;
  if (!x) return;
  int n = tg_ndim(x->t), axis = net_chance(p, 2) ? n - 1 : 1, kind = net_below(p, 3), how = net_below(p, 3);
  int64_t d[NET_RANK], classes = tg_dim(x->t, axis),
                       ignored = net_chance(p, 3) ? net_below(p, (int)classes) : -100;
  int k = 0;
  for (int i = 0; i < n; i++)
    if (i != axis) d[k++] = tg_dim(x->t, i);
  double smooth = kind < 2 && net_chance(p, 2) ? 0.125 : 0;
  labels = net_places(p, k, d, 0, classes);
  w = labels && kind != 1 && net_chance(p, 2) ? net_in(p, WEIGHT(p, classes), NET_POSITIVE) : NULL;
  if (!labels) return;
  if (w)
    w->read = true,
    w = net_out(p, tg_detach(w->t), 5, "%s.detach()", w->name); /* PyTorch has no gradient of it */
  if (w) w->read = true;
  if (how == TG_MEAN && ignored >= 0) how = TG_SUM; /* a mean of none is NaN */
  TgLossOptions o = TG_WITH(TgLossOptions, .axis = TG_AXES(axis), .reduction = (TgReduction)how);
  o.weight = tensor_of(w), o.label_smoothing = smooth;
  o.ignore = ignored >= 0 && kind != 1, o.ignore_index = ignored >= 0 && kind != 1 ? ignored : 0;
  if (kind == 1) ignored = -100;
  TgTensor *y;
  if (kind == 0)
    p->row = "sparse_cross_entropy", y = tg_sparse_cross_entropy_opt(x->t, labels->t, &o);
  else if (kind == 1)
    p->row = "cross_entropy", y = tg_cross_entropy_opt(x->t, labels->t, &o);
  else {
    x = net_out(p, tg_log_softmax(x->t, .axis = TG_AXES(axis)), 2 * x->most + 2, "torch.log_softmax(%s, %d)",
                x->name, axis);
    if (!x) return;
    x->read = true;
    p->row = "nll", y = tg_nll_opt(x->t, labels->t, &o);
  }
  net_out(p, y, how == TG_SUM ? 60 : 8, "%s(%s, %s, %d, %s, '%s', %lld, %g)",
          kind == 2 ? "nll" : "cross_entropy", x->name, labels->name, axis, name_of(w), reductions[how],
          (long long)ignored, smooth);
}

static void judged_by_values(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1), *t, *w;
  if (!x) return;
  int how = net_below(p, 3), kind = net_below(p, 4), n = tg_ndim(x->t);
  double most = how == TG_SUM ? 100 : 8;
  t = weight(p, n, tg_shape(x->t));
  if (!t) return;
  switch (kind) {
  case 0:
    p->row = "mse";
    net_out(p, tg_mse(x->t, t->t, .reduction = (TgReduction)how), 8 * most,
            "F.mse_loss(%s, %s, reduction='%s')", x->name, t->name, reductions[how]);
    break;
  case 1:
  case 2: {
    t = net_out(p, tg_sigmoid(t->t), 1, "torch.sigmoid(%s)", t->name);
    if (!t) return;
    t->read = true;
    if (kind == 1) {
      x = net_out(p, tg_sigmoid(x->t), 1, "torch.sigmoid(%s)", x->name);
      if (!x) return;
      x->read = true;
      p->row = "binary_cross_entropy";
      net_out(p, tg_binary_cross_entropy(x->t, t->t, .reduction = (TgReduction)how), most,
              "bce(%s, %s, '%s')", x->name, t->name, reductions[how]);
    } else {
      w = net_chance(p, 2) ? net_in(p, WEIGHT(p, tg_dim(x->t, -1)), NET_POSITIVE) : NULL;
      if (w) w->read = true;
      p->row = "binary_cross_entropy_logits";
      net_out(
          p,
          tg_binary_cross_entropy_logits(x->t, t->t, .weight = tensor_of(w), .reduction = (TgReduction)how),
          2 * most, "bce_logits(%s, %s, %s, '%s')", x->name, t->name, name_of(w), reductions[how]);
    }
    break;
  }
  default: {
    int axis = net_below(p, n);
    double smooth = net_chance(p, 2) ? 0.25 : 0;
    t = net_out(p, tg_softmax(t->t, .axis = TG_AXES(axis)), 1, "torch.softmax(%s, %d)", t->name, axis);
    if (!t) return;
    t->read = true;
    p->row = "cross_entropy";
    net_out(p,
            tg_cross_entropy(x->t, t->t, .axis = TG_AXES(axis), .reduction = (TgReduction)how,
                             .label_smoothing = smooth),
            most, "soft_cross_entropy(%s, %s, %d, '%s', %g)", x->name, t->name, axis, reductions[how],
            smooth);
  }
  }
}

static void orthogonal(Net *p, const NetRow *row) {
  (void)row;
  int64_t m = net_between(p, 1, 4), n = net_between(p, 1, 4);
  NetNode *x = WEIGHT(p, m, n);
  if (!x) return;
  static const double c[] = {3.4445, -4.775, 2.0315};
  net_out(p, tg_newton_schulz(x->t, 2, c, 1e-7), 1.5, "newton_schulz(%s, 2, 3.4445, -4.775, 2.0315, 1e-7)",
          x->name);
}

/* A leaf (m, n), scaled, and `first`, less one for each further place of the diagonal, on it: of full rank, its
 * singular values apart, so that what is made of it has derivatives. */
static NetNode *well_conditioned(Net *p, int64_t m, int64_t n, double first) {
  NetNode *x = WEIGHT(p, m, n);
  if (!x) return NULL;
  TgTensor *eye = tg_eye(p->ctx, m, .m = n, .dtype = tg_dtype(x->t));
  TgTensor *falls = tg_rsub_scalar(tg_arange(p->ctx, 0, n, .dtype = tg_dtype(x->t)), first);
  x = net_out(p, tg_add(tg_mul_scalar(x->t, 0.15), tg_mul(eye, falls)), first + 0.5,
              "%s * 0.15 + torch.eye(%lld, %lld) * (%g - torch.arange(%lld))", x->name, (long long)m,
              (long long)n, first, (long long)n);
  if (x) x->read = true;
  return x;
}

/* The signs of R's diagonal are anyone's choice: both programs make them positive. */
static void factored(Net *p, const NetRow *row) {
  (void)row;
  int64_t m = net_between(p, 1, 4), n = m + net_below(p, 3);
  bool first = net_chance(p, 2);
  NetNode *x = well_conditioned(p, m, n, 5);
  TgTensor *q, *r;
  if (!x || tg_qr(x->t, &q, &r)) return;
  TgTensor *signs = tg_sign(tg_diagonal(r, 0, 0, 1));
  TgTensor *y = first ? tg_mul(q, signs) : tg_mul(r, tg_unsqueeze(signs, 1));
  net_out(p, y, first ? 1 : x->most * 1.5, "qr(%s)[%d]", x->name, !first);
}

/* U and V have signs that are anyone's choice, which their product has not. */
static void by_singular_values(Net *p, const NetRow *row) {
  (void)row;
  int64_t m = net_between(p, 1, 3), n = net_between(p, 1, 3);
  int kind = net_below(p, 3);
  NetNode *x = well_conditioned(p, m, n, 3);
  TgTensor *u, *s, *vt;
  if (!x || tg_svd(x->t, &u, &s, &vt)) return;
  TgTensor *y = kind == 0 ? s : kind == 1 ? tg_matmul(u, vt) : tg_matmul(tg_mul(u, tg_exp(tg_neg(s))), vt);
  net_out(p, y, kind == 0 ? x->most * 1.5 : 1, "svd(%s, %d)", x->name, kind);
}

/* What is drawn depends on the seed alone, so that every run of the program has the mask that its text has. */
static void dropped(Net *p, const NetRow *row) {
  static const double chances[] = {0, 0.25, 0.5, 1};
  (void)row;
  NetNode *x = net_filled(p, 1);
  int64_t count = x ? tg_numel(x->t) : NET_NUMEL;
  uint64_t seed = p->record->number * NET_NODES + (uint64_t)p->n;
  double chance = chances[net_below(p, 4)], keeps[64] = {0};
  if (count > 64) return;
  p->record->reads = true;
  tg_set_training(p->ctx, true);
  tg_manual_seed(p->ctx, seed);
  TgTensor *ones = tg_ones(p->ctx, tg_ndim(x->t), tg_shape(x->t), .dtype = TG_F32);
  tg_read_f64(tg_dropout(ones, chance), keeps, (size_t)count);
  tg_manual_seed(p->ctx, seed);
  TgTensor *y = tg_dropout(x->t, chance);
  tg_set_training(p->ctx, false);
  NetText mask = {0};
  for (int64_t i = 0; i < count; i++)
    net_say(&mask, "%d,", keeps[i] != 0);
  net_out(p, y, 2 * x->most, "dropout(%s, %g, [%s])", x->name, chance, mask.text);
  free(mask.text);
}

const NetRow net_layers[] = {{.name = "matmul", .make = multiplied},
                             {.name = "matmul", .make = multiplied},
                             {.name = "matmul of itself", .make = multiplied_by_itself},
                             {.name = "linear", .make = linear},
                             {.name = "linear", .make = linear},
                             {.name = "einsum", .make = summed_products},
                             {.name = "conv", .make = convolved},
                             {.name = "conv", .make = convolved},
                             {.name = "conv_transpose", .make = convolved_back},
                             {.name = "pool", .make = pooled},
                             {.name = "pool", .make = pooled},
                             {.name = "interpolate", .make = resized},
                             {.name = "norm", .make = normed},
                             {.name = "norm by channel", .make = normed_by_channel},
                             {.name = "attention", .make = attended},
                             {.name = "multihead", .make = layered},
                             {.name = "recurrent", .make = layered},
                             {.name = "loss of labels", .make = judged},
                             {.name = "loss of values", .make = judged_by_values},
                             {.name = "newton_schulz", .make = orthogonal},
                             {.name = "qr", .make = factored},
                             {.name = "svd", .make = by_singular_values},
                             {.name = "dropout", .make = dropped},
                             {0}};
