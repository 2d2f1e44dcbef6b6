/* tile.h: the cost of the innermost step of a sum. In: a Target, and a register tile, or the loops that a
 * tile can be cut from. Out: cycles of one core. This is the only model of a tile: lists of opts are compared
 * by it (plan/cost.c), and kernels are joined by it (schedule/kernel_cost.c). */
#ifndef TG_TILE_H
#define TG_TILE_H
#include "plan/target.h"

/* TILE_LANES: f32 lanes of a vector in the kernels for a CPU, whatever a register holds. MOST_STRIDE: the
 * largest stride of lanes that are still read as vectors, from which shuffles extract them (expand_loads.c).
 * LINE: bytes of a cache line. LEAST_BESIDE: the least rows of a tile for which a copy may place the rows'
 * elements next to each other (stage.c). */
enum { TILE_LANES = 16, MOST_STRIDE = 4, LINE = 64, LEAST_BESIDE = 4 };

/* The part of the shorter of computing and reading that the longer does not hide. */
#define OVERLAP_LEFT 0.3

/* What the scheduler assumes about lists that are chosen later. The code that chooses them uses the same
 * numbers. BLOCK_THREADS: threads of a GPU's block. LEAST_SIDE: the least results along a side of its tile.
 * ONLINE_BLOCK: iterations of a row that an ONLINE takes at a time, few enough to stay in the cache, and
 * enough to need few corrections. */
enum { BLOCK_THREADS = 256, LEAST_SIDE = 16, ONLINE_BLOCK = 128 };

/* The cycles to add up the lanes of a vector of sums. */
#define ADDED_ACROSS 10.0

/* One step, in which each result of the tile gets one more product. */
typedef struct TileStep {
  double work;    /* cycles of the units that multiply and add */
  double loads;   /* registers that are loaded: with a vector, or with one number broadcast to all lanes */
  double chain;   /* additions to one result that wait for each other */
  double vectors; /* registers for the results, and for what is loaded of one operand, in vectors */
} TileStep;

double tile_step(const Target *t, const TileStep *s);
/* The number of vectors that `lanes` lanes take. For products, each piece of the tail counts as a whole
 * vector .. */
double tile_vectors(double lanes);
/* .. for all other operations, a piece counts as the registers that it needs. */
double tile_pieces(const Target *t, double lanes);
/* For tiles of n along a loop of unknown length: the rest after the last whole tile runs in tiles of this
 * size, and then step by step. 1: all of the rest runs step by step. */
int64_t tile_left(int64_t n);
/* The registers that a vector of TILE_LANES takes: 1 with AVX-512, 2 with AVX2, 4 with NEON. */
double tile_registers(const Target *t);
/* The number of vectors that the registers can hold, besides broadcast numbers. */
double tile_room(const Target *t);

/* A sum of products, by its factors. */
typedef struct TileLoops {
  double results[2]; /* trip count of the result loops that move this factor alone */
  double lanes[2];   /* .. of the longest result loop along which this factor is contiguous; 1: none */
  double along;      /* .. of the loops summed over along which both factors are contiguous; 1: none */
  double depth;      /* number of products that are summed for one result */
} TileLoops;

/* The cycles for one product, with the tile that is best for it. */
double tile_product(const Target *t, const TileLoops *l);
#endif
