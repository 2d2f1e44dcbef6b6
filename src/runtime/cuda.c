/* cuda.c: the CUDA device. In: kernels as CUDA C++, memory, launches. Out: work for an NVIDIA GPU. It is put
 * into one stream in order, and nobody waits for it: an error is reported by the call that notices it.
 * Building needs nothing of NVIDIA's, because the driver and NVRTC are loaded when the device is opened
 * (cuda_load.c), or emulated (TG_EMU=1, emulators.h). */
#define _GNU_SOURCE
#include "runtime/cuda.h"
#include "runtime/emulators.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

struct Program {
  CUfunction function;
  Kernel *kernel;
  unsigned grid[3], block[3];
  GridBlocks blocks[3];
  unsigned shared_bytes; /* dynamic shared memory of a launch */
  int narg;
  void **args; /* space for the addresses of a launch's arguments */
  char name[96];
};

struct Event {
  CUevent event;
};

struct LaunchGraph {
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode *node;
  int n;
};

/* ---- errors */
TgStatus cuda_check(Device *d, CUresult r, const char *what) {
  const Cuda *p = d->priv;
  const char *name = NULL, *text = NULL;
  if (r == CUDA_OK) return TG_OK;
  TgStatus st = r == CUDA_OUT_OF_MEMORY ? TG_ERR_NOMEM : TG_ERR_DEVICE;
  if (p->api.error_name(r, &name)) name = "an error that the driver has no name for";
  if (p->api.error_text(r, &text)) text = "";
  if (!p->nlaunched) return error_set(d->err, st, "%s: %s: %s: %s", d->name, what, name, text);
  return error_set(d->err, st, "%s: %s: %s: %s (kernel %s%s)", d->name, what, name, text, p->last,
                   p->nlaunched > 1 ? ", or one before it since the last wait; TG_DEBUG=2 waits for each"
                                    : "");
}

static TgStatus current(Device *d, const char *what) {
  const Cuda *p = d->priv;
  return cuda_check(d, p->api.context_set(p->context), what);
}

/* ---- open */
static int attribute(const Cuda *p, int which, int otherwise) {
  int value = 0;
  return !p->api.device_attribute(&value, which, p->device) && value > 0 ? value : otherwise;
}

/* Returns the plan's machine with the rates of this GPU. Its bandwidth is divided equally among the
 * multiprocessors. Memory moves the bits of its bus twice per clock. */
static Target target_of(const Cuda *p, const TgEnv *env) {
  /* f32 operations per clock of a multiprocessor: 128 on sm_86 and newer, 64 before */
  enum { LANES = 128, LANES_BEFORE = 64, LANES_SINCE = 86 };

  enum { COPIES_SINCE = 80 }; /* cp.async needs sm_80 */

  Target t = target_cuda;
  int arch = 10 * attribute(p, CUDA_ARCH_MAJOR, 9) + attribute(p, CUDA_ARCH_MINOR, 0);
  t.cores = t.streams = attribute(p, CUDA_MULTIPROCESSORS, t.cores);
  t.mhz = attribute(p, CUDA_CLOCK_KHZ, (int)(t.mhz * 1000)) / 1000.0;
  t.cache[LEVEL_L3] = attribute(p, CUDA_L2_BYTES, (int)t.cache[LEVEL_L3]);
  t.local_bytes = attribute(p, CUDA_SHARED_PER_BLOCK, (int)t.local_bytes);
  t.local_most = TG_MAX(attribute(p, CUDA_SHARED_OPTIN, (int)t.local_bytes), t.local_bytes);
  t.most.block = attribute(p, CUDA_BLOCK_THREADS, t.most.block);
  for (int i = 0; i < 3; i++) {
    t.most.threads[i] = attribute(p, CUDA_BLOCK_X + i, t.most.threads[i]);
    t.most.blocks[i] = attribute(p, CUDA_GRID_X + i, (int)t.most.blocks[i]);
  }
  double bus = attribute(p, CUDA_MEMORY_BITS, 0) / 8.0, khz = attribute(p, CUDA_MEMORY_KHZ, 0);
  if (bus * khz > 0) t.bytes_us[LEVEL_MEMORY] = 2 * bus * khz / 1000 / t.streams;
  t.matrices = matrix_rows(MATRIX_CUDA, arch);
  /* Some matrix units exist on one architecture alone. They are not used if the compiler makes code for any
   * GPU that may come. */
  bool own = env->wgmma && strchr(p->arch, 'a');
  for (int i = 0; i < MATRIX_COUNT; i++)
    if (matrix_shapes[i].until && !own) t.matrices &= ~(UINT32_C(1) << i);
  t.copies = arch >= COPIES_SINCE;
  t.fmas = t.ops = arch < LANES_SINCE ? LANES_BEFORE : LANES;
  return t;
}

