/* links.c: `tg devices --links`: how fast devices reach each other. In: the devices that work here: those
 * next to the default one, or, with several ranks, the device of each. Out: for each pair, the way that bytes
 * take (tg_device_link), the time of a copy of a few bytes, and the bytes per second of a large copy; and
 * TG_LINKS, with which sums between devices are planned with these figures. */
#include "cli.h"
#include <stdio.h>

enum { MOST = 15, LARGE = 16 << 20, TIMES = 5 };

typedef struct Measured {
  double us, bytes_us; /* us: of a copy of four bytes; bytes_us: bytes per us of a large copy */
} Measured;

/* Returns the least time, in us, of a copy of n elements that were just computed; 0: the copy failed. */
static double copy_us(TgContext *ctx, const char *from, const char *to, int64_t n) {
  double least = 0;
  for (int i = 0; i < TIMES && !tg_error(ctx); i++) {
    tg_scope_begin(ctx);
    TgTensor *x = tg_to(tg_contiguous(tg_full(ctx, TG_SHAPE(n), i)), from);
    float seen;
    if (!tg_realize(x)) tg_read(tg_slice(x, 0, 0, 1), &seen, sizeof seen);
    double begin = cli_now();
    TgTensor *y = tg_to(x, to);
    if (!tg_realize(y)) tg_sync(ctx);
    double us = (cli_now() - begin) * 1e6;
    if (!i || us < least) least = us;
    tg_scope_end(ctx);
  }
  return tg_error(ctx) ? 0 : least;
}

static Measured link_measured(TgContext *ctx, const char *from, const char *to) {
  Measured m = {.us = copy_us(ctx, from, to, 1)};
  double us = copy_us(ctx, from, to, LARGE / 4);
  m.bytes_us = us > m.us ? LARGE / (us - m.us) : 0;
  return m;
}

/* Finds the devices next to the first one that can be opened. Returns how many there are in all. */
static int devices_here(TgContext *ctx, char (*name)[32], const char **d) {
  int n = tg_comm_size(ctx);
  if (n > 1) return tg_comm_devices(ctx, NULL, MOST, d);
  for (n = 0; n < 4; n++) {
    snprintf(name[n], sizeof name[n], n ? "%.20s:%d" : "%.20s", tg_default_device(ctx), n);
    TgTensor *there = tg_to(tg_ones(ctx, TG_SHAPE(1)), name[n]);
    if (!there || tg_realize(there)) break;
    d[n] = name[n];
  }
  tg_clear_error(ctx);
  return n;
}

static void link_put(TgContext *ctx, const char *from, const char *to, Measured m, bool json) {
  const char *by = tg_device_link(ctx, from, to);
  if (!by) return;
  printf(json ? "{\"from\":\"%s\",\"to\":\"%s\",\"by\":\"%s\",\"us\":%.2f,\"gb_s\":%.3f}\n"
              : "%-12s %-12s %-8s %10.1f %10.2f\n",
         from, to, by, m.us, m.bytes_us / 1e3);
}

bool links_shown(TgContext *ctx, bool json) {
  char name[MOST][32];
  const char *d[MOST];
  Measured worst = {0};
  int n = devices_here(ctx, name, d);
  bool tells = !tg_comm_rank(ctx);
  if (tells && !json) /* the description of an emulated device says that it is emulated */
    printf("%s: %s\n%-12s %-12s %-8s %10s %10s\n", tg_default_device(ctx), tg_device_describe(ctx), "from",
           "to", "by", "us", "GB/s");
  for (int a = 0; a < n; a++)
    for (int b = 0; b < n && !tg_error(ctx); b++) {
      if (a == b) continue;
      Measured m = link_measured(ctx, d[a], d[b]);
      if (m.us > worst.us) worst.us = m.us;
      if (!worst.bytes_us || m.bytes_us < worst.bytes_us) worst.bytes_us = m.bytes_us;
      if (tells) link_put(ctx, d[a], d[b], m, json);
    }
  if (tells && !json && n > 1) printf("TG_LINKS=%.3g:%.3g,1.25:50\n", worst.bytes_us / 1e3, worst.us);
  return !tg_error(ctx);
}
