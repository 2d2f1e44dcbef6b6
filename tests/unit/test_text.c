/* test_text.c: text is read as the nodes it says, exactly; what is printed reads back; errors say where; no
 * input crashes the parser. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "uop/spec.h"
#include "uop/text.h"

static TgMem mem;
static UOpStore *st;
static UOpText parsed;

static bool parse(const char *text, TgError *err) {
  return uop_parse(&parsed, st, &mem, text, strlen(text), err);
}

static UOp *root_of(const char *text) {
  TgError err = {0};
  UOp *u = NULL;
  if (!parse(text, &err)) fail_msg("%s\n%s", text, err.msg);
  if (parsed.roots.len) u = parsed.roots.at[parsed.roots.len - 1];
  uop_text_free(&parsed);
  return u;
}

static UOp *constant(DType d, Scalar v) {
  return uop_new(st, OPS_CONST, d, 1, 0, NULL, (Arg){.raw = {v.i, 0}});
}

static double from_bits(uint64_t b) {
  double f;
  memcpy(&f, &b, sizeof f);
  return f;
}

static void setup_store(void) { st = store_new(&mem); }

static void end_store(void) {
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* Same store, so the right node is the same pointer. */
static void test_values(void **state) {
  (void)state;
  setup_store();

  const struct {
    const char *text;
    DType d;
    Scalar v;
  } is[] = {{"8", DT_INDEX, {.i = 8}},
            {"-8", DT_INDEX, {.i = -8}},
            {"0x10", DT_INDEX, {.i = 16}},
            {"9223372036854775807", DT_INDEX, {.i = INT64_MAX}},
            {"-9223372036854775808", DT_INDEX, {.i = INT64_MIN}},
            {"-9223372036854775808:i64", DT_I64, {.i = INT64_MIN}},
            {"18446744073709551615:u64", DT_U64, {.i = -1}},
            {"9223372036854775808:u64", DT_U64, {.i = INT64_MIN}},
            {"1:bool", DT_BOOL, {.i = 1}},
            {"-128:i8", DT_I8, {.i = -128}},
            {"255:u8", DT_U8, {.i = 255}},
            {"4294967295:u32", DT_U32, {.i = 4294967295}},
            {"0:f32", DT_F32, {.f = 0}},
            {"-0:f32", DT_F32, {.f = -0.0}},
            {"-0.0:f64", DT_F64, {.f = -0.0}},
            {"5:f64", DT_F64, {.f = 5}},
            {"0.1:f64", DT_F64, {.f = 0.1}},
            {"0.1:f32", DT_F32, {.f = 0.1f}},
            {"1e-45:f32", DT_F32, {.f = 0x1p-149}},
            {"5e-324:f64", DT_F64, {.f = 0x1p-1074}},
            {"1.7976931348623157e308:f64", DT_F64, {.f = 0x1.fffffffffffffp1023}},
            {"1e999:f64", DT_F64, {.f = INFINITY}},
            {"1e39:f32", DT_F32, {.f = INFINITY}},
            {"0x1.8p+1:f64", DT_F64, {.f = 3}},
            {"-0x1.fffffep127:f32", DT_F32, {.f = -0x1.fffffep127}},
            {"0x.8:f64", DT_F64, {.f = 0.5}},
            {"inf:f16", DT_F16, {.f = INFINITY}},
            {"-inf:bf16", DT_BF16, {.f = -INFINITY}},
            {"65504:f16", DT_F16, {.f = 65504}},
            {"0.333251953125:f16", DT_F16, {.f = 0.333251953125}},
            {"448:fp8e4m3", DT_FP8E4M3, {.f = 448}},
            {"0.3125:fp8e4m3", DT_FP8E4M3, {.f = 0.3125}},
            {"-inf:fp8e5m2", DT_FP8E5M2, {.f = -INFINITY}},
            {"57344:fp8e5m2", DT_FP8E5M2, {.f = 57344}}};

  for (size_t i = 0; i < TG_COUNT(is); i++)
    if (root_of(is[i].text) != constant(is[i].d, is[i].v)) fail_msg("%s", is[i].text);
  assert_ptr_equal(root_of("nan:f64"),
                   constant(DT_F64, (Scalar){.f = from_bits(UINT64_C(0x7ff8000000000000))}));
  assert_ptr_equal(root_of("nan(0xfff8000000000001):f64"),
                   constant(DT_F64, (Scalar){.f = from_bits(UINT64_C(0xfff8000000000001))}));
  assert_ptr_equal(root_of("CONST[f32x4, 1.5]"),
                   uop_new(st, OPS_CONST, DT_F32, 4, 0, NULL, (Arg){.v = {.f = 1.5}}));
  end_store();
}

