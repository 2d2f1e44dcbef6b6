/* abi.c: the public headers -> the ABI as data. In: the text of tg.h, tg_nn.h, tg_io.h, tg_llm.h. Out: a C program that
 * prints tg_abi.json: every exported function with its header and parameters (`count` says which other one
 * tells how many elements a list has), every struct with the offset
 * and size of each field, every enum, every callback; the C compiler that compiles that program supplies the
 * numbers. A field of options that was not written means its default; that default stands in the file where
 * it is a value: false, null, and the numbers and enumerators that the comment above a function (or after it
 * on its line) states, `.eps (1e-5)`. What it says in words is left out. It reads the C that the headers are
 * written in, not all of C, and refuses what it does not know as file:line: reason. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path;
static char *text; /* the header without its preprocessor lines and without what only C++ sees */
static const char *at;
/* What is said of the declarations that follow it without an empty line: the last comment that speaks of
 * options, if one does. */
static char comment[8192];

_Noreturn static void refuse(const char *fmt, ...) {
  int line = 1;
  for (const char *p = text; p && p < at; p++)
    line += *p == '\n';
  va_list ap;
  fprintf(stderr, "%s:%d: ", path, line);
  va_start(ap, fmt), vfprintf(stderr, fmt, ap), va_end(ap);
  fputc('\n', stderr);
  exit(1);
}

static char *load(void) {
  FILE *f = fopen(path, "rb");
  if (!f) refuse("cannot be read");
  fseek(f, 0, SEEK_END);
  long n = ftell(f);
  rewind(f);
  char *all = malloc((size_t)n + 1), *o = text = malloc((size_t)n + 1);
  if (!all || !o || fread(all, 1, (size_t)n, f) != (size_t)n) refuse("cannot be read");
  all[n] = 0;
  fclose(f);
  bool skip[16] = {false}, cxx[16] = {false};
  int depth = 0;
  for (char *s = all, *end; *s; s = end) {
    end = s + strcspn(s, "\n");
    bool directive = *s == '#', hidden = false;
    if (directive) {
      while (end > s && end[-1] == '\\' && *end)
        end += 1 + strcspn(end + 1, "\n");
      if (!strncmp(s, "#if", 3)) {
        depth++;
        cxx[depth] = !strncmp(s, "#ifdef __cplusplus", 18) || !strncmp(s, "#ifndef __cplusplus", 19);
        skip[depth] = !strncmp(s, "#ifdef __cplusplus", 18);
      } else if (!strncmp(s, "#else", 5) && cxx[depth])
        skip[depth] = !skip[depth];
      else if (!strncmp(s, "#endif", 6))
        depth--;
    }
    for (int i = 1; i <= depth; i++)
      hidden = hidden || skip[i];
    if (!directive && !hidden)
      memcpy(o, s, (size_t)(end - s)), o += end - s;
    else
      for (char *c = s; c < end; c++)
        if (*c == '\n') *o++ = '\n'; /* lines keep their numbers */
    if (*end) *o++ = '\n', end++;
  }
  *o = 0;
  free(all);
  return text;
}

/* ---- tokens: an identifier, a number, or one character */
static char tok[128];

/* The text of the comment that starts here, which is passed over: an end of line and the star of the next one
 * are a blank. */
static void read_comment(char *to, size_t cap) {
  const char *end = strstr(at, "*/");
  if (!end) refuse("a comment without end");
  size_t n = 0;
  for (const char *p = at + 2; p < end && n + 1 < cap; p++) {
    to[n++] = *p == '\n' ? ' ' : *p;
    if (*p != '\n') continue;
    while (p[1] == ' ')
      p++;
    if (p[1] == '*' && p + 1 < end) p++;
  }
  to[n] = 0;
  at = end + 2;
}

static bool next(void) {
  for (;;) {
    for (int lines = 0; isspace((unsigned char)*at); at++)
      if (*at == '\n' && ++lines == 2) *comment = 0;
    if (at[0] != '/' || at[1] != '*') break;
    char said[sizeof comment];
    read_comment(said, sizeof said);
    if (strstr(said, "[options]") || !*comment) memcpy(comment, said, sizeof comment);
  }
  size_t n = 0;
  while (isalnum((unsigned char)at[n]) || at[n] == '_')
    n++;
  if (!n && *at) n = 1;
  if (n >= sizeof tok) refuse("a name that is too long");
  memcpy(tok, at, n), tok[n] = 0;
  at += n;
  return n > 0;
}

