/* test_passes.c: tests/passes: text in, one pass, text out; tests/rules: a line per rule. A case
 * of a .uop file is
 *
 *   case NAME / device NAME / opts "LIST" / pass "NAME" / the graph / then any of
 *   expect A, B     the roots are these, in the graph's names
 *   expect          alone: the text that follows is the result
 *   count OP n      nodes of that op
 *   contains TEXT
 *   order OP OP     the first comes before the second
 *   error TEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "codegen/codegen.h"
#include "rules/language.h"
#include "tensor/context.h"
#include "tg.h"
#include "uop/text.h"

static char *slurp(const char *path) {
  FILE *f = fopen(path, "r");
  if (!f) fail_msg("no file %s", path);
  char *text = calloc(1, 1 << 18);
  assert_non_null(text);
  assert_in_range(fread(text, 1, (1 << 18) - 1, f), 1, (1 << 18) - 2);
  fclose(f);
  return text;
}

static bool begins(const char *line, const char *word) {
  return !strncmp(line, word, strlen(word)) && (line[strlen(word)] == ' ' || !line[strlen(word)]);
}

static void quoted(const char *line, char *to, size_t cap) {
  const char *a = strchr(line, '"'), *b = a ? strchr(a + 1, '"') : NULL;
  if (!b || (size_t)(b - a) > cap) fail_msg("expected a name in quotes: %s", line);
  snprintf(to, cap, "%.*s", (int)(b - a - 1), a + 1);
}

static void normal(const char *text, char *to, size_t cap) { /* parsed and printed */
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOpText t;
  TgError err = {0};
  Str s;
  str_init(&s, &mem);
  if (!uop_parse(&t, st, &mem, text, strlen(text), &err)) fail_msg("%s\n%s", text, err.msg);
  assert_true(t.program.n ? uop_print_list(&s, &t.program, &mem)
                          : uop_print(&s, st, &mem, t.roots.at, t.roots.len));
  assert_true(s.len < cap);
  strcpy(to, str_text(&s));
  uop_text_free(&t), str_free(&s);
  store_free(st);
  assert_int_equal(mem.live, 0);
}

static int count_op(const char *text, const char *op) { /* definitions: ` = OP[` or ` = OP(` */
  int n = 0;
  size_t len = strlen(op);
  for (const char *s = text; (s = strstr(s, " = ")); s += 3)
    n += !strncmp(s + 3, op, len) && strchr("[(\n", s[3 + len]);
  return n;
}

typedef struct Case {
  char name[128], device[32], opts[128], from[64], pass[64], graph[4096];
  const char *result;
  TgContext *ctx;
} Case;

static void run_case(Case *c) {
  setenv("TG_SPEC", "1", 1);
  c->ctx =
      tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = *c->device ? c->device : "NULL:C"});
  unsetenv("TG_SPEC");
  assert_int_equal(tg_error(c->ctx), TG_OK);
  c->result = tg_opt(c->ctx, c->graph, .pass = c->pass, .from = *c->from ? c->from : NULL,
                     .opts = *c->opts ? c->opts : NULL);
  const char *stages = c->result ? strstr(c->result, "#| ") : NULL; /* from which tg goes on */
  if (!stages) return;
  static char graph[1 << 16];
  snprintf(graph, sizeof graph, "%.*s", (int)(stages - c->result), c->result);
  c->result = graph;
}

static void end_case(Case *c) {
  if (c->ctx) tg_close(c->ctx);
  memset(c, 0, sizeof *c);
}

