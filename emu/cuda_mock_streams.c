/* cuda_mock_streams.c: the mock's streams. In: copies, launches, graphs, events, waits. Out: the same, done
 * in order within a stream. Between streams, it is done when somebody waits for it, or at times and in an
 * order that a seed chooses. */
#define _GNU_SOURCE
#include "emu/cuda_mock.h"
#include <string.h>

/* Returns true for about one of `below` calls, chosen by the seed. */
static bool seeded(uint64_t below) {
  cuda_mock.seed = hash_mix(cuda_mock.seed, below);
  return cuda_mock.env.emulate > 3 && cuda_mock.seed % below == 0;
}

/* ---- ops in streams */
static void event_unref(CUevent e) {
  if (e && --e->refs == 0) mock_drop(e);
}

/* ---- messages that were sent */
static void sent_end(Sent **at) {
  Sent *gone = *at;
  *at = gone->next;
  mock_drop(gone->was), mock_drop(gone);
}

/* Work that comes after a message may change its bytes. */
static void sent_waited(CUstream s, uint64_t number) {
  s->sent = TG_MAX(s->sent, number);
  for (Sent **at = &cuda_mock.sent; *at;)
    if ((*at)->device == s->device && (*at)->number <= number)
      sent_end(at);
    else
      at = &(*at)->next;
}

CUresult mock_sent(CUstream s, const void *p, char *was, size_t nbytes) {
  Sent *sent = mock_take(sizeof *sent);
  if (!sent) return mock_drop(was), CUDA_OUT_OF_MEMORY;
  s->sent = ++cuda_mock.nsent;
  *sent = (Sent){s->sent, s->device, p, was, nbytes, cuda_mock.sent};
  cuda_mock.sent = sent;
  return CUDA_OK;
}

static CUresult sent_same(CUstream s) {
  CUresult r = CUDA_OK;
  for (Sent *at = cuda_mock.sent; at && !r; at = at->next) {
    char *now = at->device == s->device && at->number > s->sent ? mock_take(at->nbytes) : NULL;
    if (now && !emu_read(cuda_mock.emu[at->device], now, at->p, at->nbytes, &cuda_mock.why) &&
        memcmp(now, at->was, at->nbytes))
      r = mock_misused("bytes that are sent change, and nobody has waited for it");
    mock_drop(now);
  }
  return r;
}

static void op_free(Op *op) {
  event_unref(op->event);
  mock_drop(op->call.args), mock_drop(op->own), mock_drop(op);
  cuda_mock.ngiven--;
}

static TgStatus copied_between(Emu *to, Emu *from, const Op *op) {
  if (to == from) return emu_copy(to, op->to, op->from, op->nbytes, &cuda_mock.why);
  void *piece = mock_take(op->nbytes);
  TgStatus st = piece ? emu_read(from, piece, op->from, op->nbytes, &cuda_mock.why) : TG_ERR_NOMEM;
  if (!st) st = emu_write(to, op->to, piece, op->nbytes, &cuda_mock.why);
  mock_drop(piece);
  return st;
}

static TgStatus kernel_run(Emu *e, const KernelCall *c) {
  void **params = mock_take((size_t)c->narg * sizeof *params);
  if (!params) return TG_ERR_NOMEM;
  for (int i = 0; i < c->narg; i++)
    params[i] = &c->args[i];
  cuda_mock.counts.launches++;
  TgStatus st =
      emu_launch(e, c->function->kernel, c->grid, c->block, c->shared_bytes, params, &cuda_mock.why);
  mock_drop(params);
  return st;
}

static CUresult op_run(const Op *op) {
  Emu *to = cuda_mock.emu[op->to_device], *from = cuda_mock.emu[op->from_device];
  switch (op->kind) {
  case OP_LAUNCH: return mock_refused(kernel_run(to, &op->call));
  case OP_IN:
    return mock_refused(emu_write(to, op->to, op->own ? op->own : op->from, op->nbytes, &cuda_mock.why));
  case OP_OUT: return mock_refused(emu_read(from, op->to, op->from, op->nbytes, &cuda_mock.why));
  case OP_COPY: return mock_refused(copied_between(to, from, op));
  case OP_CLEAR: return mock_refused(emu_fill(to, op->to, (int)op->number, op->nbytes, &cuda_mock.why));
  case OP_RECORD:
    op->event->reached = TG_MAX(op->event->reached, op->number);
    op->event->at_s = time_now_s();
    op->event->sent = op->stream->sent;
    return CUDA_OK;
  case OP_WAIT: return sent_waited(op->stream, op->event->sent), CUDA_OK;
  case OP_OTHER: return op->other(op);
  default: return CUDA_OK;
  }
}

