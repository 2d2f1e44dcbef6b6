/* test_nomem.c: programs are scheduled, lowered and rendered again and again with the n-th allocation
 * failing, or all from there on. Each run ends with TG_ERR_NOMEM and gives back what it took; the next one,
 * with memory, writes the text that was written before.
 */
#define _GNU_SOURCE
#include "kernels/choices.h"
#include "tensor/context.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST_KERNELS = 40 };

/* opts: lists that kernels are given; NULL: they are chosen. On a GPU each list that is considered is lowered, so one
 * run makes as many allocations as a hundred: those that fail one by one are of runs with given lists. */
typedef struct Run {
  TgContext *c;
  TgTensor *t[CHOICE_OUTPUTS];
  int n;
  char *opts[MOST_KERNELS];
  bool keep;  /* the lists that are chosen, for later runs */
  bool packs; /* the copies of all that is read are kept */
} Run;

/* All texts, one below the other. */
static TgStatus texts_of(Run *r, Str *out) {
  Schedule s;
  TgStatus st = choice_schedule(r->c, r->t, r->n, NULL, &s);
  for (int k = 0; !st && k < s.nkernel; k++) {
    Lowered l;
    Prepack p = {.stays = ~UINT64_C(1), .first = s.kernel[k].narg};
    for (int packs = 0; r->packs && packs < 2 && !st;
         packs++) { /* both kernels of one that keeps its copies */
      p.packs = packs;
      st = choice_lower(r->c, &s, k, NULL, NULL, &p, &l);
      if (!st) str_put(out, str_text(&l.text));
      if (!st && !p.n) fail_msg("no copy is kept");
      lowered_free(&l);
    }
    if (r->packs) continue;
    st = choice_lower(r->c, &s, k, k < MOST_KERNELS ? r->opts[k] : NULL, NULL, NULL, &l);
    if (!st && r->keep && k < MOST_KERNELS) r->opts[k] = strdup(str_text(&l.opts));
    if (!st) str_put(out, str_text(&l.text)), str_put(out, str_text(&l.opts));
    lowered_free(&l);
  }
  schedule_free(&s, &r->c->mem);
  return st;
}

/* One program on one machine. */
typedef struct Case {
  const char *program, *machine;
} Case;

static const Case sums[] = {{"gelu", "avx512"},    {"random_bits", "cuda"},     {"turned_odd", "avx2"},
                            {"turned", "cuda"},    {"joined", "neon"},          {"sum_all", "cuda"},
                            {"sum_all", "avx512"}, {"sum_less_mean", "avx2"},   {"shared_by_three", "avx512"},
                            {"greatest", "metal"}, {"added_in_place", "avx512"}};
static const Case rows[] = {
    {"scan_columns", "avx512"},    {"scan_long", "cuda"},         {"scan_long", "avx512"},
    {"scan_of_products", "metal"}, {"scan_most", "cuda"},         {"softmax", "avx512"},
    {"softmax_long", "cuda"},      {"softmax_long", "avx512"},    {"labels", "cuda"},
    {"batch_norm_train", "plain"}, {"softmax_of_product", "avx2"}};
static const Case products[] = {
    {"matmul_512", "avx512"}, {"matmul_512", "plain"},   {"matmul_512", "neon"},
    {"matmul_odd", "cuda"},   {"matmul_deep", "avx512"}, {"row_by_matrix", "cuda"},
    {"two_layers", "avx512"}, {"conv_3x3", "avx512"},    {"conv_back", "avx2"}};
static const Case units[] = {
    {"matmul_f16", "cuda"},        {"matmul_f16_odd", "cuda"},  {"matmul_f16", "metal"},
    {"matmul_bf16_turned", "amx"}, {"matmul_bf16_cast", "dot"}, {"matmul_u8_i8", "amx"},
    {"matmul_i8", "dot"},          {"conv_i8", "amx"},          {"conv_f16", "cuda"}};
static const Case attention[] = {
    {"attention", "avx512"}, {"attention_causal", "neon"}, {"attention", "cuda"}};
static const Case gradients[] = {{"scattered", "avx512"},
                                 {"conv_strided_gradient", "neon"},
                                 {"norm_gradient", "avx512"},
                                 {"rows_gradient", "cuda"}};

static const Choice *choice_named(const char *name) {
  for (int i = 0; i < choice_count; i++)
    if (choices[i].name && !strcmp(choices[i].name, name)) return &choices[i];
  fail_msg("no program is called %s", name);
  return NULL;
}

