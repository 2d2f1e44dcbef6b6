/* export.c: a captured function as C99 without dependences. In: a capture. Out: a source and a header.
 *
 * The capture's text is loaded into a second context, whose device renders but runs nothing. There the
 * graphs are planned for the machine of portable C (plan/target.c), as any device plans them for its own
 * machine. The kernels are therefore those that the renderer wrote, in the order in which a replay would
 * launch them. This file only finds which memory each kernel works on and how long that memory is needed. */
#include "engine/export.h"
#include "tensor/front.h"
#include "uop/dims.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool no_memory(Export *x) {
  error_no_memory(&x->ctx->err, "export");
  return false;
}

static bool refused(Export *x, TgStatus s, const char *why) {
  error_set(&x->ctx->err, s, "export: %s", why);
  return false;
}

/* ---- the plan */
static bool planning_failed(Export *x) {
  const TgError *e = &x->planning->err;
  return e->status ? refused(x, e->status, e->msg) : no_memory(x);
}

enum { MOST_SHARES = 1024 };

/* A way to choose kernels. If memory has a price, more is computed again and less is kept. local_most:
 * bytes of a local array; 0: the target's own limit. copy_most: bytes of a copy of what a kernel reads,
 * for vectors of 16 bytes; 0: the target's default. slice_most is the Target's. room: the share of the bound
 * that temporaries may take, beyond which kernels are done in bands of rows; 0: no bands. */
typedef struct Manner {
  double memory_price;
  int64_t local_most, copy_most, slice_most;
  double room;
} Manner;

/* The number of manners that are tried if memory has no bound. A machine with wide vectors has enough
 * memory, so the manner with a price on memory is not tried for it, and its kernels are joined as the
 * library joins them. */
enum { UNBOUND_VECTORS = 4, UNBOUND };

static const Manner manners[] = {{1, 0, 0, 0, 0},
                                 {1, 0, 1 << 15, 1 << 14, 0},
                                 {1, 0, 1 << 13, 1 << 10, 0},
                                 {1, 0, 1 << 12, 1 << 10, 0},
                                 {64, 0, 0, 1 << 8, 0},
                                 {1, 0, 1 << 11, 1 << 8, 0},
                                 {1, 0, 1 << 10, 1 << 8, 0},
                                 {1, 0, 0, 1 << 8, 1},
                                 {1, 0, 1 << 13, 1 << 8, 1},
                                 {1, 0, 0, 1 << 8, 0.75},
                                 {1, 0, 1 << 13, 1 << 8, 0.75},
                                 {1, 1 << 12, 1 << 12, 1 << 8, 0.5},
                                 {64, 0, 1 << 12, 1 << 8, 0.75},
                                 {64, 1 << 10, 1 << 12, 1 << 8, 0},
                                 {64, 1 << 10, 1 << 12, 1 << 8, 0.75},
                                 {64, 1 << 10, 1 << 12, 1 << 8, 0.5},
                                 {512, 0, 0, 1 << 8, 0},
                                 {512, 1 << 10, 1 << 10, 1 << 8, 0},
                                 {512, 1 << 10, 1 << 10, 1 << 8, 0.5},
                                 {4096, 1 << 10, 1 << 10, 1 << 8, 0},
                                 {4096, 1 << 10, 1 << 10, 1 << 8, 0.5},
                                 {4096, 1 << 10, 1 << 10, 1 << 8, 0.25}};

static bool planning_opened(Export *x, const Manner *p, int64_t room) {
  const TgMem *m = &x->ctx->mem;
  TgMem mem = {.allocate = m->allocate, .reallocate = m->reallocate, .release = m->release, .user = m->user};
  const char *device = x->gnu ? "NULL:GNU" : "NULL:C99";
  TgOpenOptions o = {.size = sizeof o, .device = device, .log = x->ctx->log, .log_user = x->ctx->log_user};
  x->planning = context_open(&o, x->ctx->os, mem);
  if (!x->planning) return no_memory(x);
  if (x->planning->err.status) return planning_failed(x);
  x->planning->env.prepack = x->ctx->env.prepack;
  Target *t = &device_at(x->planning, 0)->target;
  *t = x->target;
  t->cores = t->streams = TG_MAX(x->o.threads, 1);
  t->memory_price = p->memory_price;
  if (p->local_most) t->local_bytes = t->local_most = TG_MIN(t->local_most, p->local_most);
  t->copy_most = p->copy_most * t->vec_bytes / 16;
  t->slice_most = p->slice_most;
  t->memory = (int64_t)(p->room * (double)room);
  return true;
}

static size_t memory_count(TgJit *j) { return j->memories.len; }

/* Loads the text into the planning context. Zeros stand in for the capture's memories because their values
 * are not looked at. */
