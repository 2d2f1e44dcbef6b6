/* processor.h: what the library must know of the processor that it runs on. There is one file for each
 * kind: processor_x86_64.c, processor_arm64.c, and processor_other.c for all other processors. */
#ifndef TG_PROCESSOR_H
#define TG_PROCESSOR_H
#include "base/base.h"

int processor_vector_bytes(void);
int processor_vector_registers(void);
/* Whether it reads a long run of memory ahead at full speed by itself (codegen/prefetch.c). */
bool processor_follows_runs(void);
double processor_mhz(void); /* 0: not known */
/* Whether the processor has AMX with products of bf16 and of 8-bit integers. The system must be asked
 * before they are used: tiles_ask of os.def. */
bool processor_tiles(void);

/* Which dot products the processor's vectors have. Each value includes the ones before it. PAIRS: two
 * products of a signed and an unsigned byte, summed in 16 bits. FOURS: four of them, added to 32 bits.
 * BYTES: the same in vectors of 64 bytes. BF16: two products of bf16, added to f32. */
typedef enum Dots { DOTS_NONE, DOTS_PAIRS, DOTS_FOURS, DOTS_BYTES, DOTS_BF16 } Dots;

Dots processor_dots(void);
/* The option that makes a C compiler use what this processor has; NULL: none. */
const char *processor_flag(void);
/* Writes the features that the processor has and that the system supports at a context switch. `names` is
 * for people. `out` is part of a kernel's key, so that an object from another machine is never run here. */
void processor_features(char *out, size_t cap, char *names, size_t names_cap);
/* Whether this processor has all features of the processor that wrote `features` as its `out`. */
bool processor_runs(const char *features);

/* Features of arm64. A program cannot read them from the processor, so the system is asked for them
 * (os_linux.c, os_macos.c). */
enum {
  ARM64_FP16 = 1 << 0,
  ARM64_DOTPROD = 1 << 1,
  ARM64_BF16 = 1 << 2,
  ARM64_I8MM = 1 << 3,
  ARM64_SVE = 1 << 4,
  ARM64_SVE2 = 1 << 5
};

unsigned processor_arm64_has(void);

/* Called in a loop that waits for another core. */
static inline void processor_pause(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}
#endif