static int run_file(const char *path) {
  static char want[16384], got[16384], text[16384];
  char *all = slurp(path), *at = all;
  Case c = {0};
  int cases = 0, line_no = 0, checks = 0;
  bool in_graph = false;
  for (char *line; *at;) {
    line = at, at += strcspn(at, "\n");
    if (*at) *at++ = 0;
    line_no++;
    if (begins(line, "case")) {
      if (cases && !checks) fail_msg("%s: case '%s' checks nothing", path, c.name);
      end_case(&c);
      snprintf(c.name, sizeof c.name, "%s", line + 5);
      cases++, checks = 0, in_graph = true;
      continue;
    }
    if (!cases || !*line || *line == '#') continue;
    if (begins(line, "device")) {
      snprintf(c.device, sizeof c.device, "%s", line + 7);
      continue;
    }
    if (begins(line, "opts")) {
      quoted(line, c.opts, sizeof c.opts);
      continue;
    }
    if (begins(line, "from")) {
      quoted(line, c.from, sizeof c.from);
      continue;
    }
    if (begins(line, "pass")) {
      quoted(line, c.pass, sizeof c.pass);
      continue;
    }
    bool check = begins(line, "expect") || begins(line, "count") || begins(line, "contains") ||
                 begins(line, "order") || begins(line, "error");
    if (!check) {
      if (!in_graph) fail_msg("%s:%d: '%s' after the checks began", path, line_no, line);
      assert_true(strlen(c.graph) + strlen(line) + 2 < sizeof c.graph);
      strcat(c.graph, line), strcat(c.graph, "\n");
      continue;
    }
    if (in_graph) run_case(&c), in_graph = false;
    checks++;
    if (begins(line, "error")) {
      if (c.result) fail_msg("%s: %s: was taken:\n%s", path, c.name, c.result);
      if (!strstr(tg_errmsg(c.ctx), line + 6)) fail_msg("%s: %s: says '%s'", path, c.name, tg_errmsg(c.ctx));
      continue;
    }
    if (!c.result) fail_msg("%s: %s: %s", path, c.name, tg_errmsg(c.ctx));
    if (begins(line, "count")) {
      char op[32] = "";
      int n = -1;
      assert_int_equal(sscanf(line, "count %31s %d", op, &n), 2);
      if (count_op(c.result, op) != n)
        fail_msg("%s: %s: %d of %s, not %d:\n%s", path, c.name, count_op(c.result, op), op, n, c.result);
    } else if (begins(line, "contains")) {
      if (!strstr(c.result, line + 9)) fail_msg("%s: %s: no '%s' in\n%s", path, c.name, line + 9, c.result);
    } else if (begins(line, "order")) {
      char a[32] = " = ", b[32] = " = ";
      assert_int_equal(sscanf(line, "order %28s %28s", a + 3, b + 3), 2);
      const char *x = strstr(c.result, a), *y = strstr(c.result, b);
      if (!x || !y || x > y)
        fail_msg("%s: %s: %s is not before %s:\n%s", path, c.name, a + 3, b + 3, c.result);
    } else {
      if (line[6]) { /* the result is these expressions of the graph's names */
        strcpy(text, c.graph);
        char *roots = strstr(text, "\nroots ");
        if (roots) roots[1] = 0;
        strcat(text, "roots "), strcat(text, line + 7), strcat(text, "\n");
      } else { /* the result is the text up to an empty line */
        *text = 0;
        while (*at && *at != '\n') {
          size_t n = strcspn(at, "\n");
          strncat(text, at, n), strcat(text, "\n");
          at += n + (at[n] == '\n'), line_no++;
        }
      }
      normal(text, want, sizeof want);
      normal(c.result, got, sizeof got);
      if (strcmp(want, got) && getenv("SHOW")) fputs(got, stderr);
      if (strcmp(want, got)) fail_msg("%s: %s: expected\n%sgot\n%s", path, c.name, want, got);
    }
  }
  if (cases && !checks) fail_msg("%s: case '%s' checks nothing", path, c.name);
  end_case(&c);
  free(all);
  return cases;
}

static void test_passes(void **state) {
  (void)state;
  DIR *d = opendir(TG_TESTS "/passes");
  assert_non_null(d);
  int cases = 0;
  for (struct dirent *e; (e = readdir(d));) {
    char path[600];
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 4, ".uop")) continue;
    snprintf(path, sizeof path, TG_TESTS "/passes/%s", e->d_name);
    cases += run_file(path);
  }
  closedir(d);
  assert_in_range(cases, 25, 10000);
}