/* Chooses the newest architecture that the compiler knows and the GPU runs, including the instructions that
 * only this architecture has. If the compiler is older than the GPU, the driver translates its code. */
static TgStatus arch_chosen(Device *d, Cuda *p) {
  enum { MOST = 256, OWN_SINCE = 90, OWN_COMPILER = 12 };

  int archs[MOST], n = 0, best = 0, major = 0, minor = 0;
  int have = 10 * attribute(p, CUDA_ARCH_MAJOR, 0) + attribute(p, CUDA_ARCH_MINOR, 0);
  bool known = !p->api.compiler_narchs(&n) && n > 0 && n <= MOST && !p->api.compiler_archs(archs);
  for (int i = 0; known && i < n; i++)
    if (archs[i] <= have) best = TG_MAX(best, archs[i]);
  if (!best)
    return error_set(d->err, TG_ERR_DEVICE, "%s: NVRTC knows no architecture that this GPU, sm_%d, runs",
                     d->name, have);
  p->api.compiler_version(&major, &minor);
  bool own = best == have && best >= OWN_SINCE && major >= OWN_COMPILER;
  snprintf(p->arch, sizeof p->arch, own ? "sm_%da" : best == have ? "sm_%d" : "compute_%d", best);
  snprintf(p->compiler, sizeof p->compiler, "%s%d.%d", p->emulated ? "emulated " : "", major, minor);
  return TG_OK;
}

static void describe(Device *d, Cuda *p) {
  char name[96] = "";
  int version = 0;
  uint64_t unused = 0, total = 0;
  p->api.device_name(name, sizeof name, p->device);
  p->api.driver_version(&version);
  cuda_memory_info(d, &unused, &total);
  snprintf(p->text, sizeof p->text, "%.90s, %s, %d multiprocessors, %.1f GB; driver %d.%d, NVRTC %s", name,
           p->arch, d->target.cores, (double)total / 1e9, version / 1000, version % 1000 / 10, p->compiler);
  d->describe = p->text;
}

static const KernelLoader loader;

static TgStatus gpu_opened(Device *d, Cuda *p) {
  const char *colon = strchr(d->name, ':');
  int count = 0, index = 0;
  CUresult r = p->api.init(0);
  if (colon) sscanf(colon + 1, "%d", &index);
  if (!r) r = p->api.device_count(&count);
  if (r == CUDA_NO_DEVICE || (!r && !count))
    return error_set(d->err, TG_ERR_DEVICE, "%s: there is a driver, but no GPU", d->name);
  if (!r && index >= count)
    return error_set(d->err, TG_ERR_DEVICE, "%s: there %s", d->name,
                     count == 1 ? "is one GPU" : "are fewer GPUs");
  if (!r) r = p->api.device_get(&p->device, index);
  if (!r) r = p->api.context_retain(&p->context, p->device);
  p->retained = !r;
  if (!r) r = p->api.context_set(p->context);
  if (!r) r = p->api.stream_create(&p->stream[COMPUTE], CUDA_STREAM_NON_BLOCKING);
  if (!r) r = p->api.stream_create(&p->stream[COPIES], CUDA_STREAM_NON_BLOCKING);
  if (!r) r = p->api.event_create(&p->gate, CUDA_EVENT_NO_TIME);
  return cuda_check(d, r, "the GPU is opened");
}

static void cuda_close(Device *d) {
  Cuda *p = d->priv;
  if (!p) return;
  /* on a device that has failed these calls fail too, and do no harm */
  if (p->retained) cuda_sync(d);
  if (p->kernels.loader) kernels_close(d, &p->kernels);
  cuda_memory_end(d);
  if (p->gate) p->api.event_destroy(p->gate);
  for (int i = 0; i < STREAMS; i++)
    if (p->stream[i]) p->api.stream_destroy(p->stream[i]);
  if (p->retained) p->api.context_release(p->device);
  if (p->emulated)
    emulators()->cuda_close();
  else
    cuda_unload(d->os, &p->lib);
  mem_free(d->mem, p);
  d->priv = NULL;
}

