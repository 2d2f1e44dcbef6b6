/* onnx_microsoft.c: operators of com.microsoft, each of which onnxruntime's optimiser writes in place of
 * several operators of ai.onnx: attention with its projections, norms with the preceding addition,
 * products with the following operation, and arithmetic on quantised tensors. In: an OnnxCall. Out: lazy
 * tensors. Inputs and attributes are as in onnxruntime's documentation (ContribOperators.md). */
#include "onnx_private.h"

/* Whether these inputs are given; the inputs between them may be left out. */
#define NEEDS(c, ...) needs(c, (const int[]){__VA_ARGS__, -1})

static bool needs(OnnxCall *c, const int *which) {
  for (; *which >= 0; which++)
    if (!input(c, *which)) return call_fail(c, TG_ERR_VALUE, "input %d is left out", *which), false;
  return true;
}

static TgTensor *plus(TgTensor *x, TgTensor *more) { return more ? tg_add(x, more) : x; }

static TgTensor *op_fast_gelu(OnnxCall *c) { return tg_gelu(plus(c->in[0], input(c, 1))); }

static TgTensor *op_quick_gelu(OnnxCall *c) {
  return tg_mul(c->in[0], tg_sigmoid(tg_mul_scalar(c->in[0], attr_f(c, "alpha", 1.702f))));
}

static TgTensor *op_bias_gelu(OnnxCall *c) { return tg_gelu_erf(tg_add(c->in[0], c->in[1])); }

/* ---- norms. The sum before normalisation is an output too, if it is requested. */
static TgTensor *normed(OnnxCall *c, TgTensor *sum, TgTensor *weight, TgTensor *bias, bool centred) {
  double eps = attr_f(c, "epsilon", 1e-12f);
  TgTensor *mean = NULL, *inv = NULL;
  TgTensor *y = centred ? as(onnx_standard(sum, TG_AXES(-1), eps, &mean, &inv), tg_dtype(sum))
                        : onnx_rms(sum, TG_AXES(-1), eps, &inv);
  if (c->nout > 1 && centred) c->out[1] = mean;
  if (c->nout > 2) c->out[2] = inv;
  if (c->nout > 3) c->out[3] = sum;
  return plus(tg_mul(y, weight), bias);
}

static TgTensor *op_skip_norm(OnnxCall *c) { /* x, skip, gamma, beta, bias */
  return normed(c, plus(tg_add(c->in[0], c->in[1]), input(c, 4)), c->in[2], input(c, 3), true);
}

static TgTensor *op_skip_rms(OnnxCall *c) { /* x, skip, gamma, bias */
  if (c->nout > 1 && c->n->out[1]) return call_fail(c, TG_ERR_VALUE, "the mean is not computed here");
  return normed(c, plus(tg_add(c->in[0], c->in[1]), input(c, 3)), c->in[2], NULL, false);
}

/* Adds rows of three tables, selected by token, place and segment, and normalises the sum. */
static TgTensor *op_embed_norm(OnnxCall *c) {
  TgTensor *tokens = c->in[0], *segments = input(c, 1), *table = input(c, 4), *mask = input(c, 7),
           *at = input(c, 8), *places = input(c, 3);
  if (!NEEDS(c, 2, 3, 5, 6)) return NULL;
  if (tg_ndim(tokens) != 2 || tg_ndim(places) != 2 || !segments != !table)
    return call_fail(c, TG_ERR_SHAPE, "tokens of %d axes, segments %s a table of them", tg_ndim(tokens),
                     table ? "beside" : "without");
  int64_t batch = tg_size_of(tokens, 0), n = tg_size_of(tokens, 1), most = tg_max_shape(tokens)[1];
  if (!at && most > tg_dim(places, 0))
    return call_fail(c, TG_ERR_SHAPE, "%lld tokens, a table of %lld places", (long long)most,
                     (long long)tg_dim(places, 0));
  TgTensor *sum = tg_add(tg_take(c->in[2], tokens), at ? tg_take(places, at) : tg_slice(places, 0, 0, n));
  if (segments) sum = tg_add(sum, tg_take(table, segments));
  bool counts = c->nout > 1 && c->n->out[1];
  TgTensor *len = NULL;
  if (counts && mask)
    len = tg_cast(tg_sum(tg_cast(tg_eq_scalar(mask, 1), TG_I32), .axis = TG_AXES(1)), TG_I32);
  else if (counts)
    len = tg_zeros(c->ctx, TG_SHAPE(batch), .dtype = TG_I32);
  attr_unused(c, "mask_index_type");
  TgTensor *y = as(onnx_standard(sum, TG_AXES(-1), attr_f(c, "epsilon", 1e-12f), NULL, NULL), tg_dtype(sum));
  if (c->nout > 1) c->out[1] = len;
  if (c->nout > 2) c->out[2] = sum;
  return tg_add(tg_mul(y, c->in[5]), c->in[6]);
}

