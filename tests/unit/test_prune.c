/* test_prune.c: kernels are compiled with the helpers that they use and no others. */
#include "base/base.h"
#include "renderer/renderer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgMem mem;

static char *pruned(const char *source) {
  Str all, some;
  str_init(&all, &mem), str_init(&some, &mem);
  renderer_c.prelude(&all);
  assert_true(prelude_prune(&some, str_text(&all), &source, 1));
  char *text = strdup(str_text(&some));
  str_free(&all), str_free(&some);
  return text;
}

static void test_helpers(void **state) {
  (void)state;

  static const struct {
    const char *source, *has[4], *lacks[3];
  } cases[] = {
      {"void k(void) { }", {"typedef float f32;", "#define INL"}, {"u32_bits(", "\nDIVS(", "\nSATS("}},
      {"x = f32_f16(h);",
       {"f32_f16(u16", "f32_bits(u32", "u32_bits(f32"},
       {"f32_bf16(", "\nDIVS(i8", "odd_"}}, /* and what they call */
      {"x = floormod_i16(a, b);", {"\nDIVS(i16,"}, {"\nDIVS(u16,", "\nSATS(", "fma_f32("}},
      {"x = u8_f32(y) + odd_i32(z);",
       {"\nSATS(f32)", "odd_i32(", "odd_i64(", "odd_u64("},
       {"\nSATS(f64)", "\nDIVS(i8"}},
      {"x = i64_f64(y);", {"\nSATS(f64)"}, {"\nSATS(f32)"}},
      {"x = fma_f32x16(a, b, c);", {"#define FMA512"}, {"fma_f32("}}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *text = pruned(cases[i].source);
    for (int k = 0; k < 4 && cases[i].has[k]; k++)
      if (!strstr(text, cases[i].has[k]))
        fail_msg("%s: no %s in\n%s", cases[i].source, cases[i].has[k], text);
    for (int k = 0; k < 3 && cases[i].lacks[k]; k++)
      if (strstr(text, cases[i].lacks[k]))
        fail_msg("%s: %s in\n%s", cases[i].source, cases[i].lacks[k], text);
    free(text);
  }
  assert_int_equal(mem.live, 0);
}

static void test_no_memory(void **state) {
  (void)state;
  const char *source = "x = f32_f16(h) + floormod_i16(a, b);";
  for (uint64_t n = 1;; n++) {
    TgMem m = {.fail_at = n};
    Str out;
    str_init(&out, &m);
    bool ok = prelude_prune(&out, "INL f32 f32_f16(u16 h) { return h; }\nINL f32 other(void) { return 1; }\n",
                            &source, 1);
    str_free(&out);
    assert_int_equal(m.live, 0);
    if (m.calls < n) {
      assert_true(ok);
      break;
    }
    assert_false(ok);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_helpers), cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
