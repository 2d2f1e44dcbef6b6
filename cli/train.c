/* train.c: `tg train`: trains a network on a folder of data. In: a task of train_tasks.c. Out: a progress
 * line, a line per epoch, the weights. A step depends only on the weights, the optimiser's state and the
 * number of the step. A checkpoint has all of these, so a run that was interrupted continues to the same bits
 * as one that was not. */
#define _DEFAULT_SOURCE
#include "train.h"
#include "train_pictures.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TRAIN_DEVICES = 16 };

typedef struct Run {
  const Task *task;
  TrainOptions o;
  TgContext *ctx;
  TrainData data;
  void *model;
  TgOptim *optim[2], *both; /* optim: matrices, whose weights decay, and the rest; both: the two together */
  TgLR *rate;
  TgScaler *scaler; /* with --bf16, otherwise NULL */
  TgJit *step, *test;
  TgLoader *loader;
  int64_t steps, per_epoch, at;
  double loss, metric, *losses, *metrics; /* running mean; of the last test; of each step; of each epoch */
  /* confusion: of the last test, by class and by the class that was answered; NULL: none. */
  int64_t nlosses, nmetrics, *confusion;
  double began, flops;
  FILE *log;
  CliProgress progress;
  CliWait *wait; /* shown until the first step is done */
  char checkpoint[4096];
  /* Of the ndevices devices that share each batch; ndevices is 0 for one device. */
  char names[MOST_TRAIN_DEVICES][64];
  const char *devices[MOST_TRAIN_DEVICES];
  int ndevices, rank; /* only rank 0 prints and writes files */
} Run;

enum { TEST_BATCH = 200, TEXT_BATCH = 64 };

static bool failed(const char *what) { return cli_refuse(0, "train", "%s", what); }

static bool failed_path(const char *path) {
  return cli_refuse(0, "train", "%s: %s", path, errno ? strerror(errno) : "cannot be written");
}

/* ---- the graphs */
/* Returns the network's answers in f32. With --bf16 its parameters are bf16, and pictures are cast to bf16,
 * so that it computes in bf16. */
static TgTensor *answers(const Run *r, TgTensor *x) {
  bool narrow = r->o.bf16 && tg_dtype_is_float(tg_dtype(x));
  return tg_float(r->task->run(r->model, narrow ? tg_cast(x, TG_BF16) : x));
}

static TgTensor *loss_of(const Run *r, TgTensor *x, TgTensor *y) {
  return tg_sparse_cross_entropy(answers(r, x), y);
}

static TgStatus step_graph(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                           void *user) {
  Run *r = user;
  (void)ctx, (void)nin, (void)nout;
  out[0] = loss_of(r, in[0], in[1]);
  TgStatus s = tg_backward(r->scaler ? tg_scaler_scale(r->scaler, out[0]) : out[0]);
  if (s) return s;
  return r->scaler ? tg_scaler_step(r->scaler, r->both) : tg_optim_step(r->both);
}

/* Returns (b): the class that is answered, or the mean loss of a piece of text. */
static TgStatus test_graph(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                           void *user) {
  Run *r = user;
  (void)nin, (void)nout;
  TgTensor *y = answers(r, in[0]);
  if (r->task->is_text)
    out[0] = tg_mean(tg_sparse_cross_entropy(y, in[1], .reduction = TG_NONE), .axis = TG_AXES(1));
  else
    out[0] = tg_argmax(y, .axis = TG_AXES(-1));
  return out[0] ? TG_OK : tg_error(ctx);
}

/* Splits a batch over the devices of the run. */
static void batch_placed(const Run *r, TgTensor *const in[2], TgTensor *placed[2]) {
  for (int i = 0; i < 2; i++)
    placed[i] = r->ndevices ? tg_shard(in[i], r->ndevices, r->devices, 0) : in[i];
}

static bool step_run(Run *r, TgTensor *const in[2], double *loss) {
  bool ok = false;
  TG_SCOPE(r->ctx) {
    TgTensor *out = NULL, *placed[2];
    batch_placed(r, in, placed);
    ok = !tg_jit_run(r->step, placed, 2, &out, 1);
    if (ok) *loss = tg_item_f64(out);
    ok = ok && !tg_error(r->ctx);
  }
  return ok;
}

/* ---- tests: accuracy, or the mean loss */
static TgTensor *padded(TgTensor *x, int64_t n) { /* appends rows of zeros to x */
  int64_t before[TG_MAX_RANK] = {0}, after[TG_MAX_RANK] = {n - tg_len(x)};
  return tg_pad(x, before, after);
}

