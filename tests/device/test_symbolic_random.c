/* test_symbolic_random.c: graphs at random whose sizes are made of two variables. In: seeds. Out: whether what
 * is read with the variables bound, again and again to other numbers, is what the same graph gives on tensors
 * of these numbers, on the interpreter; whether the shapes are those that are counted here; and whether
 * nothing is scheduled or compiled again. On INTERP, or $TG_DEV; PROGRAMS and SEED: how many, and the first;
 * V=1: each is printed, and which steps the library refuses. */
#include "device/left.h"
#include "tg.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RANK = 4, MOST_N = 9, MOST_M = 6, WIDE = 6, STEPS = 12, INPUTS = 5, POOL = INPUTS + STEPS, OUT = 4 };

enum { MOST_ELEMENTS = 4000, BINDINGS = 5 };

/* ---- sizes: one + n N + m M + nm N M */
typedef struct Size {
  int64_t one, n, m, nm;
} Size;

static const Size N = {.n = 1}, M = {.m = 1};

static Size number(int64_t v) { return (Size){.one = v}; }

static Size plus(Size a, Size b, int64_t times) {
  return (Size){a.one + times * b.one, a.n + times * b.n, a.m + times * b.m, a.nm + times * b.nm};
}

static bool symbolic(Size a) { return a.n || a.m || a.nm; }

static bool times(Size a, Size b, Size *out) {
  *out = (Size){a.one * b.one, a.one * b.n + a.n * b.one, a.one * b.m + a.m * b.one,
                a.one * b.nm + a.nm * b.one + a.n * b.m + a.m * b.n};
  return !((a.n && b.n) || (a.m && b.m) || (a.nm && symbolic(b)) || (b.nm && symbolic(a)));
}

static int64_t at(Size s, int64_t n, int64_t m) { return s.one + s.n * n + s.m * m + s.nm * n * m; }

static bool equal(Size a, Size b) { return !memcmp(&a, &b, sizeof a); }

static bool is(Size a, int64_t v) { return equal(a, number(v)); }

/* ---- programs */
/* A tensor. exact: of whole numbers, whose sums in any order have the same bits; most: none is larger. */
typedef struct Value {
  int rank;
  Size d[RANK];
  bool exact;
  double most;
} Value;

typedef enum Kind {
  UNARY,
  BINARY,
  WHERE,
  REDUCE,
  ARG,
  ALONG, /* softmax and the like: the shape stays */
  TRANSPOSE,
  FLIP,
  MERGE,
  SPLIT,
  UNSQUEEZE,
  SQUEEZE,
  GROW,
  SLICE,
  SELECT,
  PAD,
  CAT,
  STACK,
  REPEAT,
  TRIANGLE,
  MATMUL,
  TAKE,
  ONE_HOT,
  MEMORY,
  SIZE,
  FULL,
  ATTENTION,
  CONV,
  SORT,
  ODD, /* roll, unfold, diagonal, pads by mode */
  NORM,
  LOSS,
  SUMMED, /* by a formula */
  SCATTER,
  KINDS
} Kind;

static const char *const kind_names[KINDS] = {
    [UNARY] = "unary",   [BINARY] = "binary",  [WHERE] = "where",         [REDUCE] = "reduce",
    [ARG] = "arg",       [ALONG] = "along",    [TRANSPOSE] = "transpose", [FLIP] = "flip",
    [MERGE] = "merge",   [SPLIT] = "split",    [UNSQUEEZE] = "unsqueeze", [SQUEEZE] = "squeeze",
    [GROW] = "grow",     [SLICE] = "slice",    [SELECT] = "select",       [PAD] = "pad",
    [CAT] = "cat",       [STACK] = "stack",    [REPEAT] = "repeat",       [TRIANGLE] = "triangle",
    [MATMUL] = "matmul", [TAKE] = "take",      [ONE_HOT] = "one_hot",     [MEMORY] = "memory",
    [SIZE] = "size",     [FULL] = "full",      [ATTENTION] = "attention", [CONV] = "conv",
    [SORT] = "sort",     [ODD] = "odd",        [NORM] = "norm",           [LOSS] = "loss",
    [SUMMED] = "summed", [SCATTER] = "scatter"};

typedef struct Step {
  Kind kind;
  int a, b, which, axis, other;
  Size s, e;
} Step;

typedef struct Case {
  uint64_t rng, seed;
  int64_t lo[2], hi[2];
  Step step[STEPS];
  Value v[POOL];
  int steps, n, out[OUT];
  bool gradient;
  /* the library's side */
  TgContext *c;
  TgVariable *var[2];
  TgTensor *in[INPUTS];
  int64_t now[2]; /* symbolic: -1 */
} Case;

static int below(Case *p, int n) {
  p->rng = p->rng * 6364136223846793005u + 1442695040888963407u;
  return (int)((p->rng >> 33) % (uint64_t)n);
}

