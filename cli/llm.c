/* llm.c: a language model that is open, and replies. In: a gguf file, prompts. Out: text as it comes, and how
 * fast. A prompt that begins as the one before is read from where they differ. Text is held back while it may
 * be the beginning of a stop string, which may span tokens. */
#define _POSIX_C_SOURCE 200809L
#include "llm.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

const LlmChoices llm_usual = {
    .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05, .repeat = 1, .seed = 1};

/* ---- Ctrl-C */
static volatile sig_atomic_t interrupts;
static TgContext *volatile working; /* what it stops; NULL: nothing is being made */

static void on_interrupt(int number) {
  (void)number;
  interrupts++;
  if (working) tg_cancel(working);
}

void llm_catch_interrupt(LlmSession *s) {
  struct sigaction a = {.sa_handler = on_interrupt};
  (void)s;
  sigemptyset(&a.sa_mask);
  sigaction(SIGINT, &a, NULL); /* without SA_RESTART: a line that is being typed ends too */
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
  bool is = f && fread(first, 1, 4, f) == 4 && !memcmp(first, "GGUF", 4);
  if (f) fclose(f);
  return is;
}

static TgDType cache_of(const char *name) {
  return !name || !strcmp(name, "f32") ? TG_F32 : !strcmp(name, "f16") ? TG_F16 : TG_BF16;
}

static TgSampler *sampler_of(LlmSession *s) {
  const LlmChoices *o = s->o;
  return tg_sampler_new(s->ctx, tg_llm_about(s->m).vocabulary, .temperature = o->temperature,
                        .top_k = o->top_k, .top_p = o->top_p, .min_p = o->min_p, .repeat_penalty = o->repeat,
                        .seed = s->seed);
}

bool llm_session_open(LlmSession *s, const char *path, const LlmChoices *o) {
  *s = (LlmSession){.o = o, .seed = (uint64_t)o->seed};
  CliWait *wait = cli_wait_begin("reading the model");
  s->ctx = tg_open_with(.device = o->device, .threads = (int)o->threads, .log = cli_log);
  bool ok = s->ctx && !tg_error(s->ctx);
  if (ok) s->m = tg_llm_open(s->ctx, path, .context = o->context, .cache = cache_of(o->cache));
  ok = s->m != NULL;
  if (ok) s->tokenizer = tg_llm_tokenizer(s->m);
  if (ok) s->sampler = sampler_of(s);
  cli_wait_end(wait);
  if (ok && s->sampler) return true;
  cli_fail(s->ctx, "llm");
  llm_session_close(s);
  return false;
}

void llm_session_close(LlmSession *s) {
  working = NULL;
  tg_sampler_free(s->sampler);
  tg_llm_free(s->m);
  tg_close(s->ctx);
  *s = (LlmSession){.o = s->o};
}

void llm_session_say(const LlmSession *s, const char *path, double seconds) {
  TgLlmAbout a = tg_llm_about(s->m);
  const char *slash = strrchr(path, '/');
  char bytes[32];
  FILE *f = fopen(path, "rb");
  double size = f && !fseek(f, 0, SEEK_END) ? (double)ftell(f) : 0;
  if (f) fclose(f);
  fprintf(stderr, "%s (%s, %.2f M params, %s) on %s, context %lld, loaded in %.0f ms\n",
          *a.name ? a.name
          : slash ? slash + 1
                  : path,
          a.architecture, (double)a.parameters / 1e6, cli_bytes(size, bytes), tg_default_device(s->ctx),
          (long long)a.context, seconds * 1e3);
}

/* ---- stop strings */
typedef struct Outlet {
  const CliTexts *stop;
  LlmPiece piece;
  void *user;
  char *held; /* text that may be the beginning of a stop string */
  size_t n, cap;
  bool ended;
} Outlet;