static const Machine *machine_named(const char *name) {
  for (int i = 0; i < machine_count; i++)
    if (!strcmp(machines[i].name, name)) return &machines[i];
  fail_msg("no machine is called %s", name);
  return NULL;
}

/* The text of a run that has all memory it asks for. */
static Str plain_run(Run *r) {
  Str text;
  str_init(&text, NULL);
  TgStatus st = texts_of(r, &text);
  if (st) fail_msg("%s", tg_errmsg(r->c));
  assert_true(text.len && !text.oom);
  return text;
}

static Run run_open(const Choice *choice, const Machine *machine, TgMem mem, bool packs) {
  Run r = {.c = machine_open(machine, mem), .packs = packs};
  assert_int_equal(tg_error(r.c), TG_OK);
  r.n = choice->build(r.c, r.t);
  r.keep = r.c->devices.at[0]->target.warp > 1;
  if (r.keep) {
    Str first = plain_run(&r);
    str_free(&first);
  }
  r.keep = false;
  return r;
}

static void run_close(Run *r) {
  for (int k = 0; k < MOST_KERNELS; k++)
    free(r->opts[k]);
  tg_close(r->c);
}

/* With the n-th allocation failing, or all from there on. False: there are fewer than n. */
static bool failing_run(Run *r, const char *name, uint64_t n, bool after) {
  TgMem *m = &r->c->mem;
  uint64_t live = m->live, failed = m->failed;
  Str text;
  str_init(&text, NULL);
  m->fail_at = m->calls + n, m->fail_always_after = after;
  TgStatus st = texts_of(r, &text);
  m->fail_at = 0, m->fail_always_after = false;
  bool reached = m->failed > failed;
  if (reached ? st != TG_ERR_NOMEM : st)
    fail_msg("%s, allocation %d%s: %s: %s", name, (int)n, after ? " and all after it" : "",
             tg_status_name(st), tg_errmsg(r->c));
  if (m->live > live) fail_msg("%s, allocation %d: %d blocks are left", name, (int)n, (int)(m->live - live));
  tg_clear_error(r->c);
  str_free(&text);
  return reached;
}

/* Without TG_TORTURE: after so many of these, the rest fails too, or the next text is looked at. */
enum { AFTER = 16, AGAIN = 64 };

static void sweep(const Case *k, bool all, bool packs) {
  Run r = run_open(choice_named(k->program), machine_named(k->machine), (TgMem){0}, packs);
  char name[100];
  snprintf(name, sizeof name, "%s on %s%s", k->program, k->machine, packs ? ", prepacked" : "");
  Str first = plain_run(&r);
  bool reached = true;
  for (uint64_t n = 1; reached; n++) {
    reached = failing_run(&r, name, n, false);
    if (reached && (all || n % AFTER == 1)) failing_run(&r, name, n, true);
    if (!all && reached && n % AGAIN != 1) continue;
    Str text = plain_run(&r);
    if (strcmp(str_text(&text), str_text(&first)))
      fail_msg("%s: other texts after allocation %d failed", name, (int)n);
    str_free(&text);
  }
  str_free(&first);
  run_close(&r);
}

/* The copies of all that is read are kept: two kernels. */
static const Case prepacked[] = {{"by_turned", "avx512"}, {"matmul_bf16_turned", "amx"}};

static void sweeps(const Case *k, size_t n) {
  for (size_t i = 0; i < n; i++)
    sweep(&k[i], getenv("TG_TORTURE") != NULL, k == prepacked);
}

#define TEST(group)                                                                                          \
  static void test_##group(void **state) {                                                                   \
    (void)state;                                                                                             \
    sweeps(group, TG_COUNT(group));                                                                          \
  }
TEST(sums)
TEST(rows)
TEST(products)
TEST(units)
TEST(attention)
TEST(gradients)
TEST(prepacked)

/* Any node may be the one that there is no memory for. */
static const Case nodes[] = {{"softmax_few", "avx512"},   {"layer_norm_few", "cuda"}, {"scan_few", "metal"},
                             {"sum_few", "amx"},          {"any_few", "plain"},       {"band_few", "avx2"},
                             {"scan_columns_few", "neon"}};

