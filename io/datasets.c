/* datasets.c: MNIST's idx files and CIFAR-10's binary batches, from a folder. In: files, gz or not. Out:
 * u8 tensors, which are views of the files that are not gz. */
#include "io_private.h"
#include <stdio.h>

TgTensor *tg_open_data(TgContext *ctx, const char *path) {
  char gz[4200];
  if (!path) {
    tg_set_error(ctx, TG_ERR_VALUE, "open_data: no path");
    return NULL;
  }
  int n = snprintf(gz, sizeof gz, "%s.gz", path);
  FILE *f = fopen(path, "rb"); /* which of the two files exists */
  bool packed = !f && n > 0 && n < (int)sizeof gz && (f = fopen(gz, "rb")) != NULL;
  if (f) fclose(f);
  return packed ? tg_gunzip(file_tensor(ctx, gz)) : file_tensor(ctx, path);
}

static uint32_t big32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

TgTensor *tg_idx(TgTensor *file) {
  Source s;
  TgTensor *t = NULL;
  int64_t dims[TG_MAX_RANK], nelem = 1;
  bool ok = source_open(&s, file, "idx", NULL);
  int n = ok && s.n >= 4 ? s.p[3] : 0;
  if (ok)
    ok = (s.n >= 4 && !s.p[0] && !s.p[1] && s.p[2] == 8 && n && n <= TG_MAX_RANK &&
          inside(4, 4 * (uint64_t)n, s.n)) ||
         io_fail(&s, TG_ERR_VALUE, "no idx file of bytes");
  for (int i = 0; i < n && ok; i++) {
    dims[i] = big32(s.p + 4 + 4 * i);
    ok = !__builtin_mul_overflow(nelem, dims[i], &nelem);
    if (dims[i] == 0) ok = io_fail(&s, TG_ERR_VALUE, "an axis of size 0");
  }
  uint64_t head = 4 + 4 * (uint64_t)n;
  if (ok) ok = (uint64_t)nelem == s.n - head;
  if (!ok && file)
    io_fail(&s, TG_ERR_VALUE, "%llu bytes, which is not what its sizes say", (unsigned long long)s.n);
  if (ok) t = source_view(&s, head, TG_U8, n, dims);
  if (file) source_close(&s);
  return t;
}

static TgTensor *part(TgContext *ctx, const char *folder, const char *name) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
    ctx_fail(ctx, TG_ERR_VALUE, "the path of %s is too long", name);
    return NULL;
  }
  return tg_open_data(ctx, path);
}

TgStatus tg_mnist(TgContext *ctx, const char *folder, TgTensor *out[4]) {
  static const char *const names[4] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                       "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  if (!ctx || !folder || !out) return TG_ERR_VALUE;
  for (int i = 0; i < 4; i++) {
    TgTensor *t = tg_idx(part(ctx, folder, names[i]));
    if (!t) return tg_error(ctx);
    bool fits = i % 2 ? tg_ndim(t) == 1 && tg_dim(t, 0) == tg_dim(out[i - 1], 0)
                      : tg_ndim(t) == 3 && tg_dim(t, 1) == 28 && tg_dim(t, 2) == 28;
    if (!fits) {
      ctx_fail(ctx, TG_ERR_VALUE, "mnist: %s in %.600s is %s", names[i], folder, tg_describe(t));
      return TG_ERR_VALUE;
    }
    out[i] = i % 2 ? t : tg_unsqueeze(t, 1);
  }
  return tg_error(ctx);
}

/* Each record is a label and 3 planes of 32 x 32. Joins the batch files. */
static bool batches(TgContext *ctx, const char *folder, const char *const *names, int n, TgTensor **x,
                    TgTensor **y) {
  TgTensor *xs[5], *ys[5];
  for (int i = 0; i < n; i++) {
    TgTensor *t = part(ctx, folder, names[i]);
    if (!t) return false;
    int64_t k = tg_numel(t);
    if (!k || k % 3073)
      return ctx_fail(ctx, TG_ERR_VALUE, "cifar: %s in %.600s has %lld bytes, no whole number of records",
                      names[i], folder, (long long)k);
    t = tg_reshape(t, TG_SHAPE(-1, 3073));
    ys[i] = tg_select(t, 1, 0);
    xs[i] = tg_reshape(tg_slice(t, 1, 1, 3073), TG_SHAPE(-1, 3, 32, 32));
  }
  *x = n == 1 ? xs[0] : tg_cat(xs, n, 0);
  *y = n == 1 ? ys[0] : tg_cat(ys, n, 0);
  return *x && *y;
}

TgStatus tg_cifar(TgContext *ctx, const char *folder, TgTensor *out[4]) {
  static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                      "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  if (!ctx || !folder || !out) return TG_ERR_VALUE;
  bool ok = batches(ctx, folder, names, 5, &out[0], &out[1]) &&
            batches(ctx, folder, names + 5, 1, &out[2], &out[3]);
  return ok ? TG_OK : tg_error(ctx);
}
