/* grid_cost.c: the cost of a kernel on a GPU (grid_cost.h). In: its program, as it will be written, and
 * the machine. Out: the largest of six bounds, and a part of the rest, because they do not hide each other
 * completely:
 *
 *   compute: instructions of all warps, four a cycle of a core; steps of a matrix unit at its own rate
 *   shared:  lines of 128 bytes that warps read from shared memory or L1; words in one bank are read one
 *            by one
 *   l2:      bytes that blocks read, for the core that reads most: what a block touches below the
 *            outermost loop for which L1 has room, times the iterations outside
 *   memory:  bytes that the grid touches: once if L2 has room for them, otherwise once for all blocks that
 *            run at the same time
 *   waits:   one thread from start to end, alone, times the blocks that run one after the other
 *   blocks:  two start in three cycles, on the whole GPU
 *
 * The time to fetch the text of the program is added, so loops that are written out have a price.
 *
 * Addresses are not analysed but computed. The program's own index arithmetic is evaluated for each thread
 * of a warp, and once more for each loop and each digit of each axis of the grid. That gives the sectors
 * and banks that a warp uses, and how far every address moves.
 *
 * Constants are nominal figures of GPUs of 2020 to 2023. The estimates were compared with an H100, for 139
 * kernels with 20 to 40 lists each: the list with the best estimate takes 1.12 times as long as the best
 * list (geometric mean), and the estimate of a list is within a factor of two for two of three lists. */
#include "plan/grid_cost.h"
#include "uop/matrix.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  SECTOR = 32,
  LINE_BYTES = 128,
  BANKS = 32,
  WORD = 4,
  MOST_VARS = 64,
  MOST_DIGITS = 96,
  MOST_DEPTH = 16,
  MOST_OPS = 3000 /* with their addresses, these fill more than the instruction cache */
};

/* Indices of a grid are often split by quotients and remainders, so movement is measured for each digit of an
 * axis, in these radixes. */
enum { RADIX_THREADS = 2, RADIX_BLOCKS = 16 };

/* Limits of a core: resident threads, and words of registers; and the registers that each thread needs for
 * addresses and counters. */
enum { MOST_THREADS = 2048, REGISTER_WORDS = 65536, OWN_REGISTERS = 18 };

/* Cycles until a result can be used: of arithmetic, of shared memory, of L1, of a matrix unit, and of a
 * barrier. OF_L2: the latency of L2 as a part of that of memory. */
static const double READY = 4, READY_SHARED = 25, READY_L1 = 36, READY_MATRIX = 32, MET = 25, OF_L2 = 0.45;

/* Groups of asynchronous copies that may be in flight at a barrier. */
enum { MOST_GROUPS = 8 };

/* Words that a thread may have requested but not received. A compiler keeps no registers for more. */
enum { UNDER_WAY = 32 };

/* The iterations that a compiler writes out together, and the most instructions of such an iteration. */
static const double BESIDE = 4, BESIDE_TEXT = 16;
/* Cycles to fetch an instruction that no warp of a core has run before. A cache line contains eight
 * instructions, and the next line is fetched meanwhile. */
static const double FETCHED = 16;
/* Cycles from the start of one block to the start of the next, as measured on an H100. */
static const double BEGUN = 1.45;
/* The part of the nominal bandwidth of memory that copies reach. */
static const double REACHED = 0.9;
/* Instructions of the counting of one loop iteration; of a division of indices; of a conversion to or from 16
 * bits. */
static const double OF_LOOP = 2, OF_DIVISION = 5, OF_CONVERSION = 2;
/* A kernel takes twice as long if a thread has this many words more than its registers hold. */
static const double SPILLED_TWICE = 16;
/* OVERLAP: the part of the other bounds that the largest does not hide. ROOM: the part of a cache that a
 * working set can use. */
static const double OVERLAP = 0.15, ROOM = 0.7;

#define UNKNOWN INT64_MIN

typedef struct Access {
  const UOp *memory;
  /* in bytes; by: movement for each digit, UNKNOWN if it is data */
  int64_t lane[MATRIX_THREADS], by[MOST_DIGITS];
  int bytes, size; /* bytes: of the whole access; size: of an element */
  bool store;
  int depth, loop[MOST_DEPTH]; /* numbers of the variables of its loops, from the outermost inwards */
  double trips;
  int64_t least, most; /* the first addresses of all accesses that move like this one */
  int alike;           /* number of those accesses; 0: another access counts this one */
  int as;              /* the number of the access that counts this one */
  double latency;      /* cycles until the data that it reads has arrived */
  /* bytes: of a block; of the grid; and of the grid including those that have left L2 */
  double of_block, once, again;
  bool repeats; /* it reads what an earlier access reads */
} Access;

