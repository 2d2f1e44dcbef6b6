/* learn.c: a network that goes on learning with no library at all: step.c is what examples/export_step.c wrote.
 *   cc -std=c99 -O2 learn.c step.c -lm -o learn */
#include "step.h"
#include <math.h>
#include <stdio.h>

int main(void) {
  static step net; /* all the memory there is */
  float x[STEP_X_SIZE], y[STEP_Y_SIZE], guess[STEP_GUESS_SIZE], loss = 0;
  unsigned random = 1;
  step_reset(&net);
  for (int i = 0; i <= 2000; i++) {
    for (int k = 0; k < STEP_X_SIZE; k++) {
      random = random * 1664525u + 1013904223u;
      x[k] = (float)(random >> 8) / 8388608.0f - 1.0f;
      y[k] = sinf(3.0f * x[k]);
    }
    if (step_run(&net, x, y, &loss, guess)) return 1;
    if (i % 500 == 0) printf("step %d  loss %.5f\n", i, (double)loss);
  }
  printf("sin(3 * %.2f) = %.3f, it says %.3f\n", (double)x[0], (double)y[0], (double)guess[0]);
  return loss < 0.01f ? 0 : 1;
}
