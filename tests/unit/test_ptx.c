/* test_ptx.c: the inline assembly of the CUDA prelude, and whole kernels, as PTX. The emulator replaces the
 * functions that are assembly by its own, so it cannot see a mistake in them; here the PTX that NVIDIA's
 * compiler makes of the very text is run (tests/ptx), lane by lane. The functions are compared bit for bit
 * with the emulator's on random data, and kernels with INTERP. Seeded mistakes in the assembly must show.
 * Without libnvrtc the tests are skipped. */
#define _GNU_SOURCE
#include "runtime/cuda.h"
#include "emu/emulate.h"
#include "ptx/ptx.h"
#include "tg.h"
#include "base/os.h"
#include "uop/matrix.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LANES = 32, WORDS = 4096, MOST_TEXT = 1 << 16 };

static void *library;
static CudaApi rtc;
static TgMem mem;
static Compiler cc;
static uint64_t seed = 77;

static uint32_t draw(void) {
  seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(seed >> 32);
}

/* Before copies by the GPU itself; with all that mma.sync multiplies. */
static const char *const archs[] = {"75", "89"};

static void needs_nvrtc(void) {
  if (library) return;
  print_message("skipped: no libnvrtc here (searched the loader's path, CUDA_PATH, /usr/local/cuda)\n");
  skip();
}