/* Adds answers to the confusion matrix. Returns how many are right. */
static double answers_count(Run *r, const double *answer, const double *truth, int64_t n) {
  int classes = r->data.classes;
  double right = 0;
  for (int64_t k = 0; k < n; k++) {
    int is = (int)truth[k], said = (int)answer[k];
    right += is == said;
    if (r->confusion && is >= 0 && is < classes && said >= 0 && said < classes)
      r->confusion[is * classes + said]++;
  }
  return right;
}

static bool evaluate(Run *r, int64_t *right) {
  const TgDataset *d = &r->data.test;
  int64_t batch = r->task->is_text ? TEXT_BATCH : TEST_BATCH;
  TgTensor *in[2], *out = NULL;
  TgLoader *tests = tg_loader(r->ctx, d, .batch = batch);
  double sum = 0, each[TEST_BATCH], truth[TEST_BATCH];
  size_t cells = (size_t)r->data.classes * (size_t)r->data.classes;
  bool ok = tests != NULL;
  if (!r->task->is_text && !r->confusion) r->confusion = calloc(cells, sizeof *r->confusion);
  if (r->confusion) memset(r->confusion, 0, cells * sizeof *r->confusion);
  tg_set_training(r->ctx, false);
  while (ok && tg_loader_next(tests, in)) {
    TG_SCOPE(r->ctx) {
      int64_t n = tg_len(in[0]);
      for (int i = 0; i < 2; i++) /* the captured graph has batches of one size */
        in[i] = n < batch ? padded(in[i], batch) : in[i];
      ok = r->task->is_text || !tg_read_f64(in[1], truth, (size_t)batch);
      batch_placed(r, in, in);
      ok = ok && !tg_jit_run(r->test, in, 2, &out, 1) && !tg_read_f64(out, each, (size_t)batch);
      if (ok && !r->task->is_text) sum += answers_count(r, each, truth, n);
      for (int64_t k = 0; ok && r->task->is_text && k < n; k++)
        sum += each[k];
    }
  }
  tg_loader_free(tests);
  tg_set_training(r->ctx, true);
  *right = (int64_t)(sum + 0.5);
  r->metric = sum / (double)d->count;
  return ok && !tg_error(r->ctx);
}

/* ---- files */
static TgState *weights_of(Run *r, const char *prefix) {
  TgState *s = tg_state_new(r->ctx);
  if (s && !tg_module_state(r->task->module, r->model, s, prefix)) return s;
  tg_state_free(s);
  return NULL;
}

static TgTraining training_of(const Run *r) {
  return (TgTraining){.size = sizeof(TgTraining),
                      .module = r->task->module,
                      .model = r->model,
                      .optim = r->both,
                      .rate = r->rate,
                      .scaler = r->scaler,
                      .step = r->at};
}

/* whole: writes a checkpoint; otherwise only the weights */
static bool save(Run *r, const char *path, bool whole) {
  char steps[32], batch[32], seed[32], layers[32], width[32], context[32], loss[32], rate[32], decay[32];
  snprintf(steps, sizeof steps, "%lld", (long long)r->steps);
  snprintf(batch, sizeof batch, "%lld", (long long)r->o.batch),
      snprintf(seed, sizeof seed, "%lld", (long long)r->o.seed);
  snprintf(layers, sizeof layers, "%lld", (long long)r->o.layers);
  snprintf(width, sizeof width, "%lld", (long long)r->o.width);
  snprintf(context, sizeof context, "%lld", (long long)r->o.context);
  snprintf(loss, sizeof loss, "%.17g", r->loss), snprintf(rate, sizeof rate, "%.17g", r->o.lr);
  snprintf(decay, sizeof decay, "%.17g", r->o.decay);
  const char *about[] = {"format", "pt",  "task",    r->task->name, "steps",  steps,
                         "batch",  batch, "seed",    seed,          "layers", layers,
                         "width",  width, "context", context,       "loss",   loss,
                         "lr",     rate,  "decay",   decay,         "bf16",   r->o.bf16 ? "1" : "0",
                         NULL};
  TgTraining t = training_of(r);
  if (whole) return !tg_train_save(r->ctx, &t, path, about);
  TgState *s = weights_of(r, NULL);
  bool ok = s && !tg_safe_save(s, path, .metadata = about);
  tg_state_free(s);
  return ok;
}

/* Loads weights by their names in the file. The names may have a prefix, such as torch's module. for several
 * devices, which is found first. */
static bool weights_load(Run *r, const char *path) {
  TgState *file = tg_state_from_file(r->ctx, path);
  const char *name = "", *prefix = NULL;
  for (size_t i = 0; file && tg_state_at(file, i, &name) && !prefix; i++)
    for (const char *known[] = {"module.", "state_dict.module.", "state_dict.", "model.", NULL}, **k = known;
         *k; k++)
      if (!prefix && !strncmp(name, *k, strlen(*k))) prefix = *k;
  char cut[64] = "";
  if (prefix) snprintf(cut, sizeof cut, "%.*s", (int)strlen(prefix) - 1, prefix);
  TgState *model = file ? weights_of(r, cut) : NULL;
  bool ok = model && !tg_load_state(model, file, .more = true);
  tg_state_free(model), tg_state_free(file);
  return ok;
}

