/* ptx_read.c: the text of a module -> the instructions of one kernel of it. One statement a line, as the
 * compiler writes them. Names of registers become numbers; names of shared arrays, of parameters and of
 * labels become where they are. */
#include "ptx/ptx.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 8192, MOST_SYMBOLS = 256, MOST_LINE = 1024 };

typedef struct Reader {
  PtxKernel *k;
  char *why;
  char (*reg)[24];
  PtxSymbol *label, *symbol;
  int nlabel, nsymbol, line, room;
} Reader;

static bool fails(Reader *r, const char *what, const char *line) {
  snprintf(r->why, PTX_WHY, "line %d: %s: %.120s", r->line, what, line);
  return false;
}

static int reg_of(Reader *r, const char *name, size_t n) {
  char text[24];
  if (n >= sizeof text) return -1;
  memcpy(text, name, n), text[n] = 0;
  for (int i = 0; i < r->k->nreg; i++)
    if (!strcmp(r->reg[i], text)) return i;
  if (r->k->nreg == MOST_NAMES) return -1;
  memcpy(r->reg[r->k->nreg], text, n + 1);
  return r->k->nreg++;
}

static bool name_put(PtxSymbol *s, int *n, const char *name, size_t len, uint64_t value) {
  if (*n == MOST_SYMBOLS || len >= sizeof s->name) return false;
  memcpy(s[*n].name, name, len), s[*n].name[len] = 0;
  s[(*n)++].value = value;
  return true;
}

