/* bundle.h: kernels that were compiled elsewhere, as one sequence of bytes. A bundle holds objects, each for
 * a processor with certain features, and records which kernels each object contains. */
#ifndef TG_BUNDLE_H
#define TG_BUNDLE_H
#include "runtime/device.h"

void bundle_free(Bundle *b); /* NULL is allowed */
/* Adds the bundle in `bytes` to *b, which is created if it is NULL. Returns TG_ERR_VALUE if the bytes are not
 * a bundle or are damaged; *b is then unchanged. */
TgStatus bundle_read(TgMem *mem, TgError *err, const void *bytes, size_t nbytes, Bundle **b);
/* Appends the whole bundle to `out` as bytes. Returns false if out of memory. */
bool bundle_write(const Bundle *b, Str *out);
/* Adds an object, then the kernels in it. An object that is in the bundle already is not added again, but the
 * kernels that follow are. Both return false if out of memory. */
bool bundle_object(Bundle *b, const char *features, const char *names, const void *bytes, size_t nbytes);
bool bundle_kernel(Bundle *b, const uint8_t text[32], const char *symbol);
Bundle *bundle_new(TgMem *mem);
/* Adds everything in `from`. Returns false if out of memory. */
bool bundle_add(Bundle *to, const Bundle *from);
/* For an error message: returns the names of the processor features of an object with this kernel, or NULL if
 * there is none. */
const char *bundle_elsewhere(const Bundle *b, const uint8_t text[32]);
#endif
