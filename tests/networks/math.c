/* math.c: rows of random networks that compute element by element, reduce, run along an axis or sort. Each is
 * told how it is made and how Python writes it. */
#include "networks.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* text with $a and $b in their places */
static const char *filled_in(const char *text, const char *a, const char *b) {
  static char s[400];
  size_t n = 0;
  for (; *text && n < sizeof s - 12; text++)
    if (*text == '$') {
      const char *name = *++text == 'a' ? a : b;
      n += (size_t)snprintf(s + n, sizeof s - n, "%s", name);
    } else
      s[n++] = *text;
  s[n] = 0;
  return s;
}

static void one(Net *p, const NetRow *row) {
  NetNode *a = net_pick_in(p, row->domain);
  if (a) net_out(p, row->one(a->t), row->most ? row->most : a->most, "%s", filled_in(row->text, a->name, ""));
}

static void two(Net *p, const NetRow *row) {
  NetNode *a = net_pick(p), *b = net_in(p, net_beside(p, a), row->domain);
  if (!a || !b) return;
  b->read = true;
  double most = row->most ? row->most * (a->most + b->most) : a->most * b->most;
  net_out(p, row->two(a->t, b->t), most, "%s", filled_in(row->text, a->name, b->name));
}

/* What is rounded to few digits may be equal by chance, which no twin in f64 is. */
static bool few_digits(const NetNode *x) { return tg_dtype_size(x->dtype) < 4; }

/* ---- with numbers besides */
static double number(Net *p) { return net_between(p, 1, 12) / 8.; }

static void with_number(Net *p, const NetRow *row) {
  static const struct {
    const char *name, *text;
    TgTensor *(*make)(TgTensor *, double);
    int domain;
    double most;
  } ways[] = {
      {"leaky_relu", "F.leaky_relu(%s, %g)", tg_leaky_relu, NET_ANY, 0},
      {"elu", "F.elu(%s, %g)", tg_elu, NET_ANY, 6},
      {"celu", "F.celu(%s, %g)", tg_celu, NET_ANY, 6},
      {"softplus_beta", "F.softplus(%s, %g, 1000)", tg_softplus_beta, NET_ANY, 12},
      {"add_scalar", "%s + %g", tg_add_scalar, NET_ANY, 8},
      {"sub_scalar", "%s - %g", tg_sub_scalar, NET_ANY, 8},
      {"rsub_scalar", "-%s + %g", tg_rsub_scalar, NET_ANY, 8},
      {"mul_scalar", "%s * %g", tg_mul_scalar, NET_ANY, 9},
      {"div_scalar", "%s / %g", tg_div_scalar, NET_SMALL, 24},
      {"rdiv_scalar", "(1 / %s) * %g", tg_rdiv_scalar, NET_POSITIVE, 5},
      {"maximum_scalar", "torch.clamp(%s, min=%g)", tg_maximum_scalar, NET_ANY, 0},
      {"minimum_scalar", "torch.clamp(%s, max=%g)", tg_minimum_scalar, NET_ANY, 0},
      {"pow_scalar", "%s ** %g", tg_pow_scalar, NET_POSITIVE, 12},
      {"rpow_scalar", "rpow(%s, %g)", tg_rpow_scalar, NET_SMALL, 5},
      {"fmod_scalar", "torch.fmod(%s, %g)", tg_fmod_scalar, NET_ANY, 2},
      {"mod_scalar", "torch.remainder(%s, %g)", tg_mod_scalar, NET_ANY, 2},
      {"floordiv_scalar", "torch.floor(%s / %g)", tg_floordiv_scalar, NET_SMALL, 24},
      {"lt_scalar", "%s < %g", tg_lt_scalar, NET_ANY, 1},
      {"gt_scalar", "%s > %g", tg_gt_scalar, NET_ANY, 1},
      {"le_scalar", "%s <= %g", tg_le_scalar, NET_ANY, 1},
      {"ge_scalar", "%s >= %g", tg_ge_scalar, NET_ANY, 1},
      {"eq_scalar", "%s == %g", tg_eq_scalar, NET_ANY, 1},
      {"ne_scalar", "%s != %g", tg_ne_scalar, NET_ANY, 1},
  };

  (void)row;
  int k = net_below(p, (int)(sizeof ways / sizeof *ways));
  double v = number(p);
  NetNode *x = net_pick_in(p, ways[k].domain);
  bool equality = ways[k].make == tg_eq_scalar || ways[k].make == tg_ne_scalar;
  if (!x || (equality && few_digits(x))) return;
  char text[100];
  snprintf(text, sizeof text, ways[k].text, x->name, v);
  p->row = ways[k].name;
  net_out(p, ways[k].make(x->t, v), ways[k].most > 0 ? ways[k].most : x->most, "%s", text);
}

