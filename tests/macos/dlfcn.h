/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once

enum { RTLD_NOW = 2, RTLD_LOCAL = 4 };

void *dlopen(const char *name, int mode);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
