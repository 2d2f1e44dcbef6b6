/* metal_launch.c: launches on a METAL device, one by one and captured. In: programs and their arguments. Out:
 * commands of an encoder. A captured function is an indirect command buffer; only commands whose arguments
 * changed are written again. */
#include "runtime/metal.h"
#include <stdio.h>
#include <string.h>

/* ---- arguments of a launch, as one struct: the addresses of its buffers, then its variables */
static size_t struct_bytes(const Program *g) {
  return (size_t)g->nbuf * sizeof(uint64_t) + (size_t)g->nvar * sizeof(int64_t);
}

static void struct_put(const Launch *l, void *out) {
  char *to = out;
  for (int i = 0; i < l->nbuf; i++) {
    uint64_t at = (uintptr_t)l->bufs[i];
    memcpy(to + (size_t)i * sizeof at, &at, sizeof at);
  }
  if (l->nvar) memcpy(to + (size_t)l->nbuf * sizeof(uint64_t), l->vars, (size_t)l->nvar * sizeof *l->vars);
}

/* Returns the size of the values that a program takes besides its buffers; 0: it takes none. */
static size_t value_bytes(const Program *g) {
  return g->in_one ? struct_bytes(g) : (size_t)g->nvar * sizeof(int64_t);
}

static void values_put(const Launch *l, void *out) {
  if (l->program->in_one)
    struct_put(l, out);
  else
    memcpy(out, l->vars, (size_t)l->nvar * sizeof *l->vars);
}

/* ---- one launch */
/* Values are part of the command or, if they are many, are in shared memory. */
static TgStatus values_bound(Device *d, const Launch *l, MetalUint index) {
  Metal *p = d->priv;
  char few[INLINE_BYTES], *host = few;
  size_t n = value_bytes(l->program);
  Place at = {0};
  TgStatus st = TG_OK;
  if (n > STAGE_BYTES) return error_set(d->err, TG_ERR_LIMIT, "%s: too many arguments", d->name);
  if (n > sizeof few) st = metal_stage(d, n, 256, 0, &at, &host);
  MetalId e = st ? NULL : metal_encoder(d, COMPUTE);
  if (!e) return d->err->status;
  values_put(l, host);
  if (at.object)
    metal_set_buffer(&p->api, e, at.object, at.offset, index);
  else
    metal_set_bytes(&p->api, e, host, n, index);
  return TG_OK;
}

/* Binds buffers by their numbers. Buffers whose addresses are in a struct are named to Metal, so that it
 * makes them resident and orders accesses to them. */
static TgStatus buffers_bound(Device *d, const Launch *l, MetalId e) {
  Metal *p = d->priv;
  for (int i = 0; i < l->nbuf; i++) {
    Place at;
    TgStatus st = metal_place(d, l->bufs[i], &at);
    if (st) return st;
    if (!at.object) continue;
    if (l->program->in_one)
      metal_use(&p->api, e, &at.object, 1, METAL_READ_WRITE);
    else
      metal_set_buffer(&p->api, e, at.object, at.offset, (MetalUint)i);
  }
  return TG_OK;
}

static TgStatus launched(Device *d, const Launch *l) {
  Metal *p = d->priv;
  const Program *g = l->program;
  TgStatus st = value_bytes(g) ? values_bound(d, l, g->in_one ? 0 : (MetalUint)g->nbuf) : TG_OK;
  MetalId e = st ? NULL : metal_encoder(d, COMPUTE);
  if (!e) return d->err->status;
  st = buffers_bound(d, l, e);
  if (st) return st;
  metal_set_pipeline(&p->api, e, g->kernel->pipeline);
  metal_dispatch(&p->api, e, metal_grid(l), g->block);
  snprintf(p->last_kernel, sizeof p->last_kernel, "%s", g->name);
  st = metal_encoded(d);
  return st ? st : metal_told(d, "a launch");
}

TgStatus metal_launch(Device *d, const Launch *l) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, launched(d, l));
}

