/* calls.h: random arguments for the calls that callgen.c writes. Most are sensible, some are NULL, negative,
 * huge or NaN; an array always has as many elements as a call may say. */
#ifndef TG_FUZZ_CALLS_H
#define TG_FUZZ_CALLS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "tg.h"

void api_call(int i); /* the i-th function, 0 .. api_calls - 1 */
extern const int api_calls;

void at_call(const char *name);
void made_tensor(TgTensor *t);
void made_variable(TgVariable *v);
void made_jit(TgJit *j);
bool rarely(void);
bool often(void);
bool in_bool(void);
int in_enum(void);
int64_t in_int64(void);
int64_t in_count(void); /* of an array, or -1 */
size_t in_room(void);
double in_double(void);
TgContext *in_context(void);
TgTensor *in_tensor(void);
TgTensor *const *in_tensors(void);
const int64_t *in_sizes(bool small);
const double *in_doubles(void);
const char *in_text(void);
const void *in_bytes(void);
const TgIndex *in_index(void);
const TgNamedSize *in_named(void);
TgVariable *in_variable(void);
TgJit *in_jit(void);
TgGradientFn in_gradient_fn(void);
TgJitFn in_jit_fn(void);
TgAxes in_axes(void);
TgSizes in_spatial(void);
int64_t *out_int64(void);
double *out_doubles(void);
const char **out_texts(void);
const char *const *in_devices(void);
void *out_bytes(void);
TgTensor **out_tensors(void);
#endif
