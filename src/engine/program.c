/* program.c: a captured function as text. In: its steps. Out: what it is given and gives, the memories that
 * stay, and each step's graph as it was before it was scheduled, in the text form of uop/print.c: so any
 * machine and device can plan and compile it. A plan is found by the bytes of its graph (graph_copy.c), and
 * the graph is made of those again: a capture keeps nothing besides.
 *
 *   tinygrad program 1
 *   variable "rows" 1 64 1          v0 in the graphs: 1 .. 64, multiples of 1
 *   random 42 1 4096                seed, the device's place among those that draw, its counter
 *   m0 = input f32 (8, 784) "x"     given at each run; names are quoted as in JSON
 *   m1 = output f32 () "loss"       made by each run
 *   m2 = draw 512                   the key of a draw of so many words, u64 (1): drawn anew by each run
 *   m3 = memory f32 (784, 10) "w"   stays between runs: a tensor of that name comes with the text
 *   m4 = scratch f32 80             what one step leaves for another
 *   step m0 m3+16 m2 -> m4 -        memory by BUFFER of the graph, from an element on; then by root: "-" is a
 *   ..                              store, or what another root computes
 *   end
 *   copy m3+16 m4                   all of m4, from element 16 of m3 on
 */
#include "engine/graph_copy.h"
#include "engine/jit.h"
#include "tensor/front.h"
#include "uop/text.h"
#include <stdio.h>

enum { NO_MEMORY = -1 };

/* number: of a Buffer, or of a place in a step that an input or output is put into, its number + 1 */
typedef struct Writer {
  TgJit *j;
  TgContext *ctx;
  Str head, steps;
  Map number;
  Map named, taken; /* Buffer -> 1 + where the caller's list has it; hashes of names */
  const char *const *names;
  TgTensor *const *tensors;
  int count; /* memories so far */
  DimTable *dims;
  Vec(int) vars; /* by number in the text: the context's number */
  const Device *dev;
} Writer;

static bool refused(Writer *w, TgStatus s, const char *fmt, ...) TG_PRINTF(3, 4);

static bool refused(Writer *w, TgStatus s, const char *fmt, ...) {
  char what[300];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  error_set(&w->ctx->err, s, "jit to text: %s", what);
  return false;
}

static bool no_memory(Writer *w) { return refused(w, TG_ERR_NOMEM, "out of memory"); }

/* ---- declarations */
static void put_quoted(Str *o, const char *s) {
  str_put(o, "\"");
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') str_put(o, "\\");
    if (c < ' ')
      str_printf(o, "\\u%04x", c);
    else
      str_putn(o, s, 1);
  }
  str_put(o, "\"");
}

static void put_shaped(Str *o, const char *kind, DType d, int n, const int64_t *dims, const char *name) {
  str_printf(o, " = %s %s (", kind, dtype_name(d));
  for (int i = 0; i < n; i++)
    str_printf(o, i ? ", %lld" : "%lld", (long long)dims[i]);
  str_put(o, ") ");
  put_quoted(o, name);
  str_put(o, "\n");
}

static void put_values(Writer *w, const char *kind, const Want *v, int n) {
  for (int i = 0; i < n; i++) {
    char own[32];
    snprintf(own, sizeof own, "%s%d", kind, i);
    str_printf(&w->head, "m%d", w->count++);
    put_shaped(&w->head, kind, v[i].dtype, v[i].n, v[i].dims, v[i].name ? v[i].name : own);
  }
}

static bool number_new(Writer *w, const void *key) {
  return map_put(&w->number, (uint64_t)(uintptr_t)key, (uint64_t)++w->count) || no_memory(w);
}

static uint64_t name_hash(const char *name) { return hash_bytes(7, name, strlen(name)); }

static bool name_free(const Writer *w, const char *name) {
  uint64_t had;
  return !map_get(&w->taken, name_hash(name), &had);
}

/* The caller's names, each of the memory that its tensor is a piece of. */
static bool names_listed(Writer *w, int n) {
  for (int i = 0; i < n; i++) {
    TgTensor *t = w->tensors[i];
    uint64_t had;
    if (!w->names[i] || !t || t->ctx != w->ctx)
      return refused(w, TG_ERR_VALUE, "name %d: no name, or no tensor of this context", i);
    if (strlen(w->names[i]) > MOST_PROGRAM_NAME)
      return refused(w, TG_ERR_LIMIT, "name %d has more than %d bytes", i, MOST_PROGRAM_NAME);
    if (!name_free(w, w->names[i])) return refused(w, TG_ERR_VALUE, "two names are %.64s", w->names[i]);
    if (!map_put(&w->taken, name_hash(w->names[i]), 1)) return no_memory(w);
    if (t->memory && !map_get(&w->named, (uint64_t)(uintptr_t)t->memory, &had) &&
        !map_put(&w->named, (uint64_t)(uintptr_t)t->memory, (uint64_t)i + 1))
      return no_memory(w);
  }
  return true;
}

