/* fragments.h: which thread of a warp holds which element of a matrix unit's operands, for the page of `tg
 * viz`. */
#ifndef TG_EMU_FRAGMENTS_H
#define TG_EMU_FRAGMENTS_H
#include <stdio.h>

/* Writes {"m16n8k16_f16_f32": {"a": {"rows": 16, "columns": 16, "lanes": [0, 0, 1, ..], "elements": [0, 1, 0,
 * ..]}, "b": .., "c": ..}}. For each place, in row-major order, it contains the thread and the number of the
 * thread's element. Units whose operands are in memory are left out. */
void fragments_json(FILE *to);
#endif
