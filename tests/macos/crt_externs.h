/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
char ***_NSGetEnviron(void);