static void whole_power(Net *p, const NetRow *row) {
  (void)row;
  int k = net_between(p, 0, 3);
  NetNode *x = net_pick_in(p, NET_SMALL);
  if (x) net_out(p, tg_pow_scalar(x->t, k), pow(2.5, k), "%s ** %d", x->name, k);
}

static void power(Net *p, const NetRow *row) {
  (void)row;
  NetNode *a = net_pick_in(p, NET_POSITIVE), *b = net_in(p, net_beside(p, a), NET_UNIT);
  if (!a || !b) return;
  b->read = true;
  net_out(p, tg_pow(a->t, b->t), 5, "%s ** %s", a->name, b->name);
}

static void clamped(Net *p, const NetRow *row) {
  (void)row;
  double lo = -number(p), hi = number(p);
  NetNode *x = net_pick(p), *l, *h;
  if (!x) return;
  switch (net_below(p, 3)) {
  case 0: net_out(p, tg_clamp(x->t, lo, hi), 1.5, "torch.clamp(%s, %g, %g)", x->name, lo, hi); break;
  case 1: net_out(p, tg_hardtanh(x->t, lo, hi), 1.5, "F.hardtanh(%s, %g, %g)", x->name, lo, hi); break;
  default:
    l = net_beside(p, x), h = l ? net_beside(p, x) : NULL;
    if (!l || !h) return;
    x = net_out(p, tg_clamp_tensor(x->t, l->t, NULL), x->most + l->most, "torch.maximum(%s, %s)", x->name,
                l->name);
    if (!x) return;
    x->read = true;
    if (net_broadcasts(x, h))
      net_out(p, tg_clamp_tensor(x->t, NULL, h->t), x->most + h->most, "torch.minimum(%s, %s)", x->name,
              h->name);
  }
}

static void lerp(Net *p, const NetRow *row) {
  (void)row;
  NetNode *a = net_pick(p), *b = net_beside(p, a), *w = b ? net_in(p, net_beside(p, a), NET_UNIT) : NULL;
  if (!w || !net_broadcasts(b, w)) return;
  w->read = true;
  net_out(p, tg_lerp(a->t, b->t, w->t), a->most + b->most, "%s + (%s - %s) * %s", a->name, b->name, a->name,
          w->name);
}

static void several(Net *p, const NetRow *row) {
  NetNode *a = net_pick(p), *b = net_beside(p, a), *c = b ? net_beside(p, a) : NULL;
  if (!c || !net_broadcasts(b, c)) return;
  TgTensor *x[] = {a->t, b->t, c->t};
  bool sum = row->most > 1;
  net_out(p, sum ? tg_usum(x, 3) : tg_uprod(x, 3), sum ? 18 : a->most * b->most * c->most,
          sum ? "%s + %s + %s" : "%s * %s * %s", a->name, b->name, c->name);
}

static void compared(Net *p, const NetRow *row) {
  NetNode *a = net_pick(p), *b = net_beside(p, a);
  if (row->two == tg_ne && a && b && (few_digits(a) || few_digits(b))) return;
  if (a && b) net_out(p, row->two(a->t, b->t), 1, "%s", filled_in(row->text, a->name, b->name));
}

