/* ggml.c: ggml's types. In: bytes of blocks. Out: their values as a graph of shifts, masks and products,
 * so that a matrix product reads the blocks themselves. A block is one row of a u8 tensor, and its fields
 * are slices of it. Each product is computed in f32, as in ggml's reference. */
#include "ggml_types.h"
#include "io_private.h"

static const GgmlType types[] = {{0, "F32", 1, 4, TG_F32},
                                 {1, "F16", 1, 2, TG_F16},
                                 {T_Q4_0, "Q4_0", 32, 18, 0},
                                 {T_Q4_1, "Q4_1", 32, 20, 0},
                                 {T_Q5_0, "Q5_0", 32, 22, 0},
                                 {T_Q5_1, "Q5_1", 32, 24, 0},
                                 {T_Q8_0, "Q8_0", 32, 34, 0},
                                 {T_Q2_K, "Q2_K", 256, 84, 0},
                                 {T_Q3_K, "Q3_K", 256, 110, 0},
                                 {T_Q4_K, "Q4_K", 256, 144, 0},
                                 {T_Q5_K, "Q5_K", 256, 176, 0},
                                 {T_Q6_K, "Q6_K", 256, 210, 0},
                                 {T_IQ4_NL, "IQ4_NL", 32, 18, 0},
                                 {T_IQ4_XS, "IQ4_XS", 256, 136, 0},
                                 {24, "I8", 1, 1, TG_I8},
                                 {25, "I16", 1, 2, TG_I16},
                                 {26, "I32", 1, 4, TG_I32},
                                 {27, "I64", 1, 8, TG_I64},
                                 {28, "F64", 1, 8, TG_F64},
                                 {30, "BF16", 1, 2, TG_BF16},
                                 {T_TQ1_0, "TQ1_0", 256, 54, 0},
                                 {T_TQ2_0, "TQ2_0", 256, 66, 0},
                                 {T_MXFP4, "MXFP4", 32, 17, 0},
                                 {T_NVFP4, "NVFP4", 64, 36, 0},
                                 {T_Q1_0, "Q1_0", 128, 18, 0},
                                 {T_Q2_0, "Q2_0", 64, 18, 0},
                                 {16, "IQ2_XXS", 256, 66, NO_VALUES},
                                 {17, "IQ2_XS", 256, 74, NO_VALUES},
                                 {18, "IQ3_XXS", 256, 98, NO_VALUES},
                                 {19, "IQ1_S", 256, 50, NO_VALUES},
                                 {21, "IQ3_S", 256, 110, NO_VALUES},
                                 {22, "IQ2_S", 256, 82, NO_VALUES},
                                 /* these need codebooks that are not included */
                                 {29, "IQ1_M", 256, 56, NO_VALUES}};

const GgmlType *ggml_type(int id) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].id == id) return &types[i];
  return NULL;
}

const char *tg_ggml_type_name(int type) { return ggml_type(type) ? ggml_type(type)->name : NULL; }

/* ---- helpers to describe the layouts of blocks. b: blocks (m, bytes) */
static TgTensor *bytes(TgTensor *b, int64_t at, int64_t n) {
  return tg_slice(b, 1, at, at + n);
} /* (m, n) u8 */

/* The f16 at an even place: (m, 1) f32. The whole of b is read as f16 and then sliced. That costs nothing,
 * because blocks in a file can be viewed as f16 there; taking two bytes of each row would mean combining
 * them. */
static TgTensor *half(TgTensor *b, int64_t at) {
  return tg_cast(tg_slice(tg_bitcast(b, TG_F16), 1, at / 2, at / 2 + 1), TG_F32);
}

static TgTensor *shaped(TgTensor *x, int64_t a, int64_t c, int64_t d) {
  return tg_reshape(x, TG_SHAPE(-1, a, c, d));
}

static TgTensor * and (TgTensor * x, int mask) { return tg_bitand_scalar(x, mask); }

static TgTensor *shr(TgTensor *x, int by) { return by ? tg_shr_scalar(x, by) : x; }

/* x shifted right by 0, by, 2 by .. (n shifts) along a new axis, then masked. Used where parts of a byte
 * are different elements. */
