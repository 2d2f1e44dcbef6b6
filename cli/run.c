/* run.c: `tg run`: runs a model file on inputs. In: ONNX, or a captured program; arrays, pictures, numbers,
 * or random values. Out: a summary of the outputs, the likeliest classes, boxes, files; with --bench the time
 * of a run and of each of its kernels; with --capture a captured program. */
#define _POSIX_C_SOURCE 200809L
#include "run.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 1000 };

/* Erases what is drawn, so that results can be printed. */
static void wait_over(RunModel *m) {
  if (m->ctx) tg_watch_progress(m->ctx, NULL, NULL);
  cli_wait_end(m->wait);
  m->wait = NULL;
}

bool run_failed(const char *what, const char *why) {
  return cli_refuse(0, cli_running(), "%s: %s", what, why);
}

/* ---- the run */
static TgStatus run_graph(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout,
                          void *user) {
  RunModel *m = user;
  const char *names[MOST_IO];
  int n = 0;
  (void)ctx;
  for (int i = 0; i < m->nin; i++)
    if (m->in[i]) names[n++] = m->in_names[i];
  TgStatus s = tg_onnx_run(m->onnx, names, in, nin, out, nout);
  for (int i = 0; !s && i < nout; i++)
    out[i] = tg_contiguous(out[i]);
  return s;
}

static int given(const RunModel *m, TgTensor **in) {
  int n = 0;
  for (int i = 0; i < m->nin; i++)
    if (m->in[i]) in[n++] = m->in[i];
  return n;
}

static bool run_plain(RunModel *m, TgTensor **out) {
  TgTensor *in[MOST_IO];
  int n = given(m, in);
  if (m->program) return !tg_jit_run(m->program, in, n, out, m->nout) && !tg_sync(m->ctx);
  return !run_graph(m->ctx, in, n, out, m->nout, m) && !tg_realize_many(out, (size_t)m->nout) &&
         !tg_sync(m->ctx);
}

/* Returns the model's weights by their names. Returns NULL if out of memory. */
static TgState *weights_named(const RunModel *m) {
  TgState *s = tg_state_new(m->ctx);
  const char *name;
  TgTensor *t;
  bool ok = s != NULL;
  for (size_t i = 0; ok && (t = tg_onnx_weight(m->onnx, i, &name)); i++)
    ok = !*name || !strcmp(name, "__metadata__") || !tg_state_put(s, name, t);
  if (ok) return s;
  tg_state_free(s);
  return NULL;
}

bool run_model_captured(RunModel *m, RunCapture *c) {
  TgTensor *in[MOST_IO], *out[MOST_IO];
  int n = given(m, in), k = 0;
  *c = (RunCapture){.jit = m->program ? m->program : tg_jit(m->ctx, run_graph, m)};
  c->weights = m->program ? tg_state_new(m->ctx) : weights_named(m);
  bool ok = c->jit && c->weights;
  for (int i = 0; i < m->nin; i++)
    if (m->in[i]) c->in_names[k++] = m->in_names[i];
  for (int i = 0; i < m->nout; i++)
    c->out_names[i] = m->out_about[i].name;
  for (int i = 0; ok && !m->program && i < 2; i++)
    TG_SCOPE(m->ctx) { ok = !tg_jit_run(c->jit, in, n, out, m->nout); }
  return ok;
}

void run_capture_end(RunModel *m, RunCapture *c) {
  tg_state_free(c->weights);
  if (!m->program) tg_jit_free(c->jit);
}

/* Writes the model as a captured program into the file of --capture. */
static bool capture(RunModel *m) {
  RunCapture c;
  bool ok = run_model_captured(m, &c) && !tg_jit_save(c.jit, m->o->capture, .inputs = c.in_names,
                                                      .outputs = c.out_names, .state = c.weights);
  run_capture_end(m, &c);
  return ok;
}

/* ---- measuring: the captured run if the model can be captured, otherwise the plain one */
/* Gives each input new contents with equal values, so that what is computed from it is computed again. */
static bool renew(RunModel *m) {
  bool ok = true;
  for (int i = 0; ok && i < m->nin; i++)
    if (m->in[i]) TG_SCOPE(m->ctx) {
        ok = tg_assign(m->in[i], m->copy[i]) && !tg_realize(m->in[i]);
      }
  return ok;
}