/* What m is called, and its shape: as the caller says, or by its number. */
static bool memory_named(Writer *w, Memory *m, int64_t nelem) {
  uint64_t i;
  char own[32];
  int64_t start;
  TgTensor *t = map_get(&w->named, (uint64_t)(uintptr_t)m->buffer, &i) ? w->tensors[i - 1] : NULL;
  if (t && !dims_symbolic(t->uop->shape) && nelem == tg_numel(t) && in_memory(t->uop) && !m->offset &&
      piece_of(t->uop, &start)) {
    m->n = rank(t);
    memcpy(m->dims, dims(t), (size_t)m->n * sizeof *m->dims);
    m->name = mem_strdup(&w->ctx->mem, w->names[i - 1]);
    return m->name || no_memory(w);
  }
  m->n = 1;
  m->dims[0] = nelem;
  size_t number = w->j->memories.len;
  do
    snprintf(own, sizeof own, "memory.%zu", number++);
  while (!name_free(w, own));
  m->name = mem_strdup(&w->ctx->mem, own);
  return (m->name && map_put(&w->taken, name_hash(own), 1)) || no_memory(w);
}

static void put_memory(Writer *w, int number, const Memory *m) {
  str_printf(&w->head, "m%d", number);
  put_shaped(&w->head, "memory", m->buffer->dtype, m->n, m->dims, m->name);
}

/* Of a file that nobody writes, each part that is read is a memory by itself: the rest of the file is none of
 * the program's. */
static uint64_t memory_key(const Buffer *b, size_t offset, int64_t nelem) {
  uint64_t key = (uint64_t)(uintptr_t)b;
  return b->read_only ? hash_mix(hash_mix(key, offset), (uint64_t)nelem) | 1 : key;
}

static bool memory_added(Writer *w, Buffer *b, size_t offset, int64_t nelem) {
  const Device *d = device_at(w->ctx, b->device);
  Memory m = {.buffer = b, .offset = b->read_only ? offset : 0};
  if (d != w->dev && !(d->backend->has & HAS_FILES_ONLY))
    return refused(w, TG_ERR_DEVICE, "memory on %s, in a program of %s: a program as text is of one device",
                   d->name, w->dev->name);
  int64_t n = b->read_only ? nelem : b->nelem;
  if (!memory_named(w, &m, n) || !number_new(w, (void *)(uintptr_t)memory_key(b, offset, nelem))) {
    mem_free(&w->ctx->mem, m.name);
    return false;
  }
  put_memory(w, w->count - 1, &m);
  if (vec_push(&w->ctx->mem, &w->j->memories, m)) return true;
  mem_free(&w->ctx->mem, m.name);
  return no_memory(w);
}

static bool scratch_added(Writer *w, const Buffer *b) {
  str_printf(&w->head, "m%d = scratch %s %lld\n", w->count, dtype_name(b->dtype), (long long)b->nelem);
  return number_new(w, b);
}

/* Of what was loaded: the memory that holds byte `offset` of b, NO_MEMORY: none. */
static int loaded_memory(const Writer *w, const Buffer *b, size_t offset) {
  const TgJit *j = w->j;
  for (size_t i = 0; i < j->memories.len; i++) {
    const Memory *m = &j->memories.at[i];
    size_t nbytes = dtype_size(b->dtype);
    for (int k = 0; k < m->n; k++)
      nbytes *= (size_t)m->dims[k];
    bool inside = offset == m->offset || (offset > m->offset && offset - m->offset < nbytes);
    if (m->buffer == b && inside) return j->nin + j->nout + (int)j->draws.len + (int)i;
  }
  return NO_MEMORY;
}

static bool is_own(const TgJit *j, const Buffer *b) {
  for (size_t i = 0; i < j->own.len; i++)
    if (j->own.at[i] == b) return true;
  return false;
}

/* The number of what stands at a place in a step, of which nelem elements of d are used from byte *offset on;
 * new memory is declared. *offset: from where on in that memory. What an input or output is put into holds
 * what the last run left there, and is not looked at. */
