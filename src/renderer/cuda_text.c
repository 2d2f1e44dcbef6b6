/* cuda_text.c: the table of CUDA C++ (NVRTC, no headers). A kernel's parameters are the buffers by slot, then
 * the variables by value. The text must be compiled with --fmad=false. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

/* ---- matrix units: a fragment is an array of words */
static void fragment(C *c, const UOp *u, int id, char name, int first, int n) {
  bool narrowed = matrix_shapes[u->arg.i].narrowed;
  cs_put(c, name == 'a' ? "u32 a%d[%d] = {" : ", b%d[%d] = {", id, n);
  for (int i = 0; i < n; i++) {
    const UOp *v = u->src[first + i], *rows = cs_word_of(v);
    if (i) str_put(&c->body, ", ");
    if (!rows)
      cs_put(c, "word(%s)", cs_ref(c, v));
    else
      cs_put(c, narrowed ? "word(f32_bits(%s[%d]))" : "%s[%d]", cs_ref(c, rows),
             (int)(v->arg.i * (int64_t)dtype_size((DType)v->dtype) / MATRIX_WORD_BYTES));
  }
  str_put(&c->body, "}");
}

/* Reads rows of 8 x 8 elements of 16 bits, whose addresses the threads of a warp give, into words of
 * fragments. */
static void render_rows(C *c, const UOp *u, int id) {
  const UOp *x = uop_base(u->src[0]->src[0]);
  int words = (int)(u->lanes * dtype_size((DType)u->dtype)) / MATRIX_WORD_BYTES;
  cs_put(c, "u32 v%d[%d]; tg_ldmatrix_x%d%s(v%d, %s + %s);\n", id, words, words, u->arg.i ? "_trans" : "", id,
         cs_ref(c, uop_base(x->src[0])), cs_ref(c, x->src[1]));
}

static void render_matrix(C *c, const UOp *u, int id) {
  const MatrixShape *s = &matrix_shapes[u->arg.i];
  const MatrixOperand *a = &s->operand[MATRIX_A], *b = &s->operand[MATRIX_B];
  int na = a->elements / a->together, nb = b->elements / b->together;
  const char *type = cs_type(c, (DType)u->dtype, u->lanes), *sum = cs_ref(c, u->src[na + nb]);
  fragment(c, u, id, 'a', 0, na), fragment(c, u, id, 'b', na, nb);
  cs_put(c, "; %s v%d; tg_mma_%s(&v%d, a%d, b%d, &%s);\n", type, id, s->name, id, id, id, sum);
}

/* The PTX name of a type, in mma.sync and in the name of a row. */
static const char *ptx_type(const MatrixShape *s, MatrixRole role) {
  switch (s->operand[role].dtype) {
  case DT_F16: return "f16";
  case DT_BF16: return "bf16";
  case DT_I8: return "s8";
  case DT_U8: return "u8";
  case DT_FP8E4M3: return "e4m3";
  case DT_FP8E5M2: return "e5m2";
  case DT_I32: return "s32";
  default: return s->narrowed && role != MATRIX_C ? "tf32" : "f32";
  }
}

static void operands(Str *out, int first, int n) {
  str_put(out, "{");
  for (int i = 0; i < n; i++)
    str_printf(out, i ? ", %%%d" : "%%%d", first + i);
  str_put(out, "}");
}

/* The function with the instruction of a row of the table. Its operands are numbered: %0 .. are d, then come
 * a, b and c. */
static void matrix_function(Str *out, const MatrixShape *s) {
  enum { SUMS = 4 };

  const MatrixOperand *a = &s->operand[MATRIX_A], *b = &s->operand[MATRIX_B];
  int na = a->elements / a->together, nb = b->elements / b->together;
  bool whole = s->operand[MATRIX_C].dtype == DT_I32;
  const char *type = whole ? "i32" : "f32", *letter = whole ? "r" : "f";
  str_printf(
      out,
      "#if __CUDA_ARCH__ >= %d\nINL void tg_mma_%s(void *to, const void *with, const void *by, const "
      "void *from) {\n  %s *d = (%s *)to; const %s *c = (const %s *)from; const u32 *a = (const u32 "
      "*)with, *b = (const u32 *)by;\n  asm volatile(\"mma.sync.aligned.m%dn%dk%d.row.col.%s.%s.%s.%s ",
      10 * s->since, s->name, type, type, type, type, s->m, s->n, s->k, ptx_type(s, MATRIX_C),
      ptx_type(s, MATRIX_A), ptx_type(s, MATRIX_B), ptx_type(s, MATRIX_C));
  operands(out, 0, SUMS), str_put(out, ", "), operands(out, SUMS, na), str_put(out, ", ");
  operands(out, SUMS + na, nb), str_put(out, ", "), operands(out, SUMS + na + nb, SUMS);
  str_put(out, ";\" : ");
  for (int i = 0; i < SUMS; i++)
    str_printf(out, "%s\"=%s\"(d[%d])", i ? ", " : "", letter, i);
  for (int i = 0; i < na; i++)
    str_printf(out, "%s\"r\"(a[%d])", i ? ", " : " : ", i);
  for (int i = 0; i < nb; i++)
    str_printf(out, ", \"r\"(b[%d])", i);
  for (int i = 0; i < SUMS; i++)
    str_printf(out, ", \"%s\"(c[%d])", letter, i);
  str_put(out, ");\n}\n#endif\n");
}

