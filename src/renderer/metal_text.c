/* metal_text.c: the table of the Metal Shading Language. Buffers are [[buffer(n)]], followed by the variables
 * as one array. If there are more than 31 in all, one buffer has all their addresses. There is no f64: a
 * kernel with it is refused by name. Numbers of 16 bits are stored as such and computed in f32. Those of half
 * are converted by the language's type, those of bfloat by their bits, because not every system's compiler
 * has bfloat. The text must be compiled without fast math. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

enum { MOST_BUFFERS = 31 }; /* of a kernel */

/* Declares one of the three matrices of a simdgroup and sets the elements that this thread has. */
static void fragment(C *c, const MatrixOperand *o, const UOp *v, int id, const char *name) {
  static const char *const letter[] = {"x", "y"};
  const char *from = cs_ref(c, v);
  const char *type = o->dtype == DT_F16 ? "half" : o->dtype == DT_BF16 ? "bfloat" : "float";
  bool bits = o->dtype != DT_F32; /* numbers of 16 bits are kept as their bits */
  cs_put(c, "simdgroup_%s8x8 %s%d; ", type, name, id);
  for (int i = 0; i < o->elements; i++) {
    cs_put(c, "%s%d.thread_elements()[%d] = ", name, id, i);
    cs_put(c, bits ? "as_type<%s>(%s.%s); " : "%s(%s.%s); ", type, from, letter[i]);
  }
}

static void render_matrix(C *c, const UOp *u, int id) {
  static const char *const name[MATRIX_ROLES] = {"a", "b", "c"};
  const MatrixShape *s = &matrix_shapes[u->arg.i];
  const char *type = cs_type(c, (DType)u->dtype, u->lanes);
  for (int role = MATRIX_A; role < MATRIX_ROLES; role++)
    fragment(c, &s->operand[role], u->src[role], id, name[role]);
  cs_put(c, "simdgroup_multiply_accumulate(c%d, a%d, b%d, c%d); ", id, id, id, id);
  cs_put(c, "%s v%d = %s(c%d.thread_elements()[0], c%d.thread_elements()[1]);\n", type, id, type, id, id);
}

static const CLang lang = {.name = "METAL",
                           .restrict_word = "",
                           .kernel = "kernel void ",
                           .device_space = "device ",
                           .local_space = "threadgroup ",
                           .value_space = "constant ",
                           .local_array = "alignas(%d) threadgroup ",
                           .block_index = "gid",
                           .thread_index = "lid",
                           .packed_vec = true,
                           .param_place = " [[buffer(%d)]]",
                           .more_params = "uint3 gid [[threadgroup_position_in_grid]], uint3 lid "
                                          "[[thread_position_in_threadgroup]]",
                           .most_params = MOST_BUFFERS,
                           .vec_open = "(",
                           .vec_close = ")",
                           .long_suffix = "l",
                           .inf32 = "INFINITY",
                           .nan32 = "NAN",
                           .inf64 = "INFINITY",
                           .nan64 = "NAN",
                           .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup)",
                           .barrier_device =
                               "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device)",
                           .shuffle = "simd_shuffle_xor(%s, %d)",
                           .shuffle_wide = "shuffle_wide(%s, %d)",
                           .matrix = render_matrix};

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
  str_put(out, "#include <metal_stdlib>\nusing namespace metal;\n"
               /* a product and a sum must be two operations, as in INTERP; compilers before Metal 3.2 have no
                * math modes, but know clang's pragma for it */
               "#if __METAL_VERSION__ >= 320\n#pragma METAL fp contract(off)\n#else\n#pragma clang fp "
               "contract(off)\n#endif\n"
               "#define NO_F64\n#define NATIVE_F16\n#define INL static inline\n");
  for (size_t i = 0; i < TG_COUNT(vec); i++)
    for (int lanes = 1; lanes <= 4; lanes *= 2)
      if (lanes == 1)
        str_printf(out, "typedef %s %s;", vec[i][1], vec[i][0]);
      else
        str_printf(out, " typedef %s%d %sx%d; typedef packed_%s%d %sx%du;%s", vec[i][1], lanes, vec[i][0],
                   lanes, vec[i][1], lanes, vec[i][0], lanes, lanes == 4 ? "\n" : "");
  str_put(out,
          "INL u32 u32_bits(f32 x) { return as_type<u32>(x); }\nINL f32 f32_bits(u32 x) { return "
          "as_type<f32>(x); }\n"
          "INL f32 sqrt_f32(f32 x) { return precise::sqrt(x); }\nINL f32 fma_f32(f32 a, f32 b, f32 c) { "
          "return fma(a, b, c); }\n"
          "#define MATH(F) INL f32 F##_f32(f32 x) { return precise::F(x); }\nMATH(exp2) MATH(log2) "
          "MATH(exp) MATH(log) MATH(sin) MATH(cos)\n"
          "INL f32 f32_f16(u16 h) { return (f32)as_type<half>(h); }\nINL u16 f16_f32(f32 x) { return "
          "as_type<u16>((half)x); }\n"
          "INL u64 shuffle_wide(u64 x, ushort n) { return as_type<u64>(simd_shuffle_xor(as_type<u32x2>(x), "
          "n)); }\n");
  str_put(out, cstyle_prelude);
}

const Renderer renderer_metal = {.name = "METAL",
                                 .native = NATIVE_GPU,
                                 .vec_bytes = 16,
                                 .most_params = MOST_BUFFERS,
                                 .has_grid = true,
                                 .narrow_index = true,
                                 .vec_align = 16,
                                 .narrow_div = true,
                                 .target = &target_metal,
                                 .render = render,
                                 .prelude = prelude};