static bool number_of(Writer *w, Buffer *const *at, DType d, int64_t nelem, int *number, size_t *offset) {
  uint64_t known = 0;
  if (map_get(&w->number, (uint64_t)(uintptr_t)at, &known)) return *number = (int)known - 1, true;
  Buffer *b = *at;
  int first = w->j->nin + w->j->nout + (int)w->j->draws.len;
  if (NEVER(b->dtype != d)) return refused(w, TG_ERR_INTERNAL, "memory of another dtype");
  if (map_get(&w->number, (uint64_t)(uintptr_t)b, &known)) return *number = (int)known - 1, true;
  if (w->j->loaded && (*number = loaded_memory(w, b, *offset)) != NO_MEMORY)
    return *offset -= w->j->memories.at[*number - first].offset, true;
  *number = w->count;
  if (is_own(w->j, b)) return scratch_added(w, b);
  if (map_get(&w->number, memory_key(b, *offset, nelem), &known))
    *number = (int)known - 1;
  else if (!memory_added(w, b, *offset, nelem))
    return false;
  if (b->read_only) *offset = 0;
  return true;
}

static bool put_place(Writer *w, Buffer *const *at, size_t offset, DType d, int64_t nelem) {
  int number = NO_MEMORY;
  if (!number_of(w, at, d, nelem, &number, &offset)) return false;
  size_t start = offset / dtype_size(d);
  str_printf(&w->steps, start ? " m%d+%zu" : " m%d", number, start);
  return true;
}

/* ---- steps */
/* The BUFFER of each memory of the graph. */
static bool graph_read(Writer *w, UOpStore *st, const UOpVec *roots, const UOp **buffer, size_t nbuf) {
  UOpVec order = {0};
  bool ok = uop_toposort(st, &w->ctx->mem, roots->at, roots->len, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    const UOp *u = order.at[i];
    if (u->op == OPS_BUFFER && (size_t)u->arg.param.slot < nbuf) buffer[u->arg.param.slot] = u;
  }
  vec_free(&w->ctx->mem, &order);
  return ok;
}

static bool put_roots(Writer *w, Step *s) {
  const Schedule *sched = &s->plan->sched;
  str_put(&w->steps, " ->");
  for (int i = 0; i < sched->nroot; i++) {
    int64_t at = sched->root[i] - TEMP_BASE;
    if (at < 0)
      str_put(&w->steps, " -");
    else if (!put_place(w, &s->temp[at], 0, sched->temp[at].dtype, sched->temp[at].nelem))
      return false;
  }
  str_put(&w->steps, "\n");
  return true;
}

/* The number in the text of the context's variable i, which is declared where it is met first. */
static int var_written(void *writer, int i) {
  Writer *w = writer;
  for (size_t k = 0; k < w->vars.len; k++)
    if (w->vars.at[k] == i) return (int)k;
  const DimVar *v = dims_var_at(w->ctx->dims, i);
  if (!v || !vec_push(&w->ctx->mem, &w->vars, i)) return -1;
  str_put(&w->head, "variable "), put_quoted(&w->head, v->name);
  str_printf(&w->head, " %lld %lld %lld\n", (long long)v->lo, (long long)v->hi, (long long)v->multiple);
  return dims_var(w->dims, v->name, v->lo, v->hi, v->multiple);
}

static bool put_graph(Writer *w, Step *s, UOpStore *st, UOpVec *roots, const UOp **buffer) {
  TgMem *mem = &w->ctx->mem;
  store_set_dims(st, w->dims);
  Renumber text = {w->ctx->store, var_written, w};
  if (!graph_of_key(mem, s->plan->key, s->plan->nkey, st, &text, roots)) return no_memory(w);
  if (!graph_read(w, st, roots, buffer, s->nbuf)) return no_memory(w);
  str_put(&w->steps, "step");
  for (size_t k = 0; k < s->nbuf; k++) {
    const UOp *b = buffer[k];
    if (NEVER(!b)) return refused(w, TG_ERR_INTERNAL, "a memory that no graph names");
    if (!put_place(w, &s->buf[k].buffer, s->buf[k].offset, (DType)b->dtype, b->arg.param.nelem)) return false;
  }
  if (!put_roots(w, s)) return false;
  bool ok = uop_print(&w->steps, st, mem, roots->at, roots->len) || no_memory(w);
  str_put(&w->steps, "end\n");
  return ok;
}

static bool put_plan(Writer *w, Step *s) {
  TgMem *mem = &w->ctx->mem;
  if (w->dev != s->plan->dev)
    return refused(w, TG_ERR_DEVICE, "a program of %s and %s: text is of one device", w->dev->name,
                   s->plan->dev->name);
  UOpVec roots = {0};
  UOpStore *st = store_new(mem);
  const UOp **buffer = mem_alloc(mem, (s->nbuf + 1) * sizeof *buffer);
  bool ok = st && buffer ? put_graph(w, s, st, &roots, buffer) : no_memory(w);
  vec_free(mem, &roots), mem_free(mem, buffer);
  store_free(st);
  return ok;
}

