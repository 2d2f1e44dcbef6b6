/* test_value.c: trees of values that a program makes (tg_value_new, tg_value_put_*), as readers of formats
 * do. What is put is found again by the functions that read any tree; what does not fit is refused and
 * changes nothing; where memory ends, at whichever allocation, that is said and all is given back. */
#include "tg_io.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *C;

static int open_it(void **state) {
  (void)state;
  C = tg_open_with(.device = "INTERP");
  return tg_error(C) != TG_OK;
}

static int close_it(void **state) {
  (void)state;
  tg_close(C);
  return 0;
}

static void refused(TgStatus got, const char *text) {
  if (got != TG_ERR_VALUE || tg_error(C) != TG_ERR_VALUE || !strstr(tg_errmsg(C), text))
    fail_msg("%s, where '%s' is meant: %s", tg_status_name(got), text, tg_errmsg(C));
  tg_clear_error(C);
}

/* A map has values of every kind, in the order in which they were put. */
static void test_map(void **state) {
  (void)state;
  size_t n = 0;
  TgValue *map = tg_value_new(C, TG_KIND_MAP);
  assert_int_equal(tg_value_kind(map), TG_KIND_MAP);
  assert_int_equal(tg_value_count(map), 0);
  assert_int_equal(tg_value_put_int(map, "int", INT64_MIN), TG_OK);
  assert_int_equal(tg_value_put_bool(map, "bool", true), TG_OK);
  assert_int_equal(tg_value_put_float(map, "float", 0.5), TG_OK);
  assert_int_equal(tg_value_put_string(map, "text", "a\0b", 3), TG_OK);
  assert_int_equal(tg_value_put_string(map, "", NULL, 0), TG_OK);
  assert_int_equal(tg_value_count(map), 5);
  assert_true(tg_value_int(tg_value_get(map, "int")) == INT64_MIN);
  assert_int_equal(tg_value_kind(tg_value_get(map, "bool")), TG_KIND_BOOL);
  assert_true(tg_value_float(tg_value_get(map, "float")) == 0.5);
  assert_memory_equal(tg_value_string(tg_value_get(map, "text"), &n), "a\0b", 4); /* and a 0 byte */
  assert_int_equal(n, 3);
  assert_string_equal(tg_value_string(tg_value_at(map, 4), &n), "");
  assert_string_equal(tg_value_string(tg_value_key(map, 2), NULL), "float");
  assert_int_equal(tg_value_put_int(map, "bool", 7), TG_OK); /* the first one of a key is found */
  assert_int_equal(tg_value_kind(tg_value_get(map, "bool")), TG_KIND_BOOL);
  assert_int_equal(tg_value_int(tg_value_at(map, 5)), 7);
  tg_value_free(map);
}

/* A list grows, and its values keep their places. */
static void test_list(void **state) {
  (void)state;

  enum { MANY = 5000 };

  char text[32];
  TgValue *list = tg_value_new(C, TG_KIND_LIST);
  for (int i = 0; i < MANY; i++) {
    snprintf(text, sizeof text, "text %d", i);
    assert_int_equal(tg_value_put_string(list, NULL, text, strlen(text)), TG_OK);
  }
  assert_int_equal(tg_value_count(list), MANY);
  assert_null(tg_value_key(list, 0));
  for (int i = 0; i < MANY; i++) {
    snprintf(text, sizeof text, "text %d", i);
    assert_string_equal(tg_value_string(tg_value_at(list, (size_t)i), NULL), text);
  }
  tg_value_free(list);
}

/* A tree in a tree, several deep: the outermost frees all, and its tensors outlive the scope that made them. */
static void test_trees(void **state) {
  (void)state;
  double x[2];
  TgValue *root = tg_value_new(C, TG_KIND_MAP), *list = tg_value_new(C, TG_KIND_LIST);
  TgValue *inner = tg_value_new(C, TG_KIND_MAP), *other = tg_value_new(C, TG_KIND_LIST);
  TG_SCOPE(C) {
    TgTensor *t = tg_from_bytes(C, (float[]){1, 2}, sizeof(float[2]), TG_F32);
    assert_int_equal(tg_value_put_tensor(inner, "t", t), TG_OK);
  }
  assert_int_equal(tg_value_put_tree(list, NULL, inner), TG_OK);
  assert_int_equal(tg_value_put_int(list, NULL, 5), TG_OK);
  assert_int_equal(tg_value_put_tree(root, "list", list), TG_OK);
  assert_int_equal(tg_value_put_tree(root, "none", other), TG_OK);
  const TgValue *found = tg_value_get(root, "list");
  assert_int_equal(tg_value_int(tg_value_at(found, 1)), 5);
  TgTensor *t = tg_value_tensor(tg_value_get(tg_value_at(found, 0), "t"));
  assert_int_equal(tg_read_f64(t, x, 2), TG_OK);
  assert_true(x[0] == 1 && x[1] == 2);
  TgState *s = tg_get_state(C, root, NULL);
  assert_ptr_equal(tg_state_get(s, "list.0.t"), t);
  assert_int_equal(tg_state_count(s), 1);
  tg_state_free(s), tg_value_free(root);
}