bool train_number(const TgValue *meta, const char *key, double *out) {
  const char *text = tg_value_string(tg_value_get(meta, key), NULL);
  char *end = NULL;
  if (text) *out = strtod(text, &end);
  return text && end != text && !*end;
}

bool train_steps_kept(const char *command, int64_t asked, int64_t steps) {
  if (!asked || asked == steps) return true;
  char all[60] = "whole epochs";
  if (steps) snprintf(all, sizeof all, "%lld steps", (long long)steps);
  return cli_refuse(0, command, "--steps %lld: the run that --resume goes on with is of %s", (long long)asked,
                    all);
}

/* Reads the options with which a checkpoint was made, from its header. They replace the given ones. Another
 * number of steps is refused, because the learning rate depends on it, so it would be another run. */
static bool resume_options(Run *r) {
  TgValue *head = NULL;
  int64_t asked = r->o.steps;
  bool ok = false;
  double step, v;
  if (access(r->checkpoint, F_OK))
    return cli_refuse(0, "train", "--resume: there is no %s; --checkpoint says where it is", r->checkpoint);
  TG_SCOPE(r->ctx) {
    head = tg_safe_load_metadata(tg_from_file(r->ctx, r->checkpoint, TG_U8, TG_SHAPE(-1)), NULL);
    const TgValue *meta = tg_value_get(head, "__metadata__");
    const char *task = tg_value_string(tg_value_get(meta, "task"), NULL);
    ok = task && !strcmp(task, r->task->name) && train_number(meta, "step", &step) && step >= 0;
    if (ok) r->at = (int64_t)step;

    struct {
      const char *key;
      int64_t *to;
    } whole[] = {{"steps", &r->o.steps},   {"batch", &r->o.batch}, {"seed", &r->o.seed},
                 {"layers", &r->o.layers}, {"width", &r->o.width}, {"context", &r->o.context}};

    for (size_t i = 0; ok && i < sizeof whole / sizeof *whole; i++)
      if ((ok = train_number(meta, whole[i].key, &v) && v >= 0 && v < 1e15)) *whole[i].to = (int64_t)v;
    r->o.bf16 = train_number(meta, "bf16", &v) && v != 0; /* older files do not have it */
    ok = ok && train_number(meta, "lr", &r->o.lr) && train_number(meta, "decay", &r->o.decay) &&
         train_number(meta, "loss", &r->loss) && r->o.batch > 0;
    tg_value_free(head);
  }
  if (tg_error(r->ctx)) return false;
  if (!ok) return cli_refuse(0, "train", "%s is no checkpoint of %s", r->checkpoint, r->task->name);
  return train_steps_kept("train", asked, r->o.steps);
}

static bool resume_state(Run *r) {
  TgTraining t = training_of(r);
  return !tg_train_load(r->ctx, &t, r->checkpoint);
}

/* ---- setting up */
static void wait_over(Run *r) {
  if (r->ctx) tg_watch_progress(r->ctx, NULL, NULL);
  cli_wait_end(r->wait);
  r->wait = NULL;
}

static void option_defaults(TrainOptions *o, const TrainOptions *otherwise) {
#define OPTION(field) o->field = o->field != 0 ? o->field : otherwise->field
  OPTION(epochs), OPTION(batch), OPTION(lr), OPTION(decay), OPTION(layers), OPTION(width), OPTION(context);
#undef OPTION
}

static bool optimiser_new(Run *r) {
  enum { MOST = 512 };

  TgTensor *all[MOST], *matrices[MOST], *rest[MOST];
  int n = tg_module_parameters(r->task->module, r->model, all, MOST), nm = 0, nr = 0;
  if (n > MOST) return failed("too many parameters");
  for (int i = 0; i < n; i++)
    if (tg_ndim(all[i]) >= 2)
      matrices[nm++] = all[i];
    else
      rest[nr++] = all[i];
  double beta2 = r->task->is_text ? 0.99 : 0.999;
  bool master = r->o.bf16; /* the weights that are updated are f32 */
  r->optim[0] = tg_adamw(r->ctx, matrices, nm, .lr = r->o.lr, .weight_decay = r->o.decay, .beta2 = beta2,
                         .master = master, .split_state = r->o.split);
  r->optim[1] = tg_adamw(r->ctx, rest, nr, .lr = r->o.lr, .weight_decay = 0, .beta2 = beta2, .master = master,
                         .split_state = r->o.split);
  if (master && !(r->scaler = tg_scaler(r->ctx))) return false;
  r->both = tg_optim_group(r->ctx, r->optim, 2);
  int64_t warm = r->steps / 20 < 200 ? r->steps / 20 : 200;
  r->rate =
      tg_lr_warmup_cosine(r->both, warm, r->steps ? r->steps : 1, .start = 0.1, .minimum = r->o.lr / 100);
  return r->rate && !tg_realize_many(all, (size_t)n);
}

