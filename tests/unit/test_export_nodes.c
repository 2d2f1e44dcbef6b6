/* test_export_nodes.c: every node case of the ONNX project that can be captured, as C ($TG_DATA, else
 * ../shared/data): it compiles without a warning and has the bits of the interpreter. */
#define _GNU_SOURCE
#include "export/nodes.h"
#include "fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static void test_nodes(void **state) {
  (void)state;
  char folder[] = "/tmp/tg-export-nodes-XXXXXX", path[600];
  const char *every = getenv("TG_EVERY");
  if (!data_file("onnx-node-tests/node.tar.xz", path)) skip();
  assert_non_null(mkdtemp(folder));
  NodeCounts n;
  int unpacked = nodes_exported(path, folder, every ? atoi(every) : 1, &n);
  snprintf(path, sizeof path, "rm -rf %s", folder);
  assert_int_equal(system(path), 0);
  if (!unpacked) skip();
  print_message("%d cases have the same bits, %d more once inputs are fixed; %d are refused\n", n.same[0],
                n.same[1], n.refused);
  assert_int_equal(n.wrong, 0);
  assert_true(n.same[0] > n.same[1] + n.refused);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
