/* main.c: the `tg` command: finds the command in a table and runs it. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* ---- the commands */
/* clang-format off */
#define COMMANDS(F) \
  F(demo) F(train_lora) F(train) F(run) F(compile) F(chat) F(serve) F(embed) F(merge) F(fetch) F(info) F(profile) F(explain) F(viz) F(bisect) F(launch) F(devices) F(plan) F(opt) F(source) F(bench_lower) F(bench_tensor) F(bench_net) \
  F(bench_ops) F(bench_llm) F(completion) F(manual)
/* clang-format on */
#define DECLARED(name) extern const CliCommand command_##name;
COMMANDS(DECLARED)
#define LISTED(name) &command_##name,
static const CliCommand *const commands[] = {COMMANDS(LISTED)};

const CliCommand *cli_command(int i) {
  return i >= 0 && i < (int)(sizeof commands / sizeof *commands) ? commands[i] : NULL;
}

/* A command's name may have two words. */
const CliCommand *cli_find(int argc, char **argv, int *words) {
  const CliCommand *c;
  for (int i = 0; argc > 0 && (c = cli_command(i)); i++) {
    const char *blank = strchr(c->name, ' ');
    size_t n = blank ? (size_t)(blank - c->name) : strlen(c->name);
    *words = blank ? 2 : 1;
    if (strlen(argv[0]) != n || strncmp(argv[0], c->name, n)) continue;
    if (!blank || (argc > 1 && !strcmp(argv[1], blank + 1))) return c;
  }
  return NULL;
}

/* ---- what the commands share */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

/* The handler is removed after the first signal, so a second one ends the process. */
void cli_catch_interrupt(void) {
  struct sigaction a = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL);
  sigaction(SIGTERM, &a, NULL);
}

bool cli_interrupted(void) { return interrupted; }

/* ---- commands about commands */
typedef struct CompletionOptions {
  bool json;
} CompletionOptions;

static int run_completion(const void *options, char **argument, int n) {
  const CompletionOptions *o = options;
  if (o->json && !n) return cli_completion_json(), CLI_OK;
  if (o->json || !n) return cli_refuse(CLI_USAGE, "completion", "a SHELL (bash, zsh, fish), or --json");
  return cli_completion(argument[0]);
}

static const CliOption completion_options[] = {
    CLI_FLAG_OF(CompletionOptions, json, "json",
                "the words themselves: an object per command, one a line, for other shells")};

static const char *shells(int i) {
  static const char *const names[] = {"bash", "zsh", "fish", NULL};
  return names[i];
}

const CliCommand command_completion = {.name = "completion",
                                       .summary = "print a shell's completion of commands and options",
                                       .arguments = "[SHELL]",
                                       .most = 1,
                                       CLI_TAKES(CompletionOptions, completion_options),
                                       .run = run_completion,
                                       .listed = shells};

typedef struct ManualOptions {
  bool json;
} ManualOptions;

static int run_manual(const void *options, char **argument, int n) {
  const ManualOptions *o = options;
  int words = 0;
  const CliCommand *c = cli_find(n, argument, &words);
  if (n && !c) return cli_refuse(CLI_USAGE, "manual", "no command '%s'", argument[0]);
  if (o->json)
    cli_manual_json(c);
  else
    cli_manual(c);
  return CLI_OK;
}

static const CliOption manual_options[] = {
    CLI_FLAG_OF(ManualOptions, json, "json",
                "an object per command, one a line: its arguments and options, for programs that call tg")};

const CliCommand command_manual = {.name = "manual",
                                   .summary = "print the man page, of a command or of all",
                                   .arguments = "[COMMAND]",
                                   .most = 2,
                                   CLI_TAKES(ManualOptions, manual_options),
                                   .run = run_manual};

typedef struct DevicesOptions {
  bool json, links;
} DevicesOptions;

static int run_links(bool json) {
  TgContext *ctx = tg_open_with(.log = cli_log);
  bool ok = ctx && links_shown(ctx, json);
  int rc = ok ? CLI_OK : cli_refuse(CLI_FAILED, "devices", "%s", tg_errmsg(ctx));
  tg_close(ctx);
  return rc;
}

