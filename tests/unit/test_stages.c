/* test_stages.c: the compiler goes on from its own text. Random tensor graphs, some with sizes that are variables, are
 * scheduled to each pass in turn; what is printed then is read back, and the rest of the passes give the kernels, and the
 * programs, that the whole way gives. So are their kernels, from each pass of code generation on. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_NODES = 40, RANK = 3, GRAPHS = 500, VARIABLES = 2 };

/* k times a variable, plus a; k is 0 where it is a number. */
typedef struct Size {
  int k, v, a;
} Size;

typedef struct Graph {
  char text[16384];
  size_t len;
  int n, nbuffer;
  int rank[MOST_NODES];
  Size shape[MOST_NODES][RANK];
  int nvariable, most[VARIABLES]; /* variable v is from 1 to most[v] */
  uint64_t random;
} Graph;

static unsigned draw(Graph *g, unsigned n) {
  g->random = g->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(g->random >> 33) % n;
}

static void put(Graph *g, const char *form, ...) __attribute__((format(printf, 2, 3)));

static void put(Graph *g, const char *form, ...) {
  va_list ap;
  va_start(ap, form);
  g->len += (size_t)vsnprintf(g->text + g->len, sizeof g->text - g->len, form, ap);
  va_end(ap);
  assert_true(g->len < sizeof g->text);
}

static void ints_put(Graph *g, const int *v, int n) {
  put(g, "(");
  for (int i = 0; i < n; i++)
    put(g, i ? ", %d" : "%d", v[i]);
  put(g, ")");
}

static void size_put(Graph *g, Size s) {
  if (!s.k)
    put(g, "%d", s.a);
  else if (s.a)
    put(g, "%d*v%d %c %d", s.k, s.v, s.a < 0 ? '-' : '+', abs(s.a));
  else
    put(g, "%d*v%d", s.k, s.v);
}

static void sizes_put(Graph *g, const Size *v, int n) {
  put(g, "(");
  for (int i = 0; i < n; i++)
    put(g, "%s", i ? ", " : ""), size_put(g, v[i]);
  put(g, ")");
}

static int least(Size s) { return s.k + s.a; }

static int largest(const Graph *g, Size s) { return s.k * g->most[s.v] + s.a; }

static int elements(const Graph *g, const Size *shape, int rank) { /* the most that it may have */
  int n = 1;
  for (int i = 0; i < rank; i++)
    n *= largest(g, shape[i]);
  return n;
}

static int node(Graph *g, int rank, const Size *shape) { /* its number; its text follows */
  g->rank[g->n] = rank;
  memcpy(g->shape[g->n], shape, (size_t)rank * sizeof *shape);
  put(g, "t%d = ", g->n);
  return g->n++;
}

/* A buffer of the largest sizes, of which the tensor is the beginning. */
static int buffer(Graph *g, int rank, const Size *shape) {
  Size most[RANK];
  bool varies = false;
  for (int i = 0; i < rank; i++) {
    most[i] = (Size){.a = largest(g, shape[i])};
    varies |= shape[i].k != 0;
  }
  put(g, "b%d = BUFFER[f32, %d, %d]\n", g->nbuffer, g->nbuffer, elements(g, shape, rank));
  int t = node(g, rank, most);
  put(g, "RESHAPE["), sizes_put(g, most, rank), put(g, "](b%d)\n", g->nbuffer++);
  if (!varies) return t;
  t = node(g, rank, shape);
  put(g, "SHRINK[(");
  for (int i = 0; i < rank; i++)
    put(g, i ? ", 0, " : "0, "), size_put(g, shape[i]);
  put(g, ")](t%d)\n", t - 1);
  return t;
}

/* Along one axis, and expanded again: the rest of the graph goes on with its shape. */
static int reduced(Graph *g, int x) {
  static const char *const how[] = {"ADD", "MAX", "MUL"};
  int axis = (int)draw(g, (unsigned)g->rank[x]);
  Size one[RANK];
  memcpy(one, g->shape[x], sizeof one);
  one[axis] = (Size){.a = 1};
  int r = node(g, g->rank[x], one);
  put(g, "REDUCE_AXIS[%s, (%d)](t%d)\n", how[draw(g, 3)], axis, x);
  if (draw(g, 4) == 0) return r;
  int t = node(g, g->rank[x], g->shape[x]);
  put(g, "EXPAND["), sizes_put(g, g->shape[x], g->rank[x]), put(g, "](t%d)\n", r);
  return t;
}