/* ---- units of four warps (groups.c) */
/* Defines the function that computes n steps side by side. It changes four elements of each step's sum in
 * place. The last arguments of the instruction mean: add to the sum; do not change signs; which operands are
 * turned. */
static void group_function(C *c, const UOp *u, int n) {
  const MatrixShape *s = &matrix_shapes[u->arg.i];
  const char *none[26] = {0};
  Str text;
  str_init(&text, c->body.mem);
  str_printf(&text, "#ifndef TG_EMULATED\nINL void tg_mma_%s(u64 a, u64 b", s->name);
  for (int i = 0; i < n; i++)
    str_printf(&text, ", f32x4 &c%d", i);
  str_printf(&text, ") {\n  asm volatile(\"wgmma.mma_async.sync.aligned.m%dn%dk%d.%s.%s.%s ", s->m, n * s->n,
             s->k, ptx_type(s, MATRIX_C), ptx_type(s, MATRIX_A), ptx_type(s, MATRIX_B));
  operands(&text, 0, 4 * n);
  str_printf(&text, ", %%%d, %%%d, 1, 1, 1, %d, %d;\" : ", 4 * n, 4 * n + 1, s->operand[MATRIX_A].turned,
             s->operand[MATRIX_B].turned);
  for (int i = 0; i < 4 * n; i++)
    str_printf(&text, "%s\"+f\"(c%d.%c)", i ? ", " : "", i / 4, "xyzw"[i % 4]);
  str_put(&text, " : \"l\"(a), \"l\"(b));\n}\n#endif");
  cs_helper(c, cs_text(c, "tg_mma_%s_%d", s->name, n), str_text(&text), none, 0);
  if (text.oom) c->body.oom = true;
  str_free(&text);
}

/* Encodes the address of an operand in shared memory for the unit, in units of 16 bytes: its start, the
 * distance between blocks of 64 lines, the distance between groups of eight lines, and that 16-byte chunks
 * are permuted within 128 bytes. */
static void group_prelude(Str *out) {
  str_put(out, "#ifndef TG_EMULATED\n"
               "INL u64 tg_lines_by(const void *p, u64 apart) { return ((u64)__cvta_generic_to_shared(p) & "
               "0x3ffffu) >> "
               "4 | apart << 16 | 64ull << 32 | 1ull << 62; }\n"
               "#define tg_lines(p) tg_lines_by(p, 1)\n#define tg_turned(p) tg_lines_by(p, 512)\n"
               "#define tg_group_begin() asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\")\n"
               "#define tg_group_fence() asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\")\n"
               "#define tg_group_commit() asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\")\n"
               "#define tg_group_wait(n) asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(n) : "
               "\"memory\")\n#endif\n");
}

/* From compute capability 8.0 on, a thread can start a copy without holding the value. Before that, the
 * thread copies. */
static void copy_prelude(Str *out) {
  str_put(
      out,
      "#ifndef TG_EMULATED\n#if __CUDA_ARCH__ >= 800\n#define COPY(N, HOW) INL void tg_copy_async_##N(void "
      "*to, const void *from) { asm volatile(\"cp.async.\" #HOW \".shared.global [%0], [%1], \" #N "
      "\";\" :: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\"); }\n"
      "COPY(4, ca) COPY(8, ca) COPY(16, cg)\n"
      "#define tg_copy_async_wait_some(n) asm volatile(\"cp.async.commit_group; cp.async.wait_group %0;\" :: "
      "\"n\"(n) : \"memory\")\n"
      "INL void tg_copy_async_wait_all() { asm volatile(\"cp.async.wait_all;\" ::: \"memory\"); }\n"
      "#else\n#define COPY(N, T) INL void tg_copy_async_##N(void *to, const void *from) { *(T *)to = "
      "*(const T *)from; }\nCOPY(4, u32) COPY(8, u32x2) COPY(16, u32x4)\n"
      "#define tg_copy_async_wait_some(n)\nINL void tg_copy_async_wait_all() {}\n#endif\n#endif\n");
}

