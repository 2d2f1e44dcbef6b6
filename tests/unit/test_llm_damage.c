/* test_llm_damage.c: language models' files, damaged. A right file is taken apart into key-values and
 * tensors, or into JSON; some parts are changed, and the whole is put together again, so that damage gets
 * past the first check. What comes of it is an error that says something, or a model: its tokens are within
 * the vocabulary, and its logits by single tokens are those by a block. No allocation is larger than a small
 * file can ask for, and a call that does not end is ended by the alarm. Memory that ends while a right folder is
 * read is told. N=200000: so many ways each, from the one that FIRST says. */
#define _GNU_SOURCE
#include "llm/made.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

enum { USUAL = 600, LARGEST_REQUEST = 64 << 20, PATIENCE = 120 /* seconds of one file, for the alarm */ };

static int number_of(const char *name, int otherwise) {
  const char *s = getenv(name);
  return s ? atoi(s) : otherwise;
}

static int count_of_ways(void) { return number_of("N", USUAL); }

static uint64_t state;

static uint32_t draw(void) { /* splitmix64 */
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

static size_t below(size_t n) { return n ? draw() % n : 0; }

static const uint64_t odd[] = {
    0,          1,        2,          3,          7,          8,         16,         31,        64,
    100,        127,      128,        255,        256,        4096,      65535,      65536,     1000000,
    0x7fffffff, 1u << 31, 0xffffffff, 1ull << 32, 1ull << 62, INT64_MAX, 1ull << 63, UINT64_MAX};

static uint64_t odd_number(void) { return odd[below(sizeof odd / sizeof *odd)]; }

static const char *const texts[] = {"",
                                    "a",
                                    "ab",
                                    " ",
                                    "\xe2\x96\x81",
                                    "\xff",
                                    "\xe2\x96",
                                    "<0x41>",
                                    "<0xGG>",
                                    "<unk>",
                                    "##a",
                                    "a b",
                                    " a b ",
                                    "llama",
                                    "gpt2",
                                    "qwen2",
                                    "yarn",
                                    "longrope",
                                    "{% for %}",
                                    "\xc4\xa0",
                                    "t5",
                                    "bert",
                                    "gemma3",
                                    "Unigram",
                                    "BPE",
                                    "WordPiece",
                                    "linear",
                                    "llama3",
                                    "(?:(a+)+)$",
                                    "<|end|>",
                                    "model.layers.9999999.mlp.down_proj.weight"};

static const char *odd_text(void) { return texts[below(sizeof texts / sizeof *texts)]; }

/* ---- memory: what is asked for at once, how often that is still granted, and the blocks that are held */
static size_t largest;
static int64_t granted = INT64_MAX, held;

static bool is_granted(size_t n) {
  if (n > largest) largest = n;
  return n <= LARGEST_REQUEST && granted-- > 0;
}

static void *capped_allocate(size_t n, void *user) {
  (void)user;
  void *p = is_granted(n) ? malloc(n ? n : 1) : NULL;
  held += p != NULL;
  return p;
}

static void *capped_reallocate(void *p, size_t n, void *user) {
  (void)user;
  void *more = is_granted(n) ? realloc(p, n ? n : 1) : NULL;
  held += more && !p;
  return more;
}

static void capped_release(void *p, void *user) {
  (void)user;
  held -= p != NULL;
  free(p);
}

static TgContext *C;
static const char *doing; /* what a failure is about */
static int way;

static void context_new(void) {
  static const TgAllocator capped = {capped_allocate, capped_reallocate, capped_release, NULL};
  tg_close(C);
  C = tg_open_with(.device = "INTERP", .allocator = &capped);
  assert_non_null(C);
  assert_int_equal(tg_error(C), TG_OK);
}

static int open_it(void **s) {
  (void)s;
  return 0;
}

static int close_it(void **s) {
  (void)s;
  tg_close(C);
  C = NULL;
  return 0;
}

/* ---- what a file that was taken must do */
static void tokenizer_answers(TgTokenizer *t) {
  static const char *const said[] = {"ab abb  c\xc3\xa9 12345 don't\n\n x", "\xff<s><unk><|end|>\xe4\xbd\xa0",
                                     ""};
  int32_t ids[256];
  for (int i = 0; i < 6; i++) {
    const char *text = said[i % 3];
    int64_t n = tg_tokenize(t, text, strlen(text), ids, 256, .special = i & 1, .ends = i > 2);
    if (n < 0 && !*tg_errmsg(C)) fail_msg("%s, %d: no tokens and no error", doing, way);
    if (n > 256) fail_msg("%s, %d: %lld tokens", doing, way, (long long)n);
    tg_clear_error(C);
    TgDetokenizer *d = tg_detokenizer_new(t, .special = i & 1);
    for (int64_t k = 0; k < n; k++) {
      if (ids[k] < 0 || ids[k] >= tg_tokenizer_count(t)) fail_msg("%s, %d: token %d", doing, way, ids[k]);
      if (!tg_detokenizer_put(d, ids[k], NULL)) fail_msg("%s, %d: %s", doing, way, tg_errmsg(C));
    }
    tg_detokenizer_free(d);
  }
}

/* A mask by the vocabulary: every token is looked at. */
static void grammar_answers(TgTokenizer *t) {
  size_t n = (size_t)tg_tokenizer_count(t);
  float *logits = calloc(n + 1, sizeof *logits);
  TgGrammar *g = tg_grammar_json(C, t, NULL, 0);
  if (!g && !*tg_errmsg(C)) fail_msg("%s, %d: no grammar and no error", doing, way);
  if (g) tg_grammar_mask(g, logits);
  tg_clear_error(C);
  tg_grammar_free(g);
  free(logits);
}

static bool finite_all(const float *v, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!(fabsf(v[i]) < 1e4f)) return false;
  return true;
}

