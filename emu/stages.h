/* stages.h: reads back the scheduler's stages from text (stages.c). */
#ifndef TG_EMU_STAGES_H
#define TG_EMU_STAGES_H
struct Sched;
#include <stdbool.h>

/* Fills s, whose store, memory and options are set. before: the pass that the text must belong to. Returns
 * false if s->err has an error or memory ran out. */
bool stages_read(struct Sched *s, const char *text, const char *before);
#endif
