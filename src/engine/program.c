/* program.c: a captured function as text. In: its steps. Out: its inputs and outputs, the memories that last,
 * and each step's graph as it was before it was scheduled, in the text form of uop/print.c, so that any
 * machine and device can plan and compile it. A plan is identified by the bytes of its graph (graph_copy.c),
 * and the graph is made again from these bytes, so a capture need not keep it.
 *
 *   tinygrad program 1
 *   variable "rows" 1 64 1          v0 in the graphs: 1 .. 64, multiples of 1
 *   random 42 1 4096                seed, the device's place among those that draw, its counter
 *   m0 = input f32 (8, 784) "x"     given at each run; names are quoted as in JSON
 *   m1 = output f32 () "loss"       made by each run
 *   m2 = draw 512                   the key of a draw of 512 words, u64 (1): drawn anew by each run
 *   m3 = memory f32 (784, 10) "w"   lasts between runs: a tensor of this name comes with the text
 *   m4 = scratch f32 80             what one step leaves for another
 *   step m0 m3+16 m2 -> m4 -        the memory of each BUFFER of the graph, from an element on; then that
 *   ..                              of each root: "-" is a store, or what another root computes
 *   end
 *   copy m3+16 m4                   all of m4, from element 16 of m3 on
 *
 * A program for several devices has version 2. It begins with their names, and each memory, draw and step
 * names its device. Copies may be between any two devices:
 *
 *   device "CPU"                    d0
 *   device "CPU:1"                  d1
 *   random d1 42 1 4096             one for each device that draws
 *   parts 2 axis 0                  the next 2 are parts of one input or output; without an axis each is all
 *   m0 = input d0 f32 (4, 784) "x"
 *   m1 = input d1 f32 (4, 784) "x"
 *   m2 = memory d1 f32 (2) "w"      the same name on two devices: each has all of one tensor
 *   step d1 m1 m2 -> m4
 */
#include "engine/graph_copy.h"
#include "engine/jit.h"
#include "tensor/front.h"
#include <stdio.h>

enum { NO_MEMORY = -1 };

/* number: of a Buffer, or of a place in a step that each run fills with an input or output, its number +
 * 1. */
