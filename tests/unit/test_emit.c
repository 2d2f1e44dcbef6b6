/* test_emit.c: a renderer writes an op or refuses it by its name, for every op and every language: no text
 * stands with a hole in it, and tg_opt gives none where rendering fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "tg.h"
#include "uop/uop.h"

static const char *const languages[] = {"c", "cuda", "metal"};
static const char *const dtypes[] = {"f32", "f64", "f16", "i32", "u64", "bool"};

/* One elementwise op, of values that are loaded; its result stored where it can be. */
static void program_of(char *to, size_t cap, Ops op, const char *dtype) {
  static const char *const sources[] = {"", "u1", "u1, u1", "u1, u1, u1"};
  const char *of = op == OPS_WHERE ? "u2, u1, u1" : sources[op_nsrc(op)];
  bool cast = op == OPS_CAST || op == OPS_BITCAST, table = op == OPS_LOOKUP4;
  const char *gives = cast    ? "[i32]"
                      : table ? "[(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255)]"
                              : "";
  const char *out = op_flags(op) & OPF_CMP ? "bool" : cast ? "i32" : dtype;
  snprintf(to, cap,
           "program k: 3 params, 1 threads, grid 1 1 1, block 1 1 1\n"
           "p0 = PARAM[%s, 0, 64]\np1 = PARAM[%s, 1, 64]\np2 = PARAM[bool, 2, 64]\n"
           "a = INDEX(p1, 0:i64)\nu1 = LOAD(a)\nb = INDEX(p2, 0:i64)\nu2 = LOAD(b)\n"
           "u3 = %s%s(%s)\nd = INDEX(p0, 0:i64)\nSTORE(d, u3)\n",
           out, dtype, op_name(op), gives, of);
}

static bool has_hole(const char *text) {
  static const char *const holes[] = {"= ;", "(, ", ", )", "return ;", "(;"};
  const char *body = strstr(text, " k(");
  for (size_t i = 0; i < sizeof holes / sizeof *holes; i++)
    if (body && strstr(body, holes[i])) return true;
  return !body;
}

static void test_every_op(void **state) {
  (void)state;
  int written = 0, refused = 0;
  for (size_t l = 0; l < sizeof languages / sizeof *languages; l++)
    for (int op = 0; op < OPS_COUNT; op++)
      for (size_t d = 0; op_is_alu((Ops)op) && d < sizeof dtypes / sizeof *dtypes; d++) {
        TgContext *c = tg_open_with(.device = "INTERP");
        char graph[1000];
        program_of(graph, sizeof graph, (Ops)op, dtypes[d]);
        const char *text = tg_opt(c, graph, .emit = languages[l]);
        if (text && has_hole(text)) fail_msg("%s, %s, %s:\n%s", languages[l], op_name(op), dtypes[d], text);
        if (!text && !tg_error(c)) fail_msg("%s, %s: no text, no error", languages[l], op_name(op));
        bool named = text || strstr(tg_errmsg(c), op_name(op)) || strstr(tg_errmsg(c), "Metal has no f64");
        if (!named) fail_msg("%s, %s: %s", languages[l], op_name(op), tg_errmsg(c));
        written += text != NULL, refused += text == NULL;
        tg_close(c);
      }
  assert_true(written > 200 && refused > 50);
}

/* A register of one bool is a byte as the bools in memory are; of lanes, as vectors of masks are. */
static void test_bool_registers(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "INTERP");
  const char *one = tg_opt(c,
                           "program k: 2 params, 1 threads, grid 1 1 1, block 1 1 1\n"
                           "p0 = PARAM[bool, 0, 64]\np1 = PARAM[bool, 1, 64]\n"
                           "g = DEFINE_REG[bool, 0, 1]\na = INDEX(p1, 0:i64)\nu1 = LOAD(a)\nSTORE(g, u1)\n"
                           "b = INDEX(p1, 1:i64)\nu2 = LOAD(b)\nSTORE(g, u2)\n"
                           "u3 = LOAD(g)\nd = INDEX(p0, 0:i64)\nSTORE(d, u3)\n",
                           .emit = "c");
  if (!one) fail_msg("%s", tg_errmsg(c));
  if (!strstr(one, " u8 acc0") || strstr(one, "i8 acc0 ")) print_message("%s", one);
  assert_non_null(strstr(one, "  u8 acc0"));
  tg_close(c);
}

