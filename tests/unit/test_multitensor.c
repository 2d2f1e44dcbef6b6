/* test_multitensor.c: tinygrad's tests of tensors on several devices, by name (test/unit/test_multitensor.py
 * there). Expected values are by hand, or those of the same program on one device. What tinygrad refuses
 * because sizes do not divide, or because items would move between devices, is right here. */
#include "shard.inc"

static TgTensor *ones(int64_t n) { return tg_clone(tg_ones(C, TG_SHAPE(n))); }

/* axis -1: on each of n devices */
static TgTensor *put(TgTensor *x, int n, int axis) {
  return axis < 0 ? tg_replicate(x, n, D) : tg_shard(x, n, D, axis);
}

static void arange_shrink(void **state) {
  (void)state;
  TgTensor *x = tg_shard(tg_arange(C, 0, 4), 2, D, 0);
  OK(tg_realize(x));
  TEXT(tg_slice(x, 0, 2, 4), "[2, 3]");
  TEXT(tg_slice(x, 0, 0, 2), "[0, 1]");
}

static void shard_like(void **state) {
  (void)state;
  for (int axis = -1; axis < 1; axis++) {
    TgTensor *x = put(tg_ones(C, TG_SHAPE(256)), 2, axis), *y = tg_shard_like(tg_zeros(C, TG_SHAPE(256)), x);
    assert_int_equal(tg_shard_axis(y), axis);
    assert_string_equal(tg_device(y), tg_device(x));
    assert_int_equal(tg_shard_axis(tg_shard_like(put(tg_ones(C, TG_SHAPE(256)), 2, 0), x)), axis);
  }
  assert_string_equal(tg_device(tg_shard_like(ones(4), ones(4))), tg_default_device(C));
}

static void shard_reshape(void **state) {
  (void)state;
  TgTensor *t = tg_shard(ones(4), 2, D, 0);
  TEXT(tg_reshape(t, TG_SHAPE(2, 2)), "[[1.0, 1.0], [1.0, 1.0]]");
  BOUNDS(tg_reshape(t, TG_SHAPE(2, 2)), 0, 0, 1, 2);
}

static void shard_elementwise(void **state) {
  (void)state;
  TgTensor *t = tg_shard(ones(4), 2, D, 0);
  TEXT(tg_reshape(tg_add(t, t), TG_SHAPE(2, 2)), "[[2.0, 2.0], [2.0, 2.0]]");
}

static void alu_deviceless_const(void **state) {
  (void)state;
  TgTensor *s = tg_shard(X("[1.0, 2.0, 3.0, 4.0]"), 2, D, 0);
  TEXT(tg_add(s, tg_full(C, TG_SCALAR, 1)), "[2.0, 3.0, 4.0, 5.0]");
  TEXT(tg_add(s, tg_full(C, TG_SHAPE(4), 1)), "[2.0, 3.0, 4.0, 5.0]");
}

static void add_rank_expand_shard(void **state) {
  (void)state;
  TgTensor *a = tg_shard(X("[1.0, 2.0, 3.0, 4.0]"), 2, D, 0),
           *b = tg_replicate(X("[[10.0, 20.0, 30.0, 40.0]]"), 2, D);
  assert_int_equal(tg_shard_axis(tg_add(a, b)), 1);
  TEXT(tg_add(a, b), "[[11.0, 22.0, 33.0, 44.0]]");
}

static void shard_reduce(void **state) {
  (void)state;
  TgTensor *t = tg_reshape(tg_shard(ones(6), 2, D, 0), TG_SHAPE(2, 3));
  TEXT(tg_sum(t, .axis = TG_AXES(1)), "[3.0, 3.0]");
  TEXT(tg_sum(t, .axis = TG_AXES(0)), "[2.0, 2.0, 2.0]");
}

