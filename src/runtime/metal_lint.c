#include "runtime/metal.h"
const char *metal_lint(TgMem *mem, const char *text, TgError *err) { (void)mem,(void)text,(void)err; return NULL; }
