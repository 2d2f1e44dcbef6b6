/* packed.c: a matrix of quantised weights in the order in which a vector of rows is multiplied. In: the
 * blocks of a file, row by row. Out: memory of its own, made once; products with it, and its values.
 *
 *   words   i32 (rows / 32, blocks, words, 32): four bytes of quants; those of 32 rows are contiguous
 *   halves  f16 (rows / 32, blocks, halves, 32): what quants are scaled by
 *   small   (rows / 32, blocks, scales, 32): scales within a block
 *
 * The key fact: a product of one row of x with a matrix takes only as long as reading the matrix from
 * memory, if little is computed for each weight. Therefore x is converted to whole numbers of 16 bits,
 * with one scale for each 32 of them, and a word of four weights is multiplied with their high bytes and
 * with their low bytes (tg_dot4). The sums are exact except for that rounding, which is 1 / 65024 of the
 * largest of the 32. With 8 bits there is only one byte, half the work, and a rounding of 1 / 254. If
 * tg_dot4 is not an instruction of the machine, words of two 16-bit numbers are multiplied (tg_dot2), and
 * the four weights of a word are split into two words: pairs. */
#include "ggml_types.h"
#include "io_private.h"
#include <stdio.h>

/* How a type is packed. group: elements that share one scale. offset: subtracted from each quant. halves,
 * half_at: how many f16 a block has, and at which byte. quants, quants_at: bytes of quants, and at which
 * byte. smalls: scales and minima within a block. */
typedef struct Packing {
  int type, group, offset, halves, half_at, quants, quants_at, smalls;
  bool min;            /* each group has a minimum, to which the scaled quants are added */
  const int8_t *table; /* quants are indices into it; NULL: they are the numbers themselves */
  int most;            /* the largest value of a quant, before the offset is subtracted */
} Packing;

static const Packing packings[] = {
    {T_Q4_0, 32, 8, 1, 0, 16, 2, 0, false, NULL, 15},
    {T_Q4_1, 32, 0, 2, 0, 16, 4, 0, true, NULL, 15},
    {T_Q5_0, 32, 16, 1, 0, 20, 2, 0, false, NULL, 31},
    {T_Q5_1, 32, 0, 2, 0, 20, 4, 0, true, NULL, 31},
    {T_Q8_0, 32, 128, 1, 0, 32, 2, 0, false, NULL, 255},
    {T_Q2_K, 16, 0, 2, 80, 64, 16, 32, true, NULL, 3},
    {T_Q3_K, 16, 4, 1, 108, 96, 0, 16, false, NULL, 7},
    {T_Q4_K, 32, 0, 2, 0, 128, 16, 16, true, NULL, 15},
    {T_Q5_K, 32, 0, 2, 0, 160, 16, 16, true, NULL, 31},
    {T_Q6_K, 16, 32, 1, 208, 192, 0, 16, false, NULL, 63},
    {T_IQ4_NL, 32, 128, 1, 0, 16, 2, 0, false, ggml_nl, 241},
    {T_IQ4_XS, 32, 128, 1, 0, 128, 8, 8, false, ggml_nl, 241},
    {T_MXFP4, 32, 12, 0, 0, 16, 1, 1, false, ggml_e2m1, 24},
};

/* TOGETHER: the rows of a block of rows, which are one contiguous run of memory; several such blocks are
 * read at once if they are tiled. It equals SCALED because the next product takes results in groups of 32:
 * their loops are then the same, and one kernel contains them all. */
enum { TOGETHER = 32, WORD = 4, SCALED = 32 };

/* all: the rows in memory. If `rows` is not a multiple of TOGETHER, rows of zeros follow. */
struct TgPacked {
  const Packing *how;
  TgContext *ctx;
  int64_t rows, all, columns, block;
  TgTensor *words, *halves, *small;
};

static const Packing *packing_of(int type) {
  for (size_t i = 0; i < sizeof packings / sizeof *packings; i++)
    if (packings[i].type == type) return &packings[i];
  return NULL;
}

/* ---- the order in memory */
static int64_t whole(int64_t rows) { return (rows + TOGETHER - 1) / TOGETHER * TOGETHER; }

/* From each block of b (rows * columns / block, bytes) takes n numbers of `size` bytes each, from byte
 * `at` on, little-endian: i32 (all / 32, blocks of a row, n, 32). Two bytes are read at once if they are
 * aligned in each block. */
