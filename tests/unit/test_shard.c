/* test_shard.c: tensors on several devices. Expected values are by hand, or those of the same program on one
 * device. */
#include "shard.inc"
#include <unistd.h>

/* ---- where parts are */
static void split(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]"), *s = tg_shard(x, 4, D, 0);
  BOUNDS(s, 0, 0, 2, 4, 6, 7);
  TEXT(s, "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]");
  TEXT(tg_add(s, s), "[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]");
  TEXT(tg_sum(s), "28.0");
  TEXT(tg_gather_to(s, D[2]), "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]");
  for (int i = 0; i < 4; i++)
    assert_string_equal(tg_device(tg_shard_part(s, i)), D[i]);
  TEXT(tg_shard_part(s, 3), "[7.0]");
  assert_int_equal(tg_shard_count(s), 4);
  assert_int_equal(tg_shard_count(x), 1);
  TgTensor *r = tg_replicate(x, 4, D);
  BOUNDS(r, -1, 0);
  int64_t none[5];
  assert_int_equal(tg_shard_bounds(r, none), TG_ERR_VALUE);
  ERROR(NULL, TG_ERR_VALUE, "on each device");
  assert_int_equal(tg_shard_bounds(x, none), TG_ERR_VALUE);
  ERROR(NULL, TG_ERR_VALUE, "alone");
  TEXT(tg_mul(r, s), "[1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0]");
  BOUNDS(tg_mul(r, s), 0, 0, 2, 4, 6, 7);
  TEXT(tg_sub(tg_shard(x, 4, D, 0, .bounds = (const int64_t[]){0, 0, 5, 7, 7}), s),
       "[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]");
}

/* ---- each operation, against one device */
static void operations(void **state) {
  (void)state;
  const int64_t shape[] = {6, 5, 7};
  for (int axis = -1; axis < 3; axis++)
    for (int uneven = 0; uneven < 2; uneven++) {
      OK(tg_scope_begin(C));
      TgTensor *x = counted(3, shape);
      const int64_t odd[3][5] = {{0, 0, 4, 4, 6}, {0, 1, 1, 4, 5}, {0, 5, 5, 6, 7}};
      TgTensor *s = axis < 0 ? tg_replicate(x, 4, D)
                    : uneven ? tg_shard(x, 4, D, axis, .bounds = odd[axis])
                             : tg_shard(x, 4, D, axis);
      EQUAL(s, x);
      EQUAL(tg_exp(s), tg_exp(x));
      EQUAL(tg_where(tg_gt_scalar(s, 1), s, tg_neg(s)), tg_where(tg_gt_scalar(x, 1), x, tg_neg(x)));
      EQUAL(tg_cast(s, TG_I32), tg_cast(x, TG_I32));
      EQUAL(tg_bitcast(s, TG_I32), tg_bitcast(x, TG_I32));
      for (int a = 0; a < 3; a++) {
        SAME(tg_sum(s, .axis = TG_AXES(a)), tg_sum(x, .axis = TG_AXES(a)), 1e-6);
        EQUAL(tg_max(s, .axis = TG_AXES(a), .keepdim = true), tg_max(x, .axis = TG_AXES(a), .keepdim = true));
        SAME(tg_softmax(s, .axis = TG_AXES(a)), tg_softmax(x, .axis = TG_AXES(a)), 1e-6);
        EQUAL(tg_argmax(s, .axis = TG_AXES(a)), tg_argmax(x, .axis = TG_AXES(a)));
        EQUAL(tg_argmax(s, .keepdim = true), tg_reshape(tg_argmax(x), TG_SHAPE(1, 1, 1)));
        EQUAL(tg_cumsum(s, a), tg_cumsum(x, a));
        EQUAL(tg_flip(s, TG_SHAPE(a)), tg_flip(x, TG_SHAPE(a)));
        EQUAL(tg_slice(s, a, 1, 4), tg_slice(x, a, 1, 4));
        EQUAL(tg_cat((TgTensor *[]){s, tg_exp(s)}, 2, a), tg_cat((TgTensor *[]){x, tg_exp(x)}, 2, a));
        EQUAL(tg_stack((TgTensor *[]){s, s}, 2, a), tg_stack((TgTensor *[]){x, x}, 2, a));
        EQUAL(tg_sort(s, NULL, .axis = TG_AXES(a)), tg_sort(x, NULL, .axis = TG_AXES(a)));
      }
      EQUAL(tg_add(s, tg_flip(s, TG_SHAPE(0, 1, 2))), tg_add(x, tg_flip(x, TG_SHAPE(0, 1, 2))));
      EQUAL(tg_permute(s, TG_SHAPE(2, 0, 1)), tg_permute(x, TG_SHAPE(2, 0, 1)));
      EQUAL(tg_reshape(s, TG_SHAPE(6, 35)), tg_reshape(x, TG_SHAPE(6, 35)));
      EQUAL(tg_reshape(s, TG_SHAPE(30, 7)), tg_reshape(x, TG_SHAPE(30, 7)));
      EQUAL(tg_reshape(s, TG_SHAPE(7, 30)), tg_reshape(x, TG_SHAPE(7, 30)));
      EQUAL(tg_reshape(s, TG_SHAPE(2, 3, 5, 1, 7)), tg_reshape(x, TG_SHAPE(2, 3, 5, 1, 7)));
      EQUAL(tg_reshape(s, TG_SHAPE(-1)), tg_reshape(x, TG_SHAPE(-1)));
      TgTensor *none = tg_slice(x, 0, 0, 0),
               *no = axis == 1 ? tg_shard(none, 4, D, 1) : tg_replicate(none, 4, D);
      EQUAL(tg_reshape(tg_exp(no), TG_SHAPE(0, 5, 7, 1)), tg_reshape(tg_exp(none), TG_SHAPE(0, 5, 7, 1)));
      EQUAL(tg_reshape(tg_exp(no), TG_SHAPE(0, 35, 2)), tg_reshape(tg_exp(none), TG_SHAPE(0, 35, 2)));
      SAME(tg_mean(s), tg_mean(x), 1e-6);
      SAME(tg_var(s), tg_var(x), 1e-5);
      TgTensor *w = counted(2, (const int64_t[]){7, 4});
      for (int b = -1; b < 2; b++) {
        TgTensor *sw = b < 0 ? tg_replicate(w, 4, D) : tg_shard(w, 4, D, b);
        SAME(tg_matmul(s, sw), tg_matmul(x, w), 1e-5);
      }
      TgTensor *index = X("[[4, 0, 1], [2, 2, 3]]");
      EQUAL(tg_getitem(s, TG_IDX(TG_TENSOR(tg_replicate(index, 4, D)))),
            tg_getitem(x, TG_IDX(TG_TENSOR(index))));
      EQUAL(tg_getitem(s, TG_IDX(TG_TENSOR(tg_shard(index, 4, D, 1)))),
            tg_getitem(x, TG_IDX(TG_TENSOR(index))));
      EQUAL(tg_getitem(s, TG_IDX(TG_AT(3), TG_SLICE(0, 5, 2))),
            tg_getitem(x, TG_IDX(TG_AT(3), TG_SLICE(0, 5, 2))));
      EQUAL(tg_getitem(s, TG_IDX(TG_ALL, TG_ALL, TG_AT(-1))),
            tg_getitem(x, TG_IDX(TG_ALL, TG_ALL, TG_AT(-1))));
      EQUAL(tg_pad(s, (const int64_t[]){1, 0, 3}, (const int64_t[]){0, 9, 2}),
            tg_pad(x, (const int64_t[]){1, 0, 3}, (const int64_t[]){0, 9, 2}));
      if (tg_error(C)) fail_msg("axis %d: %s", axis, tg_errmsg(C));
      OK(tg_scope_end(C));
    }
}