static bool planned(Export *x, const char *text) {
  TgContext *c = x->planning;
  size_t n = memory_count(x->jit);
  const char **names = mem_alloc(&c->mem, (n + 1) * sizeof *names);
  TgTensor **tensors = mem_alloc(&c->mem, (n + 1) * sizeof *tensors);
  bool ok = names && tensors;
  for (size_t i = 0; ok && i < n; i++) {
    const Memory *m = &x->jit->memories.at[i];
    names[i] = m->name;
    ok = (tensors[i] = tg_zeros(c, m->n, m->dims, .dtype = dtype_public(m->buffer->dtype))) != NULL;
  }
  x->planned = ok ? tg_jit_from_text(c, text, names, tensors, (int)n) : NULL;
  mem_free(&c->mem, names), mem_free(&c->mem, tensors);
  if (!x->planned) return planning_failed(x);
  x->planned->prepacks = x->jit->prepacks && x->ctx->env.prepack;
  return !jit_prepack(x->planned) || planning_failed(x);
}

/* ---- names */
/* The names that the text uses itself, which a model may have as its name too (the first OWN_WORDS), then
 * those that C and C++ reserve. */
static const char *const taken_words[] = {
    "m",        "a",        "s",         "w",        "arena",      "state",    "weights", "weight",
    "counter",  "seed",     "reset",     "run",      "operations", "inl",      "vector",  "divs",
    "sat",      "sats",     "null",      "nothing",  "alignas",    "alignof",  "and",     "asm",
    "auto",     "bool",     "break",     "case",     "catch",      "char",     "class",   "const",
    "continue", "default",  "delete",    "do",       "double",     "else",     "enum",    "explicit",
    "export",   "extern",   "false",     "float",    "for",        "friend",   "goto",    "if",
    "inline",   "int",      "long",      "mutable",  "namespace",  "new",      "not",     "operator",
    "or",       "private",  "protected", "public",   "register",   "restrict", "return",  "short",
    "signed",   "sizeof",   "static",    "struct",   "switch",     "template", "this",    "throw",
    "true",     "try",      "typedef",   "typename", "union",      "unsigned", "using",   "virtual",
    "void",     "volatile", "while",     "xor",      "i8",         "i16",      "i32",     "i64",
    "u8",       "u16",      "u32",       "u64",      "f32",        "f64",      "copied",  "cleared",
    "nullptr",  "key_of",   "bring",     "shared",   "share",      "spread",   "turn"};

enum { OWN_WORDS = 20 };

static bool same_letters(const char *a, const char *b) {
  while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b))
    a++, b++;
  return !*a && !*b;
}

static bool has_letters(const char *name, size_t n, const char *word) {
  for (size_t i = 0; i < n; i++)
    if (tolower((unsigned char)name[i]) != word[i]) return false;
  return !word[n];
}

/* Whether a name is a type or macro of the headers that the file includes: int8_t, SIZE_MAX, UINT64_C. */
static bool of_header(const char *name) {
  static const char *const ends[] = {"t", "max", "min", "c", "width"};
  static const char *const begins[] = {"size", "ssize", "ptrdiff", "wchar",
                                       "wint", "char8", "char16",  "char32"};
  const char *end = strrchr(name, '_');
  if (!end) return false;
  size_t n = (size_t)(end - name), u = tolower((unsigned char)*name) == 'u';
  bool begun = n >= u + 3 && has_letters(name + u, 3, "int"), ended = false;
  for (size_t i = 0; i < TG_COUNT(begins); i++)
    begun |= has_letters(name, n, begins[i]);
  for (size_t i = 0; i < TG_COUNT(ends); i++)
    ended |= same_letters(end + 1, ends[i]);
  return begun && ended;
}

static bool name_taken(const Export *x, const char *name) {
  if (of_header(name)) return true;
  for (size_t i = 0; i < TG_COUNT(taken_words); i++)
    if (same_letters(taken_words[i], name)) return true;
  for (size_t i = 0; i < x->names.len; i++)
    if (same_letters(x->names.at[i], name)) return true;
  return same_letters(x->name, name);
}

/* Returns an identifier that is not taken and resembles `wanted`. It is short enough for every compiler.
 * NULL: an error was recorded. */
static char *identifier(Export *x, const char *wanted, const char *else_this, int number) {
  enum { MOST = 40 };

  char made[MOST + 32];
  size_t n = 0;
  for (const char *p = wanted ? wanted : ""; *p && n < MOST; p++) {
    bool fits = isalnum((unsigned char)*p) && (unsigned char)*p < 128;
    if (fits)
      made[n++] = *p;
    else if (n && made[n - 1] != '_')
      made[n++] = '_';
  }
  while (n && made[n - 1] == '_')
    n--;
  made[n] = 0;
  if (!n) n = (size_t)snprintf(made, sizeof made, "%s%d", else_this, number);
  if (isdigit((unsigned char)*made)) {
    memmove(made + 1, made, n + 1);
    *made = 'n', n++;
  }
  for (int again = 2; name_taken(x, made); again++)
    snprintf(made + n, sizeof made - n, "_%d", again);
  char *name = mem_strdup(&x->ctx->mem, made);
  if (name && vec_push(&x->ctx->mem, &x->names, name)) return name;
  mem_free(&x->ctx->mem, name);
  no_memory(x);
  return NULL;
}