static void test_nodes(void **state) {
  (void)state;
  setup_store();
  UOp *r = uop_range(st, 8, 0, AXIS_LOOP);
  UOp *p = uop_new(st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {64, 2}});
  UOp *i4 = uop_alu2(st, OPS_ADD, uop_alu2(st, OPS_MUL, r, uop_index_const(st, 4)), uop_index_const(st, 1));
  UOp *ix = UNEW(st, OPS_INDEX, DT_F32, 4, ARG0, p, i4);
  UOp *g = uop_alu2(st, OPS_CMPLT, r, uop_index_const(st, 3));
  const char *head = "r0 = RANGE[0, LOOP](8)\np2 = PARAM[f32, 2, 64]\n";

  const struct {
    const char *text;
    UOp *want;
  } is[] = {
      {"FLOORMOD(r0, 8)", uop_alu2(st, OPS_FLOORMOD, r, uop_index_const(st, 8))},
      {"r0 % 8", uop_alu2(st, OPS_FLOORMOD, r, uop_index_const(st, 8))},
      {"1 + r0", uop_alu2(st, OPS_ADD, uop_index_const(st, 1), r)},
      {"(r0 < 3) & (r0 != 1) | 0",
       uop_alu2(st, OPS_OR, uop_alu2(st, OPS_AND, g, uop_alu2(st, OPS_CMPNE, r, uop_index_const(st, 1))),
                uop_const_int(st, DT_BOOL, 0))},
      {"r0 - 1 - 2",
       uop_alu2(st, OPS_SUB, uop_alu2(st, OPS_SUB, r, uop_index_const(st, 1)), uop_index_const(st, 2))},
      {"r0//2%3", uop_alu2(st, OPS_FLOORMOD, uop_alu2(st, OPS_FLOORDIV, r, uop_index_const(st, 2)),
                           uop_index_const(st, 3))},
      {"LOAD(INDEX[f32x4](p2, r0 * 4 + 1))", UNEW(st, OPS_LOAD, DT_F32, 4, ARG0, ix)},
      {"INDEX[gated](p2, r0, r0 < 3)", UNEW(st, OPS_INDEX, DT_F32, 1, ((Arg){.i = 1}), p, r, g)},
      {"REDUCE[MAX](INDEX(p2, r0), r0)", UNEW(st, OPS_REDUCE, DT_F32, 1, ((Arg){.reduce = {NULL, OPS_MAX}}),
                                              UNEW(st, OPS_INDEX, DT_F32, 1, ARG0, p, r), r)},
      {"CAST[f64](r0)", uop_cast(st, r, DT_F64)},
      {"WHERE(r0 < 3, r0, 7)", uop_where(st, g, r, uop_index_const(st, 7))},
      {"VECTORIZE[f32x4](1:f32)", UNEW(st, OPS_VECTORIZE, DT_F32, 4, ARG0, uop_const_int(st, DT_F32, 1))},
      {"GEP[2](VECTORIZE(r0, r0, r0))",
       UNEW(st, OPS_GEP, DT_INDEX, 1, ((Arg){.i = 2}), UNEW(st, OPS_VECTORIZE, DT_INDEX, 3, ARG0, r, r, r))},
      {"SPECIAL[1, 0](16)",
       UNEW(st, OPS_SPECIAL, DT_INDEX, 1, ((Arg){.special = {1, 0}}), uop_index_const(st, 16))},
      {"VAR[1, 2048]", uop_new(st, OPS_VAR, DT_INDEX, 1, 0, NULL, (Arg){.var = {1, 2048}})},
      {"SCATTER[ADD, old, once](BUFFER[f32, 0, 6], BUFFER[f32, 0, 6], BUFFER[i32, 1, 6])",
       UNEW(st, OPS_SCATTER, DT_F32, 1, ((Arg){.scatter = {OPS_ADD, SCATTER_OLD | SCATTER_ONCE}}),
            uop_new(st, OPS_BUFFER, DT_F32, 1, 0, NULL, (Arg){.param = {6, 0}}),
            uop_new(st, OPS_BUFFER, DT_F32, 1, 0, NULL, (Arg){.param = {6, 0}}),
            uop_new(st, OPS_BUFFER, DT_I32, 1, 0, NULL, (Arg){.param = {6, 1}}))},
      {"SCAN[MAX](2:f32, RANGE[3, ORDERED](5))",
       UNEW(st, OPS_SCAN, DT_F32, 1, ((Arg){.reduce = {NULL, OPS_MAX}}),
            uop_const(st, DT_F32, (Scalar){.f = 2}), uop_range(st, 5, 3, AXIS_ORDERED))},
      {"REDUCE_AXIS[ADD, (0, 1)](PERMUTE[(1, 0)](RESHAPE[(2, 3)](BUFFER[i32, 0, 6])))",
       UNEW(st, OPS_REDUCE_AXIS, DT_I32, 1, ((Arg){.reduce = {ints_get(st, 2, (int64_t[]){0, 1}), OPS_ADD}}),
            UNEW(st, OPS_PERMUTE, DT_I32, 1, ((Arg){.ints = ints_get(st, 2, (int64_t[]){1, 0})}),
                 UNEW(st, OPS_RESHAPE, DT_I32, 1, ((Arg){.ints = ints_get(st, 2, (int64_t[]){2, 3})}),
                      uop_new(st, OPS_BUFFER, DT_I32, 1, 0, NULL, (Arg){.param = {6, 0}}))))},
  };

  for (size_t i = 0; i < TG_COUNT(is); i++) {
    char text[512];
    snprintf(text, sizeof text, "%su = %s   # a comment\n", head, is[i].text);
    if (root_of(text) != is[i].want) fail_msg("%s", is[i].text);
  }
  end_store();
}

