/* picture.h: pictures as bytes, for `tg run`. */
#ifndef TG_PICTURE_H
#define TG_PICTURE_H
#include <stdint.h>

/* RGB, rows of width * 3 bytes. */
typedef struct Picture {
  int width, height;
  uint8_t *rgb;
} Picture;

/* PNG, JPEG, or PPM (P6, 8 bits). NULL: fine; else why not, which lives until the next call. rgb is the
 * caller's to free. */
const char *picture_read(const char *path, Picture *p);
/* As PNG or PPM, by the end of path's name. NULL: fine; else why not, as above. picture_refused: of the name
 * alone. */
const char *picture_refused(const char *path);
const char *picture_write(const char *path, const Picture *p);
/* Resized to width x height: bilinear, by the mean of what falls into a pixel where it shrinks. out: floats 0
 * .. 255, rows of width * 3. */
void picture_resize(const Picture *p, int width, int height, float *out);
#endif
