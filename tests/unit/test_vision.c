/* test_vision.c: pictures for language models. Expected pixels, vectors and logits are those of transformers,
 * kept in the files (tests/llm/make_vision.py): of LLaVA, Gemma 3 and Idefics 3. So are the tiles of large
 * pictures, and the texts between them. What a text has after a
 * picture is the same to the bit whenever it is read, another picture is told from it, and files that
 * contradict themselves are refused. */
#define _GNU_SOURCE
#include "llm/context.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static bool folders; /* models and what reads pictures for them are of Hugging Face's folders */

static const char *golden(const char *name, const char *end) {
  static char path[2][600];
  static int turn;
  turn = !turn;
  if (folders && snprintf(path[turn], sizeof path[turn], "%s/goldens/llm/vision/hf-%s", TG_TESTS, name) > 0)
    return path[turn];
  snprintf(path[turn], sizeof path[turn], "%s/goldens/llm/vision/%s%s.gguf", TG_TESTS, name, end);
  return path[turn];
}

static const char *const names[] = {"llava", "llava-features", "gemma3", "idefics3"};

enum { NAMES = sizeof names / sizeof *names, VOCABULARY = 24, MOST = 1 << 15 };

/* What the mmproj file says of its picture. */
typedef struct Case {
  const char *name;
  int32_t size[2], before[16], after[16];
  int64_t nbefore, nafter;
  uint8_t rgb[MOST];
  float pixels[MOST], vectors[MOST], logits[MOST];
  int64_t npixels, nvectors;
} Case;

static int64_t read_all(const TgValue *gguf, const char *key, void *out, size_t cap) {
  TgTensor *t = tg_value_tensor(tg_value_get(tg_value_get(gguf, "kv"), key));
  if (!t || tg_nbytes(t) > cap) fail_msg("%s: not there, or too large", key);
  assert_int_equal(tg_read(t, out, tg_nbytes(t)), TG_OK);
  return tg_numel(t);
}

static const Case *case_of(const char *name) {
  static Case c;
  TgValue *g = tg_gguf_load_file(C, golden(name, "-mmproj"));
  if (!g) fail_msg("%s: %s", name, tg_errmsg(C));
  c.name = name;
  read_all(g, "test.size", c.size, sizeof c.size);
  read_all(g, "test.rgb", c.rgb, sizeof c.rgb);
  c.nbefore = read_all(g, "test.before", c.before, sizeof c.before);
  c.nafter = read_all(g, "test.after", c.after, sizeof c.after);
  c.npixels = read_all(g, "test.pixels", c.pixels, sizeof c.pixels);
  c.nvectors = read_all(g, "test.vectors", c.vectors, sizeof c.vectors);
  read_all(g, "test.logits", c.logits, sizeof c.logits);
  tg_value_free(g);
  return &c;
}

static void near(const char *name, const char *what, const float *got, const float *want, int64_t n,
                 double within) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabs((double)got[i] - (double)want[i]) <= within))
      fail_msg("%s: %s: %lld is %g, not %g", name, what, (long long)i, (double)got[i], (double)want[i]);
}

typedef struct Open {
  TgLlm *m;
  TgVision *v;
} Open;

static Open opened(const char *name, int64_t block, int64_t sequences) {
  Open o = {tg_llm_open(C, golden(name, ""), .context = 64, .block = block, .sequences = sequences), NULL};
  if (!o.m) fail_msg("%s: %s", name, tg_errmsg(C));
  o.v = tg_vision_open(o.m, golden(name, "-mmproj"));
  if (!o.v) fail_msg("%s: %s", name, tg_errmsg(C));
  return o;
}

static void show(Open o, const Case *c, const uint8_t *rgb) {
  if (tg_llm_eval_picture(o.m, o.v, rgb, c->size[0], c->size[1], 0))
    fail_msg("%s: %s", c->name, tg_errmsg(C));
}

