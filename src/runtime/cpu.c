/* cpu.c: the CPU device. A kernel's source is looked up in this device, then on disk, then compiled: the
 * kernels of a batch are dealt to one translation unit per core and compiled at the same time; a huge one has
 * a unit of its own, without optimisation, and is interpreted if the compiler cannot cope with it. A kernel's
 * symbol carries the hash of its key, so equal names never meet. */
#define _GNU_SOURCE
#include "runtime/cpu.h"
#include "base/os.h"
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

typedef struct Object {
  uint8_t digest[32];
  Image image;
  Blob bytes;
  struct Object *next;
} Object;

/* interp: no compiler can cope */
typedef struct Kernel {
  uint8_t key[32];
  char symbol[128];
  KernelFn fn;
  bool interp;
  struct Kernel *next;
} Kernel;

/* interp: of INTERP:C, instead of fn */
struct Program {
  KernelFn fn;
  Program *interp;
  int nthread;
  size_t scratch_bytes;
};

typedef struct Cpu {
  Compiler cc;
  Spare spare;
  bool identified;
  Cache *cache;
  char features[200], names[200], text[512];
  Object *objects;
  Map kernels; /* first 8 bytes of the key -> list of Kernel; kept until the device is closed */
  Pool *pool;  /* made by the first kernel that wants threads or scratch */
  pthread_mutex_t pool_lock;
  Str prelude;
} Cpu;

/* What the processor has and the OS keeps (XCR0: the vector registers saved at a switch). `names` is for
 * people. The compiler finds the same by itself (-march=native); `out` is part of a kernel's key, so that an
 * object from another machine is never run here. */
#ifdef __x86_64__
static uint64_t saved_state(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (uint64_t)d << 32 | a;
}
#endif
static void cpu_features(char *out, size_t cap, char *names, size_t names_cap) {
#ifdef __x86_64__
  enum { AVX_STATE = 6, AVX512_STATE = 0xe6, TILE_STATE = 0x60000 };

  static const struct {
    const char *name;
    uint8_t leaf, reg, bit;
    uint32_t state;
  } known[] = {/* leaf: index in `leaves`; reg 0..3: a b c d */
               {"sse4.2", 0, 2, 20, 0},
               {"avx", 0, 2, 28, AVX_STATE},
               {"f16c", 0, 2, 29, AVX_STATE},
               {"fma", 0, 2, 12, AVX_STATE},
               {"avx2", 1, 1, 5, AVX_STATE},
               {"avx512f", 1, 1, 16, AVX512_STATE},
               {"avx512bw", 1, 1, 30, AVX512_STATE},
               {"avx512vl", 1, 1, 31, AVX512_STATE},
               {"avx512vnni", 1, 2, 11, AVX512_STATE},
               {"avx512fp16", 1, 3, 23, AVX512_STATE},
               {"avx512bf16", 2, 0, 5, AVX512_STATE},
               {"avxvnni", 2, 0, 4, AVX_STATE},
               {"amx-tile", 1, 3, 24, TILE_STATE},
               {"amx-bf16", 1, 3, 22, TILE_STATE},
               {"amx-int8", 1, 3, 25, TILE_STATE}};

  uint64_t saved = saved_state();
  unsigned reg[4][4] = {{0}};
  size_t m = 0;
  static const unsigned leaves[][2] = {{1, 0}, {7, 0}, {7, 1}, {0x80000001, 0}};
  size_t n = 0;
  for (size_t i = 0; i < TG_COUNT(leaves); i++) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    __get_cpuid_count(leaves[i][0], leaves[i][1], &a, &b, &c, &d);
    if (i == 0) b = 0; /* the id of the core this ran on */
    memcpy(reg[i], (unsigned[4]){a, b, c, d}, sizeof reg[i]);
    n += (size_t)snprintf(out + n, cap - n, "%x.%x.%x.%x ", a, b, c, d);
  }
  snprintf(out + n, cap - n, "%llx", (unsigned long long)saved);
  for (size_t i = 0; i < TG_COUNT(known); i++)
    if (reg[known[i].leaf][known[i].reg] >> known[i].bit & 1 && (saved & known[i].state) == known[i].state)
      m += (size_t)snprintf(names + m, names_cap - m, "%s%s", m ? " " : "", known[i].name);