/* A text twice: the same bits. */
static void encoder_answers(TgLlm *m) {
  enum { WIDEST = 4096 };

  static float first[WIDEST], again[WIDEST];
  static const int32_t ids[] = {0, 0, 0};
  size_t width = (size_t)tg_llm_about(m).width;
  bool ranks = tg_llm_about(m).ranks;
  if (ranks) width = 1;
  bool ok = width <= WIDEST;
  for (int i = 0; ok && i < 2; i++) {
    float *to = i ? again : first;
    ok = !(ranks ? tg_llm_rank(m, "aa", 2, "bb", 2, to, NULL) : tg_llm_embed(m, ids, 3, to));
  }
  if (!ok && width <= WIDEST && !*tg_errmsg(C)) fail_msg("%s, %d: no vector and no error", doing, way);
  if (ok && memcmp(first, again, width * sizeof *first)) fail_msg("%s, %d: another vector", doing, way);
  tg_clear_error(C);
}

static void model_answers(TgLlm *m) {
  enum { ONES = 4, MOST = 512 };

  int64_t v = tg_llm_about(m).vocabulary;
  if (tg_llm_about(m).encoder) {
    encoder_answers(m);
    return;
  }
  int32_t ids[ONES];
  static float ones[MOST];
  for (int i = 0; i < ONES; i++)
    ids[i] = (int32_t)(i % v);
  bool ok = v <= MOST;
  for (int i = 0; ok && i < ONES; i++)
    ok = !tg_llm_eval(m, &ids[i], 1);
  if (ok) memcpy(ones, tg_llm_logits(m), (size_t)v * sizeof *ones);
  ok = ok && !tg_llm_rewind(m, 0) && !tg_llm_eval(m, ids, ONES);
  if (!ok && v <= MOST && !*tg_errmsg(C)) fail_msg("%s, %d: no logits and no error", doing, way);
  const float *block = ok ? tg_llm_logits(m) : NULL;
  if (block && finite_all(ones, v) && finite_all(block, v))
    for (int64_t i = 0; i < v; i++)
      if (!(fabsf(ones[i] - block[i]) <= 1e-2f * (1 + fabsf(ones[i]))))
        fail_msg("%s, %d: logit %lld is %g by single tokens, %g by a block", doing, way, (long long)i,
                 (double)ones[i], (double)block[i]);
  tg_clear_error(C);
}

static TgLlm *seeing; /* what a vision tower is opened beside */
static bool tower_opened(const char *path, bool answers);

/* Opens it; true: it was taken. */
static bool opened(const char *path, bool usual_context) {
  alarm(PATIENCE);
  largest = 0;
  TgLlm *m = usual_context ? tg_llm_open(C, path) : tg_llm_open(C, path, .context = 8, .block = 4);
  if (!m && !*tg_errmsg(C)) fail_msg("%s, %d: no model and no error", doing, way);
  if (m && tg_error(C)) fail_msg("%s, %d: a model beside the error %s", doing, way, tg_errmsg(C));
  if (largest > LARGEST_REQUEST) fail_msg("%s, %d: %zu bytes at once", doing, way, largest);
  tg_clear_error(C);
  TgTokenizer *t = tg_llm_tokenizer(m);
  if (t) tokenizer_answers(t);
  if (t && !below(8)) grammar_answers(t);
  const char *text = m ? tg_llm_about(m).chat_template : NULL;
  if (text) tg_template_free(tg_template_new(C, text, strlen(text)));
  tg_clear_error(C);
  if (m && !usual_context && !below(6)) model_answers(m);
  if (m && strstr(doing, "vision/")) { /* a folder that has both */
    seeing = m;
    tower_opened(path, !below(4));
    seeing = NULL;
  }
  tg_llm_free(m);
  alarm(0);
  return m != NULL;
}

/* Damage that is always refused, or never, tests little. */
static void tested_enough(int taken) {
  if (getenv("N")) print_message("%d of %d were taken\n", taken, count_of_ways());
  assert_in_range(taken, count_of_ways() / 20, count_of_ways() - count_of_ways() / 4);
}