static int64_t end_of(const Case *p, Size s, bool most) {
  int64_t best = 0;
  for (int i = 0; i < 4; i++) {
    int64_t v = at(s, i & 1 ? p->hi[0] : p->lo[0], i & 2 ? p->hi[1] : p->lo[1]);
    if (!i || (most ? v > best : v < best)) best = v;
  }
  return best;
}

static int64_t least(const Case *p, Size s) { return end_of(p, s, false); }

static int64_t most(const Case *p, Size s) { return end_of(p, s, true); }

static int64_t most_elements(const Case *p, const Value *v) {
  int64_t n = 1;
  for (int i = 0; i < v->rank; i++)
    n *= most(p, v->d[i]);
  return n;
}

/* A size as the library takes it: of variables, or the number that it is now. */
static int64_t size_of(const Case *p, Size s) {
  if (p->now[0] >= 0) return at(s, p->now[0], p->now[1]);
  TgContext *c = p->c;
  int64_t n = tg_size(p->var[0]), m = tg_size(p->var[1]), sum = s.one;
  const int64_t factor[3] = {s.n, s.m, s.nm}, of[3] = {n, m, s.nm ? tg_size_mul(c, n, m) : 0};
  for (int i = 0; i < 3; i++)
    if (factor[i] > 0) sum = tg_size_add(c, sum, tg_size_mul(c, factor[i], of[i]));
  for (int i = 0; i < 3; i++)
    if (factor[i] < 0) sum = tg_size_sub(c, sum, tg_size_mul(c, -factor[i], of[i]));
  return sum;
}

/* A size within 0 .. s. */
static bool size_within(Case *p, Size s, Size *out) {
  const Size any[] = {
      number(0),      number(1),      number(2), N, M, plus(N, number(1), -1), plus(s, number(1), -1),
      plus(s, N, -1), plus(s, M, -1), s,         s};
  for (int i = 0; i < 12; i++) {
    *out = any[below(p, (int)(sizeof any / sizeof *any))];
    if (least(p, *out) >= 0 && least(p, plus(s, *out, -1)) >= 0) return true;
  }
  return false;
}

/* ---- what a step gives, and what is read */
static const char *const unary_names[] = {"neg",  "relu",    "abs",         "half",
                                          "tanh", "sigmoid", "exp of tanh", "square"};

static TgTensor *unary(TgTensor *x, int which) {
  switch (which) {
  case 0: return tg_neg(x);
  case 1: return tg_relu(x);
  case 2: return tg_abs(x);
  case 3: return tg_mul_scalar(x, .5);
  case 4: return tg_tanh(x);
  case 5: return tg_sigmoid(x);
  case 6: return tg_exp(tg_tanh(x));
  default: return tg_square(x);
  }
}

static TgTensor *reduced(TgTensor *x, int which, int axis, bool keep) {
  switch (which) {
  case 0: return tg_sum(x, .axis = TG_AXES(axis), .keepdim = keep);
  case 1: return tg_max(x, .axis = TG_AXES(axis), .keepdim = keep);
  case 2: return tg_min(x, .axis = TG_AXES(axis), .keepdim = keep);
  case 3: return tg_mean(x, .axis = TG_AXES(axis), .keepdim = keep);
  default: return tg_var(x, .axis = TG_AXES(axis), .keepdim = keep, .biased = true);
  }
}

static TgTensor *along(TgTensor *x, int which, int axis) {
  switch (which) {
  case 0: return tg_cumsum(x, axis);
  case 1: return tg_softmax(x, .axis = TG_AXES(axis));
  case 2: return tg_log_softmax(x, .axis = TG_AXES(axis));
  case 3: return tg_cummax(x, axis, NULL);
  default: return tg_layer_norm(x);
  }
}

