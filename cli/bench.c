/* bench.c: `tg bench lower`: measures how long the compiler itself takes from tensor graph to C source, on
 * one core. In: programs.c. Out: a line per program. The device is NULL:C, which schedules and renders but
 * neither compiles nor runs. Every run starts with empty schedule and program caches and an emptied graph. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "programs.h"
#include <stdio.h>
#include <time.h>

typedef struct Figures {
  uint64_t nodes, kernels, made;
  double ms, least;
} Figures;

enum { MAX_RUNS = 101 };

/* Seconds for which this thread has run; the time of other processes does not count. */
static double core_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sets *f to the median of `runs` cold lowerings. A lowering that is not counted comes first: it makes the
 * parameters' state and warms up memory. */
static bool measure(TgContext *ctx, int which, int n, int runs, Figures *f) {
  ProgramState *p = program_begin(ctx, which, n);
  double ms[MAX_RUNS], total = 0;
  bool ok = p && !program_step(p);
  int k = 0;
  /* Three runs are enough for a program that takes long. */
  while (ok && k < runs && (k < 3 || total < 3000)) {
    tg_cache_clear(ctx);
    ok = !tg_collect(ctx);
    tg_counters_reset(ctx);
    double t = core_now();
    ok = ok && !program_step(p);
    total += ms[k++] = (core_now() - t) * 1e3;
  }
  TgCounters c = tg_counters(ctx);
  program_end(p);
  if (!ok) return false;
  cli_sort(ms, k);
  *f = (Figures){c.graph_nodes, c.kernels, c.nodes, ms[k / 2], ms[0]};
  return true;
}

typedef struct LowerOptions {
  bool json;
  int64_t runs, size;
} LowerOptions;

static void figures_print(const ProgramInfo *info, const Figures *f, const LowerOptions *o) {
  double peer = o->size && o->size != info->size ? 0 : info->peer_ms;
  char text[32];
  snprintf(text, sizeof text, o->json ? "%.0f" : "%12.0f", peer);
  if (o->json)
    printf("{\"program\":\"%s\",\"size\":%d,\"nodes\":%llu,\"kernels\":%llu,\"made\":%llu,\"ms\":%.3f,"
           "\"least_ms\":%.3f,\"tinygrad_ms\":%s}\n",
           info->name, o->size ? (int)o->size : info->size, (unsigned long long)f->nodes,
           (unsigned long long)f->kernels, (unsigned long long)f->made, f->ms, f->least,
           peer > 0 ? text : "null");
  else {
    printf("%-16s %8llu %8llu %9llu %10.2f %10.2f ", info->name, (unsigned long long)f->nodes,
           (unsigned long long)f->kernels, (unsigned long long)f->made, f->ms, f->least);
    if (peer > 0)
      printf("%s %7.0fx\n", text, peer / f->ms);
    else
      printf("%12s %8s\n", "-", "-");
  }
  fflush(stdout);
}

static int run_lower(const void *options, char **argument, int n) {
  const LowerOptions *o = options;
  int rc = CLI_OK;
  if (!o->json)
    printf("%-16s %8s %8s %9s %10s %10s %12s %8s\n", "program", "nodes", "kernels", "made", "ms", "least ms",
           "tinygrad ms", "ratio");
  for (int i = 0; program_info(i) && rc == CLI_OK; i++) {
    if (!cli_named(program_info(i)->name, argument, n)) continue;
    CliWait *wait = cli_wait_begin(program_info(i)->name);
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .seed = 1});
    Figures f;
    bool ok = ctx && !tg_error(ctx) && measure(ctx, i, (int)o->size, (int)o->runs, &f);
    cli_wait_end(wait);
    if (!ok)
      rc = cli_fail(ctx, "bench");
    else
      figures_print(program_info(i), &f, o);
    tg_close(ctx);
  }
  if (!o->json && rc == CLI_OK)
    fprintf(stderr, "tinygrad's times are of another day and machine moment: an order of magnitude\n");
  return rc;
}

static const LowerOptions defaults = {.runs = 21};

static const CliOption options[] = {
    CLI_WHOLE_OF(LowerOptions, runs, "runs", 1, MAX_RUNS,
                 "cold runs of each (21; at least 3, about 3 s in all)"),
    CLI_WHOLE_OF(LowerOptions, size, "size", 1, 100000000,
                 "ops, layers or parts of the program, instead of its own (no ratio then)"),
    CLI_FLAG_OF(LowerOptions, json, "json", "an object per program, one a line")};

const CliCommand command_bench_lower = {
    .name = "bench lower",
    .summary = "time the compiler itself, from tensor graph to C source on one core",
    .arguments = "[PROGRAM..]",
    .most = -1,
    CLI_TAKES(LowerOptions, options),
    .defaults = &defaults,
    .run = run_lower,
    .listed = program_name,
    .more =
        "No C compiler runs. Nodes of the tensor graph, kernels, graph nodes made on the way, the median and "
        "the "
        "least ms in processor time. `ratio` is tinygrad's lowering time of the same program (commit "
        "a9069c177a, "
        "another day and machine moment: an order of magnitude, no comparison of the two) over the median."};