/* A digit of a variable: it adds `weight` up to n - 1 times. */
typedef struct Digit {
  int var;
  double n;
  int64_t weight;
} Digit;

typedef struct Program {
  const Target *t;
  const Linear *lin;
  TgMem *mem;
  int32_t *place;  /* by node id: its number in lin, plus 1 */
  uint8_t *needed; /* by number: whether it is part of an address */
  int *end;        /* by number: for a RANGE, where it ends; for a LOAD or STORE, the number of its access */
  int64_t *value;
  /* issued: instructions of all iterations; text: each instruction once */
  double *ready, *cost, issued, text;
  const UOp *var[MOST_VARS];
  int64_t size[MOST_VARS], at[MOST_VARS];
  Digit digit[MOST_DIGITS];
  int first[MOST_VARS]; /* the first digit of a variable; a loop has one digit */
  int nvar, ndigit, naccess;
  Access *access;
  double products, shared, warps;
  double apart; /* cycles of matrix units that run asynchronously to the threads */
  /* cycles a byte takes per thread if all threads of a core share the bandwidth; when the last byte
   * arrives */
  double cycles_a_byte, fed;
  double arrived[MOST_GROUPS]; /* by barrier, the last one first: when all copies before it had arrived */
  double copied;               /* when the last asynchronous copy arrives */
  double arrives[UNDER_WAY];   /* a ring: when the words that were requested last arrive */
  int asked;
} Program;

static int number_of(const Program *p, const UOp *u) { return p->place[u->id] - 1; }

static const UOp *place_of(const UOp *u) {
  const UOp *x = u->op == OPS_LOAD || u->op == OPS_STORE ? uop_base(u->src[0]) : NULL;
  return x && x->op == OPS_INDEX ? x : NULL;
}

/* The buffer or shared memory that u reads or writes; NULL: neither. */
static const UOp *memory_at(const UOp *u) {
  const UOp *x = place_of(u), *m = x ? uop_base(x->src[0]) : NULL;
  return m && m->op != OPS_DEFINE_REG ? m : NULL;
}

/* ---- reading the program */
static bool opened(Program *p) {
  uint32_t most = 0;
  int n = p->lin->n;
  size_t reads = 1;
  for (int i = 0; i < n; i++) {
    reads += memory_at(p->lin->at[i]) != NULL;
    most = TG_MAX(most, p->lin->at[i]->id);
    for (int s = 0; s < p->lin->at[i]->nsrc; s++)
      most = TG_MAX(most, p->lin->at[i]->src[s]->id);
  }
  size_t room = (size_t)n + 1;
  p->place = mem_alloc(p->mem, (most + 1) * sizeof *p->place);
  p->needed = mem_alloc(p->mem, room), p->end = mem_alloc(p->mem, room * sizeof *p->end);
  p->value = mem_alloc(p->mem, room * sizeof *p->value),
  p->ready = mem_alloc(p->mem, room * sizeof *p->ready);
  p->cost = mem_alloc(p->mem, room * sizeof *p->cost);
  p->access = mem_alloc(p->mem, reads * sizeof *p->access);
  return p->place && p->needed && p->end && p->value && p->ready && p->cost && p->access;
}

static void closed(Program *p) {
  mem_free(p->mem, p->place), mem_free(p->mem, p->needed), mem_free(p->mem, p->end);
  mem_free(p->mem, p->value), mem_free(p->mem, p->ready), mem_free(p->mem, p->cost);
  mem_free(p->mem, p->access);
}

static double trips_of(const UOp *range) { return (double)TG_MAX(range->src[0]->vmax, 1); }

/* The instructions of a thread for u. */
static double cost_of_op(const Program *p, const UOp *u) {
  bool index = u->dtype == DT_INDEX, divides = u->op >= OPS_CDIV && u->op <= OPS_FLOORMOD;
  bool small = dtype_size((DType)u->dtype) == 2 || (u->nsrc && dtype_size((DType)u->src[0]->dtype) == 2);
  switch (u->op) {
  case OPS_RANGE: return OF_LOOP;
  case OPS_BARRIER:
  case OPS_SHUFFLE:
  case OPS_WMMA:
  case OPS_FRAGMENT: return 1;
  case OPS_LOAD:
  case OPS_STORE: return memory_at(u) != NULL;
  case OPS_BITCAST: return 0;
  default: break;
  }
  double w = divides ? (index ? OF_DIVISION : 4 * OF_DIVISION) : target_weight(p->t, u);
  if (u->op == OPS_CAST) w = index || u->dtype == DT_BOOL ? 0 : small ? OF_CONVERSION : 1;
  if (u->dtype == DT_F64) w *= 2;
  return w * u->lanes;
}

