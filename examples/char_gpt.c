/* char_gpt.c: a GPT of characters: trained on a text, then writing with a cache of keys and values.
 *   char_gpt TEXT [STEPS] [LETTERS]
 * One plan serves every length of the text so far: the length is a variable (tg_variable). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tg_nn.h>

enum { WIDE = 64, HEADS = 2, SIZE = WIDE / HEADS, LAYERS = 2, CONTEXT = 64, BATCH = 16, LETTERS = 256 };

typedef struct Layer {
  TgLayerNorm ln1, ln2;
  TgLinear qkv, proj, fc, out;
  TgTensor *keys, *values; /* of what was written so far: (HEADS, CONTEXT, SIZE) */
} Layer;

typedef struct GPT {
  TgEmbedding letters, places;
  Layer layer[LAYERS];
  TgLayerNorm norm;
  TgOptim *optim;
  TgVariable *at; /* the place that is written */
} GPT;

static TgTensor *heads_of(TgTensor *x) { /* (.., t, WIDE) -> (.., HEADS, t, SIZE) */
  return tg_transpose(tg_unflatten(x, -1, TG_SHAPE(HEADS, SIZE)), -3, -2);
}

/* writing: x is one place, whose key and value join the cache. */
static TgTensor *attend(const GPT *g, const Layer *l, TgTensor *x, bool writing) {
  TgTensor *part[3], *y;
  tg_chunk(tg_linear_run(&l->qkv, x), -1, 3, part, 3);
  for (int i = 0; i < 3; i++)
    part[i] = heads_of(part[i]);
  if (writing) {
    int64_t at = tg_size(g->at), next = tg_size_add(tg_context(x), at, 1);
    tg_assign(tg_slice(l->keys, 1, at, next), part[1]);
    tg_assign(tg_slice(l->values, 1, at, next), part[2]);
    y = tg_scaled_dot_product_attention(part[0], tg_slice(l->keys, 1, 0, next),
                                        tg_slice(l->values, 1, 0, next));
  } else
    y = tg_scaled_dot_product_attention(part[0], part[1], part[2], .causal = true);
  return tg_linear_run(&l->proj, tg_flatten(tg_transpose(y, -3, -2), -2, -1));
}

static TgTensor *forward(const GPT *g, TgTensor *x, TgTensor *places, bool writing) {
  TgTensor *h = tg_add(tg_embedding_run(&g->letters, x), places);
  for (int i = 0; i < LAYERS; i++) {
    const Layer *l = &g->layer[i];
    h = tg_add(h, attend(g, l, tg_layer_norm_run(&l->ln1, h), writing));
    h = tg_add(h, tg_linear_run(&l->out, tg_gelu(tg_linear_run(&l->fc, tg_layer_norm_run(&l->ln2, h)))));
  }
  return tg_linear(tg_layer_norm_run(&g->norm, h), g->letters.weight, NULL);
}

static TgStatus train_step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                           void *user) {
  GPT *g = user;
  (void)ctx, (void)nin, (void)nout;
  out[0] = tg_sparse_cross_entropy(forward(g, in[0], g->places.weight, false), in[1]);
  TgStatus s = tg_backward(out[0]);
  return s ? s : tg_optim_step(g->optim);
}

/* in: the letter, and which place it stands at; out: the next one's logits. */
static TgStatus write_step(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                           void *user) {
  GPT *g = user;
  (void)ctx, (void)nin, (void)nout;
  TgTensor *place = tg_take(g->places.weight, tg_reshape(tg_variable_tensor(g->at), TG_SHAPE(1)));
  out[0] = forward(g, in[0], place, true);
  return out[0] ? TG_OK : tg_error(ctx);
}

