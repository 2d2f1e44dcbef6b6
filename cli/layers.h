/* layers.h: the table of `tg run --bench`: kernels, their measured times, and the nodes that they compute. */
#ifndef TG_LAYERS_H
#define TG_LAYERS_H
#include "cli.h"
#include "tg_io.h"

typedef struct Layers Layers;
Layers *layers_new(
    bool varies); /* varies: sizes vary, so rates in GFLOPS are not shown. Returns NULL if out of memory. */
void layers_free(Layers *l);
void layers_run_begin(Layers *l);                  /* before the launches of one run */
void layers_launch(const TgLaunch *k, void *user); /* each launch, for tg_watch_launches */
void layers_run_end(Layers *l);                    /* after the launches */
void layers_node(const TgOnnxNode *n, void *user); /* for tg_onnx_watch */
/* Called after all nodes were seen. Returns false on an error, which is in the context. */
bool layers_plan(Layers *l, TgTensor *const *out, int n);
void layers_say(Layers *l, bool json, int most); /* most: rows of the table; JSON has all rows */
#endif