/* Names the devices: those of all ranks if there are several, otherwise the default device and those next to
 * it: CPU, CPU:1, .. */
static bool devices_named(Run *r) {
  const char *first = tg_default_device(r->ctx);
  int64_t ranks = tg_comm_size(r->ctx);
  if (ranks > 1 && r->o.devices) return failed("--devices is for one process: each rank has one device");
  if (ranks > 1 && r->o.batch < ranks) return failed("--batch is less than the ranks");
  if (ranks > 1) r->ndevices = tg_comm_devices(r->ctx, NULL, MOST_TRAIN_DEVICES, r->devices);
  if (ranks > 1) return r->ndevices > 0;
  if (r->o.devices < 2) return true;
  if (r->o.batch < r->o.devices) return failed("--batch is less than --devices");
  r->ndevices = (int)r->o.devices;
  for (int i = 0; i < r->ndevices; i++) {
    snprintf(r->names[i], sizeof r->names[i], i ? "%.40s:%d" : "%.40s", first, i);
    r->devices[i] = r->names[i];
  }
  return true;
}

/* On every rank except the first, stdout is discarded; only errors are printed. */
static bool rank_known(Run *r) {
  r->rank = tg_comm_rank(r->ctx);
  if (!r->rank) return !tg_error(r->ctx);
  wait_over(r);
  r->o.log = r->o.plot = NULL;
  return freopen("/dev/null", "w", stdout) || failed_path("/dev/null");
}

/* Returns whether Ctrl-C was pressed on any rank. All ranks must agree, because a signal reaches some of them
 * earlier. */
static bool stop_asked(Run *r) {
  int64_t asked = cli_interrupted();
  tg_comm_max(r->ctx, &asked);
  return asked;
}

static bool run_new(Run *r, const char *folder) {
  TgOpenOptions open = {
      .size = sizeof open, .device = r->o.device, .log = cli_log, .seed = (uint64_t)r->o.seed};
  open.threads = (int)r->o.threads;
  r->ctx = tg_open(&open);
  if (!r->ctx || tg_error(r->ctx) || !rank_known(r)) return false;
  if (r->o.resume && !resume_options(r)) return false;
  option_defaults(&r->o, &r->task->defaults);
  if (r->task->is_text && r->o.width % 32) return failed("--width must be a multiple of 32");
  tg_manual_seed(r->ctx, (uint64_t)r->o.seed);
  const TrainData *d = &r->data;
  if (!r->task->load(r->task, r->ctx, folder, &r->o, &r->data)) return false;
  r->per_epoch = d->train.count / r->o.batch;
  r->steps = r->o.eval ? 0 : r->o.steps ? r->o.steps : r->o.epochs * r->per_epoch;
  if (!r->o.eval && r->per_epoch < 1) return failed("a batch is larger than the data");
  bool ok = false;
  TG_SCOPE(r->ctx) {
    r->model = r->task->model_new(r->ctx, d, &r->o);
    ok = r->model && !tg_error(r->ctx) && (!r->o.weights || weights_load(r, r->o.weights));
    if (ok && r->o.bf16) ok = !tg_module_cast(r->task->module, r->model, TG_BF16);
    ok = ok && devices_named(r);
    if (ok && r->ndevices) ok = !tg_module_shard(r->task->module, r->model, r->ndevices, r->devices, NULL, 0);
    ok = ok && optimiser_new(r);
  }
  if (!ok) return r->model || failed("out of memory") ? false : false;
  if (r->o.resume && !resume_state(r)) return false;
  r->step = tg_jit(r->ctx, step_graph, r);
  r->test = tg_jit(r->ctx, test_graph, r);
  r->losses = malloc((size_t)(r->steps + 1) * sizeof *r->losses);
  r->metrics = malloc((size_t)(r->steps + 2) * sizeof *r->metrics);
  r->loader = tg_loader(r->ctx, &d->train, .batch = r->o.batch, .shuffle = true, .drop_last = true,
                        .by_rank = true, .seed = (uint64_t)r->o.seed);
  if (!r->loader) return false;
  return (r->step && r->test && r->losses && r->metrics) || failed("out of memory");
}

static void run_end(Run *r) {
  tg_loader_free(r->loader);
  tg_jit_free(r->step), tg_jit_free(r->test);
  tg_lr_free(r->rate), tg_scaler_free(r->scaler), tg_optim_free(r->both), tg_optim_free(r->optim[0]),
      tg_optim_free(r->optim[1]);
  if (r->model) tg_module_free(r->task->module, r->model);
  free(r->model), free(r->losses), free(r->metrics), free(r->confusion);
  train_data_free(&r->data);
  tg_close(r->ctx);
}

