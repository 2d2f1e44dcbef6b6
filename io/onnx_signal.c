/* onnx_signal.c: Fourier transforms, windows, and the selection of boxes. In: an OnnxCall. Out: lazy
 * tensors. A transform is a product with a matrix of cosines and sines. Their angles are first reduced as
 * integers, so that they are exact. */
#include "onnx_private.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_POINTS = 1 << 14, MOST_WINDOW = 1 << 24, MOST_BOXES = 1 << 20 };

static const double PI = 3.14159265358979323846;

static bool whole_of(OnnxCall *c, int i, int64_t otherwise, int64_t *out) {
  Ints v;
  if (!call_ints(c, i, NULL, &v)) return false;
  *out = v.given && v.n ? v.v[0] : otherwise;
  return true;
}

/* Cosines and sines (rows, bins) of 2 pi t k / n. t k is reduced to the nearest quarter of the circle as
 * an integer, so that results that should be 0 or 1 are exact. */
static void circle(OnnxCall *c, int64_t rows, int64_t bins, int64_t n, TgDType d, TgTensor **cosine,
                   TgTensor **sine) {
  TgTensor *t = tg_reshape(tg_arange(c->ctx, 0, (double)rows, .dtype = TG_I64), TG_SHAPE(rows, 1));
  TgTensor *k = tg_reshape(tg_arange(c->ctx, 0, (double)bins, .dtype = TG_I64), TG_SHAPE(1, bins));
  TgTensor *quarters = tg_mul_scalar(tg_mod_scalar(tg_mul(t, k), (double)n), 4); /* each is n */
  TgTensor *q = tg_floordiv_scalar(tg_add_scalar(tg_mul_scalar(quarters, 2), (double)n), 2.0 * (double)n);
  TgTensor *rest = tg_sub(quarters, tg_mul_scalar(q, (double)n));
  TgTensor *angle = tg_mul_scalar(as(rest, d), PI / 2 / (double)n), *co = tg_cos(angle), *si = tg_sin(angle);
  TgTensor *odd = tg_eq_scalar(tg_mod_scalar(q, 2), 1), *which = tg_mod_scalar(q, 4);
  TgTensor *less =
      tg_bitor(tg_eq_scalar(which, 1), tg_eq_scalar(which, 2)); /* where the cosine is negative */
  TgTensor *below = tg_ge_scalar(which, 2);
  TgTensor *x = tg_where(odd, si, co), *y = tg_where(odd, co, si);
  *cosine = tg_contiguous(tg_where(less, tg_neg(x), x));
  *sine = tg_contiguous(tg_where(below, tg_neg(y), y));
}

/* Transforms (.., n, 1 or 2) along the last axis but one, to length `points`. The inverse of half a
 * spectrum (inverse and onesided) has real results. */
static TgTensor *transform(OnnxCall *c, TgTensor *x, int64_t points, bool inverse, bool onesided) {
  TgTensor *cosine, *sine;
  int last = tg_ndim(x) - 1;
  int64_t parts = tg_dim(x, -1), rows = tg_dim(x, -2);
  TgDType d = tg_dtype(x);
  if (points < 1 || points > MOST_POINTS) return call_fail(c, TG_ERR_LIMIT, "%lld points", (long long)points);
  if (parts != 1 && parts != 2) return call_fail(c, TG_ERR_SHAPE, "numbers of %lld parts", (long long)parts);
  bool whole = inverse && onesided; /* the other half of the spectrum mirrors this one */
  int64_t half = points / 2 + 1, used = whole ? half : points, bins = onesided && !inverse ? half : points;
  if (rows > used) x = tg_slice(x, last - 1, 0, used);
  if (rows < used) used = rows;
  circle(c, used, bins, points, d, &cosine, &sine);
  TgTensor *re = tg_select(x, last, 0), *im = parts == 2 ? tg_select(x, last, 1) : NULL;
  /* every bin counts twice, except the first one, and the last one if the number of points is even */
  if (whole) {
    TgTensor *k = tg_arange(c->ctx, 0, (double)used, .dtype = TG_I64);
    TgTensor *once = tg_bitor(tg_eq_scalar(k, 0), tg_eq_scalar(tg_mul_scalar(k, 2), (double)points));
    TgTensor *times = tg_rsub_scalar(as(once, d), 2);
    re = tg_mul(re, times);
    im = im ? tg_mul(im, times) : NULL;
  }
  TgTensor *out_re = tg_matmul(re, cosine), *out_im = tg_matmul(re, sine);
  if (!inverse) out_im = tg_neg(out_im);
  if (im) {
    TgTensor *a = tg_matmul(im, sine), *b = tg_matmul(im, cosine);
    out_re = inverse ? tg_sub(out_re, a) : tg_add(out_re, a);
    out_im = tg_add(out_im, b);
  }
  TgTensor *y = whole ? tg_unsqueeze(out_re, last) : tg_stack((TgTensor *[]){out_re, out_im}, 2, last);
  return inverse ? tg_div_scalar(y, (double)points) : y;
}