static bool values_named(Export *x) {
  TgJit *j = x->planned;
  int n = 0;
  x->value = mem_alloc(&x->ctx->mem, ((size_t)(j->nin + j->nout) + j->variables.len + 1) * sizeof *x->value);
  if (!x->value) return no_memory(x);
  for (int i = 0; i < j->nin; i++)
    if (!(x->value[n++] = identifier(x, j->given[i].name, "input", i))) return false;
  for (int i = 0; i < j->nout; i++)
    if (!(x->value[n++] = identifier(x, j->made[i].name, "output", i))) return false;
  for (size_t i = 0; i < j->variables.len; i++) {
    const DimVar *v = dims_var_at(x->planning->dims, j->variables.at[i]);
    if (!(x->value[n++] = identifier(x, v ? v->name : NULL, "size", (int)i))) return false;
  }
  return true;
}

/* Sets x->name to the name of the model, or "model", and x->upper to its upper case. */
static bool export_named(Export *x) {
  const char *name = x->o.name ? x->o.name : "model";
  size_t n = strlen(name);
  bool ok = n && n <= 64 && !isdigit((unsigned char)*name);
  for (size_t i = 0; ok && i < n; i++)
    ok = (unsigned char)name[i] < 128 && (isalnum((unsigned char)name[i]) || name[i] == '_');
  for (size_t i = OWN_WORDS; ok && i < TG_COUNT(taken_words); i++)
    ok = strcmp(taken_words[i], name) != 0;
  if (!ok) return refused(x, TG_ERR_VALUE, "the name must be an identifier of C, of at most 64 letters");
  x->name = name;
  if (!(x->upper = mem_strdup(&x->ctx->mem, name))) return no_memory(x);
  for (char *p = x->upper; *p; p++)
    *p = (char)toupper((unsigned char)*p);
  return true;
}

/* ---- memories */
static bool is_stored(const TgJit *j, const Buffer *b) {
  for (size_t i = 0; i < j->c.stored.len; i++)
    if (j->c.stored.at[i] == b) return true;
  return false;
}

static int64_t aligned(int64_t nbytes) { return (nbytes + ALIGN - 1) / ALIGN * ALIGN; }

static bool memory_read(Export *x, size_t i, ExportMemory *m) {
  TgContext *ctx = x->ctx;
  size_t nbytes = (size_t)m->nelem * dtype_size(m->dtype);
  if (!(m->value = mem_alloc(&ctx->mem, nbytes + 1))) return no_memory(x);
  if (!nbytes) return true;
  if (tg_scope_begin(ctx)) return no_memory(x);
  TgTensor *t = tg_jit_memory(x->jit, i, NULL);
  TgStatus s = t ? tg_read(t, m->value, nbytes) : ctx->err.status;
  tg_scope_end(ctx);
  return !s || (ctx->err.status ? false : no_memory(x));
}

static bool memories_listed(Export *x) {
  TgJit *j = x->planned;
  for (size_t i = 0; i < memory_count(j); i++) {
    const Memory *from = &j->memories.at[i];
    ExportMemory m = {.called = from->name, .dtype = from->buffer->dtype, .n = from->n};
    memcpy(m.dims, from->dims, sizeof m.dims);
    m.nelem = dims_nelem(j->ctx->store, m.n, m.dims);
    m.state = is_stored(j, from->buffer);
    if (!vec_push(&x->ctx->mem, &x->memories, m)) return no_memory(x);
    ExportMemory *in_list = &x->memories.at[i];
    if (!(in_list->name = identifier(x, from->name, m.state ? "s" : "w", (int)i))) return false;
    if (!memory_read(x, i, in_list)) return false;
  }
  return true;
}

/* Gives each memory an offset: weights one after the other, and memories that are stored to in the state.
 * If weights are in a file, the initial state follows them there. A weight that was replaced by its
 * prepacked copies takes no room. */
static void memories_placed(Export *x) {
  for (size_t i = 0; i < x->memories.len; i++)
    x->memories.at[i].unused = !x->memories.at[i].state;
  for (size_t i = 0; i < x->args.len; i++)
    if (x->args.at[i].kind == IN_WEIGHT) x->memories.at[x->args.at[i].number].unused = false;
  for (size_t i = 0; i < x->memories.len; i++) {
    ExportMemory *m = &x->memories.at[i];
    int64_t *at = m->state ? &x->state : &x->weights;
    m->offset = *at;
    if (!m->unused) *at += aligned(m->nelem * (int64_t)dtype_size(m->dtype));
  }
}

