/* beam.c: opts by trial (TG_BEAM=N). In: a kernel's graph and the opts that the heuristic chose. Out: the
 * opts that ran fastest on the device. The lists that are tried differ from the heuristic's by one or more
 * steps: a size is doubled or halved, an opt is left out or added; on a GPU, also matrix units and copies
 * one block ahead. The best N lists of each round are kept, and a round that gains nothing ends the
 * search. The result is kept on disk, so that a kernel is searched only once on a machine. */
#define _GNU_SOURCE
#include "engine/engine.h"
#include "runtime/cpu.h"
#include <math.h>
#include <string.h>

enum { MOST_VARS = 16, ROUNDS = 5, MOST_TRIALS = 48, MOST_BYTES_LOG = 32, SAMPLES = 3 };

static const double gain = 0.98, sample_us = 500;

typedef struct Trial {
  OptVec list;
  Str source;
  UOpStore *st;
  Linear lin;
  Program *program;
  double us; /* INFINITY: it does not lower, compile or run */
} Trial;

typedef Vec(Trial) TrialVec;

typedef struct Beam {
  TgContext *ctx;
  Device *dev;
  UOpStore *st;
  UOp *ast;
  CodegenOptions copt;
  Arena arena;
  Map seen; /* hashes of lists that were tried */
  UOpVec ranges;
  void **bufs;
  size_t *nbytes;
  int nbuf;
  double given_us; /* time of the list that the search starts from */
  TrialVec kept;   /* the best lists so far, fastest first */
} Beam;

/* ---- memory for the trials */
/* Allocates memory for each PARAM, filled with zeros. So an index that is read from it is 0, which is in
 * bounds. */
static bool buffers_made(Beam *b) {
  UOpVec order = {0};
  TgMem *mem = &b->ctx->mem;
  bool ok = uop_toposort(b->st, mem, &b->ast, 1, &order);
  for (size_t i = 0; i < order.len; i++)
    if (order.at[i]->op == OPS_PARAM) b->nbuf = TG_MAX(b->nbuf, (int)order.at[i]->arg.param.slot + 1);
  b->bufs = mem_alloc(mem, ((size_t)b->nbuf + 1) * sizeof *b->bufs);
  b->nbytes = mem_alloc(mem, ((size_t)b->nbuf + 1) * sizeof *b->nbytes);
  ok = ok && b->bufs && b->nbytes;
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i];
    if (u->op == OPS_RANGE && u->src[0]->op == OPS_CONST && !u->src[0]->ranges)
      ok = vec_push(mem, &b->ranges, u);
    if (u->op != OPS_PARAM || b->bufs[u->arg.param.slot]) continue;
    size_t slot = (size_t)u->arg.param.slot, size = (size_t)u->arg.param.nelem * dtype_size((DType)u->dtype);
    ok = size >> MOST_BYTES_LOG == 0 &&
         !b->dev->backend->alloc(b->dev, TG_MAX(size, (size_t)1), &b->bufs[slot]);
    b->nbytes[slot] = ok ? TG_MAX(size, (size_t)1) : 0;
    ok = ok && !b->dev->backend->clear(b->dev, b->bufs[slot], size);
  }
  vec_free(mem, &order);
  return ok;
}

static void trial_end(Beam *b, Trial *t) {
  if (t->program) b->dev->backend->unload(b->dev, t->program);
  store_free(t->st), str_free(&t->source), vec_free(&b->ctx->mem, &t->list);
}

static void trials_end(Beam *b, TrialVec *v) {
  for (size_t i = 0; i < v->len; i++)
    trial_end(b, &v->at[i]);
  vec_free(&b->ctx->mem, v);
}

static void list_print(Str *out, const OptVec *list) {
  for (size_t i = 0; i < list->len; i++)
    opt_print(out, &list->at[i]);
}