/* Does one run in the form that is measured: the captured one unless jit is NULL. */
static bool run_once(RunModel *m, TgJit *jit, TgTensor *const *in, int n) {
  TgTensor *out[MOST_IO];
  bool ok = false;
  if (!jit && !renew(m)) return false;
  TG_SCOPE(m->ctx) {
    ok = jit ? !tg_jit_run(jit, in, n, out, m->nout) && !tg_sync(m->ctx) : run_plain(m, out);
  }
  return ok;
}

/* Measures whole runs, after three that are not counted: a plain run, the capture, and a first replay. A
 * model that cannot be captured, because a size depends on values, is run plainly; *jit is then NULL. */
static bool runs_measured(RunModel *m, TgJit **jit, TgTensor *const *in, int n, double *ms, int *runs) {
  double total = 0;
  *runs = 0;
  for (int i = 0; *runs < m->o->runs && (*runs < 5 || total < 3000) && !cli_interrupted(); i++) {
    if (i == 3) tg_counters_reset(m->ctx);
    double start = cli_now();
    bool ok = run_once(m, *jit, in, n);
    if (!ok && *jit && i == 1 && !m->program) {
      snprintf(m->not_captured, sizeof m->not_captured, "%s", tg_errmsg(m->ctx));
      tg_clear_error(m->ctx), tg_jit_free(*jit);
      *jit = NULL;
      ok = true;
    }
    if (!ok) return false;
    double took = (cli_now() - start) * 1e3;
    if (i >= 3) total += ms[(*runs)++] = took;
  }
  return *runs > 0;
}

/* Measures each launch, over several runs of about a second in all. Then finds in the plan what each launch
 * computes. */
static bool layers_measured(RunModel *m, TgJit *jit, TgTensor *const *in, int n, Layers *l) {
  TgTensor *out[MOST_IO];
  double start = cli_now();
  bool ok = true;
  tg_watch_launches(m->ctx, layers_launch, l);
  for (int i = 0; ok && i < m->o->runs && (i < 3 || cli_now() - start < 1) && !cli_interrupted(); i++) {
    if (!jit) ok = renew(m); /* its launches are not part of the model */
    layers_run_begin(l);
    ok = ok && run_once(m, jit, in, n);
    layers_run_end(l);
  }
  tg_watch_launches(m->ctx, NULL, NULL);
  if (m->program) return ok; /* a program has no nodes any more */
  ok = ok && renew(m);       /* otherwise its values are known already, and nothing is planned */
  tg_onnx_watch(m->onnx, layers_node, l);
  TG_SCOPE(m->ctx) { ok = ok && !run_graph(m->ctx, in, n, out, m->nout, m) && layers_plan(l, out, m->nout); }
  tg_onnx_watch(m->onnx, NULL, NULL);
  return ok;
}

static void measured_say(const RunModel *m, double *ms, int runs, bool captured, const TgCounters *c) {
  char memory[32];
  if (*m->not_captured) fprintf(stderr, "not captured: %s\n", m->not_captured);
  cli_sort(ms, runs);
  double median = ms[runs / 2], flops = (double)c->flops / runs, kernels = (double)c->launches / runs;
  bool known = !m->nvaried; /* if sizes vary, operations are counted for the largest sizes */
  if (m->o->json)
    printf("{\"runs\":%d,\"median_ms\":%.4f,\"least_ms\":%.4f,\"most_ms\":%.4f,", runs, median, ms[0],
           ms[runs - 1]);
  else
    printf("median %.3f ms  (%.3f .. %.3f, %d runs, %s)", median, ms[0], ms[runs - 1], runs,
           captured ? "captured" : "not captured");
  if (known) printf(m->o->json ? "\"gflops\":%.2f," : "  %.1f GFLOPS", flops / median / 1e6);
  if (m->o->json)
    printf("\"kernels\":%.0f,\"captured\":%s,\"peak_bytes\":%llu}\n", kernels, captured ? "true" : "false",
           (unsigned long long)c->peak_bytes);
  else
    printf("  %.0f kernels  peak %s\n", kernels, cli_bytes((double)c->peak_bytes, memory));
}

