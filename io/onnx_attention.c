/* onnx_attention.c: attention and rotary positions of opsets 23 and 24, and losses. In: an OnnxCall. Out:
 * lazy tensors. */
#include "onnx_private.h"
#include <math.h>

TgTensor *onnx_by_heads(OnnxCall *c, TgTensor *x, int64_t heads) {
  if (tg_ndim(x) == 4) return x;
  if (tg_ndim(x) != 3 || heads < 1 || tg_is_symbolic(x, 2) || tg_dim(x, 2) % heads)
    return call_fail(c, TG_ERR_SHAPE, "%d axes, %lld heads", tg_ndim(x), (long long)heads);
  return tg_transpose(
      tg_reshape(x, TG_SHAPE(tg_size_of(x, 0), tg_size_of(x, 1), heads, tg_dim(x, 2) / heads)), 1, 2);
}

TgTensor *onnx_heads_repeated(TgTensor *x, int64_t heads) {
  return tg_dim(x, 1) == heads ? x : tg_repeat_interleave(x, heads / tg_dim(x, 1), 1);
}

TgTensor *onnx_seen(OnnxCall *c, int64_t nq, int64_t nk, int64_t past, TgTensor *lens, bool causal) {
  TgTensor *key = tg_reshape(onnx_iota(c->ctx, nk), TG_SHAPE(1, 1, 1, nk));
  TgTensor *fits = lens ? tg_lt(key, tg_reshape(tg_long(lens), TG_SHAPE(-1, 1, 1, 1))) : NULL;
  if (!causal) return fits;
  TgTensor *query = tg_reshape(onnx_iota(c->ctx, nq), TG_SHAPE(1, 1, nq, 1));
  TgTensor *last =
      lens
          ? tg_add(query, tg_sub(tg_reshape(tg_long(lens), TG_SHAPE(-1, 1, 1, 1)), onnx_size_like(query, nq)))
          : tg_add(query, onnx_size_like(query, past));
  TgTensor *order = tg_le(key, last);
  return fits ? tg_bitand(fits, order) : order;
}

/* A mask with fewer keys than there are hides the remaining keys. */
static TgTensor *mask_of(OnnxCall *c, TgTensor *mask, int64_t nk) {
  int64_t lo[TG_MAX_RANK] = {0}, hi[TG_MAX_RANK] = {0},
          short_of = tg_size_sub(c->ctx, nk, tg_size_of(mask, -1));
  if (has_symbolic(c->run) && onnx_is_symbolic(c, short_of))
    return call_fail(c, TG_ERR_SHAPE, "a mask of another symbolic size than the keys");
  if (short_of <= 0) return mask;
  hi[tg_ndim(mask) - 1] = short_of;
  return tg_dtype(mask) == TG_BOOL ? tg_pad(mask, lo, hi) : tg_pad_value(mask, lo, hi, -INFINITY);
}

bool onnx_heads_known(OnnxCall *c, const Heads *h) {
  TgTensor *all[] = {h->q, h->k, h->v};
  for (int i = 0; i < 3; i++)
    if (!all[i] || tg_ndim(all[i]) != 4 || tg_is_symbolic(all[i], 1) || tg_is_symbolic(all[i], 3))
      return all[i]
             ? call_fail(c, TG_ERR_SHAPE, "the number of heads, or their size, of %s", tg_describe(all[i])),
             false : false;
  return true;
}

static bool heads_of(OnnxCall *c, Heads *h) {
  int64_t nq = attr_i(c, "q_num_heads", 0), nk = attr_i(c, "kv_num_heads", 0);
  h->q = onnx_by_heads(c, c->in[0], nq);
  h->k = onnx_by_heads(c, c->in[1], nk);
  h->v = onnx_by_heads(c, c->in[2], nk);
  if (!onnx_heads_known(c, h)) return false;
  TgTensor *past_k = input(c, 4), *past_v = input(c, 5);
  if (past_k && past_v) {
    h->past = tg_size_of(past_k, 2);
    h->k = tg_cat((TgTensor *[]){past_k, h->k}, 2, 2);
    h->v = tg_cat((TgTensor *[]){past_v, h->v}, 2, 2);
  }
  if (c->nout > 1) c->out[1] = h->k;
  if (c->nout > 2) c->out[2] = h->v;
  h->heads = tg_dim(h->q, 1);
  if (!h->k || !h->v || tg_dim(h->k, 1) < 1 || h->heads % tg_dim(h->k, 1) ||
      tg_dim(h->v, 1) != tg_dim(h->k, 1))
    return call_fail(c, TG_ERR_SHAPE, "heads of queries, keys and values"), false;
  h->k = onnx_heads_repeated(h->k, h->heads);
  h->v = onnx_heads_repeated(h->v, h->heads);
  h->nq = tg_size_of(h->q, 2);
  h->nk = tg_size_of(h->k, 2);
  return true;
}

