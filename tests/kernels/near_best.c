/* near_best.c: how near the lists of opts that the planner chooses for a device are to the best that random
 * changes find, by time. In: names of programs of choices.def, kernels as text (TG_DUMP writes them). Out: a
 * line per kernel: us of the chosen list, of the best one, and both lists. Each list's numbers are compared
 * with those of plain loops: the exit status is 1 if one differs, so that this is a test of opts as well.
 *
 *   build/near_best [lists=300] [seed=1] [ratio=1.15] conv_3x3 folder/k004-r_64_64.0-input.uop ..
 *   build/near_best list="UPCAST r0 4, VEC r1 16" matmul_64        # this list alone, with the chosen one
 *   build/near_best dev=CUDA lock=FILE ..     # one of several at a time has the device, while all compile
 *   build/near_best all=1 ..                  # each list that was tried, with its time
 *   build/near_best at=20 ..                  # variables are 20 where it is timed; without, the most they may be
 *
 * One core and no cache of kernels; times are the least of many, taken by turns. */
#define _GNU_SOURCE
#include "kernels/choices.h"
#include "uop/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <fcntl.h>

/* MOST_TEXT: bytes of a kernel that is worth waiting for its compiler, or twice the chosen one's. */
enum {
  BATCH = 25,
  MOST_SLOTS = 64,
  MOST_TEXT = 30000,
  MOST_KNOWN = 20000,
  TURNS = 12,
  BINDINGS = 4, /* of variables, for which numbers are compared: where it is timed, the least, two others */
  COMPARED_US = 1000000,
  LEAST_WORK_US = 400,
  QUEUED_WORK_US = 1000, /* of a device that is waited for at the end */
  MOST_COMPARED = 1 << 20
};

typedef struct Options {
  int lists;
  unsigned seed;
  double ratio; /* lists are printed of what is further from the best */
  const char *list, *device;
  bool all; /* each list is printed, with its us */
  int64_t at;
  int lock; /* a file, which is locked while the device runs something; -1: none */
} Options;

typedef struct Trial {
  char list[LONGEST_LIST];
  UOpStore *st;
  Linear lin;
  Str text;
  Program *program;
  double us;
} Trial;

/* One kernel while it is looked at. */
typedef struct Bench {
  TgContext *ctx;
  Device *dev;
  UOpStore *st;
  UOp *ast;
  Arena arena;
  int nslot, lock;
  void *buf[MOST_SLOTS], *given[MOST_SLOTS]; /* the device's: what a launch gets; what stood there before */
  uint8_t *is[MOST_SLOTS];                   /* the host's, after a launch */
  uint8_t *plain[BINDINGS][MOST_SLOTS];      /* .. after that of plain loops */
  int nbinding;
  int64_t at;
  bool stored[MOST_SLOTS];
  DType dtype[MOST_SLOTS];
  int64_t nelem[MOST_SLOTS];
  int64_t vars[MOST_SLOTS];
  ListChanges may;
  char *known[MOST_KNOWN]; /* lists that the planner considered */
  int nknown, tried, wrong;
  size_t most_text;
} Bench;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* ---- numbers */
/* Bits of an element that are a number below 2; of what may be an index, one of the first. */
static void element_draw(uint8_t *at, DType d, unsigned *seed) {
  uint32_t bits = list_draw(seed) & 0xffff;
  float f = (float)bits / 32768 - 1;
  uint32_t single;
  memcpy(&single, &f, sizeof single);
  switch (d) {
  case DT_F32: memcpy(at, &f, 4); return;
  case DT_F64: memcpy(at, &(double){f}, 8); return;
  case DT_BF16: memcpy(at, &(uint16_t){(uint16_t)(single >> 16)}, 2); return;
  case DT_F16: memcpy(at, &(uint16_t){(uint16_t)((bits & 0x83ff) | 0x3800)}, 2); return;
  case DT_FP8E4M3:
  case DT_FP8E5M2: *at = (uint8_t)(bits & 0xb7); return;
  case DT_BOOL: *at = bits & 1; return;
  case DT_I8:
  case DT_U8: *at = (uint8_t)bits; return;
  default: memset(at, 0, dtype_size(d)), *at = bits & 7; return; /* little-endian */
  }
}

