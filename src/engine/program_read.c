/* program_read.c: makes a captured function from text. In: text that program.c wrote, or that an attacker
 * wrote; tensors for the memories that it names. Out: a capture that can be replayed, or an error with its
 * line.
 *
 * The text is read twice. The first time, everything is checked and nothing is made: each graph must be
 * one that the front end could have built (uop/spec.c, program_check.c), with memories of the dtypes and
 * sizes that it declares. The second time, each graph is planned. A step can only read what was given or
 * written before, or zeros, so a text cannot see other memory of the process. */
#include "engine/graph_copy.h"
#include "engine/program_read.h"
#include "tensor/front.h"
#include "uop/spec.h"
#include "uop/text.h"

/* ---- characters. A line is read to its end before the next one begins. */
static void blanks(Reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
    r->at++;
}

static bool expected(Reader *r, const char *what) {
  size_t n = 0;
  blanks(r);
  while (r->at + n < r->end && n < 24 && r->at[n] > ' ' && r->at[n] < 127)
    n++;
  return program_bad(r, TG_ERR_VALUE, "expected %s, found %s%.*s%s", what, n ? "'" : "the end of the line",
                     (int)n, r->at, n ? "'" : "");
}

static bool accept(Reader *r, const char *s) {
  size_t n = strlen(s);
  blanks(r);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, s, n)) return false;
  r->at += n;
  return true;
}

static bool accept_word(Reader *r, const char *s) {
  const char *was = r->at;
  if (accept(r, s) && (r->at == r->end || *r->at <= ' ')) return true;
  r->at = was;
  return false;
}

static bool at_line_end(Reader *r) {
  blanks(r);
  return r->at == r->end || *r->at == '\n';
}

static bool line_end(Reader *r) {
  if (!at_line_end(r)) return expected(r, "the end of the line");
  if (r->at < r->end) r->at++;
  r->line++;
  return true;
}

/* Reads a whole number that is not negative and at most `most`. */
static bool number(Reader *r, uint64_t most, uint64_t *out) {
  uint64_t v = 0;
  bool any = false, wraps = false;
  blanks(r);
  const char *from = r->at;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++, any = true)
    wraps |= __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*r->at - '0'), &v);
  if (!any) return expected(r, "a number");
  if (wraps || v > most)
    return program_bad(r, TG_ERR_VALUE, "%.*s is more than %llu", (int)TG_MIN(r->at - from, 40), from,
                       (unsigned long long)most);
  *out = v;
  return true;
}

static bool size_read(Reader *r, int64_t *out) {
  uint64_t v;
  if (!number(r, UINT64_C(1) << MOST_ELEMENTS_LOG2, &v)) return false;
  *out = (int64_t)v;
  return true;
}

static bool dtype_read(Reader *r, DType *d) {
  for (int i = DT_INDEX + 1; i < DT_COUNT; i++)
    if (accept_word(r, dtype_name((DType)i))) return *d = (DType)i, true;
  return expected(r, "a dtype");
}

/* Reads a term of a size: 12, v0 or 2*v0*v1. */
static bool size_term(Reader *r, int64_t *out) {
  int64_t v;
  uint64_t var;
  *out = 1;
  do {
    if (!accept(r, "v")) {
      if (!size_read(r, &v)) return false;
    } else if (!number(r, INT32_MAX, &var))
      return false;
    else if (var >= (uint64_t)r->nvars)
      return program_bad(r, TG_ERR_VALUE, "v%llu, but there are %d variables", (unsigned long long)var,
                         r->nvars);
    else
      v = dim_unit(r->sizes, (int)var);
    *out = dim_mul(r->sizes, *out, v);
  } while (accept(r, "*"));
  return true;
}

/* Reads a size of an input or output, as dim_put writes it. It is never negative, and if it varies, it can
 * exceed 1. */
static bool size_of_value(Reader *r, int64_t *out) {
  int64_t term;
  bool less = accept(r, "-"), more;
  *out = 0;
  do {
    if (!size_term(r, &term)) return false;
    *out = less ? dim_sub(r->sizes, *out, term) : dim_add(r->sizes, *out, term);
    less = accept(r, "-");
    more = less || accept(r, "+");
  } while (more);
  bool varies = dim_symbolic(*out);
  if (!dim_valid(r->sizes, *out) || (varies && dim_max(r->sizes, *out) < 2))
    return program_bad(r, TG_ERR_SHAPE, "a size that is negative, never above 1, or too long a sum");
  return true;
}

