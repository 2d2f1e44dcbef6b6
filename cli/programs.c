/* programs.c: the programs of programs.h. In: a context. Out: graphs of known size and shape, realized once
 * per step. */
#include "programs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A block of a transformer. */
typedef struct Block {
  TgLayerNorm ln1, ln2;
  TgLinear qkv, out, up, down;
} Block;

struct ProgramState {
  TgContext *ctx;
  int which, n;
  TgTensor *x, *y, *z; /* inputs, made with tg_keep */
  TgLinear *linear;
  int nlinear, nblock;
  TgConv2d conv[4];
  TgBatchNorm bn[2];
  TgEmbedding token, position;
  TgLayerNorm ln;
  Block *block;
  const struct GptSizes *gpt;
  TgTensor **param;
  int nparam, room;
  TgOptim *opt;
};

/* ---- parameters and data */
static bool param(ProgramState *p, TgTensor *t) {
  if (!t) return true; /* no bias, or an error in the context */
  if (p->nparam == p->room) {
    TgTensor **more = realloc(p->param, sizeof *more * (size_t)(2 * p->room + 16));
    if (!more) return false;
    p->param = more;
    p->room = 2 * p->room + 16;
  }
  p->param[p->nparam++] = t;
  return true;
}

/* Realizes all parameters and makes an Adam optimiser for them. */
static bool adam(ProgramState *p) {
  if (tg_error(p->ctx) || tg_realize_many(p->param, (size_t)p->nparam)) return false;
  p->opt = tg_adam(p->ctx, p->param, p->nparam, .lr = 1e-3);
  tg_set_training(p->ctx, true);
  return p->opt != NULL;
}

static TgTensor *floats(TgContext *ctx, unsigned seed, int nd, const int64_t *d) {
  size_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= (size_t)d[i];
  float *v = malloc(n * sizeof *v);
  for (size_t i = 0; v && i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    v[i] = (float)(seed >> 8) / 8388608.f - 1;
  }
  TgTensor *t = v ? tg_keep(tg_from(ctx, v, TG_F32, nd, d)) : NULL;
  free(v);
  return t;
}

static TgTensor *labels(TgContext *ctx, int64_t classes, int nd, const int64_t *d) {
  size_t n = 1;
  for (int i = 0; i < nd; i++)
    n *= (size_t)d[i];
  int32_t *v = malloc(n * sizeof *v);
  for (size_t i = 0; v && i < n; i++)
    v[i] = (int32_t)((int64_t)(i * 7 + 3) % classes);
  TgTensor *t = v ? tg_keep(tg_from(ctx, v, TG_I32, nd, d)) : NULL;
  free(v);
  return t;
}

static TgStatus learn(ProgramState *p, TgTensor *loss) {
  TgStatus s = tg_backward(loss);
  return s ? s : tg_optim_step(p->opt);
}

/* ---- one expression */
static bool matrix_begin(ProgramState *p) { return (p->x = floats(p->ctx, 1, TG_SHAPE(1024, 1024))) != NULL; }

static bool vector_begin(ProgramState *p) { return (p->x = floats(p->ctx, 1, TG_SHAPE(4096))) != NULL; }

static TgStatus chain_step(ProgramState *p) {
  TgTensor *z = p->x;
  for (int i = 0; i < p->n; i++)
    z = i % 3 == 2 ? tg_mul_scalar(z, 0.5) : i % 3 ? tg_maximum(z, p->x) : tg_add(z, p->x);
  return tg_realize(z);
}

static TgStatus softmax_step(ProgramState *p) { return tg_realize(tg_softmax(p->x)); }

static bool norm_begin(ProgramState *p) { return (p->x = floats(p->ctx, 1, TG_SHAPE(4096, 1024))) != NULL; }

static TgStatus norm_step(ProgramState *p) { return tg_realize(tg_layer_norm(p->x)); }

static TgStatus variance_step(ProgramState *p) { return tg_realize(tg_var(p->x, .axis = TG_AXES(-1))); }

