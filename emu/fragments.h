/* fragments.h: which thread of a warp has which element of a matrix unit's operands, for the page of `tg viz`. */
#ifndef TG_EMU_FRAGMENTS_H
#define TG_EMU_FRAGMENTS_H
#include <stdio.h>

/* {"m16n8k16_f16_f32": {"a": {"rows": 16, "columns": 16, "lanes": [0, 0, 1, ..], "elements": [0, 1, 0, ..]}, "b": .., "c": ..}}:
 * for each place, row-major, the thread and which of its elements stands there. Units whose operands are memory are not in it. */
void fragments_json(FILE *to);
#endif
