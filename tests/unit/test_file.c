/* test_file.c: tensors that are parts of files, on devices that use the file's memory and on one that copies.
 * The files are written and read here with plain C. */
#define _GNU_SOURCE
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const devices[] = {"CPU", "INTERP", "INTERP:CUDA"};

enum { DEVICES = 3 };

static char dir[] = "/tmp/tg_test_file_XXXXXX", path[64], other[64];

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(dir)) return 1;
  snprintf(path, sizeof path, "%s/data", dir), snprintf(other, sizeof other, "%s/other", dir);
  return 0;
}

static int teardown(void **state) { return (void)state, unlink(path), unlink(other), rmdir(dir); }

static TgContext *open_on(const char *device) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  if (tg_error(c)) fail_msg("%s: %s", device, tg_errmsg(c));
  return c;
}

static void file_write(const char *to, const void *p, size_t n) {
  FILE *f = fopen(to, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(p, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static size_t file_read(const char *from, void *p, size_t n) {
  FILE *f = fopen(from, "rb");
  assert_non_null(f);
  size_t got = fread(p, 1, n, f);
  fclose(f);
  return got;
}

static void refused(TgContext *c, TgTensor *t, TgStatus s, const char *text) {
  assert_null(t);
  if (tg_error(c) != s || !strstr(tg_errmsg(c), text))
    fail_msg("%s: %s", tg_status_name(tg_error(c)), tg_errmsg(c));
  tg_clear_error(c);
}

/* 1, 0, 1, 1, .. of every dtype, at offsets of every alignment, over a page's end */
static void test_dtypes(void **state) {
  (void)state;

  static const struct {
    TgDType d;
    uint64_t one;
  } kinds[] = {{TG_BOOL, 1},
               {TG_I8, 1},
               {TG_U8, 1},
               {TG_I16, 1},
               {TG_U16, 1},
               {TG_I32, 1},
               {TG_U32, 1},
               {TG_I64, 1},
               {TG_U64, 1},
               {TG_F16, 0x3c00},
               {TG_BF16, 0x3f80},
               {TG_F32, 0x3f800000},
               {TG_F64, 0x3ff0000000000000},
               {TG_FP8E4M3, 0x38},
               {TG_FP8E5M2, 0x3c}};

  static unsigned char bytes[20000];
  for (int dev = 0; dev < DEVICES; dev++) {
    TgContext *c = open_on(devices[dev]);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      TG_SCOPE(c) {
        size_t size = tg_dtype_size(kinds[k].d), at = size * (1 + 4088 / size), n = 77;
        memset(bytes, 0, sizeof bytes);
        /* little endian */
        for (size_t i = 0; i < n; i++)
          if (i % 3 != 1) memcpy(bytes + at + i * size, &kinds[k].one, size);
        file_write(path, bytes, at + n * size);
        TgTensor *t = tg_from_file(c, path, kinds[k].d, TG_SHAPE(7, 11), .offset = (int64_t)at);
        double got[77], sum = tg_item_f64(tg_sum(tg_cast(t, TG_F32)));
        assert_int_equal(tg_read_f64(t, got, 77), TG_OK);
        for (size_t i = 0; i < n; i++)
          assert_true(got[i] == (i % 3 != 1));
        assert_true(sum == 51);
        assert_int_equal(tg_read_f64(tg_flip(tg_slice(t, 0, 2, 4), 1, (int64_t[]){1}), got, 22), TG_OK);
        for (int i = 0; i < 22; i++)
          assert_true(got[i] == ((22 + i / 11 * 11 + 10 - i % 11) % 3 != 1));
      }
    assert_int_equal(tg_error(c), TG_OK);
    tg_close(c);
  }
}

static void test_write(void **state) {
  (void)state;
  for (int dev = 0; dev < DEVICES; dev++) {
    float was[12], now[12];
    for (int i = 0; i < 12; i++)
      was[i] = (float)i;
    file_write(path, was, sizeof was);
    TgContext *c = open_on(devices[dev]);
    TgTensor *t = tg_from_file(c, path, TG_F32, TG_SHAPE(2, 4), .offset = 8, .writable = true);
    assert_int_equal(tg_realize(tg_assign(t, tg_mul_scalar(t, 10))), TG_OK);
    assert_int_equal(file_read(path, now, sizeof now), sizeof now); /* before the context is closed */
    for (int i = 0; i < 12; i++)
      assert_true(now[i] == (float)(i >= 2 && i < 10 ? 10 * i : i));
    assert_int_equal(
        tg_realize(tg_assign_slice(t, (int64_t[]){1, 0}, (int64_t[]){2, 2}, tg_full(c, TG_SHAPE(1, 2), -1))),
        TG_OK);
    /* a view of it is a view of the file */
    assert_int_equal(tg_realize(tg_assign(tg_select(t, 1, 3), tg_full(c, TG_SHAPE(2), -2))), TG_OK);
    assert_int_equal(tg_error(c), TG_OK);
    tg_close(c);
    assert_int_equal(file_read(path, now, sizeof now), sizeof now);
    for (int i = 0; i < 12; i++) {
      float want = i == 6 || i == 7 ? -1 : i == 5 || i == 9 ? -2 : (float)(i >= 2 && i < 10 ? 10 * i : i);
      if (now[i] != want) fail_msg("%s: %d is %g, not %g", devices[dev], i, (double)now[i], (double)want);
    }
  }
}

static void test_create(void **state) {
  (void)state;
  for (int dev = 0; dev < DEVICES; dev++) {
    int32_t now[8];
    unlink(other);
    TgContext *c = open_on(devices[dev]);
    TgTensor *t = tg_from_file(c, other, TG_I32, TG_SHAPE(3), .offset = 4, .create = true);
    assert_true(tg_item_i64(tg_sum(t)) == 0);
    assert_int_equal(tg_realize(tg_assign(t, tg_arange(c, 5, 8))), TG_OK);
    assert_int_equal(file_read(other, now, sizeof now), 16);
    assert_true(now[0] == 0 && now[1] == 5 && now[2] == 6 && now[3] == 7);
    /* lengthened; the rest stays */
    TgTensor *more = tg_from_file(c, other, TG_I32, TG_SHAPE(2), .offset = 16, .create = true);
    assert_int_equal(tg_realize(tg_assign(more, tg_arange(c, 1, 3))), TG_OK);
    assert_int_equal(file_read(other, now, sizeof now), 24);
    assert_true(now[1] == 5 && now[4] == 1 && now[5] == 2);
    tg_close(c);
  }
}

static void test_refused(void **state) {
  (void)state;
  float v[4] = {1, 2, 3, 4};
  file_write(path, v, sizeof v);
  for (int dev = 0; dev < DEVICES; dev++) {
    TgContext *c = open_on(devices[dev]);
    refused(c, tg_from_file(c, "/nowhere/at/all", TG_F32, TG_SHAPE(1)), TG_ERR_IO, "/nowhere/at/all");
    refused(c, tg_from_file(c, "/nowhere/at/all", TG_F32, TG_SHAPE(1), .create = true), TG_ERR_IO,
            "/nowhere/at/all");
    refused(c, tg_from_file(c, NULL, TG_F32, TG_SHAPE(1)), TG_ERR_VALUE, "no path");
    refused(c, tg_from_file(c, dir, TG_F32, TG_SHAPE(1)), TG_ERR_IO, "not a regular file");
    refused(c, tg_from_file(c, "/dev/zero", TG_F32, TG_SHAPE(1)), TG_ERR_IO, "not a regular file");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(5)), TG_ERR_IO, "has 16 bytes, the tensor ends at 20");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(4), .offset = 4), TG_ERR_IO, "ends at 20");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(1), .offset = 2), TG_ERR_VALUE, "no multiple of 4");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(1), .offset = -4), TG_ERR_VALUE, "offset -4");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(1), .offset = INT64_MAX - 3), TG_ERR_VALUE, "offset");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE((int64_t)1 << 50)), TG_ERR_IO, "has 16 bytes");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(INT64_MAX / 2, 3)), TG_ERR_SHAPE, "");
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(-2)), TG_ERR_SHAPE, "");
    refused(c, tg_from_file(c, path, (TgDType)99, TG_SHAPE(1)), TG_ERR_DTYPE, "");
    TgTensor *t = tg_from_file(c, path, TG_F32, TG_SHAPE(2, 2));
    TgTensor *none = tg_from_file(c, path, TG_F32, TG_SHAPE(0, 3), .offset = 16);
    refused(c, tg_assign(t, tg_full(c, TG_SHAPE(2, 2), 7)), TG_ERR_STATE, "opened for reading");
    refused(c, tg_assign(tg_select(t, 0, 1), tg_full(c, TG_SHAPE(2), 7)), TG_ERR_STATE, "opened for reading");
    refused(c, tg_assign_slice(t, (int64_t[]){0, 0}, (int64_t[]){1, 1}, tg_full(c, TG_SHAPE(1, 1), 7)),
            TG_ERR_STATE, "opened for reading");
    assert_true(tg_item_f64(tg_sum(t)) == 10);
    assert_int_equal(tg_numel(none), 0);
    assert_int_equal(tg_realize(none), TG_OK);
    tg_close(c);
  }
  if (geteuid()) { /* root may write everything */
    TgContext *c = open_on("INTERP");
    chmod(path, 0400);
    refused(c, tg_from_file(c, path, TG_F32, TG_SHAPE(1), .writable = true), TG_ERR_IO, "denied");
    chmod(path, 0600);
    tg_close(c);
  }
}

