/* c99.c: the table of C99 without extensions, for any machine. Kernels are static functions. They take each
 * buffer as a parameter of its type, then the variables, then local memory. Every operation is rounded on its
 * own, so the same text gives the same bits wherever floats are IEEE 754 and the compiler contracts nothing.
 * No sum of products is fused, because few machines have such an instruction and a function would be slow.
 * The text assumes two things beyond the standard, as every compiler guarantees them: conversion to a signed
 * type wraps, and a right shift of a negative number divides it, rounding down. */
#include "renderer/cstyle_private.h"
#include <string.h>

static const CLang lang = {.name = "C99",
                           .strict = true,
                           .lane_loops = true,
                           .device_space = "",
                           .local_space = "",
                           .long_suffix = "ll",
                           .inf32 = "f32_bits(0x7f800000u)",
                           .nan32 = "f32_bits(0x7fc00000u)",
                           .inf64 = "f64_bits(0x7ff0000000000000u)",
                           .nan64 = "f64_bits(0x7ff8000000000000u)",
                           .restrict_word = "RESTRICT ",
                           .kernel = "static void ",
                           .most_local = 1, /* all arrays are parts of the parameter */
                           .launch_local = "",
                           .launch_local_name = "scratch"};

static bool render(Str *out, const Linear *lin, TgError *err) { return cstyle_render(out, lin, err, &lang); }

/* A statement about each lane l. gcc vectorises loops. clang vectorises statements that follow each other,
 * and these are also best for a processor without vectors. */
#define LANES                                                                                                \
  "#if defined __GNUC__ && !defined __clang__ && (defined __SSE2__ || defined __ARM_NEON || defined "        \
  "__VEC__)\n"                                                                                               \
  "#define LANES2(...) { i32 l; for (l = 0; l < 2; l++) { __VA_ARGS__ } }\n"                                 \
  "#define LANES4(...) { i32 l; for (l = 0; l < 4; l++) { __VA_ARGS__ } }\n"                                 \
  "#else\n#define LANE(i, ...) { enum { l = i }; __VA_ARGS__ }\n"                                            \
  "#define LANES2(...) { LANE(0, __VA_ARGS__) LANE(1, __VA_ARGS__) }\n"                                      \
  "#define LANES4(...) { LANE(0, __VA_ARGS__) LANE(1, __VA_ARGS__) LANE(2, __VA_ARGS__) LANE(3, "            \
  "__VA_ARGS__) }\n"                                                                                         \
  "#endif\n"

/* The sum of four. clang starts its search for vectors at such a sum and would then make vectors of two lanes
 * of everything that it adds. If the sum is a call with its operands in memory, clang makes vectors of four
 * lanes. */
#define FOUR                                                                                                 \
  "#if defined __clang__ && (defined __SSE2__ || defined __ARM_NEON || defined __wasm_simd128__)\n"          \
  "#define CALLED __attribute__((noinline))\n#else\n#define CALLED\n#endif\n"                                \
  "INL CALLED f32 four_f32(const f32 *v) { f32 a = v[0] + v[2], b = v[1] + v[3]; return a + b; }\n"

static const char types[] =
    "#ifdef __cplusplus\n#define RESTRICT\n#else\n#define RESTRICT restrict\n#endif\n"
    "#ifdef __GNUC__ /* of some a kernel needs one function of several */\n"
    "#define INL static inline __attribute__((unused))\n#else\n#define INL static inline\n#endif\n"
    "typedef int8_t i8; typedef uint8_t u8; typedef int16_t i16; typedef uint16_t u16;\n"
    "typedef int32_t i32; typedef uint32_t u32; typedef int64_t i64; typedef uint64_t u64;\n"
    "typedef float f32; typedef double f64;\n"
    "INL u32 u32_bits(f32 x) { union { f32 f; u32 u; } b; b.f = x; return b.u; }\n"
    "INL f32 f32_bits(u32 x) { union { f32 f; u32 u; } b; b.u = x; return b.f; }\n"
    "INL u64 u64_bits(f64 x) { union { f64 f; u64 u; } b; b.f = x; return b.u; }\n"
    "INL f64 f64_bits(u64 x) { union { f64 f; u64 u; } b; b.u = x; return b.f; }\n" LANES FOUR;

/* A product of two f32 is exact in f64. Its sum with c is rounded twice. The first rounding does harm only if
 * it ends half-way between two f32, or if the result is smaller than any normal f32. In these cases the sum
 * is rounded to odd (its last bit is set if something was lost), so that the rounding to f32 sees on which
 * side the exact sum lies. */
#define ROUNDED_ONCE                                                                                         \
  "INL f32 rounded_once(f64 p, f64 z, f64 s) {\n"                                                            \
  "  u64 bits = u64_bits(s);\n"                                                                              \
  "  f64 t = s - p, lost = (p - (s - t)) + (z - t);\n"                                                       \
  "  if (lost != 0 && lost == lost && s - s == 0 && !(bits & 1))\n"                                          \
  "    s = f64_bits((lost > 0) == (s > 0) ? bits + 1 : bits - 1);\n"                                         \
  "  return (f32)s;\n}\n"
#define FUSED_BY_F64                                                                                         \
  "  f64 p = (f64)a * (f64)b, s = p + (f64)c;\n"                                                             \
  "  u64 bits = u64_bits(s);\n"                                                                              \
  "  if ((bits & 0x1fffffffu) == 0x10000000u || (bits >> 52 & 2047) < 897) return rounded_once(p, (f64)c, "  \
  "s);\n"                                                                                                    \
  "  return (f32)s;\n"

