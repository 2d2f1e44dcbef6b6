/* profile.c: `tg profile PROGRAM ARGS..`: shows where a program's time goes. In: any program that links the
 * library, or a trace that TG_PROFILE wrote. Out: a table of its kernels and of what the host did; with
 * --compare, what changed since an earlier one. The program writes its traces (src/engine/profile.c) into a
 * folder made for them.
 *
 * On the host's threads, one thing happens after another: a kernel, work of the host, a wait, or the
 * program's own work. These four add up to the time that passed. Kernels of a device with a queue run beside
 * them, by that device's own clock, while the host waits. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "program.h"
#include "roof.h"
#ifdef TG_HAVE_JANSSON
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct ProfileOptions {
  const char *keep, *compare;
  int64_t top;
  bool json, no_roof;
} ProfileOptions;

/* The host and its devices; tracks of threads have higher numbers. */
enum { HOST_TRACK = 1, MOST_TRACKS = 66 };

/* device: that of a kernel, or "host": what the host did, "wait": what it waited for, "program": what the
 * program did between its calls. us of the host does not include what is inside a span. So all rows except
 * those of queues add up to the time from the first event to the last. */
typedef struct Row {
  char name[100], device[40], origin[200];
  int64_t calls;
  bool kernel;
  /* was_us: in the earlier profile; negative: the row was not there. */
  double us, flops, bytes, estimated_us, was_us;
  double roof; /* percent of what its device was measured to reach; 0: unknown */
} Row;

typedef struct Table {
  Row *row;
  size_t n, cap;
  double first, last; /* us of the current trace */
  double all;         /* from the first to the last event, of all traces */
  /* queued: kernels of queues, beside the rest; program: what it did between its calls of the library. */
  double kernels, queued, host, waits, program;
} Table;

static Row *row_of(Table *t, const char *device, const char *name) {
  for (size_t i = 0; i < t->n; i++)
    if (!strcmp(t->row[i].name, name) && !strcmp(t->row[i].device, device)) return &t->row[i];
  if (t->n == t->cap) {
    size_t cap = 2 * t->cap + 64;
    Row *grown = realloc(t->row, cap * sizeof *grown);
    if (!grown) return NULL;
    t->row = grown;
    t->cap = cap;
  }
  Row *r = &t->row[t->n++];
  *r = (Row){.was_us = -1};
  snprintf(r->name, sizeof r->name, "%s", name);
  snprintf(r->device, sizeof r->device, "%s", device);
  return r;
}