static bool held_up(const Op *op) { return op->kind == OP_WAIT && op->event->reached < op->number; }

/* Returns the stream that contains the record that is waited for, or NULL. */
static CUstream stream_of_record(const Op *wait) {
  for (CUstream s = cuda_mock.streams; s; s = s->next)
    for (const Op *op = s->first; op; op = op->next)
      if (op->kind == OP_RECORD && op->event == wait->event && op->number >= wait->number) return s;
  return NULL;
}

static void first_done(CUstream s) {
  Op *op = s->first;
  if (!cuda_mock.broken && !op_run(op)) sent_same(s);
  if (!(s->first = op->next)) s->last = NULL;
  op_free(op);
}

/* Lets hasty streams do everything that no wait holds up. */
static void hasty_done(void) {
  for (bool any = true; any;) {
    any = false;
    for (CUstream s = cuda_mock.streams; s; s = s->next)
      for (; s->hasty && s->first && !held_up(s->first); any = true)
        first_done(s);
  }
}

/* Does what s has to do until nothing is left or until `e` is reached. Other streams are only run as far as s
 * waits for them. */
static CUresult stream_done(CUstream s, CUevent e, uint64_t number) {
  while (s->first && !(e && e->reached >= number) && !cuda_mock.broken) {
    /* the last stream in the chain of waits */
    CUstream busy = s;
    for (int depth = 0; busy && busy->first && held_up(busy->first) && depth < MOST_GIVEN; depth++)
      busy = stream_of_record(busy->first);
    if (!busy || !busy->first || held_up(busy->first))
      return mock_misused("streams wait for one another for ever");
    first_done(busy);
    hasty_done();
  }
  return cuda_mock.broken;
}

/* Sometimes, and if there are very many ops, does something before anybody waits. */
static void some_done(void) {
  while (seeded(3) || cuda_mock.ngiven > MOST_GIVEN) {
    CUstream ready[16];
    size_t n = 0;
    for (CUstream s = cuda_mock.streams; s && n < TG_COUNT(ready); s = s->next)
      if (s->first && !held_up(s->first)) ready[n++] = s;
    if (!n) return;
    first_done(ready[cuda_mock.seed / 3 % n]);
  }
}

static CUresult given(CUstream s, Op *op) {
  op->stream = s;
  if (s->last)
    s->last->next = op;
  else
    s->first = op;
  s->last = op;
  if (op->event) op->event->refs++;
  cuda_mock.ngiven++;
  hasty_done();
  some_done();
  return cuda_mock.broken;
}

CUresult mock_op_given(CUstream s, Op what) {
  Op *op = s && !cuda_mock.broken ? mock_take(sizeof *op) : NULL;
  if (!op) {
    mock_drop(what.call.args), mock_drop(what.own);
    return cuda_mock.broken ? cuda_mock.broken : s ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
  }
  *op = what;
  return given(s, op);
}

static bool meets(const void *p, size_t n, const void *q, size_t m) {
  uintptr_t a = (uintptr_t)p, b = (uintptr_t)q;
  return n && m && a < b + m && b < a + n;
}

static bool call_uses(const KernelCall *c, const void *p, size_t nbytes) {
  for (int i = 0; i < c->narg; i++)
    if (meets((const void *)(uintptr_t)c->args[i], 1, p, nbytes)) return true;
  return false;
}

bool mock_in_use(const void *p, size_t nbytes) {
  for (CUstream s = cuda_mock.streams; s; s = s->next)
    for (const Op *op = s->first; op; op = op->next)
      if (call_uses(&op->call, p, nbytes) || meets(op->to, op->nbytes, p, nbytes) ||
          (!op->own && meets(op->from, op->nbytes, p, nbytes)))
        return true;
  return false;
}

