/* bench_tensor.c: `tg bench tensor`: times operations that depend on data or on order, warm, and compares
 * each with a plain C loop that does the same on the same data in one thread. Out: a line per case: ms of
 * both (medians), their ratio, and the largest amount of memory that the device held meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include <stdlib.h>
#include <string.h>

enum { SORTED = 1000000, SCANNED = 10000000, ROWS = 32, VOCAB = 50257, WIDE = 768, TOKENS = 1024, TOP = 50 };

typedef struct Bench {
  float *x, *y, *z;
  int32_t *i, *j;
  uint32_t *a, *b;
} Bench;

static uint64_t seed = 88172645463325252u;

static uint32_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (uint32_t)(seed >> 32);
}

/* ---- the plain C loops */
static void plain_sort(const Bench *m) { /* radix sort, 11 bits a pass; one reading counts all digits */
  static uint32_t count[3][2048];
  uint32_t *k = m->a, *to = m->b;
  int32_t *i = m->i, *ito = m->j;
  memset(count, 0, sizeof count);
  for (int64_t n = 0; n < SORTED; n++) {
    uint32_t u;
    memcpy(&u, m->x + n, 4);
    k[n] = u ^ (u >> 31 ? UINT32_MAX : 0x80000000u);
    i[n] = (int32_t)n;
    count[0][k[n] & 2047]++, count[1][k[n] >> 11 & 2047]++, count[2][k[n] >> 22]++;
  }
  for (int p = 0; p < 3; p++) {
    uint32_t at = 0;
    for (int d = 0; d < 2048; d++) {
      uint32_t c = count[p][d];
      count[p][d] = at;
      at += c;
    }
    for (int64_t n = 0; n < SORTED; n++) {
      uint32_t o = count[p][k[n] >> 11 * p & 2047]++;
      to[o] = k[n];
      ito[o] = i[n];
    }
    uint32_t *t = k;
    k = to;
    to = t;
    int32_t *ti = i;
    i = ito;
    ito = ti;
  }
  for (int64_t n = 0; n < SORTED; n++)
    m->y[n] = m->x[i[n]];
}

/* Keeps the largest values so far in a heap with the smallest of them on top, then sorts them. */
static void plain_topk(const Bench *m) {
  for (int r = 0; r < ROWS; r++) {
    const float *x = m->x + (int64_t)r * VOCAB;
    float v[TOP];
    int32_t id[TOP];
    int n = 0;
    for (int32_t c = 0; c < VOCAB; c++) {
      if (n == TOP && !(x[c] > v[0])) continue;
      int at = 0;
      if (n < TOP) {
        for (at = n++; at && (v[(at - 1) / 2] > x[c]); at = (at - 1) / 2) {
          v[at] = v[(at - 1) / 2];
          id[at] = id[(at - 1) / 2];
        }
      } else
        for (int l; (l = 2 * at + 1) < TOP; at = l) {
          l += l + 1 < TOP && (v[l + 1] < v[l] || (v[l + 1] == v[l] && id[l + 1] > id[l]));
          if (x[c] <= v[l]) break;
          v[at] = v[l];
          id[at] = id[l];
        }
      v[at] = x[c];
      id[at] = c;
    }
    for (int o = 0; o < TOP; o++) { /* insertion sort, because there are few */
      int at = o;
      float y = v[o];
      int32_t k = id[o];
      for (;
           at && (m->y[r * TOP + at - 1] < y || (m->y[r * TOP + at - 1] == y && m->i[r * TOP + at - 1] > k));
           at--) {
        m->y[r * TOP + at] = m->y[r * TOP + at - 1];
        m->i[r * TOP + at] = m->i[r * TOP + at - 1];
      }
      m->y[r * TOP + at] = y;
      m->i[r * TOP + at] = k;
    }
  }
}

static void plain_cumsum(const Bench *m) {
  float s = 0;
  for (int64_t n = 0; n < SCANNED; n++)
    m->y[n] = s += m->x[n];
}

static void plain_embedding(const Bench *m) {
  memset(m->y, 0, sizeof(float) * VOCAB * WIDE);
  for (int t = 0; t < TOKENS; t++)
    for (int c = 0; c < WIDE; c++)
      m->y[(int64_t)m->i[t] * WIDE + c] += m->x[t * WIDE + c];
}

/* ---- our operations. Inputs are kept; the result is computed anew in each scope. */
static TgTensor *our_sort(TgTensor **in) { return tg_sort(in[0], NULL); }

static TgTensor *our_topk(TgTensor **in) { return tg_topk(in[0], TOP, NULL); }

static TgTensor *our_cumsum(TgTensor **in) { return tg_cumsum(in[0], 0); }

static TgTensor *our_embedding(TgTensor **in) {
  TgTensor *g = NULL;
  return tg_gradient(tg_sum(tg_mul(tg_embedding(in[2], in[1]), in[0])), &in[2], 1, &g) ? NULL : g;
}

typedef struct Case {
  const char *name;
  TgTensor *(*ours)(TgTensor **);
  void (*plain)(const Bench *);
  int64_t nx, ny;
  double tol;
} Case;

static const Case cases[] = {
    {"sort 1000000 f32", our_sort, plain_sort, SORTED, SORTED, 0},
    {"topk 50 of 32x50257", our_topk, plain_topk, (int64_t)ROWS *VOCAB, ROWS *TOP, 0},
    {"cumsum 10000000 f32", our_cumsum, plain_cumsum, SCANNED, SCANNED, 1e-3},
    {"embedding backward 50257x768, 1024 tokens", our_embedding, plain_embedding, TOKENS *WIDE,
     (int64_t)VOCAB *WIDE, 1e-5}};

