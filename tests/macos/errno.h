/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
int *__error(void);
#define errno (*__error())

enum { ENOENT = 2, EINTR = 4, ECHILD = 10, EEXIST = 17, EMFILE = 24, ENAMETOOLONG = 63, ENOSYS = 78 };

enum { ENOMEM = 12 };