/* ---- tg_opt makes of a graph's text what tg_realize makes of the graph; a plan for a GPU does not ask how
 * many cores the processor has */
static int kernels;
static char source[1 << 15];

static void keep_source(const TgKernelText *k, void *user) {
  (void)user;
  kernels++;
  /* below the line that says what it is */
  snprintf(source, sizeof source, "%s", strchr(k->source, '\n') + 1);
}

/* rows in local memory */
static TgTensor *normed(TgContext *ctx) {
  return tg_layer_norm(tg_softmax(tg_empty(ctx, TG_F32, TG_SHAPE(64, 1024))));
}

static void test_opt_as_realize(void **state) {
  (void)state;

  static const struct {
    const char *device, *emit, *begins;
  } targets[] = {
      {"NULL:C", "c", "\nvoid "}, {"NULL:CUDA", "cuda", "__global__"}, {"NULL:METAL", "metal", "\nkernel "}};

  for (size_t i = 0; i < TG_COUNT(targets); i++) {
    char folder[] = "/tmp/tg-passes-XXXXXX", command[128], graph[1 << 14];
    assert_non_null(mkdtemp(folder));
    setenv("TG_DUMP", folder, 1);
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = targets[i].device});
    unsetenv("TG_DUMP");
    kernels = 0;
    tg_watch_kernels(ctx, keep_source, NULL);
    assert_int_equal(tg_realize(normed(ctx)), TG_OK);
    tg_watch_kernels(ctx, NULL, NULL);
    tg_close(ctx);
    snprintf(command, sizeof command, "cat %s/s*input.uop; rm -rf %s", folder, folder);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    graph[fread(graph, 1, sizeof graph - 1, f)] = 0;
    pclose(f);
    ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = targets[i].device});
    const char *text = tg_opt(ctx, graph, .emit = targets[i].emit);
    if (!text) fail_msg("%s: %s", targets[i].device, tg_errmsg(ctx));
    int made = 0;
    for (const char *p = text; (p = strstr(p, targets[i].begins)); p++)
      made++;
    assert_int_equal(made, kernels);
    assert_int_equal(kernels, 1);
    if (!strstr(text, source))
      fail_msg("%s: realized\n%s\nbut tg_opt makes\n%s", targets[i].device, source, text);
    tg_close(ctx);
  }
}

static void test_gpu_plan(void **state) {
  (void)state;
  int n[3][2];
  for (int i = 0; i < 3; i++)
    for (int d = 0; d < 2; d++) {
      TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions),
                                                .device = d ? "NULL:METAL" : "NULL:CUDA",
                                                .cores = i == 0   ? 1
                                                         : i == 1 ? 6
                                                                  : 64});
      TgTensor *q = tg_empty(ctx, TG_F32, TG_SHAPE(12, 64, 64));
      TgTensor *x = tg_empty(ctx, TG_F32, TG_SHAPE(64, 768));
      TgTensor *w = tg_empty(ctx, TG_F32, TG_SHAPE(768, 768));
      TgTensor *t[] = {tg_scaled_dot_product_attention(q, q, q, .causal = true),
                       tg_layer_norm(tg_matmul(x, w)), tg_softmax(tg_matmul(x, w))};
      n[i][d] = tg_schedule(t, 3, NULL, NULL);
      assert_true(n[i][d] > 0);
      assert_int_equal(n[i][d], n[0][d]);
      tg_close(ctx);
    }
}

/* ---- the tree after each pass as text holds all that there is: read back and lowered on, pass by pass, it
 * ends in the program that codegen makes at once */