TgTensor *onnx_attend(const Heads *h, Scores *o) {
  TgDType d = tg_dtype(h->q), wide = d == TG_F64 ? TG_F64 : TG_F32;
  double scale = o->scale != 0 ? o->scale : 1 / sqrt((double)(tg_dim(h->q, 3) > 0 ? tg_dim(h->q, 3) : 1));
  TgTensor *s = tg_mul_scalar(tg_matmul(as(h->q, wide), tg_transpose(as(h->k, wide), 2, 3)), scale),
           *may = o->may;
  o->shown = s;
  if (o->softcap > 0) s = tg_mul_scalar(tg_tanh(tg_div_scalar(s, o->softcap)), o->softcap);
  if (o->shown_after == 1) o->shown = s;
  if (o->mask && tg_dtype(o->mask) == TG_BOOL)
    may = may ? tg_bitand(may, o->mask) : o->mask;
  else if (o->mask)
    s = tg_add(s, as(o->mask, wide));
  if (may) s = tg_where(may, s, tg_scalar_like(s, -INFINITY));
  if (o->shown_after == 2) o->shown = s;
  /* a row that may attend to nothing is 0 */
  TgTensor *most = tg_max(s, .axis = TG_AXES(-1), .keepdim = true);
  TgTensor *none = tg_eq_scalar(most, -INFINITY);
  TgTensor *e = tg_exp(tg_sub(s, tg_where(none, tg_zeros_like(most), most)));
  TgTensor *sum = tg_sum(e, .axis = TG_AXES(-1), .keepdim = true);
  TgTensor *p = tg_div(e, tg_where(none, tg_ones_like(sum), sum));
  if (o->shown_after == 3) o->shown = p;
  o->shown = as(o->shown, d);
  return as(tg_matmul(p, as(h->v, wide)), d);
}

TgTensor *onnx_heads_joined(TgTensor *y) {
  return tg_reshape(tg_transpose(y, 1, 2),
                    TG_SHAPE(tg_size_of(y, 0), tg_size_of(y, 2), tg_dim(y, 1) * tg_dim(y, 3)));
}

static TgTensor *op_attention(OnnxCall *c) {
  Heads h = {0};
  if (!heads_of(c, &h)) return NULL;
  Scores o = {.mask = input(c, 3), .scale = attr_f(c, "scale", 0), .softcap = attr_f(c, "softcap", 0)};
  o.shown_after = attr_i(c, "qk_matmul_output_mode", 0);
  attr_unused(c, "softmax_precision"); /* at least f32, whatever the model requests */
  o.may = onnx_seen(c, h.nq, h.nk, h.past, input(c, 6), attr_i(c, "is_causal", 0));
  if (o.mask && !(o.mask = mask_of(c, o.mask, h.nk))) return NULL;
  TgTensor *y = onnx_attend(&h, &o);
  if (c->nout > 3) c->out[3] = o.shown;
  return tg_ndim(c->in[0]) == 4 ? y : onnx_heads_joined(y);
}

/* ---- rotary positions: pairs of a head's numbers are rotated by an angle that depends on the position */
TgTensor *onnx_turn(TgTensor *h, TgTensor *cosines, TgTensor *sines, int64_t turned, bool inner) {
  int64_t half = turned / 2, size = tg_dim(h, 3);
  TgTensor *part = tg_slice(h, 3, 0, turned), *a, *b;
  if (inner) {
    TgTensor *pairs = tg_unflatten(part, 3, TG_SHAPE(half, 2));
    a = tg_select(pairs, 4, 0);
    b = tg_select(pairs, 4, 1);
  } else {
    a = tg_slice(part, 3, 0, half);
    b = tg_slice(part, 3, half, turned);
  }
  TgTensor *both[2] = {tg_sub(tg_mul(a, cosines), tg_mul(b, sines)),
                       tg_add(tg_mul(a, sines), tg_mul(b, cosines))};
  TgTensor *y = inner ? tg_flatten(tg_stack(both, 2, 4), 3, 4) : tg_cat(both, 2, 3);
  return turned < size ? tg_cat((TgTensor *[]){y, tg_slice(h, 3, turned, size)}, 2, 3) : y;
}

