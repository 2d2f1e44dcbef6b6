/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#define PATH_MAX 1024
