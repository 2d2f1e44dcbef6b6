/* info.c: `tg info`: prints what is needed to understand a fault: the build, the device, the cache, the
 * environment. `tg info FILE`: prints what a file is and what a model file, or a model's folder, contains. */
#include "hub.h"
#include "info.h"
#include "tg_llm.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files of models: names, dtypes, shapes */
/* ONNX has no signature. A file is ONNX if its name says so, or if it begins with a version (field 1, a small
 * number) and another field. */
static bool is_onnx(const unsigned char *b, size_t n, const char *path) {
  size_t k = strlen(path);
  bool named = k > 5 && !strcmp(path + k - 5, ".onnx");
  bool begins = n > 4 && b[0] == 8 && b[1] && b[1] < 32 && (b[2] == 0x12 || b[2] == 0x3a || b[2] == 0x42);
  return n && (named || begins);
}

static bool is_model_folder(const char *path) {
  char config[4200];
  return snprintf(config, sizeof config, "%s/config.json", path) < (int)sizeof config &&
         !access(config, R_OK);
}

FileKind info_kind_of(const char *path) {
  unsigned char b[512] = {0};
  if (is_model_folder(path)) return FOLDER;
  FILE *f = fopen(path, "rb");
  size_t n = f ? fread(b, 1, sizeof b, f) : 0;
  if (f) fclose(f);
  if (n >= 4 && !memcmp(b, "GGUF", 4)) return GGUF;
  if (n >= 4 && (!memcmp(b, "PK\3\4", 4) || !memcmp(b, "PK\5\6", 4))) return ZIP;
  if (n > 15 && !memcmp(b, "\x80\2\x8a\x0a", 4)) return TORCH;
  if (!memcmp(b + 257, "ustar", 5)) return TAR;
  if (n >= 10 && !memcmp(b, "\x93NUMPY", 6)) return NPY;
  if (n >= 4 && b[0] == 0x1f && b[1] == 0x8b) return GZIP;
  if (n >= 8 && !b[0] && !b[1] && b[2] == 8 && b[3] && b[3] <= TG_MAX_RANK) return IDX;
  if (n >= 10 && b[8] == '{' && !b[7] && !b[6]) return SAFETENSORS;
  return is_onnx(b, n, path) ? ONNX : NO_MODEL;
}

bool cli_is_safetensors(const char *path) { return info_kind_of(path) == SAFETENSORS; }

const char *cli_not_to_run(const char *path) {
  switch (info_kind_of(path)) {
  case GGUF:
    return "a gguf file: --prompt TEXT says what a language model goes on with, tg chat talks with it, tg "
           "info "
           "tells what it holds";
  case TORCH:
    return "a torch checkpoint, weights without the graph that uses them: tg info tells what it holds, "
           "tg_torch_load_file reads it; tg run takes ONNX models and captured programs";
  case ZIP:
  case TAR:
  case GZIP: return "an archive: tg info tells what it holds; tg run takes ONNX models and captured programs";
  case NPY:
  case IDX: return "an array, which is an input: tg run MODEL NAME=FILE";
  default: return NULL;
  }
}

static void shape_put(char *to, size_t cap, const TgTensor *t) {
  size_t n = 0;
  *to = 0;
  for (int i = 0; i < tg_ndim(t) && n < cap; i++)
    n += (size_t)snprintf(to + n, cap - n, i ? ", %lld" : "%lld", (long long)tg_dim(t, i));
}

void info_tensor_line(const char *name, TgTensor *t, bool json) {
  char shape[400];
  shape_put(shape, sizeof shape, t);
  if (json) {
    printf("{\"tensor\":"), cli_json_text(stdout, name);
    printf(",\"dtype\":\"%s\",\"shape\":[%s],\"bytes\":%zu}\n", tg_dtype_name(tg_dtype(t)), shape,
           tg_nbytes(t));
  } else
    printf("%-40s  %-7s  (%s%s)\n", name, tg_dtype_name(tg_dtype(t)), shape, tg_ndim(t) == 1 ? "," : "");
}

