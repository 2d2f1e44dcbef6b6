/* grammar.h: what the files of grammars share: an automaton over bytes. A rule is a part of the automaton
 * that is entered by a CALL and left by an END. A character of more than one byte is a chain of byte
 * ranges. */
#ifndef TG_GRAMMAR_H
#define TG_GRAMMAR_H
#include "llm_private.h"

typedef enum GrammarOp {
  GRAMMAR_BYTE,  /* a byte of lo .. hi, then node a */
  GRAMMAR_SPLIT, /* node a, or node b */
  GRAMMAR_CALL,  /* rule b, then node a */
  GRAMMAR_END    /* the end of a rule */
} GrammarOp;

typedef struct GrammarNode {
  uint8_t op, lo, hi;
  int32_t a, b;
} GrammarNode;

typedef struct GrammarRules {
  TgContext *ctx;
  GrammarNode *node;
  size_t nnodes, node_cap;
  int32_t *entry; /* the first node of each rule */
  size_t nrules;
  int32_t root; /* a rule */
} GrammarRules;

/* grammar_gbnf.c: text -> rules. Returns false on TG_ERR_VALUE, with the line, or TG_ERR_LIMIT. */
bool grammar_read(GrammarRules *g, const char *text, size_t n);
void grammar_rules_free(GrammarRules *g);
#endif