static bool is(const char *t) { return !strcmp(tok, t); }

static void want(const char *t) {
  if (!next() || !is(t)) refuse("'%s' where '%s' is expected", tok, t);
}

/* ---- declarations: [from, to) of the text, split in a type and a name */
typedef struct Decl {
  char type[512], name[256];
} Decl;

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static void tidy(char *s) { /* runs of blanks as one, none at the ends */
  char *o = s;
  for (char *p = s; *p; p++) {
    if (!isspace((unsigned char)*p))
      *o++ = *p;
    else if (o > s && o[-1] != ' ')
      *o++ = ' ';
  }
  while (o > s && o[-1] == ' ')
    o--;
  *o = 0;
}

static Decl declare(const char *from, size_t n) {
  Decl d = {"", ""};
  char s[256];
  if (n >= sizeof s) refuse("a declaration that is too long");
  memcpy(s, from, n), s[n] = 0;
  tidy(s);
  char *paren = strstr(s, "(*"), *stop = s + strlen(s), *bracket = strchr(s, '[');
  char *begin;
  if (paren) { /* a function pointer: the name follows its stars */
    begin = paren + 1;
    while (*begin == '*' || *begin == ' ' || !strncmp(begin, "const", 5))
      begin += *begin == 'c' ? 5 : 1;
    stop = begin;
    while (is_word(*stop))
      stop++;
  } else {
    if (bracket) stop = bracket;
    while (stop > s && stop[-1] == ' ')
      stop--;
    begin = stop;
    while (begin > s && is_word(begin[-1]))
      begin--;
    if (begin == s) begin = stop; /* a type alone */
  }
  snprintf(d.name, sizeof d.name, "%.*s", (int)(stop - begin), begin);
  snprintf(d.type, sizeof d.type, "%.*s%s", (int)(begin - s), s, stop);
  tidy(d.type);
  return d;
}

/* Each piece of [from, to) between commas outside brackets. */
static const char *piece(const char *from, const char *to) {
  int depth = 0;
  for (; from < to; from++) {
    if (from[0] == '/' && from[1] == '*') {
      from = strstr(from, "*/") + 1;
      continue;
    }
    if (*from == '(' || *from == '[' || *from == '{') depth++;
    if (*from == ')' || *from == ']' || *from == '}') depth--;
    if (*from == ',' && depth == 0) break;
  }
  return from;
}

static const char *closing(char open, char close) { /* at stands after `open` */
  int depth = 1;
  const char *p = at;
  for (; *p; p++) {
    if (p[0] == '/' && p[1] == '*')
      p = strstr(p, "*/") + 1;
    else if (*p == open)
      depth++;
    else if (*p == close && --depth == 0)
      return p;
  }
  refuse("no '%c'", close);
}

/* ---- the program that is written */
static void quoted(const char *s) { /* a JSON string, inside a C string that printf prints */
  printf("\\\"");
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      printf("\\\\\\%c", *s);
    else if (*s == '%')
      printf("%%%%");
    else if (*s == '\n')
      printf(" ");
    else
      putchar(*s);
  }
  printf("\\\"");
}

/* What the options' defaults are told by: the fields of structs and the enumerators, as they were read. */
typedef struct Member {
  char of[96], type[128], name[96];
} Member;

static Member fields[1024], enumerators[256];
static int nfields, nenumerators;

static void copy_name(char *to, size_t cap, const char *s) {
  size_t n = strlen(s);
  if (n >= cap) refuse("a name that is too long: %s", s);
  memcpy(to, s, n + 1);
}

static void remember(Member *list, int *n, int most, const char *of, const char *type, const char *name) {
  if (*n == most) refuse("more names than there is room for");
  Member *m = &list[(*n)++];
  copy_name(m->of, sizeof m->of, of), copy_name(m->type, sizeof m->type, type),
      copy_name(m->name, sizeof m->name, name);
}

static bool first_of[4];

