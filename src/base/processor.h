/* processor.h: what the library must know of the processor that it runs on, in one file for each kind:
 * processor_x86_64.c, processor_arm64.c; processor_other.c stands for all that have none. */
#ifndef TG_PROCESSOR_H
#define TG_PROCESSOR_H
#include "base/base.h"

int processor_vector_bytes(void);
int processor_vector_registers(void);
double processor_mhz(void); /* 0: not known */
/* Whether it has AMX with products of bf16 and of 8 bits. The system must be asked before they are used:
 * tiles_ask of os.def. */
bool processor_tiles(void);

/* Which dot products its vectors have, each with what stands before it: two products of a byte with a
 * sign and one without, as 16 bits; four, added to 32 bits; so in vectors of 64 bytes; two of bf16 added
 * to f32. */
typedef enum Dots { DOTS_NONE, DOTS_PAIRS, DOTS_FOURS, DOTS_BYTES, DOTS_BF16 } Dots;

Dots processor_dots(void);
/* What a C compiler is told, so that it uses what this processor has; NULL: nothing. */
const char *processor_flag(void);
/* What the processor has and the system keeps at a switch. `names` is for people; `out` is part of a kernel's
 * key, so that an object from another machine is never run here. */
void processor_features(char *out, size_t cap, char *names, size_t names_cap);
/* Whether this processor has all that one has whose `out` that was. */
bool processor_runs(const char *features);

/* arm64: its features cannot be read by a program, so the system tells them (os_linux.c, os_macos.c). */
enum {
  ARM64_FP16 = 1 << 0,
  ARM64_DOTPROD = 1 << 1,
  ARM64_BF16 = 1 << 2,
  ARM64_I8MM = 1 << 3,
  ARM64_SVE = 1 << 4,
  ARM64_SVE2 = 1 << 5
};

unsigned processor_arm64_has(void);

/* In a loop that waits for another core. */
static inline void processor_pause(void) {
#if defined __x86_64__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}
#endif
