/* interp.c: the reference device. It runs linear UOps one scalar at a time with scalar_eval, and checks every
 * load and store against the size of its buffer. It shares no code with the renderers, so that it can judge
 * them.
 *
 * INTERP takes kernels as plain loops. INTERP:C, INTERP:AMX, INTERP:DOT, INTERP:C99, INTERP:CUDA and
 * INTERP:METAL take what codegen makes for those targets: vectors, tiles, grids. The threads of a block run
 * one after another, each up to a barrier or to an operation that exchanges values between threads. These are
 * errors: two threads that access a cell between the same barriers, if one of them writes; two blocks that do
 * so at any time; threads that stop at different places; a read of local memory that was never written. */
#include "runtime/interp.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

/* ---- run */
static Scalar element_read(DType d, const void *p, int64_t i) {
  return scalar_load(d, (const char *)p + (size_t)i * dtype_size(d));
}

static void element_write(DType d, void *p, int64_t i, Scalar v) {
  scalar_store(d, v, (char *)p + (size_t)i * dtype_size(d));
}

static Scalar bitcast(DType to, DType from, Scalar v) {
  union {
    uint64_t bits[1];
    uint8_t bytes[8];
  } b = {{0}};

  element_write(from, b.bytes, 0, v);
  return element_read(to, b.bytes, 0);
}

/* The last access to a cell in this launch. block: block + 1 (0: no access). epoch: number of barriers
 * passed. thread: -1 if there were several. */
typedef struct Touch {
  int32_t block, epoch, thread;
} Touch;

typedef struct Cell {
  Touch written, read;
} Cell;

/* at: the indices of the thread, then those of the block */
typedef struct Run {
  Device *d;
  const Program *p;
  void **mem;
  Cell **cells;
  const int64_t *vars;
  int global[3]; /* number of blocks of this launch */
  int block, epoch, at[6];
} Run;

/* pc: where the thread continues; greater than p->n if it is done */
typedef struct Thread {
  Scalar *s;
  int pc, id;
} Thread;

static TgStatus access_fails(const Run *r, const Ins *in, int64_t at, const char *why) {
  const Memory *m = &r->p->mem[in->mem];
  return error_set(r->d->err, TG_ERR_INTERNAL,
                   "INTERP: kernel %s: %s of %d at %lld of %s %d with %lld elements%s", r->p->name,
                   op_name((Ops)in->op), in->lanes, (long long)at, m->slot < 0 ? "local memory" : "buffer",
                   m->slot < 0 ? in->mem : m->slot, (long long)m->nelem, why);
}

/* Whether a touch and an access by `thread` race: another thread touched the cell, with no barrier in
 * between. */
static bool meets(const Touch *t, const Run *r, int thread) {
  return t->block && (t->block != r->block + 1 || (t->epoch == r->epoch && t->thread != thread));
}

static TgStatus touch(Run *r, const Ins *in, int64_t at, int thread) {
  bool store = in->op == OPS_STORE, local = r->p->mem[in->mem].slot < 0;
  for (int l = 0; l < in->lanes; l++) {
    Cell *c = &r->cells[in->mem][at + l];
    if (local && !store && !c->written.block) return access_fails(r, in, at, ", never written");
    if (meets(&c->written, r, thread) || (store && meets(&c->read, r, thread)))
      return access_fails(r, in, at, ": two threads race");
    Touch now = {r->block + 1, r->epoch, thread}, *t = store ? &c->written : &c->read;
    if (!store && t->block == now.block && t->epoch == now.epoch && t->thread != thread) now.thread = -1;
    *t = now;
  }
  return TG_OK;
}

