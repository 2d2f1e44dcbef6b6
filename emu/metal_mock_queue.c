/* metal_mock_queue.c: queues of the mock. In: command buffers, encoders and what is put into them. Out: the
 * same, done in order within a queue, when somebody waits for it, or (TG_EMU=2 and more) at times and in an
 * order between queues that a seed chooses. Commands of an indirect command buffer run backwards if no
 * barrier orders them. These are misuse: an encoder that is left open, a command buffer that is committed
 * twice or waited for too early, a command that is written while it still has to run. */
#include "emu/metal_mock.h"
#include <string.h>

/* Returns true for about one of `below` calls, chosen by the seed. */
static bool seeded(uint64_t below) {
  metal_mock.seed = hash_mix(metal_mock.seed, below);
  return metal_mock.env.emulate > 1 && metal_mock.seed % below == 0;
}

/* ---- bindings */
static void binding_end(Binding *b) {
  mock_let_go(b->buffer);
  mem_free(&metal_mock.mem, b->bytes);
  *b = (Binding){0};
}

static void dispatch_end(Dispatch *d) {
  for (int i = 0; i < MOST_BINDINGS; i++)
    binding_end(&d->at[i]);
  mock_let_go(d->pipeline);
  d->pipeline = NULL;
}

static bool dispatch_copied(Dispatch *to, const Dispatch *from) {
  *to = *from;
  mock_hold(to->pipeline);
  for (int i = 0; i < MOST_BINDINGS; i++) {
    Binding *b = &to->at[i];
    mock_hold(b->buffer);
    if (!b->bytes) continue;
    b->bytes = mem_alloc(&metal_mock.mem, b->nbytes);
    if (b->bytes) memcpy(b->bytes, from->at[i].bytes, b->nbytes);
  }
  return true;
}

static void bind_buffer(Dispatch *d, MetalId buffer, MetalUint offset, MetalUint index, const char *what) {
  MockBuffer *b = mock_of_kind(buffer, A_BUFFER, what);
  if (index >= MOST_BINDINGS || (b && (b->of || offset >= b->nbytes))) {
    metal_misused("%s: buffer %lu at byte %lu", what, index, offset);
    return;
  }
  mock_hold(b);
  binding_end(&d->at[index]);
  d->at[index].buffer = b;
  d->at[index].offset = offset;
}

static void set_pipeline(Dispatch *d, MetalId pipeline, const char *what) {
  MockPipeline *p = mock_of_kind(pipeline, A_PIPELINE, what);
  mock_hold(p), mock_let_go(d->pipeline);
  d->pipeline = p;
}

/* ---- running */
/* whether an address is in a buffer that was named */
static bool reaches(const Op *op, uintptr_t at) {
  for (size_t i = 0; i < op->nused; i++)
    if (at - (uintptr_t)op->used[i]->at < op->used[i]->nbytes) return true;
  return false;
}

/* Checks the addresses among the values that a kernel is given. Each must be in a buffer that was named. */
static bool addresses_named(MockDevice *device, const Op *op, const char *values, size_t nbytes) {
  for (size_t i = 0; i + sizeof(uintptr_t) <= nbytes; i += sizeof(uintptr_t)) {
    uintptr_t at;
    memcpy(&at, values + i, sizeof at);
    if (!emu_holds(device->emu, (void *)at, 1) || reaches(op, at)) continue;
    metal_misused("a kernel is given an address in a buffer that useResources does not name");
    return false;
  }
  return true;
}

/* Sets *out to the address of what is bound to number i; NULL: nothing. Bytes by value are copied to memory
 * of the GPU. */
static TgStatus binding_address(MockDevice *device, const Op *op, const Dispatch *d, int i, void **out,
                                TgError *why) {
  const Binding *b = &d->at[i];
  size_t nbytes = emu_param_bytes(d->pipeline->function->kernel, i);
  *out = b->buffer ? b->buffer->at + b->offset : NULL;
  TgStatus st = TG_OK;
  if (b->bytes) st = emu_alloc(device->emu, b->nbytes, why, out);
  if (b->bytes && !st) st = emu_write(device->emu, *out, b->bytes, b->nbytes, why);
  bool by_address = nbytes > sizeof(void *) && *out && !st; /* a struct */
  if (by_address && !addresses_named(device, op, *out, nbytes)) return TG_ERR_DEVICE;
  return st;
}