static int permuted(Graph *g, int x, int axis) {
  int rank = g->rank[x], order[RANK] = {0, 1, 2};
  Size s[RANK];
  order[axis] = (axis + 1) % rank, order[(axis + 1) % rank] = axis;
  for (int i = 0; i < rank; i++)
    s[i] = g->shape[x][order[i]];
  int t = node(g, rank, s);
  put(g, "PERMUTE["), ints_put(g, order, rank), put(g, "](t%d)\n", x);
  return t;
}

static int shrunk(Graph *g, int x, int axis) { /* without its first element */
  int rank = g->rank[x];
  Size s[RANK];
  memcpy(s, g->shape[x], sizeof s);
  if (least(s[axis]) < 2) return x;
  s[axis].a--;
  int t = node(g, rank, s);
  put(g, "SHRINK[(");
  for (int i = 0; i < rank; i++)
    put(g, i ? ", %d, " : "%d, ", i == axis), size_put(g, g->shape[x][i]);
  put(g, ")](t%d)\n", x);
  return t;
}

static int merged(Graph *g, int x) { /* its first two axes, of which one is a number */
  int rank = g->rank[x];
  Size a = g->shape[x][0], b = g->shape[x][1], s[RANK];
  if (a.k && b.k) return x;
  int by = a.k ? b.a : a.a;
  Size of = a.k ? a : b;
  s[0] = (Size){of.k * by, of.v, of.a * by};
  if (rank == 3) s[1] = g->shape[x][2];
  int t = node(g, rank - 1, s);
  put(g, "RESHAPE["), sizes_put(g, s, rank - 1), put(g, "](t%d)\n", x);
  return t;
}

static int moved(Graph *g, int x) {
  int rank = g->rank[x], order[RANK] = {0}, bounds[2 * RANK] = {0};
  int axis = (int)draw(g, (unsigned)rank), t;
  Size s[RANK];
  memcpy(s, g->shape[x], sizeof s);
  switch (draw(g, 5)) {
  case 0: return rank == 1 ? x : permuted(g, x, axis);
  case 1:
    bounds[2 * axis] = (int)draw(g, 2), bounds[2 * axis + 1] = 1;
    s[axis].a += bounds[2 * axis] + 1;
    t = node(g, rank, s);
    put(g, "PAD["), ints_put(g, bounds, 2 * rank), put(g, "](t%d)\n", x);
    return t;
  case 2: return shrunk(g, x, axis);
  case 3:
    for (int i = 0; i < rank; i++)
      order[i] = i == axis;
    t = node(g, rank, s);
    put(g, "FLIP["), ints_put(g, order, rank), put(g, "](t%d)\n", x);
    return t;
  default: return rank == 1 ? x : merged(g, x);
  }
}

static int same_shape(Graph *g, int x) { /* another node of its shape, or a new buffer */
  for (int tries = 0; tries < 6; tries++) {
    int y = (int)draw(g, (unsigned)g->n);
    if (g->rank[y] == g->rank[x] && !memcmp(g->shape[y], g->shape[x], (size_t)g->rank[x] * sizeof(Size)))
      return y;
  }
  return buffer(g, g->rank[x], g->shape[x]);
}

static void grow(Graph *g) {
  static const char *const one[] = {"NEG", "EXP2", "SIN", "SQRT", "CONTIGUOUS"};
  static const char *const two[] = {"ADD", "MUL", "MAX"};
  int x = g->n - 1 - (int)draw(g, 3 < (unsigned)g->n ? 3 : (unsigned)g->n);
  unsigned kind = draw(g, 10);
  if (kind < 3) {
    int y = same_shape(g, x);
    node(g, g->rank[x], g->shape[x]);
    put(g, "%s(t%d, t%d)\n", two[draw(g, 3)], x, y);
  } else if (kind < 5) {
    node(g, g->rank[x], g->shape[x]);
    put(g, "%s(t%d)\n", one[draw(g, 5)], x);
  } else if (kind < 8)
    reduced(g, x);
  else if (kind < 9)
    moved(g, x);
  else {
    node(g, g->rank[x], g->shape[x]);
    put(g, "SCAN_AXIS[ADD, (%d)](t%d)\n", (int)draw(g, (unsigned)g->rank[x]), x);
  }
}

