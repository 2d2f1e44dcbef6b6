/* texts.h: the text of every kernel that the suite's programs make for a language: golden programs, programs
 * of `tg bench`, behaviour tests. */
#ifndef TG_TEXTS_H
#define TG_TEXTS_H
#include <stddef.h>

/* name of the kernel */
typedef struct Text {
  char *name, *source;
} Text;

typedef struct Texts {
  Text *at;
  size_t len, cap;
  char *prelude;
} Texts;

/* language: "C", "CUDA", "METAL". Each text once, in the order first made. Ends the process when out of
 * memory. */
Texts texts_collect(const char *language);
void texts_free(Texts *t);
/* A translation unit of texts first .. first + n - 1: prelude, then the kernels under names of their own. The
 * caller frees it. */
char *texts_unit(const Texts *t, size_t first, size_t n);
#endif