static void test_pass_by_pass(void **state) {
  (void)state;
  static const char *const product =
      "p0 = PARAM[f32, 0, 70](7, 10)\np1 = PARAM[f32, 1, 2100](7, 300)\np2 = PARAM[f32, 2, 3000](300, 10)\n"
      "r0 = RANGE[0, GLOBAL](7)\nr1 = RANGE[1, GLOBAL](10)\nr2 = RANGE[2, REDUCE](300)\n"
      "s = SINK(STORE(INDEX(p0, r0, r1), REDUCE[ADD](INDEX(p1, r0, r2) * INDEX(p2, r2, r1), r2), r0, r1))\n";
  static const char *const lists[] = {"VEC r1 4",
                                      "TILE r0 3, UPCAST r0 2, VEC r1 8",
                                      "TILE r1 4, STAGE p2, VEC r1 4",
                                      "GROUP r2 16, UPCAST r0 2",
                                      "SWAP r0 r1, UNROLL r2 7",
                                      "TILE r0 4, STAGE p1, UPCAST r1 5, VEC r0 4"};
  static char now[1 << 16], whole[1 << 16];
  for (size_t i = 0; i < TG_COUNT(lists); i++) {
    TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
    const char *r = tg_opt(ctx, product, .opts = lists[i]), *name, *stage;
    if (!r) fail_msg("%s: %s", lists[i], tg_errmsg(ctx));
    snprintf(whole, sizeof whole, "%s", strchr(r, '\n'));
    snprintf(now, sizeof now, "%s", product);
    for (int pass = 0; (name = tg_pass_name(pass, &stage)); pass++) {
      if (strcmp(stage, "codegen") || !strcmp(name, "choose opts") || !strcmp(name, "nest")) continue;
      bool opts = !strcmp(name, "apply opts");
      r = tg_opt(ctx, now, .pass = name, .from = opts ? "choose opts" : NULL, .opts = opts ? lists[i] : NULL);
      if (!r) fail_msg("%s: %s: %s\n%s", lists[i], name, tg_errmsg(ctx), now);
      assert_true(strlen(r) < sizeof now);
      memmove(now, r, strlen(r) + 1);
    }
    assert_string_equal(strchr(now, '\n'), whole);
    tg_close(ctx);
  }
}