static void file_put(const char *path, const void *p, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(p, 1, n, f), n);
  fclose(f);
}

/* ---- a gguf file in parts */
typedef struct Part {
  const unsigned char *at;
  size_t n;
} Part;

typedef struct Pair {
  Part key, value; /* value: without its type */
  uint32_t type;
} Pair;

typedef struct Data {
  Part name, bytes;
  uint32_t rank, type;
  uint64_t dims[8], offset;
} Data;

enum { MOST_PAIRS = 64, MOST_DATA = 160, MOST_BYTES = 1 << 20 };

typedef struct File {
  uint64_t pairs, tensors; /* as the header says */
  size_t npairs, ntensors;
  Pair pair[MOST_PAIRS];
  Data tensor[MOST_DATA];
} File;

static unsigned char scratch[MOST_BYTES]; /* parts that are new */
static size_t scratch_n;

static unsigned char *scratch_of(size_t n) {
  assert_true(n <= sizeof scratch - scratch_n);
  scratch_n += n;
  return scratch + scratch_n - n;
}

static Part text_part(const char *s) {
  size_t n = strlen(s);
  return (Part){memcpy(scratch_of(n), s, n), n};
}

static uint64_t number_at(const unsigned char *p, size_t n) {
  uint64_t v = 0;
  memcpy(&v, p, n);
  return v;
}