CUresult mock_stream_done(CUstream s) { return stream_done(s, NULL, 0); }

/* ---- streams and events */
/* With TG_EMU=2 all streams of a GPU except its first are hasty, with 3 only the first is. So if two streams
 * lack an order that they need, one of the two settings runs them in the wrong order. */
static bool is_hasty(int device) {
  enum { FIRST = 2, LAST = 3 };

  int order = cuda_mock.env.emulate;
  bool first = true;
  for (CUstream s = cuda_mock.streams; s; s = s->next)
    first &= s->device != device;
  return order >= FIRST && order <= LAST && (order + !first) % 2 == 1;
}

CUresult cuda_mock_stream_create(CUstream *s, unsigned flags) {
  if (!cuda_mock_now || flags != CUDA_STREAM_NON_BLOCKING) return CUDA_INVALID_VALUE;
  if (!(*s = mock_take(sizeof **s))) return CUDA_OUT_OF_MEMORY;
  (*s)->device = cuda_mock_now->device;
  (*s)->hasty = is_hasty((*s)->device);
  (*s)->next = cuda_mock.streams;
  cuda_mock.streams = *s;
  cuda_mock.counts.streams++;
  return CUDA_OK;
}

CUresult cuda_mock_stream_destroy(CUstream s) {
  CUstream *at = &cuda_mock.streams;
  stream_done(s, NULL, 0);
  /* they are left if the GPU is broken */
  while (s->first) {
    Op *op = s->first;
    s->first = op->next;
    op_free(op);
  }
  while (*at != s)
    at = &(*at)->next;
  *at = s->next;
  mock_drop(s);
  cuda_mock.counts.streams--;
  return CUDA_OK;
}

CUresult cuda_mock_stream_sync(CUstream s) {
  return cuda_mock.broken ? cuda_mock.broken : stream_done(s, NULL, 0);
}

CUresult cuda_mock_stream_wait(CUstream s, CUevent e, unsigned flags) {
  if (flags) return CUDA_INVALID_VALUE;
  if (!e->recorded) return CUDA_OK;
  return mock_op_given(s, (Op){.kind = OP_WAIT, .event = e, .number = e->recorded});
}

CUresult cuda_mock_event_create(CUevent *e, unsigned flags) {
  if (flags & ~(unsigned)CUDA_EVENT_NO_TIME) return CUDA_INVALID_VALUE;
  if (!(*e = mock_take(sizeof **e))) return CUDA_OUT_OF_MEMORY;
  (*e)->refs = 1;
  cuda_mock.counts.events++;
  return CUDA_OK;
}

CUresult cuda_mock_event_destroy(CUevent e) {
  event_unref(e);
  cuda_mock.counts.events--;
  return CUDA_OK;
}

CUresult cuda_mock_event_record(CUevent e, CUstream s) {
  return mock_op_given(s, (Op){.kind = OP_RECORD, .event = e, .number = ++e->recorded});
}

CUresult cuda_mock_event_sync(CUevent e) {
  Op wait = {.kind = OP_WAIT, .event = e, .number = e->recorded};
  while (!cuda_mock.broken && held_up(&wait)) {
    CUstream s = stream_of_record(&wait);
    if (!s) return mock_misused("an event is waited for that nobody records");
    stream_done(s, e, e->recorded);
  }
  return cuda_mock.broken;
}

CUresult cuda_mock_event_ms(float *ms, CUevent from, CUevent to) {
  enum { NOT_READY = 600 };

  if (from->reached < from->recorded || to->reached < to->recorded) return NOT_READY;
  *ms = (float)((to->at_s - from->at_s) * 1e3);
  return CUDA_OK;
}

/* ---- kernels */
void mock_functions_left(CUmodule m, int device) {
  for (CUfunction *f = &cuda_mock.functions; *f;) {
    CUfunction gone = *f;
    if (m ? gone->module != m : gone->module->device != device) {
      f = &gone->next;
      continue;
    }
    *f = gone->next;
    mock_drop(gone);
  }
}