static const char *const texts[] = {
    /* as printed: one of every op, arg and form */
    "p0 = PARAM[f32, 0, 64]\nr0 = RANGE[0, LOOP](8)\nu2 = MUL(r0, 8)\nu3 = INDEX(p0, u2)\nu4 = CMPLT(u2, "
    "3)\nu5 = INDEX[gated](p0, r0, u4)\n"
    "u6 = MULACC(u5, 1.5:f32, -0:f32)\nu7 = ADD(u6, inf:f32)\nr1 = RANGE[1, REDUCE](4)\nu9 = REDUCE[ADD](u7, "
    "r1)\nu10 = STORE(u3, u9, r0)\nu11 = SINK(u10)\n",
    "u0 = BUFFER[f32, 0, 12]  # (12)\nu1 = RESHAPE[(3, 4)](u0)  # (3, 4)\nu2 = PERMUTE[(1, 0)](u1)  # (4, "
    "3)\nu3 = PAD[(0, 1, 2, 0)](u2)  # (5, 5)\n"
    "u4 = SHRINK[(1, 3, 0, 5)](u3)  # (2, 5)\nu5 = FLIP[(1, 0)](u4)  # (2, 5)\nu6 = REDUCE_AXIS[MAX, "
    "(0)](u5)  # (1, 5)\nu7 = EXPAND[(7, 5)](u6)  # (7, 5)\n"
    "u8 = CAST[i64](u7)  # (7, 5)\nu9 = CONTIGUOUS(u8)  # (7, 5)\nu10 = DETACH(u9)  # (7, 5)\nu11 = "
    "COPY[2](u10)  # (7, 5)\nu12 = ARANGE[i32, (9)]  # (9)\n"
    "u13 = BUFFER[f32, 7, 12]  # (12)\nu14 = STORE(u13, u0)  # (12)\nu15 = AFTER(u13, u14)  # (12)\nu16 = "
    "RESHAPE[()](0.1:f32)  # ()\nroots u11, u12, u15, u16, 3:f64\n",
    "program r_8: 2 params, 2 threads, grid 4 1 1, block 32 1 1\np0 = PARAM[f32, 0, 64]\np1 = PARAM[f64, 1, "
    "64]\nu2 = DEFINE_LOCAL[f32, 0, 256]\n"
    "u3 = DEFINE_REG[f32x4, 0, 1]\nu4 = VECTORIZE[f32x4](0:f32)\nu5 = STORE(u3, u4)\nr0 = RANGE[0, "
    "LOOP](8:i64)\nu7 = INDEX[f32x4](p0, r0)\nu8 = LOAD(u7)\n"
    "u9 = LOAD(u3, r0)\nu10 = MAX(u8, u9)\nu11 = GEP[f32x2, 2](u10)\nu12 = GEP[1](u10)\nu13 = CMPLT(u12, "
    "nan:f32)\nu14 = IF(u13)\nu15 = BARRIER\n"
    "u16 = INDEX(p1, -9223372036854775808:i64)\n"
    "u17 = INDEX[gated](p1, 9:i64, u13)\nu18 = BITCAST[u32](u12)\nu19 = CAST[u64](u18)\nu20 = XOR(u19, "
    "18446744073709551615:u64)\nu21 = THREEFRY(u20, 1:u64)\n"
    "u22 = ENDIF(u14)\nu23 = END(r0)\nu24 = SPECIAL[0, 1](32:i32)\nu25 = VAR[i32, 1, 5]\nu26 = "
    "VECTORIZE(u24, u25)\n",
    "u0 = VAR[-5, 9]\nu1 = WHERE(1:bool, u0, 7)\nu2 = NEG(u1)\nu3 = TUPLE(u0, u1, u2)\nu4 = CONST[f32x4, "
    "2.5]\nr9 = RANGE[9, VEC](u0)\nu6 = RANGE[9, LOOP](u0)\n"
    "u7 = AFTER[i8](u0, r9, u6)\nu8 = ADD[f16](u7, 0.333252:f16)\nu9 = ADD(u8, "
    "nan(0xfff8000000000000):f16)\nroots u3, u4, u9\n",
};