/* The PTX of a text; NULL: it is refused. */
static char *ptx_of(const char *text, const char *arch) {
  char option[64];
  snprintf(option, sizeof option, "--gpu-architecture=sm_%s", arch);
  const char *options[] = {option, "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};
  nvrtcProgram p;
  size_t n = 0;
  char *ptx = NULL;
  assert_int_equal(rtc.unit_create(&p, text, "kernels.cu", 0, NULL, NULL), 0);
  if (!rtc.unit_compile(p, TG_COUNT(options), options) && !rtc.unit_ptx_size(p, &n) &&
      (ptx = calloc(n + 1, 1)))
    rtc.unit_ptx(p, ptx);
  rtc.unit_destroy(&p);
  return ptx;
}

/* ---- the functions: a kernel of a warp for each, from p1, p2 and p3 to p0 */
typedef enum Data { ANY, F16, BF16, F32, TF32, E4M3, E5M2, ROWS } Data;

typedef struct Case {
  char name[64];
  Data data;  /* of p1 and p2 */
  Data third; /* of p3 */
  int since;  /* the architecture that has it */
} Case;

typedef struct Wrappers {
  Case at[64];
  int n;
  Str text;
} Wrappers;

static Data data_of(const MatrixShape *s) {
  switch (s->operand[MATRIX_A].dtype) {
  case DT_F16: return F16;
  case DT_BF16: return BF16;
  case DT_F32: return TF32;
  case DT_FP8E4M3: return E4M3;
  case DT_FP8E5M2: return E5M2;
  default: return ANY;
  }
}

static void case_begin(Wrappers *w, const char *name, Data data, Data third) {
  Case *c = &w->at[w->n++];
  snprintf(c->name, sizeof c->name, "%.60s", name);
  c->data = data, c->third = third;
  str_printf(
      &w->text,
      "extern \"C\" __global__ void __launch_bounds__(32) w_%s(u32 *p0, const u32 *p1, const u32 *p2, const "
      "u32 *p3) {\n  u32 t = threadIdx.x;\n",
      name);
}

static void product_case(Wrappers *w, const MatrixShape *s) {
  int na = s->operand[MATRIX_A].elements / s->operand[MATRIX_A].together;
  int nb = s->operand[MATRIX_B].elements / s->operand[MATRIX_B].together;
  str_printf(&w->text, "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= %d\n", 10 * s->since);
  case_begin(w, s->name, data_of(s), s->operand[MATRIX_C].dtype == DT_I32 ? ANY : F32);
  w->at[w->n - 1].since = s->since;
  str_printf(
      &w->text,
      "  u32 a[%d], b[%d], c[4], d[4];\n  for (int i = 0; i < %d; i++) a[i] = p1[t * %d + i];\n"
      "  for (int i = 0; i < %d; i++) b[i] = p2[t * %d + i];\n  for (int i = 0; i < 4; i++) c[i] = "
      "p3[t * 4 + "
      "i];\n  tg_mma_%s(d, a, b, c);\n  for (int i = 0; i < 4; i++) p0[t * 4 + i] = d[i];\n}\n#endif\n",
      na, nb, na, na, nb, nb, s->name);
}

static void rows_case(Wrappers *w, int words, const char *turned) {
  char name[64];
  snprintf(name, sizeof name, "ldmatrix_x%d%s", words, turned);
  case_begin(w, name, ANY, ROWS);
  str_printf(&w->text,
             "  __shared__ __attribute__((aligned(16))) u32 l0[%d];\n  for (int i = 0; i < %d; i++) l0[i * "
             "32 + t] = "
             "p1[i * 32 + t];\n  __syncthreads();\n  u32 v[%d]; tg_%s(v, l0 + p3[t] %% %d * 4);\n  for (int "
             "i = 0; i < "
             "%d; i++) p0[t * %d + i] = v[i];\n}\n",
             words * 32, words, words, name, words * 8, words, words);
}

/* Two copies a thread, the first read back by its neighbour; what is not copied shows as what was there. */
static void copy_case(Wrappers *w, int nbytes) {
  char name[64];
  int words = nbytes / 4;
  snprintf(name, sizeof name, "copy_%d", nbytes);
  case_begin(w, name, ANY, ANY);
  str_printf(&w->text,
             "  __shared__ __attribute__((aligned(16))) u32 l0[%d];\n  for (int i = 0; i < %d; i++) l0[t * "
             "%d + i] = "
             "p2[t * %d + i];\n  __syncthreads();\n",
             2 * words * 32, 2 * words, 2 * words, 2 * words);
  for (int i = 0; i < 2; i++)
    str_printf(&w->text, "  tg_copy_async_%d(l0 + (t * 2 + %d) * %d, p1 + ((31 - t) * 2 + %d) * %d);\n",
               nbytes, i, words, i, words);
  str_printf(&w->text,
             "  tg_copy_async_wait_all(); __syncthreads();\n  for (int i = 0; i < %d; i++) p0[t * %d + i] = "
             "l0[(t * %d "
             "+ %d + i) %% %d];\n}\n",
             2 * words, 2 * words, 2 * words, 2 * words, 2 * words * 32);
}

static void plain_cases(Wrappers *w) {
  static const struct {
    const char *name, *does;
    Data data;
  } plain[] = {
      {"shuffles", "for (int i = 0; i < 5; i++) p0[t * 5 + i] = __shfl_xor_sync(0xffffffffu, p1[t], 1 << i);",
       ANY},
      {"shuffles_wide",
       "for (int i = 0; i < 5; i++) { u64 x = __shfl_xor_sync(0xffffffffu, p1[t] | (u64)p2[t] << 32, 1 << "
       "i); p0[t * "
       "10 + 2 * i] = (u32)x; p0[t * 10 + 2 * i + 1] = (u32)(x >> 32); }",
       ANY},
      {"halves", "p0[t] = u32_bits(f32_f16((u16)p1[t])); p0[32 + t] = f16_f32(f32_bits(p3[t]));", F16},
      {"brains", "p0[t] = u32_bits(f32_bf16((u16)p1[t])); p0[32 + t] = bf16_f32(f32_bits(p3[t]));", BF16},
      {"e4m3", "p0[t] = u32_bits(f32_fp8e4m3((u8)p1[t])); p0[32 + t] = fp8e4m3_f32(f32_bits(p3[t]));", E4M3},
      {"e5m2", "p0[t] = u32_bits(f32_fp8e5m2((u8)p1[t])); p0[32 + t] = fp8e5m2_f32(f32_bits(p3[t]));", E5M2},
      {"words",
       "p0[t] = word(u16x2{(u16)p1[t], (u16)p2[t]}); p0[32 + t] = word(u8x4{(u8)p1[t], (u8)p2[t], (u8)(p1[t] "
       ">> 9), "
       "(u8)(p2[t] >> 5)}); p0[64 + t] = word(i8x4{(i8)p1[t], (i8)p2[t], (i8)(p1[t] >> 9), (i8)(p2[t] >> "
       "5)}); p0[96 + "
       "t] = word(f32_bits(p3[t]));",
       ANY},
      {"whole",
       "i32 x = (i32)p1[t], y = (i32)p2[t] | 1; u32 a = p1[t], b = p2[t] | 1; i64 w = (i64)p1[t] << 20 ^ "
       "(i64)p2[t]; "
       "p0[t] = x / y; p0[32 + t] = x % (y >> 16 | 1); p0[64 + t] = a / (b >> 12 | 1); p0[96 + t] = (u32)(w "
       "/ (i64)b); "
       "p0[128 + t] = (u32)((u64)w % 1000003u); p0[160 + t] = a % b; p0[192 + t] = x >> (b & 31); p0[224 "
       "+ t] = (u32)((u64)a * b >> 32);",
       ANY},
      {"floats",
       "f32 x = f32_bits(p3[t]), y = f32_bits(p3[32 + t]), z = f32_bits(p3[64 + t]); p0[t] = u32_bits(x * y "
       "+ z); p0[32 "
       "+ t] = u32_bits(x / y); p0[64 + t] = u32_bits(sqrt_f32(x * x)); p0[96 + t] = u32_bits(fma_f32(x, y, "
       "z)); p0[128 "
       "+ t] = (u32)(i32)x; p0[160 + t] = x < y || !(z <= x); p0[192 + t] = u32_bits((f32)(i32)p1[t]); "
       "p0[224 + t] = "
       "u32_bits((f32)p2[t]); p0[256 + t] = u32_bits(trunc_f32(z)); f64 d = (f64)x / (f64)y; p0[288 + t] = "
       "(u32)u64_bits(d);",
       ANY}};

  for (size_t i = 0; i < TG_COUNT(plain); i++) {
    case_begin(w, plain[i].name, plain[i].data, F32);
    str_printf(&w->text, "  %s\n}\n", plain[i].does);
  }
}

static Wrappers wrappers_made(void) {
  Wrappers w = {.n = 0};
  str_init(&w.text, &mem);
  for (int i = 0; i < MATRIX_COUNT; i++)
    if (matrix_shapes[i].maker == MATRIX_CUDA && !matrix_in_shared(&matrix_shapes[i]))
      product_case(&w, &matrix_shapes[i]);
  for (int words = 1; words <= 4; words *= 2)
    rows_case(&w, words, ""), rows_case(&w, words, "_trans");
  for (int nbytes = 4; nbytes <= 16; nbytes *= 2)
    copy_case(&w, nbytes);
  plain_cases(&w);
  return w;
}

/* Numbers that are neither NaN nor infinite, of which an exact sum of products is within f64. */
static uint32_t word_of(Data kind) {
  uint32_t word = 0;
  float f = (float)((int)(draw() % 20001) - 10000) / 64;
  static const DType types[] = {[F16] = DT_F16, [BF16] = DT_BF16, [E4M3] = DT_FP8E4M3, [E5M2] = DT_FP8E5M2};
  switch (kind) {
  case ANY: return draw();
  case ROWS: return draw() >> 8;
  case F32: memcpy(&word, &f, sizeof word); return word;
  case TF32: memcpy(&word, &f, sizeof word); return word & 0xffffe000u;
  default:
    for (size_t at = 0, each = dtype_size(types[kind]); at < sizeof word; at += each)
      scalar_store(types[kind], (Scalar){.f = ((int)(draw() % 513) - 256) / 32.}, (char *)&word + at);
    return word;
  }
}

static void inputs_made(const Case *c, uint32_t in[3][WORDS]) {
  for (int i = 0; i < WORDS; i++)
    in[0][i] = word_of(c->data), in[1][i] = word_of(c->data), in[2][i] = word_of(c->third);
}

static void by_emulator(Emu *e, EmuModule *m, const Case *c, uint32_t in[3][WORDS], uint32_t *out) {
  TgError err = {0};
  void *at[4], *params[4];
  char name[80];
  snprintf(name, sizeof name, "w_%s", c->name);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(emu_alloc(e, WORDS * 4, &err, &at[i]), TG_OK);
    params[i] = &at[i];
    if (i) assert_int_equal(emu_write(e, at[i], in[i - 1], WORDS * 4, &err), TG_OK);
  }
  emu_fill(e, at[0], 0, WORDS * 4, &err);
  if (emu_launch(e, emu_kernel(m, name), (uint32_t[]){1, 1, 1}, (uint32_t[]){LANES, 1, 1}, 0, params, &err))
    fail_msg("%s, emulated: %s", c->name, err.msg);
  assert_int_equal(emu_read(e, out, at[0], WORDS * 4, &err), TG_OK);
  for (int i = 0; i < 4; i++)
    emu_release(e, at[i], &err);
}