bool train_log_begin(const char *command, const char *path, bool goes_on, FILE **log) {
  if (path && !(*log = fopen(path, goes_on ? "a" : "w")))
    return cli_refuse(0, command, "--log %s: %s", path, strerror(errno));
  /* Flushes each line, so that a reader of the file sees each step at once. */
  if (path) setvbuf(*log, NULL, _IOLBF, 0);
  return true;
}

void train_log_step(FILE *log, int64_t step, double loss) {
  fprintf(log, isfinite(loss) ? "{\"step\":%lld,\"loss\":%.9g" : "{\"step\":%lld,\"loss\":null",
          (long long)step, loss);
}

int train_log_end(const char *command, const char *path, FILE *log, int rc) {
  const char *why = log ? cli_unwritten(log) : NULL;
  if (log && fclose(log) && !why) why = strerror(errno);
  return why ? cli_refuse(rc ? rc : CLI_FAILED, command, "--log %s: not all of it was written%s%s", path,
                          *why ? ": " : "", why)
             : rc;
}

/* ---- what is shown */
static void metric_put(const Run *r, char *to, size_t cap) {
  if (r->task->is_text)
    snprintf(to, cap, "val loss %.3f", r->metric);
  else
    snprintf(to, cap, "test_accuracy %.2f%%", 100 * r->metric);
}

static void progress(Run *r) {
  if (r->rank) return;
  char head[120], metric[64] = "";
  if (r->nmetrics) metric_put(r, metric, sizeof metric);
  snprintf(head, sizeof head, "loss %6.3f%s%s", r->loss, *metric ? " " : "", metric);
  cli_progress(&r->progress, r->at, head, "it");
}

static void say_begin(const Run *r) {
  if (r->rank) return;
  char params[32];
  const char *about = tg_device_describe(r->ctx);
  fprintf(stderr, "tg train %s  model %s params  device %s (%.*s)  batch %lld  seed %lld%s%s\n",
          r->task->name, cli_count(tg_module_count(r->task->module, r->model), params),
          tg_default_device(r->ctx), (int)strcspn(about, ",;"), about, (long long)r->o.batch,
          (long long)r->o.seed, r->o.bf16 ? "  bf16" : "", r->o.resume ? "  resumed" : "");
  if (tg_comm_size(r->ctx) > 1) fprintf(stderr, "%d ranks, each with its share of a batch\n", r->ndevices);
}

static void say_epoch(Run *r, int64_t epoch, int64_t right) {
  if (r->rank) return;
  char metric[64], a[32], b[32];
  metric_put(r, metric, sizeof metric);
  cli_progress_clear(&r->progress);
  double took = cli_now() - r->began;
  fprintf(stderr, "epoch %lld/%lld  loss %.4f  %s", (long long)epoch,
          (long long)((r->steps + r->per_epoch - 1) / r->per_epoch), r->loss, metric);
  if (!r->task->is_text) fprintf(stderr, " (%s/%s)", cli_count(right, a), cli_count(r->data.test.count, b));
  fprintf(stderr, "  lr %.3g  %.1f s\n", tg_optim_lr(r->both), took);
  if (r->log)
    fprintf(r->log,
            "{\"step\":%lld,\"epoch\":%lld,\"loss\":%.6g,\"test_%s\":%.6g,\"lr\":%.6g,\"seconds\":%.3f}\n",
            (long long)r->at, (long long)epoch, r->loss, r->task->metric, r->metric, tg_optim_lr(r->both),
            took);
}

/* Reads the filters of the first layer if it is a convolution of pictures. Returns them, to be freed; NULL:
 * there are none. */
static double *filters_read(Run *r, TrainPictures *t) {
  double *at = NULL;
  TgState *s = tg_state_new(r->ctx);
  if (s && r->task->module && !tg_module_state(r->task->module, r->model, s, NULL))
    for (size_t i = 0; i < tg_state_count(s) && !at; i++) {
      TgTensor *w = tg_state_at(s, i, NULL);
      if (tg_ndim(w) != 4 || r->task->is_text || !(at = malloc((size_t)tg_numel(w) * sizeof *at))) continue;
      t->nfilters = (int)tg_dim(w, 0), t->channels = (int)tg_dim(w, 1);
      t->high = (int)tg_dim(w, 2), t->wide = (int)tg_dim(w, 3);
      if (tg_read_f64(w, at, (size_t)tg_numel(w))) t->nfilters = 0;
    }
  tg_state_free(s);
  t->filters = at;
  return at;
}

