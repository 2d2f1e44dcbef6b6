/* cuda.c: the table of CUDA C++ (NVRTC, no headers). Buffers by slot, then the variables by value. Compile
 * with --fmad=false. */
#include "renderer/cstyle.h"

static const CLang lang = {.name = "CUDA",
                           .restrict_word = "__restrict__ ",
                           .vec_open = "{",
                           .vec_close = "}",
                           .long_suffix = "ll",
                           .inf32 = "f32_bits(0x7f800000u)",
                           .nan32 = "f32_bits(0x7fc00000u)",
                           .inf64 = "f64_bits(0x7ff0000000000000ull)",
                           .nan64 = "f64_bits(0x7ff8000000000000ull)",
                           .barrier = "__syncthreads()",
                           .shuffle = "__shfl_xor_sync(0xffffffffu, %s, %d)",
                           .shuffle_wide = "__shfl_xor_sync(0xffffffffu, %s, %d)"};

static bool render(Str *out, const Linear *lin, TgError *err) { return cstyle_render(out, lin, err, &lang); }

static void prelude(Str *out) {
  static const char *const vec[][2] = {{"i8", "char"}, {"u8", "uchar"}, {"i16", "short"}, {"u16", "ushort"},
                                       {"i32", "int"}, {"u32", "uint"}, {"f32", "float"}};
  str_put(out,
          "typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16; "
          "typedef int i32; typedef "
          "unsigned u32;\n"
          "typedef long long i64; typedef unsigned long long u64; typedef float f32; typedef double f64;\n");
  for (size_t i = 0; i < TG_COUNT(vec); i++)
    str_printf(out, "typedef %s2 %sx2; typedef %s4 %sx4;\n", vec[i][1], vec[i][0], vec[i][1], vec[i][0]);
  str_put(
      out,
      "#define VEC(T) struct __align__(16) T##x2 { T x, y; }; struct __align__(16) T##x4 { T x, y, z, w; "
      "};\nVEC(i64) VEC(u64) VEC(f64)\n"
      "#pragma nv_diag_suppress 177, 39\n#define INL static __device__ __forceinline__\n"
      "INL u32 u32_bits(f32 x) { return __float_as_uint(x); }\nINL f32 f32_bits(u32 x) { return "
      "__uint_as_float(x); }\n"
      "INL u64 u64_bits(f64 x) { return (u64)__double_as_longlong(x); }\nINL f64 f64_bits(u64 x) { return "
      "__longlong_as_double((i64)x); }\n"
      "INL f32 sqrt_f32(f32 x) { return sqrtf(x); }\nINL f64 sqrt_f64(f64 x) { return sqrt(x); }\n"
      "INL f32 fma_f32(f32 a, f32 b, f32 c) { return fmaf(a, b, c); }\nINL f64 fma_f64(f64 a, f64 b, f64 c) "
      "{ return fma(a, b, "
      "c); }\n"
      "#define MATH(F) INL f32 F##_f32(f32 x) { return F##f(x); } INL f64 F##_f64(f64 x) { return F(x); }\n"
      "MATH(exp2) MATH(log2) MATH(exp) MATH(log) MATH(sin) MATH(cos)\n");
  str_put(out, cstyle_prelude);
}

const Renderer renderer_cuda = {.name = "CUDA",
                                .native = NATIVE_GPU,
                                .vec_bytes = 16,
                                .has_grid = true,
                                .narrow_index = true,
                                .vec_align = 16,
                                .narrow_div = true,
                                .has_f64 = true,
                                .target = &target_cuda,
                                .render = render,
                                .prelude = prelude};
