/* parity.c: docs/api-parity.txt, the headers and the tests -> docs/api-parity.md. A row's state is not
 * written by hand: it is done when each of its functions is declared in a public header and called in a test.
 * Out: the table, and on stderr each row that claims what is not so (exit 1).
 *
 *   parity [--check] ROOT
 *
 * --check: nothing is written; exit 1 if the table in ROOT/docs is not the one that would be. */
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *root;

static char *read_file(const char *dir, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s/%s", root, dir, name);
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  char *s = malloc((size_t)n + 1);
  if (s && fread(s, 1, (size_t)n, f) == (size_t)n) s[n] = 0;
  fclose(f);
  return s;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool word_at(const char *text, const char *p, const char *w, size_t n) {
  return !strncmp(p, w, n) && !is_word(p[n]) && (p == text || !is_word(p[-1]));
}

/* ---- declared: `name(` after TG_API, or a macro or an inline function of that name */
static char *headers[3];

static bool declared(const char *name) {
  size_t n = strlen(name);
  char opt[520];
  snprintf(opt, sizeof opt, "%s_opt", name);
  for (int h = 0; h < 3; h++)
    for (const char *p = headers[h]; p && (p = strstr(p, name)) != NULL; p++)
      if ((word_at(headers[h], p, name, n) && (p[n] == '(' || p[n] == ';' || p[n] == ',' || p[n] == ' ')) ||
          word_at(headers[h], p, opt, n + 4))
        return true;
  return false;
}

/* ---- called: where. test_api.c names functions in lists, F(add), or through run_NAME. */
typedef struct Test {
  char file[64];
  char *text;
} Test;

static Test tests[128];
static int ntests;

static int by_name(const void *a, const void *b) {
  return strcmp(((const Test *)a)->file, ((const Test *)b)->file);
}

static void load_tests(const char *dir) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", root, dir);
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d)) && ntests < 128;) {
    size_t n = strlen(e->d_name);
    if (n < 3 || n > 63 || strcmp(e->d_name + n - 2, ".c")) continue;
    Test *t = &tests[ntests];
    if (!(t->text = read_file(dir, e->d_name))) continue;
    memcpy(t->file, e->d_name, n - 2), t->file[n - 2] = 0;
    ntests++;
  }
  if (d) closedir(d);
}

/* the name of the function that p is in */
static void enclosing(const char *text, const char *p, char *out, size_t cap) {
  *out = 0;
  while (p > text && !(p[-1] == '\n' && (!strncmp(p, "static ", 7) || !strncmp(p, "RUN(", 4))))
    p--;
  if (!strncmp(p, "RUN(", 4)) {
    snprintf(out, cap, "%.*s", (int)strcspn(p + 4, ")"), p + 4);
    return;
  }
  const char *open = strchr(p, '(');
  if (!open) return;
  const char *b = open;
  while (b > p && is_word(b[-1]))
    b--;
  snprintf(out, cap, "%.*s", (int)(open - b), b);
}

static bool tested(const char *name, char *where, size_t cap) {
  char opt[520], listed[520];
  size_t n = strlen(name);
  snprintf(opt, sizeof opt, "%s_opt", name), snprintf(listed, sizeof listed, "F(%s)", name + 3);
  for (int i = 0; i < ntests; i++) {
    const char *text = tests[i].text;
    if (!strcmp(tests[i].file, "test_api") && strstr(text, listed))
      return snprintf(where, cap, "test_api: %s", name + 3), true;
    for (const char *p = text; (p = strstr(p, name)) != NULL; p++) {
      bool call = word_at(text, p, name, n) &&
                  (p[n] == '(' || (p[n] == '"' && p[-1] == '"') || p[n] == ',' || p[n] == ')' || p[n] == '}');
      if (!call && !word_at(text, p, opt, n + 4)) continue;
      char f[80];
      enclosing(text, p, f, sizeof f);
      return snprintf(where, cap, *f ? "%s: %s" : "%s", tests[i].file, f), true;
    }
  }
  return false;
}

/* ---- rows */
typedef struct Row {
  char number[8], name[256], functions[512], note[900];
  int state; /* 0 open, 1 done, 2 refused, 3 same */
  char where[160];
} Row;

static Row rows[400];
static int nrows;

static char *trim(char *s) {
  while (isspace((unsigned char)*s))
    s++;
  char *e = s + strlen(s);
  while (e > s && isspace((unsigned char)e[-1]))
    *--e = 0;
  return s;
}

static void copy(char *to, size_t cap, const char *s) { snprintf(to, cap, "%s", s); }

static bool load_rows(void) {
  char *text = read_file("docs", "api-parity.txt");
  for (char *line = text ? strtok(text, "\n") : NULL; line; line = strtok(NULL, "\n")) {
    if (!isdigit((unsigned char)*line) || nrows == 400) continue;
    Row *r = &rows[nrows++];
    char *field[4] = {line, "", "", ""};
    for (int i = 1; i < 4; i++) {
      char *bar = strchr(field[i - 1], '|');
      if (!bar) break;
      *bar = 0, field[i] = bar + 1;
    }
    copy(r->number, sizeof r->number, trim(field[0])), copy(r->name, sizeof r->name, trim(field[1]));
    copy(r->functions, sizeof r->functions, *field[2] ? trim(field[2]) : ""),
        copy(r->note, sizeof r->note, *field[3] ? trim(field[3]) : "");
  }
  free(text);
  return nrows > 0;
}