static void shard_not_multiple(void **state) {
  (void)state;
  BOUNDS(tg_shard(ones(256), 3, D, 0), 0, 0, 86, 171, 256);
  TEXT(tg_sum(tg_shard(ones(256), 3, D, 0)), "256.0");
}

static void shard_reshape_cross_boundary(void **state) {
  (void)state;
  TgTensor *x = tg_shard(counted(2, (const int64_t[]){5, 4}), 2, D, 1);
  EQUAL(tg_reshape(x, TG_SHAPE(10, 2)), tg_reshape(counted(2, (const int64_t[]){5, 4}), TG_SHAPE(10, 2)));
  BOUNDS(tg_reshape(x, TG_SHAPE(10, 2)), -1, 0);
}

static void sharded_arange(void **state) {
  (void)state;
  TgTensor *t = tg_shard(tg_clone(tg_arange(C, 0, 1000)), 2, D, 0);
  OK(tg_realize(t));
  EQUAL(t, tg_arange(C, 0, 1000));
}

static void shard_plus_one_sum(void **state) {
  (void)state;
  TEXT(tg_sum(tg_add_scalar(tg_shard(ones(256), 2, D + 1, 0), 1)), "512.0");
  const char *far[] = {D[0], D[2]};
  TEXT(tg_sum(tg_add_scalar(tg_shard(ones(256), 2, far, 0), 1)), "512.0");
}

static void simple_add(void **state) { /* and _X, _W, _XW */
  (void)state;
  for (int k = 0; k < 4; k++)
    EQUAL(tg_add(put(ones(256), 2, k % 2 - 1), put(ones(256), 2, k / 2 - 1)), tg_full(C, TG_SHAPE(256), 2));
}

static void allreduce_shard_ring_sum(void **state) {
  (void)state;
  for (int way = 1; way <= 3; way++)
    for (int axis = -1; axis < 2; axis++) {
      tg_setting(C, "ALLREDUCE", way);
      TEXT(tg_sum(put(X("[[1, 2], [3, 4]]"), 2, axis)), "10");
    }
}

static void allreduce_cast_half(void **state) { /* and _assign */
  (void)state;
  TgTensor *x = tg_cast(tg_reshape(tg_arange(C, 0, 6), TG_SHAPE(2, 3)), TG_F16);
  for (int assign = 0; assign < 2; assign++) {
    TgTensor *a = tg_shard(tg_clone(x), 2, D, 0), *b = tg_shard(tg_clone(x), 2, D, 0), *t = tg_add(a, b);
    if (assign) t = tg_assign(tg_empty_like(b), t);
    OK(tg_realize(t));
    for (int cast = 0; cast < 2; cast++) {
      tg_setting(C, "ALLREDUCE_CAST", cast);
      tg_counters_reset(C);
      TgTensor *sum = tg_sum(tg_float(t), .axis = TG_AXES(0));
      OK(tg_realize(sum));
      assert_int_equal(copied(), 2 * 3 * (cast ? 2 : 4));
      EQUAL(sum, tg_sum(tg_float(tg_add(x, x)), .axis = TG_AXES(0)));
    }
  }
}

static void to_single_device(void **state) { /* multiple_to_single_device, to_single_device_gather_memory */
  (void)state;
  const int64_t shape[] = {64, 32};
  for (int n = 2; n <= 4; n += 2)
    for (int axis = 0; axis < 2; axis++) {
      TgTensor *s = tg_shard(counted(2, shape), n, D, axis);
      OK(tg_realize(s));
      tg_counters_reset(C);
      TgTensor *t = tg_to(s, D[0]);
      OK(tg_realize(t));
      assert_int_equal(copied(), 64 * 32 * 4 * (n - 1) / n);
      assert_string_equal(tg_device(t), D[0]);
      EQUAL(t, counted(2, shape));
    }
}

static TgStatus sums(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nout, (void)user;
  out[0] = tg_sum(in[0], .axis = TG_AXES(0));
  if (nin > 1) out[0] = tg_add(out[0], tg_sum(in[1], .axis = TG_AXES(0)));
  return tg_error(c);
}