/* ---- products */
static TgTensor *turned(TgTensor *x, bool turn) {
  return turn && tg_ndim(x) > 1 ? tg_transpose(x, -1, -2) : x;
}

static TgTensor *op_fused_matmul(OnnxCall *c) {
  if (attr_i(c, "transBatchA", 0) || attr_i(c, "transBatchB", 0))
    return call_fail(c, TG_ERR_VALUE, "transBatchA and transBatchB are not implemented");
  TgTensor *y = tg_matmul(turned(c->in[0], attr_i(c, "transA", 0)), turned(c->in[1], attr_i(c, "transB", 0)));
  double alpha = attr_f(c, "alpha", 1);
  return alpha == 1 ? y : as(tg_mul_scalar(y, alpha), tg_dtype(c->in[0]));
}

static TgTensor *op_fused_gemm(OnnxCall *c) {
  const OnnxAttr *a = call_attr(c, "activation_alpha", ONNX_FLOAT),
                 *b = call_attr(c, "activation_beta", ONNX_FLOAT);
  attr_unused(c, "activation_gamma");
  return onnx_activated(c, onnx_gemm(c), a ? a->f : 0, b ? b->f : 0, a ? 1 + (b != NULL) : 0);
}

/* ---- weights of 4 (2, 8) bits in blocks along k, each with a scale and maybe a zero point: a (.., k) by
 * (n, blocks, bytes) -> (.., n). com.microsoft */
static TgTensor *op_matmul_nbits(OnnxCall *c) {
  TgTensor *a = c->in[0], *b = c->in[1], *scale = c->in[2], *zero = input(c, 3), *bias = input(c, 5);
  int64_t k = attr_i(c, "K", 0), n = attr_i(c, "N", 0), bits = attr_i(c, "bits", 4),
          block = attr_i(c, "block_size", 32);
  attr_unused(c, "accuracy_level");
  if ((bits != 2 && bits != 4 && bits != 8) || k < 1 || n < 1 || block < 16 || block > 1 << 16 || input(c, 4))
    return call_fail(c, TG_ERR_VALUE, "K %lld, N %lld, bits %lld, blocks of %lld", (long long)k, (long long)n,
                     (long long)bits, (long long)block);
  int64_t blocks = (k + block - 1) / block, per = 8 / bits;
  if (tg_numel(b) != n * blocks * block / per || tg_numel(scale) != n * blocks)
    return call_fail(c, TG_ERR_SHAPE, "weights and scales do not fit");
  TgTensor *part[4];
  for (int64_t i = 0; i < per; i++)
    part[i] = tg_bitand_scalar(tg_shr_scalar(b, (int)(i * bits)), (double)((1 << bits) - 1));
  TgTensor *w =
      tg_reshape(per > 1 ? tg_stack(part, (int)per, tg_ndim(b)) : part[0], TG_SHAPE(n, blocks, block));
  TgDType d = tg_dtype(a);
  scale = tg_reshape(scale, TG_SHAPE(n, blocks, 1));
  TgTensor *less = NULL;
  if (zero && tg_dtype(zero) != TG_U8) less = tg_reshape(zero, TG_SHAPE(n, blocks, 1));
  if (zero && !less) { /* packed like the weights; each row begins with a new byte */
    TgTensor *z[4], *rows = tg_reshape(zero, TG_SHAPE(n, -1));
    for (int64_t i = 0; i < per; i++)
      z[i] = tg_bitand_scalar(tg_shr_scalar(rows, (int)(i * bits)), (double)((1 << bits) - 1));
    TgTensor *all = per > 1 ? tg_reshape(tg_stack(z, (int)per, 2), TG_SHAPE(n, -1)) : z[0];
    less = tg_reshape(tg_slice(all, 1, 0, blocks), TG_SHAPE(n, blocks, 1));
  }
  w = less ? tg_sub(as(w, d), as(less, d)) : tg_sub_scalar(as(w, d), (double)(1 << (bits - 1)));
  w = tg_slice(tg_reshape(tg_mul(w, as(scale, d)), TG_SHAPE(n, blocks * block)), 1, 0, k);
  TgTensor *y = tg_matmul(a, tg_transpose(w, 0, 1));
  return bias ? tg_add(y, bias) : y;
}

