/* cpu.c: the CPU device. Kernels that are found nowhere (kernels.c) are compiled. The kernels of a batch are
 * distributed over one translation unit per core and compiled at the same time. A huge kernel has its own
 * unit, is compiled without optimisation, and is interpreted if the compiler cannot cope with it. A unit that
 * fails is tried again in parts, so that the error can name the kernel that is at fault. */
#define _GNU_SOURCE
#include "runtime/kernels.h"
#include "base/os.h"
#include "base/processor.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* interp: the program of INTERP:C that runs instead of fn, or NULL */
struct Program {
  KernelFn fn;
  Kernel *kernel;
  Program *interp;
  int nthread;
  size_t scratch_bytes;
};

typedef struct Cpu {
  Compiler cc;
  Spare spare;
  bool identified;
  char features[200], names[200], text[512];
  KernelTable kernels;
  /* created by the first kernel that needs threads or scratch */
  Pool *pool;
  pthread_mutex_t pool_lock;
} Cpu;

/* ---- objects */
static TgStatus object_load(Device *d, const Blob *object, void **module) {
  Image *im = mem_alloc(d->mem, sizeof *im);
  const Cpu *p = d->priv;
  TgStatus st = im ? image_load(d, &p->cc, object, im) : error_no_memory(d->err, "CPU");
  if (st) {
    mem_free(d->mem, im);
    im = NULL;
  }
  *module = im;
  return st;
}

static void object_unload(Device *d, void *module) {
  image_unload(d, module);
  mem_free(d->mem, module);
}

static void *object_find(Device *d, void *module, const Blob *object, const char *symbol) {
  return image_find(d, module, object, symbol);
}

/* clang-19 -O1 takes 1 s for 10,000 statements in a row and 60 s for 100,000. -O0 takes 0.4 s and 4 s, but
 * 100 s and 2.7 GB for a million, which the interpreter runs in about 10 ms. gcc -O2 takes 20 s for 10,000,
 * -O0 1 s. */
enum { HUGE_CLANG = 20000, HUGE_GCC = 5000, GIANT = 300000 };

static bool is_huge(const Cpu *p, const KernelSpec *k) {
  return k->linear->n > (p->cc.is_clang ? HUGE_CLANG : HUGE_GCC);
}

static bool is_giant(const KernelSpec *k) { return k->linear->n > GIANT; }

static void object_any(Device *d, Str *out) {
  const Cpu *p = d->priv;
  str_putn(out, p->features, strlen(p->features) + 1);
}

static void object_ident(Device *d, const KernelSpec *k, Str *out) {
  const Cpu *p = d->priv;
  if (!p->cc.path[0]) { /* objects of any compiler will do */
    object_any(d, out);
    return;
  }
  const char *parts[] = {compiler_flags(&p->cc), is_huge(p, k) ? "O0" : "", p->cc.path, p->cc.ident,
                         p->features};
  for (size_t i = 0; i < TG_COUNT(parts); i++)
    str_putn(out, parts[i], strlen(parts[i]) + 1);
}

static const KernelLoader loader = {.ident = object_ident,
                                    .any = object_any,
                                    .too_long = is_giant,
                                    .load = object_load,
                                    .unload = object_unload,
                                    .find = object_find};

static void cpu_close(Device *d) {
  host_trim(d);
  Cpu *p = d->priv;
  if (!p) return;
  pool_free(p->pool);
  spare_end(d->os, &p->spare);
  kernels_close(d, &p->kernels);
  pthread_mutex_destroy(&p->pool_lock);
  mem_free(d->mem, p);
  d->priv = NULL;
}

