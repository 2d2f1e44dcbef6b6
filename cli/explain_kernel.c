/* explain_kernel.c: a kernel's opts and loops, for `tg explain --kernel`. In: what TG_DUMP wrote about it:
 * its graph before opts, and its program. Out: what each opt gains by the cost model; a table of loops: how
 * often each runs, what one iteration computes, reads and writes, and which of these limits it. */
#define _POSIX_C_SOURCE 200809L
#include "explain.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- opts. The model's search lists each list of opts that it considered, with its cost. The gain of an opt
 * is the cost of the best list without it over that of the chosen list. A list that the planner did not
 * choose is compared with the same list without the opt. */
enum { MOST_OPTS = 24 };

typedef struct Opts {
  int n;
  char at[MOST_OPTS][40]; /* "UPCAST r0 14" */
} Opts;

static Opts opts_of(const char *list) {
  Opts o = {0};
  for (const char *p = list; *p && o.n < MOST_OPTS; p += strcspn(p, ","), p += strspn(p, ", "))
    snprintf(o.at[o.n++], sizeof o.at[0], "%.*s", (int)strcspn(p, ","), p);
  return o;
}

/* Returns the length of an opt's kind and its loop or operand, without the last number. */
static int kind_length(const char *opt) {
  const char *last = strrchr(opt, ' ');
  return last && last != strchr(opt, ' ') ? (int)(last - opt) : (int)strlen(opt);
}

static bool has_kind(const Opts *o, const char *opt) {
  int n = kind_length(opt);
  for (int i = 0; i < o->n; i++)
    if (kind_length(o->at[i]) == n && !strncmp(o->at[i], opt, (size_t)n)) return true;
  return false;
}

static bool same_list(const Opts *a, const Opts *b) {
  bool same = a->n == b->n;
  for (int i = 0; same && i < a->n; i++)
    same = !strcmp(a->at[i], b->at[i]);
  return same;
}

/* One line of costs: the cost in thousands of cycles, on a GPU in us; its parts; the list of opts. */
typedef struct Considered {
  double cycles;
  char parts[200];
  Opts opts;
} Considered;

static const char *unit_of(const Considered *c) {
  return strstr(c->parts, "waits") ? "us" : "thousand cycles";
}

static void gain_say(FILE *to, const char *opt, const Considered *chosen, double without,
                     const char *unknown) {
  if (isinf(without))
    fprintf(to, "  %-16s %s\n", opt, unknown);
  else
    fprintf(to, "  %-16s %8.2fx  (%.1f %s without it)\n", opt, without / chosen->cycles, without,
            unit_of(chosen));
}

static bool considered(const char *line, Considered *c) {
  const char *parts = strstr(line, "compute"), *opts = parts ? strstr(parts, "  ") : NULL;
  if (!opts) return false;
  c->cycles = atof(line);
  snprintf(c->parts, sizeof c->parts, "%.*s", (int)(opts - parts), parts);
  c->opts = opts_of(opts + 2);
  return true;
}

/* Copies one line; returns the start of the next. */
static const char *line_of(const char *p, char *line, size_t room) {
  snprintf(line, room, "%.*s", (int)strcspn(p, "\n"), p);
  p += strcspn(p, "\n");
  return p + (*p == '\n');
}

/* Writes the list without opt `out`; -1: the whole list. */
static void list_without(const Opts *list, int out, char *text, size_t room) {
  *text = 0;
  for (int i = 0; i < list->n; i++)
    if (i != out) snprintf(text + strlen(text), room - strlen(text), "%s%s", *text ? ", " : "", list->at[i]);
}

/* Asks the cost model about the list without opt `out`; -1: the whole list. cycles is infinite if it says
 * nothing. */
static Considered cost_asked(const Opts *list, int out, OptsCost *ask, void *user) {
  Considered c = {.cycles = INFINITY};
  char text[MOST_OPTS * 44];
  list_without(list, out, text, sizeof text);
  const char *said = *text ? ask(text, user) : NULL;
  char line[700] = "";
  if (said) line_of(said, line, sizeof line);
  considered(line, &c);
  return c;
}

