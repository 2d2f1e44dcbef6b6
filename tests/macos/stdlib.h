/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
char *getenv(const char *name);
int mkostemp(char *path, int flags);
#include <stddef.h>
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void free(void *p);
int atoi(const char *s);
int abs(int x);
long labs(long x);
long long llabs(long long x);
long strtol(const char *s, char **end, int base);
long long strtoll(const char *s, char **end, int base);
unsigned long strtoul(const char *s, char **end, int base);
unsigned long long strtoull(const char *s, char **end, int base);
float strtof(const char *s, char **end);
double strtod(const char *s, char **end);
void qsort(void *p, size_t n, size_t size, int (*compare)(const void *, const void *));