/* ---- graphs */
/* One copy of the commands. values: shared memory for what commands take by value. A command must not be
 * written while the GPU may run it, so there are two copies, and the other one is used then. stale: for each
 * command, whether it must be written again. */
typedef struct Copy {
  MetalId commands, values;
  char *host;
  bool *stale;
  uint64_t serial; /* command buffer that ran it last */
} Copy;

enum { COPIES = 2, MOST_COMMANDS = 16384 };

/* call[i]: launch i, with its own arguments. value_at[i]: offset of its values. used: all buffers. */
struct LaunchGraph {
  int n, now;
  Launch *call;
  void **bufs;
  int64_t *vars;
  size_t *value_at, value_bytes;
  MetalUint most_buffers;
  Copy copy[COPIES];
  Vec(MetalId) used, pipelines; /* each of them once */
  bool used_stale;
};

static void graph_freed(Device *d, LaunchGraph *g) {
  const MetalApi *m = &((Metal *)d->priv)->api;
  TgError *told = d->err, ignored = {0};
  if (!g) return;
  d->err = &ignored;
  for (int i = 0; i < COPIES; i++) {
    Copy *c = &g->copy[i];
    if (c->serial) metal_reach(d, c->serial);
    if (c->commands) metal_release(m, c->commands);
    if (c->values) metal_release(m, c->values);
    mem_free(d->mem, c->stale);
  }
  d->err = told;
  mem_free(d->mem, g->call), mem_free(d->mem, g->bufs), mem_free(d->mem, g->vars);
  mem_free(d->mem, g->value_at), vec_free(d->mem, &g->used);
  vec_free(d->mem, &g->pipelines), mem_free(d->mem, g);
}

void metal_graph_free(Device *d, LaunchGraph *g) {
  void *pool = metal_pool(d);
  graph_freed(d, g);
  metal_unpool(d, pool, TG_OK);
}

/* Copies the arguments of all launches, and assigns places in shared memory to their values. */
static bool calls_copied(Device *d, LaunchGraph *g, const Launch *l, int n) {
  enum { MULTIPLE = 256 }; /* values may begin at a multiple of this on every GPU */

  size_t nbuf = 0, nvar = 0;
  for (int i = 0; i < n; i++) {
    nbuf += (size_t)l[i].nbuf;
    nvar += (size_t)l[i].nvar;
  }
  g->n = n;
  g->call = mem_alloc(d->mem, ((size_t)n + 1) * sizeof *g->call);
  g->value_at = mem_alloc(d->mem, ((size_t)n + 1) * sizeof *g->value_at);
  g->bufs = mem_alloc(d->mem, (nbuf + 1) * sizeof *g->bufs);
  g->vars = mem_alloc(d->mem, (nvar + 1) * sizeof *g->vars);
  if (!g->call || !g->value_at || !g->bufs || !g->vars) return false;
  void **bufs = g->bufs;
  int64_t *vars = g->vars;
  for (int i = 0; i < n; i++) {
    const Program *prog = l[i].program;
    MetalUint taken = prog->in_one ? 1 : (MetalUint)(prog->nbuf + (prog->nvar > 0));
    g->call[i] = (Launch){l[i].program, bufs, vars, l[i].nbuf, l[i].nvar};
    if (l[i].nbuf) memcpy(bufs, l[i].bufs, (size_t)l[i].nbuf * sizeof *bufs);
    if (l[i].nvar) memcpy(vars, l[i].vars, (size_t)l[i].nvar * sizeof *vars);
    bufs += l[i].nbuf;
    vars += l[i].nvar;
    g->value_at[i] = g->value_bytes;
    g->value_bytes += (value_bytes(prog) + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    g->most_buffers = TG_MAX(g->most_buffers, taken);
  }
  return true;
}

static MetalId commands_new(Device *d, const LaunchGraph *g) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  MetalId o = metal_alloc_object(m, m->class_named("MTLIndirectCommandBufferDescriptor"));
  if (o) o = metal_init(m, o);
  if (!o) return NULL;
  metal_set_command_types(m, o, METAL_CONCURRENT_DISPATCH);
  metal_set_inherit_buffers(m, o, 0);
  metal_set_inherit_pipeline(m, o, 0);
  metal_set_most_buffers(m, o, TG_MAX(g->most_buffers, 1ul));
  MetalId made = metal_new_indirect(m, p->device, o, (MetalUint)g->n, METAL_SHARED);
  metal_release(m, o);
  return made;
}