static TgStatus run_access(Run *r, const Ins *in, Scalar *s, int thread) {
  bool store = in->op == OPS_STORE;
  if (in->reg) {
    memcpy(store ? s + in->src[0] : s + in->dst, store ? s + in->src[1] : s + in->src[0],
           in->lanes * sizeof *s);
    return TG_OK;
  }
  DType dt = (DType)in->dtype;
  if (in->gate >= 0 && !s[in->gate].i) {
    if (store) return TG_OK;
    if (in->nsrc > 1)
      memcpy(s + in->dst, s + in->src[1], in->lanes * sizeof *s);
    else
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l] = dtype_is_float(dt) ? (Scalar){.f = 0} : (Scalar){.i = 0};
    return TG_OK;
  }
  int64_t at = s[in->src[0]].i;
  if (at < 0 || at > r->p->mem[in->mem].nelem - in->lanes) return access_fails(r, in, at, "");
  TgStatus st = r->cells ? touch(r, in, at, thread) : TG_OK;
  if (st) return st;
  for (int l = 0; l < in->lanes; l++)
    if (store)
      element_write(dt, r->mem[in->mem], at + l, s[in->src[1] + l]);
    else
      s[in->dst + l] = element_read(dt, r->mem[in->mem], at + l);
  return TG_OK;
}

/* Whether `at` is an element of the memory of operand i of a block of sums. */
static bool block_at(const Run *r, const Ins *in, int i, int64_t at) {
  return at >= 0 && at < r->p->mem[in->src[BLOCK_MEMORY + i]].nelem;
}

static Scalar block_read(const Run *r, const Ins *in, int i, int64_t at) {
  int m = in->src[BLOCK_MEMORY + i];
  return element_read(r->p->mem[m].dtype, r->mem[m], at);
}

/* c = a b. Each product is exact, each sum is rounded once. matrix.h defines where the elements are. */
static TgStatus block_of_sums(Run *r, const Ins *in, const Scalar *s) {
  const MatrixShape *shape = &matrix_shapes[in->value.i];
  const int *n = in->src + BLOCK_ROWS;
  int word = shape->operand[MATRIX_B].together;
  bool floats = dtype_is_float((DType)in->dtype);
  int64_t c = s[in->src[0]].i, a = s[in->src[1]].i, b = s[in->src[2]].i;
  int64_t last = (int64_t)(n[1] / shape->n - 1) * n[4] + (int64_t)n[2] * shape->n - 1;
  bool inside = block_at(r, in, 0, c) && block_at(r, in, 0, c + (int64_t)n[0] * n[1] - 1);
  inside = inside && block_at(r, in, 1, a) && block_at(r, in, 1, a + (int64_t)(n[0] - 1) * n[3] + n[2] - 1);
  if (!inside || !block_at(r, in, 2, b) || !block_at(r, in, 2, b + last))
    return error_set(r->d->err, TG_ERR_INTERNAL,
                     "INTERP: kernel %s: a block of %s at %lld, %lld and %lld leaves its memory", r->p->name,
                     shape->name, (long long)c, (long long)a, (long long)b);
  for (int i = 0; i < n[0]; i++)
    for (int j = 0; j < n[1]; j++) {
      Scalar sum = {.i = 0};
      if (floats) sum.f = 0;
      for (int k = 0; k < n[2]; k++) {
        Scalar x = block_read(r, in, 1, a + (int64_t)i * n[3] + k);
        Scalar y = block_read(r, in, 2,
                              b + (int64_t)(j / shape->n) * n[4] +
                                  (int64_t)(k / word * shape->n + j % shape->n) * word + k % word);
        if (floats)
          sum.f += x.f * y.f;
        else
          sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)(x.i * y.i));
        if (floats) sum = scalar_round((DType)in->dtype, sum);
      }
      int m = in->src[BLOCK_MEMORY];
      element_write((DType)in->dtype, r->mem[m], c + (int64_t)i * n[1] + j,
                    scalar_round((DType)in->dtype, sum));
    }
  return TG_OK;
}