static void tokens(Open o, const int32_t *ids, int64_t n) {
  if (tg_llm_eval(o.m, ids, n)) fail_msg("%s", tg_errmsg(C));
}

/* ---- against transformers */
static void picture_of(const char *name, int64_t block, bool folder) {
  static float got[MOST];
  const Case *c = case_of(name);
  folders = folder;
  Open o = opened(name, block, 1);
  folders = false;
  TgVisionAbout a = tg_vision_about(o.v);
  assert_int_equal(a.tokens, tg_vision_tokens(o.v));
  assert_int_equal(a.tokens * a.width, c->nvectors);
  assert_int_equal(3 * a.image * a.image, c->npixels);
  if (tg_vision_pixels(o.v, c->rgb, c->size[0], c->size[1], 0, got)) fail_msg("%s: %s", name, tg_errmsg(C));
  double byte = 1.0 / 255 / 0.26; /* the smallest std */
  near(name, "pixel", got, c->pixels, c->npixels, 1.01 * byte);
  if (tg_vision_vectors(o.v, c->rgb, c->size[0], c->size[1], 0, got)) fail_msg("%s: %s", name, tg_errmsg(C));
  near(name, "vector", got, c->vectors, c->nvectors, 1e-4);
  for (int turn = 0; turn < 3; turn++) { /* as captured, too */
    assert_int_equal(tg_llm_rewind(o.m, 0), TG_OK);
    tokens(o, c->before, c->nbefore);
    show(o, c, c->rgb);
    near(name, "logit after the picture", tg_llm_logits(o.m), c->logits, VOCABULARY, 1e-4);
    for (int64_t i = 0; i < c->nafter; i++) {
      tokens(o, &c->after[i], 1);
      near(name, "logit", tg_llm_logits(o.m), c->logits + (i + 1) * VOCABULARY, VOCABULARY, 1e-4);
    }
  }
  tg_vision_free(o.v);
  tg_llm_free(o.m);
}

static void test_pictures(void **state) {
  (void)state;
  for (int i = 0; i < NAMES; i++)
    for (int64_t block = 4; block <= 32; block *= 8)
      picture_of(names[i], block, false);
}

static void test_folders(void **state) {
  (void)state;
  for (int i = 0; i < NAMES; i++)
    if (strcmp(names[i], "llava-features")) picture_of(names[i], 8, true);
  folders = true;
  TgValue *tree = tg_hf_load_vision(C, golden("gemma3", ""));
  folders = false;
  assert_int_equal(tg_value_int(tg_value_get(tg_value_get(tree, "kv"), "clip.vision.image_size")), 32);
  tg_value_free(tree);
  assert_null(tg_hf_load_vision(C, "no such folder"));
  assert_int_equal(tg_error(C), TG_ERR_IO);
  tg_clear_error(C);
}

/* ---- tiles */
static void refused(TgStatus want, TgStatus got, const char *text) {
  if (got != want || !strstr(tg_errmsg(C), text))
    fail_msg("status %d, '%s', where '%s' is meant", (int)got, tg_errmsg(C), text);
  tg_clear_error(C);
}

/* Ramps and edges, as make_vision.py draws them. To be freed. */
static uint8_t *drawn(int64_t height, int64_t width) {
  uint8_t *rgb = malloc((size_t)(height * width * 3));
  assert_non_null(rgb);
  for (int64_t i = 0; i < height * width * 3; i++) {
    int64_t c = i % 3, x = i / 3 % width, y = i / 3 / width;
    rgb[i] = (uint8_t)((x * (3 + c) + y * (5 - c) + 40 * ((x / 5 + y / 7) % 2)) % 256);
  }
  return rgb;
}

static const TgValue *tile_kv(const TgValue *g, int64_t i, const char *name) {
  char key[60];
  snprintf(key, sizeof key, "tile.%lld.%s", (long long)i, name);
  return tg_value_get(tg_value_get(g, "kv"), key);
}

