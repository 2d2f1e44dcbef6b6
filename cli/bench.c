/* bench.c: `tg bench lower`: how long the compiler itself takes, from tensor graph to C source, on one core.
 * In: programs.c. Out: a line per program. The device is NULL:C, which schedules and renders but neither
 * compiles nor runs; every run starts with empty schedule and program caches and an emptied graph. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "programs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct Figures {
  uint64_t nodes, kernels, made;
  double ms, least;
} Figures;

enum { MAX_RUNS = 101 };

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double core_now(void) { /* seconds this thread has run: other processes do not count */
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The median of `runs` cold lowerings, after one that makes parameters' state and warms the memory. */
static bool measure(TgContext *ctx, int which, int n, int runs, Figures *f) {
  ProgramState *p = program_begin(ctx, which, n);
  double ms[MAX_RUNS], total = 0;
  bool ok = p && !program_step(p);
  int k = 0;
  while (ok && k < runs && (k < 3 || total < 3000)) { /* long programs: three runs are enough */
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
  qsort(ms, (size_t)k, sizeof *ms, by_value);
  *f = (Figures){c.graph_nodes, c.kernels, c.nodes, ms[k / 2], ms[0]};
  return true;
}

static void usage(FILE *to) {
  fprintf(to,
          "usage: tg bench lower [--json] [--runs N] [--size N] [PROGRAM..]\n       tg bench tensor "
          "[--json] [--runs N]: sort, topk, cumsum, embedding backward beside plain C loops\n"
          "       tg bench net [--json] [--runs N] [CASE..]: convolutions, networks, training steps\n"
          "       tg bench ops [--json] [--divide N] [CASE..]: single operations at sizes that fill a GPU\n"
          "Times each program from tensor graph to C source on one core, without a C compiler: nodes of "
          "the tensor graph, kernels, graph nodes\n"
          "made on the way, median ms of N cold runs (21; at least 3, about 3 s in all) and the fastest, "
          "in processor time. `ratio` is tinygrad's lowering time of\n"
          "the same program (commit a9069c177a, another day and machine moment: an order of magnitude, "
          "no comparison of the two) over the median.\n"
          "--size N: ops, layers or parts of the program, instead of its own size (no ratio then).\n"
          "--json: one object per line: "
          "{\"program\":..,\"size\":..,\"nodes\":..,\"kernels\":..,\"made\":..,\"ms\":..,\"least_ms\":..,"
          "\"tinygrad_ms\":.. or null}\n"
          "programs:");
  for (int i = 0; program_info(i); i++)
    fprintf(to, " %s", program_info(i)->name);
  fputc('\n', to);
}

typedef struct LowerOptions {
  bool json, all, help;
  int64_t runs, size;
  bool *wanted; /* by program */
} LowerOptions;

/* False: what was not understood is told. */
static bool lower_options(int argc, char **argv, LowerOptions *o) {
  for (int i = 1; i < argc && !o->help; i++) {
    int program = program_find(argv[i]);
    bool known = program >= 0;
    if (known) o->wanted[program] = true, o->all = false;
    if (!strcmp(argv[i], "--json"))
      known = o->json = true;
    else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
      known = cli_whole(argv[++i], 1, MAX_RUNS, &o->runs);
    else if (!strcmp(argv[i], "--size") && i + 1 < argc)
      known = cli_whole(argv[++i], 1, 100000000, &o->size);
    else if (!strcmp(argv[i], "--help"))
      known = o->help = true;
    if (!known) {
      fprintf(stderr, "tg bench lower: '%s' is no program and no option\n", argv[i]);
      return false;
    }
  }
  return true;
}

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

static int lower_all(const LowerOptions *o) {
  int rc = CLI_OK;
  if (!o->json)
    printf("%-16s %8s %8s %9s %10s %10s %12s %8s\n", "program", "nodes", "kernels", "made", "ms", "least ms",
           "tinygrad ms", "ratio");
  for (int i = 0; program_info(i) && rc == CLI_OK; i++) {
    if (!o->all && !o->wanted[i]) continue;
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C", .seed = 1});
    Figures f;
    if (!ctx || tg_error(ctx) || !measure(ctx, i, (int)o->size, (int)o->runs, &f))
      rc = cli_fail(ctx, "bench");
    else
      figures_print(program_info(i), &f, o);
    tg_close(ctx);
  }
  if (!o->json && rc == CLI_OK)
    fprintf(stderr, "tinygrad's times are of another day and machine moment: an order of magnitude\n");
  return rc;
}

static int lower(int argc, char **argv) {
  LowerOptions o = {.all = true, .runs = 21};
  int count = 0;
  while (program_info(count))
    count++;
  if (!(o.wanted = calloc((size_t)count, sizeof *o.wanted))) return CLI_FAILED;
  bool known = lower_options(argc, argv, &o);
  if (!known || o.help) usage(known ? stdout : stderr);
  int rc = !known ? CLI_USAGE : o.help ? CLI_OK : lower_all(&o);
  free(o.wanted);
  return rc;
}

int cmd_bench(int argc, char **argv) {
  if (argc >= 2 && !strcmp(argv[1], "lower")) return lower(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "tensor")) return bench_tensor(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "ops")) return bench_ops(argc - 1, argv + 1);
  if (argc >= 2 && !strcmp(argv[1], "net")) return bench_net(argc - 1, argv + 1);
  bool help = argc == 2 && !strcmp(argv[1], "--help");
  usage(help ? stdout : stderr);
  return help ? CLI_OK : CLI_USAGE;
}