static TgStatus cuda_open(Device *d) {
  if (!d->os) d->os = &tg_os_default;
  Cuda *p = d->priv = mem_alloc(d->mem, sizeof *p);
  if (!p) return error_no_memory(d->err, "CUDA");
  TgStatus st = cuda_load(d->os, d->env, d->err, &p->lib, &p->api);
  if (st) {
    mem_free(d->mem, p);
    d->priv = NULL;
    return st;
  }
  p->emulated = d->env->emulate > 0;
  uint64_t unused = 0, total = 0;
  st = gpu_opened(d, p);
  if (!st) st = cuda_memory_info(d, &unused, &total);
  cuda_memory_begin(d, emulates_exactly(d->env) ? 0 : total / 2);
  if (!st) st = arch_chosen(d, p);
  if (!st && !kernels_open(d, &p->kernels, &loader, &renderer_cuda)) st = error_no_memory(d->err, "CUDA");
  if (st) {
    cuda_close(d);
    return st;
  }
  d->target = target_of(p, d->env);
  describe(d, p);
  return TG_OK;
}

/* ---- compile */
/* These options make a GPU compute as INTERP does: no product is fused with a sum, nothing is flushed to
 * zero, and divisions and roots are exact. */
static const char *const exact[] = {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"};

static void unit_ident(Device *d, const KernelSpec *k, Str *out) {
  const Cuda *p = d->priv;
  const char *parts[] = {"CUDA",   p->arch,  p->compiler, p->emulated ? emulators()->cuda_ident() : "",
                         exact[0], exact[1], exact[2],    exact[3]};
  (void)k;
  for (size_t i = 0; i < TG_COUNT(parts); i++)
    str_putn(out, parts[i], strlen(parts[i]) + 1);
}

static TgStatus module_load(Device *d, const Blob *object, void **module) {
  Cuda *p = d->priv;
  CUmodule m = NULL;
  TgStatus st = current(d, "kernels are loaded");
  if (!st) st = cuda_check(d, p->api.module_load(&m, object->at), "kernels are loaded");
  *module = m;
  return st;
}

static void module_unload(Device *d, void *module) {
  Cuda *p = d->priv;
  if (!p->api.context_set(p->context)) p->api.module_unload(module);
}

static void *module_find(Device *d, void *module, const Blob *object, const char *symbol) {
  Cuda *p = d->priv;
  CUfunction f = NULL;
  (void)object;
  return p->api.module_function(&f, module, symbol) ? NULL : f;
}

static const KernelLoader loader = {
    .ident = unit_ident, .load = module_load, .unload = module_unload, .find = module_find};

/* Sets the error, with the compiler's message. */
static TgStatus unit_refused(Device *d, nvrtcProgram unit, nvrtcResult r) {
  Cuda *p = d->priv;
  size_t n = 0;
  char *log = p->api.unit_log_size(unit, &n) ? NULL : mem_alloc(d->mem, n + 1);
  if (log && p->api.unit_log(unit, log)) *log = 0;
  error_set(d->err, TG_ERR_COMPILE, "CUDA: NVRTC fails (%d): %.180s", r, log ? log : "");
  mem_free(d->mem, log);
  return TG_ERR_COMPILE;
}

/* Compiles a text to a module: to machine code or, if the GPU is newer than the compiler, to PTX. */
static TgStatus unit_compiled(Device *d, const char *text, Blob *out) {
  Cuda *p = d->priv;
  nvrtcProgram unit = NULL;
  char arch[64];
  bool code = !strncmp(p->arch, "sm_", 3);
  snprintf(arch, sizeof arch, "--gpu-architecture=%s", p->arch);
  const char *options[] = {arch, exact[0], exact[1], exact[2], exact[3]};
  nvrtcResult r = p->api.unit_create(&unit, text, "kernels.cu", 0, NULL, NULL);
  if (r) return error_set(d->err, TG_ERR_COMPILE, "CUDA: NVRTC takes no text (%d)", r);
  r = p->api.unit_compile(unit, TG_COUNT(options), options);
  TgStatus st = r ? unit_refused(d, unit, r) : TG_OK;
  size_t n = 0;
  if (!st && (code ? p->api.unit_cubin_size(unit, &n) : p->api.unit_ptx_size(unit, &n)))
    st = error_set(d->err, TG_ERR_COMPILE, "CUDA: NVRTC made nothing");
  if (!st && !(out->at = mem_alloc(d->mem, n + 1))) st = error_no_memory(d->err, "CUDA");
  out->nbytes = n;
  if (!st && (code ? p->api.unit_cubin(unit, (char *)out->at) : p->api.unit_ptx(unit, (char *)out->at)))
    st = error_set(d->err, TG_ERR_COMPILE, "CUDA: what NVRTC made cannot be had");
  p->api.unit_destroy(&unit);
  return st;
}

/* Compiles all kernels as one text, so that the compiler reads what precedes the kernels once. */
static TgStatus compile_missing(Device *d, const KernelSpec *ks, Kernel *const *kn, const int *todo, int n) {
  Cuda *p = d->priv;
  Kernel **kernel;
  Blob object = {0};
  Str text;
  bool room = kernels_one_text(d, &p->kernels, ks, kn, todo, n, &text, &kernel);
  TgStatus st = room ? TG_OK : error_no_memory(d->err, "CUDA");
  if (!st) st = unit_compiled(d, str_text(&text), &object);
  if (!st) st = kernels_loaded(d, &p->kernels, &object, kernel, n);
  mem_free(d->mem, object.at);
  str_free(&text), mem_free(d->mem, kernel);
  return st;
}

static void cuda_program_free(Device *d, Program *g) {
  if (g) kernel_left(g->kernel), mem_free(d->mem, g->args);
  mem_free(d->mem, g);
}

/* A kernel may have more shared memory than its text can declare, but the driver has to be told. */
static TgStatus shared_allowed(Device *d, Program *g, int64_t local) {
  Cuda *p = d->priv;
  if (local <= CUDA_STATIC_LOCAL) return TG_OK;
  g->shared_bytes = (unsigned)local;
  return cuda_check(d, p->api.function_set(g->function, CUDA_FUNCTION_DYNAMIC_SHARED, (int)local),
                    "a kernel asks for shared memory");
}

static TgStatus program_new(Device *d, Kernel *k, const KernelSpec *spec, Program **out) {
  const Linear *lin = spec->linear;
  Program *g = *out = mem_alloc(d->mem, sizeof *g);
  if (!g) return error_no_memory(d->err, "CUDA");
  g->function = k->fn;
  kernel_taken(g->kernel = k);
  g->narg = lin->nparam + spec->nvar;
  for (int i = 0; i < 3; i++) {
    g->grid[i] = (unsigned)TG_MAX(lin->global[i], 1);
    g->block[i] = (unsigned)TG_MAX(lin->local[i], 1);
    g->blocks[i] = lin->blocks[i];
  }
  snprintf(g->name, sizeof g->name, "%s", lin->name);
  if (!(g->args = mem_alloc(d->mem, ((size_t)g->narg + 1) * sizeof *g->args)))
    return error_no_memory(d->err, "CUDA");
  return shared_allowed(d, g, spec->shared_bytes);
}

static TgStatus cuda_compile(Device *d, const KernelSpec *ks, int n, Program **out) {
  Cuda *p = d->priv;
  size_t count = (size_t)n + 1;
  Kernel **kn = mem_alloc(d->mem, count * sizeof *kn);
  int *todo = mem_alloc(d->mem, count * sizeof *todo), ntodo = 0;
  for (int i = 0; i < n; i++)
    out[i] = NULL;
  TgStatus st = kn && todo ? current(d, "kernels are compiled") : TG_ERR_NOMEM;
  for (int i = 0; i < n && !st; i++)
    st = kernel_launches(d, &ks[i]);
  if (!st) st = kernels_find(d, &p->kernels, ks, n, kn, todo, &ntodo);
  if (!st && ntodo) st = compile_missing(d, ks, kn, todo, ntodo);
  kernels_done(&p->kernels);
  for (int i = 0; i < n && !st; i++)
    st = program_new(d, kn[i], &ks[i], &out[i]);
  for (int i = 0; i < n && st; i++) {
    cuda_program_free(d, out[i]);
    out[i] = NULL;
  }
  mem_free(d->mem, kn), mem_free(d->mem, todo);
  return st ? error_set(d->err, st, "CUDA: out of memory") : TG_OK;
}

/* ---- launch */
/* Writes the addresses of a kernel's arguments: first pointers, then variables. */
static void **launch_args(const Launch *l) {
  void **args = l->program->args;
  for (int i = 0; i < l->nbuf; i++)
    args[i] = (void *)&l->bufs[i];
  for (int i = 0; i < l->nvar; i++)
    args[l->nbuf + i] = (void *)&l->vars[i];
  return args;
}

static void launched(Cuda *p, const char *name, uint64_t n) {
  snprintf(p->last, sizeof p->last, "%s", name);
  p->memory.blocks.given++;
  p->nlaunched += n;
}

/* Computes the grid that a launch needs. */
static void grid_of(const Launch *l, unsigned grid[3]) {
  for (int i = 0; i < 3; i++)
    grid[i] = (unsigned)blocks_needed(&l->program->blocks[i], (int)l->program->grid[i], l->vars);
}

static TgStatus cuda_launch(Device *d, const Launch *l) {
  Cuda *p = d->priv;
  const Program *g = l->program;
  unsigned grid[3];
  grid_of(l, grid);
  TgStatus st = current(d, "a launch");
  if (st) return st;
  launched(p, g->name, 1);
  return cuda_check(d,
                    p->api.launch(g->function, grid[0], grid[1], grid[2], g->block[0], g->block[1],
                                  g->block[2], g->shared_bytes, p->stream[COMPUTE], launch_args(l), NULL),
                    "a launch");
}

/* ---- graphs */
static void cuda_graph_free(Device *d, LaunchGraph *g) {
  Cuda *p = d->priv;
  if (!g) return;
  if (!p->api.context_set(p->context)) {
    if (g->exec && g->n) cuda_sync(d); /* the GPU may still run it */
    if (g->exec) p->api.graph_exec_destroy(g->exec);
    if (g->graph) p->api.graph_destroy(g->graph);
  }
  mem_free(d->mem, g->node), mem_free(d->mem, g);
}

static CudaKernelNode kernel_node(const Launch *l) {
  const Program *p = l->program;
  CudaKernelNode n = {.function = p->function, .shared_bytes = p->shared_bytes, .args = launch_args(l)};
  grid_of(l, n.grid), memcpy(n.block, p->block, sizeof n.block);
  return n;
}

/* Each launch depends on the one before it. */
static TgStatus cuda_graph_new(Device *d, const Launch *l, int n, LaunchGraph **out) {
  Cuda *p = d->priv;
  LaunchGraph *g = mem_alloc(d->mem, sizeof *g);
  if (g) g->node = mem_alloc(d->mem, ((size_t)n + 1) * sizeof *g->node);
  TgStatus st = g && g->node ? current(d, "a graph") : error_no_memory(d->err, "CUDA");
  if (!st) st = cuda_check(d, p->api.graph_create(&g->graph, 0), "a graph");
  for (int i = 0; i < n && !st; i++) {
    CudaKernelNode node = kernel_node(&l[i]);
    const CUgraphNode *after = i ? &g->node[i - 1] : NULL;
    st = cuda_check(d, p->api.graph_add(&g->node[i], g->graph, after, i > 0, &node), l[i].program->name);
  }
  if (!st) st = cuda_check(d, p->api.graph_instantiate(&g->exec, g->graph, 0), "a graph");
  if (st) {
    cuda_graph_free(d, g);
    return st;
  }
  g->n = n;
  *out = g;
  return TG_OK;
}

static TgStatus cuda_graph_update(Device *d, LaunchGraph *g, int i, const Launch *l) {
  Cuda *p = d->priv;
  CudaKernelNode node = kernel_node(l);
  TgStatus st = current(d, "a graph");
  return st ? st : cuda_check(d, p->api.graph_update(g->exec, g->node[i], &node), l->program->name);
}

static TgStatus cuda_graph_launch(Device *d, LaunchGraph *g) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "a graph");
  if (st) return st;
  launched(p, "of a captured function", (uint64_t)g->n);
  return cuda_check(d, p->api.graph_launch(g->exec, p->stream[COMPUTE]), "a graph");
}

