/* explain.h: what `tg explain --kernel` prints about one kernel (explain_kernel.c). */
#ifndef TG_CLI_EXPLAIN_H
#define TG_CLI_EXPLAIN_H
#include "cli.h"

/* Returns what `tg opt --emit costs` prints for the kernel with this list of opts, valid until the next call.
 * Returns NULL if the kernel cannot have this list. */
typedef const char *OptsCost(const char *list, void *user);
/* costs: the costs of the lists that were considered. list: the opts that the kernel has. ask: computes the
 * cost of a list that is not among them; NULL: nothing is printed about such a list. */
void explain_opts(FILE *to, const char *costs, const char *list, OptsCost *ask, void *user);
/* text: the kernel's program, as TG_DUMP writes it after linearize. */
void explain_loops(FILE *to, const char *text);
#endif