static size_t width_of(uint32_t type) {
  static const unsigned char width[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof width ? width[type] : 0;
}

/* Bytes of a value of that type at p. */
static size_t value_size(const unsigned char *p, uint32_t type) {
  if (type == MADE_STRING) return 8 + (size_t)number_at(p, 8);
  if (type != MADE_ARRAY) return width_of(type);
  uint32_t of = (uint32_t)number_at(p, 4);
  size_t n = (size_t)number_at(p + 4, 8), size = 12;
  for (size_t i = 0; i < n; i++)
    size += value_size(p + size, of);
  return size;
}

static Part string_take(const unsigned char **p) {
  Part s = {*p + 8, (size_t)number_at(*p, 8)};
  *p += 8 + s.n;
  return s;
}

static void file_parse(File *f, const unsigned char *p, size_t n) {
  const unsigned char *begin = p;
  f->ntensors = (size_t)(f->tensors = number_at(p + 8, 8));
  f->npairs = (size_t)(f->pairs = number_at(p + 16, 8));
  assert_true(f->ntensors <= MOST_DATA - 4 && f->npairs <= MOST_PAIRS - 4);
  p += 24;
  for (size_t i = 0; i < f->npairs; i++) {
    Pair *a = &f->pair[i];
    a->key = string_take(&p);
    a->type = (uint32_t)number_at(p, 4);
    p += 4;
    a->value = (Part){p, value_size(p, a->type)};
    p += a->value.n;
  }
  for (size_t i = 0; i < f->ntensors; i++) {
    Data *t = &f->tensor[i];
    t->name = string_take(&p);
    t->rank = (uint32_t)number_at(p, 4);
    memcpy(t->dims, p + 4, 8 * t->rank);
    p += 4 + 8 * t->rank;
    t->type = (uint32_t)number_at(p, 4);
    t->offset = number_at(p + 4, 8);
    p += 12;
  }
  size_t data = ((size_t)(p - begin) + 31) / 32 * 32;
  for (size_t i = 0; i < f->ntensors; i++) {
    size_t at = data + (size_t)f->tensor[i].offset;
    size_t end = i + 1 < f->ntensors ? data + (size_t)f->tensor[i + 1].offset : n;
    f->tensor[i].bytes = (Part){begin + at, end - at};
  }
}

static void put(Part *to, const void *p, size_t n) {
  if (to->n + n > MOST_BYTES) n = 0;
  memcpy((unsigned char *)to->at + to->n, p, n);
  to->n += n;
}

static void put_number(Part *to, uint64_t v, size_t n) { put(to, &v, n); }

static void put_string(Part *to, Part s) {
  put_number(to, s.n, 8);
  put(to, s.at, s.n);
}

static Part file_written(const File *f, bool odd_offset) {
  static unsigned char all[MOST_BYTES];
  Part to = {all, 0};
  put(&to, "GGUF\3\0\0\0", 8);
  put_number(&to, f->tensors, 8), put_number(&to, f->pairs, 8);
  for (size_t i = 0; i < f->npairs; i++) {
    put_string(&to, f->pair[i].key);
    put_number(&to, f->pair[i].type, 4);
    put(&to, f->pair[i].value.at, f->pair[i].value.n);
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < f->ntensors; i++) {
    const Data *t = &f->tensor[i];
    put_string(&to, t->name);
    put_number(&to, t->rank, 4);
    put(&to, t->dims, 8 * (t->rank < 8 ? t->rank : 8));
    put_number(&to, t->type, 4);
    put_number(&to, odd_offset && !below(f->ntensors) ? odd_number() : offset, 8);
    offset += (t->bytes.n + 31) / 32 * 32;
  }
  put(&to, (const char[32]){0}, -to.n % 32);
  for (size_t i = 0; i < f->ntensors; i++) {
    put(&to, f->tensor[i].bytes.at, f->tensor[i].bytes.n);
    put(&to, (const char[32]){0}, -f->tensor[i].bytes.n % 32);
  }
  return to;
}

/* ---- damage */
static void number_set(Pair *p) {
  unsigned char *new = scratch_of(p->value.n);
  uint64_t v = odd_number();
  static const double reals[] = {0, -1, 1e30, 1e-30, INFINITY, NAN, 0.5};
  double real = reals[below(7)];
  memcpy(new, &v, p->value.n < 8 ? p->value.n : 8);
  if (p->type == MADE_F32) memcpy(new, &(float){(float)real}, 4);
  p->value.at = new;
}

/* An element of an array of texts becomes another; or the array is cut, or one of its texts stands twice. */
static void array_texts_change(Pair *p) {
  size_t n = (size_t)number_at(p->value.at + 4, 8), at = below(n), kind = below(4);
  Part to = {scratch_of(p->value.n + 8300), 0};
  const unsigned char *from = p->value.at + 12;
  static char longest[8193];
  memset(longest, 'a', 8192);
  const unsigned char *end = p->value.at + p->value.n;
  put_number(&to, MADE_STRING, 4), put_number(&to, kind == 0 ? n - 1 : kind == 1 ? n + 1 : n, 8);
  for (size_t i = 0; i < n && from < end; i++) {
    Part s = string_take(&from);
    if (i == at && kind == 0) continue;
    if (i == at && kind == 2) s = text_part(below(20) ? odd_text() : longest);
    if (i == at && kind == 3) s.n = below(s.n + 1);
    put_string(&to, s);
    if (i == at && kind == 1) put_string(&to, s);
  }
  p->value = to;
}

static void array_numbers_change(Pair *p, uint32_t of) {
  size_t n = (size_t)number_at(p->value.at + 4, 8), width = width_of(of), at = below(n);
  unsigned char *new = memcpy(scratch_of(p->value.n), p->value.at, p->value.n);
  uint64_t v = odd_number();
  if (n) memcpy(new + 12 + at *width, &v, width);
  if (n && !below(4)) memcpy(new + 4, &(uint64_t){n - 1}, 8), p->value.n -= width;
  p->value.at = new;
}

static void pair_change(Pair *p) {
  uint32_t of = p->type == MADE_ARRAY ? (uint32_t)number_at(p->value.at, 4) : 0;
  if (!below(12))
    p->type = (uint32_t)below(14);
  else if (p->type == MADE_STRING) {
    Part to = {scratch_of(64), 0};
    put_string(&to, text_part(odd_text()));
    p->value = to;
  } else if (p->type == MADE_ARRAY && !below(8)) {
    unsigned char *new = memcpy(scratch_of(p->value.n), p->value.at, p->value.n);
    uint64_t n = odd_number();
    memcpy(new + 4, &n, 8);
    p->value.at = new;
  } else if (p->type == MADE_ARRAY && of == MADE_STRING)
    array_texts_change(p);
  else if (p->type == MADE_ARRAY)
    array_numbers_change(p, of);
  else
    number_set(p);
}

/* The file is of another architecture: its name, and the keys that begin with it. */
static void architecture_change(File *f) {
  int n = 0;
  while (tg_llm_architecture(n))
    n++;
  const char *to = tg_llm_architecture((int)below((size_t)n));
  for (size_t i = 0; i < f->npairs; i++) {
    Pair *p = &f->pair[i];
    const unsigned char *dot = memchr(p->key.at, '.', p->key.n);
    if (p->key.n == 20 && !memcmp(p->key.at, "general.architecture", 20)) {
      Part value = {scratch_of(64), 0};
      put_string(&value, text_part(to));
      p->value = value;
    } else if (dot && memcmp(p->key.at, "general", 7) && memcmp(p->key.at, "tokenizer", 9)) {
      Part key = {scratch_of(p->key.n + 32), 0};
      put(&key, to, strlen(to)), put(&key, dot, p->key.n - (size_t)(dot - p->key.at));
      p->key = key;
    }
  }
}

static void pairs_change(File *f) {
  size_t i = below(f->npairs), k = below(f->npairs);
  Pair was = f->pair[i];
  switch (below(8)) {
  case 0: memmove(&f->pair[i], &f->pair[i + 1], (--f->npairs - i) * sizeof was), f->pairs--; break;
  case 1:
    if (f->npairs < MOST_PAIRS) f->pair[f->npairs++] = was, f->pairs++;
    break;
  case 2: /* the value of another */
    f->pair[i].value = f->pair[k].value, f->pair[i].type = f->pair[k].type;
    break;
  case 3: f->pair[i].key = text_part(odd_text()); break;
  case 4: architecture_change(f); break;
  default: pair_change(&f->pair[i]); break;
  }
}

static void bytes_change(Data *t) {
  static const unsigned char strange[] = {0x00, 0x80, 0x7f, 0xff, 0xfc, 0x7c};
  unsigned char *new = memcpy(scratch_of(t->bytes.n), t->bytes.at, t->bytes.n);
  for (size_t i = 1 + below(16); i-- && t->bytes.n;)
    new[below(t->bytes.n)] = below(2) ? (unsigned char)draw() : strange[below(6)];
  t->bytes.at = new;
}

static void tensors_change(File *f) {
  if (!f->ntensors) return;
  size_t i = below(f->ntensors), k = below(f->ntensors);
  Data was = f->tensor[i], *t = &f->tensor[i];
  switch (below(9)) {
  case 0: memmove(t, t + 1, (--f->ntensors - i) * sizeof was), f->tensors--; break;
  case 1:
    if (f->ntensors < MOST_DATA) f->tensor[f->ntensors++] = was, f->tensors++;
    break;
  case 2: t->name = f->tensor[k].name, f->tensor[k].name = was.name; break;
  case 3: t->bytes = f->tensor[k].bytes; break;
  case 4: t->dims[below(t->rank)] = odd_number(); break;
  case 5: t->dims[0] = was.dims[1], t->dims[1] = was.dims[0]; break;
  case 6: t->rank = (uint32_t)below(7); break;
  case 7: t->type = (uint32_t)below(42); break;
  default: bytes_change(t); break;
  }
}

/* Bytes of the whole: one bit, one byte, a number, a piece that is gone, the end that is gone. */
static void bytes_spoil(Part *b) {
  unsigned char *at = (unsigned char *)b->at;
  size_t head = b->n > 4096 && below(4) ? 4096 : b->n, i = below(head - 8);
  uint64_t v = odd_number();
  switch (below(5)) {
  case 0: at[i] ^= (unsigned char)(1 << below(8)); break;
  case 1: at[i] = (unsigned char)draw(); break;
  case 2: memcpy(at + i, &v, (size_t)1 << below(4)); break;
  case 3: memmove(at + i, at + i + 1 + below(8), b->n - i - 8), b->n -= 8; break;
  default: b->n = i; break;
  }
}

static const char *const goldens[] = {"llama",
                                      "llama-yarn",
                                      "llama-experts",
                                      "qwen2",
                                      "qwen2moe",
                                      "gemma3",
                                      "phi3",
                                      "phi3-long",
                                      "glm4",
                                      "gpt2",
                                      "gpt-oss",
                                      "smollm3",
                                      "bert",
                                      "nomic-bert",
                                      "jina-bert-v2-norms",
                                      "gemma-embedding",
                                      "stablelm-12b",
                                      "gptneox",
                                      "falcon-40b",
                                      "bloom",
                                      "mpt",
                                      "olmo",
                                      "deepseek2",
                                      "deepseek2-lite",
                                      "glm4moe",
                                      "exaone4"};

enum { GOLDENS = sizeof goldens / sizeof *goldens, KINDS = 4 };

/* Vocabularies of each kind, put before the key-values of a model. */
static void vocabulary(Made *m, size_t kind) {
  static const char *const pieces[] = {"<unk>",
                                       "<s>",
                                       "</s>",
                                       "\xe2\x96\x81",
                                       "a",
                                       "b",
                                       "ab",
                                       "abb",
                                       "<0x63>",
                                       "[USER]",
                                       "\xe2\x96\x81"
                                       "ab",
                                       "c",
                                       "##b",
                                       "##c",
                                       "d"};
  static const float scores[] = {0, 0, 0, -9, -8, -7, -1, -2, 0, 0, -3, -4, -5, -6, -2};
  static const int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1, 6, 4, 1, 1, 1, 1, 1};
  static const char *const merges[] = {"a b", "ab b"};
  static const char *const kinds[] = {"llama", "gpt2", "t5", "bert"};
  *m = (Made){.n = 0};
  made_text(m, "tokenizer.ggml.model", kinds[kind]);
  made_texts(m, "tokenizer.ggml.tokens", pieces, 15);
  made_numbers(m, "tokenizer.ggml.scores", MADE_F32, scores, 15);
  made_numbers(m, "tokenizer.ggml.token_type", MADE_I32, types, 15);
  made_texts(m, "tokenizer.ggml.merges", merges, 2);
  made_text(m, "tokenizer.ggml.pre", "qwen2");
  made_number(m, "tokenizer.ggml.unknown_token_id", 0);
  made_number(m, "tokenizer.ggml.bos_token_id", 1);
  made_flag(m, "tokenizer.ggml.add_bos_token", true);
  made_text(m, "tokenizer.chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}");
}

