/* traffic.c: what a nest moves through memory (plan.h). In: its levels. Out: cycles for each level of
 * memory, and cycles in which something is waited for.
 *
 *   traffic: for each level of memory, what each operand moves into it. That is the bytes below the
 *            outermost loop whose footprint fits the level, times the iterations outside; nothing if all fits
 *   pages:   the same, with the pages that a core knows as a level of memory */
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>

/* LANES: of a vector in the kernels. NEAR_ROWS: the largest distance in bytes from one row to the next for
 * which hardware prefetches the row as it does the next line. STREAMS: rows read at the same time that
 * hardware can follow. */
enum { LANES = TILE_LANES, PAGE = 4096, NEAR_ROWS = 4 * LINE, STREAMS = 32 };

/* A run of bytes that is moved into the level costs as much as a run that is this many bytes longer. */
static const double short_run[LEVEL_MEMORY] = {0, 128, 256};
/* The part of a level that a working set can use, because the pages of its rows are anywhere. */
static const double ROOM = 0.7;
/* Cycles until a row arrives from memory, besides what is computed meanwhile. */
static const double ROW_BEGUN = 80;
/* Cycles until the stream of a row is recognised and prefetched. A Zen 2 reads 6 parallel rows of 1.2 KB at
 * 10.6 GB/s, of 3 KB at 17, of 8 KB at 21, and at 25 if each row continues: 60 ns a row. */
static const double STREAM_BEGUN = 200;
/* What each stream after the first adds to the rate. On a Zen 2 one stream reads 15.5 GB/s, two 19, three 21,
 * four 23, six 25. As many cores as memory serves at once read 25 with one stream each, and 33 with six. More
 * cores gain only from the second stream. */
static const double STREAM_GAIN = 0.15, MOST_STREAMS = 5, SHARED_GAIN = 0.06, MOST_SHARED = 6;

/* The bytes of a level that rows occupy. Rows that fall into the same set evict each other. */
static double taken_up(const Target *t, Footprint f, int level) {
  if (f.blocks <= 1 || f.stride <= 0) return f.bytes;
  double sets = (double)(t->cache[level] / t->ways[level] / 64);
  double apart = f.stride / 64, distinct = sets; /* number of sets that the beginnings of rows fall into */
  if (apart == floor(apart)) {
    int64_t a = (int64_t)apart, b = (int64_t)sets;
    while (b) {
      int64_t rest = a % b;
      a = b;
      b = rest;
    }
    distinct = sets / (double)a;
  }
  double worst = f.blocks * f.lines / fmin(sets, distinct * f.lines);
  return worst > t->ways[level] * 0.7 ? fmax(f.bytes, (double)t->cache[level] * worst / t->ways[level])
                                      : f.bytes;
}

bool is_far(const KernelShape *c, const Access *a) {
  return a->whole > (double)c->target->cache[LEVEL_L3] / 8 || (a->streamed && is_nested(c));
}

static double pages_in(Footprint f) {
  double block = f.lines * LINE;
  return f.stride >= PAGE ? f.blocks * ceil(block / PAGE) : fmax(1, f.blocks * fmax(f.stride, block) / PAGE);
}

void footprints_of(const Plan *p, Footprints *footprints) {
  const KernelShape *c = p->c;
  for (int i = 0; i <= p->n; i++) {
    footprints->all[i] = footprints->pages[i] = 0;
    for (int a = 0; a < c->naccess; a++) {
      /* this loop does not move the access */
      bool same = i && !(c->access[a].moves >> p->level[i - 1].loop & 1);
      const double *ext = i ? p->level[i - 1].ext : p->whole;
      Footprint f = same                   ? footprints->of[i - 1][a]
                    : p->staged_at[a] >= 0 ? footprint_of_copy(p, a, ext)
                                           : access_footprint(&c->access[a], ext);
      footprints->of[i][a] = f;
      footprints->all[i] += f.bytes;
      footprints->pages[i] += pages_in(f);
    }
  }
}

/* The bytes by which an access moves in an iteration of a level. */
static double moved_by(const Plan *p, const Access *x, const Level *l) {
  double by = (double)llabs(access_step(x, l->loop)) * x->bytes;
  return p->top >> l->loop & 1 ? by : by * l->ext[l->loop];
}