/* a bool that broadcasts with x */
static NetNode *choice(Net *p, NetNode *x) {
  NetNode *c = net_wants(p, false);
  int n = tg_ndim(x->t);
  if (c && tg_ndim(c->t) <= n) {
    bool fits = true;
    for (int i = 1; i <= tg_ndim(c->t); i++)
      fits = fits && (tg_dim(c->t, -i) == 1 || tg_dim(c->t, -i) == tg_dim(x->t, -i));
    if (fits) return c;
  }
  return net_mask(p, n, tg_shape(x->t));
}

static void chosen(Net *p, const NetRow *row) {
  (void)row;
  NetNode *a = net_pick(p), *b = net_beside(p, a), *c = a && b ? choice(p, a) : NULL;
  if (!c || !net_broadcasts(b, c)) return;
  if (net_chance(p, 3))
    net_out(p, tg_masked_fill(a->t, c->t, 0.75), a->most, "torch.masked_fill(%s, %s, 0.75)", a->name,
            c->name);
  else
    net_out(p, tg_where(c->t, a->t, b->t), a->most + b->most, "torch.where(%s, %s, %s)", c->name, a->name,
            b->name);
}

static void converted(Net *p, const NetRow *row) {
  (void)row;
  static const TgDType f32[] = {TG_F32, TG_F16, TG_BF16}, f64[] = {TG_F64, TG_F64, TG_F32};
  static const TgDType narrow[] = {TG_F32, TG_BF16, TG_F16};
  TgDType to = p->theme == NET_F32   ? f32[net_below(p, 12) % 12 > 9 ? 1 + net_below(p, 2) : 0]
               : p->theme == NET_F64 ? f64[net_below(p, 3)]
                                     : narrow[net_below(p, 3)];
  NetNode *x = net_chance(p, 3) ? net_wants(p, net_chance(p, 2)) : NULL;
  if (!x) x = net_pick(p);
  if (!x || (!net_is_float(x) && x->most > 64)) return;
  net_out(p, tg_cast(x->t, net_dtype(p, to)), x->most, net_is_float(x) ? "%s * 1" : "%s.double()", x->name);
}

static void logic(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_wants(p, false), *f = net_pick(p);
  switch (net_below(p, 6)) {
  case 0:
    if (x) net_out(p, tg_logical_not(x->t), 1, "~%s", x->name);
    break;
  case 1:
    if (f) /* a sum that is zero may be either of two */
      net_out(p, tg_signbit(tg_where(tg_eq_scalar(f->t, 0), tg_ones_like(f->t), f->t)), 1,
              "torch.signbit(torch.where(%s == 0, 1, %s))", f->name, f->name);
    break;
  case 2:
    if (f) net_out(p, tg_isfinite(f->t), 1, "torch.isfinite(%s)", f->name);
    break;
  case 3:
    if (f) net_out(p, tg_isnan(f->t), 1, "torch.isnan(%s)", f->name);
    break;
  case 4:
    if (f) net_out(p, tg_isinf(f->t), 1, "torch.isinf(%s)", f->name);
    break;
  default:
    if (f) net_out(p, tg_logical_not(f->t), 1, "%s == 0", f->name);
    break;
  }
}

/* ---- reductions */
static TgAxes some_axes(Net *p, int n) {
  TgAxes a = {.n = 0};
  for (int i = 0; i < n; i++)
    if (net_chance(p, 2)) a.v[a.n++] = net_chance(p, 3) ? i - n : i;
  if (!a.n)
    for (int i = 0; i < n; i++)
      a.v[a.n++] = i;
  return a;
}

static double counted(NetNode *x, TgAxes a) {
  double n = 1;
  for (int i = 0; i < a.n; i++)
    n *= (double)tg_dim(x->t, a.v[i]);
  return n;
}

