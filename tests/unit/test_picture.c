/* test_picture.c: pictures are upright, however the camera was held. JPEG files of every orientation are read
 * as Pillow shows them (tests/goldens/make_picture.py). Exif blocks of PNG and JPEG files that contradict
 * themselves or end early leave the picture as it is stored, and no byte outside of them is read. */
#include "picture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Exif blocks */
/* A block in both orders of bytes: a table of one entry that names the orientation. */
static const uint8_t little[] = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 0x01, 3,
                                 0,   1,   0,  0, 0, 6, 0, 0, 0, 0, 0,    0,    0};
static const uint8_t big[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0,
                              3,   0,   0, 0,  1, 0, 6, 0, 0, 0, 0,    0,    0};

enum { BLOCK = sizeof little };

/* The orientation of a copy that ends where its memory ends, so that a sanitizer sees every read after it. */
static int of_copy(const uint8_t *exif, size_t n) {
  uint8_t *copy = malloc(n ? n : 1);
  assert_non_null(copy);
  if (n) memcpy(copy, exif, n);
  int o = picture_orientation(copy, n);
  free(copy);
  return o;
}

/* The orientation of the block with one byte changed. */
static int changed(const uint8_t *exif, size_t at, uint8_t to) {
  uint8_t b[BLOCK];
  memcpy(b, exif, BLOCK);
  b[at] = to;
  return of_copy(b, BLOCK);
}

static void test_blocks(void **state) {
  (void)state;
  assert_int_equal(of_copy(little, BLOCK), 6);
  assert_int_equal(of_copy(big, BLOCK), 6);
  for (uint8_t v = 0; v < 20; v++) {
    assert_int_equal(changed(little, 18, v), v >= 1 && v <= 8 ? v : 1);
    assert_int_equal(changed(big, 19, v), v >= 1 && v <= 8 ? v : 1);
  }
  assert_int_equal(changed(big, 18, 1), 1);     /* 256 + 6 */
  assert_int_equal(changed(little, 0, 'M'), 1); /* "MI" */
  assert_int_equal(changed(little, 2, 43), 1);  /* no TIFF */
  assert_int_equal(changed(little, 12, 4), 1);  /* the entry is no SHORT */
  assert_int_equal(changed(little, 14, 2), 1);  /* it has two values */
  assert_int_equal(changed(little, 8, 0), 1);   /* the table has no entry */
  assert_int_equal(changed(little, 8, 255), 6); /* it claims more than there are */
  assert_int_equal(changed(little, 10, 0x13), 1);
}

/* Every beginning of a block, and every byte with every value: an orientation, and no read outside. */
static void test_hostile_blocks(void **state) {
  (void)state;
  for (size_t n = 0; n < BLOCK; n++) {
    int o = of_copy(little, n);
    assert_true(o == 1 || (o == 6 && n >= 22));
    o = of_copy(big, n);
    assert_true(o == 1 || (o == 6 && n >= 22));
  }
  for (size_t at = 0; at < BLOCK; at++)
    for (int v = 0; v < 256; v++) {
      int a = changed(little, at, (uint8_t)v), b = changed(big, at, (uint8_t)v);
      assert_true(a >= 1 && a <= 8 && b >= 1 && b <= 8);
    }
}

/* ---- turning */
/* Exif says on which side of the shown picture row 0 and column 0 of the stored one are. */
static void test_turns(void **state) {
  (void)state;
  static const char sides[9][2] = {"",         {'t', 'l'}, {'t', 'r'}, {'b', 'r'}, {'b', 'l'},
                                   {'l', 't'}, {'r', 't'}, {'r', 'b'}, {'l', 'b'}};
  for (int o = 0; o <= 9; o++) {
    Picture p = {5, 3, malloc(45)};
    assert_non_null(p.rgb);
    for (uint8_t i = 0; i < 45; i++)
      p.rgb[i] = i;
    assert_null(picture_turn(&p, o));
    const char *s = sides[o < 1 || o > 8 ? 1 : o];
    bool across = s[0] == 'l' || s[0] == 'r';
    assert_int_equal(p.width, across ? 3 : 5);
    assert_int_equal(p.height, across ? 5 : 3);
    for (int row = 0; row < 3; row++)
      for (int col = 0; col < 5; col++) {
        int y = across ? col : row, x = across ? row : col;
        if (s[0] == 'b' || s[1] == 'b') y = p.height - 1 - y;
        if (s[0] == 'r' || s[1] == 'r') x = p.width - 1 - x;
        for (int c = 0; c < 3; c++)
          assert_int_equal(p.rgb[3 * (y * p.width + x) + c], 3 * (5 * row + col) + c);
      }
    free(p.rgb);
  }
}

