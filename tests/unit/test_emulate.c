/* test_emulate.c: the emulator of GPU kernels. What it must see, each in a kernel with one fault and in the
 * same kernel without; matrix products of a warp against plain ones; and kernels that the renderer wrote,
 * against the interpreter, in three orders of threads and blocks. */
#define _GNU_SOURCE
#include "emu/emulate.h"
#include "base/os.h"
#include "runtime/device.h"
#include "tensor/context.h"
#include "kernels/golden.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- kernels with faults: compiled with BAD 1 and BAD 0 */
static const char faults[] =
#include "unit/emulate_faults.inc"
    ;

/* args, in order: oN, iN: N floats, that nobody wrote or 0, 1, 2 ..; dN: the same released before the launch;
 * bN, uN: N bytes, unset or 0; zN: N floats of 0; nV: an i64; -: missing. */
typedef struct Fault {
  const char *kernel, *args, *want; /* want: in the message */
  int grid, block, bad_grid, bad_block, dynamic;
} Fault;

static const Fault fault_table[] = {
    {"no_barrier", "o64 i64", "race in a block: reads a byte at byte", 1, 64, 0, 0, 0},
    {"overwrite", "o64 i64", "race in a block: reads", 1, 64, 0, 0, 0},
    {"barrier_in_loop", "o64 i64", "race in a block", 1, 64, 0, 0, 0},
    {"divergent", "o64", "divergence", 1, 64, 0, 0, 0},
    {"early_return", "o64", "divergence: it waits at the barrier in line", 1, 64, 0, 0, 0},
    {"other_barrier", "o64", "at another in line", 1, 64, 0, 0, 0},
    {"grid", "o128 i128", "out of bounds: reads 4 bytes 0 bytes past the end of argument 2 (512 bytes)", 2,
     64, 3, 0, 0},
    {"past_end", "o64 i64", "0 bytes past the end of argument 1 (256 bytes)", 1, 64, 0, 0, 0},
    {"before_start", "o64 i64", "4 bytes before argument 2 (256 bytes)", 1, 64, 0, 0, 0},
    {"over_end", "o64 i64", "over its end", 1, 16, 0, 0, 0},
    {"far_away", "o64 i64", "far from any allocation", 1, 1, 0, 0, 0},
    {"null_pointer", "o64 i64", "far from any allocation", 1, 1, 0, 0, 0},
    {"unset_shared", "o64", "nobody wrote, at byte 252 of shared l0 (256 bytes)", 1, 64, 0, 0, 0},
    {"unset_shared_add", "o64", "nobody wrote", 1, 64, 0, 0, 0},
    {"shared_of_last_block", "o64", "nobody wrote", 2, 32, 0, 0, 0},
    {"unset_device", "o64 o64", "reads a byte that nobody wrote, at byte 4 of argument 2", 1, 1, 0, 0, 0},
    {"race_device", "o64", "race in a block: writes a byte at byte 0 of argument 1", 1, 64, 0, 0, 0},
    {"race_bytes", "b64", "race in a block: writes a byte at byte 1 of argument 1", 1, 64, 0, 0, 0},
    {"race_blocks", "o64", "race between blocks: writes", 4, 16, 0, 0, 0},
    {"read_blocks", "o64 z64", "race between blocks", 4, 16, 0, 0, 0},
    {"counter", "z1", "race in a block", 1, 64, 0, 0, 0},
    {"counter_blocks", "z1", "race between blocks", 4, 1, 0, 0, 0},
    {"counter_read", "z1 o64", "race in a block: atomically changes", 1, 64, 0, 0, 0},
    {"misaligned_load", "o64 i64", "misaligned", 1, 8, 0, 0, 0},
    {"misaligned_store", "o64 i64", "misaligned", 1, 8, 0, 0, 0},
    {"misaligned_shared", "o64", "misaligned", 1, 8, 0, 0, 0},
    {"shuffle_missing", "o64", "lane 31, which the mask 0xffffffff names, has ended", 1, 32, 0, 0, 0},
    {"shuffle_barrier", "o64", "waits at a barrier", 1, 32, 0, 0, 0},
    {"shuffle_mask", "o64", "is not in its own mask", 1, 32, 0, 0, 0},
    {"shuffle_masks", "o64", "comes with another mask", 1, 32, 0, 0, 0},
    {"shuffle_idle", "o64", "takes the value of lane 16, which takes no part", 1, 32, 0, 0, 0},
    {"no_syncwarp", "o64", "race in a block", 1, 64, 0, 0, 0},
    {"syncwarp_is_not_all", "o64", "race in a block", 1, 64, 0, 0, 0},
    {"copy_no_wait", "o64 i64", "an asynchronous copy is under way to", 1, 16, 0, 0, 0},
    {"copy_no_commit", "o64 i64", "an asynchronous copy is under way to", 1, 16, 0, 0, 0},
    {"copy_no_barrier", "o64 i64", "race in a block", 1, 16, 0, 0, 0},
    {"copy_group", "o64 i64", "an asynchronous copy is under way to", 1, 1, 0, 0, 0},
    {"copy_misaligned", "o64 i64", "misaligned: an asynchronous copy of 16 bytes", 1, 1, 0, 0, 0},
    {"copy_overwritten", "o64 i64", "an asynchronous copy is under way to", 1, 1, 0, 0, 0},
    {"shared_overrun", "o64", "out of bounds: line", 1, 64, 0, 0, 0},
    {"shared_overrun_wide", "o64", "past the end of shared l0 (256 bytes)", 1, 16, 0, 0, 0},
    {"shared_before", "o64", "before shared l1 (256 bytes)", 1, 1, 0, 0, 0},
    {"dynamic_overrun", "o64", "of dynamic shared memory (256 bytes)", 1, 64, 0, 0, 256},
    {"bounds", "o64", "blocks of 65 threads, but its launch bounds are 64", 1, 64, 0, 65, 0},
    {"shift", "o64 n32", "undefined: a shift by too much in line", 1, 1, 0, 0, 0},
    {"overflow", "o64 n2147483647", "undefined: a signed overflow", 1, 1, 0, 0, 0},
    {"division", "o64 n0", "undefined: a division by zero", 1, 1, 0, 0, 0},
    {"local_of_another", "o64", "another thread's own memory", 1, 32, 0, 0, 0},
    {"write_constant", "o64", "out of bounds: writes", 1, 1, 0, 0, 0},
    {"mma_missing", "o64", "mma in line", 1, 32, 0, 0, 0},
    {"rows_missing", "o64", "ldmatrix in line", 1, 32, 0, 0, 0},
    {"rows_misaligned", "o64", "misaligned", 1, 32, 0, 0, 0},
    {"rows_elsewhere", "o64", "not in shared memory", 1, 32, 0, 0, 0},
    {"rows_unset", "o64", "nobody wrote", 1, 32, 0, 0, 0},
    {"rows_race", "o64", "race in a block", 1, 32, 0, 0, 0},
    {"wide", "o64 i64", "misaligned: ", 1, 4, 0, 0, 0},
    {"thousand", "o1", "out of bounds", 1, 1024, 0, 0, 0},
    {"arguments", "o1 n1 n2 n0 n0", "argument 5 of 5 is missing", 1, 1, 0, 0, 0},
    {"block_index", "o64", "past the end of argument 1", 8, 8, 0, 0, 0},
};