static void item(int level) {
  printf("  printf(\"%s\");\n", first_of[level] ? "\\n" : ",\\n"), first_of[level] = false;
}

static const char *header_name(void) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

/* that has the functions of this header */
static const char *library_name(void) {
  return strcmp(header_name(), "tg_llm.h") ? "tinygrad" : "tinygrad_llm";
}

static void read_enum(void) {
  char name[128];
  next();
  strcpy(name, tok);
  want("{");
  const char *end = closing('{', '}');
  item(0);
  printf("  printf(\"    {\\\"name\\\": ");
  quoted(name);
  printf(", \\\"values\\\": {\");\n");
  bool first = true;
  while (at < end) {
    if (!next() || at > end || is("}")) break;
    const char *stop = piece(at, end);
    remember(enumerators, &nenumerators, sizeof enumerators / sizeof *enumerators, name, "", tok);
    printf("  printf(\"%s\\\"%s\\\": %%d\", (int)%s);\n", first ? "" : ", ", tok, tok);
    first = false, at = stop + (stop < end);
  }
  printf("  printf(\"}}\");\n");
  at = end + 1;
  while (next() && !is(";")) {}
}

static void read_struct(void) {
  char name[128];
  next();
  strcpy(name, tok);
  next();
  if (!is("{")) {
    while (!is(";"))
      next();
    return;
  } /* opaque */
  const char *end = closing('{', '}');
  item(1);
  printf("  printf(\"    {\\\"name\\\": \\\"%s\\\", \\\"header\\\": \\\"%s\\\", \\\"size\\\": %%zu, "
         "\\\"fields\\\": [\", sizeof(%s));\n",
         name, header_name(), name);
  bool first = true;
  while (at < end) {
    while (isspace((unsigned char)*at))
      at++;
    if (at[0] == '/' && at[1] == '*') {
      at = strstr(at, "*/") + 2;
      continue;
    }
    if (at >= end) break;
    const char *semi = at;
    while (*semi != ';')
      semi++;
    char base[512] = "";
    for (const char *from = at; from < semi;) {
      const char *stop = piece(from, semi);
      Decl d;
      if (!*base) { /* "double p" gives the type of what follows the comma, but for its stars */
        d = declare(from, (size_t)(stop - from));
        snprintf(base, sizeof base, "%s", d.type);
        char *star = strpbrk(base, "*[");
        if (star) *star = 0; /* fields are no function pointers */
        tidy(base);
      } else {
        char more[800];
        snprintf(more, sizeof more, "%s %.*s", base, (int)(stop - from), from);
        d = declare(more, strlen(more));
      }
      printf("  printf(\"%s{\\\"name\\\": \\\"%s\\\", \\\"type\\\": \\\"%s\\\", \\\"offset\\\": %%zu, "
             "\\\"size\\\": %%zu}\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
             first ? "" : ", ", d.name, d.type, name, d.name, name, d.name);
      remember(fields, &nfields, sizeof fields / sizeof *fields, name, d.type, d.name);
      first = false, from = stop + (stop < semi);
    }
    at = semi + 1;
  }
  printf("  printf(\"]}\");\n");
  at = end + 1;
  while (next() && !is(";")) {}
}

/* ---- which parameters are lists, and how long */
static Decl param[24];
static int nparams;
static char counted_by[24]
                      [64]; /* what says how many elements a pointer leads to; "": one, or it is not said */

static bool is_one_of(const char *s, const char *const *list) {
  for (; *list; list++)
    if (!strcmp(s, *list)) return true;
  return false;
}

static bool is_count(const Decl *d) {
  static const char *const names[] = {"n",    "ndim", "nbytes", "nin",     "nout",   "cap",
                                      "most", "axes", "nparts", "ndevice", "nrules", NULL};
  if (strcmp(d->type, "int") && strcmp(d->type, "int64_t") && strcmp(d->type, "size_t")) return false;
  return is_one_of(d->name, names);
}

/* A pointer to elements, which this count may be of: bytes are counted by nbytes, and what is written up to a
 * capacity is not const. */
