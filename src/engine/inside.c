/* inside.c: collects what is known of each plan while it is made and run, if tg_explain, TG_EXPLAIN or
 * TG_VIZ asks for it. In: schedules with their graphs, programs with their texts, launches with their
 * times. Out: Inside. If memory runs out, less is known, which is not an error. */
#define _GNU_SOURCE
#include "engine/inside.h"
#include "base/os.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *copied(TgContext *ctx, const char *text) {
  size_t n = strlen(text) + 1;
  char *to = mem_alloc(&ctx->mem, n);
  if (to) memcpy(to, text, n);
  return to;
}

Inside *inside_new(TgContext *ctx) {
  Inside *in = mem_alloc(&ctx->mem, sizeof *in);
  if (!in) return NULL;
  in->begun = time_now_s();
  map_init(&in->numbered, &ctx->mem), map_init(&in->written, &ctx->mem);
  exchanges_asked(ctx);
  return in;
}

static void plan_free(TgContext *ctx, PlanFacts *p) {
  for (int k = 0; p->kernel && k < p->nkernel; k++) {
    KernelFacts *f = &p->kernel[k];
    mem_free(&ctx->mem, f->name), mem_free(&ctx->mem, f->origin), mem_free(&ctx->mem, f->opts);
    mem_free(&ctx->mem, f->source), mem_free(&ctx->mem, f->arg);
  }
  mem_free(&ctx->mem, p->kernel), mem_free(&ctx->mem, p->buffer), mem_free(&ctx->mem, p->fusion);
  mem_free(&ctx->mem, p->peak);
  mem_free(&ctx->mem, p);
}

void inside_free(TgContext *ctx, Inside *in) {
  if (!in) return;
  for (size_t i = 0; i < in->plans.len; i++)
    plan_free(ctx, in->plans.at[i]);
  vec_free(&ctx->mem, &in->plans), vec_free(&ctx->mem, &in->launches);
  map_free(&in->numbered), map_free(&in->written);
  mem_free(&ctx->mem, in);
}

PlanFacts *facts_numbered(const Inside *in, uint64_t number) {
  uint64_t at;
  return map_get(&in->numbered, number, &at) ? (PlanFacts *)(uintptr_t)at : NULL;
}

static PlanFacts *facts_of(TgContext *ctx, const Plan *p) {
  return ctx->inside ? facts_numbered(ctx->inside, p->number) : NULL;
}

/* ---- a kernel's graph */
typedef struct Look {
  UOpStore *st;
  TgMem *mem;
  UOpVec loops;
  Map stored;   /* the indices and memories that stores write */
  UOp *written; /* the loop along which the stored memory is contiguous; NULL: none */
  int64_t elements;
  int stores;
} Look;

static UOp *loop_of_stride_one(const Look *l, UOp *index) {
  UOp *flat = index_flat(l->st, l->mem, index);
  int64_t by;
  for (size_t i = 0; flat && i < l->loops.len; i++)
    if (uop_coefficient(flat, l->loops.at[i], &by) && by == 1) return l->loops.at[i];
  return NULL;
}

enum { CROSSED_LEAST = 16 * 1024, CROSSED_EXTENT = 8 };

/* Looks at an index into memory, and notes whether it is contiguous along another loop than the memory
 * that is written. */
static void index_looked(const Look *l, KernelFacts *f, UOp *u) {
  const UOp *memory = uop_base(u->src[0]);
  int64_t by = 0;
  if (memory->op != OPS_PARAM || !l->written || memory->arg.param.nelem != l->elements) return;
  UOp *flat = index_flat(l->st, l->mem, u), *along = loop_of_stride_one(l, u);
  bool varies = flat && along && along != l->written && uop_coefficient(flat, l->written, &by) && by > 1;
  f->crossed |= varies && l->elements >= CROSSED_LEAST && along->src[0]->vmax >= CROSSED_EXTENT;
}

static void node_looked(KernelFacts *f, PlanFacts *p, const UOp *u) {
  bool data = u->dtype != DT_INDEX && op_is_alu((Ops)u->op);
  p->ops = hash_mix(p->ops, (uint64_t)u->op << 8 | u->dtype);
  p->sizes = hash_mix(p->sizes, (uint64_t)u->op << 8 | u->dtype);
  if (u->op == OPS_RANGE || u->op == OPS_PARAM)
    p->sizes =
        hash_mix(p->sizes, u->op == OPS_RANGE ? (uint64_t)u->src[0]->vmax : (uint64_t)u->arg.param.nelem);
  f->reduces |= u->op == OPS_REDUCE || u->op == OPS_SCAN;
  f->computes |= u->op == OPS_REDUCE || u->op == OPS_SCAN || (data && u->op != OPS_CAST);
  f->f64 |= (data || u->op == OPS_REDUCE) && u->dtype == DT_F64 && u->op != OPS_CAST;
  if (u->op == OPS_RANGE && f->nloop < MOST_LOOPS) f->loop[f->nloop++] = u->src[0]->vmax;
}