/* What reads pictures, of a folder with this preprocessor_config.json; NULL: an error. */
static TgVision *of_folder(TgLlm *m, const char *name, const char *config) {
  char command[1400];
  folders = true;
  snprintf(command, sizeof command,
           "mkdir -p test_vision_folder && cp '%s'/* test_vision_folder && echo '%s' > "
           "test_vision_folder/preprocessor_config.json",
           golden(name, ""), config);
  folders = false;
  assert_int_equal(system(command), 0);
  TgVision *v = tg_vision_open(m, "test_vision_folder");
  assert_int_equal(system("rm -r test_vision_folder"), 0);
  return v;
}

/* A vision whose pictures are cut into a grid with this longest edge (0: into crops). A folder names the
 * edge. */
static Open tiled(const char *name, int64_t edge, int64_t most) {
  char config[200];
  Open o = {tg_llm_open(C, golden(name, ""), .context = 128, .block = 8), NULL};
  assert_non_null(o.m);
  snprintf(config, sizeof config,
           "{\"size\": {\"longest_edge\": %d}, \"max_image_size\": {\"longest_edge\": 24}}", (int)edge);
  o.v = edge ? of_folder(o.m, name, config) : tg_vision_open(o.m, golden(name, "-mmproj"), .tiles = most);
  return o;
}

/* Each view has the bytes that the processor gives it, and the text before it. Pillow resizes the height
 * first where that is less work, and this library the width, so a byte may differ by one in long pictures. */
static void views_of(Open o, const TgValue *g, int64_t i, const uint8_t *rgb, const int32_t size[2]) {
  static float got[MOST];
  static uint8_t want[1 << 17];
  TgVisionAbout a = tg_vision_about(o.v);
  const TgValue *texts = tile_kv(g, i, "texts");
  int64_t views = tg_vision_views(o.v, size[0], size[1]), each = 3 * a.image * a.image;
  TgTensor *pixels = tg_value_tensor(tile_kv(g, i, "pixels"));
  if (tg_numel(pixels) != views * each || tg_value_count(texts) != (size_t)views + 1)
    fail_msg("%s, case %lld: %lld views", a.projector, (long long)i, (long long)views);
  assert_true((size_t)tg_numel(pixels) <= sizeof want);
  assert_int_equal(tg_read(pixels, want, sizeof want < tg_nbytes(pixels) ? 0 : tg_nbytes(pixels)), TG_OK);
  for (int64_t k = 0; k <= views; k++) {
    const char *text = tg_vision_text(o.v, size[0], size[1], k);
    assert_string_equal(text, tg_value_string(tg_value_at(texts, (size_t)k), NULL));
    if (k == views) break;
    assert_int_equal(tg_vision_pixels(o.v, rgb, size[0], size[1], k, got), TG_OK);
    for (int64_t p = 0; p < each; p++) {
      int64_t plane = p / (each / 3), at = p % (each / 3);
      int byte = (int)lroundf(got[plane * (each / 3) + at] * 127.5f + 127.5f);
      if (abs(byte - want[k * each + p]) > (size[0] > 4 * size[1]))
        fail_msg("%s, case %lld, view %lld, byte %lld is %d, not %d", a.projector, (long long)i, (long long)k,
                 (long long)p, byte, want[k * each + p]);
    }
  }
}

