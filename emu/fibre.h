/* fibre.h: stacks that one OS thread switches between. A call that is interrupted waits on its own stack. */
#ifndef TG_FIBRE_H
#define TG_FIBRE_H
#include "base/base.h"

/* A zeroed fibre represents the stack on which the caller runs. */
typedef struct Fibre {
  void *stopped;      /* where it continues */
  const uint8_t *low; /* lowest address of its stack */
  size_t nbytes;
  void *sanitizer;
} Fibre;

typedef void (*FibreFn)(void *arg);

/* Prepares f so that the next switch to it calls fn(arg) on the stack at `low`. fn must never return. The
 * previous content of the stack is lost. */
void fibre_prepare(Fibre *f, uint8_t *low, size_t nbytes, FibreFn fn, void *arg);
/* Continues with `to`. Returns when something switches to `from`. */
void fibre_switch(Fibre *from, Fibre *to);
#endif