static GPT gpt_new(TgContext *ctx) {
  GPT g = {.letters = tg_embedding_new(ctx, LETTERS, WIDE), .places = tg_embedding_new(ctx, CONTEXT, WIDE)};
  TgTensor *params[64] = {g.letters.weight, g.places.weight};
  int n = 2;
  tg_assign(g.letters.weight, tg_normal(ctx, TG_SHAPE(LETTERS, WIDE), 0, 0.02));
  tg_assign(g.places.weight, tg_normal(ctx, TG_SHAPE(CONTEXT, WIDE), 0, 0.02));
  for (int i = 0; i < LAYERS; i++) {
    Layer *l = &g.layer[i];
    l->ln1 = tg_layer_norm_new(ctx, TG_SHAPE(WIDE)), l->ln2 = tg_layer_norm_new(ctx, TG_SHAPE(WIDE));
    l->qkv = tg_linear_new(ctx, WIDE, 3 * WIDE, true), l->proj = tg_linear_new(ctx, WIDE, WIDE, true);
    l->fc = tg_linear_new(ctx, WIDE, 4 * WIDE, true), l->out = tg_linear_new(ctx, 4 * WIDE, WIDE, true);
    l->keys = tg_keep(tg_contiguous(tg_zeros(ctx, TG_SHAPE(HEADS, CONTEXT, SIZE))));
    l->values = tg_keep(tg_clone(l->keys));
    tg_realize(l->keys), tg_realize(l->values);
    TgTensor *own[] = {l->ln1.weight,  l->ln1.bias,  l->ln2.weight, l->ln2.bias, l->qkv.weight, l->qkv.bias,
                       l->proj.weight, l->proj.bias, l->fc.weight,  l->fc.bias,  l->out.weight, l->out.bias};
    for (int k = 0; k < 12; k++)
      params[n++] = own[k];
  }
  g.norm = tg_layer_norm_new(ctx, TG_SHAPE(WIDE));
  params[n++] = g.norm.weight, params[n++] = g.norm.bias;
  g.optim = tg_adamw(ctx, params, n, .lr = 2e-3, .clip_norm = 1);
  g.at = tg_variable(ctx, "place", 0, CONTEXT - 1);
  return g;
}

int main(int argc, char **argv) {
  static char text[1 << 22];
  FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
  size_t n = f ? fread(text, 1, sizeof text, f) : 0;
  int steps = argc > 2 ? atoi(argv[2]) : 500, letters = argc > 3 ? atoi(argv[3]) : CONTEXT - 1;
  if (f) fclose(f);
  if (n < CONTEXT + 2) return fprintf(stderr, "usage: char_gpt TEXT [STEPS] [LETTERS]\n"), 1;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .seed = 1});
  GPT g = gpt_new(ctx);
  TgJit *learn = tg_jit(ctx, train_step, &g), *writer = tg_jit(ctx, write_step, &g);
  srand(1);
  for (int step = 0; step < steps && !tg_error(ctx); step++)
    TG_SCOPE(ctx) {
      int32_t x[BATCH][CONTEXT], y[BATCH][CONTEXT];
      for (int b = 0; b < BATCH; b++) {
        size_t from = (size_t)rand() % (n - CONTEXT - 1);
        for (int t = 0; t < CONTEXT; t++)
          x[b][t] = (unsigned char)text[from + (size_t)t],
          y[b][t] = (unsigned char)text[from + (size_t)t + 1];
      }
      TgTensor *in[2] = {tg_from(ctx, x, TG_I32, TG_SHAPE(BATCH, CONTEXT)),
                         tg_from(ctx, y, TG_I32, TG_SHAPE(BATCH, CONTEXT))};
      TgTensor *loss = NULL;
      if (!tg_jit_run(learn, in, 2, &loss, 1) && (step % 100 == 0 || step + 1 == steps))
        fprintf(stderr, "step %d  loss %.3f\n", step + 1, tg_item_f64(loss));
    }
  int32_t letter = text[0];
  for (int at = 0; at < letters && at < CONTEXT && !tg_error(ctx); at++)
    TG_SCOPE(ctx) {
      double logit[LETTERS], sum = 0, draw;
      TgTensor *in = tg_from(ctx, &letter, TG_I32, TG_SHAPE(1)), *out = NULL;
      tg_variable_bind(g.at, at);
      if (!tg_jit_run(writer, &in, 1, &out, 1) &&
          !tg_read_f64(tg_softmax(tg_mul_scalar(out, 1.25)), logit, LETTERS)) {
        for (int k = 0; k < LETTERS; k++)
          sum += logit[k];
        draw = sum * rand() / (RAND_MAX + 1.0);
        for (letter = 0; letter + 1 < LETTERS && (draw -= logit[letter]) >= 0;)
          letter++;
        putchar(letter);
      }
    }
  putchar('\n');
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_jit_free(learn), tg_jit_free(writer), tg_optim_free(g.optim);
  tg_close(ctx); /* ends what was kept, too */
  return bad != 0;
}
