/* test_dims.c: symbolic sizes by themselves. Sums of products are compared with their values for all values
 * of their variables. */
#include "uop/dims.h"
#include "uop/text.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

typedef struct Bench {
  TgMem mem;
  UOpStore *st;
  DimTable *t;
  int64_t n, m, q;
} Bench;

static void open_bench(Bench *b) {
  *b = (Bench){0};
  b->st = store_new(&b->mem), b->t = dims_new(&b->mem, NULL);
  store_set_dims(b->st, b->t);
  assert_int_equal(dims_var(b->t, "n", 1, 5, 1), 0);
  assert_int_equal(dims_var(b->t, "m", 0, 3, 1), 1);
  assert_int_equal(dims_var(b->t, "q", 4, 16, 4), 2);
  b->n = dim_of_var(b->st, 0), b->m = dim_of_var(b->st, 1), b->q = dim_of_var(b->st, 2);
}

static void close_bench(Bench *b) {
  store_free(b->st), dims_free(b->t);
  assert_int_equal(b->mem.live, 0);
}

static void set(Bench *b, int64_t n, int64_t m, int64_t q) {
  const int64_t v[] = {n, m, q};
  for (int i = 0; i < 3; i++)
    dims_var_at(b->t, i)->bound = true, dims_var_at(b->t, i)->value = v[i];
}

static int64_t eval(const UOp *u, const int64_t *v) { /* the index expression; VAR nodes count in units */
  Scalar a, b, r;
  if (u->op == OPS_CONST) return u->arg.v.i;
  if (u->op == OPS_VAR) return v[var_number(u)];
  assert_int_equal(u->nsrc, 2);
  a.i = eval(u->src[0], v), b.i = eval(u->src[1], v);
  assert_true(scalar_eval((Ops)u->op, DT_I64, (Scalar[]){a, b}, &r));
  return r.i;
}

static void arithmetic(void **state) {
  (void)state;
  Bench b;
  open_bench(&b);
  UOpStore *st = b.st;
  int64_t e[60], f[4][60]; /* sizes, and their values at four bindings */
  static const int64_t at[4][3] = {{1, 0, 4}, {5, 3, 16}, {2, 3, 12}, {4, 1, 8}};
  int k = 0;
  e[k++] = b.n, e[k++] = b.m, e[k++] = b.q, e[k++] = 7, e[k++] = 0, e[k++] = 1;
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 3; i++)
      f[j][i] = at[j][i];
  for (int j = 0; j < 4; j++)
    f[j][3] = 7, f[j][4] = 0, f[j][5] = 1;
  uint32_t r = 5;
  while (k < 60) {
    r = r * 1664525u + 1013904223u;
    int x = (int)(r >> 8) % TG_MIN(k, 14), y = (int)(r >> 16) % TG_MIN(k, 14), how = (int)(r >> 28) % 3;
    int64_t d = how == 0   ? dim_add(st, e[x], e[y])
                : how == 1 ? dim_sub(st, e[x], e[y])
                           : dim_mul(st, e[x], e[y]);
    if (d == DIM_BAD) {
      e[k] = e[x];
      for (int j = 0; j < 4; j++)
        f[j][k] = f[j][x];
      k++;
      continue;
    }
    e[k] = d;
    for (int j = 0; j < 4; j++)
      f[j][k] = how == 0 ? f[j][x] + f[j][y] : how == 1 ? f[j][x] - f[j][y] : f[j][x] * f[j][y];
    k++;
  }
  for (int j = 0; j < 4; j++) {
    set(&b, at[j][0], at[j][1], at[j][2]);
    const int64_t units[] = {at[j][0], at[j][1], at[j][2] / 4};
    for (int i = 0; i < 60; i++) {
      assert_int_equal(dim_now(st, e[i]), f[j][i]);
      assert_true(dim_min(st, e[i]) <= f[j][i] && f[j][i] <= dim_max(st, e[i]));
      UOp *u = dim_uop(st, &b.mem, e[i]);
      assert_int_equal(eval(u, units), f[j][i]);
      assert_true(u->vmin <= f[j][i] && f[j][i] <= u->vmax);
    }
  }
  for (int i = 0; i < 60; i++)
    for (int j = 0; j < 60; j++) {
      bool same = true;
      for (int s = 0; s < 4; s++)
        same = same && f[s][i] == f[s][j];
      if (e[i] == e[j]) assert_true(same);
      if (dim_le(st, e[i], e[j]))
        for (int s = 0; s < 4; s++)
          assert_true(f[s][i] <= f[s][j]);
      int64_t q, p = dim_mul(st, e[i], e[j]);
      /* what was multiplied divides */
      if (e[j] && p != DIM_BAD && dim_div(st, p, e[j], &q))
        assert_int_equal(q, e[i]);
      else if (e[j] && p != DIM_BAD && i < 6 && j < 6)
        fail_msg("%d times %d, divided", i, j);
    }
  close_bench(&b);
}