static TgTensor *op_rotary(OnnxCall *c) {
  TgTensor *x = c->in[0], *cosines = c->in[1], *sines = c->in[2], *at = input(c, 3);
  bool inner = attr_i(c, "interleaved", 0);
  TgTensor *h = onnx_by_heads(c, x, attr_i(c, "num_heads", 0));
  if (!h) return NULL;
  int64_t turned = attr_i(c, "rotary_embedding_dim", 0);
  turned = turned ? turned : tg_dim(h, 3);
  if (turned < 2 || turned > tg_dim(h, 3) || turned % 2)
    return call_fail(c, TG_ERR_SHAPE, "%lld turned numbers", (long long)turned);
  if (at) {
    cosines = tg_take(cosines, at);
    sines = tg_take(sines, at);
  }
  if (tg_ndim(cosines) != 3 || tg_size_of(cosines, 1) != tg_size_of(h, 2) || tg_dim(cosines, 2) != turned / 2)
    return call_fail(c, TG_ERR_SHAPE, "the tables of angles do not fit");
  TgTensor *y = onnx_turn(h, tg_unsqueeze(cosines, 1), tg_unsqueeze(sines, 1), turned, inner);
  return tg_ndim(x) == 4 ? y : shaped_as(tg_transpose(y, 1, 2), x);
}

/* ---- losses of (n, classes, ..) and labels (n, ..) */
static TgTensor *loss_of(OnnxCall *c, TgTensor *logp) {
  const char *how = attr_s(c, "reduction", "mean");
  TgTensor *labels = tg_long(c->in[1]), *weight = input(c, 2);
  const OnnxAttr *ignored = call_attr(c, "ignore_index", ONNX_INT);
  TgTensor *keep = ignored ? tg_ne_scalar(labels, (double)ignored->i) : NULL;
  TgTensor *at = keep ? tg_where(keep, labels, tg_zeros_like(labels)) : labels;
  TgTensor *loss = tg_neg(tg_squeeze(tg_gather(logp, 1, tg_unsqueeze(at, 1)), 1));
  TgTensor *w = weight ? tg_take(weight, at) : tg_ones_like(loss);
  if (keep) w = tg_where(keep, w, tg_zeros_like(w));
  loss = tg_mul(loss, w);
  if (!strcmp(how, "none")) return loss;
  if (!strcmp(how, "sum")) return tg_sum(loss);
  if (strcmp(how, "mean")) return call_fail(c, TG_ERR_VALUE, "reduction %.40s", how);
  return tg_div(tg_sum(loss), tg_sum(w));
}

static bool losses_fit(OnnxCall *c) {
  if (tg_ndim(c->in[0]) >= 2 && tg_ndim(c->in[1]) == tg_ndim(c->in[0]) - 1) return true;
  return call_fail(c, TG_ERR_SHAPE, "labels of %d axes for %d", tg_ndim(c->in[1]), tg_ndim(c->in[0])), false;
}

static TgTensor *op_nll(OnnxCall *c) { return losses_fit(c) ? loss_of(c, c->in[0]) : NULL; }

static TgTensor *op_softmax_loss(OnnxCall *c) {
  if (!losses_fit(c)) return NULL;
  TgTensor *logp = tg_log_softmax(c->in[0], .axis = TG_AXES(1));
  if (c->nout > 1) c->out[1] = logp;
  return loss_of(c, logp);
}

const OnnxOp onnx_ops_attention[] = {ONNX_SIZED("Attention", 23, 3, 7, op_attention),
                                     ONNX_SIZED("RotaryEmbedding", 23, 3, 4, op_rotary),
                                     ONNX_SIZED("NegativeLogLikelihoodLoss", 12, 2, 3, op_nll),
                                     ONNX_SIZED("SoftmaxCrossEntropyLoss", 12, 2, 3, op_softmax_loss),
                                     {0}};