static void value_json(const char *name, const TgValue *v) {
  const char *s = tg_value_string(v, NULL);
  printf("{\"key\":"), cli_json_text(stdout, name), printf(",\"value\":");
  switch (tg_value_kind(v)) {
  case TG_KIND_STRING: cli_json_text(stdout, s); break;
  case TG_KIND_BOOL: fputs(tg_value_int(v) ? "true" : "false", stdout); break;
  case TG_KIND_INT: printf("%lld", (long long)tg_value_int(v)); break;
  case TG_KIND_FLOAT: printf("%.9g", tg_value_float(v)); break;
  default:
    printf("null,\"count\":%lld", tg_value_kind(v) == TG_KIND_TENSOR ? (long long)tg_numel(tg_value_tensor(v))
                                                                     : (long long)tg_value_count(v));
    break;
  }
  puts("}");
}

static void value_line(const char *name, const TgValue *v, bool json) {
  const char *s = tg_value_string(v, NULL);
  if (json) {
    value_json(name, v);
    return;
  }
  printf("%-40s  ", name);
  switch (tg_value_kind(v)) {
  case TG_KIND_STRING:
    printf("\"%.*s\"%s\n", (int)strcspn(s, "\n") > 70 ? 70 : (int)strcspn(s, "\n"), s,
           strlen(s) > 70 || strchr(s, '\n') ? ".." : "");
    break;
  case TG_KIND_BOOL: puts(tg_value_int(v) ? "true" : "false"); break;
  case TG_KIND_INT: printf("%lld\n", (long long)tg_value_int(v)); break;
  case TG_KIND_FLOAT: printf("%.9g\n", tg_value_float(v)); break;
  case TG_KIND_TENSOR:
    printf("%lld numbers, %s\n", (long long)tg_numel(tg_value_tensor(v)),
           tg_dtype_name(tg_dtype(tg_value_tensor(v))));
    break;
  case TG_KIND_LIST: printf("%zu texts\n", tg_value_count(v)); break;
  default: puts("-"); break;
  }
}

void info_state_lines(const char *path, const char *kind, const TgState *s, bool json) {
  int64_t n = 0;
  const char *name;
  TgTensor *t;
  for (size_t i = 0; (t = tg_state_at(s, i, NULL)); i++)
    n += tg_numel(t);
  if (json)
    printf("{\"kind\":\"%s\",\"tensors\":%zu,\"elements\":%lld}\n", kind, tg_state_count(s), (long long)n);
  else
    printf("%s: %s, %zu tensors, %lld elements\n", path, kind, tg_state_count(s), (long long)n);
  for (size_t i = 0; (t = tg_state_at(s, i, &name)); i++)
    info_tensor_line(name, t, json);
}

/* The sizes that vary, called v0, v1 .. in a program's text; name: their names, quoted as in the text. */
typedef struct Sizes {
  char name[16][80];
  int n;
} Sizes;

/* Prints sizes "v0, 3" as "rows, 3". In JSON, a size that is not a number is a string. */
static void sizes_put(const Sizes *s, const char *at, int n, bool json) {
  for (const char *end = at + n; at < end;) {
    int size = (int)strcspn(at, ",)");
    bool number = (int)strspn(at, "0123456789") == size;
    if (json && !number) putchar('"');
    for (const char *stop = at + size; at < stop; at++) {
      char *rest;
      long v = *at == 'v' ? strtol(at + 1, &rest, 10) : -1;
      if (v < 0 || v >= s->n)
        putchar(*at);
      else
        printf("%.*s", (int)strlen(s->name[v]) - 2, s->name[v] + 1), at = rest - 1;
    }
    if (json && !number) putchar('"');
    if (at < end) at += printf(", ");
  }
}

/* Prints a size from a line such as "variable "rows" 1 64 1". Returns false if the line is none. */
static bool program_size(const char *line, Sizes *s, bool json) {
  long long lo, hi, multiple;
  const char *end = strrchr(line, '"');
  if (strncmp(line, "variable \"", 10) || !end || sscanf(end + 1, "%lld %lld %lld", &lo, &hi, &multiple) != 3)
    return false;
  int n = (int)(end + 1 - (line + 9));
  if (s->n < 16 && n < (int)sizeof s->name[0])
    snprintf(s->name[s->n++], sizeof s->name[0], "%.*s", n, line + 9);
  if (json)
    printf("{\"size\":%.*s,\"least\":%lld,\"most\":%lld,\"multiple_of\":%lld}\n", n, line + 9, lo, hi,
           multiple);
  else
    printf("%-8s%.*s: %lld .. %lld%s%.0lld\n", "size", n, line + 9, lo, hi,
           multiple > 1 ? ", a multiple of " : "", multiple > 1 ? multiple : 0);
  return true;
}