static void test_round_trip(void **state) {
  (void)state;
  for (size_t i = 0; i < TG_COUNT(texts); i++) {
    setup_store();
    TgError err = {0};
    Str out;
    str_init(&out, &mem);
    if (!parse(texts[i], &err)) fail_msg("%zu: %s", i, err.msg);
    bool ok = parsed.program.n ? uop_print_list(&out, &parsed.program, &mem)
                               : uop_print(&out, st, &mem, parsed.roots.at, parsed.roots.len);
    assert_true(ok);
    assert_string_equal(str_text(&out), texts[i]);
    uop_text_free(&parsed);
    str_free(&out);
    end_store();
  }
}

static void test_no_locale(void **state) { /* where a comma is the decimal point */
  (void)state;
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE") &&
      !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
    print_message("skipped: no locale here has a decimal comma\n");
    skip();
  }
  test_values(state);
  test_round_trip(state);
  setlocale(LC_NUMERIC, "C");
}

/* Blanks at the end are nothing, with or without an end of the line. */
static void test_blanks(void **state) {
  (void)state;
  static const char *const is[] = {"u0 = 1:f32\n   ", "u0 = 1:f32\n\t", "u0 = 1:f32\n  \n", "u0 = 1:f32   "};
  for (size_t i = 0; i < TG_COUNT(is); i++) {
    TgMem mem = {0};
    UOpStore *st = store_new(&mem);
    UOpText t;
    TgError err = {0};
    if (!uop_parse(&t, st, &mem, is[i], strlen(is[i]), &err)) fail_msg("'%s': %s", is[i], err.msg);
    uop_text_free(&t);
    store_free(st);
  }
}

