/* llm.c: an open language model, and its replies. In: a gguf file, prompts. Out: text as it is made, and how
 * fast. */
#define _POSIX_C_SOURCE 200809L
#include "sight.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_ROWS = 4 }; /* tokens that a model that guesses reads at once, besides its blocks */

/* ---- Ctrl-C */
static volatile sig_atomic_t interrupts;
static TgContext *volatile working; /* the context that Ctrl-C cancels; NULL: nothing is being made */

static void on_interrupt(int number) {
  (void)number;
  interrupts++;
  if (working) tg_cancel(working);
}

void llm_catch_interrupt(int number) {
  struct sigaction a = {.sa_handler = on_interrupt};
  sigemptyset(&a.sa_mask);
  sigaction(number, &a, NULL); /* without SA_RESTART, so that reading a line is interrupted too */
}

int llm_interrupts(void) { return interrupts; }

/* A Ctrl-C that came too late to stop anything is forgotten. */
void llm_interrupts_reset(LlmSession *s) {
  interrupts = 0;
  if (tg_cancelled(s->ctx)) tg_clear_error(s->ctx);
}

/* ---- opening */
bool llm_is_gguf(const char *path) {
  char first[4] = "";
  FILE *f = fopen(path, "rb");
  bool is = f && fread(first, 1, sizeof first, f) == sizeof first && !memcmp(first, "GGUF", sizeof first);
  if (f) fclose(f);
  return is;
}

bool llm_is_model(const char *path) {
  char config[4096];
  struct stat s;
  snprintf(config, sizeof config, "%.4000s/config.json", path);
  if (stat(path, &s)) return cli_refuse(0, cli_running(), "%s: %s", path, strerror(errno));
  if (S_ISDIR(s.st_mode) && access(config, R_OK))
    return cli_refuse(0, cli_running(), "%s: %s", config, strerror(errno));
  if (S_ISDIR(s.st_mode)) return true;
  errno = 0;
  return llm_is_gguf(path) ||
         cli_refuse(0, cli_running(), "%s: %s", path, errno ? strerror(errno) : "no gguf file");
}

static TgSampler *sampler_of(LlmSession *s) {
  const LlmChoices *o = s->o;
  return tg_sampler_new(s->ctx, tg_llm_about(s->m).vocabulary, .temperature = o->temperature,
                        .top_k = o->top_k, .top_p = o->top_p, .min_p = o->min_p, .repeat_penalty = o->repeat,
                        .seed = s->seed);
}

int llm_choices_refuse(const LlmChoices *o) {
  if (o->picture.n && !o->mmproj)
    return cli_refuse(CLI_USAGE, cli_running(), "--picture wants --mmproj, the file of what reads pictures");
  if (o->tiles >= 0 && !o->mmproj)
    return cli_refuse(CLI_USAGE, cli_running(), "--tiles wants --mmproj, the file of what reads pictures");
  if (o->picture.n > LLM_PICTURES)
    return cli_refuse(CLI_USAGE, cli_running(), "%d pictures, of at most %d", o->picture.n, LLM_PICTURES);
  if (!o->grammar || !o->schema) return CLI_OK;
  return cli_refuse(CLI_USAGE, cli_running(), "--grammar and --schema cannot both be");
}

/* Opens what --grammar or --schema names. Returns false on an error, which is in the context. */
static bool grammar_open(LlmSession *s) {
  const char *path = s->o->grammar ? s->o->grammar : s->o->schema;
  if (!path) return true;
  size_t n = 0;
  char *text = cli_read_file(path, &n);
  if (!text) {
    char why[300];
    snprintf(why, sizeof why, "%.200s: %s", path, strerror(errno));
    tg_set_error(s->ctx, TG_ERR_IO, why);
  } else if (s->o->grammar)
    s->grammar = tg_grammar_new(s->ctx, s->tokenizer, text, n);
  else
    s->grammar = tg_grammar_json(s->ctx, s->tokenizer, text, n);
  free(text);
  return s->grammar != NULL;
}

/* Opens an adapter, given as "FILE" or "FILE=0.5". */
static bool lora_open(LlmSession *s, const char *text) {
  char path[4096];
  const char *equals = strrchr(text, '=');
  char *end = NULL;
  double scale = equals && equals[1] ? strtod(equals + 1, &end) : 1;
  bool scaled = end && !*end;
  snprintf(path, sizeof path, "%.*s", (int)(scaled ? (size_t)(equals - text) : strlen(text)), text);
  return tg_lora_load(s->m, path, scaled ? scale : 1) != NULL;
}