/* Draws the pictures at the end: curves on a terminal, and the file of --plot. */
static bool pictures(Run *r) {
  bool live = cli_live(STDOUT_FILENO) && !r->o.json;
  if (!live && !r->o.plot) return true;
  int64_t n = r->nlosses;
  double *x = malloc((size_t)(n + 1) * sizeof *x), *epochs = malloc((size_t)(r->nmetrics + 1) * sizeof *x);
  for (int64_t i = 0; x && i < n; i++)
    x[i] = (double)(r->at - n + i + 1);
  for (int64_t i = 0; epochs && i < r->nmetrics; i++)
    epochs[i] = (double)(r->at - n) + (double)(n * (i + 1)) / (double)r->nmetrics;
  TrainPictures t = {.title = r->task->name,
                     .metric = r->task->metric,
                     .loss = {"train loss", x, r->losses, x ? (int)n : 0},
                     .tests = {r->task->is_text ? "validation loss" : "test accuracy", epochs, r->metrics,
                               epochs ? (int)r->nmetrics : 0},
                     .classes = r->confusion ? r->data.classes : 0,
                     .confusion = r->confusion};
  double *filters = filters_read(r, &t);
  if (live)
    train_pictures_say(stdout, &t, cli_columns(STDOUT_FILENO) < 100 ? cli_columns(STDOUT_FILENO) : 100);
  errno = 0;
  const char *why = r->o.plot ? train_pictures_write(r->o.plot, &t) : NULL;
  free(x), free(epochs), free(filters);
  return !why || cli_refuse(0, "train", "%s: %s", r->o.plot, why);
}

/* ---- a sample of text: each letter is drawn with the probabilities that the network gives after the letters
 * before it */
static bool sample(Run *r) {
  const TrainData *d = &r->data;
  int64_t context = d->context, n = 0;
  int32_t *window = calloc((size_t)context, sizeof *window), *y = calloc((size_t)context, sizeof *y);
  double *logits = malloc((size_t)(context * d->classes + 1) * sizeof *logits);
  uint64_t random = (uint64_t)r->o.seed * 0x9e3779b97f4a7c15u;
  bool ok = window && y && logits;
  window[0] = d->of_byte[(unsigned char)'\n'];
  n = 1;
  tg_set_training(r->ctx, false);
  for (int64_t made = 0; ok && made < r->o.sample; made++) {
    TG_SCOPE(r->ctx) {
      TgTensor *x = tg_from(r->ctx, window, TG_I32, TG_SHAPE(1, context));
      TgTensor *out = answers(r, r->ndevices ? tg_replicate(x, r->ndevices, r->devices) : x);
      ok = !tg_read_f64(out, logits, (size_t)(context * d->classes));
    }
    double *last = logits + (n - 1) * d->classes, most = last[0], sum = 0;
    for (int c = 1; ok && c < d->classes; c++)
      most = last[c] > most ? last[c] : most;
    for (int c = 0; ok && c < d->classes; c++)
      sum += last[c] = exp((last[c] - most) / r->o.temperature);
    random = random * 6364136223846793005u + 1442695040888963407u;
    double at = (double)(random >> 11) * 0x1p-53 * sum;
    int letter = 0;
    while (ok && letter + 1 < d->classes && (at -= last[letter]) >= 0)
      letter++;
    if (n == context) memmove(window, window + 1, (size_t)--n * sizeof *window);
    window[n++] = letter;
    if (ok) putchar(d->letters[letter]);
  }
  putchar('\n');
  free(window), free(y), free(logits);
  return ok || tg_error(r->ctx) || failed("out of memory");
}

/* ---- the run */
static bool interrupted(Run *r) {
  cli_progress_clear(&r->progress);
  if (!save(r, r->checkpoint, true)) return false;
  if (r->rank) return true;
  fprintf(stderr, "interrupted at step %lld, checkpoint written to %s; go on with --resume\n",
          (long long)r->at, r->checkpoint);
  return true;
}

static bool one_step(Run *r, TgTensor *const in[2]) {
  double loss = NAN;
  if (!step_run(r, in, &loss) || tg_lr_step(r->rate)) return false;
  if (r->wait) wait_over(r);
  r->loss = r->at == 0 ? loss : 0.95 * r->loss + 0.05 * loss;
  r->losses[r->nlosses++] = loss;
  r->at++;
  if (r->log) {
    train_log_step(r->log, r->at, loss);
    fprintf(r->log, ",\"lr\":%.6g,\"seconds\":%.3f}\n", tg_optim_lr(r->both), cli_now() - r->began);
  }
  if (!isfinite(loss))
    return cli_refuse(0, "train", "the loss is %g at step %lld: a lower --lr may help",
                      isnan(loss) ? (double)NAN : loss, (long long)r->at);
  progress(r);
  return !r->o.every || r->at % r->o.every || save(r, r->checkpoint, true);
}

