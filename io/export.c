/* export.c: a captured function as files of C (tg_jit_to_c). In: a capture. Out: PATH.c and PATH.h and, if
 * requested, a file of the weights and PATH.S, which includes that file. Either all of them are written,
 * or none. */
#include "io_private.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

enum { HEADER, SOURCE, WEIGHTS, ASSEMBLER, FILES, LONGEST_PATH = 4000, ROOM = 2048 };

typedef struct Out {
  TgContext *ctx;
  char path[FILES][LONGEST_PATH + 4];
  const void *at[FILES];
  size_t nbytes[FILES];
  NewFile file[FILES];
  int n;
  char assembler[ROOM];
} Out;

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Makes an identifier from the last part of a path. */
static void name_of(const char *path, char *name, size_t cap) {
  size_t n = 0;
  for (const char *p = base_name(path); *p && n + 2 < cap; p++) {
    bool fits = (unsigned char)*p < 128 && (isalnum((unsigned char)*p) || *p == '_');
    if (!n && isdigit((unsigned char)*p)) name[n++] = 'm';
    name[n++] = fits ? *p : '_';
  }
  name[n] = 0;
}

static bool io_failed(Out *o, int i) {
  ctx_fail(o->ctx, TG_ERR_IO, "export: %.600s: %s", o->path[i], strerror(errno));
  return false;
}

/* All files are written beside their places before the first one is moved to its place. */
static bool files_written(Out *o) {
  bool ok = true;
  for (int i = 0; ok && i < o->n; i++)
    ok = (file_begin(&o->file[i], o->path[i]) && file_write(&o->file[i], o->at[i], o->nbytes[i])) ||
         io_failed(o, i);
  for (int i = 0; i < o->n; i++) {
    bool done = file_end(&o->file[i], ok);
    if (ok && !done) ok = io_failed(o, i);
  }
  return ok;
}

static bool texts_made(TgJit *jit, const TgExportOptions *e, const char *name, const char *header,
                       TgCText *c) {
  TgContext *ctx = tg_jit_context(jit);
  size_t n = tg_state_count(e->state);
  const char **names = tg_alloc(ctx, (n + 1) * sizeof *names);
  for (size_t i = 0; names && i < n; i++)
    tg_state_at(e->state, i, &names[i]);
  TgStatus s = names ? tg_jit_to_c(jit, c, .name = name, .header = header, .names = names,
                                   .tensors = tg_get_parameters(e->state), .count = (int)n,
                                   .own_math = e->own_math, .target = e->target, .vectors = e->vectors,
                                   .linked = e->incbin, .weights_apart = e->weights != NULL,
                                   .big_endian = e->big_endian, .threads = e->threads, .max_ram = e->max_ram,
                                   .same_bits = e->same_bits, .streamed = e->streamed)
                     : tg_error(ctx);
  tg_free(ctx, names);
  return !s;
}

/* PATH may end in .c, as the source's does. */
static bool paths_set(Out *o, const char *path, const char *weights, bool incbin) {
  size_t n = strlen(path);
  if (n > 2 && !strcmp(path + n - 2, ".c")) n -= 2;
  if (!n || n > LONGEST_PATH || path[n - 1] == '/' || (weights && strlen(weights) > LONGEST_PATH))
    return ctx_fail(o->ctx, TG_ERR_VALUE, "export: '%.300s' is no name of a file", path), false;
  snprintf(o->path[HEADER], sizeof o->path[HEADER], "%.*s.h", (int)n, path);
  snprintf(o->path[SOURCE], sizeof o->path[SOURCE], "%.*s.c", (int)n, path);
  if (weights) snprintf(o->path[WEIGHTS], sizeof o->path[WEIGHTS], "%s", weights);
  if (incbin) snprintf(o->path[ASSEMBLER], sizeof o->path[ASSEMBLER], "%.*s.S", (int)n, path);
  o->n = incbin ? FILES : weights ? ASSEMBLER : WEIGHTS;
  return true;
}

/* PATH.S is for the assembler of gcc or clang, which must run in the folder of the weights file or find it
 * through -Wa,-I. */
static bool assembler_put(Out *o, const char *name) {
  const char *file = base_name(o->path[WEIGHTS]);
  bool fits = strlen(file) < ROOM / 2;
  for (const char *p = file; *p; p++)
    fits = fits && *p != '"' && *p != '\\' && (unsigned char)*p >= ' ';
  if (!fits) return ctx_fail(o->ctx, TG_ERR_VALUE, "export: '%.300s' is no name for .incbin", file), false;
  snprintf(o->assembler, ROOM,
           "/* The weights of %s, where NAME_reset finds them. */\n"
           "#define JOINED(a, b) a##b\n#define SYMBOL(a, b) JOINED(a, b)\n"
           "#define WEIGHTS SYMBOL(__USER_LABEL_PREFIX__, %s_weights)\n"
           "#if defined __APPLE__\n  .const\n#elif defined _WIN32\n  .section .rdata,\"dr\"\n#else\n"
           "  .section .rodata.weights,\"a\",%%progbits\n#endif\n"
           "  .balign 64\n  .globl WEIGHTS\nWEIGHTS:\n  .incbin \"%s\"\n"
           "#if defined __linux__ && defined __ELF__\n  .section .note.GNU-stack,\"\",%%progbits\n#endif\n",
           name, name, file);
  o->at[ASSEMBLER] = o->assembler;
  o->nbytes[ASSEMBLER] = strlen(o->assembler);
  return true;
}

static bool exported(Out *o, TgJit *jit, const char *path, const TgExportOptions *e, TgCText *c) {
  char name[65];
  if (!path) return ctx_fail(o->ctx, TG_ERR_VALUE, "export: no path"), false;
  if (e->incbin && !e->weights) return ctx_fail(o->ctx, TG_ERR_VALUE, "export: incbin is of .weights"), false;
  if (!paths_set(o, path, e->weights, e->incbin)) return false;
  if ((e->inputs || e->outputs) && tg_jit_name(jit, e->inputs, e->outputs)) return false;
  char stem[LONGEST_PATH + 4];
  snprintf(stem, sizeof stem, "%.*s", (int)(strlen(o->path[HEADER]) - 2), o->path[HEADER]);
  name_of(stem, name, sizeof name);
  const char *called = e->name ? e->name : name;
  if (e->incbin && !assembler_put(o, called)) return false;
  if (!texts_made(jit, e, called, base_name(o->path[HEADER]), c)) return false;
  o->at[HEADER] = c->header;
  o->nbytes[HEADER] = strlen(c->header);
  o->at[SOURCE] = c->source;
  o->nbytes[SOURCE] = strlen(c->source);
  o->at[WEIGHTS] = c->weights;
  o->nbytes[WEIGHTS] = c->weights_nbytes;
  return files_written(o);
}

TgStatus tg_export_opt(TgJit *jit, const char *path, const TgExportOptions *opt) {
  TgExportOptions e;
  TgCText c = {0};
  TgContext *ctx = tg_jit_context(jit);
  if (!jit || tg_options_read(ctx, "export", "TgExportOptions", &e, sizeof e, opt)) return TG_ERR_VALUE;
  if (tg_error(ctx)) return tg_error(ctx);
  Out *o = tg_alloc(ctx, sizeof *o);
  if (!o) return tg_error(ctx);
  *o = (Out){.ctx = ctx};
  for (int i = 0; i < FILES; i++)
    o->file[i].fd = -1;
  if (exported(o, jit, path, &e, &c) && e.about) *e.about = c;
  tg_free(ctx, o);
  return tg_error(ctx);
}
