/* memory.h: one random program of reads, writes through views, realizes, captured functions and dropped
 * handles, against plain arrays. device: NULL, the default. broken: a seeded defect. False: something
 * differs, and the program is printed. */
#include <stdbool.h>
#include <stdint.h>
bool fuzz_memory(uint64_t seed, const char *device, bool sharded, bool broken);
/* closes the context that programs share: one finds the plans and values of those before it */
void fuzz_memory_end(void);