/* Runs whole epochs, from the place of the checkpoint; --steps may cut the last one short. */
static bool train(Run *r, int64_t *right, bool *stopped) {
  tg_set_training(r->ctx, true);
  bool ok = true;
  *stopped = stop_asked(r);
  while (ok && !*stopped && r->at < r->steps) {
    int64_t epoch = r->at / r->per_epoch;
    TgTensor *in[2];
    ok = !tg_loader_seek(r->loader, epoch, r->at % r->per_epoch);
    while (ok && !*stopped && r->at < r->steps && tg_loader_next(r->loader, in)) {
      ok = one_step(r, in);
      *stopped = stop_asked(r) && r->at < r->steps;
    }
    if (!ok || *stopped) break;
    ok = evaluate(r, right);
    if (ok) {
      r->metrics[r->nmetrics++] = r->metric;
      say_epoch(r, epoch + 1, *right);
    }
  }
  return ok;
}

static void say_done(const Run *r, int64_t right, double took, const char *out) {
  char a[32], b[32];
  double rate = took > 0 ? (double)r->nlosses / took : 0;
  if (r->steps) printf("done  %lld steps in %.1f s  train loss %.4f  ", (long long)r->nlosses, took, r->loss);
  if (r->task->is_text)
    printf("validation loss %.4f", r->metric);
  else
    printf("test %.2f %% (%s/%s)", 100 * r->metric, cli_count(right, a), cli_count(r->data.test.count, b));
  if (r->steps) printf("  %.1f it/s  %.1f GFLOPS", rate, took > 0 ? r->flops / took / 1e9 : 0);
  FILE *f = out ? fopen(out, "rb") : NULL;
  if (f && !fseek(f, 0, SEEK_END)) printf("  saved %s (%s)", out, cli_bytes((double)ftell(f), a));
  if (f) fclose(f);
  putchar('\n');
  if (r->o.json)
    printf("{\"task\":\"%s\",\"device\":\"%s\",\"params\":%lld,\"steps\":%lld,\"seconds\":%.3f,\"train_"
           "loss\":%.6g,"
           "\"test_%s\":%.6g,\"test_items\":%lld}\n",
           r->task->name, tg_default_device(r->ctx), (long long)tg_module_count(r->task->module, r->model),
           (long long)r->at, took, r->loss, r->task->metric, r->metric, (long long)r->data.test.count);
}

static int train_all(Run *r, const char *folder) {
  int64_t right = 0;
  bool stopped = false;
  r->wait = cli_wait_begin("reading the data");
  if (!run_new(r, folder)) return CLI_FAILED;
  if (!train_log_begin("train", r->o.log, r->o.resume, &r->log)) return CLI_FAILED;
  cli_wait_end(r->wait);
  say_begin(r);
  r->wait = r->rank ? NULL : cli_wait_begin(r->o.eval ? "compiling and testing" : "compiling the first step");
  if (r->wait) tg_watch_progress(r->ctx, cli_wait_progress, r->wait);
  r->began = cli_now();
  cli_progress_begin(&r->progress, r->at, r->steps, false);
  tg_counters_reset(r->ctx);
  if (!train(r, &right, &stopped)) return CLI_FAILED;
  double took = cli_now() - r->began;
  r->flops = tg_counters(r->ctx).flops;
  if (stopped) return interrupted(r) ? CLI_INTERRUPTED : CLI_FAILED;
  if (!r->nmetrics && !evaluate(r, &right)) return CLI_FAILED;
  wait_over(r);
  if (r->o.out && r->steps && !save(r, r->o.out, false)) return CLI_FAILED;
  if (!pictures(r)) return CLI_FAILED;
  if (r->task->is_text && r->o.sample && !sample(r)) return CLI_FAILED;
  say_done(r, right, took, r->steps ? r->o.out : NULL);
  return CLI_OK;
}

static int run_train(const void *options, char **argument, int n) {
  char out[64];
  (void)n;
  Run r = {.task = task_find(argument[0]), .o = *(const TrainOptions *)options};
  if (!r.task) {
    int rc = cli_refuse(CLI_USAGE, "train", "no task '%s'; there are:", argument[0]);
    for (int i = 0; task_at(i); i++)
      fprintf(stderr, "  %-8s %s\n", task_at(i)->name, task_at(i)->about);
    return rc;
  }
  snprintf(out, sizeof out, "%s.safetensors", r.task->name);
  if (!r.o.out) r.o.out = out;
  if (r.o.checkpoint)
    snprintf(r.checkpoint, sizeof r.checkpoint, "%s", r.o.checkpoint);
  else
    snprintf(r.checkpoint, sizeof r.checkpoint, "%s.checkpoint.safetensors", r.task->name);
  if (!cli_will_write_file("train", r.o.eval ? NULL : r.o.out) ||
      !cli_will_write_file("train", r.o.checkpoint) || !cli_will_write_file("train", r.o.plot))
    return CLI_FAILED;
  const char *why = r.o.plot ? train_pictures_refused(r.o.plot) : NULL;
  if (why) return cli_refuse(CLI_USAGE, "train", "--plot %s: %s", r.o.plot, why);
  cli_catch_interrupt();
  int rc = train_all(&r, argument[1]);
  wait_over(&r);
  cli_progress_clear(&r.progress);
  if (rc == CLI_FAILED && (!r.ctx || tg_error(r.ctx))) cli_fail(r.ctx, "train");
  rc = train_log_end("train", r.o.log, r.log, rc);
  run_end(&r);
  return rc;
}

