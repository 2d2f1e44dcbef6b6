/* test_tour.c: docs/tour.md shows what the library prints. Each block of it is made anew and compared; with
 * TG_GOLDEN=1 it is written. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#ifndef TG_SOURCE_DIR
#define TG_SOURCE_DIR "."
#endif
static char dumps[64];

static char *file_text(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *s = calloc(1, 1 << 20);
  size_t n = fread(s, 1, (1 << 20) - 1, f);
  s[n] = 0;
  fclose(f);
  return s;
}

static void keep_source(const TgKernelText *k, void *user) {
  if (strlen(k->source) < 1 << 16) strcpy(user, k->source);
}

/* relu(a @ b) on a device that only renders; its kernel's text in source, its dumps in the folder if one is
 * named */
static void lower(const char *device, const char *dump, char *source) {
  float zero[96] = {0};
  setenv("TG_DEV", device, 1);
  if (dump) setenv("TG_DUMP", dump, 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_DUMP");
  assert_int_equal(tg_error(ctx), TG_OK);
  tg_watch_kernels(ctx, keep_source, source);
  TgTensor *a = tg_from(ctx, zero, TG_F32, TG_SHAPE(4, 6)), *b = tg_from(ctx, zero, TG_F32, TG_SHAPE(6, 16));
  assert_int_equal(tg_realize(tg_relu(tg_matmul(a, b))), TG_OK);
  tg_close(ctx);
}

/* What belongs under "<!-- dump NAME -->" or "<!-- source DEVICE -->": without the lines of counts, which are
 * no part of the graph. */
static char *block(const char *what) {
  char path[256], name[128], *s, *from;
  if (sscanf(what, "<!-- dump %127s", name) == 1) {
    snprintf(path, sizeof path, "%s/%s", dumps, name);
    if (!(s = file_text(path))) fail_msg("no dump is called %s", name);
    for (from = s; *from == '#'; from = strchr(from, '\n') + 1) {}
  } else {
    assert_int_equal(sscanf(what, "<!-- source %127s", name), 1);
    from = s = calloc(1, 1 << 16);
    lower(name, NULL, s);
    if (!strcmp(name, "NULL:C")) { /* vector types and helpers come first; the reader wants the kernel */
      char *k = strstr(s, "\nvoid ");
      if (k) from = k + 1;
    }
  }
  char *out = calloc(1, strlen(from) + 2);
  strcpy(out, from);
  for (size_t n = strlen(out); n > 1 && out[n - 1] == '\n' && out[n - 2] == '\n'; n--)
    out[n - 1] = 0;
  free(s);
  return out;
}

static void test_tour(void **state) {
  (void)state;
  strcpy(dumps, "/tmp/tour-XXXXXX");
  assert_non_null(mkdtemp(dumps));
  char *source = calloc(1, 1 << 16);
  lower("NULL:C", dumps, source);
  char *doc = file_text(TG_SOURCE_DIR "/docs/tour.md"), *made = calloc(1, 1 << 20);
  assert_non_null(doc);
  int blocks = 0;
  char *p = doc;
  for (char *m; (m = strstr(p, "<!-- ")); blocks++) {
    char *open = strstr(m, "\n```");
    char *body = open ? strchr(open + 1, '\n') : NULL;
    char *end = body ? strstr(body, "\n```\n") : NULL;
    assert_non_null(end);
    strncat(made, p, (size_t)(body + 1 - p));
    char *b = block(m);
    strcat(made, b);
    free(b);
    p = end + 1;
  }
  strcat(made, p);
  assert_true(blocks >= 8);
  if (getenv("TG_GOLDEN")) {
    FILE *f = fopen(TG_SOURCE_DIR "/docs/tour.md", "wb");
    assert_non_null(f);
    fputs(made, f);
    fclose(f);
  } else if (strcmp(made, doc)) {
    size_t at = 0, line = 1;
    for (; made[at] == doc[at]; at++)
      line += made[at] == '\n';
    fail_msg("docs/tour.md, line %zu, is not what the library prints (make golden writes it): \"%.60s\", not "
             "\"%.60s\"",
             line, made + at, doc + at);
  }
  char clean[96];
  snprintf(clean, sizeof clean, "rm -rf %s", dumps);
  if (system(clean)) fail_msg("%s is left", dumps);
  free(doc), free(made), free(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_tour)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
