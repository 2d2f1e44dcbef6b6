/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *p, int c, size_t n);