/* ---- gradients */
static void gradients(void **state) {
  (void)state;
  TgTensor *x = counted(2, (const int64_t[]){8, 6}), *w = counted(2, (const int64_t[]){6, 5});
  TgTensor *b = counted(1, (const int64_t[]){5}), *want[3], *got[3];
  TgTensor *y = tg_add(tg_matmul(x, w), b);
  TgTensor *loss = tg_mean(tg_mul(tg_softmax(y), tg_tanh(y)));
  OK(tg_gradient(loss, (TgTensor *[]){x, w, b}, 3, want));
  for (int k = 0; k < 12; k++) {
    int ax = k % 3 - 1, aw = k / 3 % 2, ab = k / 6 - 1;
    TgTensor *sx = ax < 0 ? tg_replicate(x, 4, D) : tg_shard(x, 4, D, ax);
    TgTensor *sw = tg_shard(w, 4, D, aw), *sb = ab < 0 ? tg_replicate(b, 4, D) : tg_shard(b, 4, D, ab);
    TgTensor *sy = tg_add(tg_matmul(sx, sw), sb);
    TgTensor *l = tg_mean(tg_mul(tg_softmax(sy), tg_tanh(sy)));
    SAME(l, loss, 1e-6);
    OK(tg_gradient(l, (TgTensor *[]){sx, sw, sb}, 3, got));
    for (int i = 0; i < 3; i++)
      SAME(got[i], want[i], 1e-5);
    OK(tg_gradient(l, (TgTensor *[]){x, w, b}, 3, got)); /* through the split, back to where it was */
    for (int i = 0; i < 3; i++) {
      assert_string_equal(tg_device(got[i]), tg_default_device(C));
      SAME(got[i], want[i], 1e-5);
    }
  }
  /* a value in memory between, and a gather */
  TgTensor *sw = tg_requires_grad(tg_shard(w, 4, D, 0), true);
  TgTensor *h = tg_exp(tg_mul_scalar(sw, 0.1));
  OK(tg_realize(h));
  OK(tg_backward(tg_sum(tg_mul(tg_gather_to(h, D[1]), tg_gather_to(h, D[1])))));
  OK(tg_gradient(tg_sum(tg_exp(tg_mul_scalar(w, 0.2))), &w, 1, want));
  SAME(tg_grad(sw), want[0], 1e-5);
  OK(tg_realize(tg_grad(sw)));
  SAME(tg_grad(sw), want[0], 1e-5);
  /* through what was assigned and waits, to where it came from, on one device and on several */
  TgTensor *v = tg_clone(w), *sv = tg_shard(w, 4, D, 1), *to = tg_clone(tg_shard(tg_zeros_like(w), 4, D, 1));
  OK(tg_realize_many((TgTensor *[]){v, sv, to}, 3));
  tg_assign(to, tg_mul(tg_shard(v, 4, D, 0), tg_exp(sv)));
  OK(tg_gradient(tg_sum(tg_mul(to, to)), (TgTensor *[]){v, sv, to}, 3, got));
  TgTensor *e = tg_exp(w), *prod = tg_mul(w, e);
  SAME(got[0], tg_mul_scalar(tg_mul(prod, e), 2), 1e-5);
  SAME(got[1], tg_mul_scalar(tg_mul(prod, prod), 2), 1e-5);
  SAME(got[2], tg_mul_scalar(prod, 2), 1e-5);
}

/* ---- memory */
static void assigned(void **state) {
  (void)state;
  TgTensor *t = tg_shard(tg_arange(C, 0, 16, .dtype = TG_F32), 4, D, 0);
  OK(tg_realize(t));
  TgTensor *view = tg_slice(t, 0, 2, 6), *before = tg_add_scalar(t, 100);
  tg_assign(t, tg_mul_scalar(t, 2));
  TEXT(view, "[4.0, 6.0, 8.0, 10.0]");               /* a view sees it */
  TEXT(tg_slice(before, 0, 0, 2), "[100.0, 101.0]"); /* a value does not */
  tg_assign(view, tg_zeros(C, TG_SHAPE(4)));
  TEXT(t, "[0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0]");
  tg_setitem_scalar(t, TG_IDX(TG_AT(13)), 99);
  tg_setitem_scalar(t, TG_IDX(TG_SLICE(0, 16, 4)), -1);
  tg_setitem_scalar(t, TG_IDX(TG_SLICE(1, 16, 5)), -2);
  TEXT(t, "[-1.0, -2.0, 0.0, 0.0, -1.0, 0.0, -2.0, 14.0, -1.0, 18.0, 20.0, -2.0, -1.0, 99.0, 28.0, 30.0]");
  BOUNDS(t, 0, 0, 4, 8, 12, 16);
  tg_setitem(t, TG_IDX(TG_TENSOR(tg_replicate(X("[3, 3, 15]"), 4, D))),
             tg_replicate(X("[1.0, 2.0, 3.0]"), 4, D));
  TEXT(tg_getitem(t, TG_IDX(TG_SLICE(0, 16, 3))), "[-1.0, 2.0, -2.0, 18.0, -1.0, 3.0]");
  tg_assign(tg_shard_part(t, 1), tg_to(X("[5.0, 5.0, 5.0, 5.0]"), D[1]));
  TEXT(tg_slice(t, 0, 3, 9), "[2.0, 5.0, 5.0, 5.0, 5.0, -1.0]");
  for (int i = 0; i < 5; i++) {
    tg_add_(t, tg_full_like(t, 1));
    OK(tg_realize(t));
  }
  TEXT(tg_slice(t, 0, 3, 9), "[7.0, 10.0, 10.0, 10.0, 10.0, 4.0]");
  TgTensor *copy = tg_clone(t);
  tg_assign(t, tg_zeros_like(t));
  TEXT(tg_slice(copy, 0, 0, 2), "[4.0, 3.0]");
  TEXT(tg_sum(t), "0.0");
  /* a part of the size of the whole reads what the others had before */
  TgTensor *r = tg_shard(tg_arange(C, 0, 8, .dtype = TG_F32), 4, D, 0);
  OK(tg_realize(r));
  tg_assign(r, tg_flip(r, TG_SHAPE(0)));
  TEXT(r, "[7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]");
  tg_assign(r, tg_sub(r, tg_mean(r)));
  TEXT(r, "[3.5, 2.5, 1.5, 0.5, -0.5, -1.5, -2.5, -3.5]");
}