CUresult cuda_mock_module_load(CUmodule *m, const void *image) {
  size_t nbytes;
  if (cuda_mock.broken || !cuda_mock_now) return cuda_mock_now ? cuda_mock.broken : CUDA_INVALID_VALUE;
  memcpy(&nbytes, image, sizeof nbytes);
  if (!(*m = mock_take(sizeof **m))) return CUDA_OUT_OF_MEMORY;
  (*m)->device = cuda_mock_now->device;
  TgError why = {0};
  const char *object = (const char *)image + sizeof nbytes;
  if (emu_load(cuda_mock.emu[cuda_mock_now->device], object, nbytes, &why, &(*m)->module)) {
    mock_drop(*m);
    return CUDA_INVALID_VALUE;
  }
  cuda_mock.counts.modules++;
  return CUDA_OK;
}

CUresult cuda_mock_module_unload(CUmodule m) {
  for (CUstream s = cuda_mock.streams; s; s = s->next)
    for (const Op *op = s->first; op; op = op->next)
      if (op->kind == OP_LAUNCH && op->call.function->module == m)
        mock_misused("a module is unloaded while a kernel of it is to run");
  mock_functions_left(m, 0);
  emu_unload(cuda_mock.emu[m->device], m->module);
  mock_drop(m);
  cuda_mock.counts.modules--;
  return cuda_mock.broken;
}

CUresult cuda_mock_module_function(CUfunction *f, CUmodule m, const char *name) {
  enum { NOT_FOUND = 500 };

  EmuKernel *k = emu_kernel(m->module, name);
  size_t declared = k ? emu_shared_bytes(k) : 0;
  if (!k) return NOT_FOUND;
  if (declared > CUDA_STATIC_LOCAL) return CUDA_INVALID_VALUE; /* ptxas refuses the text */
  if (!(*f = mock_take(sizeof **f))) return CUDA_OUT_OF_MEMORY;
  **f = (struct CudaFunction){k, m, cuda_mock.functions, CUDA_STATIC_LOCAL - declared};
  cuda_mock.functions = *f;
  return CUDA_OK;
}

CUresult cuda_mock_function_set(CUfunction f, int attribute, int value) {
  int64_t most = target_cuda.local_most - (int64_t)emu_shared_bytes(f->kernel);
  if (attribute != CUDA_FUNCTION_DYNAMIC_SHARED || value < 0 || value > most) return CUDA_INVALID_VALUE;
  f->most_dynamic = (size_t)value;
  return CUDA_OK;
}

/* What every GPU of NVIDIA's refuses: CUDA C++ Programming Guide, "Technical Specifications". */
static bool can_be_launched(CUfunction f, const unsigned grid[3], const unsigned block[3], unsigned shared) {
  enum { GRID_YZ = 65535, BLOCK_Z = 64, BLOCK = 1024 };

  bool fits = shared <= f->most_dynamic && block[2] <= BLOCK_Z && (uint64_t)block[0] * block[1] <= BLOCK &&
              block[0] * block[1] * block[2] <= BLOCK;
  return fits && grid[0] <= INT32_MAX && grid[1] <= GRID_YZ && grid[2] <= GRID_YZ;
}

/* Makes a launch with a copy of its arguments, because the caller may change them after the call. Each
 * argument has 8 bytes here. */
static CUresult call_made(KernelCall *c, CUfunction f, const unsigned grid[3], const unsigned block[3],
                          unsigned shared, void **args) {
  if (!can_be_launched(f, grid, block, shared)) return CUDA_INVALID_VALUE;
  *c = (KernelCall){.function = f, .shared_bytes = shared, .narg = emu_nparam(f->kernel)};
  if (!(c->args = mock_take((size_t)c->narg * sizeof *c->args))) return CUDA_OUT_OF_MEMORY;
  for (int i = 0; i < 3; i++) {
    c->grid[i] = grid[i];
    c->block[i] = block[i];
  }
  for (int i = 0; i < c->narg; i++)
    memcpy(&c->args[i], args[i], TG_MIN(emu_param_bytes(f->kernel, i), sizeof *c->args));
  return CUDA_OK;
}

static CUresult call_copied(KernelCall *c, const KernelCall *from) {
  *c = *from;
  if (!(c->args = mock_take((size_t)c->narg * sizeof *c->args))) return CUDA_OUT_OF_MEMORY;
  memcpy(c->args, from->args, (size_t)c->narg * sizeof *c->args);
  return CUDA_OK;
}

