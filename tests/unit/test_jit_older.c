/* test_jit_older.c: what a captured function knows by more than one name: expressions that were made before it,
 * which it may make again itself, or which somebody computes; its inputs. Each function is called under each
 * history, captured and plainly: all that is read is the same. On CPU and INTERP, and on two devices. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 6, MOST_READ = 64 };

/* s: what functions assign to. x: what they only read. e: five times s[1], as it was before. */
typedef struct World {
  TgContext *c;
  const char *device;
  bool split, captured;
  TgJit *jit;
  int fn, calls, runs;
  TgTensor *s[2], *x, *e, *more, *cache;
  int read[MOST_READ], n;
} World;

static TgTensor *split(World *w, TgTensor *t) {
  const char *two[] = {w->device, "INTERP:1"};
  return w->split && t ? tg_shard(t, 2, two, 0) : t;
}

static TgTensor *memory(World *w, int32_t first, int32_t step) {
  int32_t v[N];
  for (int i = 0; i < N; i++)
    v[i] = first + i * step;
  TgTensor *t = tg_keep(split(w, tg_from(w->c, v, TG_I32, TG_SHAPE(N))));
  return t && !tg_realize(t) ? t : NULL;
}

/* ---- functions */
static TgTensor *reads_it(World *w, TgTensor *in) { return tg_add(w->e, in); }

static TgTensor *reads_of_it(World *w, TgTensor *in) { return tg_add(tg_neg(w->e), in); }

static TgTensor *makes_it_too(World *w, TgTensor *in) {
  return tg_add(tg_add(tg_mul_scalar(w->s[1], 5), w->e), in);
}

static TgTensor *makes_it_alone(World *w, TgTensor *in) {
  return tg_add(tg_neg(tg_mul_scalar(w->s[1], 5)), in);
}

static TgTensor *adds_it(World *w, TgTensor *in) {
  tg_add_(w->s[0], w->e);
  return tg_add(w->s[0], in);
}

static TgTensor *adds_it_beside(World *w, TgTensor *in) {
  tg_add_(w->s[0], w->e);
  return tg_mul_scalar(in, 2);
}

static TgTensor *computes_it_too(World *w, TgTensor *in) {
  TgTensor *t = tg_mul_scalar(w->s[1], 5);
  tg_realize(t);
  return tg_add(tg_add(t, tg_neg(w->e)), in);
}

static TgTensor *assigns_below_it(World *w, TgTensor *in) {
  tg_assign(w->s[1], tg_add_scalar(w->s[1], 1));
  return tg_add(w->e, in);
}

static TgTensor *computes_of_it(World *w, TgTensor *in) {
  TgTensor *t = tg_neg(w->e);
  tg_realize(t);
  tg_add_(w->s[0], t);
  return tg_add(tg_add(w->s[0], w->e), in);
}

static TgTensor *reads_more(World *w, TgTensor *in) {
  return tg_add(tg_neg(w->more ? w->more : w->s[0]), tg_add(w->e, in));
}

static TgTensor *knows_input(World *w, TgTensor *in) {
  return tg_add(tg_sub(in, w->x), tg_mul(in, tg_neg(w->e)));
}

static TgTensor *assigns_input(World *w, TgTensor *in) {
  tg_add_(in, w->x);
  return tg_mul(in, w->e);
}

static TgTensor *assigns_input_later(World *w, TgTensor *in) {
  if (w->calls == 2) tg_add_(in, w->x);
  return tg_mul(in, w->s[1]);
}

static TgTensor *makes_it_once(World *w, TgTensor *in) {
  if (!w->cache) w->cache = tg_keep(tg_mul_scalar(w->s[1], 5));
  return tg_add(w->cache, in);
}

/* its own handle gets another expression in each call */
static TgTensor *makes_it_each_time(World *w, TgTensor *in) {
  TgTensor *t = tg_mul_scalar(w->s[1], 6);
  if (w->cache)
    tg_replace(w->cache, t);
  else
    w->cache = tg_keep(t);
  return tg_add(w->cache, in);
}