static void refused(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, 2.0, 3.0, 4.0]"), *s = tg_shard(x, 4, D, 0), *two = tg_shard(x, 2, D, 0);
  ERROR(tg_add(x, s), TG_ERR_DEVICE, "add: a tensor on");
  ERROR(tg_add(two, s), TG_ERR_DEVICE, "add: a tensor on");
  ERROR(tg_matmul(s, x), TG_ERR_DEVICE, "tg_to moves one");
  ERROR(tg_shard(x, 4, D, 1), TG_ERR_SHAPE, "shard: axis 1");
  ERROR(tg_shard(x, 0, D, 0), TG_ERR_VALUE, "shard: 0 devices");
  ERROR(tg_shard(x, 17, D, 0), TG_ERR_VALUE, "shard: 17 devices");
  ERROR(tg_shard(x, 2, NULL, 0), TG_ERR_VALUE, "shard: NULL");
  const char *twice[] = {D[1], D[1]}, *unknown[] = {D[1], "GPU9"}, *files[] = {D[1], "DISK"};
  const int64_t far[] = {0, 3, 5};
  ERROR(tg_shard(x, 2, twice, 0), TG_ERR_VALUE, "named twice");
  ERROR(tg_shard(x, 2, unknown, 0), TG_ERR_VALUE, "GPU9");
  ERROR(tg_shard(x, 2, files, 0), TG_ERR_DEVICE, "files alone");
  ERROR(tg_shard(x, 2, D, 0, .bounds = far), TG_ERR_VALUE, "0 to 4");
  ERROR(tg_shard_part(s, 4), TG_ERR_VALUE, "part 4 of 4");
  ERROR(tg_shard_like(X("[1.0]"), s), TG_ERR_SHAPE, "shard_like: (1)");
  ERROR(tg_gather_to(s, "DISK"), TG_ERR_DEVICE, "DISK");
  ERROR(tg_map(s), TG_ERR_DEVICE, "tg_read");
  assert_int_equal(tg_kernel(C, "u = 1:i32\n", &s, 1), TG_ERR_DEVICE);
  ERROR(NULL, TG_ERR_DEVICE, "kernel: tensor 0 is on");
  TgTensor *e = tg_exp(s);
  assert_true(tg_schedule(&e, 1, NULL, NULL) >= (ranks_asked() ? 1 : 4)); /* a kernel for each, or more */
  OK(tg_realize(s));
  ERROR(tg_assign(s, x), TG_ERR_DEVICE, "assign: a");
  assert_null(tg_shard(NULL, 4, D, 0));
  TEXT(tg_shard(x, 1, D + 1, 0), "[1.0, 2.0, 3.0, 4.0]");
  TEXT(s, "[1.0, 2.0, 3.0, 4.0]");
}

/* Numbers that are drawn are those of one device. */
static void random_draws(void **state) {
  (void)state;
  TgTensor *x = tg_zeros(C, TG_SHAPE(9, 5)), *s = tg_shard(x, 4, D, 0);
  tg_manual_seed(C, 5);
  TgTensor *a = tg_rand_like(x), *b = tg_randn_like(x), *c = tg_rand(C, TG_SHAPE(7));
  tg_set_training(C, true);
  TgTensor *d = tg_dropout(tg_add_scalar(x, 1), 0.5);
  OK(tg_realize_many((TgTensor *[]){a, b, c, d}, 4));
  tg_manual_seed(C, 5);
  TgTensor *sa = tg_rand_like(s), *sb = tg_randn_like(s),
           *sc = tg_rand(C, TG_SHAPE(7), .device = tg_device(s));
  TgTensor *sd = tg_dropout(tg_add_scalar(s, 1), 0.5);
  BOUNDS(sa, 0, 0, 3, 5, 7, 9);
  BOUNDS(sc, -1, 0);
  EQUAL(sa, a);
  EQUAL(sb, b);
  EQUAL(sc, c);
  EQUAL(sd, d);
  tg_set_training(C, false);
  TgTensor *e = tg_empty_like(s);
  BOUNDS(e, 0, 0, 3, 5, 7, 9);
  tg_assign(e, s);
  EQUAL(e, x);
}

/* ---- training */
enum { STEPS = 4 };

static void train(bool sharded, int kind, int place, double *losses, TgTensor **out) {
  TgTensor *w1 = counted(2, (const int64_t[]){6, 8}), *w2 = counted(2, (const int64_t[]){8, 3});
  TgTensor *x = counted(2, (const int64_t[]){10, 6}), *y = X("[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]");
  w1 = tg_mul_scalar(w1, 0.1), w2 = tg_mul_scalar(w2, 0.1);
  if (sharded) {
    w1 = place ? tg_shard(w1, 4, D, 1) : tg_replicate(w1, 4, D);
    w2 = place ? tg_shard(w2, 4, D, 0) : tg_replicate(w2, 4, D);
    x = place ? tg_replicate(x, 4, D) : tg_shard(x, 4, D, 0);
    y = place ? tg_replicate(y, 4, D) : tg_shard(y, 4, D, 0);
  }
  tg_keep(w1), tg_keep(w2);
  TgTensor *w[2] = {w1, w2};
  TgOptim *o =
      kind ? tg_adamw(C, w, 2, .lr = 0.05, .clip_norm = 0.5) : tg_sgd(C, w, 2, .lr = 0.1, .momentum = 0.9);
  for (int i = 0; i < STEPS; i++) {
    OK(tg_scope_begin(C));
    TgTensor *loss = tg_sparse_cross_entropy(tg_matmul(tg_relu(tg_matmul(x, w1)), w2), y);
    OK(tg_backward(loss));
    OK(tg_optim_step(o));
    losses[i] = tg_item_f64(loss);
    OK(tg_scope_end(C));
  }
  out[0] = w1, out[1] = w2;
  tg_optim_free(o);
}