static bool is_list(const Decl *d, const Decl *count) {
  static const char *const elements[] = {"const int64_t *",
                                         "const int32_t *",
                                         "const float *",
                                         "const double *",
                                         "const TgIndex *",
                                         "const TgMessage *",
                                         "const TgNamedSize *",
                                         "const TgShardRule *",
                                         "int32_t *",
                                         "double *",
                                         "char *",
                                         NULL};
  bool room = !strcmp(count->name, "cap") || !strcmp(count->name, "most");
  if (room && !strncmp(d->type, "const ", 6) && strcmp(d->type, "const char **")) return false;
  if (strstr(d->type, "void *")) return !strcmp(count->name, "nbytes");
  size_t n = strlen(d->type);
  return is_one_of(d->type, elements) || (n > 8 && !strcmp(d->type + n - 8, "*const *")) ||
         (n > 2 && !strcmp(d->type + n - 2, "**"));
}

static bool is_text(const Decl *d) { /* it may have 0 bytes inside, where its length is told */
  return !strcmp(d->type, "const char *") && (!strcmp(d->name, "text") || !strcmp(d->name, "schema"));
}

static void count_list(int i, int count) {
  if (!*counted_by[i]) snprintf(counted_by[i], sizeof *counted_by, "%.60s", param[count].name);
}

/* A number called n and the like is of the lists right before it; else of those right after it, but for the
 * last of several that another number follows. What a function gives for each of n tensors is n of them. Sizes
 * without a number have one for each axis of the tensor before them. */
static void count_lists(void) {
  int last = -1; /* the last count that counts something */
  memset(counted_by, 0, sizeof counted_by);
  for (int k = 0; k < nparams; k++) {
    if (!is_count(&param[k])) continue;
    int from = k, to = k + 1;
    if (k > 0 && is_text(&param[k - 1])) from--;
    while (from > 0 && is_list(&param[from - 1], &param[k]) && !*counted_by[from - 1])
      from--;
    while (from == k && to < nparams && is_list(&param[to], &param[k]))
      to++;
    if (to > k + 2 && to < nparams && is_count(&param[to])) to--;
    for (int i = from; i < to; i++)
      if (i != k) count_list(i, k), last = k;
  }
  for (int k = 0; k < nparams; k++) {
    const char *type = param[k].type;
    if (last >= 0 && last < k && !strcmp(type, "TgTensor **")) count_list(k, last);
    if (last < 0 && k > 0 && !strcmp(type, "const int64_t *") && !strcmp(param[0].type, "TgTensor *"))
      snprintf(counted_by[k], sizeof *counted_by, "tg_ndim(%.40s)", param[0].name);
  }
}

static char last_type[512]; /* of the last parameter */

static void params(const char *end) {
  nparams = 0;
  while (at < end) {
    const char *stop = piece(at, end);
    Decl d = declare(at, (size_t)(stop - at));
    if (strcmp(d.type, "void") || *d.name) {
      if (!*d.name && strcmp(d.type, "void")) refuse("a parameter without a name: %s", d.type);
      if (nparams == (int)(sizeof param / sizeof *param)) refuse("more parameters than there is room for");
      param[nparams++] = d;
    }
    at = stop + (stop < end);
  }
  count_lists();
  for (int k = 0; k < nparams; k++) {
    printf("%s{\\\"name\\\": \\\"%s\\\", \\\"type\\\": \\\"%s\\\"", k ? ", " : "", param[k].name,
           param[k].type);
    if (*counted_by[k]) printf(", \\\"count\\\": \\\"%s\\\"", counted_by[k]);
    printf("}");
  }
  snprintf(last_type, sizeof last_type, "%s", nparams ? param[nparams - 1].type : "");
}

/* `.name (value)` in the text of a comment: 0 not there, 1 alone, 2 with a value, which is copied; 3 with
 * words, "(2, or as many as ..)". What follows a value is behind a ; or a :. */
static int stated(const char *docs, const char *name, char *value, size_t cap) {
  size_t n = strlen(name);
  int found = 0;
  for (const char *p = docs; (p = strchr(p, '.')) != NULL; p++) {
    if (strncmp(p + 1, name, n) || is_word(p[n + 1]) || (p > docs && p[-1] != ' ')) continue;
    const char *open = p + 1 + n;
    while (*open == ' ')
      open++;
    if (*open != '(') {
      found = 1;
      continue;
    }
    open++;
    if (!strncmp(open, "default ", 8)) open += 8;
    size_t length = strcspn(open, ",;:)");
    snprintf(value, cap, "%.*s", (int)length, open);
    return open[length] == ',' ? 3 : 2;
  }
  return found;
}

