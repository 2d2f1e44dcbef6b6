/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <sys/types.h>

struct kevent {
  uintptr_t ident;
  int16_t filter;
  uint16_t flags;
  uint32_t fflags;
  intptr_t data;
  void *udata;
};

enum { EVFILT_PROC = -5, EV_ADD = 1 };

#define NOTE_EXIT 0x80000000
#define EV_SET(event, i, f, fl, ff, d, u)                                                                    \
  (*(event) = (struct kevent){(uintptr_t)(i), (f), (fl), (ff), (d), (u)})
int kqueue(void);
int kevent(int queue, const struct kevent *changes, int nchange, struct kevent *events, int nevent,
           const struct timespec *limit);
