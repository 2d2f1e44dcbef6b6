/* dots.c: blocks of products computed by dot products of vectors, in GNU C. In: a STORE of a WMMA whose
 * operands are in memory (matrix.h), for a unit that multiplies a word of a row of a by the words of 16
 * columns. Out: a call of a function that is written in front of the kernel. It computes as many vectors of
 * columns as a tile has, and below each other tiles of rows, whose results stay in registers through all
 * steps.
 *
 * The instructions are inline assembly, because each compiler has other names and types for its builtins. A
 * compiler without this processor's instructions uses plain vectors, with the same results except for the
 * order of a sum. */
#include "renderer/cstyle_private.h"
#include "uop/matrix.h"

/* Vector registers; for pairs of 16 bits as many as AVX2 allows; words of a vector. */
enum { REGISTERS = 32, REGISTERS_OF_PAIRS = 8, LANES = 16 };

enum { VECTORS = 2, MOST_VECTORS = 4 }; /* vectors of columns in a tile of many rows; in a tile of few rows */

static const char begin[] =
    "typedef i32 dots_t __attribute__((vector_size(64)));\n"
    "typedef i32 dots_at __attribute__((vector_size(64), aligned(4), may_alias));\n"
    "typedef i32 dots_word __attribute__((aligned(1), may_alias));\n"
    "#define DOTS_ALL(X) ((dots_t){0} + (X))\n"
    "#define DOTS_BYTE(X, I) (((X) << (24 - 8 * (I))) >> 24)\n"
    "#define DOTS_BYTES(A, B, I) (DOTS_BYTE(A, I) & 255) * DOTS_BYTE(B, I)\n"
    "#ifdef __AVX512VNNI__\n"
    "#define DOTS_US(C, A, B) __asm__(\"vpdpbusd %2, %1, %0\" : \"+v\"(C) : \"v\"(A), \"v\"(B))\n"
    "#else\n"
    "typedef u32 dots_u32 __attribute__((vector_size(64)));\n"
    "#define DOTS_FOUR(A, B) (DOTS_BYTES(A, B, 0) + DOTS_BYTES(A, B, 1) + DOTS_BYTES(A, B, 2) + "
    "DOTS_BYTES(A, B, 3))\n"
    "#define DOTS_US(C, A, B) (C = (dots_t)((dots_u32)C + (dots_u32)DOTS_FOUR(A, B)))\n"
    "#endif\n"
    "#define DOTS_SU(C, A, B) DOTS_US(C, B, A)\n"
    "#ifdef __AVX512BF16__\n"
    "#define DOTS_BF16(C, A, B) __asm__(\"vdpbf16ps %2, %1, %0\" : \"+v\"(C) : \"v\"(A), \"v\"(B))\n"
    "#else\n"
    "typedef f32 dots_f32 __attribute__((vector_size(64)));\n"
    "#define DOTS_HALF(A, B, PART) (dots_f32)(A PART) * (dots_f32)(B PART)\n"
    "#define DOTS_BF16(C, A, B) (C = (dots_t)((dots_f32)C + DOTS_HALF(A, B, & -65536) + DOTS_HALF(A, B, << "
    "16)))\n"
    "#endif";