/* The first shape; of every third graph one or two of its sizes are variables. */
static int first_shape(Graph *g, uint64_t seed, Size *shape) {
  static const int sizes[] = {1, 3, 8, 16, 40, 128};
  int rank = 1 + (int)draw(g, RANK);
  for (int i = 0; i < rank; i++) {
    shape[i] = (Size){.a = sizes[draw(g, rank == 3 ? 4 : 6)]};
    if (seed % 3 || g->nvariable == VARIABLES || draw(g, 2)) continue;
    int v = g->nvariable++;
    g->most[v] = shape[i].a + 1;
    put(g, "variable v%d[1, %d]\n", v, g->most[v]);
    shape[i] = (Size){.k = 1, .v = v};
  }
  return rank;
}

static void graph_make(Graph *g, uint64_t seed) {
  Size shape[RANK];
  memset(g, 0, sizeof *g);
  g->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  int rank = first_shape(g, seed, shape);
  buffer(g, rank, shape);
  int most = 3 + (int)draw(g, 20);
  while (g->n < most)
    grow(g);
  int last = g->n - 1;
  if (draw(g, 3) == 0) { /* an assignment, whose memory others have read; t0 is all of b0 */
    put(g, "s = STORE(b0, RESHAPE[(%d)](SIN(t0)))\n", elements(g, g->shape[0], rank));
    put(g, "roots t%d, s\n", last);
  } else
    put(g, "roots t%d, t%d\n", last, (int)draw(g, (unsigned)g->n));
}

/* The passes of the scheduler, by number; NULL past the last. */
static const char *pass(int i) {
  const char *stage, *name = tg_pass_name(i, &stage);
  return name && !strcmp(stage, "schedule") ? name : NULL;
}

static char *text_of(const char *t) {
  char *copy = t ? malloc(strlen(t) + 1) : NULL;
  return copy ? strcpy(copy, t) : NULL;
}

static void resumed(TgContext *ctx, const Graph *g, int number) {
  char *kernels = text_of(tg_opt(ctx, g->text, .pass = "kernels"));
  if (!kernels) fail_msg("graph %d: %s\n%s", number, tg_errmsg(ctx), g->text);
  char *whole = text_of(tg_opt(ctx, g->text)); /* NULL: a kernel that the engine would cut */
  tg_clear_error(ctx);
  for (int i = 0; pass(i + 1); i++) {
    char *now = text_of(tg_opt(ctx, g->text, .pass = pass(i)));
    const char *rest = now ? tg_opt(ctx, now, .from = pass(i + 1), .pass = "kernels") : NULL;
    if (!rest || strcmp(rest, kernels))
      fail_msg("graph %d, from '%s': %s\n%s\n%s", number, pass(i + 1),
               rest ? "other kernels" : tg_errmsg(ctx), g->text, now);
    rest = whole ? tg_opt(ctx, now, .from = pass(i + 1)) : NULL;
    if (whole && !rest) fail_msg("graph %d, from '%s': %s\n%s", number, pass(i + 1), tg_errmsg(ctx), g->text);
    if (whole && strcmp(rest, whole))
      fail_msg("graph %d, from '%s': other programs\n%s", number, pass(i + 1), g->text);
    free(now);
  }
  free(whole), free(kernels);
}

/* The passes of code generation, by number. */
static const char *lowering(int i) {
  int first = 0;
  while (pass(first))
    first++;
  return tg_pass_name(first + i, NULL);
}

