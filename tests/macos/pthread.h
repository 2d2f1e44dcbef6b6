/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#include <sys/types.h>
int pthread_create(pthread_t *t, const void *attributes, void *(*run)(void *), void *arg);