static bool nll_begin(ProgramState *p) {
  p->x = floats(p->ctx, 1, TG_SHAPE(1024, 1000));
  p->y = labels(p->ctx, 1000, TG_SHAPE(1024));
  return p->x && p->y;
}

static TgStatus nll_step(ProgramState *p) { return tg_realize(tg_sparse_cross_entropy(p->x, p->y)); }

static bool attention_begin(ProgramState *p) {
  p->x = floats(p->ctx, 1, TG_SHAPE(12, 1024, 64));
  p->y = floats(p->ctx, 2, TG_SHAPE(12, 1024, 64));
  p->z = floats(p->ctx, 3, TG_SHAPE(12, 1024, 64));
  return p->x && p->y && p->z;
}

static TgStatus attention_step(ProgramState *p) {
  return tg_realize(tg_scaled_dot_product_attention(p->x, p->y, p->z, .causal = true));
}

/* ---- networks */
static bool linears(ProgramState *p, int n, const int64_t *sizes) { /* sizes: n + 1 widths */
  if (!(p->linear = calloc((size_t)n, sizeof *p->linear))) return false;
  for (p->nlinear = 0; p->nlinear < n; p->nlinear++) {
    TgLinear *l = &p->linear[p->nlinear];
    *l = tg_linear_new(p->ctx, sizes[p->nlinear], sizes[p->nlinear + 1], true);
    if (!param(p, l->weight) || !param(p, l->bias)) return false;
  }
  return true;
}

static bool mlp_begin(ProgramState *p) { /* 784, then n - 1 layers of 128, then 10 */
  int64_t *sizes = malloc(sizeof *sizes * (size_t)(p->n + 1));
  for (int i = 0; sizes && i <= p->n; i++)
    sizes[i] = i == 0 ? 784 : i == p->n ? 10 : 128;
  bool ok = sizes && linears(p, p->n, sizes);
  free(sizes);
  p->x = floats(p->ctx, 1, TG_SHAPE(32, 784));
  p->y = labels(p->ctx, 10, TG_SHAPE(32));
  return ok && p->x && p->y && adam(p);
}

static TgStatus mlp_step(ProgramState *p) {
  TgTensor *h = p->x;
  for (int i = 0; i < p->nlinear; i++) {
    h = tg_linear_run(&p->linear[i], h);
    if (i + 1 < p->nlinear) h = tg_relu(h);
  }
  return learn(p, tg_sparse_cross_entropy(h, p->y));
}

static bool cnn_begin(ProgramState *p) {
  static const int64_t io[4][3] = {{1, 32, 5}, {32, 32, 5}, {32, 64, 3}, {64, 64, 3}};
  bool ok = true;
  for (int i = 0; ok && i < 4; i++) {
    p->conv[i] = tg_conv2d_new(p->ctx, io[i][0], io[i][1], io[i][2], true, NULL);
    ok = param(p, p->conv[i].weight) && param(p, p->conv[i].bias);
    if (i % 2) {
      p->bn[i / 2] = tg_batch_norm_new(p->ctx, io[i][1]);
      ok = ok && param(p, p->bn[i / 2].weight) && param(p, p->bn[i / 2].bias);
    }
  }
  ok = ok && linears(p, 1, (const int64_t[]){576, 10});
  p->x = floats(p->ctx, 1, TG_SHAPE(128, 1, 28, 28));
  p->y = labels(p->ctx, 10, TG_SHAPE(128));
  return ok && p->x && p->y && adam(p);
}

static TgStatus cnn_step(ProgramState *p) {
  TgTensor *h = p->x;
  for (int i = 0; i < 4; i++) {
    h = tg_relu(tg_conv2d_run(&p->conv[i], h));
    if (i % 2) h = tg_max_pool2d(tg_batch_norm_run(&p->bn[i / 2], h));
  }
  return learn(p, tg_sparse_cross_entropy(tg_linear_run(&p->linear[0], tg_flatten(h, 1, -1)), p->y));
}

/* Sizes of a transformer with learned positions. learns: a step is a training step of Adam; otherwise it
 * computes the scores of all tokens, with the token embedding as the last layer's weights. */