/* Prints an input or output from a line such as "m0 = input f32 (2, 3) "x"", or "m0 = input d1 f32 (2, 3)
 * "x"" in a program for several devices. Its name is quoted as in JSON. */
static void program_value(const char *line, const Sizes *s, bool json) {
  char what[16] = "", dtype[16] = "";
  int at = 0, device = -1;
  bool one = sscanf(line, "m%*d = %15[a-z] %15s (%n", what, dtype, &at) == 2 && at;
  if (!one && (sscanf(line, "m%*d = %15[a-z] d%d %15s (%n", what, &device, dtype, &at) != 3 || !at)) return;
  int sizes = (int)strcspn(line + at, ")");
  const char *name = line + at + sizes;
  if ((strcmp(what, "input") && strcmp(what, "output")) || strncmp(name, ") \"", 3)) return;
  name += 2;
  char on[32] = "";
  if (!one) snprintf(on, sizeof on, json ? ",\"device\":%d" : "  of device %d", device);
  if (json)
    printf("{\"%s\":%s,\"dtype\":\"%s\",\"shape\":[", what, name, dtype);
  else
    printf("%-8s%-32s  %-7s  (", what, name, dtype);
  sizes_put(s, line + at, sizes, json);
  printf(json ? "]%s}\n" : ")%s\n", on);
}

/* Prints device n from a line such as "device "CPU:1"". Returns false if the line is none. */
static bool program_device(const char *line, int n, bool json) {
  if (strncmp(line, "device ", 7)) return false;
  if (json)
    printf("{\"device\":%d,\"name\":%s}\n", n, line + 7);
  else
    printf("device %d %s\n", n, line + 7);
  return true;
}

/* Prints a captured program's inputs and outputs, from the lines of its text before the first step. Memories
 * are skipped, because they are the file's tensors. */
static void program_lines(const char *text, bool json) {
  size_t steps = 0;
  int devices = 0;
  Sizes sizes = {.n = 0};
  for (const char *next; *text; text = next) {
    char line[4400]; /* a name has at most 4,096 bytes */
    size_t n = strcspn(text, "\n");
    next = text + n + (text[n] != 0);
    steps += !strncmp(text, "step ", 5) || !strncmp(text, "copy ", 5);
    snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : 0), text);
    if (steps || program_size(line, &sizes, json)) continue;
    if (program_device(line, devices, json))
      devices++;
    else
      program_value(line, &sizes, json);
  }
  printf(json ? "{\"steps\":%zu}\n" : "steps: %zu\n", steps);
}

/* wait is ended once the file is read, before anything is printed. */
static bool model_info(TgContext *ctx, const char *path, FileKind kind, bool json, CliWait *wait) {
  if (kind == SAFETENSORS) {
    TgState *s = tg_safe_load_file(ctx, path);
    TgValue *head = s ? tg_safe_load_metadata(tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1)), NULL) : NULL;
    const TgValue *meta = tg_value_get(head, "__metadata__");
    const char *format = tg_value_string(tg_value_get(meta, "format"), NULL);
    const char *program = tg_value_string(tg_value_get(meta, "program"), NULL);
    cli_wait_end(wait);
    bool is_program = program && format && !strcmp(format, "tinygrad.program");
    if (head) info_state_lines(path, is_program ? "captured program" : "safetensors", s, json);
    if (is_program) program_lines(program, json);
    for (size_t i = 0; i < tg_value_count(meta); i++)
      if (!is_program || strcmp(tg_value_string(tg_value_key(meta, i), NULL), "program"))
        value_line(tg_value_string(tg_value_key(meta, i), NULL), tg_value_at(meta, i), json);
    bool ok = head != NULL;
    tg_value_free(head), tg_state_free(s);
    return ok;
  }
  TgValue *v = kind == GGUF     ? tg_gguf_load_file(ctx, path)
               : kind == FOLDER ? tg_hf_load(ctx, path)
                                : tg_torch_load_file(ctx, path);
  const char *name = kind == GGUF ? "gguf" : kind == FOLDER ? "model folder" : "torch checkpoint";
  const TgValue *kv = kind == TORCH ? NULL : tg_value_get(v, "kv");
  const TgValue *tensors = kv ? tg_value_get(v, "tensors") : v;
  TgState *s = v ? tg_get_state(ctx, tensors, NULL) : NULL;
  bool ok = s != NULL;
  cli_wait_end(wait);
  if (ok) info_state_lines(path, name, s, json);
  for (size_t i = 0; kv && i < tg_value_count(tensors); i++)
    if (!json && tg_value_kind(tg_value_at(tensors, i)) == TG_KIND_OTHER)
      printf("%-40s  of a type that is not read here\n", tg_value_string(tg_value_key(tensors, i), NULL));
  for (size_t i = 0; i < tg_value_count(kv); i++)
    value_line(tg_value_string(tg_value_key(kv, i), NULL), tg_value_at(kv, i), json);
  tg_state_free(s), tg_value_free(v);
  return ok;
}

