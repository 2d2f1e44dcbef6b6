/* kernels.c: compiled kernels. In: kernels as text. Out: what the device launches. Kernels are looked up in
 * the device, then on disk; the backend compiles the rest. A kernel's symbol contains the hash of its text,
 * so kernels of the same name do not collide. */
#define _GNU_SOURCE
#include "runtime/kernels.h"
#include "base/os.h"
#include <stdio.h>
#include <string.h>

typedef struct Object {
  uint8_t digest[32];
  Blob bytes;
  void *module;
  int programs; /* number of programs that run one of its kernels */
  bool bundled; /* it came from a bundle */
  struct Object *next;
} Object;

KernelSpec kernel_spec(const Linear *lin, const char *source) {
  KernelSpec k = {.linear = lin, .source = source, .shared_bytes = linear_local_bytes(lin)};
  for (int i = 0; i < lin->n; i++) {
    const UOp *u = lin->at[i];
    k.nvar += u->op == OPS_VAR;
    if (u->op == OPS_DEFINE_LOCAL)
      k.local_bytes += ((size_t)u->arg.param.nelem * dtype_size((DType)u->dtype) + 63) & ~(size_t)63;
  }
  return k;
}

TgStatus kernel_launches(const Device *d, const KernelSpec *k) {
  const Target *t = &d->target;
  const Linear *lin = k->linear;
  char why[LAUNCH_WHY];
  if (!t->most.block) return TG_OK;
  if (!target_launches(t, lin->global, lin->local, why))
    return error_set(d->err, TG_ERR_LIMIT, "%s: kernel %.90s cannot be launched: %s", d->name, lin->name,
                     why);
  if (k->shared_bytes > t->local_most)
    return error_set(d->err, TG_ERR_LIMIT,
                     "%s: kernel %.90s has %lld bytes of local memory, %lld are the most", d->name, lin->name,
                     (long long)k->shared_bytes, (long long)t->local_most);
  return TG_OK;
}

const Linear *kernel_list(const KernelSpec *k) { return k->listed ? k->listed(k->user) : k->linear; }

bool kernels_open(Device *d, KernelTable *t, const KernelLoader *loader, const Renderer *r) {
  t->loader = loader;
  map_init(&t->kernels, d->mem), str_init(&t->prelude, d->mem);
  r->prelude(&t->prelude);
  if (t->prelude.oom) return false;
  t->cache = loader->in_memory ? NULL : cache_open(d->mem, d->os, d->env);
  return true;
}

void kernels_close(Device *d, KernelTable *t) {
  for (Object *o = t->objects, *next; o; o = next) {
    next = o->next;
    t->loader->unload(d, o->module);
    mem_free(d->mem, o->bytes.at), mem_free(d->mem, o);
  }
  for (size_t i = 0; i < t->kernels.cap; i++)
    if (t->kernels.at[i].used)
      for (Kernel *k = (Kernel *)(uintptr_t)t->kernels.at[i].val, *next; k; k = next) {
        next = k->next;
        mem_free(d->mem, k);
      }
  map_free(&t->kernels), str_free(&t->prelude);
  cache_close(t->cache);
  t->objects = NULL;
  t->cache = NULL;
}

/* ---- kernels */
typedef struct Keys {
  uint8_t key[32], any[32], text[32];
} Keys;

static bool keys_of(Device *d, KernelTable *t, const KernelSpec *k, Keys *out) {
  Str s;
  str_init(&s, d->mem);
  const char *parts[] = {"tinygrad-c 3", str_text(&t->prelude), k->linear->name, k->source};
  for (size_t i = 0; i < TG_COUNT(parts); i++)
    str_putn(&s, parts[i], strlen(parts[i]) + 1);
  if (!s.oom) sha256(s.at, s.len, out->text);
  for (int any = 0; any < 2 && !s.oom; any++) {
    str_free(&s), str_init(&s, d->mem);
    str_putn(&s, (const char *)out->text, sizeof out->text);
    if (!any)
      t->loader->ident(d, k, &s);
    else if (t->loader->any)
      t->loader->any(d, &s);
    if (!s.oom) sha256(s.at, s.len, any ? out->any : out->key);
  }
  bool ok = !s.oom;
  str_free(&s);
  return ok;
}