typedef struct Writer {
  TgJit *j;
  TgContext *ctx;
  Str head, steps;
  Map number;
  Map named, taken; /* Buffer -> 1 + index in the caller's list, part << 32; hashes of names */
  const char *const *names;
  TgTensor *const *tensors;
  int count; /* memories so far */
  DimTable *dims;
  UOpStore *sizes; /* sizes over these variables */
  Vec(int) vars;   /* by number in the text: number in the context */
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

static bool several(const Writer *w) { return w->j->devices.len > 1; }

/* Writes " d1" if the program has several devices. */
static void put_device(const Writer *w, Str *o, int device) {
  size_t i = 0;
  while (i < w->j->devices.len && w->j->devices.at[i] != device)
    i++;
  if (several(w)) str_printf(o, " d%zu", i);
}

static int var_written(void *writer, int i);

/* Translates sizes to the text's variables. A variable is declared before it is used. */
static bool sizes_moved(Writer *w, int n, const int64_t *dims, int64_t *out) {
  for (int i = 0; i < n; i++)
    if ((out[i] = dim_moved(w->sizes, w->ctx->store, dims[i], var_written, w)) == DIM_BAD)
      return no_memory(w);
  return true;
}

static void put_shaped(Writer *w, const char *kind, int device, DType d, int n, const int64_t *dims,
                       const char *name) {
  Str *o = &w->head;
  str_printf(o, "m%d = %s", w->count++, kind);
  put_device(w, o, device);
  str_printf(o, " %s (", dtype_name(d));
  for (int i = 0; i < n; i++) {
    if (i) str_put(o, ", ");
    dim_put(o, w->sizes, dims[i]);
  }
  str_put(o, ") ");
  put_quoted(o, name);
  str_put(o, "\n");
}

/* Writes n inputs or outputs. part: the parts of all of them, one after another. */
static bool put_values(Writer *w, const char *kind, const Given *g, int n, const Want *part) {
  for (int i = 0; i < n; i++) {
    char own[32];
    int64_t dims[TG_MAX_RANK];
    snprintf(own, sizeof own, "%s%d", kind, i);
    if (g[i].at.n > 1) str_printf(&w->head, "parts %d", g[i].at.n);
    if (g[i].at.n > 1 && g[i].at.axis >= 0) str_printf(&w->head, " axis %d", g[i].at.axis);
    if (g[i].at.n > 1) str_put(&w->head, "\n");
    for (int p = 0; p < g[i].at.n; p++, part++) {
      if (!sizes_moved(w, part->n, part->dims, dims)) return false;
      put_shaped(w, kind, part->device, part->dtype, part->n, dims, g[i].name ? g[i].name : own);
    }
  }
  return true;
}

/* key: the memory or place that was declared last */
static bool number_set(Writer *w, const void *key) {
  return map_put(&w->number, (uint64_t)(uintptr_t)key, (uint64_t)w->count) || no_memory(w);
}

static uint64_t name_hash(const char *name) { return hash_bytes(7, name, strlen(name)); }

static bool name_free(const Writer *w, const char *name) {
  uint64_t had;
  return !map_get(&w->taken, name_hash(name), &had);
}

/* Notes that the memory of t, which is part p of name i, has this name. */
static bool name_listed(Writer *w, const TgTensor *t, uint64_t i, uint64_t p) {
  uint64_t had, key = (uint64_t)(uintptr_t)t->memory;
  bool known = !t->memory || map_get(&w->named, key, &had);
  return known || map_put(&w->named, key, (i + 1) | p << 32) || no_memory(w);
}

/* Notes the caller's names, each for the memory that its tensor is a piece of. */
static bool names_listed(Writer *w, int n) {
  for (int i = 0; i < n; i++) {
    const TgTensor *t = w->tensors[i];
    if (!w->names[i] || !t || t->ctx != w->ctx)
      return refused(w, TG_ERR_VALUE, "name %d: no name, or no tensor of this context", i);
    if (strlen(w->names[i]) > MOST_PROGRAM_NAME)
      return refused(w, TG_ERR_LIMIT, "name %d has more than %d bytes", i, MOST_PROGRAM_NAME);
    if (!name_free(w, w->names[i])) return refused(w, TG_ERR_VALUE, "two names are %.64s", w->names[i]);
    if (!map_put(&w->taken, name_hash(w->names[i]), 1)) return no_memory(w);
    if (!name_listed(w, t, (uint64_t)i, 0)) return false;
    for (int p = 0; p < t->nparts; p++)
      if (!name_listed(w, t->part[p], (uint64_t)i, (uint64_t)p)) return false;
  }
  return true;
}

/* Makes a new name for the text. NULL: an error was recorded. */
static char *own_name(Writer *w, const char *of, size_t number) {
  char own[MOST_PROGRAM_NAME + 32];
  do
    snprintf(own, sizeof own, "%s%zu", of, number++);
  while (!name_free(w, own));
  if (strlen(own) > MOST_PROGRAM_NAME)
    return refused(w, TG_ERR_LIMIT, "a part's name has more than %d bytes", MOST_PROGRAM_NAME), NULL;
  char *name = mem_strdup(&w->ctx->mem, own);
  if (name && map_put(&w->taken, name_hash(own), 1)) return name;
  mem_free(&w->ctx->mem, name);
  return no_memory(w), NULL;
}

/* Returns the caller's name for part p of t, its tensor i. If each device has the whole tensor, all of
 * them have the same name. */
static char *given_name(Writer *w, const TgTensor *t, size_t i, size_t p) {
  char of[MOST_PROGRAM_NAME + 8];
  bool split = t->part && tg_shard_axis((TgTensor *)t) >= 0;
  snprintf(of, sizeof of, "%s.part", w->names[i]);
  char *name = split ? own_name(w, of, p) : mem_strdup(&w->ctx->mem, w->names[i]);
  return name || split ? name : (no_memory(w), NULL);
}

/* Sets the name and shape of m: as the caller gave them, or by its number. */
static bool memory_named(Writer *w, Memory *m, int64_t nelem) {
  uint64_t i;
  int64_t start;
  bool given = map_get(&w->named, (uint64_t)(uintptr_t)m->buffer, &i);
  TgTensor *whole = given ? w->tensors[(uint32_t)i - 1] : NULL, *t = whole;
  if (whole && whole->part) t = whole->part[i >> 32];
  if (t && !dims_symbolic(t->uop->shape) && nelem == tg_numel(t) && in_memory(t->uop) && !m->offset &&
      piece_of(t->uop, &start)) {
    m->n = rank(t);
    memcpy(m->dims, dims(t), (size_t)m->n * sizeof *m->dims);
    m->name = given_name(w, whole, (uint32_t)i - 1, i >> 32);
    return m->name != NULL;
  }
  m->n = 1;
  m->dims[0] = nelem;
  m->name = own_name(w, "memory.", w->j->memories.len);
  return m->name != NULL;
}

/* home: the device that the text names for a memory in a file */
static void put_memory(Writer *w, const Memory *m, int home) {
  bool file = device_facts(w->ctx, m->buffer->device).files_only;
  put_shaped(w, "memory", file ? home : m->buffer->device, m->buffer->dtype, m->n, m->dims, m->name);
}

/* In a file that nobody writes, each part that is read is a memory by itself, because the rest of the file
 * does not belong to the program. */
static uint64_t memory_key(const Buffer *b, size_t offset, int64_t nelem) {
  uint64_t key = (uint64_t)(uintptr_t)b;
  return b->read_only ? hash_mix(hash_mix(key, offset), (uint64_t)nelem) | 1 : key;
}

static bool memory_added(Writer *w, Buffer *b, size_t offset, int64_t nelem, int home) {
  Memory m = {.buffer = b, .offset = b->read_only ? offset : 0};
  if (!memory_named(w, &m, b->read_only ? nelem : b->nelem)) return false;
  put_memory(w, &m, home);
  if (number_set(w, (void *)(uintptr_t)memory_key(b, offset, nelem)) &&
      (vec_push(&w->ctx->mem, &w->j->memories, m) || no_memory(w)))
    return true;
  mem_free(&w->ctx->mem, m.name);
  return false;
}

static bool scratch_added(Writer *w, const Buffer *b) {
  str_printf(&w->head, "m%d = scratch", w->count++);
  put_device(w, &w->head, b->device);
  str_printf(&w->head, " %s %lld\n", dtype_name(b->dtype), (long long)b->nelem);
  return number_set(w, b);
}

/* For a loaded program: returns the number of the memory that contains byte `offset` of b. NO_MEMORY:
 * there is none. */
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

/* Finds the number of what a place in a step holds, of which nelem elements of dtype d are used from byte
 * *offset on. A new memory is declared. *offset becomes the offset in the declared memory. A place that
 * each run fills still holds a buffer of the last run, which is not looked at. */
static bool number_of(Writer *w, Buffer *const *at, DType d, int64_t nelem, int home, int *number,
                      size_t *offset) {
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
  else if (!memory_added(w, b, *offset, nelem, home))
    return false;
  if (b->read_only) *offset = 0;
  return true;
}

/* home: the device that uses the memory, if it is in a file */
static bool put_place(Writer *w, Buffer *const *at, size_t offset, DType d, int64_t nelem, int home) {
  int number = NO_MEMORY;
  if (!number_of(w, at, d, nelem, home, &number, &offset)) return false;
  size_t start = offset / dtype_size(d);
  str_printf(&w->steps, start ? " m%d+%zu" : " m%d", number, start);
  return true;
}

/* ---- steps */
/* Finds the BUFFER of each memory of the graph. */
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
  int home = s->plan->dev->index;
  str_put(&w->steps, " ->");
  for (int i = 0; i < sched->nroot; i++) {
    int64_t at = sched->root[i] - TEMP_BASE;
    if (at < 0)
      str_put(&w->steps, " -");
    else if (!put_place(w, &s->temp[at], 0, sched->temp[at].dtype, sched->temp[at].nelem, home))
      return false;
  }
  str_put(&w->steps, "\n");
  return true;
}

