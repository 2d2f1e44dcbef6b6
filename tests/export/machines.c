/* machines.c: exported text on other machines has the bits of this one: 32 bits, the high byte first, 64-bit
 * Arm, processors without a system under them. Programs that check themselves are compiled for each machine
 * whose compiler is here, and run by its emulator. tests/export/check-machines installs these and then runs
 * this. */
#define _GNU_SOURCE
#include "export/cases.h"
#include "export/checked.h"
#include "export/exported.h"
#include "export/trained.h"
#include "fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define STRICT "-std=c99 -pedantic -Wall -Wextra -Wconversion -Werror"

#define FIRMWARE TG_TESTS "/../examples/firmware"

/* needs: programs that must be here. cc: a compiler with its flags; run: what runs the program. bare: there
 * is no system; `run` then compiles as well. */
typedef struct Machine {
  const char *name, *needs, *cc, *run;
  bool bare;
} Machine;

static const Machine machines[] = {
    {"x86-64, gcc", "gcc", "gcc -O2", "./prog", false},
    {"x86-64, clang", "clang-19", "clang-19 -O2", "./prog", false},
    {"i686, gcc", "i686-linux-gnu-gcc", "i686-linux-gnu-gcc -O2 -static -msse2 -mfpmath=sse", "./prog",
     false},
    {"i686, clang", "clang-19 i686-linux-gnu-gcc",
     "clang-19 -O2 -static --target=i686-linux-gnu -msse2 -mfpmath=sse -isystem /usr/i686-linux-gnu/include",
     "./prog", false},
    {"s390x, gcc", "s390x-linux-gnu-gcc qemu-s390x", "s390x-linux-gnu-gcc -O2 -static", "qemu-s390x ./prog",
     false},
    {"ppc64, gcc", "powerpc64-linux-gnu-gcc qemu-ppc64", "powerpc64-linux-gnu-gcc -O2 -static",
     "qemu-ppc64 ./prog", false},
    {"arm64, gcc", "aarch64-linux-gnu-gcc qemu-aarch64", "aarch64-linux-gnu-gcc -O2 -static",
     "qemu-aarch64 ./prog", false},
    {"Windows, mingw", "x86_64-w64-mingw32-gcc wine", "x86_64-w64-mingw32-gcc -O2 -static",
     "WINEPREFIX=$PWD/wine WINEDEBUG=-all wine ./prog.exe", false},
    {"Cortex-M4", "arm-none-eabi-gcc qemu-system-arm",
     "arm-none-eabi-gcc -O2 -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mthumb -mfloat-abi=hard", FIRMWARE "/run m4",
     true},
    {"Cortex-M7", "arm-none-eabi-gcc qemu-system-arm",
     "arm-none-eabi-gcc -O2 -mcpu=cortex-m7 -mfpu=fpv5-d16 -mthumb -mfloat-abi=hard", FIRMWARE "/run m7",
     true},
};

enum { MACHINES = (int)(sizeof machines / sizeof *machines) };

static char folder[] = "/tmp/tg-export-machines-XXXXXX";

static int setup(void **state) {
  (void)state;
  setenv("TG_CACHE", "0", 0);
  return mkdtemp(folder) == NULL;
}

static int teardown(void **state) {
  (void)state;
  char line[100];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return getenv("TG_KEEP") ? 0 : system(line);
}

static bool is_here(const char *programs) {
  char line[300];
  snprintf(line, sizeof line, "for p in %s; do command -v $p >/dev/null || exit 1; done", programs);
  return !system(line);
}

static TgContext *interpreter(void) {
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "INTERP:C99", .seed = 7});
  assert_int_equal(tg_error(c), TG_OK);
  return c;
}

/* One function, three runs of it. */
static void put_case(Checked *k, const Case *of, TgCOptions o) {
  TgContext *c = interpreter();
  TgJit *jit = tg_jit(c, run_case, (void *)of);
  for (int turn = 0; turn < 4; turn++)
    TG_SCOPE(c) {
      TgTensor *in[] = {tg_contiguous(numbers(c, of->dtype, turn)),
                        tg_contiguous(numbers(c, of->dtype, turn + 4))};
      TgTensor *out = NULL;
      if (tg_realize_many(in, 2) || tg_jit_run(jit, in, 2, &out, 1))
        fail_msg("%s: %s", of->name, tg_errmsg(c));
      if (turn == 1) checked_model(k, jit, o);
      if (turn) checked_turn(k, in, 2, &out, 1);
    }
  checked_model_end(k);
  tg_jit_free(jit);
  tg_close(c);
}