static bool sizes_read(Reader *r, Declared *m) {
  int64_t nelem = 1;
  bool varies = m->kind == INPUT || m->kind == OUTPUT;
  if (!accept(r, "(")) return expected(r, "the sizes, such as (2, 3)");
  while (!accept(r, ")")) {
    if (m->n && !accept(r, ",")) return expected(r, "',' or ')'");
    if (m->n == TG_MAX_RANK) return program_bad(r, TG_ERR_SHAPE, "more than %d axes", TG_MAX_RANK);
    int64_t *size = &m->dims[m->n++];
    if (!(varies ? size_of_value(r, size) : size_read(r, size))) return false;
    if (__builtin_mul_overflow(nelem, dim_max(r->sizes, *size), &nelem) || nelem > INT64_C(1)
                                                                                       << MOST_ELEMENTS_LOG2)
      return program_bad(r, TG_ERR_SHAPE, "more than 2^%d elements", MOST_ELEMENTS_LOG2);
  }
  m->nelem = nelem;
  return true;
}

static int hex_digit(int c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads "text", with \", \\ and \u00XX for control characters. */
static bool name_read(Reader *r, char **out) {
  Str s;
  str_init(&s, &r->ctx->mem);
  bool ok = accept(r, "\"") || expected(r, "a name in quotes"), closed = false;
  while (ok && !closed && r->at < r->end && *r->at != '\n') {
    char c = *r->at++;
    if (c == '"') {
      closed = true;
      continue;
    }
    if (c == '\\' && r->end - r->at >= 5 && !memcmp(r->at, "u00", 3)) {
      int high = hex_digit(r->at[3]), low = hex_digit(r->at[4]);
      c = (char)(high * 16 + low);
      ok = (high >= 0 && low >= 0 && c) || program_bad(r, TG_ERR_VALUE, "no character has this number");
      r->at += 5;
    } else if (c == '\\' && r->at < r->end && (*r->at == '"' || *r->at == '\\'))
      c = *r->at++;
    else if (c == '\\' || !c)
      ok = program_bad(r, TG_ERR_VALUE, "a character that no name has");
    str_putn(&s, &c, 1);
    if (s.len > MOST_PROGRAM_NAME)
      ok = program_bad(r, TG_ERR_LIMIT, "a name of more than %d bytes", MOST_PROGRAM_NAME);
  }
  if (ok && !closed) ok = program_bad(r, TG_ERR_VALUE, "the name does not end");
  *out = ok ? mem_strdup(&r->ctx->mem, str_text(&s)) : NULL;
  if (ok && (s.oom || !*out)) ok = program_no_memory(r);
  str_free(&s);
  return ok;
}

/* ---- devices: dN, in a text of version 2 */
/* Reads a line such as: device "CPU:1" */
static bool device_line(Reader *r) {
  if (r->version < 2) return expected(r, "a memory, `step`, `copy`, `random` or `variable`");
  if (r->memory.len || r->step || r->drawing)
    return program_bad(r, TG_ERR_VALUE, "a device behind what is on one");
  if (r->ndevice == MOST_DEVICES)
    return program_bad(r, TG_ERR_LIMIT, "a program has %d devices at most", MOST_DEVICES);
  if (!name_read(r, &r->device_name[r->ndevice])) return false;
  r->ndevice++;
  return line_end(r);
}

/* Reads the device of what follows. A text of version 1 does not name it. */
static bool device_said(Reader *r, int *device) {
  uint64_t at = 0;
  *device = 0;
  if (r->version < 2) return true;
  if (!accept(r, "d")) return expected(r, "a device, such as d0");
  if (!number(r, INT32_MAX, &at)) return false;
  if (at >= (uint64_t)r->ndevice)
    return program_bad(r, TG_ERR_VALUE, "d%llu, but there are %d devices", (unsigned long long)at,
                       r->ndevice);
  *device = (int)at;
  return r->at == r->end || *r->at <= ' ' || expected(r, "a blank");
}

/* ---- declarations: mN = KIND .. */
static const char *const kind_names[] = {"input", "output", "draw", "memory", "scratch"};

static bool declared_read(Reader *r, Declared *m) {
  uint64_t words;
  int k = 0;
  while (k <= SCRATCH && !accept_word(r, kind_names[k]))
    k++;
  if (k > SCRATCH) return expected(r, "input, output, draw, memory or scratch");
  *m = (Declared){.kind = (Kind)k, .at = r->count[k]++, .parts = 1, .axis = -1};
  if (!device_said(r, &m->device)) return false;
  if (k == DRAW) {
    if (!r->draws[m->device].order)
      return program_bad(r, TG_ERR_VALUE, "a draw, and no line `random` before it");
    m->dtype = DT_U64;
    m->n = 1;
    m->dims[0] = m->nelem = 1;
    if (!number(r, UINT32_MAX, &words)) return false;
    m->words = (int64_t)words;
    return words || program_bad(r, TG_ERR_VALUE, "a draw of no words");
  }
  if (!dtype_read(r, &m->dtype)) return false;
  if (k == SCRATCH) return m->n = 1, size_read(r, &m->nelem) && (m->dims[0] = m->nelem, true);
  return sizes_read(r, m) && name_read(r, &m->name);
}

/* Checks a memory's name. It belongs to one memory, because contents are found and written by name, or to
 * the whole copies of one tensor on several devices. */
static bool name_new(Reader *r, const Declared *m) {
  if (m->kind != MEMORY) return true;
  uint64_t had, hash = hash_bytes(7, m->name, strlen(m->name));
  if (!map_get(&r->names, hash, &had))
    return map_put(&r->names, hash, r->memory.len + 1) || program_no_memory(r);
  for (size_t i = (size_t)had - 1; i < r->memory.len; i++) {
    const Declared *o = &r->memory.at[i];
    if (o->kind != MEMORY || strcmp(o->name, m->name) != 0) continue;
    if (o->device == m->device) return program_bad(r, TG_ERR_VALUE, "two memories are \"%.64s\"", m->name);
    if (o->dtype != m->dtype || o->n != m->n || memcmp(o->dims, m->dims, (size_t)m->n * sizeof *m->dims) != 0)
      return program_bad(r, TG_ERR_SHAPE, "\"%.64s\" is another memory on another device", m->name);
  }
  return true;
}

/* Reads a line such as: parts 2 axis 0 */
static bool parts_line(Reader *r) {
  uint64_t n, axis;
  if (r->version < 2) return expected(r, "a memory, `step`, `copy`, `random` or `variable`");
  if (r->parts || !number(r, MOST_DEVICES, &n)) return r->parts ? expected(r, "a part") : false;
  if (n < 2) return program_bad(r, TG_ERR_VALUE, "an input or output of %d parts", (int)n);
  r->axis = -1;
  if (accept_word(r, "axis")) {
    if (!number(r, TG_MAX_RANK - 1, &axis)) return false;
    r->axis = (int)axis;
  }
  r->parts = (int)n;
  r->whole = r->memory.len;
  return line_end(r);
}

/* Checks the next part of an input or output. It is on another device, and is like the first except for
 * the size of the axis. */
static bool part_fits(Reader *r, Declared *m) {
  bool first = r->whole == r->memory.len;
  const Declared *o = first ? m : &r->memory.at[r->whole];
  if (m->kind > OUTPUT) return program_bad(r, TG_ERR_VALUE, "a part of an input or output is missing");
  for (int k = 0; k < m->n; k++)
    if (dim_symbolic(m->dims[k]))
      return program_bad(r, TG_ERR_SHAPE, "axis %d of what is on several devices varies", k);
  if (r->axis >= m->n) return program_bad(r, TG_ERR_SHAPE, "no axis %d, of which it is a part", r->axis);
  bool same = o->kind == m->kind && o->dtype == m->dtype && o->n == m->n;
  for (int k = 0; same && k < m->n; k++)
    same = k == r->axis || o->dims[k] == m->dims[k];
  if (!same) return program_bad(r, TG_ERR_SHAPE, "a part unlike the first");
  for (size_t i = r->whole; i < r->memory.len; i++)
    if (r->memory.at[i].device == m->device)
      return program_bad(r, TG_ERR_VALUE, "two parts on d%d", m->device);
  m->axis = r->axis;
  m->parts = first ? r->parts : 0;
  r->parts--;
  return true;
}

static bool memory_line(Reader *r) {
  uint64_t at;
  Declared m = {0};
  if (!number(r, INT32_MAX, &at)) return false;
  if (at != r->memory.len)
    return program_bad(r, TG_ERR_VALUE, "m%llu, where m%zu is next", (unsigned long long)at, r->memory.len);
  if (r->step) return program_bad(r, TG_ERR_VALUE, "memory behind the first step");
  bool ok = accept(r, "=") || expected(r, "'='");
  ok = ok && declared_read(r, &m) && name_new(r, &m) && (!r->parts || part_fits(r, &m)) && line_end(r);
  ok = ok && (vec_push(&r->ctx->mem, &r->memory, m) || program_no_memory(r));
  if (!ok) mem_free(&r->ctx->mem, m.name);
  return ok;
}

/* Reads a line such as: variable "rows" 1 64 1 */
static bool variable_line(Reader *r) {
  uint64_t lo, hi, m, most = UINT64_C(1) << MOST_ELEMENTS_LOG2;
  char *name = NULL;
  if (r->step) return program_bad(r, TG_ERR_VALUE, "a variable behind the first step");
  bool ok = name_read(r, &name) && number(r, most, &lo) && number(r, most, &hi) && number(r, most, &m);
  if (ok && (!*name || !m || lo > hi || lo % m || hi % m))
    ok = program_bad(r, TG_ERR_VALUE, "variable '%.64s': no values from %llu to %llu by %llu", name,
                     (unsigned long long)lo, (unsigned long long)hi, (unsigned long long)m);
  ok = ok && (dims_var(r->dims, name, (int64_t)lo, (int64_t)hi, (int64_t)m) >= 0 || program_no_memory(r)) &&
       line_end(r);
  r->nvars += ok;
  mem_free(&r->ctx->mem, name);
  return ok;
}

/* Reads a line such as: random 42 1 4096. There is one for each device that draws, and all have the same
 * seed. */
static bool random_line(Reader *r) {
  uint64_t order, seed, counter;
  int device;
  if (!device_said(r, &device)) return false;
  if (r->draws[device].order || r->memory.len)
    return program_bad(r, TG_ERR_VALUE, "`random` stands once, before all memory");
  if (!number(r, UINT64_MAX, &seed) || !number(r, MOST_DEVICES, &order)) return false;
  if (!order) return program_bad(r, TG_ERR_VALUE, "no device has place 0 among those that draw");
  if (!number(r, UINT64_MAX, &counter) || !line_end(r)) return false;
  if (r->drawing && seed != r->seed) return program_bad(r, TG_ERR_VALUE, "two seeds");
  for (int d = 0; d < r->ndevice; d++)
    if (r->draws[d].order == (int)order)
      return program_bad(r, TG_ERR_VALUE, "two devices have place %d among those that draw", (int)order);
  r->seed = seed;
  r->drawing = true;
  r->draws[device] = (Draws){.counter = counter, .order = (int)order};
  return true;
}

/* ---- places */
static bool place_read(Reader *r, Place *p) {
  uint64_t at;
  *p = (Place){NO_MEMORY, 0};
  if (accept_word(r, "-")) return true;
  if (!accept(r, "m")) return expected(r, "a memory, such as m0");
  if (!number(r, INT32_MAX, &at)) return false;
  if (at >= r->memory.len)
    return program_bad(r, TG_ERR_VALUE, "m%llu, but there are %zu memories", (unsigned long long)at,
                       r->memory.len);
  p->memory = (int)at;
  if (r->at < r->end && *r->at == '+') {
    r->at++;
    if (!size_read(r, &p->start)) return false;
  }
  if (p->start > r->memory.at[at].nelem)
    return program_bad(r, TG_ERR_VALUE, "m%llu has %lld elements", (unsigned long long)at,
                       (long long)r->memory.at[at].nelem);
  return r->at == r->end || *r->at <= ' ' || expected(r, "a blank");
}

/* Checks that a step names a memory only once, as what it reads and stores to or as what a root fills, and
 * is on its device. */
static bool once_in_step(Reader *r, const Place *p) {
  Declared *m = &r->memory.at[p->memory];
  if (m->device != r->here)
    return program_bad(r, TG_ERR_VALUE, "m%d is on d%d, the step on d%d", p->memory, m->device, r->here);
  if (m->step == r->step) return program_bad(r, TG_ERR_VALUE, "m%d stands twice in one step", p->memory);
  m->step = r->step;
  return true;
}

/* ---- graphs */
/* Parses the graph of the lines from..to. If `check` is set, the graph has not been checked yet. */
static bool graph_parsed(Reader *r, UOpStore *st, const char *from, const char *to, UOpText *t, bool check) {
  SpecError why = {0};
  TgError err = {0};
  store_set_dims(st, r->dims);
  if (!uop_parse(t, st, &r->ctx->mem, from, (size_t)(to - from), &err))
    return program_bad(r, err.status ? err.status : TG_ERR_NOMEM, "the graph of this step: %s", err.msg);
  if (!check) return true;
  if (t->program.n) return program_bad(r, TG_ERR_VALUE, "the graph of this step is a program");
  if (!spec_graph(st, &r->ctx->mem, GRAPH_TENSOR, t->roots.at, t->roots.len, &why))
    return why.node ? program_bad(r, TG_ERR_VALUE, "the graph of this step: %s %s",
                                  op_name((Ops)why.node->op), why.why)
                    : program_no_memory(r);
  if (t->roots.len != r->roots.len)
    return program_bad(r, TG_ERR_VALUE, "%zu roots in the graph, %zu in the line `step`", t->roots.len,
                       r->roots.len);
  return program_graph_fits(r, st, &t->roots);
}

/* ---- steps as in the text: the memories of r->slots and r->roots, the lines of the graph */
static bool step_line(Reader *r) {
  Place p;
  r->slots.len = r->roots.len = 0;
  r->step++;
  if (r->parts) return program_bad(r, TG_ERR_VALUE, "a part of an input or output is missing");
  if (!device_said(r, &r->here)) return false;
  while (!accept_word(r, "->")) {
    if (!place_read(r, &p)) return false;
    if (p.memory == NO_MEMORY) return expected(r, "a memory");
    if (!once_in_step(r, &p)) return false;
    const Declared *m = &r->memory.at[p.memory];
    r->clear |= m->kind == OUTPUT && !m->written;
    if (!vec_push(&r->ctx->mem, &r->slots, p)) return program_no_memory(r);
  }
  while (!at_line_end(r)) {
    if (!place_read(r, &p)) return false;
    Declared *m = p.memory == NO_MEMORY ? NULL : &r->memory.at[p.memory];
    if (m && !once_in_step(r, &p)) return false;
    if (m && (p.start || (m->kind != OUTPUT && m->kind != SCRATCH)))
      return program_bad(r, TG_ERR_VALUE, "a root fills a whole output or scratch, not m%d", p.memory);
    if (m) m->written = true;
    if (!vec_push(&r->ctx->mem, &r->roots, p)) return program_no_memory(r);
  }
  return line_end(r);
}

/* Finds the lines from the current one to *to, before the line `end`, which is skipped. */
static bool graph_lines(Reader *r, const char **to) {
  int first = r->line;
  for (; r->at < r->end; r->line++) {
    *to = r->at;
    if (accept_word(r, "end")) return line_end(r);
    r->at = *to;
    const char *next = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->at = next ? next + 1 : r->end;
  }
  r->line = first;
  return program_bad(r, TG_ERR_VALUE, "the graph of this step has no line `end`");
}

static bool copy_line(Reader *r, Place *from, Place *to) {
  if (!place_read(r, from) || !place_read(r, to)) return false;
  if (from->memory == NO_MEMORY || to->memory == NO_MEMORY || to->start)
    return program_bad(r, TG_ERR_VALUE, "copy takes a memory, and a whole one to write");
  Declared *a = &r->memory.at[from->memory], *b = &r->memory.at[to->memory];
  if (a == b || (b->kind != OUTPUT && b->kind != SCRATCH))
    return program_bad(r, TG_ERR_VALUE, "a copy fills an output or scratch, not m%d", to->memory);
  if (a->dtype != b->dtype || b->nelem > a->nelem - from->start)
    return program_bad(r, TG_ERR_SHAPE, "%lld %s from element %lld of %lld %s", (long long)b->nelem,
                       dtype_name(b->dtype), (long long)from->start, (long long)a->nelem,
                       dtype_name(a->dtype));
  r->clear |= a->kind == OUTPUT && !a->written;
  b->written = true;
  return line_end(r);
}

/* ---- planning */
/* Returns the piece of its whole memory that a BUFFER stands for. Used if the piece is not aligned for the
 * device's vectors. */
static UOp *piece_inside(Reader *r, UOpStore *st, const UOp *u) {
  const Place *p = &r->slots.at[u->arg.param.slot];
  int64_t n = u->arg.param.nelem, all = r->memory.at[p->memory].nelem;
  UOp *whole = uop_new(st, OPS_BUFFER, (DType)u->dtype, 1, 0, NULL, (Arg){.param = {all, u->arg.param.slot}});
  return whole ? u_shrink(st, whole, (int64_t[]){p->start, p->start + n}) : NULL;
}

static bool suits_vectors(const Reader *r, const UOp *u) {
  const Place *p = &r->slots.at[u->arg.param.slot];
  const Renderer *ren = device_at(r->ctx, r->device[r->here])->backend->renderer;
  return (size_t)p->start * dtype_size((DType)u->dtype) % (ren ? (size_t)ren->vec_align : 1) == 0;
}

/* Returns the number in the context of the text's variable i. */
int program_variable(void *reader, int i) {
  Reader *r = reader;
  return (size_t)i < r->j->variables.len ? r->j->variables.at[i] : -1;
}

/* Moves the roots to store `st` and the context's variables. A BUFFER that is not aligned becomes a piece
 * of its whole memory, and sets whole[slot]. */
static bool graph_placed(Reader *r, UOpStore *from, UOpStore *st, UOpVec *roots, bool *whole) {
  UOpVec order = {0};
  TgMem *mem = &r->ctx->mem;
  Renumber context = {from, program_variable, r};
  UOpMap *now = uop_map_begin(from, st);
  bool ok = now && uop_toposort(from, mem, roots->at, roots->len, &order);
  for (size_t i = 0; ok && i < order.len; i++) {
    UOp *u = order.at[i], *v;
    UOp **src = mem_alloc(mem, ((size_t)u->nsrc + 1) * sizeof *src);
    for (int k = 0; src && k < u->nsrc; k++)
      src[k] = uop_map_get(now, u->src[k]);
    bool inside = u->op == OPS_BUFFER && !suits_vectors(r, u);
    if (inside) whole[u->arg.param.slot] = true;
    v = !src ? NULL : inside ? piece_inside(r, st, u) : node_moved(st, u, src, &context);
    mem_free(mem, src);
    ok = v && uop_map_put(from, now, u, v);
  }
  for (size_t i = 0; ok && i < roots->len; i++)
    roots->at[i] = uop_map_get(now, roots->at[i]);
  uop_map_end(from, now), vec_free(mem, &order);
  return ok || program_no_memory(r);
}

static int patch_of(const Declared *m) { return m->kind == INPUT ? m->at : -1 - m->at; }

/* Sets a place of a step. Inputs and outputs are filled in by each run. */
static bool place_set(Reader *r, Buffer **at, int memory) {
  const Declared *m = &r->memory.at[memory];
  *at = m->buffer;
  if (m->kind != INPUT && m->kind != OUTPUT) return true;
  return vec_push(&r->ctx->mem, &r->j->patches, ((Patch){at, patch_of(m)})) || program_no_memory(r);
}

/* Sets the temporaries that have no slab: a root fills each of them, with its dtype and size. */
static bool roots_set(Reader *r, Step *s) {
  const Plan *p = s->plan;
  for (size_t i = 0; i < r->roots.len; i++) {
    int64_t at = p->sched.root[i] - TEMP_BASE;
    int memory = r->roots.at[i].memory;
    if (at < 0 && memory == NO_MEMORY) continue;
    const SchedTemp *t = at < 0 || at >= p->sched.ntemp ? NULL : &p->sched.temp[at];
    const Declared *m = memory == NO_MEMORY ? NULL : &r->memory.at[memory];
    if (!t || !m)
      return program_bad(r, TG_ERR_VALUE, "root %zu %s", i,
                         m ? "fills no memory, and is given one" : "has no memory");
    if (t->dtype != m->dtype || t->nelem != m->nelem)
      return program_bad(r, TG_ERR_SHAPE, "root %zu has %lld %s, m%d is %lld %s", i, (long long)t->nelem,
                         dtype_name(t->dtype), memory, (long long)m->nelem, dtype_name(m->dtype));
    if (!place_set(r, &s->temp[at], memory)) return false;
  }
  return true;
}

static bool temps_complete(Reader *r, const Step *s) {
  for (int t = 0; s->plan->slab_of && t < s->plan->sched.ntemp; t++) {
    bool given = false;
    for (size_t i = 0; i < r->roots.len; i++)
      given |= s->plan->sched.root[i] == TEMP_BASE + t;
    if (s->plan->slab_of[t] < 0 && !given) return program_bad(r, TG_ERR_VALUE, "a root has no memory");
  }
  return true;
}

static bool step_made(Reader *r, Plan *p, const bool *whole) {
  TgMem *mem = &r->ctx->mem;
  Step s = {.plan = p, .nbuf = r->slots.len, .ntemp = (size_t)p->sched.ntemp};
  s.buf = mem_alloc(mem, (s.nbuf + 1) * sizeof *s.buf);
  s.temp = mem_alloc(mem, (s.ntemp + 1) * sizeof *s.temp);
  p->refs++;
  if (!s.buf || !s.temp || !vec_push(mem, &r->j->c.steps, s)) {
    plan_release(r->ctx, p), mem_free(mem, s.buf), mem_free(mem, s.temp);
    return program_no_memory(r);
  }
  for (size_t i = 0; i < s.nbuf; i++) {
    const Place *at = &r->slots.at[i];
    const Declared *m = &r->memory.at[at->memory];
    s.buf[i].offset = m->offset + (whole[i] ? 0 : (size_t)at->start * dtype_size(m->dtype));
    if (!place_set(r, &s.buf[i].buffer, at->memory)) return false;
  }
  return temps_complete(r, &s) && roots_set(r, &s);
}

static bool step_planned(Reader *r, UOpText *t) {
  TgContext *ctx = r->ctx;
  Graph g;
  bool *whole = mem_alloc(&ctx->mem, r->slots.len + 1);
  bool made = graph_init(&g, ctx, r->device[r->here]), ok = (made && whole) || program_no_memory(r);
  ok = ok && graph_placed(r, t->st, g.st, &t->roots, whole) &&
       (graph_given(&g, t->roots.at, t->roots.len) || program_no_memory(r));
  Plan *p = ok ? plan_get(ctx, &g) : NULL;
  if (p && p->cyclic) {
    p = NULL;
    program_bad(r, TG_ERR_VALUE, "a value is needed on both sides of a STORE");
  }
  if (p) p->cleared |= r->clear;
  ok = p && step_made(r, p, whole);
  mem_free(&ctx->mem, whole);
  graph_free(&g);
  return ok;
}

static bool step_read(Reader *r, bool check) {
  UOpText t = {.mem = &r->ctx->mem};
  const char *from, *to = NULL;
  int line = r->line;
  if (!step_line(r)) return false;
  from = r->at;
  if (!graph_lines(r, &to)) return false;
  int next = r->line;
  r->line = line;
  UOpStore *st = store_new(&r->ctx->mem);
  bool ok = st || program_no_memory(r);
  ok = ok && graph_parsed(r, st, from, to, &t, check) && (check || step_planned(r, &t));
  uop_text_free(&t);
  store_free(st);
  r->line = next;
  return ok;
}

static bool copy_read(Reader *r, bool check) {
  Place from, to;
  r->step++;
  if (r->parts) return program_bad(r, TG_ERR_VALUE, "a part of an input or output is missing");
  if (!copy_line(r, &from, &to)) return false;
  if (check) return true;
  const Declared *a = &r->memory.at[from.memory];
  TgJit *j = r->j;
  if (!vec_push(&r->ctx->mem, &j->c.steps,
                ((Step){.offset = a->offset + (size_t)from.start * dtype_size(a->dtype)})))
    return program_no_memory(r);
  Step *s = &j->c.steps.at[j->c.steps.len - 1];
  return place_set(r, &s->from, from.memory) && place_set(r, &s->to, to.memory);
}

static bool line_read(Reader *r, bool check) {
  if (at_line_end(r)) return line_end(r);
  if (accept_word(r, "step")) return step_read(r, check);
  if (accept_word(r, "copy")) return copy_read(r, check);
  if (!check) { /* declarations are known from the first reading */
    const char *next = memchr(r->at, '\n', (size_t)(r->end - r->at));
    r->at = next ? next + 1 : r->end;
    r->line++;
    return true;
  }
  if (accept_word(r, "device")) return device_line(r);
  if (accept_word(r, "parts")) return parts_line(r);
  if (accept_word(r, "random")) return random_line(r);
  if (accept_word(r, "variable")) return variable_line(r);
  if (accept(r, "m")) return memory_line(r);
  return expected(r, "a memory, `step`, `copy`, `random` or `variable`");
}

static bool all_read(Reader *r, const char *text, size_t n, bool check) {
  uint64_t version;
  r->at = text;
  r->end = text + n;
  r->line = 1;
  r->step = 0;
  for (size_t i = 0; i < r->memory.len; i++)
    r->memory.at[i].step = 0;
  if (!accept(r, "tinygrad program")) return program_bad(r, TG_ERR_VALUE, "this is no program");
  if (!number(r, INT32_MAX, &version)) return false;
  if (version != 1 && version != 2)
    return program_bad(r, TG_ERR_VALUE, "version %llu; versions 1 and 2 are what can be read here",
                       (unsigned long long)version);
  r->version = (int)version;
  bool ok = line_end(r);
  while (ok && r->at < r->end)
    ok = line_read(r, check);
  if (ok && r->parts) return program_bad(r, TG_ERR_VALUE, "a part of an input or output is missing");
  return ok;
}

static void random_set(Reader *r) {
  if (!r->count[DRAW]) return;
  r->ctx->rng_seed = r->seed;
  for (size_t i = 0; i < r->j->devices.len; i++)
    if (r->draws[i].order) r->ctx->draws[r->device[i]] = r->draws[i];
}

static void reader_free(Reader *r) {
  TgMem *mem = &r->ctx->mem;
  for (size_t i = 0; i < r->memory.len; i++)
    mem_free(mem, r->memory.at[i].name);
  for (int i = 0; i < MOST_DEVICES; i++)
    mem_free(mem, r->device_name[i]);
  vec_free(mem, &r->memory), vec_free(mem, &r->slots), vec_free(mem, &r->roots);
  store_free(r->sizes);
  map_free(&r->names), dims_free(r->dims);
}

TgJit *tg_jit_from_text(TgContext *ctx, const char *text, const char *const *names, TgTensor *const *tensors,
                        int n) {
  return tg_jit_from_text_on(ctx, text, NULL, 0, names, tensors, n);
}

TgJit *tg_jit_from_text_on(TgContext *ctx, const char *text, const char *const *devices, int ndevice,
                           const char *const *names, TgTensor *const *tensors, int n) {
  if (!ctx || ctx->err.status) return NULL;
  TG_REQUIRE(ctx, ctx->dev_open, TG_ERR_DEVICE, "program: no device is open");
  if (capture_refuses(ctx, "program")) return NULL;
  TG_REQUIRE(ctx, text && n >= 0 && (!n || (names && tensors)), TG_ERR_VALUE, "program: %s",
             text ? "no list of tensors" : "no text");
  TG_REQUIRE(ctx, ndevice >= 0 && (!ndevice || devices), TG_ERR_VALUE, "program: no list of devices");
  for (int i = 0; i < n; i++)
    TG_REQUIRE(ctx, !tensors[i] || tensors[i]->ctx == ctx, TG_ERR_VALUE,
               "program: tensor %d is of another context", i);
  Reader r = {.ctx = ctx, .j = jit_new(ctx, NULL, NULL)};
  if (!r.j) return NULL;
  map_init(&r.names, &ctx->mem);
  r.j->loaded = true;
  r.dims = dims_new(&ctx->mem, NULL);
  r.sizes = store_new(&ctx->mem);
  size_t size = strlen(text);
  bool scope = !tg_scope_begin(ctx), ok = (scope && r.dims && r.sizes) || program_no_memory(&r);
  if (ok) store_set_dims(r.sizes, r.dims);
  ok = ok && all_read(&r, text, size, true) && program_bound(&r, devices, ndevice, names, tensors, n);
  /* patches point to places in steps, so the list must not move */
  ok = ok && (vec_reserve(&ctx->mem, &r.j->c.steps, r.step + 1) || program_no_memory(&r));
  ok = ok && all_read(&r, text, size, false);
  if (scope) tg_scope_end(ctx);
  r.j->runs = 2;
  r.j->cleared = r.clear;
  if (ok)
    random_set(&r);
  else
    tg_jit_free(r.j);
  reader_free(&r);
  return ok ? r.j : NULL;
}
