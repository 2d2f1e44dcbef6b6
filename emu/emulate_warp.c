/* emulate_warp.c: what the 32 lanes of a warp do together. A lane that calls such a function waits until each
 * lane in its mask has made the same call; then all get their results at once. */
#include "emu/emulate_private.h"
#include <math.h>
#include <string.h>

typedef struct Warp {
  Thread *lane; /* its first thread */
  uint32_t first, n;
} Warp;

static bool named(uint32_t mask, uint32_t lane) { return mask >> lane & 1; }

static bool same_call(const WarpCall *a, const WarpCall *b) {
  return a->op == b->op && a->id == b->id && a->mask == b->mask;
}

static const char *const call_name[] = {"warp barrier", "shuffle", "shuffle", "shuffle", "shuffle",
                                        "ballot",       "mma",     "wgmma",   "ldmatrix"};

/* Sets the error that one lane does not come to the call of `lane`. */
static void lane_missing(Emu *e, const Warp *w, uint32_t lane, uint32_t other) {
  static const char *const instead[] = {"has not begun", "runs", "waits at a barrier", "makes another call",
                                        "has ended"};
  const Thread *t = &w->lane[lane], *o = &w->lane[other];
  bool other_mask = o->state == AT_WARP && o->warp.id == t->warp.id;
  emu_fail_at(e, t, "%s in line %u: lane %u, which the mask %#x names, %s", call_name[t->warp.op],
              t->warp.line, other, t->warp.mask, other_mask ? "comes with another mask" : instead[o->state]);
}

/* ---- shuffles */
static bool shuffle_source(const WarpCall *c, uint32_t lane, uint32_t *from) {
  uint32_t width = (uint32_t)c->width, base = lane & ~(width - 1), arg = (uint32_t)c->arg;
  switch (c->op) {
  case WARP_SHUFFLE: *from = base + (arg & (width - 1)); break;
  case WARP_SHUFFLE_XOR: *from = lane ^ arg; break;
  case WARP_SHUFFLE_UP: *from = lane - base < arg ? lane : lane - arg; break;
  default: *from = lane - base + arg >= width ? lane : lane + arg; break;
  }
  if (c->op == WARP_SHUFFLE_XOR && *from >= base + width) *from = lane;
  return *from < WARP;
}

static bool shuffle(Emu *e, const Warp *w, uint32_t mask) {
  for (uint32_t i = 0; i < w->n; i++) {
    if (!named(mask, i)) continue;
    WarpCall *c = &w->lane[i].warp;
    uint32_t from = i;
    bool power = c->width > 0 && c->width <= WARP && !(c->width & (c->width - 1));
    if (!power) return emu_fail_at(e, &w->lane[i], "shuffle of width %d", c->width), false;
    if (!shuffle_source(c, i, &from) || from >= w->n || !named(mask, from)) {
      emu_fail_at(e, &w->lane[i], "shuffle in line %u takes the value of lane %u, which takes no part",
                  c->line, from);
      return false;
    }
    c->result = w->lane[from].warp.value;
  }
  return true;
}

static void ballot(const Warp *w, uint32_t mask) {
  uint64_t votes = 0;
  for (uint32_t i = 0; i < w->n; i++)
    if (named(mask, i)) votes |= w->lane[i].warp.value << i;
  for (uint32_t i = 0; i < w->n; i++)
    w->lane[i].warp.result = votes;
}

/* ---- matrix products: d (16 x 8) = a (16 x k) * b (k x 8) + c.
 * Each lane holds four words of a, two of b and four elements of c and d. A word has p = per_word elements.
 * Element j of word i of lane 4 * g + t is at:
 *   a: row g + 8 * (i odd), column t * p + j, + 4 * p in words 2 and 3
 *   b: row t * p + j, + 4 * p in word 1; column g
 *   c, d: row g, + 8 in elements 2 and 3; column 2 * t + (i odd) */
enum { MMA_ROWS = 16, MMA_COLUMNS = 8, MMA_DEEPEST = 32, A_WORDS = 4, B_WORDS = 2, C_WORDS = 4 };

