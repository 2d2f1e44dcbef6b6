/* calls.c: every function of tg.h with random arguments.
 *   fuzz_calls [--seed N] [--calls N]          TRACE=1: each call and its error
 * What is looked for is what the sanitizers see; besides, a builder that gives NULL for tensors that are all
 * there must say why; a function that does not change its argument gives a handle of its own, and what it
 * gives is a value or a view, as tg.h says: a store to the argument changes a view alone. Some calls find
 * that the graph's memory ends, which they must say. Tensors are few, small and made by few calls, so that
 * computing them is quick. */
#define _POSIX_C_SOURCE 200809L
#include "tests/fuzz/calls.h"
#include "tests/files/short.h"
#include <math.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 64, POOL = 24, SMALL = 2048, DEPTH = 4, PER_SCOPE = 40, PER_CONTEXT = 1000 };

typedef struct Kept {
  TgTensor *t;
  int depth;
} Kept;

static TgContext *ctx;
static Short end;     /* of the graph's memory */
static bool is_short; /* it ends in this call */
static Kept pool[POOL];
static TgVariable *variables[4];
static TgJit *jit;
static uint64_t rng;
static const char *calling = "";
static bool extremes; /* of this context's calls every other whole number is one that is out of the way */
static int depth;     /* of the deepest tensor given to the call */
static bool trace, with_null, silent; /* a NULL was given; a builder failed without a word */
static TgTensor *given[ROOM];         /* to the call */
static int ngiven;
static const char *wrong; /* what is wrong with what the call gave; NULL: nothing */

static uint64_t rnd(void) {
  uint64_t z = rng += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9, z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static int below(int n) { return (int)(rnd() % (uint64_t)n); }

/* ---- arguments */
bool rarely(void) { return below(12) == 0; }

bool often(void) { return below(2) == 0; }

bool in_bool(void) { return below(2); }

int in_enum(void) { return rarely() ? below(2) ? -1 : 1000 : below(16); }

int64_t in_int64(void) {
  static const int64_t odd[] = {INT64_MIN,
                                INT64_MIN + 1,
                                INT64_MAX,
                                INT64_MAX - 1,
                                INT64_C(1) << 62,
                                INT64_C(1) << 31,
                                INT32_MAX,
                                INT32_MIN,
                                INT32_MAX + INT64_C(1),
                                -1,
                                1 << 20,
                                INT64_C(1) << 40,
                                100,
                                -100};
  return below(extremes ? 2 : 8) ? below(8) - 3 : odd[below(sizeof odd / sizeof *odd)];
}

int64_t in_count(void) { return rarely() ? -1 : below(5) ? below(5) : below(20); }

double in_double(void) {
  static const double odd[] = {0,   -0.0, NAN,    INFINITY, -INFINITY, 1e300, -1e300, 1e-300,
                               3e9, -3e9, 0x1p63, 0x1p64,   255,       256,   -129};
  return below(3) ? (double)(below(21) - 10) / (1 + below(4)) : odd[below(sizeof odd / sizeof *odd)];
}

size_t in_room(void) { return (size_t)below(20); }

TgContext *in_context(void) { return rarely() ? with_null = true, NULL : ctx; }

TgTensor *in_tensor(void) {
  Kept k = pool[below(POOL)];
  if (rarely() || !k.t) return with_null = true, NULL;
  if (k.depth > depth) depth = k.depth;
  if (ngiven < ROOM) given[ngiven++] = k.t;
  return k.t;
}

TgTensor *const *in_tensors(void) {
  static TgTensor *list[ROOM];
  for (int i = 0; i < ROOM; i++)
    list[i] = pool[below(POOL)].t;
  memcpy(given, list, sizeof given), ngiven = ROOM;
  depth = DEPTH;
  with_null = true; /* maybe one of them */
  return rarely() ? NULL : list;
}

const int64_t *in_sizes(bool small) {
  static int64_t list[4][ROOM];
  static int turn;
  int64_t *v = list[turn++ % 4];
  for (int i = 0; i < ROOM; i++)
    v[i] = small ? below(4) - (below(8) == 0) : below(extremes ? 3 : 10) ? below(5) - 1 : in_int64();
  return rarely() ? NULL : v;
}

const double *in_doubles(void) {
  static double v[1 << 16];
  for (int i = 0; i < 32; i++)
    v[i] = in_double();
  return rarely() ? NULL : v;
}

const void *in_bytes(void) {
  static unsigned char v[1 << 19];
  for (int i = 0; i < 64; i++)
    v[i] = (unsigned char)rnd();
  return rarely() ? NULL : v;
}

const char *in_text(void) {
  static const char *const texts[] = {"",
                                      "ij,jk->ik",
                                      "ij->ji",
                                      "...i,i",
                                      "a b -> b a",
                                      "a (b c) -> a b c",
                                      "(a b) -> a b",
                                      "->",
                                      "[[1, 2], [3, 4]]",
                                      "[1.5, nan]",
                                      "[[1], 2",
                                      "NOOPT",
                                      "FUSE",
                                      "ALLREDUCE",
                                      "INTERP,INTERP:1",
                                      "TRAINING",
                                      "ADD",
                                      "WHERE",
                                      "SQRT",
                                      "/dev/null",
                                      "/nonexistent/x",
                                      "file",
                                      "c",
                                      "uops",
                                      "u = 1:i32\n",
                                      "\xff\xfe",
                                      "%s%n"};
  return rarely() ? NULL : texts[below(sizeof texts / sizeof *texts)];
}

const TgIndex *in_index(void) {
  static TgIndex v[ROOM];
  for (int i = 0; i < ROOM; i++) {
    v[i] = (TgIndex){(TgIndexKind)(rarely() ? 50 : below(8)), in_int64(), often() ? TG_OPEN : in_int64(),
                     in_int64(), NULL};
    if (often()) v[i].tensor = in_tensor();
  }
  with_null = true;
  return rarely() ? NULL : v;
}

const TgNamedSize *in_named(void) {
  static TgNamedSize v[ROOM];
  for (int i = 0; i < ROOM; i++)
    v[i] = (TgNamedSize){rarely() ? NULL : (const char *[]){"a", "b", "c", ""}[below(4)], in_int64()};
  return rarely() ? NULL : v;
}

TgVariable *in_variable(void) { return rarely() ? with_null = true, NULL : variables[below(4)]; }

TgJit *in_jit(void) { return rarely() ? with_null = true, NULL : jit; }

static TgStatus pass_on(TgTensor *g, TgTensor *y, TgTensor *const *x, int n, TgTensor **out, void *user) {
  (void)y, (void)x, (void)user;
  if (n) out[0] = g;
  return n > 3 ? TG_ERR_VALUE : TG_OK;
}

static TgStatus doubled(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)user;
  for (int i = 0; i < nout; i++)
    out[i] = nin ? tg_add(in[i % nin], in[i % nin]) : tg_ones(c, TG_SHAPE(2));
  return TG_OK;
}

