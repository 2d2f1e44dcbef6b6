/* test_rules.c: what rulegen refuses, with the line and the reason, and what it takes; and that firings carry
 * the rule's name and line. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "schedule/stage.h"

#define HEAD "vars x y: any n: int c c1: CONST\nmatcher pm_t\n"
#define LIST "vars x y: any k: RANGE h: u32 r s: list\nmatcher pm_t ctx Kernel *\n"
#define DOMS "vars w: wraps s: signed n: int p: bool\nmatcher pm_t\n"
#define GRAD "vars x y: any n: int\ngradient grad_t\n"

static const struct {
  const char *text, *says;
} refused[] = {
    {HEAD "a: FOO(x) => x\n", ":3: unknown op FOO"},
    {HEAD "a: foo(x) => x\n", ":3: unknown op foo in the pattern"},
    {HEAD "a: op(x, y) => x for op in ADD BAR\n", ":3: unknown op BAR"},
    {HEAD "a: NEG(NEG(x)) => FOO(x)\n", ":3: unknown op FOO"},
    {HEAD "a: NEG(x, y) => x\n", ":3: op NEG takes 1 sources, not 2"},
    {HEAD "a: op(x) => x for op in ADD NEG\n", ":3: op ADD takes 2 sources, not 1"},
    {HEAD "a: x + y => WHERE(x, y)\n", ":3: op WHERE takes 3 sources, not 2"},
    {HEAD "a: NEG(x) => y\n", ":3: name 'y' is not in the pattern"},
    {HEAD "a: NEG(x) => CAST[y.dtype](x)\n", ":3: name 'y' is not in the pattern"},
    {HEAD "a: NEG(x) => x if vmin(y) > 0\n", ":3: name 'y' is not in the pattern"},
    {HEAD "a: NEG(z) => z\n", ":3: name 'z' is not in vars"},
    {HEAD "a: x + y => x\nb: n + 0 => n\n", ":4: rule b is hidden by a (line 3)"},
    {HEAD "a: x + c => x\nb: c1 + x => x\n", ":4: rule b is hidden by a (line 3)"},
    {HEAD "a: op(x, x) => x for op in AND OR\nb: n & n => n\n", ":4: rule b is hidden by a (line 3)"},
    {HEAD "a: x + 0 => x\n\n# a comment\na: x * 1 => x\n", ":6: rule a is already on line 3"},
    {HEAD "a: x + 0\n", ":3: expected '=>', found 'end of line'"},
    {HEAD "a: x + 0 => x junk\n", ":3: unexpected 'junk'"},
    {HEAD "a: x => x\n", ":3: the pattern of a is no operation"},
    {HEAD "a: CAST[f99](x) => x\n", ":3: unknown dtype f99"},
    {"vars x: anything\n", ":1: unknown domain anything"},
    {"vars x: any\na: x + 0 => x\n", ":2: a rule before the first matcher"},
    {HEAD "a: x * 0.5 => x\n", ":3: a fraction in the pattern"},
    {HEAD "a: NEG(x) => x * 0.5.5\n", ":3: '0.5.5' is no number"},
    {HEAD "a: NEG(x) => CAST[u8](3) + x\n", ":3: no name says the dtype of a literal"},
    {HEAD "a: NEG(x) => f(ctx, x)\n", ":3: name 'ctx' is not in the pattern"},
    {HEAD "a: NEG(x) => x if f(ctx)\n", ":3: name 'ctx' is not in the pattern"},
    {"vars ctx: any\n", ":1: the name 'ctx' is taken"},
    {"vars x: any\nmatcher pm_t ctx\n", ":2: a context needs a C type"},
    {LIST "a: REDUCE[FOO](x, r...) => x\n", ":3: 'FOO' is no arg of REDUCE"},
    {LIST "a: RANGE[UP](x) => x\n", ":3: 'UP' is no arg of RANGE"},
    {LIST "a: x + NEG[3](y) => x\n", ":3: '3' is no arg of NEG"},
    {LIST "a: REDUCE(x, r...) => REDUCE(x, r...)\n", ":3: op REDUCE needs its arg"},
    {LIST "a: RANGE(x) => RANGE[LOOP](x)\n", ":3: 'LOOP' is no arg of RANGE"},
    {LIST "a: NEG(x) => NEG[y.arg](x)\n", ":3: name 'y' is not in the pattern"},
    {LIST "a: REDUCE[y.arg](x, y, k) => x\n", ":3: 'y' comes later in the pattern"},
    {LIST "a: REDUCE(x, r..., y, s...) => x\n", ":3: 's...' is the second list of REDUCE"},
    {LIST "a: REDUCE(REDUCE(x, r...), r...) => x\n", ":3: the list 'r' stands twice"},
    {LIST "a: NEG(u@(x - y)) => MUL[u.order](x, y)\n", ":3: 'u' has no operands that the pattern exchanges"},
    {LIST "a: NEG(u@(x * y)) => NEG[u.order](x)\n", ":3: NEG has no two operands to exchange"},
    {LIST "a: NEG(u@(x * y)) => MUL[u.shape](x, y)\n", ":3: 'u.shape' is no dtype, no arg and no order"},
    {LIST "a: NEG(MUL[self.order](x, y)) => x\n", ":3: an order in the pattern"},
    {LIST "a: REDUCE(x, ..., y, ...) => x\n", ":3: '...' twice in one list"},
    {LIST "a: NEG(..., x) => x\n", ":3: op NEG takes no list"},
    {LIST "a: REDUCE(x, y...) => x\n", ":3: 'y' is no list in vars"},
    {LIST "a: REDUCE(x, r) => x\n", ":3: 'r' is a list: r..."},
    {LIST "a: NEG(r...) => x\n", ":3: op NEG takes no list"},
    {LIST "a: REDUCE(x, r...) => NEG(r...)\n", ":3: op NEG takes no list"},
    {LIST "a: REDUCE(x, r...) => f(r)\n", ":3: 'r' is a list: r..."},
    {LIST "a: REDUCE(x, r...) => f(s...)\n", ":3: name 's' is not in the pattern"},
    {LIST "a: REDUCE(x, r...) => x if f(r)\n", ":3: 'r' is a list: r..."},
    {LIST "a: REDUCE(x, r...) => x if f(x...)\n", ":3: 'x' is no list: x"},
    {LIST "a: NEG(x) => x for op in ADD\n", ":3: 'op' is not in the pattern"},
    {LIST "a: AFTER(x, y, x, y, x, y, x, y, x) => x\n", ":3: more than 8 sources"},
    {LIST "a: NEG(EXP(x)) => x\nb: NEG(op(x)) => x for op in EXP\n", ":4: rule b is hidden by a (line 3)"},
    {LIST "a: REDUCE(x, ...) => x\nb: REDUCE[ADD](x, r...) => x\n", ":4: rule b is hidden by a (line 3)"},
    {LIST "a: x + y => y\nb: h + 1 => h\n", ":4: rule b is hidden by a (line 3)"},
    {LIST "a: REDUCE(x, ...) => x\nb: REDUCE(x, r..., y) => x\n", ":4: rule b is hidden by a (line 3)"},
    {LIST "a: REDUCE(x, r..., k) => x\nb: REDUCE(y, s..., k) => y\n", ":4: rule b is hidden by a (line 3)"},
    {DOMS "a: w + 0 => w\nb: s + 0 => s\n", ":4: rule b is hidden by a (line 3)"},
    {DOMS "a: n + 0 => n\nb: w + 0 => w\n", ":4: rule b is hidden by a (line 3)"},
    {HEAD "a: NEG(x) => g\n", ":3: name 'g' is not in the pattern"},
    {GRAD "a: x * y => g\n", ":3: a has 2 sources, not 1"},
    {GRAD "a: NEG(x) => -, g\n", ":3: a has 1 sources, not 2"},
    {GRAD "a: NEG(x) => y\n", ":3: name 'y' is not in the pattern"},
    {GRAD "a: x * y => g * y, g * x\nb: MUL(x, 0) => -, -\n", ":4: rule b is hidden by a (line 3)"},
};

static const char *const taken[] = {
    HEAD "a: x + y => x if is_const(y)\nb: n + 0 => n\n", /* a guard hides nothing */
    HEAD "a: x + x => x\nb: x + y => x\n",                /* a name used twice is narrower */
    HEAD "a: n + 0 => n\nb: x + 0 => x\n",                /* so is a domain */
    GRAD "a: x * y => g * y, -\nb: SIN(x) => 0.5 - g\nc: WHERE(n, x, y) => -, g, g\n",
    HEAD "a: n + 0 => f(self)\nb: n + 0 => n\n", /* a C function may decline */
    LIST "a: REDUCE[ADD](x, r...) => x\nb: REDUCE(x, r...) => x\n",
    LIST "a: REDUCE(x, r..., k) => x\nb: REDUCE(x, r..., h) => x\nc: REDUCE(x, r...) => x\n",
    DOMS "a: s + 0 => s\nb: w + 0 => w\nc: p + 0 => p\nd: n + 0 => n\n",
    LIST "a: REDUCE(k, r...) => k\nb: REDUCE(h, r...) => h\nc: REDUCE(x, r...) => x\n",
    LIST "a: NEG(op(x)) => op(NEG(x)) for op in EXP EXP2\nb: NEG(LOG(x)) => x * -0x1.8p-3 + inf\n",
    LIST "a: AFTER(x, y, x, y, x, y, x, y) => AFTER(x, y, x, y, x, y, x, y)\n",
    LIST
    "a: REDUCE[op](u@REDUCE[self.arg](x, r...), s...) => REDUCE[op](f(ctx, x), s..., r...) for op in ADD MAX "
    "if g(ctx, r..., op) && ctx.n > r.n && !h(ctx.opt.target, ADD)\n",
    LIST "a: SCALE(x * y, k, h) => SCALE(x, k, h) * SHIFT(y, k, h)\n",
};