/* ---- the emulator under test */
typedef struct Bench {
  TgMem mem;
  TgError err;
  Emu *emu;
  Compiler cc;
  EmuModule *bad, *good;
} Bench;

static Bench bench;

/* The languages whose kernels the renderer writes. barrier, array: how a barrier and a shared array begin in
 * its texts. vars_in_memory: the variables of a kernel are an array behind its buffers. */
typedef struct Language {
  const char *device;
  const TgBackend *interp;
  const EmuDialect *dialect;
  const Renderer *renderer;
  const char *barrier, *array;
  bool vars_in_memory;
} Language;

static const Language cuda = {"INTERP:CUDA",  &backend_interp_cuda, &emu_dialect_cuda,
                              &renderer_cuda, "__syncthreads(",     "__shared__ ",
                              false};
static const Language metal = {"INTERP:METAL",
                               &backend_interp_metal,
                               &emu_dialect_metal,
                               &renderer_metal,
                               "threadgroup_barrier(",
                               ") threadgroup ",
                               true};
static const Language *lang = &cuda;

static EmuModule *module_of(const char *text) {
  Blob object;
  EmuModule *m = NULL;
  TgStatus st =
      emu_compile(&bench.mem, &tg_os_default, &bench.err, &bench.cc, lang->dialect, text, 60, &object);
  if (!st) st = emu_load(bench.emu, object.at, object.nbytes, &bench.err, &m);
  if (st) fail_msg("%s", bench.err.msg);
  mem_free(&bench.mem, object.at);
  return m;
}

enum { MOST_ARGS = 64 };

typedef struct Args {
  void *at[MOST_ARGS], *params[MOST_ARGS];
  size_t nbytes[MOST_ARGS];
  int64_t value[MOST_ARGS];
  int n;
} Args;

static void args_make(Args *a, const char *text) {
  *a = (Args){0};
  for (char *p = (char *)(uintptr_t)text; *p; p += strspn(p, " ")) {
    char kind = *p;
    int i = a->n++;
    long v = strtol(p + 1, &p, 10);
    a->params[i] = kind == '-' ? NULL : kind == 'n' ? (void *)&a->value[i] : &a->at[i];
    a->value[i] = v;
    if (kind == '-' || kind == 'n') continue;
    size_t nbytes = a->nbytes[i] = (size_t)v * (kind == 'b' || kind == 'u' ? 1 : sizeof(float));
    assert_int_equal(emu_alloc(bench.emu, nbytes, &bench.err, &a->at[i]), TG_OK);
    float *from = calloc(1, nbytes);
    for (long k = 0; k < v && kind != 'b' && kind != 'u' && kind != 'z'; k++)
      from[k] = (float)k;
    if (kind != 'o' && kind != 'b')
      assert_int_equal(emu_write(bench.emu, a->at[i], from, nbytes, &bench.err), TG_OK);
    free(from);
  }
}

static void args_free(Args *a) {
  for (int i = 0; i < a->n; i++)
    if (a->at[i]) assert_int_equal(emu_release(bench.emu, a->at[i], &bench.err), TG_OK);
}

static TgStatus launch(EmuModule *m, const char *kernel, int grid, int block, int dynamic, Args *a) {
  const EmuKernel *k = emu_kernel(m, kernel);
  if (!k) fail_msg("no kernel %s", kernel);
  bench.err = (TgError){0};
  return emu_launch(bench.emu, k, (uint32_t[3]){(uint32_t)grid, 1, 1}, (uint32_t[3]){(uint32_t)block, 1, 1},
                    (size_t)dynamic, a->params, &bench.err);
}

static const uint64_t orders[] = {0, 1, 12345};

/* Each fault is seen, with its message, in the order of the threads; it is seen in the others too, where
 * another thread may meet it first. Without it there is nothing to see. */
static int faults_missed(const Fault *table, size_t n) {
  int missed = 0;
  for (size_t i = 0; i < n; i++) {
    const Fault *f = &table[i];
    for (size_t o = 0; o < TG_COUNT(orders); o++) {
      Args a;
      emu_order(bench.emu, orders[o]);
      args_make(&a, f->args);
      TgStatus st = launch(bench.good, f->kernel, f->grid, f->block, f->dynamic, &a);
      if (st) print_error("%s, order %zu, false alarm: %s\n", f->kernel, o, bench.err.msg), missed++;
      args_free(&a);
      args_make(&a, f->args);
      if (!strcmp(f->kernel, "arguments")) a.params[4] = NULL;
      st = launch(bench.bad, f->kernel, f->bad_grid ? f->bad_grid : f->grid,
                  f->bad_block ? f->bad_block : f->block, f->dynamic, &a);
      bool told = st == TG_ERR_DEVICE && (o > 0 || strstr(bench.err.msg, f->want)) &&
                  strstr(bench.err.msg, f->kernel);
      if (getenv("EMU_SHOW") && !o) print_message("%s\n", bench.err.msg);
      if (!told) print_error("%s, order %zu: status %d, %s\n", f->kernel, o, st, bench.err.msg), missed++;
      args_free(&a);
    }
  }
  return missed;
}

static void test_faults(void **state) {
  (void)state;
  assert_int_equal(faults_missed(fault_table, TG_COUNT(fault_table)), 0);
}

/* ---- warps: results */
static int small(int i) { return i * 7 % 11 - 5; }

static double product(int row, int column, int depth) {
  double sum = small(2000 + row * 8 + column);
  for (int k = 0; k < depth; k++)
    sum += (double)small(row * depth + k) * small(1000 + k * 8 + column);
  return sum;
}

static void read_back(void *to, const void *from, size_t nbytes) {
  emu_strict(bench.emu, true);
  if (emu_read(bench.emu, to, from, nbytes, &bench.err)) fail_msg("%s", bench.err.msg);
}

/* Fragments laid out as the PTX manual says give the matrix product; laid out otherwise, they do not. */
static void test_mma(void **state) {
  (void)state;

  static const struct {
    const char *kernel;
    int depth;
    bool is_int;
  } kinds[] = {{"mma_f16", 16, false}, {"mma_bf16", 16, false}, {"mma_tf32", 8, false}, {"mma_s8", 32, true}};

  for (size_t i = 0; i < TG_COUNT(kinds); i++)
    for (int bad = 0; bad < 2; bad++) {
      Args a;
      int wrong = 0;
      float f[128];
      int32_t n[128];
      args_make(&a, "o128");
      if (launch(bad ? bench.bad : bench.good, kinds[i].kernel, 1, 32, 0, &a)) fail_msg("%s", bench.err.msg);
      read_back(f, a.at[0], sizeof f);
      memcpy(n, f, sizeof n);
      for (int e = 0; e < 128; e++)
        wrong += (kinds[i].is_int ? n[e] : f[e]) != product(e / 8, e % 8, kinds[i].depth);
      if (bad ? wrong < 20 : wrong > 0) fail_msg("%s: %d elements wrong", kinds[i].kernel, wrong);
      args_free(&a);
    }
}

