/* metal_queue.c: command buffers of a METAL device. In: work, as messages to an encoder. Out: command buffers
 * in one queue, which runs them in order. Two that access the same memory never overlap, because Metal tracks
 * this. Copies from other GPUs have a second queue, which events order. Only a call that reads waits; an
 * error in a command buffer is reported by the call that notices it. */
#include "runtime/metal.h"

/* things in a command buffer; it is not more, so that the GPU begins while more work is given */
enum { MOST_ENCODED = 64 };

struct Event {
  Given *given; /* the last command buffer before the event */
};

TgStatus metal_oom(Device *d) { return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name); }

static const char *words_of(const MetalApi *m, MetalId error) {
  const char *text = error ? metal_text(m, metal_description(m, error)) : NULL;
  return text ? text : "it says no more";
}

TgStatus metal_failed(Device *d, const char *what) {
  return error_set(d->err, TG_ERR_DEVICE, "%s: %s: it says no more", d->name, what);
}

static void given_unref(Device *d, Given *g) {
  Metal *p = d->priv;
  if (!g || --g->refs) return;
  if (g->buffer) metal_release(&p->api, g->buffer);
  mem_free(d->mem, g);
}

/* ---- filling */
static void encoder_ended(Metal *p) {
  if (!p->encoder) return;
  metal_end_encoding(&p->api, p->encoder);
  metal_release(&p->api, p->encoder);
  p->encoder = NULL;
  p->kind = NO_ENCODER;
}

static TgStatus buffer_begun(Device *d) {
  Metal *p = d->priv;
  if (p->now) return TG_OK;
  Given *g = mem_alloc(d->mem, sizeof *g);
  if (!g) return metal_oom(d);
  MetalId buffer = metal_command_buffer(&p->api, p->queue);
  if (!buffer) {
    mem_free(d->mem, g);
    return metal_failed(d, "the queue gives no command buffer");
  }
  *g = (Given){.owner = p,
               .buffer = metal_retain(&p->api, buffer),
               .serial = ++p->serial,
               .refs = 1,
               .event = p->event};
  p->now = g;
  p->nencoded = 0;
  p->memory.blocks.given = p->serial;
  return TG_OK;
}

MetalId metal_encoder(Device *d, EncoderKind kind) {
  Metal *p = d->priv;
  if (p->encoder && p->kind == kind) return p->encoder;
  if (buffer_begun(d)) return NULL;
  encoder_ended(p);
  MetalId e = kind == BLIT ? metal_blit_encoder(&p->api, p->now->buffer)
                           : metal_compute_encoder(&p->api, p->now->buffer);
  if (!e) {
    metal_failed(d, "the command buffer gives no encoder");
    return NULL;
  }
  p->encoder = metal_retain(&p->api, e);
  p->kind = kind;
  return p->encoder;
}

TgStatus metal_encoded(Device *d) {
  Metal *p = d->priv;
  if (++p->nencoded < MOST_ENCODED) return TG_OK;
  TgStatus st = metal_commit(d);
  metal_look(d);
  return st;
}

/* When the command buffer ends, the shared event reaches its serial; other devices wait for that. */
TgStatus metal_commit(Device *d) {
  Metal *p = d->priv;
  Given *g = p->now;
  if (!g) return TG_OK;
  encoder_ended(p);
  metal_signal(&p->api, g->buffer, p->event, g->serial);
  metal_send_off(&p->api, g->buffer);
  *(p->last ? &p->last->next : &p->first) = g;
  p->last = g;
  p->now = NULL;
  return TG_OK;
}

/* ---- what is done */
/* Releases a command buffer that has ended. If something went wrong in it, the error is kept until it is
 * reported. */
static void ended_well(Metal *p, Given *g) {
  const MetalApi *m = &p->api;
  if (metal_status(m, g->buffer) == METAL_ERROR)
    error_set(&p->why, TG_ERR_DEVICE, "%.300s (kernel %s, or one before it)",
              words_of(m, metal_error(m, g->buffer)), *p->last_kernel ? p->last_kernel : "none");
  metal_release(m, g->buffer);
  g->buffer = NULL;
}