static uint64_t key_word(const uint8_t key[32]) {
  uint64_t w;
  memcpy(&w, key, sizeof w);
  return w;
}

/* Finds or adds the kernel of these keys. Returns NULL if out of memory. */
static Kernel *kernel_at(Device *d, KernelTable *t, const Keys *keys, const char *name) {
  const uint8_t *key = keys->key;
  uint64_t v = 0;
  map_get(&t->kernels, key_word(key), &v);
  Kernel *first = (Kernel *)(uintptr_t)v, *k = first;
  while (k && memcmp(k->key, key, 32))
    k = k->next;
  if (k || !(k = mem_alloc(d->mem, sizeof *k))) return k;
  memcpy(k->key, key, 32), memcpy(k->any, keys->any, 32), memcpy(k->text, keys->text, 32);
  snprintf(k->symbol, sizeof k->symbol, "%.90s_%016llx", name, (unsigned long long)key_word(keys->text));
  k->next = first;
  if (map_put_ptr(&t->kernels, key_word(key), k)) return k;
  mem_free(d->mem, k);
  return NULL;
}

/* ---- objects */
/* Returns the loaded object of these bytes, and takes over the bytes. Loads an object only once. NULL:
 * failed, with d->err set. */
static Object *object_get(Device *d, KernelTable *t, const uint8_t digest[32], Blob *bytes) {
  for (Object *o = t->objects; o; o = o->next)
    if (!memcmp(o->digest, digest, 32)) {
      mem_free(d->mem, bytes->at);
      *bytes = (Blob){0};
      return o;
    }
  Object *o = mem_alloc(d->mem, sizeof *o);
  if (!o) error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  if (!o || t->loader->load(d, bytes, &o->module)) {
    mem_free(d->mem, o), mem_free(d->mem, bytes->at);
    *bytes = (Blob){0};
    return NULL;
  }
  memcpy(o->digest, digest, 32);
  o->bytes = *bytes;
  *bytes = (Blob){0};
  o->next = t->objects;
  t->objects = o;
  return o;
}

void kernel_taken(Kernel *k) {
  if (!k) return;
  k->programs++;
  if (k->object) k->object->programs++;
}

void kernel_left(Kernel *k) {
  if (!k) return;
  k->programs--;
  if (k->object) k->object->programs--;
}

/* Forgets the kernels of a list that no program runs and whose object no program uses, and returns the list.
 * They can be found on disk again by their text. */
static Kernel *idle_forgotten(Device *d, Kernel *first) {
  Kernel **link = &first;
  while (*link) {
    Kernel *k = *link;
    bool idle = k->object ? !k->object->programs : !k->programs;
    if (!idle) {
      link = &k->next;
      continue;
    }
    *link = k->next;
    mem_free(d->mem, k);
  }
  return first;
}

/* Removes the keys whose lists are empty from the table. */
static void keys_trimmed(Device *d, KernelTable *t) {
  Map left;
  bool ok = true;
  map_init(&left, d->mem);
  for (size_t i = 0; ok && i < t->kernels.cap; i++) {
    const MapEntry *e = &t->kernels.at[i];
    if (e->used && e->val) ok = map_put(&left, e->key, e->val);
  }
  Map old = t->kernels;
  if (ok) t->kernels = left;
  map_free(ok ? &old : &left);
}

/* Frees idle objects if there are many, because a process may meet new shapes forever. Code is freed after
 * everything that the device was given is done. */
