/* test_choices.c: what is chosen for small programs on several machines: which kernels there are, what each
 * keeps, how it is launched, its opts, and what the two models of costs say. No value depends on a choice, so
 * that no other test would see one that became worse. tests/goldens/choices has them; `make golden`
 * rewrites them for review. A digest at the end of a line stands for a text: of the lists of opts that were
 * considered, of the kernel. */
#include "kernels/choices.h"
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MACHINES = 9 };

static unsigned digest(const Str *s) {
  return (unsigned)hash_bytes(1, str_text(s), strlen(str_text(s))) & 0xffffff;
}

static int lines_with(const char *text, const char *word) {
  int n = 0;
  size_t len = strlen(word);
  for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n')
    n += !strncmp(p, word, len);
  return n;
}

/* Of three sizes those that are not 1. */
static void put_sizes(Str *out, const char *name, const int size[3]) {
  int last = 3;
  while (last && size[last - 1] <= 1)
    last--;
  for (int i = 0; i < last; i++)
    str_printf(out, "%s%d", i ? "x" : name, size[i]);
}

static void put_kernel(TgContext *c, Str *out, const Schedule *s, int k, const char *opts) {
  const SchedKernel *sk = &s->kernel[k];
  Str costs;
  Lowered l;
  str_init(&costs, NULL);
  TgStatus st = choice_lower(c, s, k, opts, &costs, NULL, &l);
  if (st) {
    str_printf(out, "    %s\n", tg_errmsg(c));
    tg_clear_error(c);
  } else {
    str_printf(out, "    %s", l.name);
    if (l.threads > 1) str_printf(out, " threads %d", l.threads);
    put_sizes(out, " grid ", l.grid), put_sizes(out, " block ", l.block);
    if (l.local_bytes) str_printf(out, " local %lld", (long long)l.local_bytes);
    str_printf(out, ": %s", str_text(&l.opts));
    str_printf(out, " | %.4g us %lld flops", sk->est_us, (long long)sk->flops);
    if (costs.len) str_printf(out, " | %06x", digest(&costs));
    str_printf(out, " | %06x\n", digest(&l.text));
  }
  lowered_free(&l), str_free(&costs);
}

/* What is kept between kernels, how many joins were made of those that were weighed, and the kernels. */
static void put_plan(TgContext *c, Str *out, TgTensor **t, int n, const char *opts) {
  Schedule s;
  Str explain;
  str_init(&explain, NULL);
  TgStatus st = choice_schedule(c, t, n, &explain, &s);
  if (st) str_printf(out, " %s", tg_errmsg(c));
  for (int i = 0; i < s.ntemp; i++)
    if (s.temp[i].root < 0)
      str_printf(out, " keeps %lld %s", (long long)s.temp[i].nelem, dtype_name(s.temp[i].dtype));
  if (explain.len) {
    int weighed = lines_with(str_text(&explain), ""), made = weighed - lines_with(str_text(&explain), "no ");
    str_printf(out, " | %d of %d | %06x", made, weighed, digest(&explain));
  }
  str_put(out, "\n");
  for (int k = 0; k < s.nkernel; k++)
    put_kernel(c, out, &s, k, opts);
  str_free(&explain);
  schedule_free(&s, &c->mem);
}

static Str plan_of(const Choice *choice, const Machine *machine) {
  Str out;
  str_init(&out, NULL);
  TgTensor *t[CHOICE_OUTPUTS] = {NULL};
  TgContext *c = machine_open(machine, (TgMem){0});
  if (!c || tg_error(c)) fail_msg("%s: %s", machine->name, tg_errmsg(c));
  int n = choice->build(c, t);
  if (tg_error(c)) fail_msg("%s on %s: %s", choice->name, machine->name, tg_errmsg(c));
  put_plan(c, &out, t, n, choice->opts);
  /* no list is chosen that the machine cannot take */
  if (!choice->opts && tg_counters(c).fallbacks)
    fail_msg("%s on %s: %s", choice->name, machine->name, c->passes.fallback);
  tg_close(c);
  assert_false(out.oom);
  return out;
}

/* Machines that plan alike stand together. */
static void put_choice(Str *out, const Choice *choice) {
  Str plan[MACHINES];
  bool said[MACHINES] = {false};
  str_printf(out, "%s\n", choice->name);
  for (int m = 0; m < machine_count; m++)
    plan[m] = plan_of(choice, &machines[m]);
  for (int m = 0; m < machine_count; m++) {
    const char *before = "  ";
    for (int i = m; !said[m] && i < machine_count; i++)
      if (i == m || !strcmp(str_text(&plan[i]), str_text(&plan[m]))) {
        str_printf(out, "%s%s", before, machines[i].name);
        before = ", ", said[i] = i > m;
      }
    if (*before == ',') str_printf(out, ":%s", str_text(&plan[m]));
  }
  for (int m = 0; m < machine_count; m++)
    str_free(&plan[m]);
}