/* The bytes that the loops from level `own` inwards read one after another, with gaps of at most `gap`. */
static double run_read(const Plan *p, const Footprints *footprints, int a, int own, double gap) {
  const Access *x = &p->c->access[a];
  double run = footprints->of[p->n][a].run;
  for (int i = p->n - 1; i >= own; i--) {
    const Level *l = &p->level[i];
    if (!(x->moves >> l->loop & 1)) continue;
    double by = moved_by(p, x, l);
    if (by > fmax(run, gap)) break;
    run = fmax(run, by * l->trips);
  }
  return run;
}

/* How much longer memory takes to deliver an access line by line, if other lines are between its lines and
 * are read later. Consecutive lines arrive twice as fast. */
static double lines_missed(const Plan *p, const Footprints *footprints, int a, int own) {
  double run = run_read(p, footprints, a, own, LINE);
  return run < run_read(p, footprints, a, own, NEAR_ROWS) ? 1 + LINE / fmax(run, LINE) : 1;
}

/* The bytes that an access moves into a level: the bytes below the outermost loop that fit it, for each
 * iteration outside. Loops just outside that do not move the access do not read it again. */
static double moved(const Plan *p, const Footprints *footprints, int a, int fits, int level) {
  const Access *x = &p->c->access[a];
  bool once = !x->in_sum && !p->c->plain && p->blocks > 1; /* in the last block alone */
  const Target *t = p->c->target;
  int own = p->n;
  for (int i = p->n; i >= fits; i--) {
    if (taken_up(t, footprints->of[i][a], level) > ROOM * (double)t->cache[level]) break;
    own = i;
  }
  /* read from memory, however small it is */
  bool decoded = x->streamed && is_nested(p->c) && p->staged_at[a] < 0;
  if (own == 0 && decoded) return x->whole * lines_missed(p, footprints, a, own);
  if (own == 0 || (p->staged_at[a] >= own && !is_prepacked(x))) return 0;
  Footprint f = footprints->of[own][a];
  bool streams = a >= p->c->nstore && p->c->reduce && p->staged_at[a] < 0;
  double bytes = f.bytes, run = f.run;
  if (streams) /* the hardware prefetches a line that is near */
    run = fmin(run, run_read(p, footprints, a, own, NEAR_ROWS));
  const Level *around = &p->level[own - 1];
  int64_t step = access_step(x, around->loop);
  bool whole = (double)step * x->bytes * around->ext[around->loop] == f.run;
  /* More lines at once than a set has: each is evicted before the next iteration reads on. (Stores:
   * lines_awaited.) */
  bool evicted =
      a >= p->c->nstore && own == p->n && f.run < LINE && taken_up(t, f, level) > (double)t->cache[level];
  bool continues = step == 1 || (whole && (!p->c->reduce || is_summed_over(p->c, around->loop)));
  bool goes_on = continues && !evicted;
  Footprint outside = footprints->of[own - 1][a];
  if (goes_on && f.rows <= STREAMS) { /* the next iteration continues where this one ends */
    bytes = f.rows * f.run;
    if (run == f.run) run *= around->trips;
  } else if ((x->computed >> around->loop & 1) && !x->found && outside.bytes < bytes * around->trips) {
    /* an iteration's share, because the next one mostly reads near this one */
    bytes = outside.bytes / around->trips;
    run = outside.run;
  }
  int at = own - 1;
  while (at >= 0 && !(x->moves >> p->level[at].loop & 1))
    at--;
  for (; at >= 0; at--)
    bytes *= is_around(p, x->body, at) ? p->level[at].trips : 1;
  if (once) bytes /= p->blocks;
  /* Elements at places that are data are spread over the whole memory: the level holds the share of them that
   * fits it. */
  if (x->found && x->whole > 0) bytes *= fmax(0, 1 - ROOM * (double)t->cache[level] / x->whole);
  /* rows that are this close are read like one run */
  bool near = a >= p->c->nstore && f.stride > 0 && f.stride <= NEAR_ROWS;
  double begun = near ? 0 : short_run[level];
  if (streams && is_nested(p->c) && level + 1 == LEVEL_MEMORY) bytes *= lines_missed(p, footprints, a, own);
  return bytes * (a < p->c->nstore ? 2 : 1) * (run + begun) / run;
}