/* A text with all views of a picture, and two tokens before each of them and after the last. */
static void tiled_text(Open o, const TgValue *g, const uint8_t *rgb, const int32_t size[2]) {
  static const int32_t seam[] = {18, 6}, before[] = {1, 5, 9, 4, 7}, after[] = {8, 6, 13};
  float logits[4 * VOCABULARY];
  int64_t views = tg_vision_views(o.v, size[0], size[1]), each = tg_vision_tokens(o.v), n = 0;
  int32_t ids[128];
  read_all(g, "tile.logits", logits, sizeof logits);
  tokens(o, before, 5);
  for (int64_t k = 0; k < views; k++) {
    tokens(o, seam, 2);
    assert_int_equal(tg_llm_eval_picture(o.m, o.v, rgb, size[0], size[1], k), TG_OK);
  }
  tokens(o, seam, 2);
  near("tiles", "logit", tg_llm_logits(o.m), logits, VOCABULARY, 2e-4);
  for (int i = 0; i < 3; i++) {
    tokens(o, &after[i], 1);
    near("tiles", "logit", tg_llm_logits(o.m), logits + (i + 1) * VOCABULARY, VOCABULARY, 2e-4);
  }
  assert_int_equal(tg_vision_ids(o.v, rgb, size[0], size[1], ids, views * each), TG_OK);
  const int32_t *has = tg_llm_ids(o.m, &n);
  assert_int_equal(n, 5 + views * (2 + each) + 2 + 3);
  for (int64_t k = 0; k < views; k++)
    assert_memory_equal(has + 5 + 2 + k * (2 + each), ids + k * each, (size_t)each * sizeof *ids);
  for (int64_t i = 0; i < views * each; i++)
    for (int64_t k = 0; k < i; k++)
      assert_true(ids[i] < 0 && ids[i] != ids[k]);
}

static void tiles_of(const char *name, int64_t cases) {
  TgValue *g = tg_gguf_load_file(C, golden(name, "-tiles"));
  assert_non_null(g);
  for (int64_t i = 0; i < cases; i++) {
    int32_t size[2];
    char key[40];
    snprintf(key, sizeof key, "tile.%lld.size", (long long)i);
    read_all(g, key, size, sizeof size);
    Open o = tiled(name, tg_value_int(tile_kv(g, i, "edge")), tg_value_int(tile_kv(g, i, "most")));
    if (!o.v) fail_msg("%s, case %lld: %s", name, (long long)i, tg_errmsg(C));
    uint8_t *rgb = drawn(size[0], size[1]);
    views_of(o, g, i, rgb, size);
    if (i == cases - 1) tiled_text(o, g, rgb, size);
    free(rgb);
    tg_llm_free(o.m);
  }
  tg_value_free(g);
}

static void test_tiles(void **state) {
  (void)state;
  tiles_of("idefics3", 6);
  tiles_of("gemma3", 4);
}

/* The number of tiles that the caller allows, where the file names no size: four on the longest edge, and
 * fewer until there are as few. */
static void test_most_tiles(void **state) {
  (void)state;
  static const int64_t most[] = {0, -1, 1, 2, 3, 4, 5, 11, 12, 16, 256},
                       views[] = {1, 1, 1, 1, 1, 5, 5, 10, 13, 13, 13};
  for (int i = 0; i < 11; i++) {
    Open o = {tg_llm_open(C, golden("idefics3", ""), .context = 64), NULL};
    o.v = tg_vision_open(o.m, golden("idefics3", "-mmproj"), .tiles = most[i]);
    assert_non_null(o.v);
    assert_int_equal(tg_vision_views(o.v, 60, 80), views[i]);
    assert_int_equal(tg_vision_about(o.v).tiles > 0, most[i] > 0);
    tg_llm_free(o.m);
  }
}

static void test_processors(void **state) {
  (void)state;

  static const struct {
    const char *config, *why; /* why NULL: the folder opens, and pictures have so many views */
    int64_t views;
  } cases[] = {
      {"{}", NULL, 1},
      {"{\"size\": {\"longest_edge\": 48}}", NULL, 5},
      {"{\"size\": {\"longest_edge\": 48}, \"do_image_splitting\": false}", NULL, 1},
      {"{\"size\": {\"height\": 48, \"width\": 48}}", NULL, 1},
      {"{\"size\": {\"longest_edge\": \"x\"}}", "size.longest_edge is no whole number", 0},
      {"{\"size\": {\"longest_edge\": -5}}", "clip.vision.preproc_image_size is -5", 0},
      {"{\"size\": {\"longest_edge\": 385}}", "is 385, of at most 4096, and 16 times image_size, 24", 0},
      {"{\"size\": {\"longest_edge\": 48}, \"max_image_size\": {\"longest_edge\": 30}}",
       "max_image_size.longest_edge is 30, where the tower reads 24", 0}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    TgLlm *m = tg_llm_open(C, golden("idefics3", ""), .context = 64);
    TgVision *v = of_folder(m, "idefics3", cases[i].config);
    if (cases[i].why) {
      assert_null(v);
      refused(TG_ERR_VALUE, tg_error(C), cases[i].why);
    } else if (!v || tg_vision_views(v, 30, 40) != cases[i].views)
      fail_msg("%s: %d views, %s", cases[i].config, (int)tg_vision_views(v, 30, 40), tg_errmsg(C));
    tg_llm_free(m);
  }
}