static const TrainOptions defaults = {.seed = 42, .sample = 400, .temperature = 0.8};

static const CliOption options[] = {
    CLI_WHOLE_OF(TrainOptions, epochs, "epochs", 1, 100000, "times through the data"),
    CLI_WHOLE_OF(TrainOptions, steps, "steps", 1, 1000000000, "steps, instead of whole epochs"),
    CLI_WHOLE_OF(TrainOptions, batch, "batch", 1, 65536, "items of a step"),
    CLI_REAL_OF(TrainOptions, lr, "lr", 1e-9, 100,
                "the highest learning rate: it rises at first, then falls by a cosine"),
    CLI_REAL_OF(TrainOptions, decay, "decay", 0, 10, "weight decay of matrices"),
    CLI_FLAG_OF(
        TrainOptions, bf16, "bf16",
        "compute in bf16, with weights in f32 that are updated and a scaled loss; bf16 is what is saved"),
    CLI_WHOLE_OF(TrainOptions, seed, "seed", 0, INT32_MAX, "of the weights and of the order (42)"),
    CLI_WHOLE_OF(TrainOptions, layers, "layers", 1, 24, "chargpt: how many blocks (4)"),
    CLI_WHOLE_OF(TrainOptions, width, "width", 32, 4096, "chargpt: the width, a multiple of 32 (128)"),
    CLI_WHOLE_OF(TrainOptions, context, "context", 2, 4096, "chargpt: characters that it sees (64)"),
    CLI_WHOLE_OF(TrainOptions, sample, "sample", 0, 1000000, "chargpt: characters to write at the end (400)"),
    CLI_REAL_OF(TrainOptions, temperature, "temperature", 0.01, 100, "chargpt: of what it writes (0.8)"),
    CLI_TEXT_OF(TrainOptions, out, "out", "FILE", "where the weights go (TASK.safetensors)"),
    CLI_TEXT_OF(TrainOptions, weights, "weights", "FILE", "begin with these: safetensors, torch or gguf"),
    CLI_FLAG_OF(TrainOptions, eval, "eval",
                "train nothing: test the weights (of a part of CIFAR-10 all is the test)"),
    CLI_TEXT_OF(TrainOptions, checkpoint, "checkpoint", "FILE",
                "where Ctrl-C and --every write (TASK.checkpoint.safetensors)"),
    CLI_WHOLE_OF(TrainOptions, every, "every", 1, 1000000000, "write a checkpoint every N steps"),
    CLI_FLAG_OF(TrainOptions, resume, "resume",
                "go on from the checkpoint, to the bits of a run that was not interrupted"),
    CLI_TEXT_OF(TrainOptions, log, "log", "FILE", "an object a step and an epoch, one a line"),
    CLI_TEXT_OF(TrainOptions, plot, "plot", "FILE",
                "a picture at the end, .png or .ppm: the curves, which classes were taken for which, the "
                "first layer's filters; .svg: the curves"),
    CLI_TEXT_OF(TrainOptions, device, "device", "NAME", "instead of $TG_DEV"),
    CLI_WHOLE_OF(TrainOptions, devices, "devices", 1, MOST_TRAIN_DEVICES,
                 "share each batch out among so many devices of this kind"),
    CLI_FLAG_OF(TrainOptions, split, "split-state",
                "with --devices: each has a part of the optimiser's state, not all of it"),
    CLI_WHOLE_OF(TrainOptions, threads, "threads", 1, 4096,
                 "threads of the CPU; the numbers do not depend on it"),
    CLI_FLAG_OF(TrainOptions, json, "json", "the result as an object too")};

const CliCommand command_train = {
    .name = "train",
    .summary = "train a network on a folder of data",
    .arguments = "mnist|cifar|chargpt FOLDER",
    .least = 2,
    .most = 2,
    CLI_TAKES(TrainOptions, options),
    .defaults = &defaults,
    .run = run_train,
    .more =
        "mnist: a convolutional network on the four idx files. cifar: ResNet-20 on the binary batches, "
        "or on one of "
        "them. chargpt: a GPT of characters on a text. Ctrl-C writes a checkpoint. Language models: tg train "
        "lora."};
