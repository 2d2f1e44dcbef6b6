/* trained.h: a network of digits that was trained here, then quantised. In: the folder of MNIST. Out: a model of
 * 8-bit integers, with what it says of the test pictures. */
#ifndef EXPORT_TRAINED_H
#define EXPORT_TRAINED_H
#include "export/qdq.h"

enum { PIXELS = 28 * 28, TESTED = 10000, DIGITS = 10 };

typedef struct Trained {
  Net *net;       /* input x, u8 (1, 1, 28, 28), as the file has it; its output is i8 (1, 10) */
  double correct; /* of the network with floats, of the test pictures */
  uint8_t *pictures, *labels;
} Trained;

/* False: said on stdout. */
bool trained_new(Trained *t, TgContext *c, const char *folder);
void trained_free(Trained *t);
#endif
