/* bench_llm.c: `tg bench llm`: measures how fast a language model reads a prompt and generates. In: a gguf
 * file. Out: a line for each, with tokens per second and their standard deviation. The tokens are arbitrary
 * and nothing is sampled, except where tokens are guessed: then each next token is the likeliest. */
#include "llm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct BenchOptions {
  LlmChoices llm;
  int64_t prompt, generate, sequences, runs;
  bool json;
} BenchOptions;

/* guessed: guesses in all runs that count; -1: nothing is guessed */
typedef struct Rate {
  double mean, deviation;
  int64_t guessed, right;
} Rate;

static bool prompt_once(LlmSession *s, const int32_t *ids, int64_t n, double *seconds) {
  if (tg_llm_rewind(s->m, 0)) return false;
  double begin = cli_now();
  bool ok = !tg_llm_eval(s->m, ids, n);
  *seconds = cli_now() - begin;
  return ok;
}

static bool generate_once(LlmSession *s, const int32_t *ids, int64_t n, double *seconds) {
  if (tg_llm_rewind(s->m, 0)) return false;
  double begin = cli_now();
  bool ok = true;
  for (int64_t i = 0; ok && i < n; i++)
    ok = !tg_llm_eval(s->m, ids + i, 1);
  *seconds = cli_now() - begin;
  return ok;
}

/* Computes n tokens in all, one token of each sequence per step. */
static bool several_once(LlmSession *s, const int32_t *ids, int64_t n, double *seconds) {
  int64_t count = tg_llm_about(s->m).sequences;
  int32_t *sequence = malloc((size_t)count * sizeof *sequence);
  bool ok = sequence != NULL;
  for (int64_t i = 0; ok && i < count; i++) {
    sequence[i] = (int32_t)i;
    ok = !tg_llm_use(s->m, i) && !tg_llm_rewind(s->m, 0);
  }
  double begin = cli_now();
  for (int64_t i = 0; ok && i < n; i += count)
    ok = !tg_llm_eval_many(s->m, sequence, ids + i, count);
  *seconds = cli_now() - begin;
  free(sequence);
  return ok && !tg_llm_use(s->m, 0);
}

static int32_t likeliest(const float *logits, int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; i++)
    if (logits[i] > logits[best]) best = i;
  return (int32_t)best;
}

/* Computes the token at ids[*n - 1] and guesses of the tokens after it. Appends the guesses that were right
 * and one more token to ids. room: how many tokens may be appended at most. */
static bool guessed_step(LlmSession *s, int32_t *ids, int64_t *n, int64_t room) {
  int32_t row[LLM_ROWS], sequence[LLM_ROWS] = {0};
  int64_t most = room < LLM_ROWS ? room - 1 : LLM_ROWS - 1, v = tg_llm_about(s->m).vocabulary, right = 0;
  int64_t guesses = s->draft && most ? tg_draft_guess(s->draft, ids, *n, 0, row + 1, most) : 0;
  row[0] = ids[*n - 1];
  if (guesses < 0 || tg_llm_eval_many(s->m, sequence, row, guesses + 1)) return false;
  for (;; right++) {
    ids[(*n)++] = likeliest(tg_llm_row_logits(s->m, right), v);
    if (right == guesses || ids[*n - 1] != row[right + 1]) break;
  }
  tg_draft_told(s->draft, right < guesses ? right + 1 : right, right);
  s->rates.guessed += guesses;
  s->rates.right += right;
  return !tg_llm_rewind(s->m, *n - 1);
}

/* Generates n tokens after ids[0], each the likeliest. */
static bool guessed_once(LlmSession *s, const int32_t *ids, int64_t n, double *seconds) {
  int32_t *text = malloc((size_t)(n + 1) * sizeof *text);
  int64_t made = 1;
  bool ok = text && !tg_llm_rewind(s->m, 0);
  if (ok) text[0] = ids[0];
  double begin = cli_now();
  while (ok && made < n + 1)
    ok = guessed_step(s, text, &made, n + 1 - made);
  *seconds = cli_now() - begin;
  free(text);
  return ok;
}