/* ---- a trace */
static double number(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

static const char *text(const json_t *v, const char *key) {
  const char *s = json_string_value(json_object_get(v, key));
  return s ? s : "";
}

/* Returns the last '}' before `at`; NULL: there is none. */
static char *brace_before(char *begin, char *at) {
  while (at > begin && *--at != '}') {}
  return *at == '}' ? at : NULL;
}

/* A program that was killed left the array open, perhaps in the middle of an event. So up to three events at
 * its end are dropped. */
static json_t *trace_load(const char *path, json_error_t *e) {
  char *all = cli_read_file(path, NULL);
  if (!all) {
    snprintf(e->text, sizeof e->text, "%s", strerror(errno));
    return NULL;
  }
  json_t *v = json_loads(all, 0, e);
  char *cut = v ? NULL : brace_before(all, all + strlen(all));
  for (int tries = 0; !v && cut && tries < 3; tries++, cut = brace_before(all, cut)) {
    char was = cut[1], next = was ? cut[2] : 0;
    memcpy(cut + 1, "]", was ? 2 : 1);
    v = was ? json_loads(all, 0, e) : json_loadb(all, (size_t)(cut - all) + 2, 0, e);
    cut[1] = was;
    if (was) cut[2] = next;
  }
  free(all);
  return v;
}

/* The host's spans are nested; each loses the time of those inside it, kernels too. They come in the order of
 * their ends, so what is inside a span comes before it. */
typedef struct Span {
  double begin, end;
} Span;

typedef struct Nest {
  Span *at; /* the spans that are not inside another span so far */
  size_t n, cap;
} Nest;

/* Adds a span. Returns the time of the spans inside it, which leave the stack. */
static double taken_in(Nest *s, double begin, double end) {
  double inside = 0;
  while (s->n && s->at[s->n - 1].begin >= begin)
    inside += s->at[s->n - 1].end - s->at[s->n - 1].begin, s->n--;
  if (s->n == s->cap) {
    size_t cap = 2 * s->cap + 64;
    Span *grown = realloc(s->at, cap * sizeof *grown);
    if (!grown) return inside;
    s->at = grown;
    s->cap = cap;
  }
  s->at[s->n++] = (Span){begin, end};
  return inside;
}

static void row_add(Row *r, const json_t *e, double us) {
  const json_t *args = json_object_get(e, "args");
  r->calls++;
  r->us += us;
  r->flops += number(args, "flops");
  r->bytes += r->kernel ? number(args, "bytes") : 0;
  r->estimated_us += number(args, "estimated_us");
  if (!*r->origin) snprintf(r->origin, sizeof r->origin, "%s", text(args, "origin"));
}

/* Slices of threads, and those in which a device is idle, are skipped: other events have their time. */
static void event_take(Table *t, Nest *nest, json_t *const *device, const json_t *e) {
  double begin = number(e, "ts"), us = number(e, "dur");
  int tid = (int)number(e, "tid");
  bool kernel = !strcmp(text(e, "cat"), "kernel"), wait = !strcmp(text(e, "cat"), "wait");
  bool queued = json_is_true(json_object_get(json_object_get(e, "args"), "queue"));
  if (strcmp(text(e, "ph"), "X") || tid < HOST_TRACK || tid >= MOST_TRACKS || (tid != HOST_TRACK && !kernel))
    return;
  const char *on = tid != HOST_TRACK ? json_string_value(device[tid]) : wait ? "wait" : "host";
  Row *r = row_of(t, on ? on : "?", text(e, "name"));
  if (!r) return;
  r->kernel = kernel;
  if (queued) {
    t->queued += us;
    row_add(r, e, us);
    return;
  }
  if (begin < t->first) t->first = begin;
  if (begin + us > t->last) t->last = begin + us;
  double inside = taken_in(nest, begin, begin + us);
  row_add(r, e, us - (tid == HOST_TRACK ? inside : 0));
  *(kernel ? &t->kernels : wait ? &t->waits : &t->host) += us - (tid == HOST_TRACK ? inside : 0);
}

/* Adds the time between the outermost spans, which no span covers. */
static void between_calls(Table *t, const Nest *nest) {
  Row *r = nest->n > 1 ? row_of(t, "program", "between calls") : NULL;
  double end = nest->n ? nest->at[0].end : 0;
  for (size_t i = 1; r && i < nest->n; i++) {
    double gap = nest->at[i].begin - end;
    if (nest->at[i].end > end) end = nest->at[i].end;
    if (gap <= 0) continue;
    r->calls++;
    r->us += gap;
    t->program += gap;
  }
}

static bool trace_take(Table *t, const char *path) {
  json_error_t err;
  json_t *all = trace_load(path, &err), *e, *device[MOST_TRACKS] = {NULL};
  Nest nest = {NULL, 0, 0};
  size_t i;
  t->first = 1e300;
  t->last = -1e300;
  if (!json_is_array(all)) {
    cli_refuse(0, "profile", "%s: no trace of ours: %s", path, all ? "no list of events" : err.text);
    json_decref(all);
    return false;
  }
  json_array_foreach(all, i, e) {
    int tid = (int)number(e, "tid");
    if (!strcmp(text(e, "name"), "thread_name") && tid >= HOST_TRACK && tid < MOST_TRACKS)
      device[tid] = json_object_get(json_object_get(e, "args"), "name");
  }
  json_array_foreach(all, i, e) event_take(t, &nest, device, e);
  if (t->last > t->first) t->all += t->last - t->first;
  between_calls(t, &nest);
  free(nest.at);
  json_decref(all);
  return true;
}

/* ---- a program */
/* The trace is copied, because the folder may be on another disk and `keep` may be a pipe. */
static bool copied(const char *path, const char *keep) {
  size_t n = 0;
  char *text = cli_read_file(path, &n);
  FILE *to = text ? fopen(keep, "w") : NULL;
  bool ok = to && fwrite(text, 1, n, to) == n;
  if (to && fclose(to)) ok = false;
  if (!ok) cli_refuse(0, "profile", "--keep %s: %s", keep, strerror(errno));
  free(text);
  return ok;
}

/* Reads the traces in the folder, one for each context, and removes it. Returns how many. *kept: the first is
 * in `keep`. */
static int traces_take(Table *t, const char *folder, const char *keep, bool *kept) {
  DIR *d = opendir(folder);
  struct stat s;
  int n = 0;
  *kept = !keep;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] == '.') continue;
    /* The file is empty if the program ended before it closed the context. */
    bool whole = !stat(path, &s) && s.st_size;
    n += whole && trace_take(t, path);
    if (keep && whole && n == 1) *kept = copied(path, keep);
    unlink(path);
  }
  if (d) closedir(d);
  rmdir(folder);
  return n;
}