/* The golden's bytes with a vocabulary among its key-values. */
static unsigned char *with_vocabulary(const char *name, size_t kind, size_t *n) {
  static Made m;
  char path[600];
  size_t length = 0;
  snprintf(path, sizeof path, "%s/goldens/llm/%s.gguf", TG_TESTS, name);
  char *file = file_text(path, &length);
  assert_non_null(file);
  vocabulary(&m, kind);
  File *f = calloc(1, sizeof *f);
  file_parse(f, (unsigned char *)file, length);
  const unsigned char *p = m.at;
  for (size_t i = 0; i < m.count; i++) {
    Pair *a = &f->pair[f->npairs++];
    a->key = string_take(&p);
    a->type = (uint32_t)number_at(p, 4);
    a->value = (Part){p + 4, value_size(p + 4, a->type)};
    p += 4 + a->value.n;
  }
  f->pairs = f->npairs;
  Part all = file_written(f, false);
  unsigned char *copy = malloc(all.n);
  memcpy(copy, all.at, *n = all.n);
  free(f), free(file);
  return copy;
}

/* opens: what a damaged file is given to. */
static bool gguf_way(const unsigned char *file, size_t n, bool (*opens)(const char *path, bool usual)) {
  static File f;
  scratch_n = 0;
  file_parse(&f, file, n);
  bool whole = !below(40), bytes = !below(3), offset = false;
  for (size_t i = whole ? 0 : 1 + below(3); i-- && !bytes;) {
    size_t kind = below(12);
    if (kind == 0)
      *(below(2) ? &f.pairs : &f.tensors) = odd_number();
    else if (kind == 1)
      offset = true;
    else if (kind < 8)
      pairs_change(&f);
    else
      tensors_change(&f);
  }
  Part all = file_written(&f, offset);
  for (size_t i = whole ? 0 : 1 + below(3); i-- && bytes && all.n > 64;)
    bytes_spoil(&all);
  file_put("test_llm_damage.gguf", all.at, all.n);
  bool taken = opens("test_llm_damage.gguf", !below(8));
  if (whole && !taken) fail_msg("%s, %d: a right file is refused", doing, way);
  return taken;
}