static TgTensor *applied(const Case *p, const Step *s, TgTensor *const *t) {
  TgTensor *a = t[s->a], *b = t[s->b];
  TgContext *c = p->c;
  int rank = tg_ndim(a);
  int64_t x = size_of(p, s->s), y = size_of(p, s->e), zero[RANK] = {0}, side[RANK] = {0}, d[RANK + 1];
  for (int i = 0; i < rank; i++)
    d[i] = tg_size_of(a, i);
  switch (s->kind) {
  case UNARY: return unary(a, s->which);
  case BINARY:
    return s->which == 0   ? tg_add(a, b)
           : s->which == 1 ? tg_sub(a, b)
           : s->which == 2 ? tg_mul(a, b)
                           : tg_maximum(a, b);
  case WHERE: return tg_where(tg_lt_scalar(a, 0), b, a);
  case REDUCE: return reduced(a, s->which, s->axis, s->other);
  case ARG:
    return tg_float(s->which ? tg_argmin(a, .axis = TG_AXES(s->axis))
                             : tg_argmax(a, .axis = TG_AXES(s->axis)));
  case ALONG: return along(a, s->which, s->axis);
  case TRANSPOSE: return tg_transpose(a, s->axis, s->other);
  case FLIP: return tg_flip(a, 1, (int64_t[]){s->axis});
  case MERGE: return tg_flatten(a, s->axis, s->axis + 1);
  case SPLIT: return tg_unflatten(a, s->axis, 2, (int64_t[]){x, s->which});
  case UNSQUEEZE: return tg_unsqueeze(a, s->axis);
  case SQUEEZE: return tg_squeeze(a, s->axis);
  case GROW:
    for (int i = rank; i > s->axis; i--)
      d[i] = d[i - 1];
    d[s->axis] = x;
    return tg_expand(tg_unsqueeze(a, s->axis), rank + 1, d);
  case SLICE: return tg_slice(a, s->axis, x, y);
  case SELECT: return tg_select(a, s->axis, x);
  case PAD:
    zero[s->axis] = x, side[s->axis] = y;
    return s->which ? tg_pad_value(a, zero, side, 3) : tg_pad(a, zero, side);
  case CAT: return tg_cat((TgTensor *[]){a, b}, 2, s->axis);
  case STACK: return tg_stack((TgTensor *[]){a, b}, 2, s->axis);
  case REPEAT:
    for (int i = 0; i < rank; i++)
      d[i] = i == s->axis ? 2 : 1;
    return tg_repeat(a, rank, d);
  case TRIANGLE: return s->which < 0 ? tg_tril(a, s->axis) : tg_triu(a, s->axis);
  case MATMUL: return tg_matmul(a, s->which ? tg_transpose(b, 0, 1) : b);
  case TAKE: /* rows of a, by numbers that b's elements make */
    return tg_take(
        a, tg_int(tg_minimum(tg_abs(b), tg_size_tensor(c, size_of(p, plus(s->s, number(1), -1)), TG_F32))));
  case ONE_HOT: return tg_float(tg_one_hot(tg_int(tg_minimum_scalar(tg_abs(a), 4)), 5));
  case MEMORY: return tg_contiguous(a);
  case SIZE: return tg_mul(a, tg_size_tensor(c, x, TG_F32));
  case FULL: return tg_full(c, 2, ((int64_t[]){x, y}), 2);
  case ATTENTION: {
    TgTensor *q = tg_unsqueeze(a, 0), *k = tg_unsqueeze(b, 0);
    return tg_squeeze(tg_scaled_dot_product_attention(q, k, k, .causal = s->which), 0);
  }
  case CONV: {
    TgTensor *w = tg_sub_scalar(tg_mod_scalar(tg_reshape(tg_arange(c, 0, 12), TG_SHAPE(3, 1, 2, 2)), 5), 2);
    TgTensor *image = tg_reshape(a, 4, (int64_t[]){d[0], 1, 2, 3});
    TgTensor *y = NULL, *back = tg_float(tg_reshape(w, TG_SHAPE(1, 3, 2, 2)));
    if (s->which == 0) y = tg_conv2d(image, tg_float(w), .padding = TG_SIZES(1, 1));
    if (s->which == 1) y = tg_max_pool2d(image, .kernel = TG_SIZES(2, 2), .stride = TG_SIZES(1, 1));
    if (s->which == 2) y = tg_avg_pool2d(image, .kernel = TG_SIZES(2, 2), .padding = TG_SIZES(1, 1));
    if (s->which == 3) y = tg_conv_transpose2d(image, back, .stride = TG_SIZES(2, 2));
    if (s->which == 4) y = tg_interpolate(image, 2, ((int64_t[]){3, 5}));
    return tg_flatten(y, 1, 3);
  }
  case SORT:
    return s->other ? tg_topk(a, 2, NULL, .axis = TG_AXES(s->axis), .smallest = s->which)
                    : tg_sort(a, NULL, .axis = TG_AXES(s->axis), .descending = s->which);
  case ODD:
    if (s->which == 0) return tg_roll(a, 1, (int64_t[]){2}, (int64_t[]){s->axis});
    if (s->which == 1) return tg_unfold(a, s->axis, 2, 1);
    if (s->which == 2) return tg_diagonal(a, 0, 0, 1);
    zero[s->axis] = s->other, side[s->axis] = 1;
    return tg_pad_mode(a, zero, side, (TgPadMode)(s->which - 2));
  case NORM: {
    TgTensor *of = tg_reshape(tg_arange(c, 0, WIDE), TG_SHAPE(WIDE));
    if (s->which == 0) return tg_rms_norm(a);
    if (s->which == 1) return tg_logcumsumexp(a, s->axis);
    if (s->which == 2) return tg_batch_norm(a, tg_float(of), tg_add_scalar(tg_float(of), 1));
    return tg_batch_norm_train(a, NULL, NULL);
  }
  case LOSS: {
    TgTensor *label = tg_int(tg_minimum_scalar(tg_abs(tg_select(b, 1, 0)), WIDE - 1));
    return tg_reshape(s->which ? tg_sparse_cross_entropy(a, label, .label_smoothing = .1)
                               : tg_binary_cross_entropy_logits(a, tg_float(tg_lt_scalar(b, 0))),
                      1, (int64_t[]){1});
  }
  case SUMMED:
    if (s->which == 0) return tg_einsum("ij,kj->ki", ((TgTensor *[]){a, b}), 2);
    if (s->which == 1) return tg_einsum("...i->i...", (&a), 1);
    return tg_rearrange(a, "a (b c) -> (b a) c", (TgNamedSize[]){{"c", 2}}, 1);
  case SCATTER: {
    TgTensor *to = tg_minimum(tg_abs(b), tg_size_tensor(c, size_of(p, plus(s->s, number(1), -1)), TG_F32));
    TgTensor *full = tg_contiguous(tg_mul_scalar(a, 1));
    return s->which ? tg_scatter(full, 0, tg_int(to), b, .reduce = TG_SCATTER_ADD)
                    : tg_scatter_reduce(full, 0, tg_int(to), b, TG_SCATTER_AMAX);
  }
  default: return NULL;
  }
}

