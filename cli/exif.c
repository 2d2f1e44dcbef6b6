/* exif.c: how a camera was held. In: the bytes of a JPEG's or PNG's Exif block. Out: its orientation, and a
 * picture turned by it. The block is a TIFF file, and a file is not trusted: each offset is checked before it
 * is used, and whatever is odd counts as upright. */
#include "picture.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { UPRIGHT = 1, MIRRORED_TURNED = 5, ORIENTATIONS = 8, ORIENTATION = 0x0112, SHORT = 3, ENTRY = 12 };

typedef struct Tiff {
  const uint8_t *at;
  size_t n;
  bool little; /* the least significant byte comes first */
} Tiff;

/* The number of 2 or 4 bytes at this offset; 0: it is not within the block. */
static uint32_t number_at(const Tiff *t, size_t at, int bytes) {
  uint32_t v = 0;
  if (at > t->n || t->n - at < (size_t)bytes) return 0;
  for (int i = 0; i < bytes; i++)
    v = v << 8 | t->at[at + (size_t)(t->little ? bytes - 1 - i : i)];
  return v;
}

int picture_orientation(const uint8_t *exif, size_t n) {
  Tiff t = {exif, n, n >= 2 && exif[0] == 'I'};
  bool known = n >= 8 && (!memcmp(exif, "II", 2) || !memcmp(exif, "MM", 2)) && number_at(&t, 2, 2) == 42;
  size_t table = known ? number_at(&t, 4, 4) : 0;
  size_t entries = table ? number_at(&t, table, 2) : 0;
  for (size_t i = 0; i < entries; i++) {
    size_t at = table + 2 + i * ENTRY;
    if (at > n || n - at < ENTRY) break;
    if (number_at(&t, at, 2) != ORIENTATION) continue;
    uint32_t v = number_at(&t, at + 8, 2);
    bool fine = number_at(&t, at + 2, 2) == SHORT && number_at(&t, at + 4, 4) == 1 && v >= UPRIGHT &&
                v <= ORIENTATIONS;
    return fine ? (int)v : UPRIGHT;
  }
  return UPRIGHT;
}

/* The place in the picture as it is stored of the pixel (y, x) of the picture as it is shown. */
static size_t stored_at(const Picture *p, int orientation, int y, int x) {
  bool turned = orientation >= MIRRORED_TURNED;
  int row = turned ? x : y, col = turned ? y : x;
  bool bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  bool right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  if (bottom) row = p->height - 1 - row;
  if (right) col = p->width - 1 - col;
  return (size_t)row * (size_t)p->width + (size_t)col;
}

const char *picture_turn(Picture *p, int orientation) {
  if (orientation <= UPRIGHT || orientation > ORIENTATIONS) return NULL;
  Picture to = {.width = orientation >= MIRRORED_TURNED ? p->height : p->width,
                .height = orientation >= MIRRORED_TURNED ? p->width : p->height,
                .rgb = malloc((size_t)p->width * (size_t)p->height * 3)};
  if (!to.rgb) return "out of memory";
  uint8_t *out = to.rgb;
  for (int y = 0; y < to.height; y++)
    for (int x = 0; x < to.width; x++, out += 3)
      memcpy(out, p->rgb + 3 * stored_at(p, orientation, y, x), 3);
  free(p->rgb);
  *p = to;
  return NULL;
}
