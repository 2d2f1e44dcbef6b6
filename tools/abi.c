/* abi.c: include/tg.h -> the ABI as data. In: the header's text. Out: a C program that prints tg_abi.json: every exported function with its parameters,
 * every struct with the offset and size of each field, every enum, every callback; the C compiler that compiles that program supplies the numbers.
 * The options of options are those that the comment above a function states: `.eps (1e-5)`. A field that is zero means its default.
 * It reads the C that tg.h is written in, not all of C, and refuses what it does not know as file:line: reason. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *path;
static char *text;                                     /* the header without its preprocessor lines and without what only C++ sees */
static const char *at;
static char comment[8192];                             /* the last one before the declaration, or after it on its line */

_Noreturn static void refuse(const char *fmt, ...) {
  int line = 1;
  for (const char *p = text; p && p < at; p++) line += *p == '\n';
  va_list ap;
  fprintf(stderr, "%s:%d: ", path, line);
  va_start(ap, fmt), vfprintf(stderr, fmt, ap), va_end(ap);
  fputc('\n', stderr);
  exit(1);
}
static void load(void) {
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
      while (end > s && end[-1] == '\\' && *end) end += 1 + strcspn(end + 1, "\n");
      if (!strncmp(s, "#if", 3)) {
        depth++;
        cxx[depth] = !strncmp(s, "#ifdef __cplusplus", 18) || !strncmp(s, "#ifndef __cplusplus", 19);
        skip[depth] = !strncmp(s, "#ifdef __cplusplus", 18);
      } else if (!strncmp(s, "#else", 5) && cxx[depth]) skip[depth] = !skip[depth];
      else if (!strncmp(s, "#endif", 6)) depth--;
    }
    for (int i = 1; i <= depth; i++) hidden = hidden || skip[i];
    if (!directive && !hidden) memcpy(o, s, (size_t)(end - s)), o += end - s;
    else for (char *c = s; c < end; c++) if (*c == '\n') *o++ = '\n';      /* lines keep their numbers */
    if (*end) *o++ = '\n', end++;
  }
  *o = 0;
  free(all);
}

/* ---- tokens: an identifier, a number, or one character */
static char tok[128];
static bool next(void) {
  for (;;) {
    while (isspace((unsigned char)*at)) at++;
    if (at[0] != '/' || at[1] != '*') break;
    const char *end = strstr(at, "*/");
    if (!end) refuse("a comment without end");
    size_t n = (size_t)(end - at) - 2;
    if (n >= sizeof comment) n = sizeof comment - 1;
    memcpy(comment, at + 2, n), comment[n] = 0;
    at = end + 2;
  }
  size_t n = 0;
  while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
  if (!n && *at) n = 1;
  if (n >= sizeof tok) refuse("a name that is too long");
  memcpy(tok, at, n), tok[n] = 0;
  at += n;
  return n > 0;
}
static bool is(const char *t) { return !strcmp(tok, t); }
static void want(const char *t) { if (!next() || !is(t)) refuse("'%s' where '%s' is expected", tok, t); }

/* ---- declarations: [from, to) of the text, split in a type and a name */
typedef struct Decl { char type[512], name[256]; } Decl;
static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static void tidy(char *s) {                                   /* runs of blanks as one, none at the ends */
  char *o = s;
  for (char *p = s; *p; p++) {
    if (!isspace((unsigned char)*p)) *o++ = *p;
    else if (o > s && o[-1] != ' ') *o++ = ' ';
  }
  while (o > s && o[-1] == ' ') o--;
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
  if (paren) {                                                /* a function pointer: the name follows its stars */
    begin = paren + 1;
    while (*begin == '*' || *begin == ' ' || !strncmp(begin, "const", 5)) begin += *begin == 'c' ? 5 : 1;
    stop = begin;
    while (is_word(*stop)) stop++;
  } else {
    if (bracket) stop = bracket;
    while (stop > s && stop[-1] == ' ') stop--;
    begin = stop;
    while (begin > s && is_word(begin[-1])) begin--;
    if (begin == s) begin = stop;                              /* a type alone */
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
    if (from[0] == '/' && from[1] == '*') { from = strstr(from, "*/") + 1; continue; }
    if (*from == '(' || *from == '[' || *from == '{') depth++;
    if (*from == ')' || *from == ']' || *from == '}') depth--;
    if (*from == ',' && depth == 0) break;
  }
  return from;
}
static const char *closing(char open, char close) {            /* at stands after `open` */
  int depth = 1;
  const char *p = at;
  for (; *p; p++) {
    if (p[0] == '/' && p[1] == '*') p = strstr(p, "*/") + 1;
    else if (*p == open) depth++;
    else if (*p == close && --depth == 0) return p;
  }
  refuse("no '%c'", close);
}