/* ---- programs are drawn */
static Value whole(const Value *v, double largest, bool exact) {
  Value w = *v;
  w.exact = exact && largest < 1 << 20, w.most = largest;
  return w;
}

static bool same_shape(const Value *a, const Value *b, int but) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (i != but && !equal(a->d[i], b->d[i])) return false;
  return true;
}

/* The shape of a beside b; false: they do not broadcast for all values of the variables. */
static bool beside(const Value *a, const Value *b, Value *out) {
  const Value *big = a->rank >= b->rank ? a : b, *small = big == a ? b : a;
  *out = *big;
  for (int i = 0; i < small->rank; i++) {
    Size *d = &out->d[big->rank - 1 - i], e = small->d[small->rank - 1 - i];
    if (equal(*d, e) || is(e, 1)) continue;
    if (!is(*d, 1)) return false;
    *d = e;
  }
  out->exact = a->exact && b->exact;
  return true;
}

static void without(Value *v, int axis) {
  for (int i = axis; i + 1 < v->rank; i++)
    v->d[i] = v->d[i + 1];
  v->rank--;
}

static bool with(Value *v, int axis, Size s) {
  if (v->rank == RANK) return false;
  for (int i = v->rank++; i > axis; i--)
    v->d[i] = v->d[i - 1];
  v->d[axis] = s;
  return true;
}