/* ---- what is shared */
/* A text with the picture, anew; its logits, and the ids that the sequence has. */
static void anew(Open o, const Case *c, const uint8_t *rgb, float *logits, int32_t *ids, int64_t *n) {
  assert_int_equal(tg_llm_rewind(o.m, 0), TG_OK);
  tokens(o, c->before, c->nbefore);
  show(o, c, rgb);
  tokens(o, c->after, c->nafter);
  memcpy(logits, tg_llm_logits(o.m), VOCABULARY * sizeof *logits);
  const int32_t *has = tg_llm_ids(o.m, n);
  memcpy(ids, has, (size_t)*n * sizeof *ids);
}

static void prefix_of(const char *name) {
  static uint8_t other[MOST];
  float first[VOCABULARY], again[VOCABULARY];
  int32_t ids[64], ids_again[64], want[64];
  int64_t n, m;
  const Case *c = case_of(name);
  Open o = opened(name, 4, 3);
  int64_t count = tg_vision_tokens(o.v), begin = c->nbefore;
  anew(o, c, c->rgb, first, ids, &n);
  assert_int_equal(n, begin + count + c->nafter);
  assert_int_equal(tg_vision_ids(o.v, c->rgb, c->size[0], c->size[1], want, count), TG_OK);
  for (int64_t i = 0; i < count; i++) {
    assert_true(ids[begin + i] < 0 && ids[begin + i] == want[i]);
    for (int64_t k = 0; k < i; k++)
      assert_true(want[k] != want[i]);
  }
  anew(o, c, c->rgb, again, ids_again, &m);
  assert_memory_equal(first, again, sizeof first);
  assert_memory_equal(ids, ids_again, (size_t)n * sizeof *ids);

  /* after the picture, and in another sequence that takes it over */
  assert_int_equal(tg_llm_rewind(o.m, begin + count), TG_OK);
  tokens(o, c->after, c->nafter);
  assert_memory_equal(first, tg_llm_logits(o.m), sizeof first);
  assert_int_equal(tg_llm_use(o.m, 2), TG_OK);
  assert_int_equal(tg_llm_copy(o.m, 0, begin + count), TG_OK);
  assert_memory_equal(ids, tg_llm_ids(o.m, NULL), (size_t)(begin + count) * sizeof *ids);
  tokens(o, c->after, c->nafter);
  assert_memory_equal(first, tg_llm_logits(o.m), sizeof first);

  /* one byte of another picture: ids that are all others */
  memcpy(other, c->rgb, sizeof other);
  other[c->size[0] * c->size[1] * 3 - 1] ^= 0x80;
  anew(o, c, other, again, ids_again, &m);
  assert_int_equal(m, n);
  for (int64_t i = 0; i < count; i++)
    assert_true(ids_again[begin + i] < 0 && ids_again[begin + i] != ids[begin + i]);
  tg_llm_free(o.m); /* and the vision with it */
}

static void test_prefixes(void **state) {
  (void)state;
  for (int i = 0; i < NAMES; i++)
    prefix_of(names[i]);
}

/* ---- what is refused */