/* ---- places */
static bool place_put(Export *x, const void *address, PlaceKind kind, size_t number) {
  return map_put(&x->places, (uint64_t)(uintptr_t)address, (uint64_t)kind << 32 | (number + 1)) ||
         no_memory(x);
}

static bool item_new(Export *x, int64_t nbytes) {
  ArenaItem it = {.nbytes = nbytes, .first = -1};
  return vec_push(&x->ctx->mem, &x->items, it) || no_memory(x);
}

/* Notes what each place in the steps stands for: inputs and outputs by the address of the place,
 * everything else by its memory. */
static bool places_known(Export *x) {
  TgJit *j = x->planned;
  bool ok = true;
  for (size_t i = 0; ok && i < j->patches.len; i++) {
    int k = j->patches.at[i].k;
    ok = place_put(x, j->patches.at[i].at, k >= 0 ? IN_INPUT : IN_OUTPUT, (size_t)(k >= 0 ? k : -1 - k));
  }
  for (size_t i = 0; ok && i < memory_count(j); i++)
    ok = place_put(x, j->memories.at[i].buffer, x->memories.at[i].state ? IN_STATE : IN_WEIGHT, i);
  x->first_draw = x->items.len;
  for (size_t i = 0; ok && i < j->draws.len; i++)
    ok = place_put(x, j->draws.at[i], IN_ARENA, x->items.len) && item_new(x, sizeof(uint64_t));
  for (size_t i = 0; ok && i < j->own.len; i++) {
    const Buffer *b = j->own.at[i];
    ok = place_put(x, b, IN_ARENA, x->items.len) && item_new(x, b->nelem * (int64_t)dtype_size(b->dtype));
  }
  return ok;
}

/* Finds where an argument lies. offset: bytes from the start of what the step is given. */
static bool place_of(Export *x, Buffer *const *at, size_t offset, ExportPlace *out) {
  uint64_t v;
  const TgJit *j = x->planned;
  bool known =
      map_get(&x->places, (uint64_t)(uintptr_t)at, &v) || map_get(&x->places, (uint64_t)(uintptr_t)*at, &v);
  if (NEVER(!known)) return refused(x, TG_ERR_INTERNAL, "a memory that nobody knows");
  *out = (ExportPlace){(PlaceKind)(v >> 32), (int)(v & UINT32_MAX) - 1, (int64_t)offset, DT_VOID, false};
  out->dtype = out->kind == IN_INPUT    ? j->in[out->number].dtype
               : out->kind == IN_OUTPUT ? j->out[out->number].dtype
                                        : (*at)->dtype;
  return true;
}

/* ---- launches */
static bool call_add(Export *x, ExportCall c) { return vec_push(&x->ctx->mem, &x->calls, c) || no_memory(x); }

static bool arg_add(Export *x, ExportPlace p, bool stored) {
  p.stored = stored;
  return vec_push(&x->ctx->mem, &x->args, p) || no_memory(x);
}

static int kernel_number(Export *x, CachedProgram *p) {
  uint64_t v;
  if (map_get(&x->places, (uint64_t)(uintptr_t)p, &v)) return (int)v;
  int number = (int)x->kernels.len;
  bool ok =
      vec_push(&x->ctx->mem, &x->kernels, p) && map_put(&x->places, (uint64_t)(uintptr_t)p, (uint64_t)number);
  return ok ? number : (no_memory(x), -1);
}

static bool clear_add(Export *x, ExportPlace p, int64_t nbytes) {
  ExportCall c = {.kernel = CALL_CLEAR, .arg = x->args.len, .narg = 1, .scratch = -1, .nbytes = nbytes};
  return arg_add(x, p, true) && call_add(x, c);
}

/* Finds where argument a of a kernel lies. first: the number of the item that is the step's first
 * temporary. */
static bool argument(Export *x, const Step *s, const SchedKernel *sk, int a, size_t first, ExportPlace *out) {
  int64_t id = sk->arg[a], offset = sk->offset[a];
  int t = (int)(id - TEMP_BASE);
  if (id < TEMP_BASE) return place_of(x, &s->buf[id].buffer, s->buf[id].offset + (size_t)offset, out);
  if (s->plan->slab_of[t] < 0) return place_of(x, &s->temp[t], (size_t)offset, out);
  *out = (ExportPlace){IN_ARENA, (int)first + t, offset, s->plan->sched.temp[t].dtype, false};
  return true;
}