static TgTensor *shifts(TgTensor *x, int axis, int n, int by, int mask) {
  TgTensor *each = tg_arange(tg_context(x), 0, n * by, .step = by, .dtype = tg_dtype(x));
  int64_t dims[TG_MAX_RANK];
  for (int i = 0; i <= tg_ndim(x); i++)
    dims[i] = i == axis ? n : 1;
  return and(tg_shr(tg_unsqueeze(x, axis), tg_reshape(each, tg_ndim(x) + 1, dims)), mask);
}

/* the low nibbles, then the high ones */
static TgTensor *nibbles(TgTensor *x, int axis) { return shifts(x, axis, 2, 4, 15); }

static TgTensor *f32(TgTensor *x) { return tg_cast(x, TG_F32); }

static TgTensor *less(TgTensor *x, double v) { return tg_sub_scalar(f32(x), v); }

/* The table's values for the codes q, which are below 16. They are bytes, so a vector of them can be
 * looked up at once. */
static TgTensor *look_up(TgTensor *q, const int8_t *table) {
  TgContext *ctx = tg_context(q);
  TgTensor *flat = tg_take(tg_from(ctx, table, TG_I8, TG_SHAPE(16)), tg_cast(tg_flatten(q, 0, -1), TG_I32));
  return f32(tg_reshape(flat, tg_ndim(q), tg_shape(q)));
}

TgTensor *ggml_six_bits(TgTensor *s, int which) {
  TgTensor *low = bytes(s, 4 * which, 4), *last = bytes(s, 8, 4);
  TgTensor *high = tg_bitor(which ? shr(last, 4) : and(last, 15), tg_shl_scalar(shr(low, 6), 4));
  return tg_cat(TG_TENSORS(and(low, 63), high), 1);
}

TgTensor *ggml_q3_scales(TgTensor *s) {
  TgTensor *low = tg_reshape(nibbles(bytes(s, 0, 8), 1), TG_SHAPE(-1, 16)); /* s[0..7] low, then high */
  TgTensor *high = tg_reshape(shifts(bytes(s, 8, 4), 1, 4, 2, 3), TG_SHAPE(-1, 16));
  return tg_bitor(low, tg_shl_scalar(high, 4));
}

/* The 32 single bits of the word at an even place: two 16-bit numbers, each shifted, (m, 2, 16) u32. */
static TgTensor *fifth_bits(TgTensor *b, int64_t at) {
  TgTensor *words = tg_slice(tg_bitcast(b, TG_U16), 1, at / 2, at / 2 + 2);
  return shifts(tg_cast(words, TG_U32), 2, 16, 1, 1);
}

const int8_t ggml_nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const int8_t ggml_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}; /* doubled */

static TgTensor *legacy(TgTensor *b, int type) { /* 32 elements: d, maybe m, maybe qh, nibbles */
  bool m = type == T_Q4_1 || type == T_Q5_1, five = type == T_Q5_0 || type == T_Q5_1;
  TgTensor *q = nibbles(bytes(b, 2 + 2 * m + 4 * five, 16), 1); /* (m, 2, 16) */
  if (five) q = tg_bitor(tg_cast(q, TG_U32), tg_shl_scalar(fifth_bits(b, 2 + 2 * m), 4));
  q = tg_reshape(q, TG_SHAPE(-1, 32));
  return m ? tg_add(tg_mul(half(b, 0), f32(q)), half(b, 2)) : tg_mul(half(b, 0), less(q, five ? 16 : 8));
}

static TgTensor *q2_k(TgTensor *b) {
  TgTensor *s = bytes(b, 0, 16), *q = tg_reshape(bytes(b, 16, 64), TG_SHAPE(-1, 2, 32));
  q = shaped(shifts(q, 2, 4, 2, 3), 16, 1, 16); /* (m, 2, 4, 32) -> a row for each scale */
  TgTensor *d = tg_mul(half(b, 80), f32(and(s, 15))), *m = tg_mul(half(b, 82), f32(shr(s, 4)));
  return tg_sub(tg_mul(shaped(d, 16, 1, 1), f32(q)), shaped(m, 16, 1, 1));
}

static TgTensor *q3_k(TgTensor *b) {
  TgTensor *h = bytes(b, 0, 32);
  TgTensor *q = tg_reshape(bytes(b, 32, 64), TG_SHAPE(-1, 2, 32));
  TgTensor *scale = less(ggml_q3_scales(bytes(b, 96, 12)), 32);
  TgTensor *bit = tg_reshape(shifts(h, 1, 8, 1, 1), TG_SHAPE(-1, 2, 4, 32));
  /* q2 - (bit ? 0 : 4) = (q2 | bit << 2) - 4 */
  q = tg_bitor(shifts(q, 2, 4, 2, 3), tg_shl_scalar(bit, 2));
  return tg_mul(shaped(tg_mul(half(b, 108), scale), 16, 1, 1), less(shaped(q, 16, 1, 16), 4));
}

