/* checked.c: see checked.h. Values are written as integers of the element's width, which mean the same in
 * every byte order. */
#define _GNU_SOURCE
#include "export/checked.h"
#include <stdlib.h>
#include <string.h>

static FILE *opened_file(Checked *k, const char *name) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", k->folder, name);
  FILE *f = fopen(path, "wb");
  if (!f) k->failed = printf("checked: %s cannot be written\n", path) > 0;
  return f;
}

/* same: the first of two arrays has the bits of the second; nan: above this, without the sign, a value is
 * none. */
static const char beginning[] =
    "#include <stdint.h>\n"
    "static int is_nan(uint64_t v, uint64_t sign, uint64_t most) { return most && (v & (sign - 1)) > most; "
    "}\n"
    "static uint64_t number(const void *at, int size) {\n"
    "  if (size == 1) return *(const uint8_t *)at;\n  if (size == 2) return *(const uint16_t *)at;\n"
    "  if (size == 4) return *(const uint32_t *)at;\n  return *(const uint64_t *)at;\n}\n"
    "static int same(const void *a, const void *b, long n, int size, uint64_t most) {\n"
    "  uint64_t sign = (uint64_t)1 << (8 * size - 1);\n  long i;\n"
    "  for (i = 0; i < n; i++) {\n"
    "    uint64_t x = number((const char *)a + i * size, size), y = number((const char *)b + i * size, "
    "size);\n"
    "    if (x != y && !(is_nan(x, sign, most) && is_nan(y, sign, most))) return 0;\n  }\n  return 1;\n}\n";

static uint64_t most_number(TgDType d) {
  switch (d) {
  case TG_F16: return 0x7c00;
  case TG_BF16: return 0x7f80;
  case TG_F32: return 0x7f800000;
  case TG_F64: return 0x7ff0000000000000;
  default: return 0;
  }
}

static void put_words(FILE *f, const char *name, const void *at, size_t n, size_t size) {
  fprintf(f, "static uint%zu_t %s[] = {\n", 8 * size, name);
  for (size_t i = 0; i < n; i++) {
    uint64_t v = 0;
    memcpy(&v, (const char *)at + i * size, size);
    fprintf(f, "%s0x%llx%s", i % 8 ? "," : i ? ",\n" : "", (unsigned long long)v, size == 8 ? "ull" : "u");
  }
  fprintf(f, n ? "};\n" : "0};\n");
}

static void put_tensor(Checked *k, const char *name, TgTensor *t) {
  size_t n = tg_nbytes(t), size = tg_dtype_size(tg_dtype(t));
  char *v = malloc(n + 1);
  if (n && tg_read(t, v, n)) k->failed = printf("checked: %s\n", tg_errmsg(tg_jit_context(k->jit))) > 0;
  put_words(k->model, name, v, n / size, size);
  free(v);
}

bool checked_begin(Checked *k, const char *folder) {
  *k = (Checked){.folder = folder};
  k->main = opened_file(k, "main.c");
  if (k->main)
    fprintf(k->main, "/* in each word the low byte is the first: 1; the high one: 0 */\n"
                     "int little_endian(void);\nint little_endian(void) {\n"
                     "  union { unsigned u; unsigned char b[sizeof(unsigned)]; } one;\n"
                     "  one.u = 1;\n  return one.b[0];\n}\n");
  return k->main;
}

static void put_text(Checked *k, const char *name, const char *ending, const char *text) {
  char path[80];
  snprintf(path, sizeof path, "%s.%s", name, ending);
  FILE *f = opened_file(k, path);
  if (f && (fputs(text, f) < 0) | (fclose(f) != 0)) k->failed = true;
}

/* The text in one byte order; its weights as a list of bytes, which lie at a multiple of 8. */
static bool text_put(Checked *k, const char *name, TgCOptions o) {
  TgCText t;
  o.size = sizeof o;
  o.name = name;
  if (tg_jit_to_c_opt(k->jit, &t, &o)) {
    k->failed = printf("checked: %s\n", tg_errmsg(tg_jit_context(k->jit))) > 0;
    return false;
  }
  put_text(k, name, "h", t.header), put_text(k, name, "c", t.source);
  fprintf(k->model, "#include \"%s.h\"\nstatic %s m_%s;\n", name, name, name);
  if (!o.weights_apart) return true;
  const unsigned char *w = t.weights;
  fprintf(k->model, "static const union { unsigned char bytes[%zu]; double d; uint64_t u; } file_%s = {{",
          t.weights_nbytes + 1, name);
  for (size_t i = 0; i < t.weights_nbytes; i++)
    fprintf(k->model, i % 24 ? "%d," : "\n%d,", w[i]);
  fprintf(k->model, "0}};\n");
  return true;
}

void checked_model(Checked *k, TgJit *jit, TgCOptions o) {
  char name[40], path[60];
  snprintf(name, sizeof name, "n%d", k->models++);
  snprintf(path, sizeof path, "check_%s.c", name);
  k->jit = jit;
  k->both = o.weights_apart;
  k->turns = 0;
  k->model = opened_file(k, path);
  if (!k->model) return;
  fputs(beginning, k->model);
  if (!text_put(k, name, o)) return;
  if (!k->both) return;
  strcat(name, "_big");
  o.big_endian = true;
  text_put(k, name, o);
}