/* ---- trials */
/* Makes a trial of a list that was not tried before. Takes ownership of the list. */
static bool trial_add(Beam *b, TrialVec *v, OptVec list) {
  Str text;
  str_init(&text, &b->ctx->mem);
  list_print(&text, &list);
  uint64_t had, hash = hash_bytes(5, str_text(&text), text.len);
  bool known = map_get(&b->seen, hash, &had) || v->len >= MOST_TRIALS;
  str_free(&text);
  Trial t = {.list = list, .us = INFINITY};
  str_init(&t.source, &b->ctx->mem);
  if (!known && map_put(&b->seen, hash, 1) && vec_push(&b->ctx->mem, v, t)) return true;
  vec_free(&b->ctx->mem, &list);
  return known;
}

/* Adds the trial of `list` with opt `i` replaced by `with`, or removed if `with` is NULL. i may be the
 * length of the list. */
static bool trial_changed(Beam *b, TrialVec *v, const OptVec *list, size_t i, const Opt *with) {
  OptVec other = {0};
  bool ok = true;
  for (size_t k = 0; ok && k < list->len; k++)
    if (k != i)
      ok = vec_push(&b->ctx->mem, &other, list->at[k]);
    else if (with)
      ok = vec_push(&b->ctx->mem, &other, *with);
  if (ok && i == list->len) ok = vec_push(&b->ctx->mem, &other, *with);
  if (ok) return trial_add(b, v, other);
  vec_free(&b->ctx->mem, &other);
  return false;
}

/* Whether an opt shapes the inner loops. TC and DOUBLE_BUFFER must precede such opts. */
static bool shapes_inside(OptOp op) {
  return op == OPT_LOCAL || is_upcast(op) || op == OPT_VEC || op == OPT_UNROLL || op == OPT_GROUP;
}

/* Adds the trial of the opts of `list` that precede the inner loops' opts, then `with`, and if `rest` is
 * set the remaining opts. */
static bool trial_inserted(Beam *b, TrialVec *v, const OptVec *list, Opt with, bool rest) {
  OptVec other = {0};
  size_t at = 0;
  bool ok = true;
  while (at < list->len && !shapes_inside(list->at[at].op))
    at++;
  for (size_t i = 0; ok && i < at; i++)
    ok = vec_push(&b->ctx->mem, &other, list->at[i]);
  ok = ok && vec_push(&b->ctx->mem, &other, with);
  for (size_t i = at; ok && rest && i < list->len; i++)
    ok = vec_push(&b->ctx->mem, &other, list->at[i]);
  if (ok) return trial_add(b, v, other);
  vec_free(&b->ctx->mem, &other);
  return false;
}

static bool list_has(const OptVec *list, OptOp op) {
  for (size_t i = 0; i < list->len; i++)
    if (list->at[i].op == op) return true;
  return false;
}

/* Tries a product on matrix units for each pair of loops of the grid, and on a GPU copies one block ahead
 * for each loop that has blocks. */
static bool units_tried(Beam *b, TrialVec *v, const OptVec *list) {
  const Target *t = &b->dev->target;
  bool ok = true,
       units = t->matrices & ~b->copt.matrices_off && !list_has(list, OPT_TC) && !list_has(list, OPT_TC4);
  bool pipe = t->warp > 1 && list_has(list, OPT_STAGE) && !list_has(list, OPT_DOUBLE_BUFFER);
  for (size_t i = 0; ok && units && i < b->ranges.len; i++)
    for (size_t j = 0; ok && j < b->ranges.len; j++) {
      const UOp *row = b->ranges.at[i], *column = b->ranges.at[j];
      bool grid = row->arg.range.type == AXIS_GLOBAL && column->arg.range.type == AXIS_GLOBAL;
      Opt o = {OPT_TC, row->arg.range.id, column->arg.range.id};
      if (i != j && grid) ok = trial_inserted(b, v, list, o, false);
    }
  for (size_t i = 0; ok && pipe && i < list->len; i++)
    if (list->at[i].op == OPT_TILE)
      ok = trial_inserted(b, v, list, (Opt){OPT_DOUBLE_BUFFER, list->at[i].r, 2}, true);
  return ok;
}

