/* rulegen.h: what the files of rulegen share: a rule as it was read, the words of a line, and what each step
 * does with a rule. The language is described in main.c. */
#ifndef TG_RULEGEN_H
#define TG_RULEGEN_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "uop/uop.h"
#include <stdio.h>

enum { DOM_ANY, DOM_INT, DOM_INDEX, DOM_DATA, DOM_WRAPS, DOM_BOOL, DOM_SIGNED, DOM_FLOAT, DOM_LIST };

enum { MAX_SRC = 8 };

typedef enum Kind { LIT, NAME, LIST, OPN, OPVAR, CALL, FOLD, CONSTANT } Kind;
typedef struct Node Node;

struct Node {
  Kind kind;
  int op, dtype, narg; /* dtype: -1 none, -2 taken from the node named in `of` */
  bool rest;  /* of a pattern: any further sources behind the first `before`, and before the others, */
  int before; /* as the list `list` if that is named */
  char list[32];
  char order_of[32];             /* whose operands stand as its own: exchanged where the pattern's are */
  char arg_text[32], arg_of[32]; /* the arg as written (an op, a type of loop, `gated`, a number), or whose */
  long long lit;
  bool is_real; /* LIT: 0.5, inf */
  double real;
  char name[32], bind[32], of[32];
  const char *text, *text_end; /* CONSTANT: the integer expression */
  Node *arg[MAX_SRC];
};

/* op, dtype: the one that its nodes have, or -1 */
typedef struct Var {
  char name[32];
  int dom, op, dtype;
  bool is_const;
} Var;

typedef struct Rule {
  char name[40];
  int line;
  bool grad, ctx, about;     /* ctx: its matcher has a context */
  Node *pat, *res, *more[2]; /* more: gradients of sources 1, 2; NULL: none */
  uint64_t ops[2];
  char opvar[32];
  const char *guard, *guard_end;
} Rule;

typedef struct MatcherDef {
  char name[40], base[4][40];
  int nbase, first, end, line;
  bool grad;
  char ctx[64]; /* the C type of the context; "": it has none */
  const char *guard, *guard_end;
} MatcherDef;

/* ---- main.c: the tables, and all that was read */
typedef struct OpInfo {
  const char *name;
  int nsrc;
  ArgForm arg;
  unsigned flags;
  OpOperands operands;
  OpWeight weight;
} OpInfo;

typedef struct OpSet {
  const char *name;
  unsigned flags;      /* 0: by what they take, or by weight, those from WEIGHT_EXP on */
  OpOperands from, to; /* NONE, or the first and the last of what they take */
} OpSet;

typedef struct DTypeInfo {
  const char *text, *name;
} DTypeInfo;

enum { NSETS = 10, NDOMAINS = 9, MOST_VARS = 64, MOST_RULES = 512, MOST_MATCHERS = 32 };

extern const OpInfo ops[OPS_COUNT];
extern const OpSet sets[NSETS];
extern const DTypeInfo dtypes[DT_COUNT];
extern const char *const axis_types[], *const domains[NDOMAINS];
extern const size_t naxis_types;
extern const char *file; /* without its folder */
extern int line_no, nvars, nrules, nmatchers;
extern Var vars[MOST_VARS];
extern Rule rules[MOST_RULES];
extern MatcherDef matchers[MOST_MATCHERS];

/* Says file:line: and the reason, and ends. */
_Noreturn void refuse(int line, const char *fmt, ...);

/* ---- parse.c: the words of a line, and expressions of them */
extern const char *line_at; /* what is left of the line, behind the word `tok`, */
extern const char *tok_at;  /* which begins here */
extern char tok[64];

void tok_next(void);
bool tok_is(const char *s);
bool tok_take(const char *s); /* if it is s: the next one */
void tok_expect(const char *s);
bool tok_is_word(void);
int find_op(const char *s); /* -1: there is none; so are the others */
int find_in(const char *const *t, size_t n, const char *s);
int find_dtype(const char *s);
const Var *find_var(const char *s); /* NULL: there is none */
Node *expression(int level);        /* of operators that bind as level does, or stronger; 0: of all */
const char *skip_guard(bool in_paren);

/* ---- check.c: what a rule may say */
Node *find_name(Node *n, const char *name); /* where it stands below n, or NULL */
bool stands_for(const Rule *r,
                int v); /* v: one op of its `for`; a rule without stands for the op of its root */
int root_op(const Rule *r, int v);
bool has_opvar(const Rule *r, const Node *n);
void resolve(Rule *r, Node *n, bool pattern);
void check_guard(const Rule *r, Node *pat, const char *at, const char *end, int line);
bool same_tree(const Node *a, const Node *b);
bool may_decline(const Node *n);
void check_hidden(int first, int end);

/* ---- read.c: what stands in a line */
void read_vars(void);
void read_matcher(bool grad);
void read_rule(const char *colon, const char *line);

/* ---- match.c: a pattern as conditions of C, a guard as it is written in C */
typedef struct Emit {
  FILE *out;
  const Rule *rule;
  char cond[2048];

  struct {
    char name[32];
    const char *path;
    bool swapped;
  } at[24];

  int nat, op; /* op: the one that the rule stands for */
  unsigned swaps;
  int nswap, root_swap;
  bool grad, stated;
} Emit;

const char *format(const char *fmt, ...); /* lives until the end, like the lines */
const char *op_word(const Emit *e, const char *word);
const char *path_of(const Emit *e, const char *name); /* the C expression that name stands for */
void cond(Emit *e, const char *fmt, ...);
void match(Emit *e, const Rule *r, const Node *n, const char *at);
void guard(Emit *e, char *out, size_t cap, const char *at, const char *end);

/* ---- write.c: results as expressions of C, and functions of rules */
const char *op_text(const Emit *e, const Node *n);
const char *result(Emit *e, const Node *n, bool fold, const char *like);
bool is_base_declared(const char *name);
/* only: of rules first .. end the case of one op that they stand for; -1: all of them. */
void emit_function(FILE *out, const char *linkage, const MatcherDef *m, const char *name, int first, int end,
                   int only);
void emit_names(FILE *out);

/* ---- prove.c: what tools/checkrules.c evaluates and proves */
void emit_check(FILE *out);
#endif