/* Explains a list that the planner chose. Returns false if it is not among those that the planner
 * considered. */
static bool own_list(FILE *to, const char *costs, const Opts *chosen, OptsCost *ask, void *user) {
  Considered c, best = {.cycles = INFINITY};
  double without[MOST_OPTS];
  char line[700];
  for (int i = 0; i < MOST_OPTS; i++)
    without[i] = INFINITY;
  for (const char *p = costs; *p;) {
    p = line_of(p, line, sizeof line);
    if (!considered(line, &c)) continue;
    if (same_list(&c.opts, chosen) && c.cycles < best.cycles) best = c;
    for (int i = 0; i < chosen->n; i++)
      if (!has_kind(&c.opts, chosen->at[i]) && c.cycles < without[i]) without[i] = c.cycles;
  }
  if (isinf(best.cycles)) return false;
  fprintf(to, "\nopts, and what each gains by the cost model: %.1f %s (%s)\n", best.cycles, unit_of(&best),
          best.parts);
  for (int i = 0; i < chosen->n; i++) {
    if (isinf(without[i]) && ask) without[i] = cost_asked(chosen, i, ask, user).cycles;
    gain_say(to, chosen->at[i], &best, without[i], "each list that was considered has it");
  }
  return true;
}

/* Explains a list that BEAM found or the user gave. Each opt is left out in turn. */
static void other_list(FILE *to, const char *costs, const Opts *chosen, OptsCost *ask, void *user) {
  Considered all = cost_asked(chosen, -1, ask, user), own = {.cycles = INFINITY}, c;
  char line[700];
  if (isinf(all.cycles)) {
    fprintf(to, "\nopts: the cost model does not know such a list, nor what each gains\n");
    return;
  }
  fprintf(to,
          "\nopts, which the planner did not choose, and what each gains by its cost model: %.1f %s (%s)\n",
          all.cycles, unit_of(&all), all.parts);
  for (int i = 0; i < chosen->n; i++)
    gain_say(to, chosen->at[i], &all, cost_asked(chosen, i, ask, user).cycles,
             "the others cannot be without it");
  for (const char *p = costs; *p;) {
    p = line_of(p, line, sizeof line);
    if (considered(line, &c) && c.cycles < own.cycles) own = c;
  }
  if (!isinf(own.cycles))
    fprintf(to, "  the planner's own list: %.1f %s, %.2f of this one's\n", own.cycles, unit_of(&own),
            own.cycles / all.cycles);
}

void explain_opts(FILE *to, const char *costs, const char *list, OptsCost *ask, void *user) {
  Opts chosen = opts_of(list);
  if (chosen.n && !own_list(to, costs, &chosen, ask, user) && ask) other_list(to, costs, &chosen, ask, user);
}

/* ---- loops */
typedef struct Value {
  char name[16];
  int bytes, lanes;         /* bytes: of an element; 0: not a type of values in memory */
  bool real, memory, local; /* memory: an address outside registers; local: in a block's own memory */
} Value;

typedef struct Loop {
  char name[64];
  int depth, above;
  double times; /* its trip count */
  /* All of one iteration. alu, loads and stores count vectors of the machine. */
  double ops, read, written, alu, loads, stores;
  double near; /* the part of `loads` that reads a block's own memory */
} Loop;

typedef struct Program {
  Value *value;
  int nvalue, room, nloop, now, widest;
  bool gpu; /* its instructions are those of one thread: what limits them is not shown */
  Loop loop[256];
} Program;

static const struct {
  const char *name;
  int bytes;
  bool real;
} types[] = {{"bool", 1, false}, {"i8", 1, false},     {"u8", 1, false},    {"i16", 2, false},
             {"u16", 2, false},  {"i32", 4, false},    {"u32", 4, false},   {"i64", 8, false},
             {"u64", 8, false},  {"f16", 2, true},     {"bf16", 2, true},   {"f32", 4, true},
             {"f64", 8, true},   {"fp8e4m3", 1, true}, {"fp8e5m2", 1, true}};