static TgTensor *q45_k(TgTensor *b, bool five) {
  TgTensor *s = bytes(b, 4, 12), *q = tg_reshape(bytes(b, five ? 48 : 16, 128), TG_SHAPE(-1, 4, 32));
  /* (m, 4, 2, 32): for each 64 elements the low nibbles, then the high ones */
  q = shaped(nibbles(q, 2), 8, 1, 32);
  if (five) q = tg_bitor(q, tg_shl_scalar(shaped(shifts(bytes(b, 16, 32), 1, 8, 1, 1), 8, 1, 32), 4));
  TgTensor *d = tg_mul(half(b, 0), f32(ggml_six_bits(s, 0))),
           *m = tg_mul(half(b, 2), f32(ggml_six_bits(s, 1)));
  return tg_sub(tg_mul(shaped(d, 8, 1, 1), f32(q)), shaped(m, 8, 1, 1));
}

static TgTensor *q6_k(TgTensor *b) {
  /* (m, 2, 2, 64) = (m, 2, 4, 32) */
  TgTensor *l = nibbles(tg_reshape(bytes(b, 0, 128), TG_SHAPE(-1, 2, 64)), 2);
  TgTensor *h = shifts(tg_reshape(bytes(b, 128, 64), TG_SHAPE(-1, 2, 32)), 2, 4, 2, 3);
  TgTensor *q = tg_bitor(tg_reshape(l, TG_SHAPE(-1, 2, 4, 32)), tg_shl_scalar(h, 4));
  TgTensor *s = f32(tg_bitcast(bytes(b, 192, 16), TG_I8));
  return tg_mul(shaped(tg_mul(half(b, 208), s), 16, 1, 1), less(shaped(q, 16, 1, 16), 32));
}

TgTensor *ggml_xs_scales(TgTensor *b) {
  TgTensor *low = tg_reshape(shifts(bytes(b, 4, 4), 2, 2, 4, 15), TG_SHAPE(-1, 8));
  TgTensor *high = tg_reshape(shifts(bytes(b, 2, 2), 2, 4, 2, 3), TG_SHAPE(-1, 8));
  return tg_bitor(low, tg_shl_scalar(high, 4));
}

static TgTensor *iq4_xs(TgTensor *b) {
  TgTensor *scale = less(ggml_xs_scales(b), 32);
  TgTensor *q = look_up(nibbles(tg_reshape(bytes(b, 8, 128), TG_SHAPE(-1, 8, 16)), 2), ggml_nl);
  return tg_mul(shaped(tg_mul(half(b, 0), scale), 8, 1, 1), shaped(q, 8, 1, 32));
}

/* 2^(e - 128). Below e = 2 the result is a denormal, which has its only bit in the mantissa. */
TgTensor *ggml_powers(TgTensor *e) {
  TgTensor *first = tg_full_i64(tg_context(e), TG_SCALAR, 0x200000, TG_U32);
  e = tg_cast(e, TG_U32);
  TgTensor *bits = tg_where(tg_lt_scalar(e, 2), tg_shl(first, e), tg_shl_scalar(tg_sub_scalar(e, 1), 23));
  return tg_bitcast(bits, TG_F32);
}

static TgTensor *mxfp4(TgTensor *b) {
  return tg_mul(ggml_powers(bytes(b, 0, 1)),
                tg_reshape(look_up(nibbles(bytes(b, 1, 16), 1), ggml_e2m1), TG_SHAPE(-1, 32)));
}

static TgTensor *nvfp4(TgTensor *b) { /* unsigned scales: four bits of exponent, three of mantissa */
  TgTensor *u = bytes(b, 0, 4), *none = tg_eq_scalar(u, 0x7f);
  TgTensor *scale = tg_mul_scalar(f32(tg_bitcast(and(u, 0x7f), TG_FP8E4M3)), 0.5);
  scale = tg_where(none, tg_zeros_like(scale), scale);
  return tg_mul(
      shaped(scale, 4, 1, 1),
      shaped(look_up(nibbles(tg_reshape(bytes(b, 4, 32), TG_SHAPE(-1, 4, 8)), 2), ggml_e2m1), 4, 1, 16));
}