/* ldmatrix, as it is and, the bad one, turned: memory holds 0, 1, 2 .., four matrices of 8 x 8. */
static void test_rows(void **state) {
  (void)state;
  for (int turned = 0; turned < 2; turned++) {
    Args a;
    uint32_t got[128];
    args_make(&a, "o128");
    if (launch(turned ? bench.bad : bench.good, "rows", 1, 32, 0, &a)) fail_msg("%s", bench.err.msg);
    read_back(got, a.at[0], sizeof got);
    for (uint32_t lane = 0; lane < 32; lane++)
      for (uint32_t m = 0; m < 4; m++) {
        uint32_t row = lane / 4, column = lane % 4 * 2;
        uint32_t first = 64 * m + (turned ? 8 * column + row : 8 * row + column);
        assert_int_equal(got[4 * lane + m], first | (first + (turned ? 8 : 1)) << 16);
      }
    args_free(&a);
  }
}

static void test_shuffles(void **state) {
  (void)state;
  for (size_t o = 0; o < TG_COUNT(orders); o++) {
    Args a;
    float f[128];
    int32_t n[64];
    emu_order(bench.emu, orders[o]);
    args_make(&a, "o128 o64");
    if (launch(bench.good, "shuffles", 1, 32, 0, &a)) fail_msg("%s", bench.err.msg);
    read_back(f, a.at[0], sizeof f);
    read_back(n, a.at[1], sizeof n);
    for (int i = 0; i < 32; i++) {
      assert_true(f[i] == 496);
      assert_true(f[32 + i] == (i % 8 + 3 < 8 ? i + 3 : i));
      assert_true(f[64 + i] == (i < 2 ? i : i - 2));
      assert_true(f[96 + i] == i / 16 * 16 + i * 5 % 16);
      assert_int_equal(n[i], 0x49249249);
      assert_int_equal(n[32 + i], 1);
    }
    assert_int_equal(launch(bench.bad, "shuffles", 1, 32, 0, &a), TG_ERR_DEVICE);
    args_free(&a);
  }
}

/* Three dimensions of each kind; an atomic maximum; what a kernel says of itself. */
static void test_launches(void **state) {
  (void)state;
  Args a;
  static int32_t n[24 * 64];
  int32_t most = -1;
  args_make(&a, "o1536 z1");
  const EmuKernel *k = emu_kernel(bench.good, "where");
  uint32_t grid[3] = {2, 3, 4}, block[3] = {4, 8, 2}, none[3] = {1, 0, 1}, large[3] = {1024, 2, 1};
  bench.err = (TgError){0};
  for (size_t o = 0; o < TG_COUNT(orders); o++) {
    emu_order(bench.emu, orders[o]);
    if (emu_launch(bench.emu, k, grid, block, 0, a.params, &bench.err)) fail_msg("%s", bench.err.msg);
    read_back(n, a.at[0], sizeof n);
    for (int i = 0; i < 24 * 64; i++)
      assert_int_equal(n[i], i / 64 * 1000 + i % 64);
  }
  read_back(&most, a.at[1], sizeof most);
  assert_int_equal(most, 23);
  assert_int_equal(emu_launch(bench.emu, k, none, block, 0, a.params, &bench.err), TG_ERR_DEVICE);
  assert_int_equal(emu_launch(bench.emu, k, grid, large, 0, a.params, &bench.err), TG_ERR_DEVICE);
  assert_int_equal(emu_shared_bytes(k), 256);
  assert_int_equal(emu_nparam(k), 2);
  assert_int_equal(emu_most_threads(k), 0);
  assert_string_equal(emu_name(k), "where");
  assert_int_equal(emu_most_threads(emu_kernel(bench.good, "bounds")), 64);
  k = emu_kernel(bench.good, "arguments");
  static const size_t nbytes[] = {8, 8, 1, 4, 8, 0};
  for (int i = 0; i < 6; i++)
    assert_int_equal(emu_param_bytes(k, i), nbytes[i]);
  assert_null(emu_kernel(bench.good, "absent"));
  args_free(&a);
}

/* ---- memory */
#define REFUSED(call, word)                                                                                  \
  do {                                                                                                       \
    bench.err = (TgError){0};                                                                                \
    assert_int_equal((call), TG_ERR_DEVICE);                                                                 \
    if (!strstr(bench.err.msg, word)) fail_msg("%s", bench.err.msg);                                         \
  } while (0)

static void test_memory(void **state) {
  (void)state;
  Emu *e = bench.emu;
  uint8_t *p, *q, *empty, from[100], to[100];
  for (int i = 0; i < 100; i++)
    from[i] = (uint8_t)i;
  bench.err = (TgError){0};
  emu_strict(e, true);
  assert_int_equal(emu_alloc(e, 100, &bench.err, (void **)&p), TG_OK);
  assert_int_equal(emu_alloc(e, 100, &bench.err, (void **)&q), TG_OK);
  assert_int_equal(emu_alloc(e, 0, &bench.err, (void **)&empty), TG_OK);
  assert_true(emu_holds(e, p, 100) && !emu_holds(e, p, 101) && !emu_holds(e, p - 1, 2) &&
              !emu_holds(e, from, 1));
  assert_int_equal(emu_write(e, p, from, 50, &bench.err), TG_OK);
  assert_int_equal(emu_read(e, to, p, 50, &bench.err), TG_OK);
  assert_memory_equal(from, to, 50);
  REFUSED(emu_read(e, to, p, 51, &bench.err), "reads what nobody wrote");
  REFUSED(emu_write(e, p + 1, from, 100, &bench.err), "over its end");
  REFUSED(emu_read(e, to, p + 100, 1, &bench.err), "0 bytes past the end of an allocation of 100 bytes");
  REFUSED(emu_write(e, from, from, 1, &bench.err), "far from any allocation");
  assert_int_equal(emu_copy(e, q + 3, p + 1, 60, &bench.err), TG_OK); /* with 11 bytes that are not set */
  assert_int_equal(emu_read(e, to, q + 3, 49, &bench.err), TG_OK);
  assert_memory_equal(from + 1, to, 49);
  REFUSED(emu_read(e, to, q + 3, 50, &bench.err), "reads what nobody wrote");
  assert_int_equal(emu_copy(e, p + 10, p, 90, &bench.err), TG_OK); /* onto itself */
  assert_int_equal(emu_read(e, to, p, 60, &bench.err), TG_OK);
  assert_memory_equal(from, to + 10, 50);
  REFUSED(emu_read(e, to, p, 61, &bench.err), "reads what nobody wrote");
  REFUSED(emu_copy(e, q, p, 101, &bench.err), "copies");
  assert_int_equal(emu_fill(e, q, 7, 100, &bench.err), TG_OK);
  assert_int_equal(emu_read(e, to, q, 100, &bench.err), TG_OK);
  assert_int_equal(to[99], 7);
  REFUSED(emu_release(e, p + 4, &bench.err), "no allocation's start");
  REFUSED(emu_release(e, from, &bench.err), "no allocation's start");
  assert_int_equal(emu_release(e, p, &bench.err), TG_OK);
  REFUSED(emu_release(e, p, &bench.err), "released before");
  REFUSED(emu_read(e, to, p, 1, &bench.err), "which was released");
  for (int i = 0; i < 2000; i++) { /* an address does not come back soon, nor does what was there */
    uint8_t *r;
    assert_int_equal(emu_alloc(e, 100, &bench.err, (void **)&r), TG_OK);
    assert_true(r != p && r != q);
    assert_int_equal(emu_release(e, r, &bench.err), TG_OK);
  }
  bench.err = (TgError){0};
  assert_int_equal(emu_alloc(e, SIZE_MAX, &bench.err, (void **)&p), TG_ERR_NOMEM);
  bench.err = (TgError){0};
  assert_int_equal(emu_release(e, q, &bench.err), TG_OK);
  assert_int_equal(emu_release(e, empty, &bench.err), TG_OK);
  emu_strict(e, false);
}