/* Opens the model that guesses, if --draft names a model. */
static bool small_open(LlmSession *s) {
  const LlmChoices *o = s->o;
  TgLlmAbout a = tg_llm_about(s->m);
  if (!o->draft || !strcmp(o->draft, "lookup") || a.encoder) return true;
  s->small = tg_llm_open(s->ctx, o->draft, .context = a.context, .cache_type = o->cache,
                         .sequences = a.sequences, .batch = SMALL_ROWS, .activations = o->activations);
  return s->small != NULL;
}

bool llm_session_draft(LlmSession *s, int64_t sequence, TgDraft **draft) {
  *draft = NULL;
  if (!s->o->draft || !s->o->guesses || tg_llm_about(s->m).encoder) return true;
  *draft = s->small ? tg_draft_model(s->m, s->small, .most = s->o->guesses, .sequence = sequence,
                                     .always = s->o->always)
                    : tg_draft_lookup(s->m, .most = s->o->guesses, .always = s->o->always);
  return *draft != NULL;
}

bool llm_session_open(LlmSession *s, const char *path, const LlmChoices *o, int64_t sequences,
                      int64_t batch) {
  *s = (LlmSession){.o = o, .seed = (uint64_t)o->seed};
  if (!llm_is_model(path)) return false;
  if (o->draft && strcmp(o->draft, "lookup") && !llm_is_model(o->draft)) return false;
  if (o->draft && batch <= 0) batch = LLM_ROWS;
  CliWait *wait = cli_wait_begin("reading the model");
  s->ctx = tg_open_with(.device = o->device, .threads = (int)o->threads, .log = cli_log);
  bool ok = s->ctx && !tg_error(s->ctx);
  if (ok)
    s->m = tg_llm_open(s->ctx, path, .context = o->context, .cache_type = o->cache, .sequences = sequences,
                       .batch = batch, .activations = o->activations, .pooling = o->pooling);
  ok = s->m != NULL;
  for (int i = 0; ok && i < o->lora.n; i++)
    ok = lora_open(s, o->lora.at[i]);
  if (ok) s->tokenizer = tg_llm_tokenizer(s->m);
  ok = ok && llm_sight_open(s);
  if (ok) s->sampler = sampler_of(s);
  ok = ok && grammar_open(s);
  ok = ok && small_open(s) && llm_session_draft(s, 0, &s->draft);
  cli_wait_end(wait);
  TgLlmAbout a = s->m ? tg_llm_about(s->m) : (TgLlmAbout){.context = 0};
  if (ok && a.trained_context > 0 && a.context > a.trained_context)
    cli_refuse(0, cli_running(), "a context of %lld is more than the %lld that the model was trained with",
               (long long)a.context, (long long)a.trained_context);
  if (ok && s->sampler) return true;
  cli_fail(s->ctx, cli_running());
  llm_session_close(s);
  return false;
}

void llm_session_close(LlmSession *s) {
  working = NULL;
  tg_grammar_free(s->grammar);
  tg_sampler_free(s->sampler);
  llm_sight_close(s);
  tg_draft_free(s->draft);
  tg_llm_free(s->small);
  tg_llm_free(s->m);
  tg_close(s->ctx);
  *s = (LlmSession){.o = s->o};
}

bool llm_session_generates(const LlmSession *s, const char *path) {
  TgLlmAbout a = tg_llm_about(s->m);
  if (!a.encoder) return true;
  return cli_refuse(0, cli_running(), "%s: %s is an encoder and generates nothing: %s", path, a.architecture,
                    a.ranks ? "tg serve ranks texts with it (/v1/rerank)" : "tg embed makes embeddings");
}

void llm_session_say(const LlmSession *s, const char *path, double seconds) {
  TgLlmAbout a = tg_llm_about(s->m);
  const char *slash = strrchr(path, '/');
  char bytes[32], size[40] = "";
  struct stat file;
  if (!stat(path, &file) && S_ISREG(file.st_mode))
    snprintf(size, sizeof size, ", %s", cli_bytes((double)file.st_size, bytes));
  fprintf(stderr, "%s (%s, %.2f M params%s) on %s, context %lld, loaded in %.0f ms\n",
          *a.name ? a.name
          : slash ? slash + 1
                  : path,
          a.architecture, (double)a.parameters / 1e6, size, tg_default_device(s->ctx), (long long)a.context,
          seconds * 1e3);
}

