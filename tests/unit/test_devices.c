/* test_devices.c: several devices in one context. CPU, INTERP and a second CPU stand for machines with memory
 * of their own. Expected values are by hand, or those of the same program on one device. */
#include "emu/cuda_emu.h"
#include "tg.h"
#include "tg_nn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static TgContext *C;

static int open_cpu(void **state) {
  (void)state;
  C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU", .seed = 3});
  return tg_error(C) != TG_OK;
}

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static void text_is_at(int line, TgTensor *t, const char *device, const char *want) {
  const char *got = tg_to_text(t);
  if (!got || strcmp(got, want))
    fail_msg("line %d: %s, not %s (%s)", line, got ? got : "nothing", want, tg_errmsg(C));
  if (strcmp(tg_device(t), device)) fail_msg("line %d: on %s, not on %s", line, tg_device(t), device);
}

#define TEXT(t, device, want) text_is_at(__LINE__, (t), (device), (want))
#define X(text)               tg_from_text(C, text)
#define OK(call)              assert_int_equal((call), TG_OK)

static void error_is_at(int line, const void *p, TgStatus s, const char *part) {
  if (p || tg_error(C) != s || !strstr(tg_errmsg(C), part))
    fail_msg("line %d: %s: %s, not %s about \"%s\"", line, tg_status_name(tg_error(C)), tg_errmsg(C),
             tg_status_name(s), part);
  tg_clear_error(C);
}

#define ERROR(p, s, part) error_is_at(__LINE__, (p), (s), (part))

/* ---- the default device */
static void default_moves(void **state) {
  (void)state;
  TgTensor *old = X("[1.0, 2.0]"), *number = tg_add(tg_ones(C, TG_SHAPE(2)), tg_ones(C, TG_SHAPE(2)));
  TgTensor *kept = tg_add(number, number);
  OK(tg_realize(kept)); /* has memory on the CPU */
  OK(tg_set_default_device(C, "INTERP"));
  assert_string_equal(tg_default_device(C), "INTERP");
  float two[2] = {3, 4};
  TgTensor *x = tg_from(C, two, TG_F32, TG_SHAPE(2));
  TEXT(x, "INTERP", "[3.0, 4.0]");
  TEXT(tg_add(x, number), "INTERP", "[5.0, 6.0]");
  TEXT(tg_add(old, number), "CPU", "[3.0, 4.0]");
  TEXT(tg_add(old, kept), "CPU", "[5.0, 6.0]");
  TEXT(tg_add(x, tg_to(kept, NULL)), "INTERP", "[7.0, 8.0]");
  TEXT(old, "CPU", "[1.0, 2.0]");
  TEXT(tg_arange(C, 0, 3), "INTERP", "[0, 1, 2]");
  TgTensor *drawn = tg_rand(C, TG_SHAPE(3)), *empty = tg_empty(C, TG_F32, TG_SHAPE(2));
  assert_string_equal(tg_device(drawn), "INTERP");
  assert_string_equal(tg_device(empty), "INTERP");
  TEXT(tg_to(old, NULL), "INTERP", "[1.0, 2.0]");
  float lent[2] = {7, 8};
  TEXT(tg_borrow(C, lent, TG_F32, TG_SHAPE(2), NULL, NULL), "INTERP", "[7.0, 8.0]");
  assert_int_equal(tg_set_default_device(C, "NOWHERE"), TG_ERR_VALUE);
  tg_clear_error(C);
  assert_int_equal(tg_set_default_device(C, "DISK"), TG_ERR_DEVICE);
  tg_clear_error(C);
  assert_string_equal(tg_default_device(C), "INTERP");
  ERROR(tg_add(x, old), TG_ERR_DEVICE, "CPU");
  OK(tg_set_default_device(C, "NULL:CUDA"));
  assert_non_null(strstr(tg_source_prelude(C), "__device__"));
  OK(tg_set_default_device(C, NULL));
  assert_string_equal(tg_default_device(C), "CPU");
  assert_null(strstr(tg_source_prelude(C), "__device__"));
  TEXT(X("[5.0]"), "CPU", "[5.0]");
}