static void test_wrong(void **state) {
  (void)state;
  const Case *c = case_of("llava");
  Open o = opened("llava", 8, 1);
  int64_t n = 0;
  refused(TG_ERR_VALUE, tg_llm_eval_picture(o.m, o.v, c->rgb, 0, 5, 0), "a picture of 5 x 0 pixels");
  refused(TG_ERR_VALUE, tg_llm_eval_picture(o.m, o.v, c->rgb, 1, 1 << 20, 0), "a picture of 1048576 x 1");
  refused(TG_ERR_VALUE, tg_llm_eval_picture(o.m, o.v, NULL, 2, 2, 0), "a picture of");
  refused(TG_ERR_VALUE, tg_llm_eval_picture(o.m, NULL, c->rgb, 2, 2, 0), "no vision of this model");
  refused(TG_ERR_VALUE, tg_llm_eval(o.m, &(int32_t){-5}, 1), "token -5");
  assert_null(tg_vision_open(o.m, golden("llava", "-mmproj")));
  refused(TG_ERR_STATE, tg_error(C), "has one already");
  for (int i = 0; i < 4; i++) /* 16 tokens each, of 64 */
    show(o, c, c->rgb);
  refused(TG_ERR_LIMIT, tg_llm_eval_picture(o.m, o.v, c->rgb, 2, 2, 0), "16 tokens after 64 are more");
  tg_llm_ids(o.m, &n);
  assert_int_equal(n, 64);
  refused(TG_ERR_LIMIT, tg_llm_eval_picture(o.m, o.v, c->rgb, 2, 2, 1), "are more than the context");
  assert_int_equal(tg_llm_rewind(o.m, 0), TG_OK);
  refused(TG_ERR_VALUE, tg_llm_eval_picture(o.m, o.v, c->rgb, 2, 2, 1), "view 1 of a picture that has 1");
  refused(TG_ERR_VALUE, tg_llm_eval_picture(o.m, o.v, c->rgb, 2, 2, -1), "view -1 of a picture");
  refused(TG_ERR_VALUE, tg_vision_ids(o.v, c->rgb, 2, 2, &(int32_t){0}, 1), "1 ids, where 1 views have 16");
  assert_null(tg_vision_text(o.v, 2, 2, 2));
  refused(TG_ERR_VALUE, tg_error(C), "view 2, of 1");
  assert_int_equal(tg_vision_views(o.v, 0, 2), 0);
  refused(TG_ERR_VALUE, tg_error(C), "a picture of 2 x 0 pixels");
  tg_vision_free(o.v);
  assert_null(tg_vision_open(o.m, golden("llava", "")));
  refused(TG_ERR_VALUE, tg_error(C), "general.architecture is 'llama'");
  assert_null(tg_vision_open(o.m, golden("llava", "-mmproj"), .tiles = 4));
  refused(TG_ERR_VALUE, tg_error(C), "pictures have no tiles with mlp (LLaVA 1.5)");
  assert_null(tg_vision_open(o.m, golden("llava", "-mmproj"), .tiles = 257));
  refused(TG_ERR_VALUE, tg_error(C), "tiles is 257, of -1 to 256");
  assert_null(tg_vision_open(o.m, "no such file"));
  assert_int_equal(tg_error(C), TG_ERR_IO);
  tg_clear_error(C);
  tg_llm_free(o.m);
  TgLlm *m = tg_llm_open(C, golden("gemma3", ""), .context = 12);
  assert_non_null(m);
  assert_null(tg_vision_open(m, golden("gemma3", "-mmproj")));
  refused(TG_ERR_LIMIT, tg_error(C), "a picture of 16 tokens is more than the context of 12");
  tg_llm_free(m);
}