static int file_info(TgContext *ctx, const char *path, bool json, CliWait *wait) {
  FileKind model = info_kind_of(path);
  bool torch = model == TORCH, is_state = model == SAFETENSORS || model == GGUF || model == FOLDER;
  if (model && !torch && !is_state) {
    bool ok = info_file(ctx, path, model, json, wait, &torch);
    if (!torch) return ok ? CLI_OK : tg_error(ctx) ? cli_fail(ctx, "info") : CLI_FAILED;
    model = TORCH;
  }
  if (model) return model_info(ctx, path, model, json, wait) ? CLI_OK : cli_fail(ctx, "info");
  cli_wait_end(wait);
  FILE *f = fopen(path, "rb");
  size_t nbytes = 0;
  char *text = f ? cli_read(f, &nbytes) : NULL;
  if (!text) {
    fprintf(stderr, "tg info: cannot read %s: %s\n", path, errno ? strerror(errno) : "unknown error");
    if (f) fclose(f);
    return CLI_FAILED;
  }
  fclose(f);
  if (!nbytes || strlen(text) != nbytes) { /* a 0 byte: not a text */
    free(text);
    return cli_refuse(CLI_FAILED, "info", "%s: %s", path,
                      nbytes ? "a kind of file that is not known here; tg help info lists those that are"
                             : "an empty file");
  }
  const char *kind = tg_opt(ctx, text, .emit = "kind");
  if (kind)
    printf("%s: %s, as TG_DUMP and tg opt write it\n", path, kind);
  else
    fprintf(stderr, "tg info: %s is not known: as a graph in text form: %s\n", path, tg_errmsg(ctx));
  free(text);
  return kind ? CLI_OK : CLI_FAILED;
}

#ifndef TG_CLI_BUILT
#define TG_CLI_BUILT "not said"
#endif

typedef struct InfoOptions {
  bool json, models;
} InfoOptions;

static void fact_say(const char *name, const char *text, bool json) {
  if (json) {
    printf("{\"name\":"), cli_json_text(stdout, name);
    printf(",\"value\":"), cli_json_text(stdout, text), puts("}");
  } else
    printf("%-14s  %s\n", name, *text ? text : "-");
}

static int run_info(const void *options, char **argument, int n) {
  const InfoOptions *o = options;
  if (o->models && n) return cli_refuse(CLI_USAGE, "info", "--models and a FILE cannot both be");
  if (o->models) return hub_models(o->json);
  CliWait *wait = cli_wait_begin("opening the device");
  TgContext *ctx = tg_open_with(.log = cli_log);
  const char *name, *text;
  int rc = ctx ? CLI_OK : CLI_FAILED;
  bool file = n && ctx && !tg_error(ctx);
  if (file)
    cli_wait_what(wait, "reading the file");
  else
    cli_wait_end(wait);
  if (file)
    rc = file_info(ctx, argument[0], o->json, wait);
  else if (n)
    rc = cli_fail(ctx, "info");
  else
    for (int i = 0; (text = tg_info(ctx, i, &name)); i++) {
      fact_say(name, text, o->json);
      if (!strcmp(name, "built with")) fact_say("tg has", TG_CLI_BUILT, o->json);
    }
  tg_close(ctx);
  return rc;
}

static const CliOption options[] = {
    CLI_FLAG_OF(InfoOptions, models, "models",
                "list the models by name that are on this disk (tg help fetch)"),
    CLI_FLAG_OF(InfoOptions, json, "json", "an object per fact or tensor, one a line")};

const CliCommand command_info = {
    .name = "info",
    .summary = "facts about this build, its cache and its environment; or about a file",
    .arguments = "[FILE]",
    .models = 1,
    .most = 1,
    CLI_TAKES(InfoOptions, options),
    .run = run_info,
    .more =
        "FILE: safetensors, torch, gguf, a folder in Hugging Face's form, ONNX (its operators too, and which "
        "of them are not here), npy, npz, zip, tar, idx, gz, or a graph as TG_DUMP writes it."};