/* TG_F32 by its name, or f32 */
static bool is_enumerator(const Member *e, const char *type, const char *word) {
  if (strcmp(e->of, type)) return false;
  if (!strcmp(e->name, word)) return true;
  const char *last = strrchr(e->name, '_');
  size_t k = 0;
  while (last && word[k] && toupper((unsigned char)word[k]) == last[k + 1])
    k++;
  return last && k && !word[k] && !last[k + 1];
}

/* The default of a field, as JSON; "" where there is no value to tell. */
static void default_of(const Member *f, const char *docs, char *json, size_t cap) {
  char value[128] = "", *end;
  int said = stated(docs, f->name, value, sizeof value);
  *json = 0;
  if (!strcmp(f->type, "bool")) {
    snprintf(json, cap, "false");
    return;
  }
  if (strchr(f->type, '*')) {
    snprintf(json, cap, "null");
    return;
  }
  for (int i = 0; said == 2 && i < nenumerators; i++)
    if (is_enumerator(&enumerators[i], f->type, value)) {
      snprintf(json, cap, "\"%s\"", enumerators[i].name);
      return;
    }
  bool number = !strcmp(f->type, "int") || !strcmp(f->type, "int64_t") || !strcmp(f->type, "uint64_t") ||
                !strcmp(f->type, "double");
  if (said == 2 && (isdigit((unsigned char)*value) || (*value == '-' && isdigit((unsigned char)value[1]))) &&
      (strtod(value, &end), !*end))
    snprintf(json, cap, "%s", value);
  else if (said == 1 && number)
    snprintf(json, cap, "0");
}

static bool has_field(const char *of, const char *name) {
  for (int i = 0; i < nfields; i++)
    if (!strcmp(fields[i].of, of) && !strcmp(fields[i].name, name)) return true;
  return false;
}

/* a last parameter of `const TgXOptions *`: the macro is the name without _opt, or, where the function has
 * the plain name, with _with */
static void options(const char *name, const char *type, const char *docs) {
  char of[128], json[160];
  if (strncmp(type, "const ", 6)) return;
  snprintf(of, sizeof of, "%.*s", (int)strcspn(type + 6, " *"), type + 6);
  if (!has_field(of, "set") || !has_field(of, "end_")) return;
  size_t n = strlen(name);
  bool opt = n > 4 && !strcmp(name + n - 4, "_opt");
  printf("  printf(\", \\\"macro\\\": \\\"%.*s%s\\\", \\\"defaults\\\": {\");\n", (int)(opt ? n - 4 : n),
         name, opt ? "" : "_with");
  bool first = true;
  for (int i = 0; i < nfields; i++) {
    if (strcmp(fields[i].of, of) || !strcmp(fields[i].name, "size") || !strcmp(fields[i].name, "set") ||
        !strcmp(fields[i].name, "end_"))
      continue;
    default_of(&fields[i], docs, json, sizeof json);
    if (!*json) continue;
    printf("  printf(\"%s\\\"%s\\\": ", first ? "" : ", ", fields[i].name);
    for (const char *p = json; *p; p++)
      printf(*p == '"' ? "\\\"" : "%c", *p);
    printf("\");\n");
    first = false;
  }
  printf("  printf(\"}\");\n");
}

static const char *after_on_line(void) { /* a comment behind the declaration, which is passed over; "" */
  static char trailing[2048];
  const char *p = at;
  while (*p == ' ')
    p++;
  *trailing = 0;
  if (p[0] != '/' || p[1] != '*') return trailing;
  at = p;
  read_comment(trailing, sizeof trailing);
  return trailing;
}

static int pass; /* 0 enums, 1 structs, 2 callbacks, 3 functions */