/* ---- prepacked copies: the kernel that makes them runs here, on the weights' values */
static bool packed_values(Export *x, const Step *s, int k, const Prepacked *p, void *const *made) {
  const SchedKernel *sk = &s->plan->sched.kernel[k];
  int n = p->pack->packed.n;
  Launch l;
  void **bufs = mem_alloc(&x->ctx->mem, (size_t)(sk->narg + n) * sizeof *bufs);
  bool ok = bufs || no_memory(x);
  for (int a = 0; ok && a < TG_MIN(sk->narg, 64); a++) {
    ExportPlace from;
    if (!(p->reads >> a & 1)) continue;
    ok = argument(x, s, sk, a, 0, &from);
    if (ok) bufs[a] = (char *)x->memories.at[from.number].value + from.offset;
  }
  if (ok) memcpy(bufs + sk->narg, made, (size_t)n * sizeof *made);
  if (ok && s->plan->dev->backend->launch(s->plan->dev, packing_of(p, bufs, sk->narg, &l)))
    ok = planning_failed(x);
  mem_free(&x->ctx->mem, bufs);
  return ok;
}

/* Makes the memories of a kernel's prepacked copies. Their names begin with the name of the first weight
 * that they are made of. */
static bool packed_new(Export *x, const Step *s, int k, const Prepacked *p) {
  const SchedKernel *sk = &s->plan->sched.kernel[k];
  ExportPlace from = {0};
  void *made[MOST_PREPACKED];
  char name[96];
  int a = 0;
  while (!(p->reads >> a & 1))
    a++;
  if (!argument(x, s, sk, a, 0, &from)) return false;
  snprintf(name, sizeof name, "%.60s_packed", x->memories.at[from.number].name);
  for (int i = 0; i < p->run->packed.n; i++) {
    const PackedCopy *c = &p->run->packed.copy[i];
    ExportMemory m = {.called = x->memories.at[from.number].called, .packed = p};
    m.dtype = c->dtype;
    m.n = 1;
    m.nelem = m.dims[0] = c->nelem;
    m.value = made[i] = mem_alloc(&x->ctx->mem, (size_t)c->nelem * dtype_size(c->dtype) + 1);
    if (!m.value) return no_memory(x);
    if (!vec_push(&x->ctx->mem, &x->memories, m)) return mem_free(&x->ctx->mem, m.value), no_memory(x);
    if (!(x->memories.at[x->memories.len - 1].name = identifier(x, name, "w", 0))) return false;
  }
  return packed_values(x, s, k, p, made);
}

/* Returns the number of the first prepacked copy that kernel k of a step is given. -1: an error was
 * recorded. */
static int packed_memory(Export *x, const Step *s, int k) {
  const Prepacked *own = prepacked_of(&s->prepacked[k]);
  size_t i = memory_count(x->planned);
  while (i < x->memories.len && x->memories.at[i].packed != own)
    i++;
  return i < x->memories.len || packed_new(x, s, k, own) ? (int)i : -1;
}

/* If weights are streamed, adds a call that brings a weight into an item of the arena, where it lies for
 * the next launch only. The place becomes that item. */
static bool brought(Export *x, ExportPlace *p) {
  if (!x->o.streamed || p->kind != IN_WEIGHT) return true;
  const ExportMemory *m = &x->memories.at[p->number];
  ExportPlace to = {IN_ARENA, (int)x->items.len, 0, p->dtype, false}, from = *p;
  from.offset = 0;
  ExportCall c = {.kernel = CALL_BRING, .arg = x->args.len, .narg = 2, .scratch = -1};
  c.nbytes = m->nelem * (int64_t)dtype_size(m->dtype);
  if (!item_new(x, c.nbytes) || !arg_add(x, to, true) || !arg_add(x, from, false) || !call_add(x, c))
    return false;
  p->kind = IN_ARENA;
  p->number = to.number;
  return true;
}

/* Whether kernel k has prepacked copies. A build without the interpreter has none, because it cannot make
 * them. */
static bool is_packed(const Step *s, int k) {
  const Prepacked *p = s->prepacked ? &s->prepacked[k] : NULL;
  return p && p->run && s->plan->dev->backend->text(p->pack->prog)->runs;
}

