/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <sys/types.h>
int nanosleep(const struct timespec *time, struct timespec *left);
