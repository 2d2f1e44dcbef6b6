/* loader.c: batches of a dataset, made in advance. In: a dataset (a count and a function that writes one
 * item). Out: the tensors of each batch, epoch after epoch. Each thread takes the number of the next batch
 * and writes that batch into a ring of slots; batches are taken from the ring in order. Threads use only
 * host memory, never a context. Which items a batch has, and each item's random bits, depend only on seed
 * and epoch. */
#include "io_private.h"
#include <pthread.h>
#include <signal.h>

typedef struct Slot {
  void *at[TG_ITEM_TENSORS];
  bool ready;
  TgStatus status; /* of its items: that of the first item that failed */
  int64_t failed;
} Slot;

struct TgLoader {
  TgContext *ctx;
  TgDataset data;
  int64_t nelem[TG_ITEM_TENSORS];
  size_t nbytes[TG_ITEM_TENSORS]; /* of an item */
  int64_t batch, batches, nslot;
  int64_t part, parts; /* only part `part` of `parts` equal parts of each batch is made */
  bool shuffle;
  uint64_t seed;
  int64_t *order;                   /* order of the items in this epoch; NULL: unchanged */
  TgTensor *given[TG_ITEM_TENSORS]; /* returned by the last call */
  pthread_mutex_t lock;             /* guards everything below */
  pthread_cond_t work, done;        /* there may be a batch to make; a batch was made */
  /* at: batches that were returned; claimed: batches that are being made or are made */
  int64_t epoch, at, claimed;
  int filling; /* number of threads that are writing a slot */
  bool stop;
  Slot *slot;
  pthread_t *thread;
  int nthread;
};

