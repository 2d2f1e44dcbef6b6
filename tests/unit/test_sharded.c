/* test_sharded.c: a state in several safetensors files with an index. Expected: what was saved, and an index as
 * Hugging Face's libraries read it. Damaged and incomplete ones are refused by name. */
#include "tg.h"
#include "tg_io.h"
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static TgContext *C;
static char folder[64], path[128];

static int open_it(void **state) {
  (void)state;
  C = tg_open_with(.device = "INTERP", .seed = 3);
  snprintf(folder, sizeof folder, "/tmp/tg-sharded-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
  return tg_error(C) != TG_OK;
}

static int close_it(void **state) {
  (void)state;
  char command[100];
  tg_close(C);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

static int files(void) {
  DIR *d = opendir(folder);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));)
    n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

/* names a0 .. of sizes 0, 1, 2 ..; values from `first` */
static TgState *some(int n, int first) {
  TgState *s = tg_state_new(C);
  for (int i = 0; i < n; i++) {
    char name[16];
    snprintf(name, sizeof name, "a%d", i);
    TgTensor *t = tg_cast(tg_arange(C, first + i, first + 2 * i), i % 2 ? TG_F32 : TG_I64);
    assert_int_equal(tg_state_put(s, name, tg_keep(t)), TG_OK);
  }
  return s;
}

static void same(const TgState *want, const TgState *got) {
  if (!got) fail_msg("%s", tg_errmsg(C));
  assert_int_equal(tg_state_count(got), tg_state_count(want));
  for (size_t i = 0; i < tg_state_count(want); i++) {
    const char *name;
    TgTensor *a = tg_state_at(want, i, &name), *b = tg_state_get(got, name);
    assert_non_null(b);
    assert_int_equal(tg_dtype(a), tg_dtype(b));
    char *text = strdup(tg_to_text(a));
    assert_string_equal(text, tg_to_text(b));
    free(text);
  }
}

static void there_and_back(void **state) {
  (void)state;
  for (int n = 0; n < 9; n += 4)
    for (int shards = 0; shards < 5; shards++) {
      TgState *s = some(n, shards);
      const char *about[] = {"step", "7", NULL};
      if (tg_safe_save(s, path, .shards = shards, .metadata = about)) fail_msg("%s", tg_errmsg(C));
      TgState *got = tg_safe_load_file(C, path), *any = tg_state_from_file(C, path);
      same(s, got);
      same(s, any);
      assert_true(files() <= 1 + (shards ? shards : 1)); /* those of the save before are gone */
      TgValue *head = NULL;
      TG_SCOPE(C) head = tg_safe_load_metadata(tg_from_file(C, path, TG_U8, TG_SHAPE(-1)), NULL);
      const TgValue *at = tg_value_get(tg_value_get(head, "__metadata__"), "step");
      assert_string_equal(tg_value_string(at, NULL), "7");
      tg_value_free(head);
      tg_state_free(s), tg_state_free(got), tg_state_free(any);
    }
}

static void write_text(const char *name, const char *text) {
  char at[200];
  snprintf(at, sizeof at, "%s/%s", folder, name);
  FILE *f = fopen(at, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void an_index_of_others(void **state) {
  (void)state;
  TgState *s = some(3, 0), *got;
  char at[200];
  snprintf(at, sizeof at, "%s/part", folder);
  assert_int_equal(tg_safe_save(s, at), TG_OK);
  write_text("model.safetensors.index.json",
             "{\"metadata\": {\"total_size\": 20}, \"weight_map\": {\"a1\": \"part\", \"a2\": \"part\"}}");
  got = tg_safe_load_file(C, path);
  assert_non_null(got);
  assert_int_equal(tg_state_count(got), 2);
  tg_state_free(got), tg_state_free(s);

  static const struct {
    const char *text, *says;
  } wrong[] = {{"{\"weight_map\": {\"a7\": \"part\"}}", "a7 is not in part"},
               {"{\"weight_map\": {\"a1\": \"../part\"}}", "'../part' is no file beside the index"},
               {"{\"weight_map\": {\"a1\": 3}}", "is no file beside the index"},
               {"{\"weight_map\": {\"a1\": \"gone\"}}", "gone"},
               {"{\"weight_map\": []}", "there is no weight_map"},
               {"{\"weight_map\": {}", "no JSON object"},
               {"[]", "no JSON object"}};

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    write_text("model.safetensors.index.json", wrong[i].text);
    assert_null(tg_safe_load_file(C, path));
    if (!strstr(tg_errmsg(C), wrong[i].says)) fail_msg("%zu: %s", i, tg_errmsg(C));
    tg_clear_error(C);
  }
  s = some(2, 0);
  assert_int_equal(tg_safe_save(s, path, .shards = -1), TG_ERR_VALUE);
  tg_clear_error(C);
  assert_int_equal(tg_safe_save(s, "/nowhere/x.safetensors.index.json", .shards = 2), TG_ERR_IO);
  tg_clear_error(C);
  tg_state_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(there_and_back, open_it, close_it),
      cmocka_unit_test_setup_teardown(an_index_of_others, open_it, close_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