static void jit_inputs(
    void **state) { /* multitensor_jit_input_reduce_shard_axis, _multiple_inputs, _different_sharding */
  (void)state;
  for (int two = 0; two < 2; two++) {
    TgJit *j = tg_jit(C, sums, NULL);
    for (int i = 0; i < 5; i++) {
      TgTensor *x = tg_add_scalar(counted(2, (const int64_t[]){2, 64}), i), *out;
      TgTensor *in[2] = {tg_shard(x, 2, D, 0), tg_shard(x, 2, D, 1)};
      OK(tg_jit_run(j, in, 1 + two, &out, 1));
      SAME(out, tg_mul_scalar(tg_sum(x, .axis = TG_AXES(0)), 1 + two), 1e-6);
    }
    tg_jit_free(j);
  }
}

static void matmul_shard(void **state) { /* all of matmul_shard_* and double_matmul_shard_* */
  (void)state;
  const int64_t d[] = {24, 24};
  TgTensor *x = counted(2, d), *w = tg_mul_scalar(counted(2, d), 0.25),
           *v = tg_mul_scalar(tg_transpose(w, 0, 1), 0.25);
  for (int k = 0; k < 9; k++) {
    TgTensor *y = tg_matmul(put(x, 4, k % 3 - 1), put(w, 4, k / 3 - 1));
    SAME(y, tg_matmul(x, w), 1e-5);
    SAME(tg_matmul(y, put(v, 4, k / 3 - 1)), tg_matmul(tg_matmul(x, w), v), 1e-4);
  }
}

static void convolved(TgTensor *x, TgTensor *w, TgTensor *b, TgTensor **y, TgTensor **g) {
  TgTensor *at[3] = {x, w, b};
  *y = tg_relu(tg_conv2d(x, w, .bias = b));
  OK(tg_gradient(tg_sum(tg_mul(*y, *y)), at, 3, g));
}

static void conv(void **state) { /* conv_data_shard, conv_bias_data_shard, backprop_conv */
  (void)state;
  TgTensor *x = tg_mul_scalar(counted(4, (const int64_t[]){4, 3, 6, 6}), 0.2),
           *b = counted(1, (const int64_t[]){5});
  TgTensor *w = tg_mul_scalar(counted(4, (const int64_t[]){5, 3, 3, 3}), 0.2), *y, *g[3], *sy, *sg[3];
  convolved(x, w, b, &y, g);
  for (int k = 0; k < 2; k++) {
    convolved(put(x, 4, 0), put(w, 4, -k), put(b, 4, -1), &sy, sg);
    assert_int_equal(tg_shard_axis(sy), 0);
    SAME(sy, y, 1e-5);
    for (int i = 0; i < 3; i++)
      SAME(sg[i], g[i], 1e-4);
  }
}

static void backward_sum(void **state) {
  (void)state;
  TgTensor *x = tg_shard(counted(2, (const int64_t[]){3, 2}), 2, D, 0),
           *w = tg_requires_grad(tg_replicate(ones(2), 2, D), true);
  OK(tg_backward(tg_sum(tg_mul(x, w))));
  SAME(tg_grad(w), tg_sum(counted(2, (const int64_t[]){3, 2}), .axis = TG_AXES(0)), 1e-6);
}

static void embedding(void **state) { /* and embedding_backward, _shard_weight */
  (void)state;
  TgTensor *w = counted(2, (const int64_t[]){10, 4}), *i = X("[[1, 9, 3, 3], [0, 2, 1, 5]]"), *g, *sg;
  TgTensor *y = tg_embedding(w, i);
  OK(tg_gradient(tg_sum(tg_mul(y, y)), &w, 1, &g));
  for (int k = 0; k < 9; k++) {
    TgTensor *sw = put(w, 4, k % 3 - 1), *sy = tg_embedding(sw, put(i, 4, k / 3 - 1));
    EQUAL(sy, y);
    OK(tg_gradient(tg_sum(tg_mul(sy, sy)), &sw, 1, &sg));
    SAME(sg, g, 1e-5);
  }
}

