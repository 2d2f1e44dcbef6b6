/* roof.c: measures the roof of a device with the library itself. In: its name. Out: the fastest of several
 * products of f32 matrices, and of several copies of arrays that fit into no cache. */
#include "roof.h"
#include "cli.h"
#include <stdlib.h>
#include <string.h>

enum { TRIES = 4, SIDE = 1024, ELEMENTS = 16 << 20 };

typedef struct Best {
  double flops_us, us;
} Best;

static void launch_seen(const TgLaunch *l, void *user) {
  Best *b = user;
  double rate = l->microseconds > 0 ? (double)l->flops / l->microseconds : 0;
  if (rate > b->flops_us) b->flops_us = rate;
  if (l->microseconds > 0 && (b->us == 0 || l->microseconds < b->us)) b->us = l->microseconds;
}

static TgTensor *square(TgContext *ctx) { return tg_clone(tg_rand(ctx, TG_SHAPE(SIDE, SIDE))); }

/* Each product has new matrices, because an equal product would not be computed again. */
static double products(TgContext *ctx) {
  Best best = {0, 0};
  for (int i = 0; i < TRIES; i++) {
    TG_SCOPE(ctx) {
      TgTensor *both[] = {square(ctx), square(ctx)};
      tg_realize_many(both, 2);
      tg_watch_launches(ctx, launch_seen, &best);
      tg_realize(tg_matmul(both[0], both[1]));
      tg_watch_launches(ctx, NULL, NULL);
    }
  }
  return best.flops_us;
}

/* Returns bytes per us, read and written. */
static double copies(TgContext *ctx) {
  Best best = {0, 0};
  TG_SCOPE(ctx) {
    TgTensor *x = tg_rand(ctx, TG_SHAPE(ELEMENTS));
    tg_realize(x);
    tg_watch_launches(ctx, launch_seen, &best);
    for (int i = 0; i < TRIES; i++)
      tg_realize(tg_add(x, tg_full(ctx, TG_SHAPE(1), i + 0.5)));
    tg_watch_launches(ctx, NULL, NULL);
  }
  return best.us > 0 ? 2.0 * ELEMENTS * 4 / best.us : 0;
}

Roof roof_measured(const char *device) {
  Roof r = {0, 0};
  char name[40];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(device, " "), device);
  bool runs = !strncmp(name, "CPU", 3) || !strncmp(name, "CUDA", 4) || !strncmp(name, "METAL", 5);
  const char *emulated = getenv("TG_EMU");
  if (!runs || (emulated && *emulated && strcmp(emulated, "0"))) return r;
  TgContext *ctx = tg_open_with(.device = name, .seed = 1);
  if (!tg_error(ctx)) r = (Roof){products(ctx), copies(ctx)};
  if (tg_error(ctx)) r = (Roof){0, 0};
  tg_close(ctx);
  return r;
}
