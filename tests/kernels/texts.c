/* texts.c: collects kernel texts. The behaviour tests are run as they stand, on a device that renders and
 * computes nothing: their numbers mean nothing there, so the checks of values are taken out of them and only
 * the graphs they build count. */
#include "kernels/texts.h"
#include "kernels/golden.h"
#include "programs.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static Texts *into; /* while texts_collect runs */

static void *room(void *p, size_t n) {
  if (!(p = realloc(p, n))) fprintf(stderr, "texts: out of memory\n"), exit(2);
  return p;
}

static char *copy(const char *s) { return strcpy(room(NULL, strlen(s) + 1), s); }

static void take(const TgKernelText *k, void *user) {
  Texts *t = user;
  for (size_t i = 0; i < t->len; i++)
    if (!strcmp(t->at[i].source, k->source)) return;
  if (t->len == t->cap) t->cap = 2 * t->cap + 64, t->at = room(t->at, t->cap * sizeof *t->at);
  t->at[t->len++] = (Text){copy(k->name), copy(k->source)};
}

/* ---- the behaviour tests, without their checks */
static TgContext *watched(const TgOpenOptions *o) {
  TgContext *ctx = tg_open(o);
  tg_watch_kernels(ctx, take, into);
  return ctx;
}

static jmp_buf leave; /* out of a test that cannot go on */

static void run_all(const struct CMUnitTest *tests, size_t n) {
  for (volatile size_t i = 0; i < n; i++) {
    void *state = NULL;
    if (!setjmp(leave) && !tests[i].setup_func(&state)) tests[i].test_func(&state);
    tests[i].teardown_func(&state);
  }
}

#undef fail_msg
#undef skip
#undef assert_true
#undef assert_non_null
#undef assert_int_equal
#undef assert_in_range
#undef assert_memory_equal
#undef assert_string_equal
#define fail_msg(...)                                                                                        \
  ((void)(tg_error(C) ? longjmp(leave, 1), 0 : 0)) /* a wrong number goes on, an error does not */
#define skip()                       longjmp(leave, 1)
#define assert_true(x)               ((void)(x))
#define assert_non_null(x)           ((void)(x))
#define assert_int_equal(a, b)       ((void)(a), (void)(b))
#define assert_in_range(a, b, c)     ((void)(a), (void)(b), (void)(c))
#define assert_memory_equal(a, b, n) ((void)(a), (void)(b), (void)(n))
#define assert_string_equal(a, b)    ((void)(a), (void)(b))
#undef cmocka_run_group_tests_name
#define cmocka_run_group_tests_name(name, tests, before, after)                                              \
  (run_all((tests), sizeof(tests) / sizeof *(tests)), 0)
#define tg_open watched
#define main    behaviours_main
#pragma GCC diagnostic ignored "-Wunused"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "device/test_behaviours.c"
#undef main
#undef tg_open

static void collect_golden(const char *dev) {
  for (int i = 0; i < golden_count; i++) {
    golden_env(&golden_programs[i], dev);
    TgContext *ctx =
        watched(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = dev, .seed = GOLDEN_SEED});
    golden_env(NULL, NULL);
    TgTensor *out[GOLDEN_OUTPUTS];
    int n = golden_programs[i].build(ctx, out);
    if (n) (void)tg_realize_many(out, (size_t)n);
    tg_close(ctx);
  }
}

static void collect_programs(const char *dev) { /* two steps: the second has the optimiser's state */
  for (int i = 0; program_info(i); i++) {
    TgContext *ctx = watched(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = dev, .seed = 1});
    int size = program_info(i)->size;
    ProgramState *p = program_begin(ctx, i, size > 50 ? 50 : size);
    for (int step = 0; p && step < 2; step++)
      (void)program_step(p);
    program_end(p);
    tg_close(ctx);
  }
}

Texts texts_collect(const char *language) {
  Texts t = {0};
  char dev[32], *argv[] = {"behaviours", dev, NULL};
  snprintf(dev, sizeof dev, "NULL:%s", language);
  into = &t;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = dev});
  const char *prelude = tg_source_prelude(ctx);
  t.prelude = copy(prelude ? prelude : "");
  tg_close(ctx);
  collect_golden(dev);
  collect_programs(dev);
  behaviours_main(2, argv);
  into = NULL;
  return t;
}

void texts_free(Texts *t) {
  for (size_t i = 0; i < t->len; i++)
    free(t->at[i].name), free(t->at[i].source);
  free(t->at), free(t->prelude);
  *t = (Texts){0};
}

char *texts_unit(const Texts *t, size_t first, size_t n) {
  size_t size = strlen(t->prelude) + 1, at = 0;
  for (size_t i = first; i < first + n; i++)
    size += strlen(t->at[i].source) + 2 * strlen(t->at[i].name) + 100;
  char *out = room(NULL, size);
  at += (size_t)sprintf(out, "%s", t->prelude);
  for (size_t i = first; i < first + n; i++) {
    const Text *x = &t->at[i];
    at += (size_t)sprintf(out + at, "#define %s k%zu_%s\n%s#undef %s\n", x->name, i, x->name, x->source,
                          x->name);
  }
  return out;
}