/* What the step gives for these operands; false: it does not fit. */
static bool fits(Case *p, Step *s, Value *out) {
  const Value *a = &p->v[s->a], *b = &p->v[s->b];
  *out = *a;
  if (!a->rank && s->kind != UNARY && s->kind != BINARY && s->kind != UNSQUEEZE && s->kind != SIZE)
    return false;
  s->axis = a->rank ? below(p, a->rank) : 0;
  Size d = a->rank ? a->d[s->axis] : number(1);
  double wide = (double)most(p, d);
  switch (s->kind) {
  case UNARY:
    s->which = below(p, 8);
    if (s->which == 7 && a->most > 1000) return false;
    *out = whole(a,
                 s->which == 7 ? a->most * a->most
                 : a->most > 3 ? a->most
                               : 3,
                 a->exact && (s->which < 3 || s->which == 7));
    return true;
  case BINARY:
    s->which = below(p, 4);
    if (!beside(a, b, out)) return false;
    *out = whole(out, s->which == 2 ? a->most * b->most : a->most + b->most, out->exact);
    return out->most < 1e6;
  case WHERE:
    return a->exact && beside(a, b, out) && (*out = whole(out, fmax(a->most, b->most), out->exact), true);
  case REDUCE:
    s->which = below(p, 5), s->other = below(p, 2);
    if (least(p, d) < 1 && s->which) return false;
    *out = whole(a,
                 s->which == 0   ? a->most * fmax(wide, 1)
                 : s->which == 4 ? a->most * a->most
                                 : a->most,
                 a->exact && s->which < 3);
    if (out->most > 1e5) return false;
    if (s->other)
      out->d[s->axis] = number(1);
    else
      without(out, s->axis);
    return true;
  case ARG:
    s->which = below(p, 2);
    *out = whole(a, wide, true);
    without(out, s->axis);
    return a->exact && least(p, d) > 0;
  case ALONG:
    s->which = below(p, 5);
    if (s->which == 4) d = a->d[a->rank - 1];
    if (s->which && least(p, d) < 1) return false;
    *out = whole(a, s->which == 0 ? a->most * fmax(wide, 1) : a->most + 4,
                 a->exact && (s->which == 0 || s->which == 3));
    return a->most < 1e4;
  case TRANSPOSE:
    s->other = below(p, a->rank);
    out->d[s->axis] = a->d[s->other], out->d[s->other] = d;
    return true;
  case FLIP: return true;
  case MERGE:
    if (s->axis + 1 >= a->rank || !times(d, a->d[s->axis + 1], &d)) return false;
    without(out, s->axis);
    out->d[s->axis] = d;
    return true;
  case SPLIT:
    s->which = 2 + below(p, 2);
    if (d.one % s->which || d.n % s->which || d.m % s->which || d.nm % s->which) return false;
    s->s = (Size){d.one / s->which, d.n / s->which, d.m / s->which, d.nm / s->which};
    out->d[s->axis] = s->s;
    return with(out, s->axis + 1, number(s->which));
  case UNSQUEEZE: s->axis = below(p, a->rank + 1); return with(out, s->axis, number(1));
  case SQUEEZE: without(out, s->axis); return is(d, 1);
  case GROW: s->s = below(p, 3) ? below(p, 2) ? N : M : number(3); return with(out, s->axis, s->s);
  case SLICE:
    if (!size_within(p, d, &s->s) || !size_within(p, plus(d, s->s, -1), &s->e)) return false;
    out->d[s->axis] = s->e;
    s->e = plus(s->e, s->s, 1);
    return true;
  case SELECT:
    if (!size_within(p, plus(d, number(1), -1), &s->s) || least(p, d) < 1) return false;
    without(out, s->axis);
    return true;
  case PAD: {
    const Size side[] = {number(0), number(1), number(2), N, M, plus(N, number(1), 1)};
    s->s = side[below(p, 6)], s->e = side[below(p, 6)], s->which = below(p, 2);
    if (least(p, d) > 0 && !below(p, 6)) s->s = number(-1);
    out->d[s->axis] = plus(plus(d, s->s, 1), s->e, 1);
    out->most = fmax(a->most, 3);
    return true;
  }
  case CAT:
    if (!same_shape(a, b, s->axis)) return false;
    out->d[s->axis] = plus(d, b->d[s->axis], 1);
    *out = whole(out, fmax(a->most, b->most), a->exact && b->exact);
    return true;
  case STACK:
    *out = whole(out, fmax(a->most, b->most), a->exact && b->exact);
    return same_shape(a, b, -1) && with(out, s->axis, number(2));
  case REPEAT: out->d[s->axis] = plus(d, d, 1); return true;
  case TRIANGLE: s->which = below(p, 2) - 1, s->axis = below(p, 5) - 2; return a->rank > 1;
  case MATMUL: {
    s->which = below(p, 2);
    Size inner = a->d[a->rank - 1];
    if (b->rank != 2 || !equal(inner, b->d[s->which])) return false;
    out->d[a->rank - 1] = b->d[1 - s->which];
    *out = whole(out, a->most * b->most * fmax((double)most(p, inner), 1), a->exact && b->exact);
    return out->most < 1e6;
  }
  case TAKE:
    s->s = a->d[0];
    if (!b->exact || least(p, s->s) < 1 || a->rank + b->rank > RANK + 1) return false;
    *out = *a;
    without(out, 0);
    for (int i = b->rank; i-- > 0;)
      if (!with(out, 0, b->d[i])) return false;
    return true;
  case ONE_HOT: *out = whole(a, 1, true); return a->exact && with(out, a->rank, number(5));
  case MEMORY: return true;
  case SIZE:
    s->s = d;
    *out = whole(a, a->most * fmax(wide, 1), a->exact);
    return out->most < 1e5;
  case FULL:
    s->s = below(p, 2) ? N : plus(M, number(2), 1), s->e = below(p, 2) ? M : number(WIDE);
    *out = (Value){.rank = 2, .d = {s->s, s->e}, .exact = true, .most = 2};
    return true;
  case ATTENTION:
    s->which = below(p, 2);
    *out = whole(a, b->most, false);
    return a->rank == 2 && b->rank == 2 && equal(a->d[1], b->d[1]) && least(p, b->d[0]) > 0 &&
           least(p, a->d[1]) > 0 && a->most * b->most < 1e3;
  case CONV:
    s->which = below(p, 5);
    out->d[1] = number((int64_t[]){3 * 3 * 4, 2, 2 * 2, 3 * 4 * 6, 3 * 5}[s->which]);
    *out = whole(out, a->most * 16, a->exact && (s->which < 2 || s->which == 3));
    return a->rank == 2 && is(a->d[1], 6) && a->most < 1e4;
  case SORT:
    s->which = below(p, 2), s->other = below(p, 2);
    if (s->other) out->d[s->axis] = number(2);
    return !s->other || least(p, d) >= 2;
  case ODD:
    s->which = below(p, 6);
    if (s->which == 1) {
      if (least(p, d) < 2) return false;
      out->d[s->axis] = plus(d, number(1), -1);
      return with(out, a->rank, number(2));
    }
    if (s->which == 2) {
      if (a->rank < 2 || !equal(a->d[0], a->d[1])) return false;
      without(out, 0), without(out, 0);
      return with(out, out->rank, a->d[0]);
    }
    if (s->which > 2) {
      s->other = below(p, 2);
      if (least(p, d) < 2) return false;
      out->d[s->axis] = plus(d, number(1 + s->other), 1);
    }
    return true;
  case NORM:
    s->which = below(p, 4);
    *out = whole(a, a->most + 4, false);
    if (s->which == 0) return least(p, a->d[a->rank - 1]) > 0;
    if (s->which == 1) return least(p, d) > 0 && a->most < 1e3;
    if (s->which == 2) return a->rank > 1 && is(a->d[1], WIDE);
    return a->rank == 2 && is(a->d[1], WIDE) && least(p, a->d[0]) > 1;
  case LOSS:
    s->which = below(p, 2);
    *out = (Value){.rank = 1, .d = {{.one = 1}}, .most = a->most + b->most};
    return a->rank == 2 && same_shape(a, b, -1) && is(a->d[1], WIDE) && b->exact && least(p, a->d[0]) > 0 &&
           a->most < 1e3;
  case SUMMED: {
    s->which = below(p, 3);
    if (s->which == 0) {
      Size inner = a->rank == 2 ? a->d[1] : number(0);
      *out = whole(a, a->most * b->most * fmax((double)most(p, inner), 1), a->exact && b->exact);
      out->d[0] = b->d[0], out->d[1] = a->d[0];
      return a->rank == 2 && b->rank == 2 && equal(inner, b->d[1]) && out->most < 1e6;
    }
    if (s->which == 1) {
      for (int i = 0; i < a->rank; i++)
        out->d[(i + 1) % a->rank] = a->d[i];
      return true;
    }
    Size e = a->d[1];
    if (a->rank != 2 || e.one % 2 || e.n % 2 || e.m % 2 || e.nm % 2 ||
        !times((Size){e.one / 2, e.n / 2, e.m / 2, e.nm / 2}, a->d[0], &out->d[0]))
      return false;
    out->d[1] = number(2);
    return true;
  }
  case SCATTER:
    s->which = below(p, 2), s->s = a->d[0];
    *out = whole(a, s->which ? a->most + b->most * (double)most_elements(p, b) : fmax(a->most, b->most),
                 a->exact);
    return b->exact && least(p, s->s) > 0 && same_shape(a, b, 0) && out->most < 1e5;
  default: return false;
  }
}

