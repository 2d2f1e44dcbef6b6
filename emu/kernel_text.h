/* kernel_text.h: reads back what code generation knows about a kernel besides its graph (kernel_text.c). */
#ifndef TG_EMU_KERNEL_TEXT_H
#define TG_EMU_KERNEL_TEXT_H
struct Kernel;
#include <stdbool.h>

/* Fills k, which is open, from the text of a dump: its name, the shape of its launch and, if `opts`, its list
 * of opts. A text without these leaves k as it is. Returns false if k->err has an error or memory ran out. */
bool kernel_read(struct Kernel *k, const char *text, bool opts);
#endif
