/* none.c: replaces emu/ in the installed library, which has no emulators. */
#include "runtime/emulators.h"

const Emulators *emulators(void) { return NULL; }