/* False: why says what does not run. */
static bool by_ptx(const char *ptx, const Case *c, uint32_t in[3][WORDS], uint32_t *out, char why[PTX_WHY]) {
  PtxKernel k;
  char name[80];
  snprintf(name, sizeof name, "w_%s", c->name);
  memset(out, 0, WORDS * 4);
  if (!ptx_read(ptx, name, &k, why)) return false;
  const uint64_t params[] = {(uintptr_t)out, (uintptr_t)in[0], (uintptr_t)in[1], (uintptr_t)in[2]};
  PtxLaunch l = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}, .params = params, .nmemory = 4};
  for (int i = 0; i < 4; i++)
    l.memory[i] = (PtxMemory){(void *)(uintptr_t)params[i], WORDS * 4};
  bool ok = ptx_run(&k, &l, why);
  ptx_free(&k);
  return ok;
}

/* How many functions differ between the two; told: print which. */
static int differences(const Wrappers *w, const char *ptx, const char *arch, EmuModule *m, Emu *e,
                       bool told) {
  enum { ROUNDS = 8 };

  static uint32_t in[3][WORDS], want[WORDS], got[WORDS];
  int bad = 0;
  for (int i = 0; i < w->n; i++)
    for (int round = 0; round < ROUNDS && w->at[i].since <= atoi(arch); round++) {
      char why[PTX_WHY] = "other values";
      inputs_made(&w->at[i], in);
      by_emulator(e, m, &w->at[i], in, want);
      bool ran = by_ptx(ptx, &w->at[i], in, got, why);
      if (ran && !memcmp(got, want, sizeof got)) continue;
      int at = 0;
      while (ran && at < WORDS - 1 && got[at] == want[at])
        at++;
      if (told) print_error("%s: %s (word %d: %08x, not %08x)\n", w->at[i].name, why, at, got[at], want[at]);
      bad++;
      break;
    }
  return bad;
}

