/* bundle.c: compiled kernels as bytes that another process, or another machine, can load. In: the objects
 * that a device has loaded. Out: bytes, and from such bytes the object of a kernel. A kernel is found by the
 * SHA-256 of its text, so by what it computes and by the plan it was made for. Its object is for processors
 * that have all features of the one that it was compiled for. The format, with little-endian numbers:
 * "tinygrad.bundle1", u64 size of what follows the digest, SHA-256 of what follows, u32 number of objects.
 * For each object: text features, text names (for people), u64 size, bytes, u32 number of kernels. For each
 * kernel: SHA-256 of its text (32 bytes), text symbol. A text is a u32 size and that many bytes, none of them
 * 0. */
#include "runtime/bundle.h"
#include "base/processor.h"
#include "runtime/kernels.h"
#include <stdio.h>
#include <string.h>

static const char magic[] = "tinygrad.bundle1";

enum { MAGIC = sizeof magic - 1, DIGEST = 32, HEAD = MAGIC + 8 + DIGEST };

typedef struct BundleKernel {
  uint8_t text[32];
  char symbol[128];
} BundleKernel;

typedef struct BundleObject {
  char features[200], names[200];
  uint8_t digest[32];
  Blob bytes;
  Vec(BundleKernel) kernels;
  bool runs; /* on this processor */
} BundleObject;

struct Bundle {
  TgMem *mem;
  Vec(BundleObject) objects;
  size_t open; /* index of the object that kernels are added to */
};

Bundle *bundle_new(TgMem *mem) {
  Bundle *b = mem_alloc(mem, sizeof *b);
  if (b) b->mem = mem;
  return b;
}

static void objects_cut(Bundle *b, size_t n) {
  while (b->objects.len > n) {
    BundleObject *o = &b->objects.at[--b->objects.len];
    mem_free(b->mem, o->bytes.at);
    vec_free(b->mem, &o->kernels);
  }
}

void bundle_free(Bundle *b) {
  if (!b) return;
  objects_cut(b, 0);
  vec_free(b->mem, &b->objects);
  mem_free(b->mem, b);
}

bool bundle_object(Bundle *b, const char *features, const char *names, const void *bytes, size_t nbytes) {
  BundleObject o = {.bytes = {NULL, nbytes}};
  sha256(bytes, nbytes, o.digest);
  for (b->open = 0; b->open < b->objects.len; b->open++) {
    const BundleObject *there = &b->objects.at[b->open];
    if (!memcmp(there->digest, o.digest, DIGEST) && !strcmp(there->features, features)) return true;
  }
  snprintf(o.features, sizeof o.features, "%s", features), snprintf(o.names, sizeof o.names, "%s", names);
  o.runs = processor_runs(o.features);
  if (!(o.bytes.at = mem_alloc(b->mem, nbytes + 1))) return false;
  memcpy(o.bytes.at, bytes, nbytes);
  if (vec_push(b->mem, &b->objects, o)) return true;
  mem_free(b->mem, o.bytes.at);
  return false;
}

bool bundle_kernel(Bundle *b, const uint8_t text[32], const char *symbol) {
  BundleObject *o = &b->objects.at[b->open];
  for (size_t i = 0; i < o->kernels.len; i++)
    if (!memcmp(o->kernels.at[i].text, text, DIGEST)) return true;
  BundleKernel k;
  memset(&k, 0, sizeof k);
  memcpy(k.text, text, DIGEST);
  snprintf(k.symbol, sizeof k.symbol, "%s", symbol);
  return vec_push(b->mem, &o->kernels, k);
}

bool bundle_add(Bundle *to, const Bundle *from) {
  for (size_t i = 0; from && i < from->objects.len; i++) {
    const BundleObject *o = &from->objects.at[i];
    if (!bundle_object(to, o->features, o->names, o->bytes.at, o->bytes.nbytes)) return false;
    for (size_t k = 0; k < o->kernels.len; k++)
      if (!bundle_kernel(to, o->kernels.at[k].text, o->kernels.at[k].symbol)) return false;
  }
  return true;
}

/* ---- writing */
static void number_put(Str *s, uint64_t v, int nbytes) {
  for (int i = 0; i < nbytes; i++)
    str_putn(s, &(char){(char)(v >> 8 * i)}, 1);
}

static void text_put(Str *s, const char *text) {
  number_put(s, strlen(text), 4);
  str_put(s, text);
}

bool bundle_write(const Bundle *b, Str *out) {
  Str s;
  uint8_t digest[DIGEST];
  str_init(&s, b->mem);
  number_put(&s, b->objects.len, 4);
  for (size_t i = 0; i < b->objects.len; i++) {
    const BundleObject *o = &b->objects.at[i];
    text_put(&s, o->features), text_put(&s, o->names);
    number_put(&s, o->bytes.nbytes, 8);
    str_putn(&s, (const char *)o->bytes.at, o->bytes.nbytes);
    number_put(&s, o->kernels.len, 4);
    for (size_t k = 0; k < o->kernels.len; k++) {
      str_putn(&s, (const char *)o->kernels.at[k].text, DIGEST);
      text_put(&s, o->kernels.at[k].symbol);
    }
  }
  bool ok = !s.oom;
  if (ok) {
    sha256(s.at, s.len, digest);
    str_putn(out, magic, MAGIC), number_put(out, s.len, 8), str_putn(out, (const char *)digest, DIGEST);
    str_putn(out, s.at, s.len);
  }
  str_free(&s);
  return ok && !out->oom;
}

