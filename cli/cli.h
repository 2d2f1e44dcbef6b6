/* cli.h: what the commands of `tg` share. A command is one CliCommand: its options stand in a table once, and
 * parsing, help, completion and the manual follow from it (options.c). Results go to stdout, progress to
 * stderr; exit codes 0 done, 1 failed, 2 wrong use, 130 interrupted. */
#ifndef TG_CLI_H
#define TG_CLI_H
#include "tg.h"
#include <stddef.h>
#include <stdio.h>

typedef enum CliOptionKind {
  CLI_FLAG,  /* bool */
  CLI_WHOLE, /* int64_t within lo .. hi */
  CLI_REAL,  /* double within lo .. hi */
  CLI_TEXT   /* const char *, of argv; value "a|b" lists all that it may be */
} CliOptionKind;

typedef struct CliOption {
  const char *name; /* without its -- */
  CliOptionKind kind;
  size_t offset;     /* in the command's struct of options */
  const char *value; /* what help calls its value: "N" */
  const char *help;
  double lo, hi;
  bool many; /* a text that may be given often: offset is of a CliTexts */
} CliOption;

enum { CLI_MANY = 32 };

typedef struct CliTexts {
  int n;
  const char *at[CLI_MANY];
} CliTexts;

/* arguments: as help shows them, "mnist|cifar [FOLDER]". least .. most of them (most -1: any number). run
 * gets the options, set to `defaults` and then to what was given, and the arguments that are no options. */
typedef struct CliCommand {
  const char *name, *summary, *arguments;
  int least, most;
  const CliOption *options;
  int noptions;
  size_t nbytes;
  const void *defaults;
  int (*run)(const void *options, char **argument, int n);
  const char *more;             /* the rest of its help */
  const char *(*listed)(int i); /* names that an argument may be, NULL past the last; may be NULL */
  bool program;                 /* the first argument is a program: what follows is for that */
} CliCommand;

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

const CliCommand *cli_command(int i);                          /* NULL past the last */
const CliCommand *cli_find(int argc, char **argv, int *words); /* by argv[1..]; how many words name it */
int cli_run(const CliCommand *c, int argc, char **argv);       /* argv: what follows the name */
const char *
cli_running(void); /* the name of the command that cli_run runs, for what several commands share */
void cli_help(FILE *to, const CliCommand *c); /* NULL: the list of commands */
int cli_completion(const char *shell);        /* bash, zsh, fish: to stdout; CLI_USAGE: another */
void cli_completion_json(void);               /* what a shell completes, an object per command, one a line */
void cli_manual(const CliCommand *c);         /* a man page to stdout; NULL: of tg */
/* the same as an object per command, one a line */
void cli_manual_json(const CliCommand *c);
/* The closest of the names that are close enough to be meant; NULL: none. */
const char *cli_closest(const char *word, const char *(*name)(int i, const void *of), const void *of);

/* ---- terminal.c */
bool cli_colour(int fd); /* a terminal, and NO_COLOR is not set */
bool cli_live(int fd);   /* a terminal on which a line can be redrawn */
int cli_columns(int fd); /* of the terminal, else $COLUMNS, else 80 */

/* A line that a terminal sees change at most ten times a second; elsewhere a line for each tenth of the way.
 * Nothing is shown of what ends within two seconds where `late` is set. */
typedef struct CliProgress {
  int64_t total;
  double begin, shown;
  int64_t tenth, first;
  bool late, drawn;
  char last[256];
} CliProgress;

void cli_progress_begin(CliProgress *p, int64_t at, int64_t total, bool late);
/* head: what stands before the bar; unit: "it" gives it/s, "B" bytes in MB */
void cli_progress(CliProgress *p, int64_t at, const char *head, const char *unit);
void cli_progress_clear(CliProgress *p); /* takes the line away, so that others can be printed */

/* A line for what takes past two seconds and has no known end: reading a large file, compiling. A thread of
 * its own keeps its clock going, at most ten times a second on a terminal; elsewhere a line after two
 * seconds, and then at 10, 20, 40 .. Between begin and end nobody else writes to stderr. */