/* Notes a store's memory, and for the first store the loop along which it is contiguous. A kernel's loops
 * precede its stores. */
static bool store_looked(Look *l, UOp *index) {
  const UOp *to = index->op == OPS_INDEX ? uop_base(index->src[0]) : NULL;
  if (!to || to->op != OPS_PARAM) return true;
  if (!l->stores++) {
    l->written = loop_of_stride_one(l, index);
    l->elements = to->arg.param.nelem;
  }
  return map_put_ptr(&l->stored, to, to) && map_put_ptr(&l->stored, index, index);
}

static void kernel_looked(TgContext *ctx, PlanFacts *p, KernelFacts *f, UOpStore *st, UOp *ast) {
  UOpVec nodes = {0};
  Look l = {.st = st, .mem = &ctx->mem};
  map_init(&l.stored, &ctx->mem);
  bool ok = uop_toposort(st, &ctx->mem, &ast, 1, &nodes);
  for (size_t i = 0; ok && i < nodes.len; i++) {
    UOp *u = nodes.at[i];
    node_looked(f, p, u);
    if (u->op == OPS_RANGE) ok = vec_push(&ctx->mem, &l.loops, u);
    if (u->op == OPS_STORE) ok = store_looked(&l, u->src[0]);
  }
  for (size_t i = 0; ok && i < nodes.len; i++) {
    UOp *u = nodes.at[i];
    bool stored = map_get_ptr(&l.stored, u) != NULL;
    if (u->op == OPS_PARAM)
      *(stored ? &f->written : &f->read) += u->arg.param.nelem * (int64_t)dtype_size((DType)u->dtype);
    if (u->op == OPS_INDEX && l.stores == 1 && !stored) index_looked(&l, f, u);
  }
  map_free(&l.stored);
  vec_free(&ctx->mem, &nodes), vec_free(&ctx->mem, &l.loops);
}

/* ---- a plan */
static void buffers_noted(PlanFacts *f, const Plan *p) {
  const Schedule *s = &p->sched;
  for (int t = 0; t < s->ntemp; t++)
    f->buffer[t] = (BufferFacts){.bytes = s->temp[t].nelem * (int64_t)dtype_size(s->temp[t].dtype),
                                 .first = s->temp[t].first,
                                 .last = s->temp[t].root >= 0 ? s->nkernel - 1 : s->temp[t].last,
                                 .slab = -1};
  for (int k = 0; k < s->nkernel; k++) {
    for (int a = 0; a < s->kernel[k].narg; a++) {
      int64_t id = s->kernel[k].arg[a] - TEMP_BASE;
      if (id >= 0 && id < s->ntemp && f->buffer[id].first != k) f->buffer[id].readers++;
    }
  }
  for (int t = 0; t < s->ntemp; t++) { /* bytes that begin or end to live at each kernel; added up below */
    const BufferFacts *b = &f->buffer[t];
    int first = TG_MAX(b->first, 0);
    if (first > b->last || first >= s->nkernel) continue;
    f->peak[first] += b->bytes;
    f->peak[TG_MIN(b->last, s->nkernel - 1) + 1] -= b->bytes;
  }
  for (int k = 1; k < s->nkernel; k++)
    f->peak[k] += f->peak[k - 1];
}

static void plan_dropped(TgContext *ctx, Inside *in, uint64_t number) {
  PlanFacts *f = facts_numbered(in, number);
  if (!f) return;
  PlanFacts *last = in->plans.at[--in->plans.len];
  in->plans.at[last->at = f->at] = last;
  map_drop(&in->numbered, number);
  plan_free(ctx, f);
}