/* All addresses used more than once. */
static void test_round(void **state) {
  (void)state;

  enum { BIG = 1 << 28, TIMES = 300 };

  void *kept, *p;
  assert_int_equal(emu_alloc(bench.emu, 64, &bench.err, &kept), TG_OK);
  assert_int_equal(emu_fill(bench.emu, kept, 9, 64, &bench.err), TG_OK);
  for (int i = 0; i < TIMES; i++) {
    if (emu_alloc(bench.emu, (size_t)BIG - (size_t)i * 5000, &bench.err, &p)) fail_msg("%s", bench.err.msg);
    assert_int_equal(emu_fill(bench.emu, p, i, 100, &bench.err), TG_OK);
    assert_int_equal(emu_release(bench.emu, p, &bench.err), TG_OK);
  }
  uint8_t byte = 0;
  read_back(&byte, kept, 1);
  assert_int_equal(byte, 9);
  assert_int_equal(emu_release(bench.emu, kept, &bench.err), TG_OK);
}

/* A released buffer that a kernel still uses. */
static void test_late(void **state) {
  (void)state;
  Args a;
  args_make(&a, "o64 i64");
  assert_int_equal(emu_release(bench.emu, a.at[1], &bench.err), TG_OK);
  emu_order(bench.emu, 0);
  REFUSED(launch(bench.good, "no_barrier", 1, 64, 0, &a),
          "out of bounds: reads 4 bytes at byte 0 of argument 2 (256 bytes), which was released");
  a.at[1] = NULL;
  args_free(&a);
}

/* A block that waits for another block by looking at memory. */
static void test_patience(void **state) {
  (void)state;
  Args a;
  args_make(&a, "z1");
  emu_order(bench.emu, 0);
  emu_patience(bench.emu, 100000);
  REFUSED(launch(bench.good, "spins", 2, 1, 0, &a), "it does not end: 100000 accesses");
  emu_patience(bench.emu, 0);
  args_free(&a);
}

/* ---- text */
static void test_refused(void **state) {
  (void)state;
  Blob object;
  bench.err = (TgError){0};
  TgStatus st = emu_compile(&bench.mem, &tg_os_default, &bench.err, &bench.cc, &emu_dialect_cuda,
                            "\n__global__ void k(float *p) { p[0] = undeclared; }", 60, &object);
  assert_int_equal(st, TG_ERR_COMPILE);
  assert_non_null(strstr(bench.err.msg, "CUDA kernel:2"));
  assert_null(object.at);
}

/* What looks like a kernel to a careless reader, and what does not. */
static void test_scan(void **state) {
  (void)state;
  EmuModule *m = module_of("// __global__ void a(int *p) {}\n/* __global__ */ #define B __global__ void b\n"
                           "#define QUOTE \"{\"\n#define named other\n"
                           "static const char text[] = \"__global__ void c(int *p) {\";\n"
                           "__global__ void declared(int *p);\n"
                           "template <int N> __device__ int twice(int x) { return x * N; }\n"
                           "__global__ /* ( */ void\n__launch_bounds__(16 * 2, 1)\ndeclared(int *p) {\n"
                           "  if (p) { p[0] = twice<2>(4) + sizeof(text) * 0 + '{' * 0; }\n}\n"
                           "extern \"C\" {\n__global__ void named(int *p) { p[0] = 5; } }\n#undef named\n"
                           "__global__ void empty() {}");
  assert_non_null(emu_kernel(m, "declared"));
  assert_non_null(emu_kernel(m, "other"));
  assert_non_null(emu_kernel(m, "empty"));
  assert_null(emu_kernel(m, "named"));
  assert_null(emu_kernel(m, "a"));
  assert_null(emu_kernel(m, "c"));
  assert_int_equal(emu_most_threads(emu_kernel(m, "declared")), 32);
  assert_int_equal(emu_nparam(emu_kernel(m, "empty")), 0);
  Args a;
  args_make(&a, "o1");
  int32_t got;
  assert_int_equal(launch(m, "declared", 1, 1, 0, &a), TG_OK);
  read_back(&got, a.at[0], 4);
  assert_int_equal(got, 8);
  assert_int_equal(launch(m, "other", 1, 1, 0, &a), TG_OK);
  assert_int_equal(launch(m, "empty", 9, 99, 0, &a), TG_OK);
  args_free(&a);
  emu_unload(bench.emu, m);
}

/* ---- what can fail */
static struct {
  uint64_t calls, at;
  int64_t maps;
} world;

static bool os_fails(void) { return ++world.calls == world.at; }

static void *failing_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off) {
  if (os_fails()) return errno = ENOMEM, MAP_FAILED;
  world.maps++;
  return mmap(at, n, prot, flags, fd, off);
}

static int failing_munmap(void *p, size_t n) {
  world.maps--;
  return munmap(p, n);
}

static int failing_mprotect(void *p, size_t n, int prot) {
  return os_fails() ? errno = ENOMEM, -1 : mprotect(p, n, prot);
}

static int failing_zero_pages(void *p, size_t n) {
  return os_fails() ? errno = EINVAL, -1 : tg_os_default.zero_pages(p, n);
}

/* All that an emulator does, once. */
static TgStatus whole_life(TgMem *mem, const TgOs *os, const Blob *object, TgError *err) {
  float in[64] = {0}, out[64];
  void *to = NULL, *from = NULL;
  EmuModule *m = NULL;
  Emu *e = emu_new(mem, os);
  if (!e) return TG_ERR_NOMEM;
  in[63] = 5;
  TgStatus st = emu_load(e, object->at, object->nbytes, err, &m);
  if (!st) st = emu_alloc(e, sizeof out, err, &to);
  if (!st) st = emu_alloc(e, sizeof in, err, &from);
  if (!st) st = emu_write(e, from, in, sizeof in, err);
  void *params[] = {&to, &from};
  uint32_t one[3] = {1, 1, 1}, block[3] = {16, 1, 1};
  if (!st) st = emu_launch(e, emu_kernel(m, "copied"), one, block, 0, params, err);
  if (!st) st = emu_read(e, out, to, sizeof out, err);
  if (!st && out[0] != 5) st = TG_ERR_INTERNAL;
  if (!st) st = emu_release(e, to, err);
  if (!st) st = emu_alloc(e, 1 << 20, err, &to);
  emu_free(e);
  return st;
}

static const char copied[] =
    "extern \"C\" __global__ void copied(float *p0, const float *p1) {\n"
    "  __shared__ __attribute__((aligned(16))) float l0[64];\n"
    "  tg_copy_async_16(l0 + threadIdx.x * 4, p1 + threadIdx.x * 4);\n"
    "  tg_copy_async_wait_all();\n  __syncthreads();\n"
    "  for (int i = 0; i < 4; i++) p0[threadIdx.x + i * 16] = l0[63 - threadIdx.x - i * 16];\n}\n";