/* A step; the second operand is looked for, as few shapes go together. */
static bool drawn(Case *p, Step *s, Value *out) {
  *s = (Step){.kind = (Kind)below(p, KINDS), .a = below(p, p->n), .b = below(p, p->n)};
  if (p->n > INPUTS && below(p, 2)) s->a = p->n - 1; /* go on with the last one */
  for (int tries = p->n; tries > 0; tries--, s->b = (s->b + 1) % p->n)
    if (fits(p, s, out)) return true;
  return false;
}

/* ---- words of a program, for a failure */
static const char *size_text(Size s) {
  static char text[8][80];
  static int turn;
  char *t = text[turn++ % 8];
  snprintf(t, 80, "%lld", (long long)s.one);
  if (symbolic(s))
    snprintf(t, 80, "(%lld%+lldn%+lldm%+lldnm)", (long long)s.one, (long long)s.n, (long long)s.m,
             (long long)s.nm);
  return t;
}

static void print(const Case *p, FILE *to) {
  fprintf(to, "n %d..%d, m %d..%d\n", (int)p->lo[0], (int)p->hi[0], (int)p->lo[1], (int)p->hi[1]);
  for (int i = 0; i < p->n; i++) {
    const Step *s = i < INPUTS ? NULL : &p->step[i - INPUTS];
    fprintf(to, "  t%d", i);
    if (s)
      fprintf(to, " = %s %s t%d t%d axis %d which %d other %d s %s e %s", kind_names[s->kind],
              s->kind == UNARY ? unary_names[s->which] : "", s->a, s->b, s->axis, s->which, s->other,
              size_text(s->s), size_text(s->e));
    fprintf(to, " ->");
    for (int k = 0; k < p->v[i].rank; k++)
      fprintf(to, " %s", size_text(p->v[i].d[k]));
    fprintf(to, "%s\n", p->v[i].exact ? " exact" : "");
  }
  fprintf(to, "  read:");
  for (int i = 0; i < OUT; i++)
    fprintf(to, " t%d", p->out[i]);
  fprintf(to, "\n");
}

/* ---- both sides */
static int refused[KINDS], taken[KINDS];

__attribute__((format(printf, 2, 3))) static void wrong(const Case *p, const char *what, ...) {
  char said[500];
  va_list args;
  va_start(args, what);
  vsnprintf(said, sizeof said, what, args);
  va_end(args);
  print(p, stderr);
  fail_msg("n %d, m %d: %s", (int)p->now[0], (int)p->now[1], said);
}

