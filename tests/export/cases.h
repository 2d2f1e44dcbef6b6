/* cases.h: functions that the tests of exports capture. In: a context. Out: small functions of two inputs in
 * every dtype, and a step of training. */
#ifndef EXPORT_CASES_H
#define EXPORT_CASES_H
#include "tg_nn.h"

/* A function of two inputs of `dtype`, (ROWS, COLUMNS). */
typedef struct Case {
  const char *name;
  TgTensor *(*of)(TgContext *c, TgTensor *x, TgTensor *y);
  TgDType dtype;
} Case;

enum { ROWS = 6, COLUMNS = 20, NUMBERS = ROWS * COLUMNS };

extern const Case export_cases[];
extern const int export_case_count;
const Case *case_named(const char *name); /* NULL: none such */

/* For tg_jit; user: a Case. */
TgStatus run_case(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user);
/* Numbers of all sizes, and those that have rules of their own. turn 0 has neither infinity nor NaN. */
TgTensor *numbers(TgContext *c, TgDType d, int turn);

/* ---- a step of training: forward, backward, Adam, dropout */
enum { BATCH = 16, IN = 24, WIDE = 32, CLASSES = 5, STEPS = 12 };

typedef struct Learner {
  TgLinear first, second;
  TgOptim *optim;
  double dropped;
} Learner;

/* For tg_jit; user: a Learner. Inputs: BATCH x IN of f32, BATCH of i32; output: the loss. */
TgStatus learn(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user);
Learner *learner(TgContext *c, double dropped);
void batch_of(int i, float *x, int32_t *y);
#endif
