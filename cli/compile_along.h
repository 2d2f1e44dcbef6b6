/* compile_along.h: what `tg compile` writes beside PATH.c and PATH.h. */
#ifndef TG_COMPILE_ALONG_H
#define TG_COMPILE_ALONG_H
#include <stdbool.h>
#include <tg_io.h>

/* The folder and the name of an export: FOLDER/name.c, whose identifiers begin with `name`. */
typedef struct Along {
  const char *path, *name; /* path without .c */
  TgJit *jit;
  const char *const *inputs, *const *outputs;
} Along;

/* PATH.wasm and PATH.js: a module with its weights, and a class for it. The text must have been written with
 * .own_math and its weights. false: said. */
bool along_wasm(const Along *a, bool simd);
bool along_python(const Along *a); /* PATH.py, by cffi */
#endif
