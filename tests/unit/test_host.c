/* test_host.c: what a program that embeds the library needs: where its messages go, whose memory it takes and
 * how much, how many threads, and that it can be stopped from another thread and from a signal handler, after
 * which it goes on. */
#define _GNU_SOURCE
#include "tensor/context.h"
#include "tg_nn.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define OPEN(...) tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), __VA_ARGS__})

/* ---- messages */
typedef struct Said {
  size_t n;
  char text[1 << 16];
} Said;

static void listen(const char *text, void *user) {
  Said *s = user;
  size_t k = strlen(text);
  if (s->n + k < sizeof s->text) memcpy(s->text + s->n, text, k + 1), s->n += k;
}

static void test_log(void **state) {
  (void)state;
  static Said said;
  setenv("TG_DEBUG", "4", 1);
  TgContext *c = OPEN(.device = "CPU", .log = listen, .log_user = &said);
  unsetenv("TG_DEBUG");
  assert_non_null(strstr(said.text, "device CPU"));
  TgTensor *x = tg_rand(c, TG_SHAPE(100));
  assert_int_equal(tg_realize(tg_add_scalar(x, 1)), TG_OK);
  assert_non_null(strstr(said.text, "opts"));
  assert_non_null(strstr(said.text, "*** CPU"));
  assert_non_null(strstr(said.text, "#define")); /* a kernel's text, longer than any buffer of the stack */
  for (int n = 500; n < 530; n++) {              /* and of every length about that of such a buffer */
    said.n = 0;
    context_say(c, "%0*d", n, 7);
    assert_int_equal(said.n, n);
    assert_int_equal(said.text[n - 1], '7');
  }
  tg_close(c);
}

/* ---- memory: all that is taken is given back, and none of it is malloc's */
typedef struct Pool {
  _Atomic long live, taken;
  long most; /* so many calls succeed */
} Pool;

enum { HEAD = 16 };

static void *pool_allocate(size_t n, void *user) {
  Pool *p = user;
  if (p->most && p->taken >= p->most) return NULL;
  char *at = malloc(n + HEAD);
  if (!at) return NULL;
  memset(at, 0x5a, n + HEAD); /* nothing is promised of its contents */
  p->live++;
  p->taken++;
  return at + HEAD;
}

static void *pool_reallocate(void *old, size_t n, void *user) {
  Pool *p = user;
  if (p->most && p->taken >= p->most) return NULL;
  char *at = realloc(old ? (char *)old - HEAD : NULL, n + HEAD);
  if (!at) return NULL;
  if (!old) p->live++;
  p->taken++;
  return at + HEAD;
}

static void pool_release(void *at, void *user) {
  Pool *p = user;
  p->live--;
  free((char *)at - HEAD);
}

/* A step of training; whether all went well. */
static bool train(TgContext *c) {
  TgLinear l = tg_linear_new(c, 8, 4, true);
  TgOptim *o = tg_adam(c, ((TgTensor *[]){l.weight, l.bias}), 2);
  bool ok = o != NULL;
  TG_SCOPE(c) {
    TgTensor *y = tg_linear_run(&l, tg_ones(c, TG_SHAPE(3, 8)));
    ok = ok && tg_backward(tg_sum(tg_square(y))) == TG_OK && tg_optim_step(o) == TG_OK;
  }
  tg_optim_free(o), tg_linear_free(&l);
  return ok;
}

static void test_allocator(void **state) {
  (void)state;
  static const char *const devices[] = {"CPU", "INTERP"};
  for (int d = 0; d < 2; d++) {
    Pool pool = {0};
    TgAllocator a = {pool_allocate, pool_reallocate, pool_release, &pool};
    TgContext *c;
    for (int run = 0; run < 2; run++) { /* the second finds its kernels compiled, as all that follow */
      pool = (Pool){0};
      c = OPEN(.device = devices[d], .allocator = &a, .seed = 1);
      assert_true(pool.live > 0);
      assert_true(train(c));
      tg_close(c);
      assert_int_equal(pool.live, 0);
    }
    long all = pool.taken;
    for (long most = 1; most < all; most += 1 + all / 23) { /* an allocator that has no more */
      pool = (Pool){.most = most};
      c = OPEN(.device = devices[d], .allocator = &a, .seed = 1);
      if (c) assert_true(!train(c) && tg_error(c) == TG_ERR_NOMEM);
      tg_close(c);
      assert_int_equal(pool.live, 0);
    }
  }
  TgAllocator half = {pool_allocate, NULL, NULL, NULL};
  TgContext *c = OPEN(.device = "INTERP", .allocator = &half);
  assert_int_equal(tg_error(c), TG_ERR_VALUE);
  tg_close(c);
}

static void test_limits(void **state) {
  (void)state;
  TgContext *c = OPEN(.device = "CPU", .memory_limit = 1 << 20, .threads = 2, .unpinned = true);
  assert_int_equal(tg_error(c), TG_OK);
  assert_int_equal(tg_realize(tg_contiguous(tg_rand(c, TG_SHAPE(1000)))), TG_OK);
  assert_int_equal(tg_realize(tg_contiguous(tg_rand(c, TG_SHAPE(1 << 20)))), TG_ERR_NOMEM);
  tg_clear_error(c);
  assert_int_equal(tg_realize(tg_contiguous(tg_rand(c, TG_SHAPE(1000)))), TG_OK); /* it goes on */
  tg_close(c);
}

/* ---- stopping */
static TgContext *running;

static void on_alarm(int number) { (void)number, tg_cancel(running); }

static void *cancel_soon(void *arg) {
  usleep(30000);
  tg_cancel(arg);
  return NULL;
}

/* Works until it is stopped: each turn is planned anew, or runs what was planned. */
static TgStatus work(TgContext *c, bool anew) {
  TgStatus s = TG_OK;
  for (int i = 1; !s; i++)
    TG_SCOPE(c) {
      TgTensor *x = tg_rand(c, TG_SHAPE(anew ? 16 + i : 16, 16));
      s = tg_realize(tg_softmax(tg_matmul(x, tg_transpose(x, 0, 1))));
    }
  return s;
}

static void test_cancel(void **state) {
  (void)state;
  TgContext *c = running = OPEN(.device = "INTERP");
  signal(SIGALRM, on_alarm);
  for (int i = 0; i < 4; i++) {
    pthread_t t;
    if (i % 2)
      assert_int_equal(pthread_create(&t, NULL, cancel_soon, c), 0);
    else
      ualarm(30000, 0);
    assert_int_equal(work(c, i >= 2), TG_ERR_CANCELLED);
    if (i % 2) pthread_join(t, NULL);
    assert_int_equal(tg_error(c), TG_ERR_CANCELLED);
    assert_string_equal(tg_status_name(tg_error(c)), "cancelled");
    tg_clear_error(c);
    /* and it goes on, right */
    assert_true(tg_item_f64(tg_sum(tg_ones(c, TG_SHAPE(10, 10)))) == 100);
  }
  /* what was called before an action ends that action, once; a store that waited is made by the next */
  float v[2] = {1, 2};
  TgTensor *x = tg_from(c, v, TG_F32, TG_SHAPE(2));
  tg_assign(x, tg_add_scalar(x, 1));
  tg_cancel(c);
  assert_int_equal(tg_realize(x), TG_ERR_CANCELLED);
  tg_clear_error(c);
  assert_int_equal(tg_read(x, v, sizeof v), TG_OK);
  assert_true(v[0] == 2 && v[1] == 3);
  tg_cancel(NULL);
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_log), cmocka_unit_test(test_allocator),
                                     cmocka_unit_test(test_limits), cmocka_unit_test(test_cancel)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