typedef enum MmaType { MMA_F16, MMA_BF16, MMA_TF32, MMA_F32, MMA_S8, MMA_U8, MMA_E4M3, MMA_E5M2 } MmaType;

/* The kinds by the number that the dialect uses. halves: 2: a whole unit; 1: it has only the first half of k,
 * with two words of a and one of b; 0: 8 x 8 of each operand. */
typedef struct MmaKind {
  MmaType type;
  uint32_t per_word, halves;
} MmaKind;

static const MmaKind mma_kinds[] = {{MMA_F16, 2, 2}, {MMA_BF16, 2, 2}, {MMA_TF32, 1, 2}, {MMA_S8, 4, 2},
                                    {MMA_U8, 4, 2},  {MMA_E4M3, 4, 2}, {MMA_E5M2, 4, 2}, {MMA_F16, 2, 1},
                                    {MMA_F16, 2, 0}, {MMA_F32, 1, 0},  {MMA_BF16, 2, 0}};

static float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static double of_f16(uint32_t h) {
  enum { BIAS = 112, MANTISSA = 1023, INFINITE = 31 };

  uint32_t sign = (h & 0x8000) << 16, exponent = h >> 10 & INFINITE, mantissa = h & MANTISSA;
  if (exponent == 0) return (sign ? -1.0 : 1.0) * mantissa * 0x1p-24;
  if (exponent == INFINITE) return float_of_bits(sign | 0x7f800000u | mantissa << 13);
  return float_of_bits(sign | (exponent + BIAS) << 23 | mantissa << 13);
}

/* Decodes eight bits with that many bits of mantissa. With three bits there is no infinity and one NaN of
 * each sign; with two it is a shortened f16. */
static double of_f8(uint32_t b, int mantissa_bits) {
  enum { SMALLEST_NORMAL = -6, BIAS = 7, NAN_BITS = 0x7f };

  if (mantissa_bits == 2) return of_f16(b << 8);
  uint32_t exponent = b >> 3 & 15, mantissa = b & 7;
  double sign = b & 0x80 ? -1 : 1;
  if ((b & NAN_BITS) == NAN_BITS) return (double)NAN;
  if (exponent == 0) return sign * ldexp(mantissa, SMALLEST_NORMAL - 3);
  return sign * ldexp(8 + mantissa, (int)exponent - BIAS - 3);
}

/* Returns element j of a word. tf32 has the exponent of f32 and ten bits of its mantissa; the lower bits are
 * not read. */
static double element(MmaType type, uint32_t word, uint32_t j) {
  switch (type) {
  case MMA_F16: return of_f16(word >> 16 * j & 0xffff);
  case MMA_BF16: return float_of_bits(j ? word & 0xffff0000u : word << 16);
  case MMA_TF32: return float_of_bits(word & 0xffffe000u);
  case MMA_F32: return float_of_bits(word);
  case MMA_E4M3: return of_f8(word >> 8 * j & 0xff, 3);
  case MMA_E5M2: return of_f8(word >> 8 * j & 0xff, 2);
  case MMA_U8: return word >> 8 * j & 0xff;
  default: return (int8_t)(word >> 8 * j & 0xff);
  }
}

typedef struct Operands {
  double a[MMA_ROWS][MMA_DEEPEST], b[MMA_DEEPEST][MMA_COLUMNS];
} Operands;

static void gather(const Warp *w, const MmaKind *kind, Operands *o) {
  uint32_t per_word = kind->per_word;
  for (uint32_t lane = 0; lane < WARP; lane++) {
    const WarpCall *c = &w->lane[lane].warp;
    uint32_t g = lane / 4, t = lane % 4, word[A_WORDS];
    memcpy(word, c->a, kind->halves * A_WORDS / 2 * sizeof *word);
    for (uint32_t i = 0; i < kind->halves * A_WORDS / 2; i++)
      for (uint32_t j = 0; j < per_word; j++)
        o->a[g + 8 * (i & 1)][t * per_word + j + i / 2 * 4 * per_word] = element(kind->type, word[i], j);
    memcpy(word, c->b, kind->halves * B_WORDS / 2 * sizeof *word);
    for (uint32_t i = 0; i < kind->halves * B_WORDS / 2; i++)
      for (uint32_t j = 0; j < per_word; j++)
        o->b[t * per_word + j + i * 4 * per_word][g] = element(kind->type, word[i], j);
  }
}

