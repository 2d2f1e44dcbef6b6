/* processor_other.c: a processor of which nothing is known. */
#if !defined __x86_64__ && !defined __aarch64__
#include "base/processor.h"
#include <stdio.h>

int processor_vector_bytes(void) { return 16; }

int processor_vector_registers(void) { return 16; }

double processor_mhz(void) { return 0; }

bool processor_follows_runs(void) { return false; }

bool processor_tiles(void) { return false; }

Dots processor_dots(void) { return DOTS_NONE; }

const char *processor_flag(void) { return NULL; }

void processor_features(char *out, size_t cap, char *names, size_t names_cap) {
  snprintf(out, cap, "unknown");
  snprintf(names, names_cap, "unknown");
}

bool processor_runs(const char *features) { return (void)features, false; }
#else
typedef int FileIsForOthers; /* a translation unit must have at least one declaration */
#endif