/* Pairs of 16 bits: an AVX2 register holds half a vector. */
static const char begin_pairs[] =
    "#if defined(__AVX2__) && !defined(__AVX512VNNI__)\n"
    "typedef u32 pairs_half __attribute__((vector_size(32)));\n"
    "typedef i16 pairs_words __attribute__((vector_size(32)));\n"
    "typedef struct { pairs_half v[2]; } pairs_t;\n"
    "typedef pairs_t pairs_at __attribute__((aligned(4), may_alias));\n"
    "#define PAIRS_ALL(X) ((pairs_t){{(pairs_half){0} + (u32)(X), (pairs_half){0} + (u32)(X)}})\n"
    "INL void pairs_add(pairs_half *c, pairs_half a, pairs_half b) {\n  pairs_half t;\n"
    "  __asm__(\"vpmaddwd %3, %2, %1\\n\\tvpaddd %1, %0, %0\" : \"+x\"(*c), \"=&x\"(t) : \"x\"(a), "
    "\"x\"(b));\n}\n"
    "#define PAIRS_I16(C, A, B) (pairs_add(&C.v[0], A.v[0], B.v[0]), pairs_add(&C.v[1], A.v[1], B.v[1]))\n"
    "#else\n"
    "typedef u32 pairs_t __attribute__((vector_size(64)));\n"
    "typedef u32 pairs_at __attribute__((vector_size(64), aligned(4), may_alias));\n"
    "#define PAIRS_ALL(X) ((pairs_t){0} + (u32)(X))\n"
    "#ifdef __AVX512VNNI__\n"
    "#define PAIRS_I16(C, A, B) __asm__(\"vpdpwssd %2, %1, %0\" : \"+v\"(C) : \"v\"(A), \"v\"(B))\n"
    "#else\n"
    "typedef i32 pairs_signed __attribute__((vector_size(64)));\n"
    "#define PAIRS_LOW(X) (pairs_t)((pairs_signed)((X) << 16) >> 16)\n"
    "#define PAIRS_HIGH(X) (pairs_t)((pairs_signed)(X) >> 16)\n"
    "#define PAIRS_I16(C, A, B) (C += PAIRS_LOW(A) * PAIRS_LOW(B) + PAIRS_HIGH(A) * PAIRS_HIGH(B))\n"
    "#endif\n#endif\n"
    "typedef i32 pairs_word __attribute__((aligned(1), may_alias));";

static bool of_pairs(const MatrixShape *s) { return s->operand[MATRIX_A].dtype == DT_I16; }

/* The instruction for the dtypes of the panels of a and b. */
static const char *instruction(const MatrixShape *s) {
  DType a = s->operand[MATRIX_A].dtype;
  if (a == DT_BF16) return "DOTS_BF16";
  return of_pairs(s) ? "PAIRS_I16" : a == DT_U8 ? "DOTS_US" : "DOTS_SU";
}

/* The most rows of a tile. Besides results, the registers hold a row of b and a word of a. */
static int most_rows(const MatrixShape *s, int vectors) {
  return ((of_pairs(s) ? REGISTERS_OF_PAIRS : REGISTERS) - 1 - vectors) / vectors;
}

static int vectors_for(const MatrixShape *s, int rows, int left) {
  int n = MOST_VECTORS, least = of_pairs(s) ? 1 : VECTORS;
  while (n > least && most_rows(s, n) < rows)
    n -= of_pairs(s) ? 1 : 2;
  return TG_MIN(n, left);
}

typedef struct Tile {
  const MatrixShape *s;
  const char *a, *b, *type; /* C types of elements of a, of b, of results */
  int rows, vectors;
  int pitch; /* elements from one row of results to the next */
} Tile;

static const char *name_of(C *c, const Tile *t) {
  return cs_text(c, "dots_%s_tile_%dx%d_%d_%s", t->s->name, t->rows, t->vectors, t->pitch, t->type);
}

/* Defines the function of a tile. It addresses its rows from the first one, because the pitch is a constant
 * at each call. */
