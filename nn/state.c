/* state.c: the tensors of layers under torch's names. In: a layer and a prefix. Out: entries of a TgState,
 * which borrow the layer's tensors. */
#include "tg_nn.h"
#include "tg_io.h"
#include <stdio.h>

typedef struct Part {
  const char *name;
  TgTensor *t;
  bool may_lack;
} Part;

static TgStatus put(TgState *s, const char *prefix, const Part *p, int n) {
  TgStatus status = TG_OK;
  for (int i = 0; i < n && !status; i++) {
    char name[512];
    if (!p[i].t && p[i].may_lack) continue;
    if (snprintf(name, sizeof name, "%s%s%s", prefix ? prefix : "", prefix && *prefix ? "." : "",
                 p[i].name) >= (int)sizeof name)
      return TG_ERR_LIMIT;
    status = tg_state_put(s, name, p[i].t);
  }
  return status;
}

TgStatus tg_linear_state(const TgLinear *l, TgState *s, const char *prefix) {
  return put(s, prefix, (Part[]){{"weight", l->weight, false}, {"bias", l->bias, true}}, 2);
}

TgStatus tg_conv2d_state(const TgConv2d *l, TgState *s, const char *prefix) {
  return put(s, prefix, (Part[]){{"weight", l->weight, false}, {"bias", l->bias, true}}, 2);
}

TgStatus tg_layer_norm_state(const TgLayerNorm *l, TgState *s, const char *prefix) {
  return put(s, prefix, (Part[]){{"weight", l->weight, true}, {"bias", l->bias, true}}, 2);
}

TgStatus tg_batch_norm_state(const TgBatchNorm *l, TgState *s, const char *prefix) {
  return put(s, prefix,
             (Part[]){{"weight", l->weight, true},
                      {"bias", l->bias, true},
                      {"running_mean", l->running_mean, true},
                      {"running_var", l->running_var, true}},
             4);
}

TgStatus tg_embedding_state(const TgEmbedding *l, TgState *s, const char *prefix) {
  return put(s, prefix, (Part[]){{"weight", l->weight, false}}, 1);
}
