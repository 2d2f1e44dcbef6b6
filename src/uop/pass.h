/* pass.h: a stage is a table of named passes, which one runner runs. In: a graph and a table. Out: the graph
 * after the last pass, and after each pass the checks and texts that TG_SPEC, TG_DUMP and TG_TRACE request.
 * Dumps, traces, tests and `tg opt --pass` use the names in the tables. */
#ifndef TG_PASS_H
#define TG_PASS_H
#include "uop/spec.h"

typedef struct Pass {
  const char *name;
  Matcher matcher;          /* graph_rewrite runs it from the graph's root; NULL: `run` is the pass */
  bool (*run)(void *state); /* a function; false: it failed, and recorded an error or is out of memory */
  GraphKind makes;          /* the kind of graph after the pass */
  bool top_down;            /* the matcher sees a node before its sources */
  bool required;            /* a lowering that a target needs: TG_RULE_LIMIT does not stop it */
  bool optional;            /* the result is the same without it, so TG_SKIP may name it */
} Pass;

typedef struct RuleCount {
  const char *name, *where;
  uint64_t n;
} RuleCount;

/* Choices that a program could do without, counted in the order in which they are made: opts of kernels,
 * fusions of stages. */
typedef struct Choices {
  int64_t limit, taken; /* how many may be taken, -1: all; how many were taken */
} Choices;

static inline int64_t choices_left(const Choices *c) {
  return c->limit < 0 ? INT64_MAX : c->limit - c->taken;
}

typedef struct PassEnv { /* for a context: the user's requests, and counts over all its passes */
  RewriteEnv rewrites;   /* must be first, because the stores point at it */
  TgMem *mem;
  const TgOs *os;
  bool trace, trace_choices, spec;
  Choices opts, fusions; /* TG_OPT_LIMIT, TG_FUSE_LIMIT */
  char dump_dir[256];
  char record_dir[256]; /* directory of TG_VIZ; "": none */
  /* recorded text that is not written yet: the run; the rewrites of the current pass, .. */
  Str record, rewrites_text;
  int nrewrites; /* .. and their number */
  /* NULL, or returns the origin of a node of the tensor graph that is scheduled next, "conv1/relu
   * (net.c:12)" */
  const char *(*origin)(void *to, const UOp *u);
  void *origin_to;
  int next_schedule, next_kernel;          /* numbers in the names of dumps */
  void (*say)(void *to, const char *text); /* receives traces; NULL: nothing does */
  void *say_to;
  uint64_t fallbacks; /* kernels lowered again with fewer opts .. */
  char fallback[320]; /* .. and why the last one was: kernel, pass, opt, reason; "" once it was reported */
  uint64_t cuts;      /* schedules made again because a kernel could not be lowered at all */
  /* for tests: a kernel with more reductions than this is refused; 0: none is, -1: all are */
  int refuse_over;
  const struct PassRun *now; /* the run whose pass is running */
  const char *pass;
  bool said_pass;        /* the trace has printed the pass's name */
  Vec(RuleCount) counts; /* per rule of this pass; used for dumps */
  Map made_by;           /* node -> name of the rule that returned it in this pass; used for checks */
  const char *bad_rule;  /* a rule whose result was refused .. */
  char bad[400];         /* .. and why */
} PassEnv;

void pass_env_init(PassEnv *e, const TgEnv *env, const TgOs *os, TgMem *mem,
                   void (*say)(void *to, const char *text), void *say_to);
void pass_env_free(PassEnv *e);

typedef struct PassRun {
  PassEnv *env; /* NULL: passes run, and nothing is checked or written */
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const char *stage; /* "schedule", "codegen" */
  char letter;       /* first letter of the names of dumps: s, k */
  int number;
  GraphKind takes;                           /* the kind of graph before the first pass */
  const char *subject;                       /* name of the kernel, or "" */
  void *state;                               /* rw->ctx of matchers, argument of functions */
  UOp **root;                                /* the graph that matchers rewrite; functions do not use it */
  bool (*graph)(void *state, UOpVec *roots); /* appends the current roots of the graph */
  const Linear *linear;                      /* if set and not empty: the graph is this list */
  const char *skip; /* NULL, or names of optional passes to skip, "inline cheap,order axes" */
  /* NULL, or appends, as comments, what the next pass needs besides the graph */
  bool (*more)(void *state, const char *pass, Str *out);
} PassRun;

/* The first name in `list` that is not an optional pass of the table, and its length. NULL: there is none. */
const char *pass_unknown(const char *list, const Pass *table, size_t n, int *length);
/* Returns false if a pass failed. err then says which one, unless memory ran out. */
bool passes_run(PassRun *r, const Pass *table, size_t n);
#endif