static void access_found(Program *p, const UOp *u, const int *loop, int depth, double trips) {
  const UOp *m = memory_at(u), *v = u->op == OPS_STORE ? u->src[1] : u;
  if (!m) return;
  const UOp *at = place_of(u)->src[1];
  p->end[number_of(p, u)] = p->naccess;
  Access *a = &p->access[p->naccess++];
  *a = (Access){
      .memory = m, .size = (int)dtype_size((DType)v->dtype), .store = u->op == OPS_STORE, .trips = trips};
  a->bytes = a->size * v->lanes;
  a->depth = depth;
  memcpy(a->loop, loop, (size_t)depth * sizeof *loop);
  if (number_of(p, at) >= 0) p->needed[number_of(p, at)] = 1;
}

/* Adds a variable and its digits. Returns false if there are too many. */
static bool var_found(Program *p, const UOp *u) {
  int64_t size = (int64_t)trips_of(u), weight = 1;
  int64_t radix = u->op == OPS_RANGE ? INT64_MAX : u->arg.special.local ? RADIX_THREADS : RADIX_BLOCKS;
  if (p->nvar == MOST_VARS) return false;
  p->first[p->nvar] = p->ndigit;
  p->size[p->nvar] = size;
  do {
    if (p->ndigit == MOST_DIGITS) return false;
    int64_t n = TG_MIN((size + weight - 1) / weight, radix);
    p->digit[p->ndigit++] = (Digit){p->nvar, (double)n, weight};
    weight = radix < size ? weight * radix : size;
  } while (weight < size);
  p->var[p->nvar++] = u;
  return true;
}

/* Collects the variables, accesses and costs. Returns false if there are too many loops. */
static bool looked_through(Program *p) {
  int loop[MOST_DEPTH], depth = 0;
  double trips = 1, before[MOST_DEPTH];
  for (int i = 0; i < p->lin->n; i++) {
    const UOp *u = p->lin->at[i];
    p->place[u->id] = i + 1;
    bool varies = u->op == OPS_RANGE || u->op == OPS_SPECIAL;
    if (varies && (depth == MOST_DEPTH || !var_found(p, u))) return false;
    if (u->op == OPS_RANGE) {
      before[depth] = trips;
      loop[depth++] = p->nvar - 1;
      trips *= trips_of(u);
      p->end[i] = p->lin->n;
    }
    p->cost[i] = cost_of_op(p, u);
    if (u->op == OPS_WMMA) {
      const MatrixShape *s = &matrix_shapes[u->arg.i];
      *(matrix_in_shared(s) ? &p->apart : &p->products) += trips * s->cycles;
    }
    p->issued += trips * p->cost[i];
    p->text += p->cost[i];
    access_found(p, u, loop, depth, trips);
    if (u->op == OPS_END && depth) {
      p->end[number_of(p, u->src[0])] = i;
      trips = before[--depth];
    }
  }
  for (int i = p->lin->n - 1; i >= 0; i--)
    for (int s = 0; p->needed[i] && s < p->lin->at[i]->nsrc; s++)
      if (number_of(p, p->lin->at[i]->src[s]) >= 0) p->needed[number_of(p, p->lin->at[i]->src[s])] = 1;
  return true;
}

/* ---- addresses */
static int64_t value_of(const Program *p, const UOp *u) {
  if (is_const(u)) return u->arg.v.i;
  return number_of(p, u) >= 0 ? p->value[number_of(p, u)] : UNKNOWN;
}

/* Computes all parts of addresses for the values at[i] of the variables i. */
static void evaluated(Program *p) {
  int var = 0;
  for (int i = 0; i < p->lin->n; i++) {
    const UOp *u = p->lin->at[i];
    if (u->op == OPS_RANGE || u->op == OPS_SPECIAL)
      p->value[i] = p->at[var++];
    else if (p->needed[i]) {
      Scalar src[3], r;
      bool known = u->nsrc >= 1 && u->nsrc <= 3 && u->lanes == 1;
      for (int s = 0; known && s < u->nsrc; s++) {
        src[s].i = value_of(p, u->src[s]);
        known = src[s].i != UNKNOWN && !dtype_is_float((DType)u->src[s]->dtype);
      }
      p->value[i] = known && scalar_eval((Ops)u->op, (DType)u->dtype, src, &r) ? r.i : UNKNOWN;
    }
  }
}