/* Each byte holds n (up to five) base-3 digits as a fraction of 256: digit k is the integer part of 3
 * (byte * 3^k mod 256) / 256. */
static TgTensor *digits(TgTensor *x, int n) {
  static const int power[] = {1, 3, 9, 27, 81};
  TgTensor *parts[5];
  for (int i = 0; i < n; i++)
    parts[i] =
        shr(tg_mul_scalar(tg_cast(and(tg_mul_scalar(tg_cast(x, TG_I32), power[i]), 255), TG_I32), 3), 8);
  return tg_reshape(tg_stack(parts, n, 1), TG_SHAPE(-1, n * tg_dim(x, 1)));
}

/* qs[48]: 32 bytes of 5 digits and 16 bytes of 5; qh[4]: 4 bytes of 4 digits */
static TgTensor *tq1_0(TgTensor *b) {
  TgTensor *q = tg_cat(
      TG_TENSORS(digits(bytes(b, 0, 32), 5), digits(bytes(b, 32, 16), 5), digits(bytes(b, 48, 4), 4)), 1);
  return tg_mul(half(b, 52), less(q, 1));
}

static TgTensor *values(TgTensor *b, int type) {
  switch (type) {
  case T_Q4_0:
  case T_Q4_1:
  case T_Q5_0:
  case T_Q5_1: return legacy(b, type);
  case T_Q8_0: return tg_mul(half(b, 0), f32(tg_bitcast(bytes(b, 2, 32), TG_I8)));
  case T_Q2_K: return q2_k(b);
  case T_Q3_K: return q3_k(b);
  case T_Q4_K:
  case T_Q5_K: return q45_k(b, type == T_Q5_K);
  case T_Q6_K: return q6_k(b);
  case T_IQ4_NL:
    return tg_mul(half(b, 0), tg_reshape(look_up(nibbles(bytes(b, 2, 16), 1), ggml_nl), TG_SHAPE(-1, 32)));
  case T_IQ4_XS: return iq4_xs(b);
  case T_TQ1_0: return tq1_0(b);
  case T_TQ2_0:
    return tg_mul(half(b, 64),
                  less(tg_reshape(shifts(tg_reshape(bytes(b, 0, 64), TG_SHAPE(-1, 2, 32)), 2, 4, 2, 3),
                                  TG_SHAPE(-1, 256)),
                       1));
  case T_MXFP4: return mxfp4(b);
  case T_NVFP4: return nvfp4(b);
  case T_Q1_0:
    return tg_mul(
        half(b, 0),
        less(tg_mul_scalar(tg_reshape(shifts(bytes(b, 2, 16), 2, 8, 1, 1), TG_SHAPE(-1, 128)), 2), 1));
  default:
    /* Q2_0 */
    return tg_mul(half(b, 0), less(tg_reshape(shifts(bytes(b, 2, 16), 2, 4, 2, 3), TG_SHAPE(-1, 64)), 1));
  }
}

TgTensor *tg_ggml_data_to_tensor(TgTensor *t, int64_t n, int type) {
  const GgmlType *g = ggml_type(type);
  TgContext *ctx = tg_context(t);
  if (!t) return NULL;
  if (!g)
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: type %d is not known here", type);
  else if (g->dtype == NO_VALUES)
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: %s is not read here", g->name);
  else if (tg_dtype(t) != TG_U8 || tg_ndim(t) != 1)
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: the data is a 1-D tensor of u8, this is %s", tg_describe(t));
  else if (n < 0 || n % g->block)
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: %lld elements are no whole blocks of %d", (long long)n, g->block);
  else if (n / g->block > tg_numel(t) / g->nbytes)
    ctx_fail(ctx, TG_ERR_VALUE, "ggml: %lld elements of %s in %lld bytes", (long long)n, g->name,
             (long long)tg_numel(t));
  else {
    if (!n) return tg_zeros(ctx, TG_SHAPE(0), .dtype = g->dtype);
    int64_t m = n / g->block;
    TgTensor *b = tg_slice(t, 0, 0, m * g->nbytes);
    return g->dtype ? tg_bitcast(b, g->dtype)
                    : tg_reshape(values(tg_reshape(b, TG_SHAPE(m, g->nbytes)), type), TG_SHAPE(n));
  }
  return NULL;
}