static void text(void **state) {
  (void)state;
  Bench b;
  char s[128];
  open_bench(&b);
  UOpStore *st = b.st;
  dim_print(st, dim_sub(st, dim_add(st, dim_mul(st, b.n, dim_mul(st, 2, b.m)), b.q), 3), s, sizeof s);
  assert_string_equal(s, "2*n*m + q - 3");
  int64_t unit;
  assert_true(dim_div(st, b.q, 4, &unit) && !dim_div(st, b.q, 8, &unit) && !dim_div(st, b.n, 2, &unit));
  assert_true(dim_div(st, b.q, 2, &unit));
  dim_print(st, unit, s, sizeof s);
  assert_string_equal(s, "2*q/4");
  dim_print(st, 12, s, sizeof s);
  assert_string_equal(s, "12");
  close_bench(&b);
}

/* Arithmetic that knows nothing of sizes makes no size; too long sums and overflow are told. */
static void refused(void **state) {
  (void)state;
  Bench b;
  open_bench(&b);
  UOpStore *st = b.st;
  assert_true(dim_valid(st, b.n) && dim_valid(st, 0) && !dim_valid(st, -1) && !dim_valid(st, DIM_BAD));
  for (int i = 1; i < 100000; i++)
    assert_false(dim_valid(st, b.n + i) || dim_valid(st, b.n - i));
  assert_false(dim_valid(st, b.n / 2));
  assert_false(dim_valid(st, dim_sub(st, b.m, 1))); /* m may be 0 */
  assert_true(dim_valid(st, dim_sub(st, b.n, 1)));
  assert_int_equal(dim_mul(st, INT64_MAX / 2, 3), DIM_BAD);
  assert_int_equal(dim_add(st, DIM_BAD, 1), DIM_BAD);
  int64_t p = 1, sum = 0;
  for (int i = 0; i < 6; i++)
    p = dim_mul(st, p, b.n);
  assert_true(dim_symbolic(p) && p != DIM_BAD);
  assert_int_equal(dim_mul(st, p, b.n), DIM_BAD); /* seven variables in one term */
  for (int i = 0; i < 17; i++) {
    char name[8];
    snprintf(name, sizeof name, "v%d", i);
    sum = dim_add(st, sum, dim_of_var(st, dims_var(b.t, name, 1, 9, 1)));
  }
  assert_int_equal(sum, DIM_BAD); /* seventeen terms */
  const int64_t shape[] = {3, b.n + 5};
  const Ints *l = ints_get(st, 2, shape);
  UOp *c = uop_const(st, DT_F32, (Scalar){.f = 1});
  assert_null(uop_new(st, OPS_RESHAPE, DT_F32, 1, 1, &c, (Arg){.ints = l}));
  close_bench(&b);
}

static int swapped(void *user, int var) { return (void)user, var == 0 ? 1 : var == 1 ? 0 : var; }

/* As graphs have them in their text, and over the variables of another table. */
static void in_graphs(void **state) {
  (void)state;
  Bench b;
  open_bench(&b);
  UOpStore *st = b.st;
  int64_t nm = dim_mul(st, b.n, b.m),
          sizes[] = {b.n, dim_sub(st, b.q, 3), dim_add(st, dim_mul(st, nm, 5), dim_add(st, b.n, b.m)),
                     dim_sub(st, 20, dim_mul(st, nm, 1)), dim_mul(st, dim_mul(st, b.n, b.n), b.q)};
  static const char *const want[] = {"v0", "4*v2 - 3", "5*v0*v1 + v0 + v1", "-1*v0*v1 + 20", "4*v0*v0*v2"};
  for (int i = 0; i < 5; i++) {
    Str s;
    UOpText t;
    TgError err = {0};
    char graph[200];
    str_init(&s, &b.mem);
    dim_put(&s, st, sizes[i]);
    assert_string_equal(str_text(&s), want[i]);
    snprintf(graph, sizeof graph, "u0 = EXPAND[(3, %s)](RESHAPE[(1, 1)](BUFFER[f32, 0, 1]))\n", want[i]);
    if (!uop_parse(&t, st, &b.mem, graph, strlen(graph), &err)) fail_msg("%s: %s", graph, err.msg);
    assert_true(t.roots.at[0]->shape->v[1] == sizes[i]);
    uop_text_free(&t), str_free(&s);
    int64_t there = dim_moved(st, st, sizes[i], swapped, NULL);
    assert_true(dim_moved(st, st, there, swapped, NULL) == sizes[i]);
    assert_true((there == sizes[i]) == (i >= 1 && i <= 3));
  }
  static const char *const wrong[][2] = {{"v9", "there is no variable 9"},
                                         {"v0*", "a variable, such as v0"},
                                         {"2*3", "a variable, such as v0"},
                                         {"v0*v0*v0*v0*v0*v0*v0", "too long or too large a sum"},
                                         {"9223372036854775807*v0 + 9223372036854775807*v0", "too large"},
                                         {"-9222246136947933184", "no list has such a number"}};
  for (int i = 0; i < 6; i++) {
    UOpText t;
    TgError err = {0};
    char graph[200];
    snprintf(graph, sizeof graph, "u0 = EXPAND[(%s)](BUFFER[f32, 0, 1])\n", wrong[i][0]);
    assert_false(uop_parse(&t, st, &b.mem, graph, strlen(graph), &err));
    if (!strstr(err.msg, wrong[i][1])) fail_msg("%s: %s", wrong[i][0], err.msg);
    uop_text_free(&t);
  }
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(arithmetic), cmocka_unit_test(text),
                                     cmocka_unit_test(in_graphs), cmocka_unit_test(refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
