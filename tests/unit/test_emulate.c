/* test_emulate.c: the emulator of GPU kernels. What it must see, each in a kernel with one fault and in the
 * same kernel without; matrix products of a warp against plain ones; and kernels that the renderer wrote,
 * against the interpreter, in three orders of threads and blocks. */
#define _GNU_SOURCE
#include "runtime/emulate.h"
#include "base/os.h"
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

static EmuModule *module_of(const char *text) {
  Blob object;
  EmuModule *m = NULL;
  TgStatus st =
      emu_compile(&bench.mem, &tg_os_default, &bench.err, &bench.cc, &emu_dialect_cuda, text, 60, &object);
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
static void test_faults(void **state) {
  (void)state;
  int missed = 0;
  for (size_t i = 0; i < TG_COUNT(fault_table); i++) {
    const Fault *f = &fault_table[i];
    for (size_t o = 0; o < TG_COUNT(orders); o++) {
      Args a;
      emu_order(bench.emu, orders[o]);
      args_make(&a, f->args);
      TgStatus st = launch(bench.good, f->kernel, f->grid, f->block, f->dynamic, &a);
      if (st) print_error("%s, order %zu, false alarm: %s\n", f->kernel, o, bench.err.msg), missed++;
      args_free(&a);
      args_make(&a, f->args);
      st = launch(bench.bad, f->kernel, f->bad_grid ? f->bad_grid : f->grid,
                  f->bad_block ? f->bad_block : f->block, f->dynamic, &a);
      bool told = st == TG_ERR_DEVICE && (o > 0 || strstr(bench.err.msg, f->want)) &&
                  strstr(bench.err.msg, f->kernel);
      if (getenv("EMU_SHOW") && !o) print_message("%s\n", bench.err.msg);
      if (!told) print_error("%s, order %zu: status %d, %s\n", f->kernel, o, st, bench.err.msg), missed++;
      args_free(&a);
    }
  }
  assert_int_equal(missed, 0);
}

/* ---- kernels of the renderer: a device that runs each launch emulated, in each order, and by the
 * interpreter, which computes the same list of UOps. Buffers have exactly the size that the kernel names, and
 * a kernel that reads what it does not read finds nothing there. */
struct Program {
  Program *interp;
  EmuKernel *kernel;
  size_t nbytes[MOST_ARGS];
  bool loaded[MOST_ARGS];
  int nparam, nvar, global[3], local[3];
};

static struct {
  TgBackend backend;
  Str prelude;
  int kernels, launches, differences;
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
    if (!(out[i]->kernel = emu_kernel(m, name))) fail_msg("no kernel %s", name);
    TgStatus st = backend_interp_cuda.compile(d, &k[i], 1, &out[i]->interp);
    if (st) return st;
  }
  return TG_OK;
}

static void checked_unload(Device *d, Program *p) {
  backend_interp_cuda.unload(d, p->interp);
  free(p);
}

static void run_emulated(const Program *p, void *const *bufs, const int64_t *vars, uint8_t **out) {
  Args a = {.n = p->nparam + p->nvar};
  uint32_t grid[3], block[3];
  for (int i = 0; i < 3; i++) {
    grid[i] = (uint32_t)(p->global[i] > 0 ? p->global[i] : 1);
    block[i] = (uint32_t)(p->local[i] > 0 ? p->local[i] : 1);
  }
  for (int i = 0; i < p->nparam; i++) {
    a.params[i] = &a.at[i];
    TgStatus st = emu_alloc(bench.emu, p->nbytes[i], &bench.err, &a.at[i]);
    if (!st && p->loaded[i]) st = emu_write(bench.emu, a.at[i], bufs[i], p->nbytes[i], &bench.err);
    if (st) fail_msg("%s", bench.err.msg);
  }
  for (int i = 0; i < p->nvar; i++) {
    a.value[i] = vars[i];
    a.params[p->nparam + i] = &a.value[i];
  }
  double start = time_now_s();
  if (emu_launch(bench.emu, p->kernel, grid, block, 0, a.params, &bench.err)) {
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

static TgStatus checked_launch(Device *d, Program *p, void *const *bufs, const int64_t *vars) {
  uint8_t *got[TG_COUNT(orders)][MOST_ARGS] = {{0}};
  for (size_t o = 0; o < TG_COUNT(orders); o++) {
    emu_order(bench.emu, orders[o]);
    run_emulated(p, bufs, vars, got[o]);
  }
  TgStatus st = backend_interp_cuda.launch(d, p->interp, bufs, vars);
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
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP:CUDA", .seed = GOLDEN_SEED});
  checked.backend = backend_interp_cuda;
  checked.backend.compile = checked_compile;
  checked.backend.unload = checked_unload;
  checked.backend.launch = checked_launch;
  ctx->dev.backend = &checked.backend;
  checked.differences = 0;
  return ctx;
}

static void run_goldens(void) {
  for (int i = 0; i < golden_count; i++) {
    TgContext *ctx = checked_open();
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
  run_goldens();
  print_message("%d kernels: %.0f ms each to compile; %d launches: %.2f ms each\n", checked.kernels,
                checked.compile_s * 1000 / checked.kernels, checked.launches,
                checked.launch_s * 1000 / checked.launches);
}

static int setup(void **state) {
  (void)state;
  TgEnv env;
  if (env_read(&env, &bench.err)) return -1;
  if (compiler_find(&tg_os_default, &env, &bench.err, &bench.cc)) return -1;
  if (compiler_identify(&bench.mem, &tg_os_default, &bench.err, &bench.cc, 20)) return -1;
  if (!(bench.emu = emu_new(&bench.mem, &tg_os_default))) return -1;
  char text[sizeof faults + 32];
  snprintf(text, sizeof text, "#define BAD 1\n%s", faults);
  bench.bad = module_of(text);
  snprintf(text, sizeof text, "#define BAD 0\n%s", faults);
  bench.good = module_of(text);
  str_init(&checked.prelude, &bench.mem);
  renderer_cuda.prelude(&checked.prelude);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  emu_free(bench.emu);
  str_free(&checked.prelude);
  return bench.mem.live != 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults), cmocka_unit_test(test_goldens)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