/* The inputs: (n, WIDE), (WIDE, m), (n, m), (n), (m, WIDE), each a part of memory. */
static void inputs_made(Case *p) {
  const int64_t d[INPUTS][2] = {
      {MOST_N + 2, WIDE}, {WIDE, MOST_M + 1}, {MOST_N, MOST_M}, {MOST_N, 1}, {MOST_M + 3, WIDE}};
  for (int i = 0; i < INPUTS; i++) {
    float x[200];
    for (int k = 0; k < 200; k++)
      x[k] = (float)((k * (7 + 2 * i) + k / 3) % 9 - 4);
    p->in[i] = i == 3 ? tg_from(p->c, x, TG_F32, TG_SHAPE(MOST_N))
                      : tg_from(p->c, x, TG_F32, TG_SHAPE(d[i][0], d[i][1]));
  }
}

static void inputs(const Case *p, TgTensor **t) {
  int64_t n = size_of(p, N), m = size_of(p, M);
  t[0] = tg_slice(p->in[0], 0, 2, size_of(p, plus(N, number(2), 1)));
  t[1] = tg_slice(p->in[1], 1, 0, m);
  t[2] = tg_slice(tg_slice(p->in[2], 0, 0, n), 1, 0, m);
  t[3] = tg_slice(p->in[3], 0, 0, n);
  t[4] = tg_slice(p->in[4], 0, 1, size_of(p, plus(M, number(1), 1)));
}

static const Value input_values[INPUTS] = {{2, {{.n = 1}, {.one = WIDE}}, true, 4},
                                           {2, {{.one = WIDE}, {.m = 1}}, true, 4},
                                           {2, {{.n = 1}, {.m = 1}}, true, 4},
                                           {1, {{.n = 1}}, true, 4},
                                           {2, {{.m = 1}, {.one = WIDE}}, true, 4}};

/* What is read: the tensors of p->out, then gradients. */
static int results(const Case *p, TgTensor **out) {
  TgTensor *t[POOL];
  inputs(p, t);
  for (int i = 0; i < p->steps; i++)
    if (!(t[INPUTS + i] = applied(p, &p->step[i], t))) return 0;
  int n = 0;
  for (int i = 0; i < OUT; i++)
    out[n++] = t[p->out[i]];
  if (!p->gradient) return n;
  TgTensor *loss = NULL;
  for (int i = 0; i < OUT; i++) {
    TgTensor *one = tg_sum(tg_tanh(tg_mul_scalar(out[i], .125)));
    loss = loss ? tg_add(loss, one) : one;
  }
  if (tg_gradient(loss, p->in, INPUTS, out + n)) return 0;
  return n + INPUTS;
}

static double got[MOST_ELEMENTS], want[MOST_ELEMENTS];

static void compared(const Case *p, int k, TgTensor *x, TgTensor *y, bool fixed) {
  int64_t n = tg_numel(y);
  const Value *v = k < OUT ? &p->v[p->out[k]] : NULL;
  bool alike = tg_ndim(x) == tg_ndim(y) && (!v || tg_ndim(x) == v->rank);
  for (int i = 0; alike && i < tg_ndim(x); i++)
    alike = tg_dim(x, i) == tg_dim(y, i);
  for (int i = 0; alike && v && !fixed && i < v->rank; i++)
    alike = tg_dim(x, i) == at(v->d[i], p->now[0], p->now[1]);
  if (!alike) wrong(p, "result %d: %s, not %s", k, tg_describe(x), tg_describe(y));
  if (tg_read_f64(x, got, (size_t)n)) wrong(p, "result %d: %s", k, tg_errmsg(tg_context(x)));
  if (tg_read_f64(y, want, (size_t)n)) wrong(p, "result %d of numbers: %s", k, tg_errmsg(tg_context(y)));
  double largest = v ? v->most : 1;
  for (int64_t i = 0; i < n; i++)
    if (!(got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) ||
          fabs(got[i] - want[i]) <= 2e-4 * fmax(largest, fabs(want[i]))))
      wrong(p, "%sresult %d: element %d of %d is %.9g, not %.9g", fixed ? "captured: " : "", k, (int)i,
            (int)n, got[i], want[i]);
}

/* What a captured function gives is of its own sizes, or, of some, with zeroes up to the most. */
static TgTensor *filled(const Case *p, int k, TgTensor *x) {
  const Value *v = &p->v[p->out[k]];
  if ((p->seed + (uint64_t)k) % 2) return x;
  int64_t zero[RANK] = {0}, side[RANK];
  for (int i = 0; i < v->rank; i++)
    side[i] = size_of(p, plus(number(most(p, v->d[i])), v->d[i], -1));
  return tg_pad(x, zero, side);
}

