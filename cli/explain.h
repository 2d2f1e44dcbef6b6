/* explain.h: what `tg explain --kernel` says of one kernel (explain_kernel.c). */
#ifndef TG_CLI_EXPLAIN_H
#define TG_CLI_EXPLAIN_H
#include "cli.h"

/* What `tg opt --emit costs` says of the kernel with this list; NULL: it cannot have it. Valid until the next call. */
typedef const char *OptsCost(const char *list, void *user);
/* costs: what it says of the lists that it considered; list: the opts that the kernel has. ask: for one that is not among
 * those; NULL: nothing is said of it. */
void explain_opts(FILE *to, const char *costs, const char *list, OptsCost *ask, void *user);
/* text: the kernel's program, as TG_DUMP writes it after linearize. */
void explain_loops(FILE *to, const char *text);
#endif