static bool measure(RunModel *m) {
  static double ms[MOST_RUNS];
  TgTensor *in[MOST_IO];
  int n = given(m, in), runs = 0;
  TgJit *jit = m->program ? m->program : tg_jit(m->ctx, run_graph, m);
  bool ok = jit && runs_measured(m, &jit, in, n, ms, &runs);
  TgCounters c = tg_counters(m->ctx);
  Layers *l = ok ? layers_new(m->nvaried > 0) : NULL;
  cli_wait_what(m->wait, "measuring each kernel");
  if (ok && !l) ok = run_failed("--bench", "out of memory");
  bool each = ok && layers_measured(m, jit, in, n, l);
  wait_over(m);
  if (ok) measured_say(m, ms, runs, jit != NULL, &c);
  ok = ok && each;
  if (ok) layers_say(l, m->o->json, (int)m->o->rows);
  layers_free(l);
  if (!m->program) tg_jit_free(jit);
  return ok;
}

/* ---- the command */
static int64_t program_weights(TgJit *program) {
  int64_t n = 0;
  TgTensor *t;
  for (size_t i = 0; (t = tg_jit_memory(program, i, NULL)); i++)
    n += tg_numel(t);
  return n;
}

static void model_say(const RunModel *m, const char *path, double load, double first, const TgCounters *c) {
  const char *slash = strrchr(path, '/');
  char bytes[32], count[32];
  FILE *f = fopen(path, "rb");
  double size = f && !fseek(f, 0, SEEK_END) ? (double)ftell(f) : 0;
  if (f) fclose(f);
  fprintf(stderr, "%s  ", slash ? slash + 1 : path);
  if (m->program)
    fprintf(stderr, "captured program");
  else
    fprintf(stderr, "opset %d  %zu nodes", tg_onnx_opset(m->onnx), tg_onnx_node_count(m->onnx));
  fprintf(stderr, "  %s params  %s  load %.0f ms  first run %.0f ms: %llu kernels, %llu compiled\n",
          cli_count(m->program ? program_weights(m->program) : tg_onnx_weights(m->onnx), count),
          cli_bytes(size, bytes), load * 1e3, first * 1e3, (unsigned long long)c->launches,
          (unsigned long long)c->compiled);
  for (int i = 0; i < m->nin; i++) {
    char shape[300];
    if (m->in[i])
      fprintf(stderr, "input %-18s %-5s %s\n", m->in_names[i], tg_dtype_name(tg_dtype(m->in[i])),
              run_shape_text(tg_ndim(m->in[i]), tg_shape(m->in[i]), shape));
  }
}

enum { MOST_DEVICES = 16 };

/* The names in --device CPU,CPU:1, which replace those of a program for several devices. The first is the
 * context's own device. */
typedef struct DeviceNames {
  char text[400];
  const char *at[MOST_DEVICES];
  int n;
} DeviceNames;

static bool devices_named(const char *list, DeviceNames *d) {
  *d = (DeviceNames){0};
  if (!list) return true;
  snprintf(d->text, sizeof d->text, "%s", list);
  for (char *p = strtok(d->text, ","); p && d->n < MOST_DEVICES; p = strtok(NULL, ","))
    d->at[d->n++] = p;
  return strlen(list) < sizeof d->text || run_failed("--device", "too long a list");
}

RunVaried *run_varied(RunModel *m, const char *name) {
  for (int i = 0; name && i < m->nvaried; i++)
    if (!strcmp(m->varied[i].name, name)) return &m->varied[i];
  return NULL;
}

bool run_size_bound(RunVaried *v, int64_t n) {
  if (n < v->least || n > v->most || tg_variable_bind(v->v, n))
    return cli_refuse(0, cli_running(), "size %s is %lld; it may be %lld to %lld", v->name, (long long)n,
                      (long long)v->least, (long long)v->most);
  return v->known = true;
}

