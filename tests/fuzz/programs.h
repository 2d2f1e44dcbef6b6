/* programs.h: one captured function as text: whole, it gives the same bits as the function; damaged, it is
 * refused with a reason, or it runs and touches nothing outside of its memories. False: something is wrong,
 * and printed. broken: a seeded defect. */
#include <stdbool.h>
#include <stdint.h>
bool fuzz_program(uint64_t seed, bool broken);
/* The same functions as C (tg_jit_to_c), compiled in `folder`: the numbers of the function. */
bool fuzz_export(uint64_t seed, const char *folder, bool broken);