static TgStatus kernel_run(MockDevice *device, const Op *op, const Dispatch *d, TgError *why) {
  if (!d->pipeline) return error_set(why, TG_ERR_DEVICE, "a dispatch without a pipeline");
  const EmuKernel *k = d->pipeline->function->kernel;
  void *at[MOST_BINDINGS] = {0}, *params[MOST_BINDINGS];
  const uint32_t grid[3] = {(uint32_t)d->grid.width, (uint32_t)d->grid.height, (uint32_t)d->grid.depth};
  const uint32_t block[3] = {(uint32_t)d->block.width, (uint32_t)d->block.height, (uint32_t)d->block.depth};
  TgStatus st = TG_OK;
  if (d->block.width * d->block.height * d->block.depth > d->pipeline->most_threads)
    st = error_set(why, TG_ERR_DEVICE, "more threads in a group than its pipeline was made for");
  for (int i = 0; i < TG_MIN(emu_nparam(k), MOST_BINDINGS) && !st; i++) {
    st = binding_address(device, op, d, i, &at[i], why);
    params[i] = at[i] ? &at[i] : NULL;
  }
  metal_mock.counts.launches++;
  if (!st) st = emu_launch(device->emu, k, grid, block, 0, params, why);
  TgError ignored = {0};
  for (int i = 0; i < MOST_BINDINGS; i++)
    if (d->at[i].bytes && at[i]) emu_release(device->emu, at[i], &ignored);
  return st;
}

/* Runs commands. Those between two barriers may run in any order; here the last runs first. */
static TgStatus commands_run(MockDevice *device, const Op *op, TgError *why) {
  const MockIndirect *in = op->indirect;
  TgStatus st = TG_OK;
  metal_mock.counts.executions++;
  for (MetalUint from = op->range.at, end = from + op->range.length; from < end && !st;) {
    MetalUint to = from + 1;
    while (to < end && !in->command[to].d.barrier)
      to++;
    for (MetalUint i = to; i-- > from && !st;) {
      const Dispatch *d = &in->command[i].d;
      if (!d->pipeline || !d->grid.width) return error_set(why, TG_ERR_DEVICE, "a command that nobody wrote");
      for (int k = 0; k < MOST_BINDINGS && !st; k++)
        if (d->at[k].buffer && !reaches(op, (uintptr_t)d->at[k].buffer->at))
          st = error_set(why, TG_ERR_DEVICE, "a command's buffer %d is not named by useResources", k);
      if (!st) st = kernel_run(device, op, d, why);
    }
    from = to;
  }
  return st;
}

/* Copies from the memory of another GPU. */
static TgStatus peer_read(MockDevice *device, const Op *op, TgError *why) {
  const MockBuffer *from = op->from->of;
  char *host = mem_alloc(&metal_mock.mem, op->nbytes);
  if (!host) return error_set(why, TG_ERR_NOMEM, "out of memory");
  TgStatus st = emu_read(from->device->emu, host, from->at + op->from_offset, op->nbytes, why);
  if (!st) st = emu_write(device->emu, op->to->at + op->to_offset, host, op->nbytes, why);
  mem_free(&metal_mock.mem, host);
  return st;
}

static TgStatus op_run(MockCommandBuffer *b, const Op *op) {
  MockDevice *device = b->queue->device;
  switch (op->kind) {
  case OP_DISPATCH: return kernel_run(device, op, &op->dispatch, &b->why);
  case OP_EXECUTE: return commands_run(device, op, &b->why);
  case OP_COPY:
    if (op->from->of) return peer_read(device, op, &b->why);
    return emu_copy(device->emu, op->to->at + op->to_offset, op->from->at + op->from_offset, op->nbytes,
                    &b->why);
  case OP_FILL: return emu_fill(device->emu, op->to->at + op->to_offset, op->byte, op->nbytes, &b->why);
  case OP_SIGNAL: op->event->value = TG_MAX(op->event->value, op->value); return TG_OK;
  default: return TG_OK;
  }
}