static int64_t address_now(const Program *p, const UOp *u, const Access *a) {
  int64_t v = value_of(p, place_of(u)->src[1]);
  return v == UNKNOWN ? UNKNOWN : v * a->size;
}

/* Computes the addresses of each access: for each thread of the first warp, and how they move with each
 * variable. The last warps of a block move as the step of the first warp along their axis predicts. */
static void places_computed(Program *p) {
  int64_t block[3] = {1, 1, 1}, stride[3];
  for (int d = 0; d < 3; d++)
    block[d] = TG_MAX(p->lin->local[d], 1);
  stride[0] = 1;
  stride[1] = block[0];
  stride[2] = block[0] * block[1];
  for (int i = -MATRIX_THREADS; i < p->ndigit; i++) {
    for (int v = 0; v < p->nvar; v++) {
      const UOp *u = p->var[v];
      int d = (int)u->arg.special.dim;
      bool thread = i < 0 && u->op == OPS_SPECIAL && u->arg.special.local;
      p->at[v] = thread ? (i + MATRIX_THREADS) / stride[d] % block[d] : 0;
      if (i >= 0 && p->digit[i].var == v && p->digit[i].n > 1) p->at[v] = p->digit[i].weight;
    }
    evaluated(p);
    for (int a = 0, j = 0; a < p->naccess; j++) {
      const UOp *u = p->lin->at[j];
      if (!memory_at(u)) continue;
      Access *to = &p->access[a++];
      int64_t at = address_now(p, u, to), from = to->lane[0];
      if (i < 0)
        to->lane[i + MATRIX_THREADS] = at;
      else
        to->by[i] = at == UNKNOWN || from == UNKNOWN ? UNKNOWN : at - from;
    }
  }
}

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The number of different pieces of `unit` bytes that the threads of a warp touch. */
static int pieces(const Access *a, int threads, int unit) {
  int64_t at[MATRIX_THREADS * 16];
  int n = 0, kinds = 0;
  for (int i = 0; i < threads; i++)
    for (int64_t b = a->lane[i] / unit; b <= (a->lane[i] + a->bytes - 1) / unit && n < (int)TG_COUNT(at); b++)
      at[n++] = b;
  qsort(at, (size_t)n, sizeof *at, ascending);
  for (int i = 0; i < n; i++)
    kinds += !i || at[i] != at[i - 1];
  return kinds;
}

/* Cycles in which shared memory delivers the words of a warp. If each thread reads 16 bytes, a quarter of the
 * threads is served at a time. */
static double bank_cycles(const Access *a, int threads) {
  int phases = TG_MAX(a->bytes / WORD, 1), each = TG_MAX(threads / phases, 1);
  double cycles = 0;
  for (int first = 0; first < threads; first += each) {
    int64_t seen[MATRIX_THREADS * 4];
    int n = 0, of[BANKS] = {0}, most = 1;
    for (int i = first; i < TG_MIN(first + each, threads); i++)
      for (int w = 0; w < TG_MIN(phases, 4); w++) {
        int64_t word = a->lane[i] / WORD + w;
        bool had = false;
        for (int j = 0; j < n && !had; j++)
          had = seen[j] == word;
        if (!had) {
          seen[n++] = word;
          of[(uint64_t)word % BANKS]++;
        }
      }
    for (int b = 0; b < BANKS; b++)
      most = TG_MAX(most, of[b]);
    cycles += most;
  }
  return cycles;
}

/* ---- how much is touched */
typedef struct Term {
  double by, n;
} Term;

static int nearest(const void *a, const void *b) {
  double x = ((const Term *)a)->by, y = ((const Term *)b)->by;
  return (x > y) - (x < y);
}