/* One that does not open takes no options either. */
static void none_opens(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "NOWHERE", .cores = 3, .memory_limit = 1 << 20);
  assert_int_not_equal(tg_error(c), TG_OK);
  assert_non_null(strstr(tg_errmsg(c), "NOWHERE"));
  tg_close(c);
}

/* ---- where tensors are */
static void moves(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, 2.0, 3.0]"), *y = tg_to(x, "INTERP"), *z = tg_mul(y, y);
  TEXT(z, "INTERP", "[1.0, 4.0, 9.0]");
  TEXT(tg_add(tg_to(tg_add(z, tg_ones(C, TG_SHAPE(3))), "CPU"), x), "CPU", "[3.0, 7.0, 13.0]");
  TEXT(tg_to(tg_to(z, "CPU:1"), NULL), "CPU", "[1.0, 4.0, 9.0]");
  TgTensor *same = tg_to(x, "CPU:0"); /* a view of x, under a handle of its own */
  assert_ptr_not_equal(same, x);
  assert_ptr_equal(tg_map(same), tg_map(x));
  assert_ptr_not_equal(tg_to(y, "INTERP"), y);
  TEXT(tg_to(tg_zeros(C, TG_SHAPE(0, 3)), "INTERP"), "INTERP", "[]");
  TEXT(tg_to(X("7"), "INTERP"), "INTERP", "7");
  TEXT(tg_to(X("[true, false]"), "INTERP"), "INTERP", "[true, false]");
  assert_string_equal(tg_device(tg_full(C, TG_SCALAR, 1)), "CPU");
  assert_string_equal(tg_default_device(C), "CPU");
}

static void copied_once(void **state) {
  (void)state;
  TgTensor *x = tg_mul_scalar(X("[1.0, 2.0]"), 3), *y = tg_to(x, "INTERP");
  OK(tg_realize(x));
  tg_counters_reset(C);
  TEXT(tg_add(y, y), "INTERP", "[6.0, 12.0]");
  TEXT(tg_mul(y, tg_to(x, "INTERP")), "INTERP", "[9.0, 36.0]");
  assert_int_equal(tg_counters(C).copies, 1);
  assert_int_equal(tg_counters(C).bytes_copied, 8);
  /* numbers are no copies: they are computed where they are used */
  TEXT(tg_add(tg_to(tg_arange(C, 0, 3), "INTERP"), tg_full(C, TG_SHAPE(3), 1, .dtype = TG_I32)), "INTERP",
       "[1, 2, 3]");
  assert_int_equal(tg_counters(C).copies, 1);
}

/* Numbers that were computed on the default device are still numbers elsewhere. */
static void numbers(void **state) {
  (void)state;
  TgTensor *a = tg_mul_scalar(tg_arange(C, 0, 3), 2), *b = tg_mul_scalar(tg_arange(C, 0, 3), 2);
  TEXT(a, "CPU", "[0, 2, 4]");
  TEXT(tg_add(b, tg_to(X("[1, 1, 1]"), "INTERP")), "INTERP", "[1, 3, 5]");
  TEXT(tg_to(b, "INTERP"), "INTERP", "[0, 2, 4]");
  OK(tg_realize(a)); /* memory from here on */
  ERROR(tg_add(a, tg_to(X("[1, 1, 1]"), "INTERP")), TG_ERR_DEVICE, "CPU");
}

static void mixed(void **state) {
  (void)state;
  TgTensor *x = X("[1.0, 2.0]"), *y = tg_to(X("[3.0, 4.0]"), "INTERP");
  ERROR(tg_add(x, y), TG_ERR_DEVICE, "add: a tensor on CPU, shape (2), and one on INTERP, shape (2)");
  ERROR(tg_matmul(x, y), TG_ERR_DEVICE, "INTERP");
  ERROR(tg_cat((TgTensor *[]){x, y}, 2, 0), TG_ERR_DEVICE, "CPU");
  ERROR(tg_where(tg_gt_scalar(x, 1), y, x), TG_ERR_DEVICE, "INTERP");
  ERROR(tg_assign(x, y), TG_ERR_DEVICE, "assign: a");
  ERROR(tg_to(x, "GPU9"), TG_ERR_VALUE, "to: no device is called 'GPU9'");
  ERROR(tg_to(x, "DISK"), TG_ERR_DEVICE, "DISK");
  ERROR(tg_zeros(C, TG_SHAPE(2), .device = "X"), TG_ERR_VALUE, "zeros: no device is called 'X'");
  ERROR(tg_rand(C, TG_SHAPE(2), .device = "DISK"), TG_ERR_DEVICE, "rand");
  TEXT(tg_add(x, tg_to(y, "CPU")), "CPU", "[4.0, 6.0]"); /* nothing is lost */
}