static Str file_text(const char *path) {
  Str s;
  char buf[4096];
  str_init(&s, NULL);
  FILE *f = fopen(path, "rb");
  while (f && fgets(buf, sizeof buf, f))
    str_put(&s, buf);
  if (f) fclose(f);
  return s;
}

/* The first line that differs, below the program and the machines that it is of. */
static void told_apart(const char *path, const char *was, const char *now) {
  const char *program = now, *machine = now;
  int line = 1;
  while (*was && *now && strcspn(was, "\n") == strcspn(now, "\n") && !strncmp(was, now, strcspn(was, "\n"))) {
    program = *now == ' ' ? program : now, machine = strncmp(now, "    ", 4) ? now : machine;
    was += strcspn(was, "\n"), was += *was == '\n';
    now += strcspn(now, "\n"), now += *now == '\n', line++;
  }
  fail_msg(
      "%s:%d, %.*s,\n%.*s\n  is    %.*s\n  was   %.*s\n`make golden` rewrites the file; look at its diff",
      path, line, (int)strcspn(program, "\n"), program, (int)strcspn(machine, "\n"), machine,
      (int)strcspn(now, "\n"), now, (int)strcspn(was, "\n"), was);
}

/* The programs of one section of choices.def, with the file of its name. */
static void section_is(const char *section) {
  assert_int_equal(machine_count, MACHINES);
  const char *mode = getenv("TG_GOLDEN"), *now_in = NULL;
  char path[512];
  Str now;
  str_init(&now, NULL);
  for (int i = 0; i < choice_count; i++) {
    if (choices[i].section) now_in = choices[i].section;
    if (choices[i].name && !strcmp(now_in, section)) put_choice(&now, &choices[i]);
  }
  assert_true(now.len && !now.oom);
  snprintf(path, sizeof path, TG_TESTS "/goldens/choices/%s.txt", section);
  if (mode && !strcmp(mode, "write")) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(now.at, 1, now.len, f) != now.len || fclose(f)) fail_msg("%s cannot be written", path);
  } else {
    Str was = file_text(path);
    if (strcmp(str_text(&was), str_text(&now))) told_apart(path, str_text(&was), str_text(&now));
    str_free(&was);
  }
  str_free(&now);
}

static void one_core(Target *t) {
  t->cores = t->streams = 1;
  t->cache[LEVEL_L2] = 2 << 20;
  t->local_bytes = 1 << 20;
}

/* A convolution that reads what a pool makes, which is kept: joined they would save no memory, and by the estimate
 * nothing at all. Apart, each has its own lanes. */
static void test_gains(void **state) {
  (void)state;
  const Machine machine = {"one core", "NULL:C", one_core};
  TgContext *c = machine_open(&machine, (TgMem){0});
  TgTensor *x = tg_rand(c, TG_SHAPE(1, 24, 176, 176)), *weight = tg_rand(c, TG_SHAPE(24, 24, 1, 1)), *out[2];
  assert_int_equal(tg_realize(x) || tg_realize(weight), TG_OK);
  out[0] = tg_max_pool2d(x, .kernel = TG_SIZES(3, 3), .stride = TG_SIZES(2, 2), .padding = TG_SIZES(1, 1));
  out[1] = tg_relu(tg_conv2d(out[0], weight));
  Schedule s;
  Str explain;
  str_init(&explain, NULL);
  assert_int_equal(choice_schedule(c, out, 2, &explain, &s), TG_OK);
  double pool = 0, conv = 0, both = 0;
  const char *first = str_text(&explain);
  sscanf(first, "%*s %*s into %*s apart %lf us (%*[^)]) + %lf us (%*[^)]), fused %lf us", &pool, &conv,
         &both);
  if (both < pool + conv - 0.2 || both > pool + conv + 1) fail_msg("there is something to gain: %s", first);
  if (strncmp(first, "no ", 3) || s.nkernel != 2) fail_msg("%d kernels: %s", s.nkernel, first);
  str_free(&explain), schedule_free(&s, &c->mem);
  tg_close(c);
}

#define ONE(name, tensor)
#define SOME(name, n, ...)
#define GIVEN(name, opts, tensor)
#define SECTION(name)                                                                                        \
  static void test_##name(void **state) {                                                                    \
    (void)state;                                                                                             \
    section_is(#name);                                                                                       \
  }
#include "kernels/choices.def"
#undef SECTION
#define SECTION(name) cmocka_unit_test(test_##name),

int main(void) {
  static const char *const settings[] = {"TG_NOOPT", "TG_FUSE", "TG_OPTS", "TG_TF32",
                                         "TG_DEBUG", "TG_BEAM", "TG_SPEC"};
  for (size_t i = 0; i < TG_COUNT(settings); i++)
    unsetenv(settings[i]);
  const struct CMUnitTest tests[] = {
#include "kernels/choices.def"
      cmocka_unit_test(test_gains)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
