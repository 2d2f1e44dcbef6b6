/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *p, int c, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memchr(const void *p, int c, size_t n);
int memcmp(const void *p, const void *q, size_t n);
size_t strlen(const char *s);
size_t strspn(const char *s, const char *any);
size_t strcspn(const char *s, const char *any);
int strcmp(const char *s, const char *t);
int strncmp(const char *s, const char *t, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
char *strstr(const char *s, const char *t);
char *strcpy(char *to, const char *from);
char *strtok_r(char *s, const char *any, char **rest);
char *strerror(int e);
char *strcat(char *to, const char *from);