typedef struct GptSizes {
  int64_t batch, length, wide, heads, vocab;
  bool learns;
} GptSizes;

static const GptSizes char_gpt = {12, 64, 128, 4, 65, true}, gpt2 = {1, 64, 768, 12, 50257, false};

/* Parameters, and what is computed with them, are named after their layer: h0/attention, h0/mlp. */
static void block_name(ProgramState *p, int i, const char *part) {
  char name[16];
  snprintf(name, sizeof name, "h%d", i);
  tg_name_begin(p->ctx, name), tg_name_begin(p->ctx, part);
}

static void block_name_end(ProgramState *p) { tg_name_end(p->ctx), tg_name_end(p->ctx); }

static bool block_begin(ProgramState *p, int at) {
  const int64_t wide = p->gpt->wide;
  Block *b = &p->block[at];
  block_name(p, at, "attention");
  b->ln1 = tg_layer_norm_new(p->ctx, TG_SHAPE(wide));
  b->qkv = tg_linear_new(p->ctx, wide, 3 * wide, true);
  b->out = tg_linear_new(p->ctx, wide, wide, true);
  block_name_end(p), block_name(p, at, "mlp");
  b->ln2 = tg_layer_norm_new(p->ctx, TG_SHAPE(wide));
  b->up = tg_linear_new(p->ctx, wide, 4 * wide, true);
  b->down = tg_linear_new(p->ctx, 4 * wide, wide, true);
  block_name_end(p);
  TgTensor *all[] = {b->ln1.weight, b->ln1.bias, b->qkv.weight, b->qkv.bias, b->out.weight,  b->out.bias,
                     b->ln2.weight, b->ln2.bias, b->up.weight,  b->up.bias,  b->down.weight, b->down.bias};
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof all / sizeof *all; i++)
    ok = param(p, all[i]);
  return ok;
}

static bool gpt_sized(ProgramState *p, const GptSizes *g) {
  p->gpt = g;
  bool ok = (p->block = calloc((size_t)p->n, sizeof *p->block)) != NULL;
  tg_name_begin(p->ctx, "token"), p->token = tg_embedding_new(p->ctx, g->vocab, g->wide), tg_name_end(p->ctx);
  tg_name_begin(p->ctx, "position"), p->position = tg_embedding_new(p->ctx, g->length, g->wide);
  tg_name_end(p->ctx);
  ok = ok && param(p, p->token.weight) && param(p, p->position.weight);
  while (ok && p->nblock < p->n)
    ok = block_begin(p, p->nblock++);
  p->ln = tg_layer_norm_new(p->ctx, TG_SHAPE(g->wide));
  ok = ok && param(p, p->ln.weight) && param(p, p->ln.bias);
  p->x = labels(p->ctx, g->vocab, TG_SHAPE(g->batch, g->length));
  if (!g->learns) return ok && p->x && !tg_realize_many(p->param, (size_t)p->nparam);
  p->y = labels(p->ctx, g->vocab - 1, TG_SHAPE(g->batch, g->length));
  return ok && linears(p, 1, (const int64_t[]){g->wide, g->vocab}) && p->x && p->y && adam(p);
}

static bool gpt_begin(ProgramState *p) { return gpt_sized(p, &char_gpt); }

static bool gpt2_begin(ProgramState *p) { return gpt_sized(p, &gpt2); }

/* Takes part `part` (0: queries, 1: keys, 2: values) of (b, t, 3 w), as (b, heads, t, w / heads). */
static TgTensor *heads(const GptSizes *g, TgTensor *qkv, int part) {
  TgTensor *h = tg_slice(qkv, -1, part * g->wide, (part + 1) * g->wide);
  return tg_transpose(tg_reshape(h, TG_SHAPE(g->batch, g->length, g->heads, g->wide / g->heads)), 1, 2);
}