void inside_scheduled(TgContext *ctx, const Plan *p, const char *fusion) {
  Inside *in = ctx->inside;
  const Schedule *s = &p->sched;
  PlanFacts *f = in ? mem_alloc(&ctx->mem, sizeof *f) : NULL;
  if (!f) return;
  plan_dropped(ctx, in, p->number); /* a plan may be made again, with smaller kernels */
  in->fallbacks = ctx->passes.fallbacks;
  f->number = p->number;
  f->at = in->plans.len;
  f->record = ctx->passes.next_schedule - 1;
  f->device = p->dev->name;
  f->cores = (p->dev->backend->has & HAS_THREADS) ? p->dev->target.cores : 1;
  f->kernel = mem_alloc(&ctx->mem, ((size_t)s->nkernel + 1) * sizeof *f->kernel);
  f->buffer = mem_alloc(&ctx->mem, ((size_t)s->ntemp + 1) * sizeof *f->buffer);
  f->peak = mem_alloc(&ctx->mem, ((size_t)s->nkernel + 1) * sizeof *f->peak);
  f->fusion = copied(ctx, fusion);
  bool ok = f->kernel && f->buffer && f->peak && f->fusion && map_put(&in->numbered, f->number, (uintptr_t)f);
  if (!ok || !vec_push(&ctx->mem, &in->plans, f)) {
    map_drop(&in->numbered, f->number);
    plan_free(ctx, f);
    return;
  }
  f->nkernel = s->nkernel;
  f->nbuffer = s->ntemp;
  buffers_noted(f, p);
  for (int k = 0; k < s->nkernel; k++) {
    KernelFacts *kf = &f->kernel[k];
    const SchedKernel *sk = &s->kernel[k];
    kf->est_us = sk->est_us;
    kf->flops = sk->flops;
    kf->threads = 1;
    kf->record = -1;
    if ((kf->arg = mem_alloc(&ctx->mem, ((size_t)sk->narg + 1) * sizeof *kf->arg))) {
      kf->narg = sk->narg;
      if (sk->narg) memcpy(kf->arg, sk->arg, (size_t)sk->narg * sizeof *kf->arg);
    }
    kernel_looked(ctx, f, kf, s->store, sk->ast);
    kf->f64 &= !sk->carries;
  }
}

void inside_kernel(TgContext *ctx, const Plan *p, int k, const Linear *lin, const char *opts,
                   const char *source, bool anew) {
  PlanFacts *f = facts_of(ctx, p);
  if (!f || k >= f->nkernel || (f->kernel[k].opts && !anew)) return;
  mem_free(&ctx->mem, f->kernel[k].opts), mem_free(&ctx->mem, f->kernel[k].source);
  f->kernel[k].record = ctx->passes.next_kernel - 1;
  f->kernel[k].opts = copied(ctx, opts);
  f->kernel[k].source = copied(ctx, source);
  f->kernel[k].plainer =
      ctx->passes.fallbacks > ctx->inside->fallbacks && !ctx->env.beam; /* a beam search's trials count too */
  ctx->inside->fallbacks = ctx->passes.fallbacks;
  f->kernel[k].threads = TG_MAX(lin->nthread, 1);
  for (int i = 0; i < 3; i++)
    f->kernel[k].threads *= TG_MAX(lin->global[i], 1) * TG_MAX(lin->local[i], 1);
}

/* Returns the first kernel that was made for a program. Only that kernel has the source and the opts.
 * NULL: it is not known. */
static const KernelFacts *made_for(const Inside *in, const CachedProgram *prog) {
  uint64_t at;
  const PlanFacts *f =
      map_get(&in->written, (uintptr_t)prog, &at) ? facts_numbered(in, at >> KERNEL_BITS) : NULL;
  const KernelFacts *k = f ? &f->kernel[at & ((1 << KERNEL_BITS) - 1)] : NULL;
  return k && k->prog == prog ? k : NULL;
}

static void written_for(Inside *in, const CachedProgram *prog, uint64_t number, int k) {
  uint64_t at;
  if (k < 1 << KERNEL_BITS && !map_get(&in->written, (uintptr_t)prog, &at))
    (void)map_put(&in->written, (uintptr_t)prog, number << KERNEL_BITS | (uint64_t)k);
}

void inside_made(TgContext *ctx, const Plan *p, double us) {
  PlanFacts *f = facts_of(ctx, p);
  if (!f) return;
  f->made_us = us;
  if (p->dev->remote) return; /* another rank compiles it and has its memory */
  for (int k = 0; k < f->nkernel; k++) {
    KernelFacts *kf = &f->kernel[k];
    kf->prog = p->prog[k];
    if (!kf->name) kf->name = copied(ctx, p->prog[k]->name);
    if (kf->source) written_for(ctx->inside, kf->prog, f->number, k);
    const KernelFacts *same = kf->source ? NULL : made_for(ctx->inside, kf->prog);
    if (!same) continue;
    kf->source = copied(ctx, same->source);
    kf->opts = same->opts ? copied(ctx, same->opts) : NULL;
    kf->plainer = same->plainer;
    kf->threads = same->threads;
    kf->record = same->record;
  }
  for (int t = 0; t < f->nbuffer; t++)
    f->buffer[t].slab = p->slab_of[t];
}

