/* profile.c: where the time goes, as a file that Chrome's tracing and Perfetto read. In: TG_PROFILE or
 * tg_profile_start, spans of the host, launches. Out: the Trace Event Format's array of events ("X"
 * complete events, "C" counters, "M" names),
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMHzjnBOrEKa3nDzeg4
 *
 * Track 0 is the host: realize, schedule, lower, compile, read, replay, one in the other. Track 1 + d is
 * device d: a launch each, with its work, what it was estimated to take, and in which span of the host it
 * was asked for. While a profile is made launches go one by one, each waited for, so that each has its own
 * time. */
#define _GNU_SOURCE
#include "engine/engine.h"
#include "base/os.h"
#include "tensor/front.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FLUSH_BYTES = 256 << 10, MOST_FILES = 1000 };

struct Profile {
  int fd;
  double begun; /* time 0 of the file */
  Str text;     /* events that are not written yet */
  bool failed;
  uint64_t bytes[MOST_DEVICES]; /* what the memory counter of each device last said */
};

static void flush(TgContext *ctx, Profile *p) {
  const char *at = str_text(&p->text);
  size_t left = p->text.len;
  p->failed |= p->text.oom;
  while (left && !p->failed) {
    ssize_t n = ctx->os->write(p->fd, at, left);
    if (n < 0 && errno == EINTR) continue;
    p->failed = n <= 0;
    at += n > 0 ? n : 0;
    left -= n > 0 ? (size_t)n : 0;
  }
  p->text.len = 0;
}

static void event_begin(Profile *p) { str_put(&p->text, ",\n"); }

static void event_end(TgContext *ctx, Profile *p) {
  if (p->text.len > FLUSH_BYTES) flush(ctx, p);
}

/* ---- what is told */
double profile_now(const TgContext *ctx) { return ctx->profile ? time_now_s() : 0; }

void profile_span(TgContext *ctx, const char *what, double begin, const char *form, ...) {
  Profile *p = ctx->profile;
  char args[200];
  va_list list;
  if (!p) return;
  va_start(list, form);
  vsnprintf(args, sizeof args, form, list);
  va_end(list);
  event_begin(p);
  str_printf(&p->text,
             "{\"name\":\"%s\",\"cat\":\"host\",\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,"
             "\"args\":{%s}}",
             what, (begin - p->begun) * 1e6, (time_now_s() - begin) * 1e6, args);
  event_end(ctx, p);
}

void profile_launch(TgContext *ctx, const Plan *plan, int k, double begin, double us) {
  Profile *p = ctx->profile;
  const SchedKernel *sk = &plan->sched.kernel[k];
  if (!p) return;
  event_begin(p);
  str_printf(&p->text,
             "{\"name\":\"%s\",\"cat\":\"kernel\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
             "\"args\":"
             "{\"flops\":%lld,\"estimated_us\":%.3f,\"plan\":%llu,\"kernel\":%d,\"origin\":",
             plan->prog[k]->name, 1 + plan->dev->index, (begin - p->begun) * 1e6, us, (long long)sk->flops,
             sk->est_us, (unsigned long long)plan->number, k);
  str_json(&p->text, kernel_origin(plan, k));
  str_put(&p->text, "}}");
  event_end(ctx, p);
}

void profile_memory(TgContext *ctx, const Device *d) {
  Profile *p = ctx->profile;
  if (!p || p->bytes[d->index] == d->bytes_in_use) return;
  p->bytes[d->index] = d->bytes_in_use;
  event_begin(p);
  str_printf(
      &p->text,
      "{\"name\":\"memory of %s\",\"ph\":\"C\",\"pid\":1,\"tid\":0,\"ts\":%.3f,\"args\":{\"bytes\":%llu}}",
      d->name, (time_now_s() - p->begun) * 1e6, (unsigned long long)d->bytes_in_use);
  event_end(ctx, p);
}

/* ---- beginning and end */
static void name_track(Profile *p, int track, const char *name) {
  if (track) event_begin(p);
  str_printf(&p->text,
             "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s\"}}", track,
             name);
}

/* A file of its own: where `path` is there already, path.2, path.3 and so on, unless it may be replaced. */
static int file_new(TgContext *ctx, const char *path, bool replace) {
  char other[400];
  int fd = ctx->os->open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL), 0666);
  for (int i = 2; fd < 0 && errno == EEXIST && i < MOST_FILES; i++) {
    snprintf(other, sizeof other, "%.380s.%d", path, i);
    fd = ctx->os->open(other, O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL, 0666);
  }
  return fd;
}

static TgStatus start(TgContext *ctx, const char *path, bool replace) {
  int fd = file_new(ctx, path, replace);
  if (fd < 0) return error_set(&ctx->err, TG_ERR_IO, "profile: %.300s: %s", path, strerror(errno));
  Profile *p = mem_alloc(&ctx->mem, sizeof *p);
  if (!p) {
    ctx->os->close(fd);
    return error_set(&ctx->err, TG_ERR_NOMEM, "profile: out of memory");
  }
  p->fd = fd;
  p->begun = time_now_s();
  str_init(&p->text, &ctx->mem);
  str_put(&p->text, "[\n");
  name_track(p, 0, "host");
  for (int i = 0; i < device_count(ctx); i++)
    name_track(p, 1 + i, device_at(ctx, i)->name);
  ctx->profile = p;
  ctx->origins.asked = true;
  return TG_OK;
}

TgStatus tg_profile_start(TgContext *ctx, const char *path) {
  if (!ctx) return TG_ERR_VALUE;
  TG_REQUIRE_OR(ctx, path && *path, TG_ERR_VALUE, TG_ERR_VALUE, "profile: no path");
  TG_REQUIRE_OR(ctx, !ctx->profile, TG_ERR_STATE, TG_ERR_STATE, "profile: one is being made");
  return start(ctx, path, true);
}

void profile_begin(TgContext *ctx) {
  if (ctx->env.profile[0]) start(ctx, ctx->env.profile, false);
}

TgStatus tg_profile_stop(TgContext *ctx) {
  if (!ctx || !ctx->profile) return TG_OK;
  Profile *p = ctx->profile;
  str_put(&p->text, "\n]\n");
  flush(ctx, p);
  bool failed = p->failed | (ctx->os->close(p->fd) != 0);
  str_free(&p->text);
  mem_free(&ctx->mem, p);
  ctx->profile = NULL;
  return failed ? error_set(&ctx->err, TG_ERR_IO, "profile: the file could not be written") : TG_OK;
}