/* Reads the type at the beginning of a text such as "f32x16, 3, 1]". Returns false if there is none. */
static bool type_read(const char *p, Value *v) {
  size_t best = 0;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    size_t n = strlen(types[i].name);
    if (n <= best || strncmp(p, types[i].name, n) || !strchr("x,])", p[n])) continue;
    best = n;
    v->bytes = types[i].bytes;
    v->real = types[i].real;
    v->lanes = p[n] == 'x' ? atoi(p + n + 1) : 1;
  }
  return best > 0;
}

static Value *value_named(Program *p, const char *name, size_t n) {
  for (int i = p->nvalue - 1; i >= 0; i--)
    if (strlen(p->value[i].name) == n && !strncmp(p->value[i].name, name, n)) return &p->value[i];
  return NULL;
}

/* Returns source k: a name, or a number such as "0:f32". A node without a type has the type of its first
 * source, or, for STORE and WHERE, of its second. */
static Value source_of(Program *p, const char *sources, int k) {
  Value none = {.lanes = 1};
  const char *at = sources;
  for (; k > 0 && at; k--)
    at = strchr(at, ',') ? strchr(at, ',') + 2 : NULL;
  if (!at) return none;
  size_t n = strcspn(at, ",)");
  Value *v = value_named(p, at, n);
  if (v) return *v;
  const char *colon = memchr(at, ':', n);
  if (colon) type_read(colon + 1, &none);
  return none;
}

static bool is_any(const char *op, const char *list) { /* "ADD MUL " */
  char word[24];
  snprintf(word, sizeof word, "%.20s ", op);
  return strstr(list, word) != NULL;
}

static double vectors(const Program *p, const Value *v) {
  double bytes = (double)v->bytes * v->lanes;
  return bytes > 0 ? ceil(bytes / p->widest) : 0;
}

static void counted(Program *p, const char *op, const Value *v, const Value *address) {
  Loop *l = &p->loop[p->now];
  bool memory = address->memory;
  if (!strcmp(op, "LOAD") && memory) {
    l->loads += vectors(p, v);
    l->near += address->local ? vectors(p, v) : 0;
    if (!address->local) l->read += (double)v->bytes * v->lanes;
  } else if (!strcmp(op, "STORE") && memory) {
    l->stores += vectors(p, v);
    if (!address->local) l->written += (double)v->bytes * v->lanes;
  } else if (v->real && is_any(op, "ADD SUB MUL MULACC MAX FDIV RECIPROCAL SQRT NEG EXP2 LOG2 SIN CMPLT "
                                   "CMPNE WHERE ACC WMMA ")) {
    l->ops += v->lanes * (!strcmp(op, "MULACC") || !strcmp(op, "ACC") ? 2 : 1);
    l->alu += vectors(p, v);
  }
}

static void loop_begin(Program *p, const char *name, const char *arg, const char *sources) {
  if (p->nloop == 256) return;
  Loop *l = &p->loop[p->nloop];
  const char *type = strchr(arg, ',');
  double times = atof(sources);
  *l = (Loop){.depth = p->loop[p->now].depth + 1, .above = p->now, .times = times > 0 ? times : 1};
  snprintf(l->name, sizeof l->name, "%.12s %.*s", name, type ? (int)strcspn(type + 2, "],") : 0,
           type ? type + 2 : "");
  p->now = p->nloop++;
}