static TgTensor *op_dft(OnnxCall *c) {
  TgTensor *x = c->in[0];
  int rank = tg_ndim(x), axis;
  int64_t at = c->opset >= 20 ? -2 : attr_i(c, "axis", 1), points;
  bool inverse = attr_i(c, "inverse", 0), onesided = attr_i(c, "onesided", 0);
  if (rank < 2 || !whole_of(c, c->opset >= 20 ? 2 : -1, at, &at) || !call_axis(c, at, rank, &axis))
    return NULL;
  if (axis == rank - 1) return call_fail(c, TG_ERR_VALUE, "the last axis holds the parts of a number");
  int64_t n = tg_dim(x, axis);
  if (!whole_of(c, 1, inverse && onesided ? 2 * (n - 1) : n, &points)) return NULL;
  x = tg_transpose(x, axis, rank - 2);
  TgTensor *y = transform(c, x, points, inverse, onesided);
  return tg_transpose(y, axis, rank - 2);
}

static TgTensor *op_stft(OnnxCall *c) {
  TgTensor *x = c->in[0], *window = input(c, 2);
  int64_t step, length;
  if (tg_ndim(x) == 2) x = tg_unsqueeze(x, 2);
  if (tg_ndim(x) != 3) return call_fail(c, TG_ERR_SHAPE, "a signal of %d axes", tg_ndim(x));
  if (!whole_of(c, 1, 0, &step) || !whole_of(c, 3, window ? tg_numel(window) : 0, &length)) return NULL;
  if (step < 1 || length < 1 || length > tg_dim(x, 1))
    return call_fail(c, TG_ERR_VALUE, "frames of %lld, %lld apart", (long long)length, (long long)step);
  TgTensor *frames = tg_transpose(tg_unfold(x, 1, length, step), 2, 3); /* (b, frames, length, parts) */
  if (window) frames = tg_mul(frames, tg_reshape(as(window, tg_dtype(x)), TG_SHAPE(1, 1, -1, 1)));
  return transform(c, frames, length, false, attr_i(c, "onesided", 1));
}

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) */
static TgTensor *window_of(OnnxCall *c, double a0, double a1, double a2) {
  int64_t size, to = attr_i(c, "output_datatype", 1);
  if (!whole_of(c, 0, 0, &size)) return NULL;
  TgDType d = onnx_dtype(to);
  if (size < 0 || size > MOST_WINDOW)
    return call_fail(c, TG_ERR_LIMIT, "a window of %lld numbers, at most %d", (long long)size, MOST_WINDOW);
  if (!tg_dtype_is_float(d))
    return call_fail(c, TG_ERR_DTYPE, "data type %lld of the window is none of floats", (long long)to);
  double n = attr_i(c, "periodic", 1) ? (double)size : (double)(size - 1);
  TgTensor *angle =
      tg_mul_scalar(tg_arange(c->ctx, 0, (double)size, .dtype = TG_F32), 2 * PI / (n > 0 ? n : 1));
  TgTensor *y = tg_rsub_scalar(tg_mul_scalar(tg_cos(angle), a1), a0);
  if (a2 != 0) y = tg_add(y, tg_mul_scalar(tg_cos(tg_mul_scalar(angle, 2)), a2));
  return as(y, d);
}

static TgTensor *op_hann(OnnxCall *c) { return window_of(c, 0.5, 0.5, 0); }

static TgTensor *op_hamming(OnnxCall *c) { return window_of(c, 25.0 / 46, 21.0 / 46, 0); }

static TgTensor *op_blackman(OnnxCall *c) { return window_of(c, 0.42, 0.5, 0.08); }

/* ---- which boxes are kept: this is decided here, from values read, because each decision depends on
 * earlier ones */
typedef struct Box {
  double y0, x0, y1, x1;
} Box;