static TgTensor *ordered(const TgPacked *p, TgTensor *b, int64_t at, int64_t n, int64_t size) {
  int64_t blocks = p->columns / p->block, unit = (size | at | tg_dim(b, 1)) & 1 ? 1 : 2;
  if (unit == 2) b = tg_bitcast(b, TG_U16);
  TgTensor *each = tg_slice(b, 1, at / unit, (at + n * size) / unit), *all = NULL;
  each = tg_reshape(each, TG_SHAPE(p->rows, -1));
  each = tg_pad(each, (const int64_t[]){0, 0}, (const int64_t[]){p->all - p->rows, 0});
  each = tg_reshape(each, TG_SHAPE(p->all / TOGETHER, TOGETHER, blocks, n, size / unit));
  each = tg_cast(tg_permute(each, 5, (const int64_t[]){0, 2, 3, 1, 4}), TG_I32);
  for (int64_t i = 0; i < size / unit; i++) {
    TgTensor *part = tg_shl_scalar(tg_squeeze(tg_slice(each, 4, i, i + 1), 4), (int)(8 * unit * i));
    all = all ? tg_bitor(all, part) : part;
  }
  return all;
}

static TgTensor *small_of(const TgPacked *p, TgTensor *b) {
  TgTensor *each = b, *s = tg_slice(b, 1, 0, 16);
  int64_t at = 0;
  switch (p->how->type) {
  case T_MXFP4: break;
  case T_Q6_K: at = 192; break;
  case T_Q3_K: each = ggml_q3_scales(tg_slice(b, 1, 96, 108)); break;
  case T_Q2_K: each = tg_cat(TG_TENSORS(tg_bitand_scalar(s, 15), tg_shr_scalar(s, 4)), 1); break;
  case T_IQ4_XS: each = ggml_xs_scales(b); break;
  default: s = tg_slice(b, 1, 4, 16); each = tg_cat(TG_TENSORS(ggml_six_bits(s, 0), ggml_six_bits(s, 1)), 1);
  }
  each = tg_cast(ordered(p, each, at, p->how->smalls, 1), TG_U8);
  return p->how->type == T_Q6_K ? tg_bitcast(each, TG_I8) : each;
}

static bool has_fifth_bits(const TgPacked *p) { return p->how->type == T_Q5_0 || p->how->type == T_Q5_1; }

/* Moves bit 4 w + e of each word to bit w of byte e, so that the bits for word w of a block are
 * contiguous. */
static TgTensor *turned_bits(TgTensor *words) {
  TgTensor *from = tg_arange(tg_context(words), 0, 32, .dtype = TG_I32);
  TgTensor *to = tg_add(tg_mul_scalar(tg_bitand_scalar(from, 3), 8), tg_shr_scalar(from, 2));
  TgTensor *bit = tg_bitand_scalar(tg_shr(tg_unsqueeze(words, -1), from), 1);
  return tg_sum(tg_shl(bit, to), .axis = TG_AXES(-1));
}

static TgTensor *words_made(const TgPacked *p, TgTensor *b) {
  int64_t n = p->how->quants / WORD;
  TgTensor *w = ordered(p, b, p->how->quants_at, n, WORD);
  if (p->how->type == T_Q8_0) return tg_bitxor_scalar(w, (int32_t)0x80808080); /* numbers from 0 on */
  if (!has_fifth_bits(p)) return w;
  return tg_cat(TG_TENSORS(turned_bits(tg_slice(w, 2, 0, 1)), tg_slice(w, 2, 1, n)), 2);
}

/* Computes `made` into kept memory; *t does not remember how it was computed. */
static bool realized(TgTensor **t, TgTensor *made) {
  *t = made ? tg_keep(tg_empty(tg_context(made), tg_dtype(made), tg_ndim(made), tg_shape(made))) : NULL;
  return *t && tg_assign(*t, made) && !tg_realize(*t);
}

static bool packed_make(TgPacked *p, TgTensor *data, int64_t nbytes) {
  const Packing *k = p->how;
  int64_t blocks = p->rows * (p->columns / p->block);
  TgTensor *b = tg_reshape(tg_slice(data, 0, 0, blocks * nbytes), TG_SHAPE(blocks, nbytes));
  TgTensor *halves = k->halves ? tg_cast(ordered(p, b, k->half_at, k->halves, 2), TG_U16) : NULL;
  return realized(&p->words, words_made(p, b)) &&
         (!k->halves || realized(&p->halves, tg_bitcast(halves, TG_F16))) &&
         (!k->smalls || realized(&p->small, small_of(p, b)));
}