/* ---- tg_opt: what the cases above do not ask for */
static void test_opt(void **state) {
  (void)state;
  TgContext *ctx = tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = "NULL:C"});
  const char *sum = "b = RESHAPE[(4, 8)](BUFFER[f32, 0, 32])\nREDUCE_AXIS[ADD, (1)](b)\n", *r;

  static const struct {
    const char *emit, *has;
  } emits[] = {{"c", "void r_4("},
               {"cuda", "__global__ void __launch_bounds__"},
               {"metal", "kernel void r_4("},
               {"uops", "program r_4: 2 params"}};

  for (size_t i = 0; i < TG_COUNT(emits); i++) {
    assert_non_null(r = tg_opt(ctx, sum, .emit = emits[i].emit));
    assert_non_null(strstr(r, emits[i].has));
  }
  char program[8192];
  assert_non_null(r = tg_opt(ctx, sum));
  assert_true(strlen(r) < sizeof program);
  strcpy(program, r);
  assert_non_null(r = tg_opt(ctx, program)); /* a program is left as it is .. */
  assert_string_equal(r, program);
  assert_non_null(r = tg_opt(ctx, program, .emit = "c")); /* .. or rendered */
  assert_non_null(strstr(r, "void r_4("));
  const char *two =
      "b = BUFFER[f32, 0, 32]\nu = CONTIGUOUS(NEG(b))\nroots u, REDUCE_AXIS[ADD, (0)](EXP2(u))\n";
  assert_non_null(r = tg_opt(ctx, two, .emit = "c")); /* the words before the first kernel come once */
  assert_null(strstr(strstr(r, "#define INL static") + 1, "#define INL static"));

  static const struct {
    const char *text, *pass, *emit, *says;
  } wrong[] = {
      {"x\n", NULL, NULL, "line 1, column 1: expected a name or an op"},
      {"PARAM[f32, 0, 4]\n", "no such", NULL, "opt: no pass is called 'no such'"},
      {"PARAM[f32, 0, 4]\n", NULL, "pascal", "opt: emit 'pascal': it is uops, c, cuda, metal, costs or kind"},
      {"PARAM[f32, 0, 4]\n", NULL, NULL,
       "opt: codegen takes a kernel graph: PARAM: the root of a kernel is PARAM, not SINK: p0"},
      {"PARAM[f32, 0, 4]\n", "linearize", NULL, "opt: linearize takes a loops graph"},
      {"PARAM[f32, 0, 4]\n", "initial symbolic", "c", "opt: 'initial symbolic' gives a graph"},
      {"r0 = RANGE[0, LOOP](4)\nr0 + 1\n", "rangeify", NULL, "opt: schedule takes a tensor graph"},
      {"1\n", "rangeify", NULL, "opt: a root of the tensor graph has no shape"},
      {"program x: 0 params, 1 threads, grid 1 1 1, block 1 1 1\nIF(1:bool)\n", NULL, NULL,
       "opt: a renderer takes a linear graph: IF: is never closed"},
      {"program x: 1 params, 1 threads, grid 1 1 1, block 1 1 1\nPARAM[f32, 0, 4]\n", "expand", NULL,
       "opt: 'expand' takes a graph, not a program"},
  };

  for (size_t i = 0; i < TG_COUNT(wrong); i++) {
    assert_null(tg_opt(ctx, wrong[i].text, .pass = wrong[i].pass, .emit = wrong[i].emit));
    if (!strstr(tg_errmsg(ctx), wrong[i].says))
      fail_msg("%s: says '%s', not '%s'", wrong[i].text, tg_errmsg(ctx), wrong[i].says);
    tg_clear_error(ctx);
  }
  const char *many =
      "p0 = PARAM[f32, 0, 4]\nr99 = RANGE[99, LOOP](4)\ns = SINK(STORE(INDEX(p0, r99), 1:f32, r99))\n";
  assert_non_null(tg_opt(ctx, many, .pass = "linearize", .from = "simplify ranges"));
  assert_null(tg_opt(ctx, many, .pass = "simplify ranges", .from = "linearize"));
  tg_clear_error(ctx);
  assert_null(tg_opt(NULL, sum));
  assert_null(tg_opt(ctx, NULL));
  const char *stage, *name;
  int n = 0;
  for (; (name = tg_pass_name(n, &stage)); n++)
    assert_true(!strcmp(stage, "schedule") || !strcmp(stage, "codegen"));
  assert_string_equal(tg_pass_name(n - 1, NULL), "linearize");
  assert_null(tg_pass_name(-1, NULL));
  tg_close(ctx);
}

/* ---- a line per rule */
static const char *fired_name;

static bool fired(RewriteEnv *env, Rewrite *rw, const char *name, const char *where, UOp *self, UOp *result) {
  (void)env, (void)rw, (void)where, (void)self, (void)result;
  fired_name = name;
  return true;
}

/* under: its folder; ctx: of its matchers; text: its rules; last: the matcher that `-` lines are for */
typedef struct RuleFile {
  const char *name, *under;
  const MatcherName *matchers;
  void *ctx;
  const char *text;
  Matcher last;
} RuleFile;

static Limits limits = {.most_loops = 3, .literals = true};

/* What `context NAME` in a file of lines is: a kernel for that target, or a context of tensors. */
static Renderer bare, half;
static Kernel for_c = {.ren = &renderer_c}, for_cuda = {.ren = &renderer_cuda}, for_bare = {.ren = &bare},
              for_half = {.ren = &half}, for_interp;

static TgContext for_tensors; /* as it is when nothing was asked for */

