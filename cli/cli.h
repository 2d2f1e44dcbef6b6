/* cli.h: what the commands of `tg` share. A command is one CliCommand. Its options are listed once, in a
 * table, from which options.c derives parsing, help, completion and the manual. Results are written to
 * stdout, progress to stderr. The exit codes are 0 done, 1 failed, 2 wrong use, 130 interrupted. */
#ifndef TG_CLI_H
#define TG_CLI_H
#include "tg.h"
#include <stddef.h>
#include <stdio.h>

typedef enum CliOptionKind {
  CLI_FLAG,  /* bool */
  CLI_WHOLE, /* int64_t within lo .. hi */
  CLI_REAL,  /* double within lo .. hi */
  CLI_TEXT   /* const char *, of argv; a `value` of the form "a|b" lists all allowed values */
} CliOptionKind;

typedef struct CliOption {
  const char *name; /* without the leading -- */
  CliOptionKind kind;
  size_t offset;     /* of the field, in the command's struct of options */
  const char *value; /* the name of its value in help: "N" */
  const char *help;
  double lo, hi;
  bool many; /* a text that may be given several times: offset is of a CliTexts */
} CliOption;

enum { CLI_MANY = 32 };

typedef struct CliTexts {
  int n;
  const char *at[CLI_MANY];
  int after[CLI_MANY]; /* how many arguments stand before each */
} CliTexts;

/* arguments: as help shows them, "mnist|cifar [FOLDER]"; least .. most of them (most -1: any number). run
 * receives the options, set to `defaults` and then to what was given, and the arguments that are not
 * options. */
typedef struct CliCommand {
  const char *name, *summary, *arguments;
  int least, most;
  const CliOption *options;
  int noptions;
  size_t nbytes;
  const void *defaults;
  int (*run)(const void *options, char **argument, int n);
  const char *more;             /* the rest of its help */
  const char *(*listed)(int i); /* all names that an argument may be, NULL past the last; may be NULL */
  bool program;                 /* the first argument is a program; all words after it are the program's */
  int models; /* so many first arguments (-1: all) are models, which hub.c may know by name */
} CliCommand;

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

const CliCommand *cli_command(int i); /* NULL past the last */
/* The command that argv[1..] names; *words: how many words its name has. */
const CliCommand *cli_find(int argc, char **argv, int *words);
int cli_run(const CliCommand *c, int argc, char **argv); /* argv: the words after the name */
const char *
cli_running(void); /* the name of the command that cli_run runs, for code that several commands share */
void cli_help(FILE *to, const CliCommand *c); /* c NULL: prints the list of commands */
/* Writes the completion script of bash, zsh or fish to stdout; CLI_USAGE: another shell. */
int cli_completion(const char *shell);
void cli_completion_json(void);       /* what a shell completes, as one JSON object per command, one a line */
void cli_manual(const CliCommand *c); /* writes a man page to stdout; NULL: the page of tg itself */
/* Writes the same facts as one JSON object per command, one a line. */
void cli_manual_json(const CliCommand *c);
/* Returns the name that is closest to the word; NULL: none is close enough to be meant. */
const char *cli_closest(const char *word, const char *(*name)(int i, const void *of), const void *of);

/* ---- terminal.c */
bool cli_colour(int fd); /* whether it is a terminal and NO_COLOR is not set */
bool cli_live(int fd);   /* whether it is a terminal on which a line can be redrawn */
int cli_columns(int fd); /* the terminal's width, otherwise $COLUMNS, otherwise 80 */

/* A progress line: on a terminal it is redrawn at most ten times a second, elsewhere a line is printed for
 * each tenth of the total. If `late` is set, nothing is shown in the first two seconds. */
typedef struct CliProgress {
  int64_t total;
  double begin, shown;
  int64_t tenth, first;
  bool late, drawn;
  char last[256];
} CliProgress;

