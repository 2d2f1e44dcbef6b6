/* merge.c: `tg merge`: adds what an adapter has learned to the weights of a model's file. In: a gguf file,
 * peft's files. Out: a gguf file with the same types. */
#include "llm.h"

typedef struct MergeOptions {
  LlmChoices llm;
  const char *out;
  bool json;
} MergeOptions;

static int run_merge(const void *options, char **argument, int n) {
  const MergeOptions *o = options;
  LlmChoices choices = o->llm;
  LlmSession s;
  TgLlmMerged about;
  if (!o->out) return cli_refuse(CLI_USAGE, "merge", "-o FILE: where does the model go?");
  if (!cli_will_write_file("merge", o->out)) return CLI_FAILED;
  for (int i = 1; i < n && choices.lora.n < CLI_MANY; i++)
    choices.lora.at[choices.lora.n++] = argument[i];
  choices.context = 1;
  choices.activations = 32; /* weights are read exactly as they are in the file */
  if (!llm_session_open(&s, argument[0], &choices, 1, 0)) return CLI_FAILED;
  bool ok = !tg_llm_merge(s.m, o->out, &about);
  int rc = ok ? CLI_OK : cli_fail(s.ctx, "merge");
  if (ok && o->json)
    printf("{\"weights\":%lld,\"error\":%.6g}\n", (long long)about.weights, about.error);
  else if (ok)
    printf("%s: %lld weights changed; stored as their types have it, they are off by %.2g of their size at "
           "most\n",
           o->out, (long long)about.weights, about.error);
  llm_session_close(&s);
  return rc;
}

static const CliOption options[] = {
    CLI_TEXT_OF(MergeOptions, out, "out", "FILE", "the new gguf file"),
    CLI_TEXT_OF(MergeOptions, llm.device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(MergeOptions, llm.threads, "threads", 1, 4096, "threads of the CPU"),
    CLI_FLAG_OF(MergeOptions, json, "json", "the result as an object")};

static const MergeOptions defaults = {.llm = {.repeat = 1}};

const CliCommand command_merge = {.name = "merge",
                                  .summary = "put an adapter into a language model's file",
                                  .arguments = "FILE.gguf ADAPTER[=SCALE]..",
                                  .models = 1,
                                  .least = 2,
                                  .most = 1 + CLI_MANY,
                                  CLI_TAKES(MergeOptions, options),
                                  .defaults = &defaults,
                                  .run = run_merge,
                                  .more =
                                      "An adapter is peft's safetensors file, or its folder. Weights that "
                                      "it adds to are stored as their types have it, quantised ones "
                                      "quantised again; all else of the file stays."};
