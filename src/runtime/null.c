/* null.c: devices that schedule, render and plan but do not run: C, C with AMX or dot products, C99, CUDA and
 * Metal. A program is its source. If a text is written from the plan, kernels that make copies to be kept do
 * run, by the interpreter, because these copies are a part of the text. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#include <math.h>
#include <string.h>

struct Program {
  KernelText text;
  Program *runs; /* a program of the interpreter; NULL: a launch does nothing */
};

static TgStatus null_open(Device *d) {
  d->target = *d->backend->renderer->target;
  d->describe = "renders and plans, runs nothing";
  return TG_OK;
}

static void null_close(Device *d) { (void)d; }

static void null_unload(Device *d, Program *p) {
  if (!p) return;
  if (p->runs) cpu_interpreter->unload(d, p->runs);
  mem_free(d->mem, (char *)p->text.source), mem_free(d->mem, p->text.param);
  mem_free(d->mem, p);
}

/* Notes how a kernel uses its parameters, if its list is known. */
static bool uses_noted(Device *d, const Linear *lin, KernelText *t) {
  if (!lin->at) return true;
  if (!(t->param = mem_alloc(d->mem, ((size_t)lin->nparam + 1) * sizeof *t->param))) return false;
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i], *at = u->op == OPS_STORE ? uop_base(u->src[0]) : u;
    if (at->op == OPS_INDEX) at = uop_base(at->src[0]);
    if (at->op != OPS_PARAM || at->arg.param.slot >= lin->nparam) continue;
    ParamUse *p = &t->param[at->arg.param.slot];
    p->used |= u->op != OPS_PARAM;
    p->stored |= u->op == OPS_STORE;
    p->dtype = (DType)at->dtype;
  }
  return true;
}

/* Counts operations, and loads and stores of memory: one for each register that a vector fills. A vector
 * whose number of lanes is not a power of 2 is made of single values. */
static void work_counted(const Target *t, const Linear *lin, KernelText *text) {
  double trips = 1;
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i];
    if (u->op == OPS_RANGE) trips *= (double)u->vmax + 1;
    if (u->op == OPS_END) trips /= (double)u->src[0]->vmax + 1;
    bool moves = (u->op == OPS_LOAD || u->op == OPS_STORE) && uop_base(u->src[0])->op == OPS_INDEX;
    const UOp *v = u->op == OPS_STORE ? u->src[1] : u;
    double size = v->lanes * (double)dtype_size((DType)v->dtype);
    double each = v->lanes & (v->lanes - 1) ? v->lanes : ceil(size / t->vec_bytes);
    text->ops += trips * (target_weight(t, u) + moves) * each;
    if (moves) text->nbytes += trips * size;
  }
}

/* Makes a program for the interpreter, if one is needed and the interpreter is part of the library. Returns
 * false on failure, with the error recorded. */
static bool interpreted(Device *d, const KernelSpec *k, Program *p) {
  if (!k->packs || !(d->backend->has & HAS_LISTS) || !cpu_interpreter) return true;
  p->text.runs = !cpu_interpreter->compile(d, k, 1, &p->runs);
  return p->text.runs;
}

static Program *program_of(Device *d, const KernelSpec *k) {
  Program *p = mem_alloc(d->mem, sizeof *p);
  if (!p) return NULL;
  p->text = (KernelText){.local_bytes = k->shared_bytes,
                         .scratch_bytes = (int64_t)k->local_bytes,
                         .nparam = k->linear->nparam,
                         .nthread = TG_MAX(k->linear->nthread, 1)};
  p->text.source = mem_strdup(d->mem, k->source ? k->source : "");
  if (p->text.source && uses_noted(d, k->linear, &p->text)) {
    if (k->linear->at)
      list_in_place(k->linear, p->text.in_place), work_counted(&d->target, k->linear, &p->text);
    if (interpreted(d, k, p)) return p;
  }
  null_unload(d, p);
  return NULL;
}

static const KernelText *null_text(const Program *p) { return &p->text; }

static TgStatus null_compile(Device *d, const KernelSpec *k, int n, Program **out) {
  for (int i = 0; i < n; i++)
    out[i] = NULL;
  for (int i = 0; i < n; i++) {
    TgStatus st = kernel_launches(d, &k[i]);
    out[i] = st ? NULL : program_of(d, &k[i]);
    if (!out[i]) {
      for (int j = 0; j < i; j++) {
        null_unload(d, out[j]);
        out[j] = NULL;
      }
      return st ? st : error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->backend->name);
    }
    d->kernels_compiled++;
  }
  return TG_OK;
}

static TgStatus null_launch(Device *d, const Launch *l) {
  Launch own = *l;
  own.program = l->program->runs;
  return own.program ? cpu_interpreter->launch(d, &own) : TG_OK;
}

/* Nothing is computed here, so a large allocation only reserves address space: planning a model does not cost
 * memory of its size. LARGE: bytes. */
enum { LARGE = 1 << 18 };

static TgStatus null_alloc(Device *d, size_t nbytes, void **out) {
  if (nbytes < LARGE) return host_alloc(d, nbytes, out);
  void *p =
      d->os->mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *out = p == MAP_FAILED ? NULL : p;
  if (!*out)
    return error_set(d->err, TG_ERR_NOMEM, "%s: cannot allocate %zu bytes", d->backend->name, nbytes);
  d->bytes_in_use += nbytes;
  d->bytes_peak = TG_MAX(d->bytes_peak, d->bytes_in_use);
  return TG_OK;
}

static void null_free(Device *d, void *p, size_t nbytes) {
  if (nbytes < LARGE)
    host_free(d, p, nbytes);
  else if (p) {
    d->os->munmap(p, nbytes);
    d->bytes_in_use -= nbytes;
  }
}

static TgStatus null_copy(Device *d, void *dst, const void *src, size_t nbytes) {
  return (void)d, (void)dst, (void)src, (void)nbytes, TG_OK;
}

#define NULL_BACKEND(id, called, caps, rend)                                                                 \
  const TgBackend id = {.name = called,                                                                      \
                        .has = caps,                                                                         \
                        .open = null_open,                                                                   \
                        .close = null_close,                                                                 \
                        .alloc = null_alloc,                                                                 \
                        .free = null_free,                                                                   \
                        .copy_in = host_copy,                                                                \
                        .copy_out = host_copy,                                                               \
                        .copy = null_copy,                                                                   \
                        .compile = null_compile,                                                             \
                        .unload = null_unload,                                                               \
                        .launch = null_launch,                                                               \
                        HOST_ORDER,                                                                          \
                        .text = null_text,                                                                   \
                        .renderer = &rend}
NULL_BACKEND(backend_null_c, "NULL:C", HAS_THREADS, renderer_c);
NULL_BACKEND(backend_null_amx, "NULL:AMX", HAS_THREADS, renderer_amx);
NULL_BACKEND(backend_null_dot, "NULL:DOT", HAS_THREADS, renderer_dot);
NULL_BACKEND(backend_null_gnu, "NULL:GNU", HAS_LISTS, renderer_c); /* for text that is kept (export.c) */
NULL_BACKEND(backend_null_c99, "NULL:C99", HAS_LISTS, renderer_c99);
#ifndef TG_NO_CUDA
NULL_BACKEND(backend_null_cuda, "NULL:CUDA", HAS_OWN_MEMORY, renderer_cuda);
#endif
#ifndef TG_NO_METAL
NULL_BACKEND(backend_null_metal, "NULL:METAL", HAS_OWN_MEMORY, renderer_metal);
#endif
