/* loader.c: batches ahead of time. One thread fills a ring of batches in the order of the epoch; the trainer
 * takes them out in that order. The thread touches host memory only, never a context. */
#include "train.h"
#include <pthread.h>
#include <stdlib.h>

enum { RING = 4 };

struct Loader {
  int batch;
  size_t x_size, y_size;
  LoaderFill fill;
  const void *user;
  const uint32_t *order, *random;
  int64_t batches, made, taken; /* of this epoch */
  unsigned char *x[RING], *y[RING];
  bool held, end, running; /* held: the batch before made + 1 is in use */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

/* A batch may be filled while at most RING - 1 others wait or are in use. */
static void *produce(void *arg) {
  Loader *l = arg;
  pthread_mutex_lock(&l->lock);
  while (!l->end) {
    if (l->made >= l->batches || l->made - l->taken + l->held >= RING) {
      pthread_cond_wait(&l->changed, &l->lock);
      continue;
    }
    int64_t at = l->made, slot = at % RING;
    pthread_mutex_unlock(&l->lock);
    for (int k = 0; k < l->batch; k++) {
      int64_t i = at * l->batch + k;
      l->fill(l->user, l->order[i], l->random[i], l->x[slot] + (size_t)k * l->x_size,
              l->y[slot] + (size_t)k * l->y_size);
    }
    pthread_mutex_lock(&l->lock);
    l->made++;
    pthread_cond_broadcast(&l->changed);
  }
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

Loader *loader_new(int batch, size_t x_size, size_t y_size, LoaderFill fill, const void *user) {
  Loader *l = calloc(1, sizeof *l);
  if (!l) return NULL;
  *l = (Loader){.batch = batch, .x_size = x_size, .y_size = y_size, .fill = fill, .user = user};
  pthread_mutex_init(&l->lock, NULL), pthread_cond_init(&l->changed, NULL);
  bool ok = true;
  for (int i = 0; i < RING; i++) {
    l->x[i] = calloc((size_t)batch, x_size), l->y[i] = calloc((size_t)batch, y_size);
    ok = ok && l->x[i] && l->y[i];
  }
  l->running = ok && !pthread_create(&l->thread, NULL, produce, l);
  if (l->running) return l;
  loader_free(l);
  return NULL;
}

void loader_begin(Loader *l, const uint32_t *order, const uint32_t *random, int64_t n, int64_t first) {
  pthread_mutex_lock(&l->lock);
  l->order = order, l->random = random;
  l->batches = n / l->batch;
  l->made = l->taken = first;
  l->held = false;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
}

bool loader_next(Loader *l, const void **x, const void **y) {
  pthread_mutex_lock(&l->lock);
  l->held = false;
  bool more = l->taken < l->batches;
  if (more) pthread_cond_broadcast(&l->changed);
  while (more && l->made <= l->taken)
    pthread_cond_wait(&l->changed, &l->lock);
  *x = l->x[l->taken % RING], *y = l->y[l->taken % RING];
  if (more) l->taken++, l->held = true;
  pthread_mutex_unlock(&l->lock);
  return more;
}

void loader_free(Loader *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  l->end = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  if (l->running) pthread_join(l->thread, NULL);
  for (int i = 0; i < RING; i++)
    free(l->x[i]), free(l->y[i]);
  pthread_mutex_destroy(&l->lock), pthread_cond_destroy(&l->changed);
  free(l);
}