/* One kernel from each pass on: the program that it is at once. */
static void kernel_resumed(TgContext *ctx, const char *kernel, int number) {
  char *whole = text_of(tg_opt(ctx, kernel, .from = lowering(0)));
  if (!whole) fail_msg("graph %d: %s\n%s", number, tg_errmsg(ctx), kernel);
  for (int i = 0; lowering(i + 1); i++) {
    char *now = text_of(tg_opt(ctx, kernel, .from = lowering(0), .pass = lowering(i)));
    const char *rest = now ? tg_opt(ctx, now, .from = lowering(i + 1)) : NULL;
    if (!rest || strcmp(rest, whole))
      fail_msg("graph %d, from '%s': %s\n%s\n%s\nnot\n%s\nbut\n%s", number, lowering(i + 1),
               rest ? "another program" : tg_errmsg(ctx), kernel, now, whole, rest ? rest : "");
    free(now);
  }
  free(whole);
}

/* Each kernel of a graph by itself. The text ends with "roots u1, u2", unless there is only one. */
static void kernels_resumed(TgContext *ctx, const char *kernels, int number) {
  char *one = text_of(kernels), *roots = strstr(one, "\nroots ");
  if (!roots) {
    kernel_resumed(ctx, one, number);
    free(one);
    return;
  }
  const char *at = kernels + (roots - one) + strlen("\nroots ");
  for (size_t room = strlen(roots) + 1, n; *at; at += n + strspn(at + n, ", \n")) {
    n = strcspn(at, ",\n");
    snprintf(roots, room, "\nroots %.*s", (int)n, at);
    kernel_resumed(ctx, one, number);
  }
  free(one);
}

static void test_each_pass_of_kernels(void **state) {
  (void)state;
  static Graph g;
  static const char *const devices[] = {"NULL:C", "NULL:CUDA", "NULL:C", "NULL:METAL"};
  for (int i = 0; i < GRAPHS; i++) {
    TgContext *ctx = tg_open_with(.device = devices[i % 4]);
    graph_make(&g, (uint64_t)i);
    char *kernels = text_of(tg_opt(ctx, g.text, .pass = "kernels"));
    assert_non_null(kernels);
    kernels_resumed(ctx, kernels, i);
    free(kernels);
    tg_close(ctx);
  }
}

static void test_each_pass(void **state) {
  (void)state;
  static Graph g;
  for (int i = 0; i < GRAPHS; i++) {
    TgContext *ctx = tg_open_with(.device = i % 4 == 3 ? "NULL:CUDA" : "NULL:C");
    graph_make(&g, (uint64_t)i);
    resumed(ctx, &g, i);
    tg_close(ctx);
  }
}

/* What is damaged is refused, or gives some graph; nothing else happens. */
static void test_damaged(void **state) {
  (void)state;
  static Graph g;
  static const char *const from[] = {"hazards", "inline cheap", "recompute or store", "kernels"};
  static const char *const after[] = {"rangeify", "partial sums", "join by level", "recompute or store"};
  for (int i = 0; i < 400; i++) {
    TgContext *ctx = tg_open_with(.device = "NULL:C");
    graph_make(&g, (uint64_t)(i / 8) + 7000);
    char *now = text_of(tg_opt(ctx, g.text, .pass = after[i % 4]));
    assert_non_null(now);
    char *lines = strstr(now, "#| state");
    assert_non_null(lines);
    for (int k = 0; k < 3; k++)
      for (char *p = lines + draw(&g, (unsigned)strlen(lines)); *p; p++)
        if (*p >= '0' && *p <= '9') {
          *p = (char)('0' + draw(&g, 10));
          break;
        }
    tg_opt(ctx, now, .from = from[i % 4]);
    free(now);
    tg_close(ctx);
  }
}