static void test_gguf(void **s) {
  (void)s;
  unsigned char *file[GOLDENS][KINDS];
  size_t n[GOLDENS][KINDS];
  int taken = 0;
  for (int i = 0; i < GOLDENS; i++)
    for (size_t k = 0; k < KINDS; k++)
      file[i][k] = with_vocabulary(goldens[i], k, &n[i][k]);
  int first = number_of("FIRST", 0);
  for (way = first; way < first + count_of_ways(); way++) {
    int i = way % GOLDENS;
    size_t k = (size_t)(way / GOLDENS) % KINDS;
    if (way % 64 == 0 || !C) context_new();
    state = (uint64_t)way;
    doing = goldens[i];
    taken += gguf_way(file[i][k], n[i][k], opened);
  }
  tested_enough(taken);
  for (int i = 0; i < GOLDENS; i++)
    for (size_t k = 0; k < KINDS; k++)
      free(file[i][k]);
  remove("test_llm_damage.gguf");
}

/* ---- what reads pictures, beside a model that is whole */
/* A picture, twice: the same bits, or an error that says something. */
static void picture_answers(TgVision *v) {
  enum { MOST = 1 << 12 };

  static float first[MOST], again[MOST];
  uint8_t rgb[7 * 5 * 3];
  size_t n = (size_t)(tg_vision_tokens(v) * tg_llm_about(seeing).width);
  for (size_t i = 0; i < sizeof rgb; i++)
    rgb[i] = (uint8_t)(i * 37);
  bool ok = n <= MOST;
  for (int i = 0; ok && i < 2; i++)
    ok = !tg_vision_vectors(v, rgb, 5, 7, 0, i ? again : first);
  if (ok && memcmp(first, again, n * sizeof *first)) fail_msg("%s, %d: other vectors", doing, way);
  ok = ok && !tg_llm_rewind(seeing, 0) && !tg_llm_eval_picture(seeing, v, rgb, 5, 7, 0);
  if (!ok && n <= MOST && !*tg_errmsg(C)) fail_msg("%s, %d: no vectors and no error", doing, way);
  tg_clear_error(C);
}

static bool tower_opened(const char *path, bool answers) {
  alarm(PATIENCE);
  largest = 0;
  TgVision *v = tg_vision_open(seeing, path);
  if (!v && !*tg_errmsg(C)) fail_msg("%s, %d: no vision and no error", doing, way);
  if (v && tg_error(C)) fail_msg("%s, %d: a vision beside the error %s", doing, way, tg_errmsg(C));
  if (largest > LARGEST_REQUEST) fail_msg("%s, %d: %zu bytes at once", doing, way, largest);
  tg_clear_error(C);
  if (v && answers) picture_answers(v);
  tg_vision_free(v);
  alarm(0);
  return v != NULL;
}