static TgTensor *(*const functions[])(World *w, TgTensor *in) = {
    reads_it,       reads_of_it,        makes_it_too,     makes_it_alone, adds_it,
    adds_it_beside, computes_it_too,    assigns_below_it, computes_of_it, reads_more,
    makes_it_once,  makes_it_each_time, knows_input,      assigns_input,  assigns_input_later};

static TgStatus called(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  World *w = user;
  w->calls++;
  out[0] = functions[w->fn](w, in[0]);
  return tg_error(c);
}

/* ---- what happens to a world */
static void noted(World *w, TgTensor *t) {
  int32_t v[N];
  if (tg_read(t, v, sizeof v)) fail_msg("%s", tg_errmsg(w->c));
  w->read[w->n++] = v[0], w->read[w->n++] = v[N - 1];
  assert_true(w->n < MOST_READ);
}

static void run_on(World *w, TgTensor *in) {
  TgTensor *out = NULL;
  TgStatus s = w->captured ? tg_jit_run(w->jit, &in, 1, &out, 1) : called(w->c, &in, 1, &out, 1, w);
  if (s) fail_msg("function %d: %s", w->fn, tg_errmsg(w->c));
  noted(w, out), noted(w, in);
  tg_release(out);
}

static void run(World *w, int times) {
  for (int i = 0; i < times; i++) {
    TgTensor *in = memory(w, 10 * w->runs++, 3);
    run_on(w, in);
    tg_release(in);
  }
}

static void set(World *w, TgTensor *t, int32_t v) {
  if (!tg_assign(t, tg_full(w->c, TG_SCALAR, v, .dtype = TG_I32))) fail_msg("%s", tg_errmsg(w->c));
}

static TgTensor *computed(World *w, TgTensor *t) {
  if (tg_realize(tg_keep(t))) fail_msg("%s", tg_errmsg(w->c));
  return t;
}

/* another handle of the same expression */
static TgTensor *same(TgTensor *t) { return tg_cast(t, TG_I32); }

static void below_assigned(World *w) { run(w, 3), set(w, w->s[1], 9), run(w, 3); }

static void below_assigned_between(World *w) {
  run(w, 1), set(w, w->s[1], 8), run(w, 1), set(w, w->s[1], 9), run(w, 2);
}

static void neg_computed(World *w) {
  TgTensor *t = computed(w, tg_neg(w->e));
  run(w, 3), set(w, w->s[1], 9), run(w, 2), set(w, t, 3), run(w, 2);
}

static void neg_computed_between(World *w) {
  TgTensor *t = computed(w, tg_neg(w->e));
  run(w, 1), set(w, w->s[1], 9), run(w, 2), set(w, t, 2), run(w, 2);
}

static void neg_computed_later(World *w) {
  run(w, 2);
  TgTensor *t = computed(w, tg_neg(w->e));
  set(w, w->s[1], 9), run(w, 3), set(w, t, 1), run(w, 2);
}

static void twin_computed(World *w) {
  TgTensor *t = computed(w, same(w->e));
  run(w, 2), set(w, w->s[1], 9), run(w, 1), set(w, t, 4), run(w, 2);
}

static void twin_computed_between(World *w) {
  TgTensor *t = tg_keep(same(w->e));
  run(w, 1), tg_realize(t), run(w, 1), set(w, w->s[1], 9), run(w, 1), set(w, t, 4), run(w, 2);
}

static void twin_computed_later(World *w) {
  run(w, 2);
  TgTensor *t = computed(w, same(w->e));
  set(w, w->s[1], 9), run(w, 1), set(w, t, 4), run(w, 3);
}

static void twin_ended(World *w) {
  TgTensor *t = computed(w, same(w->e));
  run(w, 1), set(w, w->s[1], 9), run(w, 2), tg_release(t), run(w, 2);
}

static void it_computed(World *w) {
  run(w, 3), tg_realize(w->e), run(w, 1), set(w, w->s[1], 9), run(w, 1), set(w, w->e, 4), run(w, 2);
}

static void it_assigned(World *w) { run(w, 2), computed(w, tg_neg(w->e)), set(w, w->e, 2), run(w, 3); }

static void it_assigned_below_a_value(World *w) {
  computed(w, tg_neg(w->e));
  run(w, 2), set(w, w->e, 2), run(w, 3), set(w, w->s[1], 3), run(w, 2);
}

