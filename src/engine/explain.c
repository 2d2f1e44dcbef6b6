/* explain.c: the facts of a context's kernels as text and as JSON. In: Inside. Out: at most five lines
 * that say how much there is and what may be slow; then each graph with its kernels in order, its
 * memories, and why stages were not fused. */
#include "engine/inside.h"
#include <stdio.h>
#include <string.h>

enum { CAUSES_SHOWN = 4, PLANS_SHOWN = 12, WIDEST = 64, FUSION_SHOWN = 24 };

typedef struct Totals {
  int64_t kernels, launches, peak, runs;
  double est_us, us, made_us;
} Totals;

static Totals totals_of(const Inside *in) {
  Totals t = {0};
  for (size_t i = 0; i < in->plans.len; i++) {
    const PlanFacts *p = in->plans.at[i];
    t.kernels += p->nkernel;
    t.made_us += p->made_us;
    t.runs += p->runs;
    for (int k = 0; k < p->nkernel; k++) {
      t.launches += p->kernel[k].runs;
      t.est_us += p->kernel[k].est_us * (double)TG_MAX(p->kernel[k].runs, 1);
      t.us += p->kernel[k].us;
      t.peak = TG_MAX(t.peak, p->peak[k]);
    }
  }
  return t;
}

static const char *text_or(const char *text, const char *other) { return text ? text : other; }

const char *bytes_text(int64_t n, char room[24]) {
  snprintf(room, 24,
           n >= 1 << 20   ? "%.1f MiB"
           : n >= 1 << 10 ? "%.1f KiB"
                          : "%.0f B",
           n >= 1 << 20   ? (double)n / (1 << 20)
           : n >= 1 << 10 ? (double)n / (1 << 10)
                          : (double)n);
  return room;
}

static void summary_put(Str *out, const Inside *in) {
  Totals t = totals_of(in);
  Cause cause[MOST_CAUSES];
  char peak[24];
  int n = causes_find(in, cause);
  str_printf(out, "%zu graph%s, %lld kernel%s, estimated %.1f us", in->plans.len,
             in->plans.len == 1 ? "" : "s", (long long)t.kernels, t.kernels == 1 ? "" : "s", t.est_us);
  if (t.launches) str_printf(out, ", measured %.1f us in %lld launches", t.us, (long long)t.launches);
  str_printf(out, ", made in %.1f ms, at most %s of temporaries and results at once\n", t.made_us / 1e3,
             bytes_text(t.peak, peak));
  for (int i = 0; i < n && i < CAUSES_SHOWN; i++)
    str_printf(out, "slow? %s, about %.0f us: %s\n", cause[i].kind, cause[i].us, cause[i].text);
  if (!n) str_put(out, "nothing stands out that would make it slow\n");
}

static void loops_put(Str *out, const KernelFacts *k) {
  for (int i = 0; i < k->nloop; i++)
    str_printf(out, "%s%lld", i ? "x" : "", (long long)k->loop[i]);
  if (!k->nloop) str_put(out, "1");
}

static void kernel_put(Str *out, const PlanFacts *p, int k) {
  const KernelFacts *f = &p->kernel[k];
  char read[24], written[24];
  str_printf(out, "  %3d %-24s %10.1f us", k, text_or(f->name, "?"), f->est_us);
  if (f->runs) str_printf(out, " %10.1f us", f->us / (double)f->runs);
  str_printf(out, "  reads %s, writes %s, %d thread%s, loops ", bytes_text(f->read, read),
             bytes_text(f->written, written), f->threads, f->threads == 1 ? "" : "s");
  loops_put(out, f);
  str_printf(out, ", %s%s%s\n", f->opts && *f->opts ? "opts " : "no opts", text_or(f->opts, ""),
             f->plainer ? "; more opts were refused (TG_DEBUG=1 says why)" : "");
  if (f->origin && *f->origin) str_printf(out, "      = %s\n", f->origin);
}

static void why_put(Str *out, const BufferFacts *b) {
  if (b->slab < 0)
    str_put(out, "a result");
  else
    str_printf(out, "%d kernel%s, and to compute it in each costs more", b->readers,
               b->readers == 1 ? " reads it" : "s read it");
}

