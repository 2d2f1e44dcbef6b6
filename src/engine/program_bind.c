/* program_bind.c: binds the declarations of a program's text to a context. In: declarations that
 * program_read.c has read, names of devices, tensors for the memories. Out: the capture's devices,
 * variables, inputs, outputs and memories. A memory that is only read stays in its tensor's memory if that
 * is suitable. */
#include "engine/program_read.h"
#include "tensor/front.h"
#include <stdio.h>

/* ---- devices of the context */
/* Lists the names in the text, for an error. */
static const char *devices_told(const Reader *r, char *out, size_t cap) {
  size_t n = 0;
  *out = 0;
  for (int i = 0; i < r->ndevice && n < cap; i++)
    n += (size_t)snprintf(out + n, cap - n, "%s%.64s", i ? ", " : "", r->device_name[i]);
  return out;
}

/* Returns the number of devices of the text if n devices fit it. -1: an error was recorded. */
static int devices_wanted(Reader *r, int n) {
  char told[200];
  int of = r->version == 1 ? 1 : r->ndevice;
  if (of && (!n || n == of)) return of;
  if (r->version > 1) devices_told(r, told, sizeof told);
  error_set(&r->ctx->err, TG_ERR_VALUE, "program: it is of %d device%s%s%s; %d %s given", of,
            of == 1 ? "" : "s", r->ndevice ? ": " : "", r->ndevice ? told : "", n, n == 1 ? "is" : "are");
  return -1;
}

/* Finds the context's device for each device of the text: name[i], or the text's own name. A text of
 * version 1 has one device, the default. */
static bool devices_found(Reader *r, const char *const *name, int n) {
  TgContext *ctx = r->ctx;
  int of = devices_wanted(r, n);
  for (int i = 0; i < of; i++) {
    const char *want = n ? name[i] : r->device_name[i]; /* NULL: the default */
    if ((r->device[i] = device_find(ctx, "program", want)) < 0) return false;
    const char *found = device_at(ctx, r->device[i])->name;
    if (device_facts(ctx, r->device[i]).files_only)
      return error_set(&ctx->err, TG_ERR_DEVICE, "program: nothing is computed on %s", found), false;
    for (int k = 0; k < i; k++)
      if (r->device[k] == r->device[i])
        return error_set(&ctx->err, TG_ERR_VALUE, "program: d%d and d%d are both %s", k, i, found), false;
  }
  for (int i = 0; i < of; i++)
    if (!vec_push(&ctx->mem, &r->j->devices, r->device[i])) return program_no_memory(r);
  return of > 0;
}

/* ---- memories */
static bool pinned(Reader *r, Buffer *b) {
  if (!vec_push(&r->ctx->mem, &r->j->pinned, b)) return program_no_memory(r);
  b->pins++;
  return true;
}

/* Whether the program may use t's value in place: it must be contiguous, aligned, on the device and
 * read-only. */
static bool used_in_place(Reader *r, TgTensor *t, Declared *m) {
  TgContext *ctx = r->ctx;
  int64_t start;
  UOp *u = value_in_memory(ctx, t);
  Buffer *b = u ? buffer_of_value(ctx, view_bottom(u)) : NULL;
  if (!b || m->stored || !b->read_only || b->device != r->device[m->device] || !piece_of(u, &start))
    return false;
  const Renderer *ren = device_at(ctx, b->device)->backend->renderer;
  m->offset = (size_t)start * dtype_size(b->dtype);
  if (b->dtype != m->dtype || !b->data ||
      ((uintptr_t)b->data + m->offset) % (ren ? (size_t)ren->vec_align : 1))
    return false;
  return m->buffer = b, true;
}