/* .. and so is what stands below a kernel's graph. */
static void test_damaged_kernels(void **state) {
  (void)state;
  static Graph g;
  static const char *const devices[] = {"NULL:C", "NULL:CUDA"};
  for (int i = 0; i < 400; i++) {
    TgContext *ctx = tg_open_with(.device = devices[i % 2]);
    graph_make(&g, (uint64_t)(i / 16) + 9000);
    char *kernels = text_of(tg_opt(ctx, g.text, .pass = "kernels")), *roots = strstr(kernels, "\nroots ");
    if (roots) snprintf(roots + 7 + strcspn(roots + 7, ",\n"), 2, "\n");
    char *now = text_of(tg_opt(ctx, kernels, .from = lowering(0), .pass = lowering(3 + i % 8)));
    assert_non_null(now);
    char *line = strstr(now, "#| kernel");
    assert_non_null(line);
    for (int k = 0; k < 2; k++) {
      char *at = line + draw(&g, (unsigned)strlen(line));
      *at = *at == '\n' ? '\n' : " 0123456789,:-r%"[draw(&g, 16)];
    }
    if (!tg_opt(ctx, now, .from = lowering(4 + i % 8))) assert_true(*tg_errmsg(ctx));
    free(now), free(kernels);
    tg_close(ctx);
  }
}

static void test_refused(void **state) {
  (void)state;
  TgContext *ctx = tg_open_with(.device = "NULL:C");
  const char *graph = "b = BUFFER[f32, 0, 6]\nt = NEG(b)\n";
  assert_null(tg_opt(ctx, graph, .from = "hazards"));
  assert_non_null(strstr(tg_errmsg(ctx), "the text has no stages"));
  tg_clear_error(ctx);
  char *now = text_of(tg_opt(ctx, graph, .pass = "rangeify"));
  assert_null(tg_opt(ctx, now, .from = "kernels"));
  assert_non_null(strstr(tg_errmsg(ctx), "after 'rangeify', not after 'recompute or store'"));
  tg_clear_error(ctx);
  assert_null(tg_opt(ctx, now, .from = "kernels", .pass = "hazards"));
  tg_clear_error(ctx);
  assert_null(tg_opt(ctx, now, .from = "nothing"));
  tg_clear_error(ctx);
  free(now);
  static const char *const variables[] = {"variable v1[0, 4]\n",
                                          "variable v0[3, 2]\n",
                                          "variable v0[-1, 2]\n",
                                          "variable v0[0, 5, 2]\n",
                                          "variable v0[0, 4, 0]\n",
                                          "variable v0[1]\n",
                                          "variable v0[0, 4]\nvariable v0[0, 4]\n"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    char text[200];
    snprintf(text, sizeof text, "%s%s", variables[i], graph);
    assert_null(tg_opt(ctx, text, .pass = "rangeify"));
    assert_non_null(strstr(tg_errmsg(ctx), "line "));
    tg_clear_error(ctx);
  }
  tg_close(ctx);
}

/* A pass that may be left out changes no value. */
static void test_skipped(void **state) {
  (void)state;
  double want[64], got[64];
  for (int i = -1; i < 0 || pass(i); i++) {
    if (i >= 0) setenv("TG_SKIP", pass(i), 1);
    TgContext *ctx = tg_open_with(.device = "INTERP", .seed = 5);
    unsetenv("TG_SKIP");
    if (tg_error(ctx)) { /* one that there must be */
      assert_non_null(strstr(tg_errmsg(ctx), pass(i)));
      tg_close(ctx);
      continue;
    }
    TgTensor *x = tg_clone(tg_rand(ctx, TG_SHAPE(8, 40, 8)));
    TgTensor *h = tg_softmax(tg_matmul(x, tg_transpose(x, 1, 2)));
    TgTensor *y = tg_sum(tg_cumsum(tg_transpose(tg_matmul(h, x), 0, 2), 1), .axis = TG_AXES(1));
    assert_int_equal(tg_read_f64(y, i < 0 ? want : got, 64), TG_OK);
    for (int k = 0; i >= 0 && k < 64; k++)
      assert_true(got[k] - want[k] < 1e-3 * want[k] && want[k] - got[k] < 1e-3 * want[k]);
    tg_close(ctx);
  }
  setenv("TG_SKIP", "inline cheap,nothing", 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_SKIP");
  assert_non_null(strstr(tg_errmsg(ctx), "'nothing' is no pass"));
  tg_close(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_pass), cmocka_unit_test(test_each_pass_of_kernels),
      cmocka_unit_test(test_damaged),   cmocka_unit_test(test_damaged_kernels),
      cmocka_unit_test(test_refused),   cmocka_unit_test(test_skipped)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