bool tg_packed_fits(int64_t rows, int64_t columns, int type) {
  const GgmlType *g = packing_of(type) ? ggml_type(type) : NULL;
  int64_t n;
  return g && rows > 0 && rows <= INT64_MAX - TOGETHER && columns > 0 && columns % g->block == 0 &&
         !__builtin_mul_overflow(whole(rows), columns / g->block * g->nbytes, &n);
}

TgPacked *tg_packed_new(TgTensor *data, int64_t rows, int64_t columns, int type) {
  const GgmlType *g = ggml_type(type);
  TgContext *ctx = tg_context(data);
  if (!data) return NULL;
  if (!tg_packed_fits(rows, columns, type))
    return ctx_fail(ctx, TG_ERR_VALUE, "packed: %lld x %lld of %s: not packed here", (long long)rows,
                    (long long)columns, g ? g->name : "an unknown type"),
           NULL;
  int64_t n = rows * (columns / g->block);
  if (tg_dtype(data) != TG_U8 || tg_ndim(data) != 1 || tg_numel(data) / g->nbytes < n)
    return ctx_fail(ctx, TG_ERR_VALUE, "packed: %lld x %lld of %s in %s", (long long)rows, (long long)columns,
                    g->name, tg_describe(data)),
           NULL;
  TgPacked *p = tg_alloc(ctx, sizeof *p);
  if (!p) return NULL;
  *p = (TgPacked){.how = packing_of(type), .ctx = ctx, .rows = rows, .all = whole(rows), .columns = columns};
  p->block = g->block;
  bool ok = !tg_scope_begin(ctx);
  if (ok) {
    ok = packed_make(p, data, g->nbytes);
    tg_scope_end(ctx);
  }
  if (ok) return p;
  tg_packed_free(p);
  return NULL;
}

void tg_packed_free(TgPacked *p) {
  if (!p) return;
  tg_release(p->words), tg_release(p->halves), tg_release(p->small);
  tg_free(p->ctx, p);
}

/* ---- the components of a matrix: (rows / together, blocks, groups, .., together) */
/* The masked bits of each byte of words, shifted by 0, by, 2 by .. along a new axis. */
static TgTensor *bits_of(TgTensor *words, int axis, int n, int by, int mask) {
  int64_t dims[TG_MAX_RANK];
  TgTensor *each = tg_arange(tg_context(words), 0, n * by, .step = by, .dtype = TG_I32);
  for (int i = 0; i <= tg_ndim(words); i++)
    dims[i] = i == axis ? n : 1;
  words = tg_shr(tg_unsqueeze(words, axis), tg_reshape(each, tg_ndim(words) + 1, dims));
  return tg_bitand_scalar(words, 0x01010101 * mask);
}

static TgTensor *words_from(const TgPacked *p, int64_t at, int64_t n, int64_t parts) {
  TgTensor *w = tg_slice(p->words, 2, at, at + n);
  return tg_reshape(w, TG_SHAPE(tg_dim(w, 0), tg_dim(w, 1), parts, n / parts, TOGETHER));
}

/* Words of four unsigned quants: (.., groups, words of a group, together) */
static TgTensor *quants(const TgPacked *p) {
  TgTensor *w = p->words, *high = NULL;
  int above = 4; /* number of bits of a quant that are not in high */
  switch (p->how->type) {
  case T_Q8_0: break;
  case T_Q4_0:
  case T_Q4_1:
  case T_IQ4_NL:
  case T_MXFP4: w = bits_of(w, 2, 2, 4, 15); break;
  case T_IQ4_XS: w = bits_of(words_from(p, 0, 32, 8), 3, 2, 4, 15); break;
  case T_Q4_K: w = bits_of(words_from(p, 0, 32, 4), 3, 2, 4, 15); break;
  case T_Q5_K:
    w = bits_of(words_from(p, 8, 32, 4), 3, 2, 4, 15);
    high = bits_of(words_from(p, 0, 8, 1), 3, 8, 1, 1);
    break;
  case T_Q5_0:
  case T_Q5_1:
    w = bits_of(words_from(p, 1, 4, 1), 3, 2, 4, 15);
    high = bits_of(words_from(p, 0, 1, 1), 3, 8, 1, 1);
    break;
  case T_Q2_K: w = bits_of(words_from(p, 0, 16, 2), 3, 4, 2, 3); break;
  case T_Q3_K:
    w = bits_of(words_from(p, 8, 16, 2), 3, 4, 2, 3);
    high = bits_of(words_from(p, 0, 8, 1), 3, 8, 1, 1);
    above = 2;
    break;
  default: /* Q6_K */
    w = bits_of(words_from(p, 0, 32, 2), 3, 2, 4, 15);
    high = bits_of(words_from(p, 32, 16, 2), 3, 4, 2, 3);
  }
  int64_t words = p->how->group / WORD, groups = p->block / p->how->group;
  TgTensor *all = tg_reshape(w, TG_SHAPE(-1, p->columns / p->block, groups, words, TOGETHER));
  if (p->how->table) {
    uint8_t each[16]; /* not below 0 */
    for (int i = 0; i < 16; i++)
      each[i] = (uint8_t)(p->how->table[i] + p->how->offset);
    return tg_lookup4(all, each);
  }
  if (!high) return all;
  return tg_bitor(all, tg_shl_scalar(tg_reshape(high, tg_ndim(all), tg_shape(all)), above));
}

