/* test_export_machines.c: exported text on other machines has the bits of this one: 32 bits, the high byte first,
 * 64-bit Arm, processors without a system under them. Programs that check themselves are compiled for each machine whose
 * compiler is here, and run by its emulator. tests/export/machines installs these and then runs this. */
#define _GNU_SOURCE
#include "export/cases.h"
#include "export/checked.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define STRICT "-std=c99 -pedantic -Wall -Wextra -Wconversion -Werror"

/* needs: programs that must be here. cc compiles and links all files of the folder into `prog`; run runs it. bare: there
 * is no system, and little memory. */
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

static void machine_checks(const Machine *m) {
  char line[1200];
  if (!is_here(m->needs)) {
    print_message("%s: not here (%s)\n", m->name, m->needs);
    return;
  }
  snprintf(line, sizeof line,
           "for f in n*.c; do %s " STRICT
           " -c $f -o $f.o || exit 1; done; %s -w *.o check_*.c main.c -lm -o prog "
           "&& %s > out || { cat out; exit 1; }; rm -f *.o",
           m->cc, m->cc, m->run);
  if (!checked_run(folder, m->name, line)) fail_msg("%s differs", m->name);
  print_message("%s: ", m->name);
  fflush(stdout);
  checked_run(folder, m->name, "cat out");
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
  assert_true(checked_end(&k));
  for (int i = 0; i < MACHINES; i++)
    if (!own || strstr(machines[i].name, own)) machine_checks(&machines[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_machines)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