/* ---- values of the moment that a move was built in */
static void stores_between(void **state) {
  (void)state;
  TgTensor *m = X("[[1.0, 2.0], [3.0, 4.0]]");
  TgTensor *column = tg_to(tg_slice(m, 1, 0, 1), "INTERP"), *row = tg_to(tg_slice(m, 0, 1, 2), "INTERP");
  TgTensor *all = tg_to(m, "CPU:1");
  tg_assign(m, tg_full(C, TG_SHAPE(2, 2), 9));
  TEXT(tg_to(m, "INTERP"), "INTERP", "[[9.0, 9.0], [9.0, 9.0]]");
  TEXT(column, "INTERP", "[[1.0], [3.0]]");
  TEXT(row, "INTERP", "[[3.0, 4.0]]");
  TEXT(all, "CPU:1", "[[1.0, 2.0], [3.0, 4.0]]");
  tg_assign(all, tg_mul_scalar(all, 2)); /* memory of its own there */
  TEXT(all, "CPU:1", "[[2.0, 4.0], [6.0, 8.0]]");
  TEXT(m, "CPU", "[[9.0, 9.0], [9.0, 9.0]]");
}

static void created_there(void **state) {
  (void)state;
  TgTensor *a = tg_zeros(C, TG_SHAPE(3), .device = "CPU:1");
  tg_assign(a, tg_to(X("[1.0, 2.0, 3.0]"), "CPU:1"));
  tg_assign(a, tg_mul(a, a));
  TEXT(a, "CPU:1", "[1.0, 4.0, 9.0]");
  TEXT(tg_full(C, TG_SHAPE(2), 5, .device = "INTERP"), "INTERP", "[5.0, 5.0]");
  TEXT(tg_arange(C, 0, 3, .device = "INTERP"), "INTERP", "[0, 1, 2]");
  TEXT(tg_eye(C, 2, .device = "INTERP"), "INTERP", "[[1.0, 0.0], [0.0, 1.0]]");
  TEXT(tg_linspace(C, 0, 1, 3, .device = "INTERP"), "INTERP", "[0.0, 0.5, 1.0]");
  TEXT(tg_from_text(C, "[[1], [2]]", .device = "INTERP"), "INTERP", "[[1], [2]]");
  assert_string_equal(tg_device(tg_zeros_like(a)), "CPU:1");
  assert_string_equal(tg_device(tg_empty_like(a)), "CPU:1");
  assert_string_equal(tg_device(tg_rand_like(a)), "CPU:1");
  assert_string_equal(tg_device(tg_clone(a)), "CPU:1");
  /* several devices at once */
  TgTensor *b = tg_add(a, a), *all[] = {b, tg_to(b, "INTERP"), tg_to(b, "CPU")};
  OK(tg_realize_many(all, 3));
  for (int i = 0; i < 3; i++)
    TEXT(all[i], i == 0 ? "CPU:1" : i == 1 ? "INTERP" : "CPU", "[2.0, 8.0, 18.0]");
}

/* A device draws its own numbers, by its place in the order in which devices drew since the seed was set. */
static void draws(void **state) {
  (void)state;
  float first[2][4], then[2][4];
  static const char *const order[2][2] = {{"CPU", "INTERP"}, {"INTERP", "CPU"}};
  for (int turn = 0; turn < 2; turn++) {
    tg_manual_seed(C, 7);
    TgTensor *a = tg_rand(C, TG_SHAPE(4), .device = order[turn][0]);
    TgTensor *b = tg_rand(C, TG_SHAPE(4), .device = order[turn][1]);
    OK(tg_read(a, first[turn], sizeof *first));
    OK(tg_read(b, then[turn], sizeof *then));
  }
  assert_memory_equal(first[0], first[1], sizeof *first);
  assert_memory_equal(then[0], then[1], sizeof *then);
  assert_memory_not_equal(first[0], then[0], sizeof *first);
}