static TgStatus cpu_open(Device *d) {
  if (!d->os) d->os = &tg_os_default;
  Cpu *p = mem_alloc(d->mem, sizeof *p);
  if (!p) return error_no_memory(d->err, "CPU");
  /* A device that was named opens without a compiler too: kernels may come from the cache or a bundle. */
  bool any = d->named && !(d->env && d->env->cc[0]);
  TgError none = {0};
  TgStatus st = compiler_find(d->os, d->env, any ? &none : d->err, &p->cc);
  if (any) st = TG_OK;
  if (st || pthread_mutex_init(&p->pool_lock, NULL)) {
    mem_free(d->mem, p);
    return st ? st : error_no_memory(d->err, "CPU");
  }
  d->priv = p;
  bool room = kernels_open(d, &p->kernels, &loader, &renderer_c);
  processor_features(p->features, sizeof p->features, p->names, sizeof p->names);
  d->target = target_this_cpu();
  if (d->env && d->env->amx && processor_tiles() && !d->os->tiles_ask())
    d->target.matrices = matrix_rows(MATRIX_AMX, AMX_FIRST);
  else if (d->env && d->env->dot)
    d->target.matrices = matrix_rows(MATRIX_DOT, processor_dots());
  if (!(d->env && d->env->dot)) d->target.dots = TG_MIN(d->target.dots, DOTS_PAIRS);
  bool pairs = d->target.matrices == matrix_rows(MATRIX_DOT, DOTS_PAIRS);
  const char *units = pairs && d->target.matrices ? ", sums of pairs of 16 bits"
                      : d->target.matrices        ? ", matrix units of bf16 and 8 bits"
                                                  : "";
  snprintf(p->text, sizeof p->text, "%d cores, %s%s; %.200s", d->target.cores, p->names, units,
           *p->cc.path ? p->cc.path : "no C compiler: kernels of the cache and of bundles");
  d->describe = p->text;
  if (!room) {
    cpu_close(d);
    return error_no_memory(d->err, "CPU");
  }
  return TG_OK;
}

/* The compiler is asked for its version text once. The text is kept on disk with the time and size of the
 * compiler's file. */
static TgStatus identify(Device *d, Cpu *p) {
  if (p->identified || !*p->cc.path) return TG_OK;
  struct stat s;
  bool have = d->os->stat(p->cc.path, &s) == 0;
  int64_t mtime = have ? os_modified_ns(&s) : 0;
  /* Without a cache gcc's version is not needed, but clang's is, because its arguments depend on it. */
  bool named = !p->cc.is_clang && strstr(p->cc.path, "gcc");
  if (have &&
      cache_ident_get(p->kernels.cache, p->cc.path, mtime, s.st_size, p->cc.ident, sizeof p->cc.ident)) {
    if (strstr(p->cc.ident, "clang")) p->cc.is_clang = true;
  } else if (p->kernels.cache || !named) {
    TgStatus st = compiler_identify(d->mem, d->os, d->err, &p->cc, d->env->cc_limit);
    if (st) return st;
    if (have) cache_ident_put(p->kernels.cache, p->cc.path, mtime, s.st_size, p->cc.ident);
  }
  p->identified = true;
  return TG_OK;
}

/* ---- compile */
/* The kernels to compile, and the units that compile them, one call of the compiler each. A huge kernel is
 * alone in its unit. The others are distributed over as many units as there are cores, so that all units are
 * done at about the same time. */
typedef struct Batch {
  /* n kernels, and what they are made from */
  Kernel **kernel;
  const KernelSpec **spec;
  int n;
  int *unit_of; /* unit of each kernel */
  /* nunit units, and their text */
  Unit *unit;
  Str *src;
  int nunit;
  /* room for the kernels of one unit */
  Kernel **in_unit;
  const KernelSpec **texts;
} Batch;

typedef struct Length {
  int kernel, lines;
} Length;

static int longest_first(const void *a, const void *b) {
  const Length *x = a, *y = b;
  return x->lines != y->lines ? y->lines - x->lines : x->kernel - y->kernel;
}