/* ---- the program that is written */
static void quoted(const char *s) {                            /* a JSON string, inside a C string that printf prints */
  printf("\\\"");
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') printf("\\\\\\%c", *s);
    else if (*s == '%') printf("%%%%");
    else if (*s == '\n') printf(" ");
    else putchar(*s);
  }
  printf("\\\"");
}
static bool first_of[4];
static void item(int level) { printf("  printf(\"%s\");\n", first_of[level] ? "\\n" : ",\\n"), first_of[level] = false; }

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
  if (!is("{")) { while (!is(";")) next(); return; }            /* opaque */
  const char *end = closing('{', '}');
  item(1);
  printf("  printf(\"    {\\\"name\\\": \\\"%s\\\", \\\"size\\\": %%zu, \\\"fields\\\": [\", sizeof(%s));\n", name, name);
  bool first = true;
  while (at < end) {
    while (isspace((unsigned char)*at)) at++;
    if (at[0] == '/' && at[1] == '*') { at = strstr(at, "*/") + 2; continue; }
    if (at >= end) break;
    const char *semi = at;
    while (*semi != ';') semi++;
    char base[512] = "";
    for (const char *from = at; from < semi;) {
      const char *stop = piece(from, semi);
      Decl d;
      if (!*base) {                                            /* "double p" gives the type of what follows the comma, but for its stars */
        d = declare(from, (size_t)(stop - from));
        snprintf(base, sizeof base, "%s", d.type);
        char *star = strpbrk(base, "*[");
        if (star) *star = 0;                                   /* fields are no function pointers */
        tidy(base);
      } else {
        char more[800];
        snprintf(more, sizeof more, "%s %.*s", base, (int)(stop - from), from);
        d = declare(more, strlen(more));
      }
      printf("  printf(\"%s{\\\"name\\\": \\\"%s\\\", \\\"type\\\": \\\"%s\\\", \\\"offset\\\": %%zu, \\\"size\\\": %%zu}\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n",
             first ? "" : ", ", d.name, d.type, name, d.name, name, d.name);
      first = false, from = stop + (stop < semi);
    }
    at = semi + 1;
  }
  printf("  printf(\"]}\");\n");
  at = end + 1;
  while (next() && !is(";")) {}
}
static void params(const char *end) {
  bool first = true;
  while (at < end) {
    const char *stop = piece(at, end);
    Decl d = declare(at, (size_t)(stop - at));
    if (strcmp(d.type, "void") || *d.name) {
      if (!*d.name && strcmp(d.type, "void")) refuse("a parameter without a name: %s", d.type);
      printf("%s{\\\"name\\\": \\\"%s\\\", \\\"type\\\": \\\"%s\\\"}", first ? "" : ", ", d.name, d.type);
      first = false;
    }
    at = stop + (stop < end);
  }
}
static void options(const char *name) {                          /* a last parameter of `const TgXOptions *` */
  size_t n = strlen(name);
  if (n < 5 || strcmp(name + n - 4, "_opt")) return;
  printf("  printf(\", \\\"macro\\\": \\\"%.*s\\\", \\\"defaults\\\": {\");\n", (int)n - 4, name);
  bool first = true;
  const char *p = strstr(comment, "[options]");
  for (; p && *p; p++) {
    if (*p != '.' || !isalpha((unsigned char)p[1]) || (p > comment && p[-1] != ' ' && p[-1] != '\n')) continue;
    size_t k = 1;
    while (is_word(p[k])) k++;
    if (p[k] != ' ' && p[k] != ';' && p[k] != ',' && p[k] != '.' && p[k] != ':' && p[k] != '\n' && p[k] != 0) continue;
    const char *open = p + k;
    while (*open == ' ' || *open == '\n') open++;
    char value[128] = "0";
    if (*open == '(') {
      size_t len = strcspn(open + 1, ",;)");
      snprintf(value, sizeof value, "%.*s", (int)len, open + 1);
    }
    printf("  printf(\"%s\\\"%.*s\\\": ", first ? "" : ", ", (int)k - 1, p + 1);
    quoted(value);
    printf("\");\n");
    first = false, p += k - 1;
  }
  printf("  printf(\"}\");\n");
}
static int pass;                                               /* 0 enums, 1 structs, 2 callbacks, 3 functions */
static void declarations(void) {
  at = text, first_of[pass] = true;
  comment[0] = 0;
  while (next()) {
    if (is(";") || is("}")) continue;
    if (is("extern")) { want("\""), next(), want("\""), want("{"); continue; }
    const char *start = at - strlen(tok);
    if (is("typedef")) {
      next();
      if (is("enum")) { if (pass == 0) { read_enum(); continue; } }
      else if (is("struct")) { if (pass == 1) { read_struct(); continue; } }
      else if (pass == 2) {
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
    if (pass != 3) { at = semi + 1; continue; }
    Decl d = declare(from, (size_t)(open - from));
    at = open + 1;
    const char *end = closing('(', ')');
    item(3);
    printf("  printf(\"    {\\\"name\\\": \\\"%s\\\", \\\"returns\\\": \\\"%s\\\", \\\"params\\\": [", d.name, d.type);
    params(end);
    printf("]\");\n");
    options(d.name);
    printf("  printf(\"}\");\n");
    at = semi + 1;
  }
}
int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: abi include/tg.h > program.c\n"), 2;
  path = argv[1];
  load();
  static const char *const names[] = {"enums", "structs", "callbacks", "functions"};
  printf("/* written by tools/abi.c from tg.h: prints tg_abi.json */\n#include <tg.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
  printf("  printf(\"{\\n  \\\"pointer\\\": %%zu, \\\"max_rank\\\": %%d,\\n\", sizeof(void *), TG_MAX_RANK);\n");
  for (pass = 0; pass < 4; pass++) {
    printf("  printf(\"  \\\"%s\\\": [\");\n", names[pass]);
    declarations();
    printf("  printf(\"\\n  ]%s\\n\");\n", pass < 3 ? "," : "");
  }
  printf("  printf(\"}\\n\");\n  return 0;\n}\n");
  free(text);
  return 0;
}
