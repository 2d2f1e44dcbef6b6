/* tile.c: the model of a register tile (tile.h). In: shapes. Out: cycles.
 *
 *   step = max(multiply-adds, loads, dependent additions) + 1, more where registers do not suffice
 *
 * A core of a CPU loads as many vectors in a cycle as it multiplies. One of a GPU runs other warps while one
 * waits, so that nothing depends on anything there, and its lanes are copied to where they are read. */
#include "uop/tile.h"
#include <math.h>

enum {
  ADD_CYCLES = 4,
  MOST_VECTORS = 4,
  SIDE_OF_SUMS = 4,
  MOST_SUMS = 24,
  LEAST_ALONG = 8,
  SIDE_OF_THREAD = 8
};

/* A tile that registers do not hold is kept in memory. */
static const double SPILLED = 2.5;
/* The lanes of a vector of sums, added up. */
static const double ADDED_ACROSS = 10;

double tile_room(const Target *t) { return (double)t->registers * t->vec_bytes / (TILE_LANES * 4); }

/* A rest is written in pieces of 8, 4, 2 and 1. */
double tile_vectors(double lanes) {
  double whole = floor(lanes / TILE_LANES);
  return whole + __builtin_popcount((unsigned)(lanes - whole * TILE_LANES));
}

static double lanes_of(const Target *t) { return t->warp > 1 ? t->warp : TILE_LANES; }

double tile_step(const Target *t, const TileStep *s) {
  double vector = lanes_of(t) / t->fmas, gpu = t->warp > 1;
  double step = fmax(s->work, s->loads * vector);
  if (!gpu) step = fmax(step, ADD_CYCLES * s->chain);
  step += gpu ? vector : 1;
  return !gpu && s->registers > tile_room(t) ? step * SPILLED : step;
}

/* Lanes along a loop of the results, a tile of rows and vectors. apart: each lane is loaded by itself. */
static double by_results(const Target *t, double rows, double lanes, bool apart) {
  double best = INFINITY;
  for (int v = 1; v <= MOST_VECTORS; v++) {
    double width = fmin(lanes, v * TILE_LANES), vectors = tile_vectors(width);
    double tile = fmin(rows, floor((tile_room(t) - 2 - vectors) / vectors));
    if (tile < 1 || (v > 1 && width <= (v - 1) * TILE_LANES)) break;
    TileStep s = {.work = tile * vectors * TILE_LANES / t->fmas,
                  .loads = tile + vectors * (apart ? TILE_LANES : 1),
                  .chain = 1};
    best = fmin(best, tile_step(t, &s) / (tile * width));
  }
  return best;
}

/* Lanes along the sum: a few results at a time, each of them vectors of sums. Where a run ends the next one
 * goes on with its lanes: a long one fills all vectors. */
static double by_sum(const Target *t, const TileLoops *l) {
  double best = INFINITY;
  for (int side = 1; side <= SIDE_OF_SUMS; side++)
    for (int v = 1; v <= MOST_VECTORS; v++) {
      double rows = fmin(l->results[0], side), columns = fmin(l->results[1], side);
      double width = l->along < LEAST_ALONG ? l->along : v * TILE_LANES, vectors = tile_vectors(width);
      if (rows * columns * vectors > MOST_SUMS) break;
      TileStep s = {.work = rows * columns * vectors * TILE_LANES / t->fmas,
                    .loads = (rows + columns) * vectors,
                    .chain = 1};
      best = fmin(best, tile_step(t, &s) / (rows * columns * width));
    }
  return best + ADDED_ACROSS / l->depth;
}

static double by_threads(const Target *t, const TileLoops *l) {
  double rows = fmin(l->results[0], SIDE_OF_THREAD), columns = fmin(l->results[1], SIDE_OF_THREAD);
  TileStep s = {.work = rows * columns * t->warp / t->fmas, .loads = rows + columns};
  return tile_step(t, &s) / (rows * columns * t->warp);
}

double tile_product(const Target *t, const TileLoops *l) {
  if (t->warp > 1) return by_threads(t, l);
  double best = by_results(t, 1, fmax(l->results[0], l->results[1]), true);
  for (int f = 0; f < 2; f++)
    if (l->lanes[f] > 1) best = fmin(best, by_results(t, l->results[!f], l->lanes[f], false));
  return l->along > 1 ? fmin(best, by_sum(t, l)) : best;
}