/* ---- order and time */
TgStatus cuda_sync(Device *d) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "a wait");
  for (int i = 0; i < STREAMS && !st; i++)
    if (p->stream[i]) st = cuda_check(d, p->api.stream_sync(p->stream[i]), "a wait");
  if (!st) {
    p->memory.blocks.done = p->memory.blocks.given;
    p->nlaunched = 0;
  }
  return st;
}

static void event_free(Device *d, Event *e) {
  Cuda *p = d->priv;
  if (e && e->event && !p->api.context_set(p->context)) p->api.event_destroy(e->event);
  mem_free(d->mem, e);
}

static TgStatus recorded(Device *d, Event **e, CUstream stream) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "an event");
  if (!st && !*e && !(*e = mem_alloc(d->mem, sizeof **e))) st = error_no_memory(d->err, "CUDA");
  if (!st && !(*e)->event) st = cuda_check(d, p->api.event_create(&(*e)->event, 0), "an event");
  return st ? st : cuda_check(d, p->api.event_record((*e)->event, stream), "an event");
}

static TgStatus event_record(Device *d, Event **e) {
  return recorded(d, e, ((Cuda *)d->priv)->stream[COMPUTE]);
}

/* Copies in the sender's stream of copies, in the order in which its kernels produce what is copied. */
static TgStatus copy_beside(Device *d, const void *src, Device *to, void *dst, size_t nbytes,
                            Event *const after[2], Event **done) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "a copy between devices");
  for (int i = 0; i < 2 && !st; i++)
    st = cuda_check(d, p->api.stream_wait(p->stream[COPIES], after[i]->event, 0), "an event is waited for");
  if (!st) st = cuda_copy_to(d, src, to, dst, nbytes, p->stream[COPIES]);
  return st ? st : recorded(d, done, p->stream[COPIES]);
}