/* ---- gradients and a step of training: as on one device */
static void gradients(void **state) {
  (void)state;
  TgTensor *w = tg_requires_grad(X("[1.0, 2.0, 3.0]"), true);
  OK(tg_backward(tg_sum(tg_square(tg_to(tg_mul_scalar(w, 3), "INTERP")))));
  TEXT(tg_grad(w), "CPU", "[18.0, 36.0, 54.0]");
}

static float trained(const char *device, bool from_disk, float *weight) {
  char path[] = "/tmp/tg_devices_XXXXXX";
  float data[6 * 4], loss = 0;
  for (int i = 0; i < 6 * 4; i++)
    data[i] = (float)(i * 7 % 11) / 11;
  int fd = mkstemp(path);
  assert_true(fd >= 0 && write(fd, data, sizeof data) == sizeof data);
  close(fd);
  const int64_t shape[] = {6, 4};
  TgTensor *x = from_disk ? tg_from_file(C, path, TG_F32, 2, shape, .device = "DISK")
                          : tg_from(C, data, TG_F32, 2, shape);
  TgTensor *w = tg_contiguous(tg_full(C, TG_SHAPE(4, 3), 0.25, .device = device));
  w = tg_requires_grad(w, true);
  TgTensor *label = tg_to(X("[0, 2, 1]"), device);
  TgOptim *o = tg_adam(C, &w, 1, .lr = 0.1);
  tg_set_training(C, true);
  for (int step = 0; step < 4; step++)
    TG_SCOPE(C) {
      TgTensor *part = tg_to(tg_slice(x, 0, step % 2 * 3, step % 2 * 3 + 3), device);
      TgTensor *l = tg_sparse_cross_entropy(tg_matmul(part, w), label);
      OK(tg_backward(l));
      OK(tg_optim_step(o));
      loss = (float)tg_item_f64(l);
      assert_string_equal(tg_device(l), device);
      tg_optim_zero_grad(o);
    }
  tg_set_training(C, false);
  OK(tg_read(w, weight, 12 * sizeof *weight));
  tg_optim_free(o);
  remove(path);
  return loss;
}

static void training(void **state) {
  (void)state;
  float one[12], other[12], filed[12];
  float loss = trained("CPU", false, one);
  assert_true(fabsf(trained("INTERP", false, other) - loss) < 1e-6f);
  assert_true(fabsf(trained("INTERP", true, filed) - loss) < 1e-6f);
  for (int i = 0; i < 12; i++)
    assert_true(fabsf(one[i] - other[i]) < 1e-5f && other[i] == filed[i]);
}

/* ---- captured functions */
static TgStatus across(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgTensor *const *kept = user; /* a factor, and a count, on INTERP */
  (void)nin, (void)nout;
  TgTensor *there = tg_to(tg_slice(tg_mul_scalar(in[0], 2), 0, 1, 4), "INTERP");
  tg_assign(kept[1], tg_add_scalar(kept[1], 1));
  TgTensor *y = tg_add(tg_mul(there, kept[0]), kept[1]);
  out[0] = tg_to(tg_mul_scalar(y, 10), "CPU"), out[1] = y;
  return tg_error(c);
}