TgGradientFn in_gradient_fn(void) { return rarely() ? NULL : pass_on; }

TgJitFn in_jit_fn(void) { return rarely() ? NULL : doubled; }

TgAxes in_axes(void) {
  TgAxes a = {.n = rarely() ? (int)in_int64() : below(3)};
  for (int i = 0; i < TG_MAX_RANK; i++)
    a.v[i] = rarely() ? (int)in_int64() : below(6) - 3;
  return a;
}

TgSizes in_spatial(void) {
  TgSizes s = {.n = rarely() ? (int)in_int64() : below(4)};
  for (int i = 0; i < 2 * TG_MAX_SPATIAL; i++)
    s.v[i] = rarely() ? in_int64() : below(4);
  return s;
}

int64_t *out_int64(void) {
  static int64_t v[ROOM];
  return rarely() ? NULL : v;
}

double *out_doubles(void) {
  static double v[1 << 16];
  return rarely() ? NULL : v;
}

const char **out_texts(void) {
  static const char *v[ROOM];
  return rarely() ? NULL : v;
}

const char *const *in_devices(void) { /* of more than four, some stand twice */
  static const char *v[ROOM];
  static const char *const names[] = {"INTERP", "INTERP:1", "INTERP:2", "INTERP:3"};
  for (int i = 0; i < ROOM; i++)
    v[i] = names[i % 4];
  return rarely() ? NULL : v;
}

void *out_bytes(void) {
  static unsigned char v[1 << 19];
  return rarely() ? NULL : v;
}

TgTensor **out_tensors(void) {
  static TgTensor *v[ROOM];
  return rarely() ? NULL : v;
}