static TgStatus copy_new(Device *d, const LaunchGraph *g, Copy *c) {
  Metal *p = d->priv;
  if (c->commands) return TG_OK;
  if (!c->stale && !(c->stale = mem_alloc(d->mem, (size_t)g->n + 1))) return metal_oom(d);
  if (g->value_bytes && !c->values) {
    c->values = metal_new_buffer(&p->api, p->device, g->value_bytes, METAL_SHARED);
    c->host = c->values ? metal_contents(&p->api, c->values) : NULL;
    if (!c->host)
      return error_set(d->err, TG_ERR_NOMEM, "%s: cannot allocate the arguments of a captured function",
                       d->name);
  }
  for (int i = 0; i < g->n; i++)
    c->stale[i] = true;
  c->commands = commands_new(d, g);
  return c->commands ? TG_OK : metal_failed(d, "a captured function gets no command buffer");
}

/* Writes a command, which runs after the one before it. */
static TgStatus command_written(Device *d, const LaunchGraph *g, Copy *c, int i) {
  const MetalApi *m = &((Metal *)d->priv)->api;
  const Launch *l = &g->call[i];
  const Program *prog = l->program;
  MetalId command = metal_command(m, c->commands, (MetalUint)i);
  if (!command) return metal_failed(d, "a captured function gets no command");
  metal_reset(m, command);
  metal_set_pipeline(m, command, prog->kernel->pipeline);
  for (int k = 0; k < l->nbuf && !prog->in_one; k++) {
    Place at;
    TgStatus st = metal_place(d, l->bufs[k], &at);
    if (st) return st;
    if (at.object) metal_set_kernel_buffer(m, command, at.object, at.offset, (MetalUint)k);
  }
  if (value_bytes(prog)) {
    values_put(l, c->host + g->value_at[i]);
    metal_set_kernel_buffer(m, command, c->values, g->value_at[i], prog->in_one ? 0 : (MetalUint)l->nbuf);
  }
  metal_command_dispatch(m, command, metal_grid(l), prog->block);
  metal_set_barrier(m, command);
  c->stale[i] = false;
  return TG_OK;
}

static bool is_stale(const LaunchGraph *g, const Copy *c) {
  bool any = !c->commands;
  for (int i = 0; i < g->n && !any; i++)
    any = c->stale[i];
  return any;
}

/* Finds a copy whose commands are all up to date. This is the copy that ran last if nothing changed or the
 * GPU is done with it; otherwise it is the other copy. */
static TgStatus copy_ready(Device *d, LaunchGraph *g, Copy **out) {
  Metal *p = d->priv;
  Copy *c = *out = &g->copy[g->now];
  if (!is_stale(g, c)) return TG_OK;
  metal_look(d);
  if (c->serial > p->done) {
    g->now = (g->now + 1) % COPIES;
    c = *out = &g->copy[g->now];
  }
  TgStatus st = c->serial > p->done ? metal_reach(d, c->serial) : TG_OK;
  if (!st) st = copy_new(d, g, c);
  for (int i = 0; i < g->n && !st; i++)
    if (c->stale[i]) st = command_written(d, g, c, i);
  return st;
}

/* Lists the buffers that the commands use, each once. */
static TgStatus used_found(Device *d, LaunchGraph *g) {
  Map seen;
  uint64_t v;
  if (!g->used_stale) return TG_OK;
  g->used.len = 0;
  map_init(&seen, d->mem);
  TgStatus st = TG_OK;
  for (int i = 0; i < g->n && !st; i++)
    for (int k = 0; k < g->call[i].nbuf && !st; k++) {
      Place at;
      st = metal_place(d, g->call[i].bufs[k], &at);
      if (st || !at.object || map_get(&seen, (uintptr_t)at.object, &v)) continue;
      if (!map_put(&seen, (uintptr_t)at.object, 1) || !vec_push(d->mem, &g->used, at.object))
        st = metal_oom(d);
    }
  map_free(&seen);
  g->used_stale = st != TG_OK;
  return st;
}

