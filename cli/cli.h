/* cli.h: what the commands of `tg` share. Results go to stdout, progress to stderr; exit codes 0 done, 1
 * failed, 2 wrong use. */
#ifndef TG_CLI_H
#define TG_CLI_H
#include "tg.h"
#include <stdio.h>

/* argv[0]: the name */
typedef struct CliCommand {
  const char *name, *help;
  int (*run)(int argc, char **argv);
} CliCommand;

int cmd_bench(int argc, char **argv);
int bench_tensor(int argc, char **argv); /* of cmd_bench */
int bench_net(int argc, char **argv);    /* of cmd_bench */
int bench_ops(int argc, char **argv);    /* of cmd_bench */
int cmd_demo(int argc, char **argv);
int cmd_opt(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_source(int argc, char **argv);
int cmd_info(int argc, char **argv);

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

bool cli_colour(int fd); /* a terminal, and NO_COLOR is not set */
bool cli_whole(const char *text, int64_t lo, int64_t hi, int64_t *out); /* a whole number in lo .. hi */
int cli_fail(const TgContext *ctx, const char *what); /* prints the context's error; CLI_FAILED */
char *cli_read(FILE *f); /* all of it, ended by a 0 byte, to be freed; NULL: errno says why, or no memory */
double cli_now(void);    /* seconds */

/* digits.c: n pictures of digits, 28x28 bytes each, drawn with random distortion; the same seed gives the
 * same ones. */
void digits_draw(uint64_t seed, int n, uint8_t *pixels, uint8_t *labels);
#endif