/* Returns the number in the text of the context's variable i. It is declared at its first use. */
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
  int home = s->plan->dev->index;
  str_put(&w->steps, "step");
  put_device(w, &w->steps, home);
  for (size_t k = 0; k < s->nbuf; k++) {
    /* NULL: nothing reads it in what is left of the graph after simplification */
    const UOp *b = buffer[k];
    const Buffer *whole = s->buf[k].buffer;
    DType d = b ? (DType)b->dtype : whole ? whole->dtype : DT_U8;
    int64_t nelem = b ? b->arg.param.nelem : whole ? whole->nelem : 0;
    if (!put_place(w, &s->buf[k].buffer, s->buf[k].offset, d, nelem, home)) return false;
  }
  if (!put_roots(w, s)) return false;
  bool ok = uop_print(&w->steps, st, mem, roots->at, roots->len) || no_memory(w);
  str_put(&w->steps, "end\n");
  return ok;
}

static bool put_plan(Writer *w, Step *s) {
  TgMem *mem = &w->ctx->mem;
  UOpVec roots = {0};
  UOpStore *st = store_new(mem);
  const UOp **buffer = mem_alloc(mem, (s->nbuf + 1) * sizeof *buffer);
  bool ok = st && buffer ? put_graph(w, s, st, &roots, buffer) : no_memory(w);
  vec_free(mem, &roots), mem_free(mem, buffer);
  store_free(st);
  return ok;
}

