/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>
int nanosleep(const struct timespec *time, struct timespec *left);

enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 6 };

int clock_gettime(int clock, struct timespec *time);
