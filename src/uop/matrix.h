/* matrix.h: what matrix units compute, and which thread of a warp has which elements. In: the number of a
 * row. Out: c + a b, of m x k and k x n, with each operand distributed to 32 threads as fragments; or, on a
 * CPU, where one core has the unit alone, with all three in memory (matrix_in_memory).
 *
 * The key fact: a place is a sum over the bits of two numbers, the thread's in its warp and the element's in
 * its fragment. Each bit adds so many rows and columns, so a map is two short lists and any map of any
 * maker's unit is a row of the table. */
#ifndef TG_MATRIX_H
#define TG_MATRIX_H
#include "base/processor.h"
#include "uop/uop.h"

enum { MATRIX_WORD_BYTES = 4, MATRIX_ROW_BYTES = 16 }; /* of a FRAGMENT, and of a row that it is made of */

enum { MATRIX_THREADS = 32, MATRIX_THREAD_BITS = 7, MATRIX_ELEMENT_BITS = 4 };

/* Of an operand in shared memory: so many times 16 bytes are a line, of elements of 16 bits, and after so many
 * lines the order of their 16 bytes comes again. */
enum {
  MATRIX_LINE_CHUNKS = 8,
  MATRIX_LINES = 8,
  MATRIX_LINE_ELEMENTS = MATRIX_ROW_BYTES / 2 * MATRIX_LINE_CHUNKS
};

typedef enum MatrixRole { MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_ROLES } MatrixRole;

typedef struct MatrixPlace {
  int8_t row, column;
} MatrixPlace;

typedef struct MatrixOperand {
  uint8_t dtype; /* a DType */
  uint8_t rows, columns;
  uint8_t elements; /* of a thread's fragment; 0: the operand is read from memory */
  uint8_t
      together; /* elements that are one vector: neighbours, for the result all; in memory: steps of k side
                     by side */
  bool turned;  /* in shared memory: neighbours are of the result, not along k */
  MatrixPlace thread[MATRIX_THREAD_BITS], element[MATRIX_ELEMENT_BITS]; /* what each bit adds */
} MatrixOperand;

/* In memory: the most rows and columns of a block, the results that a core computes at a time; a matrix of
 * few rows or few columns has thin ones, which are longer the other way. */
typedef struct MatrixBlocks {
  int16_t most[2], few[2], thin[2]; /* rows, columns */
} MatrixBlocks;

/* Whose units they are: rows of one maker are told apart by how new the unit must be. */
typedef enum MatrixMaker { MATRIX_CUDA, MATRIX_METAL, MATRIX_AMX, MATRIX_DOT } MatrixMaker;

typedef struct MatrixShape {
  char name[24]; /* m16n8k16_f16_f32 */
  MatrixMaker maker;
  int16_t gap[2]; /* CUDA: the first and the last that takes the instruction and multiplies by way of f16 */
  int16_t
      since; /* CUDA: compute capability, 80 for 8.0; METAL: Apple's GPU family; AMX: AMX_FIRST; DOT: Dots */
  int16_t until;   /* CUDA: the last that has the instruction; 0: all later ones do */
  int16_t threads; /* that compute together: 1, those of a warp or of four */
  bool narrowed;   /* operands lose all but ten bits of their mantissa first: nearest, ties away from zero */
  int16_t flipped; /* the row that computes it once the sign bits of a are flipped: too much, by what a row of
                    flipped zeros gives; 0: this row does */
  int16_t m, n, k;
  MatrixOperand operand[MATRIX_ROLES];
  MatrixBlocks blocks; /* in memory: */
  float cycles, wait;  /* of a step m x n x k, operands at hand in L2; until a result can be added to again */
} MatrixShape;

enum { AMX_NONE, AMX_FIRST }; /* the second has products of bf16 and of 8 bits, which came together */