/* A copy fills all of `to`, which may be an output. */
static bool put_copy(Writer *w, Step *s) {
  TgJit *j = w->j;
  uint64_t number;
  bool output = map_get(&w->number, (uint64_t)(uintptr_t)&s->to, &number);
  const Want *v = output && (int)number > j->nin ? &j->out[(int)number - 1 - j->nin] : NULL;
  if (NEVER(output && !v)) return refused(w, TG_ERR_INTERNAL, "a copy to an input");
  DType d = v ? v->dtype : s->to->dtype;
  int64_t nelem = v ? dims_nelem(w->ctx->store, v->n, v->dims) : s->to->nelem;
  str_put(&w->steps, "copy");
  /* `to` is NULL in a loaded program that never ran, whose memories are not in files. */
  int home = s->to ? s->to->device : j->devices.at[0];
  bool ok = put_place(w, &s->from, s->offset, d, nelem, home) && put_place(w, &s->to, 0, d, nelem, home);
  str_put(&w->steps, "\n");
  return ok;
}

/* ---- the whole */
/* Returns the devices that the program uses, one bit each. Files do not count. */
static uint64_t devices_of(const TgJit *j) {
  uint64_t all = 0;
  for (int i = 0; i < j->nin + j->nout; i++)
    all |= 1ull << (i < j->nin ? j->in[i].device : j->out[i - j->nin].device);
  for (size_t i = 0; i < j->draws.len; i++)
    all |= 1ull << j->draws.at[i]->device;
  for (size_t i = 0; i < j->c.steps.len; i++) {
    const Step *s = &j->c.steps.at[i];
    all |= s->plan ? 1ull << s->plan->dev->index : 1ull << s->from->device | 1ull << s->to->device;
  }
  for (int i = 0; i < device_count(j->ctx); i++)
    if (device_facts(j->ctx, i).files_only) all &= ~(1ull << i);
  return all ? all : 1ull << j->ctx->default_device;
}