/* ---- attention */
/* Computes what is added to the scores: mask_filter_value where a mask hides a key. The mask has the
 * number of keys of each sequence (b), or these and the first keys (2 b), or 1 for each visible key: (b,
 * k), (b, q, k), or (b, 1, most, most), of which the rows of the queries are used. */
static bool hidden(OnnxCall *c, TgTensor *m, int64_t batch, const Heads *h, TgTensor **out) {
  int64_t nq = h->nq, nk = h->nk, first = m ? tg_size_of(m, 0) : 0, both = tg_size_mul(c->ctx, batch, 2);
  int rank = m ? tg_ndim(m) : 0;
  double less = attr_f(c, "mask_filter_value", -10000.f);
  TgTensor *see = NULL, *key = tg_reshape(onnx_iota(c->ctx, nk), TG_SHAPE(1, 1, 1, nk));
  *out = NULL;
  if (!m) return true;
  if (rank == 1 && (first == batch || first == both)) {
    TgTensor *ends = tg_reshape(tg_long(tg_slice(m, 0, 0, batch)), TG_SHAPE(batch, 1, 1, 1));
    see = tg_lt(key, ends);
    if (first == both)
      see = tg_bitand(see,
                      tg_ge(key, tg_reshape(tg_long(tg_slice(m, 0, batch, both)), TG_SHAPE(batch, 1, 1, 1))));
  } else if (rank == 2 && first == batch && tg_size_of(m, 1) == nk)
    see = tg_gt_scalar(tg_reshape(m, TG_SHAPE(batch, 1, 1, nk)), 0);
  else if (rank == 3 && first == batch && tg_size_of(m, 1) == nq && tg_size_of(m, 2) == nk)
    see = tg_gt_scalar(tg_unsqueeze(m, 1), 0);
  else if (rank == 4 && first == batch && tg_dim(m, 1) == 1 && tg_dim(m, 2) >= nk && tg_dim(m, 3) >= nk)
    see = tg_gt_scalar(tg_slice(tg_slice(m, 2, h->past, tg_size_add(c->ctx, h->past, nq)), 3, 0, nk), 0);
  else
    return call_fail(c, TG_ERR_SHAPE, "a mask of %d axes and %lld elements for %lld sequences of %lld keys",
                     rank, (long long)tg_numel(m), (long long)tg_dim(h->q, 0), (long long)tg_dim(h->k, 2)),
           false;
  *out = tg_where(see, tg_zeros(c->ctx, TG_SCALAR), tg_full(c->ctx, TG_SCALAR, less));
  return true;
}

/* Attention of q, k, v by heads, with the past already joined before the new keys. bias: an input that is
 * added to the scores. */
