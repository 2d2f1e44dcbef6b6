/* run.c: random networks on devices, and what their numbers should be: by the program's twin in f64 on
 * INTERP, or by PyTorch. */
#include "networks.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- devices, opened once */
typedef struct Opened {
  char name[32];
  TgContext *ctx;
} Opened;

static Opened opened[16];
static int nopened;

static TgContext *device(const char *name) {
  for (int i = 0; i < nopened; i++)
    if (!strcmp(opened[i].name, name)) return opened[i].ctx;
  bool emulated = !strncmp(name, "EMU:", 4);
  char before[16];
  snprintf(before, sizeof before, "%s", getenv("TG_EMU") ? getenv("TG_EMU") : "0");
  if (emulated) setenv("TG_EMU", "1", 1);
  Opened *o = &opened[nopened++];
  snprintf(o->name, sizeof o->name, "%s", name);
  o->ctx = tg_open_with(.device = emulated ? name + 4 : name, .seed = 1);
  setenv("TG_EMU", before, 1);
  return o->ctx;
}

void net_result_free(NetResult *r) {
  for (int i = 0; i < r->n; i++)
    free(r->value[i].v);
  *r = (NetResult){.n = 0};
}

void net_record_free(NetRecord *r) {
  free(r->data), free(r->python.text);
  *r = (NetRecord){.number = 0};
}

void net_reference_free(NetReference *r) {
  free(r->v), free(r->far);
  *r = (NetReference){.count = 0};
}

static Net begun(TgContext *ctx, NetRecord *r, NetRun how) {
  return (Net){.ctx = ctx, .record = r, .exact = how.exact, .noise = how.noise, .loudness = how.loudness};
}

void net_record(NetRecord *r, NetResult *out) {
  TgContext *ctx = device("INTERP");
  NetOut outs[NET_OUTS];
  int n;
  TG_SCOPE(ctx) {
    Net p = begun(ctx, r, (NetRun){.device = "INTERP"});
    if (!net_build(&p, outs, &n)) memcpy(out->fault, p.fault, sizeof out->fault);
  }
  tg_clear_error(ctx);
}

static void read_all(TgContext *ctx, const NetOut *outs, int n, NetResult *out) {
  out->n = n;
  for (int i = 0; i < n; i++) {
    NetValue *v = &out->value[i];
    memcpy(v->what, outs[i].what, sizeof v->what);
    v->dtype = outs[i].dtype, v->count = tg_numel(outs[i].t);
    v->v = malloc(((size_t)v->count + 1) * sizeof *v->v);
    if (!v->v) abort();
    if (tg_read_f64(outs[i].t, v->v, (size_t)v->count) && !out->fault[0])
      snprintf(out->fault, sizeof out->fault, "reading: %s", tg_errmsg(ctx));
  }
}

/* ---- captured */
typedef struct Captured {
  NetRecord *record;
  NetOut outs[NET_OUTS];
  int nout;
  char fault[600];
} Captured;

static TgStatus captured_body(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                              void *user) {
  Captured *c = user;
  NetOut outs[NET_OUTS];
  int n;
  (void)nin;
  Net p = begun(ctx, c->record, (NetRun){.device = ""});
  p.given = in;
  if (!net_build(&p, outs, &n)) {
    memcpy(c->fault, p.fault, sizeof c->fault);
    return tg_error(ctx) ? tg_error(ctx) : tg_set_error(ctx, TG_ERR_INTERNAL, p.fault);
  }
  for (int i = 0; i < nout && i < n; i++)
    out[i] = outs[i].t;
  return TG_OK;
}