/* ---- reading: the contents are not trusted, even if the digest is right */
typedef struct Reader {
  const uint8_t *at;
  size_t left;
  bool bad;
} Reader;

static const uint8_t *taken(Reader *r, uint64_t n) {
  const uint8_t *p = r->at;
  if (r->bad || n > r->left) return r->bad = true, NULL;
  r->at += n;
  r->left -= (size_t)n;
  return p;
}

static uint64_t number_read(Reader *r, int nbytes) {
  const uint8_t *p = taken(r, (uint64_t)nbytes);
  uint64_t v = 0;
  for (int i = 0; p && i < nbytes; i++)
    v |= (uint64_t)p[i] << 8 * i;
  return v;
}

static void text_read(Reader *r, char *to, size_t cap) {
  uint64_t n = number_read(r, 4);
  const uint8_t *p = n < cap ? taken(r, n) : NULL;
  if (!p || memchr(p, 0, (size_t)n)) {
    r->bad = true;
    *to = 0;
    return;
  }
  memcpy(to, p, (size_t)n);
  to[n] = 0;
}

/* Returns false if out of memory. If r is bad afterwards, b holds only a part of the objects. */
static bool objects_read(Bundle *b, Reader *r) {
  uint64_t n = number_read(r, 4);
  for (uint64_t i = 0; i < n && !r->bad; i++) {
    char features[200], names[200], symbol[128];
    text_read(r, features, sizeof features), text_read(r, names, sizeof names);
    uint64_t nbytes = number_read(r, 8);
    const uint8_t *bytes = taken(r, nbytes);
    if (!bytes || !nbytes) return r->bad = true;
    if (!bundle_object(b, features, names, bytes, (size_t)nbytes)) return false;
    uint64_t kernels = number_read(r, 4);
    for (uint64_t k = 0; k < kernels && !r->bad; k++) {
      const uint8_t *text = taken(r, DIGEST);
      text_read(r, symbol, sizeof symbol);
      if (!r->bad && !bundle_kernel(b, text, symbol)) return false;
    }
  }
  r->bad |= r->left > 0;
  return true;
}

static const char *head_damage(const uint8_t *p, size_t nbytes) {
  if (nbytes < HEAD || memcmp(p, magic, MAGIC)) return "is no bundle of kernels";
  Reader r = {.at = p + MAGIC, .left = 8};
  uint8_t digest[DIGEST];
  if (number_read(&r, 8) != nbytes - HEAD) return "is not whole";
  sha256(p + HEAD, nbytes - HEAD, digest);
  return memcmp(digest, p + MAGIC + 8, DIGEST) ? "is damaged: its digest is another" : NULL;
}

TgStatus bundle_read(TgMem *mem, TgError *err, const void *bytes, size_t nbytes, Bundle **b) {
  const char *damage = head_damage(bytes, nbytes);
  if (damage) return error_set(err, TG_ERR_VALUE, "bundle: what is given %s", damage);
  Bundle *read = bundle_new(mem);
  Reader r = {.at = (const uint8_t *)bytes + HEAD, .left = nbytes - HEAD};
  bool room = read && objects_read(read, &r);
  if (room && !r.bad) {
    if (!*b) *b = bundle_new(mem);
    room = *b && bundle_add(*b, read);
  }
  bundle_free(read);
  if (!room) return error_no_memory(err, "bundle");
  return r.bad ? error_set(err, TG_ERR_VALUE, "bundle: what is given is damaged") : TG_OK;
}

/* ---- finding kernels */
bool bundle_get(const Bundle *b, const uint8_t text[32], const char *symbol, TgMem *mem, uint8_t digest[32],
                Blob *out) {
  *out = (Blob){0};
  for (size_t i = 0; i < b->objects.len; i++) {
    const BundleObject *o = &b->objects.at[i];
    for (size_t k = 0; o->runs && k < o->kernels.len; k++) {
      if (memcmp(o->kernels.at[k].text, text, DIGEST) || strcmp(o->kernels.at[k].symbol, symbol)) continue;
      if (!(out->at = mem_alloc(mem, o->bytes.nbytes + 1))) return false;
      memcpy(out->at, o->bytes.at, out->nbytes = o->bytes.nbytes);
      memcpy(digest, o->digest, DIGEST);
      return true;
    }
  }
  return false;
}

const char *bundle_elsewhere(const Bundle *b, const uint8_t text[32]) {
  for (size_t i = 0; b && i < b->objects.len; i++)
    for (size_t k = 0; k < b->objects.at[i].kernels.len; k++)
      if (!memcmp(b->objects.at[i].kernels.at[k].text, text, DIGEST)) return b->objects.at[i].names;
  return NULL;
}