/* Neither a store that cannot be made for want of memory nor an error from before keeps another file from being
 * written at the end. */
static void test_one_fails(void **state) {
  (void)state;

  enum { MANY = 4 << 20 };

  char other[600];
  snprintf(other, sizeof other, "%s.other", path);
  for (int turn = 0; turn < 2; turn++) {
    float v[4] = {1, 2, 3, 4}, got[4] = {0};
    file_write(path, v, sizeof v), file_write(other, v, sizeof v);
    TgContext *c =
        tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP", .memory_limit = 1 << 20});
    assert_int_equal(tg_error(c), TG_OK);
    TgTensor *good = tg_from_file(c, path, TG_F32, TG_SHAPE(4), .writable = true);
    TgTensor *bad = tg_from_file(c, other, TG_F32, TG_SHAPE(4), .writable = true);
    TgTensor *large = tg_contiguous(tg_full(c, TG_SHAPE(MANY), 1));
    if (turn) assert_non_null(tg_assign(bad, tg_slice(tg_contiguous(tg_neg(large)), 0, 0, 4)));
    assert_non_null(tg_assign(good, tg_full(c, TG_SHAPE(4), 9)));
    if (!turn) assert_non_null(tg_assign(bad, tg_slice(tg_contiguous(tg_neg(large)), 0, 0, 4)));
    if (turn) tg_set_error(c, TG_ERR_VALUE, "an error that nobody has cleared");
    tg_close(c);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(got, sizeof *got, 4, f), 4);
    fclose(f);
    for (int i = 0; i < 4; i++)
      assert_true(got[i] == 9);
    unlink(other);
  }
}

