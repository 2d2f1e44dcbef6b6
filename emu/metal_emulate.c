/* metal_emulate.c: the words of the Metal Shading Language, defined by what the emulator offers. Address
 * spaces mean nothing in C++; the lint (metal_lint.c) checks them. */
#include "emu/emulate.h"

/* Long vectors have the alignment of the language: a long4 begins at a multiple of 32. Packed vectors have
 * the alignment of their elements. */
#define WORDS                                                                                                \
  "#define kernel __attribute__((noinline))\n#define device\n#define thread\n#define constant const\n"       \
  "#define INFINITY __builtin_inff()\n#define NAN __builtin_nanf(\"\")\n"                                    \
  "typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned " \
  "long ulong;\n"                                                                                            \
  "EMU_VECTOR(signed char, char, 2, 4) EMU_VECTOR(unsigned char, uchar, 2, 4)\n"                             \
  "EMU_VECTOR(short, short, 4, 8) EMU_VECTOR(unsigned short, ushort, 4, 8)\n"                                \
  "EMU_VECTOR(int, int, 8, 16) EMU_VECTOR(unsigned int, uint, 8, 16) EMU_VECTOR(float, float, 8, 16)\n"      \
  "EMU_VECTOR(long, long, 16, 32) EMU_VECTOR(unsigned long, ulong, 16, 32)\n"                                \
  "#define EMU_PACKED(N, T) \\\n"                                                                            \
  "  struct packed_##N##2 { T x, y; packed_##N##2() = default; \\\n"                                         \
  "    EMU_NOW packed_##N##2(const N##2 &v) : x(v.x), y(v.y) {} \\\n"                                        \
  "    EMU_NOW operator N##2() const { return N##2(x, y); } }; \\\n"                                         \
  "  struct packed_##N##4 { T x, y, z, w; packed_##N##4() = default; \\\n"                                   \
  "    EMU_NOW packed_##N##4(const N##4 &v) : x(v.x), y(v.y), z(v.z), w(v.w) {} \\\n"                        \
  "    EMU_NOW operator N##4() const { return N##4(x, y, z, w); } };\n"                                      \
  "EMU_PACKED(char, signed char) EMU_PACKED(uchar, uchar) EMU_PACKED(short, short) EMU_PACKED(ushort, "      \
  "ushort) EMU_PACKED(int, int) EMU_PACKED(uint, uint)\n"                                                    \
  "EMU_PACKED(long, long) EMU_PACKED(ulong, ulong) EMU_PACKED(float, float)\n"                               \
  "struct uint3 { uint x, y, z; };\n"                                                                        \
  "EMU_PLACE(threadgroup_position_in_grid, emu_block_index())\n"                                             \
  "EMU_PLACE(thread_position_in_threadgroup, emu_thread_index())\n"                                          \
  "EMU_PLACE(threads_per_threadgroup, emu_block_size())\n"                                                   \
  "EMU_PLACE(threadgroups_per_grid, emu_grid_size())\n"

/* 16-bit floats. Conversions round once, to the nearest value, and to the even one of two nearest. */
#define HALF                                                                                                 \
  "struct half {\n  ushort bits;\n  half() = default;\n"                                                     \
  "  EMU_NOW half(float x) {\n    uint b = emu_bits<uint>(x), s = b >> 16 & 0x8000, a = b & 0x7fffffff, "    \
  "r;\n"                                                                                                     \
  "    if (a > 0x7f800000) r = 0x7e00;\n    else if (a >= 0x477ff000) r = 0x7c00;\n"                         \
  "    else if (a < 0x38800000) r = (uint)__builtin_rintf(emu_bits<float>(a) * 0x1p24f);\n"                  \
  "    else r = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;\n    bits = (ushort)(s | r);\n  }\n"         \
  "  EMU_NOW operator float() const {\n    uint e = bits >> 10 & 31, m = bits & 1023;\n"                     \
  "    float x = e == 31 ? emu_bits<float>(0x7f800000 | m << 13) : e ? emu_bits<float>((e + 112) << 23 | m " \
  "<< 13) : (float)m * 0x1p-24f;\n    return bits & 0x8000 ? -x : x;\n  }\n};\n"