static bool kernel_call(Export *x, const Step *s, int k, size_t first) {
  const SchedKernel *sk = &s->plan->sched.kernel[k];
  bool packed = is_packed(s, k);
  CachedProgram *prog = packed ? s->prepacked[k].run : s->plan->prog[k];
  const KernelText *text = s->plan->dev->backend->text(prog->prog);
  ExportCall c = {.kernel = kernel_number(x, prog), .scratch = -1};
  int copies = packed ? packed_memory(x, s, k) : 0;
  c.narg = TG_MIN(text->nparam, sk->narg + prog->packed.n);
  c.sched = sk;
  c.band = sk->band ? &s->plan->sched.band[sk->band - 1] : NULL;
  if (c.kernel < 0 || copies < 0) return false;
  if (NEVER(!text->param)) return refused(x, TG_ERR_INTERNAL, "a kernel without its list");
  ExportPlace *place = mem_alloc(&x->ctx->mem, ((size_t)c.narg + 1) * sizeof *place);
  bool ok = place || no_memory(x);
  for (int i = 0; ok && i < c.narg; i++) {
    place[i] = (ExportPlace){IN_NOTHING, 0, 0, DT_U8, false};
    if (!text->param[i].used) continue;
    if (i >= sk->narg)
      place[i] = (ExportPlace){IN_WEIGHT, copies + i - sk->narg, 0, text->param[i].dtype, false};
    else
      ok = argument(x, s, sk, i, first, &place[i]);
    ok = ok && brought(x, &place[i]);
  }
  c.arg = x->args.len;
  for (int i = 0; ok && i < c.narg; i++)
    ok = arg_add(x, place[i], text->param[i].stored);
  mem_free(&x->ctx->mem, place);
  if (!ok) return false;
  int64_t align = x->gnu ? ALIGN_VECTORS : ALIGN;
  c.nbytes = ((x->gnu ? text->scratch_bytes : text->local_bytes) + align - 1) / align * align;
  c.shares = text->nthread;
  x->shares |= c.shares > 1;
  if (c.nbytes) { /* each share has its own scratch */
    c.scratch = (int)x->items.len;
    if (!item_new(x, c.nbytes * c.shares)) return false;
  }
  x->operations += sk->flops;
  return call_add(x, c);
}

/* Temporaries that a kernel may read before they are completely written begin as zeros, as in a replay. */
static bool temps_cleared(Export *x, const Step *s, int k, size_t first) {
  const Schedule *sched = &s->plan->sched;
  for (int t = 0; s->plan->cleared && t < sched->ntemp; t++) {
    if (s->plan->slab_of[t] < 0 || sched->temp[t].first != k) continue;
    ExportPlace p = {IN_ARENA, (int)first + t, 0, sched->temp[t].dtype, false};
    if (!clear_add(x, p, x->items.at[p.number].nbytes)) return false;
  }
  return true;
}

/* Adds the call that begins or ends a loop over bands. */
static bool bands_call(Export *x, const SchedBand *band, int which) {
  x->bands = true;
  return call_add(x, (ExportCall){.kernel = which, .arg = x->args.len, .scratch = -1, .band = band});
}

/* Lists the kernels of a loop over bands, from number k on. */
static bool bands_listed(Export *x, const Step *s, int k, size_t first) {
  const Schedule *sched = &s->plan->sched;
  const SchedBand *band = &sched->band[sched->kernel[k].band - 1];
  bool ok = true;
  for (int q = k; ok && q <= band->last; q++)
    ok = temps_cleared(x, s, q, first);
  ok = ok && bands_call(x, band, CALL_BANDS);
  for (int q = k; ok && q <= band->last; q++)
    ok = kernel_call(x, s, q, first);
  return ok && bands_call(x, band, CALL_BANDS_END);
}

static bool step_listed(Export *x, const Step *s) {
  const Schedule *sched = &s->plan->sched;
  size_t first = x->items.len;
  for (int t = 0; t < sched->ntemp; t++) {
    if (!item_new(x, sched->temp[t].nelem * (int64_t)dtype_size(sched->temp[t].dtype))) return false;
    x->items.at[first + (size_t)t].banded = sched->temp[t].band;
  }
  for (int k = 0; k < sched->nkernel; k++)
    if (sched->kernel[k].band) {
      if (!bands_listed(x, s, k, first)) return false;
      k = sched->band[sched->kernel[k].band - 1].last;
    } else if (!temps_cleared(x, s, k, first) || !kernel_call(x, s, k, first))
      return false;
  return true;
}

static bool copy_listed(Export *x, Step *s) {
  ExportPlace from, to;
  if (!place_of(x, &s->from, s->offset, &from) || !place_of(x, &s->to, 0, &to)) return false;
  const Want *w = to.kind == IN_OUTPUT ? &x->planned->out[to.number] : NULL;
  if (!brought(x, &from)) return false;
  ExportCall c = {.kernel = CALL_COPY, .arg = x->args.len, .narg = 2, .scratch = -1};
  c.nbytes = (w ? dims_nelem(x->ctx->store, w->n, w->dims) : s->to->nelem) * (int64_t)dtype_size(to.dtype);
  return arg_add(x, to, true) && arg_add(x, from, false) && call_add(x, c);
}