static Blob object_of(const char *text) {
  Blob object;
  bench.err = (TgError){0};
  if (emu_compile(&bench.mem, &tg_os_default, &bench.err, &bench.cc, &emu_dialect_cuda, text, 60, &object))
    fail_msg("%s", bench.err.msg);
  return object;
}

/* Each allocation and each call of the OS fails once: an error, or no harm, and nothing is left behind. */
static void test_failures(void **state) {
  (void)state;
  Blob object = object_of(copied);
  TgOs os = tg_os_default;
  os.mmap = failing_mmap, os.munmap = failing_munmap;
  os.mprotect = failing_mprotect, os.zero_pages = failing_zero_pages;
  for (int kind = 0; kind < 2; kind++) {
    uint64_t fired = 1, refused = 0;
    for (uint64_t n = 1; fired; n++) {
      TgMem mem = {.fail_at = kind ? 0 : n};
      TgError err = {0};
      memset(&world, 0, sizeof world);
      world.at = kind ? n : 0;
      TgStatus st = whole_life(&mem, &os, &object, &err);
      fired = kind ? world.calls >= n : mem.calls >= n;
      refused += st != TG_OK;
      if (st && st != TG_ERR_NOMEM && st != TG_ERR_DEVICE) fail_msg("%d: %s", (int)n, err.msg);
      if (!fired && st) fail_msg("%s", err.msg);
      assert_int_equal(mem.live, 0);
      assert_int_equal(world.maps, 0);
    }
    assert_in_range(refused, kind ? 5 : 10, 1000);
  }
  mem_free(&bench.mem, object.at);
}

/* A damaged object is an error, or is loaded with something else in it; it is not run. */
static void test_objects(void **state) {
  (void)state;
  Blob object = object_of(copied);
  uint32_t r = 1;
  int refused = 0;
  EmuModule *m;
  for (size_t n = 0; n < object.nbytes; n += 1 + n / 16) {
    TgError err = {0};
    assert_int_not_equal(emu_load(bench.emu, object.at, n, &err, &m), TG_OK);
  }
  for (int i = 0; i < 3000; i++) {
    TgError err = {0};
    r = r * 1664525u + 1013904223u;
    uint8_t *at = &object.at[(r >> 8) % object.nbytes], kept = *at;
    *at ^= (uint8_t)(1u << (r & 7));
    TgStatus st = emu_load(bench.emu, object.at, object.nbytes, &err, &m);
    if (!st) emu_unload(bench.emu, m);
    refused += st != TG_OK;
    *at = kept;
  }
  assert_in_range(refused, 50, 2999);
  mem_free(&bench.mem, object.at);
}

/* ---- kernels of the renderer: a device that runs each launch emulated, in each order, and by the
 * interpreter, which computes the same list of UOps. Buffers have exactly the size that the kernel names, and
 * a kernel that reads what it does not read finds nothing there. */
struct Program {
  Program *interp;
  EmuKernel *kernel;
  char *source;
  size_t nbytes[MOST_ARGS];
  bool loaded[MOST_ARGS];
  int nparam, nvar, global[3], local[3];
};

static struct {
  TgBackend backend;
  Str prelude;
  bool damage; /* each kernel with barriers is run with faults too */
  int kernels, launches, differences, damaged, missed;
  double compile_s, launch_s;
} checked;

static Program *program_of(const Linear *lin) {
  Program *p = calloc(1, sizeof *p);
  p->nparam = lin->nparam;
  assert_in_range(lin->nparam, 1, MOST_ARGS - 2);
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i];
    int slot = (int)u->arg.param.slot;
    if (u->op == OPS_PARAM) p->nbytes[slot] = (size_t)u->arg.param.nelem * dtype_size((DType)u->dtype);
    if (u->op == OPS_VAR) p->nvar++;
    if (u->op != OPS_LOAD) continue;
    u = uop_base(u->src[0]);
    if (u->op == OPS_INDEX) u = uop_base(u->src[0]);
    if (u->op == OPS_PARAM) p->loaded[u->arg.param.slot] = true;
  }
  memcpy(p->global, lin->global, sizeof p->global);
  memcpy(p->local, lin->local, sizeof p->local);
  return p;
}

/* A batch is one text; each kernel gets a name of its own by a macro. */
static TgStatus checked_compile(Device *d, const KernelSpec *k, int n, Program **out) {
  Str s;
  str_init(&s, &bench.mem);
  str_put(&s, str_text(&checked.prelude));
  for (int i = 0; i < n; i++)
    str_printf(&s, "#define %s k%d_%s\n%s#undef %s\n", k[i].linear->name, i, k[i].linear->name, k[i].source,
               k[i].linear->name);
  double start = time_now_s();
  EmuModule *m = module_of(str_text(&s));
  checked.compile_s += time_now_s() - start;
  checked.kernels += n;
  str_free(&s);
  for (int i = 0; i < n; i++) {
    char name[160];
    snprintf(name, sizeof name, "k%d_%s", i, k[i].linear->name);
    out[i] = program_of(k[i].linear);
    out[i]->source = strdup(k[i].source);
    if (!(out[i]->kernel = emu_kernel(m, name))) fail_msg("no kernel %s", name);
    TgStatus st = lang->interp->compile(d, &k[i], 1, &out[i]->interp);
    if (st) return st;
  }
  return TG_OK;
}

static void checked_unload(Device *d, Program *p) {
  lang->interp->unload(d, p->interp);
  free(p->source), free(p);
}

/* Arguments with what a launch of the device has; b: grid, then block. */
static Args args_of(const Program *p, void *const *bufs, const int64_t *vars, uint32_t b[2][3]) {
  Args a = {.n = p->nparam + p->nvar};
  for (int i = 0; i < 3; i++) {
    b[0][i] = (uint32_t)(p->global[i] > 0 ? p->global[i] : 1);
    b[1][i] = (uint32_t)(p->local[i] > 0 ? p->local[i] : 1);
  }
  for (int i = 0; i < p->nparam; i++) {
    TgStatus st = emu_alloc(bench.emu, p->nbytes[i], &bench.err, &a.at[i]);
    if (!st && p->loaded[i]) st = emu_write(bench.emu, a.at[i], bufs[i], p->nbytes[i], &bench.err);
    if (st) fail_msg("%s", bench.err.msg);
  }
  for (int i = 0; i < p->nvar && !lang->vars_in_memory; i++)
    a.value[p->nparam + i] = vars[i];
  if (!p->nvar || !lang->vars_in_memory) return a;
  size_t nbytes = (size_t)p->nvar * sizeof *vars;
  a.n = p->nparam + 1;
  TgStatus st = emu_alloc(bench.emu, nbytes, &bench.err, &a.at[p->nparam]);
  if (!st) st = emu_write(bench.emu, a.at[p->nparam], vars, nbytes, &bench.err);
  if (st) fail_msg("%s", bench.err.msg);
  return a;
}

