/* matrix.h: what matrix units compute, and which thread of a warp has which elements. In: the number of a row
 * of the table. Out: c + a b, of m x k and k x n. Each operand is distributed to 32 threads as fragments. On
 * a CPU, where one core has the unit to itself, all three are in memory instead (matrix_in_memory).
 *
 * The key fact: a place in an operand is a sum over the bits of two numbers, the thread's number in its warp
 * and the element's number in its fragment. Each bit adds a fixed number of rows and columns. So a map is two
 * short lists, and any vendor's unit is a row of the table. */
#ifndef TG_MATRIX_H
#define TG_MATRIX_H
#include "base/processor.h"
#include "uop/uop.h"

/* bytes of a FRAGMENT's word, and of a row that it is made of */
enum { MATRIX_WORD_BYTES = 4, MATRIX_ROW_BYTES = 16 };

enum { MATRIX_THREADS = 32, MATRIX_THREAD_BITS = 7, MATRIX_ELEMENT_BITS = 4 };

/* Layout of an operand of 16-bit elements in shared memory: a line is 8 chunks of 16 bytes, and the order of
 * the chunks repeats after 8 lines. */
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
  /* elements that form one vector: neighbours; of the result, all of them; in memory, steps of k that are
   * side by side */
  uint8_t together;
  bool turned; /* in shared memory: neighbours are along a row or column of the result, not along k */
  /* the rows and columns that each bit adds */
  MatrixPlace thread[MATRIX_THREAD_BITS], element[MATRIX_ELEMENT_BITS];
} MatrixOperand;

/* For operands in memory: the most rows and columns of a block, which are the results that a core computes at
 * a time. A matrix of few rows or few columns has thin blocks, which are longer the other way. */
typedef struct MatrixBlocks {
  int16_t most[2], few[2], thin[2]; /* rows, columns */
} MatrixBlocks;

/* The vendor of a unit. Rows of one vendor differ in how new the unit must be. */
typedef enum MatrixMaker { MATRIX_CUDA, MATRIX_METAL, MATRIX_AMX, MATRIX_DOT } MatrixMaker;

typedef struct MatrixShape {
  char name[24]; /* m16n8k16_f16_f32 */
  MatrixMaker maker;
  /* CUDA: the first and last capability that accept the instruction but multiply by way of f16 */
  int16_t gap[2];
  /* CUDA: compute capability, 80 for 8.0; METAL: Apple's GPU family; AMX: AMX_FIRST; DOT: Dots */
  int16_t since;
  int16_t until;   /* CUDA: the last capability that has the instruction; 0: all later ones have it */
  int16_t threads; /* threads that compute together: 1, or those of one warp or of four */
  bool narrowed;   /* operands are first rounded to ten bits of mantissa: to nearest, ties away from zero */
  /* the row that computes this product after the sign bits of a are flipped; its result is too large by that
   * of a row of flipped zeros; 0: this row computes it itself */
  int16_t flipped;
  int16_t m, n, k;
  MatrixOperand operand[MATRIX_ROLES];
  MatrixBlocks blocks; /* if operands are in memory */
  /* cycles of a step m x n x k with operands in L2; cycles until a result can be added to again */
  float cycles, wait;
} MatrixShape;

/* AMX_FIRST has products of bf16 and of 8 bits, which were introduced together */
enum { AMX_NONE, AMX_FIRST };

/* CUDA's mma.sync (PTX ISA, "Matrix fragments"): 16 x 8 results; 256 bits of k at full width, 128 at half
 * width. MMA(name, since, dtype of a and b, of c, width of k: FULL or HALF, elements in a word, gap). fp8:
 * sm_89, 120 and 121 multiply it. For 90 to 110, ptxas emits 896 bytes of conversions and products of f16,
 * where it emits 640 bytes for the former.
 * CUDA's wgmma, of sm_90a only: four warps have 64 x 8 results, warp w the rows from 16 w on. One instruction
 * may compute several of these side by side. Operands are in shared memory. GROUP(name, since, dtype of a and
 * b, whether a is turned, whether b is).
 * Metal's simdgroup_matrix: all three matrices are 8 x 8. SIMD(name, since, dtype of a and b, of c).
 * AMX of x86-64: 16 x 16 results, rows of 64 bytes. TILE(name, since, dtype of a, of b, of c, k, steps of k
 * in 32 bits).
 * Dot products of AVX-512: a word of a row of a times the words of 16 columns. Of two factors of a byte, one
 * must be signed and the other unsigned. Two of the same kind are an additional row, with a's sign bits
 * flipped. DOT(name, since, dtype of a, of b, of c, steps of k in 32 bits, cycles of a step, cycles until a
 * sum can be added to, flipped). AVX2 multiplies words of two 16-bit factors: 8-bit factors are widened.
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

/* Whether operands are in memory: a as rows that are a pitch apart, b as panels of n columns with the layout
 * [k / together][n][together], the result as rows. */
static inline bool matrix_in_memory(const MatrixShape *s) { return s->threads == 1; }

/* Whether a and b are in shared memory of a block, and only the sum is in fragments. An operand is then a
 * sequence of lines of 128 bytes, whose 16-byte chunks are permuted: chunk i of line l is at position i xor
 * (l % 8). If an operand is turned, a line is 64 of its rows or columns and 64 lines are 64 steps of k.
 * Further rows or columns are in further blocks of 64 lines. */
static inline bool matrix_in_shared(const MatrixShape *s) {
  return s->threads > 1 && !s->operand[MATRIX_A].elements;
}

/* Whether a thread can convert a value of dtype d to an operand without loss, as it does from fp8 to f16. */
bool matrix_widens(const MatrixShape *s, MatrixRole role, DType d);

/* For a unit with operands in memory: the rows *m and columns *n of a block of a result of rows x columns.
 * The last blocks may have fewer. */
void matrix_block(const MatrixShape *s, int64_t rows, int64_t columns, int64_t *m, int64_t *n);

/* Cycles of one core for rows x columns results of `depth` steps, with operands in L2. */
double matrix_cycles(const MatrixShape *s, double rows, double columns, double depth);

/* The row and column of an element of a thread's fragment. */
MatrixPlace matrix_place(const MatrixOperand *o, int thread, int element);

/* For an operand in shared memory: the offset of the element in row or column `at` of the result and `deep`
 * steps along k, from the start of the memory. begin: the offset of the step's first element. */
int64_t matrix_in_lines(const MatrixOperand *o, int64_t begin, int at, int deep);

/* The rows, as bits, of the instructions that a unit of this vendor and age has and computes itself. */
uint32_t matrix_rows(MatrixMaker maker, int age);

/* Computes d = c + a b for a warp, with each product exact and each sum rounded once. at: returns the
 * caller's storage of an element of a thread's fragment. */
typedef Scalar *(*MatrixAt)(void *ctx, MatrixRole role, int thread, int element);
void matrix_multiply(const MatrixShape *s, MatrixAt at, void *ctx);
#endif