/* ---- a reply */
bool llm_reply(LlmSession *s, const char *prompt, size_t n, bool special, LlmShown *shown, size_t nshown,
               LlmPiece piece, void *user) {
  LlmAsk ask = {.prompt = prompt,
                .n = n,
                .special = special,
                .shown = shown,
                .nshown = nshown,
                .tokens = s->o->tokens,
                .stop = &s->o->stop,
                .sampler = s->sampler,
                .grammar = s->grammar,
                .draft = s->draft,
                .seed = s->seed,
                .piece = piece,
                .user = user};
  s->rates = (LlmRates){.tokens = 0};
  s->stopped = false;
  LlmReply *r = llm_reply_begin(s, &ask);
  working = s->ctx;
  while (r && llm_reply_step(r) == LLM_GOES_ON) {}
  working = NULL;
  LlmEnd end = llm_reply_end(r);
  if (end == LLM_FAILED && tg_error(s->ctx) == TG_ERR_CANCELLED) {
    tg_clear_error(s->ctx);
    s->stopped = true;
    return true;
  }
  return end != LLM_FAILED;
}

void llm_print(const LlmSession *s, const char *text, size_t n) {
  if (fwrite(text, 1, n, stdout) != n || fflush(stdout)) tg_cancel(s->ctx);
}

void llm_rates_say(const LlmSession *s, FILE *to, bool dim) {
  const LlmRates *r = &s->rates;
  char fast[32], slow[32], guesses[80] = "";
  int64_t n;
  tg_llm_ids(s->m, &n);
  double prompt = r->prompt_s > 0 ? (double)r->prompt / r->prompt_s : 0;
  double tokens = r->tokens_s > 0 ? (double)r->tokens / r->tokens_s : 0;
  if (s->o->draft)
    snprintf(guesses, sizeof guesses, " | %lld of %lld guesses right", (long long)r->right,
             (long long)r->guessed);
  fprintf(
      to,
      "%s[prompt %lld tok, %s tok/s | %lld tok, %s tok/s%s | first token %.0f ms | context %lld/%lld]%s\n",
      dim ? "\x1b[2m" : "", (long long)r->prompt, cli_count((int64_t)prompt, fast), (long long)r->tokens,
      cli_count((int64_t)tokens, slow), guesses, r->prompt_s * 1e3, (long long)n,
      (long long)tg_llm_about(s->m).context, dim ? "\x1b[0m" : "");
}

/* ---- one completion */
static void to_stdout(const char *text, size_t n, void *user) { llm_print(user, text, n); }

/* Returns the prompt with a mark for each picture, to be freed. If the prompt has the model's own mark once
 * for each picture, these places are used; otherwise the marks are put in front. */
static char *shown_prompt(const LlmSession *s, const char *prompt, size_t npictures) {
  TgVisionAbout a = tg_vision_about(s->sight.vision);
  size_t n = 0, k = a.mark[0] ? strlen(a.mark[0]) : 0, each = strlen(s->sight.mark);
  for (const char *at = prompt; k && (at = strstr(at, a.mark[0])); at += k)
    n++;
  if (!npictures || n != npictures) return llm_sight_message(s, npictures, prompt, strlen(prompt));
  char *all = malloc(strlen(prompt) + n * each + 1), *to = all;
  for (const char *at; all && (at = strstr(prompt, a.mark[0])); prompt = at + k) {
    memcpy(to, prompt, (size_t)(at - prompt));
    to = stpcpy(to + (at - prompt), s->sight.mark);
  }
  if (all) strcpy(to, prompt);
  return all;
}

static bool completed(LlmSession *s, const char *prompt) {
  const CliTexts *files = &s->o->picture;
  Picture picture[LLM_PICTURES] = {{0}};
  LlmShown shown[LLM_PICTURES] = {{0}};
  const char *why = NULL;
  int n = 0;
  for (; n < files->n && !why; n++) {
    why = picture_read(files->at[n], &picture[n]);
    shown[n].picture = &picture[n];
    if (why) {
      char all[700];
      snprintf(all, sizeof all, "%.300s: %s", files->at[n], why);
      tg_set_error(s->ctx, TG_ERR_VALUE, all);
    }
  }
  char *text = why ? NULL : shown_prompt(s, prompt, (size_t)n);
  bool ok = text && llm_reply(s, text, strlen(text), false, shown, (size_t)n, to_stdout, s);
  free(text);
  for (int i = 0; i < n; i++)
    free(picture[i].rgb);
  return ok;
}

int llm_complete(const char *path, const char *prompt, const LlmChoices *o) {
  LlmSession s;
  double begin = cli_now();
  if (!llm_session_open(&s, path, o, 1, 0)) return CLI_FAILED;
  if (!llm_session_generates(&s, path)) return llm_session_close(&s), CLI_FAILED;
  llm_session_say(&s, path, cli_now() - begin);
  llm_catch_interrupt(SIGINT);
  bool ok = completed(&s, prompt);
  putchar('\n');
  fflush(stdout);
  if (ok) llm_rates_say(&s, stderr, cli_colour(2));
  int rc = !ok ? cli_fail(s.ctx, "run") : s.stopped ? CLI_INTERRUPTED : CLI_OK;
  llm_session_close(&s);
  return rc;
}
