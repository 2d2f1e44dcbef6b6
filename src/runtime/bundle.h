/* bundle.h: kernels compiled elsewhere, in one piece of bytes: objects, each for a processor with certain
 * features, and where each kernel is in them. */
#ifndef TG_BUNDLE_H
#define TG_BUNDLE_H
#include "runtime/device.h"

void bundle_free(Bundle *b); /* NULL is fine */
/* Adds what bytes hold to *b, which is made where it is NULL. TG_ERR_VALUE: they are no bundle, or damaged,
 * and *b is as before. */
TgStatus bundle_read(TgMem *mem, TgError *err, const void *bytes, size_t nbytes, Bundle **b);
/* All of it as bytes. False: out of memory. */
bool bundle_write(const Bundle *b, Str *out);
/* An object, and then its kernels. An object that is there already is not added again; what follows is. */
bool bundle_object(Bundle *b, const char *features, const char *names, const void *bytes, size_t nbytes);
bool bundle_kernel(Bundle *b, const uint8_t text[32], const char *symbol);
Bundle *bundle_new(TgMem *mem);
bool bundle_add(Bundle *to, const Bundle *from); /* all that another has; false: out of memory */
/* Whether it has the kernel for processors with other features alone: their names; NULL: it has not. */
const char *bundle_elsewhere(const Bundle *b, const uint8_t text[32]);
#endif
