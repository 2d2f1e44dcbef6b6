/* test_target.c: the machine that a device plans for. Devices without a machine of their own plan alike
 * everywhere; a plan follows the numbers it is given. */
#define _GNU_SOURCE
#include "base/os.h"
#include "base/processor.h"
#include "engine/engine.h"
#include "runtime/device.h"
#include "tensor/context.h"
#include "uop/matrix.h"
#include "plan/tile.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *opened(const char *device, int cores) {
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device, .cores = cores});
  assert_int_equal(tg_error(ctx), TG_OK);
  return ctx;
}

static void test_written_down(void **state) {
  (void)state;

  static const struct {
    const char *device;
    const Target *target;
  } known[] = {{"NULL:C", &target_planned},   {"INTERP", &target_planned},    {"INTERP:C", &target_planned},
               {"NULL:AMX", &target_amx},     {"INTERP:AMX", &target_amx},    {"NULL:DOT", &target_dot},
               {"INTERP:DOT", &target_dot},   {"NULL:CUDA", &target_cuda},    {"INTERP:CUDA", &target_cuda},
               {"NULL:METAL", &target_metal}, {"INTERP:METAL", &target_metal}};

  for (size_t i = 0; i < TG_COUNT(known); i++) {
    TgContext *ctx = opened(known[i].device, 0);
    assert_memory_equal(&ctx->devices.at[0]->target, known[i].target, sizeof(Target));
    tg_close(ctx);
    ctx = opened(known[i].device, 3); /* cores of a processor: a GPU has its own */
    assert_int_equal(ctx->devices.at[0]->target.cores,
                     known[i].target->warp > 1 ? known[i].target->cores : 3);
    tg_close(ctx);
  }
}

static void is_sane(const Target *t) {
  assert_true(t->cores >= 1 && t->streams >= 1 && t->warp >= 1 && t->mhz >= 100 && t->mhz < 20000);
  assert_true(t->vec_bytes >= 16 && t->registers >= 16 && t->local_bytes >= 16 << 10 && t->launch_us > 0);
  for (int l = LEVEL_L1; l < NLEVEL; l++)
    assert_true(t->bytes_us[l] > 1000 && (!l || t->bytes_us[l] <= t->bytes_us[l - 1]));
  double last = 0;
  for (int l = LEVEL_L1; l < LEVEL_MEMORY; l++) {
    if (!t->cache[l]) continue;
    assert_true((double)t->cache[l] > last);
    last = (double)t->cache[l];
    assert_int_equal(target_level(t, last / 2), l);
    assert_true(target_level(t, last / 2 + 1) > (MemoryLevel)l);
  }
  int64_t sets = t->cache[LEVEL_L1] / 64 / t->ways[LEVEL_L1]; /* a power of two on every processor */
  assert_true(sets * t->ways[LEVEL_L1] * 64 == t->cache[LEVEL_L1] && (sets & (sets - 1)) == 0);
  assert_int_equal(target_level(t, 1e15), LEVEL_MEMORY);
  Str s;
  TgMem mem = {0};
  str_init(&s, &mem);
  target_print(&s, t);
  assert_true(!s.oom && strstr(str_text(&s), t->name) && strstr(str_text(&s), "launch"));
  str_free(&s);
}

static void test_sane(void **state) {
  (void)state;
  Target here = target_this_cpu(), again = target_this_cpu();
  assert_memory_equal(&here, &again, sizeof here); /* nothing is timed */
  is_sane(&here), is_sane(&target_planned), is_sane(&target_cuda), is_sane(&target_metal);
}

/* Rows of a maker for a unit of some age: what is newer is not there. */
static void test_rows(void **state) {
  (void)state;
  assert_int_equal(matrix_rows(MATRIX_DOT, DOTS_NONE), 0);
  assert_int_equal(matrix_rows(MATRIX_DOT, DOTS_BF16), target_dot.matrices);
  assert_int_equal(matrix_rows(MATRIX_DOT, DOTS_BF16) & ~matrix_rows(MATRIX_DOT, DOTS_BYTES),
                   UINT32_C(1) << MATRIX_m1n16k2_bf16_f32);
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i], *other = &matrix_shapes[s->flipped];
    if (!s->flipped) continue;
    assert_true(other->maker == s->maker && other->since == s->since && other->k == s->k && !other->flipped);
    assert_true(other->operand[MATRIX_A].dtype != s->operand[MATRIX_A].dtype);
    assert_int_equal(other->operand[MATRIX_B].dtype, s->operand[MATRIX_B].dtype);
  }
}

