/* profile.c: where the time is spent, as a file that Chrome's tracing and Perfetto read. In: TG_PROFILE or
 * tg_profile_start, spans of the host, launches. Out: the array of events of the Trace Event Format ("X"
 * complete events, "C" counters, "M" names),
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMHzjnBOrEKa3nDzeg4
 *
 * Track 1 is the host: realize, schedule, lower, compile, read, copy, send, replay, and what it waits for,
 * nested in one another. A copy of an exchange has the exchange's name, "ALLREDUCE ADD, direct, 4 devices,
 * 36.0 KiB: copy", also on the tracks of the two devices. Track 2 + d is device d, or its queue. It has
 * each launch with its operations, the bytes that it may touch, the share of the roof that the planner
 * knows, its estimated time, and its origin; between launches the device is idle. Below is a track for
 * each thread that shared a launch. No track has number 0, because Perfetto merges it with the track that
 * has the number of the process. While a profile is made, each launch is waited for, so that it can be
 * timed alone. A device's clock may differ from the host's, as that of an emulated device does. So a
 * launch ends when the host has seen its end, and it does not overlap the launch before it. */
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

enum { FLUSH_BYTES = 256 << 10, MOST_FILES = 1000, MOST_THREADS = 256, IDLE_US = 1 };

enum { HOST_TRACK = 1, DEVICE_TRACK = 2, FIRST_THREAD = 1000 };

