/* compile.c: `tg compile`: writes a model file as C. In: ONNX, or a captured program. Out: a source and a
 * header that need no library (docs/export.md); on stdout, their sizes. A model is run with random inputs of
 * its sizes, in order to capture it. */
#include "compile_along.h"
#include "run.h"
#include <ctype.h>
#include <string.h>

typedef struct Options {
  CliTexts sizes;
  const char *out, *name, *weights, *device, *target, *vectors;
  int64_t threads, max_ram;
  bool own_math, same_bits, big_endian, stream, incbin, integers, wasm, simd, cffi, json;
} Options;

/* Returns the length of the path without a .c at its end. */
static int stem_length(const char *path) {
  size_t n = strlen(path);
  return (int)(n > 2 && !strcmp(path + n - 2, ".c") ? n - 2 : n);
}

static void say_files(const Options *o, const char *path) {
  const struct {
    bool written;
    const char *ends;
  } file[] = {{true, ".c"},       {true, ".h"},     {o->incbin, ".S"},
              {o->wasm, ".wasm"}, {o->wasm, ".js"}, {o->cffi, ".py"}};

  printf("wrote ");
  for (size_t i = 0; i < sizeof file / sizeof *file; i++)
    if (file[i].written) printf("%s%.*s%s", i ? ", " : "", stem_length(path), path, file[i].ends);
  printf(o->weights ? ", %s\n" : "\n", o->weights);
}

static void say(const Options *o, const char *path, const TgCText *c) {
  char bytes[4][32], count[32];
  if (o->json) {
    printf("{\"out\":"), cli_json_text(stdout, path);
    printf(
        ",\"operations\":%lld,\"kernels\":%d,\"source_bytes\":%zu,\"weight_bytes\":%lld,\"state_bytes\":%lld,"
        "\"arena_bytes\":%lld,\"arena_least\":%lld}\n",
        (long long)c->operations, c->kernels, strlen(c->source), (long long)c->weight_bytes,
        (long long)c->state_bytes, (long long)c->arena_bytes, (long long)c->arena_least);
    return;
  }
  printf("%s  %s operations a run, %d kernels; text %s, weights %s, state %s\n", path,
         cli_count(c->operations, count), c->kernels, cli_bytes((double)strlen(c->source), bytes[0]),
         cli_bytes((double)c->weight_bytes, bytes[1]), cli_bytes((double)c->state_bytes, bytes[2]));
  printf("arena %lld bytes; what lives at once is %lld", (long long)c->arena_bytes,
         (long long)c->arena_least);
  printf(c->stack_bytes ? "; stack at most %lld\n" : "\n", (long long)c->stack_bytes);
  printf("%s\n", c->plans);
  say_files(o, path);
}

/* Prints what the integers of inputs and outputs mean: their scale and zero point. */
static void say_scales(const RunModel *m) {
  double scale;
  int64_t zero;
  for (int i = 0; i < m->nin + m->nout; i++) {
    const char *name = i < m->nin ? m->in_names[i] : m->out_about[i - m->nin].name;
    if (tg_onnx_scale(m->onnx, name, &scale, &zero))
      printf("%s %s: (q - %lld) * %.9g\n", i < m->nin ? "input" : "output", name, (long long)zero, scale);
  }
}

/* Returns --out, or the model's name without its ending, in the current folder: DIR/model.onnx -> model. */
static const char *path_of(const Options *o, const char *model, char *made, size_t cap) {
  if (o->out) return o->out;
  const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model, *dot = strrchr(base, '.');
  snprintf(made, cap, "%.*s", dot && dot > base ? (int)(dot - base) : (int)strlen(base), base);
  return made;
}

/* Handles arguments NAME=WHAT: the input gets this value in the exported text and is no longer an input of
 * it. */
