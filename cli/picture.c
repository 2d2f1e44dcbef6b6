/* picture.c: PNG by libpng, JPEG by libjpeg, where they were found when this was built; PPM always. In: a
 * file. Out: 8-bit RGB; transparency is dropped, grey becomes three channels. PNG and PPM are written, too.
 */
#include "picture.h"
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

enum { MOST = 1 << 14 }; /* pixels of a side */

static char why[300];

static bool room(Picture *p, long width, long height) {
  if (width < 1 || height < 1 || width > MOST || height > MOST) return false;
  *p = (Picture){(int)width, (int)height, malloc((size_t)width * (size_t)height * 3)};
  return p->rgb != NULL;
}

#ifdef TG_HAVE_PNG
static bool png_decode(const char *path, Picture *p) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_file(&image, path)) {
    snprintf(why, sizeof why, "%s", image.message);
    return false;
  }
  image.format = PNG_FORMAT_RGB;
  bool ok = room(p, (long)image.width, (long)image.height);
  if (ok) ok = png_image_finish_read(&image, &(png_color){0, 0, 0}, p->rgb, 0, NULL) != 0;
  if (!ok) snprintf(why, sizeof why, "%s", *image.message ? image.message : "too large");
  png_image_free(&image);
  return ok;
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

/* Of its warnings one is an error: where the file ends, it would go on in grey. */
static void jpeg_warned(j_common_ptr c, int level) {
  if (level < 0 && c->err->msg_code == JWRN_JPEG_EOF) jpeg_failed(c);
}

static bool jpeg_decode(FILE *f, Picture *p) {
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
  jpeg_stdio_src(&c, f);
  jpeg_read_header(&c, TRUE);
  c.out_color_space = JCS_RGB;
  jpeg_start_decompress(&c);
  bool ok = room(p, (long)c.output_width, (long)c.output_height);
  while (ok && c.output_scanline < c.output_height) {
    JSAMPROW row = p->rgb + (size_t)c.output_scanline * (size_t)p->width * 3;
    jpeg_read_scanlines(&c, &row, 1);
  }
  if (ok)
    jpeg_finish_decompress(&c);
  else
    snprintf(why, sizeof why, "too large");
  jpeg_destroy_decompress(&c);
  return ok;
}
#endif

static bool ppm_decode(FILE *f, Picture *p) {
  int width, height, most;
  bool ok = fscanf(f, "P6 %d %d %d", &width, &height, &most) == 3 && most == 255 && fgetc(f) != EOF;
  ok = ok && room(p, width, height) &&
       fread(p->rgb, 3, (size_t)width * (size_t)height, f) == (size_t)width * (size_t)height;
  if (!ok) snprintf(why, sizeof why, "no PPM of 8 bits, or cut off");
  return ok;
}

static bool decode(FILE *f, const char *path, Picture *p) {
  unsigned char magic[8] = {0};
  size_t n = fread(magic, 1, sizeof magic, f);
  rewind(f);
  (void)path;
  if (n >= 2 && magic[0] == 'P' && magic[1] == '6') return ppm_decode(f, p);
  if (n == 8 && !memcmp(magic, "\x89PNG", 4)) {
#ifdef TG_HAVE_PNG
    return png_decode(path, p);
#else
    return snprintf(why, sizeof why,
                    "a PNG, and this tg was built without libpng (install libpng-dev, build again)"),
           false;
#endif
  }
  if (n >= 3 && !memcmp(magic, "\xff\xd8\xff", 3)) {
#ifdef TG_HAVE_JPEG
    return jpeg_decode(f, p);
#else
    return snprintf(why, sizeof why,
                    "a JPEG, and this tg was built without libjpeg (install libjpeg-dev, build again)"),
           false;
#endif
  }
  return snprintf(why, sizeof why, "neither PNG nor JPEG nor PPM"), false;
}

const char *picture_read(const char *path, Picture *p) {
  *p = (Picture){0};
  FILE *f = fopen(path, "rb");
  if (!f) {
    snprintf(why, sizeof why, "%s", strerror(errno));
    return why;
  }
  bool ok = decode(f, path, p);
  fclose(f);
  if (ok) return NULL;
  free(p->rgb);
  p->rgb = NULL;
  return why;
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

/* ---- resizing: each axis by a triangle as wide as a pixel of the larger of the two grids */
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
