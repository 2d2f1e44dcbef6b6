/* linalg.c: factorisations as graphs: a fixed number of steps, each made of whole-matrix operations over
 * any leading batch axes. The results of steps are kept in memory (tg_contiguous), so that no kernel grows
 * with the number of steps. */
#include "tensor/front.h"

/* Returns x as a float. It must have rank 2 or more. */
static TgTensor *matrix(const char *op, TgTensor *x) {
  if (!x) return NULL;
  TG_REQUIRE(x->ctx, rank(x) >= 2, TG_ERR_SHAPE, "%s: %s is no matrix", op, SHAPE_OF(x));
  return dtype_is_float(dt(x)) ? x : tensor_cast(x, TG_F32);
}

static TgTensor *mt(TgTensor *x) { return tg_transpose(x, -1, -2); }

/* Returns identity matrices (.., n, n) with the batch axes of x. */
static TgTensor *eye_like(TgTensor *x, int64_t n) {
  if (!x) return NULL;
  int64_t d[TG_MAX_RANK];
  for (int i = 0; i < rank(x) - 2; i++)
    d[i] = dims(x)[i];
  d[rank(x) - 2] = d[rank(x) - 1] = n;
  return tg_expand(tg_eye(x->ctx, n, .dtype = tg_dtype(x)), rank(x), d);
}

/* Divides x by its largest magnitude along the axes, so that no square overflows or underflows. The
 * divisor is returned in *by, as 1 if all elements are 0. It gets no gradient. */
static TgTensor *scaled(TgTensor *x, TgAxes axes, TgTensor **by) {
  TgTensor *m = tg_detach(tg_max(tg_abs(x), .axis = axes, .keepdim = true));
  *by = tg_where(tg_eq_scalar(m, 0), tg_full_like(m, 1), m);
  return tg_div(x, *by);
}

/* Uses one reflector for each column: I - 2 v v^T / v^T v makes the column zero below the diagonal. A
 * column that is zero already is left alone. */
TgStatus tg_qr(TgTensor *x, TgTensor **q, TgTensor **r) {
  TG_NUMBERS_OR(x, "qr", TG_ERR_SHAPE);
  if (!x || !q || !r) return TG_ERR_VALUE;
  TgContext *ctx = x->ctx;
  *q = *r = NULL;
  TgTensor *a = matrix("qr", x);
  if (!a) return ctx->err.status;
  TgDType out = tg_dtype(a);
  if (dt(a) != DT_F64) a = tensor_cast(a, TG_F32);
  if (!a) return ctx->err.status;
  int64_t m = dim_at(a, -2), n = dim_at(a, -1), steps = TG_MIN(m - 1, n);
  TgTensor *h = eye_like(a, m), *row = tg_arange(ctx, 0, (double)m);
  for (int64_t k = 0; k < steps && a && h; k++) {
    /* (.., m) */
    TgTensor *below = tg_ge_scalar(row, (double)k);
    TgTensor *col = tg_where(below, tg_select(a, -1, k), tg_scalar_like(a, 0));
    TgTensor *size;
    col = scaled(col, TG_AXES(-1), &size); /* the reflector does not depend on the length of the column */
    TgTensor *norm = tg_sqrt(tg_sum(tg_mul(col, col), .axis = TG_AXES(-1), .keepdim = true));
    TgTensor *head = tg_slice(col, -1, k, k + 1);
    TgTensor *sign = tg_where(tg_lt_scalar(head, 0), tg_scalar_like(a, -1), tg_scalar_like(a, 1));
    TgTensor *v =
        tg_add(col, tg_where(tg_eq_scalar(row, (double)k), tg_mul(sign, norm), tg_scalar_like(a, 0)));
    TgTensor *vv = tg_sum(tg_mul(v, v), .axis = TG_AXES(-1), .keepdim = true), *zero = tg_eq_scalar(vv, 0);
    v = tg_contiguous(v);
    TgTensor *scale =
        tg_where(zero, tg_scalar_like(a, 0), tg_rdiv_scalar(tg_where(zero, tg_scalar_like(a, 1), vv), 2));
    TgTensor *vc = tg_unsqueeze(v, -1), *vr = tg_unsqueeze(tg_mul(v, scale), -2);
    a = tg_contiguous(tg_sub(a, tg_mul(vc, tg_matmul(vr, a))));
    h = tg_contiguous(tg_sub(h, tg_mul(tg_matmul(h, vc), vr)));
  }
  *q = tensor_cast(h, out);
  *r = tensor_cast(tg_triu(a, 0), out);
  return *q && *r ? TG_OK : ctx->err.status;
}

