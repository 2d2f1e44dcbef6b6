/* target.c: descriptions of machines. In: this processor. Out: a Target. Nothing is timed, because a plan,
 * and with it the order of every sum, must be the same at each start. Devices that run nothing, or only
 * check, plan for a machine that is written down here, so that their kernels are the same everywhere. */
#include "plan/target.h"
#include "base/processor.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

enum { KB = 1 << 10, MB = 1 << 20 };

/* Bytes a cycle for one core of a server of 2024. Processors differ by less than the levels do. */
static const double cycle_bytes[LEVEL_MEMORY] = {115, 48, 26};

enum { MEMORY_BYTES_US = 30000, MEMORY_STREAMS = 2, CPU_MHZ = 3600 };

/* in the order of OpWeight */
#define CPU_WEIGHTS                                                                                          \
  { 0, 1, 4, 12, 14, 20, 30, 60 }
#define GPU_WEIGHTS                                                                                          \
  { 0, 1, 4, 4, 4, 8, 16, 60 }

#define PLANNED_CPU(text, units, follows)                                                                    \
  {                                                                                                          \
    .name = text, .cores = 8, .streams = MEMORY_STREAMS, .cache = {48 * KB, MB, 32 * MB},                    \
    .ways = {12, 16, 16}, .bytes_us = {414e3, 174e3, 95e3, MEMORY_BYTES_US}, .prefetches = true,             \
    .follows_runs = follows, .pages = 64, .page_miss = 2.5, .line_wait = 16, .mhz = CPU_MHZ, .fmas = 32,     \
    .ops = 16, .weight = CPU_WEIGHTS, .vec_bytes = 64, .registers = 32, .warp = 1, .threads = 1,             \
    .local_bytes = 512 * KB, .local_most = 512 * KB, .launch_us = 0.2, .distribute_us = 1.2,                 \
    .dots = DOTS_BYTES, .matrices = units                                                                    \
  }

/* The matrix units of an A100 and of an M1. The units of other GPUs are known once the GPU is. */
enum { PLANNED_CUDA = 80, PLANNED_METAL = 7, PLANNED_SHARED = 163 * KB };

#define NONE(...)
#define ON_AMX(name, since, ...)   | ((since) <= AMX_FIRST ? UINT32_C(1) << MATRIX_##name : 0)
#define ON_CUDA(name, since, ...)  | ((since) <= PLANNED_CUDA ? UINT32_C(1) << MATRIX_##name : 0)
#define ON_METAL(name, since, ...) | ((since) <= PLANNED_METAL ? UINT32_C(1) << MATRIX_##name : 0)
#define ON_DOT(name, since, ...)   | ((since) <= DOTS_BF16 ? UINT32_C(1) << MATRIX_##name : 0)
#define CUDA_MATRICES              (0 MATRICES(ON_CUDA, NONE, NONE, NONE, NONE))
#define METAL_MATRICES             (0 MATRICES(NONE, NONE, ON_METAL, NONE, NONE))
#define AMX_MATRICES               (0 MATRICES(NONE, NONE, NONE, ON_AMX, NONE))
#define DOT_MATRICES               (0 MATRICES(NONE, NONE, NONE, NONE, ON_DOT))

/* CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the same since 3.0. */
#define CUDA_LIMITS                                                                                          \
  { .blocks = {INT32_MAX, 65535, 65535}, .threads = {1024, 1024, 64}, .block = 1024 }
/* Metal Feature Set Tables: threads of a threadgroup. Metal does not limit the grid, but indices are counted
 * in i32. */
#define METAL_LIMITS                                                                                         \
  { .blocks = {INT32_MAX, INT32_MAX, INT32_MAX}, .threads = {1024, 1024, 1024}, .block = 1024 }

/* Nominal rates. All cores share one L2, which takes the place of a CPU's L3. */
#define GPU(text, shared, shared_most, limits, units, alone)                                                 \
  {                                                                                                          \
    .name = text, .cores = 80, .streams = 80, .cache = {128 * KB, 0, 40 * MB}, .ways = {4, 0, 16},           \
    .bytes_us = {190e3, 60e3, 60e3, 19e3}, .mhz = 1500, .fmas = 128, .ops = 128, .weight = GPU_WEIGHTS,      \
    .vec_bytes = 16, .registers = 255, .warp = WARP, .threads = 1024, .latency = 600, .local_bytes = shared, \
    .local_most = shared_most, .most = limits, .launch_us = 3, .dots = DOTS_BYTES, .matrices = units,        \
    .copies = alone                                                                                          \
  }