/* Outputs that may be read before they are completely written begin as zeros. */
static bool outputs_cleared(Export *x) {
  const TgJit *j = x->planned;
  for (int i = 0; j->cleared && i < j->nout; i++) {
    int64_t n = dims_nelem(j->ctx->store, j->out[i].n, j->out[i].dims);
    int64_t nbytes = n * (int64_t)dtype_size(j->out[i].dtype);
    if (nbytes && !clear_add(x, (ExportPlace){IN_OUTPUT, i, 0, j->out[i].dtype, false}, nbytes)) return false;
  }
  return true;
}

static bool steps_listed(Export *x) {
  TgJit *j = x->planned;
  bool ok = outputs_cleared(x);
  for (size_t i = 0; ok && i < j->c.steps.len; i++) {
    Step *s = &j->c.steps.at[i];
    ok = s->plan ? step_listed(x, s) : copy_listed(x, s);
  }
  return ok;
}

/* ---- the whole */
/* Frees what one manner of planning has made, so that the next one can begin. */
static void plan_free(Export *x) {
  TgMem *m = &x->ctx->mem;
  for (size_t i = 0; i < x->memories.len; i++)
    mem_free(m, x->memories.at[i].value);
  for (size_t i = 0; i < x->names.len; i++)
    mem_free(m, x->names.at[i]);
  vec_free(m, &x->kernels), vec_free(m, &x->args), vec_free(m, &x->calls), vec_free(m, &x->items),
      vec_free(m, &x->pairs);
  vec_free(m, &x->memories), vec_free(m, &x->names), map_free(&x->places);
  mem_free(m, x->value);
  tg_close(x->planning);
  x->value = NULL;
  x->planning = NULL;
  x->planned = NULL;
  x->shares = x->bands = false;
  x->arena = x->bound = x->state = x->weights = x->operations = 0;
}

static void export_free(Export *x) {
  plan_free(x);
  map_free(&x->helpers);
  mem_free(&x->ctx->mem, x->upper);
}

static bool laid_out(Export *x, const char *text, const Manner *p, int64_t room) {
  map_init(&x->places, &x->ctx->mem);
  bool ok = planning_opened(x, p, room) && planned(x, text) && values_named(x) && memories_listed(x) &&
            places_known(x) && steps_listed(x) && (export_placed(x) || no_memory(x));
  if (ok) memories_placed(x);
  return ok;
}

/* Estimates the us of a run on the target from the operations and bytes of its kernels. */
static double run_us(const Export *x) {
  double ops = 0, nbytes = 0;
  for (size_t i = 0; i < x->calls.len; i++) {
    const ExportCall *c = &x->calls.at[i];
    if (c->kernel < 0) continue;
    const CachedProgram *p = x->kernels.at[c->kernel];
    const KernelText *text = p->dev->backend->text(p->prog);
    double times = (double)c->shares * (c->band ? c->band->count : 1);
    ops += text->ops * times;
    nbytes += text->nbytes * times;
  }
  return ops / target_ops_us(&x->target) + nbytes / x->target.bytes_us[LEVEL_L1];
}

typedef struct Way {
  int64_t nbytes; /* of the arena and the state */
  double us;
} Way;

/* Says which plan was taken, and lists the other plans that are not beaten in both memory and time. */
static void ways_said(const Way *way, int n, int taken, Str *out) {
  double least = way[0].us;
  for (int i = 1; i < n; i++)
    least = TG_MIN(least, way[i].us);
  str_printf(out, "of %d plan%s the one of %lld bytes and %.2f of the least time", n, n == 1 ? "" : "s",
             (long long)way[taken].nbytes, way[taken].us / least);
  for (int i = 0, others = 0; i < n; i++) {
    bool beaten = i == taken;
    for (int k = 0; k < n; k++) {
      bool no_worse = way[k].nbytes <= way[i].nbytes && way[k].us <= way[i].us;
      beaten |= no_worse && (k < i || way[k].nbytes < way[i].nbytes || way[k].us < way[i].us);
    }
    if (!beaten)
      str_printf(out, "%s %lld (%.2f)", others++ ? "," : "; others:", (long long)way[i].nbytes,
                 way[i].us / least);
  }
}

/* A machine with wide vectors has enough memory. There a plan may take at most this many times as long as
 * the first. */
static const double MOST_SLOWER = 1.1;

/* A plan made with a price on memory joins more kernels, and may therefore add up in another order than
 * the library does. It is taken only if it needs at most this share of the memory of the best other plan. */
static const double MOST_OF_MEMORY = 0.5;

/* Takes the fastest of the manners that fit the bound. Without a bound, takes the one of the first few
 * manners with the least product of time and memory. */
