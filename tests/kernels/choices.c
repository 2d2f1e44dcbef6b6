/* choices.c: see choices.h. A program goes the way that the engine sends it: its graph is copied, scheduled,
 * lowered kernel by kernel and rendered. */
#define _GNU_SOURCE
#include "kernels/choices.h"
#include "base/os.h"
#include "engine/graph_copy.h"
#include "tensor/context.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

#define A(dtype, ...) tg_empty(c, (dtype), TG_SHAPE(__VA_ARGS__))
#define F(...)        A(TG_F32, __VA_ARGS__)

/* Products that share a factor, one of them inside another value. */
static TgTensor *two_sums(TgContext *c, TgTensor *x, TgTensor *w, TgTensor *v) {
  (void)c;
  return tg_mul(tg_silu(tg_matmul(x, w, .dtype = TG_F32)), tg_matmul(x, v, .dtype = TG_F32));
}

/* n rows times a matrix of rows of 2,048, which is q (blocks, n) or (blocks, m, n) times column 0 of d (blocks,
 * columns). */
static TgTensor *rows_by_blocks(int64_t n, TgTensor *d, TgTensor *q) {
  TgContext *c = tg_context(d);
  TgTensor *scale = tg_cast(tg_slice(d, 1, 0, 1), TG_F32);
  if (tg_ndim(q) == 3) scale = tg_unsqueeze(scale, 2);
  TgTensor *w = tg_reshape(tg_mul(scale, q), TG_SHAPE(-1, 2048));
  return tg_matmul(F(n, 2048), tg_transpose(w, 0, 1));
}

static TgTensor *by_blocks(TgTensor *d, TgTensor *q) { return rows_by_blocks(1, d, q); }

/* Codes of four bits in the bytes b (m, n), by a table of 16 bytes: (m, 2, n) f32. */
static TgTensor *parts_looked_up(TgTensor *b) {
  TgContext *c = tg_context(b);
  TgTensor *by = tg_reshape(tg_arange(c, 0, 8, .step = 4, .dtype = TG_U8), TG_SHAPE(1, 2, 1));
  TgTensor *code = tg_bitand_scalar(tg_shr(tg_unsqueeze(b, 1), by), 15);
  TgTensor *v = tg_take(A(TG_I8, 16), tg_cast(tg_flatten(code, 0, -1), TG_I32));
  return tg_cast(tg_reshape(v, tg_ndim(code), tg_shape(code)), TG_F32);
}

/* Bytes (m, n) -> their low halves and their high ones less 8: (m, 2, n) f32. */
static TgTensor *parts_of_bytes(TgTensor *b) {
  TgContext *c = tg_context(b);
  TgTensor *by = tg_reshape(tg_arange(c, 0, 8, .step = 4, .dtype = TG_U8), TG_SHAPE(1, 2, 1));
  TgTensor *half = tg_bitand_scalar(tg_shr(tg_unsqueeze(b, 1), by), 15);
  return tg_sub_scalar(tg_cast(half, TG_F32), 8);
}

/* Of keys k and values v the first ones, as many as a variable says. */
static TgTensor *attention_seen(TgTensor *q, TgTensor *k, TgTensor *v) {
  int64_t n = tg_size(tg_variable(tg_context(q), "n", 1, tg_dim(k, 1)));
  return tg_scaled_dot_product_attention(q, tg_slice(k, 1, 0, n), tg_slice(v, 1, 0, n));
}

/* Of an axis of x the first elements, as many as a variable says. */
static TgTensor *some_of(TgTensor *x, int axis) {
  return tg_slice(x, axis, 0, tg_size(tg_variable(tg_context(x), "n", 1, tg_dim(x, axis))));
}

static TgTensor *some(TgTensor *x) { return some_of(x, 0); }

/* ---- the programs */
#define SOME(name, n, ...)                                                                                   \
  static int name##_build(TgContext *c, TgTensor **out) {                                                    \
    __VA_ARGS__;                                                                                             \
    return (void)c, (n);                                                                                     \
  }
