/* cuda_emulate.c: the words of CUDA C++, defined by what the emulator offers. A text can test TG_EMULATED
 * around code that only a GPU understands; the functions whose names begin with tg_ are defined here. */
#include "emu/emulate.h"

/* __restrict__ means nothing here, because two threads may access the same memory, whatever one thread was
 * promised. */
#define WORDS                                                                                                \
  "#define TG_EMULATED 1\n"                                                                                  \
  "#define __global__ __attribute__((noinline))\n#define __device__\n#define __host__\n"                     \
  "#define __forceinline__ inline __attribute__((always_inline))\n"                                          \
  "#define __launch_bounds__(...)\n#define __align__(n) __attribute__((aligned(n)))\n"                       \
  "#undef __restrict__\n#define __restrict__\n"                                                              \
  "#define __shared__ EMU_SHARED_ARRAY\n"                                                                    \
  "#define threadIdx (emu_thread_index())\n#define blockIdx (emu_block_index())\n"                           \
  "#define blockDim (emu_block_size())\n#define gridDim (emu_grid_size())\n#define warpSize 32\n"            \
  "#define __syncthreads() emu_barrier(EMU_HERE, 3)\n"                                                       \
  "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;\n"                 \
  "EMU_VECTOR(signed char, char, 2, 4) EMU_VECTOR(unsigned char, uchar, 2, 4)\n"                             \
  "EMU_VECTOR(short, short, 4, 8) EMU_VECTOR(unsigned short, ushort, 4, 8)\n"                                \
  "EMU_VECTOR(int, int, 8, 16) EMU_VECTOR(unsigned int, uint, 8, 16) EMU_VECTOR(float, float, 8, 16)\n"      \
  "EMU_VECTOR(long long, longlong, 16, 16) EMU_VECTOR(unsigned long long, ulonglong, 16, 16)\n"              \
  "EMU_VECTOR(double, double, 16, 16)\n"

#define FUNCTIONS                                                                                            \
  "static inline unsigned __float_as_uint(float x) { return emu_bits<unsigned>(x); }\n"                      \
  "static inline int __float_as_int(float x) { return emu_bits<int>(x); }\n"                                 \
  "static inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }\n"                         \
  "static inline float __int_as_float(int x) { return emu_bits<float>(x); }\n"                               \
  "static inline long long __double_as_longlong(double x) { return emu_bits<long long>(x); }\n"              \
  "static inline double __longlong_as_double(long long x) { return emu_bits<double>(x); }\n"                 \
  "#define EMU_WIDE(F) extern \"C\" double F(double);\n"                                                     \
  "EMU_WIDE(sqrt) EMU_WIDE(exp2) EMU_WIDE(log2) EMU_WIDE(exp) EMU_WIDE(log) EMU_WIDE(sin) EMU_WIDE(cos)\n"   \
  "EMU_WIDE(tan) EMU_WIDE(tanh) EMU_WIDE(floor) EMU_WIDE(ceil) EMU_WIDE(trunc) EMU_WIDE(rint) "              \
  "EMU_WIDE(fabs)\n"                                                                                         \
  "extern \"C\" double fma(double, double, double); extern \"C\" double pow(double, double);\n"              \
  "#define EMU_ATOMIC(NAME, NEW) template <typename T> EMU_UNSEEN static T NAME(T *p, T v) { \\\n"           \
  "  emu_atomic(p, sizeof *p); T old = *p; *p = (NEW); return old; }\n"                                      \
  "EMU_ATOMIC(atomicAdd, old + v) EMU_ATOMIC(atomicSub, old - v) EMU_ATOMIC(atomicExch, v)\n"                \
  "EMU_ATOMIC(atomicMin, v < old ? v : old) EMU_ATOMIC(atomicMax, v > old ? v : old)\n"                      \
  "EMU_ATOMIC(atomicAnd, old & v) EMU_ATOMIC(atomicOr, old | v) EMU_ATOMIC(atomicXor, old ^ v)\n"            \
  "template <typename T> EMU_UNSEEN static T atomicCAS(T *p, T want, T v) {\n"                               \
  "  emu_atomic(p, sizeof *p); T old = *p; if (old == want) *p = v; return old; }\n"

/* The numbers are those of WarpOp and of the table in emulate_warp.c. A fence orders nothing here: accesses
 * race unless there is a barrier between them. */