/* The bytes of whole sectors that an access touches in iters[v] iterations of each variable v. */
static double touched(const Program *p, const Access *a, const double *iters) {
  Term term[MOST_DIGITS + 1];
  double run = a->bytes, rows = 1,
         whole = (double)a->memory->arg.param.nelem * dtype_size((DType)a->memory->dtype);
  int n = 0;
  for (int i = 0; i < p->ndigit; i++) {
    const Digit *d = &p->digit[i];
    double of = fmin(d->n, ceil(iters[d->var] / (double)d->weight));
    if (of > 1 && a->by[i]) term[n++] = (Term){a->by[i] == UNKNOWN ? INFINITY : fabs((double)a->by[i]), of};
  }
  if (a->alike > 1) term[n++] = (Term){(double)(a->most - a->least) / (a->alike - 1), a->alike};
  qsort(term, (size_t)n, sizeof *term, nearest);
  for (int i = 0; i < n; i++)
    if (term[i].by <= fmax(run, SECTOR - 1))
      run += term[i].by * (term[i].n - 1);
    else
      rows *= term[i].n;
  return fmin(rows * ceil(run / SECTOR) * SECTOR, fmax(ceil(whole / SECTOR), 1) * SECTOR);
}

/* Accesses of the same memory that move alike, such as those of a tile, become one access. Their first
 * addresses become a term of it. */
static void joined(Program *p) {
  for (int i = 0; i < p->naccess; i++) {
    Access *a = &p->access[i], *to = NULL;
    for (int j = 0; j < i && !to; j++) {
      Access *b = &p->access[j];
      bool same = b->alike && a->memory == b->memory && a->store == b->store && a->depth == b->depth &&
                  !memcmp(a->loop, b->loop, (size_t)a->depth * sizeof *a->loop) &&
                  !memcmp(a->by, b->by, (size_t)p->ndigit * sizeof *a->by);
      if (same) to = b;
    }
    a->as = to ? to->as : i;
    if (!to) {
      a->alike = 1;
      a->least = a->most = a->lane[0];
      continue;
    }
    if (a->lane[0] == UNKNOWN || (a->lane[0] >= to->least && a->lane[0] <= to->most && to->alike == 1))
      continue;
    to->least = TG_MIN(to->least, a->lane[0]), to->most = TG_MAX(to->most, a->lane[0]);
    to->alike++;
  }
}

static bool is_thread(const UOp *v) { return v->op == OPS_SPECIAL && v->arg.special.local; }

static bool is_grid(const UOp *v) { return v->op == OPS_SPECIAL && !v->arg.special.local; }

/* The bytes that a block reads or writes beyond L1, if L1 has `room` bytes for this access. */
static double block_bytes(const Program *p, const Access *a, double room) {
  double iters[MOST_VARS], bytes = 0, outside = 1;
  for (int v = 0; v < p->nvar; v++)
    iters[v] = is_thread(p->var[v]) ? (double)p->size[v] : 1;
  for (int d = a->depth; d >= 0; d--) { /* loops from number d on are inside */
    if (d < a->depth) iters[a->loop[d]] = (double)p->size[a->loop[d]];
    double now = touched(p, a, iters);
    if (d < a->depth && (a->store ? a->by[p->first[a->loop[d]]] != 0 : now > room)) {
      outside = 1;
      for (int o = 0; o <= d; o++)
        outside *= (double)p->size[a->loop[o]];
      break;
    }
    bytes = now;
  }
  return bytes * outside;
}

/* The bytes that at_once blocks touch together. *waves: the number of times that so many blocks run, one
 * group after the other. */
static double grid_bytes(const Program *p, const Access *a, double at_once, double *waves) {
  double iters[MOST_VARS], left = at_once;
  *waves = 1;
  for (int v = 0; v < p->nvar; v++)
    iters[v] = is_grid(p->var[v]) ? 1 : (double)p->size[v];
  for (int d = 0; d < 3; d++)
    for (int v = 0; v < p->nvar; v++) {
      if (!is_grid(p->var[v]) || p->var[v]->arg.special.dim != d) continue;
      iters[v] = fmin((double)p->size[v], fmax(1, left));
      *waves *= ceil((double)p->size[v] / iters[v]);
      left /= (double)p->size[v];
    }
  return touched(p, a, iters);
}

/* The bytes that all threads of a block touch: in one iteration of each loop, or, if `all`, in all
 * iterations. */
static double block_touched(const Program *p, const Access *a, bool all) {
  double iters[MOST_VARS];
  for (int v = 0; v < p->nvar; v++)
    iters[v] = is_grid(p->var[v]) || (!all && !is_thread(p->var[v])) ? 1 : (double)p->size[v];
  return touched(p, a, iters);
}