static TgTensor *attention_of(OnnxCall *c, Heads *h, TgTensor *mask, TgTensor *bias) {
  Scores o = {.scale = attr_f(c, "scale", 0)};
  if (!onnx_heads_known(c, h)) return NULL;
  int64_t batch = tg_size_of(h->q, 0);
  h->heads = tg_dim(h->q, 1);
  h->nq = tg_size_of(h->q, 2);
  h->nk = tg_size_of(h->k, 2);
  if (tg_dim(h->k, 1) != h->heads || tg_dim(h->v, 1) != h->heads || tg_size_of(h->v, 2) != h->nk ||
      tg_dim(h->k, 3) != tg_dim(h->q, 3))
    return call_fail(c, TG_ERR_SHAPE, "heads of queries, keys and values");
  if (!hidden(c, mask, batch, h, &o.mask)) return NULL;
  if (bias) o.mask = o.mask ? tg_add(bias, o.mask) : bias;
  o.may = onnx_seen(c, h->nq, h->nk, h->past, NULL, attr_i(c, "unidirectional", 0));
  return onnx_heads_joined(onnx_attend(h, &o));
}

static bool past_joined(Heads *h, TgTensor *k, TgTensor *v) {
  if (!k || !v) return true;
  h->past = tg_size_of(k, 2);
  h->k = tg_cat((TgTensor *[]){k, h->k}, 2, 2);
  h->v = tg_cat((TgTensor *[]){v, h->v}, 2, 2);
  return h->k && h->v;
}

/* x (b, s, in) is multiplied by one matrix for queries, keys and values, (in, 3 n) or with the given
 * sizes. past and its successor, output 1: (2, b, heads, k, d). */
static TgTensor *op_ms_attention(OnnxCall *c) {
  TgTensor *x = c->in[0], *w = c->in[1], *past = input(c, 4), *part[3];
  int64_t heads = attr_i(c, "num_heads", 0), at = 0;
  Ints sizes;
  if (!call_ints(c, -1, "qkv_hidden_sizes", &sizes)) return NULL;
  if (attr_i(c, "do_rotary", 0) || attr_i(c, "past_present_share_buffer", 0) || input(c, 6))
    return call_fail(c, TG_ERR_VALUE, "do_rotary and a past of fixed size are not implemented");
  if (tg_ndim(x) != 3 || tg_ndim(w) != 2 || tg_dim(w, 0) != tg_dim(x, 2) || (sizes.given && sizes.n != 3) ||
      (past && (tg_ndim(past) != 5 || tg_dim(past, 0) != 2)))
    return call_fail(c, TG_ERR_SHAPE, "%d axes, a matrix of %d, %d sizes", tg_ndim(x), tg_ndim(w), sizes.n);
  TgTensor *all = plus(tg_matmul(x, w), input(c, 2));
  for (int i = 0; all && i < 3; i++) {
    int64_t n = sizes.given ? sizes.v[i] : tg_dim(w, 1) / 3;
    if (n < 0 || n > tg_dim(w, 1) - at) return call_fail(c, TG_ERR_SHAPE, "qkv_hidden_sizes");
    part[i] = onnx_by_heads(c, tg_slice(all, 2, at, at + n), heads);
    at += n;
  }
  if (!all) return NULL;
  Heads h = {.q = part[0], .k = part[1], .v = part[2]};
  if (past && !past_joined(&h, tg_select(past, 0, 0), tg_select(past, 0, 1))) return NULL;
  if (c->nout > 1 && c->n->out[1]) c->out[1] = tg_stack((TgTensor *[]){h.k, h.v}, 2, 0);
  return attention_of(c, &h, input(c, 3), input(c, 5));
}

/* Queries, keys and values are separate inputs: (b, s, heads d) each, or keys and values already by heads,
 * or packed as (b, s, heads, 3, d) or (b, s, heads, 2, d). bias: the biases of all three in a row. */