typedef struct Seed {
  const char *what, *had, *wrong;
} Seed;

static const Seed seeds[] = {
    {"rows that are turned are not", "ldmatrix.sync.aligned.m8n8.x2.trans.shared",
     "ldmatrix.sync.aligned.m8n8.x2.shared"},
    {"rows are turned that are not", "ldmatrix.sync.aligned.m8n8.x4.shared",
     "ldmatrix.sync.aligned.m8n8.x4.trans.shared"},
    {"words of rows exchanged", "x4.shared.b16 {%0, %1, %2, %3}", "x4.shared.b16 {%0, %2, %1, %3}"},
    {"the words of a exchanged", "f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}",
     "f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %6, %5, %7}"},
    {"the words of b exchanged", "{%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};\" : \"=r\"",
     "{%4, %5, %6, %7}, {%9, %8}, {%10, %11, %12, %13};\" : \"=r\""},
    {"the sum exchanged", "f32.bf16.bf16.f32 {%0, %1, %2, %3}", "f32.bf16.bf16.f32 {%0, %2, %1, %3}"},
    {"the sum is not added to", "\"f\"(c[3])", "\"f\"(c[2])"},
    {"e5m2 for e4m3", "f32.e4m3.e4m3.f32", "f32.e5m2.e5m2.f32"},
    {"bf16 for f16", "m16n8k16.row.col.f32.f16.f16.f32", "m16n8k16.row.col.f32.bf16.bf16.f32"},
    {"no sign", "s32.s8.s8.s32", "s32.u8.u8.s32"},
    {"a copy of 4 bytes for 8", "COPY(8, ca)",
     "INL void tg_copy_async_8(void *to, const void *from) { tg_copy_async_4(to, from); }"},
    {"a copy the wrong way",
     "[%0], [%1], \" #N \";\" :: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"(from)",
     "[%0], [%1], \" #N \";\" :: \"r\"((u32)__cvta_generic_to_shared(to)), \"l\"((const char *)from + 4 * (N "
     "< 16))"},
    {"copies are not waited for", "cp.async.wait_all;", ""},
    {"two groups of copies are left", "cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 2;"}};