/* Lists the devices in the context's order. A loaded program keeps the order of its text. */
static bool devices_listed(Writer *w) {
  TgJit *j = w->j;
  for (int i = 0; i < j->nin + j->nout; i++) {
    int device = i < j->nin ? j->in[i].device : j->out[i - j->nin].device;
    if (device_facts(w->ctx, device).files_only)
      return refused(w, TG_ERR_DEVICE, "%s %d is on %s, where nothing is computed",
                     i < j->nin ? "input" : "output", i < j->nin ? i : i - j->nin,
                     device_at(w->ctx, device)->name);
  }
  if (!j->loaded) j->devices.len = 0;
  for (uint64_t rest = j->loaded ? 0 : devices_of(j); rest; rest &= rest - 1)
    if (!vec_push(&w->ctx->mem, &j->devices, __builtin_ctzll(rest))) return no_memory(w);
  str_printf(&w->head, "tinygrad program %d\n", several(w) ? 2 : 1);
  for (size_t i = 0; several(w) && i < j->devices.len; i++) {
    str_put(&w->head, "device ");
    put_quoted(&w->head, device_at(w->ctx, j->devices.at[i])->name);
    str_put(&w->head, "\n");
  }
  return true;
}

static void put_random(Writer *w) {
  uint64_t drawing = 0;
  TgContext *ctx = w->ctx;
  for (size_t i = 0; i < w->j->draws.len; i++)
    drawing |= 1ull << w->j->draws.at[i]->device;
  for (size_t i = 0; i < w->j->devices.len; i++) {
    int d = w->j->devices.at[i];
    if (!(drawing >> d & 1)) continue;
    str_put(&w->head, "random");
    put_device(w, &w->head, d);
    str_printf(&w->head, " %llu %d %llu\n", (unsigned long long)ctx->rng_seed, draw_order(ctx, d),
               (unsigned long long)ctx->draws[d].counter);
  }
}

static bool put_all(Writer *w, int nnamed) {
  TgJit *j = w->j;
  if (!devices_listed(w)) return false;
  put_random(w);
  if (!put_values(w, "input", j->given, j->ngiven, j->in) ||
      !put_values(w, "output", j->made, j->nmade, j->out))
    return false;
  for (size_t i = 0; i < j->patches.len; i++) {
    int k = j->patches.at[i].k;
    uint64_t number = (uint64_t)(k >= 0 ? k : j->nin - 1 - k) + 1;
    if (!map_put_ptr(&w->number, (uintptr_t)j->patches.at[i].at, number)) return no_memory(w);
  }
  for (size_t i = 0; i < j->draws.len; i++) {
    str_printf(&w->head, "m%d = draw", w->count++);
    put_device(w, &w->head, j->draws.at[i]->device);
    str_printf(&w->head, " %lld\n", (long long)j->draws.at[i]->draws);
    if (!number_set(w, j->draws.at[i])) return false;
  }
  if (!j->loaded) {
    jit_memories_free(j);
    if (!names_listed(w, nnamed)) return false;
  }
  for (size_t i = 0; i < j->memories.len; i++)
    put_memory(w, &j->memories.at[i], j->devices.at[0]);
  for (size_t i = 0; i < j->c.steps.len; i++) {
    Step *s = &j->c.steps.at[i];
    if (!(s->plan ? put_plan(w, s) : put_copy(w, s))) return false;
  }
  return true;
}

/* Notes the variables of the text, in its order, for tg_jit_variable. */
static bool variables_noted(Writer *w) {
  TgJit *j = w->j;
  j->variables.len = 0;
  for (size_t i = 0; i < w->vars.len; i++)
    if (!vec_push(&w->ctx->mem, &j->variables, w->vars.at[i])) return no_memory(w);
  return true;
}