static double element(const uint8_t *at, DType d) {
  uint16_t half;
  uint32_t single;
  float f;
  double wide;
  int64_t whole = 0;
  switch (d) {
  case DT_F32: return memcpy(&f, at, 4), f;
  case DT_F64: return memcpy(&wide, at, 8), wide;
  case DT_BF16: memcpy(&half, at, 2), single = (uint32_t)half << 16; return memcpy(&f, &single, 4), f;
  case DT_F16: {
    memcpy(&half, at, 2);
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double v = exponent == 31  ? (fraction ? NAN : INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return half >> 15 ? -v : v;
  }
  default: return memcpy(&whole, at, dtype_size(d)), (double)whole;
  }
}

/* Sums in another order: the largest difference that rounding explains, of numbers up to `most`. */
static double tolerance(DType d, double most) {
  switch (d) {
  case DT_F64: return 1e-11 * most;
  case DT_F32: return 1e-3 * most; /* what is divided by a small sum amplifies it */
  case DT_F16: return 4e-3 * most;
  case DT_BF16: return 3e-2 * most;
  case DT_FP8E4M3:
  case DT_FP8E5M2: return 1; /* neighbours */
  default: return 0;
  }
}

static size_t slot_bytes(const Bench *b, int s) { return (size_t)b->nelem[s] * dtype_size(b->dtype[s]); }

static bool memory_read(const Bench *b, uint8_t *const *to) {
  bool ok = true;
  for (int s = 0; ok && s < b->nslot; s++)
    ok = !b->stored[s] || !b->dev->backend->copy_out(b->dev, to[s], b->buf[s], slot_bytes(b, s));
  return ok;
}

/* Whether memory holds what plain loops leave there. Of what is very long, some are compared. */
static bool same_values(const Bench *b, int binding) {
  if (!memory_read(b, b->is)) return false;
  for (int s = 0; s < b->nslot; s++) {
    const uint8_t *is = b->is[s], *want = b->plain[binding][s];
    if (!b->stored[s] || !memcmp(is, want, slot_bytes(b, s))) continue;
    size_t size = dtype_size(b->dtype[s]);
    int64_t step = b->nelem[s] / MOST_COMPARED | 1;
    double most = 0;
    for (int64_t i = 0; i < b->nelem[s]; i += step)
      most = fmax(most, fabs(element(want + (size_t)i * size, b->dtype[s])));
    for (int64_t i = 0; i < b->nelem[s]; i += step) {
      double x = element(is + (size_t)i * size, b->dtype[s]),
             y = element(want + (size_t)i * size, b->dtype[s]);
      bool alike = (isnan(x) && isnan(y)) || x == y || fabs(x - y) <= tolerance(b->dtype[s], most);
      if (!alike) return printf("  p%d[%lld]: %.9g, not %.9g\n", s, (long long)i, x, y), false;
    }
  }
  return true;
}

/* ---- trials */
static void memory_reset(Bench *b) {
  for (int s = 0; s < b->nslot; s++)
    if (b->stored[s]) b->dev->backend->copy(b->dev, b->buf[s], b->given[s], slot_bytes(b, s));
}

/* Nobody else has the device in between. */
static void device_taken(const Bench *b, bool taken) {
  if (b->lock >= 0) flock(b->lock, taken ? LOCK_EX : LOCK_UN);
}

/* Memory for each PARAM, and what a list may name. */
static bool bench_begin(Bench *b, unsigned seed) {
  static const char *const ops[] = {"LOCAL", "UPCAST", "VEC",       "UNROLL", "GROUP",
                                    "TILE",  "VEC",    "UPCASTTOP", "TILE",   "SWAP"};
  bool grid = b->dev->target.warp > 1; /* LOCAL is an opt of a grid */

  UOpVec order = {0};
  bool ok = uop_toposort(b->st, &b->ctx->mem, &b->ast, 1, &order);
  int64_t loops = 1;
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (u->op == OPS_RANGE) loops = TG_MAX(loops, u->arg.range.id + 1);
    if (u->op == OPS_STORE && uop_base(u->src[0])->op == OPS_INDEX)
      b->stored[uop_base(uop_base(u->src[0])->src[0])->arg.param.slot] = true;
    if (u->op != OPS_PARAM) continue;
    int s = (int)u->arg.param.slot;
    ok = s < MOST_SLOTS;
    if (!ok || b->buf[s]) continue;
    b->nslot = TG_MAX(b->nslot, s + 1);
    b->dtype[s] = (DType)u->dtype, b->nelem[s] = u->arg.param.nelem;
    ok = !b->dev->backend->alloc(b->dev, slot_bytes(b, s) + 64, &b->buf[s]) &&
         !b->dev->backend->alloc(b->dev, slot_bytes(b, s) + 64, &b->given[s]);
    b->is[s] = malloc(slot_bytes(b, s) + 8);
    ok = ok && b->is[s];
    for (int i = 0; i < BINDINGS; i++)
      ok = (b->plain[i][s] = malloc(slot_bytes(b, s) + 8)) && ok;
    for (int64_t e = 0; ok && e < b->nelem[s]; e++)
      element_draw(b->is[s] + (size_t)e * dtype_size(b->dtype[s]), b->dtype[s], &seed);
    ok = ok && !b->dev->backend->copy_in(b->dev, b->given[s], b->is[s], slot_bytes(b, s)) &&
         !b->dev->backend->copy(b->dev, b->buf[s], b->given[s], slot_bytes(b, s));
  }
  vec_free(&b->ctx->mem, &order);
  b->may = (ListChanges){ops + !grid, (unsigned)TG_COUNT(ops) - !grid, (unsigned)loops,
                         (unsigned)TG_MAX(b->nslot - 1, 0)};
  return ok;
}

