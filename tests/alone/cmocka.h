/* cmocka.h: what the tests use of cmocka, for a machine that has no cmocka and no network (make gpu-check).
 * Where the library is, it is used. A failed assertion leaves the test by longjmp, as there. */
#ifndef TG_ALONE_CMOCKA_H
#define TG_ALONE_CMOCKA_H
#include <fnmatch.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
  const char *name;
  void (*test_func)(void **state);
  int (*setup_func)(void **state);
  int (*teardown_func)(void **state);
  void *initial_state;
};

#define cmocka_unit_test(f)                                                                                  \
  { #f, f, NULL, NULL, NULL }
#define cmocka_unit_test_setup_teardown(f, up, down)                                                         \
  { #f, f, up, down, NULL }

static jmp_buf alone_leave;
static const char *alone_filter;

enum { ALONE_FAILED = 1, ALONE_SKIPPED = 2 };

static inline void alone_print(FILE *to, const char *text, ...) {
  va_list v;
  va_start(v, text);
  vfprintf(to, text, v);
  va_end(v);
}

#define print_message(...) alone_print(stdout, __VA_ARGS__)
#define fail_msg(...)                                                                                        \
  (alone_print(stdout, __VA_ARGS__), alone_print(stdout, "\n%s:%d\n", __FILE__, __LINE__),                   \
   longjmp(alone_leave, ALONE_FAILED))
#define skip()                     longjmp(alone_leave, ALONE_SKIPPED)
#define alone_check(c, text)       ((c) ? (void)0 : fail_msg("%s", text))
#define assert_true(c)             alone_check((c), #c)
#define assert_false(c)            alone_check(!(c), "not " #c)
#define assert_non_null(p)         alone_check((p) != NULL, #p)
#define assert_null(p)             alone_check((p) == NULL, "not " #p)
#define assert_ptr_equal(a, b)     alone_check((const void *)(a) == (const void *)(b), #a " is " #b)
#define assert_int_equal(a, b)     alone_check((uintmax_t)(a) == (uintmax_t)(b), #a " == " #b)
#define assert_int_not_equal(a, b) alone_check((uintmax_t)(a) != (uintmax_t)(b), #a " != " #b)
#define assert_in_range(v, a, b)                                                                             \
  alone_check((uintmax_t)(v) >= (uintmax_t)(a) && (uintmax_t)(v) <= (uintmax_t)(b), #v " in " #a " .. " #b)
#define assert_string_equal(a, b)    alone_check(!strcmp((a), (b)), #a " is " #b)
#define assert_memory_equal(a, b, n) alone_check(!memcmp((a), (b), (n)), #a " holds " #b)
#define assert_float_equal(a, b, e)  alone_check(fabs((double)(a) - (double)(b)) <= (e), #a " is nearly " #b)
#define cmocka_set_test_filter(text) ((void)(alone_filter = (text)))

static inline int alone_run(const struct CMUnitTest *t, size_t n, int (*before)(void **),
                            int (*after)(void **)) {
  void *group = NULL;
  volatile int failed = 0, passed = 0;
  if (before && before(&group)) return 1;
  printf("[==========] Running %zu test(s).\n", n);
  for (volatile size_t i = 0; i < n; i++) {
    void *state = t[i].initial_state ? t[i].initial_state : group;
    if (alone_filter && fnmatch(alone_filter, t[i].name, 0)) continue;
    printf("[ RUN      ] %s\n", t[i].name);
    int how = setjmp(alone_leave);
    if (!how) {
      if (t[i].setup_func && t[i].setup_func(&state)) fail_msg("Test setup failed");
      t[i].test_func(&state);
    }
    volatile int result = how;
    if (!setjmp(alone_leave)) {
      if (t[i].teardown_func && t[i].teardown_func(&state)) result = ALONE_FAILED;
    } else
      result = ALONE_FAILED;
    failed += result == ALONE_FAILED, passed += !result;
    printf("%s %s\n",
           !result                   ? "[       OK ]"
           : result == ALONE_SKIPPED ? "[  SKIPPED ]"
                                     : "[  FAILED  ]",
           t[i].name);
    fflush(stdout);
  }
  if (after && after(&group)) failed++;
  printf("[==========] %zu test(s) run.\n[  PASSED  ] %d test(s).\n", n, passed);
  return failed;
}

#define cmocka_run_group_tests(t, before, after) alone_run(t, sizeof(t) / sizeof *(t), before, after)
#define cmocka_run_group_tests_name(name, t, before, after)                                                  \
  alone_run(t, sizeof(t) / sizeof *(t), before, after)
#endif