static void op_end(Op *op) {
  if (op->indirect) op->indirect->in_flight--;
  dispatch_end(&op->dispatch);
  for (size_t i = 0; i < op->nused; i++)
    mock_let_go(op->used[i]);
  mock_let_go(op->indirect), mock_let_go(op->to), mock_let_go(op->from), mock_let_go(op->event);
  mem_free(&metal_mock.mem, op->used);
  mem_free(&metal_mock.mem, op);
}

static void ops_end(MockCommandBuffer *b) {
  while (b->first) {
    Op *op = b->first;
    b->first = op->next;
    op_end(op);
  }
  b->last = NULL;
}

/* The command buffer that runs next reports an earlier misuse. */
static TgStatus misuse_told(MockCommandBuffer *b) {
  Mock *m = &metal_mock;
  if (!m->misuse.status || m->misuse_told) return TG_OK;
  m->misuse_told = true;
  return error_set(&b->why, TG_ERR_DEVICE, "misuse: %.300s", m->misuse.msg);
}

static bool held_up(const MockCommandBuffer *b) {
  for (const Op *op = b->first; op; op = op->next)
    if (op->kind == OP_WAIT && op->event->value < op->value) return true;
  return false;
}

static void first_run(MockQueue *q) {
  MockCommandBuffer *b = q->first;
  if (!(q->first = b->next)) q->last = NULL;
  b->began_s = time_now_s();
  TgStatus st = b->fails ? error_set(&b->why, TG_ERR_DEVICE, "the GPU was lost, as was asked for") : TG_OK;
  for (const Op *op = b->first; op && !st; op = op->next)
    st = op_run(b, op);
  /* otherwise a waiting queue would wait for ever */
  for (const Op *op = b->first; op && st; op = op->next)
    if (op->kind == OP_SIGNAL) op_run(b, op);
  if (!st) st = misuse_told(b);
  b->ended_s = time_now_s();
  b->status = st ? METAL_ERROR : METAL_COMPLETED;
  ops_end(b);
  mock_let_go(b);
}

/* Runs the first command buffer of another queue. Returns false if none can run. */
static bool one_run(const MockQueue *except) {
  for (MockQueue *q = metal_mock.queues; q; q = q->next)
    if (q != except && q->first && !held_up(q->first)) return first_run(q), true;
  return false;
}

static void run_until(MockCommandBuffer *b) {
  while (b->status < METAL_COMPLETED) {
    if (!held_up(b->queue->first)) {
      first_run(b->queue);
      continue;
    }
    if (one_run(b->queue)) continue;
    metal_misused("queues wait for one another for ever");
    b->queue->first->fails = true;
    first_run(b->queue);
  }
}

void mock_some_done(void) {
  while (seeded(7)) {
    MockQueue *ready[16];
    size_t n = 0;
    for (MockQueue *q = metal_mock.queues; q && n < TG_COUNT(ready); q = q->next)
      if (q->first && !held_up(q->first)) ready[n++] = q;
    if (!n) return;
    first_run(ready[metal_mock.seed / 7 % n]);
  }
}

/* ---- command buffers */
static MetalId device_queue(MockDevice *d, MetalSelector s) {
  (void)s;
  MockQueue *q = mock_new(A_QUEUE, sizeof *q);
  if (!q) return NULL;
  q->device = d;
  q->next = metal_mock.queues;
  metal_mock.queues = q;
  return &q->object;
}

static MetalId queue_buffer(MockQueue *q, MetalSelector s) {
  (void)s;
  MockCommandBuffer *b = mock_new(A_COMMAND_BUFFER, sizeof *b);
  if (!b) return NULL;
  mock_hold(q);
  b->queue = q;
  return mock_pooled(b);
}