/* Adds exact products and rounds once. A GPU adds in its own order and precision. */
static void mma(const Warp *w, const MmaKind *kind) {
  uint32_t depth = 4 * kind->per_word * kind->halves;
  bool whole = kind->type == MMA_S8 || kind->type == MMA_U8;
  Operands o;
  gather(w, kind, &o);
  for (uint32_t lane = 0; lane < WARP; lane++) {
    WarpCall *call = &w->lane[lane].warp;
    uint32_t g = lane / 4, t = lane % 4, words[C_WORDS];
    memcpy(words, call->c, sizeof words);
    for (uint32_t i = 0; i < C_WORDS; i++) {
      uint32_t row = g + 8 * (i / 2), column = 2 * t + (i & 1);
      double sum = whole ? (double)(int32_t)words[i] : (double)float_of_bits(words[i]);
      for (uint32_t k = 0; k < depth; k++)
        sum += o.a[row][k] * o.b[k][column];
      float rounded = (float)sum;
      if (whole)
        words[i] = (uint32_t)(int64_t)sum; /* wraps */
      else
        memcpy(&words[i], &rounded, sizeof rounded);
    }
    memcpy(call->d, words, sizeof words);
  }
}

/* ---- ldmatrix: matrices of 8 rows of 8 elements of 16 bits. Lanes 8 m .. 8 m + 7 pass the rows of matrix m.
 * Afterwards lanes 4 r .. 4 r + 3 have row r: the first of them has the first two elements, and so on. If
 * turned, they have column r. */
enum { ROWS_SIDE = 8, MOST_MATRICES = 4 };

static void rows(const Warp *w, int kind) {
  bool turned = kind < 0;
  uint32_t matrices = (uint32_t)(turned ? -kind : kind);
  uint16_t matrix[ROWS_SIDE][ROWS_SIDE], line[ROWS_SIDE];
  uint32_t to[WARP][MOST_MATRICES];
  for (uint32_t m = 0; m < matrices; m++) {
    for (uint32_t r = 0; r < ROWS_SIDE; r++) {
      memcpy(line, w->lane[ROWS_SIDE * m + r].warp.a, sizeof line);
      for (uint32_t c = 0; c < ROWS_SIDE; c++)
        *(turned ? &matrix[c][r] : &matrix[r][c]) = line[c];
    }
    for (uint32_t r = 0; r < ROWS_SIDE; r++)
      for (uint32_t pair = 0; pair < ROWS_SIDE / 2; pair++)
        to[4 * r + pair][m] = matrix[r][2 * pair] | (uint32_t)matrix[r][2 * pair + 1] << 16;
  }
  for (uint32_t lane = 0; lane < WARP; lane++)
    memcpy(w->lane[lane].warp.d, to[lane], matrices * sizeof **to);
}

/* ---- products of 8 x 8: a thread has two neighbours in a row of each operand. The places are counted in
 * blocks of 4 x 4 that eight threads share. */
enum { SQUARE_SIDE = 8 };

static void square_place(uint32_t lane, uint32_t *row, uint32_t *column) {
  uint32_t block = lane / 4;
  *row = (block & 4) + lane / 2 % 4;
  *column = (block & 2) * 2 + lane % 2 * 2;
}

