/* emulate.h: Kernels of a GPU, run on this CPU with every access checked: bounds,
 * alignment, bytes nobody wrote, races within a block and between blocks, barriers and warps that not all
 * reach. The text is compiled as it stands; a dialect says what the words of its language mean. An access
 * that the compiler leaves out, as nothing depends on it, is not seen. One OS thread at a time may use an
 * emulator.
 */
#ifndef TG_EMULATE_H
#define TG_EMULATE_H
#include "runtime/cpu.h"

typedef struct Emu Emu;             /* an emulated GPU: memory, its shadow, stacks of threads */
typedef struct EmuModule EmuModule; /* kernels, loaded */
typedef struct EmuKernel EmuKernel;

/* A language. prelude: C++ in front of the text, which may use what emu_prelude in emulate_text.c declares;
 * it stands for the header, whose #include is left out. kernel_word stands before each kernel, bounds_word(n)
 * in its head, dynamic_words before an array whose size the launch decides, array_word before a shared array
 * and, where a pointer leads to shared memory, before its type. NULL: the language has none.
 * has_attributes: each parameter of a kernel has [[buffer(n)]], argument n, or another word in [[ ]], for
 * which the prelude has an EMU_PLACE. */
typedef struct EmuDialect {
  const char *name, *prelude, *header;
  const char *kernel_word, *bounds_word, *dynamic_words, *array_word;
  bool has_attributes;
} EmuDialect;

extern const EmuDialect emu_dialect_cuda, emu_dialect_metal;

/* The object of a text, by the compiler that compiles CPU kernels (which should be identified); for the
 * caller to free. It keeps no state, so it can be kept on disk, under emu_flags and the text. TG_ERR_COMPILE
 * with the first lines of what the compiler says. */
TgStatus emu_compile(TgMem *mem, const TgOs *os, TgError *err, const Compiler *cc, const EmuDialect *dialect,
                     const char *text, int limit_s, Blob *object);
/* Names the version of all that an object depends on besides the text, the dialect and the compiler. */
const char *emu_flags(void);

Emu *emu_new(TgMem *mem, const TgOs *os); /* NULL: out of memory */
void emu_free(Emu *e);                    /* NULL is fine; modules and memory go with it */
/* 0: threads and blocks in turn; 1: backwards; else shuffled with this seed */
void emu_order(Emu *e, uint64_t order);
/* How many accesses a thread may make without waiting for others, before it is said not to end; 0: 2^30. */
void emu_patience(Emu *e, uint64_t accesses);
void emu_strict(Emu *e, bool strict); /* emu_read refuses bytes that nobody wrote */

TgStatus emu_load(Emu *e, const void *object, size_t nbytes, TgError *err, EmuModule **out);
void emu_unload(Emu *e, EmuModule *m);
EmuKernel *emu_kernel(EmuModule *m, const char *name); /* NULL: it has none of that name */
const char *emu_name(const EmuKernel *k);
size_t emu_shared_bytes(const EmuKernel *k); /* of the arrays that it declares */
int emu_nparam(const EmuKernel *k);
size_t emu_param_bytes(const EmuKernel *k, int i);
int emu_most_threads(const EmuKernel *k); /* of a block, as the text says; 0: it does not say */

/* Memory of the emulated GPU, exact to the byte; host code may touch it by these alone. An address does not
 * come back soon after its release, so that a late use is seen. All: TG_ERR_DEVICE where the range is not
 * within one allocation. */
TgStatus emu_alloc(Emu *e, size_t nbytes, TgError *err, void **out);
TgStatus emu_release(Emu *e, void *p, TgError *err); /* the start of an allocation, once */
TgStatus emu_write(Emu *e, void *to, const void *from, size_t nbytes, TgError *err); /* host -> device */
TgStatus emu_read(Emu *e, void *to, const void *from, size_t nbytes, TgError *err);  /* device -> host */
TgStatus emu_copy(Emu *e, void *to, const void *from, size_t nbytes, TgError *err);
TgStatus emu_fill(Emu *e, void *to, int byte, size_t nbytes, TgError *err);
bool emu_holds(const Emu *e, const void *p, size_t nbytes); /* all of it in one live allocation */

/* Runs all blocks, one after another. params[i] points to the value of argument i. dynamic_shared: bytes
 * beyond the kernel's own. The first thing that a check sees ends the launch: TG_ERR_DEVICE, and err names
 * the kernel, what was wrong and where, block and thread. */
TgStatus emu_launch(Emu *e, const EmuKernel *k, const uint32_t grid[3], const uint32_t block[3],
                    size_t dynamic_shared, void *const *params, TgError *err);
#endif
