/* viz.h: what `tg explain` and `tg viz` share. */
#ifndef VIZ_H
#define VIZ_H
#include <stdbool.h>
/* tour.c: a record of the tour, with tour.json, in the folder, which is there. False: it was told. */
bool tour_record(const char *folder);
/* assembly.c: of n kernels, whose names are C's; out[i]: to be freed, NULL where there is none. False: no compiler, or
 * it refuses them. */
#define ASSEMBLY_FLAGS                                                                                       \
  "-x c -std=gnu11 -O2 -g1 -march=native -ffp-contract=off -fno-asynchronous-unwind-tables -w"
bool assembly_of(const char *const *source, const char *const *name, int n, char **out);
#endif