#else
  snprintf(out, cap, "unknown"), snprintf(names, names_cap, "unknown");
#endif
}

static void cpu_close(Device *d) {
  host_trim(d);
  Cpu *p = d->priv;
  if (!p) return;
  pool_free(p->pool);
  spare_end(d->os, &p->spare);
  for (Object *o = p->objects, *next; o; o = next) {
    next = o->next;
    image_unmap(d->os, &o->image);
    mem_free(d->mem, o->bytes.at);
    mem_free(d->mem, o);
  }
  for (size_t i = 0; i < p->kernels.cap; i++)
    if (p->kernels.at[i].used)
      for (Kernel *k = (Kernel *)(uintptr_t)p->kernels.at[i].val, *next; k; k = next)
        next = k->next, mem_free(d->mem, k);
  map_free(&p->kernels);
  str_free(&p->prelude);
  cache_close(p->cache);
  pthread_mutex_destroy(&p->pool_lock);
  mem_free(d->mem, p);
  d->priv = NULL;
}

static TgStatus cpu_open(Device *d) {
#ifndef __x86_64__
  return error_set(d->err, TG_ERR_DEVICE, "CPU: the object loader knows x86-64 only so far");
#endif
  if (!d->os) d->os = &tg_os_default;
  Cpu *p = mem_alloc(d->mem, sizeof *p);
  if (!p) return error_set(d->err, TG_ERR_NOMEM, "CPU: out of memory");
  TgStatus st = compiler_find(d->os, d->env, d->err, &p->cc);
  if (st || pthread_mutex_init(&p->pool_lock, NULL)) {
    mem_free(d->mem, p);
    return st ? st : error_set(d->err, TG_ERR_NOMEM, "CPU: out of memory");
  }
  d->priv = p;
  map_init(&p->kernels, d->mem);
  str_init(&p->prelude, d->mem);
  renderer_c.prelude(&p->prelude);
  cpu_features(p->features, sizeof p->features, p->names, sizeof p->names);
  p->cache = cache_open(d->mem, d->os, d->env);
  d->target = target_this_cpu();
  snprintf(p->text, sizeof p->text, "%d cores, %s; %.200s", d->target.cores, p->names, p->cc.path);
  d->describe = p->text;
  if (p->prelude.oom) {
    cpu_close(d);
    return error_set(d->err, TG_ERR_NOMEM, "CPU: out of memory");
  }
  return TG_OK;
}

