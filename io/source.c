/* source.c: a u8 tensor as bytes, for readers and as a stream; errors; memory that grows. In: a 1-D u8
 * tensor. Out: pointers to its contents, and views of parts of it. Bytes are read where the file is
 * mapped; only a device with memory of its own makes a copy of them. */
#define _POSIX_C_SOURCE 200809L
#include "io_private.h"
#include <stdio.h>

static bool say(TgContext *ctx, TgStatus status, const char *what, const char *name, const char *format,
                va_list ap) {
  char text[900];
  int n = what ? snprintf(text, sizeof text, "%s: %s%s", what, name ? name : "", name ? ": " : "") : 0;
  /* a long path is cut, so that the message remains */
  if (n < 0 || n > (int)sizeof text - 200) n = (int)sizeof text - 200;
  vsnprintf(text + n, sizeof text - (size_t)n, format, ap);
  tg_set_error(ctx, status, text);
  return false;
}

bool io_fail(const Source *s, TgStatus status, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  say(s->ctx, status, s->what, s->name, format, ap);
  va_end(ap);
  return false;
}

bool ctx_fail(TgContext *ctx, TgStatus status, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  say(ctx, status, NULL, NULL, format, ap);
  va_end(ap);
  return false;
}

void *io_grow(TgContext *ctx, void *at, size_t n, size_t *cap, size_t size) {
  if (n < *cap) return at;
  size_t want = *cap ? *cap * 2 : 16;
  void *p = want > SIZE_MAX / 2 / size ? NULL : tg_alloc(ctx, want * size);
  if (!p) return NULL;
  if (at) memcpy(p, at, n * size);
  tg_free(ctx, at);
  *cap = want;
  return p;
}

bool source_open(Source *s, TgTensor *t, const char *what, const char *name) {
  *s = (Source){tg_context(t), t, NULL, (uint64_t)tg_numel(t), NULL, what, name};
  if (!t || tg_error(s->ctx)) return false;
  if (tg_dtype(t) != TG_U8 || tg_ndim(t) != 1)
    return io_fail(s, TG_ERR_VALUE, "a file is a 1-D tensor of u8, this is %s", tg_describe(t));
  if ((s->p = tg_map(t))) return true;
  if (tg_error(s->ctx) != TG_ERR_DEVICE) return false;
  tg_clear_error(s->ctx); /* the device has memory of its own: copy */
  s->p = s->copy = tg_alloc(s->ctx, s->n + 1);
  return s->copy && tg_read(t, s->copy, s->n) == TG_OK;
}

void source_close(Source *s) {
  tg_free(s->ctx, s->copy);
  s->copy = NULL;
} /* may be called after a failed open */

TgTensor *source_view(const Source *s, uint64_t at, TgDType d, int n, const int64_t *dims) {
  uint64_t nbytes = tg_dtype_size(d);
  bool fits = true;
  for (int i = 0; i < n; i++)
    fits = fits && dims[i] >= 0;
  for (int i = 0; i < n; i++)
    if (fits && dims[i] == 0) nbytes = 0;
  for (int i = 0; i < n && nbytes; i++)
    fits = fits && !__builtin_mul_overflow(nbytes, (uint64_t)dims[i], &nbytes);
  if (!fits || !inside(at, nbytes, s->n)) {
    io_fail(s, TG_ERR_VALUE, "a tensor lies outside of the file");
    return NULL;
  }
  if (!nbytes) return tg_zeros(s->ctx, n, dims, .dtype = d);
  return tg_reshape(
      tg_bitcast(tg_shrink(s->t, &(int64_t){(int64_t)at}, &(int64_t){(int64_t)(at + nbytes)}), d), n, dims);
}

TgTensor *file_tensor(TgContext *ctx, const char *path) {
  return tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1));
}

/* ---- streams */
struct TgTensorIO {
  Source s;
  uint64_t at;
};

TgTensorIO *tg_tensor_io(TgTensor *t) {
  TgTensorIO *io = t ? tg_alloc(tg_context(t), sizeof *io) : NULL;
  if (io && !source_open(&io->s, t, "tensor_io", NULL)) {
    tg_tensor_io_free(io);
    return NULL;
  }
  return io;
}

size_t tg_tensor_io_read(TgTensorIO *io, void *out, size_t nbytes) {
  if (!io || io->at >= io->s.n) return 0;
  size_t n = nbytes < io->s.n - io->at ? nbytes : (size_t)(io->s.n - io->at);
  if (n) memcpy(out, io->s.p + io->at, n);
  io->at += n;
  return n;
}

int64_t tg_tensor_io_seek(TgTensorIO *io, int64_t offset, int whence) {
  if (!io) return -1;
  int64_t from = whence == SEEK_SET   ? 0
                 : whence == SEEK_CUR ? (int64_t)io->at
                 : whence == SEEK_END ? (int64_t)io->s.n
                                      : -1;
  if (from < 0 || __builtin_add_overflow(from, offset, &from) || from < 0) return -1;
  io->at = (uint64_t)from;
  return from;
}

int64_t tg_tensor_io_tell(const TgTensorIO *io) { return io ? (int64_t)io->at : -1; }

void tg_tensor_io_free(TgTensorIO *io) {
  if (!io) return;
  TgContext *ctx = io->s.ctx;
  source_close(&io->s);
  tg_free(ctx, io);
}