struct Profile {
  int fd;
  double begun; /* time 0 of the file */
  Str text;     /* events that are not written yet */
  bool failed;
  uint64_t bytes[MOST_DEVICES];    /* last value of each device's memory counter */
  double busy_until[MOST_DEVICES]; /* us since time 0 */
  int nthread[MOST_DEVICES];       /* number of thread tracks that have a name */
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

/* ---- events */
double profile_now(const TgContext *ctx) { return ctx->profile ? time_now_s() : 0; }

/* Room for a whole event is reserved first, and the event is then written piece by piece. To use printf,
 * or to reserve room for each piece, would take most of the time of a profile. */
enum { EVENT_BYTES = 512 }; /* more than an event takes besides its names */

static char *put(char *at, const char *text) {
  size_t n = strlen(text);
  memcpy(at, text, n);
  return at + n;
}

static char *whole_put(char *at, const char *key, int64_t v) {
  char b[INT_TEXT];
  return put(put(at, key), int_text(b, v));
}

static char *thousandths_put(char *at, const char *key, int64_t v) {
  at = whole_put(at, key, v / 1000);
  *at++ = '.';
  for (int ten = 100; ten; ten /= 10)
    *at++ = (char)('0' + v / ten % 10);
  return at;
}

static int64_t thousandths(double v) { return v > 0 ? (int64_t)(v * 1e3 + 0.5) : 0; }

/* Begin and end of a slice are each rounded to ns, so that consecutive slices do not overlap. */
static char *slice_begin(Profile *p, const char *name, const char *kind, int track, double at_us, double us) {
  if (!str_reserve(&p->text, strlen(name) + EVENT_BYTES)) return NULL;
  int64_t begin = thousandths(at_us), end = thousandths(at_us + us);
  char *at = put(p->text.at + p->text.len, ",\n{\"name\":\"");
  at = put(put(at, name), "\",\"cat\":\"");
  at = whole_put(put(at, kind), "\",\"ph\":\"X\",\"pid\":1,\"tid\":", track);
  at = thousandths_put(at, ",\"ts\":", begin);
  at = thousandths_put(at, ",\"dur\":", end - begin);
  return put(at, ",\"args\":{");
}

static void put_end(Profile *p, char *at) {
  *at = 0;
  p->text.len = (size_t)(at - p->text.at);
}

static void slice(TgContext *ctx, const char *name, const char *kind, int track, double at_us, double us,
                  const char *args) {
  Profile *p = ctx->profile;
  char *at = slice_begin(p, name, kind, track, at_us, us);
  if (at) put_end(p, put(put(at, args), "}}"));
  event_end(ctx, p);
}

static double file_us(const Profile *p, double at) { return (at - p->begun) * 1e6; }

void profile_span(TgContext *ctx, const char *what, double begin, const char *form, ...) {
  Profile *p = ctx->profile;
  char args[200];
  va_list list;
  if (!p) return;
  va_start(list, form);
  vsnprintf(args, sizeof args, form, list);
  va_end(list);
  slice(ctx, what, "host", HOST_TRACK, file_us(p, begin), (time_now_s() - begin) * 1e6, args);
}

/* A copy is also put on the tracks of those of its two devices that this rank has, where it has a category
 * other than the kernels'. */
void profile_copy(TgContext *ctx, double begin, int exchange, const Device *to, const Device *from,
                  size_t nbytes, bool beside) {
  Profile *p = ctx->profile;
  const Device *both[] = {from, to};
  char room[160], args[80];
  if (!p) return;
  const char *name = exchange_named(ctx, exchange, copy_named(to, from), room);
  double at = file_us(p, begin), us = (time_now_s() - begin) * 1e6;
  size_t n =
      (size_t)snprintf(args, sizeof args, "\"bytes\":%zu,\"beside\":%s", nbytes, beside ? "true" : "false");
  if (copy_crosses(to, from) && to->remote != from->remote)
    snprintf(args + n, sizeof args - n, ",\"rank\":%d", (to->remote ? to : from)->of_rank - 1);
  slice(ctx, name, "host", HOST_TRACK, at, us, args);
  for (int i = 0; i < 2; i++)
    if (!both[i]->remote) slice(ctx, name, "exchange", DEVICE_TRACK + both[i]->index, at, us, args);
}

void profile_wait(TgContext *ctx, const char *what, double begin) {
  if (ctx->profile)
    slice(ctx, what, "wait", HOST_TRACK, file_us(ctx->profile, begin), (time_now_s() - begin) * 1e6, "");
}

/* Returns the bytes of all memories that a kernel is given. */
static uint64_t touched(const PlanRun *run, const SchedKernel *sk) {
  const Schedule *s = &run->plan->sched;
  uint64_t n = 0;
  for (int a = 0; a < sk->narg; a++) {
    int64_t id = sk->arg[a];
    const SchedTemp *t = id >= TEMP_BASE ? &s->temp[id - TEMP_BASE] : NULL;
    const Buffer *b = t ? NULL : run->buf[id].buffer;
    if (t) n += (uint64_t)t->nelem * dtype_size(t->dtype);
    if (b) n += (uint64_t)b->nelem * dtype_size(b->dtype);
  }
  return n;
}

/* Returns the percentage of the time that the machine, as the planner knows it, would need for the
 * operations or for the bytes, whichever takes longer. */
static double roof_share(const Device *d, double flops, double nbytes, double us) {
  const Target *t = &d->target;
  double compute = target_flops_us(t) * t->cores, memory = t->bytes_us[LEVEL_MEMORY] * t->streams;
  double least = TG_MAX(compute > 0 ? flops / compute : 0, memory > 0 ? nbytes / memory : 0);
  return us > 0 ? 100 * least / us : 0;
}

static void name_track(Profile *p, int track, const char *name, const char *more, int number) {
  char last[16] = "";
  if (number >= 0) snprintf(last, sizeof last, "%d", number);
  if (track != HOST_TRACK) event_begin(p);
  str_printf(&p->text,
             "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s%s%s\"}}",
             track, name, more, last);
}

/* Puts the shares of a launch on the tracks of the threads that did them. */
static void threads_told(TgContext *ctx, Device *d, const char *name, double begin) {
  Profile *p = ctx->profile;
  ThreadTime t[MOST_THREADS];
  int n = d->backend->threads ? d->backend->threads(d, t, MOST_THREADS) : 0,
      first = FIRST_THREAD * (1 + d->index);
  for (int i = 1; i < n; i++) /* sort by begin: a thread may have taken its shares in another order */
    for (int j = i; j > 0 && t[j].begin < t[j - 1].begin; j--) {
      ThreadTime later = t[j - 1];
      t[j - 1] = t[j];
      t[j] = later;
    }
  for (int i = 0; i < n; i++) {
    if (t[i].begin < begin) continue;
    for (; p->nthread[d->index] <= t[i].thread; p->nthread[d->index]++)
      name_track(p, first + p->nthread[d->index], d->name, " thread ", p->nthread[d->index]);
    slice(ctx, name, "thread", first + t[i].thread, file_us(p, t[i].begin), (t[i].end - t[i].begin) * 1e6,
          "");
  }
}

void profile_launch(TgContext *ctx, const PlanRun *run, int k, double begin, double us) {
  Profile *p = ctx->profile;
  const Plan *plan = run->plan;
  const SchedKernel *sk = &plan->sched.kernel[k];
  Device *d = plan->dev;
  if (!p) return;
  double now = file_us(p, time_now_s()), *busy = &p->busy_until[d->index], at = file_us(p, begin);
  bool queue = d->backend->has & HAS_QUEUE;
  if (queue) at = TG_MAX(TG_MAX(now - us, at), *busy);
  if (at > *busy + IDLE_US) slice(ctx, "idle", "wait", DEVICE_TRACK + d->index, *busy, at - *busy, "");
  *busy = at + us;
  uint64_t nbytes = touched(run, sk);
  double roof = roof_share(d, (double)sk->flops, (double)nbytes, us);
  char *t = slice_begin(p, plan->prog[k]->name, "kernel", DEVICE_TRACK + d->index, at, us);
  if (t) {
    t = whole_put(t, "\"flops\":", sk->flops);
    t = whole_put(t, ",\"bytes\":", (int64_t)nbytes);
    t = thousandths_put(t, ",\"roof_percent\":", thousandths(roof));
    t = thousandths_put(t, ",\"estimated_us\":", thousandths(sk->est_us));
    t = put(t, queue ? ",\"queue\":true" : ",\"queue\":false");
    t = whole_put(t, ",\"plan\":", (int64_t)plan->number);
    t = whole_put(t, ",\"kernel\":", k);
    put_end(p, put(t, ",\"origin\":"));
    str_json(&p->text, kernel_origin(plan, k));
    str_put(&p->text, "}}");
  }
  event_end(ctx, p);
  threads_told(ctx, d, plan->prog[k]->name, begin);
}

void profile_memory(TgContext *ctx, const Device *d) {
  Profile *p = ctx->profile;
  if (!p || p->bytes[d->index] == d->bytes_in_use) return;
  p->bytes[d->index] = d->bytes_in_use;
  event_begin(p);
  str_printf(
      &p->text,
      "{\"name\":\"memory of %s\",\"ph\":\"C\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"args\":{\"bytes\":%llu}}",
      d->name, DEVICE_TRACK + d->index, (time_now_s() - p->begun) * 1e6, (unsigned long long)d->bytes_in_use);
  event_end(ctx, p);
}

/* ---- beginning and end */
/* Opens a new file. If `path` exists, path.2, path.3 and so on are tried, unless it may be replaced. */
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
    return error_no_memory(&ctx->err, "profile");
  }
  p->fd = fd;
  p->begun = time_now_s();
  str_init(&p->text, &ctx->mem);
  str_put(&p->text, "[\n");
  name_track(p, HOST_TRACK, "host", "", -1);
  for (int i = 0; i < device_count(ctx); i++) {
    const Device *d = device_at(ctx, i);
    name_track(p, DEVICE_TRACK + i, d->name, d->backend->has & HAS_QUEUE ? " queue" : "", -1);
  }
  ctx->profile = p;
  exchanges_asked(ctx);
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
