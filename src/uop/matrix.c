/* matrix.c: the table of matrix units. In: matrix.h's list. Out: where each thread's elements are, and what
 * the unit computes.
 *
 * CUDA: elements are in words of 32 bits, with p elements per word. Thread 4 * g + t of a warp has, of a:
 * rows g and g + 8, columns t * p .. and, in the second half of k, 4 * p columns further; of b: the same rows
 * of k, column g; of c: rows g and g + 8, columns 2 * t and 2 * t + 1. */
#include "uop/matrix.h"
#include <math.h>
#include <string.h>

enum { HALF = 1, FULL = 2 };

enum { COLUMNS_OF_WORDS = 4 };

/* The bytes along k that the units of a core multiply per cycle: 1,024 products of 16 bits. */
enum { CUDA_BYTES = 2048 };

/* The bits of an element's number within a word, which step along k. */
#define ALONG_1(row, column)
#define ALONG_2(row, column)     {row, column},
#define ALONG_4(row, column)     {row, column}, {2 * (row), 2 * (column)},
#define SECOND_FULL(row, column) {row, column},
#define SECOND_HALF(row, column)

#define GAP(from, to)                                                                                        \
  { from, to }
#define NO_GAP                                                                                               \
  { 0, 0 }

#define MMA(name_, since_, in, out, width, word, gap_)                                                       \
  {.name = #name_,                                                                                           \
   .maker = MATRIX_CUDA,                                                                                     \
   .threads = MATRIX_THREADS,                                                                                \
   .since = since_,                                                                                          \
   .gap = gap_,                                                                                              \
   .narrowed = DT_##in == DT_F32,                                                                            \
   .cycles = 16.0 * 8 * MATRIX_ROW_BYTES * (width) / CUDA_BYTES,                                             \
   .m = 16,                                                                                                  \
   .n = 8,                                                                                                   \
   .k = COLUMNS_OF_WORDS * (word) * (width),                                                                 \
   .operand = {{.dtype = DT_##in,                                                                            \
                .rows = 16,                                                                                  \
                .columns = COLUMNS_OF_WORDS * (word) * (width),                                              \
                .elements = 2 * (word) * (width),                                                            \
                .together = word,                                                                            \
                .thread = {{0, word}, {0, 2 * (word)}, {1, 0}, {2, 0}, {4, 0}},                              \
                .element = {ALONG_##word(0, 1){8, 0}, SECOND_##width(0, COLUMNS_OF_WORDS * (word))}},        \
               {.dtype = DT_##in,                                                                            \
                .rows = COLUMNS_OF_WORDS * (word) * (width),                                                 \
                .columns = 8,                                                                                \
                .elements = (word) * (width),                                                                \
                .together = word,                                                                            \
                .thread = {{word, 0}, {2 * (word), 0}, {0, 1}, {0, 2}, {0, 4}},                              \
                .element = {ALONG_##word(1, 0) SECOND_##width(COLUMNS_OF_WORDS * (word), 0)}},               \
               {.dtype = DT_##out,                                                                           \
                .rows = 16,                                                                                  \
                .columns = 8,                                                                                \
                .elements = 4,                                                                               \
                .together = 4,                                                                               \
                .thread = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}},                                          \
                .element = {{0, 1}, {8, 0}}}}},

/* The four warps together make 2,048 products per cycle, so a step takes each warp one cycle. */
#define GROUP(name_, since_, in, a_, b_)                                                                     \
  {.name = #name_,                                                                                           \
   .maker = MATRIX_CUDA,                                                                                     \
   .threads = 4 * MATRIX_THREADS,                                                                            \
   .since = since_,                                                                                          \
   .until = since_,                                                                                          \
   .cycles = 64.0 * 8 * 16 / 4 / CUDA_BYTES,                                                                 \
   .m = 64,                                                                                                  \
   .n = 8,                                                                                                   \
   .k = 16,                                                                                                  \
   .operand = {{.dtype = DT_##in, .rows = 64, .columns = 16, .turned = a_},                                  \
               {.dtype = DT_##in, .rows = 16, .columns = 8, .turned = b_},                                   \
               {.dtype = DT_F32,                                                                             \
                .rows = 64,                                                                                  \
                .columns = 8,                                                                                \
                .elements = 4,                                                                               \
                .together = 4,                                                                               \
                .thread = {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}, {16, 0}, {32, 0}},                        \
                .element = {{0, 1}, {8, 0}}}}},

/* In each operand, bits 1, 2 and 4 of a thread's number give its row, bits 0 and 3 its pair of columns. */
#define SQUARE(dtype_)                                                                                       \
  {                                                                                                          \
    .dtype = DT_##dtype_, .rows = 8, .columns = 8, .elements = 2, .together = 2,                             \
    .thread = {{0, 2}, {1, 0}, {2, 0}, {0, 4}, {4, 0}}, .element = {                                         \
      {0, 1}                                                                                                 \
    }                                                                                                        \
  }

#define SIMD(name_, since_, in, out)                                                                         \
  {.name = #name_,                                                                                           \
   .maker = MATRIX_METAL,                                                                                    \
   .threads = MATRIX_THREADS,                                                                                \
   .since = since_,                                                                                          \
   .cycles = 4,                                                                                              \
   .m = 8,                                                                                                   \
   .n = 8,                                                                                                   \
   .k = 8,                                                                                                   \
   .operand = {SQUARE(in), SQUARE(in), SQUARE(out)}},

#define IN_MEMORY(dtype_, rows_, columns_, together_)                                                        \
  { .dtype = DT_##dtype_, .rows = rows_, .columns = columns_, .together = together_ }

#define TILE(name_, since_, a, b, out, depth, word)                                                          \
  {.name = #name_,                                                                                           \
   .maker = MATRIX_AMX,                                                                                      \
   .threads = 1,                                                                                             \
   .since = since_,                                                                                          \
   .m = 16,                                                                                                  \
   .n = 16,                                                                                                  \
   .k = depth,                                                                                               \
   .operand = {IN_MEMORY(a, 16, depth, word), IN_MEMORY(b, depth, 16, word), IN_MEMORY(out, 16, 16, 1)},     \
   .blocks = {.most = {32, 32}, .few = {16, 16}, .thin = {64, 64}},                                          \
   .cycles = 32},

/* A block is a few tiles of registers, so that its results are stored while the next block is computed. */
#define DOT(name_, since_, a, b, out, word, cycles_, wait_, flipped_)                                        \
  {.name = #name_,                                                                                           \
   .maker = MATRIX_DOT,                                                                                      \
   .threads = 1,                                                                                             \
   .since = since_,                                                                                          \
   .flipped = flipped_,                                                                                      \
   .m = 1,                                                                                                   \
   .n = 16,                                                                                                  \
   .k = word,                                                                                                \
   .operand = {IN_MEMORY(a, 1, word, word), IN_MEMORY(b, word, 16, word), IN_MEMORY(out, 1, 16, 1)},         \
   .blocks = {.most = {32, 32}, .few = {6, 16}, .thin = {64, 64}},                                           \
   .cycles = cycles_,                                                                                        \
   .wait = wait_},

const MatrixShape matrix_shapes[MATRIX_COUNT] = {MATRICES(MMA, GROUP, SIMD, TILE, DOT)};

/* Rows of a block. A length that divides the side is preferred, because it leaves no tail, which would be a
 * nest of its own. */
static int64_t side(int64_t size, int64_t unit, int64_t most) {
  int64_t least = (size + most - 1) / most, each = (size + least - 1) / least;
  for (int64_t n = least; size / n >= most * 3 / 4; n++)
    if (size % n == 0 && size / n % unit == 0) return size / n;
  return TG_MIN(size, (each + unit - 1) / unit * unit);
}

void matrix_block(const MatrixShape *s, int64_t rows, int64_t columns, int64_t *m, int64_t *n) {
  const MatrixBlocks *b = &s->blocks;
  *m = side(rows, s->m, columns <= b->few[1] ? b->thin[0] : b->most[0]);
  *n = TG_MIN(columns, rows <= b->few[0] ? b->thin[1] : b->most[1]);
}

double matrix_cycles(const MatrixShape *s, double rows, double columns, double depth) {
  int64_t m, n;
  matrix_block(s, (int64_t)rows, (int64_t)columns, &m, &n);
  double step = fmax(s->cycles * ceil((double)m / s->m) * ceil((double)n / s->n), s->wait);
  return step * (rows / (double)m) * (columns / (double)n) * ceil(depth / s->k);
}

MatrixPlace matrix_place(const MatrixOperand *o, int thread, int element) {
  MatrixPlace p = {0, 0};
  for (int b = 0; b < MATRIX_THREAD_BITS; b++)
    if (thread >> b & 1) {
      p.row += o->thread[b].row;
      p.column += o->thread[b].column;
    }
  for (int b = 0; b < MATRIX_ELEMENT_BITS; b++)
    if (element >> b & 1) {
      p.row += o->element[b].row;
      p.column += o->element[b].column;
    }
  return p;
}

int64_t matrix_in_lines(const MatrixOperand *o, int64_t begin, int at, int deep) {
  int64_t chunk = MATRIX_ROW_BYTES / (int64_t)dtype_size(o->dtype), line = chunk * MATRIX_LINE_CHUNKS;
  int64_t place = begin + (o->turned ? deep * line + at : at * line + deep);
  return place ^ (place / line % MATRIX_LINES * chunk);
}

bool matrix_widens(const MatrixShape *s, MatrixRole role, DType d) {
  DType to = s->operand[role].dtype;
  if (to == DT_I16) return d == DT_I8 || d == DT_U8;
  return !matrix_in_memory(s) && to == DT_F16 && (d == DT_FP8E4M3 || d == DT_FP8E5M2);
}

uint32_t matrix_rows(MatrixMaker maker, int age) {
  uint32_t rows = 0;
  for (int i = 0; i < MATRIX_COUNT; i++) {
    const MatrixShape *s = &matrix_shapes[i];
    bool by_others = s->gap[0] && age >= s->gap[0] && age <= s->gap[1];
    if (s->maker == maker && s->since <= age && (!s->until || age <= s->until) && !by_others)
      rows |= UINT32_C(1) << i;
  }
  return rows;
}

/* x rounded to ten bits of mantissa: 13 bits are cut off. NaN stays NaN. */
static double narrowed(double x) {
  enum { CUT = 13 };

  float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (x == x && !isinf(x)) bits += 1u << (CUT - 1);
  bits &= ~((1u << CUT) - 1);
  if (x != x) return x;
  memcpy(&f, &bits, sizeof f);
  return f;
}

void matrix_multiply(const MatrixShape *s, MatrixAt at, void *ctx) {
  enum { MOST_ROWS = 16, MOST_COLUMNS = 8, MOST_DEPTH = 32 };

  Scalar a[MOST_ROWS][MOST_DEPTH] = {{{0}}}, b[MOST_DEPTH][MOST_COLUMNS] = {{{0}}};
  bool floats = dtype_is_float(s->operand[MATRIX_C].dtype);
  for (int thread = 0; thread < MATRIX_THREADS; thread++)
    for (int role = MATRIX_A; role <= MATRIX_B; role++)
      for (int e = 0; e < s->operand[role].elements; e++) {
        MatrixPlace p = matrix_place(&s->operand[role], thread, e);
        Scalar v = *at(ctx, (MatrixRole)role, thread, e);
        if (s->narrowed) v.f = narrowed(v.f);
        *(role == MATRIX_A ? &a[p.row][p.column] : &b[p.row][p.column]) = v;
      }
  for (int thread = 0; thread < MATRIX_THREADS; thread++)
    for (int e = 0; e < s->operand[MATRIX_C].elements; e++) {
      MatrixPlace p = matrix_place(&s->operand[MATRIX_C], thread, e);
      Scalar *c = at(ctx, MATRIX_C, thread, e), sum = *c;
      for (int i = 0; i < s->k; i++)
        if (floats)
          sum.f += a[p.row][i].f * b[i][p.column].f;
        else
          sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)(a[p.row][i].i * b[i][p.column].i));
      *c = scalar_round(s->operand[MATRIX_C].dtype, sum);
    }
}