/* Whether b, in another loop, reads what a reads, such as a row that is read twice. */
static bool reads_the_same(const Program *p, const Access *a, const Access *b) {
  bool same = b->alike && a->memory == b->memory && !a->store && !b->store && a->lane[0] != UNKNOWN &&
              b->lane[0] != UNKNOWN &&
              fabs((double)(a->lane[0] - b->lane[0])) < fmax(a->of_block, b->of_block);
  for (int d = 0; same && d < p->ndigit; d++)
    same = !is_grid(p->var[p->digit[d].var]) || a->by[d] == b->by[d];
  return same;
}

/* The latency of an access. Data that is read again in a later iteration is in L1. The rest comes from where
 * the whole buffer is. */
static double latency_of(const Program *p, const Access *a, double past_l1) {
  const Target *t = p->t;
  double whole = (double)a->memory->arg.param.nelem * dtype_size((DType)a->memory->dtype),
         asked = block_touched(p, a, false) * a->trips, hit = fmax(0, 1 - past_l1 / fmax(asked, 1));
  double far = (whole <= ROOM * (double)t->cache[LEVEL_L3] ? OF_L2 : 1) * t->latency;
  return hit * READY_L1 + (1 - hit) * far;
}

static void traffic_of(Program *p, double blocks, GridCost *out) {
  const Target *t = p->t;
  double of_block = 0, once = 0, again = 0, waves, reads = 0, under_way = 0;
  double each_us = t->bytes_us[LEVEL_L3], cached = ROOM * (double)t->cache[LEVEL_L3];
  double at_once = (double)t->cores * out->resident;
  joined(p);
  for (int i = 0; i < p->naccess; i++)
    reads += p->access[i].alike && p->access[i].memory->op == OPS_PARAM;
  double room = ROOM * (double)t->cache[LEVEL_L1] / fmax(1, reads * out->resident);
  for (int i = 0; i < p->naccess; i++) {
    Access *a = &p->access[i];
    if (!a->alike || a->memory->op != OPS_PARAM) continue;
    double past_l1 = block_bytes(p, a, room);
    of_block += past_l1;
    a->latency = latency_of(p, a, past_l1);
    a->of_block = block_touched(p, a, true);
    a->once = grid_bytes(p, a, INFINITY, &waves);
    double now = grid_bytes(p, a, at_once, &waves);
    a->again = fmin(now * waves, past_l1 * blocks);
    for (int j = 0; j < i && !a->repeats; j++)
      a->repeats = reads_the_same(p, a, &p->access[j]);
    if (!a->repeats) under_way += fmin(now, a->of_block * fmin(blocks, at_once));
  }
  for (int i = 0; i < p->naccess; i++) { /* a row that is read again is in L2, if that has room for it */
    const Access *a = &p->access[i];
    if (!a->alike || a->memory->op != OPS_PARAM || (a->repeats && under_way <= cached)) continue;
    once += a->once;
    again += a->again;
  }
  out->l2 = fmax(of_block * ceil(blocks / t->cores), of_block * blocks / t->cores) / each_us;
  out->memory =
      (once <= cached ? once : fmax(once, again)) / (REACHED * t->bytes_us[LEVEL_MEMORY] * t->streams);
}

/* ---- one warp, alone */
static double ready_of(const Program *p, const UOp *u) {
  const UOp *x = uop_base(u);
  return number_of(p, x) >= 0 ? p->ready[number_of(p, x)] : 0;
}

static int words_of(const UOp *u) {
  return (int)((u->lanes * dtype_size((DType)u->dtype) + WORD - 1) / WORD);
}

/* The cycle in which a load can start. The words of earlier loads may have to arrive first. */
static double load_begins(Program *p, const UOp *u, double start, double latency) {
  int n = TG_MIN(words_of(u), UNDER_WAY);
  /* n slots are needed: the slot among them that is freed last */
  start = fmax(start, p->arrives[(p->asked + n - 1) % UNDER_WAY]);
  for (int i = 0; i < n; i++)
    p->arrives[p->asked++ % UNDER_WAY] = start + latency;
  return start;
}

/* The instructions of an iteration if a compiler writes out several together. It does so if there are few, no
 * loop and no barrier is inside, and no load has a condition. Otherwise 0. */
static double written_out(const Program *p, int range) {
  double text = 0;
  for (int i = range + 1; i < p->end[range]; i++) {
    const UOp *u = p->lin->at[i], *x = place_of(u);
    if (u->op == OPS_BARRIER || u->op == OPS_RANGE || (u->op == OPS_LOAD && x && index_gate(x))) return 0;
    text += p->cost[i];
  }
  return text <= BESIDE_TEXT ? text : 0;
}