static void it_assigned_below_a_handle(World *w) {
  TgTensor *t = tg_keep(tg_neg(w->e));
  run(w, 3), set(w, w->e, 2), run(w, 3), tg_release(t);
}

static void it_replaced(World *w) {
  run(w, 2), tg_replace(w->e, tg_mul_scalar(w->x, 7)), run(w, 3), set(w, w->x, 1), run(w, 2);
}

static void it_written(World *w) { /* an expression of which a part is memory's */
  w->e = tg_keep(split(w, tg_full(w->c, TG_SHAPE(N), 7, .dtype = TG_I32)));
  if (!w->split) tg_setitem(w->e, TG_IDX(TG_SLICE(0, 2)), tg_getitem(w->s[1], TG_IDX(TG_SLICE(0, 2))));
  run(w, 3), set(w, w->s[1], 9), run(w, 3);
}

static void cache_assigned(World *w) {
  run(w, 3);
  if (w->cache) set(w, w->cache, 2);
  run(w, 2), set(w, w->s[1], 9), run(w, 2);
}

static void cache_computed(World *w) {
  run(w, 2);
  if (w->cache) noted(w, w->cache);
  run(w, 2), set(w, w->s[1], 9), run(w, 2);
  if (w->cache) set(w, w->cache, 2);
  run(w, 2);
}

static void more_of_it(World *w) {
  w->more = tg_keep(tg_add_scalar(w->e, 1));
  run(w, 2);
  TgTensor *t = computed(w, tg_add_scalar(w->e, 1));
  set(w, w->s[1], 9), run(w, 2), set(w, t, 3), run(w, 1);
}

static void more_below_a_value(World *w) {
  w->more = tg_keep(tg_neg(tg_add_scalar(w->e, 1)));
  TgTensor *t = computed(w, tg_add_scalar(w->e, 1));
  run(w, 2), set(w, w->s[1], 9), run(w, 2), set(w, t, 3), run(w, 2);
}

static void input_known(World *w) { run_on(w, w->x), run_on(w, w->x), run(w, 1), run_on(w, w->x), run(w, 1); }

static void input_is_state(World *w) { run(w, 3), run_on(w, w->s[1]), run(w, 3); }

static void input_known_later(World *w) { run(w, 3), run_on(w, w->x), run(w, 1); }

/* Inputs that are parts of a memory are captured in copies; what the function reads is such a copy as well. */
static void input_part_known(World *w) {
  int32_t v[2 * N];
  for (int i = 0; i < 2 * N; i++)
    v[i] = i * i;
  TgTensor *whole = tg_from(w->c, v, TG_I32, TG_SHAPE(2 * N)), *part = tg_slice(whole, 0, 1, N + 1);
  if (tg_realize(whole)) fail_msg("%s", tg_errmsg(w->c));
  w->more = tg_keep(tg_contiguous(part));
  if (functions[w->fn] == assigns_input || functions[w->fn] == assigns_input_later || w->split) return;
  run_on(w, part), run_on(w, part), run_on(w, tg_slice(whole, 0, 4, N + 4)), run_on(w, part);
}

static void it_of_input(World *w) {
  w->e = tg_keep(tg_mul_scalar(w->x, 3));
  run_on(w, w->x), run_on(w, w->x), run(w, 1), set(w, w->x, 4), run(w, 1), run_on(w, w->x), run(w, 1);
}

static void (*const histories[])(World *w) = {below_assigned,
                                              below_assigned_between,
                                              neg_computed,
                                              neg_computed_between,
                                              neg_computed_later,
                                              twin_computed,
                                              twin_computed_between,
                                              twin_computed_later,
                                              twin_ended,
                                              it_computed,
                                              it_assigned,
                                              it_assigned_below_a_value,
                                              it_assigned_below_a_handle,
                                              it_replaced,
                                              it_written,
                                              cache_assigned,
                                              cache_computed,
                                              more_of_it,
                                              more_below_a_value,
                                              input_known,
                                              input_known_later,
                                              input_is_state,
                                              input_part_known,
                                              it_of_input};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* ---- both */