static void reduced(Net *p, const NetRow *row) {
  (void)row;
  int kind = net_below(p, 13);
  NetNode *x = kind == 0 || kind == 2 ? net_pick(p) : net_filled(p, 0);
  if (!x) return;
  TgAxes a = some_axes(p, tg_ndim(x->t));
  bool k = net_chance(p, 2);
  double n = counted(x, a), most = x->most;
  const char *s = net_axes(a), *keep = k ? "True" : "False";
  int less = net_between(p, 0, 2);
#define REDUCED(f, python, bound)                                                                            \
  p->row = #f,                                                                                               \
  net_out(p, tg_##f(x->t, .axis = a, .keepdim = k), bound, python "(%s, %s, %s)", x->name, s, keep)
  switch (kind) {
  case 0: REDUCED(sum, "torch.sum", most * sqrt(n) * 1.5); break;
  case 1: REDUCED(mean, "torch.mean", most); break;
  case 2:
    if (n <= 12) REDUCED(prod, "prod", pow(most, n));
    break;
  case 3: REDUCED(max, "torch.amax", most); break;
  case 4: REDUCED(min, "torch.amin", most); break;
  case 5:
    if (!few_digits(x)) REDUCED(any, "torch.any", 1);
    break;
  case 6:
    if (!few_digits(x)) REDUCED(all, "torch.all", 1); /* it asks whether a value equals 0 */
    break;
  case 7: REDUCED(logsumexp, "torch.logsumexp", most + 4); break;
  case 8:
  case 9:
    if (n <= less || n < 2) return; /* of one element PyTorch's second derivative is NaN */
    p->row = kind == 8 ? "var" : "std";
    net_out(p,
            kind == 8 ? tg_var(x->t, .axis = a, .keepdim = k, .correction = less)
                      : tg_std(x->t, .axis = a, .keepdim = k, .correction = less),
            most * most, "torch.%s(%s, %s, correction=%d, keepdim=%s)", p->row, x->name, s, less, keep);
    break;
  case 10: {
    TgTensor *mean = NULL;
    if (n <= less || n < 2) return; /* of one element PyTorch's second derivative is NaN */
    bool dev = net_chance(p, 2);
    p->row = dev ? "std_mean" : "var_mean";
    TgTensor *y = dev ? tg_std_mean(x->t, &mean, .axis = a, .keepdim = k, .correction = less)
                      : tg_var_mean(x->t, &mean, .axis = a, .keepdim = k, .correction = less);
    x = net_out(p, tg_add(y, mean), most * most, "sum(torch.%s(%s, %s, correction=%d, keepdim=%s))", p->row,
                x->name, s, less, keep);
    break;
  }
  default: {
    if (!tg_ndim(x->t)) return;
    int axis = net_below(p, tg_ndim(x->t));
    p->row = kind == 11 ? "argmax" : "argmin";
    net_out(p,
            kind == 11 ? tg_argmax(x->t, .axis = TG_AXES(axis), .keepdim = k)
                       : tg_argmin(x->t, .axis = TG_AXES(axis), .keepdim = k),
            (double)tg_dim(x->t, axis), "torch.%s(%s, %d, %s)", p->row, x->name, axis, keep);
  }
  }
}

static void along(Net *p, const NetRow *row) {
  (void)row;
  static const double norms[] = {1, 2, 3, INFINITY, -INFINITY, 2.5};
  int kind = net_below(p, 15);
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int a = net_below(p, tg_ndim(x->t)), size = (int)tg_dim(x->t, a), k = net_between(p, 0, size);
  bool down = net_chance(p, 2);
  double most = x->most, norm = norms[net_below(p, 6)];
  TgAxes axis = TG_AXES(net_chance(p, 2) ? a : a - tg_ndim(x->t));
  const char *n = x->name, *falling = down ? "True" : "False";
  switch (kind) {
  case 0: net_out(p, tg_softmax(x->t, .axis = axis), 1, "torch.softmax(%s, %d)", n, a); break;
  case 1:
    net_out(p, tg_log_softmax(x->t, .axis = axis), 2 * most + 3, "torch.log_softmax(%s, %d)", n, a);
    break;
  case 2: net_out(p, tg_softmin(x->t, .axis = axis), 1, "F.softmin(%s, %d)", n, a); break;
  case 3:
    p->row = "normalize";
    net_out(p, tg_normalize(x->t, .axis = axis.v[0], .p = norm), 3, "normalize(%s, float('%g'), %d)", n, norm,
            a);
    break;
  case 4:
    p->row = "cumsum", net_out(p, tg_cumsum(x->t, a), most * sqrt(size) * 1.5, "torch.cumsum(%s, %d)", n, a);
    break;
  case 5:
    p->row = "cumprod";
    if (size <= 10) net_out(p, tg_cumprod(x->t, a), pow(most, size), "torch.cumprod(%s, %d)", n, a);
    break;
  case 6:
    p->row = "cummax", net_out(p, tg_cummax(x->t, a, NULL), most, "torch.cummax(%s, %d)[0]", n, a);
    break;
  case 7:
    p->row = "cummin", net_out(p, tg_cummin(x->t, a, NULL), most, "torch.cummin(%s, %d)[0]", n, a);
    break;
  case 8: net_out(p, tg_logcumsumexp(x->t, a), most + 3, "logcumsumexp(%s, %d)", n, a); break;
  case 9:
  case 10:
    p->row = "sort";
    net_out(p, tg_sort(x->t, NULL, .axis = axis, .descending = down), most,
            "torch.sort(%s, dim=%d, descending=%s, stable=True)[0]", n, a, falling);
    break;
  case 11:
    p->row = "argsort";
    net_out(p, tg_argsort(x->t, .axis = axis, .descending = down), size,
            "torch.argsort(%s, dim=%d, descending=%s, stable=True)", n, a, falling);
    break;
  case 12: {
    TgTensor *places = NULL;
    p->row = "topk";
    TgTensor *y = tg_topk(x->t, k, &places, .axis = axis, .smallest = !down);
    if (net_chance(p, 2))
      net_out(p, y, most, "torch.sort(%s, dim=%d, descending=%s, stable=True)[0].narrow(%d, 0, %d)", n, a,
              falling, a, k);
    else
      net_out(p, places, size, "torch.sort(%s, dim=%d, descending=%s, stable=True)[1].narrow(%d, 0, %d)", n,
              a, falling, a, k);
    break;
  }
  case 13: {
    TgTensor *places = NULL;
    p->row = "cummax places";
    if (down ? tg_cummax(x->t, a, &places) : tg_cummin(x->t, a, &places))
      net_out(p, places, size, "first_places(%s, %d, %s)", n, a, falling);
    break;
  }
  default:
    p->row = "cumsum", net_out(p, tg_cumsum(x->t, a), most * sqrt(size) * 1.5, "torch.cumsum(%s, %d)", n, a);
  }
}

static void integers(Net *p, const NetRow *row) { /* that were made, computed with */
  (void)row;
  NetNode *a = net_wants(p, true);
  if (!a || a->most > 100) return;
  int v = net_between(p, 1, 5);
  switch (net_below(p, 4)) {
  case 0:
    net_out(p, tg_mod_scalar(tg_mul_scalar(a->t, 3), v), v, "torch.remainder(%s * 3, %d)", a->name, v);
    break;
  case 1:
    net_out(p, tg_floordiv_scalar(tg_sub_scalar(a->t, 3), v), a->most,
            "torch.div(%s - 3, %d, rounding_mode='floor')", a->name, v);
    break;
  case 2:
    net_out(p, tg_bitxor_scalar(tg_shl_scalar(a->t, 1), v), 2 * a->most + 8, "(%s * 2) ^ %d", a->name, v);
    break;
  default: net_out(p, tg_gt_scalar(a->t, v), 1, "%s > %d", a->name, v);
  }
}

/* clang-format off */
const NetRow net_math[] = {
  {.name = "neg", .make = one, .one = tg_neg, .text = "-$a"},
  {.name = "square", .make = one, .one = tg_square, .text = "$a * $a", .domain = NET_SMALL, .most = 6.3},
  {.name = "abs", .make = one, .one = tg_abs, .text = "torch.abs($a)"},
  {.name = "sign", .make = one, .one = tg_sign, .text = "torch.sign($a)", .most = 1},
  {.name = "trunc", .make = one, .one = tg_trunc, .text = "torch.trunc($a)"},
  {.name = "floor", .make = one, .one = tg_floor, .text = "torch.floor($a)"},
  {.name = "ceil", .make = one, .one = tg_ceil, .text = "torch.ceil($a)"},
  {.name = "round", .make = one, .one = tg_round, .text = "torch.round($a)"},
  {.name = "exp", .make = one, .one = tg_exp, .text = "torch.exp($a)", .domain = NET_SMALL, .most = 13},
  {.name = "exp2", .make = one, .one = tg_exp2, .text = "torch.exp2($a)", .domain = NET_SMALL, .most = 6},
  {.name = "log", .make = one, .one = tg_log, .text = "torch.log($a)", .domain = NET_POSITIVE, .most = 2},
  {.name = "log2", .make = one, .one = tg_log2, .text = "torch.log2($a)", .domain = NET_POSITIVE, .most = 3},
  {.name = "log10", .make = one, .one = tg_log10, .text = "torch.log10($a)", .domain = NET_POSITIVE, .most = 1},
  {.name = "sin", .make = one, .one = tg_sin, .text = "torch.sin($a)", .most = 1},
  {.name = "cos", .make = one, .one = tg_cos, .text = "torch.cos($a)", .most = 1},
  {.name = "tan", .make = one, .one = tg_tan, .text = "torch.tan($a)", .domain = NET_UNIT, .most = 1.3},
  {.name = "sinh", .make = one, .one = tg_sinh, .text = "torch.sinh($a)", .domain = NET_SMALL, .most = 6},
  {.name = "cosh", .make = one, .one = tg_cosh, .text = "torch.cosh($a)", .domain = NET_SMALL, .most = 6},
  {.name = "tanh", .make = one, .one = tg_tanh, .text = "torch.tanh($a)", .most = 1},
  {.name = "asin", .make = one, .one = tg_asin, .text = "torch.asin($a)", .domain = NET_UNIT, .most = 1.2},
  {.name = "acos", .make = one, .one = tg_acos, .text = "torch.acos($a)", .domain = NET_UNIT, .most = 3},
  {.name = "atan", .make = one, .one = tg_atan, .text = "torch.atan($a)", .most = 1.5},
  {.name = "asinh", .make = one, .one = tg_asinh, .text = "torch.asinh($a)", .most = 3},
  {.name = "acosh", .make = one, .one = tg_acosh, .text = "torch.acosh($a)", .domain = NET_ABOVE_ONE, .most = 3},
  {.name = "atanh", .make = one, .one = tg_atanh, .text = "torch.atanh($a)", .domain = NET_UNIT, .most = 1.5},
  {.name = "erf", .make = one, .one = tg_erf, .text = "torch.erf($a)", .most = 1},
  {.name = "sqrt", .make = one, .one = tg_sqrt, .text = "torch.sqrt($a)", .domain = NET_POSITIVE, .most = 2.3},
  {.name = "rsqrt", .make = one, .one = tg_rsqrt, .text = "torch.rsqrt($a)", .domain = NET_POSITIVE, .most = 2},
  {.name = "reciprocal", .make = one, .one = tg_reciprocal, .text = "1 / $a", .domain = NET_POSITIVE, .most = 3.4},
  {.name = "relu", .make = one, .one = tg_relu, .text = "torch.relu($a)"},
  {.name = "sigmoid", .make = one, .one = tg_sigmoid, .text = "torch.sigmoid($a)", .most = 1},
  {.name = "gelu", .make = one, .one = tg_gelu, .text = "F.gelu($a, approximate='tanh')"},
  {.name = "gelu_erf", .make = one, .one = tg_gelu_erf, .text = "F.gelu($a)"},
  {.name = "quick_gelu", .make = one, .one = tg_quick_gelu, .text = "$a * torch.sigmoid(1.702 * $a)"},
  {.name = "silu", .make = one, .one = tg_silu, .text = "F.silu($a)"},
  {.name = "softplus", .make = one, .one = tg_softplus, .text = "F.softplus($a, threshold=1000)"},
  {.name = "relu6", .make = one, .one = tg_relu6, .text = "F.relu6($a)"},
  {.name = "selu", .make = one, .one = tg_selu, .text = "F.selu($a)"},
  {.name = "logsigmoid", .make = one, .one = tg_logsigmoid, .text = "F.logsigmoid($a)"},
  {.name = "hardsigmoid", .make = one, .one = tg_hardsigmoid, .text = "F.relu6($a + 3) / 6", .most = 1},
  {.name = "hardswish", .make = one, .one = tg_hardswish, .text = "$a * F.relu6($a + 3) / 6"},
  {.name = "softsign", .make = one, .one = tg_softsign, .text = "F.softsign($a)", .most = 1},
  {.name = "mish", .make = one, .one = tg_mish, .text = "F.mish($a)"},
  {.name = "contiguous", .make = one, .one = tg_contiguous, .text = "$a * 1"},
  {.name = "clone", .make = one, .one = tg_clone, .text = "$a * 1"},
  {.name = "detach", .make = one, .one = tg_detach, .text = "$a.detach()"},
  {.name = "contiguous_backward", .make = one, .one = tg_contiguous_backward, .text = "$a * 1"},
  {.name = "add", .make = two, .two = tg_add, .text = "$a + $b", .most = 1},
  {.name = "add", .make = two, .two = tg_add, .text = "$a + $b", .most = 1},
  {.name = "sub", .make = two, .two = tg_sub, .text = "$a - $b", .most = 1},
  {.name = "mul", .make = two, .two = tg_mul, .text = "$a * $b"},
  {.name = "mul", .make = two, .two = tg_mul, .text = "$a * $b"},
  {.name = "div", .make = two, .two = tg_div, .text = "$a / $b", .domain = NET_POSITIVE, .most = 2},
  {.name = "floordiv", .make = two, .two = tg_floordiv, .text = "torch.floor($a / $b)", .domain = NET_POSITIVE, .most = 2},
  {.name = "mod", .make = two, .two = tg_mod, .text = "torch.remainder($a, $b)", .domain = NET_POSITIVE, .most = 1},
  {.name = "fmod", .make = two, .two = tg_fmod, .text = "torch.fmod($a, $b)", .domain = NET_POSITIVE, .most = 1},
  {.name = "maximum", .make = two, .two = tg_maximum, .text = "torch.maximum($a, $b)", .most = 1},
  {.name = "minimum", .make = two, .two = tg_minimum, .text = "torch.minimum($a, $b)", .most = 1},
  {.name = "logaddexp", .make = two, .two = tg_logaddexp, .text = "torch.logaddexp($a, $b)", .most = 1},
  {.name = "copysign", .make = two, .two = tg_copysign, .text = "torch.copysign($a, $b)", .most = 1},
  {.name = "atan2", .make = two, .two = tg_atan2, .text = "torch.atan2($a, $b)", .domain = NET_POSITIVE, .most = 0.5},
  {.name = "lt", .make = compared, .two = tg_lt, .text = "$a < $b"},
  {.name = "gt", .make = compared, .two = tg_gt, .text = "$a > $b"},
  {.name = "le", .make = compared, .two = tg_le, .text = "$a <= $b"},
  {.name = "ge", .make = compared, .two = tg_ge, .text = "$a >= $b"},
  {.name = "ne", .make = compared, .two = tg_ne, .text = "$a != $b"},
  {.name = "with a number", .make = with_number},
  {.name = "with a number", .make = with_number},
  {.name = "with a number", .make = with_number},
  {.name = "pow_scalar", .make = whole_power},
  {.name = "pow", .make = power},
  {.name = "clamp", .make = clamped},
  {.name = "lerp", .make = lerp},
  {.name = "usum", .make = several, .most = 2},
  {.name = "uprod", .make = several, .most = 1},
  {.name = "where", .make = chosen},
  {.name = "where", .make = chosen},
  {.name = "cast", .make = converted},
  {.name = "cast", .make = converted},
  {.name = "logic", .make = logic},
  {.name = "integers", .make = integers},
  {.name = "reduce", .make = reduced},
  {.name = "reduce", .make = reduced},
  {.name = "reduce", .make = reduced},
  {.name = "reduce", .make = reduced},
  {.name = "reduce", .make = reduced},
  {.name = "along", .make = along},
  {.name = "along", .make = along},
  {.name = "along", .make = along},
  {.name = "along", .make = along},
  {.name = "along", .make = along},
  {0}
};
/* clang-format on */
