/* train_lora.c: `tg train lora`: trains a language model on texts by low-rank adapters. In: a gguf file,
 * texts. Out: a progress line, and the adapter as peft writes it, or a new gguf file. A step depends only on
 * the trained weights, the state of the optimiser and of the random numbers, and the number of the step. A
 * checkpoint has these and the options, so a run that was interrupted continues to the bits that it would
 * have had. */
#include "llm.h"
#include "train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct LoraOptions {
  const char *data, *out, *modules, *from, *base, *checkpoint, *log, *device;
  int64_t rank, batch, length, steps, epochs, warmup, seed, every, threads;
  double alpha, dropout, lr, decay;
  bool resume, full, json;
} LoraOptions;

typedef struct Run {
  LoraOptions o;
  TgContext *ctx;
  TgLlm *m;
  TgLora *lora;
  TgLlmTexts texts;
  /* read: the items of the file; data: whole batches, for which items from the beginning are repeated. */
  TgDataset read, data;
  TgLoader *loader;
  TgOptim *optim;
  TgLR *rate;
  TgLlmLearner *learner;
  int64_t steps, per_epoch, at, began_at;
  double loss, first;
  FILE *log;
  CliProgress progress;
  CliWait *wait; /* shown until the first step is done */
  char *modules; /* the names of modules in a checkpoint, which o.modules points to */
} Run;

static TgStatus item_again(void *user, int64_t item, uint64_t random, void *const *out) {
  const TgDataset *d = user;
  return d->item(d->user, item % d->count, random, out);
}

/* ---- checkpoints */
/* An option that a resumed run needs, and its name in the checkpoint. */
typedef struct Number {
  const char *key;
  size_t offset;
  bool real;
} Number;