/* The first run computes, the second captures, the third replays; that one counts. */
static void run_captured(TgContext *ctx, NetRecord *r, NetResult *result) {
  Captured *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->record = r;
  Net leaves = begun(ctx, r, (NetRun){.device = ""});
  if (!net_build(&leaves, c->outs, &c->nout)) {
    memcpy(result->fault, leaves.fault, sizeof result->fault), free(c);
    return;
  }
  TgTensor *out[NET_OUTS];
  NetOut outs[NET_OUTS];
  TgJit *jit = tg_jit(ctx, captured_body, c);
  for (int i = 0; i < 3; i++)
    if (tg_jit_run(jit, leaves.made, leaves.ngiven, out, c->nout)) {
      snprintf(result->fault, sizeof result->fault, "captured, run %d: %.400s", i, tg_errmsg(ctx));
      tg_clear_error(ctx), tg_jit_free(jit), free(c);
      return;
    }
  for (int i = 0; i < c->nout; i++)
    outs[i] = c->outs[i], outs[i].t = out[i];
  read_all(ctx, outs, c->nout, result);
  tg_jit_free(jit), free(c);
}

void net_run(NetRecord *const *r, int n, NetRun how, NetResult *out) {
  enum { MOST = 32 };

  static NetOut outs[MOST][NET_OUTS];
  int nouts[MOST], nroots = 0;
  TgTensor *roots[MOST * NET_OUTS];
  TgContext *ctx = device(how.device);
  if (tg_error(ctx)) {
    for (int i = 0; i < n; i++)
      snprintf(out[i].fault, sizeof out[i].fault, "%s", tg_errmsg(ctx));
    return;
  }
  TG_SCOPE(ctx) {
    for (int i = 0; i < n && !how.captured; i++) {
      Net p = begun(ctx, r[i], how);
      nouts[i] = 0;
      if (!net_build(&p, outs[i], &nouts[i])) {
        memcpy(out[i].fault, p.fault, sizeof out->fault), nouts[i] = 0, tg_clear_error(ctx);
      }
      for (int k = 0; k < nouts[i]; k++)
        roots[nroots++] = outs[i][k].t;
    }
    bool together = nroots && !tg_realize_many(roots, (size_t)nroots);
    if (!together && nroots && n == 1)
      snprintf(out[0].fault, sizeof out[0].fault, "running: %s", tg_errmsg(ctx));
    tg_clear_error(ctx);
    for (int i = 0; i < n; i++)
      if (how.captured)
        run_captured(ctx, r[i], &out[i]);
      else if (together && !out[i].fault[0])
        read_all(ctx, outs[i], nouts[i], &out[i]);
    if (!together && n > 1) /* which one was it? */
      for (int i = 0; i < n && !how.captured; i++)
        if (!out[i].fault[0]) net_run(r + i, 1, how, out + i);
  }
  tg_clear_error(ctx);
  tg_cache_clear(ctx), tg_collect(ctx);
}

/* ---- what is right */
/* 0: a value, 1: a gradient, 2: the gradient of one */
static int order(const NetValue *v) { return *v->what == 's' ? 2 : *v->what == 'g'; }

static void move(double *far, const double *base, const double *moved, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    bool same = base[i] == moved[i] || (isnan(base[i]) && isnan(moved[i]));
    double d = same ? 0 : fabs(base[i] - moved[i]);
    far[i] = fmax(far[i], isnan(d) ? INFINITY : d);
  }
}

