/* picture.h: reads, writes and resizes pictures in memory. */
#ifndef TG_PICTURE_H
#define TG_PICTURE_H
#include <stddef.h>
#include <stdint.h>

/* RGB, height rows of width * 3 bytes. */
typedef struct Picture {
  int width, height;
  uint8_t *rgb;
} Picture;

/* Reads PNG, JPEG or PPM (P6, 8 bits). A picture is turned as its Exif block says. Returns NULL if all is
 * fine, otherwise the reason, which is valid until the next call. The caller frees p->rgb. */
const char *picture_read(const char *path, Picture *p);
/* The same for n bytes. pixels: the most that are accepted, checked before any are decoded. */
const char *picture_decode(const void *bytes, size_t n, int64_t pixels, Picture *p);
/* exif.c: the orientation, 1 (upright) to 8, that an Exif block of n bytes names (it begins with "II" or
 * "MM"). */
int picture_orientation(const uint8_t *exif, size_t n);
/* Turns and mirrors a picture so that it is upright. Returns NULL, or the reason why not. */
const char *picture_turn(Picture *p, int orientation);
/* Writes PNG or PPM, by the ending of path. Returns NULL if all is fine, otherwise the reason, as above.
 * picture_refused checks the name only. */
const char *picture_refused(const char *path);
const char *picture_write(const char *path, const Picture *p);
/* Resizes to width x height: bilinear, or a weighted mean of the source pixels where it shrinks. out: floats
 * 0 .. 255, rows of width * 3. */
void picture_resize(const Picture *p, int width, int height, float *out);
#endif