/* Computes a thread's results of a matrix step of four warps whose operands are in shared memory. */
static TgStatus step_in_shared(Run *r, const Ins *in, const Thread *t) {
  enum { DEEPEST = 16 };

  const MatrixShape *shape = &matrix_shapes[in->value.i];
  const MatrixOperand *c = &shape->operand[MATRIX_C];
  TgStatus st = TG_OK;
  for (int e = 0; e < c->elements && !st; e++) {
    MatrixPlace p = matrix_place(c, t->id % shape->threads, e);
    Scalar sum = t->s[in->src[2] + e], v[2][DEEPEST];
    for (int role = MATRIX_A; role <= MATRIX_B && !st; role++)
      for (int i = 0; i < shape->k && !st; i++) {
        int m = in->src[3 + role], slot;
        int64_t begin = t->s[in->src[role]].i;
        int64_t at = matrix_in_lines(&shape->operand[role], begin, role == MATRIX_A ? p.row : p.column, i);
        Ins one = {
            .op = OPS_LOAD, .dtype = in->dtype, .lanes = 1, .mem = m, .nsrc = 1, .gate = -1, .src = &slot};
        if (at < 0 || at >= r->p->mem[m].nelem) return access_fails(r, &one, at, "");
        st = touch(r, &one, at, t->id);
        v[role][i] = element_read(r->p->mem[m].dtype, r->mem[m], at);
      }
    for (int i = 0; i < shape->k; i++)
      sum.f += v[MATRIX_A][i].f * v[MATRIX_B][i].f;
    t->s[in->dst + e] = scalar_round(c->dtype, sum);
  }
  return st;
}

/* Replaces each byte of a word by the element of the table that the byte's lower half selects. */
static int32_t looked_up(const uint8_t *table, uint32_t word) {
  uint32_t to = 0;
  for (int i = 0; i < 32; i += 8)
    to |= (uint32_t)table[word >> i & 15] << i;
  return (int32_t)to;
}

static bool any_lane(const Scalar *s, int lanes) {
  for (int l = 0; l < lanes; l++)
    if (s[l].i) return true;
  return false;
}

/* Runs a thread to its next barrier or exchange of values, or to its end. */
static TgStatus run_thread(Run *r, Thread *t, int tid) {
  const Program *p = r->p;
  Scalar *s = t->s;
  for (int pc = t->pc; pc < p->n; pc++) {
    const Ins *in = &p->at[pc];
    DType dt = (DType)in->dtype;
    TgStatus st;
    switch (in->op) {
    case OPS_PARAM:
    case OPS_DEFINE_LOCAL:
    case OPS_INDEX:
    case OPS_AFTER:
    case OPS_SINK:
    case OPS_DEFINE_REG:
    case OPS_PREFETCH:
    case OPS_ENDIF: break;
    case OPS_WMMA:
      if (in->nsrc == BLOCK_PARTS && matrix_in_memory(&matrix_shapes[in->value.i])) {
        if ((st = block_of_sums(r, in, s))) return st;
        break;
      }
      if (matrix_in_shared(&matrix_shapes[in->value.i])) {
        if ((st = step_in_shared(r, in, t))) return st;
        break;
      }
      t->pc = pc + 1;
      return TG_OK;
    case OPS_SHUFFLE:
    case OPS_FRAGMENT:
    case OPS_BARRIER: t->pc = pc + 1; return TG_OK;
    case OPS_SPECIAL: s[in->dst].i = r->at[in->value.i]; break;
    case OPS_VAR: s[in->dst].i = r->vars[in->value.i]; break;
    case OPS_RANGE:
      s[in->dst].i = in->value.i ? tid : 0;
      if (!in->value.i && s[in->src[0]].i <= 0) pc = in->jump;
      break;
    case OPS_END: {
      if (in->jump < 0) break;
      const Ins *loop = &p->at[in->jump];
      if (++s[loop->dst].i < s[loop->src[0]].i) pc = in->jump;
      break;
    }
    case OPS_IF:
      if (!any_lane(s + in->src[0], in->nsrc)) pc = in->jump;
      break;
    case OPS_LOAD:
    case OPS_STORE:
      if ((st = run_access(r, in, s, t->id))) return st;
      break;
    case OPS_VECTORIZE:
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l] = s[in->src[in->nsrc == 1 ? 0 : l]];
      break;
    case OPS_GEP:
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l] = s[in->src[0] + in->value.i + l];
      break;
    case OPS_LOOKUP:
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l] = s[in->src[0] + (s[in->src[1] + l].i & 15)];
      break;
    case OPS_LOOKUP4:
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l].i = looked_up((const uint8_t *)(intptr_t)in->value.i, (uint32_t)s[in->src[0] + l].i);
      break;
    case OPS_CAST:
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l] = scalar_cast(dt, (DType)in->from, s[in->src[0] + l]);
      break;
    case OPS_BITCAST:
      for (int l = 0; l < in->lanes; l++)
        s[in->dst + l] = bitcast(dt, (DType)in->from, s[in->src[0] + l]);
      break;
    default:
      for (int l = 0; l < in->lanes; l++) {
        Scalar v[3] = {{0}};
        for (int i = 0; i < in->nsrc; i++)
          v[i] = s[in->src[i] + l];
        if (!scalar_eval((Ops)in->op, (DType)in->from, v, &s[in->dst + l]))
          return error_set(r->d->err, TG_ERR_INTERNAL, "INTERP: kernel %s: %s on %s has no meaning", p->name,
                           op_name((Ops)in->op), dtype_name((DType)in->from));
      }
    }
  }
  t->pc = p->n + 1;
  return TG_OK;
}