static TgStatus event_reach(Device *d, Event *e) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "an event");
  return st ? st : cuda_check(d, p->api.event_sync(e->event), "an event is waited for");
}

static TgStatus event_wait(Device *d, Event *e) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "an event");
  return st ? st
            : cuda_check(d, p->api.stream_wait(p->stream[COMPUTE], e->event, 0), "an event is waited for");
}

static double event_us(Device *d, Event *from, Event *to) {
  Cuda *p = d->priv;
  float ms = 0;
  bool known = !p->api.context_set(p->context) && !p->api.event_ms(&ms, from->event, to->event);
  return known ? ms * 1e3 : 0;
}

static void *stream(Device *d) {
  Cuda *p = d->priv;
  TgStatus st = current(d, "an exchange");
  if (!st && !p->stream[EXCHANGES])
    st = cuda_check(d, p->api.stream_create(&p->stream[EXCHANGES], CUDA_STREAM_NON_BLOCKING), "an exchange");
  p->memory.blocks.given++;
  return st || cuda_ordered(d, p->stream[COMPUTE], p->stream[EXCHANGES]) ? NULL : p->stream[EXCHANGES];
}

static TgStatus stream_event(Device *d, Event **e) {
  return recorded(d, e, ((Cuda *)d->priv)->stream[EXCHANGES]);
}

