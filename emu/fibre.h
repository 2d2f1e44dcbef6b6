/* fibre.h: Stacks to switch between on one OS thread: each call that is under way
 * elsewhere waits on a stack of its own. */
#ifndef TG_FIBRE_H
#define TG_FIBRE_H
#include "base/base.h"

/* Zeroed, it stands for the stack that the caller runs on. */
typedef struct Fibre {
  void *stopped;      /* where it goes on */
  const uint8_t *low; /* its stack: from here on */
  size_t nbytes;
  void *sanitizer;
} Fibre;

typedef void (*FibreFn)(void *arg);

/* The next switch to f calls fn(arg) on the stack `low`, which it must never return from. What the stack held
 * before is forgotten. */
void fibre_prepare(Fibre *f, uint8_t *low, size_t nbytes, FibreFn fn, void *arg);
/* Goes on with `to`; returns when something switches to `from`. */
void fibre_switch(Fibre *from, Fibre *to);
#endif