/* One-sided Jacobi. A is (m, n), m >= n. Pairs of columns are rotated until all columns are orthogonal;
 * their lengths are the singular values. n - 1 rounds of n/2 disjoint pairs meet every pair once, which is
 * a sweep. The columns are arranged in two rows and paired across. After a round, all but the first move
 * on by one. */
enum { SWEEPS = 10 };

typedef struct Svd {
  TgTensor *u, *s, *v;
} Svd;

/* Permutes columns by concatenating slices of consecutive columns. */
static TgTensor *permute_columns(TgTensor *x, const int64_t *order, int64_t n) {
  TgTensor *part[64];
  int k = 0;
  for (int64_t i = 0; i < n && k < 64;) {
    int64_t j = i + 1;
    while (j < n && order[j] == order[j - 1] + 1)
      j++;
    part[k++] = tg_slice(x, -1, order[i], order[i] + (j - i));
    i = j;
  }
  return tg_cat(part, k, -1);
}

/* Adds a column of zeros to a, and one row and column to v. No rotation changes them. */
static void column_added(TgTensor **a, TgTensor **v) {
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0};
  int n = rank(*a);
  hi[n - 1] = 1;
  *a = tg_pad(*a, lo, hi);
  hi[n - 2] = 1;
  *v = tg_pad(*v, lo, hi);
}

/* A round robin of an even number of players in two rows: player 0 stays, the others move around.
 * top: 0, b0, t1 .. t(h-2); bottom: b1 .. b(h-1), t(h-1) */
static void round_robin(int64_t *next, int64_t even) {
  int64_t half = even / 2;
  for (int64_t i = 0; i < even; i++)
    next[i] = i;
  if (even <= 2) return;
  next[1] = half;
  for (int64_t i = 2; i < half; i++)
    next[i] = i - 1;
  for (int64_t i = half; i < even - 1; i++)
    next[i] = i + 1;
  next[even - 1] = half - 1;
}

/* Computes, for each pair of columns p and q of a, the cosine and sine of the rotation that makes them
 * orthogonal; 1 and 0 if they are orthogonal already. */
static void rotation(TgTensor *a, TgTensor *p, TgTensor *q, TgTensor **cosine, TgTensor **sine) {
  double eps = dt(a) == DT_F64 ? 0x1p-52 : 0x1p-23;
  TgTensor *alpha = tg_sum(tg_mul(p, p), .axis = TG_AXES(-2), .keepdim = true);
  TgTensor *beta = tg_sum(tg_mul(q, q), .axis = TG_AXES(-2), .keepdim = true);
  TgTensor *gamma = tg_sum(tg_mul(p, q), .axis = TG_AXES(-2), .keepdim = true);
  TgTensor *turn = tg_gt(tg_abs(gamma), tg_mul_scalar(tg_mul(tg_sqrt(alpha), tg_sqrt(beta)), eps * 0.25));
  TgTensor *one = tg_scalar_like(a, 1), *zero = tg_scalar_like(a, 0);
  TgTensor *zeta = tg_div(tg_sub(beta, alpha), tg_mul_scalar(tg_where(turn, gamma, one), 2));

  /* tan = sign(zeta) / (|zeta| + sqrt(zeta^2 + 1)), or 1 / (2 zeta) if the square would overflow */
  TgTensor *big = tg_gt_scalar(tg_abs(zeta), dt(a) == DT_F64 ? 1e150 : 1e15), *z = tg_where(big, one, zeta);
  TgTensor *root = tg_rdiv_scalar(tg_add(tg_abs(z), tg_sqrt(tg_add_scalar(tg_mul(z, z), 1))), 1);
  TgTensor *t = tg_where(big, tg_div(tg_mul_scalar(one, 0.5), tg_where(big, tg_abs(zeta), one)), root);
  t = tg_where(tg_lt_scalar(zeta, 0), tg_neg(t), t);
  TgTensor *c = tg_where(turn, tg_rsqrt(tg_add_scalar(tg_mul(t, t), 1)), one);
  TgTensor *s = tg_where(turn, tg_mul(c, t), zero);
  *cosine = tg_contiguous(c);
  *sine = tg_contiguous(s);
}