/* Blocks hold all results, and no more of them than a unit takes. */
static void test_blocks(void **state) {
  (void)state;
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    for (int64_t rows = 1; matrix_in_memory(s) && rows < 300; rows++)
      for (int64_t columns = 1; columns < 100; columns += 3) {
        int64_t m, n;
        matrix_block(s, rows, columns, &m, &n);
        assert_true(m >= 1 && m <= rows && n >= 1 && n <= columns);
        int64_t tiles = (m + s->m - 1) / s->m * ((n + s->n - 1) / s->n);
        assert_true(tiles * s->m * s->n <= s->blocks.most[0] * s->blocks.most[1]);
        assert_true(matrix_cycles(s, (double)rows, (double)columns, 64) > 0);
      }
  }
}

static int kernels_of(TgTensor *t) { return (int)tg_schedule(&t, 1, NULL, NULL); }

static void test_other_machine(void **state) {
  (void)state;
  TgContext *ctx = opened("NULL:C", 0);
  assert_int_equal(kernels_of(tg_softmax(tg_empty(ctx, TG_F32, TG_SHAPE(512, 1024)))), 1);
  tg_close(ctx);
  ctx = opened("NULL:C", 0);
  ctx->devices.at[0]->target.local_bytes =
      1024; /* a row does not fit: its exponentials are computed again or stored */
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(64, 768)), *w = tg_empty(ctx, TG_F32, TG_SHAPE(768, 768));
  assert_true(kernels_of(tg_softmax(tg_matmul(x, w))) > 1);
  tg_close(ctx);
}

static double product(const Target *t, double rows, double columns, double lanes, double along) {
  TileLoops l = {{rows, columns}, {1, lanes}, along, 1024};
  double cycles = tile_product(t, &l);
  assert_true(cycles >= 1 / t->fmas);
  return cycles;
}

/* What a product takes: near the units' rate with a tile, more with less to cut one from. */
static void test_tiles(void **state) {
  (void)state;
  const Target *const all[] = {&target_planned, &target_cuda, &target_metal};
  for (size_t i = 0; i < TG_COUNT(all); i++) {
    const Target *t = all[i];
    assert_true(product(t, 512, 512, 512, 1) < 1.15 / t->fmas);
    double last = INFINITY;
    for (int n = 1; n <= 64; n *= 2) { /* rows that share what is loaded */
      double cycles = product(t, n, 512, 512, 1);
      assert_true(cycles <= last);
      last = cycles;
    }
  }
  /* registers of another size are as many rows as they hold: AVX2, NEON */
  Target narrow = target_planned;
  for (narrow.vec_bytes = 16; narrow.vec_bytes <= 32; narrow.vec_bytes *= 2) {
    narrow.registers = narrow.vec_bytes == 16 ? 32 : 16;
    narrow.fmas = target_planned.fmas / 2;
    assert_true(product(&narrow, 512, 512, 512, 1) < 1.2 / narrow.fmas);
  }
  const Target *t = &target_planned;
  assert_true(product(t, 1, 512, 512, 1) > 2 / t->fmas);                          /* additions wait */
  assert_true(product(t, 512, 512, 1, 1) > 5 * product(t, 512, 512, 512, 1));     /* lanes lie apart */
  assert_true(product(t, 512, 512, 1, 512) < 1.5 * product(t, 512, 512, 512, 1)); /* .. but along the sum */
  assert_true(product(t, 512, 7, 7, 1) > 1.5 * product(t, 512, 16, 16, 1));       /* 4, 2 and 1 */
  TileStep fits = {.work = 10, .vectors = tile_room(t)}, spilled = {.work = 10, .vectors = tile_room(t) + 1};
  assert_true(tile_step(t, &spilled) > 2 * tile_step(t, &fits));
}

/* A reduction to fewer results than cores is split where that pays: on one core it does not. */
static void test_parts_counted(void **state) {
  (void)state;
  for (int cores = 1; cores <= 8; cores += 7) {
    TgContext *ctx = opened("NULL:C", cores);
    TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(4096, 4096)), *y = tg_empty(ctx, TG_F32, TG_SHAPE(64, 16));
    assert_int_equal(kernels_of(tg_sum(x)), cores > 1 ? 2 : 1);
    assert_int_equal(kernels_of(tg_sum(x, .axis = TG_AXES(0))), 1);
    assert_int_equal(kernels_of(tg_sum(y)), 1);
    tg_close(ctx);
  }
}