const char *tg_jit_to_text(TgJit *j, const char *const *names, TgTensor *const *tensors, int n) {
  if (!j) return NULL;
  TgContext *ctx = j->ctx;
  if (capture_refuses(ctx, "jit to text")) return NULL;
  TG_REQUIRE(ctx, j->runs == 2, TG_ERR_STATE,
             "jit to text: nothing is captured yet: run it twice, or load it");
  TG_REQUIRE(ctx, !n || (names && tensors && n > 0), TG_ERR_VALUE, "jit to text: %d names", n);
  if (ctx->err.status || jit_stores_flushed(ctx)) return NULL;
  Writer w = {.j = j, .ctx = ctx, .names = names, .tensors = tensors};
  str_init(&w.head, &ctx->mem), str_init(&w.steps, &ctx->mem);
  map_init(&w.number, &ctx->mem), map_init(&w.named, &ctx->mem), map_init(&w.taken, &ctx->mem);
  w.dims = dims_new(&ctx->mem, NULL);
  w.sizes = store_new(&ctx->mem);
  bool ok = (w.dims && w.sizes) || no_memory(&w);
  if (ok) store_set_dims(w.sizes, w.dims);
  ok = ok && put_all(&w, n) && variables_noted(&w);
  str_putn(&w.head, str_text(&w.steps), w.steps.len);
  if (ok && (w.head.oom || w.steps.oom)) ok = no_memory(&w);
  map_free(&w.number), map_free(&w.named), map_free(&w.taken);
  store_free(w.sizes), dims_free(w.dims), vec_free(&ctx->mem, &w.vars);
  str_free(&w.steps), str_free(&ctx->text);
  if (ok)
    ctx->text = w.head;
  else
    str_free(&w.head), str_init(&ctx->text, &ctx->mem);
  return ok ? str_text(&ctx->text) : NULL;
}

/* ---- queries */
static bool value_get(const Given *g, int n, size_t i, TgJitValue *out) {
  if (!out || i >= (size_t)n) return false;
  g += i;
  *out = (TgJitValue){.name = g->name ? g->name : "",
                      .dtype = dtype_public(g->want.dtype),
                      .ndim = g->want.n,
                      .dims = g->want.dims,
                      .ndevice = g->at.n,
                      .devices = g->device,
                      .axis = g->at.axis,
                      .bounds = g->at.axis < 0 ? NULL : g->at.bound};
  return true;
}

bool tg_jit_input(const TgJit *j, size_t i, TgJitValue *v) {
  return j && value_get(j->given, j->ngiven, i, v);
}

bool tg_jit_output(const TgJit *j, size_t i, TgJitValue *v) {
  return j && value_get(j->made, j->nmade, i, v);
}

const char *tg_jit_device(const TgJit *j, size_t i) {
  return j && i < j->devices.len ? device_at(j->ctx, j->devices.at[i])->name : NULL;
}

static bool given_named(TgJit *j, Given *g, const char *name) {
  char *own = name ? mem_strdup(&j->ctx->mem, name) : NULL;
  if (name && !own) return false;
  mem_free(&j->ctx->mem, g->name);
  g->name = own;
  return true;
}

TgStatus tg_jit_name(TgJit *j, const char *const *inputs, const char *const *outputs) {
  if (!j) return TG_ERR_VALUE;
  TgContext *ctx = j->ctx;
  TG_REQUIRE_OR(ctx, j->runs == 2, TG_ERR_STATE, TG_ERR_STATE, "jit names: nothing is captured yet");
  bool ok = true;
  for (int i = 0; i < j->ngiven + j->nmade; i++) {
    const char *const *list = i < j->ngiven ? inputs : outputs;
    const char *name = list ? list[i < j->ngiven ? i : i - j->ngiven] : NULL;
    TG_REQUIRE_OR(ctx, !name || strlen(name) <= MOST_PROGRAM_NAME, TG_ERR_LIMIT, TG_ERR_LIMIT,
                  "jit names: a name of more than %d bytes", MOST_PROGRAM_NAME);
  }
  for (int i = 0; ok && inputs && i < j->ngiven; i++)
    ok = given_named(j, &j->given[i], inputs[i]);
  for (int i = 0; ok && outputs && i < j->nmade; i++)
    ok = given_named(j, &j->made[i], outputs[i]);
  return ok ? TG_OK : error_no_memory(&ctx->err, "jit names");
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
  int64_t n = dims_nelem(st, m->n, m->dims), start = (int64_t)(m->offset / dtype_size(m->buffer->dtype));
  UOp *u = memory_node(ctx, m->buffer);
  if (u && n != m->buffer->nelem) u = u_shrink(st, u, (int64_t[]){start, start + n});
  u = u ? u_reshape(st, u, m->n, m->dims) : NULL;
  if (name) *name = m->name;
  TgTensor *t = tensor_memory(ctx, u);
  if (t && j->loaded) t->captured = true; /* the program knows no other handle of its state */
  return t;
}
