/* nn_private.h: what the files of nn/ share. */
#ifndef TG_NN_PRIVATE_H
#define TG_NN_PRIVATE_H
#include "tg_nn.h"

/* name under prefix into s; TG_ERR_NOMEM: t is NULL, TG_ERR_LIMIT: the name is too long */
TgStatus nn_state_put(TgState *s, const char *prefix, const char *name, TgTensor *t);
/* f32 () on the device (NULL: the default), kept, in memory of its own. NULL: an error in the context. */
TgTensor *nn_number(TgContext *ctx, double value, TgDType dtype, const char *device);
/* value into the memory of a number, at once */
TgStatus nn_number_set(TgTensor *number, double value);
/* A step where every new value is `finite ? new : old` and gradients are multiplied by `inverse`; more: n
 * tensors to compute besides. All may be NULL, 0. */
TgStatus nn_optim_step(TgOptim *opt, TgTensor *inverse, TgTensor *finite, TgTensor *const *more, int n);
/* The gradients of an optimiser's parameters, and of those that a group has; as tg_module_parameters. */
int nn_optim_gradients(const TgOptim *opt, TgTensor **out, int cap);
TgContext *nn_optim_context(const TgOptim *opt);
/* tg_options_read into *to, a T */
#define NN_OPTIONS(ctx, name, T, to, given) tg_options_read((ctx), (name), #T, (to), sizeof(T), (given))
/* Appends to text of cap bytes, of which *n are written; *n goes on past cap, as snprintf's result does. */
__attribute__((format(printf, 4, 5))) void nn_text(char *to, size_t cap, int *n, const char *form, ...);
/* layers.c: what layers are made of. A kept parameter; one that is uniform within bound, or 1/sqrt(fan_in), of
 * which no other handle is left; zeros. */
TgTensor *nn_parameter(TgTensor *t);
TgTensor *nn_uniform(TgContext *ctx, int n, const int64_t *dims, double bound);
TgTensor *nn_within(TgContext *ctx, int n, const int64_t *dims, int64_t fan_in);
TgTensor *nn_zeros(TgContext *ctx, bool wanted, int n, const int64_t *dims);
/* form takes a string, the layer, and two lld; false */
bool nn_refuse(TgContext *ctx, TgStatus status, const char *form, const char *layer, int64_t a, int64_t b);
bool nn_positive(TgContext *ctx, const char *layer, int64_t a, int64_t b);
const char *nn_truth(bool b);

/* What is built from here to nn_name_end is part of the layer that `title` names. */
static inline bool nn_name_begin(TgTensor *x, const char *title) {
  return x && !tg_name_begin(tg_context(x), title);
}

static inline TgTensor *nn_name_end(TgTensor *x, bool begun, TgTensor *y) {
  if (begun) tg_name_end(tg_context(x));
  return y;
}

/* The exported run of a layer, whose work NAME_run does. */
#define NAMED_RUN(type, name, title)                                                                         \
  TgTensor *tg_##name##_run(const type *l, TgTensor *x) {                                                    \
    if (!l) return tg_set_error(tg_context(x), TG_ERR_VALUE, title ": the layer is NULL"), NULL;             \
    bool named = nn_name_begin(x, title);                                                                    \
    TgTensor *y = name##_run(l, x);                                                                          \
    return nn_name_end(x, named, y);                                                                         \
  }

/* What a layer has besides run: its table, and what follows from it. LAYER_OF: with a table that others share. */
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
