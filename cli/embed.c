/* embed.c: `tg embed`: turns texts into vectors. In: a language model's file; texts, as arguments or as lines
 * of stdin. Out: a line for each text, with its vector as JSON. */
#define _POSIX_C_SOURCE 200809L
#include "llm.h"
#include <stdlib.h>
#include <string.h>

typedef struct EmbedOptions {
  LlmChoices llm;
} EmbedOptions;

static bool embed(LlmSession *s, const char *text, size_t n, float *v) {
  int64_t count, width = tg_llm_about(s->m).width;
  int32_t *ids = llm_text_ids(s, text, n, &count);
  bool ok = ids && !tg_llm_embed(s->m, ids, count, v);
  for (int64_t i = 0; ok && i < width; i++)
    printf("%s%.9g", i ? "," : "[", (double)v[i]);
  if (ok) puts("]");
  free(ids);
  return ok;
}

/* Embeds each line of stdin, without its newline. Returns false on an error. */
static bool lines_embedded(LlmSession *s, float *v) {
  char *line = NULL;
  size_t cap = 0;
  bool ok = true;
  for (ssize_t n; ok && (n = getline(&line, &cap, stdin)) >= 0; fflush(stdout)) {
    if (n && line[n - 1] == '\n') n--;
    ok = embed(s, line, (size_t)n, v);
  }
  free(line);
  return ok;
}

static int run_embed(const void *options, char **argument, int n) {
  const EmbedOptions *o = options;
  LlmSession s;
  if (!llm_session_open(&s, argument[0], &o->llm, 1, 0)) return CLI_FAILED;
  float *v = malloc((size_t)tg_llm_about(s.m).width * sizeof *v);
  bool known = s.tokenizer || cli_refuse(0, "embed", "%s has no vocabulary", argument[0]);
  bool ok = v && known && (n > 1 || lines_embedded(&s, v));
  for (int i = 1; ok && i < n; i++)
    ok = embed(&s, argument[i], strlen(argument[i]), v);
  int rc = ok ? CLI_OK : known ? cli_fail(s.ctx, "embed") : CLI_FAILED;
  free(v);
  llm_session_close(&s);
  return rc;
}

static const EmbedOptions defaults = {.llm = LLM_USUAL};

static const CliOption options[] = {
    LLM_POOLING_OF(EmbedOptions, llm.pooling),
    CLI_WHOLE_OF(EmbedOptions, llm.context, "context", 1, 1 << 24, "tokens of a text, at most (the model's)"),
    LLM_ACTIVATIONS_OF(EmbedOptions, llm.activations),
    CLI_TEXT_OF(EmbedOptions, llm.device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(EmbedOptions, llm.threads, "threads", 1, 4096, "threads of the CPU")};

const CliCommand command_embed = {
    .name = "embed",
    .summary = "turn texts into vectors by a language model",
    .arguments = "FILE.gguf [TEXT..]",
    .models = 1,
    .least = 1,
    .most = -1,
    CLI_TAKES(EmbedOptions, options),
    .defaults = &defaults,
    .run = run_embed,
    .more =
        "Without TEXT each line of stdin is one. A text becomes a line: a list of numbers, of length 1 as a "
        "vector, so that the product of two says how near they are. FILE is an encoder (BERT and its kin), "
        "or "
        "any language model."};