/* A row for each memory and a column for each kernel; # marks where the memory holds a value. */
static void memory_put(Str *out, const PlanFacts *p) {
  int peak = 0;
  char room[24];
  for (int k = 1; k < p->nkernel; k++)
    if (p->peak[k] > p->peak[peak]) peak = k;
  str_put(out, "  memory (a column per kernel; # holds a value)\n");
  for (int t = 0; t < p->nbuffer; t++) {
    const BufferFacts *b = &p->buffer[t];
    str_printf(out, "  t%-3d %10s ", t, bytes_text(b->bytes, room));
    for (int k = 0; k < p->nkernel && k < WIDEST; k++)
      str_put(out, k >= b->first && k <= b->last ? "#" : ".");
    if (p->nkernel > WIDEST) str_put(out, "..");
    str_printf(out, "  written by %d, ", b->first);
    why_put(out, b);
    if (b->slab >= 0) str_printf(out, "; in slab %d", b->slab);
    str_put(out, "\n");
  }
  if (p->nkernel) str_printf(out, "  most at kernel %d: %s\n", peak, bytes_text(p->peak[peak], room));
}

/* Returns the next operation of "matmul (a.c:3), relu (a.c:4) and 2 more", and its length in *n. "": the
 * end. */
static const char *operation_next(const char *at, size_t *n) {
  at += *n;
  at += strncmp(at, ", ", 2) ? 0 : 2;
  const char *end = strstr(at, ", "), *more = strstr(at, ") and ");
  *n = end ? (size_t)(end - at) : more ? (size_t)(more + 1 - at) : strlen(at);
  return *at == ' ' ? at + strlen(at) : at;
}

/* Names the operations that are computed in parts by several kernels. */
static void recomputed_put(TgContext *ctx, Str *out, const PlanFacts *p) {
  Map kernels; /* by the hash of an operation's text: number of kernels that have it; 0 once it was printed */
  uint64_t count;
  map_init(&kernels, &ctx->mem);
  for (int pass = 0; pass < 2; pass++)
    for (int k = 0; k < p->nkernel; k++) {
      size_t n = 0;
      for (const char *at = text_or(p->kernel[k].origin, ""); *(at = operation_next(at, &n));) {
        uint64_t text = hash_bytes(7, at, n);
        if (!map_get(&kernels, text, &count)) count = 0;
        if (pass && count > 1)
          str_printf(out, "  %.*s: parts of it are in %d kernels\n", (int)n, at, (int)count);
        if (!map_put(&kernels, text, pass ? 0 : count + 1)) break;
      }
    }
  map_free(&kernels);
}

static void fusion_put(Str *out, const PlanFacts *p) {
  int n = 0, more = 0;
  for (const char *at = p->fusion; *at;) {
    size_t length = strcspn(at, "\n");
    bool refused = !strncmp(at, "no ", 3);
    if (refused && n++ == 0) str_put(out, "  not fused, with what it costs apart and in one kernel\n");
    if (refused && n <= FUSION_SHOWN) str_put(out, "    "), str_putn(out, at, length), str_put(out, "\n");
    more += refused && n > FUSION_SHOWN;
    at += length + (at[length] == '\n');
  }
  if (more) str_printf(out, "    and %d more\n", more);
}

static void plan_put(TgContext *ctx, Str *out, const PlanFacts *p, size_t number) {
  str_printf(out, "\ngraph %zu on %s: %d kernels, run %lld times, made in %.1f ms\n", number, p->device,
             p->nkernel, (long long)p->runs, p->made_us / 1e3);
  for (int k = 0; k < p->nkernel; k++)
    kernel_put(out, p, k);
  if (p->nbuffer) memory_put(out, p);
  recomputed_put(ctx, out, p);
  fusion_put(out, p);
}

/* Finds a kernel by its name, "r_4_4", or by its numbers, "1.0" for kernel 0 of graph 1. */
static const KernelFacts *kernel_named(const Inside *in, const char *name) {
  for (size_t i = 0; i < in->plans.len; i++)
    for (int k = 0; k < in->plans.at[i]->nkernel; k++) {
      const KernelFacts *f = &in->plans.at[i]->kernel[k];
      char number[48];
      snprintf(number, sizeof number, "%zu.%d", i, k);
      if (!strcmp(name, number) || (f->name && !strcmp(name, f->name))) return f;
    }
  return NULL;
}

