/* terminal.c: draws progress lines, curves, numbers for people. Nothing is redrawn if the output is no
 * terminal, and no information is given by colour alone. */
#define _DEFAULT_SOURCE
#include "cli.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

bool cli_live(int fd) {
  const char *term = getenv("TERM");
  return isatty(fd) && !(term && !strcmp(term, "dumb"));
}

bool cli_colour(int fd) {
  const char *no = getenv("NO_COLOR");
  return cli_live(fd) && !(no && *no);
}

int cli_columns(int fd) {
  struct winsize w;
  int64_t n;
  if (ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0) return w.ws_col;
  const char *said = getenv("COLUMNS");
  return said && cli_whole(said, 1, 10000, &n) ? (int)n : 80;
}

/* ---- numbers */
const char *cli_count(int64_t n, char room[32]) {
  char digits[32], *to = room;
  int k = snprintf(digits, sizeof digits, "%lld", (long long)n);
  for (int i = 0; i < k; i++) {
    *to++ = digits[i];
    if (digits[i] != '-' && i + 1 < k && (k - 1 - i) % 3 == 0) *to++ = ',';
  }
  *to = 0;
  return room;
}

const char *cli_bytes(double n, char room[32]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int u = 0;
  while (n >= 1024 && u < 4) {
    n /= 1024;
    u++;
  }
  snprintf(room, 32, u ? "%.2f %s" : "%.0f %s", n, units[u]);
  return room;
}

void cli_json_text(FILE *to, const char *text) {
  fputc('"', to);
  for (const unsigned char *p = (const unsigned char *)text; *p; p++)
    if (*p == '"' || *p == '\\')
      fprintf(to, "\\%c", *p);
    else if (*p < 32)
      fprintf(to, "\\u%04x", *p);
    else
      fputc(*p, to);
  fputc('"', to);
}