static bool memory_bound(Reader *r, Declared *m, TgTensor *t) {
  TgContext *ctx = r->ctx;
  if (dt(t) != m->dtype)
    return program_bad(r, TG_ERR_DTYPE, "\"%.64s\" is %s, its tensor %s", m->name, dtype_name(m->dtype),
                       dtype_name(dt(t)));
  if (rank(t) != m->n || memcmp(dims(t), m->dims, (size_t)m->n * sizeof *m->dims))
    return program_bad(r, TG_ERR_SHAPE, "\"%.64s\" has shape %s, its tensor %s", m->name,
                       dims_text(ctx->store, m->n, m->dims).s, SHAPE_OF(t));
  TgTensor *own = NULL;
  m->offset = 0;
  if (used_in_place(r, t, m))
    own = tg_reshape(t, m->n, m->dims);
  else if (!ctx->err.status) {
    own = tensor_on(t, r->device[m->device]);
    own = own == t ? tg_clone(t) : tg_clone(own);
    m->offset = 0;
    m->buffer = own ? value_of(ctx, own) : NULL;
  }
  if (!own || !m->buffer) return ctx->err.status ? false : program_no_memory(r);
  Memory kept = {.name = m->name, .buffer = m->buffer, .offset = m->offset, .n = m->n, .t = tg_keep(own)};
  memcpy(kept.dims, m->dims, sizeof kept.dims);
  m->name = NULL; /* now owned by the list */
  if (!vec_push(&ctx->mem, &r->j->memories, kept)) {
    tg_release(kept.t), mem_free(&ctx->mem, kept.name);
    return program_no_memory(r);
  }
  return pinned(r, m->buffer);
}

static bool draw_bound(Reader *r, Declared *m) {
  TgContext *ctx = r->ctx;
  uint64_t none = 0;
  TgTensor *t = tensor_from(ctx, r->device[m->device], &none, TG_U64, TG_SHAPE(1));
  if (!t) return false;
  m->buffer = t->memory;
  m->buffer->draws = m->words;
  return (vec_push(&ctx->mem, &r->j->draws, m->buffer) || program_no_memory(r)) && pinned(r, m->buffer);
}

static bool scratch_bound(Reader *r, Declared *m) {
  TgContext *ctx = r->ctx;
  Buffer *b = mem_alloc(&ctx->mem, sizeof *b);
  if (!b) return program_no_memory(r);
  b->dtype = m->dtype;
  b->nelem = m->nelem;
  b->device = r->device[m->device];
  b->partly = true;
  m->buffer = b;
  if (vec_push(&ctx->mem, &r->j->own, b)) return true;
  mem_free(&ctx->mem, b);
  return program_no_memory(r);
}

static Want want_of(Reader *r, const Declared *m) {
  Want w = {.device = r->device[m->device], .dtype = m->dtype, .n = m->n};
  for (int i = 0; i < m->n; i++)
    w.dims[i] = dim_moved(r->ctx->store, r->sizes, m->dims[i], program_variable, r);
  return w;
}

/* Binds the input or output whose first part is m. */
static bool whole_bound(Reader *r, Declared *m, Given *g) {
  Layout at = {.n = m->parts, .axis = m->axis};
  *g = (Given){.name = m->name, .want = want_of(r, m)};
  m->name = NULL;
  for (int p = 0; p < at.n; p++) {
    at.device[p] = r->device[m[p].device];
    g->want.device = TG_MIN(g->want.device, at.device[p]); /* as tensor_device does */
    if (at.axis < 0) continue;
    at.bound[p + 1] = at.bound[p] + m[p].dims[at.axis];
    if (at.bound[p + 1] > INT64_C(1) << MOST_ELEMENTS_LOG2)
      return program_bad(r, TG_ERR_SHAPE, "more than 2^%d elements", MOST_ELEMENTS_LOG2);
  }
  if (at.axis >= 0) g->want.dims[at.axis] = at.bound[at.n];
  given_placed(r->ctx, g, &at);
  return true;
}

