/* main.c: rulegen, *.rules -> C, at build time. In: one file of rules, a name, a pattern, a result and a
 * condition each. Out: one function per matcher, a switch on self->op that tries its rules in file order,
 * both operand orders of commutative ops written out; a `gradient` block instead gives one result per source.
 * Or, with
 * --check, one function per rule, a builder of random instances of its pattern and the rule as a statement,
 * for tools/checkrules.c. Refuses what cannot be meant, as file:line: reason.
 *
 *   vars  x y: any   c: CONST   k: RANGE   h: u32   r s: list     a domain, an op, an op and a domain, a
 *                                                                 dtype
 *   matcher pm_t = pm_u + ...  ctx const Kernel *  if GUARD       what it tries first, what rw->ctx is, when
 *                                                                 its own rules are tried
 *   name:  PATTERN => RESULT   for op in SET - OPS  if GUARD       op(..), or REDUCE[op](..): once for each
 *   name:  PATTERN ~> RESULT                                       the same but for rounding: measured, not
 *                                                                  proved
 *
 * Brackets behind an op hold its dtype, its arg (REDUCE[ADD], RANGE[REDUCE], INDEX[gated], GEP[0]), or the
 * node that it has them from: CAST[a.dtype](x), REDUCE[self.arg](x, r...). u@(x * y) => MUL[u.order](f(x), y)
 * has its operands where u has them. Without brackets a pattern takes
 * any; a result has the dtype that follows from its sources. `...` in a pattern is any further sources,
 * `r...` names them: a list, given on to an op, a C function or a guard as UOpList; what follows it is at the
 * end. A literal has the dtype of what stands beside it, else of self. In a guard x.field is x->field,
 * vmin(x) and vmax(x) are bounds, a constant's name is its value (within a call: its node), an op's name is
 * OPS_NAME. `ctx` is the context: C functions and guards get it as any other operand, and read it as
 * ctx.field. */
#include "rulegen.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
  U = OPF_U,
  B = OPF_B,
  T = OPF_T,
  COMM = OPF_COMM,
  ASSOC = OPF_ASSOC,
  CMP = OPF_CMP,
  MOV = OPF_MOV,
  TENSOR = OPF_TENSOR,
  KERNEL = OPF_KERNEL,
  MARK = OPF_MARK
};

const OpInfo ops[OPS_COUNT] = {

#define OP(name, nsrc, arg, flags, operands, weight, c, meaning)                                             \
  {#name, nsrc, ARG_##arg, flags, OPERANDS_##operands, WEIGHT_##weight},
#include "uop/ops.def"
#undef OP
};

#define SET(text, any)                                                                                       \
  { .name = text, .flags = (any) }
const OpSet sets[NSETS] = {
    SET("UNARY", U),          SET("BINARY", B),
    SET("TERNARY", T),        SET("ALU", U | B | T),
    SET("COMMUTATIVE", COMM), SET("ASSOCIATIVE", ASSOC),
    SET("COMPARISON", CMP),   SET("MOVEMENT", MOV),
    SET("TRANSCENDENTAL", 0), {.name = "INTEGRAL", .from = OPERANDS_INT, .to = OPERANDS_I32}};

const DTypeInfo dtypes[DT_COUNT] = {

#define DTYPE(name, text, bytes, storage) {text, "DT_" #name},
#include "uop/dtypes.def"
};
#define AXIS_TEXT(name) #name,
const char *const axis_types[] = {AXIS_TYPES(AXIS_TEXT)};
const size_t naxis_types = TG_COUNT(axis_types);
const char *const domains[NDOMAINS] = {"any",  "int",    "index", "data", "wraps",
                                       "bool", "signed", "float", "list"};

const char *file;
int line_no, nvars, nrules, nmatchers;
Var vars[MOST_VARS];
Rule rules[MOST_RULES];
MatcherDef matchers[MOST_MATCHERS];
static const char *path, *includes[4]; /* headers that the rules' C functions are in */
static int nincludes;

_Noreturn void refuse(int line, const char *fmt, ...) {
  va_list ap;
  fprintf(stderr, "%s:%d: ", path, line);
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  exit(1);
}

static void read_include(char *line) { /* the rest of a line, which is kept */
  while (*line_at == ' ')
    line_at++;
  if (nincludes == 4) refuse(line_no, "4 files at most are included");
  includes[nincludes++] = line_at;
  for (char *end = line + strlen(line); end > line_at && end[-1] == ' ';)
    *--end = 0;
}

static void read_line(char *line) {
  line[strcspn(line, "#\n")] = 0;
  line_at = line;
  tok_next();
  if (!*tok) return;
  const char *colon = strchr(line, ':');
  bool matcher = tok_is("matcher"), gradient = tok_is("gradient");
  if (tok_take("vars")) {
    read_vars();
  } else if (matcher || gradient) {
    tok_next();
    read_matcher(gradient);
  } else if (tok_is("include")) {
    read_include(line);
  } else if (colon)
    read_rule(colon, tok_at);
  else
    refuse(line_no, "expected vars, matcher or a rule");
}

/* Lines are kept: guards point into them. */
static bool read_file(void) {
  FILE *in = fopen(path, "r");
  char *line = NULL;
  size_t cap = 0;
  if (!in) return perror(path), false;
  for (; getline(&line, &cap, in) >= 0; line = NULL, cap = 0) {
    line_no++;
    read_line(line);
  }
  fclose(in);
  free(line);
  return true;
}

static void write_matchers(FILE *out) {
  for (int m = 0; m < nmatchers; m++) {
    for (int i = 0; i < matchers[m].nbase; i++)
      if (!is_base_declared(matchers[m].base[i]))
        fprintf(out, "UOp *%s(Rewrite *rw, UOp *self);\n", matchers[m].base[i]);
    emit_function(out, "", &matchers[m], matchers[m].name, matchers[m].first, matchers[m].end, -1);
  }
  emit_names(out);
}

static bool write_file(const char *to, bool check) {
  FILE *out = fopen(to, "w");
  if (!out) return perror(to), false;
  fprintf(out,
          "/* %s, made from %s by rulegen: edit the rules, not this. */\n#include \"uop/rules.h\"\n#include "
          "<math.h>\n",
          strrchr(to, '/') ? strrchr(to, '/') + 1 : to, file);
  for (int i = 0; i < nincludes; i++)
    fprintf(out, "#include \"%s\"\n", includes[i]);
  if (check)
    emit_check(out);
  else
    write_matchers(out);
  return !fclose(out) || (perror(to), false);
}

int main(int argc, char **argv) {
  bool check = argc == 4 && !strcmp(argv[1], "--check");
  if (argc != 3 && !check) {
    fprintf(stderr, "usage: rulegen [--check] IN.rules OUT.c\n");
    return 2;
  }
  path = argv[argc - 2];
  file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  if (!read_file()) return 1;
  for (int m = 0; m < nmatchers && !check; m++)
    check_hidden(matchers[m].first, matchers[m].end);
  return write_file(argv[argc - 1], check) ? 0 : 1;
}