static void rmsnorm(void **state) {
  (void)state;
  TgTensor *x = counted(3, (const int64_t[]){4, 8, 16});
  for (int axis = 0; axis < 3; axis++)
    SAME(tg_rms_norm(put(x, 4, axis)), tg_rms_norm(x), 1e-5);
}

static void sdpa_causal_shard_batch(void **state) {
  (void)state;
  TgTensor *q = counted(4, (const int64_t[]){4, 2, 5, 8});
  TgTensor *want = tg_scaled_dot_product_attention(q, q, q, .causal = true);
  for (int axis = 0; axis < 2; axis++) {
    TgTensor *s = put(q, 2, axis), *y = tg_scaled_dot_product_attention(s, s, s, .causal = true);
    assert_int_equal(tg_shard_axis(y), axis);
    SAME(y, want, 1e-5);
  }
}

static void bn_ast_on_devices(void **state) { /* batchnorm, synced: statistics over all devices */
  (void)state;
  TgTensor *x = counted(4, (const int64_t[]){8, 3, 4, 4});
  for (int training = 0; training < 2; training++) {
    tg_set_training(C, training);
    TgBatchNorm bn = tg_batch_norm_new(C, 3), sbn = tg_batch_norm_new(C, 3);
    OK(tg_module_shard(tg_batch_norm_module, &sbn, 4, D, NULL, 0));
    TgTensor *y = tg_batch_norm_run(&bn, x), *sy = tg_batch_norm_run(&sbn, put(x, 4, 0));
    SAME(sy, y, 1e-5);
    SAME(sbn.running_mean, bn.running_mean, 1e-6);
    tg_module_free(tg_batch_norm_module, &bn), tg_module_free(tg_batch_norm_module, &sbn);
  }
  tg_set_training(C, false);
}

static void unsynced(void **state) { /* unsynced_backprop_standalone_bn: a norm for each part of the batch */
  (void)state;
  TgTensor *x = counted(2, (const int64_t[]){8, 6}), *s = put(x, 2, 0), *y[2], *sy[2], *g, *sg;
  for (int k = 0; k < 2; k++) {
    y[k] = tg_layer_norm(tg_transpose(tg_slice(x, 0, 4 * k, 4 * k + 4), 0, 1));
    sy[k] = tg_layer_norm(tg_transpose(tg_slice(s, 0, 4 * k, 4 * k + 4), 0, 1));
  }
  TgTensor *all = tg_cat(y, 2, 1), *sall = tg_cat(sy, 2, 1);
  SAME(sall, all, 1e-5);
  OK(tg_gradient(tg_sum(tg_exp(all)), &x, 1, &g));
  OK(tg_gradient(tg_sum(tg_exp(sall)), &s, 1, &sg));
  SAME(sg, g, 1e-4);
}

static void flip(void **state) {
  (void)state;
  TgTensor *x = counted(2, (const int64_t[]){8, 8});
  for (int axis = 0; axis < 2; axis++)
    for (int by = 0; by < 2; by++)
      EQUAL(tg_flip(put(x, 4, axis), TG_SHAPE(by)), tg_flip(x, TG_SHAPE(by)));
}

static void reshape_on_axis(void **state) {
  (void)state;
  const int64_t d[] = {8, 8, 8};
  TgTensor *x = counted(3, d), *s = put(x, 4, 1);
  assert_int_equal(tg_shard_axis(tg_reshape(s, TG_SHAPE(8, 2, 4, 8))), -1); /* 2 steps for 4 devices */
  assert_int_equal(tg_shard_axis(tg_reshape(s, TG_SHAPE(8, 4, 2, 8))), 1);
  assert_int_equal(tg_shard_axis(tg_reshape(s, TG_SHAPE(8, 64))), 1);
  assert_int_equal(tg_shard_axis(tg_reshape(s, TG_SHAPE(2, 4, 8, 8))), 2);
  assert_int_equal(tg_shard_axis(tg_reshape(s, TG_SHAPE(64, 8))), -1);
  EQUAL(tg_reshape(s, TG_SHAPE(64, 8)), tg_reshape(x, TG_SHAPE(64, 8)));
}

