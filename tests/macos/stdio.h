/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <stddef.h>
int snprintf(char *out, size_t cap, const char *format, ...) __attribute__((format(printf, 3, 4)));