static void bench_end(Bench *b) {
  for (int s = 0; s < b->nslot; s++) {
    if (b->buf[s]) b->dev->backend->free(b->dev, b->buf[s], slot_bytes(b, s) + 64);
    if (b->given[s]) b->dev->backend->free(b->dev, b->given[s], slot_bytes(b, s) + 64);
    free(b->is[s]);
    for (int i = 0; i < BINDINGS; i++)
      free(b->plain[i][s]);
  }
  for (int i = 0; i < b->nknown; i++)
    free(b->known[i]);
  arena_free(&b->arena);
}

static void trial_end(Bench *b, Trial *t) {
  if (t->program) b->dev->backend->unload(b->dev, t->program);
  store_free(t->st), str_free(&t->text);
  *t = (Trial){.us = INFINITY};
}

/* list NULL: the chosen one. costs: NULL, or where the lists that were considered are written. */
static bool trial_begin(Bench *b, Trial *t, const char *list, Str *costs) {
  const Renderer *ren = b->dev->backend->renderer;
  CodegenOptions co = codegen_options(b->ctx, b->dev, ren, list);
  TgError ignored = {0};
  Str taken;
  co.costs = costs;
  if (list) co.passes = NULL; /* TG_DUMP writes what is chosen */
  *t = (Trial){.us = INFINITY};
  str_init(&t->text, &b->ctx->mem), str_init(&taken, &b->ctx->mem);
  bool ok =
      !codegen_lower(&b->ctx->mem, b->ast, b->st, ren, &co, &b->arena, &t->st, &t->lin, &taken, &ignored);
  if (!ok) t->st = NULL;
  ok = ok && ren->render(&t->text, &t->lin, &ignored) && t->text.len <= b->most_text;
  snprintf(t->list, sizeof t->list, "%s", list ? list : str_text(&taken));
  str_free(&taken);
  if (!ok) trial_end(b, t);
  return ok;
}

