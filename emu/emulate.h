/* emulate.h: runs kernels of a GPU on this CPU and checks every access. It finds accesses out of bounds,
 * wrong alignment, reads of bytes that were never written, races within a block and between blocks, and
 * barriers and warp operations that not all threads reach. The kernel's text is compiled unchanged; a dialect
 * defines the words of its language. An access that the compiler removes because nothing depends on it is not
 * checked. Only one OS thread at a time may use an emulator. */
#ifndef TG_EMULATE_H
#define TG_EMULATE_H
#include "runtime/cpu.h"

typedef struct Emu Emu;             /* an emulated GPU: memory, its shadow, stacks of threads */
typedef struct EmuModule EmuModule; /* loaded kernels */
typedef struct EmuKernel EmuKernel;

/* A language. prelude: C++ in front of the text, which may use what emu_prelude in emulate_text.c declares.
 * It replaces the header, whose #include is removed. kernel_word precedes each kernel. bounds_word(n) is in a
 * kernel's head. dynamic_words precede an array whose size the launch determines. array_word precedes a
 * shared array and, in a pointer to shared memory, its type. NULL: the language has no such word.
 * has_attributes: each parameter of a kernel has [[buffer(n)]], which is argument n, or another word in [[
 * ]], for which the prelude has an EMU_PLACE. */
typedef struct EmuDialect {
  const char *name, *prelude, *header;
  const char *kernel_word, *bounds_word, *dynamic_words, *array_word;
  bool has_attributes;
} EmuDialect;

extern const EmuDialect emu_dialect_cuda, emu_dialect_metal;

/* Compiles a text to an object, which the caller frees, with the compiler for CPU kernels (which should be
 * identified). The object contains no state, so it can be kept on disk under emu_flags and the text. Returns
 * TG_ERR_COMPILE with the first lines of the compiler's message. */
TgStatus emu_compile(TgMem *mem, const TgOs *os, TgError *err, const Compiler *cc, const EmuDialect *dialect,
                     const char *text, int limit_s, Blob *object);
/* Returns the version of everything that an object depends on besides the text, the dialect and the
 * compiler. */
const char *emu_flags(void);

Emu *emu_new(TgMem *mem, const TgOs *os); /* NULL: out of memory */
void emu_free(Emu *e);                    /* NULL is allowed; frees the modules and memory too */
/* Sets the order in which threads and blocks run. 0: ascending; 1: descending; otherwise shuffled with this
 * seed. */
void emu_order(Emu *e, uint64_t order);
/* Sets how many accesses a thread may make without waiting for other threads, before this is an error (it
 * does not end); 0: 2^30. */
void emu_patience(Emu *e, uint64_t accesses);
/* emu_read refuses bytes that were never written */
void emu_strict(Emu *e, bool strict);

TgStatus emu_load(Emu *e, const void *object, size_t nbytes, TgError *err, EmuModule **out);
void emu_unload(Emu *e, EmuModule *m);
EmuKernel *emu_kernel(EmuModule *m, const char *name); /* NULL: it has none of that name */
const char *emu_name(const EmuKernel *k);
size_t emu_shared_bytes(const EmuKernel *k); /* of the arrays that it declares */
int emu_nparam(const EmuKernel *k);
size_t emu_param_bytes(const EmuKernel *k, int i);
int emu_most_threads(const EmuKernel *k); /* the text's limit of a block; 0: it has none */

/* Memory of the emulated GPU, exact to the byte. Host code may only access it by these calls. An address is
 * not reused soon after its release, so that a late use is noticed. All return TG_ERR_DEVICE if the range is
 * not within one allocation. */
TgStatus emu_alloc(Emu *e, size_t nbytes, TgError *err, void **out);
/* p: the start of an allocation */
TgStatus emu_release(Emu *e, void *p, TgError *err);
TgStatus emu_write(Emu *e, void *to, const void *from, size_t nbytes, TgError *err); /* host -> device */
TgStatus emu_read(Emu *e, void *to, const void *from, size_t nbytes, TgError *err);  /* device -> host */
TgStatus emu_copy(Emu *e, void *to, const void *from, size_t nbytes, TgError *err);
TgStatus emu_fill(Emu *e, void *to, int byte, size_t nbytes, TgError *err);
bool emu_holds(const Emu *e, const void *p, size_t nbytes); /* whether all of it is in one live allocation */

/* Runs all blocks, one after another. params[i] points to the value of argument i. dynamic_shared: bytes in
 * addition to the kernel's own arrays. The first error ends the launch with TG_ERR_DEVICE; err names the
 * kernel, the error, its place, the block and the thread. */
TgStatus emu_launch(Emu *e, const EmuKernel *k, const uint32_t grid[3], const uint32_t block[3],
                    size_t dynamic_shared, void *const *params, TgError *err);
#endif