typedef struct CliWait CliWait;
CliWait *
cli_wait_begin(const char *what); /* what: stays until the end. NULL: no memory, or no thread: no line */
void cli_wait_what(CliWait *w, const char *what);        /* from now on it is this that takes so long */
void cli_wait_progress(const TgProgress *p, void *wait); /* for tg_watch_progress: a bar of the kernels */
void cli_wait_end(CliWait *w);                           /* takes the line away; NULL is fine */
/* For .log of a context: to stderr, after what is drawn there was taken away. */
void cli_log(const char *text, void *user);
void cli_json_text(FILE *to, const char *text);  /* quoted and escaped */
const char *cli_count(int64_t n, char room[32]); /* "87,850" */
const char *cli_bytes(double n, char room[32]);  /* "0.34 MiB" */

/* Points as a curve of Braille dots with axes, and as SVG. y: n values, x: theirs (rising). NAN is left out.
 * Several curves share the axes; names label them. */
typedef struct CliCurve {
  const char *name;
  const double *x, *y;
  int n;
} CliCurve;

void cli_plot(FILE *to, const CliCurve *c, int ncurves, int columns, int rows);
bool cli_plot_svg(const char *path, const char *title, const CliCurve *c,
                  int ncurves); /* errno says why not */

bool cli_whole(const char *text, int64_t lo, int64_t hi, int64_t *out); /* a whole number in lo .. hi */
int cli_fail(const TgContext *ctx, const char *what); /* prints the context's error; CLI_FAILED */
/* "tg WHAT: .." to stderr; returns code */
__attribute__((format(printf, 3, 4))) int cli_refuse(int code, const char *what, const char *form, ...);
/* Whether a file, or folder/, may come to be there, asked before hours of work; NULL may. If not it says why. */
bool cli_will_write(const char *what, const char *path);
bool cli_will_write_file(const char *what, const char *path); /* the same of what is no folder */
/* Why not all that was written to it is there, "" where nobody knows; NULL: all is. */
const char *cli_unwritten(FILE *f);
void cli_refuse_after(void (*does)(void)); /* before it prints; NULL: nothing */
void cli_sort(double *at, int n);          /* the least first */
/* All of it, ended by a 0 byte, to be freed; NULL: errno says why, or no memory. nbytes (NULL is fine):
 * without that byte; a text that has none of its own is as long. */
char *cli_read(FILE *f, size_t *nbytes);
char *cli_read_file(const char *path, size_t *nbytes);
/* What a file is, and what can be done with it, where `tg run` can do nothing; NULL: it may be ONNX. */
const char *cli_not_to_run(const char *path);
bool cli_is_safetensors(const char *path);                /* by its first bytes */
bool links_shown(TgContext *ctx, bool json);              /* links.c: what copies between devices take */
double cli_now(void);                                     /* seconds */
bool cli_named(const char *name, char **argument, int n); /* name is one of them, or there are none */
/* From now on Ctrl-C sets a flag instead of ending the process; a second one ends it. */
void cli_catch_interrupt(void);
bool cli_interrupted(void);

/* digits.c: n pictures of digits, 28x28 bytes each, drawn with random distortion; the same seed gives the
 * same ones. */
void digits_draw(uint64_t seed, int n, uint8_t *pixels, uint8_t *labels);

#define CLI_FLAG_OF(T, field, name, help)                                                                    \
  { name, CLI_FLAG, offsetof(T, field), NULL, help, 0, 0, false }
#define CLI_WHOLE_OF(T, field, name, lo, hi, help)                                                           \
  { name, CLI_WHOLE, offsetof(T, field), "N", help, lo, hi, false }
#define CLI_REAL_OF(T, field, name, lo, hi, help)                                                            \
  { name, CLI_REAL, offsetof(T, field), "X", help, lo, hi, false }
#define CLI_TEXT_OF(T, field, name, value, help)                                                             \
  { name, CLI_TEXT, offsetof(T, field), value, help, 0, 0, false }
#define CLI_TEXTS_OF(T, field, name, value, help)                                                            \
  { name, CLI_TEXT, offsetof(T, field), value, help, 0, 0, true }
#define CLI_TAKES(T, table) .options = table, .noptions = CLI_COUNT(table), .nbytes = sizeof(T)
#define CLI_COUNT(options)  (int)(sizeof(options) / sizeof *(options))
#endif
