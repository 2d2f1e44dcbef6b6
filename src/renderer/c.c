/* c.c: the table of GNU C for the CPU. Kernels are `void NAME(void *const *bufs, const i64 *vars, int tid,
 * void *scratch)`. They need no header and no external symbol. They are compiled with -ffp-contract=off, so
 * that only MULACC fuses. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

static void block(C *c, const UOp *store) {
  if (matrix_shapes[store->src[1]->arg.i].maker == MATRIX_AMX)
    cs_tiles(c, store);
  else
    cs_dots(c, store);
}

static const CLang lang = {.name = "C",
                           .gnu_vec = true,
                           .device_space = "",
                           .local_space = "",
                           .long_suffix = "l",
                           .inf32 = "__builtin_inff()",
                           .nan32 = "__builtin_nanf(\"\")",
                           .inf64 = "__builtin_inf()",
                           .nan64 = "__builtin_nan(\"\")",
                           .prefetch = "PREFETCH",
                           .block = block,
                           .tiles_begin = "tiles_begin();",
                           .tiles_end = "tiles_end();"};

static bool render(Str *out, const Linear *lin, TgError *err) { return cstyle_render(out, lin, err, &lang); }

static void prelude(Str *out) {
  str_put(out,
          "typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16; "
          "typedef int i32; typedef "
          "unsigned u32;\n"
          "typedef long i64; typedef unsigned long u64; typedef float f32; typedef double f64;\n"
          "#define VECTOR(T, N) typedef T T##x##N __attribute__((vector_size(N * sizeof(T)))); \\\n"
          "typedef T T##x##N##u __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));\n"
          "#define PREFETCH(p, i) __builtin_prefetch((const void *)((u64)(p) + (u64)(i) * sizeof *(p)))\n"
          "#define INL static inline __attribute__((always_inline))\n"
          "#ifdef __clang__\n#define PARTS _Pragma(\"unroll\")\n#define MAXI(I, a, b) "
          "__builtin_elementwise_max(a, b)\n#if __has_builtin(__builtin_elementwise_sqrt)\n"
          "#define SQRT_OF_ALL __builtin_elementwise_sqrt\n#endif\n#else\n#define PARTS _Pragma(\"GCC unroll "
          "8\")\n"
          "#define MAXI(I, a, b) ((((a) > (b)) & (I)(a)) | (~((a) > (b)) & (I)(b)))\n#endif\n"
          "#define PART(v) ((part *)&v)[i]\n#define IN_PARTS(T, BYTES, N, VALUE) typedef T part "
          "__attribute__((vector_size(BYTES), may_alias)); \\\n"
          "PARTS for (int i = 0; i < N; i++) PART(a) = VALUE; return a;\n"
          "#define FMA128(K, a, b, c) __builtin_ia32_vfmaddp##K(a, b, c)\n#define FMA256(K, a, b, c) "
          "__builtin_ia32_vfmaddp##K##256(a, b, c)\n"
          "#define FMA512(K, a, b, c) __builtin_ia32_vfmaddp##K##512_mask(a, b, c, -1, 4)\n"
          "#define SQRT128(K, a) __builtin_ia32_sqrtp##K(a)\n#define SQRT256(K, a) "
          "__builtin_ia32_sqrtp##K##256(a)\n#define TRUNC128(K, a) __builtin_ia32_roundp##K(a, 11)\n"
          "#define TRUNC256(K, a) __builtin_ia32_roundp##K##256(a, 11)\n"
          "#define TRUNC512(K, a) __builtin_ia32_rndscalep##K##_mask(a, 11, a, -1, 4)\n#ifdef __clang__\n"
          "#define SQRT512(K, a) __builtin_ia32_sqrtp##K##512(a, 4)\n#else\n#define SQRT512(K, a) "
          "__builtin_ia32_sqrtp##K##512_mask(a, a, -1, 4)\n#endif\n"
          "INL u32 u32_bits(f32 x) { union { f32 f; u32 u; } b = {.f = x}; return b.u; }\n"
          "INL f32 f32_bits(u32 x) { union { u32 u; f32 f; } b = {.u = x}; return b.f; }\n"
          "INL u64 u64_bits(f64 x) { union { f64 f; u64 u; } b = {.f = x}; return b.u; }\n"
          "INL f64 f64_bits(u64 x) { union { u64 u; f64 f; } b = {.u = x}; return b.f; }\n"
          "INL f32 sqrt_f32(f32 x) { return __builtin_sqrtf(x); }\nINL f64 sqrt_f64(f64 x) { return "
          "__builtin_sqrt(x); }\n"
          "INL f32 fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }\n"
          "INL f64 fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }\n"
          "INL i32 dot4_i32(i32 a, i32 b) { u32 r = 0; for (int i = 0; i < 32; i += 8) "
          "r += ((u32)a >> i & 255) * (u32)(i8)(b >> i); return (i32)r; }\n"
          "INL i32 dot2_i32(i32 a, i32 b) { return (i32)((u32)(i16)a * (u32)(i16)b + (u32)(a >> 16) * "
          "(u32)(b >> 16)); }\n"
          "INL i32 add2_i32(i32 a, i32 b) { return (i32)((u16)(a + (u32)b) | (((u32)a >> 16) + ((u32)b >> "
          "16)) << 16); }\n"
          "INL i32 pair_of(i32 a, i32 b) { i32 r = (a & 255) * (i8)b + (a >> 8 & 255) * (i8)(b >> 8); "
          "return r < -32768 ? -32768 : r > 32767 ? 32767 : r; }\n"
          "INL i32 dot2x2_i32(i32 a, i32 b) { return (i32)(((u32)pair_of(a, b) & 65535) | (u32)pair_of(a >> "
          "16, b "
          ">> 16) << 16); }\n"
          "INL i32 lookup4_i32(i32 a, const u8 *t) { u32 r = 0; for (int i = 0; i < 32; i += 8) "
          "r |= (u32)t[a >> i & 15] << i; return (i32)r; }\n");
  str_put(out, cstyle_prelude);
}

#define RENDERER_C(text, planned)                                                                            \
  {                                                                                                          \
    .name = text,                                                                                            \
    .native = NATIVE_BASE | NATIVE(DOT4) | NATIVE(DOT2) | NATIVE(DOT2X2) | NATIVE(ADD2) | NATIVE(LOOKUP4),   \
    .vec_bytes = 64, .vec_align = 1, .has_threads = true, .has_f64 = true, .has_lookup = true,               \
    .target = planned, .render = render, .prelude = prelude                                                  \
  }
const Renderer renderer_c = RENDERER_C("C", &target_planned), renderer_amx = RENDERER_C("AMX", &target_amx),
               renderer_dot = RENDERER_C("DOT", &target_dot);
