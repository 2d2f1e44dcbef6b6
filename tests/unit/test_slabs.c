/* test_slabs.c: the memory between a plan's kernels, which plans hand to each other. A plan whose sizes vary
 * may read more than it has written, so what another plan left is cleared for it, once; no other plan pays for
 * that. In: programs on INTERP, whose backend counts what is cleared. */
#include "runtime/device.h"
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 64 };

static const TgBackend *inner;
static int clears;

static TgStatus counted_clear(Device *d, void *to, size_t nbytes) {
  clears++;
  return inner->clear(d, to, nbytes);
}

static double sum_of(TgTensor *x) { /* by way of memory that no handle has */
  return tg_item_f64(tg_sum(tg_contiguous(tg_add_scalar(tg_contiguous(tg_mul_scalar(x, 2)), 1))));
}

/* How often a program over the first n of 0, 1, .. clears memory. count: n as a number. */
static int cleared_by(TgContext *c, int64_t n, int count) {
  int before = clears;
  TG_SCOPE(c) { /* numbers of their own each time, so that no sum is known */
    TgTensor *x = tg_clone(tg_arange(c, 0, MOST, .dtype = TG_F32));
    assert_int_equal(tg_realize(x), TG_OK);
    assert_true(sum_of(tg_slice(x, 0, 0, n)) == count * (count - 1) + count); /* 2 * (0 + 1 + ..) + count */
  }
  return clears - before;
}

static void test_cleared(void **state) {
  (void)state;
  setenv("TG_FUSE", "0", 1);
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .threads = 1});
  unsetenv("TG_FUSE");
  assert_int_equal(tg_error(c), TG_OK);
  TgVariable *rows = tg_variable(c, "rows", 1, MOST);
  Device *d = c->devices.at[0];
  inner = d->backend;
  TgBackend counting = *inner;
  counting.clear = counted_clear;
  d->backend = &counting;
  /* two plans of fixed sizes, in turns */
  for (int i = 0; i < 3; i++)
    assert_int_equal(cleared_by(c, MOST, MOST) + cleared_by(c, MOST - 1, MOST - 1), 0);
  /* one of a size that varies: once, and again when another was there between */
  for (int i = 0; i < 3; i++) {
    assert_int_equal(tg_variable_bind(rows, 5 + i), TG_OK);
    assert_true(cleared_by(c, tg_size(rows), 5 + i) > 0);
    assert_int_equal(cleared_by(c, tg_size(rows), 5 + i), 0);
    assert_int_equal(cleared_by(c, MOST, MOST), 0);
  }
  assert_int_equal(tg_error(c), TG_OK);
  d->backend = inner;
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cleared)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
