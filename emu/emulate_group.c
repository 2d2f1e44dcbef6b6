/* emulate_group.c: matrix units that four warps share and that read shared memory by themselves: PTX's wgmma,
 * with the layouts of its manual. In: descriptors, and the words of a thread's part of the sum. Out: the sum,
 * when it is waited for.
 *
 * A step reads its operands and writes its sum as late as possible, at the wait. Until then the words hold
 * NaN. So code that uses a register too early, or that fills memory that is still being read, is detected. A
 * unit sees bytes that a thread wrote only after that thread has made a fence and all threads have met at a
 * barrier. */
#include "emu/emulate_private.h"
#include <math.h>
#include <string.h>

enum { GROUP = 128, GROUP_DEPTH = 16, ELEMENT = 2, LINE = 128, EIGHT_LINES = 8 * LINE, UNIT = 16 };

/* For descriptors, the shared memory of a block begins at a multiple of 1,024. */
static uintptr_t base_of(const Emu *e) { return e->kernel->module->shared.lo; }

/* Returns a descriptor. Bits 0 to 13 are the address, 16 to 29 the distance between blocks along the row or
 * column, 32 to 45 the distance between groups of eight lines; each is in units of 16 bytes. Bits 62 and 63
 * hold 1: pieces of 16 bytes are swapped within lines of 128 bytes. */
uint64_t emu_group_place(const void *p, uint64_t apart) {
  const Space *shared = &emu_running->kernel->module->shared;
  uintptr_t at = (uintptr_t)p - shared->lo;
  if (at >= shared->size) emu_fail(emu_running, "a matrix unit's operand is not in shared memory");
  if (at % UNIT) emu_fail(emu_running, "misaligned: a matrix unit's operand begins at no multiple of 16");
  return at / UNIT | apart << 16 | (uint64_t)(EIGHT_LINES / UNIT) << 32 | UINT64_C(1) << 62;
}

/* Returns the offset of an operand's element. at: row or column; k: depth. Lines of 128 bytes run along k or,
 * if turned, along the rows or columns. */
static uintptr_t byte_of(uint64_t place, bool turned, uint32_t at, uint32_t k) {
  uint64_t begin = (place & 0x3fff) * UNIT, apart = (place >> 16 & 0x3fff) * UNIT;
  uint64_t eight = (place >> 32 & 0x3fff) * UNIT, inside = LINE / ELEMENT, where = begin;
  uint32_t line = turned ? k : at, along = turned ? at : k;
  if (turned) where += along / inside * apart;
  where += line / 8 * eight + line % 8 * LINE + along % inside * ELEMENT;
  return where ^ ((where >> 7 & 7) << 4);
}

static float value_of(int kind, uint16_t bits) {
  enum { F16_KINDS = 4, BIAS = 112, INFINITE = 31 };

  uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & INFINITE, mantissa = bits & 1023,
           word = (uint32_t)bits << 16;
  if (kind < F16_KINDS) {
    if (!exponent) return (sign ? -1.0f : 1.0f) * (float)mantissa * 0x1p-24f;
    word = sign | (exponent == INFINITE ? 0x7f800000u : (exponent + BIAS) << 23) | mantissa << 13;
  }
  float x;
  memcpy(&x, &word, sizeof x);
  return x;
}

static float element(Emu *e, int kind, uint64_t place, bool turned, uint32_t at, uint32_t k) {
  uintptr_t p = base_of(e) + byte_of(place, turned, at, k);
  uint16_t bits;
  memory_access(e, p, sizeof bits, UNIT_READS);
  memcpy(&bits, (const void *)p, sizeof bits);
  return value_of(kind, bits);
}

/* Computes a thread's part of a sum. Word i is in row 16 w + t / 4, plus 8 if bit 1 of i is set; and in
 * column 2 (t % 4), plus 1 if bit 0 of i is set, plus 8 for each four words before it. */
