/* compile_along.h: the files that `tg compile` can write beside PATH.c and PATH.h. */
#ifndef TG_COMPILE_ALONG_H
#define TG_COMPILE_ALONG_H
#include <stdbool.h>
#include <tg_io.h>

/* An export: path is FOLDER/file without .c, and the identifiers in the text begin with `name`. */
typedef struct Along {
  const char *path, *name;
  TgJit *jit;
  const char *const *inputs, *const *outputs;
} Along;

/* Writes PATH.wasm, a module with its weights, and PATH.js, a class for it. The exported text must have been
 * written with .own_math and with its weights in it. Returns false if it failed; the reason was printed. */
bool along_wasm(const Along *a, bool simd);
bool along_python(const Along *a); /* writes PATH.py, which uses cffi */
#endif
