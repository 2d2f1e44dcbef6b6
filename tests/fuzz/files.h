/* files.h: one damaged file; false: something is wrong, and printed. broken: a seeded defect. */
#include <stdbool.h>
#include <stdint.h>
bool fuzz_file(uint64_t seed, bool broken);