bool explain_text(TgContext *ctx, const Inside *in, const char *kernel, Str *out) {
  const KernelFacts *f = kernel ? kernel_named(in, kernel) : NULL;
  if (kernel && !f) return false;
  if (f) {
    str_printf(out, "%s: %s\nestimated %.2f us, %lld flops\n%s", text_or(f->name, "?"),
               text_or(f->origin, ""), f->est_us, (long long)f->flops, text_or(f->source, ""));
    return true;
  }
  summary_put(out, in);
  if (ctx->err.status) str_printf(out, "error: %s\n", ctx->err.msg);
  for (size_t i = 0; i < in->plans.len && i < PLANS_SHOWN; i++)
    plan_put(ctx, out, in->plans.at[i], i);
  if (in->plans.len > PLANS_SHOWN) str_printf(out, "\nand %zu graphs more\n", in->plans.len - PLANS_SHOWN);
  exchanges_text(ctx, in, out);
  return true;
}

/* ---- JSON */
static void kernel_json(Str *out, const KernelFacts *f) {
  str_put(out, "{\"name\":"), str_json(out, text_or(f->name, ""));
  str_put(out, ",\"origin\":"), str_json(out, text_or(f->origin, ""));
  str_put(out, ",\"opts\":"), str_json(out, text_or(f->opts, ""));
  str_put(out, ",\"source\":"), str_json(out, text_or(f->source, ""));
  str_printf(out,
             ",\"estimated_us\":%.3f,\"us\":%.3f,\"runs\":%lld,\"flops\":%lld,\"read\":%lld,\"written\":%lld,"
             "\"threads\":%d,\"passes\":%d,\"plainer\":%s,\"loops\":[",
             f->est_us, f->us, (long long)f->runs, (long long)f->flops, (long long)f->read,
             (long long)f->written, f->threads, f->record, f->plainer ? "true" : "false");
  for (int i = 0; i < f->nloop; i++)
    str_printf(out, "%s%lld", i ? "," : "", (long long)f->loop[i]);
  str_put(out, "]}");
}

static void plan_json(Str *out, const PlanFacts *p) {
  str_put(out, "{\"device\":"), str_json(out, p->device);
  str_printf(out, ",\"runs\":%lld,\"made_us\":%.1f,\"passes\":%d,\"kernels\":[", (long long)p->runs,
             p->made_us, p->record);
  for (int k = 0; k < p->nkernel; k++) {
    if (k) str_put(out, ",\n");
    kernel_json(out, &p->kernel[k]);
  }
  str_put(out, "],\"memories\":[");
  for (int t = 0; t < p->nbuffer; t++) {
    const BufferFacts *b = &p->buffer[t];
    str_printf(out, "%s{\"bytes\":%lld,\"first\":%d,\"last\":%d,\"readers\":%d,\"slab\":%d}", t ? "," : "",
               (long long)b->bytes, b->first, b->last, b->readers, b->slab);
  }
  str_put(out, "],\"peak\":[");
  for (int k = 0; k < p->nkernel; k++)
    str_printf(out, "%s%lld", k ? "," : "", (long long)p->peak[k]);
  str_put(out, "],\"fusion\":"), str_json(out, p->fusion), str_put(out, "}");
}

void explain_json(const TgContext *ctx, const Inside *in, Str *out) {
  Totals t = totals_of(in);
  Cause cause[MOST_CAUSES];
  int n = causes_find(in, cause);
  str_printf(
      out, "{\"estimated_us\":%.3f,\"us\":%.3f,\"launches\":%lld,\"made_us\":%.1f,\"peak\":%lld,\"causes\":[",
      t.est_us, t.us, (long long)t.launches, t.made_us, (long long)t.peak);
  for (int i = 0; i < n; i++) {
    str_printf(out, "%s{\"kind\":", i ? "," : ""), str_json(out, cause[i].kind);
    str_printf(out, ",\"us\":%.1f,\"text\":", cause[i].us), str_json(out, cause[i].text), str_put(out, "}");
  }
  str_put(out, "],\"graphs\":[\n");
  for (size_t i = 0; i < in->plans.len; i++) {
    if (i) str_put(out, ",\n");
    plan_json(out, in->plans.at[i]);
  }
  str_put(out, "],\"timeline\":[");
  for (size_t i = 0; i < in->launches.len; i++) {
    const LaunchFacts *l = &in->launches.at[i];
    const PlanFacts *p = facts_numbered(in, l->plan);
    str_printf(out, "%s[%zu,%d,%.1f,%.2f]", i ? "," : "", p ? p->at : in->plans.len, l->kernel, l->begin_us,
               l->us);
  }
  exchanges_json(ctx, in, out);
  str_put(out, "]}\n");
}