/* ---- files */
static const char *golden(int n, const char *end) {
  static char path[600];
  snprintf(path, sizeof path, "%s/goldens/picture/%d.%s", TG_TESTS, n, end);
  return path;
}

static uint8_t *bytes_of(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  uint8_t *b = malloc(1 << 16);
  assert_true(f && b);
  *n = fread(b, 1, 1 << 16, f);
  fclose(f);
  return b;
}

static bool reads(const char *path) {
  Picture p;
  const char *why = picture_read(path, &p);
  free(p.rgb);
  return !why;
}

static void test_jpeg(void **state) {
  (void)state;
  if (!reads(golden(1, "jpg"))) skip(); /* built without libjpeg */
  for (int o = 1; o <= 8; o++) {
    Picture p, want;
    assert_null(picture_read(golden(o, "jpg"), &p));
    assert_null(picture_read(golden(o, "ppm"), &want));
    assert_int_equal(p.width, want.width);
    assert_int_equal(p.height, want.height);
    for (int i = 0; i < 3 * p.width * p.height; i++)
      if (abs(p.rgb[i] - want.rgb[i]) > 3)
        fail_msg("orientation %d: byte %d is %d, not %d", o, i, p.rgb[i], want.rgb[i]);
    free(p.rgb), free(want.rgb);
  }
}

/* The JPEG file with each byte of its Exif block changed: it is read, or refused with a reason. */
static void test_hostile_jpeg(void **state) {
  (void)state;
  if (!reads(golden(1, "jpg"))) skip();
  size_t n;
  uint8_t *b = bytes_of(golden(6, "jpg"), &n);
  for (size_t at = 2; at < 120 && at < n; at++)
    for (int v = 0; v < 256; v += 17) {
      uint8_t was = b[at];
      Picture p;
      b[at] = (uint8_t)v;
      const char *why = picture_decode(b, n, 1 << 20, &p);
      assert_true(why ? *why && !p.rgb : p.rgb && p.width * p.height > 0);
      free(p.rgb);
      b[at] = was;
    }
  free(b);
}

static uint32_t crc_of(const uint8_t *p, size_t n) {
  uint32_t c = ~0u;
  for (size_t i = 0; i < n; i++) {
    c ^= p[i];
    for (int k = 0; k < 8; k++)
      c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}

static uint8_t *put4(uint8_t *to, uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8)
    *to++ = (uint8_t)(v >> shift);
  return to;
}

/* A PNG gets an Exif chunk before its pixels; claimed: the length that the chunk claims to have. */
static void test_png(void **state) {
  (void)state;
  static uint8_t rgb[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  Picture p = {3, 2, rgb};
  if (picture_write("test_picture.png", &p)) skip(); /* built without libpng */
  size_t n;
  uint8_t *b = bytes_of("test_picture.png", &n), *with = malloc(n + BLOCK + 12);
  assert_non_null(with);
  remove("test_picture.png");
  memcpy(with, b, 33); /* the signature and the head */
  uint8_t *at = put4(with + 33, BLOCK);
  memcpy(at, "eXIf", 4), memcpy(at + 4, big, BLOCK);
  put4(at + 4 + BLOCK, crc_of(at, 4 + BLOCK));
  memcpy(with + 33 + 12 + BLOCK, b + 33, n - 33);
  assert_null(picture_decode(with, n + BLOCK + 12, 1 << 20, &p));
  assert_int_equal(p.width, 2);
  assert_int_equal(p.height, 3);
  static const uint8_t shown[] = {10, 11, 12, 1, 2, 3, 13, 14, 15, 4, 5, 6, 16, 17, 18, 7, 8, 9};
  assert_memory_equal(p.rgb, shown, sizeof shown);
  free(p.rgb);
  for (int v = 0; v < 256; v++) { /* whatever its length says */
    with[33] = with[35] = (uint8_t)v;
    const char *why = picture_decode(with, n + BLOCK + 12, 1 << 20, &p);
    assert_true(why ? *why && !p.rgb : p.rgb != NULL);
    free(p.rgb);
  }
  for (size_t cut = 0; cut < n + BLOCK + 12; cut++) {
    const char *why = picture_decode(with, cut, 1 << 20, &p);
    assert_true(why && *why && !p.rgb);
  }
  free(b), free(with);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks), cmocka_unit_test(test_hostile_blocks), cmocka_unit_test(test_turns),
      cmocka_unit_test(test_jpeg),   cmocka_unit_test(test_hostile_jpeg),   cmocka_unit_test(test_png)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
