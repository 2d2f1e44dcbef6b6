/* bundle.c: compiled kernels (tg_bundle) in a file. In: a context and a path. Out: the file, or the
 * kernels in the context. */
#include "io_private.h"
#include <errno.h>

TgStatus tg_bundle_save(TgContext *ctx, const char *path) {
  size_t n = 0;
  NewFile f = {.fd = -1};
  if (!ctx) return TG_ERR_VALUE;
  if (!path) return ctx_fail(ctx, TG_ERR_VALUE, "bundle_save: no path"), tg_error(ctx);
  const void *bytes = tg_bundle(ctx, &n);
  if (!bytes) return tg_error(ctx);
  bool ok = file_begin(&f, path) && file_write(&f, bytes, n);
  ok = file_end(&f, ok);
  int e = errno;
  if (!ok) ctx_fail(ctx, TG_ERR_IO, "bundle_save: %.600s: %s", path, strerror(e));
  return ok ? TG_OK : TG_ERR_IO;
}

TgStatus tg_bundle_load(TgContext *ctx, const char *path) {
  if (!ctx) return TG_ERR_VALUE;
  if (tg_error(ctx) || tg_scope_begin(ctx)) return tg_error(ctx);
  TgTensor *file = path ? file_tensor(ctx, path) : NULL;
  size_t n = tg_nbytes(file);
  void *bytes = file ? tg_alloc(ctx, n + 1) : NULL;
  if (!path) ctx_fail(ctx, TG_ERR_VALUE, "bundle_load: no path");
  if (bytes && !tg_read(file, bytes, n)) tg_bundle_use(ctx, bytes, n);
  tg_free(ctx, bytes);
  tg_scope_end(ctx);
  return tg_error(ctx);
}