/* Compiled side by side; where one does not compile, each alone. */
static void trials_compile(Bench *b, Trial *t, int n) {
  KernelSpec spec[BATCH] = {0};
  Program *out[BATCH] = {0};
  for (int i = 0; i < n; i++)
    spec[i] = kernel_spec(&t[i].lin, str_text(&t[i].text));
  if (n && b->dev->backend->compile(b->dev, spec, n, out))
    for (int i = 0; i < n; i++)
      if (b->dev->backend->compile(b->dev, &spec[i], 1, &out[i]))
        printf("  does not compile: %s: %s\n", t[i].list, tg_errmsg(b->ctx)), out[i] = NULL, b->wrong++;
  for (int i = 0; i < n; i++)
    t[i].program = out[i];
  tg_clear_error(b->ctx);
}

static int64_t bound(const Bench *b, const UOp *var, int binding) {
  int64_t more = var->vmax - var->vmin;
  switch (binding) {
  case 0: return b->at ? TG_MAX(TG_MIN(b->at, var->vmax), var->vmin) : var->vmax;
  case 1: return var->vmin;
  case 2: return var->vmin + more / 3;
  default: return var->vmin + more - more / 7;
  }
}

static double run_us(Bench *b, const Trial *t, int times, int binding) {
  Launch l = {.program = t->program, .bufs = b->buf, .vars = b->vars, .nbuf = t->lin.nparam};
  for (int i = 0; i < t->lin.n; i++)
    if (t->lin.at[i]->op == OPS_VAR && l.nvar < MOST_SLOTS)
      b->vars[l.nvar++] = bound(b, t->lin.at[i], binding);
  if (l.nvar) b->nbinding = BINDINGS;
  if (b->dev->backend->sync(b->dev)) return INFINITY;
  double begin = now_us();
  for (int i = 0; i < times; i++)
    if (b->dev->backend->launch(b->dev, &l)) return INFINITY;
  return b->dev->backend->sync(b->dev) ? INFINITY : (now_us() - begin) / times;
}

static int times_of(const Bench *b, double us) {
  double least = b->dev->backend->has & HAS_QUEUE ? QUEUED_WORK_US : LEAST_WORK_US;
  return us < least ? (int)(least / fmax(us, 0.05)) + 1 : 1;
}

/* Right numbers, and the least time of some runs; what is much slower than the best is left at once. */
static void trial_run(Bench *b, Trial *t, double best) {
  if (!t->program) return;
  double us = INFINITY;
  for (int i = b->nbinding; i-- > 0;) {
    memory_reset(b);
    us = run_us(b, t, 1, i);
    if (same_values(b, i)) continue;
    printf("  wrong: %s\n", t->list);
    b->wrong++;
    return;
  }
  b->tried++;
  for (int i = 0; i < 4 && us < (i < 2 ? 3 : 1.5) * best + 2; i++)
    us = fmin(us, run_us(b, t, times_of(b, us), 0));
  t->us = us;
}

/* ---- the search */
static void lists_known(Bench *b, const Str *costs) {
  char *text = strdup(str_text(costs));
  for (char *line = strtok(text, "\n"); line && b->nknown < MOST_KNOWN; line = strtok(NULL, "\n")) {
    char *list = strstr(line, "  ");
    while (list && strstr(list + 2, "  "))
      list = strstr(list + 2, "  ");
    if (list) b->known[b->nknown++] = strdup(list + 2);
  }
  free(text);
}

/* Of the chosen list, the best one, one that the planner considered, or none: a few things changed. */
static void list_next(Bench *b, int i, const char *own, const char *best, char *from, char *out,
                      unsigned *seed) {
  bool considered = b->nknown && i % 4 == 1;
  const char *start = i % 4 == 0    ? own
                      : considered  ? b->known[list_draw(seed) % (unsigned)b->nknown]
                      : i % 4 == 2  ? best
                      : i % 16 == 3 ? ""
                                    : from;
  snprintf(out, LONGEST_LIST, "%s", start);
  for (unsigned c = considered ? list_draw(seed) % 2 : 1 + list_draw(seed) % 3; c; c--)
    list_changed(out, &b->may, seed);
}

