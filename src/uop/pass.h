/* pass.h: a stage is a table of named passes, run by one runner. In: a graph and a table. Out: the graph
 * after the last pass; after each one what TG_SPEC, TG_DUMP and TG_TRACE ask for. The names in the tables are
 * what dumps, traces, tests and `tg opt --pass` use. */
#ifndef TG_PASS_H
#define TG_PASS_H
#include "uop/spec.h"

typedef struct Pass {
  const char *name;
  Matcher matcher;          /* run by graph_rewrite from the graph's root; or */
  bool (*run)(void *state); /* a function; false: failed, with an error recorded or out of memory */
  GraphKind makes;          /* what the graph is when it is done */
  bool top_down;            /* the matcher sees a node before its sources */
  bool required;            /* lowering: TG_RULE_LIMIT does not stop it */
  bool optional;            /* the graph computes the same without it: TG_SKIP may name it */
} Pass;

typedef struct RuleCount {
  const char *name, *where;
  uint64_t n;
} RuleCount;

/* Choices that a program could do without, counted in their order: opts of kernels, fusions of stages. */
typedef struct Choices {
  int64_t limit, taken; /* how many may be taken, -1: all; how many were */
} Choices;

static inline int64_t choices_left(const Choices *c) {
  return c->limit < 0 ? INT64_MAX : c->limit - c->taken;
}

typedef struct PassEnv { /* of a context: what was asked for, and counts over all its passes */
  RewriteEnv rewrites;   /* first: the stores point at it */
  TgMem *mem;
  const TgOs *os;
  bool trace, trace_choices, spec;
  Choices opts, fusions; /* TG_OPT_LIMIT, TG_FUSE_LIMIT */
  char dump_dir[256];
  char record_dir[256];      /* of TG_VIZ; "": none. What is recorded, until it is written: */
  Str record, rewrites_text; /* the run; the rewrites of the pass that runs .. */
  int nrewrites;             /* .. and how many those are */
  /* NULL, or of a node of the tensor graph that is scheduled next where it comes from, "conv1/relu (net.c:12)" */
  const char *(*origin)(void *to, const UOp *u);
  void *origin_to;
  int next_schedule, next_kernel;          /* numbers in the names of dumps */
  void (*say)(void *to, const char *text); /* where traces go; NULL: nowhere */
  void *say_to;
  uint64_t fallbacks; /* kernels lowered again with fewer opts .. */
  char fallback[320]; /* .. and why, the last time: kernel, pass, opt, reason; "" once it was told */
  uint64_t cuts;      /* schedules made again because a kernel could not be lowered at all */
  int refuse_over;    /* for tests: a kernel of more reductions than this is refused; 0: none, -1: all */
  const struct PassRun *now; /* the run whose pass is at work */
  const char *pass;
  bool said_pass;        /* the trace has named the pass */
  Vec(RuleCount) counts; /* of this pass; kept when dumping */
  Map made_by;           /* node -> name of the rule that returned it in this pass; kept when checking */
  const char *bad_rule;  /* a rule that was refused .. */
  char bad[400];         /* .. and why */
} PassEnv;

void pass_env_init(PassEnv *e, const TgEnv *env, const TgOs *os, TgMem *mem,
                   void (*say)(void *to, const char *text), void *say_to);
void pass_env_free(PassEnv *e);

typedef struct PassRun {
  PassEnv *env; /* NULL: passes run, nothing else happens */
  UOpStore *st;
  TgMem *mem;
  TgError *err;
  const char *stage; /* "schedule", "codegen" */
  char letter;       /* begins the names of dumps: s, k */
  int number;
  GraphKind takes;                           /* what the graph is before the first pass */
  const char *subject;                       /* name of the kernel, or "" */
  void *state;                               /* a matcher's rw->ctx, a function's argument */
  UOp **root;                                /* what matchers rewrite; not used by functions */
  bool (*graph)(void *state, UOpVec *roots); /* appends the roots of the graph as it is now */
  const Linear *linear;                      /* set and not empty: the graph is this list */
  const char *skip; /* NULL, or optional passes that do not run, "inline cheap,order axes" */
  /* NULL, or appends what the next pass needs besides the graph, as comments */
  bool (*more)(void *state, const char *pass, Str *out);
} PassRun;

/* The first name of `list` that is no optional pass of the table, and its length; NULL: there is none. */
const char *pass_unknown(const char *list, const Pass *table, size_t n, int *length);
/* False: a pass failed; err says which when it is no shortage of memory. */
bool passes_run(PassRun *r, const Pass *table, size_t n);
#endif