static bool can_fill(const MockCommandBuffer *b, const char *what) {
  if (b->committed) metal_misused("%s on a command buffer that was committed", what);
  if (b->encoder) metal_misused("%s while an encoder is open", what);
  return !b->committed && !b->encoder;
}

static MetalId encoder_new(MockCommandBuffer *b, MockKind kind) {
  if (!can_fill(b, "an encoder is asked for")) return NULL;
  MockEncoder *e = mock_new(kind, sizeof *e);
  if (!e) return NULL;
  mock_hold(b);
  e->buffer = b;
  b->encoder = e;
  return mock_pooled(e);
}

static MetalId buffer_compute(MockCommandBuffer *b, MetalSelector s) {
  return (void)s, encoder_new(b, AN_ENCODER);
}

static MetalId buffer_blit(MockCommandBuffer *b, MetalSelector s) {
  return (void)s, encoder_new(b, A_BLIT_ENCODER);
}

/* Returns NULL if out of memory; the command buffer then fails. */
static Op *op_new(MockCommandBuffer *b, OpKind kind) {
  Op *op = mem_alloc(&metal_mock.mem, sizeof *op);
  if (!op) {
    b->fails = true;
    return NULL;
  }
  op->kind = kind;
  *(b->last ? &b->last->next : &b->first) = op;
  return b->last = op;
}

static void event_op(MockCommandBuffer *b, MetalId event, uint64_t value, OpKind kind) {
  MockEvent *e = mock_of_kind(event, AN_EVENT, "an event is encoded");
  Op *op = e && can_fill(b, "an event") ? op_new(b, kind) : NULL;
  if (!op) return;
  mock_hold(e);
  op->event = e;
  op->value = value;
}

static void buffer_signal(MockCommandBuffer *b, MetalSelector s, MetalId event, uint64_t value) {
  (void)s;
  event_op(b, event, value, OP_SIGNAL);
}

static void buffer_wait_for(MockCommandBuffer *b, MetalSelector s, MetalId event, uint64_t value) {
  (void)s;
  event_op(b, event, value, OP_WAIT);
}

static void buffer_commit(MockCommandBuffer *b, MetalSelector s) {
  (void)s;
  if (!can_fill(b, "commit")) return;
  b->committed = true;
  b->status = 2;
  mock_hold(b);
  MockQueue *q = b->queue;
  if (q->last)
    q->last->next = b;
  else
    q->first = b;
  q->last = b;
}

static void buffer_wait(MockCommandBuffer *b, MetalSelector s) {
  (void)s;
  if (b->committed)
    run_until(b);
  else
    metal_misused("a command buffer is waited for that was not committed");
}

static MetalUint buffer_status(MockCommandBuffer *b, MetalSelector s) { return (void)s, b->status; }

static MetalId buffer_error(MockCommandBuffer *b, MetalSelector s) {
  (void)s;
  return b->status == METAL_ERROR ? (MetalId)mock_text(AN_ERROR, b->why.msg) : NULL;
}

static double time_of(const MockCommandBuffer *b, double s) {
  if (b->status < METAL_COMPLETED) metal_misused("the time of a command buffer that is not done");
  return s;
}

static double buffer_began(MockCommandBuffer *b, MetalSelector s) { return (void)s, time_of(b, b->began_s); }

static double buffer_ended(MockCommandBuffer *b, MetalSelector s) { return (void)s, time_of(b, b->ended_s); }

/* ---- encoders */
static bool is_open(const MockEncoder *e, const char *what) {
  if (e->ended) metal_misused("%s: an encoder that has ended", what);
  return !e->ended;
}

static void encoder_end(MockEncoder *e, MetalSelector s) {
  (void)s;
  if (!is_open(e, "endEncoding")) return;
  e->ended = true;
  e->buffer->encoder = NULL;
}