/* Runs `once` until `runs` runs are counted. The first two runs are not counted, because they plan and
 * capture. */
static bool measured(LlmSession *s, bool (*once)(LlmSession *, const int32_t *, int64_t, double *),
                     const int32_t *ids, int64_t n, int64_t runs, Rate *r) {
  double sum = 0, squares = 0, seconds;
  *r = (Rate){.guessed = once == guessed_once && s->draft ? 0 : -1};
  for (int64_t i = -2; i < runs; i++) {
    s->rates = (LlmRates){.tokens = 0};
    if (!once(s, ids, n, &seconds)) return false;
    double rate = (double)n / seconds;
    if (i < 0) continue;
    sum += rate;
    squares += rate * rate;
    if (r->guessed >= 0) r->guessed += s->rates.guessed;
    r->right += s->rates.right;
  }
  r->mean = sum / (double)runs;
  r->deviation = sqrt(fmax(0, squares / (double)runs - r->mean * r->mean));
  return true;
}

static void say(const BenchOptions *o, const LlmSession *s, const char *path, const char *test, Rate r) {
  TgLlmAbout a = tg_llm_about(s->m);
  const char *slash = strrchr(path, '/'), *name = *a.name ? a.name : slash ? slash + 1 : path;
  char shown[64], guesses[96] = "";
  snprintf(shown, sizeof shown, "%.24s (%s)", name, a.architecture);
  if (r.guessed >= 0)
    snprintf(guesses, sizeof guesses,
             o->json ? ",\"guessed\":%lld,\"accepted\":%lld" : " %lld guesses, %lld right",
             (long long)r.guessed, (long long)r.right);
  if (o->json) {
    printf("{\"model\":");
    cli_json_text(stdout, name);
    printf(",\"architecture\":\"%s\",\"parameters\":%lld,\"device\":\"%s\",\"test\":\"%s\",\"tokens_per_"
           "second\":%.3f,"
           "\"deviation\":%.3f%s,\"peak_bytes\":%llu}\n",
           a.architecture, (long long)a.parameters, tg_default_device(s->ctx), test, r.mean, r.deviation,
           guesses, (unsigned long long)tg_counters(s->ctx).peak_bytes);
  } else
    printf("| %-32s | %9.2f M | %-6s | %6s | %10.2f ± %.2f |%s\n", shown, (double)a.parameters / 1e6,
           tg_default_device(s->ctx), test, r.mean, r.deviation, guesses);
  fflush(stdout);
}

/* Generates tokens after a text, first in steps of one row, then with guesses. */
static bool bench_guesses(const BenchOptions *o, LlmSession *s, const char *path, const int32_t *ids) {
  Rate r;
  char test[32];
  TgDraft *draft = s->draft;
  s->draft = NULL;
  bool ok = measured(s, guessed_once, ids, o->generate, o->runs, &r);
  s->draft = draft;
  if (!ok) return false;
  snprintf(test, sizeof test, "row%lld", (long long)o->generate);
  say(o, s, path, test, r);
  if (!draft) return true;
  if (!measured(s, guessed_once, ids, o->generate, o->runs, &r)) return false;
  snprintf(test, sizeof test, "dr%lld", (long long)o->generate);
  say(o, s, path, test, r);
  return true;
}