/* By turns, for so long that both have run while nobody else did. */
static double compared(Bench *b, const Trial *own, const Trial *best, double us[2]) {
  us[0] = us[1] = INFINITY;
  double begin = now_us();
  for (int i = 0; i < TURNS || now_us() - begin < COMPARED_US; i++) {
    us[0] = fmin(us[0], run_us(b, own, times_of(b, own->us), 0));
    us[1] = fmin(us[1], run_us(b, best, times_of(b, own->us), 0));
  }
  return us[0] / us[1];
}

static double searched(Bench *b, const Options *o, const char *name, Trial *own, Trial *best) {
  char from[LONGEST_LIST];
  unsigned seed = o->seed;
  snprintf(from, sizeof from, "%s", own->list);
  for (int i = 0, tries = 0; i < o->lists && tries < 20 * o->lists;) {
    Trial t[BATCH];
    int n = 0;
    for (; n < BATCH && n < o->lists - i && tries < 20 * o->lists; tries++) {
      char list[LONGEST_LIST];
      list_next(b, tries, own->list, best->program ? best->list : own->list, from, list, &seed);
      if (trial_begin(b, &t[n], list, NULL)) {
        n++;
        snprintf(from, sizeof from, "%s", list);
      }
    }
    trials_compile(b, t, n);
    device_taken(b, true);
    for (int k = 0; k < n; k++) {
      trial_run(b, &t[k], fmin(own->us, best->us));
      if (o->all) printf("    %.2f %s\n", t[k].us, t[k].list);
      if (t[k].us < best->us && t[k].us < own->us) {
        trial_end(b, best);
        *best = t[k];
      } else
        trial_end(b, &t[k]);
    }
    device_taken(b, false);
    i += n;
  }
  device_taken(b, true);
  double us[2] = {own->us, own->us}, ratio = best->program ? compared(b, own, best, us) : 1;
  device_taken(b, false);
  ratio = fmax(ratio, 1);
  printf("%-28s %10.1f %10.1f  %.2f  %d\n", name, us[0], us[1], ratio, b->tried);
  if (ratio > o->ratio) printf("  chosen: %s\n  best:   %s\n", own->list, best->list);
  fflush(stdout);
  return ratio;
}

static double kernel_looked_at(Bench *b, const Options *o, const char *name) {
  Trial plain = {0}, own = {0}, best = {.us = INFINITY};
  Str costs;
  double ratio = 0;
  str_init(&costs, &b->ctx->mem);
  arena_init(&b->arena, &b->ctx->mem);
  bool ok = bench_begin(b, o->seed) && trial_begin(b, &plain, "", NULL);
  if (ok) trials_compile(b, &plain, 1);
  ok = ok && plain.program;
  for (int i = 0; ok && i < b->nbinding; i++) {
    memory_reset(b);
    run_us(b, &plain, 1, i);
    ok = memory_read(b, b->plain[i]);
  }
  ok = ok && trial_begin(b, &own, NULL, &costs);
  trial_end(b, &own); /* with costs, nothing is left out of the search, so another list may come first */
  ok = ok && trial_begin(b, &own, NULL, NULL);
  if (ok) trials_compile(b, &own, 1);
  if (ok && own.program) {
    b->most_text = TG_MAX(2 * own.text.len, (size_t)MOST_TEXT);
    lists_known(b, &costs);
    trial_run(b, &own, INFINITY);
    if (o->list && trial_begin(b, &best, o->list, NULL)) {
      trials_compile(b, &best, 1);
      trial_run(b, &best, INFINITY);
    }
    Options one = *o;
    if (o->list) one.lists = 0;
    ratio = searched(b, &one, name, &own, &best);
  } else
    printf("%-28s not looked at\n", name);
  trial_end(b, &plain), trial_end(b, &own), trial_end(b, &best), str_free(&costs);
  bench_end(b);
  return ratio;
}

typedef struct Result {
  int kernels, far, wrong;
} Result;

