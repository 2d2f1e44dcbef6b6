/* metal.c: the table of the Metal Shading Language. Buffers and then variables are [[buffer(n)]]; no f64.
 * Compile without fast math. */
#include "renderer/cstyle.h"

static const CLang lang = {.name = "METAL",
                           .msl = true,
                           .restrict_word = "",
                           .vec_open = "(",
                           .vec_close = ")",
                           .long_suffix = "l",
                           .inf32 = "INFINITY",
                           .nan32 = "NAN",
                           .inf64 = "INFINITY",
                           .nan64 = "NAN",
                           .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup)",
                           .shuffle = "simd_shuffle_xor(%s, %d)",
                           .shuffle_wide = "shuffle_wide(%s, %d)"};

static bool render(Str *out, const Linear *lin, TgError *err) {
  for (int i = 0; i < lin->n; i++)
    if (lin->at[i]->dtype == DT_F64)
      return error_set(err, TG_ERR_DTYPE, "render METAL: kernel %s: Metal has no f64", lin->name), false;
  return cstyle_render(out, lin, err, &lang);
}

static void prelude(Str *out) {
  static const char *const vec[][2] = {{"i8", "char"},    {"u8", "uchar"},  {"i16", "short"},
                                       {"u16", "ushort"}, {"i32", "int"},   {"u32", "uint"},
                                       {"i64", "long"},   {"u64", "ulong"}, {"f32", "float"}};
  str_put(out,
          "#include <metal_stdlib>\nusing namespace metal;\n#define NO_F64\n#define INL static inline\n");
  for (size_t i = 0; i < TG_COUNT(vec); i++)
    str_printf(out, "typedef %s %s; typedef %s2 %sx2; typedef %s4 %sx4;\n", vec[i][1], vec[i][0], vec[i][1],
               vec[i][0], vec[i][1], vec[i][0]);
  str_put(out,
          "INL u32 u32_bits(f32 x) { return as_type<u32>(x); }\nINL f32 f32_bits(u32 x) { return "
          "as_type<f32>(x); }\n"
          "INL f32 sqrt_f32(f32 x) { return precise::sqrt(x); }\nINL f32 fma_f32(f32 a, f32 b, f32 c) { "
          "return fma(a, b, c); }\n"
          "#define MATH(F) INL f32 F##_f32(f32 x) { return precise::F(x); }\nMATH(exp2) MATH(log2) "
          "MATH(exp) MATH(log) MATH(sin) MATH(cos)\n"
          "INL u64 shuffle_wide(u64 x, ushort n) { return as_type<u64>(simd_shuffle_xor(as_type<u32x2>(x), "
          "n)); }\n");
  str_put(out, cstyle_prelude);
}

const Renderer renderer_metal = {.name = "METAL",
                                 .native = NATIVE_GPU,
                                 .vec_bytes = 16,
                                 .has_grid = true,
                                 .narrow_index = true,
                                 .vec_align = 16,
                                 .narrow_div = true,
                                 .target = &target_metal,
                                 .render = render,
                                 .prelude = prelude};