/* Called when the first command buffer under way has ended. */
static void first_done(Device *d) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  Given *g = p->first;
  double began = metal_began_s(m, g->buffer), ended = metal_ended_s(m, g->buffer);
  if (ended > began) p->busy_s += ended - began;
  g->busy_s = p->busy_s;
  ended_well(p, g);
  if (!(p->first = g->next)) p->last = NULL;
  p->done = p->memory.blocks.done = g->serial;
  given_unref(d, g);
}

/* Removes the copies that have ended. all: waits for all copies, because the queue ends. */
static void copies_done(Device *d, bool all) {
  Metal *p = d->priv;
  for (Given **at = &p->beside, *g; (g = *at) != NULL;) {
    if (all) metal_wait(&p->api, g->buffer);
    if (metal_status(&p->api, g->buffer) < METAL_COMPLETED) {
      at = &g->next;
      continue;
    }
    *at = g->next;
    ended_well(p, g);
    given_unref(d, g);
  }
}

void metal_look(Device *d) {
  Metal *p = d->priv;
  copies_done(d, false);
  while (p->first && metal_status(&p->api, p->first->buffer) >= METAL_COMPLETED)
    first_done(d);
}

TgStatus metal_told(Device *d, const char *what) {
  Metal *p = d->priv;
  if (!p->why.status) return TG_OK;
  TgStatus st = error_set(d->err, p->why.status, "%s: %s: %s", d->name, what, p->why.msg);
  p->why = (TgError){0};
  return st;
}

static void waited(Device *d, uint64_t serial) {
  Metal *p = d->priv;
  while (p->first && p->done < serial) {
    metal_wait(&p->api, p->first->buffer);
    first_done(d);
  }
}

TgStatus metal_reach(Device *d, uint64_t serial) {
  Metal *p = d->priv;
  TgStatus st = p->now && p->now->serial <= serial ? metal_commit(d) : TG_OK;
  waited(d, serial);
  return st ? st : metal_told(d, "what it was given failed");
}

TgStatus metal_sync(Device *d) {
  void *pool = metal_pool(d);
  copies_done(d, true);
  return metal_unpool(d, pool, metal_reach(d, ((Metal *)d->priv)->serial));
}

void metal_queue_end(Device *d) {
  Metal *p = d->priv;
  metal_commit(d);
  waited(d, p->serial);
  copies_done(d, true);
}

/* ---- events */
static TgStatus recorded(Device *d, Event **e) {
  Metal *p = d->priv;
  TgStatus st = metal_commit(d);
  if (st) return st;
  Given *g = p->last;
  if (g)
    g->refs++;
  else if (!(g = mem_alloc(d->mem, sizeof *g))) /* everything is done */
    return metal_oom(d);
  else
    *g = (Given){.owner = p, .serial = p->done, .busy_s = p->busy_s, .refs = 1, .event = p->event};
  if (!*e && !(*e = mem_alloc(d->mem, sizeof **e))) {
    given_unref(d, g);
    return metal_oom(d);
  }
  given_unref(d, (*e)->given);
  (*e)->given = g;
  return TG_OK;
}

TgStatus metal_event_record(Device *d, Event **e) {
  void *pool = metal_pool(d);
  return metal_unpool(d, pool, recorded(d, e));
}

TgStatus metal_event_reach(Device *d, Event *e) {
  Metal *p = d->priv;
  void *pool = metal_pool(d);
  TgStatus st = TG_OK;
  if (e->given->owner == p)
    st = metal_reach(d, e->given->serial);
  else if (e->given->buffer)
    metal_wait(&p->api, e->given->buffer);
  return metal_unpool(d, pool, st);
}