static void objects_trimmed(Device *d, KernelTable *t) {
  enum { MOST_IDLE = 64 };

  int idle = 0;
  for (const Object *o = t->objects; o; o = o->next)
    idle += !o->programs;
  if (idle <= MOST_IDLE || d->backend->sync(d)) return;
  for (size_t i = 0; i < t->kernels.cap; i++) {
    MapEntry *e = &t->kernels.at[i];
    if (e->used) e->val = (uintptr_t)idle_forgotten(d, (Kernel *)(uintptr_t)e->val);
  }
  for (Object **link = &t->objects; *link;) {
    Object *o = *link;
    if (o->programs) {
      link = &o->next;
      continue;
    }
    *link = o->next;
    t->loader->unload(d, o->module);
    mem_free(d->mem, o->bytes.at), mem_free(d->mem, o);
  }
  keys_trimmed(d, t);
}

static bool kernel_linked(Device *d, KernelTable *t, Kernel *k, Object *o) {
  k->fn = t->loader->find(d, o->module, &o->bytes, k->symbol);
  k->object = o;
  return k->fn != NULL;
}

/* Links a kernel to an object that was found. If anything is wrong with the object, the kernel counts as not
 * found. */
static bool kernel_from(Device *d, KernelTable *t, Kernel *k, const uint8_t digest[32], Blob *bytes,
                        bool bundled) {
  TgError *told = d->err, ignored = {0};
  d->err = &ignored;
  Object *o = object_get(d, t, digest, bytes);
  d->err = told;
  if (o && bundled) o->bundled = true;
  return o && kernel_linked(d, t, k, o);
}

/* An object on disk that does not load is compiled again. */
static bool kernel_from_disk(Device *d, KernelTable *t, Kernel *k) {
  uint8_t digest[32];
  Blob bytes;
  return cache_get(t->cache, k->key, digest, &bytes) && kernel_from(d, t, k, digest, &bytes, false);
}

static bool kernel_from_bundle(Device *d, KernelTable *t, Kernel *k) {
  uint8_t digest[32];
  Blob bytes;
  const Bundle *b = d->bundle && t->loader->any ? *d->bundle : NULL;
  return b && bundle_get(b, k->text, k->symbol, d->mem, digest, &bytes) &&
         kernel_from(d, t, k, digest, &bytes, true);
}

/* Ranks compile the same kernels: the first rank to need one makes it, the others take it from the cache on
 * disk. A rank that makes kernels waits for no other rank, so no two ranks wait for each other. */
static bool kernel_of_others(Device *d, KernelTable *t, Kernel *k, bool *makes) {
  enum { LOOKS_US = 2000 };

  const _Atomic bool *stop = d->waiting.stop;
  double begin = time_now_s();
  int claim = *d->env->comm ? cache_claim(t->cache, k->key) : -1;
  while (claim > 0 && !*makes && time_now_s() - begin < d->env->cc_limit && !(stop && *stop)) {
    d->os->sleep_us(LOOKS_US);
    if (kernel_from_disk(d, t, k)) return true;
    claim = cache_claim(t->cache, k->key);
  }
  if (claim) return false;
  *makes = true;
  return kernel_from_disk(d, t, k); /* another rank may have just stored it */
}

void kernels_done(KernelTable *t) { cache_unclaim(t->cache); }

TgStatus kernels_find(Device *d, KernelTable *t, const KernelSpec *ks, int n, Kernel **kn, int *todo,
                      int *ntodo) {
  bool makes = false;
  *ntodo = 0;
  objects_trimmed(d, t);
  for (int i = 0; i < n; i++) {
    Keys keys;
    if (NEVER(!ks[i].source)) return error_set(d->err, TG_ERR_INTERNAL, "%s: kernel without source", d->name);
    bool ok = keys_of(d, t, &ks[i], &keys) && (kn[i] = kernel_at(d, t, &keys, ks[i].linear->name));
    if (!ok) return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
    if (kn[i]->fn || kn[i]->refused || kn[i]->listed) continue;
    if (t->loader->too_long && t->loader->too_long(&ks[i]))
      kn[i]->refused = true;
    else if (kernel_from_disk(d, t, kn[i]) || kernel_from_bundle(d, t, kn[i]) ||
             kernel_of_others(d, t, kn[i], &makes))
      d->cache_hits++;
    else {
      kn[i]->listed = true;
      todo[(*ntodo)++] = i;
    }
  }
  for (int i = 0; i < *ntodo; i++)
    kn[todo[i]]->listed = false;
  return TG_OK;
}