/* Returns the cycle in which the warp has passed `to`, if it was at `from` in cycle `now`. Between two loops
 * or barriers, a compiler orders instructions so that each starts as soon as its operands have arrived, and
 * one starts in each cycle. Every iteration is assumed to take as long as the second one. */
static double warp_run(Program *p, int from, int to, double now) {
  double issued = 0, last = now;
  for (int i = from; i < to; i++) {
    const UOp *u = p->lin->at[i], *x = place_of(u), *m = x ? uop_base(x->src[0]) : NULL;
    if (u->op == OPS_RANGE) {
      double n = trips_of(u), first = warp_run(p, i + 1, p->end[i], last + OF_LOOP);
      now = first;
      if (n > 1) {
        double each = warp_run(p, i + 1, p->end[i], first + OF_LOOP) - first, text = written_out(p, i);
        if (text > 0) each = fmax(text, each / fmin(BESIDE, n));
        now += each * (n - 1);
      }
      i = p->end[i];
      last = now;
      issued = 0;
      continue;
    }
    double start = now + issued, value = u->op == OPS_STORE ? ready_of(p, u->src[1]) : 0;
    bool reg = m && m->op == OPS_DEFINE_REG, copy = m && m->op == OPS_DEFINE_LOCAL && u->op == OPS_STORE &&
                                                    u->src[1]->op == OPS_LOAD && p->t->copies;
    reg |= !x && (u->op == OPS_LOAD || u->op == OPS_STORE);
    if (u->op == OPS_STORE && reg) {
      p->ready[number_of(p, uop_base(u->src[0]))] = value;
      last = fmax(last, value);
      continue;
    }
    if (u->op == OPS_STORE && copy)
      p->copied = fmax(p->copied, value);
    else if (p->cost[i] > 0)
      for (int s = 0; s < u->nsrc; s++)
        start = fmax(start, ready_of(p, u->src[s]));
    if (u->op == OPS_BARRIER) {
      memmove(p->arrived + 1, p->arrived, sizeof p->arrived - sizeof *p->arrived);
      p->arrived[0] = p->copied;
      int64_t keep = u->nsrc ? TG_MIN(u->src[0]->arg.v.i, MOST_GROUPS - 1) : 0;
      start = fmax(fmax(start, last), p->arrived[keep]) + MET;
    }
    double ready = start;
    if (p->cost[i] <= 0)
      for (int s = 0; s < u->nsrc; s++)
        ready = fmax(ready, ready_of(p, u->src[s]));
    else
      ready += READY;
    if (u->op == OPS_LOAD && m && m->op == OPS_PARAM) {
      double latency = p->access[p->access[p->end[i]].as].latency;
      start = load_begins(p, u, start, latency);
      ready = start + latency;
      if (p->apart > 0) { /* such units consume copies faster than L2 delivers them */
        p->fed = fmax(p->fed, start) + p->access[p->end[i]].bytes * p->cycles_a_byte;
        ready = fmax(ready, p->fed + latency);
      }
    }
    if (u->op == OPS_LOAD && m && m->op == OPS_DEFINE_LOCAL) ready = start + READY_SHARED;
    if (u->op == OPS_SHUFFLE) ready = start + READY_SHARED;
    double takes = p->cost[i];
    if (u->op == OPS_WMMA) {
      const MatrixShape *s = &matrix_shapes[u->arg.i];
      ready = start + READY_MATRIX;
      /* all warps wait until all of it is done */
      if (matrix_in_shared(s)) takes = fmax(takes, s->cycles * p->warps);
    }
    p->ready[i] = ready;
    issued += takes;
    if (takes > 0) last = fmax(last, start + takes);
    if (u->op == OPS_BARRIER) now = start, issued = 0;
  }
  return last;
}

/* ---- registers */
/* The words that a thread needs at the same time, at the worst point: the registers that the program names,
 * and each value from where it is computed to its last use. A value that comes into a loop is needed until
 * the end of the loop. */