#define ONE(name, tensor) SOME(name, 1, out[0] = (tensor))
#define SECTION(name)
#define GIVEN(name, opts, tensor) ONE(name, tensor)
#include "kernels/choices.def"
#undef GIVEN
#undef SECTION
#undef ONE
#undef SOME
#define SOME(name, n, ...)        {#name, name##_build, NULL, NULL},
#define ONE(name, tensor)         SOME(name, 1, )
#define SECTION(name)             {NULL, NULL, #name, NULL},
#define GIVEN(name, opts, tensor) {#name, name##_build, NULL, opts},
const Choice choices[] = {
#include "kernels/choices.def"
};
const int choice_count = TG_COUNT(choices);

/* ---- the machines */
static void rates(Target *t, double cycle_bytes[NLEVEL], int vec_bytes) {
  for (int l = 0; l < NLEVEL; l++)
    t->bytes_us[l] = cycle_bytes[l] * t->mhz;
  t->vec_bytes = vec_bytes, t->fmas = vec_bytes / 2.0, t->ops = vec_bytes / 4.0;
}

/* A desktop of 2015: four cores with AVX2. */
static void avx2(Target *t) {
  t->name = "4 cores with AVX2", t->cores = 4, t->registers = 16, t->mhz = 3400;
  t->cache[LEVEL_L1] = 32 << 10, t->cache[LEVEL_L2] = 256 << 10, t->cache[LEVEL_L3] = 8 << 20;
  t->ways[LEVEL_L1] = 8, t->ways[LEVEL_L2] = 4, t->local_bytes = t->local_most = 128 << 10;
  rates(t, (double[]){58, 24, 13, 5}, 32);
}

/* One small core of 64-bit Arm with no third level. */
static void neon(Target *t) {
  t->name = "a core with NEON", t->cores = t->streams = 1, t->mhz = 1800;
  t->cache[LEVEL_L1] = 64 << 10, t->cache[LEVEL_L2] = 512 << 10, t->cache[LEVEL_L3] = 0;
  t->ways[LEVEL_L1] = 4, t->ways[LEVEL_L2] = 8, t->local_bytes = t->local_most = 256 << 10;
  rates(t, (double[]){29, 12, 6, 3}, 16);
}

/* A GPU before matrix units, with few cores. */
static void no_units(Target *t) {
  t->name = "20 cores without matrix units", t->matrices = 0, t->cores = t->streams = 20, t->registers = 128;
  t->copies = false;
}

/* .. and a GPU whose units multiply bytes of floats. */
static void newer_units(Target *t) {
  t->name = "a GPU of 2022", t->matrices = matrix_rows(MATRIX_CUDA, 89), t->cores = t->streams = 128;
}

const Machine machines[] = {{"avx512", "NULL:C", NULL},       {"avx2", "NULL:C", avx2},
                            {"neon", "NULL:C", neon},         {"amx", "NULL:AMX", NULL},
                            {"dot", "NULL:DOT", NULL},        {"cuda", "NULL:CUDA", NULL},
                            {"plain", "NULL:CUDA", no_units}, {"newer", "NULL:CUDA", newer_units},
                            {"metal", "NULL:METAL", NULL}};
const int machine_count = TG_COUNT(machines);

TgContext *machine_open(const Machine *m, TgMem mem) {
  TgOpenOptions o = {.size = sizeof o, .device = m->device, .seed = 1};
  TgContext *c = context_open(&o, &tg_os_default, mem);
  if (c && !tg_error(c) && m->change) m->change(&c->devices.at[0]->target);
  return c;
}

/* ---- the way */
TgStatus choice_schedule(TgContext *c, TgTensor *const *t, int n, Str *explain, Schedule *out) {
  Graph g;
  UOpVec roots = {0};
  memset(out, 0, sizeof *out);
  bool ok = graph_init(&g, c, c->default_device);
  for (int i = 0; ok && i < n; i++)
    ok = t[i] && graph_reach(&g, t[i]->uop);
  ok = ok && graph_copy(&g);
  for (int i = 0; ok && i < n; i++)
    ok = vec_push(&c->mem, &roots, graph_root(&g, (size_t)i));
  SchedOptions so = sched_options(c, c->devices.at[0], c->devices.at[0]->backend->renderer);
  so.explain = explain;
  TgStatus s = c->err.status ? c->err.status : TG_ERR_NOMEM;
  if (ok) s = schedule_make(g.st, &c->mem, roots.at, n, &so, out, &c->err);
  if (ok && !s) g.st = NULL; /* the schedule has it */
  vec_free(&c->mem, &roots);
  graph_free(&g);
  return s;
}