/* What a reader returned takes further values, too. */
static void test_read(void **state) {
  (void)state;
  static const char file[] =
      "\x50\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]},"
      "\"__metadata__\":{\"a\":\"b\"}}  7";
  TgValue *head = tg_safe_load_metadata(tg_from_bytes(C, file, sizeof file - 1, TG_U8), NULL);
  if (!head) fail_msg("%s", tg_errmsg(C));
  assert_int_equal(tg_value_count(head), 2);
  for (int i = 0; i < 40; i++)
    assert_int_equal(tg_value_put_int(head, "more", i), TG_OK);
  assert_int_equal(tg_value_count(head), 42);
  assert_string_equal(tg_value_string(tg_value_get(tg_value_get(head, "__metadata__"), "a"), NULL), "b");
  assert_int_equal(tg_value_int(tg_value_at(head, 41)), 39);
  tg_value_free(head);
}

static void test_refused(void **state) {
  (void)state;
  TgContext *other = tg_open_with(.device = "INTERP");
  TgValue *map = tg_value_new(C, TG_KIND_MAP), *list = tg_value_new(C, TG_KIND_LIST);
  TgValue *theirs = tg_value_new(other, TG_KIND_MAP);
  TgTensor *t = tg_zeros(C, 0, NULL);
  assert_null(tg_value_new(NULL, TG_KIND_MAP));
  assert_null(tg_value_new(C, TG_KIND_INT));
  refused(tg_error(C), "begins with a map or a list");
  refused(tg_value_put_int(map, NULL, 1), "a value of a map has a key");
  refused(tg_value_put_bool(list, "a", true), "'a': a value of a list has no key");
  refused(tg_value_put_string(list, NULL, NULL, 1), "no text");
  refused(tg_value_put_tensor(map, NULL, t), "a value of a map has a key");
  refused(tg_value_put_tensor(map, "a", NULL), "no tensor");
  refused(tg_value_put_tensor(map, "a", tg_zeros(other, 0, NULL)), "another context");
  refused(tg_value_put_tree(map, "a", NULL), "no tree");
  refused(tg_value_put_tree(map, "a", map), "the tree itself");
  refused(tg_value_put_tree(map, "a", theirs), "another context");
  refused(tg_value_put_tree(map, NULL, list), "a value of a map has a key");
  assert_int_equal(tg_value_put_int(NULL, "a", 1), TG_ERR_NOMEM);
  assert_int_equal(tg_value_put_bool(NULL, "a", true), TG_ERR_NOMEM);
  assert_int_equal(tg_value_put_float(NULL, "a", 1), TG_ERR_NOMEM);
  assert_int_equal(tg_value_put_string(NULL, "a", "", 0), TG_ERR_NOMEM);
  assert_int_equal(tg_value_put_tensor(NULL, "a", t), TG_ERR_NOMEM);
  assert_int_equal(tg_value_put_tree(NULL, "a", list), TG_ERR_NOMEM);
  assert_int_equal(tg_value_count(map), 0);
  assert_int_equal(tg_value_count(list), 0);
  assert_int_equal(tg_error(C), TG_OK);
  tg_value_free(map), tg_value_free(list), tg_value_free(theirs);
  tg_close(other);
}

/* ---- where memory ends */
typedef struct Limited {
  int64_t left, live; /* left: allocations that succeed; live: blocks that are held */
} Limited;

static void *limited_allocate(size_t n, void *user) {
  Limited *l = user;
  if (l->left-- <= 0) return NULL;
  void *p = malloc(n ? n : 1);
  l->live += p != NULL;
  return p;
}

static void *limited_reallocate(void *p, size_t n, void *user) {
  Limited *l = user;
  void *more = l->left-- <= 0 ? NULL : realloc(p, n ? n : 1);
  l->live += more && !p;
  return more;
}

static void limited_release(void *p, void *user) {
  ((Limited *)user)->live -= p != NULL;
  free(p);
}

/* A tree of 40 texts in a list in a map, and a tensor. */
static TgValue *tree_of(TgContext *c, TgTensor *t) {
  TgValue *map = tg_value_new(c, TG_KIND_MAP), *list = tg_value_new(c, TG_KIND_LIST);
  bool ok = map && list;
  for (int i = 0; ok && i < 40; i++)
    ok = !tg_value_put_string(list, NULL, "a text of more than a few bytes", 31);
  bool moved = ok && !tg_value_put_tree(map, "list", list);
  ok = moved && !tg_value_put_tensor(map, "tensor", t);
  if (!moved) tg_value_free(list);
  if (!ok) tg_value_free(map);
  return ok ? map : NULL;
}

static void test_no_memory(void **state) {
  (void)state;
  bool whole = false;
  for (int64_t n = 0; !whole; n++) {
    Limited l = {.left = INT64_MAX};
    const TgAllocator limited = {limited_allocate, limited_reallocate, limited_release, &l};
    TgContext *c = tg_open_with(.device = "INTERP", .allocator = &limited);
    TgTensor *t = tg_zeros(c, 0, NULL);
    int64_t before = l.live;
    l.left = n;
    TgValue *tree = tree_of(c, t);
    whole = tree != NULL;
    l.left = INT64_MAX;
    assert_int_equal(tg_error(c), whole ? TG_OK : TG_ERR_NOMEM);
    tg_value_free(tree);
    if (l.live > before) fail_msg("%d blocks are left with %d allocations", (int)(l.live - before), (int)n);
    tg_close(c);
    assert_int_equal(l.live, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_map),     cmocka_unit_test(test_list),
                                     cmocka_unit_test(test_trees),   cmocka_unit_test(test_read),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_no_memory)};
  return cmocka_run_group_tests(tests, open_it, close_it);
}