/* Rotates the columns p against q, and returns them in the order of the next round. */
static TgTensor *rotated(TgTensor *p, TgTensor *q, TgTensor *c, TgTensor *s, const int64_t *next,
                         int64_t even) {
  TgTensor *side[] = {tg_sub(tg_mul(c, p), tg_mul(s, q)), tg_add(tg_mul(s, p), tg_mul(c, q))};
  return tg_contiguous(permute_columns(tg_cat(side, 2, -1), next, even));
}

/* Sorts the orthogonal columns of a by their lengths, largest first. place[i] is the number of columns
 * before column i. Sorting is a product with that permutation. */
static bool sorted(TgContext *ctx, TgTensor *a, TgTensor *v, int64_t n, Svd *out) {
  TgTensor *s = tg_contiguous(tg_sqrt(tg_sum(tg_mul(a, a), .axis = TG_AXES(-2)))); /* (.., n) */
  TgTensor *mine = tg_unsqueeze(s, -1), *other = tg_unsqueeze(s, -2), *i = tg_arange(ctx, 0, (double)n);
  TgTensor *first = tg_lt(tg_unsqueeze(i, -2), tg_unsqueeze(i, -1));
  TgTensor *before = tg_bitor(tg_gt(other, mine), tg_bitand(tg_eq(other, mine), first));
  TgTensor *place = tg_sum(tensor_cast(before, TG_I32), .axis = TG_AXES(-1), .keepdim = true);
  TgTensor *order = tg_contiguous(tensor_cast(tg_eq(place, i), tg_dtype(a)));
  *out = (Svd){tg_matmul(a, order), tg_squeeze(tg_matmul(other, order), -2), tg_matmul(v, order)};
  return out->u && out->s && out->v;
}

static bool jacobi(TgTensor *a, Svd *out) {
  TgContext *ctx = a->ctx;
  int64_t n = dim_at(a, -1), even = n + (n & 1), half = even / 2;
  TgTensor *v = eye_like(a, n);
  if (even != n) column_added(&a, &v);
  int64_t *next = mem_alloc(&ctx->mem, (size_t)even * sizeof *next);
  TG_REQUIRE_OR(ctx, next, false, TG_ERR_NOMEM, "svd: out of memory");
  round_robin(next, even);
  int64_t rounds = n < 2 ? 0 : (even - 1) * SWEEPS;
  for (int64_t k = 0; k < rounds && a && v; k++) {
    TgTensor *p = tg_slice(a, -1, 0, half), *q = tg_slice(a, -1, half, even), *c, *s;
    TgTensor *vp = tg_slice(v, -1, 0, half), *vq = tg_slice(v, -1, half, even);
    rotation(a, p, q, &c, &s);
    a = rotated(p, q, c, s, next, even);
    v = rotated(vp, vq, c, s, next, even);
  }
  mem_free(&ctx->mem, next);
  if (!a || !v) return false;
  /* after a whole number of sweeps, every column is where it began */
  return sorted(ctx, tg_slice(a, -1, 0, n), tg_slice(tg_slice(v, -1, 0, n), -2, 0, n), n, out);
}

