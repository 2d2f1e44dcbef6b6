/* A stub for tools/check-macos: of this header of macOS only what src uses. */
#pragma once
#include <stddef.h>
int snprintf(char *out, size_t cap, const char *format, ...) __attribute__((format(printf, 3, 4)));
#include <stdarg.h>
typedef struct __sFILE FILE;
extern FILE *__stderrp, *__stdoutp;
#define stderr __stderrp
#define stdout __stdoutp
int fprintf(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
int vfprintf(FILE *to, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
int vsnprintf(char *out, size_t cap, const char *format, va_list args) __attribute__((format(printf, 3, 0)));
int sscanf(const char *s, const char *format, ...) __attribute__((format(scanf, 2, 3)));
FILE *fopen(const char *path, const char *mode);
int fclose(FILE *f);
int fflush(FILE *f);
int fputs(const char *s, FILE *f);
int fputc(int c, FILE *f);
size_t fwrite(const void *p, size_t size, size_t n, FILE *f);
size_t fread(void *p, size_t size, size_t n, FILE *f);
int rename(const char *from, const char *to);