static TgStatus gpt_step(ProgramState *p) {
  const GptSizes *g = p->gpt;
  TgTensor *h = tg_add(tg_embedding_run(&p->token, p->x),
                       tg_embedding_run(&p->position, tg_arange(p->ctx, 0, (double)g->length)));
  for (int i = 0; i < p->nblock; i++) {
    const Block *b = &p->block[i];
    block_name(p, i, "attention");
    TgTensor *qkv = tg_linear_run(&b->qkv, tg_layer_norm_run(&b->ln1, h));
    TgTensor *a =
        tg_scaled_dot_product_attention(heads(g, qkv, 0), heads(g, qkv, 1), heads(g, qkv, 2), .causal = true);
    a = tg_reshape(tg_transpose(a, 1, 2), TG_SHAPE(g->batch, g->length, g->wide));
    h = tg_add(h, tg_linear_run(&b->out, a));
    block_name_end(p), block_name(p, i, "mlp");
    h = tg_add(h, tg_linear_run(&b->down, tg_gelu(tg_linear_run(&b->up, tg_layer_norm_run(&b->ln2, h)))));
    block_name_end(p);
  }
  h = tg_layer_norm_run(&p->ln, h);
  if (!g->learns) return tg_realize(tg_linear(h, p->token.weight, NULL));
  return learn(p, tg_sparse_cross_entropy(tg_linear_run(&p->linear[0], h), p->y));
}

/* ---- programs of any size n, for counts of work that must grow linearly with n */
static TgTensor **handles(ProgramState *p) { return calloc((size_t)p->n, sizeof(TgTensor *)); }

static TgStatus outputs_step(ProgramState *p) { /* n results that share their input */
  TgTensor **t = handles(p);
  if (!t) return TG_ERR_NOMEM;
  for (int i = 0; i < p->n; i++)
    t[i] = tg_mul(tg_add_scalar(p->x, i + 1), p->x);
  TgStatus s = tg_realize_many(t, (size_t)p->n);
  free(t);
  return s;
}

static bool parts_begin(ProgramState *p) { /* n buffers */
  bool ok = true;
  for (int i = 0; ok && i < p->n; i++)
    ok = param(p, floats(p->ctx, (unsigned)i, TG_SHAPE(64, 4)));
  return ok && p->nparam == p->n;
}

static TgStatus wide_step(ProgramState *p) { /* x1 + .. + xn */
  TgTensor *z = p->param[0];
  for (int i = 1; i < p->n; i++)
    z = tg_add(z, p->param[i]);
  return tg_realize(z);
}

static TgStatus cat_step(ProgramState *p) { return tg_realize(tg_cat(p->param, p->n, 0)); }

static bool rows_begin(ProgramState *p) {
  p->x = floats(p->ctx, 1, TG_SHAPE(4096, 8));
  p->y = floats(p->ctx, 2, TG_SHAPE(1, 8));
  return p->x && p->y;
}

/* Writes n rows of one tensor in place, one after another. */
static TgStatus assign_step(ProgramState *p) {
  TgStatus s = TG_OK;
  for (int i = 0; !s && i < p->n; i++)
    s = tg_assign_slice(p->x, (const int64_t[]){i, 0}, (const int64_t[]){i + 1, 8}, p->y) ? tg_realize(p->x)
                                                                                          : tg_error(p->ctx);
  return s;
}

static TgStatus slices_step(ProgramState *p) { /* the sum of n overlapping slices */
  TgTensor *z = tg_slice(p->x, 0, 0, 64);
  for (int i = 1; i < p->n; i++)
    z = tg_add(z, tg_slice(p->x, 0, i, i + 64));
  return tg_realize(z);
}

/* N rounds of pad, permute, reshape and shrink on top of each other. */
static TgStatus views_step(ProgramState *p) {
  TgTensor *z = tg_slice(p->x, 0, 0, 24);
  for (int i = 0; i < p->n; i++) {
    z = tg_pad(z, (const int64_t[]){1, 0}, (const int64_t[]){1, 0});
    z = tg_reshape(tg_permute(z, 2, (const int64_t[]){1, 0}), TG_SHAPE(tg_dim(z, 0), 8));
    z = tg_shrink(z, (const int64_t[]){1, 0}, (const int64_t[]){tg_dim(z, 0) - 1, 8});
  }
  return tg_realize(z);
}