static bool inputs_fixed(RunModel *m, char **argument, int n) {
  for (int k = 0; k < n; k++) {
    const char *equals = strchr(argument[k], '=');
    size_t len = equals ? (size_t)(equals - argument[k]) : 0;
    int i = 0;
    while (i < m->nin && (strlen(m->in_names[i]) != len || strncmp(m->in_names[i], argument[k], len)))
      i++;
    if (!len || i == m->nin || !m->onnx)
      return cli_refuse(0, "compile", "%s: an input of an ONNX model is fixed as NAME=WHAT", argument[k]);
    if (tg_onnx_fix(m->onnx, m->in_names[i], m->in[i])) return false;
    tg_release(m->in[i]);
    m->in[i] = NULL;
  }
  return true;
}

/* Makes an identifier of the last part of a path, as tg_export does. */
static void name_of(const char *path, char *name, size_t cap) {
  const char *slash = strrchr(path, '/');
  size_t n = 0;
  for (const char *p = slash ? slash + 1 : path; *p && n + 2 < cap; p++) {
    bool fits = (unsigned char)*p < 128 && (isalnum((unsigned char)*p) || *p == '_');
    if (!n && isdigit((unsigned char)*p)) name[n++] = 'm';
    name[n++] = fits ? *p : '_';
  }
  name[n] = 0;
}

static bool written_along(const Options *o, const char *path, const RunCapture *c) {
  char stem[1024], name[65];
  snprintf(stem, sizeof stem, "%.*s", stem_length(path), path);
  name_of(stem, name, sizeof name);
  Along a = {.path = stem,
             .name = o->name ? o->name : name,
             .jit = c->jit,
             .inputs = c->in_names,
             .outputs = c->out_names};
  return (!o->wasm || along_wasm(&a, o->simd)) && (!o->cffi || along_python(&a));
}

/* Refuses options that exclude each other. A module and a binding have the weights in the text, and a module
 * has no libm. */
static bool options_agree(const Options *o) {
  if ((o->wasm || o->cffi) && o->weights)
    return cli_refuse(0, "compile", "--weights: a module and a binding have them within");
  if (o->wasm && (o->target || o->vectors))
    return cli_refuse(0, "compile", "--wasm: --simd gives it vectors, --target and --vectors none");
  if (o->incbin && !o->weights) return cli_refuse(0, "compile", "--incbin is for --weights FILE");
  if (o->stream && !o->weights) return cli_refuse(0, "compile", "--stream is for --weights FILE");
  if (o->big_endian && !o->weights)
    return cli_refuse(0, "compile", "--big-endian is for --weights FILE: numbers in the text have no order");
  return o->wasm || !o->simd || cli_refuse(0, "compile", "--simd is for --wasm");
}

static bool compiled(RunModel *m, const Options *o, char **argument, int n) {
  const char *model = argument[0];
  char made[1024];
  RunCapture c = {0};
  TgCText about;
  const char *path = path_of(o, model, made, sizeof made);
  m->wait = cli_wait_begin("reading the model");
  if (!run_model_open(m, model) || !run_sizes_known(m) || !run_inputs_set(m, argument + 1, n - 1))
    return false;
  if (!inputs_fixed(m, argument + 1, n - 1)) return false;
  cli_wait_what(m->wait, "capturing");
  bool ok = run_model_captured(m, &c);
  cli_wait_what(m->wait, "writing");
  ok = ok && !tg_export(c.jit, path, .inputs = c.in_names, .outputs = c.out_names, .state = c.weights,
                        .name = o->name, .weights = o->weights, .own_math = o->own_math || o->wasm,
                        .big_endian = o->big_endian, .streamed = o->stream, .target = o->target,
                        .vectors = o->vectors, .incbin = o->incbin, .threads = (int)o->threads,
                        .max_ram = o->max_ram, .same_bits = o->same_bits, .about = &about);
  ok = ok && written_along(o, path, &c);
  cli_wait_end(m->wait);
  m->wait = NULL;
  if (ok) say(o, path, &about);
  if (ok && !o->json && o->integers) say_scales(m);
  run_capture_end(m, &c);
  return ok;
}