static bool pipelines_listed(Device *d, LaunchGraph *g) {
  Map seen;
  uint64_t v;
  bool ok = true;
  map_init(&seen, d->mem);
  for (int i = 0; i < g->n && ok; i++) {
    MetalId pipeline = g->call[i].program->kernel->pipeline;
    if (!map_get(&seen, (uintptr_t)pipeline, &v))
      ok = map_put(&seen, (uintptr_t)pipeline, 1) && vec_push(d->mem, &g->pipelines, pipeline);
  }
  map_free(&seen);
  return ok;
}

static TgStatus graph_made(Device *d, const Launch *l, int n, LaunchGraph **out) {
  Copy *c;
  if (n > MOST_COMMANDS)
    return error_set(d->err, TG_ERR_LIMIT, "%s: a captured function of %d kernels: %d are the most", d->name,
                     n, MOST_COMMANDS);
  LaunchGraph *g = mem_alloc(d->mem, sizeof *g);
  TgStatus st = g && calls_copied(d, g, l, n) && pipelines_listed(d, g) ? TG_OK : metal_oom(d);
  if (!st) {
    g->used_stale = true;
    st = copy_ready(d, g, &c);
  }
  if (st)
    graph_freed(d, g);
  else
    *out = g;
  return st;
}

TgStatus metal_graph_new(Device *d, const Launch *l, int n, LaunchGraph **out) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, graph_made(d, l, n, out));
}

/* Earlier launches keep their arguments. */
TgStatus metal_graph_update(Device *d, LaunchGraph *g, int i, const Launch *l) {
  Launch *had = &g->call[i];
  if (NEVER(had->program != l->program))
    return error_set(d->err, TG_ERR_INTERNAL, "%s: a captured function with another kernel", d->name);
  if (l->nbuf) memcpy((void *)(uintptr_t)had->bufs, l->bufs, (size_t)l->nbuf * sizeof *l->bufs);
  if (l->nvar) memcpy((void *)(uintptr_t)had->vars, l->vars, (size_t)l->nvar * sizeof *l->vars);
  g->used_stale = true;
  for (int k = 0; k < COPIES; k++)
    if (g->copy[k].stale) g->copy[k].stale[i] = true;
  return TG_OK;
}

/* On GPUs before Apple's family 9, an indirect command only finds its code if its pipeline was set in an
 * encoder. So each pipeline is set here, and dispatched for no threads. */
static void pipelines_brought(Device *d, const LaunchGraph *g, MetalId e) {
  const Metal *p = d->priv;
  static const MetalSize none = {0, 0, 0};
  for (size_t i = 0; i < g->pipelines.len && !p->finds_pipelines; i++) {
    metal_set_pipeline(&p->api, e, g->pipelines.at[i]);
    metal_dispatch(&p->api, e, none, none);
  }
}

static TgStatus graph_launched(Device *d, LaunchGraph *g) {
  Metal *p = d->priv;
  Copy *c;
  TgStatus st = copy_ready(d, g, &c);
  if (!st) st = used_found(d, g);
  MetalId e = st ? NULL : metal_encoder(d, COMPUTE);
  if (!e) return d->err->status;
  if (g->used.len) metal_use(&p->api, e, g->used.at, g->used.len, METAL_READ_WRITE);
  if (c->values) metal_use(&p->api, e, &c->values, 1, METAL_READ_WRITE);
  pipelines_brought(d, g, e);
  metal_execute(&p->api, e, c->commands, (MetalRange){0, (MetalUint)g->n});
  c->serial = p->now->serial;
  snprintf(p->last_kernel, sizeof p->last_kernel, "of a captured function");
  st = metal_encoded(d);
  return st ? st : metal_told(d, "a launch");
}

TgStatus metal_graph_launch(Device *d, LaunchGraph *g) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, graph_launched(d, g));
}