static void captured(void **state) {
  (void)state;
  TgTensor *kept[] = {tg_to(X("[1.0, 10.0, 100.0]"), "INTERP"), tg_zeros(C, TG_SHAPE(1), .device = "INTERP")};
  for (int i = 0; i < 2; i++)
    kept[i] = tg_keep(tg_contiguous(kept[i]));
  OK(tg_realize_many(kept, 2));
  TgJit *j = tg_jit(C, across, kept);
  for (int i = 1; i <= 5; i++)
    TG_SCOPE(C) {
      TgTensor *in = tg_contiguous(tg_full(C, TG_SHAPE(4), i)), *out[2];
      OK(tg_jit_run(j, &in, 1, out, 2));
      char want[80];
      snprintf(want, sizeof want, "[%.1f, %.1f, %.1f]", 3. * i, 21. * i, 201. * i);
      TEXT(out[1], "INTERP", want);
      snprintf(want, sizeof want, "[%.1f, %.1f, %.1f]", 30. * i, 210. * i, 2010. * i);
      TEXT(out[0], "CPU", want);
    }
  TgTensor *in = tg_contiguous(tg_full(C, TG_SHAPE(4), 1, .device = "INTERP")), *out[2] = {0};
  assert_int_equal(tg_jit_run(j, &in, 1, out, 2), TG_ERR_DEVICE);
  ERROR(NULL, TG_ERR_DEVICE, "jit: input 0 is on INTERP, captured on CPU");
  tg_jit_free(j);
  for (int i = 0; i < 2; i++)
    tg_release(kept[i]);
}

/* Two kinds of GPUs share no driver: what goes from one to the other goes through the host, in pieces, of
 * which the last is not full; and the host's memory is given back. */
static void two_kinds(void **state) {
  (void)state;

  enum { N = (9 << 20) / 4 + 1000 };

  static float v[N], got[N];
  setenv("TG_EMU", "1", 1);
  for (int turned = 0; turned < 2; turned++) {
    const char *from = turned ? "METAL" : "CUDA", *to = turned ? "CUDA" : "METAL";
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = from});
    if (tg_error(ctx)) fail_msg("%s", tg_errmsg(ctx));
    for (int i = 0; i < N; i++)
      v[i] = (float)(i % 9973);
    int pinned = 0;
    for (int k = 0; k < 4; k++) {
      size_t n = k % 2 ? N : 3;
      memset(got, 0, sizeof got);
      TG_SCOPE(ctx) {
        TgTensor *there = tg_to(tg_from(ctx, v, TG_F32, TG_SHAPE((int64_t)n)), to);
        assert_int_equal(tg_read(there, got, n * sizeof *got), TG_OK);
        assert_string_equal(tg_device(there), to);
      }
      assert_memory_equal(got, v, n * sizeof *got);
      if (k == 1) pinned = cuda_mock_counts().pinned; /* what is kept for copies */
      if (k > 1) assert_int_equal(cuda_mock_counts().pinned, pinned);
    }
    tg_close(ctx);
  }
  unsetenv("TG_EMU");
  assert_int_equal(cuda_mock_counts().pinned, 0);
}

/* ---- files */
static void files(void **state) {
  (void)state;
  char path[] = "/tmp/tg_devices_XXXXXX";
  int fd = mkstemp(path);
  float v[12];
  for (int i = 0; i < 12; i++)
    v[i] = (float)i;
  assert_true(fd >= 0 && write(fd, v, sizeof v) == sizeof v);
  close(fd);
  TgTensor *d = tg_from_file(C, path, TG_F32, TG_SHAPE(3, 4), .device = "DISK");
  assert_string_equal(tg_device(d), "DISK");
  TEXT(tg_to(tg_slice(d, 0, 1, 2), "INTERP"), "INTERP", "[[4.0, 5.0, 6.0, 7.0]]");
  TEXT(tg_to(tg_permute(tg_slice(d, 1, 1, 3), TG_SHAPE(1, 0)), "CPU"), "CPU",
       "[[1.0, 5.0, 9.0], [2.0, 6.0, 10.0]]");
  assert_int_equal(tg_realize(tg_mul(d, d)), TG_ERR_DEVICE);
  ERROR(NULL, TG_ERR_DEVICE, "DISK: it computes nothing");
  TEXT(tg_slice(d, 0, 2, 3), "DISK", "[[8.0, 9.0, 10.0, 11.0]]"); /* read as it is */
  ERROR(tg_from_file(C, path, TG_F32, TG_SHAPE(3, 4), .device = "DISK", .writable = true), TG_ERR_VALUE,
        "nothing is stored on DISK");
  remove(path);
}