/* Adds a size that varies. Returns NULL if there are too many; the reason was printed. */
static RunVaried *varied_new(RunModel *m, TgVariable *n, const char *of) {
  if (!n || m->nvaried == MOST_VARIED) return run_failed(of, "more than 16 sizes vary"), NULL;
  RunVaried *v = &m->varied[m->nvaried++];
  *v = (RunVaried){.name = tg_variable_name(n), .v = n};
  tg_size_bounds(m->ctx, tg_size(n), &v->least, &v->most);
  return v;
}

/* Describes an input of a program as ONNX inputs are described: an axis whose size is a variable has the
 * variable's name. */
static void free_sizes_of(RunModel *m, int i) {
  TgOnnxValue *about = &m->in_about[i];
  for (int a = 0; a < about->ndim; a++) {
    m->free_dims[i][a] = about->dims[a];
    for (int k = 0; k < m->nvaried; k++)
      if (tg_size(m->varied[k].v) == about->dims[a]) m->free_names[i][a] = m->varied[k].name;
    if (m->free_names[i][a]) m->free_dims[i][a] = -1;
  }
  about->dims = m->free_dims[i];
  about->dim_names = m->free_names[i];
}

static bool program_open(RunModel *m, const char *path, const DeviceNames *on) {
  TgJitValue v;
  m->program = tg_jit_load_file_on(m->ctx, path, on->at, on->n > 1 ? on->n : 0);
  if (!m->program) return false;
  for (; m->nin < MOST_IO && tg_jit_input(m->program, (size_t)m->nin, &v); m->nin++) {
    m->in_about[m->nin] = (TgOnnxValue){.name = v.name, .dtype = v.dtype, .ndim = v.ndim, .dims = v.dims};
    m->in_names[m->nin] = v.name;
  }
  for (; m->nout < MOST_IO && tg_jit_output(m->program, (size_t)m->nout, &v); m->nout++)
    m->out_about[m->nout] = (TgOnnxValue){.name = v.name, .dtype = v.dtype, .ndim = v.ndim, .dims = v.dims};
  TgVariable *n;
  for (size_t i = 0; (n = tg_jit_variable(m->program, i)); i++) {
    RunVaried *v = varied_new(m, n, path);
    int64_t size = run_size_given(m, tg_variable_name(n), -2);
    if (!v || size == -1 || (size >= 0 && !run_size_bound(v, size))) return false;
  }
  for (int i = 0; i < m->nin; i++)
    free_sizes_of(m, i);
  return !tg_jit_input(m->program, MOST_IO, &v) && !tg_jit_output(m->program, MOST_IO, &v)
             ? true
             : run_failed(path, "more than 64 inputs or outputs");
}

bool run_model_open(RunModel *m, const char *path) {
  DeviceNames on;
  if (!devices_named(m->o->llm.device, &on)) return false;
  TgOpenOptions open = {
      .size = sizeof open, .device = on.at[0], .log = cli_log, .seed = (uint64_t)m->o->llm.seed};
  open.threads = (int)m->o->llm.threads;
  m->ctx = tg_open(&open);
  if (!m->ctx || tg_error(m->ctx)) return false;
  if (m->o->bundle && tg_bundle_load(m->ctx, m->o->bundle)) return false;
  bool program = cli_is_safetensors(path);
  if (program && m->o->integers) return run_failed(path, "--integers is for ONNX models");
  if (program) return program_open(m, path, &on);
  if (on.n > 1) return run_failed(path, "--device names several: they are for captured programs of several");
  const char *other = cli_not_to_run(path);
  if (other) return run_failed(path, other);
  if (!(m->onnx = tg_onnx_open(m->ctx, path))) return false;
  if (m->o->loop_limit && tg_onnx_loop_limit(m->onnx, m->o->loop_limit)) return false;
  if (m->o->integers && tg_onnx_integers(m->onnx)) return false;
  while (m->nin < MOST_IO && tg_onnx_input(m->onnx, (size_t)m->nin, &m->in_about[m->nin])) {
    m->in_names[m->nin] = m->in_about[m->nin].name;
    m->nin++;
  }
  while (m->nout < MOST_IO && tg_onnx_output(m->onnx, (size_t)m->nout, &m->out_about[m->nout]))
    m->nout++;
  return true;
}

