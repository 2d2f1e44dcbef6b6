/* nets.h: ten networks of the kinds that people export, small, with random weights, as ONNX models. In: a number.
 * Out: a model with the input "x", f32 (1, 3, 32, 32), and the output "y". */
#ifndef EXPORT_NETS_H
#define EXPORT_NETS_H
#include "export/qdq.h"

typedef struct Architecture {
  const char *name;
  void (*of)(Net *n);
} Architecture;

enum { ARCHITECTURES = 10, PICTURE = 32 };

extern const Architecture architectures[ARCHITECTURES];
#endif