/* A step of training with dropout, which has state, draws, and roots. */
static void put_training(Checked *k, TgCOptions o) {
  TgContext *c = interpreter();
  Learner *l = learner(c, 0.25);
  TgJit *jit = tg_jit(c, learn, l);
  for (int i = 0; i < STEPS; i++)
    TG_SCOPE(c) {
      float x[BATCH * IN];
      int32_t y[BATCH];
      batch_of(i, x, y);
      TgTensor *in[] = {tg_from(c, x, TG_F32, TG_SHAPE(BATCH, IN)), tg_from(c, y, TG_I32, TG_SHAPE(BATCH))};
      TgTensor *out = NULL;
      if (i == 2) checked_model(k, jit, o); /* before the run that it is compared with: the state goes on */
      if (tg_jit_run(jit, in, 2, &out, 1)) fail_msg("step %d: %s", i, tg_errmsg(c));
      if (i >= 2) checked_turn(k, in, 2, &out, 1);
    }
  checked_model_end(k);
  tg_jit_free(jit), tg_optim_free(l->optim);
  free(l);
  tg_close(c);
}

/* ---- networks of the size that such parts have */
/* A network that hears words: a convolution, then four of one channel each with one of 1 x 1 behind it. */
enum { HEARD = 49, BANDS = 10, CHANNELS = 24, WORDS = 12, PAIRS = 4 };

typedef struct Keyword {
  TgTensor *first, *deep[PAIRS], *wide[PAIRS], *last;
} Keyword;

static TgStatus hear(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  const Keyword *k = user;
  (void)nin, (void)nout;
  TgTensor *x =
      tg_relu(tg_conv2d(in[0], k->first, NULL, .stride = TG_SIZES(2, 2), .padding = TG_SIZES(5, 2)));
  for (int i = 0; i < PAIRS; i++) {
    x = tg_relu(tg_conv2d(x, k->deep[i], NULL, .groups = CHANNELS, .padding = TG_SIZES(1, 1)));
    x = tg_relu(tg_conv2d(x, k->wide[i], NULL));
  }
  out[0] = tg_softmax(tg_matmul(tg_mean(x, .axis = TG_AXES(2, 3)), k->last));
  return out[0] ? TG_OK : tg_error(c);
}

static TgTensor *weight(TgContext *c, int n, const int64_t *dims, double size) {
  return tg_clone(tg_mul_scalar(tg_randn(c, n, dims), size));
}