static void trained(void **state) {
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    double want[STEPS], got[STEPS];
    TgTensor *w[2], *s[2];
    train(false, kind, 0, want, w);
    for (int place = 0; place < 2; place++) {
      train(true, kind, place, got, s);
      for (int i = 0; i < STEPS; i++)
        if (fabs(got[i] - want[i]) > 1e-5)
          fail_msg("kind %d, step %d: %.9g, not %.9g: %s", kind, i, got[i], want[i], tg_errmsg(C));
      for (int k = 0; k < 2; k++)
        SAME(s[k], w[k], 1e-5);
    }
  }
}

/* ---- state that is split, though the parameter is whole: the same steps, a quarter of the memory */
static void split_state(void **state) {
  (void)state;
  TgTensor *got[2], *x = tg_keep(tg_shard(counted(2, (const int64_t[]){8, 6}), 4, D, 0));
  for (int k = 0; k < 2; k++) {
    TgTensor *w = tg_keep(tg_replicate(counted(2, (const int64_t[]){6, 8}), 4, D));
    TgOptim *o = tg_adam(C, &w, 1, .lr = 0.01, .split_state = k == 1);
    TgState *s = tg_state_new(C);
    for (int i = 0; i < 3; i++) {
      if (i == 2) tg_counters_reset(C);
      OK(tg_scope_begin(C));
      TgTensor *y = tg_matmul(x, w);
      OK(tg_backward(tg_mean(tg_mul(y, y))));
      OK(tg_optim_step(o));
      OK(tg_scope_end(C));
    }
    /* the loss, whole on each; of the gradient each gets a part, and of new weights all others */
    assert_int_equal(copied(), 4 * 3 * 4 + (k ? 2 * 3 : 4 * 3) * 6 * 8 * 4);
    OK(tg_optim_state(o, s, NULL));
    TgTensor *m = tg_state_get(s, "state.0.exp_avg");
    assert_int_equal(tg_shard_axis(m), k ? 0 : -1);
    assert_int_equal(tg_shard_axis(w), -1);
    got[k] = w;
    tg_state_free(s), tg_optim_free(o);
  }
  SAME(got[1], got[0], 1e-6);
}

/* ---- layers by name: one split by its outputs, the next by its inputs, as tensor parallel wants it */
typedef struct Pair {
  TgLinear up, down;
} Pair;

static const TgField pair_fields[] = {TG_LAYER(Pair, up, tg_linear_module),
                                      TG_LAYER(Pair, down, tg_linear_module)};
static const TgModule pair_table = {"Pair", sizeof(Pair), pair_fields, 2, NULL};

static const TgModule *pair_module(void) { return &pair_table; }

static void modules(void **state) {
  (void)state;
  const TgShardRule rules[] = {{"up.*", 0}, {"down.weight", 1}};
  Pair p = {.up = tg_linear_new(C, 6, 12, true), .down = tg_linear_new(C, 12, 5, true)};
  TgTensor *x = counted(2, (const int64_t[]){7, 6});
  TgTensor *want = tg_linear_run(&p.down, tg_relu(tg_linear_run(&p.up, x)));
  OK(tg_realize(want));
  OK(tg_module_shard(pair_module, &p, 4, D, rules, 2));
  assert_int_equal(tg_shard_axis(p.up.weight), 0);
  assert_int_equal(tg_shard_axis(p.up.bias), 0);
  assert_int_equal(tg_shard_axis(p.down.weight), 1);
  assert_int_equal(tg_shard_axis(p.down.bias), -1);
  assert_int_equal(tg_shard_count(p.down.bias), 4);
  tg_counters_reset(C);
  TgTensor *y = tg_linear_run(&p.down, tg_relu(tg_linear_run(&p.up, tg_replicate(x, 4, D))));
  OK(tg_realize(y));
  /* x to three, or to all ranks, and the one sum of what each has */
  assert_int_equal(copied(), (ranks_asked() ? 4 : 3) * 7 * 6 * 4 + 12 * 7 * 5 * 4);
  SAME(y, want, 1e-5);
  TgState *s = tg_state_new(C), *file = tg_state_new(C);
  OK(tg_module_state(pair_module, &p, s, NULL));
  OK(tg_state_put(file, "up.weight", tg_zeros(C, TG_SHAPE(12, 6))));
  OK(tg_load_state(s, file, .partial = true));
  assert_int_equal(tg_shard_axis(p.up.weight), 0);
  TEXT(tg_sum(p.up.weight), "0.0");
  tg_state_free(s), tg_state_free(file);
  tg_module_free(pair_module, &p);
}

/* ---- captured functions */
static TgStatus step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)ctx, (void)nin, (void)nout;
  TgTensor *w = user;
  out[0] = tg_sum(tg_mul(in[0], w));
  out[1] = tg_add(in[0], w);
  out[2] = tg_gather_to(tg_mul(in[0], in[0]), D[3]);
  tg_assign(w, tg_add(w, tg_mean(in[0], .axis = TG_AXES(0), .keepdim = true)));
  return tg_realize(w);
}

static void captured(void **state) {
  (void)state;
  TgTensor *w = tg_keep(tg_clone(tg_ones(C, TG_SHAPE(1, 3)))),
           *sw = tg_keep(tg_replicate(tg_ones(C, TG_SHAPE(1, 3)), 4, D));
  OK(tg_realize_many((TgTensor *[]){w, sw}, 2));
  TgJit *j = tg_jit(C, step, sw), *one = tg_jit(C, step, w);
  for (int i = 0; i < 6; i++) {
    OK(tg_scope_begin(C));
    TgTensor *x = tg_add_scalar(counted(2, (const int64_t[]){6, 3}), i), *out[3], *want[3];
    TgTensor *s = tg_shard(x, 4, D, 0);
    OK(tg_jit_run(one, &x, 1, want, 3));
    OK(tg_jit_run(j, &s, 1, out, 3));
    SAME(out[0], want[0], 1e-5);
    SAME(out[1], want[1], 1e-6);
    EQUAL(out[2], tg_to(want[2], D[0]));
    assert_string_equal(tg_device(out[2]), D[3]);
    BOUNDS(out[1], 0, 0, 2, 4, 5, 6);
    SAME(sw, w, 1e-6);
    TgTensor *other[1] = {tg_shard(x, 4, D, 1)};
    if (i > 2) {
      assert_int_equal(tg_jit_run(j, other, 1, out, 3), TG_ERR_DEVICE);
      ERROR(NULL, TG_ERR_DEVICE, "split otherwise");
    }
    OK(tg_scope_end(C));
  }
  tg_jit_free(j), tg_jit_free(one);
}