static void indices(int flat, const int *size, int *at) {
  at[0] = flat % size[0];
  at[1] = flat / size[0] % size[1];
  at[2] = flat / size[0] / size[1];
}

/* Called when all threads are at a shuffle: each gets its partner's value. Does not order memory accesses. */
static TgStatus shuffle(Run *r, const Ins *in, Thread *threads, int n) {
  for (int i = 0; i < n; i++) {
    int from = i ^ (int)in->value.i;
    if (from >= n)
      return error_set(r->d->err, TG_ERR_INTERNAL, "INTERP: kernel %s: thread %d of %d takes what %d has",
                       r->p->name, i, n, from);
    memcpy(threads[i].s + in->dst, threads[from].s + in->src[0], in->lanes * sizeof *threads->s);
  }
  return TG_OK;
}

/* A warp's fragments, in the slots of its threads. */
typedef struct Fragments {
  const Ins *in;
  Thread *thread; /* the first thread of the warp */
} Fragments;

static Scalar *fragment_at(void *ctx, MatrixRole role, int thread, int element) {
  const Fragments *f = ctx;
  const MatrixShape *s = &matrix_shapes[f->in->value.i];
  Scalar *own = f->thread[thread].s;
  if (role == MATRIX_C) return own + f->in->dst + element;
  const MatrixOperand *a = &s->operand[MATRIX_A], *o = &s->operand[role];
  int first = role == MATRIX_B ? a->elements / a->together : 0;
  return own + f->in->src[first + element / o->together] + element % o->together;
}

static TgStatus whole_warps(Run *r, int n) {
  if (n % MATRIX_THREADS == 0) return TG_OK;
  return error_set(r->d->err, TG_ERR_INTERNAL, "INTERP: kernel %s: %d threads are no whole warps", r->p->name,
                   n);
}

/* Turns the rows that threads hold into fragments, warp by warp. */
static TgStatus rows_distributed(Run *r, const Ins *in, Thread *threads, int n) {
  TgStatus st = whole_warps(r, n);
  int word = MATRIX_WORD_BYTES / (int)dtype_size((DType)in->dtype); /* elements of a word */
  for (int i = 0; i < n && !st; i++)
    for (int e = 0; e < in->lanes; e++) {
      int t = i % MATRIX_THREADS, first = i - t + 8 * (e / word);
      int row = in->value.i ? t % 4 * word + e % word : t / 4;
      int column = in->value.i ? t / 4 : t % 4 * word + e % word;
      threads[i].s[in->dst + e] = threads[first + row].s[in->src[0] + column];
    }
  return st;
}

