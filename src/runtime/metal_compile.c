/* metal_compile.c: kernels of a METAL device. In: texts in MSL. Out: libraries, and a pipeline for each
 * kernel that is launched. What is found by the hash of a text is kept in memory only, because the system has
 * its own cache on disk. */
#include "runtime/metal.h"
#include <stdio.h>
#include <string.h>

typedef struct MetalModule {
  MetalId library;
  MetalKernel *kernels;
} MetalModule;

static MetalId string_of(const MetalApi *m, const char *text) {
  return metal_string(m, m->class_named("NSString"), text);
}

/* Returns a new object, which the caller releases. */
static MetalId object_of(const MetalApi *m, const char *class_name) {
  MetalId object = metal_alloc_object(m, m->class_named(class_name));
  return object ? metal_init(m, object) : NULL;
}

/* ---- libraries */
/* Returns options that make a GPU compute as INTERP does: nothing is fused, reordered or flushed to zero, and
 * divisions are exact. Newer systems have a mode for this. */
static MetalId options_new(const MetalApi *m) {
  MetalId o = object_of(m, "MTLCompileOptions");
  if (!o) return NULL;
  if (metal_responds(m, o, m->selector[METAL_set_math_mode]))
    metal_set_math_mode(m, o, METAL_MATH_SAFE), metal_set_math_functions(m, o, METAL_PRECISE);
  else
    metal_set_fast_math(m, o, 0);
  return o;
}

/* Whether the compiler has the type bfloat, which came with Metal 3.1. A system with a mode for mathematics
 * has at least 3.2. */
bool metal_has_bfloat(const MetalApi *m) {
  MetalId o = object_of(m, "MTLCompileOptions");
  bool has = o && metal_responds(m, o, m->selector[METAL_set_math_mode]);
  if (o) metal_release(m, o);
  return has;
}

static TgStatus library_new(Device *d, const char *text, MetalId *out) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  MetalId error = NULL, source = string_of(m, text), options = options_new(m);
  *out = source && options ? metal_new_library(m, p->device, source, options, &error) : NULL;
  if (options) metal_release(m, options);
  if (!source || !options) return metal_oom(d);
  if (*out) return TG_OK;
  const char *words = error ? metal_text(m, metal_description(m, error)) : NULL;
  return error_set(d->err, TG_ERR_COMPILE, "%s: the compiler refuses a text: %.300s", d->name,
                   words ? words : "it says no more");
}

static TgStatus module_new(Device *d, const char *text, void **out) {
  MetalModule *module = *out = mem_alloc(d->mem, sizeof *module);
  TgStatus st = module ? library_new(d, text, &module->library) : metal_oom(d);
  if (!st) return TG_OK;
  mem_free(d->mem, module);
  *out = NULL;
  return st;
}

static TgStatus module_load(Device *d, const Blob *object, void **out) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, module_new(d, (const char *)object->at, out));
}

void metal_module_free(Device *d, void *module) {
  const MetalApi *m = &((Metal *)d->priv)->api;
  MetalModule *gone = module;
  if (!module) return;
  for (MetalKernel *k = gone->kernels, *next; k; k = next) {
    next = k->next;
    if (k->pipeline) metal_release(m, k->pipeline);
    metal_release(m, k->function);
    mem_free(d->mem, k);
  }
  metal_release(m, gone->library);
  mem_free(d->mem, gone);
}

static void *module_find(Device *d, void *module, const Blob *object, const char *symbol) {
  const MetalApi *m = &((Metal *)d->priv)->api;
  MetalModule *from = module;
  void *pool = metal_pool(d);
  MetalId name = string_of(m, symbol), function = name ? metal_new_function(m, from->library, name) : NULL;
  MetalKernel *k = function ? mem_alloc(d->mem, sizeof *k) : NULL;
  (void)object;
  if (k) {
    *k = (MetalKernel){function, NULL, from->kernels};
    from->kernels = k;
  } else if (function) {
    metal_release(m, function);
    error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  }
  metal_unpool(d, pool, TG_OK);
  return k;
}

static void unit_ident(Device *d, const KernelSpec *k, Str *out) {
  (void)d, (void)k;
  str_putn(out, "METAL", sizeof "METAL");
}

const KernelLoader metal_loader = {.ident = unit_ident,
                                   .load = module_load,
                                   .unload = metal_module_free,
                                   .find = module_find,
                                   .in_memory = true};

/* ---- pipelines */
static MetalId descriptor_new(const MetalApi *m, MetalId function, MetalUint nthread) {
  MetalId o = object_of(m, "MTLComputePipelineDescriptor");
  if (!o) return NULL;
  metal_set_function(m, o, function);
  metal_set_most_threads(m, o, nthread);
  metal_set_indirect(m, o, 1);
  return o;
}

/* Sums of a warp are computed by shuffles among 32 threads, so the GPU's SIMD groups must be that large. */
static TgStatus pipeline_checked(Device *d, const MetalKernel *k, const char *name, MetalUint nthread) {
  const MetalApi *m = &((Metal *)d->priv)->api;
  MetalUint most = metal_most_threads(m, k->pipeline), warp = metal_warp(m, k->pipeline);
  if (most < nthread)
    return error_set(d->err, TG_ERR_LIMIT, "%s: kernel %.90s: blocks of %lu threads, but it runs %lu at most",
                     d->name, name, nthread, most);
  if (warp < (MetalUint)d->target.warp)
    return error_set(d->err, TG_ERR_DEVICE,
                     "%s: kernel %.90s: this GPU has SIMD groups of %lu threads, not %d", d->name, name, warp,
                     d->target.warp);
  return TG_OK;
}

