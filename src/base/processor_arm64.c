/* processor_arm64.c: what a 64-bit Arm processor has, as the system reports it. */
#ifdef __aarch64__
#include "base/processor.h"
#include <stdio.h>
#include <string.h>

enum { NEON_BYTES = 16, NEON_REGISTERS = 32 };

/* SVE is not used because its vector length is not a constant. */
int processor_vector_bytes(void) { return NEON_BYTES; }

int processor_vector_registers(void) { return NEON_REGISTERS; }

double processor_mhz(void) { return 0; }

bool processor_follows_runs(void) { return false; }

bool processor_tiles(void) { return false; }

Dots processor_dots(void) { return DOTS_NONE; }

/* "native" is not used: older compilers and cross compilers do not know it, and it may include SVE. Of the
 * other features, only half precision changes how compilers translate kernels. */
const char *processor_flag(void) {
  return processor_arm64_has() & ARM64_FP16 ? "-march=armv8-a+fp16" : "-march=armv8-a";
}

void processor_features(char *out, size_t cap, char *names, size_t names_cap) {
  static const struct {
    const char *name;
    unsigned flag;
  } known[] = {{"fp16", ARM64_FP16}, {"dotprod", ARM64_DOTPROD}, {"bf16", ARM64_BF16},
               {"i8mm", ARM64_I8MM}, {"sve", ARM64_SVE},         {"sve2", ARM64_SVE2}};

  unsigned has = processor_arm64_has();
  size_t n = (size_t)snprintf(names, names_cap, "neon");
  snprintf(out, cap, "arm64 %s", processor_flag());
  for (size_t i = 0; i < TG_COUNT(known); i++)
    if (has & known[i].flag) n += (size_t)snprintf(names + n, names_cap - n, " %s", known[i].name);
}

/* The option for a processor with more features begins with the option for one with fewer. */
bool processor_runs(const char *features) {
  char here[200], names[200];
  processor_features(here, sizeof here, names, sizeof names);
  return !strncmp(here, features, strlen(features));
}
#else
typedef int FileIsForArm64; /* a translation unit must have at least one declaration */
#endif