/* A sharded tensor that the function assigns to. */
static TgStatus adds_one(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)ctx, (void)nin, (void)nout, (void)out, (void)user;
  tg_assign(in[0], tg_add_scalar(tg_flip(in[0], TG_SHAPE(0)), 1));
  return tg_realize(in[0]);
}

static void captured_store(void **state) {
  (void)state;
  TgTensor *t = tg_shard(tg_arange(C, 0, 4, .dtype = TG_F32), 4, D, 0),
           *u = tg_shard(tg_zeros(C, TG_SHAPE(4)), 4, D, 0);
  OK(tg_realize_many((TgTensor *[]){t, u}, 2));
  TgJit *j = tg_jit(C, adds_one, NULL);
  for (int i = 0; i < 5; i++)
    OK(tg_jit_run(j, i == 3 ? &u : &t, 1, NULL, 0));
  TEXT(t, "[4.0, 5.0, 6.0, 7.0]");
  TEXT(u, "[1.0, 1.0, 1.0, 1.0]");
  tg_jit_free(j);
}

/* A function reads an expression that was computed for another handle, which is assigned to afterwards. */
static TgStatus adds_it(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  out[0] = tg_add(in[0], user);
  return tg_error(ctx);
}

static void captured_twin(void **state) {
  (void)state;
  for (int early = 0; early < 2; early++) { /* computed before the first run, or after the capture */
    TgTensor *a = tg_shard(tg_arange(C, 0, 4, .dtype = TG_F32), 4, D, 0), *y;
    TgTensor *x = tg_shard(tg_zeros(C, TG_SHAPE(4)), 4, D, 0);
    OK(tg_realize_many((TgTensor *[]){a, x}, 2));
    TgTensor *e = tg_add_scalar(a, 1), *twin = tg_add_scalar(a, 1);
    if (early) OK(tg_realize(twin));
    TgJit *j = tg_jit(C, adds_it, e);
    for (int i = 0; i < 6; i++) {
      OK(tg_jit_run(j, &x, 1, &y, 1));
      TEXT(y, "[1.0, 2.0, 3.0, 4.0]");
      if (i == 2) OK(tg_realize(twin));
      if (i == 3) OK(tg_realize(tg_assign(twin, tg_mul_scalar(twin, 10))));
    }
    TEXT(twin, "[10.0, 20.0, 30.0, 40.0]");
    TEXT(e, "[1.0, 2.0, 3.0, 4.0]");
    tg_jit_free(j);
  }
}

/* ---- attention by heads: projections split by their outputs, the last by its inputs; one sum is exchanged */
typedef struct Heads {
  TgLinear q, k, v, out;
} Heads;

static const TgField heads_fields[] = {
    TG_LAYER(Heads, q, tg_linear_module), TG_LAYER(Heads, k, tg_linear_module),
    TG_LAYER(Heads, v, tg_linear_module), TG_LAYER(Heads, out, tg_linear_module)};
static const TgModule heads_table = {"Heads", sizeof(Heads), heads_fields, 4, NULL};

static const TgModule *heads_module(void) { return &heads_table; }

enum { BATCH = 2, TIME = 5, WIDTH = 32, HEADS = 8 };

static TgTensor *by_heads(TgTensor *x) {
  return tg_transpose(tg_reshape(x, TG_SHAPE(BATCH, TIME, HEADS, WIDTH / HEADS)), 1, 2);
}

static TgTensor *heads_run(const Heads *h, TgTensor *x) {
  TgTensor *q = by_heads(tg_linear_run(&h->q, x)), *k = by_heads(tg_linear_run(&h->k, x));
  TgTensor *y = tg_scaled_dot_product_attention(q, k, by_heads(tg_linear_run(&h->v, x)), .causal = true);
  return tg_linear_run(&h->out, tg_reshape(tg_transpose(y, 1, 2), TG_SHAPE(BATCH, TIME, WIDTH)));
}

static void attention(void **state) {
  (void)state;
  const TgShardRule rules[] = {{"out.weight", 1}, {"out.bias", TG_WHOLE}, {"*", 0}};
  Heads h;
  TgLinear *all[] = {&h.q, &h.k, &h.v, &h.out};
  for (int i = 0; i < 4; i++)
    *all[i] = tg_linear_new(C, WIDTH, WIDTH, true);
  TgTensor *x = counted(3, (const int64_t[]){BATCH, TIME, WIDTH}), *g, *sg;
  TgTensor *want = heads_run(&h, x);
  OK(tg_gradient(tg_sum(tg_mul(want, want)), &x, 1, &g));
  OK(tg_realize_many((TgTensor *[]){want, g}, 2));
  OK(tg_module_shard(heads_module, &h, 4, D, rules, 3));
  TgTensor *s = tg_replicate(x, 4, D);
  OK(tg_realize(s));
  tg_counters_reset(C);
  TgTensor *y = heads_run(&h, s);
  OK(tg_realize(y));
  assert_int_equal(copied(), 4 * 3 * BATCH * TIME * WIDTH * 4);
  SAME(y, want, 1e-5);
  OK(tg_gradient(tg_sum(tg_mul(y, y)), &s, 1, &sg));
  SAME(sg, g, 1e-4);
  tg_module_free(heads_module, &h);
}

/* ---- what gathers says so */
static char said[2000];

static void listen(const char *text, void *user) {
  (void)user;
  strncat(said, text, sizeof said - strlen(said) - 1);
}

