/* classify.c: what an ONNX classifier sees in a picture.
 *   classify MODEL.onnx PICTURE.ppm|ARRAY.npy [LABELS]
 * The model takes (1, 3, h, w), RGB from -1 to 1. A PPM is what most tools write: convert x.jpg x.ppm; an
 * array is u8, (h, w, 3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tg_io.h>

/* u8 (h, w, 3) */
static TgTensor *picture(TgContext *ctx, const char *path) {
  size_t n = strlen(path);
  if (n > 4 && !strcmp(path + n - 4, ".npy")) return tg_npy_load_file(ctx, path);
  FILE *f = fopen(path, "rb");
  int w = 0, h = 0, most = 0;
  TgTensor *t = NULL;
  if (f && fscanf(f, "P6 %d %d %d", &w, &h, &most) == 3 && most == 255 && fgetc(f) != EOF && w > 0 && h > 0) {
    size_t bytes = (size_t)w * (size_t)h * 3;
    unsigned char *p = malloc(bytes);
    if (p && fread(p, 1, bytes, f) == bytes) t = tg_from(ctx, p, TG_U8, TG_SHAPE(h, w, 3));
    free(p);
  }
  if (f) fclose(f);
  return t;
}

static const char *label(char *labels, int wanted) {
  for (int i = 0; labels && i < wanted; i++)
    labels = (labels = strchr(labels, '\n')) ? labels + 1 : NULL;
  return labels ? labels : "";
}

int main(int argc, char **argv) {
  TgContext *ctx = tg_open(NULL);
  TgOnnx *model = argc > 2 ? tg_onnx_open(ctx, argv[1]) : NULL;
  TgTensor *x = argc > 2 ? picture(ctx, argv[2]) : NULL, *probability = NULL, *class = NULL, *top;
  TgOnnxValue in;
  if (!model || !x || !tg_onnx_input(model, 0, &in) || in.ndim != 4) {
    fprintf(stderr, "usage: classify MODEL.onnx PICTURE.ppm|ARRAY.npy [LABELS]  %s\n", tg_errmsg(ctx));
    return 1;
  }
  x = tg_permute(tg_float(x), 3, (const int64_t[]){2, 0, 1}); /* (3, h, w) */
  x = tg_interpolate(x, TG_SHAPE(in.dims[2], in.dims[3]));
  x = tg_unsqueeze(tg_sub_scalar(tg_div_scalar(x, 127.5), 1), 0);
  tg_onnx_run(model, &in.name, &x, 1, &probability, 1);
  top = tg_topk(tg_reshape(probability, TG_SHAPE(-1)), 5, &class);

  static char labels[1 << 20];
  FILE *f = argc > 3 ? fopen(argv[3], "rb") : NULL;
  if (f) labels[fread(labels, 1, sizeof labels - 1, f)] = 0, fclose(f);
  double p[5], k[5];
  if (!tg_read_f64(top, p, 5) && !tg_read_f64(class, k, 5))
    for (int i = 0; i < 5; i++)
      printf("%5.1f %%  %4d  %.*s\n", 100 * p[i], (int)k[i], (int)strcspn(label(labels, (int)k[i]), "\r\n"),
             label(labels, (int)k[i]));
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_onnx_free(model);
  tg_close(ctx);
  return bad != 0;
}