static void mlb_assign_change_axis(void **state) {
  (void)state;
  TgTensor *t = tg_replicate(ones(4), 2, D), *u = tg_shard(ones(4), 2, D, 0);
  OK(tg_realize(t));
  tg_assign(t, tg_add_scalar(u, 1));
  TEXT(t, "[2.0, 2.0, 2.0, 2.0]");
  assert_int_equal(tg_shard_axis(t), -1); /* memory stays as it is split */
}

static void clone_and_memory(void **state) { /* shard_memory, clone */
  (void)state;
  TgTensor *t = tg_shard(ones(16), 4, D, 0), *u;
  OK(tg_realize(t));
  for (int i = 0; i < 4; i++)
    assert_int_equal(tg_numel(tg_shard_part(t, i)), 4);
  u = tg_clone(t);
  tg_assign(t, tg_zeros_like(t));
  TEXT(tg_sum(u), "16.0");
  BOUNDS(u, 0, 0, 4, 8, 12, 16);
}

static void full_like_on_shard(void **state) { /* and _axis; multi_const_folding */
  (void)state;
  for (int axis = -1; axis < 2; axis++) {
    TgTensor *t = put(counted(2, (const int64_t[]){16, 16}), 4, axis), *f = tg_full_like(t, 3);
    assert_int_equal(tg_shard_axis(f), axis);
    EQUAL(tg_mul(t, f), tg_mul_scalar(counted(2, (const int64_t[]){16, 16}), 3));
    EQUAL(tg_add(t, tg_zeros_like(t)), counted(2, (const int64_t[]){16, 16}));
  }
}

static void add_different_tensors(void **state) { /* and add_two_partitions, ops, shrink_bad_args */
  (void)state;
  TgTensor *x = counted(2, (const int64_t[]){8, 8}), *s = put(x, 4, 0);
  TgTensor *two = tg_add(tg_slice(s, 0, 0, 2), tg_slice(s, 0, 6, 8));
  EQUAL(two, tg_add(tg_slice(x, 0, 0, 2), tg_slice(x, 0, 6, 8)));
  EQUAL(tg_add(tg_slice(s, 0, 1, 6), tg_slice(s, 0, 3, 8)),
        tg_add(tg_slice(x, 0, 1, 6), tg_slice(x, 0, 3, 8)));
  EQUAL(tg_pad(tg_slice(s, 0, 2, 4), (const int64_t[]){2, 0}, (const int64_t[]){4, 0}),
        tg_pad(tg_slice(x, 0, 2, 4), (const int64_t[]){2, 0}, (const int64_t[]){4, 0}));
  ERROR(tg_shrink(s, (const int64_t[]){3, 0}, (const int64_t[]){9, 8}), TG_ERR_SHAPE, "shrink");
}

static void from_npy(void **state) {
  (void)state;
  TgTensor *t = tg_cast(tg_arange(C, 0, 100), TG_U32);
  EQUAL(tg_add_scalar(tg_shard(tg_clone(t), 2, D, 0), 1), tg_add_scalar(t, 1));
}