#define WARPS                                                                                                \
  "#define __shfl_sync(mask, ...) emu_shuffled(EMU_HERE, 1, mask, __VA_ARGS__)\n"                            \
  "#define __shfl_xor_sync(mask, ...) emu_shuffled(EMU_HERE, 2, mask, __VA_ARGS__)\n"                        \
  "#define __shfl_up_sync(mask, ...) emu_shuffled(EMU_HERE, 3, mask, __VA_ARGS__)\n"                         \
  "#define __shfl_down_sync(mask, ...) emu_shuffled(EMU_HERE, 4, mask, __VA_ARGS__)\n"                       \
  "#define __syncwarp(...) emu_warp_sync(EMU_HERE, (0xffffffffu, ##__VA_ARGS__))\n"                          \
  "#define __ballot_sync(mask, value) emu_warp_ballot(EMU_HERE, mask, (value) != 0)\n"                       \
  "#define __any_sync(mask, value) (emu_warp_ballot(EMU_HERE, mask, (value) != 0) != 0)\n"                   \
  "#define __all_sync(mask, value) (emu_warp_ballot(EMU_HERE, mask, (value) == 0) == 0)\n"                   \
  "#define __threadfence()\n#define __threadfence_block()\n"                                                 \
  "#define tg_mma_m16n8k16_f16_f32(d, a, b, c) emu_warp_mma(EMU_HERE, 0, d, a, b, c)\n"                      \
  "#define tg_mma_m16n8k16_bf16_f32(d, a, b, c) emu_warp_mma(EMU_HERE, 1, d, a, b, c)\n"                     \
  "#define tg_mma_m16n8k8_tf32_f32(d, a, b, c) emu_warp_mma(EMU_HERE, 2, d, a, b, c)\n"                      \
  "#define tg_mma_m16n8k32_s8_s32(d, a, b, c) emu_warp_mma(EMU_HERE, 3, d, a, b, c)\n"                       \
  "#define tg_mma_m16n8k32_u8_s32(d, a, b, c) emu_warp_mma(EMU_HERE, 4, d, a, b, c)\n"                       \
  "#define tg_mma_m16n8k32_e4m3_f32(d, a, b, c) emu_warp_mma(EMU_HERE, 5, d, a, b, c)\n"                     \
  "#define tg_mma_m16n8k32_e5m2_f32(d, a, b, c) emu_warp_mma(EMU_HERE, 6, d, a, b, c)\n"                     \
  "#define tg_mma_m16n8k8_f16_f32(d, a, b, c) emu_warp_mma(EMU_HERE, 7, d, a, b, c)\n"                       \
  "template <typename... T> EMU_UNSEEN static void emu_group(emu_u32 id, emu_u32 line, int kind, emu_u64 "   \
  "a, "                                                                                                      \
  "emu_u64 b, T &...c) {\n"                                                                                  \
  "  float *sum[] = {&c.x...}; emu_group_step(id, line, kind, a, b, sizeof...(T), sum); }\n"                 \
  "#define tg_lines(p) emu_group_place(p, 1)\n#define tg_turned(p) emu_group_place(p, 512)\n"                \
  "#define tg_group_begin() emu_group_begin()\n#define tg_group_wait(n) emu_group_wait(n)\n"                 \
  "#define tg_group_commit() emu_group_commit()\n"                                                           \
  "#define tg_group_fence() emu_group_fence()\n"                                                             \
  "#define tg_mma_m64n8k16_f16_f32(...) emu_group(EMU_HERE, 0, __VA_ARGS__)\n"                               \
  "#define tg_mma_m64n8k16_f16_f32_b(...) emu_group(EMU_HERE, 1, __VA_ARGS__)\n"                             \
  "#define tg_mma_m64n8k16_f16_f32_a(...) emu_group(EMU_HERE, 2, __VA_ARGS__)\n"                             \
  "#define tg_mma_m64n8k16_f16_f32_ab(...) emu_group(EMU_HERE, 3, __VA_ARGS__)\n"                            \
  "#define tg_mma_m64n8k16_bf16_f32(...) emu_group(EMU_HERE, 4, __VA_ARGS__)\n"                              \
  "#define tg_mma_m64n8k16_bf16_f32_b(...) emu_group(EMU_HERE, 5, __VA_ARGS__)\n"                            \
  "#define tg_mma_m64n8k16_bf16_f32_a(...) emu_group(EMU_HERE, 6, __VA_ARGS__)\n"                            \
  "#define tg_mma_m64n8k16_bf16_f32_ab(...) emu_group(EMU_HERE, 7, __VA_ARGS__)\n"                           \
  "#define tg_ldmatrix_x1(to, row) emu_warp_rows(EMU_HERE, 1, to, row)\n"                                    \
  "#define tg_ldmatrix_x2(to, row) emu_warp_rows(EMU_HERE, 2, to, row)\n"                                    \
  "#define tg_ldmatrix_x4(to, row) emu_warp_rows(EMU_HERE, 4, to, row)\n"                                    \
  "#define tg_ldmatrix_x1_trans(to, row) emu_warp_rows(EMU_HERE, -1, to, row)\n"                             \
  "#define tg_ldmatrix_x2_trans(to, row) emu_warp_rows(EMU_HERE, -2, to, row)\n"                             \
  "#define tg_ldmatrix_x4_trans(to, row) emu_warp_rows(EMU_HERE, -4, to, row)\n"                             \
  "#define tg_copy_async_16(to, from) emu_copy_async(to, from, 16)\n"                                        \
  "#define tg_copy_async_8(to, from) emu_copy_async(to, from, 8)\n"                                          \
  "#define tg_copy_async_4(to, from) emu_copy_async(to, from, 4)\n"                                          \
  "#define tg_copy_async_commit() emu_copy_commit()\n"                                                       \
  "#define tg_copy_async_wait(n) emu_copy_wait(n)\n"                                                         \
  "#define tg_copy_async_wait_some(n) (emu_copy_commit(), emu_copy_wait(n))\n"                               \
  "#define tg_copy_async_wait_all() emu_copy_wait_all()\n"

const EmuDialect emu_dialect_cuda = {.name = "CUDA",
                                     .prelude = WORDS FUNCTIONS WARPS,
                                     .kernel_word = "__global__",
                                     .bounds_word = "__launch_bounds__",
                                     .dynamic_words = "extern __shared__"};