/* Adds m to the lists of inputs or outputs. */
static bool value_bound(Reader *r, Declared *m, Want *part, Given *whole, int *n) {
  part[m->at] = want_of(r, m);
  if (m->kind == OUTPUT && m->nelem && !m->written)
    return program_bad(r, TG_ERR_VALUE, "nothing writes output %d", m->at);
  return !m->parts || whole_bound(r, m, &whole[(*n)++]);
}

/* Notes inputs and state that the program stores to, because they have a new version after each run. */
static bool stored_noted(Reader *r, const Declared *m) {
  TgMem *mem = &r->ctx->mem;
  if (!m->stored) return true;
  for (int k = 0; m->kind == INPUT && k < m->n; k++)
    if (dim_symbolic(m->dims[k])) /* it would be only a part of the caller's memory */
      return program_bad(r, TG_ERR_VALUE, "input %d is stored to, and its axis %d varies", m->at, k);
  if (m->kind == INPUT) return vec_push(mem, &r->j->input_stored, m->at) || program_no_memory(r);
  if (m->kind == MEMORY) return vec_push(mem, &r->j->c.stored, m->buffer) || program_no_memory(r);
  return true;
}

static TgTensor *tensor_named(Reader *r, const Map *by_name, const char *name, const char *const *names,
                              TgTensor *const *tensors) {
  uint64_t i;
  if (map_get(by_name, hash_bytes(7, name, strlen(name)), &i) && !strcmp(names[i], name)) return tensors[i];
  program_bad(r, TG_ERR_VALUE, "there is no tensor \"%.64s\"", name);
  return NULL;
}

static bool all_bound(Reader *r, const char *const *names, TgTensor *const *tensors, int n) {
  TgJit *j = r->j;
  Map by_name;
  map_init(&by_name, &r->ctx->mem);
  j->nin = r->count[INPUT];
  j->nout = r->count[OUTPUT];
  j->in = mem_alloc(&r->ctx->mem, ((size_t)j->nin + 1) * sizeof *j->in);
  j->out = mem_alloc(&r->ctx->mem, ((size_t)j->nout + 1) * sizeof *j->out);
  j->given = given_new(r->ctx, j->nin);
  j->made = given_new(r->ctx, j->nout);
  bool ok = (j->in && j->out && j->given && j->made) || program_no_memory(r);
  for (int i = 0; ok && i < n; i++)
    ok = !names[i] || !tensors[i] ||
         map_put(&by_name, hash_bytes(7, names[i], strlen(names[i])), (uint64_t)i) || program_no_memory(r);
  for (size_t i = 0; ok && i < r->memory.len; i++) {
    Declared *m = &r->memory.at[i];
    TgTensor *t;
    switch (m->kind) {
    case INPUT: ok = value_bound(r, m, j->in, j->given, &j->ngiven); break;
    case OUTPUT: ok = value_bound(r, m, j->out, j->made, &j->nmade); break;
    case DRAW: ok = draw_bound(r, m); break;
    case SCRATCH: ok = scratch_bound(r, m); break;
    case MEMORY: t = tensor_named(r, &by_name, m->name, names, tensors); ok = t && memory_bound(r, m, t);
    }
    ok = ok && stored_noted(r, m);
  }
  map_free(&by_name);
  return ok;
}

static bool variables_made(Reader *r) {
  TgContext *ctx = r->ctx;
  for (int i = 0; i < r->nvars; i++) {
    const DimVar *v = dims_var_at(r->dims, i);
    TgVariable *own = tg_variable(ctx, v->name, v->lo, v->hi, .multiple_of = v->multiple);
    if (!own) return false;
    if (!vec_push(&ctx->mem, &r->j->variables, variable_number(own))) return program_no_memory(r);
  }
  return true;
}

bool program_bound(Reader *r, const char *const *device, int ndevice, const char *const *names,
                   TgTensor *const *tensors, int n) {
  return devices_found(r, device, ndevice) && variables_made(r) && all_bound(r, names, tensors, n);
}