/* The last one follows long runs, as a Zen 4 does. */
const Target target_planned = PLANNED_CPU("8 cores with AVX-512", 0, false),
             target_amx = PLANNED_CPU("8 cores with AVX-512 and AMX", AMX_MATRICES, false),
             target_dot = PLANNED_CPU("8 cores with AVX-512 and its dot products", DOT_MATRICES, true),
             target_cuda =
                 GPU("a GPU with CUDA", CUDA_STATIC_LOCAL, PLANNED_SHARED, CUDA_LIMITS, CUDA_MATRICES, true),
             target_metal = GPU("a GPU with Metal", 32 * KB, 32 * KB, METAL_LIMITS, METAL_MATRICES, false);

/* Portable C runs on an unknown machine. This one has the caches of a small processor, and rates of which
 * only the ratios matter. Lists are made for vectors of sixteen lanes, which are cut to four
 * (codegen/scalars.c). A tile then takes a fourth of the registers, so the target has four times as many. */
const Target target_c99 = {.name = "any machine with C99",
                           .cores = 1,
                           .streams = 1,
                           .cache = {32 * KB, 256 * KB, 4 * MB},
                           .ways = {8, 8, 16},
                           .bytes_us = {48e3, 24e3, 12e3, 6e3},
                           .mhz = 1000,
                           .fmas = 4,
                           .ops = 4,
                           .weight = CPU_WEIGHTS,
                           .vec_bytes = 16,
                           .registers = 64,
                           .warp = 1,
                           .threads = 1,
                           .local_bytes = 64 * KB,
                           .local_most = 64 * KB,
                           .copies_replace = true,
                           .dots = DOTS_BYTES,
                           .launch_us = 0.02};

Target target_this_cpu(void) {
  Target t = target_planned;
  double mhz = processor_mhz();
  t.name = "this CPU";
  t.cores = cpu_count();
  t.mhz = mhz > 0 ? mhz : CPU_MHZ;
  t.vec_bytes = processor_vector_bytes();
  t.registers = processor_vector_registers();
  t.fmas = t.vec_bytes / 2.0;
  t.ops = t.vec_bytes / 4.0;
  t.dots = processor_dots();
  t.follows_runs = processor_follows_runs();
  int64_t lent =
      TG_MAX(t.cores * 4 * (int64_t)MB, 32 * MB); /* other processes use the cache of a large processor too */
  for (int l = LEVEL_L1; l < LEVEL_MEMORY; l++) {
    int64_t nbytes = cpu_cache_bytes(l + 1);
    int ways = cpu_cache_ways(l + 1);
    if (nbytes > 0) {
      double sets = (double)t.cache[l] / t.ways[l];
      t.ways[l] = ways > 0 ? ways : TG_MAX((int)((double)nbytes / sets), 1);
      t.cache[l] = l == LEVEL_L3 ? TG_MIN(nbytes, lent) : nbytes;
    }
    t.bytes_us[l] = cycle_bytes[l] * t.mhz * t.vec_bytes / 64;
  }
  t.local_bytes = t.local_most = t.cache[LEVEL_L2] / 2;
  return t;
}

/* Arm's Cortex-M have a unit for single f32 numbers and no vectors. A fused multiply-add takes as long as a
 * multiplication and an addition. Their memory is as fast as a cache; flash, which holds the weights, is
 * slower. */
enum { M4_MHZ = 168, M7_MHZ = 400 };

#define CORTEX_M(text, clock, near, each_cycle, flash, rate)                                                 \
  {                                                                                                          \
    .name = text, .cores = 1, .streams = 1, .cache = {near, near, 512 * KB}, .ways = {4, 4, 4},              \
    .bytes_us = {(each_cycle) * (clock), (each_cycle) * (clock), (each_cycle) * (clock), (flash) * (clock)}, \
    .mhz = (clock), .fmas = (rate) / 2, .ops = (rate), .weight = CPU_WEIGHTS, .vec_bytes = 16,               \
    .registers = 32, .warp = 1, .threads = 1, .local_bytes = 16 * KB, .local_most = 16 * KB,                 \
    .copies_replace = true, .dots = DOTS_BYTES, .launch_us = 0.1                                             \
  }

static const Target target_m4 = CORTEX_M("Cortex-M4", M4_MHZ, 192 * KB, 4.0, 2.0, 1.0),
                    target_m7 = CORTEX_M("Cortex-M7", M7_MHZ, 16 * KB, 8.0, 4.0, 2.0);

/* A processor by name. single: the target for text without vectors. vector: the target for text with vectors,
 * of which one core with these registers is used; NULL: it has no vectors. vec_bytes 0: this processor.
 * usual: vectors are the default. */