const TgBackend backend_cuda = {.name = "CUDA",
                                .has = HAS_RUN | HAS_OWN_MEMORY | HAS_QUEUE,
                                .open = cuda_open,
                                .close = cuda_close,
                                .alloc = cuda_alloc,
                                .free = cuda_free,
                                .host_alloc = cuda_host_alloc,
                                .host_free = cuda_host_free,
                                .memory_info = cuda_memory_info,
                                .copy_in = cuda_copy_in,
                                .copy_out = cuda_copy_out,
                                .copy = cuda_copy,
                                .clear = cuda_clear,
                                .copy_peer = cuda_copy_peer,
                                .copy_beside = copy_beside,
                                .reads_peer = cuda_reads_peer,
                                .compile = cuda_compile,
                                .unload = cuda_program_free,
                                .launch = cuda_launch,
                                .graph_new = cuda_graph_new,
                                .graph_update = cuda_graph_update,
                                .graph_launch = cuda_graph_launch,
                                .graph_free = cuda_graph_free,
                                .sync = cuda_sync,
                                .event_record = event_record,
                                .event_reach = event_reach,
                                .event_wait = event_wait,
                                .event_us = event_us,
                                .event_free = event_free,
                                .stream = stream,
                                .stream_event = stream_event,
                                .renderer = &renderer_cuda};