static bool bench(const BenchOptions *o, LlmSession *s, const char *path) {
  int64_t each = o->sequences > 1 ? o->generate * o->sequences : o->generate;
  int64_t most = o->prompt > each ? o->prompt : each, v = tg_llm_about(s->m).vocabulary;
  int32_t *ids = malloc((size_t)most * sizeof *ids);
  Rate r;
  char test[32];
  for (int64_t i = 0; ids && i < most; i++)
    ids[i] = (int32_t)((i * 7919 + 1) % v);
  bool ok = ids != NULL;
  if (!o->json)
    puts("| model                            |      params | device |   test |       tokens a second |\n"
         "| -------------------------------- | ----------: | ------ | -----: | --------------------: |");
  if (ok && o->prompt && (ok = measured(s, prompt_once, ids, o->prompt, o->runs, &r))) {
    snprintf(test, sizeof test, "pp%lld", (long long)o->prompt);
    say(o, s, path, test, r);
  }
  if (ok && o->generate && (ok = measured(s, generate_once, ids, o->generate, o->runs, &r))) {
    snprintf(test, sizeof test, "tg%lld", (long long)o->generate);
    say(o, s, path, test, r);
  }
  if (ok && each > o->generate && (ok = measured(s, several_once, ids, each, o->runs, &r))) {
    snprintf(test, sizeof test, "tg%lldx%lld", (long long)o->generate, (long long)o->sequences);
    say(o, s, path, test, r);
  }
  if (ok && o->generate && o->llm.draft) ok = bench_guesses(o, s, path, ids);
  free(ids);
  return ok;
}

static bool fits(const BenchOptions *o, const LlmSession *s) {
  int64_t context = tg_llm_about(s->m).context, longest = o->prompt > o->generate ? o->prompt : o->generate;
  return longest <= context ||
         cli_refuse(0, "bench llm", "%lld tokens are more than the context of %lld (--context)",
                    (long long)longest, (long long)context);
}

static int run_llm(const void *options, char **argument, int n) {
  const BenchOptions *o = options;
  LlmSession s;
  (void)n;
  if (o->llm.draft && o->sequences > 1)
    return cli_refuse(CLI_USAGE, "bench llm", "--draft times one text, and --sequences is %lld",
                      (long long)o->sequences);
  if (!llm_session_open(&s, argument[0], &o->llm, o->sequences, o->sequences > 1 ? o->sequences : 0))
    return CLI_FAILED;
  int rc = CLI_FAILED;
  if (llm_session_generates(&s, argument[0]) && fits(o, &s))
    rc = bench(o, &s, argument[0]) ? CLI_OK : cli_fail(s.ctx, "bench llm");
  llm_session_close(&s);
  return rc;
}

static const BenchOptions defaults = {
    .llm = LLM_USUAL, .prompt = 128, .generate = 64, .sequences = 1, .runs = 5};

static const CliOption options[] = {
    CLI_WHOLE_OF(BenchOptions, prompt, "prompt", 0, 1 << 20, "tokens of the prompt; 0: no such row (128)"),
    CLI_WHOLE_OF(BenchOptions, generate, "generate", 0, 1 << 20, "tokens to generate; 0: no such row (64)"),
    CLI_WHOLE_OF(BenchOptions, sequences, "sequences", 1, 1024,
                 "texts that go on at once: one more row, the tokens of all (1)"),
    CLI_WHOLE_OF(BenchOptions, runs, "runs", 1, 1000, "runs of each (5)"),
    CLI_WHOLE_OF(BenchOptions, llm.context, "context", 1, 1 << 24, "tokens of context"),
    LLM_CACHE_OF(BenchOptions, llm.cache),
    LLM_ACTIVATIONS_OF(BenchOptions, llm.activations),
    LLM_LORA_OF(BenchOptions, llm),
    LLM_DRAFT_OF(BenchOptions, llm),
    CLI_FLAG_OF(BenchOptions, llm.always, "draft-always", "guess as many as there may be, worth it or not"),
    CLI_TEXT_OF(BenchOptions, llm.device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(BenchOptions, llm.threads, "threads", 1, 4096, "threads of the CPU"),
    CLI_FLAG_OF(BenchOptions, json, "json", "an object per row, one a line")};

const CliCommand command_bench_llm = {.name = "bench llm",
                                      .summary = "time a language model: a prompt, and tokens one by one",
                                      .arguments = "FILE.gguf",
                                      .models = 1,
                                      .least = 1,
                                      .most = 1,
                                      CLI_TAKES(BenchOptions, options),
                                      .defaults = &defaults,
                                      .run = run_llm};