static void gathers_say_so(void **state) {
  (void)state;
  TgContext *c =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = tg_default_device(C), .log = listen});
  int before = tg_setting(c, "DEBUG", 3);
  TgTensor *x = tg_shard(tg_clone(tg_ones(c, TG_SHAPE(6, 4))), 4, D, 0);
  said[0] = 0;
  OK(tg_realize(tg_permute(tg_reshape(x, TG_SHAPE(3, 8)), TG_SHAPE(1, 0))));
  if (!strstr(said, "shard: RESHAPE needs all of f32 (6, 4), which is split along axis 0"))
    fail_msg("%s", said);
  said[0] = 0;
  OK(tg_realize(tg_sum(tg_reshape(x, TG_SHAPE(6, 2, 2)))));
  assert_null(strstr(said, "needs all of"));
  assert_int_equal(before, 0);
  tg_close(c);
}

/* ---- memory that fails: an error, and what there was is as it was */
static bool some_work(TgTensor *t, float *out) {
  TgTensor *x = tg_shard(counted(2, (const int64_t[]){6, 3}), 4, D, 0), *g = NULL;
  TgTensor *view = tg_slice(t, 0, 1, 4), *y = tg_matmul(x, tg_transpose(t, 0, 1));
  bool ok = !tg_gradient(tg_sum(tg_mul(y, y)), &t, 1, &g) && !tg_realize_many((TgTensor *[]){y, g}, 2);
  ok = ok && tg_assign(view, tg_add_scalar(view, 1)) && !tg_realize(t) && tg_sort(y, NULL);
  ok = ok && tg_assign(t, tg_sub(t, tg_full_like(t, 1))) && tg_setitem_scalar(t, TG_IDX(TG_AT(0)), 2);
  return ok && !tg_read(tg_add(t, g), out, 15 * sizeof *out);
}

static void no_memory(void **state) {
  (void)state;
  if (ranks_asked()) skip(); /* where one of them has none, the others hear of it: test_ranks.c */
  TgMem *m = &C->mem;
  float want[15], got[15];
  bool reached = true;
  for (uint64_t n = 0; reached; n += 1 + n / 24) {
    OK(tg_scope_begin(C));
    TgTensor *t = tg_shard(counted(2, (const int64_t[]){5, 3}), 4, D, 0);
    OK(tg_realize(t));
    OK(tg_scope_begin(C));
    uint64_t failed = m->failed;
    m->fail_at = n ? m->calls + n : 0;
    bool ok = some_work(t, n ? got : want);
    m->fail_at = 0;
    reached = !n || m->failed > failed;
    if (!ok && (!n || tg_error(C) != TG_ERR_NOMEM)) fail_msg("allocation %d: %s", (int)n, tg_errmsg(C));
    if (ok && n && memcmp(got, want, sizeof got)) fail_msg("allocation %d: other numbers", (int)n);
    tg_clear_error(C);
    OK(tg_scope_end(C));
    if (tg_read(t, got, sizeof got)) fail_msg("allocation %d: %s", (int)n, tg_errmsg(C));
    OK(tg_scope_end(C));
  }
}

/* ---- exchanges: what they move, and the order of sums */
static uint64_t moved_by(TgTensor *t) {
  OK(tg_realize(t));
  tg_counters_reset(C);
  TgTensor *sum = tg_sum(t, .axis = TG_AXES(0));
  OK(tg_realize(sum));
  return copied();
}

static void volumes(void **state) {
  (void)state;

  enum { N = 4096 };

  TgTensor *x = tg_keep(tg_mul_scalar(tg_randn(C, TG_SHAPE(8, N)), 100)), *first[4] = {NULL};
  OK(tg_realize(x));
  const uint64_t bytes = N * 4;
  for (int n = 2; n <= 4; n++)
    for (int way = 1; way <= 3; way++) {
      assert_true(tg_setting(C, "ALLREDUCE", way) >= 0);
      TgTensor *s = tg_shard(x, n, D, 0);
      uint64_t want = way == 1 ? (uint64_t)(n * (n - 1)) * bytes : 2 * (uint64_t)(n - 1) * bytes;
      if (moved_by(s) != want)
        fail_msg("%d devices, way %d: not %llu bytes", n, way, (unsigned long long)want);
      TgTensor *sum = tg_sum(s, .axis = TG_AXES(0));
      SAME(sum, tg_sum(x, .axis = TG_AXES(0)), 1e-4);
      for (int i = 1; i < n; i++) /* every device has the same bits */
        EQUAL(tg_to(tg_shard_part(sum, i), D[0]), tg_to(tg_shard_part(sum, 0), D[0]));
      if (way == 1) first[n - 1] = tg_keep(tg_to(sum, D[0])), OK(tg_realize(first[n - 1]));
      if (way == 3) EQUAL(tg_to(sum, D[0]), first[n - 1]); /* the order is that of the parts */
    }
  tg_setting(C, "ALLREDUCE", 0);
  /* a sum of which each needs a part: reduce-scatter, half of it */
  TgTensor *s = tg_shard(x, 4, D, 0), *w = tg_shard(tg_ones(C, TG_SHAPE(N)), 4, D, 0);
  OK(tg_realize_many((TgTensor *[]){s, w}, 2));
  tg_counters_reset(C);
  TgTensor *y = tg_mul(w, tg_sum(s, .axis = TG_AXES(0)));
  OK(tg_realize(y));
  assert_int_equal(copied(), 3 * bytes);
  SAME(y, tg_sum(x, .axis = TG_AXES(0)), 1e-4);
  /* to be split along another axis: each keeps its own quarter */
  OK(tg_realize(s));
  tg_counters_reset(C);
  TgTensor *other = tg_shard(s, 4, D, 1);
  OK(tg_realize(other));
  assert_int_equal(copied(), 8 * bytes * 3 / 4);
  EQUAL(other, x);
  tg_counters_reset(C);
  TgTensor *all = tg_replicate(s, 4, D);
  OK(tg_realize(all));
  assert_int_equal(copied(), 8 * bytes * 3);
  EQUAL(all, x);
}

/* What one level of exchanges leaves to the next is not computed again. */
static void computed_once(void **state) {
  (void)state;
  TgTensor *x = tg_shard(counted(2, (const int64_t[]){8, 32}), 4, D, 0),
           *w = tg_replicate(counted(2, (const int64_t[]){32, 32}), 4, D);
  OK(tg_realize_many((TgTensor *[]){x, w}, 2));
  uint64_t flops[2];
  for (int k = 0; k < 2; k++) {
    TgTensor *y = tg_matmul(x, w), *z = y;
    for (int i = 0; i < 4 && k; i++)
      z = tg_sub(z, tg_mean(z, .axis = TG_AXES(0), .keepdim = true));
    tg_counters_reset(C);
    OK(tg_realize(z));
    flops[k] = tg_counters(C).flops;
  }
  assert_true(flops[1] < flops[0] * 3 / 2);
}