static void square(const Warp *w, const MmaKind *kind) {
  double a[SQUARE_SIDE][SQUARE_SIDE], b[SQUARE_SIDE][SQUARE_SIDE];
  uint32_t row, column, word[2], nbytes = 2 * (uint32_t)sizeof *word / kind->per_word;
  for (uint32_t lane = 0; lane < WARP; lane++) {
    const WarpCall *c = &w->lane[lane].warp;
    square_place(lane, &row, &column);
    memcpy(word, c->a, nbytes);
    for (uint32_t e = 0; e < 2; e++)
      a[row][column + e] = element(kind->type, word[e / kind->per_word], e % kind->per_word);
    memcpy(word, c->b, nbytes);
    for (uint32_t e = 0; e < 2; e++)
      b[row][column + e] = element(kind->type, word[e / kind->per_word], e % kind->per_word);
  }
  for (uint32_t lane = 0; lane < WARP; lane++) {
    WarpCall *call = &w->lane[lane].warp;
    float c[2];
    square_place(lane, &row, &column);
    memcpy(c, call->c, sizeof c);
    for (uint32_t e = 0; e < 2; e++) {
      double sum = c[e];
      for (uint32_t k = 0; k < SQUARE_SIDE; k++)
        sum += a[row][k] * b[k][column + e];
      c[e] = (float)sum;
    }
    memcpy(call->d, c, sizeof c);
  }
}

/* ---- units of four warps: each lane computes its part by itself (emulate_group.c), but all must pass the
 * same operands */
static void group_step(Emu *e, const Warp *w) {
  for (uint32_t i = 1; i < w->n && !e->failed; i++)
    if (w->lane[i].warp.value != w->lane[0].warp.value)
      emu_fail_at(e, &w->lane[i], "wgmma in line %u: lanes name other operands", w->lane[i].warp.line);
}

/* ---- meetings */
/* Checks that all lanes in the mask of `lane`'s call have made that call, and does the operation. Otherwise
 * the launch fails. */
static void group_meet(Emu *e, const Warp *w, uint32_t lane) {
  const WarpCall *c = &w->lane[lane].warp;
  uint32_t mask = c->mask;
  WarpOp op = c->op;
  int kind = c->arg;
  if (!named(mask, lane)) {
    emu_fail_at(e, &w->lane[lane], "%s in line %u: lane %u is not in its own mask %#x", call_name[op],
                c->line, lane, mask);
    return;
  }
  if (op == WARP_ROWS && w->n < WARP) {
    emu_fail_at(e, &w->lane[lane], "ldmatrix in line %u: the warp has %u lanes", c->line, w->n);
    return;
  }
  if (op == WARP_MMA && (w->n < WARP || (uint32_t)kind >= TG_COUNT(mma_kinds))) {
    emu_fail_at(e, &w->lane[lane], "mma in line %u: the warp has %u lanes", c->line, w->n);
    return;
  }
  for (uint32_t i = 0; i < w->n; i++) {
    bool comes = w->lane[i].state == AT_WARP && same_call(&w->lane[i].warp, c);
    if (!named(mask, i) || comes) continue;
    lane_missing(e, w, lane, i);
    return;
  }
  if (op == WARP_BALLOT)
    ballot(w, mask);
  else if (op == WARP_MMA)
    (mma_kinds[kind].halves ? mma : square)(w, &mma_kinds[kind]);
  else if (op == WARP_GROUP)
    group_step(e, w);
  else if (op == WARP_ROWS)
    rows(w, kind);
  else if (op == WARP_SYNC) /* also of a part of the warp: it is better to miss a race than to invent one */
    e->warp_tick[w->first / WARP] = ++e->tick;
  else if (!shuffle(e, w, mask))
    return;
  for (uint32_t i = 0; i < w->n; i++)
    if (named(mask, i)) w->lane[i].state = READY;
}

bool warps_meet(Emu *e) {
  bool met = false;
  for (uint32_t first = 0; first < e->nthread && !e->failed; first += WARP) {
    Warp w = {&e->threads[first], first, TG_MIN(WARP, e->nthread - first)};
    for (uint32_t i = 0; i < w.n && !e->failed; i++) {
      if (w.lane[i].state != AT_WARP) continue;
      group_meet(e, &w, i);
      met = true;
    }
  }
  return met;
}