static void done(Emu *e, const Thread *t, const PendingStep *s) {
  enum { BY_B = 1, BY_A = 2 };

  uint32_t thread = thread_number(e, t) % GROUP, lane = thread % WARP;
  bool b_turned = s->kind & BY_B, a_turned = s->kind & BY_A;
  float a[2][GROUP_DEPTH], b[GROUP_DEPTH];
  for (uint32_t half = 0; half < 2; half++)
    for (uint32_t k = 0; k < GROUP_DEPTH; k++)
      a[half][k] = element(e, s->kind, s->a, a_turned, thread / WARP * 16 + lane / 4 + 8 * half, k);
  for (uint32_t pair = 0; pair < s->columns / 8; pair++)
    for (uint32_t odd = 0; odd < 2; odd++) {
      for (uint32_t k = 0; k < GROUP_DEPTH; k++)
        b[k] = element(e, s->kind, s->b, b_turned, 8 * pair + lane % 4 * 2 + odd, k);
      for (uint32_t half = 0; half < 2; half++) {
        float *word = s->sum[4 * pair + 2 * half + odd];
        double sum = *word;
        for (uint32_t k = 0; k < GROUP_DEPTH; k++)
          sum += (double)a[half][k] * b[k];
        *word = (float)sum;
      }
    }
}

void emu_group_begin(void) { emu_running->current->step_begun = true; }

/* After this, and after all threads have met, a unit sees everything that this thread has written. */
void emu_group_fence(void) { emu_running->current->seen_tick = emu_running->tick++; }

/* Whether one of the first n steps under way adds to a word. */
static bool is_stepped(const Thread *t, const float *word, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (uint32_t w = 0; w < t->steps.at[i].columns / 2; w++)
      if (t->steps.at[i].sum[w] == word) return true;
  return false;
}

void emu_group_step(uint32_t id, uint32_t line, int kind, uint64_t a, uint64_t b, uint32_t vectors,
                    float **sum) {
  Emu *e = emu_running;
  Thread *t = e->current;
  PendingStep s = {
      .a = a, .b = b, .columns = 8 * vectors, .group = t->step_group, .line = line, .kind = kind};
  if (!t->step_begun) emu_fail(e, "wgmma in line %u: no fence before it", line);
  if (!vectors || s.columns > MOST_GROUP_COLUMNS)
    emu_fail(e, "wgmma in line %u: %u columns", line, s.columns);
  if (e->nthread % GROUP) emu_fail(e, "wgmma in line %u: %u threads are no whole groups", line, e->nthread);
  t->warp = (WarpCall){.op = WARP_GROUP, .id = id, .line = line, .mask = UINT32_MAX, .value = a ^ b << 1};
  thread_stop(e, AT_WARP);
  for (uint32_t i = 0; i < s.columns / 2; i++) {
    s.sum[i] = sum[i / 4] + i % 4;
    s.follows[i] = is_stepped(t, s.sum[i], t->steps.len);
    if (s.follows[i] && !isnan(*s.sum[i]))
      emu_fail(e, "wgmma in line %u: its sum was written meanwhile", line);
    s.held[i] = *s.sum[i];
    *s.sum[i] = NAN;
  }
  if (!vec_push(e->mem, &t->steps, s)) {
    e->fail_status = TG_ERR_NOMEM;
    emu_fail(e, "out of memory");
  }
}

void emu_group_commit(void) { emu_running->current->step_group++; }

/* Waits for all committed groups except the last `left`. */
void emu_group_wait(int left) {
  Emu *e = emu_running;
  Thread *t = e->current;
  size_t over = 0;
  uint32_t now = t->step_group;
  for (; over < t->steps.len && t->steps.at[over].group + (uint32_t)left < now; over++) {
    PendingStep *s = &t->steps.at[over];
    for (uint32_t w = 0; w < s->columns / 2; w++)
      if (!s->follows[w]) *s->sum[w] = s->held[w];
    done(e, t, s);
  }
  for (size_t i = 0; i + over < t->steps.len; i++)
    t->steps.at[i] = t->steps.at[i + over];
  t->steps.len -= over;
  /* the remaining steps continue from the finished sums */
  for (size_t i = 0; i < t->steps.len; i++)
    for (uint32_t w = 0; w < t->steps.at[i].columns / 2; w++) {
      PendingStep *s = &t->steps.at[i];
      if (!s->follows[w] || is_stepped(t, s->sum[w], i)) continue;
      s->follows[w] = false;
      s->held[w] = *s->sum[w];
      *s->sum[w] = NAN;
    }
  if (!t->steps.len) t->step_begun = false;
}

void groups_ended(Emu *e) {
  for (uint32_t i = 0; i < e->nthread && !e->failed; i++)
    if (e->threads[i].steps.len)
      emu_fail_at(e, &e->threads[i], "ends while a matrix unit steps its registers, since line %u",
                  e->threads[i].steps.at[0].line);
}