/* Called when all threads are at a step of the matrix units, which is computed warp by warp. */
static TgStatus multiply(Run *r, const Ins *in, Thread *threads, int n) {
  TgStatus st = whole_warps(r, n);
  for (int i = 0; i < n && !st; i++)
    memcpy(threads[i].s + in->dst, threads[i].s + in->src[in->nsrc - 1], in->lanes * sizeof *threads->s);
  for (int i = 0; i < n && !st; i += MATRIX_THREADS)
    matrix_multiply(&matrix_shapes[in->value.i], fragment_at, &(Fragments){in, threads + i});
  return st;
}

static TgStatus run_block(Run *r, Thread *threads, int n) {
  TgStatus st = TG_OK;
  for (int i = 0; i < n; i++)
    threads[i].pc = 0;
  r->epoch = 0;
  while (!st) {
    for (int i = 0; i < n && !st; i++) {
      indices(i, r->p->local, r->at);
      st = run_thread(r, &threads[i], 0);
      if (!st && threads[i].pc != threads[0].pc)
        st = error_set(r->d->err, TG_ERR_INTERNAL,
                       "INTERP: kernel %s: threads 0 and %d of a block stop at different barriers",
                       r->p->name, i);
    }
    if (st || threads[0].pc > r->p->n) break;
    const Ins *met = &r->p->at[threads[0].pc - 1];
    if (met->op == OPS_SHUFFLE)
      st = shuffle(r, met, threads, n);
    else if (met->op == OPS_FRAGMENT)
      st = rows_distributed(r, met, threads, n);
    else if (met->op == OPS_WMMA)
      st = multiply(r, met, threads, n);
    else
      r->epoch++;
  }
  return st;
}

static TgStatus run_grid(Run *r, const Scalar *first) {
  const Program *p = r->p;
  TgMem *m = r->d->mem;
  int n = p->local[0] * p->local[1] * p->local[2];
  for (int i = 0; i < 3; i++)
    r->global[i] = blocks_needed(&p->blocks[i], p->global[i], r->vars);
  double nblock = (double)r->global[0] * r->global[1] * r->global[2];
  if (nblock >= INT32_MAX)
    return error_set(r->d->err, TG_ERR_LIMIT, "INTERP: kernel %s: a grid of %.0f blocks", p->name, nblock);
  Thread *t = mem_alloc(m, (size_t)n * sizeof *t);
  Scalar *all = mem_alloc(m, (size_t)n * ((size_t)p->nslot + 1) * sizeof *all);
  r->cells = mem_alloc(m, ((size_t)p->nmem + 1) * sizeof *r->cells);
  TgStatus st = t && all && r->cells ? TG_OK : TG_ERR_NOMEM;
  for (int i = 0; i < p->nmem && !st; i++)
    if (!(r->cells[i] = mem_alloc(m, ((size_t)p->mem[i].nelem + 1) * sizeof **r->cells))) st = TG_ERR_NOMEM;
  if (st) error_set(r->d->err, st, "INTERP: out of memory");
  for (int i = 0; i < n && !st; i++) {
    t[i] = (Thread){all + (size_t)i * ((size_t)p->nslot + 1), 0, i};
    memcpy(t[i].s, first, (size_t)p->nslot * sizeof *first);
  }
  for (r->block = 0; r->block < nblock && !st; r->block++) {
    for (int i = 0; i < p->nmem; i++)
      if (p->mem[i].slot < 0) memset(r->cells[i], 0, (size_t)p->mem[i].nelem * sizeof **r->cells);
    indices(r->block, r->global, r->at + 3);
    st = run_block(r, t, n);
  }
  for (int i = 0; r->cells && i < p->nmem; i++)
    mem_free(m, r->cells[i]);
  mem_free(m, r->cells), mem_free(m, all), mem_free(m, t);
  return st;
}