/* ---- what was found */
static int by_time(const void *a, const void *b) {
  const Row *x = a, *y = b;
  return (x->us < y->us) - (x->us > y->us);
}

static const char *time_text(double us, char room[32]) {
  snprintf(room, 32,
           us >= 1e6   ? "%.2f s"
           : us >= 1e3 ? "%.2f ms"
                       : "%.1f us",
           us >= 1e6   ? us / 1e6
           : us >= 1e3 ? us / 1e3
                       : us);
  return room;
}

static double total(const Table *t) { return t->kernels + t->host + t->waits + t->program; }

/* Rates, the share of the roof and the ratio to the estimate are printed only for kernels. */
static void rates_say(const Row *r) {
  char roof[16] = "";
  if (!r->kernel || r->us <= 0) {
    printf(" %9s %8s %6s %7s", "", "", "", "");
    return;
  }
  if (r->roof > 0) snprintf(roof, sizeof roof, "%.0f %%", r->roof);
  printf(" %9.1f %8.2f %6s %6.2fx", r->flops / r->us / 1e3, r->bytes / r->us / 1e3, roof,
         r->estimated_us > 0 ? r->us / r->estimated_us : 0);
}

static void row_say(const Table *t, const Row *r, bool compare) {
  char all[32], each[32], was[40] = "";
  if (compare && r->was_us < 0) snprintf(was, sizeof was, "%9s", "new");
  if (compare && r->was_us >= 0) snprintf(was, sizeof was, "%8.2fx", r->was_us > 0 ? r->us / r->was_us : 1);
  printf("%-12s %-36s %8lld %10s %5.1f %% %10s", r->device, r->name, (long long)r->calls,
         time_text(r->us, all), 100 * r->us / total(t),
         time_text(r->calls ? r->us / (double)r->calls : 0, each));
  rates_say(r);
  printf(" %s%s%s\n", was, *r->origin ? " " : "", r->origin);
}

static void table_say(const Table *t, int64_t top, bool compare) {
  char kernels[32], host[32], waits[32], program[32], all[32], queued[32];
  printf("%-12s %-36s %8s %10s %7s %10s %9s %8s %6s %7s %s\n", "device", "kernel, or what the host did",
         "calls", "time", "share", "each", "GFLOP/s", "GB/s", "roof", "of est.",
         compare ? "  of was   origin" : "origin");
  for (size_t i = 0; i < t->n && (!top || (int64_t)i < top); i++)
    row_say(t, &t->row[i], compare);
  if (top && (size_t)top < t->n) printf("and %zu more (--top 0 shows all)\n", t->n - (size_t)top);
  printf("kernels %s, host %s, waits %s, the program between its calls %s; from the first to the last %s\n",
         time_text(t->kernels, kernels), time_text(t->host, host), time_text(t->waits, waits),
         time_text(t->program, program), time_text(t->all, all));
  if (t->queued > 0)
    printf("and beside them, by the clock of the devices that have queues: kernels %s\n",
           time_text(t->queued, queued));
}

static void table_json(const Table *t) {
  for (size_t i = 0; i < t->n; i++) {
    const Row *r = &t->row[i];
    printf("{\"device\": ");
    cli_json_text(stdout, r->device);
    printf(", \"name\": ");
    cli_json_text(stdout, r->name);
    printf(", \"origin\": ");
    cli_json_text(stdout, r->origin);
    printf(", \"calls\": %lld, \"us\": %.3f, \"flops\": %.0f, \"bytes\": %.0f, \"roof_percent\": %.1f, "
           "\"estimated_us\": %.3f}\n",
           (long long)r->calls, r->us, r->flops, r->bytes, r->roof, r->estimated_us);
  }
}

/* Reads the lines of an earlier profile's --json. Returns false if it failed; the reason was printed. */
static bool compared(Table *t, const char *path) {
  char line[1000];
  FILE *f = fopen(path, "r");
  if (!f) return cli_refuse(0, "profile", "%s: %s", path, strerror(errno)), false;
  bool ok = true;
  while (ok && fgets(line, sizeof line, f)) {
    json_error_t e;
    json_t *v = json_loads(line, 0, &e);
    Row *r = json_is_object(v) ? row_of(t, text(v, "device"), text(v, "name")) : NULL;
    ok = r != NULL;
    if (r) r->was_us = number(v, "us");
    json_decref(v);
  }
  fclose(f);
  if (!ok) cli_refuse(0, "profile", "%s: not what tg profile --json writes", path);
  return ok;
}