static void run_emulated(const Program *p, void *const *bufs, const int64_t *vars, uint8_t **out) {
  uint32_t b[2][3];
  Args a = args_of(p, bufs, vars, b);
  double start = time_now_s();
  for (int i = 0; i < a.n; i++) /* where they are now */
    a.params[i] = a.at[i] ? (void *)&a.at[i] : (void *)&a.value[i];
  if (emu_launch(bench.emu, p->kernel, b[0], b[1], 0, a.params, &bench.err)) {
    print_error("%s\n", bench.err.msg);
    bench.err = (TgError){0};
    checked.differences++;
  }
  checked.launch_s += time_now_s() - start;
  checked.launches++;
  emu_strict(bench.emu, true);
  for (int i = 0; i < p->nparam; i++) { /* what was not written is what the interpreter left as it was */
    uint8_t *to = out[i] = malloc(p->nbytes[i] + 1);
    if (emu_read(bench.emu, to, a.at[i], p->nbytes[i], &bench.err)) {
      bench.err = (TgError){0};
      for (size_t b = 0; b < p->nbytes[i]; b++)
        if (emu_read(bench.emu, &to[b], (uint8_t *)a.at[i] + b, 1, &bench.err))
          to[b] = ((uint8_t *)bufs[i])[b], bench.err = (TgError){0};
    }
  }
  args_free(&a);
}

/* ---- the same kernels with a fault each */
typedef struct Damage {
  Str text;
  int n;
} Damage;

/* One more copy of a kernel: `cut` characters at `at` replaced. */
static void damage_add(Damage *d, const Program *p, const char *at, size_t cut, const char *by) {
  const char *name = emu_name(p->kernel) + strcspn(emu_name(p->kernel), "_") + 1;
  str_printf(&d->text, "#define %s damaged_%d\n", name, d->n++);
  str_putn(&d->text, p->source, (size_t)(at - p->source));
  str_put(&d->text, by);
  str_put(&d->text, at + cut);
  str_printf(&d->text, "#undef %s\n", name);
}

/* Each barrier left out; each shared array too short, by more than the padding of a row, which is never used;
 * each first store to one left out. */
static void damage_all(Damage *d, const Program *p) {
  for (const char *at = p->source; (at = strstr(at, lang->barrier)); at++)
    damage_add(d, p, at, strcspn(at, ";"), "");
  for (const char *at = p->source; (at = strstr(at, lang->array)); at++) {
    const char *size = strchr(at, '[') + 1;
    char shorter[24], store[16];
    long n = strtol(size, NULL, 10);
    snprintf(shorter, sizeof shorter, "%ld", n - (n > 64 ? 10 : 2));
    if (n > 2) damage_add(d, p, size, strcspn(size, "]"), shorter);
    const char *name = size - 1;
    while (name[-1] != ' ')
      name--;
    snprintf(store, sizeof store, " %.*s[", (int)(size - 1 - name), name);
    const char *to = strstr(size, store);
    if (to) damage_add(d, p, to, strcspn(to, ";"), "");
  }
}

static void run_damaged(const Program *p, void *const *bufs, const int64_t *vars) {
  Damage d = {.n = 0};
  str_init(&d.text, &bench.mem);
  str_put(&d.text, str_text(&checked.prelude));
  damage_all(&d, p);
  EmuModule *m = d.n ? module_of(str_text(&d.text)) : NULL;
  for (int i = 0; i < d.n; i++) {
    char name[32];
    uint32_t b[2][3];
    snprintf(name, sizeof name, "damaged_%d", i);
    Args a = args_of(p, bufs, vars, b);
    for (int k = 0; k < a.n; k++)
      a.params[k] = a.at[k] ? (void *)&a.at[k] : (void *)&a.value[k];
    emu_order(bench.emu, 0);
    TgStatus st = emu_launch(bench.emu, emu_kernel(m, name), b[0], b[1], 0, a.params, &bench.err);
    if (getenv("EMU_SHOW")) print_message("%d: %s\n", i, bench.err.msg);
    if (!st) print_message("kernel %s: damage %d is not seen\n", emu_name(p->kernel), i);
    bench.err = (TgError){0};
    checked.damaged++;
    checked.missed += !st;
    args_free(&a);
  }
  if (m) emu_unload(bench.emu, m);
  str_free(&d.text);
}

static TgStatus checked_launch(Device *d, const Launch *l) {
  Program *p = l->program;
  void *const *bufs = l->bufs;
  const int64_t *vars = l->vars;
  uint8_t *got[TG_COUNT(orders)][MOST_ARGS] = {{0}};
  if (checked.damage) run_damaged(p, bufs, vars);
  for (size_t o = 0; o < TG_COUNT(orders); o++) {
    emu_order(bench.emu, orders[o]);
    run_emulated(p, bufs, vars, got[o]);
  }
  TgStatus st = lang->interp->launch(d, &(Launch){p->interp, bufs, vars, l->nbuf, l->nvar});
  for (size_t o = 0; o < TG_COUNT(orders); o++)
    for (int i = 0; i < p->nparam; i++) {
      bool same = !memcmp(got[o][i], bufs[i], p->nbytes[i]);
      if (!same) print_error("kernel %s: argument %d differs, order %zu\n", emu_name(p->kernel), i + 1, o);
      checked.differences += !same;
      free(got[o][i]);
    }
  return st;
}

static TgContext *checked_open(void) {
  TgContext *ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = lang->device, .seed = GOLDEN_SEED});
  checked.backend = *lang->interp;
  checked.backend.compile = checked_compile;
  checked.backend.unload = checked_unload;
  checked.backend.launch = checked_launch;
  ctx->devices.at[0]->backend = &checked.backend;
  checked.differences = 0;
  return ctx;
}

static void run_goldens(const char *only) {
  for (int i = 0; i < golden_count; i++) {
    if (only && !strstr(only, golden_programs[i].name)) continue;
    golden_env(&golden_programs[i], lang->device);
    TgContext *ctx = checked_open();
    golden_env(NULL, NULL);
    TgTensor *out[GOLDEN_OUTPUTS];
    int n = golden_programs[i].build(ctx, out);
    TgStatus st = n ? tg_realize_many(out, (size_t)n) : tg_error(ctx);
    if (st || !n || checked.differences)
      fail_msg("%s: %d differences, %s", golden_programs[i].name, checked.differences, tg_errmsg(ctx));
    tg_close(ctx);
  }
}

static void test_goldens(void **state) {
  (void)state;
  run_goldens(NULL);
  print_message("%d kernels: %.0f ms each to compile; %d launches: %.2f ms each\n", checked.kernels,
                checked.compile_s * 1000 / checked.kernels, checked.launches,
                checked.launch_s * 1000 / checked.launches);
}

