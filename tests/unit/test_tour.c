/* test_tour.c: docs/tour.md, scheduler.md and codegen.md show what the library prints. Each block of them is
 * made anew and compared; with TG_GOLDEN=1 it is written. */
#include "tg.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#ifndef TG_SOURCE_DIR
#define TG_SOURCE_DIR "."
#endif
static char dumps[64]; /* a folder, of one folder for each program */

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

/* ---- the programs that are shown */
static TgTensor *matmul(TgContext *ctx) {
  float zero[96] = {0};
  TgTensor *a = tg_from(ctx, zero, TG_F32, TG_SHAPE(4, 6)), *b = tg_from(ctx, zero, TG_F32, TG_SHAPE(6, 16));
  return tg_relu(tg_matmul(a, b));
}

static TgTensor *softmax(TgContext *ctx) {
  TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(512, 1000));
  return tg_realize(x) ? NULL : tg_softmax(x);
}

static TgTensor *rows(TgContext *ctx) { /* the sum of each row of a product */
  TgTensor *a = tg_empty(ctx, TG_F32, TG_SHAPE(1536, 1536)), *b = tg_empty(ctx, TG_F32, TG_SHAPE(1536, 1536));
  return tg_realize(a) || tg_realize(b) ? NULL : tg_sum(tg_relu(tg_matmul(a, b)), .axis = TG_AXES(1));
}

static const struct {
  const char *name;
  TgTensor *(*make)(TgContext *ctx);
} programs[] = {{"matmul", matmul}, {"softmax", softmax}, {"rows", rows}};

static const char *dump_of(const char *program) {
  static char path[96];
  snprintf(path, sizeof path, "%s/%s", dumps, program);
  return path;
}

/* The program on a device that only renders; its kernel's text in source, its dumps in its folder, or what it
 * says at this level of TG_DEBUG. */
static void lower(const char *program, const char *device, bool dump, const char *debug, char *source) {
  size_t i = 0;
  while (strcmp(programs[i].name, program))
    if (++i == sizeof programs / sizeof *programs) fail_msg("no program is called %s", program);
  setenv("TG_DEV", device, 1);
  if (dump) setenv("TG_DUMP", dump_of(program), 1);
  if (debug) setenv("TG_DEBUG", debug, 1);
  TgContext *ctx = tg_open(NULL);
  unsetenv("TG_DUMP"), unsetenv("TG_DEBUG");
  assert_int_equal(tg_error(ctx), TG_OK);
  if (source) tg_watch_kernels(ctx, keep_source, source);
  assert_int_equal(tg_realize(programs[i].make(ctx)), TG_OK);
  tg_close(ctx);
}

/* What a program's lowering says of its decisions, less the lines about the device and times. */
static char *decisions(const char *program) {
  char path[96], *out = calloc(1, 1 << 16), *said, *line;
  snprintf(path, sizeof path, "%s/said", dumps);
  fflush(stderr);
  int old = dup(2), to = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  assert_true(old >= 0 && to >= 0);
  dup2(to, 2);
  lower(program, "NULL:C", false, "3", NULL);
  fflush(stderr);
  dup2(old, 2), close(old), close(to);
  said = file_text(path);
  for (line = strtok(said, "\n"); line; line = strtok(NULL, "\n"))
    if (!strncmp(line, "join", 4) || !strncmp(line, "no  ", 4) || !strncmp(line, "nest", 4) ||
        strstr(line, ": opts"))
      strcat(strcat(out, line), "\n");
  free(said);
  return out;
}

/* The nest of the matrix product's kernel after these opts; its buffers are the same in all of them. */
static char *after_opts(const char *opts, const char *device, const char *pass) {
  char path[256];
  snprintf(path, sizeof path, "%s/k000-r_4_16.5-choose_opts.uop", dump_of("matmul"));
  char *kernel = file_text(path), *out = calloc(1, 1 << 16);
  assert_non_null(kernel);
  setenv("TG_DEV", device, 1);
  TgContext *ctx = tg_open(NULL);
  bool none = !strncmp(opts, "none", 4);
  const char *text = tg_opt(ctx, kernel, .from = "choose opts", .pass = pass, .opts = none ? NULL : opts);
  if (!text) fail_msg("%s: %s", opts, tg_errmsg(ctx));
  char *copy = strdup(text);
  for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n"))
    if (*line != '#' && !strstr(line, " = PARAM")) strcat(strcat(out, line), "\n");
  tg_close(ctx);
  free(kernel), free(copy);
  return out;
}