static TgTensor *half_of(const TgPacked *p, int64_t i) {
  return tg_cast(tg_slice(p->halves, 2, i, i + 1), TG_F32);
}

static TgTensor *small_from(const TgPacked *p, int64_t at, int64_t n) {
  return tg_cast(tg_slice(p->small, 2, at, at + n), TG_F32);
}

static TgTensor *scales(const TgPacked *p) {
  int64_t groups = p->block / p->how->group;
  if (p->how->type == T_MXFP4) return ggml_powers(p->small);
  TgTensor *small = p->small ? small_from(p, 0, groups) : NULL;
  if (p->how->type == T_Q3_K || p->how->type == T_IQ4_XS) small = tg_sub_scalar(small, 32);
  return small ? tg_mul(half_of(p, 0), small) : half_of(p, 0);
}

/* The number that is added to each value of a group; NULL: nothing is added. */
static TgTensor *minima(const TgPacked *p) {
  if (!p->how->min) return NULL;
  int64_t groups = p->block / p->how->group;
  return p->small ? tg_neg(tg_mul(half_of(p, 1), small_from(p, groups, groups))) : half_of(p, 1);
}

/* The values in the packed order: (rows / together, blocks, groups, words of a group, 4, together) */
static TgTensor *values_of(const TgPacked *p) {
  TgTensor *bytes = tg_unsqueeze(quants(p), 4), *each = tg_arange(p->ctx, 0, 32, .step = 8, .dtype = TG_I32);
  bytes = tg_bitand_scalar(tg_shr(bytes, tg_reshape(each, TG_SHAPE(4, 1))), 255);
  TgTensor *scale = tg_unsqueeze(tg_unsqueeze(scales(p), 3), 3), *min = minima(p);
  TgTensor *v = tg_mul(scale, tg_sub_scalar(tg_cast(bytes, TG_F32), p->how->offset));
  return min ? tg_add(v, tg_unsqueeze(tg_unsqueeze(min, 3), 3)) : v;
}

TgTensor *tg_packed_values(const TgPacked *p) {
  if (!p) return NULL;
  TgTensor *v = tg_permute(values_of(p), 6, (const int64_t[]){0, 5, 1, 2, 3, 4});
  return tg_slice(tg_reshape(v, TG_SHAPE(p->all, p->columns)), 0, 0, p->rows);
}

/* ---- products */
/* x (n, columns) as numbers of 16 or 8 bits, with a scale for each SCALED of them. high, low: words of
 * their signed high bytes and low bytes (low is NULL if there are none); with pairs, high has words of the
 * first and third of four numbers, and low words of the second and fourth. sum: the sum of each group,
 * times the type's offset if it has one. */
typedef struct Activations {
  TgTensor *scale, *high, *low, *sum;
  bool pairs;
} Activations;

/* (.., 4) values, converted to d -> (..) of the type `words`, which is as wide as four of them */
static TgTensor *words_of(TgTensor *values, TgDType d, TgDType words) {
  return tg_squeeze(tg_bitcast(tg_contiguous(tg_cast(values, d)), words), -1);
}

/* A word of the first and the third of four 16-bit numbers. */
static TgTensor *pair_of(TgTensor *four) {
  enum { FIRST = 0xffff };

  TgTensor *third = tg_bitand_scalar(tg_shr_scalar(four, 16), ~FIRST);
  return tg_contiguous(tg_cast(tg_bitor(tg_bitand_scalar(four, FIRST), third), TG_I32));
}