double turned_run(const Plan *p, const Access *x) {
  double run = 0;
  for (uint32_t at = x->moves; at; at &= at - 1) {
    int r = __builtin_ctz(at);
    if (r != p->vec && p->up[r] >= 4 && access_step(x, r) == 1) run = fmin(p->up[r], LANES);
  }
  return run;
}

/* Cycles in which stores wait for cache lines that were in L1 before. If each lane of an output is in a cache
 * line of its own, the lines are loaded one by one. They evict each other if they are in the same set, before
 * the next element of the line is written. */
static double lines_awaited(const Plan *p, const Footprints *footprints) {
  const Target *t = p->c->target;
  double cycles = 0;
  for (int a = 0; a < p->c->nstore; a++) {
    const Access *x = &p->c->access[a];
    int own = p->n + 1;
    if (p->vec >= 0 && access_step(x, p->vec) == 1) continue;
    while (own > 0 && taken_up(t, footprints->of[own - 1][a], LEVEL_L1) <= (double)t->cache[LEVEL_L1])
      own--;
    Footprint f = footprints->of[TG_MIN(own, p->n)][a];
    if (own == 0 || f.run >= LINE) continue;
    double lines = own <= p->n ? f.blocks * f.lines : f.rows * (turned_run(p, x) ? 1 : f.run / x->bytes);
    for (int at = TG_MIN(own, p->n) - 1; at >= 0; at--) {
      bool again =
          /* each block adds to the output */
          p->c->plain && at < p->ntile && is_summed_over(p->c, p->level[at].loop);
      lines *= again || x->moves >> p->level[at].loop & 1 ? p->level[at].trips : 1;
    }
    cycles += fmax(0, lines - x->whole / LINE) * t->line_wait;
  }
  return cycles;
}

double traffic_of(const Plan *p, const Footprints *footprints, int level, double *copied) {
  const Target *t = p->c->target;
  int fits = p->n; /* all operands together fit below the loop before this level */
  double all = 0;
  for (int i = p->n; i >= 0 && footprints->all[i] <= ROOM * (double)t->cache[level]; i--)
    fits = i;
  double each[MAX_ACCESS];
  for (int a = 0; a < p->c->naccess; a++) {
    const Access *x = &p->c->access[a];
    bool own = x->beside < 0 || p->staged_at[a] >= 0 || p->staged_at[x->beside] >= 0;
    each[a] = moved(p, footprints, a, fits, level);
    if (own) continue;
    each[x->beside] = fmax(each[x->beside], each[a]);
    each[a] = 0;
  }
  *copied = 0;
  for (int a = 0; a < p->c->naccess; a++) {
    all += each[a];
    if (p->staged_at[a] >= 0) *copied += each[a] / cycle_bytes(t, level + 1);
  }
  return all / cycle_bytes(t, level + 1);
}

/* The factor by which the iterations of a level increase the pages below it. If a page holds two iterations,
 * the next page is translated in the background. A copy is read from end to end. */
static double pages_added(const Plan *p, int access, int level) {
  const Access *a = &p->c->access[access];
  const Level *l = &p->level[level];
  if (p->staged_at[access] >= 0) return a->moves >> l->loop & 1 ? l->trips : 1;
  double by = (double)llabs(access_step(a, l->loop)) * a->bytes * l->ext[l->loop];
  return fmax(1, l->trips * fmin(1, 2 * by / PAGE - 1));
}

/* The number of pages that are no longer known when they are read again: the pages below the outermost loop
 * below which all are known, for each iteration outside. As long as an access stays in one page, that is
 * known. */
