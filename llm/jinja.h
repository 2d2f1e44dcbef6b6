/* jinja.h: the inside of chat templates: values (jinja_value.c), from text to nodes (jinja_lex.c,
 * jinja_parse.c), from nodes to text (jinja_run.c), filters, tests, methods and functions (jinja_call.c). All
 * memory comes from an arena, which is freed with the template or with the rendering. */
#ifndef TG_LLM_JINJA_H
#define TG_LLM_JINJA_H
#include "llm_private.h"
#include <setjmp.h>

/* ---- memory with a limit */
typedef struct JBlock {
  struct JBlock *next;
  size_t used, cap;
} JBlock;

typedef struct JArena {
  TgContext *ctx;
  JBlock *blocks;
  size_t bytes, most;
} JArena;

/* The state of a parse or of a rendering. An error is recorded and then leaves by longjmp to `out`. */
typedef struct Jinja {
  TgContext *ctx;
  JArena arena;
  jmp_buf out;
  int line, depth, most_depth;
  int64_t steps, most_steps;
  size_t most_bytes;
  int64_t now;
} Jinja;

void *j_alloc(Jinja *j, size_t n); /* zeroed; never NULL */
void j_free(Jinja *j);
_Noreturn void j_fail(Jinja *j, TgStatus status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void j_step(Jinja *j, int64_t n);
void j_enter(Jinja *j); /* one level deeper; too deep is an error */

/* ---- values */
typedef enum JKind {
  J_UNDEFINED,
  J_NONE,
  J_BOOL,
  J_INT,
  J_FLOAT,
  J_STRING,
  J_LIST,
  J_MAP,
  J_NAMESPACE, /* a map that `set ns.x` changes */
  J_LOOP,
  J_MACRO,
  J_FUNCTION /* by its name */
} JKind;

typedef struct JValue JValue;

typedef struct JPair {
  JValue *key, *value;
} JPair;

typedef struct JLoop {
  JValue *list;
  size_t at;
} JLoop;

struct JValue {
  JKind kind;
  bool tuple;
  size_t n, cap; /* bytes of a string, items of a list, pairs of a map */

  union {
    int64_t i;
    double f;
    const char *s;
    JValue **at;
    JPair *pair;
    JLoop *loop;
    const struct JNode *macro;
  } u;

  struct JFrame *frame; /* of a macro: the frame in which it was defined */
};

JValue *j_value(Jinja *j, JKind kind);
JValue *j_int(Jinja *j, int64_t i);
JValue *j_bool(Jinja *j, bool b);
JValue *j_float(Jinja *j, double f);
JValue *j_string(Jinja *j, const char *s, size_t n); /* s is copied */
JValue *j_text(Jinja *j, LlmText *t);                /* takes over the buffer's bytes */
void j_append(Jinja *j, JValue *list, JValue *v);
JValue *j_get(const JValue *map, const char *key, size_t n); /* NULL: none */
JValue *j_find(Jinja *j, const JValue *map, const JValue *key);
void j_put(Jinja *j, JValue *map, JValue *key, JValue *value);
bool j_true(const JValue *v);
bool j_equal(Jinja *j, const JValue *a, const JValue *b);
int j_compare(Jinja *j, const JValue *a, const JValue *b); /* numbers or strings; an error otherwise */
bool j_is(const JValue *v, const char *text);              /* whether v is this string */
JValue *j_as_list(Jinja *j, JValue *v);                    /* the items that `for` visits */
int64_t j_length(Jinja *j, const JValue *v);
double j_number(Jinja *j, const JValue *v);
/* writes v as Python's str() does, or, if quoted, as repr() does */
void j_write(Jinja *j, LlmText *to, const JValue *v, bool quoted);
JValue *j_to_string(Jinja *j, JValue *v);
void j_json(Jinja *j, LlmText *to, const JValue *v, int indent, int level); /* indent -1: on one line */
JValue *j_from_json(Jinja *j, const char *text, size_t n);
LlmText *j_buffer(Jinja *j); /* its memory is freed with the arena */
void j_buffer_put(Jinja *j, LlmText *t, const void *p, size_t n);

/* ---- nodes */
typedef enum JNodeKind {
  N_TEXT,
  N_PRINT,
  N_IF,
  N_FOR,
  N_SET,
  N_SET_BLOCK,
  N_MACRO,
  N_FILTER_BLOCK,
  N_BREAK,
  N_CONTINUE,
  N_CONST,
  N_NAME,
  N_LIST,
  N_MAP,
  N_ATTRIBUTE,
  N_INDEX,
  N_SLICE,
  N_CALL,
  N_FILTER,
  N_TEST,
  N_NOT,
  N_NEGATIVE,
  N_BINARY,
  N_AND,
  N_OR,
  N_CHOICE
} JNodeKind;

typedef enum JOp {
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_DIV,
  OP_FLOORDIV,
  OP_MOD,
  OP_POW,
  OP_JOIN,
  OP_EQ,
  OP_NE,
  OP_LT,
  OP_LE,
  OP_GT,
  OP_GE,
  OP_IN,
  OP_NOT_IN
} JOp;

typedef struct JArgument {
  const char *name; /* NULL: given by position */
  struct JNode *value;
} JArgument;

typedef struct JNode {
  JNodeKind kind;
  int line;
  JOp op;
  bool negative; /* of a test: `is not`; of a list: a tuple */
  const char *name;
  size_t n;
  JValue *value;
  struct JNode *a, *b, *c, *d; /* operands; of statements: condition, body, other body */
  struct JNode *next;          /* the next statement */
  JArgument *argument; /* of calls, filters, tests, lists; parameters of macros; targets of for and set */
  size_t narguments, cap;
} JNode;

/* ---- text to nodes */
typedef enum JTokenKind {
  T_END,
  T_TEXT,
  T_BEGIN_PRINT,
  T_END_PRINT,
  T_BEGIN_TAG,
  T_END_TAG,
  T_NAME,
  T_STRING,
  T_INT,
  T_FLOAT,
  T_SIGN
} JTokenKind;

typedef struct JToken {
  JTokenKind kind;
  int line;
  const char *s; /* the bytes of texts and strings */
  size_t n;
  int64_t i;
  double f;
} JToken;

/* All tokens of a template; the last one is T_END. */
JToken *j_tokens(Jinja *j, const char *text, size_t n);
JNode *j_parse(Jinja *j, const JToken *tokens);

/* ---- nodes to text */
typedef struct JFrame {
  struct JFrame *parent;
  JValue *names;
} JFrame;

/* The evaluated arguments of a call. */
typedef struct JArguments {
  JValue **at;
  size_t n;
  const char **name; /* NULL: given by position */
} JArguments;

/* The argument with this name or position; NULL: it was not given. */
JValue *j_argument(const JArguments *a, size_t place, const char *name);
void j_render(Jinja *j, const JNode *root, JValue *names, LlmText *to);
JValue *j_attribute(Jinja *j, JValue *of, const char *name, size_t n);
JValue *j_item(Jinja *j, JValue *of, JValue *key);

JValue *j_filter(Jinja *j, const char *name, JValue *v, const JArguments *a);
bool j_test(Jinja *j, const char *name, JValue *v, const JArguments *a);
/* Returns false if values of this kind have no such method. */
bool j_method(Jinja *j, JValue *of, const char *name, const JArguments *a, JValue **out);
bool j_is_function(const char *name, size_t n);
JValue *j_function(Jinja *j, const char *name, const JArguments *a);
#endif