static TgStatus made_to_wait(Device *d, const Given *g) {
  Metal *p = d->priv;
  TgStatus st = metal_commit(d);
  if (!st) st = buffer_begun(d);
  if (!st) metal_wait_for(&p->api, p->now->buffer, g->event, g->serial);
  return st;
}

/* An event of the device's own queue needs no wait, because the queue runs in order. */
TgStatus metal_event_wait(Device *d, Event *e) {
  void *pool = metal_pool(d);
  const Given *g = e->given;
  bool other = g->owner != d->priv && g->buffer;
  return metal_unpool(d, pool, other ? made_to_wait(d, g) : TG_OK);
}

/* Returns how long the GPU worked between two events. Time that it spent waiting is not counted. */
double metal_event_us(Device *d, Event *from, Event *to) {
  (void)d;
  return (to->given->busy_s - from->given->busy_s) * 1e6;
}

void metal_event_free(Device *d, Event *e) {
  if (!e) return;
  void *pool = metal_pool(d);
  given_unref(d, e->given);
  metal_unpool(d, pool, TG_OK);
  mem_free(d->mem, e);
}

/* ---- copies beside launches, between GPUs that can read each other's memory; the receiver copies */
bool metal_reads_peer(Device *d, Device *from) {
  const Metal *to = d->priv, *p = from->priv;
  uint64_t group = metal_peer_group(&to->api, to->device);
  return group && group == metal_peer_group(&p->api, p->device);
}

static TgStatus copies_begun(Device *d) {
  Metal *p = d->priv;
  if (!p->copies) p->copies = metal_new_queue(&p->api, p->device);
  if (!p->copied) p->copied = metal_new_event(&p->api, p->device);
  return p->copies && p->copied ? TG_OK : metal_failed(d, "the GPU gives no queue of copies");
}

/* Puts a copy into a command buffer of its own, which waits for both events and then reaches the event of the
 * queue of copies. */
static TgStatus copy_given(Device *d, Place to, MetalId view, size_t offset, size_t nbytes,
                           Event *const after[2], Event *done) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  Given *g = mem_alloc(d->mem, sizeof *g);
  MetalId buffer = g ? metal_command_buffer(m, p->copies) : NULL;
  for (int i = 0; buffer && i < 2; i++)
    if (after[i]->given->buffer) metal_wait_for(m, buffer, after[i]->given->event, after[i]->given->serial);
  MetalId e = buffer ? metal_blit_encoder(m, buffer) : NULL;
  if (!e) {
    mem_free(d->mem, g);
    return g ? metal_failed(d, "the queue of copies gives no command buffer") : metal_oom(d);
  }
  metal_copy(m, e, view, offset, to.object, to.offset, nbytes);
  metal_end_encoding(m, e);
  *g = (Given){.buffer = metal_retain(m, buffer), .event = p->copied, .serial = ++p->ncopied, .refs = 2};
  metal_signal(m, buffer, g->event, g->serial);
  metal_send_off(m, buffer);
  g->next = p->beside;
  p->beside = done->given = g;
  return TG_OK;
}

TgStatus metal_copy_beside(Device *d, const void *src, Device *to, void *dst, size_t nbytes,
                           Event *const after[2], Event **done) {
  Metal *p = d->priv, *q = to->priv;
  void *pool = metal_pool(to);
  Place from, at;
  MetalId view = NULL;
  TgStatus st = metal_place(d, src, &from);
  if (!st) st = metal_place(to, dst, &at);
  if (!st) st = copies_begun(to);
  if (!st && !(*done = mem_alloc(d->mem, sizeof **done))) st = metal_oom(d);
  if (!st && !(view = metal_new_view(&p->api, from.object, q->device)))
    st = metal_failed(d, "another GPU sees no buffer of it");
  if (!st) st = copy_given(to, at, view, from.offset, nbytes, after, *done);
  if (view) metal_release(&q->api, view);
  if (st && *done) mem_free(d->mem, *done), *done = NULL;
  return metal_unpool(to, pool, st);
}