static void line_take(Program *p, const char *line) {
  char name[16], op[24];
  if (sscanf(line, "%15s = %23[A-Z0-9_]", name, op) != 2) return;
  const char *rest = strstr(line, " = ") + 3 + strlen(op), *close = *rest == '[' ? strchr(rest, ']') : NULL;
  const char *arg = *rest == '[' ? rest + 1 : "", *sources = close ? close + 1 : rest;
  sources = *sources == '(' ? sources + 1 : "";
  Value v = {.lanes = 1}, first = source_of(p, sources, 0), second = source_of(p, sources, 1);
  if (!strcmp(op, "RANGE")) loop_begin(p, name, arg, sources);
  if (!strcmp(op, "END")) p->now = p->loop[p->now].above;
  bool where = is_any(op, "PARAM DEFINE_LOCAL "), typed = type_read(arg, &v);
  if (!typed) {
    Value from = !strcmp(op, "STORE") || !strcmp(op, "WHERE") ? second : first;
    v.bytes = from.bytes;
    v.lanes = from.lanes;
    v.real = from.real;
  }
  v.memory = where || (!strcmp(op, "INDEX") && first.memory);
  v.local = !strcmp(op, "DEFINE_LOCAL") || (!strcmp(op, "INDEX") && first.local);
  if (is_any(op, "CMPLT CMPNE ") && first.bytes) {
    v.bytes = first.bytes;
    v.real = first.real;
    v.lanes = first.lanes;
  }
  counted(p, op, &v, &first);
  if (p->nvalue == p->room) {
    Value *grown = realloc(p->value, sizeof *grown * (size_t)(p->room = 2 * p->room + 256));
    if (!grown) return;
    p->value = grown;
  }
  snprintf(v.name, sizeof v.name, "%s", name);
  p->value[p->nvalue++] = v;
}

static int widest_of(const char *text) { /* bytes of the widest value, at most one machine vector */
  int widest = 8;
  for (const char *p = text; (p = strchr(p, '[')); p++) {
    Value v = {0};
    if (type_read(p + 1, &v) && v.bytes * v.lanes > widest) widest = v.bytes * v.lanes;
  }
  return widest < 64 ? widest : 64;
}

/* A core starts two arithmetic instructions, two loads and one store per cycle. Whichever takes the most
 * cycles limits an iteration. The roof is the share of the arithmetic peak that is left. */
static void loop_say(FILE *to, const Program *p, const Loop *l) {
  double alu = l->alu / 2, loads = l->loads / 2, stores = l->stores, most = fmax(alu, fmax(loads, stores)),
         runs = l->times;
  for (const Loop *a = l; a != p->loop; runs *= a->times)
    a = &p->loop[a->above];
  fprintf(to, "  %*s%-*s %10.4g %10.4g %10.4g %10.4g", 2 * (l->depth - 1), "", 22 - 2 * (l->depth - 1),
          l->name, runs, l->ops, l->read, l->written);
  if (most <= 0 || p->gpu)
    fprintf(to, "\n");
  else
    fprintf(to, "  %-10s %4.0f %%\n",
            alu >= loads && alu >= stores ? "arithmetic"
            : loads >= stores             ? "loads"
                                          : "stores",
            100 * alu / most);
}

/* Reads a program as TG_DUMP writes it. Returns false if the text is none. */
static bool program_read(const char *text, Program *p) {
  *p = (Program){.nloop = 1, .widest = widest_of(text)};
  p->loop[0].times = 1;
  p->gpu = !strstr(text, "grid 1 1 1, block 1 1 1\n");
  if (strncmp(text, "program ", 8) && !strstr(text, "\nprogram ")) return false;
  for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
    char line[4096];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    line_take(p, line);
  }
  return true;
}

void explain_loops(FILE *to, const char *text) {
  Program p;
  if (!program_read(text, &p)) return;
  fputs(p.gpu ? "\nloops: what one iteration does itself, in one thread\n"
              : "\nloops: what one iteration does itself, and what bounds it where a core starts two "
                "arithmetic instructions, two\n"
                "loads and a store in a cycle; the roof is the share of the arithmetic peak that is left\n",
        to);
  fprintf(to, "  %-22s %10s %10s %10s %10s%s\n", "loop", "iterations", "operations", "bytes read", "written",
          p.gpu ? "" : "  bound by   roof");
  for (int i = 1; i < p.nloop; i++)
    loop_say(to, &p, &p.loop[i]);
  free(p.value);
}
