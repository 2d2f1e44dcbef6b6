/* none.c: stands for emu/ in the library that is installed: there are no emulators. */
#include "runtime/emulators.h"

const Emulators *emulators(void) { return NULL; }