/* Appends a kernel's text with its symbol for its name, which precedes the arguments once. */
static void text_put(Str *out, const KernelSpec *k, const Kernel *kn) {
  const char *name = k->linear->name, *at = k->source;
  size_t n = strlen(name);
  do
    at = strstr(at + 1, name);
  while (at && !(at[-1] == ' ' && at[n] == '('));
  if (!at) {
    at = k->source;
    n = 0;
    /* the symbol will then be found missing */
  }
  str_putn(out, k->source, (size_t)(at - k->source));
  str_put(out, n ? kn->symbol : ""), str_put(out, at + n), str_put(out, "\n");
}

bool kernels_text(KernelTable *t, const KernelSpec *const *ks, Kernel *const *kn, int n, Str *out) {
  const char **texts = mem_alloc(out->mem, ((size_t)n + 1) * sizeof *texts);
  if (!texts) return false;
  for (int i = 0; i < n; i++)
    texts[i] = ks[i]->source;
  bool ok = prelude_prune(out, str_text(&t->prelude), texts, n);
  mem_free(out->mem, texts);
  for (int i = 0; i < n; i++)
    text_put(out, ks[i], kn[i]);
  return ok && !out->oom;
}

bool kernels_one_text(Device *d, KernelTable *t, const KernelSpec *ks, Kernel *const *kn, const int *todo,
                      int n, Str *out, Kernel ***all) {
  const KernelSpec **spec = mem_alloc(d->mem, (size_t)n * sizeof *spec);
  Kernel **kernel = *all = mem_alloc(d->mem, (size_t)n * sizeof *kernel);
  str_init(out, d->mem);
  for (int i = 0; spec && kernel && i < n; i++) {
    spec[i] = &ks[todo[i]];
    kernel[i] = kn[todo[i]];
  }
  bool ok = spec && kernel && kernels_text(t, spec, kernel, n, out);
  mem_free(d->mem, spec);
  return ok;
}

TgStatus kernels_loaded(Device *d, KernelTable *t, Blob *object, Kernel *const *kn, int n) {
  uint8_t digest[32], (*keys)[32] = mem_alloc(d->mem, (2 * (size_t)n + 1) * sizeof *keys);
  int nkeys = 0;
  if (!keys) return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name);
  sha256(object->at, object->nbytes, digest);
  for (int i = 0; i < n; i++) {
    memcpy(keys[nkeys++], kn[i]->key, 32);
    if (t->loader->any) memcpy(keys[nkeys++], kn[i]->any, 32);
  }
  cache_put(t->cache, (const uint8_t(*)[32])keys, nkeys, object);
  mem_free(d->mem, keys);
  Object *o = object_get(d, t, digest, object);
  if (!o) return d->err->status ? d->err->status : TG_ERR_NOMEM;
  for (int i = 0; i < n; i++)
    if (!kernel_linked(d, t, kn[i], o))
      return d->err->status ? d->err->status
                            : error_set(d->err, TG_ERR_COMPILE, "%s: kernel %.90s is not in its object",
                                        d->name, kn[i]->symbol);
  d->kernels_compiled += (uint64_t)n;
  return TG_OK;
}

static bool object_bundled(KernelTable *t, const Object *o, Bundle *b, const char *features,
                           const char *names) {
  if (!bundle_object(b, features, names, o->bytes.at, o->bytes.nbytes)) return false;
  for (size_t i = 0; i < t->kernels.cap; i++)
    for (Kernel *k = t->kernels.at[i].used ? (Kernel *)(uintptr_t)t->kernels.at[i].val : NULL; k; k = k->next)
      if (k->object == o && !bundle_kernel(b, k->text, k->symbol)) return false;
  return true;
}

bool kernels_bundled(KernelTable *t, Bundle *b, const char *features, const char *names) {
  for (const Object *o = t->objects; o; o = o->next)
    if (!o->bundled && !object_bundled(t, o, b, features, names)) return false;
  return true;
}