/* Rounds to whole numbers below 2^22, halves to even, as i32: after 1.5 * 2^23 is added, they are in the
 * last bits. The result for NaN is arbitrary. */
static TgTensor *rounded(TgTensor *x) {
  enum { BITS = 0x4b400000 };

  return tg_sub_scalar(tg_bitcast(tg_add_scalar(x, 0x1.8p23), TG_I32), BITS);
}

static Activations activations(const TgPacked *p, TgTensor *x, int64_t bits) {
  Activations a = {.low = NULL};
  double largest = bits == 8 ? 127 : 127 * 256;
  int64_t n = tg_dim(x, 0), blocks = p->columns / p->block, group = p->how->group, groups = p->block / group;
  TgTensor *of = tg_reshape(x, TG_SHAPE(n, p->columns / SCALED, SCALED));
  TgTensor *most = tg_max(tg_abs(of), .axis = TG_AXES(-1), .keepdim = true);
  TgTensor *any = tg_gt_scalar(most, 0);
  TgTensor *by = tg_where(any, tg_div(tg_scalar_like(most, largest), most), tg_zeros_like(most));
  TgTensor *q = rounded(tg_mul(of, by));
  q = tg_reshape(q, TG_SHAPE(n, blocks, groups, group / WORD, WORD));
  a.pairs = !tensor_has_dot4(x, bits == 8 ? p->how->most : UINT8_MAX);
  if (a.pairs) {
    TgTensor *four = words_of(q, TG_I16, TG_I64);
    a.high = pair_of(four), a.low = pair_of(tg_shr_scalar(four, 16));
  } else {
    TgTensor *high = bits == 8 ? q : tg_shr_scalar(tg_add_scalar(q, 128), 8);
    a.high = words_of(high, TG_I8, TG_I32);
    if (bits != 8) a.low = words_of(tg_sub(q, tg_shl_scalar(high, 8)), TG_I8, TG_I32);
  }
  a.sum = tg_sum(q, .axis = TG_AXES(-1, -2));
  a.sum = tg_contiguous(p->how->offset ? tg_mul_scalar(a.sum, p->how->offset) : a.sum);
  TgTensor *scale = tg_expand(tg_div_scalar(most, largest), TG_SHAPE(n, p->columns / SCALED, SCALED / group));
  a.scale = tg_contiguous(tg_reshape(scale, TG_SHAPE(n, blocks, groups)));
  return a;
}

/* (n, blocks, groups, words) -> (n, 1, blocks, groups, words, 1) */
static TgTensor *across(TgTensor *x) { return tg_unsqueeze(tg_unsqueeze(x, 1), -1); }

/* Sums of products with words of x, for each group: (n, rows / 32, blocks, groups, 1, 32) */
static TgTensor *of_group(TgTensor *w, TgTensor *words) {
  return tg_sum(tg_dot4(w, across(words)), .axis = TG_AXES(4), .keepdim = true);
}

/* The same with pairs, where even is multiplied with bytes 0 and 2 of w, and odd with bytes 1 and 3. */
static TgTensor *of_pairs(TgTensor *w, TgTensor *even, TgTensor *odd) {
  enum { TWO = 0xff00ff };

  TgTensor *a = tg_dot2(tg_bitand_scalar(w, TWO), across(even));
  TgTensor *b = tg_dot2(tg_bitand_scalar(tg_shr_scalar(w, 8), TWO), across(odd));
  return tg_sum(tg_add(a, b), .axis = TG_AXES(4), .keepdim = true);
}

/* Adds to w an axis for the rows of x. If n is 0, all rows of x use the same w; otherwise each of the n
 * rows uses its own part of it. */
static TgTensor *beside(TgTensor *w, int64_t n) {
  return n ? tg_unflatten(w, 0, 2, (const int64_t[]){n, -1}) : tg_unsqueeze(w, 0);
}

/* The product for n rows of x: (n, rows). each_own: every row of x has a matrix of its own, one after the
 * other in p. */