/* some: of many nodes one in so many, the first ones all. */
static void sweep_nodes(const Choice *choice, const Machine *machine, uint64_t some) {
  Run r = run_open(choice, machine, (TgMem){.apart = true}, false);
  char name[100];
  snprintf(name, sizeof name, "%s on %s, node by node", choice->name, machine->name);
  Str first = plain_run(&r);
  for (uint64_t n = 1; failing_run(&r, name, n, false);)
    n += some ? 1 + n / some : 1;
  Str text = plain_run(&r);
  assert_string_equal(str_text(&text), str_text(&first));
  str_free(&text), str_free(&first);
  run_close(&r);
}

/* While lists are considered: one in so many. */
static void test_search(void **state) {
  (void)state;
  static const Case searched[] = {{"softmax", "cuda"}, {"matmul_odd", "plain"}, {"matmul_f16_odd", "metal"}};
  for (size_t i = 0; i < TG_COUNT(searched); i++) {
    Run r =
        run_open(choice_named(searched[i].program), machine_named(searched[i].machine), (TgMem){0}, false);
    Run anew = {.c = r.c, .n = r.n};
    memcpy(anew.t, r.t, sizeof r.t);
    for (uint64_t n = 1; failing_run(&anew, searched[i].program, n, n % 2);)
      n += 1 + n / 16;
    run_close(&r);
  }
}

static void test_nodes(void **state) {
  (void)state;
  for (size_t i = 0; i < TG_COUNT(nodes); i++)
    sweep_nodes(choice_named(nodes[i].program), machine_named(nodes[i].machine), 0);
}

/* Every program, each on one machine. */
static void test_nodes_of_all(void **state) {
  (void)state;
  uint64_t some = getenv("TG_TORTURE") ? 0 : 32;
  for (int i = 0; i < choice_count; i++) {
    if (!choices[i].name || choices[i].opts) continue;
    const Machine *m = &machines[i % machine_count];
    bool lacks = !strcmp(m->name, "metal") && strstr(choices[i].name, "f64"); /* Metal has none */
    sweep_nodes(&choices[i], lacks ? &machines[0] : m, some);
  }
}

/* The graphs themselves: no program is built, and that is said, or it is whole. False: there are fewer than n
 * allocations. */
static bool built_without(const Choice *choice, uint64_t n) {
  TgContext *c = machine_open(&machines[0], (TgMem){.apart = true});
  TgTensor *t[CHOICE_OUTPUTS] = {NULL};
  uint64_t failed = c->mem.failed;
  c->mem.fail_at = c->mem.calls + n;
  int count = choice->build(c, t);
  c->mem.fail_at = 0;
  bool whole = true, reached = c->mem.failed > failed;
  for (int i = 0; i < count; i++)
    whole &= t[i] != NULL;
  if (tg_error(c) ? tg_error(c) != TG_ERR_NOMEM : !whole)
    fail_msg("%s, allocation %d: %s: %s", choice->name, (int)n, tg_status_name(tg_error(c)), tg_errmsg(c));
  tg_close(c);
  return reached;
}

static void test_graphs(void **state) {
  (void)state;
  for (int i = 0; i < choice_count; i++)
    for (uint64_t n = 1; choices[i].name && built_without(&choices[i], n);)
      n++;
}

/* A context that is opened without the n-th block of memory is none, or says so; either gives all back. */
static void test_open(void **state) {
  (void)state;
  for (int i = 0; i < machine_count; i++) {
    bool reached = true;
    for (uint64_t n = 1; reached; n++) {
      TgMem last = {0};
      TgContext *c = machine_open(&machines[i], (TgMem){.fail_at = n, .last = &last});
      reached = !c || c->mem.failed;
      if (c && tg_error(c) != (reached ? TG_ERR_NOMEM : TG_OK))
        fail_msg("%s, block %d: %s", machines[i].name, (int)n, tg_status_name(tg_error(c)));
      tg_close(c);
      if (last.live) fail_msg("%s, block %d: %d are left", machines[i].name, (int)n, (int)last.live);
    }
  }
}

int main(void) {
  unsetenv("TG_SPEC"); /* what verifies graphs needs memory too, and says of a graph that it is wrong */
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums),      cmocka_unit_test(test_rows),      cmocka_unit_test(test_products),
      cmocka_unit_test(test_units),     cmocka_unit_test(test_attention), cmocka_unit_test(test_gradients),
      cmocka_unit_test(test_prepacked), cmocka_unit_test(test_nodes),     cmocka_unit_test(test_nodes_of_all),
      cmocka_unit_test(test_search),    cmocka_unit_test(test_graphs),    cmocka_unit_test(test_open)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