/* Defines PTX's ldmatrix, plain or transposed. The threads of a warp give the addresses of the rows, eight
 * for each word. */
static void rows_function(Str *out, int words, bool turned) {
  str_printf(
      out,
      "INL void tg_ldmatrix_x%d%s(u32 *to, const void *row) { asm volatile(\"ldmatrix.sync.aligned.m8n8.x%d"
      "%s.shared.b16 ",
      words, turned ? "_trans" : "", words, turned ? ".trans" : "");
  operands(out, 0, words);
  str_printf(out, ", [%%%d];\" : ", words);
  for (int i = 0; i < words; i++)
    str_printf(out, "%s\"=r\"(to[%d])", i ? ", " : "", i);
  str_put(out, " : \"r\"((u32)__cvta_generic_to_shared(row)) : \"memory\"); }\n");
}

static void matrix_prelude(Str *out) {
  /* tf32 is rounded to ten bits of mantissa, to nearest; the unit ignores the other bits of a word */
  str_put(out, "INL u32 word(u16x2 x) { return x.x | (u32)x.y << 16; }\n"
               "INL u32 word(u8x4 x) { return x.x | (u32)x.y << 8 | (u32)x.z << 16 | (u32)x.w << 24; }\n"
               "INL u32 word(i8x4 x) { return word(u8x4{u8(x.x), u8(x.y), u8(x.z), u8(x.w)}); }\n"
               "INL u32 word(f32 x) { u32 u = u32_bits(x); return (u & 0x7f800000u) == 0x7f800000u ? u : u + "
               "0x1000u; }\n#ifndef TG_EMULATED\n");
  for (int i = 0; i < MATRIX_COUNT; i++)
    if (matrix_shapes[i].maker == MATRIX_CUDA && !matrix_in_shared(&matrix_shapes[i]))
      matrix_function(out, &matrix_shapes[i]);
  for (int words = 1; words <= 4; words *= 2)
    rows_function(out, words, false), rows_function(out, words, true);
  str_put(out, "#endif\n");
}

static const CLang lang = {.name = "CUDA",
                           .restrict_word = "__restrict__ ",
                           .kernel = "extern \"C\" __global__ void __launch_bounds__(%d) ",
                           .device_space = "",
                           .local_space = "",
                           .local_array = "__shared__ __attribute__((aligned(16))) ",
                           .local_lines = "__shared__ __attribute__((aligned(%d))) ",
                           .most_local = CUDA_STATIC_LOCAL,
                           .launch_local =
                               "extern __shared__ __attribute__((aligned(%d))) u8 launch_local[];",
                           .launch_local_name = "launch_local",
                           .block_index = "blockIdx",
                           .thread_index = "threadIdx",
                           .vec_open = "{",
                           .vec_close = "}",
                           .long_suffix = "ll",
                           .inf32 = "f32_bits(0x7f800000u)",
                           .nan32 = "f32_bits(0x7fc00000u)",
                           .inf64 = "f64_bits(0x7ff0000000000000ull)",
                           .nan64 = "f64_bits(0x7ff8000000000000ull)",
                           .barrier = "__syncthreads()",
                           .barrier_device = "__syncthreads()",
                           .shuffle = "__shfl_xor_sync(0xffffffffu, %s, %d)",
                           .shuffle_wide = "__shfl_xor_sync(0xffffffffu, %s, %d)",
                           .copy = "tg_copy_async_%d(%s + %s, %s + %s)",
                           .copies_wait = "tg_copy_async_wait_all()",
                           .copies_wait_some = "tg_copy_async_wait_some(%d)",
                           .group = group_function,
                           .matrix = render_matrix,
                           .rows = render_rows};

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
      "MATH(exp2) MATH(log2) MATH(exp) MATH(log) MATH(sin) MATH(cos) MATH(tanh)\n");
  str_put(out, cstyle_prelude);
  copy_prelude(out);
  matrix_prelude(out);
  group_prelude(out);
}

const Renderer renderer_cuda = {.name = "CUDA",
                                .native = NATIVE_GPU | NATIVE(TANH),
                                .vec_bytes = 16,
                                .has_grid = true,
                                .narrow_index = true,
                                .vec_align = 16,
                                .has_rows = true,
                                .narrow_div = true,
                                .has_f64 = true,
                                .target = &target_cuda,
                                .render = render,
                                .prelude = prelude};
