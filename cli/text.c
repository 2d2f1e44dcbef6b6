/* text.c: numbers, files and messages, for all commands. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool cli_whole(const char *text, int64_t lo, int64_t hi, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (end == text || *end || errno || v < lo || v > hi) return false;
  *out = v;
  return true;
}

static void (*before)(void); /* called before a message is printed, to erase what is drawn */

void cli_refuse_after(void (*does)(void)) { before = does; }

int cli_refuse(int code, const char *what, const char *form, ...) {
  va_list ap;
  if (before) before();
  va_start(ap, form);
  fprintf(stderr, "tg %s: ", what);
  vfprintf(stderr, form, ap);
  fputc('\n', stderr);
  va_end(ap);
  return code;
}

bool cli_will_write(const char *what, const char *path) {
  char folder[1000];
  snprintf(folder, sizeof folder, "%s", path ? path : "");
  for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/';)
    folder[--n] = 0;
  char *slash = strrchr(folder, '/');
  if (!*folder || !access(folder, F_OK)) return true;
  if (slash) slash[slash == folder] = 0;
  if (!access(slash ? folder : ".", W_OK | X_OK)) return true;
  return cli_refuse(0, what, "%s cannot be written: %s", path, strerror(errno));
}

bool cli_will_write_file(const char *what, const char *path) {
  struct stat s;
  size_t n = path ? strlen(path) : 0;
  bool folder = n && (path[n - 1] == '/' || (!stat(path, &s) && S_ISDIR(s.st_mode)));
  if (folder) return cli_refuse(0, what, "%s is a folder: a file in it has a name too", path);
  return cli_will_write(what, path);
}

/* A stream that has failed does not remember the reason, so it is made to write once more. */
const char *cli_unwritten(FILE *f) {
  errno = 0;
  if (!fflush(f) && !ferror(f)) return NULL;
  if (!errno && fputc('\n', f) != EOF) fflush(f);
  return errno ? strerror(errno) : "";
}

int cli_fail(const TgContext *ctx, const char *what) {
  return cli_refuse(CLI_FAILED, what, "%s: %s", tg_status_name(tg_error(ctx)), tg_errmsg(ctx));
}

enum { MOST_TEXT = 1 << 28 }; /* bytes; larger input, such as a device that never ends, is refused */

char *cli_read(FILE *f, size_t *nbytes) {
  size_t n = 0, cap = 1 << 16;
  char *text = malloc(cap), *more;
  while (text) {
    n += fread(text + n, 1, cap - n - 1, f);
    if (n + 1 < cap) break;
    if (cap >= MOST_TEXT) {
      free(text);
      errno = EFBIG;
      return NULL;
    }
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
  if (nbytes) *nbytes = n;
  return text;
}

char *cli_read_file(const char *path, size_t *nbytes) {
  FILE *f = fopen(path, "rb");
  char *text = f ? cli_read(f, nbytes) : NULL;
  int why = errno;
  if (f) fclose(f);
  errno = why;
  return text;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void cli_sort(double *at, int n) { qsort(at, (size_t)n, sizeof *at, by_value); }

double cli_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool cli_named(const char *name, char **argument, int n) {
  bool any = n == 0;
  for (int i = 0; i < n; i++)
    any = any || !strcmp(argument[i], name);
  return any;
}
