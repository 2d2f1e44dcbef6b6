/* test_train_pictures.c: what `tg train` draws: curves and the matrix on a terminal, and the picture of --plot, whose pixels are
 * looked at: the matrix is dark where many were taken for a class, filters have the values of their weights. */
#define _DEFAULT_SOURCE
#include "picture.h"
#include "train_pictures.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const double steps[] = {1, 2, 3, 4}, losses[] = {2, 1, NAN, 0.5}, epochs[] = {2, 4},
                    right[] = {0.5, 0.9};
static const int64_t confusion[] = {90, 10, 0, 0, 100, 0, 3, 0, 97};
static const double filters[] = {0, 1, 2, 3, 3, 2, 1, 0}; /* two of 2 x 2 */

static TrainPictures training(void) {
  return (TrainPictures){.title = "mnist",
                         .metric = "accuracy",
                         .loss = {"train loss", steps, losses, 4},
                         .tests = {"test accuracy", epochs, right, 2},
                         .classes = 3,
                         .confusion = confusion,
                         .nfilters = 2,
                         .channels = 1,
                         .high = 2,
                         .wide = 2,
                         .filters = filters};
}

static void test_terminal(void **state) {
  (void)state;
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  TrainPictures t = training();
  train_pictures_say(f, &t, 60);
  fclose(f);
  assert_non_null(strstr(text, "train loss\n"));
  assert_non_null(strstr(text, "test accuracy\n"));
  assert_non_null(strstr(text, "    90    10     ."));
  assert_non_null(strstr(text, "\xe2\xa1")); /* dots */
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    int columns = 0;
    for (char *p = line; *p; p++)
      columns += (*p & 0xc0) != 0x80;
    assert_true(columns <= 60);
  }
  free(text);
}

static int sum_at(const Picture *p, int x, int y) {
  const uint8_t *c = p->rgb + 3 * (y * p->width + x);
  return c[0] + c[1] + c[2];
}

static void test_picture(void **state) {
  (void)state;
  char path[] = "/tmp/tg-pictures-XXXXXX.ppm";
  close(mkstemps(path, 4));
  TrainPictures t = training();
  assert_null(train_pictures_write(path, &t));
  Picture p;
  assert_null(picture_read(path, &p));
  unlink(path);
  assert_true(p.width == 880 && p.height == 600);
  int blue = 0, cell = (300 - 26 - 36) / 3, left = 60, top = 300 + 26 + 12, middle = cell / 2;
  for (int i = 0; i < p.width * 300; i++)
    blue += p.rgb[3 * i] == 31 && p.rgb[3 * i + 1] == 119;
  assert_true(blue > 300);
  int diagonal = sum_at(&p, left + middle, top + middle),
      beside = sum_at(&p, left + cell + middle, top + middle),
      none = sum_at(&p, left + 2 * cell + middle, top + middle);
  assert_true(diagonal < beside && beside < none && none == 765);
  int f = 440 + 60 + 2,
      y = 300 + 26 + 12 + 2; /* the first filter begins with its least weight, the second with its largest */
  assert_int_equal(sum_at(&p, f, y), 0);
  bool white = false;
  for (int x = f; x < f + 370; x++)
    white |= sum_at(&p, x, y) == 765 && sum_at(&p, x + 40, y) < 765;
  assert_true(white);
  free(p.rgb);
  t.loss.n = t.tests.n = 0; /* nothing to draw is drawn */
  t.classes = t.nfilters = 0;
  assert_null(train_pictures_write(path, &t));
  unlink(path);
  assert_non_null(train_pictures_write("/nowhere/x.png", &t));
  assert_non_null(train_pictures_write("/tmp/x.gif", &t));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_terminal), cmocka_unit_test(test_picture)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