static const char *tile(C *c, const Tile *t) {
  Str text, *out = &text;
  str_init(out, c->body.mem);
  const MatrixShape *s = t->s;
  const char *name = name_of(c, t), *none[26] = {NULL};
  const char *kind = of_pairs(s) ? "pairs" : "dots", *all = of_pairs(s) ? "PAIRS_ALL" : "DOTS_ALL";
  cs_fmt(out, "INL void %s(%s *to, const %s *a, i64 pitch, const %s *b, i64 panel, ", name, t->type, t->a,
         t->b);
  cs_fmt(out, "i64 steps) {\n");
  for (int i = 0; i < t->rows * t->vectors; i++)
    cs_fmt(out, "  %s_t c%d = {0};\n", kind, i);
  cs_fmt(out, "  for (i64 k = 0; k < steps; k += %d, a += %d, b += %d) {\n    %s_t x;\n", s->k, s->k,
         s->k * s->n, kind);
  for (int v = 0; v < t->vectors; v++)
    cs_fmt(out, "    %s_t b%d = *(const %s_at *)(b + %d * panel);\n", kind, v, kind, v);
  for (int r = 0; r < t->rows; r++) {
    cs_fmt(out, "    x = %s(*(const %s_word *)(a + %d * pitch));\n", all, kind, r);
    for (int v = 0; v < t->vectors; v++)
      cs_fmt(out, "    %s(c%d, x, b%d);\n", instruction(s), r * t->vectors + v, v);
  }
  cs_fmt(out, "  }\n");
  for (int i = 0; i < t->rows * t->vectors; i++)
    cs_fmt(out, "  *(%s_at *)(to + %d) = c%d;\n", kind, i / t->vectors * t->pitch + i % t->vectors * LANES,
           i);
  cs_fmt(out, "}");
  cs_helper(c, name, str_text(out), none, 0);
  if (out->oom) c->body.oom = true;
  str_free(out);
  return name;
}

/* Appends calls for tiles of all rows. They have two heights, which differ by at most one. */
static void columns(C *c, Str *out, Tile *t, int rows) {
  int most = most_rows(t->s, t->vectors), tiles = (rows + most - 1) / most, high = rows % tiles, i = 0;
  for (int part = 0; part < 2; part++) {
    int n = part ? tiles - high : high;
    t->rows = rows / tiles + !part;
    if (!n) continue;
    const char *name = tile(c, t);
    cs_fmt(out, "  for (i64 i = 0; i < %d; i++)\n", n);
    cs_fmt(out, "    %s(to + (%d + i * %d) * %d, a + (%d + i * %d) * pitch, pitch, ", name, i, t->rows,
           t->pitch, i, t->rows);
    cs_fmt(out, "b, panel, steps);\n");
    i += n * t->rows;
  }
  cs_fmt(out, "  to += %d, b += %d * panel;\n", t->vectors * LANES, t->vectors);
}

void cs_dots(C *c, const UOp *store) {
  const UOp *u = store->src[1], *to = uop_base(store->src[0]);
  const MatrixShape *s = &matrix_shapes[u->arg.i];
  int rows = (int)u->src[2]->arg.v.i, pitch = (int)u->src[3]->arg.v.i;
  if (to->op != OPS_INDEX || to->arg.i) {
    cs_fail(c, store, "no block of results");
    return;
  }
  Tile t = {.s = s,
            .a = cs_stored(s->operand[MATRIX_A].dtype),
            .b = cs_stored(s->operand[MATRIX_B].dtype),
            .type = cs_stored((DType)u->dtype),
            .pitch = pitch};
  const char *name = cs_text(c, "dots_%s_%dx%d_%s", s->name, rows, pitch, t.type), *none[26] = {NULL};
  cs_helper(c, of_pairs(s) ? "pairs" : "dots", of_pairs(s) ? begin_pairs : begin, none, 0);
  Str text;
  str_init(&text, c->body.mem);
  cs_fmt(&text, "INL void %s(%s *to, const %s *a, i64 pitch, const %s *b, i64 panel, i64 steps) {\n", name,
         t.type, t.a, t.b);
  for (int left = pitch / LANES; left > 0; left -= t.vectors) {
    t.vectors = vectors_for(s, rows, left);
    columns(c, &text, &t, rows);
  }
  cs_fmt(&text, "}");
  cs_helper(c, name, str_text(&text), none, 0);
  if (text.oom) c->body.oom = true;
  str_free(&text);
  cs_block_call(c, name, store);
}