static void encoder_pipeline(MockEncoder *e, MetalSelector s, MetalId pipeline) {
  (void)s;
  if (is_open(e, "setComputePipelineState")) set_pipeline(&e->d, pipeline, "setComputePipelineState");
}

static void encoder_buffer(MockEncoder *e, MetalSelector s, MetalId buffer, MetalUint offset,
                           MetalUint index) {
  (void)s;
  if (is_open(e, "setBuffer")) bind_buffer(&e->d, buffer, offset, index, "setBuffer");
}

static void encoder_bytes(MockEncoder *e, MetalSelector s, const void *bytes, MetalUint nbytes,
                          MetalUint index) {
  (void)s;
  if (!is_open(e, "setBytes")) return;
  if (index >= MOST_BINDINGS || !nbytes || nbytes > INLINE_BYTES) {
    metal_misused("setBytes: %lu bytes for buffer %lu", nbytes, index);
    return;
  }
  Binding *b = &e->d.at[index];
  binding_end(b);
  b->bytes = mem_alloc(&metal_mock.mem, nbytes);
  b->nbytes = nbytes;
  if (b->bytes) memcpy(b->bytes, bytes, nbytes);
}

static void encoder_use(MockEncoder *e, MetalSelector s, const MetalId *objects, MetalUint n,
                        MetalUint usage) {
  (void)s;
  if (!is_open(e, "useResources")) return;
  if (!n || usage != METAL_READ_WRITE) metal_misused("useResources: %lu of them, usage %lu", n, usage);
  for (MetalUint i = 0; i < n; i++) {
    MockBuffer *b = mock_of_kind(objects[i], A_BUFFER, "useResources");
    if (b && vec_push(&metal_mock.mem, &e->used, b)) mock_hold(b);
  }
}

/* Copies the list of the buffers that were named so far to the op, which holds them. */
static bool used_copied(const MockEncoder *e, Op *op) {
  if (!e->used.len) return true;
  op->used = mem_alloc(&metal_mock.mem, e->used.len * sizeof *op->used);
  if (!op->used) return false;
  op->nused = e->used.len;
  for (size_t i = 0; i < op->nused; i++)
    mock_hold(op->used[i] = e->used.at[i]);
  return true;
}

static void encoder_dispatch(MockEncoder *e, MetalSelector s, MetalSize grid, MetalSize block) {
  (void)s;
  if (!is_open(e, "dispatchThreadgroups")) return;
  if (!e->d.pipeline) metal_misused("dispatchThreadgroups without a pipeline");
  if (e->d.pipeline && vec_push(&metal_mock.mem, &e->resident, e->d.pipeline)) mock_hold(e->d.pipeline);
  if (!grid.width && !grid.height && !grid.depth) return;
  Op *op = op_new(e->buffer, OP_DISPATCH);
  if (!op || !used_copied(e, op) || !dispatch_copied(&op->dispatch, &e->d)) return;
  op->dispatch.grid = grid;
  op->dispatch.block = block;
}

/* These GPUs are older than Apple's family 9, so a command's pipeline must have been set in the encoder. */
static bool are_resident(const MockEncoder *e, const MockIndirect *in, MetalRange range) {
  for (MetalUint i = range.at; i < range.at + range.length; i++) {
    bool is = !in->command[i].d.pipeline; /* this is another error */
    for (size_t k = 0; k < e->resident.len && !is; k++)
      is = e->resident.at[k] == in->command[i].d.pipeline;
    if (!is) return false;
  }
  return true;
}

static void encoder_execute(MockEncoder *e, MetalSelector s, MetalId commands, MetalRange range) {
  MockIndirect *in = mock_of_kind(commands, AN_INDIRECT, "executeCommandsInBuffer");
  (void)s;
  if (!is_open(e, "executeCommandsInBuffer") || !in) return;
  if (range.at > in->n || range.length > in->n - range.at) {
    metal_misused("executeCommandsInBuffer: more commands than there are");
    return;
  }
  if (!are_resident(e, in, range))
    metal_misused("executeCommandsInBuffer: a command whose pipeline the encoder was not given");
  Op *op = op_new(e->buffer, OP_EXECUTE);
  if (!op || !used_copied(e, op)) return;
  mock_hold(in);
  in->in_flight++;
  op->indirect = in;
  op->range = range;
}