static int64_t want_nelem(const Want *v) {
  int64_t n = 1;
  for (int i = 0; i < v->n; i++)
    n *= v->dims[i];
  return n;
}

/* A copy fills all of `to`, which may be an output. */
static bool put_copy(Writer *w, Step *s) {
  TgJit *j = w->j;
  uint64_t number;
  bool output = map_get(&w->number, (uint64_t)(uintptr_t)&s->to, &number);
  const Want *v = output && (int)number > j->nin ? &j->out[(int)number - 1 - j->nin] : NULL;
  if (NEVER(output && !v)) return refused(w, TG_ERR_INTERNAL, "a copy to an input");
  DType d = v ? v->dtype : s->to->dtype;
  int64_t nelem = v ? want_nelem(v) : s->to->nelem;
  str_put(&w->steps, "copy");
  bool ok = put_place(w, &s->from, s->offset, d, nelem) && put_place(w, &s->to, 0, d, nelem);
  str_put(&w->steps, "\n");
  return ok;
}

/* ---- the whole */
static bool values_here(Writer *w, const char *what, const Want *v, int n) {
  for (int i = 0; i < n; i++)
    if (device_at(w->ctx, v[i].device) != w->dev)
      return refused(w, TG_ERR_DEVICE, "%s %d is on %s, the program on %s: text is of one device", what, i,
                     device_at(w->ctx, v[i].device)->name, w->dev->name);
  return true;
}

static bool put_random(Writer *w) {
  TgJit *j = w->j;
  for (size_t i = 0; i < j->draws.len; i++)
    if (device_at(w->ctx, j->draws.at[i]->device) != w->dev)
      return refused(w, TG_ERR_DEVICE, "draws on another device than %s", w->dev->name);
  if (j->draws.len)
    str_printf(&w->head, "random %llu %d %llu\n", (unsigned long long)w->ctx->rng_seed,
               draw_order(w->ctx, w->dev->index), (unsigned long long)w->ctx->draws[w->dev->index].counter);
  return true;
}

static bool put_all(Writer *w, int nnamed) {
  TgJit *j = w->j;
  str_put(&w->head, "tinygrad program 1\n");
  if (!put_random(w)) return false;
  put_values(w, "input", j->in, j->nin), put_values(w, "output", j->out, j->nout);
  for (size_t i = 0; i < j->patches.len; i++) {
    int k = j->patches.at[i].k;
    uint64_t number = (uint64_t)(k >= 0 ? k : j->nin - 1 - k) + 1;
    if (!map_put_ptr(&w->number, (uintptr_t)j->patches.at[i].at, number)) return no_memory(w);
  }
  for (size_t i = 0; i < j->draws.len; i++) {
    str_printf(&w->head, "m%d = draw %lld\n", w->count, (long long)j->draws.at[i]->draws);
    if (!number_new(w, j->draws.at[i])) return false;
  }
  if (!j->loaded) {
    jit_memories_free(j);
    if (!names_listed(w, nnamed)) return false;
  }
  for (size_t i = 0; i < j->memories.len; i++)
    put_memory(w, w->count++, &j->memories.at[i]);
  for (size_t i = 0; i < j->c.steps.len; i++) {
    Step *s = &j->c.steps.at[i];
    if (!(s->plan ? put_plan(w, s) : put_copy(w, s))) return false;
  }
  return true;
}

/* What tg_jit_variable tells: those of the text, in its order. */
static bool variables_noted(Writer *w) {
  TgJit *j = w->j;
  j->variables.len = 0;
  for (size_t i = 0; i < w->vars.len; i++)
    if (!vec_push(&w->ctx->mem, &j->variables, w->vars.at[i])) return no_memory(w);
  return true;
}

static const Device *program_device(const TgJit *j) {
  for (size_t i = 0; i < j->c.steps.len; i++)
    if (j->c.steps.at[i].plan) return j->c.steps.at[i].plan->dev;
  return device_at(j->ctx, j->ctx->default_device);
}

