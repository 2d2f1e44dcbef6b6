/* main.c: the `tg` command: finds the subcommand in a table and runs it. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const CliCommand commands[] = {
    {"bench", "measure the compiler: `tg bench lower` times graph to C source", cmd_bench},
    {"demo", "train a small network on digits and show what it learned", cmd_demo},
    {"opt", "run compiler passes on a graph written as text", cmd_opt},
    {"info", "facts about this build, its cache and its environment; or about a file", cmd_info},
    {"devices", "list the devices and which of them work here", cmd_devices},
    {"source", "print the kernels of a program in C, CUDA or Metal", cmd_source},
};

bool cli_colour(int fd) {
  const char *no = getenv("NO_COLOR");
  return isatty(fd) && !(no && *no);
}

bool cli_whole(const char *text, int64_t lo, int64_t hi, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (end == text || *end || errno || v < lo || v > hi) return false;
  *out = v;
  return true;
}

int cli_fail(const TgContext *ctx, const char *what) {
  fprintf(stderr, "tg %s: %s: %s\n", what, tg_status_name(tg_error(ctx)), tg_errmsg(ctx));
  return CLI_FAILED;
}

char *cli_read(FILE *f) {
  size_t n = 0, cap = 1 << 16;
  char *text = malloc(cap), *more;
  while (text) {
    n += fread(text + n, 1, cap - n - 1, f);
    if (n + 1 < cap) break;
    if (!(more = realloc(text, cap *= 2))) {
      free(text);
      return NULL;
    }
    text = more;
  }
  if (text && ferror(f)) {
    free(text);
    return NULL;
  }
  if (text) text[n] = 0;
  return text;
}

double cli_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void usage(FILE *to) {
  fprintf(to, "tg %s: a deep-learning compiler\nusage: tg COMMAND [options]\n", tg_version());
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
  fprintf(to, "The device is $TG_DEV, else the best one present.\n");
}

int cmd_devices(int argc, char **argv) {
  bool json = argc == 2 && !strcmp(argv[1], "--json");
  if (argc > 1 && !json) {
    fprintf(stderr, "usage: tg devices [--json]\n");
    return CLI_USAGE;
  }
  bool any = false;
  for (int i = 0; tg_device_name(i); i++) {
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = tg_device_name(i)});
    bool ok = ctx && !tg_error(ctx);
    const char *text = ok ? tg_device_describe(ctx) : tg_errmsg(ctx);
    if (json)
      printf("{\"device\":\"%s\",\"present\":%s}\n", tg_device_name(i), ok ? "true" : "false");
    else
      printf("%-11s %s  %s\n", tg_device_name(i), ok ? "ready " : "absent", text);
    any = any || ok;
    tg_close(ctx);
  }
  TgContext *ctx = tg_open(NULL); /* as a program that names none: $TG_DEV, else the best present */
  if (!json && ctx && !tg_error(ctx)) printf("default: %s\n", tg_default_device(ctx));
  tg_close(ctx);
  return any ? CLI_OK : CLI_FAILED;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    usage(stderr);
    return CLI_USAGE;
  }
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(argv[1], commands[i].name)) {
      int rc = commands[i].run(argc - 1, argv + 1);
      return fflush(stdout) || ferror(stdout) ? CLI_FAILED : rc;
    }
  bool help = !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
  if (!help) fprintf(stderr, "tg: no command '%s'\n", argv[1]);
  usage(help ? stdout : stderr);
  return help ? CLI_OK : CLI_USAGE;
}