static char *replaced(const char *text, const char *had, const char *wrong) {
  const char *at = strstr(text, had);
  if (!at) fail_msg("the prelude has no %s", had);
  char *now = calloc(strlen(text) + strlen(wrong) + 1, 1);
  assert_non_null(now);
  sprintf(now, "%.*s%s%s", (int)(at - text), text, wrong, at + strlen(had));
  return now;
}

static void functions_are_the_emulators(void **state) {
  (void)state;
  needs_nvrtc();
  TgError err = {0};
  TgEnv env;
  Blob object = {0};
  EmuModule *m = NULL;
  Wrappers w = wrappers_made();
  Str all;
  str_init(&all, &mem);
  renderer_cuda.prelude(&all);
  str_put(&all, str_text(&w.text));
  assert_false(all.oom);
  bool known = !env_read(&env, &err) && !compiler_find(&tg_os_default, &env, &err, &cc) &&
               !compiler_identify(&mem, &tg_os_default, &err, &cc, 60);
  Emu *e = emu_new(&mem, &tg_os_default);
  assert_non_null(e);
  if (!known ||
      emu_compile(&mem, &tg_os_default, &err, &cc, &emu_dialect_cuda, str_text(&all), 60, &object) ||
      emu_load(e, object.at, object.nbytes, &err, &m))
    fail_msg("%s", err.msg);
  mem_free(&mem, object.at);
  for (size_t a = 0; a < TG_COUNT(archs); a++) {
    char *ptx = ptx_of(str_text(&all), archs[a]);
    assert_non_null(ptx);
    assert_int_equal(differences(&w, ptx, archs[a], m, e, true), 0);
    free(ptx);
  }
  int missed = 0;
  for (size_t i = 0; i < TG_COUNT(seeds); i++) {
    char *text = replaced(str_text(&all), seeds[i].had, seeds[i].wrong);
    char *wrong = ptx_of(text, archs[1]);
    if (wrong && !differences(&w, wrong, archs[1], m, e, false))
      print_error("not seen: %s\n", seeds[i].what), missed++;
    free(text), free(wrong);
  }
  assert_int_equal(missed, 0);
  emu_free(e);
  str_free(&all), str_free(&w.text);
}

/* ---- whole kernels, against INTERP */
typedef struct Kept {
  char *text, name[96];
  PtxLaunch launch;
  int kernels;
} Kept;

static void kernel_kept(const TgKernelText *k, void *user) {
  Kept *kept = user;
  kept->kernels++;
  free(kept->text);
  kept->text = strdup(k->source);
  snprintf(kept->name, sizeof kept->name, "%s", k->name);
  for (int i = 0; i < 3; i++)
    kept->launch.grid[i] = (uint32_t)k->grid[i], kept->launch.block[i] = (uint32_t)k->block[i];
}

typedef struct Whole {
  const char *name, *opts;
  TgDType dtype;      /* of the operands */
  int64_t x[2], y[2]; /* y: 0, there is none */
  double error;       /* relative; 0: the same bits */
  TgTensor *(*make)(TgTensor *x, TgTensor *y);
} Whole;

static TgTensor *product(TgTensor *x, TgTensor *y) {
  bool whole = tg_dtype(x) == TG_I8;
  return tg_matmul(x, y, .dtype = whole ? TG_I32 : TG_F32);
}