/* Takes the longest kernels first and puts each into the unit with the fewest lines so far. */
static bool batch_distributed(Device *d, const Cpu *p, Batch *b, int nshared) {
  Length *of = mem_alloc(d->mem, (size_t)b->n * sizeof *of);
  int64_t *lines = mem_alloc(d->mem, (size_t)(nshared + 1) * sizeof *lines);
  bool room = of && lines;
  for (int i = 0; room && i < b->n; i++)
    of[i] = (Length){i, b->spec[i]->linear->n};
  if (room) qsort(of, (size_t)b->n, sizeof *of, longest_first);
  for (int i = 0, huge = nshared; room && i < b->n; i++) {
    bool alone = is_huge(p, b->spec[of[i].kernel]);
    int unit = alone ? huge++ : 0;
    for (int u = 1; !alone && u < nshared; u++)
      if (lines[u] < lines[unit]) unit = u;
    if (!alone) lines[unit] += of[i].lines;
    b->unit[unit].kernels++;
    b->unit_of[of[i].kernel] = unit;
    b->unit[unit].huge = alone;
  }
  mem_free(d->mem, of), mem_free(d->mem, lines);
  return room;
}

static bool batch_new(Device *d, Cpu *p, const KernelSpec *ks, Kernel **kn, const int *todo, int n, int least,
                      Batch *b) {
  int nhuge = 0;
  for (int i = 0; i < n; i++)
    nhuge += is_huge(p, &ks[todo[i]]);
  int nshared = TG_MIN(TG_MAX(d->target.cores, least), n - nhuge);
  *b = (Batch){.n = n, .nunit = nshared + nhuge};
  size_t count = (size_t)n, units = (size_t)b->nunit;
  b->src = mem_alloc(d->mem, units * sizeof *b->src);
  b->unit = mem_alloc(d->mem, units * sizeof *b->unit);
  b->unit_of = mem_alloc(d->mem, count * sizeof *b->unit_of);
  b->in_unit = mem_alloc(d->mem, count * sizeof *b->in_unit);
  b->texts = mem_alloc(d->mem, count * sizeof *b->texts);
  b->kernel = mem_alloc(d->mem, count * sizeof *b->kernel);
  b->spec = mem_alloc(d->mem, count * sizeof *b->spec);
  if (!b->src || !b->unit || !b->unit_of || !b->in_unit || !b->texts || !b->kernel || !b->spec) return false;
  for (int i = 0; i < n; i++) {
    b->kernel[i] = kn[todo[i]];
    b->spec[i] = &ks[todo[i]];
  }
  return batch_distributed(d, p, b, nshared);
}

static void batch_end(Device *d, Batch *b) {
  for (int u = 0; b->src && u < b->nunit; u++)
    str_free(&b->src[u]);
  for (int u = 0; b->unit && u < b->nunit; u++)
    mem_free(d->mem, b->unit[u].out.at);
  mem_free(d->mem, b->src), mem_free(d->mem, b->unit), mem_free(d->mem, b->unit_of);
  mem_free(d->mem, b->in_unit), mem_free(d->mem, b->texts), mem_free(d->mem, b->kernel),
      mem_free(d->mem, b->spec);
}

/* Puts the kernels of unit u into b->in_unit and b->texts, and returns how many there are. */
static int batch_unit(Batch *b, int u) {
  int n = 0;
  for (int i = 0; i < b->n; i++)
    if (b->unit_of[i] == u) {
      b->in_unit[n] = b->kernel[i];
      b->texts[n++] = b->spec[i];
    }
  return n;
}

static bool batch_write(Device *d, Cpu *p, Batch *b) {
  bool ok = true;
  for (int u = 0; u < b->nunit; u++) {
    int n = batch_unit(b, u);
    str_init(&b->src[u], d->mem);
    ok = kernels_text(&p->kernels, b->texts, b->in_unit, n, &b->src[u]) && ok;
    b->unit[u].src = (Blob){(uint8_t *)b->src[u].at, b->src[u].len};
  }
  return ok;
}

static TgStatus compile_missing(Device *d, Cpu *p, const KernelSpec *ks, Kernel **kn, const int *todo,
                                int ntodo, int least);