bool net_twin(NetRecord *r, int samples, double most, NetReference *out, char *fault, size_t room) {
  *out = (NetReference){.count = 0};
  for (int s = 0; s <= samples; s++) {
    NetResult got = {.n = 0};
    NetRun how = {.device = "INTERP",
                  .exact = true,
                  .noise = (uint64_t)s,
                  .loudness = s % 4 == 1 ? most : pow(most, s % 4 / 3.)};
    net_run(&r, 1, how, &got);
    if (got.fault[0]) {
      snprintf(fault, room, "the twin in f64: %s", got.fault);
      net_result_free(&got);
      return false;
    }
    int64_t at = 0;
    for (int i = 0; i < got.n; i++)
      at += got.value[i].count;
    if (!s) {
      out->count = at;
      out->v = calloc((size_t)at + 1, sizeof *out->v), out->far = calloc((size_t)at + 1, sizeof *out->far);
      if (!out->v || !out->far) abort();
    }
    for (int i = 0; i < got.n && !s; i++)
      for (int64_t k = 0; k < got.value[i].count; k++) {
        double v = fabs(got.value[i].v[k]), *largest = &out->scale[order(&got.value[i])];
        if (isfinite(v)) *largest = fmax(*largest, v);
        out->undecided |=
            isfinite(v) && v > 0x1p127 && got.value[i].dtype != TG_F64; /* what f32 cannot hold */
      }
    at = 0;
    for (int i = 0; i < got.n && at <= out->count; at += got.value[i].count, i++)
      if (s)
        move(out->far + at, out->v + at, got.value[i].v, got.value[i].count);
      else
        memcpy(out->v + at, got.value[i].v, (size_t)got.value[i].count * sizeof(double));
    net_result_free(&got);
  }
  return true;
}

/* ---- PyTorch */
static const char *python(void) { return getenv("PYTHON") ? getenv("PYTHON") : "python3"; }

/* PyTorch's process: it is told a line for each batch, and answers a line when the answers are written. */
static struct {
  pid_t pid;
  int to, from;
} torch;

/* The next line of it, which should be this one; false: it ended. */
static bool torch_says(const char *want) {
  char line[64] = "";
  for (size_t n = 0; n + 1 < sizeof line; n++) {
    if (read(torch.from, line + n, 1) != 1) return false;
    if (line[n] == '\n') return !strncmp(line, want, strlen(want));
  }
  return false;
}

static void torch_end(void) {
  if (!torch.pid) return;
  close(torch.to), close(torch.from);
  waitpid(torch.pid, NULL, 0);
  torch.pid = 0;
}

bool net_has_torch(void) {
  int to[2], from[2];
  if (torch.pid) return true;
  if (pipe(to)) return false;
  if (pipe(from)) return close(to[0]), close(to[1]), false;
  torch.pid = fork();
  if (torch.pid == 0) {
    dup2(to[0], 0), dup2(from[1], 1);
    close(to[0]), close(to[1]), close(from[0]), close(from[1]);
    execlp(python(), python(), TG_TOOLS "/torch_networks.py", (char *)NULL);
    _exit(127);
  }
  close(to[0]), close(from[1]);
  torch.to = to[1], torch.from = from[0];
  if (torch.pid > 0 && torch_says("ready")) return true;
  torch_end();
  return false;
}

static bool write_batch(NetRecord *const *r, int n, const char *programs, const char *data) {
  FILE *text = fopen(programs, "w"), *leaves = fopen(data, "wb");
  size_t at = 0;
  for (int i = 0; text && leaves && i < n; i++) {
    fprintf(text, "def p(I, N):\n%s\nprograms.append((%llu, p, %s, '%s', %zu))\n", r[i]->python.text,
            (unsigned long long)r[i]->number, r[i]->second ? "True" : "False",
            net_wants_f64(r[i]->number) ? "f64" : "f32", at);
    fwrite(r[i]->data, sizeof(double), r[i]->ndata, leaves);
    at += r[i]->ndata;
  }
  bool ok = text && leaves && !ferror(text) && !ferror(leaves);
  if (text) ok = fclose(text) == 0 && ok;
  if (leaves) ok = fclose(leaves) == 0 && ok;
  return ok;
}

static bool read_answer(FILE *f, NetReference *out) {
  double head[2];
  if (fread(head, sizeof *head, 2, f) != 2) return false;
  *out = (NetReference){.count = head[0] == 1 ? -1 : -2};
  if (head[0] == 1 || head[0] == 3) return true;
  if (fread(out->scale, sizeof *out->scale, 3, f) != 3) return false;
  out->undecided = head[0] == 2, out->count = (int64_t)head[1] / 2;
  size_t count = (size_t)out->count;
  out->v = malloc((count + 1) * sizeof(double)), out->far = malloc((count + 1) * sizeof(double));
  if (!out->v || !out->far) abort();
  return fread(out->v, sizeof(double), count, f) == count &&
         fread(out->far, sizeof(double), count, f) == count;
}

