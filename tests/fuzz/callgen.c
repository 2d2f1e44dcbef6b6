/* callgen.c: tg_abi.json -> C: one case of a switch for every function that a program may call at any time,
 * with arguments by their types as tests/fuzz/calls.h makes them. The compiler then checks that the file and
 * the headers agree. usage: callgen tg_abi.json > api_calls.c */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include "tests/json.h"

static char *json;

static bool is_one_of(const char *s, const char *const *list) {
  for (; *list; list++)
    if (!strcmp(s, *list)) return true;
  return false;
}

static bool ends(const char *s, const char *with) {
  size_t n = strlen(s), k = strlen(with);
  return n >= k && !strcmp(s + n - k, with);
}

/* What would end what the caller still holds, or needs more than a call. */
static const char *const left_out[] = {
    "tg_open",    "tg_close",    "tg_scope_begin",   "tg_scope_end", "tg_alloc",      "tg_free",
    "tg_release", "tg_jit_free", "tg_watch_kernels", "tg_borrow",    "tg_sequential", "tg_options_read",
    NULL};
static const char *const steps_of_a_graph[] = {"steps", "k", NULL}; /* as many nodes as it says */

static bool of_tg_h(const char *object) { /* what the other headers have takes structs of their own making */
  char header[64];
  text_of(member(object, "header"), header, sizeof header);
  return !strcmp(header, "tg.h");
}

static void argument(const char *type, const char *name, bool counts, bool small) {
  if (ends(type, "Options *")) {
    printf("in_%.*s()", (int)(strlen(type) - strlen("const ") - 2), type + strlen("const "));
    return;
  }
  static const char *const by_type[][2] = {{"TgTensor *", "in_tensor()"},
                                           {"const TgTensor *", "in_tensor()"},
                                           {"TgContext *", "in_context()"},
                                           {"const TgContext *", "in_context()"},
                                           {"bool", "in_bool()"},
                                           {"double", "in_double()"},
                                           {"int64_t *", "out_int64()"},
                                           {"const double [3]", "in_doubles()"},
                                           {"const double *", "in_doubles()"},
                                           {"double *", "out_doubles()"},
                                           {"const char *", "in_text()"},
                                           {"const char **", "out_texts()"},
                                           {"const char *const *", "in_devices()"},
                                           {"const void *", "in_bytes()"},
                                           {"TgTensor *const *", "in_tensors()"},
                                           {"TgTensor **", "out_tensors()"},
                                           {"const TgVariable *", "in_variable()"},
                                           {"TgVariable *", "in_variable()"},
                                           {"TgJit *", "in_jit()"},
                                           {"const TgIndex *", "in_index()"},
                                           {"const TgNamedSize *", "in_named()"},
                                           {"TgGradientFn", "in_gradient_fn()"},
                                           {"TgJitFn", "in_jit_fn()"}};
  for (size_t i = 0; i < sizeof by_type / sizeof *by_type; i++)
    if (!strcmp(by_type[i][0], type)) {
      printf("%s", by_type[i][1]);
      return;
    }
  if (!strcmp(type, "const int64_t *"))
    printf("in_sizes(%d)", small);
  else if (!strcmp(type, "void *"))
    printf(strcmp(name, "user") ? "out_bytes()" : "NULL");
  else if (!strcmp(type, "int") || !strcmp(type, "int64_t") || !strcmp(type, "size_t") ||
           !strcmp(type, "uint64_t"))
    printf("(%s)%s", type,
           counts && *type == 's'                                 ? "in_room()"
           : counts || small || is_one_of(name, steps_of_a_graph) ? "in_count()"
                                                                  : "in_int64()");
  else if (named(member(json, "enums"), type))
    printf("(%s)in_enum()", type);
  else if (strstr(type, "(*"))
    printf("NULL");
  else if (ends(type, "*"))
    printf("NULL");
  else
    printf("(%s){0}", type);
}

static bool is_array(const char *type) {
  return ends(type, "*const *") || ends(type, "**") || !strcmp(type, "const int64_t *") ||
         !strcmp(type, "const TgIndex *") || !strcmp(type, "const TgNamedSize *");
}

static void call(int i, const char *f) {
  char name[128], returns[128], type[16][128], param[16][128];
  int n = 0;
  text_of(member(f, "name"), name, sizeof name), text_of(member(f, "returns"), returns, sizeof returns);
  bool data = false;
  for
    each_of(member(f, "params"), p) {
      text_of(member(p, "type"), type[n], sizeof type[n]),
          text_of(member(p, "name"), param[n], sizeof param[n]);
      data = data || (!strcmp(param[n], "data") && ends(type[n], "*"));
      if (++n == 16) break;
    }
  if (!of_tg_h(f) || is_one_of(name, left_out)) return;
  bool tensor = !strcmp(returns, "TgTensor *");
  bool variable = !strcmp(returns, "TgVariable *");
  bool jit = !strcmp(returns, "TgJit *");
  printf("  case %d: at_call(\"%s\"); %s%s(", i, name,
         tensor     ? "made_tensor("
         : variable ? "made_variable("
         : jit      ? "made_jit("
                    : "(void)",
         name);
  for (int k = 0; k < n; k++) {
    bool counts = (k + 1 < n && is_array(type[k + 1])) || (k && is_array(type[k - 1]));
    printf("%s", k ? ", " : "");
    argument(type[k], param[k], counts, data);
  }
  printf(")%s; break;\n", tensor || variable || jit ? ")" : "");
}

/* Every field by its type, and often as one that was written; now and then none at all, or the size of none.
 */
static void option_struct(const char *s) {
  char name[128], type[128], field[128];
  text_of(member(s, "name"), name, sizeof name);
  if (!of_tg_h(s) || !ends(name, "Options") || !strcmp(name, "TgOpenOptions")) return;
  printf("static const %s *in_%s(void) {\n  static %s o;\n  if (rarely()) return NULL;\n  memset(&o, 0, "
         "sizeof o);\n",
         name, name, name);
  printf("  if (often()) o.set = rarely() ? in_text() : \"");
  for
    each_of(member(s, "fields"), p) {
      text_of(member(p, "name"), field, sizeof field);
      printf(".%s,", field);
    }
  printf("\";\n");
  for
    each_of(member(s, "fields"), p) {
      text_of(member(p, "type"), type, sizeof type), text_of(member(p, "name"), field, sizeof field);
      if (!strcmp(field, "size") || !strcmp(field, "set") || !strcmp(field, "end_")) continue;
      printf("  if (often()) o.%s = ", field);
      if (!strcmp(type, "TgAxes"))
        printf("in_axes()");
      else if (!strcmp(type, "TgSizes"))
        printf("in_spatial()");
      else
        argument(type, field, false, false);
      printf(";\n");
    }
  printf("  o.size = rarely() ? sizeof(size_t) : sizeof o;\n  return &o;\n}\n");
}

int main(int argc, char **argv) {
  FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;

  enum { MOST = 1 << 22 };

  size_t n = f && (json = calloc(1, MOST)) ? fread(json, 1, MOST - 1, f) : 0;
  if (!n) return fprintf(stderr, "usage: callgen tg_abi.json > api_calls.c\n"), 2;
  fclose(f);
  printf("/* written by tests/fuzz/callgen.c from tg_abi.json */\n#include \"tests/fuzz/calls.h\"\n");
  for
    each_of(member(json, "structs"), s) option_struct(s);
  int count = 0;
  printf("void api_call(int i) {\n  switch (i) {\n");
  for
    each_of(member(json, "functions"), p) call(count++, p);
  printf("  }\n}\nconst int api_calls = %d;\n", count);
  free(json);
  return 0;
}