void cli_progress_begin(CliProgress *p, int64_t at, int64_t total, bool late);
/* head: the text before the bar; unit: "it" (shown as it/s) or "B" (bytes, shown in MB). */
void cli_progress(CliProgress *p, int64_t at, const char *head, const char *unit);
void cli_progress_clear(CliProgress *p); /* erases the line, so that other text can be printed */

/* A line for work that takes more than two seconds and whose end is unknown: reading a large file, compiling.
 * A thread shows the time that has passed: on a terminal at most ten times a second, elsewhere after 2, 10,
 * 20, 40 .. seconds. Between begin and end, no other code may write to stderr. */
typedef struct CliWait CliWait;
CliWait *
cli_wait_begin(const char *what); /* what: valid until the end. Returns NULL, and shows nothing, on failure */
/* Replaces the text by the name of what takes the time from now on. */
void cli_wait_what(CliWait *w, const char *what);
/* For tg_watch_progress: shows how many of the kernels are done. */
void cli_wait_progress(const TgProgress *p, void *wait);
void cli_wait_end(CliWait *w); /* erases the line; NULL is fine */
/* For .log of a context: erases what is drawn on stderr, then writes the text. */
void cli_log(const char *text, void *user);
void cli_json_text(FILE *to, const char *text);  /* writes the text quoted and escaped */
const char *cli_count(int64_t n, char room[32]); /* "87,850" */
const char *cli_bytes(double n, char room[32]);  /* "0.34 MiB" */

/* A curve, drawn as Braille dots with axes or as SVG: n values y at places x, which rise. NAN is left out.
 * Several curves share the axes; names label them. */
typedef struct CliCurve {
  const char *name;
  const double *x, *y;
  int n;
} CliCurve;

void cli_plot(FILE *to, const CliCurve *c, int ncurves, int columns, int rows);
/* Returns false if the file cannot be written; errno says why. */
bool cli_plot_svg(const char *path, const char *title, const CliCurve *c, int ncurves);

/* Parses a whole number in lo .. hi. Returns false if the text is none. */
bool cli_whole(const char *text, int64_t lo, int64_t hi, int64_t *out);
int cli_fail(const TgContext *ctx, const char *what); /* prints the context's error; returns CLI_FAILED */
/* Prints "tg WHAT: .." to stderr and returns code. */
__attribute__((format(printf, 3, 4))) int cli_refuse(int code, const char *what, const char *form, ...);
/* Returns whether a file, or a folder (folder/), exists or can be made at this path, before hours of work;
 * NULL: true. If not, the reason is printed. */
bool cli_will_write(const char *what, const char *path);
/* The same for a path that must not be a folder. */
bool cli_will_write_file(const char *what, const char *path);
/* Returns NULL if all that was written to f is there, otherwise the reason ("": unknown). */
const char *cli_unwritten(FILE *f);
void cli_refuse_after(void (*does)(void)); /* called before cli_refuse prints; NULL: nothing is called */
void cli_sort(double *at, int n);          /* ascending */
/* Reads all of f. Returns the bytes and a 0 byte, to be freed; NULL: errno gives the reason, or there is no
 * memory. nbytes (may be NULL) does not count that 0 byte: it equals strlen unless the file itself has 0
 * bytes. */
char *cli_read(FILE *f, size_t *nbytes);
char *cli_read_file(const char *path, size_t *nbytes);
/* For a file that `tg run` cannot run: returns what it is and what can be done with it. NULL: it may be
 * ONNX. */
const char *cli_not_to_run(const char *path);
bool cli_is_safetensors(const char *path);   /* decided by its first bytes */
bool links_shown(TgContext *ctx, bool json); /* links.c: prints how long copies between devices take */
double cli_now(void);                        /* seconds */
/* Returns whether the arguments include name, or there are no arguments. */
bool cli_named(const char *name, char **argument, int n);
/* From now on Ctrl-C (or SIGTERM) sets a flag instead of ending the process. A second one ends it. */
void cli_catch_interrupt(void);
bool cli_interrupted(void);

/* digits.c: draws n pictures of digits, 28x28 bytes each, with random distortion. The same seed gives the
 * same pictures. */
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