static TgStatus captured(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)in, (void)nin, (void)nout;
  TgTensor *t[OUT + INPUTS];
  const Case *p = user;
  if (!results(p, t)) return tg_error(c);
  for (int i = 0; i < OUT; i++)
    out[i] = filled(p, i, t[i]);
  return tg_error(c);
}

/* The steps are drawn one by one, as the library takes them. */
static void program_drawn(Case *p) {
  TgTensor *t[POOL];
  inputs(p, t);
  p->n = INPUTS, p->steps = 0;
  memcpy(p->v, input_values, sizeof input_values);
  for (int tries = 0; p->steps < STEPS && tries < 400; tries++) {
    Step *s = &p->step[p->steps];
    Value v;
    if (!drawn(p, s, &v) || most_elements(p, &v) > MOST_ELEMENTS) continue;
    TgTensor *x = applied(p, s, t);
    if (!x) { /* a refusal names the op */
      refused[s->kind]++;
      if (getenv("V")) fprintf(stderr, "%s %d refused: %s\n", kind_names[s->kind], s->which, tg_errmsg(p->c));
      if (tg_error(p->c) != TG_ERR_SHAPE && tg_error(p->c) != TG_ERR_LIMIT && tg_error(p->c) != TG_ERR_VALUE)
        wrong(p, "%s", tg_errmsg(p->c));
      tg_clear_error(p->c);
      continue;
    }
    taken[s->kind]++;
    t[p->n] = x, p->v[p->n++] = v, p->steps++;
  }
  p->out[0] = p->n - 1;
  for (int i = 1; i < OUT; i++)
    p->out[i] = INPUTS + below(p, p->steps);
}

static void lived(uint64_t seed, const char *device) {
  Case p = {.rng = seed * 77 + 5, .seed = seed}, q;
  p.lo[0] = below(&p, 2), p.hi[0] = MOST_N, p.lo[1] = 1, p.hi[1] = MOST_M;
  p.gradient = below(&p, 2);
  bool capture = below(&p, 2);
  p.c = tg_open_with(.device = device);
  q.c = NULL;
  TgContext *oracle = tg_open_with(.device = "INTERP");
  p.var[0] = tg_variable(p.c, "n", p.lo[0], p.hi[0]), p.var[1] = tg_variable(p.c, "m", p.lo[1], p.hi[1]);
  p.now[0] = p.now[1] = -1;
  inputs_made(&p);
  program_drawn(&p);
  if (getenv("V")) print(&p, stderr);
  q = p, q.c = oracle;
  inputs_made(&q);
  TgTensor *r[OUT + INPUTS];
  int n = results(&p, r);
  if (!n) wrong(&p, "%s", tg_errmsg(p.c));
  TgJit *j = capture ? tg_jit(p.c, captured, &p) : NULL;
  for (int k = 0; k < BINDINGS; k++)
    TG_SCOPE(oracle) {
      for (int v = 0; v < 2; v++) {
        q.now[v] = k == 0 ? p.hi[v] : k == 1 ? p.lo[v] : p.lo[v] + below(&p, (int)(p.hi[v] - p.lo[v] + 1));
        assert_int_equal(tg_variable_bind(p.var[v], q.now[v]), TG_OK);
      }
      TgTensor *w[OUT + INPUTS], *again[OUT];
      if (!results(&q, w)) wrong(&q, "%s", tg_errmsg(oracle));
      tg_counters_reset(p.c);
      if (tg_realize_many(r, (size_t)n)) wrong(&q, "%s", tg_errmsg(p.c));
      TgCounters did = tg_counters(p.c);
      if (k > 1 && did.schedules + did.compiled) /* what needs no variable is left out the second time */
        wrong(&q, "%d scheduled, %d compiled again", (int)did.schedules, (int)did.compiled);
      for (int i = 0; i < n; i++)
        compared(&q, i, r[i], w[i], false);
      TG_SCOPE(p.c) {
        if (capture && tg_jit_run(j, NULL, 0, again, OUT)) wrong(&q, "%s", tg_errmsg(p.c));
        for (int i = 0; capture && i < OUT; i++)
          compared(&q, i, again[i], filled(&q, i, w[i]), true);
      }
    }
  tg_jit_free(j);
  tg_close(p.c), tg_close(oracle);
}

static void programs(void **state) {
  (void)state;
  const char *n = getenv("PROGRAMS"), *first = getenv("SEED"), *device = getenv("TG_DEV");
  for (int i = 0; i < (n ? atoi(n) : 40); i++) {
    int seed = (first ? atoi(first) : 1) + i;
    if (getenv("V")) fprintf(stderr, "seed %d\n", seed);
    lived((uint64_t)seed, device ? device : "INTERP");
  }
  if (getenv("V"))
    for (int i = 0; i < KINDS; i++)
      fprintf(stderr, "%-10s taken %d, refused %d\n", kind_names[i], taken[i], refused[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};
  return cmocka_run_group_tests(tests, NULL, NULL) + left_behind() != 0;
}