enum { BLIT_WORD = 4 }; /* bytes that a blit moves at once */

static bool blit_fits(const MockBuffer *b, size_t offset, size_t nbytes, const char *what) {
  if (b && b->of && strcmp(what, "copyFromBuffer")) {
    metal_misused("%s: memory of another GPU", what);
    return false;
  }
  if (b && nbytes && offset <= b->nbytes && nbytes <= b->nbytes - offset &&
      (offset | nbytes) % BLIT_WORD == 0)
    return true;
  metal_misused("%s: %zu bytes at %zu of %zu", what, nbytes, offset, b ? b->nbytes : 0);
  return false;
}

static void blit_copy(MockEncoder *e, MetalSelector s, MetalId from, MetalUint from_offset, MetalId to,
                      MetalUint to_offset, MetalUint nbytes) {
  MockBuffer *source = mock_of_kind(from, A_BUFFER, "copyFromBuffer");
  MockBuffer *target = mock_of_kind(to, A_BUFFER, "copyFromBuffer");
  (void)s;
  if (!is_open(e, "copyFromBuffer") || !blit_fits(source, from_offset, nbytes, "copyFromBuffer") ||
      !blit_fits(target, to_offset, nbytes, "toBuffer"))
    return;
  Op *op = op_new(e->buffer, OP_COPY);
  if (!op) return;
  mock_hold(source), mock_hold(target);
  op->from = source;
  op->from_offset = from_offset;
  op->to = target;
  op->to_offset = to_offset;
  op->nbytes = nbytes;
}

static void blit_fill(MockEncoder *e, MetalSelector s, MetalId to, MetalRange range, uint8_t byte) {
  MockBuffer *target = mock_of_kind(to, A_BUFFER, "fillBuffer");
  (void)s;
  if (!is_open(e, "fillBuffer") || !blit_fits(target, range.at, range.length, "fillBuffer")) return;
  Op *op = op_new(e->buffer, OP_FILL);
  if (!op) return;
  mock_hold(target);
  op->to = target;
  op->to_offset = range.at;
  op->nbytes = range.length;
  op->byte = byte;
}

/* ---- indirect command buffers */
static void indirect_types(MockIndirectDescriptor *d, MetalSelector s, MetalUint types) {
  (void)s;
  d->types = types;
}

static void indirect_buffers(MockIndirectDescriptor *d, MetalSelector s, MetalBool on) {
  (void)s;
  d->inherit_buffers = on;
}

static void indirect_pipeline(MockIndirectDescriptor *d, MetalSelector s, MetalBool on) {
  (void)s;
  d->inherit_pipeline = on;
}

static void indirect_most(MockIndirectDescriptor *d, MetalSelector s, MetalUint n) {
  (void)s;
  d->most_buffers = n;
}

enum { MOST_COMMANDS = 16384 };

static MetalId device_indirect(MockDevice *device, MetalSelector s, MetalId descriptor, MetalUint n,
                               MetalUint options) {
  MockIndirectDescriptor *d = mock_of_kind(descriptor, AN_INDIRECT_DESCRIPTOR, "newIndirectCommandBuffer");
  (void)s;
  bool fine = d && d->types == METAL_CONCURRENT_DISPATCH && !d->inherit_buffers && !d->inherit_pipeline &&
              d->most_buffers && d->most_buffers <= MOST_BINDINGS && n <= MOST_COMMANDS &&
              options == METAL_SHARED;
  if (!fine) {
    metal_misused("newIndirectCommandBuffer: %lu commands, as nobody asks for them", n);
    return NULL;
  }
  MockIndirect *in = mock_new(AN_INDIRECT, sizeof *in);
  metal_mock.counts.indirects += in != NULL;
  if (in) in->command = mem_alloc(&metal_mock.mem, (n + 1) * sizeof *in->command);
  if (in && !in->command) {
    mock_let_go(in);
    in = NULL;
  }
  if (!in) return NULL;
  in->device = device;
  in->n = n;
  in->most_buffers = d->most_buffers;
  for (MetalUint i = 0; i < n; i++) {
    in->command[i].object = (Object){.magic = in->object.magic, .kind = A_COMMAND, .refs = 1};
    in->command[i].of = in;
  }
  return &in->object;
}