void inside_origins(TgContext *ctx, const Plan *p) {
  PlanFacts *f = facts_of(ctx, p);
  for (int k = 0; f && k < f->nkernel; k++)
    if (!f->kernel[k].origin) f->kernel[k].origin = copied(ctx, kernel_origin(p, k));
}

void inside_read(TgContext *ctx, size_t nbytes) {
  if (!ctx->inside) return;
  ctx->inside->reads++;
  ctx->inside->read_bytes += (int64_t)nbytes;
}

void inside_launch(TgContext *ctx, const Plan *p, int k, double us) {
  PlanFacts *f = facts_of(ctx, p);
  if (!f || k >= f->nkernel) return;
  f->runs += k == 0;
  f->kernel[k].runs++;
  f->kernel[k].us += us;
  if (ctx->inside->launches.len < MOST_LAUNCHES)
    (void)vec_push(&ctx->mem, &ctx->inside->launches,
                   ((LaunchFacts){p->number, k, (time_now_s() - ctx->inside->begun) * 1e6 - us, us}));
}

/* ---- on request */
static bool written(TgContext *ctx, const char *path, const Str *text) {
  int fd = ctx->os->open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  bool ok = !text->oom && os_write_all(ctx->os, fd, str_text(text), text->len);
  struct stat s;
  bool file = ctx->os->fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
  ok = (ctx->os->close(fd) == 0) & ok;
  if (!ok && file) ctx->os->unlink(path); /* half of the text could be taken for all of it */
  return ok;
}

/* At the end of the context, writes to the file of TG_EXPLAIN, or to graphs.json in the folder of TG_VIZ.
 * If the file exists, as with several contexts, file.2, file.3, .. is used. */
static void file_told(TgContext *ctx, const char *name, bool json) {
  Str text;
  char path[320];
  str_init(&text, &ctx->mem);
  if (json)
    explain_json(ctx, ctx->inside, &text);
  else
    explain_text(ctx, ctx->inside, NULL, &text);
  snprintf(path, sizeof path, "%s", name);
  for (int i = 2; ctx->os->access(path, F_OK) == 0 && i < 1000; i++)
    snprintf(path, sizeof path, "%s.%d", name, i);
  if (!written(ctx, path, &text)) context_say(ctx, "explain: %s: it could not be written\n", path);
  str_free(&text);
}

void inside_told(TgContext *ctx) {
  const char *name = ctx->env.explain;
  size_t n = strlen(name);
  char graphs[300];
  if (!ctx->inside || !ctx->inside->plans.len) return;
  if (n) file_told(ctx, name, n > 5 && !strcmp(name + n - 5, ".json"));
  snprintf(graphs, sizeof graphs, "%s/graphs.json", ctx->env.viz);
  if (*ctx->env.viz) file_told(ctx, graphs, true);
}

static TgStatus explained(TgContext *ctx, TgTensor *const *t, size_t n, const TgExplainOptions *o,
                          Inside *in) {
  int asked = tg_setting(ctx, "ORIGIN", 1);
  Inside *was = ctx->inside;
  ctx->inside = in;
  tg_cache_clear(ctx);
  TgStatus s = tg_schedule(t, n, NULL, NULL) < 0 ? ctx->err.status : TG_OK;
  if (!s && o->measure) s = ctx->calls->realize(ctx, t, n);
  ctx->inside = was;
  tg_setting(ctx, "ORIGIN", asked);
  Str *text = &ctx->explain_text;
  str_free(text), str_init(text, &ctx->mem);
  if (!s && o->json)
    explain_json(ctx, in, text);
  else if (!s && !explain_text(ctx, in, o->kernel, text))
    s = error_set(&ctx->err, TG_ERR_VALUE, "explain: there is no kernel %.100s", o->kernel);
  if (!s && text->oom) s = error_no_memory(&ctx->err, "explain");
  return s;
}

const char *tg_explain_opt(TgTensor *const *t, size_t n, const TgExplainOptions *given) {
  TgContext *ctx = n && t && t[0] ? t[0]->ctx : NULL;
  TgExplainOptions o;
  if (!ctx || tg_options_read(ctx, "explain", "TgExplainOptions", &o, sizeof o, given)) return NULL;
  Inside *in = inside_new(ctx);
  if (!in) return error_no_memory(&ctx->err, "explain"), NULL;
  TgStatus s = explained(ctx, t, n, &o, in);
  inside_free(ctx, in);
  return s ? NULL : str_text(&ctx->explain_text);
}