static CUresult call_given(CUstream s, const KernelCall *c) {
  return mock_op_given(s,
                       (Op){.kind = OP_LAUNCH, .call = *c, .to_device = s->device, .from_device = s->device});
}

CUresult cuda_mock_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, CUstream s, void **args, void **extra) {
  KernelCall c;
  if (!f || !s || extra) return CUDA_INVALID_VALUE;
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  CUresult r = call_made(&c, f, grid, block, shared, args);
  return r ? r : call_given(s, &c);
}

/* ---- graphs */
CUresult cuda_mock_graph_create(CUgraph *g, unsigned flags) {
  if (flags) return CUDA_INVALID_VALUE;
  if (!(*g = mock_take(sizeof **g))) return CUDA_OUT_OF_MEMORY;
  cuda_mock.counts.graphs++;
  return CUDA_OK;
}

CUresult cuda_mock_graph_destroy(CUgraph g) {
  while (g->first) {
    CUgraphNode n = g->first;
    g->first = n->next;
    mock_drop(n->call.args), mock_drop(n);
  }
  mock_drop(g);
  cuda_mock.counts.graphs--;
  return CUDA_OK;
}

/* The graphs built here are chains: each node comes after the one that was added before it. */
CUresult cuda_mock_graph_add(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t nafter,
                             const CudaKernelNode *k) {
  if (nafter != (g->last != NULL) || (nafter && after[0] != g->last)) return CUDA_INVALID_VALUE;
  if (!(*n = mock_take(sizeof **n))) return CUDA_OUT_OF_MEMORY;
  CUresult r = call_made(&(*n)->call, k->function, k->grid, k->block, k->shared_bytes, k->args);
  if (r) {
    mock_drop(*n);
    return r;
  }
  *(g->last ? &g->last->next : &g->first) = *n;
  g->last = *n;
  return CUDA_OK;
}

CUresult cuda_mock_graph_exec_destroy(CUgraphExec e) {
  for (int i = 0; i < e->n; i++)
    mock_drop(e->call[i].args);
  mock_drop(e->node), mock_drop(e->call), mock_drop(e);
  cuda_mock.counts.execs--;
  return CUDA_OK;
}

CUresult cuda_mock_graph_instantiate(CUgraphExec *out, CUgraph g, unsigned long long flags) {
  size_t n = 0;
  if (flags) return CUDA_INVALID_VALUE;
  for (CUgraphNode at = g->first; at; at = at->next)
    n++;
  CUgraphExec e = *out = mock_take(sizeof *e);
  if (!e) return CUDA_OUT_OF_MEMORY;
  cuda_mock.counts.execs++;
  e->node = mock_take(n * sizeof *e->node);
  e->call = mock_take(n * sizeof *e->call);
  CUresult r = e->node && e->call ? CUDA_OK : CUDA_OUT_OF_MEMORY;
  for (CUgraphNode at = g->first; at && !r; at = at->next)
    if (!(r = call_copied(&e->call[e->n], &at->call))) e->node[e->n++] = at;
  if (r) cuda_mock_graph_exec_destroy(e);
  return r;
}

/* Earlier launches keep their arguments. */
CUresult cuda_mock_graph_update(CUgraphExec e, CUgraphNode n, const CudaKernelNode *k) {
  KernelCall c;
  int i = 0;
  while (i < e->n && e->node[i] != n)
    i++;
  if (i == e->n || e->call[i].function != k->function) return CUDA_INVALID_VALUE;
  CUresult r = call_made(&c, k->function, k->grid, k->block, k->shared_bytes, k->args);
  if (r) return r;
  mock_drop(e->call[i].args);
  e->call[i] = c;
  return CUDA_OK;
}

CUresult cuda_mock_graph_launch(CUgraphExec e, CUstream s) {
  CUresult r = cuda_mock.broken;
  cuda_mock.counts.graph_launches++;
  for (int i = 0; i < e->n && !r; i++) {
    KernelCall c;
    r = call_copied(&c, &e->call[i]);
    if (!r) r = call_given(s, &c);
  }
  return r;
}
