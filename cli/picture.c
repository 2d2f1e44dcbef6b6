/* picture.c: reads PNG by libpng and JPEG by libjpeg, if these were found when this was built, and always
 * PPM. In: a file, or its bytes. Out: 8-bit RGB; transparency is dropped, grey becomes three channels, and
 * the picture is upright, however the camera was held (exif.c). PNG and PPM can be written, too. */
#include "picture.h"
#include "cli.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef TG_HAVE_PNG
#include <png.h>
#endif
#ifdef TG_HAVE_JPEG
#include <jerror.h>
#include <jpeglib.h>
#endif

enum { MOST = 1 << 14 }; /* pixels of a side, at most */

static char why[300];

/* The bytes that are to be decoded. */
typedef struct Bytes {
  const uint8_t *at;
  size_t n;
  int64_t pixels; /* the most that are accepted */
} Bytes;

static bool room(Bytes b, Picture *p, long width, long height) {
  bool fits =
      width >= 1 && height >= 1 && width <= MOST && height <= MOST && (int64_t)width * height <= b.pixels;
  if (!fits) snprintf(why, sizeof why, "a picture of %ld x %ld pixels is too large", width, height);
  if (!fits) return false;
  *p = (Picture){(int)width, (int)height, malloc((size_t)width * (size_t)height * 3)};
  if (!p->rgb) snprintf(why, sizeof why, "out of memory");
  return p->rgb != NULL;
}

#if defined TG_HAVE_PNG || defined TG_HAVE_JPEG
static bool turned(Picture *p, int orientation) {
  const char *wrong = picture_turn(p, orientation);
  if (wrong) snprintf(why, sizeof why, "%s", wrong);
  return !wrong;
}
#endif

#ifdef TG_HAVE_PNG
/* The orientation of the Exif block of a PNG, which is a chunk: a length, a name, the bytes, a checksum. */
static int png_orientation(Bytes b) {
  for (size_t at = 8; b.n - at >= 12;) {
    const uint8_t *c = b.at + at;
    size_t n = (size_t)c[0] << 24 | (size_t)c[1] << 16 | (size_t)c[2] << 8 | c[3];
    if (n > b.n - at - 12) break;
    if (!memcmp(c + 4, "eXIf", 4)) return picture_orientation(c + 8, n);
    at += n + 12;
  }
  return 1;
}

static bool png_decode(Bytes b, Picture *p) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_memory(&image, b.at, b.n)) {
    snprintf(why, sizeof why, "%s", image.message);
    return false;
  }
  image.format = PNG_FORMAT_RGB;
  bool ok = room(b, p, (long)image.width, (long)image.height);
  if (ok && !png_image_finish_read(&image, &(png_color){0, 0, 0}, p->rgb, 0, NULL)) {
    snprintf(why, sizeof why, "%s", image.message);
    ok = false;
  }
  png_image_free(&image);
  return ok && turned(p, png_orientation(b));
}
#endif

#ifdef TG_HAVE_JPEG
typedef struct JpegError {
  struct jpeg_error_mgr base;
  jmp_buf back;
} JpegError;

static void jpeg_failed(j_common_ptr c) {
  JpegError *e = (JpegError *)c->err;
  c->err->format_message(c, why);
  longjmp(e->back, 1);
}

/* Treats one of libjpeg's warnings as an error: if the file ends early, libjpeg would fill the rest with
 * grey. */
static void jpeg_warned(j_common_ptr c, int level) {
  if (level < 0 && c->err->msg_code == JWRN_JPEG_EOF) jpeg_failed(c);
}

/* The orientation of the first Exif block of a JPEG, which is a marker. */
static int jpeg_orientation(const struct jpeg_decompress_struct *c) {
  static const char begin[] = {'E', 'x', 'i', 'f', 0, 0};
  for (jpeg_saved_marker_ptr m = c->marker_list; m; m = m->next)
    if (m->data_length > sizeof begin && !memcmp(m->data, begin, sizeof begin))
      return picture_orientation(m->data + sizeof begin, m->data_length - sizeof begin);
  return 1;
}

static bool jpeg_decode(Bytes b, Picture *p) {
  struct jpeg_decompress_struct c;
  JpegError e;
  c.err = jpeg_std_error(&e.base);
  e.base.error_exit = jpeg_failed;
  e.base.emit_message = jpeg_warned;
  if (setjmp(e.back)) {
    jpeg_destroy_decompress(&c);
    return false;
  }
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, (unsigned char *)(uintptr_t)b.at, (unsigned long)b.n);
  jpeg_save_markers(&c, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&c, TRUE);
  int orientation = jpeg_orientation(&c);
  c.out_color_space = JCS_RGB;
  /* Checked before libjpeg allocates memory of its own. */
  bool ok = room(b, p, (long)c.image_width, (long)c.image_height);
  if (ok) jpeg_start_decompress(&c);
  while (ok && c.output_scanline < c.output_height) {
    JSAMPROW row = p->rgb + (size_t)c.output_scanline * (size_t)p->width * 3;
    jpeg_read_scanlines(&c, &row, 1);
  }
  if (ok) jpeg_finish_decompress(&c);
  jpeg_destroy_decompress(&c);
  return ok && turned(p, orientation);
}
#endif

/* Reads a number of a PPM's header. It must be followed by a blank. */
static bool ppm_number(Bytes *b, long *out) {
  while (b->n && isspace(*b->at))
    b->at++, b->n--;
  *out = 0;
  bool any = false;
  for (; b->n && isdigit(*b->at) && *out < 1 << 20; b->at++, b->n--) {
    *out = *out * 10 + (*b->at - '0');
    any = true;
  }
  return any && b->n && isspace(*b->at);
}