static const struct {
  const char *name;
  void *ctx;
} contexts[] = {{"tensors", &for_tensors}, {"C", &for_c},       {"CUDA", &for_cuda},
                {"bare", &for_bare},       {"half", &for_half}, {"INTERP", &for_interp}};

#define RULES(name) extern const MatcherName matchers_##name[];
#include "gen/rule_files.def"
RULES(language)
#undef RULES
#define RULES(file) {.name = #file, .under = TG_TESTS "/../rules", .matchers = matchers_##file},
static RuleFile rule_files[] = {
#include "gen/rule_files.def"
    {.name = "language", .under = TG_TESTS "/rules", .matchers = matchers_language, .ctx = &limits},
};

/* The matcher that rule `name` stands in: the last one named before it in the text of the file. */
static Matcher matcher_of(const RuleFile *f, const char *name) {
  const char *at = NULL, *last = NULL;
  char line[64], head[64];
  Matcher m = NULL;
  snprintf(line, sizeof line, "\n%s:", name);
  if (!(at = strstr(f->text, line)))
    return f->matchers[0].matcher; /* one that the first matcher tries first */
  for (int i = 0; f->matchers[i].name; i++) {
    snprintf(head, sizeof head, "\nmatcher %s", f->matchers[i].name);
    const char *from = strstr(f->text, head);
    if (from && from < at && from > last) m = f->matchers[i].matcher, last = from;
  }
  return m;
}

/* One line `name: graph => graph`, `name: graph => ..` where the result is long, or `- graph` where no rule
 * fires, of the nodes that t has names for. */
static void check_rule_line(UOpText *t, UOpStore *st, TgMem *mem, const RuleFile *f, char *line) {
  RewriteEnv env = {.limit = -1, .on_fire = fired};
  TgError err = {0};
  bool none = *line == '-';
  char *colon = none ? line : strchr(line, ':'), *arrow = none ? colon + strlen(colon) : strstr(line, "=>");
  assert_non_null(colon);
  UOp *from = uop_parse_expr(t, colon + 1, (size_t)(arrow - colon - 1), 1, &err);
  bool any = !none && strstr(arrow, "=> ..");
  UOp *to = from && !none && !any ? uop_parse_expr(t, arrow + 2, strlen(arrow + 2), 1, &err) : from;
  if (!to) fail_msg("%s: %s", line, err.msg);
  *colon = 0;
  Rewrite rw = {.st = st, .mem = mem, .ctx = f->ctx};
  fired_name = "";
  store_set_env(st, &env);
  UOp *r = (none ? f->last : matcher_of(f, line))(&rw, from);
  store_set_env(st, NULL);
  if (strcmp(fired_name, line)) fail_msg("%s:%s: '%s' fired", line, colon + 1, fired_name);
  if (none || any) return;
  if (r == to || r == uop_simplify(st, mem, to)) return;
  Str s;
  str_init(&s, mem);
  uop_print(&s, st, mem, &r, 1), str_put(&s, "and not\n"), uop_print(&s, st, mem, &to, 1);
  fail_msg("%s:%s: gives\n%s", line, colon + 1, str_text(&s));
}

static void choose_context(RuleFile *f, const char *name) {
  bare = (Renderer){.native = 0}, half = renderer_c, half.has_f16 = true;
  f->ctx = NULL;
  for (size_t i = 0; i < TG_COUNT(contexts); i++)
    if (!strcmp(contexts[i].name, name)) f->ctx = contexts[i].ctx;
  if (!f->ctx) fail_msg("%s.txt: no context %s", f->name, name);
}

static void choose_matcher(RuleFile *f, const char *name) {
  f->last = NULL;
  for (int i = 0; f->matchers[i].name; i++)
    if (!strcmp(f->matchers[i].name, name)) f->last = f->matchers[i].matcher;
  if (!f->last) fail_msg("%s.txt: no matcher %s", f->name, name);
}

/* tests/rules/NAME.txt has definitions, then a line for every rule of NAME.rules, in any order. Between them,
 * `context NAME` chooses what the rules run with, `matcher NAME` which one the `-` lines below are for. */
