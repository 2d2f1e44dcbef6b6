/* kernels.h: private to src/runtime. The table of compiled kernels of a device that compiles text. */
#ifndef TG_KERNELS_H
#define TG_KERNELS_H
#include "runtime/bundle.h"
#include "runtime/cpu.h"

/* key: hash of its text and of everything that its object depends on. any: the same without the compiler.
 * text: hash of the text alone; the symbol contains a part of it. fn: its address, or the driver's handle;
 * NULL: it is not compiled yet. refused: it never will be compiled. object: the object that contains it.
 * programs: number of programs that run it. listed: it is in the list of kernels to compile. */
typedef struct Kernel {
  uint8_t key[32], any[32], text[32];
  struct Object *object;
  char symbol[128];
  void *fn;
  int programs;
  bool refused, listed;
  struct Kernel *next;
} Kernel;

/* The operations that differ between devices. ident: appends what an object depends on besides the kernel's
 * text (compiler, flags, machine). any: appends the machine alone, which is all that is known if there is no
 * compiler; may be NULL. too_long: whether the text is too long for any compiler; may be NULL. find: returns
 * a kernel of a module, or NULL if it has none of that name. in_memory: what is loaded is a text, which is
 * not kept on disk. */
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
  Str prelude; /* text before the kernels */
} KernelTable;

/* Also opens the cache on disk. Returns false if out of memory. */
bool kernels_open(Device *d, KernelTable *t, const KernelLoader *loader, const Renderer *r);
void kernels_close(Device *d, KernelTable *t);
/* Record that a program runs k from now on, or no longer does. k may be NULL. Objects whose kernels no
 * program runs are kept for later programs, but only a few dozen of them. */
void kernel_taken(Kernel *k);
void kernel_left(Kernel *k);
/* Finds or adds the kernels ks; kn[i] becomes the kernel of ks[i]. todo: the indices of those that have to be
 * compiled, each kernel once. */
TgStatus kernels_find(Device *d, KernelTable *t, const KernelSpec *ks, int n, Kernel **kn, int *todo,
                      int *ntodo);
/* Ends the claims of this process, so that other ranks that wait for its kernels go on. Called when the
 * kernels of todo are compiled or have failed. */
void kernels_done(KernelTable *t);
/* Appends the text of n kernels of one object: the parts of the prelude that they use, then each kernel under
 * its symbol. */
bool kernels_text(KernelTable *t, const KernelSpec *const *ks, Kernel *const *kn, int n, Str *out);
/* Does the same for the kernels of todo, and puts them into *all, which the caller frees. Returns false if
 * out of memory. */
bool kernels_one_text(Device *d, KernelTable *t, const KernelSpec *ks, Kernel *const *kn, const int *todo,
                      int n, Str *out, Kernel ***all);
/* Takes over the bytes of an object that was compiled: keeps it on disk, loads it and sets fn of its
 * kernels. */
TgStatus kernels_loaded(Device *d, KernelTable *t, Blob *object, Kernel *const *kn, int n);
/* bundle.c: copies the object that contains this kernel and runs on this processor. Returns false if there is
 * none or if out of memory. */
bool bundle_get(const Bundle *b, const uint8_t text[32], const char *symbol, TgMem *mem, uint8_t digest[32],
                Blob *out);
/* Adds the loaded objects and the kernels in them to a bundle, for a processor with these features. Returns
 * false if out of memory. */
bool kernels_bundled(KernelTable *t, Bundle *b, const char *features, const char *names);
#endif