static Box box_of(const double *v, bool centre) {
  if (centre) return (Box){v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return (Box){fmin(v[0], v[2]), fmin(v[1], v[3]), fmax(v[0], v[2]), fmax(v[1], v[3])};
}

static double overlap(const Box *a, const Box *b) {
  double h = fmin(a->y1, b->y1) - fmax(a->y0, b->y0), w = fmin(a->x1, b->x1) - fmax(a->x0, b->x0);
  double both = h > 0 && w > 0 ? h * w : 0;
  double all = (a->y1 - a->y0) * (a->x1 - a->x0) + (b->y1 - b->y0) * (b->x1 - b->x0) - both;
  return all > 0 ? both / all : 0;
}

typedef struct Ranked {
  double score;
  int64_t at;
} Ranked;

static int by_score(const void *a, const void *b) {
  const Ranked *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->at < y->at ? -1 : 1;
}

/* Handles one class of one picture. Returns the number of rows that it wrote to out. */
static int64_t suppress(const double *boxes, const double *scores, int64_t n, int64_t most, double iou,
                        double least, bool bounded, bool centre, Ranked *rank, int64_t *out, int64_t batch,
                        int64_t class) {
  int64_t count = 0, kept = 0;
  for (int64_t i = 0; i < n; i++)
    if (!bounded || scores[i] > least) rank[count++] = (Ranked){scores[i], i};
  qsort(rank, (size_t)count, sizeof *rank, by_score);
  for (int64_t i = 0; i < count && kept < most; i++) {
    Box b = box_of(boxes + 4 * rank[i].at, centre);
    bool fine = true;
    for (int64_t k = 0; fine && k < kept; k++) {
      Box had = box_of(boxes + 4 * out[3 * k + 2], centre);
      fine = overlap(&b, &had) <= iou;
    }
    if (!fine) continue;
    out[3 * kept] = batch;
    out[3 * kept + 1] = class;
    out[3 * kept + 2] = rank[i].at;
    kept++;
  }
  return kept;
}

static bool number_at(OnnxCall *c, int i, double *out, bool *given) {
  int n;
  double v = 0;
  if (!call_doubles(c, i, &v, 1, &n)) return false;
  if (n) *out = v;
  if (given) *given = n > 0;
  return true;
}

static TgTensor *op_nms(OnnxCall *c) {
  TgTensor *boxes = c->in[0], *scores = c->in[1];
  if (tg_ndim(boxes) != 3 || tg_ndim(scores) != 3 || tg_dim(boxes, 2) != 4 ||
      tg_dim(boxes, 1) != tg_dim(scores, 2) || tg_dim(boxes, 0) != tg_dim(scores, 0) ||
      tg_numel(scores) > MOST_BOXES)
    return call_fail(c, TG_ERR_SHAPE, "boxes and scores do not fit, or are too many");
  double most = 0, iou = 0, least = 0;
  bool bounded = false, centre = attr_i(c, "center_point_box", 0);
  if (!number_at(c, 2, &most, NULL) || !number_at(c, 3, &iou, NULL) || !number_at(c, 4, &least, &bounded))
    return NULL;
  int64_t batches = tg_dim(scores, 0), classes = tg_dim(scores, 1), n = tg_dim(scores, 2), kept = 0;
  size_t nb = (size_t)tg_numel(boxes), ns = (size_t)tg_numel(scores);
  double *b = tg_alloc(c->ctx, (nb + ns + 1) * sizeof *b), *s = b + nb;
  Ranked *rank = tg_alloc(c->ctx, ((size_t)n + 1) * sizeof *rank);
  int64_t *out = tg_alloc(c->ctx, (3 * ns + 3) * sizeof *out), limit = most > (double)n ? n
                                                                       : most > 0       ? (int64_t)most
                                                                                        : 0;
  bool ok = b && rank && out && (!nb || !tg_read_f64(boxes, b, nb)) && (!ns || !tg_read_f64(scores, s, ns));
  for (int64_t i = 0; ok && i < batches; i++)
    for (int64_t k = 0; k < classes; k++)
      kept += suppress(b + 4 * i * n, s + (i * classes + k) * n, n, limit, iou, least, bounded, centre, rank,
                       out + 3 * kept, i, k);
  TgTensor *y = !ok    ? NULL
                : kept ? tg_from(c->ctx, out, TG_I64, TG_SHAPE(kept, 3))
                       : tg_zeros(c->ctx, TG_SHAPE(0, 3), .dtype = TG_I64);
  tg_free(c->ctx, b), tg_free(c->ctx, rank), tg_free(c->ctx, out);
  return y;
}

const OnnxOp onnx_ops_signal[] = {ONNX_OP("DFT", 17, 1, 3, op_dft),
                                  ONNX_OP("STFT", 17, 2, 4, op_stft),
                                  ONNX_OP("HannWindow", 17, 1, 1, op_hann),
                                  ONNX_OP("HammingWindow", 17, 1, 1, op_hamming),
                                  ONNX_OP("BlackmanWindow", 17, 1, 1, op_blackman),
                                  ONNX_OP("NonMaxSuppression", 10, 2, 5, op_nms),
                                  {0}};