/* The version text is asked of the compiler once and remembered on disk with its file's time and size. */
static TgStatus identify(Device *d, Cpu *p) {
  if (p->identified) return TG_OK;
  struct stat s;
  bool have = d->os->stat(p->cc.path, &s) == 0; /* gcc needs no version; what clang is told depends on it */
  int64_t mtime = have ? (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec : 0;
  bool named = !p->cc.is_clang && strstr(p->cc.path, "gcc");
  if (have && cache_ident_get(p->cache, p->cc.path, mtime, s.st_size, p->cc.ident, sizeof p->cc.ident)) {
    if (strstr(p->cc.ident, "clang")) p->cc.is_clang = true;
  } else if (p->cache || !named) {
    TgStatus st = compiler_identify(d->mem, d->os, d->err, &p->cc, d->env->cc_limit);
    if (st) return st;
    if (have) cache_ident_put(p->cache, p->cc.path, mtime, s.st_size, p->cc.ident);
  }
  p->identified = true;
  return TG_OK;
}

/* ---- kernels and objects of this device */
static uint64_t key_word(const uint8_t key[32]) {
  uint64_t w;
  memcpy(&w, key, sizeof w);
  return w;
}

static Kernel *kernel_find(Cpu *p, const uint8_t key[32]) {
  uint64_t v;
  if (!map_get(&p->kernels, key_word(key), &v)) return NULL;
  Kernel *k = (Kernel *)(uintptr_t)v;
  while (k && memcmp(k->key, key, 32))
    k = k->next;
  return k;
}

static Kernel *kernel_add(Device *d, Cpu *p, const uint8_t key[32], const char *name) {
  Kernel *k = mem_alloc(d->mem, sizeof *k);
  if (!k) return NULL;
  memcpy(k->key, key, 32);
  snprintf(k->symbol, sizeof k->symbol, "%.90s_%016llx", name, (unsigned long long)key_word(key));
  uint64_t v;
  k->next = map_get(&p->kernels, key_word(key), &v) ? (Kernel *)(uintptr_t)v : NULL;
  if (map_put_ptr(&p->kernels, key_word(key), k)) return k;
  mem_free(d->mem, k);
  return NULL;
}

/* Takes the bytes. The same object is mapped once. */
static Object *object_get(Device *d, Cpu *p, const uint8_t digest[32], Blob *bytes, TgError *err) {
  for (Object *o = p->objects; o; o = o->next)
    if (!memcmp(o->digest, digest, 32)) {
      mem_free(d->mem, bytes->at);
      *bytes = (Blob){0};
      return o;
    }
  Object *o = mem_alloc(d->mem, sizeof *o);
  if (!o || elf_load(d->mem, d->os, err, bytes->at, bytes->nbytes, &o->image)) {
    mem_free(d->mem, o), mem_free(d->mem, bytes->at);
    *bytes = (Blob){0};
    return NULL;
  }
  memcpy(o->digest, digest, 32);
  o->bytes = *bytes, *bytes = (Blob){0};
  o->next = p->objects, p->objects = o;
  return o;
}

static bool kernel_link(Kernel *k, const Object *o) {
  int64_t at = elf_symbol(o->bytes.at, o->bytes.nbytes, k->symbol);
  if (at < 0) return false;
  void *addr = o->image.at + at;
  memcpy(&k->fn, &addr, sizeof addr);
  return true;
}

static bool kernel_from_disk(Device *d, Cpu *p, Kernel *k) {
  uint8_t digest[32];
  Blob b;
  TgError ignored = {0};
  if (!cache_get(p->cache, k->key, digest, &b)) return false;
  Object *o = object_get(d, p, digest, &b, &ignored);
  return o && kernel_link(k, o);
}

/* ---- compile */
/* the macro gives the function its unique name, and nothing else */
static void unit_add(Str *s, const KernelSpec *k, const Kernel *kn) {
  str_put(s, "#define ");
  str_put(s, k->linear->name);
  str_put(s, " ");
  str_put(s, kn->symbol);
  str_put(s, "\n");
  str_put(s, k->source);
  str_put(s, "\n#undef "), str_put(s, k->linear->name), str_put(s, "\n");
}

/* clang-19 -O1 takes 1 s for 10,000 statements in a row and 60 s for 100,000; -O0 takes 0.4 and 4 s, but 100
 * s and 2.7 GB for a million, which the interpreter runs in about 10 ms. gcc -O2 takes 20 s for 10,000, -O0 1
 * s. */
enum { HUGE_CLANG = 20000, HUGE_GCC = 5000, GIANT = 300000 };

static bool is_huge(const Cpu *p, const KernelSpec *k) {
  return k->linear->n > (p->cc.is_clang ? HUGE_CLANG : HUGE_GCC);
}

/* One object: remembered on disk and mapped; its kernels get their addresses. */
static TgStatus unit_load(Device *d, Cpu *p, Unit *u, Kernel *const *kn, int n, uint8_t (*keys)[32]) {
  uint8_t digest[32];
  sha256(u->out.at, u->out.nbytes, digest);
  for (int i = 0; i < n; i++)
    memcpy(keys[i], kn[i]->key, 32);
  cache_put(p->cache, (const uint8_t(*)[32])keys, n, &u->out);
  Object *o = object_get(d, p, digest, &u->out, d->err);
  if (!o)
    return d->err && d->err->status ? d->err->status : error_set(d->err, TG_ERR_NOMEM, "CPU: out of memory");
  for (int i = 0; i < n; i++)
    if (!kernel_link(kn[i], o))
      return error_set(d->err, TG_ERR_COMPILE, "CPU: kernel %.90s is not in its object", kn[i]->symbol);
  d->kernels_compiled += (uint64_t)n;
  return TG_OK;
}

/* The kernels that are compiled by one call of the compiler each time: huge ones alone, the others spread
 * over as many units as there are cores. */
typedef struct Batch {
  Kernel **kernel; /* n of them, and what they are made from */
  const KernelSpec **spec;
  int n;
  int *unit_of; /* by kernel */
  Unit *unit;   /* nunit of them, and their text */
  Str *src;
  int nunit;
  uint8_t (*keys)[32]; /* room for a unit's */
  Kernel **in_unit;
  const char **texts;
} Batch;

static bool batch_new(Device *d, Cpu *p, const KernelSpec *ks, Kernel **kn, const int *todo, int n,
                      Batch *b) {
  int nhuge = 0;
  for (int i = 0; i < n; i++)
    nhuge += is_huge(p, &ks[todo[i]]);
  int nshared = TG_MIN(d->target.cores, n - nhuge);
  *b = (Batch){.n = n, .nunit = nshared + nhuge};
  size_t count = (size_t)n, units = (size_t)b->nunit;
  b->src = mem_alloc(d->mem, units * sizeof *b->src);
  b->unit = mem_alloc(d->mem, units * sizeof *b->unit);
  b->unit_of = mem_alloc(d->mem, count * sizeof *b->unit_of);
  b->keys = mem_alloc(d->mem, count * sizeof *b->keys);
  b->in_unit = mem_alloc(d->mem, count * sizeof *b->in_unit);
  b->texts = mem_alloc(d->mem, count * sizeof *b->texts);
  b->kernel = mem_alloc(d->mem, count * sizeof *b->kernel);
  b->spec = mem_alloc(d->mem, count * sizeof *b->spec);
  if (!b->src || !b->unit || !b->unit_of || !b->keys || !b->in_unit || !b->texts || !b->kernel || !b->spec)
    return false;
  for (int i = 0, small = 0, huge = nshared; i < n; i++) {
    b->kernel[i] = kn[todo[i]], b->spec[i] = &ks[todo[i]];
    bool alone = is_huge(p, b->spec[i]);
    b->unit_of[i] = alone ? huge++ : small++ % nshared;
    b->unit[b->unit_of[i]].huge = alone;
  }
  return true;
}

static void batch_end(Device *d, Batch *b) {
  for (int u = 0; b->src && u < b->nunit; u++)
    str_free(&b->src[u]);
  for (int u = 0; b->unit && u < b->nunit; u++)
    mem_free(d->mem, b->unit[u].out.at);
  mem_free(d->mem, b->src), mem_free(d->mem, b->unit), mem_free(d->mem, b->unit_of),
      mem_free(d->mem, b->keys);
  mem_free(d->mem, b->in_unit), mem_free(d->mem, b->texts), mem_free(d->mem, b->kernel),
      mem_free(d->mem, b->spec);
}

/* The text of each unit: of the prelude what its kernels use, then the kernels. */
static bool batch_write(Device *d, Cpu *p, Batch *b) {
  bool oom = false;
  for (int u = 0; u < b->nunit; u++) {
    int n = 0;
    str_init(&b->src[u], d->mem);
    for (int i = 0; i < b->n; i++)
      if (b->unit_of[i] == u) b->texts[n++] = b->spec[i]->source;
    if (!prelude_prune(&b->src[u], str_text(&p->prelude), b->texts, n)) b->src[u].oom = true;
  }
  for (int i = 0; i < b->n; i++)
    unit_add(&b->src[b->unit_of[i]], b->spec[i], b->kernel[i]);
  for (int u = 0; u < b->nunit; u++) {
    b->unit[u].src = (Blob){(uint8_t *)b->src[u].at, b->src[u].len};
    oom = oom || b->src[u].oom;
  }
  return !oom;
}

static TgStatus compile_missing(Device *d, Cpu *p, const KernelSpec *ks, Kernel **kn, const int *todo,
                                int ntodo) {
  Batch b;
  TgStatus st = TG_OK;
  if (!batch_new(d, p, ks, kn, todo, ntodo, &b) || !batch_write(d, p, &b))
    st = error_set(d->err, TG_ERR_NOMEM, "CPU: out of memory");
  if (!st) st = compile_units(d->mem, d->os, d->err, &p->cc, &p->spare, b.unit, b.nunit, d->env->cc_limit);
  for (int u = 0; u < b.nunit && !st; u++) {
    int n = 0;
    d->compiles_retried += b.unit[u].retried;
    for (int i = 0; i < b.n; i++)
      if (b.unit_of[i] == u) b.in_unit[n++] = b.kernel[i];
    if (b.unit[u].gave_up)
      b.in_unit[0]->interp = true;
    else
      st = unit_load(d, p, &b.unit[u], b.in_unit, n, b.keys);
  }
  batch_end(d, &b);
  return st;
}

static bool kernel_key(Device *d, Cpu *p, const KernelSpec *k, uint8_t key[32]) {
  Str s;
  str_init(&s, d->mem);
  const char *parts[] = {
      "tinygrad-c 1", compiler_flags(&p->cc), is_huge(p, k) ? "O0" : "", p->cc.path, p->cc.ident,
      p->features,    str_text(&p->prelude),  k->linear->name,           k->source};
  for (size_t i = 0; i < TG_COUNT(parts); i++)
    str_putn(&s, parts[i], strlen(parts[i]) + 1);
  bool ok = !s.oom;
  if (ok) sha256(s.at, s.len, key);
  str_free(&s);
  return ok;
}

static size_t local_bytes(const Linear *lin) { /* at least what the renderer takes from scratch */
  size_t n = 0;
  for (int i = 0; i < lin->n; i++)
    if (lin->at[i]->op == OPS_DEFINE_LOCAL)
      n += ((size_t)lin->at[i]->arg.param.nelem * dtype_size((DType)lin->at[i]->dtype) + 63) & ~(size_t)63;
  return n;
}

static void cpu_unload(Device *d, Program *g) {
  if (g && g->interp) backend_interp_c.unload(d, g->interp);
  mem_free(d->mem, g);
}

/* Found in memory, then on disk; what is left is compiled together. A kernel that is too long for a compiler,
 * or that one gave up, is interpreted. */
static TgStatus cpu_compile(Device *d, const KernelSpec *ks, int n, Program **out) {
  Cpu *p = d->priv;
  for (int i = 0; i < n; i++)
    out[i] = NULL;
  TgStatus st = identify(d, p);
  if (st || n <= 0) return st;
  Kernel **kn = mem_alloc(d->mem, (size_t)n * sizeof *kn);
  int *todo = mem_alloc(d->mem, (size_t)n * sizeof *todo), ntodo = 0;
  if (!kn || !todo) goto oom;
  for (int i = 0; i < n; i++) {
    uint8_t key[32];
    if (NEVER(!ks[i].source)) {
      st = error_set(d->err, TG_ERR_INTERNAL, "CPU: kernel without source");
      goto done;
    }
    if (!kernel_key(d, p, &ks[i], key)) goto oom;
    kn[i] = kernel_find(p, key);
    if (kn[i] && (kn[i]->fn || kn[i]->interp)) continue;
    /* twice in one batch */
    for (int j = 0; j < ntodo && kn[i]; j++)
      if (kn[todo[j]] == kn[i]) goto next;
    if (!kn[i] && !(kn[i] = kernel_add(d, p, key, ks[i].linear->name))) goto oom;
    if (ks[i].linear->n > GIANT)
      kn[i]->interp = true;
    else if (kernel_from_disk(d, p, kn[i]))
      d->cache_hits++;
    else
      todo[ntodo++] = i;
  next:;
  }
  if (ntodo && (st = compile_missing(d, p, ks, kn, todo, ntodo))) goto done;
  for (int i = 0; i < n; i++) {
    if (!(out[i] = mem_alloc(d->mem, sizeof *out[i]))) goto oom;
    *out[i] = (Program){kn[i]->fn, NULL, TG_MAX(ks[i].linear->nthread, 1), local_bytes(ks[i].linear)};
    if (kn[i]->interp && (st = backend_interp_c.compile(d, &ks[i], 1, &out[i]->interp))) goto done;
  }
  goto done;
oom:
  st = error_set(d->err, TG_ERR_NOMEM, "CPU: out of memory");
done:
  if (st)
    for (int i = 0; i < n; i++)
      cpu_unload(d, out[i]), out[i] = NULL;
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
    pool = pool_new(d->mem, d->os, n);
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
    return backend_interp_c.launch(d, &interpreted);
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
                               .launch = cpu_launch,
                               HOST_ORDER,
                               .renderer = &renderer_c};