static void test_towers(void **s) {
  (void)s;
  static const char *const names[] = {"llava", "llava-features", "gemma3", "idefics3"};
  char path[600];
  int taken = 0, first = number_of("FIRST", 0), each = (count_of_ways() + 3) / 4;
  for (int i = 0; i < 4; i++) {
    size_t n = 0;
    snprintf(path, sizeof path, "%s/goldens/llm/vision/%s-mmproj.gguf", TG_TESTS, names[i]);
    char *file = file_text(path, &n);
    assert_non_null(file);
    doing = names[i];
    for (way = first; way < first + each; way++) {
      if ((way - first) % 64 == 0) {
        tg_llm_free(seeing);
        context_new();
        snprintf(path, sizeof path, "%s/goldens/llm/vision/%s.gguf", TG_TESTS, names[i]);
        seeing = tg_llm_open(C, path, .context = 20, .block = 4);
        assert_non_null(seeing);
      }
      state = (uint64_t)(i + 1) << 40 | (uint64_t)way;
      taken += gguf_way((unsigned char *)file, n, tower_opened);
    }
    tg_llm_free(seeing);
    seeing = NULL;
    free(file);
  }
  tested_enough(taken);
  remove("test_llm_damage.gguf");
}

/* ---- folders: JSON in parts */
static json_t *odd_json(void) {
  static const double reals[] = {0.5, -1, 1e300, 1e-300};
  switch (below(8)) {
  case 0: return json_null();
  case 1: return json_boolean(below(2));
  case 2: return json_real(reals[below(4)]);
  case 3: return json_array();
  case 4: return json_object();
  case 5: return json_stringn_nocheck(odd_text(), strlen(odd_text()) ? 1 : 0);
  case 6: return json_string(odd_text());
  default: return json_integer((json_int_t)odd_number());
  }
}

static void json_change(json_t *at);

static void object_change(json_t *at) {
  size_t n = below(json_object_size(at)), k = below(6);
  void *i = json_object_iter(at);
  while (n--)
    i = json_object_iter_next(at, i);
  if (!i) return;
  char *key = strdup(json_object_iter_key(i));
  json_t *value = json_object_iter_value(i);
  if (k < 3 && (json_is_object(value) || json_is_array(value)))
    json_change(value);
  else if (k < 4)
    json_object_set_new(at, key, odd_json());
  else if (k < 5)
    json_object_del(at, key);
  else {
    json_incref(value);
    json_object_del(at, key);
    json_object_set_new(at, below(2) ? odd_text() : "x", value);
  }
  free(key);
}

static void array_change(json_t *at) {
  size_t i = below(json_array_size(at)), k = below(6);
  json_t *value = json_array_get(at, i);
  if (!value || k == 0)
    json_array_append_new(at, odd_json());
  else if (k < 4 && (json_is_object(value) || json_is_array(value)))
    json_change(value);
  else if (k < 5)
    json_array_set_new(at, i, odd_json());
  else
    json_array_remove(at, i);
}

/* One value somewhere below: another, gone, or under another name. */
static void json_change(json_t *at) {
  if (json_is_object(at)) object_change(at);
  if (json_is_array(at)) array_change(at);
}

static Part json_damaged(const char *text, size_t n) {
  static unsigned char all[MOST_BYTES];
  json_t *j = json_loadb(text, n, 0, NULL);
  if (!j) j = json_loadb(text, n, JSON_DECODE_INT_AS_REAL, NULL); /* lengths of 1e30 */
  assert_non_null(j);
  for (size_t i = 1 + below(3); i--;)
    json_change(j);
  size_t size = json_dumpb(j, (char *)all, sizeof all, JSON_COMPACT | JSON_ENCODE_ANY);
  json_decref(j);
  return (Part){all, size <= sizeof all ? size : 0};
}

static Part safetensors_damaged(const char *file, size_t n) {
  static unsigned char all[MOST_BYTES];
  size_t head = (size_t)number_at((const unsigned char *)file, 8);
  Part json = json_damaged(file + 8, head), to = {all, 0};
  put_number(&to, below(8) ? json.n : odd_number(), 8);
  put(&to, json.at, json.n), put(&to, file + 8 + head, n - 8 - head);
  return to;
}

static const char *const folders[] = {"llama",
                                      "mistral",
                                      "qwen2",
                                      "gpt2",
                                      "phi3",
                                      "gemma3",
                                      "mixtral",
                                      "qwen2moe",
                                      "gpt-oss",
                                      "gpt-oss-mxfp4",
                                      "smollm3",
                                      "glm4",
                                      "unigram",
                                      "words",
                                      "bert",
                                      "xlm-roberta",
                                      "xlm-roberta-rank",
                                      "nomic-bert",
                                      "stablelm-12b",
                                      "falcon-40b",
                                      "bloom",
                                      "deepseek-v2",
                                      "deepseek-v3",
                                      "glm4-moe",
                                      "hunyuan",
                                      "../vision/hf-llava",
                                      "../vision/hf-gemma3",
                                      "../vision/hf-idefics3"};