/* On a machine where any gain is enough: the values, and what is assigned to behind the parts. */
static void test_parts(void **state) {
  (void)state;

  enum { ROWS = 192, COLUMNS = 3 };

  static float v[ROWS * COLUMNS];
  double sum[COLUMNS] = {0}, most[COLUMNS], all = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    v[i] = (float)(i * 37 % 101) / 8 - 5;
    all += (double)v[i] * 2, sum[i % COLUMNS] += v[i];
    most[i % COLUMNS] = i < COLUMNS || v[i] > most[i % COLUMNS] ? v[i] : most[i % COLUMNS];
  }
  TgContext *ctx = opened("INTERP:C", 0);
  ctx->devices.at[0]->target.launch_us = ctx->devices.at[0]->target.distribute_us = 0,
  ctx->devices.at[0]->target.cores = ctx->devices.at[0]->target.streams = 64;
  TgTensor *x = tg_contiguous(tg_from(ctx, v, TG_F32, TG_SHAPE(ROWS, COLUMNS)));
  assert_int_equal(tg_realize(x), TG_OK);
  TgTensor *t[] = {tg_sum(x, .axis = TG_AXES(0)), tg_max(x, .axis = TG_AXES(0)), tg_sum(tg_add(x, x)), NULL};
  float got[2 * COLUMNS + 1], after[ROWS * COLUMNS];
  assert_true(tg_schedule(t, 3, NULL, NULL) > 3);
  t[3] = tg_assign(x, tg_mul_scalar(x, 3));
  assert_int_equal(tg_realize_many(t, 4), TG_OK);
  assert_int_equal(tg_read(t[0], got, COLUMNS * sizeof *got), TG_OK);
  assert_int_equal(tg_read(t[1], got + COLUMNS, COLUMNS * sizeof *got), TG_OK);
  assert_int_equal(tg_read(t[2], got + 2 * COLUMNS, sizeof *got), TG_OK);
  assert_int_equal(tg_read(x, after, sizeof after), TG_OK);
  for (int c = 0; c < COLUMNS; c++)
    assert_true(got[c] == sum[c] && got[COLUMNS + c] == most[c]); /* eighths: every sum is exact */
  assert_true(got[2 * COLUMNS] == all);
  for (int i = 0; i < ROWS * COLUMNS; i++)
    assert_true(after[i] == 3 * v[i]);
  tg_close(ctx);
}

/* fp8 where the hardware multiplies it; elsewhere its products go by the rows of f16. */
static void test_rows_of_hardware(void **state) {
  (void)state;
  const uint32_t fp8 = UINT32_C(1) << MATRIX_m16n8k32_e4m3_f32 | UINT32_C(1) << MATRIX_m16n8k32_e5m2_f32;
  const uint32_t f16 = UINT32_C(1) << MATRIX_m16n8k16_f16_f32;
  static const int with[] = {89, 120, 121}, without[] = {75, 80, 86, 90, 100, 103, 110};
  for (size_t i = 0; i < TG_COUNT(with); i++)
    assert_int_equal(matrix_rows(MATRIX_CUDA, with[i]) & (fp8 | f16), fp8 | f16);
  for (size_t i = 0; i < TG_COUNT(without); i++)
    assert_int_equal(matrix_rows(MATRIX_CUDA, without[i]) & (fp8 | f16), without[i] < 80 ? 0 : f16);
}

static int tiles_given(void) { return 0; }

/* Tiles are planned for where the processor has them, the system gives them and TG_AMX does not forbid it: all
 * three. */
static void test_tiles_asked(void **state) {
  (void)state;
  TgOs os = tg_os_default;
  os.tiles_ask = tiles_given;
  for (int wanted = 0; wanted < 2; wanted++) {
    setenv("TG_AMX", wanted ? "1" : "0", 1);
    TgContext *c =
        context_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU"}, &os, (TgMem){0});
    unsetenv("TG_AMX");
    assert_int_equal(tg_error(c), TG_OK);
    bool has = (c->devices.at[0]->target.matrices & matrix_rows(MATRIX_AMX, AMX_FIRST)) != 0;
    assert_int_equal(has, wanted && processor_tiles());
    tg_close(c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_written_down),
                                     cmocka_unit_test(test_sane),
                                     cmocka_unit_test(test_rows),
                                     cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_tiles),
                                     cmocka_unit_test(test_other_machine),
                                     cmocka_unit_test(test_rows_of_hardware),
                                     cmocka_unit_test(test_parts_counted),
                                     cmocka_unit_test(test_parts),
                                     cmocka_unit_test(test_tiles_asked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