/* What only a move needs stays, what nothing needs goes. */
static void swept(void **state) {
  (void)state;
  TgTensor *y = NULL;
  TG_SCOPE(C) y = tg_keep(tg_to(tg_mul_scalar(X("[1.0, 2.0]"), 2), "INTERP"));
  OK(tg_collect(C));
  TEXT(y, "INTERP", "[2.0, 4.0]");
  OK(tg_collect(C));
  TEXT(tg_add(y, y), "INTERP", "[4.0, 8.0]");
  tg_release(y);
  tg_counters_reset(C);
  for (int i = 0; i < 50; i++)
    TG_SCOPE(C) OK(tg_realize(tg_to(tg_add_scalar(tg_arange(C, 0, 1 << 18), i), "INTERP")));
  assert_true(tg_counters(C).peak_bytes < 8 << 20);
}

static void limits(void **state) {
  (void)state;
  TgTensor *x = tg_keep(tg_contiguous(tg_full(C, TG_SHAPE(1 << 18), 1))); /* 1 MiB */
  OK(tg_realize(x));
  OK(tg_memory_limit(C, NULL, 3 << 20));
  TgTensor *y = tg_keep(tg_add_scalar(x, 1));
  OK(tg_realize(y));
  TgTensor *z = tg_keep(tg_contiguous(tg_expand(tg_full(C, TG_SHAPE(1), 2), TG_SHAPE(2 << 18))));
  assert_int_equal(tg_realize(z), TG_ERR_NOMEM);
  ERROR(NULL, TG_ERR_NOMEM, "CPU: cannot allocate 2097152 bytes: 2097152 of at most 3145728 are in use");
  OK(tg_memory_limit(C, "INTERP", 1 << 10)); /* each has its own */
  TG_SCOPE(C) assert_int_equal(tg_realize(tg_to(x, "INTERP")), TG_ERR_NOMEM);
  ERROR(NULL, TG_ERR_NOMEM, "INTERP");
  TgTensor *last = tg_slice(y, 0, (1 << 18) - 1, 1 << 18);
  assert_true(tg_item_f64(last) == 2); /* nothing is lost */
  tg_release(x);
  OK(tg_collect(C));
  OK(tg_realize(z));
  OK(tg_memory_limit(C, NULL, 0));
  assert_true(tg_item_f64(tg_max(z)) == 2);
  tg_release(y), tg_release(z);
}

static void symbolic(void **state) {
  (void)state;
  TgVariable *n = tg_variable(C, "n", 1, 8);
  TgTensor *x = tg_mul_scalar(X("[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]"), 2);
  TgTensor *part = tg_slice(x, 0, 0, tg_size(n)), *there = tg_to(tg_add_scalar(part, 1), "INTERP");
  for (int k = 3; k <= 5; k += 2) {
    OK(tg_variable_bind(n, k));
    TEXT(there, "INTERP", k == 3 ? "[3.0, 5.0, 7.0]" : "[3.0, 5.0, 7.0, 9.0, 11.0]");
  }
}

/* A memory has the number of one that was freed, which was on another device. */
static void numbers_again(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    const char *device = i % 2 ? "CPU" : "INTERP";
    OK(tg_set_default_device(C, device));
    for (int k = 0; k < 8; k++)
      TG_SCOPE(C) TEXT(tg_add(X("[1, 2]"), X("[3, 4]")), device, "[4, 6]");
    OK(tg_collect(C));
  }
}

int main(void) {
#define ONE(f) cmocka_unit_test_setup_teardown(f, open_cpu, close_it)
  const struct CMUnitTest tests[] = {ONE(default_moves),
                                     ONE(moves),
                                     ONE(copied_once),
                                     ONE(numbers),
                                     ONE(mixed),
                                     ONE(stores_between),
                                     ONE(created_there),
                                     ONE(draws),
                                     ONE(gradients),
                                     ONE(training),
                                     ONE(captured),
                                     ONE(files),
                                     cmocka_unit_test(two_kinds),
                                     ONE(swept),
                                     ONE(numbers_again),
                                     cmocka_unit_test(none_opens),
                                     ONE(limits),
                                     ONE(symbolic)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