const char *tg_jit_to_text(TgJit *j, const char *const *names, TgTensor *const *tensors, int n) {
  if (!j) return NULL;
  TgContext *ctx = j->ctx;
  if (capture_refuses(ctx, "jit to text")) return NULL;
  TG_REQUIRE(ctx, j->runs == 2, TG_ERR_STATE,
             "jit to text: nothing is captured yet: run it twice, or load it");
  TG_REQUIRE(ctx, !n || (names && tensors && n > 0), TG_ERR_VALUE, "jit to text: %d names", n);
  if (ctx->err.status || jit_stores_flushed(ctx)) return NULL;
  Writer w = {.j = j, .ctx = ctx, .names = names, .tensors = tensors, .dev = program_device(j)};
  str_init(&w.head, &ctx->mem), str_init(&w.steps, &ctx->mem);
  map_init(&w.number, &ctx->mem), map_init(&w.named, &ctx->mem), map_init(&w.taken, &ctx->mem);
  w.dims = dims_new(&ctx->mem, NULL);
  bool ok = w.dims || no_memory(&w);
  ok = ok && values_here(&w, "input", j->in, j->nin) && values_here(&w, "output", j->out, j->nout) &&
       put_all(&w, n) && variables_noted(&w);
  str_putn(&w.head, str_text(&w.steps), w.steps.len);
  if (ok && (w.head.oom || w.steps.oom)) ok = no_memory(&w);
  map_free(&w.number), map_free(&w.named), map_free(&w.taken);
  dims_free(w.dims), vec_free(&ctx->mem, &w.vars);
  str_free(&w.steps), str_free(&ctx->text);
  if (ok)
    ctx->text = w.head;
  else
    str_free(&w.head), str_init(&ctx->text, &ctx->mem);
  return ok ? str_text(&ctx->text) : NULL;
}

/* ---- what is asked about it */
static bool value_get(const TgJit *j, const Want *v, int n, size_t i, TgJitValue *out) {
  if (!j || !out || i >= (size_t)n) return false;
  *out = (TgJitValue){v[i].name ? v[i].name : "", dtype_public(v[i].dtype), v[i].n, v[i].dims};
  return true;
}

bool tg_jit_input(const TgJit *j, size_t i, TgJitValue *v) {
  return value_get(j, j ? j->in : NULL, j ? j->nin : 0, i, v);
}

bool tg_jit_output(const TgJit *j, size_t i, TgJitValue *v) {
  return value_get(j, j ? j->out : NULL, j ? j->nout : 0, i, v);
}

static bool want_named(TgJit *j, Want *w, const char *name) {
  char *own = name ? mem_strdup(&j->ctx->mem, name) : NULL;
  if (name && !own) return false;
  mem_free(&j->ctx->mem, w->name);
  w->name = own;
  return true;
}

TgStatus tg_jit_name(TgJit *j, const char *const *inputs, const char *const *outputs) {
  if (!j) return TG_ERR_VALUE;
  TgContext *ctx = j->ctx;
  TG_REQUIRE_OR(ctx, j->runs == 2, TG_ERR_STATE, TG_ERR_STATE, "jit names: nothing is captured yet");
  bool ok = true;
  for (int i = 0; i < j->nin + j->nout; i++) {
    const char *const *list = i < j->nin ? inputs : outputs;
    const char *name = list ? list[i < j->nin ? i : i - j->nin] : NULL;
    TG_REQUIRE_OR(ctx, !name || strlen(name) <= MOST_PROGRAM_NAME, TG_ERR_LIMIT, TG_ERR_LIMIT,
                  "jit names: a name of more than %d bytes", MOST_PROGRAM_NAME);
  }
  for (int i = 0; ok && inputs && i < j->nin; i++)
    ok = want_named(j, &j->in[i], inputs[i]);
  for (int i = 0; ok && outputs && i < j->nout; i++)
    ok = want_named(j, &j->out[i], outputs[i]);
  return ok ? TG_OK : error_set(&ctx->err, TG_ERR_NOMEM, "jit names: out of memory");
}

TgVariable *tg_jit_variable(TgJit *j, size_t i) {
  return j && i < j->variables.len ? variable_at(j->ctx, j->variables.at[i]) : NULL;
}

TgTensor *tg_jit_memory(TgJit *j, size_t i, const char **name) {
  if (!j || i >= j->memories.len) return NULL;
  TgContext *ctx = j->ctx;
  const Memory *m = &j->memories.at[i];
  UOpStore *st = ctx->store;
  if (!memory_flush(ctx, m->buffer)) return NULL;
  int64_t n = 1, start = (int64_t)(m->offset / dtype_size(m->buffer->dtype));
  for (int k = 0; k < m->n; k++)
    n *= m->dims[k];
  UOp *u = memory_node(ctx, m->buffer);
  if (u && n != m->buffer->nelem) u = u_shrink(st, u, (int64_t[]){start, start + n});
  u = u ? u_reshape(st, u, m->n, m->dims) : NULL;
  if (name) *name = m->name;
  return tensor_memory(ctx, u);
}