/* Signed arithmetic is written as it stands where its bounds say that it cannot overflow, else on unsigned
 * bits. */
static void test_overflow(void **state) {
  (void)state;

  static const struct {
    const char *dtype, *a, *op, *b;
    bool plain;
  } is[] = {
      {"i64", "CAST[i64](u1)", "MUL", "1000:i64", true},
      {"i64", "CAST[i64](u1)", "MUL", "4294967296:i64", true},
      {"i64", "CAST[i64](u1)", "MUL", "4294967297:i64", false}, /* -2^31 * that */
      {"i64", "CAST[i64](u1)", "MUL", "-4294967297:i64", false},
      {"i64", "CAST[i64](u1)", "ADD", "9223372034707292160:i64", true},
      {"i64", "CAST[i64](u1)", "ADD", "9223372034707292161:i64", false},
      {"i64", "CAST[i64](u1)", "SUB", "9223372034707292160:i64", true},
      {"i64", "CAST[i64](u1)", "SUB", "9223372034707292161:i64", false},
      {"i64", "CAST[i64](u1)", "MUL", "CAST[i64](u1)", true},
      {"i64", "CAST[i64](CAST[u32](u1))", "MUL", "CAST[i64](CAST[u32](u1))", false},
      {"i64", "v", "ADD", "1:i64", false},
      {"i64", "1:i64", "ADD", "v", false},
      {"i32", "CAST[i32](CAST[i16](u1))", "MUL", "65536:i32", true},
      {"i32", "CAST[i32](CAST[i16](u1))", "MUL", "65537:i32", false},
      {"i32", "u1", "ADD", "1:i32", false},
      {"i32", "u1", "SUB", "1:i32", false},
  };

  TgContext *c = tg_open_with(.device = "INTERP");
  for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
    char graph[1000];
    snprintf(graph, sizeof graph,
             "program k: 3 params, 1 threads, grid 1 1 1, block 1 1 1\n"
             "p0 = PARAM[%s, 0, 64]\np1 = PARAM[i32, 1, 64]\np2 = PARAM[i64, 2, 64]\n"
             "i = INDEX(p1, 0:i64)\nu1 = LOAD(i)\nj = INDEX(p2, 0:i64)\nv = LOAD(j)\n"
             "u3 = %s(%s, %s)\nd = INDEX(p0, 0:i64)\nSTORE(d, u3)\n",
             is[i].dtype, is[i].op, is[i].a, is[i].b);
    const char *text = tg_opt(c, graph, .emit = "c"), *body = text ? strstr(text, " k(") : NULL;
    if (!body) fail_msg("%s: %s", graph, tg_errmsg(c));
    bool plain = !strstr(body, "(u64)") && !strstr(body, "(u32)v") && !strstr(body, "((u32)");
    if (plain != is[i].plain) fail_msg("%s:\n%s", graph, body);
  }
  tg_close(c);
}

/* What is no elementwise op and stands in no program is refused too. */
static void test_no_text(void **state) {
  (void)state;

  static const struct {
    const char *graph, *emit, *says;
  } cases[] = {
      {"program k: 2 params, 1 threads, grid 1 1 1, block 1 1 1\np0 = PARAM[f32, 0, 8]\np1 = PARAM[f32, 1, "
       "8]\nu3 = INDEX(p1, 0:i64)\nu4 = LOAD(u3)\nu5 = TAN(u4)\nu6 = INDEX(p0, 0:i64)\nSTORE(u6, u5)\n",
       NULL, "TAN f32 x1"},
      {"u0 = BUFFER[f64, 0, 24]\nu1 = BUFFER[f64, 1, 24]\nu2 = MUL(u0, u1)\n", "metal", "Metal has no f64"}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t l = 0; l < sizeof languages / sizeof *languages; l++) {
      TgContext *c = tg_open_with(.device = "INTERP");
      if (cases[i].emit && strcmp(cases[i].emit, languages[l])) {
        assert_non_null(tg_opt(c, cases[i].graph, .emit = languages[l]));
        assert_int_equal(tg_error(c), TG_OK);
      } else {
        assert_null(tg_opt(c, cases[i].graph, .emit = languages[l]));
        if (!strstr(tg_errmsg(c), cases[i].says)) fail_msg("%s: %s", languages[l], tg_errmsg(c));
      }
      tg_close(c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_op), cmocka_unit_test(test_bool_registers),
                                     cmocka_unit_test(test_overflow), cmocka_unit_test(test_no_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