/* Returns the i-th name of a free size, of a program or of the inputs of a model, where NULL stands for a
 * fixed size. Returns "" past the last. */
static const char *free_size_at(const RunModel *m, int i) {
  const TgVariable *of = m->program ? tg_jit_variable(m->program, (size_t)i) : NULL;
  if (m->program) return of ? tg_variable_name(of) : "";
  for (int k = 0; k < m->nin; i -= m->in_about[k++].ndim) {
    const TgOnnxValue *v = &m->in_about[k];
    if (i < v->ndim) return v->dims[i] < 0 && v->dim_names ? v->dim_names[i] : NULL;
    if (v->ndim < 0) i++;
  }
  return "";
}

/* Reads bounds such as "=1..64". Returns false if the text has none. */
static bool size_range(const char *text, int64_t *least, int64_t *most) {
  const char *dots = strstr(text, "..");
  char low[32];
  if (!dots || (size_t)(dots - text) > sizeof low) return false;
  snprintf(low, sizeof low, "%.*s", (int)(dots - text - 1), text + 1);
  return cli_whole(low, 0, INT32_MAX, least) && cli_whole(dots + 2, *least, INT32_MAX, most);
}

bool run_sizes_known(RunModel *m) {
  for (int k = 0; k < m->o->sizes.n; k++) {
    const char *given = m->o->sizes.at[k], *name = NULL;
    size_t n = strcspn(given, "=");
    bool known = false, any = false;
    for (int i = 0; !known && !((name = free_size_at(m, i)) && !*name); i++) {
      known = name && n && given[n] && strlen(name) == n && !strncmp(name, given, n);
      any |= name != NULL;
    }
    int64_t least, most;
    bool varies = known && !m->program && strstr(given + n, "..");
    if (varies && !size_range(given + n, &least, &most))
      return cli_refuse(0, cli_running(), "--size %s: bounds are LO..HI, LO not above HI", given);
    if (varies && !varied_new(m, tg_variable(m->ctx, name, least, most), given)) return false;
    if (!known)
      return cli_refuse(0, cli_running(), "--size %s: %s", given,
                        !given[n] || !n ? "it is NAME=N"
                        : any           ? "the model has no free size of that name; tg info says which it has"
                                        : "the model has no free sizes");
  }
  return true;
}

static bool run_all(RunModel *m, char **argument, int n) {
  double begin = cli_now();
  m->wait = cli_wait_begin("reading the model");
  if (!run_model_open(m, argument[0]) || !run_sizes_known(m)) return false;
  double load = cli_now() - begin;
  cli_wait_what(m->wait, "reading the inputs");
  if (!run_inputs_set(m, argument + 1, n - 1)) return false;
  cli_wait_what(m->wait, "compiling and running");
  tg_watch_progress(m->ctx, cli_wait_progress, m->wait);
  TgTensor *out[MOST_IO];
  bool ok = false;
  TG_SCOPE(m->ctx) {
    tg_counters_reset(m->ctx);
    begin = cli_now();
    ok = run_plain(m, out);
    TgCounters c = tg_counters(m->ctx);
    wait_over(m);
    if (ok) {
      model_say(m, argument[0], load, cli_now() - begin, &c);
      ok = run_outputs_say(m, out);
    }
  }
  if (ok && m->o->capture) {
    m->wait = cli_wait_begin("capturing");
    tg_watch_progress(m->ctx, cli_wait_progress, m->wait);
    ok = capture(m);
    wait_over(m);
  }
  if (ok && m->o->save_bundle) ok = !tg_bundle_save(m->ctx, m->o->save_bundle);
  if (!ok || !m->o->bench) return ok;
  m->wait = cli_wait_begin("measuring"); /* the progress line is erased before results are printed */
  return measure(m);
}

/* Returns the first given option that has no effect here, because it is only for language models or only for
 * other models. Returns NULL if there is none. */