/* Measures, here and now, what each device of the table can do. */
static void roofs_take(Table *t) {
  Roof roof = {0};
  char of[40] = "";
  for (size_t i = 0; i < t->n; i++) {
    Row *r = &t->row[i];
    if (!r->kernel || r->us <= 0) continue;
    if (strcmp(of, r->device)) roof = roof_measured(r->device);
    snprintf(of, sizeof of, "%s", r->device);
    double compute = roof.flops_us > 0 ? r->flops / roof.flops_us : 0;
    double memory = roof.bytes_us > 0 ? r->bytes / roof.bytes_us : 0;
    r->roof = 100 * (compute > memory ? compute : memory) / r->us;
  }
}

static bool is_trace(const char *path) {
  size_t n = strlen(path);
  return n > 5 && !strcmp(path + n - 5, ".json") && !access(path, R_OK);
}

static int run_profile(const void *options, char **argument, int n) {
  const ProfileOptions *o = options;
  Table t = {.n = 0};
  int rc = CLI_OK;
  bool ok, kept = true;
  (void)n;
  if (!cli_will_write("profile", o->keep)) return CLI_FAILED;
  if (is_trace(argument[0]))
    ok = trace_take(&t, argument[0]);
  else {
    const char *tmp = getenv("TMPDIR");
    char folder[260], path[300];
    snprintf(folder, sizeof folder, "%.200s/tg-profile-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return cli_refuse(CLI_FAILED, "profile", "%s: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/trace.json", folder);
    rc = program_with(argument, "profile", "TG_PROFILE", path);
    ok = traces_take(&t, folder, o->keep, &kept) > 0;
    if (!ok && !rc) cli_refuse(0, "profile", "%s opened no context of this library", argument[0]);
    if (ok && !o->no_roof && !program_asked()) roofs_take(&t);
    program_ended("profile", argument[0], rc);
  }
  if (ok && o->compare) ok = compared(&t, o->compare);
  if (t.n) qsort(t.row, t.n, sizeof *t.row, by_time);
  if (ok && o->json) table_json(&t);
  if (ok && !o->json) table_say(&t, o->top, o->compare != NULL);
  free(t.row);
  return program_asked() ? CLI_INTERRUPTED : !ok || (!kept && !rc) ? CLI_FAILED : rc;
}

static const ProfileOptions defaults = {.top = 20};
static const CliOption options[] = {
    CLI_TEXT_OF(ProfileOptions, keep, "keep", "FILE",
                "the trace, for Perfetto (ui.perfetto.dev) or chrome://tracing"),
    CLI_TEXT_OF(ProfileOptions, compare, "compare", "FILE", "what --json wrote before: what changed"),
    CLI_WHOLE_OF(ProfileOptions, top, "top", 0, 100000, "rows; 0: all (20)"),
    CLI_FLAG_OF(ProfileOptions, no_roof, "no-roof", "do not measure what the machine can do"),
    CLI_FLAG_OF(ProfileOptions, json, "json", "an object per row, one a line")};

const CliCommand command_profile = {
    .name = "profile",
    .summary = "run a program and say where its time goes",
    .arguments = "FILE.onnx|PROGRAM ARGS..|TRACE.json",
    .least = 1,
    .most = -1,
    CLI_TAKES(ProfileOptions, options),
    .defaults = &defaults,
    .run = run_profile,
    .more =
        "PROGRAM is any that links the library; options of its own follow --, and what it prints goes to "
        "stderr. Time of the host is without "
        "what is inside of it; what the program does between its calls of the library has a row of its own, "
        "so all rows together are the time from the first event to the last. Kernels of a device with a "
        "queue "
        "go by its own clock, beside these. GFLOP/s are of the cost model's counts, GB/s of the memories "
        "that "
        "a kernel is given, each counted once. \"roof\" is the share of what the machine did when it was "
        "asked after the program: a product of f32 matrices, or a copy. \"of est.\" is the time beside the "
        "cost model's. Launches go one by one while they are timed. TG_PROFILE=FILE writes the same trace "
        "without this command."};
#else
static int run_profile(const void *options, char **argument, int n) {
  (void)options, (void)argument, (void)n;
  return cli_refuse(CLI_FAILED, "profile", "this build reads no JSON (jansson)");
}

const CliCommand command_profile = {.name = "profile",
                                    .summary = "run a program and say where its time goes",
                                    .arguments = "PROGRAM ARGS..",
                                    .least = 1,
                                    .most = -1,
                                    .run = run_profile,
                                    .more = "This build reads no JSON."};
#endif