static bool ppm_decode(Bytes b, Picture *p) {
  long width = 0, height = 0, most = 0;
  b.at += 2;
  b.n -= 2;
  bool ok = ppm_number(&b, &width) && ppm_number(&b, &height) && ppm_number(&b, &most) && most == 255;
  if (ok && !room(b, p, width, height)) return false;
  ok = ok && b.n - 1 >= (size_t)width * (size_t)height * 3;
  if (ok)
    memcpy(p->rgb, b.at + 1, (size_t)width * (size_t)height * 3);
  else
    snprintf(why, sizeof why, "no PPM of 8 bits, or cut off");
  return ok;
}

static bool decode(Bytes b, Picture *p) {
  if (b.n >= 2 && b.at[0] == 'P' && b.at[1] == '6') return ppm_decode(b, p);
  if (b.n >= 8 && !memcmp(b.at, "\x89PNG", 4)) {
#ifdef TG_HAVE_PNG
    return png_decode(b, p);
#else
    return snprintf(why, sizeof why,
                    "a PNG, and this tg was built without libpng (install libpng-dev, build again)"),
           false;
#endif
  }
  if (b.n >= 3 && !memcmp(b.at, "\xff\xd8\xff", 3)) {
#ifdef TG_HAVE_JPEG
    return jpeg_decode(b, p);
#else
    return snprintf(why, sizeof why,
                    "a JPEG, and this tg was built without libjpeg (install libjpeg-dev, build again)"),
           false;
#endif
  }
  return snprintf(why, sizeof why, "neither PNG nor JPEG nor PPM"), false;
}

const char *picture_decode(const void *bytes, size_t n, int64_t pixels, Picture *p) {
  *p = (Picture){0};
  if (decode((Bytes){bytes, n, pixels}, p)) return NULL;
  free(p->rgb);
  p->rgb = NULL;
  return why;
}

const char *picture_read(const char *path, Picture *p) {
  size_t n = 0;
  *p = (Picture){0};
  char *bytes = cli_read_file(path, &n);
  if (!bytes) {
    snprintf(why, sizeof why, "%s", strerror(errno));
    return why;
  }
  const char *wrong = picture_decode(bytes, n, (int64_t)MOST * MOST, p);
  free(bytes);
  return wrong;
}

/* ---- writing */
static bool png_encode(FILE *f, const Picture *p) {
#ifdef TG_HAVE_PNG
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)p->width,
                     .height = (png_uint_32)p->height,
                     .format = PNG_FORMAT_RGB};
  bool ok = png_image_write_to_stdio(&image, f, 0, p->rgb, 0, NULL) != 0;
  if (!ok) snprintf(why, sizeof why, "%s", image.message);
  return ok;
#else
  (void)f, (void)p;
  return snprintf(why, sizeof why,
                  "this tg was built without libpng (install libpng-dev, build again, or write a .ppm)"),
         false;
#endif
}

static bool ppm_encode(FILE *f, const Picture *p) {
  size_t n = (size_t)p->width * (size_t)p->height;
  bool ok = fprintf(f, "P6\n%d %d\n255\n", p->width, p->height) > 0 && fwrite(p->rgb, 3, n, f) == n;
  if (!ok) snprintf(why, sizeof why, "%s", strerror(errno));
  return ok;
}

static bool ends_with(const char *path, const char *end) {
  size_t n = strlen(path), m = strlen(end);
  return n > m && !strcmp(path + n - m, end);
}

const char *picture_refused(const char *path) {
  return ends_with(path, ".png") || ends_with(path, ".ppm") ? NULL : "a picture is written as .png or .ppm";
}

const char *picture_write(const char *path, const Picture *p) {
  bool ppm = ends_with(path, ".ppm");
  if (picture_refused(path)) return picture_refused(path);
  FILE *f = fopen(path, "wb");
  bool ok = f && (ppm ? ppm_encode(f, p) : png_encode(f, p));
  if (!f || (fclose(f) && ok)) {
    ok = false;
    snprintf(why, sizeof why, "%s", strerror(errno));
  }
  return ok ? NULL : why;
}

/* ---- resizing: each axis is filtered by a triangle whose radius is one pixel of the coarser of the two
 * grids */
typedef struct Taps {
  int first, n;
} Taps;

static float weight_at(double centre, double reach, int i) {
  double d = fabs(((double)i + 0.5 - centre) / reach);
  return d < 1 ? (float)(1 - d) : 0;
}

static Taps taps_of(int at, int from, int to, double *centre, double *reach) {
  double scale = (double)from / (double)to;
  *centre = ((double)at + 0.5) * scale;
  *reach = scale > 1 ? scale : 1;
  int first = (int)floor(*centre - *reach), last = (int)ceil(*centre + *reach);
  first = first < 0 ? 0 : first;
  last = last > from ? from : last;
  return (Taps){first, last - first};
}

void picture_resize(const Picture *p, int width, int height, float *out) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      double cx, cy, rx, ry;
      Taps tx = taps_of(x, p->width, width, &cx, &rx), ty = taps_of(y, p->height, height, &cy, &ry);
      float sum[3] = {0}, all = 0;
      for (int j = ty.first; j < ty.first + ty.n; j++)
        for (int i = tx.first; i < tx.first + tx.n; i++) {
          float w = weight_at(cx, rx, i) * weight_at(cy, ry, j);
          const uint8_t *c = p->rgb + 3 * ((size_t)j * (size_t)p->width + (size_t)i);
          all += w;
          for (int k = 0; k < 3; k++)
            sum[k] += w * (float)c[k];
        }
      for (int k = 0; k < 3; k++)
        *out++ = all > 0 ? sum[k] / all : 0;
    }
}