static const char *option_for_others(const RunOptions *o) {
  static const LlmChoices usual = LLM_USUAL;
  const LlmChoices *c = &o->llm;

  const struct {
    const char *name;
    bool given, llm;
  } kinds[] = {{"--size", o->sizes.n > 0, false},
               {"--image", o->image != 0, false},
               {"--mean", o->mean, false},
               {"--std", o->std, false},
               {"--bgr", o->bgr, false},
               {"--labels", o->labels, false},
               {"--boxes", o->boxes, false},
               {"--draw", o->draw, false},
               {"--out", o->out, false},
               {"--capture", o->capture, false},
               {"--save-bundle", o->save_bundle, false},
               {"--bundle", o->bundle, false},
               {"--bench", o->bench, false},
               {"--loop-limit", o->loop_limit != 0, false},
               {"--json", o->json, false},
               {"--context", c->context != 0, true},
               {"--tokens", c->tokens != 0, true},
               {"--temperature", c->temperature != usual.temperature, true},
               {"--top-k", c->top_k != usual.top_k, true},
               {"--top-p", c->top_p != usual.top_p, true},
               {"--min-p", c->min_p != usual.min_p, true},
               {"--repeat-penalty", c->repeat != usual.repeat, true},
               {"--stop", c->stop.n > 0, true},
               {"--grammar", c->grammar, true},
               {"--schema", c->schema, true},
               {"--lora", c->lora.n > 0, true},
               {"--mmproj", c->mmproj, true},
               {"--tiles", c->tiles != usual.tiles, true},
               {"--picture", c->picture.n > 0, true},
               {"--draft", c->draft, true},
               {"--draft-tokens", c->guesses != usual.guesses, true},
               {"--cache", c->cache, true},
               {"--activations", c->activations != 0, true}};

  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i].given && kinds[i].llm != (o->prompt != NULL)) return kinds[i].name;
  return NULL;
}

/* Runs a language model: prints the text that follows a prompt. */
static int run_llm(const RunOptions *o, char **argument, int n) {
  if (n > 1)
    return cli_refuse(CLI_USAGE, "run", "%s: a language model takes --prompt, and no INPUT", argument[0]);
  return llm_choices_refuse(&o->llm) ? CLI_USAGE : llm_complete(argument[0], o->prompt, &o->llm);
}

void run_model_close(RunModel *m) {
  for (int i = 0; i < m->nin; i++)
    tg_release(m->in[i]), tg_release(m->copy[i]);
  free(m->picture.rgb);
  tg_onnx_free(m->onnx), tg_jit_free(m->program);
  tg_close(m->ctx);
}

static int run_run(const void *options, char **argument, int n) {
  RunModel m = {.o = options};
  const char *other = option_for_others(m.o);
  if (other)
    return cli_refuse(CLI_USAGE, "run", "%s means nothing %s --prompt", other,
                      m.o->prompt ? "beside" : "without");
  if (m.o->prompt) return run_llm(options, argument, n);
  const char *why = m.o->draw ? picture_refused(m.o->draw) : NULL;
  if (why) return cli_refuse(CLI_USAGE, "run", "--draw %s: %s", m.o->draw, why);
  if (!cli_will_write_file("run", m.o->draw) || !cli_will_write_file("run", m.o->capture) ||
      !cli_will_write_file("run", m.o->save_bundle))
    return CLI_FAILED;
  bool ok = run_all(&m, argument, n);
  wait_over(&m);
  if (!ok && (!m.ctx || tg_error(m.ctx))) cli_fail(m.ctx, "run");
  run_model_close(&m);
  return ok ? CLI_OK : CLI_FAILED;
}

static const RunOptions defaults = {
    .llm = LLM_USUAL, .score = 0.5, .overlap = 0.45, .top = 5, .runs = MOST_RUNS, .rows = 24};