static TgTensor *op_multi_head(OnnxCall *c) {
  TgTensor *q = c->in[0], *k = input(c, 1), *v = input(c, 2), *bias = input(c, 3);
  int64_t heads = attr_i(c, "num_heads", 0), at = 0;
  TgTensor *packed = tg_ndim(q) == 5 ? q : k && tg_ndim(k) == 5 ? k : NULL;
  int npacked = packed == q ? 3 : 2;
  if (packed && (tg_dim(packed, 3) != npacked || tg_dim(packed, 2) != heads))
    return call_fail(c, TG_ERR_SHAPE, "packed %s", tg_describe(packed));
  TgTensor *part[3] = {q, k, v};
  for (int i = 0; packed && i < npacked; i++) /* (b, s, heads, d) -> (b, s, heads d) */
    part[3 - npacked + i] = tg_flatten(tg_select(packed, 3, i), 2, 3);
  if (input(c, 8) || input(c, 9) || !part[1] || !part[2])
    return call_fail(c, TG_ERR_VALUE,
                     "keys, values or a past of fixed size in a form that is not implemented");
  for (int i = 0; i < 3; i++) {
    if (bias && tg_ndim(part[i]) == 3) {
      int64_t n = tg_dim(part[i], 2);
      if (tg_ndim(bias) != 1 || n > tg_dim(bias, 0) - at)
        return call_fail(c, TG_ERR_SHAPE, "bias %s", tg_describe(bias));
      part[i] = tg_add(part[i], tg_slice(bias, 0, at, at + n));
      at += n;
    }
    if (!(part[i] = onnx_by_heads(c, part[i], heads))) return NULL;
  }
  Heads h = {.q = part[0], .k = part[1], .v = part[2]};
  if (!past_joined(&h, input(c, 6), input(c, 7))) return NULL;
  if (c->nout > 1) c->out[1] = h.k;
  if (c->nout > 2) c->out[2] = h.v;
  if (c->nout > 3 && c->n->out[3]) return call_fail(c, TG_ERR_VALUE, "the scores are no output here");
  return attention_of(c, &h, input(c, 4), input(c, 5));
}

/* Attention of decoders, com.microsoft: causal, with the past before the new keys, optionally a window,
 * and rotation by positions. If only the query is given, it contains keys and values too, after the
 * queries. All sequences of a batch must be as long as the past and the new keys together; other lengths
 * are refused. */
static TgTensor *op_group_query(OnnxCall *c) {
  int64_t heads = attr_i(c, "num_heads", 0), kv = attr_i(c, "kv_num_heads", 0),
          window = attr_i(c, "local_window_size", -1);
  Scores o = {.scale = attr_f(c, "scale", 0), .softcap = attr_f(c, "softcap", 0)};
  TgTensor *q = c->in[0], *k = input(c, 1), *v = input(c, 2);
  if (!NEEDS(c, 5)) return NULL;
  if (heads < 1 || kv < 1 || heads % kv || tg_ndim(q) != 3 || attr_i(c, "smooth_softmax", 0) > 0)
    return call_fail(c, TG_ERR_VALUE, "%lld heads, %lld of keys", (long long)heads, (long long)kv);
  if (!k) {
    int64_t size = tg_dim(q, 2) / (heads + 2 * kv), end = heads * size;
    k = tg_slice(q, 2, end, end + kv * size);
    v = tg_slice(q, 2, end + kv * size, end + 2 * kv * size);
    q = tg_slice(q, 2, 0, end);
  }
  Heads h = {.q = onnx_by_heads(c, q, heads), .k = onnx_by_heads(c, k, kv), .v = onnx_by_heads(c, v, kv)};
  if (!h.q || !h.k || !h.v) return NULL;
  h.heads = heads;
  h.nq = tg_dim(h.q, 2);
  h.past = input(c, 3) && input(c, 4) ? tg_dim(input(c, 3), 2) : 0;
  double last[64];
  int n;
  if (!call_doubles(c, 5, last, 64, &n)) return NULL;
  for (int i = 0; i < n; i++)
    if (last[i] + 1 != (double)(h.past + h.nq))
      return call_fail(c, TG_ERR_VALUE, "a sequence of %g keys where %lld stand", last[i] + 1,
                       (long long)(h.past + h.nq));
  bool inner = attr_i(c, "rotary_interleaved", 0);
  if (attr_i(c, "do_rotary", 0)) {
    TgTensor *cosines = input(c, 7), *sines = input(c, 8);
    if (!cosines || !sines || tg_ndim(cosines) != 2 || tg_dim(cosines, 0) < h.past + h.nq ||
        2 * tg_dim(cosines, 1) > tg_dim(h.q, 3))
      return call_fail(c, TG_ERR_SHAPE, "the tables of angles do not fit");
    cosines = tg_slice(cosines, 0, h.past, h.past + h.nq);
    sines = tg_slice(sines, 0, h.past, h.past + h.nq);
    h.q = onnx_turn(h.q, cosines, sines, 2 * tg_dim(cosines, 1), inner);
    h.k = onnx_turn(h.k, cosines, sines, 2 * tg_dim(cosines, 1), inner);
  }
  if (h.past) {
    h.k = tg_cat((TgTensor *[]){input(c, 3), h.k}, 2, 2);
    h.v = tg_cat((TgTensor *[]){input(c, 4), h.v}, 2, 2);
  }
  if (c->nout > 1) c->out[1] = h.k;
  if (c->nout > 2) c->out[2] = h.v;
  h.k = onnx_heads_repeated(h.k, heads);
  h.v = onnx_heads_repeated(h.v, heads);
  h.nk = h.past + h.nq;
  o.may = onnx_seen(c, h.nq, h.nk, h.past, NULL, true);
  if (window > 0) { /* and not further back than the window */
    TgTensor *key = tg_reshape(tg_arange(c->ctx, 0, (double)h.nk, .dtype = TG_I64), TG_SHAPE(1, 1, 1, h.nk));
    TgTensor *query =
        tg_reshape(tg_arange(c->ctx, 0, (double)h.nq, .dtype = TG_I64), TG_SHAPE(1, 1, h.nq, 1));
    o.may = tg_bitand(o.may, tg_gt(key, tg_add_scalar(query, (double)(h.past - window))));
  }
  return onnx_heads_joined(onnx_attend(&h, &o));
}

