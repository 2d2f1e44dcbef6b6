/* main.c: a network that learns on the part. step.c is what examples/export_step.c wrote; all of its memory
 * is `net`. */
#include "board.h"
#include "step.h"

static step net;

/* A sine, as a part without a library of mathematics has it. */
static float sine(float x) {
  float s = x * x;
  return x * (1 + s * (-1 / 6.0f + s * (1 / 120.0f - s / 5040.0f)));
}

int main(void) {
  float x[STEP_X_SIZE], y[STEP_Y_SIZE], guess[STEP_GUESS_SIZE], loss = 0;
  unsigned random = 1;
  board_number("memory: ", (long)sizeof net, " bytes\n");
  step_reset(&net);
  for (int i = 0; i <= 1000; i++) {
    for (int k = 0; k < STEP_X_SIZE; k++) {
      random = random * 1664525u + 1013904223u;
      x[k] = (float)(random >> 8) / 8388608.0f - 1.0f;
      y[k] = sine(3 * x[k]);
    }
    if (step_run(&net, x, y, &loss, guess)) return 1;
    if (i % 250 == 0) {
      board_number("step ", i, "");
      board_number(", loss ", (long)(loss * 1000000), " millionths\n");
    }
  }
  return loss < 0.01f ? 0 : 1;
}