static const struct Named {
  const char *name, *flags;
  const Target *single, *vector;
  int vec_bytes, registers;
  bool usual;
} named[] = {{"generic", "", &target_c99, &target_planned, 16, 16, false},
             {"native", "-march=native", &target_c99, &target_planned, 0, 0, true},
             {"x86-64-v2", "-march=x86-64-v2", &target_c99, &target_planned, 16, 16, true},
             {"x86-64-v3", "-march=x86-64-v3", &target_c99, &target_planned, 32, 16, true},
             {"x86-64-v4", "-march=x86-64-v4", &target_c99, &target_planned, 64, 32, true},
             {"armv8", "-march=armv8-a", &target_c99, &target_planned, 16, 32, true},
             {"cortex-m4", "-mcpu=cortex-m4", &target_m4, NULL, 0, 0, false},
             {"cortex-m7", "-mcpu=cortex-m7", &target_m7, NULL, 0, 0, false},
             {"wasm32", "--target=wasm32", &target_c99, NULL, 0, 0, false},
             {"wasm-simd", "--target=wasm32 -msimd128", &target_c99, &target_planned, 16, 16, true}};

static Target with_vectors(const struct Named *n) {
  Target t = n->vec_bytes ? *n->vector : target_this_cpu();
  if (n->vec_bytes) {
    t.vec_bytes = n->vec_bytes;
    t.registers = n->registers;
    t.fmas = t.vec_bytes / 2.0;
    t.ops = t.vec_bytes / 4.0;
    for (int l = LEVEL_L1; l < LEVEL_MEMORY; l++)
      t.bytes_us[l] *= t.vec_bytes / 64.0;
  }
  t.name = n->name;
  t.cores = 1;
  return t;
}

const char *target_named(const char *name, const char *vectors, Target *out, bool *gnu) {
  bool none = vectors && !strcmp(vectors, "none"), some = vectors && !strcmp(vectors, "gnu");
  if (vectors && !none && !some) return NULL;
  for (size_t i = 0; i < TG_COUNT(named); i++) {
    const struct Named *n = &named[i];
    if (strcmp(name, n->name)) continue;
    *gnu = some || (n->usual && !none);
    if (*gnu && !n->vector) return NULL;
    *out = *gnu ? with_vectors(n) : *n->single;
    return n->flags;
  }
  return NULL;
}

double target_weight(const Target *t, const UOp *u) {
  OpWeight w = op_weight((Ops)u->op);
  return w == WEIGHT_ONE && u->dtype == DT_INDEX ? 0 : t->weight[w];
}

bool target_launches(const Target *t, const int grid[3], const int block[3], char why[LAUNCH_WHY]) {
  const LaunchLimits *most = &t->most;
  int64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (grid[i] > most->blocks[i])
      return snprintf(why, LAUNCH_WHY, "%d blocks along %c, %lld are the most", grid[i], "xyz"[i],
                      (long long)most -> blocks[i]),
             false;
    if (block[i] > most->threads[i])
      return snprintf(why, LAUNCH_WHY, "%d threads of a block along %c, %d are the most", block[i], "xyz"[i],
                      most -> threads[i]),
             false;
    threads *= TG_MAX(block[i], 1);
  }
  if (threads <= most->block) return true;
  snprintf(why, LAUNCH_WHY, "%lld threads in a block, %d are the most", (long long)threads, most->block);
  return false;
}

void target_print(Str *out, const Target *t) {
  str_printf(out, "%s: %d cores of %.1f GHz, vectors of %d bytes x %d", t->name, t->cores, t->mhz / 1000,
             t->vec_bytes, t->registers);
  str_printf(out, ", %.0f Gflop/s and %.0f Gop/s a core; KB (GB/s)", target_flops_us(t) / 1000,
             target_ops_us(t) / 1000);
  for (int l = LEVEL_L1; l < LEVEL_MEMORY; l++)
    if (t->cache[l])
      str_printf(out, " L%d %lld (%.0f)", l + 1, (long long)t->cache[l] / KB, t->bytes_us[l] / 1000);
  str_printf(out, ", memory (%.0f x %d); local %lld KB, launch %.1f us, shares %.1f us",
             t->bytes_us[LEVEL_MEMORY] / 1000, t->streams, (long long)t->local_bytes / KB, t->launch_us,
             t->distribute_us);
  if (t->warp > 1) str_printf(out, ", warp %d", t->warp);
}

/* A running sum or product of many f32 is carried in f64, because each element is a result and would
 * otherwise contain all roundings before it. Threads of a GPU compute it in pieces; there f64 is slow, and
 * few roundings add up. */
DType target_running(const Target *t, Ops op, DType d) {
  return d == DT_F32 && (op == OPS_ADD || op == OPS_MUL) && t->warp <= 1 ? DT_F64 : d;
}