/* Called for a unit that failed. If it has one kernel, the error names it. Otherwise each half of its kernels
 * is tried again. */
static TgStatus compile_parts(Device *d, Cpu *p, const KernelSpec *ks, Kernel **kn, Batch *b, int u) {
  int n = batch_unit(b, u);
  const TgError *why = &b->unit[u].why;
  if (n == 1) return error_set(d->err, why->status, "kernel %.90s: %s", b->texts[0]->linear->name, why->msg);
  int *todo = mem_alloc(d->mem, (size_t)n * sizeof *todo);
  if (!todo) return error_no_memory(d->err, "CPU");
  for (int i = 0; i < n; i++)
    todo[i] = (int)(b->texts[i] - ks);
  TgStatus st = compile_missing(d, p, ks, kn, todo, n, 2);
  mem_free(d->mem, todo);
  return st;
}

/* least: the smallest number of units. What other units have compiled is kept, even if one fails. */
static TgStatus compile_missing(Device *d, Cpu *p, const KernelSpec *ks, Kernel **kn, const int *todo,
                                int ntodo, int least) {
  Batch b;
  TgStatus st = TG_OK;
  if (!batch_new(d, p, ks, kn, todo, ntodo, least, &b) || !batch_write(d, p, &b))
    st = error_no_memory(d->err, "CPU");
  if (!st)
    st = compile_units(d->mem, d->os, d->err, &p->cc, &p->spare, &d->waiting, b.unit, b.nunit,
                       d->env->cc_limit);
  for (int u = 0; u < b.nunit && !st; u++) {
    int n = batch_unit(&b, u);
    d->compiles_retried += b.unit[u].retried;
    if (b.unit[u].gave_up)
      b.in_unit[0]->refused = true;
    else if (!b.unit[u].why.status)
      st = kernels_loaded(d, &p->kernels, &b.unit[u].out, b.in_unit, n);
  }
  for (int u = 0; u < b.nunit && !st; u++)
    if (b.unit[u].why.status) st = compile_parts(d, p, ks, kn, &b, u);
  batch_end(d, &b);
  return st;
}

/* Sets the error for a kernel that has to be compiled when there is no compiler. */
static TgStatus kernel_missing(Device *d, const Kernel *k, const char *name) {
  const char *other = bundle_elsewhere(d->bundle ? *d->bundle : NULL, k->text);
  char has[260] = "";
  if (other) snprintf(has, sizeof has, " (a bundle has it, for a processor with %.200s)", other);
  return error_set(
      d->err, TG_ERR_DEVICE,
      "CPU: kernel %.90s is neither in the cache nor in a bundle%s, and there is no C compiler: install "
      "clang or gcc, load a bundle that was saved where there is one (tg_bundle_load), or use INTERP",
      name, has);
}

static bool cpu_bundled(Device *d, Bundle *b) {
  Cpu *p = d->priv;
  return kernels_bundled(&p->kernels, b, p->features, p->names);
}

#ifdef TG_NO_INTERP
const TgBackend *const cpu_interpreter = NULL;
#else
const TgBackend *const cpu_interpreter = &backend_interp_c;
#endif

static TgStatus cpu_interpret(Device *d, const KernelSpec *spec, Program **out) {
  if (cpu_interpreter) return cpu_interpreter->compile(d, spec, 1, out);
  return error_set(d->err, TG_ERR_DEVICE,
                   "CPU: the compiler gave kernel %.90s up, and this build has no INTERP to run it",
                   spec->linear->name);
}

static void cpu_unload(Device *d, Program *g) {
  if (g && g->interp) cpu_interpreter->unload(d, g->interp);
  if (g) kernel_left(g->kernel);
  mem_free(d->mem, g);
}

/* Finds kernels in memory, then on disk; those that are found nowhere are compiled together. A kernel that is
 * too long for a compiler, or that a compiler gave up, is interpreted. */