static void
multi_assign(void **state) { /* multi_assign_realized, _unrealized, _scalar, _const_like, _piece.. */
  (void)state;
  for (int k = 0; k < 4; k++) {
    TgTensor *out = tg_shard(tg_clone(tg_zeros(C, TG_SHAPE(4))), 2, D, 0), *one = tg_shard(ones(4), 2, D, 0);
    if (k % 2) OK(tg_realize(out));
    if (k / 2) OK(tg_realize(one));
    tg_assign(out, one);
    TEXT(out, "[1.0, 1.0, 1.0, 1.0]");
    tg_assign(out, tg_full(C, TG_SCALAR, 0));
    TEXT(out, "[0.0, 0.0, 0.0, 0.0]");
    tg_assign(out, tg_full_like(out, 7));
    TEXT(out, "[7.0, 7.0, 7.0, 7.0]");
    TgTensor *m = tg_shard(tg_clone(tg_zeros(C, TG_SHAPE(2, 3))), 2, D, 0);
    if (k % 2) OK(tg_realize(m));
    tg_assign_slice(m, (const int64_t[]){0, 1}, (const int64_t[]){2, 2},
                    tg_shard(tg_ones(C, TG_SHAPE(2, 1)), 2, D, 0));
    TEXT(m, "[[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]");
  }
}

static TgStatus writes_at(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)out, (void)nout;
  TgVariable *i = user;
  int64_t at = tg_size(i), begin[] = {0, at}, end[] = {4, tg_size_add(c, at, 1)};
  tg_assign_slice(in[0], begin, end, in[1]);
  tg_assign(in[1], tg_add_scalar(in[1], 1));
  return tg_realize_many(in, 2);
}

static void multi_assign_var_offset_jit(void **state) { /* and _none */
  (void)state;
  for (int axis = -1; axis < 1; axis++) {
    TgTensor *in[2] = {put(tg_clone(tg_zeros(C, TG_SHAPE(4, 6))), 2, axis),
                       put(tg_clone(tg_ones(C, TG_SHAPE(4, 1))), 2, axis)};
    OK(tg_realize_many(in, 2));
    TgVariable *i = tg_variable(C, axis < 0 ? "i" : "k", 0, 5);
    TgJit *j = tg_jit(C, writes_at, i);
    for (int k = 1; k < 5; k++) {
      OK(tg_variable_bind(i, k));
      OK(tg_jit_run(j, in, 2, NULL, 0));
    }
    TEXT(tg_shard_part(in[0], 0), axis < 0
                                      ? "[[0.0, 1.0, 2.0, 3.0, 4.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0, 0.0], "
                                        "[0.0, 1.0, 2.0, 3.0, 4.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]]"
                                      : "[[0.0, 1.0, 2.0, 3.0, 4.0, 0.0], [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]]");
    tg_jit_free(j);
  }
}

static TgTensor *sixteen(int axis) {
  TgTensor *t = put(tg_clone(tg_arange(C, 0, 16)), 4, axis);
  OK(tg_realize(t));
  return t;
}

static void setitem(void **state) { /* all of TestMultiSetitem */
  (void)state;
  TgTensor *t;
  for (int axis = -1; axis < 1; axis++) {
    tg_setitem_scalar(t = sixteen(axis), TG_IDX(TG_AT(1)), 99);
    TEXT(t, "[0, 99, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]");
    tg_setitem_scalar(t = sixteen(axis), TG_IDX(TG_SLICE(2, 6)), 99);
    TEXT(t, "[0, 1, 99, 99, 99, 99, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]");
    tg_setitem_scalar(t = sixteen(axis), TG_IDX(TG_ALL), 42);
    EQUAL(t, tg_full(C, TG_SHAPE(16), 42, .dtype = TG_I32));
    tg_setitem_scalar(t = sixteen(axis), TG_IDX(TG_SLICE(0, 16, 4)), 0);
    TEXT(t, "[0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 0, 13, 14, 15]");
    tg_setitem(t = sixteen(axis), TG_IDX(TG_SLICE(2, 6)), put(X("[90, 91, 92, 93]"), 4, -1));
    TEXT(t, "[0, 1, 90, 91, 92, 93, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]");
    tg_setitem(t = sixteen(axis), TG_IDX(TG_SLICE(0, 16, 4)), put(X("[90, 91, 92, 93]"), 4, 0));
    TEXT(t, "[90, 1, 2, 3, 91, 5, 6, 7, 92, 9, 10, 11, 93, 13, 14, 15]");
  }
}