/* How many bytes at the end of held may begin a stop string. */
static size_t waiting(const Outlet *o) {
  size_t most = 0;
  for (int i = 0; i < o->stop->n; i++) {
    size_t n = strlen(o->stop->at[i]), k = n - 1 < o->n ? n - 1 : o->n;
    while (k > most && memcmp(o->held + o->n - k, o->stop->at[i], k))
      k--;
    if (n && k > most) most = k;
  }
  return most;
}

/* where the first stop string begins; o->n: none does */
static size_t stop_at(const Outlet *o) {
  size_t first = o->n;
  for (int i = 0; i < o->stop->n; i++) {
    size_t n = strlen(o->stop->at[i]);
    for (size_t at = 0; n && at + n <= o->n && at < first; at++)
      if (!memcmp(o->held + at, o->stop->at[i], n)) first = at;
  }
  return first;
}

static bool outlet_put(Outlet *o, const char *text, size_t n) {
  if (o->n + n > o->cap) {
    size_t cap = 2 * (o->n + n) + 64;
    char *held = realloc(o->held, cap);
    if (!held) return false;
    o->held = held;
    o->cap = cap;
  }
  if (n) memcpy(o->held + o->n, text, n);
  o->n += n;
  size_t show = stop_at(o);
  o->ended = show < o->n;
  if (!o->ended) show = o->n - waiting(o);
  if (show) o->piece(o->held, show, o->user);
  if (show) memmove(o->held, o->held + show, o->n - show);
  o->n -= show;
  return true;
}

static void outlet_end(Outlet *o) {
  if (!o->ended && o->n) o->piece(o->held, o->n, o->user);
  free(o->held);
}

/* ---- a reply */
/* The prompt's ids, to be freed; NULL: an error. BOS is put before it unless the text has it. */
static int32_t *ids_of(LlmSession *s, const char *prompt, size_t n, bool special, int64_t *count) {
  size_t bos_n = 0;
  const char *bos = tg_token_text(s->tokenizer, tg_token_special(s->tokenizer, TG_TOKEN_BOS), &bos_n);
  bool has = special && bos && bos_n && n >= bos_n && !memcmp(prompt, bos, bos_n);
  *count = tg_tokenize(s->tokenizer, prompt, n, NULL, 0, .special = special, .ends = !has);
  if (*count < 0) return NULL;
  int32_t *ids = malloc(((size_t)*count + 2) * sizeof *ids);
  if (!ids) {
    tg_set_error(s->ctx, TG_ERR_NOMEM, "out of memory");
    return NULL;
  }
  tg_tokenize(s->tokenizer, prompt, n, ids, (size_t)*count, .special = special, .ends = !has);
  if (*count && ids[*count - 1] == tg_token_special(s->tokenizer, TG_TOKEN_EOS) && !has)
    --*count; /* it goes on */
  if (!*count) {
    int64_t id = tg_token_special(s->tokenizer, TG_TOKEN_BOS);
    ids[(*count)++] = (int32_t)(id >= 0 ? id : 0);
  }
  return ids;
}

/* What the cache and the prompt have in common stays, but for the last token, whose logits are needed. */
static bool prompt_read(LlmSession *s, const int32_t *ids, int64_t count) {
  int64_t n, same = 0;
  const int32_t *cached = tg_llm_ids(s->m, &n);
  while (same < n && same < count - 1 && cached[same] == ids[same])
    same++;
  if (tg_llm_rewind(s->m, same)) return false;
  s->rates.kept = same;
  s->rates.prompt = count - same;
  double begin = cli_now();
  bool ok = !tg_llm_eval(s->m, ids + same, count - same);
  s->rates.prompt_s = cli_now() - begin;
  for (int64_t i = 0; ok && i < count; i++)
    tg_sampler_accept(s->sampler, ids[i]);
  return ok;
}

