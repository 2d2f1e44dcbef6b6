/* explain.h: what `tg explain --kernel` says of one kernel (explain_kernel.c). */
#ifndef TG_CLI_EXPLAIN_H
#define TG_CLI_EXPLAIN_H
#include "cli.h"

/* costs: what `tg opt --emit costs` says of the kernel; list: the opts that it has. Nothing where the list is not among those. */
void explain_opts(FILE *to, const char *costs, const char *list);
/* text: the kernel's program, as TG_DUMP writes it after linearize. */
void explain_loops(FILE *to, const char *text);
#endif