/* x (b, s, heads d) or (b, heads, s, d); positions: (1), that of the first, or (b, s); tables of angles
 * (n, half). */
static TgTensor *op_ms_rotary(OnnxCall *c) {
  TgTensor *x = c->in[0], *at = tg_long(c->in[1]), *cosines = c->in[2], *sines = c->in[3];
  int64_t heads = attr_i(c, "num_heads", 0), turned_n = attr_i(c, "rotary_embedding_dim", 0);
  bool inner = attr_i(c, "interleaved", 0);
  attr_unused(c, "scale"), attr_unused(c, "is_packed_batching");
  if (tg_ndim(cosines) != 2 || tg_ndim(sines) != 2 || (tg_ndim(x) != 3 && tg_ndim(x) != 4))
    return call_fail(c, TG_ERR_SHAPE, "%d axes, tables of angles of %d", tg_ndim(x), tg_ndim(cosines));
  int64_t half = tg_dim(cosines, 1);
  if (tg_ndim(x) == 3 && !turned_n && half) heads = tg_dim(x, 2) / (2 * half);
  TgTensor *h = onnx_by_heads(c, x, heads);
  if (!h) return NULL;
  turned_n = turned_n ? turned_n : tg_dim(h, 3);
  if (turned_n != 2 * half || turned_n > tg_dim(h, 3) || tg_dim(sines, 1) != half)
    return call_fail(c, TG_ERR_SHAPE, "%lld turned numbers by tables of %lld", (long long)turned_n,
                     (long long)half);
  int64_t n = tg_size_of(h, 2);
  if (tg_ndim(at) == 1 && tg_size_of(at, 0) == 1) at = tg_unsqueeze(tg_add(onnx_iota(c->ctx, n), at), 0);
  if (tg_ndim(at) != 2 || tg_size_of(at, 1) != n)
    return call_fail(c, TG_ERR_SHAPE, "positions %s", tg_describe(at));
  TgTensor *y = onnx_turn(h, tg_unsqueeze(tg_take(cosines, at), 1), tg_unsqueeze(tg_take(sines, at), 1),
                          turned_n, inner);
  return tg_ndim(x) == 4 ? y : onnx_heads_joined(y);
}

/* ---- quantised tensors: input i, its scale, and its zero point (which may be left out) */
static TgTensor *value_of(const OnnxCall *c, int i) {
  TgTensor *x = as(c->in[i], TG_F32), *zero = input(c, i + 2);
  return tg_mul(zero ? tg_sub(x, as(zero, TG_F32)) : x, as(c->in[i + 1], TG_F32));
}