static int run_devices(const void *options, char **argument, int n) {
  const DevicesOptions *o = options;
  (void)argument, (void)n;
  bool any = false;
  if (o->links) return run_links(o->json);
  for (int i = 0; tg_device_name(i); i++) {
    char what[64];
    snprintf(what, sizeof what, "opening %.40s", tg_device_name(i));
    CliWait *wait = cli_wait_begin(what);
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = tg_device_name(i)});
    bool ok = ctx && !tg_error(ctx);
    const char *text = ok ? tg_device_describe(ctx) : tg_errmsg(ctx);
    cli_wait_end(wait);
    if (o->json) {
      printf("{\"device\":\"%s\",\"present\":%s,\"%s\":", tg_device_name(i), ok ? "true" : "false",
             ok ? "about" : "why");
      cli_json_text(stdout, text);
      puts("}");
    } else
      printf("%-11s %s  %s\n", tg_device_name(i), ok ? "ready " : "absent", text);
    any = any || ok;
    tg_close(ctx);
  }
  /* Opens the default device: $TG_DEV, otherwise the best one present. */
  TgContext *ctx = tg_open_with(.log = cli_log);
  if (!o->json && ctx && !tg_error(ctx)) printf("default: %s\n", tg_default_device(ctx));
  tg_close(ctx);
  return any ? CLI_OK : CLI_FAILED;
}

static const CliOption devices_options[] = {
    CLI_FLAG_OF(DevicesOptions, links, "links",
                "measure copies between the devices beside the default one, or of ranks, and print TG_LINKS"),
    CLI_FLAG_OF(DevicesOptions, json, "json", "an object per device, one a line")};

const CliCommand command_devices = {.name = "devices",
                                    .summary = "list the devices and which of them work here",
                                    .arguments = "",
                                    CLI_TAKES(DevicesOptions, devices_options),
                                    .run = run_devices};

/* ---- main */
static const char *first_word(int i, const void *of) {
  /* One for each command, because the closest name is kept by pointer. */
  static char word[sizeof commands / sizeof *commands][32];
  (void)of;
  const CliCommand *c = cli_command(i);
  if (c) snprintf(word[i], sizeof word[i], "%.*s", (int)strcspn(c->name, " "), c->name);
  return c ? word[i] : NULL;
}

/* Prints the commands of two words whose first word is `word`. second: the second word, which none of them
 * has; NULL: it was not given. Returns false if there are no such commands. */
static bool group_said(FILE *to, const char *word, const char *second) {
  const CliCommand *c;
  bool any = false;
  for (int i = 0; (c = cli_command(i)); i++) {
    size_t n = strcspn(c->name, " ");
    if (!c->name[n] || strlen(word) != n || strncmp(word, c->name, n)) continue;
    if (!any) fprintf(to, second ? "tg %s: no '%s'; there are:\n" : "tg %s:\n", word, second);
    fprintf(to, "  %-14s %s\n", c->name, c->summary);
    any = true;
  }
  return any;
}

static int unknown(int argc, char **argv) {
  if (group_said(stderr, argv[0], argc > 1 ? argv[1] : NULL)) return CLI_USAGE;
  const char *meant = cli_closest(argv[0], first_word, NULL);
  fprintf(stderr,
          meant ? "tg: no command '%s'; did you mean '%s'?\n" : "tg: no command '%s'; tg help lists them\n",
          argv[0], meant);
  return CLI_USAGE;
}

static int help(int argc, char **argv) {
  int words;
  const CliCommand *c = cli_find(argc, argv, &words);
  if (argc == 1 && !c && group_said(stdout, argv[0], NULL)) return CLI_OK;
  if (argc > 0 && !c) return unknown(argc, argv);
  cli_help(stdout, c);
  return CLI_OK;
}

static int run(int argc, char **argv) {
  int words = 0;
  if (argc < 2) {
    cli_help(stderr, NULL);
    return CLI_USAGE;
  }
  bool asks = !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
  if (asks) return help(argc - 2, argv + 2);
  if (!strcmp(argv[1], "--version")) return printf("tg %s\n", tg_version()) > 0 ? CLI_OK : CLI_FAILED;
  const CliCommand *c = cli_find(argc - 1, argv + 1, &words);
  return c ? cli_run(c, argc - 1 - words, argv + 1 + words) : unknown(argc - 1, argv + 1);
}

/* If the caller has closed a standard stream, its descriptor would be given to the next file that is opened,
 * and printed text would be written into that file. So each closed stream is opened as /dev/null, stdin for
 * writing and the others for reading, so that using it fails. */
static void streams_open(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
}

int main(int argc, char **argv) {
  streams_open();
  int rc = run(argc, argv);
  const char *why = cli_unwritten(stdout);
  if (!why) return rc;
  fprintf(stderr, "tg: not all of the output could be written%s%s\n", *why ? ": " : "", why);
  return CLI_FAILED;
}
