/* A stub for tools/check-macos: of this header of macOS only what src/base uses there. */
#pragma once
#define PATH_MAX 1024