static TgTensor *op_q_add(OnnxCall *c) {
  if (!NEEDS(c, 0, 1, 3, 4, 6)) return NULL;
  return onnx_quantised(c, tg_add(value_of(c, 0), value_of(c, 3)), c->in[6], input(c, 7));
}

static TgTensor *op_q_mul(OnnxCall *c) {
  if (!NEEDS(c, 0, 1, 3, 4, 6)) return NULL;
  return onnx_quantised(c, tg_mul(value_of(c, 0), value_of(c, 3)), c->in[6], input(c, 7));
}

static TgTensor *op_q_sigmoid(OnnxCall *c) {
  if (!NEEDS(c, 0, 1, 3)) return NULL;
  return onnx_quantised(c, tg_sigmoid(value_of(c, 0)), c->in[3], input(c, 4));
}

static TgTensor *op_q_softmax(OnnxCall *c) {
  if (!NEEDS(c, 0, 1, 3)) return NULL;
  c->in[0] = value_of(c, 0);
  c->opset = (int)attr_i(c, "opset", 13);
  return onnx_quantised(c, onnx_softmax(c), c->in[3], input(c, 4));
}

static TgTensor *op_q_leaky(OnnxCall *c) {
  if (!NEEDS(c, 0, 1, 3)) return NULL;
  return onnx_quantised(c, tg_leaky_relu(value_of(c, 0), attr_f(c, "alpha", 0.01f)), c->in[3], input(c, 4));
}

static TgTensor *op_q_average(OnnxCall *c) {
  if (!NEEDS(c, 0, 1, 3)) return NULL;
  TgTensor *x = value_of(c, 0);
  bool last = attr_i(c, "channels_last", 0);
  TgAxes axes = {.n = tg_ndim(x) - 2};
  if (axes.n < 1) return call_fail(c, TG_ERR_SHAPE, "no spatial axes");
  for (int i = 0; i < axes.n; i++)
    axes.v[i] = i + (last ? 1 : 2);
  return onnx_quantised(c, tg_mean(x, .axis = axes, .keepdim = true), c->in[3], input(c, 4));
}

TgTensor *onnx_channels_moved(TgTensor *x, bool back) {
  int64_t order[TG_MAX_RANK] = {0};
  int rank = x ? tg_ndim(x) : 0;
  if (rank < 3) return x;
  for (int i = 1; i < rank; i++)
    order[i] = back ? i % (rank - 1) + 1 : i == 1 ? rank - 1 : i - 1;
  return tg_permute(x, rank, order);
}

static TgTensor *op_q_average_pool(OnnxCall *c) {
  Spatial s = {0};
  if (!NEEDS(c, 0, 1, 3)) return NULL;
  TgTensor *x = value_of(c, 0);
  bool last = attr_i(c, "channels_last", 0);
  if (last) x = onnx_channels_moved(x, false);
  if (!x || !onnx_spatial(c, x, NULL, &s)) return NULL;
  bool ceil_mode = attr_i(c, "ceil_mode", 0), with_pads = attr_i(c, "count_include_pad", 0);
  /* onnxruntime divides by the size of the whole window */
  if (ceil_mode && with_pads) onnx_ceil_padded(x, &s);
  TgTensor *y =
      tg_avg_pool2d(x, .axes = s.n, .kernel = s.kernel, .stride = s.stride, .dilation = s.dilation,
                    .padding = s.padding, .ceil_mode = ceil_mode && !with_pads, .exclude_pad = !with_pads);
  if (last) y = onnx_channels_moved(y, true);
  return y ? onnx_quantised(c, y, c->in[3], input(c, 4)) : NULL;
}

static TgTensor *op_q_concat(OnnxCall *c) { /* the result's scale and zero point are the first inputs */

  enum { MOST = 64 };

  TgTensor *part[MOST];
  int axis, n = (c->nin - 2) / 3;
  if ((c->nin - 2) % 3 || n < 1 || n > MOST) return call_fail(c, TG_ERR_VALUE, "%d inputs", c->nin);
  for (int i = 0; i < n; i++) {
    if (!NEEDS(c, 2 + 3 * i, 3 + 3 * i)) return NULL;
    part[i] = value_of(c, 2 + 3 * i);
  }
  if (!call_axis(c, attr_i(c, "axis", 0), tg_ndim(c->in[2]), &axis)) return NULL;
  return onnx_quantised(c, tg_cat(part, n, axis), c->in[0], input(c, 1));
}