/* A box has the colour of what its op is for. */
static void test_dot(void **state) {
  (void)state;

  static const struct {
    const char *text, *colour;
  } is[] = {
      {"b = BUFFER[f32, 0, 6]\nroots b\n", "#ffd8b1"},
      {"b = BUFFER[f32, 0, 6]\nRESHAPE[(2, 3)](b)\n", "#d0d0f8"},
      {"b = BUFFER[f32, 0, 6]\nNEG(b)\n", "#f4f4f4"},
      {"b = BUFFER[f32, 0, 6]\nREDUCE_AXIS[ADD, (0)](b)\n", "#ff9090"},
      {"b = BUFFER[f32, 0, 6]\nSCAN_AXIS[ADD, (0)](b)\n", "#ff9090"},
      {"b = BUFFER[f32, 0, 6]\ni = BUFFER[i32, 1, 6]\nGATHER(b, i)\n", "#c8e6a0"},
      {"b = BUFFER[f32, 0, 6]\ni = BUFFER[i32, 1, 6]\nSCATTER[ADD](b, b, i)\n", "#c8e6a0"},
      {"b = BUFFER[f32, 0, 6]\nSTORE(b, b)\n", "#c8e6a0"},
      {"r = RANGE[0, LOOP](8)\nroots r\n", "#ffc0c0"},
  };

  for (size_t i = 0; i < TG_COUNT(is); i++) {
    TgMem mem = {0};
    UOpStore *st = store_new(&mem);
    UOpText t;
    TgError err = {0};
    Str out;
    char box[60];
    assert_true(uop_parse(&t, st, &mem, is[i].text, strlen(is[i].text), &err));
    str_init(&out, &mem);
    assert_true(uop_dot(&out, st, &mem, t.roots.at, t.roots.len));
    snprintf(box, sizeof box, "n%u [fillcolor=\"%s\"", t.roots.at[0]->id, is[i].colour);
    if (!strstr(str_text(&out), box)) fail_msg("%s: no %s in\n%s", is[i].text, box, str_text(&out));
    str_free(&out), uop_text_free(&t);
    store_free(st);
    assert_int_equal(mem.live, 0);
  }
}