void checked_turn(Checked *k, TgTensor *const *in, int nin, TgTensor *const *out, int nout) {
  char name[60];
  for (int i = 0; k->model && i < nin + nout; i++) {
    snprintf(name, sizeof name, i < nin ? "in_%d_%d" : "want_%d_%d", k->turns, i < nin ? i : i - nin);
    put_tensor(k, name, i < nin ? in[i] : out[i - nin]);
  }
  if (!k->model) return;
  FILE *f = k->model;
  fprintf(f, "static int turn_%d(int little) {\n  int wrong;\n", k->turns);
  for (int i = 0; i < nout; i++) {
    size_t n = tg_nbytes(out[i]) / tg_dtype_size(tg_dtype(out[i]));
    fprintf(f, "  static uint%zu_t got_%d[%zu];\n", 8 * tg_dtype_size(tg_dtype(out[i])), i, n + 1);
  }
  fprintf(f, "  (void)little;\n");
  for (int big = 0; big <= k->both; big++) {
    fprintf(f, "  %swrong = n%d%s_run(&m_n%d%s", k->both ? big ? "if (!little) " : "if (little) " : "",
            k->models - 1, big ? "_big" : "", k->models - 1, big ? "_big" : "");
    for (int i = 0; i < nin; i++)
      fprintf(f, ", (void *)in_%d_%d", k->turns, i);
    for (int i = 0; i < nout; i++)
      fprintf(f, ", (void *)got_%d", i);
    fprintf(f, ");\n");
  }
  fprintf(f, "  if (wrong) return 90 + wrong;\n");
  for (int i = 0; i < nout; i++) {
    TgDType d = tg_dtype(out[i]);
    size_t size = tg_dtype_size(d);
    fprintf(f, "  if (!same(got_%d, want_%d_%d, %zu, %zu, 0x%llxu)) return %d;\n", i, k->turns, i,
            tg_nbytes(out[i]) / size, size, (unsigned long long)most_number(d), i + 1);
  }
  fprintf(f, "  return 0;\n}\n");
  k->turns++;
}

/* What was written for the other byte order is refused, not read. */
static void put_orders(Checked *k, int n) {
  if (!k->both) {
    fprintf(k->model, "  n%d_reset(&m_n%d);\n", n, n);
    return;
  }
  for (int big = 0; big < 2; big++) {
    const char *end = big ? "_big" : "";
    fprintf(k->model, "  n%d%s_reset(&m_n%d%s, file_n%d%s.bytes);\n", n, end, n, end, n, end);
    fprintf(k->model, "  if ((m_n%d%s.weights != 0) != (%slittle)) return 80;\n", n, end, big ? "!" : "");
  }
}

void checked_model_end(Checked *k) {
  int n = k->models - 1;
  if (!k->model || !k->main) return;
  fprintf(k->model, "int check_n%d(int little);\nint check_n%d(int little) {\n  int wrong = 0;\n", n, n);
  put_orders(k, n);
  for (int i = 0; i < k->turns; i++)
    fprintf(k->model, "  if (!wrong && (wrong = turn_%d(little)) != 0) wrong += %d;\n", i, 100 * i);
  fprintf(k->model, "  return wrong;\n}\n");
  if (fclose(k->model)) k->failed = true;
  k->model = NULL;
  fprintf(k->main, "int check_n%d(int little);\n", n);
}

bool checked_end(Checked *k) {
  if (!k->main) return false;
  fprintf(k->main,
          "\n/* 0: all is as it should be; else model * 10000 + turn * 100 + what, where model counts from "
          "1 */\nint check_all(void);\nint check_all(void) {\n  int wrong, little = little_endian();\n");
  for (int i = 0; i < k->models; i++)
    fprintf(k->main, "  if ((wrong = check_n%d(little)) != 0) return %d + wrong;\n", i, 10000 * (i + 1));
  fprintf(k->main,
          "  return 0;\n}\n#ifndef NO_MAIN\n#include <stdio.h>\nint main(void) {\n"
          "  int wrong = check_all();\n  if (wrong) printf(\"wrong: %%d\\n\", wrong);\n"
          "  else printf(\"%%s endian, %%d bits: the same\\n\", little_endian() ? \"little\" : \"big\",\n"
          "              (int)(8 * sizeof(void *)));\n  return wrong != 0;\n}\n#endif\n");
  if (fclose(k->main)) k->failed = true;
  k->main = NULL;
  return !k->failed;
}

bool checked_run(const char *folder, const char *what, const char *commands) {
  size_t n = strlen(folder) + strlen(commands) + 20;
  char *line = malloc(n);
  snprintf(line, n, "cd %s && { %s; }", folder, commands);
  int status = system(line);
  if (status) printf("%s: status %d of: %s\n", what, status, line);
  free(line);
  return !status;
}