/* ---- programs of several devices, as files */
typedef struct Saved {
  TgTensor *w, *bias, *scale;
} Saved;

static TgStatus trains(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  Saved *m = user;
  TgTensor *h = tg_mul(tg_matmul(in[0], m->w), m->scale), *grad;
  out[0] = tg_mean(tg_mul(h, h));
  out[1] = tg_add(h, m->bias);
  out[2] = tg_gather_to(h, D[3]);
  if (tg_gradient(out[0], &m->w, 1, &grad)) return tg_error(ctx);
  tg_assign(m->w, tg_sub(m->w, tg_mul_scalar(grad, 0.001)));
  return tg_error(ctx);
}

static Saved saved_new(void) {
  Saved m = {tg_keep(tg_clone(tg_replicate(counted(2, (const int64_t[]){3, 4}), 4, D))),
             tg_keep(tg_clone(tg_shard(counted(2, (const int64_t[]){6, 4}), 4, D, 0))),
             tg_keep(tg_clone(tg_shard(counted(2, (const int64_t[]){1, 4}), 4, D, 1)))};
  OK(tg_realize_many((TgTensor *[]){m.w, m.bias, m.scale}, 3));
  return m;
}

/* x as the input of j is wanted. */
static TgTensor *input_for(TgJit *j, TgTensor *x) {
  TgJitValue v;
  assert_true(tg_jit_input(j, 0, &v));
  assert_true(v.ndim == 2 && v.dims[0] == 6 && v.dims[1] == 3 && v.ndevice == 4 && v.axis == 0);
  return tg_shard(x, v.ndevice, v.devices, v.axis, .bounds = v.bounds);
}

/* Both go on from the same state, with the same numbers. */
static void goes_on(TgJit *j, TgJit *k, int from, double within) {
  for (int i = from; i < from + 3; i++) {
    OK(tg_scope_begin(C));
    TgTensor *x = tg_add_scalar(counted(2, (const int64_t[]){6, 3}), i), *a[3], *b[3];
    TgTensor *at_j = input_for(j, x), *at_k = input_for(k, x);
    OK(tg_jit_run(j, &at_j, 1, a, 3));
    OK(tg_jit_run(k, &at_k, 1, b, 3));
    for (int o = 0; o < 3; o++)
      SAME(b[o], a[o], within);
    BOUNDS(b[1], 1, 0, 1, 2, 3, 4);
    OK(tg_scope_end(C));
  }
}

static void file_named(char *path, size_t cap) {
  int64_t id = getpid(); /* one for all ranks */
  OK(tg_comm_max(C, &id));
  snprintf(path, cap, "/tmp/tg_shard_%lld.safetensors", (long long)id);
}

static TgJit *saved_to(const char *path, Saved *m) {
  TgJit *j = tg_jit(C, trains, m);
  TgState *s = tg_state_new(C);
  OK(tg_state_put(s, "w", m->w)), OK(tg_state_put(s, "bias", m->bias)),
      OK(tg_state_put(s, "scale", m->scale));
  for (int i = 0; i < 3; i++) {
    TgTensor *x = tg_shard(counted(2, (const int64_t[]){6, 3}), 4, D, 0), *out[3];
    OK(tg_jit_run(j, &x, 1, out, 3));
  }
  const char *x = "x", *outs[] = {"loss", "sum", "all"};
  OK(tg_jit_save(j, path, .inputs = &x, .outputs = outs, .state = s));
  tg_state_free(s);
  return j;
}

static void saved(void **state) {
  (void)state;
  char path[80];
  Saved m = saved_new();
  file_named(path, sizeof path);
  TgJit *j = saved_to(path, &m), *k = tg_jit_load_file(C, path);
  if (!k) fail_msg("%s", tg_errmsg(C));
  TgJitValue v;
  for (int i = 0; i < 4; i++)
    assert_string_equal(tg_jit_device(k, (size_t)i), tg_jit_device(j, (size_t)i));
  assert_null(tg_jit_device(k, 4));
  assert_true(tg_jit_output(k, 2, &v) && v.ndevice == 1 && !strcmp(v.devices[0], D[3]) &&
              !strcmp(v.name, "all"));
  goes_on(j, k, 3, 0);
  /* what was loaded is saved again; where it is on other devices, it gives the same */
  OK(tg_jit_save(k, path));
  bool mixed = !ranks_asked() && !strcmp(D[0], "CPU");
  const char *const other[] = {"INTERP", "CPU:2", "INTERP:1", "CPU"}, *const turned[] = {D[3], D[0], D[2],
                                                                                         D[1]};
  TgJit *l = tg_jit_load_file_on(C, path, mixed ? other : turned, 4);
  if (!l) fail_msg("%s", tg_errmsg(C));
  goes_on(k, l, 6, mixed ? 1e-5 : 0);
  if (mixed) assert_string_equal(tg_jit_device(l, 2), "INTERP:1");
  tg_jit_free(l);
  ERROR(tg_jit_load_file_on(C, path, turned, 3), TG_ERR_VALUE, "it is of 4 devices");
  ERROR(tg_jit_load_file_on(C, path, (const char *const[]){D[0], D[1], D[2], D[1]}, 4), TG_ERR_VALUE,
        "are both");
  ERROR(tg_jit_load_file_on(C, path, (const char *const[]){D[0], D[1], D[2], "TPU"}, 4), TG_ERR_VALUE,
        "'TPU'");
  ERROR(tg_jit_load_file_on(C, path, (const char *const[]){D[0], D[1], D[2], "DISK"}, 4), TG_ERR_DEVICE,
        "DISK");
  /* a tensor that is whole on each device is in the file once, one that is split in parts */
  TgState *s = tg_safe_load_file(C, path);
  assert_int_equal(tg_state_count(s), 1 + 4 + 4);
  TgTensor *w = tg_state_get(s, "w"), *part = tg_state_get(s, "bias.part1");
  assert_true(w && tg_shape(w)[0] == 3 && part && tg_shape(part)[0] == 2);
  tg_state_free(s);
  tg_jit_free(j), tg_jit_free(k);
  OK(tg_comm_max(C, &(int64_t){0})); /* all have read it */
  if (!tg_comm_rank(C)) unlink(path);
}

/* A profile calls a copy by what it is of, on the host's track and on those of the devices; also in a replay. */
static TgStatus sums(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_sum(in[0], .axis = TG_AXES(0));
  return tg_error(ctx);
}