static int rulegen(const char *text, char *said, size_t cap) {
  char dir[] = "/tmp/tg-rules-XXXXXX", in[64], command[1024];
  assert_non_null(mkdtemp(dir));
  snprintf(in, sizeof in, "%s/t.rules", dir);
  FILE *f = fopen(in, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  snprintf(command, sizeof command, "%s %s %s/t.c 2>&1", TG_RULEGEN, in, dir);
  f = popen(command, "r");
  assert_non_null(f);
  said[fread(said, 1, cap - 1, f)] = 0;
  int status = pclose(f);
  unlink(in);
  snprintf(in, sizeof in, "%s/t.c", dir);
  unlink(in);
  rmdir(dir);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_refusals(void **state) {
  (void)state;
  char said[1024];
  for (size_t i = 0; i < TG_COUNT(refused); i++)
    if (rulegen(refused[i].text, said, sizeof said) != 1 || !strstr(said, refused[i].says))
      fail_msg("%sshould say '%s', says '%s'", refused[i].text, refused[i].says, said);
}

static void test_taken(void **state) {
  (void)state;
  char said[1024];
  for (size_t i = 0; i < TG_COUNT(taken); i++)
    if (rulegen(taken[i], said, sizeof said)) fail_msg("%s: %s", taken[i], said);
}

static const char *seen_rule, *seen_where;

static bool seen(RewriteEnv *env, Rewrite *rw, const char *rule, const char *where, UOp *before, UOp *after) {
  (void)env, (void)rw, (void)before, (void)after;
  seen_rule = rule, seen_where = where;
  return true;
}

static void test_firing(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOp *x = uop_new(st, OPS_PARAM, DT_I32, 1, 0, NULL, (Arg){.param = {1, 0}});
  UOp *zero = uop_const_int(st, DT_I32, 0);
  UOp *f = uop_new(st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {1, 1}});
  UOp *fzero = uop_const_int(st, DT_F32, 0);
  RewriteEnv env = {.limit = -1, .on_fire = seen};
  Rewrite rw = {.st = st, .mem = &mem};
  store_set_env(st, &env);
  assert_ptr_equal(pm_symbolic(&rw, uop_alu2(st, OPS_ADD, x, zero)), x);
  assert_string_equal(seen_rule, "add-zero");
  assert_non_null(strstr(seen_where, "symbolic.rules:"));
  assert_ptr_equal(pm_symbolic(&rw, uop_alu2(st, OPS_ADD, zero, x)), x); /* operands swapped */
  assert_null(pm_symbolic(&rw, uop_alu2(st, OPS_ADD, f, fzero)));        /* -0.0 + 0 is 0 */
  assert_null(pm_symbolic(&rw, uop_alu2(st, OPS_MUL, f, fzero)));        /* inf * 0 is nan */
  UOp *one = uop_const_int(st, DT_BOOL, 1);
  UOp *not_x = uop_alu2(st, OPS_CMPNE, uop_alu2(st, OPS_CMPNE, x, uop_const_int(st, DT_I32, 1)), one);
  assert_null(pm_symbolic(&rw, not_x)); /* not-not is for bool: x may be 5 */
  assert_int_equal(rw.firings, 2);
  env.limit = 0;
  assert_null(pm_symbolic(&rw, uop_alu2(st, OPS_ADD, x, zero)));
  store_free(st);
  assert_int_equal(mem.live, 0);
}

/* ---- marks: answered where they stand, and nothing else is walked */
static UOp *load(UOpStore *st, int64_t slot, UOp *at) {
  UOp *p = uop_new(st, OPS_PARAM, DT_F32, 1, 0, NULL, (Arg){.param = {64, slot}});
  return UNEW(st, OPS_INDEX, DT_F32, 1, ARG0, p, at);
}

static UOp *mark(UOpStore *st, Ops op, UOp *x, UOp *a, UOp *b) {
  return UNEW(st, op, DT_F32, 1, ARG0, x, a, b);
}

static void test_answer(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  RewriteEnv env = {.limit = 0}; /* an answer is required */
  store_set_env(st, &env);
  UOp *i = uop_range(st, 8, 0, AXIS_LOOP), *j = uop_range(st, 8, 1, AXIS_LOOP);
  UOp *a = load(st, 0, i), *b = load(st, 1, j), *zero = uop_const_int(st, DT_F32, 0);
  UOp *p = uop_alu2(st, OPS_CMPLT, i, uop_index_const(st, 5));
  UOp *q = uop_alu2(st, OPS_CMPLT, j, uop_index_const(st, 3)), *deep = b;
  for (int k = 0; k < 1000; k++) /* has no mark */
    deep = uop_alu2(st, OPS_MUL, uop_alu2(st, OPS_ADD, deep, b), b);
  UOp *gate = mark(st, OPS_GATE, uop_alu2(st, OPS_MUL, a, deep), uop_alu2(st, OPS_AND, p, q), zero);
  UOp *u = uop_answer(st, &mem, pm_gate, NULL, uop_alu1(st, OPS_SQRT, gate));
  /* each part of the gate goes to the first factor that moves with it */
  UOp *left = uop_where(st, p, a, zero), *right = uop_where(st, q, deep->src[0], zero);
  UOp *want = uop_alu2(st, OPS_MUL, left, uop_alu2(st, OPS_MUL, right, b));
  assert_non_null(u);
  assert_ptr_equal(u, uop_alu1(st, OPS_SQRT, want));
  assert_in_range(env.visits, 5, 20);
  assert_null(uop_answer(st, &mem, pm_gate, NULL, uop_alu1(st, OPS_SQRT, mark(st, OPS_SCALE, a, a, b))));
  assert_ptr_equal(uop_answer(st, &mem, pm_gate, NULL, deep), deep);
  assert_int_equal(mem.failed, 0);
  store_free(st);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals), cmocka_unit_test(test_taken),
                                     cmocka_unit_test(test_firing), cmocka_unit_test(test_answer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
