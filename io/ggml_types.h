/* ggml_types.h: what the gguf reader must know of a type: its blocks. */
#ifndef TG_GGML_TYPES_H
#define TG_GGML_TYPES_H
#include "tg.h"
#define NO_VALUES ((TgDType)-1) /* blocks that are known, values that are not */

/* elements and bytes of a block; dtype 0: quantised */
typedef struct GgmlType {
  int id;
  const char *name;
  int block, nbytes;
  TgDType dtype;
} GgmlType;

const GgmlType *ggml_type(int id); /* NULL: unknown */
#endif
