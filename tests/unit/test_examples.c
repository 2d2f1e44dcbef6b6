/* test_examples.c: examples/ and the program of docs/embedding.md run, each for a few steps, and say what
 * they should. Those that need data run where it is ($TG_DATA, else ../shared/data). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[] = "/tmp/tg-examples-XXXXXX";
static char text[1 << 16];

static int run(const char *name, const char *form, ...) {
  char args[1500], line[2200];
  va_list ap;
  va_start(ap, form);
  vsnprintf(args, sizeof args, form, ap);
  va_end(ap);
  snprintf(line, sizeof line, "cd %s && XDG_CACHE_HOME=%s %s/%s %s 2>&1", folder, folder, TG_BINARIES, name,
           args);
  FILE *p = popen(line, "r");
  assert_non_null(p);
  text[fread(text, 1, sizeof text - 1, p)] = 0;
  int status = pclose(p);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void says(const char *what) {
  if (!strstr(text, what)) fail_msg("no '%s' in: %s", what, text);
}

static void fine(const char *name, int code) {
  if (code) fail_msg("%s ended with %d: %s", name, code, text);
}

static const char *data(const char *name, char room[800]) {
  const char *own = getenv("TG_DATA");
  char *whole = realpath(own && *own ? own : "../shared/data", NULL);
  snprintf(room, 800, "%s/%s", whole ? whole : "", name);
  free(whole);
  return access(room, R_OK) ? NULL : room;
}

static void test_small(void **state) {
  (void)state;
  fine("gan", run("example_gan", "4")), says("mean distance");
  fine("cartpole", run("example_cartpole", "16")), says("at the end");
  char path[100];
  snprintf(path, sizeof path, "%s/text", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < 100; i++)
    fputs("to be or not to be ", f);
  fclose(f);
  fine("char_gpt", run("example_char_gpt", "text 3 5")), says("loss");
  assert_int_equal(run("example_char_gpt", ""), 1), says("usage");
  if (access(TG_BINARIES "/example_cpp17", X_OK)) return;
  fine("cpp17", run("example_cpp17", "")), says("do not broadcast");
}

/* The step is written with the library, and compiled and run without it. */
static void test_export(void **state) {
  (void)state;
  char line[1500];
  fine("export_step", run("example_export_step", "")), says("step.c: state ");
  snprintf(line, sizeof line,
           "cd %s && cc -std=c99 -pedantic -Wall -Wextra -Werror -O1 -I. %s/../examples/export/learn.c "
           "step.c -lm -o "
           "learn",
           folder, TG_TESTS);
  assert_int_equal(system(line), 0);
  snprintf(line, sizeof line, "%s/learn", folder);
  FILE *p = popen(line, "r");
  assert_non_null(p);
  text[fread(text, 1, sizeof text - 1, p)] = 0;
  fine("learn", pclose(p)), says("step 2000"), says("it says");
  assert_int_equal(run("example_export_step", "/nowhere/at/all"), 1), says("/nowhere/at/all");
}

static void test_embedding(void **state) {
  (void)state;
  fine("embedding", run("embedding_example", "")), says("y = 2.00 x + 1.00");
  /* and stopped by a signal */
  char line[400];
  snprintf(line, sizeof line, "100000000 & p=$!; sleep 0.6; kill -INT $p; wait $p");
  fine("embedding", run("embedding_example", "%s", line)), says("stopped");
}

static void test_data(void **state) {
  (void)state;
  char a[800], b[800], c[800];
  if (data("mnist", a)) {
    fine("mnist_mlp", run("example_mnist_mlp", "%s 60", a)), says("test accuracy");
    fine("mnist_mlp", run("example_mnist_mlp", "%s 1", a)), says("going on from");
  }
  if (data("resnet20-cifar10/resnet20-12fca82f.th", a) && data("cifar10/data_batch_1_first2000.bin.gz", b)) {
    fine("resnet", run("example_resnet_cifar", "%s %.*s", a, (int)strlen(b) - 3, b)), says("1997 of 2000");
    assert_int_equal(run("example_resnet_cifar", "%s %s", a, b), 1), says("no whole records"); /* packed */
  }
  if (data("stories260K/stories260K-f32.gguf", a))
    fine("story", run("example_story", "%s 'Once upon a time' 20", a)), says("Once upon a time"),
        says(" %  ");
  if (data("stories260K/stories260K-q8_0.gguf", a))
    fine("lora", run("example_lora", "%s 'Once upon a time' ' the cat sat on the mat'", a)),
        says("Once upon a time the cat sat on the mat"), says("step 40  loss");
  if (data("mobilenet/mobilenet_v1_0.25_128.onnx", a) && data("mobilenet/daisy_128x128_rgb.npy", b) &&
      data("mobilenet/labels.txt", c)) {
    fine("classify", run("example_classify", "%s %s %s", a, b, c)), says("67.4 %   986  daisy");
  }
}

static int begin(void **state) { return (void)state, mkdtemp(folder) ? 0 : -1; }

static int end(void **state) {
  char line[100];
  (void)state;
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_export),
                                     cmocka_unit_test(test_embedding), cmocka_unit_test(test_data)};
  return cmocka_run_group_tests(tests, begin, end);
}