/* Adds all lists that are one step from `list`. */
static bool neighbours(Beam *b, TrialVec *v, const OptVec *list) {
  static const Opt more[] = {{OPT_UPCAST, 0, 2}, {OPT_UPCAST, 0, 4}, {OPT_UPCASTTOP, 0, 4},
                             {OPT_UNROLL, 0, 4}, {OPT_LOCAL, 0, 16}, {OPT_GROUP, 0, 32},
                             {OPT_VEC, 0, 4}};

  bool ok = units_tried(b, v, list);
  for (size_t i = 0; ok && i < list->len; i++) {
    Opt o = list->at[i];
    bool sized = o.op == OPT_TILE || o.op == OPT_THREAD || shapes_inside(o.op);
    ok = trial_changed(b, v, list, i, NULL);
    if (!sized || !ok) continue;
    o.n *= 2;
    ok = trial_changed(b, v, list, i, &o);
    o.n /= 4;
    if (ok && o.n > 1) ok = trial_changed(b, v, list, i, &o);
  }
  for (size_t r = 0; ok && r < b->ranges.len; r++)
    for (size_t m = 0; ok && m < TG_COUNT(more); m++) {
      Opt o = {more[m].op, b->ranges.at[r]->arg.range.id, more[m].n};
      if (b->ranges.at[r]->vmax + 1 >= o.n) ok = trial_changed(b, v, list, list->len, &o);
    }
  return ok;
}

/* Lowers and renders a trial. A list that the kernel cannot take leaves t->st NULL. */
static void trial_lowered(Beam *b, Trial *t) {
  Str text;
  TgError ignored = {0};
  str_init(&text, &b->ctx->mem);
  list_print(&text, &t->list);
  b->copt.opts = str_text(&text);
  const Renderer *ren = b->dev->backend->renderer;
  bool ok = !text.oom && !codegen_lower(&b->ctx->mem, b->ast, b->st, ren, &b->copt, &b->arena, &t->st,
                                        &t->lin, NULL, &ignored);
  if (ok && !ren->render(&t->source, &t->lin, &ignored)) {
    store_free(t->st);
    t->st = NULL;
  }
  if (!ok) t->st = NULL;
  str_free(&text);
}

/* Compiles the trials in parallel. If one of them does not compile, each is compiled alone. */
static bool trials_compiled(Beam *b, TrialVec *v) {
  KernelSpec *spec = mem_alloc(&b->ctx->mem, (v->len + 1) * sizeof *spec);
  Program **out = mem_alloc(&b->ctx->mem, (v->len + 1) * sizeof *out);
  int n = 0;
  for (size_t i = 0; spec && out && i < v->len; i++)
    if (v->at[i].st) spec[n++] = kernel_spec(&v->at[i].lin, str_text(&v->at[i].source));
  bool room = spec && out, all = room && n && !b->dev->backend->compile(b->dev, spec, n, out);
  for (int i = 0; room && !all && i < n; i++)
    if (b->dev->backend->compile(b->dev, &spec[i], 1, &out[i])) out[i] = NULL;
  n = 0;
  for (size_t i = 0; room && i < v->len; i++)
    if (v->at[i].st) v->at[i].program = out[n++];
  mem_free(&b->ctx->mem, spec), mem_free(&b->ctx->mem, out);
  return room;
}

static TgStatus run_times(Beam *b, const Launch *l, int times, double *us) {
  const TgBackend *be = b->dev->backend;
  Event *begin = NULL, *end = NULL;
  TgStatus st = be->event_record(b->dev, &begin);
  for (int i = 0; i < times && !st; i++)
    st = be->launch(b->dev, l);
  if (!st) st = be->event_record(b->dev, &end);
  if (!st) st = be->event_reach(b->dev, end);
  if (!st) *us = be->event_us(b->dev, begin, end) / times;
  be->event_free(b->dev, begin), be->event_free(b->dev, end);
  return st;
}