static double pages_missed(const Plan *p, const Footprints *footprints) {
  int own = p->n;
  double all = 0, known = p->c->target->pages;
  if (known == 0 || footprints->pages[0] <= known) return 0;
  while (own > 0 && footprints->pages[own - 1] <= known)
    own--;
  for (int a = 0; a < p->c->naccess; a++) {
    bool copied = p->staged_at[a] >= 0, stays = true;
    double n = copied ? footprints->of[own][a].bytes / PAGE : pages_in(footprints->of[own][a]), some = n;
    for (int at = own - 1; at >= 0; at--) {
      n *= stays ? pages_added(p, a, at) : is_around(p, p->c->access[a].body, at) ? p->level[at].trips : 1;
      stays = n <= fmax(1, some);
    }
    all += stays ? 0 : n;
  }
  return all;
}

/* Cycles of waiting for rows. This counts accesses to memory for which the innermost loop that moves them
 * goes to another page in each iteration, so that no prefetcher predicts it. A copy requests many rows at the
 * same time. */
static double rows_begun(const Plan *p, const Footprints *footprints) {
  double cycles = 0;
  for (int a = p->c->nstore; a < p->c->naccess; a++) {
    const Access *x = &p->c->access[a];
    int at = p->n - 1;
    if (!x->in_sum || p->staged_at[a] >= 0 || !is_far(p->c, x)) continue;
    while (at >= 0 && !(x->moves >> p->level[at].loop & 1))
      at--;
    if (at < 0) continue;
    const Level *l = &p->level[at];
    double run = fmax(footprints->of[at + 1][a].run, LINE);
    bool leaps = moved_by(p, x, l) >= PAGE;
    if (leaps) cycles += footprints->of[0][a].bytes / run * ROW_BEGUN * fmax(0, 1 - run / PAGE);
  }
  return cycles;
}

/* The number of rows of an access that one step reads in parallel, each as a stream. 0: the access is not
 * read as streams. */
static double rows_of(const Plan *p, int access) {
  const Access *x = &p->c->access[access];
  double rows = 1;
  if (!x->streamed || !is_far(p->c, x) || p->staged_at[access] >= 0) return 0;
  for (int r = 0; r < p->c->n; r++)
    if (r != p->vec && !is_summed_over(p->c, r) && (double)llabs(access_step(x, r)) * x->bytes >= LINE)
      rows *= p->up[r];
  return rows;
}

/* The bytes that a stream reads one after another in the whole kernel. The gaps between its runs may be what
 * other reads of the same memory use. */
static double stream_read(const Plan *p, const Footprints *footprints, int access) {
  const KernelShape *c = p->c;
  bool others = false;
  for (int a = c->nstore; a < c->naccess; a++)
    others |= a != access && c->access[a].in_sum && c->access[a].slot == c->access[access].slot;
  return run_read(p, footprints, access, 0, others ? 4 * PAGE : NEAR_ROWS);
}

/* Cycles in which new streams are recognised. If several rows are read in parallel, the next rows are behind
 * the last of them, unless each row continues in its own part of the matrix (UPCASTTOP). */
static double streams_begun(const Plan *p, const Footprints *footprints) {
  double cycles = 0;
  for (int a = p->c->nstore; a < p->c->naccess; a++)
    if (rows_of(p, a) > 1)
      cycles += footprints->of[0][a].bytes / stream_read(p, footprints, a) * STREAM_BEGUN;
  return cycles;
}

double streams_gain(const Plan *p, const Footprints *footprints, int ncores) {
  int cores = p->c->target->streams; /* number of cores that memory serves at once */
  double each = ncores == cores ? SHARED_GAIN : STREAM_GAIN, streams = 0;
  double most = ncores < cores ? MOST_STREAMS : ncores == cores ? MOST_SHARED : 2;
  for (int a = p->c->nstore; a < p->c->naccess; a++) {
    bool had = false;
    for (int b = p->c->nstore; b < a; b++)
      had |= p->c->access[b].slot == p->c->access[a].slot;
    if (!had && stream_read(p, footprints, a) >= PAGE) streams += rows_of(p, a);
  }
  return 1 + each * fmax(fmin(streams, most) - 1, 0);
}

double waits_of(const Plan *p, const Footprints *footprints) {
  double cycles = pages_missed(p, footprints) * p->c->target->page_miss;
  return cycles + rows_begun(p, footprints) + streams_begun(p, footprints) + lines_awaited(p, footprints);
}