static void interpolate(void **state) {
  (void)state;
  TgTensor *x = counted(3, (const int64_t[]){4, 8, 8});
  SAME(tg_interpolate(put(x, 2, 0), TG_SHAPE(5, 5)), tg_interpolate(x, TG_SHAPE(5, 5)), 1e-6);
}

static void bitcast(void **state) { /* also to another size */
  (void)state;
  TgTensor *x = counted(2, (const int64_t[]){8, 6});
  for (int axis = -1; axis < 2; axis++) {
    EQUAL(tg_bitcast(put(x, 2, axis), TG_I32), tg_bitcast(x, TG_I32));
    EQUAL(tg_bitcast(put(x, 2, axis), TG_I16), tg_bitcast(x, TG_I16));
  }
}

static void
symbolic(void **state) { /* symbolic_broadcast_copy, _consumed; test_allreduce's test_symbolic_shape */
  (void)state;
  TgVariable *v = tg_variable(C, "rows", 1, 4);
  TgTensor *t = tg_shard(tg_clone(tg_ones(C, TG_SHAPE(4, 4))), 2, D, 1),
           *x = tg_clone(tg_ones(C, TG_SHAPE(4, 4)));
  for (int rows = 1; rows < 5; rows++) {
    OK(tg_variable_bind(v, rows));
    TgTensor *sum = tg_sum(tg_slice(t, 0, 0, tg_size(v)), .axis = TG_AXES(1));
    double all = tg_item_f64(tg_sum(sum)),
           copied = tg_item_f64(tg_sum(tg_replicate(tg_slice(x, 0, 0, tg_size(v)), 2, D)));
    if (all != 4 * rows || copied != 4 * rows)
      fail_msg("%d rows: %g and %g: %s", rows, all, copied, tg_errmsg(C));
  }
}

static void
lr_scheduler(void **state) { /* lr_scheduler_OneCycleLR: numbers of an optimiser of sharded tensors */
  (void)state;
  TgTensor *w = tg_replicate(ones(4), 2, D);
  TgOptim *o = tg_adam(C, &w, 1, .lr = 0.1);
  OK(tg_optim_set_lr(o, 0.25));
  OK(tg_backward(tg_sum(tg_mul(w, w))));
  OK(tg_optim_step(o));
  SAME(w, tg_full(C, TG_SHAPE(4), 0.75), 1e-6);
  tg_optim_free(o);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(arange_shrink),
      CASE(shard_like),
      CASE(shard_reshape),
      CASE(shard_elementwise),
      CASE(alu_deviceless_const),
      CASE(add_rank_expand_shard),
      CASE(shard_reduce),
      CASE(shard_not_multiple),
      CASE(shard_reshape_cross_boundary),
      CASE(sharded_arange),
      CASE(shard_plus_one_sum),
      CASE(simple_add),
      CASE(allreduce_shard_ring_sum),
      CASE(allreduce_cast_half),
      CASE(to_single_device),
      CASE(jit_inputs),
      CASE(matmul_shard),
      CASE(conv),
      CASE(backward_sum),
      CASE(embedding),
      CASE(rmsnorm),
      CASE(sdpa_causal_shard_batch),
      CASE(bn_ast_on_devices),
      CASE(unsynced),
      CASE(flip),
      CASE(reshape_on_axis),
      CASE(mlb_assign_change_axis),
      CASE(clone_and_memory),
      CASE(full_like_on_shard),
      CASE(add_different_tensors),
      CASE(from_npy),
      CASE(multi_assign),
      CASE(multi_assign_var_offset_jit),
      CASE(setitem),
      CASE(interpolate),
      CASE(bitcast),
      CASE(symbolic),
      CASE(lr_scheduler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