static void test_errors(void **state) {
  (void)state;

  static const struct {
    const char *text, *says;
  } is[] = {
      {"", "line 1, column 1: expected a graph, found nothing"},
      {"# nothing\n\n", "expected a graph, found nothing"},
      {"u0 = \n", "line 1, column 6: expected an expression, found the end of the line"},
      {"u0 = ADD(1, 2\n", "line 1, column 14: expected ')', found the end of the line"},
      {"u0 = ADD(1, x)\n", "line 1, column 13: expected a name or an op, found 'x', which is neither"},
      {"r0 = RANGE[0, LOOP](8)\nu1 = FLOORMOD(r0, 8) r0\n",
       "line 2, column 22: expected the end of the line, found 'r0'"},
      {"u0 = 1\nu0 = 2\n", "line 2, column 1: the name u0 is taken"},
      {"ADD = 1\n", "line 1, column 1: expected a name, found the op ADD"},
      {"u0 = RANGE[0, LOOPS](8)\n",
       "line 1, column 15: expected the type of a loop, such as LOOP, found 'LOOPS](8)'"},
      {"u0 = RANGE(8)\n", "line 1, column 11: expected '[', found '(8)'"},
      {"u0 = PARAM[0, 64]\n", "line 1, column 6: PARAM needs its dtype in brackets"},
      {"u0 = PARAM[f32, 0]\n", "line 1, column 18: expected ',', found ']'"},
      {"u0 = CAST(1)\n", "line 1, column 6: CAST needs its dtype in brackets"},
      {"u0 = VECTORIZE(1:f32)\n", "line 1, column 6: VECTORIZE needs its dtype and lanes in brackets"},
      {"u0 = NEG(1, 2)\n", "line 1, column 6: NEG: 2 sources, not 1"},
      {"u0 = NEG[1](1)\n", "line 1, column 10: expected a type, found '1](1)'"},
      {"u0 = 300:u8\n", "line 1, column 6: expected a value of u8"},
      {"u0 = -1:u64\n", "line 1, column 6: expected a value of u64"},
      {"u0 = 18446744073709551615:i64\n", "line 1, column 6: expected a value of i64"},
      {"u0 = 18446744073709551616:u64\n", "line 1, column 6: expected a value of u64"},
      {"u0 = 1.5:i32\n", "line 1, column 6: expected a value of i32"},
      {"u0 = 1.5\n", "line 1, column 6: expected ':' and a dtype after a number that is no integer"},
      {"u0 = 1:f33\n", "line 1, column 8: expected a dtype, found 'f33'"},
      {"u0 = RESHAPE[(2, 3)](BUFFER[f32, 0, 7])\n", "line 1, column 6: RESHAPE: 7 elements into 6"},
      {"u0 = PERMUTE[(0, 0)](RESHAPE[(2, 3)](BUFFER[f32, 0, 6]))\n", "PERMUTE: axis 1 of size 3: 0 0"},
      {"u0 = REDUCE_AXIS[ADD, (1)](BUFFER[f32, 0, 6])\n", "REDUCE_AXIS: axis 1"},
      {"u0 = EXPAND[(99999999999999999)](BUFFER[f32, 0, 1])\n", "EXPAND: 99999999999999999"},
      {"u0 = ADD(BUFFER[f32, 0, 6], 1:f32)\n", "ADD: source 1 has no shape"},
      {"u0 = 1\nprogram x: 0 params\n", "line 2, column 1: expected 'program' on the first line"},
      {"program x: many\n", "line 1, column 12: expected a number, found 'many'"},
      {"u0 = 1\nroots u0\nu1 = 2\n", "line 3, column 1: expected nothing after roots, found 'u1'"},
      {"program a123456789a123456789a123456789a123456789"
       "a123456789a123456789a123456789a123456789a123456789a123456789a123456789a123456789: 0 params\n",
       "the name is longer than 95 characters"},
      {"u0 = RANGE[0, GROUP, of 2147483643](8)\n", "expected the number of a loop"},
      {"u0 = RANGE[0, GROUP, of -1](8)\n", "expected the number of a loop"},
      {"u0 = nan(0x):f64\n", "line 1, column 6"}, /* the bits of a nan: all of them, and they are one */
      {"u0 = nan(0x:f64\n", "line 1, column 6"},
      {"u0 = nan(0xg):f64\n", "line 1, column 6"},
      {"u0 = nan(0x7ff8000000000000:f64\n", "line 1, column 6"},
      {"u0 = nan(0x7ff800000000000.8):f64\n", "line 1, column 6"},
      {"u0 = nan(0x7ff0000000000000):f64\n", "line 1, column 6"},
      {"u0 = nan(0x3ff0000000000000):f64\n", "line 1, column 6"},
      {"u0 = nan(7):f64\n", "line 1, column"},
      {"u0 = INDEX[gates](1)\n", "line 1, column 12: expected 'gated', found 'gates](1)'"},
  };

  for (size_t i = 0; i < TG_COUNT(is); i++) {
    setup_store();
    TgError err = {0};
    if (parse(is[i].text, &err)) fail_msg("%s was taken", is[i].text);
    if (!strstr(err.msg, is[i].says)) fail_msg("%ssays '%s', not '%s'", is[i].text, err.msg, is[i].says);
    uop_text_free(&parsed);
    end_store();
  }
  setup_store();
  char deep[4096] = "u0 = ";
  for (int i = 0; i < 2000; i++)
    strcat(deep, "(");
  TgError err = {0};
  assert_false(parse(deep, &err));
  assert_non_null(strstr(err.msg, "nested more than 64 deep"));
  uop_text_free(&parsed);
  end_store();
}

/* Valid texts, damaged: bytes changed, dropped, repeated; pieces of one text put into another. What is still
 * taken prints and reads back. */
static unsigned seed = 1;

static unsigned pick(unsigned n) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