static TgStatus cpu_compile(Device *d, const KernelSpec *ks, int n, Program **out) {
  Cpu *p = d->priv;
  for (int i = 0; i < n; i++)
    out[i] = NULL;
  TgStatus st = identify(d, p);
  if (st || n <= 0) return st;
  Kernel **kn = mem_alloc(d->mem, (size_t)n * sizeof *kn);
  int *todo = mem_alloc(d->mem, (size_t)n * sizeof *todo), ntodo = 0;
  if (!kn || !todo) goto oom;
  if ((st = kernels_find(d, &p->kernels, ks, n, kn, todo, &ntodo))) goto done;
  if (ntodo && !*p->cc.path) {
    st = kernel_missing(d, kn[todo[0]], ks[todo[0]].linear->name);
    goto done;
  }
  if (ntodo && (st = compile_missing(d, p, ks, kn, todo, ntodo, 1))) goto done;
  for (int i = 0; i < n; i++) {
    if (!(out[i] = mem_alloc(d->mem, sizeof *out[i]))) goto oom;
    *out[i] = (Program){.nthread = TG_MAX(ks[i].linear->nthread, 1), .scratch_bytes = ks[i].local_bytes};
    memcpy(&out[i]->fn, &kn[i]->fn, sizeof kn[i]->fn);
    kernel_taken(out[i]->kernel = kn[i]);
    if (kn[i]->refused && (st = cpu_interpret(d, &ks[i], &out[i]->interp))) goto done;
  }
  goto done;
oom:
  st = error_no_memory(d->err, "CPU");
done:
  kernels_done(&p->kernels);
  if (st)
    for (int i = 0; i < n; i++) {
      cpu_unload(d, out[i]);
      out[i] = NULL;
    }
  mem_free(d->mem, kn), mem_free(d->mem, todo);
  return st;
}

/* ---- launch */
static Pool *pool_get(Device *d, Cpu *p) {
  Pool *pool = __atomic_load_n(&p->pool, __ATOMIC_ACQUIRE);
  if (pool) return pool;
  pthread_mutex_lock(&p->pool_lock);
  if (!(pool = p->pool)) {
    int n = d->env && d->env->threads ? d->env->threads : d->target.cores;
    pool = pool_new(d->mem, d->os, n, !(d->env && d->env->unpinned));
    __atomic_store_n(&p->pool, pool, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&p->pool_lock);
  return pool;
}

static TgStatus cpu_launch(Device *d, const Launch *l) {
  const Program *g = l->program;
  if (g->interp) {
    Launch interpreted = *l;
    interpreted.program = g->interp;
    return cpu_interpreter->launch(d, &interpreted);
  }
  if (g->nthread == 1 && !g->scratch_bytes) {
    g->fn(l->bufs, l->vars, 0, NULL);
    return TG_OK;
  }
  Pool *pool = pool_get(d, d->priv);
  TgStatus st = pool ? pool_run(pool, g->fn, l->bufs, l->vars, g->nthread, g->scratch_bytes) : TG_ERR_NOMEM;
  return st ? error_set(d->err, st, "CPU: out of memory for %zu bytes of scratch per thread",
                        g->scratch_bytes)
            : TG_OK;
}

static int cpu_threads(Device *d, ThreadTime *out, int most) {
  Pool *pool = pool_get(d, d->priv);
  return pool ? pool_times(pool, out, most) : 0;
}

const TgBackend backend_cpu = {.name = "CPU",
                               .has = HAS_THREADS | HAS_RUN,
                               .open = cpu_open,
                               .close = cpu_close,
                               .alloc = host_alloc,
                               .free = host_free,
                               .copy_in = host_copy,
                               .copy_out = host_copy,
                               .copy = host_copy,
                               .compile = cpu_compile,
                               .unload = cpu_unload,
                               .bundled = cpu_bundled,
                               .launch = cpu_launch,
                               .threads = cpu_threads,
                               HOST_ORDER,
                               .renderer = &renderer_c};