static bool laid_out_within(Export *x, const char *text, Str *said) {
  int64_t most = x->o.max_ram, least = INT64_MAX, state = 0;
  int n = x->o.same_bits ? 1
          : most         ? (int)TG_COUNT(manners)
          : x->gnu       ? UNBOUND_VECTORS
                         : UNBOUND,
      best = -1, last = -1;
  Way way[TG_COUNT(manners)];
  if (most < 0) return refused(x, TG_ERR_VALUE, "max_ram is negative");
  for (int i = 0; i < n; i++) {
    if (i) plan_free(x);
    if (!laid_out(x, text, &manners[i], TG_MAX(most - state, 1))) return false;
    state = x->state, last = i;
    way[i] = (Way){x->arena + state, run_us(x)};
    least = TG_MIN(least, way[i].nbytes);
    if (most ? way[i].nbytes > most : x->gnu && way[i].us > MOST_SLOWER * way[0].us) continue;
    double cost = most ? way[i].us : way[i].us * (double)way[i].nbytes;
    bool priced = !most && manners[i].memory_price > 1;
    if (priced && (double)way[i].nbytes > MOST_OF_MEMORY * (double)way[best].nbytes) continue;
    if (best < 0 || cost < (most ? way[best].us : way[best].us * (double)way[best].nbytes)) best = i;
  }
  if (best >= 0) {
    ways_said(way, n, best, said);
    if (best == last) return true;
    plan_free(x);
    return laid_out(x, text, &manners[best], TG_MAX(most - state, 1));
  }
  error_set(&x->ctx->err, TG_ERR_LIMIT,
            "export: state of %lld bytes and an arena of %lld are %lld more than the %lld that there may be",
            (long long)state, (long long)(least - state), (long long)(least - most), (long long)most);
  return false;
}

static bool target_chosen(Export *x) {
  const char *name = x->o.target && *x->o.target ? x->o.target : "generic";
  if (!(x->flags = target_named(name, x->o.vectors, &x->target, &x->gnu)))
    return refused(x, TG_ERR_VALUE,
                   "a target is " TARGET_NAMES
                   "; vectors are gnu or none, and a cortex-m and wasm32 have none");
  if (x->o.streamed && x->o.linked)
    return refused(x, TG_ERR_VALUE, "weights are streamed or linked, not both");
  return (x->o.threads >= 0 && x->o.threads <= MOST_SHARES) ||
         refused(x, TG_ERR_VALUE, "threads are 1 to 1024");
}

static bool exported(Export *x, Str out[4]) {
  const char *text = tg_jit_to_text(x->jit, x->o.names, x->o.tensors, x->o.count);
  if (text && x->jit->devices.len > 1)
    return error_set(&x->ctx->err, TG_ERR_DEVICE,
                     "export: the program is of several devices, %s and %s among them; C is of one",
                     tg_jit_device(x->jit, 0), tg_jit_device(x->jit, 1)),
           false;
  return text && target_chosen(x) && export_named(x) && laid_out_within(x, text, &out[3]) &&
         export_header(x, &out[0]) && export_source(x, &out[1]) &&
         (!x->o.weights_apart || export_weights(x, &out[2]));
}

TgStatus tg_jit_to_c_opt(TgJit *j, TgCText *out, const TgCOptions *o) {
  if (!j) return TG_ERR_VALUE;
  TgContext *ctx = j->ctx;
  Export x = {.ctx = ctx, .jit = j, .from = ""};
  if (tg_options_read(ctx, "jit_to_c", "TgCOptions", &x.o, sizeof x.o, o)) return TG_ERR_VALUE;
  TG_REQUIRE_OR(ctx, out, TG_ERR_VALUE, TG_ERR_VALUE, "jit_to_c: no place for the text");
  *out = (TgCText){.source = ""};
  if (x.o.streamed || x.o.linked) x.o.weights_apart = true;
  if (ctx->err.status) return ctx->err.status;
  map_init(&x.helpers, &ctx->mem);
  Str *text = ctx->c_text;
  for (int i = 0; i < 4; i++)
    str_free(&text[i]), str_init(&text[i], &ctx->mem);
  bool ok = exported(&x, text);
  if (ok && (text[0].oom || text[1].oom || text[2].oom || text[3].oom)) ok = no_memory(&x);
  if (ok)
    *out = (TgCText){.header = str_text(&text[0]),
                     .source = str_text(&text[1]),
                     .weights = text[2].at,
                     .weights_nbytes = text[2].len,
                     .plans = str_text(&text[3]),
                     .arena_bytes = x.arena,
                     .arena_least = x.bound,
                     .stack_bytes = export_stack(&x),
                     .state_bytes = x.state,
                     .weight_bytes = x.weights,
                     .operations = x.operations,
                     .kernels = (int)x.kernels.len,
                     .launches = (int)x.calls.len};
  export_free(&x);
  if (!ok) error_no_memory(&ctx->err, "export"); /* keeps an earlier error */
  return ok ? TG_OK : ctx->err.status;
}