static MetalId indirect_command(MockIndirect *in, MetalSelector s, MetalUint i) {
  (void)s;
  if (i < in->n) return &in->command[i].object;
  metal_misused("indirectComputeCommandAtIndex: %lu of %lu", i, in->n);
  return NULL;
}

static bool can_write(const MockCommand *c, const char *what) {
  if (c->of->in_flight) metal_misused("%s: a command that is to run", what);
  return !c->of->in_flight;
}

static void command_reset(MockCommand *c, MetalSelector s) {
  (void)s;
  if (!can_write(c, "reset")) return;
  metal_mock.counts.commands_written++;
  dispatch_end(&c->d);
  c->d = (Dispatch){0};
}

static void command_pipeline(MockCommand *c, MetalSelector s, MetalId pipeline) {
  (void)s;
  if (!can_write(c, "setComputePipelineState")) return;
  set_pipeline(&c->d, pipeline, "setComputePipelineState");
  if (c->d.pipeline && !c->d.pipeline->indirect)
    metal_misused("a command with a pipeline that does not support indirect command buffers");
}

static void command_buffer(MockCommand *c, MetalSelector s, MetalId buffer, MetalUint offset,
                           MetalUint index) {
  (void)s;
  if (index >= c->of->most_buffers)
    metal_misused("setKernelBuffer: number %lu of %lu", index, c->of->most_buffers);
  if (can_write(c, "setKernelBuffer")) bind_buffer(&c->d, buffer, offset, index, "setKernelBuffer");
}

static void command_dispatch(MockCommand *c, MetalSelector s, MetalSize grid, MetalSize block) {
  (void)s;
  if (can_write(c, "concurrentDispatchThreadgroups")) {
    c->d.grid = grid;
    c->d.block = block;
  }
}

static void command_barrier(MockCommand *c, MetalSelector s) {
  (void)s;
  if (can_write(c, "setBarrier")) c->d.barrier = true;
}

/* ---- ends */
static void queue_end(MockQueue *q) {
  MockQueue **at = &metal_mock.queues;
  while (*at && *at != q)
    at = &(*at)->next;
  if (*at) *at = q->next;
}

static void encoder_gone(MockEncoder *e) {
  if (!e->ended) {
    metal_misused("an encoder goes without endEncoding");
    e->buffer->encoder = NULL;
  }
  dispatch_end(&e->d);
  for (size_t i = 0; i < e->used.len; i++)
    mock_let_go(e->used.at[i]);
  vec_free(&metal_mock.mem, &e->used);
  for (size_t i = 0; i < e->resident.len; i++)
    mock_let_go(e->resident.at[i]);
  vec_free(&metal_mock.mem, &e->resident);
  mock_let_go(e->buffer);
}

static void indirect_gone(MockIndirect *in) {
  metal_mock.counts.indirects--;
  for (MetalUint i = 0; i < in->n && in->command; i++)
    dispatch_end(&in->command[i].d);
  mem_free(&metal_mock.mem, in->command);
  in->command = NULL;
}

void mock_object_end(Object *o) {
  switch (o->kind) {
  case A_QUEUE: queue_end((MockQueue *)o); break;
  case A_COMMAND_BUFFER:
    ops_end((MockCommandBuffer *)o);
    mock_let_go(((MockCommandBuffer *)o)->queue);
    break;
  case AN_ENCODER:
  case A_BLIT_ENCODER: encoder_gone((MockEncoder *)o); break;
  case AN_INDIRECT: indirect_gone((MockIndirect *)o); break;
  default: break;
  }
}