static TgTensor *soft(TgTensor *x, TgTensor *y) { return (void)y, tg_softmax(x); }

static TgTensor *total(TgTensor *x, TgTensor *y) { return (void)y, tg_sum(x, .axis = TG_AXES(1)); }

static TgTensor *largest(TgTensor *x, TgTensor *y) { return (void)y, tg_max(x, .axis = TG_AXES(1)); }

static TgTensor *mixed(TgTensor *x, TgTensor *y) { return tg_add(tg_mul(x, y), tg_sqrt(tg_mul(x, x))); }

static TgTensor *running(TgTensor *x, TgTensor *y) { return (void)y, tg_cumsum(x, 1); }

static const Whole wholes[] = {
    {"f32 product", NULL, TG_F32, {64, 64}, {64, 64}, 0, product},
    {"f32 product, odd", NULL, TG_F32, {37, 50}, {50, 29}, 0, product},
    {"f16 product", NULL, TG_F16, {128, 128}, {128, 128}, 0, product},
    {"bf16 product", NULL, TG_BF16, {128, 96}, {96, 128}, 0, product},
    {"f16 product, odd", NULL, TG_F16, {120, 134}, {134, 136}, 0, product},
    {"i8 product", NULL, TG_I8, {64, 64}, {64, 64}, 0, product},
    {"fp8 product by way of f16", NULL, TG_FP8E4M3, {128, 128}, {128, 128}, 0, product},
    {"f16 product, two copies",
     "TILE r0 32, TILE r1 32, TILE r2 32, STAGE p1, STAGE p2, TC r0 r1, DOUBLE_BUFFER r2 2",
     TG_F16,
     {64, 128},
     {128, 64},
     0,
     product},
    {"f32 product in more shared memory",
     "TILE r0 64, TILE r1 64, TILE r2 128, STAGE p1, STAGE p2, LOCAL r0 16, LOCAL r1 16",
     TG_F32,
     {128, 128},
     {128, 128},
     0,
     product},
    {"softmax", NULL, TG_F32, {8, 300}, {0, 0}, 1e-5, soft},
    {"sum of rows", NULL, TG_F32, {16, 1000}, {0, 0}, 1e-6, total},
    {"largest of rows", NULL, TG_F16, {16, 500}, {0, 0}, 0, largest},
    {"elementwise", NULL, TG_F32, {33, 65}, {33, 65}, 0, mixed},
    {"elementwise f16", NULL, TG_F16, {33, 65}, {33, 65}, 0, mixed},
    {"running sums", NULL, TG_I32, {8, 256}, {0, 0}, 0, running}};

static TgContext *open_on(const char *device, const char *opts) {
  if (opts) setenv("TG_OPTS", opts, 1);
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
  unsetenv("TG_OPTS");
  if (tg_error(ctx)) fail_msg("%s", tg_errmsg(ctx));
  return ctx;
}

static TgTensor *input_of(TgContext *ctx, const Whole *w, const int64_t *d, int salt) {
  int64_t n = d[0] * d[1];
  double *v = malloc(sizeof *v * (size_t)n);
  assert_non_null(v);
  for (int64_t i = 0; i < n; i++)
    v[i] = (double)((i * 7919 + salt * 31) % 13 - 6);
  TgTensor *t = tg_from_f64(ctx, v, w->dtype, 2, d);
  free(v);
  if (tg_realize(t)) fail_msg("%s", tg_errmsg(ctx));
  return t;
}

/* The result of a program on INTERP, and its inputs as they lie in memory. */
static size_t by_interp(const Whole *w, void *in[2], size_t nin[2], char **want) {
  TgContext *ctx = open_on("INTERP", NULL);
  TgTensor *x = input_of(ctx, w, w->x, 1), *y = w->y[0] ? input_of(ctx, w, w->y, 2) : NULL,
           *r = w->make(x, y);
  TgTensor *of[2] = {x, y};
  for (int i = 0; i < 2; i++) {
    nin[i] = of[i] ? tg_nbytes(of[i]) : 0;
    in[i] = aligned_alloc(64, (nin[i] + 127) / 64 * 64);
    assert_non_null(in[i]);
    if (of[i] && tg_read(of[i], in[i], nin[i])) fail_msg("%s", tg_errmsg(ctx));
  }
  size_t n = tg_nbytes(r);
  *want = calloc(n, 1);
  assert_non_null(*want);
  if (tg_read(r, *want, n)) fail_msg("%s: %s", w->name, tg_errmsg(ctx));
  tg_close(ctx);
  return n;
}

