/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>
int sysctlbyname(const char *name, void *old, size_t *old_nbytes, void *value, size_t nbytes);