static TgStatus interp_launch(Device *d, const Launch *l) {
  const Program *p = l->program;
  TgStatus st = TG_ERR_NOMEM;
  Scalar *s = mem_alloc(d->mem, ((size_t)p->nslot + 1) * sizeof *s);
  void **mem = mem_alloc(d->mem, ((size_t)p->nmem + 1) * sizeof *mem);
  bool ok = s && mem, grid = false;
  for (int i = 0; i < p->nmem && ok; i++) {
    if (p->mem[i].slot >= 0)
      mem[i] = l->bufs[p->mem[i].slot];
    else
      ok = (mem[i] = mem_alloc(d->mem, (size_t)p->mem[i].nelem * dtype_size(p->mem[i].dtype))) != NULL;
  }
  if (ok)
    st = TG_OK;
  else
    error_set(d->err, st, "INTERP: out of memory");
  for (const Loose *c = p->loose; c && ok; c = c->next)
    for (int l = 0; l < c->lanes; l++)
      s[c->slot + l] = c->value;
  for (int i = 0; i < p->n; i++)
    grid |= p->at[i].op == OPS_SPECIAL || p->at[i].op == OPS_BARRIER || p->at[i].op == OPS_SHUFFLE ||
            p->at[i].op == OPS_FRAGMENT ||
            (p->at[i].op == OPS_WMMA && !matrix_in_memory(&matrix_shapes[p->at[i].value.i]));
  Run r = {.d = d, .p = p, .mem = mem, .vars = l->vars};
  if (grid && !st)
    st = run_grid(&r, s);
  else
    for (int tid = 0; tid < p->nthread && !st; tid++)
      st = run_thread(&r, &(Thread){s, 0, tid}, tid);
  for (int i = 0; mem && i < p->nmem; i++)
    if (p->mem[i].slot < 0) mem_free(d->mem, mem[i]);
  mem_free(d->mem, mem), mem_free(d->mem, s);
  return st;
}

static TgStatus interp_open(Device *d) {
  d->target = d->backend->renderer ? *d->backend->renderer->target : target_planned;
  d->describe = "reference interpreter, checks every access";
  return TG_OK;
}

static void interp_close(Device *d) { host_trim(d); }

#define INTERP_BACKEND(id, text, caps, rend)                                                                 \
  const TgBackend id = {.name = text,                                                                        \
                        .has = (caps) | HAS_RUN | HAS_CHECKS | HAS_LISTS,                                    \
                        .open = interp_open,                                                                 \
                        .close = interp_close,                                                               \
                        .alloc = host_alloc,                                                                 \
                        .free = host_free,                                                                   \
                        .copy_in = host_copy,                                                                \
                        .copy_out = host_copy,                                                               \
                        .copy = host_copy,                                                                   \
                        .compile = interp_compile,                                                           \
                        .unload = interp_unload,                                                             \
                        .launch = interp_launch,                                                             \
                        HOST_ORDER,                                                                          \
                        .renderer = rend}
INTERP_BACKEND(backend_interp, "INTERP", HAS_THREADS, NULL);
INTERP_BACKEND(backend_interp_c, "INTERP:C", HAS_THREADS, &renderer_c);
INTERP_BACKEND(backend_interp_amx, "INTERP:AMX", HAS_THREADS, &renderer_amx);
INTERP_BACKEND(backend_interp_dot, "INTERP:DOT", HAS_THREADS, &renderer_dot);
INTERP_BACKEND(backend_interp_c99, "INTERP:C99", 0, &renderer_c99);
#ifndef TG_NO_CUDA
INTERP_BACKEND(backend_interp_cuda, "INTERP:CUDA", HAS_OWN_MEMORY, &renderer_cuda);
#endif
#ifndef TG_NO_METAL
INTERP_BACKEND(backend_interp_metal, "INTERP:METAL", HAS_OWN_MEMORY, &renderer_metal);
#endif
