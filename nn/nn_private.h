/* nn_private.h: declarations that the files of nn/ share. */
#ifndef TG_NN_PRIVATE_H
#define TG_NN_PRIVATE_H
#include "tg_nn.h"

/* Puts t into s under prefix and name. Returns TG_ERR_NOMEM if t is NULL, TG_ERR_LIMIT if the name is too
 * long. */
TgStatus nn_state_put(TgState *s, const char *prefix, const char *name, TgTensor *t);
/* Returns a kept tensor of shape (1) in its own memory, on the device (NULL: the default). NULL: failed, with
 * the error in the context. */
TgTensor *nn_number(TgContext *ctx, double value, TgDType dtype, const char *device);
/* Writes a value into the memory of a number, at once. */
TgStatus nn_number_set(TgTensor *number, double value);
/* Does a step in which gradients are multiplied by `inverse` and every new value is `finite ? new : old`.
 * more: n tensors to compute in the same schedule. All of these may be NULL or 0. */
TgStatus nn_optim_step(TgOptim *opt, TgTensor *inverse, TgTensor *finite, TgTensor *const *more, int n);
/* Writes the gradients of an optimiser's parameters, and for a group those of its optimisers; at most cap of
 * them. Returns how many there are. */
int nn_optim_gradients(const TgOptim *opt, TgTensor **out, int cap);
TgContext *nn_optim_context(const TgOptim *opt);
/* Reads options into *to, which is a T, with tg_options_read. */
#define NN_OPTIONS(ctx, name, T, to, given) tg_options_read((ctx), (name), #T, (to), sizeof(T), (given))
/* Appends to a text of cap bytes, of which *n are written. *n may grow past cap, as the result of snprintf
 * does. */
__attribute__((format(printf, 4, 5))) void nn_text(char *to, size_t cap, int *n, const char *form, ...);
/* layers.c: the parameters of layers, all of them kept: t itself; uniform values within +- bound, or within
 * +- 1/sqrt(fan_in); zeros. nn_uniform and nn_within leave no other handle. */
TgTensor *nn_parameter(TgTensor *t);
TgTensor *nn_uniform(TgContext *ctx, int n, const int64_t *dims, double bound);
TgTensor *nn_within(TgContext *ctx, int n, const int64_t *dims, int64_t fan_in);
TgTensor *nn_zeros(TgContext *ctx, bool wanted, int n, const int64_t *dims);
/* Sets an error and returns false. form takes a string, the layer, and two lld. */
bool nn_refuse(TgContext *ctx, TgStatus status, const char *form, const char *layer, int64_t a, int64_t b);
bool nn_positive(TgContext *ctx, const char *layer, int64_t a, int64_t b);
const char *nn_truth(bool b);

/* Everything that is built from here to nn_name_end belongs to the layer with this title. */
static inline bool nn_name_begin(TgTensor *x, const char *title) {
  return x && !tg_name_begin(tg_context(x), title);
}

static inline TgTensor *nn_name_end(TgTensor *x, bool begun, TgTensor *y) {
  if (begun) tg_name_end(tg_context(x));
  return y;
}

/* Defines the exported run of a layer. NAME_run does the work. */
#define NAMED_RUN(type, name, title)                                                                         \
  TgTensor *tg_##name##_run(const type *l, TgTensor *x) {                                                    \
    if (!l) return tg_set_error(tg_context(x), TG_ERR_VALUE, title ": the layer is NULL"), NULL;             \
    bool named = nn_name_begin(x, title);                                                                    \
    TgTensor *y = name##_run(l, x);                                                                          \
    return nn_name_end(x, named, y);                                                                         \
  }

/* Defines a layer's table and the functions derived from it. LAYER_OF: the table is shared with another
 * layer. */
#define LAYER_OF(type, name, title, fields)                                                                  \
  const TgModule *tg_##name##_module(void) {                                                                 \
    static const TgModule m = {title, sizeof(type), fields, (int)(sizeof fields / sizeof *fields),           \
                               name##_describe};                                                             \
    return &m;                                                                                               \
  }                                                                                                          \
  void tg_##name##_free(type *l) { tg_module_free(tg_##name##_module, l); }                                  \
  TgStatus tg_##name##_state(const type *l, TgState *s, const char *prefix) {                                \
    return tg_module_state(tg_##name##_module, l, s, prefix);                                                \
  }
#define LAYER(type, name, title, ...)                                                                        \
  static const TgField name##_fields[] = {__VA_ARGS__};                                                      \
  LAYER_OF(type, name, title, name##_fields)
#endif