/* Computes U from the columns A v = s u. Their QR factorisation gives an orthonormal basis even where s is
 * 0; the diagonal of R shows its signs. */
TgStatus tg_svd_opt(TgTensor *x, TgTensor **u, TgTensor **s, TgTensor **vt, const TgSvdOptions *opt) {
  TG_NUMBERS_OR(x, "svd", TG_ERR_SHAPE);
  if (!x || !u || !s || !vt) return TG_ERR_VALUE;
  TgContext *ctx = x->ctx;
  TG_OPTIONS_OR(ctx, "svd", TgSvdOptions, o, opt, TG_ERR_VALUE);
  *u = *s = *vt = NULL;
  TgTensor *a = matrix("svd", x), *q, *r;
  if (!a) return ctx->err.status;
  TgDType out = tg_dtype(a);
  if (dt(a) != DT_F64) a = tensor_cast(a, TG_F32);
  bool wide = a && dim_at(a, -2) < dim_at(a, -1);
  if (wide) a = mt(a);
  if (!a) return ctx->err.status;
  int64_t m = dim_at(a, -2), n = dim_at(a, -1);
  Svd f;
  TG_REQUIRE_OR(ctx, n > 0, TG_ERR_SHAPE, TG_ERR_SHAPE, "svd: %s is empty", SHAPE_OF(x));
  TgTensor *size;
  a = tg_contiguous(scaled(a, TG_AXES(-2, -1), &size));
  if (!a || !jacobi(a, &f) || tg_qr(f.u, &q, &r)) return ctx->err.status;
  TgTensor *sign =
      tg_where(tg_lt_scalar(tg_diagonal(r, 0, -2, -1), 0), tg_scalar_like(q, -1), tg_scalar_like(q, 1));
  TgTensor *left = tg_mul(tg_slice(q, -1, 0, n), tg_unsqueeze(sign, -2)), *right = mt(f.v);
  if (o.full_matrices && m > n) left = tg_cat((TgTensor *[]){left, tg_slice(q, -1, n, m)}, 2, -1);
  *u = tensor_cast(wide ? mt(right) : left, out);
  *vt = tensor_cast(wide ? mt(left) : right, out);
  *s = tensor_cast(tg_mul(f.s, tg_squeeze(size, -1)), out);
  return *u && *s && *vt ? TG_OK : ctx->err.status;
}

/* X <- a X + (b A + c A^2) X with A = X X^T, starting from X / |X|. This is the polynomial of Muon, which
 * drives every singular value toward 1. */
TgTensor *tg_newton_schulz(TgTensor *x, int steps, const double coefficients[3], double eps) {
  TG_NUMBERS(x, "newton_schulz");
  TgTensor *g = matrix("newton_schulz", x);
  if (!g) return NULL;
  TG_REQUIRE(x->ctx, steps >= 0 && coefficients, TG_ERR_VALUE, "newton_schulz: %d steps", steps);
  bool tall = dim_at(g, -2) > dim_at(g, -1);
  if (tall) g = mt(g);
  TgTensor *wide = as_wide(g);
  TgTensor *norm = tg_sqrt(tg_sum(tg_mul(wide, wide), .axis = TG_AXES(-2, -1), .keepdim = true));
  g = as_narrow(tg_div(wide, tg_add_scalar(norm, eps != 0 ? eps : 1e-7)), g);
  for (int i = 0; i < steps && g; i++) {
    TgTensor *a = tg_contiguous(tg_matmul(g, mt(g)));
    TgTensor *b = tg_add(tg_mul_scalar(a, coefficients[1]), tg_mul_scalar(tg_matmul(a, a), coefficients[2]));
    g = tg_contiguous(tg_add(tg_mul_scalar(g, coefficients[0]), tg_matmul(b, g)));
  }
  return tall ? mt(g) : g;
}