static size_t mappings(void) { /* of our file, in this process */
  char line[600];
  size_t n = 0;
  FILE *f = fopen("/proc/self/maps", "r");
  if (!f) return 0;
  while (fgets(line, sizeof line, f))
    n += strstr(line, path) != NULL;
  fclose(f);
  return n;
}

/* with the last tensor that reads it; no copy where the device uses host memory */
static void test_unmapped(void **state) {
  (void)state;
  float v[4] = {1, 2, 3, 4};
  file_write(path, v, sizeof v);
  for (int dev = 0; dev < DEVICES; dev++) {
    TgContext *c = open_on(devices[dev]);
    TG_SCOPE(c) {
      TgTensor *t = tg_from_file(c, path, TG_F32, TG_SHAPE(4));
      assert_true(tg_item_f64(tg_sum(t)) == 10);
      assert_int_equal(mappings(), dev < 2);
    }
    assert_int_equal(tg_collect(c), TG_OK);
    assert_int_equal(mappings(), 0);
    assert_non_null(tg_from_file(c, path, TG_F32, TG_SHAPE(4)));
    tg_close(c);
    assert_int_equal(mappings(), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_dtypes),    cmocka_unit_test(test_write),
                                     cmocka_unit_test(test_create),    cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_one_fails), cmocka_unit_test(test_unmapped)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
