/* digit.c: which digit a picture shows, with no library at all. mnist.c is made by
 *   tg compile mnist.onnx -o mnist      (the ONNX model zoo's MNIST, opset 7 or later)
 *   cc -std=c99 -O2 digit.c mnist.c -lm -o digit
 *   digit PICTURE.pgm                   28 x 28, white on black */
#include "mnist.h"
#include <stdio.h>

int main(int argc, char **argv) {
  static mnist net;
  static float pixel[28 * 28], score[10];
  int w = 0, h = 0, most = 0, best = 0;
  FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (!f || fscanf(f, "P5 %d %d %d", &w, &h, &most) != 3 || w != 28 || h != 28 || fgetc(f) == EOF) {
    fprintf(stderr, "usage: digit PICTURE.pgm, of 28 x 28\n");
    return 1;
  }
  for (int i = 0; i < 28 * 28; i++) {
    int c = fgetc(f);
    pixel[i] = c == EOF ? 0.0f : (float)c;
  }
  fclose(f);
  mnist_reset(&net);
  if (mnist_run(&net, pixel, score)) return 1;
  for (int i = 1; i < 10; i++)
    if (score[i] > score[best]) best = i;
  printf("it is a %d\n", best);
  return 0;
}