/* Describes a launch of a trial, in which variables have their largest values. Returns false if there are
 * too many. */
static bool launch_of(Beam *b, const Trial *t, Launch *l, int64_t vars[MOST_VARS]) {
  *l = (Launch){.program = t->program, .bufs = b->bufs, .vars = vars, .nbuf = t->lin.nparam};
  for (int i = 0; i < t->lin.n; i++) {
    if (t->lin.at[i]->op != OPS_VAR) continue;
    if (l->nvar == MOST_VARS) return false;
    vars[l->nvar++] = t->lin.at[i]->vmax;
  }
  return true;
}

static int times_of(double us) { return us < sample_us ? (int)(sample_us / TG_MAX(us, 0.1)) + 1 : 1; }

/* Times a trial: the least of some samples. Sampling stops if the trial takes twice as long as the best
 * list. */
static void trial_timed(Beam *b, Trial *t) {
  int64_t vars[MOST_VARS];
  Launch l;
  double us = 0, best = b->kept.len ? b->kept.at[0].us : INFINITY, least = INFINITY;
  if (!launch_of(b, t, &l, vars) || run_times(b, &l, 1, &us) || run_times(b, &l, 1, &us)) return;
  int times = times_of(us);
  for (int s = 0; s < SAMPLES && us < 2 * best; s++) {
    if (run_times(b, &l, times, &us)) return;
    least = TG_MIN(least, us);
  }
  t->us = TG_MIN(least, us);
}

/* Times the starting list and the best list again by turns, because another program may have slowed down
 * the one that was timed first. Returns whether the best list is still faster. */
static bool confirmed(Beam *b, const char *start) {
  TrialVec again = {0};
  OptVec list[2] = {{0}, {0}};
  TgError ignored = {0};
  Str best;
  str_init(&best, &b->ctx->mem);
  list_print(&best, &b->kept.at[0].list);
  if (!strcmp(str_text(&best), start)) {
    b->given_us = b->kept.at[0].us;
    return str_free(&best), true;
  }
  map_free(&b->seen), map_init(&b->seen, &b->ctx->mem);
  bool ok = opts_parse(start, &b->ctx->mem, &list[0], &ignored) && trial_add(b, &again, list[0]) &&
            opts_parse(str_text(&best), &b->ctx->mem, &list[1], &ignored) && trial_add(b, &again, list[1]);
  for (size_t i = 0; i < again.len; i++)
    trial_lowered(b, &again.at[i]);
  ok = ok && again.len == 2 && trials_compiled(b, &again) && again.at[0].program && again.at[1].program;
  double least[2] = {INFINITY, INFINITY};
  for (int s = 0; ok && s < ROUNDS; s++)
    for (int i = 0; ok && i < 2; i++) {
      int64_t vars[MOST_VARS];
      Launch l;
      double us = 0;
      ok = launch_of(b, &again.at[i], &l, vars) && !run_times(b, &l, times_of(b->kept.at[0].us), &us);
      least[i] = TG_MIN(least[i], us);
    }
  b->given_us = least[0];
  b->kept.at[0].us = least[1];
  trials_end(b, &again), str_free(&best);
  return ok && least[1] < gain * least[0];
}

/* Inserts a trial into the kept ones, fastest first, and drops the slowest if there are more than `width`. */
static bool keep(Beam *b, Trial *t, size_t width) {
  if (isinf(t->us)) return true;
  if (!vec_push(&b->ctx->mem, &b->kept, *t)) return false;
  *t = (Trial){.us = INFINITY};
  for (size_t i = b->kept.len - 1; i > 0 && b->kept.at[i].us < b->kept.at[i - 1].us; i--) {
    Trial other = b->kept.at[i];
    b->kept.at[i] = b->kept.at[i - 1];
    b->kept.at[i - 1] = other;
  }
  if (b->kept.len > width) trial_end(b, &b->kept.at[--b->kept.len]);
  return true;
}

