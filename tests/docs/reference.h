/* reference.h: what the examples of the reference share. Each of them is shown beside its function by `make docs`
 * (tools/docs/examples.py), where T(text) stands as tg_from_text(ctx, text), and is(x, text) as x and a comment. */
#ifndef TG_TESTS_REFERENCE_H
#define TG_TESTS_REFERENCE_H
#include "tg_nn.h"
#include "tg_io.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *ctx;

static int open_context(void **state) {
  (void)state;
  ctx = tg_open_with(.device = "INTERP", .seed = 7);
  return tg_error(ctx);
}

static int close_context(void **state) {
  (void)state;
  int bad = tg_error(ctx);
  if (bad) fprintf(stderr, "%s\n", tg_errmsg(ctx));
  tg_close(ctx);
  return bad;
}

#define T(text) tg_from_text(ctx, text)

/* "f32 (2, 2) [[1, 2], [3, 4]]": four digits of each number, so that rounding does not count */
static inline const char *tensor_text(TgTensor *t) {
  static char text[4096];
  static double v[256];
  int nd = tg_ndim(t);
  size_t n = (size_t)tg_numel(t), at = 0;
  if (!t) return tg_errmsg(ctx);
  assert_true(n <= 256);
  assert_int_equal(tg_read_f64(t, v, n), TG_OK);
  at += (size_t)sprintf(text + at, "%s (", tg_dtype_name(tg_dtype(t)));
  for (int i = 0; i < nd; i++)
    at += (size_t)sprintf(text + at, i ? ", %d" : "%d", (int)tg_shape(t)[i]);
  at += (size_t)sprintf(text + at, ") ");
  for (size_t k = 0; k < n; k++) {
    size_t inner = 1;
    for (int i = nd - 1; i >= 0 && k % (inner *= (size_t)tg_shape(t)[i]) == 0; i--)
      text[at++] = '[';
    bool whole = v[k] == (double)(int64_t)v[k] && v[k] < 1e15 && v[k] > -1e15;
    if (v[k] != v[k])
      at += (size_t)sprintf(text + at, "nan");
    else
      at += (size_t)sprintf(text + at, whole ? "%.0f" : "%.4g", v[k] == 0 ? 0.0 : v[k]);
    inner = 1;
    for (int i = nd - 1; i >= 0 && (k + 1) % (inner *= (size_t)tg_shape(t)[i]) == 0; i--)
      text[at++] = ']';
    if (k + 1 < n) at += (size_t)sprintf(text + at, ", ");
  }
  text[at] = 0;
  return text;
}

/* TG_REFERENCE=write: says what is there instead of comparing, for who writes examples */
static inline void is_at(int line, TgTensor *t, const char *want) {
  const char *got = tensor_text(t);
  if (getenv("TG_REFERENCE"))
    printf("=%d=%s\n", line, got);
  else if (strcmp(got, want))
    fail_msg("line %d: %s\nexpected %s", line, got, want);
}

#define is(t, want) is_at(__LINE__, t, want)
#endif
