/* kernel_text.h: what code generation knows of a kernel beside its graph, read back (kernel_text.c). */
#ifndef TG_EMU_KERNEL_TEXT_H
#define TG_EMU_KERNEL_TEXT_H
struct Kernel;
#include <stdbool.h>

/* Fills k, which is open, from the text of a dump: its name, the shape of its launch and, if `opts`, its list. A text
 * that says nothing of it leaves k as it is. False: k->err says why, or there is no memory left. */
bool kernel_read(struct Kernel *k, const char *text, bool opts);
#endif
