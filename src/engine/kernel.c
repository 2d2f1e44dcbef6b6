/* kernel.c: a kernel that the user writes. In: its graph as text, and the tensors that its PARAMs stand
 * for. Out: what it stores, in those tensors. It is checked like any other graph. On a device that does
 * not check accesses, each access is guarded. It then runs as a plan with one kernel. */
#include "engine/engine.h"
#include "tensor/front.h"
#include "tensor/multi.h"
#include "uop/dims.h"
#include "uop/spec.h"
#include "uop/text.h"

typedef struct Slots {
  TgContext *ctx;
  TgTensor *const *arg;
  int n;
  bool *written;
} Slots;

/* Checks that every PARAM is an argument with its dtype and size, and notes which arguments are stored to. */
static bool slots_check(Slots *s, const UOpVec *nodes) {
  TgContext *ctx = s->ctx;
  for (size_t i = 0; i < nodes->len; i++) {
    const UOp *u = nodes->at[i], *to = u->op == OPS_STORE ? u->src[0]->src[0] : NULL;
    if (to && to->op == OPS_PARAM && to->arg.param.slot >= 0 && to->arg.param.slot < s->n)
      s->written[to->arg.param.slot] = true;
    if (u->op != OPS_PARAM) continue;
    int64_t slot = u->arg.param.slot;
    if (slot < 0 || slot >= s->n)
      return error_set(&ctx->err, TG_ERR_VALUE, "kernel: PARAM %lld, but %d tensors are given",
                       (long long)slot, s->n),
             false;
    const UOp *t = s->arg[slot]->uop;
    if (dims_symbolic(t->shape))
      return error_set(&ctx->err, TG_ERR_SHAPE, "kernel: tensor %lld has a symbolic size", (long long)slot),
             false;
    if (t->dtype != u->dtype)
      return error_set(&ctx->err, TG_ERR_DTYPE, "kernel: PARAM %lld is %s, the tensor %s", (long long)slot,
                       dtype_name((DType)u->dtype), dtype_name((DType)t->dtype)),
             false;
    if (dim_product(ctx->store, t->shape) != u->arg.param.nelem)
      return error_set(&ctx->err, TG_ERR_SHAPE, "kernel: PARAM %lld has %lld elements, the tensor %lld",
                       (long long)slot, (long long)u->arg.param.nelem,
                       (long long)dim_product(ctx->store, t->shape)),
             false;
  }
  return true;
}

/* Returns the address of t's first element. A strided view is first copied to contiguous memory, which is
 * correct for an argument that is only read. */
static void *element_at(TgContext *ctx, TgTensor *t, Buffer **memory) {
  int64_t start;
  UOp *u = value_in_memory(ctx, t);
  if (u && !piece_of(u, &start)) {
    t = tensor_new(ctx, uop_alu1(ctx->store, OPS_CONTIGUOUS, u));
    u = t ? value_in_memory(ctx, t) : NULL;
  }
  if (!u || !piece_of(u, &start) || !(*memory = buffer_of_value(ctx, view_bottom(u)))) return NULL;
  return (char *)(*memory)->data + (size_t)start * dtype_size((*memory)->dtype);
}

/* Makes the arguments ready. A tensor that is written must be a whole buffer of its own, and no other
 * argument may share its memory. */
static TgStatus slots_ready(Slots *s, void **bufs) {
  TgContext *ctx = s->ctx;
  Buffer **b = mem_alloc(&ctx->mem, ((size_t)s->n + 1) * sizeof *b);
  if (!b) return error_no_memory(&ctx->err, "kernel");
  for (int i = 0; i < s->n && !ctx->err.status; i++) {
    TgTensor *t = s->arg[i];
    if (s->written[i] && !place_ready("kernel", t, true)) break;
    if (s->written[i] && !in_memory(t->uop))
      error_set(&ctx->err, TG_ERR_STATE,
                "kernel: tensor %d is written, and is a part of another; give the whole", i);
    else
      bufs[i] = element_at(ctx, t, &b[i]);
  }
  for (int i = 0; i < s->n; i++)
    for (int k = 0; k < s->n && !ctx->err.status; k++)
      if (i != k && s->written[i] && b[i] == b[k])
        error_set(&ctx->err, TG_ERR_VALUE, "kernel: tensors %d and %d are one memory, which is written", i,
                  k);
  mem_free(&ctx->mem, b);
  return ctx->err.status;
}