static TgTensor *product(const TgPacked *p, Activations a, int64_t n, bool each_own) {
  int64_t own = each_own ? n : 0;
  TgTensor *w = beside(quants(p), own), *min = minima(p), *sum = across(tg_unsqueeze(a.sum, -1));
  TgTensor *dot = a.pairs ? of_pairs(w, a.high, a.low) : of_group(w, a.high);
  if (a.low && !a.pairs) dot = tg_add(tg_shl_scalar(dot, 8), of_group(w, a.low));
  if (p->how->offset) dot = tg_sub(dot, sum);
  TgTensor *of_x = across(tg_unsqueeze(a.scale, -1)); /* (n, 1, blocks, groups, 1, 1) */
  TgTensor *scale = beside(tg_unsqueeze(scales(p), 3), own);
  TgTensor *each, *factor = tg_mul(scale, of_x);
  dot = tg_cast(dot, TG_F32);
  if (min) {
    min = tg_mul(beside(tg_unsqueeze(min, 3), own), tg_mul(tg_cast(sum, TG_F32), of_x));
    each = tensor_mulacc(dot, factor, min);
  } else
    each = tg_mul(dot, factor);
  TgTensor *all = tg_contiguous(tg_sum(each, .axis = TG_AXES(2, 3, 4)));
  return tg_slice(tg_reshape(all, TG_SHAPE(n, -1)), 1, 0, each_own ? p->rows / n : p->rows);
}

static bool bits_fit(const TgPacked *p, const char *what, int64_t bits) {
  if (bits == 8 || bits == 16) return true;
  ctx_fail(p->ctx, TG_ERR_VALUE, "%s: x of %lld bits: it has 8 or 16", what, (long long)bits);
  return false;
}

TgTensor *tg_packed_linear(TgTensor *x, const TgPacked *p, int64_t bits) {
  if (!x || !p) return NULL;
  if (!bits_fit(p, "packed_linear", bits)) return NULL;
  if (tg_dtype(x) == TG_F32 && tg_ndim(x) == 2 && tg_dim(x, 1) == p->columns)
    return product(p, activations(p, x, bits), tg_dim(x, 0), false);
  ctx_fail(p->ctx, TG_ERR_SHAPE, "packed_linear: %s by a matrix of %lld rows and %lld columns",
           tg_describe(x), (long long)p->rows, (long long)p->columns);
  return NULL;
}

/* ---- products with some of several matrices that are one after the other in p */
/* x with each of its n rows repeated `used` times */
static TgTensor *repeated(TgTensor *x, int64_t n, int64_t used) {
  if (!x || used == 1) return x;
  int64_t dims[TG_MAX_RANK] = {n, used};
  for (int i = 1; i < tg_ndim(x); i++)
    dims[i + 1] = tg_dim(x, i);
  return tg_flatten(tg_expand(tg_unsqueeze(x, 1), tg_ndim(x) + 1, dims), 0, 1);
}

/* t has `parts` = rows / 32 parts for each matrix; returns those of the chosen matrices */
static TgTensor *taken(TgTensor *t, int64_t parts, TgTensor *chosen) {
  return t ? tg_flatten(tg_take(tg_unflatten(t, 0, 2, (const int64_t[]){-1, parts}), chosen), 0, 1) : NULL;
}

TgTensor *tg_packed_experts(TgTensor *x, const TgPacked *p, TgTensor *chosen, int64_t rows, int64_t bits) {
  if (!x || !p || !chosen) return NULL;
  if (!bits_fit(p, "packed_experts", bits)) return NULL;
  bool fits = tg_dtype(x) == TG_F32 && tg_ndim(x) == 2 && tg_dim(x, 1) == p->columns &&
              tg_ndim(chosen) == 2 && tg_dim(chosen, 0) == tg_dim(x, 0);
  if (!fits || rows < 1 || rows % TOGETHER || p->rows % rows) {
    char which[160]; /* tg_describe keeps only one text at a time */
    snprintf(which, sizeof which, "%s", tg_describe(chosen));
    ctx_fail(p->ctx, TG_ERR_SHAPE, "packed_experts: %s by matrices %s of %lld rows of %lld and %lld columns",
             tg_describe(x), which, (long long)rows, (long long)p->rows, (long long)p->columns);
    return NULL;
  }

  int64_t n = tg_dim(x, 0), used = tg_dim(chosen, 1), parts = rows / TOGETHER;
  TgTensor *flat = tg_flatten(chosen, 0, 1);
  TgPacked own = *p;
  own.rows = own.all = n * used * rows;
  own.words = taken(p->words, parts, flat);
  own.halves = taken(p->halves, parts, flat);
  own.small = taken(p->small, parts, flat);
  Activations a = activations(p, x, bits);
  a.high = repeated(a.high, n, used), a.low = repeated(a.low, n, used);
  a.scale = repeated(a.scale, n, used), a.sum = repeated(a.sum, n, used);
  return tg_reshape(product(&own, a, n * used, true), TG_SHAPE(n, used, rows));
}
