/* bench_llm.c: `tg bench llm`: how fast a language model reads a prompt and generates. In: a gguf file. Out:
 * a line for each, tokens a second with their deviation. Tokens are arbitrary ones; nothing is sampled. */
#include "llm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct BenchOptions {
  LlmChoices llm;
  int64_t prompt, generate, sequences, runs;
  bool json;
} BenchOptions;

typedef struct Rate {
  double mean, deviation;
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

/* n tokens in all, one of each sequence at a time. */
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

/* Two runs that are not counted: they plan and capture. */
static bool measured(LlmSession *s, bool (*once)(LlmSession *, const int32_t *, int64_t, double *),
                     const int32_t *ids, int64_t n, int64_t runs, Rate *r) {
  double sum = 0, squares = 0, seconds;
  for (int64_t i = -2; i < runs; i++) {
    if (!once(s, ids, n, &seconds)) return false;
    double rate = (double)n / seconds;
    if (i >= 0) sum += rate, squares += rate * rate;
  }
  r->mean = sum / (double)runs;
  r->deviation = sqrt(fmax(0, squares / (double)runs - r->mean * r->mean));
  return true;
}

static void say(const BenchOptions *o, const LlmSession *s, const char *path, const char *test, Rate r) {
  TgLlmAbout a = tg_llm_about(s->m);
  const char *slash = strrchr(path, '/'), *name = *a.name ? a.name : slash ? slash + 1 : path;
  char shown[64];
  snprintf(shown, sizeof shown, "%.24s (%s)", name, a.architecture);
  if (o->json) {
    printf("{\"model\":");
    cli_json_text(stdout, name);
    printf(",\"architecture\":\"%s\",\"parameters\":%lld,\"device\":\"%s\",\"test\":\"%s\",\"tokens_per_"
           "second\":%.3f,"
           "\"deviation\":%.3f,\"peak_bytes\":%llu}\n",
           a.architecture, (long long)a.parameters, tg_default_device(s->ctx), test, r.mean, r.deviation,
           (unsigned long long)tg_counters(s->ctx).peak_bytes);
  } else
    printf("| %-32s | %9.2f M | %-6s | %6s | %10.2f ± %.2f |\n", shown, (double)a.parameters / 1e6,
           tg_default_device(s->ctx), test, r.mean, r.deviation);
  fflush(stdout);
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
    CLI_TEXT_OF(BenchOptions, llm.device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(BenchOptions, llm.threads, "threads", 1, 4096, "threads of the CPU"),
    CLI_FLAG_OF(BenchOptions, json, "json", "an object per row, one a line")};

const CliCommand command_bench_llm = {.name = "bench llm",
                                      .summary = "time a language model: a prompt, and tokens one by one",
                                      .arguments = "FILE.gguf",
                                      .least = 1,
                                      .most = 1,
                                      CLI_TAKES(BenchOptions, options),
                                      .defaults = &defaults,
                                      .run = run_llm};
