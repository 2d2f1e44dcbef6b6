/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <stddef.h>
int strcasecmp(const char *s, const char *t);
int strncasecmp(const char *s, const char *t, size_t n);
