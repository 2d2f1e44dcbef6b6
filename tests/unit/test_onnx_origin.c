/* test_onnx_origin.c: kernels of an ONNX model say which nodes they compute, though the handles of its run have ended. The
 * model is written here: y = Exp(x), z = Neg(y). */
#define _GNU_SOURCE
#include "tg_io.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "tests/files/protobuf.h"

static void value(Msg *g, int field, const char *name, int64_t n) {
  Msg d = {0}, shape = {0}, tensor = {0}, t = {0}, v = {0};
  put_int(&d, 1, n), put(&shape, 1, &d);
  put_int(&tensor, 1, 1), put(&tensor, 2, &shape), put(&t, 1, &tensor);
  put_text(&v, 1, name), put(&v, 2, &t), put(g, field, &v);
}

static Msg model(void) {
  static const char *const nodes[][4] = {{"x", "y", "block/first", "Exp"}, {"y", "z", "second/Neg", "Neg"}};
  Msg g = {0}, m = {0}, o = {0};
  value(&g, 11, "x", 4), value(&g, 12, "z", 4);
  for (int i = 0; i < 2; i++) {
    Msg n = {0};
    for (int k = 0; k < 4; k++)
      put_text(&n, k + 1, nodes[i][k]);
    put(&g, 1, &n);
  }
  put_int(&o, 2, 18), put_int(&m, 1, 8), put(&m, 7, &g), put(&m, 8, &o);
  return m;
}

static void origin_seen(const TgLaunch *l, void *user) { snprintf(user, 200, "%s", l->origin); }

static void test_origins(void **state) {
  (void)state;
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP"});
  assert_int_equal(tg_error(c), TG_OK);
  tg_setting(c, "ORIGIN", 1);
  Msg m = model();
  TgOnnx *o = tg_onnx_load(tg_from_bytes(c, m.b, m.n, TG_U8));
  TgTensor *in = tg_from_text(c, "[1.0, 2.0, 3.0, 4.0]"), *out = NULL;
  char origin[200] = "";
  if (!o || tg_onnx_run(o, (const char *[]){"x"}, &in, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  assert_int_equal(tg_schedule(&out, 1, origin_seen, origin), 1);
  assert_string_equal(origin, "block/first/Exp, second/Neg");
  tg_onnx_free(o);
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_origins)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