/* Reads the text as one kernel graph whose accesses fit the tensors. NULL: an error was recorded. */
static UOp *kernel_read(TgContext *ctx, const char *text, UOpText *t, UOpStore *st, Slots *s, void **bufs) {
  SpecError bad = {0};
  UOpVec nodes = {0};
  if (!uop_parse(t, st, &ctx->mem, text, strlen(text), &ctx->err)) return NULL;
  if (t->program.n || t->roots.len != 1 ||
      !spec_graph(st, &ctx->mem, GRAPH_KERNEL, t->roots.at, t->roots.len, &bad)) {
    error_set(&ctx->err, TG_ERR_VALUE, "kernel: the text is no kernel graph%s%s%s%s", bad.node ? ": " : "",
              bad.node ? op_name((Ops)bad.node->op) : "", bad.node ? ": " : "", bad.why);
    return NULL;
  }
  bool ok =
      uop_toposort(st, &ctx->mem, t->roots.at, 1, &nodes) && slots_check(s, &nodes) && !slots_ready(s, bufs);
  vec_free(&ctx->mem, &nodes);
  return ok ? t->roots.at[0] : NULL;
}

/* Runs the kernel once, as a plan of its own. */
static bool kernel_alone(TgContext *ctx, Device *d, UOpStore *st, UOp *kernel, int narg, void **bufs) {
  CachedProgram *prog = NULL;
  Plan p = {.sched = {.nkernel = 1, .store = st, .kernel = &(SchedKernel){.ast = kernel, .narg = narg}},
            .prog = &prog,
            .dev = d};
  bool ok = !programs_make(ctx, &p);
  Launch l = {.program = ok ? prog->prog : NULL, .bufs = bufs, .nbuf = narg};
  ok = ok && !d->backend->launch(d, &l) && !d->backend->sync(d);
  ctx->counters.kernels += ok;
  ctx->counters.launches += ok;
  program_release(ctx, prog);
  return ok;
}

/* Runs a kernel. If something still needs the old contents of a tensor that is written, they are kept
 * before the kernel runs. */
static TgStatus kernel_run(TgContext *ctx, const char *text, Slots *s) {
  UOpText t = {.mem = &ctx->mem};
  UOp *kernel = NULL;
  size_t nwritten = 0;
  void **bufs = mem_alloc(&ctx->mem, ((size_t)s->n + 1) * sizeof *bufs);
  Buffer **written = mem_alloc(&ctx->mem, ((size_t)s->n + 1) * sizeof *written);
  UOpStore *st = store_new(&ctx->mem);
  s->written = mem_alloc(&ctx->mem, (size_t)s->n + 1);
  if (st && bufs && written && s->written) {
    store_set_env(st, &ctx->passes.rewrites);
    kernel = kernel_read(ctx, text, &t, st, s, bufs);
  } else
    error_no_memory(&ctx->err, "kernel");
  for (int i = 0; kernel && i < s->n; i++)
    if (s->written[i]) written[nwritten++] = s->arg[i]->memory;
  Device *d = device_at(ctx, tensor_device(s->arg[0]));
  bool ok = kernel && !engine_before_stores(ctx, written, nwritten);
  if (ok && !(d->backend->has & HAS_CHECKS)) ok = (kernel = guard_accesses(st, &ctx->mem, kernel)) != NULL;
  ok = ok && kernel_alone(ctx, d, st, kernel, s->n, bufs) && stores_done(ctx, written, nwritten);
  if (!ok) error_set(&ctx->err, TG_ERR_NOMEM, "kernel: out of memory, or the device refuses it");
  uop_text_free(&t);
  mem_free(&ctx->mem, written), mem_free(&ctx->mem, bufs), mem_free(&ctx->mem, s->written);
  store_free(st);
  return ok ? TG_OK : ctx->err.status;
}

TgStatus tg_kernel(TgContext *ctx, const char *text, TgTensor *const *args, int n) {
  if (!ctx) return TG_ERR_VALUE;
  if (!ctx->dev_open) return error_set(&ctx->err, TG_ERR_DEVICE, "kernel: no device is open");
  if (capture_refuses(ctx, "kernel")) return TG_ERR_STATE;
  if (!text || n < 1 || !args)
    return error_set(&ctx->err, TG_ERR_VALUE, "kernel: %s", text ? "no tensors" : "no text");
  for (int i = 0; i < n; i++)
    if (!args[i] || args[i]->ctx != ctx)
      return error_set(&ctx->err, TG_ERR_VALUE, "kernel: tensor %d is NULL or of another context", i);
  for (int i = 0; i < n; i++)
    if (on_several(args[i]->uop))
      return error_set(&ctx->err, TG_ERR_DEVICE, "kernel: tensor %d is on %s; tg_shard_part gives one part",
                       i, tg_device(args[i]));
  for (int i = 1; i < n; i++)
    if (tensor_device(args[i]) != tensor_device(args[0]))
      return error_set(&ctx->err, TG_ERR_DEVICE, "kernel: tensor %d is on %s, tensor 0 on %s", i,
                       tg_device(args[i]), tg_device(args[0]));
  return kernel_run(ctx, text, &(Slots){.ctx = ctx, .arg = args, .n = n});
}
