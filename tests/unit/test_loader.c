/* test_loader.c: datasets and the data loader. An epoch has each item once; the order and what chance does to
 * an item depend on the seed and the epoch alone, whatever the threads; a place can be gone back to; an item
 * that cannot be made is named; what augments a picture does what its option says. */
#include "tg_io.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static TgContext *C;

static int setup(void **state) {
  (void)state;
  return (C = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"})) ? 0 : 1;
}

static int teardown(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static void fine(void) {
  if (tg_error(C)) fail_msg("%s", tg_errmsg(C));
}

static void refused(TgStatus status, const char *says) {
  assert_int_equal(tg_error(C), status);
  if (!strstr(tg_errmsg(C), says)) fail_msg("'%s' does not say '%s'", tg_errmsg(C), says);
  tg_clear_error(C);
}

/* ---- a dataset of as many tensors as an item may have: each holds its number and the item's */
static TgStatus wide_item(void *user, int64_t item, uint64_t random, void *const *out) {
  (void)user, (void)random;
  for (int k = 0; k < TG_ITEM_TENSORS; k++)
    *(int32_t *)out[k] = (int32_t)(100 * item + k);
  return TG_OK;
}

static void test_most_tensors(void **state) {
  (void)state;
  TgDataset d = {.size = sizeof d, .count = 3, .ntensor = TG_ITEM_TENSORS, .item = wide_item};
  for (int k = 0; k < TG_ITEM_TENSORS; k++)
    d.tensor[k] = (TgItemTensor){.dtype = TG_I32};
  TgLoader *l = tg_loader(C, &d, .batch = 3);
  TgTensor *out[TG_ITEM_TENSORS];
  assert_true(tg_loader_next(l, out));
  for (int k = 0; k < TG_ITEM_TENSORS; k++) {
    int32_t v[3];
    assert_int_equal(tg_read(out[k], v, sizeof v), TG_OK);
    assert_true(v[0] == k && v[1] == 100 + k && v[2] == 200 + k);
  }
  tg_loader_free(l), fine();
  d.ntensor++;
  assert_null(tg_loader(C, &d, .batch = 3)), refused(TG_ERR_VALUE, "items of 9 tensors, not 1 to 8");
}

/* ---- a dataset whose items are their numbers, and some of what chance gives them */
typedef struct Numbers {
  int64_t bad; /* that item cannot be made; -1: none */
  bool slow;   /* some take longer than others */
} Numbers;

static TgStatus number_item(void *user, int64_t item, uint64_t random, void *const *out) {
  const Numbers *n = user;
  if (n->slow) usleep((useconds_t)(random % 300));
  *(int64_t *)out[0] = item, ((uint32_t *)out[1])[0] = (uint32_t)random,
            ((uint32_t *)out[1])[1] = (uint32_t)(random >> 32);
  return item == n->bad ? TG_ERR_IO : TG_OK;
}

static TgDataset numbers(Numbers *n, int64_t count) {
  return (TgDataset){.size = sizeof(TgDataset),
                     .count = count,
                     .ntensor = 2,
                     .tensor = {{TG_I64, 0, {0}}, {TG_U32, 1, {2}}},
                     .item = number_item,
                     .user = n};
}

enum { MOST = 64 };

/* The items of an epoch, in order; how many. sizes: of its batches, added up by their squares. */
static int epoch_of(TgLoader *l, int64_t *items, uint32_t *random, int64_t *squares) {
  TgTensor *out[2];
  int n = 0;
  *squares = 0;
  while (tg_loader_next(l, out)) {
    int64_t batch = tg_len(out[0]);
    assert_true(n + batch <= MOST && tg_ndim(out[1]) == 2 && tg_dim(out[1], 0) == batch);
    assert_int_equal(tg_read(out[0], items + n, (size_t)batch * 8), TG_OK);
    assert_int_equal(tg_read(out[1], random + 2 * n, (size_t)batch * 8), TG_OK);
    n += (int)batch, *squares += batch * batch;
  }
  fine();
  return n;
}

static int64_t items[MOST], others[MOST], squares;
static uint32_t words[2 * MOST], other_words[2 * MOST];

static void test_epochs(void **state) {
  (void)state;
  Numbers all = {.bad = -1};
  for (int64_t count = 0; count <= 13; count++)
    for (int64_t batch = 1; batch <= 14; batch += 3)
      for (int drop = 0; drop < 2; drop++) {
        TgDataset d = numbers(&all, count);
        TgLoader *l = tg_loader(C, &d, .batch = batch, .drop_last = drop, .workers = count % 3);
        assert_non_null(l);
        int64_t left = count % batch, whole = count / batch;
        assert_int_equal(tg_loader_batches(l), whole + (left && !drop));
        for (int e = 0; e < 2; e++) {
          assert_int_equal(epoch_of(l, items, words, &squares), drop ? count - left : count);
          assert_int_equal(squares, whole * batch * batch + (drop ? 0 : left * left));
          for (int64_t i = 0; i < count - (drop ? left : 0); i++)
            assert_int_equal(items[i], i);
        }
        tg_loader_free(l);
      }
}

static bool permutes(const int64_t *at, int n) {
  bool seen[MOST] = {false};
  for (int i = 0; i < n; i++) {
    if (at[i] < 0 || at[i] >= n || seen[at[i]]) return false;
    seen[at[i]] = true;
  }
  return true;
}

/* The same numbers with any number of threads; another epoch, and another seed, have other ones. */
static void test_shuffled(void **state) {
  (void)state;

  enum { N = 50 };

  Numbers slow = {.bad = -1, .slow = true};
  TgDataset d = numbers(&slow, N);
  for (int workers = 0; workers <= 4; workers++) {
    TgLoader *l = tg_loader(C, &d, .batch = 3, .shuffle = true, .seed = 7, .workers = workers,
                            .ahead = 1 + workers % 3);
    for (int e = 0; e < 3; e++) {
      assert_int_equal(epoch_of(l, items, words, &squares), N);
      assert_true(permutes(items, N));
      if (!e && !workers) memcpy(others, items, sizeof items), memcpy(other_words, words, sizeof words);
      assert_int_equal(!memcmp(items, others, N * sizeof *items), !e);
      assert_int_equal(!memcmp(words, other_words, N * 2 * sizeof *words), !e);
    }
    tg_loader_free(l);
  }
  TgLoader *l = tg_loader(C, &d, .batch = N, .shuffle = true, .seed = 8);
  assert_int_equal(epoch_of(l, items, words, &squares), N);
  assert_true(permutes(items, N) && memcmp(items, others, N * sizeof *items));
  tg_loader_free(l);
}

/* Each item has its own bits; without shuffling they change from epoch to epoch, too. */
static void test_random_of_items(void **state) {
  (void)state;
  Numbers all = {.bad = -1};
  TgDataset d = numbers(&all, MOST);
  TgLoader *l = tg_loader(C, &d, .batch = MOST);
  int ones = 0;
  epoch_of(l, items, words, &squares), epoch_of(l, others, other_words, &squares);
  for (int i = 0; i < 2 * MOST; i++) {
    assert_true(words[i] != other_words[i]);
    for (int k = 0; k < i; k++)
      assert_true(words[i] != words[k]);
    ones += __builtin_popcount(words[i]);
  }
  assert_in_range(ones, 2 * MOST * 16 - 200, 2 * MOST * 16 + 200); /* 6 deviations */
  tg_loader_free(l);
}

/* From each batch on, the rest of the epoch is what it was; also back, and while threads are ahead. */
static void test_seek(void **state) {
  (void)state;

  enum { N = 22, BATCH = 4, BATCHES = 6 };

  Numbers slow = {.bad = -1, .slow = true};
  TgDataset d = numbers(&slow, N);
  TgLoader *l = tg_loader(C, &d, .batch = BATCH, .shuffle = true, .workers = 2);
  int64_t of[3][MOST], epoch, batch;
  for (int e = 0; e < 3; e++)
    assert_int_equal(epoch_of(l, of[e], words, &squares), N);
  for (int k = 0; k < 30; k++) {
    int e = k * 7 % 3, b = k * 5 % (BATCHES + 1);
    assert_int_equal(tg_loader_seek(l, e, b), TG_OK);
    tg_loader_tell(l, &epoch, &batch);
    assert_int_equal(epoch, e), assert_int_equal(batch, b);
    if (k % 4 == 3) continue; /* at once to another place */
    int from = b * BATCH < N ? b * BATCH : N;
    assert_int_equal(epoch_of(l, items, words, &squares), N - from);
    assert_memory_equal(items, of[e] + from, (size_t)(N - from) * sizeof *items);
    tg_loader_tell(l, &epoch, &batch);
    assert_int_equal(epoch, e + 1), assert_int_equal(batch, 0);
  }
  assert_int_equal(tg_loader_seek(l, 0, BATCHES + 1), TG_ERR_VALUE), refused(TG_ERR_VALUE, "an epoch has 6");
  assert_int_equal(tg_loader_seek(l, -1, 0), TG_ERR_VALUE), refused(TG_ERR_VALUE, "epoch -1");
  tg_loader_free(l);
}

/* One item fails: its batch is an error that names it, and the next call goes on after it. */
static void test_item_fails(void **state) {
  (void)state;
  Numbers some = {.bad = 5};
  TgDataset d = numbers(&some, 10);
  for (int workers = 0; workers < 3; workers++) {
    TgLoader *l = tg_loader(C, &d, .batch = 2, .workers = workers);
    TgTensor *out[2];
    for (int b = 0; b < 5; b++) {
      bool bad = b == 2;
      assert_int_equal(tg_loader_next(l, out), !bad);
      if (bad) {
        assert_null(out[0]), refused(TG_ERR_IO, "item 5");
        continue;
      }
      int64_t two[2];
      assert_int_equal(tg_read(out[0], two, sizeof two), TG_OK);
      assert_int_equal(two[0], 2 * b), assert_int_equal(two[1], 2 * b + 1);
    }
    assert_false(tg_loader_next(l, out)), fine();
    tg_loader_free(l);
  }
}

/* A batch belongs to the loader; what was computed from it does not. */
static void test_batches_end(void **state) {
  (void)state;
  Numbers all = {.bad = -1};
  TgDataset d = numbers(&all, 400);
  TgLoader *l = tg_loader(C, &d, .batch = 4);
  TgTensor *out[2], *sum = tg_keep(tg_zeros(C, TG_SHAPE(), .dtype = TG_I64));
  uint64_t peak = 0;
  for (int b = 0; tg_loader_next(l, out); b++)
    TG_SCOPE(C) {
      tg_realize(tg_add_(sum, tg_sum(out[0])));
      assert_int_equal(tg_collect(C), TG_OK);
      if (b == 10) peak = tg_counters(C).peak_bytes;
    }
  fine();
  assert_int_equal(tg_counters(C).peak_bytes, peak);
  assert_int_equal(tg_item_i64(sum), 399 * 400 / 2);
  tg_loader_free(l), tg_release(sum);
  l = tg_loader(C, &d, .batch = 4, .workers = 3); /* ends while its threads are at work */
  assert_true(tg_loader_next(l, out));
  tg_loader_free(l), tg_loader_free(NULL), fine();
}

static void test_refused(void **state) {
  (void)state;
  Numbers all = {.bad = -1};
  TgDataset d = numbers(&all, 4), other = d;
  assert_null(tg_loader(C, &d, .batch = 0)), refused(TG_ERR_VALUE, ".batch 0");
  assert_null(tg_loader(C, &d, .batch = -3)), refused(TG_ERR_VALUE, ".batch -3");
  assert_null(tg_loader(C, &d, .workers = -1)), refused(TG_ERR_VALUE, ".workers -1");
  assert_null(tg_loader(C, &d, .ahead = 0)), refused(TG_ERR_VALUE, ".ahead 0");
  assert_null(tg_loader(C, NULL)), refused(TG_ERR_VALUE, ".size = sizeof(TgDataset)");
  other.size = 0;
  assert_null(tg_loader(C, &other)), refused(TG_ERR_VALUE, ".size = sizeof(TgDataset)");
  other = d, other.item = NULL;
  assert_null(tg_loader(C, &other)), refused(TG_ERR_VALUE, "without a function");
  other = d, other.count = -1;
  assert_null(tg_loader(C, &other)), refused(TG_ERR_VALUE, "without items");
  other = d, other.ntensor = TG_ITEM_TENSORS + 1;
  assert_null(tg_loader(C, &other)), refused(TG_ERR_VALUE, "9 tensors");
  other = d, other.tensor[1].ndim = TG_MAX_RANK;
  assert_null(tg_loader(C, &other)), refused(TG_ERR_SHAPE, "tensor 1");
  other = d, other.tensor[1] = (TgItemTensor){TG_F64, 3, {INT64_MAX / 2, 3, 5}};
  assert_null(tg_loader(C, &other)), refused(TG_ERR_SHAPE, "tensor 1");
  other = d, other.tensor[0] = (TgItemTensor){TG_F64, 1, {-1}};
  assert_null(tg_loader(C, &other)), refused(TG_ERR_SHAPE, "tensor 0");
  assert_null(tg_loader_opt(C, &d, &(TgLoaderOptions){0})), refused(TG_ERR_VALUE, "TgLoaderOptions");
  assert_false(tg_loader_next(NULL, NULL));
}

/* ---- rows of tensors: any dtype, sizes 0 and 1 */
static void test_tensors(void **state) {
  (void)state;
  TG_SCOPE(C) {
    TgTensor *x = tg_reshape(tg_arange(C, 0, 30), TG_SHAPE(5, 2, 3)),
             *t[3] = {x, tg_cast(tg_arange(C, 0, 5), TG_BF16), tg_zeros(C, TG_SHAPE(5, 0, 4))}, *out[3];
    TgDataset d = tg_dataset_tensors(C, t, 3);
    assert_int_equal(d.count, 5);
    TgLoader *l = tg_loader(C, &d, .batch = 2, .shuffle = true);
    double sum = 0, rows[12], numbers_of[2];
    while (tg_loader_next(l, out)) {
      int64_t n = tg_len(out[0]);
      assert_int_equal(tg_dtype(out[0]), tg_dtype(x)), assert_int_equal(tg_dtype(out[1]), TG_BF16);
      assert_int_equal(tg_ndim(out[1]), 1), assert_int_equal(tg_dim(out[2], 1), 0);
      assert_int_equal(tg_read_f64(out[0], rows, (size_t)n * 6), TG_OK);
      assert_int_equal(tg_read_f64(out[1], numbers_of, (size_t)n), TG_OK);
      for (int64_t i = 0; i < n * 6; i++)
        assert_true(rows[i] == numbers_of[i / 6] * 6 + (double)(i % 6));
      sum += numbers_of[0] + (n > 1 ? numbers_of[1] : 0);
    }
    fine(), assert_true(sum == 10);
    tg_loader_free(l), tg_dataset_end(&d), tg_dataset_end(&d), tg_dataset_end(NULL);
    assert_null(tg_dataset_tensors(C, t, 0).item), refused(TG_ERR_VALUE, "0 tensors");
    t[1] = tg_arange(C, 0, 4);
    assert_null(tg_dataset_tensors(C, t, 2).item), refused(TG_ERR_SHAPE, "the 5 rows");
    t[0] = tg_sum(x);
    d = tg_dataset_tensors(C, t, 1);
    assert_null(tg_loader(C, &d)), refused(TG_ERR_SHAPE, "tensor 0, "); /* the first error stays */
  }
}

/* ---- pictures */
enum { CH = 3, SIDE = 8, AREA = SIDE * SIDE, PIXELS = CH * AREA, ROUNDS = 200 };

/* One picture through the dataset; epoch says what chance does. */
static void picture(const TgDataset *d, uint64_t random, float *x, int32_t *y) {
  void *out[2] = {x, y};
  assert_int_equal(d->item(d->user, 0, random, out), TG_OK);
}

static uint64_t nth(uint64_t k) { return (k + 1) * 0x9e3779b97f4a7c15u; }

static unsigned char pixels[PIXELS];

static TgTensor *one_picture(void) {
  for (int i = 0; i < PIXELS; i++)
    pixels[i] = (unsigned char)(40 + i * 89 % 140);
  return tg_from(C, pixels, TG_U8, TG_SHAPE(1, CH, SIDE, SIDE));
}

/* Whether x is the picture with each pixel at (i, j) of the new read at (u, v) of the old, 0 outside. */
static bool is_moved(const float *x, bool flip_x, bool flip_y, int dx, int dy) {
  for (int c = 0; c < CH; c++)
    for (int j = 0; j < SIDE; j++)
      for (int i = 0; i < SIDE; i++) {
        int u = i - dx, v = j - dy;
        bool inside = u >= 0 && u < SIDE && v >= 0 && v < SIDE;
        u = flip_x ? SIDE - 1 - u : u, v = flip_y ? SIDE - 1 - v : v;
        float want = inside ? (float)pixels[c * AREA + v * SIDE + u] / 255 : 0;
        if (fabsf(x[c * AREA + j * SIDE + i] - want) > 1e-6f) return false;
      }
  return true;
}

static void test_pictures_plain(void **state) {
  (void)state;
  TG_SCOPE(C) {
    static const double mean[] = {.5, .25, 0}, std[] = {.5, 2, 1};
    TgTensor *y = tg_from_f64(C, (double[]){7}, TG_U8, TG_SHAPE(1));
    TgDataset d = tg_dataset_images(one_picture(), y, .mean = mean, .std = std);
    float x[PIXELS];
    int32_t label;
    fine(), picture(&d, 1, x, &label);
    assert_int_equal(label, 7);
    for (int i = 0; i < PIXELS; i++) {
      double want = (pixels[i] / 255.0 - mean[i / AREA]) / std[i / AREA];
      assert_true(fabs(x[i] - want) < 1e-6);
    }
    tg_dataset_end(&d);
    d = tg_dataset_images(tg_zeros(C, TG_SHAPE(2, 4, 0, 5), .dtype = TG_U8), NULL, .erase = 1, .degrees = 30);
    assert_int_equal(d.ntensor, 1), assert_int_equal(d.count, 2);
    picture(&d, 1, x, NULL), tg_dataset_end(&d), fine();
  }
}

/* Mirrors and shifts: each picture is one of those that there can be, and each of those comes. */
static void test_pictures_moved(void **state) {
  (void)state;

  enum { SHIFT = 2, WAYS = 2 * SHIFT + 1 };

  TG_SCOPE(C) {
    TgDataset d = tg_dataset_images(one_picture(), NULL, .flip_x = .5, .flip_y = .25, .shift = SHIFT);
    int seen[2][2][WAYS][WAYS] = {0}, mirrored[2] = {0}, kinds = 0;
    for (int k = 0; k < 10 * ROUNDS; k++) {
      float x[PIXELS];
      int found = 0;
      picture(&d, nth((uint64_t)k), x, NULL);
      for (int w = 0; w < 4 * WAYS * WAYS; w++) {
        int fx = w & 1, fy = w >> 1 & 1, dx = w / 4 % WAYS, dy = w / 4 / WAYS;
        if (!is_moved(x, fx, fy, dx - SHIFT, dy - SHIFT)) continue;
        found++, kinds += !seen[fx][fy][dx][dy]++, mirrored[0] += fx, mirrored[1] += fy;
      }
      assert_int_equal(found, 1);
    }
    assert_int_equal(kinds, 4 * WAYS * WAYS);
    assert_in_range(mirrored[0], 10 * ROUNDS / 2 - 150, 10 * ROUNDS / 2 + 150);
    assert_in_range(mirrored[1], 10 * ROUNDS / 4 - 130, 10 * ROUNDS / 4 + 130);
    tg_dataset_end(&d), fine();
  }
}

/* Turning keeps a picture that is the same from all sides near what it is, its centre in its place, and
 * enlarging keeps a slope a slope. */
static void test_pictures_turned(void **state) {
  (void)state;
  TG_SCOPE(C) {
    enum { BIG = 33, MID = BIG / 2 };

    static unsigned char round_one[BIG * BIG], slope[BIG * BIG];
    static float x[BIG * BIG];
    for (int i = 0; i < BIG * BIG; i++) {
      double a = i % BIG - MID, b = i / BIG - MID;
      round_one[i] = (unsigned char)(255 * exp(-(a * a + b * b) / 50) + .5),
      slope[i] = (unsigned char)(i % BIG * 7);
    }
    TgDataset d =
        tg_dataset_images(tg_from(C, round_one, TG_U8, TG_SHAPE(1, 1, BIG, BIG)), NULL, .degrees = 180);
    for (int k = 0; k < 20; k++) {
      picture(&d, nth((uint64_t)k), x, NULL);
      for (int i = 0; i < BIG * BIG; i++)
        assert_true(fabs(x[i] - round_one[i] / 255.0) < .02);
    }
    tg_dataset_end(&d);
    d = tg_dataset_images(tg_from(C, slope, TG_U8, TG_SHAPE(1, 1, BIG, BIG)), NULL, .zoom = .5);
    double least = 9, most = 0;
    for (int k = 0; k < ROUNDS; k++) {
      picture(&d, nth((uint64_t)k), x, NULL);
      const float *row = x + MID * BIG;
      double step = (row[MID + 4] - row[MID - 4]) / 8;
      assert_true(fabs(row[MID] - MID * 7 / 255.0) < 1e-5); /* the centre stays */
      for (int i = MID - 8; i < MID + 8; i++)
        assert_true(fabs(row[i] - row[MID] - (i - MID) * step) < 1e-4);
      least = fmin(least, step * 255 / 7), most = fmax(most, step * 255 / 7);
    }
    assert_true(least > 1 / 1.5 - 1e-4 && least < .7 && most < 1.5 + 1e-4 && most > 1.43);
    tg_dataset_end(&d), fine();
  }
}

static double grey_at(const float *x, int k) {
  return .299 * x[k] + .587 * x[AREA + k] + .114 * x[2 * AREA + k];
}

/* What each colour option keeps: brightness the ratio of pixels, contrast the mean grey, saturation the grey
 * of each pixel. */
static void test_pictures_coloured(void **state) {
  (void)state;
  TG_SCOPE(C) {
    float x[PIXELS], plain[PIXELS];
    TgTensor *p = one_picture();
    TgDataset none = tg_dataset_images(p, NULL);
    picture(&none, 1, plain, NULL);
    for (int what = 0; what < 3; what++) {
      double amount = what ? .4 : .3, least = 9, most = 0; /* so small that nothing is cut off */
      TgDataset d = what == 0   ? tg_dataset_images(p, NULL, .brightness = amount)
                    : what == 1 ? tg_dataset_images(p, NULL, .contrast = amount)
                                : tg_dataset_images(p, NULL, .saturation = amount);
      for (int k = 0; k < ROUNDS; k++) {
        double mean = 0, was = 0, f = 0;
        picture(&d, nth((uint64_t)k), x, NULL);
        for (int i = 0; i < AREA; i++)
          mean += grey_at(x, i) / AREA, was += grey_at(plain, i) / AREA;
        if (what == 1) assert_true(fabs(mean - was) < 1e-5);
        for (int i = 0; i < PIXELS; i++) {
          double base = what == 0   ? 0
                        : what == 1 ? was
                                    : grey_at(plain, i % AREA),
                 other = what == 2 ? grey_at(x, i % AREA) : base;
          assert_true(fabs(other - base) < 1e-5);
          if (!i) f = (x[i] - base) / (plain[i] - base);
          assert_true(fabs(x[i] - (base + (plain[i] - base) * f)) < 1e-4);
        }
        least = fmin(least, f), most = fmax(most, f);
      }
      assert_true(least > 1 - amount - 1e-4 && least < 1 - .9 * amount && most > 1 + .9 * amount &&
                  most < 1 + amount + 1e-4);
      tg_dataset_end(&d);
    }
    tg_dataset_end(&none), fine();
  }
}

/* What is erased is one rectangle of 2 to 33 % of the area, in all channels. */
static void test_pictures_erased(void **state) {
  (void)state;
  TG_SCOPE(C) {
    TgDataset d = tg_dataset_images(one_picture(), NULL, .erase = .75);
    int erased = 0;
    for (int k = 0; k < 5 * ROUNDS; k++) {
      float x[PIXELS];
      int x0 = SIDE, x1 = 0, y0 = SIDE, y1 = 0, n = 0;
      picture(&d, nth((uint64_t)k), x, NULL);
      for (int i = 0; i < AREA; i++) {
        bool gone = x[i] == 0;
        assert_true(gone == (x[AREA + i] == 0) && gone == (x[2 * AREA + i] == 0));
        if (!gone) continue;
        int a = i % SIDE, b = i / SIDE;
        n++, x0 = a < x0 ? a : x0, x1 = a >= x1 ? a + 1 : x1, y0 = b < y0 ? b : y0, y1 = b >= y1 ? b + 1 : y1;
      }
      if (n) erased++, assert_int_equal(n, (x1 - x0) * (y1 - y0)), assert_in_range(n, 1, AREA * 2 / 5);
    }
    assert_in_range(erased, 5 * ROUNDS * 3 / 4 - 90, 5 * ROUNDS * 3 / 4 + 90);
    tg_dataset_end(&d), fine();
  }
}

static void test_pictures_refused(void **state) {
  (void)state;
  TG_SCOPE(C) {
    TgTensor *p = one_picture(), *y = tg_zeros(C, TG_SHAPE(1), .dtype = TG_I32);
    static const double zero[] = {1, 0, 1};
    assert_null(tg_dataset_images(NULL, NULL).item), fine();
    assert_null(tg_dataset_images(tg_float(p), NULL).item), refused(TG_ERR_DTYPE, "not of u8");
    assert_null(tg_dataset_images(p, tg_float(y)).item), refused(TG_ERR_DTYPE, "not integers");
    assert_null(tg_dataset_images(tg_squeeze(p, 0), y).item), refused(TG_ERR_SHAPE, "(count, channels");
    assert_null(tg_dataset_images(p, tg_zeros(C, TG_SHAPE(2), .dtype = TG_I32)).item),
        refused(TG_ERR_SHAPE, "labels, not (1)");
    assert_null(tg_dataset_images(p, y, .std = zero).item), refused(TG_ERR_VALUE, ".std of channel 1");
    assert_null(tg_dataset_images(p, y, .flip_x = 1.5).item), refused(TG_ERR_VALUE, ".flip_x is 1.5");
    assert_null(tg_dataset_images(p, y, .erase = NAN).item), refused(TG_ERR_VALUE, ".erase");
    assert_null(tg_dataset_images(p, y, .shift = -1).item), refused(TG_ERR_VALUE, ".shift is -1");
    assert_null(tg_dataset_images(p, y, .zoom = -1).item), refused(TG_ERR_VALUE, ".zoom");
    assert_null(tg_dataset_images_opt(p, y, &(TgImageOptions){0}).item),
        refused(TG_ERR_VALUE, "TgImageOptions");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_most_tensors),
                                     cmocka_unit_test(test_epochs),
                                     cmocka_unit_test(test_shuffled),
                                     cmocka_unit_test(test_random_of_items),
                                     cmocka_unit_test(test_seek),
                                     cmocka_unit_test(test_item_fails),
                                     cmocka_unit_test(test_batches_end),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_tensors),
                                     cmocka_unit_test(test_pictures_plain),
                                     cmocka_unit_test(test_pictures_moved),
                                     cmocka_unit_test(test_pictures_turned),
                                     cmocka_unit_test(test_pictures_coloured),
                                     cmocka_unit_test(test_pictures_erased),
                                     cmocka_unit_test(test_pictures_refused)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
