/* test_boxes.c: what `tg run` makes of a detector's outputs. The same boxes, written in each format, are read
 * as the same; those that a better one covers go; no value, however odd, leaves the picture. */
#include "boxes.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CLASSES = 3, BOXES = 4, WIDE = 200, HIGH = 100, SIDE = 16, CELLS = SIDE * SIDE };

/* The second is the first, a little moved; the third lies where these are, of another class; the last is
 * poor. */
static const Box written[BOXES] = {
    {.2, .2, .6, .7, .9, 1}, {.22, .2, .62, .7, .8, 1}, {.2, .2, .6, .7, .7, 2}, {.8, .8, .9, .9, .1, 0}};
static const int kept[] = {0, 2};

static void same(const char *kind, const BoxValues *v, int n, double score, double overlap, const int *which,
                 int nwhich) {
  Boxes found = {0};
  const char *why = boxes_of(kind, v, n, WIDE, HIGH, score, overlap, &found);
  if (why) fail_msg("%s: %s", kind, why);
  assert_int_equal(found.n, nwhich);
  for (int i = 0; i < nwhich; i++) {
    const Box *a = &found.at[i], *b = &written[which[i]];
    assert_int_equal(a->class, b->class);
    assert_true(fabs(a->score - b->score) < 1e-6 && fabs(a->x0 - b->x0) < 1e-6 &&
                fabs(a->y0 - b->y0) < 1e-6 && fabs(a->x1 - b->x1) < 1e-6 && fabs(a->y1 - b->y1) < 1e-6);
  }
  free(found.at);
}

/* By its name, and found by the shapes; with each threshold moved. */
static void reads(const char *kind, const BoxValues *v, int n) {
  static const int all[] = {0, 1, 2, 3}, good[] = {0, 1, 2};
  same(kind, v, n, .5, .45, kept, 2);
  same(NULL, v, n, .5, .45, kept, 2);
  same(kind, v, n, .5, .95, good, 3);
  same(kind, v, n, .05, 1, all, 4);
}

static double centre_x(const Box *b) { return (b->x0 + b->x1) / 2; }

static double centre_y(const Box *b) { return (b->y0 + b->y1) / 2; }

static void test_ssd(void **state) {
  (void)state;
  double boxes[BOXES * 4], scores[BOXES * (CLASSES + 1)] = {0};
  const int64_t box_dims[] = {BOXES, 4}, score_dims[] = {BOXES, CLASSES + 1};
  for (int i = 0; i < BOXES; i++) {
    memcpy(boxes + 4 * i, &written[i], 4 * sizeof *boxes);
    scores[i * (CLASSES + 1)] = 1 - written[i].score;
    scores[i * (CLASSES + 1) + 1 + written[i].class] = written[i].score;
  }
  const BoxValues v[] = {{"boxes", 2, box_dims, boxes}, {"scores", 2, score_dims, scores}},
                  w[] = {v[1], v[0]};
  reads("ssd", w, 2);
  reads("ssd", v, 2); /* 4 scores beside 4 numbers of a box: the name tells which is which */
}

static void test_detr(void **state) {
  (void)state;
  double boxes[BOXES * 4], logits[BOXES * (CLASSES + 2)];
  const int64_t box_dims[] = {BOXES, 4}, logit_dims[] = {BOXES, CLASSES + 2};
  for (int i = 0; i < BOXES; i++) {
    const Box *b = &written[i];
    const double at[] = {centre_x(b), centre_y(b), b->x1 - b->x0, b->y1 - b->y0};
    memcpy(boxes + 4 * i, at, sizeof at);
    for (int c = 0; c < CLASSES + 2; c++) /* what is left of 1 is "no object" */
      logits[i * (CLASSES + 2) + c] = 3 + log(c == b->class ? b->score : c > CLASSES ? 1 - b->score : 1e-12);
  }
  const BoxValues v[] = {{"logits", 2, logit_dims, logits}, {"pred_boxes", 2, box_dims, boxes}};
  reads("detr", v, 2);
}

static void test_tf(void **state) {
  (void)state;
  double boxes[BOXES * 4], scores[BOXES], classes[BOXES], count = BOXES;
  const int64_t box_dims[] = {BOXES, 4}, dims[] = {BOXES};
  for (int i = 0; i < BOXES; i++) {
    const double at[] = {written[i].y0, written[i].x0, written[i].y1, written[i].x1};
    memcpy(boxes + 4 * i, at, sizeof at);
    scores[i] = written[i].score, classes[i] = written[i].class;
  }
  const BoxValues v[] = {{"detection_boxes:0", 2, box_dims, boxes},
                         {"num_detections:0", 0, NULL, &count},
                         {"detection_classes:0", 1, dims, classes},
                         {"detection_scores:0", 1, dims, scores}};
  reads("tf", v, 4);
}

static void test_nms(void **state) {
  (void)state;
  double rows[BOXES * 6];
  const int64_t dims[] = {BOXES, 6};
  for (int i = 0; i < BOXES; i++) {
    const Box *b = &written[i];
    const double at[] = {b->x0 * WIDE, b->y0 * HIGH, b->x1 * WIDE, b->y1 * HIGH, b->score, b->class};
    memcpy(rows + 6 * i, at, sizeof at);
  }
  const BoxValues v = {"output0", 2, dims, rows};
  reads("nms", &v, 1);
}

