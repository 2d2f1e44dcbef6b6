/* test_llm_memory.c: what a language model takes at most. In: a file with random weights, made here: two layers as a
 * model of 1B has 16 of them, for each way in which matrices are kept. Expected: with a prompt and some tokens of
 * generation, a model of 16 such layers never holds more than 1.1 times its file and cache, pages of the file that are
 * mapped included. What is held beyond these does not grow with the layers. */
#include "llm/made.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  WIDTH = 2048,
  INNER = 8192,
  KEYS = 512,
  HEADS = 32,
  LAYERS = 2,
  ALL_LAYERS = 16,
  WORDS = 2048,
  CONTEXT = 256,
  PROMPT = 160
};

#if defined(__SANITIZE_ADDRESS__) || !defined(__linux__)
enum { MEASURED = 0 };
#else
enum { MEASURED = 1 };
#endif

typedef struct Tensor {
  char name[40];
  int64_t rows, columns; /* 0 rows: a vector of f32 */
} Tensor;

typedef struct Type {
  int id, block, nbytes;
} Type;

static const Type q8_0 = {8, 32, 34}, q4_0 = {2, 32, 18}, iq4_nl = {20, 32, 18}, f16 = {1, 1, 2};

static uint32_t draw(void) {
  static uint64_t seed = 1;
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 33);
}

static int tensors_of(Tensor *t) {
  static const Tensor layer[] = {
      {"attn_norm", 0, WIDTH},    {"attn_q", WIDTH, WIDTH},      {"attn_k", KEYS, WIDTH},
      {"attn_v", KEYS, WIDTH},    {"attn_output", WIDTH, WIDTH}, {"ffn_norm", 0, WIDTH},
      {"ffn_gate", INNER, WIDTH}, {"ffn_up", INNER, WIDTH},      {"ffn_down", WIDTH, INNER},
  };
  int n = 0;
  t[n++] = (Tensor){"token_embd.weight", WORDS, WIDTH};
  t[n++] = (Tensor){"output_norm.weight", 0, WIDTH};
  for (int i = 0; i < LAYERS; i++)
    for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
      t[n] = layer[k];
      snprintf(t[n++].name, sizeof t->name, "blk.%d.%.20s.weight", i, layer[k].name);
    }
  return n;
}

static int64_t bytes_of(const Tensor *t, const Type *q) {
  return t->rows ? t->rows * (t->columns / q->block) * q->nbytes : t->columns * 4;
}

static void put_values(FILE *f, const Tensor *t, const Type *q) {
  static unsigned char block[64];
  static const float one = 1;
  for (int64_t i = 0; !t->rows && i < t->columns; i++)
    assert_int_equal(fwrite(&one, 4, 1, f), 1);
  for (int64_t i = 0; i < t->rows * (t->columns / q->block); i++) {
    for (int k = 0; k < q->nbytes; k++)
      block[k] = (unsigned char)draw();
    if (q->block == 1)
      block[1] = (block[1] & 0x80) | 0x20; /* +-2^-7 and more */
    else
      block[0] = 0, block[1] = q->id == 8 ? 0x08 : 0x18; /* a scale as f16 */
    assert_int_equal(fwrite(block, (size_t)q->nbytes, 1, f), 1);
  }
}

static int64_t model_made(const char *path, const Type *q) {
  static Tensor t[2 + 9 * LAYERS];
  static Made m;
  int n = tensors_of(t);
  int64_t at = 0;
  m = (Made){.n = 0};
  made_text(&m, "general.architecture", "llama");
  made_number(&m, "llama.context_length", CONTEXT), made_number(&m, "llama.embedding_length", WIDTH);
  made_number(&m, "llama.block_count", LAYERS), made_number(&m, "llama.feed_forward_length", INNER);
  made_number(&m, "llama.attention.head_count", HEADS);
  made_number(&m, "llama.attention.head_count_kv", HEADS * KEYS / WIDTH);
  made_number(&m, "llama.rope.dimension_count", WIDTH / HEADS), made_number(&m, "llama.vocab_size", WORDS);
  made_key(&m, "llama.attention.layer_norm_rms_epsilon", MADE_F32), made_put(&m, &(float){1e-5f}, 4);
  uint64_t counts[] = {(uint64_t)n, m.count};
  for (int i = 0; i < n; i++) {
    made_string(&m, t[i].name), made_u32(&m, t[i].rows ? 2 : 1), made_u64(&m, (uint64_t)t[i].columns);
    if (t[i].rows) made_u64(&m, (uint64_t)t[i].rows);
    made_u32(&m, t[i].rows ? (uint32_t)q->id : 0), made_u64(&m, (uint64_t)at);
    at += (bytes_of(&t[i], q) + 31) & ~31;
  }
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  fwrite("GGUF\3\0\0\0", 8, 1, f), fwrite(counts, 16, 1, f), fwrite(m.at, m.n, 1, f);
  for (int i = 0; i < n; i++) {
    while (ftell(f) % 32)
      fputc(0, f);
    put_values(f, &t[i], q);
  }
  int64_t size = ftell(f);
  assert_int_equal(fclose(f), 0);
  return size;
}

/* Kilobytes after a name of /proc/self/status */
static double kilobytes(const char *name) {
  char line[200];
  double kb = 0;
  FILE *f = fopen("/proc/self/status", "r");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, name, strlen(name))) kb = atof(line + strlen(name) + 1);
  if (f) fclose(f);
  return kb;
}

/* In a process of its own, so that the peak is of this model: 0, and what went wrong on stderr. */
static int measured(const char *path, const Type *q, int64_t size) {
  int32_t ids[PROMPT];
  for (int i = 0; i < PROMPT; i++)
    ids[i] = (int32_t)(draw() % WORDS);
  TgContext *c = tg_open_with(.device = "CPU");
  TgTensor *x = tg_keep(tg_ones(c, TG_SHAPE(64, 64), TG_F32));
  int failed = tg_realize(tg_matmul(x, x));
  double before = kilobytes("VmRSS");
  TgLlm *m = tg_llm_open(c, path, .context = CONTEXT);
  failed |= !m || tg_llm_eval(m, ids, PROMPT);
  for (int i = 0; i < 16 && !failed; i++)
    failed = tg_llm_eval(m, ids + i, 1);
  double most = (kilobytes("VmHWM") - before) * 1024, cache = 2.0 * LAYERS * CONTEXT * KEYS * 4;
  double held = (double)size + cache, may = held + 0.1 * ALL_LAYERS / LAYERS * held;
  if (failed) fprintf(stderr, "type %d: %s\n", q->id, tg_errmsg(c));
  if (most > may)
    fprintf(stderr, "type %d: %.1f MB, not %.1f: file %.1f, cache %.1f\n", q->id, most / 1e6, may / 1e6,
            (double)size / 1e6, cache / 1e6);
  tg_llm_free(m);
  tg_close(c);
  return failed || (MEASURED && most > may);
}

static void test_peak(void **state) {
  (void)state;
  static const Type *const types[] = {&q8_0, &q4_0, &iq4_nl, &f16};
  char path[] = "/tmp/test_llm_memory_XXXXXX";
  int file = mkstemp(path), wrong = 0;
  assert_true(file >= 0);
  close(file);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    int status = -1;
    int64_t size = model_made(path, types[i]);
    pid_t child = fork();
    if (!child) _exit(measured(path, types[i], size));
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    wrong += status != 0;
  }
  unlink(path);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
