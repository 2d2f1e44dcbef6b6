/* stages.h: stages of the scheduler as text, read back (stages.c). */
#ifndef TG_EMU_STAGES_H
#define TG_EMU_STAGES_H
struct Sched;
#include <stdbool.h>

/* Fills s, whose store, memory and options are set. before: the pass that the text must be of. False: s->err says why, or
 * there is no memory left. */
bool stages_read(struct Sched *s, const char *text, const char *before);
#endif