/* Sizes that are known at the launch: a variable is an argument of the kernel. */
static void test_symbolic(void **state) {
  (void)state;

  enum { MOST = 40, WIDE = 24 };

  static float x[MOST * WIDE], sums[MOST * WIDE];
  for (int i = 0; i < MOST * WIDE; i++)
    x[i] = (float)(i * 7 % 23 - 11);
  TgContext *ctx = checked_open();
  TgVariable *n = tg_variable(ctx, "n", 1, MOST);
  TgTensor *all = tg_from(ctx, x, TG_F32, TG_SHAPE(MOST, WIDE));
  static const int64_t sizes[] = {1, 13, 40};
  for (size_t i = 0; i < TG_COUNT(sizes); i++) {
    assert_int_equal(tg_variable_bind(n, sizes[i]), TG_OK);
    TgTensor *part = tg_slice(all, 0, 0, tg_size(n));
    TgTensor *y = tg_softmax(tg_matmul(part, tg_transpose(part, 0, 1)), .axis = TG_AXES(1));
    TgTensor *columns = tg_sum(part, .axis = TG_AXES(0));
    if (tg_realize(y) || tg_realize(columns)) fail_msg("%s", tg_errmsg(ctx));
    assert_int_equal(tg_read(columns, sums, WIDE * sizeof *sums), TG_OK);
    for (int c = 0; c < WIDE; c++) {
      float want = 0;
      for (int r = 0; r < sizes[i]; r++)
        want += x[r * WIDE + c];
      assert_true(sums[c] == want);
    }
  }
  assert_int_equal(checked.differences, 0);
  tg_close(ctx);
}

/* Lists of opts that move more into shared memory and into groups of threads: of warps, in part and whole. */
static void run_lists(void) {
  static const char *const lists[] = {"GROUP r1 8",
                                      "GROUP r1 16,UPCAST r0 2",
                                      "LOCAL r0 4,GROUP r1 4",
                                      "LOCAL r0 4,GROUP r1 8",
                                      "GROUP r1 32",
                                      "LOCAL r0 8,GROUP r1 16",
                                      "GROUP r1 64",
                                      "GROUP r1 64,UPCAST r0 4",
                                      "GROUP r1 60",
                                      "LOCAL r0 4,GROUP r1 128",
                                      "LOCAL r0 5,GROUP r1 32",
                                      "GROUP r1 32,VEC r0 4",
                                      "GROUP r1 1024"};
  for (size_t i = 0; i < TG_COUNT(lists); i++) {
    setenv("TG_OPTS", lists[i], 1);
    TgContext *ctx = checked_open();
    unsetenv("TG_OPTS");
    float x[20 * 48], sums[20];
    for (int k = 0; k < 20 * 48; k++)
      x[k] = (float)(k % 9 - 3);
    TgTensor *y = tg_sum(tg_from(ctx, x, TG_F32, TG_SHAPE(20, 48)), .axis = TG_AXES(1));
    if (tg_read(y, sums, sizeof sums)) fail_msg("\"%s\": %s", lists[i], tg_errmsg(ctx));
    for (int r = 0; r < 20; r++) {
      float want = 0;
      for (int c = 0; c < 48; c++)
        want += x[r * 48 + c];
      assert_true(sums[r] == want);
    }
    assert_int_equal(checked.differences, 0);
    tg_close(ctx);
  }
}

static void test_opts(void **state) {
  (void)state;
  run_lists();
}

/* Sums and maxima of rows of each dtype, by one warp and by several. */
static void test_joins(void **state) {
  (void)state;
  static const TgDType types[] = {TG_BOOL, TG_I8,  TG_U8,  TG_I16,  TG_U16, TG_I32, TG_U32,
                                  TG_I64,  TG_U64, TG_F16, TG_BF16, TG_F32, TG_F64};
  static const int64_t sizes[] = {40, 300};
  for (size_t t = 0; t < TG_COUNT(types); t++)
    for (size_t s = 0; s < TG_COUNT(sizes); s++) {
      if (s) setenv("TG_OPTS", "GROUP r1 128", 1);
      TgContext *ctx = checked_open();
      unsetenv("TG_OPTS");
      float x[3 * 300], most[3], sums[3];
      for (int i = 0; i < 3 * sizes[s]; i++)
        x[i] = (float)(i * 7 % 100 == 99);
      TgTensor *in = tg_cast(tg_from(ctx, x, TG_F32, TG_SHAPE(3, sizes[s])), types[t]);
      TgTensor *max = tg_cast(tg_max(in, .axis = TG_AXES(1)), TG_F32);
      TgTensor *sum = tg_cast(tg_sum(in, .axis = TG_AXES(1)), TG_F32);
      if (tg_read(max, most, sizeof most) || tg_read(sum, sums, sizeof sums)) fail_msg("%s", tg_errmsg(ctx));
      for (int r = 0; r < 3; r++) {
        float want = 0;
        for (int64_t c = 0; c < sizes[s]; c++)
          want += x[r * sizes[s] + c];
        assert_true(most[r] == (float)(want > 0));
        assert_true(sums[r] == want);
      }
      assert_int_equal(checked.differences, 0);
      tg_close(ctx);
    }
}

/* Running sums and maxima of rows of each dtype, which are no whole number of blocks, by one warp and by
 * more. */
static void test_scans(void **state) {
  (void)state;
  static const TgDType types[] = {TG_I8, TG_U8, TG_I16, TG_I32, TG_I64, TG_U64, TG_F16, TG_F32, TG_F64};
  static const int64_t sizes[] = {70, 300};
  for (size_t t = 0; t < TG_COUNT(types); t++)
    for (size_t s = 0; s < TG_COUNT(sizes); s++) {
      TgContext *ctx = checked_open();
      float x[3 * 300], most[3 * 300], sums[3 * 300];
      int n = (int)sizes[s];
      for (int i = 0; i < 3 * n; i++)
        x[i] = (float)(i * 7 % 100 > 90) * (float)(i % 3);
      TgTensor *in = tg_cast(tg_from(ctx, x, TG_F32, TG_SHAPE(3, n)), types[t]);
      TgTensor *max = tg_cast(tg_cummax(in, 1, NULL), TG_F32);
      TgTensor *sum = tg_cast(tg_cumsum(in, 1), TG_F32);
      size_t nbytes = sizeof(float) * 3 * (size_t)n;
      if (tg_read(max, most, nbytes) || tg_read(sum, sums, nbytes)) fail_msg("%s", tg_errmsg(ctx));
      for (int r = 0; r < 3; r++) {
        float want = 0, largest = 0;
        for (int c = r * n; c < (r + 1) * n; c++) {
          want += x[c], largest = TG_MAX(largest, x[c]);
          assert_true(most[c] == largest);
          assert_true(sums[c] == want);
        }
      }
      assert_int_equal(checked.differences, 0);
      tg_close(ctx);
    }
}

/* What a kernel of the renderer needs its barriers and arrays for. */
static void test_damaged(void **state) {
  (void)state;
  checked.damaged = checked.missed = 0;
  checked.damage = true;
  run_goldens("sum_warps scan_warps attention cross_entropy matmul_tiles");
  run_lists();
  checked.damage = false;
  print_message("%d faults in kernels of the renderer, %d not seen\n", checked.damaged, checked.missed);
  assert_true(checked.damaged > 50);
  /* gcc moves a read of shared memory to the one thread that uses its value, which then needs no barrier */
  assert_in_range(checked.missed, 0, bench.cc.is_clang ? 0 : 2);
}

static void faults_compiled(const char *texts) {
  for (int bad = 0; bad < 2; bad++) {
    Str s;
    str_init(&s, &bench.mem);
    str_printf(&s, "%s#define BAD %d\n#line 1\n", str_text(&checked.prelude), bad);
    str_put(&s, texts);
    *(bad ? &bench.bad : &bench.good) = module_of(str_text(&s));
    str_free(&s);
  }
}

/* ---- the other language */
static const char metal_faults[] =
#include "unit/metal_faults.inc"
    ;