#define WHOLE(field)                                                                                         \
  { #field, offsetof(LoraOptions, field), false }
#define REAL(field)                                                                                          \
  { #field, offsetof(LoraOptions, field), true }

static const Number numbers[] = {WHOLE(rank),   WHOLE(batch),  WHOLE(length), WHOLE(steps),
                                 WHOLE(warmup), WHOLE(epochs), WHOLE(seed),   REAL(alpha),
                                 REAL(dropout), REAL(lr),      REAL(decay)};

enum { NUMBERS = sizeof numbers / sizeof *numbers };

static const char *task_of(const LoraOptions *o) { return o->full ? "full" : "lora"; }

static TgTraining training_of(const Run *r) {
  return (TgTraining){.size = sizeof(TgTraining),
                      .module = r->lora ? tg_lora_module : tg_llm_module,
                      .model = r->lora ? (void *)r->lora : r->m,
                      .optim = r->optim,
                      .rate = r->rate,
                      .step = r->at};
}

static bool checkpoint_write(Run *r) {
  char text[NUMBERS][32], items[32], first[32], loss[32];
  const char *about[2 * NUMBERS + 11];
  int n = 0;
  for (int i = 0; i < NUMBERS; i++) {
    const void *from = (const char *)&r->o + numbers[i].offset;
    if (numbers[i].real)
      snprintf(text[i], sizeof *text, "%.17g", *(const double *)from);
    else
      snprintf(text[i], sizeof *text, "%lld", (long long)*(const int64_t *)from);
    about[n++] = numbers[i].key, about[n++] = text[i];
  }
  snprintf(items, sizeof items, "%lld", (long long)r->texts.items);
  snprintf(first, sizeof first, "%.17g", r->first), snprintf(loss, sizeof loss, "%.17g", r->loss);
  about[n++] = "task", about[n++] = task_of(&r->o);
  about[n++] = "modules", about[n++] = r->o.modules;
  about[n++] = "items", about[n++] = items;
  about[n++] = "first", about[n++] = first;
  about[n++] = "loss", about[n++] = loss;
  about[n] = NULL;
  TgTraining t = training_of(r);
  return !tg_train_save(r->ctx, &t, r->o.checkpoint, about);
}

/* Reads the options with which a checkpoint was made, from its header. They replace the given ones; another
 * number of steps is refused. */
static bool options_resume(Run *r) {
  TgValue *head = NULL;
  bool ok = false;
  double v;
  int64_t asked = r->o.steps;
  if (access(r->o.checkpoint, F_OK))
    return cli_refuse(0, "train lora", "--resume: there is no %s; --checkpoint says where it is",
                      r->o.checkpoint);
  TG_SCOPE(r->ctx) {
    head = tg_safe_load_metadata(tg_from_file(r->ctx, r->o.checkpoint, TG_U8, TG_SHAPE(-1)), NULL);
    const TgValue *meta = tg_value_get(head, "__metadata__");
    const char *task = tg_value_string(tg_value_get(meta, "task"), NULL);
    const char *modules = tg_value_string(tg_value_get(meta, "modules"), NULL);
    ok = task && !strcmp(task, task_of(&r->o)) && modules && (r->modules = strdup(modules));
    for (int i = 0; ok && i < NUMBERS; i++) {
      void *to = (char *)&r->o + numbers[i].offset;
      if ((ok = train_number(meta, numbers[i].key, &v) && fabs(v) < 1e15)) {
        if (numbers[i].real)
          *(double *)to = v;
        else
          *(int64_t *)to = (int64_t)v;
      }
    }
    ok = ok && train_number(meta, "first", &r->first) && train_number(meta, "loss", &r->loss) &&
         train_number(meta, "items", &v);
    if (ok) r->texts.items = (int64_t)v;
    r->o.modules = r->modules;
    tg_value_free(head);
  }
  if (tg_error(r->ctx)) return false;
  if (!ok)
    return cli_refuse(0, "train lora", "%s is no checkpoint of %s", r->o.checkpoint,
                      r->o.full ? "all weights" : "a low-rank adapter");
  return train_steps_kept("train lora", asked, r->o.steps);
}

/* ---- setting up */
static bool data_open(Run *r) {
  int64_t before = r->texts.items;
  r->read = tg_llm_dataset(r->m, r->o.data, .length = r->o.length, .fit = true, .about = &r->texts);
  if (!r->read.item) return false;
  if (r->o.resume && before != r->texts.items)
    return cli_refuse(0, "train lora", "the checkpoint was made with %lld pieces of text; %s has %lld",
                      (long long)before, r->o.data, (long long)r->texts.items);
  r->data = r->read;
  r->data.item = item_again;
  r->data.user = &r->read;
  r->data.end = NULL;
  r->per_epoch = (r->read.count + r->o.batch - 1) / r->o.batch;
  r->data.count = r->per_epoch * r->o.batch;
  r->steps = r->o.steps ? r->o.steps : r->o.epochs * r->per_epoch;
  r->loader = tg_loader(r->ctx, &r->data, .batch = r->o.batch, .shuffle = true, .seed = (uint64_t)r->o.seed);
  return r->loader != NULL;
}

/* Returns how many parameters are trained: those of the adapter, or of the model itself. */
static int parameters_of(const Run *r, TgTensor **out, int cap) {
  return r->lora ? tg_module_parameters(tg_lora_module, r->lora, out, cap)
                 : tg_llm_parameters(r->m, out, cap);
}

static bool optimiser_new(Run *r) {
  int n = parameters_of(r, NULL, 0);
  TgTensor **all = malloc((size_t)(n + 1) * sizeof *all);
  if (!all) return tg_set_error(r->ctx, TG_ERR_NOMEM, "out of memory"), false;
  parameters_of(r, all, n);
  r->optim = tg_adamw(r->ctx, all, n, .lr = r->o.lr, .weight_decay = r->o.decay);
  free(all);
  int64_t warm = r->o.warmup < r->steps ? r->o.warmup : r->steps - 1;
  if (r->optim)
    r->rate = tg_lr_warmup_cosine(r->optim, warm, r->steps, .start = 0.1, .minimum = r->o.lr / 10);
  return r->rate != NULL;
}

/* Prepares what is trained: a new adapter, one from a file, or all weights. */
static bool learned_new(Run *r) {
  if (r->o.full) return !tg_llm_unfreeze(r->m);
  if (r->o.from)
    r->lora = tg_lora_load(r->m, r->o.from, 1);
  else
    r->lora = tg_lora_new(r->m, .modules = r->o.modules, .rank = r->o.rank, .alpha = r->o.alpha,
                          .dropout = r->o.dropout);
  return r->lora != NULL;
}

static bool run_new(Run *r, const char *path) {
  r->ctx = tg_open_with(.device = r->o.device, .threads = (int)r->o.threads, .log = cli_log);
  if (!r->ctx || tg_error(r->ctx) || (r->o.resume && !options_resume(r))) return false;
  tg_manual_seed(r->ctx, (uint64_t)r->o.seed);
  r->m = tg_llm_open(r->ctx, path, .context = r->o.length, .block = 1, .activations = 32);
  if (!r->m || !data_open(r)) return false;
  if (!learned_new(r) || !optimiser_new(r)) return false;
  TgTraining t = training_of(r);
  if (r->o.resume && tg_train_load(r->ctx, &t, r->o.checkpoint)) return false;
  r->at = r->began_at = t.step;
  r->learner = tg_llm_learner(r->m, r->lora, r->optim);
  return r->learner != NULL;
}

static void wait_over(Run *r) {
  if (r->ctx) tg_watch_progress(r->ctx, NULL, NULL);
  cli_wait_end(r->wait);
  r->wait = NULL;
}

static void run_end(Run *r) {
  tg_loader_free(r->loader);
  tg_llm_learner_free(r->learner);
  tg_lr_free(r->rate), tg_optim_free(r->optim);
  tg_dataset_end(&r->read);
  tg_llm_free(r->m);
  free(r->modules);
  tg_close(r->ctx);
}

/* ---- running */
static bool one_step(Run *r, TgTensor *const in[2]) {
  double loss = NAN;
  if (tg_llm_learn(r->learner, in[0], in[1], &loss) || tg_error(r->ctx) || tg_lr_step(r->rate)) return false;
  if (r->wait) wait_over(r);
  if (!r->at) r->first = r->loss = loss;
  r->loss = 0.95 * r->loss + 0.05 * loss;
  r->at++;
  if (r->log) train_log_step(r->log, r->at, loss), fputs("}\n", r->log);
  if (!isfinite(loss))
    return cli_refuse(0, "train lora", "the loss is %g at step %lld: a lower --lr may help", loss,
                      (long long)r->at);
  char head[64];
  snprintf(head, sizeof head, "loss %6.3f", r->loss);
  cli_progress(&r->progress, r->at, head, "it");
  return !r->o.every || r->at % r->o.every || checkpoint_write(r);
}

static bool train(Run *r, bool *stopped) {
  TgTensor *in[2];
  tg_set_training(r->ctx, true);
  bool ok = r->at >= r->steps || !tg_loader_seek(r->loader, r->at / r->per_epoch, r->at % r->per_epoch);
  while (ok && !*stopped && r->at < r->steps) {
    if (!tg_loader_next(r->loader, in)) {
      ok = !tg_error(r->ctx); /* the end of the epoch */
      continue;
    }
    ok = one_step(r, in);
    *stopped = cli_interrupted() && r->at < r->steps;
  }
  return ok;
}

static void say_begin(const Run *r) {
  char params[32], tokens[32];
  TgLlmAbout a = tg_llm_about(r->m);
  int64_t learned = r->lora ? tg_module_count(tg_lora_module, r->lora) : a.parameters;
  fprintf(stderr, "tg train lora  %s, %s of %.2f M params  %lld pieces of text, %s tokens to learn",
          a.architecture, cli_count(learned, params), (double)a.parameters / 1e6, (long long)r->texts.items,
          cli_count(r->texts.tokens, tokens));
  if (r->texts.cut) fprintf(stderr, " (%lld cut at %lld)", (long long)r->texts.cut, (long long)r->o.length);
  fprintf(stderr, "  batch %lld  seed %lld%s\n", (long long)r->o.batch, (long long)r->o.seed,
          r->o.resume ? "  resumed" : "");
}

static void say_done(const Run *r, double took) {
  int64_t made = r->at - r->began_at;
  printf("done  %lld steps in %.1f s  loss %.4f to %.4f  saved %s\n", (long long)made, took, r->first,
         r->loss, r->o.out);
  if (r->o.json)
    printf(
        "{\"steps\":%lld,\"seconds\":%.3f,\"first_loss\":%.6g,\"loss\":%.6g,\"items\":%lld,\"tokens\":%lld,"
        "\"peak_bytes\":%llu}\n",
        (long long)r->at, took, r->first, r->loss, (long long)r->texts.items, (long long)r->texts.tokens,
        (unsigned long long)tg_counters(r->ctx).peak_bytes);
}

static int train_all(Run *r, const char *path) {
  bool stopped = cli_interrupted();
  if (!train_log_begin("train lora", r->o.log, r->o.resume, &r->log)) return CLI_FAILED;
  r->wait = cli_wait_begin("reading the model and the texts");
  if (!run_new(r, path)) return CLI_FAILED;
  cli_wait_end(r->wait);
  say_begin(r);
  r->wait = cli_wait_begin("compiling the first step");
  tg_watch_progress(r->ctx, cli_wait_progress, r->wait);
  cli_progress_begin(&r->progress, r->at, r->steps, false);
  double began = cli_now();
  if (!train(r, &stopped)) return CLI_FAILED;
  wait_over(r);
  cli_progress_clear(&r->progress);
  if (stopped && !checkpoint_write(r)) return CLI_FAILED;
  if (stopped) {
    fprintf(stderr, "interrupted at step %lld, checkpoint written to %s; go on with --resume\n",
            (long long)r->at, r->o.checkpoint);
    return CLI_INTERRUPTED;
  }
  if (r->lora ? tg_lora_save(r->lora, r->o.out, r->o.base) : tg_llm_merge(r->m, r->o.out, NULL))
    return CLI_FAILED;
  say_done(r, cli_now() - began);
  return CLI_OK;
}

static const LoraOptions defaults = {.out = "adapter.safetensors",
                                     .modules = "q,v",
                                     .checkpoint = "lora.checkpoint.safetensors",
                                     .rank = 8,
                                     .alpha = 16,
                                     .lr = 1e-4,
                                     .batch = 4,
                                     .length = 256,
                                     .epochs = 1,
                                     .seed = 42};

/* Accepts the name of a .safetensors file, or of a folder that exists or can be made. */
static bool adapter_fits(const char *path) {
  struct stat s;
  size_t n = strlen(path), k = strlen(".safetensors");
  if (n >= k && !strcmp(path + n - k, ".safetensors")) return cli_will_write_file("train lora", path);
  if (!stat(path, &s) && !S_ISDIR(s.st_mode))
    return cli_refuse(0, "train lora", "%s is no folder: an adapter's file is called .safetensors", path);
  return cli_will_write("train lora", path);
}

static int run_lora(const void *options, char **argument, int n) {
  Run r = {.o = *(const LoraOptions *)options};
  (void)n;
  if (!r.o.data) return cli_refuse(CLI_USAGE, "train lora", "--data FILE: what is it to learn?");
  if (!llm_is_model(argument[0])) return CLI_FAILED;
  if (r.o.full && (r.o.from || r.o.out == defaults.out))
    return cli_refuse(CLI_USAGE, "train lora", "--full wants -o NEW.gguf, and no adapter to begin with");
  if (!(r.o.full ? cli_will_write_file("train lora", r.o.out) : adapter_fits(r.o.out)) ||
      (r.o.checkpoint != defaults.checkpoint && !cli_will_write_file("train lora", r.o.checkpoint)))
    return CLI_FAILED;
  cli_catch_interrupt();
  int rc = train_all(&r, argument[0]);
  wait_over(&r);
  cli_progress_clear(&r.progress);
  if (rc == CLI_FAILED && (!r.ctx || tg_error(r.ctx))) cli_fail(r.ctx, "train lora");
  rc = train_log_end("train lora", r.o.log, r.log, rc);
  run_end(&r);
  return rc;
}

static const CliOption options[] = {
    CLI_TEXT_OF(LoraOptions, data, "data", "FILE", "an object a line, or plain text"),
    CLI_TEXT_OF(LoraOptions, out, "out", "FILE", "where the adapter goes, or a folder (adapter.safetensors)"),
    CLI_TEXT_OF(LoraOptions, modules, "modules", "LIST",
                "matrices with an adapter: of q,k,v,o,gate,up,down, or all (q,v)"),
    CLI_WHOLE_OF(LoraOptions, rank, "rank", 1, 65536, "of the adapter's matrices (8)"),
    CLI_REAL_OF(LoraOptions, alpha, "alpha", 0, 1e6, "what it adds is multiplied by alpha / rank (16)"),
    CLI_REAL_OF(LoraOptions, dropout, "dropout", 0, 0.999, "of the adapter's inputs (0)"),
    CLI_REAL_OF(LoraOptions, lr, "lr", 1e-9, 100,
                "the highest learning rate: it falls by a cosine to a tenth (0.0001)"),
    CLI_REAL_OF(LoraOptions, decay, "decay", 0, 10, "weight decay (0)"),
    CLI_WHOLE_OF(LoraOptions, warmup, "warmup", 0, 1000000000, "steps in which the rate rises (0)"),
    CLI_WHOLE_OF(LoraOptions, batch, "batch", 1, 65536, "texts of a step (4)"),
    CLI_WHOLE_OF(LoraOptions, length, "length", 1, 1 << 20, "tokens of a text (256)"),
    CLI_WHOLE_OF(LoraOptions, steps, "steps", 1, 1000000000, "steps, instead of whole epochs"),
    CLI_WHOLE_OF(LoraOptions, epochs, "epochs", 1, 100000, "times through the data (1)"),
    CLI_WHOLE_OF(LoraOptions, seed, "seed", 0, INT32_MAX, "of the adapter and of the order (42)"),
    CLI_TEXT_OF(LoraOptions, from, "from", "FILE", "begin with this adapter (with --resume too)"),
    CLI_TEXT_OF(LoraOptions, base, "base", "NAME", "what the original model is called, for peft"),
    CLI_WHOLE_OF(LoraOptions, every, "checkpoint-every", 1, 1000000000, "write a checkpoint every N steps"),
    CLI_TEXT_OF(LoraOptions, checkpoint, "checkpoint", "FILE",
                "where Ctrl-C and --checkpoint-every write (lora.checkpoint.safetensors)"),
    CLI_FLAG_OF(LoraOptions, full, "full",
                "all weights instead of an adapter (f32, f16, bf16): -o NEW.gguf is a model's file"),
    CLI_FLAG_OF(LoraOptions, resume, "resume",
                "go on from the checkpoint, to the bits of a run that was not interrupted"),
    CLI_TEXT_OF(LoraOptions, log, "log", "FILE", "an object a step, one a line"),
    CLI_TEXT_OF(LoraOptions, device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(LoraOptions, threads, "threads", 1, 4096,
                 "threads of the CPU; the numbers do not depend on it"),
    CLI_FLAG_OF(LoraOptions, json, "json", "the result as an object too")};

const CliCommand command_train_lora = {
    .name = "train lora",
    .summary = "teach a language model by a low-rank adapter",
    .arguments = "FILE.gguf",
    .models = 1,
    .least = 1,
    .most = 1,
    CLI_TAKES(LoraOptions, options),
    .defaults = &defaults,
    .run = run_lora,
    .more =
        "A line of the data is {\"text\"}, {\"prompt\", \"completion\"}, of which the completion is "
        "learned, or "
        "{\"messages\"}, of which what the assistant says is. The model's weights, quantised or not, stay "
        "as they are. The adapter is safetensors with peft's names, and adapter_config.json beside it; tg "
        "chat, run and serve take it by --lora, and tg merge puts it into a model's file. Ctrl-C writes a "
        "checkpoint."};
