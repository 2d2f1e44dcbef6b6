/* golden.h: the golden programs: small, one subject each, with their results worked out by plain loops. */
#ifndef TG_GOLDEN_PROGRAMS_H
#define TG_GOLDEN_PROGRAMS_H
#include "tg_nn.h"

enum { GOLDEN_OUTPUTS = 2, GOLDEN_ELEMENTS = 5120 };

typedef struct Golden {
  const char *name;
  int (*build)(TgContext *ctx, TgTensor **out); /* up to GOLDEN_OUTPUTS tensors; how many, 0 on error */
  void (*want)(double (*out)[GOLDEN_ELEMENTS]); /* their elements, row-major */
  double tol;                                   /* relative above 1, absolute below; 0: exact */
  const char *grid_opts; /* of its kernel on a GPU, which is too small to get them by itself; or NULL */
} Golden;

extern const Golden golden_programs[];
extern const int golden_count;

/* Before a context is opened for it on this device, and (NULL) afterwards. */
void golden_env(const Golden *g, const char *device);

enum { GOLDEN_SEED = 7 }; /* of the contexts they are built in */
#endif