/* Multiplies a and b as integers, then by the product of both scales. */
static TgTensor *scaled_product(TgTensor *a, TgTensor *b, TgTensor *a_zero, TgTensor *b_zero,
                                TgTensor *scale) {
  TgTensor *x = as(a, TG_I32), *y = as(b, TG_I32);
  if (a_zero) x = tg_sub(x, as(a_zero, TG_I32));
  if (b_zero) y = tg_sub(y, as(b_zero, TG_I32));
  return tg_mul(as(tg_matmul(x, y), TG_F32), scale);
}

static TgTensor *op_dynamic_product(OnnxCall *c) { /* a, b, b's scale, b's zero point, bias */
  TgTensor *scale, *zero, *a = onnx_dynamically_quantised(c->in[0], &scale, &zero);
  return plus(scaled_product(a, c->in[1], zero, input(c, 3), tg_mul(scale, c->in[2])), input(c, 4));
}

static TgTensor *op_product_to_float(OnnxCall *c) { /* a, b, their scales, their zero points, bias */
  return plus(scaled_product(c->in[0], c->in[1], input(c, 4), input(c, 5), tg_mul(c->in[2], c->in[3])),
              input(c, 6));
}

const OnnxOp onnx_ops_microsoft[] = {
    ONNX_SIZED_MICROSOFT("FastGelu", 1, 2, op_fast_gelu),
    ONNX_SIZED_MICROSOFT("QuickGelu", 1, 1, op_quick_gelu),
    ONNX_SIZED_MICROSOFT("BiasGelu", 2, 2, op_bias_gelu),
    ONNX_SIZED_MICROSOFT("SkipLayerNormalization", 3, 5, op_skip_norm),
    ONNX_SIZED_MICROSOFT("SkipSimplifiedLayerNormalization", 3, 4, op_skip_rms),
    ONNX_SIZED_MICROSOFT("EmbedLayerNormalization", 1, 9, op_embed_norm),
    ONNX_SIZED_MICROSOFT("FusedMatMul", 2, 2, op_fused_matmul),
    ONNX_SIZED_MICROSOFT("FusedGemm", 2, 3, op_fused_gemm),
    ONNX_SIZED_MICROSOFT("MatMulNBits", 3, 6, op_matmul_nbits),
    ONNX_SIZED_MICROSOFT("Attention", 2, 7, op_ms_attention),
    ONNX_SIZED_MICROSOFT("MultiHeadAttention", 1, 10, op_multi_head),
    ONNX_MICROSOFT("GroupQueryAttention", 1, 9, op_group_query),
    ONNX_SIZED_MICROSOFT("RotaryEmbedding", 4, 4, op_ms_rotary),
    ONNX_SIZED_MICROSOFT("QLinearAdd", 1, 8, op_q_add),
    ONNX_SIZED_MICROSOFT("QLinearMul", 1, 8, op_q_mul),
    ONNX_SIZED_MICROSOFT("QLinearSigmoid", 1, 5, op_q_sigmoid),
    ONNX_SIZED_MICROSOFT("QLinearSoftmax", 1, 5, op_q_softmax),
    ONNX_SIZED_MICROSOFT("QLinearLeakyRelu", 1, 5, op_q_leaky),
    ONNX_SIZED_MICROSOFT("QLinearGlobalAveragePool", 1, 5, op_q_average),
    ONNX_SIZED_MICROSOFT("QLinearAveragePool", 4, 5, op_q_average_pool),
    ONNX_SIZED_MICROSOFT("QLinearConcat", 1, -1, op_q_concat),
    ONNX_SIZED_MICROSOFT("DynamicQuantizeMatMul", 3, 5, op_dynamic_product),
    ONNX_SIZED_MICROSOFT("MatMulIntegerToFloat", 4, 7, op_product_to_float),
    {0}};