static const Fault metal_fault_table[] = {
    {"no_barrier", "o64 i64", "race in a block: reads a byte at byte", 1, 64, 0, 0, 0},
    {"no_flags", "o64 i64", "race in a block: reads a byte at byte", 1, 64, 0, 0, 0},
    {"threadgroup_flag_for_device", "o64 i64", "race in a block: reads a byte at byte", 1, 64, 0, 0, 0},
    {"device_flag_for_threadgroup", "o64 i64", "race in a block: reads a byte at byte", 1, 64, 0, 0, 0},
    {"divergent", "o64", "divergence", 1, 64, 0, 0, 0},
    {"past_end", "o64 i64", "0 bytes past the end of argument 1 (256 bytes)", 1, 64, 0, 0, 0},
    {"grid", "o128 i128", "past the end of argument 2 (512 bytes)", 2, 64, 3, 0, 0},
    {"unset", "o64", "nobody wrote, at byte 252 of shared l0 (256 bytes)", 1, 64, 0, 0, 0},
    {"race_device", "o64", "race in a block: writes a byte at byte 0 of argument 1", 1, 64, 0, 0, 0},
    {"race_blocks", "o64", "race between blocks: writes", 4, 16, 0, 0, 0},
    {"aligned", "o64 i64", "misaligned", 1, 8, 0, 0, 0},
    {"aligned_long", "o64 i64", "misaligned", 1, 2, 0, 0, 0},
    {"aligned_shared", "o64", "misaligned", 1, 8, 0, 0, 0},
    {"packed", "o64 i64", "past the end of argument 2", 1, 8, 0, 0, 0},
    {"shuffle_missing", "o64", "lane 31, which the mask 0xffffffff names, has ended", 1, 32, 0, 0, 0},
    {"simd_barrier", "o64", "race in a block", 1, 64, 0, 0, 0},
    {"array_overrun", "o64", "out of bounds: line", 1, 64, 0, 0, 0},
    {"constant_past_end", "o64 i4", "past the end of argument 2 (16 bytes)", 1, 4, 0, 0, 0},
    {"third_argument", "o64 - i64", "past the end of argument 3", 1, 64, 0, 0, 0},
    {"shift", "o64 i64", "undefined: a shift by too much in line", 1, 1, 0, 0, 0}};

static void other_language(const Language *l) {
  lang = l;
  str_free(&checked.prelude), str_init(&checked.prelude, &bench.mem);
  l->renderer->prelude(&checked.prelude);
}

static void test_metal_faults(void **state) {
  (void)state;
  EmuModule *cuda_bad = bench.bad, *cuda_good = bench.good;
  other_language(&metal);
  faults_compiled(metal_faults);
  int missed = faults_missed(metal_fault_table, TG_COUNT(metal_fault_table));
  bench.bad = cuda_bad, bench.good = cuda_good;
  other_language(&cuda);
  assert_int_equal(missed, 0);
}

/* Halves are rounded as the interpreter rounds them; every pattern of 16 bits comes back as it was. */
static void test_metal_half(void **state) {
  (void)state;
  static uint16_t back[65536];
  static float x[8] = {65519, 65520, 0x1p-25f, 0x1.8p-25f, 0x1p-14f, 1.0009765f, 1.00048828125f, -0.0f};
  float rounded[8];
  EmuModule *cuda_good = bench.good, *cuda_bad = bench.bad;
  other_language(&metal);
  faults_compiled(metal_faults);
  Args a;
  args_make(&a, "o32768 o8 i8");
  assert_int_equal(emu_write(bench.emu, a.at[2], x, sizeof x, &bench.err), TG_OK);
  if (launch(bench.good, "halves", 64, 1024, 0, &a)) fail_msg("%s", bench.err.msg);
  read_back(back, a.at[0], sizeof back);
  read_back(rounded, a.at[1], sizeof rounded);
  for (int i = 0; i < 65536; i++) {
    bool nan = (i & 0x7c00) == 0x7c00 && (i & 0x3ff);
    if (nan ? (back[i] & 0x7fff) <= 0x7c00 : back[i] != i) fail_msg("half %#x comes back as %#x", i, back[i]);
  }
  for (int i = 0; i < 8; i++) {
    Scalar v = {.f = x[i]};
    assert_int_equal((uint16_t)rounded[i], narrow_bits(DT_F16, v.f));
  }
  args_free(&a);
  bench.bad = cuda_bad, bench.good = cuda_good;
  other_language(&cuda);
}

static void test_metal_renderer(void **state) {
  other_language(&metal);
  checked.kernels = checked.launches = 0, checked.compile_s = checked.launch_s = 0;
  test_goldens(state);
  test_symbolic(state);
  test_damaged(state);
  other_language(&cuda);
}

/* Whether there is a compiler of C++, whose objects can be loaded here. */
static bool can_emulate(void) {
  TgEnv env;
  Blob object;
  EmuModule *m = NULL;
  TgError *err = &bench.err;
  if (!(bench.emu = emu_new(&bench.mem, &tg_os_default))) return false;
  if (env_read(&env, err) || compiler_find(&tg_os_default, &env, err, &bench.cc)) return false;
  if (compiler_identify(&bench.mem, &tg_os_default, err, &bench.cc, 20)) return false;
  TgStatus st = emu_compile(&bench.mem, &tg_os_default, err, &bench.cc, &emu_dialect_cuda,
                            "__global__ void k() {}", 60, &object);
  if (!st) st = emu_load(bench.emu, object.at, object.nbytes, err, &m);
  mem_free(&bench.mem, object.at);
  return !st;
}

static int setup(void **state) {
  (void)state;
  str_init(&checked.prelude, &bench.mem);
  renderer_cuda.prelude(&checked.prelude);
  faults_compiled(faults);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  emu_free(bench.emu);
  str_free(&checked.prelude);
  return bench.mem.live != 0;
}

int main(void) {
  static const char *const settings[] = {"TG_NOOPT", "TG_FUSE", "TG_OPTS", "TG_DEV"};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_faults),     cmocka_unit_test(test_mma),
      cmocka_unit_test(test_rows),       cmocka_unit_test(test_shuffles),
      cmocka_unit_test(test_launches),   cmocka_unit_test(test_memory),
      cmocka_unit_test(test_round),      cmocka_unit_test(test_late),
      cmocka_unit_test(test_patience),   cmocka_unit_test(test_refused),
      cmocka_unit_test(test_scan),       cmocka_unit_test(test_failures),
      cmocka_unit_test(test_objects),    cmocka_unit_test(test_goldens),
      cmocka_unit_test(test_symbolic),   cmocka_unit_test(test_opts),
      cmocka_unit_test(test_joins),      cmocka_unit_test(test_scans),
      cmocka_unit_test(test_damaged),    cmocka_unit_test(test_metal_faults),
      cmocka_unit_test(test_metal_half), cmocka_unit_test(test_metal_renderer)};
  for (size_t i = 0; i < TG_COUNT(settings); i++)
    unsetenv(settings[i]);
  if (!can_emulate()) {
    print_message("skipped: %s\n", bench.err.msg);
    emu_free(bench.emu);
    return 0;
  }
  return cmocka_run_group_tests(tests, setup, teardown);
}