static char *source_for(const char *device) {
  char *s = calloc(1, 1 << 16), *k = NULL;
  lower("matmul", device, false, NULL, s);
  if (!strcmp(device, "NULL:C")) k = strstr(s, "\nvoid "); /* vector types and helpers come first */
  if (k) memmove(s, k + 1, strlen(k));
  return s;
}

/* What belongs under "<!-- dump NAME -->" (of another program than matmul: "NAME of PROGRAM"), "<!-- source
 * DEVICE
 * -->", "<!-- decisions PROGRAM -->", "<!-- opts LIST -->" or, for a GPU, "<!-- blocks LIST -->" and, once
 * threads have their turns, "<!-- threads LIST -->": without the lines of counts, which are no part of the
 * graph. */
static char *block(const char *what) {
  char path[256], name[128], program[32] = "matmul", *s;
  if (sscanf(what, "<!-- dump %127s of %31s", name, program) >= 1) {
    snprintf(path, sizeof path, "%s/%s", dump_of(program), name);
    if (!(s = file_text(path))) fail_msg("no dump is called %s", name);
  } else if (sscanf(what, "<!-- decisions %31s", program) == 1)
    s = decisions(program);
  else if (sscanf(what, "<!-- opts %127[^-]", name) == 1)
    s = after_opts(name, "NULL:C", "apply opts");
  else if (sscanf(what, "<!-- blocks %127[^-]", name) == 1)
    s = after_opts(name, "NULL:CUDA", "apply opts");
  else if (sscanf(what, "<!-- threads %127[^-]", name) == 1)
    s = after_opts(name, "NULL:CUDA", "gpu dims");
  else {
    assert_int_equal(sscanf(what, "<!-- source %127s", name), 1);
    s = source_for(name);
  }
  char *from = s, *out;
  for (; *from == '#'; from = strchr(from, '\n') + 1) {}
  out = calloc(1, strlen(from) + 2);
  strcpy(out, from);
  char *stages = strstr(out, "#| "); /* from which tg goes on */
  if (stages) *stages = 0;
  for (size_t n = strlen(out); n > 1 && out[n - 1] == '\n' && out[n - 2] == '\n'; n--)
    out[n - 1] = 0;
  free(s);
  return out;
}

static void check_page(const char *name, int least) {
  char path[256];
  snprintf(path, sizeof path, "%s/docs/%s", TG_SOURCE_DIR, name);
  char *doc = file_text(path), *made = calloc(1, 1 << 20);
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
  assert_true(blocks >= least);
  if (getenv("TG_GOLDEN")) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(made, f);
    fclose(f);
  } else if (strcmp(made, doc)) {
    size_t at = 0, line = 1;
    for (; made[at] == doc[at]; at++)
      line += made[at] == '\n';
    fail_msg("docs/%s, line %zu, is not what the library prints (make golden writes it): \"%.60s\", not "
             "\"%.60s\"",
             name, line, made + at, doc + at);
  }
  free(doc), free(made);
}

static void test_tour(void **state) {
  (void)state;
  strcpy(dumps, "/tmp/tour-XXXXXX");
  assert_non_null(mkdtemp(dumps));
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    assert_int_equal(mkdir(dump_of(programs[i].name), 0700), 0);
    lower(programs[i].name, "NULL:C", true, NULL, NULL);
  }
  check_page("tour.md", 8);
  check_page("scheduler.md", 3);
  check_page("codegen.md", 7);
  char clean[96];
  snprintf(clean, sizeof clean, "rm -rf %s", dumps);
  if (system(clean)) fail_msg("%s is left", dumps);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_tour)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