static bool round_run(Beam *b, TrialVec *v, size_t width) {
  for (size_t i = 0; i < v->len; i++)
    trial_lowered(b, &v->at[i]);
  bool ok = trials_compiled(b, v);
  for (size_t i = 0; ok && i < v->len; i++)
    if (v->at[i].program) trial_timed(b, &v->at[i]);
  for (size_t i = 0; ok && i < v->len; i++)
    ok = keep(b, &v->at[i], width);
  return ok;
}

static bool searched(Beam *b, const char *start, size_t width) {
  TrialVec round = {0};
  OptVec list = {0};
  TgError ignored = {0};
  bool ok = opts_parse(start, &b->ctx->mem, &list, &ignored) && trial_add(b, &round, list);
  ok = ok && round_run(b, &round, width);
  trials_end(b, &round);
  for (int r = 0; ok && r < ROUNDS && b->kept.len; r++) {
    double had = b->kept.at[0].us;
    for (size_t i = 0; ok && i < b->kept.len; i++)
      ok = neighbours(b, &round, &b->kept.at[i].list);
    ok = ok && round_run(b, &round, width);
    trials_end(b, &round);
    round = (TrialVec){0};
    if (b->kept.at[0].us > gain * had) break;
  }
  return ok && b->kept.len;
}

/* ---- on disk: the key is the kernel's text, the machine and the width */
static void key_of(Beam *b, uint8_t key[32]) {
  Str s;
  str_init(&s, &b->ctx->mem);
  str_printf(&s, "beam 3, width %d, %s, ", b->ctx->env.beam, b->dev->backend->name);
  target_print(&s, &b->dev->target);
  uop_print(&s, b->st, NULL, &b->ast, 1);
  sha256(str_text(&s), s.len, key);
  str_free(&s);
}

TgStatus beam_opts(TgContext *ctx, Device *d, UOpStore *st, UOp *ast, const CodegenOptions *copt,
                   const char *start, Str *best) {
  Beam b = {.ctx = ctx, .dev = d, .st = st, .ast = ast, .copt = *copt};
  b.copt.prepack = NULL; /* a timed launch has only the kernel's own arguments */
  TgError *told = d->err, ignored = {0};
  uint8_t key[32], digest[32];
  Blob found = {0};
  d->err = &ignored;
  arena_init(&b.arena, &ctx->mem), map_init(&b.seen, &ctx->mem);
  Cache *cache = cache_open(&ctx->mem, ctx->os, &ctx->env);
  key_of(&b, key);
  if (cache_get(cache, key, digest, &found)) {
    str_putn(best, (const char *)found.at, found.nbytes - 1);
  } else if (buffers_made(&b) && searched(&b, start, (size_t)ctx->env.beam)) {
    if (confirmed(&b, start))
      list_print(best, &b.kept.at[0].list);
    else
      str_put(best, start);
    Blob text = {(uint8_t *)(uintptr_t)str_text(best), best->len + 1};
    cache_put(cache, (const uint8_t(*)[32])key, 1, &text);
    if (ctx->env.debug >= 2)
      context_say(ctx, "beam: %.2f -> %.2f us: %s -> %s\n", b.given_us, b.kept.at[0].us, start,
                  str_text(best));
  } else
    str_put(best, start);
  cache_close(cache);
  mem_free(&ctx->mem, found.at);
  trials_end(&b, &b.kept);
  for (int i = 0; b.bufs && i < b.nbuf; i++)
    if (b.bufs[i]) d->backend->free(d, b.bufs[i], b.nbytes[i]);
  mem_free(&ctx->mem, b.bufs), mem_free(&ctx->mem, b.nbytes), vec_free(&ctx->mem, &b.ranges);
  map_free(&b.seen), arena_free(&b.arena);
  d->err = told;
  return best->oom ? error_no_memory(&ctx->err, "beam") : TG_OK;
}