static Kept kernel_of(const Whole *w) {
  Kept kept = {0};
  TgContext *ctx = open_on("NULL:CUDA", w->opts);
  TgTensor *x = input_of(ctx, w, w->x, 1), *y = w->y[0] ? input_of(ctx, w, w->y, 2) : NULL;
  tg_watch_kernels(ctx, kernel_kept, &kept);
  if (tg_realize(w->make(x, y))) fail_msg("%s: %s", w->name, tg_errmsg(ctx));
  assert_int_equal(kept.kernels, 1);
  const char *prelude = tg_source_prelude(ctx);
  char *all = calloc(strlen(prelude) + strlen(kept.text) + 1, 1);
  assert_non_null(all);
  sprintf(all, "%s%s", prelude, kept.text);
  free(kept.text), kept.text = all;
  tg_close(ctx);
  return kept;
}

static bool is_near(const char *got, const char *want, size_t n, double error) {
  if (!error) return !memcmp(got, want, n);
  for (size_t at = 0; at < n; at += sizeof(float)) {
    float a, b;
    memcpy(&a, got + at, sizeof a), memcpy(&b, want + at, sizeof b);
    if (!(fabs((double)a - (double)b) <= error * fabs((double)b))) return false;
  }
  return true;
}

static bool whole_is_right(const Whole *w, const char *text, char why[PTX_WHY], size_t dynamic) {
  void *in[2];
  size_t nin[2];
  char *want;
  size_t n = by_interp(w, in, nin, &want);
  char *out = aligned_alloc(64, (n + 127) / 64 * 64), *ptx = ptx_of(text, archs[1]);
  assert_non_null(out);
  memset(out, 0xcd, n);
  Kept kept = kernel_of(w);
  const uint64_t params[] = {(uintptr_t)out, (uintptr_t)in[0], (uintptr_t)in[1]};
  PtxLaunch l = kept.launch;
  l.params = params, l.nmemory = 3, l.dynamic = dynamic;
  l.memory[0] = (PtxMemory){out, n};
  for (int i = 0; i < 2; i++)
    l.memory[1 + i] = (PtxMemory){in[i], nin[i]};
  PtxKernel k;
  snprintf(why, PTX_WHY, "other values");
  bool ok = ptx && ptx_read(ptx, kept.name, &k, why);
  if (ok) {
    ok = ptx_run(&k, &l, why) && is_near(out, want, n, w->error);
    ptx_free(&k);
  }
  free(kept.text), free(ptx), free(out), free(want), free(in[0]), free(in[1]);
  return ok;
}

static void kernels_are_interps(void **state) {
  (void)state;
  needs_nvrtc();
  int bad = 0, units = 0, launched = 0;
  for (size_t i = 0; i < TG_COUNT(wholes); i++) {
    char why[PTX_WHY];
    Kept kept = kernel_of(&wholes[i]);
    bool more = strstr(kept.text, "launch_local + ") != NULL;
    if (!whole_is_right(&wholes[i], kept.text, why, more ? 65 << 10 : 0))
      print_error("%s (%s): %s\n", wholes[i].name, kept.name, why), bad++;
    units += strstr(kept.text, "; tg_mma_") != NULL, launched += more;
    free(kept.text);
  }
  assert_int_equal(bad, 0);
  assert_true(units >= 5 && launched == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_are_the_emulators),
                                     cmocka_unit_test(kernels_are_interps)};
  TgError err = {0};
  CudaApi *api = &rtc;
  if (nvrtc_load(&tg_os_default, &err, NVRTC_ANY, &library, api)) library = NULL;
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  if (library) tg_os_default.library_close(library);
  return rc;
}