static void looked_at(TgContext *ctx, UOpStore *st, UOp *ast, const Options *o, const char *name, Result *r) {
  Bench *b = calloc(1, sizeof *b);
  b->ctx = ctx, b->dev = ctx->devices.at[0], b->st = st, b->ast = ast, b->most_text = SIZE_MAX,
  b->lock = o->lock, b->at = o->at, b->nbinding = 1;
  double ratio = kernel_looked_at(b, o, name);
  r->kernels += ratio > 0, r->far += ratio > o->ratio, r->wrong += b->wrong;
  free(b);
}

static char *file_text(const char *path) {
  FILE *f = fopen(path, "r");
  char *text = f ? calloc(1, 1 << 22) : NULL;
  if (text && !fread(text, 1, (1 << 22) - 1, f)) free(text), text = NULL;
  if (f) fclose(f);
  return text;
}

static bool argument_looked_at(const char *name, const Options *o, Result *r) {
  TgOpenOptions open = {.size = sizeof open, .device = o->device, .seed = 1, .threads = 1, .cores = 1};
  TgContext *ctx = tg_open(&open);
  bool found = false;
  for (int i = 0; i < choice_count; i++) {
    if (!choices[i].name || strcmp(choices[i].name, name)) continue;
    Schedule s;
    TgTensor *t[CHOICE_OUTPUTS];
    found = true;
    if (choice_schedule(ctx, t, choices[i].build(ctx, t), NULL, &s)) break;
    for (int k = 0; k < s.nkernel; k++) {
      char label[80];
      snprintf(label, sizeof label, s.nkernel > 1 ? "%s:%d" : "%s", name, k);
      looked_at(ctx, s.store, s.kernel[k].ast, o, label, r);
    }
    schedule_free(&s, &ctx->mem);
  }
  char *text = found ? NULL : file_text(name);
  UOpStore *st = text ? store_new(&ctx->mem) : NULL;
  if (st) {
    UOpText parsed = {.mem = &ctx->mem};
    const char *base = strrchr(name, '/');
    found = uop_parse(&parsed, st, &ctx->mem, text, strlen(text), &ctx->err) && parsed.roots.len == 1;
    if (found) looked_at(ctx, st, parsed.roots.at[0], o, base ? base + 1 : name, r);
    uop_text_free(&parsed), store_free(st);
  }
  free(text);
  if (!found) fprintf(stderr, "near_best: %s: no program, and no kernel\n", name);
  tg_close(ctx);
  return found;
}

int main(int argc, char **argv) {
  Options o = {.lists = 300, .seed = 1, .ratio = 1.15, .device = "CPU", .lock = -1};
  Result r = {0};
  bool ok = true;
  setenv("TG_CACHE", "0", 1);
  printf("%-28s %10s %10s %5s  lists\n", "kernel", "us", "best", "ratio");
  for (int i = 1; i < argc; i++)
    if (!strncmp(argv[i], "lists=", 6))
      o.lists = atoi(argv[i] + 6);
    else if (!strncmp(argv[i], "seed=", 5))
      o.seed = (unsigned)atoi(argv[i] + 5);
    else if (!strncmp(argv[i], "ratio=", 6))
      o.ratio = atof(argv[i] + 6);
    else if (!strncmp(argv[i], "list=", 5))
      o.list = argv[i] + 5;
    else if (!strncmp(argv[i], "at=", 3))
      o.at = atoll(argv[i] + 3);
    else if (!strcmp(argv[i], "all=1"))
      o.all = true;
    else if (!strncmp(argv[i], "dev=", 4))
      o.device = argv[i] + 4;
    else if (!strncmp(argv[i], "lock=", 5))
      o.lock = open(argv[i] + 5, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    else
      ok &= argument_looked_at(argv[i], &o, &r);
  printf("%d kernels, %d further than %.2f from the best, %d wrong\n", r.kernels, r.far, o.ratio, r.wrong);
  return ok && !r.wrong ? 0 : 1;
}