static bool in_word(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static size_t word_length(const char *p) {
  size_t n = 0;
  while (in_word(p[n]))
    n++;
  return n;
}

static const char *blanks(const char *p) {
  while (*p == ' ' || *p == '\t')
    p++;
  return p;
}

/* A number, the bits of a float (0f, 0d), a register, a special one, a name. */
static bool value_read(Reader *r, const char **at, PtxOperand *o) {
  const char *p = *at;
  size_t n = word_length(p);
  if (*p == '-' || isdigit((unsigned char)*p)) {
    char *end;
    bool bits = p[0] == '0' && (p[1] == 'f' || p[1] == 'd') && n >= 10;
    o->kind = PTX_IMM;
    o->value = bits        ? strtoull(p + 2, &end, 16)
               : *p == '-' ? (uint64_t)strtoll(p, &end, 0)
                           : strtoull(p, &end, 0);
    if (*end == 'U') end++;
    return *at = end, true;
  }
  if (!n) return false;
  *at = p + n;
  static const char *const special[] = {"%tid.", "%ctaid.", "%ntid.", "%nctaid.", "%laneid"};
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    if (!strncmp(p, special[i], strlen(special[i])) && n < sizeof o->special) {
      o->kind = PTX_SPECIAL, memcpy(o->special, p, n);
      return true;
    }
  if (*p == '%') return o->kind = PTX_REG, (o->reg = reg_of(r, p, n)) >= 0;
  for (int i = 0; i < r->nsymbol; i++)
    if (strlen(r->symbol[i].name) == n && !strncmp(r->symbol[i].name, p, n))
      return o->kind = PTX_IMM, o->value = r->symbol[i].value, true;
  return false;
}

static bool operands_read(Reader *r, const char *p, PtxIns *i) {
  int group = 0;
  bool braces = false;
  for (p = blanks(p); *p && *p != ';'; p = blanks(p)) {
    if (*p == '{' || *p == '}') {
      braces = *p++ == '{', group += braces;
      continue;
    }
    if (*p == ',') {
      p++;
      continue;
    }
    if (i->n == PTX_OPERANDS) return false;
    PtxOperand *o = &i->at[i->n++];
    o->reg = -1, o->group = braces ? group : ++group;
    if (*p == '|') p++;
    if (*p == '!') o->negated = true, p++;
    if (*p != '[') {
      if (!value_read(r, &p, o)) return false;
      continue;
    }
    PtxOperand more = {0};
    p = blanks(p + 1), o->address = true;
    if (!value_read(r, &p, o)) return false;
    if (*p == '+') {
      p++;
      if (!value_read(r, &p, &more) || more.kind != PTX_IMM) return false;
      o->value += more.value;
    }
    if (*p++ != ']') return false;
  }
  return true;
}

/* `.shared .align 16 .b8 name[bytes];`, `.extern .shared ..`: where the array begins in the block's memory.
 */
static bool shared_read(Reader *r, const char *p) {
  const char *align = strstr(p, ".align "), *open = strchr(p, '[');
  size_t multiple = align ? (size_t)atoi(align + 7) : 1, n = 0, bytes = open ? (size_t)atoi(open + 1) : 0;
  if (!open || !multiple) return fails(r, "a shared array", p);
  while (in_word(open[-1 - (int)n]))
    n++;
  if (strstr(p, ".b32")) bytes *= 4;
  r->k->shared = (r->k->shared + multiple - 1) / multiple * multiple;
  if (!name_put(r->symbol, &r->nsymbol, open - n, n, r->k->shared)) return fails(r, "too many names", p);
  r->k->shared += bytes;
  return true;
}

static bool ins_read(Reader *r, const char *p) {
  if (r->k->n == r->room) {
    int room = r->room * 2 + 64;
    PtxIns *more = realloc(r->k->ins, (size_t)room * sizeof *more);
    if (!more) return fails(r, "out of memory", p);
    r->k->ins = more, r->room = room;
  }
  PtxIns *i = &r->k->ins[r->k->n++];
  *i = (PtxIns){.guard = -1, .target = -1, .line = r->line};
  if (*p == '@') {
    i->unless = p[1] == '!';
    p += 1 + i->unless;
    size_t n = word_length(p);
    i->guard = reg_of(r, p, n);
    p = blanks(p + n);
  }
  size_t n = word_length(p);
  if (!n || n >= sizeof i->op) return fails(r, "no instruction", p);
  memcpy(i->op, p, n);
  p = blanks(p + n);
  if (strncmp(i->op, "bra", 3)) return operands_read(r, p, i) || fails(r, "operands", p);
  n = word_length(p);
  if (n >= sizeof i->label) return fails(r, "a label", p);
  memcpy(i->label, p, n);
  return true;
}

static bool line_read(Reader *r, const char *p) {
  size_t n = word_length(p);
  if (n && p[n] == ':')
    return name_put(r->label, &r->nlabel, p, n, (uint64_t)r->k->n) || fails(r, "labels", p);
  if (strstr(p, ".shared") && *p == '.') return shared_read(r, p);
  if (!*p || *p == '.' || *p == '{' || *p == '}' || !strncmp(p, "//", 2)) return true;
  return ins_read(r, p);
}

static bool labels_found(Reader *r) {
  for (int i = 0; i < r->k->n; i++) {
    PtxIns *u = &r->k->ins[i];
    for (int l = 0; *u->label && l < r->nlabel; l++)
      if (!strcmp(r->label[l].name, u->label)) u->target = (int)r->label[l].value;
    if (*u->label && u->target < 0) return r->line = u->line, fails(r, "no such label", u->label);
  }
  return true;
}

/* The lines of the kernel's body; before it, its parameters and what shared memory the module has. */
static bool body_read(Reader *r, const char *text, const char *kernel) {
  char line[MOST_LINE], head[160];
  bool ours = false, inside = false, ok = true;
  int depth = 0;
  snprintf(head, sizeof head, ".entry %.120s(", kernel);
  for (const char *p = text; ok && *p; r->line++) {
    size_t n = strcspn(p, "\n");
    const char *at = p;
    p += n + (p[n] == '\n');
    while (n && (*at == ' ' || *at == '\t'))
      at++, n--;
    if (n >= sizeof line) return fails(r, "a long line", "");
    memcpy(line, at, n), line[n] = 0;
    if (strstr(line, ".entry")) ours = strstr(line, head) != NULL;
    if (!inside && strstr(line, ".extern .shared")) ok = shared_read(r, line);
    if (!ours) continue;
    if (!inside && !strncmp(line, ".param", 6)) {
      size_t end = strcspn(line, ",)"), from = end;
      while (from && in_word(line[from - 1]))
        from--;
      ok = name_put(r->symbol, &r->nsymbol, line + from, end - from, 8 * (uint64_t)r->k->nparam++);
    } else if (inside)
      ok = line_read(r, line);
    depth += (*line == '{') - (*line == '}');
    if (inside && !depth) return ok;
    inside = depth > 0;
  }
  return ok && fails(r, "the kernel is not there, or does not end", kernel);
}

bool ptx_read(const char *text, const char *kernel, PtxKernel *out, char why[PTX_WHY]) {
  *out = (PtxKernel){0};
  Reader r = {.k = out, .why = why, .line = 1};
  r.reg = calloc(MOST_NAMES, sizeof *r.reg);
  r.label = calloc(MOST_SYMBOLS, sizeof *r.label), r.symbol = calloc(MOST_SYMBOLS, sizeof *r.symbol);
  bool ok = r.reg && r.label && r.symbol && body_read(&r, text, kernel) && labels_found(&r);
  free(r.reg), free(r.label), free(r.symbol);
  if (!ok) ptx_free(out);
  return ok;
}

void ptx_free(PtxKernel *k) {
  free(k->ins);
  *k = (PtxKernel){0};
}
