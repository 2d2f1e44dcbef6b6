/* tile.c: the model of a register tile (tile.h). In: shapes. Out: cycles.
 *
 * step = max(multiply-adds, loads, dependent additions) + 1, more if the registers are too few
 *
 * A core of a CPU can load as many registers in a cycle as it can multiply. A core of a GPU runs other
 * warps while one waits, so no addition waits there, and what lanes read is first copied so that it is
 * contiguous. */
#include "plan/tile.h"
#include <math.h>

enum { ADD_CYCLES = 4, MOST_VECTORS = 4, SIDE_OF_SUMS = 4, MOST_SUMS = 24, LEAST_ALONG = 8 };

/* Registers for a broadcast number, and for the compiler's own needs. */
enum { OTHER_REGISTERS = 2 };

/* The size of a warp's tile of results. */
enum { WARP_ROWS = 32, WARP_COLUMNS = 64 };

/* A tile that does not fit in the registers spills to memory, and takes this many times as long. */
static const double SPILLED = 2.5;

double tile_registers(const Target *t) { return fmax(1, TILE_LANES * 4.0 / t->vec_bytes); }

double tile_room(const Target *t) {
  return (double)(t->registers - OTHER_REGISTERS) * t->vec_bytes / (TILE_LANES * 4);
}

/* The tail of a vector is written in pieces of 8, 4, 2 and 1 lanes. */
double tile_vectors(double lanes) {
  double whole = floor(lanes / TILE_LANES);
  return whole + __builtin_popcount((unsigned)(lanes - whole * TILE_LANES));
}

double tile_pieces(const Target *t, double lanes) {
  double whole = floor(lanes / TILE_LANES), registers = 0;
  unsigned rest = (unsigned)(lanes - whole * TILE_LANES);
  for (unsigned piece = TILE_LANES / 2; piece; piece /= 2)
    if (rest & piece) registers += fmax(1, piece * 4.0 / t->vec_bytes);
  return whole + registers / tile_registers(t);
}

double tile_step(const Target *t, const TileStep *s) {
  if (t->warp > 1) return fmax(s->work, s->loads) + t->warp / t->fmas;
  double loaded = s->loads * TILE_LANES / t->fmas / tile_registers(t);
  double step = fmax(fmax(s->work, loaded), ADD_CYCLES * s->chain) + 1;
  return s->vectors > tile_room(t) ? step * SPILLED : step;
}

/* Cycles per product with lanes along a loop of the results: a tile of `rows` rows and some vectors. apart:
 * each lane is loaded separately. */
static double by_results(const Target *t, double rows, double lanes, bool apart) {
  double best = INFINITY;
  for (int v = 1; v <= MOST_VECTORS; v++) {
    double width = fmin(lanes, v * TILE_LANES), vectors = tile_vectors(width);
    double tile = fmin(rows, floor((tile_room(t) - vectors) / vectors));
    if (tile < 1 || (v > 1 && width <= (v - 1) * TILE_LANES)) break;
    TileStep s = {.work = tile * vectors * TILE_LANES / t->fmas,
                  .loads = tile + vectors * (apart ? TILE_LANES : tile_registers(t)),
                  .chain = 1};
    best = fmin(best, tile_step(t, &s) / (tile * width));
  }
  return best;
}

/* Cycles per product with lanes along the sum: few results at a time, each of which is vectors of partial
 * sums. Where a run ends, the next one continues in the same lanes, so a long run fills all vectors. */
static double by_sum(const Target *t, const TileLoops *l) {
  double best = INFINITY;
  for (int side = 1; side <= SIDE_OF_SUMS; side++)
    for (int v = 1; v <= MOST_VECTORS; v++) {
      double rows = fmin(l->results[0], side), columns = fmin(l->results[1], side);
      double width = l->along < LEAST_ALONG ? l->along : v * TILE_LANES, vectors = tile_vectors(width);
      if (rows * columns * vectors > MOST_SUMS) break;
      TileStep s = {.work = rows * columns * vectors * TILE_LANES / t->fmas,
                    .loads = (rows + columns) * vectors * tile_registers(t),
                    .chain = 1};
      best = fmin(best, tile_step(t, &s) / (rows * columns * width));
    }
  return best + ADDED_ACROSS / l->depth;
}

/* Cycles per product on a GPU. A warp reads 32 numbers in a cycle; a number that several lanes use is read
 * once. If it has fewer results than lanes, the remaining lanes have factors of their own. */
static double by_threads(const Target *t, const TileLoops *l) {
  double rows = fmin(l->results[0], WARP_ROWS), columns = fmin(l->results[1], WARP_COLUMNS);
  double tile = rows * columns, products = fmax(tile, t->warp);
  TileStep s = {.work = products / t->fmas, .loads = (rows + columns) / tile * products / t->warp};
  return tile_step(t, &s) / products;
}

double tile_product(const Target *t, const TileLoops *l) {
  if (t->warp > 1) return by_threads(t, l);
  double best = by_results(t, 1, fmax(l->results[0], l->results[1]), true);
  for (int f = 0; f < 2; f++)
    if (l->lanes[f] > 1) best = fmin(best, by_results(t, l->results[!f], l->lanes[f], false));
  return l->along > 1 ? fmin(best, by_sum(t, l)) : best;
}

int64_t tile_left(int64_t n) { return n >= 8 ? 4 : n >= 6 ? 2 : 1; }