static World lived(const char *device, bool split, int fn, int history, bool captured) {
  World w = {.device = device, .split = split, .fn = fn, .captured = captured};
  w.c = tg_open_with(.device = device, .seed = 3);
  assert_int_equal(tg_error(w.c), TG_OK);
  w.s[0] = memory(&w, 0, 10), w.s[1] = memory(&w, 5, 0), w.x = memory(&w, 2, 1);
  w.e = tg_keep(tg_mul_scalar(w.s[1], 5));
  w.jit = tg_jit(w.c, called, &w);
  TG_SCOPE(w.c) histories[history](&w);
  noted(&w, w.s[0]), noted(&w, w.s[1]);
  tg_jit_free(w.jit);
  tg_close(w.c);
  return w;
}

/* What somebody computed of numbers alone is no memory that the capture needs. */
static TgStatus adds_seven(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_add(in[0], tg_full(c, TG_SHAPE(N), 7, .dtype = TG_I32));
  return tg_error(c);
}

static void test_numbers(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "INTERP");
  TgTensor *seven = tg_full(c, TG_SHAPE(N), 7, .dtype = TG_I32), *out;
  TgTensor *in = tg_clone(tg_full(c, TG_SHAPE(N), 1, .dtype = TG_I32));
  TgJit *j = tg_jit(c, adds_seven, NULL);
  assert_int_equal(tg_realize_many((TgTensor *[]){seven, in}, 2), TG_OK);
  for (int i = 0; i < 3; i++)
    assert_int_equal(tg_jit_run(j, &in, 1, &out, 1), TG_OK);
  assert_string_equal(tg_to_text(out), "[8, 8, 8, 8, 8, 8]");
  const char *name;
  assert_non_null(tg_jit_to_text(j, NULL, NULL, 0));
  assert_null(tg_jit_memory(j, 0, &name));
  tg_jit_free(j);
  tg_close(c);
}

/* An input that a function assigns to is memory that it knows by no other name. */
static bool undefined(int fn, int history) {
  bool given = histories[history] == input_known || histories[history] == input_known_later ||
               histories[history] == it_of_input || histories[history] == input_is_state;
  return given && (functions[fn] == assigns_input || functions[fn] == assigns_input_later);
}

static void all_on(const char *device, bool split) {
  for (int fn = 0; fn < COUNT(functions); fn++)
    for (int history = 0; history < COUNT(histories); history++) {
      if (undefined(fn, history)) continue;
      World want = lived(device, split, fn, history, false), got = lived(device, split, fn, history, true);
      assert_int_equal(want.n, got.n);
      for (int i = 0; i < want.n; i++)
        if (want.read[i] != got.read[i])
          fail_msg("%s%s, function %d, history %d: value %d of %d is %d, not %d", device,
                   split ? " and another" : "", fn, history, i, want.n, got.read[i], want.read[i]);
    }
}

static void test_interp(void **state) {
  (void)state;
  all_on("INTERP", false);
}

static void test_cpu(void **state) {
  (void)state;
  all_on("CPU", false);
}

static void test_split(void **state) {
  (void)state;
  all_on("INTERP", true);
}

/* Where nothing changes, the third run calls no function: whatever it reads. */
static void test_replays(void **state) {
  (void)state;
  for (int fn = 0; fn < COUNT(functions); fn++) {
    if (functions[fn] == assigns_input_later) continue;
    World w = {.device = "INTERP", .fn = fn, .captured = true};
    w.c = tg_open_with(.device = "INTERP");
    w.s[0] = memory(&w, 0, 10), w.s[1] = memory(&w, 5, 0), w.x = memory(&w, 2, 1);
    w.e = tg_keep(tg_mul_scalar(w.s[1], 5));
    w.jit = tg_jit(w.c, called, &w);
    run(&w, 6);
    if (w.calls != 2) fail_msg("function %d was called %d times", fn, w.calls);
    tg_jit_free(w.jit);
    tg_close(w.c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_interp), cmocka_unit_test(test_cpu),
                                     cmocka_unit_test(test_split), cmocka_unit_test(test_replays),
                                     cmocka_unit_test(test_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