/* Uses the builtin only if gcc or clang report a single instruction, so that it is not a call. */
static const char fused[] =
    ROUNDED_ONCE "INL f32 fma_f32(f32 a, f32 b, f32 c) {\n"
                 "#if defined __GNUC__ && (defined __FP_FAST_FMAF || defined __ARM_FEATURE_FMA)\n"
                 "  return __builtin_fmaf(a, b, c);\n#else\n" FUSED_BY_F64 "#endif\n}\n";

/* Uses libm's fma if it is a single instruction: the bits are the same, and it is much faster if the hardware
 * has no f64. */
static const char fused_by_libm[] = ROUNDED_ONCE
    "INL f32 fma_f32(f32 a, f32 b, f32 c) {\n"
    "#if defined FP_FAST_FMAF || defined __FP_FAST_FMAF\n  return fmaf(a, b, c);\n#else\n" FUSED_BY_F64
    "#endif\n}\n";

static const char math_of_libm[] =
    "INL f32 sqrt_f32(f32 x) { return sqrtf(x); }\nINL f64 sqrt_f64(f64 x) { return sqrt(x); }\n"
    "INL f64 fma_f64(f64 a, f64 b, f64 c) { return fma(a, b, c); }\n";

/* A square root is one instruction of a Cortex-M. Otherwise it is computed digit by digit, with two digits
 * more than a float has and one that records the remainder, so it is rounded once. The f64 fma adds both
 * parts of the product; it may be wrong in the last bit of a double. */
static const char math_of_our_own[] =
    "INL f32 sqrt_f32(f32 x) {\n"
    "#if defined __GNUC__ && defined __thumb2__ && defined __ARM_FP\n"
    "  __asm__(\"vsqrt.f32 %0, %0\" : \"+t\"(x));\n  return x;\n#else\n"
    "  u32 m = u32_bits(x) & 0x7fffffu, q = 0, bit;\n"
    "  i32 e = (i32)(u32_bits(x) >> 23), s = 27;\n"
    "  u64 n;\n"
    "  if (!(x > 0) || e == 255) return x == 0 || x > 0 ? x : f32_bits(0x7fc00000u);\n"
    "  if (e) m |= 0x800000u; else for (e = 1; !(m & 0x800000u); e--) m <<= 1;\n"
    "  if ((e - 150 - s) & 1) s++;\n"
    "  n = (u64)m << s;\n"
    "  for (bit = 1u << 25; bit; bit >>= 1) if ((u64)(q | bit) * (q | bit) <= n) q |= bit;\n"
    "  if ((u64)q * q != n) q |= 1;\n"
    "  return (f32)(i32)q * f32_bits((u32)((e - 150 - s) / 2 + 127) << 23);\n"
    "#endif\n}\n"
    "INL f64 sqrt_f64(f64 x) {\n"
    "  u64 m = u64_bits(x) & 0xfffffffffffffu, q = 0, rest = 0;\n"
    "  i32 e = (i32)(u64_bits(x) >> 52), s = 2, i;\n"
    "  if (!(x > 0) || e == 2047) return x == 0 || x > 0 ? x : f64_bits(0x7ff8000000000000u);\n"
    "  if (e) m |= 0x10000000000000u; else for (e = 1; !(m & 0x10000000000000u); e--) m <<= 1;\n"
    "  if ((e - 1075 - s) & 1) s++;\n"
    "  m <<= s;\n"
    "  for (i = 27; i > -28; i--) {\n"
    "    rest = rest << 2 | (i >= 0 ? m >> 2 * i & 3 : 0);\n"
    "    if (rest > 2 * (2 * q)) { rest -= 4 * q + 1; q = 2 * q + 1; } else q = 2 * q;\n"
    "  }\n"
    "  if (rest) q |= 1;\n"
    "  return (f64)(i64)q * f64_bits((u64)((e - 1075 - s) / 2 - 27 + 1023) << 52);\n"
    "}\n"
    "INL f64 fma_f64(f64 a, f64 b, f64 c) {\n"
    "  f64 p = a * b, h = f64_bits(u64_bits(a) & ~(u64)0x7ffffff), g = f64_bits(u64_bits(b) & "
    "~(u64)0x7ffffff);\n"
    "  f64 low = ((h * g - p) + h * (b - g) + (a - h) * g) + (a - h) * (b - g), s = p + c, t = s - p;\n"
    "  f64 lost = (p - (s - t)) + (c - t);\n"
    "  return lost + low == lost + low && s - s == 0 ? s + (lost + low) : s;\n"
    "}\n";

/* Appends the helpers that all languages share, without their text for compilers with extensions: lines of
 * conditions are left out, and so is the form of the f16 conversions that uses builtins. */
static void shared_helpers(Str *out) {
  bool builtins = false;
  for (const char *at = cstyle_prelude, *end; *at; at = end) {
    end = at + strcspn(at, "\n");
    end += *end == '\n';
    bool condition = !strncmp(at, "#if", 3) || !strncmp(at, "#else", 5) || !strncmp(at, "#endif", 6);
    if (condition) builtins = !strncmp(at, "#ifdef __F16C__", 15);
    if (!condition && !builtins) str_putn(out, at, (size_t)(end - at));
  }
}

void c99_prelude(Str *out, bool own_math) {
  str_put(out, types);
  str_put(out, own_math ? fused : fused_by_libm);
  str_put(out, own_math ? math_of_our_own : math_of_libm);
  shared_helpers(out);
}

static void prelude(Str *out) {
  str_put(out, "#include <stdint.h>\n#include <math.h>\n");
  c99_prelude(out, false);
}

const Renderer renderer_c99 = {.name = "C99",
                               .native = NATIVE_BASE & ~NATIVE(MULACC),
                               .vec_bytes = 16,
                               .vec_align = 1,
                               .narrow_index = true,
                               .has_threads = true,
                               .has_f64 = true,
                               .target = &target_c99,
                               .render = render,
                               .prelude = prelude};
