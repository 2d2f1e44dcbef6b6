/* kernels.h: private to src/runtime. The compiled kernels of a device that compiles text. */
#ifndef TG_KERNELS_H
#define TG_KERNELS_H
#include "runtime/bundle.h"
#include "runtime/cpu.h"

/* key: of its text and all that its object depends on; any: the same, whichever compiler made it; text: of
 * the text alone, of which its symbol has a part. fn: its address, or what the driver calls it; NULL: it is
 * not compiled yet. refused: it never will be. object: where it is. programs: that run it. */
typedef struct Kernel {
  uint8_t key[32], any[32], text[32];
  struct Object *object;
  char symbol[128];
  void *fn;
  int programs;
  bool refused, listed;
  struct Kernel *next;
} Kernel;

/* What differs between devices. ident: appends what an object depends on besides the kernel's text (compiler,
 * flags, machine); any: the machine alone, or NULL. any is all that is known where there is no compiler.
 * too_long: NULL, or whether nothing compiles so long a text. find: a kernel of a module; NULL: it has none
 * of that name. in_memory: what is loaded is a text, which is not kept on disk. */
typedef struct KernelLoader {
  void (*ident)(Device *d, const KernelSpec *k, Str *out);
  void (*any)(Device *d, Str *out);
  bool (*too_long)(const KernelSpec *k);
  TgStatus (*load)(Device *d, const Blob *object, void **module);
  void (*unload)(Device *d, void *module);
  void *(*find)(Device *d, void *module, const Blob *object, const char *symbol);
  bool in_memory;
} KernelLoader;

typedef struct KernelTable {
  const KernelLoader *loader;
  Cache *cache;
  struct Object *objects;
  Map kernels; /* first 8 bytes of the key -> list of Kernel */
  Str prelude; /* before the kernels of a text */
} KernelTable;

/* Opens the cache on disk too. False: out of memory. */
bool kernels_open(Device *d, KernelTable *t, const KernelLoader *loader, const Renderer *r);
void kernels_close(Device *d, KernelTable *t);
/* A program runs k from now on, or does no more: k may be NULL. Objects whose kernels no program runs are kept
 * for those who ask again, but a few dozen at most. */
void kernel_taken(Kernel *k);
void kernel_left(Kernel *k);
/* kn[i]: that of ks[i]. todo: the indices of those that are to be compiled, each kernel once. */
TgStatus kernels_find(Device *d, KernelTable *t, const KernelSpec *ks, int n, Kernel **kn, int *todo,
                      int *ntodo);
/* What was to be compiled is, or failed: other ranks that wait for it go on. */
void kernels_done(KernelTable *t);
/* The text of n kernels of one object: of the prelude what they use, then each by its symbol. */
bool kernels_text(KernelTable *t, const KernelSpec *const *ks, Kernel *const *kn, int n, Str *out);
/* The same of the kernels of todo, which *all lists (to be freed). False: out of memory. */
bool kernels_one_text(Device *d, KernelTable *t, const KernelSpec *ks, Kernel *const *kn, const int *todo,
                      int n, Str *out, Kernel ***all);
/* An object that was compiled: kept on disk, loaded, and its kernels get their fn. Takes the bytes. */
TgStatus kernels_loaded(Device *d, KernelTable *t, Blob *object, Kernel *const *kn, int n);
/* bundle.c: a copy of the object with this kernel, for this processor; false: there is none. */
bool bundle_get(const Bundle *b, const uint8_t text[32], const char *symbol, TgMem *mem, uint8_t digest[32],
                Blob *out);
/* Adds the objects that are loaded, with the kernels in them, for a processor of these features. False: out
 * of memory. */
bool kernels_bundled(KernelTable *t, Bundle *b, const char *features, const char *names);
#endif