/* ---- random bits: each word is a hash of what it is used for (splitmix64's finisher) */
static uint64_t mixed(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

uint64_t io_random(uint64_t *state) { return mixed(*state += 0x9e3779b97f4a7c15u); }

static uint64_t random_of(uint64_t seed, int64_t epoch, int64_t item) {
  return mixed(mixed(mixed(seed + 0x9e3779b97f4a7c15u) + (uint64_t)epoch) + (uint64_t)item);
}

static void order_draw(TgLoader *l) {
  uint64_t state = random_of(l->seed, l->epoch, -1);
  if (!l->order) return;
  for (int64_t i = 0; i < l->data.count; i++)
    l->order[i] = i;
  for (int64_t i = l->data.count - 1; i > 0; i--) {
    int64_t k = (int64_t)(io_random(&state) % (uint64_t)(i + 1)), item = l->order[i];
    l->order[i] = l->order[k];
    l->order[k] = item;
  }
}

/* ---- making a batch */
static int64_t batch_count(const TgLoader *l, int64_t b) { /* the last batch of an epoch may be smaller */
  int64_t left = l->data.count - b * l->batch;
  return left < l->batch ? left : l->batch;
}

/* Where a part begins, if n items are split as tg_shard does. */
static int64_t part_begins(const TgLoader *l, int64_t n, int64_t part) {
  int64_t more = n % l->parts;
  return part * (n / l->parts) + (part < more ? part : more);
}

static void slot_fill(const TgLoader *l, Slot *s, int64_t b) {
  int64_t n = batch_count(l, b);
  s->status = TG_OK;
  for (int64_t k = part_begins(l, n, l->part); k < part_begins(l, n, l->part + 1) && !s->status; k++) {
    int64_t item = b * l->batch + k;
    void *out[TG_ITEM_TENSORS] = {NULL};
    if (l->order) item = l->order[item];
    for (int i = 0; i < l->data.ntensor; i++)
      out[i] = (char *)s->at[i] + (size_t)k * l->nbytes[i];
    s->status = l->data.item(l->data.user, item, random_of(l->seed, l->epoch, item), out);
    s->failed = item;
  }
}

/* The caller holds the lock. Returns false if there is nothing to make now. */
static bool make_one(TgLoader *l) {
  if (l->claimed >= l->batches || l->claimed - l->at >= l->nslot) return false;
  int64_t b = l->claimed++;
  Slot *s = &l->slot[b % l->nslot];
  l->filling++;
  pthread_mutex_unlock(&l->lock);
  slot_fill(l, s, b);
  pthread_mutex_lock(&l->lock);
  s->ready = true;
  l->filling--;
  pthread_cond_broadcast(&l->done);
  return true;
}

static void *worker(void *arg) {
  TgLoader *l = arg;
  pthread_mutex_lock(&l->lock);
  while (!l->stop)
    if (!make_one(l)) pthread_cond_wait(&l->work, &l->lock);
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

/* ---- setting up */
static bool dataset_measured(TgLoader *l, TgContext *ctx, const TgDataset *d, int64_t batch) {
  if (tg_error(ctx)) return false;
  if (!d || d->size != sizeof *d || !d->item || d->count < 0)
    return ctx_fail(ctx, TG_ERR_VALUE, "loader: a dataset without %s",
                    !d || d->size != sizeof *d ? ".size = sizeof(TgDataset)"
                    : d->item                  ? "items"
                                               : "a function");
  if (d->ntensor < 1 || d->ntensor > TG_ITEM_TENSORS)
    return ctx_fail(ctx, TG_ERR_VALUE, "loader: items of %d tensors, not 1 to %d", d->ntensor,
                    TG_ITEM_TENSORS);
  for (int i = 0; i < d->ntensor; i++) {
    const TgItemTensor *t = &d->tensor[i];
    bool fits = t->ndim >= 0 && t->ndim < TG_MAX_RANK && tg_dtype_size(t->dtype);
    size_t all = 0;
    l->nelem[i] = 1;
    for (int k = 0; fits && k < t->ndim; k++)
      fits = t->dims[k] >= 0 && !__builtin_mul_overflow(l->nelem[i], t->dims[k], &l->nelem[i]);
    fits = fits && !__builtin_mul_overflow((size_t)l->nelem[i], tg_dtype_size(t->dtype), &l->nbytes[i]) &&
           !__builtin_mul_overflow(l->nbytes[i], (size_t)batch, &all) && all < INT64_MAX / 2;
    if (!fits)
      return ctx_fail(ctx, TG_ERR_SHAPE, "loader: tensor %d of an item, in batches of %lld, is no shape", i,
                      (long long)batch);
  }
  l->data = *d;
  return true;
}

static bool slots_new(TgLoader *l) {
  l->slot = tg_alloc(l->ctx, (size_t)l->nslot * sizeof *l->slot);
  for (int64_t s = 0; l->slot && s < l->nslot; s++)
    for (int i = 0; i < l->data.ntensor; i++)
      if (!(l->slot[s].at[i] = tg_alloc(l->ctx, l->nbytes[i] * (size_t)l->batch + 1))) return false;
  if (!l->slot || !l->shuffle) return l->slot != NULL;
  return (l->order = tg_alloc(l->ctx, ((size_t)l->data.count + 1) * sizeof *l->order)) != NULL;
}

/* Starts fewer threads than requested if the system has no more. Signals are blocked in them, so that the
 * host's own threads receive them. */
static bool workers_start(TgLoader *l, int64_t n) {
  sigset_t all, before;
  if (!(l->thread = tg_alloc(l->ctx, (size_t)(n + 1) * sizeof *l->thread))) return false;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  while (l->nthread < n && !pthread_create(&l->thread[l->nthread], NULL, worker, l))
    l->nthread++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return true;
}

TgLoader *tg_loader_opt(TgContext *ctx, const TgDataset *d, const TgLoaderOptions *given) {
  enum { MOST_WORKERS = 1024, MOST_AHEAD = 1 << 16 };

  TgLoaderOptions o;
  TgLoader *l;
  if (!ctx || tg_options_read(ctx, "loader", "TgLoaderOptions", &o, sizeof o, given)) return NULL;
  int64_t batch = TG_OPTION(o, batch, 1), workers = TG_OPTION(o, workers, 1),
          ahead = TG_OPTION(o, ahead, 2 + workers);
  if (batch < 1 || workers < 0 || workers > MOST_WORKERS || ahead < 1 || ahead > MOST_AHEAD) {
    ctx_fail(ctx, TG_ERR_VALUE,
             "loader: .batch %lld, .workers %lld, .ahead %lld: not 1 or more, 0 to %d, 1 to %d",
             (long long)batch, (long long)workers, (long long)ahead, MOST_WORKERS, MOST_AHEAD);
    return NULL;
  }
  if (!(l = tg_alloc(ctx, sizeof *l))) return NULL;
  *l = (TgLoader){.ctx = ctx, .batch = batch, .nslot = ahead, .shuffle = o.shuffle, .seed = o.seed};
  l->part = o.by_rank ? tg_comm_rank(ctx) : 0;
  l->parts = o.by_rank ? tg_comm_size(ctx) : 1;
  if (!dataset_measured(l, ctx, d, batch)) {
    tg_free(ctx, l);
    return NULL;
  }
  pthread_mutex_init(&l->lock, NULL), pthread_cond_init(&l->work, NULL), pthread_cond_init(&l->done, NULL);
  l->batches = l->data.count / batch + (!o.drop_last && l->data.count % batch);
  if (slots_new(l)) {
    order_draw(l);
    if (workers_start(l, workers)) return l;
  }
  tg_loader_free(l);
  return NULL;
}

void tg_loader_free(TgLoader *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  l->stop = true;
  pthread_cond_broadcast(&l->work);
  pthread_mutex_unlock(&l->lock);
  for (int i = 0; i < l->nthread; i++)
    pthread_join(l->thread[i], NULL);
  for (int64_t s = 0; l->slot && s < l->nslot; s++)
    for (int i = 0; i < l->data.ntensor; i++)
      tg_free(l->ctx, l->slot[s].at[i]);
  for (int i = 0; i < l->data.ntensor; i++)
    tg_release(l->given[i]);
  pthread_mutex_destroy(&l->lock), pthread_cond_destroy(&l->work), pthread_cond_destroy(&l->done);
  tg_free(l->ctx, l->slot), tg_free(l->ctx, l->order), tg_free(l->ctx, l->thread), tg_free(l->ctx, l);
}

/* ---- taking batches */
int64_t tg_loader_batches(const TgLoader *l) { return l ? l->batches : 0; }

void tg_loader_tell(const TgLoader *l, int64_t *epoch, int64_t *batch) {
  if (epoch) *epoch = l ? l->epoch : 0;
  if (batch) *batch = l ? l->at : 0;
}

/* The caller holds the lock. Waits for batches that threads are making for another place, and discards
 * them. */
static void go_to(TgLoader *l, int64_t epoch, int64_t batch) {
  l->claimed = l->batches;
  while (l->filling)
    pthread_cond_wait(&l->done, &l->lock);
  if (epoch != l->epoch) {
    l->epoch = epoch;
    order_draw(l);
  }
  l->at = l->claimed = batch;
  for (int64_t s = 0; s < l->nslot; s++)
    l->slot[s].ready = false;
  pthread_cond_broadcast(&l->work);
}

TgStatus tg_loader_seek(TgLoader *l, int64_t epoch, int64_t batch) {
  if (!l) return TG_ERR_VALUE;
  if (epoch < 0 || batch < 0 || batch > l->batches) {
    ctx_fail(l->ctx, TG_ERR_VALUE, "loader_seek: batch %lld of epoch %lld, but an epoch has %lld",
             (long long)batch, (long long)epoch, (long long)l->batches);
    return TG_ERR_VALUE;
  }
  pthread_mutex_lock(&l->lock);
  go_to(l, epoch, batch);
  pthread_mutex_unlock(&l->lock);
  return TG_OK;
}

static bool tensors_make(TgLoader *l, const Slot *s, int64_t n) {
  for (int i = 0; i < l->data.ntensor; i++) {
    const TgItemTensor *t = &l->data.tensor[i];
    int64_t dims[TG_MAX_RANK] = {n};
    memcpy(dims + 1, t->dims, (size_t)t->ndim * sizeof *dims);
    l->given[i] = tg_keep(tg_from(l->ctx, s->at[i], t->dtype, t->ndim + 1, dims));
    if (!l->given[i]) return false;
  }
  return true;
}

bool tg_loader_next(TgLoader *l, TgTensor **out) {
  if (!l || !out) return false;
  for (int i = 0; i < l->data.ntensor; i++) {
    tg_release(l->given[i]);
    l->given[i] = out[i] = NULL;
  }
  if (tg_error(l->ctx)) return false;
  pthread_mutex_lock(&l->lock);
  if (l->at >= l->batches) {
    go_to(l, l->epoch + 1, 0);
    pthread_mutex_unlock(&l->lock);
    return false;
  }
  Slot *s = &l->slot[l->at % l->nslot];
  while (!s->ready)
    if (l->nthread || !make_one(l)) pthread_cond_wait(&l->done, &l->lock);
  pthread_mutex_unlock(&l->lock);
  bool ok = !s->status || ctx_fail(l->ctx, s->status, "loader: item %lld of the dataset cannot be made",
                                   (long long)s->failed);
  ok = ok && tensors_make(l, s, batch_count(l, l->at));
  memcpy(out, l->given, (size_t)l->data.ntensor * sizeof *out);
  pthread_mutex_lock(&l->lock);
  s->ready = false;
  l->at++;
  pthread_cond_broadcast(&l->work);
  pthread_mutex_unlock(&l->lock);
  return ok;
}