static void put_runs(Checked *k, TgContext *c, TgJit *jit, int n, const int64_t *dims, TgCOptions o) {
  for (int turn = 0; turn < 3; turn++)
    TG_SCOPE(c) {
      TgTensor *x = tg_clone(tg_randn(c, n, dims)), *out = NULL;
      if (tg_jit_run(jit, &x, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
      if (turn == 1) checked_model(k, jit, o);
      if (turn) checked_turn(k, &x, 1, &out, 1);
    }
  checked_model_end(k);
}

static void put_keyword(Checked *k) {
  TgContext *c = interpreter();
  Keyword w = {.first = weight(c, TG_SHAPE(CHANNELS, 1, 10, 4), .2),
               .last = weight(c, TG_SHAPE(CHANNELS, WORDS), .3)};
  for (int i = 0; i < PAIRS; i++) {
    w.deep[i] = weight(c, TG_SHAPE(CHANNELS, 1, 3, 3), .4);
    w.wide[i] = weight(c, TG_SHAPE(CHANNELS, CHANNELS, 1, 1), .3);
  }
  TgJit *jit = tg_jit(c, hear, &w);
  put_runs(k, c, jit, TG_SHAPE(1, 1, HEARD, BANDS), (TgCOptions){.weights_apart = true});
  tg_jit_free(jit);
  tg_close(c);
}

static TgStatus run_model(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  TgOnnxValue v;
  (void)c;
  tg_onnx_input(user, 0, &v);
  return tg_onnx_run(user, &v.name, in, nin, out, nout);
}

static void put_mnist(Checked *k) {
  char path[600];
  snprintf(path, sizeof path, "%s/onnx-mnist/mnist.onnx", data_folder());
  if (access(path, R_OK)) {
    print_message("no onnx-mnist in the shared data\n");
    return;
  }
  TgContext *c = interpreter();
  TgOnnx *m = tg_onnx_open(c, path);
  TgJit *jit = tg_jit(c, run_model, m);
  put_runs(k, c, jit, TG_SHAPE(1, 1, 28, 28), (TgCOptions){.own_math = true});
  tg_jit_free(jit), tg_onnx_free(m);
  tg_close(c);
}

/* The same sizes with integers alone. */
static void put_integers(Checked *k, Net *n, int64_t *dims, TgDType d) {
  TgContext *c = interpreter();
  TgOnnx *m = net_open(n, c);
  if (!m || tg_onnx_integers(m)) fail_msg("%s", tg_errmsg(c));
  TgJit *jit = tg_jit(c, run_model, m);
  for (int turn = 0; turn < 3; turn++)
    TG_SCOPE(c) {
      TgTensor *x = tg_clone(tg_randint(c, 4, dims, 0, 120, d)), *out = NULL;
      if (tg_jit_run(jit, &x, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
      if (turn == 1) checked_model(k, jit, (TgCOptions){.weights_apart = d == TG_I8});
      if (turn) checked_turn(k, &x, 1, &out, 1);
    }
  checked_model_end(k);
  tg_jit_free(jit), tg_onnx_free(m), net_free(n);
  tg_close(c);
}

/* Each text alone, as strictly as there is; then the whole. */
static void commands_of(const Machine *m, char *line, size_t cap) {
  int n = snprintf(line, cap, "for f in n*.c; do %s " STRICT " -c $f -o $f.o || exit 1; done; ", m->cc);
  if (m->bare)
    snprintf(line + n, cap - (size_t)n,
             "rm -f *.o; %s . -DNO_MAIN -w n*.c check_*.c main.c -x c bare_main.h > out 2>&1", m->run);
  else
    snprintf(line + n, cap - (size_t)n,
             "%s -w *.o check_*.c main.c -lm -o prog && %s > out || { cat out; exit 1; }; rm -f *.o", m->cc,
             m->run);
}

/* One program for the board. */
static void bare_main(void) {
  char path[200];
  snprintf(path, sizeof path, "%s/bare_main.h", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fputs("#include \"board.h\"\nint check_all(void);\nint main(void);\nint main(void) {\n"
        "  int wrong = check_all();\n  board_number(wrong ? \"wrong: \" : \"the same: \", wrong, \"\\n\");\n"
        "  return wrong;\n}\n",
        f);
  assert_int_equal(fclose(f), 0);
}

static void machine_checks(const Machine *m) {
  char line[2000];
  if (!is_here(m->needs)) {
    print_message("left out: %s is not here (%s)\n", m->name, m->needs);
    return;
  }
  commands_of(m, line, sizeof line);
  if (!checked_run(folder, m->name, line)) {
    checked_run(folder, m->name, "cat out");
    fail_msg("%s differs", m->name);
  }
  print_message("%s: ", m->name);
  fflush(stdout);
  checked_run(folder, m->name, "tail -n 1 out");
}

static void test_machines(void **state) {
  (void)state;
  Checked k;
  const char *own = getenv("TG_MACHINE"); /* one alone */
  assert_true(checked_begin(&k, folder));
  for (int i = 0; i < export_case_count; i++)
    put_case(&k, &export_cases[i], (TgCOptions){.own_math = i % 2});
  put_training(&k, (TgCOptions){.own_math = true});
  put_training(&k, (TgCOptions){.weights_apart = true});
  put_keyword(&k);
  put_mnist(&k);
  put_integers(&k, net_digit(false), (int64_t[]){1, 1, 28, 28}, TG_U8);
  put_integers(&k, net_digit(true), (int64_t[]){1, 1, 28, 28}, TG_U8);
  put_integers(&k, net_keyword(), (int64_t[]){1, 1, 49, 10}, TG_I8);
  assert_true(checked_end(&k));
  bare_main();
  for (int i = 0; i < MACHINES; i++)
    if (!own || strstr(machines[i].name, own)) machine_checks(&machines[i]);
}

/* ---- a trained network of integers: how often it is right, here and on the board */
enum { ON_BOARD = 60 };

static int says(const int8_t *score) {
  int best = 0;
  for (int k = 1; k < DIGITS; k++)
    if (score[k] > score[best]) best = k;
  return best;
}

static void put_numbers(FILE *f, const char *type, const char *name, const uint8_t *v, int n) {
  fprintf(f, "static const %s %s[] = {", type, name);
  for (int i = 0; i < n; i++)
    fprintf(f, i % 32 ? "%d," : "\n%d,", v[i]);
  fprintf(f, "};\n");
}

/* It ends with 0 if all that it says of these pictures is what was said here. */
static void put_digits(const Trained *t, const uint8_t *said) {
  char path[200];
  snprintf(path, sizeof path, "%s/digits.c", folder);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fprintf(f, "#include \"board.h\"\n#include \"digit.h\"\n");
  put_numbers(f, "uint8_t", "pictures", t->pictures, ON_BOARD * PIXELS);
  put_numbers(f, "uint8_t", "labels", t->labels, ON_BOARD), put_numbers(f, "uint8_t", "said", said, ON_BOARD);
  fprintf(f,
          "static digit net;\nint main(void) {\n  int8_t score[DIGIT_SAYS_SIZE];\n  int i, k, right = 0, "
          "same = 0;\n"
          "  digit_reset(&net);\n  for (i = 0; i < %d; i++) {\n    int best = 0;\n"
          "    if (digit_run(&net, pictures + %d * i, score)) return 1;\n"
          "    for (k = 1; k < %d; k++) if (score[k] > score[best]) best = k;\n"
          "    right += best == labels[i];\n    same += best == said[i];\n  }\n"
          "  board_number(\"right: \", right, \" of %d\");\n  board_number(\", as on the host: \", same, "
          "\"\\n\");\n"
          "  return same != %d;\n}\n",
          ON_BOARD, PIXELS, DIGITS, ON_BOARD, ON_BOARD);
  assert_int_equal(fclose(f), 0);
}

static void test_trained(void **state) {
  (void)state;
  char path[600], line[1000];
  snprintf(path, sizeof path, "%s/mnist", data_folder());
  if (access(path, R_OK)) {
    print_message("no mnist in the shared data\n");
    skip();
  }
  Trained t;
  Exported e;
  TgContext *c = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "CPU", .seed = 3});
  if (!trained_new(&t, c, path)) fail_msg("not trained");
  TgOnnx *m = net_open(t.net, c);
  if (!m || tg_onnx_integers(m)) fail_msg("%s", tg_errmsg(c));
  TgJit *jit = tg_jit(c, run_model, m);
  TgTensor *x = tg_clone(tg_zeros(c, TG_SHAPE(1, 1, 28, 28), .dtype = TG_U8)), *out;
  for (int i = 0; i < 2; i++)
    if (tg_jit_run(jit, &x, 1, &out, 1)) fail_msg("%s", tg_errmsg(c));
  assert_true(exported_new(&e, jit, folder, "gcc -O2", (TgCOptions){0}));
  static uint8_t said[TESTED];
  int right = 0;
  for (int i = 0; i < TESTED; i++) {
    int8_t score[DIGITS];
    assert_int_equal(exported_run(&e, e.m, (void *[]){t.pictures + (size_t)i * PIXELS, score}), 0);
    said[i] = (uint8_t)says(score);
    right += said[i] == t.labels[i];
  }
  double correct = (double)right / TESTED;
  print_message("MNIST, of %d pictures: %.2f %% right with floats, %.2f %% with 8-bit integers\n", TESTED,
                100 * t.correct, 100 * correct);
  assert_true(t.correct > 0.96 && correct > t.correct - 0.005);
  exported_free(&e);
  snprintf(path, sizeof path, "%s/digit", folder);
  assert_int_equal(tg_export(jit, path, .inputs = (const char *[]){"x"}, .outputs = (const char *[]){"says"},
                             .target = "cortex-m4"),
                   TG_OK);
  put_digits(&t, said);
  for (int i = 0; i < 2 && is_here("arm-none-eabi-gcc qemu-system-arm"); i++) {
    snprintf(line, sizeof line, "rm -f *.o; %s/run %s . digit.c digits.c > out 2>&1", FIRMWARE,
             i ? "m7" : "m4");
    if (!checked_run(folder, "digits", line)) {
      checked_run(folder, "digits", "cat out");
      fail_msg("the board says something else");
    }
    print_message("Cortex-M%d, 8-bit integers: ", i ? 7 : 4);
    fflush(stdout);
    checked_run(folder, "digits", "tail -n 1 out");
  }
  tg_jit_free(jit), tg_onnx_free(m), trained_free(&t);
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_trained), cmocka_unit_test(test_machines)};
  cmocka_set_test_filter(getenv("TG_TEST"));
  return cmocka_run_group_tests(tests, setup, teardown);
}
