/* test_info.c: tg_info and the kind of a text; the processor's features against what the system says. */
#define _GNU_SOURCE
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static TgContext *open_on(const char *device) {
  return tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
}

static void test_facts(void **state) {
  (void)state;
  setenv("TG_OPTS", "", 1), setenv("TG_CC_LIMIT", "59", 1);
  TgContext *c = open_on("INTERP");
  const char *name, *text;
  bool built = false, version = false, limit = false, device = false;
  int n = 0;
  for (; (text = tg_info(c, n, &name)); n++) {
    assert_non_null(name);
    version |= !strcmp(name, "version") && !strcmp(text, tg_version());
    built |= !strcmp(name, "built with") && strstr(text, "sqlite") && strstr(text, "zlib");
    limit |= !strcmp(name, "TG_CC_LIMIT") && !strcmp(text, "59");
    device |= !strcmp(name, "device") && !strncmp(text, "INTERP: ", 8);
  }
  assert_true(built && version && limit && device && n > 10);
  assert_null(name);
  assert_null(tg_info(c, -1, NULL));
  assert_null(tg_info(NULL, 0, &name));
  assert_string_equal(tg_info(c, 0, NULL), tg_version());
  tg_close(c);
  unsetenv("TG_CC_LIMIT");
  c = open_on("no such device"); /* facts are wanted most where nothing works */
  assert_non_null(strstr(tg_info(c, 3, &name), "no such device"));
  tg_close(c);
}

static void test_features(void **state) {
  (void)state;
#ifdef __x86_64__
  static const char *const names[][2] = {{"avx2", " avx2 "},
                                         {"fma", " fma "},
                                         {"avx512f", " avx512f "},
                                         {"f16c", " f16c "},
                                         {"avx512vnni", " avx512_vnni "}};
  TgContext *c = open_on("CPU");
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[8192] = "", have[600];
  while (f && !tg_error(c) && fgets(line, sizeof line - 1, f))
    if (!strncmp(line, "flags", 5)) break;
  if (f) fclose(f);
  if (!strncmp(line, "flags", 5)) {
    line[strcspn(line, "\n")] = ' ';
    snprintf(have, sizeof have, "%s", tg_device_describe(c));
    for (char *p = have; *p; p++)
      if (*p == ';' || *p == ',') *p = ' ';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      char word[32];
      snprintf(word, sizeof word, " %s ", names[i][0]);
      if (!strstr(have, word) != !strstr(line, names[i][1]))
        fail_msg("%s: %s", names[i][0], tg_device_describe(c));
    }
  }
  tg_close(c);
#endif
}

static void test_kind(void **state) {
  (void)state;
  TgContext *c = open_on("INTERP");
  const char *text = tg_opt(c, "r0 = RANGE[0, LOOP](8)\nu1 = FLOORMOD(r0, 8)\n", .emit = "kind");
  assert_non_null(text);
  assert_non_null(strstr(text, "graph of 3 nodes with 1 root"));
  assert_null(tg_opt(c, "not a graph", .emit = "kind"));
  assert_int_equal(tg_error(c), TG_ERR_VALUE);
  tg_clear_error(c);
  assert_null(tg_opt(c, "u1 = FLOORMOD(8, 8)\n", .emit = "sorts"));
  tg_clear_error(c);
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_facts), cmocka_unit_test(test_features),
                                     cmocka_unit_test(test_kind)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