static void exchanges_named(void **state) {
  (void)state;
  char path[80], line[4096];
  int host = 0, device = 0, copies = 0;
  snprintf(path, sizeof path, "/tmp/tg_shard_profile_%ld", (long)getpid());
  OK(tg_profile_start(C, path));
  TgTensor *x = tg_shard(counted(2, (const int64_t[]){8, 6}), 4, D, 0), *y;
  TgJit *j = tg_jit(C, sums, NULL);
  for (int i = 0; i < 3; i++)
    OK(tg_jit_run(j, &x, 1, &y, 1));
  OK(tg_profile_stop(C));
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    bool named = strstr(line, "\"name\":\"ALLREDUCE ADD, naive, 4 devices, 24 B: ") != NULL;
    host += named && strstr(line, "\"cat\":\"host\"");
    device += named && strstr(line, "\"cat\":\"exchange\"");
    copies += named && strstr(line, "\"bytes\":24");
  }
  fclose(f);
  unlink(path);
  /* of one process each goes from every device to every other one, in three runs; of ranks a part of them */
  assert_true(ranks_asked() ? host >= 9 && device >= 9 && copies : host == 36 && device == 72);
  tg_jit_free(j);
}

/* Whose gradients sums carry, in the spans of a profile: names are a module's, whoever steps, and however sums are
 * exchanged. */
static int spans_of(const char *path, const char *op, const char *of) {
  char line[4096];
  int n = 0;
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(line, sizeof line, f)) {
    const char *at = strstr(line, op), *name = at ? strstr(at, of) : NULL;
    n += name && name < strchr(at + 1, '"');
  }
  fclose(f);
  return n;
}

static void gradients_named(void **state) {
  (void)state;
  static const char *const name[] = {
      " of up.weight: ", " of up.bias: ", " of down.weight: ", " of down.bias: "};
  char path[80];
  snprintf(path, sizeof path, "/tmp/tg_shard_named_%ld", (long)getpid());
  for (int k = 0; k < 4; k++) {
    bool split_states = k == 1, backward = k < 3;
    tg_setting(C, "ALLREDUCE", k == 2 ? 2 : 0); /* a ring */
    Pair p = {.up = tg_linear_new(C, 6, 12, true), .down = tg_linear_new(C, 12, 5, true)};
    TgTensor *w[4], *g[4], *x = tg_shard(counted(2, (const int64_t[]){8, 6}), 4, D, 0);
    OK(tg_module_shard(pair_module, &p, 4, D, NULL, 0));
    assert_int_equal(tg_module_parameters(pair_module, &p, w, 4), 4);
    TgOptim *o = tg_adam(C, w, 4, .lr = 0.01, .split_state = split_states);
    OK(tg_realize(x));
    OK(tg_profile_start(C, path));
    OK(tg_scope_begin(C));
    TgTensor *y = tg_linear_run(&p.down, tg_relu(tg_linear_run(&p.up, x))), *loss = tg_mean(tg_mul(y, y));
    if (backward) OK(tg_backward(loss)), OK(tg_optim_step(o));
    if (!backward) OK(tg_gradient(loss, w, 4, g)), OK(tg_realize_many(g, 4));
    OK(tg_scope_end(C));
    OK(tg_profile_stop(C));
    for (int i = 0; i < 4; i++)
      if (!spans_of(path, split_states ? "\"REDUCESCATTER ADD" : "\"ALLREDUCE ADD", name[i]))
        fail_msg("%d: no exchange%s", k, name[i]);
    tg_optim_free(o);
    tg_module_free(pair_module, &p);
  }
  tg_setting(C, "ALLREDUCE", 0);
  unlink(path);
}

/* What was built before a store keeps the value of then, though the two are asked for together, and one needs copies
 * between devices first. */
static void old_values(void **state) {
  (void)state;
  for (int collects = 0; collects < 2; collects++) {
    TgTensor *x = tg_shard(tg_clone(tg_arange(C, 0, 6)), 3, D, 0, .bounds = (const int64_t[]){0, 5, 5, 6});
    OK(tg_realize(x));
    TgTensor *y = tg_clone(x), *whole = tg_clamp(y, -INFINITY, INFINITY), *old = tg_add_scalar(y, 1);
    assert_non_null(tg_setitem(y, TG_IDX(TG_SLICE(5, 6)), tg_slice(y, 0, 4, 5)));
    if (collects) OK(tg_collect(C));
    TgTensor *asked[] = {old, whole, tg_sum(y)};
    OK(tg_realize_many(asked, 3));
    TEXT(old, "[1, 2, 3, 4, 5, 6]");
    TEXT(whole, "[0, 1, 2, 3, 4, 5]");
    TEXT(y, "[0, 1, 2, 3, 4, 4]");
    assert_true(tg_item_f64(asked[2]) == 14);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(split, open_it, close_it),
      cmocka_unit_test_setup_teardown(operations, open_it, close_it),
      cmocka_unit_test_setup_teardown(gradients, open_it, close_it),
      cmocka_unit_test_setup_teardown(assigned, open_it, close_it),
      cmocka_unit_test_setup_teardown(old_values, open_it, close_it),
      cmocka_unit_test_setup_teardown(refused, open_it, close_it),
      cmocka_unit_test_setup_teardown(random_draws, open_it, close_it),
      cmocka_unit_test_setup_teardown(trained, open_it, close_it),
      cmocka_unit_test_setup_teardown(split_state, open_it, close_it),
      cmocka_unit_test_setup_teardown(modules, open_it, close_it),
      cmocka_unit_test_setup_teardown(attention, open_it, close_it),
      cmocka_unit_test_setup_teardown(gathers_say_so, open_it, close_it),
      cmocka_unit_test_setup_teardown(no_memory, open_it, close_it),
      cmocka_unit_test_setup_teardown(captured, open_it, close_it),
      cmocka_unit_test_setup_teardown(captured_store, open_it, close_it),
      cmocka_unit_test_setup_teardown(saved, open_it, close_it),
      cmocka_unit_test_setup_teardown(captured_twin, open_it, close_it),
      cmocka_unit_test_setup_teardown(exchanges_named, open_it, close_it),
      cmocka_unit_test_setup_teardown(gradients_named, open_it, close_it),
      cmocka_unit_test_setup_teardown(volumes, open_it, close_it),
      cmocka_unit_test_setup_teardown(computed_once, open_it, close_it),
  };
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