/* The values of lanes that do not exist are undefined in Metal; the emulator refuses them. */
#define FUNCTIONS                                                                                            \
  "template <typename To, typename From> EMU_NOW To as_type(From x) { static_assert(sizeof(To) == "          \
  "sizeof(From), \"as_type keeps the size\"); return emu_bits<To>(x); }\n"                                   \
  "namespace metal {\n"                                                                                      \
  "enum class mem_flags : uint { mem_none = 0, mem_threadgroup = 1, mem_device = 2 };\n"                     \
  "constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }\n"     \
  "EMU_NOW float fma(float a, float b, float c) { return fmaf(a, b, c); }\n"                                 \
  "namespace precise {\n#define EMU_PRECISE(F) EMU_NOW float F(float x) { return ::F##f(x); }\n"             \
  "EMU_PRECISE(sqrt) EMU_PRECISE(exp2) EMU_PRECISE(log2) EMU_PRECISE(exp) EMU_PRECISE(log) "                 \
  "EMU_PRECISE(sin) EMU_PRECISE(cos)\n}\n"                                                                   \
  "template <typename T> struct EmuLane { static constexpr bool fits = true; };\n"                           \
  "template <> struct EmuLane<long> { static constexpr bool fits = false; };\n"                              \
  "template <> struct EmuLane<ulong> { static constexpr bool fits = false; };\n"                             \
  "template <typename T> EMU_NOW T emu_lane(uint id, uint line, int op, T x, int n) { "                      \
  "static_assert(EmuLane<T>::fits, \"no shuffle of a long\"); "                                              \
  "return emu_shuffled(id, line, op, 0xffffffffu, x, n); }\n}\n"                                             \
  "#define threadgroup_barrier(flags) emu_barrier(EMU_HERE, (uint)(flags))\n"                                \
  "#define simdgroup_barrier(flags) emu_warp_sync(EMU_HERE, 0xffffffffu)\n"                                  \
  "#define simd_shuffle(...) emu_lane(EMU_HERE, 1, __VA_ARGS__)\n"                                           \
  "#define simd_shuffle_xor(...) emu_lane(EMU_HERE, 2, __VA_ARGS__)\n"                                       \
  "#define simd_shuffle_up(...) emu_lane(EMU_HERE, 3, __VA_ARGS__)\n"                                        \
  "#define simd_shuffle_down(...) emu_lane(EMU_HERE, 4, __VA_ARGS__)\n"

/* The numbers are those of the table in emulate_warp.c. */
#define MATRICES                                                                                             \
  "template <typename T> struct simdgroup_matrix8 { T own[2]; EMU_NOW T *thread_elements() { return own; } " \
  "};\n"                                                                                                     \
  "struct bfloat { ushort bits; };\n"                                                                        \
  "typedef simdgroup_matrix8<half> simdgroup_half8x8; typedef simdgroup_matrix8<float> "                     \
  "simdgroup_float8x8; typedef simdgroup_matrix8<bfloat> simdgroup_bfloat8x8;\n"                             \
  "template <typename T> struct EmuMatrix;\n"                                                                \
  "template <> struct EmuMatrix<half> { static constexpr int kind = 8; };\n"                                 \
  "template <> struct EmuMatrix<float> { static constexpr int kind = 9; };\n"                                \
  "template <> struct EmuMatrix<bfloat> { static constexpr int kind = 10; };\n"                              \
  "template <typename T> EMU_NOW void emu_matrix8(uint id, uint line, simdgroup_float8x8 &d, const "         \
  "simdgroup_matrix8<T> &a, const simdgroup_matrix8<T> &b, const simdgroup_float8x8 &c) { "                  \
  "emu_warp_mma(id, line, EmuMatrix<T>::kind, d.own, a.own, b.own, c.own); }\n"                              \
  "#define simdgroup_multiply_accumulate(...) emu_matrix8(EMU_HERE, __VA_ARGS__)\n"

const EmuDialect emu_dialect_metal = {.name = "METAL",
                                      .prelude = WORDS HALF FUNCTIONS MATRICES,
                                      .header = "metal_stdlib",
                                      .kernel_word = "kernel",
                                      .array_word = "threadgroup",
                                      .has_attributes = true};