static bool generate(LlmSession *s, TgDetokenizer *d, Outlet *o) {
  int64_t context = tg_llm_about(s->m).context, most = s->o->tokens ? s->o->tokens : context, n;
  double begin = cli_now();
  bool ok = true;
  while (ok && s->rates.tokens < most && !o->ended) {
    size_t length = 0;
    int64_t id = tg_sampler_pick(s->sampler, tg_llm_logits(s->m));
    if (id < 0) return false;
    s->rates.tokens++;
    if (tg_token_ends(s->tokenizer, id)) break;
    tg_sampler_accept(s->sampler, id);
    const char *text = tg_detokenizer_put(d, id, &length);
    ok = text && outlet_put(o, text, length);
    tg_llm_ids(s->m, &n);
    if (!ok || n >= context || s->rates.tokens >= most || o->ended) break;
    ok = !tg_llm_eval(s->m, &(int32_t){(int32_t)id}, 1);
  }
  s->rates.tokens_s = cli_now() - begin;
  return ok;
}

bool llm_reply(LlmSession *s, const char *prompt, size_t n, bool special, LlmPiece piece, void *user) {
  if (!s->tokenizer) return tg_set_error(s->ctx, TG_ERR_VALUE, "the file has no vocabulary"), false;
  int64_t count;
  int32_t *ids = ids_of(s, prompt, n, special, &count);
  Outlet o = {.stop = &s->o->stop, .piece = piece, .user = user};
  TgDetokenizer *d = tg_detokenizer_new(s->tokenizer, .inside = true);
  s->rates = (LlmRates){.tokens = 0};
  s->stopped = false;
  tg_sampler_reset(s->sampler, s->seed);
  working = s->ctx;
  bool ok = ids && d && prompt_read(s, ids, count) && generate(s, d, &o);
  working = NULL;
  if (!ok && tg_error(s->ctx) == TG_ERR_CANCELLED) {
    tg_clear_error(s->ctx);
    s->stopped = ok = true;
  }
  size_t left = 0;
  const char *rest = ok && !o.ended ? tg_detokenizer_end(d, &left) : NULL;
  if (rest && left) outlet_put(&o, rest, left);
  outlet_end(&o);
  tg_detokenizer_free(d);
  free(ids);
  return ok;
}

void llm_rates_say(const LlmSession *s, FILE *to, bool dim) {
  const LlmRates *r = &s->rates;
  char fast[32], slow[32];
  int64_t n;
  tg_llm_ids(s->m, &n);
  double prompt = r->prompt_s > 0 ? (double)r->prompt / r->prompt_s : 0;
  double tokens = r->tokens_s > 0 ? (double)r->tokens / r->tokens_s : 0;
  fprintf(to,
          "%s[prompt %lld tok, %s tok/s | %lld tok, %s tok/s | first token %.0f ms | context %lld/%lld]%s\n",
          dim ? "\x1b[2m" : "", (long long)r->prompt, cli_count((int64_t)prompt, fast), (long long)r->tokens,
          cli_count((int64_t)tokens, slow), r->prompt_s * 1e3, (long long)n,
          (long long)tg_llm_about(s->m).context, dim ? "\x1b[0m" : "");
}

/* ---- one completion */
static void to_stdout(const char *text, size_t n, void *user) {
  (void)user;
  fwrite(text, 1, n, stdout);
  fflush(stdout);
}

int llm_complete(const char *path, const char *prompt, const LlmChoices *o) {
  LlmSession s;
  double begin = cli_now();
  if (!llm_session_open(&s, path, o)) return CLI_FAILED;
  llm_session_say(&s, path, cli_now() - begin);
  llm_catch_interrupt(&s);
  bool ok = llm_reply(&s, prompt, strlen(prompt), false, to_stdout, NULL);
  putchar('\n');
  fflush(stdout);
  if (ok) llm_rates_say(&s, stderr, cli_colour(2));
  int rc = !ok ? cli_fail(s.ctx, "run") : s.stopped ? CLI_INTERRUPTED : CLI_OK;
  llm_session_close(&s);
  return rc;
}