TgStatus choice_lower(TgContext *c, const Schedule *sched, int k, const char *opts, Str *costs,
                      Prepack *prepack, Lowered *out) {
  Arena arena;
  UOpStore *own = NULL;
  Linear lin;
  const Renderer *ren = c->devices.at[0]->backend->renderer;
  CodegenOptions co = codegen_options(c, c->devices.at[0], ren, opts);
  co.costs = costs;
  co.prepack = prepack;
  memset(out, 0, sizeof *out);
  arena_init(&arena, &c->mem), str_init(&out->text, &c->mem), str_init(&out->opts, &c->mem);
  TgStatus s = codegen_lower(&c->mem, sched->kernel[k].ast, sched->store, ren, &co, &arena, &own, &lin,
                             &out->opts, &c->err);
  if (!s && (!ren->render(&out->text, &lin, &c->err) || out->text.oom || out->opts.oom))
    s = c->err.status ? c->err.status : TG_ERR_NOMEM;
  if (!s) {
    memcpy(out->name, lin.name, sizeof out->name), out->threads = lin.nthread;
    memcpy(out->grid, lin.global, sizeof out->grid), memcpy(out->block, lin.local, sizeof out->block);
    out->local_bytes = linear_local_bytes(&lin);
  }
  store_free(own); /* NULL where it could not be lowered */
  arena_free(&arena);
  return s;
}

void lowered_free(Lowered *l) { str_free(&l->text), str_free(&l->opts); }

/* ---- lists that are changed */
unsigned list_draw(unsigned *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

/* One more: mostly of a loop and a number; now and then a copy of a buffer. */
static void opt_drawn(char *out, size_t room, const ListChanges *may, unsigned *seed) {
  const char *op = may->ops[list_draw(seed) % may->nops];
  unsigned loop = list_draw(seed) % may->nloops, size = 2u << list_draw(seed) % 6;
  if (!strcmp(op, "SWAP") || !strcmp(op, "TC"))
    snprintf(out, room, "%s r%u r%u", op, loop, list_draw(seed) % may->nloops);
  else
    snprintf(out, room, "%s r%u %u", op, loop, size);
  if (list_draw(seed) % 8 == 0 && may->nbuffers)
    snprintf(out, room, "STAGE p%u", 1 + list_draw(seed) % may->nbuffers);
}

void list_changed(char list[LONGEST_LIST], const ListChanges *may, unsigned *seed) {
  char part[16][40], to[LONGEST_LIST] = "";
  int n = 0;
  for (const char *p = list; *p && n < 15; p += strcspn(p, ","), p += strspn(p, ", "))
    snprintf(part[n++], sizeof part[0], "%.*s", (int)strcspn(p, ","), p);
  unsigned what = list_draw(seed) % 6, at = n ? list_draw(seed) % (unsigned)n : 0;
  char op[20];
  int r, size;
  if (what == 0 && n)
    part[at][0] = 0;
  else if (what <= 2 && n && sscanf(part[at], "%19s r%d %d", op, &r, &size) == 3)
    snprintf(part[at], sizeof part[0], "%s r%d %d", op, r, what == 1 ? size * 2 : TG_MAX(size / 2, 1));
  else if (what == 3 && n > 1) {
    unsigned with = list_draw(seed) % (unsigned)n;
    char kept[40];
    memcpy(kept, part[at], 40), memcpy(part[at], part[with], 40), memcpy(part[with], kept, 40);
  } else {
    at = list_draw(seed) % (unsigned)(n + 1);
    memmove(part[at + 1], part[at], ((size_t)n++ - at) * sizeof part[0]);
    opt_drawn(part[at], sizeof part[0], may, seed);
  }
  for (int i = 0; i < n; i++)
    if (part[i][0] && strlen(to) + 42 < sizeof to)
      snprintf(to + strlen(to), 42, "%s%.39s", *to ? ", " : "", part[i]);
  memcpy(list, to, LONGEST_LIST);
}