static int registers_of(Program *p) {
  int n = p->lin->n, now = 0, most = 0, named = 0;
  int *last = mem_alloc(p->mem, ((size_t)n + 1) * sizeof *last),
      *freed = mem_alloc(p->mem, ((size_t)n + 1) * sizeof *freed);
  for (int i = 0; last && freed && i < n; i++) {
    const UOp *u = p->lin->at[i];
    if (u->op == OPS_DEFINE_REG) {
      int64_t each = 1;
      for (int s = 0; s < u->nsrc; s++)
        each *= TG_MAX(u->src[s]->vmax, 1);
      named += (int)TG_MIN(each * TG_MAX(u->arg.param.nelem, 1), 4096) * words_of(u);
    }
    for (int s = 0; s < u->nsrc; s++) {
      int at = number_of(p, uop_base(u->src[s])), to = i;
      if (at < 0) continue;
      for (int j = at + 1; j < i; j++) /* loops that start after the value and contain this use */
        if (p->lin->at[j]->op == OPS_RANGE && p->end[j] > i) {
          to = p->end[j];
          break;
        }
      last[at] = TG_MAX(last[at], to);
    }
  }
  for (int i = 0; last && freed && i < n; i++) {
    const UOp *u = p->lin->at[i];
    bool value = p->cost[i] > 0 && u->op != OPS_STORE && u->op != OPS_RANGE && !p->needed[i] && last[i] > i;
    if (value) {
      now += words_of(u);
      freed[last[i]] += words_of(u);
    }
    most = TG_MAX(most, now);
    now -= freed[i];
  }
  mem_free(p->mem, last), mem_free(p->mem, freed);
  return named + most + OWN_REGISTERS;
}

static void blocks_at_once(const Program *p, double threads, GridCost *out) {
  const Target *t = p->t;
  double local = (double)linear_local_bytes(p->lin), most = MOST_THREADS / threads;
  if (local > 0) most = fmin(most, (double)TG_MAX(t->local_most, t->local_bytes) / local);
  most = fmin(most, REGISTER_WORDS / (fmin(out->registers, 255) * threads));
  out->resident = (int)fmax(1, fmin(floor(most), 32));
}

bool grid_cost(const Target *t, const Linear *lin, TgMem *mem, GridCost *out) {
  Program p = {.t = t, .lin = lin, .mem = mem};
  double threads = 1, blocks = 1, sum = 0;
  *out = (GridCost){0};
  bool ok = opened(&p);
  if (ok && lin->n <= MOST_OPS && looked_through(&p)) {
    for (int d = 0; d < 3; d++)
      threads *= TG_MAX(lin->local[d], 1), blocks *= TG_MAX(lin->global[d], 1);
    double warps = p.warps = ceil(threads / WARP), most = ceil(blocks / t->cores);
    places_computed(&p);
    out->registers = registers_of(&p);
    blocks_at_once(&p, threads, out);
    for (int i = 0; i < p.naccess; i++) {
      const Access *a = &p.access[i];
      int lanes = (int)fmin(threads, WARP);
      bool known = true, local = a->memory->op == OPS_DEFINE_LOCAL;
      for (int j = 0; j < lanes; j++)
        known &= a->lane[j] != UNKNOWN;
      double cycles = !known  ? lanes
                      : local ? bank_cycles(a, lanes)
                              : fmax(pieces(a, lanes, LINE_BYTES), pieces(a, lanes, SECTOR) / 4.0);
      p.shared += a->trips * fmax(1, cycles);
    }
    double compute = fmax(p.issued * WARP / t->ops + p.products, p.apart);
    out->compute = compute * warps * most / t->mhz;
    out->shared = p.shared * warps * most / t->mhz;
    traffic_of(&p, blocks, out);
    p.cycles_a_byte = threads * out->resident * t->mhz / t->bytes_us[LEVEL_L3];
    out->waits = warp_run(&p, 0, lin->n, 0) * ceil(most / out->resident) / t->mhz;
    double part[] = {out->compute, out->shared, out->l2, out->memory, out->waits};
    for (size_t i = 0; i < TG_COUNT(part); i++)
      out->us = fmax(out->us, part[i]), sum += part[i];
    out->us = fmax(out->us + OVERLAP * (sum - out->us), BEGUN * blocks / t->mhz) + FETCHED * p.text / t->mhz;
    double spilled = out->registers - fmin(t->registers, REGISTER_WORDS / threads);
    if (spilled > 0) out->us *= 1 + spilled / SPILLED_TWICE;
  } else
    out->us = INFINITY;
  closed(&p);
  return ok;
}

void grid_cost_print(Str *out, const GridCost *c) {
  str_printf(out, "%12.2f  compute %.2f, shared %.2f, L2 %.2f, memory %.2f, waits %.2f, registers %d x %d  ",
             c->us, c->compute, c->shared, c->l2, c->memory, c->waits, c->registers, c->resident);
}
