/* exported.c: see exported.h. The function is called through a few lines beside it, which take pointers. */
#define _GNU_SOURCE
#include "export/exported.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool put_file(const char *folder, const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  bool ok = f && fputs(text, f) >= 0;
  if (f && fclose(f)) ok = false;
  if (!ok) printf("exported: %s cannot be written\n", path);
  return ok;
}

static void put_driver(FILE *f, TgJit *jit, bool apart, bool shares, bool streamed) {
  TgJitValue v;
  int n = 0, sizes = 0;
  fprintf(f,
          "#include \"model.c\"\n#include <stddef.h>\nsize_t bytes_of(void);\nsize_t bytes_of(void) { return "
          "sizeof(model); }\n");
  if (streamed)
    fprintf(f, "typedef int Bring(void *, int64_t, size_t);\nvoid stream_of(void *m, Bring *bring);\n"
               "void stream_of(void *m, Bring *bring) { model_reset((model *)m, bring); }\n");
  fprintf(f,
          "void reset_of(void *m, const void *w);\nvoid reset_of(void *m, const void *w) { (void)w; "
          "model_reset((model *)m%s); }\n",
          streamed ? ", NULL"
          : apart  ? ", w"
                   : "");
  if (shares)
    fprintf(f, "typedef void Run(void (*)(void *, int), int, void *);\nvoid spread_of(void *m, Run *run);\n"
               "void spread_of(void *m, Run *run) { ((model *)m)->run = run; }\n");
  fprintf(f, "int run_of(void *m, void *const *v);\nint run_of(void *m, void *const *v) { (void)v; return "
             "model_run((model *)m");
  for (size_t i = 0; tg_jit_input(jit, i, &v); i++)
    fprintf(f, ", v[%d]", n++);
  for (size_t i = 0; tg_jit_output(jit, i, &v); i++)
    fprintf(f, ", v[%d]", n++);
  for (size_t i = 0; tg_jit_variable(jit, i); i++, sizes++)
    fprintf(f, ", *(const int64_t *)v[%d]", n + sizes);
  fprintf(f, "); }\n");
}

static bool texts_put(TgJit *jit, const char *folder, TgCOptions o, Exported *e) {
  char path[600];
  o.size = sizeof o;
  o.name = "model";
  if (tg_jit_to_c_opt(jit, &e->about, &o)) {
    printf("exported: %s\n", tg_errmsg(tg_jit_context(jit)));
    return false;
  }
  e->gnu = strstr(e->about.header, "-std=gnu11") != NULL;
  const char *builtin = strstr(e->about.source, "__builtin");
  if (builtin && !strncmp(builtin, "__builtin_fmaf", 14)) builtin = strstr(builtin + 14, "__builtin");
  if (!e->gnu && (builtin || strstr(e->about.source, "vector_size"))) {
    printf("exported: a text with extensions\n");
    return false;
  }
  if (o.weights_apart || o.streamed) {
    e->weights = malloc(e->about.weights_nbytes + 8);
    if (e->about.weights_nbytes) memcpy(e->weights, e->about.weights, e->about.weights_nbytes);
  }
  bool ok = put_file(folder, "model.h", e->about.header) && put_file(folder, "model.c", e->about.source);
  snprintf(path, sizeof path, "%s/driver.c", folder);
  FILE *f = ok ? fopen(path, "wb") : NULL;
  if (f)
    put_driver(f, jit, o.weights_apart || o.streamed, strstr(e->about.source, "static void spread(") != NULL,
               o.streamed);
  return f && !fclose(f);
}

static bool built(const char *folder, const char *cc, bool gnu, Exported *e) {
  char line[2000];
  static int number;
  char library[600];
  snprintf(library, sizeof library, "%s/m%d.so", folder, number++);
  snprintf(line, sizeof line, "cd %s && %s %s -fPIC -shared -o %s driver.c -lm", folder, cc,
           gnu ? "-std=gnu11 -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-warning-option "
                 "-Wno-maybe-uninitialized"
               : "-std=c99 -pedantic -Wall -Wextra -Wconversion -Werror",
           library);
  if (system(line)) {
    printf("exported: %s\n", line);
    return false;
  }
  e->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  unlink(library);
  if (!e->library) return printf("exported: %s\n", dlerror()), false;
  size_t (*bytes_of)(void);
  *(void **)&bytes_of = dlsym(e->library, "bytes_of");
  *(void **)&e->reset = dlsym(e->library, "reset_of");
  *(void **)&e->stream = dlsym(e->library, "stream_of");
  *(void **)&e->spread_by = dlsym(e->library, "spread_of");
  *(void **)&e->run = dlsym(e->library, "run_of");
  e->nbytes = bytes_of();
  e->m = malloc(e->nbytes);
  memset(e->m, 0xcd, e->nbytes); /* nothing may depend on what was there */
  e->reset(e->m, e->weights);
  return true;
}

bool exported_new(Exported *e, TgJit *jit, const char *folder, const char *cc, TgCOptions o) {
  *e = (Exported){0};
  bool ok = texts_put(jit, folder, o, e) && built(folder, cc, e->gnu, e);
  e->about.source = e->about.header = "";
  if (!ok) exported_free(e);
  return ok;
}

int exported_run(Exported *e, void *m, void *const *values) { return e->run(m, values); }

void exported_free(Exported *e) {
  free(e->m), free(e->weights);
  if (e->library) dlclose(e->library);
  *e = (Exported){0};
}

bool exported_accepted(TgJit *jit, const char *folder, const char *const *commands, int n, TgCOptions o) {
  Exported e = {0};
  bool ok = texts_put(jit, folder, o, &e);
  for (int i = 0; ok && i < n; i++) {
    char line[2000];
    snprintf(line, sizeof line, "cd %s && %s", folder, commands[i]);
    ok = !system(line);
    if (!ok) printf("exported: %s\n", line);
  }
  exported_free(&e);
  return ok;
}