static int run_compile(const void *options, char **argument, int n) {
  const Options *o = options;
  RunOptions run = {.sizes = o->sizes, .llm = {.device = o->device, .seed = 1}, .integers = o->integers};
  RunModel m = {.o = &run};
  if (!options_agree(o)) return CLI_FAILED;
  bool ok = compiled(&m, o, argument, n);
  cli_wait_end(m.wait);
  if (!ok && (!m.ctx || tg_error(m.ctx))) cli_fail(m.ctx, "compile");
  run_model_close(&m);
  return ok ? CLI_OK : CLI_FAILED;
}

static const CliOption options[] = {
    CLI_TEXT_OF(Options, out, "out", "PATH", "write PATH.c and PATH.h (the model's name); -o PATH"),
    CLI_TEXT_OF(Options, name, "name", "NAME",
                "what the names in the text begin with (the last part of PATH)"),
    CLI_TEXT_OF(Options, weights, "weights", "FILE", "write the weights there, and not into the source"),
    CLI_WHOLE_OF(Options, threads, "threads", 1, 1024,
                 "kernels are split in so many shares, for threads of the host (1)"),
    CLI_WHOLE_OF(Options, max_ram, "max-ram", 1, INT64_MAX / 2,
                 "bytes that arena and state may take: kernels are chosen so that they do"),
    CLI_FLAG_OF(Options, same_bits, "same-bits",
                "the first plan, whatever memory it takes: for generic that of TG_DEV=INTERP:C99, whose bits "
                "results are"),
    CLI_FLAG_OF(Options, big_endian, "big-endian",
                "the file of weights is for machines that store the high byte first"),
    CLI_FLAG_OF(Options, stream, "stream",
                "of the file of weights, a function of the host brings what is needed next"),
    CLI_FLAG_OF(Options, incbin, "incbin", "PATH.S too, by which an assembler takes in the file of weights"),
    CLI_FLAG_OF(Options, integers, "integers",
                "a quantised model without any float; inputs and outputs are its 8-bit numbers"),
    CLI_FLAG_OF(Options, own_math, "own-math", "roots are computed by the text too: it needs no libm"),
    CLI_TEXT_OF(
        Options, target, "target", "NAME",
        "plan for generic, native, x86-64-v2, x86-64-v3, x86-64-v4, armv8, cortex-m4, cortex-m7, wasm32, "
        "wasm-simd (generic)"),
    CLI_TEXT_OF(Options, vectors, "vectors", "gnu|none",
                "GNU C with vectors, or C99 (gnu for a target that has vectors, but for generic)"),
    CLI_TEXTS_OF(Options, sizes, "size", "NAME=N",
                 "a free size of the model (1); NAME=LO..HI: it stays free"),
    CLI_TEXT_OF(Options, device, "device", "NAME", "to capture on, instead of $TG_DEV"),
    CLI_FLAG_OF(Options, wasm, "wasm", "PATH.wasm too, and PATH.js that runs it; needs clang and wasm-ld"),
    CLI_FLAG_OF(Options, simd, "simd", "the module has vectors of 128 bits"),
    CLI_FLAG_OF(Options, cffi, "cffi", "PATH.py too, which compiles the text and calls it from Python"),
    CLI_FLAG_OF(Options, json, "json", "what was written as an object")};

const CliCommand command_compile = {
    .name = "compile",
    .summary = "write a model as C that needs no library",
    .arguments = "FILE [NAME=WHAT..]",
    .least = 1,
    .most = -1,
    CLI_TAKES(Options, options),
    .run = run_compile,
    .more = "FILE is an ONNX model, or a captured program (tg run --capture, tg_jit_save), which may be a "
            "step of "
            "training. NAME=WHAT gives an input the value that it then always has, as tg run reads it: what "
            "decides a shape must be known. The text is C99 without extensions, for compilers of C++ too: "
            "NAME_reset(&m) and "
            "NAME_run(&m, inputs.., outputs..); the header says the rest. A size that stays free is an "
            "argument behind "
            "the outputs; the arrays have room for the largest."};