/* The file with one run of bytes changed to another of the same length. */
static void spoiled(const char *name, const char *from, const char *to, size_t n, const char *text) {
  size_t size = 0;
  char *file = file_text(golden(name, "-mmproj"), &size), *at = file ? memmem(file, size, from, n) : NULL;
  if (!at) fail_msg("%s has no such bytes", name);
  memcpy(at, to, n);
  FILE *f = fopen("test_vision.gguf", "wb");
  assert_true(f && fwrite(file, 1, size, f) == size && !fclose(f));
  free(file);
  TgLlm *m = tg_llm_open(C, golden(name, ""), .context = 32);
  assert_non_null(m);
  assert_null(tg_vision_open(m, "test_vision.gguf"));
  refused(TG_ERR_VALUE, tg_error(C), text);
  tg_llm_free(m);
  remove("test_vision.gguf");
}

#define NUMBER "\4\0\0\0" /* the type of a u32 */

static void test_files(void **state) {
  (void)state;
  spoiled("idefics3", "\10\0\0\0\0\0\0\0idefics3", "\10\0\0\0\0\0\0\0qwen2vl_", 16,
          "'qwen2vl_' is not known here: there are mlp (LLaVA 1.5), gemma3 (Gemma 3), idefics3");
  spoiled("llava", "patch_size" NUMBER "\6", "patch_size" NUMBER "\5", 15,
          "tensor 'v.patch_embd.weight' is (16, 3, 6, 6), where the model has (16, 3, 5, 5)");
  spoiled("llava", "patch_size" NUMBER "\6", "patch_size" NUMBER "\0", 15, "patch_size is 0");
  spoiled("llava", "image_size" NUMBER "\32", "image_size" NUMBER "\40", 15,
          "tensor 'v.position_embd.weight' is (17, 16), where the model has (26, 16)");
  spoiled("llava", "block_count" NUMBER "\2", "block_count" NUMBER "\3", 16,
          "the file has no tensor 'v.blk.2.ln1.weight'");
  spoiled("llava", "mm.2.weight", "mm.1.weight", 11, "the file has no tensor 'mm.2.weight'");
  spoiled("llava", "mm.2.bias", "mm.9.bias", 9, "tensor 'mm.9.bias' is none that mlp has here");
  spoiled("idefics3", "scale_factor" NUMBER "\2", "scale_factor" NUMBER "\3", 17,
          "patches of a side, and projector.scale_factor: 4 and 3");
  spoiled("gemma3", "head_count" NUMBER "\2", "head_count" NUMBER "\3", 15,
          "embedding_length and attention.head_count: 16 and 3");
  spoiled("llava-features", "\1\0\0\0\3\0\0\0" /* feature_layer */, "\1\0\0\0\4\0\0\0", 8,
          "clip.vision.feature_layer has 4, of 3 layers");
}

/* ---- memory that ends */
static bool everything(TgContext *c) {
  static uint8_t rgb[8 * 6 * 3];
  TgLlm *m = tg_llm_open(c, golden("idefics3", ""), .context = 16, .block = 4);
  TgVision *v = m ? tg_vision_open(m, golden("idefics3", "-mmproj"), .tiles = 4) : NULL;
  bool ok = v && !tg_llm_eval(m, (int32_t[]){1, 5}, 2) && tg_vision_text(v, 6, 8, 1) &&
            !tg_llm_eval_picture(m, v, rgb, 6, 8, 0) && !tg_llm_eval_picture(m, v, rgb, 6, 8, 4);
  tg_llm_free(m);
  return ok;
}

static void test_memory(void **state) {
  (void)state;
  short_everywhere(everything, 211);
}

int main(int argc, char **argv) {
  named = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest of_named[] = {cmocka_unit_test_setup_teardown(test_pictures, open_named, close_it),
                                        cmocka_unit_test_setup_teardown(test_prefixes, open_named, close_it)};
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_pictures, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_pictures, open_interp, close_it),
                                     cmocka_unit_test_setup_teardown(test_folders, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_tiles, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_most_tiles, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_processors, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_prefixes, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_wrong, open_cpu, close_it),
                                     cmocka_unit_test_setup_teardown(test_files, open_interp, close_it),
                                     cmocka_unit_test_setup_teardown(test_memory, open_cpu, close_it)};
  return named ? cmocka_run_group_tests(of_named, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