static void check_rule_file(RuleFile *f) {
  char path[256], *line, *next;
  snprintf(path, sizeof path, "%s/rules/%s.txt", TG_TESTS, f->name);
  char *text = slurp(path);
  snprintf(path, sizeof path, "%s/%s.rules", f->under, f->name);
  char *rules = slurp(path);
  f->text = rules, f->last = f->matchers[0].matcher;
  char defs[4096] = "", seen[16384] = "\n";
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOpText t = {.mem = &mem};
  TgError err = {0};
  bool ready = false;
  for (line = text; line && *line; line = next) {
    if ((next = strchr(line, '\n'))) *next++ = 0;
    if (*line == '#' || !*line) continue;
    if (begins(line, "context") || begins(line, "matcher")) {
      (*line == 'c' ? choose_context : choose_matcher)(f, line + 8);
      continue;
    }
    if (!strstr(line, "=>") && *line != '-') {
      assert_true(strlen(defs) + strlen(line) + 2 < sizeof defs);
      strcat(defs, line), strcat(defs, "\n");
      continue;
    }
    if (!ready && !uop_parse(&t, st, &mem, defs, strlen(defs), &err)) fail_msg("%s", err.msg);
    ready = true;
    check_rule_line(&t, st, &mem, f, line);
    assert_true(strlen(seen) + strlen(line) + 2 < sizeof seen);
    strcat(seen, line), strcat(seen, "\n");
  }
  int n = 0;
  for (line = rules; line && *line; line = next) { /* every rule has a line */
    if ((next = strchr(line, '\n'))) *next++ = 0;
    char *exact = strstr(line, "=>"), *arrow = exact ? exact : strstr(line, "~>");
    char *colon = strchr(line, ':'), name[64];
    if (*line == '#' || !arrow || !colon || colon > arrow) continue;
    snprintf(name, sizeof name, "\n%.*s\n", (int)(colon - line), line);
    if (!strstr(seen, name)) fail_msg("tests/rules/%s.txt has no line for rule%s", f->name, name);
    n++;
  }
  assert_true(n > 0);
  uop_text_free(&t);
  store_free(st);
  free(text), free(rules);
  assert_int_equal(mem.live, 0);
}

static void test_rule_lines(void **state) {
  (void)state;
  for (size_t i = 0; i < TG_COUNT(rule_files); i++)
    if (rule_files[i].matchers[0].name) check_rule_file(&rule_files[i]); /* gradients: test_gradient.c */
}

/* A mark is answered by as many rules as it takes, or not at all. */
static void test_answers(void **state) {
  (void)state;
  TgMem mem = {0};
  UOpStore *st = store_new(&mem);
  UOpText t = {.mem = &mem};
  TgError err = {0};
  static const char text[] = "x = PARAM[f32, 0, 1]\ny = PARAM[f32, 1, 1]\nu = SQRT(SCALE(EXP(x), x, y))\n"
                             "v = SQRT(EXP(y - x))\nw = SQRT(SCALE(SIN(x), x, y))\nroots u, v, w\n";
  assert_true(uop_parse(&t, st, &mem, text, sizeof text - 1, &err));
  UOp *const *root = t.roots.at;
  assert_ptr_equal(uop_answer(st, &mem, pm_language, &limits, root[0]), root[1]);
  assert_ptr_equal(uop_answer(st, &mem, pm_language, &limits, root[1]), root[1]);
  assert_null(uop_answer(st, &mem, pm_language, &limits, root[2]));
  uop_text_free(&t);
  store_free(st);
  assert_int_equal(mem.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_passes),       cmocka_unit_test(test_opt),
      cmocka_unit_test(test_pass_by_pass), cmocka_unit_test(test_opt_as_realize),
      cmocka_unit_test(test_gpu_plan),     cmocka_unit_test(test_rule_lines),
      cmocka_unit_test(test_answers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