/* Rows of centre, size, objectness and scores; and columns without objectness. */
static void test_yolo(void **state) {
  (void)state;

  enum { ROWS = 16, V5 = 5 + CLASSES, V8 = 4 + CLASSES };

  static double five[ROWS * V5], eight[V8 * ROWS];
  const int64_t five_dims[] = {ROWS, V5}, eight_dims[] = {V8, ROWS};
  for (int i = 0; i < BOXES; i++) {
    const Box *b = &written[i];
    const double at[] = {centre_x(b) * WIDE, centre_y(b) * HIGH, (b->x1 - b->x0) * WIDE,
                         (b->y1 - b->y0) * HIGH};
    for (int k = 0; k < 4; k++)
      five[(i + 7) * V5 + k] = eight[k * ROWS + i + 3] = at[k];
    five[(i + 7) * V5 + 4] = .95, five[(i + 7) * V5 + 5 + b->class] = b->score / .95;
    eight[(4 + b->class) * ROWS + i + 3] = b->score;
  }
  const BoxValues v5 = {"output", 2, five_dims, five}, v8 = {"output0", 2, eight_dims, eight};
  reads("yolov5", &v5, 1), reads("yolov8", &v8, 1);
}

static void test_fastestdet(void **state) {
  (void)state;
  static double v[(5 + CLASSES) * CELLS];
  const int64_t dims[] = {5 + CLASSES, SIDE, SIDE};
  for (int i = 0; i < BOXES; i++) {
    const Box *b = &written[i];
    double x = centre_x(b) * SIDE, y = centre_y(b) * SIDE, w = b->x1 - b->x0, h = b->y1 - b->y0;
    int column = (int)x + (i == 2), row = (int)y; /* the third is found from the cell beside */
    const double at[] = {b->score, atanh(x - column), atanh(y - row), log(w / (1 - w)), log(h / (1 - h))};
    for (int k = 0; k < 5; k++)
      v[k * CELLS + row * SIDE + column] = at[k];
    v[(5 + b->class) * CELLS + row * SIDE + column] = b->score;
  }
  /* the first and the second share a cell: the last written stands, so the second is what is read */
  static const int which[] = {1, 2};
  const BoxValues out = {"758", 3, dims, v};
  int first_cell = (int)(centre_x(&written[0]) * SIDE), second_cell = (int)(centre_x(&written[1]) * SIDE);
  same("fastestdet", &out, 1, .5, .45, first_cell == second_cell ? which : kept, 2);
  same(NULL, &out, 1, .5, .45, first_cell == second_cell ? which : kept, 2);
}

static void test_refused(void **state) {
  (void)state;
  double v[64] = {0};
  const int64_t dims[] = {8, 3};
  const BoxValues out = {"x", 2, dims, v};
  Boxes found = {0};
  assert_string_equal(boxes_of("yolo", &out, 1, 1, 1, .5, .5, &found), "no such format");
  const char *name, *about;
  for (int i = 0; boxes_kind(i, &name, &about); i++)
    if (strcmp(name, "yolov8")) /* 4 rows of a box, 4 classes, 3 boxes */
      assert_non_null(strstr(boxes_of(name, &out, 1, 1, 1, .5, .5, &found), "shapes"));
  const BoxValues scalar = {"x", 0, NULL, v};
  assert_non_null(strstr(boxes_of(NULL, &scalar, 1, 1, 1, .5, .5, &found), "no format"));
  assert_int_equal(found.n, 0);
}

/* Odd numbers, and boxes that reach out of the picture: each pixel that is drawn is inside. */
static void test_drawn(void **state) {
  (void)state;
  const double odd[] = {-1e300, -3, -.1, 0, .3, .99, 1, 1.5, 1e300, INFINITY, NAN};

  enum { ODD = sizeof odd / sizeof *odd, W = 20, H = 12, BYTES = W * H * 3, GUARD = 64 };

  static uint8_t pixels[GUARD + BYTES + GUARD];
  for (int i = 0; i < ODD; i++)
    for (int j = 0; j < ODD; j++) {
      memset(pixels, 77, sizeof pixels);
      Picture p = {W, H, pixels + GUARD};
      boxes_draw(&p, &(Box){odd[i], odd[j], odd[(i + j) % ODD], odd[(i + 3 * j) % ODD], 1, i * 7 - 20},
                 "A label, longer than this");
      for (int k = 0; k < GUARD; k++)
        assert_true(pixels[k] == 77 && pixels[GUARD + BYTES + k] == 77);
    }
  Picture p = {W, H, pixels + GUARD};
  memset(pixels, 0, sizeof pixels);
  boxes_draw(&p, &(Box){.25, .25, .75, .75, 1, 0}, NULL);
  int drawn = 0;
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) {
      const uint8_t *c = p.rgb + 3 * (y * W + x);
      bool frame = x >= 5 && x < 15 && y >= 3 && y < 9 && (x == 5 || x == 14 || y == 3 || y == 8);
      assert_int_equal(c[0] || c[1] || c[2], frame), drawn += frame;
    }
  assert_int_equal(drawn, 28);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ssd),     cmocka_unit_test(test_detr),
                                     cmocka_unit_test(test_tf),      cmocka_unit_test(test_nms),
                                     cmocka_unit_test(test_yolo),    cmocka_unit_test(test_fastestdet),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_drawn)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