static bool inputs(TgContext *ctx, const Case *c, Bench *m, TgTensor **in) {
  for (int64_t n = 0; n < c->nx; n++)
    m->x[n] = (float)(int32_t)next_random() / 2147483648.0f;
  if (c->plain == plain_topk)
    in[0] = tg_from(ctx, m->x, TG_F32, TG_SHAPE(ROWS, VOCAB));
  else if (c->plain == plain_embedding) {
    for (int t = 0; t < TOKENS; t++)
      m->i[t] = (int32_t)(next_random() % VOCAB);
    in[0] = tg_from(ctx, m->x, TG_F32, TG_SHAPE(TOKENS, WIDE));
    in[1] = tg_from(ctx, m->i, TG_I32, TG_SHAPE(TOKENS));
    in[2] = tg_empty(ctx, TG_F32, TG_SHAPE(VOCAB, WIDE));
    return in[0] && in[1] && in[2];
  } else
    in[0] = tg_from(ctx, m->x, TG_F32, TG_SHAPE(c->nx));
  return in[0] != NULL;
}

typedef struct Row {
  double ours, plain;
  uint64_t peak, kernels;
  bool same;
} Row;

static bool measure(TgContext *ctx, const Case *c, Bench *m, int runs, Row *row) {
  TgTensor *in[3] = {0};
  double ours[64], plain[64];
  bool ok = inputs(ctx, c, m, in);
  for (int k = -1; ok && k < runs; k++) { /* the first run, which is not counted, makes the kernels */
    TgTensor *y = NULL;
    ok = !tg_collect(ctx); /* otherwise the last run's value would be reused */
    TG_SCOPE(ctx) {
      y = ok ? c->ours(in) : NULL;
      tg_counters_reset(ctx);
      double t = cli_now();
      ok = y && tg_realize(y) == TG_OK;
      if (k >= 0) ours[k] = (cli_now() - t) * 1e3;
      if (ok && k < 0) ok = tg_read(y, m->z, sizeof(float) * (size_t)c->ny) == TG_OK;
    }
    TgCounters n = tg_counters(ctx);
    row->peak = n.peak_bytes;
    row->kernels = n.kernels;
    double t = cli_now();
    if (ok) c->plain(m);
    if (k >= 0) plain[k] = (cli_now() - t) * 1e3;
    if (k >= 0) continue;
    row->same = true;
    for (int64_t i = 0; ok && i < c->ny; i++) {
      double d = (double)m->z[i] - (double)m->y[i], size = m->y[i] < 0 ? -(double)m->y[i] : (double)m->y[i];
      row->same &= (d < 0 ? -d : d) <= c->tol * (size > 1 ? size : 1) * (c->plain == plain_cumsum ? 100 : 1);
    }
  }
  if (!ok) return false;
  cli_sort(ours, runs), cli_sort(plain, runs);
  row->ours = ours[runs / 2];
  row->plain = plain[runs / 2];
  return true;
}

typedef struct Options {
  bool json;
  int64_t runs;
} Options;

static int run_tensor(const void *options, char **argument, int n) {
  const bool json = ((const Options *)options)->json;
  const int64_t runs = ((const Options *)options)->runs;
  (void)argument, (void)n;
  size_t big = (size_t)VOCAB * WIDE;
  Bench m = {malloc(SCANNED * sizeof(float)),
             malloc(big * sizeof(float)),
             malloc(big * sizeof(float)),
             malloc(SORTED * 4),
             malloc(SORTED * 4),
             malloc(SORTED * 4),
             malloc(SORTED * 4)};
  int rc = m.x && m.y && m.z && m.i && m.j && m.a && m.b ? CLI_OK : CLI_FAILED;
  if (rc) fprintf(stderr, "tg bench tensor: out of memory\n");
  if (!rc && !json)
    printf("%-44s %10s %10s %7s %8s %10s\n", "case", "ms", "C ms", "ratio", "kernels", "peak MB");
  for (size_t i = 0; i < sizeof cases / sizeof *cases && !rc; i++) {
    Row r = {0};
    CliWait *wait = cli_wait_begin(cases[i].name);
    TgContext *ctx = tg_open_with(.log = cli_log);
    bool ok = ctx && !tg_error(ctx) && measure(ctx, &cases[i], &m, (int)runs, &r);
    cli_wait_end(wait);
    if (!ok)
      rc = cli_fail(ctx, "bench");
    else if (!r.same) {
      rc = CLI_FAILED;
      fprintf(stderr, "tg bench tensor: %s: the two results differ\n", cases[i].name);
    } else
      printf(json ? "{\"case\":\"%s\",\"ms\":%.3f,\"c_ms\":%.3f,\"ratio\":%.3f,\"kernels\":%llu,\"peak_"
                    "bytes\":%.0f}\n"
                  : "%-44s %10.2f %10.2f %6.2fx %8llu %10.1f\n",
             cases[i].name, r.ours, r.plain, r.ours / r.plain, (unsigned long long)r.kernels,
             json ? (double)r.peak : (double)r.peak / 1e6);
    fflush(stdout);
    tg_close(ctx);
  }
  free(m.x), free(m.y), free(m.z), free(m.i), free(m.j), free(m.a), free(m.b);
  return rc;
}

static const Options defaults = {.runs = 7};

static const CliOption options[] = {CLI_WHOLE_OF(Options, runs, "runs", 1, 64, "runs of each case (7)"),
                                    CLI_FLAG_OF(Options, json, "json", "an object per case, one a line")};

const CliCommand command_bench_tensor = {
    .name = "bench tensor",
    .summary = "time sort, topk, scans, embedding backward beside plain C loops",
    .arguments = "",
    CLI_TAKES(Options, options),
    .defaults = &defaults,
    .run = run_tensor};