/* CUDA's mma.sync (PTX ISA, "Matrix fragments"): 16 x 8 results, 256 bits of k for the whole width, 128 for
 * half of it. MMA(name, since, dtype of a and b, of c, width of k: FULL or HALF, elements in a word, gap).
 * fp8: sm_89, 120 and 121 multiply it; for 90 to 110 ptxas makes 896 bytes of conversions and products of f16
 * of what is 640 bytes for those.
 * CUDA's wgmma, of sm_90a alone: four warps have 64 x 8 results, warp w rows 16 w and on, or several such side
 * by side by one instruction; operands are shared memory. GROUP(name, since, dtype of a and b, whether a is
 * turned, whether b is).
 * Metal's simdgroup_matrix: 8 x 8 of all three. SIMD(name, since, dtype of a and b, of c).
 * AMX of x86-64: 16 x 16 results, rows of 64 bytes. TILE(name, since, dtype of a, of b, of c, k, steps of k
 * in 32 bits).
 * Dot products of AVX-512: a word of a row of a by the words of 16 columns. One factor of a byte has a sign
 * and the other has none: two that are alike are one row more, with a's sign bits flipped. DOT(name, since,
 * dtype of a, of b, of c, steps of k in 32 bits, cycles of a step, cycles until a sum can be added to,
 * flipped). AVX2 multiplies words of two factors of 16 bits: factors of 8 bits are widened.
 * A build without a kind of GPU has no rows for it. */
#ifdef TG_NO_CUDA
#define MATRICES_OF_CUDA(MMA, GROUP)
#else
#define MATRICES_OF_CUDA(MMA, GROUP)                                                                         \
  MMA(m16n8k16_f16_f32, 80, F16, F32, FULL, 2, NO_GAP)                                                       \
  MMA(m16n8k16_bf16_f32, 80, BF16, F32, FULL, 2, NO_GAP)                                                     \
  MMA(m16n8k8_tf32_f32, 80, F32, F32, FULL, 1, NO_GAP)                                                       \
  MMA(m16n8k32_s8_s32, 80, I8, I32, FULL, 4, NO_GAP)                                                         \
  MMA(m16n8k32_u8_s32, 80, U8, I32, FULL, 4, NO_GAP)                                                         \
  MMA(m16n8k32_e4m3_f32, 89, FP8E4M3, F32, FULL, 4, GAP(90, 119))                                            \
  MMA(m16n8k32_e5m2_f32, 89, FP8E5M2, F32, FULL, 4, GAP(90, 119))                                            \
  MMA(m16n8k8_f16_f32, 75, F16, F32, HALF, 2, NO_GAP)                                                        \
  GROUP(m64n8k16_f16_f32, 90, F16, 0, 0)                                                                     \
  GROUP(m64n8k16_f16_f32_b, 90, F16, 0, 1)                                                                   \
  GROUP(m64n8k16_f16_f32_a, 90, F16, 1, 0)                                                                   \
  GROUP(m64n8k16_f16_f32_ab, 90, F16, 1, 1)                                                                  \
  GROUP(m64n8k16_bf16_f32, 90, BF16, 0, 0)                                                                   \
  GROUP(m64n8k16_bf16_f32_b, 90, BF16, 0, 1)                                                                 \
  GROUP(m64n8k16_bf16_f32_a, 90, BF16, 1, 0)                                                                 \
  GROUP(m64n8k16_bf16_f32_ab, 90, BF16, 1, 1)
#endif
#ifdef TG_NO_METAL
#define MATRICES_OF_METAL(SIMD)
#else
#define MATRICES_OF_METAL(SIMD)                                                                              \
  SIMD(m8n8k8_f16_f32, 7, F16, F32)                                                                          \
  SIMD(m8n8k8_f32_f32, 7, F32, F32)                                                                          \
  SIMD(m8n8k8_bf16_f32, 7, BF16, F32)
