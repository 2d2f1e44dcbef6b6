/* metal_queue.c: command buffers of a METAL device. In: what is given, as messages to an encoder. Out:
 * command buffers in the order of one queue, which runs them so: two that touch the same memory never
 * overlap, as Metal tracks it. Nobody waits but who reads; what went wrong in one is told by the call that
 * notices. */
#include "runtime/metal.h"
#include <string.h>

enum { MOST_ENCODED = 64 }; /* things in a command buffer: the GPU begins while more are given */

struct Event {
  Given *given; /* the last before it */
};

TgStatus metal_oom(Device *d) { return error_set(d->err, TG_ERR_NOMEM, "%s: out of memory", d->name); }

static const char *words_of(const MetalApi *m, MetalId error) {
  const char *text = error ? metal_text(m, metal_description(m, error)) : NULL;
  return text ? text : "it says no more";
}

TgStatus metal_failed(Device *d, const char *what, MetalId error) {
  const Metal *p = d->priv;
  return error_set(d->err, TG_ERR_DEVICE, "%s: %s: %.300s", d->name, what, words_of(&p->api, error));
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
    return metal_failed(d, "the queue gives no command buffer", NULL);
  }
  *g = (Given){.owner = p, .buffer = metal_retain(&p->api, buffer), .serial = ++p->serial, .refs = 1};
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
    metal_failed(d, "the command buffer gives no encoder", NULL);
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

/* The shared event reaches its serial, for devices that wait. */
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
/* The first of those under way has ended. */
static void first_done(Device *d) {
  Metal *p = d->priv;
  const MetalApi *m = &p->api;
  Given *g = p->first;
  double began = metal_began_s(m, g->buffer), ended = metal_ended_s(m, g->buffer);
  if (metal_status(m, g->buffer) == METAL_ERROR)
    error_set(&p->why, TG_ERR_DEVICE, "%.300s (kernel %s, or one before it)",
              words_of(m, metal_error(m, g->buffer)), *p->last_kernel ? p->last_kernel : "none");
  if (ended > began) p->busy_s += ended - began;
  g->busy_s = p->busy_s;
  metal_release(m, g->buffer);
  g->buffer = NULL;
  if (!(p->first = g->next)) p->last = NULL;
  p->done = p->memory.blocks.done = g->serial;
  given_unref(d, g);
}

void metal_look(Device *d) {
  Metal *p = d->priv;
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
  return metal_unpool(d, pool, metal_reach(d, ((Metal *)d->priv)->serial));
}

void metal_queue_end(Device *d) {
  Metal *p = d->priv;
  metal_commit(d);
  waited(d, p->serial);
}

/* ---- events */
static TgStatus recorded(Device *d, Event **e) {
  Metal *p = d->priv;
  TgStatus st = metal_commit(d);
  if (st) return st;
  Given *g = p->last;
  if (g)
    g->refs++;
  else if (!(g = mem_alloc(d->mem, sizeof *g))) /* all is done */
    return metal_oom(d);
  else
    *g = (Given){.owner = p, .serial = p->done, .busy_s = p->busy_s, .refs = 1};
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
  if (!st) metal_wait_for(&p->api, p->now->buffer, g->owner->event, g->serial);
  return st;
}

/* Its own queue has an order already. */
TgStatus metal_event_wait(Device *d, Event *e) {
  void *pool = metal_pool(d);
  const Given *g = e->given;
  bool other = g->owner != d->priv && g->buffer;
  return metal_unpool(d, pool, other ? made_to_wait(d, g) : TG_OK);
}

/* How long the GPU worked between them: what it waited for is not counted. */
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