static void clock_put(char *to, size_t cap, double seconds) {
  long s = isfinite(seconds) && seconds >= 0 && seconds < 1e8 ? (long)(seconds + 0.5) : 0;
  if (s >= 3600)
    snprintf(to, cap, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(to, cap, "%ld:%02ld", s / 60, s % 60);
}

/* ---- progress */
void cli_progress_begin(CliProgress *p, int64_t at, int64_t total, bool late) {
  *p = (CliProgress){.total = total, .begin = cli_now(), .shown = -1, .tenth = -1, .first = at, .late = late};
}

/* Writes a bar, in eighths of a cell, with the block characters from U+2588. */
static void bar_put(char *to, size_t cap, double part, int cells) {
  size_t n = 0;
  int eighths = (int)(part * cells * 8);
  for (int i = 0; i < cells && n + 4 < cap; i++) {
    int left = eighths - 8 * i;
    if (left <= 0)
      to[n++] = ' ';
    else
      n += (size_t)snprintf(to + n, cap - n, "\xe2\x96%c", left >= 8 ? 0x88 : 0x90 - left);
  }
  to[n] = 0;
}

void cli_progress(CliProgress *p, int64_t at, const char *head, const char *unit) {
  double now = cli_now(), took = now - p->begin, part = p->total > 0 ? (double)at / (double)p->total : 0;
  bool live = cli_live(STDERR_FILENO), last = at >= p->total;
  if (p->late && took < 2 && !p->drawn) return;
  if (live ? p->drawn && !last && now - p->shown < 0.1 : (int64_t)(part * 10) == p->tenth) return;
  p->shown = now;
  p->tenth = (int64_t)(part * 10);
  double rate = took > 0 ? (double)(at - p->first) / took : 0;
  char so_far[32], left[32], tail[200], bar[400], counts[64], speed[32];
  clock_put(so_far, sizeof so_far, took);
  clock_put(left, sizeof left, rate > 0 ? (double)(p->total - at) / rate : 0);
  bool bytes = !strcmp(unit, "B");
  snprintf(counts, sizeof counts, bytes ? "%.1f/%.1fM" : "%.0f/%.0f", (double)at / (bytes ? 1e6 : 1),
           (double)p->total / (bytes ? 1e6 : 1));
  snprintf(speed, sizeof speed,
           bytes       ? "%.1fMB/s"
           : rate < 10 ? "%.2f%s/s"
                       : "%.1f%s/s",
           rate / (bytes ? 1e6 : 1), unit);
  snprintf(tail, sizeof tail, "%s [%s<%s, %s]", counts, so_far, left, speed);
  if (!live) {
    fprintf(stderr, "%s: %3.0f%% %s\n", head, 100 * part, tail);
    return;
  }
  int columns = cli_columns(STDERR_FILENO), cells = columns - (int)strlen(head) - (int)strlen(tail) - 11;
  fputs("\r\x1b[2K", stderr);
  if (cells >= 4) {
    bar_put(bar, sizeof bar, part > 1 ? 1 : part, cells > 60 ? 60 : cells);
    fprintf(stderr, "%s: %3.0f%%|%s| %s", head, 100 * part, bar, tail);
  } else
    fprintf(stderr, "%3.0f%% %.*s", 100 * part, columns > 8 ? columns - 6 : 1, head);
  p->drawn = true;
  if (last) {
    fputc('\n', stderr);
    p->drawn = false;
  }
  fflush(stderr);
}

void cli_progress_clear(CliProgress *p) {
  if (p->drawn) fputs("\r\x1b[2K", stderr), fflush(stderr);
  p->drawn = false;
}

/* ---- waiting */
struct CliWait {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t ends;
  const char *what, *phase; /* phase: "planned" or "compiled"; of the kernels, `done` of `all` */
  int done, all;
  double begin, next; /* next: seconds after `begin` of the next line, if the output is no terminal */
  bool ended, drawn, live;
};

static void wait_draw(CliWait *w, double took) {
  char clock[32], kernels[48] = "";
  clock_put(clock, sizeof clock, took);
  if (w->all) snprintf(kernels, sizeof kernels, ", %s %d of %d kernels", w->phase, w->done, w->all);
  if (w->live) {
    int columns = cli_columns(STDERR_FILENO);
    char line[256], bar[400] = "";
    int length = snprintf(line, sizeof line, "%s%s [%s]", w->what, kernels, clock),
        cells = columns - length - 4;
    if (w->all && cells >= 4) bar_put(bar, sizeof bar, (double)w->done / w->all, cells > 40 ? 40 : cells);
    fprintf(stderr, "\r\x1b[2K%.*s", columns > 1 ? columns - 1 : 1, line);
    if (*bar) fprintf(stderr, " |%s|", bar);
    w->drawn = true;
  } else if (took >= w->next) {
    fprintf(stderr, "%s%s [%s]\n", w->what, kernels, clock);
    w->next = w->next < 10 ? 10 : 2 * w->next;
  }
  fflush(stderr);
}

static void *wait_run(void *user) {
  CliWait *w = user;
  pthread_mutex_lock(&w->lock);
  while (!w->ended) {
    double took = cli_now() - w->begin;
    struct timespec until;
    if (took >= 2) wait_draw(w, took);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&w->ends, &w->lock, &until);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static CliWait *waiting; /* the wait that is being shown; NULL: none */

/* Called before an error is printed: erases the line and draws it no more. */
static void wait_quiet(void) {
  CliWait *w = waiting;
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->ended = true;
  if (w->drawn) fputs("\r\x1b[2K", stderr), fflush(stderr);
  w->drawn = false;
  pthread_mutex_unlock(&w->lock);
}

void cli_log(const char *text, void *user) {
  CliWait *w = waiting;
  (void)user;
  if (w) pthread_mutex_lock(&w->lock);
  if (w && w->drawn) {
    fputs("\r\x1b[2K", stderr);
    w->drawn = false;
  }
  fputs(text, stderr);
  if (w) pthread_mutex_unlock(&w->lock);
}

CliWait *cli_wait_begin(const char *what) {
  CliWait *w = waiting ? NULL : calloc(1, sizeof *w);
  if (!w) return NULL;
  *w = (CliWait){.what = what, .begin = cli_now(), .next = 2, .live = cli_live(STDERR_FILENO)};
  bool lock = !pthread_mutex_init(&w->lock, NULL), cond = lock && !pthread_cond_init(&w->ends, NULL);
  if (cond && !pthread_create(&w->thread, NULL, wait_run, w)) {
    cli_refuse_after(wait_quiet);
    return waiting = w;
  }
  if (cond) pthread_cond_destroy(&w->ends);
  if (lock) pthread_mutex_destroy(&w->lock);
  free(w);
  return NULL;
}

void cli_wait_what(CliWait *w, const char *what) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->what = what;
  w->done = w->all = 0;
  w->begin = cli_now();
  w->next = 2; /* each text is shown after two seconds of its own */
  if (w->drawn) fputs("\r\x1b[2K", stderr), fflush(stderr);
  w->drawn = false;
  pthread_mutex_unlock(&w->lock);
}

void cli_wait_progress(const TgProgress *p, void *wait) {
  CliWait *w = wait;
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  /* The text in *p is valid only during the call. */
  w->phase = strcmp(p->phase, "lower") ? "compiled" : "planned";
  w->done = p->done;
  w->all = p->all;
  pthread_mutex_unlock(&w->lock);
}

void cli_wait_end(CliWait *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->ended = true;
  pthread_cond_signal(&w->ends);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  if (w->drawn) fputs("\r\x1b[2K", stderr), fflush(stderr);
  pthread_cond_destroy(&w->ends), pthread_mutex_destroy(&w->lock);
  cli_refuse_after(NULL);
  waiting = NULL;
  free(w);
}

/* ---- curves */
typedef struct Bounds {
  double x0, x1, y0, y1;
  bool any;
} Bounds;

static Bounds bounds_of(const CliCurve *c, int ncurves) {
  Bounds b = {0};
  for (int k = 0; k < ncurves; k++)
    for (int i = 0; i < c[k].n; i++) {
      double x = c[k].x[i], y = c[k].y[i];
      if (!isfinite(x) || !isfinite(y)) continue;
      if (!b.any) b = (Bounds){x, x, y, y, true};
      if (x < b.x0) b.x0 = x;
      if (x > b.x1) b.x1 = x;
      if (y < b.y0) b.y0 = y;
      if (y > b.y1) b.y1 = y;
    }
  if (b.x1 == b.x0) b.x1 = b.x0 + 1;
  if (b.y1 == b.y0) b.y1 = b.y0 + 1;
  return b;
}

/* A cell has 2 by 4 dots. The bits of the characters from U+2800 number them column by column, but those of
 * the last row are the highest two. */
static void dot(unsigned char *cells, int columns, int x, int y) {
  static const unsigned char bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
  cells[(y / 4) * columns + x / 2] |= bit[y % 4][x % 2];
}

static void curve_draw(unsigned char *cells, int columns, int rows, const CliCurve *c, const Bounds *b) {
  int wide = 2 * columns - 1, high = 4 * rows - 1;
  double before_x = 0, before_y = 0;
  bool any = false;
  for (int i = 0; i < c->n; i++) {
    if (!isfinite(c->x[i]) || !isfinite(c->y[i])) continue;
    double x = (c->x[i] - b->x0) / (b->x1 - b->x0) * wide, y = (b->y1 - c->y[i]) / (b->y1 - b->y0) * high;
    double far = any ? fmax(fabs(x - before_x), fabs(y - before_y)) : 0;
    for (int s = 0; s <= (int)far; s++) {
      double part = far > 0 ? s / far : 1;
      dot(cells, columns, (int)(before_x + (x - before_x) * (any ? part : 1) + 0.5),
          (int)(before_y + (y - before_y) * (any ? part : 1) + 0.5));
    }
    dot(cells, columns, (int)(x + 0.5), (int)(y + 0.5));
    before_x = x;
    before_y = y;
    any = true;
  }
}

void cli_plot(FILE *to, const CliCurve *c, int ncurves, int columns, int rows) {
  Bounds b = bounds_of(c, ncurves);
  int wide = columns - 11 > 10 ? columns - 11 : 10;
  unsigned char *cells = calloc((size_t)wide * (size_t)rows, 1);
  if (!cells || !b.any) {
    free(cells);
    return;
  }
  for (int k = 0; k < ncurves; k++)
    curve_draw(cells, wide, rows, &c[k], &b);
  for (int r = 0; r < rows; r++) {
    double y = b.y1 + (b.y0 - b.y1) * r / (rows - 1);
    if (r % 4 == 0 || r == rows - 1)
      fprintf(to, "%9.4g \xe2\x94\xa4", y);
    else
      fprintf(to, "%9s \xe2\x94\x82", "");
    for (int i = 0; i < wide; i++) {
      unsigned v = 0x2800u + cells[r * wide + i];
      fprintf(to, "%c%c%c", (int)(0xe0 | v >> 12), (int)(0x80 | (v >> 6 & 63)), (int)(0x80 | (v & 63)));
    }
    fputc('\n', to);
  }
  fprintf(to, "%9s \xe2\x94\x94", "");
  for (int i = 0; i < wide; i++)
    fputs("\xe2\x94\x80", to);
  fprintf(to, "\n%10s %-*.6g%*.6g\n", "", wide / 2, b.x0, wide - wide / 2, b.x1);
  free(cells);
}

bool cli_plot_svg(const char *path, const char *title, const CliCurve *c, int ncurves) {
  static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};

  enum { WIDE = 720, HIGH = 360, LEFT = 70, TOP = 30, RIGHT = 20, BOTTOM = 40 };

  Bounds b = bounds_of(c, ncurves);
  FILE *f = fopen(path, "w");
  if (!f) return false;
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" "
          "y=\"18\">%s</text>\n",
          WIDE, HIGH, LEFT, title);
  double w = WIDE - LEFT - RIGHT, h = HIGH - TOP - BOTTOM;
  for (int i = 0; i <= 4; i++) {
    double y = TOP + h * i / 4, x = LEFT + w * i / 4;
    fprintf(
        f,
        "<path d=\"M%d %.1fh%.1f\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>"
        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n",
        LEFT, y, w, LEFT - 6, y + 4, b.y1 + (b.y0 - b.y1) * i / 4, x, HIGH - BOTTOM + 18,
        b.x0 + (b.x1 - b.x0) * i / 4);
  }
  for (int k = 0; k < ncurves; k++) {
    const char *colour = colours[k % 4];
    fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" points=\"", colour);
    for (int i = 0; i < c[k].n; i++)
      if (isfinite(c[k].x[i]) && isfinite(c[k].y[i]))
        fprintf(f, "%.1f,%.1f ", LEFT + (c[k].x[i] - b.x0) / (b.x1 - b.x0) * w,
                TOP + (b.y1 - c[k].y[i]) / (b.y1 - b.y0) * h);
    fprintf(f, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"end\">%s</text>\n", WIDE - RIGHT - 6,
            TOP + 16 * (k + 1), colour, c[k].name);
  }
  fputs("</svg>\n", f);
  bool ok = !ferror(f);
  return !fclose(f) && ok;
}