MockCommandBuffer *mock_buffer_of(Object *o) {
  if (o->kind == A_COMMAND_BUFFER) return (MockCommandBuffer *)o;
  return o->kind == AN_ENCODER || o->kind == A_BLIT_ENCODER ? ((MockEncoder *)o)->buffer : NULL;
}

/* ---- methods */
#define METHOD(kind, message, types, fn)                                                                     \
  { kind, METAL_##message, types, (void (*)(void))(fn) }
#define SIZE  "{QQQ}"
#define RANGE "{QQ}"

const Method mock_queue_methods[] = {
    METHOD(A_DEVICE, new_queue, "@@:", device_queue),
    METHOD(A_QUEUE, command_buffer, "@@:", queue_buffer),
    METHOD(A_COMMAND_BUFFER, compute_encoder, "@@:", buffer_compute),
    METHOD(A_COMMAND_BUFFER, blit_encoder, "@@:", buffer_blit),
    METHOD(A_COMMAND_BUFFER, signal, "v@:@Q", buffer_signal),
    METHOD(A_COMMAND_BUFFER, wait_for, "v@:@Q", buffer_wait_for),
    METHOD(A_COMMAND_BUFFER, send_off, "v@:", buffer_commit),
    METHOD(A_COMMAND_BUFFER, wait, "v@:", buffer_wait),
    METHOD(A_COMMAND_BUFFER, status, "Q@:", buffer_status),
    METHOD(A_COMMAND_BUFFER, error, "@@:", buffer_error),
    METHOD(A_COMMAND_BUFFER, began_s, "d@:", buffer_began),
    METHOD(A_COMMAND_BUFFER, ended_s, "d@:", buffer_ended),
    METHOD(AN_ENCODER, end_encoding, "v@:", encoder_end),
    METHOD(A_BLIT_ENCODER, end_encoding, "v@:", encoder_end),
    METHOD(AN_ENCODER, set_pipeline, "v@:@", encoder_pipeline),
    METHOD(AN_ENCODER, set_buffer, "v@:@QQ", encoder_buffer),
    METHOD(AN_ENCODER, set_bytes, "v@:^vQQ", encoder_bytes),
    METHOD(AN_ENCODER, use, "v@:^@QQ", encoder_use),
    METHOD(AN_ENCODER, dispatch, "v@:" SIZE SIZE, encoder_dispatch),
    METHOD(AN_ENCODER, execute, "v@:@" RANGE, encoder_execute),
    METHOD(A_BLIT_ENCODER, copy, "v@:@Q@QQ", blit_copy),
    METHOD(A_BLIT_ENCODER, fill, "v@:@" RANGE "C", blit_fill),
    METHOD(AN_INDIRECT_DESCRIPTOR, set_command_types, "v@:Q", indirect_types),
    METHOD(AN_INDIRECT_DESCRIPTOR, set_inherit_buffers, "v@:c", indirect_buffers),
    METHOD(AN_INDIRECT_DESCRIPTOR, set_inherit_pipeline, "v@:c", indirect_pipeline),
    METHOD(AN_INDIRECT_DESCRIPTOR, set_most_buffers, "v@:Q", indirect_most),
    METHOD(A_DEVICE, new_indirect, "@@:@QQ", device_indirect),
    METHOD(AN_INDIRECT, command, "@@:Q", indirect_command),
    METHOD(A_COMMAND, reset, "v@:", command_reset),
    METHOD(A_COMMAND, set_pipeline, "v@:@", command_pipeline),
    METHOD(A_COMMAND, set_kernel_buffer, "v@:@QQ", command_buffer),
    METHOD(A_COMMAND, command_dispatch, "v@:" SIZE SIZE, command_dispatch),
    METHOD(A_COMMAND, set_barrier, "v@:", command_barrier)};

const size_t mock_queue_nmethod = TG_COUNT(mock_queue_methods);