static size_t damage(char *to, size_t cap) {
  const char *from = texts[pick(TG_COUNT(texts))], *other = texts[pick(TG_COUNT(texts))];
  static const char bytes[] = "()[],:=#\n\0 019-+xeu.&|<>!*/%^rpf\xff";
  size_t n = strlen(from), m = strlen(other);
  memcpy(to, from, n);
  for (unsigned k = 1 + pick(3); k-- > 0;) {
    size_t at = pick((unsigned)n), len = 1 + pick(40), q = pick((unsigned)m);
    switch (pick(9)) {
    case 0: to[at] = bytes[pick(sizeof bytes)]; break;
    case 1: to[at] = (char)(to[at] ^ (1 << pick(7))); break;
    case 2: len = TG_MIN(len, n - at), memmove(to + at, to + at + len, n - at - len), n -= len; break;
    case 3:
    case 4:
      len = TG_MIN(len, m - q);
      if (n + len > cap) break;
      memmove(to + at + len, to + at, n - at), memcpy(to + at, other + q, len), n += len;
      break;
    case 5:
    case 6:
    case 7: /* another digit, or a line's end gone */
      while (at < n && !(to[at] >= '0' && to[at] <= '9'))
        at++;
      if (at < n)
        to[at] = (char)('0' + pick(10));
      else
        n -= TG_MIN(n, 1 + pick(3));
      break;
    default: { /* a number becomes an extreme one */
      static const char *const big[] = {"9223372036854775807",
                                        "-9223372036854775808",
                                        "18446744073709551616",
                                        "1e400",
                                        "-1",
                                        "255",
                                        "65536",
                                        "nan(0x"};
      const char *s = big[pick(TG_COUNT(big))];
      while (at < n && !(to[at] >= '0' && to[at] <= '9'))
        at++;
      len = strlen(s);
      if (at >= n || n + len > cap) break;
      memmove(to + at + len, to + at + 1, n - at - 1), memcpy(to + at, s, len), n += len - 1;
    }
    }
    if (!n) break;
  }
  return n;
}

static void test_damaged(void **state) {
  (void)state;
  int taken = 0;
  if (getenv("TG_SEED")) seed = (unsigned)atoi(getenv("TG_SEED"));
  for (int i = 0; i < 20000; i++) {
    char text[6000], *exact;
    size_t n = damage(text, sizeof text);
    setup_store();
    exact = malloc(n + 1); /* so that a sanitizer sees a read past the end */
    assert_non_null(exact);
    memcpy(exact, text, n);
    exact = realloc(exact, n ? n : 1);
    TgError err = {0};
    bool ok = uop_parse(&parsed, st, &mem, exact, n, &err);
    free(exact);
    if (!ok) {
      if (err.status != TG_ERR_VALUE || strncmp(err.msg, "line ", 5))
        fail_msg("%.*s\n%s", (int)n, text, err.msg);
    } else {
      Str a, b;
      UOpText t;
      SpecError bad;
      bool prog = parsed.program.n > 0;
      taken++;
      /* any answer, no crash */
      for (int k = 0; k < GRAPH_LINEAR; k++)
        spec_graph(st, &mem, (GraphKind)k, parsed.roots.at, parsed.roots.len, &bad);
      bool well = prog && spec_linear(&parsed.program, &mem, &bad);
      str_init(&a, &mem), str_init(&b, &mem);
      assert_true(prog ? uop_print_list(&a, &parsed.program, &mem)
                       : uop_print(&a, st, &mem, parsed.roots.at, parsed.roots.len));
      UOpStore *again = store_new(&mem);
      if (!prog || well) {
        if (!uop_parse(&t, again, &mem, str_text(&a), a.len, &err)) fail_msg("%s\n%s", str_text(&a), err.msg);
        assert_true(prog ? uop_print_list(&b, &t.program, &mem)
                         : uop_print(&b, again, &mem, t.roots.at, t.roots.len));
        assert_string_equal(str_text(&a), str_text(&b));
        uop_text_free(&t);
      }
      store_free(again);
      str_free(&a), str_free(&b);
    }
    uop_text_free(&parsed);
    end_store();
  }
  assert_in_range(taken, 500, 15000); /* damage that is always refused, or never, tests little */
}

static void test_no_memory(void **state) { /* the n-th allocation fails, for every n */
  (void)state;
  for (size_t i = 0; i < TG_COUNT(texts); i++)
    for (uint64_t n = 1;; n++) {
      TgMem m = {.fail_at = n};
      UOpText t = {.mem = &m};
      TgError err = {0};
      UOpStore *s = store_new(&m);
      bool ok = s && uop_parse(&t, s, &m, texts[i], strlen(texts[i]), &err);
      assert_true(ok || !s || err.status == TG_ERR_NOMEM);
      uop_text_free(&t);
      store_free(s);
      assert_int_equal(m.live, 0);
      if (ok && m.calls < n) break;
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),    cmocka_unit_test(test_nodes),   cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_no_locale), cmocka_unit_test(test_errors),  cmocka_unit_test(test_dot),
      cmocka_unit_test(test_blanks),    cmocka_unit_test(test_damaged), cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
