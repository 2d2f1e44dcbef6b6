/* viz.h: what `tg explain` and `tg viz` share. */
#ifndef VIZ_H
#define VIZ_H
#include <stdbool.h>
/* tour.c: records the tour, with tour.json, in the folder, which must exist. Returns false if it failed; the
 * reason was printed. */
bool tour_record(const char *folder);
/* assembly.c: compiles n kernels, whose source is C. out[i] is the assembly of kernel i, to be freed, or
 * NULL. Returns false if there is no compiler or it rejects the sources. */
#define ASSEMBLY_FLAGS                                                                                       \
  "-x c -std=gnu11 -O2 -g1 -march=native -ffp-contract=off -fno-asynchronous-unwind-tables -w"
bool assembly_of(const char *const *source, const char *const *name, int n, char **out);
#endif