static void declarations(void) {
  at = text;
  comment[0] = 0;
  while (next()) {
    if (is(";") || is("}")) continue;
    if (is("extern")) {
      want("\""), next(), want("\""), want("{");
      continue;
    }
    const char *start = at - strlen(tok);
    if (is("typedef")) {
      next();
      if (is("enum")) {
        if (pass == 0) {
          read_enum();
          continue;
        }
      } else if (is("struct")) {
        if (pass == 1) {
          read_struct();
          continue;
        }
      } else if (pass == 2) {
        start = at - strlen(tok);
        const char *semi = strchr(at, ';'), *open = strstr(at, ")(");
        if (!open || open > semi) refuse("a typedef that is no struct, enum or callback");
        Decl d = declare(start, (size_t)(semi - start));
        item(2);
        printf("  printf(\"    {\\\"name\\\": \\\"%s\\\", \\\"type\\\": \\\"%s\\\"}\");\n", d.name, d.type);
        at = semi;
        continue;
      }
      int depth = 0;
      for (; *at && (*at != ';' || depth); at++) {
        if (at[0] == '/' && at[1] == '*') at = strstr(at, "*/") + 1;
        depth += (*at == '{') - (*at == '}');
      }
      continue;
    }
    if (!is("TG_API")) refuse("'%s' begins no declaration that this reads", tok);
    const char *from = at, *open = strchr(at, '('), *semi = strchr(at, ';');
    if (!open || !semi || semi < open) refuse("TG_API without a function");
    if (pass != 3) {
      at = semi + 1;
      continue;
    }
    Decl d = declare(from, (size_t)(open - from));
    at = open + 1;
    const char *end = closing('(', ')');
    item(3);
    printf("  printf(\"    {\\\"name\\\": \\\"%s\\\", \\\"returns\\\": \\\"%s\\\", \\\"header\\\": "
           "\\\"%s\\\", \\\"params\\\": [",
           d.name, d.type, header_name());
    params(end);
    printf("]\");\n");
    at = semi + 1;
    char docs[sizeof comment + 2048];
    snprintf(docs, sizeof docs, "%s %s", after_on_line(), comment); /* what is nearer is found first */
    options(d.name, last_type, docs);
    printf("  printf(\"}\");\n");
  }
}

int main(int argc, char **argv) {
  enum { MOST = 8 };

  char *texts[MOST];
  if (argc < 2 || argc > MOST)
    return fprintf(stderr, "usage: abi include/tg.h [nn/tg_nn.h io/tg_io.h llm/tg_llm.h] > program.c\n"), 2;
  for (int i = 1; i < argc; i++)
    path = argv[i], texts[i] = load();
  static const char *const names[] = {"enums", "structs", "callbacks", "functions"};
  printf("/* written by tools/abi.c from the headers: prints tg_abi.json */\n#include <stddef.h>\n#include "
         "<stdio.h>\n");
  for (int i = 1; i < argc; i++)
    printf("#include \"%s\"\n", strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i]);
  printf("int main(void) {\n  printf(\"{\\n  \\\"version\\\": \\\"%%s\\\", \\\"pointer\\\": %%zu, "
         "\\\"max_rank\\\": %%d,\\n\", TG_ABI_VERSION, sizeof(void *), TG_MAX_RANK);\n");
  printf("  printf(\"  \\\"options\\\": {\\\"size\\\": \\\"the struct's size, or it is refused\\\", "
         "\\\"set\\\": "
         "\\\"the fields that were written, as in .eps,.beta1: what stands there is taken though it is 0; "
         "null: those that are not 0\\\"},\\n\");\n");
  printf("  printf(\"  \\\"libraries\\\": {");
  for (int i = 1; i < argc; i++)
    path = argv[i], printf("%s\\\"%s\\\": \\\"%s\\\"", i > 1 ? ", " : "", header_name(), library_name());
  printf("},\\n\");\n");
  for (pass = 0; pass < 4; pass++) {
    printf("  printf(\"  \\\"%s\\\": [\");\n", names[pass]);
    first_of[pass] = true;
    for (int i = 1; i < argc; i++)
      path = argv[i], text = texts[i], declarations();
    printf("  printf(\"\\n  ]%s\\n\");\n", pass < 3 ? "," : "");
  }
  printf("  printf(\"}\\n\");\n  return 0;\n}\n");
  for (int i = 1; i < argc; i++)
    free(texts[i]);
  return 0;
}