#endif
#define MATRICES(MMA, GROUP, SIMD, TILE, DOT)                                                                \
  MATRICES_OF_CUDA(MMA, GROUP)                                                                               \
  MATRICES_OF_METAL(SIMD)                                                                                    \
  TILE(m16n16k32_bf16_f32, AMX_FIRST, BF16, BF16, F32, 32, 2)                                                \
  TILE(m16n16k64_s8_s32, AMX_FIRST, I8, I8, I32, 64, 4)                                                      \
  TILE(m16n16k64_s8u8_s32, AMX_FIRST, I8, U8, I32, 64, 4)                                                    \
  TILE(m16n16k64_u8s8_s32, AMX_FIRST, U8, I8, I32, 64, 4)                                                    \
  TILE(m16n16k64_u8_s32, AMX_FIRST, U8, U8, I32, 64, 4)                                                      \
  DOT(m1n16k2_bf16_f32, DOTS_BF16, BF16, BF16, F32, 2, 0.55, 6, 0)                                           \
  DOT(m1n16k4_s8u8_s32, DOTS_BYTES, I8, U8, I32, 4, 0.55, 4, 0)                                              \
  DOT(m1n16k4_u8s8_s32, DOTS_BYTES, U8, I8, I32, 4, 0.55, 4, 0)                                              \
  DOT(m1n16k4_s8_s32, DOTS_BYTES, I8, I8, I32, 4, 0.55, 4, MATRIX_m1n16k4_u8s8_s32)                          \
  DOT(m1n16k4_u8_s32, DOTS_BYTES, U8, U8, I32, 4, 0.55, 4, MATRIX_m1n16k4_s8u8_s32)                          \
  DOT(m1n16k2_s16_s32, DOTS_PAIRS, I16, I16, I32, 2, 1.1, 1, 0)

typedef enum Matrix {

#define MATRIX(name, ...) MATRIX_##name,
  MATRICES(MATRIX, MATRIX, MATRIX, MATRIX, MATRIX)
#undef MATRIX
      MATRIX_COUNT
} Matrix;

extern const MatrixShape matrix_shapes[MATRIX_COUNT];

/* Whether operands are memory: a has rows, a pitch apart; b is panels of n columns, [k /
 * together][n][together] each; what comes of them is written as rows. */
static inline bool matrix_in_memory(const MatrixShape *s) { return s->threads == 1; }

/* Whether they are shared memory of a block, and the sum alone is in fragments. Then each is lines of 128
 * bytes, one after another, whose 16 bytes are exchanged: where those of number i stand in line l, i xor (l %
 * 8) would. Of an operand that is turned, 64 lines are its k and a line 64 of its rows or columns; more of
 * these are further blocks of 64 lines. */
static inline bool matrix_in_shared(const MatrixShape *s) {
  return s->threads > 1 && !s->operand[MATRIX_A].elements;
}

/* Whether a thread makes an operand of a value of dtype d, which loses nothing by it: fp8 becomes f16. */
bool matrix_widens(const MatrixShape *s, MatrixRole role, DType d);

/* Of a unit whose operands are memory: the rows and columns of a block of so many results, of which the last
 * ones may have fewer. */
void matrix_block(const MatrixShape *s, int64_t rows, int64_t columns, int64_t *m, int64_t *n);

/* Cycles of a core for so many results of so many steps, operands in L2. */
double matrix_cycles(const MatrixShape *s, double rows, double columns, double depth);

/* The place of an element of a thread's fragment. */
MatrixPlace matrix_place(const MatrixOperand *o, int thread, int element);

/* Of an operand in shared memory: how far from its begin, which is so far from that of the memory, an element of
 * the result's row or column `at` is, `deep` steps along k. */
int64_t matrix_in_lines(const MatrixOperand *o, int64_t begin, int at, int deep);

/* Bits of the rows that a unit of this maker and age has, and multiplies itself. */
uint32_t matrix_rows(MatrixMaker maker, int age);

/* d = c + a b for a warp, each product exact, each sum rounded once. at: the element of a thread's fragment,
 * as the caller keeps it. */
typedef Scalar *(*MatrixAt)(void *ctx, MatrixRole role, int thread, int element);
void matrix_multiply(const MatrixShape *s, MatrixAt at, void *ctx);
#endif