static const CliOption options[] = {
    CLI_TEXTS_OF(RunOptions, sizes, "size", "NAME=N",
                 "a free size of the model (1), or of a program; NAME=LO..HI: a capture takes all of these"),
    CLI_WHOLE_OF(RunOptions, image, "image", 1, 16384,
                 "the side of a picture where the model leaves it free (224)"),
    CLI_TEXT_OF(RunOptions, mean, "mean", "X[,X,X]", "of pictures, taken off pixel / 255 (0)"),
    CLI_TEXT_OF(RunOptions, std, "std", "X[,X,X]", "of pictures, divided by after that (1)"),
    CLI_FLAG_OF(RunOptions, bgr, "bgr", "pictures have blue first"),
    CLI_TEXT_OF(RunOptions, labels, "labels", "FILE", "names of the classes, one a line"),
    CLI_WHOLE_OF(RunOptions, top, "top", 0, 1000, "how many of the likeliest classes to show (5)"),
    CLI_TEXT_OF(RunOptions, boxes, "boxes", "KIND",
                "the outputs are a detector's: say each box. auto, or tf, detr, ssd, fastestdet, nms, "
                "yolov5, yolov8"),
    CLI_TEXT_OF(RunOptions, draw, "draw", "FILE", "draw the boxes into the picture, as .png or .ppm"),
    CLI_REAL_OF(RunOptions, score, "score", 0, 1, "the least that a box is shown with (0.5)"),
    CLI_REAL_OF(RunOptions, overlap, "overlap", 0, 1,
                "boxes of a class that share so much with a better one are left out (0.45)"),
    CLI_TEXT_OF(RunOptions, out, "out", "PREFIX", "write each output to PREFIXname.npy"),
    CLI_TEXT_OF(RunOptions, capture, "capture", "FILE",
                "write the captured program: weights and graphs, for any device, for these sizes"),
    CLI_TEXT_OF(RunOptions, save_bundle, "save-bundle", "FILE",
                "write the compiled kernels, for machines without a compiler"),
    CLI_TEXT_OF(RunOptions, bundle, "bundle", "FILE", "take compiled kernels from there"),
    CLI_FLAG_OF(RunOptions, bench, "bench",
                "time it: about three seconds of runs, then its kernels one by one, and their nodes"),
    CLI_WHOLE_OF(RunOptions, runs, "runs", 1, MOST_RUNS, "of --bench, at most"),
    CLI_WHOLE_OF(RunOptions, rows, "rows", 1, 100000, "kernels that the table of --bench shows (24)"),
    CLI_WHOLE_OF(RunOptions, loop_limit, "loop-limit", 1, INT32_MAX,
                 "iterations that the loops of a model may have together (100000)"),
    CLI_TEXT_OF(RunOptions, prompt, "prompt", "TEXT", "of a gguf file: say what follows it"),
    LLM_PICTURE_OF(RunOptions, llm),
    LLM_MMPROJ_OF(RunOptions, llm),
    LLM_OPTIONS_OF(RunOptions, llm),
    CLI_FLAG_OF(RunOptions, json, "json", "an object per output and class, one a line")};

const CliCommand command_run = {
    .name = "run",
    .summary = "run a model file, or a captured program, on inputs",
    .arguments = "FILE [INPUT..]",
    .models = 1,
    .least = 1,
    .most = -1,
    CLI_TAKES(RunOptions, options),
    .defaults = &defaults,
    .run = run_run,
    .more =
        "FILE is a gguf file of a language model, whose --prompt is gone on with, an ONNX model, or what "
        "--capture or tg_jit_save wrote: a program with its weights, which "
        "this machine plans and compiles for itself; what it changes in its memories is kept by --capture. A "
        "program of several devices takes --device NAME,NAME instead of its own.\n"
        "INPUT is NAME=WHAT, or WHAT for the inputs in their order: an array (.npy), a TensorProto (.pb), a "
        "picture (.png .jpg .ppm), a number, a list \"[[1, 2], [3, 4]]\", zeros, or random, which is also "
        "what an input gets that is not given; random:1x576 says the sizes too.\n"
        "--bench measures the captured program, then each of its kernels by itself, which takes longer in "
        "sum. A kernel may compute several nodes of the model (a convolution with its activation): it is one "
        "row, its time is theirs together. A node that takes several kernels stands in several rows, and one "
        "that only renames elements, or is known before the run, in none. A node without a name is shown by "
        "its number in the file."};