static TgStatus pipeline_made(Device *d, MetalKernel *k, const char *name, MetalUint nthread) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  MetalId error = NULL;
  if (k->pipeline) return TG_OK;
  MetalId descriptor = descriptor_new(m, k->function, nthread);
  if (!descriptor) return metal_oom(d);
  MetalId made = metal_new_pipeline(m, p->device, descriptor, 0, NULL, &error);
  metal_release(m, descriptor);
  if (!made) {
    const char *words = error ? metal_text(m, metal_description(m, error)) : NULL;
    return error_set(d->err, TG_ERR_COMPILE, "%s: kernel %.90s: no pipeline: %.200s", d->name, name,
                     words ? words : "Metal says no more");
  }
  k->pipeline = made;
  TgStatus st = pipeline_checked(d, k, name, nthread);
  if (!st) return TG_OK;
  metal_release(m, made);
  k->pipeline = NULL;
  return st;
}

TgStatus metal_kernel_of(Device *d, const char *text, const char *name, unsigned block, void **module,
                         MetalKernel **out) {
  TgStatus st = module_new(d, text, module);
  MetalKernel *k = st ? NULL : module_find(d, *module, NULL, name);
  if (!st && !k) st = error_set(d->err, TG_ERR_COMPILE, "%s: kernel %s is not in its library", d->name, name);
  if (!st) st = pipeline_made(d, k, name, block);
  if (st && *module) {
    metal_module_free(d, *module);
    *module = NULL;
  }
  *out = st ? NULL : k;
  return st;
}

/* ---- compile */
void metal_program_free(Device *d, Program *g) {
  if (g) kernel_left(g->of);
  mem_free(d->mem, g);
}

static MetalSize size_of(const int n[3]) {
  return (MetalSize){(MetalUint)TG_MAX(n[0], 1), (MetalUint)TG_MAX(n[1], 1), (MetalUint)TG_MAX(n[2], 1)};
}

static TgStatus program_new(Device *d, Kernel *k, const KernelSpec *spec, Program **out) {
  const Linear *lin = spec->linear;
  Program *g = *out = mem_alloc(d->mem, sizeof *g);
  if (!g) return metal_oom(d);
  *g = (Program){.kernel = k->fn, .block = size_of(lin->local), .nbuf = lin->nparam, .nvar = spec->nvar};
  for (int i = 0; i < 3; i++)
    g->grid[i] = TG_MAX(lin->global[i], 1), g->blocks[i] = lin->blocks[i];
  kernel_taken(g->of = k);
  g->in_one = params_in_one(lin->nparam, spec->nvar, renderer_metal.most_params);
  snprintf(g->name, sizeof g->name, "%s", lin->name);
  return pipeline_made(d, g->kernel, g->name, g->block.width * g->block.height * g->block.depth);
}

/* Compiles all kernels as one text, so that the compiler reads what precedes the kernels once. */
static TgStatus compile_missing(Device *d, const KernelSpec *ks, Kernel *const *kn, const int *todo, int n) {
  Metal *p = d->priv;
  Kernel **kernel;
  Str text;
  bool room = kernels_one_text(d, &p->kernels, ks, kn, todo, n, &text, &kernel);
  Blob object = {.nbytes = text.len + 1};
  if (room) object.at = mem_alloc(d->mem, object.nbytes);
  if (object.at) memcpy(object.at, str_text(&text), object.nbytes);
  TgStatus st = object.at ? kernels_loaded(d, &p->kernels, &object, kernel, n) : metal_oom(d);
  mem_free(d->mem, object.at);
  str_free(&text), mem_free(d->mem, kernel);
  return st;
}

static TgStatus compiled(Device *d, const KernelSpec *ks, int n, Program **out) {
  Metal *p = d->priv;
  size_t count = (size_t)n + 1;
  Kernel **kn = mem_alloc(d->mem, count * sizeof *kn);
  int *todo = mem_alloc(d->mem, count * sizeof *todo), ntodo = 0;
  for (int i = 0; i < n; i++)
    out[i] = NULL;
  TgStatus st = kn && todo ? TG_OK : metal_oom(d);
  for (int i = 0; i < n && !st; i++)
    st = kernel_launches(d, &ks[i]);
  if (!st) st = kernels_find(d, &p->kernels, ks, n, kn, todo, &ntodo);
  if (!st && ntodo) st = compile_missing(d, ks, kn, todo, ntodo);
  for (int i = 0; i < n && !st; i++)
    st = program_new(d, kn[i], &ks[i], &out[i]);
  for (int i = 0; i < n && st; i++) {
    metal_program_free(d, out[i]);
    out[i] = NULL;
  }
  mem_free(d->mem, kn), mem_free(d->mem, todo);
  return st;
}

TgStatus metal_compile(Device *d, const KernelSpec *ks, int n, Program **out) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, compiled(d, ks, n, out));
}