/* ---- what calls give back */
void at_call(const char *name) {
  calling = name, depth = ngiven = 0, with_null = silent = false, wrong = NULL;
  if (trace) fprintf(stderr, "%s ", name);
}

/* Functions that change their argument, or tell of it, give it back. */
static bool gives_argument(const char *name) {
  static const char *const names[] = {
      "tg_keep",         "tg_requires_grad", "tg_origin",         "tg_origin_here", "tg_assign",
      "tg_assign_slice", "tg_setitem",       "tg_setitem_scalar", "tg_replace",     NULL};
  for (int i = 0; names[i]; i++)
    if (!strcmp(name, names[i])) return true;
  return name[strlen(name) - 1] == '_';
}

/* Movements, which tg.h calls views of what they move. */
static bool is_view(const char *name) {
  static const char *const names[] = {"tg_reshape",
                                      "tg_view",
                                      "tg_permute",
                                      "tg_expand",
                                      "tg_shrink",
                                      "tg_shrink_to",
                                      "tg_flip",
                                      "tg_transpose",
                                      "tg_squeeze",
                                      "tg_squeeze_all",
                                      "tg_slice",
                                      "tg_unsqueeze",
                                      "tg_unflatten",
                                      "tg_flatten",
                                      "tg_getitem",
                                      "tg_select",
                                      "tg_detach",
                                      "tg_rearrange",
                                      "tg_unfold",
                                      "tg_diagonal",
                                      "tg_mT",
                                      "tg_movedim",
                                      "tg_swapaxes",
                                      "tg_narrow",
                                      "tg_pad",
                                      "tg_pad_to",
                                      "tg_pad_value",
                                      "tg_expand_as",
                                      "tg_reshape_as",
                                      "tg_chunk",
                                      "tg_pad_mode",
                                      "tg_broadcast_to",
                                      "tg_to",
                                      "tg_to_context",
                                      "tg_gather_to",
                                      "tg_shard",
                                      "tg_shard_opt",
                                      "tg_shard_like",
                                      "tg_replicate",
                                      "tg_shard_part",
                                      "tg_repeat",
                                      "tg_repeat_interleave",
                                      "tg_pixel_shuffle",
                                      NULL};
  for (int i = 0; names[i]; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

static bool read_small(TgTensor *t, unsigned char *to, size_t cap, size_t *n) {
  *n = tg_nbytes(t);
  return *n <= cap && !tg_read(t, to, *n);
}

/* t, a value, stays what it is when one that it was made of is stored to, and the other way around. */
static void value_checked(TgTensor *t) {
  static unsigned char before[16 * SMALL], after[16 * SMALL];
  TgTensor *x = ngiven == 1 ? given[0] : NULL;
  size_t n, m;
  if (!x || t == x || below(6) || tg_numel(t) > SMALL || tg_numel(x) > SMALL || tg_numel(t) < 1) return;
  for (int turn = 0; turn < 2; turn++) {
    TgTensor *seen = turn ? x : t, *stored = turn ? t : x;
    if (!read_small(seen, before, sizeof before, &n)) return;
    if (!tg_assign(stored, tg_mul(stored, tg_full_like(stored, 2)))) return;
    if (!read_small(seen, after, sizeof after, &m)) return;
    if (n != m || memcmp(before, after, n))
      wrong = turn ? "a store to what it gave changes its argument"
                   : "a store to its argument changes what it gave";
  }
}

static void memory_ends(void) {
  is_short = ctx && below(6) == 0 && short_begin(&end, ctx, 16 * (size_t)below(200));
}

static void memory_goes_on(void) {
  if (is_short) short_end(&end, ctx);
  is_short = false;
}

void made_tensor(TgTensor *t) {
  memory_goes_on();
  for (int i = 0; t && i < ngiven && !wrong; i++)
    if (given[i] == t && !gives_argument(calling)) wrong = "it gives its argument back";
  if (t && !wrong && !tg_error(ctx) && !is_view(calling) && !gives_argument(calling) &&
      strcmp(calling, "tg_grad"))
    value_checked(t);
  int64_t n = t ? tg_max_numel(t) : 0;
  bool may_be_none = !strcmp(calling, "tg_grad") || !strcmp(calling, "tg_jit_memory");
  silent = !t && !with_null && !tg_error(ctx) && !may_be_none;
  if (t && n >= 0 && n <= SMALL && depth < DEPTH) pool[below(POOL)] = (Kept){t, depth + 1};
}

void made_variable(TgVariable *v) {
  if (v) variables[below(4)] = v;
}

void made_jit(TgJit *j) {
  if (j) jit = j;
}

static void fresh_pool(void) {
  static const TgDType dtypes[] = {TG_F32, TG_F32, TG_F32, TG_F64, TG_F16, TG_BF16,    TG_BOOL, TG_I8,
                                   TG_U8,  TG_I32, TG_I32, TG_I64, TG_U64, TG_FP8E4M3, TG_U32};
  memset(pool, 0, sizeof pool);
  for (int i = 0; i < POOL; i++) {
    int rank = below(4);
    int64_t dims[4], n = 1;
    double v[256];
    for (int d = 0; d < rank; d++)
      dims[d] = below(10) ? 1 + below(4) : 0, n *= dims[d];
    for (int64_t k = 0; k < n; k++)
      v[k] = below(20) ? below(9) - 4 : in_double();
    TgTensor *t = tg_from_f64(ctx, v, dtypes[below(sizeof dtypes / sizeof *dtypes)], rank, dims);
    pool[i].t = t && below(6) == 0 ? tg_requires_grad(t, true) : t;
  }
  tg_clear_error(ctx);
}

static void fresh_context(void) {
  tg_close(ctx);
  ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  jit = NULL, extremes = below(4) == 0;
  for (int i = 0; i < 4; i++)
    variables[i] = tg_variable(ctx, "n", i, 2 + 2 * i);
}
#if defined(__SANITIZE_ADDRESS__)
const char *__asan_default_options(void);

const char *__asan_default_options(void) { return "allocator_may_return_null=1:max_allocation_size_mb=4096"; }
#endif
static void died(int sig) { /* what follows is the default: the sanitizers have spoken before */
  (void)!write(2, "in ", 3), (void)!write(2, calling, strlen(calling)), (void)!write(2, "\n", 1);
  signal(sig, SIG_DFL), raise(sig);
}
#if defined(__SANITIZE_ADDRESS__)
void __asan_on_error(void);

void __asan_on_error(void) { fprintf(stderr, "in %s\n", calling); }
#endif
static bool run(uint64_t seed, long calls) {
  rng = seed * 0x632be59bd9b4e019u + 1;
  trace = getenv("TRACE") != NULL;
  bool ok = true;
  for (long i = 0; ok && i < calls; i++) {
    if (i % PER_CONTEXT == 0) fresh_context();
    if (i % PER_SCOPE == 0) {
      if (i % PER_CONTEXT) tg_scope_end(ctx), tg_collect(ctx);
      tg_scope_begin(ctx), tg_clear_error(ctx), fresh_pool();
    }
    if (trace) fprintf(stderr, "%ld ", i);
    int call = below(api_calls);
    memory_ends();
    api_call(call);
    memory_goes_on();
    if (trace) fprintf(stderr, "%s\n", tg_errmsg(ctx));
    bool ours = tg_error(ctx) == TG_ERR_INTERNAL && strcmp(calling, "tg_set_error");
    ok = !silent && !wrong && !ours;
    if (!ok)
      printf("call %ld of seed %llu: %s: %s %s\n", i, (unsigned long long)seed, calling,
             silent  ? "is NULL without a word"
             : wrong ? wrong
                     : "",
             tg_errmsg(ctx));
    tg_clear_error(ctx);
  }
  tg_close(ctx), ctx = NULL;
  return ok;
}

int main(int argc, char **argv) {
  long calls = 100000;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--seed"))
      seed = strtoull(argv[i + 1], NULL, 10);
    else if (!strcmp(argv[i], "--calls"))
      calls = atol(argv[i + 1]);
    else
      return fprintf(stderr, "fuzz_calls: %s?\n", argv[i]), 2;
  }
  const int fatal[] = {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
    signal(fatal[i], died);
  char folder[] = "/tmp/tg-calls-XXXXXX"; /* where tg_from_file makes what it is asked to make */
  if (!mkdtemp(folder) || chdir(folder)) return fprintf(stderr, "fuzz_calls: no folder\n"), 2;
  bool ok = run(seed, calls);
  (void)unlink("file"), (void)!chdir("/"), (void)rmdir(folder);
  fprintf(stderr, "fuzz_calls: seed %llu: %ld calls: %s\n", (unsigned long long)seed, calls,
          ok ? "nothing found" : "found one");
  return !ok;
}