static const char *const files[] = {"config.json",
                                    "tokenizer.json",
                                    "tokenizer_config.json",
                                    "model.safetensors",
                                    "model.safetensors.index.json",
                                    "model-00001-of-00003.safetensors",
                                    "model-00002-of-00003.safetensors",
                                    "model-00003-of-00003.safetensors"};

enum { FOLDERS = sizeof folders / sizeof *folders, FILES = sizeof files / sizeof *files };

typedef struct Folder {
  char *text[FILES];
  size_t n[FILES];
} Folder;

static const char *place(int file) {
  static char path[100];
  snprintf(path, sizeof path, "test_llm_damage_files/%s", files[file]);
  return path;
}

static void folder_put(const char *name, Folder *f) {
  char path[700];
  mkdir("test_llm_damage_files", 0777);
  for (int i = 0; i < FILES; i++) {
    free(f->text[i]);
    remove(place(i));
    f->text[i] = NULL;
    if (!name) continue;
    bool learned = !strncmp(name, "unigram", 7) || !strcmp(name, "words"); /* with llama's weights */
    bool tokenizer = !strncmp(files[i], "tokenizer", 9);
    snprintf(path, sizeof path, "%s/goldens/llm/%s/%s/%s", TG_TESTS,
             learned && tokenizer ? "tokenizers" : "hf", learned && !tokenizer ? "llama" : name, files[i]);
    if ((f->text[i] = file_text(path, &f->n[i]))) file_put(place(i), f->text[i], f->n[i]);
  }
}

static bool folder_way(Folder *f) {
  int i = (int)below(FILES);
  while (!f->text[i])
    i = (i + 1) % FILES;
  bool bytes = !below(3), tensors = strstr(files[i], ".safetensors") && !strstr(files[i], ".json");
  static unsigned char copy[MOST_BYTES];
  Part all = {copy, f->n[i]};
  if (bytes) {
    memcpy(copy, f->text[i], f->n[i]);
    for (size_t k = 1 + below(3); k-- && all.n > 64;)
      bytes_spoil(&all);
  } else
    all = tensors ? safetensors_damaged(f->text[i], f->n[i]) : json_damaged(f->text[i], f->n[i]);
  if (below(50))
    file_put(place(i), all.at, all.n);
  else
    remove(place(i));
  bool taken = opened("test_llm_damage_files", !below(8));
  file_put(place(i), f->text[i], f->n[i]);
  return taken;
}

static void test_folders(void **s) {
  (void)s;
  Folder f = {.text = {NULL}};
  int each = (count_of_ways() + FOLDERS - 1) / FOLDERS, taken = 0;
  for (int i = 0; i < FOLDERS; i++) {
    folder_put(folders[i], &f);
    doing = folders[i];
    for (way = 0; way < each; way++) {
      if (way % 64 == 0 || !C) context_new();
      state = (uint64_t)i << 32 | (uint64_t)(number_of("FIRST", 0) + way);
      taken += folder_way(&f);
    }
  }
  tested_enough(taken);
  folder_put(NULL, &f);
  rmdir("test_llm_damage_files");
}

/* A right folder, read where memory ends at the n-th allocation, for every n: that is said, or the folder is
 * read; and all is given back. */
static void folder_without_memory(TgValue *(*load)(TgContext *, const char *)) {
  bool whole = false;
  context_new();
  for (int64_t n = 0; !whole; n++) {
    granted = n;
    TgValue *v = load(C, "test_llm_damage_files");
    granted = INT64_MAX;
    whole = v != NULL;
    if (tg_error(C) != (whole ? TG_OK : TG_ERR_NOMEM))
      fail_msg("%s, %d allocations: %s", doing, (int)n, tg_errmsg(C));
    tg_value_free(v);
    tg_clear_error(C);
  }
  tg_close(C);
  C = NULL;
  if (held) fail_msg("%s: %d blocks are left", doing, (int)held);
}

static void test_folders_without_memory(void **s) {
  (void)s;
  static const char *const each[] = {"llama", "mixtral", "words", "unigram", "../vision/hf-gemma3"};
  Folder f = {.text = {NULL}};
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    folder_put(each[i], &f);
    doing = each[i];
    folder_without_memory(tg_hf_load);
    if (strstr(doing, "vision/")) folder_without_memory(tg_hf_load_vision);
  }
  folder_put(NULL, &f);
  rmdir("test_llm_damage_files");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gguf), cmocka_unit_test(test_towers),
                                     cmocka_unit_test(test_folders),
                                     cmocka_unit_test(test_folders_without_memory)};
  return cmocka_run_group_tests(tests, open_it, close_it);
}
