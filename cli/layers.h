/* layers.h: the table of `tg run --bench`: kernels, their measured times, the nodes that they compute. */
#ifndef TG_LAYERS_H
#define TG_LAYERS_H
#include "cli.h"
#include "tg_io.h"

typedef struct Layers Layers;
Layers *layers_new(
    bool varies); /* varies: work is counted for the largest sizes, and not told. NULL: out of memory */
void layers_free(Layers *l);
void layers_run_begin(Layers *l);                  /* then the launches of one run, .. */
void layers_launch(const TgLaunch *k, void *user); /* .. for tg_watch_launches .. */
void layers_run_end(Layers *l);                    /* .. and its end */
void layers_node(const TgOnnxNode *n, void *user); /* for tg_onnx_watch */
bool layers_plan(Layers *l, TgTensor *const *out,
                 int n);                         /* after the nodes; false: an error of the context */
void layers_say(Layers *l, bool json, int most); /* most: rows of a table; JSON has them all */
#endif
