/* tile.h: what the innermost step of a sum takes. In: a Target, and a register tile or the loops that one can
 * be cut from. Out: cycles of one core. The one place that knows: lists of opts are told apart by it
 * (codegen/cost.c), and kernels are joined by it (schedule/kernel_cost.c). */
#ifndef TG_TILE_H
#define TG_TILE_H
#include "plan/target.h"

/* TILE_LANES: f32 in a vector as kernels for a CPU are written, whatever a register holds. MOST_STRIDE: the
 * largest stride of lanes that are read as vectors, which shuffles take them out of (expand_loads.c). */
enum { TILE_LANES = 16, MOST_STRIDE = 4 };

/* Of the shorter of computing and reading, what the longer does not hide. */
#define OVERLAP_LEFT 0.3

/* What the scheduler foresees of lists that are chosen later, and who chooses them goes by: threads of a
 * GPU's block; the least results along a side of a tile of its block; iterations of a row that an ONLINE
 * takes at a time, so that they stay near and few corrections are made. */
enum { BLOCK_THREADS = 256, LEAST_SIDE = 16, ONLINE_BLOCK = 128 };

/* Cycles in which the lanes of a vector of sums are added up. */
#define ADDED_ACROSS 10.0

/* One step: each result of the tile gets what it sums. */
typedef struct TileStep {
  double work;    /* cycles of the units that multiply and add */
  double loads;   /* registers that are loaded, from a vector or with one number for all lanes */
  double chain;   /* additions of a result that wait for each other */
  double vectors; /* results, and what is loaded of one operand */
} TileStep;

double tile_step(const Target *t, const TileStep *s);
/* Vectors that so many lanes take. Of products each piece of the tail counts as a whole vector .. */
double tile_vectors(double lanes);
/* .. of all else as much as the registers that it needs. */
double tile_pieces(const Target *t, double lanes);
/* A tile of n along a loop of unknown length: what is left of the last one runs in tiles of so many, then step
 * by step. 1: all of it does. */
int64_t tile_left(int64_t n);
/* Registers that a vector of TILE_LANES takes: 1 of AVX-512, 2 of AVX2, 4 of NEON. */
double tile_registers(const Target *t);
/* Vectors that the registers hold beside the numbers that all lanes have. */
double tile_room(const Target *t);

/* A sum of products, by its factors. */
typedef struct TileLoops {
  double results[2]; /* iterations of the loops of the results that this one alone moves with */
  double lanes[2];   /* .. of the longest loop of the results along which it is contiguous; 1: none */
  double along;      /* .. of the loops summed over that read a run of both; 1: none */
  double depth;      /* products that one result sums */
} TileLoops;

/* Cycles for one of its products, with the tile that suits it best. */
double tile_product(const Target *t, const TileLoops *l);
#endif