bool net_torch(NetRecord *const *r, int n, int samples, double most, NetReference *out) {
  char dir[] = "/tmp/networks.XXXXXX", programs[64], data[64], answers[64], line[300];
  if (!net_has_torch() || !mkdtemp(dir)) return false;
  snprintf(programs, sizeof programs, "%s/programs.py", dir), snprintf(data, sizeof data, "%s/data", dir);
  snprintf(answers, sizeof answers, "%s/answers", dir);
  int length = snprintf(line, sizeof line, "%s %s %s %d %g\n", programs, data, answers, samples, most);
  bool ok = write_batch(r, n, programs, data) && write(torch.to, line, (size_t)length) == length &&
            torch_says("done");
  FILE *f = ok ? fopen(answers, "rb") : NULL;
  ok = f != NULL;
  for (int i = 0; ok && i < n; i++)
    ok = read_answer(f, &out[i]);
  if (f) fclose(f);
  unlink(programs), unlink(data), unlink(answers), rmdir(dir);
  return ok;
}

void net_end(void) {
  for (int i = 0; i < nopened; i++)
    tg_close(opened[i].ctx);
  nopened = 0;
  torch_end();
}

/* ---- judging */
int64_t net_wrong(const NetResult *got, const NetReference *want, bool careful, int *output,
                  int64_t *decided) {
  double times = careful ? 12 : 16, coarsest = 0, finest = 1, longest = 0;
  for (int i = 0; i < got->n; i++) {
    double relative, absolute;
    net_rounding(tg_dtype_is_float(got->value[i].dtype) ? got->value[i].dtype : TG_F64, &relative, &absolute);
    coarsest = fmax(coarsest, relative);
    if (tg_dtype_is_float(got->value[i].dtype)) finest = fmin(finest, relative);
    longest = fmax(longest, (double)got->value[i].count);
  }
  /* Of n equal numbers that are added one after another each addition may round the same way, which no noise
   * shows. Sums are in f32 where they are not in f64. */
  double one_way = longest / 4 * (finest == 0x1p-53 ? 0x1p-53 : 0x1p-24);
  int64_t at = 0;
  for (int i = 0; i < got->n; i++) {
    const NetValue *value = &got->value[i];
    double relative, absolute, farthest = 0;
    net_rounding(tg_dtype_is_float(value->dtype) ? value->dtype : TG_F64, &relative, &absolute);
    /* where f64 meets other dtypes, what is f64 may be made of what was rounded more */
    if (finest == 0x1p-53 && tg_dtype_is_float(value->dtype)) relative = coarsest;
    *output = i;
    int by = order(value); /* a gradient may be what is left of larger ones that cancel */
    double lost = by ? 64 * coarsest * want->scale[by] + 1e-37 : 1e-37;
    if (at + value->count > want->count) return 0;
    for (int64_t k = 0; k < value->count; k++)
      if (isfinite(want->far[at + k])) farthest = fmax(farthest, want->far[at + k]);
    for (int64_t k = 0; k < value->count; k++, at++) {
      double a = want->v[at], b = value->v[k];
      double most = times * (want->far[at] + 0.05 * farthest) + (16 * relative + one_way) * fabs(a) +
                    4 * absolute + lost;
      if (isinf(want->far[at]) || (by && isnan(a) && !isnan(b)))
        continue; /* PyTorch has no such derivative */
      bool same = isnan(a) ? isnan(b) : a == b || (isfinite(a) && fabs(a - b) <= most);
      if (!same) return k;
      if (most <= 0.01 * fmax(fabs(a), 0.01)) ++*decided;
    }
  }
  return -1;
}