static const struct {
  ProgramInfo info;
  bool (*begin)(ProgramState *);
  TgStatus (*step)(ProgramState *);
} programs[] = {
    {{"chain-1000", 1000, 138000}, vector_begin, chain_step},
    {{"chain-10000", 10000, 0}, vector_begin, chain_step},
    {{"softmax", 1, 382}, matrix_begin, softmax_step},
    {{"layer_norm", 1, 159}, norm_begin, norm_step},
    {{"variance", 1, 219}, norm_begin, variance_step},
    {{"log_softmax-nll", 1, 252}, nll_begin, nll_step},
    {{"attention", 1, 1206}, attention_begin, attention_step},
    {{"mlp-step", 3, 4300}, mlp_begin, mlp_step},
    {{"cnn-step", 1, 12500}, cnn_begin, cnn_step},
    {{"gpt-step", 4, 13200}, gpt_begin, gpt_step},
    {{"gpt2-64", 12, 0}, gpt2_begin, gpt_step},
    {{"outputs", 100, 0}, vector_begin, outputs_step},
    {{"wide-sum", 100, 0}, parts_begin, wide_step},
    {{"cat", 100, 0}, parts_begin, cat_step},
    {{"slice-assign", 100, 0}, rows_begin, assign_step},
    {{"slices", 100, 0}, rows_begin, slices_step},
    {{"views", 20, 0}, rows_begin, views_step},
};

enum { NPROGRAM = sizeof programs / sizeof *programs };

const ProgramInfo *program_info(int i) { return i >= 0 && i < NPROGRAM ? &programs[i].info : NULL; }

const char *program_name(int i) {
  const ProgramInfo *info = program_info(i);
  return info ? info->name : NULL;
}

int program_find(const char *name) {
  for (int i = 0; i < NPROGRAM; i++)
    if (!strcmp(programs[i].info.name, name)) return i;
  return -1;
}

ProgramState *program_begin(TgContext *ctx, int i, int n) {
  if (!program_info(i) || n < 0) return NULL;
  ProgramState *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->ctx = ctx;
  p->which = i;
  p->n = n ? n : programs[i].info.size;
  /* Temporaries of the initialisation are released at the end of this scope. */
  TgStatus s = tg_scope_begin(ctx);
  bool ok = !s && programs[i].begin(p);
  if (!s) s = tg_scope_end(ctx);
  if (ok && !s && !tg_error(ctx)) return p;
  program_end(p);
  return NULL;
}

TgStatus program_step(ProgramState *p) {
  TgStatus s = tg_scope_begin(p->ctx);
  if (s) return s;
  s = programs[p->which].step(p);
  TgStatus e = tg_scope_end(p->ctx);
  return s ? s : e;
}

void program_end(ProgramState *p) {
  if (!p) return;
  bool parts = programs[p->which].begin == parts_begin; /* its parameters are inputs, which no layer owns */
  tg_optim_free(p->opt);
  for (int i = 0; i < p->nlinear; i++)
    tg_linear_free(&p->linear[i]);
  for (int i = 0; i < 4; i++)
    tg_conv2d_free(&p->conv[i]);
  for (int i = 0; i < 2; i++)
    tg_batch_norm_free(&p->bn[i]);
  for (int i = 0; i < p->nblock; i++) {
    Block *b = &p->block[i];
    tg_layer_norm_free(&b->ln1), tg_layer_norm_free(&b->ln2);
    tg_linear_free(&b->qkv), tg_linear_free(&b->out), tg_linear_free(&b->up), tg_linear_free(&b->down);
  }
  tg_embedding_free(&p->token), tg_embedding_free(&p->position), tg_layer_norm_free(&p->ln);
  for (int i = 0; parts && i < p->nparam; i++)
    tg_release(p->param[i]);
  tg_release(p->x), tg_release(p->y), tg_release(p->z);
  free(p->linear), free(p->block), free(p->param);
  free(p);
}