static Row *row_named(const char *number) {
  for (int i = 0; i < nrows; i++)
    if (!strncmp(rows[i].number, number, strlen(rows[i].number)) && !is_word(number[strlen(rows[i].number)]))
      return &rows[i];
  return NULL;
}

static int wrong;

static void judge(Row *r) {
  if (!strncmp(r->note, "refused:", 8)) {
    r->state = 2;
    return;
  }
  if (!strncmp(r->note, "same as ", 8)) {
    r->state = 3;
    return;
  }
  if (!strncmp(r->note, "none:", 5)) {
    r->state = 1;
    return;
  }
  char list[512];
  copy(list, sizeof list, r->functions);
  bool all = *list != 0;
  for (char *f = list; *f;) {
    size_t n = strcspn(f, " ");
    bool last = !f[n];
    f[n] = 0;
    if (*f) {
      char where[160];
      if (!declared(f))
        fprintf(stderr, "api-parity.txt: %s: %s is not declared\n", r->number, f), wrong++, all = false;
      else if (!tested(f, where, sizeof where))
        fprintf(stderr, "api-parity.txt: %s: no test calls %s\n", r->number, f), wrong++, all = false;
      else if (!*r->where)
        copy(r->where, sizeof r->where, where);
    }
    f += n + !last;
    if (last) break;
  }
  r->state = all;
}

static void code(FILE *o, const char *list) { /* each word as `word` */
  for (const char *p = list; *p;) {
    size_t n = strcspn(p, " ");
    fprintf(o, "%s`%.*s`", p == list ? "" : " ", (int)n, p);
    p += n;
    while (*p == ' ')
      p++;
  }
}

static void print(FILE *o) {
  static const char *const groups[] = {"",
                                       "Construction and properties",
                                       "Reading back, storage, devices",
                                       "Graph, call and kernel entry points",
                                       "Dtype methods",
                                       "Creation",
                                       "Random",
                                       "Movement",
                                       "Indexing and item assignment",
                                       "Elementwise arithmetic, comparison, selection",
                                       "Elementwise math functions",
                                       "Activations",
                                       "Reductions",
                                       "Scans, sorting, selection by rank",
                                       "Gather, scatter, masks",
                                       "Matrix products and linear algebra",
                                       "Convolution, pooling, normalisation, resize",
                                       "Attention and losses",
                                       "Autograd",
                                       "Hashing",
                                       "Layers",
                                       "Optimizers and schedules",
                                       "State, files, data sets",
                                       "Program-level API"};
  int count[4] = {0};
  for (int i = 0; i < nrows; i++) {
    Row *r = &rows[i], *other = r->state == 3 ? row_named(r->note + 8) : NULL;
    if (r->state == 3 && other)
      r->state = other->state == 1 ? 1 : other->state, copy(r->where, sizeof r->where, other->where);
    count[r->state]++;
  }
  fprintf(o,
          "# The tensor API beside tinygrad's\n\nWritten by tools/parity from docs/api-parity.txt, the "
          "headers and the tests (`make parity`); a test\nfails when it is out of date.\n\n"
          "A row is **done** when each of its C functions is declared and a test calls it; the test named is "
          "the first.\n\n%d rows: %d done, %d refused, %d open.\n\n",
          nrows, count[1], count[2], count[0]);
  char *head = read_file("docs", "api-parity-head.md");
  if (head) fputs(head, o);
  free(head);
  int group = 0;
  for (int i = 0; i < nrows; i++) {
    Row *r = &rows[i];
    int g = atoi(r->number);
    if (g != group)
      fprintf(o,
              "\n## %d. %s\n\n| row | tinygrad | C | test | state, and what differs |\n| --- | --- | --- | "
              "--- | --- |\n",
              g, g < 24 ? groups[g] : ""),
          group = g;
    fprintf(o, "| %s | %s | ", r->number, r->name);
    code(o, r->functions);
    fprintf(o, " | %s | %s%s%s |\n", r->where,
            r->state == 1   ? "done"
            : r->state == 2 ? ""
                            : "open",
            *r->note && r->state != 2 ? "; " : "", r->note);
  }
}

int main(int argc, char **argv) {
  bool check = argc == 3 && !strcmp(argv[1], "--check");
  if (argc != 2 + check) return fprintf(stderr, "usage: parity [--check] ROOT\n"), 2;
  root = argv[argc - 1];
  headers[0] = read_file("include", "tg.h"), headers[1] = read_file("nn", "tg_nn.h"),
  headers[2] = read_file("io", "tg_io.h");
  load_tests("tests/device"), load_tests("tests/unit"), load_tests("tests/faults");
  qsort(tests, (size_t)ntests, sizeof *tests, by_name);
  if (!load_rows() || !headers[0] || !ntests)
    return fprintf(stderr, "parity: %s has no table, no header or no tests\n", root), 2;
  for (int i = 0; i < nrows; i++)
    judge(&rows[i]);
  char *made = NULL;
  size_t n = 0;
  FILE *o = open_memstream(&made, &n);
  if (!o) return 2;
  print(o), fclose(o);
  char *old = read_file("docs", "api-parity.md"), path[1024];
  bool same = old && !strcmp(old, made);
  if (!check && !same) {
    snprintf(path, sizeof path, "%s/docs/api-parity.md", root);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(made, 1, n, f) != n || fclose(f))
      return fprintf(stderr, "parity: %s cannot be written\n", path), 2;
  }
  if (check && !same) fprintf(stderr, "docs/api-parity.md is out of date: make parity writes it\n");
  free(old), free(made);
  return wrong || (check && !same);
}
